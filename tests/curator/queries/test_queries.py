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
from ledgerwood.curator import (
    MAX_CURVATURE_SCALE,
    MAX_DAMPING,
    STEP,
    LabelMoments,
    LeafCurvatures,
    LeafMoments,
    LeafRatios,
)
from ledgerwood.curator.queries.leaf_statistics import MAX_CLIP
from ledgerwood.curator.queries.leaf_sums import ratios
from ledgerwood.curator.queries.registry import TREES
from ledgerwood.ensemble import TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
ONE_LEAF = TreeStructure(feature=np.zeros(0, np.int32), split=np.zeros(0, np.uint16), equals=np.zeros(0, np.bool_))


def curvatures(c, clip):
    return LeafCurvatures(curvature_scale=c, clip=clip)


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


@pytest.mark.slow  # many tables and their neighbours in exact integers
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
    query = LeafRatios(loss="squared", clip=clip * STEP, damping=damping * STEP)
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
    query = LeafRatios(loss="squared", clip=0.5, damping=4.0)
    assert query.sensitivity(Adjacency.ADD_REMOVE).l2((1.0,)) == pytest.approx(0.1 + STEP, rel=1e-12)
    assert query.sensitivity(Adjacency.REPLACE_ONE).l2((1.0,)) == pytest.approx(0.2 + STEP, rel=1e-12)


def released_ratio(total, n, query):
    """What the table releases of a leaf of n rows, in whole steps."""
    return int(ratios(np.array([[n * 2**20, total]]), query)[0, 0])


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    clip=st.integers(1, 6) | st.sampled_from((2**10 + 1, 2**20, 2**28)),
    damping=st.integers(1, 40) | st.sampled_from((2**18, 2**20, 15 * 2**20)),
    share=st.sampled_from((Fraction(0), Fraction(1, 7), Fraction(1, 4), Fraction(1, 3), Fraction(1, 2), Fraction(1))),
)
@example(clip=2**20, damping=1, share=Fraction(1, 4))
@example(clip=2**20, damping=1, share=Fraction(1, 3))
@example(clip=1, damping=1, share=Fraction(0))
def test_a_clipped_ratio_moves_by_no_more_than_is_stated(clip, damping, share):
    """Every leaf of few rows: all sums of a small clip, the ends and the edges of clipping of a large one."""
    held = max(1, int(clip * share))
    query = LeafRatios(loss="squared", clip=clip * STEP, damping=damping * STEP, leaf_clip=held * STEP)
    add, replace = query.sensitivity(A), query.sensitivity(R)
    gradients = range(-clip, clip + 1) if clip <= 6 else (-clip, -clip + 1, -held, -1, 0, 1, held, clip - 1, clip)
    largest, largest_within = 0, 0
    for n in range(5):
        edge = held * (n * 2**20 + damping) // 2**20
        sums = {-n * clip, 1 - n * clip, -edge - 1, -edge, -1, 0, 1, edge, edge + 1, n * clip - 1, n * clip}
        sums = range(-n * clip, n * clip + 1) if clip <= 6 else {x for x in sums if abs(x) <= n * clip}
        before = {total: released_ratio(total, n, query) for total in sums}
        for total, gradient in itertools.product(sums, gradients):
            after = released_ratio(total + gradient, n + 1, query)
            largest = max(largest, abs(after - before[total]))
            # The row that came could have come with any other gradient.
            for other in (-clip, 0, clip):
                largest_within = max(largest_within, abs(after - released_ratio(total + other, n + 1, query)))
    assert Fraction(largest) * Fraction(STEP) <= Fraction(add.boxes[0][0])
    assert add.boxes == add.l1_boxes
    one_leaf, two_leaves = replace.boxes
    assert Fraction(largest_within) * Fraction(STEP) <= Fraction(one_leaf[0])
    assert 2 * (Fraction(largest) * Fraction(STEP)) ** 2 <= Fraction(two_leaves[0]) ** 2
    assert 2 * Fraction(largest) * Fraction(STEP) <= Fraction(replace.l1_boxes[1][0])


@pytest.mark.parametrize("damping", [STEP, 0.1, 1.0, 15.0])
def test_a_small_leaf_clip_is_attained_and_a_large_one_changes_nothing(damping):
    small = LeafRatios(loss="squared", clip=1.0, damping=damping, leaf_clip=0.99 / (3 + 2 * damping))
    held = small.leaf_clip_steps
    for adjacency in (A, Adjacency.ZERO_OUT):
        assert small.sensitivity(adjacency).l1((1.0,)) == 2 * held * STEP
    # One row whose ratio is just the clip, and one that pulls the other way.
    total = -(-held * (2**20 + small.damping_steps) // 2**20)
    assert released_ratio(total, 1, small) == held
    assert released_ratio(total - 2**20, 2, small) == -held
    assert small.sensitivity(R).boxes[0] == (2 * held * STEP,)
    free = LeafRatios(loss="squared", clip=1.0, damping=damping)
    for leaf_clip in (1.0 / (1 + damping), 1.0, MAX_CLIP):
        large = LeafRatios(loss="squared", clip=1.0, damping=damping, leaf_clip=leaf_clip)
        assert large.sensitivity(A) == free.sensitivity(A)


@pytest.mark.parametrize("leaf_clip", [0.0, -1.0, STEP / 2, MAX_CLIP * 2, math.nan, math.inf, "much"])
def test_a_leaf_clip_outside_its_bound_is_refused(leaf_clip):
    with pytest.raises(InvalidParameter, match=r"leaf_clip=.*unit"):
        LeafRatios(loss="squared", clip=1.0, damping=1.0, leaf_clip=leaf_clip)


def test_a_leaf_clip_is_taken_down_to_whole_steps():
    query = LeafRatios(loss="squared", clip=1.0, damping=1.0, leaf_clip=Fraction(5, 2) * Fraction(STEP))
    assert query.leaf_clip_steps == 2
    assert released_ratio(2**20, 1, query) == 2
    assert query.sensitivity(A).boxes == ((4 * STEP,),)
    assert LeafRatios(loss="squared", clip=1.0, damping=1.0).leaf_clip_steps is None


def weighted_supremum(damping):
    """sup over H >= 0 and w in [0, 1] of w (2 H + l) / ((H + l) (H + w + l)) to 40 digits: grids, refined."""
    with mpmath.workdps(40):
        lam = mpmath.mpf(damping)

        def change(mass, w):
            return w * (2 * mass + lam) / ((mass + lam) * (mass + w + lam))

        low, high, best = mpmath.mpf(0), mpmath.mpf(4), mpmath.mpf(0)
        for _ in range(40):
            grid = [low + (high - low) * i / 16 for i in range(17)]
            best = max([best] + [change(mass, mpmath.mpf(w) / 4) for mass in grid for w in range(5)])
            top = max(range(17), key=lambda i: change(grid[i], 1))
            low, high = grid[max(top - 1, 0)], grid[min(top + 1, 16)]
        return best


@pytest.mark.slow_after(2)  # a search for the supremum
@pytest.mark.parametrize("damping", [STEP, 1e-3, 0.1, 0.5, 1.0, 7.3, 1e4, 2.0**40])
@pytest.mark.parametrize("clip", [STEP, 0.3, 256.0])
def test_the_bound_of_a_weighted_ratio_is_the_supremum(damping, clip):
    query = LeafRatios(loss="squared", clip=clip, damping=damping, weighted=True)
    ((found,),) = query.sensitivity(Adjacency.ADD_REMOVE).boxes
    with mpmath.workdps(40):
        truth = clip * weighted_supremum(query.damping_steps * mpmath.mpf(STEP)) + mpmath.mpf(STEP)
        assert truth * (1 - mpmath.mpf("1e-20")) <= mpmath.mpf(found) <= truth * (1 + mpmath.mpf("1e-12"))
        plain = LeafRatios(loss="squared", clip=clip, damping=damping)
        assert found >= plain.sensitivity(Adjacency.ADD_REMOVE).boxes[0][0]
        # In one leaf nothing changes.
        within = [q.sensitivity(Adjacency.REPLACE_ONE).boxes[0] for q in (query, plain)]
        assert within[0] == within[1]


def test_a_weighted_ratio_at_a_small_damping_exceeds_whole_rows_by_two_fifths():
    common = {"loss": "squared", "clip": 1.0, "damping": 0.1}
    norms = [
        LeafRatios(weighted=weighted, **common).sensitivity(Adjacency.ADD_REMOVE).l2((1.0,))
        for weighted in (False, True)
    ]
    assert norms == pytest.approx([1 / 1.1, 2 / (1.1 + math.sqrt(0.21))], abs=4 * STEP)


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=60)
@given(
    lam=st.fractions(Fraction(1, 1000), 20),
    others=st.tuples(st.fractions(0, 3), st.fractions(-1, 1)),
    pair=st.tuples(*[st.tuples(st.fractions(0, 1), st.fractions(-1, 1))] * 2),
)
def test_weighted_ratios_in_fractions(lam, others, pair):
    """The inequalities of docs/explanation/queries.md#weighted-ratios for g* = 1: one row more, and one replaced."""
    mass, share = others
    ratios = [(mass * share + w * g) / (mass + w + lam) for w, g in (*pair, (Fraction(0), Fraction(0)))]
    bound = 2 / (1 + float(lam) + math.sqrt(float(lam * (lam + 2))))
    assert max(abs(ratio - ratios[2]) for ratio in ratios[:2]) <= bound * (1 + 1e-12)
    assert abs(ratios[1] - ratios[0]) <= 2 / (1 + lam)


@settings(max_examples=25)
@given(clip=st.integers(1, 2**20), damping=st.integers(1, 200) | st.sampled_from((2**18, 2**20, 15 * 2**20)))
def test_the_bound_of_a_weighted_ratio_covers_whole_steps(clip, damping):
    """Enumerates weights, sums and gradients in whole steps, each truncated as the table does."""
    query = LeafRatios(loss="squared", clip=clip * STEP, damping=damping * STEP, weighted=True)
    unit = 2**20

    def ratio(total, mass):
        size = abs(total) * unit // (mass + damping)
        return size if total >= 0 else -size

    peak = round((math.sqrt(damping * (damping + 2 * unit)) - damping) / 2)
    for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE):
        bound = Fraction(query.sensitivity(adjacency).boxes[0][0])
        for mass, share in itertools.product((0, 1, peak - 1, peak, peak + 1, unit, 3 * unit), (-4, -1, 0, 3, 4)):
            total = (abs(share) * mass * clip // (4 * unit)) * (1 if share > 0 else -1)
            some = [
                ratio(total + sign * (w * clip // unit), mass + w)
                for w, sign in itertools.product((0, 1, peak, unit - 1, unit), (-1, 1))
            ]
            moved = max(abs(r - some[0]) for r in some) if adjacency is Adjacency.ADD_REMOVE else max(some) - min(some)
            assert Fraction(moved, unit) <= bound


def test_the_norms_under_each_adjacency():
    moments = LeafMoments(loss="squared", clip=0.5)
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
            LeafMoments(loss="squared", clip=clip)
    for scale in (0.0, 3.34, math.nan):
        with pytest.raises(InvalidParameter, match=r"curvature_scale="):
            curvatures(scale, 1.0)
    for damping in (0.0, STEP / 2, MAX_DAMPING * 2, math.inf):
        with pytest.raises(InvalidParameter, match=r"damping="):
            LeafRatios(loss="squared", clip=1.0, damping=damping)


def test_only_this_modules_own_queries_are_carried_out():
    class Cheaper(LabelMoments):
        def sensitivity(self, adjacency):
            raise AssertionError("never asked")

    query = LabelMoments()
    assert TREES.evaluation(query).kind is LabelMoments
    for foreign in (Cheaper(), object(), None):
        with pytest.raises(RoundViolation, match="not a query that this curator carries out"):
            TREES.evaluation(foreign)


def test_a_number_of_any_type_is_kept_as_a_float():
    # The loops over rows are compiled for floats, and are reached only after the budget has moved.
    third = Fraction(1, 3)
    moments = LeafMoments(loss="squared", clip=third)
    curvature = LeafCurvatures(clip=np.float32(0.5), curvature_scale=1)
    ratios = LeafRatios(loss="squared", clip=1, damping=third)
    kept = (moments.clip, curvature.clip, curvature.curvature_scale, ratios.clip, ratios.damping)
    assert kept == (1 / 3, 0.5, 1.0, 1.0, 1 / 3)
    assert all(type(number) is float for number in kept)


@pytest.mark.parametrize("weighted", [1, 0, None, "False", np.False_])
def test_whether_rows_have_weights_is_true_or_false(weighted):
    # Another object could answer the table, which asks whether the bound fits, otherwise than the price.
    with pytest.raises(InvalidParameter, match=r"weighted=.* must be True or False"):
        LeafRatios(loss="squared", clip=1.0, damping=1.0, weighted=weighted)


def test_a_leaf_clip_holds_weighted_ratios_too():
    common = {"loss": "squared", "clip": 1.0, "damping": 0.1, "weighted": True}
    free = LeafRatios(**common)
    for leaf_clip in (2**-10, 0.25, 0.64, 0.65, 1.0):
        query = LeafRatios(leaf_clip=leaf_clip, **common)
        for adjacency in Adjacency:
            for held, box in zip(query.sensitivity(adjacency).boxes, free.sensitivity(adjacency).boxes, strict=True):
                moved = adjacency is Adjacency.REPLACE_ONE and box != free.sensitivity(adjacency).boxes[0]
                most = 2 * query.leaf_clip_steps * STEP * (math.sqrt(2) if moved else 1.0)
                assert held[0] == pytest.approx(min(box[0], most), rel=1e-15)
