"""Private cross-validation: its total, its ledger, its folds and its scores."""

import functools
import itertools
import math
import pickle
import threading
import warnings

import mpmath
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom, chi2
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit, cautions
from ledgerwood.accounting.ledger import DrawEntry, GrantEntry
from ledgerwood.curator import Curator, Folds, fold_sums, given_rows
from ledgerwood.errors import BudgetExceeded, DrawRefused, InvalidParameter, LedgerError, PrivacyWarning, SchemaError
from ledgerwood.mechanisms import EllipticalGaussianMechanism, SecureRandom, SeededRandom
from ledgerwood.trainers import (
    DPBoostRegressor,
    FoldScores,
    OwnerOnly,
    PrivaTreeClassifier,
    SchemaScaler,
    SGBDTClassifier,
    SGBDTRegressor,
    ValidationPlan,
    private_cross_validate,
    private_grid_search,
)
from ledgerwood.trainers.choosing.cross_validation import _Run

CLASSES = lw.Schema.uniform(0, 1, n_features=2, target=lw.Categorical("c", ("no", "yes")))
NUMBERS = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 10))
X = np.random.default_rng(0).uniform(0, 1, (400, 2))
YES = np.where(X[:, 0] > 0.5, "yes", "no")
Y = 10 * X[:, 1]
CLASSIFIER = SGBDTClassifier(schema=CLASSES, n_estimators=3, max_depth=1)
REGRESSOR = SGBDTRegressor(schema=NUMBERS, n_estimators=3, max_depth=1)
PURE = PrivaTreeClassifier(schema=CLASSES, max_depth=1)
A = Adjacency.ADD_REMOVE


def ledger(epsilon=10.0, delta=1e-6, path=None):
    filter_ = lw.GDPFilter() if delta else lw.BasicFilter()
    budget = Budget(epsilon=epsilon, delta=delta, adjacency=A)
    if path is None:
        return Ledger(budget, unit=PrivacyUnit.ROW, filter=filter_)
    return Ledger.open(path, budget=budget, unit=PrivacyUnit.ROW, filter=filter_, dataset="rows")


@pytest.mark.parametrize("folds", [2, 3, 5, 8])
def test_the_total_is_that_of_all_fits_and_scores(folds):
    plan = ValidationPlan.of(CLASSIFIER, n_features=2, cv=folds, score_share=0.5)
    fit = CLASSIFIER.make_plan(CLASSES).event
    with mpmath.workdps(40):
        squares = mpmath.fsum(mpmath.mpf(part.mu()) ** 2 * count for part, count in fit.draws())
        score = sum((1 / mpmath.mpf(s)) ** 2 for s in plan.score_mechanism.stddevs)
        assert float(score / squares) == pytest.approx(0.5, rel=1e-6)
        mu = mpmath.sqrt(folds * squares + score)
        assert plan.event.mu() == pytest.approx(float(mu), rel=1e-12)
        # Gaussian privacy: delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu).
        epsilon = mpmath.mpf(plan.quote.epsilon)
        delta = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        assert 0.999 * 1e-6 < float(delta) <= 1e-6
    assert f"{folds} fits of epsilon 1 each and their scores cost epsilon {plan.quote.epsilon:.4g} together" in str(
        plan
    )


@pytest.mark.slow_after(9)  # many fits and plans
@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
@pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR, PURE, DPBoostRegressor(schema=NUMBERS, n_estimators=2)])
def test_scores_cost_their_share_of_one_fit(model, adjacency):
    model = clone(model).set_params(adjacency=adjacency)
    plan = ValidationPlan.of(model, n_features=2, score_share=0.25)
    if isinstance(plan.score_mechanism, EllipticalGaussianMechanism):
        assert plan.score_event.mu() == pytest.approx(0.5 * plan.fits[0].mu(), rel=1e-6)
        assert plan.score_event.mu() <= 0.5 * plan.fits[0].mu()
    else:
        assert plan.score_event.pure_epsilon() == pytest.approx(0.25, rel=1e-6)
        assert plan.score_event.pure_epsilon() <= 0.25


def randomised_response(bit, epsilon):
    keep = mpmath.exp(epsilon) / (1 + mpmath.exp(epsilon))
    return {bit: keep, 1 - bit: 1 - keep}


def outputs(rows, folds, epsilon, score_epsilon):
    """The exact distribution of all that a validation of parities releases, over coins and noise."""
    found = {}
    for places in itertools.product(range(folds), repeat=rows):
        fits = [randomised_response(sum(p != fold for p in places) % 2, epsilon) for fold in range(folds)]
        # One release of all folds' scores, of which a row changes one coordinate.
        scores = [randomised_response(sum(p == fold for p in places) % 2, score_epsilon) for fold in range(folds)]
        for released in itertools.product((0, 1), repeat=2 * folds):
            p = mpmath.fprod(law[bit] for law, bit in zip((*fits, *scores), released, strict=True))
            found[released] = found.get(released, 0) + p / mpmath.mpf(folds) ** rows
    return found


def hockey_stick(p, q, epsilon):
    return mpmath.fsum(max(p[key] - mpmath.exp(epsilon) * q[key], 0) for key in p)


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize("folds", [2, 3])
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_the_composition_covers_the_exact_loss_of_a_small_validation(folds, rows):
    """All outputs of all coins, enumerated: never above k - 1 fits and one score, less than what is charged."""
    epsilon, score = 0.7, 0.4
    few, many = outputs(rows, folds, epsilon, score), outputs(rows + 1, folds, epsilon, score)
    tight = lw.Composed(
        (
            lw.Repeated(lw.PureEvent(epsilon=epsilon, adjacency=A), count=folds - 1),
            lw.PureEvent(epsilon=score, adjacency=A),
        )
    )
    charged = lw.Composed((lw.Repeated(tight.events[0].event, count=folds), tight.events[1]))
    worst = 0
    for at in (0.0, 0.3, 0.8, 1.2, 1.7):
        exact = max(hockey_stick(few, many, at), hockey_stick(many, few, at))
        assert float(exact) <= lw.price(tight).delta(at) * (1 + 1e-9) + 1e-15
        assert lw.price(tight).delta(at) <= lw.price(charged).delta(at) * (1 + 1e-9) + 1e-12
        worst = max(worst, float(exact) - float(lw.price(tight.events[0].event).delta(at)))
    if rows == 0 and folds == 3:  # the fits do not compose in parallel: one fit's loss is passed
        assert worst > 0.01


def test_each_row_has_a_coin_of_its_own_whatever_the_others_are():
    n, k = 3000, 5
    whole = Folds(X=np.zeros((n, 1)), y=np.zeros(n), folds=k, source=SeededRandom(1))._places
    fewer = Folds(X=np.zeros((n - 1, 1)), y=np.zeros(n - 1), folds=k, source=SeededRandom(1))._places
    np.testing.assert_array_equal(whole[:-1], fewer)
    other_labels = Folds(X=np.zeros((n, 1)), y=np.arange(n), folds=k, source=SeededRandom(1))._places
    np.testing.assert_array_equal(whole, other_labels)
    pairs = np.bincount(whole[:-1] * k + whole[1:], minlength=k * k)
    assert chi2.sf(np.sum((pairs - pairs.mean()) ** 2 / pairs.mean()), k * k - 1) > 1e-6
    secret = Folds(X=np.zeros((n, 1)), y=np.zeros(n), folds=2, source=SecureRandom())._places
    assert min(binom.cdf(secret.sum(), n, 0.5), binom.sf(secret.sum(), n, 0.5)) > 1e-9


def test_training_rows_are_all_but_those_of_the_fold():
    rows = np.arange(50.0).reshape(-1, 1)
    folds = Folds(rows, np.arange(50), folds=3, source=SeededRandom(2))
    for fold in range(3):
        train, labels = folds.training(fold)
        assert set(labels) == set(np.flatnonzero(folds._places != fold))
        np.testing.assert_array_equal(train[:, 0], labels)


@pytest.mark.slow  # many fits and plans
@pytest.mark.parametrize("folds", [2, 3, 7, 16])
def test_the_released_sums_are_those_of_each_fold(folds):
    generator = np.random.default_rng(3)
    parts = Folds(np.zeros((200, 1)), generator.uniform(0, 4, 200), folds=folds, source=SeededRandom(5))
    held = parts.judged([lambda rows: np.full(len(rows), 1.0)] * folds, lw.Numeric("y", 0, 4), "absolute")
    sums = held.table().statistic(fold_sums(folds), np.empty(0, dtype=np.bool_)) / 2.0**20
    exact = held.exact()
    errors = np.abs(parts._y - 1.0) / 4.0
    for fold in range(folds):
        here = parts._places == fold
        assert exact[fold, 0] == sums[fold, 0] == here.sum()
        assert exact[fold, 1] == pytest.approx((1.0 - errors[here]).sum())
        assert -sums[fold, 1] == pytest.approx((1.0 - 2.0 * errors[here]).sum(), abs=200 * 2.0**-20)
    assert not sums[folds:].any()


@pytest.mark.slow  # many fits and plans
def test_one_grant_pays_and_the_ledger_verifies(tmp_path):
    with ledger(path=tmp_path / "cv.jsonl") as book:
        result = private_cross_validate(CLASSIFIER, X, YES, ledger=book, cv=3)
        grants = [entry for entry in book.entries if isinstance(entry, GrantEntry)]
        assert [grant.event for grant in grants] == [result.plan.event]
        draws = [entry for entry in book.entries if isinstance(entry, DrawEntry)]
        assert len(draws) == sum(count for _, count in result.plan.event.draws())
        assert book.spent().epsilon == pytest.approx(result.privacy.epsilon, rel=1e-9)
    assert result.epsilon == result.privacy.epsilon == result.plan.quote.epsilon > 1.4
    assert any("epsilon covers all 3 fits" in each for each in result.privacy.assumptions)
    report = lw.verification.verify_ledger(tmp_path / "cv.jsonl", head=result.privacy.ledger_head)
    assert report.grants == 1
    assert len(result.scores.test_score) == 3
    assert "epsilon in all" in repr(result)


@pytest.mark.slow  # many fits and plans
@pytest.mark.parametrize("model", [CLASSIFIER, PURE])
def test_a_ledger_that_cannot_hold_all_refuses_all(model):
    total = ValidationPlan.of(model, n_features=2, cv=4).quote.epsilon
    delta = model.delta
    book = ledger(total * 0.999, delta)
    before = book.entries
    with pytest.raises(BudgetExceeded, match=r"4 fits of epsilon 1 each and their scores cost .* none of them was"):
        private_cross_validate(model, X, YES, ledger=book, cv=4)
    assert book.entries == before
    private_cross_validate(model, X, YES, ledger=ledger(total * 1.001, delta), cv=4)


def test_without_a_ledger_the_total_is_told_up_front():
    with pytest.warns(PrivacyWarning, match="5 fits of epsilon 1 each and their scores cost epsilon") as caught:
        result = private_cross_validate(CLASSIFIER, X, YES)
    assert caught[0].filename == __file__
    (terms,) = (entry for entry in result.ledger.entries if entry.index == 0)
    assert terms.filter == lw.GDPFilter()
    assert terms.budget.epsilon == pytest.approx(result.epsilon, rel=1e-6)
    assert private_cross_validate(PURE, X, YES, cv=2).ledger.entries[0].filter == lw.BasicFilter()


@pytest.mark.parametrize("place", ["memory", "file", "database"])
def test_two_fits_at_a_time_share_one_ledger(place, tmp_path):
    where = {"memory": None, "file": tmp_path / "l.jsonl", "database": f"sqlite:///{tmp_path / 'l.db'}"}[place]
    seen = []
    fit = SGBDTClassifier.fit

    with ledger(path=where) as book:
        meeting = threading.Barrier(2, timeout=300)

        def met(self, *rows, **options):
            seen.append(threading.get_ident())
            meeting.wait()  # both are under way at once
            return fit(self, *rows, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SGBDTClassifier, "fit", met)
            result = private_cross_validate(CLASSIFIER, X, YES, ledger=book, cv=4, n_jobs=2)
        assert len(set(seen)) == 2
        assert book.spent().epsilon == pytest.approx(result.epsilon, rel=1e-9)
        assert len(book.entries) == 2 + sum(count for _, count in result.plan.event.draws())


@pytest.mark.slow  # many fits and plans
def test_under_a_seed_the_number_of_jobs_changes_nothing():
    seeded = clone(REGRESSOR).set_params(random_state=7)
    one, two = (private_cross_validate(seeded, X, Y, ledger=ledger(), n_jobs=jobs) for jobs in (1, 2))
    assert one.scores.test_score == two.scores.test_score
    assert one.epsilon == math.inf
    assert one.privacy.randomness == "test"


def test_a_pickled_ledger_says_what_to_do(tmp_path):
    with ledger(path=tmp_path / "l.jsonl") as book:
        for thing in (book, book.grant(REGRESSOR.make_plan(NUMBERS).event, purpose="a fit")):
            with pytest.raises(
                LedgerError, match=r"private_cross_validate and private_grid_search.*Ledger\.open\('sqlite"
            ):
                pickle.dumps(thing)


def test_scikit_learns_own_validation_with_jobs_and_a_ledger_names_the_way_out(tmp_path):
    """Its error says that a task could not be sent; the cause below it has the ledger's own words."""
    with ledger(path=tmp_path / "l.jsonl") as book:
        with pytest.raises(Exception, match="pickle") as caught:
            cross_val_score(CLASSIFIER, X, YES, cv=2, n_jobs=2, params={"ledger": book})
        assert "private_cross_validate" in str(caught.value.__cause__)
        # In one process the ledger is charged for every fit.
        cross_val_score(CLASSIFIER, X, YES, cv=2, params={"ledger": book})
        assert sum(isinstance(entry, GrantEntry) for entry in book.entries) == 2


def test_private_scores_are_the_exact_ones_and_noise_of_the_stated_size():
    """Of a constant label that is missed by 2 in a range of 10: only noise is left in the score."""
    model = SGBDTRegressor(schema=NUMBERS, n_estimators=1, max_depth=1, learning_rate=1e-9, initial_score="zero")
    found = private_cross_validate(model, X, np.full(len(X), 7.0), ledger=ledger(30)).scores
    assert abs(found.mean_test_score + 2.0) < 6 * found.noise_stddev
    assert 0.0 < found.noise_stddev < 2.0
    plan = functools.partial(ValidationPlan.of, model)
    given = given_rows(X, np.full(len(X), 7.0), None, NUMBERS)
    run = _Run.checked(model, ({},), lambda n: plan(n_features=n), given, None, ledger(30), None, None)
    folds = Folds(X, np.full(len(X), 7.0), folds=5, source=SeededRandom(0))
    held = folds.judged([lambda rows: np.full(len(rows), 5.0)] * 5, NUMBERS.target, "absolute")
    grant = ledger(1e3).grant(lw.Repeated(run.plan.score_event, count=200), purpose="scores")
    scores = [run._scores(held, grant) for _ in range(200)]
    errors = np.array([each.mean_test_score + 2.0 for each in scores])
    stddev = np.mean([each.noise_stddev for each in scores])
    assert abs(errors.mean()) < 5 * stddev / math.sqrt(200)
    # The stated size is an upper estimate: the mean's own share of the noise of the count is at most all of it.
    assert 0.5 * stddev < errors.std() < 1.2 * stddev


@pytest.mark.slow  # many fits and plans
def test_a_good_model_scores_better_than_one_that_learns_nothing():
    """Uniform labels in [0, 10] are missed by 2.5 on average if 5 is said of all of them."""
    good = SGBDTRegressor(schema=NUMBERS, n_estimators=60, max_depth=2, epsilon=50.0)
    poor = clone(good).set_params(learning_rate=1e-9, initial_score="zero")
    errors = [private_cross_validate(m, X, Y, ledger=ledger(900)).scores.mean_test_score for m in (good, poor)]
    assert errors[0] > -1.8
    assert errors[1] == pytest.approx(-2.5, abs=0.4)


@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", "neg_mean_squared_error"])
def test_scores_for_the_owner_are_exact_hidden_and_free(scoring):
    book = ledger()
    result = private_cross_validate(REGRESSOR, X, Y, ledger=book, scores="owner", scoring=scoring)
    assert result.plan.score_event is None
    assert len([e for e in book.entries if isinstance(e, DrawEntry)]) == 5 * sum(
        count for _, count in result.plan.fits[0].draws()
    )
    assert isinstance(result.scores, OwnerOnly)
    assert "owner only, not private" in repr(result.scores)
    exact = result.scores.reveal()
    assert isinstance(exact, FoldScores)
    assert str(exact.mean_test_score) not in repr(result)
    assert -100.0 <= exact.mean_test_score < 0.0
    assert exact.noise_stddev == 0.0
    assert any("owner of the rows only" in each for each in result.privacy.assumptions)
    with pytest.raises(LedgerError, match="not private"):
        pickle.dumps(result.scores)


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (pd.DataFrame(X, columns=["x0", "x1"], index=np.arange(400)[::-1]), pd.Series(YES, index=np.arange(400) + 7)),
        (pl.DataFrame(X, schema=["x0", "x1"]), pl.Series(YES)),
        (X.tolist(), YES.tolist()),
    ],
    ids=["pandas", "polars", "lists"],
)
def test_rows_come_as_frames_or_lists(rows, labels):
    model = clone(CLASSIFIER).set_params(random_state=3, n_estimators=20, epsilon=50.0)
    found = private_cross_validate(model, rows, labels, ledger=ledger(900), cv=2, scores="owner").scores.reveal()
    wanted = private_cross_validate(model, X, YES, ledger=ledger(900), cv=2, scores="owner").scores.reveal()
    assert found.test_score == wanted.test_score


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_fold_that_leaves_no_training_rows_is_fitted_on_none(n):
    """With one row every validation has such a fold: it must run, or its error would tell of the number of rows."""
    for _ in range(6):
        result = private_cross_validate(REGRESSOR, X[:n], Y[:n], ledger=ledger(), cv=2)
        assert len(result.scores.test_score) == 2


@pytest.mark.parametrize(
    ("rows", "labels"),
    [
        (X, Y),
        (pd.DataFrame(X, columns=["x0", "x1"]), pd.Series(Y)),
        (pl.DataFrame(X, schema=["x0", "x1"]), pl.Series(Y)),
        (X.tolist(), Y.tolist()),
    ],
    ids=["array", "pandas", "polars", "lists"],
)
def test_the_training_rows_of_a_fold_may_be_none_of_the_same_types(rows, labels):
    """Everybody in one fold: a fit on nobody, which the noise alone decides."""
    folds = Folds(rows, labels, folds=2, source=SeededRandom(1))
    folds._places[:] = 0
    nobody, none = folds.training(0)
    assert type(nobody) is type(rows)
    assert len(nobody) == len(none) == 0
    model = SGBDTRegressor(schema=NUMBERS, n_estimators=4, random_state=1)
    found = model.fit(nobody, none).predict(rows)
    np.testing.assert_array_equal(found, model.fit(X[:0], Y[:0]).predict(X))


ODD = [
    None,
    [7.0],
    [7.0, 8.0],
    "seven",
    {"seven": 7},
    float("nan"),
    float("inf"),
    -1e300,
    (),
    np.zeros((2, 2)),
    10**400,
]


@pytest.mark.parametrize("scores", ["private", "owner"])
def test_no_value_stops_a_validation_or_changes_what_it_says(scores, recwarn):
    """The rows are read one by one, as in a fit: odd labels, odd cells, and rows that are none."""
    rows, labels = X[:60].tolist(), Y[:60].tolist()
    for place, odd in enumerate(ODD):
        labels[place] = odd
        rows[20 + place][1] = odd
        rows[40 + place] = odd
    seeded = clone(REGRESSOR).set_params(random_state=7)
    result = private_cross_validate(seeded, rows, labels, ledger=ledger(), cv=2, scores=scores)
    if scores == "owner":
        # Labels that cannot be read count nowhere: the scores are those of the rest.
        assert all(-10.0 < score <= 0.0 for score in result.scores.reveal().test_score)
    assert [each for each in recwarn if each.category is not PrivacyWarning] == []


def test_rows_that_do_not_match_are_refused_without_a_number_of_rows():
    book = ledger()
    for rows, labels in ((X, Y[1:]), (X.tolist(), Y[1:].tolist()), (pl.DataFrame(X, ["x0", "x1"]), pl.Series(Y[1:]))):
        with pytest.raises(SchemaError, match="X and y differ") as caught:
            private_cross_validate(REGRESSOR, rows, labels, ledger=book)
        assert not any(number in str(caught.value) for number in ("399", "400"))
    assert len(book.entries) == 1
    for none in (None, 3.0, object()):
        with pytest.raises(SchemaError, match="give a data frame"):
            Folds(X, none, folds=2, source=SeededRandom(0))


@pytest.mark.parametrize(
    ("model", "labels", "words"),
    [
        (REGRESSOR, YES, "a regressor needs numbers"),
        (CLASSIFIER, X[:, 0], "declares the classes"),
        (CLASSIFIER, None, "requires y"),
    ],
)
def test_labels_of_another_type_are_refused_before_anything_is_spent(model, labels, words):
    book = ledger()
    with pytest.raises(SchemaError, match=words):
        private_cross_validate(model, X, labels, ledger=book)
    assert len(book.entries) == 1


def test_a_list_of_rows_needs_no_width_where_the_schema_has_one():
    every = clone(REGRESSOR).set_params(schema=lw.Schema.uniform(0, 1, target=NUMBERS.target))
    with pytest.raises(SchemaError, match="number of columns depends on its rows"):
        private_cross_validate(every, X.tolist(), Y.tolist(), ledger=ledger())
    assert len(private_cross_validate(every, X, Y, ledger=ledger(), cv=2).scores.test_score) == 2


def told(caught):
    return [str(each.message) for each in caught if each.category is PrivacyWarning]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_every_caution_comes_once_for_all_fits(n_jobs):
    schema = lw.Schema(features=(lw.Numeric("once0", 0, 1), lw.Numeric("once1", 0, 1)), target=NUMBERS.target)
    model = SGBDTRegressor(
        schema=schema, n_estimators=3, max_depth=1, epsilon=0.01, delta=0.002, expected_rows=20, random_state=5
    )
    SGBDTRegressor(schema=schema, n_estimators=3, max_depth=1).fit(X, Y, ledger=ledger())
    for act in (
        lambda: private_cross_validate(model, X, Y, n_jobs=n_jobs),
        lambda: private_grid_search(model, {"max_depth": [1, 2]}, X, Y, cv=2, n_jobs=n_jobs),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            act()
        texts = told(caught)
        for words in ("random_state=5", "has fitted columns", "that of one fit", "delta=0.002 (", "little but noise"):
            assert sum(words in text for text in texts) == 1, words
        assert len(texts) == 5
        assert {each.filename for each in caught if each.category is PrivacyWarning} == {__file__}


def test_a_validation_on_a_given_ledger_says_nothing_of_ledgers_and_counts_as_one_use():
    schema = lw.Schema(features=(lw.Numeric("use0", 0, 1), lw.Numeric("use1", 0, 1)), target=NUMBERS.target)
    model = SGBDTRegressor(schema=schema, n_estimators=3, max_depth=1, expected_rows=10**6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        private_cross_validate(model, X, Y, ledger=ledger(), cv=2)
    assert told(caught) == []
    with pytest.warns(PrivacyWarning, match="has fitted columns"):
        model.fit(X, Y)


def test_a_refused_validation_is_no_use_of_the_rows():
    schema = lw.Schema(features=(lw.Numeric("no0", 0, 1), lw.Numeric("no1", 0, 1)), target=NUMBERS.target)
    model = SGBDTRegressor(schema=schema, n_estimators=3, max_depth=1, expected_rows=10**6)
    with pytest.raises(BudgetExceeded):
        private_cross_validate(model, X, Y, ledger=ledger(0.1), cv=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    assert told(caught) == []


def test_candidates_are_warned_of_once():
    assert cautions.of_candidates([["a", "b"], ["a", "b"]]) == ["a", "b"]
    assert cautions.of_candidates([["a"], ["a", "c"], ["a", "d"]]) == [
        "a",
        "2 of 3 candidates cause a warning; candidate 1: c",
    ]
    assert cautions.of_candidates([[], []]) == []


REFUSED = [
    ({"cv": KFold(3)}, InvalidParameter, "at random and in secret"),
    ({"cv": StratifiedKFold(3)}, InvalidParameter, "at random and in secret"),
    ({"cv": 1}, InvalidParameter, r"cv=1 must be a whole number in \[2, 256\]"),
    ({"cv": True}, InvalidParameter, "cv=True"),
    ({"scores": "public"}, InvalidParameter, "scores"),
    ({"scoring": "r2"}, InvalidParameter, "scoring"),
    ({"scoring": "accuracy"}, InvalidParameter, "does not fit target"),
    ({"score_share": 0.0}, InvalidParameter, "score_share"),
    ({"score_share": "all"}, InvalidParameter, "score_share"),
    ({"n_jobs": 0}, InvalidParameter, "n_jobs=0"),
    ({"n_jobs": "two"}, InvalidParameter, "n_jobs"),
]


@pytest.mark.parametrize(("options", "error", "words"), REFUSED)
def test_what_cannot_be_validated_is_refused_before_anything_is_spent(options, error, words):
    book = ledger()
    with pytest.raises(error, match=words):
        private_cross_validate(REGRESSOR, X, Y, ledger=book, **options)
    assert len(book.entries) == 1


def test_other_estimators_and_ledgers_are_refused():
    book = ledger()
    pipe = make_pipeline(SchemaScaler(NUMBERS), REGRESSOR)
    with pytest.raises(InvalidParameter, match="check_pipeline"):
        private_cross_validate(pipe, X, Y, ledger=book)
    with pytest.raises(InvalidParameter, match="must be a trainer"):
        private_cross_validate(SGBDTRegressor, X, Y, ledger=book)
    with pytest.raises(SchemaError, match="declared schema"):
        private_cross_validate(SGBDTRegressor(), X, Y, ledger=book)
    with pytest.raises(InvalidParameter, match="not a Grant"):
        private_cross_validate(REGRESSOR, X, Y, ledger=book.grant(REGRESSOR.make_plan(NUMBERS).event, purpose="one"))
    with pytest.raises(SchemaError):
        private_cross_validate(REGRESSOR, X, Y[1:], ledger=ledger())


GRID = {"n_estimators": [2, 60], "learning_rate": [1e-9, 0.3]}


def test_a_search_finds_what_is_plainly_better_and_fits_it_on_all_rows():
    model = SGBDTRegressor(schema=NUMBERS, max_depth=2, epsilon=50.0)
    book = ledger(3000)
    result = private_grid_search(model, GRID, X, Y, ledger=book, cv=2, n_jobs=2)
    assert result.best_params == {"n_estimators": 60, "learning_rate": 0.3}
    assert result.candidates[result.best_index] == result.best_params
    assert result.best_estimator.score(X, Y) > 0.5
    assert result.plan.n_fits == 9
    grants = [entry.event for entry in book.entries if isinstance(entry, GrantEntry)]
    assert grants == [result.plan.event, result.best_estimator.plan_.event]
    # The stated total is that of the costliest last fit.
    assert book.spent().epsilon <= result.epsilon * (1 + 1e-9)
    assert result.ledger.head == result.privacy.ledger_head == book.head


def test_the_model_of_a_search_is_saved_with_a_ledger_that_backs_it(tmp_path):
    result = private_grid_search(CLASSIFIER, {"max_depth": [1, 2]}, X, YES, ledger=ledger(), cv=2)
    result.best_estimator.save(tmp_path / "best")
    assert SGBDTClassifier.load(tmp_path / "best").privacy_ == result.best_estimator.privacy_


@pytest.mark.slow_after(1)  # two searches of five fits each
@pytest.mark.parametrize("model", [CLASSIFIER, PURE])
def test_a_search_that_does_not_fit_with_its_last_fit_is_not_begun(model):
    grid, delta = {"max_depth": [1, 2]}, model.delta
    plan = ValidationPlan.of(model, n_features=2, cv=2, candidates=[{"max_depth": 1}, {"max_depth": 2}], refit=True)
    book = ledger(plan.quote.epsilon * 0.999, delta)
    assert lw.price(plan.event).epsilon(delta) < book.budget.epsilon
    with pytest.raises(BudgetExceeded, match="none of them was begun"):
        private_grid_search(model, grid, X, YES, ledger=book, cv=2)
    assert len(book.entries) == 1
    private_grid_search(model, grid, X, YES, ledger=ledger(plan.quote.epsilon * 1.001, delta), cv=2)
    with pytest.warns(PrivacyWarning, match="5 fits"):
        private_grid_search(model, grid, X, YES, cv=2)


def test_what_is_chosen_by_exact_scores_is_for_the_owner_too():
    with pytest.raises(InvalidParameter, match="refit=False"):
        private_grid_search(CLASSIFIER, {"max_depth": [1, 2]}, X, YES, ledger=ledger(), scores="owner")
    result = private_grid_search(
        CLASSIFIER, {"max_depth": [1, 2]}, X, YES, ledger=ledger(), cv=2, scores="owner", refit=False
    )
    assert isinstance(result.scores, OwnerOnly)
    assert isinstance(result.best_index, OwnerOnly)
    assert isinstance(result.best_params, OwnerOnly)
    assert result.best_params.reveal() in result.candidates
    assert result.best_estimator is None
    assert "max_depth" not in repr(result)


@pytest.mark.parametrize(
    "grid", [{"epsilon": [1, 2]}, {"schema": [CLASSES]}, [], "abc", {"max_depth": 3}, [{"delta": [0]}]]
)
def test_grids_that_are_none_are_refused(grid):
    book = ledger()
    with pytest.raises(InvalidParameter):
        private_grid_search(CLASSIFIER, grid, X, YES, ledger=book)
    assert len(book.entries) == 1


def test_a_fit_draws_from_a_grant_that_holds_it_once():
    book = ledger()
    event = REGRESSOR.make_plan(NUMBERS).event
    grant = book.grant(lw.Repeated(event, count=2), purpose="two fits")
    for _ in range(2):
        model = SGBDTRegressor(schema=NUMBERS, n_estimators=3, max_depth=1).fit(X, Y, ledger=grant)
        assert model.ledger_.head == model.privacy_.ledger_head == book.head
    before = book.entries
    with pytest.raises(DrawRefused, match="that the plan needs"):
        SGBDTRegressor(schema=NUMBERS, n_estimators=3, max_depth=1).fit(X, Y, ledger=grant)
    assert book.entries == before
    assert not grant.remaining


def test_room_is_asked_for_without_taking_it():
    book = ledger(1.0)
    event = REGRESSOR.make_plan(NUMBERS).event
    book.require_room([event])
    with pytest.raises(BudgetExceeded):
        book.require_room([event, event])
    assert len(book.entries) == 1


def test_the_score_round_releases_the_planned_event_and_no_more():
    plan = ValidationPlan.of(CLASSIFIER, n_features=2, cv=3)
    folds = Folds(X, YES, folds=3, source=SeededRandom(0))
    held = folds.judged([lambda rows: np.full(len(rows), "yes")] * 3, CLASSES.target, "right")
    grant = ledger().grant(plan.score_event, purpose="scores")
    with Curator(held.table(), grant, SecureRandom()).open(plan.score_event, purpose="scores") as round_:
        sums = round_.release(fold_sums(3), plan.score_mechanism, purpose="scores").real
    assert sums.shape == (4, 2)
    assert not grant.remaining


def test_labels_in_a_column_are_told_of_as_often_whatever_the_rows():
    """A warning for each fold that has held-out rows would count them."""
    told = []
    for n in (0, 1, 2, 40):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            private_cross_validate(REGRESSOR, X[:n], Y[:n, np.newaxis], cv=5, ledger=ledger())
        told.append([(each.category, str(each.message), each.filename, each.lineno) for each in found])
    assert any(category is DataConversionWarning for category, *_ in told[0])
    assert told == [told[0]] * 4


@pytest.mark.parametrize("place", ["memory", "files"])
def test_held_out_rows_count_with_the_weights_of_their_classes(place, tmp_path):
    """Whoever never says "yes" is right on as much as "no" weighs; and the table holds what the owner is shown."""
    target = lw.Categorical("c", ("no", "yes"), weights=(1.0, 8.0))
    labels = np.array(["yes", "no", "no", "no", "?"] * 20)
    says_no = [lambda rows: np.full(len(rows), "no")] * 2
    if place == "memory":
        held = Folds(X[:100], labels, folds=2, source=SeededRandom(0)).judged(says_no, target, "right")
        told = held.table().statistic(fold_sums(2), np.empty(0, dtype=np.bool_)) * 2.0**-20
        exact = held.exact()
    else:
        frame = pd.DataFrame(X[:100], columns=["x0", "x1"]).assign(c=labels)
        frame.to_csv(tmp_path / "rows.csv", index=False)
        schema = lw.Schema.uniform(0, 1, n_features=2, target=target)
        with given_rows(tmp_path / "rows.csv", "c", None, schema).place() as room:
            folds = given_rows(tmp_path / "rows.csv", "c", None, schema).folds(2, SeededRandom(0), room)
            held = folds.judged(says_no, target, "right")
            told = held.table().statistic(fold_sums(2), np.empty(0, dtype=np.bool_)) * 2.0**-20
            exact = held.exact()
    np.testing.assert_array_equal(exact.sum(axis=0), [20 + 60 / 8, 60 / 8])
    np.testing.assert_array_equal(told[:, 0], exact[:, 0])
    np.testing.assert_array_equal(-told[:, 1], 2.0 * exact[:, 1] - exact[:, 0])


def test_a_validation_says_that_the_weights_of_classes_are_public():
    target = lw.Categorical("c", ("no", "yes"), weights=(1.0, 8.0))
    schema = lw.Schema.uniform(0, 1, n_features=2, target=target)
    told = [
        private_cross_validate(clone(CLASSIFIER).set_params(schema=each), X, YES, cv=2, ledger=ledger()).privacy
        for each in (CLASSES, schema)
    ]
    assert [any("weights of the classes are public" in text for text in each.assumptions) for each in told] == [
        False,
        True,
    ]
