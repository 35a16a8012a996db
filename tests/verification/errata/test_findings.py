"""What a finding says: nothing grows in print, nothing is lost in a file."""

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.verification.errata.base import Finding, down, in_words

A = lw.Adjacency.ADD_REMOVE
FOUND = Finding(
    specimen="a-name",
    verdict="unsound",
    claim="epsilon 1",
    witness=1.0,
    claimed_delta=0.0,
    exact_delta=0.25,
    auditor="black-box",
    quantity="epsilon",
    bound=1.2349,
    at=0.0,
    claimed=1.0,
    caught=True,
    test="delta >= 0.3 at epsilon 1, claimed 0",
    alpha=0.05,
    assumption="none",
    samples=1000,
    needed=300,
    seconds=0.5,
)


@pytest.mark.parametrize("bound", [1.2349, math.inf, 0.0])
def test_a_record_is_read_back(bound):
    found = dataclasses.replace(FOUND, bound=bound)
    assert Finding.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False))) == found


def test_another_record_is_refused():
    with pytest.raises(TypeError):
        Finding.from_dict({"specimen": "a-name"})


@given(st.floats(min_value=1e-12, max_value=1e12))
def test_a_bound_is_rounded_down(bound):
    assert bound * (1 - 1.01e-2) <= float(down(bound)) <= bound * (1 + 1e-12)


@pytest.mark.parametrize(("bound", "printed"), [(0.0, "0"), (math.inf, "inf"), (1.2399, "1.23"), (0.09999, "0.0999")])
def test_printed_bounds(bound, printed):
    assert down(bound) == printed


def test_what_decided():
    assert FOUND.decided() == FOUND.measured() == "epsilon >= 1.23 at delta 0 (claimed 1)"
    below = dataclasses.replace(FOUND, bound=0.8)
    assert below.decided() == "delta >= 0.3 at epsilon 1, claimed 0; epsilon >= 0.8 at delta 0 (claimed 1)"
    other = dataclasses.replace(FOUND, quantity="delta", bound=0.5, at=0.1, claimed=0.2)
    assert other.measured() == "delta >= 0.5 at epsilon 0.1 (claimed 0.2)"


GAUSSIAN = lw.GaussianEvent(noise_multiplier=2.0, adjacency=A)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (lw.Budget(epsilon=1.0, delta=1e-5, adjacency=A), "(1, 1e-05)"),
        (lw.PureEvent(epsilon=0.1, adjacency=A), "epsilon 0.1"),
        (GAUSSIAN, "Gaussian noise of multiplier 2"),
        (lw.LaplaceEvent(noise_multiplier=10.0, adjacency=A), "Laplace noise of multiplier 10"),
        (lw.PoissonSampled(GAUSSIAN, sampling_rate=0.1), "Gaussian noise of multiplier 2, sampled at rate 0.1"),
        (lw.Repeated(GAUSSIAN, count=3), "Repeated"),
        (lambda epsilon: 0.0, "a curve delta(epsilon)"),
    ],
)
def test_claims_in_words(claim, words):
    assert in_words(claim) == words
