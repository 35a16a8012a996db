"""What leaving out large gradients does to a leaf: DPBoost's Theorem 5 (Li et al. 2020) as a law of the exact ratios.

Of the rows I of a leaf let I_f be those beyond g*, p their share and m the mean of their gradients. The leaf's value
moves by at most p (|m| + g*) when I_f is left out: the first term is what I_f itself adds, the second what the smaller
denominator does to the rest, none of which is beyond g*.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledgerwood import Numeric, Schema
from ledgerwood.curator import STEP, LeafRatios
from ledgerwood.curator.tables.trees import Table
from ledgerwood.ensemble import Ensemble, TreeStructure

UNIT = 2**20
ALL_ROWS = np.empty(0, dtype=np.bool_)
STUMP = TreeStructure(feature=np.zeros(1, np.int32), split=np.ones(1, np.uint16), equals=np.zeros(1, np.bool_))
SCHEMA = Schema.uniform(0.0, 1.0, n_features=1, target=Numeric("y", -1.0, 1.0))
ALL_GRADIENTS = 256.0


def ratios(cells, targets, score, clip, damping):
    """Exact ratios of both leaves in steps, rows beyond the clip left out."""
    table = Table(schema=SCHEMA, cells=np.array([cells], np.uint8), targets=np.array(targets) * STEP)
    ensemble = Ensemble(initial_score=score * STEP)
    query = LeafRatios(loss="squared", clip=clip, damping=damping, large_gradients="drop").of(STUMP, ensemble)
    return table.statistic(query, ALL_ROWS)[:, 0].tolist()


def error_and_bound(rows, score, clip, damping):
    """Of each leaf the error in steps, and the theorem's bound, exactly."""
    cells, targets = zip(*rows, strict=True)
    kept = ratios(cells, targets, score, clip * STEP, damping)
    whole = ratios(cells, targets, score, ALL_GRADIENTS, damping)
    for leaf, goes_left in enumerate((True, False)):
        gradients = [score - y for cell, y in rows if (cell < 1) is goes_left]
        beyond = [g for g in gradients if abs(g) > clip]
        share = Fraction(len(beyond), max(len(gradients), 1))
        mean = Fraction(sum(beyond), max(len(beyond), 1))
        yield abs(whole[leaf] - kept[leaf]), share * (abs(mean) + clip)


TIGHT = [(0, -UNIT)] * 100 + [(0, UNIT)] * 100
"""Gradients 1.5 and -.5 about the score .5: beyond .5 one half, and the other half at it, with the other sign."""


@pytest.mark.slow  # a search for the worst row
@given(
    rows=st.lists(st.tuples(st.integers(0, 1), st.integers(-UNIT, UNIT)), min_size=1, max_size=12),
    score=st.integers(-3 * UNIT, 3 * UNIT),
    clip=st.integers(1, 3 * UNIT),
    damping=st.sampled_from([STEP, 0.1, 1.0, 50.0]),
)
@example(rows=TIGHT, score=UNIT // 2, clip=UNIT // 2, damping=STEP)
@settings(max_examples=300, deadline=None)
def test_leaving_out_large_gradients_moves_a_leaf_by_at_most_the_bound(rows, score, clip, damping):
    for error, bound in error_and_bound(rows, score, clip, damping):
        assert error <= bound + 1  # either ratio is truncated by less than a step


def test_the_bound_is_reached_by_two_halves_of_opposite_signs():
    (error, bound), _ = error_and_bound(TIGHT, UNIT // 2, UNIT // 2, STEP)
    assert error == pytest.approx(float(bound), rel=1e-5)
    assert bound == UNIT
