"""A ledger's entries as the verifier takes them in: their form, their order, their sums, and the verdict on each grant.

No code here is shared with the ledger or the accounting that it checks (docs/explanation/ledger.md#verification).
"""

import bisect
import hashlib
import json
import math
import re
from array import array
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from typing import Any, NoReturn

from ledgerwood.verification.ledgers import checkpoints as _checkpoints
from ledgerwood.verification.ledgers import filters as _filters
from ledgerwood.verification.ledgers import pairs as _pairs
from ledgerwood.verification.ledgers.effort import Effort, counted
from ledgerwood.verification.ledgers.filters import GrantVerdict, is_number, judged
from ledgerwood.verification.ledgers.reports import LedgerReport

_ADJACENCIES = ("add-remove", "zero-out", "replace-one")
_KEYS = {
    "open": {"budget", "unit", "filter", "dataset"},
    "grant": {"event", "charge", "purpose"},
    "draw": {"grant", "event", "purpose", "randomness"},
}
_KEYS_OF_2 = {"open": {"analysts"}, "grant": {"analyst"}, "draw": set(), "migrate": {"analysts"}}  # besides
_KEYS_OF_3 = {**_KEYS_OF_2, "open": {"analysts", "about"}}
_KEYS_OF_4 = {"grant": {"analyst"}, "draw": set(), "migrate": {"analysts"}, "checkpoint": _checkpoints.KEYS}
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_LABEL, _DESCRIPTION = 200, 1000  # characters, at most
_COMMON = {"version", "index", "previous", "hash", "kind"}


@dataclass(slots=True)
class _Held:
    """A grant that holds anything still: its record, and how many of each event, by their texts."""

    record: dict[str, Any]
    left: dict[str, int]


@dataclass(slots=True)
class VerifiedBook:
    """What the entries so far have said."""

    terms: dict[str, Any]
    effort: Effort
    known: dict[str, GrantVerdict] | None
    version: int = field(init=False)
    head: str = field(init=False)
    grants: int = 0
    draws: int = 0
    test: bool = False
    rule: _filters.Rule = field(init=False)
    spent: _filters.Amounts = (Fraction(), Fraction())
    found: _filters.Amounts | None = (Fraction(), Fraction())
    verdicts: list[GrantVerdict] = field(default_factory=list)
    held: dict[int, _Held] = field(default_factory=dict)
    checkpoints: int = 0
    trusted: int = 0
    grants_by: dict[str, int] = field(default_factory=dict)
    places: "array[int]" = field(default_factory=lambda: array("q"))  # of the grants
    shares: dict[str, Fraction] = field(default_factory=dict)
    by_analyst: dict[str, _filters.Amounts] = field(default_factory=dict)
    ceiling: _filters.Ceiling = field(init=False)
    ceilings: dict[str, _filters.Ceiling] = field(default_factory=dict)

    def __post_init__(self) -> None:
        terms: dict[str, Any] = self.terms
        limit: Any = terms.get("budget")
        _require(terms["kind"] == "open", "the first entry does not open a ledger")
        _require(isinstance(limit, dict) and set(limit) == {"epsilon", "delta", "adjacency"}, "no budget")
        _require(is_number(limit["epsilon"]) and limit["epsilon"] > 0, "the budget's epsilon is not positive")
        _require(is_number(limit["delta"]) and 0 <= limit["delta"] < 1, "the budget's delta is no probability below 1")
        _require(limit["adjacency"] in _ADJACENCIES, f"unknown adjacency {limit['adjacency']!r}")
        _require(terms["unit"] in ("row", "user"), f"unknown privacy unit {terms['unit']!r}")
        self.rule = _filters.rule(terms["filter"])
        _require(self.rule.opens(limit["delta"]), f"the budget's delta is too small for the filter {self.rule.name!r}")
        self.ceiling = _filters.Ceiling(self.rule, Fraction(limit["epsilon"]), Fraction(limit["delta"]))
        if terms["dataset"] is not None:
            _label(terms["dataset"])
        self.version = terms["version"]
        _require(self.version < 4, "an opening has no such version")
        if self.version == 3:
            _require(isinstance(terms["analysts"], dict), "no analysts")
            _about(terms["about"])
        if self.version > 1 and (self.version == 2 or terms["analysts"]):
            self._open_shares(terms["analysts"])
        self.head = terms["hash"]

    def add(self, record: dict[str, Any]) -> None:
        """Take in an entry that is well formed and chained."""
        if record["kind"] == "migrate":
            _require(not self.shares, "analysts share the ledger already")
            self._open_shares(record["analysts"])
            self.version = max(self.version, 2)
        if record["kind"] == "checkpoint":
            self._compare(record)
            self.version, self.checkpoints = 4, self.checkpoints + 1
        _require(record["version"] == self.version, "its version is not the ledger's")
        match record["kind"]:
            case "open":
                raise ValueError("a second opening")
            case "grant":
                self._grant(record)
            case "draw":
                self._draw(record)
        self.head = record["hash"]

    def report(self) -> LedgerReport:
        limit = self.terms["budget"]
        with counted(None):
            epsilon, delta = self.rule.added_up(self.found or self.spent, limit["delta"]) if self.grants else (0.0, 0.0)
        if self.found is None:
            epsilon = math.inf
        return LedgerReport(
            epsilon_readded=epsilon, delta_readded=delta, epsilon_budget=limit["epsilon"],
            delta_budget=limit["delta"], adjacency=limit["adjacency"], unit=self.terms["unit"],
            filter=self.rule.name, dataset=self.terms["dataset"], grants=self.grants, draws=self.draws,
            randomness="test" if self.test else "secure", head=self.head, verdicts=tuple(self.verdicts),
            trusted=self.trusted, trusted_to="writer" if self.trusted else None,
            **({} if self.terms["version"] < 3 else self.terms["about"]),
        )  # fmt: skip

    def _grant(self, record: dict[str, Any]) -> None:
        charge, event = record["charge"], record["event"]
        amounts = self._judged(record)
        self.spent = _plus(self.spent, self.rule.amounts(charge))
        self.found = None if self.found is None or amounts is None else _plus(self.found, amounts)
        with counted(None):
            within = self.ceiling.holds(self.spent)
        _require(within, "the grants exceed the budget")
        self.held[record["index"]] = _Held(record, _planned(event))
        self.places.append(record["index"])
        self.grants += 1
        if record["version"] >= 3 and not self.shares:
            _require(record["analyst"] is None, f"no analyst {record['analyst']!r}")
        elif record["version"] > 1:
            self._spend_share(record["analyst"], charge)

    def _judged(self, record: dict[str, Any]) -> _filters.Amounts | None:
        """Compare a grant's charge with the verifier's bounds; what it counts for, None for infinity."""
        limit, charge, event = self.terms["budget"], record["charge"], record["event"]
        _label(record["purpose"])
        with counted(None):  # reading is linear in the line's length
            node = _pairs.parse(event)
        _require(_pairs.adjacencies(event) == {limit["adjacency"]}, "the plan's adjacency is not the budget's")
        _require(isinstance(charge, dict), "no charge")
        self.effort.next_grant()
        same = "" if self.known is None else _canonical([self.terms["filter"], event, charge])
        if self.known is not None and same in self.known:
            verdict = replace(self.known[same], entry=record["index"])
        else:
            verdict = judged(record["index"], self.rule, node, charge)
            if self.known is not None and verdict.verdict != "unconfirmed":  # that may be for want of work, here alone
                self.known[same] = verdict
        self.verdicts.append(verdict)
        return self.rule.counted(charge, verdict.upper)

    def _open_shares(self, analysts: Any) -> None:
        """Labels with shares in (0, 1], as the decimals that are written, at most 1 together."""
        _require(isinstance(analysts, dict) and len(analysts) > 0, "no analysts")
        limit = self.terms["budget"]
        for label, share in analysts.items():
            _label(label)
            _require(is_number(share) and 0 < share <= 1, f"the share of {label!r} is {share!r}")
            self.shares[label] = Fraction(repr(share))
            self.by_analyst[label], self.grants_by[label] = (Fraction(), Fraction()), 0
            own = Fraction(limit["epsilon"]) * self.shares[label], Fraction(limit["delta"]) * self.shares[label]
            self.ceilings[label] = _filters.Ceiling(self.rule, *own)
        _require(sum(self.shares.values()) <= 1, "the shares are more than the whole")

    def _spend_share(self, analyst: Any, charge: dict[str, Any]) -> None:
        """The analyst's own grants stay within that share of the budget, by the same filter."""
        _require(analyst in self.shares, f"no analyst {analyst!r}")
        self.by_analyst[analyst] = _plus(self.by_analyst[analyst], self.rule.amounts(charge))
        self.grants_by[analyst] += 1
        with counted(None):
            within = self.ceilings[analyst].holds(self.by_analyst[analyst])
        _require(within, f"the grants of {analyst!r} exceed their share")

    def _is_grant(self, place: int) -> bool:
        found = bisect.bisect_left(self.places, place)
        return found < len(self.places) and self.places[found] == place

    def _draw(self, record: dict[str, Any]) -> None:
        _label(record["purpose"])
        _require(record["randomness"] in ("secure", "test"), f"unknown randomness {record['randomness']!r}")
        place = record["grant"]
        _require(type(place) is int and self._is_grant(place), f"no grant {place!r}")
        left, text = self.held[place].left if place in self.held else {}, _canonical(record["event"])
        _require(text in left, "the event was not granted, or was drawn more often than granted")
        left[text] -= 1
        if not left[text]:
            del left[text]
            if not left:
                del self.held[place]
        self.draws += 1
        self.test = self.test or record["randomness"] == "test"

    def _compare(self, record: dict[str, Any]) -> None:
        """A checkpoint states what the entries before it amount to, to the last digit."""
        found: dict[str, object] = {
            "opening": self.terms,
            "analysts": {label: float(share) for label, share in self.shares.items()},
            "spent": _checkpoints.stated(self.rule, self.grants, self.spent),
            "by_analyst": {
                label: _checkpoints.stated(self.rule, self.grants_by[label], own)
                for label, own in self.by_analyst.items()
            },
            "draws": self.draws,
            "checkpoints": self.checkpoints,
            "randomness": "test" if self.test else "secure",
            "held": [
                {"grant": held.record, "left": [[json.loads(text), number] for text, number in held.left.items()]}
                for _, held in sorted(self.held.items())
            ],
        }
        for name, value in found.items():
            _require(
                _canonical(record[name]) == _canonical(value),
                f"the checkpoint's {name!r} is not what the entries before it amount to",
            )

    def _restore(self, record: dict[str, Any]) -> None:
        """Take a checkpoint's word for the entries before it, where it does not contradict itself."""
        migrated = record["analysts"] != self.terms.get("analysts", {})
        if migrated:
            _require(not self.shares, "its analysts are not those of the opening")
            self._open_shares(record["analysts"])
        self.grants, self.spent = _checkpoints.sums(self.rule, record["spent"])
        self.draws, self.checkpoints = _checkpoints.count(record["draws"]), _checkpoints.count(record["checkpoints"])
        _require(
            record["index"] == 1 + self.grants + self.draws + self.checkpoints + migrated,
            "the entries that it states are not as many as there were before it",
        )
        _require(set(record["by_analyst"]) == set(self.shares), "it states sums of other analysts")
        for label, own in record["by_analyst"].items():
            self.grants_by[label], self.by_analyst[label] = _checkpoints.sums(self.rule, own)
        held_spent, held_by = (Fraction(), Fraction()), dict.fromkeys(self.shares, (Fraction(), Fraction()))
        _require(isinstance(record["held"], list), "it holds no list of grants")
        self.found = self.spent
        for each in record["held"]:
            amounts = self._take_held(each, record["index"])
            held_spent = _plus(held_spent, amounts)
            if each["grant"].get("analyst") is not None:
                held_by[each["grant"]["analyst"]] = _plus(held_by[each["grant"]["analyst"]], amounts)
        _require(len(self.held) <= self.grants and _within(held_spent, self.spent), "its open grants cost more")
        taken = (sum(_planned(held.record["event"]).values()) - sum(held.left.values()) for held in self.held.values())
        _require(sum(taken) <= self.draws, "more was drawn from its open grants than there were draws")
        all_by = (Fraction(), Fraction())
        for label, own in self.by_analyst.items():
            _require(_within(held_by[label], own), f"the open grants of {label!r} cost more than it states")
            all_by = _plus(all_by, own)
        _require(
            _within(all_by, self.spent) and sum(self.grants_by.values()) <= self.grants,
            "its analysts have spent more than all together",
        )
        with counted(None):
            within = self.ceiling.holds(self.spent)
            within = within and all(self.ceilings[label].holds(own) for label, own in self.by_analyst.items())
        _require(within, "the grants that it states exceed the budget")
        _require(record["randomness"] in ("secure", "test"), f"unknown randomness {record['randomness']!r}")
        self.test = record["randomness"] == "test"
        self.version, self.head, self.trusted = 4, record["hash"], record["index"]
        self.checkpoints += 1

    def _take_held(self, each: Any, before: int) -> _filters.Amounts:
        """A grant that holds something still, as a checkpoint states it; the amounts that it was charged.

        Its plan and its charge are there, so that the charge is looked at as any other.
        """
        _require(isinstance(each, dict) and set(each) == {"grant", "left"}, "not a grant that holds anything")
        grant = entry_of(_canonical(each["grant"]), each["grant"]["index"], None)
        _require(grant["kind"] == "grant", "what it holds is not a grant")
        _require(max(self.held, default=0) < grant["index"] < before, "its grants are not in order")
        _require(grant.get("analyst") is None or grant["analyst"] in self.shares, "no such analyst")
        planned, left = _planned(grant["event"]), {_canonical(event): number for event, number in each["left"]}
        _require(0 < len(left) == len(each["left"]), "an open grant that holds nothing, or an event twice")
        for text, number in left.items():
            _require(type(number) is int and 0 < number <= planned.get(text, 0), "more than the grant had")
        self.held[grant["index"]] = _Held(grant, {text: left[text] for text in planned if text in left})
        _require(list(self.held[grant["index"]].left) == list(left), "its events are not in order")
        self.places.append(grant["index"])
        own, amounts = self.rule.amounts(grant["charge"]), self._judged(grant)
        if self.found is not None:
            self.found = None if amounts is None else _plus(_plus(self.found, amounts), (-own[0], -own[1]))
        return own


def at_checkpoint(record: dict[str, Any], effort: Effort, known: dict[str, GrantVerdict] | None) -> VerifiedBook:
    """A book that begins with a checkpoint."""
    book = VerifiedBook(entry_of(_canonical(record["opening"]), 0, "0" * 64), effort, known)
    book._restore(record)
    return book


def _planned(event: Any) -> dict[str, int]:
    """How many of each event a grant holds at first, by their texts."""
    held: dict[str, int] = {}
    for item, count in _pairs.draws(event):
        text = _canonical(item)
        held[text] = held.get(text, 0) + count
    return held


def _within(part: _filters.Amounts, whole: _filters.Amounts) -> bool:
    return part[0] <= whole[0] and part[1] <= whole[1]


def entry_of(line: str, index: int, previous: str | None) -> dict[str, Any]:
    """The record of one line: form, place and hash are checked; `previous` is None where nothing is before it."""
    record: dict[str, Any] = json.loads(line, object_pairs_hook=_unique, parse_constant=_no_constant)
    _require(isinstance(record, dict), "not a JSON object")
    version: Any = record.get("version")
    _require(type(version) is int and version in (1, 2, 3, 4), f"format version {version!r} is not 1 to 4")
    kind: Any = record.get("kind")
    later = {1: {}, 2: _KEYS_OF_2, 3: _KEYS_OF_3, 4: _KEYS_OF_4}[version]
    known = later or _KEYS
    _require(isinstance(kind, str) and kind in known, f"unknown kind {kind!r}")
    own = _KEYS.get(kind, set()) | later.get(kind, set())
    _require(set(record) == own | _COMMON, f"fields {sorted(record)}")
    _require(_canonical(record) == line, "not in canonical form")
    body = {key: value for key, value in record.items() if key != "hash"}
    _require(
        hashlib.sha256(_canonical(body).encode("utf-8")).hexdigest() == record["hash"],
        "its hash does not match: the entry was altered",
    )
    _require(
        type(record["index"]) is int and record["index"] == index,
        f"it says that it is entry {record['index']!r}: entries were removed or reordered",
    )
    linked = record["previous"] == previous if previous is not None else _HASH.fullmatch(record["previous"])
    _require(bool(linked), "it does not follow the entry before it: the chain is broken")
    return record


def _canonical(record: object) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _require(len({key for key, _ in pairs}) == len(pairs), "a key twice")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _label(value: object, most: int = _LABEL) -> None:
    _require(isinstance(value, str) and 0 < len(value) <= most and value.isprintable(), f"label {value!r}")


def _about(said: Any) -> None:
    """Owner, description and day of opening: each a text or null, and at least one of them a text."""
    _require(isinstance(said, dict) and set(said) == {"owner", "description", "opened"}, "it does not say whose it is")
    _require(any(value is not None for value in said.values()), "it says nothing of whose it is")
    for key, most in (("owner", _LABEL), ("description", _DESCRIPTION)):
        if said[key] is not None:
            _label(said[key], most)
    if said["opened"] is not None:
        _require(isinstance(said["opened"], str) and date.fromisoformat(said["opened"]).isoformat() == said["opened"],
                 f"{said['opened']!r} is no day")  # fmt: skip


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _plus(first: _filters.Amounts, second: _filters.Amounts) -> _filters.Amounts:
    return first[0] + second[0], first[1] + second[1]
