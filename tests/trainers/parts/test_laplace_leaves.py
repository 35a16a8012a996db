"""Noise of leaves and counts: by hand from the bounds of docs/explanation/queries.md, never more than was paid for."""

import dataclasses
import math
from fractions import Fraction

import pytest

from ledgerwood import Adjacency, LaplaceEvent
from ledgerwood.curator import CellCounts, LeafCounts
from ledgerwood.ensemble import TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.dpboost.plan import DEFAULT
from ledgerwood.trainers.dpxgboost import plan as dpxgboost
from ledgerwood.trainers.parts.greedy_trees import laplace_noise

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
STEP = Fraction(1, 2**20)


def leaves(**options):
    """A plan of leaves alone, whose whole epsilon is theirs."""
    usual = {
        "leaf_release": "sums", "adjacency": A, "tree_epsilon": 0.3, "loss": "squared", "clip": 0.5,
        "large_gradients": "clip", "reg_lambda": 2.0, "count_share": 0.25, "max_depth": 0,
        "learning_rate": 0.5, "n_estimators": 40, "score_noise": 0.25,
    }  # fmt: skip
    if options.get("leaf_release") == "ratio":
        usual |= {"leaf_regularization": "lambda"}
    return dataclasses.replace(DEFAULT, **(usual | options))


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"leaf_release": "ratio"}, {"leaf_release": "ratio", "geometric_clipping": True}, {"loss": "logistic"}],
)
def test_what_is_drawn_is_what_is_paid_for(adjacency, weighted, options):
    found = leaves(adjacency=adjacency, weighted=weighted, **options)
    for place in (0, 5):  # whose clip is another one where it falls
        drawn = found.leaf_mechanism(place).event(found.leaf(place).sensitivity(adjacency), adjacency)
        assert drawn == found.leaf_event
    assert Fraction(found.leaf_event.noise_multiplier) * Fraction(0.3) >= 1
    assert found.leaf_event.noise_multiplier == pytest.approx(1 / 0.3, rel=1e-15)


def test_a_ratio_has_the_noise_of_the_paper_and_one_step():
    """g* / (1 + lambda), or twice the leaf's clip if that is less; a replaced row moves one leaf by two such steps."""
    one = Fraction(1, 2) / 3 + STEP
    for adjacency, place, bound in (
        (A, None, one),
        (A, 2, one),  # a clip of .125
        (A, 3, Fraction(1, 8)),  # of .0625
        (A, 6, 2 * math.floor(2.0**-7 / STEP) * STEP),
        (R, None, 2 * one),
    ):
        plan = leaves(leaf_release="ratio", adjacency=adjacency, geometric_clipping=place is not None)
        scale = plan.leaf_mechanism(place or 0).scales[0]
        assert float(bound / Fraction(0.3)) <= scale * (1 + 1e-15)
        assert scale == pytest.approx(float(bound / Fraction(0.3)), rel=1e-5)


def test_sums_share_epsilon_between_number_and_sum():
    for adjacency, wide in ((A, 1.0), (R, 2.0)):
        rows, total = leaves(adjacency=adjacency).leaf_mechanism().scales
        assert rows == pytest.approx(wide * 1.0 / (0.25 * 0.3))
        assert total == pytest.approx(wide * 0.5 / (0.75 * 0.3))


def test_damping_keeps_all_trees_noise_at_the_score():
    damping = leaves(leaf_regularization="noise").lambda_by_noise(1.0)
    stddev = math.sqrt(2.0) * 0.5 / (0.75 * 0.3)
    assert math.sqrt(40) * 0.5 * stddev / (damping - 2.0) == pytest.approx(0.25)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(
    ("query", "cells"),
    [(CellCounts(features=tuple(range(7)), cells=16), 7), (LeafCounts().of(TreeStructure.root()), 1)],
)
def test_the_scale_is_the_number_of_cells_that_a_row_moves(adjacency, query, cells):
    """One row is in a cell of every feature, and in one leaf."""
    mechanism = laplace_noise(0.3, query.sensitivity(adjacency))
    moved = cells * (2 if adjacency is R else 1)
    assert mechanism.scales == (pytest.approx(moved / 0.3),)
    drawn = mechanism.event(query.sensitivity(adjacency), adjacency)
    assert isinstance(drawn, LaplaceEvent)
    assert drawn.noise_multiplier == pytest.approx(1 / 0.3, rel=1e-15)


@pytest.mark.parametrize("changes", [{"sketch": "tree"}, {"min_child_weight_by": "levels"}])
def test_noise_that_cannot_be_drawn_is_refused(changes):
    plan = dataclasses.replace(dpxgboost.PAPER, n_numeric=7, **changes)
    plan.require_fit()
    with pytest.raises(InvalidParameter, match="grid steps"):
        dataclasses.replace(plan, tree_epsilon=1e-17, min_child_weight_by="levels").require_fit()
