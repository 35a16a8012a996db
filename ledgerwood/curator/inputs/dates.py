"""Columns of dates as numbers of days since 1970-01-01: by declared type, each value by itself.

A column that has a time zone holds instants, and is declared so (`Date.zoned`); a column without one is not. What is
refused is refused by the column's type. numpy's type of dates has no time zone: its values serve both, as UTC.
"""

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ledgerwood.errors import SchemaTypeError
from ledgerwood.schema import Date, object_days

_PER_DAY = {"h": 24, "m": 1440, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_LONG = {"D": 1, "W": 7}
_FAR = 1_000_000
"""Years or months from 1970 that are told apart: beyond, numpy's calendar wraps around."""


def with_known_dates(X: Any) -> Any:
    """A table of Arrow, or of pandas, whose columns of Arrow's date64, unknown to narwhals, are times; else as it is.

    The cast keeps every value, and looks at none to do so.
    """
    arrow, pandas = nw.dependencies.get_pyarrow(), nw.dependencies.get_pandas()
    if arrow is None:
        return X
    time = arrow.timestamp("ms")
    if isinstance(X, arrow.Table):
        for place, field in enumerate(X.schema):
            if arrow.types.is_date64(field.type):
                X = X.set_column(place, field.with_type(time), X.column(place).cast(time))
    elif pandas is not None and isinstance(X, pandas.DataFrame) and X.columns.is_unique:
        long = pandas.ArrowDtype(arrow.date64())
        if names := [name for name, dtype in X.dtypes.items() if dtype == long]:
            return X.astype(dict.fromkeys(names, pandas.ArrowDtype(time)))
    return X


def is_zoned(dtype: object) -> bool:
    """Returns whether a data frame's type of dates has a time zone."""
    return isinstance(dtype, nw.Datetime) and dtype.time_zone is not None


def series_dates(series: nw.Series[Any]) -> NDArray[np.datetime64]:
    """The values of a series of dates as datetime64 (n_rows,), in UTC if it has a time zone; NaT for a missing one."""
    native: Any = series.to_native()
    pandas = nw.dependencies.get_pandas()
    if pandas is None or not isinstance(native, pandas.Series):
        return np.asarray(series.to_numpy())
    if isinstance(native.dtype, pandas.ArrowDtype):
        import pyarrow as pa

        found = pa.array(native)
        return np.asarray(pa.chunked_array(found.chunks if isinstance(found, pa.ChunkedArray) else [found]).to_numpy())
    if is_zoned(series.dtype):
        native = native.dt.tz_convert("UTC").dt.tz_localize(None)
    return np.asarray(native.to_numpy())


def typed_dates(series: nw.Series[Any], feature: Date) -> NDArray[np.datetime64] | None:
    """The values of a series of dates, as `series_dates`; None of one of texts, which are read one by one.

    Raises:
        SchemaTypeError: a type that holds no dates; or a time zone where none is declared, or none where one is.
    """
    kind = type(series.dtype).__name__  # without its parameters: an `Enum` would list its categories
    if series.dtype in (nw.Date, nw.Datetime):
        zoned = is_zoned(series.dtype)
        if zoned != feature.zoned:
            zone = "T00:00Z" if zoned else ""
            raise SchemaTypeError(
                f"column {series.name!r} has type {kind} {'with' if zoned else 'without'} a time zone, and is declared "
                f"otherwise: declare Date({series.name!r}, '2001-01-01{zone}', '2024-12-31{zone}'), with your bounds, "
                "or convert the column"
            )
        return series_dates(series)
    if series.dtype not in (nw.String, nw.Object, nw.Categorical, nw.Enum):
        raise SchemaTypeError(
            f"column {series.name!r} has type {kind}, and is declared to hold dates: convert it to dates, or to ISO "
            "texts; a number does not say its unit and its first day"
        )
    return None


def days(column: NDArray[Any], feature: Date) -> NDArray[np.float64]:
    """float64 (n_rows,), days since 1970-01-01; NaN for what is missing, no date, or of the other kind.

    Args:
        column: see `reading`.
        feature: as declared.

    Raises:
        SchemaTypeError: an array of a type that has no dates.
    """
    match column.dtype.kind:
        case "M":
            return _of_datetime64(column)
        case "U" | "T" | "O":
            return _of_objects(column, zoned=feature.zoned)
    raise SchemaTypeError(
        f"column {feature.name!r} is an array of type {column.dtype}, and is declared to hold dates: convert it to "
        "dates, or to ISO texts; a number does not say its unit and its first day"
    )


def _of_datetime64(column: NDArray[Any]) -> NDArray[np.float64]:
    """Whole days and a correctly rounded share of one: the same number in every unit, finer than 1 us cut off."""
    unit, step = np.datetime_data(column.dtype)
    missing = np.isnat(column)
    if unit in ("Y", "M"):
        counts = np.clip(column.astype(np.int64) * step, -_FAR, _FAR)
        found: NDArray[np.floating[Any]] = (
            counts.astype(f"datetime64[{unit}]").astype("datetime64[D]").astype(np.float64)
        )
    elif unit in _LONG:
        found = column.astype(np.int64) * (float(step) * _LONG[unit])
    elif unit in _PER_DAY:
        whole, rest = np.divmod(column.astype(np.int64), _PER_DAY[unit]) if step == 1 else _stepped(column, unit, step)
        if unit == "ns":
            rest //= 1000
        found = whole + rest / min(_PER_DAY[unit], _PER_DAY["us"])
    else:  # finer than a nanosecond, or without a unit, which holds nothing but "not a time"
        found = column.astype("datetime64[us]").astype(np.int64) / _PER_DAY["us"]
    return np.where(missing, np.nan, found)


def _stepped(column: NDArray[Any], unit: str, step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Days and the rest of a column in steps of several units."""
    counts = column.astype(np.int64)
    steps, units = np.divmod(counts, _PER_DAY[unit])
    whole, rest = np.divmod(units * step, _PER_DAY[unit])
    return steps * step + whole, rest


def _of_objects(column: NDArray[Any], *, zoned: bool) -> NDArray[np.float64]:
    texts: dict[str, float] = {}

    def read(value: object) -> float:
        if type(value) is str:
            found = texts.get(value)
            if found is None:
                found = texts[value] = _number(object_days(value, zoned=zoned))
            return found
        if type(value) is np.datetime64:
            return float(_of_datetime64(np.array([value]))[0])
        return _number(object_days(value, zoned=zoned))

    return np.fromiter(map(read, column.tolist()), np.float64, len(column))


def _number(found: float | None) -> float:
    return np.nan if found is None else found
