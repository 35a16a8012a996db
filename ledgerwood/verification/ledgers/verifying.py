"""Verify a ledger independently: its chain, its rules, and every charge.

docs/explanation/ledger.md#verification. No code here is shared with the ledger or the accounting that it checks.
"""

import hashlib
import json
import math
import threading
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NoReturn, final

from ledgerwood.accounting.ledger import LedgerRecord
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError
from ledgerwood.verification.ledgers import filters as _filters
from ledgerwood.verification.ledgers import pairs as _pairs
from ledgerwood.verification.ledgers.bounds import divergences, points
from ledgerwood.verification.ledgers.effort import Effort, TooMuchWork, counted
from ledgerwood.verification.ledgers.filters import GrantVerdict, Verdict, is_number, judged, worst
from ledgerwood.verification.ledgers.signatures import check_signature, database_lines, read_signature, signature_of

_ADJACENCIES = ("add-remove", "zero-out", "replace-one")
_KEYS = {
    "open": {"budget", "unit", "filter", "dataset"},
    "grant": {"event", "charge", "purpose"},
    "draw": {"grant", "event", "purpose", "randomness"},
}
_KEYS_OF_2 = {"open": {"analysts"}, "grant": {"analyst"}, "draw": set(), "migrate": {"analysts"}}  # besides
_COMMON = {"version", "index", "previous", "hash", "kind"}
_MALFORMED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
    TooMuchWork,
)
_PRECISION = threading.Lock()  # an mpmath context has one working precision for all threads


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReport:
    """The result of verifying a ledger.

    Args:
        epsilon_readded: nats, the filter's total of all grants at `delta_readded`, each counted as the larger of its
            charge and the verifier's own upper bound: never below the truth. It may exceed `epsilon_budget` a little
            where the two bounds confirm a charge, by any amount where a grant is refuted or unconfirmed, and is
            infinite where a grant has no upper bound.
        delta_readded: probability; of the charges as they are recorded.
        epsilon_budget: nats.
        delta_budget: probability.
        adjacency: the relation under which all of it holds.
        unit: the protected unit: a row, a user, ...
        filter: the composition rule.
        dataset: the public label of the data, if any.
        grants: number of plans that were granted.
        draws: number of events that were drawn.
        randomness: "test" if any draw used reproducible randomness, else "secure".
        head: the last entry's hash, hexadecimal.
        verdicts: the verdict of each grant, in order.
    """

    epsilon_readded: float
    delta_readded: float
    epsilon_budget: float
    delta_budget: float
    adjacency: str
    unit: str
    filter: str
    dataset: str | None
    grants: int
    draws: int
    randomness: Literal["secure", "test"]
    head: str
    verdicts: tuple[GrantVerdict, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of all grants: "refuted", then "unconfirmed", then "confirmed"; the last where none was made."""
        return worst(self.verdicts)


def verify_ledger(
    path_or_record: str | Path | LedgerRecord,
    *,
    dataset: str | None = None,
    head: str | None = None,
    signature: str | Path | None = None,
    public_key: str | Path | None = None,
) -> LedgerReport:
    """Check a ledger file, a data set's ledger in a database, or a model's ledger record, entry by entry.

    It checks form, version, order and hashes; that grants are within the budget by the filter, and draws within their
    grants. It bounds each plan's privacy cost from both sides with a second implementation, and finds the charge
    confirmed, unconfirmed or refuted: see `GrantVerdict`. If grants are unconfirmed, a report is still returned: look
    at its `verdict`.

    Args:
        path_or_record: a ledger file, the URL of a ledger database (extra: sql), or a record.
        dataset: the label that the ledger must have; needed for a database.
        head: the hash that the last entry must have. Without it, removed last entries, or a chain that was rebuilt from
            the start, are not detected.
        signature: a file that `sign_ledger` wrote: the ledger must begin with the entries that were signed.
        public_key: PEM file of the Ed25519 key that the signature must be of.

    Raises:
        LedgerCorrupted: names the first entry that fails. Where that is a refuted charge of a ledger that is otherwise
            in order, it carries the whole report in `report`.
        LedgerError: the file or database cannot be read.
        InvalidParameter: a signature without a key, or the other way round.
    """
    if (signature is None) != (public_key is None):
        raise InvalidParameter("signature and public_key must be given together (unit: files)")
    lines, report = checked(path_or_record, dataset, head)
    if signature is not None and public_key is not None:
        check_signature(lines, read_signature(signature), public_key)
    return report


def sign_ledger(
    path_or_record: str | Path | LedgerRecord,
    *,
    private_key: str | Path,
    dataset: str | None = None,
    allow_unconfirmed: bool = False,
) -> str:
    """Verify a ledger, and sign its head: one line to keep in a file (docs/explanation/ledger.md#signatures).

    Args:
        path_or_record: as in `verify_ledger`.
        private_key: PEM file of an Ed25519 private key, not encrypted.
        dataset: as in `verify_ledger`.
        allow_unconfirmed: sign although the verifier could not confirm every charge. A signature says who vouches for
            the ledger, so that by default only a confirmed one is signed.

    Raises:
        LedgerCorrupted, LedgerError: as in `verify_ledger`, or a charge is unconfirmed; nothing is signed.
        InvalidParameter: no such key.
    """
    lines, report = checked(path_or_record, dataset, None)
    open_ = [found for found in report.verdicts if found.verdict != "confirmed"]
    if open_ and not allow_unconfirmed:
        raise LedgerError(
            f"{len(open_)} of {report.grants} grants are unconfirmed, the first at entry {open_[0].entry}: "
            f"{open_[0].reason}; nothing was signed (allow_unconfirmed=True signs all the same)"
        )
    return signature_of(lines, private_key)


def checked(
    path_or_record: str | Path | LedgerRecord,
    dataset: str | None,
    head: str | None,
    *,
    refute: bool = True,
    known: dict[str, GrantVerdict] | None = None,
) -> tuple[list[str], LedgerReport]:
    """The lines and the report of a ledger; a refuted charge raises only if `refute`.

    `known` has verdicts of other ledgers by filter, event and charge, on which alone a verdict depends: they are taken
    from it, and added to it.
    """
    if isinstance(path_or_record, str) and "://" in path_or_record:
        lines, kept = database_lines(path_or_record, dataset)
    else:
        lines, kept = _lines(path_or_record), None
    with _PRECISION, counted(Effort()) as effort:
        points.forget()
        divergences.forget()
        report = _verified(lines, head, effort, known)
    if kept not in (None, report.head):
        raise LedgerCorrupted(
            f"entry {len(lines) - 1}: the chain ends with hash {report.head}, the database's head is {kept}: "
            "its tail was cut off or added to"
        )
    if dataset not in (None, report.dataset):
        raise LedgerCorrupted(f"entry 0: the ledger is of data set {report.dataset!r}, not of {dataset!r}")
    if refute and report.verdict == "refuted":
        first = next(found for found in report.verdicts if found.verdict == "refuted")
        raise LedgerCorrupted(f"entry {first.entry}: {first.reason}", report=report)
    return lines, report


def _verified(
    lines: list[str], head: str | None, effort: Effort, known: dict[str, GrantVerdict] | None
) -> LedgerReport:
    book: _Book | None = None
    for index, line in enumerate(lines):
        try:
            record = _entry(line, index, book.head if book is not None else "0" * 64)
            if book is None:
                book = _Book(record, effort, known)
            else:
                book.add(record)
        except _MALFORMED as error:
            raise LedgerCorrupted(f"entry {index}: {error}") from error
    if book is None:
        raise LedgerCorrupted("entry 0: the ledger is empty")
    if head is not None and book.head != head:
        raise LedgerCorrupted(
            f"entry {len(lines) - 1}: the ledger ends with hash {book.head}, but {head} was expected: "
            "its tail was cut off or added to, or its chain was rebuilt"
        )
    return book.report()


@dataclass(slots=True)
class _Book:
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
    held: dict[int, dict[str, int]] = field(default_factory=dict)
    shares: dict[str, Fraction] = field(default_factory=dict)
    by_analyst: dict[str, _filters.Amounts] = field(default_factory=dict)

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
        if terms["dataset"] is not None:
            _label(terms["dataset"])
        self.version = terms["version"]
        if self.version == 2:
            self._open_shares(terms["analysts"])
        self.head = terms["hash"]

    def add(self, record: dict[str, Any]) -> None:
        """Take in an entry that is well formed and chained."""
        if record["kind"] == "migrate":
            _require(self.version == 1, "the ledger is of version 2 already")
            self._open_shares(record["analysts"])
            self.version = 2
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
        )  # fmt: skip

    def _grant(self, record: dict[str, Any]) -> None:
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
        self.spent = _plus(self.spent, self.rule.amounts(charge))
        amounts = self.rule.counted(charge, verdict.upper)
        self.found = None if self.found is None or amounts is None else _plus(self.found, amounts)
        with counted(None):
            within = self.rule.fits(self.spent, Fraction(limit["epsilon"]), Fraction(limit["delta"]))
        _require(within, "the grants exceed the budget")
        held: dict[str, int] = {}
        for item, count in _pairs.draws(event):
            text = _canonical(item)
            held[text] = held.get(text, 0) + count
        self.held[record["index"]] = held
        self.grants += 1
        if record["version"] == 2:
            self._spend_share(record["analyst"], charge)

    def _open_shares(self, analysts: Any) -> None:
        """Labels with shares in (0, 1], as the decimals that are written, at most 1 together."""
        _require(isinstance(analysts, dict) and len(analysts) > 0, "no analysts")
        for label, share in analysts.items():
            _label(label)
            _require(is_number(share) and 0 < share <= 1, f"the share of {label!r} is {share!r}")
            self.shares[label] = Fraction(repr(share))
            self.by_analyst[label] = (Fraction(), Fraction())
        _require(sum(self.shares.values()) <= 1, "the shares are more than the whole")

    def _spend_share(self, analyst: Any, charge: dict[str, Any]) -> None:
        """The analyst's own grants stay within that share of the budget, by the same filter."""
        _require(analyst in self.shares, f"no analyst {analyst!r}")
        limit, share = self.terms["budget"], self.shares[analyst]
        self.by_analyst[analyst] = _plus(self.by_analyst[analyst], self.rule.amounts(charge))
        own = Fraction(limit["epsilon"]) * share, Fraction(limit["delta"]) * share
        with counted(None):
            within = self.rule.fits(self.by_analyst[analyst], *own)
        _require(within, f"the grants of {analyst!r} exceed their share")

    def _draw(self, record: dict[str, Any]) -> None:
        _label(record["purpose"])
        _require(record["randomness"] in ("secure", "test"), f"unknown randomness {record['randomness']!r}")
        _require(type(record["grant"]) is int and record["grant"] in self.held, f"no grant {record['grant']!r}")
        held, text = self.held[record["grant"]], _canonical(record["event"])
        _require(held.get(text, 0) > 0, "the event was not granted, or was drawn more often than granted")
        held[text] -= 1
        self.draws += 1
        self.test = self.test or record["randomness"] == "test"


def _lines(path_or_record: str | Path | LedgerRecord) -> list[str]:
    if isinstance(path_or_record, LedgerRecord):
        return list(path_or_record.lines)
    path = Path(path_or_record)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LedgerError(f"the ledger file {path} cannot be read: {error}") from error
    pieces = data.split(b"\n")
    lines = []
    for index, piece in enumerate(pieces[:-1]):
        try:
            lines.append(piece.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise LedgerCorrupted(f"entry {index}: not UTF-8: {error}") from error
    if pieces[-1]:
        raise LedgerCorrupted(f"entry {len(lines)}: the line is cut short: it does not end in a newline")
    return lines


def _entry(line: str, index: int, previous: str) -> dict[str, Any]:
    """The record of one line, its form, its place and its hash checked."""
    record: dict[str, Any] = json.loads(line, object_pairs_hook=_unique, parse_constant=_no_constant)
    _require(isinstance(record, dict), "not a JSON object")
    version: Any = record.get("version")
    _require(type(version) is int and version in (1, 2), f"format version {version!r} is not 1 or 2")
    kind: Any = record.get("kind")
    known = _KEYS if version == 1 else _KEYS_OF_2
    _require(isinstance(kind, str) and kind in known, f"unknown kind {kind!r}")
    own = _KEYS.get(kind, set()) | (_KEYS_OF_2[kind] if version == 2 else set())
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
    _require(record["previous"] == previous, "it does not follow the entry before it: the chain is broken")
    return record


def _canonical(record: object) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _require(len({key for key, _ in pairs}) == len(pairs), "a key twice")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _label(value: object) -> None:
    _require(isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable(), f"label {value!r}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _plus(first: _filters.Amounts, second: _filters.Amounts) -> _filters.Amounts:
    return first[0] + second[0], first[1] + second[1]
