"""Profiles from below: never above the truth, and next to the events' own, which are never below it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    BoundedRangeEvent,
    Direction,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PureEvent,
    RandomizedResponseEvent,
    Repeated,
)
from ledgerwood.accounting.losses import lower
from ledgerwood.errors import UnsupportedEvent

A = Adjacency.ADD_REMOVE
T = np.array([0.0, 1e-6, 0.013, 0.4, 1.1, 3.0])


def gaussian(x):
    return GaussianEvent(noise_multiplier=x, adjacency=A)


leaves = st.one_of(
    st.floats(0.1, 30.0).map(gaussian),
    st.floats(0.1, 30.0).map(lambda x: LaplaceEvent(noise_multiplier=x, adjacency=A)),
    st.floats(0.01, 5.0).map(lambda x: PureEvent(epsilon=x, adjacency=A)),
    st.floats(0.01, 5.0).map(lambda x: BoundedRangeEvent(epsilon=x, adjacency=A)),
    st.floats(0.01, 5.0).map(lambda x: ApproximateEvent(epsilon=x, delta=1e-7, adjacency=A)),
    st.builds(lambda x, n: Repeated(gaussian(x), count=n), st.floats(0.5, 30.0), st.integers(1, 9)),
)
groups = st.builds(lambda a, b, p: Parallel((a, b), probabilities=(p, 1.0 - p)), leaves, leaves, st.floats(0.1, 0.9))
draws = st.one_of(leaves, groups, st.builds(lambda a, b: Parallel.worst((a, b)), leaves, leaves))
events = st.one_of(draws, st.builds(lambda e, q: PoissonSampled(e, sampling_rate=q), draws, st.floats(1e-6, 1.0)))


@settings(max_examples=80, deadline=None)
@given(events, st.sampled_from(list(Direction)))
def test_it_lies_below_the_events_profile_and_next_to_it(event, direction):
    below, above = lower.log_profile(event, T, direction), event.log_profile(T, direction=direction)
    assert np.all((below <= above) | (below == -np.inf))
    inside = above > -30.0
    # relative, or of the whole mass near the end of a support
    assert np.all(np.exp(above[inside]) - np.exp(below[inside]) <= 1e-9 * np.exp(above[inside]) + 1e-13)


@pytest.mark.parametrize("multiplier", [0.05, 1.0, 40.0])
@pytest.mark.parametrize("rate", [1.0, 0.3, 1e-4])
def test_it_lies_below_the_gaussian_closed_form(multiplier, rate):
    event = PoissonSampled(gaussian(multiplier), sampling_rate=rate)
    with mp.workdps(60):
        mu, q = 1 / mpf(multiplier), mpf(rate)

        def profile(epsilon):
            return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)

        for t in T.tolist():
            remove = mp.log(q * profile(mp.log1p(mp.expm1(t) / q)))
            assert lower.log_profile(event, np.array([t]), Direction.REMOVE)[0] <= remove
            left = 1 - mp.exp(t) * (1 - q)
            add = mp.log(left * profile(mp.log(mp.exp(t) * q / left))) if left > 0 else -mp.inf
            assert lower.log_profile(event, np.array([t]), Direction.ADD)[0] <= add


@pytest.mark.parametrize("scale", [0.3, 1.7, 20.0])
def test_it_lies_below_the_laplace_and_response_closed_forms(scale):
    laplace, pure = LaplaceEvent(noise_multiplier=scale, adjacency=A), PureEvent(epsilon=scale, adjacency=A)
    response = RandomizedResponseEvent(epsilon=scale, categories=5, adjacency=Adjacency.REPLACE_ONE)
    with mp.workdps(40):
        for t in (x for x in T.tolist() if x < min(scale, 1 / scale)):
            exact = [
                -mp.expm1((t - 1 / mpf(scale)) / 2),
                (mp.exp(scale) - mp.exp(t)) / (1 + mp.exp(scale)),
                (mp.exp(scale) - mp.exp(t)) / (4 + mp.exp(scale)),
            ]
            for event, truth in zip((laplace, pure, response), exact, strict=True):
                found = lower.log_profile(event, np.array([t]), Direction.REMOVE)[0]
                assert mp.log(truth) - mpf("1e-12") <= found <= mp.log(truth)


def test_it_refuses_what_is_not_proven():
    with pytest.raises(UnsupportedEvent, match="DiscreteLaplaceEvent"):
        lower.log_profile(DiscreteLaplaceEvent(scale=1.0, sensitivity=1, adjacency=A), T, Direction.REMOVE)
