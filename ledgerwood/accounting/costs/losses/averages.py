"""Averages of independent likelihood ratios: distributions that dominate an average, and that an average dominates.

A random allocation's likelihood ratio is the average of its steps' ones. Every hockey-stick divergence is the mean of a
convex function of the ratio. So moving mass apart while its mean stays bounds all of them from above, and moving it
together bounds all of them from below: docs/explanation/allocation.md#order and #grid.
"""

import math
from dataclasses import dataclass

import numpy as np

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses import dots, lattice, saddle
from ledgerwood.accounting.costs.losses.lattice import ULP
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.errors import UnsupportedEvent

CELLS = 1800  # of a grid: the width of the bounds goes with the inverse square, the time with the square
_ENOUGH = 1100  # of each of the twenty grids and more of 2^20 draws
_PILOTS = 160  # atoms of each summand when a grid is chosen
_ROWS = 16  # of the table of pairs that are added up at once, so that they stay in the processor's cache
_LOG_LOST = -140.0  # of a draw's profile: what is less likely becomes an infinite loss
_PER_DEVIATION = 400.0  # lattice points of one draw per standard deviation of its loss
_PER_FOLD = 800.0  # and per factor e beyond
_NEAR, _FAR = 32.0, 9.0  # depths of the tails, log of their integral: that which the direction asks for, the other one
_EVEN = 0.5  # a depth up to which a grid is even
_BEYOND = 8.0  # by this factor a grid is coarser beyond those depths
_MIDDLE = np.array([0.16, 0.5, 0.84])  # quantiles: the scatter of a summand, and its middle
_WIDE = 0.25  # of that scatter: cells beyond are put where the atoms of the other summand are
_FEW_PAIRS = 1 << 18  # which are worth a look whether few of their sums are different
_VERY_FEW_PAIRS = 1 << 15  # which are quickly sorted
_NEIGHBOURS = 24  # of each summand, whose sums are looked at for that
_ALIKE = 64.0 * ULP  # relative: the largest distance of places that count as one
_LARGEST = 100.0  # nats: a loss beyond is infinite from above, and left out from below
_NO_PLACE = 1e-100  # a grid's places begin beyond: a cell is at least 2^-400 wide, and distances have a scale
_UNDERFLOW = 1e-260  # more than what products of masses lose below the smallest numbers


@dataclass(frozen=True, slots=True)
class Ratios:
    """Masses at ascending places >= 0: a distribution of likelihood ratios dP/dQ, or of their sum, under Q.

    Args:
        place: shape (k,).
        mass: shape (k,), > 0.
    """

    place: FloatArray
    mass: FloatArray


@dataclass(frozen=True, slots=True)
class Average:
    """The distribution of an average ratio, read as one direction's privacy profile; a bound on it.

    Args:
        atoms: of the average.
        direction: whose profile it bounds.
        above: which bound it is.
        infinite: the probability of an infinite loss in direction remove. In direction add a mass at place 0 is it, and
            this is what rounding to 0 may have lost.
        growth: logarithm of the factor by which the masses may err.
        shift: by how much places may err, relative.
        tails: shape (k,), mean of the part above each place (remove), or below it (add).
        beyond: shape (k,), mass from each place on (remove), or up to it (add).
    """

    atoms: Ratios
    direction: Direction
    above: bool
    infinite: float
    growth: float
    shift: float
    tails: FloatArray
    beyond: FloatArray

    def log_profile(self, epsilons: FloatArray) -> FloatArray:
        """The bound on log H at each epsilon >= 0 (nats), shape of `epsilons`."""
        with np.errstate(divide="ignore"):
            logs = np.log(self._values(epsilons))
        # The sums of positive terms err by less than the growth, which counts every sum of the way here.
        error = self.growth + 16.0 * ULP * (len(self.atoms.place) + np.abs(np.where(np.isinf(logs), 0.0, logs)))
        if self.above:
            return np.asarray(np.minimum(logs + error, 0.0))
        return np.asarray(np.minimum(logs - error, 0.0))

    def _values(self, epsilons: FloatArray) -> FloatArray:
        place, sign = self.atoms.place, 1.0 if self.above else -1.0
        bounded = np.minimum(epsilons, 700.0)
        if self.direction is Direction.REMOVE:  # E_Q[(M - e^eps)+]
            strike = np.exp(bounded) * (1.0 - sign * (self.shift + 8.0 * ULP))
            following = np.searchsorted(place, strike, side="right")
            inside = following < len(place)
            at = np.minimum(following, len(place) - 1)
            found = np.where(inside, self.tails[at] + (place[at] - strike) * self.beyond[at], 0.0)
            return np.asarray(np.minimum(found + self.infinite, 1.0))
        strike = np.exp(-bounded) * (1.0 + sign * (self.shift + 8.0 * ULP))  # E_Q[(1 - e^eps M)+]
        preceding = np.searchsorted(place, strike, side="right") - 1
        at = np.maximum(preceding, 0)
        found = np.where(preceding >= 0, self.tails[at] + (strike - place[at]) * self.beyond[at], 0.0)
        return np.asarray(np.minimum(found * np.exp(bounded) + self.infinite, 1.0))


_NOTHING = Ratios(np.zeros(1), np.ones(1))


def average(
    event: Event, count: int, direction: Direction, *, above: bool, below: dots.Below | None = None, most: int = CELLS
) -> Average:
    """The average of `count` independent ratios of the event's pair, in one direction, from above or from below.

    Args:
        event: with a profile.
        count: >= 1.
        direction: whose profile is bounded.
        above: which bound.
        below: gives lower bounds on the event's profile; needed where `above` is False.
        most: cells of a grid.

    Raises:
        UnsupportedEvent: the event's losses do not fit a lattice, or no lower bound on its profile is proven.
    """
    one, infinite, growth = _one_draw(event, direction, above, below)
    right, doublings = direction is Direction.REMOVE, count.bit_length() - 1
    cells = min(int(_ENOUGH * math.sqrt(20.0 / max(doublings, 1))), most)
    power = _projected(one, _NOTHING, right, above, cells)
    sum_of = None
    for place in range(doublings + 1):
        if place:
            power = _projected(power, power, right, above, cells)
        if count >> place & 1:
            sum_of = power if sum_of is None else _projected(sum_of, power, right, above, cells)
    assert sum_of is not None  # count >= 1
    # Every leaf and every node of the tree of sums errs by this, relative: allocation.md#allocation-rounding.
    terms = max((cells + 1.0) * (1.0 + 1.0 / _ROWS), len(one.place) / _ROWS) + _ROWS + 16.0
    rounding = ULP * terms  # twice that
    mass = float(one.mass.sum())
    whole = count * (growth + 2.0 * rounding)
    if above:
        infinite = infinite * math.exp(count * max(math.log(mass), 0.0)) * (1.0 + 1e-9) + _UNDERFLOW * count
    else:
        infinite = infinite * math.exp(count * min(math.log(mass), 0.0)) * (1.0 - 1e-9)
    shift = (2.0 * count.bit_length() + 4.0) * (rounding + 4.0 * ULP + _ALIKE) + 2e-13  # of exp(loss), up to 140 nats
    atoms = Ratios(sum_of.place / count, sum_of.mass)
    return Average(atoms, direction, above, infinite, whole, shift, *(_from(atoms) if right else _up_to(atoms)))


def _one_draw(event: Event, direction: Direction, above: bool, below: dots.Below | None) -> tuple[Ratios, float, float]:
    """One draw's ratios under Q; the probability of an infinite loss in direction remove, and the growth."""
    seen = dots.sides(event)
    model = saddle.model(seen if direction is Direction.REMOVE else seen.turned(), _LOG_LOST)
    step = dots.aligned(((event, 1),), max(math.sqrt(model.moments(0.0)[2]), 1e-12) / _PER_DEVIATION)
    law = lattice.law(
        dots.dots(event, direction, step, _LOG_LOST, _PER_FOLD, below=None if above else below), tilt=0.0, above=above
    )
    losses, log_mass, infinite = law.index * step, np.log(law.mass) + law.log_scale, law.infinite
    size = float((np.abs(losses) + np.abs(log_mass)).max()) + abs(law.log_scale)
    growth = law.growth + 16.0 * ULP * (16.0 + size)  # of logarithms and exponentials on the way
    # Ratios beyond e^100 are no numbers to add up: allocation.md#allocation-rounding.
    if direction is Direction.REMOVE:
        far = losses > _LARGEST
        infinite += float(np.exp(log_mass[far]).sum()) * (1.0 + 1e-9) if above else 0.0
        losses, log_mass = losses[~far], log_mass[~far]
        place, mass = np.exp(losses), np.exp(log_mass - losses)
        total = float(mass.sum())
        if above:  # a sum of the others may be above the threshold: all mass counts, allocation.md#mass
            spare = 8.0 * ULP * (len(mass) + size)
            place, mass = np.append(0.0, place), np.append(max(1.0 - total, 0.0) + spare, mass)
        else:
            growth += max(math.log(max(total, 1e-300)), 0.0) + 8.0 * ULP * len(mass)
    else:
        if above:
            losses = np.maximum(losses, -_LARGEST)
        else:
            losses, log_mass = losses[losses >= -_LARGEST], log_mass[losses >= -_LARGEST]
        place, mass = np.exp(-losses)[::-1], np.exp(log_mass)[::-1]
        if infinite > 0.0:
            place, mass, infinite = np.append(0.0, place), np.append(infinite, mass), 0.0
    kept = mass > 0.0
    place, mass = place[kept], mass[kept]
    told = float((place * mass).sum() if direction is Direction.REMOVE else mass.sum()) + infinite
    if not (place.size and np.isfinite(place).all() and np.isfinite(mass).all() and math.isfinite(growth)):
        raise UnsupportedEvent(f"floats do not hold the likelihood ratios of {type(event).__name__}")
    if above and not told >= 1.0 - 1e-6:  # the dominating distribution has at least all mass: a guard, never met
        raise UnsupportedEvent(f"the likelihood ratios of {type(event).__name__} lost mass to rounding")
    return Ratios(place, mass), infinite, growth


def _projected(one: Ratios, other: Ratios, right: bool, above: bool, cells: int) -> Ratios:
    """The sum of two independent variables on a grid: each cell's mass at its ends (above), or at its mean.

    Args:
        one, other: the summands; the same object for a square.
        right: whether the grid is fine in the right tail.
        above: which bound.
        cells: of the grid.
    """
    least, largest = one.place[0] + other.place[0], one.place[-1] + other.place[-1]
    if least == largest:
        return _massive(np.array([least]), np.array([one.mass.sum() * other.mass.sum()]))
    if above and largest <= _NO_PLACE:  # no room for cells: moved to where the direction's functions are larger
        return _massive(np.array([largest if right else least]), np.array([one.mass.sum() * other.mass.sum()]))
    pairs = len(one.place) * len(other.place)
    if pairs <= _VERY_FEW_PAIRS or (pairs <= _FEW_PAIRS and _look_few(one, other)):
        exact = _merged(*_sorted_pairs(one, other), cells)
        if len(exact.place) <= cells:  # few ratios, such as those of a pure event: no grid is needed
            return exact
    grid = _grid(one, other, right, cells, above)
    if above:
        width = np.diff(grid)
        # A power of two, so that products with distances lose no more below the smallest numbers than those of masses.
        scale = 2.0 ** max(math.ceil(-math.log2(float(width.min()))), 0)
        from_left, from_right = _moments(one, other, grid, True, scale)
        width *= scale
        return _massive(grid, np.append(from_right / width, 0.0) + np.append(0.0, from_left / width))
    offset, mass = _moments(one, other, grid, False, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _massive(grid[:-1] + offset / mass, mass)


def _look_few(one: Ratios, other: Ratios) -> bool:
    """Returns whether many sums of neighbours are alike, as those of a pure event; a guess that enters no bound."""
    first, second = (each.place[len(each.place) // 2 :][:_NEIGHBOURS] for each in (one, other))
    sums = np.sort(np.add.outer(first, second).ravel())
    different = 1 + np.count_nonzero(np.diff(sums) > 4.0 * ULP * sums[1:])
    # A summand that is the same twice has each sum of two different places twice.
    return bool(2 * different < len(sums))


def _massive(places: FloatArray, masses: FloatArray) -> Ratios:
    """The places that have mass.

    Raises:
        UnsupportedEvent: none has, since products of small masses are 0: a bound from below that says nothing.
    """
    kept = masses > 0.0
    if not kept.any():
        raise UnsupportedEvent("floats do not hold the products of the likelihood ratios' masses")
    return Ratios(places[kept], masses[kept])


def _moments(one: Ratios, other: Ratios, grid: FloatArray, above: bool, scale: float) -> tuple[FloatArray, FloatArray]:
    """Each cell's sum of mass times distance from its left end, and from its right end (above), or its mass; (k,) each.

    Times `scale`. Sums of positive terms, so that each is right to a relative error: allocation.md#allocation-rounding.
    """
    size = len(grid) - 1
    offset, rest = np.zeros(size), np.zeros(size)
    square = one is other
    for start in range(0, len(one.place), _ROWS):
        rows = slice(start, start + _ROWS)
        columns = slice(start, None) if square else slice(None)
        sums = one.place[rows, np.newaxis] + other.place[columns]
        weights = (scale * one.mass[rows, np.newaxis]) * other.mass[columns]
        if square:
            weights[:, _ROWS:] *= 2.0  # each such pair stands for its mirror image too
        cell = np.minimum(np.searchsorted(grid, sums, side="right") - 1, size - 1)
        from_left = (sums - grid[cell]) * weights
        if above:
            weights *= grid[cell + 1] - sums
        # Each row has its own cells, so that no number is a sum of more than a row's terms, the rows and the blocks.
        cell += size * np.arange(len(sums))[:, np.newaxis]
        bins = cell.ravel(), size * len(sums)
        offset += np.bincount(bins[0], from_left.ravel(), bins[1]).reshape(-1, size).sum(axis=0)
        rest += np.bincount(bins[0], weights.ravel(), bins[1]).reshape(-1, size).sum(axis=0)
    return offset, rest


def _grid(one: Ratios, other: Ratios, right: bool, cells: int, above: bool) -> FloatArray:
    """Ascending places, the extreme sums among them; a choice that enters no bound. allocation.md#choice.

    Even in the logarithm of the tail's integral near the middle, and ever wider, as its square root, further out.
    """
    ends = np.array([one.place[0] + other.place[0], one.place[-1] + other.place[-1]])
    place, mass = _sorted_pairs(_coarse(one), _coarse(other))
    (calls, _), (puts, _) = _from(Ratios(place, mass)), _up_to(Ratios(place, mass))
    tails = np.minimum(calls, puts)
    middle = int(np.argmax(tails))
    if not tails[middle] > 1e-200:  # hardly any mass is apart from the rest
        return ends
    with np.errstate(divide="ignore"):
        depth = np.log(tails[middle]) - np.log(np.maximum(tails, tails[middle] * 1e-60))
    left = np.arange(len(place)) < middle
    most = np.where(left == right, _FAR, _NEAR)
    near = np.minimum(depth, most)
    scale = 2.0 * _EVEN * (np.sqrt(1.0 + near / _EVEN) - 1.0) + (depth - near) / _BEYOND / np.sqrt(1.0 + most / _EVEN)
    scale = np.maximum.accumulate(np.where(left, -scale, scale))
    kept = np.append(True, np.diff(scale) > 0.0)
    inner = np.interp(np.linspace(scale[0], scale[-1], cells + 1)[1:-1], scale[kept], place[kept])
    inner = _aligned(inner, one, other, above)
    return np.asarray(np.unique(np.concatenate((ends, np.clip(inner[inner > _NO_PLACE], *ends)))))


def _aligned(inner: FloatArray, one: Ratios, other: Ratios, above: bool) -> FloatArray:
    """A grid's inner places, where they are far apart moved to the nearest atom of `other` (above), or between two.

    There a sum is such an atom and hardly more than a constant: allocation.md#aligned.
    """
    total = np.cumsum(one.mass)
    low, middle, high = one.place[np.searchsorted(total, _MIDDLE * total[-1])]
    places = other.place + middle
    wanted = places if above else 0.5 * (places[:-1] + places[1:])
    if len(wanted) < 2 or len(inner) < 2:
        return inner
    after = np.clip(np.searchsorted(wanted, inner), 1, len(wanted) - 1)
    nearest = np.where(inner - wanted[after - 1] < wanted[after] - inner, wanted[after - 1], wanted[after])
    width = np.gradient(inner)
    moved = (width > _WIDE * (high - low)) & (np.abs(nearest - inner) <= width)
    return np.where(moved, nearest, inner)


def _sorted_pairs(one: Ratios, other: Ratios) -> tuple[FloatArray, FloatArray]:
    sums = np.add.outer(one.place, other.place).ravel()
    order = np.argsort(sums)
    return sums[order], np.multiply.outer(one.mass, other.mass).ravel()[order]


def _merged(places: FloatArray, masses: FloatArray, most: int) -> Ratios:
    """The atoms, those as one that only rounding tells apart, unless there is a chain of them or more than `most`."""
    atoms = _massive(places, masses)
    starts = np.flatnonzero(np.append(True, np.diff(atoms.place) > 4.0 * ULP * atoms.place[1:]))
    ends = np.append(starts[1:], len(atoms.place)) - 1
    if (ends - starts >= most).any() or (atoms.place[ends] > atoms.place[starts] * (1.0 + _ALIKE)).any():
        return atoms
    return Ratios(atoms.place[starts], np.add.reduceat(atoms.mass, starts))


def _coarse(atoms: Ratios) -> Ratios:
    if len(atoms.place) <= _PILOTS:
        return atoms
    starts = np.linspace(0, len(atoms.place), _PILOTS, endpoint=False).astype(np.intp)
    mass = np.add.reduceat(atoms.mass, starts)
    return Ratios(np.add.reduceat(atoms.mass * atoms.place, starts) / mass, mass)


def _from(atoms: Ratios) -> tuple[FloatArray, FloatArray]:
    """E (M - place)+ and the mass from each place on, by sums of positive terms; shape (k,) each."""
    beyond = np.cumsum(atoms.mass[::-1])[::-1]
    steps = np.diff(atoms.place) * beyond[1:]
    return np.append(np.cumsum(steps[::-1])[::-1], 0.0), beyond


def _up_to(atoms: Ratios) -> tuple[FloatArray, FloatArray]:
    """E (place - M)+ and the mass up to each place, by sums of positive terms; shape (k,) each."""
    beyond = np.cumsum(atoms.mass)
    return np.append(0.0, np.cumsum(np.diff(atoms.place) * beyond[:-1])), beyond
