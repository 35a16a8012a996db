"""Ledgers of every filter: in memory, in files and databases, under any sequence of grants; then verified."""

import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ledgerwood.accounting import (
    Adjacency,
    AdvancedCompositionFilter,
    BasicFilter,
    BoundedRangeEvent,
    Budget,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    LedgerRecord,
    PoissonSampled,
    PrivacyUnit,
    PureEvent,
    RenyiFilter,
    Repeated,
    ZCDPFilter,
)
from ledgerwood.errors import BudgetExceeded, InvalidParameter, LedgerCorrupted, LedgerError, UnsupportedEvent
from ledgerwood.verification import verify_ledger

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=2.0, delta=1e-5, adjacency=A)
FILTERS = [ZCDPFilter(), RenyiFilter(order=20.0), AdvancedCompositionFilter(delta_prime=2e-6)]
EVENTS = [
    PureEvent(epsilon=0.25, adjacency=A),
    LaplaceEvent(noise_multiplier=8.0, adjacency=A),
    BoundedRangeEvent(epsilon=0.1875, adjacency=A),
    GaussianEvent(noise_multiplier=40.0, adjacency=A),
    PoissonSampled(GaussianEvent(noise_multiplier=2.0, adjacency=A), sampling_rate=0.01),
]


def spend(ledger, event, purpose="release"):
    delta = 1e-6 if isinstance(ledger.filter, AdvancedCompositionFilter) and event.pure_epsilon() > 1 else None
    ledger.grant(event, purpose=purpose, delta=delta).draw(event, purpose=purpose)


class FilteredMachine(RuleBasedStateMachine):
    """A file ledger that is granted and reopened at will."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "run.ledger.jsonl"

    @initialize(filter_=st.sampled_from(FILTERS))
    def opening(self, filter_):
        self.ledger = Ledger.open(self.path, budget=BUDGET, unit=PrivacyUnit.ROW, filter=filter_)

    def teardown(self):
        if hasattr(self, "ledger"):
            self.ledger.close()
        self.folder.cleanup()

    @rule(event=st.sampled_from(EVENTS), count=st.integers(1, 12))
    def grant(self, event, count):
        before = self.ledger.head
        delta = 1e-6 if isinstance(self.ledger.filter, AdvancedCompositionFilter) and event.pure_epsilon() > 1 else None
        try:
            self.ledger.grant(Repeated(event, count=count), purpose="plan", delta=delta)
        except UnsupportedEvent:
            assert isinstance(self.ledger.filter, ZCDPFilter)
            assert event == EVENTS[4]
            assert self.ledger.head == before
        except BudgetExceeded as refusal:
            assert any(refusal.requested[name] > left for name, left in refusal.remaining.items())
            assert self.ledger.head == before

    @rule()
    def reopen(self):
        before = self.ledger.head, self.ledger.filter, self.ledger.spent(), self.ledger.remaining()
        self.ledger.close()
        self.ledger = Ledger.open(self.path)
        assert (self.ledger.head, self.ledger.filter, self.ledger.spent(), self.ledger.remaining()) == before

    @invariant()
    def within_the_budget_for_the_verifier_too(self):
        if not hasattr(self, "ledger"):
            return
        spent, report = self.ledger.spent(), verify_ledger(self.path, head=self.ledger.head)
        assert spent.epsilon <= BUDGET.epsilon
        assert spent.delta <= BUDGET.delta
        assert report.verdict == "confirmed"
        # Each grant counts as its charge or the verifier's own upper bound, which is at most 1 % above a confirmed
        # charge; a filter's epsilon is at worst quadratic in its charges.
        assert spent.epsilon * (1.0 - 1e-9) <= report.epsilon_readded <= spent.epsilon * 1.01**2 + 1e-15
        assert report.delta_readded == spent.delta


FilteredMachine.TestCase.settings = settings(max_examples=10, stateful_step_count=10, deadline=None)
TestFilteredMachine = pytest.mark.slow(FilteredMachine.TestCase)  # any sequence of grants


@pytest.mark.slow  # any sequence of grants
@pytest.mark.parametrize("filter_", FILTERS, ids=lambda f: f.name)
@pytest.mark.parametrize("place", ["sqlite:///{}/team.db", "{}/run.ledger.jsonl"])
def test_a_ledger_is_kept_and_reopened_with_its_filter(tmp_path, filter_, place):
    place = place.format(tmp_path)
    with Ledger.open(place, dataset="d", budget=BUDGET, unit=PrivacyUnit.ROW, filter=filter_) as ledger:
        for event in EVENTS[:4]:
            spend(ledger, event)
        spent, head = ledger.spent(), ledger.head
    with Ledger.open(place, dataset="d", filter=filter_) as ledger:
        assert (ledger.filter, ledger.spent(), ledger.head) == (filter_, spent, head)
        record = ledger.record()
    report = verify_ledger(place, dataset="d", head=head)
    assert (report.filter, report.grants) == (filter_.name, 4)
    assert LedgerRecord.from_lines(record.lines).spent() == spent
    for other in (BasicFilter(), RenyiFilter(order=21.0), AdvancedCompositionFilter(delta_prime=1e-6)):
        with pytest.raises(LedgerError, match="filter"):
            Ledger.open(place, dataset="d", filter=other)


@pytest.mark.slow  # any sequence of grants
@pytest.mark.parametrize("filter_", FILTERS, ids=lambda f: f.name)
def test_analysts_stay_within_their_shares(tmp_path, filter_):
    path = tmp_path / "team.ledger.jsonl"
    shares = {"ada": 0.5, "ben": 0.5}
    for name in shares:
        with Ledger.open(
            path, budget=BUDGET, unit=PrivacyUnit.ROW, filter=filter_, analysts=shares, analyst=name
        ) as ledger:
            granted = 0
            with pytest.raises(BudgetExceeded):
                while granted < 200:
                    spend(ledger, EVENTS[1])
                    granted += 1
            assert granted > 0
            assert ledger.spent(name).epsilon <= 1.0
            assert ledger.spent().epsilon <= 2.0
    assert verify_ledger(path).grants > 1


def test_a_filter_that_the_budget_cannot_have_is_refused():
    for filter_ in (ZCDPFilter(), RenyiFilter(order=20.0), AdvancedCompositionFilter(delta_prime=1e-6)):
        with pytest.raises(InvalidParameter, match="delta"):
            Ledger(Budget(epsilon=1.0, delta=0.0, adjacency=A), unit=PrivacyUnit.ROW, filter=filter_)
    with pytest.raises(InvalidParameter, match="AdvancedCompositionFilter"):
        Ledger(BUDGET, unit=PrivacyUnit.ROW, filter="zcdp")


def test_a_charge_in_another_currency_is_found_on_reading(tmp_path):
    path = tmp_path / "run.ledger.jsonl"
    with Ledger.open(path, budget=BUDGET, unit=PrivacyUnit.ROW, filter=ZCDPFilter()) as ledger:
        spend(ledger, EVENTS[0])
        charge = ledger.entries[1].charge
    assert Fraction(charge.rho) > 0
    text = path.read_text().replace('"method":"zcdp","rho"', '"method":"zcdp","divergence"')
    path.write_text(text)
    with pytest.raises(LedgerCorrupted, match="entry 1"):
        Ledger.open(path)
