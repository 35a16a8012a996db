"""Costs in units against the exact divergence of the row's own event; never below it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.accounting.individuals import FULL, LIMIT_SLACK, POINTS, ROUNDING, row_costs
from ledgerwood.errors import UnsupportedEvent

A = lw.Adjacency.ADD_REMOVE


def read(costs, share):
    """As the kernel reads it, before the rest is cut off."""
    place = min(share, 1.0) * POINTS
    point = int(place)
    return costs[point] + (costs[point + 1] - costs[point]) * (place - point)


@given(st.floats(0.3, 300.0), st.floats(0.01, 5.0), st.floats(1e-9, 1.0))
def test_a_full_batch_costs_its_mu_squared(multiplier, mu, share):
    event = lw.FilteredEvent(
        lw.GaussianEvent(noise_multiplier=multiplier, adjacency=A), limit=lw.GDPEvent(mu=mu, adjacency=A)
    )
    exact = Fraction(share) / (Fraction(multiplier) * Fraction(mu)) ** 2 * FULL
    found = read(row_costs(event), share)
    assert exact <= int(found)
    assert found <= float(exact) * (1 + 1e-12) + 2.0 + ROUNDING


def test_what_a_caller_does_with_the_costs_reaches_nobody_else():
    event = lw.FilteredEvent(
        lw.GaussianEvent(noise_multiplier=3.0, adjacency=A), limit=lw.GDPEvent(mu=1.0, adjacency=A)
    )
    first = row_costs(event)
    kept = first.copy()
    first[:] = 0.0
    assert np.array_equal(row_costs(event), kept)


@pytest.mark.slow  # prices many plans
@settings(max_examples=25)
@given(st.floats(0.5, 100.0), st.floats(1e-5, 1.0), st.floats(1.05, 200.0), st.floats(1e-4, 1.0), st.floats(1e-3, 2.0))
def test_a_sampled_round_costs_the_rows_own_divergence(multiplier, rate, order, share, divergence):
    round_ = lw.PoissonSampled(lw.GaussianEvent(noise_multiplier=multiplier, adjacency=A), sampling_rate=rate)
    limit = lw.RenyiEvent(orders=(order,), divergences=(divergence,), adjacency=A)
    found = read(row_costs(lw.FilteredEvent(round_, limit=limit)), share)
    own = lw.PoissonSampled(
        lw.GaussianEvent(noise_multiplier=multiplier / math.sqrt(share), adjacency=A), sampling_rate=rate
    )
    exact = float(own.renyi([order])[0]) / divergence * FULL
    # `renyi` itself is up to 1e-12 above the truth.
    assert int(found) >= exact * (1 - 2e-12)


@pytest.mark.slow_after(1)  # prices many plans
@pytest.mark.parametrize(("multiplier", "rate", "order"), [(5.0, 0.1, 8.0), (1.0, 0.01, 20.0), (20.0, 1.0, 5.0)])
def test_chords_cost_little(multiplier, rate, order):
    round_ = lw.PoissonSampled(lw.GaussianEvent(noise_multiplier=multiplier, adjacency=A), sampling_rate=rate)
    limit = lw.RenyiEvent(orders=(order,), divergences=(0.5,), adjacency=A)
    costs = row_costs(lw.FilteredEvent(round_, limit=limit))
    for share in np.random.default_rng(0).uniform(0.01, 1.0, 20).tolist():
        noise = multiplier / math.sqrt(share)
        own = lw.PoissonSampled(lw.GaussianEvent(noise_multiplier=noise, adjacency=A), sampling_rate=rate)
        assert read(costs, share) <= float(own.renyi([order])[0]) / 0.5 * FULL * (1 + 1e-3)


@pytest.mark.parametrize("rounds", [1, 2, 3, 7, 512, 10_000, 131_072])
def test_a_limit_of_some_rounds_has_room_for_exactly_so_many_of_the_dearest(rounds):
    one = lw.GaussianEvent(noise_multiplier=30.0, adjacency=A)
    mu = one.mu() * math.sqrt(rounds) * (1.0 + LIMIT_SLACK)
    units = int(row_costs(lw.FilteredEvent(one, limit=lw.GDPEvent(mu=mu, adjacency=A)))[POINTS])
    assert FULL // units == rounds


@pytest.mark.slow  # prices many plans
def test_a_round_that_costs_more_than_any_limit_stays_beyond_it():
    one = lw.GaussianEvent(noise_multiplier=1e-3, adjacency=A)
    limit = lw.RenyiEvent(orders=(300.0,), divergences=(1e-90,), adjacency=A)
    costs = row_costs(lw.FilteredEvent(lw.PoissonSampled(one, sampling_rate=1e-3), limit=limit))
    assert np.isfinite(costs).all()
    assert read(costs, 1e-6) > FULL


@pytest.mark.parametrize(("multiplier", "mu"), [(1e-90, 1e-90), (1e-60, 1e-90)])
def test_a_round_of_more_limits_than_a_table_holds_is_refused(multiplier, mu):
    one = lw.GaussianEvent(noise_multiplier=multiplier, adjacency=A)
    with pytest.raises(UnsupportedEvent, match=r"row 1e\+290 times its limit; at most 1e280 times"):
        row_costs(lw.FilteredEvent(one, limit=lw.GDPEvent(mu=mu, adjacency=A)))
