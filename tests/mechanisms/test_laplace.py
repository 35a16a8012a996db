import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import LaplaceEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BallShifts, BoxShifts, Grid, LaplaceMechanism, SecureRandom, SeededRandom

sizes = st.floats(min_value=1e-30, max_value=1e30)


@pytest.mark.slow_after(1)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("adjacency", list(Adjacency))
@given(box=st.tuples(sizes, sizes), scales=st.tuples(sizes, sizes))
def test_the_multiplier_is_one_over_the_l1_norm_rounded_down(adjacency, box, scales):
    event = LaplaceMechanism(scales=scales).event(BoxShifts(boxes=(box,)), adjacency)
    norm = sum(Fraction(b) / Fraction(s) for b, s in zip(box, scales, strict=True))
    assert isinstance(event, LaplaceEvent)
    assert event.adjacency is adjacency
    assert Fraction(event.noise_multiplier) <= 1 / norm
    assert event.noise_multiplier == pytest.approx(float(1 / norm), rel=1e-15)


@pytest.mark.slow_after(1)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("adjacency", list(Adjacency))
@given(box=st.tuples(sizes, sizes), proportions=st.tuples(sizes, sizes), multiplier=sizes)
def test_a_stated_multiplier_is_the_price_and_never_more_than_the_noise_gives(adjacency, box, proportions, multiplier):
    shifts = BoxShifts(boxes=(box,))
    mechanism = LaplaceMechanism.of_multiplier(multiplier, shifts, proportions=proportions)
    assert mechanism.event(shifts, adjacency).noise_multiplier == multiplier
    norm = sum(Fraction(b) / Fraction(s) for b, s in zip(box, mechanism.scales, strict=True))
    assert Fraction(multiplier) <= 1 / norm
    assert multiplier == pytest.approx(float(1 / norm), rel=1e-14)
    first, second = mechanism.scales
    assert first / second == pytest.approx(proportions[0] / proportions[1], rel=1e-14)
    wider = BoxShifts(boxes=(tuple(1.0001 * b for b in box),))
    with pytest.raises(InvalidParameter, match="at most"):
        mechanism.event(wider, adjacency)


def test_a_moved_row_counts_twice():
    shifts = BoxShifts.moved(boxes=((1.0,),))
    event = LaplaceMechanism(scales=(4.0,)).event(shifts, Adjacency.REPLACE_ONE)
    assert event == LaplaceEvent(noise_multiplier=2.0, adjacency=Adjacency.REPLACE_ONE)


def test_a_ball_pays_for_its_corner():
    event = LaplaceMechanism(scales=(1.0,) * 4).event(BallShifts(radius=1.0), Adjacency.ADD_REMOVE)
    assert event.noise_multiplier == 0.5


def test_noise_has_the_scale_of_the_mechanism_in_real_units():
    grid = Grid(exponents=(-8, -3))
    zeros = np.zeros((200_000, 2), dtype=np.int64)
    real = grid.to_real(LaplaceMechanism(scales=(2.5, 40.0)).randomise(zeros, grid, SecureRandom()))
    assert np.abs(real).mean(axis=0) == pytest.approx([2.5, 40.0], rel=0.02)
    assert real.std(axis=0) == pytest.approx([2.5 * math.sqrt(2), 40.0 * math.sqrt(2)], rel=0.03)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, None])
def test_bad_scales_are_refused(scale):
    with pytest.raises(InvalidParameter, match="scales=.*unit"):
        LaplaceMechanism(scales=(1.0, scale))


def test_columns_must_fit():
    with pytest.raises(InvalidParameter, match="columns"):
        LaplaceMechanism(scales=())
    with pytest.raises(InvalidParameter, match="columns"):
        LaplaceMechanism(scales=(1.0,)).event(BoxShifts(boxes=((1.0, 1.0),)), Adjacency.ADD_REMOVE)
    with pytest.raises(InvalidParameter, match="columns"):
        LaplaceMechanism(scales=(1.0,)).randomise(
            np.zeros((3, 2), dtype=np.int64), Grid(exponents=(0, 0)), SeededRandom(0)
        )


def _profile_of_two_coordinates(epsilon, a, b):
    """E over the first coordinate's loss of the second one's profile, by quadrature on its two smooth pieces."""

    def second(t):
        return np.where(t >= b, 0.0, np.where(t <= -b, 1 - np.exp(t), 1 - np.exp((t - b) / 2)))

    total = 0.5 * second(np.array(epsilon - a)) + 0.5 * math.exp(-a) * second(np.array(epsilon + a))
    nodes, weights = np.polynomial.legendre.leggauss(60)
    knots = sorted({-a, a, *(k for k in (epsilon - b, epsilon + b) if -a < k < a)})
    for low, high in itertools.pairwise(knots):
        loss = (low + high) / 2 + (high - low) / 2 * nodes
        total += np.sum(weights * (high - low) / 2 * 0.25 * np.exp(-(a - loss) / 2) * second(epsilon - loss))
    return float(total)


@pytest.mark.slow  # whole laws, by enumeration or many draws
@given(a=st.floats(0.01, 20), b=st.floats(0.01, 20), fraction=st.floats(0, 1))
def test_one_coordinate_dominates_two_of_the_same_l1_norm(a, b, fraction):
    event = LaplaceMechanism(scales=(1.0, 1.0)).event(BoxShifts(boxes=((a, b),)), Adjacency.ADD_REMOVE)
    epsilon = fraction * (a + b)
    charged = math.exp(event.log_profile(np.array([epsilon]), direction=Direction.REMOVE)[0])
    assert _profile_of_two_coordinates(epsilon, a, b) <= charged + 1e-12
    # The proof's closed form (docs/explanation/shift-sets.md#laplace-l1), for coordinates in either order.
    s = (a + b - epsilon) / 2
    closed = 1 - math.exp(-s) * (1 + min(s, a, b) / 2)
    assert _profile_of_two_coordinates(epsilon, a, b) == pytest.approx(closed, abs=1e-12)
