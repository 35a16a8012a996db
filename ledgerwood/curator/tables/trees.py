"""The rows, and the state of each row. Nothing with a row axis leaves the curator."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.inputs.encoding import Flags, encode_classes, encode_numeric_target, encode_rows, signs
from ledgerwood.curator.inputs.label_types import require_categories
from ledgerwood.curator.inputs.reading import same_length
from ledgerwood.curator.inputs.weights import ALL_WHOLE, Weights, encode_weights
from ledgerwood.curator.kernels import counts as count_kernels
from ledgerwood.curator.kernels import softmax as softmax_kernels
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.curator.kernels.class_counting import ClassedRows
from ledgerwood.curator.kernels.exact_gains import exact_gains
from ledgerwood.curator.kernels.histogram_sums import HistogramSums
from ledgerwood.curator.kernels.sorted_gains import grouped_gains
from ledgerwood.curator.queries.candidate_bins import CandidateBins, bin_rows
from ledgerwood.curator.queries.class_counts import ClassCounts, LeafClassCounts
from ledgerwood.curator.queries.counts import CellCounts, LeafCounts
from ledgerwood.curator.queries.feature_quantiles import FeatureQuantiles
from ledgerwood.curator.queries.gains import SplitGains
from ledgerwood.curator.queries.gini import GiniSplits
from ledgerwood.curator.queries.gridless_gains import GridlessGains, GroupedGains
from ledgerwood.curator.queries.histograms import CandidateCounts, CellHessians, CellSums, HistogramQuery, SideSums
from ledgerwood.curator.queries.known import AnyQuery, known_query
from ledgerwood.curator.queries.leaf_labels import LeafLabels
from ledgerwood.curator.queries.score_counts import ScoreCounts
from ledgerwood.curator.queries.softmax import LeafSoftmax
from ledgerwood.curator.queries.sums import (
    STEP,
    LabelCount,
    LabelMoments,
    LabelSum,
    LeafCurvatures,
    LeafMoments,
    LeafQuery,
    LeafRatios,
    Loss,
    PredictionFit,
)
from ledgerwood.curator.queries.whole_sums import WholeSums
from ledgerwood.curator.tables.checks import TableShape
from ledgerwood.curator.tables.row_scores import RowScores
from ledgerwood.curator.tables.rows import AbstractRows
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import SchemaError
from ledgerwood.routing import add_tree
from ledgerwood.schema import Categorical, Numeric, Schema

PER_UNIT = 1.0 / STEP


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowBudgets:
    """What each row has left of its limit under an individual filter, and what a contribution costs.

    Args:
        left: int64 (n_rows,), in units of `accounting.row_costs`; changed by each release. Empty: no filter.
        costs: see `accounting.row_costs.row_costs`.
        weights: for each of two columns, the share of the largest squared norm that one squared grid step has.
    """

    left: NDArray[np.int64]
    costs: NDArray[np.float64]
    weights: tuple[float, float]


NO_FILTER = RowBudgets(np.empty(0, dtype=np.int64), np.empty(0), (0.0, 0.0))


@final
class Table(AbstractRows):
    """Checked and encoded rows, for one curator. Build it with `from_data`, before a budget moves."""

    __slots__ = (
        "_binned",
        "_cells",
        "_classes",
        "_histogram_sums",
        "_leaves",
        "_lock",
        "_present",
        "_routed",
        "_scored",
        "_shape",
        "_weights",
        "schema",
    )

    def __init__(
        self,
        *,
        schema: Schema,
        cells: NDArray[Any],
        targets: NDArray[np.float64] | None = None,
        classes: NDArray[np.int32] | None = None,
        weights: Weights = ALL_WHOLE,
        left_out: Flags | None = None,
    ) -> None:
        """Of rows that were read.

        Args:
            schema: resolved.
            cells: uint8 or uint16 (n_features, n_rows).
            targets: float64 (n_rows,) in [-1, 1]; None for those of two classes, +1 for the second one.
            classes: int32 (n_rows,), the place of each row's class among the sorted ones, -1 for none; None where the
                target is a number.
            weights: see `encode_weights`.
            left_out: bool (n_rows,), which rows take no part, in whatever is asked: see `encode_rows`. None: none.
        """
        self.schema = schema
        self._cells = cells
        self._classes = classes
        self._weights = weights
        self._lock = threading.Lock()
        n_classes = 0
        if classes is not None:
            assert isinstance(schema.target, Categorical)  # classes are places among its categories
            n_classes = len(schema.target.categories)
        self._shape = TableShape(schema=schema, n_features=len(cells), n_classes=n_classes, weighted=len(weights) > 0)
        if targets is None:
            assert classes is not None  # one of the two is given
            # Of several classes none is the positive one: a query has to name it.
            targets = signs(classes, 1) if n_classes == 2 else np.full(len(classes), np.nan)
        # Row state: the scores of one ensemble for each class that is told from the others, and the leaf in `_routed`.
        self._scored: dict[int | None, RowScores] = {None: RowScores(targets)}
        self._leaves = np.zeros(len(targets), dtype=np.int32)
        self._routed: TreeStructure | None = None
        # The bins that were asked for last, and each row's.
        self._binned: tuple[CandidateBins, NDArray[Any]] | None = None
        self._histogram_sums = HistogramSums(cells, weights)
        # Empty where every row takes part, as a sample is.
        self._present = np.empty(0, dtype=np.bool_)
        if left_out is not None:
            self.leave_out(left_out)

    def leave_out(self, rows: Flags) -> None:
        """Let these rows contribute 0 to whatever is asked; before anything is. For the curator alone.

        Args:
            rows: bool (n_rows,).
        """
        if not rows.any():
            return
        self._present = self._taking_part(~rows)
        # A filter charges a row that was not drawn: without a label it is charged nothing.
        self._scored = {None: RowScores(np.where(self._present, self._scored[None].targets, np.nan))}
        if self._classes is not None:
            self._classes = np.where(self._present, self._classes, np.int32(-1))

    @classmethod
    def from_data(cls, X: Any, y: Any, schema: Schema, *, loss: Loss, bins: int, sample_weight: Any = None) -> "Table":
        """Encode the rows by the schema. What it refuses, by names, types and shapes, costs nothing.

        No value is refused: one outside its range is clamped, a category that is not listed is "other", a row whose
        label is missing or of no class, or with a cell that cannot be read, contributes 0.

        Args:
            X: array-like or data frame, shape (n_rows, n_features).
            y: array-like, shape (n_rows,).
            schema: features and target.
            loss: logistic wants a categorical target; squared takes it, too, or a numeric target, whose range becomes
                [-1, 1]. Of two classes the second one is 1 and the first one -1; of several, a query names one.
            bins: even steps of a numeric feature's range.
            sample_weight: see `encode_weights`.

        Raises:
            SchemaError: columns, types or shapes that are not the schema's. `Schema.check` tells the owner of values.
        """
        cells, left_out = encode_rows(X, schema, bins=bins)
        require_categories(X, schema)
        targets, classes = None, None
        match loss, schema.target:
            case "squared", Numeric() as target:
                targets = encode_numeric_target(y, target)
            case "squared" | "logistic", Categorical() as target:
                classes = encode_classes(y, target)
            case _:
                wanted = "a" if loss == "squared" else "a Categorical"
                raise SchemaError(f"the {loss} loss needs {wanted} target in the schema; got target={schema.target!r}")
        labels = sum(len(given) for given in (targets, classes) if given is not None)
        same_length(cells.shape[1], labels, "y")
        weights = encode_weights(sample_weight, schema, n_rows=labels)
        return cls(
            schema=schema.resolved(len(cells)), cells=cells, targets=targets, classes=classes, weights=weights,
            left_out=left_out,
        )  # fmt: skip

    @property
    def n_rows(self) -> int:
        """The number of rows, for the curator alone."""
        return len(self._leaves)

    def reader(self, query: object) -> Callable[[NDArray[np.bool_]], NDArray[np.int64]]:
        """What evaluates the query over a sample. For the curator alone; no row is read here.

        Raises:
            RoundViolation: a foreign query, counts of features that are not there, or a ratio whose bound holds for
                rows of one weight only.
        """
        known = known_query(query)
        self._shape.require_query(known)
        return lambda sampled: self.statistic(known, sampled)

    def evidence(self, query: object) -> Callable[[NDArray[np.bool_]], Any]:
        """What reads a sample for a selection: exact gains, or counts. For the curator alone; no row is read here.

        Raises:
            RoundViolation: another selection, foreign tests or structure, tests of features that are not there, or
                quantiles of a categorical one.
        """
        match self._shape.require_selection(query):
            case SplitGains() as gains:
                return lambda sampled: self.gains(gains, sampled)
            case GridlessGains() as grouped:
                return lambda sampled: self.grouped_gains(grouped, sampled)
            case GiniSplits() as splits:
                return lambda sampled: self.impurities(splits, sampled)
            case LeafLabels() | FeatureQuantiles() as choice:
                return lambda sampled: self.statistic(choice.counts, sampled)

    def gains(self, query: SplitGains, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The exact gain of each test at each node, int64 (n_nodes, n_tests) in grid steps. For the curator alone."""
        cells = query.cells
        with self._lock:
            rows, nodes, gradients, weights = self._contributions(query, sampled)
            sums = np.empty((query.structure.n_leaves, cells.total, 2), dtype=np.int64)
            kernels.cell_sums(
                len(nodes), self._cells, cells.features, cells.offsets, rows, nodes, gradients, weights, sums
            )
        return exact_gains(
            sums, cells.start, cells.stop, cells.besides, int(cells.offsets[1]), query.damping_steps,
            query.grid.exponents[0], weighted=len(self._weights) > 0,
        )  # fmt: skip

    def impurities(self, query: GiniSplits, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The utility of each test at each node, int64 (n_nodes, n_tests) in grid steps. For the curator alone."""
        cells = query.cells
        with self._lock:
            rows = self._classed(self._taking_part(sampled))
            counts = rows.by_cell(query.structure, self._cells, cells.features, cells.offsets)
        return query.utilities(counts)

    def grouped_gains(self, query: GridlessGains, sampled: NDArray[np.bool_]) -> GroupedGains:
        """The exact gain of all tests of the grid at each node. For the curator alone."""
        with self._lock:
            return grouped_gains(query, self._cells, *self._contributions(query, sampled))

    def _contributions(
        self, query: SplitGains | GridlessGains, sampled: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], Weights]:
        """The rows that contribute, int64 (m,) (empty: all of them); their nodes, gradients and weights, int32 (m,)."""
        state = self._advanced(query.ensemble, query.positive)
        nodes = np.empty(self.n_rows, dtype=np.int32)
        gradients = np.empty(self.n_rows, dtype=np.int32)
        kernels.node_gradients(
            self.n_rows, self._cells, *query.structure.lowered(), state.scores, state.targets, self._weights,
            self._taking_part(sampled), query.loss == "logistic", query.clip, PER_UNIT, query.clip_steps,
            query.large_gradients == "drop", nodes, gradients,
        )  # fmt: skip
        # A sample is gathered once: to ask each feature's loop whether a row is in it costs more than the sums.
        rows = np.flatnonzero(nodes >= 0)
        if len(rows) < len(nodes):
            return rows, nodes[rows], gradients[rows], self._weights[rows] if len(self._weights) else self._weights
        return np.empty(0, dtype=np.int64), nodes, gradients, self._weights

    def statistic(
        self, query: AnyQuery, sampled: NDArray[np.bool_], budgets: RowBudgets | None = None
    ) -> NDArray[np.int64]:
        """The query's exact value over the sampled rows, int64 in grid steps. For the curator alone.

        Args:
            query: what to add up.
            sampled: see `sample`.
            budgets: what each row has left, of a `SummedQuery`; a row that cannot pay contributes 0, the others are
                charged.
        """
        # Two rounds of one curator share the row state.
        with self._lock:
            return self._statistic(query, self._taking_part(sampled), NO_FILTER if budgets is None else budgets)

    def _taking_part(self, sampled: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The sample without the rows that take no part."""
        if not self._present.size:
            return sampled
        return self._present & sampled if sampled.size else self._present

    def _statistic(self, query: AnyQuery, sampled: NDArray[np.bool_], budgets: RowBudgets) -> NDArray[np.int64]:
        match query:
            case LabelMoments():
                return self._target_sums(sampled)
            case LabelCount():
                return self._target_sums(sampled)[:1]
            case LabelSum():
                return self._target_sums(sampled)[1:]
            case PredictionFit():
                return self._fit(query, sampled)
            case ScoreCounts():
                return self._score_counts(query, sampled)
            case LeafMoments():
                return self._moments(query, sampled, budgets)
            case LeafCurvatures():
                return self._curvatures(query, sampled, budgets)
            case LeafRatios():
                return _ratios(self._moments(query, sampled, NO_FILTER), query)
            case WholeSums():
                return self._whole_sums(query, sampled)
            case LeafSoftmax():
                return self._softmax(query, sampled)
            case LeafCounts():
                return self._leaf_counts(query, sampled)
            case CellCounts():
                return self._cell_counts(query, sampled)
            case CandidateCounts() | CellHessians() | CellSums() | SideSums():
                return self._histograms(query, sampled)
            case ClassCounts():
                columns = self.binned(query.bins)
                rows = self._classed(sampled)
                return rows.by_cell(query.structure, columns, np.arange(len(columns)), query.bins.offsets).reshape(
                    -1, 1
                )
            case LeafClassCounts():
                return self._classed(sampled).by_leaf(query.structure)

    def _target_sums(self, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        partial = np.zeros((kernels.n_chunks(self.n_rows), 2), dtype=np.int64)
        kernels.target_sums(self.n_rows, self._scored[None].targets, self._weights, sampled, PER_UNIT, partial)
        return kernels.total(partial)

    def _fit(self, query: PredictionFit, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        state = self._advanced(query.ensemble)
        partial = np.zeros((kernels.n_chunks(self.n_rows), 1), dtype=np.int64)
        kernels.fit_sums(
            self.n_rows, state.scores, state.targets, self._weights, sampled, query.loss == "logistic",
            query.width, PER_UNIT, partial,
        )  # fmt: skip
        return kernels.total(partial)

    def _score_counts(self, query: ScoreCounts, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        state = self._advanced(query.ensemble, query.positive)
        partial = np.zeros((kernels.n_chunks(self.n_rows), len(query.edges) + 1, 2), dtype=np.int64)
        kernels.score_sums(
            self.n_rows, state.scores, state.targets, self._weights, sampled, np.array(query.edges), PER_UNIT, partial
        )
        return kernels.total(partial)

    def _moments(
        self,
        query: LeafMoments | LeafRatios,
        sampled: NDArray[np.bool_],
        budgets: RowBudgets,
        per_unit: float = PER_UNIT,
    ) -> NDArray[np.int64]:
        state, partial = self._prepare(query)
        tree = query.structure
        kernels.moment_sums(
            self.n_rows, self._cells, *tree.lowered(), state.scores, state.targets, self._weights,
            sampled, query.loss == "logistic", query.clip, per_unit, int(query.clip * per_unit),
            query.large_gradients == "drop", budgets.left, budgets.costs, *budgets.weights, self._leaves, partial,
        )  # fmt: skip
        self._routed = tree
        return kernels.total(partial)

    def _curvatures(
        self,
        query: LeafCurvatures,
        sampled: NDArray[np.bool_],
        budgets: RowBudgets,
        per_unit: float = PER_UNIT,
        squared_radius: int | None = None,
    ) -> NDArray[np.int64]:
        state, partial = self._prepare(query)
        tree = query.structure
        kernels.curvature_sums(
            self.n_rows, self._cells, *tree.lowered(), state.scores, state.targets, self._weights,
            sampled, query.curvature_scale, query.clip, per_unit,
            query.squared_radius_steps if squared_radius is None else squared_radius,
            query.large_gradients == "drop", budgets.left, budgets.costs, *budgets.weights, self._leaves, partial,
        )  # fmt: skip
        self._routed = tree
        return kernels.total(partial)

    def _whole_sums(self, query: WholeSums, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        if isinstance(query.leaf, LeafMoments):
            return self._moments(query.leaf, sampled, NO_FILTER, query.units)
        return self._curvatures(query.leaf, sampled, NO_FILTER, query.units, query.squared_radius_units)

    def _softmax(self, query: LeafSoftmax, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        self._shape.require_classes(len(query.ensembles))
        tree = query.structure
        self._shape.require_features(tree)
        scores = np.stack([self._advanced(each, place).scores for place, each in enumerate(query.ensembles)])
        self._routed = None  # as in `_prepare`
        partial = np.zeros((kernels.n_chunks(self.n_rows), tree.n_leaves, 2 * len(scores)), dtype=np.int64)
        softmax_kernels.softmax_sums(
            self.n_rows, self._cells, *tree.lowered(), scores, self._classes, self._weights, sampled,
            query.curvature_scale, PER_UNIT, query.squared_radius_steps, self._leaves, partial,
        )  # fmt: skip
        self._routed = tree
        return kernels.total(partial)

    def _leaf_counts(self, query: LeafCounts, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        tree = query.structure
        self._shape.require_features(tree)
        self._routed = None  # as in `_prepare`
        partial = np.zeros((kernels.n_chunks(self.n_rows), tree.n_leaves), dtype=np.int64)
        count_kernels.leaf_counts(self.n_rows, self._cells, *tree.lowered(), sampled, self._leaves, partial)
        self._routed = tree
        return kernels.total(partial)[:, np.newaxis]

    def _cell_counts(self, query: CellCounts, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        self._shape.require_counted(query)
        counts = np.empty((len(query.features), query.cells), dtype=np.int64)
        rows = np.flatnonzero(sampled)
        if len(sampled) and not len(rows):
            counts[:] = 0  # no rows, which the loop would take for all of them
        else:
            features = np.array(query.features, dtype=np.int64)
            count_kernels.cell_counts(len(rows) or self.n_rows, self._cells, features, rows, counts)
        return counts.reshape(-1, 1)

    def _histograms(self, query: HistogramQuery, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        self._shape.require_query(query)
        state = None
        if not isinstance(query, CandidateCounts):
            leaf = query if isinstance(query, CellHessians) else query.leaf
            state = self._advanced(leaf.ensemble, leaf.positive)
        binned = None if isinstance(query, SideSums) else self.binned(query.bins)
        return self._histogram_sums.of(query, binned, state, sampled)

    def binned(self, bins: CandidateBins) -> NDArray[Any]:
        """The bin of each row, uint8 or uint16 (n_binned_features, n_rows), kept until others are asked for.

        For the curator alone.

        Raises:
            RoundViolation: other bins than this class's, or of features that are not there.
        """
        self._shape.require_bins(bins)
        if self._binned is None or self._binned[0] is not bins:
            self._binned = bins, bin_rows(bins, self._cells)
        return self._binned[1]

    def _prepare(self, query: LeafQuery) -> tuple[RowScores, NDArray[np.int64]]:
        """The scores, brought up to the query's ensemble; room for the sums by block of rows."""
        self._shape.require_features(query.structure)
        state = self._advanced(query.ensemble, query.positive)
        # The leaves are no tree's until the kernel has come to its end: it may be interrupted.
        self._routed = None
        return state, np.zeros((kernels.n_chunks(self.n_rows), query.structure.n_leaves, 2), dtype=np.int64)

    def _classed(self, sampled: NDArray[np.bool_]) -> ClassedRows:
        assert self._classes is not None  # `require_query`
        return ClassedRows(self._cells, self._classes, self._shape.n_classes, sampled)

    def _advanced(self, ensemble: Ensemble, positive: int | None = None) -> RowScores:
        """The state of the class that is told from the others, its scores brought up to the ensemble."""
        self._shape.require_ensemble(ensemble)
        self._shape.require_class(positive)
        if positive not in self._scored:
            assert self._classes is not None  # `require_class`
            assert positive is not None
            self._scored[positive] = RowScores(signs(self._classes, positive))
        state = self._scored[positive]
        prefix = state.prefix
        if prefix is None or not ensemble.extends(prefix):
            state.prefix = None
            state.scores[:] = ensemble.initial_score
            prefix = state.prefix = Ensemble(initial_score=ensemble.initial_score)
        trees = ensemble.trees[len(prefix.trees) :]
        for tree in trees:
            self._shape.require_features(tree.structure)
        for number, tree in enumerate(trees, start=len(ensemble.trees) - len(trees) + 1):
            structure = tree.structure
            # An interrupt comes when a loop has ended: whether the tree was added is then not known.
            state.prefix = None
            if structure is self._routed:
                kernels.add_leaf_values(self.n_rows, self._leaves, tree.values, state.scores)
            else:
                add_tree(self.n_rows, self._cells, *structure.lowered(), tree.values, state.scores)
            state.prefix = Ensemble(initial_score=ensemble.initial_score, trees=ensemble.trees[:number])
        return state


def _ratios(moments: NDArray[np.int64], query: LeafRatios) -> NDArray[np.int64]:
    """Sum / (count + damping) of each leaf in whole steps, truncated toward zero; Python integers, so exact."""
    steps, held = int(PER_UNIT), query.leaf_clip_steps
    ratios = []
    for count, total in moments.tolist():
        size = abs(total) * steps // (count + query.damping_steps)
        size = size if held is None else min(size, held)
        ratios.append([size if total >= 0 else -size])
    return np.array(ratios, dtype=np.int64)
