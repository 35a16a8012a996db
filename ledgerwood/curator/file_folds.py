"""Folds of rows in files: each fit reads the rows of its folds in a stream, and so does what judges them.

docs/explanation/cross-validation.md#cv-files.
"""

from collections.abc import Callable, Iterator
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.folds import (
    AbstractFolds,
    HeldOut,
    Judgement,
    add_exact,
    fold_cells,
    fold_schema,
    held_out_scores,
)
from ledgerwood.curator.inputs.batches import Batch, Roles, RowSource
from ledgerwood.curator.inputs.reading import rows_at
from ledgerwood.curator.tables.chunks import written
from ledgerwood.curator.tables.parts import EncodedRows
from ledgerwood.curator.tables.scratch import Scratch
from ledgerwood.errors import LedgerError
from ledgerwood.mechanisms import RandomSource
from ledgerwood.schema import Categorical, Target

Places = Callable[[int, int], NDArray[np.int32]]
"""Gives the folds of a number of rows from a position on."""


@final
class FileFolds(AbstractFolds):
    """Rows in files, in folds.

    Args:
        source: of the rows.
        roles: which columns are what.
        scratch: where held-out scores lie.
        folds, random: see `AbstractFolds`.
    """

    __slots__ = ("_roles", "_scratch", "_source")

    def __init__(self, source: RowSource, roles: Roles, scratch: Scratch, *, folds: int, random: RandomSource) -> None:
        super().__init__(folds=folds, source=random)
        self._source, self._roles, self._scratch = source, roles, scratch

    def training(self, fold: int) -> tuple["OtherFolds", str]:
        """A source of the rows of all other folds, and the name of the label."""
        assert self._roles.label is not None  # rows for training have one
        return OtherFolds(self._source, self._places_of, fold), self._roles.label

    def judged(
        self, predictors: "list[Callable[[Any], NDArray[Any]]]", target: Target, judgement: Judgement
    ) -> HeldOut:
        """As of `AbstractFolds`.

        Raises:
            FilesChanged, ScratchFull: as of a fit; the fits are paid for.
        """
        exact = np.zeros((self.folds, 2))

        def scored() -> Iterator[EncodedRows]:
            start = 0
            for batch in self._source.batches(self._roles):
                places = self._places_of(start, len(batch))
                start += len(batch)
                scores, weights = held_out_scores(batch.X, batch.y, places, predictors, target, judgement)
                add_exact(exact, places, scores, weights)
                yield EncodedRows(
                    cells=fold_cells(places),
                    targets=scores * 2.0 - 1.0,
                    classes=None,
                    weights=weights,
                    left_out=np.zeros(len(batch), dtype=np.bool_),
                )

        schema = fold_schema(self.folds)
        weighted = isinstance(target, Categorical) and target.weights is not None
        table = written(scored(), schema, weighted=weighted, bins=None, dtype=np.uint16, scratch=self._scratch)
        return HeldOut(table, exact)


@final
class OtherFolds(RowSource):
    """The rows of all folds but one. Made by `FileFolds.training`."""

    __slots__ = ("_fold", "_places", "_source")

    def __init__(self, source: RowSource, places: Places, fold: int) -> None:
        self._source, self._places, self._fold = source, places, fold

    @property
    def size(self) -> int | None:
        return self._source.size

    @property
    def cost(self) -> str:
        return "All fits of the validation are paid for"

    def heads(self, roles: Roles) -> Iterator[Batch]:
        yield from self._source.heads(roles)

    def batches(self, roles: Roles) -> Iterator[Batch]:
        start = 0
        for batch in self._source.batches(roles):
            rows = np.flatnonzero(self._places(start, len(batch)) != self._fold)
            start += len(batch)
            yield Batch(
                X=rows_at(batch.X, rows),
                y=rows_at(batch.y, rows),
                weights=None if batch.weights is None else rows_at(batch.weights, rows),
            )

    def __reduce__(self) -> tuple[Any, ...]:
        raise LedgerError("folds cannot be copied or pickled: the fold of each row must stay secret")
