"""A client's whole contribution as one privacy unit: scaled into the shift set of a row, in integers.

docs/explanation/federation.md#whole-contributions.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.queries.registry import Integers
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import EllipticalGaussianMechanism, GaussianMechanism, SkellamMechanism


def whole_contribution(
    sums: Integers, query: Any, mechanism: Any, adjacency: Adjacency, *, rows_per_client: int
) -> Integers:
    """The client's sums over `rows_per_client`, scaled into what one row may change. int64, the shape of `sums`.

    The L2 norm in units of the noise is at most that of a row, by which the release is priced: it is compared in exact
    arithmetic after truncation towards zero.

    Args:
        sums: of all rows of the client, int64 (..., k) in steps of the query's grid.
        query: that was asked.
        mechanism: of Gaussian or Skellam noise, see `require_whole`.
        adjacency: under which the release is priced: add-remove or zero-out.
        rows_per_client: public; how many rows count as a whole row.

    Raises:
        RoundViolation: a mechanism of other noise, whose cost is not by an L2 norm alone.
    """
    if not isinstance(mechanism, GaussianMechanism | EllipticalGaussianMechanism | SkellamMechanism):
        raise RoundViolation(f"a whole contribution needs Gaussian or Skellam noise, not {type(mechanism).__name__}")
    columns = query.grid.columns
    stddevs = mechanism.stddevs if isinstance(mechanism, EllipticalGaussianMechanism) else (1.0,) * columns
    bound = Fraction(query.sensitivity(adjacency).l2(stddevs))
    # The length of a step of each column, in units of the noise; exact.
    lengths = [Fraction(step) / Fraction(each) for step, each in zip(query.grid.steps, stddevs, strict=True)]
    shares = np.abs(sums) // rows_per_client * np.sign(sums)  # toward zero, as a float division of the sum would be not
    scale = 1.0
    while True:
        scaled = np.trunc(shares * scale).astype(np.int64) if scale < 1.0 else shares
        norm = _squared(scaled, lengths)
        if norm <= bound**2:
            return scaled
        # A little less each time: floats decide how much is lost, and never whether it is enough.
        scale *= math.sqrt(float(bound**2 / norm)) * (1.0 - 2.0**-30)


def _squared(values: Integers, lengths: Sequence[Fraction]) -> Fraction:
    """The exact squared norm of int64 (..., k), with the length of a step of each column."""
    flat: NDArray[Any] = values.reshape(-1, values.shape[-1])
    total = Fraction(0)
    for column, length in zip(flat.T, lengths, strict=True):
        own = [int(each) for each in column[column != 0].tolist()]
        total += length**2 * sum(each * each for each in own)
    return total
