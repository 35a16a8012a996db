import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood import Adjacency
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


@pytest.mark.slow  # the truth is enumerated
@given(boxes_and_weights())
def test_box_norms_are_the_truth_rounded_up(case):
    boxes, weights = case
    shifts = BoxShifts(boxes=boxes)
    with mpmath.workdps(400):
        ratios = [[mpmath.mpf(b) / w for b, w in zip(box, weights, strict=True)] for box in boxes]
        assert is_least_float_above(shifts.l1(weights), max(sum(row) for row in ratios))
        assert is_least_float_above(shifts.l2(weights), max(mpmath.sqrt(sum(r * r for r in row)) for row in ratios))


@pytest.mark.slow  # whole laws, by enumeration or many draws
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


@pytest.mark.parametrize("histograms", [1, 2, 3])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_counts_of_several_histograms_move_as_far_as_enumeration_finds(histograms, adjacency):
    """All pairs of rows over histograms of three cells; cell 3 is counted nowhere."""
    rows = [tuple(int(row[i] == cell) for i in range(histograms) for cell in range(3)) for row in
            itertools.product(range(4), repeat=histograms)]  # fmt: skip
    nothing = (0,) * (3 * histograms)
    pairs = itertools.product(rows, rows if adjacency is Adjacency.REPLACE_ONE else [nothing])
    shifts = [[a - b for a, b in zip(one, other, strict=True)] for one, other in pairs]
    stated = BoxShifts.of_counts(adjacency, histograms=histograms)
    assert stated.l1((1.0,)) == max(sum(map(abs, shift)) for shift in shifts)
    square = max(sum(d * d for d in shift) for shift in shifts)
    with mpmath.workdps(60):
        assert is_least_float_above(stated.l2((1.0,)), mpmath.sqrt(square))
        assert is_least_float_above(stated.l2((0.5,)), 2 * mpmath.sqrt(square))


@pytest.mark.parametrize("histograms", [0, -1, 1.5, True])
def test_no_histogram_has_no_counts(histograms):
    with pytest.raises(InvalidParameter, match="histograms=.*unit"):
        BoxShifts.of_counts(Adjacency.ADD_REMOVE, histograms=histograms)


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


@pytest.mark.slow  # whole laws, by enumeration or many draws
@given(boxes_and_weights(), st.integers(1, 10**6))
def test_repeated_norms_are_those_of_each_histogram_together(drawn, times):
    boxes, weights = drawn
    moved, once = BoxShifts.moved(boxes=boxes), BoxShifts(boxes=boxes)
    for shifts in (once, moved, BallShifts(radius=boxes[0][0] or 1.0)):
        repeated = shifts.repeated(histograms=times)
        with mpmath.workdps(60):
            # Roundings of boxes, of norms before and of norms after: a few ulps, and never below.
            for found, wanted in (
                (repeated.l2(weights), mpmath.sqrt(times) * mpmath.mpf(shifts.l2(weights))),
                (repeated.l1(weights), times * mpmath.mpf(shifts.l1(weights))),
            ):
                assert wanted * (1 - mpmath.mpf(2) ** -52) <= found <= wanted * (1 + mpmath.mpf(2) ** -50)


@pytest.mark.slow  # whole laws, by enumeration or many draws
@given(boxes_and_weights(), st.integers(1, 50))
def test_repeated_boxes_bound_each_box_in_every_histogram_exactly(drawn, times):
    boxes, weights = drawn
    repeated = BoxShifts(boxes=boxes).repeated(histograms=times)
    for box in boxes:
        ratios = [Fraction(b) / Fraction(w) for b, w in zip(box, weights, strict=True)]
        assert times * sum(r * r for r in ratios) <= Fraction(repeated.l2(weights)) ** 2
        assert times * sum(ratios) <= Fraction(repeated.l1(weights))
    radius = Fraction(max(boxes[0]))
    ball = BallShifts(radius=float(radius)).repeated(histograms=times)
    assert times * (radius / Fraction(min(weights))) ** 2 <= Fraction(ball.l2(weights)) ** 2


def test_repeated_shifts_by_hand():
    assert BoxShifts(boxes=((1.0, 0.0),)).repeated(histograms=4).boxes == ((2.0, 0.0),)
    assert BoxShifts(boxes=((1.0, 0.5),)).repeated(histograms=4).l1((1.0, 1.0)) == 6.0
    ball = BallShifts(radius=3.0).repeated(histograms=4)
    assert (ball.radius, ball.l2((2.0, 3.0)), ball.l1((1.0,) * 4)) == (6.0, 3.0, 24.0)
    assert ball.repeated(histograms=9) == BallShifts(radius=3.0).repeated(histograms=36)
    counts = BoxShifts.of_counts(Adjacency.ADD_REMOVE)
    assert counts.repeated(histograms=7) == BoxShifts.of_counts(Adjacency.ADD_REMOVE, histograms=7)


@pytest.mark.parametrize("times", [0, -1, 1.5, None])
def test_bad_numbers_of_histograms_are_refused(times):
    for shifts in (BoxShifts(boxes=((1.0,),)), BallShifts(radius=1.0)):
        with pytest.raises(InvalidParameter, match="histograms"):
            shifts.repeated(histograms=times)


@pytest.mark.parametrize("l1_radius", [0.5, 0.0, math.nan, math.inf])
def test_an_l1_radius_below_the_radius_is_refused(l1_radius):
    with pytest.raises(InvalidParameter, match="l1_radius"):
        BallShifts(radius=1.0, l1_radius=l1_radius)


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
