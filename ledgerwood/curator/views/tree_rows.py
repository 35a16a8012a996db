"""Tables of trees as an evaluator sees them: what is public of one, its rows, and their state while an ensemble grows.

What may be asked of a table follows from what is public, and is refused before a draw is used up, never by a row.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.inputs.encoding import signs
from ledgerwood.curator.inputs.values import Weights
from ledgerwood.curator.kernels import class_sums, sums
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure, add_values
from ledgerwood.errors import RoundViolation
from ledgerwood.schema import Schema
from ledgerwood.sparse_cells import AnyCells


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeShape:
    """The public shape of a table of trees. All methods raise RoundViolation.

    Args:
        schema: resolved.
        n_features: columns of the table.
        n_classes: the number of classes of the target; 0 if it is a number, or no classes were kept.
        weighted: whether rows have their own weights.
        bins: even steps of a numeric feature's range, which its cells are; None for cells that were given as such.
    """

    schema: Schema
    n_features: int
    n_classes: int
    weighted: bool
    bins: int | None = None

    @property
    def features(self) -> str:
        """The numbers of the features, for an error."""
        return f"0..{self.n_features - 1}, the table's"

    def require_structure(self, structure: TreeStructure) -> None:
        """Refuse a foreign tree, or one that tests features that are not there."""
        if type(structure) is not TreeStructure:
            raise RoundViolation(f"{type(structure).__name__} is not a TreeStructure: its leaves are not known")
        # A feature outside the table would route a row by memory that is not its own.
        if not structure.tests_only(self.n_features):
            raise RoundViolation(f"a tree tests features outside {self.features}")

    def require_ensemble(self, ensemble: Ensemble, classes: int = 0) -> None:
        """Refuse a foreign ensemble: a subclass could hold values for other leaves than its trees have.

        A tree of it that tests features that are not there is refused too, as one alone is.

        Args:
            ensemble: whose scores a query needs.
            classes: how many scores it needs of each row, one for each class; 0 for one score.
        """
        if not {type(ensemble), *map(type, ensemble.trees)} <= {Ensemble, Tree}:
            raise RoundViolation(f"{type(ensemble).__name__} is not an Ensemble of plain trees")
        if ensemble.n_classes != classes:
            needs, has = (f"{n} scores" if n else "one score" for n in (classes, ensemble.n_classes))
            raise RoundViolation(f"the query needs {needs} of each row, and its ensemble has {has}")
        for tree in ensemble.trees:
            self.require_structure(tree.structure)

    def require_tests(self, tests: SplitTests) -> None:
        """Refuse foreign candidates, or tests of features that are not there."""
        if type(tests) is not SplitTests:
            raise RoundViolation(f"{type(tests).__name__} is not SplitTests: it could send a row left twice")
        if tests.feature.max() >= self.n_features:
            raise RoundViolation(f"a candidate tests features outside {self.features}")

    def require_class(self, positive: int | None) -> None:
        """Refuse a class that is not there, and none where there are several."""
        if positive is None:
            if self.n_classes > 2:
                raise RoundViolation(f"the target has {self.n_classes} classes: a query names the positive one")
        elif positive >= self.n_classes:
            raise RoundViolation(f"class {positive} is not one of the table's {self.n_classes}")

    def require_classes(self, classes: int) -> None:
        """Refuse another number of classes than the target's."""
        if classes != self.n_classes:
            raise RoundViolation(f"the query is of {classes} classes, and the table of {self.n_classes}")


M = TypeVar("M")
Mask = NDArray[np.bool_]
"""(n_rows,), or empty where every row takes part."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowBudgets:
    """The remaining limit of each row under an individual filter, and the cost of a contribution.

    Args:
        left: int64 (n_rows,), in units of `accounting.row_costs`; changed by each release. Empty: no filter.
        costs: see `accounting.row_costs.row_costs`.
        weights: for each of two columns, the share of the largest squared norm that one squared grid step has.
    """

    left: NDArray[np.int64]
    costs: NDArray[np.float64]
    weights: tuple[float, float]


NO_FILTER = RowBudgets(np.empty(0, dtype=np.int64), np.empty(0), (0.0, 0.0))


Room = Callable[[int], NDArray[np.float64]]
"""Makes float64 zeros (n_rows,) for the state of rows: in memory, or in a file."""


@final
class Buffers:
    """Room for what evaluators make of the rows, by name: the same room each time, so that none is made in vain.

    Args:
        room: makes it.
    """

    __slots__ = ("_held", "_room")

    def __init__(self, room: Room) -> None:
        self._held: dict[str, NDArray[np.float64]] = {}
        self._room = room

    def of(self, name: str, n: int) -> NDArray[np.float64]:
        """float64 (n,) for what has this name; what that held before is lost."""
        if name not in self._held or len(self._held[name]) < n:
            self._held.pop(name, None)
            self._held[name] = self._room(n)
        return self._held[name][:n]

    def clear(self) -> None:
        """Give all room back."""
        self._held.clear()


@final
class RowScores:
    """Scores of one growing ensemble, and the targets that they are to meet.

    Args:
        targets: float64 (n_rows,), in [-1, 1]; NaN for a row that takes no part. Empty of several classes' scores.
        scores: float64 (n_rows,), zeros; (n_rows, n_classes) of several classes' scores.

    Attributes:
        scores: by `prefix`.
        prefix: the ensemble that has been added up; None: the scores are no ensemble's, as after an interrupt.
    """

    __slots__ = ("prefix", "scores", "targets")

    def __init__(self, targets: NDArray[np.float64], scores: NDArray[np.float64]) -> None:
        self.targets = targets
        self.scores = scores
        self.prefix: Ensemble | None = Ensemble(initial_score=0.0) if scores.ndim == 1 else None


@final
class RowState:
    """The state of the rows between queries: scores, leaves, and the evaluators' own state.

    Args:
        targets: float64 (n_rows,), of two classes or of numbers; NaN of several classes, where a query names one.
        room: for scores and targets.
        keeping: for what evaluators keep between queries.

    Attributes:
        scored: the scores of one ensemble for each class that is told from the others.
        jointly: the scores of one ensemble for all classes, by trees that they share; None if no query needed them.
        leaves: int32 (n_rows,), each row's leaf in `routed`.
        routed: None: the leaves are no tree's.
        memories: what evaluators keep, by its type; see `TreeRows.memory`.
        buffers: where the arrays of a row axis that they keep lie.
    """

    __slots__ = ("_room", "buffers", "jointly", "leaves", "memories", "routed", "scored")

    def __init__(self, targets: NDArray[np.float64], room: Room = np.zeros, keeping: Room = np.zeros) -> None:
        self._room = room
        self.buffers = Buffers(keeping)
        self.scored: dict[int | None, RowScores] = {None: RowScores(targets, room(len(targets)))}
        self.jointly: RowScores | None = None
        self.leaves = room(-(-len(targets) // 2)).view(np.int32)[: len(targets)]
        self.routed: TreeStructure | None = None
        self.memories: dict[type, Any] = {}

    def tell(self, positive: int, targets: NDArray[np.float64]) -> None:
        """Begin to keep scores of a class that is told from the others, with these targets."""
        own = self._room(len(targets))
        own[:] = targets
        self.scored[positive] = RowScores(own, self._room(len(targets)))

    def tell_jointly(self, classes: int) -> RowScores:
        """Begin to keep a score of each row for each of these classes."""
        n_rows = len(self.leaves)
        self.jointly = RowScores(np.empty(0), self._room(n_rows * classes).reshape(n_rows, classes))
        return self.jointly


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeRows:
    """The rows of one query. An evaluator makes sums of them; no array with a row axis leaves the curator.

    Args:
        shape: the public shape of the table.
        cells: uint8 or uint16 (n_features, n_rows); in an array, or sparse.
        classes: int32 (n_rows,), the place of each row's class among the sorted ones, -1 for none; None if the
            target is a number.
        weights: see `encode_weights`.
        state: scores and leaves, shared by all queries of the table.
        sampled: the rows that take part.
        budgets: what each row has left, for queries that are evaluated under an individual filter.
    """

    shape: TreeShape
    cells: AnyCells
    classes: NDArray[np.int32] | None
    weights: Weights
    state: RowState
    sampled: Mask
    budgets: RowBudgets = NO_FILTER

    @property
    def n_rows(self) -> int:
        """The number of rows, drawn or not."""
        return len(self.state.leaves)

    @property
    def targets(self) -> NDArray[np.float64]:
        """float64 (n_rows,) in [-1, 1]; NaN where a row has none, and of several classes."""
        return self.state.scored[None].targets

    @property
    def labelled(self) -> NDArray[np.int32]:
        """The classes, for a query that was checked to have as many as the target."""
        assert self.classes is not None  # `TreeShape.require_classes`
        return self.classes

    def over(self, tree: TreeStructure) -> tuple[Any, ...]:
        """Cells in an array, and tests of them, by which a loop over rows finds each one's leaf in the tree."""
        cells, tests = tree.over(self.cells)
        return cells, *tests

    def blocks(self, *size: int) -> NDArray[np.int64]:
        """Zeros for sums by block of rows, int64 (n_blocks, *size)."""
        return np.zeros((sums.n_chunks(self.n_rows), *size), dtype=np.int64)

    @contextmanager
    def routing(self, tree: TreeStructure) -> Iterator[NDArray[np.int32]]:
        """Room for each row's leaf, int32 (n_rows,), which the block fills in by the tree: scores are read off it.

        The leaves are no tree's until the block has come to its end: a loop over rows may be interrupted.
        """
        self.shape.require_structure(tree)
        self.state.routed = None
        yield self.state.leaves
        self.state.routed = tree

    def scored(self, ensemble: Ensemble, positive: int | None = None) -> RowScores:
        """Targets of the class that is told from the others, and scores by the ensemble."""
        self.shape.require_ensemble(ensemble)
        self.shape.require_class(positive)
        return self._brought_up(self._state_of(positive), ensemble)

    def scored_jointly(self, ensemble: Ensemble) -> NDArray[np.float64]:
        """Scores by the ensemble for each class of the table, float64 (n_rows, n_classes)."""
        classes = self.shape.n_classes
        self.shape.require_ensemble(ensemble, classes)
        state = self.state.jointly
        return self._brought_up(self.state.tell_jointly(classes) if state is None else state, ensemble).scores

    def _brought_up(self, state: RowScores, ensemble: Ensemble) -> RowScores:
        """The scores by the ensemble: what it has more than the one that they are of is added."""
        prefix = state.prefix
        if prefix is None or not ensemble.extends(prefix):
            state.prefix = None
            state.scores[:] = ensemble.start
            prefix = state.prefix = ensemble.of_first(0)
        trees = ensemble.trees[len(prefix.trees) :]
        for tree in trees:
            self.shape.require_structure(tree.structure)
        for number, tree in enumerate(trees, start=len(ensemble.trees) - len(trees) + 1):
            structure = tree.structure
            # An interrupt comes when a loop has ended: whether the tree was added is then not known.
            state.prefix = None
            if structure is self.state.routed:
                add = class_sums.add_class_values if tree.n_classes else sums.add_leaf_values
                add(self.n_rows, self.state.leaves, tree.values, state.scores)
            else:
                add_values((tree,), self.cells, state.scores)
            state.prefix = ensemble.of_first(number)
        return state

    def memory(self, kind: type[M]) -> M:
        """An evaluator's own memory beside the rows, as long as the table lives; made without arguments at first."""
        found: M | None = self.state.memories.get(kind)
        if found is None:
            found = self.state.memories[kind] = kind()
        return found

    def named_room(self, owner: str) -> Callable[[str, int], NDArray[np.float64]]:
        """Makes room beside the rows for the arrays of an evaluator's memory, by name; see `Buffers`."""
        return lambda name, n: self.state.buffers.of(f"{owner} {name}", n)

    def _state_of(self, positive: int | None) -> RowScores:
        if positive not in self.state.scored:
            assert self.classes is not None  # `require_class`
            assert positive is not None
            self.state.tell(positive, signs(self.classes, positive))
        return self.state.scored[positive]
