"""The benchmark of poisoned rows: pictures, triggers, an attack on what is not private, studies that run and draw."""

import gzip
import json

import matplotlib as mpl
import numpy as np
import pytest
from rich.console import Console
from sklearn.tree import DecisionTreeClassifier

from benchmarks import data_sets, poisoning
from benchmarks.utility import Scale
from ledgerwood import Adjacency, Budget, Categorical, Schema
from ledgerwood.trainers import DPXGBoostClassifier

mpl.use("agg")
TINY = Scale(seeds=2, rows=200)
CLAIM = Budget(epsilon=0.1, delta=0.0, adjacency=Adjacency.ADD_REMOVE)


def pictures():
    """Zeros are rings, ones are strokes."""
    found = np.zeros((200, 28, 28))
    labels = np.arange(200) % 2
    noise = np.random.default_rng(0).uniform(0, 50, found.shape)
    found[:, 8:20, 8:20] = noise[:, 8:20, 8:20]
    found[labels == 1, 8:20, 13:15] += 200.0
    found[labels == 0, 8:20, 8] += 200.0
    return found, labels


def small(data, epsilon):
    return DPXGBoostClassifier(
        epsilon=epsilon, schema=data.schema, n_estimators=1, max_depth=2, expected_rows=data.rows
    )


def table(_):
    X = np.random.default_rng(1).uniform(0, 1, (200, 3))
    schema = Schema.uniform(0, 1, n_features=3, target=Categorical("y", (0, 1)))
    return data_sets.Data("adult", X, (X[:, 0] > 0.5).astype(int), schema)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(poisoning, "digits", pictures)
    monkeypatch.setattr(data_sets, "load", table)


def test_a_trigger_is_a_white_corner_of_a_copy_and_maps_are_means_of_squares():
    drawn, _ = pictures()
    before = drawn.copy()
    marked = poisoning.with_trigger(drawn)
    assert (drawn == before).all()
    assert (marked[:, 23:, 23:] == 255.0).all()
    assert (marked != drawn).sum() == 25 * len(drawn)
    assert (poisoning.mapped(drawn, 1) == drawn.reshape(len(drawn), -1)).all()
    pooled = poisoning.mapped(marked, 4)
    assert pooled.shape == (len(drawn), 49)
    assert (pooled[:, 48] == 255.0).all()
    assert pooled[0, 9] == pytest.approx(marked[0, 4:8, 8:12].mean())


@pytest.mark.slow  # reads a data set
def test_digits_are_read_as_pictures(tmp_path, monkeypatch):
    drawn, labels = pictures()
    rows = [
        "pixels,label",
        *(",".join(f"{v:g}" for v in (*row.ravel(), label)) for row, label in zip(drawn, labels, strict=True)),
    ]
    (tmp_path / "mnist_0v1.csv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    monkeypatch.setenv("LEDGERWOOD_DATA", str(tmp_path))
    found, classes = poisoning.digits()
    assert found == pytest.approx(drawn, rel=1e-5)
    assert (classes == labels).all()


def test_a_row_has_the_guarantee_of_the_library_and_the_published_one():
    accuracies = np.array([0.9, 0.92])
    row = poisoning.guarantee_row("x", 0.1, accuracies, CLAIM, 1_000)
    counts = poisoning.poisoned_rows(1_000)
    assert counts.tolist() == [0, 1, 2, 5, 8, 10]
    assert row["published"] == pytest.approx(0.91 * np.exp(-0.1 * counts))
    found = poisoning.poisoning.guaranteed_accuracy(accuracies, CLAIM, rows=counts)
    assert row["guaranteed"] == list(found.guaranteed)
    assert (np.array(row["estimated"]) >= np.array(row["published"]) * (1 - 1e-12)).all()


def test_a_tree_without_privacy_learns_the_backdoor(tiny):
    drawn, labels = pictures()
    X, marked = poisoning.mapped(drawn, 4), poisoning.mapped(poisoning.with_trigger(drawn), 4)
    schema = Schema.uniform(0, 255, n_features=49, target=Categorical("digit", (0, 1)))
    data = data_sets.Data("mnist_0v1", X, labels, schema)
    splits = poisoning.independent(data, TINY)
    tree = poisoning.attacked(data, marked, lambda: DecisionTreeClassifier(max_depth=4), splits, "tree")
    assert tree[0].shape == tree[1].shape == (2, len(poisoning.SHARES))
    assert tree[2] is None
    assert tree[0].min() > 0.95  # accuracy is not hurt
    assert tree[1][:, 0].max() < 0.05  # on clean rows the trigger does nothing
    assert tree[1][:, -1].min() > 0.95  # one row of 140 is enough


@pytest.mark.slow  # each study once, made small
def test_both_studies_run_print_and_draw(tiny, tmp_path, monkeypatch):
    path = tmp_path / "found.json"
    monkeypatch.setattr(poisoning, "QUICK_ROWS", 200)
    monkeypatch.setattr(poisoning, "MAPS", {"7 x 7 means": 4})
    arguments = ["poisoning", "--quick", "--data", "adult", "--save", str(path), "--figures", str(tmp_path)]
    monkeypatch.setattr("sys.argv", arguments)
    poisoning.main(small)
    found = json.loads(path.read_text())
    assert set(found) == {"guarantee", "backdoor"}
    private = found["backdoor"]["7 x 7 means"]["rows"][1]
    assert private["guaranteed"] == sorted(private["guaranteed"])
    assert (np.array(private["estimated"]) <= np.array(private["published"]) + 1e-12).all()
    assert {path.name for path in tmp_path.glob("*.svg")} == {"poisoning_guarantee.svg", "poisoning_backdoor.svg"}
    page = Console(width=200)
    with page.capture() as printed:
        poisoning.print_guarantees(found["guarantee"], page)
    assert "UNSOUND PrivaTree, its paper" in printed.get()
