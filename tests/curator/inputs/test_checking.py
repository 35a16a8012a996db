"""`Schema.check`: what a fit does to the rows without a word, in detail, for their owner."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.cli.commands import app
from ledgerwood.curator.tables.trees import Table
from ledgerwood.errors import SchemaError

SCHEMA = lw.Schema(
    features=(
        lw.Numeric("age", 16, 90),
        lw.Numeric("income", 0, 1000, missing=True),
        lw.Categorical("sex", ("M", "F"), missing=True),
        lw.Categorical("city", ("oslo", "rome")),
    ),
    target=lw.Numeric("days", 0, 60),
    weight_bound=2.0,
)
ROWS = [
    [20.0, 10.0, "M", "oslo"],
    [15.0, None, "F", "rome"],
    [120.0, "many", None, "bergen"],
    [math.nan, 5.0, "X", "bergen"],
    [[30.0], math.inf, 3, "paris"],
    [40.0, 7.0, "F", None],
    [50.0, 2000.0],
]
DAYS = [0.0, 60.0, 87.51634966267358, 5.0, 6.0, 7.0, None]
WEIGHTS = [1.0, 2.0, 3.0, -1.0, math.nan, "x", 0.0]


def column(report, name):
    return next(each for each in report.columns if each.name == name)


def test_every_column_is_counted():
    report = SCHEMA.check(ROWS, DAYS, WEIGHTS)
    age, income, sex, city, days, weight = report.columns
    assert report.rows == 7
    assert (age.role, days.role, weight.role) == ("feature", "target", "weight")
    assert (age.missing, age.wrong_type, age.outside, age.lowest, age.highest) == (1, 2, 2, 15.0, 120.0)
    assert age.wrong_examples == ("[30.0] (list)", "([50.0, 2000.0],) (tuple)")
    assert (income.missing, income.wrong_type, income.outside, income.highest) == (1, 2, 1, math.inf)
    assert (sex.missing, sex.wrong_type, sex.unseen, sex.unseen_categories) == (1, 1, 2, ((3, 1), ("X", 1)))
    assert (city.missing, city.unseen, city.unseen_categories) == (1, 3, (("bergen", 2), ("paris", 1)))
    assert (days.missing, days.outside, days.highest, days.bounds) == (1, 1, 87.51634966267358, (0.0, 60.0))
    assert (weight.missing, weight.wrong_type, weight.outside, weight.lowest) == (1, 1, 2, -1.0)
    assert not report.ok
    text = str(report)
    for words in (
        "feature 'age': 1 rows have no value and contribute 0; declare missing=True",
        "target 'days': 1 rows are outside the declared [0.0, 60.0] and are clamped to it; found 0.0 to 87.516",
        "feature 'city': 3 rows have a category that is not declared and count as \"other\": 'bergen' (2), 'paris' (1)",
        "not private: for the owner of the data",
    ):
        assert words in text
    assert "'income': 1 rows have no value" not in text
    with pytest.raises(SchemaError, match=r"87\.516"):
        report.raise_for_problems()


def test_the_rows_that_it_says_contribute_0_are_those_of_the_table():
    for target, labels in ((SCHEMA.target, DAYS), (lw.Categorical("y", ("a", "b")), [*"aabc", None, "b", "a"])):
        schema = lw.Schema(features=SCHEMA.features, target=target)
        loss = "squared" if isinstance(target, lw.Numeric) else "logistic"
        table = Table.from_data(ROWS, labels, schema, loss=loss, bins=8)
        assert schema.check(ROWS, labels).left_out == int(np.isnan(table._parts[0].rows.targets).sum())
    with_weights = SCHEMA.check(ROWS[:4], DAYS[:4], [1.0, 0.0, -2.0, None])
    assert with_weights.left_out == 3


def test_rows_that_fit_are_ok_and_say_so():
    frame = pd.DataFrame({"sex": ["M", None], "age": [16, 90], "city": ["oslo", "rome"], "income": [0.0, np.nan]})
    report = SCHEMA.check(frame, pd.Series([0, 60]), [1, 2])
    assert report.ok
    assert report.problems == ()
    assert report.left_out == 0
    assert repr(report).endswith("all values are as declared")
    report.raise_for_problems()
    assert column(report, "sex").empty == ("F",)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((ROWS,), "y was not given"),
        ((ROWS, DAYS[:3]), "target 'days' has 3 values, and X has 7 rows"),
        ((ROWS, DAYS, [1.0]), "weight 'sample_weight' has 1 values"),
        ((np.zeros((3, 2)), [1.0] * 3), "X has 2 columns, but the schema declares 4"),
        ((pd.DataFrame({"age": [1.0]}), [1.0]), r"lacks the declared columns \['income', 'sex', 'city'\]"),
        ((ROWS, np.array(["a"] * 7)), "declared to hold numbers"),
        ((ROWS, None, None), "y was not given"),
    ],
)
def test_what_fit_refuses_by_type_and_shape_is_in_the_report(arguments, words):
    report = SCHEMA.check(*arguments)
    assert not report.ok
    assert str(report).startswith("no value was looked at") == (not report.columns)
    with pytest.raises(SchemaError, match=words):
        report.raise_for_problems()


def test_weights_and_labels_need_a_declaration():
    plain = lw.Schema(features=SCHEMA.features)
    assert plain.check(ROWS[:1]).ok
    assert "declares no target" in str(plain.check(ROWS[:1], [1.0]))
    target = lw.Schema(features=SCHEMA.features, target=lw.Categorical("y", ("a",)))
    report = target.check(ROWS[:1], ["a"], [1.0])
    assert "no weight_bound" in str(report)
    assert "at least 2 are needed" in str(report)


def test_the_command_line_checks_a_file(tmp_path):
    rows, schema = tmp_path / "rows.csv", tmp_path / "schema.json"
    schema.write_text(lw.Schema(features=SCHEMA.features, target=SCHEMA.target).to_json())
    rows.write_bytes(
        b"age,income,sex,city,days\n20,5,M,oslo,3\nold,,,rome,77\n30,1\n40,5,F,b\xe9rgen,1\n" + b"50,5,F,oslo,2\n"
    )
    run = CliRunner().invoke(app, ["schema", "check", str(rows), "--schema", str(schema)])
    assert run.exit_code == 1
    assert "5 rows, 2 of which contribute 0" in run.stdout
    assert "found 1.0 to 77.0" in run.stdout
    as_json = CliRunner().invoke(app, ["schema", "check", str(rows), "--schema", str(schema), "--json"])
    record = json.loads(as_json.stdout)
    assert (record["ok"], record["rows"], record["left_out"]) == (False, 5, 2)
    assert [each["wrong_type"] for each in record["columns"]] == [2, 1, 1, 1, 1]
    rows.write_text("age,income,sex,city,days\n20,5,M,oslo,3\n")
    fine = CliRunner().invoke(app, ["schema", "check", str(rows), "--schema", str(schema)])
    assert (fine.exit_code, "all values are as declared" in fine.stdout) == (0, True)
    rows.write_text("age\n20\n")
    absent = CliRunner().invoke(app, ["schema", "check", str(rows), "--schema", str(schema)])
    assert (absent.exit_code, "lacks the columns ['income', 'sex', 'city', 'days']" in absent.stdout) == (1, True)


@pytest.fixture
def files(tmp_path):
    """Rows of four columns, a label and a weight as Parquet and CSV in two files each, and all together."""
    pytest.importorskip("pyarrow")
    generator = np.random.default_rng(3)
    n = 90
    table = pd.DataFrame(
        {
            "age": generator.uniform(10, 95, n),
            "income": np.where(generator.random(n) < 0.2, np.nan, generator.uniform(-5, 1100, n)),
            "sex": generator.choice(["M", "F", "X", *map(str, range(20))], n),
            "city": generator.choice(["oslo", "bergen"], n),
            "days": generator.uniform(-1, 61, n),
            "weight": generator.uniform(-0.1, 2.1, n),
        }
    )
    table.loc[4, "age"] = np.nan
    for kind, write in (("parquet", pd.DataFrame.to_parquet), ("csv", pd.DataFrame.to_csv)):
        (tmp_path / kind).mkdir()
        for number, part in enumerate((table[:40], table[40:])):
            write(part, tmp_path / kind / f"{number}.{kind}", index=False)
    return tmp_path, table


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_rows_in_files_have_the_report_of_rows_in_memory(kind, files, monkeypatch):
    monkeypatch.setattr("ledgerwood.curator.inputs.batches.BATCH_ROWS", 7)
    folder, table = files
    features = table[["age", "income", "sex", "city"]]
    expected = SCHEMA.check(features, table["days"], table["weight"])
    found = SCHEMA.check(folder / kind, "days", "weight")
    assert expected.rows == found.rows == 90
    assert found == expected
    assert len(column(found, "sex").unseen_categories) == 10
    done = CliRunner().invoke(app, ["schema", "check", str(folder / kind), "--schema", _schema_file(folder), "--json"])
    without_weights = SCHEMA.check(features, table["days"])
    assert done.exit_code == 1
    assert json.loads(done.stdout) == json.loads(json.dumps(without_weights.to_record()))


def _schema_file(folder):
    path = folder / "schema.json"
    path.write_text(SCHEMA.to_json())
    return str(path)


def test_what_files_cannot_be_is_in_the_report_or_an_error_of_the_call(files):
    folder, table = files
    table.drop(columns="city").to_parquet(folder / "parquet" / "2.parquet")
    (misfit,) = SCHEMA.check(folder / "parquet", "days").misfits
    assert "2.parquet lacks the columns ['city']" in misfit
    table.assign(age="old").to_parquet(folder / "parquet" / "2.parquet")
    report = SCHEMA.check(folder / "parquet", "days")
    assert any("'age' has type String, and is declared to hold numbers" in each for each in report.misfits)
    assert SCHEMA.check(folder / "csv").misfits == ("y was not given: the schema declares the target 'days'",)
    with pytest.raises(SchemaError, match="name the label's column"):
        SCHEMA.check(folder / "csv", table["days"])
    with pytest.raises(SchemaError, match="names no file, no folder"):
        SCHEMA.check(folder / "nothing", "days")
