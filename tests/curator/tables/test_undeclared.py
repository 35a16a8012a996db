"""Rows before their schema: exact counts, sensitivities by enumeration, and an encoding that refuses no row."""

import copy
import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator import (
    Categorical,
    Curator,
    KeyCounts,
    LabelCount,
    ListedCounts,
    Numeric,
    Schema,
    TypedColumns,
    UndeclaredTable,
    ValueCounts,
)
from ledgerwood.curator.inputs.encoding import encode_features
from ledgerwood.errors import DrawRefused, InvalidParameter, LedgerError, RoundViolation, SchemaError
from ledgerwood.mechanisms import GaussianStabilityMechanism, SeededRandom, StabilityHistogramMechanism, log_edges

ALL = np.empty(0, dtype=bool)
EDGES = (-1.0, 0.0, 1.0, 4.0)


def table(X, y, *, numeric_target=True):
    return UndeclaredTable.from_data(X, y, TypedColumns.of(X, y, numeric_target=numeric_target))


def test_bins_are_counted_exactly_and_outliers_are_in_the_outermost():
    X = np.array([[-np.inf], [-2.0], [-1.0], [0.0], [0.5], [1.0], [4.0], [9.0], [np.inf], [np.nan]])
    rows = table(X, np.zeros(10))
    counts = rows.reader(ValueCounts(column=0, edges=EDGES))(ALL)
    assert (counts.tolist(), counts.dtype) == ([[3], [2], [4]], np.int64)
    sampled = np.arange(10) < 4
    assert rows.reader(ValueCounts(column=0, edges=EDGES))(sampled).tolist() == [[3], [1], [0]]
    assert rows.reader(ValueCounts(column=1, edges=EDGES))(ALL).tolist() == [[0], [10], [0]]


@pytest.mark.parametrize("edges", [(0.0,), (1.0, 0.0), (0.0, math.nan), (0.0, math.inf)])
def test_edges_must_rise(edges):
    with pytest.raises(InvalidParameter, match="edges"):
        ValueCounts(column=0, edges=edges)


def test_listed_categories_are_counted_exactly_and_others_in_none():
    frame = pd.DataFrame({"word": pd.Series(["a", "b", "a", "c", None, 1, True, "A"], dtype=object)})
    rows = table(frame, np.zeros(8))
    query = ListedCounts(column=0, categories=("b", "a", 1, "z"))
    counts = rows.reader(query)(ALL)
    assert (counts.tolist(), counts.dtype) == ([[1], [2], [2], [0]], np.int64)
    assert rows.reader(query)(np.arange(8) < 2).tolist() == [[1], [1], [0], [0]]
    with pytest.raises(RoundViolation, match="is numeric"):
        rows.reader(ListedCounts(column=1, categories=("a",)))
    with pytest.raises(InvalidParameter, match="distinct"):
        ListedCounts(column=0, categories=("a", "a"))


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_no_neighbour_moves_the_listed_counts_further_than_stated(adjacency):
    values, query = ("a", "b", "other", None), ListedCounts(column=0, categories=("a", "b"))

    def counts(rows):
        return table(pd.DataFrame({"word": pd.Series(rows, dtype=object)}), np.zeros(len(rows))).reader(query)(ALL)

    worst = [0.0, 0.0]
    for rows in (list(rows) for n in (1, 2) for rows in itertools.product(values, repeat=n)):
        if adjacency is Adjacency.REPLACE_ONE:
            neighbours = [[value, *rows[1:]] for value in values]
        elif adjacency is Adjacency.ZERO_OUT:
            neighbours = [[None, *rows[1:]]]
        else:
            neighbours = [rows[1:], *([value, *rows] for value in values)]
        for other in neighbours:
            moved = np.abs(counts(rows) - counts(other)).astype(float)
            worst = [max(worst[0], moved.sum()), max(worst[1], float(np.linalg.norm(moved)))]
    shifts = query.sensitivity(adjacency)
    assert worst == pytest.approx([shifts.l1((1.0,)), shifts.l2((1.0,))], rel=1e-12)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_no_neighbour_moves_the_bins_further_than_stated(adjacency):
    values = (-5.0, -0.5, 0.0, 2.0, math.nan)
    query = ValueCounts(column=0, edges=EDGES)
    tables = [list(rows) for n in (1, 2) for rows in itertools.product(values, repeat=n)]
    worst = [0.0, 0.0]
    for rows in tables:
        if adjacency is Adjacency.REPLACE_ONE:
            neighbours = [[value, *rows[1:]] for value in values]
        elif adjacency is Adjacency.ZERO_OUT:
            neighbours = [[math.nan, *rows[1:]]]
        else:
            neighbours = [[value, *rows] for value in values]
        for other in neighbours:
            counts = [table(np.array(r).reshape(-1, 1), np.zeros(len(r))).reader(query)(ALL) for r in (rows, other)]
            shift = (counts[0] - counts[1]).ravel().astype(float)
            worst = [max(worst[0], np.abs(shift).sum()), max(worst[1], np.sqrt((shift**2).sum()))]
    shifts = query.sensitivity(adjacency)
    assert worst == pytest.approx([shifts.l1((1.0,)), shifts.l2((1.0,))], rel=1e-12)


def test_keys_are_counted_exactly():
    frame = pd.DataFrame({"w": ["a", "b", "a", None]})
    rows = table(frame, [1, 0, 1.0, True], numeric_target=False)
    assert rows.evidence(KeyCounts(column=0))(ALL) == {"a": 2, "b": 1}
    assert rows.evidence(KeyCounts(column=1))(ALL) == {1: 3, 0: 1}
    assert rows.evidence(KeyCounts(column=1))(np.array([True, False, False, False])) == {1: 1, 0: 0}


@pytest.mark.parametrize(
    "ask",
    [
        lambda rows: rows.reader(ValueCounts(column=2, edges=EDGES))(ALL),
        lambda rows: rows.reader(ValueCounts(column=1, edges=EDGES))(ALL),
        lambda rows: rows.reader(LabelCount())(ALL),
        lambda rows: rows.evidence(KeyCounts(column=0))(ALL),
    ],
)
def test_what_the_columns_do_not_have_is_refused(ask):
    with pytest.raises(RoundViolation):
        ask(table(np.zeros((3, 1)), np.zeros(3), numeric_target=False))


def test_rows_stay_with_the_curator():
    rows = table(np.zeros((3, 1)), np.zeros(3))
    for leave in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LedgerError, match="table cannot be"):
            leave(rows)
    with pytest.raises(SchemaError, match="not been estimated"):
        _ = rows.schema
    assert rows.sample(1.0, SeededRandom(1)).size == 0
    assert rows.sample(0.5, SeededRandom(1)).shape == (3,)


def test_shapes_are_checked():
    with pytest.raises(SchemaError, match="inconsistent numbers of samples: X and y"):
        table(np.zeros((3, 1)), np.zeros(2))


NUMBERS = st.one_of(st.floats(allow_infinity=False), st.none())
WORDS = st.one_of(st.sampled_from(["a", "b", "c", "1"]), st.none(), st.integers(-2, 2), st.booleans())


@pytest.mark.slow  # many tables and their neighbours in exact integers
@given(st.lists(st.tuples(NUMBERS, WORDS), min_size=1, max_size=8))
def test_training_rows_get_the_cells_that_the_same_rows_get_in_a_prediction(rows):
    frame = pd.DataFrame(
        {
            "n": pd.Series([n for n, _ in rows], dtype="float64"),
            "w": pd.Series([w for _, w in rows], dtype=object),
        }
    )
    schema = Schema(
        features=(Numeric("n", -1.0, 2.0, missing=True), Categorical("w", ("a", 1, "c", 0), missing=True)),
        target=Numeric("y", 0.0, 1.0),
    )
    bought = table(frame, np.zeros(len(rows))).encoded(schema, loss="squared", bins=8)
    np.testing.assert_array_equal(bought._parts[0].rows.cells, encode_features(frame, schema, bins=8))


def test_labels_are_clamped_and_rows_without_a_class_count_for_nothing():
    X = np.array([[np.inf], [-np.inf], [np.nan], [0.5], [0.5]])
    numeric = Schema(features=(Numeric("x0", 0, 1, missing=True),), target=Numeric("y", 0, 10))
    rows = table(X, [-np.inf, 1e300, np.nan, 5.0, "five"]).encoded(numeric, loss="squared", bins=4)
    np.testing.assert_array_equal(rows._parts[0].rows.targets, [-1.0, 1.0, np.nan, 0.0, np.nan])
    assert rows._parts[0].rows.cells.tolist() == [[3, 0, 4, 2, 2]]
    assert rows.statistic(LabelCount(), ALL)[0] == 3 * 2**20
    classes = Schema(features=numeric.features, target=Categorical("y", ("yes", "no")))
    rows = table(X, ["yes", "no", "maybe", None, 3.5], numeric_target=False).encoded(classes, loss="logistic", bins=4)
    np.testing.assert_array_equal(rows._parts[0].rows.targets, [1.0, -1.0, np.nan, np.nan, np.nan])
    assert rows.statistic(LabelCount(), ALL)[0] == 2 * 2**20


def test_a_schema_of_other_columns_is_refused():
    rows = table(np.zeros((2, 1)), np.zeros(2))
    words = Schema(features=(Categorical("x0", ("a",)),), target=Numeric("y", 0, 1))
    with pytest.raises(SchemaError, match="not of the type of its column"):
        rows.encoded(words, loss="squared", bins=4)
    with pytest.raises(SchemaError, match="the logistic loss cannot learn"):
        rows.encoded(lw.Schema.uniform(0, 1, n_features=1, target=Numeric("y", 0, 1)), loss="logistic", bins=4)


def test_bins_of_rows_that_have_a_schema_are_refused():
    schema = lw.Schema.uniform(0, 1, n_features=1, target=Numeric("y", 0, 1))
    rows = table(np.zeros((2, 1)), np.zeros(2)).encoded(schema, loss="squared", bins=4)
    with pytest.raises(RoundViolation, match="ValueCounts"):
        rows.reader(ValueCounts(column=0, edges=log_edges(-1.0, 1.0, 0.5)))(ALL)


A = Adjacency.ADD_REMOVE
BUDGET = lw.Budget(epsilon=10.0, delta=0.1, adjacency=A)
KEYS = GaussianStabilityMechanism(stddev=2.0, threshold=8)


def curator_over(rows, *events):
    ledger = lw.Ledger(BUDGET, unit=lw.PrivacyUnit.ROW)
    return Curator(rows, ledger.grant(lw.Composed(events), purpose="schema"), SeededRandom(1)), ledger


def words(n=60):
    return table(pd.DataFrame({"w": ["b"] * n + ["a"] * n + ["lone"]}), np.zeros(2 * n + 1))


def test_categories_are_released_for_both_draws_of_their_event():
    curator, ledger = curator_over(words(), KEYS.event(A))
    with curator.open(KEYS.event(A), purpose="words") as round_:
        release = round_.select(KeyCounts(column=0), KEYS, purpose="words")
        assert [key for key, _ in release.value] == ["a", "b"]
        assert all(abs(count - 60) < 20 for _, count in release.value)
        assert (release.randomness, release.receipt.event) == ("test", KEYS.event(A).events[1])
        with pytest.raises(RoundViolation, match="does not hold"):
            round_.select(KeyCounts(column=0), KEYS, purpose="again")
    assert [entry.event for entry in ledger.entries[2:]] == list(KEYS.event(A).events)


def test_a_round_of_a_composition_needs_every_member_in_the_grant():
    gaussian, shown = KEYS.event(A).events
    curator, ledger = curator_over(words(), gaussian, gaussian)
    with pytest.raises(DrawRefused, match="does not hold"):
        curator.open(lw.Composed((gaussian, shown)), purpose="words")
    curator, ledger = curator_over(words(), gaussian, shown)
    with pytest.raises(DrawRefused, match="has no"):
        curator.open(lw.Composed((gaussian, gaussian)), purpose="words")


def test_half_of_the_event_releases_no_categories():
    gaussian, _ = KEYS.event(A).events
    curator, _ = curator_over(words(), KEYS.event(A))
    with curator.open(gaussian, purpose="words") as round_, pytest.raises(RoundViolation, match="does not hold"):
        round_.select(KeyCounts(column=0), KEYS, purpose="words")


@pytest.mark.parametrize(
    ("query", "mechanism"),
    [
        (ValueCounts(column=0, edges=EDGES), KEYS),
        (KeyCounts(column=0), StabilityHistogramMechanism(scale=1.0, threshold=9)),
        (KEYS, KeyCounts(column=0)),
    ],
)
def test_foreign_questions_are_refused(query, mechanism):
    curator, _ = curator_over(words(), KEYS.event(A))
    with curator.open(KEYS.event(A), purpose="words") as round_:
        with pytest.raises(RoundViolation, match="stability histogram|needs a schema"):
            round_.select(query, mechanism, purpose="words")
        round_.select(KeyCounts(column=0), KEYS, purpose="words")


def test_rows_with_a_schema_have_no_categories_to_buy():
    schema = lw.Schema.uniform(0, 1, n_features=1, target=Numeric("y", 0, 1))
    rows = table(np.zeros((2, 1)), np.zeros(2)).encoded(schema, loss="squared", bins=4)
    curator, _ = curator_over(rows, KEYS.event(A))
    with curator.open(KEYS.event(A), purpose="words") as round_, pytest.raises(RoundViolation, match="not a selection"):
        round_.select(KeyCounts(column=0), KEYS, purpose="words")
