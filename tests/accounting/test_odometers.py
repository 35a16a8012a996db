"""Odometers: no adversary who picks events and the moment to stop exceeds what they read; bounds, laws, bad input."""

import functools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    BoundedRangeEvent,
    Budget,
    Composed,
    Direction,
    GaussianEvent,
    GDPEvent,
    LaplaceEvent,
    Ledger,
    PoissonSampled,
    PrivacyUnit,
    ProfileEvent,
    PureEvent,
    PureOdometer,
    RenyiEvent,
    RenyiFilter,
    RenyiOdometer,
    Repeated,
    WhitehouseOdometer,
    ZeroConcentratedEvent,
    price,
)
from ledgerwood.accounting.costs import concentrated, gdp
from ledgerwood.errors import AdjacencyMismatch, BudgetExceeded, InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
STEP = 0.25  # losses are whole multiples of it
PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "odometers.md"


def pure(steps):
    return PureEvent(epsilon=STEP * steps, adjacency=A)


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def strongest(reading, menu, horizon, worth, allowance=math.inf):
    """sup over all who choose each next randomised response and when to stop of E_P worth(loss, reading then).

    `menu`: pairs (steps, delta): with probability delta all is revealed, worth 1 at once. By backward induction over
    (how often each was taken, loss so far), which is all that the future depends on.
    """

    @functools.cache
    def read(taken):
        events = []
        for (steps, delta), count in zip(menu, taken, strict=True):
            event = ApproximateEvent(epsilon=STEP * steps, delta=delta, adjacency=A) if delta else pure(steps)
            events += [event] * count
        return reading(events)

    @functools.cache
    def gain(taken, loss):
        best = worth(STEP * loss, read(taken))
        if sum(taken) == horizon:
            return best
        for index, (steps, delta) in enumerate(menu):
            after = (*taken[:index], taken[index] + 1, *taken[index + 1 :])
            if sum(count * Fraction(d) for count, (_, d) in zip(after, menu, strict=True)) > allowance:
                continue
            truth = 1.0 / (1.0 + math.exp(-STEP * steps))
            value = truth * gain(after, loss + steps) + (1.0 - truth) * gain(after, loss - steps)
            best = max(best, delta + (1.0 - delta) * value)
        return best

    return gain((0,) * len(menu), 0)


def hockey_stick(loss, reading):
    return max(0.0, -math.expm1(reading - loss))


def exceeds(loss, reading):
    return float(loss > reading)


MENU = [(1, 0.0), (2, 0.0), (5, 0.0)]


@pytest.mark.slow  # many runs of an adversary
@pytest.mark.parametrize(
    ("odometer", "least"),
    [
        (RenyiOdometer(delta=0.05), 0.15),
        (RenyiOdometer(delta=0.3), 0.15),
        (RenyiOdometer(delta=0.05, orders=(3.0,)), 0.25),
        (RenyiOdometer(delta=0.05, orders=(1.5, 2.0, 4.0, 8.0)), 0.2),
        (PureOdometer(), 0.0),
    ],
)
def test_whoever_stops_when_it_suits_him_gains_at_most_delta(odometer, least):
    found = strongest(odometer.epsilon, MENU, 11, hockey_stick)
    assert found <= odometer.delta
    assert found >= least * odometer.delta  # the adversary is no straw man


@pytest.mark.slow  # many runs of an adversary
@pytest.mark.parametrize(
    "odometer", [RenyiOdometer(delta=0.05), RenyiOdometer(delta=0.3), RenyiOdometer(delta=0.05, orders=(2.0,))]
)
def test_the_loss_exceeds_its_bound_at_any_time_with_probability_at_most_delta(odometer):
    found = strongest(odometer.loss, MENU, 11, exceeds)
    assert 0.1 * odometer.delta < found <= odometer.delta
    assert strongest(PureOdometer().epsilon, MENU[:2], 8, exceeds) == 0.0


@pytest.mark.slow  # many runs of an adversary
def test_the_epsilon_of_a_stopped_transcript_is_no_bound_on_the_loss():
    odometer = RenyiOdometer(delta=0.05, orders=(2.0,))
    assert strongest(odometer.epsilon, MENU, 11, exceeds) > 2 * odometer.delta
    assert strongest(odometer.epsilon, MENU, 11, hockey_stick) <= odometer.delta


@pytest.mark.slow  # many runs of an adversary
def test_a_filters_price_read_at_a_chosen_moment_is_found_out():
    """The same adversary breaks the price of the events so far, were it read as an odometer."""

    def peeked(events):
        return price(Composed(tuple(events)), method="renyi").epsilon(0.3) if events else 0.0

    assert strongest(peeked, [(1, 0.0)], 60, exceeds) > 0.3
    exact = functools.cache(lambda n: price(Repeated(pure(1), count=n)).epsilon(0.05) if n else 0.0)
    assert strongest(lambda events: exact(len(events)), [(1, 0.0)], 120, hockey_stick) > 0.05


@pytest.mark.parametrize(
    ("odometer", "menu"),
    [
        (WhitehouseOdometer(delta=0.06, delta_prime=0.05), [(1, 0.0), (2, 0.005), (4, 0.002)]),
        (WhitehouseOdometer(delta=0.2, delta_prime=0.1, orders=(2.0, 4.0)), [(1, 0.0), (1, 0.02), (3, 0.05)]),
    ],
)
def test_points_with_their_deltas_keep_theirs(odometer, menu):
    allowance = Fraction(odometer.delta) - Fraction(odometer.delta_prime)
    found = strongest(odometer.epsilon, menu, 12, hockey_stick, allowance)
    assert found <= odometer.delta
    assert found > 0.2 * odometer.delta
    assert found > float(allowance)  # the deltas alone are not all of it


@pytest.mark.slow_after(1)  # many runs of an adversary
@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("odometer", [RenyiOdometer(delta=0.1), RenyiOdometer(delta=0.1, orders=(3.0,))])
def test_samples_are_counted_in_the_dearer_direction(odometer, direction):
    """The same adversary with sampled responses, whose two directions differ; `pure` ones beside them."""
    rates, steps, horizon = (0.3, 0.6, 1.0), (8, 6, 2), 8
    menu = [PoissonSampled(pure(n), sampling_rate=rate) for n, rate in zip(steps, rates, strict=True)]
    outcomes = []
    for n, rate in zip(steps, rates, strict=True):
        truth = 1.0 / (1.0 + math.exp(-STEP * n))
        without = (1.0 - truth, truth)
        with_row = tuple((1 - rate) * a + rate * b for a, b in zip(without, without[::-1], strict=True))
        pair = (with_row, without) if direction is Direction.REMOVE else (without, with_row)
        outcomes.append([(a, math.log(a / b)) for a, b in zip(*pair, strict=True)])

    @functools.cache
    def read(taken):
        events = [event for event, count in zip(menu, taken, strict=True) for _ in range(count)]
        return odometer.epsilon(events), odometer.loss(events)

    @functools.cache
    def gain(seen, which):
        taken = tuple(seen[2 * i] + seen[2 * i + 1] for i in range(len(menu)))
        loss = math.fsum(seen[2 * i + j] * outcomes[i][j][1] for i in range(len(menu)) for j in range(2))
        best = (hockey_stick, exceeds)[which](loss - 1e-12, read(taken)[which])  # the sum of logs has rounding errors
        if sum(taken) == horizon:
            return best
        for i, pair in enumerate(outcomes):
            after = [tuple(n + (k == 2 * i + j) for k, n in enumerate(seen)) for j in range(2)]
            best = max(best, sum(p * gain(to, which) for (p, _), to in zip(pair, after, strict=True)))
        return best

    for which in range(2):
        found = gain((0,) * 6, which)
        assert found <= odometer.delta
        assert found > 0.05 * odometer.delta


@pytest.mark.slow  # many runs of an adversary
@pytest.mark.parametrize("odometer", [RenyiOdometer(delta=0.02), RenyiOdometer(delta=0.02, orders=(6.0,))])
def test_gaussian_noise_chosen_by_the_outputs(odometer):
    """200,000 sequences under P: wide noise while the loss is low, little of it when it is high; stops at its peak."""
    multipliers, horizon, n = (4.0, 1.5), 60, 200_000
    table, losses = np.full((2, horizon + 1, horizon + 1), np.nan)
    for a in range(horizon + 1):
        for b in range(horizon + 1 - a):
            events = [gaussian(multipliers[0])] * a + [gaussian(multipliers[1])] * b
            table[a, b], losses[a, b] = odometer.epsilon(events), odometer.loss(events)
    rng = np.random.default_rng(20_261_120)
    loss, taken = np.zeros(n), np.zeros((2, n), dtype=int)
    stopped, worth, ever = np.zeros(n, dtype=bool), np.zeros(n), np.zeros(n, dtype=bool)
    for _ in range(horizon):
        hot = loss > 0.55 * table[taken[0], taken[1]]
        mu = np.where(hot, 1.0 / multipliers[1], 1.0 / multipliers[0])
        loss += rng.standard_normal(n) * mu + 0.5 * mu**2
        taken[0] += ~hot
        taken[1] += hot
        now = table[taken[0], taken[1]]
        ever |= loss > losses[taken[0], taken[1]]
        peak = ~stopped & (loss > now + 0.25)
        worth[peak] = -np.expm1(now[peak] - loss[peak])
        stopped |= peak
    for found in (worth, ever):
        assert found.mean() + 5.0 * found.std() / math.sqrt(n) <= odometer.delta
        assert found.mean() > 0.02 * odometer.delta


def exact_reading(orders, divergences, delta, at_all_times):
    """The mixture's reading by bisection in 30 digits, the worst loss by a second one."""
    with mp.workdps(30):
        gaps = [mpf(a) - 1 for a in orders]

        def log_mixture(loss):
            return mp.log(
                mp.fsum(mp.exp(g * (loss - mpf(d))) for g, d in zip(gaps, divergences, strict=True)) / len(gaps)
            )

        def slope(loss):
            terms = [mp.exp(g * (loss - mpf(d))) for g, d in zip(gaps, divergences, strict=True)]
            return mp.fsum(g * t for g, t in zip(gaps, terms, strict=True)) / mp.fsum(terms)

        def excess(u):
            if at_all_times:
                return -log_mixture(u)
            low, high = mpf(-60), mpf(30)  # log of x = loss - u; 1 / (e^x - 1) falls, the slope grows
            for _ in range(60):
                mid = (low + high) / 2
                x = mp.exp(mid)
                low, high = (mid, high) if 1 / mp.expm1(x) > slope(u + x) else (low, mid)
            x = mp.exp(low)
            return mp.log(-mp.expm1(-x)) - log_mixture(u + x)

        low, high = mpf(-50), mpf(10**6)
        for _ in range(75):
            mid = (low + high) / 2
            low, high = (mid, high) if excess(mid) > mp.log(mpf(delta)) else (low, mid)
        return high


@pytest.mark.slow  # many runs of an adversary
@pytest.mark.parametrize("at_all_times", [False, True])
@pytest.mark.parametrize("delta", [0.2, 1e-9])
@pytest.mark.parametrize("rho", [1e-4, 0.1, 500.0])
def test_the_search_finds_the_least_reading(rho, delta, at_all_times):
    orders = tuple(1.0 + 2.0**k for k in range(-5, 14, 3))
    odometer, event = RenyiOdometer(delta=delta, orders=orders), ZeroConcentratedEvent(rho=rho, adjacency=A)
    found = mpf((odometer.loss if at_all_times else odometer.epsilon)([event]))
    truth = exact_reading(orders, event.renyi(np.array(orders)), delta, at_all_times)
    assert max(truth, 0) * (1 - mpf("1e-18")) <= found <= max(truth, 0) * (1 + mpf("1e-9")) + mpf("1e-12")


def test_one_order_reads_what_the_filter_of_that_order_charges():
    budget = Budget(epsilon=4.0, delta=1e-6, adjacency=A)
    step = PoissonSampled(gaussian(1.5), sampling_rate=0.01)
    plans = [gaussian(8.0), Repeated(step, count=300), LaplaceEvent(noise_multiplier=9.0, adjacency=A)]
    for order in (8.0, 12.5):
        filter_ = RenyiFilter(order=order)
        spent = filter_.spent([filter_.charge(plan, [], budget, None) for plan in plans], budget).epsilon
        found = RenyiOdometer(delta=1e-6, orders=(order,)).epsilon(plans)
        assert found == pytest.approx(spent, rel=1e-12)


EVENTS = st.one_of(
    st.floats(0.5, 60.0).map(gaussian),
    st.floats(0.01, 2.0).map(lambda e: PureEvent(epsilon=e, adjacency=A)),
    st.floats(0.5, 50.0).map(lambda s: LaplaceEvent(noise_multiplier=s, adjacency=A)),
    st.floats(0.01, 2.0).map(lambda e: BoundedRangeEvent(epsilon=e, adjacency=A)),
    st.floats(0.05, 1.0).map(lambda m: GDPEvent(mu=m, adjacency=A)),
)
ODOMETERS = [RenyiOdometer(delta=1e-5), RenyiOdometer(delta=1e-5, orders=(2.0, 20.0, 200.0))]


@settings(max_examples=30, deadline=None)
@given(events=st.lists(EVENTS, min_size=1, max_size=6), more=EVENTS)
def test_laws(events, more):
    for odometer in ODOMETERS:
        found = odometer.epsilon(events)
        assert 0.0 <= found <= odometer.loss(events)
        assert found <= odometer.epsilon([*events, more]) * (1.0 + 1e-12)
        assert found == pytest.approx(odometer.epsilon(events[::-1]), rel=1e-13)
        assert found == pytest.approx(odometer.epsilon([Composed(tuple(events))]), rel=1e-9)
        sums = math.fsum(event.pure_epsilon() for event in events)
        assert odometer.loss(events) <= sums * (1.0 + 1e-14)
        points = WhitehouseOdometer(delta=1e-5 + 1e-7, delta_prime=1e-5, orders=odometer.orders)
        assert points.epsilon(events) == pytest.approx(found, rel=1e-12)


@settings(max_examples=25, deadline=None)
@given(multipliers=st.lists(st.floats(0.3, 100.0), min_size=1, max_size=8), delta=st.floats(1e-12, 0.3))
def test_no_reading_is_below_the_exact_price_of_a_fixed_sequence(multipliers, delta):
    events = [gaussian(multiplier) for multiplier in multipliers]
    exact = gdp.epsilon(math.sqrt(math.fsum(m**-2.0 for m in multipliers)) * (1 - 1e-15), delta)
    for odometer in (RenyiOdometer(delta=delta), RenyiOdometer(delta=delta, orders=(8.0,))):
        assert odometer.epsilon(events) >= exact * (1 - 1e-12)


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(st.integers(1, 6), min_size=1, max_size=9), delta=st.floats(1e-6, 0.3))
def test_nor_below_that_of_randomised_responses(steps, delta):
    losses = {0: 1.0}
    for step in steps:
        truth, after = 1.0 / (1.0 + math.exp(-STEP * step)), {}
        for loss, mass in losses.items():
            after[loss + step] = after.get(loss + step, 0.0) + mass * truth
            after[loss - step] = after.get(loss - step, 0.0) + mass * (1.0 - truth)
        losses = after
    for odometer in (RenyiOdometer(delta=delta), WhitehouseOdometer(delta=delta, delta_prime=delta)):
        found = odometer.epsilon([pure(step) for step in steps])
        exact = math.fsum(mass * max(0.0, -math.expm1(found - STEP * loss)) for loss, mass in losses.items())
        assert exact <= delta


def test_points_count_as_randomised_responses_beside_their_deltas():
    odometer = WhitehouseOdometer(delta=1e-5, delta_prime=9e-6)
    point = ApproximateEvent(epsilon=0.1, delta=1e-8, adjacency=A)
    alone = RenyiOdometer(delta=9e-6).epsilon([PureEvent(epsilon=0.1, adjacency=A)] * 90)
    assert odometer.epsilon([point] * 90) == pytest.approx(alone, rel=1e-12)
    assert odometer.epsilon([Repeated(Composed((point, point)), count=45)]) == pytest.approx(alone, rel=1e-12)
    assert odometer.epsilon([Repeated(point, count=10**6 // 10**5)]) < alone
    with pytest.raises(BudgetExceeded, match="deltas sum to") as refusal:
        odometer.epsilon([point] * 101)
    assert refusal.value.requested["delta"] > refusal.value.remaining["delta"]
    # advanced composition of 90 points, as published for a number of steps known beforehand
    published = math.sqrt(2 * 0.9 * math.log(1 / 9e-6)) + 0.45
    tuned = RenyiOdometer(delta=9e-6, orders=(1.0 + math.sqrt(2 * math.log(1 / 9e-6) / 0.9),))
    assert tuned.epsilon([PureEvent(epsilon=0.1, adjacency=A)] * 90) < 0.87 * published


def test_a_rare_draw_of_a_million_is_counted_without_listing_it():
    plan = Repeated(ApproximateEvent(epsilon=1e-4, delta=1e-13, adjacency=A), count=10**6)
    found = WhitehouseOdometer(delta=2e-6, delta_prime=1e-6).epsilon([plan])
    assert found == pytest.approx(RenyiOdometer(delta=1e-6).epsilon([Repeated(pure(4e-4), count=10**6)]), rel=1e-9)


def test_it_reads_a_ledger():
    ledger = Ledger(Budget(epsilon=50.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)
    odometer = RenyiOdometer(delta=1e-6)
    assert ledger.plans == ()
    assert odometer.epsilon(ledger.plans) == 0.0
    step = PoissonSampled(gaussian(2.0), sampling_rate=0.05)
    grant = ledger.grant(Repeated(step, count=50), purpose="train", delta=1e-6)
    first = odometer.epsilon(ledger.plans)
    grant.draw(step, purpose="step 1")
    assert odometer.epsilon(ledger.plans) == first > 0.0  # granted is spent, drawn or not
    ledger.spend(pure(1), purpose="a count")
    assert ledger.plans == (Repeated(step, count=50), pure(1))
    assert odometer.epsilon(ledger.plans) > first


def test_a_sampled_gaussian_needs_no_order_chosen_beforehand():
    plan = Repeated(PoissonSampled(gaussian(1.0), sampling_rate=0.01), count=10_000)
    found = RenyiOdometer(delta=1e-5).epsilon([plan])
    assert price(plan).epsilon(1e-5) < price(plan, method="renyi").epsilon(1e-5) < found < 7.8


def test_pure_sums_are_exact():
    third = PureEvent(epsilon=1 / 3, adjacency=A)
    assert Fraction(PureOdometer().epsilon([third] * 7)) >= 7 * Fraction(1 / 3)
    assert PureOdometer().epsilon([third] * 7) == pytest.approx(7 / 3, rel=1e-15)
    with pytest.raises(UnsupportedEvent, match="pure events only"):
        PureOdometer().epsilon([third, gaussian(1.0)])


def test_what_has_no_divergence_is_refused_and_told_where_to_go():
    curve = ProfileEvent(epsilons=(0.0, 1.0), deltas=(0.1, 1e-6), adjacency=A)
    for event in (ApproximateEvent(epsilon=0.1, delta=1e-9, adjacency=A), curve):
        with pytest.raises(UnsupportedEvent, match="ApproximateEvent"):
            RenyiOdometer(delta=1e-5).epsilon([gaussian(1.0), event])
    with pytest.raises(UnsupportedEvent, match="ApproximateEvent"):
        WhitehouseOdometer(delta=1e-5, delta_prime=1e-6).epsilon([curve])


@pytest.mark.parametrize("odometer", [*ODOMETERS, PureOdometer(), WhitehouseOdometer(delta=0.1, delta_prime=0.05)])
def test_bad_events(odometer):
    assert odometer.epsilon([]) == 0.0
    assert odometer.epsilon(iter([])) == 0.0
    with pytest.raises(AdjacencyMismatch, match="odometer"):
        odometer.epsilon([pure(1), PureEvent(epsilon=0.1, adjacency=Adjacency.REPLACE_ONE)])
    with pytest.raises(InvalidParameter, match="not an event"):
        odometer.epsilon([0.5])


@pytest.mark.parametrize("value", [0.0, 1.0, -1e-6, math.nan, "1e-6", True, None])
def test_a_delta_outside_its_bound_is_refused(value):
    with pytest.raises(InvalidParameter, match="delta="):
        RenyiOdometer(delta=value)
    with pytest.raises(InvalidParameter, match="delta="):
        WhitehouseOdometer(delta=value, delta_prime=1e-6)
    with pytest.raises(InvalidParameter, match="delta_prime="):
        WhitehouseOdometer(delta=0.5, delta_prime=value)


def test_the_share_for_adding_up_is_part_of_delta():
    with pytest.raises(InvalidParameter, match=r"delta_prime=0\.2 must be at most delta=0\.1"):
        WhitehouseOdometer(delta=0.1, delta_prime=0.2)


@pytest.mark.parametrize("orders", [(), (1.0,), (0.5, 2.0), (2.0, 2.0), (math.inf,), (1e7,), "23", 2.0, ("2",), None])
def test_orders_outside_their_bounds_are_refused(orders):
    for make in (
        functools.partial(RenyiOdometer, delta=0.1),
        functools.partial(WhitehouseOdometer, delta=0.1, delta_prime=0.1),
    ):
        with pytest.raises(InvalidParameter, match=r"orders=.*Renyi order"):
            make(orders=orders)


def test_the_table_of_costs_is_what_it_says():
    rows = re.findall(
        r"^\| ([\d.e-]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", PAGE.read_text(), re.MULTILINE
    )
    assert [float(row[0]) for row in rows] == [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0]
    at_22 = RenyiOdometer(delta=1e-6, orders=(22.0,))
    odometer = RenyiOdometer(delta=1e-6)
    for epsilon, *stated in (map(float, row) for row in rows):
        rho = concentrated.largest_rho(epsilon, 1e-6)
        event = ZeroConcentratedEvent(rho=rho, adjacency=A)
        found = (
            odometer.epsilon([event]) / epsilon,
            odometer.loss([event]) / epsilon,
            at_22.epsilon([event]) / epsilon,
            gdp.epsilon(math.sqrt(2 * rho), 1e-6) / epsilon,
        )
        assert found == pytest.approx(stated, abs=0.0051)
    event = ZeroConcentratedEvent(rho=concentrated.largest_rho(1.0, 1e-6), adjacency=A)
    assert "reads 1.05 at" in PAGE.read_text()
    assert RenyiOdometer(delta=1e-6, orders=(10.0, 22.0, 50.0)).epsilon([event]) == pytest.approx(1.05, abs=0.0051)


EVENTS = [
    gaussian(3.0), pure(1), gaussian(7.0), PoissonSampled(gaussian(1.0), sampling_rate=0.01), pure(1), gaussian(3.0),
    Repeated(LaplaceEvent(noise_multiplier=9.0, adjacency=A), count=3), *(gaussian(50.0 + k) for k in range(40)),
]  # fmt: skip
READINGS = {
    "all scales": RenyiOdometer(delta=1e-6),
    "one order": RenyiOdometer(delta=1e-5, orders=(22.0,)),
    "points": WhitehouseOdometer(delta=1e-5, delta_prime=4e-6),
}


@pytest.mark.parametrize("odometer", READINGS.values(), ids=READINGS)
def test_a_running_reading_is_the_whole_ones_bit_for_bit(odometer):
    one, parts = odometer.start(), odometer.start().after(EVENTS[:11]).after(iter(EVENTS[11:]))
    for event in EVENTS:
        one = one.after([event])
    assert one.epsilon == parts.epsilon == odometer.epsilon(EVENTS) > 0.0
    assert one == parts  # the state as well: it keeps sums, and no event
    assert (one.events, one.adjacency) == (len(EVENTS), A)
    if isinstance(odometer, RenyiOdometer):
        assert one.loss == odometer.loss(EVENTS) > one.epsilon
    else:
        with pytest.raises(UnsupportedEvent, match="WhitehouseOdometer bounds no loss"):
            _ = one.loss


def test_a_running_odometer_reads_what_was_granted_since():
    ledger = Ledger(Budget(epsilon=9.0, delta=1e-6, adjacency=A), unit=PrivacyUnit.ROW)
    state = PureOdometer().start()
    for steps in (1, 2, 1):
        ledger.grant(pure(steps), purpose="plan")
        state = state.after(ledger.plans_since(state.events))
    assert state.epsilon == state.loss == PureOdometer().epsilon(ledger.plans) == 4 * STEP
    with pytest.raises(UnsupportedEvent, match="pure events only"):
        state.after([gaussian(1.0)])
    with pytest.raises(AdjacencyMismatch):
        state.after([PureEvent(epsilon=0.1, adjacency=Adjacency.ZERO_OUT)])
    assert state.after([]) == state


def test_a_running_odometer_drops_orders_for_good_and_counts_deltas():
    point = ApproximateEvent(epsilon=0.1, delta=2e-6, adjacency=A)
    state = READINGS["points"].start().after([point] * 3)
    assert state.epsilon == READINGS["points"].epsilon([point] * 3)
    over = state.after([point])
    with pytest.raises(BudgetExceeded, match="the deltas sum to"):
        _ = over.epsilon
    few = RenyiOdometer(delta=1e-6, orders=(1.5, 8.0))
    stated = RenyiEvent(orders=(1.2, 2.0), divergences=(0.1, 0.2), adjacency=A)
    assert few.start().after([stated]).after([gaussian(5.0)]).epsilon == few.epsilon([gaussian(5.0), stated])


def test_a_sum_is_not_below_the_exact_one():
    """Orders' divergences are summed exactly: each reading of one order is the conversion of the rounded-up sum."""
    events = [gaussian(3.0 + k / 7) for k in range(300)]
    order = 22.0
    exact = sum(Fraction(float(event.renyi(np.array([order]))[0])) for event in events)
    state = RenyiOdometer(delta=1e-6, orders=(order,)).start().after(events)
    assert Fraction(state._divergences[0], 2**1074) == exact
