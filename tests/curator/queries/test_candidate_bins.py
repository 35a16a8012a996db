"""Bins between candidates: each row has one of each feature, the one that Python finds; bad bins are refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.curator import CandidateBins, Table
from ledgerwood.curator.queries.bins import bin_rows, binned, require_bins
from ledgerwood.ensemble import FeatureCells
from ledgerwood.errors import InvalidParameter, RoundViolation


def bin_by_hand(each, thresholds, cell):
    ordered = len(thresholds) + 1 if each.ordered else 0
    if cell < each.ordered:
        return sum(cell >= t for t in thresholds)
    if cell in each.equality:
        return ordered + each.equality.index(cell)
    return ordered + len(each.equality)


@st.composite
def worlds(draw):
    cells, thresholds, most = [], [], []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            ordered = draw(st.integers(1, 9))
            missing = draw(st.booleans())
            cells.append(FeatureCells(ordered=ordered, equality=(ordered,) if missing else ()))
            thresholds.append(np.array(sorted(draw(st.sets(st.integers(1, 8))) & set(range(1, ordered))), np.int64))
            most.append(ordered - 1 + missing)
        else:
            count = draw(st.integers(1, 5))
            missing = draw(st.booleans())
            cells.append(FeatureCells(ordered=0, equality=(*range(count), *((count + 1,) if missing else ()))))
            thresholds.append(np.empty(0, np.int64))
            most.append(count + missing)
    rows = [[draw(st.integers(0, top)) for _ in range(5)] for top in most]
    return cells, thresholds, np.array(rows, draw(st.sampled_from([np.uint8, np.uint16])))


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=150, deadline=None, derandomize=True)
@given(worlds(), st.randoms(use_true_random=False))
def test_each_row_has_the_bin_that_python_finds(world, random):
    cells, thresholds, rows = world
    features = random.sample(range(len(cells)), random.randint(1, len(cells)))
    bins = CandidateBins.of(cells, thresholds, features)
    found = bin_rows(bins, rows)
    assert len(bins) == len(features)
    for place, feature in enumerate(features):
        wanted = [bin_by_hand(cells[feature], thresholds[feature].tolist(), cell) for cell in rows[feature].tolist()]
        assert found[place].tolist() == wanted
        assert max(wanted) < bins.offsets[place + 1] - bins.offsets[place]
    assert bins.total == bins.offsets[-1]


def test_all_borders_of_ordered_cells_are_the_cells_themselves():
    rows = np.array([[0, 3, 4], [2, 1, 0]], np.uint8)
    cells = (FeatureCells(ordered=4, equality=(4,)), FeatureCells(ordered=3, equality=()))
    assert bin_rows(CandidateBins.of(cells), rows) is rows


@pytest.mark.parametrize(
    ("features", "thresholds", "match"),
    [
        ([], [], "features"),
        ([0, 0], [[1], [1]], "named once"),
        ([-1], [[1]], "each >= 0"),
        ([0], [[0]], "thresholds of feature 0"),
        ([0], [[2, 1]], "rising"),
        ([0], [[4]], "in 1 .. 3"),
        ([0], [[0.5]], "whole numbers"),
        ([0, 1], [[1]], "one cells and one thresholds each"),
    ],
)
def test_bad_bins_are_refused(features, thresholds, match):
    cells = tuple(FeatureCells(ordered=4, equality=()) for _ in features)
    with pytest.raises(InvalidParameter, match=match):
        CandidateBins(features=np.array(features, np.int64), cells=cells, thresholds=tuple(map(np.array, thresholds)))


def test_a_table_bins_its_own_features_only_and_keeps_the_last_bins():
    schema = Schema(features=(Numeric("x", 0.0, 8.0), Categorical("c", ("a", "b"))), target=Numeric("y", 0.0, 1.0))
    X = np.array([[0.5, "a"], [7.5, "b"], [3.0, "z"]], dtype=object)
    rows = Table.from_data(X, np.zeros(3), schema, loss="squared", bins=8)
    bins = CandidateBins.of(schema.cells(8), [np.array([4]), np.empty(0, np.int64)])
    assert binned(bins, rows._parts[0].rows).tolist() == [[0, 1, 0], [0, 1, 2]]
    assert binned(bins, rows._parts[0].rows) is binned(bins, rows._parts[0].rows)
    with pytest.raises(RoundViolation, match=r"outside 0\.\.1"):
        require_bins(CandidateBins.of((*schema.cells(8), FeatureCells(ordered=2, equality=()))), rows._shape)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # numpy 2.5 and later
def test_bins_are_what_they_were_when_they_were_made():
    """A shorter list of cells, or of features, would let one row count twice in a bin, or be paid for once."""
    equality = [4]
    cells = [FeatureCells(ordered=4, equality=equality), FeatureCells(ordered=4, equality=())]
    bins = CandidateBins(features=np.arange(2), cells=cells, thresholds=(np.arange(1, 4), np.arange(1, 4)))
    equality.clear()
    cells.pop()
    assert bins.offsets.tolist() == [0, 5, 9]
    bins.features.shape = (1, 2)  # which a read-only array allows
    assert len(bins) == 2


def test_cells_of_a_foreign_class_are_refused():
    class Shrinking(FeatureCells):
        """It could have other cells each time."""

    with pytest.raises(InvalidParameter, match="FeatureCells"):
        CandidateBins(features=np.arange(1), cells=(Shrinking(ordered=4, equality=()),), thresholds=(np.arange(1, 4),))
