"""The server's side of a federation: one session of one fit, from the first request to the last sum.

The trainer's loop does not know of it: it asks a curator, whose table asks here.
docs/explanation/federation.md#federation-rounds.
"""

import dataclasses
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

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
from ledgerwood.errors import (
    FederationRefused,
    OwnersLost,
    PrivacyError,
    RoundViolation,
    SchemaError,
    SumIncomplete,
)
from ledgerwood.federation.codec import RepeatedValues, pack
from ledgerwood.federation.exchanges import Exchanges
from ledgerwood.federation.messages import (
    PROTOCOL,
    Ask,
    Begin,
    ColumnNames,
    Describe,
    Endorsed,
    FederationTerms,
    Hello,
    Opened,
    Ready,
    Survivors,
    Uploaded,
    Willing,
    schema_digest,
)
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.owner import coin_purpose, sum_context, version
from ledgerwood.federation.record import FederationRecord, RoundRecord
from ledgerwood.federation.transport import Transport
from ledgerwood.mechanisms.exact.coins import RowCoins
from ledgerwood.schema import Schema
from ledgerwood.secure_aggregation import Roster, ServerSum

MOST_ATTEMPTS = 8
"""Attempts at one question before the fit ends."""
_PATIENCE = 3
"""Rounds in a row without an answer after which an owner is not asked any more; and times that it is asked to begin."""
_PAUSE = 4.0
"""Seconds, at least, from the first time that an owner is asked to begin to the second; twice as many to the third."""
_SPENT = (
    "What the ledgers granted to this fit stays spent, and no model was released; nothing was released that the "
    "server's ledger does not have"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Question:
    """A question on its way: what is asked, and the repeated values that go with it."""

    question: OwnersQuestion
    packed: bytes
    known: int
    schema: bytes
    call: int

    def ask(self, session: bytes, round_: int, attempt: int, live: Collection[int], values: list[bytes]) -> Ask:
        """The request to owners that have the values before `known`."""
        asked = self.question
        return Ask(
            session=session, round=round_, attempt=attempt, live=tuple(sorted(live)), draw=asked.draw,
            is_choice=asked.is_choice, packed=self.packed, known=self.known, news=tuple(values[self.known :]),
            schema=self.schema, call=self.call,
        )  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Unmasking:
    """What comes after the uploads of one attempt: who was asked, who answered, and who has endorsed that."""

    session: bytes
    number: int
    attempt: int
    live: frozenset[int]
    survivors: frozenset[int]
    question: bytes
    endorsements: dict[int, bytes] = field(default_factory=dict)

    def requests(
        self, kind: Any, owners: Collection[int], shares: Callable[[int], dict[int, bytes]] = lambda _: {}
    ) -> dict[int, bytes]:
        """The requests of this kind to some owners."""
        return {
            owner: pack(
                Survivors(
                    session=self.session, round=self.number, attempt=self.attempt, kind=kind,
                    live=tuple(sorted(self.live)), uploaded=tuple(sorted(self.survivors)), shares=shares(owner),
                    endorsements=self.endorsements, question=self.question,
                )
            )
            for owner in sorted(owners)
        }  # fmt: skip


@final
class FederationSession(AbstractOwners):
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
        self._owners = self._exchanges.owners
        if len(self._owners) < 2:
            raise _validate.fail("clients", len(self._owners), ">= 2: the sum of one client hides nothing", "clients")
        self._terms: FederationTerms | None = None
        self._secret = b""
        self._hello: tuple[Hello, ...] = ()
        self._willing: tuple[Willing, ...] = ()
        self._roster: Roster | None = None
        self._begins: dict[int, Begin] = {}
        self._schema = b""
        self._repeated = RepeatedValues()
        self._missed: Counter[int] = Counter()
        self._rounds: list[RoundRecord] = []
        self._setup_bytes = 0
        self._call, self._asked = 1, 0

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
        return self.terms.assumption

    @property
    def record(self) -> FederationRecord:
        """What was done so far."""
        terms = self.terms
        return FederationRecord(
            session=terms.session.hex(), owners=len(self._owners), degree=terms.sums.degree,
            threshold=terms.sums.threshold, setup_bytes=self._setup_bytes, rounds=tuple(self._rounds),
        )  # fmt: skip

    # ------------------------------------------------------------------------------------------------------ beginning

    def head(self, schema: Schema | None, *, numeric_target: bool = False) -> tuple[Any, Any]:
        """See `AbstractOwners`."""
        typed = numeric_target if schema is None else None
        request = pack(Describe(protocol=PROTOCOL, version=version(), numeric_target=typed))
        found = self._from_all(dict.fromkeys(range(len(self._owners)), request), ColumnNames, "columns")
        for number, each in enumerate(found):
            if each != found[0]:
                raise SchemaError(
                    f"owners 0 and {number} have other columns: {found[0].shown} and {each.shown}. Nothing was spent"
                )
        first = found[0]
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
        self._terms = self._options.terms(fit, len(self._owners))
        self._hello = tuple(
            Hello(terms=self._terms, number=number, secret=self._secret) for number in range(len(self._owners))
        )
        self._willing = self._from_all({each.number: pack(each) for each in self._hello}, Willing, "hello")
        yield

    def _from_all(self, requests: Mapping[int, bytes], kind: Any, what: str) -> tuple[Any, ...]:
        """The replies of all owners; who is silent is asked again a little later, since its process may be starting.

        Raises:
            FederationRefused: it names the owners that gave none, with their reasons.
        """
        found: dict[int, Any] = {}
        silent, began = list(requests), 0.0
        for again in range(_PATIENCE):
            if again and silent:
                time.sleep(max(began + again * _PAUSE - time.monotonic(), 0.0))
            if silent:
                began = time.monotonic()
                found |= self._replies({number: requests[number] for number in silent}, kind, what)
                silent = [number for number in silent if self._owners[number] in self._exchanges.silent]
        missing = [number for number in requests if number not in found]
        if missing:
            shown = "; ".join(f"owner {number}: {self._reason(number)}" for number in missing[:5])
            more = f"; and {len(missing) - 5} more" if len(missing) > 5 else ""
            raise FederationRefused(
                f"{len(missing)} of {len(requests)} owners do not take part. {shown}{more}. Nothing was spent"
            )
        return tuple(found[number] for number in requests)

    def _reason(self, number: int) -> str:
        return self._exchanges.reasons.get(self._owners[number], "no answer in time")

    def _replies(self, requests: Mapping[int, bytes], kind: type[Any], what: str, **again: Any) -> dict[int, Any]:
        """The replies by number of the owner."""
        numbers = {self._owners[number]: number for number in requests}
        found = self._exchanges.asked(
            {self._owners[number]: request for number, request in requests.items()}, kind, what=what, **again
        )
        return {numbers[owner]: reply for owner, reply in found.items()}

    def begin(self) -> None:
        """See `AbstractOwners`."""
        if self._roster is not None:
            return
        keys = tuple(each.key for each in self._willing)
        registry = self._options.registry
        signatures = tuple(each.signature for each in self._willing) if registry is not None else ()
        self._roster = Roster(session=self.terms.session, keys=keys, signatures=signatures)
        if registry is not None:
            self._roster.check(registry)
        self._tell()
        self._setup_bytes = self._exchanges.bytes_up + self._exchanges.bytes_down

    def _tell(self) -> None:
        """Tell all owners of the session, and of the call."""
        assert self._roster is not None  # `begin`
        keys, signatures, offset = self._roster.keys, self._roster.signatures, 0
        for owner, hello, willing in zip(self._owners, self._hello, self._willing, strict=True):
            self._begins[owner] = Begin(hello=hello, keys=keys, signatures=signatures, offset=offset)
            self._exchanges.setup[owner] = pack(self._begins[owner])
            offset += willing.n_rows
        # Who does not answer now is told again with the first question.
        self._exchanges.asked(self._exchanges.setup, Ready, what="begin")

    def go_on(self) -> None:
        """See `AbstractOwners`."""
        self._call += 1
        self._hello = tuple(dataclasses.replace(each, call=self._call) for each in self._hello)
        self._willing = self._from_all({each.number: pack(each) for each in self._hello}, Willing, "hello")
        roster = self._roster
        if roster is None or any(each.key != key for each, key in zip(self._willing, roster.keys, strict=True)):
            raise FederationRefused("the owners of a stream stay the same, with their keys. Nothing was spent")
        self._missed.clear()
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
        terms, began = self.terms, time.perf_counter()
        known = len(self._repeated.packed)
        asked_for = question.query
        named = NamedStatistic.of(asked_for) if isinstance(asked_for, DeclaredStatistic) else asked_for
        packed = pack((named, question.mechanism), self._repeated)
        asked = _Question(question=question, packed=packed, known=known, schema=self._schema, call=self._call)
        self._asked += 1  # a round that was lost has used its number up
        number, up, down = self._asked, self._exchanges.bytes_up, self._exchanges.bytes_down
        everybody = frozenset(each for each in range(len(self._owners)) if self._missed[each] < _PATIENCE)
        live = everybody
        for attempt in range(1, MOST_ATTEMPTS + 1):
            if len(live) < terms.least:
                live = everybody
            if len(live) < terms.least:
                break
            total, survivors = self._attempt(asked, number, attempt, live)
            if total is not None:
                self._rounds.append(
                    RoundRecord(
                        number=number, attempts=attempt, asked=tuple(sorted(live)), survivors=tuple(sorted(survivors)),
                        words=total.size, seconds=time.perf_counter() - began,
                        bytes_up=self._exchanges.bytes_up - up, bytes_down=self._exchanges.bytes_down - down,
                    )
                )  # fmt: skip
                return total
            live = survivors
        lost = sorted(set(range(len(self._owners))) - live)[:3]
        why = "; ".join(f"owner {each}: {self._reason(each)}" for each in lost)
        raise OwnersLost(
            f"round {number} was not unmasked: fewer than {terms.least} of {len(self._owners)} owners answered it. "
            f"{why}. {_SPENT}"
        )

    def _attempt(
        self, asked: _Question, number: int, attempt: int, live: frozenset[int]
    ) -> tuple[Integers | None, frozenset[int]]:
        """The total and its survivors; or None, and the owners with whom another attempt may be made.

        Raises:
            OwnersLost: the survivors were final, and too few of them opened the seeds.
        """
        terms = self.terms
        assert self._roster is not None  # `begin`
        values = self._repeated.packed
        ask = asked.ask(terms.session, number, attempt, live, values)
        question = ask.digest(self._repeated.digest)
        context = sum_context(terms, number, attempt, question)

        def again(_: int, known: int) -> bytes:
            own = dataclasses.replace(asked, known=known)
            return pack(own.ask(terms.session, number, attempt, live, values))

        uploads = self._replies(dict.fromkeys(sorted(live), pack(ask)), Uploaded, "upload", again=again)
        shape = Counter(each.shape for each in uploads.values()).most_common(1)[0][0] if uploads else ()
        total = ServerSum(
            terms=terms.sums, roster=self._roster, context=context, live=live, length=int(np.prod(shape, dtype=int)),
            registry=self._options.registry,
        )  # fmt: skip
        for owner, reply in uploads.items():
            with self._told(owner):
                total.add(owner, reply.upload)
        survivors = frozenset(total.uploaded)
        for owner in live:
            self._missed[owner] = 0 if owner in survivors else self._missed[owner] + 1
        if len(survivors) < terms.least:
            return None, survivors
        try:
            total.close()
        except SumIncomplete:  # nothing was opened: others may be back for another attempt
            return None, survivors
        after = _Unmasking(
            session=terms.session, number=number, attempt=attempt, live=live, survivors=survivors, question=question
        )
        if terms.sums.active:
            for owner, signed in self._replies(after.requests("endorse", survivors), Endorsed, "endorse").items():
                with self._told(owner):
                    total.add_endorsement(owner, signed.signature)
            try:
                after = dataclasses.replace(after, endorsements=dict(total.endorsements))
            except SumIncomplete:
                return None, survivors
        for owner, found in self._replies(after.requests("recover", total.to_recover), Opened, "recover").items():
            with self._told(owner):
                total.add_pair_keys(owner, found.opened)
        if total.to_recover:  # nothing was opened
            return None, survivors - total.to_recover
        requests = after.requests("unmask", survivors, total.shares_for)
        for owner, found in self._replies(requests, Opened, "unmask").items():
            with self._told(owner):
                total.add_opened(owner, found.opened)
        try:
            return total.total().view(np.int64).reshape(shape), survivors
        except SumIncomplete as error:
            problem = str(error)
        raise OwnersLost(f"round {number} could not be unmasked: {problem}. {_SPENT}")

    @contextmanager
    def _told(self, owner: int) -> Iterator[None]:
        """Keep what is wrong with an owner's answer as the reason why it counts as missing."""
        try:
            yield
        except PrivacyError as error:
            self._exchanges.reasons[self._owners[owner]] = str(error)
