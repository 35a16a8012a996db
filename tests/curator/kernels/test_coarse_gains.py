"""Bounds of blocks of thresholds, against exact gains of what may be on the left, up to 2**35 rows."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.curator.kernels.coarse_gains import bound_blocks
from ledgerwood.curator.queries.splits.gridless_gains import GridlessGains
from ledgerwood.ensemble import Ensemble, FeatureCells, TreeStructure

MOST_ROWS = 2**35 - 1
WHOLE = np.zeros((1, 1), dtype=np.int64)


def asked(clip, damping):
    return GridlessGains(
        structure=TreeStructure.root(),
        cells=(FeatureCells(ordered=9, equality=()),),
        ensemble=Ensemble(initial_score=0.0),
        loss="squared",
        clip=clip,
        damping=damping,
    )


def bound(query, left, inside, right, *, weighted=False):
    """Of one block of four thresholds, with (rows, sum) below it, in it, and above it."""
    sums = np.array([[left, inside, right]], dtype=np.int64)
    shift = -20 - query.grid.exponents[0]
    row = np.uint64(1 if weighted else 2**20)
    division = row, np.uint64(query.damping_steps), max(shift, 0), max(-shift, 0)
    found = [np.zeros(1, dtype=kind) for kind in (np.int64, np.int64, np.bool_, np.int64, np.int64)]
    one, attained = np.ones(1, dtype=np.int64), np.zeros((1, 1))
    # The first block, of cells 0 .. 3, has the rows on the left; thresholds 5 .. 8 are asked about.
    bound_blocks(
        1, 1, one * 0, np.array([0, 4]), np.array([0, 4, 8, 9]), np.array([0, 3]), sums, sums.sum(axis=1),
        np.zeros((1, 1, 2), dtype=np.int64), one, WHOLE + 5, WHOLE + 9, WHOLE, WHOLE, division,
        query.clip_steps / 2**20, *found, attained,
    )  # fmt: skip
    ends, utilities, exact, _, blocks = found
    assert (ends[0], blocks[0]) == (4, 1)
    return int(utilities[0]), bool(exact[0])


def gain(query, sides, *, weighted=False):
    """By the definition, in whole steps of the grid, each side truncated."""
    total = 0
    for rows, sum_ in sides:
        if rows:
            count = Fraction(rows, 2**20 if weighted else 1)
            value = Fraction(sum_, 2**20) ** 2 / (count + Fraction(query.damping_steps, 2**20))
            total += int(value / Fraction(2) ** query.grid.exponents[0])
    return total


@st.composite
def parts(draw, query, weighted):
    """(rows, sum) of rows below a block, of those in it that go left, of those that do not, and of those above it."""
    found = []
    for _ in range(4):
        rows = draw(st.integers(0, MOST_ROWS // 4) | st.integers(0, 3))
        most = rows * query.clip_steps // 2**20 if weighted else rows * query.clip_steps
        found.append((rows, draw(st.sampled_from([most, -most, 0]) | st.integers(-most, most))))
    return found


@settings(max_examples=120)
@given(
    st.data(),
    st.sampled_from([2.0**-20, 3 * 2.0**-20, 0.3, 1.0, 2.0**8]),
    st.sampled_from([0.0, 2.0**-20, 0.1, 3.0, 2.0**40]),
    st.booleans(),
)
def test_no_gain_inside_of_a_block_is_above_its_bound(data, clip, damping, weighted):
    query = asked(clip, damping)
    below, going, staying, above = data.draw(parts(query, weighted))
    inside = tuple(np.add(going, staying).tolist())
    found, exact = bound(query, below, inside, above, weighted=weighted)
    left, right = np.add(below, going).tolist(), np.add(staying, above).tolist()
    true = gain(query, (left, right), weighted=weighted)
    assert found >= true
    assert exact == (inside[0] == 0)
    if exact:
        assert found == true


@pytest.mark.parametrize("weighted", [False, True])
def test_a_bound_is_attained_by_the_rows_of_one_sign(weighted):
    """So it is not needlessly loose: by some parts in a million, where half the block's rows pull each way."""
    unit = 2**20 if weighted else 1
    query, half = asked(1.0, 0.1), 3000 * unit
    steps = half * 2**20 // unit
    found, _ = bound(query, (500 * unit, 0), (2 * half, 0), (700 * unit, 0), weighted=weighted)
    true = gain(query, ((500 * unit + half, steps), (700 * unit + half, -steps)), weighted=weighted)
    assert true <= found <= true * (1 + 1e-5)
