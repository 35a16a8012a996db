"""A stream's rounds: paid once, claimed on the disk before a row is read, settled whatever happens."""

import gc

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting import Adjacency, Budget, Composed, FilteredEvent, GDPEvent, Ledger, PrivacyUnit
from ledgerwood.accounting.individuals import FULL
from ledgerwood.curator import LabelMoments, LeafMoments, RowVault, StreamCurator, StreamRows, Table
from ledgerwood.curator import streams as stream_module
from ledgerwood.curator.streams import forget_vault, keep_vault, kept_vault
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import DrawRefused, LedgerError, RoundViolation, SchemaError
from ledgerwood.mechanisms import EllipticalGaussianMechanism, SeededRandom

A = Adjacency.ADD_REMOVE
SCHEMA = lw.Schema.uniform(0.0, 1.0, n_features=1, target=lw.Numeric("y", -1.0, 1.0))
STUMP = TreeStructure(feature=np.array([0], np.int32), split=np.array([4], np.uint16), equals=np.array([False]))
QUERY = LeafMoments(loss="squared", clip=1.0).of(STUMP, Ensemble(initial_score=0.0))
NOISE = EllipticalGaussianMechanism(stddevs=(40.0, 40.0))
EVENT = NOISE.event(QUERY.sensitivity(A), A)
FILTERED = FilteredEvent(EVENT, limit=GDPEvent(mu=EVENT.mu() * np.sqrt(3.0 * (1 + 2.0**-30)), adjacency=A))
FIRST = NOISE.event(LabelMoments().sensitivity(A), A)


def rows_of(keys, vault, labels=None):
    labels = [1.0] * len(keys) if labels is None else labels
    X = np.full((len(keys), 1), 0.5)
    return StreamRows.from_data(X, np.array(labels), keys, SCHEMA, loss="squared", bins=8, vault=vault)


def granted():
    ledger = Ledger(Budget(epsilon=2.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)
    return ledger, ledger.grant(Composed((FIRST, FILTERED)), purpose="stream")


def run(curator, rounds):
    with curator.open(FILTERED, purpose="rounds") as open_:
        for t in range(rounds):
            open_.release(QUERY, NOISE, purpose=f"tree {t}")


def left_of(vault, keys, receipt):
    claimed = vault.claim(stream_module.read_keys(keys, len(keys)), receipt)
    vault.settle(claimed)
    return (claimed / FULL).tolist()


@pytest.fixture
def vault(tmp_path):
    with RowVault.open(tmp_path / "rows.vault") as made:
        yield made


def test_one_draw_pays_for_all_calls_and_each_unit_has_one_budget(vault):
    ledger, grant = granted()
    curator = StreamCurator(rows_of(["a", "b"], vault), grant, SeededRandom(1))
    assert curator.schema == SCHEMA
    with pytest.raises(DrawRefused, match="not drawn yet"):
        _ = curator.receipt
    with curator.open(FIRST, purpose="initial score") as round_:
        round_.release(LabelMoments(), NOISE, purpose="labels")
    run(curator, 2)
    receipt, entries = curator.receipt, ledger.entries
    assert vault.draw == receipt.hash == entries[-1].hash
    assert left_of(vault, ["a", "b", "new"], receipt) == pytest.approx([1 / 3, 1 / 3, 1.0], abs=1e-8)
    # "b" comes again, with another row; "c" is new; "a" stays away.
    later = StreamCurator(rows_of(["c", "b"], vault, [1.0, 0.0]), receipt, SeededRandom(2))
    assert later.receipt is receipt
    run(later, 2)
    assert left_of(vault, ["a", "b", "c"], receipt) == pytest.approx([1 / 3, 0.0, 1 / 3], abs=1e-8)
    assert ledger.entries == entries


def test_rows_and_keys_of_another_number_are_refused(vault):
    table = rows_of(["a", "b", "c"], vault).table
    for keys in (["a"], ["a", "b"]):
        with pytest.raises(SchemaError, match="another number of rows than the table"):
            StreamRows(table, stream_module.read_keys(keys, len(keys)), vault)


def test_a_row_whose_label_is_at_its_score_costs_its_count_only(vault):
    _, grant = granted()
    curator = StreamCurator(rows_of(["a", "b"], vault, [1.0, 0.0]), grant, SeededRandom(1))
    run(curator, 2)
    assert left_of(vault, ["a", "b"], curator.receipt) == pytest.approx([1 / 3, 2 / 3], abs=1e-8)


def test_units_are_claimed_on_the_disk_when_their_rows_are_read(vault, tmp_path, monkeypatch):
    _, grant = granted()
    seen = []
    statistic = Table.statistic

    def watched(*args):
        data = (tmp_path / "rows.vault").read_bytes()
        seen.append(data)
        return statistic(*args)

    monkeypatch.setattr(Table, "statistic", watched)
    run(StreamCurator(rows_of(["a", "b"], vault), grant, SeededRandom(1)), 2)
    assert len(seen) == 2
    for data in seen:
        assert np.frombuffer(data[-32 - 16 : -32], dtype="<i8").tolist() == [0, 0]
    settled = (tmp_path / "rows.vault").read_bytes()
    assert (np.frombuffer(settled[-48:-32], dtype="<i8") > 0).all()


def test_a_call_that_fails_costs_what_its_rounds_cost(vault):
    _, grant = granted()
    curator = StreamCurator(rows_of(["a"], vault), grant, SeededRandom(1))
    with pytest.raises(KeyboardInterrupt), curator.open(FILTERED, purpose="rounds") as open_:
        open_.release(QUERY, NOISE, purpose="tree 1")
        raise KeyboardInterrupt
    with pytest.raises(RoundViolation, match="closed"):
        open_.release(QUERY, NOISE, purpose="tree 2")
    assert left_of(vault, ["a"], curator.receipt) == pytest.approx([2 / 3], abs=1e-8)


def test_rounds_that_are_closed_twice_settle_nobody_elses_claim(vault):
    _, grant = granted()
    first = StreamCurator(rows_of(["a"], vault), grant, SeededRandom(1))
    rounds = first.open(FILTERED, purpose="rounds")
    with rounds:
        pass
    later = StreamCurator(rows_of(["a"], vault), first.receipt, SeededRandom(2)).open(FILTERED, purpose="rounds")
    with later:
        later.release(QUERY, NOISE, purpose="tree 1")
        with rounds:
            pass
        later.release(QUERY, NOISE, purpose="tree 2")
    assert left_of(vault, ["a"], first.receipt) == pytest.approx([1 / 3], abs=1e-8)


def test_a_round_that_is_never_closed_costs_all(vault, tmp_path):
    _, grant = granted()
    curator = StreamCurator(rows_of(["a"], vault), grant, SeededRandom(1))
    curator.open(FILTERED, purpose="rounds")
    with pytest.raises(LedgerError, match="one claim at a time"):
        curator.open(FILTERED, purpose="again")
    vault.close()
    with RowVault.open(tmp_path / "rows.vault") as again:
        assert left_of(again, ["a", "b"], curator.receipt) == [0.0, 1.0]


def test_a_later_call_opens_the_streams_rounds_and_nothing_else(vault):
    _, grant = granted()
    first = StreamCurator(rows_of(["a"], vault), grant, SeededRandom(1))
    run(first, 1)
    later = StreamCurator(rows_of(["a"], vault), first.receipt, SeededRandom(1))
    other = FilteredEvent(EVENT, limit=GDPEvent(mu=9.0, adjacency=A))
    for event in (FIRST, EVENT, other):
        with pytest.raises(DrawRefused, match="later call draws nothing"):
            later.open(event, purpose="more")
    with pytest.raises(LedgerError, match="is new"):
        StreamCurator(rows_of(["a"], RowVault()), first.receipt, SeededRandom(1)).open(FILTERED, purpose="rounds")


def test_a_vault_in_use_is_refused_before_the_draw(vault):
    _, grant = granted()
    run(StreamCurator(rows_of(["a"], vault), grant, SeededRandom(1)), 1)
    ledger, another = granted()
    with pytest.raises(LedgerError, match="a new stream needs a new vault"):
        StreamCurator(rows_of(["a"], vault), another, SeededRandom(1)).open(FILTERED, purpose="rounds")
    assert another.remaining[FILTERED] == 1
    assert len(ledger.entries) == 2


def test_a_plan_without_the_event_is_refused_and_the_vault_stays_new(vault):
    ledger = Ledger(Budget(epsilon=2.0, delta=1e-5, adjacency=A), unit=PrivacyUnit.ROW)
    grant = ledger.grant(FIRST, purpose="something else")
    with pytest.raises(DrawRefused):
        StreamCurator(rows_of(["a"], vault), grant, SeededRandom(1)).open(FILTERED, purpose="rounds")
    vault.prepare()


def test_keys_are_checked_with_the_rows(vault):
    assert rows_of(["a", "a"], vault).keys.rows.tolist() == [0]
    with pytest.raises(SchemaError, match="X and keys differ"):
        StreamRows.from_data(
            np.zeros((2, 1)), np.zeros(2), ["a", "b", "c"], SCHEMA, loss="squared", bins=8, vault=vault
        )


class Owner:
    """Something that learns."""


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_a_kept_vault_lives_as_long_as_its_owner_and_no_longer():
    owner, other, vault = Owner(), Owner(), RowVault()
    keep_vault(owner, vault)
    keep_vault(other, vault)
    assert kept_vault(owner) is vault
    forget_vault(owner)
    forget_vault(owner)
    assert kept_vault(owner) is None
    gc.collect()
    before = len(stream_module._KEPT)
    del other
    gc.collect()
    assert len(stream_module._KEPT) == before - 1
