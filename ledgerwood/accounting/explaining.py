"""Explain a privacy cost in words: the method, its error budget, and its meaning.

docs/explanation/pricing.md#explanation.
"""

import math
from typing import TYPE_CHECKING

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.costs.losses import plans
from ledgerwood.accounting.quotes import SOURCES, Quote, short

if TYPE_CHECKING:
    from ledgerwood.accounting.pricing import Price

_NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "with and without any one unit",
    Adjacency.ZERO_OUT: "with any one unit and with a null record in its place",
    Adjacency.REPLACE_ONE: "with any one unit replaced by another",
}


def explain(priced: "Price", delta: float | None) -> str:
    """Several lines of text; with a `delta`, the number there, its method and its error budget too."""
    event = priced.event
    lines = [
        f"event: {short(event)}",
        f"adjacency: {event.adjacency.value}: data sets {_NEIGHBOURS[event.adjacency]}",
        f"method: {priced.method} ({SOURCES[priced.method]})",
    ]
    if delta is not None:
        lines += _at(priced, delta)
    pure = event.pure_epsilon()
    cap = f"never above the pure sum {pure:.6g}" if math.isfinite(pure) else "at delta 0 there is none"
    lines.append(f"the numbers: each is a proven upper bound, rounded up; epsilon in nats; {cap}")
    lines.append(
        "meaning: whatever else is known, any set of outcomes is at most e^epsilon times as likely, plus delta, in one "
        "of two neighbouring data sets as in the other"
    )
    return "\n".join(lines)


def _at(priced: "Price", delta: float) -> list[str]:
    quote = priced.quote(delta)
    lower, upper = priced.epsilon_interval(delta)
    lines = [f"at delta={delta!r}: epsilon={quote.epsilon!r} nats"]
    if quote.method != priced.method:
        lines.append(f"this point by: {quote.method} ({SOURCES[quote.method]})")
    if quote.order is not None:
        lines.append(f"order: {quote.order:.6g}, the best of all real ones")
    if quote.method == "pld":
        lines += _lattice(priced, quote)
    lines.append(
        f"error budget: the dominating pair's epsilon is between {lower!r} and {upper!r}; "
        f"at most {upper - lower:.3g} nats are slack of the method (a mechanism may be better than its pair)"
    )
    return lines


def _lattice(priced: "Price", quote: Quote) -> list[str]:
    """Each direction's first lattice, and what its errors add to delta, all of it included in the privacy cost."""
    lines = []
    plan = plans.plan(priced.event)
    for direction, curve in zip(plan.directions(), plans.curves(plan, math.log(quote.delta)), strict=True):
        law = curve.law
        width = law.step * (int(law.index[-1]) - int(law.index[0]))
        lines.append(
            f"first grid ({direction.value}): {len(law.index)} losses over {width:.4g} nats in steps of "
            f"{law.step:.3g}, tilted by {law.tilt:.4g}; counted into delta: {abs(law.infinite):.3g} of truncation, "
            f"{curve.misplaced(quote.epsilon):.3g} of rounding and windows, "
            f"a factor of 1 + {math.expm1(law.growth):.3g}"
        )
    return lines
