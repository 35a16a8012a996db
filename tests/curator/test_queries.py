"""The stated sensitivities against suprema found another way: mpmath, and enumeration in fractions."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency
from ledgerwood.curator.queries import (
    MAX_CLIP,
    MAX_CURVATURE_SCALE,
    MAX_DAMPING,
    STEP,
    LabelMoments,
    LeafCurvatures,
    LeafMoments,
    LeafRatios,
    known_query,
)
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation

ONE_LEAF = TreeStructure(feature=np.zeros(0, np.int32), split=np.zeros(0, np.uint16), equals=np.zeros(0, np.bool_))
PLACE = {"structure": ONE_LEAF, "ensemble": Ensemble(initial_score=0.0)}


def curvatures(c, clip):
    return LeafCurvatures(curvature_scale=c, clip=clip, **PLACE)


def supremum(c, clip):
    """sup over u in [0, 1] of |(min(u, clip), c u (1 - u))| to 50 digits: a grid, then golden section."""
    with mpmath.workdps(50):
        c, clip = mpmath.mpf(c), min(mpmath.mpf(clip), mpmath.mpf(1))

        def square(u):
            return min(u, clip) ** 2 + (c * u * (1 - u)) ** 2

        # min() has one kink, at the clip; on either side the function is a quartic with few turning points.
        best = max(square(clip), square(mpmath.mpf(1)))
        for low, high in ((mpmath.mpf(0), clip), (clip, mpmath.mpf(1))):
            grid = [low + (high - low) * i / 64 for i in range(65)]
            top = max(range(65), key=lambda i: square(grid[i]))
            a, b = grid[max(top - 1, 0)], grid[min(top + 1, 64)]
            for _ in range(130):
                left, right = b - (b - a) * mpmath.phi**-1, a + (b - a) * mpmath.phi**-1
                a, b = (a, right) if square(left) > square(right) else (left, b)
            best = max(best, square((a + b) / 2), square(grid[top]))
        return mpmath.sqrt(best)


@settings(max_examples=60)
@given(c=st.floats(1e-3, MAX_CURVATURE_SCALE) | st.floats(2.8, MAX_CURVATURE_SCALE), clip=st.floats(STEP, 1.5))
@example(c=3.33, clip=0.8)  # above sqrt(8) the largest norm can be inside, at u = 0.618
@example(c=3.1, clip=0.7)
@example(c=3.33, clip=1.0)
@example(c=3.33, clip=0.618)
@example(c=3.33, clip=0.05)
@example(c=2.8284271247461903, clip=0.75)
@example(c=3.0, clip=256.0)
@example(c=1e-3, clip=0.5)
def test_the_radius_of_a_curvature_is_the_supremum_rounded_up(c, clip):
    truth = supremum(c, clip)
    radius = mpmath.mpf(curvatures(c, clip).radius)
    assert truth <= radius <= truth * (1 + mpmath.mpf("1e-12"))


def test_the_hessian_is_free_up_to_the_golden_ratio_to_the_five_halves():
    assert curvatures(3.33, 1.0).radius == pytest.approx(1.0, rel=1e-12)
    with mpmath.workdps(50):
        exact = mpmath.phi ** mpmath.mpf("2.5")
        assert mpmath.mpf(3.33) < exact < mpmath.mpf("3.3302")
        # At that c the curve touches the circle once more, at u = 1 / phi; a little above, it leaves it.
        assert abs(supremum(exact, 1) - 1) < mpmath.mpf("1e-40")
        assert supremum(exact * mpmath.mpf("1.001"), 1) > 1
        touch = 1 / mpmath.phi
        assert abs(mpmath.sqrt(touch**2 + (exact * touch * (1 - touch)) ** 2) - 1) < mpmath.mpf("1e-40")


def test_a_clipped_pair_does_not_scale_with_the_clip():
    # Clipping g to 0.1 leaves the hessian of u = 1/2: the norm is 0.838, and not 0.1.
    assert curvatures(3.33, 0.1).radius == pytest.approx(math.hypot(0.1, 3.33 / 4), rel=1e-12)


@given(c=st.floats(1e-3, MAX_CURVATURE_SCALE), clip=st.floats(STEP, 1.5))
def test_the_squared_radius_in_steps_is_floored_exactly(c, clip):
    query = curvatures(c, clip)
    square = Fraction(query.radius) ** 2 * 2**40
    assert query.squared_radius_steps <= square < query.squared_radius_steps + 1


@settings(max_examples=25)
@given(clip=st.integers(1, 40), damping=st.integers(1, 200) | st.sampled_from((2**20, 15 * 2**20)))
@example(clip=1, damping=1)
def test_the_bound_of_a_ratio_covers_every_count_and_sum(clip, damping):
    """Enumerates n, the sum S and the row's gradient, in whole steps: |S'/(n + 1 + l) - S/(n + l)|, truncated."""
    query = LeafRatios(loss="squared", clip=clip * STEP, damping=damping * STEP, **PLACE)
    (bound,) = query.sensitivity(Adjacency.ADD_REMOVE).boxes[0]
    unit = 2**20

    def ratio(total, n):
        size = abs(total) * unit // (n * unit + damping)
        return size if total >= 0 else -size

    largest = 0
    for n, share, gradient in itertools.product(range(6), range(-8, 9), (-clip, -1, 0, 1, clip)):
        total = n * clip * share // 8
        largest = max(largest, abs(ratio(total + gradient, n + 1) - ratio(total, n)))
    assert Fraction(largest, unit) <= Fraction(bound)


@settings(max_examples=50)
@given(lam=st.fractions(min_value=Fraction(1, 1000), max_value=50), n=st.integers(0, 50), share=st.fractions(-1, 1))
def test_the_ratio_moves_most_in_an_empty_leaf(lam, n, share):
    """The inequality of docs/explanation/queries.md#leaf-ratios, in fractions, for g* = 1."""
    total = n * share
    for gradient in (Fraction(-1), Fraction(1)):
        assert abs((total + gradient) / (n + 1 + lam) - total / (n + lam)) <= 1 / (1 + lam)
        assert abs(gradient - -gradient) / (n + 1 + lam) <= 2 / (1 + lam)


def test_the_bound_of_a_ratio_is_the_clip_over_one_plus_damping():
    query = LeafRatios(loss="squared", clip=0.5, damping=4.0, **PLACE)
    assert query.sensitivity(Adjacency.ADD_REMOVE).l2((1.0,)) == pytest.approx(0.1 + STEP, rel=1e-12)
    assert query.sensitivity(Adjacency.REPLACE_ONE).l2((1.0,)) == pytest.approx(0.2 + STEP, rel=1e-12)


def test_the_norms_under_each_adjacency():
    moments = LeafMoments(loss="squared", clip=0.5, **PLACE)
    stddevs = (2.0, 3.0)
    one = math.hypot(1 / 2, 0.5 / 3)
    for adjacency in (Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT):
        assert moments.sensitivity(adjacency).l2(stddevs) == pytest.approx(one, rel=1e-12)
        assert LabelMoments().sensitivity(adjacency).l2(stddevs) == pytest.approx(math.hypot(1 / 2, 1 / 3), rel=1e-12)
        assert curvatures(3.33, 1.0).sensitivity(adjacency).l2((1.0, 1.0)) == pytest.approx(1.0, rel=1e-12)
    replaced = moments.sensitivity(Adjacency.REPLACE_ONE)
    assert replaced.l2(stddevs) == pytest.approx(math.sqrt(2) * one, rel=1e-12)
    assert replaced.l1(stddevs) == pytest.approx(2 * (1 / 2 + 0.5 / 3), rel=1e-12)
    assert LabelMoments().sensitivity(Adjacency.REPLACE_ONE).l2(stddevs) == pytest.approx(2 / 3, rel=1e-12)
    assert curvatures(3.33, 1.0).sensitivity(Adjacency.REPLACE_ONE).l2((1.0, 1.0)) == pytest.approx(2.0, rel=1e-12)


def test_public_parameters_outside_their_bounds_are_refused():
    for clip in (0.0, -1.0, math.nan, math.inf, STEP / 2, MAX_CLIP * 2):
        with pytest.raises(InvalidParameter, match=r"clip="):
            LeafMoments(loss="squared", clip=clip, **PLACE)
    for scale in (0.0, 3.34, math.nan):
        with pytest.raises(InvalidParameter, match=r"curvature_scale="):
            curvatures(scale, 1.0)
    for damping in (0.0, STEP / 2, MAX_DAMPING * 2, math.inf):
        with pytest.raises(InvalidParameter, match=r"damping="):
            LeafRatios(loss="squared", clip=1.0, damping=damping, **PLACE)


def test_only_this_modules_own_queries_are_carried_out():
    class Cheaper(LabelMoments):
        def sensitivity(self, adjacency):
            raise AssertionError("never asked")

    query = LabelMoments()
    assert known_query(query) is query
    for foreign in (Cheaper(), object(), None):
        with pytest.raises(RoundViolation, match="not a query that this curator carries out"):
            known_query(foreign)


def test_a_number_of_any_type_is_kept_as_a_float():
    # The loops over rows are compiled for floats, and are reached only after the budget has moved.
    third = Fraction(1, 3)
    moments = LeafMoments(loss="squared", clip=third, **PLACE)
    curvature = LeafCurvatures(clip=np.float32(0.5), curvature_scale=1, **PLACE)
    ratios = LeafRatios(loss="squared", clip=1, damping=third, **PLACE)
    kept = (moments.clip, curvature.clip, curvature.curvature_scale, ratios.clip, ratios.damping)
    assert kept == (1 / 3, 0.5, 1.0, 1.0, 1 / 3)
    assert all(type(number) is float for number in kept)
