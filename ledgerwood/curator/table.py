"""The rows, and the state of each row. Nothing with a row axis leaves the curator."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import kernels
from ledgerwood.curator.encoding import encode_binary_target, encode_features, encode_numeric_target
from ledgerwood.curator.exact_gains import exact_gains
from ledgerwood.curator.gains import SplitGains
from ledgerwood.curator.queries import (
    STEP,
    AnyQuery,
    LabelCount,
    LabelMoments,
    LabelSum,
    LeafCurvatures,
    LeafMoments,
    LeafQuery,
    LeafRatios,
    Loss,
    PredictionFit,
    known_query,
)
from ledgerwood.curator.rows import AbstractRows
from ledgerwood.curator.schema import Categorical, Numeric, Schema
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure, add_tree
from ledgerwood.errors import RoundViolation, SchemaError

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

    __slots__ = ("_cells", "_leaves", "_lock", "_prefix", "_routed", "_scores", "_targets", "schema")

    def __init__(self, *, schema: Schema, cells: NDArray[Any], targets: NDArray[np.float64]) -> None:
        self.schema = schema
        self._cells = cells
        self._targets = targets
        self._lock = threading.Lock()
        # Row state: the score of the ensemble `_prefix`, and the leaf in the tree `_routed`.
        self._scores = np.zeros(len(targets))
        self._prefix = Ensemble(initial_score=0.0)
        self._leaves = np.zeros(len(targets), dtype=np.int32)
        self._routed: TreeStructure | None = None

    @classmethod
    def from_data(cls, X: Any, y: Any, schema: Schema, *, loss: Loss, bins: int) -> "Table":
        """Check X and y against the schema and encode them. The owner's step: what it refuses costs nothing.

        Args:
            X: array-like or data frame, shape (n_rows, n_features).
            y: array-like, shape (n_rows,).
            schema: features and target.
            loss: squared wants a numeric target, logistic a categorical one with two classes.
            bins: even steps of a numeric feature's range.

        Raises:
            SchemaError: data and schema do not fit; the message names column, value and bound.
        """
        cells = encode_features(X, schema, bins=bins)
        match loss, schema.target:
            case "squared", Numeric() as target:
                targets = encode_numeric_target(y, target)
            case "logistic", Categorical() as target:
                targets = encode_binary_target(y, target)
            case _:
                wanted = "a Numeric" if loss == "squared" else "a Categorical"
                raise SchemaError(f"the {loss} loss needs {wanted} target in the schema; got target={schema.target!r}")
        if len(targets) != cells.shape[1]:
            raise SchemaError(
                f"Found input variables with inconsistent numbers of samples: X {cells.shape[1]}, y {len(targets)}"
            )
        return cls(schema=schema.resolved(len(cells)), cells=cells, targets=targets)

    @property
    def n_rows(self) -> int:
        """The number of rows, for the curator alone."""
        return len(self._targets)

    def reader(self, query: object) -> Callable[[NDArray[np.bool_]], NDArray[np.int64]]:
        """What evaluates the query over a sample. For the curator alone; no row is read here.

        Raises:
            RoundViolation: a foreign query.
        """
        known = known_query(query)
        return lambda sampled: self.statistic(known, sampled)

    def evidence(self, query: object) -> Callable[[NDArray[np.bool_]], Any]:
        """What reads a sample for a selection of splits: their exact gains. For the curator alone; no row is read here.

        Raises:
            RoundViolation: another selection, foreign tests or structure, or tests of features that are not there.
        """
        # A subclass could state any cost.
        if type(query) is not SplitGains:
            raise RoundViolation(f"{type(query).__name__} is not a selection that a table of trees carries out")
        self._require_features(query.structure)
        if type(query.tests) is not SplitTests:
            raise RoundViolation(f"{type(query.tests).__name__} is not SplitTests: it could send a row left twice")
        if query.tests.feature.max() >= len(self._cells):
            raise RoundViolation(f"a candidate tests features outside 0..{len(self._cells) - 1}, the table's")
        return lambda sampled: self.gains(query, sampled)

    def gains(self, query: SplitGains, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The exact gain of each test at each node, int64 (n_nodes, n_tests) in grid steps. For the curator alone."""
        with self._lock:
            self._advance(query.ensemble)
            tree, cells = query.structure, query.cells
            nodes = np.empty(len(self._targets), dtype=np.int32)
            gradients = np.empty(len(self._targets), dtype=np.int32)
            kernels.node_gradients(
                len(self._targets), self._cells, *tree.lowered(), self._scores, self._targets,
                sampled, query.loss == "logistic", query.clip, PER_UNIT, query.clip_steps,
                query.large_gradients == "drop", nodes, gradients,
            )  # fmt: skip
            # A sample is gathered once: to ask each feature's loop whether a row is in it costs more than the sums.
            rows = np.flatnonzero(nodes >= 0)
            if len(rows) < len(nodes):
                nodes, gradients = nodes[rows], gradients[rows]
            else:
                rows = np.empty(0, dtype=np.int64)
            sums = np.empty((tree.n_leaves, cells.total, 2), dtype=np.int64)
            kernels.cell_sums(len(nodes), self._cells, cells.features, cells.offsets, rows, nodes, gradients, sums)
        return exact_gains(
            sums, cells.start, cells.stop, cells.besides, int(cells.offsets[1]), query.damping_steps,
            query.grid.exponents[0],
        )  # fmt: skip

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
            return self._statistic(query, sampled, NO_FILTER if budgets is None else budgets)

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
            case LeafMoments():
                return self._moments(query, sampled, budgets)
            case LeafCurvatures():
                return self._curvatures(query, sampled, budgets)
            case LeafRatios():
                return _ratios(self._moments(query, sampled, NO_FILTER), query.damping_steps)

    def _target_sums(self, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        partial = np.zeros((kernels.n_chunks(len(self._targets)), 2), dtype=np.int64)
        kernels.target_sums(len(self._targets), self._targets, sampled, PER_UNIT, partial)
        return kernels.total(partial)

    def _fit(self, query: PredictionFit, sampled: NDArray[np.bool_]) -> NDArray[np.int64]:
        self._advance(query.ensemble)
        partial = np.zeros((kernels.n_chunks(len(self._targets)), 1), dtype=np.int64)
        kernels.fit_sums(
            len(self._targets), self._scores, self._targets, sampled, query.loss == "logistic", query.width, PER_UNIT,
            partial,
        )  # fmt: skip
        return kernels.total(partial)

    def _moments(
        self, query: LeafMoments | LeafRatios, sampled: NDArray[np.bool_], budgets: RowBudgets
    ) -> NDArray[np.int64]:
        partial = self._prepare(query)
        tree = query.structure
        kernels.moment_sums(
            len(self._targets), self._cells, *tree.lowered(), self._scores, self._targets,
            sampled, query.loss == "logistic", query.clip, PER_UNIT, int(query.clip / STEP),
            query.large_gradients == "drop", budgets.left, budgets.costs, *budgets.weights, self._leaves, partial,
        )  # fmt: skip
        self._routed = tree
        return kernels.total(partial)

    def _curvatures(self, query: LeafCurvatures, sampled: NDArray[np.bool_], budgets: RowBudgets) -> NDArray[np.int64]:
        partial = self._prepare(query)
        tree = query.structure
        kernels.curvature_sums(
            len(self._targets), self._cells, *tree.lowered(), self._scores, self._targets,
            sampled, query.curvature_scale, query.clip, PER_UNIT, query.squared_radius_steps,
            query.large_gradients == "drop", budgets.left, budgets.costs, *budgets.weights, self._leaves, partial,
        )  # fmt: skip
        self._routed = tree
        return kernels.total(partial)

    def _prepare(self, query: LeafQuery) -> NDArray[np.int64]:
        """Bring the scores up to the query's ensemble; room for the sums by block of rows."""
        self._require_features(query.structure)
        self._advance(query.ensemble)
        # The leaves are no tree's until the kernel has come to its end: it may be interrupted.
        self._routed = None
        return np.zeros((kernels.n_chunks(len(self._targets)), query.structure.n_leaves, 2), dtype=np.int64)

    def _require_features(self, structure: TreeStructure) -> None:
        if type(structure) is not TreeStructure:
            raise RoundViolation(f"{type(structure).__name__} is not a TreeStructure: its leaves are not known")
        # A feature outside the table would route a row by memory that is not its own.
        if not structure.tests_only(len(self._cells)):
            raise RoundViolation(f"a tree tests features outside 0..{len(self._cells) - 1}, the table's")

    def _advance(self, ensemble: Ensemble) -> None:
        # A subclass could hold values for other leaves than its trees have.
        if not {type(ensemble), *map(type, ensemble.trees)} <= {Ensemble, Tree}:
            raise RoundViolation(f"{type(ensemble).__name__} is not an Ensemble of plain trees")
        if not ensemble.extends(self._prefix):
            self._prefix = Ensemble(initial_score=ensemble.initial_score)
            self._scores[:] = ensemble.initial_score
        trees = ensemble.trees[len(self._prefix.trees) :]
        for tree in trees:
            self._require_features(tree.structure)
        for number, tree in enumerate(trees, start=len(ensemble.trees) - len(trees) + 1):
            structure = tree.structure
            if structure is self._routed:
                kernels.add_leaf_values(len(self._scores), self._leaves, tree.values, self._scores)
            else:
                add_tree(len(self._scores), self._cells, *structure.lowered(), tree.values, self._scores)
            # Tree by tree, so that an interrupt between two leaves scores and prefix in step.
            self._prefix = Ensemble(initial_score=ensemble.initial_score, trees=ensemble.trees[:number])


def _ratios(moments: NDArray[np.int64], damping_steps: int) -> NDArray[np.int64]:
    """Sum / (count + damping) of each leaf in whole steps, truncated toward zero; Python integers, so exact."""
    steps = int(PER_UNIT)
    ratios = []
    for count, total in moments.tolist():
        size = abs(total) * steps // (count + damping_steps)
        ratios.append([size if total >= 0 else -size])
    return np.array(ratios, dtype=np.int64)
