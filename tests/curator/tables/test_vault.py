"""The row vault: claimed is spent until it is settled, nothing is ever given twice, and nothing of it is shown."""

import copy
import os
import pickle

import numpy as np
import pytest

from ledgerwood.accounting import Adjacency, Budget, GaussianEvent, Ledger, PrivacyUnit
from ledgerwood.accounting.individuals import FULL
from ledgerwood.curator.inputs.values import UnitKeys, read_keys
from ledgerwood.curator.tables import vault as vaults
from ledgerwood.curator.tables.vault import RowVault
from ledgerwood.errors import InvalidParameter, LedgerError

A = Adjacency.ADD_REMOVE


def paid(multiplier=20.0, purpose="stream"):
    """The receipt of a draw of its own ledger."""
    event = GaussianEvent(noise_multiplier=multiplier, adjacency=A)
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)
    return ledger.grant(event, purpose=purpose).draw(event, purpose=purpose)


RECEIPT = paid()


def keys(*values):
    return read_keys(list(values), len(values))


@pytest.fixture(params=["memory", "file"])
def vault(request, tmp_path):
    with RowVault() if request.param == "memory" else RowVault.open(tmp_path / "rows.vault") as made:
        made.begin(RECEIPT)
        yield made


def test_a_new_unit_has_a_full_budget_and_an_old_one_what_it_had_left(vault):
    assert vault.claim(keys("a", "b"), RECEIPT).tolist() == [FULL, FULL]
    vault.settle(np.array([FULL - 5, 7]))
    assert vault.claim(keys("b", "c", "a"), RECEIPT).tolist() == [7, FULL, FULL - 5]
    vault.settle(np.array([7, 0, 1]))
    assert vault.claim(keys("c", "a", "b"), RECEIPT).tolist() == [0, 1, 7]
    assert vault.claims == 3


def test_many_units_are_found_again_in_any_order(vault):
    rng = np.random.default_rng(5)
    truth = {}
    for _ in range(5):
        units = rng.choice(3_000, size=1_000, replace=False)
        left = vault.claim(read_keys(units, len(units)), RECEIPT)
        assert left.tolist() == [truth.get(unit, FULL) for unit in units.tolist()]
        after = rng.integers(0, left + 1)
        vault.settle(after)
        truth.update(zip(units.tolist(), after.tolist(), strict=True))


def test_a_stream_has_keys_of_one_type_and_a_number_in_a_text_is_that_number(vault):
    vault.claim(read_keys(np.array([1]), 1), RECEIPT)
    vault.settle(np.array([3]))
    with pytest.raises(LedgerError, match="keys are integers, and these are strings"):
        vault.claim(read_keys(np.array(["1"]), 1), RECEIPT)
    # A list has no type: what it holds is one unit with what a column of numbers holds.
    assert vault.claim(keys("1"), RECEIPT).tolist() == [3]


def test_one_claim_at_a_time(vault):
    vault.claim(keys("a"), RECEIPT)
    for other in ("a", "b"):
        with pytest.raises(LedgerError, match="claimed and not settled"):
            vault.claim(keys(other), RECEIPT)
    vault.settle(np.array([5]))
    with pytest.raises(LedgerError, match="nothing is claimed"):
        vault.settle(np.array([5]))
    assert vault.claim(keys("a", "b"), RECEIPT).tolist() == [5, FULL]


@pytest.mark.parametrize(
    "left",
    [
        np.array([FULL + 1, 0]),
        np.array([-1, 0]),
        np.array([0]),
        np.array([[0, 0]]),
        np.array([0.0, 0.0]),
        np.array([0, 0], dtype=np.uint64),
    ],
)
def test_nothing_is_given_back_that_was_not_there(vault, left):
    vault.claim(keys("a", "b"), RECEIPT)
    with pytest.raises(InvalidParameter, match="between 0 and the claimed amount"):
        vault.settle(left)
    vault.settle(np.array([4, 5]))
    vault.claim(keys("a", "b"), RECEIPT)
    with pytest.raises(InvalidParameter):
        vault.settle(np.array([5, 5]))


def test_what_was_granted_is_the_callers_own_copy(vault):
    left = vault.claim(keys("a"), RECEIPT)
    left[0] = 2**60
    with pytest.raises(InvalidParameter):
        vault.settle(left)


def test_a_vault_serves_one_stream(vault):
    other = paid(purpose="another stream")
    with pytest.raises(LedgerError, match="a new stream needs a new vault"):
        vault.begin(other)
    with pytest.raises(LedgerError, match=f"draw {RECEIPT.hash[:16]}.*not of {other.hash[:16]}"):
        vault.claim(keys("a"), other)
    with pytest.raises(LedgerError, match="belongs to the stream"):
        vault.claim(keys("a"), paid(multiplier=30.0))
    assert vault.draw == RECEIPT.hash


def test_a_new_vault_gives_nothing_to_a_stream_that_has_begun():
    vault = RowVault()
    assert (vault.draw, vault.claims) == (None, 0)
    with pytest.raises(LedgerError, match="is new"):
        vault.claim(keys("a"), RECEIPT)


def test_two_keys_of_one_digest_are_refused(vault, monkeypatch):
    with pytest.raises(LedgerError, match="same digest"):
        vault.claim(UnitKeys("strings", (b"sa", b"sb", b"sa"), np.arange(3), 3), RECEIPT)
    monkeypatch.setattr(vaults, "key_digests", lambda keys, salt: np.array([b"x" * 16] * 2, dtype="S16"))
    with pytest.raises(LedgerError, match="same digest"):
        vault.claim(keys("a", "b"), RECEIPT)
    assert vault.claims == 0


def test_digests_that_end_or_begin_in_zeros_are_told_apart(vault, monkeypatch):
    tails = [b"\0" * 16, b"\0" * 15 + b"\1", b"\1" + b"\0" * 15, b"\1\1" + b"\0" * 14, b"\xff" * 16]
    monkeypatch.setattr(vaults, "key_digests", lambda keys, salt: np.frombuffer(b"".join(tails), dtype="S16"))
    five = keys(*"abcde")
    vault.claim(five, RECEIPT)
    vault.settle(np.arange(5))
    assert vault.claim(five, RECEIPT).tolist() == [0, 1, 2, 3, 4]


def test_salts_differ_so_that_two_vaults_cannot_be_matched(tmp_path):
    found = []
    for name in ("a", "b"):
        with RowVault.open(tmp_path / name) as vault:
            vault.begin(RECEIPT)
            vault.claim(keys("rosa", "olga"), RECEIPT)
            found.append(set(vault._contents.units.tolist()))
        data = (tmp_path / name).read_bytes()
        assert b"rosa" not in data  # no word of hexadecimal digits, which hashes are made of
        assert b"olga" not in data
    assert not found[0] & found[1]


def test_nothing_is_copied_pickled_or_shown(vault):
    vault.claim(keys("ada"), RECEIPT)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LedgerError, match="cannot be copied"):
            duplicate(vault)
    assert "ada" not in repr(vault)
    assert repr(vault).startswith("RowVault(path=")
    public = {name for name in dir(vault) if not name.startswith("_")}
    assert public == {"begin", "claim", "claims", "close", "draw", "open", "prepare", "require", "settle"}


def test_a_forked_child_gets_nothing_and_does_no_harm(vault, fork):
    vault.claim(keys("a"), RECEIPT)
    attempts = [
        lambda: vault.settle(np.array([0])),
        lambda: vault.claim(keys("b"), RECEIPT),
        lambda: vault.begin(RECEIPT),
    ]

    def try_all():
        refused = 0
        for attempt in attempts:
            try:
                attempt()
            except LedgerError as refusal:
                refused += "another process" in str(refusal)
        vault.close()
        return refused

    assert os.waitstatus_to_exitcode(os.waitpid(fork(try_all), 0)[1]) == len(attempts)
    vault.settle(np.array([9]))
    assert vault.claim(keys("a"), RECEIPT).tolist() == [9]
