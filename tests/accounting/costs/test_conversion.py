"""Conversions against the formulas in mpmath, and against the exact curves that they bound."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from ledgerwood.accounting.costs import conversion
from ledgerwood.errors import PrivacyError, UnsupportedEvent

ORDERS = np.array([1.0 + 1e-6, 1.01, 1.5, 2.0, 7.25, 64.0, 8192.0, 1e6])


@pytest.mark.parametrize("log_delta", [math.log(0.5), math.log(1e-5), math.log(1e-300)])
@pytest.mark.parametrize("scale", [1e-12, 1e-3, 0.5, 40.0])
def test_each_order_follows_proposition_12_rounded_up(log_delta, scale):
    divergences = scale * ORDERS
    epsilons = conversion.renyi_epsilons(ORDERS, divergences, log_delta)
    with mp.workdps(50):
        for order, rho, found in zip(ORDERS, divergences, epsilons, strict=True):
            a = mpf(float(order))
            terms = [mpf(float(rho)), mp.log1p(-1 / a), -mpf(log_delta) / (a - 1), -mp.log(a) / (a - 1)]
            assert found >= sum(terms)
            assert found <= sum(terms) + mpf(10) ** -14 * sum(map(abs, terms))


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-4, 20.0), st.floats(1e-3, 30.0))
def test_the_two_forms_are_inverse_at_every_order(scale, epsilon):
    orders = ORDERS[:-2]
    logs = conversion.renyi_log_deltas(orders, scale * orders, epsilon)
    for order, log_delta in zip(orders, logs, strict=True):
        one = np.array([order])
        assert conversion.renyi_epsilons(one, scale * one, log_delta)[0] == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.slow_after(1)  # a fine scan of all orders
@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("log_delta", [math.log(1e-3), math.log(1e-12), -690.0])
def test_the_best_order_is_the_best_of_a_fine_scan(mu, log_delta):
    best = conversion.least_over_orders(
        lambda a: 0.5 * mu * mu * a, lambda a, rho: conversion.renyi_epsilons(a, rho, log_delta)
    )
    scan = 1.0 + np.exp(np.linspace(math.log(1e-6), math.log(1e6), 2_000_001))
    least = conversion.renyi_epsilons(scan, 0.5 * mu * mu * scan, log_delta).min()
    assert best.value <= least * (1 + 1e-11)
    assert best.order == pytest.approx(
        scan[np.argmin(conversion.renyi_epsilons(scan, 0.5 * mu * mu * scan, log_delta))], rel=1e-3
    )


@settings(max_examples=60, deadline=None)
@given(st.floats(-3.0, 1.5).map(lambda x: 10.0**x), st.floats(-300.0, -1.0), st.floats(0.05, 3.0))
def test_the_search_ends_at_the_bottom_of_the_valley(mu, log_delta, times):
    for objective in (
        lambda a, rho: conversion.renyi_epsilons(a, rho, log_delta),
        lambda a, rho: conversion.renyi_log_deltas(a, rho, times * (mu + mu * mu)),
    ):
        best = conversion.least_over_orders(lambda a: 0.5 * mu * mu * a, objective)
        around = 1.0 + (best.order - 1.0) * np.exp(np.linspace(-0.3, 0.3, 2001))
        around = around[(around > conversion.LEAST_ORDER) & (around < conversion.LARGEST_ORDER)]
        assert best.value <= objective(around, 0.5 * mu * mu * around).min() + 1e-12 * abs(best.value)


def test_infinite_orders_are_passed_over_and_all_infinite_is_an_error():
    def curve(orders):
        return np.where(orders < 3.0, 0.1 * orders, np.inf)

    best = conversion.least_over_orders(curve, lambda a, rho: conversion.renyi_epsilons(a, rho, math.log(1e-6)))
    assert best.order < 3.0
    with pytest.raises(UnsupportedEvent):
        conversion.least_over_orders(lambda a: np.full(a.shape, np.inf), lambda a, rho: rho)
    with pytest.raises(PrivacyError):
        conversion.least_over_orders(lambda a: np.full(a.shape, np.nan), lambda a, rho: rho)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 50.0), st.floats(0.0, 1.0, exclude_max=True))
def test_pure_conversions_are_the_randomised_response_curve(pure, fraction):
    epsilon = fraction * pure
    with mp.workdps(50):
        e, t = mp.exp(mpf(pure)), mp.exp(mpf(epsilon))
        truth = (e - t) / (1 + e)
        log_found = conversion.pure_log_delta(pure, epsilon)
        if truth > 0:
            assert log_found >= mp.log(truth)
            assert log_found <= mp.log(truth) + mpf(10) ** -13 * (
                1 + abs(mp.log(truth)) + pure / max(pure - epsilon, 1e-300)
            )
    delta = math.exp(log_found)
    back = conversion.pure_epsilon_at(pure, delta)
    assert 0.0 <= back <= pure
    room = 1e-13 * (1.0 + pure) / max(-math.expm1(log_found), 1e-16)  # what one ulp of delta near 1 moves
    assert back == pytest.approx(epsilon, rel=1e-9, abs=1e-9 + room)


def test_pure_conversions_at_the_ends():
    assert conversion.pure_log_delta(0.5, 0.5) == -math.inf
    assert conversion.pure_epsilon_at(0.5, 0.0) == 0.5
    assert conversion.pure_epsilon_at(0.5, 0.4) == 0.0


@pytest.mark.parametrize("mu", [1e-8, 0.1, 1.0, 10.0])
def test_total_variation_is_covered(mu):
    truth = math.log(math.erf(mu / (2.0 * math.sqrt(2.0))))  # of N(0, 1) and N(mu, 1), whose divergence is mu^2 / 2
    assert truth <= conversion.log_total_variation(0.5 * mu * mu) <= 0.0


def test_no_divergence_means_no_total_variation():
    assert conversion.log_total_variation(0.0) == -math.inf


@given(st.floats(-745.0, 0.0))
def test_exp_up_is_never_below_and_never_zero(log_value):
    found = conversion.exp_up(log_value)
    with mp.workdps(40):
        assert mp.exp(mpf(log_value)) <= found <= 1.0
    assert conversion.exp_up(-1e6) > 0.0
    assert conversion.exp_up(-math.inf) == 0.0


@given(st.floats(1.0 + 1e-6, 1e6), st.floats(1e-6, 1e3), st.floats(-700.0, -1e-6))
def test_the_largest_divergence_of_an_order_is_never_above_the_truth(order, epsilon, log_delta):
    found = float(conversion.renyi_divergences(np.array([order]), epsilon, log_delta)[0])
    with mp.workdps(60):
        a, log_d = mpf(order), mpf(log_delta)
        parts = (mpf(epsilon), -mp.log1p(-1 / a), (log_d + mp.log(a)) / (a - 1))
        truth = sum(parts)
        assert found <= truth
        size = mpf(epsilon) + abs(parts[1]) + (abs(log_d) + mp.log(a)) / (a - 1)
        assert found >= truth - mpf("1e-14") * size
