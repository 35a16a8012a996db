"""The side of an owner of rows: reads requests, keeps an account of what it answered, and replies.

An owner trusts no message. A question is compared with the plan that the owner's own ledger pays for, and is recorded
there, durably, before it is answered. docs/explanation/federation.md#federation-owners.
"""

import dataclasses
import logging
import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.accounting.events import Event, FilteredEvent
from ledgerwood.curator.inputs.typed_columns import without_draft
from ledgerwood.curator.places.federated_columns import OwnerColumns
from ledgerwood.curator.places.federated_plans import require_planned
from ledgerwood.curator.places.federated_rows import OwnersQuestion
from ledgerwood.curator.places.owner_rows import OwnerRows, columns_of
from ledgerwood.curator.places.row_accounts import PaidSums, RowAccountsFile, RowCharges
from ledgerwood.curator.queries.named_statistics import NamedStatistic
from ledgerwood.curator.queries.registry import Integers
from ledgerwood.errors import (
    FederationRefused,
    InvalidParameter,
    LedgerError,
    PrivacyError,
    RoundViolation,
    SchemaError,
)
from ledgerwood.federation.agreed import coin_purpose, sum_context, version
from ledgerwood.federation.codec import ReadValues, pack, unpack
from ledgerwood.federation.messages import (
    PROTOCOL,
    Ask,
    Begin,
    ColumnNames,
    Describe,
    Endorsed,
    FederationTerms,
    Hello,
    NotTold,
    Opened,
    Ready,
    Refusal,
    Reply,
    Survivors,
    Uploaded,
    Willing,
    schema_digest,
)
from ledgerwood.federation.owners.account import ClientAccount
from ledgerwood.federation.owners.account_terms import SessionTerms
from ledgerwood.federation.owners.own import OwnRows, require_units
from ledgerwood.federation.owners.policy import OwnerPolicy
from ledgerwood.mechanisms import MECHANISMS, SecureRandom, SeededRandom, SkellamMechanism
from ledgerwood.mechanisms.exact.coins import RowCoins
from ledgerwood.schema import Schema
from ledgerwood.secure_aggregation import RANDOM_BYTES, ClientSums, Roster, SessionKeys

_MOST_SESSIONS = 8
_LOG = logging.getLogger("ledgerwood.federation")


@final
@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class _OpenSession:
    """What an owner's process keeps of a session; another process makes it anew from the same messages."""

    begin: Begin
    rows: OwnerRows | OwnerColumns
    sums: ClientSums
    known: ReadValues
    accounts: RowAccountsFile | None = None
    schema: bytes = b""  # the digest of an estimated schema, once it was told

    @property
    def terms(self) -> FederationTerms:
        return self.begin.hello.terms


@final
class Owner:
    """Answers the requests of a federation's server.

    Args:
        rows: returns the rows; called once a session in each process.
        account: of the owner.
        identity: 32 secret bytes, the same for all of the owner's processes.
        policy: what the owner accepts.
    """

    def __init__(
        self,
        rows: Callable[[], OwnRows],
        *,
        account: ClientAccount,
        identity: bytes,
        policy: OwnerPolicy | None = None,
    ) -> None:
        self._rows, self._account, self._identity = rows, account, identity
        self._policy = policy if policy is not None else OwnerPolicy()
        self._read: tuple[bytes, OwnerRows | OwnerColumns] | None = None
        self._sessions: OrderedDict[bytes, _OpenSession] = OrderedDict()

    def answer(self, request: bytes) -> bytes:
        """The reply to a request, whatever it is: what an owner does not answer it refuses with a reason."""
        try:
            reply = self._reply(unpack(request))
        except PrivacyError as error:
            _LOG.warning("refused: %s: %s", type(error).__name__, error)
            reply = Refusal.of(error)
        except Exception as error:  # noqa: BLE001  # the server learns its kind: its text may hold what a row holds
            _LOG.warning("failed with %s", type(error).__name__)
            reply = Refusal(reason=f"the owner's process failed with {type(error).__name__}")
        return pack(reply)

    def _reply(self, request: object) -> Reply:
        match request:
            case Describe():
                return self._described(request)
            case Hello():
                return self._willing(request)
            case Begin():
                return self._begun(request)
            case Ask():
                return self._uploaded(request)
            case Survivors():
                return self._opened(request)
        raise RoundViolation(f"{type(request).__name__} is not a request of a federation's server")

    def _described(self, request: Describe) -> ColumnNames:
        own = version()
        if request.protocol != PROTOCOL or request.version != own:
            raise FederationRefused(
                f"the server has ledgerwood {request.version}, protocol {request.protocol}, and this owner {own}, "
                f"protocol {PROTOCOL}: install the same release on both"
            )
        rows = self._rows()
        n_features, names = columns_of(rows.X)
        if request.numeric_target is None:
            return ColumnNames(n_features=n_features, names=names)
        self._policy.require_no_schema()
        columns = rows.typed(numeric_target=request.numeric_target)
        return ColumnNames(n_features=n_features, names=names, columns=columns)

    def _willing(self, request: Hello) -> Willing:
        terms = request.terms
        self._policy.require(request)
        try:
            self._account.could_join(_account_terms(terms))
        except InvalidParameter as error:  # no such file, say: its name is no server's business
            raise LedgerError(str(error)) from error
        rows = self._rows_by(request)
        keys = SessionKeys.derived(self._identity, terms.session)
        return Willing(
            key=keys.public,
            signature=keys.signature if terms.sums.active else b"",
            n_rows=rows.n_rows if terms.fit.seeded else 0,
        )

    def _rows_by(self, hello: Hello) -> OwnerRows | OwnerColumns:
        """The rows by the terms' schema, or by the types of their columns; kept for the next request."""
        terms, fit = hello.terms, hello.terms.fit
        if hello.call > 1 and not fit.stream:
            raise RoundViolation(f"call {hello.call} of a fit that is no stream")
        key = pack((fit.schema, fit.columns, fit.loss, fit.bins, terms.sums.n_clients, terms.session, hello.call))
        if self._read is None or self._read[0] != key:
            own = self._rows()
            require_units(own, fit)
            rows: OwnerRows | OwnerColumns
            if fit.schema is not None:
                rows = OwnerRows.of(
                    own.X, own.y, own.sample_weight, fit.schema, loss=fit.loss, bins=fit.bins, keys=own.keys
                )
            else:
                assert fit.columns is not None  # `FitTerms`
                if own.typed(numeric_target=fit.columns.target.kind == "numeric") != without_draft(fit.columns):
                    raise SchemaError("the columns of this owner have other names or types than the terms say")
                rows = OwnerColumns(own.X, own.y, fit.columns)
            self._read = key, rows
        return self._read[1]

    def _begun(self, request: Begin) -> Ready:
        hello = request.hello
        terms = hello.terms
        first = dataclasses.replace(request, schema=None)
        own = self._sessions.get(terms.session)
        if own is None or _goes_on(own.begin, first):
            own = self._new_session(first, own)
        elif pack(own.begin) != pack(first):
            raise FederationRefused("the session has begun, with other terms or other owners")
        if request.schema is not None:
            self._encode(own, request.schema)
        return Ready()

    def _new_session(self, request: Begin, known: _OpenSession | None) -> _OpenSession:
        """The session, or a later call of it, which goes on with what the process knows."""
        hello = request.hello
        terms = hello.terms
        self._policy.require(hello)
        keys = SessionKeys.derived(self._identity, terms.session)
        roster = Roster(session=terms.session, keys=request.keys, signatures=request.signatures)
        sums = ClientSums(
            terms=terms.sums, roster=roster, number=hello.number, keys=keys, registry=self._policy.registry
        )
        _require_joined(terms, roster)
        rows = self._rows_by(hello)
        self._account.join(_account_terms(terms))
        # A second roster, shown to a process that was started again, would have another owner's keys in it.
        self._account.fix(terms.session, "roster", roster.digest)
        # Coins go by the places of rows: another order of them, in another process, would be another sample.
        of = "rows" if isinstance(rows, OwnerRows) else "columns"
        label = of if hello.call == 1 else f"{of}-{hello.call}"
        self._account.fix(terms.session, label, rows.tag(self._identity + terms.session))
        own = _OpenSession(
            begin=request, rows=rows, sums=sums if known is None else known.sums,
            known=ReadValues() if known is None else known.known,
        )  # fmt: skip
        self._sessions[terms.session] = own
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return own

    def _encode(self, own: _OpenSession, schema: Schema) -> None:
        """Encode the rows by the schema that was estimated for them: one schema for all of a session.

        Raises:
            FederationRefused, LedgerError, SchemaError: another one than before, or one that is not of these columns.
        """
        terms, digest = own.terms, schema_digest(schema)
        if own.schema:
            if own.schema != digest:
                raise FederationRefused("this owner was told another estimated schema before in this session")
            return
        if not isinstance(own.rows, OwnerColumns):
            raise RoundViolation("the schema of this session is declared, and none is estimated")
        rows = own.rows.encoded(schema, loss=terms.fit.loss, bins=terms.fit.bins)
        # A second schema, told to a process that was started again, would be a second way to look at the rows.
        self._account.fix(terms.session, "schema", digest)
        self._account.fix(terms.session, "rows", rows.tag(self._identity + terms.session))
        own.rows, own.schema = rows, digest

    def _uploaded(self, request: Ask) -> Uploaded | NotTold:
        own = self._sessions.get(request.session)
        if own is None:
            return NotTold(known=-1)
        call = own.begin.hello.call
        if request.call > call:
            return NotTold(known=-1)  # this process missed the beginning of the call: its rows are of an earlier one
        if request.call < call:
            raise RoundViolation(f"the question is of call {request.call}, and this owner is in call {call}")
        if request.schema != own.schema:
            if request.schema and not own.schema:
                return NotTold(known=-1)  # another process of this owner was told it
            raise RoundViolation("the question is about rows by another schema than the one that this owner was told")
        if isinstance(own.rows, OwnerColumns) and self._account.fixed(request.session, "schema") is not None:
            raise RoundViolation("the columns of this session are not counted any more: the schema was told")
        if not own.known.learn(request.known, request.news):
            return NotTold(known=len(own.known))
        query, mechanism = unpack(request.packed, own.known)
        if isinstance(query, NamedStatistic):
            query = self._policy.trusted(query)
        question = OwnersQuestion(query=query, mechanism=mechanism, is_choice=request.is_choice, draw=request.draw)
        require_planned(own.terms.fit.event, request.draw.event)
        own.rows.require(question)
        if call > 1 and not isinstance(request.draw.event, FilteredEvent):
            raise RoundViolation("a later call of a stream draws nothing: it goes on with the rounds of its filter")
        release = self._release(own.terms, question)
        context = sum_context(own.terms, request.round, request.attempt, request.digest(own.known.digest))
        live = frozenset(request.live)
        _require_least(own.terms, request.round, live)
        answer = own.sums.answer(context, "upload", live)
        draw = request.draw
        asked = partial(
            own.rows.sums, question, self._coins(own, request), self._offset(own),
            noise=self._share(own, request, mechanism), whole=self._whole(own.terms),
        )  # fmt: skip
        paid = self._paid(own, question, release, asked) if isinstance(draw.event, FilteredEvent) else None
        self._account.answer(
            answer, session=own.terms.session, draw=draw.number, event=draw.event, release=release, group=draw.group,
            randomness="test" if own.terms.fit.seeded else "secure", charged=paid,
        )  # fmt: skip
        found = asked() if paid is None else paid.sums
        masked = own.sums.masked(context, live, found.reshape(-1).view(np.uint64), os.urandom(RANDOM_BYTES))
        return Uploaded(upload=masked, shape=found.shape)

    def _paid(
        self, own: _OpenSession, question: OwnersQuestion, release: Event, asked: Callable[..., Integers]
    ) -> PaidSums:
        charges, rows = RowCharges(question, release), own.rows
        if not isinstance(rows, OwnerRows):
            raise RoundViolation("rows are charged once their schema is known")
        if own.accounts is None:
            own.accounts = RowAccountsFile(self._account.path, own.terms.session.hex(), rows.n_rows, rows.keys)
        return PaidSums(charges=charges, file=own.accounts, asked=asked)

    def _release(self, terms: FederationTerms, question: OwnersQuestion) -> Event:
        """The event of a question's release, as the owner itself derives it from the query and its noise."""
        adjacency, query, mechanism = terms.fit.event.adjacency, question.query, question.mechanism
        if question.is_choice:
            if terms.noise == "clients":
                raise RoundViolation("a private choice shows the server exact sums: not under noise='clients'")
            choice: Event = query.event(mechanism, adjacency)
            return choice
        if type(mechanism) not in MECHANISMS:
            raise RoundViolation(f"{type(mechanism).__name__} is not a mechanism of this library")
        mechanism.require_fit(query.grid)
        release: Event = mechanism.event(query.sensitivity(adjacency), adjacency)
        return release

    def _coins(self, own: _OpenSession, request: Ask) -> RowCoins | None:
        draw, terms = request.draw, own.terms
        if terms.fit.seeded:
            if not draw.coins:
                return None
            return RowCoins.unsealed(draw.coins, own.begin.hello.secret, coin_purpose(terms.session, draw.number))
        # The same for each question of a draw, in every process of this owner, and known to nobody else.
        info = b"ledgerwood federation coins 1|" + terms.session + draw.number.to_bytes(8, "big")
        if isinstance(draw.event, FilteredEvent):  # each round has a sample of its own, the same in all attempts
            info += request.round.to_bytes(8, "big")
        return RowCoins(HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(self._identity))

    @staticmethod
    def _offset(own: _OpenSession) -> int:
        """The place of the first row among the coins of a draw: a server's in a run with a seed, and 0 in any other.

        One that the server says anew to a restarted process would give each row a second coin in the same draw.
        """
        return own.begin.offset if own.terms.fit.seeded else 0

    def _share(
        self, own: _OpenSession, request: Ask, mechanism: Any
    ) -> tuple[SkellamMechanism, SecureRandom | SeededRandom] | None:
        terms = own.terms
        if terms.noise == "server":
            return None
        if not isinstance(mechanism, SkellamMechanism):
            raise RoundViolation(f"{type(mechanism).__name__} is not noise that owners can add in shares")
        source: SecureRandom | SeededRandom = SecureRandom()
        if terms.fit.seeded:
            place = (request.round << 64) + (request.attempt << 32) + own.begin.hello.number
            source = SeededRandom(int.from_bytes(own.begin.hello.secret, "big") ^ (place << 256))
        return mechanism.share(terms.honest), source

    @staticmethod
    def _whole(terms: FederationTerms) -> Any:
        if terms.unit is PrivacyUnit.ROW:
            return None
        return terms.fit.event.adjacency, terms.rows_per_client

    def _opened(self, request: Survivors) -> Opened | Endorsed | NotTold:
        own = self._sessions.get(request.session)
        if own is None:
            return NotTold(known=-1)
        context = sum_context(own.terms, request.round, request.attempt, request.question)
        live, uploaded = frozenset(request.live), frozenset(request.uploaded)
        _require_least(own.terms, request.round, uploaded)
        answer = own.sums.answer(context, request.kind, live, uploaded)
        self._account.answer(answer, session=own.terms.session)
        if request.kind == "endorse":
            return Endorsed(signature=own.sums.endorsed(context, live, uploaded))
        signed = request.endorsements
        if request.kind == "recover":
            return Opened(opened=own.sums.pair_keys(context, live, uploaded, signed))
        return Opened(opened=own.sums.opened(context, live, uploaded, request.shares, signed))


def _goes_on(begun: Begin, request: Begin) -> bool:
    """Whether a request begins a later call of the same stream: all else is as before."""
    before, call = begun.hello, request.hello.call
    same = dataclasses.replace(request, hello=dataclasses.replace(request.hello, call=before.call), offset=begun.offset)
    return call > before.call and pack(same) == pack(begun)


def _require_joined(terms: FederationTerms, roster: Roster) -> None:
    """Refuse a session that too few owners have joined, before it is paid for.

    Raises:
        FederationRefused: so it is.
    """
    if len(roster.joined) < terms.least:
        raise FederationRefused(
            f"{len(roster.joined)} owners have joined, and at least {terms.least} have to: no round of this session "
            "could be unmasked"
        )


def _require_least(terms: FederationTerms, round_: int, owners: frozenset[int]) -> None:
    """Refuse a round of too few owners.

    Raises:
        RoundViolation: so it is.
    """
    if len(owners) < terms.least:
        raise RoundViolation(
            f"round {round_} has {len(owners)} owners left, and at least {terms.least} have to be: it is not unmasked"
        )


def _account_terms(terms: FederationTerms) -> SessionTerms:
    return SessionTerms(
        session=terms.session, plan=terms.digest, event=terms.fit.event, unit=terms.unit, server=terms.server,
        delta=terms.fit.delta, active=terms.sums.active,
    )  # fmt: skip
