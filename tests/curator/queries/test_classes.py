"""Targets of several classes: each leaf query tells one class from the others, with scores of its own."""

import math

import numpy as np
import pytest

from ledgerwood import Adjacency, Categorical, Numeric, Schema
from ledgerwood.curator import (
    BinHessians,
    CandidateBins,
    LabelMoments,
    LeafCounts,
    LeafCurvatures,
    LeafMoments,
    LeafRatios,
    ScoreCounts,
    SplitGains,
    Table,
)
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation, SchemaError

SCHEMA = Schema(features=(Numeric("x", 0.0, 4.0),), target=Categorical("kind", ("pear", "apple", "fig")))
X = np.array([[0.5], [1.5], [2.5], [3.5], [0.1], [3.9]])
Y = np.array(["pear", "apple", "fig", "fig", "apple", "pear"])
CLASSES = ("apple", "fig", "pear")
TREE = TreeStructure(feature=np.array([0], np.int32), split=np.array([2], np.uint16), equals=np.array([False]))
EVERYONE = np.empty(0, dtype=np.bool_)
UNIT = 2**20


def table():
    return Table.from_data(X, Y, SCHEMA, loss="logistic", bins=4)


def grown(value):
    return Ensemble(initial_score=0.25, trees=(Tree(structure=TREE, values=np.array([value, -value])),))


def sums_by_hand(positive, ensemble):
    out = np.zeros((2, 2), dtype=np.int64)
    for value, label in zip(X[:, 0], Y, strict=True):
        leaf = 0 if value < 2.0 else 1
        sign = 1.0 if label == CLASSES[positive] else -1.0
        score = ensemble.initial_score + sum(tree.values[leaf] for tree in ensemble.trees)
        gradient = -sign / (1.0 + math.exp(sign * score))
        out[leaf] += (UNIT, int(gradient * UNIT))
    return out


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_each_class_is_told_from_the_others_with_scores_of_its_own():
    rows = table()
    for value in (0.0, 0.75):  # by turns, so that a class would find the scores of another
        for positive in (0, 1, 2):
            ensemble = grown(value * (positive + 1))
            query = LeafMoments(loss="logistic", clip=1.0).of(TREE, ensemble, positive=positive)
            found = rows.reader(query)(EVERYONE)
            assert np.abs(found - sums_by_hand(positive, ensemble)).max() <= 3  # truncation of float gradients


def test_of_two_classes_the_second_one_is_positive_unless_the_first_one_is_named():
    schema = Schema(features=SCHEMA.features, target=Categorical("kind", ("b", "a")))
    rows = Table.from_data(X, np.where(X[:, 0] < 2.0, "a", "b"), schema, loss="logistic", bins=4)

    def gradients(positive):
        query = LeafMoments(loss="logistic", clip=1.0).of(TREE, Ensemble(initial_score=0.0), positive=positive)
        return rows.reader(query)(EVERYONE)[:, 1].tolist()

    assert gradients(None) == gradients(1) == [3 * UNIT // 2, -3 * UNIT // 2]
    assert gradients(0) == [-3 * UNIT // 2, 3 * UNIT // 2]


def test_what_a_query_of_one_class_may_cost_does_not_depend_on_the_class():
    for adjacency in Adjacency:
        costs = {
            LeafCurvatures(clip=1.0).of(TREE, Ensemble(initial_score=0.0), positive=positive).sensitivity(adjacency)
            for positive in (None, 0, 2)
        }
        assert len(costs) == 1


def test_a_class_that_is_not_there_or_not_named_is_refused_before_a_row_is_read():
    rows, none = table(), Ensemble(initial_score=0.0)
    wrong, place = {"clip": 1.0}, (TREE, none)
    with pytest.raises(RoundViolation, match="class 3 is not one of the table's 3"):
        rows.reader(LeafCurvatures(**wrong).of(*place, positive=3))
    for query in (LeafCurvatures(**wrong).of(*place), LeafMoments(**wrong, loss="squared").of(*place), LabelMoments()):
        with pytest.raises(RoundViolation, match="3 classes: a query names the positive one"):
            rows.reader(query)
    tests = SplitTests.every([FeatureCells(ordered=4, equality=())])
    with pytest.raises(RoundViolation, match="3 classes"):
        rows.evidence(
            SplitGains(
                structure=TreeStructure.root(), ensemble=none, loss="squared", clip=1.0, damping=1.0, tests=tests
            )
        )
    assert rows.reader(LeafCounts().of(TREE))(EVERYONE).tolist() == [[3], [3]]
    numbers = Schema(features=SCHEMA.features, target=Numeric("y", 0.0, 1.0))
    with pytest.raises(RoundViolation, match="class 0 is not one of the table's 0"):
        Table.from_data(X, np.zeros(6), numbers, loss="squared", bins=4).reader(
            LeafCurvatures(**wrong).of(*place, positive=0)
        )
    for bad in (-1, 0.5, True, "fig"):
        with pytest.raises(InvalidParameter, match="positive"):
            LeafCurvatures(**wrong).of(*place, positive=bad)


def test_a_label_that_is_no_class_counts_for_none_and_one_class_is_no_target():
    rows = Table.from_data(X, np.where(X[:, 0] < 2, "plum", "fig"), SCHEMA, loss="logistic", bins=4)
    assert (rows._parts[0].rows.classes < 0).tolist() == (X[:, 0] < 2).tolist()
    alone = Schema(features=SCHEMA.features, target=Categorical("kind", ("fig",)))
    with pytest.raises(SchemaError, match="at least 2 are needed"):
        Table.from_data(X, np.full(6, "fig"), alone, loss="logistic", bins=4)


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_a_class_is_kept_as_the_whole_number_that_was_checked():
    """A number of the caller's own would be compared with the classes of all rows, and could keep them."""
    seen = []

    class Curious(int):
        __array_ufunc__ = None
        __hash__ = int.__hash__

        def __eq__(self, other):
            seen.append(other)
            return int(self) == other

    for kind in (LeafMoments, LeafCurvatures, LeafRatios):
        own = {LeafMoments: {"loss": "logistic"}, LeafRatios: {"loss": "logistic", "damping": 1.0}}.get(kind, {})
        query = kind(clip=1.0, **own).of(TREE, grown(1.0), positive=Curious(1))
        table().reader(query)(EVERYONE)
        assert type(query.positive) is int
    score = ScoreCounts(edges=(0.0,)).of(grown(1.0), positive=Curious(1))
    table().reader(score)(EVERYONE)
    bins = BinHessians(bins=CandidateBins.of(SCHEMA.cells(4))).of(grown(1.0), positive=Curious(1))
    table().reader(bins)(EVERYONE)
    assert not any(isinstance(other, np.ndarray) for other in seen)
    with pytest.raises(InvalidParameter, match="positive"):
        LeafRatios(loss="logistic", clip=1.0, damping=1.0).of(TREE, grown(1.0), positive=-1)
