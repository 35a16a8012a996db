"""The law of all readers: what they say depends on the model alone, and no row of the training takes part."""

import dataclasses

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import reading
from ledgerwood.displays import ExplanationDisplay, ImportanceDisplay, PartialDependenceDisplay, TreeDisplay
from ledgerwood.reading import TreeModel
from ledgerwood.trainers import PrivaTreeClassifier, SGBDTRegressor

X = np.random.default_rng(0).uniform(size=(150, 3))
ASKED = np.random.default_rng(1).uniform(size=(7, 3))
NUMBERS = lw.Schema.uniform(0.0, 1.0, n_features=3, target=lw.Numeric("y", 0, 1))
CLASSES = lw.Schema.uniform(0.0, 1.0, n_features=3, target=lw.Categorical("y", ("a", "b")))


def everything(model):
    """All that the readers say of a model, and of the caller's rows, as comparable values."""
    shown = {
        "text": reading.export_text(model),
        "covers": [each.tolist() for each in reading.node_covers(model).shares],
        "importances": str(reading.importances(model)),
        "effect": reading.partial_dependence(model, "x0").values.tolist(),
        "pair": reading.partial_dependence(model, ("x0", "x2")).values.tolist(),
        "explanation": str(reading.explain(model)),
        "drawing": reading.draw_tree(model).svg(),
        "contributions": reading.contributions(model, ASKED).values.tolist(),
        "displays": [
            each.alt
            for each in (
                TreeDisplay.from_estimator(model),
                ImportanceDisplay.from_estimator(model),
                PartialDependenceDisplay.from_estimator(model, "x1"),
                ExplanationDisplay.from_estimator(model),
            )
        ],
    }
    if TreeModel.of(model).labels:
        shown["rules"] = [str(rule) for rule in reading.released_rules(model)]
    return shown


def fitted(kind, X, y, schema):
    model = kind(schema=schema, random_state=0, epsilon=5.0, max_depth=2)
    if kind is SGBDTRegressor:
        model.n_estimators = 4
    with pytest.warns(lw.PrivacyWarning):
        return model.fit(X, y)


@pytest.mark.parametrize("kind", [SGBDTRegressor, PrivaTreeClassifier])
def test_readers_say_the_same_of_a_model_that_was_saved_and_of_its_public_parts(kind, tmp_path):
    schema = NUMBERS if kind is SGBDTRegressor else CLASSES
    y = X[:, 0] if kind is SGBDTRegressor else np.where(X[:, 0] > 0.5, "a", "b")
    model = fitted(kind, X, y, schema)
    said = everything(model)
    model.save(tmp_path / "model")  # released values only: see tests of saving
    assert everything(kind.load(tmp_path / "model")) == said
    # Nothing but trees, schema and bins: no attribute of the estimator, nor anything that it may remember of its rows.
    public = TreeModel(
        ensemble=model.ensemble_, schema=schema, max_bins=model.plan_.max_bins, labels=kind is PrivaTreeClassifier
    )
    said["text"] = said["text"].partition("\n")[2]  # but for the line on the privacy of the fit
    assert everything(public) == said


def test_other_rows_with_the_same_releases_are_read_alike():
    """Two models of different rows, whose released trees are exchanged, exchange all that the readers say."""
    one = fitted(SGBDTRegressor, X, X[:, 0], NUMBERS)
    other = fitted(SGBDTRegressor, X[:100], 1.0 - X[:100, 1], NUMBERS)
    said = everything(one), everything(other)
    assert said[0] != said[1]
    one.ensemble_, other.ensemble_ = other.ensemble_, one.ensemble_
    assert (everything(other), everything(one)) == said


@pytest.mark.filterwarnings("ignore::ledgerwood.PrivacyWarning")
def test_what_trees_keep_is_a_function_of_releases():
    """Weights and noise of leaves too: a fit on a neighbour that is given the same releases ends in the same trees."""

    def fit(data):
        return SGBDTRegressor(schema=NUMBERS, random_state=0, n_estimators=4, max_depth=2).fit(*data).ensemble_

    data, neighbour = (X, X[:, 0]), (X[1:], X[1:, 0])
    assert all(tree.weights is not None and tree.noise is not None for tree in fit(data).trees)
    assert lw.verification.replay(fit, data, neighbour).ok

    def telling(data):
        ensemble = fit(data)
        first = dataclasses.replace(ensemble.trees[0], weights=ensemble.trees[0].weights + float(len(data[0])))
        return dataclasses.replace(ensemble, trees=(first, *ensemble.trees[1:]))

    assert not lw.verification.replay(telling, data, neighbour).ok
