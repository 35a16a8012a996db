"""Outputs of a mechanism that nobody knows anything about: called, counted, checked, brought into one shape."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import AuditFailed
from ledgerwood.verification.black_box.encoding import row_bits

Sampler = Callable[[Any, int, np.random.Generator], Any]
"""(data set, n, generator) -> outputs of n independent runs, an array of shape (n, ...)."""
NonFinite = Literal["outcome", "refuse"]
_VALUES = 2_000_000
"""Numbers that are asked for in one call, about: 16 MB, of which caches hold more than of larger blocks."""
_EXACT = 2**53
_HEAD, _VARIED = 1000, 50
"""Outputs that are compared with those of the first call, and how many of them must differ from the most frequent."""
_FOREIGN, _COMPARED = 1e-14, 64
"""Probability of refusing, by one column of one call, a sampler that is right; and how many columns are compared."""


@final
@dataclass(slots=True, eq=False)
class Draws:
    """The mechanism, its outputs brought into shape (n, k) of float64, and how many were drawn.

    Args:
        sampler: the mechanism.
        pair: the two data sets.
        rng: handed to the sampler.
        non_finite: whether NaN and infinities are outcomes like others.

    Numbers are kept as they are; integers beyond 2^53 become two columns, complex numbers too; a text becomes a number
    that is a hash of it.

    Raises:
        AuditFailed: the sampler raised (its error is the cause), did not return n outputs of one shape and kind,
            returned the same outputs twice, or outputs of another law than before.
    """

    sampler: Sampler
    pair: tuple[Any, Any]
    rng: np.random.Generator
    non_finite: NonFinite
    drawn: int = 0
    _shape: tuple[int, ...] | None = field(default=None)
    _heads: dict[int, FloatArray] = field(default_factory=dict)
    _spread: dict[int, FloatArray] = field(default_factory=dict)
    _wide: bool | None = field(default=None)
    _kind: str | None = field(default=None)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one output."""
        return self._shape or ()

    def use(self, pair: tuple[Any, Any]) -> None:
        """Go on with another pair, whose outputs may have another shape."""
        self.pair, self._shape, self._wide, self._kind = pair, None, None, None
        self._heads, self._spread = {}, {}

    def once(self, side: int, n: int) -> FloatArray:
        """Outputs of n runs on one data set, shape (n, k), in one call."""
        name = f"pair[{side}]"
        try:
            raw = self.sampler(self.pair[side], n, self.rng)
        except Exception as error:
            raise AuditFailed(
                f"the sampler raised {type(error).__name__} on {name}, n={n}: {error}. A mechanism that may fail must "
                "say so by an output"
            ) from error
        array = self._array(raw, name, n)
        self.drawn += n
        if self._shape is None:
            self._shape = array.shape[1:]
        elif array.shape[1:] != self._shape:
            raise AuditFailed(
                f"outputs have shape {array.shape[1:]} on {name}, and had {self._shape} before: every run must return "
                "an output of one shape (pad it with a value that means nothing)"
            )
        self._require_kind(array, name)
        # Scores read column by column.
        values = np.asfortranarray(self._numbers(array.reshape(n, math.prod(array.shape[1:]))))
        if self.non_finite == "refuse" and not np.isfinite(values).all():
            bad = int((~np.isfinite(values).all(axis=1)).sum())
            raise AuditFailed(f"{bad} of {n} outputs on {name} are NaN or infinite, and non_finite='refuse'")
        self._require_fresh(side, values[:_HEAD], name)
        self._require_one_law(side, values[:: math.ceil(n / (2 * _HEAD)), :_COMPARED], name)
        return values

    def _require_kind(self, array: NDArray[Any], name: str) -> None:
        """What one run is encoded as must not depend on the other runs of its call: numpy makes texts of numbers."""
        if self._wide is None:
            # Settled by the first outputs: a column more or less in the middle would be another encoding.
            self._wide = array.dtype.kind in "iu" and bool(np.any(np.abs(array.astype(np.float64)) > _EXACT))
        kind = {"c": "complex numbers", "U": "texts", "S": "texts"}.get(array.dtype.kind, "numbers")
        if self._wide and array.dtype.kind in "iu":
            kind = "integers beyond 2^53"
        if self._kind is None:
            self._kind = kind
        elif kind != self._kind:
            raise AuditFailed(
                f"outputs are {kind} (dtype {array.dtype}) on {name}, and were {self._kind} before: every run must "
                "return an output of one kind, whatever other runs return"
            )

    def _require_fresh(self, side: int, head: FloatArray, name: str) -> None:
        """A sampler with a seed of its own repeats itself: an event that is learned on its own test says nothing."""
        before = self._heads.get(side)
        if before is None:
            self._heads[side] = head.copy()
            return
        size = min(len(before), len(head))
        same = (before[:size] == head[:size]) | (np.isnan(before[:size]) & np.isnan(head[:size]))
        for column in np.flatnonzero(same.all(axis=0)):
            _, times = np.unique(row_bits(head[:size, [column]]), return_counts=True)
            if size - times.max() >= _VARIED:
                raise AuditFailed(
                    f"two calls of the sampler on {name} returned the same {size} outputs: runs are not independent. "
                    "Draw from the generator that is handed over, not from a seed"
                )

    def _require_one_law(self, side: int, some: FloatArray, name: str) -> None:
        """A sampler that keeps a state, or draws noise once a call, has no independent outputs.

        The outputs are taken at equal steps: some samplers return them sorted, which is no matter to a test that
        counts.
        """
        before = self._spread.get(side)
        if before is None:
            self._spread[side] = some.copy()
            return
        # Each sample is that far from its law with probability _FOREIGN / 2 at most (Massart 1990).
        most = math.sqrt(math.log(4.0 / _FOREIGN) / 2.0) * (len(before) ** -0.5 + len(some) ** -0.5)
        for old, new in zip(before.T, some.T, strict=True):
            if _gap(old, new) > most:
                raise AuditFailed(
                    f"two calls of the sampler on {name} returned outputs of different laws: its runs are not "
                    "independent. Noise must be fresh in each of the n runs, and no state be kept between calls"
                )

    def several(self, side: int, n: int) -> Iterator[FloatArray]:
        """Outputs of n runs in as many calls as memory asks for."""
        wide = max(math.prod(self.shape), 1)
        most = max(_VALUES // wide, 1000)
        while n > 0:
            part = min(n, most)
            yield self.once(side, part)
            n -= part

    def _array(self, raw: Any, name: str, n: int) -> NDArray[Any]:
        try:
            array = np.asarray(raw)
            if array.dtype == object:
                array = np.asarray(array.tolist(), dtype=np.float64)
        except (ValueError, TypeError, OverflowError) as error:
            raise AuditFailed(
                f"the sampler's outputs on {name} are no array of numbers of one shape ({error}): every run must "
                "return an output of one shape"
            ) from error
        if array.ndim == 0 or array.shape[0] != n:
            raise AuditFailed(
                f"the sampler returned an array of shape {array.shape} on {name}: the first axis must be the n={n} "
                "runs that were asked for"
            )
        if math.prod(array.shape[1:]) == 0:
            raise AuditFailed(f"the sampler's outputs on {name} are empty: shape {array.shape}")
        if array.dtype.kind not in "biufcUS":
            raise AuditFailed(f"outputs on {name} of dtype {array.dtype}: numbers, booleans and texts can be audited")
        return array

    def _numbers(self, array: NDArray[Any]) -> FloatArray:
        match array.dtype.kind:
            case "c":
                return np.concatenate([array.real, array.imag], axis=1).astype(np.float64)
            case "U" | "S":
                texts, places = np.unique(array, return_inverse=True)
                codes = np.array([float(crc32(str(text).encode())) for text in texts])
                return np.asarray(codes[places.reshape(array.shape)])
            case "i" | "u" if self._wide:
                halves = [(array >> 32).astype(np.float64), (array & 0xFFFFFFFF).astype(np.float64)]
                return np.concatenate(halves, axis=1)
        return array.astype(np.float64)


def _gap(first: FloatArray, second: FloatArray) -> float:
    """The largest distance of two samples' distribution functions; NaN counts as the largest value."""
    one, two = np.sort(first), np.sort(second)
    both = np.concatenate([one, two])
    steps = [np.searchsorted(part, both, side="right") / part.size for part in (one, two)]
    return float(np.abs(steps[0] - steps[1]).max())
