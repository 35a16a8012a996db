"""One draw's privacy loss on a lattice: a law that dominates the event's, and one that the event's dominates.

Dominating: connect the dots (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022). Dominated: the same dots, each lowered
by half its own mass times the width of its cell, which lowers every chord below the curve, then the convex hull.
docs/explanation/pld.md#above and #below.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import UnsupportedEvent

ULP = 2.0**-52
LEAST = 1e-306  # of a profile's values that are not 0: where exponentials are still exact to a few units
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Law:
    """Losses index * step under P, each mass multiplied by exp(tilt * loss - log_scale); a positive measure.

    Args:
        step: nats.
        tilt: >= 0.
        index: shape (k,), ascending.
        mass: shape (k,), >= 0, of sum about 1.
        log_scale: natural logarithm of the factor that was taken out.
        infinite: the probability of an infinite loss.
        log_whole: logarithm of all mass under P, the infinite included, where that is above 1; else 0.
        error: total absolute error of `mass`, as a measure, against the law that it stands for.
        growth: logarithm of the factor by which the law's profile may be on the wrong side.
    """

    step: float
    tilt: float
    index: Indices
    mass: FloatArray
    log_scale: float
    infinite: float
    log_whole: float
    error: float
    growth: float


@dataclass(frozen=True, slots=True)
class Dots:
    """The profile at ascending lattice points >= 0 (`index * step`), in both directions; from index 0 on.

    A cap is where the line through the support's end and a point just before it meets the last dot with a loss beyond:
    it lies under the curve, and tells an atom at the end from a density.
    """

    step: float
    ahead_index: Indices
    ahead: FloatArray
    back_index: Indices
    back: FloatArray
    ahead_cap: float = math.inf
    back_cap: float = math.inf


def nodes(step: float, dense: float, end: float, per_fold: float) -> Indices:
    """Every lattice point up to `dense` (nats), then ever sparser ones, by 1 / per_fold of the loss, beyond `end`."""
    last = math.ceil(end / step) + 2
    first = min(math.ceil(dense / step), last)
    start = max(first, math.ceil(per_fold))
    count = int(math.log(max(last / start, 1.0)) * per_fold) + 2
    sparse = np.rint(start * np.exp(np.arange(count + 1) / per_fold)).astype(np.int64)
    edge = np.arange(max(last - 4, 0), last + 1)
    head = np.arange(0, min(start, last) + 1)
    return np.unique(np.concatenate((head, sparse[sparse < last], edge))).astype(np.int64)


@np.errstate(over="ignore", invalid="ignore")
def law(dots: Dots, *, tilt: float, above: bool) -> Law:
    """The dominating (`above`) or the dominated law of a pair with this profile."""
    index, mass, infinite = _connect(dots)
    step = dots.step
    wanted = _profile(dots)
    if above:
        mass = np.maximum(mass, 0.0)
        whole = float(mass.sum()) + infinite
        found = evaluate(index, mass, step) + infinite
        with np.errstate(divide="ignore", invalid="ignore"):
            growth = max(float(np.where(wanted > 0.0, wanted / found, 0.0).max()), 1.0 / whole, 1.0) - 1.0
    else:
        drop = _grounded(dots, index, lowering(index, mass, step, 0.0))
        mass, _ = hull(index, lowered(index, mass, drop, step, 0.0), step, 0.0)
        infinite = whole = 0.0
        over = evaluate(index, mass, step) - np.maximum(wanted - drop, 0.0)
        ratio = np.where(over > 0.0, over / np.maximum(wanted, 1e-307), 0.0)
        growth = 2.0 * max(float(ratio.max()), float(mass.sum()) - 1.0, 0.0)
    kept = mass > 0.0
    if not kept.any():
        raise UnsupportedEvent(f"no loss of the draw is on a lattice of step {step:.3g}")
    log_whole = math.log(max(whole, 1.0)) + 64.0 * ULP
    growth = math.log1p(growth) + 8.0 * ULP * (len(index) + 8)
    return tilted(Law(step, tilt, index[kept], mass[kept], 0.0, infinite, log_whole, 0.0, growth))


def _grounded(dots: Dots, index: Indices, drop: FloatArray) -> FloatArray:
    """The same falls, but no dot falls below the profile of no loss at all, and the outermost fall right onto it."""
    floor = np.concatenate((dots.back[:0:-1] * np.exp(-dots.step * dots.back_index[:0:-1]), dots.ahead))
    centre = len(dots.back_index) - 1
    result = np.where(floor > 0.0, drop, 0.0)
    for side, cap in ((slice(centre + 1, None), dots.ahead_cap), (slice(centre - 1, None, -1), dots.back_cap)):
        if side.start < 0:
            continue
        heights, falls = floor[side], result[side]  # views, from the centre outward
        ends = np.flatnonzero(heights <= 0.0)
        if ends.size == 0:
            last = len(heights) - 1
        elif int(ends[0]) == 0:
            result[centre] = floor[centre]
            continue
        else:
            last = int(ends[0]) - 1
            fall = heights[last] - cap * math.exp(min(float(dots.step * index[side][last]), 0.0))
            falls[last] = max(falls[last], min(fall, heights[last]))
            last += 1
        bad = np.flatnonzero(heights[:last] - falls[:last] <= 0.0)
        if bad.size:
            last = max(int(bad[0]) - 1, 0)
        falls[last:] = heights[last:]
    return result


def tilted(law: Law) -> Law:
    """The law, untilted so far, with its masses tilted and scaled; their rounding becomes its error."""
    sizes = np.abs(np.log(law.mass)) + np.abs(law.tilt * law.step * law.index)
    powers = np.log(law.mass) + law.tilt * law.step * law.index
    top = float(powers.max())
    weights = np.exp(powers - top)
    total = math.fsum(weights.tolist())
    error = 4.0 * ULP * (16.0 + float(((sizes + (top - powers)) * weights).sum()) / total)
    return replace(law, mass=weights / total, log_scale=top + math.log(total), error=error)


def lowering(index: Indices, mass: FloatArray, step: float, tilt: float) -> FloatArray:
    """By how much each dot must fall for all chords to lie under the curve; shape (k,).

    In units of the profile times exp(tilt * loss), as the masses are.
    """
    gaps = np.diff(index) * step
    right = np.append(np.expm1(gaps), 0.0)  # cell widths in e^loss, over e^loss of this dot
    left = np.append(0.0, -np.expm1(-gaps))
    ratio = np.exp((1.0 + tilt) * gaps)
    positive = np.maximum(mass, 0.0)
    beside = np.maximum(np.append(positive[1:] / ratio, 0.0), np.append(0.0, positive[:-1] * ratio))
    drop: FloatArray = np.maximum(right, left) * np.minimum(0.5 * positive, beside)
    return drop * (1.0 + 16.0 * ULP)


def lowered(index: Indices, mass: FloatArray, drop: FloatArray, step: float, tilt: float) -> FloatArray:
    """The masses of the dots after each has fallen by `drop`; some may be negative."""
    gaps = np.diff(index) * step
    scale = np.exp(tilt * gaps)
    forward = np.append((drop[1:] / scale - drop[:-1]) / np.expm1(gaps), 0.0)
    # Before the first dot the profile is a line that starts at e^loss = 0, where nothing falls.
    backward = np.append(drop[0], (drop[1:] - drop[:-1] * scale) / -np.expm1(-gaps))
    result: FloatArray = mass - forward + backward
    return result


def hull(index: Indices, mass: FloatArray, step: float, tilt: float) -> tuple[FloatArray, float]:
    """The greatest convex function below: a negative mass goes to the neighbours, which only lowers the function.

    Returns:
        The masses, >= 0, and the sum of what could only be moved from the last dot to one before it.
    """
    if not (mass < 0.0).any():
        return mass, 0.0
    t, m = (index * step).tolist(), mass.tolist()
    kept: list[int] = []
    for i in range(len(m)):
        while kept and m[kept[-1]] < 0.0:
            top = kept.pop()
            amount, m[top] = m[top], 0.0
            if not kept:
                m[i] += amount * math.exp(min(tilt * (t[i] - t[top]), 700.0))
                break
            low = kept[-1]
            share = math.expm1(t[low] - t[top]) / math.expm1(t[low] - t[i])
            m[i] += share * amount * math.exp(min(tilt * (t[i] - t[top]), 700.0))
            m[low] += (1.0 - share) * amount * math.exp(tilt * (t[low] - t[top]))
        kept.append(i)
    moved = 0.0
    while len(kept) > 1 and m[kept[-1]] < 0.0:
        top = kept.pop()
        amount = m[top] * math.exp(tilt * (t[kept[-1]] - t[top]))
        moved -= m[top] + amount
        m[kept[-1]] += amount
        m[top] = 0.0
    return np.maximum(np.array(m), 0.0), moved


def evaluate(index: Indices, mass: FloatArray, step: float) -> FloatArray:
    """The profile of the finite atoms at each of them, by sums of positive terms; shape (k,)."""
    gaps = np.diff(index) * step
    values = [0.0] * len(index)
    decays, grows, masses = np.exp(-gaps).tolist(), (-np.expm1(-gaps)).tolist(), mass.tolist()
    ahead, total = 0.0, 0.0  # sum of mass e^{-(loss - here)}, and the profile
    for i in range(len(index) - 2, -1, -1):
        beyond = masses[i + 1] + ahead
        total += grows[i] * beyond
        ahead = decays[i] * beyond
        values[i] = total
    return np.array(values)


def _connect(dots: Dots) -> tuple[Indices, FloatArray, float]:
    """P masses of the chords: lattice indices from the last of `back` to the last of `ahead`; and the rest at inf."""
    ahead, first_fall = _side(dots.ahead_index, dots.ahead, dots.step)
    back, back_fall = _side(dots.back_index, dots.back, dots.step)
    centre = 1.0 - float(dots.back[0]) - first_fall - back_fall
    index = np.concatenate((-dots.back_index[:0:-1], dots.ahead_index))
    mass = np.concatenate((back[::-1] * np.exp(-dots.step * dots.back_index[:0:-1]), [centre], ahead))
    return index, mass, float(dots.ahead[-1])


def _side(index: Indices, h: FloatArray, step: float) -> tuple[FloatArray, float]:
    """Masses at the dots beyond the first; and the first chord's slope."""
    gaps = np.diff(index) * step
    falls = h[:-1] - h[1:]
    slopes = falls / np.expm1(gaps)
    masses = falls / -np.expm1(-gaps) - np.append(slopes[1:], 0.0)
    return masses, float(slopes[0])


def _profile(dots: Dots) -> FloatArray:
    """The profile at all dots, as one line in e^loss: H ahead, 1 - x + x H(back) below."""
    below = dots.step * dots.back_index[:0:-1]
    negative = -np.expm1(-below) + np.exp(-below) * dots.back[:0:-1]
    return np.concatenate((negative, dots.ahead))
