"""Grid-less splits by gain: against the gains of all tests, laws by enumeration, neighbours in exact integers."""

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Budget, Composed, Ledger, Numeric, PoissonSampled, PrivacyUnit, Schema
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.curator import Curator, GridlessGains, SplitGains, Table, gain_range
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.curator.queries.splits import coarse_gains, gridless_gains
from ledgerwood.curator.queries.splits.gridless_gains import GroupedGains
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter, RoundViolation
from ledgerwood.mechanisms import ExponentialMechanism, GridlessMechanism, SecureRandom, SeededRandom
from ledgerwood.mechanisms.exact import choice
from ledgerwood.threads import threads

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
EVERY = np.empty(0, dtype=np.bool_)
START = Ensemble(initial_score=0.0)
ROOT = TreeStructure.root()
# Five ordered cells and a missing one; three categories, "other" and missing; four ordered cells; nothing to test.
CELLS = (
    FeatureCells(ordered=5, equality=(5,)),
    FeatureCells(ordered=0, equality=(0, 1, 2, 4)),
    FeatureCells(ordered=4, equality=()),
    FeatureCells(ordered=1, equality=()),
)
TESTS = SplitTests.every(CELLS)


def structure_of(*tests):
    """Tests (feature, split, equals, besides) in heap order."""
    feature, split, equals, besides = zip(*tests, strict=True) if tests else ((),) * 4
    return TreeStructure(
        feature=np.array(feature, np.int32),
        split=np.array(split, np.uint16),
        equals=np.array(equals, np.bool_),
        besides=np.array(besides, np.int32),
    )


def listed(tests):
    arrays = (tests.feature, tests.split, tests.equals, tests.besides)
    return list(zip(*(array.tolist() for array in arrays), strict=True))


def table_of(rows, kind=np.uint8, weights=()):
    """Rows are (cell of each feature, gradient); at score 0 a gradient is minus the label."""
    width = len(rows[0][0]) if rows else len(CELLS)
    cells = np.array([row[0] for row in rows], dtype=kind).reshape(-1, width).T
    schema = Schema.uniform(0.0, 1.0, n_features=width, target=Numeric("t", -1, 1))
    targets = np.array([-row[1] for row in rows], dtype=float)
    weights = np.array(weights, dtype=np.int32)
    return Table(schema=schema, cells=np.ascontiguousarray(cells), targets=targets, weights=weights)


def asked(structure=ROOT, cells=CELLS, *, clip=1.0, damping=0.1, **more):
    return GridlessGains(
        structure=structure, cells=cells, ensemble=START, loss="squared", clip=clip, damping=damping, **more
    )


def of_all_tests(query, tests=None):
    """The query that lists all tests."""
    return SplitGains(
        structure=query.structure,
        tests=SplitTests.every(query.cells) if tests is None else tests,
        ensemble=query.ensemble,
        loss=query.loss,
        clip=query.clip,
        damping=query.damping,
        large_gradients=query.large_gradients,
    )


def cells_of(query, found, node):
    """First points, numbers of points and gains, of one node; nothing where a path has decided everything."""
    none = np.empty(0, dtype=np.int64)
    return found.candidates(node).cells() if query.points.totals[node] else (none, none, none)


def same_gains(query, one, other):
    return all(
        all(map(np.array_equal, cells_of(query, one, node), cells_of(query, other, node)))
        for node in range(query.structure.n_leaves)
    )


def by_test(query, found):
    """{test: (gain, points)} of each node, point by point."""
    points, nodes = query.points, []
    for node in range(query.structure.n_leaves):
        (starts, widths, gains), seen = cells_of(query, found, node), {}
        ends = (starts + widths).tolist()
        assert ends == sorted(set(ends))  # no group without points
        assert starts.tolist() == [0, *ends][:-1]
        assert (ends[-1] if ends else 0) == points.totals[node]
        for start, end, gain in zip(starts.tolist(), ends, gains.tolist(), strict=True):
            for point in range(start, end):
                test = points.test(query.parts, node, point)
                assert seen.get(test, (gain, 0))[0] == gain
                seen[test] = (gain, seen.get(test, (gain, 0))[1] + 1)
        nodes.append(seen)
    return nodes


def weights_of(cells):
    """Of each feature: most tests that a feature has, by its own, in whole numbers."""
    tests = [feature for feature, *_ in listed(SplitTests.every(cells))]
    counts = Counter(tests)
    return {feature: max(counts.values()) // count for feature, count in counts.items()}


def listed_gains(query, table, sampled=EVERY):
    """The same from the gains of all tests."""
    every = of_all_tests(query)
    gains, weights, tests = table.utilities(every, sampled), weights_of(query.cells), listed(every.tests)
    return [
        {tests[k]: (int(gains[node, k]), weights[tests[k][0]]) for k in np.flatnonzero(candidates)}
        for node, candidates in enumerate(every.open_tests())
    ]


def bounds_hold(query, found):
    """No point's gain is above its stretch's bound, and an exact one is its points' gain."""
    if isinstance(found, GroupedGains):
        return
    for node in range(query.structure.n_leaves):
        if query.points.totals[node]:
            cover, (starts, _, gains) = found.candidates(node).cover(), cells_of(query, found, node)
            points = np.union1d(starts, cover.starts)
            at = np.searchsorted(cover.starts, points, side="right") - 1
            own = gains[np.searchsorted(starts, points, side="right") - 1]
            assert (cover.utilities[at] >= own).all()
            assert (cover.utilities[at] == own)[cover.exact[at]].all()


# ---- the law's gains and weights ----

SOME_CELLS = st.one_of(
    st.builds(
        lambda ordered, missing: FeatureCells(ordered=ordered, equality=(ordered,) if missing else ()),
        st.integers(1, 7),
        st.booleans(),
    ),
    st.builds(
        lambda k, missing: FeatureCells(ordered=0, equality=(*range(k), *((k + 1,) if missing else ()))),
        st.integers(1, 4),
        st.booleans(),
    ),
    st.just(FeatureCells(ordered=3, equality=(5, 3))),
)


@st.composite
def trees(draw, cells):
    """Deep paths, of the candidates or of tests that a table's own trees would not make."""
    depth = draw(st.integers(0, 4))
    own = listed(SplitTests.every(cells))
    foreign = st.tuples(st.integers(0, len(cells) - 1), st.integers(0, 9), st.booleans(), st.integers(-1, 9)).map(
        lambda test: (*test[:3], -1 if test[2] or test[3] < test[1] else test[3])
    )
    tests = st.sampled_from(own) if draw(st.booleans()) else st.sampled_from(own) | foreign
    return structure_of(*(draw(tests) for _ in range(2**depth - 1)))


@pytest.mark.slow  # each gain again in exact integers
@settings(max_examples=150)
@given(st.data())
def test_all_tests_have_their_gains_and_weights(data):
    """Duplicates, missing and unforeseen cells, dropped and impossible gradients, samples, weights, empty nodes."""
    cells = tuple(data.draw(st.lists(SOME_CELLS, min_size=1, max_size=3)))
    assume(any(each.ordered > 1 or each.equality for each in cells))
    row = st.tuples(
        st.tuples(*(st.integers(0, 9) for _ in cells)), st.sampled_from([-2.0, -1.0, -0.4, 0.1, 0.9, 1.0, math.nan])
    )
    rows = data.draw(st.lists(row, max_size=25))
    assume(rows)
    query = asked(
        data.draw(trees(cells)),
        cells,
        clip=data.draw(st.sampled_from([0.5, 1.0, 200.0])),
        damping=data.draw(st.sampled_from([0.0, 0.1, 3.0])),
        large_gradients=data.draw(st.sampled_from(["clip", "drop"])),
    )
    some = st.sampled_from([0, 1, 2**19, 2**20 - 1, 2**20])
    weights = data.draw(st.just(()) | st.lists(some, min_size=len(rows), max_size=len(rows)))
    table = table_of(rows, data.draw(st.sampled_from([np.uint8, np.uint16])), weights)
    sampled = data.draw(st.just(EVERY) | st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)).map(np.array))
    expected = listed_gains(query, table, sampled)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(coarse_gains, "_BLOCKS", data.draw(st.sampled_from([1, 2, 3, 255]), label="blocks"))
        patched.setattr(coarse_gains, "_OWN_BINS", data.draw(st.sampled_from([0, 1, 128]), label="equal cells"))
        found = table.utilities(query, sampled)
        assert by_test(query, found) == expected
        bounds_hold(query, found)
        patched.setattr(gridless_gains, "_MOST_BINS", 0)
        whole = table.utilities(query, sampled)
    assert type(whole) is GroupedGains
    assert by_test(query, whole) == expected


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_a_table_without_rows():
    query = asked(structure_of((0, 2, False, -1)))
    table = table_of([])
    assert by_test(query, table.utilities(query, EVERY)) == listed_gains(query, table)


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_cells_of_two_bytes_and_thousands_of_rows():
    """Sorted by both bytes; a feature of 60,000 cells, and one whose missing values go either way."""
    generator = np.random.default_rng(0)
    cells = (FeatureCells(ordered=60_000, equality=()), FeatureCells(ordered=900, equality=(900,)))
    columns = np.stack((generator.integers(0, 60_000, 3000), generator.integers(0, 901, 3000))).astype(np.uint16)
    columns[0, :500] = generator.integers(250, 262, 500)  # duplicates, on both sides of a byte's end
    schema = Schema.uniform(0.0, 1.0, n_features=2, target=Numeric("t", -1, 1))
    table = Table(schema=schema, cells=columns, targets=generator.uniform(-1, 1, 3000))
    query = asked(structure_of((0, 30_000, False, -1)), cells)
    found, every = table.utilities(query, EVERY), of_all_tests(query)
    by_feature = weights_of(cells)
    weights = np.array([by_feature[feature] for feature in every.tests.feature.tolist()])
    for node, (gains, candidates) in enumerate(zip(table.utilities(every, EVERY), every.open_tests(), strict=True)):
        _, widths, groups = cells_of(query, found, node)
        points = np.repeat(groups, widths)
        assert (points == np.repeat(gains[candidates], weights[candidates])).all()
        assert len(groups) < 3000 + 2 * 900  # a group of points a row, at most


@pytest.mark.slow  # sorts many rows
def test_blocks_of_many_rows_have_the_gains_of_sorted_rows():
    """More rows than are ordered together, in cells of two bytes of which some are full and most are empty."""
    generator, n = np.random.default_rng(8), 70_000
    cells = (FeatureCells(ordered=60_000, equality=()), FeatureCells(ordered=3000, equality=(3000,)))
    columns = np.stack((generator.integers(0, 60_000, n), np.minimum(generator.integers(0, 4000, n), 3000)))
    columns[0, ::3] = generator.integers(31_000, 31_009, len(columns[0, ::3]))
    schema = Schema.uniform(0.0, 1.0, n_features=2, target=Numeric("t", -1, 1))
    table = Table(schema=schema, cells=columns.astype(np.uint16), targets=generator.uniform(-1, 1, n))
    query = asked(structure_of((0, 31_004, False, -1)), cells)
    found = table.utilities(query, EVERY)
    bounds_hold(query, found)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gridless_gains, "_MOST_BINS", 0)
        whole = table.utilities(query, EVERY)
    for node in range(2):
        (starts, widths, gains), (_, others, theirs) = (cells_of(query, each, node) for each in (found, whole))
        np.testing.assert_array_equal(np.repeat(gains, widths), np.repeat(theirs, others))
        assert starts[-1] + widths[-1] == query.points.totals[node]


def test_groups_are_of_the_rows_that_contribute():
    """What a row without a gradient, or one outside of the sample, has in its cells shows nowhere."""
    query = asked(large_gradients="drop")
    rows = [((k % 5, k % 3, k % 4, 0), 0.25) for k in range(0, 9, 2)]
    more = [((1, 1, 1, 0), math.nan), ((3, 0, 2, 0), 1.5), ((2, 2, 3, 0), 0.5)]
    sampled = np.array([True] * (len(rows) + 2) + [False])
    fewer, all_of_them = table_of(rows), table_of(rows + more)
    assert same_gains(query, fewer.utilities(query, EVERY), all_of_them.utilities(query, sampled))


def test_rows_of_weight_zero_are_not_there_and_a_weight_is_a_number_of_rows():
    """Blocks are laid out by all rows, so that draws under one seed may differ; what is drawn from does not."""
    query = asked(structure_of((2, 2, False, -1)))
    rows = [((k % 5, k % 3, k % 4, 0), (k % 7 - 3) / 4) for k in range(40)]
    eighths = [k % 9 for k in range(40)]
    whole = 1 << 20
    found = table_of(rows, weights=[whole // 8 * each for each in eighths]).utilities(query, EVERY)
    kept = [(row, each) for row, each in zip(rows, eighths, strict=True) if each]
    fewer = table_of([row for row, _ in kept], weights=[whole // 8 * each for _, each in kept])
    assert same_gains(query, found, fewer.utilities(query, EVERY))
    repeated = table_of([row for row, each in kept for _ in range(each)], weights=[whole // 8] * sum(eighths))
    assert same_gains(query, found, repeated.utilities(query, EVERY))


def test_one_thread_and_several_find_the_same(monkeypatch):
    generator = np.random.default_rng(3)
    rows = [
        (tuple(generator.integers(0, 6, 4)), float(g)) for g in generator.choice([-1.0, -0.3, 0.2, 1.0, math.nan], 400)
    ]
    query, found = asked(structure_of((0, 3, False, 5))), []
    for least in (0, 10**9):
        monkeypatch.setattr("ledgerwood.routing.THREADED_ROWS", least)
        with threads(3):
            found.append(table_of(rows).utilities(query, EVERY))
    assert same_gains(query, *found)
    assert by_test(query, found[0]) == listed_gains(query, table_of(rows))


def test_gradients_are_those_of_the_ensemble():
    tree = Tree(structure=structure_of((0, 2, False, -1)), values=np.array([0.5, -0.25]))
    rows = [((k % 6, k % 3, k % 4, 0), (-1.0) ** k) for k in range(40)]
    for loss in ("squared", "logistic"):
        query = GridlessGains(
            structure=tree.structure, cells=CELLS, ensemble=START.extended(tree), loss=loss, clip=0.7, damping=0.0
        )
        assert by_test(query, table_of(rows).utilities(query, EVERY)) == listed_gains(query, table_of(rows))


def test_features_weigh_about_the_same():
    """By the public cells, whatever the path: 60,000 cells, once with missing values on either side; 3 categories."""
    cells = (
        FeatureCells(ordered=60_000, equality=(60_000,)),
        FeatureCells(ordered=60_000, equality=()),
        FeatureCells(ordered=0, equality=(0, 1, 2)),
        FeatureCells(ordered=1, equality=()),
    )
    assert asked(ROOT, cells).points.totals.tolist() == [119_999 + 2 * 59_999 + 3 * 39_999]
    for structure in (ROOT, structure_of((0, 7, False, 60_000), (2, 1, True, -1), (1, 30_000, False, -1))):
        parts = asked(structure, cells).parts
        assert parts.feature.tolist() == [0, 0, 0, 1, 2]
        assert parts.weight.tolist() == [1, 1, 1, 2, 39_999]


# ---- what a row changes ----

ROWS = st.tuples(
    st.tuples(*(st.integers(0, 6) for _ in CELLS)), st.sampled_from([-1.0, 1.0, -7.0, 0.31, -0.999999, math.nan])
)
STRUCTURES = st.sampled_from(
    [ROOT, structure_of((0, 2, False, -1)), structure_of((0, 2, False, 5), (1, 0, True, -1), (2, 1, False, -1))]
)


def changes(query, before, after):
    """Largest less smallest change of the candidates' gains, node by node; the candidates are the same."""
    pairs = [by_test(query, table_of(rows).utilities(query, EVERY)) for rows in (before, after)]
    spans = []
    for old, new in zip(*pairs, strict=True):
        assert {test: points for test, (_, points) in old.items()} == {test: p for test, (_, p) in new.items()}
        moved = [new[test][0] - old[test][0] for test in old]
        spans.append(max(moved) - min(moved) if moved else 0)
    return spans


def largest(query, adjacency):
    return query.sensitivity(adjacency).range / 2.0 ** query.grid.exponents[0]


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=60)
@given(st.lists(ROWS, min_size=1, max_size=12), ROWS, ROWS, STRUCTURES, st.sampled_from([1.0, 0.7]), st.booleans())
def test_no_neighbour_exceeds_the_range(rows, row, other, structure, clip, drop):
    """The support and the base measure are the same on both sides; one node moves, or two whose ranges add up."""
    query = asked(structure, clip=clip, damping=0.0, large_gradients="drop" if drop else "clip")
    spans = changes(query, rows, [*rows, row])
    assert sum(span > 0 for span in spans) <= 1
    assert max(spans) <= largest(query, A)
    assert sum(changes(query, [*rows, other], [*rows, row])) <= largest(query, R)


def test_the_range_is_approached():
    """n rows of g* where feature 0 sends the new row, n rows of -g* where feature 2 does."""
    query, n = asked(damping=0.0), 4000
    rows = [((0, 3, 3, 0), 1.0)] * n + [((4, 3, 0, 0), -1.0)] * n
    assert changes(query, rows, [*rows, ((0, 3, 0, 0), -1.0)])[0] > 0.999 * largest(query, A)
    spans = changes(query, [*rows, ((0, 3, 0, 0), 1.0)], [*rows, ((0, 3, 0, 0), -1.0)])
    assert largest(query, R) >= spans[0] > 0.999 * largest(query, R)


# ---- the choice ----


def law_of(query, table, rate):
    """{tests chosen, one a node: probability}, by the definition, over all tests."""
    step, nodes = mpmath.mpf(2) ** query.grid.exponents[0], []
    for found in listed_gains(query, table):
        top = max((gain for gain, _ in found.values()), default=0)
        weights = {test: w * mpmath.exp(mpmath.mpf(rate) * step * (gain - top)) for test, (gain, w) in found.items()}
        total = mpmath.fsum(weights.values())
        nodes.append([(test, w / total) for test, w in weights.items()] or [((0, 0, False, -1), mpmath.mpf(1))])
    return {
        tuple(test for test, _ in picks): mpmath.fprod(weight for _, weight in picks)
        for picks in itertools.product(*nodes)
    }


class Uniform:
    """A source of whole numbers that are picked."""

    def __init__(self, pick):
        self.pick = pick

    def integers(self, bound, n):
        return np.array([self.pick([mpmath.mpf(1) / bound] * bound) for _ in range(n)], dtype=np.int64)


FEW = (FeatureCells(ordered=4, equality=(4,)), FeatureCells(ordered=0, equality=(0, 1)))


@pytest.mark.parametrize(
    ("structure", "blocks"),
    [
        (ROOT, 1),
        (ROOT, 255),
        (structure_of((1, 0, True, -1)), 255),
        (structure_of((0, 3, False, -1)), 255),
    ],
)
def test_the_choice_has_the_law_of_the_exponential_mechanism_over_all_tests(monkeypatch, exact_law, structure, blocks):
    """Every stretch, every point in it and every coin, with their exact probabilities, at all nodes together."""
    monkeypatch.setattr(coarse_gains, "_BLOCKS", blocks)
    query = asked(structure, FEW, damping=0.5)
    table = table_of([((0, 0), 1.0), ((2, 1), -1.0), ((2, 0), 0.5), ((4, 1), 1.0), ((3, 2), -1.0)])
    evidence = table.utilities(query, EVERY)

    def run(pick):
        def choose(gaps, counts, rate, _):
            nats = [mpmath.mpf(int(gap)) * rate.numerator / rate.denominator for gap in gaps]
            weights = [int(count) * mpmath.exp(-x) for count, x in zip(counts, nats, strict=True)]
            return pick([weight / mpmath.fsum(weights) for weight in weights])

        def coin(gap, rate, _):
            head = mpmath.exp(-mpmath.mpf(gap) * rate.numerator / rate.denominator)
            return bool(pick([1 - head, head]))

        monkeypatch.setattr(choice, "choose", choose)
        monkeypatch.setattr(choice, "coin", coin)
        return tuple(listed(query.select(GridlessMechanism(rate=0.7), evidence, Uniform(pick))))

    assert evidence.exact.all() == (blocks > 1)
    found, law = exact_law(run), law_of(query, table, 0.7)
    assert found.keys() == law.keys()
    assert max(abs(found[x] - law[x]) for x in law) < 1e-13


def test_where_a_path_has_decided_everything_all_rows_go_right():
    cells = (FeatureCells(ordered=0, equality=(0,)), FeatureCells(ordered=2, equality=()))
    query = asked(structure_of((0, 0, True, -1), (1, 1, False, -1), (1, 1, False, -1)), cells)
    table = table_of([((0, 0), 1.0), ((1, 1), 1.0)])
    assert query.points.totals.tolist() == [0, 0, 0, 0]
    chosen = query.select(GridlessMechanism(rate=1.0), table.utilities(query, EVERY), None)  # nothing is drawn
    assert listed(chosen) == [(0, 0, False, -1)] * 4
    assert query.structure.deeper(chosen).route(np.array([[0, 1], [0, 1]], np.uint8)).tolist() == [1, 7]


# ---- prices and rounds ----


def test_a_level_costs_what_it_costs_with_all_tests_listed():
    for adjacency in Adjacency:
        query = asked(clip=0.5)
        event = query.event(GridlessMechanism(rate=0.3), adjacency)
        assert query.sensitivity(adjacency) == gain_range(0.5, adjacency)
        assert event == of_all_tests(query).event(ExponentialMechanism(rate=0.3), adjacency)
        assert event == BoundedRangeEvent(epsilon=0.6 if adjacency is R else 0.3, adjacency=adjacency)


def opened(event, table, source):
    ledger = Ledger(Budget(epsilon=1e9, delta=0.0, adjacency=event.adjacency), unit=PrivacyUnit.ROW)
    return Curator(table, ledger.grant(event, purpose="levels"), source)


SOME_ROWS = [((k % 6, k * k % 5, k % 4, 0), float(np.sin(k))) for k in range(120)]


@pytest.mark.parametrize("source", [SeededRandom(4), SecureRandom()])
def test_a_tree_is_grown_level_by_level_on_one_sample(monkeypatch, source):
    mechanism, table, seen = GridlessMechanism(rate=1e6), table_of(SOME_ROWS), []
    read = Table.utilities

    def watched(self, query, sampled):
        if isinstance(query, GridlessGains):
            seen.append(sampled)
        return read(self, query, sampled)

    monkeypatch.setattr(Table, "utilities", watched)
    level = asked().event(mechanism, A)
    tree = PoissonSampled(Composed((level,) * 3), sampling_rate=0.7)
    structure, curator = ROOT, opened(tree, table, source)
    with curator.open(tree, purpose="tree") as round_:
        for depth in range(3):
            query = asked(structure)
            chosen = round_.select(query, mechanism, purpose=f"level {depth}").value
            # At this rate, the best candidate of each node.
            best = listed_gains(query, table, seen[-1])
            for test, found in zip(listed(chosen), best, strict=True):
                assert found[test][0] == max(gain for gain, _ in found.values())
            structure = structure.deeper(chosen)
        with pytest.raises(RoundViolation, match="does not hold"):
            round_.select(asked(structure), mechanism, purpose="a fourth")
    assert structure.depth == len(seen) == 3
    assert all(sampled is seen[0] for sampled in seen)
    assert 0 < seen[0].sum() < len(SOME_ROWS)


def test_what_is_refused_reads_no_row_and_takes_nothing(monkeypatch):
    mechanism = GridlessMechanism(rate=0.05)
    level = asked().event(mechanism, A)
    curator = opened(level, table_of(SOME_ROWS), SeededRandom(1))

    class Cheaper(GridlessGains):  # type: ignore[misc]
        __slots__ = ()

        def event(self, mechanism, adjacency):
            return level

    class Smaller(TreeStructure):  # type: ignore[misc]
        """Rows of two leaves, and room for one."""

        __slots__ = ()
        n_leaves = 1

    def tripwire(*_):
        raise AssertionError("rows were read")

    cheaper = Cheaper(structure=ROOT, cells=CELLS, ensemble=START, loss="squared", clip=256.0, damping=0.0)
    arrays = {"feature": np.array([0], np.int32), "split": np.array([2], np.uint16), "equals": np.array([False])}
    with curator.open(level, purpose="level") as round_:
        with monkeypatch.context() as patched:
            patched.setattr(kernels, "node_gradients", tripwire)
            for query, message in [
                (cheaper, "Cheaper is not a selection"),
                (asked(Smaller(**arrays)), "Smaller is not a TreeStructure"),
                (asked(structure_of((4, 2, False, -1))), r"features outside 0\.\.3"),
                (asked(cells=CELLS[:3]), "candidates of 3 features: the table has 4"),
                (asked(cells=(*CELLS, CELLS[0])), "candidates of 5 features: the table has 4"),
                (asked(clip=2.0), "does not hold"),
            ]:
                with pytest.raises(RoundViolation, match=message):
                    round_.select(query, mechanism, purpose="refused")
            with pytest.raises(RoundViolation, match="needs GridlessMechanism, not ExponentialMechanism"):
                round_.select(asked(), ExponentialMechanism(rate=0.05), purpose="another mechanism")
            with pytest.raises(RoundViolation, match="does not hold"):
                round_.select(asked(), GridlessMechanism(rate=0.06), purpose="a higher rate")
        assert len(round_.select(asked(), mechanism, purpose="level").value) == 1


class Mutable(FeatureCells):  # type: ignore[misc]
    """Cells that could change."""

    __slots__ = ()


@pytest.mark.parametrize("numeric_weight", [2.0**-20, 0.3, 1.0, 7.5, 2.0**20])
@pytest.mark.parametrize("fine", [5, 4_000])
def test_a_feature_with_thresholds_weighs_what_it_is_given_where_a_category_weighs_1(numeric_weight, fine):
    cells = (
        FeatureCells(ordered=fine, equality=()),
        FeatureCells(ordered=fine // 2, equality=(fine,)),  # its value may be missing
        FeatureCells(ordered=0, equality=(0, 1, 2)),
    )
    query = asked(cells=cells, numeric_weight=numeric_weight)
    parts, points = query.parts, query.points
    assert points.totals.tolist() == [sum(parts.weight * (points.stop - points.first)[:, 0])]
    feature_points = np.zeros(3)
    np.add.at(feature_points, parts.feature, parts.weight * (points.stop - points.first)[:, 0])
    category = feature_points[2] / 3
    assert feature_points[:2] / category == pytest.approx([numeric_weight] * 2, rel=1 / 64)
    # What is chosen is the exponential mechanism's over all tests, each with its feature's weight.
    if fine > 5 or not 0.1 < numeric_weight < 10.0:  # it looks at point after point
        return
    table = table_of([((0, 1, 2), 0.5), ((3, 0, 1), -0.5), ((4, 2, 0), 0.25)])
    found = by_test(query, table.utilities(query, EVERY))
    plain = by_test(asked(cells=cells), table.utilities(asked(cells=cells), EVERY))
    assert {test: gain for test, (gain, _) in found[0].items()} == {test: gain for test, (gain, _) in plain[0].items()}
    sizes = Counter(test[0] for test in found[0])
    shares = {test: count * sizes[test[0]] / category for test, (_, count) in found[0].items()}
    wanted = {0: numeric_weight, 1: numeric_weight, 2: 3.0}
    assert shares == pytest.approx({test: wanted[test[0]] for test in shares}, rel=1 / 64)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"numeric_weight": 0.0}, r"numeric_weight=0.0 must be in \[2\*\*-20, 2\*\*20\] \(unit: tests of equality\)"),
        ({"numeric_weight": 2.0**21}, "numeric_weight=2097152.0 must be in"),
        ({"numeric_weight": math.nan}, "numeric_weight=nan must be a finite real number"),
        ({"clip": 257.0}, r"clip=257.0 must be in .*256"),
        ({"damping": -0.1}, r"damping=-0.1 must be >= 0 \(unit: rows\)"),
        ({"loss": "newton"}, "loss='newton' must be 'squared' or 'logistic'"),
        ({"large_gradients": "keep"}, "large_gradients='keep'"),
        ({"cells": ()}, "tests=0"),
        ({"cells": CELLS[3:]}, "tests=0"),
        ({"cells": (Mutable(ordered=3, equality=()),)}, "cells=.* must be FeatureCells"),
        ({"cells": (FeatureCells(ordered=2**16 + 1, equality=()),)}, "ordered=65537 must be at most 65536"),
        ({"cells": (FeatureCells(ordered=-1, equality=()),)}, "ordered=-1"),
        ({"cells": (FeatureCells(ordered=3, equality=(2,)),)}, r"equality=\(2,\) must be distinct, in \[ordered=3"),
        ({"cells": (FeatureCells(ordered=0, equality=(1, 1)),)}, r"equality=\(1, 1\) must be distinct"),
        ({"cells": (FeatureCells(ordered=0, equality=(2**16,)),)}, r"equality=\(65536,\)"),
        ({"cells": (FeatureCells(ordered=0, equality=(0.5,)),)}, "equality=0.5 must be a whole number"),
        (
            {
                "cells": (
                    FeatureCells(ordered=60_000, equality=tuple(range(60_000, 65_000))),
                    *[FeatureCells(ordered=0, equality=(0,))] * 4000,
                )
            },
            r"points=\d+ must be < 2\*\*40",
        ),
        (
            {
                "cells": (FeatureCells(ordered=60_000, equality=()), FeatureCells(ordered=0, equality=(0, 1))),
                "numeric_weight": 2.0**-20,
            },
            r"points=\d+ must be < 2\*\*40",
        ),
    ],
)
def test_bad_values_are_refused(change, match):
    values = {"structure": ROOT, "cells": CELLS, "ensemble": START, "loss": "squared", "clip": 1.0, "damping": 0.1}
    with pytest.raises(InvalidParameter, match=match):
        GridlessGains(**{**values, **change})


def test_levels_that_are_too_large_are_refused():
    inner = 2**19 - 1
    deep = TreeStructure(
        feature=np.zeros(inner, np.int32), split=np.zeros(inner, np.uint16), equals=np.zeros(inner, np.bool_)
    )
    with pytest.raises(InvalidParameter, match=r"nodes \* cells=\d+ must be at most 16777216"):
        asked(deep, CELLS * 8)
    deepest = deep.deeper(TESTS.taken(np.full(2**19, -1)))
    with pytest.raises(InvalidParameter, match="depth=21 must be at most 20"):
        asked(deepest)
