"""The dashboard's figures: bars of budgets, the total over a ledger's entries, curves of a price, importances."""

from collections.abc import Sequence

import numpy as np

from ledgerwood.dashboard.calculator import CostCurves, Costing
from ledgerwood.dashboard.shown import Total, UsedShare
from ledgerwood.pages.html import Figure, HtmlTable
from ledgerwood.pages.svg import Axis, Element, PlotCurve, element, padded, plot
from ledgerwood.pages.values import least, plain

_WIDE, _HIGH = 200.0, 10.0
_SHOWN_POINTS = 9


def bar(share: UsedShare, of: str) -> Element:
    """A bar that is as full as a limit is used."""
    return element(
        "svg",
        {
            "class": f"bar {share.tone}",
            "viewBox": f"0 0 {_WIDE:g} {_HIGH:g}",
            "preserveAspectRatio": "none",
            "role": "img",
            "aria-label": f"{share.percent} of the {share.name} of {of} is used",
        },
        element("rect", {"class": "track", "x": 0.0, "y": 0.0, "width": _WIDE, "height": _HIGH, "rx": 2.0}),
        element(
            "rect", {"class": "filled", "x": 0.0, "y": 0.0, "width": _WIDE * share.used, "height": _HIGH, "rx": 2.0}
        ),
    )


def plain_bar(share: float, words: str) -> Element:
    """A bar from 0 to 1 beside a number that says the same."""
    return element(
        "svg",
        {
            "class": "bar importance",
            "viewBox": f"0 0 {_WIDE:g} {_HIGH:g}",
            "preserveAspectRatio": "none",
            "role": "img",
            "aria-label": words,
        },
        element("rect", {"class": "track", "x": 0.0, "y": 0.0, "width": _WIDE, "height": _HIGH}),
        element("rect", {"class": "filled", "x": 0.0, "y": 0.0, "width": _WIDE * min(share, 1.0), "height": _HIGH}),
    )


def totals_figure(totals: Sequence[Total], entries: int, budget: float, part: str = "", trusted: int = 0) -> Figure:
    """Epsilon charged after each grant, over the ledger's entries, below the budget; of a `part` of them if named.

    Of a ledger that begins with a checkpoint, from there on: `trusted` entries are before it.
    """
    last = float(max(entries - 1, 1))
    start = [] if trusted else [0.0]
    xs = [*start, *(float(total.entry) for total in totals), last]
    ys = [*start, *(total.epsilon for total in totals), totals[-1].epsilon]
    at_least = "at least " if part else ""
    _, high = padded([budget, *ys], floor=0.0, room=0.1)
    return Figure(
        drawing=plot(
            "figure-totals",
            "Budget over the entries",
            f"Charged so far: epsilon {at_least}{plain(ys[-1])} of {plain(budget)} after {entries:,} entries.",
            Axis(label="entry", low=0.0, high=last, whole=True),
            Axis(label="epsilon (nats)", low=0.0, high=high),
            [
                PlotCurve(xs=(0.0, last), ys=(budget, budget), role="budget"),
                PlotCurve(xs=xs, ys=ys, role="paid", steps=True),
            ],
        ),
        caption="The charged total over the entries" + (f", {part}" if part else ""),
        legend=(("budget", f"budget {plain(budget)}", False), ("paid", "charged total", False)),
        note="A plan is charged as a whole before its first draw. Entries are in their order; a ledger keeps no times."
        + (f" The line begins at a checkpoint: the {trusted:,} entries before it are trusted." if trusted else ""),
        table=HtmlTable(
            header=("entry", "purpose", "epsilon in all"),
            rows=tuple((f"{total.entry:,}", total.purpose, plain(total.epsilon)) for total in totals),
            numbers=frozenset({0, 2}),
        ),
        whole=True,
    )


def profile_figure(answer: Costing, curves: CostCurves) -> Figure:
    """Delta over epsilon, on a scale of powers of ten."""
    floor = min(-1.0, np.floor(np.log10(answer.delta)) - 2.0)
    logs = [float(np.log10(delta)) if delta > 10.0**floor else float("nan") for delta in curves.deltas]
    top = float(curves.epsilons[-1])
    return Figure(
        drawing=plot(
            "figure-profile",
            "Privacy profile",
            f"Delta at each epsilon. At epsilon {plain(answer.epsilon)}, delta is {plain(answer.delta)}.",
            Axis(label="epsilon (nats)", low=0.0, high=top),
            Axis(label="delta, as a power of ten", low=float(floor), high=0.0, whole=True),
            [
                PlotCurve(xs=(0.0, answer.epsilon), ys=(np.log10(answer.delta),) * 2, role="budget"),
                PlotCurve(xs=(answer.epsilon,) * 2, ys=(float(floor), np.log10(answer.delta)), role="budget"),
                PlotCurve(xs=curves.epsilons, ys=logs, role="paid"),
            ],
        ),
        caption="Privacy profile",
        legend=(("paid", "delta at each epsilon", False), ("budget", "the answer above", False)),
        note="One plan has all of these pairs at once: a smaller epsilon holds with a larger delta.",
        table=HtmlTable(
            header=("epsilon", "delta at most"),
            rows=tuple(
                (plain(float(curves.epsilons[k])), plain(float(curves.deltas[k]))) for k in _some(len(curves.epsilons))
            ),
            numbers=frozenset({0, 1}),
        ),
    )


def trade_off_figure(curves: CostCurves) -> Figure:
    """The least false negative rate of any attacker at each false positive rate."""
    final = curves.type_one[-1]
    return Figure(
        drawing=plot(
            "figure-trade-off",
            "Trade-off curve",
            f"An attacker with no false positives misses at least {least(100.0 * curves.type_two[0])} % of the "
            "units that are in the data.",
            Axis(label="false positive rate", low=0.0, high=1.0),
            Axis(label="false negative rate", low=0.0, high=1.0),
            [
                PlotCurve(xs=(0.0, float(final)), ys=(1.0, 0.0), role="chance"),
                PlotCurve(xs=curves.type_one, ys=curves.type_two, role="paid"),
            ],
        ),
        caption="What an attacker can achieve",
        legend=(("paid", "no attacker is below this curve", False), ("chance", "guessing", False)),
        note="An attacker tells whether one unit was in the data. The nearer the curve is to guessing, the better.",
        table=HtmlTable(
            header=("false positive rate", "false negative rate at least"),
            rows=tuple(
                (f"{curves.type_one[k]:.3g}", least(float(curves.type_two[k]))) for k in _some(len(curves.type_one))
            ),
            numbers=frozenset({0, 1}),
        ),
    )


def _some(total: int) -> list[int]:
    return sorted({round(k * (total - 1) / (_SHOWN_POINTS - 1)) for k in range(_SHOWN_POINTS)})
