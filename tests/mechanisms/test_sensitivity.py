import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BallShifts, BoxShifts
from ledgerwood.mechanisms.sensitivity import quotient_down

sizes = st.floats(min_value=1e-100, max_value=1e100)


@st.composite
def boxes_and_weights(draw):
    k = draw(st.integers(1, 4))
    box = st.tuples(*[st.one_of(st.just(0.0), sizes)] * k).filter(any)
    return tuple(draw(st.lists(box, min_size=1, max_size=3))), draw(st.tuples(*[sizes] * k))


def is_least_float_above(number, truth):
    """Never below the truth, and above it by no more than two units in the last place."""
    return number >= truth and math.nextafter(math.nextafter(number, 0), 0) < truth


@given(boxes_and_weights())
def test_box_norms_are_the_truth_rounded_up(case):
    boxes, weights = case
    shifts = BoxShifts(boxes=boxes)
    with mpmath.workdps(400):
        ratios = [[mpmath.mpf(b) / w for b, w in zip(box, weights, strict=True)] for box in boxes]
        assert is_least_float_above(shifts.l1(weights), max(sum(row) for row in ratios))
        assert is_least_float_above(shifts.l2(weights), max(mpmath.sqrt(sum(r * r for r in row)) for row in ratios))


@given(boxes_and_weights())
def test_a_box_is_as_long_as_its_corners(case):
    boxes, weights = case
    corners = [itertools.product(*[(-Fraction(b), Fraction(b)) for b in box]) for box in boxes]
    longest = max(
        sum((d / Fraction(w)) ** 2 for d, w in zip(corner, weights, strict=True))
        for corner in itertools.chain(*corners)
    )
    assert Fraction(BoxShifts(boxes=boxes).l2(weights)) ** 2 >= longest


@given(sizes, st.lists(sizes, min_size=1, max_size=5))
def test_ball_norms_are_the_truth_rounded_up(radius, weights):
    ball = BallShifts(radius=radius)
    with mpmath.workdps(400):
        assert is_least_float_above(ball.l2(weights), mpmath.mpf(radius) / min(weights))
        l1 = mpmath.mpf(radius) * mpmath.sqrt(sum(1 / mpmath.mpf(w) ** 2 for w in weights))
        assert is_least_float_above(ball.l1(weights), l1)


@given(sizes, st.lists(sizes, min_size=1, max_size=4), st.lists(st.floats(-1, 1), min_size=4, max_size=4))
def test_no_shift_of_a_ball_is_longer_than_its_norms(radius, weights, direction):
    direction = direction[: len(weights)]
    with mpmath.workdps(60):
        length = mpmath.sqrt(sum(mpmath.mpf(d) ** 2 for d in direction))
        if length == 0:
            direction, length = [1.0] + [0.0] * (len(weights) - 1), mpmath.mpf(1)
        ratios = [mpmath.mpf(d) * radius / length / w for d, w in zip(direction, weights, strict=True)]
        ball, guard = BallShifts(radius=radius), 1 - mpmath.mpf(10) ** -50
        assert sum(abs(r) for r in ratios) * guard <= ball.l1(weights)
        assert mpmath.sqrt(sum(r * r for r in ratios)) * guard <= ball.l2(weights)


def test_norms_that_are_floats_are_exact():
    assert BoxShifts(boxes=((3.0, 4.0),)).l2((1.0, 1.0)) == 5.0
    assert BoxShifts(boxes=((3.0, 4.0),)).l1((1.0, 1.0)) == 7.0
    assert BoxShifts(boxes=((0.3,),)).l2((0.3,)) == 1.0
    assert BallShifts(radius=6.0).l2((3.0, 4.0)) == 2.0
    assert BallShifts(radius=1.0).l1((1.0,) * 4) == 2.0
    assert quotient_down(6.0, 3.0) == 2.0


def test_a_union_takes_the_longest_box_for_each_norm():
    shifts = BoxShifts(boxes=((1.0, 1.0), (0.0, 1.5)))
    assert shifts.l1((1.0, 1.0)) == 2.0
    assert shifts.l2((1.0, 1.0)) == 1.5
    assert shifts.l2_boxes == shifts.l1_boxes == shifts.boxes
    assert shifts.columns == 2


def test_a_moved_row_shifts_two_rows():
    shifts = BoxShifts.moved(boxes=((3.0, 4.0),))
    two_rows = (3.0, 4.0, 3.0, 4.0)
    assert shifts.l1((1.0, 1.0)) == sum(two_rows)
    assert Fraction(shifts.l2((1.0, 1.0))) ** 2 >= sum(Fraction(d) ** 2 for d in two_rows)
    assert shifts.l2((1.0, 1.0)) == pytest.approx(math.sqrt(50), rel=1e-15)
    alternative = BoxShifts(boxes=((3.0, 4.0), *shifts.boxes), l1_boxes=shifts.l1_boxes)
    assert alternative.l1((1.0, 1.0)) == 14.0


@given(sizes, sizes)
def test_a_quotient_is_rounded_down(numerator, denominator):
    ratio = Fraction(numerator) / Fraction(denominator)
    number = quotient_down(numerator, denominator)
    assert Fraction(number) <= ratio < Fraction(math.nextafter(number, math.inf))


@pytest.mark.parametrize(
    "boxes",
    [
        (),
        ((),),
        ((1.0, 2.0), (1.0,)),
        ((0.0, 0.0),),
        ((-1.0,),),
        ((math.nan,),),
        ((math.inf,),),
        ((True,),),
        (1.0,),
        [(1.0,)],
    ],
)
def test_bad_boxes_are_refused(boxes):
    with pytest.raises(InvalidParameter, match="boxes=.*unit"):
        BoxShifts(boxes=boxes)
    if boxes != ():
        with pytest.raises(InvalidParameter, match="l1_boxes=.*unit"):
            BoxShifts(boxes=((1.0,),), l1_boxes=boxes)


def test_l1_boxes_have_the_columns_of_the_others():
    with pytest.raises(InvalidParameter, match="l1_boxes="):
        BoxShifts(boxes=((1.0,),), l1_boxes=((1.0, 1.0),))


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf, None])
def test_bad_radii_are_refused(radius):
    with pytest.raises(InvalidParameter, match="radius=.*unit"):
        BallShifts(radius=radius)


@pytest.mark.parametrize("weights", [(), (1.0,), (1.0, 1.0, 1.0), (1.0, 0.0), (1.0, math.nan)])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_weights_must_fit_the_columns(weights, norm):
    with pytest.raises(InvalidParameter, match="columns|> 0|finite"):
        getattr(BoxShifts(boxes=((1.0, 1.0),)), norm)(weights)


def test_norms_beyond_float64_are_refused():
    with pytest.raises(InvalidParameter, match="float64"):
        BoxShifts(boxes=((1e300,),)).l2((1e-300,))
    with pytest.raises(InvalidParameter, match="float64"):
        quotient_down(1e-300, 1e300)
