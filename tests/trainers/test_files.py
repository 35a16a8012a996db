"""Rows in files: schemas that are estimated from them, and files that change while they are read."""

import dataclasses
import os

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ledgerwood as lw
from ledgerwood import Categorical, Ledger, Numeric, PrivacyUnit
from ledgerwood.curator import kept_vault, loading
from ledgerwood.curator.inputs import batches as reading_batches
from ledgerwood.curator.inputs import sources
from ledgerwood.curator.tables import chunks, scratch, undeclared_files
from ledgerwood.errors import FilesChanged, RoundViolation, SchemaError, ScratchFull
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPXGBoostClassifier,
    OwnerOnly,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
    private_cross_validate,
    private_grid_search,
)
from ledgerwood.trainers.dpboost.plan import DPBoostPlan
from ledgerwood.trainers.estimated.purchase import SchemaPurchase

pa, ds, pq = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.dataset", "pyarrow.parquet"))

N = 400
GENERATOR = np.random.default_rng(21)
ROWS = pd.DataFrame(
    {
        "size": GENERATOR.normal(3.0, 2.0, N),
        "age": GENERATOR.integers(0, 90, N),
        "kind": GENERATOR.choice(["u", "v", "w"], N, p=[0.6, 0.3, 0.1]),
        "member": GENERATOR.random(N) < 0.4,
    }
)
ROWS.loc[::31, "size"] = np.nan
ROWS["kind"] = ROWS["kind"].where(np.arange(N) % 40 != 0)
NAMES = list(ROWS)
ROWS["number"] = ROWS["size"].fillna(3.0) + 0.3 * (ROWS["kind"] == "u")
ROWS["two"] = np.where(ROWS["number"] > 3.0, "yes", "no")
ROWS["code"] = np.where(ROWS["number"] > 5.0, 2, (ROWS["number"] > 3.0).astype(int))
ROWS["truth"] = ROWS["number"] > 3.0
DECLARED = lw.Schema(
    features=(Numeric("size", -4, 10, missing=True), Numeric("age", 0, 100)), target=Categorical("two", ("no", "yes"))
)


def write(path, rows, label, *, names=NAMES):
    pq.write_table(pa.Table.from_pandas(rows[[*names, label]], preserve_index=False), path, row_group_size=50)


@pytest.fixture
def folder_of(tmp_path, monkeypatch):
    """Makes a folder of two Parquet files with one label, whose rows are in several parts and many batches."""
    monkeypatch.setattr(chunks, "PART_ROWS", 150)
    monkeypatch.setattr(reading_batches, "BATCH_ROWS", 47)
    place = tmp_path / "rows"
    place.mkdir()

    def made(label="two"):
        write(place / "a.parquet", ROWS[:131], label)
        write(place / "b.parquet", ROWS[131:], label)
        return place

    return made


def told(model):
    """All that a fit released and wrote down."""
    ensemble = model.ensemble_
    trees = [(tree.values.tolist(), *(each.tolist() for each in tree.structure.lowered())) for tree in ensemble.trees]
    ledger = [(type(entry).__name__, getattr(entry, "event", None)) for entry in model.ledger_.entries]
    return model.schema_, ensemble.initial_score, trees, ledger, model.privacy_.epsilon


def undeclared(kind, **more):
    trees = {} if kind is PrivaTreeClassifier else {"n_estimators": 3}
    return kind(**{"epsilon": 30.0, "delta": 1e-3, "random_state": 3, "max_depth": 2, **trees, **more})


@pytest.mark.parametrize(
    ("kind", "label", "more"),
    [
        (SGBDTRegressor, "number", {}),
        (SGBDTClassifier, "two", {"subsample": 0.5}),
        (SGBDTClassifier, "code", {"n_estimators": 6}),
        (DPBoostClassifier, "truth", {}),
        (DPXGBoostClassifier, "two", {}),
        (PrivaTreeClassifier, "two", {}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_schema_is_estimated_from_files_as_it_is_in_memory(kind, label, more, folder_of):
    model = undeclared(kind, **more)
    X = folder_of(label)
    expected = told(model.fit(ROWS[NAMES], ROWS[label]))
    predicted = model.predict(ROWS[NAMES]).tolist()
    assert told(model.fit(X, label)) == expected
    assert any("scratch folder" in each for each in model.privacy_.assumptions)
    assert model.predict(X).tolist() == predicted
    found = {feature.name: feature for feature in model.schema_.features}
    assert found["kind"].categories == ("u", "v", "w")


def test_every_source_with_types_has_its_schema_estimated(folder_of, tmp_path):
    model = undeclared(SGBDTClassifier)
    expected = told(model.fit(ROWS[NAMES], ROWS["two"]))
    X = folder_of()
    for source in (X / "*.parquet", ds.dataset(X), pl.scan_parquet(X / "*.parquet")):
        assert told(model.fit(source, "two")) == expected
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(SchemaError, match="is a CSV file, whose columns have no types"):
        model.fit(tmp_path / "rows.csv", "two")


def ledger_of(model):
    return Ledger(model.budget, unit=PrivacyUnit.ROW)


def test_files_whose_types_differ_have_no_schema_estimated(folder_of, monkeypatch):
    X = folder_of()
    write(X / "b.parquet", ROWS[131:].astype({"age": str}), "two")
    monkeypatch.setattr(sources._ParquetFiles, "batches", None)
    model = undeclared(SGBDTClassifier)
    ledger = ledger_of(model)
    with pytest.raises(SchemaError, match=r"differ in the types of their columns: .*'age'"):
        model.fit(X, "two", ledger=ledger)
    assert len(ledger.entries) == 1


def test_the_room_for_an_estimated_schema_is_tried_before_it_is_paid_for(folder_of, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(scratch, "_reserve", full)
    model = undeclared(SGBDTClassifier)
    ledger = ledger_of(model)
    with pytest.raises(ScratchFull, match="nothing was spent"):
        model.fit(folder_of(), "two", ledger=ledger, scratch=tmp_path / "scratch")
    assert len(ledger.entries) == 1
    assert not (tmp_path / "scratch").exists()


def grown(path):
    with path.open("ab") as file:
        file.write(b"more")


def later(path):
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def replaced(path):
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    status = path.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


def gone(path):
    path.unlink()


CHANGES = [grown, later, replaced, gone]


def changing(monkeypatch, module, name, change, path):
    """Changes the file when the function has been called with rows for the first time."""
    plain, done = getattr(module, name), []

    def changed(batch, *rest, **more):
        found = plain(batch, *rest, **more)
        if len(batch.X if isinstance(batch, reading_batches.Batch) else batch) and not done:
            done.append(True)
            change(path)
        return found

    monkeypatch.setattr(module, name, changed)


@pytest.mark.parametrize("file", ["a.parquet", "b.parquet"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("source", ["folder", "dataset"])
def test_a_file_that_changes_while_it_is_encoded_spends_nothing(change, file, source, folder_of, monkeypatch):
    X = folder_of()
    changing(monkeypatch, chunks, "encoded_batch", change, X / file)
    model = SGBDTClassifier(epsilon=5.0, delta=1e-4, schema=DECLARED, n_estimators=2)
    ledger = ledger_of(model)
    with pytest.raises(FilesChanged, match=rf"{file}.*(has changed|is gone).*Nothing was spent"):
        model.fit(ds.dataset(X) if source == "dataset" else X, "two", ledger=ledger)
    assert len(ledger.entries) == 1
    assert "privacy_" not in vars(model)


def test_a_csv_file_that_changes_while_it_is_encoded_spends_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(reading_batches, "BATCH_ROWS", 47)
    path = tmp_path / "rows.csv"
    ROWS.to_csv(path, index=False)
    changing(monkeypatch, chunks, "encoded_batch", grown, path)
    model = SGBDTClassifier(epsilon=5.0, delta=1e-4, schema=DECLARED, n_estimators=2)
    ledger = ledger_of(model)
    with pytest.raises(FilesChanged, match="has changed.*Nothing was spent"):
        model.fit(path, "two", ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_a_file_that_changes_while_it_is_counted_spends_nothing(change, folder_of, monkeypatch):
    X = folder_of()
    changing(monkeypatch, undeclared_files, "typed_view", change, X / "a.parquet")
    model = undeclared(SGBDTClassifier)
    ledger = ledger_of(model)
    with pytest.raises(FilesChanged, match="Nothing was spent"):
        model.fit(X, "two", ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_a_file_that_changes_between_two_readings_is_an_error_that_says_what_it_cost(change, folder_of, monkeypatch):
    X, plain = folder_of(), SchemaPurchase.estimated

    def estimated(self, aggregator):
        found = plain(self, aggregator)
        change(X / "b.parquet")
        return found

    monkeypatch.setattr(SchemaPurchase, "estimated", estimated)
    model = undeclared(SGBDTClassifier)
    ledger = ledger_of(model)
    with pytest.raises(FilesChanged, match="what was granted for this fit is spent"):
        model.fit(X, "two", ledger=ledger)
    assert len(ledger.entries) > 1
    assert "privacy_" not in vars(model)


def test_rows_that_a_lazy_frame_has_once_only_are_not_encoded(tmp_path):
    calls = []

    def some(frame):
        calls.append(len(frame))
        return frame if len(calls) < 2 else frame[1:]

    X = pl.from_pandas(ROWS[[*NAMES, "two"]]).lazy()
    X = X.map_batches(some, schema=X.collect_schema())
    with pytest.raises(FilesChanged, match="other rows than when its schema was estimated"):
        undeclared(SGBDTClassifier).fit(X, "two")
    assert len(calls) == 2


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_predictions_are_of_one_version_of_a_file(change, folder_of):
    X = folder_of()
    model = SGBDTClassifier(epsilon=5.0, delta=1e-4, schema=DECLARED, n_estimators=1).fit(X, "two")
    batches = model.batches(X)
    next(batches), next(batches)
    change(X / "a.parquet")
    with pytest.raises(FilesChanged, match="has changed|is gone"):
        list(batches)


KEYS = np.where(np.arange(N) % 9 == 4, 3, np.arange(N))
"""Of each row's unit: some rows of one unit, in both files."""


def streaming(**more):
    return SGBDTClassifier(
        **{
            "epsilon": 5.0,
            "delta": 1e-4,
            "schema": DECLARED,
            "n_estimators": 3,
            "max_depth": 2,
            "random_state": 4,
            **more,
        }
    )


@pytest.mark.parametrize("kind", ["numbers", "texts", "csv"])
def test_a_stream_learns_from_files_as_from_memory(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "PART_ROWS", 150)
    monkeypatch.setattr(reading_batches, "BATCH_ROWS", 47)
    keys = KEYS if kind == "numbers" else [f"unit {key}" for key in KEYS]
    rows = ROWS.assign(unit=keys)
    expected, found = streaming(subsample=0.7), streaming(subsample=0.7)
    paths = [tmp_path / f"{name}.{'csv' if kind == 'csv' else 'parquet'}" for name in ("first", "second")]
    write_rows = rows[:270], rows[200:]  # some units come again
    for part, path in zip(write_rows, paths, strict=True):
        if kind == "csv":
            part.to_csv(path, index=False)
        else:
            write(path, part, "two", names=[*NAMES, "unit"])
        expected.partial_fit(part[["size", "age"]], part["two"], keys=part["unit"])
        found.partial_fit(path, "two", keys="unit", scratch=tmp_path / "scratch")
        assert told(found) == told(expected)
        assert found.stream_ == dataclasses.replace(expected.stream_, draw=found.stream_.draw)
    for model in (expected, found):
        assert sum("scratch folder" in each for each in model.privacy_.assumptions) == (model is found)
    lefts = [np.sort(kept_vault(model)._contents.left).tolist() for model in (expected, found)]
    assert lefts[0] == lefts[1]
    assert len(lefts[0]) == len(set(KEYS))
    assert not (tmp_path / "scratch").exists()


def test_a_later_call_on_files_says_where_its_rows_lie(tmp_path):
    model = streaming().partial_fit(ROWS[["size", "age"]], ROWS["two"], keys=KEYS)
    path = tmp_path / "rows.parquet"
    write(path, ROWS.assign(unit=KEYS), "two", names=[*NAMES, "unit"])
    before = len(model.ledger_.entries)
    model.partial_fit(path, "two", keys="unit")
    assert len(model.ledger_.entries) == before
    assert any("scratch folder" in each for each in model.privacy_.assumptions)


@pytest.mark.parametrize(
    ("message", "given"),
    [
        ("keys is a Series: name the keys' column", {"keys": ROWS["age"]}),
        (r"lacks the columns \['unit'\]", {"keys": "unit"}),
        ("twice, or have two roles", {"keys": "age"}),
        ("keys has type (F|f)loat64", {"keys": "number"}),
    ],
)
def test_keys_that_cannot_be_read_are_refused_before_anything_is_spent(message, given, tmp_path):
    pq.write_table(pa.Table.from_pandas(ROWS, preserve_index=False), tmp_path / "rows.parquet")
    model = streaming()
    ledger = ledger_of(model)
    with pytest.raises(SchemaError, match=message):
        model.partial_fit(tmp_path / "rows.parquet", "two", ledger=ledger, **given)
    assert len(ledger.entries) == 1


def test_no_file_is_read_far_ahead(folder_of, monkeypatch):
    """What Arrow buffers ahead of its reader stays in memory until the file's end."""
    asked, X = [], folder_of()
    file, dataset = pq.ParquetFile, ds.dataset(X)
    monkeypatch.setattr(
        pq, "ParquetFile", lambda *given, **more: asked.append(more["pre_buffer"]) or file(*given, **more)
    )
    streaming(n_estimators=1).fit(X, "two")
    assert asked == [False, False]
    options = sources.source_of(dataset)._options()
    assert options["fragment_scan_options"].equals(ds.ParquetFragmentScanOptions(pre_buffer=False))
    assert "fragment_scan_options" not in sources.source_of(ds.dataset(pa.table({"a": [1]})))._options()


def test_a_file_that_changes_in_a_later_call_claims_no_unit(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    write(path, ROWS.assign(unit=KEYS), "two", names=[*NAMES, "unit"])
    model = streaming().partial_fit(path, "two", keys="unit")
    before = model.stream_, np.sort(kept_vault(model)._contents.left).tolist()
    monkeypatch.setattr(reading_batches, "BATCH_ROWS", 47)
    changing(monkeypatch, chunks, "encoded_batch", later, path)
    with pytest.raises(FilesChanged, match="Nothing was spent"):
        model.partial_fit(path, "two", keys="unit")
    assert (model.stream_, np.sort(kept_vault(model)._contents.left).tolist()) == before


def shown(found):
    """All that a validation says; its fits may draw beside each other."""
    scores = found.scores.reveal() if isinstance(found.scores, OwnerOnly) else found.scores
    entries = sorted(f"{type(entry).__name__} {getattr(entry, 'event', None)}" for entry in found.ledger.entries)
    each = scores if isinstance(scores, tuple) else (scores,)
    return [dataclasses.asdict(one) for one in each], entries, found.epsilon


@pytest.mark.parametrize("scores", ["private", "owner"])
@pytest.mark.parametrize("label", ["two", "number"])
def test_a_validation_on_files_is_that_in_memory(label, scores, folder_of, tmp_path):
    if label == "two":
        model = streaming(subsample=0.5)
    else:
        schema = lw.Schema(features=DECLARED.features, target=Numeric("number", -4, 10))
        model = SGBDTRegressor(epsilon=5.0, delta=1e-4, schema=schema, n_estimators=2, max_depth=2, random_state=4)
    X = folder_of(label)
    in_memory = private_cross_validate(model, ROWS[["size", "age"]], ROWS[label], cv=3, scores=scores)
    found = private_cross_validate(model, X, label, cv=3, scores=scores, scratch=tmp_path / "scratch", n_jobs=2)
    assert shown(found) == shown(in_memory)
    assert any("scratch folder" in each for each in found.privacy.assumptions)
    assert not any("scratch folder" in each for each in in_memory.privacy.assumptions)
    assert not (tmp_path / "scratch").exists()


def test_a_grid_search_on_files_is_that_in_memory(folder_of):
    grid, model = {"max_depth": [1, 2], "max_bins": [4, 16]}, streaming(random_state=6)
    in_memory = private_grid_search(model, grid, ROWS[["size", "age"]], ROWS["two"], cv=2)
    found = private_grid_search(model, grid, pl.scan_parquet(folder_of() / "*.parquet"), "two", cv=2)
    assert shown(found) == shown(in_memory)
    assert found.best_index == in_memory.best_index
    assert told(found.best_estimator) == told(in_memory.best_estimator)


def test_a_validation_on_files_refuses_before_anything_is_spent(folder_of, monkeypatch, tmp_path):
    X, book = (
        folder_of(),
        Ledger(lw.Budget(epsilon=1e3, delta=1e-2, adjacency=lw.Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW),
    )
    gridless = DPBoostClassifier(epsilon=5.0, schema=DECLARED, n_estimators=2, preset="enhanced")
    with pytest.raises(RoundViolation, match=r"DPBoostClassifier: GridlessGains is not a sum over rows.*Nothing was"):
        private_cross_validate(gridless, X, "two", cv=2, ledger=book)
    with pytest.raises(SchemaError, match="name the label's column"):
        private_cross_validate(streaming(), X, ROWS["two"], cv=2, ledger=book)
    with monkeypatch.context() as patch:
        patch.setattr(scratch, "_reserve", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(ScratchFull, match="nothing was spent"):
            private_cross_validate(streaming(), X, "two", cv=2, ledger=book, scratch=tmp_path / "scratch")
    with monkeypatch.context() as patch:
        changing(patch, loading, "encoded_batch", later, X / "b.parquet")
        with pytest.raises(FilesChanged, match="Nothing was spent"):
            private_cross_validate(streaming(), X, "two", cv=2, ledger=book)
    assert len(book.entries) == 1


def test_a_file_that_changes_between_the_fits_of_a_validation_is_an_error_that_says_what_it_cost(
    folder_of, monkeypatch
):
    X = folder_of()
    changing(monkeypatch, chunks, "encoded_batch", later, X / "b.parquet")
    book = Ledger(lw.Budget(epsilon=1e3, delta=1e-2, adjacency=lw.Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    with pytest.raises(FilesChanged, match="All fits of the validation are paid for"):
        private_cross_validate(streaming(), X, "two", cv=2, ledger=book)
    assert len(book.entries) > 1


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class Outside(DPBoostClassifier):
    """A trainer from outside, whose plan does not know what it asks."""


GRIDLESS = {"epsilon": 5.0, "n_estimators": 2, "max_depth": 2, "candidates": "gridless", "random_state": 1}


def test_a_trainer_from_outside_that_asks_for_more_than_sums_is_refused_before_it_pays(folder_of, monkeypatch):
    X = folder_of()
    monkeypatch.setattr(DPBoostPlan, "needs_one_part", property(lambda _: ""))
    for kind, spent in ((Outside, False), (DPBoostClassifier, True)):
        model = kind(schema=DECLARED, **GRIDLESS)
        ledger = ledger_of(model)
        with pytest.raises(RoundViolation, match="GridlessGains is not a sum over rows") as refused:
            model.fit(X, "two", ledger=ledger)
        assert (len(ledger.entries) > 1) is spent
        assert ("Nothing was spent" in str(refused.value)) is not spent
    in_memory = Outside(schema=DECLARED, **GRIDLESS).fit(ROWS[["size", "age"]], ROWS["two"])
    assert len(in_memory.ensemble_.trees) == 2


def test_a_trainer_from_outside_that_asks_for_sums_learns_from_files(folder_of):
    told_by = []
    for X, y in ((folder_of(), "two"), (ROWS[["size", "age"]], ROWS["two"])):
        model = Outside(schema=DECLARED, **{**GRIDLESS, "candidates": "grid"})
        told_by.append(told(model.fit(X, y)))
    assert told_by[0] == told_by[1]


def test_a_trainer_that_fails_without_rows_is_not_judged_by_that(folder_of, monkeypatch):
    calls, plain = [], Outside._train

    def fails_at_first(self, plan, aggregator, *rest):
        calls.append(aggregator._table.n_rows)
        if len(calls) == 1:
            raise ZeroDivisionError
        return plain(self, plan, aggregator, *rest)

    monkeypatch.setattr(Outside, "_train", fails_at_first)
    Outside(schema=DECLARED, **{**GRIDLESS, "candidates": "grid"}).fit(folder_of(), "two")
    assert calls == [0, N]
