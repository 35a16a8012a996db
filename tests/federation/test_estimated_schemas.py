"""A federation that estimates its schema: the model of the same plan over all rows, one schema, and refusals."""

import contextlib
import dataclasses
import itertools
import os

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.ledger import Ledger
from ledgerwood.curator import Curator, KeyCounts, PlanPurse, TypedColumn, TypedColumns, UndeclaredTable, ValueCounts
from ledgerwood.curator.places.federated_rows import FitTerms, OwnersDraw
from ledgerwood.curator.queries.columns.key_tables import KeyTable
from ledgerwood.errors import (
    CalibrationFailed,
    FederationRefused,
    InvalidParameter,
    OwnersLost,
    PrivacyWarning,
    SchemaError,
)
from ledgerwood.federation.agreed import version
from ledgerwood.federation.codec import pack, unpack
from ledgerwood.federation.messages import (
    PROTOCOL,
    Ask,
    Begin,
    Describe,
    FederationTerms,
    Hello,
    NotTold,
    Ready,
    Refusal,
    Uploaded,
    Willing,
    schema_digest,
)
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.owners.own import verifying_key
from ledgerwood.federation.run import federate
from ledgerwood.federation.training import train
from ledgerwood.mechanisms import BoundedStabilityMechanism, GaussianMechanism, GaussianStabilityMechanism, SeededRandom
from ledgerwood.secure_aggregation import ClientRegistry, SessionKeys, SumTerms
from ledgerwood.trainers import (
    DPXGBoostClassifier,
    FederatedGBDTClassifier,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from ledgerwood.trainers.base.progress import unseen
from ledgerwood.trainers.estimated.purchase import rows_with_schema
from ledgerwood.trainers.parts.splits import structure_generator
from ledgerwood.verification import verify_federation, verify_ledger

from .conftest import BUDGET, Wire, parts

pd = pytest.importorskip("pandas")

A = lw.Adjacency.ADD_REMOVE
SMALL = {"n_estimators": 3, "max_depth": 2, "epsilon": 4.0, "delta": 1e-5}
ESTIMATORS = {
    "S-GBDT": SGBDTClassifier(**SMALL),
    "S-GBDT, sampled": SGBDTClassifier(**SMALL, subsample=0.5),
    "S-GBDT, filtered": SGBDTClassifier(**SMALL, filter="gdp", extra_trees=4),
    "DP-XGBoost": DPXGBoostClassifier(**SMALL),
    "federated": FederatedGBDTClassifier(**SMALL),
    "PrivaTree": PrivaTreeClassifier(epsilon=4.0, delta=1e-5),
    "replaced rows": SGBDTClassifier(**SMALL, adjacency="replace-one"),
}


def table(n=900, seed=0):
    """Numbers, texts, booleans; labels that depend on them."""
    random = np.random.default_rng(seed)
    words = np.array(["tech", "farm", "Ünï", "", "a\0b", "rare"], dtype=object)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "job": random.choice(words, n, p=[0.4, 0.2, 0.15, 0.1, 0.14, 0.01]),
            "flag": random.random(n) > 0.5,
        }
    )
    return frame, np.where(frame["age"] > 50, "yes", "no").astype(object)


def split(frame, y, sizes):
    ends = [0, *np.cumsum(sizes)]
    return [(frame[a:b].reset_index(drop=True), y[a:b]) for a, b in itertools.pairwise(ends)]


def with_seed(estimator, seed=7):
    return type(estimator)(**{**estimator.get_params(), "random_state": seed})


def central(estimator, frame, y, *, numeric=False):
    """The federation's plan, carried out on all rows in one table, by the curator that has them."""
    columns = dataclasses.replace(TypedColumns.of(frame, y, numeric_target=numeric), at_owners=True)
    plan, source = estimator.make_plan(columns), SeededRandom(estimator.random_state)
    ledger = Ledger(estimator.budget, unit=lw.PrivacyUnit.ROW)
    purse = PlanPurse(plan.event, ledger.grant(plan.event, purpose="central", delta=estimator.budget.delta))
    rows, schema, _ = rows_with_schema(
        UndeclaredTable.from_data(frame, y, columns), plan.purchase, purse, source, loss=plan.loss, bins=plan.max_bins
    )
    return schema, estimator._train(plan, Curator(rows, purse, source), structure_generator(source), unseen)


@pytest.mark.filterwarnings("ignore::ledgerwood.errors.PrivacyWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_under_a_seed_the_model_is_that_of_the_same_plan_over_all_rows(name):
    frame, y = table()
    schema, model = central(with_seed(ESTIMATORS[name]), frame, y)
    assert {"tech", "farm"} <= set(schema.features[1].categories)
    for sizes in ((300, 150, 450), (1, 899)):
        found = federate(with_seed(ESTIMATORS[name]), split(frame, y, sizes), engine="process")
        assert found.schema_ == schema
        assert pack(vars(found)[found._keeps]) == pack(model)
        assert found.privacy_.epsilon == np.inf


@pytest.mark.filterwarnings("ignore::ledgerwood.errors.PrivacyWarning")
def test_numbers_alone_and_a_regression():
    frame, _ = table()
    X = frame[["age"]].to_numpy().astype(float)
    y = X[:, 0] * 2.0
    estimator = SGBDTRegressor(**SMALL, random_state=3)
    schema, model = central(estimator, X, y, numeric=True)
    found = federate(estimator, parts(X, y, (100, 800)), engine="process")
    assert (found.schema_, pack(found.ensemble_)) == (schema, pack(model))
    # No table of keys: the plan of numbers is the central one, and so is the model.
    alone = SGBDTRegressor(**SMALL, random_state=3).fit(X, y)
    assert alone.schema_ == schema
    assert np.array_equal(alone.predict(X), found.predict(X))
    assert alone.plan_.event == found.plan_.event


@pytest.mark.filterwarnings("ignore::ledgerwood.errors.PrivacyWarning")
@pytest.mark.parametrize("kind", ["codes", "negative codes", "booleans", "texts"])
def test_labels_and_arrays_of_other_types(kind):
    random = np.random.default_rng(4)
    X = random.random((600, 2))
    y = {"codes": X[:, 0] > 0.5, "negative codes": X[:, 0] > 0.5, "booleans": X[:, 0] > 0.5, "texts": X[:, 0] > 0.5}[
        kind
    ]
    y = {"codes": y * 3, "negative codes": y * 2**40 - 2**50, "booleans": y, "texts": np.where(y, "b", "a")}[kind]
    estimator = SGBDTClassifier(**SMALL, random_state=1)
    schema, model = central(estimator, X, y)
    found = federate(estimator, parts(X, y, (200, 400)), engine="process")
    assert (found.schema_, pack(found.ensemble_)) == (schema, pack(model))
    assert sorted(found.classes_) == sorted(np.unique(y).tolist())
    T = np.where(X > 0.5, "u", "v")
    schema, model = central(with_seed(estimator), T, y)
    found = federate(with_seed(estimator), parts(T, y, (200, 400)), engine="process")
    assert (found.schema_, pack(found.ensemble_)) == (schema, pack(model))


def test_the_cost_is_the_plans_and_the_ledgers_agree(tmp_path):
    frame, y = table()
    files = [tmp_path / f"{number}.jsonl" for number in range(3)]
    for number, file in enumerate(files):
        Ledger.open(file, dataset=f"{number}", budget=BUDGET, unit=lw.PrivacyUnit.ROW).close()
    ledger = Ledger.open(tmp_path / "server.jsonl", dataset="all", budget=BUDGET, unit=lw.PrivacyUnit.ROW)
    model = federate(
        SGBDTClassifier(**SMALL), split(frame, y, (300, 300, 300)), ledger=ledger, ledgers=files, engine="process"
    )
    assert model.privacy_.epsilon == lw.price(model.plan_.event).epsilon(1e-5) <= 4.0
    events = model.plan_.purchase.events
    assert [type(each.events[1]) for each in events[1:]] == [lw.GaussianEvent] * 2
    assert any("exact list of the values" in text for text in model.privacy_.assumptions)
    assert verify_ledger(tmp_path / "server.jsonl").epsilon_readded == pytest.approx(4.0, rel=1e-4)
    together = verify_federation(tmp_path / "server.jsonl", files)
    assert together.verdict == "confirmed", together
    assert all(report.epsilon_readded == pytest.approx(4.0, rel=1e-4) for report in map(verify_ledger, files))
    assert federate(SGBDTClassifier(**SMALL), split(frame, y, (450, 450)), engine="process").score(frame, y) > 0.6


def test_a_central_fit_costs_what_it_did():
    frame, y = table()
    plan = SGBDTClassifier(**SMALL).make_plan(TypedColumns.of(frame, y, numeric_target=False))
    assert [len(each.events) for each in plan.purchase.events[1:]] == [2, 2]
    assert type(plan.purchase.key_mechanism(1)) is GaussianStabilityMechanism
    assert "at_owners" not in plan.purchase.to_record()["columns"]
    assert type(plan.purchase).from_record(plan.purchase.to_record()) == plan.purchase


def test_models_are_saved_and_loaded(tmp_path):
    frame, y = table()
    model = federate(SGBDTClassifier(**SMALL), split(frame, y, (450, 450)), engine="process")
    model.save(tmp_path / "model")
    again = SGBDTClassifier.load(tmp_path / "model")
    assert again.plan_ == model.plan_
    assert again.plan_.purchase.columns.at_owners
    assert np.array_equal(again.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.filterwarnings("ignore::ledgerwood.errors.PrivacyWarning")
def test_a_long_text_is_no_category_by_a_rule_of_its_own():
    frame, y = table()
    frame["job"] = np.where(frame["job"] == "tech", "x" * 33, np.where(frame["job"] == "farm", "y" * 32, frame["job"]))
    model = federate(SGBDTClassifier(**SMALL), split(frame, y, (450, 450)), engine="process")
    found = model.schema_.features[1].categories
    assert "y" * 32 in found
    assert "x" * 33 not in found


def test_too_many_distinct_values_are_a_matter_of_a_released_number():
    frame, y = table()
    frame["name"] = [f"person {i}" for i in range(len(frame))]
    with pytest.warns(PrivacyWarning, match="'name' .*too many distinct values: declare its categories"):
        model = federate(SGBDTClassifier(**SMALL), split(frame, y, (450, 450)), engine="process")
    assert model.schema_.features[3].categories == ("(other)",)
    with pytest.warns(PrivacyWarning, match="'y' .*too many distinct values"):
        federate(
            SGBDTClassifier(**SMALL), split(frame[["age"]], frame["name"].to_numpy(), (450, 450)), engine="process"
        )


# ------------------------------------------------------------------------------------------------------ what is refused


def test_what_cannot_be_estimated_is_refused_before_anything_is_spent(tmp_path):
    frame, y = table(60)
    clients = split(frame, y, (20, 40))
    ledger = Ledger.open(tmp_path / "server.jsonl", dataset="all", budget=BUDGET, unit=lw.PrivacyUnit.ROW)

    def refused(kind, match, estimator=None, given=clients, **options):
        with pytest.raises(kind, match=match):
            federate(estimator or SGBDTClassifier(**SMALL), given, ledger=ledger, engine="process", **options)
        assert len(ledger.entries) == 1

    skellam = FederatedGBDTClassifier(**SMALL, candidates="uniform", noise="skellam")
    refused(SchemaError, "Declare a schema", skellam, noise="clients")
    whole = lw.PrivacyUnit.USER
    other = Ledger.open(tmp_path / "user.jsonl", dataset="all", budget=BUDGET, unit=whole)
    with pytest.raises(SchemaError, match="Declare a schema"):
        federate(SGBDTClassifier(**SMALL), clients, ledger=other, engine="process", unit=whole)
    assert len(other.entries) == 1
    refused((InvalidParameter, CalibrationFailed), "declare a schema", DPXGBoostClassifier(**{**SMALL, "delta": 0.0}))
    refused((InvalidParameter, CalibrationFailed), "larger delta", SGBDTClassifier(**{**SMALL, "delta": 1e-12}))
    refused(
        FederationRefused,
        "sample_weight needs a declared schema",
        given=[(*each, np.ones(len(each[1]))) for each in clients],
    )
    text = clients[0][0].assign(age=clients[0][0]["age"].astype(str))
    refused(
        SchemaError, r"other columns: age \(text\).* and age \(numeric\)", given=[(text, clients[0][1]), clients[1]]
    )
    other_names = clients[0][0].rename(columns={"age": "years"})
    refused(SchemaError, "other columns", given=[(other_names, clients[0][1]), clients[1]])
    floats = [(each[0], np.zeros(len(each[1]))) for each in clients]
    refused(FederationRefused, "numbers with a fraction are not classes", given=floats)
    refused(FederationRefused, "pass an array or a series of numbers", SGBDTRegressor(**SMALL))


def test_an_owner_with_a_schema_of_its_own_and_one_with_a_small_budget(owners):
    frame, y = table(60)
    own = lw.Schema(features=(lw.Numeric("age", 0, 1),), target=lw.Categorical("y", ("no", "yes")))
    there = owners(split(frame, y, (20, 40)), schema=own)
    with pytest.raises(FederationRefused, match="a schema that it has declared"):
        train(SGBDTClassifier(**SMALL), Wire(there))
    small = owners([*split(frame, y, (30, 30))], budget=lw.Budget(epsilon=1.0, delta=1e-5, adjacency=A))
    small.accounts[0].path.unlink(missing_ok=True)
    with pytest.raises(FederationRefused, match="does not fit into what is left"):
        train(SGBDTClassifier(**SMALL), Wire(small))


# ------------------------------------------------------------------------------------------------ losses and deviations


@pytest.mark.filterwarnings("ignore::ledgerwood.errors.PrivacyWarning")
@pytest.mark.parametrize("when", ["before", "after", "between"])
def test_an_owner_that_is_started_again_is_told_the_schema(owners, when):
    frame, y = table(300)
    expected = federate(SGBDTClassifier(**SMALL, random_state=5), split(frame, y, (100, 200)), engine="process")
    there = owners(split(frame, y, (100, 200)))
    at = {"before": 8, "between": None, "after": 30}[when]

    def restart(number, what, count):
        if count == at or (when == "between" and what == "schema" and number == 1):
            there.restarted(1)
            return "there" if when == "between" else None
        return None

    model = train(SGBDTClassifier(**SMALL, random_state=5), Wire(there, restart))
    assert pack(model.ensemble_) == pack(expected.ensemble_)


def test_an_active_session(owners):
    frame, y = table(300)
    there = owners(split(frame, y, (100, 100, 100)))
    registry = ClientRegistry(keys=tuple(verifying_key(owner._identity) for owner in there.all))
    there = owners(split(frame, y, (100, 100, 100)), registry=registry)
    model = train(SGBDTClassifier(**SMALL), Wire(there), FederationOptions(registry=registry))
    assert "active security" in " ".join(model.privacy_.assumptions)


def test_a_server_that_tells_two_schemas_gets_no_sum(owners):
    """What owners are asked is bound to the schema by which they encoded: masks do not cancel across two of them."""
    frame, y = table(300)
    there = owners(split(frame, y, (100, 200)))
    plain, told = Wire(there), {}

    class Splitting(Wire):
        def exchange(self, requests, *, what):
            if what == "schema":
                for number, request in requests.items():
                    begin = unpack(request)
                    if number == 1:
                        first = dataclasses.replace(begin.schema.features[0], high=begin.schema.features[0].high + 1)
                        features = (first, *begin.schema.features[1:])
                        begin = dataclasses.replace(begin, schema=dataclasses.replace(begin.schema, features=features))
                    told[number] = begin.schema
                    requests = {**requests, number: pack(begin)}
            elif told and what == "upload":
                requests = {
                    number: pack(dataclasses.replace(unpack(each), schema=schema_digest(told[number])))
                    if isinstance(unpack(each), Ask)
                    else each
                    for number, each in requests.items()
                }
            return super().exchange(requests, what=what)

    seen = []

    def sums(self, question):
        seen.append(whole(self, question))
        return seen[-1]

    from ledgerwood.federation.session import FederationSession

    whole = FederationSession.sums
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FederationSession, "sums", sums)
        with contextlib.suppress(OwnersLost):
            train(SGBDTClassifier(**SMALL), Splitting(there))
    assert told[0] != told[1]
    after = seen[3:]  # age, job and y were counted under no schema
    assert all(np.abs(each.astype(float)).max() > 2.0**50 for each in after)  # masks: sums are below 2**35
    assert plain.count == 0


def terms(columns, event, *, schema=None, n=2):
    fit = FitTerms(
        trainer="x", event=event, delta=1e-6, schema=schema, loss="logistic", bins=32, seeded=False, columns=columns
    )
    return FederationTerms(
        session=os.urandom(16), fit=fit, noise="server", unit=lw.PrivacyUnit.ROW, rows_per_client=1, honest=1, least=2,
        server="s", sums=SumTerms(n_clients=n, degree=n - 1, threshold=n // 2 + 1),
    )  # fmt: skip


def said(owner, message):
    return unpack(owner.answer(pack(message)))


COLUMNS = TypedColumns(
    features=(TypedColumn("age", "numeric"), TypedColumn("job", "text"), TypedColumn("flag", "boolean")),
    target=TypedColumn("y", "text"), at_owners=True,
)  # fmt: skip
KEYS = BoundedStabilityMechanism(stddev=3.0, threshold=20, room=1024)
BINS, NOISE = ValueCounts(column=0, edges=(0.0, 50.0, 100.0)), GaussianMechanism(stddev=4.0)
ASKED = KeyTable(column=1, room=1024, salt=bytes(16))
FOUND = lw.Schema(
    features=(lw.Numeric("age", 0, 128, missing=True), lw.Categorical("job", ("farm",), missing=True),
              lw.Categorical("flag", (False, True), missing=True)),
    target=lw.Categorical("y", ("no", "yes")),
)  # fmt: skip


@pytest.fixture
def begun(owners):
    """An owner with a session that has begun, and its first request."""
    frame, y = table(50)
    there = owners([(frame, y)], allow_seed=False)
    plan = lw.Composed((NOISE.event(BINS.sensitivity(A), A), *KEYS.event(A).events))
    agreed = terms(COLUMNS, plan)
    hello = Hello(terms=agreed, number=0, secret=b"")
    willing = said(there.all[0], hello)
    assert isinstance(willing, Willing)
    other = SessionKeys.derived(os.urandom(32), agreed.session).public
    begin = Begin(hello=hello, keys=(willing.key, other), signatures=(), offset=0)
    assert isinstance(said(there.all[0], begin), Ready)
    return there, agreed, begin


def question(agreed, query, mechanism, event, *, choice=False, draw=1, round_=1, schema=b""):
    return Ask(
        session=agreed.session, round=round_, attempt=1, live=(0, 1),
        draw=OwnersDraw(number=draw, event=event, rate=1.0), is_choice=choice, packed=pack((query, mechanism)),
        known=0, news=(), schema=schema,
    )  # fmt: skip


def test_an_owner_answers_what_the_plan_pays_for_and_nothing_else(begun):
    there, agreed, begin = begun
    owner = there.all[0]
    bins, keys = NOISE.event(BINS.sensitivity(A), A), KEYS.event(A)
    plain = GaussianStabilityMechanism(stddev=3.0, threshold=20)
    weak = BoundedStabilityMechanism(stddev=1.0, threshold=20, room=1024)
    for query, mechanism, event, choice in (
        (KeyCounts(column=1), plain, plain.event(A), True),  # a list of keys is no sum
        (KeyCounts(column=1), KEYS, keys, True),
        (ASKED, weak, keys, True),
        (ASKED, KEYS, bins, True),
        (dataclasses.replace(ASKED, room=2048), KEYS, keys, True),
        (dataclasses.replace(ASKED, column=0), KEYS, keys, True),  # numbers have no keys
        (dataclasses.replace(ASKED, column=2), KEYS, lw.Composed((keys, keys)), True),
        (dataclasses.replace(BINS, column=1), NOISE, bins, False),
        (BINS, GaussianMechanism(stddev=1.0), bins, False),
        (ASKED, NOISE, bins, False),
    ):
        assert isinstance(said(owner, question(agreed, query, mechanism, event, choice=choice)), Refusal)
    sampled = question(agreed, BINS, NOISE, bins)
    for forged in ({"rate": 0.5}, {"rate": None}, {"group": 0}, {"ends": (1 << 64,)}):
        reply = said(owner, dataclasses.replace(sampled, draw=dataclasses.replace(sampled.draw, **forged)))
        assert isinstance(reply, Refusal)
    reply = said(owner, question(agreed, BINS, NOISE, bins))
    assert isinstance(reply, Uploaded)
    assert reply.shape == (2, 1)
    reply = said(owner, question(agreed, ASKED, KEYS, keys, choice=True, draw=2, round_=2))
    assert isinstance(reply, Uploaded)
    # Each draw is there once.
    again = said(owner, question(agreed, ASKED, KEYS, keys, choice=True, draw=5, round_=3))
    assert isinstance(again, Refusal)


def test_one_schema_for_all_of_a_session(begun):
    there, agreed, begin = begun
    owner, digest = there.all[0], schema_digest(FOUND)
    asked = question(agreed, BINS, NOISE, NOISE.event(BINS.sensitivity(A), A))
    assert said(owner, dataclasses.replace(asked, schema=digest)) == NotTold(known=-1)
    wrong = dataclasses.replace
    for schema in (
        wrong(FOUND, features=FOUND.features[:2]),
        wrong(FOUND, features=(*FOUND.features[:2], lw.Numeric("flag", 0, 1))),
        wrong(FOUND, features=(lw.Numeric("years", 0, 1), *FOUND.features[1:])),
        wrong(FOUND, target=lw.Numeric("y", 0, 1)),
        wrong(FOUND, target=None),
        wrong(FOUND, weight_bound=2.0),
    ):
        assert isinstance(said(owner, wrong(begin, schema=schema)), Refusal)
    assert isinstance(said(owner, wrong(begin, schema=FOUND)), Ready)
    assert isinstance(said(owner, wrong(begin, schema=FOUND)), Ready)
    other = wrong(FOUND, features=(lw.Numeric("age", 0, 64, missing=True), *FOUND.features[1:]))
    assert "another estimated schema" in said(owner, wrong(begin, schema=other)).reason
    # Columns are not counted any more, and no other schema is spoken of.
    assert "another schema" in said(owner, asked).reason
    assert "another schema" in said(owner, wrong(asked, schema=schema_digest(other))).reason
    assert isinstance(said(owner, wrong(asked, schema=digest)), Refusal)
    there.restarted(0)
    assert isinstance(said(there.all[0], begin), Ready)  # without a word of the schema
    assert "not counted any more" in said(there.all[0], asked).reason
    assert isinstance(said(there.all[0], wrong(begin, schema=other)), Refusal)
    assert isinstance(said(there.all[0], wrong(begin, schema=FOUND)), Ready)


def test_a_restart_with_other_rows_or_in_another_order_is_refused(begun):
    there, _, begin = begun
    frame, y = there.given[0]
    assert isinstance(said(there.all[0], dataclasses.replace(begin, schema=FOUND)), Ready)
    for other in (
        (frame[::-1].reset_index(drop=True), y[::-1]),
        (frame[1:], y[1:]),
        (frame.assign(age=frame["age"] + 1), y),
    ):
        there.given[0] = other
        there.restarted(0)
        assert isinstance(said(there.all[0], begin), Refusal)
    there.given[0] = frame, y
    there.restarted(0)
    assert isinstance(said(there.all[0], begin), Ready)


def test_terms_of_other_columns_and_a_declared_session(owners):
    frame, y = table(20)
    owner = owners([(frame, y)], allow_seed=False).all[0]
    event = NOISE.event(BINS.sensitivity(A), A)
    first = TypedColumn("age", "text")
    for columns in (
        dataclasses.replace(COLUMNS, features=(first, *COLUMNS.features[1:])),
        dataclasses.replace(COLUMNS, features=COLUMNS.features[:2]),
        dataclasses.replace(COLUMNS, target=TypedColumn("y", "boolean")),
        dataclasses.replace(COLUMNS, at_owners=False),
    ):
        assert isinstance(said(owner, Hello(terms=terms(columns, event), number=0, secret=b"")), Refusal)
    for neither in ((None, None), (COLUMNS, FOUND)):
        with pytest.raises(InvalidParameter, match="schema"):
            terms(neither[0], event, schema=neither[1])
    declared = terms(None, event, schema=FOUND)
    hello = Hello(terms=declared, number=0, secret=b"")
    key = said(owner, hello).key
    other = SessionKeys.derived(os.urandom(32), declared.session).public
    begin = Begin(hello=hello, keys=(key, other), signatures=(), offset=0)
    assert isinstance(said(owner, begin), Ready)
    assert "is declared" in said(owner, dataclasses.replace(begin, schema=FOUND)).reason


def test_types_are_described_by_types_alone(owners):
    """Neither a value nor the number of rows has a part in what an owner describes."""
    ask = Describe(protocol=PROTOCOL, version=version(), numeric_target=False)
    frame, y = table(40)
    other = ((frame, y), (frame[:1], y[:1]), (frame[:0], y[:0]), (frame.assign(job="w" * 500), y))
    assert len({pack(said(owners([rows]).all[0], ask)) for rows in other}) == 1
    assert said(owners([(frame, y)]).all[0], dataclasses.replace(ask, numeric_target=None)).columns is None
