import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import EllipticalGaussianEvent, GaussianEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import (
    BallShifts,
    BoxShifts,
    EllipticalGaussianMechanism,
    GaussianMechanism,
    Grid,
    SecureRandom,
    SeededRandom,
)

A = Adjacency.ADD_REMOVE
sizes = st.floats(min_value=1e-30, max_value=1e30)


@given(sizes, sizes)
def test_a_ball_yields_its_multiplier_rounded_down(stddev, radius):
    event = GaussianMechanism(stddev=stddev).event(BallShifts(radius=radius), A)
    assert isinstance(event, GaussianEvent)
    assert Fraction(event.noise_multiplier) <= Fraction(stddev) / Fraction(radius)
    assert event.noise_multiplier == pytest.approx(stddev / radius, rel=1e-15)


def test_multipliers_that_are_floats_are_exact():
    assert GaussianMechanism(stddev=5.0).event(BoxShifts(boxes=((3.0, 4.0),)), A) == GaussianEvent(
        noise_multiplier=1.0, adjacency=A
    )
    assert GaussianMechanism(stddev=0.3).event(BallShifts(radius=0.1), A).noise_multiplier == pytest.approx(3.0)


def test_a_query_with_norm_bound_and_stddev_one_has_multiplier_one():
    """Bug B5 of a peer, as an identity: stddev is not a multiplier until it is divided by the norm bound."""
    for bound in (1.0, 2.0, 0.5):
        assert GaussianMechanism(stddev=1.0).event(BallShifts(radius=bound), A).noise_multiplier == 1.0 / bound


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_event_keeps_the_adjacency(adjacency):
    shifts = BoxShifts(boxes=((1.0, 0.3),))
    assert GaussianMechanism(stddev=1.0).event(shifts, adjacency).adjacency is adjacency
    assert EllipticalGaussianMechanism(stddevs=(1.0, 2.0)).event(shifts, adjacency).adjacency is adjacency


def test_one_box_is_an_elliptical_event_and_a_union_is_not():
    mechanism = EllipticalGaussianMechanism(stddevs=(5.0, 1.0))
    assert mechanism.event(BoxShifts(boxes=((1.0, 0.3),)), A) == EllipticalGaussianEvent(
        sensitivities=(1.0, 0.3), stddevs=(5.0, 1.0), adjacency=A
    )
    union = mechanism.event(BoxShifts(boxes=((1.0, 0.0), (0.0, 0.3))), A)
    assert isinstance(union, GaussianEvent)
    assert union.noise_multiplier == pytest.approx(1 / 0.3)
    assert mechanism.event(BallShifts(radius=2.0), A) == GaussianEvent(noise_multiplier=0.5, adjacency=A)


def test_the_box_of_a_moved_row_is_the_l2_box():
    shifts = BoxShifts.moved(boxes=((3.0, 4.0),))
    assert GaussianMechanism(stddev=10.0).event(shifts, A).noise_multiplier == pytest.approx(math.sqrt(2.0))
    assert EllipticalGaussianMechanism(stddevs=(1.0, 1.0)).event(shifts, A).sensitivities == shifts.l2_boxes[0]


def test_equal_stddevs_make_the_two_mechanisms_one():
    statistic = np.arange(40, dtype=np.int64).reshape(20, 2)
    grid = Grid(exponents=(-10, -10))
    spherical = GaussianMechanism(stddev=3.0).randomise(statistic, grid, SeededRandom(1))
    elliptical = EllipticalGaussianMechanism(stddevs=(3.0, 3.0)).randomise(statistic, grid, SeededRandom(1))
    assert np.array_equal(spherical, elliptical)
    assert not np.array_equal(spherical, statistic)


def test_noise_has_the_stddev_of_the_mechanism_in_real_units():
    grid = Grid(exponents=(-8, -3))
    zeros = np.zeros((200_000, 2), dtype=np.int64)
    source = SecureRandom()
    real = grid.to_real(GaussianMechanism(stddev=2.5).randomise(zeros, grid, source))
    assert real.std(axis=0) == pytest.approx([2.5, 2.5], rel=0.02)
    real = grid.to_real(EllipticalGaussianMechanism(stddevs=(2.5, 40.0)).randomise(zeros, grid, source))
    assert real.std(axis=0) == pytest.approx([2.5, 40.0], rel=0.02)
    assert abs(np.corrcoef(real.T)[0, 1]) < 0.015


@pytest.mark.parametrize("stddev", [0.0, -1.0, math.nan, math.inf, None, "1"])
def test_bad_stddevs_are_refused(stddev):
    with pytest.raises(InvalidParameter, match="stddev=.*unit"):
        GaussianMechanism(stddev=stddev)
    with pytest.raises(InvalidParameter, match="stddevs=.*unit"):
        EllipticalGaussianMechanism(stddevs=(1.0, stddev))


def test_columns_must_fit():
    with pytest.raises(InvalidParameter, match="columns"):
        EllipticalGaussianMechanism(stddevs=())
    mechanism = EllipticalGaussianMechanism(stddevs=(1.0, 2.0))
    with pytest.raises(InvalidParameter, match="columns"):
        mechanism.event(BoxShifts(boxes=((1.0,),)), A)
    with pytest.raises(InvalidParameter, match="columns"):
        mechanism.randomise(np.zeros((3, 1), dtype=np.int64), Grid(exponents=(0,)), SeededRandom(0))
    with pytest.raises(InvalidParameter, match="grid steps"):
        GaussianMechanism(stddev=1e20).randomise(
            np.zeros((3, 1), dtype=np.int64), Grid(exponents=(0,)), SeededRandom(0)
        )
