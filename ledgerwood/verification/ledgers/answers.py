"""Read the answers file beside a client's ledger as a stranger would: its chain, its order, its draws and releases.

docs/adr/0021-client-accounts.md has the format. No code here is shared with the account that wrote it.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from ledgerwood.errors import LedgerCorrupted, LedgerError
from ledgerwood.verification.ledgers.pairs.records import draws

_FORMAT = "ledgerwood answers, 1"
_KEYS = {
    "open": {"format", "ledger"},
    "session": {"active", "session"},
    "fixed": {"digest", "name", "session"},
    "answer": {"at", "draw", "event", "group", "live", "randomness", "release", "survivors"},
    "torn": {"at", "bytes"},
}
_COMMON = {"hash", "index", "previous", "what"}
_KINDS = ("upload", "endorse", "recover", "unmask")
_MOST_PARTS = 1_000_000  # draws that one answer may open; more are not looked at, and refused
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError, ArithmeticError)


@final
@dataclass(slots=True, kw_only=True)
class AnswersFound:
    """What the file says of one session.

    Args:
        count: answers.
        parts: the event of each draw that was answered, canonical text by number.
        last: the number of the last answered draw; the first, of several that were opened at once.
        order: round, attempt and kind of the last answer.
        event: what the last draw opened.
        held: what is left to release, of each group of it.
        fixed: digests of what stays the same for all of a session, by name.
    """

    count: int = 0
    parts: dict[int, str] = field(default_factory=dict)
    last: int = 0
    order: tuple[int, int, int] = (0, 0, 0)
    event: Any = None
    held: dict[int | None, Counter[str]] = field(default_factory=dict)
    fixed: dict[str, str] = field(default_factory=dict)


def read_answers(path: Path, opening: str) -> dict[str, AnswersFound]:
    """The sessions of an answers file, each with its draws; its chain and its order checked.

    Args:
        path: of the file.
        opening: the hash of the first entry of the ledger that it belongs to.

    Raises:
        LedgerCorrupted: names the first line that is not in order.
        LedgerError: it cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LedgerError(f"the answers file {path} cannot be read: {error}") from error
    pieces = data.split(b"\n")
    sessions: dict[str, AnswersFound] = {}
    previous = "0" * 64
    for index, line in enumerate(pieces[:-1]):
        try:
            record = _record(line, index, previous)
            _take(record, sessions, opening)
        except _MALFORMED as error:
            raise LedgerCorrupted(f"the answers file {path}, line {index + 1}: {error}") from error
        previous = record["hash"]
    if pieces[-1] or len(pieces) == 1:
        raise LedgerCorrupted(
            f"the answers file {path}, line {len(pieces)}: it is cut short; the client's next use of it counts it as "
            "an answer"
        )
    return sessions


def _record(line: bytes, index: int, previous: str) -> dict[str, Any]:
    found: object = json.loads(line)
    if not isinstance(found, dict) or found.get("what") not in _KEYS:
        raise ValueError("not a line of an answers file")
    record: dict[str, Any] = found
    _require(set(record) == _KEYS[record["what"]] | _COMMON, f"fields {sorted(record)}")
    _require(_text(record).encode() == line, "not in canonical form")
    body = {key: value for key, value in record.items() if key != "hash"}
    _require(hashlib.sha256(_text(body).encode()).hexdigest() == record["hash"], "its hash does not match")
    _require(type(record["index"]) is int and record["index"] == index, f"it says that it is line {record['index']!r}")
    _require(record["previous"] == previous, "it does not follow the line before it")
    _require((record["what"] == "open") == (index == 0), "a file has one opening, at its start")
    return record


def _take(record: dict[str, Any], sessions: dict[str, AnswersFound], opening: str) -> None:
    match record["what"]:
        case "open":
            _require(record["format"] == _FORMAT, f"its format is {record['format']!r}, not {_FORMAT!r}")
            _require(record["ledger"] == opening, "it belongs to another ledger")
        case "session":
            _require(record["session"] not in sessions, "a session twice")
            sessions[record["session"]] = AnswersFound()
        case "fixed":
            _require(record["session"] in sessions, "a session that was not joined")
            fixed = sessions[record["session"]].fixed.setdefault(record["name"], record["digest"])
            _require(fixed == record["digest"], f"another {record['name']} than before in one session")
        case "answer":
            session, round_, attempt, kind = record["at"]
            _require(session in sessions and kind in _KINDS, "an answer in no session, or of an unknown kind")
            _answer(sessions[session], (round_, attempt, _KINDS.index(kind)), record)


def _answer(found: AnswersFound, order: tuple[int, int, int], record: dict[str, Any]) -> None:
    round_, attempt, kind = order
    _require(type(round_) is int and type(attempt) is int and min(round_, attempt) > 0, "not a round and an attempt")
    _require(order > found.order, "an answer that was given before, or of an older round or attempt")
    unmask = len(_KINDS) - 1
    _require(not (found.order[0] == round_ and found.order[2] == unmask), "a round goes on after it was unmasked")
    _require((found.order[:2] == order[:2]) == (kind > 0), "an attempt that does not begin with an upload")
    _require((found.order[0] != round_) == (record["draw"] is not None), "a round states its release once, at first")
    if record["draw"] is not None:
        _release(found, record)
    found.order = order
    found.count += 1


def _release(found: AnswersFound, record: dict[str, Any]) -> None:
    """Take a round's release out of its draw, opening that if it is new."""
    draw, group = record["draw"], record["group"]
    _require(type(draw) is int and (group is None or (type(group) is int and group >= 0)), "no number of a draw")
    if record["event"] is not None:
        _require(draw > max(found.parts, default=0), "a draw that was opened before")
        for number, part in enumerate(_flat(record["event"]), start=draw):
            _require(number - draw < _MOST_PARTS, "more parts in a draw than are looked at")
            found.parts[number] = _text(part)
        found.last, found.event, found.held = draw, record["event"], {}
    _require(draw == found.last, "a draw that was not opened")
    # The rounds of a filtered event are any number: each row of the client pays for itself.
    if group not in found.held or found.event["type"] == "FilteredEvent":
        found.held[group] = _counted(_inside(found.event, group))
    wanted = _counted(record["release"])
    _require(wanted <= found.held[group], "a release that its draw does not hold, or no longer does")
    found.held[group] = found.held[group] - wanted


def _inside(event: Any, group: int | None) -> Any:
    """What one round of a draw may release."""
    if group is not None:
        _require(event["type"] == "Parallel" and group < len(event["events"]), "a group of an event without it")
        return event["events"][group]
    _require(event["type"] != "Parallel", "a draw of groups without a group")
    if event["type"] == "FilteredEvent":
        event = event["event"]
    return event["event"] if event["type"] == "PoissonSampled" else event


def _counted(event: Any) -> Counter[str]:
    held: Counter[str] = Counter()
    for part, count in draws(event):
        held[_text(part)] += count
    return held


def _flat(event: Any) -> Iterator[Any]:
    """The draws that an event is made of, one by one, in order."""
    if event["type"] == "Composed":
        for member in event["events"]:
            yield from _flat(member)
    elif event["type"] == "Repeated":
        for _ in range(event["count"]):
            yield from _flat(event["event"])
    else:
        yield event


def _text(record: object) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)
