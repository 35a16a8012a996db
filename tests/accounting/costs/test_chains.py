"""The least expectation after some steps, against programmes, enumerations and closed forms."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog

import ledgerwood as lw
from ledgerwood.accounting.costs import chains
from ledgerwood.accounting.events import RenyiEvent

A = lw.Adjacency.ADD_REMOVE
STEPS = np.array([0, 1, 2, 3, 7, 20])
laws = settings(max_examples=60, deadline=None, derandomize=True)
probabilities = st.floats(0.0, 1.0)
DELTAS = st.sampled_from([0.0, 1e-9, 1e-3, 0.2])


def values(event, expectation, steps):
    return np.array([least.value for least in chains.least_expectations(event, expectation, np.asarray(steps))])


def stated(epsilon, delta):
    if delta == 0.0:
        return lw.PureEvent(epsilon=epsilon, adjacency=A)
    return lw.ApproximateEvent(epsilon=epsilon, delta=delta, adjacency=A)


def walked(epsilon, delta, expectation, steps):
    """The same by one step after another, in 60 digits."""
    with mpmath.workdps(60):
        p, grow = mpmath.mpf(expectation), mpmath.exp(mpmath.mpf(epsilon))
        for _ in range(steps):
            p = max(1 - delta - grow * (1 - p), (p - delta) / grow, mpmath.mpf(0))
        return p


# --------------------------------------------------------------------------------------------- (epsilon, delta), pure


@laws
@given(
    p=probabilities,
    epsilon=st.floats(1e-6, 3.0),
    delta=st.sampled_from([0.0, 1e-9, 1e-3, 0.2]),
    steps=st.integers(0, 60),
)
def test_stated_steps_are_the_walk_and_below_it(p, epsilon, delta, steps):
    found, exact = values(stated(epsilon, delta), p, [steps])[0], walked(epsilon, delta, p, steps)
    assert found <= exact
    assert found >= exact - 1e-12 * max(1.0, epsilon * steps)
    assert found >= exact * (1 - 1e-9) - 1e-15


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.0), (0.2, 0.01)])
@pytest.mark.parametrize("p", [0.99, 0.8, 0.3])
def test_no_learner_that_keeps_the_claim_does_worse_and_one_does_as_badly(epsilon, delta, p):
    """A linear programme over all laws of two outputs on data sets 0..4, neighbours in a row."""
    steps = 4
    grow, n = math.exp(epsilon), steps + 1
    rows, limits = [], []
    for i in range(n):
        for j in (i - 1, i + 1):
            if 0 <= j < n:
                one, rest = np.zeros(n), np.zeros(n)
                one[[i, j]] = 1.0, -grow  # p_i <= e^epsilon p_j + delta
                rest[[i, j]] = -1.0, grow  # 1 - p_i <= e^epsilon (1 - p_j) + delta
                rows += [one, rest]
                limits += [delta, grow - 1.0 + delta]
    fixed = np.eye(1, n)
    for count in range(1, n):
        least = linprog(np.eye(n)[count], A_ub=rows, b_ub=limits, A_eq=fixed, b_eq=[p], bounds=(0, 1))
        assert values(stated(epsilon, delta), p, [count])[0] == pytest.approx(least.fun, abs=1e-9)


@laws
@given(p=probabilities, epsilon=st.floats(1e-4, 2.0), steps=st.integers(0, 50))
def test_pure_steps_beat_the_published_bound_and_its_complement(p, epsilon, steps):
    found = values(stated(epsilon, 0.0), p, [steps])[0]
    published = math.exp(-steps * epsilon) * p
    complement = 1.0 - math.exp(steps * epsilon) * (1.0 - p)
    assert found >= published * (1.0 - 1e-12) - 1e-289
    assert found >= complement - 1e-12 * math.exp(steps * epsilon)


def test_small_steps_of_a_pure_claim_are_laplace_noise():
    """e^{-t} / (4 (1 - p)) once past 1/2: the Laplace pair t apart, which is no worse than the worst learner."""
    found = values(lw.PureEvent(epsilon=0.001, adjacency=A), 0.95, [5_000])[0]
    assert found == pytest.approx(math.exp(-5.0) / (4 * 0.05), rel=2e-3)
    laplace = values(lw.LaplaceEvent(noise_multiplier=1000.0, adjacency=A), 0.95, [5_000])[0]
    assert found <= laplace <= found * 1.002


def test_extremes_of_stated_claims():
    pure = stated(1.0, 0.0)
    assert values(pure, 1.0, STEPS).tolist() == [1.0] * len(STEPS)
    assert values(pure, 0.0, STEPS).tolist() == [0.0] * len(STEPS)
    assert values(stated(1e-100, 0.0), 0.25, [10**6])[0] == pytest.approx(0.25, rel=1e-12)
    assert values(stated(1e100, 0.0), 0.75, [1])[0] == 0.0
    assert values(stated(1e-100, 0.1), 0.75, [1, 3, 9]) == pytest.approx([0.65, 0.45, 0.0])
    assert values(stated(50.0, 0.0), 0.75, [10**6])[0] == 0.0


# ------------------------------------------------------------------------------------------------------------ Gaussian


@pytest.mark.parametrize("p", [1e-12, 0.02, 0.5, 0.95, 1.0 - 1e-9])
def test_gaussian_steps_are_the_closed_form_from_below(p):
    mu = 0.05
    events = (
        lw.GDPEvent(mu=mu, adjacency=A),
        lw.GaussianEvent(noise_multiplier=20.0, adjacency=A),
        lw.Repeated(lw.GaussianEvent(noise_multiplier=40.0, adjacency=A), count=4),
    )
    for event in events:
        for steps, found in zip(STEPS[1:], values(event, p, STEPS[1:]), strict=True):
            with mpmath.workdps(40):
                quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(p) - 1)
                exact = mpmath.ncdf(quantile - int(steps) * mpmath.mpf(mu))
            assert found <= exact
            assert found == pytest.approx(float(exact), rel=1e-10)


# --------------------------------------------------------------------------------------------------------------- Renyi


def test_concentrated_steps_are_below_the_gaussian_ones_and_near():
    gaussian = values(lw.GaussianEvent(noise_multiplier=20.0, adjacency=A), 0.95, STEPS)
    found = values(lw.ZeroConcentratedEvent(rho=1 / 800, adjacency=A), 0.95, STEPS)
    assert (found <= gaussian * (1 + 1e-9)).all()
    assert found[1:5] == pytest.approx(gaussian[1:5], abs=0.02)


def coin_divergence(p, q, order):
    total = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
    return mpmath.log(total) / (order - 1)


@pytest.mark.slow_after(2)  # any event, and bounds of many groups
@pytest.mark.parametrize("p", [0.999, 0.9, 0.4])
@pytest.mark.parametrize("rho", [1e-4, 0.02, 1.0])
def test_coins_beyond_a_concentrated_bound_break_it_and_the_next_ones_do_not(p, rho):
    found = values(lw.ZeroConcentratedEvent(rho=rho, adjacency=A), p, [1])[0]
    orders = [1.0 + 10.0 ** (k / 60) for k in range(-180, 241)]

    def breaks(q):
        with mpmath.workdps(30):
            p_exact, q = mpmath.mpf(p), mpmath.mpf(q)
            return any(max(coin_divergence(p_exact, q, a), coin_divergence(q, p_exact, a)) > rho * a for a in orders)

    assert 0.0 < found < p
    assert breaks(found - 1e-4 * (p - found))
    assert not breaks(found + 0.01 * (p - found))


def test_extremes_of_renyi_steps():
    orders = np.array([2.0, 8.0])
    assert chains.after_renyi(orders, np.array([np.inf, np.inf]), 0.9) == 0.0
    assert chains.after_renyi(orders, np.array([0.1, 0.4]), 0.0) == 0.0
    assert chains.after_renyi(orders, np.array([0.1, 0.4]), 1.0) == pytest.approx(1.0, abs=1e-12)
    assert chains.after_renyi(orders, np.array([0.0, 0.0]), 0.5) <= 0.5


# ------------------------------------------------------------------------------------------------- groups, walked steps


def responses(k, epsilon, count):
    """Laws of the number of true answers of `count` randomised answers when k of the rows behind each are changed."""
    keep = Fraction(math.exp(epsilon) / (1.0 + math.exp(epsilon)))
    law = [Fraction(1)]
    for j in range(count):
        true = keep if j >= k else 1 - keep
        law = [
            (law[i] * (1 - true) if i < len(law) else 0) + (law[i - 1] * true if i else 0) for i in range(len(law) + 1)
        ]
    return law


def test_every_function_of_a_finite_release_keeps_the_bound():
    """Permuted randomised response of four rows: all 2^5 functions of the count, and one to three rows changed."""
    epsilon = 0.4
    clean = responses(0, epsilon, 4)
    for k in (1, 2, 3):
        poisoned = responses(k, epsilon, 4)
        for mask in range(32):
            chosen = [i for i in range(5) if mask >> i & 1]
            p, q = float(sum(clean[i] for i in chosen)), float(sum(poisoned[i] for i in chosen))
            if p <= 1.0:
                assert q >= values(lw.PureEvent(epsilon=epsilon, adjacency=A), p, [k])[0] - 1e-15


@pytest.mark.slow_after(3)  # any event, and bounds of many groups
@pytest.mark.parametrize(
    "event",
    [
        lw.LaplaceEvent(noise_multiplier=3.0, adjacency=A),
        lw.BoundedRangeEvent(epsilon=0.3, adjacency=A),
        lw.Repeated(lw.PureEvent(epsilon=0.05, adjacency=A), count=8),
        lw.Composed((lw.GaussianEvent(noise_multiplier=9.0, adjacency=A), lw.PureEvent(epsilon=0.1, adjacency=A))),
        lw.Repeated(lw.PoissonSampled(lw.GaussianEvent(noise_multiplier=2.0, adjacency=A), sampling_rate=0.1), count=5),
        lw.ProfileEvent(epsilons=(0.0, 0.5), deltas=(0.1, 0.01), adjacency=A),
        RenyiEvent(orders=(2.0, 16.0), divergences=(0.01, 0.08), adjacency=A),
    ],
)
def test_bounds_of_any_event_fall_with_each_step_and_keep_every_price(event):
    found = values(event, 0.9, STEPS)
    assert found[0] == 0.9
    assert (np.diff(found) <= 0.0).all()
    assert found[1] > 0.5
    # one step of it is at least what one (epsilon, delta) point of its price says
    priced = lw.price(event)
    for delta in (0.02, 0.05):
        assert found[1] >= chains.after_stated(priced.epsilon(delta), delta, 0.9, 1) - 2e-3


@pytest.mark.parametrize("p", [0.99, 0.9, 0.4])
def test_a_plan_of_many_parts_keeps_what_its_group_keeps_exactly(p):
    """Eight pure parts of .05, three rows: the most powerful test of eight answers to randomised response of .15."""
    keep = math.exp(0.15) / (1.0 + math.exp(0.15))
    law, other = stats.binom.pmf(np.arange(9), 8, keep), stats.binom.pmf(np.arange(9), 8, 1.0 - keep)
    exact = 1.0
    for clean, poisoned in ((law, other), (other, law)):
        left, least = p, 0.0
        for i in np.argsort(poisoned / clean):  # the outputs whose poisoned probability is least for the clean one
            share = min(left / clean[i], 1.0)
            left, least = left - share * clean[i], least + share * poisoned[i]
        exact = min(exact, least)
    event = lw.Repeated(lw.PureEvent(epsilon=0.05, adjacency=A), count=8)
    found = values(event, p, [3])[0]
    assert found <= exact * (1 + 1e-12)
    assert found == pytest.approx(exact, rel=5e-3)
    assert found > values(lw.PureEvent(epsilon=0.4, adjacency=A), p, [3])[0]


def test_what_is_below_every_normal_number_is_not_claimed():
    found = values(stated(1.0, 0.0), 0.9, [600, 700])
    assert found[0] == pytest.approx(float(walked(1.0, 0.0, 0.9, 600)), rel=1e-9)
    assert found[1] == 0.0


def test_a_laplace_release_falls_as_its_shifted_noise_does():
    scale, p = 5.0, 0.97
    found = values(lw.LaplaceEvent(noise_multiplier=scale, adjacency=A), p, STEPS)
    for steps, value in zip(STEPS, found, strict=True):
        quantile = -math.log(2 * (1 - p)) - steps / scale
        exact = 1 - math.exp(-quantile) / 2 if quantile > 0 else math.exp(quantile) / 2
        assert value <= exact * (1 + 1e-12)
        assert value == pytest.approx(exact, rel=2e-3)


def test_a_sample_is_bounded_step_by_step_and_by_the_event_without_sampling():
    inner = lw.GaussianEvent(noise_multiplier=3.0, adjacency=A)
    sampled = lw.PoissonSampled(inner, sampling_rate=0.2)
    assert (values(sampled, 0.9, STEPS) >= values(inner, 0.9, STEPS)).all()
    # one row of a sample with probability .2, exactly: the mixture's most powerful test at this level
    threshold = mpmath.findroot(lambda t: 1 - mpmath.ncdf(t) - mpmath.mpf("0.1"), 1.3)  # outputs beyond it do harm
    power = 0.8 * 0.1 + 0.2 * (1 - mpmath.ncdf(threshold - mpmath.mpf(1) / 3))
    assert values(sampled, 0.9, [1])[0] <= 1 - float(power)
    assert values(sampled, 0.9, [1])[0] == pytest.approx(1 - float(power), abs=5e-3)


def test_more_steps_than_a_group_may_have_leave_nothing_of_a_stated_delta():
    assert values(stated(0.1, 1e-5), 0.9, [10**5])[0] == 0.0
