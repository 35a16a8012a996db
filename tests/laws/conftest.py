"""Hypothesis draws events: `st.from_type(Event)` is any event under any adjacency that it is not refused under."""

import pytest
from hypothesis import strategies as st

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.costs.losses import averages
from ledgerwood.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    Event,
    FilteredEvent,
    FixedSizeSampled,
    GaussianEvent,
    GaussianMixtureEvent,
    GDPEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    ProfileEvent,
    PureEvent,
    RandomAllocation,
    RandomizedResponseEvent,
    RenyiEvent,
    Repeated,
    RepeatedSelection,
    ReplaceOneSampled,
    SkellamEvent,
    SkellamVectorEvent,
    StaircaseEvent,
    TruncatedLaplaceEvent,
    ZeroConcentratedEvent,
)
from ledgerwood.accounting.events.base import holds

multipliers = st.floats(0.4, 40.0)
rates = st.one_of(st.floats(1e-3, 1.0), st.just(1.0))


@pytest.fixture(autouse=True, scope="module")
def coarse_grids():
    """Allocations on coarse grids, which take little time: their bounds hold on any."""
    before, averages.CELLS = averages.CELLS, 150
    yield
    averages.CELLS = before


def gaussians(adjacency: Adjacency) -> st.SearchStrategy[Event]:
    """Leaf events whose pair is Gaussian."""
    return st.one_of(
        st.builds(GaussianEvent, noise_multiplier=multipliers, adjacency=st.just(adjacency)),
        st.builds(
            lambda d, s: EllipticalGaussianEvent(sensitivities=(d, 1.0), stddevs=(s, 2.0), adjacency=adjacency),
            st.floats(0.0, 2.0),
            st.floats(1.0, 20.0),
        ),
    )


def stated(adjacency: Adjacency) -> st.SearchStrategy[Event]:
    """Guarantees that are known by a bound of their own."""
    epsilons = st.lists(st.floats(0.01, 5.0), min_size=1, max_size=4, unique=True).map(sorted)
    orders = st.lists(st.floats(1.01, 900.0), max_size=3, unique=True).map(lambda a: [*sorted(a), 1000.0])
    return st.one_of(
        st.builds(GDPEvent, mu=st.floats(0.03, 3.0), adjacency=st.just(adjacency)),
        st.builds(
            SkellamVectorEvent,
            variance=st.floats(0.2, 1e6),
            l2_sensitivity=st.floats(1.0, 20.0),
            adjacency=st.just(adjacency),
        ),
        st.builds(ZeroConcentratedEvent, rho=st.floats(1e-4, 2.0), adjacency=st.just(adjacency)),
        st.builds(
            lambda a, d: RenyiEvent(orders=tuple(a), divergences=tuple(d[: len(a)]), adjacency=adjacency),
            orders,
            st.lists(st.floats(1e-3, 5.0), min_size=4, max_size=4),
        ),
        st.builds(
            ApproximateEvent, epsilon=st.floats(0.01, 3.0), delta=st.floats(1e-9, 0.5), adjacency=st.just(adjacency)
        ),
        st.builds(
            lambda e, d, last: ProfileEvent(epsilons=tuple(e), deltas=(*d[: len(e) - 1], last), adjacency=adjacency),
            epsilons,
            st.lists(st.floats(1e-6, 0.9), min_size=4, max_size=4),
            st.sampled_from([0.0, 0.0, 1e-6]),
        ),
    )


def filtered(adjacency: Adjacency) -> st.SearchStrategy[Event]:
    """Rounds under an individual filter."""
    return st.one_of(
        st.builds(
            lambda e, mu: FilteredEvent(e, limit=GDPEvent(mu=mu, adjacency=adjacency)),
            gaussians(adjacency),
            st.floats(0.03, 3.0),
        ),
        st.builds(
            lambda e, q, d: FilteredEvent(
                PoissonSampled(e, sampling_rate=q),
                limit=RenyiEvent(orders=(1000.0,), divergences=(d,), adjacency=adjacency),
            ),
            gaussians(adjacency),
            rates,
            st.floats(1e-3, 5.0),
        ),
    )


def allocated(adjacency: Adjacency) -> st.SearchStrategy[Event]:
    """Allocations: few different ones, since the distribution of each has to be made."""
    some = (
        GaussianEvent(noise_multiplier=1.0, adjacency=adjacency),
        PureEvent(epsilon=0.5, adjacency=adjacency),
        LaplaceEvent(noise_multiplier=0.7, adjacency=adjacency),
    )
    return st.builds(lambda e, n: RandomAllocation(e, steps=n), st.sampled_from(some), st.sampled_from([1, 2, 7]))


def mixtures(adjacency: Adjacency) -> st.SearchStrategy[Event]:
    """Random shifts under normal noise."""
    return st.builds(
        lambda p, more, noise: GaussianMixtureEvent(
            shifts=(1.0, 1.0 + more), probabilities=(p, (1.0 - p) / 3.0), noise_multiplier=noise, adjacency=adjacency
        ),
        st.floats(1e-3, 0.9),
        st.floats(0.1, 2.0),
        multipliers,
    )


def leaves(adjacency: Adjacency) -> st.SearchStrategy[Event]:
    own = []
    if adjacency is Adjacency.REPLACE_ONE:
        response = st.builds(
            RandomizedResponseEvent,
            epsilon=st.floats(0.01, 3.0),
            categories=st.integers(2, 50),
            adjacency=st.just(adjacency),
        )
        own.append(response)
    else:
        own.append(filtered(adjacency))
        own.append(mixtures(adjacency))
    return st.one_of(
        *own,
        gaussians(adjacency),
        st.builds(
            DiscreteLaplaceEvent,
            scale=st.floats(0.4, 20.0),
            sensitivity=st.integers(1, 8),
            adjacency=st.just(adjacency),
        ),
        st.builds(
            DiscreteGaussianEvent,
            scale=st.floats(0.6, 20.0),
            sensitivity=st.integers(1, 4),
            adjacency=st.just(adjacency),
        ),
        st.builds(
            SkellamEvent, variance=st.floats(0.2, 400.0), sensitivity=st.integers(1, 4), adjacency=st.just(adjacency)
        ),
        st.builds(
            StaircaseEvent, epsilon=st.floats(0.01, 3.0), inner_width=st.floats(0.0, 1.0), adjacency=st.just(adjacency)
        ),
        st.builds(
            TruncatedLaplaceEvent,
            noise_multiplier=multipliers,
            bound=st.floats(0.6, 30.0),
            adjacency=st.just(adjacency),
        ),
        stated(adjacency),
        st.builds(LaplaceEvent, noise_multiplier=multipliers, adjacency=st.just(adjacency)),
        st.builds(PureEvent, epsilon=st.floats(0.01, 3.0), adjacency=st.just(adjacency)),
        st.builds(BoundedRangeEvent, epsilon=st.floats(0.01, 5.0), adjacency=st.just(adjacency)),
    )


def replaced() -> st.SearchStrategy[Event]:
    """Secret samples under replace-one."""
    relation = st.just(Adjacency.REPLACE_ONE)
    kinds = st.sampled_from([GaussianEvent, LaplaceEvent])
    return st.one_of(
        st.builds(
            lambda e, size: FixedSizeSampled(e, sample_size=size, population=100),
            relation.flatmap(leaves),
            st.integers(1, 100),
        ),
        st.builds(
            lambda kind, noise, share, q: ReplaceOneSampled(
                kind(noise_multiplier=noise, adjacency=Adjacency.REPLACE_ONE),
                add_remove=kind(noise_multiplier=noise * share, adjacency=Adjacency.ADD_REMOVE),
                sampling_rate=q,
            ),
            kinds,
            multipliers,
            st.floats(1.0, 2.0),
            rates,
        ),
    )


def _combined(inner: st.SearchStrategy[Event], adjacency: Adjacency) -> st.SearchStrategy[Event]:
    pairs = st.tuples(inner, inner)
    # Groups that units join at random have no public number of rows.
    grouped_pairs = pairs.filter(lambda members: not any(holds(event, FixedSizeSampled) for event in members))
    choices = [
        st.builds(lambda e, n: Repeated(e, count=n), inner, st.integers(1, 4)),
        st.builds(Composed, st.one_of(st.tuples(inner), pairs)),
        st.builds(lambda e, p: Parallel(e, probabilities=(p, 1.0 - p)), grouped_pairs, st.floats(0.0, 1.0)),
        st.builds(
            lambda e, p: Parallel((*e, e[0]), probabilities=(p / 2, p / 3, p / 7)), grouped_pairs, st.floats(0.1, 1.0)
        ),
        st.builds(
            lambda e, shape, rate: RepeatedSelection(e, shape=shape, stopping_rate=rate),
            inner,
            st.floats(-0.9, 3.0),
            st.floats(1e-3, 0.9),
        ),
        st.builds(lambda e, mean: PoissonSelection(e, mean=mean), inner, st.floats(1e-3, 100.0)),
    ]
    if adjacency is Adjacency.REPLACE_ONE:
        choices.append(replaced())
    if adjacency is not Adjacency.REPLACE_ONE:
        choices += [
            st.builds(lambda e, q: PoissonSampled(e, sampling_rate=q), inner, rates),
            allocated(adjacency),
            st.builds(Parallel.worst, pairs),
        ]
    return st.one_of(choices)


def events(adjacency: Adjacency) -> st.SearchStrategy[Event]:
    """Events of one adjacency, nested up to three deep."""
    return st.recursive(leaves(adjacency), lambda inner: _combined(inner, adjacency), max_leaves=3)


st.register_type_strategy(Adjacency, st.sampled_from(list(Adjacency)))
st.register_type_strategy(Event, st.sampled_from(list(Adjacency)).flatmap(events))
