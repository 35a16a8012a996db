"""Both directions and both sides at one alpha: errors summed over all outcomes, quantiles by their definition."""

import math

import numpy as np
import pytest
from scipy import stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import randomised_labels, two_sided_labels, two_sided_odds

EDGES = [(0.0, 0.0, 0.3), (0.0, 0.0, 0.5), (0.7, 0.0, 0.2), (0.7, 0.0, 0.33), (1.5, 0.0, 0.1), (0.7, 0.05, 0.2)]
"""epsilon, delta, and the smaller probability of the event."""


def pairs(epsilon, delta, low):
    """Probabilities on an edge, in both directions and on both sides."""
    high = min(math.exp(epsilon) * low + delta, 1.0)
    return [(high, low), (low, high), (1.0 - low, 1.0 - high), (1.0 - high, 1.0 - low)]


@pytest.mark.parametrize("alpha", [0.3, 0.05])
@pytest.mark.parametrize(("epsilon", "delta", "low"), EDGES)
def test_labels_err_at_most_so_often_by_enumeration(alpha, epsilon, delta, low):
    runs, bounds = 11, {}
    for n in range(runs + 1):
        for a in range(n + 1):
            for b in range(runs - n + 1):
                if 0 < n < runs:
                    bounds[n, a, b] = two_sided_labels(a, n, b, runs - n, delta=delta, alpha=alpha)
    for p, q in pairs(epsilon, delta, low):
        wrong = sum(
            stats.binom.pmf(n, runs, 0.5) * stats.binom.pmf(a, n, p) * stats.binom.pmf(b, runs - n, q)
            for (n, a, b), bound in bounds.items()
            if bound > epsilon
        )
        assert wrong <= alpha


@pytest.mark.parametrize("alpha", [0.3, 0.05])
@pytest.mark.parametrize("low", [0.2, 0.27, 0.33])
def test_odds_err_at_most_so_often_by_enumeration(alpha, low):
    """Runs of each label fixed, and unequal; .27 is the randomised response at epsilon 1, where the level is used."""
    one, two = 8, 6
    table = np.array([[two_sided_odds(a, one, b, two, alpha=alpha) for b in range(two + 1)] for a in range(one + 1)])
    for epsilon in (0.0, 0.5, math.log((1.0 - max(low, 0.27)) / max(low, 0.27))):
        for p, q in pairs(epsilon, 0.0, low):
            chances = np.outer(stats.binom.pmf(range(one + 1), one, p), stats.binom.pmf(range(two + 1), two, q))
            assert chances[table > epsilon].sum() <= alpha


def test_four_statements_cost_next_to_nothing():
    """Beside one direction at the whole of alpha, and at the quarter that a union bound leaves."""
    counts = {"delta": 0.0, "alpha": 0.05}
    found = two_sided_labels(500, 1_000, 184, 1_000, **counts)
    alone = randomised_labels(500, 184, 2_000, **counts)
    assert found == pytest.approx(alone, abs=1e-6)  # which rounds down by as much
    assert found > randomised_labels(500, 184, 2_000, delta=0.0, alpha=0.0125) + 0.04
    # The same table with its labels turned, and with its event turned.
    for other in ((184, 1_000, 500, 1_000), (500, 1_000, 816, 1_000), (816, 1_000, 500, 1_000)):
        assert two_sided_labels(*other, **counts) == pytest.approx(found, abs=1e-9)
        assert two_sided_odds(*other, alpha=0.05) == pytest.approx(two_sided_odds(500, 1_000, 184, 1_000, alpha=0.05))
    with_delta = two_sided_labels(500, 1_000, 184, 1_000, delta=1e-3, alpha=0.05)
    assert randomised_labels(500, 184, 2_000, delta=1e-3, alpha=0.05) - 0.01 < with_delta < found


def test_the_limit_is_where_both_tails_have_alpha():
    bound = two_sided_labels(15, 20, 5, 20, delta=0.0, alpha=0.05)
    rate = 1.0 / (1.0 + math.exp(-bound))
    assert stats.binom.sf(14, 20, rate) + stats.binom.cdf(5, 20, rate) == pytest.approx(0.05, rel=1e-5)
    bound = two_sided_odds(30, 40, 12, 35, alpha=0.05)
    law = stats.nchypergeom_fisher(75, 42, 40, math.exp(2.0 * bound))
    assert law.sf(29) <= 0.05
    assert law.sf(29) == pytest.approx(0.05, rel=1e-4)  # the other tail has nothing there


def test_a_randomised_response_shows_more_by_its_odds_and_a_half_line_less():
    response = (7_311, 10_000, 2_689, 10_000)
    assert 1.0 > two_sided_odds(*response, alpha=0.05) > two_sided_labels(*response, delta=0.0, alpha=0.05)
    half_line = (5_000, 10_000, 1_839, 10_000)
    assert two_sided_odds(*half_line, alpha=0.05) < 0.745 < two_sided_labels(*half_line, delta=0.0, alpha=0.05)


def test_nothing_follows_from_nothing():
    for none in ((0, 5, 0, 5), (5, 5, 5, 5), (3, 6, 3, 6)):
        assert two_sided_labels(*none, delta=0.0, alpha=0.05) == 0.0
        assert two_sided_odds(*none, alpha=0.05) == 0.0
    assert two_sided_labels(60, 60, 0, 60, delta=0.0, alpha=0.05) > 2.5
    assert two_sided_odds(60, 60, 0, 60, alpha=0.05) > 2.0
    assert two_sided_labels(1, 10_000, 0, 10_000, delta=0.5, alpha=0.05) == 0.0


def test_coins_may_give_all_runs_one_label():
    assert two_sided_labels(0, 0, 5, 10, delta=0.0, alpha=0.05) == 0.0
    assert two_sided_labels(5, 10, 0, 0, delta=1e-3, alpha=0.05) == 0.0
    assert two_sided_odds(0, 0, 5, 10, alpha=0.05) == 0.0
    for counts, words in (
        ((0, 0, 0, 0), "runs_with . runs_without=0 must be at least 1"),
        ((0, -1, 0, 2), "runs_with=-1 must be"),
        ((1, 0, 0, 2), "with_row=1 must be at most runs_with=0"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            two_sided_labels(*counts, delta=0.0, alpha=0.05)
