"""`ledgerwood train` without a schema, and where its model goes; `ledgerwood predict` beside a column of the rows."""

import csv
import json
import shutil
import tempfile

import numpy as np
import pytest
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.cli.commands import app
from ledgerwood.curator import row_files
from ledgerwood.trainers import DPXGBoostClassifier

RUNNER = CliRunner()
SMALL = ("--epsilon", 4, "--delta", 1e-5, "--system", "sgbdt", "--n-estimators", 2, "--max-depth", 1)
TYPES = ("--numeric", "size", "--categorical", "col*", "--ignore", "person")
COLUMNS = ["person", "size", "colour", "price", "sold"]


def run(*arguments):
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


def answer(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def written(path, lines):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([COLUMNS, *lines])
    return path


@pytest.fixture(scope="module")
def lines():
    generator = np.random.default_rng(1)
    return [
        [f"p{place}", size, "red" if size > 3 else "blue", 10 * size, "yes" if size > 5 else "no"]
        for place, size in enumerate(generator.uniform(1, 10, 2000).tolist())
    ]


@pytest.fixture
def rows(tmp_path, monkeypatch, lines):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return written(tmp_path / "rows.csv", lines)


@pytest.fixture
def parquet(rows):
    arrow = pytest.importorskip("pyarrow.csv")
    import pyarrow.parquet

    place = rows.with_suffix(".parquet")
    pyarrow.parquet.write_table(arrow.read_csv(rows), place)
    return place


def bought(rows, target, *more):
    return ("train", rows, "--target", target, *SMALL, "--out", rows.parent / "model", *more)


# ------------------------------------------------------------------------------------------------ an estimated schema


def test_types_are_said_of_a_csv_file_and_all_else_is_estimated(rows):
    more = (*TYPES, "--ignore", "price", "--task", "classification")
    found = answer(*bought(rows, "sold", *more))
    size, colour = found["schema"]["features"]
    assert (size["numeric"], colour["categorical"]) == ("size", "colour")
    assert size["low"] <= 1.5 < 8 < size["high"] <= 16
    assert set(colour["categories"]) == {"red", "blue"}
    assert set(found["schema"]["target"]["categories"]) == {"yes", "no"}
    assert (found["columns_estimated"], found["estimate_share"]) == (3, 0.1)
    assert 0.5 < found["estimate_epsilon"] < found["epsilon"] <= 4.0
    verified = answer("ledger", "verify", found["ledger"])
    assert (verified["verdict"], verified["grants"]) == ("confirmed", 1)  # columns and trees together
    assert len(answer("predict", found["model"], rows)) == 2000


@pytest.mark.slow  # fits with an estimated schema
def test_what_was_estimated_and_what_it_cost_is_said(rows):
    result = run(*bought(rows, "price", *TYPES, "--ignore", "sold", "--task", "regression"))
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    for words in ("privately estimated columns", "price (target)", "it is part of", "ledgerwood predict", "red"):
        assert words in said


def test_a_parquet_file_has_types(parquet):
    found = answer(*bought(parquet, "sold", "--ignore", "person", "--ignore", "price"))
    assert (found["estimator"], found["columns_estimated"]) == ("SGBDTClassifier", 3)


@pytest.mark.parametrize(
    ("target", "more", "words"),
    [
        ("sold", TYPES, "give --task classification or --task regression"),
        ("sold", ("--numeric", "size", "--task", "classification"), "say of 'person', 'colour', 'price' whether"),
        ("sold", (*TYPES, "--numeric", "colour", "--categorical", "colour", "--task", "classification"), "say one"),
        ("sold", (*TYPES, "--ignore", "nobody", "--task", "classification"), "has no columns ['nobody']"),
        ("nobody", (*TYPES, "--categorical", "sold", "--ignore", "price", "--task", "regression"), "['nobody']"),
        ("sold", (*TYPES, "--ignore", "price", "--task", "regression", "--system", "privatree"), "learns classes"),
        ("sold", (*TYPES, "--ignore", "price", "--task", "classification", "--delta", 0), "delta=0.0"),
    ],
)
def test_columns_that_cannot_be_estimated_are_named_and_nothing_is_spent(rows, target, more, words):
    result = run(*bought(rows, target, *more))
    assert result.exit_code == 1
    assert words in result.stderr
    assert [path.name for path in rows.parent.iterdir()] == ["rows.csv"]


def test_types_are_not_said_of_a_parquet_file(parquet):
    refused = run(*bought(parquet, "sold", "--numeric", "size"))
    assert (refused.exit_code, "leave out" in refused.stderr) == (1, True)


@pytest.mark.slow  # fits with an estimated schema
def test_whole_numbers_may_be_classes_or_quantities(rows, lines):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    size = [line[1] for line in lines]
    table = arrow.table({"size": size, "rings": [int(each) % 3 for each in size]})
    pyarrow.parquet.write_table(table, rows.parent / "rings.parquet")
    refused = run(*bought(rows.parent / "rings.parquet", "rings"))
    assert (refused.exit_code, "may be classes or quantities" in refused.stderr) == (1, True)
    found = answer(*bought(rows.parent / "rings.parquet", "rings", "--task", "classification"))
    assert set(found["schema"]["target"]["categories"]) == {0, 1, 2}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "give --schema"),
        (("--schema", "schema.json", "--target", "sold"), "--target is for rows without --schema"),
        (("--schema", "schema.json", "--numeric", "size"), "--numeric is for rows without --schema"),
    ],
)
def test_a_schema_is_declared_or_estimated(rows, monkeypatch, options, words):
    monkeypatch.chdir(rows.parent)
    (rows.parent / "schema.json").write_text(lw.Schema(features=(lw.Numeric("size", 0, 1),)).to_json())
    result = run("train", rows, *SMALL, "--out", "model", *options)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.replace("│", " ").split())


def test_no_row_of_an_undeclared_csv_file_is_refused_and_nothing_tells_of_it(rows, lines):
    odd = [["p", "many", "red", 3, "yes"], ["p", "", "", "", ""], ["p"], ["p", "1e999", "black", "nan", "perhaps"]]
    said = set()
    for number, line in enumerate([None, *odd]):
        written(rows, [*lines[:300], *([] if line is None else [line])])
        out = rows.parent / f"model{number}"
        more = (*TYPES, "--ignore", "price", "--task", "classification", "--out", out)
        result = run(*bought(rows, "sold", *more))
        assert result.exit_code == 0, (line, result.output)
        said.add(result.stderr)
    assert len(said) == 1


def test_one_row_changes_one_count_of_a_column(rows, lines):
    """Cells that are no numbers are missing; those of the label are, too, and the row then contributes 0."""
    odd = [*lines[:300], ["p", "many", "red", "much", "yes"]]
    plain = [*lines[:300], ["p", "", "red", "", "yes"]]
    types = {"numeric": ["size", "price"], "categorical": ["colour"], "ignore": ["person", "sold"]}
    found = []
    for each in (odd, plain):
        (head, batch) = next(_batches(written(rows, each), types)), [*_batches(rows, types)][-1]
        assert (len(head), batch.y.dtype) == (0, np.float64)
        found.append([batch.X[:, 0].astype(object)[-1], batch.y[-1]])
    assert np.isnan(found[1]).all()
    assert found[0][0] == "many"  # which the curator reads as missing, by the declared type
    assert np.isnan(found[0][1])


def _batches(path, types):
    from ledgerwood.curator.inputs.batches import Roles

    source, roles = row_files(path, **types), Roles(schema=None, label="price", weight=None)
    yield from source.heads(roles)
    yield from source.batches(roles)


@pytest.mark.slow  # fits with an estimated schema
def test_the_types_of_a_csv_file_are_for_python_too(rows, lines):
    pure = DPXGBoostClassifier(epsilon=8.0, delta=1e-5, n_estimators=2, max_depth=2, random_state=0)
    types = {"numeric": ["size", "price"], "categorical": ["*"], "ignore": ["person"]}
    with pytest.warns(lw.PrivacyWarning):
        pure.fit(row_files(rows, **types), "sold")
    assert list(pure.feature_names_in_) == ["size", "colour", "price"]
    assert np.mean(pure.predict(rows) == np.array([line[-1] for line in lines])) > 0.8
    with pytest.raises(lw.PrivacyError, match="row_files"):
        pure.fit(rows, "sold")
    with pytest.raises(lw.PrivacyError, match="sequence of names"):
        row_files(rows, numeric="size")


# ------------------------------------------------------------------------------------------------ where a model is put


@pytest.fixture(scope="module")
def trained(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("trained")
    written(folder / "rows.csv", lines[:200])
    features = (lw.Numeric("size", 0, 10), lw.Categorical("colour", ("red", "blue")))
    schema = lw.Schema(features=features, target=lw.Categorical("sold", ("no", "yes")))
    (folder / "schema.json").write_text(schema.to_json())
    answer("train", folder / "rows.csv", "--schema", folder / "schema.json", *SMALL, "--out", folder / "model")
    return folder


@pytest.fixture
def place(trained, tmp_path, monkeypatch):
    shutil.copytree(trained, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / "here"


def state(place):
    return {path.name: path.read_bytes() for path in place.rglob("*") if path.is_file()}


AGAIN = ("train", "rows.csv", "--schema", "schema.json", *SMALL, "--out", "model")


def test_a_folder_with_a_model_is_refused_before_anything_is_spent(place):
    before = state(place)
    result = run(*AGAIN, "--ledger", "other.jsonl")
    assert result.exit_code == 1
    for words in ("holds a trained model (SGBDTClassifier, epsilon 4", "predict model ROWS", "--overwrite", "Nothing"):
        assert words in result.stderr
    assert state(place) == before


def test_a_ledger_that_begins_with_a_checkpoint_cannot_pay(place):
    with lw.Ledger.open("model/ledger.jsonl") as ledger:
        ledger.checkpoint()
        ledger.record().from_checkpoint().save("cut.jsonl")
    before = state(place)
    result = run(*AGAIN[:-1], "new", "--ledger", "cut.jsonl")
    assert result.exit_code == 1
    assert "this command needs the whole ledger, from its first entry on: name the file" in result.stderr
    assert state(place) == before
    assert not (place / "new").exists()


def test_overwriting_spends_from_the_ledger_that_paid_for_the_first_model(place):
    before = state(place)
    spent = run(*AGAIN, "--overwrite")
    assert spent.exit_code == 1
    assert spent.stderr.startswith("BudgetExceeded")
    assert "must be added up" in spent.stderr
    assert state(place) == before


def test_overwriting_keeps_the_record_of_what_the_first_model_cost(place):
    before = state(place)
    lost = run(*AGAIN, "--overwrite", "--ledger", "other.jsonl")
    assert (lost.exit_code, "its entries would be lost" in lost.stderr) == (1, True)
    assert state(place) == before


def test_a_model_is_replaced_where_its_ledger_goes_on(place):
    limit = lw.Budget(epsilon=9.0, delta=1e-4, adjacency=lw.Adjacency.ADD_REMOVE)
    lw.Ledger.open("study.jsonl", dataset="study", budget=limit, unit=lw.PrivacyUnit.ROW).close()
    pays = ("--ledger", "study.jsonl", "--dataset", "study")
    first = answer(*AGAIN[:-1], "second", *pays)
    again = answer(*AGAIN[:-1], "second", *pays, "--overwrite")
    assert again["ledger_head"] != first["ledger_head"]
    assert 4.0 < again["ledger_epsilon"] <= 8.0
    assert answer("ledger", "verify", "study.jsonl", "--head", again["ledger_head"])["grants"] == 2


# -------------------------------------------------------------------------------------------------- kept columns


def test_predictions_keep_a_column_that_tells_rows_apart(place):
    bare = answer("predict", "model", "rows.csv")
    kept = answer("predict", "model", "rows.csv", "--id", "person", "--probabilities")
    assert [line["person"] for line in kept] == [f"p{number}" for number in range(200)]
    assert [line["prediction"] for line in kept] == [line["prediction"] for line in bare]
    assert list(kept[0]) == ["person", "prediction", "probability of no", "probability of yes"]
    assert run("predict", "model", "rows.csv", "--id", "person").stdout.splitlines()[1].startswith("p0,")


def test_a_parquet_file_keeps_the_column_with_its_type(place, lines):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    table = arrow.table({"size": [line[1] for line in lines], "colour": [line[2] for line in lines]})
    days = arrow.array(range(len(lines)), type=arrow.date32())
    pyarrow.parquet.write_table(table.append_column("day", days), "rows.parquet")
    for rows, key, kind in (("rows.parquet", "day", arrow.date32()), ("rows.csv", "person", arrow.string())):
        assert run("predict", "model", rows, "--id", key, "--out", "found.parquet").exit_code == 0
        found = pyarrow.parquet.read_table("found.parquet")
        assert (found.column_names, found.schema.field(key).type) == ([key, "prediction"], kind)
    assert answer("predict", "model", "rows.parquet", "--id", "day")[0]["day"] == "1970-01-01"


@pytest.mark.parametrize(
    ("key", "words"), [("nobody", "lacks the columns ['nobody']"), ("size", "two roles"), ("prediction", "rename it")]
)
def test_a_column_that_cannot_be_kept_is_named(place, key, words):
    result = run("predict", "model", "rows.csv", "--id", key)
    assert (result.exit_code, words in result.stderr) == (1, True)
