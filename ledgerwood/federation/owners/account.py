"""The account of an owner of rows: what these rows took part in, on the disk before anything is sent.

docs/explanation/client-accounts.md says what it proves and to whom; docs/adr/0021-client-accounts.md is its format.
"""

import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget, PrivacyUnit
from ledgerwood.accounting.events import Event, FilteredEvent
from ledgerwood.accounting.events.base import require_event
from ledgerwood.accounting.filters import Filter, GDPFilter, RenyiFilter, ZCDPFilter
from ledgerwood.accounting.ledger import DrawEntry, Grant, GrantEntry, Ledger, Randomness
from ledgerwood.accounting.ledger.entries import RESUMABLE, require_randomness
from ledgerwood.curator.places.row_accounts import ChargedUpload
from ledgerwood.errors import DrawRefused, InvalidParameter, LedgerError, PrivacyError, RoundViolation
from ledgerwood.federation.owners.account_terms import SessionTerms, require_bytes
from ledgerwood.federation.owners.answers import AnswersFile, AskedRelease, SessionState
from ledgerwood.secure_aggregation import SumAnswer

_GRANT = re.compile(RESUMABLE + r"federation ([0-9a-f]{32}) plan ([0-9a-f]{64}) server (\S{1,64})")
_DRAW = re.compile(r"federation draw ([1-9][0-9]*)")
_LABEL = re.compile(r"[a-z][a-z0-9-]{0,31}")


@final
class ClientAccount:
    """The account of one owner of rows, on the owner's ledger: a file, and the answers file beside it.

    Any process may make one for the same files, and use it for one message: nothing is kept that is not in the files.
    Each call takes the lock of both, waits up to 30 s for another process, and leaves everything on the disk.

    Args:
        path: the path of the ledger's file; the answers are in a file of the same name with ".answers" at the end.
        dataset: as in `Ledger.open`, like all that follow.
        budget: needed for a new ledger.
        unit: needed for a new ledger.
        filter: for a new ledger.
        analyst: on whose share sessions are charged, where analysts share the ledger.

    Raises:
        InvalidParameter: a database, or a ledger that is open: the account needs a file.
    """

    __slots__ = ("_answers", "_arguments", "_drawn", "_grants", "_ledger", "_lock", "_owner", "_scanned", "path")

    def __init__(
        self,
        path: str | Path,
        *,
        dataset: str | None = None,
        budget: Budget | None = None,
        unit: PrivacyUnit | None = None,
        filter: Filter | None = None,  # noqa: A002
        analyst: str | None = None,
    ) -> None:
        if not isinstance(path, str | Path):
            raise _validate.fail(
                "ledger", type(path), "the path of a file, which every process opens for itself", "type"
            )
        if "://" in str(path):
            raise InvalidParameter(f"path={str(path)!r} must be a file: a client's account needs one (unit: path)")
        self.path = Path(path).absolute()
        self._arguments = (dataset, budget, unit, filter, analyst)
        self._lock = threading.Lock()
        self._forget()

    def could_join(self, terms: SessionTerms) -> None:
        """Refuse a session that the ledger would not grant; nothing is spent or reserved.

        Raises:
            BudgetExceeded, UnsupportedEvent, AdjacencyMismatch: as in `Ledger.grant`.
            LedgerError: another unit, or another plan or server under the same session, or the ledger cannot be used.
        """
        with self._turn() as ledger:
            self._require_joinable(ledger, terms)

    def join(self, terms: SessionTerms) -> None:
        """Charge the session's plan to the ledger, durably, once: the same terms again change nothing.

        Raises:
            BudgetExceeded, UnsupportedEvent, AdjacencyMismatch, LedgerError: as in `could_join`; nothing was spent.
            LedgerWriteFailed: the disk is full, say; nothing was spent.
        """
        name = terms.session.hex()
        with self._turn() as ledger:
            granted = self._require_joinable(ledger, terms)
            state = self._answers_file.session(name)
            if state is None:
                state = self._answers_file.join(name, active=terms.active)
            if not granted:
                ledger.grant(terms.event, purpose=terms.purpose, delta=_delta(ledger, terms), resumable=True)
            else:
                self._settled(ledger, name, state)

    def joined(self, session: bytes) -> SessionTerms | None:
        """The terms of a session that was joined; None for any other."""
        with self._turn() as ledger:
            name = session.hex()
            state = self._answers_file.session(name)
            if name not in self._grants or state is None:
                return None
            entry = self._grants[name]
            found = _GRANT.fullmatch(entry.purpose)
            assert found is not None
            return SessionTerms(
                session=session, plan=bytes.fromhex(found[2]), event=entry.event, unit=ledger.unit, server=found[3],
                delta=entry.charge.delta, active=state.book.active,
            )  # fmt: skip

    def fix(self, session: bytes, what: str, digest: bytes) -> None:
        """Record, durably, what stays the same for all of a session, such as the digest of its roster.

        Args:
            session: of `join`.
            what: a name of small letters, digits and hyphens.
            digest: 32 bytes.

        Raises:
            LedgerError: it was fixed as something else, or the session was not joined.
        """
        if not _LABEL.fullmatch(what):
            raise _validate.fail("what", what, "1 to 32 small letters, digits or hyphens", "name")
        require_bytes("digest", digest, 32)
        with self._turn() as ledger:
            name = session.hex()
            state = self._session(ledger, name)
            found = state.fixed.get(what)
            if found is None:
                self._answers_file.fix(name, what, digest.hex())
            elif found != digest.hex():
                raise LedgerError(
                    f"session {name} was told another {what} before ({found}, now {digest.hex()}): it stays the same "
                    "for a whole session; nothing is answered"
                )

    def fixed(self, session: bytes, what: str) -> bytes | None:
        """What `fix` has recorded under this name, by any process of this client; None where nothing was.

        Raises:
            LedgerError: the session was not joined.
        """
        with self._turn() as ledger:
            found = self._session(ledger, session.hex()).fixed.get(what)
            return None if found is None else bytes.fromhex(found)

    def answer(
        self,
        answer: SumAnswer,
        *,
        session: bytes,
        draw: int | None = None,
        event: Event | None = None,
        release: Event | None = None,
        group: int | None = None,
        randomness: Randomness = "secure",
        charged: Callable[[ChargedUpload], None] | None = None,
    ) -> None:
        """Record an answer; only after this returned it may be sent.

        The first answer in a draw takes the draw's event out of the session's grant, and the first one to a round's
        question takes the release's event out of the draw. Each of them is on the disk when this returns.

        Args:
            answer: what is about to be sent.
            session: of `join`.
            draw: of an upload, the number of the draw among the draws of the server's grant, from 1. The parts of a
                composition are draws of their own: this is the first one's number.
            event: of an upload, what is drawn.
            release: of an upload, the event of the sum that is released.
            group: of an upload, the group of a `Parallel`, from 0.
            randomness: the source of the noise.
            charged: of an upload under an individual filter, charges the rows and puts their accounts on the disk. It
                is called once all rules have been checked, and before the answer is recorded: so each answer on the
                disk has its charge there. No other process of this owner answers meanwhile.

        Raises:
            SumRefused: the answer is not allowed any more; nothing was recorded, as for all that follow but the last.
            RoundViolation: the round had another question, or its draw does not hold the release.
            DrawRefused: the session's plan does not hold the event.
            UnsupportedEvent: an event that no round is made of.
            LedgerError: the session was not joined, or the files are not the latest ones.
            LedgerWriteFailed: the disk is full, say; the answer must not be sent, and may count as given.
        """
        question = None
        if draw is not None or event is not None or release is not None:
            if draw is None or event is None or release is None:
                raise InvalidParameter("draw, event and release belong together: an upload needs all (unit: question)")
            require_event(event)
            require_event(release)
            question = AskedRelease(
                draw=_validate.count("draw", draw, "draws", minimum=1), event=event, release=release,
                group=None if group is None else _validate.count("group", group, "group's place", minimum=0),
                randomness=require_randomness(randomness),
            )  # fmt: skip
        name = session.hex()
        with self._turn() as ledger:
            state = self._session(ledger, name)
            _, new = state.proposed(answer, question)
            if new is not None and new.draw > state.covered:
                self._require_left(self._grant(ledger, name), new)
            if (question is not None and isinstance(question.event, FilteredEvent)) != (charged is not None):
                raise RoundViolation("rows are charged for an upload in the draw of a filtered event, and for no other")
            if charged is not None:
                assert question is not None  # above
                charged(
                    ChargedUpload(
                        session=name, draw=question.draw, round=answer.round, attempt=answer.attempt,
                        last=state.last_in(question.draw),
                    )
                )  # fmt: skip
            self._answers_file.answer(name, answer, new)
            self._settled(ledger, name, self._answers_file.sessions[name])

    def close(self) -> None:
        """Let go of the ledger's file; the next call opens it again."""
        with self._lock:
            self._drop()

    def __enter__(self) -> "ClientAccount":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        return _account, (str(self.path), *self._arguments)

    def __repr__(self) -> str:
        return f"ClientAccount({str(self.path)!r})"

    def _forget(self) -> None:
        self._ledger: Ledger | None = None
        self._answers: AnswersFile | None = None
        self._owner = 0
        self._scanned = 0  # entries of the ledger that were looked at
        self._grants: dict[str, GrantEntry] = {}  # of each session
        self._drawn: dict[int, list[int]] = {}  # the numbers of the draws out of each session's grant; -1: foreign

    def _drop(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
        self._forget()

    @property
    def _answers_file(self) -> AnswersFile:
        assert self._answers is not None
        return self._answers

    @contextmanager
    def _turn(self) -> Iterator[Ledger]:
        """Everything read, and nobody else writing."""
        with self._lock:
            if self._owner != os.getpid():
                self._drop()  # a forked process opens the files for itself
            try:
                if self._ledger is None:
                    dataset, budget, unit, filter_, analyst = self._arguments
                    self._ledger = Ledger.open(self.path, dataset, budget, unit, filter_, analyst=analyst, shared=True)
                    self._answers = AnswersFile(
                        self.path.with_name(self.path.name + ".answers"), self._ledger.entries[0].hash
                    )
                    self._owner = os.getpid()
                with self._answers_file.held():
                    self._scan(self._ledger)
                    yield self._ledger
            except BaseException as error:
                if isinstance(error, LedgerError) or not isinstance(error, PrivacyError):
                    self._drop()  # whatever is half done: the files are read again the next time
                raise

    def _scan(self, ledger: Ledger) -> None:
        """Look at the ledger's new entries."""
        entries = ledger.entries_since(self._scanned)
        for entry in entries:
            match entry:
                case GrantEntry() if found := _GRANT.fullmatch(entry.purpose):
                    if found[1] in self._grants:
                        raise LedgerError(
                            f"the ledger {self.path} has two grants of session {found[1]}, entries "
                            f"{self._grants[found[1]].index} and {entry.index}; nothing is answered"
                        )
                    self._grants[found[1]] = entry
                    self._drawn[entry.index] = []
                case DrawEntry() if entry.grant in self._drawn:
                    number = _DRAW.fullmatch(entry.purpose)
                    self._drawn[entry.grant].append(-1 if number is None else int(number[1]))
        self._scanned += len(entries)

    def _require_joinable(self, ledger: Ledger, terms: SessionTerms) -> bool:
        """Returns whether the ledger has granted these terms already."""
        if ledger.unit is not terms.unit:
            raise LedgerError(
                f"the session protects a {terms.unit.value} each, this client's ledger a {ledger.unit.value}: a ledger "
                "of the session's unit is needed"
            )
        name = terms.session.hex()
        state, entry = self._answers_file.session(name), self._grants.get(name)
        if state is not None and state.book.active != terms.active:
            raise LedgerError(f"session {name} was joined with active={state.book.active}, not {terms.active}")
        if entry is not None:
            if (entry.purpose, entry.event) != (RESUMABLE + terms.purpose, terms.event):
                raise LedgerError(
                    f"session {name} was joined for another plan or another server ({entry.purpose!r}); nothing is "
                    "answered. A server that changed its plan needs a new session"
                )
            return True
        if state is not None and state.question is not None:
            raise LedgerError(
                f"this client answered in session {name}, which its ledger {self.path} does not know: the ledger is an "
                "older copy. Restore the newest one"
            )
        ledger.require_room([terms.event], delta=_delta(ledger, terms))
        return False

    def _grant(self, ledger: Ledger, name: str) -> Grant:
        return ledger.resumed(self._grants[name].index)

    def _session(self, ledger: Ledger, name: str) -> SessionState:
        """What was answered in a session that was joined, in agreement with what the ledger has drawn."""
        state = self._answers_file.session(name)
        if name not in self._grants:
            raise LedgerError(f"session {name} was not joined: a server has to tell its plan first")
        if state is None:
            raise LedgerError(self._lost(name))
        self._settled(ledger, name, state)
        return state

    def _settled(self, ledger: Ledger, name: str, state: SessionState) -> None:
        """Draw what the last answer needs and the ledger does not have yet.

        Answers are recorded before their draws. So a process that was killed in between leaves an answer without its
        draws, and the next one makes them up. Any other difference means that one of the files is an older copy.
        """
        numbers = self._drawn[self._grants[name].index]
        question = state.question
        if question is None:
            if numbers:
                raise LedgerError(self._lost(name))
            return
        if numbers and numbers[-1] > state.covered:
            raise LedgerError(self._lost(name))
        done = len(numbers) - len(state.opened)
        if numbers != [*state.opened, *range(question.draw, question.draw + done)]:
            raise LedgerError(
                f"the ledger {self.path} and the answers beside it differ in the draws of session {name}: one of them "
                "is an older copy. Restore the newest one; nothing is answered"
            )
        if done == len(question.parts):
            return
        grant = self._grant(ledger, name)
        for place, part in enumerate(question.parts[done:], start=question.draw + done):
            grant.draw(part, purpose=f"federation draw {place}", randomness=question.randomness)
        self._scan(ledger)

    def _require_left(self, grant: Grant, question: AskedRelease) -> None:
        left = grant.remaining
        for part, count in Counter(question.parts).items():
            if left.get(part, 0) < count:
                raise DrawRefused(
                    f"draw {question.draw} needs {count} x {part!r}, of which the session's grant {grant.index} has "
                    f"{left.get(part, 0)} left: the server asks for more than the plan that was joined"
                )

    def _lost(self, name: str) -> str:
        return (
            f"the ledger {self.path} has draws of session {name} that the answers file beside it does not know: the "
            "answers file was lost, or is an older copy. Restore the newest one; nothing is answered in this session"
        )


def _account(
    path: str,
    dataset: str | None,
    budget: Budget | None,
    unit: PrivacyUnit | None,
    filter_: Filter | None,
    analyst: str | None,
) -> ClientAccount:
    """Make an account in another process."""
    return ClientAccount(path, dataset=dataset, budget=budget, unit=unit, filter=filter_, analyst=analyst)


def _delta(ledger: Ledger, terms: SessionTerms) -> float | None:
    return None if isinstance(ledger.filter, GDPFilter | ZCDPFilter | RenyiFilter) else terms.delta
