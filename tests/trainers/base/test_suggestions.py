"""The searches for what would fit, against the threshold that they look for; plans are in each system's own tests."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Budget
from ledgerwood.trainers.base.suggestions import enough_epsilon, most_that_fits


@settings(max_examples=100, derandomize=True)
@given(st.floats(1e-9, 1e9), st.floats(1.0001, 1e6))
def test_an_epsilon_that_is_enough_and_not_much_more(epsilon, factor):
    least = epsilon * factor
    budget = Budget(epsilon=epsilon, delta=0.0, adjacency=Adjacency.ADD_REMOVE)
    found = enough_epsilon(lambda other: other.epsilon >= least, budget)
    assert least <= found <= max(1.13 * least, 2.0 * epsilon * 1.13)
    assert found == float(f"{found:.2g}"), "two digits"


def test_no_epsilon_is_enough():
    budget = Budget(epsilon=1.0, delta=1e-6, adjacency=Adjacency.ADD_REMOVE)
    assert enough_epsilon(lambda other: False, budget) is None
    seen = []
    enough_epsilon(lambda other: seen.append(other) or True, budget)
    assert {(other.delta, other.adjacency) for other in seen} == {(1e-6, Adjacency.ADD_REMOVE)}


@pytest.mark.parametrize("most", [0, 1, 2, 63, 64, 999])
def test_the_most_that_fits(most):
    assert most_that_fits(lambda n: n <= most, 1000) == most
    assert most_that_fits(lambda n: True, 1000) == 999
