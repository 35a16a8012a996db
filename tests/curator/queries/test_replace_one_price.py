"""A replaced row moves a clipped sum by twice its norm bound; a published accountant charged it once."""

import pytest

from ledgerwood import Adjacency, price
from ledgerwood.curator import LabelSum, LeafCurvatures
from ledgerwood.mechanisms import GaussianMechanism

DELTA = 1e-5


def test_a_sum_of_norm_bound_1_with_stddev_1_costs_what_half_the_noise_costs_under_add_remove():
    query = LabelSum()
    replaced = GaussianMechanism(stddev=1.0).event(query.sensitivity(Adjacency.REPLACE_ONE), Adjacency.REPLACE_ONE)
    removed = GaussianMechanism(stddev=0.5).event(query.sensitivity(Adjacency.ADD_REMOVE), Adjacency.ADD_REMOVE)
    assert replaced.noise_multiplier == removed.noise_multiplier == 0.5
    for method in ("profile", "renyi", "gdp"):
        assert price(replaced, method=method).epsilon(DELTA) == price(removed, method=method).epsilon(DELTA)
    assert price(replaced).epsilon(DELTA) == pytest.approx(9.997, abs=5e-4)


def test_the_same_holds_for_vectors():
    query = LeafCurvatures(clip=0.5, curvature_scale=0.3)
    events = {
        adjacency: GaussianMechanism(stddev=1.0).event(query.sensitivity(adjacency), adjacency)
        for adjacency in Adjacency
    }
    assert events[Adjacency.REPLACE_ONE].mu() == pytest.approx(2 * events[Adjacency.ADD_REMOVE].mu(), rel=1e-15)
    assert events[Adjacency.ZERO_OUT].mu() == events[Adjacency.ADD_REMOVE].mu()
