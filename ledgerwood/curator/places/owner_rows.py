"""An owner's side of a federation: its rows, encoded once, and the sums over them that it is asked for.

What the sums are masked with, who may ask for them and how often, is not decided here (`ledgerwood.federation`).
"""

import hashlib
import struct
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import FilteredEvent, Parallel, PoissonSampled
from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.encoding import column_count
from ledgerwood.curator.inputs.reading import headings
from ledgerwood.curator.inputs.typed_columns import require_labels
from ledgerwood.curator.inputs.values import read_keys
from ledgerwood.curator.places.federated_rows import OwnersDraw, OwnersQuestion
from ledgerwood.curator.places.tags import row_tag
from ledgerwood.curator.places.whole_contributions import whole_contribution
from ledgerwood.curator.queries.registry import TREE_CHOICES, TREES, Integers
from ledgerwood.curator.release import keeps_no_rows
from ledgerwood.curator.rounds import group_ends
from ledgerwood.curator.tables.parts import EVERYBODY, EncodedRows
from ledgerwood.curator.tables.trees import Table
from ledgerwood.curator.views.tree_rows import NO_FILTER, RowBudgets
from ledgerwood.errors import RoundViolation, SchemaError
from ledgerwood.mechanisms import RandomSource, SkellamMechanism
from ledgerwood.mechanisms.exact.coins import MOST_ROWS, RowCoins
from ledgerwood.schema import Numeric, Schema


def columns_of(X: Any) -> tuple[int, tuple[str, ...]]:
    """The number of columns of an owner's rows, and their names; none of an array.

    Raises:
        SchemaError: not two-dimensional, or a list of rows, whose columns have no names and types of their own.
    """
    if isinstance(X, list):
        raise SchemaError("rows of a federation are an array or a data frame, not a list")
    names = getattr(headings(X, None), "columns", None)
    if callable(names) or names is None:
        return column_count(X), ()
    return column_count(X), tuple(str(each) for each in names)


@final
class OwnerRows:
    """The rows of one owner, encoded for one fit.

    Args:
        rows: encoded.
        schema: resolved.
        bins: as in `Table.from_data`.
        keys: of a stream, the units of the rows, each of which takes part with its first row; None: every row is one.

    Raises:
        SchemaError: 2**35 rows, whose sums could wrap around.
    """

    __slots__ = ("_masks", "_rows", "_table", "keys")

    def __init__(self, rows: EncodedRows, schema: Schema, *, bins: int, keys: Any = None) -> None:
        self._rows = rows
        self._table = Table(
            schema=schema, cells=rows.cells, targets=rows.targets, classes=rows.classes, weights=rows.weights,
            left_out=rows.left_out, bins=bins,
        )  # fmt: skip
        self.keys = None if keys is None else read_keys(keys, self._table.n_rows)
        if self.keys is not None:  # of no unit, or the second row of one: what is paid for is one row a unit
            without = np.ones(self._table.n_rows, dtype=np.bool_)
            without[self.keys.rows] = False
            self._table.leave_out(without)
        self._masks: tuple[int, NDArray[Any]] | None = None
        # A constant: a bound of the server's choice would tell it the number of rows.
        if self._table.n_rows >= MOST_ROWS:
            raise SchemaError("an owner has fewer than 2**35 rows")

    @classmethod
    @keeps_no_rows
    def of(
        cls, X: Any, y: Any, sample_weight: Any, schema: Schema, *, loss: Loss, bins: int, keys: Any = None
    ) -> "OwnerRows":
        """Encode the rows of an owner.

        Args:
            X: array-like or data frame, shape (n_rows, n_features).
            y: array-like, shape (n_rows,).
            sample_weight: see `encode_weights`.
            schema: resolved.
            loss, bins: as in `Table.from_data`.
            keys: of a stream, each row's privacy unit, see `read_keys`; None: every row is a unit.

        Raises:
            SchemaError: columns, types or shapes that are not the schema's, keys of another type, or 2**35 rows.
        """
        require_labels(y, schema.target, numeric=isinstance(schema.target, Numeric))
        rows = EncodedRows.of(X, y, schema, loss=loss, bins=bins, sample_weight=sample_weight)
        return cls(rows, schema, bins=bins, keys=keys)

    @property
    def n_rows(self) -> int:
        """The number of rows: the owner's secret, but in a run with a seed."""
        return self._table.n_rows

    def tag(self, secret: bytes) -> bytes:
        """A code of the rows, their order and their units' keys under a secret, 32 bytes.

        Without the secret it tells nothing of them.
        """
        code = hashlib.sha256(secret + row_tag(secret, 0, self._rows, 0, self.n_rows))
        if self.keys is not None:  # the same rows under other keys would have other accounts, with whole limits
            code.update(struct.pack("<Q", len(self.keys.tokens)) + self.keys.rows.astype("<i8", copy=False).tobytes())
            for token in self.keys.tokens:
                code.update(struct.pack("<Q", len(token)) + token)
        return code.digest()

    def require(self, question: OwnersQuestion) -> None:
        """Refuse a question that is no sum, or that the public shape of the rows does not allow; no draw is used up.

        Raises:
            RoundViolation: so it is.
        """
        check = self._table.evidence if question.is_choice else self._table.reader
        check(question.query)
        (TREE_CHOICES if question.is_choice else TREES).evaluation(question.query).require_sums(question.query)
        draw = question.draw
        rate = draw.event.sampling_rate if isinstance(draw.event, PoissonSampled | FilteredEvent) else 1.0
        if isinstance(draw.event, Parallel):
            if draw.rate is not None or draw.ends != group_ends(draw.event) or draw.group is None:
                raise RoundViolation(f"draw {draw.number} has other groups than its event {draw.event!r}")
        elif draw.rate != rate or draw.ends or draw.group is not None:
            raise RoundViolation(f"draw {draw.number} has another sample than its event {draw.event!r}")

    @keeps_no_rows
    def sums(
        self,
        question: OwnersQuestion,
        coins: RowCoins | None,
        offset: int,
        *,
        noise: tuple[SkellamMechanism, RandomSource] | None = None,
        whole: tuple[Adjacency, int] | None = None,
        budgets: RowBudgets = NO_FILTER,
    ) -> Integers:
        """The owner's sums, int64, before they are masked.

        Args:
            question: that `require` has seen.
            coins: of the draw; None where no coin is needed.
            offset: the place of the first row under these coins.
            noise: the owner's share of the noise, and its randomness; None: none.
            whole: for whole contributions as units, the adjacency and the number of rows that count as one.
            budgets: what each row has left, of a filtered event's draw; rows that can pay are charged.

        Raises:
            RoundViolation: a filtered event's draw without budgets, or budgets in another draw.
        """
        filtered = isinstance(question.draw.event, FilteredEvent)
        if filtered != (budgets is not NO_FILTER):
            raise RoundViolation("rows are charged in the draw of a filtered event, and in no other")
        sampled = self._sampled(question.draw, coins, offset, again=filtered)
        found = self._table.sums(question.query, sampled, is_choice=question.is_choice, budgets=budgets)
        if whole is not None:
            adjacency, rows = whole
            found = whole_contribution(found, question.query, question.mechanism, adjacency, rows_per_client=rows)
        if noise is not None:
            mechanism, source = noise
            found = mechanism.randomise(found, question.query.grid, source)
        if found.dtype != np.int64:
            raise RoundViolation(f"sums are of type {found.dtype}, and whole numbers alone leave an owner")
        return found

    def _sampled(self, draw: OwnersDraw, coins: RowCoins | None, offset: int, *, again: bool) -> NDArray[np.bool_]:
        """Who takes part; `again`: each question of the draw has a sample of its own."""
        if draw.rate == 1.0:
            return EVERYBODY
        if again:
            return self._tossed(draw, coins, offset)
        if self._masks is None or self._masks[0] != draw.number:
            self._masks = draw.number, self._tossed(draw, coins, offset)
        mask = self._masks[1]
        return mask if draw.group is None else mask == draw.group

    def _tossed(self, draw: OwnersDraw, coins: RowCoins | None, offset: int) -> NDArray[Any]:
        n_rows = self._table.n_rows
        if draw.rate is not None:
            if coins is None:
                raise RoundViolation("a sample needs coins")
            return coins.bernoulli(draw.rate, offset, n_rows)
        kind = np.min_scalar_type(len(draw.ends))
        if draw.ends[0] == 1 << 64:
            return np.zeros(n_rows, dtype=kind)
        if coins is None:
            raise RoundViolation("groups need coins")
        return coins.categories(draw.ends, offset, n_rows).astype(kind)
