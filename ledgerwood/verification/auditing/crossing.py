"""The probability that order statistics stay within limits, and the local level of the exact Berk-Jones band.

docs/explanation/auditing.md#berk-jones has the recursion and its rounding.
"""

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft, interpolate, special, stats

from ledgerwood import _validate
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing.counts import GUARD
from ledgerwood.verification.auditing.result import level

IntArray = NDArray[np.int64]

_ALL = 5000
"""Up to this number of scores every rank has limits; above it, ranks are half a standard deviation apart."""
_STEP, _MOST_SCORES = 0.5, 1_000_000
"""The step in standard deviations; above this number of scores it grows, so that the number of ranks does not."""
_DIRECT, _SHORT = 60_000, 2_000
"""Products of a convolution, and entries of its kernel, up to which it is summed; beyond, it is a Fourier transform."""
_LOG_FACTORIALS = special.gammaln(np.arange(1.0, _SHORT + 1.0))
_TAIL = 12.0
"""Standard deviations of a Poisson step (and 40 counts) beyond which less than 1e-30 is left."""
_ROUNDING = 1e-9
"""The computed probability errs by less: up to 1e-11 was measured (docs, berk-jones)."""
_LEAST_ALPHA = 1e-5
"""Below it the union bound over ranks is used, which loses little there."""
_CLOSE, _EVALUATIONS = 2e-3, 12

_KNOWN_SCORES = (3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 5e3, 6e3, 3e4, 1e5, 1e6, 1e8)
_KNOWN_ALPHAS = (1e-5, 1e-3, 0.05, 0.5)
_KNOWN_SHARES = (
    (0.168, 0.170, 0.186, 0.240), (0.055, 0.0596, 0.0738, 0.116), (0.0240, 0.0278, 0.0381, 0.0673),
    (0.0120, 0.0148, 0.0219, 0.0422), (0.0074, 0.00966, 0.0149, 0.0302), (0.0050, 0.00674, 0.0107, 0.0224),
    (0.0034, 0.00469, 0.00758, 0.0163), (0.0042, 0.00555, 0.00854, 0.0176), (0.0031, 0.00420, 0.00654, 0.0137),
    (0.0026, 0.00351, 0.00551, 0.0116), (0.0020, 0.0027, 0.00415, 0.0088), (0.0014, 0.0019, 0.0029, 0.0062),
)  # fmt: skip
"""About which share of alpha each rank's tail has: where the search begins. Nothing rests on it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankLimits:
    """Limits of uniform order statistics, all of which hold with probability at least 1 - alpha.

    Args:
        runs: the number n of independent uniform variables.
        ranks: rising, shape (k,); the r-th smallest variable is limited.
        lower, upper: its limits, shape (k,) each.
        local: the probability of each tail that lies beyond a limit.
        outside: the probability that any of them is broken, as computed (for tiny alpha: its union bound).
    """

    runs: int
    ranks: IntArray
    lower: FloatArray
    upper: FloatArray
    local: float
    outside: float


def within_probability(runs: int, ranks: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """P(lower_i <= U_(r_i) <= upper_i for all i), U_(r) the r-th smallest of `runs` independent uniform variables.

    The number of variables below t is a Poisson process, given its end. Between two limits it is convolved with a
    Poisson distribution; at each limit what has left the window is dropped.

    Args:
        runs: the number of variables.
        ranks: rising, from 1 to `runs`, shape (k,).
        lower, upper: limits in [0, 1], not falling, shape (k,) each.

    Raises:
        InvalidParameter: ranks or limits that are out of order, or outside.

    Source: the idea of Moscovich and Nadler 2017; proof in docs/explanation/auditing.md#berk-jones.
    """
    n = _validate.count("runs", runs, "variables", minimum=1)
    places = np.asarray(ranks, np.int64).ravel()
    low, high = np.asarray(lower, np.float64).ravel(), np.asarray(upper, np.float64).ravel()
    if not places.size or places[0] < 1 or places[-1] > n or bool((np.diff(places) <= 0).any()):
        raise InvalidParameter(f"ranks must rise from 1 at least to runs={n} at most, one or more (unit: ranks)")
    for name, limits in (("lower", low), ("upper", high)):
        inside = bool(((limits >= 0.0) & (limits <= 1.0)).all())
        if limits.shape != places.shape or not inside or bool((np.diff(limits) < 0.0).any()):
            raise InvalidParameter(f"{name} must be one number in [0, 1] a rank, not falling (unit: probability)")
    return _within(n, places, low, high)


def _within(n: int, ranks: IntArray, lower: FloatArray, upper: FloatArray) -> float:
    times = np.sort(np.concatenate([lower, upper, [1.0]]))
    # At time t the count is below every rank whose lower limit is still to come, and has reached those that were due.
    most = np.append(ranks - 1, n)[np.searchsorted(lower, times, side="left")]
    least = np.insert(ranks, 0, 0)[np.searchsorted(upper, times, side="right")]
    most[-1] = least[-1] = n
    if bool((least > most).any()):
        return 0.0
    weights, start, now = np.ones(1), 0, 0.0
    roots: dict[int, NDArray[np.complex128]] = {}
    for time, first, last in zip(times.tolist(), least.tolist(), most.tolist(), strict=True):
        weights = _later(weights, n * (time - now), last - start + 1, roots)[first - start :]
        start, now = first, time
    return min(max(float(weights[0]) / _at_its_mean(n), 0.0), 1.0)


def _at_its_mean(n: int) -> float:
    """P(Poisson(n) = n): by the logarithm of the factorial, or by Stirling's series, which is the better one from 100
    on (its first term that is left out is below 1e-17 there).
    """
    if n < 100:
        return math.exp(n * math.log(n) - n - math.lgamma(n + 1.0))
    return math.exp(-(1.0 / (12.0 * n) - 1.0 / (360.0 * n**3) + 1.0 / (1260.0 * n**5))) / math.sqrt(2.0 * math.pi * n)


def _later(weights: FloatArray, mean: float, size: int, roots: dict[int, NDArray[np.complex128]]) -> FloatArray:
    """The first `size` entries of the convolution with a Poisson distribution; `roots` are kept between calls."""
    span = int(mean + _TAIL * math.sqrt(mean) + 40.0)
    kernel = min(span, size)
    if mean <= 0.0:
        found: FloatArray = weights
    elif weights.size * kernel <= _DIRECT and kernel <= _SHORT:
        counts = np.arange(kernel)
        found = np.convolve(weights, np.exp(counts * math.log(mean) - mean - _LOG_FACTORIALS[:kernel]))
    else:
        # Long enough that what wraps around has less than the tail beyond `span`.
        length = fft.next_fast_len(max(size, weights.size + span), real=True)
        if length not in roots:
            roots[length] = np.expm1(-2j * np.pi * np.arange(length // 2 + 1) / length)
        found = fft.irfft(fft.rfft(weights, length) * np.exp(mean * roots[length]), length)
    return found[:size] if found.size >= size else np.pad(found, (0, size - found.size))


def limited_ranks(runs: int) -> IntArray:
    """The ranks that have limits: all of up to 5,000 scores, else denser at both ends; fixed by the number alone."""
    n = _validate.count("runs", runs, "scores", minimum=1)
    if n <= _ALL:
        return np.arange(1, n + 1)
    step, half, rank = _STEP * math.sqrt(max(1.0, n / _MOST_SCORES)), [], 1
    while rank <= (n + 1) // 2:
        half.append(rank)
        rank += max(1, int(step * math.sqrt(rank * (n - rank) / n)))
    return np.unique(np.concatenate([half, [n + 1 - rank for rank in half]]))


@functools.lru_cache(maxsize=64)
def berk_jones_limits(runs: int, alpha: float) -> RankLimits:
    """Limits with one tail probability at every rank, the largest found with which all hold with 1 - alpha.

    Args:
        runs: the number of scores, up to 10^6 in a few seconds.
        alpha: the probability that any limit is broken, both sides together.

    Source: Berk and Jones 1979; Moscovich, Nadler and Spiegelman 2016; docs/explanation/auditing.md#berk-jones.
    """
    alpha, ranks = level(alpha), limited_ranks(runs)
    union = alpha / (2.0 * ranks.size)
    best = _limits(runs, ranks, union, alpha)
    if alpha < _LEAST_ALPHA or runs == 1:
        return best
    low, high, log_local = math.log(union), math.log(0.5 * alpha), math.log(alpha) + _share(runs, alpha)
    for _ in range(_EVALUATIONS):
        log_local = min(max(log_local, low), high)
        found = _limits(runs, ranks, math.exp(log_local), None)
        outside = found.outside + _ROUNDING
        if outside <= alpha:
            best, low = (found if found.local > best.local else best), log_local
            if outside >= alpha * (1.0 - _CLOSE) or high - low < _CLOSE:
                break
        else:
            high = log_local
        # Nearly proportional: aim a little below, so that the next one is kept.
        log_local += math.log(alpha * (1.0 - 0.4 * _CLOSE) / outside)
        if not low < log_local < high:
            log_local = 0.5 * (low + high)
    return best


def _limits(runs: int, ranks: IntArray, local: float, outside: float | None) -> RankLimits:
    lower = np.asarray(stats.beta.ppf(local, ranks, runs - ranks + 1)) * (1.0 - GUARD)
    upper = np.minimum(np.asarray(stats.beta.isf(local, ranks, runs - ranks + 1)) * (1.0 + GUARD), 1.0)
    # Rounding never brings limits out of order by more than GUARD has moved them.
    lower, upper = np.minimum.accumulate(lower[::-1])[::-1], np.maximum.accumulate(upper)
    lower.flags.writeable = upper.flags.writeable = False
    if outside is None:
        outside = 1.0 - _within(runs, ranks, lower, upper)
    return RankLimits(runs=runs, ranks=ranks, lower=lower, upper=upper, local=local, outside=outside)


def _share(runs: int, alpha: float) -> float:
    """log of the share of alpha that each tail has, about: interpolated between known ones."""
    known = interpolate.RegularGridInterpolator(
        (np.log(_KNOWN_SCORES), np.log(_KNOWN_ALPHAS)), np.log(_KNOWN_SHARES), bounds_error=False, fill_value=None
    )
    return float(known((math.log(runs), math.log(alpha))))
