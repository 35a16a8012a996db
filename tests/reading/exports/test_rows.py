"""Encoded rows: thresholds part the float32 numbers as the model's cells do, at them and one step beside them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import SchemaError
from ledgerwood.reading import TreeModel, encoded_rows
from ledgerwood.reading.exports.rows import bins_of, feature_names, least_floats

LARGEST = np.finfo(np.float32).max
RANGES = [
    (0.0, 1.0), (0.1, 0.7), (-1.0, 1.0), (17, 90), (-1e-3, 2e5), (1e9, 1e9 + 3), (0.0, 1e-40), (-1e38, 1e39),
    (5e-324, 1e-300 + 5e-324), (-1e300, 1e300),
]  # fmt: skip


def beside(values):
    """The numbers, and those one step below and above."""
    values = np.asarray(values, dtype=np.float32)
    up, down = np.float32(np.inf), np.float32(-np.inf)
    with np.errstate(over="ignore"):  # at the largest
        return np.concatenate([np.nextafter(values, down), values, np.nextafter(values, up)])


def assert_parted(feature, bins):
    least = least_floats(feature, bins)
    assert (np.diff(least[np.isfinite(least)]) >= 0).all()
    numbers = beside([*least[np.isfinite(least)], 0.0, LARGEST, -LARGEST])
    numbers = numbers[np.isfinite(numbers)]
    cells = bins_of(numbers, feature, bins)
    for place, threshold in enumerate(least):
        np.testing.assert_array_equal(numbers < threshold, cells < place + 1)


@pytest.mark.parametrize("bins", [2, 3, 16, 100])
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_thresholds_part_float32_numbers_as_cells_do(low, high, bins):
    assert_parted(lw.Numeric("x", low, high), bins)


@settings(max_examples=25)
@given(
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.floats(1e-6, 1e6, allow_subnormal=False),
    st.integers(2, 40),
)
def test_thresholds_of_any_range(low, width, bins):
    assert_parted(lw.Numeric("x", low, low + width), bins)


def model_of(*features, bins=16):
    schema = lw.Schema(features=features, target=lw.Numeric("y", 0, 1))
    return TreeModel(ensemble=Ensemble(initial_score=0.0), schema=schema, max_bins=bins)


def test_every_float64_number_keeps_its_bin():
    feature = lw.Numeric("x", 0.1, 0.7, missing=True)
    model = model_of(feature)
    borders = 0.1 + np.arange(17) * (0.7 - 0.1) / 16
    values = np.concatenate([np.nextafter(borders, -9), borders, np.nextafter(borders, 9), [-5.0, 9e99, np.nan]])
    found = encoded_rows(model, values[:, np.newaxis])
    assert found.dtype == np.float32
    assert np.isnan(found[-1, 0])
    np.testing.assert_array_equal(bins_of(found[:, 0], feature, 16), bins_of(values, feature, 16))


def test_categories_become_their_places():
    model = model_of(lw.Categorical("a", ("x", "y")), lw.Categorical("b", (3, 1, 2), missing=True))
    found = encoded_rows(model, pd.DataFrame({"b": [1, 7, None, 3], "a": ["y", "?", None, "x"]}))
    np.testing.assert_array_equal(found, [[1, 1], [2, 3], [np.nan, np.nan], [0, 0]])


def test_infinities_are_clamped_and_a_list_of_rows_is_a_table():
    model = model_of(lw.Numeric("x", 0.0, 1.0), lw.Categorical("a", ("x", "y")))
    assert encoded_rows(model, [[np.inf, "x"], [-np.inf, "y"]]).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_an_estimator_takes_what_it_predicts(fitted, rows):
    model = fitted("SGBDTRegressor", "number")
    found = encoded_rows(model, rows[rows.columns[::-1]])  # found by name
    np.testing.assert_array_equal(found, encoded_rows(model, rows))
    np.testing.assert_array_equal(found[:, 2], np.clip(rows["weight"], -1, 1))
    with pytest.raises(SchemaError, match="colour"):
        encoded_rows(model, rows.drop(columns="colour"))


def test_names_are_such_as_xgboost_takes():
    assert feature_names(model_of(lw.Numeric("a[0]<1", 0, 1), lw.Numeric("b", 0, 1))) == ["a_0__1", "b"]
    assert feature_names(model_of(lw.Numeric("a[", 0, 1), lw.Numeric("a<", 0, 1))) == ["a__0", "a__1"]
