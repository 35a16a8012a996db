"""The benchmarks of DPBoost and DP-XGBoost: public schemas that fit their rows, studies that run and draw."""

import gzip
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from rich.console import Console

from benchmarks import (
    data_sets,
    dpboost,
    dpboost_studies,
    dpxgboost,
    dpxgboost_studies,
    drawing,
    greedy_speed,
    measuring,
)
from benchmarks.utility import Scale, Task, measured, print_utility, table_of
from ledgerwood import Categorical, Numeric, Schema, price
from ledgerwood.ensemble import Ensemble
from ledgerwood.trainers import DPBoostRegressor

mpl.use("agg")
ROWS = 120
TINY = Scale(seeds=1, rows=ROWS)
SMALL = {"n_estimators": 2, "max_depth": 2, "max_bins": 8}
QUIET = Console(quiet=True)
PAGES = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"


def numbers():
    X = np.random.default_rng(0).uniform(0, 1, (ROWS, 3))
    schema = Schema.uniform(0, 1, n_features=3, target=Numeric("y", 0, 10))
    return data_sets.Data("abalone", X, np.round(10 * X[:, 0]), schema)


def classes():
    X = np.random.default_rng(1).uniform(0, 1, (ROWS, 3))
    schema = Schema.uniform(0, 1, n_features=3, target=Categorical("y", (0, 1)))
    return data_sets.Data("adult", X, (X[:, 0] > 0.5).astype(int), schema)


@pytest.fixture
def tiny(monkeypatch):
    """Every data set is a tiny one of its kind."""
    regression = {"abalone", "california_housing", "synthetic_regression"}
    monkeypatch.setattr(data_sets, "load", lambda name: numbers() if name in regression else classes())


# --------------------------------------------------------------------------------------------------------- measuring


def test_splits_are_partitions_and_differ_by_seed():
    folds = list(measuring.folds(23, 2))
    assert [sorted((*train, *test)) for train, test in folds] == [list(range(23))] * 10
    assert sorted(np.concatenate([test for _, test in folds[:5]])) == list(range(23))
    (train, test), (_, other) = measuring.holdouts(100, 2)
    assert len(test) == 30
    assert sorted((*train, *test)) == list(range(100))
    assert set(test) != set(other)


def test_trivial_scores_are_those_of_the_mean_and_of_the_larger_class():
    data = numbers()
    splits = list(measuring.folds(ROWS, 1))
    train, test = splits[0]
    rmse, _ = measuring.trivial(data, splits)[0]
    assert rmse == pytest.approx(np.sqrt(np.mean((data.y[test] - data.y[train].mean()) ** 2)))
    data = classes()
    auc, accuracy = measuring.trivial(data, splits)[0]
    assert auc == 0.5
    assert accuracy == np.mean(data.y[test] == (data.y[train].mean() > 0.5))


def test_studies_are_kept_beside_one_another(tmp_path):
    path = tmp_path / "found.json"
    measuring.keep(path, {"figure": {"abalone": 1, "adult": 2}, "table": {"adult": 3}})
    measuring.keep(path, {"figure": {"adult": 4}})
    assert json.loads(path.read_text()) == {"figure": {"abalone": 1, "adult": 4}, "table": {"adult": 3}}


# --------------------------------------------------------------------------------------------------------- data sets

LINES = {
    "bank": "unknown,management,married,tertiary,no,yes,no,unknown,5,may,1,261,-1,0,58,2143,no",
    "credit_default": "20000.0,2,2,1,24,2,2,-1,-1,-2,-2,3913.0,3102.0,689.0,0,0,0,0,689.0,0,0,0,0,1",
    "electricity": "0.0,0.056443,0.439155,0.003467,0.422915,0.414912,1",
    "magic_telescope": "28.7967,16.0021,2.6449,0.3918,0.1982,27.7004,22.011,-8.2027,40.092,81.8828,g",
    "california_housing": "-122.23,37.88,41.0,880.0,,322.0,126.0,8.3252,NEAR BAY,452600.0",
}


@pytest.mark.parametrize("name", LINES)
def test_a_row_of_each_file_lies_inside_of_its_public_schema(name, tmp_path, monkeypatch):
    schema = data_sets.SCHEMAS[name]()
    header = ",".join((*(feature.name for feature in schema.features), "label"))
    with gzip.open(tmp_path / f"{name}.csv.gz", "wt") as file:
        file.write(f"{header}\n{LINES[name]}\n")
    monkeypatch.setenv("LEDGERWOOD_DATA", str(tmp_path))
    data = data_sets.load(name)
    for feature, value in zip(schema.columns, (*data.X[0], data.y[0]), strict=True):
        if isinstance(feature, Categorical):
            assert value in feature.categories
        else:
            assert feature.low <= value <= feature.high or (feature.missing and np.isnan(value))


def test_a9a_is_read_as_indicators(tmp_path, monkeypatch):
    with gzip.open(tmp_path / "a9a.libsvm.gz", "wt") as file:
        file.write("-1 3:1 123:1 \n+1 1:1 \n")
    monkeypatch.setenv("LEDGERWOOD_DATA", str(tmp_path))
    data = data_sets.load("a9a")
    assert [np.flatnonzero(row).tolist() for row in data.X] == [[2, 122], [0]]
    assert data.y.tolist() == [-1, 1]


@pytest.mark.parametrize("make", [data_sets.synthetic_classification, data_sets.synthetic_regression])
def test_synthetic_sets_stay_inside_of_their_schema(make):
    data = make(200, 20)
    target = data.schema.target
    if isinstance(target, Numeric):
        assert np.abs(data.y).max() <= target.high
    else:
        assert set(data.y) == {0, 1}
    low, high = data.schema.features[0].low, data.schema.features[0].high
    assert np.mean((low > data.X) | (high < data.X)) < 0.01


# ----------------------------------------------------------------------------------------------------------- utility


@pytest.mark.slow  # fits each variant
@pytest.mark.parametrize("module", [dpboost, dpxgboost])
@pytest.mark.parametrize("make", [numbers, classes])
def test_every_variant_is_measured_beside_what_is_not_private(module, make, monkeypatch):
    monkeypatch.setattr(data_sets, "load", lambda name: make())
    variants = {name: {**module.VARIANTS[name], **SMALL} for name in ("defaults", "paper")}
    name, *others = variants
    task = Task("abalone", (1.0, 4.0), (name,), tuple(others), published={"somebody": {4.0: "2 / .5"}})
    found = measured(module.SYSTEM, task, variants, TINY)
    assert [row["name"] for row in found["rows"]] == list(variants)
    for row in found["rows"]:
        assert [entry["epsilon"] for entry in row["cells"]] == [1.0, 4.0]
        assert np.isfinite([entry["mean"] for entry in row["cells"]]).all()
    assert found["published"] == {"somebody": {"4.0": "2 / .5"}}
    assert table_of("it", "abalone", found).row_count == len(variants) + 3
    print_utility(module.SYSTEM, {"abalone": found}, QUIET)
    assert len(drawing.budgets({"abalone": json.loads(json.dumps(found))}).axes) == 1


@pytest.mark.parametrize("module", [dpboost, dpxgboost])
def test_tasks_name_known_variants_and_every_data_set(module):
    assert {task.name for task in module.TASKS} == set(data_sets.NAMES)
    for task in module.TASKS:
        assert set(task.variants) | set(task.fewer) <= set(module.VARIANTS)
        for published in task.published.values():
            assert set(published) & set(task.epsilons)


@pytest.mark.slow  # calibrates every variant
def test_every_variant_makes_a_plan_of_its_budget():
    data = numbers()
    for module in (dpboost, dpxgboost):
        for name, parameters in module.VARIANTS.items():
            if "delta" in name and not name.startswith(("defaults", "paper")):
                continue  # slow to price, and priced in the paper's way
            plan = module.SYSTEM.model(data, 2.0, {**parameters, "n_estimators": 3, "max_bins": 8}).make_plan(
                data.schema
            )
            found = price(plan.event).epsilon(parameters.get("delta", 0.0))
            assert 1.98 < found <= 2.0, name


# ----------------------------------------------------------------------------------------------------------- studies


@pytest.mark.slow  # fits models of many trees
def test_a_prefix_predicts_like_the_shorter_ensemble():
    data = numbers()
    model = DPBoostRegressor(
        epsilon=5.0, schema=data.schema, preset="seq", random_state=0, **SMALL | {"n_estimators": 3}
    )
    model.fit(data.X, data.y)
    shorter = dpboost_studies.prefix(model, 2)
    assert len(model.ensemble_.trees) == 3
    first = Ensemble(initial_score=model.ensemble_.initial_score, trees=model.ensemble_.trees[:2])
    assert shorter.ensemble_.extends(first)
    assert not np.array_equal(shorter.predict(data.X), model.predict(data.X))
    assert np.array_equal(dpboost_studies.prefix(model, 3).predict(data.X), model.predict(data.X))


def test_the_share_of_filtered_rows_is_counted_tree_by_tree():
    data = numbers()
    model = DPBoostRegressor(epsilon=1e6, schema=data.schema, preset="seq", clip=0.5, random_state=0, **SMALL)
    model.fit(data.X, data.y)
    first, second = dpboost_studies.filtered_shares(model, data)
    labels = data.y / 5.0 - 1.0
    assert first == np.mean(np.abs(model.ensemble_.initial_score - labels) > 0.5)
    scores = dpboost_studies.prefix(model, 1).predict(data.X) / 5.0 - 1.0
    assert second == pytest.approx(np.mean(np.abs(scores - labels) > 0.5))


def small(variants):
    return {name: {**each, "n_estimators": 2, "max_depth": 1, "max_bins": 8} for name, each in variants.items()}


@pytest.mark.slow  # each table once, made small
@pytest.mark.parametrize("name", dpboost.STUDIES)
def test_dpboost_tables_are_measured_and_have_no_picture(name, tiny, monkeypatch, tmp_path):
    monkeypatch.setattr(dpboost_studies, "TIMED_DATA", ("abalone",))
    for group in ("PURE", "TIMED"):
        monkeypatch.setattr(dpboost, group, small(vars(dpboost)[group]))
    found = dpboost.study(name, TINY)
    drawing.save(tmp_path, "dpboost", {name: json.loads(json.dumps(found))}, dpboost.draw)
    assert "abalone" in found
    assert not list(tmp_path.iterdir())


@pytest.mark.slow  # each study once, made small
@pytest.mark.parametrize("study", dpxgboost.STUDIES)
def test_dpxgboost_studies_run_and_draw(study, tiny, monkeypatch, tmp_path):
    for module, group in ((dpboost, "PURE"), (dpxgboost, "VARIANTS"), (dpxgboost, "LEAVES")):
        monkeypatch.setattr(module, group, small(vars(module)[group]))
    monkeypatch.setattr(dpxgboost, "PAPER", {**dpxgboost.PAPER, "n_estimators": 2, "max_depth": 1})
    found = dpxgboost.run(study, TINY, QUIET)
    drawing.save(tmp_path, "dpxgboost", {study: json.loads(json.dumps(found))}, dpxgboost.draw)
    assert len(list(tmp_path.iterdir())) == 1
    if study == "figure2":
        assert found["adult"]["rows"][-1]["name"] == dpxgboost_studies.UNSOUND


def test_ranks_are_shares_of_rows_below():
    ranked = dpxgboost_studies.by_ranks(numbers())
    for column in ranked.X.T:
        assert sorted(column) == pytest.approx(np.arange(ROWS) / ROWS)


def test_exact_quantiles_leave_splits_and_leaves_what_they_have_beside_a_sketch():
    data = classes()
    sketched = {**dpxgboost.PAPER, "n_estimators": 3}
    epsilon, even = dpxgboost_studies.without_sketch(dpxgboost.SYSTEM, data, sketched)
    with_sketch = dpxgboost.SYSTEM.model(data, dpxgboost_studies.EPSILON, sketched).make_plan(data.schema)
    without = dpxgboost.SYSTEM.model(data, epsilon, even).make_plan(data.schema)
    for part in ("splits", "leaves"):
        assert without.epsilon_of(part) == pytest.approx(with_sketch.epsilon_of(part), rel=1e-6)


def test_unsound_leaves_have_the_law_of_the_errata():
    """Mean of minus the gradients over (n + lambda), Laplace noise of twice the clip over epsilon in the sum."""
    plan = dpxgboost.SYSTEM.model(classes(), 20.0, {"preset": "paper", "n_estimators": 1}).make_plan(classes().schema)
    rng = np.random.default_rng(0)
    gradients = np.full(50, -0.5)
    values = [dpxgboost_studies.unsound_leaf(gradients, plan, rng) for _ in range(2000)]
    scale = 2.0 / plan.leaf_epsilon / (50 + plan.reg_lambda)
    assert np.mean(values) == pytest.approx(25 / (50 + plan.reg_lambda), abs=5 * scale * np.sqrt(2 / 2000))
    assert dpxgboost_studies.unsound_leaf(np.empty(0), plan, rng) == 0.0


# ------------------------------------------------------------------------------------------------------------- speed


@pytest.mark.slow  # each study once, made small
def test_seconds_a_tree_are_positive_for_each_way_to_choose_splits(monkeypatch):
    monkeypatch.setattr(greedy_speed, "DEPTH", 2)
    for make in (greedy_speed.dpboost(8, "grid"), greedy_speed.dpboost(1000, "gridless"), greedy_speed.dpxgboost(1.0)):
        assert len(make(2).set_params(max_depth=1).fit(*greedy_speed.synthetic(300)).ensemble_.trees) == 2


# ------------------------------------------------------------------------------------------------- what the pages show


@pytest.mark.slow  # calibrates what the stored figures name
@pytest.mark.parametrize(
    ("module", "page", "more"), [(dpboost, "dpboost", set()), (dpxgboost, "dpxgboost", {dpxgboost.AS_PRINTED})]
)
def test_stored_studies_are_known_and_their_variants_too(module, page, more):
    stored = json.loads((PAGES / f"{page}.json").read_text())
    assert set(stored) <= {"utility", "speed", *module.STUDIES}
    known = {*module.VARIANTS, "official code, live (its accounting)", *more}
    for name, task in stored.get("utility", {}).items():
        assert name in data_sets.NAMES
        assert {row["name"] for row in task["rows"]} <= known
    for study in set(stored) - {"speed"}:
        figure = module.draw(study, stored[study])
        assert (figure is None) is study.startswith("table")
