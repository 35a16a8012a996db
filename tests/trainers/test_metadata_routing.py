"""A ledger and weights on their way through scikit-learn: one ledger pays for all, or it is refused and keeps all."""

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import RFECV, SequentialFeatureSelector
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import (
    PrivateSearch,
    SchemaScaler,
    SGBDTClassifier,
    SGBDTRegressor,
    private_cross_validate,
)

A = lw.Adjacency.ADD_REMOVE
SMALL = {"epsilon": 1.0, "delta": 1e-6, "n_estimators": 2, "max_depth": 1}
X = np.random.default_rng(0).uniform(0, 1, (60, 2))
Y = X[:, 0]
CLASSES = np.where(Y > 0.5, "yes", "no")
WEIGHTS = np.where(Y > 0.5, 1.0, 0.5)
SCHEMA = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 1), weight_bound=1.0)
OF_CLASSES = lw.Schema.uniform(0, 1, n_features=2, target=lw.Categorical("y", ("no", "yes")))
REGRESSOR = SGBDTRegressor(schema=SCHEMA, **SMALL)
CLASSIFIER = SGBDTClassifier(schema=OF_CLASSES, **SMALL)
GRID = {"max_depth": [1, 2]}


@pytest.fixture
def ledger():
    return lw.Ledger(lw.Budget(epsilon=10.0, delta=1e-4, adjacency=A), unit=lw.PrivacyUnit.ROW)


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def grants(ledger):
    return sum(type(entry).__name__ == "GrantEntry" for entry in ledger.entries)


def test_every_argument_of_fit_can_be_requested_and_none_is_by_itself(routed):
    for model in (REGRESSOR, CLASSIFIER, PrivateSearch(REGRESSOR, [{}])):
        requests = get_routing_for_object(model).fit.requests
        assert requests == dict.fromkeys(("ledger", "sample_weight", "scratch", "client"))
        asked = clone(model.set_fit_request(ledger=True))
        assert get_routing_for_object(asked).fit.requests["ledger"] is True
        model.set_fit_request(ledger=None)


def test_a_pipeline_passes_the_ledger_and_the_weights_on(routed, ledger):
    model = clone(REGRESSOR).set_params(random_state=0).set_fit_request(ledger=True, sample_weight=True)
    pipe = make_pipeline(SchemaScaler(SCHEMA), model).fit(X, Y, ledger=ledger, sample_weight=WEIGHTS)
    assert grants(ledger) == 1
    assert ledger.spent().epsilon == pytest.approx(1.0, abs=1e-6)
    plain = clone(model).fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(pipe.predict(X), plain.predict(X))
    assert not np.array_equal(pipe.predict(X), clone(model).fit(X, Y).predict(X))


def test_a_transformed_target_passes_the_ledger_on(routed, ledger):
    model = TransformedTargetRegressor(
        clone(REGRESSOR).set_fit_request(ledger=True), func=np.sqrt, inverse_func=np.square
    )
    model.fit(X, Y, ledger=ledger)
    assert grants(ledger) == 1


def test_without_a_request_nothing_is_passed_and_nothing_is_spent(routed, ledger):
    with pytest.raises(UnsetMetadataPassedError, match=r"\[ledger\] are passed but are not explicitly set"):
        make_pipeline(SchemaScaler(SCHEMA), clone(REGRESSOR)).fit(X, Y, ledger=ledger)
    assert len(ledger.entries) == 1


FOLDS = {
    "cross_validate": lambda model, params: cross_validate(model, X, Y, cv=3, params=params)["test_score"],
    "cross_val_score": lambda model, params: cross_val_score(model, X, Y, cv=3, params=params),
    "cross_val_predict": lambda model, params: cross_val_predict(model, X, Y, cv=3, params=params),
}


@pytest.mark.parametrize("function", FOLDS.values(), ids=FOLDS)
@pytest.mark.parametrize("routing", [False, True])
def test_every_fold_is_on_the_one_ledger_and_the_scores_are_said_not_to_be(function, routing, ledger):
    model = clone(REGRESSOR)
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            model.set_fit_request(ledger=True, sample_weight=True).set_score_request(sample_weight=True)
        with pytest.warns(lw.PrivacyWarning, match="nothing for the scores, which are exact .*private_cross_validate"):
            found = function(model, {"ledger": ledger, "sample_weight": WEIGHTS})
    assert np.isfinite(found).all()
    assert grants(ledger) == 3
    assert ledger.spent().epsilon == pytest.approx(3.0, abs=1e-5)


REFUSED = {
    "GridSearchCV": lambda model: GridSearchCV(model, GRID, cv=2, error_score="raise"),
    "GridSearchCV, of a pipeline": lambda model: GridSearchCV(
        make_pipeline(SchemaScaler(SCHEMA), model), {"sgbdtregressor__max_depth": [1, 2]}, cv=2, error_score="raise"
    ),
    "RandomizedSearchCV": lambda model: RandomizedSearchCV(model, GRID, n_iter=1, cv=2, error_score="raise"),
    "BaggingRegressor": lambda model: BaggingRegressor(model, n_estimators=2),
    "StackingRegressor": lambda model: StackingRegressor([("a", model)], LinearRegression()),
    "VotingRegressor": lambda model: VotingRegressor([("a", model)]),
    "RFECV": lambda model: RFECV(model, cv=2),
    "SequentialFeatureSelector": lambda model: SequentialFeatureSelector(model, n_features_to_select=1, cv=2),
}  # fmt: skip
OF_TWO_CLASSES = {
    "CalibratedClassifierCV": lambda model: CalibratedClassifierCV(model, cv=2),
    "TunedThresholdClassifierCV": lambda model: TunedThresholdClassifierCV(model, cv=2),
    "OneVsRestClassifier": lambda model: OneVsRestClassifier(model),
}


@pytest.mark.parametrize("kind", [*REFUSED, *OF_TWO_CLASSES])
def test_what_learns_more_from_the_rows_than_its_fits_is_refused_the_ledger(kind, routed, ledger):
    of_classes = kind in OF_TWO_CLASSES
    trainer = clone(CLASSIFIER if of_classes else REGRESSOR).set_fit_request(ledger=True)
    whole = (REFUSED | OF_TWO_CLASSES)[kind](trainer)
    # Some of them gather the errors of their fits.
    with pytest.raises(ValueError, match=r"ledger= came through .*private_grid_search.*Nothing was spent"):
        whole.fit(X, CLASSES if of_classes else Y, ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("routing", [False, True])
def test_a_grid_search_as_it_is_written_by_habit_names_the_way_out(routing, ledger):
    """By default such a search goes on after errors, and shows them at its end."""
    model = clone(REGRESSOR)
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            model.set_fit_request(ledger=True)
        with pytest.raises(ValueError, match="All the 4 fits failed") as failure:
            GridSearchCV(model, GRID, cv=2).fit(X, Y, ledger=ledger)
    assert "ledgerwood.trainers.private_grid_search(..., ledger=ledger)" in str(failure.value)
    assert len(ledger.entries) == 1


def test_a_search_is_known_in_other_threads_too(ledger):
    with joblib.parallel_backend("threading"), pytest.raises(InvalidParameter, match="a search over parameters"):
        GridSearchCV(clone(REGRESSOR), GRID, cv=2, n_jobs=2, error_score="raise").fit(X, Y, ledger=ledger)
    with pytest.raises(InvalidParameter, match="a search over parameters"):
        validation_curve(
            clone(REGRESSOR), X, Y, param_name="max_depth", param_range=[1, 2], cv=2, params={"ledger": ledger},
            error_score="raise",
        )  # fmt: skip
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_selection_of_features_is_refused_in_threads_too(n_jobs, routed, ledger):
    trainer = clone(REGRESSOR).set_fit_request(ledger=True)
    selection = SequentialFeatureSelector(trainer, n_features_to_select=1, cv=2, n_jobs=n_jobs)
    with joblib.parallel_backend("threading"), pytest.raises(ValueError, match=r"ledger= came .*Nothing was spent"):
        selection.fit(X, Y, ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("function", [cross_val_score, cross_val_predict])
def test_folds_in_threads_of_their_own_are_refused_the_ledger(function, ledger):
    """They do not show who asked for them."""
    with joblib.parallel_backend("threading"), pytest.raises(ValueError, match="in a thread of its own"):
        function(clone(REGRESSOR), X, Y, cv=2, n_jobs=2, params={"ledger": ledger})
    assert len(ledger.entries) == 1


def test_without_a_ledger_a_search_fits_as_ever_and_the_librarys_own_takes_one(ledger):
    assert GridSearchCV(clone(REGRESSOR), GRID, cv=2).fit(X, Y).best_params_["max_depth"] in (1, 2)
    result = private_cross_validate(clone(REGRESSOR), X, Y, ledger=ledger, cv=2)
    assert result.epsilon == pytest.approx(ledger.spent().epsilon, rel=1e-9)


def test_the_keys_of_a_stream_can_be_requested(routed):
    model = SGBDTRegressor(schema=SCHEMA, **SMALL).set_partial_fit_request(keys=True, ledger=True)
    requests = get_routing_for_object(model).partial_fit.requests
    assert {name for name, asked in requests.items() if asked} == {"keys", "ledger"}


def test_weights_reach_the_score_as_well(routed):
    model = clone(REGRESSOR).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    rows = pd.DataFrame(X, columns=["x0", "x1"])
    scores = cross_val_score(model, rows, Y, cv=2, params={"sample_weight": pd.Series(WEIGHTS)})
    assert np.isfinite(scores).all()
