"""From an event's node to its pair in floats, from either side (pair.py): leaves, samples, groups, compositions.

docs/explanation/ledger.md#verification-cells.

A `ReplaceOneSampled` is checked for consistency: a replaced row never loses more than two presences of a row. With h
the profile of removing a row and g that of adding one, that of a replaced row is at most inf_s h(s) + e^s g(t - s);
every s gives a bound from above, so what exceeds it cannot be. docs/explanation/events.md#two-presences.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ledgerwood.verification.ledgers.atoms import mp
from ledgerwood.verification.ledgers.bounds import leaves
from ledgerwood.verification.ledgers.bounds import pair as profiles
from ledgerwood.verification.ledgers.bounds.pair import (
    NOTHING,
    LossPair,
    Side,
    averaged,
    compressed,
    heights,
    mixed,
    revealing,
    sampled,
    times,
    trimmed,
)
from ledgerwood.verification.ledgers.effort import spend
from ledgerwood.verification.ledgers.pairs import Node, mu_squared
from ledgerwood.verification.ledgers.pairs.combined import Allocated, GroupsNode, Replaced, Sampled, Several
from ledgerwood.verification.ledgers.pairs.continuous import (
    Gaussian,
    Laplace,
    Mixture,
    Pure,
    Range,
    Staircase,
    TruncatedLaplace,
)
from ledgerwood.verification.ledgers.pairs.integers import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    SelectedPoisson,
    SelectionNode,
    Skellam,
    SkellamVector,
    StatedCurve,
    StatedTable,
)

FACTOR = 640  # outputs of each factor of a product
_MOST_PRODUCTS = 600  # of one grant
_HELD = 9e5  # nats


class Unheld(Exception):
    """Floats, or a bounded number of outputs, cannot hold a pair from above; says which event and why."""


@dataclass(slots=True)
class Work:
    """The remaining work for one grant, and the resolution of the bounds.

    Args:
        products: products of pairs that may still be taken.
        bins: outputs of a leaf.
        factor: outputs of each factor of a product.
        order: the order of the moment by which one of several pairs is chosen from below.
        known: pairs that were made.
    """

    products: int = _MOST_PRODUCTS
    bins: int = leaves.BINS
    factor: int = FACTOR
    order: float = 2.0
    known: dict[tuple[Node, float, Side], LossPair] = field(default_factory=dict)

    def spend(self) -> bool:
        """Take one product; False where none is left."""
        self.products -= 1
        return self.products >= 0


def pair_of(node: Node, log_negligible: float, side: Side, work: Work) -> LossPair:
    """The node's pair as a lower or an upper bound; outputs of mass below exp(log_negligible) are neglected.

    A lower bound is any pair that the event dominates; it is empty if floats cannot hold the pair.

    Raises:
        Unheld: for an upper bound, if floats cannot hold the pair.
    """
    key = (node, log_negligible, side)
    if key not in work.known:
        work.known[key] = _pair_of(node, log_negligible, side, work)
    return work.known[key]


def _pair_of(node: Node, log_negligible: float, side: Side, work: Work) -> LossPair:
    spend(300_000 + 200 * work.bins)
    reach = math.sqrt(-2.0 * log_negligible) + 1.0
    far, bins = 60.0 - log_negligible, work.bins
    found: LossPair | None
    match node:
        case Gaussian():
            found = leaves.gaussian(_held(float(mp.sqrt(node.square)), 900.0, side), reach, side, bins)
        case Mixture():
            found = leaves.mixture(_in_floats(node), reach, side, bins)
        case Laplace():
            found = leaves.laplace(_held(float(1 / node.scale), _HELD, side), far, side, bins)
        case TruncatedLaplace():
            found = leaves.truncated_laplace(float(1 / node.scale), float(node.bound), far, side, bins)
        case Pure():
            found = leaves.response(_held(float(node.epsilon), _HELD, side), node.categories)
        case Range():
            found = leaves.bounded_range(float(node.epsilon), far, side, bins, work.order)
        case Staircase():
            found = leaves.staircase(node.atoms()) if node.epsilon < 1e5 else None
        case DiscreteLaplace():
            found = leaves.discrete_laplace(float(1 / node.scale), node.sensitivity, side, bins)
        case DiscreteGaussian():
            found = leaves.discrete_gaussian(float(node.scale), node.sensitivity, reach, side)
        case Skellam():
            found = leaves.skellam(float(node.variance), node.sensitivity, log_negligible, side)
        case SkellamVector():
            found = _stated(node, log_negligible, side)
        case Approximate():
            inner = leaves.response(float(node.epsilon))
            found = None if inner is None else revealing(inner, float(node.delta))
        case StatedTable():
            found = leaves.table(node, side)
        case StatedCurve() | SelectionNode() | SelectedPoisson():
            found = _stated(node, log_negligible, side)
        case Sampled():
            found = sampled(pair_of(node.inner, log_negligible, side, work), float(node.rate))
        case Allocated():
            found = _allocated(node, log_negligible, side, work)
        case Replaced():
            found = _replaced(node, log_negligible, side, work)
        case GroupsNode():
            found = _groups(node, log_negligible, side, work)
        case Several():
            found = _product(node, log_negligible, side, work)
        case _:
            raise ValueError(f"no losses are known for {node!r}")
    return found if found is not None else _fallback(node, side)


def _in_floats(node: Mixture) -> tuple[list[tuple[float, float]], float]:
    """Shifts with the logarithms of their probabilities, and that of no shift."""
    rest = node.rest()
    return [(float(mu), float(mp.log(p))) for mu, p in node.shifts], float(mp.log(rest)) if rest > 0 else -math.inf


def _held(loss: float, most: float, side: Side) -> float:
    """From below, a loss that floats hold: more noise is dominated by less."""
    return min(loss, most) if side == "lower" else loss


def _fallback(node: Node, side: Side) -> LossPair:
    """From above the randomised response of the pure epsilon; from below nothing."""
    if side == "lower":
        return NOTHING
    pure = node.pure_epsilon()
    found = None if mp.isinf(pure) else leaves.response(float(pure) * (1.0 + 1e-14))
    if found is None:
        raise Unheld(f"{name(node)} has losses that floats do not hold")
    return found


def _stated(node: Node, log_negligible: float, side: Side) -> LossPair | None:
    """Known by divergences only: from below a Gaussian, or scalar noise, that keeps the statement."""
    if side == "upper":
        if mp.isinf(node.pure_epsilon()):
            raise Unheld(f"{name(node)} is known by its Renyi divergences only, not by its losses")
        return None
    reach = math.sqrt(-2.0 * log_negligible) + 1.0
    match node:
        case StatedCurve():
            rho = node.rho if node.rho is not None else min(value / order for order, value in node.points)
            return leaves.gaussian(math.sqrt(2.0 * float(rho)), reach, side, leaves.BINS)
        case SkellamVector():
            return leaves.skellam(float(node.variance), int(node.sensitivity), log_negligible, side)
    return None


def _replaced(node: Replaced, log_negligible: float, side: Side, work: Work) -> LossPair | None:
    replaced = pair_of(node.replaced, log_negligible, side, work)
    if node.present is None:
        return profiles.replaced(replaced, float(node.rate))
    present = pair_of(node.present, log_negligible, side, work)
    return profiles.replaced_or_absent(replaced, present, float(node.rate), side)


def _groups(node: GroupsNode, log_negligible: float, side: Side, work: Work) -> LossPair | None:
    if node.probabilities is not None:
        chosen = [
            (pair_of(member, log_negligible, side, work), float(p))
            for member, p in zip(node.members, node.probabilities, strict=True)
            if p > 0
        ]
        found = mixed(chosen)
        return None if found is None else compressed(found, 2 * leaves.BINS, side)
    members = [pair_of(member, log_negligible, side, work) for member in dict.fromkeys(node.members)]
    if side == "lower":  # any one group is dominated by the worst
        return max(members, key=_spread)
    return profiles.worst(members)


def _allocated(node: Allocated, log_negligible: float, side: Side, work: Work) -> LossPair | None:
    """One step of each unit: an average of pairs. Of several, their blocks from above.

    From below, what a part of the releases tells: the sum of Gaussian ones, else the first one, a Poisson sample.
    """
    if node.selected > 1 and side == "lower":
        square = mu_squared(node.inner)
        if square is not None:
            mu = float(mp.sqrt(square)) * node.selected / math.sqrt(node.steps) * (1.0 - 2.0**-50)
            return leaves.gaussian(_held(mu, 900.0, side), math.sqrt(-2.0 * log_negligible) + 1.0, side, work.bins)
        rate = node.selected / node.steps * (1.0 - 2.0**-50)
        return sampled(pair_of(node.inner, log_negligible, side, work), rate)
    one = pair_of(node.inner, log_negligible, side, work)
    length, longer = divmod(node.steps, node.selected)
    blocks = [(length + 1, longer), (length, node.selected - longer)]
    factors = [(_averaged(one, size, log_negligible, side, work), count) for size, count in blocks if count]
    return factors[0][0] if node.selected == 1 else power_product(factors, log_negligible, side, work)


def _averaged(one: LossPair, steps: int, log_negligible: float, side: Side, work: Work) -> LossPair:
    """The average of `steps` independent ratios by its halves: of 2n steps of n and n, of 2n + 1 of n and n + 1."""
    least = log_negligible - math.log(steps)
    many, more = one, one  # of n and of n + 1 steps; both of the first bit's
    count = 0
    for bit in f"{steps:b}":
        if count == 0:
            many, more, count = one, _average_of(one, one, 0.5, least, side, work), 1
            continue
        odd = _average_of(many, more, count / (2 * count + 1), least, side, work)
        if bit == "1":
            many, more = odd, _average_of(more, more, 0.5, least, side, work)
        else:
            many, more = _average_of(many, many, 0.5, least, side, work), odd
        count = 2 * count + int(bit)
    return many


def _average_of(a: LossPair, b: LossPair, share: float, least: float, side: Side, work: Work) -> LossPair:
    a, b = compressed(a, work.factor, side), compressed(b, work.factor, side)
    spend(300 * a.loss.size * b.loss.size)
    found = averaged(a, b, share)
    if found is None:
        raise Unheld("a random allocation has losses that floats do not hold")
    return compressed(trimmed(found, least, side), work.factor, side)


def _spread(pair: LossPair) -> float:
    return pair.lost_p + float(np.exp(pair.log_p) @ np.minimum(pair.loss**2, 1e6))


def _product(node: Several, log_negligible: float, side: Side, work: Work) -> LossPair:
    """All draws of one composition as one pair: every bit of every count, from the highest down."""
    counts: dict[Node, int] = {}
    for part, count in node.parts:
        counts[part] = counts.get(part, 0) + count
    return power_product(
        [(pair_of(part, log_negligible, side, work), count) for part, count in counts.items()],
        log_negligible,
        side,
        work,
    )


def power_product(factors: list[tuple[LossPair, int]], log_negligible: float, side: Side, work: Work) -> LossPair:
    """The product of powers of pairs: square, and multiply by the factors whose count has the next lower bit.

    Raises:
        Unheld: from above, where it takes more products than a grant may.
    """
    small = [(compressed(trimmed(pair, log_negligible, side), work.factor, side), count) for pair, count in factors]
    total: LossPair | None = None
    for bit in range(max(count for _, count in small).bit_length() - 1, -1, -1):
        if total is not None:
            total = _joined(total, total, log_negligible, side, work)
        for pair, count in small:
            if count >> bit & 1:
                total = pair if total is None else _joined(total, pair, log_negligible, side, work)
    assert total is not None
    return total


def _joined(a: LossPair, b: LossPair, log_negligible: float, side: Side, work: Work) -> LossPair:
    if not work.spend():
        if side == "lower":  # fewer draws are dominated by more
            return a if _spread(a) >= _spread(b) else b
        raise Unheld(f"its samples hold compositions of more than {_MOST_PRODUCTS} products")
    spend(300 * a.loss.size * b.loss.size)
    found = compressed(trimmed(times(a, b), log_negligible, side), work.factor, side)
    if max(abs(found.loss[0]), abs(found.loss[-1])) > 1e6:
        if side == "lower":
            return a if _spread(a) >= _spread(b) else b
        raise Unheld("a composition within a sample has losses that floats do not hold")
    return found


def name(node: Node) -> str:
    """The name of a node in reports."""
    return type(node).__name__


_SLACK = 1e-6  # relative, per unit of 1 + |log|: rounding of multipliers
_LARGEST = 600.0  # nats, so that powers of e are floats
_LOG_NEGLIGIBLE = -60.0
_BINS = 1024


def doubt(node: Node) -> str:
    """Why the plan states what two presences do not allow, in words; empty where it nowhere does."""
    for found in _samples(node):
        assert found.present is not None
        reason = _doubt(found.replaced, found.present)
        if reason:
            return reason
    return ""


def _samples(node: Node) -> Iterator[Replaced]:
    match node:
        case Replaced():
            if node.present is not None:
                yield node
                yield from _samples(node.present)
            yield from _samples(node.replaced)
        case Sampled() | SelectionNode() | SelectedPoisson():
            yield from _samples(node.inner)
        case GroupsNode():
            for member in node.members:
                yield from _samples(member)
        case Several():
            for part, _ in node.parts:
                yield from _samples(part)


def _doubt(event: Node, present: Node) -> str:
    most, least = 2 * present.pure_epsilon(), event.pure_epsilon()
    if not mp.isinf(most) and least > most * (1 + _SLACK):
        return f"a replaced row may lose {float(least):.6g} nats, two presences at most {float(most):.6g}"
    if isinstance(event, Pure) and event.categories == 2 and not mp.isinf(most):
        return ""  # no more than a largest loss is stated
    match event, present:
        case (Several(), Several()) if _counts(event) == _counts(present):
            pairs = zip(event.parts, present.parts, strict=True)
            return next(filter(None, (_doubt(a, b) for (a, _), (b, _) in pairs)), "")
        case (GroupsNode(), GroupsNode()) if event.probabilities == present.probabilities:
            return next(filter(None, map(_doubt, event.members, present.members)), "")
        case (Replaced(), Sampled()) if event.present == present.inner and event.rate == present.rate:
            return ""  # asked about on its own
    own, other = mu_squared(event), mu_squared(present)
    if own is not None and other is not None:
        if own > 4 * other * (1 + _SLACK) ** 2:
            return f"a replaced row has mu {float(mp.sqrt(own)):.6g}, two presences {float(2 * mp.sqrt(other)):.6g}"
        return ""
    return _by_profiles(event, present)


def _counts(node: Several) -> tuple[int, ...]:
    return tuple(count for _, count in node.parts)


def _by_profiles(event: Node, present: Node) -> str:
    try:
        stated = pair_of(event, _LOG_NEGLIGIBLE, "lower", Work(bins=_BINS))
        removed = pair_of(present, _LOG_NEGLIGIBLE, "upper", Work(bins=_BINS))
    except Unheld as error:
        return f"whether two presences allow a replaced row's losses is not known: {error}"
    added = removed.mirrored()
    reach = max(float(stated.loss[-1]), 0.0)
    span = float(np.abs(removed.loss).max())
    if max(reach, span) > _LARGEST:
        return "whether two presences allow a replaced row's losses is not known: floats do not hold them"
    thresholds = reach * np.linspace(0.0, 1.0, 49)[:-1] ** 2
    spend(400_000 * thresholds.size)
    own = np.maximum(heights(stated, thresholds), heights(stated.mirrored(), thresholds))
    for t, value in zip(thresholds.tolist(), own.tolist(), strict=True):
        s = np.unique(
            np.concatenate((np.linspace(-span, span, 257), t / 2.0 + np.linspace(-1.0, 1.0, 257) * span / 8.0))
        )
        allowed = float(np.min(heights(removed, s) + np.exp(s) * heights(added, (t - s)[::-1])[::-1]))
        room = _SLACK * (1.0 + abs(math.log(max(allowed, 1e-300))))
        if value > 1e-12 and value > allowed * (1.0 + room) + 1e-14:
            return (
                f"a replaced row has delta {value:.6g} at epsilon {t:.6g}, two presences at most {allowed:.6g}: "
                "its sample is not bounded"
            )
    return ""
