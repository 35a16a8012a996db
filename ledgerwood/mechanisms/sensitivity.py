"""Shift sets: the possible changes of a statistic between neighbours, with their norms.

A norm is the supremum over the set, rounded up to float64 from exact rational arithmetic
(docs/explanation/shift-sets.md#norms).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ledgerwood import _validate
from ledgerwood._directed import float_down, float_up, log2, root_up
from ledgerwood.accounting.adjacency import Adjacency

Box = tuple[float, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoxShifts:
    """A union of boxes: the shift d has |d_i| <= b_i for every column i, in at least one of the boxes.

    Column i is in its own unit; at most one row of the statistic's other axes moves. Where several rows move together
    (a replaced row leaves one leaf and enters another; a row is in a cell of each of several histograms), the L1 and
    the L2 norm are those of different boxes: use `l1_boxes`, `moved` or `of_counts`.

    Args:
        boxes: k bounds each, >= 0, at least one of each box above 0.
        l1_boxes: what `l1` reads; `boxes` where not given.

    Raises:
        InvalidParameter: no box, boxes of different length, a bound that is negative or not finite, a box of zeros.
    """

    boxes: tuple[Box, ...]
    l1_boxes: tuple[Box, ...] = ()

    def __post_init__(self) -> None:
        boxes = _boxes("boxes", self.boxes)
        l1_boxes = _boxes("l1_boxes", self.l1_boxes) if self.l1_boxes else boxes
        if len(l1_boxes[0]) != len(boxes[0]):
            raise _validate.fail("l1_boxes", l1_boxes, f"of {len(boxes[0])} columns, as boxes are", "columns")
        object.__setattr__(self, "boxes", boxes)
        object.__setattr__(self, "l1_boxes", l1_boxes)

    @classmethod
    def moved(cls, *, boxes: tuple[Box, ...]) -> "BoxShifts":
        """Two rows move by the same box b each: a row of the table leaves one place and enters another.

        The L2 norm of the pair is that of sqrt(2) b (rounded up), its L1 norm that of 2 b.
        """
        boxes = _boxes("boxes", boxes)
        return cls(
            boxes=tuple(tuple(root_up(2 * Fraction(b) ** 2) for b in box) for box in boxes),
            l1_boxes=tuple(tuple(2.0 * b for b in box) for box in boxes),
        )

    @classmethod
    def of_counts(cls, adjacency: Adjacency, *, histograms: int = 1) -> "BoxShifts":
        """Numbers of rows in the cells of some histograms, one column: a row is in at most one cell of each.

        So one count of each moves by 1, or two where a row is replaced: the L1 norm is that of their number, the L2
        norm that of its root, rounded up (docs/explanation/shift-sets.md#histogram-counts).

        Args:
            adjacency: the relation.
            histograms: their number, >= 1.

        Raises:
            InvalidParameter: not a whole number >= 1.
        """
        moving = _validate.count("histograms", histograms, "histograms")
        moving *= 2 if adjacency is Adjacency.REPLACE_ONE else 1
        return cls(boxes=((root_up(Fraction(moving)),),), l1_boxes=((float_up(Fraction(moving)),),))

    def repeated(self, *, histograms: int) -> "BoxShifts":
        """A shift of this set in each of several histograms, of the same rows, which all have the same noise.

        The L2 norm is at most root(histograms) times this set's, the L1 norm `histograms` times: as far as this set
        allows, and rounded up (docs/explanation/shift-sets.md#repeated-shifts).

        Raises:
            InvalidParameter: not a whole number >= 1.
        """
        times = _validate.count("histograms", histograms, "histograms")
        return BoxShifts(
            boxes=tuple(tuple(root_up(times * Fraction(b) ** 2) for b in box) for box in self.boxes),
            l1_boxes=tuple(tuple(float_up(times * Fraction(b)) for b in box) for box in self.l1_boxes),
        )

    @property
    def columns(self) -> int:
        """The number of columns k."""
        return len(self.boxes[0])

    @property
    def l2_boxes(self) -> tuple[Box, ...]:
        """The boxes for `l2`."""
        return self.boxes

    def l1(self, scales: Sequence[float]) -> float:
        """sup of sum |d_i| / scales_i, rounded up; scales k positive floats in the columns' units."""
        weights = checked_weights("scales", scales, self.columns)
        return float_up(max(_power_sum(box, weights, 1) for box in self.l1_boxes))

    def l2(self, stddevs: Sequence[float]) -> float:
        """sup of sqrt(sum d_i**2 / stddevs_i**2), rounded up; stddevs k positive floats in the columns' units."""
        weights = checked_weights("stddevs", stddevs, self.columns)
        return root_up(max(_power_sum(box, weights, 2) for box in self.boxes))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BallShifts:
    """The shift's Euclidean norm is at most `radius`.

    At most one row of the statistic's other axes moves. (The L2 norm also holds for a shift that is spread over several
    rows and has norm at most `radius` in all. The L1 norm does not: declare a box.)

    Args:
        radius: > 0, in the one unit that all columns share.
        l1_radius: what `l1` reads, at least the radius: the sum of the Euclidean norms of the rows that move.
            None: the radius.

    Raises:
        InvalidParameter: a radius that is not positive and finite, or an l1_radius below it.
    """

    radius: float
    l1_radius: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _validate.positive("radius", self.radius, "statistic"))
        if self.l1_radius is not None:
            object.__setattr__(self, "l1_radius", _validate.positive("l1_radius", self.l1_radius, "statistic"))
            if self.l1_radius < self.radius:
                raise _validate.fail("l1_radius", self.l1_radius, f"at least the radius, {self.radius!r}", "statistic")

    def repeated(self, *, histograms: int) -> "BallShifts":
        """A shift of this set in each of several histograms; see `BoxShifts.repeated`."""
        times = _validate.count("histograms", histograms, "histograms")
        return BallShifts(
            radius=root_up(times * Fraction(self.radius) ** 2),
            l1_radius=float_up(times * Fraction(self._l1_radius)),
        )

    @property
    def _l1_radius(self) -> float:
        return self.radius if self.l1_radius is None else self.l1_radius

    @property
    def columns(self) -> None:
        """Any number of columns."""
        return

    def l1(self, scales: Sequence[float]) -> float:
        """sup of sum |d_i| / scales_i = l1_radius sqrt(sum 1 / scales_i**2) (Cauchy-Schwarz, attained), rounded up."""
        weights = checked_weights("scales", scales, None)
        return root_up(_power_sum((self._l1_radius,) * len(weights), weights, 2))

    def l2(self, stddevs: Sequence[float]) -> float:
        """sup of sqrt(sum d_i**2 / stddevs_i**2) = radius / min(stddevs), rounded up."""
        return float_up(Fraction(self.radius) / min(checked_weights("stddevs", stddevs, None)))


def quotient_down(numerator: float, denominator: float) -> float:
    """The largest float64 that is not above numerator / denominator, both positive: a multiplier is rounded down."""
    number = float_down(Fraction(numerator) / Fraction(denominator), "multiplier", "ratio")
    if number == 0.0:
        raise _validate.fail("multiplier", f"{numerator!r} / {denominator!r}", "within float64", "ratio")
    return number


def _power_sum(box: Box, weights: list[Fraction], power: int) -> Fraction:
    """sum of (b / w)**power, each term rounded up to 128 bits below the largest: exact sums would grow without end."""
    terms = [(Fraction(b) / w) ** power for b, w in zip(box, weights, strict=True)]
    unit = Fraction(2) ** (log2(max(terms)) - 128)
    return sum(math.ceil(term / unit) for term in terms) * unit


def _boxes(name: str, boxes: object) -> tuple[Box, ...]:
    if not isinstance(boxes, tuple) or not boxes or not all(isinstance(box, tuple) and box for box in boxes):
        raise _validate.fail(
            name, boxes, "a tuple of at least one box, each a tuple of at least one bound", "statistic"
        )
    checked = tuple(tuple(_validate.non_negative(name, b, "statistic") for b in box) for box in boxes)
    if len({len(box) for box in checked}) > 1:
        raise _validate.fail(name, boxes, "boxes of one length", "columns")
    if not all(any(box) for box in checked):
        raise _validate.fail(name, boxes, "boxes with at least one bound > 0", "statistic")
    return checked


def checked_weights(name: str, weights: Sequence[float], columns: int | None) -> list[Fraction]:
    """Scales or standard deviations as exact numbers.

    Args:
        name: of an argument, for the error.
        weights: one a column.
        columns: their number; None for any.

    Raises:
        InvalidParameter: none, another number of them, or one that is not positive and finite.
    """
    checked = [Fraction(_validate.positive(name, w, "statistic")) for w in weights]
    if not checked or (columns is not None and len(checked) != columns):
        wanted = "at least one number" if columns is None else f"{columns} numbers, one a column"
        raise _validate.fail(name, tuple(weights), wanted, "columns")
    return checked
