"""A privacy cost in words: its method, its error budget, the sampler that it is for, and what it means.

docs/explanation/pricing.md#explanation.
"""

import math
from typing import TYPE_CHECKING

from ledgerwood.accounting import risk
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.costs.losses import maxima, plans
from ledgerwood.accounting.events import base
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.composition import Repeated
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.sampled.allocation import RandomAllocation
from ledgerwood.accounting.events.sampled.fixed_size import ReplaceOneSampled
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.accounting.quotes import SOURCES, Quote, short
from ledgerwood.errors import UnsupportedEvent

if TYPE_CHECKING:  # `Price.explain` is this module's `explain`
    from ledgerwood.accounting.pricing import Price

_NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "with and without any one unit",
    Adjacency.ZERO_OUT: "with any one unit and with a null record in its place",
    Adjacency.REPLACE_ONE: "with any one unit replaced by another",
}
_MOST_BATCHES = 1_000_000  # of a pass, and passes, of a shuffled run beside a privacy cost


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
    lines += _sampler(event, delta)
    pure = event.pure_epsilon()
    cap = f"never above the pure sum {pure:.6g}" if math.isfinite(pure) else "at delta 0 there is none"
    lines.append(f"the numbers: each is a proven upper bound, rounded up; epsilon in nats; {cap}")
    lines.append(
        "meaning: for any other knowledge of an attacker, any set of outcomes is at most e^epsilon times as likely, "
        "plus delta, in one of two neighbouring data sets as in the other"
    )
    lines.append(f"in words: {risk.in_words(priced)}")
    return "\n".join(lines)


def _sampler(event: Event, delta: float | None) -> list[str]:
    """Which sampler the cost is for; with a delta, what the same noise costs at least in a shuffled run."""
    try:
        parts = list(base.walk(event))
    except UnsupportedEvent:  # of a class from outside, whose samples nobody knows
        return []
    lines = []
    if any(isinstance(part, PoissonSampled | ReplaceOneSampled) and part.sampling_rate < 1.0 for part in parts):
        lines.append(
            "sampler: Poisson samples, each unit in each sample by a secret coin of its own; the cost is not that of a "
            "loader that shuffles the rows and cuts them into batches, which may be much larger"
        )
    if any(isinstance(part, RandomAllocation) for part in parts):
        lines.append(
            "sampler: a random allocation, where each unit draws its steps in secret and independently of others; the "
            "cost is not that of a loader that shuffles the rows and cuts them into batches of a fixed size"
        )
    match event:
        case Repeated(PoissonSampled(GaussianEvent() as noise, sampling_rate=rate), count=count):
            steps = max(round(1.0 / rate), 1) if rate > 1.0 / _MOST_BATCHES else _MOST_BATCHES
            epochs = min(count // steps, _MOST_BATCHES)
            if delta and epochs:
                low = maxima.epsilon(noise.adjacency, noise.noise_multiplier, steps, epochs, delta)
                lines.append(
                    f"shuffled instead: {steps:,} batches a pass, passes: {epochs:,}; the same noise costs at least "
                    f"epsilon={low:.6g} for some rows (proven, docs/explanation/shuffling.md); see ShuffledBatches"
                )
    return lines


def _at(priced: "Price", delta: float) -> list[str]:
    quote = priced.quote(delta)
    lower, upper = priced.epsilon_interval(delta)
    lines = [f"at delta={delta!r}: epsilon={quote.epsilon!r} nats"]
    if quote.method != priced.method:
        lines.append(f"method at this point: {quote.method} ({SOURCES[quote.method]})")
    if quote.order is not None:
        lines.append(f"order: {quote.order:.6g}, the best of all real orders")
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
