"""The plan and privacy cost of a whole cross-validation or grid search, fixed before a row is read.

docs/explanation/cross-validation.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final, get_args

from sklearn.base import clone

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events import Composed, Event, Parallel, Repeated
from ledgerwood.accounting.filters import GDPFilter
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.accounting.pricing import price
from ledgerwood.accounting.quotes import Quote
from ledgerwood.curator import FOLD_SCORES, Categorical, Schema, fold_count
from ledgerwood.errors import BudgetExceeded, InvalidParameter, SchemaError, UnsupportedEvent
from ledgerwood.mechanisms import EllipticalGaussianMechanism, LaplaceMechanism
from ledgerwood.references import Reference
from ledgerwood.trainers.base.bounds import require_name
from ledgerwood.trainers.base.citations import CitedPlan
from ledgerwood.trainers.base.plan import Plan
from ledgerwood.trainers.base.privacy import grant_delta
from ledgerwood.trainers.base.trainer import AbstractTrainer

ScoreRelease = Literal["private", "owner"]
"""Held-out scores with noise and charged, or exact, uncharged and for the owner of the rows only."""
Scoring = Literal["accuracy", "neg_mean_absolute_error", "neg_mean_squared_error"]

OF_THE_WHOLE = frozenset({"epsilon", "delta", "adjacency", "schema", "random_state"})
_SLACK = 1.0 + 1e-9


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationPlan(CitedPlan):
    """All fits of a validation, their scores, and the last fit of a search.

    Args:
        budget: of one fit, as its estimator states it: epsilon is per fit, and the whole costs more.
        folds: k. Each candidate is fitted k times, each time on the rows of all folds but one.
        plans: of one fit of each candidate, calibrated.
        score_mechanism: noise of the held-out scores of one candidate, of all folds at once; None where they are for
            the owner only.
        refit: whether the best candidate is fitted once more, on all rows.
    """

    references: ClassVar[tuple[Reference, ...] | None] = ()  # ours: docs/explanation/cross-validation.md

    budget: Budget
    folds: int
    plans: tuple[Plan, ...]
    score_mechanism: EllipticalGaussianMechanism | LaplaceMechanism | None
    refit: bool = False

    @classmethod
    def of(
        cls,
        estimator: AbstractTrainer,
        *,
        n_features: int,
        cv: int = 5,
        scores: ScoreRelease = "private",
        score_share: float = 0.5,
        candidates: Sequence[Mapping[str, Any]] = ({},),
        refit: bool = False,
    ) -> "ValidationPlan":
        """The plan for an estimator with a declared schema; pure, no data.

        Args:
            estimator: a trainer of this library, with a schema.
            n_features: columns of X.
            cv, scores, score_share: as in `private_cross_validate`.
            candidates: parameters of `estimator`, one mapping a candidate.
            refit: as in `private_grid_search`.

        Raises:
            InvalidParameter, SchemaError, CalibrationFailed, AdjacencyMismatch: what cannot be validated.
        """
        require_trainer(estimator)
        schema, budget = declared_schema(estimator).resolved(n_features), estimator.budget
        plans = tuple(clone(estimator).set_params(**dict(each)).make_plan(schema) for each in candidates)
        require_name("scores", scores, get_args(ScoreRelease))
        noise = _score_noise([plan.event for plan in plans], budget, score_share) if scores == "private" else None
        return cls(
            budget=budget,
            folds=fold_count(cv),
            plans=plans,
            score_mechanism=noise,
            refit=_validate.flag("refit", refit),
        )

    def cited_parts(self) -> tuple[object, ...]:
        """See `CitedPlan`: the candidates' plans, and the noise of the scores."""
        return (*self.plans, *(() if self.score_mechanism is None else (self.score_mechanism,)))

    @property
    def fits(self) -> tuple[Event, ...]:
        """The event of one fit of each candidate."""
        return tuple(plan.event for plan in self.plans)

    @property
    def adjacency(self) -> Adjacency:
        """The relation under which every event is stated."""
        return self.budget.adjacency

    @property
    def n_fits(self) -> int:
        """Fits in all."""
        return self.folds * len(self.plans) + self.refit

    @property
    def score_event(self) -> Event | None:
        """The event of the scores of one candidate, of all folds at once."""
        if self.score_mechanism is None:
            return None
        return self.score_mechanism.event(FOLD_SCORES.sensitivity(self.adjacency), self.adjacency)

    @property
    def event(self) -> Event:
        """All fits on folds and all scores, composed: one grant.

        docs/explanation/cross-validation.md#cv-composition.
        """
        parts: list[Event] = [Repeated(fit, count=self.folds) for fit in self.fits]
        if (score := self.score_event) is not None:
            parts.append(Repeated(score, count=len(self.plans)))
        return Composed(tuple(parts))

    @property
    def last_fits(self) -> tuple[Event, ...]:
        """The events of which the last fit of a search draws one; empty without `refit`."""
        return tuple(dict.fromkeys(self.fits)) if self.refit else ()

    @property
    def total(self) -> Event:
        """The event of everything: `event`, and the costliest of `last_fits` at each point of the profile."""
        last = self.last_fits
        if not last:
            return self.event
        return Composed((self.event, last[0] if len(last) == 1 else Parallel.worst(last)))

    @property
    def quote(self) -> Quote:
        """The privacy cost of everything, at the delta of one fit."""
        return price(self.total).quote(self.budget.delta)

    def __str__(self) -> str:
        scores = "" if self.score_mechanism is None else " and their scores"
        return (
            f"{self.n_fits} fits of epsilon {self.budget.epsilon:g} each{scores} cost epsilon {self.quote.epsilon:.4g} "
            f"together, at delta {self.budget.delta:g}"
        )

    def own_ledger(self) -> Ledger:
        """Returns a ledger in memory with exactly this budget; with the Gaussian filter if all fits are Gaussian."""
        delta = self.budget.delta
        try:
            mu = self.total.mu() * _SLACK
        except UnsupportedEvent:
            epsilon = price(self.event).epsilon(delta)
            epsilon += max((price(fit).epsilon(delta) for fit in self.last_fits), default=0.0)
            budget = Budget(epsilon=epsilon * _SLACK, delta=delta * (1 + self.refit), adjacency=self.adjacency)
            return Ledger(budget, unit=PrivacyUnit.ROW)
        budget = Budget(epsilon=gdp.epsilon(mu, delta) * _SLACK, delta=delta, adjacency=self.adjacency)
        return Ledger(budget, unit=PrivacyUnit.ROW, filter=GDPFilter())

    def require_room(self, ledger: Ledger) -> None:
        """Refuse a ledger that cannot hold everything; nothing is granted.

        Raises:
            BudgetExceeded, UnsupportedEvent, AdjacencyMismatch: it cannot.
        """
        try:
            for last in ((fit,) for fit in self.last_fits) if self.refit else ((),):
                ledger.require_room((self.event, *last), delta=grant_delta(ledger, self.budget))
        except BudgetExceeded as error:
            raise BudgetExceeded(
                f"{self}, which the ledger cannot hold, so that none of them was begun: {error}. Lower the estimator's "
                "epsilon, which is that of one fit, or take fewer folds or candidates",
                requested=error.requested,
                remaining=error.remaining,
            ) from error


def require_trainer(estimator: object) -> None:
    """Require a trainer of this library.

    Raises:
        InvalidParameter: a pipeline, a class, or another library's estimator.
    """
    if not isinstance(estimator, AbstractTrainer):
        raise InvalidParameter(
            f"estimator={estimator!r} must be a trainer of this library, not {type(estimator).__name__}: of a "
            "pipeline, apply the steps before the trainer to X first (they must not be fitted on rows: see "
            "check_pipeline)"
        )


def declared_schema(estimator: AbstractTrainer) -> Schema:
    """The schema that an estimator declares.

    Raises:
        SchemaError: it declares none, or no target.
    """
    schema = estimator._declared_schema()
    if schema is None or schema.target is None:
        raise SchemaError(
            "schema=None: a validation needs a declared schema, which all of its fits share; declare it, or take that "
            "of a model fitted before, model.schema_"
        )
    return schema


def scoring_of(scoring: Scoring | None, schema: Schema) -> Scoring:
    """The score that fits the target; the target's usual one for None.

    Raises:
        InvalidParameter: a score of classes for a number, or the other way round, or none of the known ones.
    """
    classes = isinstance(schema.target, Categorical)
    if scoring is None:
        return "accuracy" if classes else "neg_mean_absolute_error"
    require_name("scoring", scoring, get_args(Scoring))
    if (scoring == "accuracy") != classes:
        raise InvalidParameter(f"scoring={scoring!r} does not fit target={schema.target!r} (unit: score)")
    return scoring


def _score_noise(fits: Sequence[Event], budget: Budget, share: float) -> EllipticalGaussianMechanism | LaplaceMechanism:
    """Noise whose cost is `share` of that of one fit: of mu squared where all fits are Gaussian, else of epsilon."""
    share = _validate.real("score_share", share, "share of the cost of one fit")
    if not 1e-3 <= share <= 100.0:
        raise _validate.fail("score_share", share, "in [.001, 100]", "share of the cost of one fit")
    sensitivity = FOLD_SCORES.sensitivity(budget.adjacency)
    try:
        mu = math.sqrt(share) * min(fit.mu() for fit in fits)
    except UnsupportedEvent:
        multiplier = 1.0 / (share * budget.epsilon)
        return LaplaceMechanism.of_multiplier(multiplier, sensitivity, proportions=(1.0, 1.0))
    stddev = sensitivity.l2((1.0, 1.0)) / mu * _SLACK
    return EllipticalGaussianMechanism(stddevs=(stddev, stddev))
