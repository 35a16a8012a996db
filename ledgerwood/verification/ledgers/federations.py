"""Compare the ledger of a federation's server with those of its clients, session by session and draw by draw.

docs/explanation/client-accounts.md#client-accounts-agree. No code here is shared with the accounts that it checks.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from ledgerwood.accounting.ledger import LedgerRecord
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError
from ledgerwood.pages.shown import Card, ShowsItself
from ledgerwood.verification.ledgers.answers import AnswersFound, read_answers
from ledgerwood.verification.ledgers.filters import VERDICTS, GrantVerdict, Verdict
from ledgerwood.verification.ledgers.reports import LedgerReport
from ledgerwood.verification.ledgers.signatures import check_signature, read_signature
from ledgerwood.verification.ledgers.verifying import checked

_SERVERS = re.compile(r"(?:^|[^0-9A-Za-z])federation ([0-9a-f]{32})(?![0-9A-Za-z])")
_CLIENTS = re.compile(r"resumable: federation ([0-9a-f]{32}) plan ([0-9a-f]{64}) server (\S{1,64})")
_DRAW = re.compile(r"federation draw ([1-9][0-9]{0,17})")
_OF_ALL = ("roster", "schema")
"""What all clients of a session are told alike."""
_Told = dict[tuple[str, str], tuple[str, str]]
"""By session and name: the client that was told first, and the digest."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SessionVerdict(ShowsItself):
    """What was found of one session of a client.

    Args:
        session: its name, 32 hexadecimal digits.
        verdict: "confirmed": plan and draws are the server's. "refuted": they differ. "unconfirmed": this was not
            looked at.
        reason: what differs, or why it was not looked at; empty where it is confirmed.
        server: the name or the fingerprint of the server, as the client recorded it.
        draws: how many draws the client took part in.
        missed: the numbers of the server's draws that it did not take part in, from 1: it dropped out, or its ledger
            was cut off at its end.
        answers: how many answers the file beside the ledger has for it; None where that was not looked at.
    """

    session: str
    verdict: Verdict
    reason: str
    server: str
    draws: int
    missed: tuple[int, ...]
    answers: int | None

    def _card(self) -> Card:
        return Card(
            title=f"Session {self.session}: {self.verdict}",
            facts=(
                ("server", self.server),
                ("draws, missed", f"{self.draws:,}, {len(self.missed):,}"),
                ("answers", self.answers),
                ("reason", self.reason or None),
            ),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientVerdict(ShowsItself):
    """What was found of a client's ledger.

    Args:
        client: the ledger's path, or its place among the clients.
        ledger: its own verification.
        sessions: the sessions in it, in order.
        notes: what was not looked at.
    """

    client: str
    ledger: LedgerReport
    sessions: tuple[SessionVerdict, ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of the ledger and of all sessions."""
        return _worst([self.ledger.verdict, *(each.verdict for each in self.sessions)])

    def _card(self) -> Card:
        return Card(
            title=f"Client {self.client}: {self.verdict}",
            facts=(("its ledger", f"{self.ledger.verdict}, head {self.ledger.head}"), ("sessions", len(self.sessions))),
            notes=tuple(f"not looked at: {note}" for note in self.notes),
            header=("session", "verdict", "draws", "missed", "reason"),
            rows=tuple(
                (one.session, one.verdict, f"{one.draws:,}", f"{len(one.missed):,}", one.reason)
                for one in self.sessions
            ),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FederationReport(ShowsItself):
    """The result of comparing a server's ledger with clients' ledgers.

    Args:
        server: the verification of the server's ledger.
        clients: of each client, in the order in which they were given.
        notes: what was not looked at.
    """

    server: LedgerReport
    clients: tuple[ClientVerdict, ...]
    notes: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of the server's ledger and of all clients."""
        return _worst([self.server.verdict, *(each.verdict for each in self.clients)])

    @property
    def differences(self) -> tuple[str, ...]:
        """What is refuted, in words, with the name of the ledger."""
        found = [] if self.server.verdict != "refuted" else ["the server's ledger: a charge is refuted"]
        for each in self.clients:
            if each.ledger.verdict == "refuted":
                found.append(f"{each.client}: a charge is refuted")
            found += [
                f"{each.client}, session {one.session}: {one.reason}"
                for one in each.sessions
                if one.verdict == "refuted"
            ]
        return tuple(found)

    def _card(self) -> Card:
        sessions = [(each, one) for each in self.clients for one in each.sessions]
        return Card(
            title=f"Federation {self.verdict}: a server and {len(self.clients):,} clients",
            facts=(
                ("server's ledger", f"{self.server.verdict}, {self.server.grants:,} grants, head {self.server.head}"),
                ("sessions", len(sessions)),
            ),
            notes=(*self.differences[:8], *(f"not compared: {note}" for note in self.notes[:8])),
            header=("client", "its ledger", "session", "verdict", "draws", "missed", "reason"),
            rows=tuple(
                (each.client, each.ledger.verdict, one.session, one.verdict, f"{one.draws:,}", f"{len(one.missed):,}",
                 one.reason)
                for each, one in sessions
            ),
        )  # fmt: skip


@dataclass(slots=True, kw_only=True)
class _Session:
    """One session in one ledger, as its entries say."""

    grants: list[dict[str, Any]]
    draws: list[dict[str, Any]]
    server: str = ""


def verify_federation(
    server: str | Path | LedgerRecord,
    clients: Sequence[str | Path | LedgerRecord],
    *,
    dataset: str | None = None,
    head: str | None = None,
    signature: str | Path | None = None,
    public_key: str | Path | None = None,
) -> FederationReport:
    """Verify the ledgers of a federation's server and of its clients, and compare them.

    Each ledger is verified as `verify_ledger` does it. A client's session must be one of the server's ledger, with the
    same plan. Each of the client's draws must be the server's draw of the same number, in the same order, and none
    twice. A client need not have all of the server's draws: those that it missed are in the report. If the answers file
    is beside a client's ledger, its chain is checked, that it agrees with the draws, and that all clients of a session
    were told the same keys of all, and the same estimated schema.

    Look at `verdict`: it is "unconfirmed" where something could not be looked at, such as a session with another
    server. Clients that were not given are not looked at, and no ledger says how many there were.

    Args:
        server: a ledger file, the URL of a ledger database (extra: sql), or a record.
        clients: of each client, a ledger file or a record; at least one.
        dataset: of the server's ledger, like all that follow; as in `verify_ledger`.
        head: the hash that the last entry must have.
        signature: a file that `sign_ledger` wrote.
        public_key: PEM file of the key that the signature must be of.

    Raises:
        LedgerCorrupted: a ledger or an answers file is not in order, or a charge is refuted, or the ledgers differ:
            names the ledger and the session. In the last two cases it carries the report in `federation`.
        LedgerError: a ledger cannot be read.
        InvalidParameter: no clients, a client's file twice, or a signature without a key.
    """
    report = compared(server, clients, dataset=dataset, head=head, signature=signature, public_key=public_key)
    if report.verdict == "refuted":
        raise LedgerCorrupted("; ".join(report.differences), federation=report)
    return report


def compared(
    server: str | Path | LedgerRecord,
    clients: Sequence[str | Path | LedgerRecord],
    *,
    dataset: str | None = None,
    head: str | None = None,
    signature: str | Path | None = None,
    public_key: str | Path | None = None,
) -> FederationReport:
    """Returns the report of `verify_federation`, also where it is refuted."""
    if isinstance(clients, str | Path | LedgerRecord) or not clients:
        raise InvalidParameter(f"clients={clients!r} must be a list of at least one client's ledger (unit: ledgers)")
    names = [str(each) if isinstance(each, str | Path) else f"client {at}" for at, each in enumerate(clients)]
    files = [Path(each).resolve() for each in clients if isinstance(each, str | Path)]
    if len(set(files)) < len(files):
        raise InvalidParameter(f"clients={names} name a file twice: each client has its own (unit: ledgers)")
    known: dict[str, GrantVerdict] = {}
    lines, own = _verified("the server's ledger", server, dataset, head, known)
    if (signature is None) != (public_key is None):
        raise InvalidParameter("signature and public_key must be given together (unit: files)")
    if signature is not None and public_key is not None:
        check_signature(lines, read_signature(signature), public_key)
    sessions = _sessions(lines, _SERVERS)
    told: _Told = {}
    found = tuple(_client(name, each, sessions, own, known, told) for name, each in zip(names, clients, strict=True))
    met = {one.session for each in found for one in each.sessions}
    notes = [f"session {name} of the server's ledger has no client here" for name in sessions if name not in met]
    if other := sum(json.loads(line)["kind"] == "grant" for line in lines) - sum(
        len(each.grants) for each in sessions.values()
    ):
        notes.append(f"{other} grants of the server's ledger are of no federation, and were compared with nothing")
    notes.append("clients that were not given were not looked at; no ledger says how many there were")
    return FederationReport(server=own, clients=found, notes=tuple(notes))


def _client(
    name: str,
    place: str | Path | LedgerRecord,
    sessions: dict[str, _Session],
    own: LedgerReport,
    known: dict[str, GrantVerdict],
    told: _Told,
) -> ClientVerdict:
    lines, report = _verified(name, place, None, None, known)
    mine = _sessions(lines, _CLIENTS)
    answers, notes = _answers(name, place, json.loads(lines[0])["hash"])
    servers = {each.server for session, each in mine.items() if session in sessions}
    verdicts = []
    for session, each in mine.items():
        kept = None if answers is None else answers.get(session, AnswersFound())
        missed: tuple[int, ...] = ()
        if session in sessions:
            verdict, reason, missed = _compared(sessions[session], each, own, report)
            if verdict == "confirmed" and kept is not None:
                differs = _unanswered(each, kept) or _told_otherwise(name, session, kept, told)
                if differs:
                    verdict, reason = "refuted", differs
        elif each.server in servers or not servers:
            verdict, reason = "refuted", "the server's ledger has no such session"
        else:
            verdict, reason = "unconfirmed", f"a session with another server, {each.server!r}: give that one's ledger"
        verdicts.append(
            SessionVerdict(
                session=session, verdict=verdict, reason=reason, server=each.server, draws=len(each.draws),
                missed=missed, answers=None if kept is None else kept.count,
            )
        )  # fmt: skip
    for session, kept in (answers or {}).items():
        if session not in mine and kept.count:
            verdicts.append(
                SessionVerdict(
                    session=session, verdict="refuted", reason="answered without a grant in the client's ledger",
                    server="", draws=0, missed=(), answers=kept.count,
                )
            )  # fmt: skip
    if not mine:
        verdicts.append(
            SessionVerdict(
                session="none", verdict="refuted", reason="the ledger has no session of a federation", server="",
                draws=0, missed=(), answers=None,
            )
        )  # fmt: skip
    if any("FilteredEvent" in _text(entry["event"]) for each in mine.values() for entry in each.draws):
        notes += ("what single rows paid under an individual filter was not looked at: the client alone has it",)
    if report.randomness != own.randomness:
        notes += (f"its draws are marked {report.randomness!r}, the server's {own.randomness!r}",)
    return ClientVerdict(client=name, ledger=report, sessions=tuple(verdicts), notes=notes)


def _compared(
    theirs: _Session, mine: _Session, own: LedgerReport, report: LedgerReport
) -> tuple[Verdict, str, tuple[int, ...]]:
    """The verdict, what differs first, and the numbers of the draws that the client missed."""
    if len(theirs.grants) != 1 or len(mine.grants) != 1:
        return "refuted", f"{len(theirs.grants)} grants at the server, {len(mine.grants)} at the client: one each", ()
    if own.unit != report.unit:
        return "refuted", f"the server protects a {own.unit} each, the client's ledger a {report.unit}", ()
    if _text(theirs.grants[0]["event"]) != _text(mine.grants[0]["event"]):
        return "refuted", "the client granted another plan than the server", ()
    last, seen = 0, set()
    for entry in mine.draws:
        found = _DRAW.fullmatch(entry["purpose"])
        if found is None:
            return "refuted", f"entry {entry['index']} is a draw without a number: {entry['purpose']!r}", ()
        number = int(found[1])
        if number in seen:
            return "refuted", f"the client drew number {number} twice", ()
        if number < last:
            return "refuted", f"the client drew number {number} after number {last}", ()
        if number > len(theirs.draws):
            return "refuted", f"the client drew number {number}; the server's ledger has {len(theirs.draws)} draws", ()
        if _text(theirs.draws[number - 1]["event"]) != _text(entry["event"]):
            return "refuted", f"draw {number} is of another event at the client than at the server", ()
        last = number
        seen.add(number)
    return "confirmed", "", tuple(number for number in range(1, len(theirs.draws) + 1) if number not in seen)


def _unanswered(mine: _Session, kept: AnswersFound) -> str:
    """What differs between a client's draws and the answers beside them; empty if nothing does."""
    numbers: list[int] = [int(entry["purpose"].rsplit(" ", 1)[1]) for entry in mine.draws]
    if stray := [number for number in numbers if number not in kept.parts]:
        return f"draw {stray[0]} has no answer in the answers file: one of the two files is older, or was altered"
    for entry, number in zip(mine.draws, numbers, strict=True):
        if kept.parts[number] != _text(entry["event"]):
            return f"draw {number} is of another event in the answers file than in the client's ledger"
    # The last answer's draws are made after it; a client that was killed in between may lack them.
    if lost := [number for number in kept.parts if number not in set(numbers) and number < kept.last]:
        return f"draw {lost[0]} was answered, and the client's ledger lacks it: its end was cut off, or it is older"
    return ""


def _told_otherwise(name: str, session: str, kept: AnswersFound, told: _Told) -> str:
    """What this client was told that an earlier one was told differently; empty if nothing."""
    for what in _OF_ALL:
        if what in kept.fixed:
            first, digest = told.setdefault((session, what), (name, kept.fixed[what]))
            if digest != kept.fixed[what]:
                return f"it was told another {what} than {first}"
    return ""


def _answers(
    name: str, place: str | Path | LedgerRecord, opening: str
) -> tuple[dict[str, AnswersFound] | None, tuple[str, ...]]:
    """What the file beside a client's ledger says of each session; None, and a note, where it was not looked at."""
    if isinstance(place, LedgerRecord) or "://" in str(place):
        return None, ("its answers were not looked at: no file is beside a record or a database",)
    path = Path(f"{place}.answers")
    if not path.is_file():
        return None, (f"its answers were not looked at: there is no file {path}",)
    try:
        return read_answers(path, opening), ()
    except LedgerCorrupted as error:
        raise LedgerCorrupted(f"{name}: {error}") from error


def _sessions(lines: Sequence[str], pattern: re.Pattern[str]) -> dict[str, _Session]:
    """The sessions of a verified ledger, by name, in order."""
    found: dict[str, _Session] = {}
    of_grant: dict[int, _Session] = {}
    for line in lines:
        entry = json.loads(line)
        if entry["kind"] == "grant":
            named = pattern.fullmatch(entry["purpose"]) if pattern is _CLIENTS else pattern.search(entry["purpose"])
            if named is None:
                continue
            session = found.setdefault(named[1], _Session(grants=[], draws=[]))
            session.grants.append(entry)
            session.server = named[3] if pattern is _CLIENTS else ""
            of_grant[entry["index"]] = session
        elif entry["kind"] == "draw" and entry["grant"] in of_grant:
            of_grant[entry["grant"]].draws.append(entry)
    return found


def _verified(
    name: str, place: str | Path | LedgerRecord, dataset: str | None, head: str | None, known: dict[str, GrantVerdict]
) -> tuple[list[str], LedgerReport]:
    """Lines and report of a ledger, of one with a refuted charge, too; errors name it."""
    try:
        lines, report = checked(place, dataset, head, refute=False, known=known)
    except LedgerCorrupted as error:
        raise LedgerCorrupted(f"{name}: {error}") from error
    except LedgerError as error:
        raise LedgerError(f"{name}: {error}") from error
    if report.trusted:
        raise LedgerError(f"{name}: begins with a checkpoint; sessions are compared from a ledger's first entry on")
    return lines, report


def _text(event: object) -> str:
    return json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _worst(verdicts: list[Verdict]) -> Verdict:
    return min(verdicts, key=VERDICTS.index)
