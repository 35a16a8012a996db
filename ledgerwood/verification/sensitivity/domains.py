"""The rows that a search draws from: the columns of a row, how rows become data, and neighbours with worst-case rows.

A row is a tuple of values: its features, then its label and its weight where rows have them. A `Neighbour` says which
rows of both data sets correspond.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.errors import InvalidParameter

if TYPE_CHECKING:
    from ledgerwood.curator import Feature, Schema


D = TypeVar("D")
Change = Literal["added", "removed", "replaced", "permuted"]
Arrays = tuple[NDArray[Any], ...]
"""X (n_rows, n_features), y (n_rows,), and whatever else has one value a row; of numbers or of objects."""
UNSEEN = "a category that no schema lists"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbour(Generic[D]):
    """A data set that differs from another one in at most one row.

    Args:
        data: the neighbour, as a fit takes it.
        rows: number of rows of the other one.
        origin: the origin of each row of the neighbour, its place in the other one; -1 for the row that is new.

    Raises:
        InvalidParameter: a place outside, or twice; more than one new row, or more than one row that is gone.
    """

    data: D
    rows: int
    origin: tuple[int, ...]

    def __post_init__(self) -> None:
        rows = _validate.count("rows", self.rows, "rows", minimum=0)
        kept = [place for place in self.origin if place != -1]
        if len(set(kept)) != len(kept) or not all(0 <= place < rows for place in kept):
            raise _validate.fail("origin", self.origin, f"distinct places in 0..{rows - 1}, or -1", "rows")
        if len(self.origin) - len(kept) > 1 or rows - len(kept) > 1:
            raise InvalidParameter(
                f"{len(self.origin) - len(kept)} rows are new and {rows - len(kept)} are gone; neighbours differ in "
                "one row (unit: rows)"
            )

    @property
    def new(self) -> int | None:
        """The place in the neighbour of the row that is new there."""
        return self.origin.index(-1) if -1 in self.origin else None

    @property
    def gone(self) -> int | None:
        """The index, in the other data set, of the row that the neighbour does not have."""
        return next(iter(set(range(self.rows)) - set(self.origin)), None)

    @property
    def change(self) -> Change:
        """The change from the other data set to the neighbour; the rows may also be in another order."""
        match self.new, self.gone:
            case None, None:
                return "permuted"
            case _, None:
                return "added"
            case None, _:
                return "removed"
        return "replaced"

    def require(self, adjacency: Adjacency) -> None:
        """Refuse a relation under which the two are no neighbours; of equal rows, any will do.

        Raises:
            InvalidParameter: they are not. A replaced row is no neighbour under zero-out here: whether a row
                contributes nothing to any statistic cannot be seen.
        """
        one = self.change == "replaced"
        if self.change != "permuted" and one != (adjacency is Adjacency.REPLACE_ONE):
            raise InvalidParameter(
                f"a row is {self.change}, which makes no neighbours under {adjacency.value} (unit: relation)"
            )


def added(data: Arrays, row: Sequence[Any], *values: Any, at: int | None = None) -> Neighbour[Arrays]:
    """One row more, at the place `at`, or at the end; `values` are its label, and its weight where rows have one."""
    X, *columns = data
    n_rows = len(X)
    place = n_rows if at is None else at
    inserted = [np.insert(column, place, value) for column, value in zip(columns, values, strict=True)]
    origin = list(range(n_rows))
    origin.insert(place, -1)
    return Neighbour(data=(np.insert(X, place, _as_row(X, row), axis=0), *inserted), rows=n_rows, origin=tuple(origin))


def removed(data: Arrays, at: int) -> Neighbour[Arrays]:
    """One row less."""
    kept = np.delete(np.arange(len(data[0])), at)
    return Neighbour(data=_taken(data, kept), rows=len(data[0]), origin=tuple(kept.tolist()))


def replaced(data: Arrays, at: int, row: Sequence[Any], *values: Any) -> Neighbour[Arrays]:
    """Another row in the place of one."""
    copies = tuple(array.copy() for array in data)
    copies[0][at] = _as_row(copies[0], row)
    for column, value in zip(copies[1:], values, strict=True):
        column[at] = value
    n_rows = len(copies[0])
    return Neighbour(data=copies, rows=n_rows, origin=tuple(-1 if i == at else i for i in range(n_rows)))


def duplicated(data: Arrays, at: int) -> Neighbour[Arrays]:
    """A row that is there already once more, before it."""
    X, *columns = data
    return added(data, X[at], *(column[at] for column in columns), at=at)


def permuted(data: Arrays, generator: np.random.Generator) -> Neighbour[Arrays]:
    """Puts the rows into another order."""
    order = generator.permutation(len(data[0]))
    return Neighbour(data=_taken(data, order), rows=len(order), origin=tuple(order.tolist()))


def worst_rows(schema: "Schema") -> Iterator[tuple[str, list[Any], Any]]:
    """(name, row, label) of the rows that move most: extreme values, unseen categories, missing ones; both labels.

    Args:
        schema: resolved, with a target; what it does not declare as missing is not missing.
    """
    low, high = _labels(schema)
    bottom: list[Any] = [_end(column, 0) for column in schema.features]
    top: list[Any] = [_end(column, -1) for column in schema.features]
    yield "lowest", bottom, high
    yield "highest", top, low
    yield "lowest, the other label", bottom, low
    yield "highest, the other label", top, high
    yield "outside", [_beyond(column) for column in schema.features], low
    if any(column.missing for column in schema.features):
        missing = [np.nan if column.missing else value for column, value in zip(schema.features, bottom, strict=True)]
        yield "missing", missing, high


def _end(column: "Feature", place: Literal[0, -1]) -> Any:
    from ledgerwood.curator import Categorical
    from ledgerwood.schema import as_given

    if isinstance(column, Categorical):
        return column.categories[place]
    return as_given(column, column.high if place else column.low)


def _beyond(column: "Feature") -> Any:
    from ledgerwood.curator import Date, Numeric
    from ledgerwood.schema import LATEST

    if isinstance(column, Date):
        return LATEST[column.zoned]
    return 1e300 if isinstance(column, Numeric) else UNSEEN


def _labels(schema: "Schema") -> tuple[Any, Any]:
    from ledgerwood.curator import Categorical, Numeric

    match schema.target:
        case Numeric(low=low, high=high):
            return low, high
        case Categorical(categories=categories):
            return categories[0], categories[-1]
    raise InvalidParameter("the schema declares no target: a row has no label")


def _taken(data: Arrays, places: NDArray[np.intp]) -> Arrays:
    return tuple(array[places] for array in data)


def _as_row(X: NDArray[Any], row: Sequence[Any]) -> NDArray[Any]:
    # Element by element: numpy would make strings of a row of several types.
    new = np.empty(X.shape[1], dtype=X.dtype)
    for place, value in enumerate(row):
        new[place] = value
    return new


Row = tuple[Any, ...]
Rows = tuple[Row, ...]
Data = Any
"""An array (n,) or (n, d), or a tuple (X, y) or (X, y, weights) of arrays."""
RowKind = Literal["any", "valid"]
"""Whether rows may have values that their columns do not allow: NaN, infinities, beyond the ends, unseen categories."""
_BEYOND = (float("nan"), float("inf"), float("-inf"), 1e300, -1e300)
_LEAST = 5e-324


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumn:
    """The values of one column.

    Args:
        kind: "real", "whole" or "category".
        low, high: the ends of numbers.
        categories: the others, at least one.
        missing: NaN, or None for a category, where a value may be missing; otherwise ().
    """

    kind: Literal["real", "whole", "category"]
    low: float = 0.0
    high: float = 1.0
    categories: tuple[Any, ...] = ()
    missing: tuple[Any, ...] = ()

    @property
    def ends(self) -> tuple[Any, Any]:
        """The first and the last value."""
        if self.kind == "category":
            return self.categories[0], self.categories[-1]
        return self._typed(self.low), self._typed(self.high)

    def values(self, rows: RowKind) -> list[Any]:
        """The values to be tried: ends first, then what is inside, what is missing, and what is beyond."""
        if self.kind == "category":
            return [*self.categories[:8], *self.missing, *(self.beyond if rows == "any" else ())]
        low, high = self.low, self.high
        inside = [low, high, *(low + (high - low) * share for share in (0.5, 0.25, 0.75))]
        inside += [value for value in (0.0, -0.0, _LEAST) if low <= value <= high and self.kind == "real"]
        typed = [self._typed(value) for value in inside]
        return [*typed, *self.missing, *(self.beyond if rows == "any" else ())]

    @property
    def beyond(self) -> tuple[Any, ...]:
        """Values that the column does not allow."""
        match self.kind:
            case "category":
                return _unseen(self.categories)
            case "whole":
                return (self._typed(self.high) + 1, self._typed(self.low) - 1, 2**31, -(2**31))
        width = self.high - self.low
        return (*_BEYOND, self.high + width, self.low - width)

    def near(self, value: Any, share: float) -> list[Any]:
        """Values of the column on both sides of one, at that share of its width."""
        if self.kind == "category" or not isinstance(value, int | float) or value != value:
            return []
        step = share * (self.high - self.low)
        around = [min(max(value + way * step, self.low), self.high) for way in (-1.0, 1.0)]
        return [self._typed(other) for other in around if np.isfinite(other)]

    def drawn(self, generator: np.random.Generator) -> Any:
        """One value at random; every third one is an end."""
        if self.kind == "category":
            return self.categories[int(generator.integers(len(self.categories)))]
        if generator.integers(3) == 0:
            return self.ends[int(generator.integers(2))]
        return self._typed(self.low + (self.high - self.low) * float(generator.uniform()))

    def _typed(self, value: float) -> Any:
        return round(value) if self.kind == "whole" else float(value)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Rows of a kind.

    Args:
        columns: the columns of a row: features, label, weight.
        features: number of of them that are features.
        vector: whether the features are one array (n,), of one column.
        several: whether data are a tuple (X, y, ...), not an array alone.
    """

    columns: tuple[RowColumn, ...]
    features: int
    vector: bool
    several: bool

    def data(self, rows: Rows) -> Data:
        """The rows as a query takes them; arrays of its own, each time."""
        X = _array([row[: self.features] for row in rows], self.columns[: self.features])
        X = X[:, 0] if self.vector else X
        if not self.several:
            return X
        rest = (_array([(row[i],) for row in rows], (self.columns[i],))[:, 0] for i in self._besides)
        return (X, *rest)

    def rows(self, data: Data) -> Rows:
        """The rows of data of this kind."""
        parts = [np.asarray(part) for part in (data if self.several else (data,))]
        columns = [column for part in parts for column in part.reshape(len(part), -1).T.tolist()]
        return tuple(zip(*columns, strict=True))

    @property
    def _besides(self) -> range:
        return range(self.features, len(self.columns))

    def extremes(self, rows: RowKind) -> list[tuple[str, Row]]:
        """(name, row) of the rows that move most: every column at one of its ends, at 0, missing, or beyond."""
        lowest = tuple(column.ends[0] for column in self.columns)
        highest = tuple(column.ends[1] for column in self.columns)
        found = [("lowest", lowest), ("highest", highest)]
        if self._besides:  # labels and weights at their other ends
            found.append(("lowest, the other label", lowest[: self.features] + highest[self.features :]))
            found.append(("highest, the other label", highest[: self.features] + lowest[self.features :]))
        found.append(
            ("middle", tuple(column.values("valid")[2 % len(column.values("valid"))] for column in self.columns))
        )
        zeros = [[v for v in column.values("valid") if not isinstance(v, str) and v == 0] for column in self.columns]
        found += [(f"zeros {i + 1}", self._with(lowest, zeros, i)) for i in (0, 1) if any(len(z) > i for z in zeros)]
        if any(column.missing for column in self.columns):
            found.append(("missing", self._with(lowest, [list(column.missing) for column in self.columns], 0)))
        if rows == "any":
            beyond = [list(column.beyond) for column in self.columns]
            for i in range(max(map(len, beyond))):
                found.append((f"beyond {i + 1}", self._with(highest, beyond, i)))
            for place, values in enumerate(beyond[:32]):
                for value in values:
                    found.append((f"{value!r} in column {place}", _at(lowest, place, value)))
        return found

    @staticmethod
    def _with(row: Row, values: list[list[Any]], turn: int) -> Row:
        """The row with the values of one turn, where a column has any."""
        return tuple(given[min(turn, len(given) - 1)] if given else old for old, given in zip(row, values, strict=True))

    def drawn(self, n: int, generator: np.random.Generator) -> Rows:
        """Rows at random."""
        return tuple(tuple(column.drawn(generator) for column in self.columns) for _ in range(n))


def _at(row: Row, place: int, value: Any) -> Row:
    return (*row[:place], value, *row[place + 1 :])


def _unseen(categories: tuple[Any, ...]) -> tuple[Any, ...]:
    """A category of the same type that is none of them; a boolean has no other."""
    if any(isinstance(category, bool) for category in categories):
        return ()
    if all(isinstance(category, int | float) for category in categories):
        return (max(categories) + 1,)
    return (UNSEEN,)


def _array(rows: list[Row], columns: tuple[RowColumn, ...]) -> NDArray[Any]:
    kinds = {column.kind for column in columns}
    types = {type(value) for row in rows for value in row} if kinds == {"category"} else set()
    if len(types) == 1 and types <= {bool, int, float, str}:  # as numpy keeps such classes
        return np.array(rows).reshape(len(rows), len(columns))
    dtypes = {"real": np.float64, "whole": np.int64}
    dtype = dtypes.get(next(iter(kinds)), object) if len(kinds) == 1 else object
    array = np.empty((len(rows), len(columns)), dtype=dtype)
    for place, row in enumerate(rows):
        array[place] = row
    return array


def domain(
    data: Data | None,
    schema: "Schema | None",
    bounds: tuple[Any, Any] | None,
    columns: int | None,
) -> Domain:
    """Returns the domain of a schema, of given data, or of numbers within bounds.

    Raises:
        InvalidParameter: data that are no arrays, bounds that are none, or columns without bounds.
    """
    if schema is not None:
        if bounds is not None or columns is not None:
            raise InvalidParameter("a schema says what a row is: give no bounds and no columns with it (unit: columns)")
        return _of_schema(schema)
    if data is not None:
        found = _of_data(data)
        if columns is not None and columns != found.features:
            raise _validate.fail("columns", columns, f"{found.features}, as the data have", "columns")
        return found if bounds is None else _bounded(found, bounds)
    if columns is None and bounds is not None and np.ndim(bounds[0]) == 1:
        columns = len(bounds[0])
    number = 1 if columns is None else _validate.count("columns", columns, "columns")
    column = RowColumn(kind="real", low=-1.0, high=1.0)
    made = Domain(columns=(column,) * number, features=number, vector=columns is None, several=False)
    return made if bounds is None else _bounded(made, bounds)


def _bounded(found: Domain, bounds: tuple[Any, Any]) -> Domain:
    if len(bounds) != 2:
        raise _validate.fail("bounds", bounds, "a pair (low, high) of numbers, or of sequences of numbers", "values")
    n = len(found.columns)
    low, high = (list(end) if np.ndim(end) else [end] * n for end in bounds)
    if len(low) != n or len(high) != n:
        raise _validate.fail("bounds", bounds, f"one number, or {n}, at each end", "columns")
    bounded = []
    for column, *ends in zip(found.columns, low, high, strict=True):
        least, most = (_validate.real("bounds", end, "values") for end in ends)
        if not least < most:
            raise _validate.fail("bounds", (least, most), "low < high", "values")
        bounded.append(column if column.kind == "category" else replace(column, low=least, high=most))
    return replace(found, columns=tuple(bounded))


def _of_schema(schema: "Schema") -> Domain:
    features = schema.resolved(len(schema.features) or 1).features
    columns = [_of_feature(feature) for feature in features]
    if schema.target is not None:
        columns.append(_of_feature(schema.target))
    if schema.weight_bound is not None:
        if schema.target is None:
            raise InvalidParameter(
                "rows with weights are (X, y, weights): the schema declares no target (unit: columns)"
            )
        columns.append(RowColumn(kind="real", low=0.0, high=schema.weight_bound))
    several = len(columns) > len(features)
    return Domain(columns=tuple(columns), features=len(features), vector=False, several=several)


def _of_feature(feature: "Feature") -> RowColumn:
    from ledgerwood.curator import Categorical

    if isinstance(feature, Categorical):
        return RowColumn(kind="category", categories=feature.categories, missing=(None,) * feature.missing)
    return RowColumn(kind="real", low=feature.low, high=feature.high, missing=(float("nan"),) * feature.missing)


def _of_data(data: Data) -> Domain:
    several = isinstance(data, tuple)
    parts: Sequence[Any] = data if several else (data,)
    if not all(isinstance(part, np.ndarray) and part.ndim in {1, 2} for part in parts) or not parts:
        kinds = ", ".join(type(part).__name__ for part in parts)
        raise InvalidParameter(f"data must be arrays (n,) or (n, d), or a tuple of them, not {kinds} (unit: rows)")
    if len({len(part) for part in parts}) != 1 or any(part.ndim != 1 for part in parts[1:]):
        shapes = [part.shape for part in parts]
        raise InvalidParameter(
            f"data of shapes {shapes}: all need one entry a row, and only the first columns (unit: rows)"
        )
    columns = [_of_values(column) for part in parts for column in part.reshape(len(part), -1).T]
    features = len(columns) - len(parts) + 1
    return Domain(columns=tuple(columns), features=features, vector=parts[0].ndim == 1, several=several)


def _of_values(values: NDArray[Any]) -> RowColumn:
    """A column that has these values; [0, 1] where there are none."""
    if values.dtype.kind in "iu":
        least, most = (int(values.min()), int(values.max())) if len(values) else (0, 1)
        return RowColumn(kind="whole", low=least, high=max(most, least + 1))
    if values.dtype.kind == "f":
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        missing = (float("nan"),) * bool(np.isnan(values).any())
        return RowColumn(kind="real", low=low, high=high if high > low else low + 1.0, missing=missing)
    plain = values.tolist()
    known = {str(value): value for value in plain if value is not None and value == value}
    none = (None,) * any(value is None for value in plain)
    return RowColumn(kind="category", categories=tuple(known.values()) or ("a",), missing=none)
