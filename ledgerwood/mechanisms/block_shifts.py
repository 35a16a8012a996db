"""A shift set of blocks of columns: a bound on the Euclidean norm of each block.

docs/explanation/shift-sets.md#blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ledgerwood import _validate
from ledgerwood._directed import root_up
from ledgerwood.mechanisms.sensitivity import BallShifts, BoxShifts, checked_weights, quotient_down


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockShifts:
    """Blocks of neighbouring columns: the blocks' Euclidean norms are a shift of `norms`.

    One block of each size is a product of an interval for every single column and of a ball for every larger block: a
    number of rows and a vector, say. Both norms are the suprema over the set, as for a box: all columns of a block have
    one unit, and each norm is attained where a block's whole length is in one column, or spread by Cauchy-Schwarz.

    Args:
        norms: the shifts of the blocks' norms, one column a block.
        sizes: the number of columns of each block, >= 1.

    Raises:
        InvalidParameter: another kind of set, or not one size >= 1 for each of its columns.
    """

    norms: BoxShifts
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        # A subclass could state smaller norms.
        if type(self.norms) is not BoxShifts:
            raise _validate.fail("norms", type(self.norms).__name__, "BoxShifts of one column a block", "shift sets")
        given = _validate.several("sizes", self.sizes, "columns")
        sizes = tuple(_validate.count("sizes", size, "columns") for size in given)
        if len(sizes) != self.norms.columns:
            raise _validate.fail("sizes", sizes, f"{self.norms.columns} numbers, one a block", "columns")
        object.__setattr__(self, "sizes", sizes)

    @property
    def columns(self) -> int:
        """The number of columns of all blocks."""
        return sum(self.sizes)

    def repeated(self, *, histograms: int) -> "BlockShifts":
        """A shift of this set in each of several histograms; see `BoxShifts.repeated`."""
        return BlockShifts(norms=self.norms.repeated(histograms=histograms), sizes=self.sizes)

    def least(self, stddevs: Sequence[float]) -> tuple[float, ...]:
        """The least number of each block, of one a column."""
        checked_weights("stddevs", stddevs, self.columns)
        return tuple(min(block) for block in self._blocks(stddevs))

    def l1(self, scales: Sequence[float]) -> float:
        """sup of sum |d_i| / scales_i, rounded up; one scale a column."""
        checked_weights("scales", scales, self.columns)
        return self.norms.l1(tuple(_joint_scale(block) for block in self._blocks(scales)))

    def l2(self, stddevs: Sequence[float]) -> float:
        """sup of sqrt(sum d_i**2 / stddevs_i**2), rounded up: each block in its column of least noise."""
        return self.norms.l2(self.least(stddevs))

    def _blocks(self, numbers: Sequence[float]) -> list[tuple[float, ...]]:
        begin, found = 0, []
        for size in self.sizes:
            found.append(tuple(numbers[begin : begin + size]))
            begin += size
        return found


Shifts = BoxShifts | BallShifts | BlockShifts
"""The shift sets of statistics with noise."""


def _joint_scale(scales: tuple[float, ...]) -> float:
    """1 / sqrt(sum 1 / scales_i**2), rounded down: the scale at which one column costs what the block does."""
    if len(scales) == 1:
        return scales[0]
    return quotient_down(1.0, root_up(sum((1 / Fraction(scale) ** 2 for scale in scales), Fraction(0))))
