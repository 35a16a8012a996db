"""Every public query: a replay knows it or refuses it by name, and a search comes up to its shift set but not beyond.

To add a query: one line in QUERIES.
"""

import dataclasses
import functools
import math
import pickle

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Categorical, Ledger, Numeric, PrivacyUnit
from ledgerwood.curator import (
    BinClassCounts,
    BinCounts,
    BinHessians,
    BinSums,
    CandidateBins,
    CellCounts,
    CellHessians,
    ColumnBounds,
    ColumnCount,
    ColumnHistogram,
    ColumnKeys,
    ColumnMode,
    ColumnMoments,
    ColumnQuantile,
    ColumnQuantiles,
    ColumnSum,
    ColumnTable,
    CorrectSplits,
    Curator,
    DeclaredStatistic,
    FeatureQuantiles,
    GiniSplits,
    GridlessGains,
    KeyCounts,
    KeyTable,
    LabelCount,
    LabelledSplits,
    LabelMoments,
    LabelSum,
    LeafClassCounts,
    LeafClassGradients,
    LeafCounts,
    LeafCurvatures,
    LeafLabels,
    LeafMoments,
    LeafQuery,
    LeafRatios,
    ListedCounts,
    PredictionFit,
    RowCount,
    ScoreCounts,
    ScoreQuery,
    SideSums,
    SplitGains,
    Table,
    TypedColumn,
    TypedColumns,
    UndeclaredTable,
    ValueCounts,
    WholeSums,
)
from ledgerwood.curator.places import worker
from ledgerwood.curator.places.messages import Drawn, SessionSecret, SharedValues, SumQuestion, code_digest
from ledgerwood.curator.queries.leaf_statistics import LEAVES
from ledgerwood.curator.queries.registry import REGISTRIES, TREE_CHOICES, TREES, PartSums
from ledgerwood.curator.queries.scores import SCORES
from ledgerwood.curator.queries.splits.coarse_gains import CoarseGains
from ledgerwood.curator.tables.parts import EncodedRows
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, ReplayFailed, RoundViolation
from ledgerwood.mechanisms import (
    BallShifts,
    BlockShifts,
    BoundedStabilityMechanism,
    BoxShifts,
    EllipticalGaussianMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    GaussianStabilityMechanism,
    GridlessMechanism,
    JointQuantilesMechanism,
    NoisyMaxMechanism,
    PermuteAndFlipMechanism,
    PrivateBoundsMechanism,
    QuantileMechanism,
    SeededRandom,
    StabilityHistogramMechanism,
    UtilityRange,
)
from ledgerwood.mechanisms.exact.coins import RowCoins
from ledgerwood.sparse_cells import SparseCells
from ledgerwood.verification import added, check_sensitivity, removed, replay
from ledgerwood.verification.replaying.comparison import difference

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
FEATURES = (Numeric("a", 0, 1, missing=True), Categorical("kind", ("u", "v")))
NUMBERS = lw.Schema(features=FEATURES, target=Numeric("y", -1, 1))
CLASSES = lw.Schema(features=FEATURES, target=Categorical("class", ("no", "yes")))
BINS = 8
CELLS = NUMBERS.cells(BINS)
TESTS, BINNED = SplitTests.every(CELLS), CandidateBins.of(CELLS)
ROOT = TreeStructure.root()
SPLIT = TreeStructure(feature=np.array([0], np.int32), split=np.array([4], np.uint16), equals=np.array([False]))
START = Ensemble(initial_score=0.0)
LATER = START.extended(Tree(structure=SPLIT, values=np.array([-0.5, 0.5])))
JOINT_SCORES = Ensemble.of_classes((0.25, -0.5)).extended(Tree(structure=SPLIT, values=np.array([[-1, 1], [2, -2.0]])))
SQUARED = LeafMoments(loss="squared", clip=0.5).of(SPLIT, START)
WHOLE = WholeSums(leaf=SQUARED.statistic, bits=6, weight_bits=5)
"""Rows in units of 1/32, gradients in units of 1/64."""
GAIN = {"ensemble": START, "loss": "squared", "clip": 0.5, "damping": 0.0}

COLUMN = FEATURES[0]
HISTOGRAM = ColumnHistogram(column=FEATURES[1])
EXPONENTIAL, FLIP = ExponentialMechanism(rate=0.3), PermuteAndFlipMechanism(rate=0.3)
JOINT = JointQuantilesMechanism(rate=0.3, quantiles=(0.5,))


def shares(chunk):
    return np.stack((np.full(len(chunk["a"]), 64), 64 * np.nan_to_num(chunk["a"])), axis=1).astype(np.int64)


OUTSIDE = DeclaredStatistic(
    name="shares",
    declared_by="this test",
    columns=(COLUMN,),
    function=shares,
    most=(64, 64),
    exponent=-6,
    one_by_one=True,
)


def purpose_of(query):
    """The purpose of a round; it says of a declared statistic who declared it."""
    return query.purpose("ask") if isinstance(query, DeclaredStatistic) else "ask"


SUMS = [
    ("trees", LabelMoments()),
    ("trees", LabelCount()),
    ("trees", LabelSum()),
    ("trees", SQUARED),
    ("classes", LeafCurvatures(clip=1.0).of(SPLIT, LATER)),
    ("trees", LeafRatios(loss="squared", clip=0.5, damping=1.0).of(SPLIT, START)),
    ("trees", PredictionFit(loss="squared", width=1.0).of(LATER)),
    ("classes", ScoreCounts(edges=(-0.25, 0.25)).of(LATER)),
    ("trees", WholeSums(leaf=SQUARED.statistic, bits=4).of(SPLIT, START)),
    ("trees", LeafCounts().of(SPLIT)),
    ("trees", CellCounts(features=(0,), cells=BINS)),
    ("classes", BinClassCounts(structure=SPLIT, bins=BINNED, classes=2)),
    ("classes", LeafClassCounts(classes=2).of(SPLIT)),
    ("classes", LeafClassGradients(classes=2, clip=1.0).of(SPLIT, JOINT_SCORES)),
    (
        "classes",
        WholeSums(leaf=LeafClassGradients(classes=2, clip=1.25), bits=7, weight_bits=6).of(SPLIT, JOINT_SCORES),
    ),
    ("trees", BinCounts(bins=BINNED)),
    ("classes", BinHessians(bins=BINNED).of(LATER)),
    ("classes", CellHessians(counts=CellCounts(features=(0,), cells=BINS), loss="logistic").of(LATER)),
    ("trees", BinSums(leaf=SQUARED, bins=BINNED)),
    ("trees", SideSums(leaf=LeafMoments(loss="squared", clip=0.5).of(ROOT, START), tests=TESTS)),
    ("trees", LabelMoments(bits=5)),
    ("trees", WHOLE.of(SPLIT, START)),
    ("trees", BinSums(leaf=WHOLE.of(SPLIT, START), bins=BINNED)),
    ("classes", BinSums(leaf=WholeSums(leaf=LeafCurvatures(clip=1.0), bits=7).of(SPLIT, LATER), bins=BINNED)),
    ("trees", SideSums(leaf=WHOLE.of(ROOT, START), tests=TESTS)),
    ("classes", BinHessians(bins=BINNED, bits=8).of(LATER)),
    ("classes", ScoreCounts(edges=(-0.25, 0.25), bits=3).of(LATER)),
    ("columns", RowCount()),
    ("columns", ColumnCount(column=COLUMN)),
    ("columns", ColumnSum(column=COLUMN)),
    ("columns", ColumnMoments(column=COLUMN)),
    ("columns", HISTOGRAM),
    ("columns", OUTSIDE),
    ("undeclared", ValueCounts(column=0, edges=(0.0, 0.5, 1.0))),
    ("undeclared", ListedCounts(column=1, categories=("v", "w", "u"))),
]
CHOICES = [
    ("trees", SplitGains(structure=ROOT, tests=TESTS, **GAIN), EXPONENTIAL),
    ("trees", GridlessGains(structure=ROOT, cells=CELLS, **GAIN), GridlessMechanism(rate=0.3)),
    ("classes", GiniSplits(structure=SPLIT, tests=TESTS, classes=2), FLIP),
    ("classes", LeafLabels(structure=SPLIT, classes=2), FLIP),
    ("classes", CorrectSplits(structure=SPLIT, tests=TESTS, classes=2), FLIP),
    ("classes", CorrectSplits(structure=SPLIT, tests=TESTS, classes=2, lookahead=True), FLIP),
    ("classes", LabelledSplits(structure=SPLIT, tests=TESTS, classes=2), FLIP),
    ("trees", FeatureQuantiles(features=(0,), cells=BINS), JOINT),
    ("columns", ColumnMode(histogram=HISTOGRAM), EXPONENTIAL),
    ("columns", ColumnKeys(name="key"), StabilityHistogramMechanism(scale=1.0, threshold=3)),
    ("undeclared", KeyCounts(column=1), GaussianStabilityMechanism(stddev=1.0, threshold=5)),
    (
        "undeclared",
        KeyTable(column=1, room=1024, salt=bytes(16)),
        BoundedStabilityMechanism(stddev=1.0, threshold=5, room=1024),
    ),
]
REFUSED = [
    (ColumnQuantile(column=COLUMN), QuantileMechanism(rate=0.3, quantile=0.5)),
    (ColumnQuantiles(column=COLUMN), JOINT),
    (ColumnBounds(column=COLUMN, smallest=0.01), PrivateBoundsMechanism(scale=1.0, threshold=3)),
]
QUERIES = [query for _, query in SUMS] + [choice[1] for choice in CHOICES] + [refused[0] for refused in REFUSED]

GENERATOR = np.random.default_rng(8)
X = np.empty((30, 2), dtype=object)
X[:, 0], X[:, 1] = GENERATOR.uniform(0, 1, 30), GENERATOR.choice(np.array(["u", "v"], dtype=object), 30)
LABELS = {
    "trees": np.round(GENERATOR.uniform(-1, 1, 30), 3),
    # Some of them noisy: of classes that two tests tell apart, a row moves the utilities of all tests alike.
    "classes": np.where((X[:, 0].astype(float) > 0.5) ^ (np.arange(30) % 4 == 0), "yes", "no").astype(object),
}
LABELS["columns"] = LABELS["undeclared"] = LABELS["trees"]
ROWS = {kind: ([0.9, "v"], "no" if kind == "classes" else 1.0) for kind in LABELS}


def table_of(kind, data):
    X, y = data
    match kind:
        case "columns":
            return ColumnTable.from_data(X, NUMBERS, y=y, keys={"key": X[:, 1].tolist()})
        case "undeclared":
            types = (TypedColumn("a", "numeric"), TypedColumn("kind", "text"))
            return UndeclaredTable.from_data(X, y, TypedColumns(features=types, target=TypedColumn("y", "numeric")))
        case "classes":
            return Table.from_data(X, y, CLASSES, loss="logistic", bins=BINS)
    return Table.from_data(X, y, NUMBERS, loss="squared", bins=BINS)


def asked(kind, query, mechanism, data):
    """One release or choice, paid for."""
    sums = mechanism is None
    if sums:
        shifts = query.sensitivity(A)
        wide = isinstance(shifts, BallShifts)
        mechanism = (
            GaussianMechanism(stddev=64.0) if wide else EllipticalGaussianMechanism(stddevs=(64.0,) * shifts.columns)
        )
        event = mechanism.event(shifts, A)
    else:
        event = query.event(mechanism, A)
    ledger = Ledger(Budget(epsilon=1e6, delta=0.5, adjacency=A), unit=PrivacyUnit.ROW)
    grant = ledger.grant(event, purpose="ask", delta=0.25)
    with Curator(table_of(kind, data), grant, SeededRandom(3)).open(event, purpose=purpose_of(query)) as round_:
        if sums:
            return round_.release(query, mechanism, purpose="answer").real
        return round_.select(query, mechanism, purpose="answer").value


def kind_of(query):
    """What is asked: of a query of leaves or of scores, its statistic."""
    return type(getattr(query, "statistic", query))


def named(case):
    return kind_of(case[1]).__name__


def value_of(table, query, sampled):
    return table.utilities(query, sampled) if query in TREE_CHOICES else table.statistic(query, sampled)


@pytest.mark.parametrize("case", [case for case in [*SUMS, *CHOICES] if case[0] in ("trees", "classes")], ids=named)
def test_the_parts_of_a_table_add_up_to_the_whole(case):
    """Any rows, any sample, any split: the integers that are released with noise, or chosen by, are the same."""
    kind, query = case[:2]
    generator = np.random.default_rng(20)
    for parts in (1, 3, 17):
        sampled = generator.random(30) < 0.7 if parts > 1 else np.empty(0, np.bool_)
        sizes = np.diff([0, *np.sort(generator.integers(0, 31, parts - 1)), 30]).tolist()
        whole = table_of(kind, (X, LABELS[kind]))
        table = whole.parted(sizes)
        if parts > 1 and isinstance(query, GridlessGains):
            with pytest.raises(RoundViolation, match="GridlessGains is not a sum over rows"):
                table.evidence(query)
            with pytest.raises(RoundViolation, match="GridlessGains is not a sum over rows"):
                value_of(table, query, sampled)
            continue
        expected = value_of(whole, query, sampled)
        for found in (value_of(table, query, sampled), value_of(table, query, sampled)):  # what is kept is the same
            np.testing.assert_array_equal(readable(found), readable(expected))


@pytest.mark.parametrize("case", [case for case in [*SUMS, *CHOICES] if case[0] in ("trees", "classes")], ids=named)
def test_workers_answer_what_the_whole_table_does(case):
    """The messages of a cluster, without one: queries travel as bytes, and workers' sums make the same integers."""
    kind, query = case[:2]
    whole = table_of(kind, (X, LABELS[kind]))
    registry = TREE_CHOICES if query in TREE_CHOICES else TREES
    evaluation = registry.evaluation(query)
    if isinstance(query, GridlessGains) or evaluation.is_ratio(query):
        with pytest.raises(RoundViolation, match=r"is not a sum over rows|are ratios of sums"):
            evaluation.require_sums(query)
        return
    schema, loss = (CLASSES, "logistic") if kind == "classes" else (NUMBERS, "squared")
    encodings = [
        EncodedRows.of(X[begin:end], LABELS[kind][begin:end], schema, loss=loss, bins=BINS, sample_weight=None)
        for begin, end in ((0, 7), (7, 7), (7, 19), (19, 30))
    ]
    secret, shared = bytes(range(32)), SharedValues()
    assert worker.open_session("test", SessionSecret(secret), code_digest(), ()) == ""
    measured = [worker.measured("test", number, rows) for number, rows in enumerate(encodings)]
    places = list(zip((0, 7, 7, 19), measured, strict=True))
    blocks = [
        worker.block(whole._shape, [encodings[number] for number in own], [places[number] for number in own])
        for own in ((0, 1, 3), (2,))
    ]
    drawn, sampled = None, np.empty(0, np.bool_)
    for number in (1, 2):  # the second time of a sample, and by what is kept
        packed = shared.packed(query)
        question = SumQuestion(
            session="test", number=number, packed=packed, known=0, news=tuple(shared.pickles),
            is_choice=registry is TREE_CHOICES, drawn=drawn, charge=None, n_jobs=1,
        )  # fmt: skip
        sums = PartSums(range(4))
        for block in pickle.loads(pickle.dumps(blocks)) if number == 1 else blocks:
            answer = worker.answered(block, pickle.loads(pickle.dumps(question)))
            sums.add(answer.parts, answer.sums)
        found = evaluation.finish(query, sums.total(), whole._shape)
        np.testing.assert_array_equal(readable(found), readable(value_of(whole, query, sampled)))
        coins = RowCoins(bytes(32))
        drawn = Drawn(number=1, sealed=b"", rate=0.7)
        drawn = dataclasses.replace(drawn, sealed=coins.sealed(secret, drawn.purpose("test")))
        sampled = coins.bernoulli(0.7, 0, 30)
    worker.close_session("test")


def thinned(table):
    """The same rows, whose cells are sparse: of each feature without its first row's cell, or one that no row has."""
    rows = table._parts[0].rows
    columns = [np.flatnonzero(column != column[0] + place) for place, column in enumerate(rows.cells)]
    cells = SparseCells(
        rows.n_rows,
        np.cumsum([0, *map(len, columns)]),
        np.concatenate(columns).astype(np.int32),
        np.concatenate([column[own] for column, own in zip(rows.cells, columns, strict=True)]),
        np.array([column[0] + place for place, column in enumerate(rows.cells)]),
    )
    return Table(schema=table.schema, cells=cells, targets=rows.targets, classes=rows.classes, bins=BINS)


OF_CELLS = [case for case in [*SUMS, *CHOICES, ("trees", OUTSIDE)] if case[0] in ("trees", "classes")]


@pytest.mark.parametrize("case", OF_CELLS, ids=named)
def test_sparse_cells_give_the_sums_of_all_cells(case):
    kind, query = case[:2]
    generator = np.random.default_rng(21)
    whole = table_of(kind, (X, LABELS[kind]))
    for sampled in (np.empty(0, np.bool_), generator.random(30) < 0.7, np.zeros(30, np.bool_)):
        expected, sparse = value_of(whole, query, sampled), thinned(whole)
        parts = () if isinstance(query, GridlessGains) else (sparse.parted((11, 0, 19)),)
        for found in (value_of(table, query, sampled) for table in (sparse, sparse, *parts)):
            np.testing.assert_array_equal(readable(found), readable(expected))


def test_what_is_refused_beyond_one_part_is_what_needs_an_order_or_lists_values():
    alone = {
        kind.__name__
        for registry in (*REGISTRIES, LEAVES, SCORES)
        for kind in registry.kinds
        if registry._evaluations[kind].over_parts == "one part"
    }
    assert alone == {"GridlessGains", "ColumnQuantile", "ColumnQuantiles", "ColumnBounds"}
    # Their queries hand the question on to the statistic, and would not see its answer.
    assert not alone & {kind.__name__ for registry in (LEAVES, SCORES) for kind in registry.kinds}


@pytest.mark.slow_after(6)  # replays each query
@pytest.mark.parametrize("case", [*SUMS, *CHOICES], ids=named)
def test_every_query_that_a_trainer_may_ask_is_known_to_replay(case):
    kind, query, *mechanism = case
    data = X, LABELS[kind]
    fit = functools.partial(asked, kind, query, *(mechanism or [None]))
    row, label = ROWS[kind]
    shares = []
    # A missing number, which no other row has: only some tests tell it apart, and utilities do not all move alike.
    missing = added(data, [math.nan, "v"], label)
    for neighbour in (added(data, row, label), removed(data, 4), *([missing] if kind == "classes" else [])):
        found = replay(fit, data, neighbour)
        assert found.ok, found
        assert found.calls[-1].kind == ("select" if mechanism else "release")
        shares.append(found.largest_share)
    assert 0.0 < max(shares) <= 1.0
    if isinstance(query, CorrectSplits | LabelledSplits | LeafLabels):
        assert max(shares) == 1.0  # rows count 1 or 0


@pytest.mark.parametrize(("query", "mechanism"), REFUSED, ids=lambda value: type(value).__name__)
def test_every_other_one_is_refused_by_name(query, mechanism):
    data = X, LABELS["columns"]
    with pytest.raises(ReplayFailed, match=f"{type(query).__name__} is a selection that a replay does not know"):
        replay(functools.partial(asked, "columns", query, mechanism), data, removed(data, 4))


def test_noise_and_choices_without_a_known_bound_are_refused_by_name():
    data = X, LABELS["columns"]
    mode = ColumnMode(histogram=HISTOGRAM)
    with pytest.raises(ReplayFailed, match="NoisyMaxMechanism chooses in a way that a replay does not know"):
        replay(functools.partial(asked, "columns", mode, NoisyMaxMechanism(scale=8.0)), data, removed(data, 4))


def test_no_registered_query_is_left_out():
    asked_of = {kind for registry in (*REGISTRIES, LEAVES, SCORES) for kind in registry.kinds}
    assert {kind_of(query) for query in QUERIES} == asked_of - {LeafQuery, ScoreQuery}


# ------------------------------------------------------------------------------- the same queries, before any release

HALF = {
    BoxShifts: lambda s: BoxShifts(
        boxes=tuple(tuple(0.499 * b for b in box) for box in s.boxes),
        l1_boxes=tuple(tuple(0.499 * b for b in box) for box in s.l1_boxes),
    ),
    BallShifts: lambda s: BallShifts(radius=0.499 * s.radius, l1_radius=0.499 * (s.l1_radius or s.radius)),
    BlockShifts: lambda s: BlockShifts(norms=HALF[BoxShifts](s.norms), sizes=s.sizes),
    UtilityRange: lambda s: UtilityRange(range=0.499 * s.range),
}
SEARCHED = [case for case in SUMS if case[0] != "undeclared"] + [
    CHOICES[0][:2],
    *(choice[:2] for choice in CHOICES[2:7]),
]


@pytest.mark.slow_after(1)  # a search for a breach of each query
@pytest.mark.parametrize("adjacency", [A, R])
@pytest.mark.parametrize("case", SEARCHED, ids=named)
def test_a_search_comes_up_to_the_shift_set_and_not_beyond(case, adjacency):
    kind, query = case
    if isinstance(query, RowCount) and adjacency is R:
        return  # it has none
    options = {"schema": CLASSES if kind == "classes" else NUMBERS, "bins": BINS, "adjacency": adjacency}
    options["evaluations"] = 500 if isinstance(query, GiniSplits) else 120
    report = check_sensitivity(query, **options)
    assert not report.refuted, report
    assert report.ratio > 0.499
    assert report.norm == "shifts"
    assert report.claimed == query.sensitivity(adjacency)
    half = HALF[type(report.claimed)](report.claimed)
    refuted = check_sensitivity(query, claimed=half, **options)
    assert refuted.refuted
    assert refuted.ratio == pytest.approx(report.ratio / 0.499, rel=0.2)


ALL = np.empty(0, dtype=np.bool_)


def readable(found):
    """An exact answer in a form that is the same for equal ones."""
    if isinstance(found, CoarseGains):
        return np.array(found.candidates(0).cells())
    return {key: found[key] for key in sorted(found) if found[key]} if isinstance(found, dict) else found


def asked_in_turn(case):
    """The exact answers over several samples, asked of one table one after the other, and of the drawn rows alone."""
    kind, query = case[0], case[1]
    data, generator = (X, LABELS[kind]), np.random.default_rng(1)
    table = table_of(kind, data)
    read = table.reader if len(case) == 2 else table.evidence
    coins = [generator.random(30) < share for share in (0.5, 0.9, 0.2)]
    for sampled in (coins[0], coins[1], ALL, coins[0], coins[2], ~coins[2], np.zeros(30, dtype=np.bool_)):
        here = sampled if sampled.size else np.ones(30, dtype=np.bool_)
        alone = table_of(kind, tuple(part[here] for part in data))
        of_alone = alone.reader if len(case) == 2 else alone.evidence
        yield tuple(readable(found) for found in (read(query)(sampled), of_alone(query)(ALL)))


@pytest.mark.parametrize("case", SUMS + CHOICES, ids=named)
def test_a_sample_counts_as_a_table_of_the_drawn_rows_whatever_was_asked_before(case):
    """A query that forgets the sample, or keeps sums of another one, would void what sampling saves."""
    for place, (sampled, alone) in enumerate(asked_in_turn(case)):
        assert difference(sampled, alone, f"{place}") is None


def test_queries_without_an_exact_value_and_claims_that_are_none_are_refused():
    with pytest.raises(InvalidParameter, match="ValueCounts is neither a function nor a query that a table"):
        check_sensitivity(ValueCounts(column=0, edges=(0.0, 1.0)), schema=NUMBERS)
    with pytest.raises(InvalidParameter, match="claimed=1.0 must be a shift set"):
        check_sensitivity(LabelCount(), claimed=1.0, schema=NUMBERS)
