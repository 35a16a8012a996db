"""Forge ledgers with analysts and with a migration, chains made right: is one confirmed with a total that is too small?

A real ledger grants, migrates to analysts and grants again. Each forgery changes its entries and makes all links and
hashes right. Entries that were dropped with all that names them leave a shorter ledger that is right in itself, so
those forgeries are held against the head that a model keeps; the others are not.
"""

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.forged_ledgers import FILTERS, A, chained
from ledgerwood.accounting import Budget, GaussianEvent, LaplaceEvent, Ledger, PrivacyUnit, PureEvent, Repeated
from ledgerwood.accounting.events.base import Event
from ledgerwood.errors import LedgerCorrupted
from ledgerwood.verification import verify_ledger

Record = dict[str, Any]
_AMOUNT = {"basic": "epsilon", "whitehouse": "epsilon", "gdp": "mu", "zcdp": "rho", "renyi": "divergence"}
SHARES = {"ada": 0.375, "ben": 0.375}


@dataclass(frozen=True)
class Book:
    """An honest ledger.

    Args:
        filter: its name.
        records: its entries without index, link and hash.
        head: its last entry's hash.
        least: epsilon; what its grants cost together at the budget's delta, and a millionth less.
    """

    filter: str
    records: list[Record]
    head: str
    least: float


def book(filter_: str, rng: np.random.Generator, *, migrated: bool = True) -> Book:
    """An honest ledger with grants before a migration (or none) and grants of two analysts."""
    budget = Budget(epsilon=40.0, delta=1e-4, adjacency=A)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.ledger.jsonl"
        terms: dict[str, Any] = {
            "dataset": "d", "budget": budget, "unit": PrivacyUnit.ROW, "filter": FILTERS[filter_],
        }  # fmt: skip
        if not migrated:
            terms |= {"analysts": SHARES, "analyst": "ada"}
        with Ledger.open(path, **terms) as ledger:
            if migrated:
                for _ in range(2):
                    _spend(ledger, filter_, rng)
                ledger.migrate(analysts=SHARES, analyst="ada")
            for _ in range(2):
                _spend(ledger, filter_, rng)
        with Ledger.open(path, dataset="d", analyst="ben") as ledger:
            _spend(ledger, filter_, rng)
            record, least = ledger.record(), ledger.spent().epsilon
    bare = [
        {key: value for key, value in json.loads(line).items() if key not in ("index", "previous", "hash")}
        for line in record.lines
    ]
    return Book(filter_, bare, record.head, least * (1.0 - 1e-6))


def _spend(ledger: Ledger, filter_: str, rng: np.random.Generator) -> None:
    event: Event = GaussianEvent(noise_multiplier=float(rng.uniform(4.0, 9.0)), adjacency=A)
    plan: Event = Repeated(event, count=2)
    if filter_ != "gdp" and rng.random() < 0.5:
        size = float(rng.uniform(0.2, 0.5))
        plan = event = (
            PureEvent(epsilon=size, adjacency=A)
            if filter_ == "zcdp"
            else LaplaceEvent(noise_multiplier=1.0 / size, adjacency=A)
        )
    delta = 1e-6 if filter_ in ("basic", "whitehouse") else None
    ledger.grant(plan, purpose="p", delta=delta).draw(event, purpose="q")


# --------------------------------------------------------------------------------------------- forgeries

Forgery = Callable[[list[Record], str], list[Record]]


def _places(records: list[Record], kind: str) -> list[int]:
    return [place for place, record in enumerate(records) if record["kind"] == kind]


def _charged(record: Record, amount: str, change: float) -> Record:
    return {**record, "charge": {**record["charge"], amount: record["charge"][amount] + change}}


def _moved(records: list[Record], amount: str) -> list[Record]:
    """Part of the last grant's charge is booked on another analyst's."""
    places = _places(records, "grant")
    found, part = list(records), 0.5 * records[places[-1]]["charge"][amount]
    found[places[-1]] = _charged(found[places[-1]], amount, -part)
    found[places[-2]] = _charged(found[places[-2]], amount, part)
    return found


def _halved(records: list[Record], amount: str) -> list[Record]:
    place = _places(records, "grant")[0]
    found = list(records)
    found[place] = _charged(found[place], amount, -0.5 * found[place]["charge"][amount])
    return found


def _with(kind: str, **fields: Any) -> Forgery:
    """Every entry of a kind with fields changed or added."""
    return lambda records, _: [{**record, **fields} if record["kind"] == kind else record for record in records]


def _of_ada(records: list[Record], _: str) -> list[Record]:
    return [{**record, "analyst": "ada"} if "analyst" in record else record for record in records]


def _without(records: list[Record], dropped: set[int]) -> list[Record]:
    """The entries but some, and but the draws of those; draws name the new places of their grants."""
    gone = dropped | {place for place in _places(records, "draw") if records[place]["grant"] in dropped}
    places = {place: new for new, place in enumerate(k for k in range(len(records)) if k not in gone)}
    return [
        {**record, "grant": places[record["grant"]]} if record["kind"] == "draw" else record
        for place, record in enumerate(records)
        if place not in gone
    ]


def _grant_dropped(records: list[Record], _: str) -> list[Record]:
    """The draws of the grant that is left out stay."""
    place = _places(records, "grant")[0]
    return records[:place] + records[place + 1 :]


def _second(records: list[Record], **fields: Any) -> list[Record]:
    migration = {"kind": "migrate", "version": 2, "analysts": {"ada": 1.0}} | fields
    return [*records, migration]


def _raised(records: list[Record], _: str) -> list[Record]:
    budget = {**records[0]["budget"], "epsilon": 4000.0}
    return [*records, {**records[0], "budget": budget}]


def _drawn_again(records: list[Record], _: str) -> list[Record]:
    place = _places(records, "draw")[0]
    return records + [{**records[place], "version": records[-1]["version"]}] * 2


def _overspent(records: list[Record], _: str) -> list[Record]:
    return records + [records[_places(records, "grant")[-1]]] * 400


FORGERIES: dict[str, Forgery] = {
    "a charge moved to another analyst": _moved,
    "a charge before the analysts halved": _halved,
    "every grant made one analyst's": _of_ada,
    "a grant of an unknown analyst": _with("grant", analyst="eve"),
    "a grant of nobody": _with("grant", analyst=None),
    "a grant dropped, its draw kept": _grant_dropped,
    "a budget in the migration": _with("migrate", budget={"epsilon": 4000.0, "delta": 0.1, "adjacency": "add-remove"}),
    "a spent total in the migration": _with("migrate", spent=0.0),
    "shares above the whole": _with("migrate", analysts={"ada": 1.0, "ben": 1.0}),
    "a share that is no number": _with("migrate", analysts={"ada": True, "ben": "1"}),
    "a migration of another version": _with("migrate", version=1),
    "a second migration": lambda records, _: _second(records),
    "a second opening with a larger budget": _raised,
    "a draw beyond what was granted": _drawn_again,
    "more grants than the budget": _overspent,
}
"""Names of changes of (entries, the amount that a charge states)."""

HEADED: dict[str, Forgery] = {
    "a grant dropped with its draws": lambda records, _: _without(records, {_places(records, "grant")[0]}),
    "everything before the analysts dropped": lambda records, _: _without(
        records, {k for k in _places(records, "grant") if "analyst" not in records[k]}
    ),
    "the last grant cut off": lambda records, _: _without(records, {_places(records, "grant")[-1]}),
    "an opening with a larger budget": _with(
        "open", budget={"epsilon": 4000.0, "delta": 1e-4, "adjacency": "add-remove"}
    ),
}
"""Those that leave a ledger that is right in itself: only the head tells."""


@dataclass(frozen=True)
class Finding:
    """The verifier's word of a forged ledger ("refused" where it does not read it), and its total."""

    word: str
    epsilon: float


def verified(records: list[Record], head: str | None = None) -> Finding:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.ledger.jsonl"
        path.write_text("".join(line + "\n" for line in chained(records)), encoding="utf-8")
        try:
            report = verify_ledger(path, head=head)
        except LedgerCorrupted as error:
            if error.report is None:
                return Finding("refused", float("nan"))
            report = error.report
        return Finding(report.verdict, report.epsilon_readded)


def forged(found: Book) -> dict[str, tuple[Finding, bool]]:
    """What the verifier finds of each forgery, and whether it stands: not confirmed, or with a total that is enough."""
    amount, results = _AMOUNT[found.filter], {}
    for name, change in (FORGERIES | HEADED).items():
        records = change(found.records, amount)
        if records == found.records:
            continue  # it has no migration
        finding = verified(records, found.head if name in HEADED else None)
        results[name] = finding, finding.word != "confirmed" or finding.epsilon >= found.least
    return results
