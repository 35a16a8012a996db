"""Gaussian or Skellam: one cost for any tree, units that follow from the noise, and refusals where more is asked."""

import dataclasses
import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.events import SkellamVectorEvent
from ledgerwood.curator import LeafCurvatures, LeafMoments
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import FederatedGBDTClassifier, FederatedGBDTRegressor
from ledgerwood.trainers.federated.presets import preset_plan
from ledgerwood.verification import verify_ledger

A, R = lw.Adjacency.ADD_REMOVE, lw.Adjacency.REPLACE_ONE
CURVATURES = LeafCurvatures(clip=1.0)
MOMENTS = LeafMoments(loss="squared", clip=0.25)
SCHEMA = lw.Schema.uniform(0.0, 1.0, target=lw.Categorical("y", (0, 1)))


def skellam_plan(leaf, multiplier):
    """A plan whose leaves are these, with Skellam noise."""
    loss = "logistic" if leaf is CURVATURES else "squared"
    scale = leaf.curvature_scale if leaf is CURVATURES else 1.0
    plan = preset_plan("tr_newton", loss, lw.Budget(epsilon=1.0, delta=1e-6, adjacency=A), None, (True, True))
    plan = dataclasses.replace(plan, initial_score="zero", clip=leaf.clip, curvature_scale=scale)
    return dataclasses.replace(plan, noise="skellam", noise_multiplier=multiplier)


@pytest.mark.parametrize("leaf", [CURVATURES, MOMENTS], ids=["curvatures", "moments"])
@pytest.mark.parametrize("multiplier", [0.5, 3.0, 60.0, 1400.0])
def test_a_stddev_has_many_units_and_costs_what_its_multiplier_says(leaf, multiplier):
    found = skellam_plan(leaf, multiplier)
    assert found.leaf == leaf
    query, mechanism = found.asked, found.leaf_mechanism
    assert 2.0**13 <= math.sqrt(mechanism.variance) <= 2.0**14
    for adjacency in (A, R):
        event = mechanism.event(query.sensitivity(adjacency), adjacency)
        assert isinstance(event, SkellamVectorEvent)
        ratio = math.sqrt(event.variance) / event.l2_sensitivity
        wide = query.leaf.sensitivity(adjacency).l2((1.0, 1.0)) / leaf.sensitivity(A).l2((1.0, 1.0))
        assert ratio == pytest.approx(multiplier / wide, rel=1e-12)
    # The column's noise, in the leaf query's units.
    assert found.leaf_stddevs[0] == pytest.approx(math.sqrt(mechanism.variance) * 2.0**-query.bits)


def fitted(delta=1e-6, epsilon=1.0, **more):
    generator = np.random.default_rng(0)
    X = generator.uniform(0, 1, (600, 2))
    y = (X[:, 0] + 0.02 * generator.normal(size=600) > 0.5).astype(int)
    model = FederatedGBDTClassifier(
        epsilon=epsilon, delta=delta, schema=SCHEMA, noise="skellam", n_estimators=20, expected_rows=600, **more
    )
    return model.fit(X, y), X, y


@pytest.mark.slow  # many fits and plans
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_fit_costs_what_its_plan_says_and_the_ledger_re_adds_it(adjacency):
    model, _, _ = fitted(adjacency=adjacency)
    paid = lw.price(model.plan_.event).epsilon(1e-6)
    assert 0.98 < paid <= 1.0 + 1e-12
    assert verify_ledger(model.ledger_).epsilon_readded <= 1.0 + 1e-9
    assert model.privacy_.epsilon == pytest.approx(paid, rel=1e-6)


@pytest.mark.slow  # many fits and plans
def test_with_little_noise_it_learns_as_with_a_gaussian():
    model, X, y = fitted(epsilon=200.0, random_state=0)
    assert np.mean(model.predict(X) == y) > 0.9


def test_more_than_sums_of_leaves_is_refused():
    for wrong in (
        {"split_method": "histogram"},
        {"split_method": "partially_random"},
        {"candidates": "iterative_hessian", "max_bins": 64},
        {"candidates": "quantiles", "max_bins": 64},
        {"recalibrate": True},
        {"preset": "tr_batched_ih_ebm"},
    ):
        with pytest.raises(InvalidParameter, match="noise='skellam' is for sums of leaves alone"):
            fitted(**wrong)
    with pytest.raises(InvalidParameter, match="^noise='laplace' must be one of 'gaussian', 'skellam'"):
        FederatedGBDTClassifier(schema=SCHEMA, noise="laplace").fit(np.ones((4, 2)), [0, 1, 0, 1])
    weighted = lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("y", 0, 1), weight_bound=2.0)
    with pytest.raises(InvalidParameter, match="rows without weights"):
        FederatedGBDTRegressor(schema=weighted, noise="skellam", initial_score="zero").fit(
            np.ones((4, 2)), np.ones(4), sample_weight=np.ones(4)
        )
