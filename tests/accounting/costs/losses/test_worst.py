"""Many kinds behind the largest of their profiles: it dominates each, and costs little more than the truth."""

import math

import numpy as np
import pytest

from ledgerwood.accounting import (
    Adjacency,
    Composed,
    Direction,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    ZeroConcentratedEvent,
    price,
)
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.costs.losses import plans, worst
from ledgerwood.accounting.costs.losses import worst as groups
from ledgerwood.errors import UnsupportedEvent

A = Adjacency.ADD_REMOVE
RNG = np.random.default_rng(5)


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


MIXED = (
    *(LaplaceEvent(noise_multiplier=float(m), adjacency=A) for m in RNG.uniform(20.0, 300.0, 30)),
    *(
        PoissonSampled(LaplaceEvent(noise_multiplier=float(m), adjacency=A), sampling_rate=float(q))
        for m, q in zip(RNG.uniform(0.5, 3.0, 30), np.exp(RNG.uniform(-7.0, -4.0, 30)), strict=True)
    ),
    *(PureEvent(epsilon=float(e), adjacency=A) for e in RNG.uniform(1e-3, 0.05, 30)),
    gaussian(2.0),
)


def test_the_worst_of_several_is_the_largest_profile():
    members = (MIXED[0], MIXED[35], MIXED[70], MIXED[-1])
    one, t = worst.Worst(members), np.array([0.0, 1e-3, 0.02, 0.3, 1.0, 4.0])
    for direction in Direction:
        profiles = [event.log_profile(t, direction=direction) for event in members]
        np.testing.assert_array_equal(one.log_profile(t, direction=direction), np.max(profiles, axis=0))
    assert one.pure_epsilon() == math.inf
    assert worst.Worst(members[:2]).pure_epsilon() == max(event.pure_epsilon() for event in members[:2])
    assert not one.symmetric()
    assert worst.Worst((MIXED[0], MIXED[-1])).symmetric()


@pytest.mark.slow_after(2)  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize("most", [1, 5, 16, 90])
def test_every_draw_stands_behind_exactly_one_of_few(most):
    parts = tuple((event, 1 + k % 3) for k, event in enumerate(MIXED))
    found = worst.grouped(parts, most)
    assert len(found) == most
    members = [event.events if isinstance(event, worst.Worst) else (event,) for event, _ in found]
    assert sorted(map(repr, (event for group in members for event in group))) == sorted(map(repr, MIXED))
    counts = dict(parts)
    assert [count for _, count in found] == [sum(counts[event] for event in group) for group in members]


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
@pytest.mark.parametrize("most", [4, 16])
def test_grouped_gaussians_cost_no_less_than_their_closed_form(most, delta):
    multipliers = np.exp(np.random.default_rng(1).uniform(1.5, 4.0, 60))
    exact = gdp.log_delta(math.sqrt(float((multipliers**-2).sum())), np.array([1.0]))  # of the whole, at epsilon 1
    parts = worst.grouped(tuple((gaussian(float(m)), 1) for m in multipliers), most)
    found = plans.LossPlan(parts, parts, True)
    assert plans.log_delta(found, 1.0, above=True) >= exact[0]
    above = plans.epsilon(found, math.log(delta), above=True)
    truth = price(Composed(tuple(gaussian(float(m)) for m in multipliers)), method="profile").epsilon(delta)
    assert truth <= above <= truth * (1.3 if most == 4 else 1.06)


def test_the_costliest_draws_are_some_of_the_plan():
    parts = tuple((event, 1) for event in MIXED)
    kept = worst.costliest(parts, 10)
    assert len(set(kept)) == 10
    assert set(kept) < set(parts)
    assert (gaussian(2.0), 1) in kept


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_a_plan_of_many_kinds_in_several_parameters_is_nearly_what_it_costs():
    priced = price(Composed(MIXED))
    quote = priced.quote(1e-5)
    assert quote.method == "pld"
    assert quote.epsilon < 0.95 * price(Composed(MIXED), method="renyi").epsilon(1e-5)
    low, high = priced.epsilon_interval(1e-5)
    assert 0.0 < low <= high <= 1.02 * low
    assert high <= quote.epsilon


def test_kinds_without_a_profile_are_refused_where_they_are_too_many():
    with pytest.raises(UnsupportedEvent, match="65 distinct draws have no profile"):
        groups.parts(Composed(tuple(ZeroConcentratedEvent(rho=0.1 + k, adjacency=A) for k in range(65))))
