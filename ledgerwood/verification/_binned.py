"""A node's pair of laws in floats, binned: finitely many outputs, each with its masses under P and under Q.

Binning is post-processing, so the binned pair is dominated by the node's own; it loses in the second order of a bin's
width. Masses come by Gauss-Legendre quadrature of positive densities, so nothing cancels.
docs/explanation/ledger.md#verification-losses.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledgerwood.verification._atoms import mp, mpf, table_atoms
from ledgerwood.verification._pairs import Gaussian, Node, Sampled
from ledgerwood.verification._pairs.combined import Groups, Several
from ledgerwood.verification._pairs.continuous import Laplace
from ledgerwood.verification._pairs.integers import DiscreteGaussian, DiscreteLaplace
from ledgerwood.verification._pairs.pure import Pure, Range
from ledgerwood.verification._pairs.stated import Approximate, Curve, Table

Floats = NDArray[np.float64]

_BINS = 8192
_LEVELS = 64  # of a profile that is known by its values only, on each side
_FACTOR_BINS = 768  # of each factor of a product
_MOST_INTEGERS = 1 << 20
_WIDEST = 1e6  # nats; beyond, floats cannot hold a loss to better than 1e-10
_NODES, _WEIGHTS = (x.tolist() for x in np.polynomial.legendre.leggauss(4))


@dataclass(frozen=True, slots=True)
class Binned:
    """Outputs of a pair.

    Args:
        loss: log(P / Q), nats, ascending, finite.
        log_p: natural logarithms of masses under P.
        log_q: the same under Q.
        lost_p: mass under P where Q has none.
        lost_q: mass under Q where P has none.
    """

    loss: Floats
    log_p: Floats
    log_q: Floats
    lost_p: float = 0.0
    lost_q: float = 0.0


def binned(node: Node, log_negligible: float) -> Binned | None:
    """The node's binned pair, what has less mass than exp(log_negligible) under both laws left out.

    None where floats or a bounded number of outputs cannot hold it.

    Raises:
        ValueError: the node has no profile, so there is no such pair.
    """
    reach = math.sqrt(-2.0 * log_negligible) + 1.0
    match node:
        case Gaussian():
            return _gaussian(float(mp.sqrt(node.square)), reach)
        case Laplace():
            return _laplace(float(1 / node.scale), -log_negligible)
        case Pure():
            return _response(float(node.epsilon), node.categories)
        case Range():  # one of its pairs: the ratios e^{epsilon / 2} and e^{-epsilon / 2}
            return _response(float(node.epsilon) / 2.0, 2)
        case DiscreteLaplace():
            return _discrete_laplace(float(1 / node.scale), node.sensitivity)
        case DiscreteGaussian():
            return _discrete_gaussian(float(node.scale), node.sensitivity, reach)
        case Approximate():
            return _revealed(_response(float(node.epsilon), 2), float(node.delta))
        case Table():
            return _table(node) if len(node.points) <= 1024 else None
        case Sampled():
            inner = binned(node.inner, log_negligible)
            return None if inner is None else _sampled(inner, float(node.rate))
        case Groups():
            return _groups(node, log_negligible)
        case Several():
            return _product(node, log_negligible)
        case Curve():
            raise ValueError("a mechanism that is known by its Renyi divergences has no losses here")
        case _:
            return _from_profile(node, log_negligible)


def _made(loss: Floats, log_p: Floats, log_q: Floats, lost_p: float = 0.0, lost_q: float = 0.0) -> Binned | None:
    order = np.argsort(loss, kind="stable")
    loss, log_p, log_q = loss[order], log_p[order], log_q[order]
    if loss.size == 0 or not max(abs(loss[0]), abs(loss[-1])) < _WIDEST:
        return None
    return Binned(loss, log_p, log_q, lost_p, lost_q)


def _grouped(loss: Floats, log_p: Floats, starts: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
    """Adjacent outputs, from each start to the next, made one: their loss, and the logarithms of their P and Q."""
    sizes = np.diff(np.append(starts, loss.size))
    top = np.maximum.reduceat(log_p, starts)
    weights = np.exp(log_p - np.repeat(top, sizes))
    first = loss[starts]
    total = np.add.reduceat(weights, starts)
    shrunk = np.add.reduceat(weights * np.expm1(np.repeat(first, sizes) - loss), starts) / total  # Q e^loss / P - 1
    merged = first - np.log1p(shrunk)
    mass = top + np.log(total)
    return merged, mass, mass - merged


def compressed(pair: Binned, most: int) -> Binned:
    """No more than `most` outputs, by merging neighbours."""
    if pair.loss.size <= most:
        return pair
    # Equal widths of loss would leave one output for all of a narrow centre, equal masses one for a tail: do both.
    span = (pair.loss - pair.loss[0]) / max(pair.loss[-1] - pair.loss[0], 1e-300)
    mass = np.cumsum(np.exp(pair.log_p) + np.exp(pair.log_q))
    labels = np.floor(span * (most // 2 - 1)) + np.floor(mass / mass[-1] * (most // 2 - 1))
    starts = np.flatnonzero(np.diff(labels, prepend=-1.0))
    loss, log_p, log_q = _grouped(pair.loss, pair.log_p, starts)
    return Binned(loss, log_p, log_q, pair.lost_p, pair.lost_q)


def _points(left: Floats, right: Floats) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Quadrature points of the bins, the logarithms of their weights, and where each bin starts."""
    half = (right - left) / 2.0
    middle = (right + left) / 2.0
    x = middle[:, None] + half[:, None] * np.array(_NODES)
    log_weights = np.log(half[:, None] * np.array(_WEIGHTS))
    return x.ravel(), log_weights.ravel(), np.arange(left.size) * len(_NODES)


def _gaussian(mu: float, reach: float) -> Binned | None:
    if mu > _WIDEST or mu == 0.0:
        return None
    if mu < 2.0 * reach:
        edges = np.linspace(-reach, mu + reach, _BINS + 1)
        left, right = edges[:-1], edges[1:]
    else:
        edges = np.linspace(-reach, reach, _BINS // 2 + 1)
        left, right = np.append(edges[:-1], mu + edges[:-1]), np.append(edges[1:], mu + edges[1:])
    x, log_weights, starts = _points(left, right)
    log_p = log_weights - (x - mu) ** 2 / 2.0 - 0.5 * math.log(2.0 * math.pi)
    return _made(*_grouped(mu * (x - mu / 2.0), log_p, starts))


def _laplace(shift: float, reach: float) -> Binned | None:
    """Outputs below 0 and above 1 have one loss each; between them, x / b from either end."""
    if shift > _WIDEST:
        return None
    inner = np.linspace(0.0, min(shift / 2.0, reach), _BINS // 2 + 1)
    left = np.append(inner[:-1], shift - inner[1:])
    x, log_weights, starts = _points(left, np.append(inner[1:], shift - inner[:-1]))
    order = np.argsort(x, kind="stable")
    loss, log_p, log_q = _grouped((2.0 * x - shift)[order], (log_weights - math.log(2.0) - shift + x)[order], starts)
    ends = np.array([-shift, shift]), np.array([-shift, 0.0]) - math.log(2.0), np.array([0.0, -shift]) - math.log(2.0)
    return _made(np.append(loss, ends[0]), np.append(log_p, ends[1]), np.append(log_q, ends[2]))


def _response(epsilon: float, categories: int) -> Binned | None:
    others = math.log(categories - 2) if categories > 2 else -math.inf
    log_total = np.logaddexp(np.logaddexp(epsilon, 0.0), others)
    loss = np.array([-epsilon, epsilon])
    log_p = np.array([0.0, epsilon]) - log_total
    log_q = np.array([epsilon, 0.0]) - log_total
    if categories > 2:
        loss, log_p, log_q = (
            np.append(a, b) for a, b in ((loss, 0.0), (log_p, others - log_total), (log_q, others - log_total))
        )
    return _made(loss, log_p, log_q)


def _discrete_laplace(rate: float, shift: int) -> Binned | None:
    if shift > _MOST_INTEGERS:
        return None
    z = np.arange(1.0, shift)
    log_atom = math.log(-math.expm1(-rate)) - math.log1p(math.exp(-rate))
    log_end = -math.log1p(math.exp(-rate))
    loss = np.concatenate(([-shift * rate], (2.0 * z - shift) * rate, [shift * rate]))
    log_q = np.concatenate(([log_end], log_atom - rate * z, [log_end - shift * rate]))
    made = _made(loss, log_q + loss, log_q)
    return None if made is None else compressed(made, 2 * _BINS)


def _discrete_gaussian(scale: float, shift: int, reach: float) -> Binned | None:
    if not 1e-3 < scale < _MOST_INTEGERS or 2 * reach * scale + shift > _MOST_INTEGERS:
        return None
    far = math.ceil(reach * scale) + 1
    z = np.arange(-far, far + shift + 1.0)
    around = np.arange(-math.ceil(40.0 * scale), math.ceil(40.0 * scale) + 1.0)
    log_total = math.log(math.fsum(np.exp(-(around**2) / (2.0 * scale**2)).tolist()))
    loss = shift * (z - shift / 2.0) / scale**2
    log_q = -(z**2) / (2.0 * scale**2) - log_total
    made = _made(loss, -((z - shift) ** 2) / (2.0 * scale**2) - log_total, log_q)
    return None if made is None else compressed(made, 2 * _BINS)


def _revealed(pair: Binned | None, delta: float) -> Binned | None:
    if pair is None:
        return None
    kept = math.log1p(-delta)
    return Binned(pair.loss, pair.log_p + kept, pair.log_q + kept, delta, delta)


def _table(node: Table) -> Binned | None:
    lost = min(delta for _, delta in node.points)
    both = [(end, mass) for end, mass in table_atoms(node.points) if end > 0 and mass > 0]
    rest = 1 - lost - sum((mass * (1 + mp.exp(end)) for end, mass in both), mpf(0))
    atoms = [(end, mp.log(mass)) for end, mass in both] + [(-end, mp.log(mass) + end) for end, mass in both]
    if rest > 0:
        atoms.append((mpf(0), mp.log(rest)))
    loss, log_q = (np.array([float(atom[i]) for atom in atoms]) for i in (0, 1))
    return _made(loss, log_q + loss, log_q, float(lost), float(lost))


def _from_profile(node: Node, log_negligible: float) -> Binned | None:
    """Any node that has a profile h(x) = E_Q[(r - x)+]: outputs between two thresholds of r are one.

    A secant over a relative 1e-18 stands for the derivative -Q(r > x).
    """
    negligible = mp.exp(log_negligible)
    ends = []
    for slope, constant in ((mpf(1), -1), (-1, mpf(1))):  # remove, add: from which loss on nothing is left
        end = mpf(2) ** -30
        while (
            end < _WIDEST
            and node.positive_part(
                slope * (mp.exp(end) if slope < 0 else 1), constant * (mp.exp(end) if slope > 0 else 1)
            )
            > negligible
        ):
            end *= 2
        ends.append(end)
    if max(ends) >= _WIDEST:
        return None
    levels = [-ends[1] * mpf(i) / _LEVELS for i in range(_LEVELS, 0, -1)]
    levels += [ends[0] * mpf(i) / _LEVELS for i in range(_LEVELS + 1)]
    lines = [(mpf(-1), mpf(1))]  # slope and height at x = 0 of the tangents
    for x in (mp.exp(level) for level in levels):
        tiny = x / mpf(10) ** 18
        height = node.positive_part(mpf(1), -x)
        slope = (node.positive_part(mpf(1), -x - tiny) - height) / tiny
        lines.append((slope, height - slope * x))
    lines.append((mpf(0), mpf(0)))
    atoms = []
    for (before, high), (after, low) in itertools.pairwise(lines):
        without, with_unit = after - before, high - low
        if without > mpf(10) ** -25 and with_unit > mpf(10) ** -25:
            atoms.append((float(mp.log(with_unit / without)), float(mp.log(with_unit)), float(mp.log(without))))
    loss, log_p, log_q = (np.array([atom[i] for atom in atoms]) for i in range(3))
    return _made(loss, log_p, log_q)


def _sampled(pair: Binned, rate: float) -> Binned | None:
    small = np.log1p(rate * np.expm1(np.minimum(pair.loss, 1.0)))
    large = np.logaddexp(math.log1p(-rate), math.log(rate) + pair.loss)
    loss, log_q = np.where(pair.loss < 1.0, small, large), pair.log_q
    if pair.lost_q > 0.0:
        loss, log_q = np.append(loss, math.log1p(-rate)), np.append(log_q, math.log(pair.lost_q))
    return _made(loss, log_q + loss, log_q, rate * pair.lost_p, 0.0)


def _groups(node: Groups, log_negligible: float) -> Binned | None:
    members = [binned(member, log_negligible) for member in node.members]
    if node.probabilities is None:  # the dearest group by the variance of its loss: any of them is dominated
        known = [member for member in members if member is not None]
        return max(known, key=_spread, default=None)
    chosen = [
        (member, float(p))
        for member, p in zip(members, node.probabilities, strict=True)
        if member is not None and p > 0
    ]
    if not chosen:
        return None
    absent = 1.0 - sum(p for _, p in chosen)  # what is not known here counts as no loss at all
    loss = np.concatenate([member.loss for member, _ in chosen])
    log_p = np.concatenate([member.log_p + math.log(p) for member, p in chosen])
    log_q = np.concatenate([member.log_q + math.log(p) for member, p in chosen])
    if absent > 0.0:
        loss, log_p, log_q = (
            np.append(loss, 0.0),
            np.append(log_p, math.log(absent)),
            np.append(log_q, math.log(absent)),
        )
    lost = sum(p * member.lost_p for member, p in chosen), sum(p * member.lost_q for member, p in chosen)
    made = _made(loss, log_p, log_q, *lost)
    return None if made is None else compressed(made, 2 * _BINS)


def _spread(pair: Binned) -> float:
    return pair.lost_p + float(np.exp(pair.log_p) @ np.minimum(pair.loss**2, 1e6))


def _product(node: Several, log_negligible: float) -> Binned | None:
    """All draws of one composition as one pair, by repeated squaring."""
    total: Binned | None = None
    for part, count in node.parts[:16]:
        power = binned(part, log_negligible)
        times = min(count, 1 << 12)  # fewer draws are dominated by more
        while power is not None and times:
            power = compressed(power, _FACTOR_BINS)
            if times & 1:
                total = power if total is None else compressed(_times(total, power), _FACTOR_BINS)
            times >>= 1
            power = _times(power, power) if times else power
    return total


def _times(a: Binned, b: Binned) -> Binned:
    loss, log_p, log_q = (
        np.add.outer(x, y).ravel() for x, y in ((a.loss, b.loss), (a.log_p, b.log_p), (a.log_q, b.log_q))
    )
    order = np.argsort(loss, kind="stable")
    lost_p = -math.expm1(math.log1p(-a.lost_p) + math.log1p(-b.lost_p))
    lost_q = -math.expm1(math.log1p(-a.lost_q) + math.log1p(-b.lost_q))
    return Binned(loss[order], log_p[order], log_q[order], lost_p, lost_q)
