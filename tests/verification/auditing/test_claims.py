"""Claims as curves: budgets by their definition, functions that are no profile, less noise in few prices."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.accounting import price
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events import Composed, GaussianEvent, LaplaceEvent, PoissonSampled, Repeated
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import ClaimedCurve
from ledgerwood.verification.auditing import claims as module

A = Adjacency.ADD_REMOVE


@given(st.floats(0.01, 30.0), st.sampled_from([0.0, 1e-12, 1e-5, 0.1]), st.floats(0.0, 1.0))
def test_a_budget_below_its_epsilon_is_the_conjugate_of_its_trade_off_curve(epsilon, delta, part):
    """sup over a of 1 - f(a) - e^x a, at the kink and at both ends, at 40 digits; rounded up, and by little."""
    at = epsilon * part
    with mpmath.workdps(40):
        big, x, gone = mpmath.exp(mpmath.mpf(epsilon)), mpmath.exp(mpmath.mpf(at)), mpmath.mpf(delta)

        def curve(a):
            return max(1 - gone - big * a, (1 - gone - a) / big, mpmath.mpf(0))

        points = [mpmath.mpf(0), (1 - gone) / (1 + big), 1 - gone, mpmath.mpf(1)]
        truth = max(1 - curve(a) - x * a for a in points)
        found = mpmath.mpf(ClaimedCurve(Budget(epsilon=epsilon, delta=delta, adjacency=A)).delta(at))
        assert found >= truth
        assert found <= truth * (1 + mpmath.mpf(10) ** -13) + mpmath.mpf(10) ** -17 * epsilon


def test_a_budget_keeps_its_delta_and_its_epsilon():
    curve = ClaimedCurve(Budget(epsilon=1.0, delta=1e-5, adjacency=A))
    assert curve.delta(1.0) == curve.delta(50.0) == curve.default_delta() == 1e-5
    assert curve.epsilon(1e-5) == pytest.approx(1.0, abs=1e-12)
    assert curve.epsilon(1e-6) == math.inf
    assert curve.epsilon(0.9) == 0.0
    assert curve.delta(curve.epsilon(0.1)) <= 0.1
    assert ClaimedCurve(Budget(epsilon=1.0, delta=0.0, adjacency=A)).delta(1.0 - 1e-12) > 0.0


def test_events_and_functions_are_their_own_curves():
    event = GaussianEvent(noise_multiplier=2.0, adjacency=A)
    curve, function = ClaimedCurve(event), ClaimedCurve(price(event).delta)
    for epsilon in (0.0, 0.3, 2.0):
        assert curve.delta(epsilon) == function.delta(epsilon) == price(event).delta(epsilon)
    assert curve.default_delta() == function.default_delta() == 1e-5
    assert function.epsilon(1e-5) == pytest.approx(curve.epsilon(1e-5), abs=1e-9)
    assert curve.epsilon(0.0) == math.inf
    laplace = ClaimedCurve(LaplaceEvent(noise_multiplier=1.0, adjacency=A))
    assert laplace.default_delta() == 0.0
    assert laplace.epsilon(0.0) == 1.0
    assert laplace.less_noise(0.5, 0.9) is None


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (lambda epsilon: math.nan, "finite real number"),
        (lambda epsilon: "0.1", "finite real number"),
        (lambda epsilon: None, "finite real number"),
        (lambda epsilon: -1e-3 * math.exp(-epsilon), r"in \[0, 1\]"),
        (lambda epsilon: 1.5 * math.exp(-epsilon), r"in \[0, 1\]"),
        (lambda epsilon: 0.5 * (1.0 - math.exp(-epsilon)), "rises"),
        (lambda epsilon: 1.0 if epsilon < 1.0 else 0.0, "not convex"),
        (lambda epsilon: max(0.0, 0.5 - 0.001 * math.expm1(min(epsilon, 5.0)) ** 2), "not convex"),
        (lambda: 0.1, "TypeError"),
        (lambda epsilon: 1 / 0, "ZeroDivisionError"),
        ("a budget", "must be a Budget, an event or a function"),
        (1.0, "must be a Budget, an event or a function"),
        (None, "must be a Budget, an event or a function"),
    ],
)
def test_what_is_no_profile_is_refused(claim, said):
    with pytest.raises(InvalidParameter, match=said):
        ClaimedCurve(claim)


def test_profiles_with_noise_of_their_own_are_let_in():
    rng = np.random.default_rng(20_260_761)
    exact = price(GaussianEvent(noise_multiplier=1.0, adjacency=A)).delta
    ClaimedCurve(lambda epsilon: min(1.0, exact(epsilon) + 2e-10 * rng.random()))
    ClaimedCurve(lambda epsilon: 0.0)
    ClaimedCurve(lambda epsilon: 1.0)


@pytest.mark.parametrize("more", [1.01, 2.0, 8.0])
@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(noise_multiplier=2.0, adjacency=A),
        Composed(
            (
                GaussianEvent(noise_multiplier=4.0, adjacency=A),
                Repeated(GaussianEvent(noise_multiplier=9.0, adjacency=A), count=4),
            )
        ),
    ],
)
def test_less_noise_has_the_delta_and_hardly_more(event, more):
    curve = ClaimedCurve(event)
    wanted = more * curve.delta(0.5)
    found = curve.less_noise(0.5, wanted)
    assert wanted * 0.998 <= price(found).delta(0.5) <= wanted
    assert curve.less_noise(0.5, curve.delta(0.5) * 0.9) is None


@pytest.mark.slow  # a rate of error, by enumeration or many audits
def test_less_noise_of_sampled_plans_takes_few_prices(monkeypatch):
    calls = []
    priced = module.price
    monkeypatch.setattr(module, "price", lambda event: (calls.append(event), priced(event))[1])
    event = Repeated(PoissonSampled(GaussianEvent(noise_multiplier=1.0, adjacency=A), sampling_rate=0.05), count=20)
    curve = ClaimedCurve(event)
    wanted = 3.0 * curve.delta(0.5)
    found = curve.less_noise(0.5, wanted)
    assert len(calls) <= 12
    assert wanted * 0.99 <= priced(found).delta(0.5) <= wanted
