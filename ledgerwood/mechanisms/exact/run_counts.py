"""Exact draws of a selection's number of runs (truncated negative binomial, K >= 1), by lazy inversion.

No table: the distribution function is summed up to the drawn number, which costs less than that many runs.
Proof: docs/explanation/events.md#run-counts.
"""

from fractions import Fraction
from typing import final

from ledgerwood.mechanisms.exact.randomness import RandomSource

_WORD = 64
_GUARD = 128  # bits beyond the wanted ones: after k steps a weight is known to k units, a sum to k**2

Interval = tuple[int, int]


@final
class RunCounts:
    """P(K = k) proportional to (1 - gamma)^k Gamma(k + eta) / (Gamma(eta) k!), k >= 1.

    Args:
        shape: eta, in (-1, 100].
        stopping_rate: gamma, in [1e-9, 1).
    """

    __slots__ = ("_go_on", "_shape", "_stop")

    def __init__(self, shape: float, stopping_rate: float) -> None:
        self._shape = Fraction(shape)
        self._stop = Fraction(stopping_rate)
        self._go_on = 1 - self._stop

    def draw(self, source: RandomSource) -> int:
        """One number of runs."""
        word, bits = 0, 0
        while True:
            word, bits = (word << _WORD) + int(source.uint64(1)[0]), bits + _WORD
            count = self.decide(word, bits)
            if count is not None:
                return count

    def decide(self, word: int, bits: int) -> int | None:
        """The number that every real in [word, word + 1) / 2**bits stands for; None if more bits are needed."""
        precision = bits + _GUARD
        total = self.total(precision)
        least, most = word * total[0], (word + 1) * total[1]  # of 2**(bits + precision) U times all weights
        top = self._go_on.numerator * self._shape.denominator
        shift = (self._go_on.denominator * self._shape.denominator).bit_length() - 1  # both are powers of two
        step = self._go_on.numerator * self._shape.numerator
        low = high = 1 << precision  # the first weight
        sum_low = sum_high = 0
        k = 1
        while True:
            sum_low, sum_high = sum_low + low, sum_high + high
            if most <= sum_low << bits:
                return k  # it is not below the weights before: that has been seen a step earlier
            if least < sum_high << bits:
                return None
            # w(k + 1) = w(k) (1 - gamma) (k + eta) / (k + 1)
            factor = top * k + step
            k += 1
            low, high = (low * factor >> shift) // k, (high * factor >> shift) // k + 1

    def total(self, precision: int) -> Interval:
        """The sum of all weights, the first taken as 2**precision; enclosed.

        It is (y / eta) phi(z) with phi(z) = (e^z - 1) / z, z = eta log(1 / gamma), over 1 - gamma: sums of terms that
        are not negative, so that nothing cancels; phi(-y) = phi(y) / (1 + y phi(y)).
        """
        low, high = _log_inverse(self._stop, precision)
        size = abs(self._shape)
        y = low * size.numerator // size.denominator, high * size.numerator // size.denominator + 1
        phi = _exp_quotient(y, precision)
        low, high = low * phi[0] >> precision, (high * phi[1] >> precision) + 1
        if self._shape < 0:
            one = 1 << precision
            low = (low << precision) // (one + (y[1] * phi[1] >> precision) + 1)
            high = (high << precision) // (one + (y[0] * phi[0] >> precision)) + 1
        top, bottom = self._go_on.denominator, self._go_on.numerator
        return low * top // bottom, high * top // bottom + 1


def _log_inverse(value: Fraction, precision: int) -> Interval:
    """2**precision log(1 / value) for a dyadic value in (0, 1), enclosed."""
    bits = value.numerator.bit_length()  # value = f 2**-halvings, f in [1/2, 1)
    halvings = value.denominator.bit_length() - 1 - bits
    two = _twice_atanh(1, 3, precision)
    rest = _twice_atanh((1 << bits) - value.numerator, (1 << bits) + value.numerator, precision)
    return halvings * two[0] + rest[0], halvings * two[1] + rest[1]


def _twice_atanh(top: int, bottom: int, precision: int) -> Interval:
    """2**precision 2 atanh(top / bottom) for a quotient in [0, 1/3], enclosed: 2 (x + x**3 / 3 + ...)."""
    low, high = (top << precision) // bottom, (top << precision) // bottom + 1
    sum_low, sum_high, n = low, high, 1
    while high > 1:
        low, high = low * top**2 // bottom**2, high * top**2 // bottom**2 + 1
        n += 2
        sum_low, sum_high = sum_low + low // n, sum_high + high // n + 1
    return 2 * sum_low, 2 * (sum_high + 1)  # the terms left out are at most 1/9, 1/81, ... of one unit


def _exp_quotient(y: Interval, precision: int) -> Interval:
    """2**precision (e^y - 1) / y for y / 2**precision >= 0, enclosed: 1 + y / 2 + y**2 / 6 + ..."""
    low = high = sum_low = sum_high = 1 << precision
    n = 1
    while high > 1 or (n + 1) << precision < 4 * y[1]:
        n += 1
        low, high = (low * y[0] >> precision) // n, (high * y[1] >> precision) // n + 1
        sum_low, sum_high = sum_low + low, sum_high + high
    return sum_low, sum_high + 1  # each term left out is at most a quarter of the one before
