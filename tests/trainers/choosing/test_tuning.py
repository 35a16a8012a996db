"""Private search: its whole price, what its runs draw, and a model that can be saved and re-added."""

import dataclasses
import math
import re

import mpmath
import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.accounting.ledger import DrawEntry
from ledgerwood.curator import Curator, PredictionFit, Table
from ledgerwood.curator.curator import CuratorRound
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import BudgetExceeded, InvalidParameter, LedgerCorrupted, RunFailed, UnsupportedEvent
from ledgerwood.mechanisms import SeededRandom
from ledgerwood.trainers import PrivateSearch, SGBDTClassifier, SGBDTRegressor

CLASSES = lw.Schema.uniform(0, 1, n_features=2, target=lw.Categorical("c", ("no", "yes")))
NUMBERS = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 10))
GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(0, 1, (400, 2))
YES = np.where(X[:, 0] > 0.5, "yes", "no")
Y = 10 * X[:, 1]
CANDIDATES = [
    {"n_estimators": 2, "max_depth": 1},
    {"n_estimators": 8, "max_depth": 2},
    {"n_estimators": 4, "learning_rate": 1e-6},
]


DISTRIBUTIONS = ["poisson", "negative_binomial"]


def make_runs(monkeypatch, runs):
    """Whatever the distribution, this many."""
    monkeypatch.setattr("ledgerwood.mechanisms.choices.repetition.RunCounts.draw", lambda self, source: runs)
    monkeypatch.setattr(
        "ledgerwood.mechanisms.choices.repetition.Inversion.draw", lambda self, n, source: np.array([runs])
    )


def search(kind=SGBDTClassifier, candidates=CANDIDATES, **options):
    schema = CLASSES if kind is SGBDTClassifier else NUMBERS
    return PrivateSearch(kind(), candidates, **{"epsilon": 2.0, "delta": 1e-5, "schema": schema} | options)


@pytest.mark.slow_after(2)  # calibrates each distribution of runs
@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize(("kind", "share"), [(SGBDTClassifier, 0.1), (SGBDTRegressor, 0.9), (SGBDTRegressor, 0.001)])
def test_the_shares_of_each_run_add_up_to_its_event_and_the_search_to_its_budget(kind, share, distribution, adjacency):
    model = search(kind, adjacency=adjacency, score_share=share, distribution=distribution)
    plan = model.make_plan(model.schema)
    epsilon = lw.price(plan.event).epsilon(1e-5)
    assert 2.0 * (1 - 1e-6) < epsilon <= 2.0
    with mpmath.workdps(40):
        whole = 1 / mpmath.mpf(plan.event.event.noise_multiplier) ** 2
        for candidate in plan.plans:
            train = mpmath.fsum(mpmath.mpf(part.mu()) ** 2 * count for part, count in candidate.event.draws())
            total = train + mpmath.mpf(plan.score_event.mu()) ** 2
            assert whole * (1 - mpmath.mpf("1e-4")) < total <= whole
    assert plan.score_mechanism.stddev == pytest.approx(plan.noise_multiplier / math.sqrt(share), rel=1e-5)


def test_the_search_finds_what_is_plainly_better():
    """The first of two candidates learns nothing; at this epsilon the choice between them is not in doubt."""
    pair = [{"n_estimators": 1, "learning_rate": 1e-9}, {"n_estimators": 40, "max_depth": 2}]
    model = search(SGBDTRegressor, candidates=pair, epsilon=50.0, mean_runs=20.0, random_state=1).fit(X, Y)
    assert model.best_index_ == 1
    assert model.score(X, Y) > 0.5
    errors = (model.predict(X) - Y) / 5.0
    fit = float(np.sum(1.0 - np.minimum((errors / 0.5) ** 2, 1.0)))
    assert model.best_score_ == pytest.approx(fit, abs=10 * model.plan_.score_mechanism.stddev)


@pytest.mark.slow_after(2)  # many fits and plans
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("kind", [SGBDTClassifier, SGBDTRegressor])
def test_a_fit_is_one_grant_and_one_draw_within_the_budget_and_verifies(kind, distribution, tmp_path):
    y = YES if kind is SGBDTClassifier else Y
    model = search(kind, distribution=distribution).fit(X, y)
    assert 1.99 < model.privacy_.epsilon <= 2.0
    assert model.privacy_.certified
    assert [entry.event for entry in model.ledger_.entries[1:]] == [model.plan_.event] * 2
    model.ledger_.save(tmp_path / "search.jsonl")
    report = lw.verification.verify_ledger(tmp_path / "search.jsonl", head=model.privacy_.ledger_head)
    assert (report.grants, report.draws) == (1, 1)
    assert is_classifier(model) == (kind is SGBDTClassifier)
    assert model.best_params_ == CANDIDATES[model.best_index_]
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(X))
    assert hasattr(model, "predict_proba") == hasattr(model, "decision_function") == (kind is SGBDTClassifier)


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_nothing_of_a_fit_but_the_best_run_depends_on_how_many_runs_there_were(seed, distribution, monkeypatch):
    """Ledger, statement and plan are the same whether 1 run is made or 7."""
    kept = {}
    for runs in (1, 7):
        make_runs(monkeypatch, runs)
        model = search(random_state=seed, distribution=distribution).fit(X, YES)
        kept[runs] = (
            model.ledger_,
            model.privacy_,
            model.plan_.event,
            sorted(vars(model)),
            sorted(vars(model.best_estimator_)),
        )
    assert kept[1] == kept[7]


def test_every_run_releases_its_plan_and_its_score_and_no_more(monkeypatch):
    releases, plain = [], CuratorRound.release

    def counted(self, query, mechanism, *, purpose):
        releases.append(mechanism.event(query.sensitivity(Adjacency.ADD_REMOVE), Adjacency.ADD_REMOVE))
        return plain(self, query, mechanism, purpose=purpose)

    monkeypatch.setattr(CuratorRound, "release", counted)
    model = search(SGBDTRegressor, random_state=3).fit(X, Y)
    scores = [i for i, event in enumerate(releases) if event == model.plan_.score_event]
    assert scores[-1] == len(releases) - 1
    starts = [0, *(i + 1 for i in scores[:-1])]
    allowed = [
        sorted(
            repr(part) for event in (plan.event, model.plan_.score_event) for part, n in event.draws() for _ in range(n)
        )
        for plan in model.plan_.plans
    ]
    for start, end in zip(starts, scores, strict=True):
        assert sorted(map(repr, releases[start : end + 1])) in allowed


def test_without_a_run_the_model_has_learnt_nothing(monkeypatch, tmp_path):
    make_runs(monkeypatch, 0)
    model = search(SGBDTRegressor).fit(X, Y)
    assert (model.best_index_, model.best_params_, model.best_score_) == (None, None, -math.inf)
    assert set(model.predict(X)) == {5.0}
    assert len(model.ledger_.entries) == 3
    model.save(tmp_path / "none")
    assert set(SGBDTRegressor.load(tmp_path / "none").predict(X)) == {5.0}


def test_a_search_that_seldom_runs_costs_less_than_a_run_and_its_model_is_loaded(monkeypatch, tmp_path):
    make_runs(monkeypatch, 1)
    model = search(mean_runs=1e-3).fit(X, YES)
    assert lw.price(model.best_estimator_.plan_.event).epsilon(1e-5) > 1.1 * model.privacy_.epsilon
    model.save(tmp_path / "rare")
    assert SGBDTClassifier.load(tmp_path / "rare").privacy_ == model.privacy_


def test_neither_ledger_nor_plan_nor_candidates_depend_on_the_rows(monkeypatch):
    taken, kept = [], []
    make_runs(monkeypatch, 5)
    run = SGBDTRegressor._train
    monkeypatch.setattr(SGBDTRegressor, "_train", lambda self, *rest: (taken.append(self.n_estimators), run(*rest))[1])
    for rows, labels in ((X, Y), (X[1:], Y[1:]), (np.full((3, 2), 0.5), np.zeros(3))):
        model = search(SGBDTRegressor, random_state=2).fit(rows, labels)
        kept.append((model.ledger_, model.plan_))
    assert taken[:5] == taken[5:10] == taken[10:]
    assert kept[0] == kept[1] == kept[2]


def test_a_search_repeats_by_its_seed_and_then_protects_nobody():
    one, other = (search(random_state=7).fit(X, YES) for _ in range(2))
    assert one.best_score_ == other.best_score_
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert one.privacy_.epsilon == math.inf
    assert one.ledger_.entries[-1].randomness == "test"


def test_the_best_model_is_saved_and_loaded_by_its_own_class(tmp_path):
    model = search().fit(X, YES)
    model.save(tmp_path / "best")
    loaded = SGBDTClassifier.load(tmp_path / "best")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.privacy_ == model.privacy_
    with pytest.raises(InvalidParameter, match="SGBDTClassifier"):
        PrivateSearch.load(tmp_path / "best")


def test_a_statement_below_the_price_of_the_search_is_refused():
    """A model's own plan costs less than the search that found it."""
    model = search().fit(X, YES)
    plan, statement = model.best_estimator_.plan_, model.privacy_
    statement.require_backing(plan.event, model.ledger_)
    own = lw.price(plan.event).quote(statement.delta).epsilon
    assert own < 0.9 * statement.epsilon
    with pytest.raises(LedgerCorrupted, match="is not what its grant costs"):
        dataclasses.replace(statement, epsilon=own * 1.01).require_backing(plan.event, model.ledger_)
    dearer = dataclasses.replace(plan, noise_multiplier=plan.noise_multiplier * 0.9)
    with pytest.raises(LedgerCorrupted, match="no grant"):
        statement.require_backing(dearer.event, model.ledger_)


def test_a_ledger_of_the_callers_pays_once_and_then_refuses():
    ledger = Ledger(Budget(epsilon=3.0, delta=1e-4, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    search().fit(X, YES, ledger=ledger)
    assert ledger.spent().epsilon <= 2.0
    assert sum(isinstance(entry, DrawEntry) for entry in ledger.entries) == 1
    before = ledger.entries
    with pytest.raises(BudgetExceeded):
        search().fit(X, YES, ledger=ledger)
    assert ledger.entries == before


REFUSED = [
    ({"candidates": []}, InvalidParameter, "at least one"),
    ({"candidates": {"n_estimators": 2}}, InvalidParameter, "sequence of mappings"),
    ({"candidates": [{"epsilon": 3.0}]}, InvalidParameter, "the search sets"),
    ({"candidates": [{"random_state": 3}]}, InvalidParameter, "the search sets"),
    ({"candidates": [{"max_bins": 8}, {"max_bins": 16}]}, InvalidParameter, "one encoding"),
    ({"candidates": [{"trees": 8}]}, ValueError, "Invalid parameter"),
    ({"candidates": [{"n_estimators": 2}, {"subsample": 0.5}]}, UnsupportedEvent, "not Gaussian"),
    ({"candidates": [{"initial_score": "laplace"}]}, UnsupportedEvent, "not Gaussian"),
    ({"mean_runs": 0.0}, InvalidParameter, "mean"),
    ({"distribution": "negative_binomial", "mean_runs": 1.0}, InvalidParameter, "mean"),
    ({"distribution": "negative_binomial", "shape": -1.0}, InvalidParameter, "shape"),
    ({"distribution": "geometric"}, InvalidParameter, "distribution='geometric' must be one of 'poisson', 'negative"),
    ({"score_share": 1.0}, InvalidParameter, "score_share"),
    ({"score_share": 0.0}, InvalidParameter, "score_share"),
    ({"error_width": 0.0}, InvalidParameter, "width"),
    ({"delta": 0.0}, InvalidParameter, "delta"),
]


@pytest.mark.slow_after(6)  # many fits and plans
@pytest.mark.parametrize(("options", "error", "words"), REFUSED)
def test_what_cannot_be_searched_is_refused_before_anything_is_spent(options, error, words):
    ledger = Ledger(Budget(epsilon=9.0, delta=0.1, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    with pytest.raises(error, match=words):
        search(SGBDTRegressor, **options).fit(X, Y, ledger=ledger)
    assert len(ledger.entries) == 1


def test_only_estimators_of_this_package_are_searched():
    with pytest.raises(InvalidParameter, match="tree estimator"):
        PrivateSearch(search(), CANDIDATES, schema=CLASSES).fit(X, YES)
    with pytest.raises(InvalidParameter, match="tree estimator"):
        PrivateSearch(object(), CANDIDATES, schema=CLASSES).fit(X, YES)


def test_a_run_that_breaks_loses_the_budget_and_leaves_no_model(monkeypatch):
    def breaks(self, *_):
        raise ValueError("row 17")

    monkeypatch.setattr(SGBDTClassifier, "_train", breaks)
    ledger = Ledger(Budget(epsilon=2.0, delta=1e-5, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    model = search()
    with pytest.raises(RunFailed):
        model.fit(X, YES, ledger=ledger)
    assert ledger.spent().epsilon > 1.99
    assert not {"best_estimator_", "ensemble_", "privacy_"} & set(vars(model))


def test_a_search_is_cloned_and_its_progress_is_silent(capsys):
    model = clone(search(verbose=1, candidates=[{"n_estimators": 2}]))
    model.fit(X, YES)
    output = capsys.readouterr()
    assert set(re.findall(r"(\S+)/(\S+)", output.err)) <= {("0", "?"), ("1", "1")}
    assert model.get_params()["estimator__n_estimators"] is None


def test_invalid_rows_score_nothing_and_raise_nothing(monkeypatch):
    """A row that gets past the owner's check all the same counts 0 in a score."""

    plan = search(SGBDTRegressor).make_plan(NUMBERS)
    table = Table(schema=NUMBERS, cells=np.zeros((2, 3), np.uint8), targets=np.array([math.nan, math.inf, 0.0]))
    ledger = Ledger(Budget(epsilon=9.0, delta=0.1, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    curator = Curator(table, ledger.grant(plan.score_event, purpose="score"), SeededRandom(0))
    query = PredictionFit(loss="squared", width=0.5).of(Ensemble(initial_score=0.0))
    assert table.statistic(query, np.empty(0, np.bool_)).tolist() == [2**20]
    with curator.open(plan.score_event, purpose="score") as round_:
        round_.release(query, plan.score_mechanism, purpose="score")


def test_the_threads_of_a_search_are_those_of_its_models_and_change_none(monkeypatch):
    make_runs(monkeypatch, 2)
    plain = {"delta": 1e-5, "candidates": [{"n_estimators": 2, "max_depth": 1}], "random_state": 3}
    one, three = (search(n_jobs=n_jobs, **plain).fit(X, YES) for n_jobs in (1, 3))
    assert [model.best_estimator_.n_jobs for model in (one, three)] == [1, 3]
    assert search(**plain).fit(X, YES).best_estimator_.n_jobs is None
    np.testing.assert_array_equal(one.decision_function(X), three.decision_function(X))
    np.testing.assert_array_equal(one.predict_log_proba(X), one.best_estimator_.predict_log_proba(X))
    with pytest.raises(InvalidParameter, match="n_jobs=0"):
        search(n_jobs=0, **plain).fit(X, YES)
