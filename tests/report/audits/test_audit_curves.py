"""The numbers of an audit's figures, against slow and exact ones of their own."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import ClaimedCurve, Scores, roc_band
from ledgerwood.verification.auditing.curves import bound_trade_off, claimed_trade_off, histograms, roc

A = lw.Adjacency.ADD_REMOVE
SCORES = st.lists(
    st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False, width=32)), min_size=1, max_size=12
).map(np.array)  # few whole numbers: ties


def test_the_band_holds_at_all_thresholds_at_once():
    """Gaussian scores, whose true rates are known: at most alpha of the bands leave them anywhere."""
    generator, alpha, runs, mu = np.random.default_rng(20261122), 0.2, 200, 1.0
    left = 0
    for _ in range(runs):
        hits, alarms = generator.normal(mu, size=60), generator.normal(size=90)
        found = roc(Scores(hits, alarms), alpha=alpha)
        thresholds = np.append(np.unique(np.concatenate([hits, alarms]))[::-1], -np.inf)
        shares = [np.mean(values[:, None] > thresholds, axis=0).tolist() for values in (alarms, hits)]
        place = {pair: i for i, pair in enumerate(zip(*shares, strict=True))}
        rows = [place[pair] for pair in zip(found.false_positive_rate, found.true_positive_rate, strict=True)]
        true, false = stats.norm.sf(thresholds[rows] - mu), stats.norm.sf(thresholds[rows])
        outside = (true < found.true_positive_lower) | (true > found.true_positive_upper)
        outside |= (false < found.false_positive_lower) | (false > found.false_positive_upper)
        left += bool(outside.any())
    assert left <= stats.binom.isf(1e-6, runs, alpha)


@pytest.mark.slow  # renders whole pages
@given(SCORES, SCORES)
def test_a_roc_counts_what_is_there(hits, alarms):
    found = roc(Scores(hits, alarms), alpha=0.05)
    counted = {(0.0, 0.0)} | {
        (float(np.mean(alarms >= t)), float(np.mean(hits >= t))) for t in np.concatenate([hits, alarms])
    }
    pairs = list(zip(found.false_positive_rate, found.true_positive_rate, strict=True))
    assert all(any(pair == pytest.approx(other, abs=1e-12) for other in counted) for pair in pairs)
    assert pairs[0] == (0.0, 0.0)
    assert pairs[-1] == (1.0, 1.0)
    assert all(np.diff(found.true_positive_rate) >= 0)
    assert all(np.diff(found.false_positive_rate) >= 0)
    slow = np.mean([(h > a) + 0.5 * (h == a) for h in hits for a in alarms])
    assert found.area == pytest.approx(slow, abs=1e-12)


def above(edge, at):
    """The highest rate of right alarms of an edge at some rates of false alarms, as steps are read."""
    return np.array([max(y for x, y in zip(*edge, strict=True) if x <= a) for a in at])


def below(edge, at):
    """The lowest one."""
    return np.array([min(y for x, y in zip(*edge, strict=True) if x >= a) for a in at])


@pytest.mark.slow  # renders whole pages
@given(SCORES, SCORES)
def test_the_band_encloses_the_curve_and_stays_in_the_square(hits, alarms):
    found = roc(Scores(hits, alarms), alpha=0.05)
    for edge in (found.lower, found.upper):
        assert (edge[0][0], edge[1][0], edge[0][-1], edge[1][-1]) == (0.0, 0.0, 1.0, 1.0)
        assert len(edge[0]) == len(edge[1])
        for rates in edge:
            assert min(np.diff(rates)) >= 0.0
            assert 0.0 <= rates[0] <= rates[-1] <= 1.0
    false, true = np.array(found.false_positive_rate), np.array(found.true_positive_rate)
    assert np.all(below(found.lower, false) <= true)
    assert np.all(true <= above(found.upper, false))


@pytest.mark.slow  # renders whole pages
@given(st.integers(0, 2**32), st.floats(0.0, 2.0))
def test_thresholds_that_are_left_out_are_within_the_band_too(seed, mu):
    """All rates that the band allows, at all thresholds: none outside of the edges of the few that were kept."""
    generator = np.random.default_rng(seed)
    scores = Scores(generator.normal(mu, size=400), generator.normal(size=500))
    found, band = roc(scores, alpha=0.05), roc_band(scores, alpha=0.05)
    kept = generator.choice(len(band.thresholds), 40)
    assert np.all(below(found.lower, band.false_upper[kept]) <= band.right_lower[kept] + 1e-8)
    assert np.all(above(found.upper, band.false_lower[kept]) >= band.right_upper[kept] - 1e-8)


def test_a_long_roc_is_thinned_and_keeps_its_tails():
    generator = np.random.default_rng(1)
    found = roc(Scores(generator.normal(1, size=200_000), generator.normal(size=200_000)), alpha=0.05)
    assert 60 < len(found.true_positive_rate) < 250
    assert 0.0 < found.true_positive_rate[1] < 1e-5
    assert found.area == pytest.approx(stats.norm.cdf(math.sqrt(0.5)), abs=5 * 0.5 / math.sqrt(200_000))


@given(SCORES, SCORES)
def test_histograms_lose_no_score(hits, alarms):
    found = histograms(Scores(hits, alarms))
    assert (sum(found.with_row), sum(found.without)) == (len(hits), len(alarms))
    assert all(np.diff(found.edges) > 0)


def test_infinite_scores_are_in_the_outermost_bins():
    found = histograms(Scores(np.array([np.inf, 0.0, 1.0]), np.array([-np.inf, 0.5])))
    assert found.with_row[-1] == 2
    assert found.without[0] == 1
    only = histograms(Scores(np.array([np.inf]), np.array([-np.inf])))
    assert (sum(only.with_row), sum(only.without)) == (1, 1)


@pytest.mark.parametrize("bad", [np.array([]), np.array([0.0, np.nan])])
@pytest.mark.parametrize("function", [lambda scores: roc(scores, alpha=0.05), histograms])
def test_scores_that_are_no_numbers_are_refused(bad, function):
    with pytest.raises(InvalidParameter, match="at least one number"):
        function(Scores(bad, np.array([1.0])))
    with pytest.raises(InvalidParameter, match="at least one number"):
        function(Scores(np.array([1.0]), bad))


def test_the_claimed_curve_of_a_gaussian_is_the_closed_form():
    """Dong, Roth and Su 2019: G_mu(a) = Phi(Phi^-1(1 - a) - mu)."""
    found = claimed_trade_off(ClaimedCurve(lw.GaussianEvent(noise_multiplier=2.0, adjacency=A)))
    rates = np.array(found.false_positive_rate)
    assert np.array(found.false_negative_rate) == pytest.approx(stats.norm.cdf(stats.norm.isf(rates) - 0.5), abs=1e-4)


def corner(epsilon, delta, rates):
    """Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015, Theorem 2.1."""
    ends = [np.zeros_like(rates), 1 - delta - math.exp(epsilon) * rates, math.exp(-epsilon) * (1 - delta - rates)]
    return np.max(ends, axis=0)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.3, 1e-5), (4.0, 0.2)])
def test_the_curve_of_a_budget_and_of_a_bound_have_their_corners(epsilon, delta):
    bound = bound_trade_off(epsilon, delta)
    rates = np.array(bound.false_positive_rate)
    assert np.array(bound.false_negative_rate) == pytest.approx(corner(epsilon, delta, rates), abs=1e-12)
    budget = lw.Budget(epsilon=epsilon, delta=delta, adjacency=A)
    claimed = claimed_trade_off(ClaimedCurve(budget))
    assert np.array(claimed.false_negative_rate) == pytest.approx(corner(epsilon, delta, rates), abs=1e-9)


def test_the_curve_of_a_function_is_never_above_what_it_promises():
    """That of Gaussian noise, as a function of epsilon: points of its profile give a curve below, and close."""
    priced = lw.price(lw.GaussianEvent(noise_multiplier=1.0, adjacency=A))
    found = claimed_trade_off(ClaimedCurve(priced.delta))
    truth = stats.norm.cdf(stats.norm.isf(np.array(found.false_positive_rate)) - 1.0)
    assert np.all(np.array(found.false_negative_rate) <= truth + 1e-12)
    assert np.array(found.false_negative_rate) == pytest.approx(truth, abs=2e-3)


def test_an_infinite_bound_leaves_nothing():
    misses = np.array(bound_trade_off(math.inf, 0.0).false_negative_rate)
    assert misses[0] == pytest.approx(1.0)
    assert np.all(misses[1:] < 1e-300)
