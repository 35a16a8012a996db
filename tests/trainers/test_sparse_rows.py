"""Fits on sparse rows: the models of the same rows in an array, bit for bit, in one part and in several."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood import Categorical, Ledger, Numeric, PrivacyUnit, libsvm_files
from ledgerwood.cli.commands import app
from ledgerwood.curator import Table
from ledgerwood.curator.tables import chunks
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.sparse_cells import SparseCells
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPBoostRegressor,
    DPXGBoostClassifier,
    FederatedGBDTClassifier,
    PrivateBoostingClassifier,
    PrivateSearch,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
    private_cross_validate,
)

from .place_rows import told

N, F = 300, 12
GENERATOR = np.random.default_rng(20)
X = np.where(GENERATOR.random((N, F)) < 0.3, GENERATOR.choice([1.0, 2.0, -0.5, np.nan], (N, F)), 0.0)
X[:, 3] = GENERATOR.choice([0.0, 1.0, 4.0, 7.0], N)  # a category, one of which is not declared
SPARSE = sparse.csr_array(X)
SUMS = np.nan_to_num(X[:, :6]).sum(axis=1) + 0.2 * GENERATOR.normal(size=N)
LABELS = {"number": SUMS, "two": SUMS > 1.0, "three": np.digitize(SUMS, [0.5, 1.5])}
FEATURES = tuple(
    Categorical("x3", (0, 1, 4)) if place == 3 else Numeric(f"x{place}", -1, 2, missing=place != 5)
    for place in range(F)
)
TARGETS = {
    "number": Numeric("number", -2, 6),
    "two": Categorical("two", (False, True)),
    "three": Categorical("three", (0, 1, 2)),
}
SYSTEMS = {
    SGBDTClassifier: {"n_estimators": 3, "subsample": 0.6},
    DPBoostClassifier: {"n_estimators": 2, "preset": "seq"},
    DPXGBoostClassifier: {"n_estimators": 2},
    FederatedGBDTClassifier: {"n_estimators": 2},
    PrivateBoostingClassifier: {"n_estimators": 4},
    PrivaTreeClassifier: {},
}


def schema_of(label="two", weight_bound=None):
    return lw.Schema(features=FEATURES, target=TARGETS[label], weight_bound=weight_bound)


def model_of(kind=SGBDTClassifier, label="two", weight_bound=None, **more):
    common = {"epsilon": 8.0, "delta": 1e-4, "random_state": 3, "max_depth": 3}
    return kind(**{**common, "schema": schema_of(label, weight_bound), **more})


@pytest.fixture(params=[1, 3, 17])
def parts(request, monkeypatch):
    """How many parts the rows of a fit lie in."""
    plain, sizes = Table.from_data, np.diff(np.linspace(0, N, request.param + 1).astype(int)).tolist()
    monkeypatch.setattr(Table, "from_data", lambda *given, **named: plain(*given, **named).parted(sizes))
    return request.param


@pytest.mark.parametrize("kind", SYSTEMS)
def test_the_same_seed_gives_the_same_model_as_the_array(kind, parts):
    model = model_of(kind, **SYSTEMS[kind])
    expected = told(model.fit(X, LABELS["two"]))
    assert any(values != [0.0] * len(values) for values, *_ in expected[1])
    probabilities = model.predict_proba(X)
    for table in (SPARSE, sparse.csc_matrix(X)):
        assert told(model.fit(table, LABELS["two"])) == expected
        np.testing.assert_array_equal(model.predict_proba(table), probabilities)


@pytest.mark.parametrize(
    ("kind", "label", "more"),
    [
        (SGBDTRegressor, "number", {"n_estimators": 3}),
        (SGBDTClassifier, "three", {"n_estimators": 6}),
        (DPBoostRegressor, "number", {"n_estimators": 2, "max_bins": 300}),
        (DPBoostRegressor, "number", {"n_estimators": 2, "preset": "enhanced"}),
        (PrivaTreeClassifier, "three", {}),
    ],
    ids=["numbers", "several classes", "more than 256 cells", "grid-less", "several classes, PrivaTree"],
)
def test_numbers_several_classes_and_many_cells_too(kind, label, more):
    model = model_of(kind, label, **more)
    expected = told(model.fit(X, LABELS[label]))
    assert told(model.fit(SPARSE, LABELS[label])) == expected


def test_weights_and_the_individual_filter_too():
    weights = np.where(np.arange(N) % 3, 1.0, 0.4)
    model = model_of(SGBDTClassifier, "two", 1.0, n_estimators=3)
    expected = told(model.fit(X, LABELS["two"], sample_weight=weights))
    assert told(model.fit(SPARSE, LABELS["two"], sample_weight=weights)) == expected
    model = model_of(SGBDTClassifier, n_estimators=4, filter="gdp")
    assert told(model.fit(SPARSE, LABELS["two"])) == told(model.fit(X, LABELS["two"]))


def test_streams_searches_and_cross_validation_too():
    y, keys = LABELS["two"], [f"unit {row % 200}" for row in range(N)]
    streams = [model_of(SGBDTClassifier, n_estimators=2, filter="gdp") for _ in range(2)]
    for stream, table in zip(streams, (X, SPARSE), strict=True):
        for begin in (0, 150):
            stream.partial_fit(table[begin : begin + 150], y[begin : begin + 150], keys[begin : begin + 150])
    assert told(streams[0]) == told(streams[1])
    candidates = [{"n_estimators": 2, "max_depth": 2}, {"n_estimators": 3, "max_depth": 1}]
    search = PrivateSearch(
        SGBDTClassifier(), candidates, mean_runs=2.0, epsilon=8.0, delta=1e-4, schema=schema_of(), random_state=3
    )
    assert told(search.fit(SPARSE, y)) == told(search.fit(X, y))
    found = [private_cross_validate(model_of(n_estimators=2), table, y, cv=3) for table in (X, SPARSE)]
    assert found[0].scores.test_score == found[1].scores.test_score
    with pytest.warns(lw.PrivacyWarning):
        assert len(cross_val_score(model_of(n_estimators=2), SPARSE, y, cv=2)) == 2


def test_the_owners_check_reads_them_too():
    for label in ("two", "number"):
        expected = schema_of(label).check(X, LABELS[label])
        assert schema_of(label).check(SPARSE, LABELS[label]) == expected
        assert not expected.ok
    report = schema_of().check(sparse.coo_array(X), LABELS["two"])
    assert "format 'coo'" in report.misfits[0]


def test_what_has_no_sparse_form_is_refused_by_name_and_costs_nothing():
    ledger = Ledger(lw.Budget(epsilon=10.0, delta=0.1, adjacency=lw.Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    before = ledger.entries
    with pytest.raises(SchemaError, match="[Ss]parse.*declared schema"):
        model_of(schema=None).fit(SPARSE, LABELS["two"], ledger=ledger)
    with pytest.raises(SchemaError, match="X has 11 columns, but the schema declares 12 features"):
        model_of().fit(SPARSE[:, 1:], LABELS["two"], ledger=ledger)
    with pytest.raises(InvalidParameter, match="scratch"):
        model_of().fit(SPARSE, LABELS["two"], ledger=ledger, scratch="somewhere")
    texts = lw.Schema(features=(Categorical("x0", ("u", "v")), *FEATURES[1:]), target=TARGETS["two"])
    with pytest.raises(SchemaError, match="no row could have one of them"):
        model_of(schema=texts).fit(SPARSE, LABELS["two"], ledger=ledger)
    assert ledger.entries == before


def test_the_tag_of_scikit_learn_follows_the_schema():
    assert model_of().__sklearn_tags__().input_tags.sparse
    assert not SGBDTClassifier().__sklearn_tags__().input_tags.sparse


def lines_of(table, labels):
    """As LIBSVM has them, with a NaN spelled out."""
    rows = sparse.csr_array(table)
    for row, label in enumerate(labels):
        own = slice(rows.indptr[row], rows.indptr[row + 1])
        pairs = zip(rows.indices[own].tolist(), rows.data[own].tolist(), strict=True)
        yield " ".join([repr(float(label)), *(f"{place + 1}:{value!r}" for place, value in pairs)])


@pytest.fixture
def folder(tmp_path):
    """Two LIBSVM files, one of them packed; rows 7 and 200 cannot be read."""
    lines = list(lines_of(X, LABELS["two"]))
    lines[7], lines[200] = "0 3:1 2:1", "1 0:1"
    (tmp_path / "a.svm").write_text("\n".join(lines[:110]))
    (tmp_path / "b.svm.gz").write_bytes(gzip.compress("\n".join(lines[110:]).encode()))
    return tmp_path


@pytest.mark.parametrize("kind", SYSTEMS)
@pytest.mark.parametrize("few", [1, 3, 17])
def test_libsvm_files_give_the_model_of_the_array(kind, few, folder, monkeypatch):
    table, y = X.copy(), LABELS["two"].astype(float)
    table[[7, 200]], y[[7, 200]] = 0.0, np.nan
    table[[7, 200], 5] = np.nan  # which no row may lack
    model = model_of(kind, **SYSTEMS[kind])
    expected = told(model.fit(table, y))
    if few > 1:
        monkeypatch.setattr(libsvm_files, "BLOCK_BYTES", 2 + 9000 // few)
        monkeypatch.setattr(chunks, "PART_ROWS" if few == 3 else "PART_STORED", 100 if few == 3 else 1)
    tables = []
    plain = Table.of_parts
    monkeypatch.setattr(Table, "of_parts", lambda shape, parts: tables.append(parts) or plain(shape, parts))
    assert told(model.fit(folder, "label", scratch=folder / "scratch")) == expected
    assert not (folder / "scratch").exists()
    assert len(tables[-1]) == 1 if few == 1 else len(tables[-1]) >= few - 1
    for part in tables[-1]:
        assert isinstance(part.rows.cells, SparseCells)
        assert isinstance(part.rows.cells.rows.base, np.ndarray)  # of the scratch folder


def test_rows_of_libsvm_files_are_predicted_and_numbers_learned(folder):
    y = LABELS["number"]
    (folder / "numbers.libsvm").write_text("\n".join(lines_of(X, y)))
    model = model_of(SGBDTRegressor, "number", n_estimators=3)
    expected = told(model.fit(X, y))
    assert told(model.fit(folder / "*.libsvm", "any name")) == expected
    np.testing.assert_array_equal(model.predict(str(folder / "numbers.libsvm")), model.predict(X))
    sizes = [len(model.predict(batch)) for batch in model.batches(folder / "numbers.libsvm")]
    assert (sizes[0], sum(sizes)) == (0, N)
    with pytest.raises(SchemaError, match=r"a\.svm, line 8 is not one of LIBSVM's format"):
        model.predict(folder)


def test_libsvm_files_are_refused_by_what_they_cannot_hold(folder):
    model = model_of(weight_bound=1.0)
    for given, words in (
        ({"y": LABELS["two"]}, "rows in files have their labels beside them"),
        ({"y": "label", "sample_weight": "weight"}, "has a label and features, and no column 'weight' besides"),
    ):
        with pytest.raises(SchemaError, match=words):
            model.fit(folder, **given)
    for schema in (None, lw.Schema.uniform(0, 1, target=TARGETS["two"])):
        with pytest.raises(SchemaError, match="does not say how many features there are"):
            model_of(schema=schema).fit(folder, "label")
    texts = lw.Schema(features=FEATURES, target=Categorical("kind", ("u", "v")))
    with pytest.raises(SchemaError, match="no label could be one of them"):
        model_of(schema=texts).fit(folder, "label")
    (folder / "c.csv").touch()
    with pytest.raises(SchemaError, match="must be files of one kind.*LIBSVM"):
        model.fit(folder, "label")


def test_the_command_line_reads_them(folder):
    (folder / "schema.json").write_text(schema_of().to_json())
    rows, settings = str(folder / "*.svm*"), ["--schema", str(folder / "schema.json"), "--epsilon", "5"]
    run = CliRunner()
    done = run.invoke(app, ["train", rows, *settings, "--delta", "1e-4", "--out", str(folder / "model")])
    assert done.exit_code == 0, done.output
    (folder / "one.svm").write_text(f"0 1:1\n0 {F}:1\n")
    done = run.invoke(app, ["predict", str(folder / "model"), str(folder / "one.svm")])
    assert len(done.stdout.splitlines()) == 3
    done = run.invoke(app, ["schema", "check", str(folder / "a.svm"), "--schema", str(folder / "schema.json")])
    assert done.exit_code == 1
    assert "feature 'x5'" in done.stdout


PEAK = """
import numpy as np, scipy.sparse, warnings
import ledgerwood as lw
from ledgerwood import trainers
warnings.simplefilter("ignore")
f, k, schema = 1000, 14, lw.Schema.uniform(0, 1, n_features=1000, target=lw.Categorical("y", (False, True)))
generator = np.random.default_rng(0)
some = np.sort(generator.permuted(np.tile(np.arange(f, dtype=np.int32), (1000, 1)), axis=1)[:, :k], axis=1)
for n in (1000, 200_000):
    places = some[generator.integers(0, 1000, n)].ravel()
    X = scipy.sparse.csr_array((np.ones(n * k), places, np.arange(0, n * k + 1, k, dtype=np.int32)), shape=(n, f))
    y = generator.random(n) < 0.3 + 0.4 * (places[::k] < 20)
    for kind, more in {systems}.items():
        getattr(trainers, kind)(schema=schema, epsilon=5.0, max_depth=4, **more).fit(X, y).predict(X)
    print(*[line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")])
"""


@pytest.mark.slow  # a process that trains every system on 200,000 rows
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read where Linux tells it")
def test_memory_grows_with_what_is_stored_and_not_with_all_cells():
    """A byte a cell would be .19 GiB, and floats 1.5 GiB; the input itself takes .03 GiB."""
    systems = {
        kind.__name__: {name: value for name, value in more.items() if name != "subsample"}
        for kind, more in SYSTEMS.items()
    }
    script = PEAK.replace("{systems}", repr(systems))
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    few, many = (int(peak) for peak in told.split())  # KiB
    assert many - few < 0.16 * 2**20
    # As much again for each of 800,000 rows more: below 2 GiB.
    assert many + 4 * (many - few) < 2 * 2**20
