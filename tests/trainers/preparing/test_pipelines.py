"""What stands before a trainer: every kind of step is named that learns from rows, or that nothing vouches for."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.feature_selection import SelectFromModel, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
    scale,
)
from sklearn.utils import all_estimators

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import (
    PrivaTreeClassifier,
    SchemaOneHotEncoder,
    SchemaScaler,
    SGBDTRegressor,
    check_pipeline,
)
from ledgerwood.trainers.base.privacy import NOT_FITTED

SCHEMA = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 1))
TRAINER = SGBDTRegressor(schema=SCHEMA, n_estimators=2)
X = np.random.default_rng(0).uniform(0, 1, (40, 2))
Y = X[:, 0]


class Foreign(TransformerMixin, BaseEstimator):
    """It says of itself that it needs no fit: nobody else does."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class OwnPipeline(Pipeline):
    """A pipeline that may do anything."""


def before(step, last=TRAINER):
    return Pipeline([("step", step), ("model", last)])


CLEAN = {
    "nothing": "passthrough",
    "none": None,
    "a ufunc": FunctionTransformer(np.log1p),
    "identity": FunctionTransformer(),
    "a function of single rows": FunctionTransformer(lambda X: X / 100.0 + X[:, :1]),
    "declared scaling": SchemaScaler(SCHEMA),
    "thresholds": Binarizer(threshold=0.5),
    "row norms": Normalizer(),
    "products": PolynomialFeatures(2),
    "a pipeline of them": Pipeline([("a", Normalizer()), ("b", FunctionTransformer(np.sqrt))]),
    "a union of them": FeatureUnion([("a", Normalizer()), ("b", "passthrough"), ("c", "drop")]),
    "columns of them": ColumnTransformer([("a", Normalizer(), [0])], remainder="passthrough"),
    "columns by type": ColumnTransformer([("a", Normalizer(), make_column_selector(dtype_include=float))]),
}
NAMED = {
    "a scaler": (StandardScaler(), {"step"}),
    "an encoder": (OneHotEncoder(), {"step"}),
    "an imputer": (SimpleImputer(), {"step"}),
    "a selection": (SelectFromModel(TRAINER), {"step"}),
    "another selection": (VarianceThreshold(), {"step"}),
    "another trainer": (TRAINER, {"step"}),
    "a foreign transformer": (Foreign(), {"step"}),
    "a class": (StandardScaler, {"step"}),
    "a pipeline of another kind": (OwnPipeline([("a", Normalizer())]), {"step"}),
    "a function of all rows": (FunctionTransformer(scale), {"step"}),
    "ranks": (FunctionTransformer(lambda X: np.argsort(np.argsort(X, axis=0), axis=0)), {"step"}),
    "the number of rows": (FunctionTransformer(lambda X: X / len(X)), {"step"}),
    "the previous row": (FunctionTransformer(lambda X: np.vstack((X[:1], X[1:] - X[:-1]))), {"step"}),
    "fewer rows": (FunctionTransformer(lambda X: X[X[:, 0] > 10]), {"step"}),
    "what cannot be tried": (FunctionTransformer(lambda frame: frame[["age"]]), {"step"}),
    "inside a pipeline": (
        Pipeline([("a", Pipeline([("b", StandardScaler()), ("c", Normalizer())]))]),
        {"step__a__b"},
    ),
    "inside a union": (FeatureUnion([("a", Normalizer()), ("b", RobustScaler())]), {"step__b"}),
    "among columns": (
        ColumnTransformer([("a", SimpleImputer(), [0]), ("b", "drop", [1])], remainder=StandardScaler()),
        {"step__a", "step__remainder"},
    ),
    "columns that are chosen by the rows": (
        ColumnTransformer([("a", Normalizer(), lambda X: [int(X[0, 0] > 0.5)])]),
        {"step__a"},
    ),
}


@pytest.mark.parametrize("step", CLEAN.values(), ids=CLEAN)
def test_what_works_row_by_row_passes_before_a_fit_and_after_it(step):
    pipe = clone(before(step))
    assert check_pipeline(pipe) == {}


@pytest.mark.parametrize(("step", "names"), NAMED.values(), ids=NAMED)
def test_what_learns_from_rows_is_named(step, names):
    assert set(check_pipeline(before(step))) == names


@pytest.mark.parametrize(
    ("step", "learned"),
    [
        (StandardScaler(), "mean_"),
        (ColumnTransformer([("a", StandardScaler(), [0, 1])]), "mean_"),
        (FeatureUnion([("a", SimpleImputer())]), "statistics_"),
        (Pipeline([("a", StandardScaler())]), "scale_"),
    ],
)
def test_a_fitted_pipeline_is_told_what_was_learned(step, learned):
    pipe = before(step).fit(X, np.clip(Y, 0, 1))
    (reason,) = check_pipeline(pipe).values()
    assert f"{learned}" in reason
    assert "was fitted on rows" in reason
    assert "n_features_in_" not in reason


def test_a_clean_pipeline_is_clean_after_its_fit():
    assert check_pipeline(before(SchemaScaler(SCHEMA)).fit(X, Y)) == {}
    assert check_pipeline(before(PolynomialFeatures(1, include_bias=False)).fit(X, Y)) == {}


@pytest.mark.parametrize("fit", [False, True])
def test_a_transformation_of_labels_is_looked_into(fit):
    wide = SGBDTRegressor(schema=lw.Schema.uniform(-9, 9, n_features=2, target=lw.Numeric("y", -9, 9)), n_estimators=2)
    wrapped = TransformedTargetRegressor(before(StandardScaler(), wide), transformer=StandardScaler())
    if fit:
        wrapped.fit(X, np.linspace(0, 1, len(X)))
    assert set(check_pipeline(wrapped)) == {"transformer", "regressor__step"}
    assert check_pipeline(TransformedTargetRegressor(TRAINER, func=np.log1p, inverse_func=np.expm1)) == {}
    assert set(check_pipeline(TransformedTargetRegressor(TRAINER, func=scale, inverse_func=scale))) == {"func"}
    inside = Pipeline([("a", Normalizer()), ("b", TransformedTargetRegressor(TRAINER, transformer=RobustScaler()))])
    assert set(check_pipeline(inside)) == {"b__transformer"}


@pytest.mark.parametrize(
    "last", [LinearRegression(), GridSearchCV(TRAINER, {"max_depth": [1, 2]}), "passthrough", None]
)
def test_what_is_no_trainer_at_the_end_is_named(last):
    assert set(check_pipeline(before(Normalizer(), last))) == {"model"}


def test_a_function_of_a_frame_is_tried_on_the_rows_that_are_given():
    pipe = before(FunctionTransformer(lambda frame: frame[["age"]] / 100.0))
    frame = pd.DataFrame({"age": [1.0, 50.0, 3.0], "sex": ["m", "f", "m"]})
    assert check_pipeline(pipe, example=frame) == {}
    centred = before(FunctionTransformer(lambda frame: frame[["age"]] - frame["age"].mean()))
    assert set(check_pipeline(centred, example=frame)) == {"step"}


def test_a_trainer_alone_is_clean_and_anything_else_is_refused():
    assert check_pipeline(PrivaTreeClassifier()) == {}
    for other in (StandardScaler(), "pipe", None, [TRAINER]):
        with pytest.raises(InvalidParameter, match="Pipeline whose last step is a trainer"):
            check_pipeline(other)


def test_of_all_transformers_of_scikit_learn_those_pass_that_learn_nothing():
    """Each is fitted on two tables; where the transform of the same rows differs, it must be named."""
    vouched = []
    for name, kind in all_estimators(type_filter="transformer"):
        try:
            step = kind()
        except TypeError:
            continue
        if check_pipeline(before(step)) == {}:
            vouched.append(name)
            if name in ("HashingVectorizer", "FeatureHasher"):
                continue
            other = np.random.default_rng(1).uniform(-90, 70, (11, 2))
            np.testing.assert_array_equal(
                np.asarray(clone(step).fit(X).transform(X)), np.asarray(clone(step).fit(other).transform(X))
            )
    assert set(vouched) == {
        "Binarizer", "FeatureHasher", "FunctionTransformer", "HashingVectorizer", "Normalizer", "PolynomialFeatures",
    }  # fmt: skip


def test_the_statement_of_a_model_says_what_it_assumes_of_earlier_steps(tmp_path):
    model = SGBDTRegressor(schema=SCHEMA, n_estimators=2).fit(X, Y)
    assert NOT_FITTED in model.privacy_.assumptions
    assert "fitted on rows" in repr(model.privacy_)
    model.save(tmp_path / "model")
    assert NOT_FITTED in SGBDTRegressor.load(tmp_path / "model").privacy_.assumptions
    assert NOT_FITTED in (tmp_path / "model" / "model.json").read_text()


WIDE = SGBDTRegressor(schema=lw.Schema.uniform(-9, 9, n_features=2, target=lw.Numeric("y", -9, 9)), n_estimators=2)


def of_steps(recwarn):
    found = [str(each.message) for each in recwarn if issubclass(each.category, lw.PrivacyWarning)]
    return [text for text in found if "a pipeline calls this fit" in text]


@pytest.mark.parametrize(
    ("pipe", "named"),
    [
        (make_pipeline(StandardScaler(), WIDE), "standardscaler"),
        (make_pipeline(Normalizer(), make_pipeline(RobustScaler(), WIDE)), "robustscaler"),
        (OwnPipeline([("a", Foreign()), ("b", SchemaScaler(SCHEMA)), ("c", WIDE)]), "a"),
        (before(ColumnTransformer([("a", SimpleImputer(), [0]), ("b", Normalizer(), [1])]), WIDE), "step__a"),
        (TransformedTargetRegressor(WIDE, transformer=StandardScaler()), "transformer"),
        (TransformedTargetRegressor(make_pipeline(StandardScaler(), WIDE), func=np.sqrt, inverse_func=np.square),
         "standardscaler"),
    ],
)  # fmt: skip
def test_a_fit_warns_once_of_a_step_that_was_fitted_on_its_rows(pipe, named, recwarn):
    clone(pipe).fit(X, Y)
    (text,) = of_steps(recwarn)
    assert f"vouches for them: {named}. " in text


def test_a_fit_warns_with_a_ledger_too_and_before_anything_is_spent(recwarn):
    ledger = lw.Ledger(
        lw.Budget(epsilon=3.0, delta=1e-5, adjacency=lw.Adjacency(WIDE.adjacency)), unit=lw.PrivacyUnit.ROW
    )
    labels = TransformedTargetRegressor(clone(WIDE), transformer=StandardScaler())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ledgerwood.cautions.warnings.warn", stop)
        with pytest.raises(Stopped):
            labels.fit(X, Y, ledger=ledger)
    assert len(ledger.entries) == 1
    labels.fit(X, Y, ledger=ledger)
    assert len(ledger.entries) > 1
    assert len(of_steps(recwarn)) == 1


class Stopped(Exception):
    """In the place of a warning."""


def stop(message, *_, **__):
    assert "a pipeline calls this fit" in message
    raise Stopped


def refuse(rows):
    raise AssertionError("a function of the caller's was run on made-up rows")


def test_a_fit_does_not_warn_of_declared_steps_nor_of_itself_and_tries_no_function(recwarn):
    coded = SchemaOneHotEncoder(SCHEMA).fit(X).schema_out_
    last = SGBDTRegressor(schema=coded, n_estimators=2)
    make_pipeline(SchemaScaler(SCHEMA), SchemaOneHotEncoder(SCHEMA), FunctionTransformer(), last).fit(X, Y)
    TransformedTargetRegressor(clone(WIDE), func=np.sqrt, inverse_func=np.square).fit(X, Y)
    clone(WIDE).fit(StandardScaler().fit_transform(X), Y)
    whole = FunctionTransformer(lambda rows: rows if len(rows) == len(X) else refuse(rows))
    make_pipeline(whole, ColumnTransformer([("a", whole, [0, 1])]), clone(WIDE)).fit(X, Y)
    assert of_steps(recwarn) == []
