"""`ledgerwood ledger`: a ledger file as people read it (terms, grants, draws), and its migration to later versions."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledgerwood.accounting import risk
from ledgerwood.accounting.adjacency import Adjacency, PrivacyUnit
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.filters import Filter, filter_record
from ledgerwood.accounting.ledger import CheckpointEntry, DrawEntry, GrantEntry, Ledger, LedgerRecord
from ledgerwood.accounting.ledger.jsonl import read_lines
from ledgerwood.accounting.ledger.state import replay
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError
from ledgerwood.pages.values import least, plain
from ledgerwood.report.printing import Fact, print_json, show
from ledgerwood.report.progress import working
from ledgerwood.verification import LedgerFailure, LedgerReport, sign_ledger, verify_ledger
from ledgerwood.verification.ledgers.federations import compared
from ledgerwood.verification.ledgers.filters import Verdict

_NAMED = 5  # data sets that a message names


def read_record(place: str, dataset: str | None) -> LedgerRecord:
    """The ledger in a file, or of a data set in a database.

    Raises:
        LedgerError: no such file or data set, another data set, or a file that was cut short.
        LedgerCorrupted: names the first entry that does not fit.
    """
    if "://" in place:
        from ledgerwood.accounting.ledger import migrations

        return migrations.read_ledger(place, dataset_of(place, dataset) or "")
    record = LedgerRecord.from_lines(tuple(read_lines(Path(place))))
    if dataset not in (None, record.terms.dataset):
        raise LedgerError(f"the ledger {place} is of data set {record.terms.dataset!r}, not of {dataset!r}")
    return record


def dataset_of(place: str, dataset: str | None) -> str | None:
    """The label of the data set that is meant: the one that is named, or the only one of a database.

    Raises:
        InvalidParameter: a database of none, or of several; the message names them.
    """
    if dataset is not None or "://" not in place:
        return dataset
    from ledgerwood.accounting.ledger import migrations

    found = migrations.datasets(place)
    if len(found) == 1:
        return found[0]
    named = f"{', '.join(map(repr, found[:_NAMED]))}{', ...' if len(found) > _NAMED else ''}" if found else "none"
    raise InvalidParameter(
        f"the database holds {len(found)} data sets ({named}): name one by --dataset; "
        "`ledgerwood ledger list` shows all of them (unit: text)"
    )


def list_ledgers(url: str, *, as_json: bool) -> None:
    """Print each data set of a database with its terms and totals; errors as in `read_record`."""
    from ledgerwood.accounting.ledger import migrations

    rows = [terms(migrations.read_ledger(url, dataset)) for dataset in migrations.datasets(url)]
    if as_json:
        print_json({"ledgers": rows})
        return
    table = Table(title="ledgers", title_justify="left")
    shown = (
        "dataset",
        "budget_epsilon",
        "spent_epsilon",
        "budget_delta",
        "spent_delta",
        "adjacency",
        "entries",
        "head",
    )
    for column in shown:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(escape(plain(row[column])) for column in shown))
    Console().print(table)


def export_ledger(url: str, path: Path, *, dataset: str | None, as_json: bool) -> None:
    """Write a data set's ledger to a file or to standard output; errors as in `read_record` and `LedgerRecord.save`."""
    record = read_record(url, dataset)
    if path == Path("-"):
        print("\n".join(record.lines))  # noqa: T201
        return
    record.save(path)
    show("exported", {"file": str(path), **terms(record)}, as_json=as_json)


def import_file(path: Path, url: str, *, as_json: bool) -> None:
    """Verify a ledger file, and store it in a database; errors as in `verify_ledger` and `import_ledger`.

    Grants that the verifier cannot confirm are stored as they are, and the printed verdict says so.
    """
    from ledgerwood.accounting.ledger import migrations

    record = read_record(str(path), None)
    verdict = verify_ledger(record).verdict
    migrations.import_ledger(record, url)
    show("imported", {"verdict": verdict, **terms(record)}, as_json=as_json)


def show_ledger(place: str, *, dataset: str | None, as_json: bool) -> None:
    """Print the ledger at `place`; errors as in `read_record`."""
    record = read_record(place, dataset)
    if as_json:
        facts = {**terms(record), "meaning": record.meaning}
        print_json({"terms": facts, "entries": [json.loads(line) for line in record.lines]})
        return
    show("ledger", {**terms(record), "meaning": record.meaning}, as_json=False)
    grants, drawn = [], Counter(entry.grant for entry in record.entries if isinstance(entry, DrawEntry))
    for held, before in held_grants(record):
        grants.append(held)
        drawn[held.index] += before.total()
    grants += [entry for entry in record.entries if isinstance(entry, GrantEntry)]
    title = "grants that the checkpoint holds, and those after it" if record.trusted else "grants"
    table = Table(title=title, title_justify="left")
    amounts = sorted(set().union(*(entry.charge.currency() for entry in grants)), reverse=True)  # epsilon before delta
    for column in ("entry", "analyst", "purpose", *amounts, "method", "drawn"):
        table.add_column(column)
    for entry in grants:
        planned = sum(count for _, count in entry.event.draws())
        stated = entry.charge.amounts()
        table.add_row(
            str(entry.index),
            escape(entry.analyst or "-"),
            escape(entry.purpose),
            *(plain(stated[name]) for name in amounts),
            plain(entry.charge.method),
            f"{drawn[entry.index]} of {planned}",
        )
    Console().print(table)


def show_verified(
    place: str,
    *,
    dataset: str | None,
    head: str | None,
    signature: Path | None,
    public_key: Path | None,
    as_json: bool,
    from_checkpoint: bool = False,
) -> Verdict:
    """Verify the ledger at `place` by other code, print what was found of it and of each grant, and return the word.

    Of a ledger that is not in order, what can still be said is printed before the error is raised.

    Raises:
        LedgerCorrupted: names the first entry that fails; not for a refuted charge, which is printed.
        LedgerError: the file cannot be read.
    """
    try:
        with working("verifying the ledger"):
            report = found_report(
                place, dataset=dataset, head=head, signature=signature, public_key=public_key,
                from_checkpoint=from_checkpoint,
            )  # fmt: skip
    except LedgerCorrupted as broken:
        if broken.failure is not None:
            show_failure(broken.failure, as_json=as_json)
        raise
    if as_json:
        print_json(report_record(report))
        return report.verdict
    facts = {key: value for key, value in asdict(report).items() if key != "verdicts"}
    words = {"trust": report.trust or None, "meaning": meaning(report)}
    show("verified", {"verdict": report.verdict, **facts, **words}, as_json=False)
    table = Table(title="grants", title_justify="left")
    for column in ("entry", "verdict", "charge", "at least", "at most", "reason"):
        table.add_column(column, overflow="fold")
    for found in report.verdicts:
        at = "" if found.delta is None else f" at delta {plain(found.delta)}"
        table.add_row(
            str(found.entry),
            found.verdict,
            f"{found.currency} {plain(found.charge)}{at}",
            least(found.lower),
            plain(found.upper),
            escape(found.reason),
        )
    Console().print(table)
    return report.verdict


def show_agreement(
    place: str,
    clients: list[Path],
    *,
    dataset: str | None,
    head: str | None,
    signature: Path | None,
    public_key: Path | None,
    as_json: bool,
) -> Verdict:
    """Verify and compare the ledgers of a federation's server and clients, print what was found, return the word.

    Raises:
        LedgerCorrupted: names the ledger and the first entry that fails; not for what is refuted, which is printed.
        LedgerError: a file cannot be read.
    """
    with working("verifying the ledgers"):
        report = compared(place, clients, dataset=dataset, head=head, signature=signature, public_key=public_key)
    if as_json:
        print_json(
            {
                "verdict": report.verdict,
                "differences": report.differences,
                "notes": report.notes,
                "server": report_record(report.server),
                "clients": [
                    {
                        "client": each.client,
                        "verdict": each.verdict,
                        "sessions": [asdict(one) for one in each.sessions],
                        "notes": each.notes,
                        "ledger": report_record(each.ledger),
                    }
                    for each in report.clients
                ],
            }
        )
        return report.verdict
    server = report.server
    show(
        "compared",
        {
            "verdict": report.verdict,
            "server": f"{place}: {server.verdict}, {server.grants} grants, {server.draws} draws",
            "clients": len(report.clients),
        },
        as_json=False,
    )
    table = Table(title="sessions", title_justify="left")
    for column in ("client", "its ledger", "session", "verdict", "draws", "missed", "answers", "reason"):
        table.add_column(column, overflow="fold")
    for each in report.clients:
        for one in each.sessions:
            table.add_row(
                escape(each.client), each.ledger.verdict, one.session, one.verdict, str(one.draws),
                str(len(one.missed)), "not looked at" if one.answers is None else str(one.answers), escape(one.reason),
            )  # fmt: skip
    console = Console()
    console.print(table)
    for note in [*(f"{each.client}: {note}" for each in report.clients for note in each.notes), *report.notes]:
        console.print(escape(f"not compared: {note}"), highlight=False)
    return report.verdict


def found_report(
    place: str | LedgerRecord,
    *,
    dataset: str | None,
    head: str | None = None,
    signature: Path | None = None,
    public_key: Path | None = None,
    from_checkpoint: bool = False,
) -> LedgerReport:
    """The verifier's report, of a ledger with a refuted charge too; other errors as in `verify_ledger`."""
    try:
        named = dataset_of(place, dataset) if isinstance(place, str) else dataset
        return verify_ledger(
            place, dataset=named, head=head, signature=signature, public_key=public_key,
            from_checkpoint=from_checkpoint,
        )  # fmt: skip
    except LedgerCorrupted as refused:
        if refused.report is None:
            raise
        return refused.report


def report_record(report: LedgerReport) -> dict[str, object]:
    """Plain JSON values."""
    return {"verdict": report.verdict, "trust": report.trust, **asdict(report), "meaning": meaning(report)}


def meaning(report: LedgerReport) -> str:
    """What the total that the verifier recomputed leaves to an attacker, in words."""
    return risk.total_in_words(
        report.epsilon_readded, report.delta_readded, adjacency=Adjacency(report.adjacency),
        unit=PrivacyUnit(report.unit), grants=report.grants, reproducible=report.randomness == "test",
    )  # fmt: skip


def show_failure(failure: LedgerFailure, *, as_json: bool) -> None:
    """Print what can still be said of a ledger that is not in order."""
    if as_json:
        sound = None if failure.sound is None else report_record(failure.sound)
        print_json({"verdict": "broken", **asdict(failure), "sound": sound, "sentences": failure.sentences})
        return
    console = Console()
    for sentence in failure.sentences:
        console.print(escape(sentence), highlight=False)


def write_signature(
    place: str, out: Path, *, private_key: Path, dataset: str | None, allow_unconfirmed: bool, as_json: bool
) -> None:
    """Verify the ledger at `place` and write a signature of its head to a new file; errors as in `sign_ledger`."""
    line = sign_ledger(place, private_key=private_key, dataset=dataset, allow_unconfirmed=allow_unconfirmed)
    with out.open("x", encoding="utf-8") as file:
        file.write(line + "\n")
    signed = json.loads(line)
    show("signed", {key: signed[key] for key in ("dataset", "entries", "head")} | {"file": str(out)}, as_json=as_json)


def terms(record: LedgerRecord) -> dict[str, Fact]:
    """The terms of a ledger, and its total by its own figures."""
    opened, spent = record.terms, record.spent()
    about = opened.about
    return {
        "dataset": opened.dataset,
        "owner": None if about is None else about.owner,
        "description": None if about is None else about.description,
        "opened": None if about is None else about.opened,
        "budget_epsilon": opened.budget.epsilon,
        "budget_delta": opened.budget.delta,
        "adjacency": opened.budget.adjacency.value,
        "unit": opened.unit.value,
        "filter": _filter_text(opened.filter),
        "spent_epsilon": spent.epsilon,
        "spent_delta": spent.delta,
        "format_version": record.version,
        "analysts": ", ".join(f"{label} {share!r}" for label, share in record.analysts) or None,
        "randomness": record.randomness,
        "entries": record.trusted + len(record.entries),
        "entries_trusted": record.trusted,
        "trust": trust(record),
        "head": record.head,
    }


def trust(record: LedgerRecord) -> str | None:
    """What a ledger that begins with a checkpoint takes on trust, in words; None where it takes nothing."""
    if not record.trusted:
        return None
    return (
        f"it begins with a checkpoint: the {record.trusted:,} entries before it are not here, and what they spent is "
        "trusted to whoever wrote the checkpoint"
    )


def held_grants(record: LedgerRecord) -> Iterator[tuple[GrantEntry, Counter[Event]]]:
    """The grants that the checkpoint with which a ledger begins holds, each with what was drawn of it before."""
    first = record.entries[0]
    for held in first.held if isinstance(first, CheckpointEntry) else ():
        drawn = Counter[Event]()
        for event, count in held.grant.event.draws():
            drawn[event] += count
        drawn.subtract(dict(held.left))
        yield held.grant, +drawn


def _filter_text(filter_: Filter) -> str:
    """A filter's name, with its parameter if it has one."""
    record = filter_record(filter_)
    if isinstance(record, str):
        return record
    return " ".join((filter_.name, *(f"{key}={value!r}" for key, value in record.items() if key != "name")))


def add_checkpoint(place: str, *, dataset: str | None, as_json: bool) -> None:
    """Append a checkpoint to the ledger at `place`, and print its totals; errors as in `Ledger.checkpoint`."""
    with Ledger.open(place, dataset=dataset_of(place, dataset)) as ledger:
        entry = ledger.checkpoint()
        record = ledger.record()
    held = {"checkpoint": entry.index, "grants_that_hold_events": len(entry.held)}
    show("checkpoint", held | terms(record), as_json=as_json)


def migrate(place: str, *, dataset: str | None, shares: list[str], dry_run: bool, as_json: bool) -> None:
    """Carry over a database's tables, and with shares a ledger from format version 1 to 2; print what was done.

    Raises:
        InvalidParameter: shares that are not LABEL=SHARE, or do not fit the budget.
        LedgerError: no such ledger, or one that is of version 2; tables of a later version.
        LedgerCorrupted: the ledger does not verify; it stays as it is.
        LedgerWriteFailed: nothing was changed.
    """
    wanted, facts = shares_of(shares), dict[str, Fact](dry_run=dry_run)
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


def shares_of(shares: list[str]) -> dict[str, float]:
    """The analysts' shares by their labels, from LABEL=SHARE.

    Raises:
        InvalidParameter: a share that cannot be read, or is outside (0, 1].
    """
    found: dict[str, float] = {}
    for text in shares:
        label, _, share = (part.strip() for part in text.rpartition("="))
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
