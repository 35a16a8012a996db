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

The rows of a table may lie in several parts. An evaluator sees one part and returns integers; those of all parts are
added up modulo 2**64, and where more is to be made of them, `finish` makes it of the sum. What is not a sum over rows
says so, and is refused beyond one part. docs/explanation/places.md#sums-over-parts.
"""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import Event
from ledgerwood.curator.views.column_rows import ColumnRows, ColumnShape, UndeclaredRows
from ledgerwood.curator.views.tree_rows import TreeRows, TreeShape
from ledgerwood.errors import NotASum, RoundViolation
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


OverParts = Literal["sum", "sum by key", "one part"]
"""How a query's values over several parts of the rows make its value over all: they are added up, or not at all."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(Generic[Shape, View]):
    """The checks and the evaluator of one type of query.

    Args:
        kind: the type itself.
        check: refuses a query that the table's public shape does not allow.
        evaluate: exact integers from the rows of one part.
        filtered: whether a query adds up what single rows contribute, and heeds `RowBudgets`: what a row changes is
            its own contribution, so that each row can pay for itself.
        caveat: what the ledger has to say of a query whose sensitivity is not proven; empty where it is.
        over_parts: "sum" where the parts' integers are added up; "sum by key" where they are the counts of keys that
            nobody has listed; "one part" where they cannot be added.
        finish: makes the query's value of the sums over all parts and the table's public shape: the ratios of a
            statistic, say, or the evidence that a selection's mechanism chooses by.
        is_ratio: whether a query releases ratios of the sums, which are made in the process that has the rows.
    """

    kind: type
    check: Callable[[Any, Shape], None]
    evaluate: Callable[[Any, View], Any]
    filtered: Callable[[Any], bool]
    caveat: Callable[[Any], str]
    over_parts: OverParts
    finish: Callable[[Any, Any, Shape], Any]
    is_ratio: Callable[[Any], bool]

    def require_parts(self, query: object, parts: int) -> None:
        """Refuse a query whose value is not a sum over parts, where the rows lie in several.

        Raises:
            RoundViolation: so it is.
        """
        if parts > 1 and self.over_parts == "one part":
            raise NotASum(not_a_sum(name_of(query)))

    def require_sums(self, query: object) -> None:
        """Refuse a query that is more than sums over rows, where the rows lie in several processes.

        Raises:
            RoundViolation: so it is.
        """
        self.require_parts(query, 2)
        if self.is_ratio(query):
            raise NotASum(not_beyond_a_process(name_of(query)))

    def over(self, query: object, views: Iterable[View], parts: int, shape: Shape) -> Any:
        """The query's exact value over all parts of the rows.

        Args:
            query: that `check` and `require_parts` have seen.
            views: of the parts.
            parts: how many there are, at least one.
            shape: public.

        Raises:
            RoundViolation: more or fewer views than parts.
        """
        if self.over_parts == "one part":
            (view,) = views
            return self.finish(query, self.evaluate(query, view), shape)
        if self.over_parts == "sum by key":
            counts: Counter[Any] = Counter()
            entered = 0
            for view in views:
                counts.update(self.evaluate(query, view))
                entered += 1
            if entered != parts:
                raise RoundViolation(f"{entered} parts have entered a sum over {parts}")
            return self.finish(query, dict(counts), shape)
        return self.finish(query, self.summed(query, views, parts), shape)

    def summed(self, query: object, views: Iterable[View], parts: int) -> Integers:
        """The exact sums over all parts, of which `finish` makes the value; arguments and errors as of `over`."""
        sums = PartSums(range(parts))
        for number, view in enumerate(views):
            sums.add((number,), self.evaluate(query, view))
        return sums.total()


def not_a_sum(name: str) -> str:
    """The refusal of a query that is no sum over parts."""
    return (
        f"{name} is not a sum over rows, so that it cannot be put together from parts of them: use rows in "
        "memory (an array or a data frame), or a statistic that is a sum"
    )


def not_beyond_a_process(name: str) -> str:
    """The refusal of a query of ratios, where the rows lie in several processes."""
    return (
        f"{name} are ratios of sums, which are made where the rows are: use rows in memory or in files of one process, "
        "or leaves that release sums"
    )


@final
class PartSums:
    """The sum over the parts of one query, modulo 2**64: each part enters once, and none is left out.

    A part that entered twice would double what its rows contribute, and with it the sensitivity.

    Args:
        parts: their numbers.
    """

    __slots__ = ("_missing", "_parts", "_total")

    def __init__(self, parts: Collection[int]) -> None:
        self._parts = frozenset(parts)
        self._missing = set(self._parts)
        self._total: Integers | None = None

    def add(self, parts: Collection[int], sums: Integers) -> None:
        """Add the integers of some parts.

        Args:
            parts: their numbers.
            sums: int64, of the same shape for all parts.

        Raises:
            RoundViolation: a part has entered, there is no such part, or the integers have another shape.
        """
        if not self._parts.issuperset(parts):
            raise RoundViolation(f"parts {sorted(parts)} are not of the {len(self._parts)} parts of this query")
        if len(set(parts)) < len(parts) or not self._missing.issuperset(parts):
            raise RoundViolation(
                f"of parts {sorted(parts)} one has entered this sum: a second time would double what its rows change"
            )
        if self._total is None:
            self._total = sums if len(self._parts) == len(parts) else sums.copy()
        elif self._total.shape != sums.shape or sums.dtype != self._total.dtype:
            raise RoundViolation(
                f"parts {sorted(parts)} are of shape {sums.shape}, and the others of {self._total.shape}"
            )
        else:
            np.add(self._total, sums, out=self._total)
        self._missing.difference_update(parts)

    def total(self) -> Integers:
        """The sum over all parts.

        Raises:
            RoundViolation: a part is missing.
        """
        if self._total is None or self._missing:
            raise RoundViolation(f"parts {sorted(self._missing)} are missing")
        return self._total


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
        over_parts: OverParts = "sum",
        finish: Callable[[Q, Any, Shape], Any] = lambda _, sums, __: sums,
        is_ratio: Callable[[Q], bool] = lambda _: False,
    ) -> Callable[[Callable[[Q, View], T]], Callable[[Q, View], T]]:
        """Register the function below as the evaluator of queries of exactly this type.

        Args:
            kind: a query's class, of a module of this folder.
            check, filtered, caveat, over_parts, finish, is_ratio: see `Evaluation`.

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
                kind=kind, check=check, evaluate=evaluate, filtered=filtered, caveat=caveat, over_parts=over_parts,
                finish=finish, is_ratio=is_ratio,
            )  # fmt: skip
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
            of = "" if getattr(type(query), "of", None) is None else "; of a statistic ask statistic.of(tree, ensemble)"
            raise RoundViolation(f"{type(query).__name__} {self._refusal}{of}")
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
