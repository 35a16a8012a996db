"""The format and the rules of entries, without files."""

import json

import pytest

from ledgerwood.accounting import (
    Adjacency,
    BasicFilter,
    Budget,
    Composed,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    LedgerRecord,
    PoissonSampled,
    PrivacyUnit,
    PureEvent,
    Repeated,
)
from ledgerwood.accounting.ledger import entries, state
from ledgerwood.errors import InvalidParameter, LedgerCorrupted

A = Adjacency.ADD_REMOVE


def lines():
    ledger = Ledger(Budget(epsilon=2.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)
    step = PoissonSampled(GaussianEvent(noise_multiplier=5.0, adjacency=A), sampling_rate=0.01)
    grant = ledger.grant(
        Composed((Repeated(step, count=3), LaplaceEvent(noise_multiplier=9.0, adjacency=A))), purpose="träin"
    )
    grant.draw(step, purpose="one")
    grant.draw(step, purpose="two", randomness="test")
    return list(ledger.record().lines)


def resealed(record):
    """A forged line whose own hash is right."""
    body = {key: value for key, value in record.items() if key != "hash"}
    return entries.canonical({**body, "hash": entries.digest(entries.canonical(body))})


def test_a_line_is_canonical_json():
    for line in lines():
        record = json.loads(line)
        assert line == json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert record["version"] == 1
        assert set(record) >= {"kind", "index", "previous", "hash"}
    assert "träin" in lines()[1]


def test_an_entry_holds_nothing_but_its_own_fields():
    """No time stamps, no counts of rows, no data hashes: the fields of a ledger are a closed set."""
    fields = {
        "open": {"budget", "unit", "filter", "dataset"},
        "grant": {"event", "charge", "purpose"},
        "draw": {"grant", "event", "purpose", "randomness"},
    }
    for line in lines():
        record = json.loads(line)
        assert set(record) - {"version", "kind", "index", "previous", "hash"} == fields[record["kind"]]


def test_the_same_history_has_the_same_bytes():
    assert lines() == lines()


def test_replay_leads_to_the_same_state():
    replayed = state.replay(lines())
    assert [entries.encode(entry) for entry in replayed.entries] == lines()
    assert sum(replayed.left(1).values()) == 2
    assert LedgerRecord.from_lines(tuple(lines())).randomness == "test"


@pytest.mark.slow_after(1)  # any sequence of grants
@pytest.mark.parametrize("index", range(4))
def test_replay_names_the_first_bad_entry(index):
    for damage in (
        lambda text: text.replace('"version":1', '"version":2'),
        lambda text: text.replace('"index":', '"index":1'),
        lambda text: text.replace('"kind":"', '"kind":"x'),
        lambda text: text + " ",
        lambda text: text[:-1],
        lambda text: "[]",
        lambda text: "NaN",
        lambda text: "[" * 100_000,
        lambda text: "{}",
    ):
        bad = lines()
        bad[index] = damage(bad[index])
        with pytest.raises(LedgerCorrupted, match=f"entry {index}:"):
            state.replay(bad)


def test_replay_refuses_what_may_not_stand_there():
    good = lines()
    for bad, place in (
        ([], 0),
        (good[1:], 0),
        ([good[0], good[0]], 1),
        ([good[0], good[2], good[1]], 1),
        ([good[0], good[2]], 1),
        ([*good[:3], good[2]], 3),
    ):
        with pytest.raises(LedgerCorrupted, match=f"entry {place}:"):
            state.replay(bad)


@pytest.mark.slow_after(7)  # any sequence of grants
@pytest.mark.parametrize(
    ("index", "change"),
    [
        (0, {"filter": "none"}),
        (0, {"unit": "household"}),
        (0, {"budget": {"epsilon": -1.0, "delta": 0.0, "adjacency": "add-remove"}}),
        (1, {"event": {"type": "FreeLunch"}}),
        (1, {"charge": {"epsilon": -1.0, "delta": 0.0, "method": "pure"}}),
        (1, {"charge": {"epsilon": 1.0, "delta": 0.0, "method": "guess"}}),
        (1, {"charge": {"epsilon": 1.0, "delta": 0.0, "method": "pure", "discount": 1.0}}),
        (1, {"charge": {"mu": 1.0, "method": "gdp"}}),
        (1, {"charge": {"epsilon": 1.0, "method": "pure"}}),
        (1, {"charge": {"epsilon": 1.0, "delta": 0.0, "mu": 1.0, "method": "pure"}}),
        (1, {"event": {"type": "PureEvent", "epsilon": 0.1, "adjacency": "replace-one"}}),
        (1, {"purpose": "a\nb"}),
        (2, {"randomness": "none"}),
        (2, {"grant": 7}),
        (2, {"event": {"type": "PureEvent", "epsilon": 0.1, "adjacency": "add-remove"}}),
    ],
)
def test_replay_refuses_forged_entries_that_break_a_rule(index, change):
    bad = lines()[: index + 1]
    bad[index] = resealed(json.loads(bad[index]) | change)
    with pytest.raises(LedgerCorrupted, match=f"entry {index}:"):
        state.replay(bad)


def test_commit_takes_only_what_follows():
    machine = state.State(
        state.opened(Budget(epsilon=1.0, delta=0.0, adjacency=A), PrivacyUnit.ROW, BasicFilter(), None)
    )
    event = PureEvent(epsilon=0.1, adjacency=A)
    entry = machine.propose_grant(event, machine.price(event, "p", None), "p")
    assert len(machine.entries) == 1  # a proposal changes nothing
    machine.commit(entry)
    with pytest.raises(LedgerCorrupted, match="does not follow"):
        machine.commit(entry)


@pytest.mark.parametrize("label", ["", "a\nb", "tab\t", "x" * 201, "\u2028", "\ud800", 3, None])
def test_labels_are_short_printable_lines(label):
    with pytest.raises(InvalidParameter, match="purpose"):
        entries.require_label("purpose", label)


def test_a_chain_rebuilt_beyond_its_budget_is_refused():
    opening, grant = lines()[:2]
    beyond = json.loads(grant)
    beyond["charge"]["epsilon"] = 2.5
    with pytest.raises(LedgerCorrupted, match=r"the grants exceed the budget: .*epsilon=2\.5"):
        state.replay([opening, resealed(beyond)])


def test_a_filter_of_another_class_is_refused():
    class Generous(BasicFilter):
        pass

    with pytest.raises(InvalidParameter, match="filter="):
        Ledger(Budget(epsilon=2.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW, filter=Generous())
