"""One fit of an estimator over whatever owners of rows a transport reaches."""

from typing import TypeVar

from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.accounting.ledger import Grant, Ledger
from ledgerwood.curator.places.federated_rows import NoiseBy
from ledgerwood.errors import InvalidParameter
from ledgerwood.federation.session import FederationSession
from ledgerwood.federation.tolerance import Tolerance
from ledgerwood.federation.transport import Transport
from ledgerwood.secure_aggregation import ClientRegistry
from ledgerwood.trainers.base.trainer import AbstractTrainer

E = TypeVar("E", bound=AbstractTrainer)
_SERVER = "server"


def train(
    estimator: E,
    transport: Transport,
    *,
    noise: NoiseBy = "server",
    ledger: Ledger | None = None,
    unit: PrivacyUnit = PrivacyUnit.ROW,
    rows_per_client: int = 1,
    colluding: float = 0.0,
    dropouts: float = 0.0,
    server: str = _SERVER,
    registry: ClientRegistry | None = None,
) -> E:
    """Fit the estimator on the rows of all owners that a transport reaches; arguments and errors as of `federate`.

    Args:
        transport: reaches the owners.
        server: the server's name in the owners' ledgers.
        registry: the public keys of all owners by number, for active security: owners that have it too, and a
            threshold above two thirds, keep a server from inventing owners or showing them different rounds.
    """
    if not isinstance(estimator, AbstractTrainer):
        raise InvalidParameter(f"estimator must be a trainer of ledgerwood, not {type(estimator).__name__}")
    if isinstance(ledger, Grant):
        raise InvalidParameter("a federation's grant bears the name of its session: give the ledger, not a grant of it")
    session = FederationSession(
        transport,
        noise=noise,
        unit=unit,
        rows_per_client=rows_per_client,
        tolerance=Tolerance(colluding=colluding, dropouts=dropouts),
        server=server,
        registry=registry,
    )
    estimator.fit(session, None, ledger=ledger)
    estimator.federation_ = session.record
    return estimator
