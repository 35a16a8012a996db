"""The specimens of the federated framework: their exact losses by independent means."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from ledgerwood.verification.errata.federated import (
    ClippedSums,
    PartialQueries,
    ReplacedGradient,
    SizeInDelta,
    ZeroNoise,
)

# zero noise ----------------------------------------------------------------------------------------------------------


def test_zero_noise_the_child_is_exact_and_the_root_is_not():
    specimen = ZeroNoise()
    for rows, expected in zip(specimen.pair, ([0.5, 0.0], [0.5, -0.5]), strict=True):
        outputs = specimen.sampler(rows, 1000, np.random.default_rng(1))
        assert (outputs[:, 2:] == expected).all()
        assert np.std(outputs[:, :2], axis=0) == pytest.approx([18.7, 18.7], rel=0.1)
    assert specimen.delta(700.0) == 1.0


# partial queries -----------------------------------------------------------------------------------------------------


def partial_queries_count_queries(trees, depth, features):
    """Walks the trees: a root total each, and at every level the left sum of each feature, in which the row is."""
    queries = 0
    for _ in range(trees):
        queries += 1
        for _level in range(depth):
            for _feature in range(features):
                queries += 1
    return queries


@pytest.mark.parametrize(("trees", "depth", "features"), [(25, 4, 1), (25, 4, 14), (3, 2, 5)])
@pytest.mark.parametrize("at", [0.0, 1.0, 3.0])
def test_partial_queries_the_loss_is_that_of_all_queries(trees, depth, features, at, gaussian_delta):
    specimen = PartialQueries(trees=trees, depth=depth, features=features)
    queries = partial_queries_count_queries(trees, depth, features)
    assert specimen.queries() == queries
    # Each query is shifted by (1, 1), norm sqrt 2, under noise of 20 sqrt 2.
    assert specimen.delta(at) == pytest.approx(gaussian_delta(math.sqrt(queries) / 20.0, at), rel=1e-9)
    shown = trees if features == 1 else trees * depth * features
    assert specimen.claimed_delta(at) == pytest.approx(gaussian_delta(math.sqrt(shown) / 20.0, at), rel=1e-9)


def test_partial_queries_the_printed_sensitivity_of_logistic_pairs_covers_the_roots_of_large_plans_only():
    # sup u^2 + u^2 (1 - u)^2 is 1, the square of the printed sensitivity 17 / 16.
    u = np.linspace(0.0, 1.0, 100_001)
    assert (u**2 + (u * (1 - u)) ** 2).max() == 1.0
    for queries, covered in ((4, False), (15, False), (17, True), (56, True)):
        assert ((queries + 1) / queries <= 17 / 16) is covered


def test_partial_queries_separate_noise_is_dear():
    u = np.linspace(0.0, 1.0, 1_000_001)
    assert round(float((u**2 + 16 * (u * (1 - u)) ** 2).max()), 3) == 1.286
    assert round(float(mp.sqrt(17) / 4), 3) == 1.031


def test_partial_queries_the_log_ratio_is_that_of_the_two_densities():
    specimen = PartialQueries(trees=3)
    outputs = specimen.sampler(specimen.pair[0], 50, np.random.default_rng(8))
    p, q = (stats.norm.logpdf(outputs, mean, 20.0 * math.sqrt(2.0)).sum(axis=1) for mean in (1.0, 0.0))
    assert specimen.log_ratio(outputs) == pytest.approx(p - q, rel=1e-9, abs=1e-12)


# replaced gradient ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gradient", [0.6, 0.99])
@pytest.mark.parametrize("at", [0.0, 1.0, 3.0])
def test_replaced_gradient_the_loss_is_that_of_a_shift_by_two_gradients(gradient, at, gaussian_delta):
    specimen = ReplacedGradient(gradient=gradient)
    mu = 2 * gradient / (2.0 * math.sqrt(17) / 4)
    assert specimen.delta(at) == pytest.approx(gaussian_delta(mu, at), rel=1e-9)
    assert specimen.claimed_delta(at) == pytest.approx(gaussian_delta(0.5, at), rel=1e-9)


def test_replaced_gradient_small_gradients_keep_the_claim():
    assert ReplacedGradient(gradient=0.5).delta(1.0) < ReplacedGradient().claimed_delta(1.0)


# size in delta -------------------------------------------------------------------------------------------------------


def test_size_in_delta_the_noise_is_the_least_that_the_claim_needs(gaussian_delta):
    specimen = SizeInDelta()
    for rows, n in zip(specimen.pair, (11, 10), strict=True):
        mu = math.sqrt(specimen.trees) / specimen.scale(rows)
        assert gaussian_delta(mu, 1.0) == pytest.approx(1 / n, rel=1e-9)


@pytest.mark.slow_after(1)  # the exact loss of each specimen
@pytest.mark.parametrize(("trees", "leaves"), [(1, 1), (5, 3), (200, 15)])
@pytest.mark.parametrize("at", [0.0, 0.05, 1.0])
def test_size_in_delta_the_loss_by_quadrature_over_the_radius(trees, leaves, at, hockey_stick):
    specimen = SizeInDelta(trees=trees, leaves=leaves)
    scales = [mp.mpf(specimen.scale(rows)) for rows in specimen.pair]
    k = 2 * trees * leaves

    def log_density(scale):  # of the norm of k normals
        return lambda r: (
            (k - 1) * mp.log(r / scale)
            - (r / scale) ** 2 / 2
            - (mp.mpf(k) / 2 - 1) * mp.log(2)
            - mp.loggamma(mp.mpf(k) / 2)
            - mp.log(scale)
        )

    centre, spread = mp.sqrt(k), 12
    edges = sorted({max(min(scales) * (centre - spread), mp.mpf("1e-9")), max(scales) * (centre + spread)})
    laws = [log_density(scale) for scale in scales]
    found = max(hockey_stick(*laws, at, edges), hockey_stick(*laws[::-1], at, edges))
    assert specimen.delta(at) == pytest.approx(found, rel=1e-6, abs=1e-12)


# clipped sums --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0.0, 1.0, 100.0])
@pytest.mark.parametrize(("count", "stddev"), [(10, 20.0), (3, 1.5)])
def test_clipped_sums_the_loss_piece_by_piece(count, stddev, at):
    """Both laws on the pieces of the line on which they are densities, or atoms: inside, between the ends, at them."""

    def beyond(x):
        return mp.ncdf(-mp.mpf(x) / stddev)

    with_row = {
        "inside": 1 - 2 * beyond(count),
        "between": 2 * (beyond(count) - beyond(count + 1)),
        "larger end": 2 * beyond(count + 1),
    }
    without = {"inside": 1 - 2 * beyond(count), "smaller end": 2 * beyond(count)}
    losses = [
        mp.fsum(max(p.get(piece, mp.mpf(0)) - mp.exp(at) * q.get(piece, mp.mpf(0)), 0) for piece in p)
        for p, q in ((with_row, without), (without, with_row))
    ]
    assert ClippedSums(count=count, stddev=stddev).delta(at) == pytest.approx(float(max(losses)), rel=1e-12)


def test_clipped_sums_a_clipped_sum_is_the_number_of_rows():
    specimen, rng = ClippedSums(), np.random.default_rng(5)
    for rows in specimen.pair:
        outputs = specimen.sampler(rows, 20_000, rng)
        assert np.abs(outputs).max() == rows.size
        clipped = np.mean(np.abs(outputs) == rows.size)
        expected = 2 * float(mp.ncdf(-rows.size / specimen.stddev))
        assert abs(clipped - expected) < 5 * np.sqrt(expected * (1 - expected) / 20_000)
