"""What was found is printed below itself, what is allowed above, and apart where they are apart."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.verification.auditing import LowerBound
from ledgerwood.verification.figures import beside, rounded_down, rounded_up

SIZES = st.floats(1e-12, 1e12)


@given(SIZES, st.floats(1e-15, 1.0))
def test_a_breach_never_looks_like_none(allowed, excess):
    found = allowed * (1.0 + excess)
    down, up = beside(found, allowed)
    assert float(down) <= found
    assert float(up) >= allowed
    assert (float(down) > float(up)) == (found > allowed)


@given(SIZES)
def test_four_digits_are_rounded_in_the_safe_direction(value):
    assert float(rounded_down(value)) <= value <= float(rounded_up(value))
    assert float(rounded_down(value)) == pytest.approx(value, rel=1e-3)


def test_examples():
    assert beside(1.9449, 1.0) == ("1.944", "1")
    assert beside(1.00001, 1.0) == ("1.00001", "1")
    assert beside(1.0, 1.0) == ("1", "1")
    assert beside(math.inf, 1.0) == ("inf", "1")
    assert beside(0.3, math.inf) == ("0.2999" if float("0.3") < 0.3 else "0.3", "inf")


def test_a_lower_bound_is_printed_below_itself():
    bound = LowerBound(
        value=1.99996, delta=0.0, alpha=0.05, assumption="none", event="", samples=1, statistic="any"
    )  # fmt: skip
    assert "epsilon >= 1.999 " in str(bound)
