"""Streams in a federation: one payment for all calls, and one account for each unit, at its owner."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.individuals import FULL
from ledgerwood.accounting.ledger import DrawEntry, GrantEntry
from ledgerwood.curator.places.row_accounts import RowAccounts
from ledgerwood.errors import FederationRefused, InvalidParameter, LedgerError, OwnersLost, PrivacyError, RoundViolation
from ledgerwood.federation.codec import pack, unpack
from ledgerwood.federation.messages import NotTold, Ready, Refusal, Uploaded
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.owners.own import OwnRows, identity_at
from ledgerwood.federation.owners.owner import Owner
from ledgerwood.federation.owners.policy import OwnerPolicy
from ledgerwood.federation.run import federate
from ledgerwood.federation.streams import FederatedStream, OwnersPartialFit
from ledgerwood.trainers import DPBoostClassifier, SGBDTClassifier
from ledgerwood.verification import verify_federation

from .conftest import SCHEMA, Owners, Wire, parts, rows

COMMON = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-5, "n_estimators": 5, "max_depth": 3}
FULL_BATCH = SGBDTClassifier(**COMMON)
SAMPLED = SGBDTClassifier(**COMMON, subsample=0.5)


def seeded(estimator, seed=7):
    return type(estimator)(**{**estimator.get_params(), "random_state": seed})


def same(left, right, X):
    return np.array_equal(left.predict_proba(X), right.predict_proba(X))


def calls(n=3, size=60, owners=3):
    """For each call the rows of each owner: units come again in later calls, in another order, and some twice."""
    found = []
    for call in range(n):
        X, y = rows(size * owners, seed=call)
        generator = np.random.default_rng(call)
        given = []
        for number, (own, labels) in enumerate(parts(X, y, (size,) * owners)):
            keys = generator.integers(0, size, size) + 1000 * number + 20 * call
            given.append((own, labels, keys))
        found.append(given)
    return found


def together(given):
    return tuple(np.concatenate(each) for each in zip(*given, strict=True))


@pytest.mark.parametrize("estimator", [FULL_BATCH, SAMPLED], ids=["full batch", "sampled"])
def test_under_a_seed_the_model_is_the_central_one_after_each_call(estimator):
    central = seeded(estimator)
    X, _ = rows(100, seed=9)
    with FederatedStream(seeded(estimator), clients=3) as stream:
        for number, given in enumerate(calls(), start=1):
            found = stream.partial_fit(given)
            central.partial_fit(*together(given))
            assert same(found, central, X)
            assert len(found.ensemble_.trees) == 5 * number
            kinds = [type(entry) for entry in found.ledger_.entries]
            assert kinds == [type(entry) for entry in central.ledger_.entries]
            assert found.stream_.claims == central.stream_.claims == number


class StreamOwners(Owners):
    """Owners whose rows are those of the present call."""

    def made(self, number):
        def present():
            X, y, keys = self.given[number]
            return OwnRows(X=X, y=y, keys=keys)

        return Owner(
            present, account=self.accounts[number], identity=identity_at(self.folder / f"{number}.key"),
            policy=OwnerPolicy(**{"allow_seed": True, **self.options}),
        )  # fmt: skip


def accounts_of(group, number):
    (path,) = (group.folder / f"{number}.jsonl.rows").iterdir()
    return RowAccounts.decoded(path.read_bytes(), path)


def test_one_payment_on_every_ledger_and_none_in_later_calls(tmp_path):
    first, *later = calls()
    group = StreamOwners(tmp_path, first, allow_seed=False)
    learn = OwnersPartialFit(SGBDTClassifier(**COMMON, subsample=0.5), Wire(group))
    found = learn()
    paid = found.ledger_.entries
    before = [(tmp_path / f"{number}.jsonl").read_bytes() for number in range(3)]
    left = {number: accounts_of(group, number) for number in range(3)}
    for given in later:
        group.given = given
        learn()
        assert found.ledger_.entries == paid
    assert [(tmp_path / f"{number}.jsonl").read_bytes() for number in range(3)] == before
    assert sum(isinstance(entry, GrantEntry) for entry in paid) == 1
    assert found.privacy_.epsilon == pytest.approx(1.0, rel=1e-3)
    assert any("rows at one owner only" in text for text in found.privacy_.assumptions)
    assert not any("vault" in text for text in found.privacy_.assumptions)
    report = verify_federation(found.ledger_, [account.path for account in group.accounts])
    assert report.verdict == "confirmed"
    for number, old in left.items():
        new = accounts_of(group, number)
        assert new.salt == old.salt
        places = np.searchsorted(new.units, old.units)
        assert np.array_equal(new.units[places], old.units)
        assert (new.left[places] <= old.left).all()
        assert len(new.units) > len(old.units)


def test_restarted_owners_go_on_in_every_call(tmp_path):
    X, _ = rows(100, seed=9)
    central, given = seeded(SAMPLED), calls()
    group = StreamOwners(tmp_path, given[0])
    restarts = [0]

    def lost(number, what, count):
        if what in ("hello", "upload", "unmask") and number == len(wire.seen) % 7:
            group.restarted(number)
            restarts[0] += 1

    wire = Wire(group, lost)
    learn = OwnersPartialFit(seeded(SAMPLED), wire)
    for each in given:
        group.given = each
        found = learn()
        assert all(done.attempts == 1 for done in found.federation_.rounds)  # a second one would be paid for, too
        assert same(found, central.partial_fit(*together(each)), X)
    assert restarts[0] > 10


@pytest.mark.parametrize("way", ["there", "back"])
def test_an_owner_that_missed_the_beginning_of_a_call_is_told_again(tmp_path, way):
    X, _ = rows(100, seed=9)
    central, given = seeded(SAMPLED), calls()
    group = StreamOwners(tmp_path, given[0])
    wire = Wire(group, lambda number, what, count: way if (number, what) == (0, "begin") else None)
    learn = OwnersPartialFit(seeded(SAMPLED), wire)
    told = way == "there"
    for number, each in enumerate(given, start=1):
        group.given = each
        found = learn()
        assert all(done.survivors == (0, 1, 2) for done in found.federation_.rounds)
        assert same(found, central.partial_fit(*together(each)), X)
        assert sum(owner == 0 and what == "setup" for owner, what, *_ in wire.seen) == number * told
        assert len(accounts_of(group, 0).left) == len({key for call in given[:number] for key in call[0][2]})


def test_a_unit_takes_part_in_all_calls_with_one_budget(tmp_path, monkeypatch):
    """An owner with the rows of one unit, under several places and in many calls; its Gaussian costs add up."""
    from ledgerwood.curator.places.owner_rows import OwnerRows

    found, whole = [], OwnerRows.sums

    def kept(self, question, *arguments, **named):
        sums = whole(self, question, *arguments, **named)
        if self.n_rows == 3 and isinstance(question.draw.event, lw.FilteredEvent):
            found.append(sums)
        return sums

    monkeypatch.setattr(OwnerRows, "sums", kept)
    generator = np.random.default_rng(3)

    def call():
        X, y = rows(40, seed=int(generator.integers(1 << 30)))
        return [(X[:3], y[:3], np.array([5, 5, 5])), (X[3:], y[3:], np.arange(37))]

    group = StreamOwners(tmp_path, call())
    estimator = SGBDTClassifier(**COMMON)
    learn = OwnersPartialFit(estimator, Wire(group))
    for _ in range(6):
        group.given = call()
        learn()
    plan = estimator.plan_
    (event,) = [
        each.event for each in estimator.ledger_.entries
        if isinstance(each, DrawEntry) and isinstance(each.event, lw.FilteredEvent)
    ]  # fmt: skip
    stddevs = getattr(plan.leaf_mechanism, "stddevs", None) or (plan.leaf_mechanism.stddev,) * 2
    steps = np.array([each.reshape(-1, 2).sum(axis=0) for each in found], dtype=float)
    costs = ((steps * 2.0 ** np.array(plan.asked.grid.exponents) / np.array(stddevs)) ** 2).sum(axis=1)
    left = accounts_of(group, 0).left
    assert len(left) == 1
    assert len(costs) == 30
    assert 0.4 < costs.sum() / event.limit.mu() ** 2 <= (FULL - int(left[0])) / FULL <= 1.0


# ------------------------------------------------------------------------------------------------------ what is refused


def test_what_is_not_a_stream_is_refused_and_spends_nothing(tmp_path):
    given = calls()[0]
    ledger = lw.Ledger(lw.Budget(epsilon=9.0, delta=1e-3, adjacency=lw.Adjacency.ADD_REMOVE), unit=lw.PrivacyUnit.ROW)
    group = StreamOwners(tmp_path, [(X, y, None) for X, y, _ in given])
    with pytest.raises(FederationRefused, match="a stream needs keys"):
        OwnersPartialFit(SGBDTClassifier(**COMMON), Wire(group), ledger=ledger)()
    group.given = given
    from ledgerwood.federation.training import train

    with pytest.raises(FederationRefused, match="takes part in streams"):
        train(SGBDTClassifier(**COMMON), Wire(group), ledger=ledger)
    with pytest.raises(InvalidParameter, match="can partial_fit"):
        OwnersPartialFit(DPBoostClassifier(**COMMON), Wire(group))
    with pytest.raises(InvalidParameter, match="filter='none'"):
        OwnersPartialFit(SGBDTClassifier(**COMMON, filter="none"), Wire(group), ledger=ledger)()
    assert len(ledger.entries) == 1
    with FederatedStream(SGBDTClassifier(**COMMON), clients=3) as stream:
        with pytest.raises(InvalidParameter, match=r"client 0 must be \(X, y, keys\)"):
            stream.partial_fit([(X, y, None) for X, y, _ in given])
        with pytest.raises(InvalidParameter, match=r"len\(clients\)"):
            stream.partial_fit(given[:2])


MADE = {
    "FederatedStream": lambda stream: stream,
    "OwnersPartialFit": lambda stream: stream._calls,
    "FederationSession": lambda stream: stream._calls._session,
    "Exchanges": lambda stream: stream._calls._session._exchanges,
    "Rounds": lambda stream: stream._calls._session._rounds,
}


@pytest.mark.parametrize("began", [False, True], ids=["before its first call", "after it"])
def test_no_copy_of_a_session_asks_its_owners(began):
    with FederatedStream(SGBDTClassifier(**COMMON), clients=3) as stream:
        if began:
            stream.partial_fit(calls(1)[0])
        for name, find in MADE.items():
            found = find(stream)
            if found is None:
                assert (name, began) == ("Rounds", False)
                continue
            assert type(found).__name__ == name
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(PrivacyError, match=rf"an? {name} cannot be copied or pickled: owners answer each"):
                    copied(found)


def test_a_server_that_counts_its_rounds_anew_gets_no_second_sum(tmp_path):
    """What a copy would do: the owners rest on no such refusal, and answer each attempt at a round once."""
    group = StreamOwners(tmp_path, calls()[0])
    wire = Wire(group)
    learn = OwnersPartialFit(SGBDTClassifier(**COMMON), wire)
    learn()
    asked = len(wire.seen)
    learn._session._rounds._asked = 0
    with pytest.raises(OwnersLost, match="round 1 was not unmasked"):
        learn()
    again = [unpack(reply) for _, what, _, reply in wire.seen[asked:] if what == "upload"]
    assert len(again) >= 3
    assert all(isinstance(each, Refusal) for each in again)


def test_another_federation_or_object_does_not_go_on(tmp_path):
    given = calls()[0]
    group = StreamOwners(tmp_path, given)
    learn = OwnersPartialFit(SGBDTClassifier(**COMMON), Wire(group))
    model = learn()
    with pytest.raises(LedgerError, match="not of these owners"):
        OwnersPartialFit(model, Wire(group))()
    with pytest.raises(LedgerError, match="does not know what the units"):
        model.partial_fit(*together(given))
    model.save(tmp_path / "model")
    loaded = SGBDTClassifier.load(tmp_path / "model")
    with pytest.raises(LedgerError, match="not of these owners"):
        loaded.partial_fit(learn._session, None)
    central = SGBDTClassifier(**COMMON).partial_fit(*together(given))
    with pytest.raises(LedgerError, match="not of these owners"):
        OwnersPartialFit(central, Wire(group))()
    with pytest.raises(InvalidParameter, match="stream began with"):
        model.set_params(max_depth=2)
        learn()
    with pytest.raises(InvalidParameter, match="vault must be None"):
        model.partial_fit(learn._session, None, vault=lw.curator.RowVault())


def test_a_call_that_fails_keeps_what_rows_paid_and_the_next_one_goes_on(tmp_path):
    given = calls()
    group = StreamOwners(tmp_path, given[0])
    failing = [False]
    wire = Wire(group, lambda number, what, count: "back" if failing[0] and what == "upload" else None)
    model = (learn := OwnersPartialFit(SGBDTClassifier(**COMMON), wire))()
    before = accounts_of(group, 0)
    group.given, failing[0] = given[0], True
    with pytest.raises(OwnersLost):
        learn()
    after = accounts_of(group, 0)
    assert (after.left <= before.left).all()
    assert after.left.sum() < before.left.sum()
    assert (len(model.ensemble_.trees), model.stream_.claims) == (5, 2)
    failing[0] = False
    assert len(learn().ensemble_.trees) == 10


def said(wire, number, message):
    return unpack(wire.owners.all[number].answer(pack(message)))


def test_a_later_call_draws_nothing_new_and_goes_not_back(tmp_path):
    first, second, _ = calls()
    group = StreamOwners(tmp_path, first, allow_seed=False)
    wire = Wire(group)
    learn = OwnersPartialFit(SGBDTClassifier(**COMMON, initial_score="laplace"), wire)
    learn()
    group.given = second
    learn()
    begins = [unpack(request) for number, what, request, _ in wire.seen if number == 0 and what == "begin"]
    asks = [unpack(request) for number, what, request, _ in wire.seen if number == 0 and what == "upload"]
    initial = next(each for each in asks if not isinstance(each.draw.event, lw.FilteredEvent))
    reply = said(wire, 0, dataclasses.replace(initial, round=asks[-1].round + 1, call=2))
    assert "a later call of a stream draws nothing" in reply.reason
    assert isinstance(said(wire, 0, begins[-1]), Ready)
    assert isinstance(said(wire, 0, begins[0]), Refusal)  # back to the first call
    group.restarted(0)
    assert isinstance(said(wire, 0, begins[0]), Refusal)  # with the rows of the second
    hello = dataclasses.replace(begins[-1].hello, call=3)
    other = dataclasses.replace(begins[-1], hello=hello, keys=begins[-1].keys[::-1])
    assert isinstance(said(wire, 0, other), Refusal)
    plain = dataclasses.replace(hello, terms=dataclasses.replace(
        hello.terms, session=b"1" * 16, fit=dataclasses.replace(hello.terms.fit, stream=False)))  # fmt: skip
    assert isinstance(said(wire, 0, plain), Refusal)


def test_a_question_is_of_the_call_that_the_owner_is_in(tmp_path):
    first, second, _ = calls()
    group = StreamOwners(tmp_path, first, allow_seed=False)
    wire = Wire(group)
    learn = OwnersPartialFit(SGBDTClassifier(**COMMON), wire)
    learn()
    group.given = second
    learn()
    last = [unpack(request) for number, what, request, _ in wire.seen if number == 0 and what == "upload"][-1]
    before = accounts_of(group, 0)
    new = dataclasses.replace(last, round=last.round + 1)
    assert said(wire, 0, dataclasses.replace(new, call=1)).reason == (
        "RoundViolation: the question is of call 1, and this owner is in call 2"
    )
    assert said(wire, 0, dataclasses.replace(new, call=3)) == NotTold(known=-1)
    assert np.array_equal(accounts_of(group, 0).left, before.left)
    assert isinstance(said(wire, 0, new), Uploaded)
    assert dataclasses.replace(new, call=3).digest(b"") != new.digest(b"")
    with pytest.raises(InvalidParameter, match="call"):
        dataclasses.replace(new, call=0)


@pytest.mark.parametrize("call", [0, 1])
def test_other_keys_of_the_same_rows_are_refused_after_a_restart_within_a_call(tmp_path, call):
    """Each unit under a new key would have a whole limit again."""
    given = calls(2)
    group = StreamOwners(tmp_path, given[0], allow_seed=False)
    wire = Wire(group)
    learn = OwnersPartialFit(SGBDTClassifier(**COMMON), wire)
    for number in range(call + 1):
        group.given = given[number]
        learn()
    before = accounts_of(group, 0)
    begin = next(unpack(sent) for owner, what, sent, _ in wire.seen[::-1] if (owner, what) == (0, "begin"))
    X, y, keys = given[call][0]
    one_other = np.where(keys == keys[0], 10**6, keys)
    for other in (keys[::-1], np.roll(keys, 1), keys + 10**6, one_other, keys.max() - keys):
        group.given = [(X, y, other), *given[call][1:]]
        group.restarted(0)
        reply = said(wire, 0, begin)
        assert isinstance(reply, Refusal)
        assert "this owner's ledger refuses" in reply.reason
    group.given = [(X, y, keys.astype(str)), *given[call][1:]]  # the same units
    group.restarted(0)
    assert isinstance(said(wire, 0, begin), Ready)
    assert np.array_equal(accounts_of(group, 0).units, before.units)


def test_an_owner_whose_keys_change_under_way_takes_no_more_part(tmp_path):
    first = calls(1)[0]
    group = StreamOwners(tmp_path, first, allow_seed=False)
    uploads = [0]

    def lost(number, what, count):
        if number == 0 and what == "upload":
            uploads[0] += 1
            if uploads[0] == 3:
                X, y, keys = first[0]
                group.given = [(X, y, keys + 10**6), *first[1:]]
                group.restarted(0)

    found = OwnersPartialFit(SGBDTClassifier(**COMMON), Wire(group, lost), FederationOptions(dropouts=0.34))()
    assert [0 in done.survivors for done in found.federation_.rounds] == [True, True, False, False, False]
    assert len(accounts_of(group, 0).left) == len(set(first[0][2]))


def test_keys_of_another_type_are_refused(tmp_path):
    first, second, _ = calls()
    group = StreamOwners(tmp_path, first)
    learn = OwnersPartialFit(SGBDTClassifier(**COMMON), Wire(group))
    learn()
    group.given = [(X, y, np.array([f"u{key}" for key in keys])) for X, y, keys in second]
    with pytest.raises(OwnersLost, match="this owner's ledger refuses"):
        learn()
    with pytest.raises((PrivacyError, RoundViolation)):
        federate(FULL_BATCH, [(X, y, keys) for X, y, keys in first], engine="process")
