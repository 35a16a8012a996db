"""The ledger as a state machine without input or output: entries, their chain of hashes, what may follow what.

The format is docs/adr/0004-ledger-file-format.md.
"""

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, final, get_args

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.events.base import Event, require_event
from ledgerwood.accounting.events.serial import from_json, to_json
from ledgerwood.accounting.filters import Charge, Filter, filter_named
from ledgerwood.accounting.pricing import Route
from ledgerwood.errors import AdjacencyMismatch, BudgetExceeded, DrawRefused, LedgerCorrupted, PrivacyError

VERSION = 1
GENESIS = "0" * 64
_LONGEST_PURPOSE = 200

Randomness = Literal["secure", "test"]
"""Where noise comes from; "test" is reproducible and protects nobody."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OpenEntry:
    """The first entry: the terms. `dataset` is a public label, never derived from data."""

    index: int
    previous: str
    hash: str
    budget: Budget
    unit: PrivacyUnit
    filter: Filter
    dataset: str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GrantEntry:
    """A plan that was priced, charged and granted."""

    index: int
    previous: str
    hash: str
    event: Event
    charge: Charge
    purpose: str


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


Entry = OpenEntry | GrantEntry | DrawEntry
_E = TypeVar("_E", OpenEntry, GrantEntry, DrawEntry)
_BROKEN = (PrivacyError, ValueError, KeyError, TypeError, RecursionError)  # what a line that is no entry may raise


def canonical(record: object) -> str:
    """Sorted keys, no spaces, shortest float representations, no NaN, plain UTF-8."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(body: str) -> str:
    """SHA-256 of a canonical text, in hexadecimal."""
    return hashlib.sha256(body.encode("utf-8")).hexdigest()


def encode(entry: Entry) -> str:
    """The entry's line in a ledger file, without the newline."""
    return canonical({**_body(entry), "hash": entry.hash})


@final
class State:
    """Entries and what follows from them. Propose an entry, make it durable elsewhere, then commit it."""

    __slots__ = ("_left", "charges", "entries", "terms")

    def __init__(self, terms: OpenEntry) -> None:
        self.terms = terms
        self.entries: list[Entry] = [terms]
        self.charges: list[Charge] = []
        self._left: dict[int, Counter[Event]] = {}

    @property
    def head(self) -> str:
        return self.entries[-1].hash

    def left(self, grant: int) -> Counter[Event]:
        """What may still be drawn from the grant at this index."""
        return self._left[grant]

    def price(self, event: Event, purpose: str, delta: float | None) -> Charge:
        """What the plan costs, as things stand; it may take a while, and nothing changes.

        Raises:
            AdjacencyMismatch: event and budget are stated under different relations.
        """
        require_event(event)
        require_label("purpose", purpose)
        self._require_adjacency(event)
        return self.terms.filter.charge(event, self.charges, self.terms.budget, delta)

    def propose_grant(self, event: Event, charge: Charge, purpose: str) -> GrantEntry:
        """A grant that fits, at the charge that `price` gave; nothing changes yet.

        Raises:
            BudgetExceeded: it does not fit.
        """
        self.terms.filter.admit(self.charges, charge, self.terms.budget)
        return sealed(
            GrantEntry(
                index=len(self.entries), previous=self.head, hash="", event=event, charge=charge, purpose=purpose
            )
        )

    def propose_draw(self, grant: int, event: Event, purpose: str, randomness: Randomness) -> DrawEntry:
        """A draw that the grant holds; nothing changes yet.

        Raises:
            DrawRefused: the event was not granted, or is used up.
        """
        purpose = require_label("purpose", purpose)
        _randomness(randomness)
        self._require_left(grant, event)
        return sealed(
            DrawEntry(
                index=len(self.entries), previous=self.head, hash="", grant=grant, event=event, purpose=purpose,
                randomness=randomness,
            )
        )  # fmt: skip

    def commit(self, entry: GrantEntry | DrawEntry) -> None:
        """Append an entry that follows the last one."""
        if (entry.index, entry.previous) != (len(self.entries), self.head):
            raise LedgerCorrupted(f"entry {entry.index} does not follow entry {len(self.entries) - 1}")
        match entry:
            case GrantEntry():
                self._require_adjacency(entry.event)
                self.terms.filter.require_currency(entry.charge)
                held: Counter[Event] = Counter()
                for part, count in entry.event.draws():
                    held[part] += count
                self._left[entry.index] = held
                self.charges.append(entry.charge)
            case DrawEntry():
                self._require_left(entry.grant, entry.event)
                self._left[entry.grant][entry.event] -= 1
        self.entries.append(entry)

    def follow(self, lines: Iterable[str]) -> None:
        """Take in lines that others wrote after the last entry; prices are taken as written.

        Raises:
            LedgerCorrupted: names the first entry that is not canonical, not chained, or not allowed where it stands.
        """
        known: dict[str, Event] = {}
        charged = len(self.charges)
        for line in lines:
            try:
                entry = decode(line, known)
                if isinstance(entry, OpenEntry):
                    raise LedgerCorrupted("a second opening")
                self.commit(entry)
            except _BROKEN as error:
                raise LedgerCorrupted(f"entry {len(self.entries)}: {error}") from error
        if len(self.charges) > charged:
            try:
                self.terms.filter.admit(self.charges[:-1], self.charges[-1], self.terms.budget)
            except BudgetExceeded as error:
                raise LedgerCorrupted(f"the grants exceed the budget: {error}") from error

    def _require_adjacency(self, event: Event) -> None:
        ours = self.terms.budget.adjacency
        if event.adjacency is not ours:
            raise AdjacencyMismatch(f"the event is stated under {event.adjacency.value}, the ledger under {ours.value}")

    def _require_left(self, grant: int, event: Event) -> None:
        held = self._left.get(grant)
        if held is None:
            raise DrawRefused(f"entry {grant} is not a grant of this ledger")
        if event not in held:
            raise DrawRefused(f"grant {grant} does not hold {event!r}; it holds {_kinds(held)}")
        if held[event] <= 0:
            raise DrawRefused(
                f"grant {grant} has no {event!r} left: each planned event is drawn at most as often as planned"
            )


def opened(budget: Budget, unit: PrivacyUnit, filter_: Filter, dataset: str | None) -> OpenEntry:
    """The first entry of a new ledger."""
    if not isinstance(budget, Budget):
        raise _validate.fail("budget", budget, "a Budget", "budget")
    if not isinstance(unit, PrivacyUnit):
        raise _validate.fail("unit", unit, "a PrivacyUnit (ROW, USER)", "privacy unit")
    if type(filter_) not in get_args(Filter):
        raise _validate.fail("filter", filter_, "BasicFilter() or GDPFilter()", "filter")
    filter_.check(budget)
    if dataset is not None:
        dataset = require_label("dataset", dataset)
    return sealed(
        OpenEntry(index=0, previous=GENESIS, hash="", budget=budget, unit=unit, filter=filter_, dataset=dataset)
    )


def replay(lines: Iterable[str]) -> State:
    """The state that lines of a ledger file lead to.

    Raises:
        LedgerCorrupted: names the first entry that is not canonical, not chained, or not allowed where it stands;
            prices are taken as written.
    """
    rest = iter(lines)
    first = next(rest, None)
    if first is None:
        raise LedgerCorrupted("entry 0: the ledger is empty")
    try:
        entry = decode(first)
        if not isinstance(entry, OpenEntry) or (entry.index, entry.previous) != (0, GENESIS):
            raise LedgerCorrupted("the first entry does not open a ledger")
    except _BROKEN as error:
        raise LedgerCorrupted(f"entry 0: {error}") from error
    state = State(entry)
    state.follow(rest)
    return state


def decode(line: str, known: dict[str, Event] | None = None) -> Entry:
    """The entry of one line; `known` caches events by their canonical text."""
    record = json.loads(line)
    if not isinstance(record, dict) or record.get("version") != VERSION:
        raise LedgerCorrupted(f"not an entry of format version {VERSION}")
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
                unit=PrivacyUnit(record["unit"]), filter=filter_named(record["filter"]), dataset=record["dataset"],
            )  # fmt: skip
        case "grant":
            entry = GrantEntry(
                index=common["index"], previous=common["previous"], hash=common["hash"],
                event=_event(record["event"], known), charge=_charge(record["charge"]),
                purpose=require_label("purpose", record["purpose"]),
            )  # fmt: skip
        case "draw":
            entry = DrawEntry(
                index=common["index"], previous=common["previous"], hash=common["hash"], grant=record["grant"],
                event=_event(record["event"], known), purpose=require_label("purpose", record["purpose"]),
                randomness=_randomness(record["randomness"]),
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


def sealed(entry: _E) -> _E:
    """The entry with the hash of its own body."""
    return replace(entry, hash=digest(canonical(_body(entry))))


@functools.lru_cache(maxsize=256)
def _record_of(event: Event) -> object:
    """The event's JSON record; plans draw the same few events many times."""
    return to_json(event)


def _event(record: Mapping[str, Any], known: dict[str, Event] | None) -> Event:
    if known is None:
        return from_json(record)
    text = canonical(record)
    if text not in known:
        known[text] = from_json(record)
    return known[text]


def _charge(record: Mapping[str, Any]) -> Charge:
    if unknown := set(record) - {"epsilon", "delta", "mu", "method", "order"}:
        raise LedgerCorrupted(f"unknown fields of a charge: {sorted(unknown)}")
    method = record["method"]
    if method not in get_args(Route):
        raise LedgerCorrupted(f"unknown method of a charge: {method!r}")
    return Charge(
        epsilon=_number(record, "epsilon"), delta=_number(record, "delta"), mu=_number(record, "mu"),
        order=_number(record, "order"), method=method,
    )  # fmt: skip


def _number(record: Mapping[str, Any], key: str) -> float | None:
    value = record.get(key)
    return None if value is None else _validate.non_negative(key, value, "charge")


def _body(entry: Entry) -> dict[str, object]:
    """All fields of the entry's record but its hash."""
    common = {"version": VERSION, "index": entry.index, "previous": entry.previous}
    match entry:
        case OpenEntry():
            limit = entry.budget
            return common | {
                "kind": "open",
                "budget": {"epsilon": limit.epsilon, "delta": limit.delta, "adjacency": limit.adjacency.value},
                "unit": entry.unit.value,
                "filter": entry.filter.name,
                "dataset": entry.dataset,
            }
        case GrantEntry():
            charge = entry.charge
            fields = {"epsilon": charge.epsilon, "delta": charge.delta, "mu": charge.mu, "order": charge.order}
            return common | {
                "kind": "grant",
                "event": _record_of(entry.event),
                "charge": {key: value for key, value in fields.items() if value is not None}
                | {"method": charge.method},
                "purpose": entry.purpose,
            }
        case DrawEntry():
            return common | {
                "kind": "draw",
                "grant": entry.grant,
                "event": _record_of(entry.event),
                "purpose": entry.purpose,
                "randomness": entry.randomness,
            }


def _randomness(value: Randomness) -> Randomness:
    if value not in get_args(Randomness):
        raise _validate.fail("randomness", value, "'secure' or 'test'", "name")
    return value


def _kinds(held: Counter[Event]) -> str:
    listed = [f"{count} x {event!r}" for event, count in list(held.items())[:3]]
    return "; ".join(listed) + ("; ..." if len(held) > len(listed) else "")
