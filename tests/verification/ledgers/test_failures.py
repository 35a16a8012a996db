"""A ledger that is not in order: what failed, from which entry on, and what can still be said."""

import json

import pytest

from ledgerwood.accounting import Adjacency, Budget, Ledger, PrivacyUnit, PureEvent
from ledgerwood.errors import LedgerCorrupted
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE


@pytest.fixture(scope="module")
def lines():
    ledger = Ledger(Budget(epsilon=1.0, delta=0.0, adjacency=A), unit=PrivacyUnit.ROW, owner="Ada")
    for amount in (0.25, 0.5, 0.125):
        ledger.spend(PureEvent(epsilon=amount, adjacency=A), purpose=f"step {amount}")
    return ledger.record().lines


def failure_of(tmp_path, text, **asked):
    (tmp_path / "broken.jsonl").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(LedgerCorrupted) as caught:
        verify_ledger(tmp_path / "broken.jsonl", **asked)
    failure = caught.value.failure
    assert str(caught.value).startswith(f"entry {failure.entry}: {failure.reason}")
    assert caught.value.entry == failure.entry
    return failure


def whole(lines):
    return "".join(line + "\n" for line in lines)


@pytest.mark.parametrize("index", range(1, 7))
def test_an_altered_entry(tmp_path, lines, index):
    altered = [line.replace("step", "leap").replace('"draw"', '"drew"') if i == index else line
               for i, line in enumerate(lines)]  # fmt: skip
    failure = failure_of(tmp_path, whole(altered))
    assert (failure.entry, failure.entries) == (index, 7)
    sound = failure.sound
    assert sound.head == json.loads(lines[index - 1])["hash"]
    assert sound.epsilon_readded == sum((0.25, 0.5, 0.125)[: index // 2])
    assert (sound.owner, sound.grants, sound.draws) == ("Ada", index // 2, (index - 1) // 2)
    told = str(failure)
    assert f"Entry {index} of 7 (counted from 0) fails: " in told
    assert sound.head in told
    assert f"Nothing from entry {index} on is vouched for" in told
    assert "more may have been spent" in told


def test_the_first_entry_leaves_nothing_to_say(tmp_path, lines):
    failure = failure_of(tmp_path, whole([lines[0].replace("Ada", "Eve"), *lines[1:]]))
    assert (failure.entry, failure.sound) == (0, None)
    assert "nothing can be said of this ledger" in str(failure)
    assert failure_of(tmp_path, whole(lines), dataset="another").sound is None
    assert failure_of(tmp_path, "").entries == 0


def test_ends_that_are_cut(tmp_path, lines):
    short = failure_of(tmp_path, whole(lines)[:-9])
    assert (short.entry, short.entries, short.sound.grants) == (6, 6, 3)
    assert "does not end in a newline" in short.reason
    odd = failure_of(tmp_path, whole(lines[:3]).encode() + b"\xff\n" + whole(lines[3:]).encode())
    assert (odd.entry, odd.sound.grants) == (3, 1)
    assert "not UTF-8" in odd.reason
    tail = failure_of(tmp_path, whole(lines[:5]), head=json.loads(lines[-1])["hash"])
    assert (tail.entry, tail.sound.grants) == (4, 2)
    assert "its tail was cut off" in tail.reason


def test_too_much_is_granted(tmp_path, lines):
    other = Ledger(Budget(epsilon=9.0, delta=0.0, adjacency=A), unit=PrivacyUnit.ROW)
    other.spend(PureEvent(epsilon=8.0, adjacency=A), purpose="more")
    forged = failure_of(tmp_path, whole([*lines, other.record().lines[1]]))
    assert (forged.entry, forged.sound.epsilon_readded) == (7, 0.875)
