"""Weights of classes: what a row counts; exact statistics of neighbours of other classes, and the stated shifts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Categorical, Schema
from ledgerwood.curator import (
    LabelMoments,
    LeafClassGradients,
    LeafCurvatures,
    LeafMoments,
    LeafRatios,
    PredictionFit,
    ScoreCounts,
    Table,
    sorted_weights,
)
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import RoundViolation
from ledgerwood.verification import check_sensitivity

A, Z, R = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
UNIT = 2**20
EVERYONE = np.empty(0, dtype=np.bool_)
STUMP = TreeStructure(feature=np.array([0], np.int32), split=np.array([2], np.uint16), equals=np.array([False]))
CLASSES = ("c", "a", "b")


def schema_of(weights, bound=None):
    target = Categorical("y", CLASSES[: len(weights)], weights=weights)
    return Schema.uniform(0.0, 1.0, n_features=1, target=target, weight_bound=bound)


def table_of(rows, weights, bound=None):
    """Of rows (value, class, own weight)."""
    X, y = np.array([[row[0]] for row in rows]).reshape(-1, 1), [row[1] for row in rows]
    own = None if bound is None else [row[2] for row in rows]
    return Table.from_data(X, y, schema_of(weights, bound), loss="logistic", bins=4, sample_weight=own)


def counted(rows, weights, bound=None):
    """Rows of each half of the range, as a statistic of leaves counts them, in steps."""
    query = LeafMoments(loss="logistic", clip=1.0).of(STUMP, Ensemble(initial_score=0.0), positive=0)
    return table_of(rows, weights, bound).statistic(query, EVERYONE)[:, 0].tolist()


def test_a_row_counts_as_its_share_of_the_largest_weight():
    rows = [(0.1, "c", 1), (0.2, "a", 1), (0.9, "b", 1), (0.9, "b", 1), (0.9, "no class", 1)]
    assert counted(rows, (1.0, 4.0, 8.0)) == [UNIT // 8 + UNIT // 2, 2 * UNIT]
    assert counted(rows, (2.0, 2.0, 2.0)) == [2 * UNIT, 2 * UNIT]
    assert sorted_weights(schema_of((1.0, 4.0, 8.0)).target).tolist() == [0.5, 1.0, 0.125]  # a, b, c


def test_a_rows_own_weight_is_multiplied():
    rows = [(0.1, "c", 4.0), (0.1, "c", 1.0), (0.9, "a", 2.0), (0.9, "a", 9.0)]
    assert counted(rows, (1.0, 2.0), bound=4.0) == [UNIT // 2 + UNIT // 8, UNIT // 2 + UNIT]


def test_other_units_of_all_weights_are_the_same_weights():
    rows = [(0.1, "c", 1), (0.2, "a", 1), (0.9, "b", 1)]
    for factor in (2.0**-30, 4.0, 2.0**900):
        assert counted(rows, tuple(factor * w for w in (1.0, 3.0, 7.0))) == counted(rows, (1.0, 3.0, 7.0))


def weighed(classes):
    return st.tuples(*[st.sampled_from((1.0, 1024.0)) | st.floats(1.0, 1024.0)] * classes)


def rows_of(classes):
    labels = st.sampled_from([*CLASSES[:classes], "no class"])
    return st.tuples(st.sampled_from((0.0, 0.4, 1.0)), labels, st.sampled_from((0.0, 1.0, 4.0)) | st.floats(0, 4))


CLIPS = st.sampled_from((0.1, 0.25, 1 / 3, 1.0))
STARTS = st.builds(Ensemble, initial_score=st.sampled_from((0.0, 0.5, -1.0, 40.0)) | st.floats(-2, 2))


def leaves(kind, **more):
    return st.builds(kind.of, st.builds(kind, clip=CLIPS, **more), st.just(STUMP), STARTS)


QUERIES = {
    "moments": (2, leaves(LeafMoments, loss=st.just("logistic"))),
    "curvatures": (2, leaves(LeafCurvatures, curvature_scale=st.floats(0.01, 3.33))),
    "ratios": (
        2,
        leaves(LeafRatios, loss=st.just("logistic"), damping=st.sampled_from((0.1, 1.0)), weighted=st.just(True)),
    ),
    "all classes": (
        3,
        st.builds(
            LeafClassGradients.of,
            st.builds(LeafClassGradients, classes=st.just(3), clip=CLIPS | st.just(2.0)),
            st.just(STUMP),
            st.builds(Ensemble.of_classes, st.tuples(*[st.floats(-3, 3)] * 3)),
        ),
    ),
    "label moments": (2, st.just(LabelMoments())),
    "hits": (2, st.builds(PredictionFit.of, st.just(PredictionFit(loss="logistic", width=1.0)), STARTS)),
    "score counts": (2, st.builds(ScoreCounts.of, st.just(ScoreCounts(edges=(0.0,))), STARTS)),
}


def require_norms(shift, sensitivity, columns):
    """Exactly, at scales of the noise that make one or the other column costly; all classes have one scale."""
    for first, second in ((1.0, 1.0), (1e-3, 1.0), (1.0, 1e-3), (0.7, 3.1)):
        scales = (first, *[second] * (columns - 1))
        moves = [pair for place in shift for pair in zip(place.tolist(), scales, strict=True)]
        scaled = [abs(Fraction(d, UNIT)) / Fraction(s) for d, s in moves]
        assert sum(d * d for d in scaled) <= Fraction(sensitivity.l2(scales)) ** 2
        assert sum(scaled) <= Fraction(sensitivity.l1(scales))


@pytest.mark.slow_after(2)  # many tables and their neighbours in exact integers
@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=60)
@given(data=st.data())
def test_a_row_of_any_class_stays_in_the_shift_set(name, data):
    """A replaced row goes from a class of one weight to a class of another, or to none."""
    classes, queries = QUERIES[name]
    query, weights = data.draw(queries), data.draw(weighed(classes))
    bound, kinds = data.draw(st.sampled_from((None, 4.0))), rows_of(classes)
    some, row = data.draw(st.lists(kinds, min_size=1, max_size=6)), data.draw(kinds)
    place, columns = data.draw(st.integers(0, len(some) - 1)), query.grid.columns

    def value(rows):
        return table_of(rows, weights, bound).statistic(query, EVERYONE).reshape(-1, columns)

    before = value(some)
    for adjacency in (A, Z):
        require_norms(value([*some, row]) - before, query.sensitivity(adjacency), columns)
    require_norms(value([*some[:place], row, *some[place + 1 :]]) - before, query.sensitivity(R), columns)


@pytest.mark.parametrize("adjacency", [A, R])
@pytest.mark.parametrize("weights", [(1.0, 9.0), (9.0, 1.0)])
def test_a_search_comes_up_to_the_sensitivity_but_not_beyond(adjacency, weights):
    query = LeafCurvatures(clip=1.0, curvature_scale=2.0).of(STUMP, Ensemble(initial_score=0.3))
    found = check_sensitivity(query, schema=schema_of(weights), adjacency=adjacency, bins=4, evaluations=400)
    assert found.verdict == "not refuted", found
    assert 0.5 < found.ratio <= 1.0


def test_weights_that_grow_with_the_class_break_a_claim_that_forgets_them():
    """Weights that are not scaled to 1: what the search is there for."""

    def summed(data):
        _, y = data
        return float(sum({"c": 1.0, "a": 5.0}.get(label, 0.0) for label in y))

    plain = schema_of((1.0, 5.0))
    found = check_sensitivity(summed, claimed=1.0, schema=plain, adjacency=A, evaluations=200)
    assert found.verdict == "refuted"


@pytest.mark.parametrize("n", [0, 2], ids="{} rows".format)
def test_whole_units_and_ratios_say_what_they_do_not_support(n):
    """Whether there are rows or not: a refusal would tell of the first one."""
    table = table_of([(0.1, "c", 1), (0.9, "a", 1)][:n], (1.0, 2.0))
    with pytest.raises(RoundViolation, match="weighted=True"):
        table.reader(LeafRatios(loss="logistic", clip=1.0, damping=1.0).of(STUMP, Ensemble(initial_score=0.0)))
