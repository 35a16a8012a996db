"""Shift sets: by how much a statistic may differ between neighbours, as a value that knows its norms.

Norms are least upper bounds on the float64 line: the smallest float that is not below the true supremum
(docs/explanation/shift-sets.md).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, final

from ledgerwood import _validate

Box = tuple[float, ...]


class ShiftSet(Protocol):
    """What a mechanism asks of a sensitivity: its norms, and for how many columns it speaks."""

    @property
    def columns(self) -> int | None:
        """k, or None where any number of columns may share the bound."""
        ...

    def l1(self, scales: Sequence[float]) -> float:
        """sup of sum |d_i| / scales_i over the feasible shifts d, rounded up."""
        ...

    def l2(self, stddevs: Sequence[float]) -> float:
        """sup of sqrt(sum d_i**2 / stddevs_i**2) over the feasible shifts d, rounded up."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoxShifts:
    """A union of boxes: the shift d has |d_i| <= b_i for every column i, in at least one of the boxes.

    Column i is in its own unit; at most one row of the statistic's other axes moves. Where two rows move together
    (a replaced row leaves one leaf and enters another), the L1 and the L2 norm are those of different boxes: use
    `l1_boxes`, or `moved`.

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
            boxes=tuple(tuple(_root_up(2 * Fraction(b) ** 2) for b in box) for box in boxes),
            l1_boxes=tuple(tuple(2.0 * b for b in box) for box in boxes),
        )

    @property
    def columns(self) -> int:
        """The number of columns k."""
        return len(self.boxes[0])

    @property
    def l2_boxes(self) -> tuple[Box, ...]:
        """What `l2` reads."""
        return self.boxes

    def l1(self, scales: Sequence[float]) -> float:
        """sup of sum |d_i| / scales_i, rounded up; scales k positive floats in the columns' units."""
        weights = _weights("scales", scales, self.columns)
        return _float_up(max(sum(Fraction(b) / w for b, w in zip(box, weights, strict=True)) for box in self.l1_boxes))

    def l2(self, stddevs: Sequence[float]) -> float:
        """sup of sqrt(sum d_i**2 / stddevs_i**2), rounded up; stddevs k positive floats in the columns' units."""
        weights = _weights("stddevs", stddevs, self.columns)
        return _root_up(
            max(sum((Fraction(b) / w) ** 2 for b, w in zip(box, weights, strict=True)) for box in self.boxes)
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BallShifts:
    """The shift's Euclidean norm over all columns, and all rows of the other axes together, is at most `radius`.

    Args:
        radius: > 0, in the one unit that all columns share.

    Raises:
        InvalidParameter: a radius that is not positive and finite.
    """

    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", _validate.positive("radius", self.radius, "statistic"))

    @property
    def columns(self) -> None:
        """Any number of columns."""
        return

    def l1(self, scales: Sequence[float]) -> float:
        """sup of sum |d_i| / scales_i = radius sqrt(sum 1 / scales_i**2) (Cauchy-Schwarz, attained), rounded up.

        For a statistic of one row. A ball that spreads over several rows has a larger L1 norm: declare a box.
        """
        weights = _weights("scales", scales, None)
        return _root_up(Fraction(self.radius) ** 2 * sum(1 / w**2 for w in weights))

    def l2(self, stddevs: Sequence[float]) -> float:
        """sup of sqrt(sum d_i**2 / stddevs_i**2) = radius / min(stddevs), rounded up."""
        return _float_up(Fraction(self.radius) / min(_weights("stddevs", stddevs, None)))


def quotient_down(numerator: float, denominator: float) -> float:
    """The largest float64 that is not above numerator / denominator, both positive: a multiplier is rounded down."""
    return _float_down(Fraction(numerator) / Fraction(denominator))


def _boxes(name: str, boxes: tuple[Box, ...]) -> tuple[Box, ...]:
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


def _weights(name: str, weights: Sequence[float], columns: int | None) -> list[Fraction]:
    checked = [Fraction(_validate.positive(name, w, "statistic")) for w in weights]
    if not checked or (columns is not None and len(checked) != columns):
        wanted = "at least one number" if columns is None else f"{columns} numbers, one a column"
        raise _validate.fail(name, tuple(weights), wanted, "columns")
    return checked


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        raise _validate.fail("norm", f"about 2**{_log2(value)}", "within float64", "statistic") from None


def _log2(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length()


def _float_up(value: Fraction) -> float:
    number = _nearest(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)


def _float_down(value: Fraction) -> float:
    number = _nearest(value)
    number = number if Fraction(number) <= value else math.nextafter(number, 0.0)
    if number == 0.0:
        raise _validate.fail("multiplier", f"about 2**{_log2(value)}", "within float64", "ratio")
    return number


def _root_up(square: Fraction) -> float:
    """The smallest float64 not below sqrt(square): an integer root of 64 bits or more, then one directed rounding."""
    scale = max(0, 128 - _log2(square)) // 2
    scaled = square * 4**scale
    root = math.isqrt(scaled.numerator // scaled.denominator)
    exact = root * root == scaled
    if exact:
        return _float_up(Fraction(root, 2**scale))
    number = _float_up(Fraction(root, 2**scale))
    while Fraction(number) ** 2 < square:
        number = math.nextafter(number, math.inf)
    return number
