"""The exact statistics of neighbouring tables, against the shift sets that their queries declare; and the row state."""

import copy
import dataclasses
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Categorical, Numeric, Schema
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
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.curator.tables.trees import Table
from ledgerwood.curator.views import tree_rows
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.errors import LedgerError, RoundViolation, SchemaError
from ledgerwood.mechanisms import BallShifts, SeededRandom

UNIT = 2**20
ALL_ROWS = np.empty(0, dtype=np.bool_)
CELLS = 5
N_FEATURES = 3
SCHEMA = Schema.uniform(0.0, 1.0, n_features=N_FEATURES, target=Numeric("y", -1.0, 1.0))
CLIPS = (STEP, 0.1, 0.25, 1 / 3, 1.0, 2.0, 256.0)
EXTREMES = (0.0, 0.3, -0.7, 1e-9, 40.0, -40.0, 1e3, -1e3, 1e308, -1e308)


def make_table(rows, dtype=np.uint8):
    cells = np.array([row[0] for row in rows], dtype=dtype).reshape(-1, N_FEATURES).T.copy()
    return Table(schema=SCHEMA, cells=cells, targets=np.array([row[1] for row in rows], dtype=np.float64))


def structure_of(feature, split, equals):
    return TreeStructure(
        feature=np.array(feature, np.int32), split=np.array(split, np.uint16), equals=np.array(equals, np.bool_)
    )


def statistic(rows, query, sampled=ALL_ROWS, dtype=np.uint8):
    return make_table(rows, dtype).statistic(query, sampled)


@st.composite
def structures(draw):
    inner = 2 ** draw(st.integers(0, 3)) - 1
    return structure_of(
        draw(st.lists(st.integers(0, N_FEATURES - 1), min_size=inner, max_size=inner)),
        draw(st.lists(st.integers(0, CELLS), min_size=inner, max_size=inner)),
        draw(st.lists(st.booleans(), min_size=inner, max_size=inner)),
    )


scores = st.sampled_from(EXTREMES) | st.floats(-3, 3)


@st.composite
def ensembles(draw):
    ensemble = Ensemble(initial_score=draw(scores))
    for _ in range(draw(st.integers(0, 3))):
        structure = draw(structures())
        values = draw(st.lists(scores, min_size=structure.n_leaves, max_size=structure.n_leaves))
        ensemble = ensemble.extended(Tree(structure=structure, values=np.array(values)))
    return ensemble


def rows_of(loss):
    # NaN cannot pass the owner's check; a row that carries it all the same must count 0, and not raise.
    labels = st.sampled_from((-1.0, 1.0, math.nan))
    if loss == "squared":
        labels |= st.sampled_from((0.0, 5e-324, math.nextafter(1.0, 0.0), -STEP / 3)) | st.floats(-1, 1)
    return st.tuples(st.tuples(*[st.integers(0, CELLS)] * N_FEATURES), labels)


@st.composite
def leaf_queries(draw, kind):
    place = draw(structures()), draw(ensembles())
    common = {"clip": draw(st.sampled_from(CLIPS))}
    match kind:
        case "squared" | "logistic":
            return LeafMoments(loss=kind, **common).of(*place)
        case "curvature":
            scale = draw(st.sampled_from((1e-3, 0.5, 2.0, 2.9, 3.0, 3.33)) | st.floats(0.01, 3.33))
            return LeafCurvatures(curvature_scale=scale, **common).of(*place)
    damping = draw(st.sampled_from((STEP, 0.5, 1.0, 15.0, 1e6)) | st.floats(STEP, 100.0))
    common["leaf_clip"] = draw(st.none() | st.sampled_from(CLIPS))
    return LeafRatios(loss="squared" if kind == "ratio" else "logistic", damping=damping, **common).of(*place)


def fits(loss):
    widths = st.sampled_from((2.0**-10, 0.1, 0.5, 1 / 3, 2.0))
    return st.builds(PredictionFit.of, st.builds(PredictionFit, loss=st.just(loss), width=widths), ensembles())


QUERIES = {
    "prediction fit, squared": ("squared", fits("squared")),
    "prediction fit, logistic": ("logistic", fits("logistic")),
    "label moments": ("squared", st.just(LabelMoments())),
    "label count": ("squared", st.just(LabelCount())),
    "label sum": ("squared", st.just(LabelSum())),
    "leaf moments, squared": ("squared", leaf_queries("squared")),
    "leaf moments, logistic": ("logistic", leaf_queries("logistic")),
    "leaf curvatures": ("logistic", leaf_queries("curvature")),
    "leaf ratios, squared": ("squared", leaf_queries("ratio")),
    "leaf ratios, logistic": ("logistic", leaf_queries("logistic ratio")),
}


def shift_between(one, other):
    """The difference modulo 2**64, as exact fractions of a unit, shape (places, columns)."""
    difference = (one - other).reshape(-1, one.shape[-1])
    return [[Fraction(value, UNIT) for value in place] for place in difference.tolist()]


def require_in_shift_set(shift, sensitivity, columns):
    """Exactly: every norm that the shift set states, at scales that make one or the other column dear."""
    for weights in ((1.0,) * columns, (1e-3, 1.0)[-columns:], (1.0, 1e-3)[:columns], (0.7, 3.1)[:columns]):
        scaled = [[abs(d) / Fraction(w) for d, w in zip(place, weights, strict=True)] for place in shift]
        assert sum(d * d for place in scaled for d in place) <= Fraction(sensitivity.l2(weights)) ** 2
        assert sum(d for place in scaled for d in place) <= Fraction(sensitivity.l1(weights))


@pytest.mark.slow  # many tables and their neighbours in exact integers
@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=80)
@given(data=st.data())
def test_adding_or_removing_a_row_stays_in_the_shift_set(name, data):
    loss, queries = QUERIES[name]
    query = data.draw(queries)
    rows = data.draw(st.lists(rows_of(loss), min_size=1, max_size=7))
    place = data.draw(st.integers(0, len(rows)))
    row = data.draw(rows_of(loss) | st.sampled_from(rows))  # a duplicate of another row, too
    # The coins of the rows that both tables share are the same; the row in question is in the sample.
    coins = data.draw(st.none() | st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    without = ALL_ROWS if coins is None else np.array(coins)
    with_it = ALL_ROWS if coins is None else np.insert(without, place, True)
    neighbour = [*rows[:place], row, *rows[place:]]
    shift = shift_between(statistic(neighbour, query, with_it), statistic(rows, query, without))
    assert sum(any(d) for d in shift) <= 1, "one row is in one leaf"
    for adjacency in (Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT):
        sensitivity = query.sensitivity(adjacency)
        require_in_shift_set(shift, sensitivity, query.grid.columns)
        if not isinstance(sensitivity, BallShifts):
            (box,) = sensitivity.boxes
            assert all(abs(d) <= Fraction(b) for moved in shift for d, b in zip(moved, box, strict=True))


@pytest.mark.slow  # many tables and their neighbours in exact integers
@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=80)
@given(data=st.data())
def test_replacing_a_row_stays_in_the_shift_set(name, data):
    loss, queries = QUERIES[name]
    query = data.draw(queries)
    rows = data.draw(st.lists(rows_of(loss), min_size=1, max_size=7))
    place = data.draw(st.integers(0, len(rows) - 1))
    other = data.draw(rows_of(loss))
    neighbour = [*rows[:place], other, *rows[place + 1 :]]
    shift = shift_between(statistic(neighbour, query), statistic(rows, query))
    assert sum(any(d) for d in shift) <= 2, "a row leaves one leaf and enters another"
    require_in_shift_set(shift, query.sensitivity(Adjacency.REPLACE_ONE), query.grid.columns)


@pytest.mark.parametrize("clip", [0.25, 1.0])
def test_a_replaced_row_reaches_the_stated_norms(clip):
    structure = structure_of([0], [1], [False])
    query = LeafMoments(loss="squared", clip=clip).of(structure, Ensemble(initial_score=0.0))
    low, high = [((0, 0, 0), 1.0)], [((4, 0, 0), 1.0)]
    flipped = [((0, 0, 0), -1.0)]
    two_leaves = shift_between(statistic(low, query), statistic(high, query))
    one_leaf = shift_between(statistic(low, query), statistic(flipped, query))
    assert two_leaves == [[1, -Fraction(clip)], [-1, Fraction(clip)]]
    assert one_leaf == [[0, -2 * Fraction(clip)], [0, 0]]
    sensitivity = query.sensitivity(Adjacency.REPLACE_ONE)
    one_row = query.sensitivity(Adjacency.ADD_REMOVE)
    # Where the count is dear, the two-leaf case is worth sqrt(2) of one row; where it is cheap, one leaf is worth 2.
    assert sensitivity.l2((1.0, 1e9)) == pytest.approx(math.sqrt(2) * one_row.l2((1.0, 1e9)), rel=1e-12)
    assert sensitivity.l2((1e9, 1.0)) == pytest.approx(2 * one_row.l2((1e9, 1.0)), rel=1e-12)
    attained = math.sqrt(float(sum(d * d for place in two_leaves for d in place)))
    assert attained == pytest.approx(math.sqrt(2) * one_row.l2((1.0, 1.0)), rel=1e-12)


def test_curvature_reaches_its_ball_where_the_gradient_saturates():
    sure_and_wrong = Ensemble(initial_score=1e3)
    query = LeafCurvatures(clip=1.0).of(structure_of([], [], []), sure_and_wrong)
    assert statistic([((0, 0, 0), -1.0)], query).tolist() == [[0, UNIT]]
    assert query.sensitivity(Adjacency.ADD_REMOVE).radius == pytest.approx(1.0, rel=1e-12)


def leaf_by_hand(row, structure):
    node, inner = 0, len(structure.feature)
    while node < inner:
        cell = row[structure.feature[node]]
        left = cell == structure.split[node] if structure.equals[node] else cell < structure.split[node]
        node = 2 * node + (1 if left else 2)
    return node - inner


def score_by_hand(row, ensemble):
    score = ensemble.initial_score
    for tree in ensemble.trees:
        score += float(tree.values[leaf_by_hand(row, tree.structure)])
    return score


@pytest.mark.slow  # many tables and their neighbours in exact integers
@given(rows=st.lists(rows_of("squared"), min_size=1, max_size=7), query=leaf_queries("squared"))
def test_leaf_moments_are_what_plain_python_finds(rows, query):
    expected = [[0, 0] for _ in range(query.structure.n_leaves)]
    for cells, target in rows:
        gradient = score_by_hand(cells, query.ensemble) - target
        if math.isfinite(gradient):
            leaf = expected[leaf_by_hand(cells, query.structure)]
            leaf[0] += UNIT
            leaf[1] += math.trunc(Fraction(min(max(gradient, -query.statistic.clip), query.statistic.clip)) * UNIT)
    for dtype in (np.uint8, np.uint16):
        assert statistic(rows, query, dtype=dtype).tolist() == expected


@pytest.mark.slow  # many tables and their neighbours in exact integers
@given(rows=st.lists(rows_of("logistic"), min_size=1, max_size=7), query=leaf_queries("curvature"))
def test_leaf_curvatures_are_what_plain_python_finds(rows, query):
    expected = np.zeros((query.structure.n_leaves, 2))
    for cells, target in rows:
        score = score_by_hand(cells, query.ensemble)
        if math.isnan(score) or math.isnan(target):
            continue
        margin = target * score
        size = 1.0 / (1.0 + math.exp(margin)) if margin < 700 else 0.0
        leaf = leaf_by_hand(cells, query.structure)
        expected[leaf] += query.statistic.curvature_scale * size * (1 - size), -target * min(size, query.statistic.clip)
    # Each row loses less than a step by truncation, and at most a few more to the exact norm check.
    found = statistic(rows, query) * STEP
    np.testing.assert_allclose(found, expected, rtol=0, atol=len(rows) * 6 * STEP)


@pytest.mark.slow  # many tables and their neighbours in exact integers
@given(rows=st.lists(rows_of("squared"), min_size=1, max_size=7), query=leaf_queries("ratio"))
def test_leaf_ratios_are_truncated_toward_zero_and_clipped(rows, query):
    moments = LeafMoments(loss=query.statistic.loss, clip=query.statistic.clip).of(query.structure, query.ensemble)
    damping = Fraction(math.floor(Fraction(query.statistic.damping) * UNIT), UNIT)
    ratios = [
        Fraction(total, UNIT) / (Fraction(count, UNIT) + damping) for count, total in statistic(rows, moments).tolist()
    ]
    # The clip's whole steps: to clip before the truncation is the same.
    most = Fraction(math.floor(Fraction(query.statistic.leaf_clip or 256) * UNIT), UNIT)
    expected = [[math.trunc(min(max(ratio, -most), most) * UNIT)] for ratio in ratios]
    assert statistic(rows, query).tolist() == expected


@pytest.mark.slow  # many tables and their neighbours in exact integers
@given(rows=st.lists(rows_of("squared"), min_size=2, max_size=7), query=leaf_queries("squared"), data=st.data())
def test_the_order_of_rows_does_not_matter(rows, query, data):
    shuffled = data.draw(st.permutations(rows))
    np.testing.assert_array_equal(statistic(rows, query), statistic(shuffled, query))


@pytest.mark.slow  # many tables and their neighbours in exact integers
@given(rows=st.lists(rows_of("squared"), min_size=1, max_size=7), query=leaf_queries("squared"), data=st.data())
def test_cached_scores_are_those_of_the_named_ensemble(rows, query, data):
    """One table asked again and again, with longer, shorter and foreign ensembles, answers as a fresh one does."""
    table = make_table(rows)
    ensemble, asked = query.ensemble, []
    for _ in range(4):
        asked.append(ensemble)
        # The routed shortcut: the tree that is added is the one that was asked for last.
        values = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=query.structure.n_leaves, max_size=8)))
        ensemble = ensemble.extended(Tree(structure=query.structure, values=values[: query.structure.n_leaves]))
    asked += [query.ensemble, ensemble, data.draw(ensembles()), ensemble]
    for each in asked:
        question = LeafMoments(loss="squared", clip=256.0).of(query.structure, each)
        np.testing.assert_array_equal(table.statistic(question, ALL_ROWS), statistic(rows, question))


def test_a_walk_that_was_interrupted_leaves_no_tree_routed(monkeypatch):
    rows = [((0, 0, 0), 1.0), ((4, 0, 0), -1.0)]
    structure, start = structure_of([0], [2], [False]), Ensemble(initial_score=0.0)
    first = LeafMoments(loss="squared", clip=4.0).of(structure, start)
    grown = start.extended(Tree(structure=structure, values=np.array([0.5, 0.25])))
    second = LeafMoments(loss="squared", clip=4.0).of(structure, grown)
    table = make_table(rows)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kernels, "moment_sums", interrupted)
        with pytest.raises(KeyboardInterrupt):
            table.statistic(first, ALL_ROWS)
    np.testing.assert_array_equal(table.statistic(second, ALL_ROWS), statistic(rows, second))


@pytest.mark.parametrize("routed", [False, True])
def test_scores_that_were_interrupted_are_made_anew(monkeypatch, routed):
    """An interrupt comes as soon as the loop has ended, with the tree added and not yet on record."""
    rows = [((0, 0, 0), 0.5), ((4, 0, 0), -0.25)]
    structure, start = structure_of([0], [2], [False]), Ensemble(initial_score=0.0)
    first = LeafMoments(loss="squared", clip=4.0).of(structure, start)
    grown = start.extended(Tree(structure=structure, values=np.array([0.5, 0.25])))
    other = Ensemble(initial_score=0.125)
    table = make_table(rows)
    table.statistic(first, ALL_ROWS)
    if not routed:
        table.statistic(dataclasses.replace(first, structure=structure_of([0], [1], [False])), ALL_ROWS)
    module, name = (kernels, "add_leaf_values") if routed else (tree_rows, "add_values")
    own = getattr(module, name)

    def interrupted(*arguments):
        own(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            table.statistic(dataclasses.replace(first, ensemble=grown), ALL_ROWS)
    for ensemble in (grown, start, other):
        query = dataclasses.replace(first, ensemble=ensemble)
        np.testing.assert_array_equal(table.statistic(query, ALL_ROWS), statistic(rows, query))


def test_two_threads_find_the_row_state_whole():
    """Trees of two depths, a thread for each: the leaves of one are never looked up in the other."""
    rows = [((cell, 0, 0), cell / 8 - 0.5) for cell in range(5)]

    def chain(depth):
        ensemble, queries = Ensemble(initial_score=0.0), []
        for i in range(60):
            inner = 2**depth - 1
            structure = structure_of([0] * inner, [1 + (i + j) % 4 for j in range(inner)], [False] * inner)
            queries.append(LeafMoments(loss="squared", clip=256.0).of(structure, ensemble))
            values = np.arange(inner + 1) * (i + 1.0) / 64
            ensemble = ensemble.extended(Tree(structure=structure, values=values))
        return queries

    def ask(table, queries):
        return [table.statistic(query, ALL_ROWS) for query in queries]

    chains = [chain(5), chain(1)]
    expected = [ask(make_table(rows), queries) * 10 for queries in chains]
    table, interval = make_table(rows), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda queries: ask(table, queries * 10), chains))
    finally:
        sys.setswitchinterval(interval)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_label_statistics_are_exact_sums():
    rows = [((0, 0, 0), 1.0), ((0, 0, 0), -0.25), ((0, 0, 0), math.nan), ((0, 0, 0), -STEP / 2)]
    assert statistic(rows, LabelMoments()).tolist() == [3 * UNIT, UNIT - UNIT // 4]
    assert statistic(rows, LabelCount()).tolist() == [3 * UNIT]
    assert statistic(rows, LabelSum()).tolist() == [UNIT - UNIT // 4]
    assert statistic(rows, LabelMoments(), np.array([True, False, True, False])).tolist() == [UNIT, UNIT]


@pytest.mark.parametrize("outside", [N_FEATURES, 2**30])
def test_a_tree_that_tests_a_feature_outside_the_table_is_refused(outside):
    foreign = structure_of([outside], [1], [False])
    within = structure_of([0], [1], [False])
    table = make_table([((0, 0, 0), 1.0)])
    start = Ensemble(initial_score=0.0)
    for structure, ensemble in (
        (foreign, start),
        (within, start.extended(Tree(structure=foreign, values=np.zeros(2)))),
    ):
        query = LeafMoments(loss="squared", clip=1.0).of(structure, ensemble)
        with pytest.raises(RoundViolation, match=r"features outside 0\.\.2"):
            table.statistic(query, ALL_ROWS)


def test_a_table_is_neither_copied_nor_pickled():
    table = make_table([((0, 0, 0), 1.0)])
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LedgerError, match="cannot be (copied|pickled)"):
            attempt(table)


def test_a_sample_keeps_each_row_with_the_stated_probability():
    table = make_table([((0, 0, 0), 1.0)] * 20_000)
    source = SeededRandom(3)
    assert table.sample(1.0, source).size == 0
    first, second = table.sample(0.3, source), table.sample(0.3, source)
    for mask in (first, second):
        # Six standard deviations of a binomial.
        assert abs(mask.sum() - 6_000) < 6 * math.sqrt(20_000 * 0.3 * 0.7)
    assert abs((first & second).sum() - 1_800) < 6 * math.sqrt(20_000 * 0.09 * 0.91)


def test_from_data_refuses_a_loss_that_does_not_fit_the_target():
    X, y = np.zeros((2, 1)), np.array([0, 1])
    categorical = Schema.uniform(0, 1, target=Categorical("y", (0, 1)))
    with pytest.raises(SchemaError, match="squared loss needs a target"):
        Table.from_data(X, y, Schema.uniform(0, 1), loss="squared", bins=4)
    with pytest.raises(SchemaError, match="logistic loss needs a Categorical"):
        Table.from_data(X, y, Schema.uniform(0, 1, target=Numeric("y", 0, 1)), loss="logistic", bins=4)
    with pytest.raises(SchemaError, match="inconsistent numbers of samples: X and y"):
        Table.from_data(X, y[:1], categorical, loss="logistic", bins=4)
    assert Table.from_data(X, y, categorical, loss="logistic", bins=4).schema.features[0].name == "x0"


def test_the_squared_loss_takes_two_classes_as_minus_one_and_one():
    X, y = np.zeros((3, 1)), np.array(["yes", "no", "yes"])
    table = Table.from_data(X, y, Schema.uniform(0, 1, target=Categorical("y", ("yes", "no"))), loss="squared", bins=4)
    count, total = (table.statistic(LabelMoments(), np.empty(0, dtype=np.bool_)) * STEP).tolist()
    assert (count, total) == (3.0, 1.0)  # "no" is the first of the sorted classes, and -1


@pytest.mark.parametrize(("score", "label", "fit"), [
    (0.25, 0.5, 0.75), (0.5, 0.5, 1.0), (0.0, 0.5, 0.0), (-40.0, 1.0, 0.0), (40.0, 1.0, 1.0), (0.1, math.nan, 0.0),
])  # fmt: skip
def test_a_row_fits_by_its_squared_error_within_the_labels_range(score, label, fit):
    query = PredictionFit(loss="squared", width=0.5).of(Ensemble(initial_score=score))
    assert statistic([((0, 0, 0), label)], query).tolist() == [int(fit * UNIT)]


def test_a_score_of_zero_predicts_the_first_class():
    rows = [((0, 0, 0), label) for label in (-1.0, -1.0, 1.0, math.nan)]
    for score, right in ((0.0, 2), (-1e-9, 2), (1e-9, 1), (math.inf, 0)):
        query = PredictionFit(loss="logistic", width=1.0).of(Ensemble(initial_score=score))
        assert statistic(rows, query).tolist() == [right * UNIT]


@pytest.mark.parametrize("which", ["ensemble", "tree"])
def test_an_ensemble_of_another_class_is_refused_before_its_values_are_read(which):
    structure = structure_of([0], [2], [False])
    kinds = {"ensemble": Ensemble, "tree": Tree}
    kinds[which] = type("Odd", (kinds[which],), {"__slots__": ()})
    tree = kinds["tree"](structure=structure, values=np.zeros(2))
    ensemble = kinds["ensemble"](initial_score=0.0, trees=(tree,))
    query = LeafMoments(loss="squared", clip=1.0).of(structure, ensemble)
    with pytest.raises(RoundViolation, match="plain trees"):
        statistic([((0, 0, 0), 0.5)], query)
