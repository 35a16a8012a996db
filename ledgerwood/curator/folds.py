"""Folds by a secret coin a row: training rows for fits, and held-out scores as a table that a curator releases from.

docs/explanation/cross-validation.md has the proofs.
"""

import abc
from collections.abc import Callable
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator.grid import STEP
from ledgerwood.curator.inputs.encoding import encode_classes, encode_numeric_target, weight_shares
from ledgerwood.curator.inputs.reading import row_count, rows_at, same_length
from ledgerwood.curator.inputs.values import Weights, encode_share
from ledgerwood.curator.queries.leaf_statistics import LeafQuery
from ledgerwood.curator.queries.leaf_sums import LeafMoments
from ledgerwood.curator.tables.trees import Table
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import LedgerError
from ledgerwood.mechanisms import BoxShifts, RandomSource
from ledgerwood.mechanisms.exact.coins import RowCoins
from ledgerwood.schema import Categorical, Numeric, Schema, Target

MOST_FOLDS = 256
FOLD_SCORES = LeafMoments(loss="squared", clip=1.0)
"""What is released of each fold: its rows, and minus the sum of their scores. A row counts with its class's weight."""
Judgement = Literal["right", "absolute", "squared"]
"""What a held-out row counts: whether its class was predicted, or 1 minus its absolute or squared error in ranges."""


class AbstractFolds(abc.ABC):
    """Rows, each in one of k folds by its own coin: independent of all other rows, and never released.

    The fold is a function of a secret key and of the row's position, as a sample is, so that rows in files and the same
    rows in memory have the same folds. Each of the k has probability 1/k, to within 2**-64.

    Args:
        folds: k, in [2, 256].
        source: the source of the key.
    """

    __slots__ = ("_coins", "_ends", "folds")

    def __init__(self, *, folds: int, source: RandomSource) -> None:
        self.folds = fold_count(folds)
        self._ends = [((fold + 1) << 64) // self.folds for fold in range(self.folds)]
        self._coins = RowCoins.drawn(source)

    @abc.abstractmethod
    def training(self, fold: int) -> tuple[Any, Any]:
        """The X and y of all other folds, for a fit; there may be no rows."""

    @abc.abstractmethod
    def judged(
        self, predictors: "list[Callable[[Any], NDArray[Any]]]", target: Target, judgement: Judgement
    ) -> "HeldOut":
        """Score each row by the model that did not see it.

        Args:
            predictors: the predictors of each fold, the prediction of the model that was trained without it.
            target: the declared one.
            judgement: what a row counts.
        """

    def _places_of(self, start: int, n: int) -> NDArray[np.int32]:
        """The folds of n rows from this position on."""
        return self._coins.categories(self._ends, start, n)

    def __reduce__(self) -> tuple[Any, ...]:
        raise LedgerError("folds cannot be copied or pickled: the fold of each row must stay secret")


@final
class Folds(AbstractFolds):
    """Rows in memory, in folds.

    Args:
        X: array-like or data frame, shape (n_rows, n_features).
        y: array-like, shape (n_rows,).
        folds, source: see `AbstractFolds`.

    Raises:
        SchemaError: X and y of different lengths, or without rows to count. The message tells no number of rows.
    """

    __slots__ = ("_X", "_places", "_y")

    def __init__(self, X: Any, y: Any, *, folds: int, source: RandomSource) -> None:
        super().__init__(folds=folds, source=source)
        n_rows = row_count(X)
        same_length(n_rows, row_count(y), "y")
        self._X, self._y = X, y
        self._places = self._places_of(0, n_rows)

    def training(self, fold: int) -> tuple[Any, Any]:
        """The rows of all other folds, (X, y), of the same types as the whole; there may be none."""
        rows = np.flatnonzero(self._places != fold)
        return rows_at(self._X, rows), rows_at(self._y, rows)

    def judged(
        self, predictors: "list[Callable[[Any], NDArray[Any]]]", target: Target, judgement: Judgement
    ) -> "HeldOut":
        """As of `AbstractFolds`."""
        scores, weights = held_out_scores(self._X, self._y, self._places, predictors, target, judgement)
        table = Table(
            schema=fold_schema(self.folds), cells=fold_cells(self._places), targets=scores * 2.0 - 1.0, weights=weights
        )
        exact = np.zeros((self.folds, 2))
        add_exact(exact, self._places, scores, weights)
        return HeldOut(table, exact)


@final
class HeldOut:
    """The held-out rows as (fold, score in [0, 1]), and the sums of their scores. Made by `AbstractFolds.judged`.

    Args:
        table: the curator's table, with scores scaled to [-1, 1]; NaN for a row that is not counted.
        exact: see `exact`.
    """

    __slots__ = ("_exact", "_table")

    def __init__(self, table: Table, exact: NDArray[np.float64]) -> None:
        self._table, self._exact = table, exact

    def table(self) -> Table:
        """The curator's table."""
        return self._table

    def exact(self) -> NDArray[np.float64]:
        """(Number of rows, sum of scores) of each fold, float64 (k, 2), without noise: for the rows' owner only.

        Where classes have weights, rows are those of the largest one.
        """
        return self._exact

    def __reduce__(self) -> tuple[Any, ...]:
        raise LedgerError("held-out scores cannot be copied or pickled: each belongs to one row")


def held_out_scores(
    X: Any,
    y: Any,
    places: NDArray[np.int32],
    predictors: "list[Callable[[Any], NDArray[Any]]]",
    target: Target,
    judgement: Judgement,
) -> tuple[NDArray[np.float64], Weights]:
    """The score of each row in [0, 1] by the model that did not see it, float64 (n_rows,); and what each row weighs.

    NaN for a row that is not counted. Where classes have weights, a row counts as its class's share of the largest.
    """
    scores = np.full(len(places), np.nan)
    # Read once for all folds: a warning of its shape for each fold that has rows would tell how many have some.
    labels = _labels(y, target)
    for fold, predict in enumerate(predictors):
        rows = np.flatnonzero(places == fold)
        if len(rows):
            scores[rows] = _judged(predict(rows_at(X, rows)), labels[rows], target, judgement)
    shares = weight_shares(labels, target) if isinstance(target, Categorical) else None
    return scores, encode_share(shares)


def add_exact(
    sums: NDArray[np.float64], places: NDArray[np.int32], scores: NDArray[np.float64], weights: Weights
) -> None:
    """Add rows to (number of rows, sum of scores) of each fold, float64 (k, 2): one after another, in their order."""
    there = ~np.isnan(scores)
    own = weights[there] * STEP if len(weights) else np.ones(np.count_nonzero(there))
    np.add.at(sums[:, 0], places[there], own)
    np.add.at(sums[:, 1], places[there], own * scores[there])


def fold_cells(places: NDArray[np.int32]) -> NDArray[np.uint16]:
    """The folds as cells of a table, uint16 (1, n_rows)."""
    return places[np.newaxis].astype(np.uint16)


def fold_count(folds: object) -> int:
    """A number of folds.

    Raises:
        InvalidParameter: not a whole number in [2, 256]; a splitter of another library, say.
    """
    if isinstance(folds, bool) or not isinstance(folds, int | np.integer) or not 2 <= folds <= MOST_FOLDS:
        raise _validate.fail(
            "cv",
            folds,
            f"a whole number in [2, {MOST_FOLDS}]: rows are assigned to folds at random and in secret; a "
            "splitter by position or by label would move other rows if one is removed",
            "folds",
        )
    return int(folds)


def fold_schema(folds: int) -> Schema:
    """The public description of held-out scores: the fold, in cells of a complete tree, and a score."""
    cells = 1 << _depth(folds)
    return Schema(features=(Numeric("fold", 0.0, float(cells)),), target=Numeric("score", -1.0, 1.0))


def fold_sums(folds: int) -> LeafQuery[BoxShifts]:
    """The statistic (rows, minus the sum of scores) of each fold, shape (2**ceil(log2 k), 2), all folds at once.

    A row is in one fold, so that it moves one pair, by at most (1, 1): docs/explanation/queries.md#leaf-moments.
    """
    depth = _depth(folds)
    splits = [
        place * (1 << (depth - level)) + (1 << (depth - level - 1))
        for level in range(depth)
        for place in range(1 << level)
    ]
    structure = TreeStructure(
        feature=np.zeros(len(splits), dtype=np.int32),
        split=np.array(splits, dtype=np.uint16),
        equals=np.zeros(len(splits), dtype=np.bool_),
    )
    return FOLD_SCORES.of(structure, Ensemble(initial_score=0.0))


def _depth(folds: int) -> int:
    return (folds - 1).bit_length()


def _labels(y: Any, target: Target) -> NDArray[Any]:
    """Each row's label: the place of its class, or its number in [-1, 1]; (n_rows,)."""
    return encode_classes(y, target) if isinstance(target, Categorical) else encode_numeric_target(y, target)


def _judged(predicted: NDArray[Any], labels: NDArray[Any], target: Target, judgement: Judgement) -> NDArray[np.float64]:
    if isinstance(target, Categorical):
        right: NDArray[np.float64] = (labels == encode_classes(predicted, target)).astype(np.float64)
        right[labels < 0] = np.nan
        return right
    middle, half = (target.low + target.high) / 2.0, (target.high - target.low) / 2.0
    scaled = np.clip((predicted.astype(np.float64) - middle) / half, -1.0, 1.0)
    # Both are in [-1, 1]: the error is at most a whole range.
    error: NDArray[np.float64] = np.minimum(np.abs(scaled - labels) / 2.0, 1.0)
    return 1.0 - (error if judgement == "absolute" else error**2)
