"""DPBoost's plan and presets: greedy trees whose splits and leaves are both released, in ensembles over disjoint rows.

Li, Wu, Wen, He: "Privacy-Preserving Gradient Boosting Decision Trees" (2020). Where the paper or its code is wrong, the
sound version is here, and docs/errata.md says so.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events import Composed, Parallel, Repeated
from ledgerwood.accounting.splitting import Share, split
from ledgerwood.curator import MAX_DAMPING, STEP, GridlessGains, Loss
from ledgerwood.curator.queries.splits.tests import weights_of_tests
from ledgerwood.ensemble import FeatureCells, SplitTests
from ledgerwood.errors import InvalidParameter
from ledgerwood.references import Reference, systems
from ledgerwood.trainers.base.bounds import MAX_BINS, Count, Real, positive, require_name, share
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.parts.greedy_trees import (
    LEAST_LEAF_EPSILON,
    AbstractGreedyPlan,
    Candidates,
    require_levels,
)
from ledgerwood.trainers.parts.leaves import newton_leaves

Preset = Literal["default", "paper", "enhanced", "para", "seq", "np"]
Assignment = Literal["geometric", "halving"]
CandidateKind = Literal["grid", "gridless"]
MAX_GROUPS = 10_000
"""Largest number of trees of an ensemble, each of which is a separate group in the event."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DPBoostPlan(AbstractGreedyPlan):
    """The plan of DPBoost: all queries and their noise. Fields that all systems have: see its base classes.

    Loss "squared" is the paper's, on labels scaled to [-1, 1] or classes as -1 and 1; "logistic" is ours. Either way a
    row counts 1 in every denominator.

    Args:
        learning_rate: eta, factor on the value of each leaf, in (0, 1].
        trees_per_ensemble: T_e, trees that share the rows among them, at most 10,000; 1: every tree sees all rows.
        assignment: share of tree t = 0, 1, ... of an ensemble, one independent draw a row: "geometric", eta (1 - eta)^t
            over their sum; "halving", 2^-(t + 1), the rest in no tree. A tree alone has all rows.
        candidates: "grid", each border a candidate; or "gridless", for many thousands of bins, at a cost per row and
            not per candidate, with a public weight for each feature.
        numeric_weight: r of Algorithm 3 of S-GBDT's paper, of "gridless": what all thresholds of a feature weigh
            together in the choice, where a category's test of equality weighs 1; None: all features weigh the same.
        leaf_share: share of a tree's epsilon for its leaves; the levels divide the rest evenly.
        geometric_clipping: tree t = 1, 2, ... of an ensemble has its ratios clipped to clip (1 - eta)^(t-1) ("ratio").
        max_delta_step: largest absolute leaf value before the learning rate; None for no limit. Post-processing, ours.
    """

    references: ClassVar[tuple[Reference, ...] | None] = (systems.LI_2020, systems.FRIEDMAN_2001)

    learning_rate: Annotated[float, Real("factor on a leaf", high=1, holds_high=True)]
    trees_per_ensemble: Annotated[int, Count("trees")]
    assignment: Assignment
    candidates: CandidateKind
    numeric_weight: (
        Annotated[float, Real("tests of equality", low=2.0**-20, high=2.0**20, holds_low=True, holds_high=True)] | None
    ) = None
    leaf_share: Annotated[float, share("share of a tree")]
    geometric_clipping: bool
    reg_lambda: Annotated[float, Real("rows", low=STEP, high=MAX_DAMPING, holds_low=True, holds_high=True)]
    max_delta_step: Annotated[float, positive("units of the score")] | None

    def _require_whole(self) -> None:
        if min(self.n_estimators, self.trees_per_ensemble) > MAX_GROUPS:
            raise _validate.fail("trees_per_ensemble", self.trees_per_ensemble, f"at most {MAX_GROUPS}", "trees")
        if self.numeric_weight is not None and self.candidates != "gridless":
            raise InvalidParameter(
                f"numeric_weight={self.numeric_weight} weighs the features of the grid-less choice: "
                "set candidates='gridless', or leave it None"
            )
        if self.leaf_release == "sums" and self.geometric_clipping:
            raise InvalidParameter(
                "geometric_clipping=True clips the leaf's ratio, and leaf_release='sums' does not have one"
            )
        if self.leaf_release == "ratio" and self.leaf_regularization == "noise":
            raise InvalidParameter(
                "leaf_regularization='noise' needs leaf_release='sums': the noise of a ratio is added after the "
                "division; set leaf_regularization='lambda'"
            )
        self.leaf_mechanism()  # checks the clip

    @property
    def split_epsilon(self) -> float:
        """See `AbstractGreedyPlan`; a plan of depth 0 has no use for it."""
        return self._share("splits").epsilon_each(self.max_depth or 1)

    @property
    def leaf_epsilon(self) -> float:
        """See `AbstractGreedyPlan`."""
        return self._share("leaves").epsilon if self.max_depth else self.tree_epsilon

    def leaf_clip(self, place: int) -> float | None:
        """See `AbstractGreedyPlan`."""
        return max(self.clip * (1.0 - self.learning_rate) ** place, STEP) if self.geometric_clipping else None

    def _share(self, part: str) -> Share:
        tree = Budget(epsilon=self.tree_epsilon, delta=0.0, adjacency=self.adjacency)
        return split(tree, {"splits": 1.0 - self.leaf_share, "leaves": self.leaf_share})[part]

    def cited_parts(self) -> tuple[object, ...]:
        """See `CitedPlan`."""
        gridless = self.candidates == "gridless" and self.max_depth > 0
        return (*AbstractGreedyPlan.cited_parts(self), *((self.gridless_mechanism,) if gridless else ()))

    @property
    def tree_event(self) -> Composed:
        """The event of one tree, the same for every tree: its levels, then its leaves."""
        levels = (Repeated(self.split_event, count=self.max_depth),) if self.max_depth else ()
        return Composed((*levels, self.leaf_event))

    def shares(self, trees: int) -> tuple[float, ...]:
        """The probability of each tree of an ensemble of `trees` trees."""
        if trees == 1:
            return (1.0,)
        if self.assignment == "halving":
            return tuple(2.0 ** -(place + 1) for place in range(trees))
        weights = [(1.0 - self.learning_rate) ** place for place in range(trees)]
        total = math.fsum(weights)
        return tuple(weight / total for weight in weights)

    @property
    def ensembles(self) -> tuple[tuple[int, int], ...]:
        """(number of trees, how many such ensembles), in their order; the last one of each forest may be smaller."""
        full, rest = divmod(self.n_estimators, self.trees_per_ensemble)
        found = ((self.trees_per_ensemble, full), (rest, 1))
        return tuple((size, count * self.classes) for size, count in found if size and count)

    def ensemble_event(self, trees: int) -> Parallel:
        """The event of an ensemble of `trees` trees: one draw, which deals the rows to the trees."""
        return Parallel((self.tree_event,) * trees, probabilities=self.shares(trees))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """One draw for each ensemble; its step is the number of its first tree."""
        found, first = [], 0
        for size, count in self.ensembles:
            found.append(Stage(event=self.ensemble_event(size), steps=range(first, first + size * count, size)))
            first += size * count
        return tuple(found)

    def candidate_tests(self, cells: Sequence[FeatureCells]) -> Candidates | None:
        """Returns the tests that a node may make, by the schema's cells; None at depth 0.

        Raises:
            InvalidParameter: features that cannot be split, or too many candidates for the depth, or too many points
                by their weights.
        """
        if not self.max_depth:
            return None
        found: Candidates = SplitTests.every(cells) if self.candidates == "grid" else tuple(cells)
        require_levels(found, depth=self.max_depth)
        if self.candidates == "gridless":
            weights_of_tests(cells, self.numeric_weight)
        return found

    @property
    def needs_one_part(self) -> str:
        """See `Plan`: gains of all thresholds of a fine grid are made of sorted rows."""
        return GridlessGains.__name__ if self.candidates == "gridless" and self.max_depth else ""

    def require_room(self, cells: Sequence[FeatureCells]) -> None:
        """See `AbstractBoostedPlan`."""
        self.candidate_tests(cells)

    @property
    def least_tree_epsilon(self) -> float:
        """Epsilon of a tree below which leaves are nothing but noise."""
        return LEAST_LEAF_EPSILON[self.leaf_release] / (self.leaf_share if self.max_depth else 1.0)

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of a leaf, all trees together; docs/explanation/cautions.md#leaf-signal.

        Args:
            rows: of the table, all with the largest gradient that counts, spread evenly over the leaves.
        """
        return math.sqrt(
            math.fsum(
                count * self.signal(rows * share / 2.0**self.max_depth, place) ** 2
                for size, count in self.ensembles
                for place, share in enumerate(self.shares(size))
            )
        )

    def leaf_values(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of one tree's leaves, learning rate included, from what was released; shape (n_leaves,)."""
        if self.leaf_release == "ratio":
            steps = -released[:, 0]
        else:
            reg_lambda = self.lambda_by_noise(self.clip if self.loss == "squared" else 1.0)
            steps = newton_leaves(released[:, 0], released[:, 1], reg_lambda=reg_lambda)
        if self.max_delta_step is not None:
            steps = np.clip(steps, -self.max_delta_step, self.max_delta_step)
        return self.learning_rate * steps

    def value_noise(self, released: NDArray[np.float64], place: int = 0) -> NDArray[np.float64]:
        """See `AbstractBoostedPlan`."""
        stddev = math.sqrt(2.0) * self.leaf_mechanism(place).scales[-1]
        noise = np.full(len(released), stddev)
        if self.leaf_release == "sums":
            reg_lambda = self.lambda_by_noise(self.clip if self.loss == "squared" else 1.0)
            noise = newton_leaves(released[:, 0], -noise, reg_lambda=reg_lambda)
        most = math.inf if self.max_delta_step is None else self.max_delta_step
        return np.asarray(self.learning_rate * np.minimum(noise, most))


PAPER = DPBoostPlan(
    adjacency=Adjacency.ADD_REMOVE,
    loss="squared",
    n_estimators=50,
    trees_per_ensemble=50,
    assignment="geometric",
    max_depth=6,
    # LightGBM's default number of bins, on a public grid.
    max_bins=255,
    candidates="grid",
    leaf_share=0.5,
    leaf_release="ratio",
    count_share=0.5,
    geometric_clipping=True,
    large_gradients="drop",
    clip=1.0,
    reg_lambda=0.1,
    leaf_regularization="lambda",
    score_noise=0.5,
    learning_rate=0.1,
    # Where every leaf is without noise.
    max_delta_step=1.0,
    initial_score="zero",
    initial_share=0.1,
)
"""The paper's own choices, made sound: one ensemble of 50 trees, section 4."""
DEFAULT = dataclasses.replace(
    PAPER,
    trees_per_ensemble=1,
    max_depth=4,
    max_bins=32,
    leaf_release="sums",
    leaf_share=0.6,
    count_share=0.15,
    geometric_clipping=False,
    large_gradients="clip",
    clip=0.3,
    leaf_regularization="noise",
    learning_rate=0.5,
    max_delta_step=2.0,
    initial_score="laplace",
)
"""The values that predict a number best without tuning (docs/explanation/dpboost.md#dpboost-defaults)."""
DEFAULT_CLASSES = dataclasses.replace(
    DEFAULT, leaf_share=0.5, clip=1.0, score_noise=0.4, learning_rate=0.4, initial_score="zero"
)
"""The values that predict classes best without tuning, as labels -1 and 1."""
_SINGLE: dict[str, Any] = {"trees_per_ensemble": 1, "geometric_clipping": False}
PRESETS: Mapping[str, DPBoostPlan] = {
    "paper": PAPER,
    "enhanced": dataclasses.replace(PAPER, initial_score="laplace", candidates="gridless", max_bins=MAX_BINS),
    "para": dataclasses.replace(PAPER, assignment="halving", geometric_clipping=False),
    "seq": dataclasses.replace(PAPER, **_SINGLE),
    # No gradient of labels and scores in [-1, 1] is larger than 2.
    "np": dataclasses.replace(PAPER, **_SINGLE, large_gradients="clip", clip=2.0, max_delta_step=None),
}
"""docs/explanation/dpboost.md#dpboost-presets."""


def preset_plan(preset: Preset, loss: Loss, budget: Budget, *, classes: bool, forests: int = 1) -> DPBoostPlan:
    """A preset's plan, epsilon still to be calibrated; the default has more trees for a larger budget."""
    require_name("preset", preset, get_args(Preset))
    if preset == "default":
        plan = DEFAULT_CLASSES if classes else DEFAULT
        trees = min(max(round(25.0 * math.sqrt(budget.epsilon / forests)), 8), 80)
        # A gradient is in the unit of a label in [-1, 1], or of a class by the logistic loss.
        plan = dataclasses.replace(plan, n_estimators=trees, clip=0.5 if loss == "logistic" else plan.clip)
    else:
        plan = PRESETS[preset]
        # No gradient of the logistic loss is larger than 1.
        plan = dataclasses.replace(plan, clip=1.0) if preset == "np" and loss == "logistic" else plan
    return dataclasses.replace(plan, adjacency=budget.adjacency, loss=loss)
