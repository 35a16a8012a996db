"""C1: the three ways to split (Maddock et al. 2022, section 4.3), each with what it asks of a tree and how it grows.

Equation 5 on sums with noise is post-processing. What a method asks is fixed by the plan; a tree that needs less leaves
draws unused.
"""

import abc
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events import Event
from ledgerwood.curator import Aggregator, BinSums, LeafCurvatures, SideSums
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, TreeStructure
from ledgerwood.trainers.federated.splits import HistogramTests, best_of, random_tests
from ledgerwood.trainers.parts.candidates import Thresholds
from ledgerwood.trainers.parts.splits import NodePath, random_tree

if TYPE_CHECKING:
    from ledgerwood.trainers.federated.plan import FederatedPlan

SplitMethod = Literal["histogram", "partially_random", "totally_random"]
Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sapling:
    """A tree that is about to grow: what is public of it, its draws, and the one way to ask for sums.

    Args:
        plan: of the forest.
        aggregator: holds the draws.
        draws: the tree's, of pairs of sums, in the order of the schedule.
        generator: public randomness of the structures.
        cells: of every feature of the schema.
        thresholds: of every feature.
        features: of the tree, rising.
        ensemble: whose scores give the gradients.
        positive: the class that is told from all others, of several.
        name: of the tree, for the ledger.
    """

    plan: "FederatedPlan"
    aggregator: Aggregator
    draws: Iterator[Event]
    generator: np.random.Generator
    cells: Sequence[FeatureCells]
    thresholds: Sequence[Thresholds]
    features: tuple[int, ...]
    ensemble: Ensemble
    positive: int | None
    name: str

    def leaf_sums(self, structure: TreeStructure, what: str) -> Floats:
        """Weight and gradient of each leaf, as released; (n_leaves, 2)."""
        purpose, plan = f"{what} of {self.name}", self.plan
        with self.aggregator.open(next(self.draws), purpose=purpose) as round_:
            query = plan.asked.of(structure, self.ensemble, positive=self.positive)
            return plan.in_leaf_units(round_.release(query, plan.leaf_mechanism, purpose=purpose).real)

    def level_sums(self, structure: TreeStructure, level: int, *, of: HistogramTests | SplitTests) -> Floats:
        """Weight and gradient of each bin, or to the left of each test, node after node; (2**level, ..., 2)."""
        purpose, mechanism = f"level {level + 1} of {self.name}", self.plan.leaf_mechanism
        with self.aggregator.open(next(self.draws), purpose=purpose) as round_:
            leaf = self.plan.asked.of(structure, self.ensemble, positive=self.positive)
            query = (
                BinSums(leaf=leaf, bins=of.bins) if isinstance(of, HistogramTests) else SideSums(leaf=leaf, tests=of)
            )
            released = round_.release(query, mechanism, purpose=purpose).real
            return self.plan.in_leaf_units(released).reshape(2**level, -1, 2)


class Grown(NamedTuple):
    """A tree's structure, its leaves' sums as released (n_leaves, 2), and the root's histograms where they were."""

    structure: TreeStructure
    sums: Floats
    root: Floats | None = None


class AbstractSplitMethod(abc.ABC):
    """A way to choose a tree's splits."""

    @abc.abstractmethod
    def asked(self, plan: "FederatedPlan") -> tuple[int, ...]:
        """Number of features of which a pair of sums is asked at once, for each draw of one tree."""

    @abc.abstractmethod
    def grown(self, tree: Sapling) -> Grown:
        """Lines 6 to 9 of Algorithm 1, the splits; and the sums that line 10 takes a leaf's weight from."""


@final
class TotallyRandom(AbstractSplitMethod):
    """Section 4.3.2: splits without a look at the rows; only the leaves are asked for."""

    def asked(self, plan: "FederatedPlan") -> tuple[int, ...]:
        """See `AbstractSplitMethod`."""
        return (1,)

    def grown(self, tree: Sapling) -> Grown:
        """See `AbstractSplitMethod`."""
        structure = random_tree(
            tree.cells,
            depth=tree.plan.max_depth,
            features=tree.features,
            numeric_weight=1.0,
            generator=tree.generator,
            cuts=[own.tolist() for own in tree.thresholds],
        )
        return Grown(structure=structure, sums=tree.leaf_sums(structure, "leaves"))


@final
class Histogram(AbstractSplitMethod):
    """Section 4.3.1: the best of all candidates, level by level."""

    def asked(self, plan: "FederatedPlan") -> tuple[int, ...]:
        """See `AbstractSplitMethod`; one feature's root histogram has those of all levels."""
        return (plan.width,) * (1 if plan.width == 1 else plan.max_depth)

    def grown(self, tree: Sapling) -> Grown:
        """See `AbstractSplitMethod`."""
        plan, structure = tree.plan, TreeStructure.root()
        tests = HistogramTests.of(tree.cells, tree.thresholds, tree.features)
        if tests is None:  # no candidate: every row goes right
            for level in range(plan.max_depth):
                structure = structure.deeper(_void(2**level))
            return Grown(structure=structure, sums=np.zeros((structure.n_leaves, 2)))
        root: Floats | None = None
        children = np.zeros((1, 2))
        reached = np.ones((1, tests.bins.total), dtype=np.bool_)
        for level in range(plan.max_depth):
            if root is None or plan.width > 1:
                sums = tree.level_sums(structure, level, of=tests)
                root = sums[0] if root is None else root
            else:  # of one feature, a node's bins are bins of the root
                sums = np.where(reached[:, :, np.newaxis], root, 0.0)
            best, children = tests.chosen(in_own_unit(plan, sums), plan.leaf_lambda, 3.0 * plan.weight_stddev)
            structure = structure.deeper(tests.tests.taken(best))
            left = tests.goes_left[best]
            reached = np.stack((reached & left, reached & ~left), axis=1).reshape(-1, tests.bins.total)
        return Grown(structure=structure, sums=as_released(plan, children), root=root)


@final
class PartiallyRandom(AbstractSplitMethod):
    """Section 4.3.2: the best of one random candidate a feature, by the sums to its left and the inherited ones."""

    def asked(self, plan: "FederatedPlan") -> tuple[int, ...]:
        """See `AbstractSplitMethod`."""
        return (1, *(plan.width,) * plan.max_depth)

    def grown(self, tree: Sapling) -> Grown:
        """See `AbstractSplitMethod`."""
        plan, structure = tree.plan, TreeStructure.root()
        children = in_own_unit(plan, tree.leaf_sums(structure, "total"))
        paths = [NodePath(tree.cells, [own.tolist() for own in tree.thresholds])]
        for level in range(plan.max_depth):
            tests, is_open = random_tests(paths, tree.features, tree.generator)
            left = in_own_unit(plan, tree.level_sums(structure, level, of=tests))
            best, children = best_of(
                left, children, is_open.reshape(len(paths), -1), plan.leaf_lambda, 3.0 * plan.weight_stddev
            )
            places = np.where(best < 0, -1, np.arange(len(paths)) * len(tree.features) + best)
            taken = tests.taken(places)
            structure = structure.deeper(taken)
            paths = list(
                itertools.chain.from_iterable(
                    (path, path)
                    if place < 0
                    else path.parted(int(taken.feature[i]), int(taken.split[i]), equals=bool(taken.equals[i]))
                    for i, (path, place) in enumerate(zip(paths, places.tolist(), strict=True))
                )
            )
        return Grown(structure=structure, sums=as_released(plan, children))


METHODS: Mapping[SplitMethod, AbstractSplitMethod] = {
    "histogram": Histogram(),
    "partially_random": PartiallyRandom(),
    "totally_random": TotallyRandom(),
}


def in_own_unit(plan: "FederatedPlan", sums: Floats) -> Floats:
    """Released sums (..., 2) with weights in their own unit."""
    return np.stack((plan.weights(sums), sums[..., 1]), axis=-1)


def as_released(plan: "FederatedPlan", sums: Floats) -> Floats:
    """The inverse: sums in the unit of a release, for `leaf_values`."""
    curved = isinstance(plan.leaf, LeafCurvatures)
    weight = sums[..., 0] * plan.curvature_scale if curved else sums[..., 0]
    return np.stack((weight, sums[..., 1]), axis=-1)


def _void(nodes: int) -> SplitTests:
    """Tests that send every row right."""
    return SplitTests(
        feature=np.zeros(nodes, np.int32), split=np.zeros(nodes, np.uint16), equals=np.zeros(nodes, np.bool_)
    )
