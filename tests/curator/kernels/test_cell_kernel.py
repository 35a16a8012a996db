"""Cells of plain numbers, by the loop: those of the plain reference, whatever the type, the order and the place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.curator.inputs.encoding import encode_features, encode_rows, numeric_cells
from ledgerwood.threads import threads

TARGET = Numeric("y", 0.0, 1.0)
TYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")
EXTREMES = (0.0, -0.0, 1.0, 0.1, 0.5, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 2.0**63, -(2.0**63), 255.0)


def schema_of(missing, low=0.0, high=1.0):
    return Schema(
        features=tuple(Numeric(f"x{place}", low, high, missing=each) for place, each in enumerate(missing)),
        target=TARGET,
    )


def plainly(columns, schema, bins):
    """(cells, rows that are left out), a column at a time."""
    values = [np.asarray(column).astype(np.float64) for column in columns]
    cells = [numeric_cells(each, feature, bins) for each, feature in zip(values, schema.features, strict=True)]
    left_out = np.zeros(len(values[0]), dtype=bool)
    for each, feature in zip(values, schema.features, strict=True):
        left_out |= np.isnan(each) & (not feature.missing)
    return np.stack(cells), left_out


def checked(X, schema, bins):
    cells, left_out = encode_rows(X, schema, bins=bins)
    wanted, out = plainly([X[:, place] for place in range(X.shape[1])], schema, bins)
    np.testing.assert_array_equal(cells, wanted)
    np.testing.assert_array_equal(left_out, out)


@pytest.mark.slow  # compiles the loop for each type of number and order of memory
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(TYPES),
    st.integers(0, 7),
    st.lists(st.booleans(), min_size=1, max_size=4),
    st.sampled_from(((0.0, 1.0), (-3.0, 1e-3), (-1e300, 1e300), (0.1, 0.1 + 1e-12), (-128.0, 255.0))),
    st.sampled_from((2, 3, 32, 255, 256, 1000)),
    st.sampled_from(("C", "F", "reversed", "every other", "read only")),
    st.data(),
)
def test_cells_are_those_of_the_plain_reference(kind, n, missing, limits, bins, order, data):
    dtype = np.dtype(kind)
    values = st.sampled_from(EXTREMES) | st.floats(*limits)
    drawn = data.draw(st.lists(values, min_size=n * len(missing), max_size=n * len(missing)))
    with np.errstate(all="ignore"):
        whole = np.array(drawn, dtype=np.float64).astype(dtype).reshape(n, len(missing))
    match order:
        case "C" | "F":
            X = np.array(whole, order=order)
        case "reversed":
            X = np.array(whole)[::-1, ::-1]
        case "every other":
            X = np.repeat(np.repeat(whole, 2, axis=0), 3, axis=1)[::2, 1::3]
        case _:
            X = np.array(whole)
            X.setflags(write=False)
    checked(X, schema_of(missing, *limits), bins)


def test_many_rows_are_shared_among_threads(monkeypatch):
    monkeypatch.setattr("ledgerwood.routing.THREADED_ROWS", 0)
    generator = np.random.default_rng(0)
    X = generator.random((40_001, 3)).astype(np.float32)
    X[generator.random(X.shape) < 0.1] = np.nan
    with threads(3):
        checked(X, schema_of((True, False, False)), 32)


def test_other_types_and_categories_beside_numbers():
    generator = np.random.default_rng(1)
    codes = generator.integers(0, 4, 50)
    schema = Schema(
        features=(Numeric("a", 0.0, 9.0), Categorical("b", (0, 1, 2)), Numeric("c", 0.0, 9.0, missing=True)),
        target=TARGET,
    )
    numbers = np.column_stack([generator.uniform(0, 9, 50), codes, generator.uniform(0, 9, 50)])
    numbers[3, 2] = np.nan
    wanted = plainly([numbers[:, 0], numbers[:, 2]], schema_of((False, True), 0.0, 9.0), 7)
    for X in (numbers, numbers.astype(object), numbers.astype(np.longdouble), numbers.astype(">f8")):
        cells, left_out = encode_rows(X, schema, bins=7)
        np.testing.assert_array_equal(cells[[0, 2]], wanted[0])
        np.testing.assert_array_equal(cells[1], np.where(codes < 3, codes, schema.features[1].other_cell))
        assert not left_out.any()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_frames_and_of_memory_maps(library, tmp_path):
    frames = pytest.importorskip(library)
    generator = np.random.default_rng(2)
    X, schema = generator.random((30, 3)).astype(np.float32), schema_of((False, True, False))
    wanted, _ = plainly(X.T, schema, 9)
    frame = frames.DataFrame({f"x{place}": X[:, place] for place in range(3)})
    mixed = frames.DataFrame({"x0": X[:, 0], "x1": X[:, 1].astype(np.float64), "x2": X[:, 2]})
    np.save(tmp_path / "rows.npy", X)
    for rows in (frame, mixed, np.load(tmp_path / "rows.npy", mmap_mode="r")):
        np.testing.assert_array_equal(encode_features(rows, schema, bins=9), wanted)
