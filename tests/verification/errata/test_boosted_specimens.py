"""DPBoost's and DP-XGBoost's specimens: the sampler draws what the loss is the loss of."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from ledgerwood.verification.errata import DPBOOST, DPXGBOOST
from ledgerwood.verification.errata.base import Deterministic

N = 200_000
RANDOM = [specimen for specimen in (*DPBOOST, *DPXGBOOST) if not isinstance(specimen, Deterministic)]
random = pytest.mark.parametrize("specimen", RANDOM, ids=lambda specimen: specimen.name)

# The output laws at the defaults, written down here a second time.
SIXTH = 1.0 / 6.0


def normalised(weights):
    return np.array(weights) / math.fsum(weights)


def lemma_1(s):
    """`alike` candidates of gain (n - 1)^2 / (n + 1 + lambda), the last with the row on a side of its own."""
    n, lam, k = s.count, s.regularization, s.alike
    change = n**2 / (n + lam) + 1 / (1 + lam) - (n - 1) ** 2 / (n + 1 + lam)
    rate = s.epsilon / (2 * (1 - lam**2 / ((lam + 1) * (lam + 2))))
    return normalised([*[1.0] * k, math.exp(rate * change)]), normalised([1.0] * (k + 1))


def replaced(s):
    weight = math.exp(s.epsilon * SIXTH * 4 * s.count / (s.count + 1.1))
    return normalised([weight, *[1.0] * s.alike]), normalised([1.0, *[weight] * s.alike])


def newton(s):
    n, g, h = s.count, 0.99, 0.0099
    alone = (n * g) ** 2 / (n * h + 0.1)
    more, less = (((n + sign) * g) ** 2 / ((n + 1) * h + 0.1) for sign in (1, -1))
    first = 1 / (1 + math.exp(s.epsilon * SIXTH * (less - more)))
    assert more > alone > less
    return np.array([first, 1 - first]), np.array([0.5, 0.5])


FIRST, SECOND = 9 / 3.1 + 4 / 2.1 - 1 / 5.1, 1 / 3.1 - 1 / 5.1
"""Gains less the node's: three rows of 1 against two of -1; one row that is left over of five."""

FINITE = {
    "dpboost-gain-sensitivity": lemma_1,
    "dpboost-positive-gain": lambda s: (
        normalised([math.exp(SIXTH * gain) for gain in (FIRST, FIRST, SECOND)]),
        np.array([0.5, 0.5, 0.0]),
    ),
    "dpxgboost-chosen-gain": lambda s: (
        np.append(0.0, normalised([math.exp(SIXTH * gain) for gain in (FIRST, SECOND)])),
        np.append(normalised([1.0, math.exp(SIXTH * 8 / 2.1)]), 0.0),
    ),
    "dpxgboost-replaced-gain": replaced,
    "dpxgboost-newton-gain": newton,
    "dpxgboost-exponential-scale": lambda s: (
        normalised([math.e**2, *[1.0] * s.others]),
        normalised([1.0] * (s.others + 1)),
    ),
}

# Centre with the row, centre without it, scale.
ONE_NUMBER = {
    "dpboost-geometric-index": lambda s: (1 / 1.1, 0.0, 2 * 0.9**50 / s.epsilon),
    "dpboost-hardwired-lambda": lambda s: (1.0, 0.0, 1 / 1.1 / s.epsilon),
    "dpxgboost-small-root": lambda s: (1 / 1.1, 0.0, 2 / 51.1 / s.epsilon),
    "dpxgboost-unfiltered-statistics": lambda s: (1.0, -50 / 100.1, 2 / 51.1 / s.epsilon),
    "dpxgboost-public-sample": lambda s: (1.0, 0.0, 1.0 / s.epsilon),
}
TWO_NUMBERS = ("dpboost-subset-sizes", "dpxgboost-round-trees")
# Differences of two outputs that carry the same noise; marginal centres; the scale of the noise.
SAME_NOISE = {
    "dpxgboost-sketch-noise": ((2.0, 1.0), ((2.0, 4.0), (1.0, 2.0)), 2.0),
    "dpxgboost-shared-seed": (
        (-1.5 / 2.1 - 0.5 / 1.1, -1.0 / 1.1),
        ((1.5 / 2.1, -0.5 / 1.1), (0.5 / 1.1, -0.5 / 1.1)),
        2 / 1.1,
    ),
}
# Less of a loss where the default's is too near 1 to be seen in samples.
MILD = {
    "dpboost-geometric-index": {"epsilon": 0.02},
    "dpxgboost-small-root": {"epsilon": 0.1},
    "dpxgboost-unfiltered-statistics": {"epsilon": 0.1},
}


def clipped(s, which):
    rows = s.count + 1.1 - which
    return stats.laplace(-(s.count - 1 + which) / rows, 2 / s.epsilon / rows)


def mixture(s, x, sign):
    rate = s.sample / s.count
    return np.log((1 - rate) * stats.laplace.pdf(x) + rate * stats.laplace.pdf(x, sign))


def log_densities(s, x):
    """(log p, log q) of outputs x."""
    match s.name:
        case name if name in FINITE:
            return tuple(np.log(np.maximum(law, 1e-300))[x.astype(int)] for law in FINITE[name](s))
        case name if name in ONE_NUMBER:
            *centres, scale = ONE_NUMBER[name](s)
            return tuple(stats.laplace.logpdf(x, centre, scale) for centre in centres)
        case name if name in TWO_NUMBERS:
            return tuple(stats.laplace.logpdf(x, centre, 1 / 1.1).sum(axis=1) for centre in (1 / 1.1, 0.0))
        case name if name in SAME_NOISE:
            gaps, _, _ = SAME_NOISE[name]
            return tuple(np.where(np.abs(x[:, 1] - x[:, 0] - gap) < 1e-6, 0.0, -1e9) for gap in gaps)
        case "dpboost-single-precision-noise":
            single = x == x.astype(np.float32)
            return np.where(single, -1e9, 0.0), np.where(single, 0.0, -1e9)
        case "dpxgboost-noisy-average":
            laws = clipped(s, 0), clipped(s, 1)
            return tuple(
                np.select([x <= -1, x >= 1], [law.logcdf(-1.0), law.logsf(1.0)], law.logpdf(x)) for law in laws
            )
        case "dpxgboost-replaced-sample":
            return mixture(s, x, 1.0), mixture(s, x, -1.0)
    raise KeyError(s.name)


def marginals(s, which, x):
    """(values, distribution function) of each coordinate; `which` is 0 with the row."""
    spread = np.random.default_rng(4).random(len(x))
    match s.name:
        case name if name in FINITE:
            law = FINITE[name](s)[which]
            return [(x + spread, lambda y: np.interp(y, np.arange(law.size + 1), np.append(0.0, law.cumsum())))]
        case name if name in ONE_NUMBER:
            *centres, scale = ONE_NUMBER[name](s)
            return [(x, stats.laplace(centres[which], scale).cdf)]
        case name if name in TWO_NUMBERS:
            law = stats.laplace((1 / 1.1, 0.0)[which], 1 / 1.1)
            larger = law.cdf(x).max(axis=1)  # of two independent uniforms
            return [*((x[:, k], law.cdf) for k in (0, 1)), (larger, lambda y: y**2)]
        case name if name in SAME_NOISE:
            _, centres, scale = SAME_NOISE[name]
            return [(x[:, k], stats.laplace(centres[which][k], scale).cdf) for k in (0, 1)]
        case "dpboost-single-precision-noise":
            return [(x, stats.laplace((1 / 1.1, 0.0)[which], 1 / 1.1).cdf)]
        case "dpxgboost-noisy-average":
            law = clipped(s, which)
            ranks = np.select([x <= -1, x >= 1], [spread * law.cdf(-1), 1 - spread * law.sf(1)], law.cdf(x))
            return [(ranks, lambda y: y)]
        case "dpxgboost-replaced-sample":
            rate = s.sample / s.count
            return [(x, lambda y: (1 - rate) * stats.laplace.cdf(y) + rate * stats.laplace.cdf(y, 1 - 2 * which))]
    raise KeyError(s.name)


@random
def test_samples_show_the_exact_loss(specimen):
    # Pr[S] - e^eps Pr'[S] on the best set of either direction, within four standard errors of delta.
    specimen = dataclasses.replace(specimen, **MILD.get(specimen.name, {}))
    rng, epsilon = np.random.default_rng(20), specimen.witness
    outputs = [specimen.sampler(dataset, N, rng) for dataset in specimen.pair]
    ratios = [np.subtract(*log_densities(specimen, x)) for x in outputs]
    found = []
    for sign, first, second in ((1, 0, 1), (-1, 1, 0)):
        p, q = (np.mean(sign * ratios[which] > epsilon) for which in (first, second))
        error = math.sqrt((p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)) / N)
        found.append((p - math.exp(epsilon) * q, error))
    value, error = max(found)
    assert specimen.delta(epsilon) > 8 * error
    assert abs(value - specimen.delta(epsilon)) <= 4 * error


@pytest.mark.parametrize("which", [0, 1])
@random
def test_samples_follow_the_stated_law(specimen, which):
    x = specimen.sampler(specimen.pair[which], 100_000, np.random.default_rng(22 + which))
    for values, cdf in marginals(specimen, which, x):
        assert stats.kstest(values, cdf).pvalue > 1e-4
