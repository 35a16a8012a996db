"""Shared by systems whose trees each see a secret sample of the rows: which sampler, its event and its rounds.

docs/explanation/allocation.md#allocation-rounds.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Annotated, Literal, Protocol, final

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import Event, PoissonSampled, RandomAllocation
from ledgerwood.curator import Aggregator, Allocation, Round
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter
from ledgerwood.trainers.base.bounds import Real
from ledgerwood.trainers.base.plan import AbstractBoostedPlan
from ledgerwood.trainers.base.schedule import Stage

Sampling = Literal["poisson", "allocation"]
"""How a row comes into trees: by a coin for each tree; or into a fixed number of the trees, chosen uniformly."""
Subsample = Annotated[float, Real("probability", high=1, holds_high=True)]


class AbstractSampledPlan(AbstractBoostedPlan):
    """What a plan with `subsample` and `sampling` has; to be put before the plan's other bases.

    `subsample` is gamma, the probability with which a row takes part in a tree; 1 is full batch. `sampling` is
    "poisson", a coin for each row and tree; or "allocation" (ours): each row takes part in exactly `trees_of_row` of
    all trees, chosen uniformly.
    """

    __slots__ = ()

    subsample: float
    sampling: Sampling

    @property
    def sampled_trees(self) -> int:
        """The number of trees of all forests, among which a row's are chosen."""
        return self.n_estimators * self.classes

    @property
    def trees_of_row(self) -> int:
        """k, the number of trees that each row takes part in: `subsample` times all trees, to the nearest integer."""
        return round(self.subsample * self.sampled_trees)

    @property
    def share_of_rows(self) -> float:
        """The probability with which a row takes part in one tree."""
        return self.trees_of_row / self.sampled_trees if self.sampling == "allocation" else self.subsample

    @property
    def trees_of_draw(self) -> int:
        """The number of trees of one draw: 1, or all trees where rows are allocated to them."""
        return self.sampled_trees if self.sampling == "allocation" else 1

    @property
    def derived(self) -> dict[str, int]:
        """See `AbstractPlan`; of an allocation how many trees each row is in, which is rounded, and of how many."""
        if self.sampling == "poisson":
            return {}
        return {"trees_of_row": self.trees_of_row, "sampled_trees": self.sampled_trees}

    def require_sampling(self) -> None:
        """Refuse an allocation that is none, or that has no proven cost.

        Raises:
            AdjacencyMismatch: an allocation under replace-one.
            InvalidParameter: an allocation of each row to all trees, or to no tree.
        """
        if self.sampling == "poisson":
            return
        trees = self.sampled_trees
        if self.adjacency is Adjacency.REPLACE_ONE:
            raise AdjacencyMismatch(
                "sampling='allocation' needs adjacency add-remove or zero-out, not replace-one: an allocation of a row "
                "and of the row in its place has no proven bound; set another adjacency, or subsample=1 with "
                "sampling='poisson'"
            )
        if not 1 <= self.trees_of_row < trees:
            raise InvalidParameter(
                f"sampling='allocation' puts each row into subsample * trees = {self.subsample!r} * {trees} trees, "
                f"rounded to {self.trees_of_row}, and must be at least 1 and below {trees}: set subsample between "
                f"{1 / trees:.3g} and {1 - 1 / trees:.3g}, or sampling='poisson' (unit: trees of a row)"
            )

    def tree_stage(self, release: Event, first: int) -> Stage:
        """The draws of all trees, whose steps are the trees' numbers from `first` on.

        Args:
            release: what is released of one tree's rows.
            first: the number of the first tree.
        """
        if self.sampling == "allocation":
            event = RandomAllocation(release, selected=self.trees_of_row, steps=self.sampled_trees)
            return Stage.once(event, first)
        return Stage(event=self.one_tree(release), steps=range(first, first + self.sampled_trees))

    def one_tree(self, release: Event) -> Event:
        """The draw of one tree with Poisson samples; of an allocation, one tree's release from the rows in it."""
        if self.subsample == 1.0 or self.sampling == "allocation":
            return release
        return PoissonSampled(release, sampling_rate=self.subsample)


class TreeRounds(Protocol):
    """The rounds of the trees of one draw."""

    def of_next_tree(self) -> AbstractContextManager[Round]:
        """The round of the next tree, as a context."""


@final
class _OneRound:
    __slots__ = ("_round",)

    def __init__(self, round_: Round) -> None:
        self._round = round_

    def of_next_tree(self) -> AbstractContextManager[Round]:
        return nullcontext(self._round)  # closed with the draw


@final
class _TreesOfAllocation:
    __slots__ = ("_allocation",)

    def __init__(self, allocation: Allocation) -> None:
        self._allocation = allocation

    def of_next_tree(self) -> AbstractContextManager[Round]:
        return self._allocation.step()


@contextmanager
def tree_rounds(aggregator: Aggregator, event: Event, *, purpose: str) -> Iterator[TreeRounds]:
    """Open a draw of trees: an allocation, whose steps are the trees; or one tree's sample, or a filter's rounds."""
    if isinstance(event, RandomAllocation):
        with aggregator.open_allocation(event, purpose=purpose) as allocation:
            yield _TreesOfAllocation(allocation)
        return
    with aggregator.open(event, purpose=purpose) as round_:
        yield _OneRound(round_)
