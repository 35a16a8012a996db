"""Trees that are grown level by level, each node's test chosen privately by its gain."""

from dataclasses import dataclass
from typing import final

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.curator import GridlessGains, LargeGradients, Loss, Round, Schema, SplitGains, TypedColumns, gain_range
from ledgerwood.curator.queries.splits.tests import MAX_CELLS, CandidateParts, TestedCells
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, TreeStructure
from ledgerwood.mechanisms import ExponentialMechanism, GridlessMechanism
from ledgerwood.mechanisms.sensitivity import quotient_down

Candidates = SplitTests | tuple[FeatureCells, ...]
"""Tests, each with a weight of 1; or the cells of all features, all of whose tests are candidates, weighed so that the
features are alike, and chosen among at a cost per row and not per test (`GridlessGains`)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GainSplits:
    """How one level of a tree is chosen: the exponential mechanism on the gain, for all nodes at once.

    What a level costs, and why its nodes cost no more than one: docs/explanation/gains.md#gain-levels.

    Args:
        adjacency: the relation of neighbouring data sets.
        epsilon: of one level, in nats.
        loss: see `SplitGains`.
        clip: g*, largest absolute gradient that counts.
        reg_lambda: lambda of the gain's denominators, >= 0, in rows.
        large_gradients: what becomes of a row beyond the clip.
    """

    adjacency: Adjacency
    epsilon: float
    loss: Loss
    clip: float
    reg_lambda: float
    large_gradients: LargeGradients

    def __post_init__(self) -> None:
        _validate.positive("level epsilon", self.epsilon, "nats")

    @property
    def mechanism(self) -> ExponentialMechanism:
        """Its rate is epsilon over the gain's range, rounded down."""
        return ExponentialMechanism(rate=quotient_down(self.epsilon, gain_range(self.clip, self.adjacency).range))

    @property
    def event(self) -> BoundedRangeEvent:
        """One level."""
        return self.mechanism.event(gain_range(self.clip, self.adjacency), self.adjacency)

    def deeper(
        self,
        structure: TreeStructure,
        candidates: Candidates,
        ensemble: Ensemble,
        round_: Round,
        *,
        purpose: str,
        positive: int | None = None,
    ) -> TreeStructure:
        """The tree with one level more.

        Args:
            structure: the tree so far; its leaves are the nodes to be split.
            candidates: the tests that a node may make; public.
            ensemble: the released ensemble whose scores give the gradients.
            round_: holds one `event` for it.
            purpose: printable text of one line.
            positive: the class that is told from all others, of several.
        """
        if isinstance(candidates, SplitTests):
            tests = SplitGains(
                structure=structure, tests=candidates, ensemble=ensemble, loss=self.loss, clip=self.clip,
                damping=self.reg_lambda, large_gradients=self.large_gradients, positive=positive,
            )  # fmt: skip
            return structure.deeper(round_.select(tests, self.mechanism, purpose=purpose).value)
        query = GridlessGains(
            structure=structure, cells=candidates, ensemble=ensemble, loss=self.loss, clip=self.clip,
            damping=self.reg_lambda, large_gradients=self.large_gradients, positive=positive,
        )  # fmt: skip
        # One rate, one range, one event: only the way to draw is another.
        mechanism = GridlessMechanism(rate=self.mechanism.rate)
        return structure.deeper(round_.select(query, mechanism, purpose=purpose).value)


def least_cells(schema: Schema | TypedColumns, bins: int) -> tuple[FeatureCells, ...]:
    """The cells of each feature; of columns that are bought, what their types say: more categories may be found."""
    if isinstance(schema, Schema):
        return tuple(schema.cells(bins))
    numeric, two = FeatureCells(ordered=bins, equality=(bins,)), FeatureCells(ordered=0, equality=(0, 1))
    return tuple(numeric if column.kind == "numeric" else two for column in schema.features)


def require_levels(candidates: Candidates, *, depth: int) -> None:
    """Refuse a depth whose last level has more nodes times cells, or tests, than a choice may have.

    Raises:
        InvalidParameter: it is too deep, and the message says what is not; or there is no candidate at all.
    """
    if isinstance(candidates, SplitTests):
        width = max(TestedCells.of(candidates).total, len(candidates))
    else:
        parts = CandidateParts.of(candidates)
        if not len(parts):
            raise _validate.fail("tests", 0, ">= 1: no feature of this schema can be split", "tests")
        width = len(parts) + len(parts.equal)
    require_nodes(depth, width, f"the {width} cells or tests of this schema")


def require_nodes(depth: int, width: int, of: str) -> None:
    """Refuse a depth whose last level has more nodes times `width`, the cells or candidates of each, than a choice has.

    Raises:
        InvalidParameter: it is too deep; the message says what is not, and for what (`of`).
    """
    most = (MAX_CELLS // width).bit_length()
    if depth > most:
        raise _validate.fail("max_depth", depth, f"at most {most} for {of}", "levels")
