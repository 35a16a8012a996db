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
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    FixedSizeSampled,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    ProfileEvent,
    PureEvent,
    RandomizedResponseEvent,
    Repeated,
    ReplaceOneSampled,
    SkellamEvent,
    StaircaseEvent,
    TruncatedLaplaceEvent,
    price,
)
from ledgerwood.accounting.costs.losses import joint
from ledgerwood.accounting.events import to_json
from ledgerwood.errors import UnsupportedEvent
from ledgerwood.verification.ledgers import atoms as _atoms
from ledgerwood.verification.ledgers import pairs as _pairs

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
    st.builds(
        lambda x, w: StaircaseEvent(epsilon=x, inner_width=w, adjacency=A), st.floats(0.01, 5.0), st.floats(0.0, 1.0)
    ),
    st.builds(
        lambda x, b: TruncatedLaplaceEvent(noise_multiplier=x, bound=b, adjacency=A),
        st.floats(0.1, 30.0), st.floats(0.51, 60.0),
    ),
)  # fmt: skip
groups = st.builds(lambda a, b, p: Parallel((a, b), probabilities=(p, 1.0 - p)), leaves, leaves, st.floats(0.1, 0.9))
draws = st.one_of(leaves, groups, st.builds(lambda a, b: Parallel.worst((a, b)), leaves, leaves))
events = st.one_of(draws, st.builds(lambda e, q: PoissonSampled(e, sampling_rate=q), draws, st.floats(1e-6, 1.0)))


@settings(max_examples=80, deadline=None)
@given(events, st.sampled_from(list(Direction)))
def test_it_lies_below_the_events_profile_and_next_to_it(event, direction):
    below, above = joint.log_profile(event, T, direction), event.log_profile(T, direction=direction)
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
            assert joint.log_profile(event, np.array([t]), Direction.REMOVE)[0] <= remove
            left = 1 - mp.exp(t) * (1 - q)
            add = mp.log(left * profile(mp.log(mp.exp(t) * q / left))) if left > 0 else -mp.inf
            assert joint.log_profile(event, np.array([t]), Direction.ADD)[0] <= add


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
                found = joint.log_profile(event, np.array([t]), Direction.REMOVE)[0]
                assert mp.log(truth) - mpf("1e-12") <= found <= mp.log(truth)


R = Adjacency.REPLACE_ONE
FIXED = FixedSizeSampled(GaussianEvent(noise_multiplier=0.7, adjacency=R), sample_size=3, population=700)
CUT = TruncatedLaplaceEvent(noise_multiplier=2.0, bound=7.0, adjacency=A)
NEAR = TruncatedLaplaceEvent(noise_multiplier=0.03, bound=0.8, adjacency=A)
WIDE = TruncatedLaplaceEvent(noise_multiplier=90.0, bound=5000.0, adjacency=A)


@pytest.mark.slow_after(9)  # composes the losses of many plans, beside their closed forms
@pytest.mark.parametrize(
    "event",
    [
        StaircaseEvent(epsilon=1.3, inner_width=0.3, adjacency=A),
        StaircaseEvent(epsilon=4.0, inner_width=0.9, adjacency=A),
        *(CUT, NEAR, WIDE, PoissonSampled(CUT, sampling_rate=0.01)),
        *(
            ATOMS := (
                DiscreteLaplaceEvent(scale=1.0, sensitivity=1, adjacency=A),
                DiscreteLaplaceEvent(scale=13.7, sensitivity=30, adjacency=A),
                DiscreteGaussianEvent(scale=0.4, sensitivity=1, adjacency=A),
                DiscreteGaussianEvent(scale=9.3, sensitivity=7, adjacency=A),
                SkellamEvent(variance=0.02, sensitivity=1, adjacency=A),
                SkellamEvent(variance=41.0, sensitivity=5, adjacency=A),
                ProfileEvent(epsilons=(0.0, 0.4, 1.1, 2.0), deltas=(0.3, 0.07, 1e-5, 0.0), adjacency=A),
                ProfileEvent(epsilons=(0.2, 0.3, 1.1), deltas=(0.3, 0.29, 1e-5), adjacency=A),
            )
        ),
        *(PoissonSampled(event, sampling_rate=0.03) for event in ATOMS),
        FIXED,
        FixedSizeSampled(LaplaceEvent(noise_multiplier=0.5, adjacency=R), sample_size=9, population=10),
    ],
)
def test_it_lies_below_the_verifiers_profile_and_next_to_it(event):
    """By other code, in 50 digits of a context of its own."""
    node, other = _pairs.parse(to_json(event)), _atoms.mp
    with other.workdps(50):
        for t in [*T.tolist(), 0.0199999, 4.99, 19.9]:
            truth = _pairs.hockey_stick(node, other.mpf(t))
            found = max(joint.log_profile(event, np.array([t]), d)[0] for d in Direction)
            assert other.exp(other.mpf(found)) <= truth
            assert other.exp(other.mpf(found)) >= truth * (1 - other.mpf(10) ** -9) - other.mpf(10) ** -13


def test_composed_batches_have_both_ends():
    low, high = price(Repeated(FIXED, count=2000)).epsilon_interval(1e-6)
    assert 0.0 < high - low <= max(1e-4, 1e-3 * high)


@pytest.mark.parametrize(("count", "delta"), [(100, 1e-5), (40, 1e-3), (1000, 0.5), (12, 1e-30)])
def test_composed_whole_numbers_enclose_a_binomial_sum(count, delta):
    """At scale 1 and sensitivity 1 every loss is 1 or -1."""
    event = Repeated(DiscreteLaplaceEvent(scale=1.0, sensitivity=1, adjacency=A), count=count)
    low, high = price(event).epsilon_interval(delta)
    with mp.workdps(50):
        up = 1 / (1 + mp.exp(-1))

        def exact(epsilon):
            terms = ((mp.binomial(count, k), 2 * k - count, k) for k in range(count + 1) if 2 * k - count > epsilon)
            return mp.fsum(n * up**k * (1 - up) ** (count - k) * -mp.expm1(epsilon - loss) for n, loss, k in terms)

        assert exact(low) >= delta >= exact(high)
    assert high - low <= max(1e-4, 1e-3 * high)


def test_it_refuses_what_is_not_proven():
    present = GaussianEvent(noise_multiplier=1.0, adjacency=A)
    event = ReplaceOneSampled(GaussianEvent(noise_multiplier=0.5, adjacency=R), add_remove=present, sampling_rate=0.1)
    with pytest.raises(UnsupportedEvent, match="ReplaceOneSampled"):
        joint.log_profile(event, T, Direction.REMOVE)


def test_probabilities_a_little_above_one_leave_the_ends_in_order():
    loud = PureEvent(epsilon=80.0, adjacency=Adjacency.ADD_REMOVE)
    groups = Parallel((loud, loud), probabilities=(0.5, 0.5 + 9e-10))
    at = np.array([0.0, 1.0, 79.0])
    low = joint.log_profile(groups, at, Direction.REMOVE)
    assert np.all(low < groups.log_profile(at, direction=Direction.REMOVE))
    assert np.all(low <= 0.0)
