"""Exact random choices with probabilities proportional to count * exp(-gap * rate), and exact coins exp(-gap * rate).

A word is compared with float64 sums that know their error; what they cannot decide, integers do.
Proof: docs/explanation/selection.md#exact-choice.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ledgerwood.mechanisms.deviates import exp_bounds
from ledgerwood.mechanisms.randomness import RandomSource

_WORD = 64
_LARGEST = 700.0  # nats; a smaller weight counts as unknown between 0 and e^-700
_WEIGHT_ERROR = 2.0**-40  # relative, of a float weight of at most 700 nats
_UNKNOWN = 2.0**40 * math.exp(-_LARGEST)  # the most that a weight beyond them can be

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
    sums = np.cumsum(_weights(gaps, rate) * counts)
    error = float(sums[-1]) * (_WEIGHT_ERROR + (gaps.size + 4) * 2.0**-50) + _UNKNOWN * gaps.size
    lowest, highest = sums - error, sums + error
    low = (word / 2.0**_WORD) * float(lowest[-1]) * (1.0 - 2.0**-50)
    high = ((word + 1) / 2.0**_WORD) * float(highest[-1]) * (1.0 + 2.0**-50)
    place = int(np.searchsorted(highest, low, side="right"))  # the first sum that may be above
    if place < gaps.size and high < lowest[place] and (place == 0 or highest[place - 1] <= low):
        return place
    return _choose_exactly(gaps, counts, rate, word, source)


def coin(gap: int, rate: Fraction, source: RandomSource) -> bool:
    """True with probability exp(-gap rate); gap >= 0 steps, rate a dyadic fraction."""
    if gap == 0:
        return True
    exponent = gap * rate
    shift = exponent.denominator.bit_length() - 1
    word, bits = int(source.uint64(1)[0]), _WORD
    while True:
        low, high = exp_bounds(exponent.numerator, shift, bits)
        if word + 1 <= low:
            return True
        if word >= high:
            return False
        word, bits = (word << _WORD) + int(source.uint64(1)[0]), bits + _WORD


def _weights(gaps: Gaps, rate: Fraction) -> NDArray[np.float64]:
    """exp(-gaps rate), and 0 beyond 700 nats."""
    with np.errstate(over="ignore"):
        nats = gaps.astype(np.float64) * float(rate)
    return np.where(nats <= _LARGEST, np.exp(-np.minimum(nats, _LARGEST)), 0.0)


def _choose_exactly(gaps: Gaps, counts: Integers, rate: Fraction, word: int, source: RandomSource) -> int:
    """The same in integers, from the same word and as many more as it takes."""
    shift = rate.denominator.bit_length() - 1
    values, inverse = np.unique(gaps, return_inverse=True)
    times = counts.tolist()
    bits = _WORD
    while True:
        word, bits = (word << _WORD) + int(source.uint64(1)[0]), bits + _WORD
        precision = bits + _WORD
        bounds = [exp_bounds(int(gap) * rate.numerator, shift, precision) for gap in values.tolist()]
        pairs = [bounds[i] for i in inverse.tolist()]
        low = list(itertools.accumulate(pair[0] * count for pair, count in zip(pairs, times, strict=True)))
        high = list(itertools.accumulate(pair[1] * count for pair, count in zip(pairs, times, strict=True)))
        # U in [word, word + 1) / 2**bits times the total lies in [least, most) / 2**bits.
        least, most = word * low[-1], (word + 1) * high[-1]
        for place in range(len(low)):
            if most <= low[place] << bits:
                if place == 0 or high[place - 1] << bits <= least:
                    return place
                break
