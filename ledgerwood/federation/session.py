"""The server's side of a federation: one session of one fit, from the first request to the last sum.

The trainer's loop does not know of it: it asks a curator, whose table asks here.
docs/explanation/federation.md#federation-rounds.
"""

import dataclasses
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.curator.places.federated_rows import (
    AbstractOwners,
    FitTerms,
    NoiseBy,
    OwnersQuestion,
    empty_columns,
    empty_rows,
)
from ledgerwood.curator.queries.declared import DeclaredStatistic
from ledgerwood.curator.queries.named_statistics import NamedStatistic
from ledgerwood.curator.queries.registry import Integers
from ledgerwood.errors import FederationRefused, RoundViolation, SchemaError
from ledgerwood.federation.agreed import coin_purpose, version
from ledgerwood.federation.codec import pack
from ledgerwood.federation.exchanges import Exchanges, OfOneSession
from ledgerwood.federation.messages import (
    PROTOCOL,
    Begin,
    ColumnNames,
    Describe,
    FederationTerms,
    Hello,
    Ready,
    Willing,
    schema_digest,
)
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.record import FederationRecord
from ledgerwood.federation.rounds import Rounds
from ledgerwood.federation.transport import Transport
from ledgerwood.mechanisms.exact.coins import RowCoins
from ledgerwood.schema import Schema
from ledgerwood.secure_aggregation import Roster

_TIMES = 3
"""How often an owner is asked to begin."""
_PAUSE = 4.0
"""Seconds, at least, from the first time that an owner is asked to begin to the second; twice as many to the third."""


@final
class FederationSession(OfOneSession, AbstractOwners):
    """One fit of a federation. Owners are numbered by their places in the session, from 0.

    Args:
        transport: reaches the owners.
        options: what the server fixes.

    Raises:
        InvalidParameter: fewer than two owners.
    """

    def __init__(self, transport: Transport, options: FederationOptions) -> None:
        self._options = options
        self._exchanges = Exchanges(transport)
        self._n = self._exchanges.owners
        if self._n < 2:
            raise _validate.fail("clients", self._n, ">= 2: the sum of one client hides nothing", "clients")
        self._terms: FederationTerms | None = None
        self._secret = b""
        self._hello: tuple[Hello, ...] = ()
        self._absent: frozenset[int] = frozenset()
        self._willing: dict[int, Willing] = {}
        self._roster: Roster | None = None
        self._begins: dict[int, Begin] = {}
        self._schema = b""
        self._rounds: Rounds | None = None
        self._setup_bytes = 0
        self._call = 1

    # --------------------------------------------------------------------------------------------------- what is said

    @property
    def noise(self) -> NoiseBy:
        """See `AbstractOwners`."""
        return self._options.noise

    @property
    def unit(self) -> PrivacyUnit:
        """See `AbstractOwners`."""
        return self._options.unit

    @property
    def terms(self) -> FederationTerms:
        """Of the open session.

        Raises:
            RoundViolation: it is not open.
        """
        if self._terms is None:
            raise RoundViolation("the session of this federation is not open")
        return self._terms

    @property
    def purpose(self) -> str:
        """See `AbstractOwners`."""
        return f"federation {self.terms.session.hex()}"

    @property
    def assumption(self) -> str:
        """See `AbstractOwners`."""
        absent = f"; {len(self._absent)} of the owners did not answer when the fit began, and took no part"
        return self.terms.assumption + (absent if self._absent else "")

    @property
    def record(self) -> FederationRecord:
        """What was done so far."""
        terms = self.terms
        return FederationRecord(
            session=terms.session.hex(),
            owners=self._n,
            degree=terms.sums.degree,
            threshold=terms.sums.threshold,
            setup_bytes=self._setup_bytes,
            rounds=() if self._rounds is None else tuple(self._rounds.records),
            absent=tuple(sorted(self._absent)),
        )

    # ------------------------------------------------------------------------------------------------------ beginning

    def head(self, schema: Schema | None, *, numeric_target: bool = False) -> tuple[Any, Any]:
        """See `AbstractOwners`."""
        typed = numeric_target if schema is None else None
        request = pack(Describe(protocol=PROTOCOL, version=version(), numeric_target=typed))
        asked = dict.fromkeys(range(self._n), request)
        found = self._from_all(asked, ColumnNames, "columns", spare=self._spare)
        place, first = next(iter(found.items()))
        for number, each in found.items():
            if each != first:
                raise SchemaError(
                    f"owners {place} and {number} have other columns: {first.shown} and {each.shown}. Nothing was spent"
                )
        if schema is not None:
            return empty_rows(schema, first.n_features, first.names)
        if first.columns is None:
            raise SchemaError("owners did not say the types of their columns. Nothing was spent")
        return empty_columns(first.columns, named=bool(first.names))

    @contextmanager
    def session(self, fit: FitTerms) -> Iterator[None]:
        """See `AbstractOwners`."""
        if self._terms is not None:
            raise RoundViolation("a federation's session is of one fit: make another one")
        self._options.require(fit.event)
        self._secret = os.urandom(32) if fit.seeded else b""
        self._terms = self._options.terms(fit, self._n)
        self._hello = tuple(Hello(terms=self._terms, number=number, secret=self._secret) for number in range(self._n))
        # The calls of a stream have the same owners, all of them: who were absent from one would be lost for all.
        spare = 0 if fit.stream else self._spare
        asked = {each.number: pack(each) for each in self._hello}
        self._willing = self._from_all(asked, Willing, "hello", spare=spare)
        self._roster = self._joined()
        yield

    def _joined(self) -> Roster:
        """The keys of the owners that take part; nothing is spent yet.

        Raises:
            FederationRefused: two of them have one key, or one has not signed.
            SumRefused: a key that is not signed as the registry demands.
        """
        registry, owner_of = self._options.registry, dict[bytes, int]()
        for number, each in self._willing.items():
            first = owner_of.setdefault(each.key, number)
            if first != number:
                raise FederationRefused(
                    f"owners {first} and {number} have the same secret key: each owner makes its own key file. "
                    "Nothing was spent"
                )
            if registry is not None and not each.signature:
                raise FederationRefused(f"owner {number} has not signed its key. Nothing was spent")
        keys, signatures = [b""] * self._n, [b""] * self._n  # of who did not join: empty
        for number, each in self._willing.items():
            keys[number], signatures[number] = each.key, each.signature
        roster = Roster(
            session=self.terms.session, keys=tuple(keys), signatures=() if registry is None else tuple(signatures)
        )
        if registry is not None:
            roster.check(registry)
        return roster

    @property
    def _spare(self) -> int:
        """How many owners may be absent from all of a fit: as many as may be missing in a round."""
        return self._n - self._options.tolerance.least(self._n)

    def _from_all(self, requests: Mapping[int, bytes], kind: Any, what: str, *, spare: int = 0) -> dict[int, Any]:
        """The replies of all owners; who is silent is asked again a little later, since its process may be starting.

        Who was silent all the time before is asked once.

        Args:
            requests: by number of the owner.
            kind: of reply.
            what: is asked, for logs.
            spare: silent owners that may be left out, at most.

        Raises:
            FederationRefused: it names the owners that refused, or were silent beyond that, with their reasons.
        """
        found: dict[int, Any] = {}
        silent, began = list(requests), 0.0
        for again in range(_TIMES):
            waited = [number for number in silent if not again or number not in self._absent]
            if not waited:
                break
            if again:
                time.sleep(max(began + again * _PAUSE - time.monotonic(), 0.0))
            began = time.monotonic()
            found |= self._exchanges.asked({number: requests[number] for number in waited}, kind, what=what)
            quiet = self._exchanges.silent
            silent = [number for number in silent if number not in waited or number in quiet]
        missing = [number for number in requests if number not in found]
        if len(missing) > len(silent) or len(silent) > spare:
            shown = "; ".join(f"owner {number}: {self._exchanges.reason(number)}" for number in missing[:5])
            more = f"; and {len(missing) - 5} more" if len(missing) > 5 else ""
            raise FederationRefused(
                f"{len(missing)} of {len(requests)} owners do not take part. {shown}{more}. Nothing was spent"
            )
        self._absent = frozenset(silent)
        return {number: found[number] for number in requests if number in found}

    def begin(self) -> None:
        """See `AbstractOwners`."""
        if self._rounds is not None:
            return
        assert self._roster is not None  # `session`
        self._rounds = Rounds(self._exchanges, self.terms, self._roster, self._options.registry)
        self._tell()
        self._setup_bytes = self._exchanges.bytes_up + self._exchanges.bytes_down

    def _tell(self) -> None:
        """Tell all owners that take part of the session, and of the call."""
        assert self._roster is not None  # `session`
        keys, signatures, offset = self._roster.keys, self._roster.signatures, 0
        for number, willing in self._willing.items():
            self._begins[number] = Begin(hello=self._hello[number], keys=keys, signatures=signatures, offset=offset)
            self._exchanges.setup[number] = pack(self._begins[number])
            offset += willing.n_rows
        # Who does not answer now is told again with the first question.
        self._exchanges.asked(self._exchanges.setup, Ready, what="begin")

    def go_on(self) -> None:
        """See `AbstractOwners`."""
        self._call += 1
        self._hello = tuple(dataclasses.replace(each, call=self._call) for each in self._hello)
        self._willing = self._from_all({each.number: pack(each) for each in self._hello}, Willing, "hello")
        roster = self._roster
        if roster is None or any(each.key != roster.keys[number] for number, each in self._willing.items()):
            raise FederationRefused("the owners of a stream stay the same, with their keys. Nothing was spent")
        if self._rounds is not None:
            self._rounds.go_on()
        self._tell()

    def found(self, schema: Schema) -> None:
        """See `AbstractOwners`."""
        self._schema = schema_digest(schema)
        for owner, begin in self._begins.items():
            self._exchanges.setup[owner] = pack(dataclasses.replace(begin, schema=schema))
        # As at the beginning: who does not answer now is told again with the next question.
        self._exchanges.asked(self._exchanges.setup, Ready, what="schema")

    def sealed(self, coins: RowCoins, draw: int) -> bytes:
        """See `AbstractOwners`."""
        return coins.sealed(self._secret, coin_purpose(self.terms.session, draw))

    # ---------------------------------------------------------------------------------------------------------- rounds

    def require(self, query: object) -> None:
        """See `AbstractOwners`."""
        if isinstance(query, DeclaredStatistic):
            NamedStatistic.of(query).require_among(
                self.terms.fit.statistics, "the list that owners have agreed to (the trainer's declared_statistics)"
            )

    def sums(self, question: OwnersQuestion) -> Integers:
        """See `AbstractOwners`."""
        if self._rounds is None:
            raise RoundViolation("no draw was made in this federation's session")
        return self._rounds.sums(question, schema=self._schema, call=self._call)
