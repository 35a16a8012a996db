"""The answers file beside a client's ledger: what was answered, in which session, on the disk before it is sent.

The format is docs/adr/0021-client-accounts.md; why it is safe is docs/explanation/client-accounts.md#answers-file.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, final, get_args

from ledgerwood.accounting.events import Event, FilteredEvent, Parallel, PoissonSampled
from ledgerwood.accounting.events.serial import from_json, to_json
from ledgerwood.accounting.ledger import jsonl
from ledgerwood.accounting.ledger.entries import GENESIS, Randomness, canonical, digest, require_randomness
from ledgerwood.curator.rounds import group_ends, held_by, left_after, parts_of
from ledgerwood.errors import LedgerCorrupted, LedgerError, LedgerWriteFailed, PrivacyError, RoundViolation, SumRefused
from ledgerwood.secure_aggregation import AnswerBook, AnswerKind, SumAnswer

_WHAT = "the answers file"
_FORMAT = "ledgerwood answers, 1"
_KEYS = {
    "open": {"format", "ledger"},
    "session": {"active", "session"},
    "fixed": {"digest", "name", "session"},
    "answer": {"at", "draw", "event", "group", "live", "randomness", "release", "survivors"},
    "torn": {"at", "bytes"},
}
_COMMON = {"hash", "index", "previous", "what"}
_TORN = re.compile(rb'\{"at":\["([0-9a-f]{32})",([1-9]\d{0,18}),([1-9]\d{0,18}),"([a-z]+)"\]')
_NO_ANSWER = (b'{"active":', b'{"digest":')  # how lines begin that are certainly no answers
_EVER = 1 << 64
_BROKEN = (PrivacyError, ValueError, KeyError, TypeError, RecursionError)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRelease:
    """One question of a server: what is released, and out of which draw.

    Args:
        draw: the number of the draw among the draws of the server's grant, from 1; of several, the first.
        event: what is drawn.
        release: the event of the sum that is released; the draw has to hold it.
        group: the group of a `Parallel`, from 0; None for any other event.
        randomness: the source of the noise.
    """

    draw: int
    event: Event
    release: Event
    group: int | None = None
    randomness: Randomness = "secure"

    @property
    def parts(self) -> tuple[Event, ...]:
        """What the ledger draws for it, in order."""
        return tuple(parts_of(self.event))


@final
@dataclass(slots=True)
class SessionState:
    """What the lines so far have said of one session."""

    book: AnswerBook
    closed: tuple[int, int] = (0, 0)  # round and attempt, up to which nothing is answered any more
    question: AskedRelease | None = None  # of the last answer's round
    held: dict[int | None, Counter[Event]] = field(default_factory=dict)  # of the last draw, by group
    fixed: dict[str, str] = field(default_factory=dict)
    opened: list[int] = field(default_factory=list)  # the numbers of all draws before the last one

    @property
    def covered(self) -> int:
        """The last draw's number that an answer accounts for; 0 before any."""
        return 0 if self.question is None else self.question.draw + len(self.question.parts) - 1

    def last_in(self, draw: int) -> tuple[int, int] | None:
        """Round and attempt of the last answer in a draw; None where there is none."""
        last = self.book.last
        if last is None or self.question is None or self.question.draw != draw:
            return None
        return last.round, last.attempt

    def proposed(self, answer: SumAnswer, question: AskedRelease | None) -> "tuple[AnswerBook, AskedRelease | None]":
        """The book with the answer, and the question where the answer is the first one to it; nothing changes.

        Raises:
            SumRefused: the answer is not allowed any more.
            RoundViolation: the question is another one than before in this round, its draw is an older one, or does
                not hold the release.
            UnsupportedEvent: an event that no round is made of.
        """
        if (answer.round, answer.attempt) <= self.closed:
            raise SumRefused(
                f"{answer.kind} of round {answer.round}, attempt {answer.attempt} is refused: an answer was being "
                "recorded when its process was killed, and counts as given"
            )
        last = self.book.last
        book = self.book.after(answer)
        if last is not None and answer.round == last.round:
            if question is not None and question != self.question:
                raise RoundViolation(f"round {answer.round} had another question in an earlier attempt or exchange")
            return book, None
        if question is None:
            raise RoundViolation(f"round {answer.round} is new: its upload needs draw=, event= and release=")
        self._left(question)
        return book, question

    def take(self, book: AnswerBook, question: AskedRelease | None) -> None:
        """Take in what was proposed."""
        self.book = book
        if question is not None:
            left = self._left(question)
            if self.question is None or question.draw != self.question.draw:
                self.held = {}
                if self.question is not None:
                    self.opened += range(self.question.draw, self.covered + 1)
            self.held[question.group] = left
            self.question = question

    def _left(self, question: AskedRelease) -> Counter[Event]:
        """What the draw's group holds after this release."""
        last = self.question
        name = f"of draw {question.draw}"
        if last is not None and question.draw == last.draw:
            if question.event != last.event:
                raise RoundViolation(f"draw {question.draw} was of {last.event!r}, not of {question.event!r}")
            if question.group in self.held and not isinstance(question.event, FilteredEvent):
                return left_after(self.held[question.group], question.release, name)
        elif question.draw <= self.covered:
            raise RoundViolation(f"draw {question.draw} is over: this client answered in draw {self.covered} already")
        return left_after(_held(question), question.release, name)


def _held(question: AskedRelease) -> Counter[Event]:
    """The releases of a fresh draw, or of one of its groups; as the curator has them."""
    event = question.event
    if type(event) is Parallel:
        groups = len(group_ends(event))
        if question.group is None or not 0 <= question.group < groups:
            raise RoundViolation(f"group={question.group!r} must be one of 0..{groups - 1} of {event!r}")
        return held_by(event.events[question.group])
    if question.group is not None:
        raise RoundViolation(f"group={question.group!r}: {event!r} has no groups")
    if isinstance(event, FilteredEvent):  # any number of rounds, which rows pay for, each its own
        return held_by(event.release)
    return held_by(event.event if isinstance(event, PoissonSampled) else event)


@final
class AnswersFile:
    """The answers file: what it says, and one more line at a time.

    Args:
        path: its path; an empty file is made where there is none.
        ledger: the hash of the opening entry of the ledger that it stands beside.
    """

    __slots__ = ("_count", "_file", "_head", "_ledger", "_length", "_named", "_seen", "path", "sessions")

    def __init__(self, path: Path, ledger: str) -> None:
        self.path = path.absolute()
        self._ledger = ledger
        self._file: BinaryIO | None = None
        self._named = False  # whether the file's name is certainly on the disk
        self._forget()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the file's lock, everything in it read; others wait, up to 30 s.

        Raises:
            LedgerError: another process has kept it for too long, or it belongs to another ledger.
            LedgerCorrupted: names the first line that does not fit.
        """
        file = jsonl.hold(self.path, _WHAT, create=True, patience=jsonl.PATIENCE)
        assert file is not None
        self._file = file
        try:
            self._read_on(file)
            yield
        finally:
            self._file = None
            jsonl.unlock(file)
            file.close()

    def session(self, session: str) -> SessionState | None:
        """What the file says of a session, within `held`."""
        return self.sessions.get(session)

    def join(self, session: str, *, active: bool) -> SessionState:
        """Note a session, durably."""
        self._append({"what": "session", "session": session, "active": active})
        return self.sessions[session]

    def fix(self, session: str, name: str, value: str) -> None:
        """Note what stays the same for all of a session, durably."""
        self._append({"what": "fixed", "session": session, "name": name, "digest": value})

    def answer(self, session: str, answer: SumAnswer, question: AskedRelease | None) -> None:
        """Record an answer, durably; `question` is its round's where that is new.

        Raises:
            LedgerWriteFailed: it was not recorded, or counts as given all the same.
        """
        last = self.sessions[session].question
        same = question is not None and last is not None and question.draw == last.draw
        self._append(
            {
                "what": "answer",
                "at": [session, answer.round, answer.attempt, answer.kind],
                "live": answer.live,
                "survivors": answer.survivors,
                "draw": None if question is None else question.draw,
                "event": None if question is None or same else to_json(question.event),
                "group": None if question is None else question.group,
                "randomness": None if question is None else question.randomness,
                "release": None if question is None else to_json(question.release),
            }
        )

    def _forget(self) -> None:
        """Read from the start the next time."""
        self.sessions: dict[str, SessionState] = {}
        self._seen: os.stat_result | None = None  # of the file that was read up to `_length`
        self._length = self._count = 0
        self._head = GENESIS

    def _read_on(self, file: BinaryIO) -> None:
        """Take in the lines from where this object has read to; a last line that was cut short counts as an answer."""
        found, seen = os.fstat(file.fileno()), self._seen
        self._seen = None  # until all of it is taken in
        if seen is None or not os.path.samestat(found, seen) or found.st_size < self._length:
            self._forget()
            self._named = False
        file.seek(self._length)
        data = file.read()
        end = data.rfind(b"\n") + 1
        known: dict[str, Event] = {}
        for line in data[:end].split(b"\n")[:-1]:
            self._follow(line, known)
        tail = data[end:]
        if tail and (self._count == 0 or tail.startswith(_NO_ANSWER)):
            os.ftruncate(file.fileno(), self._length)
            jsonl._fsync(file.fileno())
        elif tail:
            self._repair(file, tail)
        if self._count == 0:
            self._append({"what": "open", "format": _FORMAT, "ledger": self._ledger})
        self._seen = found

    def _follow(self, line: bytes, known: dict[str, Event]) -> None:
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not a JSON object")
            body = {key: value for key, value in record.items() if key != "hash"}
            if set(record) != _KEYS[record["what"]] | _COMMON:
                raise ValueError(f"fields {sorted(record)}")
            if canonical(record).encode() != line or digest(canonical(body)) != record["hash"]:
                raise ValueError("it was altered")
            if (record["index"], record["previous"]) != (self._count, self._head):
                raise ValueError("it does not follow the line before it")
            self._apply(record, known)
        except _BROKEN as error:
            raise LedgerCorrupted(f"{_WHAT} {self.path}, line {self._count + 1}: {error}") from error
        self._length += len(line) + 1
        self._count += 1
        self._head = record["hash"]

    def _apply(self, record: dict[str, Any], known: dict[str, Event]) -> None:
        if (record["what"] == "open") != (self._count == 0):
            raise ValueError("a file has one opening, at its start")
        match record["what"]:
            case "open":
                if record["format"] != _FORMAT:
                    raise ValueError(f"format {record['format']!r} is not {_FORMAT!r}")
                if record["ledger"] != self._ledger:
                    raise ValueError("it belongs to another ledger: each ledger keeps its own answers")
            case "session":
                if record["session"] in self.sessions:
                    raise ValueError("a session twice")
                self.sessions[record["session"]] = SessionState(AnswerBook(active=record["active"]))
            case "fixed":
                fixed = self.sessions[record["session"]].fixed
                if fixed.setdefault(record["name"], record["digest"]) != record["digest"]:
                    raise ValueError(f"{record['name']} was fixed before")
            case "answer":
                session, round_, attempt, kind = record["at"]
                state = self.sessions[session]
                answer = SumAnswer(
                    round=round_, attempt=attempt, kind=kind, live=record["live"], survivors=record["survivors"]
                )
                state.take(*state.proposed(answer, _question(record, state.question, known)))
            case "torn":
                self._close(record["at"])

    def _close(self, at: list[Any] | None) -> None:
        """Answer nothing more of what was being answered: of its attempt; where that is unknown, of any session."""
        if at is None:
            for state in self.sessions.values():
                state.closed = (_EVER, _EVER)
            return
        session, round_, attempt, kind = at
        state = self.sessions[session]
        state.closed = max(state.closed, (round_, _EVER if kind == "unmask" else attempt))

    def _repair(self, file: BinaryIO, tail: bytes) -> None:
        """Put a line in the place of one that was cut short, in one write: whatever it said counts as answered."""
        found, at = _TORN.match(tail), None
        if found is not None:
            session, round_, attempt, kind = (text.decode() for text in found.groups())
            if session in self.sessions and kind in get_args(AnswerKind):
                at = [session, int(round_), int(attempt), kind]
        line = self._line({"what": "torn", "at": at, "bytes": len(tail)})
        handle = os.open(self.path, os.O_WRONLY)  # the lock's own handle can only append
        try:
            if not os.path.samestat(os.fstat(handle), os.fstat(file.fileno())):
                raise LedgerError(f"{_WHAT} {self.path} was replaced while it was held; nothing was changed")
            if os.pwrite(handle, line, self._length) != len(line):
                raise LedgerWriteFailed(0, f"{_WHAT} {self.path} could not be repaired: its disk is full")
            os.ftruncate(handle, self._length + len(line))
            jsonl._fsync(handle)
        except OSError as error:
            raise LedgerWriteFailed(error.errno or 0, f"{_WHAT} {self.path}: {error.strerror}") from error
        finally:
            os.close(handle)
        self._follow(line[:-1], {})

    def _append(self, fields: dict[str, object]) -> None:
        """Write a line and wait until it is on the disk.

        Raises:
            LedgerWriteFailed: it was not recorded, or counts as given all the same.
        """
        file = self._file
        if file is None:
            raise LedgerError(f"{_WHAT} {self.path} is written to only while it is held")
        line = self._line(fields)
        try:
            jsonl._write_all(file, line)
            jsonl._fsync(file.fileno())
            if not self._named:
                jsonl.sync_folder(self.path.parent)
                self._named = True
            if not jsonl.is_at(file, self.path):
                raise LedgerError(f"{_WHAT} {self.path} was moved, removed or replaced; nothing is answered")
        except BaseException as error:
            with suppress(OSError):  # what is left of the line then counts as an answer
                os.ftruncate(file.fileno(), self._length)
                jsonl._fsync(file.fileno())
            self._forget()
            if isinstance(error, OSError) and not isinstance(error, PrivacyError):
                raise LedgerWriteFailed(
                    error.errno or 0, f"nothing was answered: {_WHAT} {self.path} cannot be written: {error.strerror}"
                ) from error
            raise
        self._follow(line[:-1], {})

    def _line(self, fields: dict[str, object]) -> bytes:
        body = {**fields, "index": self._count, "previous": self._head}
        return canonical({**body, "hash": digest(canonical(body))}).encode() + b"\n"


def _question(record: dict[str, Any], last: AskedRelease | None, known: dict[str, Event]) -> AskedRelease | None:
    """The question that a line states, if it is its round's first."""
    if record["draw"] is None:
        if any(record[key] is not None for key in ("event", "group", "randomness", "release")):
            raise ValueError("a question without a draw")
        return None
    if record["event"] is not None:
        event = _event(record["event"], known)
    elif last is not None and last.draw == record["draw"]:
        event = last.event
    else:
        raise ValueError("a new draw without its event")
    return AskedRelease(
        draw=record["draw"], event=event, release=_event(record["release"], known), group=record["group"],
        randomness=require_randomness(record["randomness"]),
    )  # fmt: skip


def _event(record: Any, known: dict[str, Event]) -> Event:
    text = canonical(record)
    if text not in known:
        known[text] = from_json(record)
    return known[text]
