"""The queries that each kind of table carries out, with the check and the evaluator of each.

A query's module says in one place what is asked, what one row can change in it, what is refused, and how it is
evaluated::

    @final
    @dataclass(frozen=True, slots=True, kw_only=True)
    class LabelCount:
        ...  # grid, sensitivity

    @TREES.carries_out(LabelCount, check=two_classes)
    def _count(query: LabelCount, rows: TreeRows) -> Integers:
        ...

A table asks the registry and knows no query. What is not registered is refused by name, before a draw is used up.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import Event
from ledgerwood.curator.views.column_rows import ColumnRows, ColumnShape, UndeclaredRows
from ledgerwood.curator.views.tree_rows import TreeRows, TreeShape
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import Grid, RandomSource

Integers = NDArray[np.int64]
S_co = TypeVar("S_co", covariant=True)
M_contra = TypeVar("M_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
Shape = TypeVar("Shape")
View = TypeVar("View")
Q = TypeVar("Q")
T = TypeVar("T")
_ROOM = "ledgerwood.curator.queries."


class Query(Protocol[S_co]):
    """A statistic: what one row can change in it, and the grid on which it is an integer."""

    def sensitivity(self, adjacency: Adjacency) -> S_co:
        """The shifts of the statistic between neighbouring tables."""

    @property
    def grid(self) -> Grid:
        """Steps of the statistic's columns."""


class SelectionQuery(Protocol[M_contra, R_co]):
    """A choice: which mechanisms make it, what they cost, and how they make it from what the table hands over."""

    def event(self, mechanism: M_contra, adjacency: Adjacency) -> Event:
        """The event of the choice, from the fields that the sampler reads.

        Raises:
            RoundViolation: a mechanism that does not answer this query.
        """

    def select(self, mechanism: M_contra, evidence: Any, source: RandomSource) -> R_co:
        """The choice; `evidence` is what the query's evaluator reads of the rows. Curator only."""


class Placed:
    """A query that consists of a statistic and of the tree or ensemble to which it is applied."""

    __slots__ = ()
    statistic: object


def name_of(query: object) -> str:
    """The query's name in errors and reports: its class, or the class of its statistic of leaves or scores."""
    return type(query.statistic if isinstance(query, Placed) else query).__name__


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(Generic[Shape, View]):
    """The checks and the evaluator of one type of query.

    Args:
        kind: the type itself.
        check: refuses a query that the table's public shape does not allow.
        evaluate: exact integers from the rows; of a selection, the evidence that its mechanism chooses by.
        filtered: whether a query adds up what single rows contribute, and heeds `RowBudgets`: what a row changes is
            its own contribution, so that each row can pay for itself.
        caveat: what the ledger has to say of a query whose sensitivity is not proven; empty where it is.
    """

    kind: type
    check: Callable[[Any, Shape], None]
    evaluate: Callable[[Any, View], Any]
    filtered: Callable[[Any], bool]
    caveat: Callable[[Any], str]


@final
class Registry(Generic[Shape, View]):
    """The queries of one kind of table.

    Args:
        refusal: the error for any other query, after its name.
    """

    __slots__ = ("_evaluations", "_refusal")

    def __init__(self, refusal: str) -> None:
        self._evaluations: dict[type, Evaluation[Shape, View]] = {}
        self._refusal = refusal

    def carries_out(
        self,
        kind: type[Q],
        *,
        check: Callable[[Q, Shape], None],
        filtered: Callable[[Q], bool] = lambda _: False,
        caveat: Callable[[Q], str] = lambda _: "",
    ) -> Callable[[Callable[[Q, View], T]], Callable[[Q, View], T]]:
        """Register the function below as the evaluator of queries of exactly this type.

        Args:
            kind: a query's class, of a module of this folder.
            check, filtered, caveat: see `Evaluation`.

        Raises:
            RoundViolation: a class of another folder, whose sensitivity nobody has proven, one that is registered, or
                any class once the curator has been imported.
        """
        # A class names its module itself: the module has to know the class, too.
        home = vars(sys.modules.get(kind.__module__, object))
        if not kind.__module__.startswith(_ROOM) or home.get(kind.__qualname__) is not kind:
            raise RoundViolation(
                f"{kind.__module__}.{kind.__name__} is not a query of the curator: use a DeclaredStatistic instead"
            )
        if kind in self._evaluations:
            raise RoundViolation(f"{kind.__name__} is registered already")
        if _sealed:
            raise RoundViolation(
                f"{kind.__name__} comes too late: the registries are closed when ledgerwood.curator has been imported. "
                "A query of the library is exported in ledgerwood/curator/__init__.py; from outside ask a "
                "DeclaredStatistic"
            )

        def registered(evaluate: Callable[[Q, View], T]) -> Callable[[Q, View], T]:
            self._evaluations[kind] = Evaluation(
                kind=kind, check=check, evaluate=evaluate, filtered=filtered, caveat=caveat
            )
            return evaluate

        return registered

    @property
    def kinds(self) -> frozenset[type]:
        """The registered types."""
        return frozenset(self._evaluations)

    def __contains__(self, query: object) -> bool:
        return self._found(query) is not None

    def evaluation(self, query: object) -> Evaluation[Shape, View]:
        """Finds the evaluation of the query.

        Raises:
            RoundViolation: a foreign query, or a subclass of a registered one: it could state any sensitivity.
        """
        found = self._found(query)
        if found is None:
            raise RoundViolation(f"{type(query).__name__} {self._refusal}")
        return found

    def _found(self, query: object) -> Evaluation[Shape, View] | None:
        found = self._evaluations.get(type(query))
        # A class may be made to equal another one.
        return found if found is not None and found.kind is type(query) else None


TREES: Registry[TreeShape, TreeRows] = Registry("is not a query that this curator carries out")
"""Statistics of a table of trees."""
TREE_CHOICES: Registry[TreeShape, TreeRows] = Registry("is not a selection that a table of trees carries out")
COLUMNS: Registry[ColumnShape, ColumnRows] = Registry("is not a query that a table of columns carries out")
"""Statistics of a table of columns."""
COLUMN_CHOICES: Registry[ColumnShape, ColumnRows] = Registry("is not a selection that a table of columns carries out")
UNDECLARED: Registry[UndeclaredRows, UndeclaredRows] = Registry("needs a schema, which is not estimated yet")
"""Statistics of rows without a schema; what is public of these is found beside them."""
UNDECLARED_CHOICES: Registry[UndeclaredRows, UndeclaredRows] = Registry("needs a schema, which is not estimated yet")
REGISTRIES = (TREES, TREE_CHOICES, COLUMNS, COLUMN_CHOICES, UNDECLARED, UNDECLARED_CHOICES)


_sealed = False


def seal() -> None:
    """Register nothing from now on: all modules of this folder have been imported."""
    global _sealed  # noqa: PLW0603 - one way only
    _sealed = True


def no_refusal(query: object, shape: object) -> None:
    """Check a query that every table of its kind can answer."""
