"""Values that are no float64, and zeros that have a sign."""

import math
from fractions import Fraction

import numpy as np
import pytest

from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter


@pytest.mark.parametrize("value", [10**400, -(10**400), Fraction(10**400), math.inf, math.nan, True, np.True_, "1", 1j])
def test_what_is_no_finite_float_is_refused(value):
    with pytest.raises(InvalidParameter, match="x.* must be .*unit: nats"):
        _validate.real("x", value, "nats")


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), Fraction(1, 2), 0.5])
def test_any_real_number_becomes_a_float(value):
    assert type(_validate.real("x", value, "nats")) is float
    assert _validate.real("x", value, "nats") == 0.5


@pytest.mark.parametrize("value", [-0.0, np.float64(-0.0)])
def test_zero_has_no_sign(value):
    """Equal events share one record, and a record is what is hashed."""
    assert math.copysign(1.0, _validate.non_negative("x", value, "nats")) == 1.0


@pytest.mark.parametrize("values", [3, 1.5, None, np.float64(2.0)])
def test_one_value_is_no_sequence(values):
    with pytest.raises(InvalidParameter, match=r"x=.* must be a sequence of at least one number \(unit: columns\)"):
        _validate.several("x", values, "columns")


@pytest.mark.parametrize("values", [(), [], np.zeros(0)])
def test_no_value_is_too_few(values):
    with pytest.raises(InvalidParameter, match=r"x=\(\) must be at least one number \(unit: columns\)"):
        _validate.several("x", values, "columns")
    assert _validate.several("x", [1, 2], "columns") == (1, 2)


def test_a_whole_number_is_compared_as_what_is_kept():
    """A subclass of int may say anything of itself; a count below 0 would be a budget."""

    class Boasting(int):
        def __lt__(self, other):
            return False

    with pytest.raises(InvalidParameter, match=r"x=-9 must be a whole number >= 1 \(unit: releases\)"):
        _validate.count("x", Boasting(-9), "releases")
    assert type(_validate.count("x", Boasting(9), "releases")) is int
