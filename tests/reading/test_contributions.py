"""Contributions against Shapley's formula over all sets of features, with the traversal by itself as the game."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading import TreeModel, contributions
from ledgerwood.reading import shapley as kernels
from ledgerwood.reading.contributions import contributions_of
from ledgerwood.trainers import PrivaTreeClassifier, SGBDTClassifier, SGBDTRegressor
from tests.reading.models import CELLS, MODELS, NUMBER, expected_output, random_cells, random_model


def by_subsets(model, row):
    """Shapley's formula: the mean over all orders of what a feature changes."""
    n = len(CELLS)
    game = {
        frozenset(given): expected_output(model, {place: int(row[place]) for place in given})
        for size in range(n + 1)
        for given in itertools.combinations(range(n), size)
    }
    found = np.zeros((n, len(model.outputs)))
    for place in range(n):
        for given, output in game.items():
            if place not in given:
                weight = math.factorial(len(given)) * math.factorial(n - 1 - len(given)) / math.factorial(n)
                found[place] += weight * (game[given | {place}] - output)
    return game[frozenset()], found


def totals_of(model, cells):
    scores = model.ensemble.scores(cells)
    if model.labels:
        return np.eye(len(model.classes))[scores.astype(int)]
    if not model.classes:
        return 1.0 + (scores[:, np.newaxis] + 1.0) * 14.0
    return scores.reshape(cells.shape[1], -1)


@pytest.mark.parametrize("name", MODELS)
def test_they_are_shapleys_values(name):
    model, cells = MODELS[name], random_cells(6, seed=7)
    found = contributions_of(model, cells)
    for row, own in zip(cells.T, found.values, strict=True):
        base, expected = by_subsets(model, row)
        np.testing.assert_allclose(found.base, base, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(own, expected, rtol=1e-10, atol=1e-13)
    if name != "a forest a class":
        np.testing.assert_allclose(found.totals, totals_of(model, cells), rtol=1e-12, atol=1e-13)


def test_deep_trees_are_gone_through_without_a_table(monkeypatch):
    model, cells = random_model(NUMBER, depth=5, seed=11), random_cells(20, seed=1)
    tabled = contributions_of(model, cells)
    monkeypatch.setattr(kernels, "TABLE_DEPTH", 0)
    direct = contributions_of(model, cells)
    np.testing.assert_allclose(direct.values, tabled.values, rtol=1e-12, atol=1e-15)
    deep = random_model(NUMBER, trees=1, depth=9, seed=12)
    found = contributions_of(deep, cells)
    np.testing.assert_allclose(found.totals, totals_of(deep, cells), rtol=1e-12)
    base, expected = by_subsets(deep, cells[:, 0])
    np.testing.assert_allclose(found.values[0], expected, rtol=1e-9, atol=1e-13)


NUMBERS = lw.Schema.uniform(0.0, 1.0, n_features=3, target=lw.Numeric("y", 10, 20))
CLASSES = lw.Schema.uniform(0.0, 1.0, n_features=3, target=lw.Categorical("y", ("a", "b", "c")))
X = np.random.default_rng(0).uniform(-0.2, 1.2, size=(150, 3))


def test_of_estimators_they_add_up_to_what_is_predicted():
    model = SGBDTRegressor(schema=NUMBERS, random_state=0, n_estimators=5, max_depth=3)
    with pytest.warns(lw.PrivacyWarning):
        model.fit(X, 10.0 + 10.0 * X[:, 0])
    found = contributions(model, X[:20])
    np.testing.assert_allclose(np.clip(found.totals[:, 0], 10.0, 20.0), model.predict(X[:20]), rtol=1e-12)
    assert found.names == ("x0", "x1", "x2")
    assert len(found) == 20
    classes = SGBDTClassifier(schema=CLASSES, random_state=0, n_estimators=2)
    labels = np.array(["a", "b", "c"])[np.clip(3 * X[:, 1], 0, 2).astype(int)]
    with pytest.warns(lw.PrivacyWarning):
        classes.fit(X, labels)
    found = contributions(classes, X[:20])
    np.testing.assert_allclose(found.totals, classes.decision_function(X[:20]), rtol=1e-12, atol=1e-14)
    assert found.outputs == ("'a'", "'b'", "'c'")
    tree = PrivaTreeClassifier(schema=CLASSES, random_state=0)
    with pytest.warns(lw.PrivacyWarning):
        tree.fit(X, labels)
    np.testing.assert_allclose(contributions(tree, X).totals, tree.predict_proba(X), atol=1e-12)


def test_a_row_in_words():
    model, cells = MODELS["number"], random_cells(3)
    found = contributions_of(model, cells)
    lines = found.row_text(1).splitlines()
    assert lines[0].split()[:2] == ["base", "value"]
    assert float(lines[-1].split()[-1]) == pytest.approx(found.totals[1, 0], rel=1e-3)
    assert len(lines) == 2 + len(found.names)
    assert str(found).startswith("contributions of 4 features to rings of 3 rows, in rings; base ")
    for row, output in ((3, 0), (0, 1), (-1, 0)):
        with pytest.raises(InvalidParameter, match="below 3 rows and 1 outputs"):
            found.row_text(row, output)
    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 0.0


def test_rows_by_themselves_have_what_they_have_together():
    model, cells = MODELS["shared classes"], random_cells(40)
    together = contributions_of(model, cells).values
    assert np.array_equal(contributions_of(model, cells[:, 5:9]).values, together[5:9])


def test_a_model_without_an_estimator_reads_rows_by_its_schema():
    schema = NUMBERS
    bare = TreeModel(ensemble=dataclasses.replace(MODELS["number"].ensemble, trees=()), schema=schema, max_bins=4)
    found = contributions(bare, X)
    assert not found.values.any()
    assert found.totals[:, 0].tolist() == [16.25] * len(X)
