"""A server, or an owner, that does not follow the protocol: forged messages, and what they get."""

import dataclasses
import os
import re

import msgpack
import numpy as np
import pandas as pd
import pytest

import ledgerwood as lw
from ledgerwood.curator.places.federated_rows import FitTerms, OwnersDraw
from ledgerwood.curator.places.owner_rows import OwnerRows
from ledgerwood.curator.queries.leaf_sums import LeafRatios
from ledgerwood.curator.queries.row_counts import LeafCounts
from ledgerwood.curator.rounds import group_ends
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import BadMessage, OwnersLost, RoundViolation
from ledgerwood.federation.codec import ReadValues, pack, unpack
from ledgerwood.federation.messages import (
    Ask,
    Begin,
    FederationTerms,
    Hello,
    Ready,
    Refusal,
    Uploaded,
    Willing,
)
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.owners.own import identity_at, verifying_key
from ledgerwood.federation.owners.service import owner_of
from ledgerwood.federation.run import federate
from ledgerwood.federation.training import train
from ledgerwood.mechanisms import GaussianMechanism, LaplaceMechanism
from ledgerwood.secure_aggregation import ClientRegistry, SessionKeys, SumTerms, Upload
from ledgerwood.trainers import SGBDTClassifier
from ledgerwood.verification import verify_ledger

from .conftest import SCHEMA, Wire, parts, rows

A = lw.Adjacency.ADD_REMOVE
COUNT = LeafCounts().of(TreeStructure.root())
NOISE = LaplaceMechanism(scales=(2.0,))
ONE = NOISE.event(COUNT.sensitivity(A), A)
COMMON = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-5}


def terms(event=ONE, *, owners=2, **changed):
    fit = {
        "trainer": "x",
        "event": event,
        "delta": 1e-6,
        "schema": SCHEMA,
        "loss": "logistic",
        "bins": 32,
        "seeded": False,
    }
    fit.update(changed.pop("fit", {}))
    given = {
        "session": os.urandom(16), "fit": FitTerms(**fit), "noise": "server", "unit": lw.PrivacyUnit.ROW,
        "rows_per_client": 1, "honest": 1, "least": 2, "server": "s",
        "sums": SumTerms(n_clients=owners, degree=owners - 1, threshold=owners // 2 + 1),
    }  # fmt: skip
    return FederationTerms(**{**given, **changed})


def said(owner, message):
    return unpack(owner.answer(message if isinstance(message, bytes) else pack(message)))


def begun(owner, agreed):
    hello = Hello(terms=agreed, number=0, secret=b"")
    willing = said(owner, hello)
    if not isinstance(willing, Willing):
        return willing
    others = (SessionKeys.derived(os.urandom(32), agreed.session).public for _ in range(agreed.sums.n_clients - 1))
    return said(owner, Begin(hello=hello, keys=(willing.key, *others), signatures=(), offset=0))


def asked(owner, agreed, draw, *, round_=1):
    return said(
        owner,
        Ask(
            session=agreed.session, round=round_, attempt=1, live=tuple(range(agreed.sums.n_clients)), draw=draw,
            is_choice=False, packed=pack((COUNT, NOISE)), known=0, news=(),
        ),
    )  # fmt: skip


@pytest.fixture
def counted(monkeypatch):
    """The sums of the owner's rows before they are masked."""
    found, whole = [], OwnerRows.sums

    def kept(*arguments, **named):
        found.append(whole(*arguments, **named))
        return found[-1]

    monkeypatch.setattr(OwnerRows, "sums", kept)
    return found


def test_groups_are_not_everybody(owners, counted):
    event = lw.Parallel((ONE,) * 10, probabilities=(0.02,) * 10)
    owner = owners([rows(1000)], allow_seed=False).all[0]
    agreed = terms(event)
    assert isinstance(begun(owner, agreed), Ready)
    draw = OwnersDraw(number=1, event=event, rate=None, ends=group_ends(event), group=0)
    for forged in ({"rate": 1.0}, {"rate": 0.5}, {"group": None}, {"ends": (1 << 64,) * 10}):
        reply = asked(owner, agreed, dataclasses.replace(draw, **forged))
        assert "other groups than its event" in reply.reason
    assert counted == []
    assert isinstance(asked(owner, agreed, draw), Uploaded)
    assert 0 < counted[0].ravel()[0] < 60  # 20 of 1,000 are due


def test_an_event_beyond_the_plan_is_refused_at_once(owners, counted):
    owner = owners([rows(10)], allow_seed=False).all[0]
    agreed = terms()
    assert isinstance(begun(owner, agreed), Ready)
    for event in (lw.Repeated(ONE, count=10**15), lw.Composed((ONE, ONE)), lw.PureEvent(epsilon=0.1, adjacency=A)):
        reply = asked(owner, agreed, OwnersDraw(number=1, event=event, rate=1.0))
        assert "does not have as many draws" in reply.reason
    assert counted == []


def test_a_plan_of_endless_free_draws_is_not_joined(owners):
    owner = owners([rows(10)], allow_seed=False).all[0]
    free = lw.GaussianEvent(noise_multiplier=1e60, adjacency=A)
    reply = said(owner, Hello(terms=terms(lw.Repeated(free, count=10**12)), number=0, secret=b""))
    assert "at most 100000" in reply.reason


def test_a_ratio_is_refused_before_its_draw_is_used_up(owners, tmp_path):
    """A server that asks for what is no sum gets nothing, and the owner's account has no answer of it."""
    ratio = LeafRatios(loss="logistic", clip=0.5, damping=1.0).of(TreeStructure.root(), Ensemble(initial_score=0.0))
    noise = GaussianMechanism(stddev=1.0)
    event = noise.event(ratio.sensitivity(A), A)
    owner = owners([rows(10)], allow_seed=False).all[0]
    agreed = terms(event)
    assert isinstance(begun(owner, agreed), Ready)
    draw = OwnersDraw(number=1, event=event, rate=1.0)
    ask = Ask(
        session=agreed.session, round=1, attempt=1, live=(0, 1), draw=draw, is_choice=False,
        packed=pack((ratio, noise)), known=0, news=(), schema=b"",
    )  # fmt: skip
    assert "LeafRatios" in said(owner, ask).reason
    assert (tmp_path / "0.jsonl.answers").read_text().count("upload") == 0


def test_the_number_of_rows_is_no_servers_business(owners):
    """A bound on rows that goes by the server's number of owners would be a search for it."""
    owner = owners([rows(40_000)], allow_seed=False).all[0]
    for owners_there in (2, 1000, 2**20):
        sums = SumTerms(n_clients=owners_there, degree=2 if owners_there > 3 else 1, threshold=2)
        assert isinstance(said(owner, Hello(terms=terms(sums=sums), number=0, secret=b"")), Willing)


def test_terms_with_impossible_numbers_are_no_terms(owners):
    owner = owners([rows(10)], allow_seed=False).all[0]
    good = pack(Hello(terms=terms(), number=0, secret=b""))
    assert isinstance(said(owner, good), Willing)
    for name, value in (("rows_per_client", 1000.0), ("rows_per_client", 0), ("rows_per_client", -1), ("noise", "x"),
                        ("honest", 0), ("least", 2.0)):  # fmt: skip
        forged = terms()
        object.__setattr__(forged, name, value)
        reply = said(owner, Hello(terms=forged, number=0, secret=b""))
        assert name in reply.reason
    for forged in (terms(fit={"bins": 10**9}), terms(least=1), terms(honest=2, least=2, noise="clients")):
        assert isinstance(said(owner, Hello(terms=forged, number=0, secret=b"")), Refusal)


def test_values_within_values_end_before_the_stack_does(owners):
    inner = b"\xc0"
    for _ in range(3000):
        inner = msgpack.packb(msgpack.ExtType(2, inner))
    with pytest.raises(BadMessage, match="deep"):
        unpack(inner)
    owner = owners([rows(10)], allow_seed=False).all[0]
    assert isinstance(said(owner, inner), Refusal)


def test_a_reply_that_is_none_counts_as_a_missing_owner(owners):
    """An owner that answers nonsense ends nobody's fit but its own part in it."""
    values = np.zeros(3, dtype=np.uint64)
    for shape in ((3.0,), (10**9, 10**9), ([3],), (4,), (-3,)):
        with pytest.raises(BadMessage):
            Uploaded(upload=Upload(values=values, shares={}), shape=shape)
    X, y = rows(90)
    group = owners(parts(X, y, (30, 30, 30)))
    good = group.all[1]

    class Bad:
        def answer(self, request):
            reply = good.answer(request)
            if not isinstance(unpack(reply), Uploaded):
                return reply
            return reply[:-40] + b"\x00" * 40

    group.all[1] = Bad()
    found = train(SGBDTClassifier(**COMMON, n_estimators=3), Wire(group), FederationOptions(dropouts=0.34))
    assert all(each.survivors == (0, 2) for each in found.federation_.rounds)


def side(cell):
    return TreeStructure(feature=np.array([0], np.int32), split=np.array([cell], np.uint16), equals=np.array([False]))


class Splitting(Wire):
    """A server that asks owner 0 of a tree with all rows at the left, and the others of one with all at the right."""

    def __init__(self, owners, *, hides):
        super().__init__(owners)
        self.hides, self.known, self.asked = hides, {}, {}

    def exchange(self, requests, *, what):
        if what == "upload":
            requests = {number: self.forged(number, unpack(request)) for number, request in requests.items()}
        elif what in ("endorse", "unmask") and self.hides:  # says to each what it was asked itself
            requests = {
                number: pack(dataclasses.replace(unpack(request), question=self.asked[number]))
                for number, request in requests.items()
            }
        return super().exchange(requests, what=what)

    def forged(self, number, ask):
        known = self.known.setdefault(number, ReadValues())
        known.learn(ask.known, ask.news)
        query, mechanism = unpack(ask.packed, known)
        query = dataclasses.replace(query, structure=side(60_000 if number == 0 else 0))
        told = dataclasses.replace(ask, packed=pack((query, mechanism)), known=0, news=())
        self.asked[number] = told.digest(ReadValues().digest)
        return pack(told)


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("hides", [True, False])
def test_a_server_that_asks_owners_for_different_sums_gets_none(active, hides, owners):
    X, y = rows(60)
    group = owners(parts(X, y, (20, 20, 20)), allow_seed=False)
    registry = None
    if active:
        identities = [identity_at(group.folder / f"{number}.key") for number in range(3)]
        registry = group.options["registry"] = ClientRegistry(keys=tuple(map(verifying_key, identities)))
        for number in range(3):
            group.restarted(number)
    estimator = SGBDTClassifier(**COMMON, n_estimators=3, max_depth=1, initial_score="zero")
    with pytest.raises(OwnersLost):
        train(estimator, Splitting(group, hides=hides), FederationOptions(registry=registry))


# ---------------------------------------------------------------------------------------------- what an owner lets slip


def test_refusals_say_nothing_of_labels_budgets_and_files(owners, tmp_path):
    X, _ = rows(20)
    for longest in ("ab", "a very long label"):
        owner = owners([(X, np.array(["a"] * 19 + [longest]))], allow_seed=False).all[0]
        numbers = lw.Schema(features=SCHEMA.features, target=lw.Numeric("t", 0, 1))
        reply = said(owner, Hello(terms=terms(fit={"schema": numbers, "loss": "squared"}), number=0, secret=b""))
        assert "SchemaTypeError" in reply.reason
        assert not re.search(r"[US]\d", reply.reason)
        for account in tmp_path.glob("*.jsonl*"):
            account.unlink()
    poor = owners([rows(20)], budget=lw.Budget(epsilon=0.4321, delta=0.0, adjacency=A), allow_seed=False).all[0]
    reply = said(poor, Hello(terms=terms(), number=0, secret=b""))
    assert reply.reason == "BudgetExceeded: the plan does not fit into what is left of this owner's budget"


def test_a_refusal_names_no_file_of_the_owner(tmp_path):
    X, y = rows(20)
    owner = owner_of(
        (X, y), tmp_path / "moved" / "patients.jsonl", key=bytes(32)
    )  # there is none, and no budget for one
    reply = said(owner, Hello(terms=terms(), number=0, secret=b""))
    assert reply.reason == "LedgerError: this owner's ledger refuses; its log says why"


def test_a_refusal_lists_no_categories_of_a_column(owners):
    """The type of an ordered categorical has its categories as a parameter: values of the rows."""
    X, _ = rows(4)
    levels = pd.Categorical(["lowest", "low", "high", "high"], ordered=True)
    frame = pd.DataFrame(X, columns=list("abc"))
    numbers = lw.Schema(features=SCHEMA.features, target=lw.Numeric("t", 0, 1))
    for number, (given, labels) in enumerate(((frame, pd.Series(levels)), (frame.assign(b=levels), X[:, 0]))):
        owner = owners([(given, labels)] * (number + 1), allow_seed=False).all[number]
        reply = said(owner, Hello(terms=terms(fit={"schema": numbers, "loss": "squared"}), number=0, secret=b""))
        assert "type Enum" in reply.reason
        assert "low" not in reply.reason


def test_a_refused_draw_names_no_entry_of_the_owners_ledger(owners):
    owner = owners([rows(20)], allow_seed=False).all[0]
    agreed = terms()
    assert isinstance(begun(owner, agreed), Ready)
    assert isinstance(asked(owner, agreed, OwnersDraw(number=1, event=ONE, rate=1.0)), Uploaded)
    reply = asked(owner, agreed, OwnersDraw(number=2, event=ONE, rate=1.0), round_=2)
    assert reply.reason == "DrawRefused: the plan that this owner has paid for holds no such draw any more"


def test_a_server_gives_no_row_a_second_coin_in_a_draw(owners, monkeypatch):
    """The places of rows are a server's in a run with a seed alone: a restarted process tosses the same coins."""
    masks, tossed = [], OwnerRows._tossed
    monkeypatch.setattr(OwnerRows, "_tossed", lambda *given: masks.append(tossed(*given)) or masks[-1])
    event = lw.PoissonSampled(lw.Repeated(ONE, count=2), sampling_rate=0.1)
    group = owners([rows(1000)], allow_seed=False)
    agreed = terms(event)
    hello = Hello(terms=agreed, number=0, secret=b"")
    other = SessionKeys.derived(os.urandom(32), agreed.session).public
    begin = Begin(hello=hello, keys=(said(group.all[0], hello).key, other), signatures=(), offset=0)
    for round_, offset in ((1, 0), (2, 500)):
        group.restarted(0)
        assert isinstance(said(group.all[0], dataclasses.replace(begin, offset=offset)), Ready)
        draw = OwnersDraw(number=1, event=event, rate=0.1)
        assert isinstance(asked(group.all[0], agreed, draw, round_=round_), Uploaded)
    assert len(masks) == 2
    assert 50 < masks[0].sum() < 160
    np.testing.assert_array_equal(*masks)


def test_rows_in_another_order_are_another_sample_and_are_refused(owners):
    """Coins go by the places of rows: a process that reads them in another order would draw a second sample."""
    X, y = rows(50)
    group = owners([(X, y), rows(50, 1)], allow_seed=False)
    agreed = terms()
    owner = group.all[0]
    assert isinstance(begun(owner, agreed), Ready)
    asked(owner, agreed, OwnersDraw(number=1, event=ONE, rate=1.0))
    again = group.made(0)
    assert isinstance(begun(again, agreed), Refusal)  # other keys of the others: another roster
    group = owners([(X, y), rows(50, 1)], allow_seed=False)
    wire = Wire(group)
    whole = wire.exchange

    def exchange(requests, *, what):
        found = whole(requests, what=what)
        if what == "unmask":  # a crash, and a source that has its rows in no order of their own
            group.given[0] = (X[::-1], y[::-1])
            group.restarted(0)
        return found

    wire.exchange = exchange
    with pytest.raises(OwnersLost, match="its log says why"):
        train(SGBDTClassifier(**COMMON, n_estimators=3, subsample=0.5), wire)


# -------------------------------------------------------------------------------------------- whole clients as the unit


def test_samples_of_rows_do_not_make_a_client_cost_less():
    estimator = SGBDTClassifier(**COMMON, n_estimators=3, subsample=0.05)
    X, y = rows(60)
    with pytest.raises(RoundViolation, match="in every sample of rows"):
        federate(estimator, parts(X, y, (30, 30)), unit=lw.PrivacyUnit.USER, engine="process")


def test_the_statement_names_the_coalition_that_it_withstands():
    for owners_there, least, others in ((2, 2, "server alone"), (3, 3, "1 other owners"), (10, 6, "4 other owners")):
        agreed = dataclasses.replace(
            terms(owners=owners_there), least=least,
            sums=SumTerms(n_clients=owners_there, degree=owners_there - 1, threshold=owners_there // 2 + 1),
        )  # fmt: skip
        assert others in agreed.assumption


def test_weights_of_owners_are_named_in_the_statement():
    X, y = rows(60)
    schema = dataclasses.replace(SCHEMA, weight_bound=2.0)
    clients = [(X[:30], y[:30], np.ones(30)), (X[30:], y[30:], np.full(30, 2.0))]
    found = federate(SGBDTClassifier(**{**COMMON, "schema": schema}, n_estimators=2), clients, engine="process")
    assert any("each row's weight is its own" in text for text in found.privacy_.assumptions)


def test_an_account_of_a_deviating_server_is_confirmed_for_what_was_answered(owners):
    group = owners([rows(20)], allow_seed=False)
    agreed = terms()
    assert isinstance(begun(group.all[0], agreed), Ready)
    assert isinstance(asked(group.all[0], agreed, OwnersDraw(number=1, event=ONE, rate=1.0)), Uploaded)
    second = asked(group.all[0], agreed, OwnersDraw(number=1, event=ONE, rate=1.0), round_=2)
    assert isinstance(second, Refusal)
    report = verify_ledger(group.accounts[0].path)
    assert report.verdict == "confirmed"
    assert report.epsilon_readded == pytest.approx(lw.price(ONE).epsilon(1e-6), rel=1e-6)


def test_an_owners_tolerance_reaches_the_owner_by_every_door(tmp_path):
    """At `owner_of`, which the apps and the owner's own process use, as at `Owner`."""
    X, y = rows(20)
    owner = owner_of(
        (X, y), tmp_path / "ledger.jsonl", key=tmp_path / "key", unit=lw.PrivacyUnit.ROW, colluding=0.5,
        budget=lw.Budget(epsilon=9.0, delta=1e-3, adjacency=A),
    )  # fmt: skip
    asked_for = terms(owners=4, noise="clients", honest=3, least=4)
    assert "At most 2 may carry it" in said(owner, Hello(terms=asked_for, number=0, secret=b"")).reason
