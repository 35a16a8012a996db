"""Noise of counts: one row is in a cell of every feature, and in one leaf."""

import pytest

from ledgerwood import Adjacency, LaplaceEvent
from ledgerwood.curator import CellCounts, LeafCounts
from ledgerwood.ensemble import TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.parts.laplace_counts import LaplaceCounts

SEVEN = CellCounts(features=tuple(range(7)), cells=16)
LEAVES = LeafCounts().of(TreeStructure.root())


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize(("query", "cells"), [(SEVEN, 7), (LEAVES, 1)])
def test_the_scale_is_the_number_of_cells_that_a_row_moves(adjacency, query, cells):
    counts = LaplaceCounts(adjacency=adjacency, epsilon=0.3)
    mechanism = counts.mechanism(query)
    moved = cells * (2 if adjacency is Adjacency.REPLACE_ONE else 1)
    assert mechanism.scales == (pytest.approx(moved / 0.3),)
    drawn = mechanism.event(query.sensitivity(adjacency), adjacency)
    assert drawn == counts.event
    assert isinstance(drawn, LaplaceEvent)
    assert drawn.noise_multiplier == pytest.approx(1 / 0.3, rel=1e-15)


def test_noise_that_cannot_be_drawn_is_refused():
    LaplaceCounts(adjacency=Adjacency.ADD_REMOVE, epsilon=1.0).require_fit(SEVEN)
    with pytest.raises(InvalidParameter, match="grid steps"):
        LaplaceCounts(adjacency=Adjacency.ADD_REMOVE, epsilon=1e-18).require_fit(SEVEN)
