"""Ledger and grants: what is granted, drawn, refused, and that nothing of it can be had twice."""

import copy
import os
import pickle
import struct
import threading

import pytest

from ledgerwood.accounting import (
    Adjacency,
    BasicFilter,
    Budget,
    Composed,
    GaussianEvent,
    GDPFilter,
    LaplaceEvent,
    Ledger,
    LedgerRecord,
    PoissonSampled,
    PrivacyUnit,
    PureEvent,
    Repeated,
    price,
)
from ledgerwood.accounting.ledger import DrawEntry, GrantEntry, OpenEntry
from ledgerwood.errors import (
    AdjacencyMismatch,
    BudgetExceeded,
    DrawRefused,
    InvalidParameter,
    LedgerError,
    PrivacyError,
    UnsupportedEvent,
)

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=1.0, delta=1e-5, adjacency=A)


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


BASIC = BasicFilter()


def new(filter_=BASIC, budget=BUDGET):
    return Ledger(budget, unit=PrivacyUnit.ROW, filter=filter_)


def test_a_plan_is_charged_once_and_drawn_event_by_event():
    ledger, step = new(), PoissonSampled(gaussian(5.0), sampling_rate=0.01)
    plan = Composed((Repeated(step, count=3), pure(0.1)))
    grant = ledger.grant(plan, purpose="train")
    assert dict(grant.remaining) == {step: 3, pure(0.1): 1}
    assert (grant.event, grant.purpose, grant.index) == (plan, "train", 1)
    assert grant.charge.epsilon == ledger.spent().epsilon == price(plan).epsilon(1e-5)
    receipts = [grant.draw(step, purpose=f"step {i}") for i in range(3)]
    assert [r.index for r in receipts] == [2, 3, 4]
    assert {r.adjacency for r in receipts} == {A}
    assert receipts[-1].hash == ledger.head == ledger.entries[-1].hash
    assert dict(grant.remaining) == {pure(0.1): 1}
    assert ledger.spent().epsilon == price(plan).epsilon(1e-5)  # drawing costs nothing more
    assert [type(entry) for entry in ledger.entries] == [OpenEntry, GrantEntry, DrawEntry, DrawEntry, DrawEntry]


def test_draws_come_in_any_order_and_no_more_often_than_planned():
    ledger = new()
    grant = ledger.grant(Composed((pure(0.1), pure(0.2), pure(0.1))), purpose="p")
    for event in (pure(0.2), pure(0.1), pure(0.1)):
        grant.draw(event, purpose="draw")
    before = ledger.entries
    for event in (pure(0.1), pure(0.3), Repeated(pure(0.1), count=2)):
        with pytest.raises(DrawRefused, match="grant 1"):
            grant.draw(event, purpose="once more")
    assert ledger.entries == before


def test_one_grant_cannot_draw_what_another_holds():
    ledger = new()
    first, second = ledger.grant(pure(0.1), purpose="a"), ledger.grant(pure(0.2), purpose="b")
    with pytest.raises(DrawRefused):
        first.draw(pure(0.2), purpose="theirs")
    second.draw(pure(0.2), purpose="ours")


def test_a_refusal_leaves_everything_untouched():
    ledger = new()
    ledger.grant(pure(0.7), purpose="first")
    before = (ledger.entries, ledger.head, ledger.spent(), ledger.remaining())
    with pytest.raises(BudgetExceeded, match="left") as refusal:
        ledger.grant(pure(0.7), purpose="second")
    assert refusal.value.requested == {"epsilon": 0.7, "delta": 0.0}
    assert refusal.value.remaining["epsilon"] == pytest.approx(0.3)
    for call in (
        lambda: ledger.grant(GaussianEvent(noise_multiplier=9.0, adjacency=Adjacency.ZERO_OUT), purpose="p"),
        lambda: ledger.grant(pure(0.1), purpose="two\nlines"),
        lambda: ledger.grant(pure(0.1), purpose=""),
        lambda: ledger.grant(pure(0.1), purpose="x" * 201),
        lambda: ledger.grant(1.0, purpose="p"),
        lambda: ledger.grant(gaussian(9.0), purpose="p", delta=1.0),
        lambda: ledger.grant(gaussian(9.0), purpose="p", delta=0.0),
    ):
        with pytest.raises((AdjacencyMismatch, InvalidParameter)):
            call()
    assert before == (ledger.entries, ledger.head, ledger.spent(), ledger.remaining())


def test_refusals_survive_pickling():
    ledger = new()
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.grant(pure(2.0), purpose="dear")
    again = pickle.loads(pickle.dumps(refusal.value))
    assert (str(again), again.requested, again.remaining) == (
        str(refusal.value), refusal.value.requested, refusal.value.remaining
    )  # fmt: skip


@pytest.mark.parametrize("filter_", [BasicFilter(), GDPFilter()])
def test_two_plans_chosen_adaptively_are_never_priced_as_one(filter_):
    """Plan two may depend on plan one's output: only the filter may add them up, and a joint price is not a filter."""
    budget = Budget(epsilon=4.0, delta=2e-5, adjacency=A)
    ledger, plan = new(filter_, budget), Repeated(gaussian(8.0), count=4)
    if filter_ == BasicFilter():
        for name in ("one", "two"):
            ledger.grant(plan, purpose=name, delta=1e-5)
        each = price(plan).epsilon(1e-5)
        assert ledger.spent().epsilon == pytest.approx(2 * each, rel=1e-15)
        assert ledger.spent().delta == 2e-5
        joint = price(Repeated(plan, count=2)).epsilon(2e-5)
        assert joint < 0.75 * ledger.spent().epsilon  # what adding up as one plan would have claimed
    else:
        for name in ("one", "two"):
            ledger.grant(plan, purpose=name)
        assert ledger.spent().mu == pytest.approx((2 * 4 / 64) ** 0.5, rel=1e-14)  # fully adaptive, by its own theorem
        with pytest.raises(UnsupportedEvent):
            ledger.grant(Repeated(PoissonSampled(gaussian(8.0), sampling_rate=0.1), count=4), purpose="three")
    assert [type(entry) for entry in ledger.entries] == [OpenEntry, GrantEntry, GrantEntry]


def test_splitting_one_plan_in_two_grants_can_only_cost_more():
    step = PoissonSampled(gaussian(4.0), sampling_rate=0.01)
    whole, halves = new(), new()
    whole.grant(Repeated(step, count=200), purpose="p", delta=1e-5)
    for name in ("first half", "second half"):
        halves.grant(Repeated(step, count=100), purpose=name, delta=5e-6)
    assert halves.spent().delta == whole.spent().delta
    assert halves.spent().epsilon > 1.2 * whole.spent().epsilon


def test_spend_is_a_grant_of_one_draw():
    ledger = new()
    receipt = ledger.spend(pure(0.1), purpose="count", randomness="test")
    assert [type(entry) for entry in ledger.entries] == [OpenEntry, GrantEntry, DrawEntry]
    assert (receipt.event, receipt.grant, receipt.randomness) == (pure(0.1), 1, "test")
    assert ledger.record().randomness == "test"
    with pytest.raises(InvalidParameter, match="one draw"):
        ledger.spend(Repeated(pure(0.1), count=2), purpose="p")
    with pytest.raises(InvalidParameter):
        ledger.spend(0.1, purpose="p")


def test_ledgers_and_grants_cannot_be_copied():
    ledger = new()
    grant = ledger.grant(pure(0.1), purpose="p")
    for thing in (ledger, grant):
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(LedgerError, match="cannot be copied"):
                duplicate(thing)


@pytest.mark.parametrize("in_file", [False, True], ids=["memory", "file"])
def test_a_forked_child_may_not_spend(tmp_path, monkeypatch, in_file):
    ledger = Ledger.open(tmp_path / "a.jsonl", budget=BUDGET, unit=PrivacyUnit.ROW) if in_file else new()
    with ledger:
        grant = ledger.grant(pure(0.1), purpose="p")
        monkeypatch.setattr(os, "getpid", lambda: -1)
        for attempt in (lambda: ledger.grant(pure(0.1), purpose="p"), lambda: grant.draw(pure(0.1), purpose="p")):
            with pytest.raises(LedgerError, match="another process"):
                attempt()
        monkeypatch.undo()
        grant.draw(pure(0.1), purpose="p")
        assert len(ledger.entries) == 3


def test_the_record_is_frozen_picklable_and_grants_nothing(tmp_path):
    ledger = new()
    ledger.spend(LaplaceEvent(noise_multiplier=10.0, adjacency=A), purpose="mean")
    record = ledger.record()
    ledger.spend(pure(0.1), purpose="later")
    assert (len(record.entries), record.randomness) == (3, "secure")
    assert pickle.loads(pickle.dumps(record)) == copy.deepcopy(record) == record
    assert LedgerRecord.from_lines(record.lines) == record
    assert record.spent().epsilon == pytest.approx(0.1)
    assert record.terms.budget == BUDGET
    assert not hasattr(record, "grant")
    record.save(tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text().splitlines() == list(record.lines)


def test_a_gdp_ledger_charges_mu():
    ledger = new(GDPFilter())
    ledger.grant(Repeated(gaussian(20.0), count=4), purpose="p")
    assert ledger.spent().mu == pytest.approx(0.1, rel=1e-14)
    assert ledger.remaining().mu > 0.0
    assert ledger.remaining().epsilon is None


def test_threads_never_draw_more_than_was_granted():
    ledger, step, drawn, refused = new(), pure(1e-3), [], []
    grant = ledger.grant(Repeated(step, count=100), purpose="p")

    def work():
        for _ in range(40):
            try:
                drawn.append(grant.draw(step, purpose="step").index)
            except DrawRefused:
                refused.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(drawn), len(refused)) == (100, 60)
    assert sorted(drawn) == list(range(2, 102))
    LedgerRecord.from_lines(ledger.record().lines)


@pytest.mark.parametrize(
    "arguments",
    [
        {"budget": 1.0, "unit": PrivacyUnit.ROW},
        {"budget": BUDGET, "unit": "row"},
        {"budget": BUDGET, "unit": PrivacyUnit.ROW, "filter": "basic"},
        {"budget": Budget(epsilon=1.0, delta=0.0, adjacency=A), "unit": PrivacyUnit.ROW, "filter": GDPFilter()},
    ],
)
def test_bad_terms_are_refused(arguments):
    budget = arguments.pop("budget")
    with pytest.raises(InvalidParameter):
        Ledger(budget, **arguments)


def test_a_plan_that_is_exactly_the_budget_fits():
    for plan in (
        LaplaceEvent(noise_multiplier=1.0, adjacency=A),
        Repeated(LaplaceEvent(noise_multiplier=4.0, adjacency=A), count=4),
        Repeated(pure(0.125), count=8),
        Composed((pure(0.5), LaplaceEvent(noise_multiplier=2.0, adjacency=A))),
    ):
        book = new()
        book.grant(plan, purpose="all of it")
        assert book.remaining().epsilon == 0.0
    with pytest.raises(BudgetExceeded):  # ten times the float .1 is more than 1
        new().grant(Repeated(pure(0.1), count=10), purpose="a hair too much")


def test_bad_randomness_is_refused():
    grant = new().grant(pure(0.1), purpose="p")
    with pytest.raises(InvalidParameter, match="randomness"):
        grant.draw(pure(0.1), purpose="p", randomness="none")
    assert sum(grant.remaining.values()) == 1


def test_repr_names_terms_and_total():
    ledger = new()
    grant = ledger.grant(pure(0.25), purpose="p")
    assert "epsilon=0.25" in repr(ledger)
    assert "purpose='p'" in repr(grant)


def test_an_event_whose_fields_were_changed_pays_nothing_into_the_budget():
    """A pickle skips the constructor's checks: whatever it brings, no charge is negative or no number."""
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    honest = pickle.dumps(PureEvent(epsilon=0.5, adjacency=A))
    for wrong in (-0.5, float("nan"), float("inf")):
        forged = pickle.loads(honest.replace(struct.pack(">d", 0.5), struct.pack(">d", wrong)))
        with pytest.raises((PrivacyError, ValueError)):
            ledger.grant(forged, purpose="refund")
    assert ledger.spent().epsilon == 0.0
    assert ledger.remaining().epsilon == 1.0
