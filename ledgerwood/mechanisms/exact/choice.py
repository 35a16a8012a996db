"""Exact random choices with probabilities proportional to count * exp(-gap * rate), and exact coins exp(-gap * rate).

A word is compared with float64 sums that know their error; what they cannot decide, integers do.
Proof: docs/explanation/selection.md#exact-choice.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.mechanisms.exact.deviates import exp_bounds
from ledgerwood.mechanisms.exact.randomness import RandomSource

_WORD = 64
_LARGEST = 700.0  # nats; a smaller weight counts as unknown between 0 and e^-700
_WEIGHT_ERROR = 2.0**-40  # relative, of a float weight of at most 700 nats
_UNKNOWN = 2.0**40 * math.exp(-_LARGEST)  # the most that a weight beyond them can be
_BLOCK = 1 << 13  # candidates whose weights are in the fastest memory together
_DIGIT = 8  # bits

Integers = NDArray[np.int64]
Gaps = NDArray[np.uint64]


def gaps_below_top(utilities: Integers) -> Gaps:
    """max(u) - u_i exactly, shape (n,), for int64 utilities (n,), n >= 1."""
    gaps: Gaps = utilities.max().view(np.uint64) - utilities.view(np.uint64)  # modulo 2**64, where it fits
    return gaps


def choose(gaps: Gaps, counts: Integers, rate: Fraction, source: RandomSource) -> int:
    """The index i with probability proportional to counts_i exp(-gaps_i rate).

    Args:
        gaps: shape (n,), whole steps below the largest utility; n >= 1.
        counts: shape (n,), 1 <= counts_i < 2**40.
        rate: nats a step, a dyadic fraction in [2**-1000, 2**1000].
        source: random words.
    """
    word = int(source.uint64(1)[0])
    sums = np.cumsum([_weights(gaps[block], counts[block], rate).sum() for block in _blocks(gaps.size)])
    # Whatever the order of additions: a term of a block takes part in at most so many.
    additions = min(gaps.size, _BLOCK) + sums.size + 4
    error = float(sums[-1]) * (_WEIGHT_ERROR + additions * 2.0**-52) + _UNKNOWN * gaps.size
    low, high = scaled(word, float(sums[-1]), error)
    number = first_between(sums, error, low, high)
    if number is not None:
        start = number * _BLOCK
        block = slice(start, start + _BLOCK)
        before = float(sums[number - 1]) if number else 0.0
        within = before + np.cumsum(_weights(gaps[block], counts[block], rate))
        place = first_between(within, error, low, high)
        if place is not None:
            return start + place
    return _choose_exactly(gaps, counts, rate, word, source)


def heads(gaps: Gaps, rate: Fraction, source: RandomSource) -> NDArray[np.intp]:
    """The places of the coins that came up; coin i does with probability exp(-gaps_i rate), independently.

    A coin takes one word, and another one with a probability of some 2**-37 at most.

    Args:
        gaps: shape (n,), whole steps; n >= 1.
        rate: nats a step, a dyadic fraction in [2**-1000, 2**1000].
        source: random words.
    """
    return np.concatenate(
        [block.start + np.flatnonzero(coins(gaps[block], rate, source)) for block in _blocks(gaps.size)]
    )


def coins(gaps: Gaps, rate: Fraction, source: RandomSource) -> NDArray[np.bool_]:
    """Which coins come up, shape (n,); see `heads`. docs/explanation/selection.md#exact-coins."""
    words = source.uint64(gaps.size)
    low, high = _thresholds(exponentials(gaps, rate))
    tossed = words.astype(np.float64)
    sure = gaps == 0
    up: NDArray[np.bool_] = sure | (tossed <= low)
    for place in np.flatnonzero(~up & (tossed < high)).tolist():
        up[place] = _settled(int(gaps[place]), rate, int(words[place]), source)
    return up


def coin(gap: int, rate: Fraction, source: RandomSource) -> bool:
    """True with probability exp(-gap rate); gap >= 0 steps, rate a dyadic fraction."""
    if gap == 0:
        return True
    word = int(source.uint64(1)[0])
    low, high = _thresholds(math.exp(-min(gap * float(rate), 745.0)))
    return word <= low or (word < high and _settled(gap, rate, word, source))


T = TypeVar("T", float, NDArray[np.float64])


def _thresholds(near: T) -> tuple[T, T]:
    """The largest word that a coin surely comes up by, and the least by which it surely does not.

    With room for all errors of floats and for those of `_settled`, so that both decide alike by the same words. Below
    e^-700 a probability has less room than a word is wide.
    """
    wide = near * 2.0**_WORD
    return wide * (1.0 - 4.0 * _WEIGHT_ERROR) - 16.0, wide * (1.0 + 4.0 * _WEIGHT_ERROR) + 16.0


def _settled(gap: int, rate: Fraction, word: int, source: RandomSource) -> bool:
    """Returns whether a coin comes up whose uniform begins with this word, in integers."""
    bits, exponent = _WORD, gap * rate
    shift = exponent.denominator.bit_length() - 1
    while True:
        low, high = exp_bounds(exponent.numerator, shift, bits)
        if word + 1 <= low:
            return True
        if word >= high:
            return False
        word, bits = (word << _WORD) + int(source.uint64(1)[0]), bits + _WORD


def decide(lows: Sequence[int], highs: Sequence[int], word: int, bits: int) -> int | None:
    """The place in which U times the total lies for all U in [word, word + 1) / 2**bits and all weights in bounds.

    Args:
        lows, highs: bounds of the partial sums, the last one the total; rising.
        word, bits: the known bits of U.
    """
    least, most = word * lows[-1], (word + 1) * highs[-1]
    for place, low in enumerate(lows):
        if most <= low << bits:
            return place if place == 0 or highs[place - 1] << bits <= least else None
    return None


def scaled(word: int, total: float, error: float) -> tuple[float, float]:
    """Bounds of U times a total that is known up to `error`, for all U in [word, word + 1) / 2**64."""
    low = (word / 2.0**_WORD) * (total - error) * (1.0 - 2.0**-50)
    high = ((word + 1) / 2.0**_WORD) * (total + error) * (1.0 + 2.0**-50)
    return low, high


def first_between(sums: NDArray[np.float64], error: float, low: float, high: float) -> int | None:
    """The first sum that may be above `low`, if it is above `high` for sure; both up to `error`."""
    place = int(np.searchsorted(sums + error, low, side="right"))
    return place if place < sums.size and high < sums[place] - error else None


def _blocks(size: int) -> list[slice]:
    return [slice(start, start + _BLOCK) for start in range(0, size, _BLOCK)]


def exponentials(gaps: Gaps | Integers, rate: Fraction) -> NDArray[np.float64]:
    """exp(-gaps rate), of any shape: to a relative 2**-40, or within [0, e^-700] where it is below."""
    weights = gaps.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        weights *= -float(rate)
        np.exp(weights, out=weights)
    return weights


def _weights(gaps: Gaps, counts: Integers, rate: Fraction) -> NDArray[np.float64]:
    weights = exponentials(gaps, rate)
    weights *= counts
    return weights


def _choose_exactly(gaps: Gaps, counts: Integers, rate: Fraction, word: int, source: RandomSource) -> int:
    """The same in integers, from the same word and as many more as it takes."""
    bits = _WORD
    while True:
        word, bits = (word << _WORD) + int(source.uint64(1)[0]), bits + _WORD
        powers = Powers(rate, bits + _WORD)
        # Sums by block first: of millions of weights, only one block's are kept.
        lows, highs = [0], [0]
        for block in _blocks(gaps.size):
            bounds = powers.weights(gaps[block], counts[block])
            lows.append(lows[-1] + sum(low for low, _ in bounds))
            highs.append(highs[-1] + sum(high for _, high in bounds))
        number = decide(lows[1:], highs[1:], word, bits)
        if number is None:
            continue
        start = number * _BLOCK
        bounds = powers.weights(gaps[start : start + _BLOCK], counts[start : start + _BLOCK])
        within = [
            [*itertools.accumulate((pair[side] for pair in bounds), initial=ends[number])]
            for side, ends in enumerate((lows, highs))
        ]
        place = decide([*within[0], lows[-1]], [*within[1], highs[-1]], word, bits)
        if place is not None:
            return start + place - 1


@final
class Powers:
    """Integers around 2**precision exp(-gap rate): a product of one power for each digit of the gap."""

    def __init__(self, rate: Fraction, precision: int) -> None:
        self._rate, self._precision = rate, precision
        self._far = math.ceil(precision / rate)  # from here on a power is at most e^-precision
        self._known: dict[int, tuple[int, int]] = {}

    def weights(self, gaps: Gaps, counts: Integers) -> list[tuple[int, int]]:
        """Lower and upper bounds of each count times its power."""
        pairs = zip(gaps.tolist(), counts.tolist(), strict=True)
        return [(low * count, high * count) for gap, count in pairs for low, high in (self.bounds(gap),)]

    def bounds(self, gap: int) -> tuple[int, int]:
        """Lower and upper bounds of one power."""
        if gap >= self._far:
            return 0, 1
        low = high = 1 << self._precision
        for shift in range(0, _WORD, _DIGIT):
            part = gap & ((1 << _DIGIT) - 1) << shift
            if part:
                least, most = self._power(part)
                low, high = low * least >> self._precision, (high * most >> self._precision) + 1
        return low, high

    def _power(self, gap: int) -> tuple[int, int]:
        if gap not in self._known:
            shift = self._rate.denominator.bit_length() - 1
            self._known[gap] = exp_bounds(gap * self._rate.numerator, shift, self._precision)
        return self._known[gap]
