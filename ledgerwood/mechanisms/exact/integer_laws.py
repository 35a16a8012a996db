"""Bounds on cumulative distribution functions on the integers, at any precision, by recurrences with directed steps.

Proof: docs/explanation/exact-noise.md#integer-laws.
"""

import itertools
import math
from fractions import Fraction

from ledgerwood.mechanisms.exact.deviates import exp_bounds
from ledgerwood.mechanisms.exact.inversion import Enclosure

_GUARD = 64  # bits beyond the wanted ones: the recurrences lose two bits for each doubling of the window
_TWO_LOG_TWO = math.log(2.0) * 2.0

Interval = tuple[int, int]


def discrete_gaussian(scale: float, bits: int) -> Enclosure:
    """The distribution of probability proportional to exp(-z**2 / (2 scale**2)); scale > 0."""
    precision = bits + _GUARD
    reach = math.ceil(scale * math.sqrt(_TWO_LOG_TWO * (bits + 8))) + 1
    rate = 1 / (2 * Fraction(scale) ** 2)
    step, bend = _exp_down(rate, precision), _exp_down(2 * rate, precision)
    weight = (1 << precision, 1 << precision)
    weights: list[Interval] = []
    for _ in range(reach + 1):
        weights.append(weight)
        weight, step = _product(weight, step, precision), _product(step, bend, precision)
    return _symmetric(weights, (weight[0], _geometric(weight[1], step[1], precision)), bits)


def poisson(mean: float, bits: int) -> Enclosure:
    """The Poisson distribution; mean > 0. Its weights are relative to the most likely value's."""
    precision = bits + _GUARD
    exact = Fraction(mean)
    top, bottom = exact.numerator, exact.denominator
    mode = math.floor(exact)
    up, down = [(1 << precision, 1 << precision)], []
    least = 1 << (_GUARD - 8)
    k = mode
    while up[-1][1] > least:
        k += 1
        up.append((up[-1][0] * top // (bottom * k), up[-1][1] * top // (bottom * k) + 1))
    ratio = Fraction(top, bottom * (k + 1))
    above = math.ceil(up[-1][1] * ratio / (1 - ratio))
    low, high = up[0]
    k = mode
    while k > 0 and high > least:
        low, high = low * k * bottom // top, high * k * bottom // top + 1
        k -= 1
        down.append((low, high))
    ratio = Fraction(k * bottom, top)
    below = math.ceil(high * ratio / (1 - ratio)) if k > 0 else 0
    weights = down[::-1] + up
    total_low = sum(weight for weight, _ in weights)
    total_high = sum(weight for _, weight in weights) + below + above
    sums_low = itertools.accumulate((weight for weight, _ in weights), initial=0)
    sums_high = itertools.accumulate((weight for _, weight in weights), initial=below)
    starts = [_share_up(part, total_low, bits) for part in sums_high]
    ends = [(part << bits) // total_high for part in sums_low]
    return Enclosure(first=k, starts=starts[:-1], ends=ends[1:])


def _symmetric(weights: list[Interval], beyond: Interval, bits: int) -> Enclosure:
    """The distribution of even weights, given from 0 on; `beyond` encloses the sum of all further ones of a side."""
    tails = [beyond]  # sums of the weights from place j on, from the last place inward
    for low, high in reversed(weights[1:]):
        tails.append((tails[-1][0] + low, tails[-1][1] + high))
    total = (weights[0][0] + 2 * tails[-1][0], weights[0][1] + 2 * tails[-1][1])
    floors = [(tail << bits) // total[1] for tail, _ in tails]  # of F(-reach - 1), F(-reach), ..., F(-1)
    ceilings = [_share_up(tail, total[0], bits) for _, tail in tails]
    whole = 1 << bits
    starts = ceilings + [whole - tail for tail in reversed(floors)]
    ends = floors[1:] + [whole - tail for tail in reversed(ceilings)]
    return Enclosure(first=1 - len(weights), starts=starts[:-1], ends=ends)


def _exp_down(exponent: Fraction, precision: int) -> Interval:
    """2**precision exp(-exponent), enclosed; exponent > 0."""
    shift = precision + 16
    least = (exponent.numerator << shift) // exponent.denominator
    return exp_bounds(least + 1, shift, precision)[0], exp_bounds(least, shift, precision)[1]


def _product(a: Interval, b: Interval, precision: int) -> Interval:
    return a[0] * b[0] >> precision, (a[1] * b[1] >> precision) + 1


def _geometric(first: int, ratio: int, precision: int) -> int:
    """first + first r + first r**2 + ..., r at most ratio / 2**precision < 1; rounded up."""
    return -((-first << precision) // ((1 << precision) - ratio))


def _share_up(part: int, whole: int, bits: int) -> int:
    return -((-part << bits) // whole)
