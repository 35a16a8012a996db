"""Private bounds of a column: a noisy histogram over public bins that widen with the distance from zero.

Proof: docs/explanation/selection.md#private-bounds.
"""

import itertools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import DiscreteLaplaceEvent, Repeated
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms.exact.deviates import geometric_noise, standard_laplace
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.recording.points import passes


def log_edges(low: float, high: float, smallest: float) -> tuple[float, ...]:
    """Edges of public bins of the outer range [low, high]: its ends, and +-smallest * 2**j between them, rising.

    Args:
        low: in the column's unit.
        high: above low.
        smallest: > 0, the finest magnitude that matters; at least 2**-60 of the larger end.

    Raises:
        InvalidParameter: a value outside its bound.
    """
    low, high = _validate.real("low", low, "column"), _validate.real("high", high, "column")
    smallest = _validate.positive("smallest", smallest, "column")
    if not low < high:
        raise _validate.fail("low", low, f"below high={high!r}", "column")
    outer = max(-low, high)
    if math.frexp(outer)[1] - math.frexp(smallest)[1] > 60:
        raise _validate.fail("smallest", smallest, f"at least 2**-60 of {outer!r}", "column")
    inner, power = [], smallest
    while power < outer:
        inner += [-power, power]
        power *= 2.0
    return (low, *sorted(edge for edge in inner if low < edge < high), high)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateBoundsMechanism:
    """The range of the bins whose noisy count is at least the threshold; the range of all bins if there are none.

    docs/explanation/selection.md#private-bounds.

    Args:
        scale: b in [1e-2, 1e12], in rows.
        threshold: a whole number of rows, >= 1. A bin without rows reaches it with probability
            e^{-threshold / b} / (1 + e^{-1 / b}): this affects utility, not privacy.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    scale: float
    threshold: int

    def __post_init__(self) -> None:
        scale = _validate.positive("scale", self.scale, "rows")
        if not 1e-2 <= scale <= 1e12:
            raise _validate.fail("scale", self.scale, "in [0.01, 1e12]", "rows")
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "threshold", _validate.count("threshold", self.threshold, "rows"))

    def event(self, adjacency: Adjacency) -> DiscreteLaplaceEvent | Repeated:
        """DiscreteLaplaceEvent of a count; two of them under replace-one."""
        one = DiscreteLaplaceEvent(scale=self.scale, sensitivity=1, adjacency=adjacency)
        return Repeated(one, count=2) if adjacency is Adjacency.REPLACE_ONE else one

    @passes("choice")
    def select(
        self, values: NDArray[np.float64], edges: tuple[float, ...], source: RandomSource
    ) -> tuple[float, float]:
        """Two of the edges, the first below the second.

        Args:
            values: float64 (n,); a value outside the edges is in the outermost bin, NaN in none.
            edges: k + 1 rising finite numbers, public (`log_edges`): bin i is [edges[i], edges[i + 1]).
            source: random words.

        Raises:
            InvalidParameter: edges that do not rise or fewer than two, values of another type or shape.
        """
        _require(values)
        inner = np.array([_validate.real("edges", edge, "column") for edge in edges])
        if inner.size < 2 or not all(a < b for a, b in itertools.pairwise(inner.tolist())):
            raise InvalidParameter(f"edges must be at least two increasing numbers, not {edges!r} (unit: column)")
        bins = np.searchsorted(inner[1:-1], values[~np.isnan(values)], side="right")
        counts = np.bincount(bins, minlength=inner.size - 1)
        noisy = counts + geometric_noise(counts.size, self.scale, standard_laplace(), source)
        full = np.flatnonzero(noisy >= self.threshold)
        first, last = (int(full[0]), int(full[-1])) if full.size else (0, counts.size - 1)
        return float(inner[first]), float(inner[last + 1])


def _require(values: object) -> None:
    """Looks at type and shape only."""
    if not isinstance(values, np.ndarray) or values.dtype != np.float64 or values.ndim != 1:
        kind = f"{values.dtype} {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        raise _validate.fail("values", kind, "a float64 vector", "column")
