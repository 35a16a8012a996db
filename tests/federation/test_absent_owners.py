"""Owners that are silent when a fit begins: left out where the tolerance allows, and never let in later."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import BadMessage, FederationRefused, OwnersLost
from ledgerwood.federation.codec import pack, unpack
from ledgerwood.federation.messages import Begin, Willing
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.owners.own import identity_at, verifying_key
from ledgerwood.federation.training import train
from ledgerwood.secure_aggregation import ClientRegistry
from ledgerwood.trainers import DPBoostClassifier, FederatedGBDTClassifier, SGBDTClassifier
from ledgerwood.verification import verify_federation, verify_ledger

from .conftest import SCHEMA, Wire, parts, rows

COMMON = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-5, "n_estimators": 3, "max_depth": 3}
BEGINNING = ("columns", "hello")


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    found = []
    clock = SimpleNamespace(sleep=found.append, monotonic=lambda: 0.0)
    monkeypatch.setattr("ledgerwood.federation.session.time", clock)
    return found


def silent(*numbers, what=BEGINNING):
    return lambda number, of, count: "there" if number in numbers and of in what else None


def group_of(owners, sizes=(40, 40, 40, 40, 40), **options):
    X, y = rows(sum(sizes))
    return owners(parts(X, y, sizes), **options)


@pytest.mark.parametrize("made", [SGBDTClassifier, DPBoostClassifier])
@pytest.mark.parametrize("options", [{}, {"subsample": 0.4}], ids=["all rows", "samples"])
def test_the_model_is_the_central_one_of_those_who_joined(made, options, owners):
    if made is DPBoostClassifier and options:
        options = {}
    group = group_of(owners)
    found = train(made(**COMMON, **options, random_state=7), Wire(group, silent(0, 3)), FederationOptions(dropouts=0.4))
    X, y = (np.concatenate([group.given[each][place] for each in (1, 2, 4)]) for place in (0, 1))
    central = made(**COMMON, **options, random_state=7).fit(X, y)
    assert np.array_equal(found.predict_proba(X), central.predict_proba(X))
    assert found.federation_.absent == (0, 3)
    assert all(each.asked == each.survivors == (1, 2, 4) for each in found.federation_.rounds)
    assert any("2 of the owners did not answer when the fit began" in text for text in found.privacy_.assumptions)


def test_who_is_absent_pays_nothing_and_the_others_ledgers_agree(owners):
    group = group_of(owners, allow_seed=False)
    found = train(SGBDTClassifier(**COMMON), Wire(group, silent(2)), FederationOptions(dropouts=0.2))
    assert found.privacy_.epsilon == pytest.approx(1.0, rel=1e-4)
    assert not group.accounts[2].path.exists()
    there = [group.accounts[each].path for each in (0, 1, 3, 4)]
    assert verify_federation(found.ledger_, there).verdict == "confirmed"
    assert all(verify_ledger(each).epsilon_readded == pytest.approx(1.0, rel=1e-4) for each in there)


def test_more_of_them_than_may_be_missing_end_the_fit_and_spend_nothing(owners, waits):
    group = group_of(owners)
    ledger = lw.Ledger(lw.Budget(epsilon=9.0, delta=1e-3, adjacency=lw.Adjacency.ADD_REMOVE), unit=lw.PrivacyUnit.ROW)
    with pytest.raises(FederationRefused, match=r"2 of 5 owners do not take part. owner 1: no answer.*owner 4: no"):
        train(SGBDTClassifier(**COMMON), Wire(group, silent(1, 4)), FederationOptions(dropouts=0.2), ledger=ledger)
    assert ledger.spent().epsilon == 0.0
    assert not any(each.path.exists() for each in group.accounts)
    assert waits == [4.0, 8.0]


def test_who_was_silent_about_columns_is_asked_once_more_and_may_join(owners, waits):
    group = group_of(owners)
    wire = Wire(group, silent(1, what=("columns",)))
    found = train(SGBDTClassifier(**COMMON, random_state=7), wire, FederationOptions(dropouts=0.4))
    assert found.federation_.absent == ()
    assert all(each.survivors == (0, 1, 2, 3, 4) for each in found.federation_.rounds)
    del waits[:]
    train(SGBDTClassifier(**COMMON, random_state=7), Wire(group, silent(1)), FederationOptions(dropouts=0.4))
    assert len(waits) == 2  # before the second and the third question about columns; none at hello


def test_a_refusal_is_no_silence(owners):
    group = group_of(owners, budget=lw.Budget(epsilon=1.5, delta=1e-3, adjacency=lw.Adjacency.ADD_REMOVE))
    options = FederationOptions(dropouts=0.4)
    train(SGBDTClassifier(**COMMON), Wire(group, silent(0, 1)), options)
    with pytest.raises(FederationRefused, match=r"3 of 5 owners do not take part. owner 2: BudgetExceeded"):
        train(SGBDTClassifier(**COMMON), Wire(group), options)


def test_absent_and_dropped_owners_together_are_within_the_tolerance(owners):
    """Two of five may be missing: with one absent a second one may drop out of a round, and no third one."""
    lost = {1, 2}

    def lose(number, what, count):
        return "there" if (number == 0 and what in BEGINNING) or (number in lost and what == "upload") else None

    group = group_of(owners)
    with pytest.raises(OwnersLost, match="fewer than 3 of 5 owners answered it"):
        train(SGBDTClassifier(**COMMON, random_state=7), Wire(group, lose), FederationOptions(dropouts=0.4))
    lost.remove(2)
    found = train(SGBDTClassifier(**COMMON, random_state=7), Wire(group, lose), FederationOptions(dropouts=0.4))
    assert all(each.survivors == (2, 3, 4) for each in found.federation_.rounds)


def test_noise_of_the_owners_is_shared_among_the_fewest_that_a_round_may_have(owners):
    """Who is absent carries no noise: shares are planned for the survivors of the worst round."""
    shared = {**COMMON, "candidates": "uniform", "noise": "skellam"}
    group = group_of(owners, allow_seed=False)
    wire = Wire(group, silent(0, 3))
    found = train(FederatedGBDTClassifier(**shared), wire, FederationOptions(noise="clients", dropouts=0.4))
    assert found.federation_.absent == (0, 3)
    begun = next(unpack(request) for _, what, request, _ in wire.seen if what == "begin")
    assert begun.hello.terms.honest == 2  # of three survivors, one of whom knows its own share


def test_an_active_session_knows_the_absent_by_their_empty_keys(owners):
    group = group_of(owners)
    identities = [identity_at(group.folder / f"{number}.key") for number in range(5)]
    registry = group.options["registry"] = ClientRegistry(keys=tuple(map(verifying_key, identities)))
    for number in range(5):
        group.restarted(number)
    found = train(
        SGBDTClassifier(**COMMON, random_state=7), Wire(group, silent(4)),
        FederationOptions(dropouts=0.2, registry=registry),
    )  # fmt: skip
    assert found.federation_.absent == (4,)
    assert found.federation_.threshold == 4


def test_who_comes_later_is_not_in_the_roster_and_stays_out(owners):
    group = group_of(owners)
    wire = Wire(group, silent(0))
    found = train(SGBDTClassifier(**COMMON, random_state=7), wire, FederationOptions(dropouts=0.4))
    begin = next(unpack(request) for number, what, request, _ in wire.seen if what == "begin" and number == 1)
    assert begin.keys[0] == b""
    assert not any(number == 0 and what not in BEGINNING for number, what, _, _ in wire.seen)
    late = dataclasses.replace(begin, hello=dataclasses.replace(begin.hello, number=0))
    assert "does not hold this client's key at its number 0" in unpack(group.all[0].answer(pack(late))).reason
    assert found.federation_.absent == (0,)


def test_an_owner_pays_for_no_session_that_too_few_have_joined(owners):
    """Its rounds could never be unmasked: nothing is charged for it."""
    group = group_of(owners)
    wire = Wire(group)
    train(SGBDTClassifier(**COMMON), wire, FederationOptions(dropouts=0.2))
    begin = next(unpack(request) for number, what, request, _ in wire.seen if what == "begin" and number == 1)
    session = bytes(16)
    terms = dataclasses.replace(begin.hello.terms, session=session)
    hello = dataclasses.replace(begin.hello, terms=terms)
    key = unpack(group.all[1].answer(pack(hello))).key
    few = Begin(hello=hello, keys=(b"", key, *begin.keys[2:4], b""), signatures=(), offset=0)
    spent = verify_ledger(group.accounts[1].path).epsilon_readded
    assert "3 owners have joined, and at least 4 have to" in unpack(group.all[1].answer(pack(few))).reason
    assert verify_ledger(group.accounts[1].path).epsilon_readded == spent


# ------------------------------------------------------------------------------------------------- before anybody pays


def test_two_owners_with_one_key_are_refused_before_anybody_pays(owners):
    group = group_of(owners)
    (group.folder / "3.key").write_bytes((group.folder / "1.key").read_bytes())
    group.restarted(3)
    with pytest.raises(FederationRefused, match=r"owners 1 and 3 have the same secret key.*Nothing was spent"):
        train(SGBDTClassifier(**COMMON), Wire(group))
    assert not any(each.path.exists() and lw.Ledger.open(each.path).spent().epsilon for each in group.accounts)


@pytest.mark.parametrize(
    "forged", [{"key": b""}, {"key": b"short"}, {"key": "text"}, {"signature": b"1"}, {"n_rows": -1}]
)
def test_an_owner_whose_key_is_none_is_refused_by_name(forged, owners):
    group = group_of(owners)
    good = group.all[2]
    with pytest.raises(BadMessage if "n_rows" not in forged else lw.errors.InvalidParameter):
        Willing(**{"key": bytes(32), "signature": b"", "n_rows": 0, **forged})

    class Bad:
        def answer(self, request):
            reply = unpack(good.answer(request))
            if isinstance(reply, Willing):
                for name, value in forged.items():
                    object.__setattr__(reply, name, value)
            return pack(reply)

    group.all[2] = Bad()
    with pytest.raises(FederationRefused, match=r"1 of 5 owners do not take part. owner 2: .*Nothing was spent"):
        train(SGBDTClassifier(**COMMON), Wire(group), FederationOptions(dropouts=0.4))
