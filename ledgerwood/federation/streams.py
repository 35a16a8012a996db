"""Learn from rows that arrive in several calls, and stay with their owners.

docs/explanation/federation.md#federation-streams; docs/how-to/train-in-a-federation.md.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, final

from ledgerwood import _validate
from ledgerwood.accounting.ledger import Grant, Ledger
from ledgerwood.errors import InvalidParameter
from ledgerwood.federation.exchanges import OfOneSession
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.owners.account import ClientAccount
from ledgerwood.federation.owners.own import OwnRows, identity_at
from ledgerwood.federation.owners.owner import Owner
from ledgerwood.federation.owners.policy import OwnerPolicy
from ledgerwood.federation.session import FederationSession
from ledgerwood.federation.transport import LocalTransport, Transport
from ledgerwood.trainers.base.streams import AbstractStreamEstimator


@final
class OwnersPartialFit(OfOneSession):
    """The calls of one stream, over whatever owners of rows a transport reaches.

    All calls are one session: the owners' ledgers pay once, and each owner keeps one account for each of its units. The
    stream ends with this object: a server that starts again begins a new one, and pays again.

    Args:
        estimator: that can `partial_fit`, and was not fitted.
        transport: reaches the owners, who are the same in all calls.
        options: what the server fixes; None takes the defaults.
        ledger: of the server, that pays for the stream; None: one of its own.

    Raises:
        InvalidParameter: an estimator without `partial_fit`, or a grant.
    """

    def __init__(
        self,
        estimator: AbstractStreamEstimator,
        transport: Transport,
        options: FederationOptions | None = None,
        *,
        ledger: Ledger | None = None,
    ) -> None:
        if not isinstance(estimator, AbstractStreamEstimator):
            raise InvalidParameter(f"estimator must be one that can partial_fit, not {type(estimator).__name__}")
        if isinstance(ledger, Grant):
            raise InvalidParameter("a federation's grant bears the name of its session: give the ledger")
        self.estimator, self._ledger = estimator, ledger
        self._session = FederationSession(transport, options if options is not None else FederationOptions())

    def __call__(self) -> AbstractStreamEstimator:
        """Learn from the rows that the owners have now.

        Raises:
            FederationRefused: owners that do not take part, with their reasons. This call spent nothing.
            OwnersLost: too few owners answered a round; what rows were charged stays charged.
            SchemaError, RoundViolation, UnsupportedEvent, InvalidParameter, BudgetExceeded, LedgerError: as of
                `federate` and `partial_fit`.
        """
        self.estimator.partial_fit(self._session, None, ledger=self._ledger)
        self.estimator.federation_ = self._session.record
        return self.estimator


@final
class FederatedStream(OfOneSession):
    """A stream in a simulated federation, in one process: each client keeps its rows, and its units' accounts.

        with FederatedStream(estimator, clients=3) as stream:
            stream.partial_fit([(X1, y1, keys1), (X2, y2, keys2), (X3, y3, keys3)])
            stream.partial_fit([(X4, y4, keys4), (X5, y5, keys5), (X6, y6, keys6)])

    Under one seed the model is the one that `partial_fit` makes of all rows together, bit for bit.

    Args:
        estimator: that can `partial_fit`, and was not fitted.
        clients: how many there are, two or more; the same ones in all calls.
        ledger: of the server, that pays for the stream; None: one of its own.
        ledgers: the ledger file of each client, beside which the accounts of its units are kept; None: new ones, which
            are removed when the stream ends.
        colluding, dropouts: as of `federate`.

    Raises:
        InvalidParameter: another number of ledgers than of clients, or as of `FederationOptions`.
    """

    def __init__(
        self,
        estimator: AbstractStreamEstimator,
        clients: int,
        ledger: Ledger | None = None,
        *,
        ledgers: Sequence[str | Path] | None = None,
        colluding: float = 0.0,
        dropouts: float = 0.0,
    ) -> None:
        n = _validate.count("clients", clients, "clients", minimum=2)
        if ledgers is not None and len(ledgers) != n:
            raise _validate.fail("len(ledgers)", len(ledgers), f"{n}, one a client", "files")
        options = FederationOptions(colluding=colluding, dropouts=dropouts)
        policy = OwnerPolicy(allow_seed=estimator.random_state is not None)
        self._folder = tempfile.TemporaryDirectory(prefix="ledgerwood-federation-")
        folder = Path(self._folder.name)
        self._rows: list[OwnRows | None] = [None] * n
        owners = []
        for number in range(n):
            account = (
                ClientAccount(
                    folder / f"{number}.ledger.jsonl", dataset=f"client {number}", budget=estimator.budget,
                    unit=options.unit,
                )
                if ledgers is None
                else ClientAccount(ledgers[number])
            )  # fmt: skip
            identity = identity_at(folder / f"{number}.key")
            owners.append(Owner(_Present(self._rows, number), account=account, identity=identity, policy=policy))
        self._calls = OwnersPartialFit(estimator, LocalTransport(owners), options, ledger=ledger)

    def partial_fit(self, clients: Sequence[tuple[Any, ...]]) -> AbstractStreamEstimator:
        """Learn from the rows of one call.

        Args:
            clients: of each (X, y, keys), where keys name each row's privacy unit, the same in every call. A unit has
                rows at one client only.

        Returns:
            The estimator.

        Raises:
            InvalidParameter: another number of clients, or no keys; else as of `OwnersPartialFit`.
        """
        if len(clients) != len(self._rows):
            raise _validate.fail("len(clients)", len(clients), f"{len(self._rows)}, as the stream began", "clients")
        for number, given in enumerate(clients):
            if len(given) != 3 or given[2] is None:
                raise InvalidParameter(f"client {number} must be (X, y, keys)")
        self._rows[:] = [OwnRows(X=given[0], y=given[1], keys=given[2]) for given in clients]
        try:
            return self._calls()
        finally:
            self._rows[:] = [None] * len(self._rows)

    def close(self) -> None:
        """End the stream."""
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@final
class _Present:
    """The rows of a client in the present call."""

    __slots__ = ("_number", "_rows")

    def __init__(self, rows: list[OwnRows | None], number: int) -> None:
        self._rows, self._number = rows, number

    def __call__(self) -> OwnRows:
        found = self._rows[self._number]
        if found is None:
            raise InvalidParameter("there is no call of the stream now")
        return found
