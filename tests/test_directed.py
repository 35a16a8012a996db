import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood._directed import float_down, float_up, root_down, root_up
from ledgerwood.errors import InvalidParameter

values = st.fractions(min_value=0, max_value=10**30) | st.floats(1e-300, 1e300).map(Fraction)


@pytest.mark.slow  # several fits
@given(values)
def test_floats_are_the_nearest_on_their_side(value):
    up, down = float_up(value), float_down(value)
    assert Fraction(down) <= value <= Fraction(up)
    assert Fraction(math.nextafter(up, -math.inf)) < value
    assert Fraction(math.nextafter(down, math.inf)) > value


@given(st.fractions(min_value=0, max_value=10**30) | st.floats(1e-150, 1e150).map(Fraction))
def test_roots_are_the_nearest_on_their_side(value):
    up, down = root_up(value), root_down(value)
    assert Fraction(down) ** 2 <= value <= Fraction(up) ** 2
    assert up <= math.nextafter(down, math.inf)


@given(st.fractions(min_value=0, max_value=10**15, max_denominator=2**20))
def test_the_root_of_a_square_is_exact_where_it_is_a_float(value):
    number = float(value)
    assert root_up(Fraction(number) ** 2) == root_down(Fraction(number) ** 2) == number


def test_what_no_float_can_hold_is_refused():
    with pytest.raises(InvalidParameter, match=r"2\*\*10\d\d must be within float64"):
        float_up(Fraction(2) ** 1030)
    with pytest.raises(InvalidParameter, match="within float64"):
        float_up(Fraction(math.nextafter(math.inf, 0.0)) + 1)
