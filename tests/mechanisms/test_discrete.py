"""Integer noise: its events, its law, and what it refuses."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ive
from scipy.stats import chi2

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    PureEvent,
    SkellamEvent,
    SkellamVectorEvent,
    ZeroConcentratedEvent,
)
from ledgerwood.errors import InvalidParameter, UnsupportedEvent
from ledgerwood.mechanisms import (
    BallShifts,
    BoxShifts,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    Grid,
    SeededRandom,
    SkellamMechanism,
)
from ledgerwood.mechanisms.exact.deviates import geometric_noise, standard_laplace

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
WHOLE = Grid(exponents=(0,))
BOTH = pytest.mark.parametrize("kind", [DiscreteLaplaceMechanism, DiscreteGaussianMechanism])


def shifts(*bounds):
    return BoxShifts(boxes=(bounds,))


def test_one_number_has_the_exact_event_of_the_largest_whole_shift():
    assert DiscreteLaplaceMechanism(scale=3.0).event(shifts(2.0), A) == DiscreteLaplaceEvent(
        scale=3.0, sensitivity=2, adjacency=A
    )
    assert DiscreteGaussianMechanism(scale=3.0).event(shifts(2.9), R) == DiscreteGaussianEvent(
        scale=3.0, sensitivity=2, adjacency=R
    )
    assert DiscreteLaplaceMechanism(scale=3.0).event(shifts(0.4), A).sensitivity == 1


@given(bounds=st.tuples(*[st.floats(0.5, 1e6)] * 3), scale=st.floats(0.1, 1e5))
def test_several_numbers_take_bounds_that_add_up(bounds, scale):
    pure = DiscreteLaplaceMechanism(scale=scale).event(shifts(*bounds), A)
    assert isinstance(pure, PureEvent)
    norm = sum(map(Fraction, bounds))
    assert Fraction(pure.epsilon) >= norm / Fraction(scale)
    assert pure.epsilon == pytest.approx(float(norm / Fraction(scale)), rel=1e-14)
    concentrated = DiscreteGaussianMechanism(scale=scale).event(shifts(*bounds), A)
    assert isinstance(concentrated, ZeroConcentratedEvent)
    square = sum(Fraction(b) ** 2 for b in bounds)
    assert Fraction(concentrated.rho) >= square / (2 * Fraction(scale) ** 2)
    assert concentrated.rho == pytest.approx(float(square / (2 * Fraction(scale) ** 2)), rel=1e-14)


def test_a_row_that_moves_changes_two_numbers():
    moved = BoxShifts.moved(boxes=((1.0,),))
    assert DiscreteLaplaceMechanism(scale=4.0).event(moved, R) == PureEvent(epsilon=0.5, adjacency=R)
    rho = DiscreteGaussianMechanism(scale=4.0).event(moved, R).rho
    assert rho >= 2 / 32
    assert rho == pytest.approx(2 / 32, rel=1e-15)


def test_a_ball_has_an_l2_norm_only():
    assert DiscreteGaussianMechanism(scale=2.0).event(BallShifts(radius=3.0), A) == ZeroConcentratedEvent(
        rho=9 / 8, adjacency=A
    )
    with pytest.raises(InvalidParameter, match="BallShifts.*BoxShifts"):
        DiscreteLaplaceMechanism(scale=2.0).event(BallShifts(radius=3.0), A)


@pytest.mark.slow_after(2)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("scale", [0.3, 0.7, 3.0, 60.0])
def test_geometric_noise_has_its_law(scale):
    n, alpha = 1_000_000, math.exp(-1.0 / scale)
    out = geometric_noise(n, scale, standard_laplace(), SeededRandom(20_261_121))
    reach = max(1, int(4 * scale))
    z = np.arange(-reach, reach + 1)
    expected = n * (1 - alpha) / (1 + alpha) * alpha ** np.abs(z)
    tail = n * alpha ** (reach + 1) / (1 + alpha)
    counts = np.array([*(np.count_nonzero(out == k) for k in z), (out < -reach).sum(), (out > reach).sum()])
    expected = np.array([*expected, tail, tail])
    kept = expected >= 10
    statistic = float(((counts[kept] - expected[kept]) ** 2 / expected[kept]).sum())
    assert chi2.sf(statistic, int(kept.sum()) - 1) > 1e-4
    assert counts[~kept].sum() <= expected[~kept].sum() + 20


def test_geometric_noise_reaches_the_widest_scale():
    out = geometric_noise(10_000, 2.0**55, standard_laplace(), SeededRandom(5)).astype(np.float64)
    assert np.abs(out).mean() == pytest.approx(2.0**55, rel=0.05)
    assert np.count_nonzero(out > 0) == pytest.approx(5000, abs=250)


@BOTH
def test_noise_knows_nothing_of_the_statistic(kind):
    mechanism = kind(scale=2.5)
    low = mechanism.randomise(np.zeros((500, 1), dtype=np.int64), WHOLE, SeededRandom(7))
    top = mechanism.randomise(np.full((500, 1), 2**63 - 1, dtype=np.int64), WHOLE, SeededRandom(7))
    assert ((top - low) == np.int64(2**63 - 1)).all()  # modulo 2**64
    assert low.std() > 1.0


def test_skellam_noise_has_its_event_and_its_law():
    mechanism = SkellamMechanism(variance=6.0)
    assert mechanism.event(shifts(2.0), A) == SkellamEvent(variance=6.0, sensitivity=2, adjacency=A)
    vector = mechanism.event(shifts(3.0, 4.0), A)
    assert vector == SkellamVectorEvent(variance=6.0, l2_sensitivity=5.0, adjacency=A)
    moved = mechanism.event(BoxShifts.moved(boxes=((1.0,),)), R)
    assert isinstance(moved, SkellamVectorEvent)
    assert moved.l2_sensitivity**2 >= 2.0
    n = 500_000
    out = mechanism.randomise(np.zeros((n, 1), dtype=np.int64), WHOLE, SeededRandom(20_261_123))[:, 0]
    z = np.arange(-12, 13)
    expected = np.append(n * ive(np.abs(z), 6.0), 0.0)  # e^{-v} I_z(v)
    expected[-1] = n - expected.sum()
    counts = np.array([*(np.count_nonzero(out == k) for k in z), np.count_nonzero(np.abs(out) > 12)])
    assert chi2.sf(float(((counts - expected) ** 2 / expected).sum()), len(z)) > 1e-4


@pytest.mark.parametrize("variance", [0.0, -1.0, 1e-7, 1e10, math.nan, math.inf, None])
def test_bad_variances_are_refused(variance):
    with pytest.raises(InvalidParameter, match="variance=.*unit"):
        SkellamMechanism(variance=variance)


@BOTH
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, None, 1e17])
def test_bad_scales_are_refused(kind, scale):
    with pytest.raises(InvalidParameter, match="scale=.*unit"):
        kind(scale=scale)


@BOTH
def test_a_grid_that_is_not_of_whole_numbers_is_refused_before_the_budget_moves(kind):
    mechanism = kind(scale=2.0)
    for grid in (Grid(exponents=(-1,)), Grid(exponents=(1,))):
        with pytest.raises(InvalidParameter, match="whole numbers"):
            mechanism.require_fit(grid)
        with pytest.raises(InvalidParameter, match="whole numbers"):
            mechanism.randomise(np.zeros((2, 1), dtype=np.int64), grid, SeededRandom(1))
    mechanism.require_fit(Grid(exponents=(0, 0)))
    with pytest.raises(InvalidParameter, match="columns"):
        mechanism.randomise(np.zeros((2, 3), dtype=np.int64), WHOLE, SeededRandom(1))


def test_what_the_events_cannot_sum_is_refused_by_the_event():
    with pytest.raises(UnsupportedEvent, match="ZeroConcentratedEvent"):
        DiscreteGaussianMechanism(scale=1e5).event(shifts(1.0), A)
    with pytest.raises(InvalidParameter, match=r"scale=0\.001"):
        DiscreteGaussianMechanism(scale=0.001)


def test_one_number_with_wide_skellam_noise_has_the_event_of_a_vector():
    wide = SkellamMechanism(variance=2.0**28).event(shifts(2.0**14), A)
    assert wide == SkellamVectorEvent(variance=2.0**28, l2_sensitivity=2.0**14, adjacency=A)
    # Where both exist, the vector's bound is no less than the number's divergence.
    orders = np.array([1.5, 2.0, 7.5, 64.0])
    one = SkellamMechanism(variance=1e6).event(shifts(900.0), A)
    assert isinstance(one, SkellamEvent)
    bound = SkellamVectorEvent(variance=1e6, l2_sensitivity=900.0, adjacency=A).renyi(orders)
    assert (bound >= one.renyi(orders)).all()
