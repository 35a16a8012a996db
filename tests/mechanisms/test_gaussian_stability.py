"""The stability histogram with Gaussian noise: delta against mpmath, every neighbour by enumeration, its law."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2, norm

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import ApproximateEvent, GaussianEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import GaussianStabilityMechanism, SecureRandom, SeededRandom

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


@pytest.mark.parametrize(
    ("stddev", "threshold"), [(1.0, 2), (1.5, 9), (0.05, 3), (30.0, 166), (1e6, 4 * 10**6), (1e12, 10**13), (7.0, 260)]
)
def test_delta_is_the_chance_that_a_lone_key_shows(stddev, threshold):
    event = GaussianStabilityMechanism(stddev=stddev, threshold=threshold).event(A)
    gaussian, shown = event.events
    assert (gaussian, type(shown)) == (GaussianEvent(noise_multiplier=stddev, adjacency=A), ApproximateEvent)
    with mpmath.workdps(60):
        exact = mpmath.erfc((threshold - mpmath.mpf(3) / 2) / (mpmath.mpf(stddev) * mpmath.sqrt(2))) / 2
        assert exact <= mpmath.mpf(shown.delta) <= exact * (1 + mpmath.mpf(10) ** -10)


@pytest.mark.parametrize("stddev", [0.05, 0.7, 13.0, 523.0, 1e7, 1e12])
@pytest.mark.parametrize("delta", [0.4, 1e-3, 1e-9, 1e-100, 1e-280])
def test_the_threshold_of_a_delta_is_the_least(stddev, delta):
    mechanism = GaussianStabilityMechanism.for_delta(stddev, delta)
    assert mechanism.event(A).events[1].delta <= delta
    if mechanism.threshold > 2:
        # One row less, or for huge noise one part in 1e12, would not do.
        less = mechanism.threshold - 1 - int(mechanism.threshold * 1e-12)
        assert norm.sf((less - 1.5) / stddev) * (1 + 1e-8) > delta


def outcome_law(count, mechanism, reach=120):
    """Probabilities of "unseen" and of each noisy count from the threshold on, for one key with this count."""
    if count == 0:
        return np.concatenate(([1.0], np.zeros(reach)))
    edges = (np.arange(mechanism.threshold, mechanism.threshold + reach + 1) - 0.5 - count) / mechanism.stddev
    seen = -np.diff(norm.sf(edges))
    return np.concatenate(([1.0 - seen.sum()], seen))


def excess(law, other, epsilon):
    """sup_S P(S) - e^epsilon Q(S)."""
    return float(np.maximum(law - math.exp(epsilon) * other, 0.0).sum())


def price(event, epsilon):
    """delta + (1 - delta) H of the Gaussian: the profile of the two together."""
    gaussian, shown = event.events
    profile = math.exp(float(gaussian.log_profile([epsilon], direction=Direction.REMOVE)[0]))
    return shown.delta + (1.0 - shown.delta) * profile


@pytest.mark.parametrize(("stddev", "threshold"), [(1.0, 2), (0.7, 4), (3.0, 12)])
def test_no_neighbour_breaks_the_price(stddev, threshold):
    mechanism = GaussianStabilityMechanism(stddev=stddev, threshold=threshold)
    one, two = mechanism.event(A), mechanism.event(R)
    laws = [outcome_law(count, mechanism) for count in range(9)]
    closest = math.inf
    for epsilon, count in itertools.product((0.0, 0.1, 1.0, 3.0), range(8)):
        limit = price(one, epsilon)
        for law, other in itertools.permutations((laws[count], laws[count + 1])):
            found = excess(law, other, epsilon)
            assert found <= limit * (1 + 1e-9)
            closest = min(closest, limit / max(found, 1e-300))
    assert closest < 1.3, "the price is near the worst neighbours"
    # Replace-one: one key loses a row, another gains one.
    for epsilon, lost, gained in itertools.product((0.0, 0.5, 2.0), range(1, 5), range(4)):
        before = np.outer(laws[lost], laws[gained]).ravel()
        after = np.outer(laws[lost - 1], laws[gained + 1]).ravel()
        for law, other in itertools.permutations((before, after)):
            assert excess(law, other, epsilon) <= price(two, epsilon) * (1 + 1e-9)


def test_keys_without_rows_never_show_and_keys_come_in_their_own_order():
    mechanism = GaussianStabilityMechanism(stddev=0.02, threshold=2)
    counts = {"b": 5, "a": 7, "none": 0, "lone": 1}
    shown = mechanism.select(counts, SecureRandom())
    assert list(shown.items()) == [("a", 7), ("b", 5)]
    assert mechanism.select(dict(reversed(counts.items())), SecureRandom()) == shown
    assert mechanism.select({}, SecureRandom()) == {}


def test_the_law_of_the_noisy_counts():
    mechanism = GaussianStabilityMechanism(stddev=2.0, threshold=4)
    n = 40_000
    keys = {f"{i:06d}": 5 for i in range(n)}
    shown = np.array(list(mechanism.select(keys, SeededRandom(5)).values()))
    law = outcome_law(5, mechanism, reach=8)
    found = np.array([n - len(shown), *(int((shown == t).sum()) for t in range(4, 12))])
    tail = n - found.sum()
    expected = n * np.append(law, 1.0 - law.sum())
    statistic = float(((np.append(found, tail) - expected)[expected > 5] ** 2 / expected[expected > 5]).sum())
    assert statistic < chi2.ppf(1 - 1e-6, 9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stddev": 0.0, "threshold": 2}, "stddev=0"),
        ({"stddev": 1e13, "threshold": 2}, r"stddev=1\d+\.0 must be in"),
        ({"stddev": math.nan, "threshold": 2}, "stddev=nan"),
        ({"stddev": 1.0, "threshold": 1}, "threshold=1"),
        ({"stddev": 1.0, "threshold": 2.5}, r"threshold=2\.5"),
        ({"stddev": 1.0, "threshold": 2**53 + 1}, r"threshold=\d+ must be at most 2\*\*53"),
    ],
)
def test_bad_parameters_are_named(options, words):
    with pytest.raises(InvalidParameter, match=words):
        GaussianStabilityMechanism(**options)


@pytest.mark.parametrize(("stddev", "delta"), [(1.0, 0.0), (1.0, 0.5), (1.0, math.nan), (1.0, 1e-300), (0.0, 1e-9)])
def test_bad_targets_are_named(stddev, delta):
    with pytest.raises(InvalidParameter, match="delta=|stddev="):
        GaussianStabilityMechanism.for_delta(stddev, delta)


@pytest.mark.parametrize("count", [-1, 2.5, 2**62, True])
def test_bad_counts_are_named(count):
    with pytest.raises(InvalidParameter, match="count="):
        GaussianStabilityMechanism(stddev=1.0, threshold=2).select({"a": count}, SecureRandom())


def test_what_is_no_mapping_is_named():
    with pytest.raises(InvalidParameter, match="counts type='list'"):
        GaussianStabilityMechanism(stddev=1.0, threshold=5).select(["a"], SeededRandom(1))
