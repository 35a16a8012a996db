"""The stability histogram with Gaussian noise: the frequent keys of an unknown set, for plans that compose in mu**2.

Proof: docs/explanation/selection.md#gaussian-stability-histogram.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import ndtr, ndtri

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import ApproximateEvent, Composed, GaussianEvent
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.mechanisms.gaussian import GaussianMechanism
from ledgerwood.mechanisms.grid import Grid
from ledgerwood.mechanisms.sensitivity import BoxShifts
from ledgerwood.mechanisms.stability import present_keys
from ledgerwood.recording.points import passes

_ROWS = Grid(exponents=(0,))
_LEAST_DELTA = 1e-300  # an ApproximateEvent has a delta above 0
_NO_LOSS = 1e-12  # nats: an ApproximateEvent has an epsilon above 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianStabilityMechanism:
    """Each key that occurs, with its count plus rounded Gaussian noise, if that sum is at least the threshold.

    Each row has one key. docs/explanation/selection.md#gaussian-stability-histogram.

    Args:
        stddev: in [1e-2, 1e12], in rows.
        threshold: a whole number in 2..2**53, of rows.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    stddev: float
    threshold: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "stddev", _stddev(self.stddev))
        object.__setattr__(self, "threshold", _validate.count("threshold", self.threshold, "rows", minimum=2))
        if self.threshold > 2**53:
            raise _validate.fail("threshold", self.threshold, "at most 2**53", "rows")

    @classmethod
    def for_delta(cls, stddev: float, delta: float) -> "GaussianStabilityMechanism":
        """The least threshold whose event has at most this delta, in [1e-290, 1/2).

        Raises:
            InvalidParameter: a value outside its bound.
        """
        stddev, target = _stddev(stddev), _validate.positive("delta", delta, "probability")
        if not 1e-290 <= target < 0.5:
            raise _validate.fail("delta", delta, "in [1e-290, 1/2)", "probability")
        least = 1.5 - stddev * float(ndtri(target))
        threshold = max(2, math.floor(least * (1.0 - 1e-12)))
        while _lone_key_shows(stddev, threshold) > target:
            threshold += 1 + int(abs(least) * 1e-13)
        return cls(stddev=stddev, threshold=threshold)

    def event(self, adjacency: Adjacency) -> Composed:
        """A Gaussian of shift 1, sqrt(2) under replace-one, and delta = Pr(1 + noise >= threshold), rounded up."""
        shown = _lone_key_shows(self.stddev, self.threshold)
        gaussian: GaussianEvent = self._noise.event(BoxShifts.of_counts(adjacency), adjacency)
        return Composed((gaussian, ApproximateEvent(epsilon=_NO_LOSS, delta=shown, adjacency=adjacency)))

    @passes("choice")
    def select(self, counts: Mapping[str, int], source: RandomSource) -> dict[str, int]:
        """The keys that show and their noisy counts, in the order of the keys.

        Args:
            counts: how many rows have each key, exactly; in 0..2**62. 0 is as if the key were not there.
            source: random words.

        Raises:
            InvalidParameter: no mapping, or a count that is no whole number in 0..2**62.
        """
        present = present_keys(counts)
        exact = np.array([counts[key] for key in present], dtype=np.int64).reshape(-1, 1)
        noisy = self._noise.randomise(exact, _ROWS, source)[:, 0].tolist()
        return {key: count for key, count in zip(present, noisy, strict=True) if count >= self.threshold}

    @property
    def _noise(self) -> GaussianMechanism:
        return GaussianMechanism(stddev=self.stddev)


def _stddev(value: object) -> float:
    stddev = _validate.positive("stddev", value, "rows")
    if not 1e-2 <= stddev <= 1e12:
        raise _validate.fail("stddev", value, "in [0.01, 1e12]", "rows")
    return stddev


def _lone_key_shows(stddev: float, threshold: int) -> float:
    """Pr(1 + round(N) >= threshold) = Pr(N >= threshold - 3/2), rounded up.

    The tail's argument is off by an ulp or two, which its square multiplies: at most 1400 * 3e-16 above the floor.
    """
    return max(float(ndtr(-(threshold - 1.5) / stddev)) * (1.0 + 1e-11), _LEAST_DELTA)
