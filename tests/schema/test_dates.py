"""Dates: a public range, one number for a moment whatever its type, and refusals by type alone."""

import datetime as dt
import decimal
import re
import warnings
from fractions import Fraction

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ledgerwood as lw
from ledgerwood.csv_files import read_csv
from ledgerwood.curator import ColumnMoments, ColumnTable, encode_features
from ledgerwood.curator.inputs.dates import days
from ledgerwood.curator.inputs.encoding import encode_columns
from ledgerwood.errors import InvalidParameter, SchemaError, SchemaTypeError
from ledgerwood.federation import federate
from ledgerwood.reading import booster_rows, export_text, partial_dependence, to_xgboost
from ledgerwood.schema import iso_days
from ledgerwood.trainers import PrivateBoostingRegressor, SGBDTRegressor

OPENED = lw.Date("opened", "2001-01-01", "2024-12-31", missing=True)
SEEN = lw.Date("seen", "2001-01-01T00:00Z", "2024-12-31T12:00:00+02:00")
TARGET = lw.Numeric("y", 0, 1)
LONG = pd.ArrowDtype(pa.date64())
MOMENTS = [
    "2001-01-01T00:00:00",
    "2010-03-28T01:59:59.123456",
    "1969-12-31T23:59:59.999999",
    "2500-01-01T00:00:00",
    None,
]


def exact(text):
    """Days since 1970-01-01, and the share of one to the nearest float."""
    moment = dt.datetime.fromisoformat(text)
    rest = moment - dt.datetime(1970, 1, 1, tzinfo=moment.tzinfo)
    return rest.days + float(Fraction(rest.seconds * 10**6 + rest.microseconds, 86_400 * 10**6))


def test_bounds_are_days_since_1970():
    assert (OPENED.low, OPENED.high) == (11323.0, 20089.0)  # the end of the last day
    assert (SEEN.low, SEEN.high) == (11323.0, 20088.0 + 10 / 24)
    assert lw.Date("d", dt.date(2001, 1, 1), "2001-01-01T06:00").high == 11323.25
    assert lw.Date("d", "2001-01-01", "2001-01-01").scale == lw.Numeric("d", 11323, 11324)
    assert (OPENED.zoned, SEEN.zoned) == (False, True)
    assert OPENED.spelled(11323.25) == "2001-01-01T06:00:00"
    assert (OPENED.spelled(0.0), SEEN.spelled(11324.0)) == ("2001-01-01", "2001-01-02T00:00:00Z")


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("2001-13-01", "2024-12-31"), ("2001-02-29", "2024-12-31"), ("20010101", "2024-12-31"), (2001, 2024),
        ("2001-01-02", "2001-01-01"), ("2001-01-01T00:00Z", "2024-12-31"), ("2001-01-01T00:00", "2001-01-01T00:00"),
        (True, "2024-12-31"), ("", "2024-12-31"), ("today", "2024-12-31"), (float("nan"), "2024-12-31"),
    ],
)  # fmt: skip
def test_bounds_that_are_none_are_refused(first, last):
    with pytest.raises(InvalidParameter, match="of 'd'"):
        lw.Date("d", first, last)


def test_a_schema_with_dates_comes_back_from_its_texts():
    schema = lw.Schema(features=(OPENED, SEEN), target=TARGET)
    assert lw.Schema.from_json(schema.to_json()) == lw.Schema.from_toml(schema.to_toml()) == schema
    bare = '[[features]]\ndate = "d"\nfirst = 2001-01-01\nlast = 2024-12-31T08:30:00'  # TOML's own dates
    assert lw.Schema.from_toml(bare).features == (lw.Date("d", "2001-01-01", "2024-12-31T08:30:00"),)
    with pytest.raises(SchemaError, match="is a Date"):
        lw.Schema(features=(OPENED,), target=lw.Date("d", "2001-01-01", "2024-12-31"))


def sources(zone=""):
    """The same moments in each type that holds them."""
    texts = [None if each is None else each + zone for each in MOMENTS]
    moments = [None if each is None else dt.datetime.fromisoformat(each) for each in texts]
    utc = "UTC" if zone else None
    plain = [None if each is None else each.replace(tzinfo=None) for each in moments]
    arrays = {
        "objects": np.array([*moments[:-1], pd.NaT], dtype=object),
        "timestamps": np.array([pd.Timestamp(each) for each in moments], dtype=object),
        "texts": pd.DataFrame({"d": pd.Series(texts, dtype="str")}),
        "text objects": np.array(texts, dtype=object),
        "numpy us": np.array(plain, dtype="datetime64[us]"),
        "numpy in steps": np.array(plain, dtype="datetime64[2us]").astype("datetime64[us]"),
        "arrow": pa.table({"d": pa.array(plain, pa.timestamp("us", utc))}),
        "polars": pl.DataFrame({"d": pl.Series(plain, dtype=pl.Datetime("us", utc))}),
        "pandas": pd.DataFrame({"d": pd.Series(plain, dtype="datetime64[us]").dt.tz_localize(utc)}),
        "pandas of arrow": pd.DataFrame(
            {"d": pd.Series(plain, dtype=pd.ArrowDtype(pa.timestamp("us", utc)))}
        ),
    }  # fmt: skip
    if zone:
        there = pd.Series(plain, dtype="datetime64[us]").dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
        arrays["in Tokyo"] = pd.DataFrame({"d": there})
    return arrays


@pytest.mark.parametrize("zone", ["", "Z"])
def test_a_moment_has_one_number_in_every_type(zone):
    feature = lw.Date("d", f"1900-01-01{zone and 'T00:00Z'}", f"2600-01-01{zone and 'T00:00Z'}", missing=True)
    schema = lw.Schema(features=(feature,))
    expected = [exact(each) for each in MOMENTS[:-1]]
    for name, X in sources(zone).items():
        X = X.reshape(-1, 1) if isinstance(X, np.ndarray) else X
        (found,) = encode_columns(X, schema)
        if name == "numpy in steps":  # which drop the last digit
            np.testing.assert_allclose(found[:-1], expected, rtol=0, atol=2e-11)
        else:
            assert found[:-1].tolist() == expected, name
        assert np.isnan(found[-1]), name


@pytest.mark.parametrize("unit", ["W", "D", "h", "m", "s", "ms", "us", "ns", "ps"])
def test_every_unit_of_numpy_gives_the_same_number(unit):
    column = np.array(["2001-01-04", "1969-12-25", "NaT"], dtype=f"datetime64[{'us' if unit == 'ps' else unit}]")
    if unit == "ps":  # of which the years around 1970 alone have room
        column = np.array(["1970-01-08", "1969-12-25", "NaT"], dtype="datetime64[ps]")
    found = days(column, OPENED)
    assert found[:2].tolist() == [7.0 if unit == "ps" else 11326.0, -7.0]
    assert np.isnan(found[2])
    if unit in ("h", "m", "s", "ms", "us", "ns"):
        noon = np.array(["2001-01-04T12"], dtype=f"datetime64[{unit}]")
        assert days(noon, OPENED).tolist() == [11326.5]


@pytest.mark.parametrize(
    "of", [lambda c: pa.table({"opened": c}), lambda c: pd.DataFrame({"opened": pd.Series(c, dtype=LONG)})]
)
def test_arrows_long_dates_are_those_of_its_short_ones(of, tmp_path):
    held = [dt.date(2001, 1, 1), None, dt.date(2010, 3, 28), dt.date(1969, 12, 31)]
    schema = lw.Schema(features=(OPENED,), target=TARGET)
    frame = of(pa.array(held, pa.date64()))
    short = pa.table({"opened": pa.array(held, pa.date32())})
    np.testing.assert_array_equal(encode_features(frame, schema, bins=8), encode_features(short, schema, bins=8))
    number = lw.Schema(features=(lw.Numeric("opened", 0, 1),), target=TARGET)
    with pytest.raises(SchemaTypeError, match="has type (Datetime|timestamp)"):
        encode_features(frame, number, bins=8)
    kinds = lw.Schema.draft(short, target=None)
    assert lw.Schema.draft(frame) == kinds
    table = pa.table({"opened": pa.array(held, pa.date64()), "y": [0.0, 1.0, 0.5, 0.0]})
    pq.write_table(table, tmp_path / "rows.parquet")
    model = SGBDTRegressor(schema=schema, n_estimators=2, random_state=0)
    files = SGBDTRegressor(schema=schema, n_estimators=2, random_state=0)
    y = np.array([0.0, 1.0, 0.5, 0.0])
    found = files.fit(tmp_path / "rows.parquet", "y").predict(frame)
    np.testing.assert_array_equal(found, model.fit(frame, y).predict(short))


def test_far_values_are_clamped_and_nothing_is_said():
    far = np.array([2**62, -(2**62), 2**63 - 1, -(2**63) + 1])
    schema = lw.Schema(features=(OPENED,))
    tables = [far.view(f"datetime64[{unit}]").reshape(-1, 1) for unit in ("M", "D", "s", "ns")]
    tables += [pa.table({"opened": pa.array(far).cast(pa.timestamp(unit))}) for unit in ("s", "ns")] + [
        pl.DataFrame({"opened": pl.Series(far).cast(pl.Datetime("us"))})
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X in tables:
            cells = encode_features(X, schema, bins=8)[0]
            assert cells[[0, 2]].tolist() == [7, 7]
            assert cells[[1, 3]].tolist() == [0, 0]


class Loud(dt.datetime):
    """A date with a word of its own."""

    @property
    def tzinfo(self):
        raise RuntimeError("a row was asked")


@pytest.mark.parametrize(
    "odd",
    [
        3, 3.5, True, "", "yesterday", "2001-02-30", "2001-01-01T25:00", "2001-01-01T00:00Z", "20010101", b"2001-01-01",
        dt.timedelta(3), dt.time(3), dt.datetime(2001, 1, 1, tzinfo=dt.UTC), Loud(2001, 1, 1), [1], None, float("nan"),
        decimal.Decimal(3), pd.NaT, np.datetime64("NaT"), "2001-W01-1", "９９９９-01-01",
    ],
)  # fmt: skip
def test_what_is_no_date_is_missing_in_its_own_row_alone(odd):
    column = np.empty(2, dtype=object)
    column[:] = [odd, "2001-01-02"]
    found = days(column, OPENED)
    assert np.isnan(found[0])
    assert found[1] == 11324.0


def test_texts_are_iso_and_no_others():
    assert iso_days("2001-01-01 06:00", zoned=False) == 11323.25
    assert iso_days("2001-01-01T06:00:00,5", zoned=False) == 11323.25 + 0.5 / 86400
    assert iso_days("2001-01-01T06:00:00.123456999", zoned=False) == iso_days("2001-01-01T06:00:00.123456", zoned=False)
    assert iso_days("2001-01-01T06:00+02", zoned=True) == iso_days("2001-01-01T04:00:00Z", zoned=True)
    assert iso_days("0001-01-01T00:00+10:00", zoned=True) is None  # before the calendar begins


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"opened": [1.5]}), "a number does not say its unit"),
        (pd.DataFrame({"opened": [True]}), "has type Boolean"),
        (pd.DataFrame({"opened": pd.to_timedelta([1], unit="s")}), "has type Duration"),
        (
            pd.DataFrame({"opened": pd.to_datetime(["2001-01-01T00:00Z"])}),
            "with a time zone, and is declared otherwise",
        ),
        (np.zeros((1, 1)), "array of type float64"),
        (np.zeros((1, 1), dtype="timedelta64[s]"), "array of type timedelta64"),
    ],
)
def test_other_types_are_refused_by_type_with_rows_and_without(frame, words):
    for X in (frame, frame[:0]):
        with pytest.raises(SchemaTypeError, match=words):
            encode_features(X, lw.Schema(features=(OPENED,)), bins=8)
    if isinstance(frame, pd.DataFrame) and "zone" in words:
        with pytest.raises(SchemaTypeError, match="has type Date without a time zone"):
            encode_features(pa.table({"seen": [dt.date(2001, 1, 1)]}), lw.Schema(features=(SEEN,)), bins=8)
    with pytest.raises(SchemaTypeError, match="has type Datetime, and is declared to hold numbers|neither numbers nor"):
        encode_features(
            pd.DataFrame({"a": pd.to_datetime(["2001-01-01"])}), lw.Schema(features=(lw.Numeric("a", 0, 1),)), bins=8
        )


def test_cells_are_even_steps_and_a_missing_date_has_its_own():
    feature = lw.Date("d", "2001-01-01", "2001-01-08", missing=True)  # eight days
    texts = [["2001-01-01"], ["2001-01-02"], ["2001-01-08T23:59:59"], ["2001-01-09"], ["1999-01-01"], [None]]
    assert encode_features(texts, lw.Schema(features=(feature,)), bins=8)[0].tolist() == [0, 1, 7, 7, 0, 8]


def test_the_owner_sees_dates_outside():
    frame = pd.DataFrame({"opened": ["2001-01-01", "2024-12-31T23:00", "2025-01-01", "no", None]})
    report = lw.Schema(features=(OPENED,)).check(frame)
    (column,) = report.columns
    assert (column.outside, column.wrong_type, column.missing) == (1, 1, 1)
    assert (column.lowest, column.highest, column.bounds) == ("2001-01-01", "2025-01-01", ("2001-01-01", "2024-12-31"))
    assert "found '2001-01-01' to '2025-01-01'" in str(report)
    assert report.to_record()["columns"][0]["highest"] == "2025-01-01"


def rows(n=600):
    random = np.random.default_rng(3)
    opened = np.datetime64("2001-01-01") + random.integers(0, 9000, n)
    frame = pd.DataFrame({"size": random.uniform(0, 1, n), "opened": opened.astype("datetime64[ms]")})
    frame.loc[random.random(n) < 0.1, "opened"] = None
    y = np.where(frame["opened"] < pd.Timestamp("2012-01-01"), 0.2, 0.8)
    return frame, y


SCHEMA = lw.Schema(features=(lw.Numeric("size", 0, 1), OPENED), target=TARGET)
SMALL = {"epsilon": 2.0, "delta": 1e-6, "schema": SCHEMA, "n_estimators": 8, "max_depth": 2, "random_state": 5}


@pytest.mark.filterwarnings("ignore::ledgerwood.errors.PrivacyWarning")
def test_memory_files_cluster_and_federation_learn_the_same_model(tmp_path):
    frame, y = rows()
    model = SGBDTRegressor(**SMALL).fit(frame, y)
    assert np.corrcoef(model.predict(frame), y)[0, 1] > 0.5
    whole = frame.assign(y=y)
    whole.to_csv(tmp_path / "rows.csv", index=False)
    pq.write_table(pa.Table.from_pandas(whole), tmp_path / "rows.parquet")
    texts = whole.assign(opened=whole["opened"].astype("str").where(whole["opened"].notna()))
    pq.write_table(pa.Table.from_pandas(texts), tmp_path / "texts.parquet")
    others = [SGBDTRegressor(**SMALL).fit(str(tmp_path / f"{name}"), "y")
              for name in ("rows.csv", "rows.parquet", "texts.parquet")]  # fmt: skip
    others.append(SGBDTRegressor(**SMALL).fit(pl.from_pandas(frame), y))
    parts = [(frame[:200], y[:200]), (frame[200:], y[200:])]
    others.append(federate(SGBDTRegressor(**SMALL), parts, engine="process"))
    for other in others:
        assert np.array_equal(other.predict(frame), model.predict(frame))
    assert np.array_equal(model.predict(str(tmp_path / "rows.csv")), model.predict(frame))
    model.save(tmp_path / "model")
    again = SGBDTRegressor.load(tmp_path / "model")
    assert again.schema_ == SCHEMA
    assert np.array_equal(again.predict(frame), model.predict(frame))


def test_of_rows_for_prediction_a_line_without_a_date_is_refused(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("size,opened\n0.5,2001-01-01\n0.5,01.02.2003\n")
    with pytest.raises(SchemaError, match="'01.02.2003' is no date in ISO form, without a time zone"):
        read_csv(path, SCHEMA, with_target=False)


@pytest.mark.slow  # a cluster
@pytest.mark.filterwarnings("ignore::ledgerwood.errors.PrivacyWarning")
def test_a_cluster_learns_the_same_model():
    from distributed import Client, LocalCluster

    frame, y = rows()
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        X = dd.from_pandas(frame, npartitions=2, sort=False)
        labels = dd.from_pandas(pd.Series(y), npartitions=2, sort=False)
        there = SGBDTRegressor(**SMALL).fit(X, labels, client=client)
    assert np.array_equal(there.predict(frame), SGBDTRegressor(**SMALL).fit(frame, y).predict(frame))


@pytest.mark.filterwarnings("ignore::ledgerwood.errors.PrivacyWarning")
def test_the_recommended_trees_find_their_candidates_among_dates():
    frame, y = rows(2000)
    model = PrivateBoostingRegressor(epsilon=4.0, delta=1e-6, schema=SCHEMA, random_state=1).fit(frame, y)
    assert np.corrcoef(model.predict(frame), y)[0, 1] > 0.6


@pytest.mark.filterwarnings("ignore::ledgerwood.errors.PrivacyWarning")
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_ranges_of_dates_are_estimated(zone):
    frame, y = rows(4000)
    frame["opened"] = frame["opened"].dt.tz_localize(zone)
    model = SGBDTRegressor(epsilon=4.0, delta=1e-6, n_estimators=2, random_state=2, expected_rows=4000).fit(frame, y)
    found = model.schema_.features[1]
    assert isinstance(found, lw.Date)
    assert found.zoned == (zone is not None)
    begin = 11323.0
    assert begin - 366 <= found.low <= begin
    assert begin + 9000 - 366 <= found.high <= begin + 9000 + 366
    # Without a declared schema it is the same model as with the released one.
    assert model.plan_.purchase.columns.features[1].kind == ("dates" if zone is None else "instants")


def test_columns_of_dates_are_asked_as_days():
    frame, _ = rows()
    table, query = ColumnTable.from_data(frame, SCHEMA), ColumnMoments(column=OPENED)
    count, total = table.statistic(query, np.empty(0, dtype=bool)).tolist()
    known = frame["opened"].dropna()
    assert count == len(known)
    middle = (OPENED.low + OPENED.high) / 2
    distances = (known - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1) - middle
    assert total * 2.0 ** query.grid.exponents[1] == pytest.approx(
        distances.clip(upper=OPENED.high - middle).sum(), abs=4
    )


@pytest.mark.filterwarnings("ignore::ledgerwood.errors.PrivacyWarning")
def test_a_model_of_dates_is_read_and_exported():
    frame, y = rows()
    model = SGBDTRegressor(**SMALL).fit(frame, y)
    assert re.search(r"opened (<|>=) 20\d\d-\d\d-\d\d", export_text(model))
    axis = partial_dependence(model, "opened").axes[0]
    assert (axis.labels[0].startswith("[2001-01-01, "), axis.labels[-1]) == (True, "missing")
    assert axis.edges[0] == OPENED.low
    # Within float32, which holds a day to some minutes, exported trees send every row as the model does.
    booster = to_xgboost(model)
    np.testing.assert_allclose(
        np.clip(booster.predict(booster_rows(model, frame)), 0, 1), model.predict(frame), rtol=0, atol=1e-5
    )
