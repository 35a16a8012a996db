"""Ledgers and their databases, carried over to later versions, as the command line tells it."""

from rich.console import Console

from ledgerwood.accounting.ledger import Ledger, LedgerRecord
from ledgerwood.accounting.ledger.state import replay
from ledgerwood.errors import InvalidParameter
from ledgerwood.report.ledgers.commands import read_record, terms
from ledgerwood.report.printing import Fact, show
from ledgerwood.verification import verify_ledger


def migrate(place: str, *, dataset: str | None, shares: list[str], dry_run: bool, as_json: bool) -> None:
    """Carry over a database's tables, and with shares a ledger from format version 1 to 2; print what was done.

    Raises:
        InvalidParameter: shares that are no LABEL=SHARE, or do not fit the budget.
        LedgerError: no such ledger, or one that is of version 2; tables of a later version.
        LedgerCorrupted: the ledger does not verify; it stays as it is.
        LedgerWriteFailed: nothing was changed.
    """
    wanted, facts = _parsed(shares), dict[str, Fact](dry_run=dry_run)
    if "://" in place:
        facts |= _tables(place, dry_run=dry_run, aloud=not as_json)
    if wanted:
        verify_ledger(place, dataset=dataset)
        facts |= terms(_shared(place, dataset, wanted, dry_run=dry_run))
    elif dataset is not None or "://" not in place:
        facts |= terms(read_record(place, dataset))
    show("would be migrated" if dry_run else "migrated", facts, as_json=as_json)


def _tables(url: str, *, dry_run: bool, aloud: bool) -> dict[str, Fact]:
    from ledgerwood.accounting.ledger import migrations

    told = Console(stderr=True, soft_wrap=True)
    report = migrations.migrate_tables(
        url, dry_run=dry_run, told=lambda text: told.print(text, markup=False, highlight=False) if aloud else None
    )
    return {
        "tables_found": report.found,
        "tables_now": report.now,
        "steps": "; ".join(report.steps) or None,
        "chains_checked": report.datasets,
    }


def _shared(place: str, dataset: str | None, shares: dict[str, float], *, dry_run: bool) -> LedgerRecord:
    """The ledger after its migration; by a dry run, in memory only."""
    if dry_run:
        state = replay(read_record(place, dataset).lines)
        state.commit(state.propose_migration(shares))
        return LedgerRecord(entries=tuple(state.entries))
    with Ledger.open(place, dataset=dataset) as ledger:
        ledger.migrate(analysts=shares)
        return ledger.record()


def _parsed(shares: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in shares:
        label, _, share = text.rpartition("=")
        try:
            number = float(share)
        except ValueError:
            number = 0.0
        if not label or label in found or not 0.0 < number <= 1.0:
            raise InvalidParameter(
                f"share={text!r} must be LABEL=SHARE with a share in (0, 1], each label once (unit: share)"
            )
        found[label] = number
    return found
