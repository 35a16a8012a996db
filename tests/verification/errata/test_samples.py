"""The sampler of every specimen with noise draws what its loss is the loss of.

The distributions of the outputs are written down here a second time, as (log p, log q) and as marginals.
"""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from ledgerwood.verification.errata import SPECIMENS
from ledgerwood.verification.errata.base import Deterministic
from ledgerwood.verification.errata.outputs import Finite

RANDOM = [specimen for specimen in SPECIMENS if not isinstance(specimen, Deterministic)]
random = pytest.mark.parametrize("specimen", RANDOM, ids=lambda specimen: specimen.name)

# ------------------------------------------------------------------------------------------------------------- S-GBDT


def normals(x, means, stddevs):
    return stats.norm.logpdf(x, means, stddevs).sum(axis=-1)


def mixed(rate, x, mu, stddev):
    """(1 - rate) N(0) + rate N(mu), in all coordinates at once."""
    return np.logaddexp(np.log1p(-rate) + normals(x, 0.0, stddev), np.log(rate) + normals(x, mu, stddev))


def cache_stddevs(s):
    return s.sigma * np.array([s.bound, s.hessian_bound]) / np.sqrt([2 * (1 - s.hessian_share), 2 * s.hessian_share])


def clock_log_mixture(s, x):
    place, value = x[:, 0].astype(int), x[:, 1]
    rate = stats.binom.sf(place - 1, s.count, s.sampling_rate)
    absent = stats.norm.pdf(value, 0.0, s.noise_multiplier)
    return np.log((1 - rate) * absent + rate * stats.norm.pdf(value, 1.0, s.noise_multiplier))


SGBDT_LOG_DENSITIES = {
    "sgbdt-initial-score-scale": lambda s, x: tuple(
        stats.laplace.logpdf(x, mean, s.bound / (s.count * s.epsilon)) for mean in (1.0, 1.0 - 2.0 / s.count)
    ),
    "sgbdt-initial-score-count": lambda s, x: tuple(
        stats.laplace.logpdf(x, mean, 2.0 / (rows * s.epsilon))
        for mean, rows in (((s.count - 1) / (s.count + 1), s.count + 1), (1.0, s.count))
    ),
    "sgbdt-renyi-conversion": lambda s, x: tuple(
        stats.norm.logpdf(x, count, math.sqrt(s.order / (2 * s.divergence))) for count in (1.0, 0.0)
    ),
    "sgbdt-leaf-noise-multiplier": lambda s, x: tuple(
        normals(
            x, means, [s.sigma / math.sqrt(2 * s.count_share), s.bound * s.sigma / math.sqrt(2 - 2 * s.count_share)]
        )
        for means in ([1.0, s.bound], [0.0, 0.0])
    ),
    "sgbdt-half-hessian-noise": lambda s, x: tuple(
        normals(
            x,
            means,
            [
                s.sigma * s.gradient_bound / math.sqrt(2 * (1 - s.hessian_share)),
                0.5 * s.sigma * s.hessian_bound / math.sqrt(2 * s.hessian_share),
            ],
        )
        for means in ([-s.gradient_bound, s.hessian_bound], [0.0, 0.0])
    ),
    "sgbdt-price-cache": lambda s, x: (
        mixed(s.sampling_rate, x[:, 1], [-s.bound, s.hessian_bound], cache_stddevs(s)),
        normals(x[:, 1], 0.0, cache_stddevs(s)),
    ),
    "sgbdt-approximate-prices": lambda s, x: tuple(
        normals(x, means, cache_stddevs(s)) for means in ([s.gradient, s.gradient * (1 - s.gradient)], [0.0, 0.0])
    ),
    "sgbdt-clock-seeded-sample": lambda s, x: (
        clock_log_mixture(s, x),
        stats.norm.logpdf(x[:, 1], 0.0, s.noise_multiplier),
    ),
    "sgbdt-custom-noise": lambda s, x: tuple(
        normals(x, count, math.sqrt(int(s.custom_scale)) / s.mu_booked) for count in (1, 0)
    ),
    "sgbdt-category-list": lambda s, x: (np.full(x.shape, -math.log(3.0)), np.where(x < 2.0, -math.log(2.0), -1e9)),
    "sgbdt-bucket-indices": lambda s, x: (
        np.zeros(x.shape),
        np.log(np.where(x < s.largest, 1.0, 2.0) / (2.0 - s.largest)),
    ),
}


def two_normals(rate, shift, stddev):
    return lambda x: (1 - rate) * stats.norm.cdf(x, 0.0, stddev) + rate * stats.norm.cdf(x, shift, stddev)


def sgbdt_marginals(s, which, x):
    """(values, distribution function) of each coordinate that has one of its own; `which` is 0 with the row."""
    match s.name:
        case "sgbdt-initial-score-scale":
            return [(x, stats.laplace((1.0, 1.0 - 2.0 / s.count)[which], s.bound / (s.count * s.epsilon)).cdf)]
        case "sgbdt-initial-score-count":
            rows = (s.count + 1, s.count)[which]
            mean = ((s.count - 1) / (s.count + 1), 1.0)[which]
            return [(x, stats.laplace(mean, 2.0 / (rows * s.epsilon)).cdf)]
        case "sgbdt-renyi-conversion":
            return [(x, stats.norm((1.0, 0.0)[which], math.sqrt(s.order / (2 * s.divergence))).cdf)]
        case "sgbdt-leaf-noise-multiplier":
            here = 1.0 - which
            return [
                (x[:, 0], stats.norm(here, s.sigma / math.sqrt(2 * s.count_share)).cdf),
                (x[:, 1], stats.norm(here * s.bound, s.bound * s.sigma / math.sqrt(2 - 2 * s.count_share)).cdf),
            ]
        case "sgbdt-half-hessian-noise":
            here, share = 1.0 - which, s.hessian_share
            gradient, hessian = (
                s.gradient_bound / math.sqrt(2 - 2 * share),
                0.5 * s.hessian_bound / math.sqrt(2 * share),
            )
            return [
                (x[:, 0], stats.norm(-here * s.gradient_bound, s.sigma * gradient).cdf),
                (x[:, 1], stats.norm(here * s.hessian_bound, s.sigma * hessian).cdf),
            ]
        case "sgbdt-approximate-prices":
            here, stddevs = 1.0 - which, cache_stddevs(s)
            shifts = (here * s.gradient, here * s.gradient * (1 - s.gradient))
            return [(x[:, k], stats.norm(shifts[k], stddevs[k]).cdf) for k in (0, 1)]
        case "sgbdt-price-cache":
            stddevs, first = cache_stddevs(s), s.first_gradient * (1 - s.first_gradient)
            shifts = ((s.bound, first), (-s.bound, s.hessian_bound))
            rates = (s.sampling_rate, s.sampling_rate * (1 - which))
            return [
                (x[:, leaf, k], two_normals(rates[leaf], shifts[leaf][k], stddevs[k]))
                for leaf in (0, 1)
                for k in (0, 1)
            ]
        case "sgbdt-clock-seeded-sample":
            spread = np.random.default_rng(4).random(len(x))  # makes the uniform places continuous
            rate = s.sampling_rate * (1 - which)
            return [(x[:, 0] - spread, lambda y: y / s.count), (x[:, 1], two_normals(rate, 1.0, s.noise_multiplier))]
        case "sgbdt-custom-noise":
            law = stats.norm(1.0 - which, math.sqrt(int(s.custom_scale)) / s.mu_booked)
            total = stats.norm(s.trees * (1.0 - which), math.sqrt(s.trees * int(s.custom_scale)) / s.mu_booked)
            return [(x[:, 0], law.cdf), (x[:, -1], law.cdf), (x.sum(axis=1), total.cdf)]
        case "sgbdt-category-list":
            codes = (3, 2)[which]
            return [(x + np.random.default_rng(4).random(len(x)), lambda y: y / codes)]
        case "sgbdt-bucket-indices":
            edge, weight = s.largest, 2.0 - s.largest
            return [(x, lambda y: np.where(y < edge, y, edge + 2 * (y - edge)) / weight if which else y)]
    raise KeyError(s.name)


# -------------------------------------------------------------------------------------------- DPBoost and DP-XGBoost

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


def clipped(s, which):
    rows = s.count + 1.1 - which
    return stats.laplace(-(s.count - 1 + which) / rows, 2 / s.epsilon / rows)


def mixture(s, x, sign):
    rate = s.sample / s.count
    return np.log((1 - rate) * stats.laplace.pdf(x) + rate * stats.laplace.pdf(x, sign))


def boosted_log_densities(s, x):
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


def boosted_marginals(s, which, x):
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


# ------------------------------------------------------------------------------- federated framework, PrivaTree, peers

# Where the output is not a number of the law at hand: (with the row, without it) of each coordinate.
CENSORED = 0.0


def chi_square(s, which):
    """The radius is a sufficient statistic of all numbers; its scale is the least that the claim needs."""
    return stats.chi2(2 * s.trees * s.leaves, scale=s.scale(s.pair[which]) ** 2)


def merged(s, which):
    """Weights below the target of 21 rows or of 20 show as 0."""
    return s.pair[which].size / s.max_bins


def residual(s, x, which):
    mean = 1.0 - x[:, 0] if which == 0 else 0.0
    return stats.norm.logpdf(x[:, 0], 1.0 - which, s.noise_multiplier) + stats.norm.logpdf(
        x[:, 1], mean, s.noise_multiplier
    )


def other_log_density(s, which, x):
    """The log density of outputs x, with the row (0) or without it (1); up to what both share."""
    if isinstance(s, Finite):
        return np.log(np.maximum(s.distribution(s.pair[which]), 1e-300))[x.astype(int)]
    match s.name:
        case "federated-zero-noise":
            return np.where(x[:, 3] == (0.0, -0.5)[which], 0.0, -1e9)
        case "federated-partial-queries":
            return stats.norm.logpdf(x, 1.0 - which, 20.0 * math.sqrt(2.0)).sum(axis=1)
        case "federated-replaced-gradient":
            return stats.norm.logpdf(x[:, 0], (0.99, -0.99)[which], 2.0 * math.sqrt(17.0) / 4.0)
        case "federated-size-in-delta":
            return chi_square(s, which).logpdf(x)
        case "federated-clipped-sums":
            end = float(s.pair[which].size)
            inside = np.where(np.abs(x) < end, stats.norm.logpdf(x, 0.0, s.stddev), -1e9)
            return np.where(np.abs(x) == end, stats.norm.logsf(end, 0.0, s.stddev), inside)
        case "privatree-geometric-ratio":
            return np.abs(x - 1 + which) * math.log(s.epsilon)
        case "peers-unclipped-residual":
            return residual(s, x, which)
        case "peers-target-weight":
            below = stats.norm.logcdf(merged(s, which), 0.0, s.stddev)
            shown = np.where(x >= merged(s, which), stats.norm.logpdf(x, 0.0, s.stddev), -1e9)
            return np.where(x == CENSORED, below, shown)
    raise KeyError(s.name)


def other_marginals(s, which, x):
    """(values, distribution function) of coordinates; discrete ones are spread over their steps."""
    spread = np.random.default_rng(4).random(len(x))
    if isinstance(s, Finite):
        steps = np.append(0.0, s.distribution(s.pair[which]).cumsum())
        return [(x + spread, lambda y: np.interp(y, np.arange(steps.size), steps))]
    match s.name:
        case "federated-zero-noise":
            sums = ((0.5, 0.0), (0.5, -0.5))[which]
            return [(x[:, k], stats.norm(sums[k], s.noise_multiplier).cdf) for k in (0, 1)]
        case "federated-partial-queries":
            noise, columns = 20.0 * math.sqrt(2.0), x.shape[1]
            assert columns == 2 * 25 * 5
            total = stats.norm(columns * (1.0 - which), noise * math.sqrt(columns))
            return [(x[:, 7], stats.norm(1.0 - which, noise).cdf), (x.sum(axis=1), total.cdf)]
        case "federated-replaced-gradient":
            noise = 2.0 * math.sqrt(17.0) / 4.0
            sums = ((0.99, -0.99)[which], 0.5 + 0.99 * 0.01)
            return [(x[:, k], stats.norm(sums[k], noise).cdf) for k in (0, 1)]
        case "federated-size-in-delta":
            return [(x, chi_square(s, which).cdf)]
        case "federated-clipped-sums":
            end, law = s.pair[which].size, stats.norm(0.0, s.stddev)
            above, below = spread * law.sf(end), law.sf(end) * spread
            ranks = np.where(x == end, 1.0 - above, np.where(x == -end, below, law.cdf(x)))
            return [(ranks, lambda y: y)]
        case "privatree-geometric-ratio":
            steps = np.arange(-40, 41)
            law = (1 - s.epsilon) / (1 + s.epsilon) * s.epsilon ** np.abs(steps - 1.0 + which)
            cumulated = np.append(0.0, law.cumsum())
            return [(x + spread, lambda y: np.interp(y, np.append(steps, 41), cumulated))]
        case "peers-unclipped-residual":
            second = stats.norm(0.0, s.noise_multiplier * (math.sqrt(2.0) if which == 0 else 1.0))
            return [(x[:, 0], stats.norm(1.0 - which, s.noise_multiplier).cdf), (x[:, 1], second.cdf)]
        case "peers-target-weight":
            law = stats.norm(0.0, s.stddev)
            ranks = np.where(x == CENSORED, spread * law.cdf(merged(s, which)), law.cdf(x))
            return [(ranks, lambda y: y)]
    raise KeyError(s.name)


# ------------------------------------------------------------------------------------------------------- all specimens

# Epsilons at which the loss stands out of the sampling error, where it does not do so at the witness.
VISIBLE = {
    "sgbdt-renyi-conversion": 0.05,
    "sgbdt-half-hessian-noise": 0.1,
    "sgbdt-price-cache": 0.01,
    "sgbdt-clock-seeded-sample": 0.2,
    "sgbdt-category-list": 0.3,
    "federated-partial-queries": 0.0,
    "federated-size-in-delta": 0.5,
    "peers-unclipped-residual": 0.5,
}
# Constants at which the loss can be seen in samples: it is too near 0 or 1 at the page's.
SEEN = {
    "dpboost-geometric-index": {"epsilon": 0.02},
    "dpxgboost-small-root": {"epsilon": 0.1},
    "dpxgboost-unfiltered-statistics": {"epsilon": 0.1},
    "peers-target-weight": {"count": 20, "max_bins": 1},
}
# Little noise, or a large share of it, so that a wrong sample shows.
QUIET = {
    "sgbdt-price-cache": {"sigma": 0.02},
    "sgbdt-clock-seeded-sample": {"noise_multiplier": 0.02, "count": 20},
    "peers-target-weight": {"count": 20, "max_bins": 1},
}


def number_of_outputs(s):
    """Of one side: fewer where an output is 250 numbers wide."""
    if s.name == "federated-partial-queries":
        return 10_000
    return 200_000 if s.name.startswith(("sgbdt", "dp")) else 50_000


def log_densities(s, x):
    """(log p, log q) of outputs x, up to what both share."""
    if s.name.startswith("sgbdt"):
        return SGBDT_LOG_DENSITIES[s.name](s, x)
    if s.name.startswith("dp"):
        return boosted_log_densities(s, x)
    return other_log_density(s, 0, x), other_log_density(s, 1, x)


def marginals(s, which, x):
    """(values, distribution function) of each coordinate that has one of its own; `which` is 0 with the row."""
    if s.name.startswith("sgbdt"):
        return sgbdt_marginals(s, which, x)
    return boosted_marginals(s, which, x) if s.name.startswith("dp") else other_marginals(s, which, x)


@pytest.mark.slow_after(4)  # each specimen is drawn often
@random
def test_samples_show_the_exact_loss(specimen):
    # Pr[S] - e^eps Pr'[S] on the best set of either direction, within four standard errors of delta.
    rng, epsilon = np.random.default_rng(20), VISIBLE.get(specimen.name, specimen.witness)
    n = number_of_outputs(specimen)
    specimen = dataclasses.replace(specimen, **SEEN.get(specimen.name, {}))
    outputs = [specimen.sampler(dataset, n, rng) for dataset in specimen.pair]
    ratios = [np.subtract(*log_densities(specimen, x)) for x in outputs]
    found = []
    for sign, first, second in ((1, 0, 1), (-1, 1, 0)):
        p, q = (np.mean(sign * ratios[which] > epsilon) for which in (first, second))
        error = math.sqrt((p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)) / n)
        found.append((p - math.exp(epsilon) * q, error))
    value, error = max(found)
    assert specimen.delta(epsilon) > (6 if n <= 50_000 else 8) * error
    assert abs(value - specimen.delta(epsilon)) <= 4 * error


@pytest.mark.slow_after(10)  # each specimen is drawn often
@pytest.mark.parametrize("which", [0, 1])
@random
def test_samples_follow_the_stated_distribution(specimen, which):
    specimen = dataclasses.replace(specimen, **QUIET.get(specimen.name, {}))
    n = number_of_outputs(specimen) // 2
    found = marginals(specimen, which, specimen.sampler(specimen.pair[which], n, np.random.default_rng(22 + which)))
    assert found
    for values, cdf in found:
        assert stats.kstest(values, cdf).pvalue > 1e-4
