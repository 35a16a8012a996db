"""Pairs from values of profiles h(x) = E_Q (r - x)+: a replaced row on a secret sample, the worst of several groups.

A true profile is convex, so the lower hull of values that are not below it dominates; docs/explanation/ledger.md.
"""

import math

import numpy as np

from ledgerwood.verification.ledgers.bounds.pair import Floats, LossPair, Side, compressed, heights, made

_LARGEST = 680.0  # nats, so that e^loss is a float
_NODES = 4096
_BETWEEN: Floats = np.linspace(0.0, 1.0, 1025)[1:] ** 2
_NONE: Floats = np.zeros(0)


def replaced(inner: LossPair, rate: float) -> LossPair | None:
    """A row that is not drawn is another row: q H(1 + (x - 1) / q) in both directions.

    At x = 1 + q (y - 1) the slope is H's own at y, so each output above loss 0 keeps its mass under Q.
    """
    above = inner.loss > 0.0
    loss = _log_sampled(inner.loss[above], rate)
    log_q = inner.log_q[above]
    return _mirrored(loss, log_q, rate * inner.lost_p)


def replaced_or_absent(inner: LossPair, present: LossPair, rate: float, side: Side) -> LossPair | None:
    """Advanced joint convexity: q [(1 - b) H_present(y) + b H(y)] at x = 1 + q (y - 1), b = x / y; at most q H(x)."""
    inner, present = compressed(inner, _NODES, side), compressed(present, _NODES, side)
    if max(inner.loss[-1], present.loss[-1]) > _LARGEST:
        return None
    # where q H(x) decides, its own corners; and, as neither is straight between corners, points in between
    own = _log_sampled_from(inner.loss[inner.loss > 0.0], rate)
    log_y = _nodes([inner, present], np.append(own, own.max(initial=0.0) * _BETWEEN))
    log_x, rise = _log_sampled(log_y, rate), rate * np.expm1(log_y)
    share = np.exp(log_x - log_y)
    outside = (1.0 - rate) * -np.expm1(-log_y)  # 1 - b
    h = rate * (outside * heights(present, log_y) + share * heights(inner, log_y))
    h = np.minimum(h, rate * heights(inner, log_x))
    lost = min(rate * ((1.0 - rate) * present.lost_p + rate * inner.lost_p), rate * inner.lost_p)
    if side == "lower":
        h = _lowered(rise, h, lost)
    return _mirrored(*_hull(log_x, rise, h, lost), lost)


def worst(members: list[LossPair]) -> LossPair | None:
    """The pair whose profile is the largest of the members' at each point, in each direction; from above."""
    if len(members) == 1:
        return members[0]
    members = [compressed(member, _NODES, "upper") for member in members]
    if max(max(-member.loss[0], member.loss[-1]) for member in members) > _LARGEST:
        return None
    up, down = _envelope(members), _envelope([member.mirrored() for member in members])
    if up is None or down is None:
        return None
    (loss, log_q, lost_p), (loss_down, log_p_down, lost_q) = up, down
    rest = 1.0 - lost_q - float(np.exp(log_q).sum() + np.exp(log_p_down + loss_down).sum())
    if rest < -1e-9:
        return None
    zero = np.array([math.log(rest)]) if rest > 0.0 else np.array([-math.inf])
    return made(
        np.concatenate((-loss_down, np.zeros(1), loss)),
        np.concatenate((log_p_down, zero, log_q + loss)),
        lost_p,
        lost_q,
    )


def _envelope(members: list[LossPair]) -> tuple[Floats, Floats, float] | None:
    """Losses above 0 and log masses under Q of the largest profile on x >= 1, and its infinite part."""
    nodes = _nodes(members)
    h = np.max([heights(member, nodes) for member in members], axis=0)
    lost = max(member.lost_p for member in members)
    return *_hull(nodes, np.expm1(nodes), h, lost), lost


def _nodes(pairs: list[LossPair], more: Floats = _NONE) -> Floats:
    """0 and all losses above it, without those so near to another that differences would lose their digits."""
    found = np.unique(np.concatenate([[0.0], more, *(pair.loss[pair.loss > 0.0] for pair in pairs)]))
    apart = np.diff(np.floor(found / (1e-7 * max(found[-1], 1e-300))), prepend=-1.0) > 0.0
    apart[-1] = True
    return np.asarray(found[apart], dtype=np.float64)


def _mirrored(loss: Floats, log_q: Floats, lost: float) -> LossPair | None:
    """The pair with these outputs above loss 0 in both directions, and all the rest at loss 0."""
    mass = float(np.exp(log_q).sum() + np.exp(log_q + loss).sum())
    rest = 1.0 - lost - mass
    if rest < -1e-9:
        return None
    zero = math.log(rest) if rest > 0.0 else -math.inf
    return made(
        np.concatenate((-loss[::-1], np.zeros(1), loss)),
        np.concatenate((log_q[::-1], np.array([zero]), log_q + loss)),
        lost,
        lost,
    )


def _hull(log_x: Floats, rise: Floats, h: Floats, lost: float) -> tuple[Floats, Floats]:
    """Nodes above 0 and log masses under Q of the lower convex hull of values at nodes, flat after the last one.

    `rise` is x - 1: near 1 it has digits that x has not.
    """
    h = np.maximum(np.minimum.accumulate(h), lost)
    corners: list[int] = []
    xs, hs = rise.tolist(), h.tolist()
    for k in range(len(xs)):
        while len(corners) > 1:
            i, j = corners[-2:]
            if (hs[j] - hs[i]) * (xs[k] - xs[j]) < (hs[k] - hs[j]) * (xs[j] - xs[i]):
                break
            corners.pop()
        corners.append(k)
    place = np.array(corners)
    slopes = np.append(np.maximum(np.diff(h[place]) / np.diff(rise[place]), -1.0), 0.0)
    masses = np.diff(slopes)
    kept = masses > 0.0
    return log_x[place[1:]][kept], np.log(masses[kept])


def _lowered(rise: Floats, h: Floats, lost: float) -> Floats:
    """Values whose chords lie below a convex function with the values h: less what chords can exceed it by."""
    slopes = np.diff(h) / np.diff(rise)
    before, after = np.insert(slopes[:-1], 0, -1.0), np.append(slopes[1:], 0.0)
    gap = np.maximum(np.diff(rise) * (after - before) / 4.0, 0.0)
    return np.asarray(np.maximum(h - np.maximum(np.append(gap, 0.0), np.insert(gap, 0, 0.0)), lost))


def _log_sampled(t: Floats, q: float) -> Floats:
    """log(1 - q + q e^t)."""
    return np.where(t < 1.0, np.log1p(q * np.expm1(np.minimum(t, 1.0))), np.logaddexp(math.log1p(-q), math.log(q) + t))


def _log_sampled_from(t: Floats, q: float) -> Floats:
    """The y of x = 1 - q + q y: log(1 + (e^t - 1) / q)."""
    return np.where(
        t < 1.0, np.log1p(np.expm1(np.minimum(t, 1.0)) / q), t + np.log1p((q - 1.0) * np.exp(-t)) - math.log(q)
    )
