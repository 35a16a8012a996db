"""Fits on rows in files: the same models as in memory, bit for bit, and nothing left behind."""

import mmap
import os
import traceback
import warnings

import numpy as np
import polars as pl
import pytest

import ledgerwood as lw
from ledgerwood import Ledger, PrivacyUnit
from ledgerwood.curator.inputs import batches as reading_batches
from ledgerwood.curator.inputs import sources
from ledgerwood.curator.tables import chunks, scratch
from ledgerwood.errors import BudgetExceeded, InvalidParameter, RoundViolation, SchemaError, ScratchFull
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPXGBoostClassifier,
    PrivateSearch,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)

from .place_rows import MATRIX, NAMES, ROWS, SMALL, TARGETS, N, model_of, schema_of, told

# Of the extra "arrow", which "dev" has: an older environment leaves these tests out, and says so.
pa, ds, pq = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.dataset", "pyarrow.parquet"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two Parquet files, whose rows in the order of their names are those of `ROWS`; and marks of other tools."""
    place = tmp_path_factory.mktemp("rows")
    for name, part in (("a.parquet", ROWS[:131]), ("b.parquet", ROWS[131:])):
        pq.write_table(pa.Table.from_pandas(part, preserve_index=False), place / name, row_group_size=50)
    (place / "_SUCCESS").touch()
    return place


@pytest.fixture(params=[1, 3, 17])
def parts(request, monkeypatch):
    monkeypatch.setattr(chunks, "PART_ROWS", -(-N // request.param))
    monkeypatch.setattr(reading_batches, "BATCH_ROWS", 47)
    return request.param


_IN_MEMORY = {}


@pytest.mark.slow_after(9)  # a fit of each system, preset and number of parts
@pytest.mark.parametrize(("kind", "preset"), MATRIX, ids=str)
def test_the_same_seed_gives_the_same_model_in_every_place(kind, preset, folder, parts):
    model = model_of(kind, preset=preset, **SMALL.get(kind, {"n_estimators": 3, "max_depth": 3}))
    if (kind, preset) == (DPBoostClassifier, "enhanced"):
        with pytest.raises(RoundViolation, match=r"GridlessGains is not a sum over rows.*Nothing was spent"):
            model.fit(folder, "two")
        return
    if (kind, preset) not in _IN_MEMORY:
        _IN_MEMORY[kind, preset] = told(model.fit(ROWS[NAMES], ROWS["two"]))
    assert told(model.fit(folder, "two")) == _IN_MEMORY[kind, preset]


@pytest.mark.parametrize("label", ["number", "three"])
def test_numbers_several_classes_and_weights_too(label, folder, parts):
    kind = SGBDTRegressor if label == "number" else SGBDTClassifier
    model = model_of(kind, label, 1.0, n_estimators=3 if label == "number" else 6, max_depth=2, subsample=0.5)
    expected = told(model.fit(ROWS[NAMES], ROWS[label], sample_weight=ROWS["weight"]))
    assert told(model.fit(folder, label, sample_weight="weight")) == expected


@pytest.mark.parametrize("kind", [SGBDTClassifier, DPXGBoostClassifier])
def test_an_allocation_of_rows_to_trees_too(kind, folder, parts):
    model = model_of(kind, n_estimators=3, max_depth=2, subsample=0.3, sampling="allocation")
    assert told(model.fit(folder, "two")) == told(model.fit(ROWS[NAMES], ROWS["two"]))


def test_the_individual_filter_and_a_private_search_too(folder, parts):
    model = model_of(SGBDTClassifier, n_estimators=4, max_depth=2, filter="gdp")
    assert told(model.fit(folder, "two")) == told(model.fit(ROWS[NAMES], ROWS["two"]))
    candidates = [{"n_estimators": 2, "max_depth": 2}, {"n_estimators": 3, "max_depth": 1}]
    search = PrivateSearch(
        SGBDTClassifier(), candidates, mean_runs=2.0, epsilon=5.0, delta=1e-4, schema=schema_of(), random_state=3
    )
    assert told(search.fit(folder, "two")) == told(search.fit(ROWS[NAMES], ROWS["two"]))


def test_rows_on_disk_and_what_is_kept_of_them_between_queries_are_mapped(folder, parts, monkeypatch):
    tables = []
    plain = DPXGBoostClassifier._train

    def spied(self, plan, aggregator, *rest):
        tables.append(aggregator._table)
        return plain(self, plan, aggregator, *rest)

    monkeypatch.setattr(DPXGBoostClassifier, "_train", spied)
    model_of(DPXGBoostClassifier, n_estimators=2, max_depth=2).fit(folder, "two")
    assert len(tables[0]._parts) == parts
    for part in tables[0]._parts:
        rows, scored = part.rows, part.rows.state.scored[None]
        kept = rows.state.buffers._held
        assert sorted(kept) == ["gains bins", "gains contributions", "gains order", "gains sums"]
        for array in (rows.cells, rows.classes, rows.state.leaves, scored.targets, scored.scores, *kept.values()):
            while isinstance(array, np.ndarray):
                array = array.base
            assert isinstance(array, mmap.mmap | memoryview)


@pytest.mark.parametrize("kind", [DPXGBoostClassifier, PrivaTreeClassifier])
@pytest.mark.parametrize("files", [0, 3])
def test_where_the_disk_has_no_room_nothing_is_kept_between_queries(kind, files, folder, parts, monkeypatch):
    model = model_of(kind, max_depth=3, **({"max_bins": 32} if kind is PrivaTreeClassifier else {"n_estimators": 2}))
    expected = told(model.fit(ROWS[NAMES], ROWS["two"]))
    tables, asked, room, written = [], [], scratch.Arena.room, chunks.written

    def some_room(self, n):
        asked.append(n)
        self.full = len(asked) > files
        return room(self, n)

    def kept(*given, **more):
        tables.append(written(*given, **more))
        return tables[-1]

    monkeypatch.setattr(scratch.Arena, "room", some_room)
    monkeypatch.setattr(chunks, "written", kept)
    assert told(model.fit(folder, "two")) == expected
    assert len(asked) > files
    for part in tables[0]._parts:
        assert part.rows.state.memories == part.rows.state.buffers._held == {}


def test_an_arena_on_a_full_disk_gives_room_in_memory(tmp_path, monkeypatch):
    with scratch.scratch_folder(tmp_path) as place:
        arena = scratch.Arena(place)
        first, second = arena.room(5), arena.room(3)
        first[:] = 1.0
        assert second.tolist() == [0.0] * 3
        assert not arena.full
        monkeypatch.setattr(scratch, "_reserve", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        assert arena.room(1000).tolist() == [0.0] * 1000
        assert arena.full


def test_secure_randomness_gives_a_model_too(folder, parts):
    model = model_of(random_state=None, n_estimators=2, max_depth=2, subsample=0.5).fit(folder, "two")
    assert model.privacy_.epsilon <= 5.0
    assert any("AES-256 in counter mode" in each for each in model.privacy_.assumptions)
    assert any("scratch folder" in each for each in model.privacy_.assumptions)


@pytest.mark.parametrize("source", ["file list", "glob", "path", "dataset", "lazy", "csv", "csv folder", "packed csv"])
def test_every_kind_of_source_is_read_by_its_types(source, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "PART_ROWS", 100)
    monkeypatch.setattr(reading_batches, "BATCH_ROWS", 47)
    (tmp_path / "csv").mkdir()
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    ROWS.to_csv(tmp_path / "rows.csv.gz", index=False)
    ROWS[:200].to_csv(tmp_path / "csv" / "1.csv", index=False)
    ROWS[200:].to_csv(tmp_path / "csv" / "2.csv", index=False)
    X = {
        "file list": ds.dataset([folder / "a.parquet", folder / "b.parquet"]),
        "glob": f"{folder}/*.parquet",
        "path": folder,
        "dataset": ds.dataset(folder),
        "lazy": pl.scan_parquet(folder / "*.parquet"),
        "csv": tmp_path / "rows.csv",
        "csv folder": str(tmp_path / "csv"),
        "packed csv": tmp_path / "rows.csv.gz",
    }[source]
    model = model_of(n_estimators=3, max_depth=3, subsample=0.5)
    expected = told(model.fit(ROWS[NAMES], ROWS["two"]))
    predicted, likely = model.predict(ROWS[NAMES]), model.predict_proba(ROWS[NAMES])
    assert told(model.fit(X, "two")) == expected
    assert model.predict(X).tolist() == predicted.tolist()
    np.testing.assert_array_equal(model.predict_proba(X), likely)
    batches = list(model.batches(X))
    assert len(batches[0]) == 0
    assert np.concatenate([model.predict(batch) for batch in batches]).tolist() == predicted.tolist()


def test_one_range_for_all_columns(folder, tmp_path):
    rows = ROWS[["size", "age", "number"]]
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / "rows.parquet")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    model = SGBDTRegressor(
        schema=lw.Schema.uniform(0, 100, target=TARGETS["number"]), epsilon=5.0, random_state=1, n_estimators=3
    )
    X = rows[["size", "age"]]
    expected = told(model.fit(X, rows["number"]))
    predicted = model.predict(X).tolist()
    for name in ("rows.parquet", "rows.csv"):
        assert told(model.fit(tmp_path / name, "number")) == expected
        assert model.predict(tmp_path / name).tolist() == predicted


def ledger_of(model):
    return Ledger(model.budget, unit=PrivacyUnit.ROW)


REFUSALS = [
    ("name the label's column", lambda folder: (folder, ROWS["two"], {})),
    (r"lacks the columns \['missing'\]", lambda folder: (folder, "missing", {})),
    ("name the weights' column", lambda folder: (folder, "two", {"sample_weight": ROWS["weight"]})),
    ("names no file", lambda folder: (folder / "*.nothing", "two", {})),
    ("files of one kind", lambda folder: (folder / "_SUCCESS", "two", {})),
    ("is of type float64|is of type Float64", lambda folder: (folder, "number", {})),
    ("twice, or have two roles", lambda folder: (folder, "size", {})),
    ("scratch=.* is for rows in files", lambda folder: (ROWS[NAMES], ROWS["two"], {"scratch": folder / "x"})),
    ("a folder, and it is a file", lambda folder: (folder, "two", {"scratch": folder / "_SUCCESS"})),
]


@pytest.mark.parametrize(("message", "given"), REFUSALS, ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_be_read_is_refused_before_anything_is_spent(message, given, folder):
    model = model_of()
    X, y, more = given(folder)
    ledger = ledger_of(model)
    before = ledger.entries
    with pytest.raises((SchemaError, InvalidParameter), match=message):
        model.fit(X, y, ledger=ledger, **more)
    assert ledger.entries == before


def test_a_later_file_of_other_types_is_refused_before_a_row_of_the_first_is_read(tmp_path, monkeypatch):
    pq.write_table(pa.Table.from_pandas(ROWS, preserve_index=False), tmp_path / "a.parquet")
    pq.write_table(pa.Table.from_pandas(ROWS.astype({"size": str}), preserve_index=False), tmp_path / "b.parquet")
    monkeypatch.setattr(sources._ParquetFiles, "batches", None)
    with pytest.raises(SchemaError, match="'size' has type String, and is declared to hold numbers"):
        model_of().fit(tmp_path, "two")


def test_a_damaged_file_is_an_error_that_spends_nothing(tmp_path, folder):
    (tmp_path / "a.parquet").write_bytes((folder / "a.parquet").read_bytes()[:-30])
    model = model_of()
    ledger = ledger_of(model)
    with pytest.raises(SchemaError, match=r"a\.parquet is not a Parquet file"):
        model.fit(tmp_path, "two", ledger=ledger)
    assert len(ledger.entries) == 1


def test_a_lazy_frame_that_fails_on_a_value_shows_no_value_and_spends_nothing():
    frame = pl.LazyFrame({"size": ["1", "2", "a secret"], "price": [1.0, 2.0, 3.0]})
    schema = lw.Schema(features=(lw.Numeric("size", 0, 10),), target=lw.Numeric("price", 0, 10))
    book = Ledger(lw.Budget(epsilon=5.0, delta=1e-5, adjacency=lw.Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    with pytest.raises(SchemaError, match="the lazy frame cannot be read by its own types") as refused:
        SGBDTRegressor(schema=schema).fit(frame.with_columns(pl.col("size").cast(pl.Float64)), "price", ledger=book)
    error = refused.value
    while error is not None:  # those that a traceback leaves out, too
        assert "secret" not in repr(error)
        error = error.__context__
    assert "secret" not in "".join(traceback.format_exception(refused.value))
    assert len(book.entries) == 1


def test_a_full_disk_spends_nothing_and_leaves_nothing(folder, tmp_path, monkeypatch):
    plain = scratch._reserve
    monkeypatch.setattr(chunks, "PART_ROWS", 100)
    reserved = []

    def full_at_the_second(file, size):
        reserved.append(size)
        if len(reserved) == 2:
            raise OSError(28, os.strerror(28))
        plain(file, size)

    monkeypatch.setattr(scratch, "_reserve", full_at_the_second)
    model = model_of()
    ledger = ledger_of(model)
    with pytest.raises(ScratchFull, match="nothing was spent"):
        model.fit(folder, "two", ledger=ledger, scratch=tmp_path)
    assert len(ledger.entries) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_refuses_leaves_nothing(folder, tmp_path):
    model = model_of()
    ledger = Ledger(lw.Budget(epsilon=0.1, delta=1e-6, adjacency=lw.Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    with pytest.raises(BudgetExceeded):
        model.fit(folder, "two", ledger=ledger, scratch=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_while_it_trains_leaves_nothing(folder, tmp_path, monkeypatch, error):
    seen = []

    def interrupted(*_):
        seen.extend(tmp_path.iterdir())
        raise error

    monkeypatch.setattr(SGBDTClassifier, "_train", interrupted)
    with pytest.raises(error):
        model_of().fit(folder, "two", scratch=tmp_path)
    assert len(seen) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_is_said_of_the_scratch_folder_does_not_depend_on_the_number_of_rows(folder, tmp_path, capsys):
    model = model_of(SGBDTClassifier, verbose=1, n_estimators=1, max_depth=1, expected_rows=1 << 20)
    said = []
    for rows in (ROWS, ROWS[:5]):
        pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / "rows.parquet")
        model.fit(tmp_path / "rows.parquet", "two", scratch=tmp_path / "scratch")
        said.append(capsys.readouterr().err.partition("about")[2].splitlines()[0])
    assert said[0] == said[1]
    # Of each row: three cells, target, score and leaf, its class, and whether it takes part; and a part of 2^20 rows.
    assert said[0].startswith(f" {2 * (3 + 24 + 4 + 1)} MiB")


def test_what_is_said_of_the_scratch_folder_covers_what_is_reserved(folder, tmp_path, capsys, monkeypatch):
    """A part has all of its blocks before its first row is known: a few rows need more than their own bytes."""
    reserved, plain = [], scratch._reserve

    def noted(file, size):
        reserved.append(size)
        plain(file, size)

    monkeypatch.setattr(scratch, "_reserve", noted)
    model_of(SGBDTClassifier, verbose=1, n_estimators=1, max_depth=1).fit(folder, "two", scratch=tmp_path)
    told = float(capsys.readouterr().err.partition("about ")[2].split()[0]) * 2**20
    assert max(reserved) <= sum(reserved) <= told + 2**20


def test_a_row_that_cannot_be_read_is_left_out_without_a_word(tmp_path):
    rows = ROWS.assign(age=ROWS["age"].astype(object))
    rows.loc[3, "age"] = "many"
    rows.loc[7, "two"] = "perhaps"
    rows[[*NAMES, "two"]].to_csv(tmp_path / "rows.csv", index=False)
    model = model_of(n_estimators=2, max_depth=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", lw.PrivacyWarning)
        found = told(model.fit(tmp_path / "rows.csv", "two"))
    assert found == told(model.fit(ROWS[NAMES].drop(index=[3, 7]), ROWS["two"].drop(index=[3, 7])))


def test_no_rows_at_all(tmp_path):
    pq.write_table(
        pa.Table.from_pandas(ROWS[:0], preserve_index=False).cast(
            pa.Table.from_pandas(ROWS, preserve_index=False).schema
        ),
        tmp_path / "rows.parquet",
    )
    model = model_of(n_estimators=2, max_depth=2, subsample=0.5)
    assert told(model.fit(tmp_path / "rows.parquet", "two")) == told(model.fit(ROWS[NAMES][:0], ROWS["two"][:0]))
    assert model.predict(tmp_path / "rows.parquet").tolist() == []
