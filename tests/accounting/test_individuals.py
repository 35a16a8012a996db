"""Rows priced one by one, against the ground truth and against the exact price of each row's own event."""

import csv
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    EllipticalGaussianEvent,
    Event,
    GaussianEvent,
    GDPEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PureEvent,
    Repeated,
)
from ledgerwood.accounting.individuals import OVERESTIMATE, IndividualGDP, IndividualRenyi
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
TRUTH = Path(__file__).parents[1] / "truth"
FAMILIES = {"gaussian": GaussianEvent, "laplace": LaplaceEvent}


def noisy(family: str, noise_multiplier: float, sampling_rate: float = 1.0) -> Event:
    leaf = FAMILIES[family](noise_multiplier=noise_multiplier, adjacency=A)
    return leaf if sampling_rate == 1.0 else PoissonSampled(leaf, sampling_rate=sampling_rate)


def scaled(event: Event, s: float) -> Event:
    """The row's own event: every noise multiplier divided by s."""
    match event:
        case GaussianEvent() | LaplaceEvent():
            return type(event)(noise_multiplier=event.noise_multiplier / s, adjacency=event.adjacency)
        case EllipticalGaussianEvent():
            shrunk = tuple(s * d for d in event.sensitivities)
            return EllipticalGaussianEvent(sensitivities=shrunk, stddevs=event.stddevs, adjacency=event.adjacency)
        case PoissonSampled(inner, sampling_rate=rate):
            return PoissonSampled(scaled(inner, s), sampling_rate=rate)
        case Repeated(inner, count=count):
            return Repeated(scaled(inner, s), count=count)
        case Composed(members):
            return Composed(tuple(scaled(member, s) for member in members))
        case Parallel(members):
            return Parallel.worst(scaled(member, s) for member in members)
        case _:
            raise AssertionError(event)


def allowed(order: float, sampling_rate: float) -> float:
    """The stated over-estimate."""
    return OVERESTIMATE * max(1.0, order * (1.0 - math.log(sampling_rate)) / 1e4)


@pytest.mark.slow  # the ground truth of each row, in mpmath
@pytest.mark.parametrize("sampling_rate", [1e-6, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_ground_truth_is_never_undercut(family, sampling_rate):
    """Every multiplier of the ground truth is a row of one event, of multiplier 0.3."""
    with (TRUTH / f"renyi_{family}.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if float(row["sampling_rate"]) == sampling_rate]
    rows = [row for row in rows if float(row["order"]) <= 64.0]
    orders = sorted({float(row["order"]) for row in rows})
    s = np.array([0.3 / float(row["noise_multiplier"]) for row in rows])
    found = IndividualRenyi(noisy(family, 0.3, sampling_rate), orders).at(s)
    assert len(rows) == 70
    for row, values in zip(rows, found, strict=True):
        truth = Fraction(row["remove"])
        value = Fraction(float(values[orders.index(float(row["order"]))]))
        assert 0 <= (value - truth) / truth <= OVERESTIMATE, row


@pytest.mark.slow  # the ground truth of each row, in mpmath
@settings(max_examples=30)
@given(
    family=st.sampled_from(sorted(FAMILIES)),
    log_rate=st.floats(-6.0, 0.0),
    log_multiplier=st.floats(math.log10(0.3), 2.0),
    log_excess_order=st.floats(-2.0, 4.0),
    log_s=st.lists(st.floats(-9.0, 0.0), min_size=1, max_size=6),
)
def test_no_row_is_below_its_own_event_or_far_above(family, log_rate, log_multiplier, log_excess_order, log_s):
    event, order = noisy(family, 10.0**log_multiplier, 10.0**log_rate), 1.0 + 10.0**log_excess_order
    s = np.array([*(10.0**x for x in log_s), 1.0])
    found = IndividualRenyi(event, order).at(s)
    own = np.array([scaled(event, value).renyi([order])[0] for value in s.tolist()])
    assert np.all(found >= own)
    assert np.all(found <= own * (1.0 + allowed(order, 10.0**log_rate)))


@pytest.mark.slow  # the ground truth of each row, in mpmath
@pytest.mark.parametrize(
    ("family", "noise_multiplier", "sampling_rate", "order"),
    [
        ("gaussian", 0.4, 0.5, 500.0),  # chords, and polynomials about them
        ("gaussian", 0.02, 0.1, 3.5),  # little noise: P and Q hardly overlap
        ("laplace", 0.2, 0.3, 500.5),
        ("laplace", 0.3, 1.0, 300.0),
        ("gaussian", 1.0, 1e-100, 8.0),
        ("laplace", 1e-100, 0.2, 2.0),
        ("gaussian", 1e100, 0.2, 2.0),
        ("gaussian", 1.0, 0.3, 1.0 + 1e-9),
    ],
)
def test_extremes_are_bounded_on_both_sides(family, noise_multiplier, sampling_rate, order):
    event = noisy(family, noise_multiplier, sampling_rate)
    least = max(1e-4, noise_multiplier / 1e100)
    s = np.exp(np.linspace(math.log(least), 0.0, 160))
    s[-1] = 1.0
    found = IndividualRenyi(event, order).at(s)
    own = np.array([scaled(event, value).renyi([order])[0] for value in s.tolist()])
    assert np.all(found >= own)
    assert np.all(found <= own * (1.0 + allowed(order, sampling_rate)))


COMBINED = [
    noisy("gaussian", 2.0),
    Repeated(noisy("gaussian", 1.0, 0.02), count=100),
    Composed((noisy("gaussian", 1.5, 0.1), noisy("laplace", 4.0), noisy("laplace", 9.0, 0.2), noisy("gaussian", 3.0))),
    Repeated(Composed((noisy("laplace", 3.0), Repeated(noisy("laplace", 3.0), count=4))), count=3),
    PoissonSampled(Composed((noisy("gaussian", 2.0), Repeated(noisy("gaussian", 5.0), count=7))), sampling_rate=0.05),
    PoissonSampled(PoissonSampled(noisy("laplace", 2.0), sampling_rate=0.3), sampling_rate=0.5),
    PoissonSampled(Composed((Repeated(noisy("laplace", 2.0), count=1),)), sampling_rate=0.25),
    PoissonSampled(Parallel.worst((noisy("gaussian", 2.0), noisy("gaussian", 3.0))), sampling_rate=0.25),
    PoissonSampled(
        EllipticalGaussianEvent(sensitivities=(1.0, 0.25), stddevs=(2.0, 3.0), adjacency=A), sampling_rate=0.1
    ),
    PoissonSampled(noisy("gaussian", 2.0), sampling_rate=1.0),
]


@pytest.mark.slow_after(1)  # the ground truth of each row, in mpmath
@pytest.mark.parametrize("event", COMBINED, ids=str)
def test_compositions_add_up_row_by_row(event):
    orders, s = np.array([1.25, 2.0, 17.0]), np.array([1e-7, 0.003, 0.25, 0.625, 1.0])
    found = IndividualRenyi(event, orders).at(s)
    own = np.array([scaled(event, value).renyi(orders) for value in s.tolist()])
    assert found.shape == (5, 3)
    assert np.all(found >= own)
    assert np.all(found <= own * (1.0 + OVERESTIMATE))


def test_zero_out_costs_what_add_remove_costs():
    other = PoissonSampled(GaussianEvent(noise_multiplier=2.0, adjacency=Adjacency.ZERO_OUT), sampling_rate=0.1)
    s = np.linspace(0.0, 1.0, 11)
    np.testing.assert_array_equal(
        IndividualRenyi(other, 8.0).at(s), IndividualRenyi(noisy("gaussian", 2.0, 0.1), 8.0).at(s)
    )


@pytest.mark.parametrize("event", COMBINED[:2], ids=str)
def test_a_row_that_contributes_nothing_costs_nothing_and_any_other_costs_something(event):
    found = IndividualRenyi(event, [1.5, 30.0]).at([0.0, 5e-324, 1e-200, 0.5, 0.0])
    np.testing.assert_array_equal(found[[0, 4]], np.zeros((2, 2)))
    assert np.all(found[1:4] > 0.0)


@pytest.mark.slow_after(1)  # the ground truth of each row, in mpmath
@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_that_contributes_more_costs_more_up_to_the_over_estimate(family):
    s = np.sort(np.random.default_rng(0).uniform(0.0, 1.0, 20_000))
    found = IndividualRenyi(noisy(family, 0.7, 0.03), [1.5, 30.0]).at(s)
    assert np.all(found[1:] >= found[:-1] * (1.0 - OVERESTIMATE))
    assert np.all(found[2000:] > found[:-2000])


def test_shapes_follow_orders_and_rows():
    event = noisy("gaussian", 1.0, 0.1)
    one, many = IndividualRenyi(event, 4.0), IndividualRenyi(event, [4.0, 5.5])
    assert one.at([]).shape == (0,)
    assert many.at([]).shape == (0, 2)
    assert many.at(np.array([0, 1])).shape == (2, 2)
    s = np.random.default_rng(1).uniform(0.0, 1.0, 20_001)  # more than one chunk
    np.testing.assert_allclose(one.at(s), many.at(s)[:, 0], rtol=1e-13)
    np.testing.assert_array_equal(one.at(s)[-3:], one.at(s[-3:]))
    np.testing.assert_array_equal(many.orders, [4.0, 5.5])
    assert IndividualRenyi(event, []).at(s).shape == (20_001, 0)


@pytest.mark.parametrize(
    "s", [[-1e-300], [1.0 + 2.0**-52], [0.5, math.nan], [math.inf], 0.5, [[0.5]], ["0.5"], [True], [0.5j], [None]]
)
def test_sensitivities_out_of_bounds_are_refused(s):
    for table in (IndividualRenyi(noisy("gaussian", 1.0), 2.0).at, IndividualGDP(noisy("gaussian", 1.0)).mu):
        with pytest.raises(InvalidParameter, match="sensitivities"):
            table(s)


@pytest.mark.parametrize("orders", [1.0, math.inf, [2.0, math.nan], 2.0**20 + 1.0, "2"])
def test_orders_out_of_bounds_are_refused(orders):
    with pytest.raises(InvalidParameter, match="orders"):
        IndividualRenyi(noisy("gaussian", 1.0, 0.1), orders)


def test_unsampled_gaussian_noise_has_no_largest_order():
    assert IndividualRenyi(noisy("gaussian", 1.0), 1e9).at([1.0])[0] == pytest.approx(5e8, rel=1e-12)


@pytest.mark.parametrize(
    "event",
    [
        GDPEvent(mu=1.0, adjacency=A),
        PureEvent(epsilon=1.0, adjacency=A),
        BoundedRangeEvent(epsilon=1.0, adjacency=A),
        ApproximateEvent(epsilon=1.0, delta=1e-6, adjacency=A),
        DiscreteGaussianEvent(scale=2.0, sensitivity=1, adjacency=A),
        Parallel((noisy("gaussian", 1.0), noisy("gaussian", 2.0)), probabilities=(0.5, 0.5)),
        Parallel.worst((noisy("gaussian", 1.0), noisy("laplace", 2.0))),
        Composed((noisy("gaussian", 1.0), GDPEvent(mu=1.0, adjacency=A))),
        PoissonSampled(Composed((noisy("gaussian", 1.0), noisy("laplace", 1.0))), sampling_rate=0.1),
        PoissonSampled(Repeated(noisy("laplace", 1.0), count=2), sampling_rate=0.1),
        PoissonSampled(Repeated(noisy("gaussian", 1.0, 0.5), count=2), sampling_rate=0.1),
    ],
    ids=str,
)
def test_events_that_do_not_scale_are_refused(event):
    with pytest.raises(UnsupportedEvent, match="no individual privacy cost"):
        IndividualRenyi(event, 2.0)


def test_replace_one_is_refused_with_the_reason():
    event = GaussianEvent(noise_multiplier=1.0, adjacency=Adjacency.REPLACE_ONE)
    for make in (lambda: IndividualRenyi(event, 2.0), lambda: IndividualGDP(event)):
        with pytest.raises(UnsupportedEvent, match="the row that takes this one's place may contribute as much as any"):
            make()
    with pytest.raises(InvalidParameter, match="not an event"):
        IndividualRenyi("gaussian", 2.0)


@pytest.mark.parametrize("event", [COMBINED[0], Composed((COMBINED[0], Repeated(COMBINED[0], count=9)))], ids=str)
def test_mu_of_each_row_is_that_of_its_own_event(event):
    s = np.array([1e-9, 0.003, 0.25, 0.7, 1.0])
    own = np.array([scaled(event, value).mu() for value in s.tolist()])
    mu, square = IndividualGDP(event).mu(s), IndividualGDP(event).mu_squared(s)
    assert np.all((own <= mu) & (mu <= own * (1.0 + 1e-14)))
    assert all(Fraction(a) ** 2 <= Fraction(b) for a, b in zip(own.tolist(), square.tolist(), strict=True))
    np.testing.assert_allclose(square, own**2, rtol=2e-14)


def test_mu_of_a_row_that_contributes_nothing_is_nothing():
    gdp = IndividualGDP(noisy("gaussian", 2.0))
    np.testing.assert_array_equal(gdp.mu([0.0, 0.0]), [0.0, 0.0])
    np.testing.assert_array_equal(gdp.mu_squared([0.0]), [0.0])
    assert gdp.mu([5e-324])[0] > 0.0
    assert gdp.mu_squared([1e-200])[0] > 0.0


@pytest.mark.parametrize(
    "event", [noisy("laplace", 1.0), noisy("gaussian", 1.0, 0.5), GDPEvent(mu=1.0, adjacency=A)], ids=str
)
def test_mu_is_refused_where_the_pair_is_not_gaussian(event):
    with pytest.raises(UnsupportedEvent, match="no exact individual mu"):
        IndividualGDP(event)
