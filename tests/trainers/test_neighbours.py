"""Every trainer, replayed on neighbouring data: nothing public changes, and no row moves more than was paid for.

To add an estimator: one line in CASES.
"""

import dataclasses
import functools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledgerwood as lw
import ledgerwood.curator.curator as curators
from ledgerwood import Categorical, Numeric
from ledgerwood.accounting.individuals import row_costs
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPBoostRegressor,
    DPXGBoostClassifier,
    DPXGBoostRegressor,
    FederatedGBDTClassifier,
    FederatedGBDTRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateSearch,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from ledgerwood.verification import added, duplicated, permuted, removed, replaced, replay, worst_rows

N_ROWS = 48
FEATURES = (
    Numeric("length", 0.0, 1.0),
    Categorical("kind", ("u", "v", "w"), missing=True),
    Numeric("weight", -1.0, 1.0, missing=True),
    Categorical("sold", (False, True)),
)
TARGETS = {"regressor": Numeric("price", 0.0, 10.0), "classifier": Categorical("class", ("no", "yes"))}
TARGETS["classes"] = Categorical("class", ("maybe", "no", "yes"))
TARGETS["weighted"] = Categorical("class", ("no", "yes"), weights=(7.0, 1.0))
TARGETS["weighted classes"] = Categorical("class", ("maybe", "no", "yes"), weights=(7.0, 1.0, 3.0))
SCHEMAS = {kind: lw.Schema(features=FEATURES, target=target) for kind, target in TARGETS.items()}
SMALL = {"n_estimators": 3, "max_depth": 2, "max_bins": 8}
SHALLOW = {"max_depth": 2, "max_bins": 8}
REPLACED = {"adjacency": "replace-one"}
SKELLAM = SMALL | {"noise": "skellam", "initial_score": "zero", "delta": 1e-6}

CASES = [
    ("regressor", SGBDTRegressor, SMALL),
    ("regressor", SGBDTRegressor, SMALL | {"preset": "paper"}),
    ("regressor", SGBDTRegressor, SMALL | {"adjacency": "zero-out", "features_per_tree": "all"}),
    ("regressor", SGBDTRegressor, SMALL | REPLACED),
    ("regressor", SGBDTRegressor, SMALL | {"initial_score": "laplace", "large_gradients": "drop", "clip": 0.3}),
    ("regressor", SGBDTRegressor, SMALL | REPLACED | {"initial_score": "public_count", "expected_rows": N_ROWS}),
    ("regressor", SGBDTRegressor, SMALL | {"leaf_noise": "static", "reg_lambda": 2.0}),
    ("regressor", SGBDTRegressor, SMALL | REPLACED | {"leaf_noise": "static", "reg_lambda": 2.0}),
    ("regressor", SGBDTRegressor, SMALL | {"subsample": 0.4, "initial_score": "zero"}),
    ("regressor", SGBDTRegressor, SMALL | {"leaf_noise": "static", "reg_lambda": 2.0, "subsample": 0.4}),
    ("regressor", SGBDTRegressor, SMALL | {"subsample": 0.4, "sampling": "allocation", "initial_score": "zero"}),
    ("regressor", SGBDTRegressor, SMALL | {"extra_trees": 6, "filter": "gdp", "clip": 0.2}),
    ("regressor", SGBDTRegressor, SMALL | {"extra_trees": 6, "filter": "renyi", "subsample": 0.4}),
    ("classifier", SGBDTClassifier, SMALL),
    ("classifier", SGBDTClassifier, SMALL | {"preset": "paper", "n_estimators": 3, "max_depth": 2}),
    ("classifier", SGBDTClassifier, SMALL | REPLACED | {"initial_score": "moments"}),
    ("classifier", SGBDTClassifier, SMALL | {"leaf_statistic": "moments", "initial_score": "laplace"}),
    ("classifier", SGBDTClassifier, SMALL | {"leaf_noise": "static", "reg_lambda": 2.0}),
    # a seed whose samples hold rows that move, and whose trees leave gradients that are not dropped
    (
        "classifier",
        SGBDTClassifier,
        SMALL | {"subsample": 0.4, "large_gradients": "drop", "clip": 0.4, "random_state": 10},
    ),
    ("classifier", SGBDTClassifier, SMALL | {"extra_trees": 6, "filter": "gdp"}),
    ("classifier", SGBDTClassifier, SMALL | {"extra_trees": 6, "filter": "renyi", "subsample": 0.4}),
    ("regressor", DPBoostRegressor, SMALL),
    ("regressor", DPBoostRegressor, SMALL | REPLACED),
    ("regressor", DPBoostRegressor, SMALL | {"preset": "paper", "n_estimators": 4, "trees_per_ensemble": 3}),
    ("regressor", DPBoostRegressor, SMALL | REPLACED | {"preset": "paper", "trees_per_ensemble": 3}),
    ("regressor", DPBoostRegressor, SMALL | {"preset": "enhanced", "trees_per_ensemble": 2, "max_bins": 500}),
    ("regressor", DPBoostRegressor, SMALL | REPLACED | {"preset": "enhanced", "max_bins": 300}),
    ("regressor", DPBoostRegressor, SMALL | {"preset": "para", "trees_per_ensemble": 3}),
    ("regressor", DPBoostRegressor, SMALL | {"preset": "seq", "delta": 1e-6}),
    ("regressor", DPBoostRegressor, SMALL | {"preset": "np"}),
    ("classifier", DPBoostClassifier, SMALL | {"loss": "logistic", "delta": 1e-6, "initial_score": "moments"}),
    ("classifier", DPBoostClassifier, SMALL | {"preset": "paper", "n_estimators": 5, "trees_per_ensemble": 2}),
    ("classifier", DPBoostClassifier, SMALL | {"candidates": "gridless", "max_bins": 200}),
    ("regressor", DPXGBoostRegressor, SMALL),
    ("regressor", DPXGBoostRegressor, SMALL | REPLACED),
    ("regressor", DPXGBoostRegressor, SMALL | {"preset": "paper", "subsample": 0.4}),
    ("regressor", DPXGBoostRegressor, SMALL | REPLACED | {"preset": "paper", "min_child_weight_by": "levels"}),
    ("regressor", DPXGBoostRegressor, SMALL | {"sketch": "once", "min_child_weight_by": "levels"}),
    ("regressor", DPXGBoostRegressor, SMALL | {"leaf_release": "ratio", "reg_lambda": 1.0, "sketch": "tree"}),
    ("regressor", DPXGBoostRegressor, SMALL | {"subsample": 0.4, "delta": 1e-6, "initial_score": "moments"}),
    ("classifier", DPXGBoostClassifier, SMALL | {"loss": "logistic", "delta": 1e-6}),
    ("classifier", DPXGBoostClassifier, SMALL | {"preset": "paper", "subsample": 0.4, "delta": 1e-6}),
    (
        "classifier",
        DPXGBoostClassifier,
        SMALL | {"preset": "paper", "subsample": 0.4, "sampling": "allocation", "delta": 1e-6},
    ),
    ("regressor", PrivateBoostingRegressor, SMALL),
    ("regressor", PrivateBoostingRegressor, REPLACED | {"n_estimators": 3, "max_depth": 2}),
    ("classifier", PrivateBoostingClassifier, SMALL | {"features_per_tree": 2}),
    ("classifier", PrivateBoostingClassifier, SMALL | {"noise": "skellam", "delta": 1e-6, "adjacency": "zero-out"}),
    ("classes", PrivateBoostingClassifier, SMALL | REPLACED),
    ("classes", FederatedGBDTClassifier, SMALL),
    ("classes", FederatedGBDTClassifier, SMALL | REPLACED | {"preset": "paper", "max_bins": 64, "recalibrate": True}),
    ("classes", FederatedGBDTClassifier, SMALL | {"update": "averaging", "split_method": "histogram"}),
    ("regressor", FederatedGBDTRegressor, SMALL),
    ("regressor", FederatedGBDTRegressor, SMALL | REPLACED | {"split_method": "partially_random"}),
    ("regressor", FederatedGBDTRegressor, SMALL | {"update": "averaging", "feature_cycle": "combinations"}),
    ("regressor", FederatedGBDTRegressor, SMALL | {"preset": "tr_newton_ih", "max_bins": 64, "trees_per_batch": 2}),
    ("regressor", FederatedGBDTRegressor, SMALL | REPLACED | {"candidates": "iterative_hessian"}),
    ("regressor", FederatedGBDTRegressor, SMALL | {"preset": "feverless", "feature_cycle": "random"}),
    ("regressor", FederatedGBDTRegressor, SMALL | REPLACED | {"preset": "feverless", "candidates": "quantiles"}),
    ("classifier", FederatedGBDTClassifier, SMALL | {"adjacency": "zero-out", "preset": "paper", "trees_per_batch": 1}),
    ("classifier", FederatedGBDTClassifier, SMALL | REPLACED | {"split_method": "partially_random", "clip": 0.2}),
    ("classifier", FederatedGBDTClassifier, SMALL),
    ("classifier", FederatedGBDTClassifier, SMALL | {"preset": "tr_batched_ih_ebm", "max_bins": 64}),
    (
        "classifier",
        FederatedGBDTClassifier,
        SMALL | REPLACED | {"preset": "paper", "max_bins": 64, "recalibrate": True},
    ),
    ("classifier", FederatedGBDTClassifier, SMALL | {"preset": "feverless", "n_candidates": 4}),
    ("classifier", FederatedGBDTClassifier, SMALL | REPLACED | {"preset": "dp_gbm", "features_per_tree": 1}),
    ("classifier", FederatedGBDTClassifier, SMALL | {"split_method": "partially_random", "feature_cycle": "random"}),
    ("classifier", FederatedGBDTClassifier, SMALL | {"candidates": "quantiles", "n_candidates": 2}),
    ("classifier", FederatedGBDTClassifier, SMALL | {"preset": "dp_rf", "candidates": "log", "max_bins": 64}),
    ("regressor", FederatedGBDTRegressor, SKELLAM),
    ("classifier", FederatedGBDTClassifier, SKELLAM | REPLACED),
    ("classifier", FederatedGBDTClassifier, SKELLAM | {"preset": "feverless", "n_candidates": 4}),
    ("regressor", FederatedGBDTRegressor, SKELLAM | REPLACED | {"split_method": "partially_random"}),
    ("classifier", FederatedGBDTClassifier, SKELLAM | {"preset": "tr_batched_ih_ebm", "max_bins": 64}),
    ("regressor", FederatedGBDTRegressor, SKELLAM | {"preset": "tr_newton_ih", "max_bins": 64}),
    ("regressor", SGBDTRegressor, SKELLAM),
    ("regressor", SGBDTRegressor, SKELLAM | REPLACED | {"initial_score": "moments"}),
    ("regressor", FederatedGBDTRegressor, SKELLAM | {"initial_score": "moments"}),
    ("classifier", SGBDTClassifier, SKELLAM | REPLACED),
    # A replaced row may go from a class of one weight to a class of another.
    ("weighted", PrivateBoostingClassifier, SMALL),
    ("weighted", PrivateBoostingClassifier, SMALL | REPLACED | {"features_per_tree": 2}),
    ("weighted classes", PrivateBoostingClassifier, SMALL),
    ("weighted classes", PrivateBoostingClassifier, SMALL | REPLACED),
    ("weighted", SGBDTClassifier, SMALL | {"adjacency": "zero-out", "initial_score": "moments"}),
    ("weighted", SGBDTClassifier, SMALL | REPLACED | {"leaf_noise": "static", "reg_lambda": 2.0}),
    ("weighted classes", SGBDTClassifier, SMALL | REPLACED),
    ("weighted", SGBDTClassifier, SMALL | {"extra_trees": 6, "filter": "renyi", "subsample": 0.4}),
    ("weighted", FederatedGBDTClassifier, SMALL | REPLACED | {"preset": "paper", "max_bins": 64, "recalibrate": True}),
    ("weighted classes", FederatedGBDTClassifier, SMALL),
    ("weighted", DPBoostClassifier, SMALL | REPLACED | {"trees_per_ensemble": 2}),
    ("weighted classes", DPXGBoostClassifier, SMALL | REPLACED),
    ("classifier", PrivaTreeClassifier, SHALLOW),
    ("classifier", PrivaTreeClassifier, SHALLOW | REPLACED),
    ("classifier", PrivaTreeClassifier, SHALLOW | {"choice": "exponential", "delta": 1e-6}),
    ("classifier", PrivaTreeClassifier, SHALLOW | {"preset": "paper", "candidate_bins": 3}),
    ("classifier", PrivaTreeClassifier, SHALLOW | REPLACED | {"preset": "paper", "candidate_bins": 4}),
    ("classifier", PrivaTreeClassifier, SHALLOW | {"preset": "public_bins", "candidate_bins": 4}),
    ("classifier", PrivaTreeClassifier, SHALLOW | {"preset": "joint_gaussian", "candidate_bins": 3, "delta": 1e-6}),
    ("classifier", PrivaTreeClassifier, SHALLOW | REPLACED | {"split_method": "joint_gaussian", "delta": 1e-6}),
    ("classifier", PrivaTreeClassifier, SHALLOW | {"preset": "random"}),
    ("classifier", PrivaTreeClassifier, SHALLOW | {"candidates": "quantiles", "candidate_bins": 3, "delta": 1e-6}),
]
"""(which target, estimator, its parameters); a schema that is bought, streams and searches are further down."""
KINDS = {estimator: kind for kind, estimator, _ in CASES if not kind.startswith("weighted")}


@pytest.fixture(autouse=True, scope="module")
def costs_once():
    """The costs of a row follow from the event: each is worked out once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curators, "row_costs", functools.cache(row_costs))
        yield


def rows(kind, n=N_ROWS, seed=0):
    generator = np.random.default_rng(seed)
    X = np.empty((n, 4), dtype=object)
    X[:, 0] = generator.uniform(0, 1, n)
    X[:, 1] = generator.choice(np.array(["u", "v", "w", "x"], dtype=object), n)
    X[:, 2] = np.where(generator.uniform(size=n) < 0.1, np.nan, generator.uniform(-1, 1, n))
    X[:, 3] = generator.uniform(size=n) < 0.5
    score = 8.0 * X[:, 0].astype(float) + 2.0 * (X[:, 1] == "u")
    y = score if kind == "regressor" else np.where(score > 4.5, "yes", "no").astype(object)
    if kind.endswith("classes"):
        y[score < 3.0] = "maybe"
    return X, y


def alike(kind, n=N_ROWS):
    """The same row again and again: what no other row has is an empty leaf, and gains move by nearly their range."""
    (_, row, label), *_ = worst_rows(SCHEMAS[kind])
    X = np.empty((n, 4), dtype=object)
    X[:] = row
    return X, np.array([label] * n, dtype=None if kind == "regressor" else object)


def neighbours(data, schema, *, replacing):
    """By name: each worst row, in place of one or besides them, and what moves little or nothing."""
    for name, row, label in worst_rows(schema):
        if "the other label" in name:  # those are among the small tables
            continue
        yield name, replaced(data, 5, row, label) if replacing else added(data, row, label, at=5)
    if not replacing:
        yield "removed", removed(data, 0)
        yield "duplicated", duplicated(data, 0)
    yield "permuted", permuted(data, np.random.default_rng(1))


def pairs(kind, *, replacing, groups):
    """(name, data, neighbour, group) of rows that are spread, and of rows that are all alike."""
    schema, spread, same = SCHEMAS[kind], rows(kind), alike(kind)
    for turn, (name, neighbour) in enumerate(neighbours(spread, schema, replacing=replacing)):
        yield name, spread, neighbour, turn % groups
    _, row, label = next(worst for worst in worst_rows(schema) if worst[0] == "highest")
    unlike = replaced(same, 5, row, label) if replacing else added(same, row, label)
    for group in range(groups):
        yield f"unlike the others, in group {group}", same, unlike, group
    if not replacing:
        yield "like the others", same, removed(same, 0), 0


def named(case):
    return f"{case[1].__name__}-" + "-".join(str(value) for value in case[2].values())


@pytest.mark.slow_after(1)  # replays every option of every system on each neighbour: the check of all sensitivities
@pytest.mark.parametrize("case", CASES, ids=named)
def test_neighbours_see_the_same_calls_and_no_row_moves_more_than_its_price(case):
    kind, estimator, options = case

    def fit(data):
        return estimator(**{"schema": SCHEMAS[kind], "random_state": 3} | options).fit(*data)

    shares = {}
    replacing, groups = options.get("adjacency") == "replace-one", options.get("trees_per_ensemble", 1)
    for name, data, neighbour, group in pairs(kind, replacing=replacing, groups=groups):
        found = replay(fit, data, neighbour, group=group)
        assert found.ok, f"{name}: {found}"
        shares[name] = found.largest_share
    assert shares.pop("permuted") == 0.0
    # Some row moves what was paid for nearly as far as it may: the replay does see it, and bounds are tight.
    assert 0.4 < max(shares.values()) <= 1.0


@st.composite
def small_tables(draw, kind, options):
    """A table of a few rows, ordinary, extreme or all alike, and a neighbour of it."""
    n = draw(st.sampled_from([1, 2, 3, 7, 20]))
    worst = list(worst_rows(SCHEMAS[kind]))
    X, y = alike(kind, n) if draw(st.booleans()) else rows(kind, n, seed=draw(st.integers(0, 99)))
    for place, (_, row, label) in draw(st.dictionaries(st.integers(0, n - 1), st.sampled_from(worst))).items():
        X[place] = row
        y[place] = label
    _, row, label = draw(st.sampled_from(worst))
    at = draw(st.integers(0, n - 1))
    if options.get("adjacency") == "replace-one":
        return (X, y), replaced((X, y), at, row, label)
    if n > 1 and draw(st.booleans()):
        return (X, y), removed((X, y), at)
    return (X, y), added((X, y), row, label, at=at)


@pytest.mark.slow  # replays any option on any table
@settings(max_examples=60)
@given(data=st.data(), case=st.sampled_from(CASES), seed=st.integers(0, 2**31), group=st.integers(0, 2))
def test_any_small_table(data, case, seed, group):
    kind, estimator, options = case
    table, neighbour = data.draw(small_tables(kind, options))

    def fit(data):
        return estimator(**{"schema": SCHEMAS[kind], "random_state": seed} | options).fit(*data)

    found = replay(fit, table, neighbour, group=group)
    assert found.ok, found


SAMPLED = [case for case in CASES if "subsample" in case[2]]


@pytest.mark.slow_after(2)  # replays sampled fits
@pytest.mark.parametrize("case", SAMPLED, ids=named)
def test_a_row_outside_of_the_samples_changes_nothing_of_them(case):
    kind, estimator, options = case
    data, schema = rows(kind), SCHEMAS[kind]

    def fit(data):
        return estimator(**{"schema": schema, "random_state": 3} | options | {"initial_score": "zero"}).fit(*data)

    _, row, label = next(worst_rows(schema))
    for neighbour in (added(data, row, label, at=5), removed(data, 0)):
        found = replay(fit, data, neighbour, sampled=False)
        assert found.ok, found
        assert found.largest_share == 0.0


@pytest.mark.slow_after(1)  # replays every option on weighted neighbours
@pytest.mark.parametrize(
    "case", [case for case in CASES if case[1] is not PrivaTreeClassifier and "noise" not in case[2]], ids=named
)
def test_rows_of_any_weight(case):
    kind, estimator, options = case
    schema = dataclasses.replace(SCHEMAS[kind], weight_bound=4.0)
    generator = np.random.default_rng(2)
    _, row, label = next(worst for worst in worst_rows(schema) if worst[0] == "highest")

    def fit(data):
        X, y, weights = data
        return estimator(**{"schema": schema, "random_state": 3} | options).fit(X, y, sample_weight=weights)

    shares = []
    spread = (*rows(kind), generator.choice([0.0, 0.25, 1.0, 4.0], N_ROWS))
    light = (*alike(kind), np.full(N_ROWS, 2.0**-6))
    for data, weight in ((spread, 0.0), (spread, 1.5), (light, 4.0)):
        replacing = options.get("adjacency") == "replace-one"
        neighbour = replaced(data, 5, row, label, weight) if replacing else added(data, row, label, weight)
        found = replay(fit, data, neighbour, group=1)
        assert found.ok, f"weight {weight}: {found}"
        shares.append(found.largest_share)
    # A row of weight 0 is one that is not there, but where rows are counted whatever they weigh.
    counted = any(name in repr(found.calls) for name in ("CellCounts", "LeafCounts", "BinCounts", "FeatureQuantiles"))
    assert shares[0] == 0.0 or counted or options.get("adjacency") == "replace-one"
    # The presets of the papers leave this row out, for its large gradient.
    assert shares[2] > 0.3 or "large_gradients" in options or "preset" in options


# ------------------------------------------------------------------------------------------------- what is around it


def frame(X):
    """Typed columns, as a schema that is bought needs them."""
    return pd.DataFrame(
        {
            "length": X[:, 0].astype(float), "kind": X[:, 1], "weight": X[:, 2].astype(float),
            "sold": X[:, 3].astype(bool),
        }
    )  # fmt: skip


@pytest.mark.slow_after(1)  # replays fits that buy a schema
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("estimator", KINDS)
def test_a_schema_that_is_bought_is_a_release_like_any_other(estimator, adjacency):
    kind = KINDS[estimator]
    data = rows(kind, 40)

    def fit(data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # fewer classes than two are bought of so few rows
            shape = {"max_depth": 1} if estimator is PrivaTreeClassifier else {"n_estimators": 2, "max_depth": 1}
            model = estimator(**shape, delta=1e-6, adjacency=adjacency, random_state=2)
            return model.fit(frame(data[0]), data[1])

    generator = np.random.default_rng(1)
    label = 1e9 if kind == "regressor" else "a class of its own"
    row = [1e300, "a word of its own", np.nan, True]
    replacing = adjacency == "replace-one"
    far = replaced(data, 5, row, label) if replacing else added(data, row, label)
    for neighbour in (far, permuted(data, generator)):
        found = replay(fit, data, neighbour)
        assert found.ok, found
        purposes = [call.purpose for call in found.calls if call.kind in ("release", "select")]
        assert sum(purpose.startswith("schema: ") for purpose in purposes) == 4
        assert (found.largest_share > 0.5) == (neighbour is far)


def test_a_stream_of_two_calls():
    X, y = rows("regressor")
    keys = np.array([f"unit {i}" for i in range(N_ROWS)], dtype=object)
    X = np.column_stack([X, keys])
    first = np.arange(N_ROWS) < 24

    def fit(data):
        rows_, labels = data
        # The second call has units of the first one again.
        early = np.isin(rows_[:, 4], [*keys[first], "one more"])
        model = SGBDTRegressor(schema=SCHEMAS["regressor"], random_state=4, **SMALL)
        model.partial_fit(rows_[early, :4], labels[early], keys=rows_[early, 4])
        return model.partial_fit(rows_[:, :4], labels, keys=rows_[:, 4])

    data = (X, y)
    for neighbour in (added(data, [0.0, "u", 1.0, True, "one more"], 10.0), removed(data, 3)):
        found = replay(fit, data, neighbour)
        assert found.ok, found
        assert found.largest_share > 0.5


@pytest.mark.slow  # replays a search on each neighbour
@pytest.mark.parametrize("distribution", ["poisson", "negative_binomial"])
def test_each_run_of_a_private_search(distribution):
    data, schema = rows("classifier"), SCHEMAS["classifier"]
    candidates = [{"n_estimators": 2, "max_depth": 1}, {"n_estimators": 3, "max_depth": 2}]

    def fit(data):
        search = PrivateSearch(
            SGBDTClassifier(),
            candidates,
            epsilon=2.0,
            delta=1e-5,
            schema=schema,
            distribution=distribution,
            mean_runs=4.0,
            random_state=6,
        )
        return search.fit(*data)

    for name, neighbour in neighbours(data, schema, replacing=False):
        found = replay(fit, data, neighbour)
        assert found.ok, f"{name}: {found}"
        assert [call.purpose for call in found.calls if call.kind == "search"]
