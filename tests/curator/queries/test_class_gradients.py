"""Gradients of all classes by leaf: against slow exact arithmetic, and neighbours against the stated shift set."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Categorical, Numeric, Schema, routing
from ledgerwood.accounting.events import EllipticalGaussianEvent, FilteredEvent, GaussianEvent, GDPEvent
from ledgerwood.accounting.individuals import FULL, LIMIT_SLACK, row_costs
from ledgerwood.curator import BinSums, CandidateBins, LeafClassGradients, LeafMoments, PredictionFit, Table, WholeSums
from ledgerwood.curator.filtered import charge_weights
from ledgerwood.curator.views.tree_rows import RowBudgets
from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation
from ledgerwood.mechanisms import BlockShifts, EllipticalGaussianMechanism, GaussianMechanism
from ledgerwood.sparse_cells import SparseCells
from ledgerwood.threads import threads
from ledgerwood.verification import check_sensitivity
from ledgerwood.verification.sensitivity.distances import shift_gap

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
UNIT = 2**20
EVERYONE = np.empty(0, np.bool_)
CELLS = 6
ROOT = TreeStructure.root()
STUMP = TreeStructure(feature=np.array([0], np.int32), split=np.array([3], np.uint16), equals=np.array([False]))
DEEP = TreeStructure(
    feature=np.array([0, 1, 1], np.int32), split=np.array([3, 2, 4], np.uint16), equals=np.array([False, True, False])
)
CLIPS = (2.0**-20, 1e-3, 0.1, 1 / 3, 0.7, 1.0, 1.25, math.sqrt(2), 2.0, 256.0)
EXTREMES = (0.0, 0.3, -0.7, 1e-9, 20.0, -20.0, 40.0, -40.0, 1e3, -1e3, 1e308, -1e308)


def schema_of(classes):
    names = tuple(f"c{number:02d}" for number in range(classes))
    return Schema.uniform(0.0, 1.0, n_features=2, target=Categorical("class", names))


def table_of(rows, classes, weights=()):
    """Rows are (cells, class, -1 for none)."""
    cells = np.array([row[0] for row in rows], np.uint8).reshape(-1, 2).T.copy()
    places = np.array([row[1] for row in rows], np.int32)
    return Table(schema=schema_of(classes), cells=cells, classes=places, weights=np.array(weights, np.int32))


scores = st.sampled_from(EXTREMES) | st.floats(-3, 3)
structures = st.sampled_from([ROOT, STUMP, DEEP])


@st.composite
def ensembles(draw, classes):
    ensemble = Ensemble.of_classes(draw(st.lists(scores, min_size=classes, max_size=classes)))
    for _ in range(draw(st.integers(0, 2))):
        structure, seed = draw(structures), draw(st.integers(0, 2**32 - 1))
        size = draw(st.sampled_from((1e-6, 1.0, 30.0, 1e3)))
        values = np.random.default_rng(seed).normal(scale=size, size=(structure.n_leaves, classes))
        ensemble = ensemble.extended(Tree(structure=structure, values=values))
    return ensemble


@st.composite
def queries(draw):
    classes = draw(st.integers(2, 30))
    leaf = LeafClassGradients(classes=classes, clip=draw(st.sampled_from(CLIPS) | st.floats(1e-4, 1.5)))
    if draw(st.integers(0, 3)) == 0 and leaf.clip >= 1.0:
        leaf = WholeSums(leaf=leaf, bits=draw(st.sampled_from((0, 3, 12, 20))), weight_bits=0)
    return leaf.of(draw(structures), draw(ensembles(classes)))


def rows_of(classes):
    cell = st.integers(0, CELLS)
    return st.tuples(st.tuples(cell, cell), st.integers(-1, classes - 1))


def classes_of(query):
    leaf = query.statistic
    return leaf.leaf.classes if isinstance(leaf, WholeSums) else leaf.classes


def exact_sums(rows, query, sampled=EVERYONE, weights=()):
    return table_of(rows, classes_of(query), weights).statistic(query, sampled)


def require_in_shift_set(first, second, query, adjacency):
    """Exactly, in every norm that a mechanism may read."""
    shift, sensitivity = second - first, query.sensitivity(adjacency)
    steps = [Fraction(2) ** exponent for exponent in query.grid.exponents]
    moved = [[abs(int(d)) * s for d, s in zip(row, steps, strict=True)] for row in shift if row.any()]
    assert len(moved) <= (2 if adjacency is R else 1)
    k = query.grid.columns - 1
    for weights in (
        (1.0,) * (k + 1),
        (1e-3, *[1.0] * k),
        (1.0, *[1e-3] * k),
        (0.7, *np.linspace(0.5, 2.0, k).tolist()),
    ):
        scaled = [[d / Fraction(w) for d, w in zip(row, weights, strict=True)] for row in moved]
        assert sum(d * d for row in scaled for d in row) <= Fraction(sensitivity.l2(weights)) ** 2
        assert sum(d for row in scaled for d in row) <= Fraction(sensitivity.l1(weights))
    assert not shift_gap(first, second, grid=query.grid, shifts=sensitivity).refuted


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=300)
@given(st.data())
def test_adding_a_row_stays_in_the_shift_set(data):
    query = data.draw(queries())
    rows = data.draw(st.lists(rows_of(classes_of(query)), max_size=6))
    place, row = data.draw(st.integers(0, len(rows))), data.draw(rows_of(classes_of(query)))
    weights, more = (), ()
    if not isinstance(query.statistic, WholeSums) and data.draw(st.booleans()):
        weights = data.draw(st.lists(st.integers(0, UNIT), min_size=len(rows), max_size=len(rows)))
        more = [*weights[:place], data.draw(st.integers(0, UNIT)), *weights[place:]]
    neighbour = [*rows[:place], row, *rows[place:]]
    first, second = exact_sums(rows, query, weights=weights), exact_sums(neighbour, query, weights=more)
    for adjacency in (A, Adjacency.ZERO_OUT):
        require_in_shift_set(first, second, query, adjacency)
    if not more and row[1] >= 0:  # a valid row counts as one row, exactly
        assert (second - first)[:, 0].sum() == int(query.sensitivity(A).norms.boxes[0][0] / query.grid.steps[0])


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=300)
@given(st.data())
def test_replacing_a_row_stays_in_the_shift_set(data):
    query = data.draw(queries())
    rows = data.draw(st.lists(rows_of(classes_of(query)), min_size=1, max_size=6))
    place, row = data.draw(st.integers(0, len(rows) - 1)), data.draw(rows_of(classes_of(query)))
    weights, more = (), ()
    if not isinstance(query.statistic, WholeSums) and data.draw(st.booleans()):
        weights = data.draw(st.lists(st.integers(0, UNIT), min_size=len(rows), max_size=len(rows)))
        more = [*weights[:place], data.draw(st.integers(0, UNIT)), *weights[place + 1 :]]
    neighbour = [*rows[:place], row, *rows[place + 1 :]]
    first, second = exact_sums(rows, query, weights=weights), exact_sums(neighbour, query, weights=more)
    require_in_shift_set(first, second, query, R)


def test_the_longest_gradients_reach_the_stated_norms():
    """Rows that the scores are sure and wrong of: e_1 - e_0, sqrt(2) long, and its opposite."""
    for clip in (0.25, 1.0, 5.0):
        leaf = LeafClassGradients(classes=5, clip=clip)
        wrong = Ensemble.of_classes((0.0, 1e3, 0.0, 0.0, 0.0)).extended(
            Tree(structure=STUMP, values=np.array([[0.0] * 5, [2e3, 0.0, 0.0, 0.0, 0.0]]))
        )
        query = leaf.of(ROOT, wrong)
        one = exact_sums([((0, 0), 0)], query)
        other = exact_sums([((5, 0), 1)], query)
        assert (one[:, 1:] == -other[:, 1:]).all()
        most = min(clip, math.sqrt(2))
        for first, second, factor in ((0 * one, one, 1.0), (one, other, 2.0)):
            length = math.sqrt(float(((second - first)[:, 1:].astype(float) ** 2).sum())) / UNIT
            assert length == pytest.approx(factor * most, rel=1e-5)
        assert leaf.sensitivity(A).norms.boxes == ((1.0, leaf.radius),)
        assert leaf.radius == pytest.approx(most, rel=1e-15)


def contribution(row_scores, own, clip):
    """A row's numbers in steps, not truncated, in 60 digits."""
    with mpmath.workdps(60):
        exact = [mpmath.mpf(score) for score in row_scores]
        top = max(exact)
        powers = [mpmath.exp(score - top) for score in exact]
        total = mpmath.fsum(powers)
        gradient = [power / total - (place == own) for place, power in enumerate(powers)]
        norm = mpmath.sqrt(mpmath.fsum(g * g for g in gradient))
        scale = clip / norm if norm > clip else mpmath.mpf(1)
        return [g * scale * UNIT for g in gradient]


@settings(max_examples=150)
@given(st.data())
def test_a_rows_contribution_is_its_gradient_truncated_toward_zero(data):
    classes = data.draw(st.integers(2, 30))
    row_scores = data.draw(st.lists(scores, min_size=classes, max_size=classes))
    own, clip = data.draw(st.integers(0, classes - 1)), data.draw(st.sampled_from(CLIPS))
    leaf = LeafClassGradients(classes=classes, clip=clip)
    found = exact_sums([((0, 0), own)], leaf.of(ROOT, Ensemble.of_classes(row_scores)))[0].tolist()
    if max(row_scores) - min(row_scores) > 1.7e308:
        return  # the difference of two scores is no float
    assert found[0] == UNIT
    assert sum(step * step for step in found[1:]) <= (Fraction(leaf.radius) * UNIT) ** 2
    for step, exact in zip(found[1:], contribution(row_scores, own, leaf.radius), strict=True):
        truncated = int(mpmath.sign(exact) * mpmath.floor(abs(exact)))
        near = abs(exact - mpmath.nint(exact)) < 1e-6 * max(1, abs(exact) / UNIT)
        assert step == truncated or (near and abs(step - exact) < 1.001)


@pytest.mark.parametrize("classes", [2, 3, 10, 27])
def test_many_rows_add_up_to_their_contributions(classes):
    generator = np.random.default_rng(classes)
    ensemble = Ensemble.of_classes(generator.normal(size=classes).tolist()).extended(
        Tree(structure=DEEP, values=generator.normal(scale=3.0, size=(4, classes)))
    )
    rows = [
        ((int(a), int(b)), int(c))
        for a, b, c in zip(*generator.integers(0, CELLS, (2, 40)), generator.integers(-1, classes, 40), strict=True)
    ]
    query = LeafClassGradients(classes=classes, clip=0.8).of(STUMP, ensemble)
    expected = np.zeros((2, 1 + classes), dtype=np.int64)
    cells = np.array([row[0] for row in rows], np.uint8).T
    for leaf, score, (_, own) in zip(STUMP.route(cells), ensemble.scores(cells), rows, strict=True):
        if own >= 0:
            expected[leaf] += [UNIT, *(int(step) for step in contribution(score, own, 0.8))]
    found = exact_sums(rows, query)
    assert (found[:, 0] == expected[:, 0]).all()
    assert np.abs(found - expected).max() <= 1  # a float next to a whole number of steps


def test_rows_without_a_class_or_a_finite_gradient_contribute_nothing():
    leaf = LeafClassGradients(classes=3, clip=1.0)
    for start, counted in (((0.0, 0.0, 0.0), 1), ((1e308, 0.0, -1e308), 0), ((1e308, 1e308, 1e308), 0)):
        # Doubled, the second tree's scores are no numbers.
        ensemble = Ensemble.of_classes(start).extended(Tree(structure=ROOT, values=np.array([start])))
        found = exact_sums([((0, 0), -1), ((0, 0), 2)], leaf.of(ROOT, ensemble))
        assert found[0, 0] == counted * UNIT
        assert found.any() == bool(counted)
    assert not exact_sums([], leaf.of(STUMP, Ensemble.of_classes((0.0,) * 3))).any()
    assert not exact_sums([((0, 0), 1)], leaf.of(STUMP, Ensemble.of_classes((0.0,) * 3)), np.array([False])).any()


# ---------------------------------------------------------------------------------------------------- scores and places


def many(classes, n=1_000):
    generator = np.random.default_rng(classes)
    cells = generator.integers(0, CELLS, (2, n)).astype(np.uint8)
    places = generator.integers(-1, classes, n).astype(np.int32)
    trees = [
        Tree(structure=structure, values=generator.normal(size=(structure.n_leaves, classes)))
        for structure in (STUMP, DEEP, STUMP)
    ]
    ensemble = Ensemble.of_classes(generator.normal(size=classes).tolist())
    return cells, places, [ensemble, *(Ensemble(initial_score=0.0, class_scores=ensemble.class_scores,
                                                trees=tuple(trees[:count])) for count in (1, 2, 3))]  # fmt: skip


def sparse_of(cells):
    """The same cells, of which the most frequent one of each feature is not stored."""
    usual = np.array([np.bincount(column).argmax() for column in cells])
    kept = [np.flatnonzero(column != one) for column, one in zip(cells, usual, strict=True)]
    return SparseCells(
        cells.shape[1],
        np.cumsum([0, *map(len, kept)]),
        np.concatenate(kept).astype(np.int32),
        np.concatenate([column[own] for column, own in zip(cells, kept, strict=True)]),
        usual,
    )


@pytest.mark.parametrize("classes", [3, 26])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_place_and_every_order_of_questions_has_the_same_integers(classes, weighted, monkeypatch):
    cells, places, grown = many(classes)
    generator = np.random.default_rng(1)
    weights = generator.integers(0, UNIT + 1, 1_000).astype(np.int32) if weighted else np.empty(0, np.int32)
    schema = schema_of(classes)
    leaf, sampled = LeafClassGradients(classes=classes, clip=0.9), generator.random(1_000) < 0.6

    def table(own=cells):
        return Table(schema=schema, cells=own, classes=places.copy(), weights=weights)

    # Each from scores that no question came before.
    expected = {
        (number, mask is sampled): table().statistic(leaf.of(DEEP, ensemble), mask)
        for number, ensemble in enumerate(grown)
        for mask in (EVERYONE, sampled)
    }
    order = [(0, False), (1, False), (2, True), (3, True), (1, True), (1, False), (3, False), (0, True), (2, False)]
    tables = {
        "memory": table(),
        "parts": table().parted((300, 0, 1, 699)),
        "sparse": table(sparse_of(cells)),
        "sparse parts": table(sparse_of(cells)).parted((500, 500)),
        "wide": table(cells.astype(np.uint16)),
    }
    for name, each in tables.items():
        for number, drawn in order:
            found = each.statistic(leaf.of(DEEP, grown[number]), sampled if drawn else EVERYONE)
            assert (found == expected[number, drawn]).all(), name
            if number == 2:  # another query routes the same rows by another tree in between
                each.statistic(leaf.of(STUMP, grown[1]), EVERYONE)
    monkeypatch.setattr(routing, "THREADED_ROWS", 0)
    monkeypatch.setattr(routing, "CHUNK_ROWS", routing.CHUNK_ROWS)
    with threads(2):
        assert (table().statistic(leaf.of(DEEP, grown[3]), EVERYONE) == expected[3, False]).all()


@pytest.mark.slow  # adds up many rows
def test_rows_of_several_blocks_add_up_on_one_thread_and_on_two(monkeypatch):
    generator = np.random.default_rng(4)
    n, classes = 2 * routing.CHUNK_ROWS + 5, 4
    cells, places = generator.integers(0, CELLS, (2, n)).astype(np.uint8), generator.integers(0, classes, n)
    ensemble = Ensemble.of_classes((0.0,) * classes).extended(
        Tree(structure=STUMP, values=generator.normal(size=(2, classes)))
    )
    query = LeafClassGradients(classes=classes, clip=1.0).of(DEEP, ensemble)

    def found():
        table = Table(schema=schema_of(classes), cells=cells, classes=places.astype(np.int32))
        first = table.statistic(LeafClassGradients(classes=classes, clip=1.0).of(STUMP, ensemble.of_first(0)), EVERYONE)
        return first, table.statistic(query, EVERYONE)

    alone = found()
    monkeypatch.setattr(routing, "THREADED_ROWS", 0)
    with threads(2):
        shared = found()
    assert all((a == b).all() for a, b in zip(alone, shared, strict=True))
    assert alone[1][:, 0].sum() == n * UNIT
    first_rows = zip(*cells[:, :3].tolist(), places[:3].tolist(), strict=True)
    third = [exact_sums([((a, b), c)], query) for a, b, c in first_rows]
    small = Table(schema=schema_of(classes), cells=cells[:, :3], classes=places[:3].astype(np.int32))
    assert (small.statistic(query, EVERYONE) == sum(third)).all()


# --------------------------------------------------------------------------------------------------- cost and refusals


def test_what_a_tree_costs_does_not_depend_on_the_number_of_classes():
    for clip in (0.5, 1.0, 2.0):
        events = set()
        for classes in (2, 5, 30, 1024):
            leaf = LeafClassGradients(classes=classes, clip=clip)
            mechanism = EllipticalGaussianMechanism(stddevs=(10.0, *[4.0] * classes))
            events.add(mechanism.event(leaf.sensitivity(A), A))
        (event,) = events
        assert event == EllipticalGaussianEvent(sensitivities=(1.0, leaf.radius), stddevs=(10.0, 4.0), adjacency=A)
        exact = Fraction(1, 100) + Fraction(leaf.radius) ** 2 / 16
        assert exact <= Fraction(event.mu()) ** 2 * (1 + Fraction(1, 2**48))
        assert float(event.mu()) == pytest.approx(math.sqrt(float(exact)), rel=1e-12)


def test_a_replaced_row_costs_the_worse_of_one_leaf_and_two():
    leaf = LeafClassGradients(classes=7, clip=1.0)
    for stddevs, mu in (
        ((1e6, *[4.0] * 7), 2.0 / 4.0),
        ((1.0, *[4.0] * 7), math.sqrt(2) * math.hypot(1.0, 1.0 / 4.0)),
    ):
        event = EllipticalGaussianMechanism(stddevs=stddevs).event(leaf.sensitivity(R), R)
        assert isinstance(event, GaussianEvent)
        assert 1.0 / event.noise_multiplier == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"classes": 1}, {"classes": 1025}, {"classes": 2.5}, {"clip": 0.0}, {"clip": math.nan}, {"clip": 2.0**-21},
        {"clip": 257.0},
    ],
)  # fmt: skip
def test_parameters_outside_their_bounds_are_refused_by_name(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        LeafClassGradients(**{"classes": 3, "clip": 1.0, **wrong})


def test_what_the_table_or_the_ensemble_does_not_have_is_refused_before_a_row_is_read():
    rows = table_of([((0, 0), 0)], 3)
    leaf, start = LeafClassGradients(classes=3, clip=1.0), Ensemble.of_classes((0.0,) * 3)
    with pytest.raises(RoundViolation, match="the query needs 3 scores of each row, and its ensemble has one score"):
        rows.reader(leaf.of(STUMP, Ensemble(initial_score=0.0)))
    with pytest.raises(RoundViolation, match="needs 3 scores of each row, and its ensemble has 4 scores"):
        rows.reader(leaf.of(STUMP, Ensemble.of_classes((0.0,) * 4)))
    with pytest.raises(RoundViolation, match="of 4 classes, and the table of 3"):
        rows.reader(LeafClassGradients(classes=4, clip=1.0).of(STUMP, Ensemble.of_classes((0.0,) * 4)))
    with pytest.raises(InvalidParameter, match="positive"):
        leaf.of(STUMP, start, positive=1)
    with pytest.raises(InvalidParameter, match="ensemble"):
        leaf.of(STUMP)
    for query in (
        LeafMoments(loss="logistic", clip=1.0).of(STUMP, start, positive=1),
        PredictionFit(loss="logistic", width=1.0).of(start, positive=1),
    ):
        with pytest.raises(RoundViolation, match="needs one score of each row, and its ensemble has 3 scores"):
            rows.reader(query)
    numbers = Schema.uniform(0.0, 1.0, n_features=2, target=Numeric("y", -1.0, 1.0))
    with pytest.raises(RoundViolation, match="of 3 classes, and the table of 0"):
        Table(schema=numbers, cells=np.zeros((2, 1), np.uint8), targets=np.zeros(1)).reader(leaf.of(STUMP, start))
    bins = CandidateBins.of(schema_of(3).cells(4))
    with pytest.raises(RoundViolation, match="LeafClassGradients is not a statistic of leaves that"):
        rows.reader(BinSums(leaf=leaf.of(STUMP, start), bins=bins))


class Smaller(LeafClassGradients):  # type: ignore[misc]
    def sensitivity(self, adjacency):
        return LeafClassGradients(classes=self.classes, clip=2.0**-20).sensitivity(adjacency)


def test_a_subclass_that_states_less_is_refused():
    rows, start = table_of([((0, 0), 0)], 3), Ensemble.of_classes((0.0,) * 3)
    with pytest.raises(RoundViolation, match="Smaller is not a statistic of leaves"):
        rows.reader(Smaller(classes=3, clip=1.0).of(STUMP, start))
    with pytest.raises(InvalidParameter, match="leaf"):
        WholeSums(leaf=Smaller(classes=3, clip=1.0), bits=5)


@pytest.mark.slow  # a search for a breach
@pytest.mark.parametrize("adjacency", [A, R])
def test_a_search_comes_up_to_the_shift_set_of_several_classes_and_not_beyond(adjacency):
    schema = Schema(features=(Numeric("a", 0, 1),), target=Categorical("class", ("u", "v", "w", "x")), weight_bound=2.0)
    # Sure and wrong of half of the classes in each leaf.
    ensemble = Ensemble.of_classes((0.0,) * 4).extended(
        Tree(structure=STUMP, values=np.array([[30.0, 0, 0, 0], [0, 30.0, 0, 0]]))
    )
    query = LeafClassGradients(classes=4, clip=1.2).of(STUMP, ensemble)
    report = check_sensitivity(query, schema=schema, bins=6, adjacency=adjacency, evaluations=600)
    assert not report.refuted, report
    assert report.ratio > 0.99
    half = BlockShifts(norms=LeafClassGradients(classes=4, clip=0.6).sensitivity(adjacency).norms, sizes=(1, 4))
    assert check_sensitivity(query, claimed=half, schema=schema, bins=6, adjacency=adjacency, evaluations=300).refuted


# ------------------------------------------------------------------------------------------------- whole sums, filters


@settings(max_examples=60)
@given(st.data())
def test_whole_sums_truncate_each_rows_own_numbers(data):
    classes, bits = data.draw(st.integers(2, 9)), data.draw(st.sampled_from((2, 7, 20)))
    leaf = LeafClassGradients(classes=classes, clip=1.1)
    ensemble = data.draw(ensembles(classes))
    row = ((1, 1), data.draw(st.integers(0, classes - 1)))
    whole = WholeSums(leaf=leaf, bits=bits, weight_bits=bits - 1)
    found = exact_sums([row, row], whole.of(ROOT, ensemble))[0]
    fine = exact_sums([row], leaf.of(ROOT, ensemble))[0]
    expected = 2 * np.trunc(fine / 2.0 ** (20 - bits)).astype(np.int64)
    assert found[0] == (2 * fine[0] / UNIT * 2 ** (bits - 1))
    # The fine steps were truncated before: a whole unit may begin within the step that was cut off.
    assert np.abs(found[1:] - expected[1:]).max() <= (2 if bits < 20 else 0)
    assert whole.sensitivity(A).sizes == (1, classes)
    assert whole.sensitivity(A).norms.boxes == ((2.0 ** (bits - 1), leaf.radius * 2.0**bits),)


def test_whole_sums_refuse_weights_and_a_clip_below_a_unit():
    leaf, start = LeafClassGradients(classes=3, clip=0.01), Ensemble.of_classes((0.0,) * 3)
    with pytest.raises(InvalidParameter, match="clip"):
        WholeSums(leaf=leaf, bits=2)
    schema = Schema(
        features=schema_of(3).features, target=schema_of(3).target, weight_bound=1.0
    ).resolved(2)  # fmt: skip
    rows = Table(
        schema=schema, cells=np.zeros((2, 1), np.uint8), classes=np.zeros(1, np.int32), weights=np.ones(1, np.int32)
    )
    with pytest.raises(RoundViolation, match="whole sums do not support weights"):
        rows.reader(WholeSums(leaf=leaf, bits=10).of(ROOT, start))


def budgets_of(event, mechanism, query, n_rows):
    left = np.full(n_rows, FULL, np.int64)
    return RowBudgets(left, row_costs(event), charge_weights(mechanism, query.grid, event.release))


@pytest.mark.parametrize("classes", [2, 6])
@pytest.mark.parametrize("shift", [0, 1])
def test_no_row_loses_more_than_its_limit_and_a_row_of_the_largest_norm_takes_part_as_often_as_was_paid_for(
    classes, shift
):
    """What a row loses is measured: with it and without it, in fractions."""
    rounds, leaf = 7, LeafClassGradients(classes=classes, clip=0.9)
    stddevs = (10.0, *[1.5] * classes)
    mechanism = EllipticalGaussianMechanism(stddevs=stddevs)
    one = mechanism.event(leaf.sensitivity(A), A)
    limit = GDPEvent(mu=one.mu() * rounds**0.5 * (1.0 + LIMIT_SLACK), adjacency=A)
    event = FilteredEvent(one, limit=limit)
    rows = [((0, 0), 0), ((4, 0), 1), ((2, 0), 1)]
    with_row, without = table_of(rows, classes), table_of(rows[1:], classes)
    generator = np.random.default_rng(shift)
    query = leaf.of(ROOT, Ensemble.of_classes((0.0,) * classes))
    budgets = [budgets_of(event, mechanism, query, n) for n in (3, 2)]
    lost, taken = Fraction(0), 0
    wrong = np.zeros(classes)
    wrong[1] = 40.0  # sure, and wrong of the first row
    for _ in range(40):
        values = wrong if shift == 0 else generator.normal(scale=4.0, size=classes)
        query = leaf.of(STUMP, Ensemble.of_classes(values.tolist()))
        found = [table.statistic(query, EVERYONE, own) for table, own in zip((with_row, without), budgets, strict=True)]
        moved = (found[0] - found[1]).astype(object)
        taken += bool(moved.any())
        lost += sum(
            (Fraction(int(d), UNIT) / Fraction(s)) ** 2 for row in moved for d, s in zip(row, stddevs, strict=True)
        )
        assert (budgets[0].left[1:] == budgets[1].left).all()
    assert lost <= Fraction(limit.mu()) ** 2
    assert all((own.left >= 0).all() for own in budgets)
    if shift == 0:
        assert taken == rounds
        assert lost >= Fraction(limit.mu()) ** 2 * Fraction(999, 1000)
    else:
        assert taken > rounds


def test_noise_that_differs_between_classes_has_no_cost_of_a_row():
    leaf = LeafClassGradients(classes=3, clip=1.0)
    event = GaussianMechanism(stddev=2.0).event(leaf.sensitivity(A), A)
    assert charge_weights(GaussianMechanism(stddev=2.0), leaf.grid, event)[0] > 0
    for wrong in (
        EllipticalGaussianMechanism(stddevs=(2.0, 1.0, 1.0, 1.5)),
        EllipticalGaussianMechanism(stddevs=(2.0, 1.0)),
    ):
        with pytest.raises(RoundViolation, match="alike on all others"):
            charge_weights(wrong, leaf.grid, event)
