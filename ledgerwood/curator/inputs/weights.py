"""Owner-side reading of sample weights: between 0 and the schema's public bound, as shares of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.grid import STEP
from ledgerwood.curator.inputs.reading import one_column, same_length
from ledgerwood.curator.inputs.values import numbers
from ledgerwood.errors import SchemaError
from ledgerwood.schema import Schema

Weights = NDArray[np.int32]
"""(n_rows,), each row's weight over the schema's bound, in steps of 2**-20; empty: every row weighs a whole."""
ALL_WHOLE: Weights = np.empty(0, dtype=np.int32)
_WHOLE = round(1.0 / STEP)


def encode_weights(sample_weight: Any, schema: Schema, *, n_rows: int) -> Weights:
    """Each row's share of the largest weight, truncated to the grid: whole weights are exact if that is a power of two.

    A weight outside [0, weight_bound] is clamped to it; one that is missing or not a number is 0.

    Args:
        sample_weight: array-like (n_rows,), between 0 and the schema's weight_bound, each row's own; None: every row
            weighs 1.
        schema: the public description.
        n_rows: of the table.

    Raises:
        SchemaError: weights without a bound; a bound below 1 without weights; another shape, or an array of a type that
            has no numbers.
    """
    bound = schema.weight_bound
    if bound is None:
        if sample_weight is None:
            return ALL_WHOLE
        raise SchemaError(
            "sample_weight needs a public bound: declare the largest weight that a row may have, "
            "Schema(..., weight_bound=...). It is never taken from the weights: that would depend on a row"
        )
    if sample_weight is None and bound < 1.0:
        raise SchemaError(
            f"sample_weight=None lets every row weigh 1, above the schema's weight_bound={bound!r}: give weights, "
            "or declare a bound of at least 1"
        )
    values = np.ones(n_rows) if sample_weight is None else weight_values(sample_weight, n_rows)
    clamped = np.clip(np.where(np.isnan(values), 0.0, values), 0.0, bound)
    # A correctly rounded quotient of two numbers in order is at most 1, and times 2**20 it is exact.
    return np.minimum(np.trunc(clamped / bound * _WHOLE), _WHOLE).astype(np.int32)


def weight_values(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """The weights as they were given, float64 (n_rows,); NaN for what is not a number.

    Raises:
        SchemaError: of another shape, or an array of a type that has no numbers.
    """
    column = one_column(sample_weight, "sample_weight", numeric=True)
    same_length(n_rows, len(column), "sample_weight")
    return numbers(column, "sample_weight")
