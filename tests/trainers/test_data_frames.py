"""One table in many clothes: the same model, bit for bit, whatever holds the rows."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ledgerwood as lw
from ledgerwood.errors import SchemaError
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor

SCHEMA = lw.Schema(
    features=(
        lw.Numeric("size", 0.0, 10.0),
        lw.Numeric("age", 0, 100, missing=True),
        lw.Categorical("colour", ("red", "blue")),
        lw.Categorical("grade", (1, 2, 3), missing=True),
        lw.Categorical("flag", (False, True)),
    ),
    target=lw.Numeric("price", 0, 10),
)
CLASSES = lw.Schema(features=SCHEMA.features, target=lw.Categorical("sold", ("no", "yes")))
N = 60
GENERATOR = np.random.default_rng(0)
COLUMNS = {
    "size": GENERATOR.uniform(0, 10, N).tolist(),
    "age": [None if i % 7 == 0 else float(i) for i in range(N)],
    "colour": GENERATOR.choice(["red", "blue", "green"], N).tolist(),
    "grade": [None if i % 5 == 0 else i % 4 for i in range(N)],
    "flag": (GENERATOR.random(N) < 0.5).tolist(),
}
PRICE = np.array(COLUMNS["size"])
SOLD = np.where(PRICE > 5, "yes", "no")
SHUFFLED = ["flag", "colour", "size", "grade", "age"]


def pandas_nullable():
    frame = pd.DataFrame({name: COLUMNS[name] for name in SHUFFLED})
    return frame.astype({"grade": "Int64", "age": "Float64", "colour": "category", "flag": "boolean"})


FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas, columns shuffled": lambda: pd.DataFrame(COLUMNS)[SHUFFLED],
    "pandas, nullable types": pandas_nullable,
    "pandas, another index": lambda: pd.DataFrame(COLUMNS, index=range(100, 100 + N)),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "polars, columns shuffled": lambda: pl.DataFrame(COLUMNS).select(SHUFFLED),
    "objects": lambda: np.array(list(zip(*COLUMNS.values(), strict=True)), dtype=object),
}
LABELS = {
    "pandas": lambda y: pd.Series(y),
    "polars": lambda y: pl.Series(y.tolist()),
    "objects": lambda y: y.tolist(),
}


def fitted(kind, schema, X, y):
    return kind(schema=schema, n_estimators=6, max_depth=3, random_state=4, features_per_tree="all").fit(X, y)


@pytest.fixture(scope="module")
def truth():
    regressor = fitted(SGBDTRegressor, SCHEMA, FRAMES["objects"](), PRICE)
    classifier = fitted(SGBDTClassifier, CLASSES, FRAMES["objects"](), SOLD)
    return regressor, classifier


@pytest.mark.parametrize("frame", FRAMES)
def test_every_kind_of_table_trains_the_same_model(frame, truth):
    X, labels = FRAMES[frame](), LABELS[frame.split(",", maxsplit=1)[0]]
    for kind, schema, y, expected in (
        (SGBDTRegressor, SCHEMA, PRICE, truth[0]),
        (SGBDTClassifier, CLASSES, SOLD, truth[1]),
    ):
        model = fitted(kind, schema, X, labels(y))
        for name, array in model.ensemble_.to_arrays().items():
            np.testing.assert_array_equal(array, expected.ensemble_.to_arrays()[name])
        np.testing.assert_array_equal(model.predict(X), expected.predict(FRAMES["objects"]()))
        assert model.ledger_ == expected.ledger_


def test_a_model_of_a_frame_predicts_columns_by_name(truth):
    model = fitted(SGBDTRegressor, SCHEMA, FRAMES["pandas"](), PRICE)
    np.testing.assert_array_equal(model.predict(FRAMES["polars"]()), truth[0].predict(FRAMES["objects"]()))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAMES["pandas"]().rename(columns={"age": "years"}))


def test_a_missing_value_without_a_declaration_leaves_its_row_out_of_a_fit_and_is_no_reason_not_to_predict():
    whole = FRAMES["pandas"]()
    spoiled = whole.assign(size=[math.nan, *COLUMNS["size"][1:]])
    model, without = fitted(SGBDTRegressor, SCHEMA, whole, PRICE), fitted(SGBDTRegressor, SCHEMA, whole[1:], PRICE[1:])
    left_out = fitted(SGBDTRegressor, SCHEMA, spoiled, PRICE)
    np.testing.assert_array_equal(left_out.predict(whole), without.predict(whole))
    np.testing.assert_array_equal(model.predict(spoiled)[1:], model.predict(whole)[1:])
    assert np.isfinite(model.predict(spoiled)).all()


def test_a_list_of_rows_is_a_table_where_the_schema_says_how_many_columns():
    schema = lw.Schema.uniform(0, 10, target=lw.Numeric("price", 0, 10))
    numbers = np.column_stack([COLUMNS["size"], np.arange(N) / 10])
    with pytest.raises(SchemaError, match=r"n_features=\.\.\."):
        fitted(SGBDTRegressor, schema, numbers.tolist(), PRICE)
    model = fitted(SGBDTRegressor, schema, numbers, PRICE)
    alike = fitted(SGBDTRegressor, schema.resolved(2), numbers.tolist(), list(PRICE))
    np.testing.assert_array_equal(alike.predict(numbers.tolist()), model.predict(numbers))
    np.testing.assert_array_equal(model.predict(numbers.tolist()), model.predict(numbers))


def test_a_uniform_schema_takes_frames_by_position():
    schema = lw.Schema.uniform(0, 10, target=lw.Numeric("price", 0, 10))
    numbers = np.column_stack([COLUMNS["size"], np.arange(N) / 10])
    expected = fitted(SGBDTRegressor, schema, numbers, PRICE).predict(numbers)
    for frame in (
        pd.DataFrame(numbers, columns=["p", "q"]),
        pl.DataFrame(numbers, schema=["p", "q"]),
    ):
        np.testing.assert_array_equal(fitted(SGBDTRegressor, schema, frame, PRICE).predict(frame), expected)
