"""Drafts: from names and types alone, with what is open named wherever a schema is needed."""

import pickle

import dask.dataframe as dd
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import ledgerwood as lw
from ledgerwood.curator import ColumnTable
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.trainers.preparing.encoders import SchemaScaler

TABLE = pa.table({
    "age": pa.array([31, 40], pa.int64()),
    "income": pa.array([1.5, None], pa.float32()),
    "sex": pa.array(["f", "m"]),
    "town": pa.array(["x", "y"]).dictionary_encode(),
    "here": pa.array([True, None]),
    "days": pa.array([3, 4], pa.int8()),
})  # fmt: skip
DRAFT = lw.SchemaDraft(
    features=(
        lw.OpenNumeric("age"),
        lw.OpenNumeric("income"),
        lw.OpenCategorical("sex"),
        lw.OpenCategorical("town"),
        lw.Categorical("here", (False, True), missing=True),
    ),
    target=lw.OpenNumeric("days", missing=False),
)
FILLING = {"age": (16, 90), "income": (0, 1e5), "sex": ("f", "m"), "town": ("x", "y", "z"), "days": (0, 60)}
FULL = lw.Schema(
    features=(
        lw.Numeric("age", 16, 90, missing=True),
        lw.Numeric("income", 0, 1e5, missing=True),
        lw.Categorical("sex", ("f", "m"), missing=True),
        lw.Categorical("town", ("x", "y", "z"), missing=True),
        lw.Categorical("here", (False, True), missing=True),
    ),
    target=lw.Numeric("days", 0, 60),
)


def frames(folder):
    pandas = TABLE.to_pandas()
    path = folder / "rows.parquet"
    pq.write_table(TABLE, path)
    return {
        "arrow": TABLE, "batch": TABLE.to_batches()[0], "types": TABLE.schema, "dataset": pads.dataset(path),
        "pandas": pandas, "polars": pl.from_arrow(TABLE), "lazy": pl.from_arrow(TABLE).lazy(),
        "narwhals": nw.from_native(pandas), "narwhals lazy": nw.from_native(pl.from_arrow(TABLE).lazy()),
        "dask": dd.from_pandas(pandas, npartitions=2), "parquet": path, "folder": str(folder),
    }  # fmt: skip


@pytest.mark.parametrize("library", [
    "arrow", "batch", "types", "dataset", "pandas", "polars", "lazy", "narwhals", "narwhals lazy", "dask", "parquet",
    "folder",
])  # fmt: skip
def test_every_table_with_names_and_types_gives_one_draft(tmp_path, library):
    frame = frames(tmp_path)[library]
    if library in ("pandas", "dask", "narwhals"):  # which makes objects of booleans with a gap
        expected = (*DRAFT.features[:4], lw.OpenCategorical("here"))
    else:
        expected = DRAFT.features
    assert lw.Schema.draft(frame, target="days") == lw.SchemaDraft(features=expected, target=DRAFT.target)


def test_a_draft_has_no_value_of_the_rows(tmp_path):
    text = lw.Schema.draft(TABLE, target="days").to_toml()
    assert not any(f'"{value}"' in text for value in ("f", "m", "x", "y"))
    # Lists of categories may come from the rows, of an enumeration too.
    rows = pl.DataFrame({"town": pl.Series(["x"], dtype=pl.Enum(["x", "secret"]))})
    cats = pd.DataFrame({"town": pd.Categorical(["x"], categories=["x", "secret"])})
    for frame in (rows, cats):
        draft = lw.Schema.draft(frame)
        assert draft == lw.SchemaDraft(features=(lw.OpenCategorical("town"),))
        assert "secret" not in f"{draft}{draft!r}{draft.to_toml()}"


def test_of_a_parquet_file_the_footer_is_read_and_no_row(tmp_path):
    whole, cut = tmp_path / "rows.parquet", tmp_path / "cut.parquet"
    pq.write_table(TABLE, whole)
    content = bytearray(whole.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = b"\0" * (len(content) - 4 - footer)  # no page of rows can be read any more
    cut.write_bytes(content)
    with pytest.raises(OSError):
        pq.read_table(cut)
    assert lw.Schema.draft(cut, target="days") == DRAFT


def test_of_a_csv_file_the_header_is_read_and_no_line_more(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'\xef\xbb\xbfage,"sex, or so",days\n\xff"\xfe,\0\n')
    draft = lw.Schema.draft(path, target="days", ignore=["age"])
    assert draft == lw.SchemaDraft(features=(lw.OpenColumn("sex, or so"),), target=lw.OpenColumn("days", missing=False))
    done = draft.filled({"sex, or so": lw.Categorical("sex, or so", ("a",)), "days": lw.Numeric("days", 0, 9)})
    assert isinstance(done, lw.Schema)


@pytest.mark.parametrize(
    ("frame", "options", "said"),
    [
        (TABLE, {"target": "rings"}, r"no columns \['rings'\]"),
        (TABLE, {"target": "days", "ignore": ["days"]}, "among the columns to ignore"),
        (TABLE, {"ignore": "days"}, "not one text"),
        (np.zeros((2, 2)), {}, "cannot be drafted of an ndarray"),
        (pd.DataFrame({0: [1.0]}), {}, "column name 0 must be"),
        (pd.DataFrame({"a": pd.to_timedelta([1], unit="s")}), {}, "column 'a' has type Duration"),
        ("nowhere.csv", {}, "names no file"),
        (TABLE.select(["age"]), {"target": "age"}, "at least one feature"),
    ],
)
def test_what_makes_no_draft_is_refused(frame, options, said):
    with pytest.raises((SchemaError, InvalidParameter), match=said):
        lw.Schema.draft(frame, **options)


def test_a_column_that_is_ignored_may_have_any_type():
    frame = pd.DataFrame({"a": [1.0], "b": pd.to_timedelta([1], unit="s")})
    assert lw.Schema.draft(frame, ignore=["b"]) == lw.SchemaDraft(features=(lw.OpenNumeric("a"),))


def test_a_draft_is_filled_step_by_step():
    draft = DRAFT.filled({"age": (16, 90), "town": lw.Categorical("town", ("x",))})
    assert [column.name for column in draft.open] == ["income", "sex", "days"]
    assert draft.features[0] == FULL.features[0]
    assert draft.features[3] == lw.Categorical("town", ("x",))
    assert draft.filled({"town": FULL.features[3]}).filled({n: FILLING[n] for n in ("income", "sex", "days")}) == FULL
    assert DRAFT.filled(FILLING) == FULL
    assert DRAFT.without(["income", "sex", "town", "age"]).filled({"days": (0, 1)}).features == FULL.features[4:]
    assert pickle.loads(pickle.dumps(draft)) == draft


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"rings": (0, 1)}, r"no columns \['rings'\]"),
        ([("age", (0, 1))], "a mapping"),
        ({"age": (0,)}, "two values"),
        ({"age": (1, 0)}, "high of 'age'"),
        ({"age": None}, "a sequence"),
        ({"sex": "fm"}, "one text"),
        ({"sex": ()}, "categories"),
        ({"here": (False, True)}, "a whole declaration"),
        ({"age": lw.Numeric("days", 0, 1)}, "named 'age'"),
    ],
)
def test_what_a_column_cannot_have_is_refused(values, said):
    with pytest.raises((SchemaError, InvalidParameter), match=said):
        DRAFT.filled(values)


def test_a_bound_that_is_given_stays():
    draft = lw.SchemaDraft(features=(lw.OpenNumeric("age", low=0.0),))
    assert draft.filled({"age": (0, 9)}) == lw.Schema(features=(lw.Numeric("age", 0, 9, missing=True),))
    with pytest.raises(InvalidParameter, match="low of 'age'=1 must be 0.0, as the draft says"):
        draft.filled({"age": (1, 9)})


def use_in_fit(draft):
    SGBDTRegressor(schema=draft).fit(TABLE.to_pandas().drop(columns="days"), [1.0, 2.0])


def use_in_plan(draft):
    SGBDTRegressor().make_plan(draft)


def use_in_scaler(draft):
    SchemaScaler(schema=draft).transform(np.zeros((1, 2)))


def use_in_table(draft):
    ColumnTable.from_data(TABLE.to_pandas().drop(columns="days"), draft)


@pytest.mark.parametrize("use", [use_in_fit, use_in_plan, use_in_scaler, use_in_table])
def test_a_draft_is_refused_where_a_schema_is_needed(use):
    with pytest.raises(SchemaError) as refused:
        use(DRAFT)
    text = str(refused.value)
    assert "low and high of 'age'" in text
    assert "categories of 'sex'" in text
    assert "draft.filled({'age': (low, high), " in text
    assert "estimated" in text
    assert "'here'" not in text


def test_a_draft_says_what_is_open():
    assert str(DRAFT).splitlines() == [
        "draft of a schema: 6 columns, 5 with open fields",
        "  age     number      low and high open",
        "  income  number      low and high open",
        "  sex     category    categories open",
        "  town    category    categories open",
        "  here    category    False, True",
        "  days    number      low and high open  target",
        "fill it in: draft.filled({name: (low, high) or categories, ...})",
    ]


@pytest.mark.parametrize("schema", [
    FULL,
    lw.Schema.uniform(0, 1, weight_bound=2.0),
    lw.Schema(
        features=(
            lw.Numeric('a "quoted"\n\x7f\\ name', -1e300, 2.5e-7),
            lw.Categorical("ü", ("é\t", "", "True", "🙂")),
        ),
        target=lw.Categorical("y", (0, 1.5, 2), weights=(1.0, 2.5, 1.0)),
    ),
])  # fmt: skip
def test_a_schema_comes_back_from_its_toml(schema):
    assert lw.Schema.from_toml(schema.to_toml()) == schema


def test_a_draft_comes_back_from_its_toml_and_is_filled_in_there():
    assert lw.SchemaDraft.from_toml(DRAFT.to_toml()) == DRAFT
    given = lw.SchemaDraft(features=(lw.OpenNumeric("a", high=2.0), lw.OpenColumn("b")), weight_bound=4.0)
    assert lw.SchemaDraft.from_toml(given.to_toml()) == given
    # With the comments removed, as the head of the file says, all is filled in.
    text = DRAFT.to_toml().split("\n\n", 1)[1].replace("# ", "")
    assert isinstance(lw.Schema.from_toml(text), lw.Schema)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DRAFT.to_toml(), "low and high of 'age'; .*categories of 'sex'"),
        ("weight_bound = 1\nfeatures = !", "line 2"),
        ('[[features]]\nnumeric = "a"\nlow = "0"\nhigh = 1', r"column 1 of features \('a'\): low='0' must be a number"),
        ('[[features]]\nnumeric = "a"\nlow = 1\nhigh = 0', r"column 1 of features \('a'\): high of 'a'=0"),
        ('[[features]]\nnumeric = "a"\nlow = 1\nhihg = 2', r"fields \['hihg'\] are not known"),
        ('[[features]]\nnumeric = "a"\ncategorical = "a"', "not a feature"),
        ('[[feature]]\nnumeric = "a"', r"the schema: the fields \['feature'\] are not known"),
        ('[target]\ncategorical = "a"\ncategories = "b"', r"target \('a'\): categories='b' must be a list"),
        ('[target]\ncategorical = "a"\ncategories = ["b"]\nmissing = 1', "missing=1 must be true or false"),
        ('[every]\ncategorical = "a"\ncategories = ["b"]', "must be numeric"),
        ("target = 3", "target: 3 is not a column"),
        ("features = 3", "features=3"),
    ],
)
def test_a_file_that_is_no_schema_is_refused_by_line_or_field(text, said):
    with pytest.raises(SchemaError, match=said):
        lw.Schema.from_toml(text)
