"""What leaves the curator: a noisy value or a private choice, with the receipt that it was paid with."""

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.ledger import Receipt
from ledgerwood.mechanisms import Grid

R_co = TypeVar("R_co", covariant=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release(Generic[R_co]):
    """A noisy value and the receipt that it was paid with. What is computed from it is post-processing.

    Args:
        value: integers on `grid`, noise included.
        grid: the steps of the last axis.
        receipt: the draw that paid for it.
        randomness: "test" where the noise can be repeated, and protects nobody.
        caveat: who declares the sensitivity that the noise was priced with, where it is not proven; else empty.
    """

    value: R_co
    grid: Grid
    receipt: Receipt
    randomness: Literal["secure", "test"]
    caveat: str = ""

    @property
    def real(self: "Release[NDArray[np.int64]]") -> NDArray[np.float64]:
        """The value in real units, float64, its shape."""
        return self.grid.to_real(self.value)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selected(Generic[R_co]):
    """A private choice and the receipt that it was paid with.

    Args:
        value: an index, or what the query says, in the column's unit.
        receipt, randomness: as of `Release`.
    """

    value: R_co
    receipt: Receipt
    randomness: Literal["secure", "test"]
