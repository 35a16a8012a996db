"""The picture of a ledger: its totals are the ledger's, and its parts add up to them."""

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

from ledgerwood.accounting import Adjacency, Budget, GaussianEvent, GDPFilter, Ledger, PrivacyUnit, PureEvent, Repeated
from ledgerwood.displays import BudgetDisplay
from ledgerwood.errors import InvalidParameter

A = Adjacency.ADD_REMOVE
BUDGET = Budget(epsilon=2.0, delta=1e-5, adjacency=A)


@pytest.fixture
def ledger(tmp_path):
    place, shares = tmp_path / "team.jsonl", {"ada": 0.5, "ben $x$": 0.4}
    with Ledger.open(place, "data <b>", BUDGET, PrivacyUnit.ROW, analysts=shares, analyst="ada") as ledger:
        ledger.spend(PureEvent(epsilon=0.25, adjacency=A), purpose="counts")
        ledger.grant(Repeated(PureEvent(epsilon=0.125, adjacency=A), count=4), purpose="means").draw(
            PureEvent(epsilon=0.125, adjacency=A), purpose="one of four"
        )
    with Ledger.open(place, analyst="ben $x$") as ledger:
        ledger.spend(PureEvent(epsilon=0.5, adjacency=A), purpose="counts")
        yield ledger


def test_totals_and_parts_are_the_ledgers(ledger):
    display = BudgetDisplay.from_ledger(ledger)
    assert display == BudgetDisplay.from_ledger(ledger.record())
    assert [step.spent for step in display.steps] == [0.25, 0.75, 1.25]
    assert [step.drawn for step in display.steps] == [1.0, 0.25, 1.0]
    assert display.spent == ledger.spent().epsilon
    assert BudgetDisplay.from_ledger(ledger, by="purpose").parts == {"counts": 0.75, "means": 0.5}
    assert BudgetDisplay.from_ledger(ledger, by="analyst").parts == {"ada": 0.75, "ben $x$": 0.5}
    assert "granted 1.25 in 3 entries, 0.75 left. Grants with events that are still to be drawn: 1." in display.alt


def test_the_picture_by_entry(ledger):
    ax = BudgetDisplay.from_ledger(ledger).plot(Figure().add_subplot())
    totals, drawn, waiting, budget = ax.get_lines()
    assert list(totals.get_ydata()) == [0.0, 0.25, 0.75, 1.25]
    assert (list(drawn.get_ydata()), list(waiting.get_ydata())) == ([0.25, 1.25], [0.75])
    assert waiting.get_markerfacecolor() == "none"
    assert list(budget.get_ydata()) == [2.0, 2.0]
    assert ax.get_title("left") == "data <b>"


@pytest.mark.parametrize("by", ["purpose", "analyst"])
def test_the_picture_by_part(ledger, by):
    display = BudgetDisplay.from_ledger(ledger, by=by)
    ax = display.plot(Figure().add_subplot())
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([*display.parts.values(), 0.75])
    assert ax.get_yticklabels()[-1].get_text() == "left"
    assert "ben $x$: 0.5" in BudgetDisplay.from_ledger(ledger, by="analyst").alt


def test_another_currency_and_an_empty_ledger():
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW, filter=GDPFilter())
    assert BudgetDisplay.from_ledger(ledger).plot(Figure().add_subplot()).get_ylim()[1] > 2.0
    for _ in range(3):
        ledger.spend(GaussianEvent(noise_multiplier=12.0, adjacency=A), purpose="x")
    display = BudgetDisplay.from_ledger(ledger, by="purpose")
    assert sum(display.parts.values()) == pytest.approx(ledger.spent().epsilon)
    many = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    for i in range(30):
        many.spend(PureEvent(epsilon=0.01, adjacency=A), purpose=f"purpose {i}")
    ax = BudgetDisplay.from_ledger(many, by="purpose").plot(Figure().add_subplot())
    assert [label.get_text() for label in ax.get_yticklabels()][-2:] == ["19 others", "left"]


def test_what_is_spent_is_rounded_up_and_what_is_left_down():
    ledger = Ledger(Budget(epsilon=5.0, delta=1.2341e-5, adjacency=A), unit=PrivacyUnit.ROW)
    ledger.spend(PureEvent(epsilon=1.00004, adjacency=A), purpose="x")
    assert "at delta 1.2341e-05; granted 1.00004 in 1 entries, 3.999 left." in BudgetDisplay.from_ledger(ledger).alt
    bars = BudgetDisplay.from_ledger(ledger, by="purpose")
    assert "x: 1.00004" in bars.alt
    assert [text.get_text() for text in bars.plot(Figure().add_subplot()).texts] == ["1.001", "3.999"]


@pytest.mark.parametrize("by", ["entry", "purpose"])
def test_reproducible_draws_are_said_in_picture_and_text(by):
    ledger = Ledger(BUDGET, unit=PrivacyUnit.ROW)
    event = PureEvent(epsilon=0.25, adjacency=A)
    for randomness, said in (("secure", False), ("test", True)):
        ledger.grant(event, purpose="x").draw(event, purpose="x", randomness=randomness)
        display = replace(BudgetDisplay.from_ledger(ledger, by=by), title="data")
        assert display.alt.startswith("No privacy guarantee: a draw used reproducible (test) randomness.") is said
        title = display.plot(Figure().add_subplot()).get_title("left")
        assert title == ("No privacy guarantee: reproducible (test) noise\ndata" if said else "data")


def test_what_is_no_ledger_is_refused(ledger):
    with pytest.raises(InvalidParameter, match="ledger='team.jsonl' must be a Ledger"):
        BudgetDisplay.from_ledger("team.jsonl")
    with pytest.raises(InvalidParameter, match="by='person' must be"):
        BudgetDisplay.from_ledger(ledger, by="person")


def test_what_was_granted_before_a_checkpoint_is_a_step(tmp_path):
    path = tmp_path / "x.jsonl"
    terms = {"budget": Budget(epsilon=20.0, delta=0.0, adjacency=A), "unit": PrivacyUnit.ROW}
    with Ledger.open(path, **terms) as ledger:
        for _ in range(8):
            ledger.spend(PureEvent(epsilon=1.0, adjacency=A), purpose="a")
        ledger.checkpoint()
        ledger.spend(PureEvent(epsilon=0.5, adjacency=A), purpose="b")
    with Ledger.open(path, from_checkpoint=True) as ledger:
        for by in ("entry", "purpose", "analyst"):
            display = BudgetDisplay.from_ledger(ledger, by=by)
            assert display.spent == ledger.spent().epsilon == 8.5
            assert sum(display.parts.values()) == 8.5
        record = ledger.record()
        assert "before the checkpoint" in BudgetDisplay.from_ledger(record, by="purpose").parts
    assert "grants, draws: 9, 9" in str(record)
    assert "trusted: 17 entries before a checkpoint" in str(record)
