"""The recommended trees' benchmark: tables as they are, scores by split, comparisons, and the fit of the rule."""

import io
import json

import matplotlib as mpl
import numpy as np
import pytest
from rich.console import Console

from benchmarks import boosting, boosting_pages, boosting_rule, data_sets, whole_tables
from benchmarks.boosting import OURS, PLAIN
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


@pytest.mark.slow_after(1)  # each study once, made small
def test_studies_are_measured_kept_and_shown(monkeypatch, tmp_path):
    monkeypatch.setattr(whole_tables, "load", small)
    path = tmp_path / "found.json"
    common = ["--seeds", "2", "--epsilon", "1", "--save", str(path)]
    chosen = {
        "tables": ["--data", "concrete", "vote", "--model", OURS, "S-GBDT", "PrivaTree", PLAIN],
        "levers": ["--data", "concrete", "--model", "all levers", "even candidates only"],
        "classes": ["--data", "nursery", "california_housing in 10", "--model", OURS, PLAIN],
        "rare": ["--data", "adult, 6% positive: average precision", "--model", OURS],
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
    assert len(boosting_pages.draw(study).axes) == 2


@pytest.mark.slow_after(1)  # fits of each depth and number of trees
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


@pytest.mark.parametrize("name", whole_tables.TABLES)
def test_tables_are_as_they_are_on_disk(name, on_disk):
    data = on_disk(lambda: whole_tables.load(name))
    assert data.X.shape == (len(data.y), len(data.schema.features))
    assert data.schema.check(data.X, data.y).ok


def test_bins_of_a_label_have_equal_size():
    texts = [str(value) for value in np.random.default_rng(1).permutation(100)]
    found = whole_tables.binned(4)(texts)
    assert np.unique(found, return_counts=True)[1].tolist() == [25, 25, 25, 25]
    assert {label for text, label in zip(texts, found, strict=True) if float(text) < 25} == {"0"}
