"""Exact losses of the mechanisms of `benchmarks.auditing_samplers`, by quadrature and enumeration, not by sampling.

Nothing of `ledgerwood` is used here: an audit is measured against these.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

FloatArray = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_PIECES = 64


def integral(function: Callable[[FloatArray], FloatArray], low: float, high: float, kinks: Sequence[float]) -> float:
    """Gauss and Legendre's rule on pieces of [low, high] that no kink is inside of."""
    inner = [kink for kink in kinks if low < kink < high]
    corners = np.unique([low, *inner, high])
    ends = np.unique(np.concatenate([np.linspace(a, b, _PIECES + 1) for a, b in itertools.pairwise(corners)]))
    half = 0.5 * np.diff(ends)[:, None]
    return float(np.sum(half * _WEIGHTS * function(half * (_NODES + 1.0) + ends[:-1, None])))


def log_ratio(p: FloatArray, q: FloatArray) -> float:
    """Epsilon at delta 0 of two laws on finitely many outputs: the largest |log(p / q)|, inf where one is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.abs(np.log(p) - np.log(q))
    return float(np.nanmax(ratios))


def hockey_stick(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """Delta of two laws on finitely many outputs, the larger direction."""
    factor = math.exp(epsilon)
    return max(float(np.maximum(p - factor * q, 0.0).sum()), float(np.maximum(q - factor * p, 0.0).sum()))


# --------------------------------------------------------------------------------------------------- one number


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Balle and Wang 2018, Theorem 8, in float64: fine for the deltas here, which are above 1e-12."""
    return float(stats.norm.cdf(0.5 * mu - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-0.5 * mu - epsilon / mu))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Epsilon at delta of N(0, 1) against N(mu, 1)."""
    return float(optimize.brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, 200.0, xtol=1e-13))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu that has delta at epsilon."""
    return float(optimize.brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, 1e-3, 50.0, xtol=1e-14))


def classical_stddev(epsilon: float, delta: float) -> float:
    """Dwork and Roth 2014, Theorem 3.22, which they prove for epsilon < 1 only."""
    return math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def sampled_gaussian_epsilon(stddev: float, rate: float, delta: float) -> float:
    """Epsilon at delta of N(0, s^2) against its mixture with N(1, s^2) at `rate`, the larger direction."""

    def gap(epsilon: float) -> float:
        factor = math.exp(epsilon)

        def without(x: FloatArray) -> FloatArray:
            return np.asarray(stats.norm.pdf(x, 0.0, stddev))

        def with_row(x: FloatArray) -> FloatArray:
            return np.asarray((1.0 - rate) * without(x) + rate * stats.norm.pdf(x, 1.0, stddev))

        # where the two laws' ratio is e^epsilon: kinks of the integrands
        kinks = [
            0.5 + stddev**2 * math.log((bound - 1.0 + rate) / rate)
            for bound in (factor, 1.0 / factor)
            if bound > 1.0 - rate
        ]
        ends = (-12.0 * stddev, 1.0 + 12.0 * stddev)
        removed = integral(lambda x: np.maximum(with_row(x) - factor * without(x), 0.0), *ends, kinks)
        added = integral(lambda x: np.maximum(without(x) - factor * with_row(x), 0.0), *ends, kinks)
        return max(removed, added) - delta

    return float(optimize.brentq(gap, 0.0, 20.0, xtol=1e-10))


def laplaces_epsilon(scale: float, count: int, delta: float) -> float:
    """Epsilon at delta of `count` Laplace draws, shift 1: losses on a lattice, rounded, added up by one FFT.

    The lattice has 2^12 scale steps a nat; an error of at most half a step a draw averages out to far less.
    """
    step = 2.0**-12 / scale
    top = round(1.0 / (scale * step))
    # loss L = (|x - 1| - |x|) / scale under the law at 0: at +-1 / scale atoms, between a density
    edges = (np.arange(-top, top + 2) - 0.5) * step
    below = 1.0 - _laplace_cdf(np.clip(0.5 * (1.0 - scale * edges), 0.0, 1.0), scale)  # P(L <= edge), x = (1 - bL)/2
    below[0], below[-1] = 0.0, 1.0
    law = np.diff(below)
    length = 2 * top * count + 1
    size = 1 << math.ceil(math.log2(length))
    total = np.clip(np.fft.irfft(np.fft.rfft(law, size) ** count, size)[:length], 0.0, None)
    losses = (np.arange(length) - top * count) * step

    def gap(epsilon: float) -> float:
        return float(np.sum(total * -np.expm1(np.minimum(epsilon - losses, 0.0)))) - delta

    return float(optimize.brentq(gap, 0.0, count / scale, xtol=1e-9))


def _laplace_cdf(x: FloatArray, scale: float) -> FloatArray:
    tail = 0.5 * np.exp(-np.abs(x) / scale)
    return np.where(x < 0.0, tail, 1.0 - tail)


def _laplace_pdf(x: FloatArray, scale: float) -> FloatArray:
    return np.asarray(np.exp(-np.abs(x) / scale) / (2.0 * scale))


def laplace_scales_delta(epsilon: float) -> float:
    """Delta of Laplace(1, scale 1) against Laplace(1/2, scale 1/2), the larger direction: D2 of AUDITING.md's list."""

    def one(x: FloatArray) -> FloatArray:
        return _laplace_pdf(x - 1.0, 1.0)

    def two(x: FloatArray) -> FloatArray:
        return _laplace_pdf(x - 0.5, 0.5)

    factor, kinks = math.exp(epsilon), [0.0, 0.5, 1.0]
    # equal densities: |x - 1| - 2 |x - 1/2| + log 2 = +-epsilon, straight between the centres
    for sign in (1.0, -1.0):
        c = math.log(2.0) + sign * epsilon
        kinks += [c, -c, 0.5 - 0.25 * c, 0.5 + 0.25 * c, (2.0 - c) / 3.0, (2.0 + c) / 3.0]
    first = integral(lambda x: np.maximum(one(x) - factor * two(x), 0.0), -45.0, 45.0, kinks)
    return max(first, integral(lambda x: np.maximum(two(x) - factor * one(x), 0.0), -45.0, 45.0, kinks))


def noisy_average_epsilon(pair: tuple[FloatArray, FloatArray]) -> float:
    """The largest |log ratio| of densities of (s + Laplace(2)) / max(n + Laplace(2), 1), on a grid of outputs.

    A supremum that lies beyond the grid is missed: what is returned is a lower bound on it, and at most 1.
    """

    def density(dataset: FloatArray, output: float) -> float:
        total, rows = float(dataset.sum()), float(dataset.size)
        inner = integral(
            lambda t: _laplace_pdf(t - rows, 2.0) * t * _laplace_pdf(output * t - total, 2.0),
            1.0, 90.0, [rows, total / output if output else 0.0],
        )  # fmt: skip
        floor = _laplace_cdf(np.array([1.0 - rows]), 2.0)[0] * _laplace_pdf(np.array([output - total]), 2.0)[0]
        return inner + float(floor)

    outputs = np.concatenate([-np.geomspace(1e-3, 60.0, 60), [0.0], np.geomspace(1e-3, 60.0, 60)])
    first, second = (np.array([density(part, float(output)) for output in outputs]) for part in pair)
    return log_ratio(first, second)


def clamped_geometric(count: int, most: int) -> FloatArray:
    """Law of a count with discrete Laplace noise of scale 1, clamped to [0, most]; shape (most + 1,)."""
    values = np.arange(most + 1)
    ratio = math.exp(-1.0)
    law = (1.0 - ratio) / (1.0 + ratio) * ratio ** np.abs(values - count)
    law[0] = ratio**count / (1.0 + ratio)
    law[-1] = ratio ** (most - count) / (1.0 + ratio)
    return np.asarray(law)


# ------------------------------------------------------------------------------------------- sparse vector technique


def _segment(below: FloatArray, above: FloatArray, threshold_scale: float, query_scale: float) -> float:
    """P(every answer of `below` is below the noisy threshold, every one of `above` is not)."""

    def under(z: FloatArray, answers: FloatArray) -> FloatArray:
        """Product over answers of P(answer + noise < z)."""
        if query_scale == 0.0:
            return np.prod([np.asarray(a < z, dtype=float) for a in answers] or [np.ones_like(z)], axis=0)
        return np.prod([_laplace_cdf(z - a, query_scale) for a in answers] or [np.ones_like(z)], axis=0)

    def over(z: FloatArray, answers: FloatArray) -> FloatArray:
        if query_scale == 0.0:
            return np.prod([np.asarray(a >= z, dtype=float) for a in answers] or [np.ones_like(z)], axis=0)
        return np.prod([_laplace_cdf(a - z, query_scale) for a in answers] or [np.ones_like(z)], axis=0)

    return integral(
        lambda z: _laplace_pdf(z, threshold_scale) * under(z, below) * over(z, above),
        -60.0 * threshold_scale, 60.0 * threshold_scale, [0.0, *map(float, below), *map(float, above)],
    )  # fmt: skip


def first_above(answers: FloatArray, threshold_scale: float, query_scale: float) -> FloatArray:
    """P(the first answer above is the i-th), and last P(none is); shape (queries + 1,)."""
    found = [
        _segment(answers[:i], answers[i : i + 1], threshold_scale, query_scale) for i in range(answers.size + 1)
    ]  # the last slice is empty: nothing has to be above
    return np.array(found)


def two_above(answers: FloatArray, threshold_scale: float, query_scale: float) -> FloatArray:
    """Cut-off 2, fresh thresholds: P(first and second above are i and j), P(one is), P(none is); any order."""
    starts = [first_above(answers[i:], threshold_scale, query_scale) for i in range(answers.size + 1)]
    found = [starts[0][-1]]
    for i in range(answers.size):
        found += [starts[0][i] * later for later in starts[i + 1]]
    return np.array(found)


def every_pattern(answers: FloatArray, threshold_scale: float, query_scale: float) -> FloatArray:
    """P of each pattern of answers above and below, without a cut-off; shape (2^queries,)."""
    choices = (np.arange(2**answers.size)[:, None] >> np.arange(answers.size)) & 1
    known: dict[tuple[tuple[float, ...], tuple[float, ...]], float] = {}
    found = []
    for row in choices.astype(bool):
        key = (tuple(sorted(answers[~row])), tuple(sorted(answers[row])))
        if key not in known:
            known[key] = _segment(answers[~row], answers[row], threshold_scale, query_scale)
        found.append(known[key])
    return np.array(found)


def released_answer_epsilon(pair: tuple[FloatArray, FloatArray]) -> float:
    """The largest |log ratio| of Algorithm 3's outputs: position of the first answer above, and its noisy value."""
    values = np.concatenate([-np.geomspace(1e-3, 120.0, 80), [0.0], np.geomspace(1e-3, 60.0, 40)])

    def densities(answers: FloatArray, position: int) -> FloatArray:
        def below(z: FloatArray) -> FloatArray:
            return _laplace_pdf(z, 2.0) * np.prod(
                [_laplace_cdf(z - a, 2.0) for a in answers[:position]] or [np.ones_like(z)], axis=0
            )

        kinks = [0.0, *map(float, answers)]
        reached = [integral(below, -260.0, float(value), kinks) for value in values]
        return np.asarray(np.array(reached) * _laplace_pdf(values - answers[position], 2.0))

    first, second = pair
    ratios = [log_ratio(densities(first, i), densities(second, i)) for i in range(first.size)]
    none = [_segment(answers, answers[:0], 2.0, 2.0) for answers in pair]
    return max(*ratios, abs(math.log(none[0] / none[1])))


# ------------------------------------------------------------------------------------------------------------ choices


def largest_index(answers: FloatArray, noise: str) -> FloatArray:
    """Law of the place of the largest answer with noise of scale 2; shape (K,)."""

    def density(x: FloatArray) -> FloatArray:
        return _laplace_pdf(x, 2.0) if noise == "laplace" else np.where(x < 0.0, 0.0, 0.5 * np.exp(-np.abs(x) / 2.0))

    def reached(x: FloatArray) -> FloatArray:
        return _laplace_cdf(x, 2.0) if noise == "laplace" else special.expm1(-np.maximum(x, 0.0) / 2.0) * -1.0

    found = []
    for i, answer in enumerate(answers):
        others = np.delete(answers, i)

        def law(x: FloatArray, answer: float = float(answer), others: FloatArray = others) -> FloatArray:
            return density(x - answer) * np.prod([reached(x - other) for other in others], axis=0)

        found.append(integral(law, -150.0, 150.0, list(map(float, answers))))
    return np.array(found)
