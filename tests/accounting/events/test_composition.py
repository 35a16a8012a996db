import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import (
    BoundedRangeEvent,
    Composed,
    Event,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PureEvent,
    Repeated,
)
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
ORDERS = np.array([1.01, 1.5, 2.0, 8.0, 30.0])
GRID = np.array([0.0, 0.1, 0.7, 2.0])
G = GaussianEvent(noise_multiplier=2.0, adjacency=A)
H = GaussianEvent(noise_multiplier=1.0, adjacency=A)
L = LaplaceEvent(noise_multiplier=1.5, adjacency=A)
P = PureEvent(epsilon=0.4, adjacency=A)


def test_gaussians_compose_to_a_gaussian() -> None:
    event = Composed((G, Repeated(H, count=3), PoissonSampled(G, sampling_rate=1.0)))
    one = GaussianEvent(noise_multiplier=1.0 / math.sqrt(3.5), adjacency=A)
    assert event.mu() == pytest.approx(one.mu(), rel=1e-14)
    assert event.mu() ** 2 >= 3.5
    np.testing.assert_allclose(event.renyi(ORDERS), one.renyi(ORDERS), rtol=1e-14)
    for direction in Direction:
        np.testing.assert_allclose(
            event.log_profile(GRID, direction=direction), one.log_profile(GRID, direction=direction), rtol=1e-12
        )


@pytest.mark.parametrize("count", [2, 3, 7, 1000, 2**53 - 1])
def test_mu_is_never_below_the_exact_root(count: int) -> None:
    multipliers = np.geomspace(0.3, 50.0, 200)
    for one, other in zip(multipliers, multipliers[::-1], strict=True):
        leaves = [GaussianEvent(noise_multiplier=float(m), adjacency=A) for m in (one, other)]
        squares = [1 / Fraction(float(m)) ** 2 for m in (one, other)]
        assert Fraction(Repeated(leaves[0], count=count).mu()) ** 2 >= count * squares[0]
        mixed = Composed((Repeated(leaves[0], count=count), *leaves))
        assert Fraction(mixed.mu()) ** 2 >= (count + 1) * squares[0] + squares[1]


def test_divergences_add_up_per_direction() -> None:
    event = Composed((G, L, PoissonSampled(L, sampling_rate=0.3), P, L))
    for direction in (*Direction, None):
        total = np.sum([e.renyi(ORDERS, direction=direction) for e in event.events], axis=0)
        np.testing.assert_allclose(event.renyi(ORDERS, direction=direction), total, rtol=1e-13)
    assert event.pure_epsilon() == math.inf
    assert Composed((L, P)).pure_epsilon() == pytest.approx(1.0 / 1.5 + 0.4, rel=1e-15)
    assert Composed((P,) * 10).pure_epsilon() >= 4.0


def test_what_is_not_gaussian_has_no_profile_yet() -> None:
    for event in (Composed((G, L)), Repeated(L, count=2), Composed((PoissonSampled(G, sampling_rate=0.5), G))):
        for direction in Direction:
            with pytest.raises(UnsupportedEvent, match="no exact profile"):
                event.log_profile(GRID, direction=direction)
    for event in (Composed((L,)), Repeated(L, count=1)):
        np.testing.assert_array_equal(
            event.log_profile(GRID, direction=Direction.ADD), L.log_profile(GRID, direction=Direction.ADD)
        )


def test_a_mixture_of_groups_is_the_mean_of_profiles_and_moments() -> None:
    event = Parallel((G, L), probabilities=(0.25, 0.5))
    for direction in Direction:
        mean = 0.25 * np.exp(G.log_profile(GRID, direction=direction)) + 0.5 * np.exp(
            L.log_profile(GRID, direction=direction)
        )
        np.testing.assert_allclose(np.exp(event.log_profile(GRID, direction=direction)), mean, rtol=1e-13)
        moment = 0.25 * np.expm1((ORDERS - 1) * G.renyi(ORDERS)) + 0.5 * np.expm1((ORDERS - 1) * L.renyi(ORDERS))
        np.testing.assert_allclose(
            event.renyi(ORDERS, direction=direction), np.log1p(moment) / (ORDERS - 1), rtol=1e-12
        )


def test_a_group_of_its_own_for_everyone_is_the_event() -> None:
    np.testing.assert_allclose(Parallel((L,), probabilities=(1.0,)).renyi(ORDERS), L.renyi(ORDERS), rtol=1e-12)
    same = Parallel((L, L, L), probabilities=(0.2, 0.3, 0.5))
    np.testing.assert_allclose(same.renyi(ORDERS), L.renyi(ORDERS), rtol=1e-12)


@pytest.mark.parametrize(
    "weights", [(0.1,) * 10, (0.3, 0.3, 0.3), tuple(0.1 * 0.9**k / (1 - 0.9**50) for k in range(50))]
)
@pytest.mark.parametrize("event", [L, P, BoundedRangeEvent(epsilon=3.0, adjacency=A)])
def test_equal_groups_are_one_group_of_all_their_units(weights: tuple[float, ...], event: Event) -> None:
    groups, total = Parallel((event,) * len(weights), probabilities=weights), sum(map(Fraction, weights))
    epsilons = np.linspace(0.0, 0.999 * event.pure_epsilon(), 40)
    for direction in Direction:
        ratio = np.exp(
            groups.log_profile(epsilons, direction=direction) - event.log_profile(epsilons, direction=direction)
        )
        # Never below, but for the cap at 1; and no more than a few units above.
        np.testing.assert_allclose(ratio, min(float(total), 1.0), rtol=1e-13)
        assert np.all(ratio >= float(total) * (1.0 - 1e-15))
    assert groups.pure_epsilon() == event.pure_epsilon()


def test_a_thousand_groups_are_never_below_the_exact_mixture() -> None:
    rng = np.random.default_rng(3)
    epsilons, weights = rng.uniform(0.5, 20.0, 1000).tolist(), (0.999 * rng.dirichlet(np.full(1000, 0.1))).tolist()
    groups = Parallel(tuple(BoundedRangeEvent(epsilon=e, adjacency=A) for e in epsilons), probabilities=tuple(weights))
    at = np.array([0.0, 0.3, 1.0, 5.0, 12.0, 19.0, 19.9])
    found = groups.log_profile(at, direction=Direction.REMOVE)
    with mp.workdps(40):
        for t, log in zip(at.tolist(), found.tolist(), strict=True):
            exact = mp.fsum(
                mp.mpf(p) * (1 - mp.exp((mp.mpf(t) - e) / 2)) ** 2 / (1 - mp.exp(-mp.mpf(e)))
                for e, p in zip(epsilons, weights, strict=True)
                if e > t
            )
            assert mp.log(exact) <= log <= mp.log(exact) + 1e-11


def test_a_group_with_probability_q_is_no_better_than_its_worst_but_better_than_all() -> None:
    event = Parallel((H,), probabilities=(0.1,))
    assert np.all(event.renyi(ORDERS) < H.renyi(ORDERS))
    # the assignment is part of the output: a sample hides it and costs less still
    assert np.all(PoissonSampled(H, sampling_rate=0.1).renyi(ORDERS) < event.renyi(ORDERS))


def test_a_composition_inside_a_group_multiplies_moments() -> None:
    inner = Composed((L, P))
    event = Parallel((inner,), probabilities=(0.5,))
    moment = 0.5 * np.expm1((ORDERS - 1) * (L.renyi(ORDERS) + P.renyi(ORDERS)))
    np.testing.assert_allclose(event.renyi(ORDERS), np.log1p(moment) / (ORDERS - 1), rtol=1e-12)


def test_groups_inside_a_sample_share_the_sample() -> None:
    groups = Parallel((H, G), probabilities=(0.5, 0.5))
    event = PoissonSampled(groups, sampling_rate=0.2)
    for direction in Direction:
        power = (lambda a: a) if direction is Direction.REMOVE else (lambda a: 1 - a)
        moment = (
            np.exp(np.logaddexp.reduce([e.log_excess_moments(power(ORDERS), sampling_rate=0.2) for e in (H, G)])) / 2
        )
        np.testing.assert_allclose(
            event.renyi(ORDERS, direction=direction), np.log1p(moment) / (ORDERS - 1), rtol=1e-11
        )


def test_the_worst_group_is_the_pointwise_maximum() -> None:
    event = Parallel.worst((G, L, P))
    for direction in Direction:
        np.testing.assert_array_equal(
            event.log_profile(GRID, direction=direction),
            np.max([e.log_profile(GRID, direction=direction) for e in (G, L, P)], axis=0),
        )
    np.testing.assert_array_equal(event.renyi(ORDERS), np.max([e.renyi(ORDERS) for e in (G, L, P)], axis=0))
    assert Parallel.worst((L, P)).pure_epsilon() == L.pure_epsilon()
    assert Parallel.worst((G, H)).mu() == H.mu()
    assert Parallel((L, P), probabilities=(0.0, 1.0)).pure_epsilon() == P.pure_epsilon()


def test_the_worst_group_under_replace_one_is_refused() -> None:
    event = GaussianEvent(noise_multiplier=1.0, adjacency=Adjacency.REPLACE_ONE)
    with pytest.raises(UnsupportedEvent, match="two changes"):
        Parallel.worst((event, event))
    assert Parallel((event,), probabilities=(1.0,)).adjacency is Adjacency.REPLACE_ONE


@pytest.mark.parametrize("other", [Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE])
def test_adjacencies_do_not_mix(other: Adjacency) -> None:
    stranger = GaussianEvent(noise_multiplier=1.0, adjacency=other)
    with pytest.raises(AdjacencyMismatch, match=other.value):
        Composed((G, stranger))
    with pytest.raises(AdjacencyMismatch, match=other.value):
        Parallel((G, stranger), probabilities=(0.5, 0.5))


@pytest.mark.parametrize("events", [(), (1.0,), G, "ab", None])
def test_members_must_be_events(events: object) -> None:
    with pytest.raises(InvalidParameter):
        Composed(events)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Parallel(events, probabilities=(1.0,))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "probabilities",
    [(0.5,), (0.7, 0.4), (-0.1, 0.5), (math.nan, 0.5), (0.0, 0.0), (0.5, 0.5, 0.0), 0.5, "ab", (1, "a")],
)
def test_bad_probabilities_are_refused(probabilities: object) -> None:
    with pytest.raises(InvalidParameter, match="probabilities"):
        Parallel((G, L), probabilities=probabilities)  # type: ignore[arg-type]


def test_probabilities_may_miss_one_by_rounding() -> None:
    thirds = Parallel((G,) * 3, probabilities=(1 / 3, 1 / 3, 1 / 3 + 1e-10))
    np.testing.assert_allclose(thirds.renyi(ORDERS), G.renyi(ORDERS), rtol=1e-8)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2", None, 2**53 + 1, 10**400])
def test_bad_counts_are_refused(count: object) -> None:
    with pytest.raises(InvalidParameter, match="count="):
        Repeated(G, count=count)  # type: ignore[arg-type]


def test_the_largest_count_has_a_price() -> None:
    for event in (G, L, PoissonSampled(G, sampling_rate=0.1)):
        many = Repeated(event, count=2**53)
        np.testing.assert_allclose(many.renyi(ORDERS), 2.0**53 * event.renyi(ORDERS), rtol=1e-15)


def test_a_numpy_count_is_a_count() -> None:
    assert Repeated(G, count=np.int64(3)) == Repeated(G, count=3)


def test_draws_open_compositions_and_nothing_else() -> None:
    sample = PoissonSampled(Repeated(G, count=7), sampling_rate=0.1)
    groups = Parallel((G, G), probabilities=(0.5, 0.5))
    event = Composed((Repeated(Composed((sample, Repeated(L, count=2))), count=10), groups, P))
    held: dict[Event, int] = {}
    for member, count in event.draws():
        held[member] = held.get(member, 0) + count
    assert held == {sample: 10, L: 20, groups: 1, P: 1}


def test_lists_become_tuples_and_events_are_values() -> None:
    assert Composed([G, L]) == Composed((G, L))  # type: ignore[arg-type]
    assert hash(Parallel.worst([G, L])) == hash(Parallel.worst((G, L)))
    with pytest.raises(AttributeError):
        G.noise_multiplier = 1.0  # type: ignore[misc]
