"""The rounds of one session, on the server's side: one question after another, each until its sum is unmasked.

docs/explanation/federation.md#federation-rounds.
"""

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from ledgerwood.curator.places.federated_rows import OwnersQuestion
from ledgerwood.curator.queries.declared import DeclaredStatistic
from ledgerwood.curator.queries.named_statistics import NamedStatistic
from ledgerwood.curator.queries.registry import Integers
from ledgerwood.errors import OwnersLost, PrivacyError, SumIncomplete
from ledgerwood.federation.agreed import sum_context
from ledgerwood.federation.codec import RepeatedValues, pack
from ledgerwood.federation.exchanges import Exchanges, OfOneSession
from ledgerwood.federation.messages import Ask, Endorsed, FederationTerms, Opened, Survivors, Uploaded
from ledgerwood.federation.record import RoundRecord
from ledgerwood.secure_aggregation import ClientRegistry, Roster, ServerSum

MOST_ATTEMPTS = 8
"""Attempts at one question before the fit ends."""
_PATIENCE = 3
"""Rounds in a row without an answer after which an owner is not asked any more."""
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
class Rounds(OfOneSession):
    """Asks the owners that joined one question at a time.

    Args:
        exchanges: with all owners, by their numbers.
        terms: of the session.
        roster: of the session.
        registry: of an active session; None of any other.
    """

    __slots__ = ("_asked", "_exchanges", "_missed", "_registry", "_repeated", "_roster", "_terms", "records")

    def __init__(
        self, exchanges: Exchanges, terms: FederationTerms, roster: Roster, registry: ClientRegistry | None
    ) -> None:
        self._exchanges, self._terms, self._roster, self._registry = exchanges, terms, roster, registry
        self._repeated = RepeatedValues()
        self._missed: Counter[int] = Counter()
        self._asked = 0
        self.records: list[RoundRecord] = []
        """Of the rounds that were unmasked."""

    def go_on(self) -> None:
        """All owners are asked again: the next call of a stream has begun."""
        self._missed.clear()

    def sums(self, question: OwnersQuestion, *, schema: bytes, call: int) -> Integers:
        """The sums over all owners that answer, int64, modulo 2**64.

        Args:
            question: to all of them.
            schema: the digest of the estimated schema, see `Ask`.
            call: of a stream, see `Ask`.

        Raises:
            OwnersLost: too few owners answered, and the fit ends.
        """
        terms, began = self._terms, time.perf_counter()
        known = len(self._repeated.packed)
        asked_for = question.query
        named = NamedStatistic.of(asked_for) if isinstance(asked_for, DeclaredStatistic) else asked_for
        packed = pack((named, question.mechanism), self._repeated)
        asked = _Question(question=question, packed=packed, known=known, schema=schema, call=call)
        self._asked += 1  # a round that was lost has used its number up
        number, up, down = self._asked, self._exchanges.bytes_up, self._exchanges.bytes_down
        everybody = frozenset(each for each in self._roster.joined if self._missed[each] < _PATIENCE)
        live = everybody
        for attempt in range(1, MOST_ATTEMPTS + 1):
            if len(live) < terms.least:
                live = everybody
            if len(live) < terms.least:
                break
            total, survivors = self._attempt(asked, number, attempt, live)
            if total is not None:
                self.records.append(
                    RoundRecord(
                        number=number, attempts=attempt, asked=tuple(sorted(live)), survivors=tuple(sorted(survivors)),
                        words=total.size, seconds=time.perf_counter() - began,
                        bytes_up=self._exchanges.bytes_up - up, bytes_down=self._exchanges.bytes_down - down,
                    )
                )  # fmt: skip
                return total
            live = survivors
        lost = sorted(set(range(terms.sums.n_clients)) - live)[:3]
        why = "; ".join(f"owner {each}: {self._exchanges.reason(each)}" for each in lost)
        raise OwnersLost(
            f"round {number} was not unmasked: fewer than {terms.least} of {terms.sums.n_clients} owners answered it. "
            f"{why}. {_SPENT}"
        )

    def _attempt(
        self, asked: _Question, number: int, attempt: int, live: frozenset[int]
    ) -> tuple[Integers | None, frozenset[int]]:
        """The total and its survivors; or None, and the owners with whom another attempt may be made.

        Raises:
            OwnersLost: the survivors were final, and too few of them opened the seeds.
        """
        terms = self._terms
        values = self._repeated.packed
        ask = asked.ask(terms.session, number, attempt, live, values)
        question = ask.digest(self._repeated.digest)
        context = sum_context(terms, number, attempt, question)

        def again(_: int, known: int) -> bytes:
            own = dataclasses.replace(asked, known=known)
            return pack(own.ask(terms.session, number, attempt, live, values))

        uploads = self._exchanges.asked(dict.fromkeys(sorted(live), pack(ask)), Uploaded, what="upload", again=again)
        shape = Counter(each.shape for each in uploads.values()).most_common(1)[0][0] if uploads else ()
        total = ServerSum(
            terms=terms.sums, roster=self._roster, context=context, live=live, length=int(np.prod(shape, dtype=int)),
            registry=self._registry,
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
            for owner, signed in self._exchanges.asked(
                after.requests("endorse", survivors), Endorsed, what="endorse"
            ).items():
                with self._told(owner):
                    total.add_endorsement(owner, signed.signature)
            try:
                after = dataclasses.replace(after, endorsements=dict(total.endorsements))
            except SumIncomplete:
                return None, survivors
        for owner, found in self._exchanges.asked(
            after.requests("recover", total.to_recover), Opened, what="recover"
        ).items():
            with self._told(owner):
                total.add_pair_keys(owner, found.opened)
        if total.to_recover:  # nothing was opened
            return None, survivors - total.to_recover
        requests = after.requests("unmask", survivors, total.shares_for)
        for owner, found in self._exchanges.asked(requests, Opened, what="unmask").items():
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
            self._exchanges.reasons[owner] = str(error)
