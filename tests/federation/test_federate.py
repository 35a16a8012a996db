"""Federations: the model is the central one, owners refuse what they have to, and losses end as they should."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.ledger import DrawEntry, GrantEntry
from ledgerwood.curator.queries.leaf_statistics import LEAVES, LeafQuery
from ledgerwood.curator.queries.registry import TREES
from ledgerwood.curator.tables.trees import Table
from ledgerwood.errors import (
    FederationRefused,
    InvalidParameter,
    OwnersLost,
    RoundViolation,
    SchemaError,
    UnsupportedEvent,
)
from ledgerwood.federation import client_app, owner_of, server_app
from ledgerwood.federation.codec import pack, unpack
from ledgerwood.federation.messages import Ask, Ready, Refusal, Survivors, Uploaded
from ledgerwood.federation.options import FederationOptions, Tolerance
from ledgerwood.federation.owners.own import identity_at, verifying_key
from ledgerwood.federation.run import federate
from ledgerwood.federation.training import train
from ledgerwood.secure_aggregation import ClientRegistry, SessionKeys
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPXGBoostClassifier,
    FederatedGBDTClassifier,
    PrivateBoostingClassifier,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from ledgerwood.verification import verify_federation, verify_ledger

from .conftest import BUDGET, SCHEMA, Wire, parts, rows

COMMON = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-5}
SMALL = {"n_estimators": 3, "max_depth": 3}
ESTIMATORS = {
    "S-GBDT": SGBDTClassifier(**COMMON, **SMALL),
    "S-GBDT, sampled": SGBDTClassifier(**COMMON, **SMALL, subsample=0.3),
    "federated": FederatedGBDTClassifier(**COMMON, **SMALL),
    "feverless": FederatedGBDTClassifier(**COMMON, n_estimators=2, preset="feverless"),
    "iterative hessian": FederatedGBDTClassifier(**COMMON, n_estimators=6, preset="tr_newton_ih"),
    "Skellam": FederatedGBDTClassifier(**COMMON, **SMALL, candidates="uniform", noise="skellam"),
    "DPBoost": DPBoostClassifier(**COMMON, **SMALL),
    "DP-XGBoost": DPXGBoostClassifier(**COMMON, **SMALL),
    "PrivaTree": PrivaTreeClassifier(**COMMON),
    "private boosting": PrivateBoostingClassifier(**COMMON, **SMALL),
    "private boosting, Skellam": PrivateBoostingClassifier(**COMMON, **SMALL, noise="skellam", candidates="even"),
}


def seeded(estimator, seed=7):
    return type(estimator)(**{**estimator.get_params(), "random_state": seed})


def same(left, right, X):
    return np.array_equal(left.predict_proba(X), right.predict_proba(X))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_under_a_seed_the_model_is_the_central_one(name):
    X, y = rows(400)
    central = seeded(ESTIMATORS[name]).fit(X, y)
    for sizes in ((150, 50, 200), (1, 399)):
        found = federate(seeded(ESTIMATORS[name]), parts(X, y, sizes), engine="process")
        assert same(found, central, X)
        assert found.privacy_.epsilon == np.inf
        assert [entry.event for entry in found.ledger_.entries if isinstance(entry, DrawEntry)] == [
            entry.event for entry in central.ledger_.entries if isinstance(entry, DrawEntry)
        ]


def test_regression_weights_and_named_columns():
    pd = pytest.importorskip("pandas")
    X, _ = rows(300)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["kind"] = np.where(X[:, 1] > 0.5, "x", "z")
    y, weights = X[:, 0] * 3, np.linspace(0.1, 2, 300)
    features = (*SCHEMA.features, lw.Categorical("kind", ("x", "y", "z")))
    schema = lw.Schema(features=features, target=lw.Numeric("y", 0, 3), weight_bound=2)
    options = {"schema": schema, "epsilon": 1.0, "delta": 1e-5, "n_estimators": 4, "random_state": 3}
    central = SGBDTRegressor(**options).fit(frame, y, sample_weight=weights)
    clients = [(frame[:100], y[:100], weights[:100]), (frame[100:], y[100:], weights[100:])]
    found = federate(SGBDTRegressor(**options), clients, engine="process")
    assert np.array_equal(found.predict(frame), central.predict(frame))
    assert list(found.feature_names_in_) == list(frame.columns)


def test_secure_fits_spend_the_plan_on_every_ledger(owners):
    X, y = rows(300)
    group = owners(parts(X, y, (100, 100, 100)), allow_seed=False)
    found = train(SGBDTClassifier(**COMMON, **SMALL, subsample=0.5), Wire(group))
    assert found.privacy_.epsilon == pytest.approx(1.0, rel=1e-4)
    assert found.privacy_.randomness == "secure"
    assert any("secure aggregation" in text and "semi-honest" in text for text in found.privacy_.assumptions)
    assert len(found.federation_.rounds) == 3
    own = [entry for entry in found.ledger_.entries if isinstance(entry, GrantEntry)]
    assert found.federation_.session in own[0].purpose
    together = verify_federation(found.ledger_, [account.path for account in group.accounts])
    assert together.verdict == "confirmed"
    for account in group.accounts:
        report = verify_ledger(account.path)
        assert report.verdict == "confirmed"
        assert report.epsilon_readded == pytest.approx(found.privacy_.epsilon, rel=1e-4)


def test_models_are_saved_and_loaded(tmp_path):
    X, y = rows(100)
    found = federate(SGBDTClassifier(**COMMON, **SMALL), parts(X, y, (50, 50)), engine="process")
    found.save(tmp_path / "model")
    assert same(SGBDTClassifier.load(tmp_path / "model"), found, X)
    found.fit(X, y)
    assert "federation_" not in vars(found)


# ------------------------------------------------------------------------------------------------------------ dropouts


def central_over(estimator, given, record, monkeypatch):
    """The central fit in which question r reads only the rows of the owners that survived round r."""
    X, y = (np.concatenate(each) for each in zip(*given, strict=True))
    owner = np.repeat(np.arange(len(given)), [len(each[1]) for each in given])
    asked = itertools.count()
    whole = Table._evaluated

    def of_survivors(self, evaluation, query, sampled, budgets):
        survivors = record.rounds[next(asked)].survivors
        there = np.isin(owner, survivors)
        return whole(self, evaluation, query, there & sampled if sampled.size else there, budgets)

    with monkeypatch.context() as patch:
        patch.setattr(Table, "_evaluated", of_survivors)
        central = estimator.fit(X, y)
    assert next(asked) == len(record.rounds)
    return central


@pytest.mark.parametrize("name", ["S-GBDT, sampled", "DPBoost", "feverless", "PrivaTree"])
@pytest.mark.parametrize("way", ["there", "back"])
@pytest.mark.parametrize("what", ["upload", "recover", "unmask"])
def test_the_model_is_the_central_one_over_each_rounds_survivors(name, way, what, owners, monkeypatch):
    X, y = rows(240)
    given = parts(X, y, (40, 40, 40, 40, 40, 40))
    generator = np.random.default_rng(5)

    def lost(number, of, count):
        early = of == "upload" and what == "recover" and number == 0
        return way if early or (of == what and generator.random() < 0.2) else None

    found = train(seeded(ESTIMATORS[name]), Wire(owners(given), lost), FederationOptions(dropouts=0.45))
    record = found.federation_
    assert what == "unmask" or record.dropped > 0 or any(each.attempts > 1 for each in record.rounds)
    assert same(found, central_over(seeded(ESTIMATORS[name]), given, record, monkeypatch), X)


def test_too_few_owners_end_the_fit_and_open_nothing(owners):
    X, y = rows(120)
    group = owners(parts(X, y, (40, 40, 40)))
    wire = Wire(group, lambda number, what, count: "there" if what == "upload" and number else None)
    estimator = SGBDTClassifier(**COMMON, **SMALL)
    with pytest.raises(OwnersLost, match=r"fewer than 3 of 3 owners answered it.*stays spent"):
        train(estimator, wire)
    assert not any(what in ("recover", "unmask") for _, what, _, _ in wire.seen)
    assert not hasattr(estimator, "ensemble_")


def test_an_owner_that_is_silent_at_the_beginning_is_asked_again(owners, monkeypatch):
    waits = []
    clock = SimpleNamespace(sleep=waits.append, monotonic=lambda: 0.0)  # an exchange takes no time by this one
    monkeypatch.setattr("ledgerwood.federation.session.time", clock)
    X, y = rows(120)
    lost = {("columns", 1), ("hello", 2), ("hello", 5)}
    seen = {"columns": 0, "hello": 0}

    def silent(number, what, count):
        if what in seen:
            seen[what] += 1
            return "there" if (what, seen[what]) in lost else None
        return None

    wire = Wire(owners(parts(X, y, (40, 40, 40))), silent)
    found = train(seeded(ESTIMATORS["S-GBDT"]), wire)
    assert same(found, seeded(ESTIMATORS["S-GBDT"]).fit(X, y), X)
    never = Wire(owners(parts(X, y, (40, 40, 40))), lambda number, what, count: "there" if number == 2 else None)
    del waits[:]
    with pytest.raises(FederationRefused, match="1 of 3 owners do not take part. owner 2: no answer in time"):
        train(SGBDTClassifier(**COMMON, **SMALL), never)
    assert waits == [4.0, 8.0]  # its process may be starting


def test_an_owners_process_that_restarts_goes_on(owners):
    X, y = rows(120)
    group = owners(parts(X, y, (40, 40, 40)))
    central = seeded(ESTIMATORS["DPBoost"]).fit(X, y)

    def lost(number, what, count):
        if count % 5 == 0:
            group.restarted(number)

    found = train(seeded(ESTIMATORS["DPBoost"]), Wire(group, lost))
    assert same(found, central, X)
    assert found.federation_.dropped == 0


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("estimator", "options", "error", "message"),
    [
        (DPBoostClassifier(**COMMON, preset="np"), {}, RoundViolation, "ratios"),
        (SGBDTClassifier(**COMMON, **SMALL), {"noise": "clients"}, UnsupportedEvent, "Skellam"),
        (DPBoostClassifier(**COMMON), {"noise": "clients"}, UnsupportedEvent, "Skellam"),
        (DPBoostClassifier(**COMMON), {"unit": lw.PrivacyUnit.USER}, RoundViolation, "Gaussian or Skellam"),
        (SGBDTClassifier(**COMMON), {"noise": "both"}, InvalidParameter, "'server' or 'clients'"),
        (SGBDTClassifier(**COMMON), {"dropouts": 1.5}, InvalidParameter, "share of the owners"),
        (SGBDTClassifier(**COMMON), {"engine": "carrier pigeon"}, InvalidParameter, "'flower' or 'process'"),
    ],
)  # fmt: skip
def test_what_cannot_be_federated_is_refused_by_name_and_spends_nothing(estimator, options, error, message):
    X, y = rows(60)
    ledger = lw.Ledger(BUDGET, unit=options.get("unit", lw.PrivacyUnit.ROW))
    with pytest.raises(error, match=message):
        federate(estimator, parts(X, y, (30, 30)), ledger=ledger, **{"engine": "process", **options})
    assert ledger.spent().epsilon == 0.0
    assert len(ledger.entries) == 1


def test_ledgers_that_are_none_are_refused_by_name_before_anything_is_asked(tmp_path):
    """An owner's ledger is a file, which each of its processes opens; an open one is a natural mistake."""
    X, y = rows(60)
    given, ledger = parts(X, y, (30, 30)), lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    estimator = SGBDTClassifier(**COMMON, **SMALL)
    for made in (
        lambda: federate(estimator, given, ledgers=[ledger, ledger], engine="process"),
        lambda: client_app(given[0], ledger),
        lambda: owner_of(given[0], ledger, key=tmp_path / "key"),
    ):
        with pytest.raises(InvalidParameter, match=r"ledger.*Ledger.*the path of a file"):
            made()
    with pytest.raises(InvalidParameter, match=r"no ledger at .*missing\.jsonl: make one"):
        federate(estimator, given, ledgers=[tmp_path / "missing.jsonl"] * 2, engine="process")


def test_a_servers_app_of_nothing_to_train_is_not_made():
    with pytest.raises(InvalidParameter, match="must be a trainer of ledgerwood, not int"):
        server_app(3)
    with pytest.raises(InvalidParameter, match="clients=1 must be a whole number >= 2"):
        server_app(SGBDTClassifier(**COMMON), clients=1)


def test_replaced_clients_are_refused():
    X, y = rows(60)
    estimator = SGBDTClassifier(**COMMON, **SMALL, adjacency="replace-one")
    with pytest.raises(RoundViolation, match="two clients differ by more"):
        federate(estimator, parts(X, y, (30, 30)), unit=lw.PrivacyUnit.USER, engine="process")


def test_owners_that_do_not_fit_are_told_why(owners):
    X, y = rows(60)
    wide = (np.hstack([X[:30], X[:30]]), y[:30])
    with pytest.raises(SchemaError, match="owners 0 and 1 have other columns: 3 columns without names and 6"):
        federate(SGBDTClassifier(**COMMON), [(X[30:], y[30:]), wide], engine="process")
    with pytest.raises(FederationRefused, match="owner 1: SchemaTypeError: y is of type float64"):
        federate(SGBDTClassifier(**COMMON), [(X, y), (X, np.ones(60))], engine="process")
    with pytest.raises(InvalidParameter, match="one client hides nothing"):
        federate(SGBDTClassifier(**COMMON), [(X, y)], engine="process")
    other = owners(parts(X, y, (30, 30)), schema=dataclasses.replace(SCHEMA, weight_bound=2.0))
    with pytest.raises(FederationRefused, match="schema is not the one that this owner has"):
        train(SGBDTClassifier(**COMMON), Wire(other))
    for refused in ({"noise": "clients"}, {"allow_seed": False}):
        group = owners(parts(X, y, (30, 30)), **refused)
        with pytest.raises(FederationRefused, match=r"2 of 2 owners do not take part.*Nothing was spent"):
            train(seeded(SGBDTClassifier(**COMMON)), Wire(group))


def test_an_owner_refuses_less_tolerance_than_it_wants(owners):
    X, y = rows(60)
    estimator = FederatedGBDTClassifier(**COMMON, **SMALL, candidates="uniform", noise="skellam")
    group = owners(parts(X, y, (12,) * 5), colluding=0.4)
    with pytest.raises(FederationRefused, match="At most 3 may carry it"):
        train(estimator, Wire(group), FederationOptions(noise="clients", colluding=0.2))
    assert train(estimator, Wire(group), FederationOptions(noise="clients", colluding=0.4)).federation_.dropped == 0


def test_an_owner_refuses_beyond_its_own_budget(owners):
    X, y = rows(60)
    group = owners(parts(X, y, (30, 30)), budget=dataclasses.replace(BUDGET, epsilon=2.5))
    for _ in range(2):
        train(SGBDTClassifier(**COMMON, **SMALL), Wire(group))
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    with pytest.raises(FederationRefused, match="owner 0: BudgetExceeded"):
        train(SGBDTClassifier(**COMMON, **SMALL), Wire(group), ledger=ledger)
    assert ledger.spent().epsilon == 0.0
    assert all(verify_ledger(account.path).epsilon_readded == pytest.approx(2.0) for account in group.accounts)


def replies(wire, number, message):
    return unpack(wire.owners.all[number].answer(pack(message)))


def test_a_server_that_asks_for_more_gets_nothing(owners):
    """What a curious server might try beyond the protocol, against an owner that has answered a whole fit."""
    X, y = rows(120)
    wire = Wire(owners(parts(X, y, (40, 40, 40))))
    train(SGBDTClassifier(**COMMON, **SMALL), wire)
    asks = [unpack(request) for number, what, request, _ in wire.seen if what == "upload" and number == 0]
    unmasks = [unpack(request) for number, what, request, _ in wire.seen if what == "unmask" and number == 0]
    assert len(asks) == len(unmasks) == 3
    last, opened = asks[-1], unmasks[-1]
    forged = [
        *asks,  # every question once more
        dataclasses.replace(last, attempt=2),  # a further attempt at what was unmasked
        dataclasses.replace(last, round=4),  # one more sum than the plan has
        dataclasses.replace(last, round=4, draw=dataclasses.replace(last.draw, number=4)),
        dataclasses.replace(last, round=4, live=(0,)),  # alone
        dataclasses.replace(last, session=b"0" * 16),
        *unmasks,
        dataclasses.replace(opened, kind="recover", uploaded=(0, 1)),  # the other kind about one peer
        dataclasses.replace(opened, uploaded=(0, 1)),  # other survivors
        dataclasses.replace(opened, round=4),
        b"what?",
        None,
    ]
    for message in forged:
        reply = replies(wire, 0, message)
        assert not isinstance(reply, Uploaded)
        assert type(reply).__name__ in ("Refusal", "NotTold"), message
        if isinstance(message, Ask | Survivors) and message.session == last.session:
            assert isinstance(reply, Refusal)
    assert verify_ledger(wire.owners.accounts[0].path).epsilon_readded == pytest.approx(1.0)


# ------------------------------------------------------------------------------------------------------ active sessions


def registered(owners, given, **options):
    """Owners that know each other by a registry, which the server has, too."""
    group = owners(given, **options)
    identities = [identity_at(group.folder / f"{number}.key") for number in range(len(given))]
    registry = ClientRegistry(keys=tuple(map(verifying_key, identities)))
    group.options["registry"] = registry
    for number in range(len(given)):
        group.restarted(number)
    return group, registry


def test_an_active_session_trains_the_same_model_and_says_what_it_is(owners, monkeypatch):
    X, y = rows(200)
    given = parts(X, y, (50, 50, 50, 50))
    group, registry = registered(owners, given)
    wire = Wire(group, lambda number, what, count: "there" if (number, what) == (1, "upload") and count % 3 else None)
    found = train(seeded(ESTIMATORS["DPBoost"]), wire, FederationOptions(dropouts=0.25, registry=registry))
    assert same(found, central_over(seeded(ESTIMATORS["DPBoost"]), given, found.federation_, monkeypatch), X)
    assert found.federation_.dropped > 0
    assert found.federation_.threshold == 3  # above two thirds of four
    assert any("active security" in text for text in found.privacy_.assumptions)
    assert {what for _, what, _, _ in wire.seen} >= {"upload", "endorse", "recover", "unmask"}


def test_owners_with_a_registry_take_part_in_active_sessions_only(owners):
    X, y = rows(60)
    group, registry = registered(owners, parts(X, y, (20, 20, 20)))
    with pytest.raises(FederationRefused, match="active sessions only"):
        train(SGBDTClassifier(**COMMON), Wire(group))
    del group.options["registry"]
    for number in range(3):
        group.restarted(number)
    with pytest.raises(FederationRefused, match="which this owner does not have"):
        train(SGBDTClassifier(**COMMON), Wire(group), FederationOptions(registry=registry))


def test_a_server_cannot_invent_an_owner_or_show_two_views(owners):
    X, y = rows(60)
    group, registry = registered(owners, parts(X, y, (20, 20, 20)))
    wire = Wire(group)
    train(SGBDTClassifier(**COMMON, **SMALL), wire, FederationOptions(registry=registry))
    begin = next(unpack(request) for number, what, request, _ in wire.seen if what == "begin" and number == 0)
    forger = SessionKeys.derived(b"f" * 32, begin.hello.terms.session)
    invented = dataclasses.replace(
        begin, keys=(*begin.keys[:2], forger.public), signatures=(*begin.signatures[:2], forger.signature)
    )
    group.restarted(0)
    assert "has not signed its key" in replies(wire, 0, invented).reason
    unmask = [unpack(request) for number, what, request, _ in wire.seen if what == "unmask" and number == 0][-1]
    ask = [unpack(request) for number, what, request, _ in wire.seen if what == "upload" and number == 0][-1]
    assert isinstance(replies(wire, 0, begin), Ready)  # a process that has started again
    assert isinstance(replies(wire, 0, dataclasses.replace(unmask, endorsements={})), Refusal)
    for endorsements in ({}, dict(list(unmask.endorsements.items())[:2]), {0: b"0" * 64, 1: b"1" * 64, 2: b"2" * 64}):
        other = dataclasses.replace(unmask, round=ask.round, endorsements=endorsements)
        assert isinstance(replies(wire, 0, other), Refusal)


# ---------------------------------------------------------------------------------------------------------- fractions


def test_tolerances():
    none = Tolerance()
    assert (none.least(3), none.honest(3), none.least(2), none.honest(2)) == (3, 2, 2, 1)
    some = Tolerance(colluding=0.2, dropouts=0.3)
    assert (some.least(10), some.honest(10), some.least(100), some.honest(100)) == (7, 5, 70, 50)
    assert Tolerance(colluding=0.29).honest(100) == 71  # which floats make 28.99... colluders
    assert Tolerance(colluding=1 / 3).honest(6) == 4
    for hundredths in range(99):
        kept = Tolerance(colluding=hundredths / 100)
        assert kept.honest(100) == 100 - max(1, hundredths)
    with pytest.raises(InvalidParameter, match="nobody would be left"):
        Tolerance(colluding=0.5, dropouts=0.5)


def test_the_statistics_of_trees_have_nothing_to_finish_but_ratios():
    """Owners may put noise into the sums of a statistic: what a release is priced by is those sums themselves."""
    sums = np.arange(6).reshape(3, 2)
    for registry in (TREES, LEAVES):
        for kind in registry.kinds - {LeafQuery}:
            evaluation = registry.evaluation(kind.__new__(kind))
            if not evaluation.is_ratio(None):
                assert evaluation.finish(None, sums, None) is sums
