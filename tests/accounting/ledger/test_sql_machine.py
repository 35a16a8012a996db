"""Any sequence of grants, draws and reopenings through two handles is what one ledger in memory says."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ledgerwood.accounting import Adjacency, Budget, Composed, Ledger, PrivacyUnit, PureEvent, Repeated
from ledgerwood.errors import BudgetExceeded, DrawRefused
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
EVENTS = [PureEvent(epsilon=epsilon, adjacency=A) for epsilon in (0.0625, 0.125, 0.25, 0.3)]
BUDGET = Budget(epsilon=2.0, delta=0.0, adjacency=A)
MEMORY = Path("/dev/shm")  # syncing costs nothing there
HANDLES = st.integers(0, 1)


def outcome(act):
    """What came of it: a value, or the refusal in words."""
    try:
        return act()
    except (BudgetExceeded, DrawRefused) as refusal:
        return f"{type(refusal).__name__}: {refusal}"


class SharedLedgerMachine(RuleBasedStateMachine):
    """Two handles on one database, beside a ledger in memory that does the same."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.url = f"sqlite:///{self.folder.name}/team.db"
        self.model = Ledger(BUDGET, unit=PrivacyUnit.ROW)
        self.handles = [self.opened(), self.opened()]
        self.purses = []

    def opened(self):
        return Ledger.open(self.url, dataset="adult", budget=BUDGET, unit=PrivacyUnit.ROW)

    def teardown(self):
        for handle in self.handles:
            handle.close()
        self.folder.cleanup()

    @rule(i=HANDLES, parts=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(1, 3)), min_size=1, max_size=3))
    def grant(self, i, parts):
        plan = Composed(tuple(Repeated(event, count=count) for event, count in parts))
        shared, alone = (
            outcome(lambda ledger=ledger: ledger.grant(plan, purpose="plan"))
            for ledger in (self.handles[i], self.model)
        )
        if isinstance(alone, str):
            assert shared == alone
            return
        assert (shared.index, shared.charge, shared.event) == (alone.index, alone.charge, alone.event)
        self.purses.append((i, shared, alone))

    @precondition(lambda self: self.purses)
    @rule(data=st.data(), event=st.sampled_from(EVENTS))
    def draw(self, data, event):
        _, shared, alone = data.draw(st.sampled_from(self.purses))
        found = [outcome(lambda purse=purse: purse.draw(event, purpose="draw")) for purse in (shared, alone)]
        if isinstance(found[1], str):
            assert found[0] == found[1]
        else:
            assert (found[0].index, found[0].grant) == (found[1].index, found[1].grant)

    @rule(i=HANDLES)
    def reopen(self, i):
        self.handles[i].close()
        self.handles[i] = self.opened()
        self.purses = [purse for purse in self.purses if purse[0] != i]

    @invariant()
    def both_handles_say_what_the_model_says(self):
        for handle in self.handles:
            assert handle.spent() == self.model.spent()
            assert handle.remaining() == self.model.remaining()
            assert len(handle.entries) == len(self.model.entries)
        assert self.handles[0].entries == self.handles[1].entries
        for _, shared, alone in self.purses:
            assert shared.remaining == alone.remaining

    @invariant()
    def it_verifies(self):
        report = verify_ledger(self.url, dataset="adult", head=self.handles[0].head)
        assert report.epsilon_readded == self.model.spent().epsilon <= 2


SharedLedgerMachine.TestCase.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
TestSharedLedgerMachine = pytest.mark.slow(SharedLedgerMachine.TestCase)  # any sequence of grants by several processes
