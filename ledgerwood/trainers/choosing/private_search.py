"""Hyper-parameters chosen privately: train and score a secret, random number of random candidates, keep the best.

Papernot and Steinke 2022, Theorems 2 and 6; the whole search is one event,
docs/explanation/events.md#selection and #selection-runs.
"""

import contextvars
import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.calibration import calibrate
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events import Composed, Event, GaussianEvent, PoissonSelection, RepeatedSelection
from ledgerwood.accounting.ledger import Grant, Ledger
from ledgerwood.curator import (
    Aggregator,
    Curator,
    DeclaredStatistic,
    Loss,
    PredictionFit,
    Schema,
    Table,
    TypedColumns,
    require_within,
)
from ledgerwood.curator.queries.scores import fit_width
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import CalibrationFailed, InvalidParameter, SchemaError, UnsupportedEvent
from ledgerwood.mechanisms import (
    GaussianMechanism,
    PoissonSelectionMechanism,
    RandomSource,
    RepeatedSelectionMechanism,
    SecureRandom,
)
from ledgerwood.references import Reference, mechanisms
from ledgerwood.trainers.base.bounds import require_name, require_verbose
from ledgerwood.trainers.base.citations import CitedPlan, estimator_citations
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.forests import declared_forests
from ledgerwood.trainers.base.plan import TreePlan, too_small
from ledgerwood.trainers.base.privacy import declared_in
from ledgerwood.trainers.base.progress import Progress, unseen
from ledgerwood.trainers.base.suggestions import suggestion
from ledgerwood.trainers.parts.rehearsals import require_sums_asked
from ledgerwood.trainers.parts.splits import structure_generator

Run = Callable[[int, Aggregator, RandomSource], tuple[float, Ensemble]]
_OF_THE_SEARCH = frozenset({"epsilon", "delta", "adjacency", "schema", "random_state", "verbose"})
_SLACK = 1e-6
"""Relative part of a candidate's mu that is left to the rounding of its calibration."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPlan(CitedPlan):
    """The plan of a private search, fixed before a row is read: the best of K runs, each one candidate and its score.

    Args:
        adjacency: the relation under which every event is stated.
        runs: the distribution of K.
        noise_multiplier: of one run as a whole: 1 / mu.
        score_share: share of a run's mu**2 that is spent on the score.
        error_width: see `PredictionFit`.
        plans: one a candidate; each with mu**2 at most (1 - score_share) of a run's, the same loss and max_bins.
    """

    references: ClassVar[tuple[Reference, ...] | None] = (mechanisms.LIU_2019, mechanisms.PAPERNOT_2022)

    adjacency: Adjacency
    runs: PoissonSelectionMechanism | RepeatedSelectionMechanism
    noise_multiplier: float
    score_share: float
    error_width: float
    plans: tuple[TreePlan, ...]

    def __post_init__(self) -> None:
        _score_share(self.score_share)
        fit_width(self.error_width)
        if not self.plans:
            raise _validate.fail("plans", self.plans, "at least one", "candidates")
        if len({(plan.loss, plan.max_bins) for plan in self.plans}) > 1:
            raise InvalidParameter("the candidates differ in loss or max_bins: all must read the rows in one encoding")
        try:
            require_within(self.run_events, self.event)
        except UnsupportedEvent as error:
            raise UnsupportedEvent(
                "a private search takes candidates whose noise is Gaussian throughout: S-GBDT, full batch "
                "(subsample=1), with initial_score='zero' or 'moments'; DPBoost and DP-XGBoost have Laplace leaves "
                f"and exponential choices, and fit one set of parameters at a time: {error}"
            ) from error

    @property
    def event(self) -> PoissonSelection | RepeatedSelection:
        """The whole search, one draw."""
        return self.runs.event(GaussianEvent(noise_multiplier=self.noise_multiplier, adjacency=self.adjacency))

    def cited_parts(self) -> tuple[object, ...]:
        """See `CitedPlan`: the candidates' plans."""
        return self.plans

    @property
    def needs_one_part(self) -> str:
        """See `Plan`: that of the first candidate that has one."""
        return next((plan.needs_one_part for plan in self.plans if plan.needs_one_part), "")

    @property
    def needs_one_process(self) -> str:
        """See `Plan`: that of a candidate."""
        return next((plan.needs_one_process for plan in self.plans if plan.needs_one_process), "")

    @property
    def score_mechanism(self) -> GaussianMechanism:
        """Noise of a run's score, in rows."""
        return GaussianMechanism(stddev=self.noise_multiplier * (1.0 + _SLACK) / math.sqrt(self.score_share))

    @property
    def score_event(self) -> Event:
        """The event of a run's score."""
        return self.score_mechanism.event(self.score.sensitivity(self.adjacency), self.adjacency)

    @property
    def score(self) -> PredictionFit:
        """The query for a run's score."""
        return PredictionFit(loss=self.loss, width=self.error_width)

    @property
    def run_events(self) -> tuple[Event, ...]:
        """The events that a run of each candidate draws."""
        return tuple(Composed((plan.event, self.score_event)) for plan in self.plans)

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio by that of the best candidate; docs/explanation/cautions.md#leaf-signal."""
        return max(plan.leaf_signal(rows) for plan in self.plans)

    @property
    def loss(self) -> Loss:
        """The candidates' loss."""
        return self.plans[0].loss

    def calibrated(self, budget: Budget) -> "SearchPlan":  # its noise was found with its candidates'
        """Returns the plan itself, whose noise was found with its candidates'."""
        return self

    def has_room(self, budget: Budget) -> bool:  # a search that does not fit is not made
        """Returns True: a search that does not fit is not made."""
        return True

    @property
    def purchase(self) -> None:
        """None: the schema is declared."""

    @property
    def max_bins(self) -> int:
        """The candidates' even steps of a numeric feature's range."""
        return self.plans[0].max_bins


def _score_share(value: object) -> float:
    share = _validate.real("score_share", value, "share of mu**2")
    if not 0.001 <= share <= 0.9:
        raise _validate.fail("score_share", value, "in [0.001, 0.9]", "share of mu**2")
    return share


def _has(name: str) -> Any:
    return available_if(lambda search: callable(getattr(search.estimator, name, None)))


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateSearch(AbstractTreeEstimator):
    """Random search over candidates, all of it within one (epsilon, delta): training runs, scores and choice.

    It makes a secret, random number K of runs. Each run draws a candidate uniformly, trains it on all rows, and scores
    it on the same rows with noise. The best run is kept. A candidate must be a plan of
    Gaussian releases over all rows: S-GBDT with
    `subsample` 1 and an `initial_score` of "zero" or "moments". The running time of a fit grows with K
    and must stay secret.

    Args:
        estimator: the estimator to tune; its epsilon, delta, adjacency, schema and random state are replaced by these.
        candidates: parameters of `estimator`, one mapping a candidate; public, at least one, all of one `max_bins`. A
            candidate that is listed twice is drawn twice as often.
        epsilon, delta: the budget of the whole search; delta > 0.
        adjacency, schema, random_state, verbose: as in the estimator; progress of single runs is never shown.
        n_jobs: threads of the search and of the best model's predictions; None: those of `estimator`.
        distribution: of K. With "poisson", K is near its mean, and 0 with probability exp(-mean_runs) (then
            the model has learnt nothing). With "negative_binomial", K is never 0, and often 1.
        mean_runs: the expected number of runs; above 1 for "negative_binomial".
        shape: eta of the negative binomial distribution; a smaller one has a heavier tail and costs less.
        score_share: share of a run's mu**2 that is spent on its score.
        error_width: for the squared loss: the error, in halves of the label's range, at which a row counts 0.

    Attributes:
        best_index_, best_params_: the candidate that won, and its parameters; None where there was no run.
        best_score_: its score, with noise: rows predicted right, or `PredictionFit` in rows; -inf for no run.
        best_estimator_: the model; it can be saved, and loaded by its own class.
        plan_: the `SearchPlan`. privacy_, ledger_: of the search as a whole.
    """

    estimator: AbstractTreeEstimator = field(kw_only=False)
    candidates: Sequence[Mapping[str, Any]] = field(kw_only=False)
    distribution: Literal["poisson", "negative_binomial"] = "poisson"
    mean_runs: float = 8.0
    shape: float = 0.0
    score_share: float = 0.1
    error_width: float = 0.5

    def fit(
        self,
        X: Any,
        y: Any,
        ledger: Ledger | Grant | None = None,
        sample_weight: Any = None,
        *,
        scratch: str | os.PathLike[str] | None = None,
        client: Any = None,
    ) -> Self:
        """Check the rows, pay for the search, carry it out; as the estimator's `fit`.

        Raises:
            InvalidParameter, UnsupportedEvent: candidates that cannot be searched, such as those of a trainer from
                outside that releases a `DeclaredStatistic`. Nothing was spent.
            RunFailed: a run raised; the budget is spent.
        """
        super().fit(X, y, ledger, sample_weight, scratch=scratch, client=client)
        self.best_params_ = None if self.best_index_ is None else dict(self.candidates[self.best_index_])
        # Without a run, a model that has learnt nothing stands under the first candidate's plan.
        index = self.best_index_ or 0
        self.best_estimator_ = self._model(index, epsilon=self.epsilon, delta=self.delta)
        for name in ("ensemble_", "schema_", "privacy_", "ledger_", "n_features_in_"):
            setattr(self.best_estimator_, name, getattr(self, name))
        if "feature_names_in_" in vars(self):
            self.best_estimator_.feature_names_in_ = self.feature_names_in_
        plan: Any = self.plan_
        self.best_estimator_.plan_ = plan.plans[index]
        self.best_estimator_._restore()
        return self

    def cited(self) -> tuple[object, ...]:
        """See `AbstractSavedModel.cited`."""
        return estimator_citations(self, SearchPlan)

    def make_plan(self, schema: Schema | TypedColumns) -> SearchPlan:
        """The calibrated search and its candidates' plans; pure, no data. Errors: as for every estimator."""
        try:
            self._check_parameters()
            return self._uncalibrated_plan(schema)
        except CalibrationFailed as error:
            why = too_small("the candidates, each of which gets a share of it", self.budget, "see the cause")
            raise suggestion(self, schema, None, CalibrationFailed(why)) from error
        except InvalidParameter as error:  # of the mechanism that draws K, and of the score
            name = {"width": "error_width", "mean": "mean_runs"}.get(error.parameter or "")
            if name is None:
                raise
            raise error.renamed(name) from error

    def _check_parameters(self) -> None:
        self.budget  # noqa: B018  # epsilon, delta, adjacency
        self._random_source()
        require_verbose(self.verbose)
        require_name("distribution", self.distribution, ("poisson", "negative_binomial"))
        _validate.real("shape", self.shape, "eta of the negative binomial distribution")
        self._check_candidates()

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> SearchPlan:
        if isinstance(schema, TypedColumns):
            raise SchemaError(
                "schema=None: a private search needs a declared schema, which all candidates share; declare it, or "
                "take that of a model fitted before, model.schema_"
            )
        budget = self.budget
        if budget.delta == 0.0:
            raise _validate.fail("delta", budget.delta, "> 0: the noise is Gaussian", "probability")
        self._check_candidates()
        runs = self._runs()
        noise = calibrate(lambda m: runs.event(GaussianEvent(noise_multiplier=m, adjacency=budget.adjacency)), budget)
        share = _score_share(self.score_share)
        mu = math.sqrt(1.0 - share) * (1.0 - _SLACK) / noise
        # Any point on the curve of mu names it; this one is an ordinary budget for a fit.
        delta = min(budget.delta, 1e-3 * mu)
        epsilon = gdp.epsilon(mu, delta) * (1.0 - 1e-9)
        models = [self._model(i, epsilon=epsilon, delta=delta) for i in range(len(self.candidates))]
        return SearchPlan(
            adjacency=budget.adjacency,
            runs=runs,
            noise_multiplier=noise,
            score_share=share,
            error_width=self.error_width,
            plans=tuple(model._uncalibrated_plan(schema).calibrated(model.budget) for model in models),
        )

    def _runs(self) -> PoissonSelectionMechanism | RepeatedSelectionMechanism:
        if self.distribution == "poisson":
            return PoissonSelectionMechanism(mean=self.mean_runs)
        return RepeatedSelectionMechanism.of_mean(self.mean_runs, shape=self.shape)

    def _check_candidates(self) -> None:
        estimator: object = self.estimator
        if not isinstance(estimator, AbstractTreeEstimator) or isinstance(estimator, PrivateSearch):
            raise _validate.fail("estimator", estimator, "a tree estimator of this package", "estimator")
        candidates: object = self.candidates
        if (
            not isinstance(candidates, Sequence)
            or not len(candidates)
            or not all(isinstance(candidate, Mapping) for candidate in candidates)
        ):
            raise _validate.fail(
                "candidates", candidates, "a sequence of mappings, one a candidate, at least one", "candidates"
            )
        for candidate in self.candidates:
            if taken := sorted(_OF_THE_SEARCH & set(candidate)):
                raise InvalidParameter(f"candidate {candidate!r} sets {taken}, which the search sets for all")

    def _model(self, index: int, *, epsilon: float, delta: float) -> Any:
        """The unfitted estimator of a candidate, with a budget."""
        model = clone(self.estimator).set_params(
            **self.candidates[index],
            epsilon=epsilon,
            delta=delta,
            adjacency=self.adjacency,
            schema=self.schema,
            random_state=None,
            verbose=0,
        )
        return model if self.n_jobs is None else model.set_params(n_jobs=self.n_jobs)

    def _train(
        self, plan: SearchPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Progress
    ) -> Ensemble:
        best = aggregator.select(plan.event, plan.run_events, self._runner(plan), purpose="private search")
        progress(1, 1)
        self.best_index_: int | None
        self.best_score_: float
        self.best_index_, self.best_score_, ensemble = best or (None, -math.inf, Ensemble(initial_score=0.0))
        return ensemble

    def _runner(self, plan: SearchPlan) -> Run:
        def run(index: int, rows: Aggregator, source: RandomSource) -> tuple[float, Ensemble]:
            # A new estimator each time: what one run keeps on it would be another run's. Progress is of the search as a
            # whole: that of its trees would count the runs.
            model = self._model(index, epsilon=self.epsilon, delta=self.delta)
            ensemble = model._train(plan.plans[index], rows, structure_generator(source), unseen)
            query = plan.score.of(ensemble)
            with rows.open(plan.score_event, purpose="score") as round_:
                release = round_.release(query, plan.score_mechanism, purpose="score")
            return float(release.real[0]), ensemble

        return run

    def _require_sums_asked(
        self, plan: Any, schema: Schema, who: str, *, travels: bool, statistics: tuple[DeclaredStatistic, ...] = ()
    ) -> None:
        for index, candidate in enumerate(plan.plans):
            model = self._model(index, epsilon=self.epsilon, delta=self.delta)
            asks = f"{who}: candidates[{index}]"
            require_sums_asked(model, candidate, schema, asks, travels=travels, statistics=statistics)

    def _pay(
        self,
        plan: Any,
        described: Schema | TypedColumns,
        source: RandomSource,
        ledger: Ledger | Grant | None,
        *,
        purpose: str,
        unit: PrivacyUnit = PrivacyUnit.ROW,
    ) -> tuple[Ledger, Grant]:
        # The library's own trainers release no declared statistic. A context without a recording: no fit of anybody's.
        if type(self.estimator).__module__.partition(".")[0] != "ledgerwood":
            contextvars.Context().run(self._rehearse, plan, described)
        return super()._pay(plan, described, source, ledger, purpose=purpose, unit=unit)

    def _rehearse(self, plan: SearchPlan, schema: Any) -> None:
        """Run each candidate on a table without rows, so that a run that must fail is refused before it is paid for.

        Raises:
            InvalidParameter: a candidate fails, or releases a statistic that somebody declares, and nothing proves: a
                search has one ledger entry, which does not know what its runs release.
        """
        width, run = len(schema.features), self._runner(plan)
        rows = Table.from_data(
            np.empty((0, width), dtype=object), np.empty(0, dtype=object), schema, loss=plan.loss, bins=plan.max_bins
        )
        for index, event in enumerate(plan.run_events):
            ledger = Ledger(self.budget, unit=PrivacyUnit.ROW)
            grant = ledger.grant(event, purpose="rehearsal", delta=self.budget.delta)
            named = f"candidates[{index}] of {type(self.estimator).__name__}"
            try:
                run(index, Curator(rows, grant, SecureRandom()), SecureRandom())
            except Exception as error:
                raise InvalidParameter(
                    f"{named} fails on a table without rows, and would end the search: {type(error).__name__}: {error}"
                ) from error
            if caveats := declared_in(ledger.record(), grant.index):
                raise InvalidParameter(
                    f"{named} releases {'; '.join(caveats)}: the one ledger entry of a private search cannot say so. "
                    "Fit one set of parameters at a time, or use private_grid_search"
                )

    def _public_rows(self) -> int | None:
        return self.estimator._public_rows()

    def _check_target(self, schema: Schema) -> None:
        self._check_candidates()
        self.estimator._check_target(schema)
        if declared_forests(schema) > 1:
            raise SchemaError(
                f"target={schema.target!r}: a private search scores predictions of a number or of two classes; fit one "
                "set of parameters at a time for several classes"
            )

    def predict(self, X: Any) -> NDArray[Any]:
        """The best model's predictions; shape (n_rows,)."""
        return self._best.predict(X)  # type: ignore[no-any-return]

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The best model's probabilities; float64 (n_rows, n_classes)."""
        return self._best.predict_proba(X)  # type: ignore[no-any-return]

    @_has("predict_log_proba")  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithms of the best model's probabilities; float64 (n_rows, n_classes)."""
        return self._best.predict_log_proba(X)  # type: ignore[no-any-return]

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The best model's raw scores; float64 (n_rows,)."""
        return self._best.decision_function(X)  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any) -> float:
        """The best model's score, accuracy or R squared, on rows that are not protected."""
        return float(self._best.score(X, y))

    @property
    def classes_(self) -> NDArray[Any]:
        """The best model's classes."""
        return self._best.classes_  # type: ignore[no-any-return]

    @property
    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def __sklearn_tags__(self) -> Any:
        return dataclasses.replace(get_tags(self.estimator))

    def save(self, path: str | Path) -> None:
        """Save the best model; load it with the tuned estimator's class."""
        self._best.save(path)

    @classmethod
    def _read_plan(cls, record: dict[str, Any]) -> SearchPlan:  # noqa: ARG003 - a search has no record
        raise InvalidParameter("a search is saved as its best model: load it with the tuned estimator's class")
