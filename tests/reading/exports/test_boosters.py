"""XGBoost's boosters predict what the models predict, for every system and at every threshold; shares explain them."""

import json
import sys
import warnings

import numpy as np
import pytest
import xgboost
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import ledgerwood as lw
from ledgerwood.curator import encode_features
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading import TreeModel, booster_rows, encoded_rows, node_covers, to_onnx, to_xgboost
from ledgerwood.reading.exports.rows import least_floats
from ledgerwood.trainers import PrivateSearch, SchemaScaler, SGBDTClassifier, SGBDTRegressor

from .conftest import FEATURES, TARGETS, every_case, fit, labels


@pytest.fixture(scope="module")
def shap():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        import shap
    return shap


def assert_near(found, expected):
    """Within 1e-5 of the number, or of the largest where a sum is near 0."""
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def predicted(booster, rows):
    return booster.predict(xgboost.DMatrix(rows), validate_features=False)


def scores(model, X):
    """What the booster of a classifier predicts."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    marks = model.predict_proba(X)
    return marks[:, 1] if marks.shape[1] == 2 else marks


def assert_same(model, booster, X):
    found = booster.predict(booster_rows(model, X))
    if is_regressor(model):
        target = model.schema_.target
        assert_near(np.clip(found, target.low, target.high), model.predict(X))
    else:
        assert_near(found, scores(model, X))


@every_case
def test_a_booster_predicts_as_its_model(case, fitted, rows):
    model = fitted(*case)
    booster = to_xgboost(model)
    assert_same(model, booster, rows)
    assert booster.feature_names == list(rows.columns)
    assert booster.feature_types == ["float", "c", "float", "c"]
    saved = xgboost.Booster()
    saved.load_model(booster.save_raw("ubj"))
    assert_same(model, saved, rows)


@pytest.mark.parametrize("case", [("SGBDTClassifier", "three"), ("DPXGBoostRegressor", "number")])
def test_a_loaded_model_is_exported_as_the_fitted_one(case, fitted, tmp_path):
    model = fitted(*case)
    model.save(tmp_path / "model")
    loaded = type(model).load(tmp_path / "model")
    assert to_xgboost(loaded).save_raw("json") == to_xgboost(model).save_raw("json")


@pytest.mark.parametrize("name", ["SGBDTRegressor", "DPXGBoostRegressor", "PrivateBoostingRegressor"])
def test_raw_numbers_go_as_in_the_model_at_each_threshold_and_beside_it(name, rows):
    target = TARGETS["number"]
    schema = lw.Schema(
        features=(lw.Numeric("length", 0.1, 0.7), lw.Numeric("weight", -1, 1, missing=True)), target=target
    )
    X = rows[["length", "weight"]].to_numpy()
    model = getattr(lw.trainers, name)(schema=schema, epsilon=5.0, random_state=1, n_estimators=9, max_bins=16)
    model.fit(X, labels(rows, "number"))
    own = [least_floats(feature, 16) for feature in schema.features]
    up, down = np.float32(np.inf), np.float32(-np.inf)
    largest = np.finfo(np.float32).max
    points = [
        np.concatenate([np.nextafter(each, down), each, np.nextafter(each, up), [np.nan, 0.0, -largest, largest]])
        for each in own
    ]
    raw = np.array([(one, other) for one in points[0] for other in points[1]], dtype=np.float32)
    found = predicted(to_xgboost(model), raw)
    assert_near(np.clip(found, target.low, target.high), model.predict(raw))


def random_model(seed, values, *, bins=8, classes=0):
    """Trees of every kind of test: thresholds, missing values, categories and sets of them."""
    features = (*FEATURES, lw.Categorical("town", tuple(range(300))))
    target = lw.Categorical("y", tuple(range(classes))) if classes else lw.Numeric("y", -1, 1)
    schema = lw.Schema(features=features, target=target)
    tests = SplitTests.every(schema.cells(bins), set_categories=5)
    generator = np.random.default_rng(seed)
    trees = []
    for depth in (0, 4, 6):
        structure = TreeStructure.root()
        for _ in range(depth):
            structure = structure.deeper(tests.taken(generator.integers(-1, len(tests), structure.n_leaves)))
        trees.append(Tree(structure=structure, values=generator.normal(size=(structure.n_leaves, *values))))
    ensemble = Ensemble(initial_score=0.25, trees=tuple(trees), class_scores=tuple(np.arange(classes) / 4.0))
    return TreeModel(ensemble=ensemble, schema=schema, max_bins=bins)


def every_kind_of_row(seed, n=500):
    generator = np.random.default_rng(seed)
    columns = [
        generator.uniform(0, 1, n).astype(np.float32), generator.random(n) < 0.5,
        np.where(generator.random(n) < 0.3, np.nan, generator.uniform(-1.5, 1.5, n)).astype(np.float32),
        generator.choice(["red", "green", "blue", "grey", "odd", None], n), generator.integers(-1, 301, n),
    ]  # fmt: skip
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("classes", [0, 2, 5])
def test_trees_with_every_kind_of_test(seed, classes):
    model = random_model(seed, (classes,) if classes else (), classes=classes)
    X = every_kind_of_row(seed)
    expected = model.ensemble.scores(encode_features(X, model.schema, bins=model.max_bins))
    expected = expected[:, 1] - expected[:, 0] if classes == 2 else expected
    assert_near(predicted(to_xgboost(model), encoded_rows(model, X)), expected)


@pytest.mark.parametrize("target", ["number", "two", "three"])
def test_shap_explains_it(target, fitted, rows, shap):
    model = fitted("SGBDTRegressor" if target == "number" else "SGBDTClassifier", target)
    booster = to_xgboost(model)
    explainer = shap.TreeExplainer(booster)
    encoded = encoded_rows(model, rows)
    found = explainer.shap_values(encoded)
    expected = predicted(booster, encoded)
    assert_near(found.sum(axis=1) + explainer.expected_value, expected)
    # The value of no feature known is the mean of the leaves by the shares of the rows.
    if target != "three":
        covers = node_covers(model).shares
        leaves = [
            share[tree.structure.n_leaves - 1 :] for share, tree in zip(covers, model.ensemble_.trees, strict=True)
        ]
        mean = sum(share @ tree.values for share, tree in zip(leaves, model.ensemble_.trees, strict=True))
        half = 5.0 if target == "number" else 1.0
        offset = 7.0 if target == "number" else 0.0
        assert_near(explainer.expected_value, offset + half * (model.ensemble_.initial_score + mean))


def test_shap_reads_the_trees_of_numbers_alone(rows, shap):
    schema = lw.Schema(features=(FEATURES[0], FEATURES[2]), target=TARGETS["two"])
    X = rows[["length", "weight"]]
    model = SGBDTClassifier(schema=schema, random_state=1, n_estimators=5).fit(X, labels(rows, "two"))
    encoded = encoded_rows(model, X)
    explainer = shap.TreeExplainer(to_xgboost(model), encoded[:50], feature_perturbation="interventional")
    found = explainer.shap_values(encoded)
    assert_near(found.sum(axis=1) + explainer.expected_value, model.decision_function(X))


def test_covers_and_gains_are_of_released_shares(fitted):
    model = fitted("SGBDTClassifier", "two")
    (first, *_), covers = (
        json.loads(to_xgboost(model).save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"],
        node_covers(model),
    )
    share = covers.shares[0]
    assert first["sum_hessian"][0] == 1.0
    assert set(np.float32(first["sum_hessian"])) == set(np.float32(share[share > 0.0]))
    scores = to_xgboost(model).get_score(importance_type="total_gain")
    assert set(scores) <= {feature.name for feature in FEATURES}
    assert max(scores, key=scores.get) == "length"  # by which the labels were made


@pytest.mark.parametrize("target", ["two", "two weighted"])
def test_probabilities_of_two_classes_are_a_sigmoid_where_no_gradient_is_clipped(target, rows):
    model = fit("SGBDTClassifier", target, clip=1.0)
    booster = to_xgboost(model, output="probability")
    np.testing.assert_allclose(booster.predict(booster_rows(model, rows)), model.predict_proba(rows)[:, 1], rtol=1e-5)


@pytest.mark.parametrize("target", ["three", "three weighted"])
def test_probabilities_of_shared_trees_are_a_softmax_where_no_gradient_is_clipped(target, rows):
    model = fit("PrivateBoostingClassifier", target, clip=1.5)
    booster = to_xgboost(model, output="probability")
    np.testing.assert_allclose(booster.predict(booster_rows(model, rows)), model.predict_proba(rows), rtol=1e-5)
    assert_near(to_xgboost(model).predict(booster_rows(model, rows)), model.decision_function(rows))


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (("SGBDTRegressor", "number"), "a regressor predicts labels"),
        (("SGBDTClassifier", "two"), "clipped at 0.5"),
        (("PrivateBoostingClassifier", "three"), "clipped at 0.5"),
        (("SGBDTClassifier", "three"), "divides each class's own probability"),
        (("DPBoostClassifier", "two"), r"clamped to \[0, 1\]"),
    ],
)
def test_probabilities_that_xgboost_cannot_make_are_refused(case, why, fitted):
    with pytest.raises(InvalidParameter, match=why):
        to_xgboost(fitted(*case), output="probability")


def test_labels_of_a_leaf_are_marks_with_either_output(fitted, rows):
    for target in ("two", "three"):
        model = fitted("PrivaTreeClassifier", target)
        one, other = (to_xgboost(model, output=output) for output in ("score", "probability"))
        np.testing.assert_array_equal(one.predict(booster_rows(model, rows)), scores(model, rows))
        np.testing.assert_array_equal(other.predict(booster_rows(model, rows)), scores(model, rows))


def test_a_model_without_trees_predicts_where_it_starts():
    model = random_model(0, ())
    model = TreeModel(ensemble=Ensemble(initial_score=0.25), schema=model.schema, max_bins=8)
    np.testing.assert_array_equal(predicted(to_xgboost(model), np.zeros((3, 5), np.float32)), [0.25] * 3)
    classes = random_model(0, (3,), classes=3)
    classes = TreeModel(ensemble=Ensemble.of_classes((0.5, 0.0, -2.0)), schema=classes.schema, max_bins=8)
    np.testing.assert_array_equal(predicted(to_xgboost(classes), np.zeros((2, 5), np.float32)), [[0.5, 0.0, -2.0]] * 2)


def test_its_notes_say_that_a_seed_voids_the_guarantee(fitted):
    notes = to_xgboost(fitted("SGBDTRegressor", "number")).attributes()
    statement = json.loads(notes["ledgerwood_privacy"])
    assert statement["epsilon"] is None
    assert statement["certified"] is False
    assert statement["randomness"] == "test"
    assert json.loads(notes["ledgerwood_features"])[1] == {"name": "sold", "categories": [False, True]}


def test_the_last_step_of_a_pipeline_is_exported_and_the_pipeline_is_not(rows):
    schema = lw.Schema(features=(FEATURES[0], FEATURES[2]), target=TARGETS["number"])
    scaler = SchemaScaler(schema)
    X, y = rows[["length", "weight"]], labels(rows, "number")
    pipe = make_pipeline(scaler, SGBDTRegressor(schema=scaler.fit(X).schema_out_, random_state=0, n_estimators=3)).fit(
        X, y
    )
    with pytest.raises(InvalidParameter, match=r"give model\[-1\]"):
        to_xgboost(pipe)
    model, scaled = pipe[-1], pipe[:-1].transform(X)
    assert_near(to_xgboost(model).predict(booster_rows(model, scaled)), np.clip(pipe.predict(X), 2.0, 12.0))


def test_the_best_model_of_a_search_is_exported(rows):
    schema = lw.Schema(features=FEATURES, target=TARGETS["number"])
    search = PrivateSearch(
        estimator=SGBDTRegressor(n_estimators=2, max_depth=2),
        schema=schema,
        candidates=[{"learning_rate": 0.1}, {"learning_rate": 0.5}],
        epsilon=5.0,
        delta=1e-5,
        mean_runs=2.0,
        random_state=0,
    )
    with pytest.raises(NotFittedError):
        to_xgboost(search)
    search.fit(rows, labels(rows, "number"))
    assert to_xgboost(search).save_raw("json") == to_xgboost(search.best_estimator_).save_raw("json")


@pytest.mark.parametrize("export", [to_xgboost, to_onnx])
def test_a_target_beyond_float32_is_refused(export):
    model = random_model(0, ())
    schema = lw.Schema(features=model.schema.features, target=lw.Numeric("y", 0.0, 1e300))
    with pytest.raises(InvalidParameter, match="another unit"):
        export(TreeModel(ensemble=model.ensemble, schema=schema, max_bins=model.max_bins))


@pytest.mark.parametrize("name", ["PrivateBoostingClassifier", "SGBDTRegressor"])
def test_a_model_with_an_estimated_schema(name, rows):
    y = labels(rows, "number" if name.endswith("Regressor") else "three")
    model = getattr(lw.trainers, name)(epsilon=50.0, delta=1e-3, random_state=0, n_estimators=33, max_depth=2)
    model.fit(rows[["length", "weight", "sold"]], y)
    assert_same(model, to_xgboost(model), rows[["length", "weight", "sold"]])


def test_a_schema_of_one_range_takes_any_names(rows):
    schema = lw.Schema.uniform(-1.0, 1.0, target=TARGETS["number"])
    X = rows[["length", "weight"]].fillna(0.0)
    model = SGBDTRegressor(schema=schema, random_state=0, n_estimators=3).fit(X, labels(rows, "number"))
    assert to_xgboost(model).feature_names == ["x0", "x1"]
    assert_same(model, to_xgboost(model), X)


def test_frames_of_numbers_may_be_given_as_they_are(rows):
    schema = lw.Schema(features=(FEATURES[0], FEATURES[2]), target=TARGETS["number"])
    X = rows[["weight", "length"]]
    model = SGBDTRegressor(schema=schema, random_state=0, n_estimators=3).fit(X, labels(rows, "number"))
    found = to_xgboost(model).predict(xgboost.DMatrix(X[["length", "weight"]]))
    assert_near(np.clip(found, 2.0, 12.0), model.predict(X))
    with pytest.raises(ValueError, match="feature_names mismatch"):
        to_xgboost(model).predict(xgboost.DMatrix(X))


class OwnWay(SGBDTClassifier):
    """Predicts by a rule of its own."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


def test_what_cannot_be_exported_is_refused(fitted, rows):
    with pytest.raises(InvalidParameter, match="releases no trees"):
        to_xgboost(object())
    with pytest.raises(InvalidParameter, match="'score' or 'probability'"):
        to_xgboost(fitted("SGBDTClassifier", "two"), output="margin")
    own = OwnWay(schema=fitted("SGBDTClassifier", "two").schema_, random_state=0, n_estimators=2)
    own.fit(rows, labels(rows, "two"))
    with pytest.raises(InvalidParameter, match=r"OwnWay.predict_proba is its own"):
        to_xgboost(own)
    assert is_classifier(own)
    assert_near(predicted(to_xgboost(TreeModel.of(own)), encoded_rows(own, rows)), own.decision_function(rows))
    single = TreeStructure(feature=np.array([0], np.int32), split=np.array([3], np.uint16), equals=np.array([True]))
    tree = Tree(structure=single, values=np.zeros(2))
    model = TreeModel(
        ensemble=Ensemble(initial_score=0.0, trees=(tree,)), schema=random_model(0, ()).schema, max_bins=8
    )
    with pytest.raises(InvalidParameter, match="tests single bins of 'length'"):
        to_xgboost(model)


def test_a_missing_package_is_named(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    for call in (to_xgboost, lambda model: booster_rows(model, None)):
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'ledgerwood\[xgboost\]'"):
            call(fitted("SGBDTRegressor", "number"))
