"""The filters of rho and of one order: charges, exact sums, limits, refusals."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from ledgerwood.accounting import (
    Adjacency,
    Budget,
    Charge,
    Composed,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    RenyiFilter,
    Repeated,
    ZCDPFilter,
    ZeroConcentratedEvent,
    price,
)
from ledgerwood.accounting.costs import concentrated
from ledgerwood.errors import BudgetExceeded, InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)
STEP = PoissonSampled(GaussianEvent(noise_multiplier=2.0, adjacency=A), sampling_rate=0.01)


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def conversion(divergence, order, delta):
    with mp.workdps(40):
        a, d = mpf(order), mpf(delta)
        return mpf(divergence) + mp.log1p(-1 / a) - (mp.log(d) + mp.log(a)) / (a - 1)


def test_zcdp_charges_rho_and_adds_it_up():
    plan = Composed((gaussian(10.0), LaplaceEvent(noise_multiplier=20.0, adjacency=A)))
    charge = ZCDPFilter().charge(plan, [], BUDGET, None)
    assert (charge.rho, charge.method, charge.order) == (concentrated.rho(plan), "zcdp", None)
    spent = ZCDPFilter().spent([charge] * 3, BUDGET)
    assert Fraction(spent.rho) >= 3 * Fraction(charge.rho)
    assert spent.epsilon == pytest.approx(
        price(ZeroConcentratedEvent(rho=3 * charge.rho, adjacency=A)).epsilon(1e-5), rel=1e-9
    )
    assert spent.delta == BUDGET.delta
    assert ZCDPFilter().spent([], BUDGET).epsilon == ZCDPFilter().spent([], BUDGET).delta == 0.0


def test_renyi_charges_the_larger_divergence_at_its_order():
    filter_ = RenyiFilter(order=24.0)
    charge = filter_.charge(Repeated(STEP, count=100), [], BUDGET, None)
    assert (charge.method, charge.order) == ("renyi", 24.0)
    assert charge.divergence == Repeated(STEP, count=100).renyi(np.array([24.0]))[0]
    spent = filter_.spent([charge] * 2, BUDGET)
    assert spent.divergence == 2 * charge.divergence
    assert conversion(spent.divergence, 24.0, 1e-5) == pytest.approx(spent.epsilon, rel=1e-12)
    assert filter_.spent([], BUDGET).epsilon == 0.0


@pytest.mark.parametrize("filter_", [ZCDPFilter(), RenyiFilter(order=16.0)])
@settings(max_examples=40, deadline=None)
@given(shares=st.lists(st.floats(1e-3, 0.6), min_size=1, max_size=12))
def test_sums_are_exact_and_never_beyond_the_limit(filter_, shares):
    zcdp = isinstance(filter_, ZCDPFilter)
    limit = filter_.remaining([], BUDGET).rho if zcdp else filter_.remaining([], BUDGET).divergence
    spent = []
    for share in shares:
        amount = share * limit
        new = Charge(rho=amount, method="zcdp") if zcdp else Charge(divergence=amount, method="renyi", order=16.0)
        fits = sum(Fraction(c.rho or c.divergence) for c in [*spent, new]) <= Fraction(limit)
        try:
            filter_.admit(spent, new, BUDGET)
        except BudgetExceeded as refusal:
            assert not fits
            assert list(refusal.requested.values()) > list(refusal.remaining.values())
            continue
        assert fits
        spent.append(new)
        assert filter_.spent(spent, BUDGET).epsilon <= BUDGET.epsilon
    total = sum((Fraction(c.rho or c.divergence) for c in spent), Fraction())
    left = filter_.remaining(spent, BUDGET)
    assert Fraction(left.rho if zcdp else left.divergence) <= Fraction(limit) - total


@pytest.mark.parametrize("order", [10.0, 24.0, 1000.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 1e-5), (0.9, 1e-3), (30.0, 1e-12)])
def test_the_largest_divergence_fits_and_no_larger_one_does(order, epsilon, delta):
    limit = RenyiFilter(order=order).remaining([], Budget(epsilon=epsilon, delta=delta, adjacency=A)).divergence
    assert conversion(limit, order, delta) <= epsilon
    assert conversion(limit * (1 + 1e-12), order, delta) > epsilon


@pytest.mark.parametrize("filter_", [ZCDPFilter(), RenyiFilter(order=24.0)])
def test_what_is_left_fits_and_one_ulp_more_does_not(filter_):
    left = filter_.remaining([], BUDGET)
    for amount, fits in (
        (left.rho or left.divergence, True),
        (math.nextafter(left.rho or left.divergence, 9.0), False),
    ):
        new = (
            Charge(rho=amount, method="zcdp")
            if filter_ == ZCDPFilter()
            else Charge(divergence=amount, method="renyi", order=24.0)
        )
        if fits:
            filter_.admit([], new, BUDGET)
        else:
            with pytest.raises(BudgetExceeded, match="left of"):
                filter_.admit([], new, BUDGET)


def test_one_grant_of_all_costs_no_more_than_its_price():
    """A Gaussian whose own Renyi price is the budget fits: both filters convert as the prices do."""
    sigma = 4.0
    epsilon = price(gaussian(sigma), method="renyi").quote(1e-5)
    budget = Budget(epsilon=epsilon.epsilon * (1 + 1e-9), delta=1e-5, adjacency=A)
    for filter_ in (ZCDPFilter(), RenyiFilter(order=epsilon.order)):
        charge = filter_.charge(gaussian(sigma), [], budget, None)
        filter_.admit([], charge, budget)
        with pytest.raises(BudgetExceeded):
            filter_.admit([], charge, dataclasses.replace(budget, epsilon=epsilon.epsilon * (1 - 1e-6)))


def test_a_sampled_gaussian_is_for_the_renyi_filter():
    with pytest.raises(UnsupportedEvent, match=r"ZCDPFilter .* RenyiFilter"):
        ZCDPFilter().charge(STEP, [], BUDGET, None)


@pytest.mark.parametrize("filter_", [ZCDPFilter(), RenyiFilter(order=24.0)])
def test_bad_input(filter_):
    with pytest.raises(InvalidParameter, match="delta=1e-06 must be None"):
        filter_.charge(gaussian(10.0), [], BUDGET, 1e-6)
    with pytest.raises(InvalidParameter, match="delta"):
        filter_.check(Budget(epsilon=1.0, delta=0.0, adjacency=A))
    for charge in (
        Charge(mu=0.1, method="gdp"),
        Charge(epsilon=0.1, delta=0.0, method="pure"),
        Charge(rho=0.1, divergence=0.1, method="zcdp"),
        Charge(divergence=0.1, method="renyi", order=23.0),
    ):
        with pytest.raises(InvalidParameter, match="currency"):
            filter_.require_currency(charge)


@pytest.mark.parametrize("order", [1.0, 0.5, math.inf, math.nan, 1e7, "2", True])
def test_an_order_outside_its_bound_is_refused(order):
    with pytest.raises(InvalidParameter, match="order"):
        RenyiFilter(order=order)


def test_an_order_too_small_for_the_budget_is_refused():
    with pytest.raises(InvalidParameter, match="order=2.0 must be larger"):
        RenyiFilter(order=2.0).check(BUDGET)
