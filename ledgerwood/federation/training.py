"""One fit of an estimator over whatever owners of rows a transport reaches."""

from typing import TypeVar

from ledgerwood.accounting.ledger import Grant, Ledger
from ledgerwood.errors import InvalidParameter
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.session import FederationSession
from ledgerwood.federation.transport import Transport
from ledgerwood.trainers.base.trainer import AbstractTrainer

E = TypeVar("E", bound=AbstractTrainer)


def train(
    estimator: E, transport: Transport, options: FederationOptions | None = None, *, ledger: Ledger | None = None
) -> E:
    """Fit the estimator on the rows of all owners that a transport reaches; results and errors as of `federate`.

    Args:
        estimator: as of `federate`.
        transport: reaches the owners.
        options: what the server fixes; None takes the defaults.
        ledger: of the server, that pays for the fit; None: one of the fit's own.
    """
    require_trainer(estimator)
    if isinstance(ledger, Grant):
        raise InvalidParameter("a federation's grant bears the name of its session: give the ledger, not a grant of it")
    session = FederationSession(transport, options if options is not None else FederationOptions())
    estimator.fit(session, None, ledger=ledger)
    estimator.federation_ = session.record
    return estimator


def require_trainer(estimator: object) -> None:
    """Refuse what is not a trainer.

    Raises:
        InvalidParameter: so it is.
    """
    if not isinstance(estimator, AbstractTrainer):
        raise InvalidParameter(f"estimator must be a trainer of ledgerwood, not {type(estimator).__name__}")
