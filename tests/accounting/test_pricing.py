"""Prices against exact curves, published figures, and the laws that every price obeys."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    Budget,
    Composed,
    EllipticalGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    Parallel,
    PoissonSampled,
    PrivacyUnit,
    PureEvent,
    Repeated,
    ReplaceOneSampled,
    price,
)
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.costs.losses import plans
from ledgerwood.errors import InvalidParameter, UnsupportedEvent
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def sampled(event, rate):
    return PoissonSampled(event, sampling_rate=rate)


leaves = st.one_of(
    st.floats(0.4, 20.0).map(gaussian), st.floats(0.4, 20.0).map(laplace), st.floats(0.05, 3.0).map(pure)
)
single_draws = st.one_of(
    leaves,
    st.builds(sampled, leaves, st.floats(1e-3, 0.9)),
    st.builds(lambda a, b, p: Parallel((a, b), probabilities=(p, 1.0 - p)), leaves, leaves, st.floats(0.1, 0.9)),
    st.builds(lambda a, b: Parallel.worst((a, b)), leaves, leaves),
)
events = st.one_of(
    single_draws,
    st.builds(lambda e, n: Repeated(e, count=n), single_draws, st.integers(2, 300)),
    st.builds(lambda a, b, n: Composed((a, Repeated(b, count=n))), single_draws, single_draws, st.integers(1, 30)),
)
deltas = st.floats(-14.0, -0.1).map(lambda x: 10.0**x)


@pytest.mark.slow  # prices many plans
@settings(max_examples=40, deadline=None)
@given(events, deltas, deltas)
def test_epsilon_falls_with_delta_and_stays_between_zero_and_the_pure_sum(event, one, other):
    small, large = sorted((one, other))
    priced = price(event)
    at_small, at_large = priced.epsilon(small), priced.epsilon(large)
    assert at_large >= 0.0
    if priced.method == "pld":
        # Each delta has a lattice of its own: what is true of the bounds is that what surely is spent falls.
        assert priced.epsilon_interval(large)[0] <= at_small
        at_large, at_small = (price(event, method="renyi").epsilon(delta) for delta in (large, small))
    assert at_large <= at_small * (1 + 1e-10)
    assert at_small <= event.pure_epsilon()
    assert math.isfinite(at_small)


@pytest.mark.slow  # prices many plans
@settings(max_examples=40, deadline=None)
@given(events, deltas)
def test_epsilon_and_delta_are_consistent(event, delta):
    priced = price(event)
    if priced.method == "pld":
        # An upper bound on the one side holds against a lower bound on the other.
        plan, epsilon = plans.plan(event), priced.epsilon(delta)
        with contextlib.suppress(UnsupportedEvent):
            assert plans.log_delta(plan, epsilon, above=False) <= math.log(delta)
        bound = priced.delta(epsilon)
        if 1e-250 < bound < 1.0:
            assert priced.epsilon_interval(bound)[0] <= epsilon
        priced = price(event, method="renyi")
    epsilon = priced.epsilon(delta)
    # epsilon is the well-conditioned end: at order 1e6 one ulp of it moves delta by a millionth
    assert priced.delta(epsilon * (1 + 1e-11) + 1e-13) <= delta * (1 + 1e-12)
    again = priced.epsilon(max(priced.delta(epsilon), 1e-300))
    if epsilon > 0.0 and priced.delta(epsilon) > 0.0:
        assert again == pytest.approx(epsilon, rel=1e-6, abs=1e-9)


@pytest.mark.slow  # prices many plans
@settings(max_examples=40, deadline=None)
@given(events, deltas)
def test_the_interval_holds_the_price_and_the_tightest_is_no_dearer_than_any_method(event, delta):
    tightest = price(event)
    lower, upper = tightest.epsilon_interval(delta)
    assert 0.0 <= lower <= upper <= tightest.epsilon(delta)
    if tightest.method != "pld":  # whose lattice is refined for the interval
        assert upper == tightest.epsilon(delta)
    if tightest.method == "profile":
        assert upper - lower <= 1e-8 * (1.0 + upper)
    for method in ("renyi", "pure", "gdp"):
        try:
            other = price(event, method=method).epsilon(delta)
        except UnsupportedEvent:
            continue
        assert upper <= other * (1 + 1e-9) + 1e-12


@pytest.mark.slow  # prices many plans
@settings(max_examples=30, deadline=None)
@given(single_draws, st.integers(1, 50), deltas)
def test_repeating_is_composing(event, count, delta):
    repeated = price(Repeated(event, count=count)).epsilon(delta)
    assert price(Composed((event,) * count)).epsilon(delta) == pytest.approx(repeated, rel=1e-9, abs=1e-12)


@pytest.mark.slow  # prices many plans
@settings(max_examples=30, deadline=None)
@given(st.floats(0.3, 20.0), st.floats(1.001, 3.0), st.floats(1e-4, 1.0), st.integers(1, 1000), deltas)
def test_more_noise_costs_less_and_more_releases_or_rows_cost_more(multiplier, factor, rate, count, delta):
    def priced(m, q, n, method="tightest"):
        return price(Repeated(sampled(gaussian(m), q), count=n), method=method)

    here = priced(multiplier, rate, count)
    cheaper = [(multiplier * factor, rate, count), (multiplier, rate / factor, count)]
    dearer = [(multiplier, rate, count + 1)]
    if count > 1:
        # Bounds on lattices are not monotone; what surely is spent on the cheaper is below the price of the dearer.
        for plan in cheaper:
            assert priced(*plan).epsilon_interval(delta)[0] <= here.epsilon(delta)
        for plan in dearer:
            assert here.epsilon_interval(delta)[0] <= priced(*plan).epsilon(delta)
        smooth = priced(multiplier, rate, count, "renyi").epsilon(delta)
        room = 1e-9 * smooth + 1e-12
        assert all(priced(*plan, "renyi").epsilon(delta) <= smooth + room for plan in cheaper)
        assert all(priced(*plan, "renyi").epsilon(delta) >= smooth - room for plan in dearer)


def test_a_plan_never_costs_more_than_the_same_plan_without_sampling():
    """Near rate 1 the exact price of all rows beats the Renyi price of the sample; the quote says so."""
    for rate in (0.8, 0.99, 0.999999):
        plan = Repeated(sampled(gaussian(1.0), rate), count=2)
        whole = price(Repeated(gaussian(1.0), count=2)).epsilon(0.1)
        quote = price(plan, method="renyi").quote(0.1)
        assert (quote.epsilon, quote.method, quote.order) == (whole, "unsampled", None)
        assert price(plan, method="renyi").delta(whole) == price(Repeated(gaussian(1.0), count=2)).delta(whole)
        assert price(plan).epsilon(0.1) <= whole
    nearest = price(Repeated(sampled(gaussian(1.0), 1.0 - 1e-12), count=2)).quote(0.1)
    assert (nearest.epsilon, nearest.method) == (whole, "unsampled")
    far = price(Repeated(sampled(gaussian(1.0), 0.01), count=2), method="renyi").quote(0.1)
    assert far.method == "renyi"


@pytest.mark.slow  # prices many plans
def test_an_unsampled_price_is_verified():
    ledger = Ledger(Budget(epsilon=3.0, delta=0.1, adjacency=A), unit=PrivacyUnit.ROW)
    grant = ledger.grant(Repeated(sampled(gaussian(1.0), 1.0 - 1e-12), count=2), purpose="nearly all rows")
    assert grant.charge.method == "unsampled"
    assert verify_ledger(ledger.record()).epsilon_readded == grant.charge.epsilon


def test_nesting_one_shared_draw_is_not_six_fresh_ones():
    shared = price(sampled(Repeated(gaussian(3.0), count=6), 0.1))
    fresh = price(Repeated(sampled(gaussian(3.0), 0.1), count=6))
    assert shared.method == "profile"
    assert shared.epsilon(1e-5) == pytest.approx(1.065, abs=5e-4)
    assert fresh.method == "pld"
    assert fresh.epsilon(1e-5) == pytest.approx(0.353, abs=5e-4)
    assert price(fresh.event, method="renyi").epsilon(1e-5) == pytest.approx(0.410, abs=5e-4)


def test_the_shared_draw_is_the_exact_inversion():
    """H(t) = q H_sub(log(1 + (e^t - 1) / q)) with mu = sqrt(6) / 3, in mpmath."""
    found = price(sampled(Repeated(gaussian(3.0), count=6), 0.1)).epsilon(1e-5)

    def profile(epsilon):
        mu, q = mp.sqrt(6) / 3, mpf("0.1")
        t = mp.log1p(mp.expm1(epsilon) / q)
        return q * (mp.ncdf(mu / 2 - t / mu) - mp.exp(t) * mp.ncdf(-mu / 2 - t / mu))

    with mp.workdps(40):
        assert profile(mpf(found)) <= mpf(1e-5)
        assert profile(mpf(found) * (1 - mpf(10) ** -12)) > mpf(1e-5)


@pytest.mark.slow_after(2)  # prices many plans
@pytest.mark.parametrize(
    ("rate", "steps", "multiplier", "printed"),
    [
        (0.01, 10_000, 1.0, 6.7127),
        (0.01, 10_000, 4.0, 1.0355),
        (0.004267, 14_040, 1.1, 2.5951),
        (0.001, 10**6, 1.0, 6.4975),
    ],
)
def test_long_sampled_plans_cost_a_little_less_than_the_best_whole_order(rate, steps, multiplier, printed):
    """At whole orders the sampled moment is a binomial sum, here in mpmath."""
    with mp.workdps(40):
        q, s = mpf(rate), mpf(multiplier)
        best = mp.inf
        for a in range(2, 40):
            terms = (
                mp.binomial(a, i) * (1 - q) ** (a - i) * q**i * mp.exp((i * i - i) / (2 * s * s)) for i in range(a + 1)
            )
            rho = steps * mp.log(sum(terms)) / (a - 1)
            best = min(best, rho + mp.log1p(-mpf(1) / a) - (mp.log(mpf(1e-5)) + mp.log(a)) / (a - 1))
    plan = Repeated(sampled(gaussian(multiplier), rate), count=steps)
    assert price(plan).epsilon(1e-5) < price(plan, method="renyi").epsilon(1e-5)
    found = price(plan, method="renyi").epsilon(1e-5)
    assert found <= best
    assert found == pytest.approx(float(best), rel=1e-2)
    assert found <= printed


def test_a_gaussian_plan_is_exact_however_it_is_written():
    joint = Composed(
        (
            gaussian(2.0),
            Repeated(gaussian(4.0), count=4),
            EllipticalGaussianEvent(sensitivities=(1.0,), stddevs=(2.0,), adjacency=A),
        )
    )
    expected = gdp.epsilon(math.sqrt(0.75), 1e-5)
    for method in ("tightest", "profile", "gdp"):
        assert price(joint, method=method).epsilon(1e-5) == pytest.approx(expected, rel=1e-12)
    assert price(joint, method="renyi").epsilon(1e-5) > expected


@pytest.mark.parametrize("delta", [1e-20, 1e-100, 1e-300])
def test_tiny_deltas_are_priced_in_logarithms(delta):
    for event in (gaussian(1.0), sampled(gaussian(1.0), 0.01), Repeated(sampled(gaussian(2.0), 0.01), count=100)):
        priced = price(event)
        epsilon = priced.epsilon(delta)
        assert math.isfinite(epsilon)
        assert 0.0 < priced.delta(epsilon) <= delta * (1 + 1e-9)


def test_a_large_delta_costs_nothing():
    assert price(gaussian(100.0)).epsilon(0.5) == 0.0
    assert price(Repeated(sampled(gaussian(10.0), 0.01), count=2)).epsilon(0.5) == 0.0
    quote = price(Repeated(sampled(gaussian(10.0), 0.01), count=2)).quote(0.5)
    assert (quote.method, quote.epsilon) == ("renyi", 0.0)


def test_the_pure_sum_caps_the_price_and_the_quote_says_so():
    event = Repeated(sampled(laplace(2.0), 0.1), count=10)
    quote = price(event).quote(1e-30)
    assert quote.method == "pure"
    assert quote.order is None
    assert quote.epsilon <= event.pure_epsilon()
    exact = Repeated(laplace(1.0), count=1)  # peers report 1.00508 here
    assert price(exact).epsilon(1e-6) <= 1.0


def test_delta_zero():
    assert price(pure(0.25)).epsilon(0.0) == 0.25
    assert price(Repeated(pure(0.25), count=4)).epsilon(0.0) == pytest.approx(1.0, rel=1e-14)
    assert price(pure(0.25)).epsilon_interval(0.0) == (0.25, 0.25)
    with pytest.raises(InvalidParameter, match="no finite epsilon at delta 0"):
        price(gaussian(1.0)).epsilon(0.0)


def test_a_sample_of_a_mixed_composition_is_priced_by_its_composed_losses():
    event = sampled(Composed((laplace(2.0), laplace(3.0))), 0.1)
    priced = price(event)
    assert priced.method == "pld"
    assert priced.epsilon(0.0) == pytest.approx(math.log1p(0.1 * math.expm1(0.5 + 1.0 / 3.0)), rel=1e-12)
    assert priced.epsilon(1e-3) < price(event, method="pure").epsilon(1e-3)
    with pytest.raises(UnsupportedEvent):
        price(sampled(Composed((laplace(2.0), gaussian(3.0))), 0.1), method="renyi")


def test_a_mixed_plan_has_a_lower_end_above_its_dearest_draw():
    dear = gaussian(1.0)
    plan = Composed((dear, laplace(10.0), sampled(gaussian(1.0), 0.01)))
    lower, upper = price(plan).epsilon_interval(1e-5)
    assert price(dear).epsilon(1e-5) < lower <= upper <= lower * (1 + 1e-3)
    by_renyi = price(plan, method="renyi").epsilon_interval(1e-5)[0]
    assert by_renyi == pytest.approx(price(dear).epsilon(1e-5), rel=1e-9)
    assert by_renyi <= price(dear).epsilon(1e-5)


def test_a_draw_without_a_proven_lower_bound_leaves_the_lower_end_to_the_dearest_other():
    statements = [
        Composed((GaussianEvent(noise_multiplier=m, adjacency=a), PureEvent(epsilon=e, adjacency=a)))
        for m, e, a in ((0.5, 0.2, Adjacency.REPLACE_ONE), (1.0, 0.1, A))
    ]  # of two kinds at once no pair is known
    unproven = ReplaceOneSampled(statements[0], add_remove=statements[1], sampling_rate=0.5)
    other = GaussianEvent(noise_multiplier=2.0, adjacency=Adjacency.REPLACE_ONE)
    lower, upper = price(Composed((unproven, other))).epsilon_interval(1e-5)
    assert lower == pytest.approx(price(other).epsilon(1e-5), rel=1e-9)
    assert lower < upper


@pytest.mark.parametrize("delta", [-0.1, 1.0, 2.0, math.nan, math.inf])
def test_deltas_outside_their_bound_are_refused(delta):
    with pytest.raises(InvalidParameter, match="delta"):
        price(gaussian(1.0)).epsilon(delta)


@pytest.mark.parametrize("epsilon", [-1e-9, math.nan, math.inf])
def test_epsilons_outside_their_bound_are_refused(epsilon):
    with pytest.raises(InvalidParameter, match="epsilon"):
        price(gaussian(1.0)).delta(epsilon)


def test_unknown_methods_and_non_events_are_refused():
    with pytest.raises(InvalidParameter, match="tightest, profile, renyi, gdp, pure, pld"):
        price(gaussian(1.0), method="fft")
    with pytest.raises(InvalidParameter):
        price(1.0)
    with pytest.raises(UnsupportedEvent):
        price(gaussian(1.0), method="pure")
    with pytest.raises(UnsupportedEvent):
        price(laplace(1.0), method="gdp")
    with pytest.raises(UnsupportedEvent):
        price(Repeated(sampled(gaussian(1.0), 0.1), count=2), method="profile")


@pytest.mark.parametrize("method", ["tightest", "renyi"])
@pytest.mark.parametrize("epsilon", [1e6, 1e12, 1e200, 1e308])
def test_delta_far_out_is_tiny_and_positive(method, epsilon):
    for event in (gaussian(1.0), Repeated(sampled(gaussian(1.0), 0.1), count=3)):
        assert 0.0 < price(event, method=method).delta(epsilon) <= 1e-300


@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-301, 1e-300])
def test_deltas_down_to_the_least_float_are_priced(delta):
    """Below 1e-300 too: log delta is ordinary. Gaussian tails: epsilon ~ mu sqrt(2 log(1 / delta)) and a little."""
    for event in (gaussian(1.0), Repeated(sampled(gaussian(1.0), 0.1), count=3)):
        found = price(event).epsilon(delta)
        assert math.isfinite(found)
        assert price(event).epsilon(1e-299) < found
    assert price(gaussian(1.0)).epsilon(delta) == pytest.approx(math.sqrt(-2.0 * math.log(delta)) + 0.5, rel=0.01)


@pytest.mark.slow_after(1)  # prices many plans
@pytest.mark.parametrize("count", [10**12, 2**53])
def test_enormous_counts_are_priced_or_refused(count):
    exact = price(Repeated(gaussian(1e6), count=count)).epsilon(1e-5)
    assert exact == pytest.approx(gdp.epsilon(1e-6 * math.sqrt(count), 1e-5), rel=1e-12)
    sum_of_many = price(Repeated(sampled(gaussian(1.0), 1e-4), count=count)).epsilon(1e-5)
    one = Repeated(sampled(gaussian(1.0), 1e-4), count=1).renyi([1.0 + 1e-6])[0]
    assert count * one <= sum_of_many < math.inf  # at least the Kullback-Leibler divergence, up to order 1 + 1e-6


def test_rates_of_one_and_near_zero():
    assert price(Repeated(sampled(gaussian(2.0), 1.0), count=4)).epsilon(1e-5) == pytest.approx(
        gdp.epsilon(1.0, 1e-5), rel=1e-12
    )
    assert price(Repeated(sampled(gaussian(1.0), 1e-100), count=2)).epsilon(1e-5) == 0.0


@pytest.mark.parametrize("order", [1.0, 0.5, -2.0, 1e20, 1e308, math.nan, math.inf])
def test_orders_outside_their_bound_are_refused(order):
    with pytest.raises(InvalidParameter, match="must be > 1 and at most 1e15"):
        Composed((laplace(1.0), sampled(gaussian(1.0), 0.1))).renyi([order])


def test_the_largest_order_has_its_limit():
    """The largest loss: of Laplace noise 1 / scale, sampled log(1 + q (e^{1 / scale} - 1)); a Gaussian's grows on."""
    assert laplace(2.0).renyi([1e15])[0] == pytest.approx(0.5, rel=1e-12)
    assert sampled(laplace(2.0), 0.1).renyi([1e15])[0] == pytest.approx(math.log1p(0.1 * math.expm1(0.5)), rel=1e-12)
    assert gaussian(1.0).renyi([1e15])[0] == pytest.approx(5e14, rel=1e-12)
    assert sampled(gaussian(1.0), 0.1).renyi([1e15])[0] == pytest.approx(5e14, rel=1e-12)


def test_a_guarantee_that_ends_above_delta_is_refused_by_name():
    stated = ApproximateEvent(epsilon=1.0, delta=1e-6, adjacency=A)
    with pytest.raises(UnsupportedEvent, match=r"no epsilon up to 1e12 nats reaches delta=1e-07 \(unit: probability\)"):
        price(stated).epsilon(1e-7)
    with pytest.raises(UnsupportedEvent, match="delta=1e-06: a loss is infinite more often than that"):
        price(Repeated(stated, count=10)).epsilon(1e-6)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: gaussian(math.inf), "noise_multiplier=inf"),
        (lambda: gaussian(math.nan), "noise_multiplier=nan"),
        (lambda: gaussian(0.0), "noise_multiplier=0.0"),
        (lambda: laplace(math.inf), "noise_multiplier=inf"),
        (lambda: pure(math.inf), "epsilon=inf"),
        (lambda: sampled(gaussian(1.0), 0.0), "sampling_rate=0.0"),
        (lambda: sampled(gaussian(1.0), math.nan), "sampling_rate=nan"),
        (lambda: Repeated(gaussian(1.0), count=0), "count=0"),
        (lambda: Repeated(gaussian(1.0), count=2**53 + 1), "count=9007199254740993"),
        (lambda: Composed(()), "at least one event"),
    ],
)
def test_bad_parts_of_a_plan_are_refused(make, match):
    with pytest.raises(InvalidParameter, match=match):
        make()


def test_delta_reaches_zero_only_at_the_pure_epsilon():
    priced = price(Repeated(laplace(1.0), count=3))
    assert priced.delta(priced.event.pure_epsilon()) == 0.0
    assert priced.delta(2.999) > 0.0
    assert price(gaussian(1.0)).delta(1e9) > 0.0


def two_sided_truth(e, copies, epsilon):
    """The exact delta of fresh randomised responses: a sum over the number of truthful ones."""
    up, down = math.exp(e) / (1 + math.exp(e)), 1 / (1 + math.exp(e))
    outcomes = (
        (math.comb(copies, k), up**k * down ** (copies - k), down**k * up ** (copies - k)) for k in range(copies + 1)
    )
    return sum(ways * max(p - math.exp(epsilon) * q, 0.0) for ways, p, q in outcomes)


@pytest.mark.parametrize("method", ["renyi", "pure", "profile"])
def test_every_method_covers_the_randomised_response_truth(method):
    """Two fresh randomised responses have four outcomes: their exact delta is a sum."""
    e = 0.7
    plan = Repeated(pure(e), count=2) if method != "profile" else pure(e)
    copies = 1 if method == "profile" else 2
    priced = price(plan, method=method)
    for delta in (0.3, 0.1, 1e-3):
        lower, upper = priced.epsilon_interval(delta)
        assert two_sided_truth(e, copies, upper) <= delta * (1 + 1e-12)
        assert lower == 0.0 or two_sided_truth(e, copies, lower) >= delta
    for epsilon in np.linspace(0.0, 1.3, 14):
        assert priced.delta(epsilon) >= two_sided_truth(e, copies, epsilon) * (1 - 1e-12)


def test_an_impostor_that_is_priced_first_does_not_leave_its_price_behind() -> None:
    """An event of a foreign class can be equal to any other; what was found for it is not the other's."""
    cheap = LaplaceEvent(noise_multiplier=1e3, adjacency=A)

    class Impostor(LaplaceEvent):  # type: ignore[misc]
        def __eq__(self, other):
            return isinstance(other, LaplaceEvent)

        def __hash__(self):
            return hash(LaplaceEvent(noise_multiplier=self.noise_multiplier, adjacency=A))

        def log_profile(self, epsilons, *, direction):
            return cheap.log_profile(epsilons, direction=direction)

        def renyi(self, orders, *, direction=None):
            return cheap.renyi(orders, direction=direction)

        def pure_epsilon(self):
            return cheap.pure_epsilon()

    def plan(event):
        tree = Composed((Repeated(event, count=3), PureEvent(epsilon=0.1, adjacency=A)))
        return Repeated(Parallel((tree, tree), probabilities=(0.3, 0.3)), count=5)

    assert price(plan(Impostor(noise_multiplier=1.25, adjacency=A))).epsilon(1e-6) < 1.0
    assert price(plan(LaplaceEvent(noise_multiplier=1.25, adjacency=A))).epsilon(1e-6) > 9.0


@pytest.mark.slow  # prices many plans
def test_the_tightest_is_the_least_of_all_certified_methods_beyond_64_kinds():
    """Once, the Renyi price was not asked for where there were more kinds than are composed one by one."""
    noise = [GaussianEvent(noise_multiplier=float(s), adjacency=A) for s in np.geomspace(60.0, 400.0, 100)]
    plan = Composed((*noise, LaplaceEvent(noise_multiplier=1e4, adjacency=A)))
    methods = set()
    for delta in (1e-3, 1e-6, 1e-60):
        best = price(plan).quote(delta)
        methods.add(best.method)
        assert best.epsilon <= price(plan, method="renyi").epsilon(delta)
        assert best.epsilon <= price(plan, method="pld").epsilon(delta)
        assert price(plan).delta(best.epsilon) <= price(plan, method="renyi").delta(best.epsilon)
    assert methods == {"pld", "renyi"}


def test_the_estimate_that_was_not_certified_is_gone():
    with pytest.raises(InvalidParameter, match="method='mgf'"):
        price(GaussianEvent(noise_multiplier=1.0, adjacency=A), method="mgf")


def test_log_deltas_are_of_finite_epsilons_only():
    """Beyond every finite epsilon an (epsilon, delta) event still has its delta: no -inf stands for it."""
    stated = price(ApproximateEvent(epsilon=1.0, delta=1e-3, adjacency=A))
    assert stated.log_deltas([2.0, 1e9]) == pytest.approx(math.log(1e-3))
    for priced in (stated, price(Repeated(sampled(gaussian(2.0), 0.1), count=10))):
        for wrong in (math.inf, math.nan, -1.0):
            with pytest.raises(InvalidParameter, match=r"epsilons=.*(finite|>= 0) \(unit: nats\)"):
                priced.log_deltas([0.0, wrong])
