"""The verifier's bounds of a replaced row and of a selection, against the library's."""

import pytest

from ledgerwood.accounting import (
    Adjacency,
    ApproximateEvent,
    Composed,
    Direction,
    FixedSizeSampled,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSelection,
    PureEvent,
    RandomizedResponseEvent,
    RepeatedSelection,
    ReplaceOneSampled,
    ZeroConcentratedEvent,
)
from ledgerwood.accounting.events.serial import to_json
from ledgerwood.verification.ledgers import pairs as _pairs
from ledgerwood.verification.ledgers.atoms import mp, mpf

A, R, Z = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT
GAUSSIAN, LAPLACE = (kind(noise_multiplier=m, adjacency=R) for kind, m in ((GaussianEvent, 0.6), (LaplaceEvent, 0.75)))
PRESENT = GaussianEvent(noise_multiplier=1.2, adjacency=A)
PURE = PureEvent(epsilon=0.5, adjacency=A)
SAMPLES = [
    FixedSizeSampled(GAUSSIAN, sample_size=1, population=50),
    FixedSizeSampled(LAPLACE, sample_size=30, population=50),
    FixedSizeSampled(RandomizedResponseEvent(epsilon=0.5, categories=4, adjacency=R), sample_size=5, population=50),
    FixedSizeSampled(Parallel((GAUSSIAN, LAPLACE), probabilities=(0.25, 0.5)), sample_size=5, population=50),
    ReplaceOneSampled(GAUSSIAN, add_remove=PRESENT, sampling_rate=0.1),
    ReplaceOneSampled(GAUSSIAN, add_remove=GaussianEvent(noise_multiplier=0.4, adjacency=Z), sampling_rate=0.01),
    ReplaceOneSampled(LAPLACE, add_remove=PureEvent(epsilon=0.7, adjacency=A), sampling_rate=0.5),
]
SELECTIONS = [
    RepeatedSelection(PRESENT, shape=1.0, stopping_rate=0.1),
    RepeatedSelection(Composed((PRESENT, PURE)), shape=-0.5, stopping_rate=0.01),
    RepeatedSelection(ZeroConcentratedEvent(rho=0.01, adjacency=A), shape=0.0, stopping_rate=0.05),
    PoissonSelection(PRESENT, mean=10.0),
    PoissonSelection(PURE, mean=0.01),
    PoissonSelection(ZeroConcentratedEvent(rho=0.01, adjacency=A), mean=5.0),
]


def node(event):
    return _pairs.parse(to_json(event))


@pytest.mark.slow_after(1)  # the verifier's own bounds, in mpmath
@pytest.mark.parametrize("event", SAMPLES, ids=repr)
def test_both_implementations_agree_on_a_replaced_row(event):
    with mp.workdps(30):
        own = _pairs.renyi(node(event), mpf(2))
        found = mpf(float(event.renyi([2.0])[0]))
        assert own <= found
        assert found <= own * (1 + mpf("5e-3"))
        for epsilon in (0.0, 0.05, 0.4, 2.0):
            own = _pairs.hockey_stick(node(event), mpf(epsilon))
            found = mp.exp(mpf(float(event.log_profile(epsilon, direction=Direction.ADD))))
            assert own <= found <= own * (1 + mpf(10) ** -11)
        own, found = _pairs.pure_epsilon(node(event)), event.pure_epsilon()
        assert own <= found
        assert found <= own * (1 + mpf(10) ** -12)
        assert node(event).unsampled() == node(event.event)


@pytest.mark.parametrize("event", SELECTIONS, ids=repr)
@pytest.mark.parametrize("order", [1.25, 6.0])
def test_both_implementations_agree_on_a_selection(event, order):
    with mp.workdps(30):
        own = _pairs.renyi(node(event), mpf(order))
        found = mpf(float(event.renyi([order])[0]))
        assert own <= found
        assert found <= own * (1 + mpf("2e-3"))
        assert _pairs.pure_epsilon(node(event)) <= event.pure_epsilon()
        with pytest.raises(ValueError, match="no profile"):
            _pairs.hockey_stick(node(event), mpf(1))


def test_what_is_revealed_has_no_divergence():
    rough = ApproximateEvent(epsilon=0.5, delta=1e-3, adjacency=R)
    for event in (FixedSizeSampled(rough, sample_size=1, population=9), PoissonSelection(rough, mean=3.0)):
        with mp.workdps(30):
            assert mp.isinf(_pairs.renyi(node(event), mpf(2)))


@pytest.mark.parametrize("event", [*SAMPLES, *SELECTIONS], ids=repr)
def test_neither_is_sampled_again(event):
    with pytest.raises(ValueError, match="sample of a"):
        node(event).excess(mpf("0.5"), mpf("0.5"), mpf(2))


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (SAMPLES[0], {"sample_size": 51}),
        (SAMPLES[0], {"sample_size": 0}),
        (SAMPLES[0], {"event": to_json(PRESENT)}),
        (SAMPLES[0], {"event": to_json(SAMPLES[0])}),
        (SAMPLES[4], {"add_remove": to_json(GAUSSIAN)}),
        (SAMPLES[4], {"event": to_json(PRESENT)}),
        (SAMPLES[4], {"sampling_rate": 1.5}),
        (SELECTIONS[0], {"shape": -1.0}),
        (SELECTIONS[0], {"stopping_rate": 1.0}),
        (SELECTIONS[3], {"mean": 0.0}),
    ],
)
def test_a_record_outside_its_bounds_is_refused(event, changes):
    with pytest.raises(ValueError, match=r".+"):
        _pairs.parse(to_json(event) | changes)


def test_the_presence_of_a_row_does_not_mix_relations():
    assert _pairs.adjacencies(to_json(SAMPLES[4])) == {"replace-one"}
