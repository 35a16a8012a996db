"""The stability histogram: the frequent keys of an unknown set, with noisy counts; rare keys are not released.

Proof: docs/explanation/selection.md#stability-histogram.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import ApproximateEvent
from ledgerwood.mechanisms.exact.deviates import exp_bounds, standard_laplace
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.mechanisms.exact.rounding import geometric_noise
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
            InvalidParameter: a value outside its bound.
        """
        scale, target = _scale(scale), _validate.positive("delta", delta, "probability")
        if not 1e-299 <= target < 0.5:
            raise _validate.fail("delta", delta, "in [1e-299, 1/2)", "probability")
        least = math.floor(1.0 - scale * (math.log(target) + math.log1p(math.exp(-1.0 / scale))))
        threshold = max(2, least - 1 - int(abs(least) * 1e-12))
        while _lone_key_shows(scale, threshold) > target:
            threshold += 1
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
            counts: how many rows have each key, exactly; in 0..2**62. 0 is as if the key were not there.
            source: random words.

        Raises:
            InvalidParameter: a count that is no whole number in 0..2**62.
        """
        present = present_keys(counts)
        noise = geometric_noise(len(present), self.scale, standard_laplace(), source).tolist()
        noisy = {key: int(counts[key]) + z for key, z in zip(present, noise, strict=True)}
        return {key: count for key, count in noisy.items() if count >= self.threshold}


_MOST_ROWS = 1 << 62


def present_keys(counts: Mapping[str, int]) -> list[str]:
    """The keys that have rows, in their own order.

    Raises:
        InvalidParameter: no mapping, or a count that is no whole number in 0..2**62.
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
