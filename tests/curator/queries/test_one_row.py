"""One row, whatever is in it, changes the reading of no other row: neither X nor y, neither weights nor keys."""

import datetime as dt
import enum
import math
import warnings
from decimal import Decimal
from fractions import Fraction

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.curator.inputs.encoding import encode_keys, encode_rows
from ledgerwood.curator.inputs.reading import one_column
from ledgerwood.curator.inputs.typed_columns import TypedColumns
from ledgerwood.curator.inputs.values import Keys, numbers, read_keys
from ledgerwood.curator.streams import StreamRows
from ledgerwood.curator.tables.columns import ColumnTable
from ledgerwood.curator.tables.trees import Table, UndeclaredTable
from ledgerwood.curator.tables.vault import RowVault
from ledgerwood.errors import SchemaError, SchemaTypeError

FEATURES = (lw.Numeric("size", 0, 10), lw.Numeric("age", 0, 9, missing=True), lw.Categorical("kind", ("a", 1, 2)))
NUMBER, CLASSES = lw.Numeric("y", 0, 10), lw.Categorical("y", ("no", "yes"))
BOTH = [(NUMBER, "squared"), (CLASSES, "logistic")]


class Lying(float):
    """A float that says something else of itself each time."""

    def __float__(self):
        raise RuntimeError("read")

    def __eq__(self, other):
        raise RuntimeError("compared")

    def __lt__(self, other):
        raise RuntimeError("compared")

    __hash__ = None


class Rude:
    """An object that raises whatever it is asked."""

    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __repr__(self):
        raise RuntimeError("repr")

    def __bool__(self):
        raise RuntimeError("bool")

    def __eq__(self, other):
        raise RuntimeError("eq")

    __hash__ = None


class Half:
    def __float__(self):
        return 0.5


class Word(str, enum.Enum):  # noqa: UP042 - str() of it is "Word.A"
    A = "a"


ODD = [
    [10.0], [10.0, 10.0], [], [[1.0], [2.0, 3.0]], (1.0, 2.0), {"a": 1}, {1.0}, None, math.nan, math.inf,
    -math.inf, 1e308,
    "5", "a", "", "a\0", "\ud800", b"a", Decimal(3), Decimal("sNaN"), Decimal("1e999"), Fraction(1, 2), pd.NA, pd.NaT,
    np.array(5.0), np.array([5.0]), np.zeros((2, 3)), np.ma.masked, np.ma.masked_array([1.0, 2.0], [True, False]),
    10**400, -(10**400), 2**53, 2**64, 1 + 2j, np.complex128(1j), True, np.True_, dt.date(2020, 1, 1),
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
    np.datetime64("2020-01-01"), np.float32(0.1), np.longdouble("1e4000"), np.int8(3),
    Lying(5.0), Half(), Rude(), Word.A, object(), ..., lambda: None, range(3), pd.Series([1.0, 2.0]), pl.Series([1]),
]  # fmt: skip
ODD_IDS = range(len(ODD))


def objects(values):
    return np.fromiter(values, dtype=object, count=len(values))


def table(n):
    generator = np.random.default_rng(n)
    rows = [[float(generator.uniform(0, 10)), float(generator.integers(0, 9)), "ab"[i % 2]] for i in range(n)]
    return rows, [float(i % 11) for i in range(n)], ["yes" if i % 2 else "no" for i in range(n)]


def as_list(rows):
    return [list(row) for row in rows]


def as_tuples(rows):
    return tuple(tuple(row) for row in rows)


def as_array(rows):
    array = np.empty((len(rows), 3), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            array[i : i + 1, j] = np.fromiter([cell], object, 1)
    return array


def as_pandas(rows):
    columns = zip(*rows, strict=True)
    return pd.DataFrame(
        {f.name: pd.Series(objects(list(c)), dtype=object) for f, c in zip(FEATURES, columns, strict=True)}
    )


def as_polars(rows):
    columns = zip(*rows, strict=True)
    return pl.DataFrame([pl.Series(f.name, list(c), dtype=pl.Object) for f, c in zip(FEATURES, columns, strict=True)])


TABLES = [as_list, as_tuples, as_array, as_pandas, as_polars]
LABELS = [list, tuple, objects, lambda y: pd.Series(objects(y), dtype=object), lambda y: pl.Series(y, dtype=pl.Object)]


def state(table):
    """All that a table keeps of its rows, row by row."""
    rows = table._parts[0].rows
    kept = [rows.cells, rows.targets, rows.classes, rows.weights]
    return [np.atleast_2d(each).T for each in kept if each is not None and len(each)]


def same(first, second, *, without):
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.delete(one, without, axis=0), other)


@pytest.mark.slow_after(1)  # each odd value at each place
@pytest.mark.parametrize(("target", "loss"), BOTH)
@pytest.mark.parametrize(("form", "label_of"), list(zip(TABLES, LABELS, strict=True)))
def test_an_odd_row_under_a_declared_schema(form, label_of, target, loss):
    schema = lw.Schema(features=FEATURES, target=target, weight_bound=2.0)
    rows, numbers, names = table(7)
    labels = numbers if target is NUMBER else names

    def read(rows, labels, weights):
        return Table.from_data(form(rows), label_of(labels), schema, loss=loss, bins=8, sample_weight=weights)

    plain = read(rows, labels, [1.0] * 7)
    assert plain._parts[0].present.size == 0
    for place, odd in enumerate(ODD):
        at = place % 8
        for cells in ([odd, odd, odd], [1.0, odd, "a"], [odd, 1.0, "b"]):
            found = read(
                [*rows[:at], cells, *rows[at:]],
                [*labels[:at], odd, *labels[at:]],
                label_of([*[1.0] * at, odd, *[1.0] * (7 - at)]),
            )
            same(state(found), state(plain), without=at)
            assert found._parts[0].present.size in (0, 8)
            assert not found._parts[0].present.size or np.delete(found._parts[0].present, at).all()


RAGGED = [[], [1.0], [1.0, 2.0, "a", 4.0], 3.0, None, "abc", {"a": 1}, Rude(), np.zeros((3, 3))]


@pytest.mark.parametrize("ragged", range(len(RAGGED)))
@pytest.mark.parametrize("form", [list, tuple])
def test_a_row_of_another_length_is_left_out_alone(form, ragged):
    schema = lw.Schema(features=FEATURES, target=NUMBER)
    rows, _, _ = table(5)
    plain, _ = encode_rows(form(rows), schema, bins=8)
    for at in (0, 3, 5):
        cells, left_out = encode_rows(form([*rows[:at], RAGGED[ragged], *rows[at:]]), schema, bins=8)
        np.testing.assert_array_equal(np.delete(cells, at, axis=1), plain)
        assert np.flatnonzero(left_out).tolist() == [at]


def test_what_is_left_out_contributes_0_to_every_question():
    from ledgerwood.curator import LabelMoments, LeafCounts
    from ledgerwood.ensemble import TreeStructure

    schema = lw.Schema(features=FEATURES, target=NUMBER)
    rows, labels, _ = table(6)
    everyone, root = np.empty(0, dtype=bool), TreeStructure.root()
    plain = Table.from_data(rows, labels, schema, loss="squared", bins=8)
    more = Table.from_data([*rows, [[1.0], 2.0, "a"], rows[0]], [*labels, 9.0, [9.0]], schema, loss="squared", bins=8)
    for sampled in (everyone, np.arange(8) > 2):
        short = sampled[:6]
        counted = more.statistic(LeafCounts().of(root), sampled)
        # The last row has no label, and is counted where labels are not asked for.
        assert counted - plain.statistic(LeafCounts().of(root), short) == 1
        np.testing.assert_array_equal(more.statistic(LabelMoments(), sampled), plain.statistic(LabelMoments(), short))


def named(column):
    if not isinstance(column, Keys):
        return column
    return [column.keys[code] if code >= 0 else code for code in column.codes.tolist()]


@pytest.mark.slow_after(1)  # many tables and their neighbours in exact integers
@pytest.mark.parametrize("label_of", LABELS[:4])
@pytest.mark.parametrize("numeric", [True, False])
def test_an_odd_row_without_a_schema(label_of, numeric):
    """The first one of the issue: one row `[10.0, 10.0]` among labels made every label of them NaN."""
    words = pd.Series(objects(["a", "b"] * 4), dtype=object)
    labels = [float(i) for i in range(8)] if numeric else ["yes", "no"] * 4

    def read(words, labels):
        X, y = pd.DataFrame({"w": words}), label_of(labels)
        columns = TypedColumns.of(X, y, numeric_target=numeric)
        rows = UndeclaredTable.from_data(X, y, columns)
        return columns, [named(rows._columns[0]), named(rows._target)]

    columns, plain = read(words, labels)
    for odd in ODD:
        more = pd.Series(objects([*words, odd]), dtype=object)
        found, values = read(more, [*labels, odd])
        assert found == columns
        for one, other in zip(values, plain, strict=True):
            np.testing.assert_array_equal(np.array(one[:-1], dtype=object), np.array(other, dtype=object))


def test_nested_labels_are_rows_without_a_label_each():
    X = np.zeros((3, 1))
    columns = TypedColumns.of(X, [[10.0], [10.0], [10.0]], numeric_target=True)
    for labels in ([[10.0], [10.0], 7.0], [[10.0], [10.0, 10.0], 7.0], [(), {}, 7.0]):
        rows = UndeclaredTable.from_data(X, labels, columns)
        np.testing.assert_array_equal(rows._target, [math.nan, math.nan, 7.0])


@pytest.mark.parametrize("make", [list, tuple, objects, lambda k: pd.Series(objects(k), dtype=object)])
@pytest.mark.parametrize("names", [[7, 8, 9], ["seven", "8", "nine"]])
def test_an_odd_key_takes_no_part_alone(make, names):
    tokens = read_keys(make(names), 3).tokens
    for odd in ODD:
        keys = read_keys(make([*names, odd]), 4)
        assert keys.tokens[:3] == tokens
        assert keys.rows[:3].tolist() == [0, 1, 2]
        assert keys.n_rows == 4
        codes, _ = encode_keys(make([*map(str, names), odd]), "names")
        assert codes[:3].tolist() == [0, 1, 2]


def test_a_second_row_of_a_unit_and_one_of_none_contribute_nothing_to_a_stream():
    from ledgerwood.curator import LabelMoments

    schema = lw.Schema(features=FEATURES, target=NUMBER)
    rows, labels, _ = table(4)
    everyone = np.empty(0, dtype=bool)
    one = StreamRows.from_data(rows[:2], labels[:2], ["u", 1], schema, loss="squared", bins=8, vault=RowVault())
    for keys in (["u", 1, "u", None], ["u", 1, "1", ""], ["u", "1", 1, 2.5]):
        more = StreamRows.from_data(rows, labels, keys, schema, loss="squared", bins=8, vault=RowVault())
        for stream in (one, more):
            assert stream.keys.rows.tolist() == [0, 1]
        np.testing.assert_array_equal(
            more.table.statistic(LabelMoments(), everyone), one.table.statistic(LabelMoments(), everyone)
        )


def test_an_odd_row_of_a_table_of_columns():
    schema = lw.Schema(features=FEATURES, target=NUMBER)
    rows, labels, _ = table(5)
    plain = ColumnTable.from_data(rows, schema, y=labels, keys={"k": ["p", "q", "p", "r", "q"]})
    for odd in ODD:
        found = ColumnTable.from_data([*rows, [odd] * 3], schema, y=[*labels, odd], keys={"k": [*"pqprq", odd]})
        for name, column in plain._columns.items():
            assert found._columns[name].dtype == column.dtype
            np.testing.assert_array_equal(found._columns[name][:-1], column)
        np.testing.assert_array_equal(found._keys["k"][0][:-1], plain._keys["k"][0])


ANY = st.one_of(
    # hypothesis and polars look at values themselves, which the rude one does not bear; the cases above have it
    st.sampled_from([i for i in ODD_IDS if type(ODD[i]) is not Rude]).map(lambda i: ODD[i]),
    st.floats(),
    st.integers(),
    st.text(max_size=3),
    st.lists(st.floats(), max_size=3),
)


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=60)
@given(st.lists(st.tuples(ANY, ANY, ANY, ANY), min_size=1, max_size=5), st.data())
def test_each_row_of_any_table_is_read_as_if_it_were_alone(rows, data):
    target, loss = data.draw(st.sampled_from(BOTH))
    form = data.draw(st.sampled_from(TABLES))
    schema = lw.Schema(features=FEATURES, target=target)

    def read(rows):
        labels = [row[3] for row in rows]
        return state(Table.from_data(form([row[:3] for row in rows]), labels, schema, loss=loss, bins=8))

    together, alone = read(rows), [read([row]) for row in rows]
    for place, columns in enumerate(together):
        np.testing.assert_array_equal(columns, np.concatenate([each[place] for each in alone]))


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros(3), "Expected 2D array, got 1D"),
        (np.zeros((3, 3, 1)), "Expected 2D array, got 3D"),
        (np.zeros((3, 0)), r"0 feature\(s\)"),
        (np.zeros((3, 2)), "X has 2 columns, but the schema declares 3"),
        (np.zeros((3, 3), dtype=complex), "Complex data not supported"),
        (np.zeros((3, 3), dtype="datetime64[s]"), "type datetime64.*declared to hold numbers"),
        (np.array([["1", "2", "a"]] * 3), "type <U1.*declared to hold numbers"),
        ("abc", "got a str instead"),
        ({"size": [1.0]}, "got a dict instead"),
        (iter([[1.0, 2.0, "a"]]), "instead"),
        (pl.DataFrame({"size": [[1.0]], "age": [1.0], "kind": ["a"]}), "type List"),
    ],
)
def test_types_and_shapes_are_refused_whatever_they_hold(X, words):
    schema = lw.Schema(features=FEATURES, target=NUMBER)
    with pytest.raises(SchemaError, match=words):
        Table.from_data(X, [1.0] * 3, schema, loss="squared", bins=8)


def test_lengths_are_refused_without_a_number_of_rows():
    schema = lw.Schema(features=FEATURES, target=NUMBER, weight_bound=1.0)
    rows, labels, _ = table(4)
    for y, weights in ((labels[:3], None), (labels, [1.0] * 3)):
        with pytest.raises(SchemaError, match="inconsistent numbers of samples") as refusal:
            Table.from_data(rows, y, schema, loss="squared", bins=8, sample_weight=weights)
        assert not any(character.isdigit() for character in str(refusal.value))


def test_a_list_of_rows_has_no_width_of_its_own():
    schema = lw.Schema.uniform(0, 1, target=NUMBER)
    with pytest.raises(SchemaError, match=r"n_features=\.\.\."):
        Table.from_data([[0.5], [0.5]], [1.0, 2.0], schema, loss="squared", bins=8)
    known = lw.Schema.uniform(0, 1, n_features=1, target=NUMBER)
    assert Table.from_data([[0.5], [0.5]], [1.0, 2.0], known, loss="squared", bins=8).n_rows == 2
    assert Table.from_data([], [], known, loss="squared", bins=8).n_rows == 0


@pytest.mark.parametrize("value", ["1e4000", "nan", "-1e4000"])
def test_a_masked_number_beyond_float64_is_read_in_silence(value):
    wide = np.array(["1", value, "2"], dtype=np.longdouble)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = numbers(one_column(np.ma.masked_array(wide, [False, False, True]), "y"), "y")
    assert read[0] == 1.0
    assert not np.isfinite(read[1])
    assert np.isnan(read[2])


@pytest.mark.parametrize("dtype", ["Int64", "UInt64"])
def test_a_gap_among_whole_numbers_changes_no_other_one(dtype):
    """Whatever a data frame makes of gaps: a whole number beyond 2**53 is the nearest float, as it is without them."""
    column = pd.Series([2**53 + 1, 2**62 + 1, 3, 4], dtype=dtype)
    gaps = column.copy()
    gaps[2] = pd.NA
    whole, read = (numbers(one_column(each, "y", numeric=True), "y") for each in (column, gaps))
    assert np.isnan(read[2])
    assert read[[0, 1, 3]].tolist() == whole[[0, 1, 3]].tolist() == [2.0**53, 2.0**62, 4.0]


def test_whole_numbers_with_a_gap_are_never_cast(monkeypatch):
    """The cast of Arrow columns refuses a number that no float is equal to, in a text that shows it."""

    def refusing(column, _dtype):
        raise ValueError(f"Integer value {column.max()} not in range")

    monkeypatch.setattr(nw.Series, "cast", refusing)
    for column in (pd.Series([2**53 + 1, None], dtype="Int64"), pl.Series([2**53 + 1, None])):
        assert numbers(one_column(column, "y", numeric=True), "y")[0] == 2.0**53


@pytest.mark.parametrize(
    "column",
    [
        pd.cut(pd.Series([0.1, 0.5, 0.9]), 2),
        pd.Series(pd.arrays.IntervalArray.from_breaks(range(4))),
        pd.Series(pd.period_range("2020", periods=3, freq="D")),
        pd.Series([1j, 2j, 3j]),
        pd.Series(pd.date_range("2020", periods=3)).astype("category"),
    ],
    ids=["cut", "intervals", "periods", "complex", "dates as categories"],
)
def test_types_of_which_no_row_could_be_read_are_refused(column):
    """Not left out row by row, without a word."""
    for feature in (lw.Numeric("a", 0, 1), lw.Categorical("a", ("u", "v"))):
        schema = lw.Schema(features=(feature,), target=NUMBER)
        with pytest.raises(SchemaTypeError, match="column 'a' has type .*neither numbers nor categories"):
            Table.from_data(pd.DataFrame({"a": column}), [1.0] * 3, schema, loss="squared", bins=8)


@pytest.mark.parametrize("frame", [np.asarray, pd.Series, pl.Series])
def test_categories_of_another_type_than_the_column_are_refused(frame):
    """Every row would be of no category, and the model would say nothing."""
    texts, whole = lw.Categorical("x0", ("0", "1")), lw.Categorical("x0", (0, 1))

    def read(values, feature):
        column = frame(values)
        X = column[:, np.newaxis] if isinstance(column, np.ndarray) else {"x0": column}
        X = pd.DataFrame(X) if frame is pd.Series else pl.DataFrame(X) if frame is pl.Series else X
        Table.from_data(X, [1.0] * 3, lw.Schema(features=(feature,), target=NUMBER), loss="squared", bins=8)

    for values, feature in (([0, 1, 1], texts), ([True, False, True], texts), (["0", "1", "1"], whole)):
        with pytest.raises(SchemaTypeError, match="column 'x0' is of type .*Convert the column or the categories"):
            read(values, feature)
    mixed = lw.Categorical("x0", ("0", 1))
    for values, feature in (([0, 1, 1], whole), ([True, False, True], whole), (["0", "1", "1"], texts)):
        read(values, feature)
        read(values, mixed)
