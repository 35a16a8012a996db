import json

import pytest

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import (
    ApproximateEvent,
    BoundedRangeEvent,
    Composed,
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    EllipticalGaussianEvent,
    Event,
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
    ZeroConcentratedEvent,
    from_json,
    to_json,
)
from ledgerwood.errors import LedgerError, PrivacyError

A = Adjacency.ADD_REMOVE
G = GaussianEvent(noise_multiplier=0.1, adjacency=A)
EVENTS = [
    G,
    EllipticalGaussianEvent(sensitivities=(1.0, 1 / 3), stddevs=(5.0, 0.7), adjacency=Adjacency.REPLACE_ONE),
    LaplaceEvent(noise_multiplier=1e-3, adjacency=Adjacency.ZERO_OUT),
    PureEvent(epsilon=0.1, adjacency=A),
    BoundedRangeEvent(epsilon=0.1, adjacency=A),
    RandomizedResponseEvent(epsilon=0.1, categories=7, adjacency=Adjacency.REPLACE_ONE),
    GDPEvent(mu=0.3, adjacency=A),
    DiscreteLaplaceEvent(scale=1.5, sensitivity=3, adjacency=A),
    DiscreteGaussianEvent(scale=1.5, sensitivity=3, adjacency=A),
    ZeroConcentratedEvent(rho=0.1, adjacency=A),
    RenyiEvent(orders=(1.5, 2.0), divergences=(0.1, 0.3), adjacency=A),
    ApproximateEvent(epsilon=0.5, delta=1e-300, adjacency=A),
    ProfileEvent(epsilons=(0.0, 1.0), deltas=(0.5, 0.0), adjacency=A),
    PoissonSampled(G, sampling_rate=1 / 3),
    Repeated(PoissonSampled(G, sampling_rate=0.01), count=10**9),
    Composed((G, PureEvent(epsilon=2.0, adjacency=A))),
    Parallel((G, G), probabilities=(0.1, 0.2)),
    Parallel.worst((G, Repeated(G, count=2))),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_an_event_survives_text(event: object) -> None:
    assert from_json(json.loads(json.dumps(to_json(event), allow_nan=False))) == event  # type: ignore[arg-type]


def test_the_form_is_for_ever() -> None:
    assert to_json(Repeated(PoissonSampled(G, sampling_rate=0.5), count=3)) == {
        "type": "Repeated",
        "event": {
            "type": "PoissonSampled",
            "event": {"type": "GaussianEvent", "noise_multiplier": 0.1, "adjacency": "add-remove"},
            "sampling_rate": 0.5,
        },
        "count": 3,
    }


def test_a_record_names_the_arguments_of_its_constructor() -> None:
    assert to_json(GDPEvent(mu=0.5, adjacency=A)) == {"type": "GDPEvent", "mu": 0.5, "adjacency": "add-remove"}


RECORD = {"type": "GaussianEvent", "noise_multiplier": 1.0, "adjacency": "add-remove"}


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        "GaussianEvent",
        {},
        {**RECORD, "type": "NoSuchEvent"},
        {**RECORD, "type": ["GaussianEvent"]},
        {**RECORD, "sensitivity": 1.0},
        {"type": "GaussianEvent", "adjacency": "add-remove"},
        {**RECORD, "adjacency": "add_remove"},
        {**RECORD, "adjacency": ["add-remove"]},
        {**RECORD, "noise_multiplier": float("nan")},
        {**RECORD, "noise_multiplier": float("inf")},
        {**RECORD, "noise_multiplier": "1.0"},
        {**RECORD, "noise_multiplier": True},
        {"type": "Repeated", "event": RECORD, "count": 2.0},
        {"type": "Repeated", "event": "GaussianEvent", "count": 2},
        {"type": "Composed", "events": RECORD},
        {"type": "Composed", "events": []},
        {"type": "Composed", "events": [RECORD, {**RECORD, "adjacency": "zero-out"}]},
        {"type": "Parallel", "events": [RECORD], "probabilities": [2.0]},
        {"type": "Parallel", "events": [RECORD]},
        {"type": "GDPEvent", "limit": 0.5, "adjacency": "add-remove"},
        {"type": "RenyiEvent", "orders": 2.0, "divergences": [1.0], "adjacency": "add-remove"},
        {"type": "RenyiEvent", "orders": [2.0], "divergences": [[1.0]], "adjacency": "add-remove"},
        {"type": "RenyiEvent", "orders": ["2"], "divergences": [1.0], "adjacency": "add-remove"},
        {"type": "ProfileEvent", "epsilons": [1.0], "deltas": [float("nan")], "adjacency": "add-remove"},
        {"type": "RandomizedResponseEvent", "epsilon": 1.0, "categories": 2.0, "adjacency": "replace-one"},
        {"type": "RandomizedResponseEvent", "epsilon": 1.0, "categories": 2, "adjacency": "zero-out"},
        {"type": "PoissonSampled", "event": {**RECORD, "adjacency": "replace-one"}, "sampling_rate": 0.5},
    ],
)
def test_a_record_that_is_not_one_is_refused(record: object) -> None:
    with pytest.raises(PrivacyError):
        from_json(record)


def test_what_could_not_be_read_back_is_not_written() -> None:
    event: Event = G
    for _ in range(31):
        event = Repeated(event, count=1)
    assert from_json(to_json(event)) == event
    with pytest.raises(LedgerError, match="deeper than 32"):
        to_json(Repeated(event, count=1))


def test_an_event_of_a_stranger_has_no_record() -> None:
    with pytest.raises(LedgerError, match="no record"):
        to_json(object())  # type: ignore[arg-type]


def test_a_record_nested_without_end_is_refused() -> None:
    record: dict[str, object] = dict(RECORD)
    for _ in range(3000):
        record = {"type": "Repeated", "event": record, "count": 1}
    with pytest.raises(LedgerError, match="deeper than 32"):
        from_json(record)
