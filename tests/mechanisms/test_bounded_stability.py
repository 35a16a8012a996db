"""The stability histogram behind a test of the number of keys: what it releases, and what it costs."""

import math

import mpmath
import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BoundedStabilityMechanism, GaussianStabilityMechanism, SecureRandom, SeededRandom
from ledgerwood.mechanisms.bounded_stability import FAILURE, ROOMS, room_for

A, R = lw.Adjacency.ADD_REMOVE, lw.Adjacency.REPLACE_ONE


@pytest.mark.parametrize("adjacency", list(lw.Adjacency))
def test_it_costs_the_histogram_the_test_and_the_failures(adjacency):
    histogram = GaussianStabilityMechanism.for_delta(20.0, 1e-8)
    mechanism = BoundedStabilityMechanism(stddev=20.0, threshold=histogram.threshold, room=2048)
    gaussian, lone = histogram.event(adjacency).events
    first, test, failure = mechanism.event(adjacency).events
    assert first == gaussian
    # The number of distinct keys moves by one at most, also where one key goes and another one comes.
    assert test == lw.GaussianEvent(noise_multiplier=128.0, adjacency=adjacency)
    assert lone.delta + FAILURE <= failure.delta <= (lone.delta + FAILURE) * (1 + 1e-12)


def test_for_delta_is_the_whole_delta_of_the_event():
    for delta in (1e-11, 1e-8, 1e-3, 0.3):
        mechanism = BoundedStabilityMechanism.for_delta(7.0, delta, room=1024)
        assert 0.2 * (delta - FAILURE) < mechanism.event(A).events[2].delta - FAILURE <= delta - FAILURE
        smaller = BoundedStabilityMechanism(stddev=7.0, threshold=max(2, mechanism.threshold - 1), room=1024)
        assert mechanism.threshold == 2 or smaller.event(A).events[2].delta > delta
    for delta in (FAILURE, 1e-13, 0.0, 0.6):
        with pytest.raises(InvalidParameter, match="delta"):
            BoundedStabilityMechanism.for_delta(7.0, delta, room=1024)


@pytest.mark.parametrize("room", ROOMS)
def test_more_keys_than_there_is_room_for_do_not_pass(room):
    """Half of what is stated for failures covers it, for the least number of keys that a table may not hold."""
    mechanism = BoundedStabilityMechanism(stddev=1.0, threshold=5, room=room)
    passes = mpmath.ncdf((mechanism.most - mpmath.mpf(1) / 2 - room) / (mpmath.mpf(room) / 16))
    assert 0 < passes <= FAILURE / 2
    assert mechanism.most >= room / 2


def mass(mean, sigma, low, high):
    return mpmath.ncdf((high - mean) / sigma) - mpmath.ncdf((low - mean) / sigma)


def excess(p_mean, q_mean, sigma, start, epsilon):
    """The integral of (p - e^epsilon q)+ from `start` on, of two normal densities, which cross once."""
    if p_mean == q_mean:
        return mpmath.mpf(0)
    cross = (mpmath.mpf(p_mean) + q_mean) / 2 + epsilon * sigma**2 / (p_mean - q_mean)
    low, high = (max(start, cross), mpmath.inf) if p_mean > q_mean else (start, max(start, cross))
    of_p, of_q = (mass(mean, sigma, low, high) for mean in (p_mean, q_mean))
    return max(mpmath.mpf(0), of_p - mpmath.e**epsilon * of_q)


@pytest.mark.parametrize("room", [ROOMS[0], ROOMS[-1]])
def test_a_pair_beyond_the_room_is_within_the_stated_one(room):
    """P and Q agree with the ideal release where the test fails, and are anything where it passes: the worst case of
    that against a Gaussian of shift 16 / room and (0, 2 p), as docs/explanation/federation.md#estimated-schemas has it.
    """
    mpmath.mp.dps = 40
    mechanism = BoundedStabilityMechanism(stddev=1.0, threshold=5, room=room)
    sigma = mpmath.mpf(room) / 16
    limit = mechanism.most - mpmath.mpf(1) / 2
    for p_mean, q_mean in ((room, room + 1), (room + 1, room), (room, room)):
        p_low, q_low = (mpmath.ncdf((limit - mean) / sigma) for mean in (p_mean, q_mean))
        for epsilon in (0, mpmath.mpf("1e-3"), mpmath.mpf("0.05"), mpmath.mpf("0.3"), 2):
            e, mu = mpmath.e**epsilon, mpmath.mpf(1) / sigma
            worst = p_low + excess(p_mean, q_mean, sigma, limit, epsilon)
            gaussian = mpmath.ncdf(mu / 2 - epsilon / mu) - e * mpmath.ncdf(-mu / 2 - epsilon / mu)
            delta = 2 * max(p_low, q_low)
            assert worst <= delta + (1 - delta) * gaussian
            assert delta <= FAILURE


def test_what_it_releases():
    mechanism = BoundedStabilityMechanism(stddev=2.0, threshold=10, room=1024)
    counts = {"a": 100, "b": 1, "c": 0}
    shown = [mechanism.select(counts, SeededRandom(seed)) for seed in range(200)]
    assert all(set(each) == {"a"} for each in shown)
    assert np.std([each["a"] for each in shown]) == pytest.approx(2.0, rel=0.25)
    assert mechanism.select({}, SecureRandom()) == {}
    assert mechanism.select(None, SecureRandom()) is None
    # A key without rows is none: 544 is the limit, and 1,000 keys of no row are no keys.
    assert mechanism.select({str(i): 0 for i in range(1000)}, SecureRandom()) == {}


def test_many_keys_pass_or_not_by_a_noisy_number():
    mechanism = BoundedStabilityMechanism(stddev=0.1, threshold=2, room=1024)
    assert mechanism.most == 544
    few, edge, many = ({str(i): 5 for i in range(n)} for n in (544 - 64 * 7, 544, 544 + 64 * 7))
    assert all(mechanism.select(few, SeededRandom(seed)) is not None for seed in range(20))
    assert all(mechanism.select(many, SeededRandom(seed)) is None for seed in range(20))
    passed = sum(mechanism.select(edge, SeededRandom(seed)) is not None for seed in range(400))
    assert abs(passed - 200) < 5 * math.sqrt(100)


def test_the_test_costs_at_most_a_sixteenth_of_the_counts_where_there_is_such_a_room():
    for stddev in (0.02, 1.0, 16.0, 16.1, 100.0, 256.0):
        room = room_for(stddev)
        assert (16 / room) ** 2 <= 1 / stddev**2 / 16
        assert room == ROOMS[0] or (16 / (room // 2)) ** 2 > 1 / stddev**2 / 16
    assert room_for(1e6) == ROOMS[-1]


@pytest.mark.parametrize(
    "options", [{"stddev": 0.0}, {"threshold": 1}, {"room": 1000}, {"room": 1024.0}, {"room": 32768}]
)
def test_values_out_of_bounds(options):
    with pytest.raises(InvalidParameter, match=next(iter(options))):
        BoundedStabilityMechanism(**{"stddev": 1.0, "threshold": 5, "room": 1024, **options})
