"""The figures of a ledger's page, each with its table of numbers."""

from collections.abc import Sequence

from ledgerwood.report.ledgers.audits import Individuals, Moment
from ledgerwood.report.pages.html import Figure, HtmlTable
from ledgerwood.report.pages.svg import Axis, Bars, PlotCurve, padded, plot
from ledgerwood.report.printing import least, plain
from ledgerwood.verification import LedgerReport


def rounds_figure(moments: Sequence[Moment], budget: float) -> Figure:
    """Epsilon granted and drawn, draw by draw, below the budget."""
    draws = [float(moment.draws) for moment in moments]
    drawn = [(float(m.draws), m.drawn) for m in moments if m.drawn is not None]
    last = max([*draws, 1.0])
    granted = [moment.granted for moment in moments]
    _, high = padded([budget, *granted], floor=0.0, room=0.1)
    used = [(0.0, 0.0), *drawn] if drawn else []
    return Figure(
        drawing=plot(
            "figure-rounds",
            "Epsilon over rounds",
            f"Granted so far: epsilon {plain(granted[-1])} of {plain(budget)} after {draws[-1]:.0f} draws.",
            Axis(label="draws", low=0.0, high=last, whole=True),
            Axis(label="epsilon (nats)", low=0.0, high=high),
            [
                PlotCurve(xs=(0.0, last), ys=(budget, budget), role="budget"),
                PlotCurve(xs=[0.0, *draws, last], ys=[0.0, *granted, granted[-1]], role="paid", steps=True),
                PlotCurve(xs=[x for x, _ in used], ys=[y for _, y in used], role="drawn"),
            ],
        ),
        caption="Granted and drawn, draw by draw",
        legend=(
            ("budget", f"budget {plain(budget)}", False),
            ("paid", "granted: what has been paid", False),
            ("drawn", "drawn: what the draws so far would cost by themselves", False),
        ),
        note=(
            "A plan is paid for as a whole before its first draw, so that the guarantee is the granted line, whatever "
            "was drawn of it. The drawn line shows how the rounds add up; it is no guarantee of its own, for who stops "
            "early has seen the outputs."
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
    """What was found of each grant."""
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
    """How many units have spent which share of their budgets."""
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
