"""Predictions as a frame of the rows' own library: index, names and types, against the arrays of the same model."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter, SchemaTypeError
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor, predict_frame

FEATURES = (lw.Numeric("age", 18, 100), lw.Categorical("sex", ("f", "m")))
ROWS = pd.DataFrame({"sex": ["f", "m", "m"], "age": [20.0, 50.0, 90.0]}, index=pd.Index(["x", "y", "x"], name="id"))
FRAMES = {
    "pandas": ROWS,
    "polars": pl.DataFrame(ROWS.to_dict("list")),
    "arrow": pa.table(ROWS.to_dict("list")),
}
CLASSES = {
    "texts": (("no", "yes"), pl.String),
    "numbers": ((1, 0), pl.Int64),
    "fractions": ((0.5, 1.5), pl.Float64),
    "truth": ((True, False), pl.Boolean),
    "several": (("a", "c", "b"), pl.String),
}


def classifier(classes):
    schema = lw.Schema(features=FEATURES, target=lw.Categorical("repaid", classes))
    return SGBDTClassifier(schema=schema, n_estimators=2).fit(ROWS, [classes[0], classes[1], classes[0]])


def regressor():
    return SGBDTRegressor(schema=lw.Schema(features=FEATURES, target=lw.Numeric("cost", 0, 9)), n_estimators=2)


@pytest.fixture(scope="module")
def fitted():
    return {name: classifier(classes) for name, (classes, _) in CLASSES.items()}


@pytest.mark.parametrize("rows", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("kind", CLASSES)
def test_classes_and_their_probabilities_have_names_and_declared_types(kind, rows, fitted):
    model, labels = fitted[kind], sorted(CLASSES[kind][0])
    classes = predict_frame(model, rows)
    chances = predict_frame(model, rows, "predict_proba")
    for found in (classes, chances):
        assert type(found) is type(rows)
    plain, wide = pl.DataFrame(classes), pl.DataFrame(chances)  # of any of the libraries
    assert plain.schema == {"repaid": CLASSES[kind][1]}
    assert plain["repaid"].to_list() == model.predict(rows).tolist()
    assert wide.schema == dict.fromkeys(map(str, labels), pl.Float64)
    np.testing.assert_array_equal(wide.to_numpy(), model.predict_proba(rows))
    logarithms = pl.DataFrame(predict_frame(model, rows, "predict_log_proba"))
    assert logarithms.schema == wide.schema
    np.testing.assert_array_equal(logarithms.to_numpy(), model.predict_log_proba(rows))
    scores = pl.DataFrame(predict_frame(model, rows, "decision_function"))
    assert scores.columns == (["repaid"] if len(labels) == 2 else labels)
    np.testing.assert_array_equal(scores.to_numpy().squeeze(), model.decision_function(rows))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "decision_function"])
@pytest.mark.parametrize("kind", CLASSES)
def test_types_do_not_depend_on_rows(kind, method, fitted):
    for rows in (ROWS, FRAMES["polars"]):
        some, none = (predict_frame(fitted[kind], each, method) for each in (rows, rows[:0]))
        assert dict(zip(some.columns, some.dtypes, strict=True)) == dict(zip(none.columns, none.dtypes, strict=True))


def test_the_index_is_kept_though_it_has_the_same_row_twice():
    found = predict_frame(classifier(("no", "yes")), ROWS)
    pd.testing.assert_index_equal(found.index, ROWS.index)
    several = ROWS.set_axis(pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")]), axis=0)
    pd.testing.assert_index_equal(predict_frame(regressor().fit(ROWS, [1, 2, 3]), several).index, several.index)


def test_a_pipeline_and_a_transformed_target_are_predicted_as_they_predict():
    model = regressor()
    for whole in (
        make_pipeline(FunctionTransformer(), model),
        TransformedTargetRegressor(model, func=np.sqrt, inverse_func=np.square),
    ):
        found = predict_frame(whole.fit(ROWS, [1.0, 2.0, 3.0]), ROWS)
        assert found.dtypes.to_dict() == {"cost": np.float64}
        np.testing.assert_array_equal(found["cost"], whole.predict(ROWS))
        assert list(found.index) == ["x", "y", "x"]


@pytest.mark.parametrize(
    "rows", [ROWS.to_numpy(), ROWS.to_numpy().tolist(), "rows.csv", FRAMES["polars"].lazy(), ROWS["age"]]
)
def test_rows_without_names_are_refused_by_their_type(rows):
    with pytest.raises(SchemaTypeError, match=r"model\.predict\(X\)"):
        predict_frame(regressor().fit(ROWS, [1, 2, 3]), rows)


@pytest.mark.parametrize("model", [LinearRegression(), make_pipeline(LinearRegression()), None])
def test_what_is_no_trainer_is_refused(model):
    with pytest.raises(InvalidParameter, match="must be a trainer"):
        predict_frame(model, ROWS)


def test_a_model_that_is_not_fitted_and_a_method_that_it_does_not_have_are_refused():
    with pytest.raises(NotFittedError):
        predict_frame(regressor(), ROWS)
    model = regressor().fit(ROWS, [1, 2, 3])
    with pytest.raises(InvalidParameter, match="SGBDTRegressor is a regressor"):
        predict_frame(model, ROWS, "predict_proba")
    with pytest.raises(InvalidParameter, match="method='proba' must be one of"):
        predict_frame(model, ROWS, "proba")
