"""The verifier's own mathematics against sums, closed forms and the library that it checks."""

import json

import pytest

from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    Direction,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    GaussianEvent,
    GDPEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    ProfileEvent,
    PureEvent,
    RandomizedResponseEvent,
    RenyiEvent,
    Repeated,
    SkellamEvent,
    SkellamVectorEvent,
    StaircaseEvent,
    TruncatedLaplaceEvent,
    ZeroConcentratedEvent,
)
from ledgerwood.accounting.events.serial import to_json
from ledgerwood.verification.ledgers import pairs as _pairs
from ledgerwood.verification.ledgers.atoms import mp, mpf

A = Adjacency.ADD_REMOVE
GAUSSIAN = GaussianEvent(noise_multiplier=1.25, adjacency=A)
LAPLACE = LaplaceEvent(noise_multiplier=0.75, adjacency=A)
PURE = PureEvent(epsilon=0.5, adjacency=A)
RANGE = BoundedRangeEvent(epsilon=0.75, adjacency=A)
R = Adjacency.REPLACE_ONE
APPROXIMATE = ApproximateEvent(epsilon=0.5, delta=1e-3, adjacency=A)
TABLE = ProfileEvent(epsilons=(0.0, 0.2, 0.5, 0.9, 1.5), deltas=(0.5, 0.25, 0.2, 0.01, 0.0), adjacency=A)
OPEN_TABLE = ProfileEvent(epsilons=(0.4, 0.9), deltas=(0.1, 1e-3), adjacency=A)
CURVES = [
    ZeroConcentratedEvent(rho=0.3, adjacency=A),
    RenyiEvent(orders=(1.5, 2.0, 4.0, 9.0), divergences=(0.2, 0.5, 0.3, 1.5), adjacency=A),
    SkellamVectorEvent(variance=100.0, l2_sensitivity=5.5, adjacency=A),
    SkellamVectorEvent(variance=1e-3, l2_sensitivity=1.0, adjacency=A),
]
DRAWS = [
    GAUSSIAN,
    LAPLACE,
    PURE,
    EllipticalGaussianEvent(sensitivities=(1.0, 0.3), stddevs=(5.0, 1.0), adjacency=A),
    PoissonSampled(GAUSSIAN, sampling_rate=0.01),
    PoissonSampled(LAPLACE, sampling_rate=0.3),
    PoissonSampled(PURE, sampling_rate=0.3),
    PoissonSampled(PoissonSampled(GAUSSIAN, sampling_rate=0.5), sampling_rate=0.2),
    PoissonSampled(Repeated(GAUSSIAN, count=3), sampling_rate=0.1),
    Parallel((GAUSSIAN, LAPLACE), probabilities=(0.25, 0.5)),
    PoissonSampled(Parallel((GAUSSIAN, PURE), probabilities=(0.5, 0.5)), sampling_rate=0.2),
    PoissonSampled(Parallel.worst((GAUSSIAN, LAPLACE)), sampling_rate=0.2),
    RANGE,
    PoissonSampled(RANGE, sampling_rate=0.1),
    RandomizedResponseEvent(epsilon=0.5, categories=5, adjacency=R),
    GDPEvent(mu=0.7, adjacency=A),
    PoissonSampled(GDPEvent(mu=0.7, adjacency=A), sampling_rate=0.1),
    DiscreteLaplaceEvent(scale=1.5, sensitivity=4, adjacency=A),
    PoissonSampled(DiscreteLaplaceEvent(scale=1.5, sensitivity=4, adjacency=A), sampling_rate=0.1),
    DiscreteGaussianEvent(scale=0.8, sensitivity=1, adjacency=A),
    DiscreteGaussianEvent(scale=0.2, sensitivity=3, adjacency=A),
    DiscreteGaussianEvent(scale=50.0, sensitivity=20, adjacency=A),
    PoissonSampled(DiscreteGaussianEvent(scale=3.5, sensitivity=2, adjacency=A), sampling_rate=0.1),
    SkellamEvent(variance=0.3, sensitivity=2, adjacency=A),
    SkellamEvent(variance=20.0, sensitivity=3, adjacency=A),
    SkellamEvent(variance=1e-12, sensitivity=1, adjacency=A),
    PoissonSampled(SkellamEvent(variance=5.0, sensitivity=1, adjacency=A), sampling_rate=0.1),
    StaircaseEvent(epsilon=0.7, inner_width=0.3, adjacency=A),
    StaircaseEvent(epsilon=0.7, inner_width=0.8, adjacency=A),
    PoissonSampled(StaircaseEvent(epsilon=1.5, inner_width=0.4, adjacency=A), sampling_rate=0.1),
    TABLE,
    PoissonSampled(TABLE, sampling_rate=0.1),
    PoissonSampled(Parallel((RANGE, PURE), probabilities=(0.5, 0.25)), sampling_rate=0.3),
]
MIXED = Repeated(LAPLACE, count=2)
COMPOSITIONS = [
    MIXED,
    Composed((LAPLACE, PURE, LAPLACE)),
    Parallel((MIXED, GAUSSIAN), probabilities=(0.25, 0.5)),
    Parallel((MIXED, GAUSSIAN), probabilities=(0.0, 0.5)),
    Parallel.worst((Composed((GAUSSIAN, LAPLACE)), GAUSSIAN)),
    Parallel.worst((Repeated(PoissonSampled(GAUSSIAN, sampling_rate=0.1), count=4), GAUSSIAN)),
    Repeated(Parallel((Composed((GAUSSIAN, LAPLACE)), PURE), probabilities=(0.5, 0.5)), count=3),
]


def node(event):
    return _pairs.parse(to_json(event))


REVEALING = [
    APPROXIMATE,
    OPEN_TABLE,
    PoissonSampled(APPROXIMATE, sampling_rate=0.1),
    PoissonSampled(OPEN_TABLE, sampling_rate=0.1),
    TruncatedLaplaceEvent(noise_multiplier=0.75, bound=0.7, adjacency=A),
    TruncatedLaplaceEvent(noise_multiplier=0.75, bound=12.0, adjacency=A),
    PoissonSampled(TruncatedLaplaceEvent(noise_multiplier=2.0, bound=1.5, adjacency=A), sampling_rate=0.1),
    Parallel((APPROXIMATE, GAUSSIAN), probabilities=(0.5, 0.25)),
]


@pytest.mark.slow_after(8)  # the verifier's own Rényi divergences, in mpmath
@pytest.mark.parametrize("event", [*DRAWS, *CURVES, *COMPOSITIONS], ids=repr)
@pytest.mark.parametrize("order", [1.01, 2.0, 7.5])
def test_both_implementations_agree_on_renyi(event, order):
    with mp.workdps(50):
        own = _pairs.renyi(node(event), mpf(order))
        found = mpf(float(event.renyi([order])[0]))
        assert own <= found * (1 + mpf(10) ** -15)
        assert found <= own * (1 + mpf(10) ** -9)


@pytest.mark.parametrize("event", REVEALING, ids=repr)
def test_both_implementations_know_an_infinite_divergence(event):
    with mp.workdps(50):
        assert mp.isinf(_pairs.renyi(node(event), mpf(2)))
    assert event.renyi([2.0])[0] == float("inf")


@pytest.mark.parametrize("event", CURVES, ids=repr)
def test_a_divergence_alone_is_no_profile_and_no_sample(event):
    with pytest.raises(ValueError, match="no profile"):
        _pairs.hockey_stick(node(event), mpf(1))
    with pytest.raises(ValueError, match="sample"):
        _pairs.renyi(node(PoissonSampled(event, sampling_rate=0.5)), mpf(2))


@pytest.mark.slow_after(21)  # the verifier's own profiles, in mpmath
@pytest.mark.parametrize("event", [*DRAWS, *REVEALING], ids=repr)
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_both_implementations_agree_on_the_profile(event, epsilon):
    with mp.workdps(60):
        own = _pairs.hockey_stick(node(event), mpf(epsilon))
        found = max(mp.exp(mpf(float(event.log_profile([epsilon], direction=d)[0]))) for d in Direction)
        assert own <= found * (1 + mpf(10) ** -14)
        assert found <= own * (1 + mpf(10) ** -11) + mpf(10) ** -40


@pytest.mark.parametrize(
    "event", [*DRAWS[1:3], *DRAWS[5:7], Repeated(LAPLACE, count=4), Composed((PURE, LAPLACE))], ids=repr
)
def test_both_implementations_agree_on_pure_epsilon(event):
    with mp.workdps(50):
        own = _pairs.pure_epsilon(node(event))
        assert own <= event.pure_epsilon() <= own * (1 + mpf(10) ** -13)


@pytest.mark.parametrize("order", [2, 5, 20])
def test_sampled_moments_at_whole_orders_are_binomial_sums(order):
    rate = mpf("0.1")
    with mp.workdps(50):

        def moments(leaf):
            return sum(mp.binomial(order, i) * (1 - rate) ** (order - i) * rate**i * leaf(i) for i in range(order + 1))

        def gaussian(i):
            return mp.exp(mpf(i * i - i) / 2 / mpf(1.25) ** 2)

        def laplace(i):
            b = mpf(0.75)
            return mpf(1) if i in (0, 1) else (i * mp.exp((i - 1) / b) + (i - 1) * mp.exp(-i / b)) / (2 * i - 1)

        for leaf, event in ((gaussian, GAUSSIAN), (laplace, LAPLACE)):
            own = _pairs.Sampled(node(event), rate).excess(mpf(1), mpf(0), mpf(order))
            assert abs(own - (moments(leaf) - 1)) <= mpf(10) ** -12 * own


def test_a_gaussian_composition_is_one_pair_and_a_mixed_one_has_no_profile():
    with mp.workdps(50):
        joint = node(Composed((GAUSSIAN, Repeated(GAUSSIAN, count=2))))
        assert isinstance(joint, _pairs.Gaussian)
        assert abs(joint.square - 3 / mpf(1.25) ** 2) < mpf(10) ** -40
    with pytest.raises(ValueError, match="not all Gaussian"):
        _pairs.hockey_stick(node(Composed((GAUSSIAN, LAPLACE))), mpf(1))
    with pytest.raises(ValueError, match="not all Gaussian"):
        _pairs.renyi(node(PoissonSampled(Composed((LAPLACE, LAPLACE)), sampling_rate=0.5)), mpf(2))


def test_draws_open_compositions_and_leave_samples_closed():
    step = PoissonSampled(Composed((GAUSSIAN, LAPLACE)), sampling_rate=0.1)
    plan = Composed((Repeated(Composed((step, PURE)), count=3), PURE))
    found = _pairs.draws(to_json(plan))
    assert found == [(to_json(step), 3), (to_json(PURE), 3), (to_json(PURE), 1)]
    assert sorted((str(to_json(e)), n) for e, n in plan.draws()) == sorted((str(r), n) for r, n in found)


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {},
        {"type": "Unknown"},
        {"type": "PureEvent", "epsilon": 0.1},
        {"type": "PureEvent", "epsilon": 0.1, "adjacency": "add-remove", "more": 1},
        {"type": "PureEvent", "epsilon": 0.0, "adjacency": "add-remove"},
        {"type": "PureEvent", "epsilon": True, "adjacency": "add-remove"},
        {"type": "GaussianEvent", "noise_multiplier": -1.0, "adjacency": "add-remove"},
        {"type": "EllipticalGaussianEvent", "sensitivities": [1.0], "stddevs": [1.0, 2.0], "adjacency": "add-remove"},
        {"type": "SkellamEvent", "variance": 0.0, "sensitivity": 1, "adjacency": "add-remove"},
        {"type": "SkellamEvent", "variance": 1.0, "sensitivity": 1.0, "adjacency": "add-remove"},
        {"type": "SkellamVectorEvent", "variance": 1.0, "l2_sensitivity": 0.5, "adjacency": "add-remove"},
        {"type": "StaircaseEvent", "epsilon": 1.0, "inner_width": 1.5, "adjacency": "add-remove"},
        {"type": "TruncatedLaplaceEvent", "noise_multiplier": 1.0, "bound": 0.5, "adjacency": "add-remove"},
        {"type": "Composed", "events": []},
        {"type": "Repeated", "event": to_json(PURE), "count": 0},
        {"type": "Repeated", "event": to_json(PURE), "count": 1.5},
        {"type": "PoissonSampled", "event": to_json(PURE), "sampling_rate": 1.5},
        {"type": "Parallel", "events": [to_json(PURE)], "probabilities": [0.5, 0.5]},
        {"type": "Parallel", "events": [to_json(PURE)], "probabilities": [1.5]},
    ],
)
def test_records_that_say_something_else_are_refused(record):
    with pytest.raises(ValueError):
        _pairs.parse(record)


@pytest.mark.parametrize("inner", [GAUSSIAN, Repeated(LAPLACE, count=2), Composed((PURE, GAUSSIAN))], ids=repr)
def test_samples_and_worst_groups_under_replace_one_are_refused(inner):
    record = json.loads(json.dumps(to_json(inner)).replace("add-remove", "replace-one"))
    _pairs.parse(record)
    _pairs.parse({"type": "Parallel", "events": [record], "probabilities": [0.5]})
    for combined in (
        {"type": "PoissonSampled", "event": record, "sampling_rate": 0.5},
        {"type": "PoissonSampled", "event": record, "sampling_rate": 1.0},
        {"type": "Parallel", "events": [record, record], "probabilities": None},
    ):
        for nested in (combined, {"type": "Repeated", "event": combined, "count": 2}):
            with pytest.raises(ValueError, match="no privacy bound under replace-one"):
                _pairs.parse(nested)
