"""Rows with weights: what is accepted; exact statistics of weighted neighbours against the stated shifts; laws."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Categorical, Numeric, Schema
from ledgerwood.accounting.individuals import FULL
from ledgerwood.curator import (
    STEP,
    LabelCount,
    LabelMoments,
    LabelSum,
    LeafCurvatures,
    LeafMoments,
    LeafRatios,
    PredictionFit,
)
from ledgerwood.curator.inputs.values import ALL_WHOLE, encode_weights
from ledgerwood.curator.queries.splits.gains import SplitGains
from ledgerwood.curator.tables.trees import Table
from ledgerwood.curator.views.tree_rows import RowBudgets
from ledgerwood.ensemble import Ensemble, SplitTests, TreeStructure
from ledgerwood.errors import RoundViolation, SchemaError

A, Z, R = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
UNIT = 2**20
EVERYONE = np.empty(0, dtype=np.bool_)
TARGET = Numeric("y", -1.0, 1.0)
SCHEMA = Schema.uniform(0.0, 1.0, n_features=1, target=TARGET, weight_bound=1.0)
CELLS = 4
TESTS = SplitTests.every(SCHEMA.cells(CELLS))
ROOT = TreeStructure.root()
STUMP = TreeStructure(feature=np.array([0], np.int32), split=np.array([2], np.uint16), equals=np.array([False]))
START = Ensemble(initial_score=0.0)


def bounded(weight_bound):
    return Schema.uniform(0.0, 1.0, n_features=1, target=TARGET, weight_bound=weight_bound)


def table_of(rows, *, weighted=True):
    """Of rows (cell, label, steps of weight)."""
    weights = np.array([row[2] for row in rows], np.int32) if weighted else ALL_WHOLE
    cells = np.array([[row[0] for row in rows]], np.uint8)
    return Table(schema=SCHEMA, cells=cells, targets=np.array([row[1] for row in rows], float), weights=weights)


def asked(structure=ROOT, *, clip=1.0, damping=0.0, large="clip"):
    return SplitGains(
        structure=structure, tests=TESTS, ensemble=START, loss="squared", clip=clip, damping=damping,
        large_gradients=large,
    )  # fmt: skip


# ---- what is accepted ----


@pytest.mark.parametrize(("bound", "weights", "steps"), [
    (1.0, [0, 1, 0.5, 5e-324], [0, UNIT, UNIT // 2, 0]),
    (8.0, [0, 1, 3, 8], [0, UNIT // 8, 3 * UNIT // 8, UNIT]),
    (2.0**20, [0, 1, 77, 2**20], [0, 1, 77, UNIT]),
    (3.0, [1, 2, 3, -0.0], [UNIT // 3, 2 * UNIT // 3, UNIT, 0]),
    (2.0**-20, [2.0**-20, 2.0**-21, 2.0**-40, 0], [UNIT, UNIT // 2, 1, 0]),
    (0.1, [0.1, np.nextafter(0.1, 0), 0.05, 0], [UNIT, UNIT - 1, UNIT // 2, 0]),
])  # fmt: skip
def test_weights_are_shares_of_the_bound_truncated_to_steps(bound, weights, steps):
    found = encode_weights(weights, bounded(bound), n_rows=4)
    assert found.dtype == np.int32
    assert found.tolist() == steps


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=200)
@given(st.floats(2.0**-20, 2.0**20), st.floats(0, 1))
def test_a_weight_is_never_more_than_the_bound(bound, share):
    weights = [min(bound * share, bound), bound]
    found = encode_weights(weights, bounded(bound), n_rows=2).tolist()
    assert found[1] == UNIT
    # Within one rounding of the quotient.
    exact = Fraction(weights[0]) / Fraction(bound) * UNIT
    assert math.floor(exact * (1 - Fraction(1, 2**53))) <= found[0] <= min(exact * (1 + Fraction(1, 2**53)), UNIT)


@pytest.mark.parametrize("make", [list, tuple, np.array, pd.Series, pl.Series, lambda w: np.array(w, dtype=object)])
def test_weights_come_in_any_column(make):
    assert encode_weights(make([0.0, 2.0, 1.0]), bounded(2.0), n_rows=3).tolist() == [0, UNIT, UNIT // 2]


def test_rows_without_weights_weigh_one():
    assert encode_weights(None, bounded(None), n_rows=2) is ALL_WHOLE
    assert encode_weights(None, bounded(1.0), n_rows=2).tolist() == [UNIT, UNIT]
    assert encode_weights(None, bounded(3.0), n_rows=2).tolist() == [UNIT // 3, UNIT // 3]
    with pytest.raises(SchemaError, match=r"weight 1, above the schema's weight_bound=0\.5"):
        encode_weights(None, bounded(0.5), n_rows=2)


@pytest.mark.parametrize(("weights", "words"), [
    ([1.0], "X and sample_weight differ"), (np.ones((2, 2)), "sample_weight should be a 1d array"),
    (1.0, "sample_weight is a float"), ("ab", "sample_weight is a str"),
    (np.array(["a", "b"]), "type <U1, and is declared to hold numbers"), (np.array([1.0, 1j]), "Complex data"),
])  # fmt: skip
def test_weights_of_another_shape_or_type_are_refused(weights, words):
    with pytest.raises(SchemaError, match=words):
        encode_weights(weights, bounded(2.0), n_rows=2)


@pytest.mark.parametrize(("weight", "steps"), [
    (2.5, UNIT), (math.inf, UNIT), (-1e-300, 0), (-math.inf, 0), (math.nan, 0), (None, 0), ("1", 0), ([1.0], 0),
    (1j, 0), ((), 0), (10**400, 0), (0.0, 0), (True, UNIT // 2),
])  # fmt: skip
def test_a_weight_outside_is_clamped_and_one_that_is_no_number_is_0(weight, steps):
    assert encode_weights([1.0, weight], bounded(2.0), n_rows=2).tolist() == [UNIT // 2, steps]
    assert encode_weights([weight, weight], bounded(2.0), n_rows=2).tolist() == [steps, steps]


def test_weights_without_a_bound_are_refused():
    with pytest.raises(SchemaError, match=r"declare the largest weight .* weight_bound=\.\.\.\). It is not computed"):
        Table.from_data([[0.0], [1.0]], [0, 1], bounded(None), loss="squared", bins=4, sample_weight=[1, 1])


# ---- the shifts ----

steps = st.sampled_from((0, 1, UNIT // 2, UNIT - 1, UNIT)) | st.integers(0, UNIT)
labels = st.sampled_from((-1.0, 1.0, math.nan, 0.3, -STEP / 3)) | st.floats(-1, 1)
rows = st.tuples(st.integers(0, CELLS - 1), labels, steps)
signs = st.tuples(st.integers(0, CELLS - 1), st.sampled_from((-1.0, 1.0)), steps)
CLIPS = st.sampled_from((STEP, 0.1, 0.25, 1 / 3, 1.0, 256.0))
DAMPINGS = st.sampled_from((STEP, 1e-3, 0.1, 1.0, 15.0)) | st.floats(STEP, 100.0)
STARTS = st.builds(Ensemble, initial_score=st.sampled_from((0.0, 0.5, -1.0, 40.0)) | st.floats(-2, 2))


def leaves(kind, **more):
    statistics = st.builds(kind, clip=CLIPS, large_gradients=st.sampled_from(("clip", "drop")), **more)
    return st.builds(kind.of, statistics, st.sampled_from((ROOT, STUMP)), STARTS)


def fits(**more):
    return st.builds(PredictionFit.of, st.builds(PredictionFit, **more), STARTS)


QUERIES = {
    "label moments": (rows, st.just(LabelMoments())),
    "label count": (rows, st.just(LabelCount())),
    "label sum": (rows, st.just(LabelSum())),
    "fit": (rows, fits(loss=st.just("squared"), width=st.floats(0.01, 2))),
    "hits": (signs, fits(loss=st.just("logistic"), width=st.just(1.0))),
    "moments": (rows, leaves(LeafMoments, loss=st.just("squared"))),
    "logistic moments": (signs, leaves(LeafMoments, loss=st.just("logistic"))),
    "curvatures": (signs, leaves(LeafCurvatures, curvature_scale=st.floats(0.01, 3.33))),
    "ratios": (
        rows,
        leaves(LeafRatios, loss=st.just("squared"), damping=DAMPINGS, weighted=st.just(True)),
    ),
}


def require_norms(shift, sensitivity, columns):
    """Exactly, at scales that make one or the other column dear."""
    for scales in ((1.0,) * columns, (1e-3, 1.0)[-columns:], (1.0, 1e-3)[:columns], (0.7, 3.1)[:columns]):
        scaled = [abs(Fraction(d, UNIT)) / Fraction(s) for place in shift for d, s in zip(place, scales, strict=True)]
        assert sum(d * d for d in scaled) <= Fraction(sensitivity.l2(scales)) ** 2
        assert sum(scaled) <= Fraction(sensitivity.l1(scales))


@pytest.mark.slow_after(1)  # many tables and their neighbours in exact integers
@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=60)
@given(data=st.data())
def test_a_weighted_row_stays_in_the_shift_set(name, data):
    kinds, queries = QUERIES[name]
    query = data.draw(queries)
    some = data.draw(st.lists(kinds, min_size=1, max_size=6))
    row, place = data.draw(kinds | st.sampled_from(some)), data.draw(st.integers(0, len(some) - 1))
    before = table_of(some).statistic(query, EVERYONE)
    added = (table_of([*some, row]).statistic(query, EVERYONE) - before).reshape(-1, query.grid.columns).tolist()
    assert sum(any(d) for d in added) <= 1
    for adjacency in (A, Z):
        require_norms(added, query.sensitivity(adjacency), query.grid.columns)
    other = table_of([*some[:place], row, *some[place + 1 :]])
    replaced = (other.statistic(query, EVERYONE) - before).reshape(-1, query.grid.columns).tolist()
    assert sum(any(d) for d in replaced) <= 2
    require_norms(replaced, query.sensitivity(R), query.grid.columns)


def test_a_replaced_row_may_leave_the_boxes_but_not_their_norms():
    """Half a row of -1 in the place of a whole one of 1: the count falls by .5 and the sum by 1.5."""
    query = LabelMoments()
    shift = table_of([(0, -1.0, UNIT // 2)]).statistic(query, EVERYONE) - table_of([(0, 1.0, UNIT)]).statistic(
        query, EVERYONE
    )
    moved = [abs(Fraction(int(d), UNIT)) for d in shift]
    assert moved == [Fraction(1, 2), Fraction(3, 2)]
    sensitivity = query.sensitivity(R)
    assert not any(all(d <= b for d, b in zip(moved, box, strict=True)) for box in sensitivity.boxes)
    require_norms([shift.tolist()], sensitivity, 2)


@settings(max_examples=60)
@given(
    some=st.lists(rows, max_size=5), row=rows, other=rows, clip=CLIPS, structure=st.sampled_from((ROOT, STUMP)),
    damping=st.just(0.0) | DAMPINGS,
)  # fmt: skip
def test_a_weighted_row_moves_gains_within_the_range(some, row, other, clip, structure, damping):
    query = asked(structure, clip=clip, damping=damping)
    step = Fraction(2) ** query.grid.exponents[0]
    square = Fraction(query.clip_steps, UNIT) ** 2 / step
    found = [table_of(list(table)).utilities(query, EVERYONE) for table in ([*some, row], [*some, other])]
    before = table_of(some).utilities(query, EVERYONE) if some else np.zeros_like(found[0])
    for change in (found[0] - before, found[1] - before):
        assert -math.ceil(3 * square) <= change.min() <= change.max() <= math.ceil(square)
        assert np.ptp(change, axis=1).max() <= Fraction(query.sensitivity(A).range) / step
    assert np.ptp(found[1] - found[0], axis=1).sum() <= Fraction(query.sensitivity(R).range) / step


# ---- what a weight is ----


@pytest.mark.parametrize("large", ["clip", "drop"])
@pytest.mark.parametrize("n", [1, 30])
def test_weighted_gains_row_by_row(n, large):
    generator = np.random.default_rng(n)
    some = [
        (int(c), float(y), int(w))
        for c, y, w in zip(
            generator.integers(0, CELLS, n),
            generator.choice([-1.0, 0.37, 1.0, math.nan, -0.2], n),
            generator.choice([0, 1, 3, UNIT // 3, UNIT], n),
            strict=True,
        )
    ]
    query, sampled = asked(STUMP, clip=0.9, damping=0.3, large=large), generator.random(n) < 0.5
    for mask in (EVERYONE, sampled):
        found = table_of(some).utilities(query, mask)
        for node in range(2):
            for k, split in enumerate(TESTS.split):
                expected = 0
                for left in (True, False):
                    total, size = 0, 0
                    for i, (cell, label, weight) in enumerate(some):
                        here = (cell >= 2) == node and (cell < split) == left and (not len(mask) or mask[i])
                        if here and not math.isnan(label) and not (large == "drop" and abs(label) > 0.9):
                            gradient = max(-query.clip_steps, min(query.clip_steps, math.trunc(-label * UNIT)))
                            total += math.trunc(Fraction(gradient * weight, UNIT))
                            size += weight
                    if size:
                        gain = Fraction(total**2, UNIT) / (size + query.damping_steps)
                        expected += math.floor(gain / Fraction(2) ** query.grid.exponents[0])
                assert found[node, k] == expected


ALL_QUERIES = [
    LabelMoments(),
    PredictionFit(loss="squared", width=1.5).of(START),
    LeafMoments(loss="squared", clip=0.7).of(STUMP, START),
    LeafCurvatures(clip=0.7).of(STUMP, START),
    LeafRatios(loss="squared", clip=0.7, damping=0.1, weighted=True).of(STUMP, START),
]


def everything(some, *, weighted=True):
    table = table_of(some, weighted=weighted)
    return [*(table.statistic(query, EVERYONE) for query in ALL_QUERIES), table.utilities(asked(damping=0.1), EVERYONE)]


@settings(max_examples=30)
@given(st.lists(signs, min_size=1, max_size=6), signs)
def test_a_row_of_weight_zero_is_an_absent_one(some, row):
    with_it = everything([*some, (*row[:2], 0)])
    for one, other in zip(with_it, everything(some), strict=True):
        np.testing.assert_array_equal(one, other)


@settings(max_examples=30)
@given(st.lists(signs, min_size=1, max_size=6))
def test_rows_of_the_whole_weight_are_rows_without_weights(some):
    whole = [(*row[:2], UNIT) for row in some]
    for one, other in zip(everything(whole), everything(whole, weighted=False), strict=True):
        np.testing.assert_array_equal(one, other)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-64, 64), st.integers(0, 8)), min_size=1, max_size=8))
def test_whole_weights_are_repeated_rows_over_the_bound(some):
    """Labels of whole multiples of the bound's steps: no truncation."""
    weights = [weight for *_, weight in some]
    repeated = [(cell, label / 64, UNIT) for cell, label, weight in some for _ in range(weight)]
    if not repeated:
        return
    encoded = encode_weights(weights, bounded(8), n_rows=len(some))
    weighted = table_of([(cell, label / 64, int(w)) for (cell, label, _), w in zip(some, encoded, strict=True)])
    plain = table_of(repeated, weighted=False)
    for query in (LabelMoments(), LeafMoments(loss="squared", clip=0.5).of(STUMP, START)):
        np.testing.assert_array_equal(8 * weighted.statistic(query, EVERYONE), plain.statistic(query, EVERYONE))
    # Eight times the weights, at eight times the damping, are eight times the gain; each side is truncated for itself.
    scaled = 8 * weighted.utilities(asked(damping=0.25), EVERYONE)
    difference = plain.utilities(asked(damping=2.0), EVERYONE) - scaled
    assert (difference >= -1).all()
    assert (difference < 16).all()


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 3), labels, st.floats(0, 1)), min_size=1, max_size=6))
def test_weights_and_their_bound_scale_together(some):
    """Weight 2 under a bound of 2 is weight 1 under a bound of 1."""
    shares = np.array([share for *_, share in some])
    if not shares.any():
        return
    one, two = (encode_weights(shares * k, bounded(k), n_rows=len(some)) for k in (1.0, 2.0))
    np.testing.assert_array_equal(one, two)


def test_a_filter_charges_a_row_for_its_weighted_contribution():
    """Costs in proportion to the squared norm, a hundred thousand units for the whole: a quarter of it for half."""
    query = LeafMoments(loss="squared", clip=1.0).of(ROOT, START)
    some = [(0, 1.0, UNIT), (0, 1.0, UNIT // 2), (0, 1.0, 0), (0, 0.0, UNIT // 2)]
    costs, per_step = np.array([0.0, 100_000.0, 100_000.0]), 1 / (2 * UNIT**2)
    budgets = RowBudgets(np.full(4, FULL, np.int64), costs, (per_step, per_step))
    table_of(some).statistic(query, EVERYONE, budgets)
    assert (FULL - budgets.left).tolist() == [100_000, 25_000, 0, 12_500]
    curvature = LeafCurvatures(clip=1.0, curvature_scale=2.0).of(ROOT, START)
    budgets = RowBudgets(np.full(4, FULL, np.int64), costs, (2 * per_step, 2 * per_step))
    # At score 0: g = -1/2 and 2 h = 1/2, a squared norm of 1/2.
    table_of([(0, 1.0, w) for *_, w in some]).statistic(curvature, EVERYONE, budgets)
    assert (FULL - budgets.left).tolist() == [50_000, 12_500, 0, 12_500]


def test_a_ratio_says_whether_its_rows_have_weights():
    some = [(0, 1.0, UNIT), (1, -1.0, 3)]
    plain = LeafRatios(loss="squared", clip=1.0, damping=1.0).of(STUMP, START)
    weighted = LeafRatios(loss="squared", clip=1.0, damping=1.0, weighted=True).of(STUMP, START)
    with pytest.raises(RoundViolation, match="weighted=True"):
        table_of(some).reader(plain)
    for table in (table_of(some), table_of(some, weighted=False)):
        table.reader(weighted)(EVERYONE)
    # Of a schema with a bound, also where each row weighs as much as any.
    declared = Table.from_data([[0.0], [1.0]], [0, 1], bounded(1.0), loss="squared", bins=4)
    with pytest.raises(RoundViolation, match="weighted=True"):
        declared.reader(plain)


@pytest.mark.parametrize("damping", [0.01, 0.1, 1.0, 20.0])
def test_a_weighted_row_reaches_the_bound_of_a_ratio(damping):
    """Where the others weigh (sqrt(l (l + 2)) - l) / 2 of a row: beyond the bound of whole rows."""
    query = LeafRatios(loss="squared", clip=1.0, damping=damping, weighted=True).of(ROOT, START)
    others = (0, 1.0, round((math.sqrt(damping * (damping + 2)) - damping) / 2 * UNIT))
    before = table_of([others]).statistic(query, EVERYONE)
    change = Fraction(int((table_of([others, (0, -1.0, UNIT)]).statistic(query, EVERYONE) - before)[0, 0]), UNIT)
    ((bound,),) = query.sensitivity(A).boxes
    assert Fraction(bound) - 3 * Fraction(STEP) <= change <= Fraction(bound)
    plain = LeafRatios(loss="squared", clip=1.0, damping=damping).of(ROOT, START)
    assert change > Fraction(plain.sensitivity(A).boxes[0][0])


def test_classes_may_have_weights():
    schema = Schema.uniform(0.0, 1.0, n_features=1, target=Categorical("y", ("no", "yes")), weight_bound=4)
    table = Table.from_data(
        [[0.0], [0.0], [1.0]], ["no", "yes", "yes"], schema, loss="logistic", bins=4, sample_weight=[4, 1, 2]
    )
    assert table.schema.weight_bound == 4.0
    query = LeafMoments(loss="logistic", clip=1.0).of(ROOT, START)
    assert table.statistic(query, EVERYONE).tolist() == [[7 * UNIT // 4, (4 - 1 - 2) * UNIT // 8]]
