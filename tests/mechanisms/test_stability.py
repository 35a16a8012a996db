"""The stability histogram: delta against mpmath, its law, every neighbour by enumeration, bad input."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chi2

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import ApproximateEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import SecureRandom, SeededRandom, StabilityHistogramMechanism

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def pmf(z, scale):
    x = math.exp(-1.0 / scale)
    return np.exp(-np.abs(z) / scale) * (1 - x) / (1 + x)


def outcome_law(count, mechanism, reach=400):
    """Probabilities of "unseen" and of each noisy count from the threshold on, for one key with this count."""
    if count == 0:
        return np.concatenate(([1.0], np.zeros(reach)))
    seen = pmf(np.arange(mechanism.threshold, mechanism.threshold + reach) - count, mechanism.scale)
    return np.concatenate(([1.0 - seen.sum()], seen))


@pytest.mark.parametrize(
    ("scale", "threshold"), [(1.0, 2), (1.5, 20), (0.02, 3), (1e6, 10**7), (1e12, 10**14), (2.0, 1381)]
)
def test_delta_is_the_chance_that_a_lone_key_shows(scale, threshold):
    event = StabilityHistogramMechanism(scale=scale, threshold=threshold).event(A)
    with mpmath.workdps(60):
        b = mpmath.mpf(scale)
        exact = mpmath.exp(-(threshold - 1) / b) / (1 + mpmath.exp(-1 / b))
        assert exact <= mpmath.mpf(event.delta) <= exact * (1 + mpmath.mpf(2) ** -50)
        assert 1 / b <= event.epsilon <= (1 / b) * (1 + mpmath.mpf(2) ** -52)
    if threshold < 2000:
        z = np.arange(threshold - 1, threshold + 2000)
        assert event.delta == pytest.approx(pmf(z, scale).sum(), rel=1e-12)


def excess(law, other, epsilon):
    """sup_S P(S) - e^epsilon Q(S)."""
    return float(np.maximum(law - math.exp(epsilon) * other, 0.0).sum())


@pytest.mark.parametrize(("scale", "threshold"), [(1.0, 2), (0.7, 6), (3.0, 12)])
def test_no_neighbour_breaks_the_price(scale, threshold):
    mechanism = StabilityHistogramMechanism(scale=scale, threshold=threshold)
    one, two = mechanism.event(A), mechanism.event(R)
    laws = [outcome_law(count, mechanism) for count in range(9)]
    worst = 0.0
    for count in range(8):
        for p, q in itertools.permutations((laws[count], laws[count + 1])):
            worst = max(worst, excess(p, q, one.epsilon))
    assert worst == pytest.approx(one.delta, rel=1e-9)
    assert worst <= one.delta * (1 + 1e-9)
    for source, target in itertools.product(range(1, 4), range(3)):  # a row leaves one key and joins another
        p = np.outer(laws[source], laws[target]).ravel()
        q = np.outer(laws[source - 1], laws[target + 1]).ravel()
        assert excess(p, q, two.epsilon) <= two.delta * (1 + 1e-9)
        assert excess(q, p, two.epsilon) <= two.delta * (1 + 1e-9)


def test_counts_have_their_law():
    mechanism, source, n = StabilityHistogramMechanism(scale=2.0, threshold=4), SeededRandom(3), 5_000
    found = np.zeros(12)
    for _ in range(n):
        released = mechanism.select({"b": 5, "a": 10**6, "none": 0}, source)
        assert list(released) == sorted(released)
        assert "none" not in released
        assert released["a"] > 10**6 - 100
        found[min(released["b"] - 3, 11) if "b" in released else 0] += 1
    law = outcome_law(5, mechanism)
    law = np.concatenate((law[:11], [law[11:].sum()]))
    assert chi2.sf(float(((found - n * law) ** 2 / (n * law)).sum()), 11) > 1e-4


def test_a_lone_key_shows_as_often_as_delta_says():
    mechanism = StabilityHistogramMechanism(scale=2.0, threshold=5)
    counts, n = {str(i): 1 for i in range(1000)}, 40
    shown = sum(len(mechanism.select(counts, SeededRandom(k))) for k in range(n))
    delta = mechanism.event(A).delta
    assert abs(shown - 1000 * n * delta) < 5 * math.sqrt(1000 * n * delta)
    assert mechanism.select({}, SecureRandom()) == {}


@given(scale=st.floats(0.02, 1e6), exponent=st.floats(0.5, 290.0))
def test_the_threshold_for_a_delta_is_the_least(scale, exponent):
    assume(exponent * math.log(10.0) + 1.0 / scale < 689.0)  # thresholds are 1 / scale nats apart
    delta = 10.0**-exponent
    mechanism = StabilityHistogramMechanism.for_delta(scale, delta)
    assert mechanism.event(A).delta <= delta
    if mechanism.threshold > 2:
        assert StabilityHistogramMechanism(scale=scale, threshold=mechanism.threshold - 1).event(A).delta > delta


def test_a_delta_beyond_the_largest_threshold_is_refused_by_its_name():
    """With scale .02 thresholds are 50 nats apart, and the one for 1e-283 would be beyond 690 nats."""
    with pytest.raises(InvalidParameter, match=r"delta=1e-283 must be at least [\d.]+e-283 at scale=0\.02"):
        StabilityHistogramMechanism.for_delta(0.02, 1e-283)
    least = StabilityHistogramMechanism(scale=0.02, threshold=14).event(A).delta
    assert StabilityHistogramMechanism.for_delta(0.02, least).threshold == 14


def test_events_are_approximate():
    event = StabilityHistogramMechanism(scale=2.0, threshold=30).event(R)
    assert isinstance(event, ApproximateEvent)
    assert event.epsilon == 1.0
    assert event.delta == StabilityHistogramMechanism(scale=2.0, threshold=30).event(A).delta


def test_bad_values_are_refused():
    for scale in (0.0, -1.0, math.nan, math.inf, 1e13, 1e-3, None):
        with pytest.raises(InvalidParameter, match=r"scale=.*unit"):
            StabilityHistogramMechanism(scale=scale, threshold=10)
    for threshold in (1, 0, 2.5, True, 10_000):
        with pytest.raises(InvalidParameter, match=r"threshold=.*unit"):
            StabilityHistogramMechanism(scale=1.0, threshold=threshold)
    for delta in (0.0, 0.5, -1.0, math.nan, 1e-300):
        with pytest.raises(InvalidParameter, match=r"delta=.*unit"):
            StabilityHistogramMechanism.for_delta(1.0, delta)
    for count in (-1, 1.5, 2**62, None):
        with pytest.raises(InvalidParameter, match="count="):
            StabilityHistogramMechanism(scale=1.0, threshold=10).select({"a": count}, SeededRandom(1))
