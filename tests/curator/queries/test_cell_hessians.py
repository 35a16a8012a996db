"""Hessians by cell: plain Python's, between all neighbours within the stated norms, in any number of parts."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Categorical, Numeric, Schema
from ledgerwood.curator import CellCounts, CellHessians, Table, hessian_shifts
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation

A, Z, R = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
EVERYONE = np.empty(0, dtype=np.bool_)
FEATURES = (Numeric("a", 0.0, 1.0, missing=True), Categorical("b", ("x", "y")), Numeric("c", 0.0, 1.0))
NUMBERS = Schema(features=FEATURES, target=Numeric("t", -1.0, 1.0))
CLASSES = Schema(features=FEATURES, target=Categorical("t", ("k0", "k1", "k2")))
STUMP = TreeStructure.root().deeper(SplitTests.every(NUMBERS.cells(4)).taken(np.array([2])))
START = Ensemble(initial_score=0.0)
GROWN = START.extended(Tree(structure=STUMP, values=np.array([0.75, -1.5])))
STEPS = 2**20
COUNTS = CellCounts(features=(2, 0), cells=4)
# A row: the cell of "a" (4: missing), of "b", of "c", target, class, weight.
ROWS = st.tuples(
    st.integers(0, 4), st.integers(0, 2), st.integers(0, 3), st.sampled_from((-1.0, -0.3, 0.0, 1.0, math.nan)),
    st.integers(-1, 2), st.sampled_from((0, 1, STEPS // 3, STEPS)),
)  # fmt: skip
WORLDS = st.sampled_from((("squared", "numbers", None), ("logistic", "classes", 0), ("logistic", "classes", 2)))


def cells_of(rows):
    return np.array([row[:3] for row in rows], dtype=np.uint8).reshape(-1, 3).T.copy()


def table_of(rows, kind="numbers", *, weighted=False):
    weights = np.array([row[5] for row in rows], np.int32) if weighted else np.empty(0, np.int32)
    if kind == "classes":
        codes = np.array([row[4] for row in rows], np.int32)
        return Table(schema=CLASSES, cells=cells_of(rows), classes=codes, weights=weights)
    return Table(
        schema=NUMBERS, cells=cells_of(rows), targets=np.array([row[3] for row in rows], float), weights=weights
    )


def query_of(loss, ensemble, positive=None):
    return CellHessians(counts=COUNTS, loss=loss).of(ensemble, positive=positive)


def by_hand(query, rows, kind, weighted, sampled):
    sums = [0] * 8
    for i, row in enumerate(rows):
        known = row[4] >= 0 if kind == "classes" else math.isfinite(row[3])
        if (len(sampled) and not sampled[i]) or not known:
            continue
        steps = STEPS
        if query.statistic.loss == "logistic":
            p = 1.0 / (1.0 + math.exp(-query.ensemble.scores(cells_of([row]))[0]))
            steps = math.trunc(p * (1.0 - p) * STEPS)
        if weighted:
            steps = math.trunc(Fraction(steps * row[5], STEPS))
        for place, feature in enumerate(COUNTS.features):
            if row[feature] < COUNTS.cells:
                sums[place * COUNTS.cells + row[feature]] += steps
    return [[each] for each in sums]


def require_within(shift, query, adjacency):
    """Exactly: the L1 and the L2 norm over all cells."""
    sensitivity = query.sensitivity(adjacency)
    assert sum(abs(each) for each in shift) <= Fraction(sensitivity.l1((1.0,))) * STEPS
    assert sum(each**2 for each in shift) <= (Fraction(sensitivity.l2((1.0,))) * STEPS) ** 2


@settings(max_examples=60, deadline=None, derandomize=True)
@given(world=WORLDS, ensemble=st.sampled_from((START, GROWN)), weighted=st.booleans(), data=st.data())
def test_the_sums_are_plain_python_s_and_neighbours_are_near(world, ensemble, weighted, data):
    loss, kind, positive = world
    rows = data.draw(st.lists(ROWS, min_size=1, max_size=7))
    query = query_of(loss, ensemble, positive)

    def sums(of, sampled=EVERYONE):
        found = table_of(of, kind, weighted=weighted).statistic(query, sampled)
        assert found.tolist() == by_hand(query, of, kind, weighted, sampled)
        return [each for (each,) in found.tolist()]

    sums(rows, np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), np.bool_))
    before, row, place = sums(rows), data.draw(ROWS), data.draw(st.integers(0, len(rows) - 1))
    for after, adjacencies in ((sums([*rows[:place], row, *rows[place:]]), (A, Z)),
                               (sums([*rows[:place], row, *rows[place + 1 :]]), (R,))):  # fmt: skip
        for adjacency in adjacencies:
            require_within([b - a for a, b in zip(before, after, strict=True)], query, adjacency)


@pytest.mark.parametrize(("loss", "largest"), [("logistic", 0.25), ("squared", 1.0)])
def test_the_norms_are_attained(loss, largest):
    query = query_of(loss, START)
    row, other = (0, 0, 2, 1.0, 0, 0), (1, 0, 3, -1.0, 0, 0)
    empty, one, two = (table_of(rows).statistic(query, EVERYONE)[:, 0] / STEPS for rows in ([], [row], [other]))
    added, replaced = np.abs(one - empty), np.abs(one - two)
    assert added.sum() == query.sensitivity(A).l1((1.0,)) == 2 * largest
    assert query.sensitivity(A).l2((1.0,)) == pytest.approx(math.sqrt((added**2).sum()), rel=1e-15)
    assert replaced.sum() == query.sensitivity(R).l1((1.0,)) == 4 * largest
    assert query.sensitivity(R).l2((1.0,)) == pytest.approx(math.sqrt((replaced**2).sum()), rel=1e-15)
    assert query.sensitivity(A) == hessian_shifts(2, A, loss)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.9, 1.0])
def test_parts_add_up_and_of_the_squared_loss_rows_are_counted(loss, rate):
    generator = np.random.default_rng(3)
    rows = [tuple(row) for row in np.column_stack([
        *(generator.integers(0, top, 400) for top in (5, 3, 4)), generator.choice([-1.0, 1.0], 400), np.zeros(400),
        np.zeros(400)]).tolist()]  # fmt: skip
    sampled = generator.random(400) < rate
    query = query_of(loss, GROWN)
    whole = table_of(rows).statistic(query, sampled)
    parts = [table_of(rows[at : at + 130]).statistic(query, sampled[at : at + 130]) for at in range(0, 400, 130)]
    np.testing.assert_array_equal(sum(parts), whole)
    if loss == "squared":
        np.testing.assert_array_equal(whole, table_of(rows).statistic(COUNTS, sampled) * STEPS)


def test_what_cannot_be_asked_is_refused():
    for wrong, name in (({"loss": "hinge"}, "loss='hinge'"), ({"counts": None}, "counts=None")):
        with pytest.raises(InvalidParameter, match=name):
            CellHessians(**{"counts": COUNTS, "loss": "logistic", **wrong})
    table, classes = table_of([]), table_of([], "classes")
    beyond = CellHessians(counts=CellCounts(features=(3,), cells=2), loss="squared")
    for reads, query, said in (
        (table, beyond.of(START), "features outside 0..2"),
        (classes, query_of("logistic", START), "3 classes"),
        (classes, query_of("logistic", START, 3), "class 3"),
    ):
        with pytest.raises(RoundViolation, match=said):
            reads.reader(query)
