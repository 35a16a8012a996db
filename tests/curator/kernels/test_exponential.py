"""The library's own exp: close to the true value, the same bits on every processor, and never contracted."""

import hashlib
import math
import re

import mpmath
import numba
import numpy as np
import pytest

from ledgerwood.curator.kernels import sums
from ledgerwood.curator.kernels.exponential import exp

# Bit patterns of exp(x): another processor, compiler or order of operations would show here.
GOLDEN = {
    "0x1.0000000000000p-1": "0x1.a61298e1e069cp+0",
    "-0x1.0000000000000p-1": "0x1.368b2fc6f960ap-1",
    "0x1.0000000000000p+0": "0x1.5bf0a8b14576ap+1",
    "-0x1.0000000000000p+0": "0x1.78b56362cef38p-2",
    "0x1.999999999999ap-4": "0x1.1aec7b35a00d4p+0",
    "-0x1.999999999999ap-4": "0x1.cf46d99d52b3ap-1",
    "0x1.0000000000000p+1": "0x1.d8e64b8d4ddaep+2",
    "-0x1.8000000000000p+1": "0x1.97db0ccceb0afp-5",
    "0x1.62e42fefa39efp-2": "0x1.6a09e667f3bccp+0",
    "-0x1.62e42fefa39efp-2": "0x1.6a09e667f3bccp-1",
    "0x1.4000000000000p+3": "0x1.5829dcf950560p+14",
    "-0x1.4000000000000p+3": "0x1.7cd79b5647c9ap-15",
    "0x1.4f8b588e368f1p-17": "0x1.0000a7c5e340ep+0",
    "0x1.259999999999ap+5": "0x1.ed8026b267154p+52",
    "-0x1.259999999999ap+5": "0x1.0998b04bdd190p-53",
    "0x1.9100000000000p+6": "0x1.8c39b9134bac4p+144",
    "-0x1.9100000000000p+6": "0x1.4acd31e167ebbp-145",
    "-0x1.6233333333333p+9": "0x0.ff15b469edf89p-1022",
    "-0x1.7433333333333p+9": "0x0.0000000000001p-1022",
    "0x1.62d999999999ap+9": "0x1.d75ae7a50ee14p+1023",
}
HASHED = "f5e03aba98b974a54e1ad8a5c1f76f9f0e939450849b6801b61161eb115a8e5e"
ENDS = {
    -0.0: 1.0, math.inf: math.inf, -math.inf: 0.0, 710.0: math.inf, 1e308: math.inf, -746.0: 0.0,
    -1e308: 0.0, 5e-324: 1.0, float.fromhex("0x1.62e42fefa39efp+9"): float.fromhex("0x1.fffffffffff2ap+1023"),
    float.fromhex("0x1.62e42fefa39f0p+9"): math.inf, -745.1: 5e-324, -745.2: 0.0,
}  # fmt: skip


@numba.njit
def all_exp(x, values):
    for i in range(len(x)):
        values[i] = exp(x[i])


@numba.njit
def one_exp(x):
    return exp(x)


@numba.njit
def contribution(score, target, weight):
    gradient = sums.gradient_of(score, target, True)
    first, second = sums.curvature_steps(gradient, 3.3, 0.9, 2.0**20, np.int64(2**40))
    return first, sums.weighed(sums.truncated(gradient, 0.5, 2.0**20, np.int64(2**19)) + second, weight, 2.0**20)


def exps(x):
    values = np.empty_like(x)
    all_exp(x, values)
    return values


def inputs():
    """Numbers over all exponents from 2**-40 to 2**10 and both signs, made of whole numbers only."""
    words = (np.arange(1, 40_001, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(0x94D049BB133111EB)
    words *= words | np.uint64(1)
    exponents = np.uint64(1023 - 40) + (words >> np.uint64(58)) % np.uint64(50)
    bits = (words << np.uint64(63)) | (exponents << np.uint64(52)) | ((words >> np.uint64(4)) & np.uint64(2**52 - 1))
    return bits.view(np.float64)


def units_off(x, value):
    with mpmath.workprec(200):
        true = mpmath.exp(mpmath.mpf(x))
        return float(abs(mpmath.mpf(value) - true) / mpmath.mpf(math.ulp(float(true))))


def test_the_error_is_below_two_units_in_the_last_place_over_the_whole_range():
    generator = np.random.default_rng(5)
    halves = (np.arange(-1075, 1024) + 0.5) * math.log(2.0)  # where the reduced argument is largest
    x = np.concatenate(
        [generator.uniform(-745.0, 709.7, 3000), generator.normal(0, 1, 3000), generator.uniform(-745.1, -708.0, 500),
         inputs()[::20], halves, np.nextafter(halves, 0.0), np.nextafter(halves, 1000.0)]
    )  # fmt: skip
    x = x[(x > -745.13) & (x < 709.78)]
    worst = max(units_off(float(a), float(b)) for a, b in zip(x, exps(x), strict=True))
    assert 0.5 < worst < 1.36  # the bound of docs/explanation/places.md#own-exp


@pytest.mark.parametrize(("x", "value"), ENDS.items())
def test_the_ends_are_those_of_the_standard(x, value):
    assert one_exp(x).hex() == value.hex()


def test_not_a_number_stays_that():
    assert np.isnan(exps(np.array([math.nan, -math.nan]))).all()


def test_bits_are_those_of_every_processor():
    assert {x: one_exp(float.fromhex(x)).hex() for x in GOLDEN} == GOLDEN
    values = exps(inputs())
    assert [one_exp(x) for x in inputs()[:500]] == values[:500].tolist()  # many at once, and one
    assert hashlib.sha256(values.astype("<f8").tobytes()).hexdigest() == HASHED


@pytest.mark.parametrize("compiled", [one_exp, all_exp, contribution])
def test_no_operation_is_contracted_or_left_to_a_library(compiled):
    x = np.zeros(4)
    compiled(*{one_exp: (0.5,), all_exp: (x, x.copy()), contribution: (0.5, 1.0, np.int64(7))}[compiled])
    for code in compiled.inspect_llvm().values():
        operations = re.findall(r"= f(?:add|sub|mul|div)\b.*", code)
        assert len(operations) > 20
        assert not [each for each in operations if re.search(r"\b(fast|contract|reassoc|arcp|afn)\b", each)]
        assert not re.search(r"call [^\n]*@(llvm\.(exp|fma|fmuladd|pow)|exp|pow|fma|__svml)\b", code)
    for code in compiled.inspect_asm().values():
        assert re.search(r"\bv?mulsd\b|\bv?mulpd\b|\bfmul\b", code)
        assert not re.search(r"\b(vfn?m(add|sub)|fn?m(add|sub))", code)


def test_a_contribution_is_bounded_whatever_exp_returns():
    scores = np.array([-1e308, -800.0, -709.9, -1.0, -0.0, 1e-300, 36.8, 745.5, 1e308, math.inf, -math.inf])
    for score in scores:
        for target in (-1.0, 1.0):
            gradient = one_gradient(score, target)
            assert -1.0 <= gradient * target <= 0.0


@numba.njit
def one_gradient(score, target):
    return sums.gradient_of(score, target, True)
