"""Values that are no float64, and zeros that have a sign."""

import ast
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import _validate
from ledgerwood.accounting import Adjacency
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import EllipticalGaussianMechanism, Grid, LaplaceMechanism
from ledgerwood.trainers import PrivateSearch, SGBDTRegressor
from ledgerwood.verification import attack_model

ADD_REMOVE = Adjacency.ADD_REMOVE


@pytest.mark.parametrize("value", [10**400, -(10**400), Fraction(10**400), math.inf, math.nan, True, np.True_, "1", 1j])
def test_what_is_no_finite_float_is_refused(value):
    with pytest.raises(InvalidParameter, match="x.* must be .*unit: nats"):
        _validate.real("x", value, "nats")


def test_the_name_of_a_type_has_its_article():
    values = (np.zeros(1), [], 1, object(), ADD_REMOVE, None, np.uint8(1))
    words = ["an ndarray", "a list", "an int", "an object", "an Adjacency", "a NoneType", "a uint8"]
    assert [_validate.kind_of(value) for value in values] == words


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
    with pytest.raises(InvalidParameter, match=r"x=.* must be a sequence of values \(unit: columns\)"):
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


@pytest.mark.parametrize("text", ["abc", b"abc", bytearray(b"abc")])
@pytest.mark.parametrize("read", [_validate.items, _validate.several])
def test_one_text_is_not_read_as_its_letters(read, text):
    with pytest.raises(InvalidParameter, match="a sequence and not one text"):
        read("names", text, "names")


@pytest.mark.slow  # several fits
def test_no_constructor_makes_a_tuple_of_an_argument_that_may_be_one_text():
    """Each goes through `_validate.items`, or checks every member before."""
    root = Path(__file__).resolve().parents[1] / "ledgerwood"
    found = [
        (path.relative_to(root).as_posix(), ast.unparse(call))
        for path in sorted(root.rglob("*.py"))
        for method in ast.walk(ast.parse(path.read_text()))
        if isinstance(method, ast.FunctionDef) and method.name in ("__post_init__", "__init__")
        for call in ast.walk(method)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in ("tuple", "list")
        and len(call.args) == 1
        and isinstance(call.args[0], ast.Attribute | ast.Name)
    ]
    assert [place for place in found if place[1] != "tuple(owned)" and place[1] != "tuple(edges)"] == []


MALFORMED = {
    "a composition": lambda: lw.Composed("abc"),
    "groups": lambda: lw.Parallel("abc", probabilities=None),
    "probabilities": lambda: lw.Parallel((lw.PureEvent(epsilon=1.0, adjacency=ADD_REMOVE),), probabilities="1"),
    "deviations": lambda: EllipticalGaussianMechanism(stddevs="12"),
    "scales": lambda: LaplaceMechanism(scales="12"),
    "exponents": lambda: Grid(exponents="12"),
    "sensitivities": lambda: lw.EllipticalGaussianEvent(sensitivities="12", stddevs=(1.0, 1.0), adjacency=ADD_REMOVE),
    "candidates": lambda: PrivateSearch(SGBDTRegressor(), "ab", schema=lw.Schema.uniform(0, 1, n_features=1)).make_plan(
        lw.Schema.uniform(0, 1, n_features=1)
    ),
    "classes": lambda: attack_model(
        SGBDTRegressor(), np.zeros((2, 1)), np.array(["y", "n"]), np.array([True, False]), classes="yn"
    ),
}


@pytest.mark.parametrize("make", MALFORMED.values(), ids=MALFORMED)
def test_one_text_in_the_place_of_a_sequence_is_refused(make):
    with pytest.raises(InvalidParameter):
        make()
