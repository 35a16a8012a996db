"""The benchmark of random allocations: its cases are what they say, and it finds a contradiction."""

import itertools

import numpy as np
import pytest

import ledgerwood as lw
from benchmarks import allocation, allocation_draws, allocation_trees
from benchmarks.allocation_draws import Check


def test_cases_hold_the_goals_extremes():
    assert max(case.steps for case in allocation.CASES) == 1_000_000
    assert max(case.epochs for case in allocation.CASES) == 1000
    assert max(case.selected for case in allocation.CASES) == 100
    case = allocation.Case(multiplier=2.0, steps=8, selected=2, epochs=3)
    assert case.plan().count == 3
    assert case.plan().event.selected == 2
    assert case.sampled().count == 24
    assert case.sampled().event.sampling_rate == 0.25


def test_an_interval_outside_the_other_is_a_contradiction():
    own = allocation.ours(allocation.Case(multiplier=2.0, steps=4))
    assert own["low"] <= lw.price(allocation.Case(multiplier=2.0, steps=4).plan()).epsilon(1e-5)
    near, above = {"low": own["low"], "high": own["high"] + 0.1}, {"low": own["high"] + 0.1, "high": own["high"] + 1.0}
    found = [{"ours": own, "peer": peer} for peer in (near, above, {"why": "no answer"}, None)]
    assert allocation.contradictions(found) == 1
    one_sided = {"low": None, "high": own["low"] - 0.01}
    assert allocation.contradictions([{"ours": own, "peer": one_sided}]) == 1


def test_the_ratio_is_the_mean_over_all_sets_of_steps():
    ratios = np.random.default_rng(3).exponential(size=(5, 6))
    for k in (1, 2, 4, 6):
        sets = [ratios[:, list(chosen)].prod(axis=1) for chosen in itertools.combinations(range(6), k)]
        assert allocation_draws.mean_of_products(ratios, k) == pytest.approx(np.mean(sets, axis=0), rel=1e-12)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_draws_agree_with_true_ends_and_refute_false_ones(noise):
    case = allocation.Case(multiplier=1.0, steps=4, selected=1, delta=0.02, noise=noise)
    check = Check(case=case, draws=100_000)
    found = allocation_draws.drawn(check)
    assert allocation_draws.contradictions([found]) == 0
    assert found["low"] * 0.9 < found["estimate"] < found["high"] * 1.1
    rng = np.random.default_rng(1)
    gains = -np.expm1(np.minimum(0.5 * found["low"] - allocation_draws.losses(check, inside=True, rng=rng), 0.0))
    too_low = {**found, "delta_at_high": list(allocation_draws.delta_bounds(gains, rng))}  # half of the epsilon
    assert allocation_draws.contradictions([too_low]) == 1


def test_the_bounds_on_delta_hold_the_truth():
    low, high = allocation_draws.delta_bounds(np.full(10_000, 0.03), np.random.default_rng(0))
    assert low < 0.03 < high
    assert allocation_draws.delta_bounds(np.zeros(1000), np.random.default_rng(0))[0] == 0.0


def test_every_study_of_trees_has_a_sample_that_an_allocation_allows():
    assert {study.system for study in allocation_trees.STUDIES} == set(allocation_trees.ESTIMATORS)
    assert all(0.0 < study.subsample < 1.0 for study in allocation_trees.STUDIES)
