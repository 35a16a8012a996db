"""A long ledger keeps its entries compressed, and in a file without a name: what is read back is what was added."""

import os

import pytest

from ledgerwood.accounting import Adjacency, Budget, GaussianEvent, Ledger, PrivacyUnit, PureEvent, ZCDPFilter
from ledgerwood.accounting.ledger import GrantEntry, kept
from ledgerwood.accounting.ledger.entries import sealed
from ledgerwood.accounting.ledger.kept import KeptEntries
from ledgerwood.errors import DrawRefused, InvalidParameter

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=5.0, delta=1e-6, adjacency=A)


@pytest.fixture(params=[16 * 2**20, 0], ids=["in memory", "in a file"])
def small(monkeypatch, request):
    """Blocks of 4 entries, of which the newest 8 are kept as they are."""
    monkeypatch.setattr(kept, "_BLOCK", 4)
    monkeypatch.setattr(kept, "_NEWEST", 8)
    monkeypatch.setattr(kept, "_IN_MEMORY", request.param)


def spent(times, **more):
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW, filter=ZCDPFilter())
    for place in range(times):
        ledger.spend(GaussianEvent(noise_multiplier=100.0 + place, adjacency=A), purpose=f"spend {place}")
    return ledger


def test_entries_come_back_as_they_were(small):
    ledger = spent(31)
    whole = ledger.entries
    assert len(whole) == 63
    assert [entry.index for entry in whole] == list(range(63))
    assert whole[-1].hash == ledger.head
    held = ledger._state.entries
    assert len(held._blocks) > 10
    assert [held[place] for place in (-63, -1, 0, 17, 62)] == [whole[place] for place in (0, -1, 0, 17, 62)]
    assert list(held[3:40:7]) == list(whole[3:40:7])
    assert all(ledger.entries_since(start) == whole[start:] for start in range(65))
    with pytest.raises(IndexError, match="no entry 63 of 63"):
        held[63]


def test_plans_of_a_long_ledger_are_read_from_where_one_stopped(small):
    ledger = spent(31)
    plans = tuple(entry.event for entry in ledger.entries if isinstance(entry, GrantEntry))
    assert ledger.plans == plans
    assert all(ledger.plans_since(known) == plans[known:] for known in range(33))
    with pytest.raises(InvalidParameter, match="known=-1"):
        ledger.plans_since(-1)


def test_a_grant_that_is_drawn_to_the_end_is_refused_for_what_it_is(small):
    ledger = spent(31)
    state = ledger._state
    for grant in (1, 61):
        event = ledger.entries[grant].event
        with pytest.raises(DrawRefused, match=f"grant {grant} has no .* left"):
            state.propose_draw(grant, event, "again", "secure")
        with pytest.raises(DrawRefused, match=f"grant {grant} does not hold"):
            state.propose_draw(grant, PureEvent(epsilon=0.1, adjacency=A), "another", "secure")
    for other in (0, 2, 63, -62):
        with pytest.raises(DrawRefused, match=f"entry {other} is not a grant"):
            state.propose_draw(other, event, "no grant", "secure")
    assert not state._open  # nothing is kept of grants without anything left


def test_an_old_grant_that_holds_something_can_be_drawn_from(small):
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW, filter=ZCDPFilter())
    event = GaussianEvent(noise_multiplier=50.0, adjacency=A)
    grant = ledger.grant(event, purpose="early")
    for place in range(20):
        ledger.spend(GaussianEvent(noise_multiplier=100.0 + place, adjacency=A), purpose="later")
    assert dict(grant.remaining) == {event: 1}
    assert grant.draw(event, purpose="late").grant == grant.index
    assert dict(grant.remaining) == {}


def test_a_full_disk_keeps_the_blocks_in_memory(monkeypatch):
    monkeypatch.setattr(kept, "_BLOCK", 4)
    monkeypatch.setattr(kept, "_NEWEST", 8)
    monkeypatch.setattr(kept, "_IN_MEMORY", 0)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    ledger = spent(20)
    assert [entry.index for entry in ledger.entries] == list(range(41))
    assert ledger._state.entries._in_memory > 0


def test_entries_that_are_all_kept_are_not_compressed(small):
    first = sealed(Ledger(BUDGET, unit=PrivacyUnit.ROW).entries[0])
    held = KeptEntries(first, compact=False)
    for _ in range(40):
        held.append(first)
    assert (len(held), held._blocks, held.last) == (41, [], first)
