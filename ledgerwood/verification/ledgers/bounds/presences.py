"""Consistency of a `ReplaceOneSampled`: a replaced row never loses more than two presences of a row.

docs/explanation/events.md#two-presences: with h the profile of removing a row and g that of adding one, that of a
replaced row is at most inf_s h(s) + e^s g(t - s). Every s gives a bound from above, so what exceeds it cannot be.
"""

import math
from collections.abc import Iterator

import numpy as np

from ledgerwood.verification.ledgers.atoms import mp
from ledgerwood.verification.ledgers.bounds.events import Unheld, Work, pair_of
from ledgerwood.verification.ledgers.bounds.pair import heights
from ledgerwood.verification.ledgers.effort import spend
from ledgerwood.verification.ledgers.pairs import Node, mu_squared
from ledgerwood.verification.ledgers.pairs.combined import GroupsNode, Sampled, Several
from ledgerwood.verification.ledgers.pairs.pure import Pure
from ledgerwood.verification.ledgers.pairs.replaced import Replaced
from ledgerwood.verification.ledgers.pairs.selection import SelectedPoisson, SelectionNode

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
