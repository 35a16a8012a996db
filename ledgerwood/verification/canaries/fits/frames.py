"""Backgrounds that come as data frames: what the columns hold, and frames of the same columns with other rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import Categorical, Numeric
from ledgerwood.errors import InvalidParameter


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameShape:
    """Columns and types of a data frame; numbers are float64, since a canary stands in the middle of its cell.

    Args:
        library: which library's data frame it is.
        columns: name, type in the frame, and whether the column holds numbers; in the schema's order.
    """

    library: Any
    columns: tuple[tuple[str, Any, bool], ...]

    @classmethod
    def of(cls, X: Any, names: Sequence[str]) -> "FrameShape | None":
        """The shape of a data frame; None for arrays, and where the schema knows the columns by place only.

        Args:
            X: the background.
            names: the schema's features.
        """
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return None
        types = frame.schema
        # A uniform schema knows columns by place; others were found by name.
        ordered = list(names) if set(names) <= set(types) else frame.columns
        return cls(
            library=frame.implementation,
            columns=tuple((name, types[name], types[name].is_numeric()) for name in ordered),
        )

    def filled(self, rows: NDArray[Any]) -> Any:
        """A data frame of the same library and columns.

        Args:
            rows: (n, n_features), floats or objects.
        """
        series = [
            _series(name, rows[:, place], kind, numeric, self.library)
            for place, (name, kind, numeric) in enumerate(self.columns)
        ]
        frame = series[0].to_frame()
        return frame.with_columns(*series[1:]).to_native()


def _series(name: str, values: NDArray[Any], kind: Any, numeric: bool, library: Any) -> nw.Series[Any]:
    if numeric:
        return nw.new_series(name, values.astype(np.float64), nw.Float64, backend=library)
    plain = nw.new_series(name, values.tolist(), backend=library)
    # Of a column of objects there is no more to say than what its values are.
    return plain if kind in (nw.Object, nw.Unknown) or plain.dtype == kind else plain.cast(kind)


def seen_feature(series: nw.Series[Any]) -> Numeric | Categorical:
    """What a column of the background holds: the range of its numbers, or its categories in sorted order.

    Raises:
        InvalidParameter: a column of another type (dates, lists, mixed objects).
    """
    name = str(series.name)
    if series.dtype.is_numeric():
        return seen_range(name, series.cast(nw.Float64).to_numpy())
    values = series.to_list()
    there = [value for value in values if value is not None and value == value]
    kinds = {type(value) for value in there}
    if not kinds <= {bool} and not kinds <= {str}:
        raise InvalidParameter(
            f"column {name!r} of X has type {series.dtype}: an audit puts canaries among numbers, texts and booleans; "
            "convert the column, or declare it in audit_model(schema=...) (unit: column)"
        )
    categories = tuple(sorted(set(there))) or ("",)
    return Categorical(name, categories, missing=len(there) < len(values))


def seen_range(name: str, column: NDArray[Any]) -> Numeric:
    """The range of the finite numbers of a column; missing where there are others."""
    finite = column[np.isfinite(column)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    return Numeric(name, low, high if high > low else low + 1.0, missing=len(finite) < len(column))
