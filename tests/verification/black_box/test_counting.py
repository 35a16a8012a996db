import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ledgerwood.verification.black_box.encoding import atoms, smoothed, tail_ratios
from ledgerwood.verification.black_box.learning import Linear, features

COUNTS = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=30)


@given(COUNTS)
def test_tails_begin_at_one_end(cells):
    with_row, without = np.array(cells, np.int64).T
    found = tail_ratios(with_row, without, (40_000, 40_000))
    steps = np.diff(found)
    assert np.all(steps < 0.0) or np.all(steps > 0.0)


def test_the_end_that_promises_more_comes_first():
    few, many = np.array([1, 10, 100, 1000]), np.array([100, 100, 100, 1000])
    assert np.all(np.diff(tail_ratios(few, many, (2000, 2000))) > 0.0)
    assert np.all(np.diff(tail_ratios(few[::-1], many[::-1], (2000, 2000))) < 0.0)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30))
def test_smoothing_sums_five_neighbours(cells):
    by_hand = [sum(cells[min(max(j + k, 0), len(cells) - 1)] for k in (-2, -1, 0, 1, 2)) for j in range(len(cells))]
    assert smoothed(np.array(cells, np.int64)).tolist() == by_hand


def test_a_linear_score_column_by_column_is_the_product_with_the_matrix_of_features():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(3000, 3))
    values[:, 1] = rng.integers(0, 4, 3000)
    values[::7, 2] = np.nan
    values[::11, 0] = np.inf
    encode = features(values, tuple(atoms(column) for column in values.T))
    matrix = encode(values)
    weights = rng.normal(size=matrix.shape[1])
    np.testing.assert_allclose(Linear(encode, weights)(values), matrix @ weights, rtol=1e-12, atol=1e-12)
