"""Any sequence of grants, draws and reopenings keeps the ledger's laws."""

import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ledgerwood.accounting import Adjacency, Budget, Composed, Ledger, PrivacyUnit, PureEvent, Repeated
from ledgerwood.errors import BudgetExceeded, DrawRefused, LedgerError
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
EVENTS = [PureEvent(epsilon=epsilon, adjacency=A) for epsilon in (0.0625, 0.125, 0.25, 0.3)]
BUDGET = Budget(epsilon=2.0, delta=0.0, adjacency=A)


class LedgerMachine(RuleBasedStateMachine):
    """A file ledger beside a model of it: exact sums, and a multiset a grant."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "run.ledger.jsonl"
        self.ledger = Ledger.open(self.path, budget=BUDGET, unit=PrivacyUnit.ROW)
        self.spent, self.grants, self.entries = Fraction(), [], 1

    def teardown(self):
        self.ledger.close()
        self.folder.cleanup()

    @rule(parts=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(1, 3)), min_size=1, max_size=3))
    def grant(self, parts):
        plan = Composed(tuple(Repeated(event, count=count) for event, count in parts))
        cost = sum(Fraction(event.epsilon) * count for event, count in parts)
        try:
            grant = self.ledger.grant(plan, purpose="plan")
        except BudgetExceeded:
            # The plan's epsilon is the exact sum, rounded up to a float: at most an ulp above it.
            assert self.spent + cost * (1 + Fraction(1, 2**50)) > 2
            return
        self.spent += Fraction(grant.charge.epsilon)
        assert cost <= Fraction(grant.charge.epsilon) <= cost * (1 + Fraction(1, 2**50))
        held = Counter()
        for event, count in parts:
            held[event] += count
        self.grants.append((grant, held))
        self.entries += 1

    @precondition(lambda self: self.grants)
    @rule(data=st.data(), event=st.sampled_from(EVENTS))
    def draw(self, data, event):
        grant, held = data.draw(st.sampled_from(self.grants))
        try:
            receipt = grant.draw(event, purpose="draw")
        except DrawRefused:
            assert held[event] == 0
            return
        assert held[event] > 0
        held[event] -= 1
        assert receipt.index == self.entries
        self.entries += 1

    @rule()
    def reopen(self):
        head = self.ledger.head
        self.ledger.close()
        for grant, held in self.grants:
            for event in held:
                try:
                    grant.draw(event, purpose="too late")
                except (LedgerError, DrawRefused):
                    continue
                raise AssertionError("a closed ledger drew")
        self.grants = []
        self.ledger = Ledger.open(self.path)
        assert self.ledger.head == head

    @invariant()
    def the_file_is_the_ledger(self):
        assert len(self.ledger.entries) == self.entries
        assert Fraction(self.ledger.spent().epsilon) >= self.spent
        assert self.spent <= 2
        assert self.path.read_text().splitlines() == list(self.ledger.record().lines)
        for grant, held in self.grants:
            assert dict(grant.remaining) == {event: count for event, count in held.items() if count}

    @invariant()
    def it_verifies(self):
        assert verify_ledger(self.path, head=self.ledger.head).epsilon_readded == self.ledger.spent().epsilon


LedgerMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
TestLedgerMachine = LedgerMachine.TestCase
