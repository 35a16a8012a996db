"""Candidates from histograms: against the nearest shares by hand, and whatever noise has made of the counts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.ensemble import SplitTests
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.parts import candidates

COUNTS = st.lists(st.integers(-40, 40) | st.sampled_from((0, 0, 10**6, -(10**6), 2**62, -(2**62))), min_size=1)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(cells=st.integers(1, 300), wanted=st.integers(1, 300))
@example(cells=1, wanted=1)
@example(cells=2, wanted=1)
@example(cells=256, wanted=32)
def test_even_thresholds_are_as_evenly_apart_as_whole_numbers_are(cells, wanted):
    found = candidates.even_thresholds(cells, wanted)
    assert len(found) == min(wanted, cells - 1)
    widths = np.diff([0, *found, cells])
    assert widths.min() >= 1
    assert all(abs(t - Fraction(cells * i, len(found) + 1)) <= Fraction(1, 2) for i, t in enumerate(found.tolist(), 1))


@pytest.mark.parametrize(
    ("counts", "wanted", "found"),
    [
        ([10, 10, 10, 10], 1, [2]),
        ([10, 10, 10, 10], 3, [1, 2, 3]),
        ([10, 10, 10, 10], 50, [1, 2, 3]),
        ([0, 0, 100, 0, 0], 3, [2, 3]),  # on either side of the cell that has them all
        ([90, 2, 2, 2, 2, 2], 1, [1]),
        ([1, 1, 1, 1, 96], 2, [4]),
        ([8, 4, 2, 1, 1], 3, [1, 2]),  # 1/2, 3/4: a quarter is nearest to a half
        ([20, -5, 5, 20], 1, [3]),  # 20, 15, 20 rows below become 17.5, 17.5, 20: half of 40
        ([0, 0, 0, 0], 1, [2]),  # nothing is known: even
        ([-3, -9, 2, 4], 3, [1, 2, 3]),
        ([5], 4, []),
        ([-5], 4, []),
        ([7, 0], 4, [1]),
        ([0, 7], 4, [1]),
    ],
)
def test_thresholds_part_the_rows_as_evenly_as_they_can(counts, wanted, found):
    thresholds = candidates.quantile_thresholds(np.array(counts, float), wanted)
    assert thresholds.tolist() == found
    assert thresholds.dtype == np.int64


@pytest.mark.slow  # many fits and plans
@settings(max_examples=200, deadline=None, derandomize=True)
@given(counts=COUNTS, wanted=st.integers(1, 70))
@example(counts=[0, 0], wanted=1)
@example(counts=[-(2**62), 2**62 - 1, 1], wanted=2)
def test_whatever_the_noise_there_are_some_thresholds_and_not_too_many(counts, wanted):
    found = candidates.quantile_thresholds(np.array(counts, float), wanted).tolist()
    assert found == sorted(set(found))
    assert set(found) <= set(range(1, len(counts)))
    assert min(1, len(counts) - 1) <= len(found) <= wanted


@pytest.mark.slow  # many fits and plans
@settings(max_examples=150, deadline=None, derandomize=True)
@given(counts=st.lists(st.integers(0, 40), min_size=2, max_size=30).filter(any), wanted=st.integers(1, 20))
def test_without_noise_each_share_has_a_threshold_that_is_nearest(counts, wanted):
    found = candidates.quantile_thresholds(np.array(counts, float), wanted).tolist()
    below = [Fraction(sum(counts[:t]), sum(counts)) for t in range(len(counts))]
    nearest = set()
    for i in range(1, wanted + 1):
        share = Fraction(i, wanted + 1)
        distance = min(abs(below[t] - share) for t in range(1, len(counts)))
        best = {t for t in found if abs(below[t] - share) <= distance + Fraction(1, 10**9)}
        assert best
        nearest |= best
    assert nearest == set(found)


def test_thresholds_of_a_noisy_histogram_are_near_those_of_the_rows():
    generator = np.random.default_rng(11)
    cells, n, scale = 256, 100_000, 20.0
    values = np.minimum((generator.exponential(0.15, n) * cells).astype(int), cells - 1)
    truth = np.bincount(values, minlength=cells).astype(float)
    exact = candidates.quantile_thresholds(truth, 31)
    noisy = candidates.quantile_thresholds(truth + np.rint(generator.laplace(0, scale, cells)), 31)
    below = np.concatenate(([0.0], np.cumsum(truth))) / n
    assert len(exact) == 31
    # A share's error is at most sqrt(cells q (1 - q) 2) scale / n in deviation, .0023; and half a cell's share.
    half_a_cell = truth.max() / n / 2
    shares = np.arange(1, 32) / 32
    assert np.abs(below[exact] - shares).max() <= half_a_cell
    for share in shares:
        assert np.abs(below[noisy] - share).min() <= half_a_cell + 4 * np.sqrt(cells * 2) / 2 * scale / n


@pytest.mark.parametrize(
    "counts", [np.empty(0), np.zeros((2, 2)), np.array([np.nan, 1.0]), np.array([np.inf, 1.0]), np.array([2.0**64])]
)
def test_counts_of_another_kind_are_refused(counts):
    with pytest.raises(InvalidParameter, match=r"counts=.*unit: rows"):
        candidates.quantile_thresholds(counts, 3)


@pytest.mark.parametrize("wanted", [0, -1, 1.5, True])
def test_at_least_one_candidate_is_wanted(wanted):
    with pytest.raises(InvalidParameter, match="candidates="):
        candidates.even_thresholds(4, wanted)
    for counts in (np.ones(4), np.zeros(4), np.ones(1)):
        with pytest.raises(InvalidParameter, match="candidates="):
            candidates.quantile_thresholds(counts, wanted)
    with pytest.raises(InvalidParameter, match="cells="):
        candidates.even_thresholds(0, 3)


CELLS = Schema(
    features=(Numeric("a", 0.0, 1.0, missing=True), Categorical("b", ("x", "y"), missing=True), Numeric("c", 0.0, 1.0)),
    target=Numeric("t", -1.0, 1.0),
).cells(4)


def rows_of(tests):
    columns = (tests.feature, tests.split, tests.equals, tests.besides)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def all_tests(thresholds, cells):
    none = np.empty(0, dtype=np.int64)
    return SplitTests.every(cells, [thresholds.get(feature, none) for feature in range(len(cells))])


def test_the_candidates_are_thresholds_both_ways_and_every_equality():
    found = rows_of(all_tests({0: np.array([1, 3]), 2: np.array([2])}, CELLS))
    missing_b = CELLS[1].equality[-1]
    assert found == [
        (0, 1, False, -1), (0, 3, False, -1), (0, 1, False, 4), (0, 3, False, 4), (0, 4, True, -1),
        (1, 0, True, -1), (1, 1, True, -1), (1, missing_b, True, -1),
        (2, 2, False, -1),
    ]  # fmt: skip
    everywhere = {0: np.arange(1, 4), 2: np.arange(1, 4)}
    assert rows_of(all_tests(everywhere, CELLS)) == rows_of(SplitTests.every(CELLS))


def test_a_feature_that_is_not_named_has_no_thresholds():
    assert [test[:3] for test in rows_of(all_tests({}, CELLS))] == [
        (0, 4, True), (1, 0, True), (1, 1, True), (1, CELLS[1].equality[-1], True)
    ]  # fmt: skip
    with pytest.raises(InvalidParameter, match="tests=0 must be >= 1"):
        all_tests({}, CELLS[2:])
