"""Transformers by the declared schema: values against plain arithmetic, rows one by one, scikit-learn's own checks."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.trainers import SchemaOneHotEncoder, SchemaScaler, SGBDTClassifier, SGBDTRegressor, check_pipeline

SCHEMA = lw.Schema(
    features=(
        lw.Numeric("age", 20, 120, missing=True),
        lw.Categorical("sex", ("m", "f"), missing=True),
        lw.Categorical("code", (1, 2)),
    ),
    target=lw.Categorical("y", ("no", "yes")),
)
ROWS = {"code": [1, 2, 7, 1], "sex": ["f", "x", None, "m"], "age": [20.0, 70.0, None, 500.0]}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
NOT_APPLICABLE = {
    "check_dtype_object": "wants an error because of the value of one cell, which would tell of a row",
    "check_estimators_empty_data_messages": "wants an error because of the number of rows",
    "check_transformer_data_not_an_array": "passes a list of rows, whose width no schema of one range states",
}


@pytest.mark.parametrize("transformer", [SchemaScaler, SchemaOneHotEncoder])
def test_the_checks_of_scikit_learn_pass(transformer):
    results = check_estimator(
        transformer(lw.Schema.uniform(-10, 10)), expected_failed_checks=NOT_APPLICABLE, on_fail=None, on_skip=None
    )
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(NOT_APPLICABLE)
    assert sum(r["status"] == "passed" for r in results) > 30


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns_of_zero_and_one_by_name(frame):
    encoder = SchemaOneHotEncoder(SCHEMA).fit(frame(ROWS))
    wanted = [
        [20.0, 0, 1, 0, 1, 0],
        [70.0, 0, 0, 0, 0, 1],
        [np.nan, 0, 0, 1, 0, 0],
        [120.0, 1, 0, 0, 1, 0],
    ]
    np.testing.assert_array_equal(encoder.transform(frame(ROWS)), wanted)
    names = ["age", "sex_m", "sex_f", "sex_missing", "code_1", "code_2"]
    assert encoder.get_feature_names_out().tolist() == names
    assert [feature.name for feature in encoder.schema_out_.features] == names
    assert encoder.schema_out_.features[0] == SCHEMA.features[0]
    assert encoder.schema_out_.features[1] == lw.Numeric("sex_m", 0, 1)
    assert encoder.schema_out_.target == SCHEMA.target


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (-3.0, 0.1)])
def test_scaled_values_are_the_declared_shares(low, high):
    schema = lw.Schema(features=(lw.Numeric("a", 0.1, 0.7), lw.Numeric("b", -5, 5, missing=True)))
    X = np.array([[0.1, -5.0], [0.7, 5.0], [0.4, np.nan], [9.0, -9.0], [-9.0, 0.0]])
    scaler = SchemaScaler(schema, feature_range=(low, high)).fit(X)
    found = scaler.transform(X)
    share = np.array([[0, 0], [1, 1], [0.5, np.nan], [1, 0], [0, 0.5]])
    np.testing.assert_allclose(found, low + share * (high - low), rtol=1e-15, atol=1e-15)
    assert np.nanmin(found) == low
    assert np.nanmax(found) == high
    assert scaler.schema_out_.features == (lw.Numeric("a", low, high), lw.Numeric("b", low, high, missing=True))


@pytest.mark.parametrize("transformer", [SchemaScaler, SchemaOneHotEncoder])
def test_no_row_changes_what_becomes_of_another(transformer):
    frame = pd.DataFrame(ROWS)
    whole = transformer(SCHEMA).fit(frame).transform(frame)
    for row in range(len(frame)):
        alone = frame.iloc[row : row + 1]
        assert repr(transformer(SCHEMA).fit(alone).transform(alone)[0]) == repr(whole[row])


@pytest.mark.parametrize("transformer", [SchemaScaler, SchemaOneHotEncoder])
def test_fit_notes_the_columns_and_nothing_of_the_values(transformer):
    one, other = (transformer(SCHEMA).fit(pd.DataFrame(rows)) for rows in (ROWS, {key: ROWS[key][:1] for key in ROWS}))
    assert set(vars(one)) == set(vars(other))
    assert one.schema_out_ == other.schema_out_


def test_scaled_categories_pass_as_they_are():
    found = SchemaScaler(SCHEMA).fit_transform(pd.DataFrame(ROWS))
    assert found[:, 1].tolist()[:2] == ["f", "x"]
    assert found[:, 0].tolist()[:2] == [0.0, 0.5]
    assert found[:, 2].tolist() == [1, 2, 7, 1]


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_set_output_names_the_columns(output):
    frame = pd.DataFrame(ROWS, index=list("abcd"))
    found = SchemaOneHotEncoder(SCHEMA).set_output(transform=output).fit_transform(frame)
    assert type(found) is FRAMES[output]
    assert list(found.columns) == ["age", "sex_m", "sex_f", "sex_missing", "code_1", "code_2"]
    assert {str(dtype).lower() for dtype in found.dtypes} == {"float64"}
    if output == "pandas":
        assert list(found.index) == list("abcd")


SCALED = [0.0, 0.5, np.nan, 1.0]
OWN_TYPES = {
    "pandas": {"sex": pd.CategoricalDtype(["x", "f", "m"]), "code": "Int8"},
    "polars": {"sex": pl.Enum(["x", "f", "m"]), "code": pl.Int8},
}


@pytest.mark.parametrize("library", FRAMES)
def test_scaled_frames_keep_the_index_and_the_types_of_categories(library):
    frame = FRAMES[library](ROWS)
    frame = frame.astype(OWN_TYPES[library]) if library == "pandas" else frame.cast(OWN_TYPES[library])
    if library == "pandas":
        frame.index = pd.Index([7, 7, 3, 1])
    found = SchemaScaler(SCHEMA).set_output(transform=library).fit_transform(frame)
    assert list(found.columns) == ["age", "sex", "code"]
    np.testing.assert_array_equal(found["age"].to_numpy(), SCALED)
    for name in ("sex", "code"):
        assert found[name].dtype == frame[name].dtype
        assert found[name].equals(frame[name])
    if library == "pandas":
        assert list(found.index) == [7, 7, 3, 1]
    assert found["age"].dtype == ("float64" if library == "pandas" else pl.Float64)
    assert list(frame.columns) == ["code", "sex", "age"]  # the rows are left as they are


@pytest.mark.parametrize(
    ("given", "output"), [("array", "pandas"), ("array", "polars"), ("polars", "pandas"), ("pandas", "polars")]
)
def test_scaled_categories_of_another_library_have_declared_types(given, output):
    rows = (
        pd.DataFrame(ROWS)[["age", "sex", "code"]].astype(object).to_numpy()
        if given == "array"
        else FRAMES[given](ROWS)
    )
    scaler = SchemaScaler(SCHEMA).set_output(transform=output)
    found, none = scaler.fit_transform(rows), scaler.fit_transform(rows[:0])
    np.testing.assert_array_equal(found["age"].to_numpy(), SCALED)
    np.testing.assert_array_equal(found["code"].to_numpy(), [1.0, 2.0, 7.0, 1.0])
    assert [None if pd.isna(value) else value for value in found["sex"].to_list()] == ["f", "x", None, "m"]
    assert dict(zip(found.columns, found.dtypes, strict=True)) == dict(zip(none.columns, none.dtypes, strict=True))


def test_texts_among_declared_numbers_do_not_change_a_columns_type():
    rows = np.array([[20.0, "m", "text"], [30.0, 5, 2]], dtype=object)
    found = SchemaScaler(SCHEMA).set_output(transform="polars").fit_transform(rows)
    assert found.schema == {"age": pl.Float64, "sex": pl.String, "code": pl.Float64}
    assert found["sex"].to_list() == ["m", None]
    np.testing.assert_array_equal(found["code"].to_numpy(), [np.nan, 2.0])


def test_a_scaled_frame_trains_the_same_model_as_a_scaled_array():
    rows, labels = pd.DataFrame({name: values * 20 for name, values in ROWS.items()}), ["no", "yes", "no", "yes"] * 20
    scaler = SchemaScaler(SCHEMA).fit(rows)
    models = [
        make_pipeline(
            SchemaScaler(SCHEMA).set_output(transform=output),
            SGBDTClassifier(schema=scaler.schema_out_, n_estimators=4, random_state=0),
        ).fit(rows, labels)
        for output in ("default", "pandas", "polars")
    ]
    for model in models[1:]:
        assert model[-1].feature_names_in_.tolist() == ["age", "sex", "code"]
        np.testing.assert_array_equal(model.decision_function(rows), models[0].decision_function(rows))


def test_a_uniform_schema_takes_the_names_of_the_frame():
    scaler = SchemaScaler(lw.Schema(every=lw.Numeric("x", 0, 2, missing=True))).fit(
        pd.DataFrame({"p": [1.0], "q": [2.0]})
    )
    assert scaler.get_feature_names_out().tolist() == ["p", "q"]
    assert scaler.schema_out_.features == (lw.Numeric("p", 0, 1, missing=True), lw.Numeric("q", 0, 1, missing=True))
    with pytest.raises(InvalidParameter, match="call fit first"):
        SchemaScaler(lw.Schema.uniform(0, 1)).get_feature_names_out()


@pytest.mark.parametrize("options", [{"feature_range": (1, 0)}, {"feature_range": "01"}, {"schema": "age"}])
def test_what_is_no_schema_or_range_is_refused(options):
    with pytest.raises(InvalidParameter):
        SchemaScaler(**{"schema": SCHEMA} | options).fit(pd.DataFrame(ROWS))


def test_other_columns_are_refused():
    with pytest.raises(SchemaError, match="age"):
        SchemaScaler(SCHEMA).fit_transform(pd.DataFrame({"sex": ["m"], "code": [1]}))


def test_a_trainer_after_them_is_declared_by_what_comes_out():
    encoder = SchemaOneHotEncoder(SCHEMA).fit(pd.DataFrame(ROWS))
    pipe = make_pipeline(SchemaOneHotEncoder(SCHEMA), SGBDTClassifier(schema=encoder.schema_out_, n_estimators=2))
    assert check_pipeline(pipe) == {}
    assert pipe.fit(pd.DataFrame(ROWS), ["no", "yes", "no", "yes"]).predict(pd.DataFrame(ROWS)).shape == (4,)


def test_scaling_first_gives_the_same_model_as_declaring_the_range():
    """Steps of [0, 1] and of the declared range are the same ones, for ranges of a power of two."""
    X = np.random.default_rng(0).uniform(0, 4, (200, 2))
    schema = lw.Schema.uniform(0, 4, n_features=2, target=lw.Numeric("y", 0, 4))
    scaler = SchemaScaler(schema).fit(X)
    plain = SGBDTRegressor(schema=schema, n_estimators=4, random_state=0).fit(X, X[:, 0])
    scaled = SGBDTRegressor(schema=scaler.schema_out_, n_estimators=4, random_state=0).fit(scaler.transform(X), X[:, 0])
    np.testing.assert_array_equal(plain.predict(X), scaled.predict(scaler.transform(X)))
