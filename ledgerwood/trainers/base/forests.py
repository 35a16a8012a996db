"""One forest a class: how many a schema asks for, how trees are shared among them, and several kept as one ensemble.

Of two classes one forest tells the second from the first. Of K > 2 each class has a forest, which tells it from all
others. docs/explanation/several-classes.md.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, final

from ledgerwood.curator import Aggregator, Categorical, Schema, TypedColumns
from ledgerwood.ensemble import Ensemble, Tree
from ledgerwood.trainers.base.plan import AbstractBoostedPlan
from ledgerwood.trainers.parts.initial_scores import first_score, leave_first_score

ESTIMATED_CLASSES = 32
"""Classes that a private estimate may show, at least: there is a tree for each of them."""
MOST_CLASSES = 1 << 10


def declared_forests(schema: Schema | TypedColumns) -> int:
    """The forests of a schema: one for each of K > 2 classes, else 1; and 1 where it is still to be estimated."""
    if isinstance(schema, TypedColumns) or not isinstance(schema.target, Categorical):
        return 1
    return forest_count(len(schema.target.categories))


def forest_count(classes: int) -> int:
    """One forest tells two classes apart; of more, each has its own."""
    return classes if classes > 2 else 1


def estimates_classes(schema: Schema | TypedColumns) -> bool:
    """Returns whether the number of classes is known only once the schema has been estimated.

    More than two classes that a draft declares share the trees of a plan as estimated ones do.
    """
    if not isinstance(schema, TypedColumns):
        return False
    given = schema.target.given
    return schema.target.keyed or (isinstance(given, Categorical) and len(given.categories) > 2)


def trees_in_all(trees: int, schema: Schema | TypedColumns) -> int:
    """The trees of a plan for typed columns: enough for the classes that may show. Other plans keep their number."""
    return max(trees, ESTIMATED_CLASSES) if estimates_classes(schema) else trees


def most_classes(trees: int) -> int:
    """How many estimated classes that many trees can learn."""
    return max(2, min(trees, MOST_CLASSES))


P = TypeVar("P", bound=AbstractBoostedPlan)


@final
@dataclass(slots=True)
class Forests:
    """The forests of one fit while they grow: tree after tree, each of the next class in turn.

    Args:
        members: what has been released of each.
        sizes: how many trees each will have.
    """

    members: list[Ensemble]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, plan: AbstractBoostedPlan, aggregator: Aggregator) -> "Forests":
        """The forests for the schema's target, which share all trees of the plan; the initial score is released.

        Of several forests, which start at 0, its draws are made and left unused: a ledger does not depend on the number
        of classes that was estimated.

        Args:
            plan: of `classes` forests; or of one, whose trees the classes of an estimated schema share.
            aggregator: holds a grant of the plan's event.
        """
        forests = declared_forests(aggregator.schema)
        if forests == 1:
            first = first_score(plan.initial, plan.loss, aggregator)
        else:
            first = 0.0
            leave_first_score(plan.initial, aggregator)
        return cls([Ensemble(initial_score=first)] * forests, shares(plan.trees * plan.classes, forests))

    @property
    def schedule(self) -> list[tuple[int, int]]:
        """(forest, tree of that forest) of each tree in turn."""
        count = len(self.members)
        return [(number % count, number // count) for number in range(sum(self.sizes))]

    def plans(self, plan: P) -> list[P]:
        """The plan of each forest."""
        alone = len(self.members) == 1
        return [plan if alone else plan.of_forest(size, len(self.sizes)) for size in self.sizes]

    def positive(self, forest: int) -> int | None:
        """What a query of this forest names: the class's place; None of one forest."""
        return None if len(self.members) == 1 else forest

    def add(self, forest: int, tree: Tree) -> None:
        """One tree more."""
        self.members[forest] = self.members[forest].extended(tree)

    @property
    def ensemble(self) -> Ensemble:
        """All of them as one."""
        return stacked(self.members)


def shares(trees: int, forests: int) -> tuple[int, ...]:
    """How many of the trees each forest has; the first ones have those that are left over."""
    each, rest = divmod(trees, forests)
    return tuple(each + (forest < rest) for forest in range(forests))


def stacked(forests: Sequence[Ensemble]) -> Ensemble:
    """One forest as it is; several one after another, each one's initial score in all leaves of its first tree."""
    if len(forests) == 1:
        return forests[0]
    trees: list[Tree] = []
    for forest in forests:
        first, *others = forest.trees
        trees.append(dataclasses.replace(first, values=first.values + forest.initial_score))
        trees.extend(others)
    return Ensemble(initial_score=0.0, trees=tuple(trees))


def unstacked(ensemble: Ensemble, forests: int) -> list[Ensemble]:
    """The forests that `stacked` has put together, of sizes as `shares` has them."""
    trees, found = list(ensemble.trees), []
    for size in shares(len(trees), forests):
        own, trees = trees[:size], trees[size:]
        found.append(Ensemble(initial_score=0.0, trees=tuple(own)))
    return found
