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
    Part,
    PoissonSampled,
    Repeated,
    calibrate,
    common_scale,
    price,
    relative_multipliers,
    split,
)
from ledgerwood.accounting.costs import gdp
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


@pytest.mark.slow  # prices many plans
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


parts = st.dictionaries(
    st.text("abcdefg", min_size=1, max_size=3),
    st.builds(
        lambda s, n, c: Part(sensitivity=s, count=n, importance=c),
        st.floats(1e-3, 1e3),
        st.integers(1, 500),
        st.floats(1e-3, 1e3),
    ),
    min_size=2,
    max_size=6,
)


def variance(part, amount, currency):
    """The weighted variances of a part's releases: (sigma s)^2 for Gaussian noise, 2 (b s)^2 for Laplace; exact."""
    spread, importance = Fraction(part.sensitivity), Fraction(part.importance)
    if currency == "epsilon":
        return importance * part.count * 2 * (part.count * spread / amount) ** 2
    unit = {"mu_squared": Fraction(1), "rho": Fraction(1, 2), "renyi": Fraction(16)}[currency]  # at multiplier 1
    return importance * part.count * unit * part.count * spread**2 / amount


@settings(max_examples=40, deadline=None)
@given(parts, st.sampled_from(["epsilon", "mu_squared", "rho", "renyi"]), st.data())
def test_minimal_variance_is_minimal(given_parts, currency, data):
    """The sum is convex in the amounts, so that moving any bit from one share to another must not make it less."""
    order = 32.0 if currency == "renyi" else None
    budget = PURE if currency == "epsilon" else BUDGET
    found = split(budget, given_parts, currency=currency, rule="minimal_variance", order=order)
    names = list(found)
    one = data.draw(st.sampled_from(names))
    other = data.draw(st.sampled_from([name for name in names if name != one]))

    def both(moved):
        return variance(given_parts[one], found[one].amount + moved, currency) + variance(
            given_parts[other], found[other].amount - moved, currency
        )

    step = min(found[one].amount, found[other].amount) * Fraction(1, 1000)
    assert both(step) > both(0)
    assert both(-step) > both(0)


def test_minimal_variance_in_closed_form():
    """mu squared goes by n s, epsilon by n s^(2/3)."""
    given_parts = {"a": Part(sensitivity=1.0, count=4), "b": Part(sensitivity=8.0)}
    found = split(BUDGET, given_parts, currency="mu_squared", rule="minimal_variance")
    assert found["a"].amount * 2 == found["b"].amount
    found = split(PURE, given_parts, rule="minimal_variance")
    assert found["a"].amount == found["b"].amount
    relative = relative_multipliers(given_parts)
    assert relative["a"] == pytest.approx((4 * 12 / 4) ** 0.5, rel=1e-13)
    assert relative["b"] == pytest.approx((12 / 8) ** 0.5, rel=1e-13)


@settings(max_examples=30, deadline=None)
@given(st.floats(1.5, 200.0), st.floats(0.5, 20.0), st.floats(-12.0, -2.0).map(lambda x: 10.0**x))
def test_a_renyi_budget_is_the_inverse_of_the_conversion(order, epsilon, delta):
    with mp.workdps(30):
        a = mpf(order)
        exact = mpf(epsilon) - mp.log1p(-1 / a) + (mp.log(a) + mp.log(mpf(delta))) / (a - 1)
    budget = Budget(epsilon=epsilon, delta=delta, adjacency=A)
    if exact <= 1e-12:
        with pytest.raises(InvalidParameter, match="leaves nothing to split"):
            split(budget, {"it": 1.0}, currency="renyi", order=order)
        return
    share = split(budget, {"it": 1.0}, currency="renyi", order=order)["it"]
    assert float(share.amount) <= exact
    assert float(share.amount) == pytest.approx(float(exact), rel=1e-9, abs=1e-11)
    assert share.order == order


def test_renyi_shares_of_every_kind_add_up():
    shares = split(BUDGET, {"first": 1.0, "rows": 1.0, "trees": 2.0}, currency="renyi", order=16.0)
    one = GaussianEvent(noise_multiplier=shares["first"].gaussian_multiplier(3), adjacency=A)
    two = LaplaceEvent(noise_multiplier=shares["rows"].laplace_multiplier(5), adjacency=A)

    def trees(multiplier):
        return Repeated(
            PoissonSampled(GaussianEvent(noise_multiplier=multiplier, adjacency=A), sampling_rate=0.1), count=50
        )

    three = trees(shares["trees"].least_multiplier(trees))
    for event, name in ((Repeated(one, count=3), "first"), (Repeated(two, count=5), "rows"), (three, "trees")):
        spent = Fraction(float(event.renyi([16.0])[0]))
        assert spent <= shares[name].amount <= spent * (1 + Fraction(1, 10**11))
    plan = Composed((Repeated(one, count=3), Repeated(two, count=5), three))
    assert price(plan, method="renyi").epsilon(1e-5) <= 1.0


def test_the_least_multiplier_of_a_share_is_the_closed_form():
    mu = split(BUDGET, {"it": 1.0}, currency="mu_squared")["it"]
    found = mu.least_multiplier(lambda s: Repeated(GaussianEvent(noise_multiplier=s, adjacency=A), count=7))
    assert found == pytest.approx(mu.gaussian_multiplier(7), rel=1e-12)
    epsilon = split(PURE, {"it": 1.0})["it"]
    found = epsilon.least_multiplier(lambda b: Repeated(LaplaceEvent(noise_multiplier=b, adjacency=A), count=7))
    assert found == pytest.approx(epsilon.laplace_multiplier(7), rel=1e-12)
    with pytest.raises(UnsupportedEvent, match="rho"):
        split(BUDGET, {"it": 1.0}, currency="rho")["it"].least_multiplier(
            lambda s: GaussianEvent(noise_multiplier=s, adjacency=A)
        )
    with pytest.raises(InvalidParameter, match="no multiplier"):
        epsilon.least_multiplier(lambda s: GaussianEvent(noise_multiplier=s, adjacency=A))


def test_a_mixed_plan_has_one_common_scale():
    relative = {"splits": 1.0, "leaves": 4.0}

    def plan(multipliers):
        leaves = GaussianEvent(noise_multiplier=multipliers["leaves"], adjacency=A)
        splits = LaplaceEvent(noise_multiplier=multipliers["splits"], adjacency=A)
        return Composed((Repeated(PoissonSampled(leaves, sampling_rate=0.1), count=20), splits))

    found = common_scale(plan, relative, BUDGET, method="renyi")
    assert found["leaves"] / found["splits"] == pytest.approx(4.0, rel=1e-14)
    assert price(plan(found), method="renyi").epsilon(1e-5) <= 1.0
    less = {name: value * (1 - 1e-9) for name, value in found.items()}
    assert price(plan(less), method="renyi").epsilon(1e-5) > 1.0
    pair = common_scale(
        lambda m: Composed((GaussianEvent(noise_multiplier=m["a"], adjacency=A),
                            GaussianEvent(noise_multiplier=m["b"], adjacency=A))),
        {"a": 3.0, "b": 4.0}, BUDGET,
    )  # fmt: skip
    assert pair["a"] == pytest.approx((1 + 9 / 16) ** 0.5 / gdp.mu(1.0, 1e-5), rel=1e-11)
    for bad in ({}, {"a": 0.0}, {"a": float("nan")}):
        with pytest.raises(InvalidParameter):
            common_scale(plan, bad, BUDGET)


@pytest.mark.parametrize(
    "bad", [{"sensitivity": 0.0}, {"sensitivity": 1.0, "count": 0}, {"sensitivity": 1.0, "importance": -1.0}]
)
def test_parts_outside_their_bounds_are_refused(bad):
    with pytest.raises(InvalidParameter, match="unit"):
        Part(**bad)


@given(st.floats(1e-6, 1.0), st.integers(1, 1000))
def test_equal_parts_of_a_share_never_exceed_it(weight, count):
    share = split(PURE, {"levels": weight, "rest": 1.0}, currency="epsilon")["levels"]
    each = Fraction(share.epsilon_each(count))
    assert each * count <= share.amount
    assert each * count >= share.amount * (1 - Fraction(1, 2**52))
    assert share.epsilon == share.epsilon_each(1)


def test_no_parts_of_a_share_are_refused():
    share = split(PURE, {"levels": 1.0, "rest": 1.0}, currency="epsilon")["levels"]
    with pytest.raises(InvalidParameter, match="count=0"):
        share.epsilon_each(0)


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
        ({"budget": PURE, "shares": ["a"], "rule": "minimal_variance"}, "mapping of name to Part"),
        ({"budget": PURE, "shares": {"a": 1.0}, "rule": "minimal_variance"}, "share 'a'"),
        ({"budget": BUDGET, "shares": {"a": 1.0}, "currency": "renyi"}, "order"),
        ({"budget": BUDGET, "shares": {"a": 1.0}, "currency": "rho", "order": 2.0}, "order"),
        ({"budget": BUDGET, "shares": {"a": 1.0}, "currency": "renyi", "order": 1.0}, "order"),
        ({"budget": BUDGET, "shares": {"a": 1.0}, "currency": "renyi", "order": float("inf")}, "order"),
        ({"budget": PURE, "shares": {"a": 1.0}, "currency": "renyi", "order": 2.0}, "delta"),
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
