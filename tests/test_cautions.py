"""Habits that mislead: one warning a fit and reason, with the way out, and never by a row."""

import inspect
import json
import math
import multiprocessing
import os
import re
import subprocess
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood import cautions
from ledgerwood.accounting.ledger import DrawEntry
from ledgerwood.cli.commands import app
from ledgerwood.curator import RowVault
from ledgerwood.errors import CalibrationFailed
from ledgerwood.recording.opening import recording
from ledgerwood.trainers import (
    DPBoostRegressor,
    FederatedGBDTClassifier,
    PrivateSearch,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.estimated.purchase import STANDS_OUT
from ledgerwood.trainers.estimated.ranges import bin_edges, likely_range
from ledgerwood.verification import audit_model, removed, replay, structure_depends_on_data

RNG = np.random.default_rng(3)
ROWS = RNG.uniform(size=(80, 2))
SIZES = (1_000, 4_177)


def estimators() -> list[type]:
    found, left = set(), [AbstractTreeEstimator]
    while left:
        each = left.pop()
        left += each.__subclasses__()
        if not inspect.isabstract(each) and each.__module__.startswith("ledgerwood."):
            found.add(each)
    return sorted(found, key=lambda each: each.__name__)


ALL = estimators()
each_estimator = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)


def made(kind: type, *, columns: tuple[str, str] = ("a", "b"), **named: Any) -> tuple[Any, Any]:
    """An estimator with a schema, cheap to fit, and labels."""
    features = tuple(lw.Numeric(name, 0, 1) for name in columns)
    if "Classifier" in kind.__name__:
        schema = lw.Schema(features=features, target=lw.Categorical("y", (0, 1)))
        return kind(schema=schema, **named), (ROWS[:, 0] > 0.5).astype(int)
    schema = lw.Schema(features=features, target=lw.Numeric("y", 0, 1))
    if kind is PrivateSearch:
        rows = named.pop("expected_rows", None)
        inner = SGBDTRegressor(n_estimators=2, max_depth=1, expected_rows=rows)
        return PrivateSearch(inner, [{"learning_rate": 0.1}], mean_runs=2.0, schema=schema, **named), ROWS[:, 0]
    return kind(schema=schema, **named), ROWS[:, 0]


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """A process that has fitted nothing."""
    monkeypatch.setattr(cautions, "_FITS", Counter())


def said(call) -> list[Any]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [each for each in found if issubclass(each.category, lw.PrivacyWarning)]


def texts(call) -> list[str]:
    return [str(each.message) for each in said(call)]


# ------------------------------------------------------------------------------------------------------------- seeds


@pytest.mark.slow  # calibrates a plan of each estimator
@each_estimator
def test_a_seed_marks_release_ledger_and_model_and_warns(kind):
    """House rule 11, for every estimator there is."""
    model, labels = made(kind, random_state=7)
    releases = []

    def seen(body, *given, **named):
        releases.append(body(*given, **named))
        return releases[-1]

    (text,) = texts(lambda: model.fit(ROWS, labels))
    assert "random_state=7: " in text
    assert "random_state=None" in text
    assert math.isinf(model.privacy_.epsilon)
    assert model.privacy_.randomness == "test"
    assert {entry.randomness for entry in model.ledger_.entries if isinstance(entry, DrawEntry)} == {"test"}
    with recording("test", {"release": seen, "select": seen}):
        model.fit(ROWS, labels)
    assert {each.randomness for each in releases} == {"test"}
    assert {each.receipt.randomness for each in releases} == {"test"}
    if kind is PrivateSearch:
        assert math.isinf(model.best_estimator_.privacy_.epsilon)
        assert model.best_estimator_.privacy_.randomness == "test"


@pytest.mark.slow_after(1)  # one fit of each estimator
@each_estimator
def test_a_seed_stays_marked_in_a_saved_model(kind, tmp_path):
    model, labels = made(kind, random_state=np.int64(7))
    model.fit(ROWS, labels).save(tmp_path / "model")
    again = (type(model.best_estimator_) if kind is PrivateSearch else kind).load(tmp_path / "model")
    assert math.isinf(again.privacy_.epsilon)
    assert again.privacy_.randomness == "test"
    assert json.loads((tmp_path / "model" / "model.json").read_text())["parameters"]["random_state"] is None


@pytest.mark.slow_after(1)  # one fit of each estimator
@each_estimator
def test_an_ordinary_fit_warns_of_nothing(kind):
    model, labels = made(kind)
    assert texts(lambda: model.fit(ROWS, labels)) == []
    assert math.isfinite(model.privacy_.epsilon)


def test_a_generator_is_a_seed_too():
    model, labels = made(SGBDTRegressor, random_state=np.random.RandomState(1))
    (text,) = texts(lambda: model.fit(ROWS, labels))
    assert text.startswith("random_state=a RandomState: ")


@pytest.mark.slow  # several fits
@pytest.mark.parametrize("wrapped", [lambda m: m, lambda m: make_pipeline(m)], ids=["estimator", "pipeline"])
def test_a_warning_points_at_the_line_that_fits(wrapped):
    for kind in (SGBDTRegressor, PrivaTreeClassifier, PrivateSearch):
        model, labels = made(kind, random_state=1)
        model = wrapped(model)
        cautions._FITS.clear()
        (found,) = said(lambda: model.fit(ROWS, labels))  # noqa: B023  # this line
        assert found.filename == __file__
        with open(__file__, encoding="utf-8") as lines:  # noqa: PTH123
            assert "# this line" in lines.readlines()[found.lineno - 1]


def test_an_error_filter_stops_a_fit_before_anything_is_spent():
    model, labels = made(SGBDTRegressor, random_state=1)
    ledger = lw.Ledger(lw.Budget(epsilon=9.0, delta=1e-4, adjacency=lw.Adjacency.ADD_REMOVE), unit=lw.PrivacyUnit.ROW)
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.PrivacyWarning)
        with pytest.raises(lw.PrivacyWarning, match="random_state=1"):
            model.fit(ROWS, labels, ledger=ledger)
        with pytest.raises(lw.PrivacyWarning, match="random_state=1"):
            model.fit(ROWS, labels)
    assert len(ledger.entries) == 1
    assert "ensemble_" not in vars(model)
    plain, _ = made(SGBDTRegressor)
    assert texts(lambda: plain.fit(ROWS, labels)) == []  # nothing was fitted, so nothing adds up


# ------------------------------------------------------------------------------------------------ ledgers of one's own


@pytest.mark.slow  # calibrates a plan of each estimator
@each_estimator
def test_a_second_fit_with_a_ledger_of_its_own_warns_whatever_the_rows(kind):
    first, other = made(SGBDTRegressor)
    assert texts(lambda: first.fit(ROWS, other)) == []
    model, labels = made(kind)
    for rows in (ROWS, ROWS[:30] / 2):
        (text,) = texts(lambda: model.fit(rows, labels[: len(rows)]))  # noqa: B023
        assert "columns 'a', 'b' before" in text
        assert "ledger=ledger" in text
    budget = lw.Budget(epsilon=9.0, delta=1e-4, adjacency=lw.Adjacency.ADD_REMOVE)
    with lw.Ledger(budget, unit=lw.PrivacyUnit.ROW) as ledger:
        assert texts(lambda: model.fit(ROWS, labels, ledger=ledger)) == []
    elsewhere, _ = made(kind, columns=("a", "c"))
    assert texts(lambda: elsewhere.fit(ROWS, labels)) == []


def test_the_order_of_columns_and_whether_the_schema_is_declared_make_no_difference():
    model, labels = made(SGBDTRegressor, columns=("b", "a"))
    model.fit(ROWS, labels)
    undeclared = SGBDTRegressor(n_estimators=2, epsilon=50.0)
    frame = pd.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1]})
    assert any("fitted columns 'a', 'b' before" in text for text in texts(lambda: undeclared.fit(frame, labels)))


def counted(own: bool) -> str | None:
    with cautions.counted_fit(("a",), own=own) as text:
        return text


@pytest.mark.slow  # several fits
def test_a_fit_in_a_process_that_another_one_started_warns_of_its_own_ledger():
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        first, paid, second = pool.map(counted, (True, False, True))
    assert "a process that another one has started" in first
    assert "private_cross_validate" in first
    assert paid is None
    assert "columns 'a' before" in second
    assert counted(True) is None  # this process has no parent of its kind


@pytest.mark.slow  # several fits
def test_a_fit_that_was_refused_does_not_count():
    poor, labels = made(DPBoostRegressor, epsilon=1e-12)
    with pytest.raises(CalibrationFailed):
        poor.fit(ROWS, labels)
    model, _ = made(DPBoostRegressor)
    assert texts(lambda: model.fit(ROWS, labels)) == []


def test_later_calls_of_a_stream_are_no_second_ledger():
    model, labels = made(SGBDTRegressor, n_estimators=4)
    keys, vault = np.arange(80), RowVault()
    for half in (slice(0, 40), slice(40, 80)):
        call = lambda: model.partial_fit(ROWS[half], labels[half], keys=keys[half], vault=vault)  # noqa: B023, E731
        assert texts(call) == []
    other, _ = made(SGBDTRegressor, n_estimators=4)
    assert ["before" in text for text in texts(lambda: other.partial_fit(ROWS, labels, keys=keys))] == [True]


def test_a_stream_warns_of_its_seed_once():
    model, labels = made(SGBDTRegressor, n_estimators=4, random_state=5)
    keys = np.arange(80)
    assert len(texts(lambda: model.partial_fit(ROWS, labels, keys=keys))) == 1
    assert texts(lambda: model.partial_fit(ROWS, labels, keys=keys)) == []
    assert math.isinf(model.privacy_.epsilon)


def test_fits_of_a_verification_neither_warn_nor_count():
    model, labels = made(SGBDTRegressor, n_estimators=2, max_depth=1, random_state=3)

    def check():
        fit = lambda data: model.fit(*data)  # noqa: E731
        assert replay(fit, (ROWS, labels), removed((ROWS, labels), 3)).ok
        assert structure_depends_on_data(model, ROWS, labels).independent
        audit_model(model, ROWS, labels, canaries=8, trainings=2)

    # The audit speaks of itself, of so few canaries; none of its fits does, and none counts.
    assert ["this audit is too small for its claim" in text for text in texts(check)] == [True]
    assert cautions._FITS.total() == 0


# ------------------------------------------------------------------------------------------------------------- delta


@pytest.mark.parametrize(
    ("delta", "rows", "parts"),
    [
        (2e-3, None, ["above 1e-3:", "for example 1e-05"]),
        (1e-3, None, []),
        (1e-4, 20_000, ["above 1 / expected_rows = 5e-05:", "for example 5e-07"]),
        (1e-4, 10_000, []),
        (0.01, 20_000, ["above 1e-3 and above 1 / expected_rows = 5e-05"]),
        (0.0, 10**9, []),
    ],
)
def test_a_large_delta_is_told(delta, rows, parts):
    text = cautions.delta_caution(delta, rows)
    assert (text is None) == (not parts)
    assert all(part in text for part in parts)


@pytest.mark.slow  # calibrates a plan of each estimator
@each_estimator
def test_each_estimator_warns_of_a_large_delta_once(kind):
    model, labels = made(kind, delta=0.05, expected_rows=2_000)
    (text,) = texts(lambda: model.fit(ROWS, labels))
    assert "delta=0.05 (unit: probability) is above 1e-3 and above 1 / expected_rows = 0.0005" in text


# ------------------------------------------------------------------------------------------------------------- leaves

PLANNED = [kind for kind in ALL if kind is not PrivateSearch]
WIDE = (*(lw.Numeric(f"x{i}", 0, 1) for i in range(7)), lw.Categorical("sex", ("M", "F", "I")))


def wide(kind: type, **named: Any) -> Any:
    """As Abalone: seven numbers and a category."""
    target = lw.Categorical("y", (0, 1)) if "Classifier" in kind.__name__ else lw.Numeric("y", 1, 29)
    return kind(schema=lw.Schema(features=WIDE, target=target), **named)


def leaf_texts(model: Any) -> list[str]:
    return [text for text in model.plan_cautions(model.make_plan(model.schema)) if "little but noise" in text]


@pytest.mark.slow  # calibrates a plan of each estimator
@pytest.mark.parametrize("kind", PLANNED, ids=lambda kind: kind.__name__)
def test_leaves_of_noise_are_told_and_leaves_that_are_none_are_not(kind):
    for rows in (4_177, None):
        for epsilon in (0.1, 0.5, 1.0, 8.0):
            assert leaf_texts(wide(kind, epsilon=epsilon, expected_rows=rows)) == [], (rows, epsilon)
    (text,) = leaf_texts(wide(kind, epsilon=1e-4, expected_rows=1_000))
    assert text.startswith("epsilon=0.0001 at delta=")
    assert "expected_rows=1000" in text
    (unsaid,) = leaf_texts(wide(kind, epsilon=1e-4))
    assert "in every table of fewer than about " in unsaid
    assert "expected_rows=" not in unsaid


@pytest.mark.slow_after(2)  # calibrates a plan of each estimator
@each_estimator
def test_each_estimator_warns_of_leaves_of_noise_once(kind):
    model, labels = made(kind, epsilon=1e-4, expected_rows=1_000)
    (text,) = texts(lambda: model.fit(ROWS, labels))
    assert "little but noise" in text


@pytest.mark.parametrize("kind", PLANNED, ids=lambda kind: kind.__name__)
def test_the_number_of_rows_that_is_named_is_where_the_signal_is_one(kind):
    model = wide(kind, epsilon=1e-3)
    plan = model.make_plan(model.schema)
    (text,) = leaf_texts(model)
    least = int(text.partition("fewer than about ")[2].partition(" rows")[0].replace(",", ""))
    assert plan.leaf_signal(0.94 * least) < 1.0 <= plan.leaf_signal(1.06 * least)
    assert plan.leaf_signal(10.0 * least) >= plan.leaf_signal(least)  # more rows, no less signal


def test_the_signal_is_that_of_the_mechanisms_themselves():
    """By hand, from the noise that the mechanism states and the largest that a leaf's rows add up to."""
    sgbdt = wide(SGBDTRegressor, n_estimators=9, max_depth=3)
    plan = sgbdt.make_plan(sgbdt.schema)
    assert plan.leaf_signal(800) == pytest.approx(3 * (100 * plan.clip) / plan.leaf_mechanism.stddevs[1])
    boost = wide(DPBoostRegressor, n_estimators=4, trees_per_ensemble=1, max_depth=2)
    plan = boost.make_plan(boost.schema)
    stddev = math.sqrt(2) * plan.leaf_mechanism().scales[1]
    assert plan.leaf_signal(400) == pytest.approx(2 * (100 * plan.clip) / stddev)
    tree = wide(PrivaTreeClassifier, max_depth=2)
    plan = tree.make_plan(tree.schema)
    # Exponential noise of scale 1 / rate on each class's count: the variance of a difference is 2 / rate**2.
    assert plan.leaf_signal(400) == pytest.approx(100 / (math.sqrt(2) / plan.labels.rate))
    forest = wide(FederatedGBDTClassifier, n_estimators=16, max_depth=1)
    plan = forest.make_plan(forest.schema)
    assert plan.leaf_signal(200) == pytest.approx(4 * (100 * plan.clip) / plan.leaf_stddevs[1])


@pytest.mark.slow  # several fits
def test_a_ratio_whose_noise_no_number_of_rows_outweighs():
    model = wide(DPBoostRegressor, preset="paper", epsilon=0.01)
    (text,) = leaf_texts(model)
    assert "in a table of any size" in text


def test_the_best_sum_of_trees_has_no_more_signal_than_is_said():
    """Cauchy and Schwarz, by a search: whatever weights the trees get, their sum's ratio is below the bound."""
    signals, noises = RNG.uniform(0, 1, 12), RNG.uniform(0.5, 3, 12)
    bound = math.sqrt(((signals / noises) ** 2).sum())
    weights = np.vstack([RNG.normal(size=(5_000, 12)), signals / noises**2])
    found = (weights @ signals) / np.sqrt(weights**2 @ noises**2)
    assert found.max() <= bound * (1 + 1e-12)
    assert found.max() == pytest.approx(bound)


# ------------------------------------------------------------------------------------------------------------ estimates


def test_columns_whose_estimate_came_out_useless_are_named_in_one_warning():
    many = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "good": many.uniform(1, 100, 4_000),
            "zero": np.zeros(4_000),
            "rare": [f"key {i}" for i in range(4_000)],
            "kind": many.choice(["p", "q"], 4_000),
        }
    )
    model = SGBDTRegressor(epsilon=4.0, n_estimators=2, max_depth=1, schema_share=0.5)
    (text,) = texts(lambda: model.fit(frame, many.uniform(10, 20, 4_000)))
    assert re.search(r"'zero' \(its range \[-\S+e-0\d, \S+e-0\d\] is 0, and noise beside it\)", text)
    assert "'rare' (no category was found, all rows are '(other)')" in text
    assert "'good'" not in text
    assert "'kind'" not in text
    assert "Declare those columns in a Schema" in text
    assert "ensemble_" in vars(model)  # it was paid for


def test_a_class_list_of_one_is_told():
    frame = pd.DataFrame({"a": np.random.default_rng(1).uniform(1, 100, 3_000)})
    labels = np.array(["yes"] * 2_999 + ["no"])
    model = SGBDTClassifier(epsilon=4.0, n_estimators=2, max_depth=1, schema_share=0.5)
    (text,) = texts(lambda: model.fit(frame, labels))
    assert "one class, 'yes', showed in the privately estimated schema" in text


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_bins_of_noise_alone_do_not_stand_out(noise):
    """Of 1500 columns without a row at most 15 are missed: twice what .995 promises, which chance reaches at 1e-2."""
    draws, edges = np.random.default_rng(5), bin_edges(4)
    stddev = 1.0 if noise == "gaussian" else math.sqrt(2.0)
    missed = 0
    for _ in range(1_500):
        counts = draws.normal(size=len(edges) - 1) if noise == "gaussian" else draws.laplace(size=len(edges) - 1)
        low, high = likely_range(counts, edges, per_bin=1.25 * stddev, full=17.0)
        first, last = edges.index(low), edges.index(high)
        missed += counts[first:last].sum() >= STANDS_OUT[noise] * stddev * math.sqrt(last - first)
    assert missed <= 15


# ----------------------------------------------------------------------------------------------------------- no leak


@pytest.mark.slow  # several fits of each estimator
@each_estimator
def test_no_warning_depends_on_a_row(kind, monkeypatch):
    """Neighbours, and other rows altogether, in a process that has fitted nothing: the same words."""
    model, labels = made(kind, epsilon=1e-4, delta=2e-3, expected_rows=1_000, random_state=3)
    heard = []
    for rows, own in ((ROWS, labels), (ROWS[1:], labels[1:]), (ROWS * 0, labels), (ROWS[:5], labels[:5])):
        monkeypatch.setattr(cautions, "_FITS", Counter())
        heard.append(texts(lambda: model.fit(rows, own)))  # noqa: B023
    assert len(heard[0]) == 3
    assert all(each == heard[0] for each in heard)


# -------------------------------------------------------------------------------------------------------- command line


def schema_file(tmp_path):
    schema = lw.Schema(features=(lw.Numeric("a", 0, 1),), target=lw.Numeric("y", 0, 1))
    path = tmp_path / "schema.json"
    path.write_text(schema.to_json())
    rows = tmp_path / "rows.csv"
    rows.write_text("a,y\n" + "\n".join(f"{i / 50},{i / 50}" for i in range(50)))
    return str(path), str(rows)


@pytest.mark.slow  # several fits
def test_the_command_line_prints_warnings_on_standard_error(tmp_path):
    schema, rows = schema_file(tmp_path)
    out = str(tmp_path / "model")
    small = ["--epsilon", "0.0001", "--delta", "0.002", "--expected-rows", "1000", "--json"]
    for command in (
        ["plan", "--schema", schema, *small],
        ["train", rows, "--schema", schema, "--out", out, *small],
    ):
        found = CliRunner().invoke(app, command)
        assert found.exit_code == 0, found.output
        lines = [line for line in found.stderr.splitlines() if line.startswith("warning: ")]
        assert len(lines) == 2, found.stderr
        assert "delta=0.002" in lines[0]
        assert "little but noise" in lines[1]
        json.loads(found.stdout)
    for command in ("sigma --epsilon 1 --delta 0.01", "price --noise-multiplier 2 --delta 0.01"):
        found = CliRunner().invoke(app, command.split())
        assert "warning: delta=0.01" in found.stderr
    assert "warning" not in CliRunner().invoke(app, ["sigma", "--epsilon", "1", "--delta", "1e-5"]).stderr


@pytest.mark.slow  # a process of its own
def test_a_script_hears_each_once_and_can_silence_them():
    script = """
import sys, warnings, numpy as np, ledgerwood as lw
from ledgerwood.trainers import SGBDTRegressor
X = np.random.default_rng(0).uniform(size=(30, 2))
schema = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 1))
model = SGBDTRegressor(schema=schema, n_estimators=1, max_depth=1)
model.fit(X, X[:, 0])
model.fit(X, X[:, 0])
print("silenced", file=sys.stderr)
warnings.simplefilter("ignore", lw.PrivacyWarning)
model.fit(X, X[:, 0])
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    heard = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment, timeout=120
    ).stderr
    loud, silent = heard.split("silenced\n")
    assert loud.count("PrivacyWarning: ") == 1
    assert "<string>:8: PrivacyWarning: this process has fitted columns" in loud
    assert silent == ""
