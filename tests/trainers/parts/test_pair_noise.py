"""Gaussian or Skellam: one cost for any tree, units that follow from the noise, refusals by name of what is no sum."""

import dataclasses
import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.events import SkellamVectorEvent
from ledgerwood.accounting.events.shares import require_shared_noise
from ledgerwood.curator import LeafCurvatures, LeafMoments
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import FederatedGBDTClassifier, FederatedGBDTRegressor, SGBDTClassifier, SGBDTRegressor
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
        columns = (2.0 ** (query.bits - query.weight_bits), 1.0)
        wide = leaf.sensitivity(adjacency).l2(columns) / leaf.sensitivity(A).l2(columns)
        assert ratio == pytest.approx(multiplier / wide, rel=1e-12)
    # The columns' noise, in the leaf query's units.
    for stddev, bits in zip(found.leaf_stddevs, (query.weight_bits, query.bits), strict=True):
        assert stddev == pytest.approx(math.sqrt(mechanism.variance) * 2.0**-bits)
    ones = found.in_leaf_units(np.array([[2.0**query.weight_bits, 2.0**query.bits]]))
    np.testing.assert_array_equal(ones, [[1.0, 1.0]])


@pytest.mark.parametrize("clip", [0.05, 0.25, 1.0])
@pytest.mark.parametrize("count_share", [0.02, 0.2, 0.5])
def test_rows_take_about_their_share_of_the_sensitivity(clip, count_share):
    found = dataclasses.replace(skellam_plan(MOMENTS, 10.0), clip=clip, count_share=count_share)
    query = found.asked
    rows, gradients = 4.0**query.weight_bits, (clip * 2.0**query.bits) ** 2
    assert count_share / 2.5 < rows / (rows + gradients) < 2.5 * count_share
    # Noise of the gradients is what Gaussian noise of the same cost has, but for that power of two.
    plain = dataclasses.replace(found, noise="gaussian")
    assert found.leaf_stddevs[1] < 1.4 * plain.leaf_stddevs[1]
    assert found.leaf_stddevs[0] < 1.5 * plain.leaf_stddevs[0]


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


MORE = [
    (FederatedGBDTClassifier, {"split_method": "histogram", "n_estimators": 3}),
    (FederatedGBDTClassifier, {"split_method": "histogram", "features_per_tree": 1, "n_estimators": 3}),
    (FederatedGBDTClassifier, {"split_method": "partially_random", "n_estimators": 3}),
    (FederatedGBDTClassifier, {"candidates": "iterative_hessian", "max_bins": 64, "n_estimators": 3}),
    (FederatedGBDTClassifier, {"preset": "tr_batched_ih_ebm", "n_estimators": 4}),
    (FederatedGBDTClassifier, {"preset": "dp_rf", "n_estimators": 3}),
    (SGBDTClassifier, {"n_estimators": 3}),
    (SGBDTClassifier, {"leaf_statistic": "moments", "n_estimators": 3}),
]


@pytest.mark.parametrize(("kind", "options"), MORE, ids=lambda value: getattr(value, "__name__", str(value)))
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_every_draw_of_such_a_plan_has_noise_that_clients_can_share(kind, options, adjacency):
    model = kind(epsilon=1.0, delta=1e-6, schema=SCHEMA, noise="skellam", adjacency=adjacency, **options)
    plan = model.make_plan(SCHEMA.resolved(2))
    require_shared_noise(plan.event)
    assert 0.98 < lw.price(plan.event).epsilon(1e-6) <= 1.0 + 1e-12


@pytest.mark.slow_after(4)  # fits
@pytest.mark.parametrize(("kind", "options"), MORE, ids=lambda value: getattr(value, "__name__", str(value)))
def test_with_little_noise_the_splits_and_leaves_are_nearly_those_of_gaussian_noise(kind, options):
    """All units are undone: with noise of next to nothing both laws release the same sums, to a unit a row."""
    generator = np.random.default_rng(1)
    X = generator.uniform(0, 1, (300, 2))
    y = (X[:, 0] + 0.3 * X[:, 1] > 0.7).astype(int)
    # Noise of less than a thousandth of a row, which no release should have.
    common = {"epsilon": 1e8, "delta": 1e-6, "schema": SCHEMA, "random_state": 3, "reg_lambda": 1.0, **options}
    shared, plain = (kind(noise=noise, **common).fit(X, y) for noise in ("skellam", "gaussian"))
    assert shared.plan_.noise == "skellam"
    np.testing.assert_allclose(shared.decision_function(X), plain.decision_function(X), atol=0.02)


@pytest.mark.slow_after(2)  # fits
@pytest.mark.parametrize(("kind", "options"), MORE, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_ledger_verifies_a_fit_of_each_kind(kind, options):
    generator = np.random.default_rng(1)
    X, y = generator.uniform(0, 1, (60, 2)), generator.integers(0, 2, 60)
    model = kind(epsilon=1.0, delta=1e-6, schema=SCHEMA, noise="skellam", **options).fit(X, y)
    report = verify_ledger(model.ledger_)
    assert report.epsilon_readded <= 1.0 + 1e-9
    assert report.verdict == "confirmed"


REFUSED = [
    (FederatedGBDTClassifier, {"candidates": "quantiles", "max_bins": 64}, "candidates='quantiles'"),
    (SGBDTClassifier, {"subsample": 0.5}, "subsample=0.5"),
    (SGBDTClassifier, {"extra_trees": 2}, "filter='gdp'"),
    (SGBDTClassifier, {"leaf_noise": "static", "reg_lambda": 1.0}, "leaf_noise='static'"),
    (SGBDTClassifier, {"initial_score": "laplace"}, "initial_score='laplace'"),
]


@pytest.mark.parametrize(("kind", "wrong", "name"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_no_sum_with_shared_noise_is_refused_by_name(kind, wrong, name):
    with pytest.raises(InvalidParameter, match=f"noise='skellam' is for sums .*{name}"):
        kind(schema=SCHEMA, noise="skellam", **wrong).make_plan(SCHEMA.resolved(2))


@pytest.mark.parametrize("adjacency", [A, R])
def test_the_initial_score_of_numbers_has_noise_that_clients_can_share(adjacency):
    numbers = lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("y", 0, 1))
    for kind in (SGBDTRegressor, FederatedGBDTRegressor):
        plan = kind(epsilon=1.0, delta=1e-6, schema=numbers, noise="skellam", adjacency=adjacency.value).make_plan(
            numbers.resolved(2)
        )
        assert plan.initial_score == "moments"
        require_shared_noise(plan.event)
        assert 0.98 < lw.price(plan.event).epsilon(1e-6) <= 1.0 + 1e-12
        initial = plan.initial
        (event,) = initial.events
        (query,) = initial.queries
        # stddev over L2 sensitivity: of one row, by hand, or of one that is replaced and moves the sum by 2.
        rows, labels = query.units
        moved = math.hypot(rows, labels) if adjacency is A else 2.0 * labels
        assert event.l2_sensitivity == pytest.approx(moved, rel=1e-12)
        assert math.sqrt(event.variance) == pytest.approx(initial.multiplier * math.hypot(rows, labels), rel=1e-12)
        assert initial.count_stddev == pytest.approx(math.sqrt(event.variance) / rows, rel=1e-12)


@pytest.mark.slow_after(1)  # fits
@pytest.mark.parametrize("kind", [SGBDTRegressor, FederatedGBDTRegressor])
def test_with_little_noise_a_regressor_starts_at_the_mean_of_the_labels(kind):
    generator = np.random.default_rng(2)
    X, y = generator.uniform(0, 1, (200, 2)), generator.uniform(0.2, 0.5, 200)
    numbers = lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("y", 0, 1))
    model = kind(
        epsilon=1e8, delta=1e-6, schema=numbers, noise="skellam", random_state=0, n_estimators=1, max_depth=1,
        learning_rate=1e-9,
    ).fit(X, y)  # fmt: skip
    np.testing.assert_allclose(model.predict(X), y.mean(), atol=1e-3)


def test_weights_an_estimated_schema_and_other_words_are_refused():
    with pytest.raises(InvalidParameter, match="^noise='laplace' must be one of 'gaussian', 'skellam'"):
        FederatedGBDTClassifier(schema=SCHEMA, noise="laplace").fit(np.ones((4, 2)), [0, 1, 0, 1])
    weighted = lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("y", 0, 1), weight_bound=2.0)
    with pytest.raises(InvalidParameter, match="rows with weights"):
        FederatedGBDTRegressor(schema=weighted, noise="skellam", initial_score="zero").fit(
            np.ones((4, 2)), np.ones(4), sample_weight=np.ones(4)
        )
    with pytest.raises(InvalidParameter, match="a privately estimated schema"):
        SGBDTClassifier(noise="skellam").fit(np.ones((4, 2)), [0, 1, 0, 1])
