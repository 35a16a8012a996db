"""Rows at several owners whose schema is not known yet: what is asked of them before it is, and by whom it is answered.

Bins of numbers are sums over rows as they are. Categories that nobody has listed are counted in a table of sums
(`KeyTable`). docs/explanation/federation.md#estimated-schemas.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events import Event
from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.typed_columns import TypedColumn, TypedColumns
from ledgerwood.curator.inputs.values import Keys
from ledgerwood.curator.places.federated_plans import NO_ALLOCATION, OF_ALL_ROWS, RELEASES
from ledgerwood.curator.places.federated_rows import (
    AbstractOwners,
    FederatedTable,
    OwnersDraw,
    OwnersDraws,
    OwnersQuestion,
)
from ledgerwood.curator.places.owner_rows import OwnerRows
from ledgerwood.curator.queries.columns.key_tables import KeyTable
from ledgerwood.curator.queries.columns.selections import KeyCounts
from ledgerwood.curator.queries.registry import UNDECLARED, UNDECLARED_CHOICES, Integers, name_of
from ledgerwood.curator.release import keeps_no_rows
from ledgerwood.curator.tables.columns import AbstractRows
from ledgerwood.curator.tables.parts import EncodedRows
from ledgerwood.curator.tables.undeclared_files import length_of, typed_view
from ledgerwood.curator.views.column_rows import NO_SAMPLE, UndeclaredRows
from ledgerwood.errors import RoundViolation, SchemaError
from ledgerwood.mechanisms import BoundedStabilityMechanism, RandomSource
from ledgerwood.mechanisms.exact.coins import MOST_ROWS, RowCoins
from ledgerwood.recording.points import passes
from ledgerwood.schema import Categorical, Date, Feature, Numeric, Schema

_EVERYBODY = "the columns of rows without a schema are counted over all rows: here they have no samples"


@final
class FederatedColumns(AbstractRows):
    """Typed columns whose rows their owners hold, for one curator.

    Args:
        owners: of an open session.
        columns: the names and types of the columns.
    """

    __slots__ = ("_draws", "_owners", "_shape")

    def __init__(self, owners: AbstractOwners, columns: TypedColumns) -> None:
        self._owners, self._draws = owners, OwnersDraws(owners)
        none = np.empty(0), Keys(codes=np.empty(0, dtype=np.int64), keys=())
        kinds = (*columns.features, columns.target)
        self._shape = UndeclaredRows(columns=tuple(none[not each.ordered] for each in kinds), sampled=NO_SAMPLE)

    @property
    def n_rows(self) -> int:
        """Not known: it is the owners' secret.

        Raises:
            RoundViolation: always.
        """
        raise RoundViolation("the number of rows of a federation is not known to its server")

    @property
    def schema(self) -> Schema:
        """None is known yet.

        Raises:
            SchemaError: always.
        """
        raise SchemaError("the schema has not been estimated yet")

    def begin(self, event: Event) -> None:
        """See `AbstractRows`."""
        self._draws.begin(event)

    @passes("sample")
    def sample(self, sampling_rate: float, source: RandomSource) -> Any:
        """As `AbstractRows.sample`, of all rows."""
        if sampling_rate != 1.0:
            raise RoundViolation(_EVERYBODY)
        return self._draws.drawn(None, rate=1.0)

    @passes("allocate")
    def allocate(self, selected: int, steps: int, source: RandomSource) -> Any:
        """Refused, as by `FederatedTable`.

        Raises:
            RoundViolation: always.
        """
        raise RoundViolation(NO_ALLOCATION)

    @passes("assign")
    def assign(self, ends: Sequence[int], source: RandomSource) -> Any:
        """Refused.

        Raises:
            RoundViolation: always.
        """
        raise RoundViolation(_EVERYBODY)

    def reader(self, query: object, mechanism: object = None) -> Callable[[Any], NDArray[np.int64]]:
        """As of `UndeclaredTable`."""
        UNDECLARED.evaluation(query).check(query, self._shape)
        return lambda drawn: self._asked(query, mechanism, drawn, is_choice=False)

    def evidence(self, query: object, mechanism: object = None) -> Callable[[Any], Any]:
        """As of `UndeclaredTable`; None where the table of keys cannot be read."""
        if type(query) is not KeyCounts or not isinstance(mechanism, BoundedStabilityMechanism):
            raise RoundViolation(f"{name_of(query)} with {type(mechanism).__name__} is not counted at several owners")
        # Independent of the rows: the server draws the session's name at random, after the owners have their rows.
        salt = hashlib.sha256(f"keys of column {query.column}, {self._owners.purpose}".encode()).digest()[:16]
        asked = KeyTable(column=query.column, room=mechanism.room, salt=salt)
        evaluation = UNDECLARED_CHOICES.evaluation(asked)
        evaluation.check(asked, self._shape)
        return lambda drawn: evaluation.finish(asked, self._asked(asked, mechanism, drawn, is_choice=True), self._shape)

    def encoded(self, schema: Schema, *, loss: Loss, bins: int) -> FederatedTable:
        """The table under the schema that was estimated for these columns."""
        self._owners.found(schema)
        return FederatedTable(self._owners, schema, bins=bins, draws=self._draws)

    def _asked(self, query: object, mechanism: object, draw: OwnersDraw, *, is_choice: bool) -> Integers:
        return self._owners.sums(OwnersQuestion(query=query, mechanism=mechanism, is_choice=is_choice, draw=draw))


@final
class OwnerColumns:
    """The rows of one owner, before their schema is estimated.

    Args:
        X: array or data frame, shape (n_rows, n_features).
        y: array-like, shape (n_rows,).
        columns: their names and types.

    Raises:
        SchemaError: other types or shapes; or 2**35 rows, whose sums could wrap around.
    """

    __slots__ = ("_columns", "_view")

    @keeps_no_rows
    def __init__(self, X: Any, y: Any, columns: TypedColumns) -> None:
        self._columns = columns
        self._view = typed_view(X, y, columns)
        # A constant: a bound of the server's choice would tell it the number of rows.
        if self.n_rows >= MOST_ROWS:
            raise SchemaError("an owner has fewer than 2**35 rows")

    @property
    def n_rows(self) -> int:
        """The number of rows: the owner's secret, but in a run with a seed."""
        return length_of(self._view)

    def tag(self, secret: bytes) -> bytes:
        """A code of the rows and their order under a secret, 32 bytes: without the secret it tells nothing of them."""
        digest = hashlib.blake2b(key=hashlib.sha256(secret).digest(), digest_size=32)
        for column in self._view.columns:
            if isinstance(column, Keys):
                digest.update(repr(column.keys).encode("utf-8", "surrogatepass"))
            values = column.codes if isinstance(column, Keys) else column
            digest.update(len(values).to_bytes(8, "big") + values.tobytes())
        return digest.digest()

    def require(self, question: OwnersQuestion) -> None:
        """Refuse a question that the types of the columns do not allow, before a draw is used up.

        Raises:
            RoundViolation: so it is.
        """
        draw, query = question.draw, question.query
        if draw.rate != 1.0 or draw.ends or draw.group is not None:
            raise RoundViolation(_EVERYBODY)
        # No sample, no groups, and no filter, whose rows are charged one by one.
        if any(type(each) not in RELEASES | OF_ALL_ROWS for each, _ in draw.event.draws()):
            raise RoundViolation(_EVERYBODY)
        evaluation = (UNDECLARED_CHOICES if question.is_choice else UNDECLARED).evaluation(query)
        if evaluation.over_parts != "sum":
            raise RoundViolation(f"{name_of(query)} is not a sum of whole numbers, and nothing else leaves an owner")
        evaluation.check(query, self._view)

    @keeps_no_rows
    def sums(
        self,
        question: OwnersQuestion,
        coins: RowCoins | None,
        offset: int,
        *,
        noise: object = None,
        whole: object = None,
    ) -> Integers:
        """The owner's sums over all its rows, int64, before they are masked; see `OwnerRows.sums`.

        Raises:
            RoundViolation: noise of the owner, or whole contributions.
        """
        if noise is not None or whole is not None:
            raise RoundViolation("the columns of rows without a schema are counted row by row, without noise")
        evaluation = (UNDECLARED_CHOICES if question.is_choice else UNDECLARED).evaluation(question.query)
        return evaluation.summed(question.query, [self._view], 1)

    @keeps_no_rows
    def encoded(self, schema: Schema, *, loss: Loss, bins: int) -> OwnerRows:
        """The rows by the schema that was estimated for them.

        Raises:
            SchemaError: a schema of other columns.
        """
        every = (*self._columns.features, self._columns.target)
        told = (*schema.features, schema.target)
        own = len(told) == len(every) and all(map(_is_of, told, every))
        if not own or schema.weighted:
            raise SchemaError("the estimated schema is not of the columns of this owner")
        *features, labels = self._view.columns
        rows = EncodedRows.of_columns(features, labels, schema, loss=loss, bins=bins)
        return OwnerRows(rows, schema, bins=bins)


def _is_of(feature: Feature | None, column: TypedColumn) -> bool:
    """Whether a feature of an estimated schema is of this column."""
    if isinstance(column.given, Feature):
        return feature == column.given
    match column.read_as:
        case "numeric":
            of_kind = isinstance(feature, Numeric)
        case "dates" | "instants":
            of_kind = isinstance(feature, Date) and feature.zoned == (column.read_as == "instants")
        case "boolean" | "text" | "codes":
            of_kind = isinstance(feature, Categorical)
    return of_kind and feature is not None and feature.name == column.name
