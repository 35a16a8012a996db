"""One run against a curve: the recursion beside the linear program that it solves, and errors at the truth."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from ledgerwood.accounting import price
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import GaussianEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import one_run, one_run_curve, one_run_mu

A = Adjacency.ADD_REMOVE


def gaussian(mu):
    return lambda rates: special.ndtr(special.ndtri(1.0 - rates) - mu)


def pure(epsilon, delta=0.0):
    factor = math.exp(epsilon)
    return lambda a: np.maximum(np.maximum(1.0 - delta - factor * a, (1.0 - delta - a) / factor), 0.0)


def most_likely(correct, guesses, canaries, factor, delta):
    """The largest P(at least `correct` right) of laws with H_c >= the curve at each c, as a program."""
    k = np.arange(guesses + 1)
    limits, bounds = [], []
    for c in range(1, guesses + 1):
        right = np.where(k >= c, k, 0.0) / canaries
        wrong = np.where(k >= c - 1, guesses - k, 0.0) / canaries
        limits += [right - factor * wrong, factor * right - wrong]  # both lines of the curve, H >= f(1 - R)
        bounds += [delta, factor - 1.0 + delta]
    found = optimize.linprog(
        -(k >= correct).astype(float), A_ub=limits, b_ub=bounds, A_eq=np.ones((1, guesses + 1)), b_eq=[1.0]
    )
    assert found.success
    return -found.fun


@pytest.mark.parametrize(
    ("correct", "guesses", "canaries"), [(5, 5, 5), (9, 10, 10), (8, 10, 30), (20, 25, 25), (6, 12, 12)]
)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.05), (0.5, 0.0), (1.0, 0.01)])
def test_the_recursion_is_the_linear_program(correct, guesses, canaries, epsilon, delta):
    best = most_likely(correct, guesses, canaries, math.exp(epsilon), delta)
    curve = pure(epsilon, delta)
    for factor, refused in ((1.02, True), (0.98, False)):
        if 1e-6 < best * factor < 0.5:
            assert one_run_curve(correct, guesses, canaries, trade_off=curve, alpha=best * factor) == refused


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_mu_is_above_the_truth_at_most_so_often(mu):
    """Gaussian canaries, each seen with its own noise; half are guessed. 300 audits, seed fixed beforehand: the rate is
    at most alpha (in fact far less), with three standard errors."""
    rng = np.random.default_rng(20_260_731)
    canaries, size, alpha = 200, 50, 0.1
    refused = [one_run_curve(k, 2 * size, canaries, trade_off=gaussian(mu), alpha=alpha) for k in range(2 * size + 1)]
    crossing = refused.index(True)
    assert one_run_mu(crossing, 2 * size, canaries, alpha=alpha) > mu * 0.999
    assert one_run_mu(crossing - 1, 2 * size, canaries, alpha=alpha) < mu * 1.001
    coins = rng.integers(0, 2, (300, canaries)).astype(bool)
    order = np.argsort(coins * mu + rng.normal(0.0, 1.0, coins.shape), axis=1)
    ranked = np.take_along_axis(coins, order, axis=1)
    right = ranked[:, -size:].sum(axis=1) + (~ranked[:, :size]).sum(axis=1)
    assert np.mean(right >= crossing) <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / 300)
    assert one_run_mu(2 * size, 2 * size, canaries, alpha=alpha) > mu


def test_it_refuses_no_curve_that_the_exact_law_keeps():
    """One canary: P(right) of the best test is the curve's own (1 + TV) / 2, which is not refused."""
    for mu in (0.2, 1.0, 3.0):
        right = special.ndtr(mu / 2.0)
        assert not one_run_curve(1, 1, 1, trade_off=gaussian(mu), alpha=min(right * 0.999, 0.5))
        independent = stats.binom.sf(17, 20, right)
        if 1e-9 < independent < 0.5:
            assert not one_run_curve(18, 20, 20, trade_off=gaussian(mu), alpha=independent * 0.999)


def test_mu_is_where_the_curve_begins_to_be_kept():
    found = one_run_mu(180, 220, 1000, alpha=0.05)
    assert one_run_curve(180, 220, 1000, trade_off=gaussian(found * 0.999), alpha=0.05)
    assert not one_run_curve(180, 220, 1000, trade_off=gaussian(found * 1.001), alpha=0.05)
    assert one_run_mu(200, 220, 1000, alpha=0.05) > found > one_run_mu(180, 220, 1000, alpha=0.01)
    assert one_run_mu(110, 220, 1000, alpha=0.05) == one_run_mu(0, 220, 1000, alpha=0.05) == 0.0


def test_a_price_is_a_curve():
    priced = price(GaussianEvent(noise_multiplier=2.0, adjacency=A))
    for correct in (150, 170):
        of_curve = one_run_curve(correct, 200, 400, trade_off=gaussian(0.5), alpha=0.05)
        assert one_run_curve(correct, 200, 400, trade_off=priced, alpha=0.05) <= of_curve
    assert one_run_curve(190, 200, 400, trade_off=priced, alpha=0.05)
    assert not one_run_curve(0, 200, 400, trade_off=priced, alpha=0.05)


def test_more_right_guesses_refuse_more():
    for curve in (gaussian(0.5), pure(1.0, 1e-5)):
        refused = [one_run_curve(k, 100, 300, trade_off=curve, alpha=0.05) for k in range(0, 101, 4)]
        assert refused == sorted(refused)
        assert refused[-1]
    # the bound for (epsilon, delta) alone, which is the best there is, refuses no less
    bound = one_run(92, 100, 300, delta=1e-5, alpha=0.05)
    assert not one_run_curve(92, 100, 300, trade_off=pure(bound + 1e-3, 1e-5), alpha=0.05)


@pytest.mark.parametrize(
    "curve", [lambda a: 2.0 - a, lambda a: 0.0 * a - 1.0, lambda a: a, lambda a: a * math.nan, lambda a: np.zeros(3)]
)
def test_what_is_no_curve_is_refused(curve):
    with pytest.raises(InvalidParameter, match="trade-off"):
        one_run_curve(9, 10, 20, trade_off=curve, alpha=0.05)


def test_a_curve_that_is_not_convex_is_refused():
    """Errors are averaged over canaries, for which Jensen's inequality needs a convex curve."""
    with pytest.raises(InvalidParameter, match="convex"):
        one_run_curve(60, 100, 100, trade_off=lambda a: np.where(a < 0.5, 0.9, 0.2) * (1.0 - a), alpha=0.05)
