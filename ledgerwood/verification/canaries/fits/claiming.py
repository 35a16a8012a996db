"""What is claimed of an audited estimator, under which neighbours, and at which delta."""

from typing import Any

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events import Event
from ledgerwood.curator import Schema
from ledgerwood.errors import AdjacencyMismatch
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.result import small_probability
from ledgerwood.verification.canaries.fits.fitting import OwnFits
from ledgerwood.verification.canaries.fits.rows import background_rows

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
