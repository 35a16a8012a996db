"""The recommended trees: one plan and one price, whatever the structures; a public rule; models that explain it."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

import ledgerwood as lw
from ledgerwood.accounting.events import Composed, EllipticalGaussianEvent, GaussianEvent, Repeated
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import CalibrationFailed, InvalidParameter, LedgerCorrupted
from ledgerwood.federation import federate
from ledgerwood.trainers import PrivateBoostingClassifier, PrivateBoostingRegressor
from ledgerwood.trainers.boosting.candidates import EVEN_BINS, histogram_bins, most_sums
from ledgerwood.trainers.boosting.plan import PrivateBoostingPlan
from ledgerwood.trainers.boosting.rule import DEPTHS, TREES, evidence, rule, ruled_depth, ruled_trees
from ledgerwood.trainers.parts.splits import random_tree
from ledgerwood.verification import verify_ledger

A = lw.Adjacency.ADD_REMOVE
BUDGET = lw.Budget(epsilon=1.0, delta=1e-6, adjacency=A)
FEATURES = (
    lw.Numeric("a", 0.0, 1.0),
    lw.Categorical("b", ("u", "v", "w"), missing=True),
    lw.Numeric("c", -1.0, 1.0, missing=True),
)
TARGETS = {
    "number": lw.Numeric("y", 0.0, 1.0),
    "two": lw.Categorical("y", (0, 1)),
    "three": lw.Categorical("y", (0, 1, 2)),
}
SMALL = {"n_estimators": 5, "max_depth": 2}


def rows(kind, n=60):
    generator = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "a": generator.uniform(0, 1, n),
            "b": generator.choice(["u", "v", "w"], n),
            "c": generator.uniform(-1, 1, n),
        }
    )
    frame.loc[::7, "c"] = np.nan
    y = frame["a"].to_numpy() if kind == "number" else generator.integers(0, 3 if kind == "three" else 2, n)
    return frame, y


def estimator(kind, **options):
    made = PrivateBoostingRegressor if kind == "number" else PrivateBoostingClassifier
    schema = lw.Schema(features=FEATURES, target=TARGETS[kind])
    return made(**{"epsilon": 1.0, "delta": 1e-6, "schema": schema, "expected_rows": 60, **SMALL, **options})


def mu_squared(event):
    match event:
        case Composed():
            return math.fsum(map(mu_squared, event.events))
        case Repeated():
            return event.count * mu_squared(event.event)
        case GaussianEvent():
            return event.noise_multiplier**-2
        case EllipticalGaussianEvent():
            return math.fsum((d / s) ** 2 for d, s in zip(event.sensitivities, event.stddevs, strict=True))
    raise AssertionError(event)


@pytest.mark.slow_after(4)  # a search for noise, a fit and a verification each
@pytest.mark.parametrize(
    "options", [{}, {"candidates": "even"}, {"feature_choice": "cycle"}, {"noise": "skellam"}], ids=str
)
@pytest.mark.parametrize("adjacency", list(lw.Adjacency))
@pytest.mark.parametrize("kind", TARGETS)
def test_the_price_of_the_plan_is_what_the_ledger_granted_and_all_of_it_is_drawn(kind, adjacency, options, tmp_path):
    model = estimator(kind, adjacency=adjacency, **options).fit(*rows(kind))
    quote = lw.price(model.plan_.event).epsilon(1e-6)
    assert model.privacy_.epsilon == quote <= 1.0
    assert quote == pytest.approx(1.0, rel=1e-3)
    drawn = [entry.event for entry in model.ledger_.entries if type(entry).__name__ == "DrawEntry"]
    assert len(drawn) == sum(count for _, count in model.plan_.event.draws())
    # Each tree, of whatever features, thresholds, scores and classes, is the same event.
    assert drawn[-5:] == [model.plan_.tree_event] * 5
    model.save(tmp_path / "model")
    assert verify_ledger(tmp_path / "model" / "ledger.jsonl").verdict == "confirmed"
    again = type(model).load(tmp_path / "model")
    X, _ = rows(kind)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.plan_ == model.plan_
    assert again.plan_.explain() == model.plan_.explain()


@pytest.mark.parametrize("kind", ["number", "two"])
def test_shares_of_the_budget_are_as_stated(kind):
    plan = estimator(kind, candidate_share=0.2, expected_rows=100_000).make_plan(
        lw.Schema(features=FEATURES, target=TARGETS[kind])
    )
    whole = mu_squared(plan.event)
    assert mu_squared(plan.candidate_event) / whole == pytest.approx(0.2, rel=1e-6)
    assert mu_squared(plan.tree_event) * 5 / whole == pytest.approx(0.8 - 0.03 * (kind == "number"), rel=1e-6)


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(0, 3), st.sampled_from([0, 3]))
def test_no_structure_changes_what_a_tree_costs(seed, k, depth, classes):
    """Sensitivity and event are the same for every tree that may be chosen: house rule 7's condition of adaptivity."""
    generator = np.random.default_rng(seed)
    schema = lw.Schema(features=FEATURES, target=TARGETS["two"])
    ruled = PrivateBoostingPlan.ruled(
        "logistic", BUDGET, 1000, n_features=3, numeric_features=(0, 2), shared_classes=classes
    )
    plan = dataclasses.replace(ruled, max_depth=depth)
    cuts = [
        sorted(set(generator.integers(1, 4096, 9).tolist())),
        [],
        sorted(set(generator.integers(1, 4096, 3).tolist())),
    ]
    features = tuple(sorted(generator.choice(3, size=min(k, 3), replace=False).tolist()))
    tree = random_tree(
        schema.cells(4096), depth=depth, features=features, numeric_weight=1.0, generator=generator, cuts=cuts
    )
    scores = generator.normal(size=max(classes, 1)).tolist()
    ensemble = Ensemble.of_classes(tuple(scores)) if classes else Ensemble(initial_score=scores[0])
    query = plan.asked.of(tree, ensemble)
    assert query.sensitivity(A) == plan.asked.sensitivity(A)
    assert plan.leaf_mechanism.event(query.sensitivity(A), A) == plan.tree_event


@pytest.mark.slow_after(2)  # sessions of three owners
@pytest.mark.parametrize("noise", ["server", "clients"])
@pytest.mark.parametrize("kind", TARGETS)
def test_a_federation_gives_the_model_of_one_table(kind, noise):
    X, y = rows(kind)
    options = {"random_state": 4, "noise": "skellam" if noise == "clients" else "gaussian"}
    parts = [(X.iloc[start : start + 20], y[start : start + 20]) for start in (0, 20, 40)]
    found = federate(estimator(kind, **options), parts, noise=noise, engine="process")
    if noise == "server":
        alone = estimator(kind, **options).fit(X, y)
        assert np.array_equal(found.predict(X), alone.predict(X))
    assert found.privacy_.epsilon == lw.price(found.plan_.event).epsilon(1e-6) or math.isinf(found.privacy_.epsilon)


def test_rows_without_a_schema_are_learned_from_what_is_bought():
    X, y = rows("number", 400)
    model = PrivateBoostingRegressor(epsilon=50.0, delta=1e-4, expected_rows=400, random_state=1, **SMALL).fit(X, y)
    assert model.plan_.purchase is not None
    assert model.plan_.buys_candidates
    assert np.isfinite(model.predict(X)).all()


def test_all_classes_share_trees_whose_first_leaf_tells_their_shares():
    generator = np.random.default_rng(7)
    x = generator.uniform(0, 1, (6000, 3))
    y = np.digitize(x[:, 0], [0.1, 0.4, 0.95])  # shares of .1, .3, .55 and .05
    schema = lw.Schema.uniform(0.0, 1.0, n_features=3, target=lw.Categorical("y", (0, 1, 2, 3)))
    common = {"epsilon": 4.0, "delta": 1e-6, "schema": schema, "expected_rows": 6000, "random_state": 2}
    model = PrivateBoostingClassifier(**common, n_estimators=64).fit(x, y)
    assert (model.plan_.shared_classes, model.ensemble_.n_classes, len(model.ensemble_.trees)) == (4, 4, 63)
    alone = PrivateBoostingClassifier(**common, n_estimators=1, max_depth=0).fit(x, y)
    np.testing.assert_allclose(softmax(alone.decision_function(x[:1])[0]), np.bincount(y) / 6000, atol=0.02)
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1.0)
    assert model.score(x, y) > 0.9
    assert len([*model.plan_.schedule()]) == 64  # for four classes as for two


def test_probabilities_of_several_classes_are_their_shares_where_no_feature_tells_them():
    generator = np.random.default_rng(8)
    x, y = generator.uniform(0, 1, (8000, 2)), generator.choice(3, 8000, p=[0.7, 0.2, 0.1])
    schema = lw.Schema.uniform(0.0, 1.0, n_features=2, target=TARGETS["three"])
    model = PrivateBoostingClassifier(
        epsilon=8.0, delta=1e-6, schema=schema, expected_rows=8000, random_state=3, n_estimators=128, max_depth=2
    ).fit(x, y)
    np.testing.assert_allclose(model.predict_proba(x).mean(axis=0), np.bincount(y) / 8000, atol=0.03)


def test_estimated_classes_have_a_forest_each():
    X, y = rows("three", 400)
    model = PrivateBoostingClassifier(
        epsilon=50.0, delta=1e-4, expected_rows=400, random_state=1, n_estimators=32, max_depth=2
    ).fit(X, y)
    assert model.plan_.shared_classes == 0
    assert model.predict_proba(X).shape == (400, len(model.classes_))
    assert len(model.ensemble_.trees) == 32


@pytest.mark.slow  # two forests of 60 columns
def test_trees_find_the_two_columns_of_sixty_that_matter():
    generator = np.random.default_rng(5)
    X = generator.uniform(0, 1, (4000, 60))
    y = np.clip((X[:, 3] > 0.6) * 0.5 + 0.5 * X[:, 17], 0, 1)
    schema = lw.Schema.uniform(0.0, 1.0, n_features=60, target=lw.Numeric("y", 0.0, 1.0))
    common = {"epsilon": 1.0, "delta": 1e-6, "schema": schema, "expected_rows": 4000, "random_state": 1}
    found = PrivateBoostingRegressor(**common).fit(X, y)
    blind = PrivateBoostingRegressor(**common, feature_choice="cycle").fit(X, y)
    test = generator.uniform(0, 1, (2000, 60))
    truth = np.clip((test[:, 3] > 0.6) * 0.5 + 0.5 * test[:, 17], 0, 1)
    assert found.score(test, truth) > blind.score(test, truth) + 0.1
    assert set(np.argsort(-found.feature_importances_)[:2].tolist()) == {3, 17}


@pytest.mark.slow  # two forests of 8,000 rows
def test_candidates_follow_the_rows_of_a_skewed_column():
    generator = np.random.default_rng(6)
    x = generator.lognormal(0.0, 2.0, 8000)
    y = (generator.uniform(0, 1, 8000) < 1 / (1 + x**-1.5)).astype(int)  # all that matters is in a thousandth
    schema = lw.Schema(features=(lw.Numeric("x", 0.0, 5000.0),), target=lw.Categorical("y", (0, 1)))
    common = {"epsilon": 1.0, "delta": 1e-6, "schema": schema, "expected_rows": 8000, "random_state": 1}
    bought = PrivateBoostingClassifier(**common).fit(x[:, np.newaxis], y)
    even = PrivateBoostingClassifier(**common, candidates="even").fit(x[:, np.newaxis], y)
    scores = [
        np.corrcoef(model.predict_proba(x[:, np.newaxis])[:, 1], 1 / (1 + x**-1.5))[0, 1] for model in (bought, even)
    ]
    assert scores[0] > scores[1] + 0.05


# ------------------------------------------------------------------------------------------------------------- the rule


@settings(max_examples=25)  # each computes two parameters of Gaussian privacy
@given(st.floats(1e-3, 20.0), st.floats(1e-12, 1e-2), st.integers(1, 10**9))
def test_the_rule_is_public_and_grows_with_the_evidence(epsilon, delta, n):
    found = evidence(lw.Budget(epsilon=epsilon, delta=delta, adjacency=A), n)
    more = evidence(lw.Budget(epsilon=epsilon, delta=delta, adjacency=A), 2 * n)
    assert more == pytest.approx(2 * found)
    assert DEPTHS[0] <= ruled_depth(found) <= ruled_depth(more) <= DEPTHS[1]
    for loss in ("squared", "logistic"):
        assert TREES[0] <= ruled_trees(found, loss) <= ruled_trees(more, loss) <= TREES[1]


@pytest.mark.slow  # fits as many trees as the rule says
def test_no_row_count_but_the_expected_one_is_used():
    plans = [estimator("two", n_estimators=None, max_depth=None).fit(*rows("two", n)).plan_ for n in (20, 60)]
    assert plans[0] == plans[1]
    schema = lw.Schema(features=FEATURES, target=TARGETS["two"])
    unknown = PrivateBoostingClassifier(schema=schema, expected_rows=None).make_plan(schema)
    assert unknown.max_depth == ruled_depth(evidence(BUDGET, 10_000))
    assert "10,000 are assumed" in unknown.explain()


def test_a_plan_says_what_it_chose_and_what_the_user_named():
    schema = lw.Schema(features=FEATURES, target=TARGETS["number"])
    plan = PrivateBoostingRegressor(schema=schema, expected_rows=5000, learning_rate=0.1).make_plan(schema)
    told = plan.explain()
    assert "learning_rate = 0.1: not the rule's, which is 0.3" in told
    for name, own in rule("squared", plan.evidence, n_features=3, n_numeric=2).items():
        assert f"{name} = " in told
        if name != "learning_rate":
            assert own.why in told
    assert "5.0% of mu**2 for the histograms" in told
    assert "expected_rows=5,000" in told
    assert (
        "nothing comes before"
        in PrivateBoostingClassifier(candidates="even")
        .make_plan(lw.Schema(features=FEATURES, target=TARGETS["two"]))
        .explain()
    )


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"candidate_share": 0.98, "initial_share": 0.05}, InvalidParameter, "leave nothing for the trees"),
        ({"candidate_share": 1.0}, InvalidParameter, "candidate_share"),
        ({"candidates": "quantiles"}, InvalidParameter, "candidates"),
        ({"even_share": 0.0}, InvalidParameter, "even_share"),
        ({"signal_memory": 0.0}, InvalidParameter, "signal_memory"),
        ({"features_per_tree": 0}, InvalidParameter, "features_per_tree"),
        ({"feature_choice": "greedy"}, InvalidParameter, "feature_choice"),
        ({"n_candidates": 0}, InvalidParameter, "n_candidates"),
        ({"delta": 0.0}, CalibrationFailed, "Gaussian"),
        pytest.param(
            {"epsilon": 1e-9, "delta": 1e-18},
            (CalibrationFailed, InvalidParameter),
            "too small",
            marks=pytest.mark.slow,  # looks for what would fit
        ),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_before_anything_is_spent(options, error, text):
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    with pytest.raises(error, match=text):
        estimator("number", **options).fit(*rows("number"), ledger=ledger)
    assert ledger.spent().epsilon == 0.0


@pytest.mark.parametrize(
    ("numeric", "categorical", "expected"), [(5, 5, 4), (4, 5, 2), (3, 0, 3), (0, 1, 1), (0, 9, 2)]
)
def test_trees_of_mostly_categories_have_two_features(numeric, categorical, expected):
    features = [lw.Numeric(f"n{j}", 0, 1) for j in range(numeric)]
    features += [lw.Categorical(f"c{j}", ("u", "v")) for j in range(categorical)]
    schema = lw.Schema(features=tuple(features), target=TARGETS["two"])
    assert PrivateBoostingClassifier(schema=schema).make_plan(schema).features_per_tree == expected


@pytest.mark.slow  # a schema of 300,000 features
def test_more_numeric_features_than_histograms_hold_are_refused_before_anything_is_spent():
    schema = lw.Schema.uniform(-1.0, 1.0, n_features=300_000, target=TARGETS["two"])
    model = PrivateBoostingClassifier(epsilon=1.0, delta=1e-6, schema=schema)
    with pytest.raises(InvalidParameter, match=r"300,000 numeric features are more than the 266,305.*'even'"):
        model.make_plan(schema)
    feature = lw.Numeric("x", -1.0, 2.0, missing=True)  # of the most borders: its range holds 0
    own = lw.Schema(features=(feature,), target=TARGETS["two"])
    for even_bins in (EVEN_BINS, 512, 4096):
        assert histogram_bins(own, 4096, even_bins).total <= most_sums(even_bins)


def test_of_several_classes_no_mean_label_is_paid_for():
    with pytest.raises(InvalidParameter, match="initial_score='moments' is for a number or two classes"):
        estimator("three", initial_score="moments").fit(*rows("three"))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"numeric_features": (0, 0)}, "rising"),
        ({"shared_classes": 1}, "shared_classes=1 must be 0, or at least 2"),
        ({"shared_classes": 3, "loss": "squared"}, "shared_classes=3 must be 0"),
        ({"shared_classes": -1}, "shared_classes"),
    ],
    ids=str,
)
def test_plans_by_hand_are_checked(changed, text):
    plan = PrivateBoostingPlan.ruled("logistic", BUDGET, 1000, n_features=3, numeric_features=(0, 2))
    with pytest.raises(InvalidParameter, match=text):
        dataclasses.replace(plan, **changed)


@pytest.mark.parametrize(("name", "value"), [("n_features", 7), ("shared_classes", 2)])
def test_a_saved_plan_of_another_schema_is_refused(name, value, tmp_path):
    estimator("three").fit(*rows("three")).save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    record = json.loads(path.read_text())
    record["plan"][name] = value
    path.write_text(json.dumps(record))
    with pytest.raises((InvalidParameter, LedgerCorrupted)):
        PrivateBoostingClassifier.load(tmp_path / "model")


def test_endless_evidence_is_some_evidence():
    schema = lw.Schema(features=FEATURES, target=TARGETS["two"])
    plan = PrivateBoostingClassifier(epsilon=20.0, schema=schema, expected_rows=10**308).make_plan(schema)
    assert (plan.max_depth, plan.n_estimators) == (DEPTHS[1], TREES[1])


def test_the_explanation_says_what_is_not_used_and_what_comes_before():
    schema = lw.Schema(features=FEATURES, target=TARGETS["two"])
    told = PrivateBoostingClassifier(schema=schema, candidates="even", feature_choice="cycle").make_plan(schema)
    for name in ("candidate_share", "even_share", "signal_memory"):
        assert f"{name} = " in told.explain()
        assert f"{getattr(told, name)!r}: not used here" in told.explain()
    assert (
        "features_per_tree = 3: effects of several"
        in PrivateBoostingClassifier(schema=schema, features_per_tree="all").make_plan(schema).explain()
    )
    X, y = rows("three", 400)
    bought = PrivateBoostingClassifier(epsilon=50.0, delta=1e-4, n_estimators=8, max_depth=2).fit(X, y).plan_.explain()
    assert "n_estimators = 32: one for each class that may be found" in bought
    assert "the estimate of the schema, and of what is left 5.0% of mu**2 for the histograms" in bought
    several = estimator("three").make_plan(lw.Schema(features=FEATURES, target=TARGETS["three"])).explain()
    assert "the first one has no split" in several


def test_every_choice_of_the_rule_is_a_field_of_the_plan():
    fields = {field.name for field in dataclasses.fields(PrivateBoostingPlan)}
    for loss, found in itertools.product(("squared", "logistic"), (0.0, 1e3, 1e9)):
        assert set(rule(loss, found, n_features=2, n_numeric=1)) <= fields
