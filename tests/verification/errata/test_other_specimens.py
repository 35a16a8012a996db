"""The federated framework's, PrivaTree's and the peers' specimens: the sampler draws what the loss is the loss of."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from ledgerwood.verification.errata import FEDERATED, PEERS, PRIVATREE
from ledgerwood.verification.errata.base import Deterministic
from ledgerwood.verification.errata.outputs import Finite

N = 50_000
RANDOM = [specimen for specimen in (*FEDERATED, *PRIVATREE, *PEERS) if not isinstance(specimen, Deterministic)]
random = pytest.mark.parametrize("specimen", RANDOM, ids=lambda specimen: specimen.name)
# Where the loss stands out of the sampling error, and parameters at which it does.
VISIBLE = {"federated-partial-queries": 0.0, "federated-size-in-delta": 0.5, "peers-unclipped-residual": 0.5}
LOUD = {"peers-target-weight": {"count": 20, "max_bins": 1}}
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


def log_density(s, which, x):
    """Of outputs x, with the row (0) or without it (1); up to what both share."""
    if isinstance(s, Finite):
        return np.log(np.maximum(s.law(s.pair[which]), 1e-300))[x.astype(int)]
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


def marginals(s, which, x):
    """(values, distribution function) of coordinates; discrete ones are spread over their steps."""
    spread = np.random.default_rng(4).random(len(x))
    if isinstance(s, Finite):
        steps = np.append(0.0, s.law(s.pair[which]).cumsum())
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


@random
def test_samples_of_these_show_the_exact_loss(specimen):
    # Pr[S] - e^eps Pr'[S] on the best set of either direction, within four standard errors of delta.
    rng, epsilon = np.random.default_rng(20), VISIBLE.get(specimen.name, specimen.witness)
    specimen = dataclasses.replace(specimen, **LOUD.get(specimen.name, {}))
    n = N // 5 if specimen.name == "federated-partial-queries" else N
    found = []
    outputs = [specimen.sampler(dataset, n, rng) for dataset in specimen.pair]
    ratios = [log_density(specimen, 0, x) - log_density(specimen, 1, x) for x in outputs]
    for sign, first, second in ((1, 0, 1), (-1, 1, 0)):
        p, q = (np.mean(sign * ratios[which] > epsilon) for which in (first, second))
        error = math.sqrt((p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)) / n)
        found.append((p - math.exp(epsilon) * q, error))
    value, error = max(found)
    assert specimen.delta(epsilon) > 6 * error
    assert abs(value - specimen.delta(epsilon)) <= 4 * error


@pytest.mark.parametrize("which", [0, 1])
@random
def test_samples_of_these_follow_the_stated_law(specimen, which):
    specimen = dataclasses.replace(specimen, **LOUD.get(specimen.name, {}))
    x = specimen.sampler(specimen.pair[which], N // 5, np.random.default_rng(22 + which))
    found = marginals(specimen, which, x)
    assert found
    for values, cdf in found:
        assert stats.kstest(values, cdf).pvalue > 1e-4
