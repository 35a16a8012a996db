"""Read a ledger as a stranger would: its chain, its rules, and every price once more.

docs/explanation/ledger.md#verification. Nothing here shares code with the ledger or with the pricing that it checks.
"""

import hashlib
import json
import math
import threading
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NoReturn, final

from ledgerwood.accounting.ledger import LedgerRecord
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError
from ledgerwood.verification import _filters, _losses, _pairs
from ledgerwood.verification._atoms import mp, mpf
from ledgerwood.verification._databases import database_lines
from ledgerwood.verification._filters import SLACK
from ledgerwood.verification.signatures import check_signature, read_signature, signature_of

_ADJACENCIES = ("add-remove", "zero-out", "replace-one")
_KEYS = {
    "open": {"budget", "unit", "filter", "dataset"},
    "grant": {"event", "charge", "purpose"},
    "draw": {"grant", "event", "purpose", "randomness"},
}
_KEYS_OF_2 = {"open": {"analysts"}, "grant": {"analyst"}, "draw": set(), "migrate": {"analysts"}}  # besides
_COMMON = {"version", "index", "previous", "hash", "kind"}
_PRECISION = threading.Lock()  # an mpmath context has one working precision for all threads


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReport:
    """What a ledger was found to say.

    Args:
        epsilon_readded: nats, the filter's total of all grants at `delta_readded`; at most `epsilon_budget`.
        delta_readded: probability.
        epsilon_budget: nats.
        delta_budget: probability.
        adjacency: the relation under which all of it holds.
        unit: what one protected record is.
        filter: what adds up.
        dataset: the public label of the data, if any.
        grants: how many plans were granted.
        draws: how many events were drawn.
        randomness: "test" if any draw used reproducible randomness, else "secure".
        head: the last entry's hash, hexadecimal.
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


def verify_ledger(
    path_or_record: str | Path | LedgerRecord,
    *,
    dataset: str | None = None,
    head: str | None = None,
    signature: str | Path | None = None,
    public_key: str | Path | None = None,
) -> LedgerReport:
    """Check a ledger file, a data set's ledger in a database, or a model's ledger record, entry by entry.

    Form, version, order, hashes, grants within the budget by the filter, draws within their grants; and each grant's
    price, recomputed by other code, accepted if it is at least the verifier's own lower bound (relative slack 1e-9;
    for composed losses that bound itself lies a little below the truth).

    Args:
        path_or_record: a ledger file, the URL of a ledger database (extra: sql), or a record.
        dataset: the label that the ledger must have; needed for a database.
        head: the hash that the last entry must have; without it, a cut tail and a chain rebuilt whole go unseen.
        signature: a file that `sign_ledger` wrote: the ledger must begin with the entries that were signed.
        public_key: PEM file of the Ed25519 key that the signature must be of.

    Raises:
        LedgerCorrupted: names the first entry that fails.
        LedgerError: the file or database cannot be read.
        InvalidParameter: a signature without a key, or the other way round.
    """
    if (signature is None) != (public_key is None):
        raise InvalidParameter("signature and public_key must be given together (unit: files)")
    lines, report = _checked(path_or_record, dataset, head)
    if signature is not None and public_key is not None:
        check_signature(lines, read_signature(signature), public_key)
    return report


def sign_ledger(
    path_or_record: str | Path | LedgerRecord, *, private_key: str | Path, dataset: str | None = None
) -> str:
    """Verify a ledger, and sign its head: one line to keep in a file (docs/explanation/ledger.md#signatures).

    Args:
        path_or_record: as in `verify_ledger`.
        private_key: PEM file of an Ed25519 private key, not encrypted.
        dataset: as in `verify_ledger`.

    Raises:
        LedgerCorrupted, LedgerError: as in `verify_ledger`; nothing is signed.
        InvalidParameter: no such key.
    """
    lines, _ = _checked(path_or_record, dataset, None)
    return signature_of(lines, private_key)


def _checked(
    path_or_record: str | Path | LedgerRecord, dataset: str | None, head: str | None
) -> tuple[list[str], LedgerReport]:
    if isinstance(path_or_record, str) and "://" in path_or_record:
        lines, kept = database_lines(path_or_record, dataset)
    else:
        lines, kept = _lines(path_or_record), None
    with _PRECISION:
        report = _verified(lines, head)
    if kept not in (None, report.head):
        raise LedgerCorrupted(
            f"entry {len(lines) - 1}: the chain ends with hash {report.head}, the database's head is {kept}: "
            "its tail was cut off or added to"
        )
    if dataset not in (None, report.dataset):
        raise LedgerCorrupted(f"entry 0: the ledger is of data set {report.dataset!r}, not of {dataset!r}")
    return lines, report


def _verified(lines: list[str], head: str | None) -> LedgerReport:
    book: _Book | None = None
    for index, line in enumerate(lines):
        try:
            record = _entry(line, index, book.head if book is not None else "0" * 64)
            if book is None:
                book = _Book(record)
            else:
                book.add(record)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
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
    version: int = field(init=False)
    head: str = field(init=False)
    grants: int = 0
    draws: int = 0
    test: bool = False
    rule: _filters.Rule = field(init=False)
    spent: _filters.Amounts = (Fraction(), Fraction())
    held: dict[int, dict[str, int]] = field(default_factory=dict)
    shares: dict[str, Fraction] = field(default_factory=dict)
    by_analyst: dict[str, _filters.Amounts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        terms: dict[str, Any] = self.terms
        limit: Any = terms.get("budget")
        _require(terms["kind"] == "open", "the first entry does not open a ledger")
        _require(isinstance(limit, dict) and set(limit) == {"epsilon", "delta", "adjacency"}, "no budget")
        _require(_is_number(limit["epsilon"]) and limit["epsilon"] > 0, "the budget's epsilon is not positive")
        _require(_is_number(limit["delta"]) and 0 <= limit["delta"] < 1, "the budget's delta is no probability below 1")
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
        epsilon, delta = self.rule.added_up(self.spent, limit["delta"]) if self.grants else (0.0, 0.0)
        return LedgerReport(
            epsilon_readded=epsilon, delta_readded=delta, epsilon_budget=limit["epsilon"],
            delta_budget=limit["delta"], adjacency=limit["adjacency"], unit=self.terms["unit"],
            filter=self.rule.name, dataset=self.terms["dataset"], grants=self.grants, draws=self.draws,
            randomness="test" if self.test else "secure", head=self.head,
        )  # fmt: skip

    def _grant(self, record: dict[str, Any]) -> None:
        limit, charge, event = self.terms["budget"], record["charge"], record["event"]
        _label(record["purpose"])
        node = _pairs.parse(event)
        _require(_pairs.adjacencies(event) == {limit["adjacency"]}, "the plan's adjacency is not the budget's")
        _require(isinstance(charge, dict), "no charge")
        _check(self.rule, node, charge)
        self.spent = _plus(self.spent, self.rule.amounts(charge))
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
            _require(_is_number(share) and 0 < share <= 1, f"the share of {label!r} is {share!r}")
            self.shares[label] = Fraction(repr(share))
            self.by_analyst[label] = (Fraction(), Fraction())
        _require(sum(self.shares.values()) <= 1, "the shares are more than the whole")

    def _spend_share(self, analyst: Any, charge: dict[str, Any]) -> None:
        """The analyst's own grants stay within that share of the budget, by the same filter."""
        _require(analyst in self.shares, f"no analyst {analyst!r}")
        limit, share = self.terms["budget"], self.shares[analyst]
        self.by_analyst[analyst] = _plus(self.by_analyst[analyst], self.rule.amounts(charge))
        own = Fraction(limit["epsilon"]) * share, Fraction(limit["delta"]) * share
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


def _check(rule: _filters.Rule, node: _pairs.Node, charge: dict[str, Any]) -> None:
    """The recorded charge is in the filter's currency, and at least what is found here."""
    match rule.name:
        case "gdp":
            _check_gdp(node, charge)
        case "zcdp":
            _check_zcdp(node, charge)
        case "renyi":
            _check_renyi(node, charge, rule.parameter)
        case _:
            _check_basic(node, charge)


def _check_zcdp(node: _pairs.Node, charge: dict[str, Any]) -> None:
    """The recorded rho is at least what the plan's divergences at some orders need."""
    _require(set(charge) == {"rho", "method"} and charge["method"] == "zcdp", "fields of the charge")
    _require(_is_number(charge["rho"]) and charge["rho"] >= 0, f"rho {charge['rho']!r}")
    with mp.workdps(50):
        own = _filters.least_rho(node)
        _require(mpf(charge["rho"]) * (1 + mpf(SLACK)) >= own, f"rho is below the recomputed {mp.nstr(own, 17)}")


def _check_renyi(node: _pairs.Node, charge: dict[str, Any], order: float) -> None:
    """The recorded divergence is at least the plan's own, at the filter's order."""
    _require(set(charge) == {"divergence", "method", "order"} and charge["method"] == "renyi", "fields of the charge")
    found = charge["divergence"]
    _require(_is_number(found) and found >= 0, f"divergence {found!r}")
    _require(charge["order"] == order, f"order {charge['order']!r} is not the filter's")
    with mp.workdps(50):
        own = _pairs.renyi(node, mpf(order))
        _require(mpf(found) * (1 + mpf(SLACK)) >= own, f"the divergence is below the recomputed {mp.nstr(own, 17)}")


def _check_basic(node: _pairs.Node, charge: dict[str, Any]) -> None:
    """The recorded (epsilon, delta) is at least what the recorded method gives here."""
    renyi = charge.get("method") == "renyi"
    _require(set(charge) == {"epsilon", "delta", "method"} | ({"order"} if renyi else set()), "fields of the charge")
    epsilon, delta, method = charge["epsilon"], charge["delta"], charge["method"]
    _require(_is_number(epsilon) and epsilon >= 0, f"epsilon {epsilon!r}")
    _require(_is_number(delta) and 0 <= delta < 1, f"delta {delta!r}")
    digits = 50 + (math.ceil(-math.log10(delta)) if delta > 0 else 0)
    with mp.workdps(digits):
        room, slack = mpf(epsilon) * (1 + mpf(SLACK)), mpf(delta) * (1 + mpf(SLACK))
        match method:
            case "pure":
                own = _pure_epsilon_at(_pairs.pure_epsilon(node), mpf(delta))
                _require(room >= own, _too_small(epsilon, own))
            case "profile" | "gdp" | "unsampled":
                _require(delta > 0, "delta is 0, where only a pure price holds")
                found = _pairs.hockey_stick(_pairs.unsampled(node) if method == "unsampled" else node, room)
                _require(found <= slack, f"delta at epsilon {epsilon!r} is {mp.nstr(found, 17)}, above {delta!r}")
            case "pld":
                _require(delta > 0, "delta is 0, where only a pure price holds")
                least = _losses.least_delta(node, float(room), delta)
                _require(
                    least <= slack, f"delta at epsilon {epsilon!r} is at least {mp.nstr(least, 10)}, above {delta!r}"
                )
            case "renyi":
                order = charge["order"]
                _require(_is_number(order) and order > 1, f"order {order!r}")
                _require(delta > 0, "delta is 0, where only a pure price holds")
                own = _renyi_epsilon(_pairs.renyi(node, mpf(order)), mpf(order), mpf(delta))
                _require(room >= own, _too_small(epsilon, own))
            case _:
                raise ValueError(f"unknown method {method!r}")


def _check_gdp(node: _pairs.Node, charge: dict[str, Any]) -> None:
    """The recorded mu is at least the plan's own."""
    _require(set(charge) == {"mu", "method"} and charge["method"] == "gdp", "fields of the charge")
    _require(_is_number(charge["mu"]) and charge["mu"] >= 0, f"mu {charge['mu']!r}")
    with mp.workdps(50):
        square = _pairs.mu_squared(node)
        _require(square is not None, "the plan is no Gaussian pair")
        own = mp.sqrt(square)
        _require(mpf(charge["mu"]) * (1 + mpf(SLACK)) >= own, f"mu is below the recomputed {mp.nstr(own, 17)}")


def _renyi_epsilon(divergence: Any, order: Any, delta: Any) -> Any:
    """The conversion; 0 where delta covers the total variation distance."""
    if delta >= min(mp.sqrt(divergence / 2), mp.sqrt(-mp.expm1(-divergence))):
        return mpf(0)
    return _filters.conversion(divergence, order, delta)


def _pure_epsilon_at(pure: Any, delta: Any) -> Any:
    """The epsilon at delta of the randomised-response pair."""
    _require(not mp.isinf(pure), "the plan has no finite pure epsilon")
    left = 1 - delta * (1 + mp.exp(-pure))
    return pure + mp.log(left) if left > 0 else mpf(0)


def _canonical(record: object) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _require(len({key for key, _ in pairs}) == len(pairs), "a key twice")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _is_number(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _label(value: object) -> None:
    _require(isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable(), f"label {value!r}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _too_small(recorded: float, own: Any) -> str:
    return f"the recorded epsilon {recorded!r} is below the recomputed {mp.nstr(own, 17)}: the price is too small"


def _plus(first: _filters.Amounts, second: _filters.Amounts) -> _filters.Amounts:
    return first[0] + second[0], first[1] + second[1]
