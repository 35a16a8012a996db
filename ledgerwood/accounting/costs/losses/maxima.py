"""What a shuffled run costs at least: by the largest output of each pass, or by the sum of all outputs.

Every bound here is from below: a statistic of the outputs tells no more than they do, cells of it no more than the
statistic, and a mass that is moved to a smaller loss, or left out, only lowers the divergence.
docs/explanation/shuffling.md#shuffled-maxima.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import log_ndtr, ndtri

from ledgerwood import _directed
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs.losses import joint
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent

_CELLS = 400  # of the largest output of a pass
_POINTS = 8192  # of the losses of several passes, at most
_GUARD = 1e-11  # relative, by which a cell's masses may err: more than `log_ndtr` and the differences do
_FAINT = 1e-22  # mass that is left out, or moved down
_ULP = 2.0**-52


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses on a lattice, from below: sup_S P(S) - e^eps Q(S) is at least `delta(eps)`.

    Args:
        step: of the lattice, in nats.
        first: the place of the first loss, in steps.
        mass: under P, shape (n,); together at most 1.
    """

    step: float
    first: int
    mass: FloatArray

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence of these losses at `epsilon`, before rounding."""
        loss = self.step * (self.first + np.arange(len(self.mass)))
        more = loss > epsilon
        return float(-(self.mass[more] @ np.expm1(epsilon - loss[more])))


def delta(adjacency: Adjacency, noise_multiplier: float, steps: int, epochs: int) -> Callable[[float], float]:
    """A bound from below on the delta of `epochs` shuffled passes, as a function of epsilon >= 0 (nats).

    Args:
        adjacency: the relation; under add-remove a pass without the row has a last batch that is one row short.
        noise_multiplier: standard deviation of the noise / sensitivity of one batch's sum.
        steps: batches of a pass.
        epochs: passes.
    """
    found = _losses(adjacency, noise_multiplier, steps, epochs)
    error = 8.0 * epochs * (2 * _POINTS + 8) * _ULP  # sums of products of positive numbers
    # the sum of all outputs, of which one in each pass has the row and the others nothing: shuffling.md#shuffled-sums
    square = Fraction(noise_multiplier) ** 2 * steps / epochs
    whole = GaussianEvent(noise_multiplier=min(_directed.root_up(square), 1e100), adjacency=adjacency)

    def bound(epsilon: float) -> float:
        by_maxima = max((law.delta(epsilon) for law in found), default=0.0) * (1.0 - min(error, 1.0))
        by_sum = math.exp(float(joint.log_profile(whole, np.array([epsilon]), Direction.REMOVE)[0]) - 1e-12)
        return max(by_maxima, by_sum * (1.0 - 1e-12), 0.0)

    return bound


def epsilon(adjacency: Adjacency, noise_multiplier: float, steps: int, epochs: int, target: float) -> float:
    """A bound from below on the epsilon at delta `target` in (0, 1), in nats; other arguments as `delta`."""
    bound = delta(adjacency, noise_multiplier, steps, epochs)
    low, high = 0.0, 1.0
    if bound(low) <= target:
        return 0.0
    while bound(high) > target:
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = 0.5 * (low + high)
        if bound(middle) > target:
            low = middle
        else:
            high = middle
    return low


@functools.lru_cache(64)
def _losses(adjacency: Adjacency, noise_multiplier: float, steps: int, epochs: int) -> tuple[Losses, ...]:
    """Losses of all passes, in both directions."""
    shift = math.nextafter(1.0 / noise_multiplier, 0.0)
    with_row, without = _tails(adjacency, shift, steps)
    singles = [_single(one, other, steps, 2.0 * shift) for one, other in ((with_row, without), (without, with_row))]
    return tuple(_power(single, epochs) for single in singles if single is not None)


Tail = Callable[[FloatArray], FloatArray]


def _tails(adjacency: Adjacency, shift: float, steps: int) -> tuple[Tail, Tail]:
    """P(largest output > c) with and without the row, in standard deviations: shuffling.md#shuffled-opposite."""

    def at_least_one(places: FloatArray, *others: tuple[int, float]) -> FloatArray:
        return np.asarray(-np.expm1(sum(n * log_ndtr(places - moved) for n, moved in others)))

    if adjacency is Adjacency.REPLACE_ONE or (steps == 1 and adjacency is Adjacency.ADD_REMOVE):
        return (
            lambda c: at_least_one(c, (steps - 1, 0.0), (1, shift)),
            lambda c: at_least_one(c, (steps, 0.0)),
        )
    if adjacency is Adjacency.ZERO_OUT:
        return (
            lambda c: at_least_one(c, (steps - 1, 0.0), (1, 2.0 * shift)),
            lambda c: at_least_one(c, (steps - 1, 0.0), (1, shift)),
        )
    rest = 1.0 / steps  # the probability that the row is in the last batch, whose output is not looked at
    return (
        lambda c: (
            rest * at_least_one(c, (steps - 1, 0.0))
            + (1.0 - rest) * at_least_one(c, (max(steps - 2, 0), 0.0), (1, 2.0 * shift))
        ),
        lambda c: at_least_one(c, (steps - 1, 0.0)),
    )


def _single(one: Tail, other: Tail, steps: int, farthest: float) -> Losses | None:
    """Losses of one pass: cells of its largest output, nearly even in their loss."""
    low, high = float(ndtri(1e-12 ** (1.0 / steps))), farthest - float(ndtri(1e-30 / steps)) + 1.0
    places = np.linspace(low, high, 8 * _CELLS + 1)
    p, q = -np.diff(one(places)), -np.diff(other(places))
    seen = (p > 1e-280) & (q > 1e-280)
    if seen.sum() < 2:
        return None
    middle = (0.5 * (places[1:] + places[:-1]))[seen]
    loss = np.log(p[seen]) - np.log(q[seen])
    order = np.argsort(loss, kind="stable")
    rising = bool(loss[-1] > loss[0])
    span = float(loss[order[-1]] - loss[order[0]])
    if span <= 0.0:
        return None
    step = span / _CELLS
    ends = float(loss.min()) - step, float(loss.max()) + step
    best: tuple[float, Losses] | None = None
    for part in np.linspace(0.0, 0.5, 11):
        cuts = step * (np.arange(math.floor(loss.min() / step), math.ceil(loss.max() / step) + 1) - 0.5 + part)
        grid = np.maximum.accumulate(loss if rising else loss[::-1])
        edges = np.unique(np.interp(cuts, grid, middle if rising else middle[::-1]))
        found, lost = _cells(one, other, edges, step, ends)
        if best is None or lost < best[0]:
            best = (lost, found)
    return None if best is None else best[1]


def _cells(one: Tail, other: Tail, edges: FloatArray, step: float, ends: tuple[float, float]) -> tuple[Losses, float]:
    """The losses of cells between edges, each moved down to the lattice; and how far they moved, on average.

    What lies below both ends is left out, and what lies above them moved down.
    """
    masses = []
    for tail in (one, other):
        above = tail(edges)
        masses.append(np.concatenate(([1.0 - above[0]], -np.diff(above), [above[-1]])))
    # a difference of tails errs by units of the tail, which is not much larger than a cell of it
    error = np.concatenate(([1.0], one(edges))) * 64.0 * _ULP, np.concatenate(([1.0], other(edges))) * 64.0 * _ULP
    p = masses[0] * (1.0 - _GUARD) - error[0]
    q = masses[1] * (1.0 + _GUARD) + error[1]
    kept = (p > 0.0) & (q > 0.0)
    if not kept.any():
        return Losses(step, 0, np.zeros(1)), math.inf
    p, q = p[kept], q[kept]
    loss = np.log(p) - np.log(q) - 1e-13 * (2.0 + np.abs(np.log(p)) + np.abs(np.log(q)))
    p, loss = p[loss > ends[0]], np.minimum(loss[loss > ends[0]], ends[1])
    place = np.floor(loss / step).astype(np.int64)
    first = int(place.min())
    mass = np.bincount(place - first, weights=p)
    return Losses(step, first, np.asarray(mass)), float(p @ (loss - step * place))


def _power(single: Losses, count: int) -> Losses:
    """`count` independent passes, by repeated squaring on a lattice that is made coarser where it grows too long."""
    base, found = single, None
    while True:
        if count & 1:
            found = base if found is None else _sum(found, base)
        count >>= 1
        if not count:
            return found if found is not None else single
        base = _sum(base, base)


def _sum(one: Losses, other: Losses) -> Losses:
    while one.step < other.step:
        one = _coarser(one)
    while other.step < one.step:
        other = _coarser(other)
    total = Losses(one.step, one.first + other.first, np.convolve(one.mass, other.mass))
    # the lower end is left out, the upper one moved down
    below, above = np.cumsum(total.mass), np.cumsum(total.mass[::-1])[::-1]
    start = int(np.searchsorted(below, _FAINT))
    stop = int(len(above) - np.searchsorted(above[::-1], _FAINT))
    if start >= stop:
        return total
    mass = total.mass[start:stop].copy()
    mass[-1] += float(total.mass[stop:].sum())
    total = Losses(total.step, total.first + start, mass)
    while len(total.mass) > _POINTS:
        total = _coarser(total)
    return total


def _coarser(law: Losses) -> Losses:
    """Pairs of places as their lower one."""
    mass = np.concatenate((np.zeros(law.first % 2), law.mass))
    mass = np.append(mass, np.zeros(len(mass) % 2))
    return Losses(2.0 * law.step, law.first // 2, mass.reshape(-1, 2).sum(axis=1))
