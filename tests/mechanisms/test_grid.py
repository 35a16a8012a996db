from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import Grid


@given(st.lists(st.integers(-1022, 960), min_size=1, max_size=5))
def test_steps_are_exact_powers_of_two(exponents):
    grid = Grid(exponents=tuple(exponents))
    assert grid.columns == len(exponents)
    assert [Fraction(step) for step in grid.steps] == [Fraction(2) ** e for e in exponents]


@given(st.integers(-1022, 960), st.integers(-(2**53), 2**53))
def test_reals_are_exact_up_to_53_bits(exponent, integer):
    real = Grid(exponents=(exponent,)).to_real(np.array([[integer]], dtype=np.int64))
    assert real.shape == (1, 1)
    assert Fraction(float(real[0, 0])) == integer * Fraction(2) ** exponent


def test_the_largest_integer_on_the_coarsest_grid_is_finite():
    extremes = np.array([[2**63 - 1], [-(2**63)]], dtype=np.int64)
    assert np.isfinite(Grid(exponents=(960,)).to_real(extremes)).all()


def test_columns_have_steps_of_their_own():
    grid = Grid(exponents=(0, -1, 3))
    assert grid.to_real(np.ones((2, 4, 3), dtype=np.int64)).tolist() == [[[1.0, 0.5, 8.0]] * 4] * 2


@pytest.mark.parametrize("exponents", [(), (961,), (-1023,), (0.5,), (True,), (0, None)])
def test_exponents_out_of_range_are_refused(exponents):
    with pytest.raises(InvalidParameter, match="exponents="):
        Grid(exponents=exponents)


@pytest.mark.parametrize(
    ("integers", "named"),
    [
        (np.zeros((3, 2)), "float64"),
        (np.zeros((3, 2), dtype=np.int32), "int32"),
        (np.zeros((3, 2), dtype=np.uint64), "uint64"),
        ([[1, 2]], "list"),
        (np.zeros((2, 3), dtype=np.int64), r"\(2, 3\)"),
        (np.array(1, dtype=np.int64), r"\(\)"),
    ],
)
def test_only_int64_columns_are_read(integers, named):
    with pytest.raises(InvalidParameter, match=named):
        Grid(exponents=(0, 0)).to_real(integers)
