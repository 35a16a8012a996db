"""The entries of a ledger, and the one line of canonical JSON that each of them is.

The format is docs/adr/0004-ledger-file-format.md and docs/adr/0008-migrations.md.
"""

import datetime as dt
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeVar, final, get_args

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.serial import from_json, to_json
from ledgerwood.accounting.filters import Charge, Filter, filter_from, filter_record, sums_of
from ledgerwood.accounting.quotes import Route
from ledgerwood.errors import LedgerCorrupted

Version = Literal[1, 2, 3, 4]
"""Of an entry's format; 2 is that of a budget which analysts share, 3 that of a ledger which says whose it is, shared
or not, 4 that of one with a checkpoint. It rises at a `MigrationEntry` or a `CheckpointEntry`, and never falls."""

GENESIS = "0" * 64
ON_TRUST = "Ledger.open(..., from_checkpoint=True) takes the word of whoever wrote it for them"
"""What a refusal of a ledger that begins with a checkpoint offers; a command line has other words for it."""
_AMOUNTS = frozenset({"epsilon", "delta", "mu", "rho", "divergence"})
_EXACT = re.compile(r"[0-9]{1,1400}(/[0-9]{1,1400})?", re.ASCII)
_LONGEST_PURPOSE, _LONGEST_DESCRIPTION = 200, 1000
RESUMABLE = "resumable: "
"""How the purpose of a grant begins whose every draw is durable, so that a later process may draw the rest of it."""

CHECKPOINT = b'"kind":"checkpoint"'
"""A text that the line of a checkpoint has, and no other line: a quote inside a purpose or a label is escaped."""

Randomness = Literal["secure", "test"]
"""The source of the noise; "test" is reproducible and protects nobody."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAbout:
    """Who answers for a ledger, and for what; public texts, as the person who opened it gave them.

    Args:
        owner: who answers for it; printable text of one line, at most 200 characters.
        description: its purpose; printable text of one line, at most 1,000 characters.
        opened: the day of its opening, ISO 8601. It is as true as its writer: no clock was read.

    Raises:
        InvalidParameter: a value outside its bound, or all three None.
    """

    owner: str | None = None
    description: str | None = None
    opened: str | None = None

    def __post_init__(self) -> None:
        if self.owner is not None:
            require_label("owner", self.owner)
        if self.description is not None:
            require_label("description", self.description, most=_LONGEST_DESCRIPTION)
        if self.opened is not None:
            _require_day(self.opened)
        if (self.owner, self.description, self.opened) == (None, None, None):
            raise _validate.fail("owner", None, "given, or description or opened", "text")

    @property
    def record(self) -> dict[str, str | None]:
        """The fields as the ledger's line has them."""
        return {"owner": self.owner, "description": self.description, "opened": self.opened}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEntry:
    """The first entry: the terms. `dataset` is a public label, never derived from data.

    `analysts` are labels in order, each with its share of the budget in (0, 1]; without any, anyone spends all of it.
    `about` says who answers for the ledger, from version 3 on.
    """

    index: int
    previous: str
    hash: str
    budget: Budget
    unit: PrivacyUnit
    filter: Filter
    dataset: str | None
    analysts: tuple[tuple[str, float], ...] = ()
    about: LedgerAbout | None = None
    version: Version = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GrantEntry:
    """A plan that was charged and granted, to `analyst` if analysts share the budget."""

    index: int
    previous: str
    hash: str
    event: Event
    charge: Charge
    purpose: str
    analyst: str | None = None
    version: Version = 1

    @property
    def resumable(self) -> bool:
        """Whether a later process may draw the rest: then no draw is acknowledged before it is on the disk."""
        return self.purpose.startswith(RESUMABLE)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawEntry:
    """One planned event that was taken out of the grant whose index is `grant`."""

    index: int
    previous: str
    hash: str
    grant: int
    event: Event
    purpose: str
    randomness: Randomness
    version: Version = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationEntry:
    """From here on `analysts` share the budget, in format version 2 at least. Earlier entries stay as they are."""

    index: int
    previous: str
    hash: str
    analysts: tuple[tuple[str, float], ...]
    version: Literal[2, 3, 4] = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SpentSums:
    """What a filter has charged so far: how many grants, and the exact sums that it adds up.

    Args:
        grants: how many.
        sums: each by its name in `filters.sums_of`, in that order.
    """

    grants: int
    sums: tuple[tuple[str, Fraction], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HeldGrant:
    """A grant that still holds events, as a checkpoint states it: its entry, and each event with its number."""

    grant: GrantEntry
    left: tuple[tuple[Event, int], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEntry:
    """Everything that the entries before it amount to, exactly; `previous` is the hash that covers all of them.

    A ledger can be opened and verified from here on; then the entries before it are trusted to whoever wrote it
    (docs/explanation/ledger.md#checkpoints). Where they are there, they are added up and compared.

    Args:
        opening: the first entry of the ledger, whole: its terms and its hash.
        analysts: who shares the budget now.
        spent: of the whole ledger.
        by_analyst: of each analyst, since analysts share the budget.
        draws: how many events were drawn.
        checkpoints: how many there were before.
        randomness: "test" if any draw was.
        held: the grants that hold anything still, in the order of their entries.
    """

    index: int
    previous: str
    hash: str
    opening: OpenEntry
    analysts: tuple[tuple[str, float], ...]
    spent: SpentSums
    by_analyst: tuple[tuple[str, SpentSums], ...]
    draws: int
    checkpoints: int
    randomness: Randomness
    held: tuple[HeldGrant, ...]
    version: Literal[4] = 4


Entry = OpenEntry | GrantEntry | DrawEntry | MigrationEntry | CheckpointEntry
_E = TypeVar("_E", OpenEntry, GrantEntry, DrawEntry, MigrationEntry, CheckpointEntry)


def canonical(record: object) -> str:
    """Sorted keys, no spaces, shortest float representations, no NaN, plain UTF-8."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(body: str) -> str:
    """SHA-256 of a canonical text, in hexadecimal."""
    return hashlib.sha256(body.encode("utf-8")).hexdigest()


def encode(entry: Entry) -> str:
    """The entry's line in a ledger file, without the newline."""
    return canonical(_record(entry))


def decode(line: str, known: dict[str, Event] | None = None) -> Entry:
    """The entry of one line; `known` caches events by their canonical text."""
    record = json.loads(line)
    if not isinstance(record, dict) or type(record.get("version")) is not int:
        raise LedgerCorrupted("not an entry")
    version = record["version"]
    if version not in get_args(Version):
        raise LedgerCorrupted(f"format version {version} is not one of {get_args(Version)}: a later release wrote it")
    common = {key: record[key] for key in ("index", "previous", "hash")}
    entry: Entry
    match record["kind"]:
        case "open" if version < 4:
            limit = record["budget"]
            entry = OpenEntry(
                index=common["index"], previous=common["previous"], hash=common["hash"],
                budget=Budget(
                    epsilon=limit["epsilon"], delta=limit["delta"], adjacency=Adjacency(limit["adjacency"])
                ),
                unit=PrivacyUnit(record["unit"]), filter=filter_from(record["filter"]), dataset=record["dataset"],
                analysts=_shared(record, version),
                about=None if version < 3 else _about(record["about"]), version=version,
            )  # fmt: skip
        case "grant":
            entry = GrantEntry(
                index=common["index"], previous=common["previous"], hash=common["hash"],
                event=_event(record["event"], known), charge=_charge(record["charge"]),
                purpose=require_label("purpose", record["purpose"]),
                analyst=_analyst(record, version), version=version,
            )  # fmt: skip
        case "draw":
            entry = DrawEntry(
                index=common["index"], previous=common["previous"], hash=common["hash"], grant=record["grant"],
                event=_event(record["event"], known), purpose=require_label("purpose", record["purpose"]),
                randomness=require_randomness(record["randomness"]), version=version,
            )  # fmt: skip
        case "migrate" if version >= 2:
            entry = MigrationEntry(
                index=common["index"], previous=common["previous"], hash=common["hash"],
                analysts=shares(record["analysts"]), version=version,
            )  # fmt: skip
        case "checkpoint" if version == 4:
            opening = decode(canonical(record["opening"]))
            if not isinstance(opening, OpenEntry):
                raise LedgerCorrupted("the checkpoint states no opening")
            names = [name for name, _, _ in sums_of(opening.filter)]
            entry = CheckpointEntry(
                index=common["index"], previous=common["previous"], hash=common["hash"], opening=opening,
                analysts=shares(record["analysts"]) if record["analysts"] else (),
                spent=_spent(record["spent"], names),
                by_analyst=tuple((label, _spent(each, names)) for label, each in record["by_analyst"].items()),
                draws=_validate.count("draws", record["draws"], "draws", minimum=0),
                checkpoints=_validate.count("checkpoints", record["checkpoints"], "entries", minimum=0),
                randomness=require_randomness(record["randomness"]),
                held=tuple(_held(each, known) for each in record["held"]),
            )  # fmt: skip
        case kind:
            raise LedgerCorrupted(f"unknown kind of entry {kind!r}")
    if digest(canonical(_body(entry))) != entry.hash:
        raise LedgerCorrupted("the hash does not match the entry")
    if encode(entry) != line:
        raise LedgerCorrupted("not in canonical form")
    return entry


def first_index(lines: list[str]) -> int:
    """The index that the first line states, where it is that of a checkpoint; 0 of any other line, or without one."""
    if not lines or CHECKPOINT.decode() not in lines[0]:
        return 0
    try:
        index = json.loads(lines[0])["index"]
    except (ValueError, KeyError, TypeError, RecursionError):  # no entry: whoever reads the lines says so
        return 0
    return index if type(index) is int else 0


def require_label(name: str, value: object, *, most: int = _LONGEST_PURPOSE) -> str:
    """A text of at most `most` characters, without line breaks or other control characters."""
    if not isinstance(value, str) or not 0 < len(value) <= most or not value.isprintable():
        raise _validate.fail(name, value, f"printable text of 1 to {most} characters in one line", "text")
    return value


def about(owner: str | None, description: str | None, opened: dt.date | str | None) -> LedgerAbout | None:
    """Who answers for a new ledger; None where nothing is said.

    Raises:
        InvalidParameter: a text or a day outside its bound.
    """
    if isinstance(opened, dt.datetime):
        raise _validate.fail("opened", opened, "a day without a time: opened.date()", "day")
    if isinstance(opened, dt.date):
        opened = opened.isoformat()
    if (owner, description, opened) == (None, None, None):
        return None
    return LedgerAbout(owner=owner, description=description, opened=opened)


def _require_day(value: object) -> None:
    wanted = _validate.fail("opened", value, "a date, or a text such as '2026-11-28'", "day")
    try:
        day = dt.date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        raise wanted from None
    if day is None or day.isoformat() != value:
        raise wanted


def _shared(record: Mapping[str, Any], version: int) -> tuple[tuple[str, float], ...]:
    """The analysts of an opening; none in version 1, and in a ledger of version 3 that nobody shares."""
    return () if version == 1 or (version >= 3 and record["analysts"] == {}) else shares(record["analysts"])


def _about(record: Mapping[str, Any]) -> LedgerAbout:
    return LedgerAbout(owner=record["owner"], description=record["description"], opened=record["opened"])


def _analyst(record: Mapping[str, Any], version: int) -> str | None:
    """The analyst of a grant; None in version 1, and in a ledger of a version from 3 on that nobody shares."""
    if version == 1 or (version >= 3 and record["analyst"] is None):
        return None
    return require_label("analyst", record["analyst"])


def shares(analysts: object) -> tuple[tuple[str, float], ...]:
    """The analysts of a ledger and their shares, in the order of their labels.

    Raises:
        InvalidParameter: none, a share outside (0, 1], or shares of more than the whole.
    """
    if not isinstance(analysts, Mapping) or not analysts:
        raise _validate.fail("analysts", analysts, "labels with their shares, at least one", "shares")
    for label, share in analysts.items():
        require_label("analyst", label)
        _validate.rate("share", share, f"share of {label!r}")
    if sum(exact_share(float(share)) for share in analysts.values()) > 1:
        raise _validate.fail("analysts", dict(analysts), "shares of at most 1 together", "shares")
    return tuple(sorted((label, float(share)) for label, share in analysts.items()))


def exact_share(share: float) -> Fraction:
    """The decimal that the ledger's line states: ten shares of 0.1 are the whole."""
    return Fraction(repr(share))


def sealed(entry: _E) -> _E:
    """The entry with the hash of its body."""
    return replace(entry, hash=digest(canonical(_body(entry))))


def _spent(record: Mapping[str, Any], names: list[str]) -> SpentSums:
    """The sums of a checkpoint, as fractions in lowest terms."""
    if set(record) != {"grants", *names}:
        raise LedgerCorrupted(f"the sums of a checkpoint are {sorted(record)}, not {names} and the number of grants")
    return SpentSums(
        grants=_validate.count("grants", record["grants"], "grants", minimum=0),
        sums=tuple((name, _exact(record[name])) for name in names),
    )


def _exact(text: object) -> Fraction:
    if not isinstance(text, str) or not _EXACT.fullmatch(text) or str(Fraction(text)) != text:
        raise LedgerCorrupted(f"not an exact sum: {text!r}")
    return Fraction(text)


def _held(record: Mapping[str, Any], known: dict[str, Event] | None) -> HeldGrant:
    grant = decode(canonical(record["grant"]), known)
    if not isinstance(grant, GrantEntry):
        raise LedgerCorrupted("a checkpoint holds an entry that is no grant")
    left = tuple((_event(event, known), _validate.count("left", number, "draws")) for event, number in record["left"])
    return HeldGrant(grant=grant, left=left)


def _event(record: Mapping[str, Any], known: dict[str, Event] | None) -> Event:
    if known is None:
        return from_json(record)
    text = canonical(record)
    if text not in known:
        known[text] = from_json(record)
    return known[text]


def _charge(record: Mapping[str, Any]) -> Charge:
    if unknown := set(record) - {*_AMOUNTS, "method", "order"}:
        raise LedgerCorrupted(f"unknown fields of a charge: {sorted(unknown)}")
    method = record["method"]
    if method not in (*get_args(Route), "zcdp"):
        raise LedgerCorrupted(f"unknown method of a charge: {method!r}")
    return Charge(
        epsilon=_number(record, "epsilon"), delta=_number(record, "delta"), mu=_number(record, "mu"),
        rho=_number(record, "rho"), divergence=_number(record, "divergence"), order=_number(record, "order"),
        method=method,
    )  # fmt: skip


def _number(record: Mapping[str, Any], key: str) -> float | None:
    value = record.get(key)
    return None if value is None else _validate.non_negative(key, value, "charge")


def _record(entry: Entry) -> dict[str, object]:
    return {**_body(entry), "hash": entry.hash}


def _sums(spent: SpentSums) -> dict[str, object]:
    return {"grants": spent.grants, **{name: str(value) for name, value in spent.sums}}


def _body(entry: Entry) -> dict[str, object]:
    """All fields of the entry's record but its hash."""
    common = {"version": entry.version, "index": entry.index, "previous": entry.previous}
    match entry:
        case OpenEntry():
            limit = entry.budget
            return (
                common
                | {
                    "kind": "open",
                    "budget": {"epsilon": limit.epsilon, "delta": limit.delta, "adjacency": limit.adjacency.value},
                    "unit": entry.unit.value,
                    "filter": filter_record(entry.filter),
                    "dataset": entry.dataset,
                }
                | ({"analysts": dict(entry.analysts)} if entry.version > 1 else {})
                | ({"about": None if entry.about is None else entry.about.record} if entry.version > 2 else {})
            )
        case GrantEntry():
            charge = entry.charge
            fields = {**charge.amounts(), "order": charge.order}
            return (
                common
                | {
                    "kind": "grant",
                    "event": to_json(entry.event),
                    "charge": {key: value for key, value in fields.items() if value is not None}
                    | {"method": charge.method},
                    "purpose": entry.purpose,
                }
                | ({"analyst": entry.analyst} if entry.version > 1 else {})
            )
        case MigrationEntry():
            return common | {"kind": "migrate", "analysts": dict(entry.analysts)}
        case CheckpointEntry():
            return common | {
                "kind": "checkpoint",
                "opening": _record(entry.opening),
                "analysts": dict(entry.analysts),
                "spent": _sums(entry.spent),
                "by_analyst": {label: _sums(each) for label, each in entry.by_analyst},
                "draws": entry.draws,
                "checkpoints": entry.checkpoints,
                "randomness": entry.randomness,
                "held": [
                    {"grant": _record(each.grant), "left": [[to_json(event), number] for event, number in each.left]}
                    for each in entry.held
                ],
            }
        case DrawEntry():
            return common | {
                "kind": "draw",
                "grant": entry.grant,
                "event": to_json(entry.event),
                "purpose": entry.purpose,
                "randomness": entry.randomness,
            }


def require_randomness(value: Randomness) -> Randomness:
    """One of the two."""
    if value not in get_args(Randomness):
        raise _validate.fail("randomness", value, "'secure' or 'test'", "name")
    return value
