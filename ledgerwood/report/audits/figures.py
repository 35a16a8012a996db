"""The figures of an audit's page, each with its table of numbers."""

import math
from collections.abc import Sequence
from typing import TypeVar

from ledgerwood.pages.html import Figure, HtmlTable
from ledgerwood.pages.svg import Axis, Band, Bars, Layer, PlotCurve, Role, Rung, ladder, padded, plot
from ledgerwood.pages.values import least, plain
from ledgerwood.report.audits.shown import Curves
from ledgerwood.verification.auditing import LowerBound
from ledgerwood.verification.auditing.curves import DrawnTradeOff, Histograms, Roc
from ledgerwood.verification.figures import beside

_ROWS = 60
"""Of a table under a figure; the page's JSON has all of them."""
_RATES = (0.0, 1.0)
T = TypeVar("T")


def bounds_figure(bounds: Sequence[LowerBound], claimed: float, words: str) -> Figure:
    """Every bound as a dot, with the claim; hollow dots need an assumption.

    Args:
        bounds: at least one.
        claimed: the claimed epsilon, inf if there is none.
        words: the label of the claim's line.
    """
    values = [bound.value for bound in bounds]
    _, high = padded([*values, claimed], floor=0.0, room=0.12)
    rungs = [
        Rung(
            value=bound.value,
            name=_short(bound.statistic),
            sure=bound.assumption == "none",
            shown=f"{beside(bound.value, claimed)[0]} at delta {plain(bound.delta)}",
        )
        for bound in bounds
    ]
    promise = f"{words} {plain(claimed)}" if math.isfinite(claimed) else "no epsilon is claimed here"
    drawing = ladder(
        "figure-bounds",
        "Lower bounds on epsilon and the claim",
        f"{promise}; " + "; ".join(f"{rung.name}: at least {rung.shown}" for rung in rungs),
        Axis(label="epsilon (nats)", low=0.0, high=high),
        rungs,
        (claimed, promise),
    )
    return Figure(
        drawing=drawing,
        caption="Lower bounds and the claim",
        legend=(("claimed", promise, False),),
        note=(
            "A full dot holds without assumptions, a hollow one only if the assumption in the table does. A dot to the "
            "right of the line contradicts the claim; one to its left does not prove it."
        ),
        table=bounds_table(bounds),
        whole=True,
    )


def bounds_table(bounds: Sequence[LowerBound]) -> HtmlTable:
    """A table of the bounds with their assumptions."""
    return HtmlTable(
        header=("epsilon at least", "at delta", "alpha", "assumption", "test", "event", "samples"),
        rows=tuple(
            (
                least(bound.value),
                plain(bound.delta),
                plain(bound.alpha),
                bound.assumption,
                bound.statistic,
                bound.event,
                f"{bound.samples:,}",
            )
            for bound in bounds
        ),
        numbers=frozenset({0, 1, 2, 6}),
    )


def trade_off_figure(curves: Curves, alpha: float) -> Figure | None:
    """An attacker's error rates: the least that the claim allows, and those found."""
    layers: list[Layer] = []
    legend: list[tuple[Role, str, bool]] = []
    if curves.roc is not None:
        layers += _found(curves.roc)
        legend += [
            ("found", "found", False),
            ("found", f"the true curve lies between these, confidence {curves.roc.confidence:.4g}", True),
        ]
    if curves.bound is not None:
        layers.append(_trade_off(curves.bound, "bound"))
        legend.append(("bound", "for the epsilon that was found: the true curve touches it or goes below it", False))
    if curves.claimed is not None:
        layers.append(_trade_off(curves.claimed, "claimed"))
        legend.append(("claimed", "claimed: no attacker is below it if the claim is true", False))
    if not layers:
        return None
    layers.insert(0, PlotCurve(xs=_RATES, ys=(1.0, 0.0), role="chance"))
    return Figure(
        drawing=plot(
            "figure-trade-off",
            "Trade-off curve, claimed and found",
            "An attacker's false negative rate against the false positive rate. If the claim is true, every attacker "
            "is on or above the dashed curve. The solid curve is the audit's own attacker.",
            Axis(label="false positive rate", low=0.0, high=1.0),
            Axis(label="false negative rate", low=0.0, high=1.0),
            layers,
        ),
        caption="Trade-off curve: claimed against found",
        legend=tuple(legend),
        note=(
            "The thin diagonal is guessing. This figure is an illustration; the verdict above is that of the one test "
            f"that is named there, at error probability {plain(alpha)}. The found curve's numbers are under the ROC."
        ),
        table=_trade_off_table(curves),
    )


def roc_figure(roc: Roc) -> Figure:
    """True against false positive rate, with the band."""
    return Figure(
        drawing=plot(
            "figure-roc",
            "ROC of the audit's scores with a simultaneous band",
            f"True against false positive rate, by threshold. The area under the curve is {roc.area:.4f}; one half is "
            "guessing. The shaded band holds at all thresholds simultaneously.",
            Axis(label="false positive rate", low=0.0, high=1.0),
            Axis(label="true positive rate", low=0.0, high=1.0),
            [
                PlotCurve(xs=_RATES, ys=_RATES, role="chance"),
                Band(lower=roc.lower, upper=roc.upper, role="found"),
                PlotCurve(xs=roc.false_positive_rate, ys=roc.true_positive_rate, role="found"),
            ],
        ),
        caption="ROC with a simultaneous band",
        legend=(
            ("found", f"area under the curve {roc.area:.4f}", False),
            ("found", f"holds at all thresholds simultaneously, confidence {roc.confidence:.4g}", True),
        ),
        note="Where the band leaves the thin diagonal, the scores tell the two data sets apart.",
        table=HtmlTable(
            header=("false positive rate", "true positive rate", "bounds on the former", "bounds on the latter"),
            rows=tuple(
                (f"{false:.4f}", f"{true:.4f}", f"{left:.4f} to {right:.4f}", f"{low:.4f} to {high:.4f}")
                for false, true, left, right, low, high in _some(
                    list(
                        zip(
                            roc.false_positive_rate,
                            roc.true_positive_rate,
                            roc.false_positive_lower,
                            roc.false_positive_upper,
                            roc.true_positive_lower,
                            roc.true_positive_upper,
                            strict=True,
                        )
                    )
                )
            ),
            numbers=frozenset({0, 1, 2, 3}),
        ),
    )


def scores_figure(scores: Histograms, caption: str, names: tuple[str, str]) -> Figure:
    """Both histograms over each other, as shares of their own kind.

    Args:
        scores: counts in common bins.
        caption: the caption of the figure.
        names: the names of the scores of `with_row` and of those of `without`.
    """
    shares = [[count / max(sum(counts), 1) for count in counts] for counts in (scores.with_row, scores.without)]
    _, high = padded([*shares[0], *shares[1]], floor=0.0)
    return Figure(
        drawing=plot(
            "figure-scores",
            caption,
            f"Two histograms over the same bins: {names[0]} ({sum(scores.with_row):,}), and {names[1]} "
            f"({sum(scores.without):,}). The more they overlap, the less can be told.",
            Axis(label="score", low=scores.edges[0], high=scores.edges[-1]),
            Axis(label="share of its kind", low=0.0, high=high),
            [
                Bars(edges=scores.edges, heights=shares[1], role="without"),
                Bars(edges=scores.edges, heights=shares[0], role="with"),
            ],
        ),
        caption=caption,
        legend=(
            ("with", f"{names[0]} ({sum(scores.with_row):,})", True),
            ("without", f"{names[1]} ({sum(scores.without):,})", True),
        ),
        note="The outermost bins hold what lies beyond them. The more the two overlap, the less can be told.",
        table=HtmlTable(
            header=("from", "to", names[0], names[1]),
            rows=tuple(
                (f"{low:.4g}", f"{high:.4g}", f"{hit:,}", f"{alarm:,}")
                for low, high, hit, alarm in zip(
                    scores.edges[:-1], scores.edges[1:], scores.with_row, scores.without, strict=True
                )
            ),
            numbers=frozenset({0, 1, 2, 3}),
        ),
        whole=True,
    )


def _found(roc: Roc) -> list[Layer]:
    def misses(rates: Sequence[float]) -> list[float]:
        return [1.0 - rate for rate in rates]

    return [
        Band(
            lower=(roc.lower[0], misses(roc.lower[1])),
            upper=(roc.upper[0], misses(roc.upper[1])),
            role="found",
        ),
        PlotCurve(xs=roc.false_positive_rate, ys=misses(roc.true_positive_rate), role="found"),
    ]


def _trade_off(curve: DrawnTradeOff, role: Role) -> PlotCurve:
    return PlotCurve(xs=curve.false_positive_rate, ys=curve.false_negative_rate, role=role)


def _trade_off_table(curves: Curves) -> HtmlTable:
    shown = [
        (name, curve)
        for name, curve in (("claimed", curves.claimed), ("of the bound", curves.bound))
        if curve is not None
    ]
    rows: list[tuple[str, ...]] = []
    if shown:
        rates = shown[0][1].false_positive_rate
        for place in _some(list(range(len(rates)))):
            misses = (least(curve.false_negative_rate[place]) for _, curve in shown)
            rows.append((f"{rates[place]:.4f}", *misses))
        return HtmlTable(
            header=("false alarms", *(f"misses, {name}" for name, _ in shown)),
            rows=tuple(rows),
            numbers=frozenset(range(len(shown) + 1)),
        )
    return HtmlTable(header=("false alarms",), rows=())


def _some(items: list[T]) -> list[T]:
    """Evenly many of a long list, both ends among them."""
    if len(items) <= _ROWS:
        return items
    return [items[round(k * (len(items) - 1) / (_ROWS - 1))] for k in range(_ROWS)]


def _short(statistic: str) -> str:
    return statistic if len(statistic) <= 40 else statistic[:39] + "\N{HORIZONTAL ELLIPSIS}"
