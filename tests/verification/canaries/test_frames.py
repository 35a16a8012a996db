"""Audits of learners that take data frames: mixed columns of pandas and polars, with texts, gaps and categories."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification import audit_model
from ledgerwood.verification.canaries.rows import FrameShape, seen_feature, seen_schema

N = 60
GENERATOR = np.random.default_rng(0)
COLUMNS = {
    "age": GENERATOR.integers(18, 90, N),
    "income": GENERATOR.uniform(0.0, 1e5, N),
    "sex": GENERATOR.choice(["m", "f"], N).tolist(),
    "member": GENERATOR.random(N) < 0.5,
    "town": ["oslo", "rome", "bergen"] * (N // 3),
}
LABELS = ["yes" if i % 2 else "no" for i in range(N)]


def pandas_frame():
    frame = pd.DataFrame(COLUMNS).astype({"town": "category"})
    frame.loc[3, "income"] = np.nan
    frame.loc[5, "sex"] = None
    return frame


def polars_frame():
    frame = pl.DataFrame(COLUMNS, schema_overrides={"town": pl.Categorical}).with_row_index("row")
    gaps = frame.with_columns(
        pl.when(pl.col("row") == 3).then(None).otherwise(pl.col("income")).alias("income"),
        pl.when(pl.col("row") == 5).then(None).otherwise(pl.col("sex")).alias("sex"),
    )
    return gaps.drop("row")


FRAMES = {"pandas": (pandas_frame, pd.Series), "polars": (polars_frame, pl.Series)}
frames = pytest.mark.parametrize(("frame", "series"), FRAMES.values(), ids=FRAMES)


def pipeline(last):
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "town"]), remainder="passthrough"
    )
    return make_pipeline(encoder, last)


@frames
def test_a_pipeline_that_takes_texts_is_caught_for_learning_by_heart(frame, series):
    """A tree without any noise tells nearly every canary: all guesses right bounds epsilon far from 0."""
    for model, y in ((DecisionTreeClassifier(), series(LABELS)), (DecisionTreeRegressor(), np.arange(N) / N)):
        audit = audit_model(pipeline(model), frame(), y, canaries=100, rng=0)
        assert audit.epsilon_lower > 1.5


@frames
def test_learners_are_given_the_frame_that_the_user_has(frame, series):
    seen = []

    class Watches(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            seen.append(X)
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            seen.append(X)
            return np.full((len(X), 2), 0.5)

        def predict(self, X):
            return np.repeat(self.classes_[:1], len(X))

    audit_model(Watches(), frame(), series(LABELS), canaries=20, rng=0)
    wanted = nw.from_native(frame()).schema
    for X in seen:
        assert type(X) is type(frame())
        found = nw.from_native(X).schema
        assert list(found) == list(wanted)
        assert all(
            found[name] == kind or (kind.is_numeric() and found[name] == nw.Float64) for name, kind in wanted.items()
        )
    assert len(seen) >= 4


@pytest.mark.slow  # a thousand fits
@frames
def test_fits_whose_attributes_are_looked_at_are_given_the_frame_too(frame, series):
    """A noisy sum of a column that is found by its name, with an eighth of its noise, beside texts and gaps."""
    kinds = set()

    class Summing:
        def fit(self, X, y):
            kinds.add(type(X))
            ages = nw.from_native(X)["age"].to_numpy()
            self.sum_ = float(np.clip(ages / 90.0, 0.0, 1.0).sum() + np.random.laplace(scale=1 / 8))  # noqa: NPY002

        def predict(self, X):
            return np.full(len(X), self.sum_)

    for claim, refuted in ((1.0, True), (8.0, False)):
        budget = lw.Budget(epsilon=claim, delta=0.0, adjacency=lw.Adjacency.ADD_REMOVE)
        options = {"released": "attributes", "fits": 1000, "rng": 0, "alpha": 1e-3}
        audit = audit_model(Summing(), frame(), np.arange(N) / N, claim=budget, **options)
        assert audit.rejected == refuted
        assert audit.epsilon_lower <= 8.0
    assert kinds == {type(frame())}


@frames
def test_the_schema_that_is_seen_has_a_column_of_each_kind(frame, series):
    schema = seen_schema(frame(), series(LABELS), classify=True)
    assert schema.features[0] == lw.Numeric("age", COLUMNS["age"].min(), COLUMNS["age"].max())
    assert schema.features[1].missing
    assert schema.features[2:] == (
        lw.Categorical("sex", ("f", "m"), missing=True),
        lw.Categorical("member", (False, True)),
        lw.Categorical("town", ("bergen", "oslo", "rome")),
    )
    assert schema.target == lw.Categorical("y", ("no", "yes"))


@frames
def test_a_frame_is_filled_with_other_rows_of_the_same_types(frame, series):
    rows = np.array([[20.5, np.nan, None, True, "rome"], [30, 1.0, "m", False, "oslo"]], dtype=object)
    shape = FrameShape.of(frame(), list(COLUMNS))
    filled = nw.from_native(shape.filled(rows))
    assert filled["age"].to_list() == [20.5, 30.0]
    assert filled["sex"].is_null().to_list() == [True, False]
    assert filled["member"].to_list() == [True, False]
    assert filled["town"].to_list() == ["rome", "oslo"]


@frames
def test_columns_are_found_by_name_where_a_schema_is_declared(frame, series):
    schema = lw.Schema(
        features=(lw.Categorical("sex", ("m", "f"), missing=True), lw.Numeric("age", 0, 100)),
        target=lw.Categorical("y", ("no", "yes")),
    )
    X = nw.from_native(frame()).select("age", "sex").to_native()
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["sex"]), remainder="passthrough")
    audit = audit_model(
        make_pipeline(encoder, DecisionTreeClassifier()), X, series(LABELS), schema=schema, canaries=64, rng=0
    )
    assert audit.epsilon_lower > 1.5


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02"]), name="day"),
        pd.Series([1, "a"], name="day", dtype=object),
    ],
)
def test_a_column_of_another_type_is_named(column):
    with pytest.raises(InvalidParameter, match=r"column 'day' of X has type .* declare it in audit_model\(schema="):
        seen_feature(nw.from_native(column, series_only=True))


def test_an_array_of_texts_says_that_a_frame_would_do():
    with pytest.raises(InvalidParameter, match="or X as a data frame"):
        audit_model(DecisionTreeClassifier(), np.array([["a"], ["b"]]), ["x", "y"], canaries=20)
