"""`ledgerwood audit ledger`: recomputes a ledger round by round, compares it with its model, and draws its page."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, final
from urllib.parse import urlsplit

import numpy as np

from ledgerwood import __version__
from ledgerwood.accounting import Composed, Event, Repeated
from ledgerwood.accounting.filters import Charge, Charges, Filter, sums_of
from ledgerwood.accounting.individuals import FULL
from ledgerwood.accounting.ledger import CheckpointEntry, DrawEntry, GrantEntry, LedgerRecord
from ledgerwood.accounting.ledger.state import charged
from ledgerwood.errors import LedgerError, PrivacyError
from ledgerwood.pages.html import Figure, HtmlTable
from ledgerwood.pages.svg import Axis, Bars, PlotCurve, padded, plot
from ledgerwood.pages.values import least, plain
from ledgerwood.report.ledgers.commands import found_report, held_grants, read_record, report_record
from ledgerwood.verification import LedgerReport

if TYPE_CHECKING:
    from ledgerwood.curator.tables.vault_files import Contents
    from ledgerwood.trainers import PrivacyStatement


_DRAWS, _GRANTS = 24, 120
"""Moments that are kept of each kind; the cost of the drawn events may take a composition of losses each time."""
_BINS = 20


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The totals of a ledger after a draw, directly after a grant, or at the checkpoint with which it begins.

    Args:
        draws: number of events that had been drawn.
        entry: index of the last entry so far.
        purpose: the purpose of that entry; of a checkpoint that it is one.
        granted: epsilon of all grants so far, by the filter, at the ledger's delta; this is the charged total.
        drawn: epsilon if only the draws so far had been planned: at most `granted`; None if it was not asked for.
    """

    draws: int
    entry: int
    purpose: str
    granted: float
    drawn: float | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """The model whose statement names an entry of the ledger.

    Args:
        folder, estimator: which model; the folder's own name.
        statement: its privacy statement.
        entry: index of the entry that its head is the hash of.
        later: how many entries follow that one.
    """

    folder: str
    estimator: str
    statement: "PrivacyStatement"
    entry: int
    later: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Individuals:
    """The spending of a stream's units, as shares of one unit's budget: for public data only.

    Args:
        units: their number.
        edges: the edges of the bins, from 0 to 1, shape (k + 1,).
        spent: units in each bin, shape (k,).
        exhausted: units that have nothing left.
    """

    units: int
    edges: tuple[float, ...]
    spent: tuple[int, ...]
    exhausted: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAudit:
    """The result of `ledgerwood audit ledger`.

    Args:
        place: the file's name, or the database's, see `public_name`.
        report: the result of an independent verification.
        moments: granted and drawn, in order.
        backing: the model, if one was named.
        individuals: what single units spent, or in words why that is not here.
    """

    place: str
    report: LedgerReport
    moments: tuple[Moment, ...]
    backing: Backing | None
    individuals: Individuals | str

    def to_record(self) -> dict[str, object]:
        """Plain JSON values."""
        backing = self.backing
        return {
            "report": "ledger",
            "ledgerwood": __version__,
            "ledger": self.place,
            "verified": report_record(self.report),
            "model": None
            if backing is None
            else {
                "folder": backing.folder,
                "estimator": backing.estimator,
                **backing.statement.to_record(),
                "entry": backing.entry,
                "entries_after": backing.later,
            },
            "epsilon_over_rounds": [asdict(moment) for moment in self.moments],
            "individual_budgets": {"absent": self.individuals}
            if isinstance(self.individuals, str)
            else asdict(self.individuals),
        }


def audit_ledger(
    place: str, *, dataset: str | None, model: Path | None, vault: Path | None, public_data: bool
) -> LedgerAudit:
    """Verify a ledger, follow it round by round, and hold it against a model and a row vault.

    Args:
        place: a file, or a database's URL.
        dataset: the data set's label; needed for a database.
        model: folder of the model whose statement must name one of its entries.
        vault: file of what each unit of a stream has left; read only where the data are public.
        public_data: whether the rows are declared public.

    Raises:
        LedgerCorrupted: names the first entry that fails; not for a refuted charge, which the report shows.
        LedgerError: it cannot be read, or model or vault belong to another ledger.
        InvalidParameter: `model` is not a model folder.
    """
    report = found_report(place, dataset=dataset)
    record = read_record(place, dataset)
    if record.head != report.head:  # somebody appended in between: what is shown is what was verified
        report = found_report(record, dataset=dataset)
    return LedgerAudit(
        place=public_name(place),
        report=report,
        moments=moments(record),
        backing=None if model is None else backing(record, public_name(place), model),
        individuals=individuals(record, vault, public_data=public_data),
    )


def public_name(place: str) -> str:
    """A ledger's place without folders, and without a database's user, password and options: pages are passed on."""
    if "://" not in place:
        return Path(place).name
    parts = urlsplit(place)
    return f"{parts.scheme}://{parts.hostname or ''}/{PurePosixPath(parts.path).name}"


def moments(record: LedgerRecord) -> tuple[Moment, ...]:
    """The granted total after each grant and draw, and the cost of the draws so far.

    Of a long ledger some of them: the first, the last, and evenly many between them. Of one that begins with a
    checkpoint first what this states.
    """
    terms, charges, before = record.terms, Charges(), Charges()
    grants: dict[int, GrantEntry] = {}
    drawn: dict[int, Counter[Event]] = {}
    shown_grants = _evenly(sum(isinstance(entry, GrantEntry) for entry in record.entries), _GRANTS)
    shown_draws = _evenly(sum(isinstance(entry, DrawEntry) for entry in record.entries), _DRAWS)
    found: list[Moment] = []
    first, made, done = record.entries[0], 0, 0
    if isinstance(first, CheckpointEntry):
        charges = charged(first.spent, terms.filter)
        for grant, events in held_grants(record):
            grants[grant.index], drawn[grant.index] = grant, events
        before = _less(charges, grants.values(), terms.filter)
    for place, entry in enumerate(record.entries):
        used: float | None = None
        purpose = "checkpoint"
        match entry:
            case GrantEntry():
                made += 1
                grants[entry.index], drawn[entry.index] = entry, Counter()
                charges.append(entry.charge)
                purpose = entry.purpose
                if made not in shown_grants:
                    continue
            case DrawEntry():
                done += 1
                drawn[entry.grant][entry.event] += 1
                purpose = entry.purpose
                if done not in shown_draws:
                    continue
            case CheckpointEntry() if place == 0:
                pass
            case _:
                continue
        granted = terms.filter.spent(charges, terms.budget).epsilon
        if not isinstance(entry, GrantEntry):
            own = before.copy()
            for index, events in drawn.items():
                if events:
                    own.append(_used(record, grants[index], events))
            used = min(terms.filter.spent(own, terms.budget).epsilon, granted)
        draws = done + (first.draws if isinstance(first, CheckpointEntry) else 0)
        found.append(Moment(draws=draws, entry=entry.index, purpose=purpose, granted=granted, drawn=used))
    return tuple(found)


def _less(charges: Charges, held: Iterable[GrantEntry], filter_: Filter) -> Charges:
    """The charges of a checkpoint without those of the grants that it holds: of grants that were drawn to the end."""
    part = Charges()
    for grant in held:
        part.append(grant.charge)
    sums = {
        (amount, power): charges.total(amount, power) - part.total(amount, power)
        for _, amount, power in sums_of(filter_)
    }
    return Charges(len(charges) - len(part), sums)


def _evenly(total: int, most: int) -> set[int]:
    """At most `most` of the numbers from 1 to `total`, both ends among them."""
    return set(np.linspace(1, total, min(most, total)).round().astype(int).tolist()) if total else set()


def backing(record: LedgerRecord, place: str, folder: Path) -> Backing:
    """The entry of a ledger that the model in `folder` closed with.

    Raises:
        LedgerError: the ledger is another model's, or begins with a checkpoint after the model's entry.
        InvalidParameter: not a model's folder.
    """
    from ledgerwood.report.models import load_model

    model = load_model(folder)
    head = model.privacy_.ledger_head
    places = {entry.hash: entry.index for entry in record.entries}
    if record.trusted:
        places[record.entries[0].previous] = record.trusted - 1
        if head not in places:
            raise LedgerError(
                f"the ledger {place} begins with a checkpoint, and none of its {len(record.entries)} entries has the "
                f"hash {head}, with which the privacy statement of {folder} closes: it is another model's ledger, or "
                f"that entry is one of the {record.trusted} before the checkpoint. Give the whole ledger to find out"
            )
    if head not in places:
        raise LedgerError(
            f"the ledger {place} is another model's: none of its {len(places)} entries has the hash {head}, with which "
            f"the privacy statement of {folder} closes"
        )
    return Backing(
        folder=folder.resolve().name,
        estimator=type(model).__name__,
        statement=model.privacy_,
        entry=places[head],
        later=record.trusted + len(record.entries) - 1 - places[head],
    )


def individuals(record: LedgerRecord, vault: Path | None, *, public_data: bool) -> Individuals | str:
    """The spent shares of the units of a stream, or the reason why they are not shown.

    Raises:
        LedgerError: the vault is of another ledger's stream.
        LedgerCorrupted: the vault was cut or altered.
    """
    if not public_data:
        return (
            "The spending of single rows depends on their content, and no budget covers showing it. It is "
            "shown only for data that are declared public (--public-data)."
        )
    if vault is None:
        return (
            "The data are declared public, but no row vault was named (--vault), and a ledger does not know its rows."
        )
    contents = _read_vault(vault)
    draws = {entry.hash for entry in record.entries if isinstance(entry, DrawEntry)}
    if contents.draw is not None and contents.draw not in draws and record.trusted:
        raise LedgerError(
            f"the draw {contents.draw} of the row vault {vault} is not here: it is of another ledger's stream, or the "
            f"draw is one of the {record.trusted} entries before the checkpoint with which the ledger begins. Give the "
            "whole ledger to find out"
        )
    if contents.draw is not None and contents.draw not in draws:
        raise LedgerError(f"the row vault {vault} is of another ledger's stream: its draw {contents.draw} is not here")
    if not len(contents.left):
        return "The row vault is new: no unit has spent anything."
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    counts = np.histogram(1.0 - contents.left / FULL, edges)[0]
    return Individuals(
        units=len(contents.left),
        edges=tuple(edges.tolist()),
        spent=tuple(counts.tolist()),
        exhausted=int(np.sum(contents.left == 0)),
    )


def _read_vault(path: Path) -> "Contents":
    from ledgerwood.curator.tables.vault_files import decode  # of the extra "trainers", as streams are

    try:
        data = path.read_bytes()
    except OSError as error:
        raise LedgerError(f"the row vault {path} cannot be read: {error}") from error
    return decode(data, path)


def _used(record: LedgerRecord, grant: GrantEntry, events: Counter[Event]) -> Charge:
    """The cost of the drawn events by the filter, if they had been the whole plan; at most the grant's charge."""
    planned = Counter[Event]()
    for event, count in grant.event.draws():
        planned[event] += count
    if events == planned:
        return grant.charge
    parts = tuple(Repeated(event, count=count) for event, count in events.items())
    terms = record.terms
    try:
        charge = terms.filter.charge(
            parts[0] if len(parts) == 1 else Composed(parts), [], terms.budget, grant.charge.delta
        )
    except PrivacyError:  # no price of its own: what was paid for the whole plan covers it
        return grant.charge
    return charge if _below(charge, grant.charge) else grant.charge


def _below(charge: Charge, whole: Charge) -> bool:
    """Returns whether no amount is above that of the whole plan's charge."""
    pairs: Sequence[tuple[float | None, float | None]] = [
        (charge.amounts()[name], whole.amounts()[name]) for name in whole.currency()
    ]
    return all(own is not None and limit is not None and own <= limit for own, limit in pairs)


def rounds_figure(moments: Sequence[Moment], budget: float, trusted: int = 0) -> Figure:
    """Epsilon granted and drawn, draw by draw, below the budget; from a checkpoint on if entries are `trusted`."""
    start = [] if trusted else [0.0]
    draws = [float(moment.draws) for moment in moments]
    drawn = [(float(m.draws), m.drawn) for m in moments if m.drawn is not None]
    last = max([*draws, 1.0])
    granted = [moment.granted for moment in moments]
    _, high = padded([budget, *granted], floor=0.0, room=0.1)
    used = drawn if trusted else [(0.0, 0.0), *drawn] if drawn else []
    return Figure(
        drawing=plot(
            "figure-rounds",
            "Epsilon over rounds",
            f"Granted so far: epsilon {plain(granted[-1])} of {plain(budget)} after {draws[-1]:.0f} draws.",
            Axis(label="draws", low=0.0, high=last, whole=True),
            Axis(label="epsilon (nats)", low=0.0, high=high),
            [
                PlotCurve(xs=(0.0, last), ys=(budget, budget), role="budget"),
                PlotCurve(xs=[*start, *draws, last], ys=[*start, *granted, granted[-1]], role="paid", steps=True),
                PlotCurve(xs=[x for x, _ in used], ys=[y for _, y in used], role="drawn"),
            ],
        ),
        caption="Granted and drawn, draw by draw",
        legend=(
            ("budget", f"budget {plain(budget)}", False),
            ("paid", "granted: the charged total", False),
            ("drawn", "drawn: the cost of the draws so far", False),
        ),
        note=(
            "A plan is charged as a whole before its first draw, so the guarantee is the granted line, for "
            "any number of draws. The drawn line shows how the rounds add up; it is not a guarantee if you "
            "stop early, since the outputs were seen."
            + (
                f" Both lines begin at a checkpoint. What it states of the {trusted:,} entries before it is trusted, "
                "and nobody added it up."
                if trusted
                else ""
            )
        ),
        table=HtmlTable(
            header=("entry", "draws so far", "purpose", "granted", "drawn"),
            rows=tuple(
                (
                    str(m.entry),
                    f"{m.draws:,}",
                    m.purpose,
                    plain(m.granted),
                    "-" if m.drawn is None else plain(m.drawn),
                )
                for m in moments
            ),
            numbers=frozenset({0, 1, 3, 4}),
        ),
        whole=True,
    )


def doubts(report: LedgerReport) -> tuple[str, ...]:
    """A sentence for each grant that is not confirmed."""
    return tuple(
        f"Entry {found.entry} is {found.verdict}: {found.reason}."
        for found in report.verdicts
        if found.verdict != "confirmed"
    )


def verdicts_table(report: LedgerReport) -> HtmlTable:
    """The table of the grants' verdicts."""
    return HtmlTable(
        header=("entry", "verdict", "charge", "at least", "at most"),
        rows=tuple(
            (
                str(found.entry),
                found.verdict,
                f"{found.currency} {plain(found.charge)}",
                least(found.lower),
                plain(found.upper),
            )
            for found in report.verdicts
        ),
        numbers=frozenset({0, 3, 4}),
    )


def individuals_figure(found: Individuals) -> Figure:
    """A histogram of the units by the spent share of their budgets."""
    _, high = padded([float(count) for count in found.spent], floor=0.0)
    return Figure(
        drawing=plot(
            "figure-individuals",
            "Individual budgets",
            f"How many of {found.units:,} units have spent which share of their budgets; {found.exhausted:,} have "
            "nothing left.",
            Axis(label="share of a unit's budget that is spent", low=0.0, high=1.0),
            Axis(label="units", low=0.0, high=high),
            [Bars(edges=found.edges, heights=[float(count) for count in found.spent], role="paid")],
        ),
        caption="Individual budgets",
        legend=(("paid", f"{found.units:,} units, {found.exhausted:,} of them with nothing left", True),),
        note="Shown because these data were declared public. For other data it would be an unaccounted release.",
        table=HtmlTable(
            header=("spent from", "to", "units"),
            rows=tuple(
                (f"{low:.2f}", f"{high:.2f}", f"{count:,}")
                for low, high, count in zip(found.edges[:-1], found.edges[1:], found.spent, strict=True)
            ),
            numbers=frozenset({0, 1, 2}),
        ),
        whole=True,
    )
