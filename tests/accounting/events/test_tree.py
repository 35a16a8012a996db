"""The walk over events made of events: it finds whatever a record would write, and guards ask it at any depth."""

import dataclasses
import gc
import inspect
import sys

import numpy as np
import pytest

from ledgerwood import price
from ledgerwood.accounting import (
    Adjacency,
    Composed,
    FilteredEvent,
    FixedSizeSampled,
    GaussianEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    PureEvent,
    RandomizedResponseEvent,
    Repeated,
    RepeatedSelection,
    ReplaceOneSampled,
)
from ledgerwood.accounting.events import base, from_json, serial, to_json
from ledgerwood.accounting.events.base import Event
from ledgerwood.errors import UnsupportedEvent

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
G = GaussianEvent(noise_multiplier=1.0, adjacency=R)
P = PureEvent(epsilon=1.0, adjacency=R)


def fixed(event, size, population):
    return FixedSizeSampled(event, sample_size=size, population=population)


WRAPPED = {
    "repeated": lambda e: Repeated(e, count=3),
    "composed last": lambda e: Composed(
        (*(GaussianEvent(noise_multiplier=1.0 + k, adjacency=R) for k in range(99)), e)
    ),
    "group": lambda e: Repeated(Composed((e, P)), count=2),
    "selection": lambda e: RepeatedSelection(e, shape=1.0, stopping_rate=0.1),
    "poisson selection": lambda e: PoissonSelection(Composed((P, e)), mean=5.0),
    "deep": lambda e: Composed(
        (P, Repeated(RepeatedSelection(Composed((P, e)), shape=0.0, stopping_rate=0.5), count=2))
    ),
}


def records(value):
    """The records within a record, at any depth."""
    if isinstance(value, dict):
        return ("type" in value) + sum(map(records, value.values()))
    return sum(map(records, value)) if isinstance(value, list) else 0


def test_the_walk_finds_every_event_that_a_record_writes():
    two = ReplaceOneSampled(
        Composed((GaussianEvent(noise_multiplier=0.5, adjacency=R), P)),
        add_remove=Composed((GaussianEvent(noise_multiplier=1.0, adjacency=A), PureEvent(epsilon=0.5, adjacency=A))),
        sampling_rate=0.1,
    )
    plan = Composed(
        (two, Parallel((P, Repeated(G, count=2)), probabilities=(0.5, 0.25)), WRAPPED["deep"](fixed(G, 1, 9)))
    )
    found = list(base.walk(plan))
    assert found[0] is plan
    assert records(to_json(plan)) == len(found) + 4  # P stands at four places, G at two
    assert base.holds(plan, FixedSizeSampled)
    assert base.holds(plan, ReplaceOneSampled)
    assert not base.holds(plan, PoissonSampled)


@pytest.mark.slow  # the truth by integrals or enumeration
def test_every_class_of_events_can_be_looked_into():
    def below(cls):
        return {cls}.union(*map(below, cls.__subclasses__()))

    gc.collect()  # of a slotted dataclass, the class before it had its slots
    named = {getattr(sys.modules[cls.__module__], cls.__name__, None) for cls in below(Event) - {Event}}
    ours = {cls for cls in named if cls and cls.__module__.startswith("ledgerwood.") and not inspect.isabstract(cls)}
    assert set(serial._CLASSES.values()) <= ours
    for cls in ours:
        fields = {field.name for field in dataclasses.fields(cls)}
        known = {"event", "events", "add_remove", *(["limit"] if cls is FilteredEvent else [])}
        assert set(base._event_fields(cls)) == fields & known


@pytest.mark.parametrize("how", WRAPPED)
def test_a_nested_sample_is_drawn_from_the_outer_sample(how):
    """Once, a sample of one in a million rows within a sample of a thousand cost nothing."""
    wrong, right = WRAPPED[how](fixed(G, 1, 10**6)), WRAPPED[how](fixed(G, 1, 1000))
    with pytest.raises(UnsupportedEvent, match=r"population=1000000 within .* sample_size=1000"):
        fixed(wrong, 1000, 10**6)
    outer = fixed(right, 1000, 10**6)
    assert from_json(to_json(outer)) == outer
    record = to_json(outer)
    record["sample_size"] = 999
    with pytest.raises(UnsupportedEvent, match="population=1000 within"):
        from_json(record)


@pytest.mark.parametrize("how", WRAPPED)
def test_no_fixed_size_sample_of_a_random_number_of_rows_at_any_depth(how):
    inner = WRAPPED[how](fixed(G, 1, 10))
    with pytest.raises(UnsupportedEvent, match="random and private"):
        ReplaceOneSampled(inner, add_remove=GaussianEvent(noise_multiplier=2.0, adjacency=A), sampling_rate=0.1)
    with pytest.raises(UnsupportedEvent, match="no public number of rows"):
        Parallel((P, inner), probabilities=(0.5, 0.5))


def test_a_sample_of_a_sample_has_the_law_of_one_sample():
    """A row in 3 of 4 rows, of which 1 is drawn, is drawn once in four: the bound is never below that law's profile."""
    answer = RandomizedResponseEvent(epsilon=2.0, categories=2, adjacency=R)
    twice = fixed(Repeated(fixed(answer, 1, 3), count=1), 3, 4)
    once = fixed(answer, 1, 4)
    for epsilon in np.linspace(0.0, 1.0, 9):
        assert price(twice).delta(epsilon) >= price(once).delta(epsilon) * (1.0 - 1e-12)
        assert price(twice).delta(epsilon) == pytest.approx(price(once).delta(epsilon), rel=1e-9, abs=1e-300)


def test_a_class_from_elsewhere_is_not_vouched_for():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Mine(Event):
        hidden: object

        adjacency = R
        log_profile = renyi = pure_epsilon = None

    with pytest.raises(UnsupportedEvent, match="Mine is not one of the library's events"):
        fixed(Composed((P, Mine(fixed(G, 1, 10**6)))), 10, 100)
    with pytest.raises(UnsupportedEvent, match="Mine is not"):
        Parallel((fixed(G, 1, 10), Mine(0)), probabilities=(0.5, 0.5))


def test_a_walk_is_linear_in_what_is_shared():
    event = LaplaceEvent(noise_multiplier=1.0, adjacency=R)
    for _ in range(60):
        event = Composed((event, event))
    assert len(list(base.walk(event))) == 61
