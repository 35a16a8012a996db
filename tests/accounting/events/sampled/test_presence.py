"""A replaced row loses no more than two presences allow: the bound against enumerated laws, and what is refused."""

import math
import time

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    GDPEvent,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    Repeated,
    ReplaceOneSampled,
    SkellamEvent,
    ZeroConcentratedEvent,
    grouped,
)
from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.costs.losses import plans
from ledgerwood.accounting.events import from_json, to_json
from ledgerwood.accounting.events.sampled import fixed_size
from ledgerwood.errors import UnsupportedEvent

A, R, Z = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT
T = np.linspace(0.0, 3.0, 31)


def hockey(p, q, t):
    return np.maximum(p - np.exp(np.asarray(t))[..., None] * q, 0.0).sum(axis=-1)


class Row:
    """What is known of a row's presence: the profiles of laws with it and without it, over several rows."""

    def __init__(self, rows, without):
        self.rows, self.without = rows, without

    def log_profile(self, t, *, direction):
        found = [
            hockey(*((p, self.without) if direction is Direction.REMOVE else (self.without, p)), t) for p in self.rows
        ]
        with np.errstate(divide="ignore"):
            return np.log(np.maximum.reduce(found))


def allowed(present, t, reach=40.0):
    return np.exp(fixed_size.two_presences(present, t, reach))


@pytest.mark.parametrize("seed", range(12))
def test_no_enumerated_pair_of_rows_exceeds_what_their_presences_allow(seed):
    rng = np.random.default_rng(seed)
    old, new, without = rng.dirichlet(np.full(7, 0.6), size=3)
    row = Row([old, new], without)
    assert (hockey(old, new, T) <= allowed(row, T) * (1.0 + 1e-9) + 1e-15).all()
    assert (hockey(new, old, T) <= allowed(row, T) * (1.0 + 1e-9) + 1e-15).all()


@pytest.mark.parametrize("seed", range(6))
def test_rows_on_opposite_sides_attain_the_bound_at_every_threshold(seed):
    """One row makes an output the likelier the further left it lies, the other the further right."""
    rng = np.random.default_rng(seed)
    left = np.sort(rng.gamma(0.7, size=9))[::-1]
    left /= left.sum()
    without = np.full(9, 1.0 / 9.0)
    row = Row([left, left[::-1]], without)
    assert allowed(row, T) == pytest.approx(hockey(left, left[::-1], T), rel=1e-7, abs=1e-12)


@pytest.mark.slow  # the truth by integrals or enumeration
def test_the_bound_of_an_asymmetric_presence_is_the_least_over_a_dense_grid():
    present = PoissonSampled(GaussianEvent(noise_multiplier=0.7, adjacency=A), sampling_rate=0.2)

    def everywhere(t, ahead, back):
        h = np.exp(present.log_profile(np.maximum(t, 0.0), direction=ahead))
        other = np.exp(present.log_profile(np.maximum(-t, 0.0), direction=back))
        return np.where(t >= 0.0, h, 1.0 - np.exp(t) + np.exp(t) * other)

    s = np.linspace(-1.0, 3.0, 200_001)[None, :]
    t = np.array([0.0, 0.1, 0.5, 1.0, 2.0])
    sums = everywhere(s, Direction.REMOVE, Direction.ADD) + np.exp(s) * everywhere(
        t[:, None] - s, Direction.ADD, Direction.REMOVE
    )
    assert np.exp(fixed_size.two_presences(present, t, 15.0)) == pytest.approx(sums.min(axis=1), rel=1e-5)


def gaussian(noise, adjacency):
    return GaussianEvent(noise_multiplier=noise, adjacency=adjacency)


def laplace(noise, adjacency):
    return LaplaceEvent(noise_multiplier=noise, adjacency=adjacency)


def pure(epsilon, adjacency):
    return PureEvent(epsilon=epsilon, adjacency=adjacency)


def sampled(event, present):
    return ReplaceOneSampled(event, add_remove=present, sampling_rate=0.01)


POSSIBLE = {
    "gaussian": (gaussian(1.0, R), gaussian(2.0, A)),
    "zero-out": (gaussian(1.0, R), gaussian(2.0, Z)),
    "gaussian, little noise": (gaussian(0.01, R), gaussian(0.02, A)),
    "gaussian, much noise": (gaussian(1e6, R), gaussian(2e6, A)),
    "stated mu": (GDPEvent(mu=1.0, adjacency=R), GDPEvent(mu=0.5, adjacency=A)),
    "laplace": (laplace(1.0, R), laplace(2.0, A)),
    "pure": (pure(1.0, R), pure(0.5, A)),
    "pure stated for laplace": (pure(1.0, R), laplace(2.0, A)),
    "bounded range": (BoundedRangeEvent(epsilon=1.0, adjacency=R), BoundedRangeEvent(epsilon=0.5, adjacency=A)),
    "approximate": (
        ApproximateEvent(epsilon=1.0, delta=1e-5 * (1.0 + math.exp(0.5)), adjacency=R),
        ApproximateEvent(epsilon=0.5, delta=1e-5, adjacency=A),
    ),
    "concentrated": (ZeroConcentratedEvent(rho=0.4, adjacency=R), ZeroConcentratedEvent(rho=0.1, adjacency=A)),
    "discrete gaussian": (
        DiscreteGaussianEvent(scale=5.0, sensitivity=2, adjacency=R),
        DiscreteGaussianEvent(scale=5.0, sensitivity=1, adjacency=A),
    ),
    "discrete laplace": (
        DiscreteLaplaceEvent(scale=5.0, sensitivity=2, adjacency=R),
        DiscreteLaplaceEvent(scale=5.0, sensitivity=1, adjacency=A),
    ),
    "skellam": (
        SkellamEvent(variance=50.0, sensitivity=2, adjacency=R),
        SkellamEvent(variance=50.0, sensitivity=1, adjacency=A),
    ),
    "less than two": (gaussian(1.0, R), gaussian(1.0, A)),
    "a count": (gaussian(50.0, R), gaussian(1.0, A)),
    "parts": (Composed((gaussian(1.0, R), pure(1.0, R))), Composed((gaussian(2.0, A), pure(0.5, A)))),
    "parts in another order": (
        Composed((gaussian(1.0, R), laplace(1.0, R))),
        Composed((laplace(2.0, A), gaussian(2.0, A))),
    ),
    "repeated": (Repeated(laplace(1.0, R), count=9), Repeated(laplace(2.0, A), count=9)),
    "a sample of a sample": (
        sampled(gaussian(1.0, R), gaussian(2.0, A)),
        PoissonSampled(gaussian(2.0, A), sampling_rate=0.01),
    ),
}
IMPOSSIBLE = {
    "gaussian": (gaussian(1.0, R), gaussian(2.01, A)),
    "gaussian, by far": (gaussian(1.0, R), gaussian(1000.0, A)),
    "stated mu": (GDPEvent(mu=1.0, adjacency=R), GDPEvent(mu=0.49, adjacency=A)),
    "laplace": (laplace(1.0, R), laplace(2.01, A)),
    "pure": (pure(1.0, R), pure(0.49, A)),
    "unbounded beside bounded": (gaussian(1.0, R), pure(50.0, A)),
    "more than a pure claim's profile": (laplace(1.0, R), pure(0.45, A)),
    "the same largest loss, more often": (pure(1.0, R), gaussian(4.0, A)),
    "laplace beside gaussian": (laplace(1.0, R), gaussian(2.0, A)),
    "bounded range": (BoundedRangeEvent(epsilon=1.1, adjacency=R), BoundedRangeEvent(epsilon=0.5, adjacency=A)),
    "approximate": (
        ApproximateEvent(epsilon=1.0, delta=1e-4, adjacency=R),
        ApproximateEvent(epsilon=0.5, delta=1e-5, adjacency=A),
    ),
    "concentrated": (ZeroConcentratedEvent(rho=0.41, adjacency=R), ZeroConcentratedEvent(rho=0.1, adjacency=A)),
    "discrete gaussian": (
        DiscreteGaussianEvent(scale=5.0, sensitivity=3, adjacency=R),
        DiscreteGaussianEvent(scale=5.0, sensitivity=1, adjacency=A),
    ),
    "one part": (Composed((gaussian(1.0, R), laplace(1.0, R))), Composed((laplace(2.0, A), gaussian(2.5, A)))),
    "fewer repetitions": (Repeated(laplace(1.0, R), count=10), Repeated(laplace(2.0, A), count=9)),
    "one deep part": (
        Repeated(Composed((gaussian(1.0, R), pure(1.0, R))), count=5),
        Repeated(Composed((gaussian(9.0, A), pure(0.5, A))), count=5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", POSSIBLE)
def test_what_two_presences_allow_is_accepted(name):
    event, present = POSSIBLE[name]
    assert from_json(to_json(sampled(event, present))) == sampled(event, present)


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_two_presences_do_not_allow_is_refused(name):
    """Once, a presence that was stated too small made the sample cheap."""
    event, present = IMPOSSIBLE[name]
    with pytest.raises(UnsupportedEvent, match="cannot lose more than adding one row and removing another"):
        sampled(event, present)


def test_a_record_that_cannot_be_is_refused_too():
    record = to_json(sampled(gaussian(1.0, R), gaussian(2.0, A)))
    record["add_remove"]["noise_multiplier"] = 20.0
    with pytest.raises(UnsupportedEvent, match=r"its mu is 1, two presences have 0\.1"):
        from_json(record)


def test_the_library_s_own_groups_are_accepted():
    for present in (gaussian(3.0, A), laplace(3.0, A), pure(0.2, A), Composed((pure(0.2, A), gaussian(3.0, A)))):
        pair = grouped(present, size=2)
        event = type(pair)(epsilon=pair.epsilon, adjacency=R) if isinstance(pair, PureEvent) else None
        if isinstance(pair, GaussianEvent | LaplaceEvent):
            event = type(pair)(noise_multiplier=pair.noise_multiplier, adjacency=R)
        if isinstance(pair, Composed):
            event = Composed((pure(0.4, R), gaussian(1.5, R)))
        assert sampled(event, present).event == event


def test_a_composition_inside_a_sample_is_priced_as_before():
    """Pricing puts composed bounds in the place of the parts; those are not asked about again."""
    event = sampled(*POSSIBLE["parts"])
    assert plans.plan(Repeated(event, count=10)).parts[0][1] == 10
    assert lw.price(Repeated(event, count=10)).epsilon(1e-5) > 0.0


def test_the_question_is_quick():
    begin = time.process_time()
    for k in range(200):
        sampled(gaussian(1.0 + k / 1000.0, R), gaussian(2.0 + k / 500.0, A))
    assert time.process_time() - begin < 1.0
