import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.accounting import GDPFilter, Ledger, PrivacyUnit, price
from ledgerwood.accounting.adjacency import Adjacency, Budget, Direction
from ledgerwood.accounting.events import (
    ApproximateEvent,
    Composed,
    GaussianEvent,
    GDPEvent,
    Parallel,
    PoissonSampled,
    PureEvent,
    RenyiEvent,
    Repeated,
    ZeroConcentratedEvent,
)
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
ORDERS = [1 + 1e-6, 1.5, 2.0, 3.7, 8.0]
EPSILONS = [0.0, 0.3, 1.0, 4.0]
BOTH = list(Direction)


def gaussian(multiplier: float) -> GaussianEvent:
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def gdp(mu: float) -> GDPEvent:
    return GDPEvent(mu=mu, adjacency=A)


def renyi_event(orders, divergences) -> RenyiEvent:
    return RenyiEvent(orders=orders, divergences=divergences, adjacency=A)


def approximate(epsilon: float, delta: float) -> ApproximateEvent:
    return ApproximateEvent(epsilon=epsilon, delta=delta, adjacency=A)


# ------------------------------------------------------------------------------------------------------ Gaussian DP


@pytest.mark.parametrize("mu", [0.125, 0.5, 4.0])
@pytest.mark.parametrize("rate", [0.01, 1.0])
def test_gaussian_dp_is_the_gaussian_pair(mu: float, rate: float) -> None:
    stated = PoissonSampled(gdp(mu), sampling_rate=rate)
    known = PoissonSampled(gaussian(1.0 / mu), sampling_rate=rate)
    np.testing.assert_array_equal(stated.renyi(ORDERS), known.renyi(ORDERS))
    for direction in BOTH:
        np.testing.assert_array_equal(
            stated.log_profile(EPSILONS, direction=direction), known.log_profile(EPSILONS, direction=direction)
        )


def test_gaussian_dp_composes_to_one_mu_and_fits_the_filter() -> None:
    plan = Composed((Repeated(gdp(0.3), count=4), gaussian(1.0 / 0.8)))
    assert plan.mu() == pytest.approx(1.0, rel=1e-14)
    assert price(plan).epsilon(1e-5) == pytest.approx(4.377178, abs=1e-6)
    ledger = Ledger(Budget(epsilon=5.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW, filter=GDPFilter())
    ledger.grant(plan, purpose="a plan")
    assert ledger.spent().mu == pytest.approx(1.0, rel=1e-13)


def test_gaussian_dp_says_what_it_is() -> None:
    assert repr(gdp(0.5)) == f"GDPEvent(mu=0.5, adjacency={A!r})"
    assert gdp(1) == gdp(1.0) != gdp(2.0)
    assert hash(gdp(1)) == hash(gdp(1.0))
    with pytest.raises(AttributeError):
        gdp(1.0).limit = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, 1e-200, 1e200, None, True])
def test_bad_mu_and_rho_are_refused(value: object) -> None:
    with pytest.raises(InvalidParameter, match="mu="):
        GDPEvent(mu=value, adjacency=A)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="rho="):
        ZeroConcentratedEvent(rho=value, adjacency=A)  # type: ignore[arg-type]


@pytest.mark.parametrize("adjacency", [None, "add-remove", "x"])
def test_a_statement_needs_an_adjacency(adjacency: object) -> None:
    for make in (
        lambda: GDPEvent(mu=1.0, adjacency=adjacency),
        lambda: ZeroConcentratedEvent(rho=1.0, adjacency=adjacency),
        lambda: RenyiEvent(orders=(2.0,), divergences=(1.0,), adjacency=adjacency),
        lambda: ApproximateEvent(epsilon=1.0, delta=0.1, adjacency=adjacency),
    ):
        with pytest.raises(InvalidParameter, match="adjacency="):
            make()


# ------------------------------------------------------------------------------------------- zCDP and Renyi curves


def test_zero_concentrated_adds_up_and_never_understates() -> None:
    event = ZeroConcentratedEvent(rho=0.1, adjacency=A)
    for order, value in zip(ORDERS, event.renyi(ORDERS), strict=True):
        exact = mp.mpf(0.1) * mp.mpf(order)
        assert 0 <= (mp.mpf(float(value)) - exact) / exact < 1e-15
    many = Repeated(event, count=7)
    one = ZeroConcentratedEvent(rho=0.7, adjacency=A)
    np.testing.assert_allclose(many.renyi(ORDERS), one.renyi(ORDERS), rtol=1e-14)
    # a Gaussian of the same rho has these divergences, so the price by Renyi is one and the same
    same = gaussian(1.0 / math.sqrt(2.0 * 0.7))
    assert price(one).epsilon(1e-6) == pytest.approx(price(same, method="renyi").epsilon(1e-6), rel=1e-12)
    assert price(one).method == "renyi"


@pytest.mark.parametrize("event", [ZeroConcentratedEvent(rho=0.1, adjacency=A), renyi_event((2.0,), (0.1,))], ids=repr)
def test_a_curve_has_no_profile_and_no_sample(event) -> None:
    with pytest.raises(UnsupportedEvent, match="no privacy profile"):
        event.log_profile(EPSILONS, direction=Direction.REMOVE)
    sample = PoissonSampled(event, sampling_rate=0.1)
    with pytest.raises(UnsupportedEvent, match="cannot be sampled"):
        sample.renyi([2.0])
    with pytest.raises(UnsupportedEvent):
        price(sample)
    with pytest.raises(UnsupportedEvent):
        event.mu()
    whole = PoissonSampled(event, sampling_rate=1.0)
    np.testing.assert_array_equal(whole.renyi([1.5]), event.renyi([1.5]))


def test_a_curve_joins_groups() -> None:
    event = ZeroConcentratedEvent(rho=0.5, adjacency=A)
    groups = Parallel((event, gaussian(1.0)), probabilities=(0.25, 0.75))  # both have divergence a / 2
    np.testing.assert_allclose(groups.renyi(ORDERS), gaussian(1.0).renyi(ORDERS), rtol=1e-12)


@given(
    multiplier=st.floats(0.3, 10.0),
    grid=st.lists(st.floats(1.001, 100.0), min_size=2, max_size=6, unique=True).map(sorted),
    share=st.floats(0.0, 1.0),
)
def test_chords_bound_a_curve_from_above_and_touch_it_at_its_points(multiplier, grid, share) -> None:
    """The curve of a sampled Laplace-like truth is any convex one; here the Gaussian's."""
    known = PoissonSampled(gaussian(multiplier), sampling_rate=0.3)
    event = renyi_event(tuple(grid), tuple(known.renyi(grid).tolist()))
    np.testing.assert_allclose(event.renyi(grid), known.renyi(grid), rtol=1e-12)
    between = [1.0 + (grid[0] - 1.0) * max(share, 1e-3), grid[0] + share * (grid[1] - grid[0])]
    assert np.all(event.renyi(between) >= known.renyi(between) * (1 - 1e-13))


def test_chords_by_hand() -> None:
    event = renyi_event((2.0, 3.0, 5.0), (0.1, 10.0, 0.4))  # the second says less than the chord around it
    # (a - 1) D: 0 at 1, .1 at 2, 1.6 at 5
    np.testing.assert_allclose(event.renyi([1.5, 2.0, 3.0, 5.0]), [0.1, 0.1, 0.6 / 2.0, 0.4], rtol=1e-14)
    assert event.renyi([5.0 + 1e-9, 100.0]).tolist() == [math.inf, math.inf]
    earlier = renyi_event((2.0, 3.0), (0.5, 0.2))  # D does not fall: the later point bounds the earlier one
    np.testing.assert_allclose(earlier.renyi([1.1, 2.0, 3.0]), [0.2, 0.2, 0.2], rtol=1e-14)


def test_a_single_order_is_a_price() -> None:
    event = renyi_event((8.0,), (0.5,))
    a, rho, delta = 8.0, 0.5, 1e-6
    exact = rho + math.log1p(-1 / a) - (math.log(a) + math.log(delta)) / (a - 1)
    assert price(event).epsilon(delta) == pytest.approx(exact, rel=1e-6)
    assert price(event).epsilon(delta) >= exact
    assert price(Repeated(event, count=3)).epsilon(delta) == pytest.approx(exact + 1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("orders", "divergences"),
    [
        ((), ()),
        ((2.0,), ()),
        ((2.0,), (1.0, 2.0)),
        ((1.0,), (1.0,)),
        ((0.5,), (1.0,)),
        ((3.0, 2.0), (1.0, 1.0)),
        ((2.0, 2.0), (1.0, 1.0)),
        ((2.0,), (0.0,)),
        ((2.0,), (-1.0,)),
        ((2.0,), (math.inf,)),
        ((math.nan,), (1.0,)),
        ("2", "1"),
        (2.0, 1.0),
        (tuple(range(2, 10_003)), (1.0,) * 10_001),
    ],
)
def test_bad_curves_are_refused(orders, divergences) -> None:
    with pytest.raises(InvalidParameter):
        renyi_event(orders, divergences)


# ------------------------------------------------------------------------------------------------- (epsilon, delta)


@pytest.mark.parametrize("epsilon", [1e-6, 0.7, 30.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.4])
@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_approximate_by_enumeration_of_the_four_outcomes(epsilon: float, delta: float, rate: float) -> None:
    event = PoissonSampled(approximate(epsilon, delta), sampling_rate=rate)
    with mp.workdps(400):
        t, d, q = mp.mpf(epsilon), mp.mpf(delta), mp.mpf(rate)
        kept = (1 - d) / (1 + mp.exp(t))
        with_unit = [d, kept * mp.exp(t), kept, mp.mpf(0)]
        without = with_unit[::-1]
        mixed = [(1 - q) * y + q * x for x, y in zip(with_unit, without, strict=True)]
        for direction, (top, bottom) in zip(BOTH, ((mixed, without), (without, mixed)), strict=True):
            for level in (0.0, 0.5 * epsilon, 2.0 * epsilon, epsilon + 1.0):
                exact = mp.fsum(max(x - mp.exp(mp.mpf(level)) * y, 0) for x, y in zip(top, bottom, strict=True))
                found = mp.mpf(float(event.log_profile([level], direction=direction)[0]))
                if exact == 0:
                    assert found == -mp.inf
                else:
                    assert -1e-15 * (1 + abs(mp.log(exact))) <= found - mp.log(exact) < 1e-11 * (1 + 1 / exact**0.01)


def test_approximate_comes_back_as_it_was_stated() -> None:
    event = approximate(0.7, 1e-6)
    assert price(event).epsilon(1e-6) == pytest.approx(0.7, rel=1e-12)
    assert price(event).epsilon(1e-6) >= 0.7
    assert price(event).delta(0.7) == pytest.approx(1e-6, rel=1e-12)
    assert price(event).delta(1e3) >= 1e-6
    with pytest.raises(UnsupportedEvent):
        price(event).epsilon(1e-7)
    with pytest.raises(InvalidParameter, match="delta"):
        price(event).epsilon(0.0)


def test_approximate_has_no_renyi_divergence() -> None:
    event = approximate(0.7, 1e-6)
    for direction in (None, *BOTH):
        assert event.renyi(ORDERS, direction=direction).tolist() == [math.inf] * len(ORDERS)
        assert PoissonSampled(event, sampling_rate=0.1).renyi([2.0], direction=direction).tolist() == [math.inf]
    with pytest.raises(UnsupportedEvent, match="infinite"):
        price(Repeated(event, count=2), method="renyi").epsilon(1e-5)
    groups = Parallel((event, PureEvent(epsilon=0.7, adjacency=A)), probabilities=(0.0, 1.0))
    assert np.all(np.isfinite(groups.renyi(ORDERS)))


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan, None])
def test_bad_deltas_are_refused(delta: object) -> None:
    with pytest.raises(InvalidParameter, match="delta="):
        approximate(1.0, delta)  # type: ignore[arg-type]
