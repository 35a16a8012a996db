"""Plans of bounded ranges from below: a mechanism that exists is priced by exact sums."""

import math

import numpy as np
import pytest
from scipy import stats

import ledgerwood as lw
from ledgerwood.accounting import Direction
from ledgerwood.accounting.costs.losses.attained import SHARES, RangePair, with_pairs

A = lw.Adjacency.ADD_REMOVE


def ranged(epsilon):
    return lw.BoundedRangeEvent(epsilon=epsilon, adjacency=A)


def chosen(epsilon, share):
    """Two candidates of an exponential mechanism on neighbours: (probability, log ratio) of each, both directions."""
    t = share * epsilon
    likely = -math.expm1(t - epsilon) / -math.expm1(-epsilon)
    ahead = ((likely, t), (1.0 - likely, t - epsilon))
    back = ((likely * math.exp(-t), -t), ((1.0 - likely) * math.exp(epsilon - t), epsilon - t))
    return ahead, back


def exact_delta(outcomes, count, epsilon):
    (p, up), (_, down) = outcomes
    k = np.arange(count + 1)
    loss = k * up + (count - k) * down
    return float((stats.binom.pmf(k, count, p) * np.maximum(-np.expm1(epsilon - loss), 0.0)).sum())


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 4.0])
def test_the_profile_is_that_of_two_outcomes(epsilon, share):
    pair = RangePair(ranged(epsilon), share)
    at = np.array([0.0, 0.1, 0.35, 0.55, 0.95]) * epsilon
    for outcomes, direction in zip(chosen(epsilon, share), (Direction.REMOVE, Direction.ADD), strict=True):
        truth = np.array([exact_delta(outcomes, 1, s) for s in at])
        above, below = np.exp(pair.log_profile(at, direction=direction)), np.exp(pair.log_profile_below(at, direction))
        assert above == pytest.approx(truth, rel=1e-9, abs=1e-15)
        assert (below <= above).all()
        assert below == pytest.approx(truth, rel=1e-9, abs=1e-15)
        assert (above <= np.exp(ranged(epsilon).log_profile(at, direction=direction)) * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    ("epsilon", "count", "near"), [(0.5, 20, 0.99), (0.1, 400, 0.999), (3.0, 3, 0.99), (1.0, 2, 0.97)]
)
def test_the_lower_end_is_what_a_mechanism_costs_and_no_more(epsilon, count, near):
    low, high = lw.price(lw.Repeated(ranged(epsilon), count=count)).epsilon_interval(1e-6)
    assert max(exact_delta(each, count, low) for share in SHARES for each in chosen(epsilon, share)) >= 1e-6
    costs = [
        max((x for x in np.linspace(0, high, 400) if exact_delta(each, count, x) > 1e-6), default=0.0)
        for share in SHARES
        for each in chosen(epsilon, share)
    ]
    assert near * max(costs) <= low <= high


def test_samples_and_groups_of_ranges_have_pairs_too():
    plan = lw.Composed(
        (
            lw.Repeated(lw.PoissonSampled(ranged(0.5), sampling_rate=0.1), count=20),
            lw.Parallel((ranged(0.5), lw.GaussianEvent(noise_multiplier=3.0, adjacency=A)), probabilities=(0.5, 0.5)),
        )
    )
    assert "BoundedRangeEvent" not in repr(with_pairs(plan, 0.5)).replace("RangePair(event=BoundedRangeEvent", "")
    low, high = lw.price(plan).epsilon_interval(1e-6)
    assert 0.7 * high < low <= high
