"""Rounds of a random allocation: one draw for all steps, each step once and in order, each row in exactly k of t."""

import os

import numpy as np
import pytest

from ledgerwood import (
    Adjacency,
    Budget,
    Composed,
    Ledger,
    Numeric,
    PoissonSampled,
    PrivacyUnit,
    RandomAllocation,
    Repeated,
    Schema,
)
from ledgerwood.curator import Curator, LabelCount, LabelSum, RowVault, StreamCurator, StreamRows, Table
from ledgerwood.curator.filtered import RunPurse
from ledgerwood.errors import DrawRefused, RoundViolation, UnsupportedEvent
from ledgerwood.mechanisms import GaussianMechanism, SeededRandom

A = Adjacency.ADD_REMOVE
SCHEMA = Schema.uniform(0.0, 1.0, n_features=2, target=Numeric("y", -1.0, 1.0))
QUIET = GaussianMechanism(stddev=4.0)
COUNT = QUIET.event(LabelCount().sensitivity(A), A)
NOISE = GaussianMechanism(stddev=3.0)
SUM = NOISE.event(LabelSum().sensitivity(A), A)
STEP = Composed((COUNT, SUM))
EVENT = RandomAllocation(STEP, selected=2, steps=5)


def table_of(n_rows=50):
    return Table(schema=SCHEMA, cells=np.zeros((2, n_rows), np.uint8), targets=np.full(n_rows, 0.5))


def opened(event=EVENT, *, table=None, seed=1):
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=A), unit=PrivacyUnit.ROW)
    return Curator(table or table_of(), ledger.grant(event, purpose="test"), SeededRandom(seed)), ledger


@pytest.fixture
def masks(monkeypatch):
    """The rows of each release, in its order."""
    seen, plain = [], Table.statistic

    def spied(self, query, sampled, budgets=None):
        seen.append(sampled.copy())
        return plain(self, query, sampled, budgets)

    monkeypatch.setattr(Table, "statistic", spied)
    return seen


def both(round_):
    count = round_.release(LabelCount(), QUIET, purpose="count")
    return count, round_.release(LabelSum(), NOISE, purpose="sum")


def test_each_row_is_in_as_many_steps_as_were_priced_and_one_draw_pays(masks):
    curator, ledger = opened()
    with curator.open_allocation(EVENT, purpose="steps") as steps:
        assert len(steps) == 5
        receipts = []
        for _ in range(len(steps)):
            with steps.step() as round_:
                receipts += [each.receipt for each in both(round_)]
    assert len({receipt.hash for receipt in receipts}) == 1
    assert receipts[0].event == EVENT
    assert len(ledger.entries) == 2 + 1  # opened, granted, and one draw
    rows = np.array(masks)
    assert np.array_equal(rows[::2], rows[1::2])  # what a step releases sees the same rows
    assert rows[::2].sum(axis=0).tolist() == [2] * 50


def test_with_the_same_seed_the_same_rows_and_with_another_one_others(masks):
    found = []
    for seed in (3, 3, 4):
        masks.clear()
        curator, _ = opened(seed=seed)
        with curator.open_allocation(EVENT, purpose="steps") as steps:
            for _ in range(5):
                both(steps.step())
        found.append(np.array(masks))
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_two_allocations_of_one_grant_choose_afresh(masks):
    event = RandomAllocation(SUM, selected=1, steps=2)
    curator, _ = opened(Repeated(event, count=2))
    for _ in range(2):
        with curator.open_allocation(event, purpose="steps") as steps:
            for _ in range(2):
                steps.step().release(LabelSum(), NOISE, purpose="sum")
    assert not np.array_equal(masks[0], masks[2])
    assert np.array_equal(masks[0], ~masks[1])


def test_fewer_steps_may_be_carried_out_but_never_more():
    curator, _ = opened()
    with curator.open_allocation(EVENT, purpose="steps") as steps:
        for _ in range(5):
            steps.step()
        with pytest.raises(RoundViolation, match="draw is of 5 steps, and all of them have been carried out"):
            steps.step()
    with pytest.raises(RoundViolation, match="the allocation is closed"):
        steps.step()
    with pytest.raises(DrawRefused):
        curator.open_allocation(EVENT, purpose="again")
    curator, _ = opened()
    with curator.open_allocation(EVENT, purpose="steps") as steps:
        both(steps.step())
    with pytest.raises(RoundViolation, match="step 2: the allocation is closed"):
        steps.step()


def test_a_step_releases_its_event_once_and_ends_with_the_next():
    curator, _ = opened()
    with curator.open_allocation(EVENT, purpose="steps") as steps:
        first = steps.step()
        both(first)
        with pytest.raises(RoundViolation, match="which this draw does not hold"):
            first.release(LabelSum(), NOISE, purpose="again")
        second = steps.step()
        with pytest.raises(RoundViolation, match="the round is closed"):
            first.release(LabelSum(), NOISE, purpose="late")
        second.release(LabelSum(), NOISE, purpose="sum")
    with pytest.raises(RoundViolation, match="the round is closed"):
        second.release(LabelCount(), QUIET, purpose="late")


def test_a_table_without_rows_has_steps_without_rows():
    curator, _ = opened(table=table_of(0))
    with curator.open_allocation(EVENT, purpose="steps") as steps:
        count, _ = both(steps.step())
    assert abs(count.real).max() < 40.0


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (SUM, "an allocation is a RandomAllocation"),
        (RandomAllocation(PoissonSampled(SUM, sampling_rate=0.5), steps=2), "one sample per draw"),
        (RandomAllocation(Repeated(RandomAllocation(SUM, steps=2), count=2), steps=2), "one sample per draw"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_and_nothing_is_drawn(event, words):
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=A), unit=PrivacyUnit.ROW)
    curator = Curator(table_of(), ledger.grant(SUM, purpose="test"), SeededRandom(1))
    before = len(ledger.entries)
    with pytest.raises(UnsupportedEvent, match=words):
        curator.open_allocation(event, purpose="steps")
    assert len(ledger.entries) == before


def test_an_allocation_is_not_opened_as_a_round_and_nothing_is_drawn():
    curator, ledger = opened()
    before = len(ledger.entries)
    with pytest.raises(UnsupportedEvent, match="opened by open_allocation"):
        curator.open(EVENT, purpose="steps")
    assert len(ledger.entries) == before


def test_an_allocation_that_was_not_granted_chooses_no_row(monkeypatch):
    curator, _ = opened(SUM)
    monkeypatch.setattr(Table, "allocate", lambda *given: pytest.fail("rows were allocated"))
    with pytest.raises(DrawRefused):
        curator.open_allocation(EVENT, purpose="steps")


def test_a_stream_allocates_no_rows():
    event = RandomAllocation(SUM, steps=2)
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=A), unit=PrivacyUnit.ROW)
    grant = ledger.grant(event, purpose="test")
    rows = StreamRows.from_data([[0.5, 0.5]], [0.0], ["a"], SCHEMA, loss="squared", bins=8, vault=RowVault())
    with pytest.raises(UnsupportedEvent, match="sampling='poisson'"):
        StreamCurator(rows, grant, SeededRandom(1)).open_allocation(event, purpose="steps")


def test_a_run_of_a_selection_has_steps_that_end_with_it():
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=A), unit=PrivacyUnit.ROW)
    receipt = ledger.grant(EVENT, purpose="other").draw(EVENT, purpose="other")
    with RunPurse(EVENT, receipt) as purse:
        steps = Curator(table_of(), purse, SeededRandom(1), gate=purse.gate).open_allocation(EVENT, purpose="run")
        round_ = steps.step()
        both(round_)
    with pytest.raises(RoundViolation, match="closed"):
        steps.step()


def test_a_forked_child_carries_out_no_step(fork):
    curator, _ = opened()
    with curator.open_allocation(EVENT, purpose="steps") as steps:

        def child():
            try:
                steps.step()
            except RoundViolation as error:
                return 3 if "belongs to another process" in str(error) else 4
            return 0

        _, status = os.waitpid(fork(child), 0)
        assert os.waitstatus_to_exitcode(status) == 3
