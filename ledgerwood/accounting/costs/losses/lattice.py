"""One draw's privacy loss on a lattice: a distribution that dominates the event's, and one that the event's dominates.

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

_FEW = 2048  # lattice points


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
        log_whole: logarithm of all mass under P, the infinite included: of a bound from above, at least 0, or below.
        error: total absolute error of `mass`, as a measure, against the distribution that it stands for.
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
    """A bound on the profile at ascending lattice points >= 0 (`index * step`), in both directions; from index 0 on.

    The errors are how far the truth may be on the other side of each value; None for a bound from above. A cap bounds
    the profile from below at the dot before the last positive one, by a line that is under the curve on that cell.
    `rest` is never above the profile ahead, however large the loss; the cap ahead is a height above it.
    """

    step: float
    ahead_index: Indices
    ahead: FloatArray
    back_index: Indices
    back: FloatArray
    ahead_error: FloatArray | None = None
    back_error: FloatArray | None = None
    ahead_cap: float = 0.0
    back_cap: float = 0.0
    rest: float = 0.0


def nodes(step: float, end: float, per_fold: float) -> Indices:
    """The first `per_fold` lattice points, then ever sparser ones, by 1 / per_fold of the loss, beyond `end` (nats).

    Every one to the end, if they are few.
    """
    last = math.ceil(end / step) + 2
    start = last if last <= _FEW else min(math.ceil(per_fold), last)
    count = int(math.log(max(last / start, 1.0)) * per_fold) + 2
    sparse = np.rint(start * np.exp(np.arange(count + 1) / per_fold)).astype(np.int64)
    edge = np.arange(max(last - 4, 0), last + 1)
    found = np.sort(np.concatenate((np.arange(start + 1), sparse[sparse < last], edge)).astype(np.int64))
    return found[np.concatenate(([True], found[1:] != found[:-1]))]


@np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore")
def law(dots: Dots, *, tilt: float, above: bool) -> Law:
    """The dominating (`above`) or the dominated distribution of a pair with this profile.

    Raises:
        UnsupportedEvent: all loss falls off the lattice.
    """
    index, mass, infinite = _connect(dots)
    step = dots.step
    base, floor = _line(dots, dots.back, dots.ahead)
    if above:
        wanted = base + floor
        mass = np.maximum(mass, 0.0)
        whole = float(mass.sum()) + infinite
        found = evaluate(index, mass, step) + infinite
        worst = max(float(np.where(wanted > 0.0, wanted / found, 0.0).max()), 1.0 / whole)
    else:
        centre = len(dots.back_index) - 1
        rest, left = dots.rest, _fallen(dots, index, mass, floor)
        if rest > 0.0 and not left[centre] > rest:  # the lines on both sides of 1 need not lie under the curve
            rest, left = 0.0, _fallen(replace(dots, rest=0.0, ahead_cap=0.0), index, mass, floor)
        mass, _ = hull(index, lowered(index, mass, floor - left, step, 0.0), step, 0.0)
        mass[centre + 1 + int(np.argmax(left[centre:] <= rest)) :] = 0.0  # nothing is left beyond
        infinite = rest
        wanted = base + left - rest
        if rest > 0.0:
            wanted = np.maximum(wanted - 4.0 * ULP * (base + left), 0.0)
        found = evaluate(index, mass, step)
        worst = max(float(np.where(found > 0.0, found / wanted, 0.0).max()), float(mass.sum()) / (1.0 - rest))
        whole = float(mass.sum()) / (max(worst, 1.0) * (1.0 + 1e-9)) + rest
    kept = mass > 0.0
    if not kept.any() or math.isnan(worst):
        raise UnsupportedEvent(f"no loss of the draw is on a lattice of step {step:.3g}")
    log_whole = math.log(max(whole, 1.0)) + 64.0 * ULP if above else min(math.log(max(whole, LEAST)), 0.0) - 64.0 * ULP
    growth = math.log(max(worst, 1.0)) + 8.0 * ULP * (len(index) + 8)
    return tilted(Law(step, tilt, index[kept], mass[kept], 0.0, infinite, log_whole, 0.0, growth))


def _fallen(dots: Dots, index: Indices, mass: FloatArray, floor: FloatArray) -> FloatArray:
    """What is left of the floor when each dot has fallen far enough: from somewhere on 0, or ahead what never ends."""
    assert dots.ahead_error is not None
    assert dots.back_error is not None
    _, error = _line(dots, dots.back_error, dots.ahead_error)
    centre = len(dots.back_index) - 1
    noise = 32.0 * ULP * floor
    noise[centre] += 16.0 * ULP * math.expm1(dots.step * max(int(dots.ahead_index[1]), int(dots.back_index[1])))
    margin = 2.0 * _margin(index, error + noise, noise, dots.step)
    left = floor - lowering(index, mass, dots.step, 0.0) - margin
    # Each side as a view, from the centre outward.
    sides = (left[centre:], dots.ahead_cap, -1, dots.rest), (left[centre::-1], dots.back_cap, 1, 0.0)
    for side, cap, inward, ground in sides:
        stuck = np.flatnonzero(~(side > ground * (1.0 + 1e-12)))
        if stuck.size == 0:
            side[-1] = ground
            continue
        # It cannot fall as far as both its cells ask for. On the ground it needs to have fallen for the inner one only.
        last = int(stuck[0])
        dot = centre - inward * last
        if last == 0 or floor[dot] - ground >= _asked(index, mass, margin, dots.step, dot, dot + inward):
            side[last:] = ground
            continue
        # Or its neighbour falls: under the cap where there is one, else to the ground.
        behind = dot - inward
        capped = floor[dot] > ground and (not 0 <= behind < len(floor) or floor[behind] <= ground)
        scale = math.exp(min(dots.step * float(index[dot + inward]), 0.0))
        line = (ground + cap * scale * (1.0 - 16.0 * ULP)) * (1.0 - 2.0 * ULP * (ground > 0.0))
        side[last - 1] = max(min(float(side[last - 1]), line), ground) if capped else ground
        side[last:] = ground
    return left


def _asked(index: Indices, mass: FloatArray, margin: FloatArray, step: float, dot: int, inner: int) -> float:
    """How far `dot` must fall for the chord to its neighbour `inner`: `lowering` for one cell."""
    gap = step * float(index[dot] - index[inner])
    beside = np.array(max(float(mass[inner]), 0.0) * math.exp(min(gap, 700.0)))
    fall = abs(math.expm1(-gap)) * float(_share(np.array(max(float(mass[dot]), 0.0)), beside))
    return float(fall * (1.0 + 16.0 * ULP) + min(margin[dot], margin[inner]))


def _margin(index: Indices, error: FloatArray, noise: FloatArray, step: float) -> FloatArray:
    """By how much the extended chords may lie too high next to each dot, where dots are too low by up to `error`.

    `noise` is what of it is the rounding of the chords themselves.
    """
    gaps = np.diff(index) * step
    cells = np.zeros(len(gaps) + 2)  # one more on each side
    cells[2:-1] = error[:-2] * np.expm1(gaps[1:]) / -np.expm1(-gaps[:-1])
    cells[1:-2] = np.maximum(cells[1:-2], error[2:] * -np.expm1(-gaps[:-1]) / np.expm1(gaps[1:]))
    cells[1:-1] += np.maximum(noise[1:], noise[:-1])
    return np.asarray(np.maximum(cells[1:], cells[:-1]))


def tilted(law: Law) -> Law:
    """The distribution, untilted so far, with its masses tilted and scaled; their rounding becomes its error."""
    sizes = np.abs(np.log(law.mass)) + np.abs(law.tilt * law.step * law.index)
    powers = np.log(law.mass) + law.tilt * law.step * law.index
    top = float(powers.max())
    weights = np.exp(powers - top)
    total = math.fsum(weights.tolist())
    error = 4.0 * ULP * (16.0 + float(((sizes + (top - powers)) * weights).sum()) / total)
    return replace(law, mass=weights / total, log_scale=top + math.log(total), error=error)


def lowering(index: Indices, mass: FloatArray, step: float, tilt: float) -> FloatArray:
    """Computes by how much each dot must fall for all chords to lie under the curve; shape (k,).

    In units of the profile times exp(tilt * loss), as the masses are.
    """
    gaps = np.diff(index) * step
    right = np.append(np.expm1(gaps), 0.0)  # cell widths in e^loss, over e^loss of this dot
    left = np.append(0.0, -np.expm1(-gaps))
    ratio = np.exp((1.0 + tilt) * gaps)
    positive = np.maximum(mass, 0.0)
    ahead = _share(positive, np.append(positive[1:] / ratio, 0.0))
    behind = _share(positive, np.append(0.0, positive[:-1] * ratio))
    return np.asarray(np.maximum(right * ahead, left * behind) * (1.0 + 16.0 * ULP))


def _share(mass: FloatArray, beside: FloatArray) -> FloatArray:
    """What a dot does for a cell of width 1: all, half or nothing, as its neighbour's mass is less, alike or more."""
    return np.where(beside <= 0.5 * mass, beside, np.where(beside <= 2.0 * mass, 0.5 * mass, 0.0))


def lowered(index: Indices, mass: FloatArray, drop: FloatArray, step: float, tilt: float) -> FloatArray:
    """The masses of the dots after each has fallen by `drop`; some may be negative."""
    gaps = np.diff(index) * step
    scale = np.exp(tilt * gaps)
    forward = np.append((drop[1:] / scale - drop[:-1]) / np.expm1(gaps), 0.0)
    # Before the first dot the profile is a line that starts at e^loss = 0, if nothing falls.
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


def _line(dots: Dots, back: FloatArray, ahead: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The profile of no loss at all, (1 - x)+, and what a profile has beyond it, at all dots along the line."""
    below = dots.step * dots.back_index[:0:-1]
    base = np.concatenate((-np.expm1(-below), np.zeros(len(ahead))))
    return base, np.concatenate((np.exp(-below) * back[:0:-1], ahead))
