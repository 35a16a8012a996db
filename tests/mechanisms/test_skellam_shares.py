"""Shares of Skellam noise: what their sum is distributed like, and that it has at least the planned variance."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import chi2

from ledgerwood import price
from ledgerwood._directed import float_down
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import Repeated, SkellamVectorEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BallShifts, BoxShifts, Grid, SeededRandom, SkellamMechanism

A = Adjacency.ADD_REMOVE
WHOLE = Grid(exponents=(0,))


@given(variance=st.floats(1e-3, 1e9), clients=st.integers(1, 1000))
@example(variance=1e9, clients=1)
@example(variance=1.0, clients=3)
def test_the_shares_have_at_least_the_variance_and_no_ulp_more(variance, clients):
    share = SkellamMechanism(variance=variance).share(clients)
    assert clients * Fraction(share.variance) >= Fraction(variance)
    below = float(np.nextafter(share.variance, 0.0))
    assert clients * Fraction(below) < Fraction(variance)
    assert SkellamMechanism(variance=variance).share(1) == SkellamMechanism(variance=variance)


@given(variance=st.floats(1.0, 1e9), clients=st.integers(2, 1000), more=st.integers(0, 1000))
def test_the_event_of_the_sum_never_costs_more_than_planned(variance, clients, more):
    share = SkellamMechanism(variance=variance).share(clients)
    # The sum's variance rounded down: a statement that holds for the sum.
    total = float_down((clients + more) * Fraction(share.variance))
    carried = SkellamVectorEvent(variance=total, l2_sensitivity=3.0, adjacency=A)
    planned = SkellamMechanism(variance=variance).event(BallShifts(radius=3.0), A)
    orders = np.array([1.5, 2.0, 8.0, 64.0])
    assert (carried.renyi(orders) <= planned.renyi(orders)).all()


def test_the_price_of_a_plan_falls_with_every_share_beyond_the_planned_ones():
    shift = BoxShifts(boxes=((3.0, 4.0),))
    share = SkellamMechanism(variance=400.0).share(10)
    costs = [
        price(Repeated(SkellamMechanism(variance=n * share.variance).event(shift, A), count=20)).epsilon(1e-6)
        for n in (10, 12, 15)
    ]
    assert costs[0] > costs[1] > costs[2]


def skellam(variance, reach):
    """Probabilities at -reach .. reach by mpmath's Bessel functions, 40 digits."""
    with mpmath.workdps(40):
        v = mpmath.mpf(variance)
        return [mpmath.exp(-v) * mpmath.besseli(abs(k), v) for k in range(-reach, reach + 1)]


@pytest.mark.parametrize(("variance", "clients"), [(0.75, 3), (2.5, 2), (6.0, 5)])
def test_shares_convolve_to_the_law_of_their_exact_total(variance, clients):
    share, reach = SkellamMechanism(variance=variance).share(clients), 40
    with mpmath.workdps(40):
        one = skellam(share.variance, reach)
        total = one
        for _ in range(clients - 1):
            total = [
                mpmath.fsum(
                    total[j] * one[k - j + reach] for j in range(max(0, k - reach), min(2 * reach, k + reach) + 1)
                )
                for k in range(2 * reach + 1)
            ]
        wanted = skellam(mpmath.mpf(clients) * mpmath.mpf(share.variance), reach)
        for k in range(reach - 12, reach + 13):  # far from the window's ends
            assert mpmath.almosteq(total[k], wanted[k], rel_eps=mpmath.mpf(10) ** -15)


def summed(variance, clients, n, seed):
    """n sums of the shares of so many clients, each with a source of its own."""
    share, zero = SkellamMechanism(variance=variance).share(clients), np.zeros((n, 1), dtype=np.int64)
    return sum(share.randomise(zero, WHOLE, SeededRandom(seed + client))[:, 0] for client in range(clients))


def test_drawn_shares_of_a_small_variance_have_the_law_of_the_sum():
    n, reach = 100_000, 8
    out = summed(4.0, 5, n, 20_261_130)
    expected = [float(p) * n for p in skellam(4.0, reach)]
    expected.append(n - sum(expected))
    counts = [np.count_nonzero(out == k) for k in range(-reach, reach + 1)]
    counts.append(n - sum(counts))
    statistic = sum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True))
    assert chi2.sf(statistic, len(counts) - 1) > 1e-4


def test_drawn_shares_of_a_large_variance_have_the_law_of_the_sum():
    # At variance 1e6 the normal distribution function is within 1e-7 of Skellam's at half integers: a law's fourth
    # cumulant over its variance squared is 1e-6, and there is no third one.
    n, stddev = 50_000, 1e3
    out = summed(stddev**2, 20, n, 20_261_160)
    edges = np.floor(stddev * np.linspace(-2.5, 2.5, 41)) + 0.5
    expected = n * np.diff(np.concatenate(([0.0], ndtr(edges / stddev), [1.0])))
    counts = np.bincount(np.searchsorted(edges, out), minlength=len(expected))
    assert chi2.sf(float(((counts - expected) ** 2 / expected).sum()), len(expected) - 1) > 1e-4


def test_shares_wrap_around_like_the_sums():
    share = SkellamMechanism(variance=9.0).share(2)
    high = np.array([[2**63 - 1]])
    with np.errstate(over="ignore"):
        wrapped = share.randomise(high, WHOLE, SeededRandom(1)) + share.randomise(high, WHOLE, SeededRandom(2))
        plain = share.randomise(0 * high, WHOLE, SeededRandom(1)) + share.randomise(0 * high, WHOLE, SeededRandom(2))
        assert (wrapped - plain == 2 * high).all()


@pytest.mark.parametrize("clients", [0, -1, 1.5, True, None, 2_000_001])
def test_a_number_of_clients_that_cannot_carry_the_noise_is_refused(clients):
    with pytest.raises(InvalidParameter, match="clients=.*unit: clients"):
        SkellamMechanism(variance=2.0).share(clients)
