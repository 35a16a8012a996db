"""Statistics from outside in a federation: owners run the functions of their own list, and no others."""

import dataclasses
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.curator import DeclaredStatistic, NamedStatistic
from ledgerwood.curator.places.federated_rows import OwnersDraw, OwnersQuestion
from ledgerwood.curator.places.owner_rows import OwnerRows
from ledgerwood.curator.queries.named_statistics import trusted
from ledgerwood.errors import FederationRefused, InvalidParameter, RoundViolation
from ledgerwood.federation.codec import pack, unpack
from ledgerwood.federation.flower.simulation import SpooledOwners
from ledgerwood.federation.messages import Refusal
from ledgerwood.federation.owners.policy import OwnerPolicy
from ledgerwood.federation.run import federate
from ledgerwood.federation.training import train
from ledgerwood.mechanisms import BoxShifts, GaussianMechanism
from ledgerwood.verification import verify_federation

from .conftest import BUDGET, Wire

A = lw.Adjacency.ADD_REMOVE
FEATURES = (lw.Numeric("a", 0, 1), lw.Numeric("c", 0, 5, missing=True))
NUMBERS = lw.Schema(features=FEATURES, target=lw.Numeric("y", 0, 10))
CLASSES = lw.Schema(features=FEATURES, target=lw.Categorical("y", ("yes", "no")))
GENERATOR = np.random.default_rng(0)
X = np.column_stack([GENERATOR.integers(0, 20, 240) / 20, GENERATOR.uniform(0, 5, 240)])
X[::17, 1] = np.nan
NUMERIC = 6 * X[:, 0] + 2
LABELS = np.where(X[:, 0] > 0.4, "yes", "no")
SPLITS = ((120, 120), (1, 200, 39), (0, 240), (80, 0, 160))


@pytest.fixture
def regression(monkeypatch):
    """The example's package."""
    monkeypatch.delitem(sys.modules, "private_regression", raising=False)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples" / "private_regression"))
    yield importlib.import_module("private_regression")
    sys.modules.pop("private_regression", None)


def cut(sizes, *columns):
    ends = np.cumsum(sizes)[:-1]
    return list(zip(*(np.split(each, ends) for each in columns), strict=True))


@pytest.mark.parametrize("sizes", SPLITS)
def test_a_trainer_from_outside_has_the_central_model_however_rows_are_split(sizes, regression):
    for kind, schema, y in (
        (regression.PrivateLinearRegression, NUMBERS, NUMERIC),
        (regression.PrivateLogisticRegression, CLASSES, LABELS),
    ):
        options = {"epsilon": 1.0, "delta": 1e-6, "schema": schema, "n_steps": 3, "random_state": 4}
        central = kind(**options).fit(X, y)
        found = federate(kind(**options), cut(sizes, X, y), engine="process")
        assert np.array_equal(found.model_.values, central.model_.values)
        assert found.privacy_.assumptions[0] == central.privacy_.assumptions[0]


def test_weighted_rows_have_the_central_model(regression):
    schema, weights = dataclasses.replace(NUMBERS, weight_bound=2.0), np.linspace(0.01, 2.0, 240)
    options = {"epsilon": 1.0, "delta": 1e-6, "schema": schema, "n_steps": 3, "random_state": 4}
    central = regression.PrivateLinearRegression(**options).fit(X, NUMERIC, sample_weight=weights)
    clients = cut((100, 140), X, NUMERIC, weights)
    found = federate(regression.PrivateLinearRegression(**options), clients, engine="process")
    assert np.array_equal(found.model_.values, central.model_.values)


def small(regression, **options):
    return regression.PrivateLinearRegression(epsilon=1.0, delta=1e-6, schema=NUMBERS, n_steps=2, **options)


def test_a_secure_fit_states_who_answers_for_the_statistics(regression, owners):
    estimator = small(regression)
    group = owners(cut((120, 120), X, NUMERIC), statistics=estimator.declared_statistics(NUMBERS))
    found = train(estimator, Wire(group))
    for name in ("number of rows", "clipped gradient"):
        assert f"{name} declared by the private regression example, not proven here" in found.privacy_.assumptions
    assert 0.99 < found.privacy_.epsilon <= 1.0
    assert verify_federation(found.ledger_, [each.path for each in group.accounts]).verdict == "confirmed"


def spent_nothing(group, ledger):
    assert ledger.spent().epsilon == 0.0
    assert not any(account.path.exists() for account in group.accounts)  # refused before its ledger was looked at


def test_a_statistic_that_an_owner_does_not_have_is_refused_by_name_before_anybody_pays(regression, owners):
    estimator, ledger = small(regression), lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    count, _ = estimator.declared_statistics(NUMBERS)
    group = owners(cut((120, 120), X, NUMERIC), statistics=(count,))
    with pytest.raises(FederationRefused, match=r"owner 0: RoundViolation: 'clipped gradient' is .* not on this owner"):
        train(estimator, Wire(group), ledger=ledger)
    spent_nothing(group, ledger)


CHANGES = {
    "declared_by": {"declared_by": "somebody else"},
    "columns": {"columns": (*FEATURES, lw.Numeric("y", 0, 11))},
    "most": {"most": (1,) * 3},
    "exponent": {"exponent": -19},
    "norm": {"norm": 100.0},
    "one_by_one": {"one_by_one": True},
    "weighted": {"weighted": False},
    "sensitivities": {"sensitivities": {A: BoxShifts(boxes=((1.0,) * 3,))}},
    "kind of constants": {"constants": {"coefficients": np.zeros(4), "clip": 0.2}},
}


def test_every_declared_field_has_to_be_equal():
    compared = {field.name for field in dataclasses.fields(DeclaredStatistic)} - {"function", "rehearse", "constants"}
    assert compared == {*CHANGES, "name", "least"} - {"kind of constants"}


@pytest.mark.parametrize("what", CHANGES)
def test_a_statistic_that_an_owner_declares_otherwise_is_refused_by_name(what, regression, owners):
    estimator, ledger = small(regression), lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    count, gradient = estimator.declared_statistics(NUMBERS)
    group = owners(
        cut((120, 120), X, NUMERIC), statistics=(count, dataclasses.replace(gradient, least=None, **CHANGES[what]))
    )
    with pytest.raises(FederationRefused, match=rf"'clipped gradient' .* with another {what}"):
        train(estimator, Wire(group), ledger=ledger)
    spent_nothing(group, ledger)


def test_a_loop_that_asks_for_more_than_it_declares_is_refused_before_anybody_is_asked(regression, owners):
    silent = type("Silent", (regression.PrivateLinearRegression,), {"declared_statistics": lambda self, schema: ()})
    ledger, wire = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW), Wire(owners(cut((120, 120), X, NUMERIC)))
    estimator = silent(epsilon=1.0, delta=1e-6, schema=NUMBERS, n_steps=2)
    with pytest.raises(RoundViolation, match=r"number of rows declared by .* declared_statistics"):
        train(estimator, wire, ledger=ledger)
    spent_nothing(wire.owners, ledger)
    assert {what for _, what, _, _ in wire.seen} == {"columns"}


def test_a_loop_that_shows_its_question_only_later_gets_no_answer(regression, owners, monkeypatch):
    """What it asks of no rows is on the list, what it asks of real ones is not: the rehearsal cannot know."""
    made, estimator = regression.statistic, small(regression)
    wire = Wire(owners(cut((120, 120), X, NUMERIC), statistics=estimator.declared_statistics(NUMBERS)))

    def asked():
        return {request for _, what, request, _ in wire.seen if what == "upload"}

    def later(*arguments):
        return dataclasses.replace(made(*arguments), name="another") if asked() else made(*arguments)

    monkeypatch.setattr(regression, "statistic", later)
    with pytest.raises(RoundViolation, match="'another' is a statistic from outside, and is not on the list"):
        train(estimator, wire)
    assert len(asked()) == 1  # the number of rows


def test_an_owner_answers_nothing_else_whatever_a_server_sends(regression, owners):
    estimator = small(regression)
    group = owners(cut((120, 120), X, NUMERIC), statistics=estimator.declared_statistics(NUMBERS))
    wire = Wire(group)
    train(estimator, wire)
    last = [unpack(request) for number, what, request, _ in wire.seen if what == "upload" and number == 0][-1]
    named, mechanism = unpack(last.packed)
    assert isinstance(named, NamedStatistic)
    wider = dict(named.constants) | {"coefficients": np.zeros(5)}
    forged = [
        NamedStatistic(declared=named.declared, constants=tuple(wider.items())),
        NamedStatistic(declared=named.declared, constants=()),
        NamedStatistic(declared=(("name", "any"),), constants=()),
        NamedStatistic(declared=(), constants=()),
        NamedStatistic(declared=tuple((name, 1) for name, _ in named.declared), constants=named.constants),
    ]
    for query in forged:
        message = dataclasses.replace(last, round=4, packed=pack((query, mechanism)))
        assert isinstance(unpack(group.all[0].answer(pack(message))), Refusal)


def test_what_is_no_list_of_statistics_of_different_names_is_refused(regression):
    both = small(regression).declared_statistics(NUMBERS)
    for bad in ((both[0], both[0]), ("number of rows",), "number of rows", 5):
        with pytest.raises(InvalidParameter, match="statistics"):
            OwnerPolicy(statistics=bad)
    assert OwnerPolicy(statistics=list(both)).statistics == both


@pytest.mark.parametrize("weight_bound", [None, 2.0])
def test_sums_of_a_function_that_sees_blocks_do_not_depend_on_the_split(weight_bound):
    """A function that tells a row's place in its block: the place follows from the row's own values."""
    schema = dataclasses.replace(NUMBERS, weight_bound=weight_bound)
    places = DeclaredStatistic(
        name="places", declared_by="the tests", columns=schema.features, most=(1000, 1000), rehearse=False,
        function=lambda chunk: np.column_stack([np.arange(len(chunk["a"]))] * 2),
    )  # fmt: skip
    event = GaussianMechanism(stddev=9.0).event(places.sensitivity(A), A)
    draw = OwnersDraw(number=1, event=event, rate=1.0)
    question = OwnersQuestion(query=places, mechanism=GaussianMechanism(stddev=9.0), is_choice=False, draw=draw)
    weights = None if weight_bound is None else np.linspace(0.1, 2.0, 240)

    def total(sizes):
        found = [
            OwnerRows.of(x, y, w if weight_bound else None, schema, loss="squared", bins=64).sums(question, None, 0)
            for x, y, w in cut(sizes, X, NUMERIC, np.ones(240) if weights is None else weights)
        ]
        return np.sum(found, axis=0)

    whole = total((240,))
    assert whole[0] > 0
    for sizes in SPLITS:
        assert np.array_equal(total(sizes), whole)


def test_the_owners_of_a_simulation_bring_their_list_into_other_processes(regression):
    """ray pickles the client app into each message, with functions by their code."""
    cloudpickle = pytest.importorskip("ray").cloudpickle
    policy = OwnerPolicy(statistics=small(regression).declared_statistics(NUMBERS))
    found = cloudpickle.loads(cloudpickle.dumps(SpooledOwners(folder="nowhere", policy=policy))).policy
    for own, there in zip(policy.statistics, found.statistics, strict=True):
        assert trusted(NamedStatistic.of(own), found.statistics, "the list").name == there.name
        chunk = {"a": X[:5, 0], "c": X[:5, 1], "y": NUMERIC[:5]}
        given = (chunk, own.constants) if own.constants else (chunk,)
        assert np.array_equal(own.function(*given), there.function(*given))
