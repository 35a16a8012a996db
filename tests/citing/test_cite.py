"""Whatever the library offers has its references, or says that there is none."""

import sys
from typing import get_args

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.events.base import Derived
from ledgerwood.accounting.events.serial import RECORDED
from ledgerwood.accounting.filters import ChargeMethod, Filter
from ledgerwood.accounting.odometers import Odometer
from ledgerwood.citing import tables
from ledgerwood.citing.tables import OF_EVENTS, OF_MECHANISMS, OF_METHODS, public_mechanisms
from ledgerwood.errors import InvalidParameter, PrivacyError, UnsupportedEvent
from ledgerwood.references import Cited, accounting, mechanisms, systems

A = lw.Adjacency.ADD_REMOVE
GAUSSIAN = lw.GaussianEvent(noise_multiplier=2.0, adjacency=A)
STEPS = lw.Repeated(lw.PoissonSampled(GAUSSIAN, sampling_rate=0.01), count=100)


def subclasses(kind):
    return {kind, *(each for child in kind.__subclasses__() for each in subclasses(child))}


def test_every_event_that_a_user_can_state_has_its_line():
    public = {value for name in dir(lw) if isinstance(value := getattr(lw, name), type) and issubclass(value, lw.Event)}
    assert public - {lw.Event} <= set(OF_EVENTS)
    here = {kind for kind in subclasses(lw.Event) if kind.__module__.startswith("ledgerwood.accounting.events.")}
    here = {kind for kind in here if vars(sys.modules[kind.__module__])[kind.__name__] is kind}  # not as before `slots`
    stated = {kind for kind in here if not issubclass(kind, Derived) and not kind.__abstractmethods__}
    assert set(OF_EVENTS) == set(RECORDED) == stated


def test_a_line_too_few_or_too_many_stops_the_import():
    for listed in (set(OF_EVENTS) - {lw.GaussianEvent}, {*OF_EVENTS, int}):
        with pytest.raises(PrivacyError, match="differ in"):
            tables._require_complete("events", listed, RECORDED)


def test_every_method_filter_odometer_and_mechanism_has_its_line():
    assert set(OF_METHODS) == {*get_args(get_args(ChargeMethod)[0]), *get_args(get_args(ChargeMethod)[1])}
    filters = {
        lw.BasicFilter: {}, lw.ZCDPFilter: {}, lw.GDPFilter: {}, lw.RenyiFilter: {"order": 8.0},
        lw.AdvancedCompositionFilter: {"delta_prime": 1e-6},
    }  # fmt: skip
    assert set(filters) == set(get_args(Filter))
    for kind, parameters in filters.items():
        assert len(lw.cite(kind(**parameters)).keys) > 1, kind
    assert len(get_args(Odometer)) == 3
    assert {kind.__name__ for kind in public_mechanisms()} >= {"LaplaceMechanism", "GridlessMechanism"}
    assert set(OF_MECHANISMS) == public_mechanisms()


def test_an_event_cites_its_parts_once_and_its_price_the_method_too():
    event = lw.Composed((STEPS, GAUSSIAN, lw.LaplaceEvent(noise_multiplier=1.0, adjacency=A)))
    found = lw.cite(event)
    assert found.keys == (
        "zhu2022optimal", "balle2018subsampling", "mironov2019sampled", "balle2018improving", "dong2022gaussian",
        "dwork2006calibrating", "ledgerwood",
    )  # fmt: skip
    assert accounting.DOROSHENKO_2022 in lw.cite(lw.price(STEPS, method="pld")).references
    assert accounting.CANONNE_2020 in lw.cite(lw.price(STEPS, method="renyi")).references
    assert accounting.CANONNE_2020 not in lw.cite(STEPS).references


def test_the_answer_is_printed_as_bibtex_in_a_stable_order(parsed):
    found = lw.cite(STEPS, GAUSSIAN, lw.GDPFilter())
    assert str(found) == repr(found) == lw.cite(STEPS, GAUSSIAN, lw.GDPFilter()).bibtex
    assert tuple(parsed(str(found))) == found.keys
    assert found.keys[-1] == "ledgerwood"
    assert "koskela2023individual" in found.keys
    assert "<pre" not in found._repr_html_()


def test_an_event_of_another_package_and_other_values_are_refused():
    class Foreign(lw.GaussianEvent):
        pass

    with pytest.raises(UnsupportedEvent, match="not one of the library's events"):
        lw.cite(Foreign(noise_multiplier=1.0, adjacency=A))
    for wrong in (None, "dong2022gaussian", 3, lw.GaussianEvent, object()):
        with pytest.raises(InvalidParameter, match="a plan, an estimator, an event"):
            lw.cite(wrong)
    with pytest.raises(InvalidParameter, match="at least one"):
        lw.cite()


def test_a_ledger_cites_its_plans_how_they_were_charged_and_its_filter():
    budget = lw.Budget(epsilon=10.0, delta=1e-5, adjacency=A)
    ledger = lw.Ledger(budget, unit=lw.PrivacyUnit.ROW, filter=lw.ZCDPFilter())
    grant = ledger.grant(lw.Repeated(GAUSSIAN, count=2), purpose="train")
    for thing in (ledger, ledger.record()):
        keys = lw.cite(thing).keys
        assert {"balle2018improving", "bun2016concentrated", "whitehouse2023fully", "canonne2020discrete"} < set(keys)
    assert "whitehouse2023fully" in lw.cite(grant).keys
    assert "balle2018improving" in lw.cite(grant.draw(GAUSSIAN, purpose="one")).keys


def test_a_record_from_a_checkpoint_says_what_it_does_not_cover():
    budget = lw.Budget(epsilon=10.0, delta=1e-5, adjacency=A)
    ledger = lw.Ledger(budget, unit=lw.PrivacyUnit.ROW, filter=lw.BasicFilter())
    ledger.spend(lw.LaplaceEvent(noise_multiplier=1.0, adjacency=A), purpose="all drawn")
    ledger.grant(lw.PureEvent(epsilon=0.1, adjacency=A), purpose="held")
    ledger.checkpoint()
    whole, later = lw.cite(ledger), lw.cite(ledger.record().from_checkpoint())
    assert not whole.notes
    assert "dwork2006calibrating" in whole.keys
    assert "entries before the last checkpoint" in later.notes[0]
    assert "kairouz2015composition" in later.keys  # of the grant that is still held


SYSTEMS = {
    "sgbdt": systems.KIRSCHTE_2023, "dpboost": systems.LI_2020, "dpxgboost": systems.GRISLAIN_2021,
    "federated": systems.MADDOCK_2022, "privatree": systems.VOS_2023, "boosting": systems.KIRSCHTE_2023,
}  # fmt: skip
SCHEMA = lw.Schema(
    features=(lw.Numeric("a", 0, 1), lw.Numeric("b", 0, 1), lw.Categorical("c", ("x", "y"))),
    target=lw.Categorical("t", ("no", "yes")),
)


def own_systems():
    from ledgerwood.trainers import known
    from ledgerwood.trainers.base.systems import System

    return {name.lower(): value for name, value in vars(known).items() if isinstance(value, System)}


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_trainer_of_the_library_names_its_papers_before_a_fit(name):
    assert set(own_systems()) == set(SYSTEMS)
    for kind in own_systems()[name].estimators:
        found = lw.cite(kind())
        assert found.references[0] == SYSTEMS[name]
        assert "known after fit" in found.notes[0]
        assert kind._plan_type.references is not None
    estimator = own_systems()[name].for_target(SCHEMA)(epsilon=1.0, delta=1e-6, schema=SCHEMA)
    found, plan = lw.cite(estimator), estimator.make_plan(SCHEMA)
    assert not found.notes
    assert found.keys == lw.cite(plan).keys
    assert set(lw.cite(lw.price(plan.event)).keys) <= set(found.keys)


def test_choices_and_their_mechanisms_are_told_apart():
    from ledgerwood.trainers import DPBoostClassifier, PrivaTreeClassifier

    plain = lw.cite(DPBoostClassifier(schema=SCHEMA)).references
    gridless = lw.cite(DPBoostClassifier(schema=SCHEMA, preset="enhanced")).references
    assert mechanisms.MCSHERRY_TALWAR_2007 in plain
    assert systems.KIRSCHTE_2023 not in plain
    assert systems.KIRSCHTE_2023 in gridless
    tree = lw.cite(PrivaTreeClassifier(schema=SCHEMA)).references
    assert mechanisms.MCKENNA_2020 in tree
    assert mechanisms.GILLENWATER_2021 not in tree
    assert mechanisms.GILLENWATER_2021 in lw.cite(PrivaTreeClassifier(schema=SCHEMA, preset="paper")).references


def test_a_fitted_model_cites_its_plan_and_the_filter_of_a_shared_ledger():
    from ledgerwood.trainers import SGBDTClassifier

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=(60, 2)), rng.integers(2, size=60)]).astype(object)
    X[:, 2] = np.where(X[:, 2] == 1, "x", "y")
    y = np.where(X[:, 0].astype(float) > 0.5, "yes", "no")
    new = {"n_estimators": 2, "max_depth": 1, "subsample": 1.0, "schema": SCHEMA, "random_state": 1}
    alone = SGBDTClassifier(epsilon=1.0, delta=1e-6, **new).fit(X, y)
    assert lw.cite(alone).keys == lw.cite(alone.plan_).keys
    budget = lw.Budget(epsilon=10.0, delta=1e-5, adjacency=A)
    ledger = lw.Ledger(budget, unit=lw.PrivacyUnit.ROW, filter=lw.GDPFilter())
    ledger.spend(GAUSSIAN, purpose="another plan")
    shared = SGBDTClassifier(epsilon=1.0, delta=1e-6, **new).fit(X, y, ledger=ledger)
    assert accounting.SMITH_THAKURTA_2022 in lw.cite(shared).references
    assert accounting.SMITH_THAKURTA_2022 not in lw.cite(alone).references


def test_searches_and_validations_cite_their_candidates():
    from ledgerwood.trainers import PrivateSearch, SGBDTClassifier, ValidationPlan

    candidate = SGBDTClassifier(subsample=1.0, initial_score="zero", schema=SCHEMA, epsilon=1.0, delta=1e-6)
    search = PrivateSearch(candidate, [{"max_depth": 1}, {"max_depth": 2}], schema=SCHEMA, epsilon=1.0, delta=1e-6)
    found = lw.cite(search).references
    assert found[:3] == (mechanisms.LIU_2019, mechanisms.PAPERNOT_2022, systems.KIRSCHTE_2023)
    assert lw.cite(PrivateSearch(SGBDTClassifier(), [{}])).references[1] == mechanisms.PAPERNOT_2022
    plan = ValidationPlan.of(candidate, n_features=3, cv=3)
    assert lw.cite(plan).references[0] == systems.KIRSCHTE_2023


def test_an_estimated_schema_cites_how_categories_are_found():
    from ledgerwood.curator import TypedColumn, TypedColumns
    from ledgerwood.trainers import SGBDTClassifier

    columns = TypedColumns(
        features=(TypedColumn("a", "numeric"), TypedColumn("c", "text")), target=TypedColumn("t", "text")
    )
    plan = SGBDTClassifier(epsilon=1.0, delta=1e-6).make_plan(columns)
    assert mechanisms.KOROLOVA_2009 in lw.cite(plan).references
    assert mechanisms.KOROLOVA_2009 not in lw.cite(SGBDTClassifier(schema=SCHEMA)).references


def test_audits_and_attacks_cite_their_papers():
    from ledgerwood.verification import attack_model, audit, membership
    from ledgerwood.verification.attacks.membership import ATTACKS, REFERENCES

    def sampler(dataset, n, rng):
        return dataset[0] + rng.laplace(scale=1.0, size=n)

    claim = lw.LaplaceEvent(noise_multiplier=1.0, adjacency=A)
    rng = np.random.default_rng(0)
    found = audit(sampler, pair=([0.0], [1.0]), claim=claim, n=2_000, alpha=0.05, numeric="ideal", rng=rng)
    assert lw.cite(found).keys == ("ding2018detecting", "bichsel2021dpsniper", "dwork2006calibrating", "ledgerwood")
    assert set(REFERENCES) == set(ATTACKS)
    assert attack_model is membership.attack_model


def test_whoever_writes_a_plan_may_bring_its_papers():
    from ledgerwood.trainers.base.citations import CitedPlan

    mine = lw.Reference(key="doe2031trees", kind="misc", authors=("Doe, Jane",), title="Trees", year=2031)

    class Silent(CitedPlan):
        event = STEPS

    class Told(CitedPlan):
        event = STEPS
        references = (mine,)

    class Ours(CitedPlan):
        event = STEPS
        references = ()

    assert "Silent names no papers" in lw.cite(Silent()).notes[0]
    assert lw.cite(Told()).references[0] == mine
    assert not lw.cite(Told()).notes
    assert not lw.cite(Ours()).notes
    assert isinstance(Told(), Cited)
