"""Candidates: logarithmic ones, and hessians that merge and split bins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.federated.candidates import first_candidates, hessian_total, log_thresholds, refined_thresholds


def test_logarithmic_thresholds_are_dense_where_the_range_begins():
    found = log_thresholds(0.0, 1000.0, bins=1000, candidates=9)
    expected = np.unique(np.rint(np.expm1(np.linspace(0, np.log1p(1000.0), 11)[1:-1])))
    np.testing.assert_array_equal(found, expected)
    mirrored = log_thresholds(-1000.0, 0.0, bins=1000, candidates=9)
    np.testing.assert_array_equal(mirrored, np.sort(1000 - found))


def test_categories_have_no_thresholds():
    schema = lw.Schema(features=(lw.Numeric("a", 0, 1), lw.Categorical("b", ("u", "v"))))
    for rule in ("uniform", "log", "iterative_hessian", "quantiles"):
        numeric, none = first_candidates(schema, rule, bins=16, candidates=3)
        assert len(none) == 0
        assert 1 <= len(numeric) <= 3


def test_light_bins_are_merged_and_heavy_ones_split():
    thresholds = np.array([10, 20, 30])
    # 100 in all, 33.3 wanted: [0, 10) has 40, so its border stays and the middle of the next bin comes; the next two
    # are light. The last border always stays.
    found = refined_thresholds(np.array([40.0, 10.0, 10.0, 40.0]), thresholds, total=100.0, candidates=3, cells=40)
    assert found.tolist() == [10, 15, 30]


def test_the_last_border_stays_among_more_than_are_wanted():
    """The feature has more mass than the mean over features: the scan finds more borders than Q."""
    found = refined_thresholds(np.full(4, 40.0), np.array([10, 20, 30]), total=40.0, candidates=3, cells=40)
    assert found.tolist() == [10, 15, 30]


def test_gaps_are_filled():
    found = refined_thresholds(np.array([0.0, 0.0]), np.array([20]), total=100.0, candidates=3, cells=40)
    assert len(found) == 3
    assert 20 in found


def test_hessians_below_zero_count_nothing():
    assert hessian_total([np.array([-5.0, 3.0]), np.array([1.0, 2.0])]) == 3.0


def test_as_many_hessians_as_bins():
    with pytest.raises(InvalidParameter, match="hessians"):
        refined_thresholds(np.zeros(3), np.array([5]), total=1.0, candidates=3, cells=10)


@pytest.mark.slow  # many fits and plans
@given(data=st.data(), cells=st.integers(2, 300), candidates=st.integers(1, 40))
def test_refined_thresholds_are_thresholds(data, cells, candidates):
    """Rising borders, at most Q, at least one, whatever was released; and again after the next round."""
    own = sorted(data.draw(st.sets(st.integers(1, cells - 1), min_size=1, max_size=candidates)))
    thresholds = np.array(own, dtype=np.int64)
    for _ in range(3):
        finite = st.floats(-1e6, 1e6)
        hessians = np.array(data.draw(st.lists(finite, min_size=len(thresholds) + 1, max_size=len(thresholds) + 1)))
        thresholds = refined_thresholds(
            hessians, thresholds, total=hessian_total([hessians]), candidates=candidates, cells=cells
        )
        assert 1 <= len(thresholds) <= candidates
        assert (np.diff(thresholds) > 0).all()
        assert thresholds[0] >= 1
        assert thresholds[-1] < cells
