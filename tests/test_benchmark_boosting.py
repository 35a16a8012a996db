"""The recommended trees' benchmark: tables as they are, scores by split, comparisons, and the fit of the rule."""

import io
import json

import matplotlib as mpl
import numpy as np
import pytest
from rich.console import Console

from benchmarks import (
    boosting,
    boosting_pages,
    boosting_peers,
    boosting_pictures,
    boosting_rule,
    data_sets,
    whole_tables,
)
from benchmarks.boosting import OURS, PLAIN
from benchmarks.boosting_peers import EBM, FOREST
from benchmarks.measuring import holdouts
from ledgerwood import Categorical, Numeric, Schema

mpl.use("agg")
QUIET = Console(quiet=True)


def small(name, relabel=None):
    """A table of 90 rows: numbers, or two classes, or as many as were asked for."""
    generator = np.random.default_rng(0)
    X = generator.uniform(0, 1, (90, 3))
    features = tuple(Numeric(f"x{j}", 0, 1) for j in range(3))
    if relabel is None and name in whole_tables.NUMBERS:
        return data_sets.Data(name, X, X[:, 0], Schema(features=features, target=Numeric("y", 0, 1)))
    labels = [str(value) for value in X[:, 0].tolist()]
    y = np.array(relabel(labels)) if relabel else np.where(X[:, 0] > 0.5, "b", "a")
    return data_sets.Data(name, X, y, Schema(features=features, target=Categorical("y", tuple(sorted(set(y))))))


@pytest.mark.slow  # each study once, made small
def test_studies_are_measured_kept_and_shown(monkeypatch, tmp_path):
    monkeypatch.setattr(whole_tables, "load", small)
    path = tmp_path / "found.json"
    common = ["--seeds", "2", "--epsilon", "1", "--save", str(path)]
    chosen = {
        "tables": ["--data", "concrete", "vote", "--model", OURS, "S-GBDT", "PrivaTree", PLAIN],
        "levers": ["--data", "concrete", "--model", "all levers", "even candidates only"],
        "classes": ["--data", "nursery", "california_housing in 10", "--model", OURS, PLAIN],
        "rare": ["--data", "adult, 6% positive: average precision", "--model", OURS],
        "rows": ["--data", "pol, 500 rows", "--model", OURS, PLAIN],
    }
    for study, options in chosen.items():
        boosting.main(["--study", study, *options, *common])
    found = json.loads(path.read_text())
    assert set(found) == set(chosen)
    assert set(found["tables"]) == {"concrete", "vote"}
    assert found["tables"]["concrete"]["models"]["PrivaTree"] == {}  # it learns classes only
    for task in found["tables"].values():
        assert len(task["models"][OURS]["1"]["scores"]) == 2
        assert set(task["models"][PLAIN]) == {"0"}
    (rare,) = found["rare"].values()
    assert rare["trivial"] == pytest.approx(0.06, abs=0.02)
    console = Console(width=200, record=True, file=io.StringIO())
    study = found["tables"]
    for table in (*boosting_pages.scores(study, "all"), boosting_pages.wins(study), boosting_pages.shares(study)):
        console.print(table)
    console.print(boosting_pages.times(study))
    console.print(boosting_pages.levers(found["levers"]))
    text = console.export_text()
    assert "concrete" in text
    assert "even candidates only" in text
    assert len(boosting_pictures.draw(study).axes) == 2
    assert len(boosting_pictures.draw_shares(study).axes) == 1
    assert len(boosting_pictures.draw_rows(found).axes) == 1


def stored(**models):
    """A task's entry with given scores at epsilon 1 (0 for what is not private)."""
    cells = {
        name: {"0" if name == PLAIN else "1": {"scores": scores, "seconds": [1.0] * len(scores)}}
        for name, scores in models.items()
    }
    return {"models": cells, "measure": "R2", "rows_columns": [1000, 3], "trivial": 0.0}


def shown(*tables):
    """What a console prints."""
    console = Console(width=boosting_pages.WIDTH, record=True, file=io.StringIO())
    for table in tables:
        console.print(table)
    return console.export_text()


def test_losses_are_named_and_missed_targets_are_shown():
    ours = [0.83, 0.81, 0.82, 0.83, 0.82]
    better, worse = [each + 0.05 + 0.001 * k for k, each in enumerate(ours)], [0.1, 0.2, 0.1, 0.2, 0.1]
    found = {"tables": {"pol": stored(**{OURS: ours, "S-GBDT": better, EBM: worse, PLAIN: [0.9] * 5})}}
    lines = shown(boosting_pages.behind(found["tables"])).splitlines()
    (loss,) = [line for line in lines if "pol" in line]
    assert "S-GBDT" in loss
    assert "0.052" in loss
    for together in (True, False):
        text = shown(boosting_pages.wins(found["tables"], together=together))
        assert [line.split("│")[2].strip() for line in text.splitlines() if "S-GBDT" in line] == ["0 / 0 / 1"]
        assert [line.split("│")[2].strip() for line in text.splitlines() if EBM in line] == ["1 / 0 / 0"]
    text = shown(boosting_pages.ahead(found["tables"]))
    assert [line.split("│")[2].strip() for line in text.splitlines() if "S-GBDT" in line] == ["0 / 1 (1)"]
    text = shown(boosting_pages.targets(found))
    assert "0.822 (0.007), 0.82: met" in text
    assert "not measured, 0.9" in text
    found["tables"]["pol"]["models"][OURS]["1"]["scores"] = [0.81, 0.82]
    assert "0.815 (0.005), 0.82: MISSED" in shown(boosting_pages.targets(found))
    assert "0.913, 0.85: met" in text  # the share of the way


def test_learning_curves_end_with_all_rows():
    found = {
        "rows": {"pol, 500 rows": stored(**{OURS: [0.5, 0.6], PLAIN: [0.8]})},
        "tables": {"pol": stored(**{OURS: [0.7, 0.7], EBM: [0.1], PLAIN: [0.9]})},
    }
    curves = boosting_pages.by_rows(found)["pol"]
    assert [rows for rows, _ in curves[OURS]] == [500, 700]
    assert [rows for rows, _ in curves[PLAIN]] == [500, 700]
    assert set(curves) == {OURS, PLAIN}
    text = shown(boosting_pages.growing(found))
    assert "0.550 (0.050)" in text
    assert "700" in text


def test_fewer_rows_leave_the_same_rows_held_out():
    for (train, test), (_, all_of_them) in zip(boosting.shortened(50)(200, 2), holdouts(200, 2), strict=True):
        assert len(set(train)) == 50
        assert test.tolist() == all_of_them.tolist()
        assert not set(train) & set(test)


def test_it_goes_on_where_the_file_stops_and_slow_models_have_three_splits(monkeypatch):
    asked = []

    def outcomes(task, data, model, fits, splits):
        asked.extend(fits)
        yield from ((place, 9.0 if model == "S-GBDT" or epsilon == 4.0 else 0.1) for epsilon, place in fits)

    monkeypatch.setattr(boosting, "outcomes", outcomes)
    task, data = boosting.STUDIES["tables"]["concrete"], small("concrete")
    kept = {"1": {"scores": [7, 8], "seconds": [0.1, 0.1]}}
    found = dict(boosting.measured(task, data, "federated", (1.0, 4.0), 5, kept))
    assert found[1.0]["scores"] == [7, 8, 2, 3, 4]
    assert found[4.0]["scores"] == [0, 1, 2]  # too slow for more
    assert asked == [(1.0, 2), (4.0, 0), (4.0, 1), (4.0, 2), (1.0, 3), (1.0, 4)]
    assert dict(boosting.measured(task, data, OURS, (4.0,), 5, {}))[4.0]["scores"] == [0, 1, 2, 3, 4]
    assert dict(boosting.measured(task, data, "S-GBDT", (1.0,), 5, {}))[1.0]["scores"] == [0, 1, 2]
    asked.clear()
    assert list(boosting.measured(task, data, "federated", (1.0,), 5, {"1": found[1.0]})) == []
    assert asked == []


# ------------------------------------------------------------------------------------------------------------- peers


def with_gaps():
    """Numbers, one of them missing, and categories, one of them unknown."""
    X = np.array([[0.5, "red"], [np.nan, "green"], [7.0, None], [-3.0, "blue"]] * 10, dtype=object)
    features = (Numeric("x", -1, 5, missing=True), Categorical("colour", ("red", "green"), missing=True))
    y = np.array(["no", "yes"] * 20)
    return data_sets.Data("gaps", X, y, Schema(features=features, target=Categorical("y", ("no", "yes"))))


def test_peers_read_codes_within_declared_bounds():
    data = with_gaps()
    splits = list(holdouts(data.rows, 2))
    table = boosting_peers.table_of(data, splits)
    assert table["X"][:4].tolist() == [[0.5, 0.0], [2.0, 1.0], [5.0, 2.0], [-1.0, 2.0]]
    assert table["nominal"].tolist() == [False, True]
    assert (table["low"] <= table["X"]).all()
    assert (table["X"] <= table["high"]).all()
    assert table["y"].tolist() == [0, 1] * 20
    assert table["test1"].tolist() == splits[1][1].tolist()
    assert boosting_peers.table_of(small("concrete"), splits)["target"].tolist() == [0.0, 1.0]


def test_what_peers_learn():
    several = small("nursery", whole_tables.binned(3))
    assert [boosting_peers.learns(EBM, data) for data in (small("concrete"), small("vote"), several)] == [1, 1, 0]
    assert [boosting_peers.learns(FOREST, data) for data in (small("concrete"), small("vote"), several)] == [0, 1, 1]


@pytest.mark.parametrize("peer", [EBM, FOREST])
def test_a_peers_answers_are_scored_as_an_estimators(monkeypatch, peer):
    """A peer that knows the label has AUC 1, whatever environment it would run in."""

    def run(name, requirements, script, given):
        assert script.is_file()
        table = dict(np.load(given["table"]))
        found = {}
        for place, (epsilon, split) in enumerate(given["fits"]):
            truth = table["y"][table[f"test{split}"]] if epsilon > 1.0 else np.zeros(12)
            found |= {f"fit{place}": np.column_stack([1.0 - truth, truth]), f"seconds{place}": 0.5}
        np.savez(given["table"], **found)
        return "done"

    monkeypatch.setattr(boosting_peers.peers, "run", run)
    task, data = boosting.STUDIES["tables"]["vote"], with_gaps()
    found = dict(boosting.measured(task, data, peer, (1.0, 4.0), 2, {}))
    assert found[1.0] == {"scores": [0.5, 0.5], "seconds": [0.5, 0.5]}
    assert found[4.0]["scores"] == [1.0, 1.0]
    monkeypatch.setattr(boosting_peers.peers, "run", lambda *_: None)
    assert list(boosting.measured(task, data, peer, (1.0,), 2, {})) == []


def test_a_peers_classes_and_numbers():
    found = boosting_peers.Predicted(np.array(["a", "b", "c"]), np.array([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]]))
    assert found.predict(np.zeros((2, 1))).tolist() == ["b", "a"]
    assert boosting_peers.Predicted(np.array([]), np.array([2.5])).predict(np.zeros((1, 1))).tolist() == [2.5]


@pytest.mark.slow  # fits of each depth and number of trees
def test_the_rule_is_fitted_without_each_table(monkeypatch, tmp_path):
    monkeypatch.setattr(whole_tables, "load", small)
    monkeypatch.setattr(boosting_rule, "EPSILONS", (1.0,))
    monkeypatch.setattr(boosting_rule, "DEPTHS", (3, 4))
    monkeypatch.setattr(boosting_rule, "TREES", (2, 4))
    path = tmp_path / "rule.json"
    found = boosting_rule.measure(("concrete", "vote"), 1, 80, path, QUIET)
    assert set(found["vote"]["scores"]["1"]) == {"3 x 2", "3 x 4", "4 x 2", "4 x 4"}
    monkeypatch.setattr(boosting_rule, "made", None)  # all that is there is not measured again
    assert boosting_rule.measure(("concrete", "vote"), 1, 80, path, QUIET) == found


def cells(best):
    """A table whose best depth is known at each of four budgets: no loss there, and .1 for each level beside it."""
    for table, epsilon in [(name, e) for name in "abc" for e in (0.1, 0.5, 1.0, 4.0)]:
        evidence = epsilon * 3000.0
        right = best.choice(evidence, squared=True)
        settings = [(depth, trees) for depth in (3, 4, 5, 6) for trees in (256, 512, 1024)]
        lost = {
            key: 0.1 * abs(key[0] - right[0]) + 0.05 * abs(np.log2(key[1] / right[1])) for key in settings
        }  # fmt: skip
        yield boosting_rule.Cell(
            table=table, epsilon=epsilon, squared=True, evidence=evidence, lost=lost,
            score={key: 1.0 - value for key, value in lost.items()},
        )  # fmt: skip


def test_constants_that_lose_nothing_are_found():
    for best in (boosting_rule.OWN, boosting_rule.Constants(60.0, 5.0, 2000.0)):
        assert best in boosting_rule.GRID
        known = list(cells(best))
        found = boosting_rule.fitted(known)
        assert boosting_rule.loss(found, known) == pytest.approx(0.0)
        assert set(boosting_rule.left_out(known)) == {"a", "b", "c"}
    assert boosting_rule.fitted(list(cells(boosting_rule.OWN))) == boosting_rule.OWN


def test_gains_are_paired_and_have_the_measures_sign():
    ours, other = [0.80, 0.70, 0.90, 0.85], [0.79, 0.68, 0.89, 0.83]
    gain, p = boosting_pages.gain(ours, other, "AUC")
    assert gain == pytest.approx(0.015)
    assert p == pytest.approx(0.0137, abs=1e-3)  # t = .015 / (.005774 / 2) = 5.196, three degrees of freedom
    assert boosting_pages.gain(ours, other, "RMSE")[0] == pytest.approx(-0.015)
    assert boosting_pages.gain(ours, ours, "AUC") == (0.0, 1.0)
    assert boosting_pages.gain(ours, other[:2], "AUC")[0] == pytest.approx(0.015)


def test_holms_method():
    found = boosting_pages.adjusted({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"d": 0.02, "a": 0.03, "c": 0.06, "b": 0.06})


@pytest.mark.slow_after(1)  # reads whole tables
@pytest.mark.parametrize("name", [*whole_tables.TABLES, *whole_tables.SEVERAL, "mnist_0v1"])
def test_tables_are_as_they_are_on_disk(name, on_disk):
    data = on_disk(lambda: whole_tables.load(name))
    assert data.X.shape == (len(data.y), len(data.schema.features))
    assert data.schema.check(data.X, data.y).ok


def test_bins_of_a_label_have_equal_size():
    texts = [str(value) for value in np.random.default_rng(1).permutation(100)]
    found = whole_tables.binned(4)(texts)
    assert np.unique(found, return_counts=True)[1].tolist() == [25, 25, 25, 25]
    assert {label for text, label in zip(texts, found, strict=True) if float(text) < 25} == {"0"}
