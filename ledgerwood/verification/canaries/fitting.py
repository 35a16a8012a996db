"""The fits of an audit: our estimators, with what they release, and whatever else has fit and predict.

For each it is known what is claimed, under which neighbours, and at which delta.
"""

import copy
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events import Event
from ledgerwood.curator import Schema, encode_features
from ledgerwood.curator.tables.trees import Table
from ledgerwood.ensemble import TreeStructure
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, LedgerCorrupted
from ledgerwood.mechanisms import EllipticalGaussianMechanism
from ledgerwood.sparse_cells import spelled_out
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.trainers.boosting.plan import PrivateBoostingPlan
from ledgerwood.trainers.federated.plan import FederatedPlan
from ledgerwood.trainers.privatree.plan import PrivaTreePlan
from ledgerwood.trainers.sgbdt.plan import SGBDTPlan
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.result import small_probability
from ledgerwood.verification.canaries.recorder import ReleaseRecording, recorded
from ledgerwood.verification.canaries.rows import AuditRows, background_rows, cell_count
from ledgerwood.verification.canaries.scores import CanaryScores, Evidence, canary_scores
from ledgerwood.verification.canaries.theory import best_background

Mask = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnFits:
    """Fits of one of this library's estimators, recorded.

    Args:
        estimator: never fitted itself: each fit is of a copy.
        plan: what it will do, by its parameters and the schema.
        schema: resolved.
        structure: stands in for the public trees; None leaves them.
    """

    estimator: AbstractTrainer
    plan: Any
    schema: Schema
    structure: TreeStructure | None = None

    @classmethod
    def of(cls, estimator: AbstractTrainer, n_features: int) -> "OwnFits":
        """Makes fits with the estimator's own parameters, and its own trees.

        Raises:
            InvalidParameter: an estimator that buys its schema: where canaries may go is not known before.
            CalibrationFailed, AdjacencyMismatch, SchemaError: as `fit`.
        """
        if not isinstance(estimator.schema, Schema):
            raise InvalidParameter(
                f"schema={estimator.schema!r}: canaries are put into the cells of a declared schema; an estimated one "
                "is not known before the fit"
            )
        schema = estimator.schema.resolved(n_features)
        return cls(estimator=estimator, plan=estimator.make_plan(schema), schema=schema)

    @property
    def event(self) -> Event:
        """The claimed event: the whole plan."""
        event: Event = self.plan.event
        return event

    @property
    def labels_only(self) -> bool:
        """True if a canary shows by the label of its leaf alone."""
        return isinstance(self.plan, PrivaTreePlan) and self.plan.split_method == "random"

    @property
    def public_trees(self) -> bool:
        """True if trees are drawn without a look at the rows, so that many canaries may have leaves of their own.

        Those of private boosting follow from what was released, and cost the same whatever they are: others may stand
        in for them.
        """
        match self.plan:
            case SGBDTPlan() | PrivateBoostingPlan():
                return True
            case FederatedPlan():
                return self.plan.split_method == "totally_random"
        return self.labels_only

    @property
    def cells(self) -> int:
        """The number of canaries for which the schema has cells."""
        return cell_count(self.schema, bins=self.plan.max_bins)

    @property
    def share_against(self) -> float:
        """The share of a leaf's known rows with the other label for which its value reveals most about a canary.

        docs/explanation/canaries.md#black-box-background; all of them where noise is not on rows and gradients apart.
        """
        match self.plan:
            case SGBDTPlan(leaf_noise="dynamic", leaf_statistic="moments"):
                mechanism = self.plan.leaf_mechanism
                assert isinstance(mechanism, EllipticalGaussianMechanism)  # that of these leaves
                stddevs = mechanism.stddevs
            case FederatedPlan(loss="squared") | PrivateBoostingPlan(loss="squared"):
                stddevs = self.plan.leaf_stddevs
            case _:
                return 1.0
        best = best_background(clip=self.plan.clip, count_stddev=stddevs[0], sum_stddev=stddevs[1])
        return 0.5 * (1.0 - best / self.plan.clip)

    def fitted(self, X: Any, y: Any, generator: np.random.Generator) -> tuple[AbstractTrainer, ReleaseRecording]:
        """One fit, with noise of its own, and what it released.

        Raises:
            LedgerCorrupted: a model whose ledger is missing or another's, or does not back its statement.
        """
        model = fresh_copy(self.estimator, generator)
        with recorded(self.structure) as recording:
            model.fit(X, y)
        require_own_ledger(model, self.event)
        return model, recording

    def evidence(self, rows: AuditRows) -> Evidence:
        """The rows with the canaries of either side, and with none, for the scores of a fit."""
        included = (rows.side == 0, rows.side == 1, rows.side < 0)
        first, second, none = (
            Table.from_data(*rows.data(each), self.schema, loss=self.plan.loss, bins=self.plan.max_bins)
            for each in included
        )
        cells = spelled_out(encode_features(rows.cells.rows, self.schema, bins=self.plan.max_bins))
        places = rows.cells.rows.astype(rows.background.dtype)
        labels = (rows.own, rows.other) if rows.replaced else (rows.own,)
        alone = tuple(
            Table.from_data(places, each, self.schema, loss=self.plan.loss, bins=self.plan.max_bins) for each in labels
        )
        return Evidence(with_side=(first, second), side=rows.side, with_none=none, cells=cells, alone=alone)

    def scores(self, recording: ReleaseRecording, evidence: Evidence) -> CanaryScores:
        """The scores of the canaries, by one fit's releases."""
        return canary_scores(recording.releases, evidence)


def fresh_copy(estimator: Any, generator: np.random.Generator) -> Any:
    """An unfitted copy, with other seeds and generators in the place of its own: a seed used twice is one noise.

    Those of a scikit-learn estimator that are called random_state, and its parts' too; what is kept elsewhere is copied
    as it stands.
    """
    if not isinstance(estimator, BaseEstimator):
        return copy.deepcopy(estimator)
    model = clone(estimator)
    own = model.get_params(deep=True)
    fresh = {
        name: _reseeded(own[name], generator) for name in sorted(own) if name.rpartition("__")[2] == "random_state"
    }
    return model.set_params(**fresh)


def _reseeded(state: object, generator: np.random.Generator) -> object:
    """Another seed or generator of the same kind; what is neither stays."""
    seed = int(generator.integers(2**31))
    match state:
        case bool():
            return state
        case int() | np.integer():
            return seed
        case np.random.RandomState():
            return np.random.RandomState(seed)
        case np.random.Generator():
            return np.random.default_rng(seed)
    return state


def plain_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Classes as an array of their own type, which learners of other libraries expect; mixed ones stay objects."""
    kinds = {type(label) for label in labels.tolist()}
    return np.array(labels.tolist()) if len(kinds) == 1 else labels


def require_own_ledger(model: AbstractTrainer, event: Event) -> None:
    """Refuse a model whose ledger is not the one that its statement closed with.

    Raises:
        LedgerCorrupted: no ledger, another head, or no grant of the plan in it.
    """
    fitted = vars(model)
    ledger, privacy = fitted.get("ledger_"), fitted.get("privacy_")
    if ledger is None or privacy is None:
        raise LedgerCorrupted(f"{type(model).__name__} has no ledger_ or no privacy_: nothing says what it has spent")
    if ledger.head != privacy.ledger_head:
        raise LedgerCorrupted(
            f"ledger_ ends with {ledger.head[:12]}..., and privacy_ was stated of {privacy.ledger_head[:12]}...: it is "
            "another model's ledger"
        )
    privacy.require_backing(event, ledger)


def require_learner(estimator: object) -> None:
    """Refuse what cannot be fitted, or cannot predict.

    Raises:
        InvalidParameter: it has no such method, or is a class.
    """
    if isinstance(estimator, type):
        raise InvalidParameter(f"{estimator.__name__} is a class: an audit fits copies of an object (unit: estimator)")
    for name in ("fit", "predict"):
        if not callable(getattr(estimator, name, None)):
            raise InvalidParameter(f"{type(estimator).__name__} has no {name} method: an audit needs fit and predict")


def classifies(estimator: object) -> bool:
    """Returns whether it says of itself, as scikit-learn's estimators do, that it learns classes."""
    return isinstance(estimator, BaseEstimator) and is_classifier(estimator)


def agreement(model: Any, rows: Any, labels: NDArray[Any]) -> NDArray[np.float64]:
    """Measures how well predictions agree with labels, float64 (m,): minus the distance, or the label's probability.

    Raises:
        InvalidParameter: predictions of another shape, or that are not finite numbers.
    """
    try:
        found = _agreement(model, rows, labels)
    except (TypeError, ValueError, IndexError) as error:
        raise InvalidParameter(
            f"predictions of {type(model).__name__} cannot be read: {error}; one finite number per canary is needed, "
            f"{len(rows)} in all (unit: predictions)"
        ) from error
    if found.shape != (len(rows),) or not np.isfinite(found).all():
        raise InvalidParameter(
            f"predictions of {type(model).__name__} have shape {found.shape} or are not finite; one finite number per "
            f"canary is needed, {len(rows)} in all (unit: predictions)"
        )
    return np.asarray(found, dtype=np.float64)


def _agreement(model: Any, rows: Any, labels: NDArray[Any]) -> NDArray[Any]:
    classes_told = classifies(model)
    probability = getattr(model, "predict_proba", None)
    if classes_told and callable(probability):
        classes = np.asarray(model.classes_).tolist()
        # A class that no row of this fit had is given to nobody.
        known = np.array([label in classes for label in labels.tolist()])
        places = np.array([classes.index(label) if label in classes else 0 for label in labels.tolist()])
        return np.asarray(np.where(known, np.asarray(probability(rows))[np.arange(len(rows)), places], 0.0))
    if classes_told:
        return np.asarray(np.asarray(model.predict(rows)) == labels, dtype=np.float64)
    predicted: NDArray[Any] = np.asarray(model.predict(rows), dtype=np.float64)
    return np.asarray(-np.abs(predicted - labels.astype(np.float64)))


_DELTA = 1e-5


def require_known(adjacency: Adjacency, claim: Claim | None, estimator: Any) -> None:
    """Refuse zero-out neighbours of a learner whose null row is not known.

    Raises:
        AdjacencyMismatch: they are claimed.
    """
    if adjacency is Adjacency.ZERO_OUT:
        raise AdjacencyMismatch(
            f"claim={claim!r} is of zero-out neighbours, and what {type(estimator).__name__} takes for a null row is "
            "not known: state the claim under add-remove or replace-one"
        )


def adjacency_of(claim: Claim | None, planned: Event | None) -> Adjacency:
    """Returns the claim's relation, since only its own neighbours refute it; the plan's where the claim says none."""
    stated = claim if isinstance(claim, Event | Budget) else planned
    return Adjacency.ADD_REMOVE if stated is None else stated.adjacency


def column_count_of(X: Any, y: Any, estimator: AbstractTrainer) -> int:
    """Counts the columns of X; 1 where the estimator has no schema, which `OwnFits.of` refuses."""
    if not isinstance(estimator.schema, Schema):
        return 1  # `OwnFits.of` says what is wrong
    return len(background_rows(X, y, estimator.schema)[0].T)


def claimed(fits: OwnFits | None, claim: Claim | None, delta: float | None) -> tuple[Claim | None, float]:
    """Returns what is audited, and the delta of the bounds: as given, or the claim's, or the estimator's own."""
    if delta is not None:
        delta = small_probability("delta", delta)
    if claim is not None:
        return claim, ClaimedCurve(claim).default_delta() if delta is None else delta
    if fits is None:
        return None, _DELTA if delta is None else delta
    return fits.event, fits.estimator.budget.delta if delta is None else delta
