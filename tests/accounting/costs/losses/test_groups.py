"""Grouped draws: each event between its two versions, and a plan of many between two plain ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import (
    Adjacency,
    BoundedRangeEvent,
    Composed,
    Direction,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    Repeated,
    price,
)
from ledgerwood.accounting.costs.losses import worst
from ledgerwood.errors import UnsupportedEvent

A = Adjacency.ADD_REMOVE


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


leaves = st.one_of(
    st.floats(0.3, 30.0).map(gaussian),
    st.floats(0.3, 30.0).map(lambda x: LaplaceEvent(noise_multiplier=x, adjacency=A)),
    st.floats(0.01, 5.0).map(lambda x: PureEvent(epsilon=x, adjacency=A)),
    st.floats(0.01, 5.0).map(lambda x: BoundedRangeEvent(epsilon=x, adjacency=A)),
)
draws = st.one_of(leaves, st.builds(lambda e, q: PoissonSampled(e, sampling_rate=q), leaves, st.floats(1e-3, 1.0)))


@settings(max_examples=60, deadline=None)
@given(draws, st.sampled_from([32, 512, 4096]))
def test_an_event_lies_between_its_two_versions(event, cells):
    t = np.array([0.0, 0.1, 0.7, 2.0])
    cheap, dear = worst._rounded(event, cells, up=False), worst._rounded(event, cells, up=True)
    assert type(cheap) is type(dear) is type(event)
    for direction in Direction:
        low, here, high = (e.log_profile(t, direction=direction) for e in (cheap, event, dear))
        room = 1e-11 * (1.0 + np.abs(np.nan_to_num(here, neginf=0.0)))
        assert np.all((low <= here + room) | (low == -np.inf))
        assert np.all((here <= high + room) | (here == -np.inf))
    assert worst._rounded(dear, cells, up=True) == dear
    assert worst._rounded(cheap, cells, up=False) == cheap


def test_few_draws_stay_as_they_are():
    event = Composed((gaussian(1.0), gaussian(2.0), Repeated(gaussian(1.0), count=3)))
    above, below = worst.parts(event)
    assert above is below
    assert dict(above) == {gaussian(1.0): 4, gaussian(2.0): 1}


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_a_plan_of_many_draws_lies_between_plain_ones():
    def plan(multipliers):
        return Composed(tuple(PoissonSampled(gaussian(m), sampling_rate=0.05) for m in multipliers))

    many = price(plan(1.0 + i / 3000.0 for i in range(300)))
    dear, cheap = (price(Repeated(PoissonSampled(gaussian(m), sampling_rate=0.05), count=300)) for m in (1.0, 1.1))
    quote = many.quote(1e-5)
    assert quote.method == "pld"
    low, high = many.epsilon_interval(1e-5)
    assert cheap.epsilon_interval(1e-5)[0] <= low <= high <= dear.epsilon(1e-5)
    assert high <= low * 1.02


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_draws_that_are_too_different_for_a_grid_are_grouped_by_their_profiles():
    event = Composed(
        tuple(gaussian(1.5**k) for k in range(40)) + tuple(PureEvent(epsilon=1.5**-k, adjacency=A) for k in range(40))
    )
    above, below = worst.parts(event)
    assert len(above) == 64
    assert sum(count for _, count in above) == 80
    assert set(below) == set(event.draws())  # few enough to be composed as they are
    assert math.isfinite(price(event).epsilon(1e-5))


@pytest.mark.slow  # composes the losses of many plans, beside their closed forms
def test_more_different_draws_than_can_be_compared_are_refused():
    rng = np.random.default_rng(0)
    event = Composed(
        tuple(
            PoissonSampled(gaussian(float(m)), sampling_rate=float(q))
            for m, q in zip(np.exp(rng.uniform(-2, 6, 3000)), np.exp(rng.uniform(-20, -1, 3000)), strict=True)
        )
    )
    with pytest.raises(UnsupportedEvent, match="3000 distinct draws, too many"):
        worst.parts(event)
