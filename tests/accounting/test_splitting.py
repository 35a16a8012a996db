"""Shares sum exactly, and what is made of a share fits it."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from ledgerwood.accounting import (
    Adjacency,
    Budget,
    Composed,
    GaussianEvent,
    LaplaceEvent,
    Repeated,
    calibrate,
    gdp,
    relative_multipliers,
    split,
)
from ledgerwood.accounting.splitting import rho
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)
PURE = Budget(epsilon=0.7, delta=0.0, adjacency=A)

weights = st.dictionaries(st.text("abcdefg", min_size=1, max_size=3), st.floats(1e-6, 1e6), min_size=1, max_size=8)
currencies = st.sampled_from(["epsilon", "rho", "mu_squared"])


def whole(currency):
    return {
        "epsilon": Fraction(BUDGET.epsilon),
        "rho": Fraction(rho(1.0, 1e-5)),
        "mu_squared": Fraction(gdp.mu(1.0, 1e-5)) ** 2,
    }[currency]


@settings(max_examples=40, deadline=None)
@given(weights, currencies)
def test_proportional_shares_are_exact(shares, currency):
    found = split(BUDGET, shares, currency=currency)
    assert list(found) == list(shares)
    assert sum(share.amount for share in found.values()) == whole(currency)
    total = sum(map(Fraction, shares.values()))
    for name, share in found.items():
        assert share.amount == whole(currency) * Fraction(shares[name]) / total
        assert share.currency == currency


@given(st.integers(1, 12), st.floats(0.1, 3.0))
def test_levels_are_equal_and_geometric_parts_keep_their_ratio(depth, ratio):
    names = [f"level {i}" for i in range(depth)]
    equal = split(PURE, names, rule="per_level")
    assert {share.amount for share in equal.values()} == {Fraction(0.7) / depth}
    falling = [share.amount for share in split(PURE, names, rule="geometric", ratio=ratio).values()]
    assert sum(falling) == Fraction(0.7)
    assert all(after == before * Fraction(ratio) for before, after in itertools.pairwise(falling))


@given(weights)
def test_epsilons_of_shares_never_exceed_the_budget(shares):
    found = split(PURE, shares)
    assert sum(Fraction(share.epsilon) for share in found.values()) <= Fraction(0.7)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 1.0), st.integers(1, 1000))
def test_gaussian_releases_of_a_share_fit_it(weight, count):
    for currency in ("mu_squared", "rho"):
        share = split(BUDGET, {"it": weight, "rest": 1.0}, currency=currency)["it"]
        multiplier = share.gaussian_multiplier(count)
        spent = Fraction(count) / Fraction(multiplier) ** 2 / (1 if currency == "mu_squared" else 2)
        assert spent <= share.amount <= spent * (1 + Fraction(1, 10**13))
    event = Repeated(GaussianEvent(noise_multiplier=multiplier, adjacency=A), count=count)
    assert Fraction(event.mu()) ** 2 / 2 <= share.amount


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 1.0), st.integers(1, 1000))
def test_laplace_releases_of_a_share_fit_it(weight, count):
    share = split(PURE, {"it": weight, "rest": 1.0})["it"]
    event = Repeated(LaplaceEvent(noise_multiplier=share.laplace_multiplier(count), adjacency=A), count=count)
    assert Fraction(event.pure_epsilon()) <= share.amount
    assert event.pure_epsilon() == pytest.approx(float(share.amount), rel=1e-12)
    zero_concentrated = split(BUDGET, {"it": weight, "rest": 1.0}, currency="rho")["it"]
    multiplier = zero_concentrated.laplace_multiplier(count)
    assert Fraction(count) / (2 * Fraction(multiplier) ** 2) <= zero_concentrated.amount


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (0.01, 1e-9), (8.0, 1e-2), (1.0, 1e-300)])
def test_rho_is_the_largest_that_the_conversion_allows(epsilon, delta):
    found = rho(epsilon, delta)

    def least_log_delta(value):
        """Canonne, Kamath, Steinke 2020, Corollary 13, minimised over the order by mpmath."""
        with mp.workdps(40):
            v, e = mpf(value), mpf(epsilon)

            def at(log_gap):
                a = 1 + mp.exp(log_gap)
                return (a - 1) * (a * v - e) + (a - 1) * mp.log1p(-1 / a) - mp.log(a)

            low, high = mpf(-12), mpf(14)
            for _ in range(120):  # the exponent is convex in the order
                left, right = low + (high - low) / 3, high - (high - low) / 3
                low, high = (low, right) if at(left) < at(right) else (left, high)
            return at((low + high) / 2)

    assert least_log_delta(found) <= mp.log(mpf(delta))
    assert least_log_delta(found * (1 + 1e-9)) > mp.log(mpf(delta))


def test_relative_multipliers_give_each_part_its_share_of_a_common_scale():
    relative = relative_multipliers({"initial_score": (0.1, 1), "trees": (0.9, 50)})

    def plan(scale):
        first = GaussianEvent(noise_multiplier=scale * relative["initial_score"], adjacency=A)
        tree = GaussianEvent(noise_multiplier=scale * relative["trees"], adjacency=A)
        return Composed((first, Repeated(tree, count=50)))

    scale = calibrate(plan, BUDGET)
    total = plan(scale).mu() ** 2
    assert plan(scale).mu() == pytest.approx(1.0 / scale, rel=1e-12)
    assert 1.0 / (scale * relative["initial_score"]) ** 2 == pytest.approx(0.1 * total, rel=1e-12)
    assert 50.0 / (scale * relative["trees"]) ** 2 == pytest.approx(0.9 * total, rel=1e-12)


def test_a_share_of_the_wrong_currency_says_so():
    epsilon = split(PURE, {"it": 1.0})["it"]
    mu = split(BUDGET, {"it": 1.0}, currency="mu_squared")["it"]
    with pytest.raises(UnsupportedEvent, match="pure epsilon"):
        epsilon.gaussian_multiplier()
    with pytest.raises(UnsupportedEvent, match="mu squared"):
        mu.laplace_multiplier()
    with pytest.raises(InvalidParameter, match="currency"):
        _ = mu.epsilon
    with pytest.raises(InvalidParameter, match="count"):
        mu.gaussian_multiplier(0)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"budget": BUDGET, "shares": {"a": 1.0}}, "currency"),
        ({"budget": BUDGET, "shares": {"a": 1.0}, "currency": "delta"}, "currency"),
        ({"budget": PURE, "shares": {"a": 1.0}, "currency": "rho"}, "delta"),
        ({"budget": PURE, "shares": {"a": 1.0}, "currency": "mu_squared"}, "delta"),
        ({"budget": PURE, "shares": {}}, "shares"),
        ({"budget": PURE, "shares": {"a": 0.0}}, "weight of 'a'"),
        ({"budget": PURE, "shares": {"a": float("nan")}}, "weight of 'a'"),
        ({"budget": PURE, "shares": ["a", "b"]}, "mapping"),
        ({"budget": PURE, "shares": ["a", "a"], "rule": "per_level"}, "differ"),
        ({"budget": PURE, "shares": "ab", "rule": "per_level"}, "shares"),
        ({"budget": PURE, "shares": {"a": 1.0}, "rule": "per_level"}, "sequence"),
        ({"budget": PURE, "shares": ["a"], "rule": "geometric"}, "ratio"),
        ({"budget": PURE, "shares": ["a"], "rule": "geometric", "ratio": -1.0}, "ratio"),
        ({"budget": PURE, "shares": ["a"], "rule": "per_level", "ratio": 2.0}, "ratio"),
        ({"budget": PURE, "shares": ["a"], "rule": "magic"}, "rule"),
        ({"budget": 1.0, "shares": {"a": 1.0}}, "budget"),
    ],
)
def test_what_cannot_be_split_is_refused(arguments, match):
    budget, shares = arguments.pop("budget"), arguments.pop("shares")
    with pytest.raises(InvalidParameter, match=match):
        split(budget, shares, **arguments)


def test_relative_multipliers_refuse_bad_parts():
    for parts in ({}, {"a": (0.0, 1)}, {"a": (1.0, 0)}):
        with pytest.raises(InvalidParameter):
            relative_multipliers(parts)
