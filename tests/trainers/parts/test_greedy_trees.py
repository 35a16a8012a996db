"""What a level costs, and how many nodes it may have. That trees are greedy is in each system's own tests."""

import dataclasses
import math
from fractions import Fraction

import pytest

from ledgerwood import Adjacency, BoundedRangeEvent
from ledgerwood.curator.queries.splits.tests import MAX_CELLS
from ledgerwood.ensemble import FeatureCells, SplitTests
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.dpboost.plan import DEFAULT
from ledgerwood.trainers.parts.greedy_trees import require_levels, require_nodes


@pytest.mark.parametrize("clip", [1.0, 0.3, 2.0])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_rate_is_epsilon_over_the_range(clip, adjacency):
    plan = dataclasses.replace(DEFAULT, adjacency=adjacency, clip=clip, tree_epsilon=2.8, leaf_share=0.25, max_depth=3)
    assert plan.split_epsilon == pytest.approx(0.7, rel=1e-12)
    held = Fraction(math.floor(clip * 2**20), 2**20)  # the clip in whole steps
    width = (8 if adjacency is Adjacency.REPLACE_ONE else 4) * held**2
    assert Fraction(plan.split_mechanism.rate) * width <= Fraction(plan.split_epsilon)
    # Gains in whole steps cost at most that share: docs/explanation/gains.md#gain-integers.
    assert plan.split_mechanism.rate >= plan.split_epsilon / float(width) * (1 - 2**-28)
    assert isinstance(plan.split_event, BoundedRangeEvent)
    assert plan.split_event.epsilon == pytest.approx(0.7, rel=1e-12)
    assert plan.split_event.epsilon <= plan.split_epsilon


@pytest.mark.parametrize("width", [1, 2, 3, 1000, 2**20])
def test_the_deepest_level_that_is_allowed_has_room(width):
    most = max(depth for depth in range(1, 40) if 2 ** (depth - 1) * width <= MAX_CELLS)
    require_nodes(most, width, "these cells")
    with pytest.raises(InvalidParameter, match=f"max_depth={most + 1} must be at most {most} for these cells"):
        require_nodes(most + 1, width, "these cells")


def test_a_schema_without_a_test_cannot_be_split():
    nothing = (FeatureCells(ordered=1, equality=()),)
    with pytest.raises(InvalidParameter, match="no feature of this schema can be split"):
        require_levels(nothing, depth=1)
    require_levels(SplitTests.every((FeatureCells(ordered=2, equality=()),)), depth=5)
