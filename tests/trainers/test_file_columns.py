"""Columns of rows in files: found by name in every file, of every kind, and told where they are not."""

import warnings

import numpy as np
import pandas as pd
import pytest

import ledgerwood as lw
from ledgerwood import Numeric
from ledgerwood.errors import SchemaError
from ledgerwood.trainers import SGBDTRegressor

from .place_rows import N

pa, ds = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.dataset"))

GENERATOR = np.random.default_rng(5)
TABLE = pd.DataFrame({"left": GENERATOR.random(N), "right": GENERATOR.random(N)})
TABLE["cost"] = TABLE["left"]
OTHER_ORDER = ["cost", "right", "left"]
TARGET = Numeric("cost", 0, 1)
ONE_RANGE = lw.Schema.uniform(0, 1, target=TARGET)
DECLARED = lw.Schema(features=(Numeric("left", 0, 1), Numeric("right", 0, 1)), target=TARGET)
KINDS = ["parquet", "csv"]


def write(frame, path):
    frame.to_csv(path, index=False) if path.suffix.lower() == ".csv" else frame.to_parquet(path)
    return path


def model_of(schema):
    return SGBDTRegressor(epsilon=50.0, delta=1e-6, schema=schema, n_estimators=20, max_depth=3, random_state=1)


def in_memory(schema, names=("left", "right")):
    model = model_of(schema).fit(TABLE[list(names)], TABLE["cost"])
    return model, model.predict(TABLE[list(names)])


@pytest.mark.parametrize("kind", KINDS)
def test_a_later_file_with_its_columns_in_another_order_is_read_by_their_names(kind, tmp_path):
    """With one range for all columns no schema has their names: those of the first file hold for all."""
    write(TABLE[:150], tmp_path / f"1.{kind}")
    write(TABLE[150:][OTHER_ORDER], tmp_path / f"2.{kind}")
    model, expected = in_memory(ONE_RANGE)
    assert model.fit(tmp_path, "cost").predict(TABLE[["left", "right"]]).tolist() == expected.tolist()
    np.testing.assert_array_equal(model.predict(tmp_path), expected)
    (tmp_path / "unlabelled").mkdir()
    for number, columns in enumerate((["left", "right"], ["right", "left"])):
        write(TABLE[columns], tmp_path / "unlabelled" / f"{number}.{kind}")
    bare = model_of(ONE_RANGE).fit(TABLE[["left", "right"]].to_numpy(), TABLE["cost"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the fit saw no names
        found = bare.predict(tmp_path / "unlabelled")
    np.testing.assert_array_equal(found, np.tile(expected, 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (TABLE.rename(columns={"right": "up"}), r"2\.\w+ lacks the columns \['right'\]"),
        (TABLE.assign(more=1.0), r"2\.\w+ has the columns \['more'\], which the first file does not have"),
    ],
    ids=["renamed", "one more"],
)
def test_files_of_other_columns_than_the_first_one_are_refused(other, message, kind, tmp_path):
    write(TABLE, tmp_path / f"1.{kind}")
    write(other, tmp_path / f"2.{kind}")
    book = lw.Ledger(lw.Budget(epsilon=60.0, delta=1e-5, adjacency=lw.Adjacency.ADD_REMOVE), unit=lw.PrivacyUnit.ROW)
    with pytest.raises(SchemaError, match=message):
        model_of(ONE_RANGE).fit(tmp_path, "cost", book)
    assert book.spent().epsilon == 0.0


@pytest.mark.parametrize("schema", [ONE_RANGE, DECLARED], ids=["one range", "declared"])
@pytest.mark.parametrize("names", [("left", "right"), ("right", "left")], ids=" ".join)
@pytest.mark.parametrize("place", ["memory", *KINDS])
def test_predictions_find_columns_by_name_and_warn_of_nothing(place, names, schema, tmp_path):
    expected = in_memory(schema, names)[1]
    order = [*names, "cost"]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*feature names")
        model = model_of(schema)
        if place == "memory":
            model.fit(TABLE[list(names)], TABLE["cost"])
        else:
            model.fit(write(TABLE[order], tmp_path / f"rows.{place}"), "cost")
        for kind in KINDS:
            for columns in (order, OTHER_ORDER):
                rows = write(TABLE[columns], tmp_path / f"new.{kind}")
                np.testing.assert_array_equal(model.predict(rows), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_files_whose_columns_are_taken_by_position_are_warned_of(kind, tmp_path):
    """A model that was fitted on an array knows no names."""
    model = model_of(ONE_RANGE).fit(TABLE[["left", "right"]].to_numpy(), TABLE["cost"])
    rows = write(TABLE[["right", "left"]], tmp_path / f"rows.{kind}")
    with pytest.warns(UserWarning, match="X has feature names, but SGBDTRegressor was fitted without feature names"):
        model.predict(rows)


def test_the_label_of_another_name_than_the_target_is_no_feature(tmp_path):
    """A model that was fitted on a CSV file took all columns but the target's for its features."""
    rows = write(TABLE.rename(columns={"cost": "price"}), tmp_path / "rows.csv")
    model = model_of(ONE_RANGE).fit(rows, "price")
    assert model.feature_names_in_.tolist() == ["left", "right"]
    np.testing.assert_array_equal(model.predict(rows), in_memory(ONE_RANGE)[1])
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(SGBDTRegressor.load(tmp_path / "model").predict(rows), model.predict(rows))


def test_a_stream_refuses_a_csv_file_whose_columns_are_in_another_order(tmp_path):
    """Parquet files have their names compared by scikit-learn."""
    units = TABLE.assign(unit=np.arange(N).astype(str))
    model = SGBDTRegressor(
        epsilon=5.0, delta=1e-5, schema=ONE_RANGE, n_estimators=3, max_depth=2, random_state=3, expected_rows=N
    )
    model.partial_fit(write(units, tmp_path / "1.csv"), "cost", keys="unit")
    later = write(units[["unit", *OTHER_ORDER]], tmp_path / "2.csv")
    with pytest.raises(
        SchemaError, match=r"columns are \['right', 'left'\], and those of the fit were \['left', 'right'"
    ):
        model.partial_fit(later, "cost", keys="unit")


@pytest.mark.parametrize(
    "named",
    [["rows.parquet"], TABLE, np.zeros((3, 2)), pa.table({"left": [0.5]}).to_reader()],
    ids=lambda x: type(x).__name__,
)
def test_the_name_of_a_label_of_what_is_no_files_is_refused_by_what_it_is(named):
    with pytest.raises(SchemaError, match=rf"y is a str, as of rows in files, and X is an? {type(named).__name__}"):
        model_of(DECLARED).fit(named, "cost")


def test_a_scanner_and_a_folder_without_files_are_refused_by_name(tmp_path):
    write(TABLE, tmp_path / "rows.parquet")
    with pytest.raises(SchemaError, match="X is a pyarrow Scanner, which may be read once only: give its dataset"):
        model_of(DECLARED).fit(ds.dataset(tmp_path).scanner(), "cost")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "_SUCCESS").touch()
    with pytest.raises(SchemaError, match=r"empty' is a folder without files: rows are read from files of Parquet"):
        model_of(DECLARED).fit(tmp_path / "empty", "cost")


@pytest.mark.parametrize("name", ["ROWS.CSV", "Rows.Parquet"])
def test_ends_of_names_in_capitals_are_ends(name, tmp_path):
    rows = write(TABLE, tmp_path / name) if name.endswith("CSV") else tmp_path / name
    if not name.endswith("CSV"):
        TABLE.to_parquet(rows)
    np.testing.assert_array_equal(model_of(DECLARED).fit(rows, "cost").predict(rows), in_memory(DECLARED)[1])
