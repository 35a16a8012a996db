"""Readings of a price against closed forms and the exact likelihood-ratio test: never kinder than the truth."""

import math
import re

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from scipy.stats import norm

from ledgerwood.accounting import (
    Adjacency,
    Budget,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    PrivacyUnit,
    PureEvent,
    Repeated,
    price,
    risk,
)
from ledgerwood.errors import InvalidParameter

A = Adjacency.ADD_REMOVE
RATES = np.concatenate(([0.0], np.geomspace(1e-9, 0.4, 25), np.linspace(0.45, 1.0, 12)))


def gaussian(mu):
    return GaussianEvent(noise_multiplier=1.0 / mu, adjacency=A)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def responses(epsilon, copies):
    """(P, Q) of the outcomes of fresh randomised responses, the likeliest under P first."""
    up, down = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    ways = np.array([math.comb(copies, k) for k in range(copies + 1)], dtype=float)
    truths = np.arange(copies, -1, -1)
    return ways * up**truths * down ** (copies - truths), ways * down**truths * up ** (copies - truths)


def neyman_pearson(p, q, rates):
    """The least type II error at each type I error, for atoms in the order of their likelihood ratio."""
    return 1.0 - np.interp(rates, np.concatenate(([0.0], np.cumsum(q))), np.concatenate(([0.0], np.cumsum(p))))


@pytest.mark.slow_after(4)  # prices many plans
@pytest.mark.parametrize("method", ["profile", "gdp", "renyi"])
@pytest.mark.parametrize("mu", [0.01, 0.5, 1.0, 4.0])
def test_the_gaussian_trade_off(method, mu):
    """Dong, Roth and Su 2019: Phi(Phi^-1(1 - a) - mu)."""
    priced, truth = price(gaussian(mu), method=method), norm.cdf(norm.isf(RATES) - mu)
    found = risk.trade_off(priced, RATES)
    assert (found <= truth).all()
    assert (found >= 0.0).all()
    if method != "renyi":
        np.testing.assert_allclose(found, truth, atol=1e-6)
        rates = RATES[1:-1:3]
        power = np.array([risk.true_positive_rate(priced, rate) for rate in rates])
        exact = norm.sf(norm.isf(rates) - mu)
        assert (power >= exact * (1 - 1e-14)).all()
        np.testing.assert_allclose(power, exact, rtol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 5.0), st.floats(0.0, 1.0))
def test_the_pure_trade_off(epsilon, rate):
    """The randomised-response pair: two lines of slopes -e^eps and -e^-eps."""
    priced = price(pure(epsilon))
    truth = max(1.0 - math.exp(epsilon) * rate, (1.0 - rate) * math.exp(-epsilon), 0.0)
    assert risk.trade_off(priced, rate) == pytest.approx(truth, abs=1e-12)
    assert risk.trade_off(priced, rate) <= truth
    assert risk.true_positive_rate(priced, rate) == pytest.approx(1.0 - truth, abs=1e-12)
    assert risk.true_positive_rate(priced, rate) >= 1.0 - truth - 1e-16


@pytest.mark.parametrize(("method", "gap"), [("pld", 1e-3), ("renyi", 1.0), ("pure", 1.0)])
def test_composed_responses_against_the_likelihood_ratio_test(method, gap):
    for epsilon, copies in ((0.3, 2), (0.5, 12)):
        truth = neyman_pearson(*responses(epsilon, copies), RATES)
        found = risk.trade_off(price(Repeated(pure(epsilon), count=copies), method=method), RATES)
        assert (found <= truth + 1e-12).all()
        assert (found >= truth - gap).all()


def test_a_sampled_gaussian_is_covered_in_both_directions():
    """The tests of N(0, 1) against (1 - q) N(0, 1) + q N(mu, 1) are thresholds, in either role of the two."""
    q, mu = 0.2, 2.0
    cuts = np.linspace(-8.0, 9.0, 400)
    null, mixed = norm.sf(cuts), (1 - q) * norm.sf(cuts) + q * norm.sf(cuts - mu)
    priced = price(PoissonSampled(gaussian(mu), sampling_rate=q))
    assert priced.method == "profile"
    assert (risk.trade_off(priced, null) <= 1.0 - mixed + 1e-15).all()
    assert (risk.trade_off(priced, 1.0 - mixed) <= null + 1e-15).all()
    points = np.concatenate((np.stack((null, 1.0 - mixed), 1), np.stack((1.0 - mixed, null), 1), [[0, 1], [1, 0]]))
    hull = points[ConvexHull(points).vertices]
    hull = hull[np.argsort(hull[:, 0])]  # no point lies above the line from (0, 1) to (1, 0)
    np.testing.assert_allclose(risk.trade_off(priced, RATES), np.interp(RATES, hull[:, 0], hull[:, 1]), atol=2e-3)


@pytest.mark.slow  # prices many plans
@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from([gaussian(1.0), pure(0.7), LaplaceEvent(noise_multiplier=2.0, adjacency=A)]),
    st.integers(1, 20),
    st.just("renyi"),
)
def test_the_curve_falls_is_convex_symmetric_and_below_chance(event, count, method):
    priced = price(Repeated(event, count=count), method=method)
    rates = np.linspace(0.0, 1.0, 41)
    errors = risk.trade_off(priced, rates)
    assert (errors <= 1.0 - rates).all()
    assert (np.diff(errors) <= 1e-12).all()
    assert (np.diff(errors, 2) >= -1e-12).all()
    back = risk.trade_off(priced, errors)  # f(f(a)) = a where f falls strictly
    inside = (errors > 1e-3) & (errors < 1.0 - 1e-3)
    np.testing.assert_allclose(back[inside], rates[inside], atol=2e-3)


@pytest.mark.parametrize("mu", [1e-3, 0.5, 3.0])
def test_advantage_is_total_variation(mu):
    found = risk.advantage(price(gaussian(mu)))
    truth = 2.0 * norm.cdf(mu / 2.0) - 1.0
    assert truth - 1e-15 <= found <= truth * (1 + 1e-9)
    for epsilon, copies in ((0.3, 2), (0.5, 12)):
        p, q = responses(epsilon, copies)
        exact = 0.5 * np.abs(p - q).sum()
        assert risk.advantage(price(Repeated(pure(epsilon), count=copies), method="pld")) == pytest.approx(
            exact, rel=1e-3
        )
        assert risk.advantage(price(Repeated(pure(epsilon), count=copies))) >= exact * (1 - 1e-12)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.001, 0.999), st.floats(0.05, 4.0))
def test_success_is_that_of_the_best_guess(prior, mu):
    """The best guess is a threshold on the likelihood ratio, in closed form for a Gaussian pair."""
    cut = mu / 2.0 + math.log((1.0 - prior) / prior) / mu
    truth = prior * norm.sf(cut - mu) + (1.0 - prior) * norm.cdf(cut)
    found = risk.success(price(gaussian(mu)), prior)
    assert truth * (1 - 1e-14) <= found <= truth * (1 + 1e-9)


def test_success_of_composed_responses_is_the_sum_of_the_likelier_masses():
    p, q = responses(0.5, 12)
    for prior in (0.1, 0.5, 0.8):
        truth = np.maximum(prior * p, (1.0 - prior) * q).sum()
        found = risk.success(price(Repeated(pure(0.5), count=12), method="pld"), prior)
        assert truth <= found <= truth + 1e-4


@pytest.mark.slow  # prices many plans
@settings(max_examples=30, deadline=None)
@given(st.floats(0.001, 0.999), st.floats(0.05, 4.0), st.floats(1e-6, 1.0))
def test_belief_is_the_posterior_of_an_alarm(prior, mu, rate):
    power = norm.sf(norm.isf(rate) - mu)
    truth = prior * power / (prior * power + (1.0 - prior) * rate)
    found = risk.belief(price(gaussian(mu)), prior, rate)
    assert truth * (1 - 1e-13) <= found <= truth * (1 + 2e-5)


@pytest.mark.slow  # prices many plans
@given(st.floats(0.001, 0.999), st.floats(0.05, 4.0))
def test_belief_under_pure_privacy_has_its_limit(prior, epsilon):
    odds = prior / (1.0 - prior) * math.exp(epsilon)
    for rate in (0.0, 1e-9, 1e-3):
        assert risk.belief(price(pure(epsilon)), prior, rate) == pytest.approx(odds / (1.0 + odds), rel=1e-9)
    assert risk.belief(price(pure(epsilon)), prior, 1.0) == pytest.approx(prior, rel=1e-9)


def test_without_a_pure_bound_a_certain_alarm_may_be_right():
    assert risk.belief(price(gaussian(1.0)), 0.5, 0.0) == 1.0
    assert risk.true_positive_rate(price(gaussian(1.0)), 0.0) < 1e-9


def test_shapes():
    priced = price(gaussian(1.0))
    assert risk.trade_off(priced, np.full((2, 3), 0.1)).shape == (2, 3)
    assert risk.trade_off(priced, []).shape == (0,)
    assert risk.trade_off(priced, [0, 1]).tolist() == pytest.approx([1.0, 0.0], abs=1e-12)


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan, math.inf])
def test_rates_outside_their_bound_are_refused(rate):
    priced = price(gaussian(1.0))
    with pytest.raises(InvalidParameter, match="type_one"):
        risk.trade_off(priced, [0.5, rate])
    with pytest.raises(InvalidParameter, match="false_positive_rate"):
        risk.true_positive_rate(priced, rate)
    with pytest.raises(InvalidParameter, match="false_positive_rate"):
        risk.belief(priced, 0.5, rate)


@pytest.mark.parametrize("prior", [0.0, 1.0, -1.0, math.nan])
def test_priors_outside_their_bound_are_refused(prior):
    with pytest.raises(
        InvalidParameter, match=r"prior=.* (must be in \(0, 1\)|a finite real number) \(unit: probability\)"
    ):
        risk.success(price(gaussian(1.0)), prior)
    with pytest.raises(InvalidParameter, match="prior"):
        risk.belief(price(gaussian(1.0)), prior, 0.1)


def percentages(text):
    return [float(found) / 100.0 for found in re.findall(r"([\d.]+)%", text)]


@pytest.mark.parametrize(
    "event",
    [
        gaussian(0.5),
        LaplaceEvent(noise_multiplier=1.0, adjacency=A),
        pytest.param(
            Repeated(PoissonSampled(gaussian(1.0), sampling_rate=0.01), count=100),
            marks=pytest.mark.slow,  # composes losses
        ),
    ],
)
@pytest.mark.parametrize("rate", [0.01, 1e-6])
def test_words_round_the_curve_up(event, rate):
    priced = price(event)
    right, coin, false, true = percentages(risk.in_words(priced, false_positive_rate=rate))
    assert (coin, false) == (0.5, pytest.approx(rate))
    assert 0.0 <= right - risk.success(priced, 0.5) <= 1e-3
    assert 0.0 <= true / risk.true_positive_rate(priced, rate) - 1.0 <= 0.1


@given(st.floats(1e-6, 20.0), st.floats(0.0, 0.3), st.floats(1e-6, 0.9))
@settings(max_examples=60, deadline=None)
def test_words_of_a_point_are_the_pair_of_kairouz_oh_and_viswanath(epsilon, delta, rate):
    """With probability delta the answer is given away, else it is randomised response."""
    e, d = mpmath.exp(epsilon), mpmath.mpf(delta)
    right = d + (1 - d) * e / (1 + e)
    true = min(d + e * rate, 1 - (1 - d - rate) / e, 1)
    text = risk.in_words(epsilon, delta, false_positive_rate=rate)
    if "no guarantee" in text:
        assert right > 1 - 1e-15
        return
    found, _, false, power = percentages(text)[-4:]
    assert false == pytest.approx(rate, rel=1e-5)
    assert -1e-14 <= found - right <= 1.001e-3
    assert -1e-14 <= power - true <= 1.001e-3


def test_words_say_what_is_compared():
    budget = {relation: risk.in_words(Budget(epsilon=1.0, delta=1e-6, adjacency=relation)) for relation in Adjacency}
    assert budget[A].startswith("epsilon 1 at delta 1e-06 means: an attacker who knows all other rows and sees all")
    assert "whether any one row was in the data at most 73.2% of the time, where a coin is right 50%." in budget[A]
    assert "or a null record in its place" in budget[Adjacency.ZERO_OUT]
    assert "which of any two rows was in the data" in budget[Adjacency.REPLACE_ONE]
    assert budget[A].replace("row", "user") == risk.in_words(1.0, 1e-6, adjacency=A, unit=PrivacyUnit.USER)
    assert "which of two data sets that differ in one row was used" in risk.in_words(1.0, 0.0)
    assert risk.in_words(math.log(3.0), 0.0).split("at most ")[1].startswith("75%")
    assert risk.in_words(0.0, 0.0).split("at most ")[1].startswith("50%")
    assert risk.in_words(1.00001, 1.23456e-5).startswith("epsilon 1.001 at delta 1.235e-05 means")
    assert risk.in_words(price(gaussian(1.0)), 1e-5).startswith("epsilon 4.378 at delta 1e-05 means, by the whole ")
    assert risk.in_words(price(gaussian(1.0))).startswith("An attacker who knows")


@pytest.mark.parametrize("hopeless", [(math.inf, 0.0), (1.0, 1.0), (50.0, 1e-5)])
def test_words_call_no_guarantee_by_its_name(hopeless):
    text = risk.in_words(*hopeless)
    assert "may always be right" in text
    assert text.endswith("this is no guarantee.")
    assert "%" not in text


@pytest.mark.parametrize(
    ("arguments", "named", "said"),
    [
        ((1.0,), {}, "needs its delta"),
        ((-1.0, 0.0), {}, "epsilon=-1.0 must be >= 0"),
        ((math.nan, 0.0), {}, "epsilon=nan must be"),
        ((1.0, 1.5), {}, r"delta=1.5 must be in \[0, 1\]"),
        ((1.0, 0.0), {"false_positive_rate": 0.0}, "false_positive_rate=0.0 must be in"),
        ((Budget(epsilon=1.0, delta=0.0, adjacency=A), 1e-5), {}, "the budget has its own"),
        ((Budget(epsilon=1.0, delta=0.0, adjacency=A),), {"adjacency": A}, "Budget has its own"),
        ((price(gaussian(1.0)),), {"adjacency": A}, "Price has its own"),
    ],
)
def test_words_refuse_what_is_unclear(arguments, named, said):
    with pytest.raises(InvalidParameter, match=said):
        risk.in_words(*arguments, **named)
