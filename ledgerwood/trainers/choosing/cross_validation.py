"""Cross-validation and search over a grid, all fits on one ledger: folds by secret coins, scores that are releases.

docs/explanation/cross-validation.md.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, final, overload

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.model_selection import ParameterGrid

from ledgerwood import _validate, cautions
from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.accounting.ledger import Grant, Ledger, LedgerRecord
from ledgerwood.curator import (
    Categorical,
    Curator,
    GivenRows,
    HeldOut,
    Judgement,
    Numeric,
    Place,
    column_count,
    fold_sums,
    given_rows,
    is_collection,
    keeps_no_rows,
    points_to_check,
    require_labels,
)
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.mechanisms import EllipticalGaussianMechanism, RandomSource
from ledgerwood.schema import Target
from ledgerwood.trainers.base.privacy import (
    ASSUMPTIONS,
    CLASS_WEIGHTS,
    DECLARED,
    ON_DISK,
    PrivacyStatement,
    declared_in,
    grant_delta,
    require_ledger,
)
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.trainers.choosing.validation_plan import (
    OF_THE_WHOLE,
    ScoreRelease,
    Scoring,
    ValidationPlan,
    declared_schema,
    require_trainer,
    scoring_of,
)
from ledgerwood.trainers.choosing.validation_results import CrossValidation, FoldScores, GridSearch, OwnerOnly

_JUDGEMENTS: dict[Scoring, Judgement] = {
    "accuracy": "right",
    "neg_mean_absolute_error": "absolute",
    "neg_mean_squared_error": "squared",
}
ParameterLists = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
FOLDS = "the fold of each row is drawn by a separate secret coin, independent of all other rows, and is not released"
OWNER_SCORES = (
    "held-out scores are not part of this guarantee: they are exact, for the owner of the rows only, and so is "
    "whatever is chosen by them"
)


@overload
def private_cross_validate(
    estimator: AbstractTrainer, X: Any, y: Any, *, ledger: Ledger | None = None, cv: int = 5,
    scores: Literal["private"] = "private", scoring: Scoring | None = None, score_share: float = 0.5,
    n_jobs: int | None = None, scratch: str | os.PathLike[str] | None = None,
) -> CrossValidation[FoldScores]: ...  # fmt: skip


@overload
def private_cross_validate(
    estimator: AbstractTrainer, X: Any, y: Any, *, ledger: Ledger | None = None, cv: int = 5,
    scores: Literal["owner"], scoring: Scoring | None = None, score_share: float = 0.5,
    n_jobs: int | None = None, scratch: str | os.PathLike[str] | None = None,
) -> CrossValidation[OwnerOnly[FoldScores]]: ...  # fmt: skip


@overload
def private_cross_validate(
    estimator: AbstractTrainer, X: Any, y: Any, *, ledger: Ledger | None = None, cv: int = 5,
    scores: ScoreRelease, scoring: Scoring | None = None, score_share: float = 0.5,
    n_jobs: int | None = None, scratch: str | os.PathLike[str] | None = None,
) -> CrossValidation[Any]: ...  # fmt: skip


@keeps_no_rows
def private_cross_validate(
    estimator: AbstractTrainer,
    X: Any,
    y: Any,
    *,
    ledger: Ledger | None = None,
    cv: int = 5,
    scores: ScoreRelease = "private",
    scoring: Scoring | None = None,
    score_share: float = 0.5,
    n_jobs: int | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> CrossValidation[Any]:
    """Estimate how good models of this estimator are, with all fits and scores on one ledger.

    The estimator's epsilon is that of one fit, since what is estimated is how good such a fit is. The whole costs more:
    `ValidationPlan.of(...).quote` says how much before anything is read, the result's `privacy` afterwards, and a
    ledger that cannot hold all of it refuses all of it. Proofs: docs/explanation/cross-validation.md.

    Args:
        estimator: a trainer of this library with a declared schema; it is copied, never fitted itself.
        X: array-like or data frame, shape (n_rows, n_features); or rows in files, as `fit` takes them, which each fit
            reads again.
        y: array-like, shape (n_rows,); of rows in files the name of the label's column.
        ledger: where all is paid from, by one grant. None opens one in memory that holds exactly this, Gaussian where
            the plans are, and warns of the total.
        cv: number of folds, in [2, 256]. Each row draws its fold by a secret coin, so that folds differ in size.
        scores: "private": noisy and charged; "owner": exact, uncharged, and wrapped so that they do not show.
        scoring: "accuracy" of classes, in which a row counts with its class's weight where the schema gives classes
            weights; "neg_mean_absolute_error" (the default) or "neg_mean_squared_error" of numbers,
            in the label's unit and within its declared range.
        score_share: what the private scores cost, as a share of the cost of one fit: of mu squared where all noise is
            Gaussian, else of epsilon.
        n_jobs: fits at a time, as in joblib; threads of this process, which share the ledger, be it a file.
        scratch: for rows in files, as in `fit`; each fit at a time needs its own room.

    Raises:
        InvalidParameter, SchemaError, CalibrationFailed: what cannot be validated, by names, types and shapes alone;
            `schema.check(X, y)` tells the owner of values. Nothing was spent.
        BudgetExceeded, AdjacencyMismatch, UnsupportedEvent: the ledger cannot hold all fits. Nothing was spent.
        FilesChanged, ScratchFull: a file changed, or the disk is full; the message says whether the fits are paid for.

    Warns:
        PrivacyWarning: of the total where no ledger was passed, and of what a fit would warn of; once for all fits.
    """

    def plan(n_features: int) -> ValidationPlan:
        return ValidationPlan.of(estimator, n_features=n_features, cv=cv, scores=scores, score_share=score_share)

    given = _given(estimator, X, y, scratch)
    with given.place() as place:
        run = _Run.checked(estimator, ({},), plan, given, place, ledger, scoring, n_jobs)
        (found,), grant = run.carried_out(place, n_jobs)
    record = run.ledger.record()
    return CrossValidation(
        plan=run.plan,
        privacy=run.statement(record, grant),
        ledger=record,
        scoring=run.scoring,
        scores=OwnerOnly(found) if scores == "owner" else found,
    )


@overload
def private_grid_search(
    estimator: AbstractTrainer, param_grid: ParameterLists, X: Any, y: Any, *, ledger: Ledger | None = None,
    cv: int = 5, scores: Literal["private"] = "private", scoring: Scoring | None = None, score_share: float = 0.5,
    n_jobs: int | None = None, refit: bool = True, scratch: str | os.PathLike[str] | None = None,
) -> GridSearch[tuple[FoldScores, ...], int, Mapping[str, Any]]: ...  # fmt: skip


@overload
def private_grid_search(
    estimator: AbstractTrainer, param_grid: ParameterLists, X: Any, y: Any, *, ledger: Ledger | None = None,
    cv: int = 5, scores: Literal["owner"], scoring: Scoring | None = None, score_share: float = 0.5,
    n_jobs: int | None = None, refit: bool = True, scratch: str | os.PathLike[str] | None = None,
) -> GridSearch[OwnerOnly[tuple[FoldScores, ...]], OwnerOnly[int], OwnerOnly[Mapping[str, Any]]]: ...  # fmt: skip


@overload
def private_grid_search(
    estimator: AbstractTrainer, param_grid: ParameterLists, X: Any, y: Any, *, ledger: Ledger | None = None,
    cv: int = 5, scores: ScoreRelease, scoring: Scoring | None = None, score_share: float = 0.5,
    n_jobs: int | None = None, refit: bool = True, scratch: str | os.PathLike[str] | None = None,
) -> GridSearch[Any, Any, Any]: ...  # fmt: skip


@keeps_no_rows
def private_grid_search(
    estimator: AbstractTrainer,
    param_grid: ParameterLists,
    X: Any,
    y: Any,
    *,
    ledger: Ledger | None = None,
    cv: int = 5,
    scores: ScoreRelease = "private",
    scoring: Scoring | None = None,
    score_share: float = 0.5,
    n_jobs: int | None = None,
    refit: bool = True,
    scratch: str | os.PathLike[str] | None = None,
) -> GridSearch[Any, Any, Any]:
    """Cross-validate every candidate of a grid, choose the best by its scores, and fit it on all rows.

    All is released and all is charged: candidates times folds fits, and one more. `PrivateSearch` releases the best
    model and its score only, for not much more than the cost of one fit: use it where the other scores are not needed.

    Args:
        estimator, X, y, ledger, cv, scores, scoring, score_share, n_jobs, scratch: as in `private_cross_validate`.
        param_grid: as of scikit-learn's GridSearchCV: lists of values by parameter, or several such mappings. Public.
        refit: fit the best candidate on all rows; refused with `scores="owner"`, where the choice is not private.

    Raises:
        InvalidParameter, SchemaError, CalibrationFailed: as `private_cross_validate`. Nothing was spent.
        BudgetExceeded, AdjacencyMismatch, UnsupportedEvent: the ledger cannot hold all fits. Nothing was spent.

    Warns:
        PrivacyWarning: as `private_cross_validate`.
    """
    if scores == "owner" and refit:
        raise InvalidParameter(
            "refit=True with scores='owner': a model whose parameters were chosen by exact scores tells of the rows "
            "beyond its epsilon; set refit=False, or scores='private'"
        )
    candidates = _grid(param_grid)

    def plan(n_features: int) -> ValidationPlan:
        return ValidationPlan.of(
            estimator, n_features=n_features, cv=cv, scores=scores, score_share=score_share, candidates=candidates,
            refit=refit,
        )  # fmt: skip

    given = _given(estimator, X, y, scratch)
    with given.place() as place:
        run = _Run.checked(estimator, candidates, plan, given, place, ledger, scoring, n_jobs)
        found, grant = run.carried_out(place, n_jobs)
    best, model = int(np.argmax([each.mean_test_score for each in found])), None
    if refit:
        with cautions.already_warned():
            rows, labels = given.again
            model = run.copy(best, seed_place=-1).fit(rows, labels, ledger=run.ledger, scratch=given.scratch)
    record = run.ledger.record() if model is None else model.ledger_
    return GridSearch(
        plan=run.plan,
        privacy=run.statement(record, grant),
        ledger=record,
        scoring=run.scoring,
        candidates=candidates,
        scores=OwnerOnly(found) if scores == "owner" else found,
        best_index=OwnerOnly(best) if scores == "owner" else best,
        best_estimator=model,
    )


def _grid(param_grid: Any) -> tuple[Mapping[str, Any], ...]:
    try:
        candidates = tuple(ParameterGrid(param_grid))
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"param_grid={param_grid!r} must be lists of values by parameter: {error}") from error
    if not candidates:
        raise InvalidParameter(f"param_grid={param_grid!r} has no candidate")
    for candidate in candidates:
        if taken := sorted(OF_THE_WHOLE & set(candidate)):
            raise InvalidParameter(f"candidate {candidate!r} sets {taken}, which the estimator sets for all")
    return candidates


def _given(estimator: object, X: Any, y: Any, scratch: str | os.PathLike[str] | None) -> GivenRows:
    require_trainer(estimator)
    assert isinstance(estimator, AbstractTrainer)  # above
    if is_collection(X):
        raise SchemaError(
            "a private cross-validation needs rows in memory or in files: those of a Dask collection are in no folds"
        )
    return given_rows(X, y, None, declared_schema(estimator), scratch)


def _require_jobs(n_jobs: object) -> None:
    """Refuse what joblib would refuse later, when all is paid for."""
    if n_jobs is None or (isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool) and n_jobs != 0):
        return
    raise _validate.fail(
        "n_jobs", n_jobs, "None or a whole number other than 0; -1 for all processors", "fits at a time"
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Run:
    """A checked validation whose ledger has room for it.

    Args:
        given: the rows.
        columns: the names of the features.
        own: whether the ledger was opened for this.
        source: of folds and noise.
        seeds: one for each fit where the randomness is a test's, else none.
    """

    estimator: AbstractTrainer
    candidates: Sequence[Mapping[str, Any]]
    plan: ValidationPlan
    scoring: Scoring
    target: Target
    given: GivenRows
    columns: tuple[str, ...]
    ledger: Ledger
    own: bool
    source: RandomSource
    seeds: tuple[int, ...]

    @classmethod
    def checked(
        cls,
        estimator: AbstractTrainer,
        candidates: Sequence[Mapping[str, Any]],
        plan_of: Callable[[int], ValidationPlan],
        given: GivenRows,
        place: Place,
        ledger: Ledger | None,
        scoring: Scoring | None,
        n_jobs: int | None,
    ) -> "_Run":
        """Plan, by the number of features, and refuse by names, types and shapes what could not be carried out."""
        if isinstance(ledger, Grant):
            raise InvalidParameter("ledger must be a ledgerwood.Ledger, not a Grant: all fits are granted at once")
        require_ledger(ledger)
        _require_jobs(n_jobs)
        schema = declared_schema(estimator)
        target = schema.target
        assert target is not None  # `declared_schema` refuses it
        scoring = scoring_of(scoring, schema)
        with points_to_check(schema):
            require_labels(given.y, target, numeric=is_regressor(estimator))
            described = schema.resolved(column_count(given.X, schema))
        plan = plan_of(len(described.features))
        for each in plan.plans:
            given.require_sums(each.needs_one_part, type(estimator).__name__)
        # All rows at once: what the fits would refuse of a part of them is refused before anything is spent.
        encodings = sorted({(each.loss, each.max_bins) for each in plan.plans})
        with points_to_check(schema):
            given.tried(schema, place, encodings, at_once=joblib.effective_n_jobs(n_jobs))
        own = ledger is None
        ledger = plan.own_ledger() if ledger is None else ledger
        plan.require_room(ledger)
        source = estimator._random_source()
        drawn = source.integers(2**31 - 1, plan.n_fits + 1) if source.kind == "test" else ()
        return cls(
            estimator=estimator, candidates=candidates, plan=plan, scoring=scoring, target=target,
            given=given, columns=tuple(feature.name for feature in described.features), ledger=ledger, own=own,
            source=source, seeds=tuple(int(seed) for seed in drawn),
        )  # fmt: skip

    def copy(self, candidate: int, *, seed_place: int | None = None) -> Any:
        """An unfitted copy of a candidate, with its own seed where seeds are given."""
        model = clone(self.estimator).set_params(**self.candidates[candidate])
        if seed_place is None or not self.seeds:
            return model
        return model.set_params(random_state=self.seeds[seed_place])

    def carried_out(self, place: Place, n_jobs: int | None) -> tuple[tuple[FoldScores, ...], Grant]:
        """Pay for all but a search's last fit, fit all, score all; the scores, and the grant that paid."""
        grant = self._pay()
        folds = self.given.folds(self.plan.folds, self.source, place)
        places = [(candidate, fold) for candidate in range(len(self.candidates)) for fold in range(folds.folds)]

        def fitted(place: int, candidate: int, fold: int) -> Any:
            model = self.copy(candidate, seed_place=place)
            rows, labels = folds.training(fold)
            with cautions.already_warned():
                return model.fit(rows, labels, ledger=grant, scratch=self.given.scratch)

        # Threads of this process: it alone writes to the ledger. The loops over rows run beside each other.
        models = joblib.Parallel(n_jobs=n_jobs, backend="threading")(
            joblib.delayed(fitted)(place, *each) for place, each in enumerate(places)
        )
        found = []
        for candidate in range(len(self.candidates)):
            own = models[candidate * folds.folds : (candidate + 1) * folds.folds]
            held = folds.judged([model.predict for model in own], self.target, _JUDGEMENTS[self.scoring])
            found.append(self._scores(held, grant))
        return tuple(found), grant

    def _pay(self) -> Grant:
        """Warn once of all fits, and pay for all of them but a search's last one."""
        models = [self.copy(candidate) for candidate in range(len(self.candidates))]
        of_plans = [model.plan_cautions(plan) for model, plan in zip(models, self.plan.plans, strict=True)]
        seeded = cautions.seed_caution(self.estimator.random_state) if self.seeds else None
        total = f"{self.plan}: the estimator's epsilon is that of one fit. Pass ledger= to hold all of them to a budget"
        with cautions.counted_fit(self.columns, own=self.own) as again:
            cautions.emit([seeded, again, total if self.own else None, *cautions.of_candidates(of_plans)])
            return self.ledger.grant(
                self.plan.event,
                purpose=f"{type(self.estimator).__name__}: {self.plan.folds} folds, {len(self.candidates)} candidates",
                delta=grant_delta(self.ledger, self.plan.budget),
            )

    def statement(self, record: LedgerRecord, grant: Grant) -> PrivacyStatement:
        """The guarantee of everything together, which the grant paid for but for a last fit."""
        quote = self.plan.quote
        scope = "other uses of the same rows add to it" if self.own else "the ledger has the total of all uses"
        return PrivacyStatement(
            epsilon=quote.epsilon if self.source.kind == "secure" else math.inf,
            delta=self.plan.budget.delta,
            adjacency=self.plan.adjacency,
            unit=PrivacyUnit.ROW,
            method=quote.method,
            certified=quote.certified,
            randomness=self.source.kind,
            assumptions=(
                DECLARED,
                *ASSUMPTIONS,
                *((CLASS_WEIGHTS,) if self._weighted else ()),
                FOLDS,
                *((OWNER_SCORES,) if self.plan.score_mechanism is None else ()),
                *((ON_DISK,) if self.given.in_files else ()),
                f"epsilon covers all {self.plan.n_fits} fits: {scope}",
                *declared_in(record, grant.index),
            ),
            ledger_head=record.head,
        )

    def _scores(self, held: HeldOut, grant: Grant) -> FoldScores:
        mechanism = self.plan.score_mechanism
        if mechanism is None:
            exact = held.exact()
            return self._read(exact[:, 0], 2.0 * exact[:, 1] - exact[:, 0], 0.0)
        query, event = fold_sums(self.plan.folds), self.plan.score_event
        assert event is not None  # there is a mechanism
        with Curator(held.table(), grant, self.source).open(event, purpose="held-out scores") as round_:
            sums = round_.release(query, mechanism, purpose="held-out scores").real
        if isinstance(mechanism, EllipticalGaussianMechanism):
            stddev = mechanism.stddevs[1]
        else:
            stddev = math.sqrt(2.0) * mechanism.scales[1]
        # Its gradients are minus the scores.
        return self._read(sums[: self.plan.folds, 0], -sums[: self.plan.folds, 1], stddev)

    def _read(self, rows: NDArray[np.float64], sums: NDArray[np.float64], stddev: float) -> FoldScores:
        """From rows and sums of scores in [-1, 1] to scores in their unit."""
        return FoldScores(
            test_score=tuple(self._score(n, s) for n, s in zip(rows.tolist(), sums.tolist(), strict=True)),
            mean_test_score=self._score(float(rows.sum()), float(sums.sum())),
            # Of the sum and, times a mean that is at most 1, of the number of rows.
            noise_stddev=self._width * stddev * math.sqrt(2.0 * len(rows)) / (2.0 * max(float(rows.sum()), 1.0)),
        )

    def _score(self, rows: float, total: float) -> float:
        if rows == 0.0:  # an exact number: no row fell into the fold
            return math.nan
        # Not clipped: a noisy score may be above 1, and stays right on average.
        share = (total / max(rows, 1.0) + 1.0) / 2.0
        return share if self.scoring == "accuracy" else (share - 1.0) * self._width

    @property
    def _weighted(self) -> bool:
        return isinstance(self.target, Categorical) and self.target.weights is not None

    @property
    def _width(self) -> float:
        if not isinstance(self.target, Numeric):
            return 1.0
        width = self.target.high - self.target.low
        return width if self.scoring == "neg_mean_absolute_error" else width**2
