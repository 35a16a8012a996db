"""Pairs of single releases in floats, from either side: masses in closed form, or with a proven remainder.

What lies beyond the range is left out from below, and reveals everything from above. A draw's outputs are pooled from
the top down until each has a lattice point as its loss, which is post-processing.
docs/explanation/ledger.md#verification-cells.
"""

import functools
import math

import numpy as np
from numpy.typing import NDArray

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf
from ledgerwood.verification.ledgers.bounds.pair import (
    WIDEST,
    Floats,
    LossPair,
    Side,
    compressed,
    made,
    merged,
    split,
)
from ledgerwood.verification.ledgers.effort import spend
from ledgerwood.verification.ledgers.pairs.integers import StatedTable, table_masses

BINS = 8192
MOST_INTEGERS = 1 << 21
MOST_ENUMERATED = 1 << 18  # by a recurrence, one after another
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


def _binned(edges: Floats, mu: float, side: Side) -> tuple[Floats, Floats]:
    """Losses and log masses under P of the cells of N(mu, 1) against N(0, 1) between ascending edges.

    Six Gauss-Legendre points in each piece of width w integrate a density f to w^13 6!^4 / (13 12!^3) |f^(12)|, and the
    twelfth derivative of a normal density at x is at most (|x| + 2.17)^12 times it (Minkowski, from the moments of the
    Hermite polynomials). Cells are cut into pieces with w (|x| + 4) <= 1, over which the density changes by less than a
    factor e: both masses of a cell are right to 2e-16 e, relative, which `MASS_ERROR` holds (composed.py).
    """
    farthest = float(np.abs(edges).max()) + mu + 4.0  # from both means
    pieces = max(math.ceil(float(np.diff(edges).max()) * farthest), 1)
    spend(300 * pieces * edges.size)
    half = np.repeat(np.diff(edges) / (2.0 * pieces), pieces)
    middle = (edges[:-1, None] + np.diff(edges)[:, None] * ((np.arange(pieces) + 0.5) / pieces)).ravel()
    x = (middle[:, None] + half[:, None] * _NODES).ravel()
    log_p = -((x - mu) ** 2) / 2.0 - 0.5 * math.log(2.0 * math.pi) + np.log(half[:, None] * _WEIGHTS).ravel()
    loss = mu * (x - mu / 2.0)
    if side == "lower":
        return merged(loss, log_p, np.arange(edges.size - 1) * (_NODES.size * pieces))
    return split(loss, log_p, mu * (edges - mu / 2.0))


def gaussian(mu: float, reach: float, side: Side, bins: int) -> LossPair | None:
    """N(mu, 1) against N(0, 1), outputs from -reach to mu + reach."""
    if mu > math.sqrt(WIDEST) or mu == 0.0:
        return None
    if mu < 2.0 * reach:
        pieces = [np.linspace(-reach, mu + reach, bins + 1)]
    else:  # nothing but tails lies between
        pieces = [np.linspace(-reach, reach, bins // 2 + 1), np.linspace(mu - reach, mu + reach, bins // 2 + 1)]
    found = [_binned(edges, mu, side) for edges in pieces]
    losses, masses = [loss for loss, _ in found], [log_p for _, log_p in found]
    lost = 2.0 * math.erfc(reach / math.sqrt(2.0)) if side == "upper" else 0.0
    return made(np.concatenate(losses), np.concatenate(masses), lost, lost)


def mixture(shifts: tuple[list[tuple[float, float]], float], reach: float, side: Side, bins: int) -> LossPair | None:
    """Normal outputs that are moved by a random shift, against those that are not, from -reach to the last mu + reach.

    Cells and points are those of `_binned`, for each shift; the loss rises with the output.

    Args:
        shifts: (mu, log of its probability), ascending; and the logarithm of the probability of none.
        reach, side, bins: as of `gaussian`.
    """
    moved, log_rest = shifts
    last = moved[-1][0]
    edges = np.linspace(-reach, last + reach, bins + 1)

    def losses(x: Floats) -> Floats:
        total = np.full(x.shape, log_rest)
        for mu, log_p in moved:
            total = np.logaddexp(total, log_p + mu * (x - mu / 2.0))
        near = sum((math.exp(log_p) * np.expm1(np.minimum(mu * (x - mu / 2.0), 700.0)) for mu, log_p in moved), 0.0 * x)
        return np.where((near > -0.5) & (near < 1.0), np.log1p(np.clip(near, -0.5, 1.0)), total)

    pieces = max(math.ceil(float(np.diff(edges).max()) * (last + reach + last + 4.0)), 1)
    spend(300 * pieces * edges.size * (1 + len(moved)))
    half = np.repeat(np.diff(edges) / (2.0 * pieces), pieces)
    middle = (edges[:-1, None] + np.diff(edges)[:, None] * ((np.arange(pieces) + 0.5) / pieces)).ravel()
    x = (middle[:, None] + half[:, None] * _NODES).ravel()
    log_q = -(x**2) / 2.0 - 0.5 * math.log(2.0 * math.pi) + np.log(half[:, None] * _WEIGHTS).ravel()
    loss = losses(x)
    if side == "lower":
        loss, log_p = merged(loss, log_q + loss, np.arange(edges.size - 1) * (_NODES.size * pieces))
        return made(loss, log_p)
    nodes = np.unique(np.concatenate((losses(edges)[:1] - 1e-9, np.maximum.accumulate(losses(edges)) + 1e-15)))
    keep = np.append(True, np.diff(nodes) > 1e-13)
    keep[-1] = True
    loss, log_p = split(np.clip(loss, nodes[0], nodes[-1]), log_q + loss, nodes[keep])
    lost = 2.0 * math.erfc(reach / math.sqrt(2.0))
    return made(loss, log_p, lost, lost)


def laplace(shift: float, reach: float, side: Side, bins: int) -> LossPair | None:
    """Outputs below 0 and above 1 have one loss each; between them it rises; `shift` is 1 / scale."""
    if shift > WIDEST:
        return None
    loss, log_p, lost = _rising(0.0, shift, shift, reach, math.log(2.0), side, bins)
    ends, end_masses = np.array([-shift, shift]), np.array([-shift, 0.0]) - math.log(2.0)
    return made(np.append(loss, ends), np.append(log_p, end_masses), lost, lost)


def _rising(
    first: float, last: float, shift: float, reach: float, log_scale: float, side: Side, bins: int
) -> tuple[Floats, Floats, float]:
    """Outputs u of first .. last whose density under P is e^{u - shift - log_scale} and whose loss is 2 u - shift.

    What is farther than `reach` from both ends has at most e^-reach: left out, or, in the third value, lost.
    """
    half = (last - first) / 2.0
    near = np.linspace(0.0, min(half, reach), bins // 2 + 1)
    pieces = [first + near, last - near[::-1]]
    found = [_exponential(edges, shift, log_scale, side) for edges in pieces if edges[-1] > edges[0]]
    lost = 2.0 * math.exp(-reach) if side == "upper" and half > reach else 0.0
    return np.concatenate([loss for loss, _ in found]), np.concatenate([log_p for _, log_p in found]), lost


def _exponential(edges: Floats, shift: float, log_scale: float, side: Side) -> tuple[Floats, Floats]:
    """Cells between ascending edges of u, in closed form: a cell's own loss is that of its middle."""
    low, high = edges[:-1], edges[1:]
    log_p = low + np.log(np.expm1(high - low)) - shift - log_scale
    if side == "lower":
        return low + high - shift, log_p
    return split(low + high - shift, log_p, 2.0 * edges - shift)


def truncated_laplace(shift: float, bound: float, reach: float, side: Side, bins: int) -> LossPair | None:
    """Laplace noise cut off at `bound` sensitivities: beyond it, an output of one has no mass under the other."""
    if shift > WIDEST or (bound < 1.0 and (2.0 * bound - 1.0) * shift < 1e-12):
        return None
    log_kept = math.log(-math.expm1(-bound * shift)) + math.log(2.0)
    first, last = max(0.0, 1.0 - bound) * shift, min(1.0, bound) * shift
    loss, log_p, lost = _rising(first, last, shift, reach, log_kept, side, bins)
    if bound > 1.0:
        outside = math.log(-math.expm1(-(bound - 1.0) * shift)) - log_kept
        loss, log_p = np.append(loss, [-shift, shift]), np.append(log_p, [outside - shift, outside])
        lost += math.exp((1.0 - bound) * shift - log_kept) * -math.expm1(-shift)
    else:
        lost += (-math.expm1((bound - 1.0) * shift) - math.expm1(-bound * shift)) * math.exp(-log_kept)
    return made(loss, log_p, lost, lost)


def response(epsilon: float, categories: int = 2) -> LossPair | None:
    """The randomised response among this many categories."""
    if epsilon > WIDEST:
        return None
    others = math.log(categories - 2) if categories > 2 else -math.inf
    log_total = float(np.logaddexp(np.logaddexp(epsilon, 0.0), others))
    loss = np.array([-epsilon, 0.0, epsilon])
    return made(loss, np.array([0.0, others, epsilon]) - log_total)


def bounded_range(epsilon: float, reach: float, side: Side, bins: int, order: float) -> LossPair | None:
    """The pair with the largest moment of this order > 1 from below; that of the largest profile from above.

    Any pair of the range is a bound from below. (1 - e^{-epsilon}) E_Q r^a at the ratios e^t and e^{t - epsilon} is
    A e^{(a-1) t} - B e^{a t}, A = 1 - e^{-a epsilon}, B = e^{-epsilon} - e^{-a epsilon}, largest at
    e^t = A (a - 1) / (B a). A sum of many draws costs most where the moment at its own saddle point is largest.

    The profile (1 - e^{(s - epsilon)/2})^2 / (1 - e^{-epsilon}) at e^s, over all pairs of the range, is convex: its
    pair has the density e^{(s - epsilon)/2} / (2 (1 - e^{-epsilon})) of losses s in (-epsilon, epsilon) under P.
    """
    if epsilon > WIDEST:
        return None
    if side == "lower":
        t = math.log(-math.expm1(-order * epsilon)) + math.log1p(-1.0 / order)
        t += epsilon - math.log(-math.expm1(-(order - 1.0) * epsilon))
        t = min(max(t, 1e-9 * epsilon), (1.0 - 1e-9) * epsilon)
        log_whole = math.log(-math.expm1(-epsilon))
        light, heavy = math.log(-math.expm1(t - epsilon)) - t - log_whole, math.log(-math.expm1(-t)) - log_whole
        return made(np.array([t - epsilon, t]), np.array([heavy + t - epsilon, light + t]))
    # with u = (s + epsilon) / 2 a rising density, but for a factor
    shift = epsilon
    loss, log_p, lost = _rising(0.0, epsilon, shift, reach, math.log(-math.expm1(-epsilon)), side, bins)
    return made(loss, log_p, lost, lost)


def staircase(atoms: list[tuple[Number, Number]]) -> LossPair | None:
    """A discrete pair from its (log ratio, Q)."""
    loss = np.array([float(level) for level, _ in atoms])
    log_q = np.array([float(mp.log(q)) if q > 0 else -math.inf for _, q in atoms])
    return made(loss, log_q + loss)


def discrete_laplace(rate: float, shift: int, side: Side, bins: int) -> LossPair | None:
    """The pair of discrete Laplace noise; the masses beyond 0 and beyond the shift are atoms; `rate` is 1 / scale."""
    if shift * rate > WIDEST:
        return None
    log_end, log_atom = -math.log1p(math.exp(-rate)), math.log(-math.expm1(-rate)) - math.log1p(math.exp(-rate))
    ends = np.array([-shift * rate, shift * rate]), np.array([log_end - shift * rate, log_end])
    if shift <= MOST_INTEGERS:
        z = np.arange(1.0, shift)
        loss, log_p = (2.0 * z - shift) * rate, log_atom - rate * (shift - z)
    else:  # runs of integers, whose masses are geometric sums
        edges = np.unique(np.linspace(1, shift, bins + 1).astype(np.int64)).astype(np.float64)
        low, high = edges[:-1], edges[1:] - 1.0
        gap = (high - low + 1.0) * rate
        log_p = -rate * (shift - high) + np.log(-np.expm1(-gap)) - math.log1p(math.exp(-rate))
        log_q = -rate * low + np.log(-np.expm1(-gap)) - math.log1p(math.exp(-rate))
        if side == "lower":
            loss = log_p - log_q
        else:  # each run between the losses of its two ends
            a, b, own = (2.0 * low - shift) * rate, (2.0 * high - shift) * rate, log_p - log_q
            own = np.clip(own, a, b)
            width = np.maximum(-np.expm1(a - b), 1e-300)
            with np.errstate(divide="ignore"):
                to_low = log_p + (a - own) + np.log(np.maximum(-np.expm1(own - b), 0.0) / width)
                to_high = log_p + np.log(np.where(b > a, -np.expm1(a - own) / width, 1.0))
            loss, log_p = np.append(a, b), np.append(to_low, to_high)
    found = made(np.append(loss, ends[0]), np.append(log_p, ends[1]))
    return None if found is None else compressed(found, 2 * BINS, side)


def discrete_gaussian(scale: float, shift: int, reach: float, side: Side) -> LossPair | None:
    """Integers within the reach, one by one."""
    if not 1e-3 < scale < MOST_INTEGERS or 2.0 * reach * scale + shift > MOST_INTEGERS:
        return None
    far = math.ceil(reach * scale) + 1
    z = np.arange(-far, far + shift + 1.0)
    around = np.arange(-math.ceil(40.0 * scale), math.ceil(40.0 * scale) + 1.0)
    log_total = math.log(math.fsum(np.exp(-(around**2) / (2.0 * scale**2)).tolist()))
    loss = shift * (z - shift / 2.0) / scale**2
    # beyond the reach: a geometric sum that falls faster than e^{-reach^2 / 2}
    lost = 4.0 * math.exp(-(reach**2) / 2.0) / -math.expm1(-reach / scale) if side == "upper" else 0.0
    found = made(loss, -((z - shift) ** 2) / (2.0 * scale**2) - log_total, lost, lost)
    return None if found is None else compressed(found, 2 * BINS, side)


def skellam(variance: float, shift: int, log_negligible: float, side: Side) -> LossPair | None:
    """Integers within Bernstein's reach; probabilities by ratios of Bessel functions, backward."""
    level = -log_negligible
    far = math.ceil(level / 3.0 + math.sqrt((level / 3.0) ** 2 + 2.0 * level * variance)) + 1
    if far + shift > MOST_ENUMERATED:
        return None
    last = far + shift
    log_law = skellam_log_law(variance, last)
    z = np.arange(-far, far + shift + 1)
    log_p, log_q = log_law[np.minimum(np.abs(z - shift), last)], log_law[np.minimum(np.abs(z), last)]
    lost = 4.0 * math.exp(log_negligible) if side == "upper" else 0.0
    found = made(log_p - log_q, log_p, lost, lost)
    return None if found is None else compressed(found, 2 * BINS, side)


@functools.lru_cache(maxsize=8)
def skellam_log_law(variance: float, last: int) -> Floats:
    """Logarithms of the probabilities of 0 .. last, by ratios of Bessel functions, backward; shape (last + 1,)."""
    spend(last * 400)
    log_ratio = np.zeros(last + 1)  # of I_k to I_{k-1}
    ratio = 0.0
    for k in range(last + 2 * math.ceil(40.0 + math.sqrt(80.0 * variance)), 0, -1):
        ratio = 1.0 / (2.0 * k / variance + ratio)
        if k <= last:
            log_ratio[k] = math.log(ratio)
    log_law = np.cumsum(log_ratio)
    return np.asarray(log_law - math.log(math.fsum(np.exp(log_law).tolist() + np.exp(log_law[1:]).tolist())))


def table(node: StatedTable, side: Side) -> LossPair | None:
    """The pair of a profile's points."""
    lost, both, rest = table_masses(node.points)
    atoms = [(end, mp.log(mass) + end) for end, mass in both] + [(-end, mp.log(mass)) for end, mass in both]
    if rest > 0:
        atoms.append((mpf(0), mp.log(rest)))
    if not atoms:
        return LossPair(np.zeros(1), np.full(1, -math.inf), np.full(1, -math.inf), float(lost), float(lost))
    loss, log_p = (np.array([float(atom[i]) for atom in atoms]) for i in (0, 1))
    found = made(loss, log_p, float(lost), float(lost))
    return None if found is None else compressed(found, 2 * BINS, side)


def pooled(loss: Floats, log_mass: Floats, offset: float, step: float) -> tuple[NDArray[np.int64], Floats]:
    """Indices of lattice points offset + step * index, and the logarithms of their masses under the numerator.

    A pool at the lattice point x has sum of masses * (1 - e^{x - loss}) = 0. An output may be shared between pools.
    """
    top = float(log_mass.max())
    found: dict[int, float] = {}
    _sweep(np.exp(log_mass - top)[::-1].tolist(), loss[::-1].tolist(), offset, step, found)
    index = np.array(sorted(found), dtype=np.int64)
    return index, np.log([found[k] for k in index.tolist()]) + top


def _sweep(masses: list[float], losses: list[float], offset: float, step: float, pooled: dict[int, float]) -> None:
    index, pool, balance = 0, 0.0, 0.0
    for mass, loss in zip(masses, losses, strict=True):
        left = mass
        if pool > 0.0:
            excess = math.expm1(min(offset + index * step - loss, 700.0))
            if excess <= 0.0 or balance > left * excess:
                pool += left
                balance -= left * excess
                continue
            part = balance / excess
            pooled[index] = pooled.get(index, 0.0) + pool + part
            left -= part
            pool = 0.0
        if left > 0.0:  # a new pool, at the lattice point below its first loss
            index = math.floor((loss - offset) / step)
            pool, balance = left, -left * math.expm1(offset + index * step - loss)
    if pool > 0.0:
        _finish(index, pool, balance, step, pooled)


def _finish(index: int, pool: float, balance: float, step: float, pooled: dict[int, float]) -> None:
    """The last pool, which nothing from below completes, at a loss between two lattice points.

    It rises to the upper one by what it borrows from other pools, or falls to the lower one, as costs less.
    """
    if step > 600.0:  # no float holds what it would have to borrow
        pooled[index] = pooled.get(index, 0.0) + pool
        return
    rise = -math.expm1(-step)
    needed = (pool - balance) * math.exp(step) - pool
    borrowed: list[tuple[int, float]] = []
    distance, missing = 0.0, needed
    for k in sorted(pooled):
        if k <= index + 1 or missing <= 0.0:
            continue
        gain = -math.expm1((index + 1 - k) * step)
        part = min(pooled[k], missing / gain)
        borrowed.append((k, part))
        missing -= part * gain
        distance += part * gain * (k - index - 1) * step
    if missing > 1e-18 * pool or balance < distance or balance < 1e-6 * rise * pool:
        pooled[index] = pooled.get(index, 0.0) + pool
        return
    for k, part in borrowed:
        pooled[k] -= part
        if pooled[k] <= 0.0:
            del pooled[k]
    pooled[index + 1] = pooled.get(index + 1, 0.0) + pool + sum(part for _, part in borrowed)
