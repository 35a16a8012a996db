"""Whole units of 2**-bits, for noise that is a whole number: their bounds, and shifts counted in them.

docs/explanation/queries.md#whole-sums.
"""

from collections.abc import Sequence

from ledgerwood import _validate
from ledgerwood.curator.grid import GRID_EXPONENT, PER_UNIT
from ledgerwood.curator.views.tree_rows import TreeShape
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import BoxShifts, Grid

MAX_BITS = -GRID_EXPONENT
"""Units are no finer than the grid of all sums."""


def whole_bits(name: str, value: object, most: int = MAX_BITS) -> int:
    """A number of binary places, in [0, most].

    Raises:
        InvalidParameter: it is not.
    """
    bits = _validate.count(name, value, "binary places", minimum=0)
    if bits > most:
        raise _validate.fail(name, bits, f"at most {most}", "binary places")
    return bits


def steps_per_unit(bits: int | None) -> float:
    """Steps to a unit of the statistic: 2**bits, or those of the grid of all sums where no bits are named."""
    return PER_UNIT if bits is None else 2.0**bits


def grid_of(bits: int | None, columns: int) -> Grid:
    """The grid of columns that are counted in these units: of whole numbers where bits are named."""
    return Grid(exponents=(GRID_EXPONENT if bits is None else 0,) * columns)


def in_units(shifts: BoxShifts, bits: int | None) -> BoxShifts:
    """Boxes in units of 2**-bits; as they are where no bits are named."""
    return shifts if bits is None else scaled_boxes(shifts, (2.0**bits,) * shifts.columns)


def scaled_boxes(shifts: BoxShifts, units: Sequence[float]) -> BoxShifts:
    """Boxes of which each column is counted in other units, a power of two of them to the old one: exact."""

    def scaled(boxes: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(bound * unit for bound, unit in zip(box, units, strict=True)) for box in boxes)

    return BoxShifts(boxes=scaled(shifts.boxes), l1_boxes=scaled(shifts.l1_boxes))


def refuse_weights(shape: TreeShape) -> None:
    """Refuse rows with weights, which need finer steps than whole units.

    Raises:
        RoundViolation: the schema has a weight_bound, or weights of classes.
    """
    if shape.weighted:
        raise RoundViolation("whole sums do not support weights: the schema has a weight_bound, or weights of classes")
