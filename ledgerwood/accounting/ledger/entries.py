"""The entries of a ledger, and the one line of canonical JSON that each of them is.

The format is docs/adr/0004-ledger-file-format.md and docs/adr/0008-migrations.md.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeVar, final, get_args

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.serial import from_json, to_json
from ledgerwood.accounting.filters import Charge, Filter, filter_from, filter_record
from ledgerwood.accounting.quotes import Route
from ledgerwood.errors import LedgerCorrupted

Version = Literal[1, 2]
"""Of an entry's format; 2 is that of a budget which analysts share. It rises at a `MigrationEntry`, and never falls."""

GENESIS = "0" * 64
_AMOUNTS = frozenset({"epsilon", "delta", "mu", "rho", "divergence"})
_LONGEST_PURPOSE = 200
RESUMABLE = "resumable: "
"""How the purpose of a grant begins whose every draw is durable, so that a later process may draw the rest of it."""

Randomness = Literal["secure", "test"]
"""The source of the noise; "test" is reproducible and protects nobody."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEntry:
    """The first entry: the terms. `dataset` is a public label, never derived from data.

    `analysts` are labels in order, each with its share of the budget in (0, 1]; without any, anyone spends all of it.
    """

    index: int
    previous: str
    hash: str
    budget: Budget
    unit: PrivacyUnit
    filter: Filter
    dataset: str | None
    analysts: tuple[tuple[str, float], ...] = ()
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
    """The start of format version 2: from here on `analysts` share the budget. Earlier entries stay as they are."""

    index: int
    previous: str
    hash: str
    analysts: tuple[tuple[str, float], ...]
    version: Literal[2] = 2


Entry = OpenEntry | GrantEntry | DrawEntry | MigrationEntry
_E = TypeVar("_E", OpenEntry, GrantEntry, DrawEntry, MigrationEntry)


def canonical(record: object) -> str:
    """Sorted keys, no spaces, shortest float representations, no NaN, plain UTF-8."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(body: str) -> str:
    """SHA-256 of a canonical text, in hexadecimal."""
    return hashlib.sha256(body.encode("utf-8")).hexdigest()


def encode(entry: Entry) -> str:
    """The entry's line in a ledger file, without the newline."""
    return canonical({**_body(entry), "hash": entry.hash})


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
        case "open":
            limit = record["budget"]
            entry = OpenEntry(
                index=common["index"], previous=common["previous"], hash=common["hash"],
                budget=Budget(
                    epsilon=limit["epsilon"], delta=limit["delta"], adjacency=Adjacency(limit["adjacency"])
                ),
                unit=PrivacyUnit(record["unit"]), filter=filter_from(record["filter"]), dataset=record["dataset"],
                analysts=() if version == 1 else shares(record["analysts"]), version=version,
            )  # fmt: skip
        case "grant":
            entry = GrantEntry(
                index=common["index"], previous=common["previous"], hash=common["hash"],
                event=_event(record["event"], known), charge=_charge(record["charge"]),
                purpose=require_label("purpose", record["purpose"]),
                analyst=None if version == 1 else require_label("analyst", record["analyst"]), version=version,
            )  # fmt: skip
        case "draw":
            entry = DrawEntry(
                index=common["index"], previous=common["previous"], hash=common["hash"], grant=record["grant"],
                event=_event(record["event"], known), purpose=require_label("purpose", record["purpose"]),
                randomness=require_randomness(record["randomness"]), version=version,
            )  # fmt: skip
        case "migrate" if version == 2:
            entry = MigrationEntry(
                index=common["index"], previous=common["previous"], hash=common["hash"],
                analysts=shares(record["analysts"]),
            )  # fmt: skip
        case kind:
            raise LedgerCorrupted(f"unknown kind of entry {kind!r}")
    if digest(canonical(_body(entry))) != entry.hash:
        raise LedgerCorrupted("the hash does not match the entry")
    if encode(entry) != line:
        raise LedgerCorrupted("not in canonical form")
    return entry


def require_label(name: str, value: object) -> str:
    """A short text without line breaks or other control characters."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_PURPOSE or not value.isprintable():
        raise _validate.fail(name, value, f"printable text of 1 to {_LONGEST_PURPOSE} characters in one line", "text")
    return value


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
