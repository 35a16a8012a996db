"""The least multiplier that fits: it fits, a little less does not, and impossible budgets say why."""

import math

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
    PoissonSampled,
    PureEvent,
    Repeated,
    calibrate,
    price,
)
from ledgerwood.accounting.costs import gdp
from ledgerwood.errors import AdjacencyMismatch, CalibrationFailed, InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE


def budget(epsilon, delta=1e-5, adjacency=A):
    return Budget(epsilon=epsilon, delta=delta, adjacency=adjacency)


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def training(multiplier):
    return Repeated(PoissonSampled(gaussian(multiplier), sampling_rate=0.01), count=10_000)


def mixed(multiplier):
    return Composed(
        (laplace(multiplier), Repeated(PoissonSampled(gaussian(2 * multiplier), sampling_rate=0.1), count=20))
    )


@pytest.mark.slow_after(6)  # calibrates many plans
@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 8.0, 1000.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-15, 1e-300])
def test_a_full_batch_multiplier_is_one_over_mu(epsilon, delta):
    found = calibrate(gaussian, budget(epsilon, delta))
    assert found >= 1.0 / gdp.mu(epsilon, delta) * (1 - 1e-14)
    assert found == pytest.approx(1.0 / gdp.mu(epsilon, delta), rel=5e-12)


@pytest.mark.slow  # calibrates many plans
@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([(gaussian, "tightest"), (laplace, "tightest"), (training, "renyi"), (mixed, "renyi")]),
    st.floats(-2.0, 1.5).map(lambda x: 10.0**x),
    st.floats(-12.0, -1.0).map(lambda x: 10.0**x),
)
def test_what_is_returned_fits_and_a_little_less_does_not(plan, epsilon, delta):
    make_event, method = plan
    found = calibrate(make_event, budget(epsilon, delta), method=method)
    assert price(make_event(found), method=method).epsilon(delta) <= epsilon
    assert price(make_event(found * (1 - 1e-9)), method=method).epsilon(delta) > epsilon


@pytest.mark.slow_after(1)  # calibrates many plans
@pytest.mark.parametrize("make_event", [training, mixed])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-12), (1.0, 0.1), (20.0, 1e-5)])
def test_what_is_returned_by_composed_losses_fits_and_a_little_less_does_not(make_event, epsilon, delta):
    found = calibrate(make_event, budget(epsilon, delta))
    assert price(make_event(found)).epsilon(delta) <= epsilon
    assert price(make_event(found * (1 - 1e-4))).epsilon(delta) > epsilon


def test_the_training_plan_needs_less_by_composed_losses_than_by_renyi():
    # the best list of orders known gives 4.1258; the exact answer is 3.812817
    assert calibrate(training, budget(1.0), method="renyi") == pytest.approx(4.1258, abs=1e-3)
    assert 3.812816 < calibrate(training, budget(1.0)) <= 3.812817 * (1 + 1e-4)


@pytest.mark.parametrize("scale", [1e-3, 1e3, 1e7])
def test_the_bracket_is_found_from_any_scale(scale):
    near = calibrate(gaussian, budget(1.0))
    assert calibrate(lambda s: gaussian(s / scale), budget(1.0)) == pytest.approx(scale * near, rel=1e-11)
    pure = calibrate(lambda s: laplace(s / scale), budget(0.5, 0.0))
    assert pure == pytest.approx(2.0 * scale, rel=1e-11)


def test_a_pure_plan_is_calibrated_at_delta_zero():
    found = calibrate(lambda s: Repeated(laplace(s), count=10), budget(1.0, 0.0))
    assert found == pytest.approx(10.0, rel=1e-11)
    assert Repeated(laplace(found), count=10).pure_epsilon() <= 1.0


def test_methods_other_than_the_tightest():
    by_renyi = calibrate(gaussian, budget(1.0), method="renyi")
    assert by_renyi == pytest.approx(4.0454, abs=1e-3)
    assert price(gaussian(by_renyi), method="renyi").epsilon(1e-5) <= 1.0
    with pytest.raises(InvalidParameter, match="method"):
        calibrate(gaussian, budget(1.0), method="magic")


def test_delta_zero_with_gaussian_noise_says_so():
    with pytest.raises(CalibrationFailed, match="Gaussian noise has no finite epsilon at delta 0"):
        calibrate(gaussian, budget(1.0, 0.0))


def test_a_plan_whose_other_parts_are_too_dear_says_so():
    with pytest.raises(CalibrationFailed, match="the rest alone does not fit"):
        calibrate(lambda s: Composed((gaussian(s), PureEvent(epsilon=2.0, adjacency=A))), budget(1.0))


def test_a_budget_that_never_binds_says_so():
    with pytest.raises(CalibrationFailed, match="no value reaches the budget"):
        calibrate(lambda s: PureEvent(epsilon=0.1, adjacency=A), budget(1.0))


def test_event_and_budget_must_share_their_adjacency():
    with pytest.raises(AdjacencyMismatch, match="replace-one"):
        calibrate(gaussian, budget(1.0, adjacency=Adjacency.REPLACE_ONE))
    # At the value where the search starts both agree; at the one that would be found they do not.
    with pytest.raises(AdjacencyMismatch, match="stated under replace-one, the budget under add-remove"):
        calibrate(
            lambda s: GaussianEvent(noise_multiplier=s, adjacency=A if s < 2.0 else Adjacency.REPLACE_ONE), budget(1.0)
        )


def test_a_plan_that_reads_an_iterator_is_refused():
    rest = (gaussian(0.5) for _ in range(20))  # used up by the first call: all later plans are the first event alone
    with pytest.raises(CalibrationFailed, match="two different plans for 1: .* tuple"):
        calibrate(lambda s: Composed((gaussian(s), *rest)), budget(1.0))


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.0, 1e-5), (-1.0, 1e-5), (math.nan, 1e-5), (math.inf, 1e-5), (1.0, 1.0), (1.0, -1e-9), (1.0, math.nan)],
)
def test_budgets_outside_their_bounds_are_refused(epsilon, delta):
    with pytest.raises(InvalidParameter, match="unit"):
        budget(epsilon, delta)


def test_what_is_no_budget_is_refused():
    with pytest.raises(InvalidParameter, match="budget"):
        calibrate(gaussian, 1.0)


def sampled(multiplier, rate, count):
    return Repeated(PoissonSampled(gaussian(multiplier), sampling_rate=rate), count=count)


def pure(epsilon, count):
    return Repeated(PureEvent(epsilon=epsilon, adjacency=A), count=count)


# Multipliers for (rate, steps, epsilon) at delta 1e-5, to the digits that are known
EXACT = [
    (0.01, 10_000, 0.1, 30.772670),
    (0.01, 10_000, 1.0, 3.812817),
    (0.01, 10_000, 8.0, 0.882528),
    (256 / 60_000, 14_040, 1.0, 2.023477),
    (1.0, 1, 0.1, 30.7495661),
    (1.0, 1, 1.0, 3.73063163),
    (1.0, 1, 8.0, 0.600229072),
    (0.001, 10**6, 1.0, 3.797965),
]


@pytest.mark.slow_after(1)  # calibrates many plans
@pytest.mark.parametrize(("rate", "steps", "epsilon", "exact"), EXACT)
@pytest.mark.parametrize("bounds", [None, (0.2, 300.0), (0.05, 300.0), (1e-9, 1e12)])
def test_composed_losses_need_the_exact_multiplier_from_any_bracket(rate, steps, epsilon, exact, bounds):
    found = calibrate(lambda s: sampled(s, rate, steps), budget(epsilon), method="pld", bounds=bounds)
    digit = 10.0 ** -(9 - len(str(int(exact)))) if rate == 1.0 else 1e-6
    assert exact - digit <= found <= exact * (1 + 1e-4)
    assert price(sampled(found, rate, steps), method="pld").epsilon(1e-5) <= epsilon


@pytest.mark.parametrize("multiplier", [5.0, 50.0, 1e4])
def test_the_largest_count_of_gaussian_releases_is_mu_squared_times_variance(multiplier):
    count = calibrate(lambda n: Repeated(gaussian(multiplier), count=n), budget(1.0), integer=True)
    assert isinstance(count, int)
    assert count == math.floor(gdp.mu(1.0, 1e-5) ** 2 * multiplier**2)


def test_a_whole_number_that_lowers_the_cost_is_the_least_one():
    count = calibrate(lambda n: gaussian(n / 100.0), budget(1.0), integer=True)
    assert count == math.ceil(100.0 / gdp.mu(1.0, 1e-5))


@pytest.mark.slow_after(1)  # calibrates many plans
@pytest.mark.parametrize("method", ["renyi", "pld"])
@pytest.mark.parametrize("rate", [0.01, 1e-4])
def test_the_largest_number_of_steps_fits_and_one_more_does_not(method, rate):
    steps = calibrate(lambda n: sampled(2.0, rate, n), budget(1.0), integer=True, method=method)
    assert price(sampled(2.0, rate, steps), method=method).epsilon(1e-5) <= 1.0
    assert price(sampled(2.0, rate, steps + 1), method=method).epsilon(1e-5) > 1.0


def test_the_largest_rate_of_one_draw_is_the_exact_one():
    """H(t) = q H_sub(log(1 + (e^t - 1) / q)), in mpmath."""

    def profile(rate, epsilon):
        t, mu = mp.log1p(mp.expm1(mpf(epsilon)) / rate), mpf(1) / 2
        return rate * (mp.ncdf(mu / 2 - t / mu) - mp.exp(t) * mp.ncdf(-mu / 2 - t / mu))

    found = calibrate(lambda q: PoissonSampled(gaussian(2.0), sampling_rate=q), budget(0.5))
    with mp.workdps(30):
        assert profile(mpf(found), 0.5) <= mpf(1e-5)
        assert profile(mpf(found) * (1 + mpf(10) ** -10), 0.5) > mpf(1e-5)


@pytest.mark.parametrize("method", ["renyi", "pld"])
def test_the_largest_rate_of_many_steps_fits(method):
    found = calibrate(lambda q: sampled(2.0, q, 1000), budget(1.0), method=method)
    assert price(sampled(2.0, found, 1000), method=method).epsilon(1e-5) <= 1.0
    assert price(sampled(2.0, found * (1 + 1e-4), 1000), method=method).epsilon(1e-5) > 1.0


@given(st.floats(0.05, 0.9), st.floats(1.0, 5.0))
@settings(max_examples=20, deadline=None)
def test_a_pure_sampled_query_has_its_rate_in_closed_form(limit, epsilon):
    """log(1 + q (e^eps - 1)) = limit"""
    found = calibrate(
        lambda q: PoissonSampled(PureEvent(epsilon=epsilon, adjacency=A), sampling_rate=q), budget(limit, 0.0)
    )
    assert found == pytest.approx(math.expm1(limit) / math.expm1(epsilon), rel=1e-11)


def test_epsilon_per_query():
    found = calibrate(lambda e: pure(e, 10), budget(1.0, 0.0))
    assert pure(found, 10).pure_epsilon() <= 1.0
    assert found == pytest.approx(0.1, rel=1e-11)
    assert calibrate(lambda n: pure(0.1, n), budget(1.0, 0.0), integer=True) == 9  # the float .1 is above 1/10
    assert calibrate(lambda n: pure(0.125, n), budget(1.0, 0.0), integer=True) == 8


def test_epsilon_per_query_at_a_delta_is_the_root_of_the_binomial_sum():
    """The exact delta of ten fresh randomised responses is a sum over the number of truthful ones."""

    def delta(e, epsilon, copies=10):
        up, down = math.exp(e) / (1 + math.exp(e)), 1 / (1 + math.exp(e))
        pairs = (
            (math.comb(copies, k), up**k * down ** (copies - k), down**k * up ** (copies - k))
            for k in range(copies + 1)
        )
        return sum(ways * max(p - math.exp(epsilon) * q, 0.0) for ways, p, q in pairs)

    for limit in (0.5, 2.0):
        found = calibrate(lambda e: pure(e, 10), budget(limit, 1e-3), method="pld")
        assert delta(found, limit) <= 1e-3
        assert delta(found * (1 + 2e-4), limit) > 1e-3


@pytest.mark.slow  # calibrates many plans
@settings(max_examples=5, deadline=None)
@given(st.floats(-2.0, 1.0).map(lambda x: 10.0**x), st.sampled_from(["renyi", "pld"]))
def test_the_direction_is_found(epsilon, method):
    least = calibrate(lambda s: sampled(s, 0.1, 100), budget(epsilon), method=method)
    largest = calibrate(lambda w: sampled(1.0 / w, 0.1, 100), budget(epsilon), method=method)
    assert largest == pytest.approx(1.0 / least, rel=5e-5)


def test_values_that_the_plan_refuses_are_outside_its_domain():
    direct = calibrate(lambda s: sampled(s, 0.01, 1000), budget(1.0), method="renyi")
    moved = calibrate(lambda s: sampled(s - 3.0, 0.01, 1000), budget(1.0), method="renyi")
    assert moved == pytest.approx(direct + 3.0, rel=1e-10)
    narrow = calibrate(
        lambda s: gaussian(s + 0.0 * math.sqrt((s - 15.5) * (17.5 - s))), budget(0.2), bounds=(12.0, 21.0)
    )
    assert narrow == pytest.approx(1.0 / gdp.mu(0.2, 1e-5), rel=1e-11)
    rooted = calibrate(lambda x: gaussian(math.sqrt(x - 5.0)), budget(1.0))  # the root raises ValueError
    assert rooted == pytest.approx(5.0 + gdp.mu(1.0, 1e-5) ** -2, rel=1e-10)


@pytest.mark.parametrize("method", ["renyi", "pld"])
def test_the_end_of_given_bounds_is_the_answer_where_all_of_them_fit(method):
    def make_event(rate):
        return sampled(200.0, rate, 10)

    assert calibrate(make_event, budget(1.0), bounds=(1e-6, 1.0), method=method) == 1.0
    assert calibrate(make_event, budget(1.0), bounds=(1e-6, 0.5), method=method) == 0.5
    assert calibrate(gaussian, budget(1.0), bounds=(10.0, 20.0), method=method) == 10.0
    assert calibrate(lambda n: sampled(200.0, 0.1, n), budget(1.0), bounds=(1, 7), integer=True, method=method) == 7
    with pytest.raises(CalibrationFailed, match="even at 1 the plan costs only epsilon=.* nats; no value reaches"):
        calibrate(make_event, budget(1.0), method=method)


@pytest.mark.slow  # calibrates many plans
@pytest.mark.parametrize("method", ["renyi", "pld"])
def test_bounds_next_to_the_answer(method):
    def make_event(count):
        return sampled(2.0, 0.01, count)

    def found(low, high):
        return calibrate(make_event, budget(1.0), bounds=(low, high), integer=True, method=method)

    steps = calibrate(make_event, budget(1.0), integer=True, method=method)
    assert [found(1, steps), found(1, steps - 1), found(steps, 10**6)] == [steps, steps - 1, steps]
    with pytest.raises(CalibrationFailed, match="above the budget"):
        found(steps + 1, 10**6)
    least = calibrate(lambda s: sampled(s, 0.01, 1000), budget(1.0), method=method)
    for low, high in ((least * (1 - 1e-4), 9.0), (0.1, least * (1 + 1e-4))):
        again = calibrate(lambda s: sampled(s, 0.01, 1000), budget(1.0), bounds=(low, high), method=method)
        assert low <= again <= high
        assert again == pytest.approx(least, rel=3e-5)


def test_no_value_of_the_bounds_fits():
    with pytest.raises(CalibrationFailed, match="even at 3 the plan costs epsilon=.* nats, above the budget"):
        calibrate(gaussian, budget(1.0), bounds=(1.0, 3.0))
    with pytest.raises(CalibrationFailed, match="even at 1 the plan costs epsilon"):
        calibrate(lambda n: Repeated(gaussian(0.1), count=n), budget(1.0), integer=True)


@pytest.mark.slow_after(1)  # calibrates many plans
@pytest.mark.parametrize("method", ["renyi", "pld"])
def test_a_cost_that_does_not_depend_on_the_value_says_so(method):
    with pytest.raises(CalibrationFailed, match="as at every other value .* above the budget of epsilon=1.0 nats"):
        calibrate(lambda x: sampled(1.0, 0.1, 1000), budget(1.0), method=method)
    with pytest.raises(CalibrationFailed, match="as at every other value .* no value reaches the budget"):
        calibrate(lambda x: sampled(100.0, 0.1, 10), budget(1.0), method=method)


@pytest.mark.parametrize("method", ["renyi", "pld"])
def test_a_cost_that_turns_back_is_refused(method):
    def wavy(x):
        return sampled(x if x < 3.0 or x > 100.0 else 0.15 * x, 0.01, 10_000)  # tried at 1, 2, 8 and 128

    with pytest.raises(CalibrationFailed, match="not monotone: epsilon=.* nats at 2 and epsilon=.* nats at 8"):
        calibrate(wavy, budget(0.1), method=method)


def test_a_plan_that_is_wrong_whatever_the_value_says_so_itself():
    with pytest.raises(InvalidParameter, match=r"sampling_rate=2\.0"):
        calibrate(lambda s: sampled(s, 2.0, 10), budget(1.0))


def test_a_plan_that_no_value_accepts_or_prices():
    with pytest.raises(
        CalibrationFailed, match=r"refuses every value .* count=.* \(a whole number is found with integer"
    ):
        calibrate(lambda n: Repeated(gaussian(1.0), count=n), budget(1.0))
    with pytest.raises(CalibrationFailed, match="refuses every value .* noise_multiplier="):
        calibrate(lambda s: gaussian(-s), budget(1.0))
    with pytest.raises(UnsupportedEvent, match="pure"):
        calibrate(gaussian, budget(1.0), method="pure")
    with pytest.raises(UnsupportedEvent, match="replace-one"):
        calibrate(
            lambda s: PoissonSampled(
                GaussianEvent(noise_multiplier=s, adjacency=Adjacency.REPLACE_ONE), sampling_rate=0.1
            ),
            budget(1.0, adjacency=Adjacency.REPLACE_ONE),
        )
    with pytest.raises(InvalidParameter, match="not an event"):
        calibrate(lambda s: s, budget(1.0))


def test_budgets_at_the_end_of_the_floats():
    tiny = calibrate(gaussian, budget(1.0, 1e-305))
    assert price(gaussian(tiny)).epsilon(1e-305) <= 1.0 < price(gaussian(tiny * (1 - 1e-9))).epsilon(1e-305)
    with pytest.raises(CalibrationFailed, match=r"even at 1e\+12 the plan costs epsilon=.* nats, above the budget"):
        calibrate(lambda s: Repeated(gaussian(s), count=10**12), budget(1e-30, 1e-300))


@pytest.mark.parametrize(
    ("bounds", "integer"),
    [
        ((0.0, 1.0), False),
        ((-1.0, 1.0), False),
        ((1.0, math.inf), False),
        ((math.nan, 1.0), False),
        ((2.0, 1.0), False),
        ((1.0, 1.0), False),
        ((1.0, 2.0, 3.0), False),
        ((0, 5), True),
        ((1.5, 5), True),
        ((1, 2**54), True),
    ],
)
def test_bounds_that_are_no_interval_are_refused(bounds, integer):
    with pytest.raises(InvalidParameter, match="bounds"):
        calibrate(lambda s: Repeated(gaussian(3.0), count=int(s)), budget(1.0), bounds=bounds, integer=integer)


def test_a_count_is_found_from_among_those_that_cost_nothing():
    """The estimates of plans of epsilon 0 are equal: noise among them would look like a cost that turns back."""

    def plan(count):
        return Repeated(PoissonSampled(gaussian(2.0), sampling_rate=0.000943), count=count)

    assert [price(plan(count)).epsilon(1e-3) for count in (1, 2, 8, 16)] == [0.0] * 4
    limit = budget(0.0604, delta=1e-3)
    count = calibrate(plan, limit, integer=True)
    assert price(plan(count)).epsilon(1e-3) <= 0.0604 < price(plan(count + 1)).epsilon(1e-3)
