import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from ledgerwood.verification.auditing import randomised_labels
from ledgerwood.verification.black_box.budget import Counts


def tally(inside, other, runs, coin, outside=0):
    return Counts(inside=inside, other=other, outside=outside, runs=runs, coin=coin)


@given(st.integers(0, 500), st.integers(0, 500), st.sampled_from([0.0, 1e-5, 0.01]))
@example(9, 0, 0.0)
def test_a_fair_coin_gives_the_bound_of_randomised_labels(inside, other, delta):
    runs = 2000
    if inside + other == 0:
        assert tally(0, 0, runs, 0.5).epsilon_from_labels(delta=delta, alpha=0.05) == 0.0
        return
    expected = randomised_labels(inside, other, runs, delta=delta, alpha=0.05)
    assert tally(inside, other, runs, 0.5).epsilon_from_labels(delta=delta, alpha=0.05) == pytest.approx(
        expected, rel=1e-7, abs=2e-7
    )  # each is rounded down by 1e-7 at most in either of its logarithms


@given(st.integers(1, 400), st.integers(0, 400), st.floats(0.1, 0.9), st.floats(0.0, 3.0))
def test_delta_is_where_epsilon_is_refused(inside, other, coin, epsilon):
    counts = tally(inside, other, 4000, coin)
    delta = counts.delta_from_labels(epsilon=epsilon, alpha=0.05)
    if 1e-6 < delta < 0.9:
        assert counts.epsilon_from_labels(delta=delta * 0.999, alpha=0.05) > epsilon - 1e-6
        assert counts.epsilon_from_labels(delta=min(delta * 1.001, 1.0), alpha=0.05) < epsilon + 1e-6


@pytest.mark.slow_after(1)  # many audits
@pytest.mark.parametrize("coin", [0.2, 0.5, 0.8])
def test_the_level_is_kept_by_enumeration_at_the_truth(coin):
    """All outcomes of 60 runs of an event at the very edge of epsilon 1, delta 0: no level is above alpha."""
    runs, alpha, low = 60, 0.05, 0.2
    high = low * math.e
    # counts of (event and numerator) and (event and other) are multinomial: enumerate both
    a = np.arange(runs + 1)
    wrong = 0.0
    inside_law = coin * high + (1 - coin) * low
    share = coin * high / inside_law
    for total in range(runs + 1):
        weight = stats.binom.pmf(total, runs, inside_law)
        law = stats.binom.pmf(a[: total + 1], total, share)
        above = [
            tally(k, total - k, runs, coin).epsilon_from_labels(delta=0.0, alpha=alpha) > 1.0 for k in range(total + 1)
        ]
        wrong += weight * law[np.array(above)].sum()
    assert wrong <= alpha * (1 + 1e-9)


@pytest.mark.slow  # many audits
@pytest.mark.parametrize("coin", [0.2, 0.5, 0.8])
def test_the_level_is_kept_with_a_delta(coin):
    """p = e q + delta exactly: labels and event by enumeration of 40 runs."""
    runs, alpha, low, delta = 40, 0.2, 0.15, 0.1
    high = low * math.e + delta
    inside_law = coin * high + (1 - coin) * low
    share = coin * high / inside_law
    wrong_epsilon = wrong_delta = 0.0
    for total in range(runs + 1):
        law = stats.binom.pmf(np.arange(total + 1), total, share) * stats.binom.pmf(total, runs, inside_law)
        for k in range(total + 1):
            counts = tally(k, total - k, runs, coin)
            wrong_epsilon += law[k] * (counts.epsilon_from_labels(delta=delta, alpha=alpha) > 1.0)
            wrong_delta += law[k] * (counts.delta_from_labels(epsilon=1.0, alpha=alpha) > delta)
    assert wrong_epsilon <= alpha
    assert wrong_delta <= alpha
    assert wrong_delta > 0.0  # the test has power at all
