"""Candidates: public grids, and thresholds where the released histograms have rows, whatever the noise on them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.trainers.boosting.candidates import (
    bought_candidates,
    even_candidates,
    histogram_bins,
    histogram_borders,
)

SCHEMA = lw.Schema(
    features=(
        lw.Numeric("a", -1.0, 1.0, missing=True),
        lw.Categorical("b", ("u", "v")),
        lw.Numeric("c", 0.0, 1e6),
    ),
    target=lw.Numeric("y", 0.0, 1.0),
)


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9), st.integers(2, 60_000))
def test_borders_are_public_rising_and_inside(low, width, bins):
    borders = histogram_borders(lw.Numeric("a", low, low + width), bins)
    assert (np.diff(borders) > 0).all()
    assert borders[0] >= 1
    assert borders[-1] <= bins - 1
    assert len(borders) <= 64
    assert borders[0] <= max(1, bins >> 10)  # the finest step at the lower end
    assert borders[-1] >= bins - max(1, bins >> 10)


def test_grids_are_fine_at_both_ends_and_at_zero():
    borders = set(histogram_borders(lw.Numeric("a", -1.0, 3.0), 4096).tolist())
    assert {2, 4, 8, 4094, 4092, 1024, 1025, 1022, 1026} <= borders
    assert not {1023, 1027} & set(histogram_borders(lw.Numeric("a", 0.0, 4.0), 4096).tolist())


def histogram(columns, bins):
    """The exact histograms of cells."""
    counts = np.zeros(bins.total)
    for place, own in enumerate(columns):
        lookup = bins.lookup(place, 4097)
        np.add.at(counts, bins.offsets[place] + lookup[own].astype(int), 1.0)
    return counts


def test_without_noise_candidates_part_the_rows_evenly_up_to_the_grid():
    bins, generator = histogram_bins(SCHEMA, 4096), np.random.default_rng(0)
    columns = [generator.integers(0, 4096, 5000), np.minimum(generator.exponential(30.0, 5000), 4095).astype(int)]
    cells = SCHEMA.cells(4096)
    found = bought_candidates(histogram(columns, bins), bins, even_candidates(cells, 15), 31)
    assert len(found[1]) == 0  # a category has no thresholds
    for feature, own in zip((0, 2), columns, strict=True):
        cuts = found[feature]
        assert set(even_candidates(cells, 15)[feature].tolist()) <= set(cuts.tolist())
        shares = np.searchsorted(np.sort(own), cuts) / len(own)
        gaps = np.diff(np.concatenate(([0.0], shares, [1.0])))
        assert gaps.max() < 0.08  # 1 / 32, and what rows in a bin of the grid lack in evenness
    assert (found[2] < 200).sum() > 25  # even steps have one candidate there


@given(st.lists(st.floats(-1e15, 1e15), min_size=3, max_size=3), st.integers(0, 2**31), st.floats(0.0, 1e15))
def test_noise_of_any_size_gives_thresholds(offsets, seed, scale):
    bins, cells = histogram_bins(SCHEMA, 512), SCHEMA.cells(512)
    counts = np.random.default_rng(seed).normal(offsets[0], scale + 1e-3, bins.total)
    even = even_candidates(cells, 15)
    found = bought_candidates(counts, bins, even, 15)
    for feature in (0, 2):
        assert set(even[feature].tolist()) <= set(found[feature].tolist())
        assert (np.diff(found[feature]) > 0).all()
        assert found[feature][0] >= 1
        assert found[feature][-1] <= 511
        assert len(found[feature]) <= 30


def test_an_empty_table_leaves_even_candidates():
    bins, even = histogram_bins(SCHEMA, 512), even_candidates(SCHEMA.cells(512), 15)
    found = bought_candidates(np.zeros(bins.total), bins, even, 15)
    assert all(np.array_equal(one, other) for one, other in zip(found, even, strict=True))


def test_a_schema_without_numbers_has_no_histograms():
    with pytest.raises(lw.errors.InvalidParameter, match="at least one feature"):
        histogram_bins(lw.Schema(features=(lw.Categorical("b", ("u", "v")),), target=SCHEMA.target), 64)
