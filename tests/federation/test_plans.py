"""Which plans a federation carries out: every kind of event is on one list, or here with the reason why not."""

import inspect
import typing

import pytest
from sklearn.base import is_regressor

import ledgerwood as lw
from ledgerwood import trainers
from ledgerwood.accounting.events import Composed, Event, Parallel, PoissonSampled, Repeated, base
from ledgerwood.accounting.events.base import walk
from ledgerwood.curator.places.federated_plans import DRAWS, OF_ALL_ROWS, RELEASES, require_plain
from ledgerwood.errors import PrivacyError, RoundViolation
from ledgerwood.mechanisms import MECHANISMS, BallShifts, BlockShifts, BoxShifts
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator

from .conftest import SCHEMA

A = lw.Adjacency.ADD_REMOVE
STATED = "is a bound that somebody states; no mechanism of sums has it"
COLUMNS = "is of columns, or of single values"
SIZED = "needs the number of all owners' rows, which is secret"
ONE_PLACE = "needs rows in one place"
REFUSED = {
    "FixedSizeSampled": SIZED,
    "GDPEvent": STATED,
    "PoissonSelection": ONE_PLACE,
    "ProfileEvent": STATED,
    "GaussianMixtureEvent": "its shifts are random, as a round's are not",
    "RandomAllocation": "owners do not allocate their rows to steps",
    "RandomizedResponseEvent": COLUMNS,
    "RenyiEvent": STATED,
    "RepeatedSelection": ONE_PLACE,
    "ReplaceOneSampled": SIZED,
    "StaircaseEvent": COLUMNS,
    "TruncatedLaplaceEvent": COLUMNS,
}


def classes(above):
    for kind in above.__subclasses__():
        yield from classes(kind)
        if getattr(kind, "__final__", False) and kind.__module__.startswith("ledgerwood."):
            yield kind


EVENTS = {kind.__name__: kind for kind in classes(Event) if not issubclass(kind, base.Derived)}
CARRIED_OUT = {kind.__name__ for kind in (*RELEASES, *OF_ALL_ROWS, *DRAWS, Composed, Repeated)}


def test_every_kind_of_event_is_carried_out_or_refused_for_a_reason():
    assert EVENTS.keys() == CARRIED_OUT | REFUSED.keys()
    assert not CARRIED_OUT & REFUSED.keys()


GAUSSIAN = lw.GaussianEvent(noise_multiplier=2.0, adjacency=A)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_event_is_refused_at_any_depth(name):
    event = EVENTS[name].__new__(EVENTS[name])  # only its class is looked at
    require_plain(Composed((GAUSSIAN, PoissonSampled(GAUSSIAN, sampling_rate=0.5))))
    for plan in (event, unchecked(Composed, events=(GAUSSIAN, unchecked(Repeated, event=event, count=3)))):
        with pytest.raises(RoundViolation, match=f"{name}.*Nothing was spent"):
            require_plain(plan)
    for plan in (
        unchecked(PoissonSampled, event=unchecked(Composed, events=(GAUSSIAN, event)), sampling_rate=0.5),
        unchecked(Parallel, events=(GAUSSIAN, event), probabilities=(0.5, 0.5)),
    ):
        with pytest.raises(RoundViolation, match=f"{name} within {type(plan).__name__}"):
            require_plain(plan)


def test_a_plan_of_more_draws_than_a_ledger_should_hold_is_refused_at_once():
    free = lw.GaussianEvent(noise_multiplier=1e60, adjacency=A)
    require_plain(Repeated(free, count=100_000))
    for plan in (Repeated(free, count=100_001), Repeated(Composed((free, free)), count=10**12)):
        with pytest.raises(RoundViolation, match="at most 100000"):
            require_plain(plan)


def test_a_choice_of_categories_is_of_all_rows():
    event = lw.ApproximateEvent(epsilon=1e-12, delta=1e-9, adjacency=A)
    require_plain(Composed((GAUSSIAN, event)))
    for plan in (
        PoissonSampled(Composed((GAUSSIAN, event)), sampling_rate=0.5),
        Parallel((GAUSSIAN, event), probabilities=(0.5, 0.5)),
    ):
        with pytest.raises(RoundViolation, match=f"ApproximateEvent within {type(plan).__name__}"):
            require_plain(plan)


def unchecked(kind, **fields):
    made = kind.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


class Foreign(Event):
    """Costs nothing, it says."""

    adjacency = A

    def log_profile(self, epsilons, *, direction):
        return epsilons

    def renyi(self, orders, *, direction=None):
        return orders

    def pure_epsilon(self):
        return 0.0


def test_a_foreign_event_and_a_sample_within_a_sample_are_refused():
    sample = PoissonSampled(GAUSSIAN, sampling_rate=0.5)
    with pytest.raises(RoundViolation, match="Foreign"):
        require_plain(unchecked(Composed, events=(GAUSSIAN, Foreign())))
    with pytest.raises(RoundViolation, match="PoissonSampled within PoissonSampled"):
        require_plain(unchecked(PoissonSampled, event=sample, sampling_rate=0.5))


def presets(kind):
    """The presets that the constructor's own annotation lists."""
    return typing.get_args(typing.get_type_hints(kind.__init__).get("preset")) or (None,)


KINDS = [
    kind
    for kind in vars(trainers).values()
    if inspect.isclass(kind)
    and issubclass(kind, AbstractTreeEstimator)
    and not inspect.isabstract(kind)
    and kind is not trainers.PrivateSearch
]
OPTIONS = ({"subsample": 0.3}, {"noise": "skellam"}, {"adjacency": "replace-one"}, {"filter": "gdp"})
NUMERIC = lw.Schema(features=SCHEMA.features, target=lw.Numeric("t", 0, 1))


def plans(kind):
    """The plans of a trainer: of each preset, and of each option on the default one."""
    schema = NUMERIC if is_regressor(kind()) else SCHEMA
    given = [{} if preset is None else {"preset": preset} for preset in presets(kind)]
    taken = inspect.signature(kind).parameters
    given += [options for options in OPTIONS if options.keys() <= taken.keys()]
    for options in given:
        try:
            yield kind(epsilon=1.0, delta=1e-6, schema=schema, **options).make_plan(schema)
        except PrivacyError:  # a system that has not got this adjacency, or this noise
            assert "preset" not in options


@pytest.mark.slow  # a federation for each trainer
def test_the_plans_of_all_trainers_are_carried_out():
    used = set()
    for kind in KINDS:
        made = list(plans(kind))
        assert made
        for plan in made:
            require_plain(plan.event)
            used |= {type(each) for each in walk(plan.event)}
    assert {*DRAWS, lw.GaussianEvent, lw.LaplaceEvent, lw.BoundedRangeEvent, lw.PureEvent} <= used


SETS = (
    BoxShifts(boxes=((3.0,),)),
    BoxShifts(boxes=((1.0, 2.0),)),
    BoxShifts(boxes=((2.0, 2.0),)),
    BallShifts(radius=2.0),
    BallShifts(radius=2.0, l1_radius=3.0),
    BlockShifts(norms=BoxShifts(boxes=((1.0, 2.0),)), sizes=(1, 1)),
)


def test_what_a_mechanism_of_sums_costs_is_carried_out():
    given = {"stddev": 3.0, "stddevs": (3.0, 4.0), "scale": 3.0, "scales": (3.0, 4.0), "variance": 30.0}
    found = set()
    for mechanism in MECHANISMS:
        fields = {name: given[name] for name in inspect.signature(mechanism).parameters if name in given}
        for shifts in SETS:
            for adjacency in lw.Adjacency:
                try:
                    event = mechanism(**fields).event(shifts, adjacency)
                except PrivacyError:  # a set of shifts that this mechanism does not take
                    continue
                require_plain(event)
                found |= {type(each) for each in walk(event)}
    assert found == RELEASES - {lw.BoundedRangeEvent}  # of choices


def test_an_allocation_of_rows_to_trees_is_refused_before_anybody_pays():
    schema = lw.Schema.uniform(0.0, 1.0, n_features=2, target=lw.Categorical("y", (0, 1)))
    estimator = trainers.SGBDTClassifier(
        epsilon=2.0, delta=1e-5, schema=schema, n_estimators=3, subsample=0.4, sampling="allocation",
        initial_score="zero",
    )  # fmt: skip
    with pytest.raises(RoundViolation, match=r"RandomAllocation: .*set sampling='poisson'.*Nothing was spent"):
        require_plain(estimator.make_plan(schema).event)
