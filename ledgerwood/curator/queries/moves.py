"""Whether moves of a statistic, in whole steps, are within a declared set of shifts."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ledgerwood.mechanisms import BallShifts, BoxShifts

Integers = NDArray[np.int64]
_SURE = 1e-9
"""Relative: a norm in floats is surely off by less, so that only rows this near to the bound are added up exactly."""
_SCALINGS = 8


def within(held: Integers, norm: float | Fraction) -> NDArray[np.bool_]:
    """Which rows have at most this norm, exact."""
    squares, most = np.square(held.astype(np.float64)).sum(axis=1), Fraction(norm) ** 2
    near_to = float(min(most, Fraction(2) ** 300))
    inside = squares <= near_to
    near = np.flatnonzero(np.abs(squares - near_to) <= _SURE * near_to)
    # Python integers: squares of large bounds have no room in 64 bits.
    inside[near] = [sum(number * number for number in row) <= most for row in held[near].tolist()]
    return np.asarray(inside)


def first_outside(moves: Integers, shifts: BoxShifts | BallShifts, step: Fraction) -> int | None:
    """The place of a move (n, width) that is not in the set; None if none is.

    A ball: by the norm, exact. Boxes: a move within one of them, column by column and exact, is in the set. One that is
    in none is outside if a column of it is larger than in every box, or if its norm is larger than the set's in one of
    some scalings of the columns: the norms are all that a mechanism reads.
    """
    if isinstance(shifts, BallShifts):
        outside = np.flatnonzero(~within(moves, Fraction(shifts.radius) / step))
        return int(outside[0]) if outside.size else None
    for power, boxes in ((1, shifts.l1_boxes), (2, shifts.l2_boxes)):
        exact = [[min(Fraction(bound) / step, Fraction(2) ** 60) for bound in box] for box in boxes]
        # Floors of exact quotients, so that the comparison of integers is exact; no move has more than 2**42.
        limits = np.array([[int(bound) for bound in box] for box in exact])
        bounds = np.array([[float(bound) for bound in box] for box in exact])
        sizes = np.abs(moves)
        inside: NDArray[np.bool_] = np.all(sizes[:, np.newaxis] <= limits, axis=2)
        rest = np.flatnonzero(~np.any(inside, axis=1))
        for place in rest.tolist():
            if (sizes[place] > limits.max(axis=0)).any() or _longer(sizes[place], bounds, power):
                return place
    return None


def _longer(move: Integers, bounds: NDArray[np.float64], power: int) -> bool:
    """Whether the move's L1 or L2 norm is above that of all boxes, surely, in one of some scalings."""
    generator = np.random.default_rng(0)
    for number in range(_SCALINGS):
        scales = 2.0 ** (generator.integers(-12, 13, len(move)) if number else np.zeros(len(move)))
        if number == 1:
            scales = np.maximum(move, 1.0)  # all of its columns count alike
        bound = (((bounds / scales) ** power).sum(axis=1)).max()
        if ((move / scales) ** power).sum() > bound * (1.0 + _SURE):
            return True
    return False
