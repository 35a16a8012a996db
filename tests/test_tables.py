"""CSV files by schema: names, types, missing values, and errors that name the place."""

import gzip
import math

import numpy as np
import pytest

from ledgerwood.csv_files import read_csv, read_rows
from ledgerwood.errors import SchemaError
from ledgerwood.schema import Categorical, Numeric, Schema

SCHEMA = Schema(
    features=(Numeric("age", 0, 100), Categorical("sex", ("F", "M"))),
    target=Categorical("grade", (1, 2)),
)


def write(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    return path


def test_reads_by_name_whatever_the_order(tmp_path):
    path = write(tmp_path, "grade,sex,note,age\n1,F,x,30\n2,M,y,41.5\n")
    X, y = read_csv(path, SCHEMA, with_target=True)
    assert X.dtype == object
    assert X.tolist() == [[30.0, "F"], [41.5, "M"]]
    assert y.tolist() == [1, 2]


def test_the_target_stays_where_it_is_unless_asked_for(tmp_path):
    X, y = read_csv(write(tmp_path, "age,sex\n30,F\n"), SCHEMA, with_target=False)
    assert X.shape == (1, 2)
    assert y is None


def test_empty_cells_are_missing_values_and_unknown_categories_stay(tmp_path):
    X, _ = read_csv(write(tmp_path, "age,sex\n,\n3,other\n"), SCHEMA, with_target=False)
    assert math.isnan(X[0, 0])
    assert X[0, 1] is None
    assert X[1, 1] == "other"


def test_one_range_for_every_column(tmp_path):
    schema = Schema.uniform(0.0, 1.0, target=Numeric("y", 0, 5))
    X, y = read_csv(write(tmp_path, "a,y,b\n.1,4,.2\n"), schema, with_target=True)
    assert X.dtype == np.float64
    assert X.tolist() == [[0.1, 0.2]]
    assert y.tolist() == [4.0]


def test_reads_packed_files(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"age,sex\n30,F\n"))
    assert read_csv(path, SCHEMA, with_target=False)[0].tolist() == [[30.0, "F"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("age,sex\n30\n", r"line 2: 1 cells where the header has 2 \(unit: columns\)"),
        ("age,grade\n30,1\n", "has 0 columns named 'sex'"),
        ("age,age,sex\n30,30,F\n", "has 2 columns named 'age'"),
        ("age,sex\nold,F\n", "column 'age': could not convert string to float: 'old'"),
    ],
)
def test_says_what_is_wrong(tmp_path, text, message):
    with pytest.raises(SchemaError, match=message):
        read_csv(write(tmp_path, text), SCHEMA, with_target=False)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.csv", b"age,sex\n\xff,F\n"),
        ("rows.csv", b"age,sex\n30," + b"F" * 200_000 + b"\n"),
        ("rows.csv.gz", gzip.compress(b"age,sex\n30,F\n" * 99)[:-20]),
    ],
    ids=["not UTF-8", "a cell without end", "cut short"],
)
def test_a_file_that_is_no_table_is_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SchemaError, match=f"{name} is not a CSV file in UTF-8"):
        read_csv(tmp_path / name, SCHEMA, with_target=False)


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"\xef\xbb\xbfage,sex\n30,F\n")
    assert read_csv(tmp_path / "rows.csv", SCHEMA, with_target=False)[0].tolist() == [[30.0, "F"]]


def test_training_needs_a_target(tmp_path):
    schema = Schema(features=SCHEMA.features)
    with pytest.raises(SchemaError, match="names no target"):
        read_csv(write(tmp_path, "age,sex\n30,F\n"), schema, with_target=True)


@pytest.mark.parametrize(
    "line",
    [
        '"0.1,M,3',
        '0"1,M,3',
        'a","b,M,3',
        '0.1,"M,3',
        '0.1,M,"3',
        '"',
        '0.1,M,3"',
        "0.1\x00,M,3",
        "",
        "0.1,M",
        '"a"b,M,3',
    ],
)
def test_a_line_for_training_changes_the_reading_of_no_other_line(tmp_path, line):
    """An open quote would take in all lines that follow: one row would change as many as the file has."""
    others = ["0.2,M,1", '0.3,"F",2', "0.4,M,3"]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["length,sex,rings", others[0], line, *others[1:]]) + "\n", encoding="utf-8")
    header, rows = read_rows(path, strict=False)
    assert header == ["length", "sex", "rings"]
    assert [rows[0], *rows[-2:]] == [["0.2", "M", "1"], ["0.3", "F", "2"], ["0.4", "M", "3"]]
    assert len(rows) == (4 if line else 3)


def test_the_lines_of_a_cell_with_a_line_break_are_no_rows(tmp_path):
    """Where a record has two lines, neither is read as a row of its own."""
    path = tmp_path / "rows.csv"
    path.write_text('length,sex,rings\n0.2,"M\nM",1\n0.3,"F,\n",4\n', encoding="utf-8")
    assert [len(row) for row in read_rows(path, strict=False)[1]] == [1, 1, 1, 1]
    assert read_rows(path, strict=True)[1][0] == ["0.2", "M\nM", "1"]
