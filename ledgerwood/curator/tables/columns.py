"""The base class of all tables, whose rows are sampled one by one and never copied, and the table of columns.

A table of columns answers questions that no tree asks. Nothing with a row axis leaves the curator.
"""

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events import Event
from ledgerwood.curator.inputs.encoding import encode_column, encode_columns, encode_keys
from ledgerwood.curator.inputs.reading import same_length
from ledgerwood.curator.queries.registry import COLUMN_CHOICES, COLUMNS
from ledgerwood.curator.views.column_rows import ColumnRows, ColumnShape
from ledgerwood.errors import LedgerError, SchemaError
from ledgerwood.mechanisms import RandomSource
from ledgerwood.mechanisms.exact.allocations import RowAllocation
from ledgerwood.mechanisms.exact.coins import RowCoins
from ledgerwood.recording.points import passes
from ledgerwood.schema import Schema, require_name


class AbstractRows(abc.ABC):
    """Rows, for one curator."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def n_rows(self) -> int:
        """The number of rows, curator only."""

    @property
    def owners_add_noise(self) -> bool:
        """Whether what `reader` reads has its noise already."""
        return False

    def begin(self, event: Event) -> None:  # noqa: B027  # rows in one hand need not know
        """Take note that this event was drawn; its rows are sampled next."""

    def caveat(self, query: object) -> str:
        """The ledger's caveat for a query whose sensitivity is not proven; empty for all others."""
        return ""

    @passes("sample")
    def sample(self, sampling_rate: float, source: RandomSource) -> NDArray[np.bool_]:
        """One Poisson sample of the rows; empty, for all of them, at rate 1."""
        if sampling_rate == 1.0:
            return np.empty(0, dtype=np.bool_)
        return RowCoins.drawn(source).bernoulli(sampling_rate, 0, self.n_rows)

    @passes("assign")
    def assign(self, ends: Sequence[int], source: RandomSource) -> NDArray[Any]:
        """A group for each row, or none, as `RowCoins.categories` has them; of the narrowest type of whole numbers."""
        kind = np.min_scalar_type(len(ends))
        if ends[0] == 1 << 64:  # the first group has everybody, without a coin
            return np.zeros(self.n_rows, dtype=kind)
        return RowCoins.drawn(source).categories(ends, 0, self.n_rows).astype(kind)

    def members(self, assignment: NDArray[Any], group: int) -> NDArray[np.bool_]:
        """The sample that a group is, of what `assign` has returned."""
        found: NDArray[np.bool_] = assignment == group
        return found

    @passes("allocate")
    def allocate(self, selected: int, steps: int, source: RandomSource) -> Any:
        """Steps for each row, exactly `selected` of `steps`, uniformly: `allocated` tells who takes part in which."""
        coins = RowCoins.drawn(source)
        return RowAllocation(coins, selected=selected, steps=steps, start=0, n_rows=self.n_rows)

    @passes("allocated")
    def allocated(self, allocation: Any, step: int) -> NDArray[np.bool_]:
        """The sample of a step, from 0 on and in order, of what `allocate` has returned."""
        found: NDArray[np.bool_] = allocation.members(step)
        return found

    def __copy__(self) -> "AbstractRows":
        raise LedgerError("a table cannot be copied: its rows and their state belong to one curator")

    def __deepcopy__(self, memo: object) -> "AbstractRows":
        raise LedgerError("a table cannot be copied: its rows and their state belong to one curator")

    def __reduce__(self) -> tuple[Any, ...]:
        raise LedgerError("a table cannot be pickled: rows stay with the curator")


Sample = NDArray[np.bool_]


@final
class ColumnTable(AbstractRows):
    """Checked columns of rows, for one curator. Build it with `from_data`, before a budget moves."""

    __slots__ = ("_columns", "_keys", "_rows", "_shape", "schema")

    def __init__(
        self,
        *,
        schema: Schema,
        columns: Mapping[str, NDArray[Any]],
        keys: Mapping[str, tuple[NDArray[np.int64], tuple[str, ...]]],
        rows: int,
    ) -> None:
        self.schema = schema
        features = {feature.name: feature for feature in schema.columns if feature.name in columns}
        self._shape = ColumnShape(features=features, keys=frozenset(keys))
        self._columns = dict(columns)
        self._keys = dict(keys)
        self._rows = rows

    @classmethod
    def from_data(
        cls, X: Any, schema: Schema, *, y: Any = None, keys: Mapping[str, Any] | None = None
    ) -> "ColumnTable":
        """Take the rows over. What it refuses, by names, types and shapes, costs nothing; no value is refused.

        Args:
            X: array-like or data frame, shape (n_rows, n_features).
            schema: features, and the target where y is given. Values outside a range are clamped to it, categories that
                are not on the list are "other".
            y: array-like, shape (n_rows,): the target's column, under the target's name. May be left out.
            keys: by name, columns whose categories are not public (`ColumnKeys`): array-like of strings, shape
                (n_rows,); what is not a string is no key.

        A value that is missing, or that is not of its column's kind, counts as missing, declared or not.

        Raises:
            SchemaError: columns, types or shapes that are not the schema's. `Schema.check` tells the owner of values.
        """
        values = encode_columns(X, schema)
        rows = len(values[0])
        resolved = schema.resolved(len(values))
        columns = {feature.name: column for feature, column in zip(resolved.features, values, strict=True)}
        if y is not None:
            if resolved.target is None:
                raise SchemaError("y is given, but the schema declares no target")
            _new(resolved.target.name, columns)
            columns[resolved.target.name] = _rows("y", encode_column(y, resolved.target), rows)
        coded = {}
        for name, column in (keys or {}).items():
            _new(name, columns)
            codes, known = encode_keys(column, name)
            coded[name] = (_rows(f"keys {name!r}", codes, rows), known)
        return cls(schema=resolved, columns=columns, keys=coded, rows=rows)

    @property
    def n_rows(self) -> int:
        """The number of rows, curator only."""
        return self._rows

    def reader(self, query: object, mechanism: object = None) -> Callable[[Sample], NDArray[np.int64]]:
        """Makes the evaluator of the query over a sample, int64 in grid steps. Curator only; no row is read here.

        Raises:
            RoundViolation: a foreign query.
            SchemaError: a column that the table does not have, or has as another kind.
        """
        COLUMNS.evaluation(query).check(query, self._shape)
        return lambda sampled: self.statistic(query, sampled)

    def statistic(self, query: object, sampled: Sample) -> NDArray[np.int64]:
        """The query's exact value over the sampled rows, int64 in grid steps. Curator only."""
        found: NDArray[np.int64] = COLUMNS.evaluation(query).over(query, [self._view(sampled)], 1, self._shape)
        return found

    def caveat(self, query: object) -> str:
        """The ledger's caveat for a query whose sensitivity is not proven; empty for all others."""
        return COLUMNS.evaluation(query).caveat(query)

    def evidence(self, query: object, mechanism: object = None) -> Callable[[Sample], Any]:
        """Makes the reader of a sample for a selection: see `selections`. Curator only; no row is read here.

        Raises:
            RoundViolation: a foreign query.
            SchemaError: a column that the table does not have, or has as another kind.
        """
        COLUMN_CHOICES.evaluation(query).check(query, self._shape)
        return lambda sampled: self.read(query, sampled)

    def read(self, query: object, sampled: Sample) -> Any:
        """Reads the sampled rows for the selection's mechanism. Curator only."""
        return COLUMN_CHOICES.evaluation(query).over(query, [self._view(sampled)], 1, self._shape)

    def _view(self, sampled: Sample) -> ColumnRows:
        return ColumnRows(columns=self._columns, keys=self._keys, n_rows=self._rows, sampled=sampled)


def _new(name: str, columns: Mapping[str, object]) -> None:
    require_name(name)
    if name in columns:
        raise SchemaError(f"column names must be distinct: {name!r} is one of the features {sorted(columns)} already")


def _rows(name: str, column: NDArray[Any], rows: int) -> NDArray[Any]:
    same_length(rows, len(column), name)
    return column
