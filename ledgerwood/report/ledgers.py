"""A ledger file as a person reads it: its terms, its grants, how much of each was drawn."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledgerwood.accounting.ledger import DrawEntry, GrantEntry, LedgerRecord
from ledgerwood.accounting.ledger.jsonl import read_lines
from ledgerwood.report.printing import Fact, plain, print_json, show
from ledgerwood.verification import verify_ledger


def show_ledger(path: Path, *, as_json: bool) -> None:
    """Print the ledger at `path`.

    Raises:
        LedgerError: no such file, or cut short.
        LedgerCorrupted: names the first entry that does not fit.
    """
    record = LedgerRecord.from_lines(tuple(read_lines(path)))
    if as_json:
        print_json({"terms": terms(record), "entries": [json.loads(line) for line in record.lines]})
        return
    show(f"ledger {path}", terms(record), as_json=False)
    drawn = Counter(entry.grant for entry in record.entries if isinstance(entry, DrawEntry))
    table = Table(title="grants", title_justify="left")
    for column in ("entry", "purpose", "epsilon", "delta", "mu", "method", "drawn"):
        table.add_column(column)
    for entry in record.entries:
        if isinstance(entry, GrantEntry):
            planned = sum(count for _, count in entry.event.draws())
            charge = entry.charge
            table.add_row(
                str(entry.index),
                escape(entry.purpose),
                *(plain(value) for value in (charge.epsilon, charge.delta, charge.mu, charge.method)),
                f"{drawn[entry.index]} of {planned}",
            )
    Console().print(table)


def show_verified(path: Path, *, head: str | None, as_json: bool) -> None:
    """Add the ledger at `path` up again by other code, and print what it says.

    Raises:
        LedgerCorrupted: names the first entry that fails.
        LedgerError: the file cannot be read.
    """
    report = verify_ledger(path, head=head)
    show(f"verified: {path}", asdict(report), as_json=as_json)


def terms(record: LedgerRecord) -> dict[str, Fact]:
    """What a ledger was opened with, and what it adds up to by its own figures."""
    opened, spent = record.terms, record.spent()
    return {
        "dataset": opened.dataset,
        "budget_epsilon": opened.budget.epsilon,
        "budget_delta": opened.budget.delta,
        "adjacency": opened.budget.adjacency.value,
        "unit": opened.unit.value,
        "filter": opened.filter.name,
        "spent_epsilon": spent.epsilon,
        "spent_delta": spent.delta,
        "randomness": record.randomness,
        "entries": len(record.entries),
        "head": record.head,
    }
