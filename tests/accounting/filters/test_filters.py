"""Filters add up what adaptive plans cost: exactly, in their own currency, and never beyond the budget."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import (
    Adjacency,
    BasicFilter,
    BoundedRangeEvent,
    Budget,
    Charge,
    GaussianEvent,
    GDPFilter,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    Repeated,
    calibrate,
    price,
)
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.filters import filter_from
from ledgerwood.errors import BudgetExceeded, InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def basic(epsilon, delta=0.0):
    return Charge(epsilon=epsilon, delta=delta, method="pure")


def test_basic_charges_the_tightest_price_at_the_given_delta():
    charge = BasicFilter().charge(gaussian(10.0), [], BUDGET, 1e-6)
    assert (charge.epsilon, charge.delta, charge.method) == (price(gaussian(10.0)).epsilon(1e-6), 1e-6, "profile")
    sampled = Repeated(PoissonSampled(gaussian(10.0), sampling_rate=0.1), count=10)
    charge = BasicFilter().charge(sampled, [], BUDGET, 1e-6)
    assert (charge.epsilon, charge.method, charge.order) == (price(sampled).epsilon(1e-6), "pld", None)
    sampled = Repeated(BoundedRangeEvent(epsilon=0.1, adjacency=A), count=1000)  # whose members are below its profile
    charge = BasicFilter().charge(sampled, [], BUDGET, 1e-6)
    assert (charge.method, charge.order) == ("renyi", price(sampled).quote(1e-6).order)


def test_no_delta_means_all_that_remains_for_gaussian_noise_and_none_for_a_pure_plan():
    spent = [basic(0.1, 4e-6)]
    assert BasicFilter().charge(pure(0.1), spent, BUDGET, None).delta == 0.0
    delta = BasicFilter().charge(gaussian(30.0), spent, BUDGET, None).delta
    assert 0 <= Fraction(1e-5) - Fraction(4e-6) - Fraction(delta) < Fraction(1e-5) / 2**50
    with pytest.raises(BudgetExceeded, match="no delta remains") as refusal:
        BasicFilter().charge(gaussian(30.0), [basic(0.1, 1e-5)], BUDGET, None)
    assert refusal.value.remaining["delta"] == 0.0
    with pytest.raises(InvalidParameter, match="delta"):
        BasicFilter().charge(gaussian(30.0), [], BUDGET, 0.0)


@given(st.lists(st.floats(1e-6, 0.5), min_size=1, max_size=12))
def test_basic_sums_are_exact_fractions(epsilons):
    spent = []
    for epsilon in epsilons:
        new = basic(epsilon)
        fits = sum(map(Fraction, [c.epsilon for c in [*spent, new]])) <= 1
        if fits:
            BasicFilter().admit(spent, new, BUDGET)
            spent.append(new)
        else:
            with pytest.raises(BudgetExceeded):
                BasicFilter().admit(spent, new, BUDGET)
    total = sum(Fraction(c.epsilon) for c in spent)
    assert Fraction(BasicFilter().spent(spent, BUDGET).epsilon) >= total
    assert Fraction(BasicFilter().remaining(spent, BUDGET).epsilon) <= 1 - total


def test_a_refusal_names_what_was_asked_and_what_is_left():
    with pytest.raises(BudgetExceeded, match=r"epsilon=0\.75 .*epsilon=0\.5.* left") as refusal:
        BasicFilter().admit([basic(0.5)], basic(0.75), BUDGET)
    assert refusal.value.requested == {"epsilon": 0.75, "delta": 0.0}
    assert refusal.value.remaining == {"epsilon": 0.5, "delta": 1e-5}


def test_a_refused_pure_plan_says_that_delta_may_be_given():
    plan = Repeated(LaplaceEvent(noise_multiplier=50.0, adjacency=A), count=100)
    with pytest.raises(BudgetExceeded, match="delta 0 unless delta= is given"):
        BasicFilter().admit([], BasicFilter().charge(plan, [], BUDGET, None), BUDGET)
    BasicFilter().admit([], BasicFilter().charge(plan, [], BUDGET, 1e-5), BUDGET)


def test_exactly_the_budget_fits_and_one_ulp_more_does_not():
    BasicFilter().admit([basic(0.75)], basic(0.25, 1e-5), BUDGET)
    with pytest.raises(BudgetExceeded):
        BasicFilter().admit([basic(0.75)], basic(math.nextafter(0.25, 1.0)), BUDGET)
    with pytest.raises(BudgetExceeded):
        BasicFilter().admit([], basic(0.25, math.nextafter(1e-5, 1.0)), BUDGET)


def test_gdp_charges_mu_and_adds_squares():
    one = GDPFilter().charge(gaussian(10.0), [], BUDGET, None)
    assert one.mu == pytest.approx(0.1, rel=1e-14)
    assert one.mu >= 0.1
    assert GDPFilter().spent([one] * 4, BUDGET).mu == pytest.approx(0.2, rel=1e-14)
    assert GDPFilter().spent([one] * 4, BUDGET).epsilon == pytest.approx(gdp.epsilon(0.2, 1e-5), rel=1e-9)
    left = GDPFilter().remaining([one] * 4, BUDGET).mu
    assert left**2 + 0.04 == pytest.approx(gdp.mu(1.0, 1e-5) ** 2, rel=1e-12)
    assert GDPFilter().spent([], BUDGET).epsilon == 0.0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(3.8, 50.0), min_size=1, max_size=10))
def test_gdp_never_admits_more_than_the_budgets_curve(multipliers):
    spent = []
    for multiplier in multipliers:
        new = GDPFilter().charge(gaussian(multiplier), spent, BUDGET, None)
        try:
            GDPFilter().admit(spent, new, BUDGET)
        except BudgetExceeded as refusal:
            assert refusal.requested["mu"] > refusal.remaining["mu"]
            continue
        spent.append(new)
    total = math.sqrt(math.fsum(c.mu**2 for c in spent))
    assert gdp.delta(total * (1 - 1e-15), 1.0) <= 1e-5
    assert GDPFilter().spent(spent, BUDGET).epsilon <= 1.0 + 1e-12


def test_what_calibrate_returns_fits_a_fresh_ledger_of_either_filter():
    for count in (1, 7, 100):
        found = calibrate(lambda s, n=count: Repeated(gaussian(s), count=n), BUDGET)
        plan = Repeated(gaussian(found), count=count)
        for filter_ in (BasicFilter(), GDPFilter()):
            charge = filter_.charge(plan, [], BUDGET, None)
            filter_.admit([], charge, BUDGET)
            assert filter_.spent([charge], BUDGET).epsilon <= BUDGET.epsilon * (1.0 + 1e-12)


def test_a_point_is_never_turned_into_mu():
    sampled = PoissonSampled(gaussian(10.0), sampling_rate=0.1)
    for event in (sampled, pure(0.1), LaplaceEvent(noise_multiplier=5.0, adjacency=A)):
        with pytest.raises(UnsupportedEvent, match="GDPFilter"):
            GDPFilter().charge(event, [], BUDGET, None)
    with pytest.raises(InvalidParameter, match="delta"):
        GDPFilter().charge(gaussian(10.0), [], BUDGET, 1e-6)


def test_a_gdp_filter_needs_delta():
    with pytest.raises(InvalidParameter, match="delta"):
        GDPFilter().check(Budget(epsilon=1.0, delta=0.0, adjacency=A))


def test_plain_filters_are_found_by_name():
    assert filter_from("basic") == BasicFilter()
    assert filter_from("gdp") == GDPFilter()
    with pytest.raises(InvalidParameter, match="filter"):
        filter_from("laplace")
