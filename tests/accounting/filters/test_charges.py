"""Running sums: what a ledger keeps is what a list adds up to, and every filter decides the same by either."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import (
    Adjacency,
    AdvancedCompositionFilter,
    BasicFilter,
    Budget,
    Charge,
    GDPFilter,
    RenyiFilter,
    ZCDPFilter,
)
from ledgerwood.accounting.filters import Charges, Remaining
from ledgerwood.errors import BudgetExceeded

BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=Adjacency.ADD_REMOVE)
SIZES = st.one_of(st.floats(0.0, 0.6), st.floats(0.0, 1e-3), st.sampled_from([0.0, 5e-324, 0.1, 0.25]))
MADE = {
    BasicFilter(): lambda size: Charge(epsilon=size, delta=size * 1e-5, method="profile"),
    AdvancedCompositionFilter(delta_prime=2e-6): lambda size: Charge(
        epsilon=size / 4, delta=size * 1e-5, method="profile"
    ),
    GDPFilter(): lambda size: Charge(mu=size / 2, method="gdp"),
    ZCDPFilter(): lambda size: Charge(rho=size / 16, method="zcdp"),
    RenyiFilter(order=20.0): lambda size: Charge(divergence=size, method="renyi", order=20.0),
}


def decision(filter_, spent, new):
    try:
        return filter_.admit(spent, new, BUDGET)
    except BudgetExceeded as refusal:
        return str(refusal), refusal.requested, refusal.remaining


@pytest.mark.slow_after(2)  # many strategies against a filter
@pytest.mark.parametrize("filter_", MADE, ids=lambda filter_: filter_.name)
@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(SIZES, min_size=1, max_size=20), look=st.sets(st.integers(0, 19)))
def test_a_filter_decides_by_running_sums_as_from_scratch(filter_, sizes, look):
    kept, listed = Charges(), []
    for place, size in enumerate(sizes):
        new = MADE[filter_](size)
        found = decision(filter_, kept, new)
        assert found == decision(filter_, list(listed), new)
        if found is None:
            kept.append(new)
            listed.append(new)
        if place in look:  # sums that are asked for now and then, never, or after every grant
            assert filter_.spent(kept, BUDGET) == filter_.spent(list(listed), BUDGET)
            assert filter_.remaining(kept, BUDGET) == filter_.remaining(list(listed), BUDGET)
    assert len(kept) == len(listed)


@given(st.lists(st.tuples(SIZES, st.booleans()), max_size=30))
def test_a_kept_sum_is_the_exact_one(charges):
    kept, exact = Charges(), [Fraction(), Fraction()]
    for size, ask in charges:
        kept.append(Charge(epsilon=size, delta=0.0, method="pure"))
        exact = [exact[0] + Fraction(size), exact[1] + Fraction(size) ** 2]
        if ask:
            assert kept.total("epsilon", 1) == exact[0]
    assert [kept.total("epsilon", power) for power in (1, 2, 1)] == [*exact, exact[0]]
    assert kept.total("mu", 1) == 0


def test_sums_of_a_thousand_different_charges_take_the_room_of_two():
    """What makes a grant cost the same after a million others: no charge is kept, and a sum of floats stays short."""
    sizes = [0.1 * (1.0 + place / 997) ** -7 for place in range(1000)] + [5e-324, 1e300]
    kept = Charges()
    for size in sizes:
        kept.append(Charge(epsilon=size, delta=0.0, method="pure"))
    assert kept.total("epsilon", 1) == sum(map(Fraction, sizes))
    assert kept.total("epsilon", 2) == sum(Fraction(size) ** 2 for size in sizes)
    assert kept.total("epsilon", 2).denominator <= 2**2148
    assert len(kept) == len(sizes)


def test_a_copy_of_sums_is_added_to_alone():
    kept = Charges()
    kept.append(Charge(rho=0.25, method="zcdp"))
    other = kept.copy()
    other.append(Charge(rho=0.5, method="zcdp"))
    assert (kept.total("rho", 1), len(kept)) == (Fraction(1, 4), 1)
    assert (other.total("rho", 1), len(other)) == (Fraction(3, 4), 2)


def test_the_lesser_of_two_remainders():
    assert Remaining(epsilon=0.5, delta=1e-6).at_most(Remaining(epsilon=0.4, delta=1e-5)) == Remaining(
        epsilon=0.4, delta=1e-6
    )
    assert Remaining(mu=0.5).at_most(Remaining(mu=0.25)) == Remaining(mu=0.25)
