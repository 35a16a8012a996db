"""Exact moves against what was stated and paid: each bound at its edge, and one step beyond."""

import math

import numpy as np
import pytest

from ledgerwood import Adjacency
from ledgerwood.accounting.events import (
    BoundedRangeEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
)
from ledgerwood.errors import ReplayFailed
from ledgerwood.mechanisms import (
    BallShifts,
    BlockShifts,
    BoxShifts,
    CategoricalCandidates,
    DiscreteLaplaceMechanism,
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    Grid,
    GridlessMechanism,
    LaplaceMechanism,
    NoisyMaxMechanism,
    NumericCandidates,
    PermuteAndFlipMechanism,
    UtilityRange,
)
from ledgerwood.verification.replaying.moves import Handed, choice_move, sum_move

A, Z, R = Adjacency
HALVES = Grid(exponents=(-1, -2))
WHOLE = Grid(exponents=(0,))
BOX = BoxShifts(boxes=((1.0, 0.5),))
LAPLACE = LaplaceMechanism(scales=(4.0, 2.0))


def moved(shift, *, sensitivity=BOX, mechanism=LAPLACE, grid=HALVES, adjacency=A, changed=True, event=None):
    """A statistic of four rows, two columns unless the grid says otherwise, whose first rows shift."""
    first = np.arange(4 * grid.columns, dtype=np.int64).reshape(4, grid.columns) - 5
    second = first.copy()
    second[: len(shift)] += np.array(shift, dtype=np.int64).reshape(-1, grid.columns)
    return sum_move(
        first, second, grid=grid, sensitivity=sensitivity, mechanism=mechanism, adjacency=adjacency, changed=changed,
        event=event or mechanism.event(sensitivity, adjacency),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shift", "share"), [([(2, 2)], 1.0), ([(-2, 2)], 1.0), ([(0, 0), (1, 0)], 0.25), ([(2, -1)], 0.75), ([], 0.0)]
)
def test_a_shift_inside_of_the_box_has_its_share_of_the_price(shift, share):
    """Scales 4 and 2, box (1, .5): the norm |d1| / 4 + |d2| / 2 is at most .5."""
    move = moved(shift)
    assert move.faults == ()
    assert move.share == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize("shift", [(3, 0), (0, 3), (2, 3), (-3, -2)])
def test_one_step_beyond_the_box_is_a_fault(shift):
    (stated, found), *_ = moved([shift]).faults
    assert stated == "in a box of ((1.0, 0.5),) (L1, by column)"
    assert found == f"a shift of ({shift[0] / 2:g}, {shift[1] / 4:g})"


def test_a_second_row_is_a_fault_even_within_the_norm():
    assert [stated for stated, _ in moved([(1, 0), (1, 0)]).faults] == ["at most 1 rows of the statistic move"]


def test_a_row_that_is_not_asked_moves_nothing():
    move = moved([(1, 0)], changed=False)
    assert move.faults == (("no change: the changed row is not in it", "a shift of (0.5, 0)"),)
    assert move.share == math.inf
    assert moved([], changed=False).faults == ()


def test_a_wrapped_sum_moves_by_its_step():
    first = np.array([[2**63 - 1, 0]], dtype=np.int64)
    second = np.array([[-(2**63), 0]], dtype=np.int64)
    move = sum_move(
        first, second, grid=HALVES, sensitivity=BOX, mechanism=LAPLACE, event=LAPLACE.event(BOX, A), adjacency=A,
        changed=True,
    )  # fmt: skip
    assert (move.faults, move.share) == ((), pytest.approx(0.25))


def test_another_shape_is_a_fault():
    shapes = np.zeros((2, 2), np.int64), np.zeros((3, 2), np.int64)
    move = sum_move(*shapes, grid=HALVES, sensitivity=BOX, mechanism=LAPLACE, event=None, adjacency=A, changed=True)
    assert move.faults == (("shape (2, 2)", "shape (3, 2)"),)


def test_a_replaced_row_may_move_two():
    shifts = BoxShifts.moved(boxes=((1.0, 0.5),))
    assert moved([(2, 2), (-2, 2)], sensitivity=shifts, adjacency=R).faults == ()
    assert moved([(2, 2), (-2, 2)], sensitivity=shifts, adjacency=R).share == pytest.approx(1.0)
    faults = moved([(2, 2), (-2, 1), (0, 1)], sensitivity=shifts, adjacency=R).faults
    assert [stated for stated, _ in faults] == ["at most 2 rows of the statistic move"]
    assert moved([(3, 2), (-2, 2)], sensitivity=shifts, adjacency=R).faults


@pytest.mark.parametrize(
    ("shift", "inside"),
    [((2, 4), True), ((0, 8), True), ((1, 6), True), ((1, 7), False), ((2, 5), False), ((3, 0), False)],
)
def test_a_shift_between_two_boxes_is_within_every_norm(shift, inside):
    """Boxes (0, 2) and (1, 1), columns in halves and quarters: what weighted rows do to (weight, sum) of a leaf."""
    boxes = BoxShifts(boxes=((0.0, 2.0), (1.0, 1.0)))
    assert bool(moved([shift], sensitivity=boxes, adjacency=R).faults) is not inside
    # The norms agree, at any scales: only a shift inside is never above the supremum over the boxes.
    distances = shift[0] / 2, shift[1] / 4
    scales = [(2.0**i, 1.0) for i in range(-9, 10)]
    within = all(distances[0] / a + distances[1] / b <= boxes.l1((a, b)) for a, b in scales)
    assert within is inside


@pytest.mark.parametrize(("adjacency", "most"), [(A, 3), (R, 6)])
def test_whole_noise_on_counts_is_paid_by_their_l1_norm(adjacency, most):
    """Three histograms, scale 7: each count that moves by 1 loses 1/7, and the event pays for `most` of them."""
    shifts, noise = BoxShifts.of_counts(adjacency, histograms=3), DiscreteLaplaceMechanism(scale=7.0)
    settings = {"sensitivity": shifts, "mechanism": noise, "grid": WHOLE, "adjacency": adjacency}
    assert noise.event(shifts, adjacency).epsilon == pytest.approx(most / 7)
    move = moved([(1,)] * 3, **settings)
    assert (move.faults, move.share) == ((), pytest.approx(3 / most))
    too_small = PureEvent(epsilon=3 / 7.5, adjacency=adjacency)
    assert "1.0714" in moved([(1,)] * 3, event=too_small, **settings).faults[0][1]


def test_whole_noise_on_one_number_is_paid_at_its_own_scale_only():
    shifts, noise = BoxShifts(boxes=((3.0,),)), DiscreteLaplaceMechanism(scale=7.0)
    settings = {"sensitivity": shifts, "mechanism": noise, "grid": WHOLE}
    assert moved([(-2,)], **settings).share == pytest.approx(2 / 3)
    priced = DiscreteLaplaceEvent(scale=7.0, sensitivity=1, adjacency=A)
    assert any("2 times what it pays for" in found for _, found in moved([(2,)], event=priced, **settings).faults)
    with pytest.raises(ReplayFailed, match=r"DiscreteLaplaceEvent\(scale=14"):
        moved([(1,)], event=DiscreteLaplaceEvent(scale=14.0, sensitivity=3, adjacency=A), **settings)


@pytest.mark.parametrize("adjacency", [A, R])
@pytest.mark.parametrize("histograms", [1, 3])
def test_counts_of_several_histograms(histograms, adjacency):
    shifts, mechanism = BoxShifts.of_counts(adjacency, histograms=histograms), LaplaceMechanism(scales=(7.0,))
    most = histograms * (2 if adjacency is R else 1)
    settings = {"sensitivity": shifts, "mechanism": mechanism, "grid": WHOLE, "adjacency": adjacency}
    if most <= 4:
        assert moved([(1,)] * most, **settings).faults == ()
        assert moved([(1,)] * most, **settings).share == pytest.approx(1.0)
    if most < 4:
        assert moved([(1,)] * (most + 1), **settings).faults
    assert moved([(most + 1,)], **settings).faults


def test_a_ball_bounds_all_rows_together():
    ball, mechanism = BallShifts(radius=1.25), GaussianMechanism(stddev=3.0)
    grid = Grid(exponents=(-2, -2))
    inside = moved([(3, 4)], sensitivity=ball, mechanism=mechanism, grid=grid)
    assert (inside.faults, inside.share) == ((), pytest.approx(1.0))
    assert float(inside.norm) == pytest.approx(1.25 / 3)
    beyond = moved([(4, 4)], sensitivity=ball, mechanism=mechanism, grid=grid)
    assert beyond.faults[0][0] == "a norm of at most 1.25"
    two = BallShifts(radius=2.5)
    assert moved([(3, 4), (3, -4)], sensitivity=two, mechanism=mechanism, grid=grid, adjacency=R).faults == ()
    assert moved([(1, 1), (1, 1)], sensitivity=two, mechanism=mechanism, grid=grid, adjacency=A).faults
    # A contribution of norm 1.25 in each of two histograms, at most 1.25 root 2 in all; not in a third one.
    both = ball.repeated(histograms=2)
    assert moved([(3, 4), (3, 4)], sensitivity=both, mechanism=mechanism, grid=grid, adjacency=A).faults == ()
    assert moved([(1, 1)] * 3, sensitivity=both, mechanism=mechanism, grid=grid, adjacency=A).faults
    assert moved([(1, 1)] * 4, sensitivity=both, mechanism=mechanism, grid=grid, adjacency=R).faults == ()


def test_blocks_bound_the_norm_of_each_block():
    grid, mechanism = Grid(exponents=(0, -2, -2)), EllipticalGaussianMechanism(stddevs=(5.0, 1.0, 1.0))
    once = BlockShifts(norms=BoxShifts(boxes=((1.0, 1.25),)), sizes=(1, 2))
    settings = {"mechanism": mechanism, "grid": grid}
    inside = moved([(1, 3, 4)], sensitivity=once, **settings)
    assert (inside.faults, inside.share) == ((), pytest.approx(1.0))
    assert float(inside.norm) == pytest.approx(math.hypot(1 / 5, 1.25))
    for beyond in ([(2, 0, 0)], [(1, 4, 4)], [(1, 0, 6)], [(0, 0, 1), (0, 1, 0)]):
        assert moved(beyond, sensitivity=once, **settings).faults
    replaced = BlockShifts(
        norms=BoxShifts(boxes=((0.0, 2.5), *BoxShifts.moved(boxes=((1.0, 1.25),)).boxes),
                        l1_boxes=((0.0, 2.5), (2.0, 2.5))),
        sizes=(1, 2),
    )  # fmt: skip
    settings |= {"sensitivity": replaced, "adjacency": R}
    for within in ([(0, 6, 8)], [(1, 3, 4), (-1, 4, -3)], [(1, 5, 0), (-1, 0, 5)], [(1, 3, 4)]):
        assert moved(within, **settings).faults == ()
    for beyond in ([(0, 6, 9)], [(1, 6, 8)], [(1, 3, 4), (-1, 5, 4)], [(2, 0, 0)], [(0, 1, 0)] * 3):
        assert moved(beyond, **settings).faults


@pytest.mark.parametrize(
    ("mechanism", "event", "norm"),
    [
        (GaussianMechanism(stddev=2.0), GaussianEvent(noise_multiplier=2.0, adjacency=A), math.hypot(1.0, 0.5) / 2),
        (
            EllipticalGaussianMechanism(stddevs=(2.0, 1.0)),
            GaussianEvent(noise_multiplier=1.5, adjacency=A),
            math.hypot(0.5, 0.5),
        ),
        (
            EllipticalGaussianMechanism(stddevs=(2.0, 1.0)),
            EllipticalGaussianEvent(sensitivities=(1.0, 0.25), stddevs=(2.0, 1.0), adjacency=A),
            math.hypot(0.5, 0.5),
        ),
        (LAPLACE, LaplaceEvent(noise_multiplier=3.0, adjacency=A), 0.5),
    ],
)
def test_a_price_that_is_too_low_is_a_fault(mechanism, event, norm):
    """Even where the shift is inside of the stated set."""
    move = moved([(2, 2)], mechanism=mechanism, event=event)
    paid = math.hypot(0.5, 0.25) if isinstance(event, EllipticalGaussianEvent) else 1 / event.noise_multiplier
    assert move.share == pytest.approx(norm / paid)
    assert move.share > 1
    ((stated, found),) = move.faults
    assert stated == f"{event!r} by {mechanism!r}"
    assert found.startswith(f"{norm / paid:.9g} times what it pays for")


def test_an_event_of_other_deviations_than_the_noise_is_held_against_the_noise():
    """By hand: (1, .5) is (.5, .5) of deviations (2, 1), and (1, .5) of deviations (2, 2) is (.5, .25)."""
    mechanism = EllipticalGaussianMechanism(stddevs=(2.0, 1.0))
    event = EllipticalGaussianEvent(sensitivities=(1.0, 0.5), stddevs=(2.0, 2.0), adjacency=A)
    move = moved([(2, 2)], mechanism=mechanism, event=event)
    assert move.share == pytest.approx(math.hypot(0.5, 0.5) / math.hypot(0.5, 0.25))
    assert move.share > 1
    assert move.faults[-1][0] == f"{event!r} by {mechanism!r}"


def test_noise_and_sets_that_are_not_known_are_refused():
    with pytest.raises(ReplayFailed, match="is noise that a replay does not know"):
        moved([(1, 1)], event=PureEvent(epsilon=1.0, adjacency=A))
    with pytest.raises(ReplayFailed, match="UtilityRange is a shift set"):
        moved([(1, 1)], sensitivity=UtilityRange(range=1.0), event=LaplaceEvent(noise_multiplier=1.0, adjacency=A))
    uneven = BoxShifts(boxes=((1.0, 0.5),), l1_boxes=((1.0, 0.5), (2.0, 1.0)))
    with pytest.raises(ReplayFailed, match="one by one"):
        moved([(1, 1)], sensitivity=uneven)


# ----------------------------------------------------------------------------------------------------------- choices

QUARTERS = Grid(exponents=(-2,))
RATE = ExponentialMechanism(rate=0.5)
RANGE = UtilityRange(range=4.0)


def choice(first, second, *, mechanism=RATE, adjacency=A, changed=True, sensitivity=RANGE, grid=QUARTERS, event=None):
    """One choice a pair; utilities in quarters."""

    def handed(evidence):
        return [Handed(evidence=np.array(e, dtype=np.int64) if isinstance(e, list) else e, grid=grid) for e in evidence]

    return choice_move(
        handed(first), handed(second), sensitivity=sensitivity, mechanism=mechanism, adjacency=adjacency,
        changed=changed, event=event or BoundedRangeEvent(epsilon=2.0, adjacency=adjacency),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("second", "share"),
    [([16, 0, 0], 1.0), ([4, -12, 4], 1.0), ([8, 8, 8], 0.0), ([0, 0, 1], 1 / 16), ([1000, 1000, 1016], 1.0)],
)
def test_utilities_move_apart_by_their_range(second, share):
    move = choice([[0, 0, 0]], [second])
    assert (move.faults, move.share) == ((), pytest.approx(share))


def test_one_step_more_is_a_fault_of_range_and_of_price():
    move = choice([[0, 0, 0]], [[16, -1, 0]])
    assert [stated for stated, _ in move.faults] == [
        "utilities move apart by at most 4.0",
        f"{BoundedRangeEvent(epsilon=2.0, adjacency=A)!r} by {RATE!r}",
    ]
    assert move.faults[0][1] == "4.25, of choices [0]"


def test_a_choice_that_was_priced_too_low_is_a_fault():
    for mechanism, event in (
        (RATE, BoundedRangeEvent(epsilon=1.0, adjacency=A)),
        (PermuteAndFlipMechanism(rate=0.5), PureEvent(epsilon=1.0, adjacency=A)),
    ):
        move = choice([[0, 0]], [[16, 0]], mechanism=mechanism, event=event)
        assert move.share == pytest.approx(2.0)
        assert move.faults[0][1] == "2 times what it pays for"


def test_the_nodes_of_a_level_share_one_range():
    both = [[8, 0], [0, 8], [0, 0]]
    assert choice([[0, 0]] * 3, both, adjacency=R).faults == ()
    assert [stated for stated, _ in choice([[0, 0]] * 3, both).faults] == ["at most 1 choices move"]
    more = choice([[0, 0]] * 3, [[8, 0], [0, 12], [0, 0]], adjacency=R)
    assert more.faults[0] == ("utilities move apart by at most 4.0", "5, of choices [0, 1]")


def test_a_choice_that_does_not_ask_the_row_stays_the_same():
    assert choice([[1, 2]], [[1, 2]], changed=False).faults == ()
    (fault,) = choice([[1, 2]], [[3, 4]], changed=False).faults
    assert fault == ("no change: the changed row is not in it", "a choice's utilities move by 2 to 2 steps")


def test_other_candidates_are_a_fault():
    assert choice([[1, 2]], [[1, 2, 3]]).faults == (("the same candidates", "others, or on another grid"),)
    assert choice([[1, 2]], [[1, 2]] * 2).faults == (("1 choices", "2 choices"),)


def test_utilities_whose_difference_leaves_64_bits():
    top = 2**62
    assert choice([[-top, -top]], [[top, top]]).faults == ()


def cells(positions, utilities, points=10):
    return (NumericCandidates(positions=np.array(positions, np.int64), points=points, utilities=np.array(utilities)),)


def by_points(features):
    """The utility of every point, by the cells' own account."""
    starts, widths, utilities = features[0].cells()
    return np.repeat(utilities, widths)


def test_cells_of_thresholds_are_compared_point_by_point():
    """A row cuts a cell in two; the bound is over points and not over cells."""
    generator = np.random.default_rng(0)
    mechanism = GridlessMechanism(rate=0.5)
    for _ in range(50):
        places = np.sort(generator.integers(0, 11, 4))
        more = np.sort(np.append(places, generator.integers(0, 11)))
        first = cells(places, generator.integers(-9, 9, 5))
        second = cells(more, generator.integers(-9, 9, 6))
        changes = by_points(second) - by_points(first)
        move = choice([first], [second], mechanism=mechanism, sensitivity=UtilityRange(range=100.0))
        assert move.share == pytest.approx(0.5 * 0.25 * (changes.max() - changes.min()) / 2.0)
    same = cells([3, 5], [1, 1, 1]), cells([3, 3, 5], [1, 9, 1, 1])
    assert choice([same[0]], [same[1]], mechanism=mechanism, changed=False).faults == ()


def test_other_points_or_weights_are_other_candidates():
    mechanism = GridlessMechanism(rate=0.5)
    one = cells([3], [1, 2])
    heavy = (NumericCandidates(positions=np.array([3]), points=10, utilities=np.array([1, 2]), weight=2),)
    named = (CategoricalCandidates(utilities=np.array([1, 2])),)
    for other in (cells([3], [1, 2], points=11), heavy, named, one + one):
        assert choice([one], [other], mechanism=mechanism).faults[0][0] == "the same candidates"


def test_counts_by_key_move_by_one_row():
    def counted(first, second, adjacency=A, changed=True):
        return choice([first], [second], sensitivity=None, adjacency=adjacency, changed=changed, grid=None)

    assert counted({"a": 3}, {"a": 3, "b": 1}).faults == ()
    assert counted({"a": 3}, {"a": 3, "b": 1}).share == 1.0
    assert counted({"a": 3, "b": 1}, {"a": 4}, adjacency=R).faults == ()
    assert counted({"a": 3, "b": 1}, {"a": 4}).faults == (("the counts move by 1 in all", "by 2"),)
    assert counted({"a": 3}, {"a": 4}, changed=False).faults == (("the counts move by 0 in all", "by 1"),)
    assert counted({"a": 3}, {"a": 3}, changed=False).share == 0.0
    with pytest.raises(ReplayFailed, match="a choice from ndarray"):
        choice([[1]], [[1]], sensitivity=None)


def test_choices_that_are_not_known_are_refused():
    with pytest.raises(ReplayFailed, match="NoisyMaxMechanism chooses in a way"):
        choice([[1]], [[1]], mechanism=NoisyMaxMechanism(scale=1.0))
    with pytest.raises(ReplayFailed, match="pays for a choice in a way"):
        choice([[1]], [[1]], event=LaplaceEvent(noise_multiplier=1.0, adjacency=A))
