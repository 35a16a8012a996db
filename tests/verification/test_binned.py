"""Binned and pooled pairs: never above the pair that they were made of, and close to it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    ProfileEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from ledgerwood.accounting.events.serial import to_json
from ledgerwood.verification import _binned, _losses, _pairs
from ledgerwood.verification._atoms import mp, mpf

A = Adjacency.ADD_REMOVE


def leaves():
    multipliers = st.floats(-1.5, 1.5).map(lambda x: 10.0**x)
    scales = st.floats(-0.5, 1.5).map(lambda x: 10.0**x)
    shifts = st.integers(1, 5)
    return st.one_of(
        multipliers.map(lambda s: GaussianEvent(noise_multiplier=s, adjacency=A)),
        multipliers.map(lambda s: LaplaceEvent(noise_multiplier=s, adjacency=A)),
        multipliers.map(lambda s: PureEvent(epsilon=1 / s, adjacency=A)),
        st.builds(lambda s, d: DiscreteLaplaceEvent(scale=s, sensitivity=d, adjacency=A), scales, shifts),
        st.builds(lambda s, d: DiscreteGaussianEvent(scale=s, sensitivity=d, adjacency=A), scales, shifts),
        multipliers.map(lambda s: ApproximateEvent(epsilon=1 / s, delta=1e-3, adjacency=A)),
        multipliers.map(lambda s: ProfileEvent(epsilons=(0.0, 1 / s, 2 / s), deltas=(0.4, 0.1, 0.02), adjacency=A)),
    )


def events():
    rates = st.floats(-4.0, 0.0).map(lambda x: 10.0**x)
    single = st.one_of(leaves(), st.builds(lambda e, q: PoissonSampled(e, sampling_rate=q), leaves(), rates))
    return st.one_of(
        single, st.builds(lambda a, b: Parallel((a, b), probabilities=(0.5, 0.25)), single, single), single
    )


def profile(loss, mass, lost, epsilon):
    return lost + float(mass @ np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0))


@settings(max_examples=80, deadline=None)
@given(events(), st.floats(-3.0, 1.0).map(lambda x: 10.0**x), st.booleans())
def test_binning_and_pooling_only_lower_the_profile(event, epsilon, remove):
    with mp.workdps(40):
        node = _pairs.parse(to_json(event))
        x = mp.exp(mpf(epsilon) * (1 - mpf(10) ** -13))  # losses are floats
        exact = float(node.positive_part(mpf(1), -x) if remove else node.positive_part(-x, mpf(1)))
        pair = _binned.binned(node, -60.0)
    draw = _losses._directed(pair, 1, -60.0, remove)
    spread = math.sqrt(float(np.exp(draw.log_mass) @ np.minimum(draw.loss**2, 4.0)))
    found = profile(draw.loss, np.exp(draw.log_mass), draw.lost, epsilon)
    assert found <= exact * (1 + 1e-11) + 1e-20
    assert found >= exact * (1 - 1e-2) - 1e-4 * spread - 1e-12
    laid = _losses._lay(draw, 0.01 * spread)
    pooled = profile(laid.offset + 0.01 * spread * laid.index, np.exp(laid.log_mass), draw.lost, epsilon)
    assert pooled <= found * (1 + 1e-10) + 1e-18


@pytest.mark.parametrize("categories", [2, 3, 10])
def test_a_randomised_response_keeps_its_atoms(categories):
    event = RandomizedResponseEvent(epsilon=0.7, categories=categories, adjacency=Adjacency.REPLACE_ONE)
    pair = _binned.binned(_pairs.parse(to_json(event)), -40.0)
    heavy = math.exp(0.7) / (math.exp(0.7) + categories - 1)
    assert np.exp(pair.log_p[pair.loss > 0]) == pytest.approx([heavy], rel=1e-14)
    assert np.exp(pair.log_p).sum() == pytest.approx(1.0, rel=1e-14)
    assert np.exp(pair.log_q).sum() == pytest.approx(1.0, rel=1e-14)


def test_what_no_float_holds_is_left_out():
    for event in (
        GaussianEvent(noise_multiplier=1e-9, adjacency=A),
        LaplaceEvent(noise_multiplier=1e-9, adjacency=A),
        DiscreteLaplaceEvent(scale=1e12, sensitivity=1 << 18, adjacency=A),
    ):
        pair = _binned.binned(_pairs.parse(to_json(event)), -40.0)
        assert pair is None or np.isfinite(pair.log_q).all()
