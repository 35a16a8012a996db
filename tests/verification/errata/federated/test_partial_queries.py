import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.federated.partial_queries import PartialQueries


def count_queries(trees, depth, features):
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
def test_the_loss_is_that_of_all_queries(trees, depth, features, at, gaussian_delta):
    specimen = PartialQueries(trees=trees, depth=depth, features=features)
    queries = count_queries(trees, depth, features)
    assert specimen.queries() == queries
    # Each query is shifted by (1, 1), norm sqrt 2, under noise of 20 sqrt 2.
    assert specimen.delta(at) == pytest.approx(gaussian_delta(math.sqrt(queries) / 20.0, at), rel=1e-9)
    shown = trees if features == 1 else trees * depth * features
    assert specimen.claimed_delta(at) == pytest.approx(gaussian_delta(math.sqrt(shown) / 20.0, at), rel=1e-9)


def test_the_printed_sensitivity_of_logistic_pairs_covers_the_roots_of_large_plans_only():
    # sup u^2 + u^2 (1 - u)^2 is 1, the square of the printed sensitivity 17 / 16.
    u = np.linspace(0.0, 1.0, 100_001)
    assert (u**2 + (u * (1 - u)) ** 2).max() == 1.0
    for queries, covered in ((4, False), (15, False), (17, True), (56, True)):
        assert ((queries + 1) / queries <= 17 / 16) is covered


def test_separate_noise_is_dear():
    u = np.linspace(0.0, 1.0, 1_000_001)
    assert round(float((u**2 + 16 * (u * (1 - u)) ** 2).max()), 3) == 1.286
    assert round(float(mp.sqrt(17) / 4), 3) == 1.031


@pytest.mark.parametrize("wrong", [{"noise_multiplier": 0.0}, {"trees": 0}, {"depth": 0}, {"features": 0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        PartialQueries(**wrong)


def test_the_log_ratio_is_that_of_the_two_densities():
    specimen = PartialQueries(trees=3)
    outputs = specimen.sampler(specimen.pair[0], 50, np.random.default_rng(8))
    p, q = (stats.norm.logpdf(outputs, mean, 20.0 * math.sqrt(2.0)).sum(axis=1) for mean in (1.0, 0.0))
    assert specimen.log_ratio(outputs) == pytest.approx(p - q, rel=1e-9, abs=1e-12)
