"""Noise of leaves: by hand from the bounds of docs/explanation/queries.md, and never more than was paid for."""

import math
from fractions import Fraction

import pytest

from ledgerwood import Adjacency
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.parts.laplace_leaves import LaplaceLeaves

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
STEP = Fraction(1, 2**20)


def leaves(**options):
    usual = {
        "release": "sums", "adjacency": A, "epsilon": 0.3, "loss": "squared", "clip": 0.5,
        "large_gradients": "clip", "reg_lambda": 2.0, "count_share": 0.25,
    }  # fmt: skip
    return LaplaceLeaves(**(usual | options))


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"release": "ratio"}, {"release": "ratio", "leaf_clip": 0.01}, {"loss": "logistic"}]
)
def test_what_is_drawn_is_what_is_paid_for(adjacency, weighted, options):
    found = leaves(adjacency=adjacency, weighted=weighted, **options)
    query = found.leaf
    drawn = found.mechanism.event(query.sensitivity(adjacency), adjacency)
    assert drawn.noise_multiplier >= found.event.noise_multiplier * (1 - 1e-12)
    assert drawn == found.event
    assert Fraction(found.event.noise_multiplier) * Fraction(0.3) >= 1
    assert found.event.noise_multiplier == pytest.approx(1 / 0.3, rel=1e-15)


def test_a_ratio_has_the_noise_of_the_paper_and_one_step():
    """g* / (1 + lambda), or twice the leaf's clip if that is less; a replaced row moves one leaf by two such steps."""
    one = Fraction(1, 2) / 3 + STEP
    for adjacency, leaf_clip, bound in (
        (A, None, one),
        (A, 0.125, one),
        (A, 0.0625, Fraction(1, 8)),
        (A, 0.01, 2 * math.floor(0.01 / STEP) * STEP),
        (R, None, 2 * one),
    ):
        scale = leaves(release="ratio", adjacency=adjacency, leaf_clip=leaf_clip).mechanism.scales[0]
        assert float(bound / Fraction(0.3)) <= scale * (1 + 1e-15)
        assert scale == pytest.approx(float(bound / Fraction(0.3)), rel=1e-5)


def test_sums_share_epsilon_between_number_and_sum():
    for adjacency, wide in ((A, 1.0), (R, 2.0)):
        rows, total = leaves(adjacency=adjacency).mechanism.scales
        assert rows == pytest.approx(wide * 1.0 / (0.25 * 0.3))
        assert total == pytest.approx(wide * 0.5 / (0.75 * 0.3))


def test_damping_keeps_all_trees_noise_at_the_score():
    found = leaves()
    damping = found.lambda_by_noise(trees=40, learning_rate=0.5, score_noise=0.25)
    stddev = math.sqrt(2.0) * 0.5 / (0.75 * 0.3)
    assert math.sqrt(40) * 0.5 * stddev / (damping - 2.0) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0.0}, "leaf epsilon=0"),
        ({"epsilon": math.nan}, "leaf epsilon=nan"),
        ({"count_share": 1.0}, r"count_share=1\.0 must be in \(0, 1\)"),
    ],
)
def test_bad_values_are_named(options, words):
    with pytest.raises(InvalidParameter, match=words):
        leaves(**options)
