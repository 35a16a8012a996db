"""The two apps that `flwr run` needs: the server's, which trains, and the client's, which answers for one owner."""

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget, PrivacyUnit
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.curator.places.federated_rows import NoiseBy
from ledgerwood.curator.queries.declared import DeclaredStatistic
from ledgerwood.errors import FederationRefused
from ledgerwood.federation.agreed import is_setup
from ledgerwood.federation.flower.client import ClientMain, app_that_answers, bytes_in
from ledgerwood.federation.flower.server import ServerMain, app_that
from ledgerwood.federation.flower.transport import BYTES, TIMEOUT, FlowerTransport, require_flower
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.owners.account import ClientAccount
from ledgerwood.federation.owners.policy import OwnerPolicy
from ledgerwood.federation.owners.service import Answering, OwnerSocket, Place, Rows, forwarded, owner_with
from ledgerwood.federation.training import require_trainer, train
from ledgerwood.schema import Schema
from ledgerwood.secure_aggregation import ClientRegistry
from ledgerwood.trainers.base.trainer import AbstractTrainer

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp

_KEY = "ledgerwood_key"
_KEY_BYTES = 32


def client_app(
    rows: "Rows | Callable[[Context], Rows] | OwnerSocket",
    ledger: "Place | Callable[[Context], Place] | None" = None,
    *,
    key: "Place | Callable[[Context], Place] | None" = None,
    dataset: str | None = None,
    budget: Budget | None = None,
    unit: PrivacyUnit | None = None,
    schema: Schema | None = None,
    noise: NoiseBy | None = None,
    colluding: float = 0.0,
    allow_seed: bool = False,
    registry: ClientRegistry | None = None,
    statistics: Sequence[DeclaredStatistic] = (),
) -> "ClientApp":
    """The Flower app of an owner of rows: it answers the requests of the server's app.

    Flower may start another process for each message. All that has to last is in the ledger's file, in the key's file
    and in Flower's state of the node. Rows are read and encoded once in each process; for rows that take long to read,
    and for a server that is not trusted with the client's code, see `OwnerSocket`.

    Args:
        rows: (X, y) or (X, y, sample_weight); a function of the Flower context that returns them; or the socket of a
            process that has them (then nothing else is given here, but to that process).
        ledger: the file of the owner's own ledger, or a function of the context that returns it.
        key: the file of the owner's secret, made where there is none; or a function of the context that returns it.
            None keeps a secret in Flower's state of the node, which a restarted node has lost: it then drops out of
            the sessions that it was part of.
        dataset: name of the rows in the ledger, as in `Ledger.open`.
        budget: of a ledger that does not exist yet.
        unit: of a ledger that does not exist yet.
        schema: that the server's has to equal; None accepts any.
        noise: that the server has to use, "server" or "clients"; None accepts both.
        colluding: fraction of the owners that may pool what they know of their noise; see `OwnerPolicy`.
        allow_seed: whether seeded fits are answered, which protect nobody: for tests.
        registry: the public keys of all owners, for active sessions; see `OwnerPolicy`.
        statistics: from outside, whose functions this owner runs on its rows; see `OwnerPolicy`.

    Returns:
        The app, for `flwr run` and `simulate`.

    Raises:
        ModuleNotFoundError: Flower is not installed: pip install 'ledgerwood[federation]'.
        InvalidParameter: no ledger is given, or a value out of its bound.
    """
    require_flower("client_app")
    policy = OwnerPolicy(
        schema=schema, noise=noise, colluding=colluding, allow_seed=allow_seed, registry=registry,
        statistics=_validate.items("statistics", statistics, "statistics"),
    )  # fmt: skip
    if isinstance(rows, OwnerSocket):
        if (ledger, key, dataset, budget, unit, policy) != (None, None, None, None, None, OwnerPolicy()):
            raise FederationRefused(
                "ledger=, key= and what an owner accepts are given to the process behind OwnerSocket, by owner_of, "
                "not to client_app"
            )
        main = ClientMain(name=uuid.uuid4().hex, owner=_Socket(place=rows))
    else:
        if ledger is None:
            raise _validate.fail("ledger", ledger, "a file: a client records what its rows took part in", "path")
        if not callable(ledger) and not isinstance(ledger, str | Path):
            raise _validate.fail("ledger", type(ledger), "the path of a file, or a function that returns one", "type")
        made = _Owned(
            rows=rows,
            ledger=ledger,
            key=key,
            dataset=dataset,
            budget=budget,
            unit=unit,
            policy=policy,
        )
        main = ClientMain(name=uuid.uuid4().hex, owner=made, begins=is_setup)
    return app_that_answers(main)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Socket:
    """The owner of a node is another process."""

    place: OwnerSocket

    def __call__(self, context: "Context") -> Answering:
        return forwarded(self.place, context.node_config.get("owner"))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Owned:
    """The owner of a node is made here, from what `client_app` was given."""

    rows: "Rows | Callable[[Context], Rows]"
    ledger: "Place | Callable[[Context], Place]"
    key: "Place | Callable[[Context], Place] | None"
    dataset: str | None
    budget: Budget | None
    unit: PrivacyUnit | None
    policy: OwnerPolicy

    def __call__(self, context: "Context") -> Answering:
        rows, ledger = self.rows, self.ledger
        place = ledger(context) if callable(ledger) else ledger
        account = ClientAccount(place, dataset=self.dataset, budget=self.budget, unit=self.unit)
        own = partial(rows, context) if callable(rows) else rows
        return owner_with(self.policy, own, account, self._key(context))

    def _key(self, context: "Context") -> Place | bytes:
        from flwr.app import ConfigRecord

        if self.key is not None:
            return self.key(context) if callable(self.key) else self.key
        known = bytes_in(context.state, _KEY)
        if known is None:
            known = os.urandom(_KEY_BYTES)
            context.state[_KEY] = ConfigRecord({BYTES: known})
        return known


def server_app(
    estimator: AbstractTrainer,
    ledger: Place | Callable[[], Ledger] | None = None,
    *,
    noise: NoiseBy = "server",
    unit: PrivacyUnit = PrivacyUnit.ROW,
    rows_per_client: int = 1,
    colluding: float = 0.0,
    dropouts: float = 0.0,
    name: str = "server",
    registry: ClientRegistry | None = None,
    clients: int | None = None,
    model: Place | None = None,
    wait: float = TIMEOUT,
    timeout: float = TIMEOUT,
) -> "ServerApp":
    """The Flower app of a federation's server: it waits for the clients, fits the estimator, and saves it.

    Args:
        estimator: as of `federate`, which explains `noise` to `dropouts`, too.
        ledger: the file of the server's ledger, which exists; or a function that opens it; None: one of the fit's own,
            which the model holds.
        noise: "server" or "clients".
        unit: what is protected.
        rows_per_client: with `PrivacyUnit.USER`, how many rows of a client count as much as one.
        colluding: fraction of the clients that may pool what they know.
        dropouts: fraction of the clients that may be missing in a round.
        name: of the server, in the clients' ledgers.
        registry: the public keys of all clients, by number, for active sessions.
        clients: how many are waited for; None takes `clients` of the run's configuration.
        model: the file that the fitted estimator is saved to; None takes `model` of the run's configuration, if any.
        wait: for the clients to connect, seconds; then the fit begins without those that `dropouts` allows to miss.
        timeout: for the replies to one exchange, seconds; who has not answered by then has dropped out.

    Returns:
        The app, for `flwr run` and `simulate`.

    Raises:
        ModuleNotFoundError: Flower is not installed: pip install 'ledgerwood[federation]'.
        InvalidParameter: a value out of its bound.
    """
    require_flower("server_app")
    require_trainer(estimator)
    if clients is not None:
        _validate.count("clients", clients, "clients", minimum=2)
    options = FederationOptions(
        noise=noise, unit=unit, rows_per_client=rows_per_client, colluding=colluding, dropouts=dropouts, server=name,
        registry=registry,
    )  # fmt: skip

    def fit(transport: FlowerTransport) -> AbstractTrainer:
        opened = ledger() if callable(ledger) else ledger
        own = opened if opened is None or isinstance(opened, Ledger) else Ledger.open(opened)
        return train(estimator, transport, options, ledger=own)

    return app_that(
        ServerMain(
            train=fit, clients=clients, model=None if model is None else Path(model), wait=wait, timeout=timeout,
            least=options.tolerance.least,
        )
    )  # fmt: skip
