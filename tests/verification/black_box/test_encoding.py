import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.verification.black_box.encoding import atoms, bins, keys, lowest_bits, row_bits


def test_bins_hold_every_value_and_what_is_no_number():
    column = np.concatenate([np.random.default_rng(5).normal(size=5000), [math.nan, math.inf, -math.inf]])
    cut = bins(column)
    cells = cut.cells(column)
    assert cells.min() >= 0
    assert cells.max() < cut.number
    assert len(set(cells[-3:])) == 3
    assert not set(cells[-3:]) & set(cells[:-3])
    assert np.all(np.diff(cells[:-3][np.argsort(column[:-3])]) >= 0)


def test_few_values_are_bins_of_their_own():
    cut = bins(np.array([3.0, 1.0, 2.0, 1.0]))
    assert len(set(cut.cells(np.array([1.0, 2.0, 3.0])))) == 3


def test_bins_of_no_number_at_all():
    cut = bins(np.array([math.nan, math.inf]))
    assert len(set(cut.cells(np.array([math.nan, math.inf, -math.inf, 0.0])))) == 4


def test_atoms_are_values_that_recur_and_continuous_outputs_have_none():
    rng = np.random.default_rng(5)
    assert atoms(rng.laplace(size=10_000)).values.size == 0
    mixed = np.where(rng.random(10_000) < 0.5, -1000.0, rng.laplace(size=10_000))
    found = atoms(mixed)
    assert found.values.tolist() == [-1000.0]
    codes = found.codes(np.array([-1000.0, 0.5, math.nan, math.inf, -math.inf]))
    assert codes.tolist() == [0, 1, 2, 3, 4]
    assert found.codes_in_all == 5


def test_at_most_64_atoms_are_kept():
    assert atoms(np.repeat(np.arange(200.0), 100)).values.size <= 200
    assert atoms(np.concatenate([np.repeat(np.arange(64.0), 200), np.repeat(np.arange(64.0, 200.0), 50)])).number == 64


def test_keys_tell_rows_apart_and_the_order_of_columns():
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert np.unique(keys([a, b])).size == 4
    assert keys([a, b])[1] != keys([b, a])[1]


@given(st.integers(-(2**52), 2**52).filter(lambda m: m != 0), st.integers(-60, 60))
def test_the_lowest_bit_by_exact_integers(mantissa, exponent):
    value = math.ldexp(mantissa, exponent)
    _, place = lowest_bits(np.array([value]))
    by_hand = exponent + (mantissa & -mantissa).bit_length() - 1
    assert place[0] == by_hand


@given(st.floats(-1e6, 1e6).filter(lambda x: x != 0.0), st.integers(20, 60))
def test_a_multiple_of_a_power_of_two_is_one_whose_lowest_bit_says_so(value, k):
    _, place = lowest_bits(np.array([value]))
    assert (math.fmod(value, math.ldexp(1.0, -k)) == 0.0) == (place[0] >= -k)


def test_zeros_and_what_is_not_finite_are_told_apart_in_bits_only():
    _, place = lowest_bits(np.array([0.0, -0.0, math.nan, math.inf]))
    assert place.tolist() == [2000, 2001, 2002, 2002]
    assert row_bits(np.array([[0.0], [-0.0]]))[0] != row_bits(np.array([[0.0], [-0.0]]))[1]
    assert bins(np.array([0.0, -0.0])).cells(np.array([0.0, -0.0])).tolist() == [0, 0]


def test_a_subnormal_number_has_a_lowest_bit():
    _, place = lowest_bits(np.array([5e-324, 2.0**-1030]))
    assert place.tolist() == [-1074, -1030]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_exponent_is_frexp_s(sign):
    exponent, _ = lowest_bits(np.array([0.75 * sign, 1.0 * sign]))
    assert exponent.tolist() == [0, 1]
