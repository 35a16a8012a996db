"""Neighbouring data sets for replays, with worst-case rows, and the matching of their rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.errors import InvalidParameter

if TYPE_CHECKING:  # neighbours need no trainers
    from ledgerwood.curator import Feature, Schema

D = TypeVar("D")
Change = Literal["added", "removed", "replaced", "permuted"]
Rows = tuple[NDArray[Any], ...]
"""X (n_rows, n_features), y (n_rows,), and whatever else has one value a row; of numbers or of objects."""
UNSEEN = "a category that no schema lists"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbour(Generic[D]):
    """A data set that differs from another one in at most one row.

    Args:
        data: the neighbour, as a fit takes it.
        rows: number of rows of the other one.
        origin: of each row of the neighbour, its place in the other one; -1 for the row that is new.

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
        """The place in the other data set of the row that the neighbour does not have."""
        return next(iter(set(range(self.rows)) - set(self.origin)), None)

    @property
    def change(self) -> Change:
        """How the neighbour comes from the other one; its rows may be in another order besides."""
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


def added(data: Rows, row: Sequence[Any], *values: Any, at: int | None = None) -> Neighbour[Rows]:
    """One row more, at the place `at`, or at the end; `values` are its label, and its weight where rows have one."""
    X, *columns = data
    n_rows = len(X)
    place = n_rows if at is None else at
    inserted = [np.insert(column, place, value) for column, value in zip(columns, values, strict=True)]
    origin = list(range(n_rows))
    origin.insert(place, -1)
    return Neighbour(data=(np.insert(X, place, _as_row(X, row), axis=0), *inserted), rows=n_rows, origin=tuple(origin))


def removed(data: Rows, at: int) -> Neighbour[Rows]:
    """One row less."""
    kept = np.delete(np.arange(len(data[0])), at)
    return Neighbour(data=_taken(data, kept), rows=len(data[0]), origin=tuple(kept.tolist()))


def replaced(data: Rows, at: int, row: Sequence[Any], *values: Any) -> Neighbour[Rows]:
    """Another row in the place of one."""
    copies = tuple(array.copy() for array in data)
    copies[0][at] = _as_row(copies[0], row)
    for column, value in zip(copies[1:], values, strict=True):
        column[at] = value
    n_rows = len(copies[0])
    return Neighbour(data=copies, rows=n_rows, origin=tuple(-1 if i == at else i for i in range(n_rows)))


def duplicated(data: Rows, at: int) -> Neighbour[Rows]:
    """A row that is there already once more, before it."""
    X, *columns = data
    return added(data, X[at], *(column[at] for column in columns), at=at)


def permuted(data: Rows, generator: np.random.Generator) -> Neighbour[Rows]:
    """The same rows in another order."""
    order = generator.permutation(len(data[0]))
    return Neighbour(data=_taken(data, order), rows=len(order), origin=tuple(order.tolist()))


def worst_rows(schema: "Schema") -> Iterator[tuple[str, list[Any], Any]]:
    """(name, row, label) of the rows that move most: extreme values, unseen categories, missing ones; both labels.

    Args:
        schema: resolved, with a target; what it does not declare as missing is not missing.
    """
    from ledgerwood.curator import Numeric

    low, high = _labels(schema)
    bottom: list[Any] = [_end(column, 0) for column in schema.features]
    top: list[Any] = [_end(column, -1) for column in schema.features]
    yield "lowest", bottom, high
    yield "highest", top, low
    yield "lowest, the other label", bottom, low
    yield "highest, the other label", top, high
    yield "outside", [1e300 if isinstance(column, Numeric) else UNSEEN for column in schema.features], low
    if any(column.missing for column in schema.features):
        missing = [np.nan if column.missing else value for column, value in zip(schema.features, bottom, strict=True)]
        yield "missing", missing, high


def _end(column: "Feature", place: Literal[0, -1]) -> Any:
    from ledgerwood.curator import Categorical

    if isinstance(column, Categorical):
        return column.categories[place]
    return column.high if place else column.low


def _labels(schema: "Schema") -> tuple[Any, Any]:
    from ledgerwood.curator import Categorical, Numeric

    match schema.target:
        case Numeric(low=low, high=high):
            return low, high
        case Categorical(categories=categories):
            return categories[0], categories[-1]
    raise InvalidParameter("the schema declares no target: a row has no label")


def _taken(data: Rows, places: NDArray[np.intp]) -> Rows:
    return tuple(array[places] for array in data)


def _as_row(X: NDArray[Any], row: Sequence[Any]) -> NDArray[Any]:
    # Element by element: numpy would make strings of a row of several types.
    new = np.empty(X.shape[1], dtype=X.dtype)
    for place, value in enumerate(row):
        new[place] = value
    return new
