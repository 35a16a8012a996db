"""Stability histograms: the frequent keys of an unknown set, with noisy counts; rare keys are not released.

* With Laplace noise: docs/explanation/selection.md#stability-histogram.
* With Gaussian noise, for plans that compose in mu**2: docs/explanation/selection.md#gaussian-stability-histogram.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from scipy.special import ndtr, ndtri

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import ApproximateEvent, Composed, GaussianEvent
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.exact.deviates import exp_bounds, geometric_noise, standard_laplace
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.mechanisms.gaussian import GaussianMechanism
from ledgerwood.mechanisms.sensitivity import BoxShifts
from ledgerwood.recording.points import passes

LARGEST_SCALE = 1e12
_LARGEST_LOSS = 690.0  # nats: a delta of 1e-300
_PRECISION = 1200  # bits: 200 of them are left of such a delta


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityHistogramMechanism:
    """Each key that occurs, with its count plus discrete Laplace noise, if that sum is at least the threshold.

    Each row has one key. Source: Korolova, Kenthapadi, Mishra and Ntoulas 2009; Bun, Nissim and Stemmer 2016; delta is
    our own derivation: docs/explanation/selection.md#stability-histogram.

    Args:
        scale: b in [1e-2, 1e12], in rows: noise z has probability proportional to e^{-|z| / b}.
        threshold: a whole number >= 2, of rows; (threshold - 1) / scale at most 690.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    scale: float
    threshold: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _scale(self.scale))
        object.__setattr__(self, "threshold", _validate.count("threshold", self.threshold, "rows", minimum=2))
        if Fraction(self.threshold - 1) > Fraction(_LARGEST_LOSS) * Fraction(self.scale):
            raise _validate.fail("threshold", self.threshold, "at most 1 + 690 scale", "rows")

    @classmethod
    def for_delta(cls, scale: float, delta: float) -> "StabilityHistogramMechanism":
        """The least threshold whose event has at most this delta, in [1e-299, 1/2).

        Raises:
            InvalidParameter: a value outside its bound; with a scale below 1, whose thresholds are more than a nat
                apart, a delta that only a threshold beyond 1 + 690 scale has.
        """
        scale, target = _scale(scale), _validate.positive("delta", delta, "probability")
        if not 1e-299 <= target < 0.5:
            raise _validate.fail("delta", delta, "in [1e-299, 1/2)", "probability")
        least = math.floor(1.0 - scale * (math.log(target) + math.log1p(math.exp(-1.0 / scale))))
        threshold = max(2, least - 1 - int(abs(least) * 1e-12))
        while _lone_key_shows(scale, threshold) > target:
            threshold += 1
        most = 1 + math.floor(Fraction(_LARGEST_LOSS) * Fraction(scale))
        if threshold > most:
            least_delta = f"at least {_lone_key_shows(scale, most)!r} at scale={scale!r}"
            raise _validate.fail("delta", delta, least_delta, "probability")
        return cls(scale=scale, threshold=threshold)

    def event(self, adjacency: Adjacency) -> ApproximateEvent:
        """ApproximateEvent(1 / scale, Pr(1 + noise >= threshold)), rounded up; 2 / scale under replace-one."""
        keys = 2 if adjacency is Adjacency.REPLACE_ONE else 1
        return ApproximateEvent(
            epsilon=float_up(keys / Fraction(self.scale)),
            delta=_lone_key_shows(self.scale, self.threshold),
            adjacency=adjacency,
        )

    @passes("choice")
    def select(self, counts: Mapping[str, int], source: RandomSource) -> dict[str, int]:
        """The keys that show and their noisy counts, in the order of the keys.

        Args:
            counts: number of rows that have each key, exactly; in 0..2**62. 0 is as if the key were not there.
            source: random words.

        Raises:
            InvalidParameter: a count that is not a whole number in 0..2**62.
        """
        present = present_keys(counts)
        noise = geometric_noise(len(present), self.scale, standard_laplace(), source).tolist()
        noisy = {key: int(counts[key]) + z for key, z in zip(present, noise, strict=True)}
        return {key: count for key, count in noisy.items() if count >= self.threshold}


_MOST_ROWS = 1 << 62


def present_keys(counts: Mapping[str, int]) -> list[str]:
    """The keys that have rows, in their own order.

    Raises:
        InvalidParameter: not a mapping, or a count that is not a whole number in 0..2**62.
    """
    if not isinstance(counts, Mapping):
        raise _validate.fail("counts type", type(counts).__name__, "a mapping of keys to counts", "rows")
    present = []
    for key, count in counts.items():
        if _validate.count("count", count, "rows", minimum=0) >= _MOST_ROWS:
            raise _validate.fail("count", count, "below 2**62", "rows")
        if count:
            present.append(key)
    return sorted(present)


def _scale(value: object) -> float:
    scale = _validate.positive("scale", value, "rows")
    if not 1e-2 <= scale <= LARGEST_SCALE:
        raise _validate.fail("scale", value, "in [0.01, 1e12]", "rows")
    return scale


def _lone_key_shows(scale: float, threshold: int) -> float:
    """Pr(1 + z >= threshold) = e^{-(threshold - 1) / b} / (1 + e^{-1 / b}), rounded up; threshold >= 2."""
    rate = 1 / Fraction(scale)
    shift = _PRECISION + 16
    tail = exp_bounds(_floor_at(rate * (threshold - 1), shift), shift, _PRECISION)[1]
    ratio = exp_bounds(_floor_at(rate, shift) + 1, shift, _PRECISION)[0]
    # One float more than the nearest from above covers the chance e^{-9e6} that a noise does not fit into 64 bits.
    return math.nextafter(float_up(Fraction(tail, (1 << _PRECISION) + ratio)), 1.0)


def _floor_at(value: Fraction, shift: int) -> int:
    return (value.numerator << shift) // value.denominator


_ROWS = Grid(exponents=(0,))
_LEAST_DELTA = 1e-300  # an ApproximateEvent has a delta above 0
NO_LOSS = 1e-12  # nats: an ApproximateEvent has an epsilon above 0


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
        while _lone_key_shows_gaussian(stddev, threshold) > target:
            threshold += 1 + int(abs(least) * 1e-13)
        return cls(stddev=stddev, threshold=threshold)

    def event(self, adjacency: Adjacency) -> Composed:
        """A Gaussian of shift 1, sqrt(2) under replace-one, and delta = Pr(1 + noise >= threshold), rounded up."""
        shown = _lone_key_shows_gaussian(self.stddev, self.threshold)
        gaussian: GaussianEvent = self._noise.event(BoxShifts.of_counts(adjacency), adjacency)
        return Composed((gaussian, ApproximateEvent(epsilon=NO_LOSS, delta=shown, adjacency=adjacency)))

    @passes("choice")
    def select(self, counts: Mapping[str, int], source: RandomSource) -> dict[str, int]:
        """The keys that show and their noisy counts, in the order of the keys.

        Args:
            counts: number of rows that have each key, exactly; in 0..2**62. 0 is as if the key were not there.
            source: random words.

        Raises:
            InvalidParameter: not a mapping, or a count that is not a whole number in 0..2**62.
        """
        return keys_that_show(counts, self._noise, self.threshold, source)

    @property
    def _noise(self) -> GaussianMechanism:
        return GaussianMechanism(stddev=self.stddev)


def keys_that_show(
    counts: Mapping[str, int], noise: GaussianMechanism, threshold: int, source: RandomSource
) -> dict[str, int]:
    """See `GaussianStabilityMechanism.select`."""
    present = present_keys(counts)
    exact = np.array([counts[key] for key in present], dtype=np.int64).reshape(-1, 1)
    noisy = noise.randomise(exact, _ROWS, source)[:, 0].tolist()
    return {key: count for key, count in zip(present, noisy, strict=True) if count >= threshold}


def _stddev(value: object) -> float:
    stddev = _validate.positive("stddev", value, "rows")
    if not 1e-2 <= stddev <= 1e12:
        raise _validate.fail("stddev", value, "in [0.01, 1e12]", "rows")
    return stddev


def _lone_key_shows_gaussian(stddev: float, threshold: int) -> float:
    """Pr(1 + round(N) >= threshold) = Pr(N >= threshold - 3/2), rounded up.

    The tail's argument is off by an ulp or two, which its square multiplies: at most 1400 * 3e-16 above the floor.
    """
    return max(float(ndtr(-(threshold - 1.5) / stddev)) * (1.0 + 1e-11), _LEAST_DELTA)
