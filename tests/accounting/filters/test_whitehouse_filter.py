"""Advanced composition as a filter: the statement, its limit, its delta."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from ledgerwood.accounting import (
    Adjacency,
    AdvancedCompositionFilter,
    BasicFilter,
    Budget,
    Charge,
    GaussianEvent,
    Ledger,
    PrivacyUnit,
    PureEvent,
)
from ledgerwood.accounting.filters import GDPFilter, RenyiFilter, ZCDPFilter, filter_from, filter_record
from ledgerwood.errors import BudgetExceeded, InvalidParameter

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)
FILTER = AdvancedCompositionFilter(delta_prime=1e-6)


def charge(epsilon, delta=0.0):
    return Charge(epsilon=epsilon, delta=delta, method="pure")


def advanced(squares, delta_prime):
    with mp.workdps(50):
        s = mpf(squares.numerator) / mpf(squares.denominator)
        return s / 2 + mp.sqrt(-2 * s * mp.log(mpf(delta_prime)))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-3, 0.3), min_size=1, max_size=30))
def test_grants_go_on_exactly_while_the_statement_holds(epsilons):
    spent = []
    for epsilon in epsilons:
        total = advanced(sum(Fraction(c.epsilon) ** 2 for c in [*spent, charge(epsilon)]), 1e-6)
        try:
            FILTER.admit(spent, charge(epsilon), BUDGET)
        except BudgetExceeded as refusal:
            assert total > 1 - 1e-12
            assert refusal.requested["epsilon"] > refusal.remaining["epsilon"]
            continue
        assert total <= 1
        spent.append(charge(epsilon))
        assert total <= mpf(FILTER.spent(spent, BUDGET).epsilon) <= min(total * (1 + mpf("1e-12")), 1)


def test_many_small_grants_fit_where_sums_do_not():
    def most(filter_):
        spent = []
        while True:
            try:
                filter_.admit(spent, charge(1 / 64), BUDGET)
            except BudgetExceeded:
                return len(spent)
            spent.append(charge(1 / 64))

    assert most(BasicFilter()) == 64
    # (sqrt(2 l + 2) - sqrt(2 l))^2 * 64^2 with l = log(1e6)
    assert most(FILTER) == 143


def test_a_budget_whose_square_is_no_float_is_refused():
    with pytest.raises(InvalidParameter, match="epsilon=1e[+]308 must be at most 1e[+]150"):
        Ledger(Budget(epsilon=1e308, delta=1e-5, adjacency=BUDGET.adjacency), unit=PrivacyUnit.ROW, filter=FILTER)
    assert FILTER.remaining([], Budget(epsilon=1e150, delta=1e-5, adjacency=BUDGET.adjacency)).epsilon > 1e70


def test_delta_prime_is_paid_from_the_budgets_delta():
    assert Fraction(FILTER.remaining([], BUDGET).delta) <= Fraction(1e-5) - Fraction(1e-6)
    FILTER.admit([], charge(0.01, 9e-6), BUDGET)
    with pytest.raises(BudgetExceeded):
        FILTER.admit([], charge(0.01, 9.001e-6), BUDGET)
    with pytest.raises(BudgetExceeded):
        FILTER.admit([charge(0.01, 5e-6)], charge(0.01, 5e-6), BUDGET)
    spent = FILTER.spent([charge(0.01, 5e-6)], BUDGET)
    assert Fraction(spent.delta) >= Fraction(5e-6) + Fraction(1e-6)
    assert FILTER.spent([], BUDGET).delta == FILTER.spent([], BUDGET).epsilon == 0.0


def test_no_delta_means_all_that_remains_or_none_for_a_pure_plan():
    gaussian = GaussianEvent(noise_multiplier=200.0, adjacency=A)
    assert FILTER.charge(gaussian, [], BUDGET, None).delta == pytest.approx(9e-6, rel=1e-12)
    assert FILTER.charge(PureEvent(epsilon=0.1, adjacency=A), [], BUDGET, None).delta == 0.0
    with pytest.raises(BudgetExceeded, match="no delta remains"):
        AdvancedCompositionFilter(delta_prime=1e-5).charge(gaussian, [], BUDGET, None)


@pytest.mark.parametrize("value", [0.0, 1.0, -1e-6, float("nan"), "1e-6", True])
def test_a_delta_prime_outside_its_bound_is_refused(value):
    with pytest.raises(InvalidParameter, match="delta_prime"):
        AdvancedCompositionFilter(delta_prime=value)


def test_bad_input():
    with pytest.raises(InvalidParameter, match="delta_prime"):
        AdvancedCompositionFilter(delta_prime=1e-4).check(BUDGET)
    with pytest.raises(InvalidParameter, match="delta_prime"):
        FILTER.check(Budget(epsilon=1.0, delta=0.0, adjacency=A))
    with pytest.raises(InvalidParameter, match="currency"):
        FILTER.require_currency(Charge(rho=0.1, method="zcdp"))


@pytest.mark.parametrize("filter_", [BasicFilter(), GDPFilter(), ZCDPFilter(), RenyiFilter(order=2.5), FILTER])
def test_records_are_read_back(filter_):
    assert filter_from(filter_record(filter_)) == filter_


@pytest.mark.parametrize(
    "record",
    [
        "renyi",
        "whitehouse",
        None,
        3,
        {},
        {"name": "basic"},
        {"name": "renyi"},
        {"name": "renyi", "order": 2},
        {"name": "renyi", "order": 0.5},
        {"name": "renyi", "order": 2.0, "more": 1.0},
        {"name": "renyi", "delta_prime": 0.5},
        {"name": "whitehouse", "delta_prime": 1.5},
        {"name": "zcdp", "order": 2.0},
    ],
)
def test_what_is_no_record_of_a_filter_is_refused(record):
    with pytest.raises(InvalidParameter, match="filter|order|delta_prime"):
        filter_from(record)
