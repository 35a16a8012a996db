"""Any sequence of claims, settlements, crashes and faults: no unit ever gains, and none loses more than its budget."""

import errno
import os
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ledgerwood.accounting import Adjacency, Budget, GaussianEvent, Ledger, PrivacyUnit
from ledgerwood.accounting.individuals import FULL
from ledgerwood.curator.inputs.values import read_keys
from ledgerwood.curator.tables import vault_files
from ledgerwood.curator.tables.vault import RowVault
from ledgerwood.errors import LedgerError, LedgerWriteFailed

A = Adjacency.ADD_REMOVE
EVENT = GaussianEvent(noise_multiplier=20.0, adjacency=A)
RECEIPT = (
    Ledger(Budget(epsilon=1.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)
    .grant(EVENT, purpose="stream")
    .draw(EVENT, purpose="stream")
)
UNITS = 6
STEPS = ("_write", "_fsync", "sync_folder")
everybody = st.permutations(range(UNITS)).flatmap(
    lambda order: st.integers(1, UNITS).map(lambda count: np.array(order[:count]))
)


class VaultMachine(RuleBasedStateMachine):
    """A file vault beside what each unit has really lost."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "rows.vault"
        self.vault = RowVault.open(self.path)
        self.vault.begin(RECEIPT)
        self.lost = np.zeros(UNITS, dtype=np.int64)  # what was really lost, in rounds that read rows
        self.left = np.full(UNITS, FULL)  # the most that the vault may give
        self.claimed, self.claims, self.faults = None, 0, False

    def teardown(self):
        self.vault.close()
        self.folder.cleanup()

    @rule(units=everybody)
    def claim(self, units):
        keys = read_keys(units, len(units))
        if self.claimed is not None:
            try:
                self.vault.claim(keys, RECEIPT)
            except LedgerError:
                return
            raise AssertionError("a second claim")
        granted = self.vault.claim(keys, RECEIPT)
        assert (granted <= self.left[units]).all()
        assert self.faults or (granted == self.left[units]).all()
        self.left[units] = granted
        self.claimed, self.claims = (units, granted), self.claims + 1

    @precondition(lambda self: self.claimed is not None)
    @rule(data=st.data(), use=st.sampled_from(("nothing", "all", "some")))
    def read_and_settle(self, data, use):
        units, granted = self.claimed
        match use:
            case "nothing":
                used = np.zeros_like(granted)
            case "all":
                used = granted.copy()
            case _:
                used = np.array([data.draw(st.integers(0, int(most))) for most in granted])
        self.lost[units] += used
        self.claimed = None
        self.left[units] = granted - used
        self.vault.settle(granted - used)

    @precondition(lambda self: self.claimed is not None)
    @rule()
    def crash_while_rows_are_read(self):
        units, granted = self.claimed
        self.lost[units] += granted  # for all that anybody knows
        self.left[units] = 0
        self.claimed = None
        self.reopen()

    @precondition(lambda self: self.claimed is None)
    @rule()
    def reopen(self):
        self.vault.close()
        self.vault = RowVault.open(self.path)
        assert self.vault.draw == RECEIPT.hash
        assert self.vault.claims >= self.claims

    @precondition(lambda self: self.claimed is None)
    @rule(units=everybody, step=st.sampled_from(STEPS), reopened=st.booleans())
    def claim_that_fails(self, units, step, reopened):
        with mock.patch.object(vault_files, step, side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))):
            try:
                self.vault.claim(read_keys(units, len(units)), RECEIPT)
            except LedgerWriteFailed:
                pass
            else:
                raise AssertionError("the claim was not durable")
        # It may be on the disk all the same: after a crash those units are spent.
        self.faults |= step == "sync_folder"
        if reopened:
            self.reopen()

    @precondition(lambda self: self.claimed is not None)
    @rule(step=st.sampled_from(STEPS), again=st.booleans())
    def settlement_that_fails(self, step, again):
        units, granted = self.claimed
        used = granted // 2
        with mock.patch.object(vault_files, step, side_effect=OSError(errno.EIO, os.strerror(errno.EIO))):
            try:
                self.vault.settle(granted - used)
            except LedgerWriteFailed:
                pass
            else:
                raise AssertionError("the settlement was not durable")
        self.lost[units] += used
        self.left[units] = granted - used
        self.claimed = None
        if again:
            self.vault.settle(granted - used)
        else:
            self.faults = True
            self.reopen()

    @invariant()
    def nobody_gains_or_loses_more_than_a_budget(self):
        assert (self.lost + self.left <= FULL).all()
        on_disk = vault_files.decode(self.path.read_bytes(), self.path)
        assert on_disk.left.sum() <= self.left.sum()
        if self.claimed is not None:
            assert (on_disk.left == 0).sum() >= len(self.claimed[0])


VaultMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestVaultMachine = pytest.mark.slow(VaultMachine.TestCase)  # any sequence of calls
