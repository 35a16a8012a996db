"""Train an estimator on rows that stay with their owners.

    from ledgerwood.federation import federate

    model = federate(estimator, clients=[(X1, y1), (X2, y2), (X3, y3)])

docs/how-to/train-in-a-federation.md.
"""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.curator import column_count
from ledgerwood.curator.places.federated_rows import NoiseBy
from ledgerwood.curator.queries.declared import DeclaredStatistic
from ledgerwood.errors import InvalidParameter
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.owners.account import ClientAccount
from ledgerwood.federation.owners.own import OwnRows, identity_at
from ledgerwood.federation.owners.owner import Owner
from ledgerwood.federation.owners.policy import OwnerPolicy
from ledgerwood.federation.training import require_trainer, train
from ledgerwood.federation.transport import LocalTransport
from ledgerwood.schema import Schema
from ledgerwood.trainers.base.trainer import AbstractTrainer

E = TypeVar("E", bound=AbstractTrainer)
Engine = Literal["flower", "process"]


def federate(
    estimator: E,
    clients: Sequence[tuple[Any, ...]],
    noise: NoiseBy = "server",
    ledger: Ledger | None = None,
    *,
    unit: PrivacyUnit = PrivacyUnit.ROW,
    rows_per_client: int = 1,
    colluding: float = 0.0,
    dropouts: float = 0.0,
    ledgers: Sequence[str | Path] | None = None,
    engine: Engine = "flower",
) -> E:
    """Fit the estimator in a simulated federation: each client keeps its rows, and sends masked sums.

    Under one seed the model is the one that `fit` makes of all rows together, bit for bit (noise="server").

    Args:
        estimator: any trainer with a declared schema whose statistics are sums over rows. The clients trust the
            functions of its `declared_statistics`.
        clients: for each at least (X, y), or (X, y, sample_weight); two clients or more.
        noise: "server": the server sees the exact sums over all clients, and adds the noise. "clients": each client
            adds its share of the noise, so that the server sees noisy sums only; the estimator's noise has to be
            Skellam noise, noise="skellam".
        ledger: of the server, that pays for the fit; None: one of the fit's own.
        unit: what is protected: a row, or with `PrivacyUnit.USER` all rows of a client together.
        rows_per_client: with `PrivacyUnit.USER`, how many rows of a client count as much as one: public.
        colluding: fraction of the clients that may pool what they know with the server or with each other.
        dropouts: fraction of the clients that may be missing in a round.
        ledgers: the ledger file of each client, which refuses beyond its budget; None: a new one each, for this fit.
        engine: "flower" runs Flower's simulation; "process" calls the clients one after another in this process.

    Returns:
        The estimator, fitted; `federation_` has the record of its rounds.

    Raises:
        SchemaError: no declared schema, or clients with other columns. Nothing was spent.
        RoundViolation, UnsupportedEvent: a plan with a statistic that is not a sum, or noise that clients cannot share.
            Nothing was spent.
        FederationRefused: clients that do not take part, with their reasons. Nothing was spent.
        OwnersLost: too few clients answered a round; the fit ended, and what was granted stays spent.
        InvalidParameter, CalibrationFailed, BudgetExceeded: as of `fit`.
    """
    if engine not in get_args(Engine):
        raise _validate.fail("engine", engine, "'flower' or 'process'", "name")
    own = [_own(number, each) for number, each in enumerate(clients)]
    if ledgers is not None and len(ledgers) != len(own):
        raise _validate.fail("len(ledgers)", len(ledgers), f"{len(own)}, one a client", "files")
    options = FederationOptions(
        noise=noise, unit=unit, rows_per_client=rows_per_client, colluding=colluding, dropouts=dropouts
    )
    require_trainer(estimator)
    policy = OwnerPolicy(allow_seed=estimator.random_state is not None, statistics=_statistics(estimator, own))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ledgerwood-federation-")))
        accounts = [
            ClientAccount(
                folder / f"{number}.ledger.jsonl", dataset=f"client {number}", budget=estimator.budget, unit=unit
            )
            if ledgers is None
            else ClientAccount(ledgers[number])
            for number in range(len(own))
        ]
        for account in accounts if ledgers is not None else ():
            if not account.path.is_file():
                raise InvalidParameter(f"ledgers: there is no ledger at {account.path}: make one by Ledger.open")
        if engine == "process":
            owners = [
                Owner(
                    partial(_itself, rows),
                    account=account,
                    identity=identity_at(folder / f"{number}.key"),
                    policy=policy,
                )
                for number, (rows, account) in enumerate(zip(own, accounts, strict=True))
            ]
            return train(estimator, LocalTransport(owners), options, ledger=ledger)
        from ledgerwood.federation.flower.simulation import simulated

        return simulated(estimator, own, accounts, folder, options, policy, ledger=ledger)


def _itself(rows: OwnRows) -> OwnRows:
    return rows


def _statistics(estimator: AbstractTrainer, clients: Sequence[OwnRows]) -> tuple[DeclaredStatistic, ...]:
    """The estimator's, which the owners of a simulation trust."""
    if not isinstance(estimator.schema, Schema) or not clients:
        return ()
    return estimator.declared_statistics(estimator.schema.resolved(column_count(clients[0].X, estimator.schema)))


def _own(number: int, given: object) -> OwnRows:
    if not isinstance(given, tuple | list) or not 2 <= len(given) <= 3:
        raise InvalidParameter(f"client {number} must be (X, y) or (X, y, sample_weight), not {type(given).__name__}")
    return OwnRows(X=given[0], y=given[1], sample_weight=given[2] if len(given) == 3 else None)
