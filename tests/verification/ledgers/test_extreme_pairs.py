"""Closed profiles at rates, losses and deltas of any size: what 60 digits do not hold is no cost of a plan's."""

import math

import pytest
from mpmath import mp, mpf

from ledgerwood import Adjacency
from ledgerwood.accounting import (
    DiscreteLaplaceEvent,
    Event,
    FixedSizeSampled,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    Repeated,
    ReplaceOneSampled,
    StaircaseEvent,
    TruncatedLaplaceEvent,
)
from ledgerwood.accounting.events import to_json
from ledgerwood.verification.ledgers.bounds.divergences import renyi_bounds
from ledgerwood.verification.ledgers.bounds.points import point_bounds
from ledgerwood.verification.ledgers.pairs import parse

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def bounds(event: Event, delta: float):
    with mp.workdps(60):
        return point_bounds(parse(to_json(event)), delta)


def sampled_response(epsilon, rate, delta):
    """Of the randomised response, whose profile is (e^epsilon - e^t) / (1 + e^epsilon), on a sample of this rate."""
    with mp.workdps(900):
        e = mp.exp(mpf(epsilon))
        return float(mp.log1p(mpf(rate) * (e - mpf(delta) / mpf(rate) * (1 + e) - 1)))


@pytest.mark.parametrize(("epsilon", "count"), [(1e-100, 2**40), (1e-30, 1), (1e-3, 4)])
def test_a_divergence_whose_moment_is_one_in_floats_is_not_nothing(epsilon, count):
    event = Repeated(Repeated(PureEvent(epsilon=epsilon, adjacency=R), count=1000), count=count)
    with mp.workdps(400):  # of the randomised response, order by order; 8 is the order of the filter
        e = mp.exp(mpf(epsilon))
        p, q = e / (1 + e), 1 / (1 + e)
        truth = mp.log(p**8 * q**-7 + q**8 * p**-7) / 7 * 1000 * count
        found = renyi_bounds(parse(to_json(event)), 8.0)
        assert mpf(found.upper) >= truth > 0


@pytest.mark.parametrize("rate", [0.3, 1e-9, 1e-50, 1e-100])
@pytest.mark.parametrize("epsilon", [3.0, 1e-3, 1e-40, 1e-100])
@pytest.mark.parametrize("share", [0.4, 1e-9])
def test_a_sampled_response_of_any_size(epsilon, rate, share):
    delta = rate * min(epsilon, 1.0) * share
    truth = sampled_response(epsilon, rate, delta)
    assert truth > 0.0
    for event in (
        PoissonSampled(PureEvent(epsilon=epsilon, adjacency=A), sampling_rate=rate),
        FixedSizeSampled(PureEvent(epsilon=epsilon, adjacency=R), sample_size=3, population=10),
    ):
        if isinstance(event, FixedSizeSampled):
            if rate != 0.3:
                continue
            truth = sampled_response(epsilon, 0.3, delta)
        found = bounds(event, delta)
        assert found.lower == pytest.approx(truth, rel=1e-12, abs=0.0)
        assert found.upper == pytest.approx(truth, rel=1e-12, abs=0.0)


def test_a_replaced_row_of_a_sample_that_hardly_anybody_is_in():
    event = PureEvent(epsilon=1e-3, adjacency=R)
    sample = ReplaceOneSampled(event, add_remove=PureEvent(epsilon=1e-3, adjacency=A), sampling_rate=1e-100)
    found = bounds(sample, 1e-110)
    # Both profiles are one, so that the mixture is: the sampled response.
    assert found.lower == pytest.approx(sampled_response(1e-3, 1e-100, 1e-110), rel=1e-12, abs=0.0)


@pytest.mark.parametrize("scale", [1e-1, 1e-3, 1e-8, 1e-50])
@pytest.mark.parametrize("delta", [0.5, 0.01, 1e-12])
def test_truncated_noise_that_is_nearly_none(scale, delta):
    """Beyond its bound there is less than a float of it: as Laplace noise, delta = 1 - e^{(t - 1 / scale) / 2}."""
    found = bounds(TruncatedLaplaceEvent(noise_multiplier=scale, bound=30.0, adjacency=A), delta)
    with mp.workdps(60):
        truth = float(1 / mpf(scale) + 2 * mp.log(1 - mpf(delta)))
    assert found.lower == pytest.approx(truth, rel=1e-14)
    assert found.upper >= truth * (1 - 1e-14)


@pytest.mark.parametrize("size", [1e-60, 1e-80, 1e-100])
def test_nothing_is_free_because_it_is_small(size):
    """At a delta of 1e-10 of its size, each costs nearly its whole pure epsilon; at 60 digits it cost nothing."""
    for event in (
        StaircaseEvent(epsilon=size, inner_width=0.4, adjacency=A),
        LaplaceEvent(noise_multiplier=1.0 / size, adjacency=A),
        PureEvent(epsilon=size, adjacency=A),
    ):
        found = bounds(event, 1e-10 * size)
        assert (1.0 - 1e-8) * size < found.lower <= found.upper <= math.nextafter(size, 1.0)


def test_a_sample_of_whole_noise_that_hardly_anybody_is_in_is_not_free():
    """log(1 + q (e^30 - 1)) is the largest loss, and nearly all of it counts at this delta; floats near 1 show none."""
    event = PoissonSampled(DiscreteLaplaceEvent(scale=5.0, sensitivity=150, adjacency=A), sampling_rate=1e-50)
    found = bounds(event, 1e-110)
    largest = float(mp.log1p(mpf(1e-50) * mp.expm1(30)))
    assert found.upper >= largest * (1.0 - 1e-6)
    assert found.lower <= largest * (1.0 + 1e-12)
