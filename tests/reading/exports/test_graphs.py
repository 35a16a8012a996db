"""ONNX graphs predict what the models predict: labels, probabilities, scores and numbers, for every system."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from sklearn.base import is_regressor

import ledgerwood as lw
from ledgerwood.curator import encode_features
from ledgerwood.ensemble import Ensemble
from ledgerwood.reading import TreeModel, encoded_rows, to_onnx

from .conftest import every_case, fit, labels
from .test_boosters import every_kind_of_row, random_model


def run(model, rows):
    """The outputs by name."""
    graph = to_onnx(model)
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


def assert_same(model, X):
    found = run(model, encoded_rows(model, X))
    if is_regressor(model):
        assert list(found) == ["variable"]
        np.testing.assert_allclose(found["variable"][:, 0], model.predict(X), rtol=1e-6)
        return
    assert list(found) == ["label", "probabilities", "scores"]
    np.testing.assert_array_equal(found["label"], model.predict(X))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=1e-6)
    if hasattr(model, "decision_function"):
        expected = model.decision_function(X).reshape(len(X), -1)
        np.testing.assert_allclose(found["scores"], expected, rtol=1e-6, atol=1e-9)


@pytest.mark.slow_after(9)  # one fit each
@every_case
def test_a_graph_predicts_as_its_model(case, fitted, rows):
    assert_same(fitted(*case), rows)


@pytest.mark.parametrize("clip", [1.0, 0.3])
def test_links_without_a_clip_and_with_a_small_one(clip, rows):
    assert_same(fit("SGBDTClassifier", "two weighted", clip=clip), rows)
    assert_same(fit("PrivateBoostingClassifier", "three", clip=2.0 * clip), rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("classes", [0, 2, 5])
def test_trees_with_every_kind_of_test(seed, classes):
    model = random_model(seed, (classes,) if classes else (), classes=classes)
    X = every_kind_of_row(seed)
    expected = model.ensemble.scores(encode_features(X, model.schema, bins=model.max_bins))
    found = run(model, encoded_rows(model, X))
    if classes == 0:
        np.testing.assert_allclose(found["variable"][:, 0], np.clip(expected, -1.0, 1.0), rtol=1e-6)
    else:
        expected = (expected[:, 1] - expected[:, 0])[:, np.newaxis] if classes == 2 else expected
        np.testing.assert_allclose(found["scores"], expected, rtol=1e-6)


@pytest.mark.parametrize("classes", [(False, True), ("no", "yes"), (3, -1), (0.5, 1.5)])
def test_labels_have_the_type_of_the_classes(classes, rows):
    schema = lw.Schema(features=(lw.Numeric("length", 0.1, 0.7),), target=lw.Categorical("y", classes))
    X, y = rows[["length"]], np.array(classes)[labels(rows, "two")]
    model = lw.trainers.SGBDTClassifier(schema=schema, random_state=0, n_estimators=2).fit(X, y)
    found = run(model, encoded_rows(model, X))["label"]
    assert found.dtype.kind == {"U": "O"}.get(model.classes_.dtype.kind, model.classes_.dtype.kind)
    np.testing.assert_array_equal(found, model.predict(X))


def test_an_only_class_is_certain():
    schema = lw.Schema(features=(lw.Numeric("x", 0, 1),), target=lw.Categorical("y", ("all",)))
    model = TreeModel(ensemble=Ensemble(initial_score=0.5), schema=schema, max_bins=4)
    assert run(model, np.zeros((2, 1), np.float32))["scores"].tolist() == [[0.5], [0.5]]


def test_its_metadata_hold_the_privacy_statement(fitted):
    model = fitted("SGBDTClassifier", "three")
    notes = {each.key: each.value for each in to_onnx(model).metadata_props}
    statement = json.loads(notes["ledgerwood_privacy"])
    assert (statement["randomness"], statement["epsilon"], statement["certified"]) == ("test", None, False)
    assert json.loads(notes["ledgerwood_target"]) == {"name": "y", "categories": ["high", "low", "middle"]}


def test_a_missing_package_is_named(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'ledgerwood\[onnx\]'"):
        to_onnx(fitted("SGBDTRegressor", "number"))
