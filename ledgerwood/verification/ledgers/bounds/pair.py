"""A pair of distributions in floats: finitely many outputs, each with its masses under P and under Q.

A pair stands for an event from one side. From below, outputs were merged: that is post-processing, so the pair is
dominated by the event's own. From above, outputs were split between the two nearest nodes of a grid so that both masses
stay; merging the parts gives the output back, so the pair dominates. docs/explanation/ledger.md#verification-cells.

A replaced row on a secret sample and the worst of several groups have a pair from values of their profile
h(x) = E_Q (r - x)+. A true profile is convex, so the lower hull of values that are not below it dominates.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Side = Literal["lower", "upper"]

WIDEST = 1e6  # nats; beyond, floats cannot hold a loss to better than 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class LossPair:
    """Outputs of a pair, by ascending loss.

    Args:
        loss: log(P / Q), nats, ascending, finite; shape (n,).
        log_p: natural logarithms of masses under P; shape (n,).
        log_q: the same under Q; shape (n,).
        lost_p: mass under P where Q has none (an infinite loss).
        lost_q: mass under Q where P has none.
    """

    loss: Floats
    log_p: Floats
    log_q: Floats
    lost_p: float = 0.0
    lost_q: float = 0.0

    def mirrored(self) -> "LossPair":
        """P and Q exchanged."""
        return LossPair(-self.loss[::-1], self.log_q[::-1], self.log_p[::-1], self.lost_q, self.lost_p)


NOTHING = LossPair(np.zeros(1), np.zeros(1), np.zeros(1))
"""Both distributions are one: what costs nothing, and what a lower bound may always say."""


def made(loss: Floats, log_p: Floats, lost_p: float = 0.0, lost_q: float = 0.0) -> LossPair | None:
    """The pair of these outputs, or None if floats cannot hold it; outputs without mass are left out."""
    kept = log_p > -math.inf
    loss, log_p = loss[kept], log_p[kept]
    order = np.argsort(loss, kind="stable")
    loss, log_p = loss[order], log_p[order]
    if loss.size == 0 or not max(abs(loss[0]), abs(loss[-1])) < WIDEST:
        return None
    return LossPair(loss, log_p, log_p - loss, lost_p, lost_q)


def merged(loss: Floats, log_p: Floats, starts: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Merges adjacent outputs, from each start to the next: their loss, and the logarithm of their P."""
    sizes = np.diff(np.append(starts, loss.size))
    top = np.maximum.reduceat(log_p, starts)
    weights = np.exp(log_p - np.repeat(top, sizes))
    first = loss[starts]
    total = np.add.reduceat(weights, starts)
    # Q e^first / P - 1: losses of one group differ by little, and those that differ by more have hardly any Q
    shrunk = np.add.reduceat(weights * np.expm1(np.repeat(first, sizes) - loss), starts) / total
    # what rounding took for all of Q has less: a smaller loss is dominated
    return first - np.log1p(np.maximum(shrunk, 2.0**-52 - 1.0)), top + np.log(total)


def split(loss: Floats, log_p: Floats, nodes: Floats) -> tuple[Floats, Floats]:
    """Ascending outputs within the nodes, each split between the two nodes around it; both masses stay.

    Returns the nodes with positive mass, and the logarithms of their P.
    """
    below = np.clip(np.searchsorted(nodes, loss, side="right") - 1, 0, nodes.size - 2)
    low, high = nodes[below], nodes[below + 1]
    width = -np.expm1(low - high)
    with np.errstate(divide="ignore"):
        to_low = log_p + (low - loss) + np.log(np.maximum(-np.expm1(loss - high), 0.0) / width)
        to_high = log_p + np.log(np.maximum(-np.expm1(low - loss), 0.0) / width)
    starts = np.flatnonzero(np.diff(below, prepend=-1))
    log_mass = np.full(nodes.size, -math.inf)
    log_mass[below[starts]] = np.logaddexp.reduceat(to_low, starts)
    upper = below[starts] + 1
    log_mass[upper] = np.logaddexp(log_mass[upper], np.logaddexp.reduceat(to_high, starts))
    kept = log_mass > -math.inf
    return nodes[kept], log_mass[kept]


def compressed(pair: LossPair, most: int, side: Side) -> LossPair:
    """No more than `most` outputs: neighbours merged, or split onto some of the losses."""
    if pair.loss.size <= most:
        return pair
    # Equal widths of loss would leave one output for all of a narrow centre, equal masses one for a tail: do both.
    span = (pair.loss - pair.loss[0]) / max(pair.loss[-1] - pair.loss[0], 1e-300)
    mass = np.cumsum(np.exp(pair.log_p) + np.exp(pair.log_q))
    half = most // 2 - 2
    labels = np.floor(span * half) + np.floor(mass / mass[-1] * half)
    starts = np.flatnonzero(np.diff(labels, prepend=-1.0))
    if side == "lower":
        loss, log_p = merged(pair.loss, pair.log_p, starts)
    else:
        nodes = np.unique(np.append(pair.loss[starts], pair.loss[-1]))
        if nodes.size < 2:
            return pair
        loss, log_p = split(pair.loss, pair.log_p, nodes)
    return LossPair(loss, log_p, log_p - loss, pair.lost_p, pair.lost_q)


def trimmed(pair: LossPair, log_negligible: float, side: Side) -> LossPair:
    """Outputs at both ends with less mass than e^log_negligible in all: left out, or made to reveal everything."""
    heavy = np.flatnonzero(np.maximum(pair.log_p, pair.log_q) > log_negligible - math.log(pair.loss.size))
    if heavy.size in {pair.loss.size, 0}:
        return pair
    kept = slice(int(heavy[0]), int(heavy[-1]) + 1)
    loss, log_p, log_q = pair.loss[kept], pair.log_p[kept], pair.log_q[kept]
    if side == "lower":
        return LossPair(loss, log_p, log_q, pair.lost_p, pair.lost_q)
    cut = np.ones(pair.loss.size, dtype=bool)
    cut[kept] = False
    lost_p, lost_q = (
        lost + float(np.exp(log_mass[cut]).sum())
        for lost, log_mass in ((pair.lost_p, pair.log_p), (pair.lost_q, pair.log_q))
    )
    return LossPair(loss, log_p, log_q, lost_p, lost_q)


def times(a: LossPair, b: LossPair) -> LossPair:
    """Both, independently."""
    loss, log_p = (np.add.outer(x, y).ravel() for x, y in ((a.loss, b.loss), (a.log_p, b.log_p)))
    order = np.argsort(loss, kind="stable")
    lost_p = (
        -math.expm1(math.log1p(-min(a.lost_p, 1.0)) + math.log1p(-min(b.lost_p, 1.0)))
        if max(a.lost_p, b.lost_p) < 1.0
        else 1.0
    )
    lost_q = (
        -math.expm1(math.log1p(-min(a.lost_q, 1.0)) + math.log1p(-min(b.lost_q, 1.0)))
        if max(a.lost_q, b.lost_q) < 1.0
        else 1.0
    )
    loss, log_p = loss[order], log_p[order]
    return LossPair(loss, log_p, log_p - loss, lost_p, lost_q)


def sampled(pair: LossPair, rate: float) -> LossPair | None:
    """One Poisson sample: r becomes 1 - q + q r. Exact, so it keeps the side."""
    small = np.log1p(rate * np.expm1(np.minimum(pair.loss, 1.0)))
    large = np.logaddexp(math.log1p(-rate), math.log(rate) + pair.loss)
    loss, log_q = np.where(pair.loss < 1.0, small, large), pair.log_q
    if pair.lost_q > 0.0:
        loss, log_q = np.append(loss, math.log1p(-rate)), np.append(log_q, math.log(pair.lost_q))
    return made(loss, log_q + loss, rate * pair.lost_p, 0.0)


def averaged(a: LossPair, b: LossPair, share: float) -> LossPair | None:
    """A unit in a with probability `share`, else in b, and both are released: r becomes the average. Exact."""
    (loss_a, log_a), (loss_b, log_b) = _with_absent(a), _with_absent(b)
    with np.errstate(invalid="ignore"):
        loss = np.logaddexp.outer(math.log(share) + loss_a, math.log1p(-share) + loss_b).ravel()
    log_q = np.add.outer(log_a, log_b).ravel()
    kept = loss > -math.inf
    lost_p = share * a.lost_p * float(np.exp(log_b).sum()) + (1.0 - share) * b.lost_p * float(np.exp(log_a).sum())
    return made(loss[kept], (log_q + loss)[kept], lost_p, a.lost_q * b.lost_q)


def _with_absent(pair: LossPair) -> tuple[Floats, Floats]:
    """Losses and log masses under Q, those included that P has not: their ratio is 0."""
    if pair.lost_q == 0.0:
        return pair.loss, pair.log_q
    return np.append(-math.inf, pair.loss), np.append(math.log(pair.lost_q), pair.log_q)


def mixed(members: list[tuple[LossPair, float]]) -> LossPair | None:
    """Groups that a unit enters with these probabilities; in no group it loses nothing. Exact."""
    absent = 1.0 - sum(p for _, p in members)
    loss = np.concatenate([member.loss for member, _ in members])
    log_p = np.concatenate([member.log_p + math.log(p) for member, p in members])
    if absent > 0.0:
        loss, log_p = np.append(loss, 0.0), np.append(log_p, math.log(absent))
    lost_p = sum(p * member.lost_p for member, p in members)
    lost_q = sum(p * member.lost_q for member, p in members)
    return made(loss, log_p, lost_p, lost_q)


def revealing(pair: LossPair, delta: float) -> LossPair:
    """Everything is revealed with probability delta."""
    kept = math.log1p(-delta)
    left = 1.0 - delta
    return LossPair(
        pair.loss, pair.log_p + kept, pair.log_q + kept, delta + left * pair.lost_p, delta + left * pair.lost_q
    )


def heights(pair: LossPair, log_x: Floats) -> Floats:
    """h(x) = E_Q (r - x)+ at ascending logarithms of x, by sums of positive terms from the top; shape of `log_x`."""
    tail_q = np.append(np.cumsum(np.exp(pair.log_q)[::-1])[::-1], 0.0)
    x = np.exp(pair.loss)
    own = np.zeros(pair.loss.size)
    if x.size > 1:
        own[:-1] = np.cumsum((tail_q[1:-1] * np.diff(x))[::-1])[::-1]
    own += pair.lost_p
    place = np.searchsorted(pair.loss, log_x, side="left")  # the first output at or above x
    inside = place < pair.loss.size
    at = np.minimum(place, pair.loss.size - 1)
    rise = np.where(inside, tail_q[at] * np.maximum(x[at] - np.exp(np.minimum(log_x, 690.0)), 0.0), 0.0)
    return np.where(inside, own[at] + rise, pair.lost_p)


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
