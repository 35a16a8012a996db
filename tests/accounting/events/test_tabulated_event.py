import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.accounting import price
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import (
    ApproximateEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    ProfileEvent,
    PureEvent,
    Repeated,
)
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
ORDERS = [1 + 1e-6, 1.5, 2.0, 8.0, 64.0]
GRID = np.array([0.0, 0.1, 0.5, 0.69, 0.7, 0.9, 3.0, 600.0])


def table(epsilons, deltas) -> ProfileEvent:
    return ProfileEvent(epsilons=tuple(epsilons), deltas=tuple(deltas), adjacency=A)


def tabulate(event: Event, grid: np.ndarray) -> ProfileEvent:
    values = np.exp(event.log_profile(grid, direction=Direction.REMOVE))
    return table(grid.tolist(), values.tolist())


def same_profile(one: Event, other: Event, tolerance: float = 1e-12) -> None:
    for direction in Direction:
        left, right = (e.log_profile(GRID, direction=direction) for e in (one, other))
        np.testing.assert_allclose(np.exp(left), np.exp(right), rtol=tolerance, atol=1e-15)


@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_one_point_is_the_worst_mechanism_that_keeps_it(rate: float) -> None:
    pure = table((0.7,), (0.0,))
    assert pure.pure_epsilon() == 0.7
    one, other = (PoissonSampled(e, sampling_rate=rate) for e in (pure, PureEvent(epsilon=0.7, adjacency=A)))
    same_profile(one, other)
    for direction in Direction:
        np.testing.assert_allclose(
            one.renyi(ORDERS, direction=direction), other.renyi(ORDERS, direction=direction), rtol=1e-12
        )
    open_ = PoissonSampled(table((0.7,), (0.01,)), sampling_rate=rate)
    same_profile(open_, PoissonSampled(ApproximateEvent(epsilon=0.7, delta=0.01, adjacency=A), sampling_rate=rate))
    assert open_.renyi([2.0]).tolist() == [math.inf]


@pytest.mark.parametrize("epsilon", [0.01, 1.3, 20.0])
def test_a_table_of_randomised_response_is_randomised_response(epsilon: float) -> None:
    """Its profile is straight in e^eps, so no number of points says more than the last."""
    pure = PureEvent(epsilon=epsilon, adjacency=A)
    event = tabulate(pure, np.linspace(0.0, epsilon, 7))
    np.testing.assert_allclose(event.renyi(ORDERS), pure.renyi(ORDERS), rtol=1e-11)
    same_profile(event, pure, 1e-11)


@pytest.mark.slow  # the truth by integrals or enumeration
@given(
    multiplier=st.floats(0.3, 5.0),
    grid=st.lists(st.floats(0.0, 6.0), min_size=1, max_size=12, unique=True).map(sorted),
    rate=st.floats(0.01, 1.0),
    gaussian=st.booleans(),
)
def test_a_table_never_understates_what_it_was_made_of(multiplier, grid, rate, gaussian) -> None:
    leaf = GaussianEvent if gaussian else LaplaceEvent
    known = leaf(noise_multiplier=multiplier, adjacency=A)
    values = np.exp(known.log_profile(grid, direction=Direction.REMOVE))
    if np.any((values > 0.0) & (values < 1e-300)):
        return
    one = PoissonSampled(table(grid, values.tolist()), sampling_rate=rate)
    other = PoissonSampled(known, sampling_rate=rate)
    t = np.linspace(0.0, 7.0, 40)
    for direction in Direction:
        left, right = (np.exp(e.log_profile(t, direction=direction)) for e in (one, other))
        assert np.all(left >= right * (1.0 - 1e-12) - 1e-18)
        assert np.all(one.renyi(ORDERS, direction=direction) >= other.renyi(ORDERS, direction=direction) * (1 - 1e-11))


def test_a_fine_table_comes_close() -> None:
    known = LaplaceEvent(noise_multiplier=0.8, adjacency=A)
    event = tabulate(known, np.linspace(0.0, 1.25, 1001))
    np.testing.assert_allclose(event.renyi(ORDERS), known.renyi(ORDERS), rtol=1e-5)
    gaussian = GaussianEvent(noise_multiplier=1.0, adjacency=A)
    fine = tabulate(gaussian, np.linspace(0.0, 6.0, 2001))
    assert price(fine).epsilon(1e-5) == pytest.approx(4.377178, abs=1e-5)
    assert price(fine).epsilon(1e-5) >= price(gaussian).epsilon(1e-5)


@given(
    grid=st.lists(st.floats(0.01, 5.0), min_size=1, max_size=6, unique=True).map(sorted),
    deltas=st.lists(st.floats(1e-6, 0.99), min_size=6, max_size=6),
    pure=st.booleans(),
)
def test_the_chords_are_the_least_over_all_pairs_of_points(grid, deltas, pure) -> None:
    """By brute force in mpmath, on both sides of 1: the points, their mirror images, (0, 1) and the flat tail."""
    deltas = deltas[: len(grid)]
    if pure:
        deltas[-1] = 0.0
    event = table(grid, deltas)
    with mp.workdps(40):
        points = [(mp.mpf(0), mp.mpf(1))]
        for t, d in zip(grid, deltas, strict=True):
            x, d = mp.exp(mp.mpf(t)), mp.mpf(d)
            points += [(x, d), (1 / x, 1 - 1 / x + d / x)]
        for level in (0.0, 0.3, 1.1, 4.9, 6.0):
            x = mp.exp(mp.mpf(level))
            best = min(
                [mp.mpf(1)]
                + [y for u, y in points if u <= x]
                + [y + (w - y) * (x - u) / (v - u) for u, y in points for v, w in points if u <= x <= v and u < v]
            )
            found = mp.exp(mp.mpf(float(event.log_profile([level], direction=Direction.ADD)[0])))
            assert best * (1 - mp.mpf(10) ** -13) <= found <= best * (1 + mp.mpf(10) ** -11) + mp.mpf(10) ** -15


def test_points_that_say_nothing_are_passed_over() -> None:
    plain = table((0.5, 1.0), (0.1, 0.0))
    more = table((0.4, 0.5, 0.6, 0.99, 1.0, 2.0), (1.0, 0.1, 0.1, 0.9, 0.0, 0.5))
    same_profile(plain, more)
    np.testing.assert_allclose(plain.renyi(ORDERS), more.renyi(ORDERS), rtol=1e-14)
    assert more.pure_epsilon() == 1.0


def test_a_table_composes_only_where_it_closes() -> None:
    closed = table((0.0, 0.5, 1.0), (0.4, 0.1, 0.0))
    assert price(Repeated(closed, count=10)).epsilon(1e-6) < 10.0
    assert Repeated(closed, count=10).pure_epsilon() == 10.0
    with pytest.raises(UnsupportedEvent):
        price(Repeated(table((1.0,), (1e-6,)), count=2), method="renyi").epsilon(1e-5)


def test_far_points_and_small_deltas_are_numbers() -> None:
    event = table((0.0, 1e-12, 300.0, 700.0), (0.9, 0.89, 1e-200, 0.0))
    assert np.all(np.isfinite(event.renyi([1.01, 2.0, 1e4])))
    assert not np.isnan(event.log_profile([0.0, 1e-13, 1.0, 699.0, 700.0, math.inf], direction=Direction.ADD)).any()


@pytest.mark.parametrize(
    ("epsilons", "deltas"),
    [
        ((), ()),
        ((1.0,), ()),
        ((-0.1,), (0.1,)),
        ((701.0,), (0.1,)),
        ((1.0, 1.0), (0.2, 0.1)),
        ((2.0, 1.0), (0.2, 0.1)),
        ((1.0,), (1.0,)),
        ((1.0,), (1.1,)),
        ((1.0,), (-0.1,)),
        ((1.0,), (1e-310,)),
        ((0.0,), (0.0,)),
        ((math.nan,), (0.1,)),
        ("1", "0"),
    ],
)
def test_bad_tables_are_refused(epsilons, deltas) -> None:
    with pytest.raises(InvalidParameter):
        ProfileEvent(epsilons=epsilons, deltas=deltas, adjacency=A)
