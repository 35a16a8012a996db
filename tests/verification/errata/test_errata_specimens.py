"""What every specimen is held to: the claim fails where it says, and the sampler draws what the loss is the loss of."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata import SGBDT, SPECIMENS, Row, Specimen
from ledgerwood.verification.errata.base import Deterministic

N = 200_000
every = pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda specimen: specimen.name)
DETERMINISTIC = [specimen for specimen in SPECIMENS if isinstance(specimen, Deterministic)]
RANDOM = [specimen for specimen in SGBDT if not isinstance(specimen, Deterministic)]
"""The others' laws are in test_boosted_specimens.py."""


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


# The two output laws, written down here a second time: name -> (log p, log q) of outputs x.
LOG_DENSITIES = {
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
        normals(x, count, math.sqrt(int(s.custom_scale)) / s.mu) for count in (1, 0)
    ),
    "sgbdt-category-list": lambda s, x: (np.full(x.shape, -math.log(3.0)), np.where(x < 2.0, -math.log(2.0), -1e9)),
    "sgbdt-bucket-indices": lambda s, x: (
        np.zeros(x.shape),
        np.log(np.where(x < s.largest, 1.0, 2.0) / (2.0 - s.largest)),
    ),
}


# Little noise, so that a wrong sample shows.
QUIET = {
    "sgbdt-price-cache": {"sigma": 0.02},
    "sgbdt-clock-seeded-sample": {"noise_multiplier": 0.02, "count": 20},
}
# Epsilons at which the loss stands out of the sampling error, where it does not do so at the witness.
VISIBLE = {
    "sgbdt-renyi-conversion": 0.05,
    "sgbdt-half-hessian-noise": 0.1,
    "sgbdt-price-cache": 0.01,
    "sgbdt-clock-seeded-sample": 0.2,
    "sgbdt-category-list": 0.3,
}


def test_names_are_unique_and_begin_with_the_paper():
    names = [specimen.name for specimen in SPECIMENS]
    assert len(set(names)) == len(names) >= 69
    assert {name.split("-")[0] for name in names} == {
        "sgbdt",
        "dpboost",
        "dpxgboost",
        "federated",
        "privatree",
        "peers",
    }
    assert all(type(s).__module__.split(".")[-2] == s.name.split("-")[0] == s.anchor.split("-")[1] for s in SPECIMENS)


@every
def test_a_specimen_is_a_frozen_final_value_and_no_trainer(specimen):
    assert isinstance(specimen, Specimen)
    assert type(specimen)() == specimen
    assert hash(specimen) == hash(type(specimen)())
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError, AttributeError)):
        specimen.name = "another"
    assert getattr(type(specimen), "__final__", False)
    assert not {"fit", "predict", "partial_fit"} & set(dir(specimen))


@every
def test_the_claim_fails_at_the_witness(specimen):
    assert specimen.delta(specimen.witness) > 1.1 * specimen.claimed_delta(specimen.witness)
    assert specimen.rows()[0] == Row(
        f"delta at epsilon {specimen.witness:.4g}",
        specimen.claimed_delta(specimen.witness),
        specimen.delta(specimen.witness),
    )
    assert all(row.exact > row.claimed for row in specimen.rows() if row.quantity != "noise multiplier")


@every
def test_the_claim_is_under_the_adjacency_of_the_pair(specimen):
    if isinstance(specimen.claim, (Event, Budget)):
        assert specimen.claim.adjacency is specimen.adjacency
    with_row, without = specimen.pair
    if specimen.adjacency is Adjacency.REPLACE_ONE:
        assert with_row.shape == without.shape
        assert np.count_nonzero(with_row != without) == 1
    else:
        rows = list(map(tuple, np.atleast_2d(with_row.T).T))
        for row in map(tuple, np.atleast_2d(without.T).T):
            rows.remove(row)
        assert len(rows) == 1


@every
def test_delta_is_a_falling_convex_profile_of_e_to_the_epsilon(specimen):
    epsilons = np.linspace(0.0, 3.0, 13)
    deltas = np.array([specimen.delta(epsilon) for epsilon in epsilons])
    assert (deltas >= 0.0).all()
    assert (deltas <= 1.0).all()
    assert (np.diff(deltas) <= 1e-15).all()
    slopes = np.diff(deltas) / np.diff(np.exp(epsilons))
    assert (np.diff(slopes) >= -1e-12).all()


class Coin(Deterministic):
    """A specimen whose claim is given."""

    def __init__(self, claim):
        self._claim = claim

    claim = property(lambda self: self._claim)
    pair = property(lambda self: (np.ones(1), np.ones(0)))

    def output(self, dataset):
        return (float(dataset.size),)


def test_each_kind_of_claim_is_a_curve():
    adjacency = Adjacency.ADD_REMOVE
    budget = Coin(Budget(epsilon=1.0, delta=0.25, adjacency=adjacency))
    implied = 1.0 - 0.75 * (1.0 + math.exp(0.5)) / (1.0 + math.exp(1.0))
    assert [budget.claimed_delta(epsilon) for epsilon in (0.5, 1.0, 2.0)] == [pytest.approx(implied), 0.25, 0.25]
    event = Coin(LaplaceEvent(noise_multiplier=1.0, adjacency=adjacency))
    assert event.claimed_delta(0.5) == pytest.approx(1 - math.exp(-0.25), rel=1e-12)
    assert Coin(lambda epsilon: 0.1 * math.exp(-epsilon)).claimed_delta(2.0) == 0.1 * math.exp(-2.0)
    assert budget.rows() == (Row("delta at epsilon 100", 0.25, 1.0),)


@every
@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf, 701.0, "1"])
def test_an_epsilon_out_of_range_is_refused(specimen, wrong):
    for curve in (specimen.delta, specimen.claimed_delta):
        with pytest.raises(InvalidParameter, match=r"epsilon=.*nats"):
            curve(wrong)


@every
def test_the_whole_range_has_a_number(specimen):
    for epsilon in (0.0, 100.0, 700.0):
        assert 0.0 <= specimen.delta(epsilon) <= 1.0
        assert 0.0 <= specimen.claimed_delta(epsilon) <= 1.0


@every
def test_the_sampler_gives_n_outputs_and_takes_its_randomness_from_rng(specimen):
    for dataset in specimen.pair:
        first, again, other = (specimen.sampler(dataset, 50, np.random.default_rng(seed)) for seed in (1, 1, 2))
        assert first.shape == again.shape == other.shape
        assert first.shape[0] == 50
        assert np.isfinite(first).all()
        np.testing.assert_array_equal(first, again)
        assert isinstance(specimen, Deterministic) or not np.array_equal(first, other)


@pytest.mark.slow_after(7)  # each specimen is drawn often
@pytest.mark.parametrize("specimen", RANDOM, ids=lambda specimen: specimen.name)
def test_samples_show_the_exact_loss(specimen):
    # Pr[S] - e^eps Pr'[S] on the best set of either direction, within four standard errors of delta.
    rng, epsilon = np.random.default_rng(20), VISIBLE.get(specimen.name, specimen.witness)
    outputs = [specimen.sampler(dataset, N, rng) for dataset in specimen.pair]
    ratios = [np.subtract(*LOG_DENSITIES[specimen.name](specimen, x)) for x in outputs]
    found = []
    for sign, first, second in ((1, 0, 1), (-1, 1, 0)):
        p, q = (np.mean(sign * ratios[which] > epsilon) for which in (first, second))
        error = math.sqrt((p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)) / N)
        found.append((p - math.exp(epsilon) * q, error))
    value, error = max(found)
    assert specimen.delta(epsilon) > 8 * error
    assert abs(value - specimen.delta(epsilon)) <= 4 * error


def two_normals(rate, shift, stddev):
    return lambda x: (1 - rate) * stats.norm.cdf(x, 0.0, stddev) + rate * stats.norm.cdf(x, shift, stddev)


def marginals(s, which, x):
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
            law = stats.norm(1.0 - which, math.sqrt(int(s.custom_scale)) / s.mu)
            total = stats.norm(s.trees * (1.0 - which), math.sqrt(s.trees * int(s.custom_scale)) / s.mu)
            return [(x[:, 0], law.cdf), (x[:, -1], law.cdf), (x.sum(axis=1), total.cdf)]
        case "sgbdt-category-list":
            codes = (3, 2)[which]
            return [(x + np.random.default_rng(4).random(len(x)), lambda y: y / codes)]
        case "sgbdt-bucket-indices":
            edge, weight = s.largest, 2.0 - s.largest
            return [(x, lambda y: np.where(y < edge, y, edge + 2 * (y - edge)) / weight if which else y)]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("specimen", RANDOM, ids=lambda specimen: specimen.name)
def test_samples_follow_the_stated_law(specimen, which):
    if specimen.name in QUIET:
        specimen = dataclasses.replace(specimen, **QUIET[specimen.name])
    x = specimen.sampler(specimen.pair[which], 100_000, np.random.default_rng(22 + which))
    found = marginals(specimen, which, x)
    assert found
    for values, cdf in found:
        assert stats.kstest(values, cdf).pvalue > 1e-4


@pytest.mark.parametrize("specimen", DETERMINISTIC, ids=lambda specimen: specimen.name)
def test_a_deterministic_specimen_is_one_point_on_each_side(specimen):
    points = [np.unique(specimen.sampler(d, 20, np.random.default_rng(3)), axis=0) for d in specimen.pair]
    assert points[0].shape == points[1].shape == (1, points[0].shape[1])
    assert not np.array_equal(*points)
    assert [specimen.delta(epsilon) for epsilon in (0.0, 1.0, 700.0)] == [1.0, 1.0, 1.0]


def test_every_random_specimen_has_its_laws_here():
    assert {specimen.name for specimen in RANDOM} == set(LOG_DENSITIES)
