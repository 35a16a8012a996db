"""Blocks of columns, each with a bound on its Euclidean norm: norms against their definition, and events."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood import Adjacency, EllipticalGaussianEvent, GaussianEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import (
    BallShifts,
    BlockShifts,
    BoxShifts,
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    SkellamMechanism,
)

A = Adjacency.ADD_REMOVE
sizes = st.floats(min_value=1e-6, max_value=1e6)


@st.composite
def cases(draw):
    """Sizes of blocks, a box of their norms, and a number for each column."""
    blocks = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    box = draw(st.tuples(*[st.just(0.0) | sizes] * len(blocks)).filter(any))
    return tuple(blocks), box, draw(st.tuples(*[sizes] * sum(blocks)))


def parted(numbers, blocks):
    ends = np.cumsum([0, *blocks])
    return [numbers[a:b] for a, b in itertools.pairwise(ends)]


@given(cases())
def test_norms_are_the_truth_rounded_up(case):
    blocks, box, weights = case
    shifts = BlockShifts(norms=BoxShifts(boxes=(box,)), sizes=blocks)
    with mpmath.workdps(100):
        l2 = mpmath.sqrt(
            sum((mpmath.mpf(b) / min(own)) ** 2 for b, own in zip(box, parted(weights, blocks), strict=True))
        )
        l1 = sum(
            mpmath.mpf(b) * mpmath.sqrt(sum(1 / mpmath.mpf(w) ** 2 for w in own))
            for b, own in zip(box, parted(weights, blocks), strict=True)
        )
        assert l2 <= shifts.l2(weights) <= l2 * (1 + mpmath.mpf(2) ** -51)
        assert l1 <= shifts.l1(weights) <= l1 * (1 + mpmath.mpf(2) ** -50)


@given(cases(), st.integers(0, 2**32 - 1))
def test_no_shift_of_the_set_is_longer_and_some_are_as_long(case, seed):
    blocks, box, weights = case
    shifts, generator = BlockShifts(norms=BoxShifts(boxes=(box,)), sizes=blocks), np.random.default_rng(seed)
    for _ in range(20):
        shift = []
        for bound, size in zip(box, blocks, strict=True):
            direction = generator.normal(size=size)
            shift += (bound * direction / np.linalg.norm(direction)).tolist()
        scaled = [abs(d) / w for d, w in zip(shift, weights, strict=True)]
        assert math.sqrt(sum(d * d for d in scaled)) <= shifts.l2(weights) * (1 + 1e-12)
        assert sum(scaled) <= shifts.l1(weights) * (1 + 1e-12)
    longest = [b / min(own) for b, own in zip(box, parted(weights, blocks), strict=True)]
    assert math.sqrt(sum(d * d for d in longest)) == pytest.approx(shifts.l2(weights), rel=1e-12)


def test_blocks_of_one_column_are_a_box_and_one_block_is_a_ball():
    box, weights = BoxShifts.moved(boxes=((1.0, 0.3, 2.0),)), (0.5, 3.0, 1.7)
    single = BlockShifts(norms=box, sizes=(1, 1, 1))
    assert (single.l1(weights), single.l2(weights)) == (box.l1(weights), box.l2(weights))
    ball, block = BallShifts(radius=1.5), BlockShifts(norms=BoxShifts(boxes=((1.5,),)), sizes=(3,))
    assert block.l2(weights) == ball.l2(weights)
    assert block.l1(weights) == pytest.approx(ball.l1(weights), rel=1e-15)
    assert block.l1(weights) >= ball.l1(weights) * (1 - 1e-16)
    assert block.columns == 3


def test_the_event_of_one_box_of_blocks_is_elliptical_and_the_same_for_any_number_of_columns():
    mechanism = {k: EllipticalGaussianMechanism(stddevs=(3.0, *[5.0] * k)) for k in (1, 2, 30)}
    events = {
        each.event(BlockShifts(norms=BoxShifts(boxes=((1.0, 0.75),)), sizes=(1, k)), A) for k, each in mechanism.items()
    }
    (event,) = events
    assert event == EllipticalGaussianEvent(sensitivities=(1.0, 0.75), stddevs=(3.0, 5.0), adjacency=A)
    assert event == mechanism[1].event(BoxShifts(boxes=((1.0, 0.75),)), A)
    exact = Fraction(1, 9) + Fraction(9, 16) / 25
    assert exact <= Fraction(event.mu()) ** 2 <= exact * (1 + Fraction(1, 2**40))


def test_a_block_counts_at_its_column_of_least_noise():
    shifts = BlockShifts(norms=BoxShifts(boxes=((1.0, 0.75),)), sizes=(1, 2))
    event = EllipticalGaussianMechanism(stddevs=(3.0, 7.0, 5.0)).event(shifts, A)
    assert event.stddevs == (3.0, 5.0)


def test_other_noise_reads_the_norms():
    moved = BlockShifts(norms=BoxShifts(boxes=((0.0, 2.0), (math.sqrt(2), math.sqrt(2)))), sizes=(1, 4))
    stddevs = (3.0, *[5.0] * 4)
    event = EllipticalGaussianMechanism(stddevs=stddevs).event(moved, Adjacency.REPLACE_ONE)
    assert isinstance(event, GaussianEvent)
    assert event.noise_multiplier == pytest.approx(1 / moved.l2(stddevs), rel=1e-15)
    assert GaussianMechanism(stddev=4.0).event(moved, A).noise_multiplier == pytest.approx(2.0)
    assert SkellamMechanism(variance=9.0).event(moved, A).l2_sensitivity == moved.l2((1.0,) * 5)
    laplace = LaplaceMechanism(scales=(2.0,) * 5).event(
        BlockShifts(norms=BoxShifts(boxes=((1.0, 1.0),)), sizes=(1, 4)), A
    )
    assert laplace.noise_multiplier == pytest.approx(2.0 / 3.0)  # 1, and 1 over four columns: 2
    pure = DiscreteLaplaceMechanism(scale=2.0).event(BlockShifts(norms=BoxShifts(boxes=((1.0, 1.0),)), sizes=(1, 4)), A)
    assert pure.epsilon == pytest.approx(1.5)


def test_repeating_repeats_the_norms():
    shifts = BlockShifts(norms=BoxShifts(boxes=((1.0, 2.0),)), sizes=(1, 2))
    weights = (1.0, 3.0, 3.0)
    assert shifts.repeated(histograms=4).l2(weights) == pytest.approx(2 * shifts.l2(weights))
    assert shifts.repeated(histograms=4).l1(weights) == pytest.approx(4 * shifts.l1(weights))


class Smaller(BoxShifts):  # type: ignore[misc]
    def l2(self, stddevs):
        return 0.0


@pytest.mark.parametrize(
    "wrong",
    [
        {"norms": BallShifts(radius=1.0), "sizes": (1,)},
        {"norms": Smaller(boxes=((1.0,),)), "sizes": (1,)},
        {"norms": BoxShifts(boxes=((1.0, 1.0),)), "sizes": (1,)},
        {"norms": BoxShifts(boxes=((1.0,),)), "sizes": (0,)},
        {"norms": BoxShifts(boxes=((1.0,),)), "sizes": (1.5,)},
        {"norms": BoxShifts(boxes=((1.0,),)), "sizes": ()},
    ],
)
def test_what_is_no_set_of_blocks_is_refused(wrong):
    with pytest.raises(InvalidParameter, match="norms|sizes"):
        BlockShifts(**wrong)


def test_another_number_of_columns_is_refused():
    shifts = BlockShifts(norms=BoxShifts(boxes=((1.0, 2.0),)), sizes=(1, 2))
    for wrong in ((), (1.0, 1.0), (1.0,) * 4, (1.0, 0.0, 1.0), (1.0, math.nan, 1.0)):
        for norm in (shifts.l1, shifts.l2):
            with pytest.raises(InvalidParameter, match="scales|stddevs"):
                norm(wrong)
