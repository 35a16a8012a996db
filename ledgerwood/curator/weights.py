"""Owner-side reading of sample weights: between 0 and the schema's public bound, as shares of it."""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.encoding import floats, series_values
from ledgerwood.curator.queries import STEP
from ledgerwood.curator.schema import Schema
from ledgerwood.errors import SchemaError

Weights = NDArray[np.int32]
"""(n_rows,), each row's weight over the schema's bound, in steps of 2**-20; empty: every row weighs a whole."""
ALL_WHOLE: Weights = np.empty(0, dtype=np.int32)
_WHOLE = round(1.0 / STEP)


def encode_weights(sample_weight: Any, schema: Schema, *, n_rows: int) -> Weights:
    """Each row's share of the largest weight, truncated to the grid: whole weights are exact if that is a power of two.

    Args:
        sample_weight: array-like (n_rows,), between 0 and the schema's weight_bound, each row's own; None: every row
            weighs 1.
        schema: the public description.
        n_rows: of the table.

    Raises:
        SchemaError: weights without a bound; a bound below 1 without weights; another shape; a weight that is missing,
            not a number, or outside [0, weight_bound]; no weight but 0.
    """
    bound = schema.weight_bound
    if bound is None:
        if sample_weight is None:
            return ALL_WHOLE
        raise SchemaError(
            "sample_weight needs a public bound: declare the largest weight that a row may have, "
            "Schema(..., weight_bound=...). It is never read off the weights, which would tell of a row"
        )
    if sample_weight is None and bound < 1.0:
        raise SchemaError(
            f"sample_weight=None lets every row weigh 1, above the schema's weight_bound={bound!r}: give weights, "
            "or declare a bound of at least 1"
        )
    values = np.ones(n_rows) if sample_weight is None else _numbers(sample_weight, n_rows)
    outside = ~((values >= 0.0) & (values <= bound))
    if outside.any():
        found = float(values[outside][0])
        raise SchemaError(
            f"sample_weight holds {found!r} ({outside.sum()} rows outside): a weight is a number in "
            f"[0, {bound!r}], up to the schema's weight_bound"
        )
    if not values.any():
        raise SchemaError(f"sample_weight is zero in all {n_rows} rows, which is a table without rows")
    # A correctly rounded quotient of two numbers in order is at most 1, and times 2**20 it is exact.
    return np.minimum(np.trunc(values / bound * _WHOLE), _WHOLE).astype(np.int32)


def _numbers(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    series = nw.from_native(sample_weight, series_only=True, pass_through=True)
    try:
        # A list as objects: numpy would choose one type for all rows by a look at each of them.
        as_objects = object if isinstance(sample_weight, Sequence) else None
        array = series_values(series) if isinstance(series, nw.Series) else np.asarray(sample_weight, dtype=as_objects)
    except ValueError as error:
        raise SchemaError(f"sample_weight is not an array of one dimension: {error}") from error
    if array.shape != (n_rows,):
        raise SchemaError(
            f"sample_weight has the shape {array.shape}, and X and y have {n_rows} rows: one weight a row, ({n_rows},)"
        )
    return floats(array, "sample_weight")
