"""Candidates: public grids, and thresholds where the released histograms have rows, whatever the noise on them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.trainers.boosting.candidates import (
    bought_candidates,
    cleared_density,
    even_candidates,
    histogram_bins,
    histogram_borders,
    quantiles,
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


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=64), st.integers(0, 2**31), st.sampled_from([0.0, 1.0, 1e3, 1e12])
)
def test_a_cleared_density_holds_all_rows_whatever_the_noise(widths, seed, stddev):
    edges = np.concatenate(([0], np.cumsum(widths)))
    generator = np.random.default_rng(seed)
    counts = generator.poisson(20.0, len(widths)) + generator.normal(0.0, stddev, len(widths))
    own, rows = cleared_density(counts, edges, stddev)
    assert (np.diff(own) > 0).all()
    assert set(own.tolist()) <= set(edges.tolist())
    assert (own[0], own[-1]) == (0, edges[-1])
    assert (rows >= 0.0).all()
    assert rows.sum() == pytest.approx(max(counts.sum(), 0.0), rel=1e-12, abs=1e-9)


def test_without_noise_a_cleared_density_is_the_histogram():
    edges, counts = np.array([0, 3, 4, 10, 11, 40]), np.array([5.0, 0.0, 2.0, 9.0, 1.0])
    own, rows = cleared_density(counts, edges, 0.0)
    assert own.tolist() == edges.tolist()
    assert rows == pytest.approx(counts)


def test_what_does_not_stand_out_of_its_noise_is_spread_evenly():
    counts = np.zeros(64)
    counts[[5, 40]] = 1e4, 60.0  # the second one is less than 2.5 of its noise
    own, rows = cleared_density(counts, np.arange(65), 30.0)
    at = own.tolist()
    assert rows[at.index(5)] == pytest.approx(1e4 + 60.0, rel=0.01)
    assert at[at.index(5) + 1] == 6
    assert 40 not in at


def test_quantiles_of_a_piecewise_even_mass():
    edges, masses = np.array([0, 10, 20, 100]), np.array([1.0, 0.0, 3.0])
    assert quantiles(masses, edges, np.array([0.125, 0.2, 0.625])).tolist() == [5, 8, 60]
    assert len(quantiles(np.zeros(3), edges, np.array([0.5]))) == 0


def test_spread_candidates_see_rare_values_that_quantiles_of_rows_do_not():
    """Nine tenths of the rows at 0, as of gains and losses of capital: few quantiles are among the rest."""
    generator = np.random.default_rng(0)
    rare = generator.integers(100, 900, 2000)
    column = np.concatenate((np.zeros(18_000, dtype=int), rare))
    schema = lw.Schema(features=(lw.Numeric("a", 0.0, 1.0),), target=SCHEMA.target)
    bins = histogram_bins(schema, 4096, 1024)
    noise = generator.normal(0.0, 5.0, bins.total)
    counts = histogram([column], bins) + noise
    even = even_candidates(schema.cells(4096), 31)

    def among(candidates):
        return int(((candidates >= 100) & (candidates < 900)).sum())

    without = among(bought_candidates(counts, bins, even, 31)[0])
    spread = among(bought_candidates(counts, bins, even, 31, spread=63, stddev=5.0)[0])
    assert without < 12
    assert spread > 40


def test_a_schema_without_numbers_has_no_histograms():
    with pytest.raises(lw.errors.InvalidParameter, match="at least one feature"):
        histogram_bins(lw.Schema(features=(lw.Categorical("b", ("u", "v")),), target=SCHEMA.target), 64)
