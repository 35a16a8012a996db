"""Splits by gain: exact changes between all small neighbours, laws by enumeration, and rounds that pay for them."""

import itertools
import math
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import (
    Adjacency,
    Budget,
    Categorical,
    Composed,
    Ledger,
    Numeric,
    PoissonSampled,
    PrivacyUnit,
    Schema,
    price,
)
from ledgerwood.accounting.events import BoundedRangeEvent, LaplaceEvent, Parallel, PureEvent
from ledgerwood.curator import Curator, LeafRatios, SplitGains, Table, gain_range
from ledgerwood.curator.kernels import histograms as histogram_kernels
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, Tree, TreeStructure
from ledgerwood.errors import DrawRefused, InvalidParameter, RoundViolation
from ledgerwood.mechanisms import (
    ExponentialMechanism,
    LaplaceMechanism,
    NoisyMaxMechanism,
    PermuteAndFlipMechanism,
    SecureRandom,
    SeededRandom,
)
from ledgerwood.mechanisms.exact import choice

A, Z, R = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
EVERY = np.empty(0, dtype=np.bool_)
START = Ensemble(initial_score=0.0)
SCHEMA = Schema(
    features=(Numeric("a", 0.0, 1.0, missing=True), Categorical("b", ("x", "y"))), target=Numeric("t", -1, 1)
)
TESTS = SplitTests.every(SCHEMA.cells(3))
# Row: cell of "a" (0..2, 3 missing), cell of "b" (0, 1, 2 other), gradient.
CELLS = list(itertools.product(range(4), range(3)))


def structure_of(*tests):
    feature, split, equals = zip(*tests, strict=True) if tests else ((), (), ())
    return TreeStructure(
        feature=np.array(feature, np.int32), split=np.array(split, np.uint16), equals=np.array(equals, np.bool_)
    )


ROOT = TreeStructure.root()
TWO_NODES = structure_of((0, 1, False))


def goes_left(tests, k, cell):
    """Whether test k sends a cell, or an array of them, left."""
    if tests.equals[k]:
        return cell == tests.split[k]
    return (cell < tests.split[k]) | (cell == (-1 if tests.besides is None else tests.besides[k]))


def table_of(rows):
    cells = np.array([row[:2] for row in rows], dtype=np.uint8).reshape(-1, 2).T
    # At score 0 a row's gradient is minus its label.
    return Table(schema=SCHEMA, cells=np.ascontiguousarray(cells), targets=np.array([-row[2] for row in rows], float))


def asked(structure=ROOT, *, damping=0.1, clip=1.0, tests=TESTS, **more):
    return SplitGains(
        structure=structure, tests=tests, ensemble=START, loss="squared", clip=clip, damping=damping, **more
    )


def gains_of(query, rows, sampled=EVERY):
    return table_of(rows).utilities(query, sampled)


def steps(query, value):
    return Fraction(value) / Fraction(2) ** query.grid.exponents[0]


def largest(query, adjacency):
    return steps(query, query.sensitivity(adjacency).range)


# ---- what a row changes ----


@pytest.mark.slow_after(2)  # many tables and their neighbours in exact integers
@pytest.mark.parametrize(("damping", "clip"), [(0.0, 1.0), (0.1, 0.7), (3.0, 1.0)])
@pytest.mark.parametrize("structure", [ROOT, TWO_NODES], ids=["root", "level"])
def test_a_row_moves_the_gains_of_its_own_node_within_the_range(structure, damping, clip):
    query = asked(structure, damping=damping, clip=clip)
    row_squared = (Fraction(query.clip_steps, 2**20)) ** 2
    ends = -math.ceil(steps(query, 3 * row_squared)), math.ceil(steps(query, row_squared))
    kinds = [(*cells, g) for cells in [(0, 0), (0, 1), (1, 0), (2, 2), (3, 1)] for g in (-1.0, 1.0, 0.31)]
    found = {
        rows: gains_of(query, rows)
        for n in range(4)
        for rows in itertools.combinations_with_replacement(range(len(kinds)), n)
        for rows in [tuple(kinds[i] for i in rows)]
    }
    widest = 0
    for rows, before in found.items():
        for row in kinds if len(rows) < 3 else []:
            change = found[tuple(sorted((*rows, row), key=kinds.index))] - before
            node = 0 if structure is ROOT or row[0] < 1 else 1
            assert not np.delete(change, node, axis=0).any()
            assert ends[0] <= change.min() <= change.max() <= ends[1]
            widest = max(widest, int(np.ptp(change[node])))
    assert widest <= largest(query, A) == ends[1] - ends[0]


def test_duplicates_of_the_largest_gradients_come_as_near_to_the_range_as_one_likes():
    """n rows of g* where "a" sends the new row, n rows of -g* where "b" does."""
    query, n = asked(damping=0.0), 4000
    rows = [(0, 1, 1.0)] * n + [(1, 0, -1.0)] * n
    change = gains_of(query, [*rows, (0, 0, -1.0)]) - gains_of(query, rows)
    assert change.max() == steps(query, 1)
    assert change.min() == math.floor(steps(query, Fraction(-(3 * n - 1), n + 1)))
    assert np.ptp(change) > 0.999 * largest(query, A)
    before, after = [*rows, (0, 0, 1.0)], [*rows, (0, 0, -1.0)]
    assert np.ptp(gains_of(query, after) - gains_of(query, before)) > 0.999 * largest(query, R)
    assert largest(query, R) == 2 * largest(query, A) == 8 * steps(query, 1)


def test_the_bound_that_was_published_is_exceeded():
    """DPBoost's Lemma 1 at lambda = .1: (3 lambda + 2) / ((lambda + 1) (lambda + 2)) = .9957."""
    query = asked(damping=0.1)
    rows = [(0, 0, 1.0)] * 50
    change = gains_of(query, [*rows, (0, 0, -1.0)]) - gains_of(query, rows)
    assert change.min() < -2.8 * steps(query, 1)


@pytest.mark.parametrize("structure", [ROOT, TWO_NODES], ids=["root", "level"])
def test_a_replaced_row_moves_one_node_or_two_within_the_range(structure):
    query = asked(structure, damping=0.0)
    kinds = [(*cells, g) for cells in [(0, 0), (0, 1), (1, 0), (2, 1)] for g in (-1.0, 1.0)]
    found = {
        tuple(kinds[i] for i in rows): gains_of(query, [kinds[i] for i in rows])
        for n in range(1, 4)
        for rows in itertools.combinations_with_replacement(range(len(kinds)), n)
    }
    widest = 0
    for rows, before in found.items():
        for row in kinds:
            change = found[tuple(sorted((*rows[1:], row), key=kinds.index))] - before
            # The losses of two independent choices add up: so do their ranges.
            widest = max(widest, sum(int(x) for x in np.ptp(change, axis=1)))
    assert 0 < widest <= largest(query, R)


def test_a_level_under_replace_one_is_bounded_range_for_both_nodes_together():
    """All pairs of choices, with their exact probabilities: one row leaves the left node, another enters the right."""
    query = asked(TWO_NODES, damping=0.0)
    mechanism = ExponentialMechanism(rate=0.8)
    left = [(0, 0, 1.0)] * 9 + [(0, 2, -1.0)] * 60  # "b is x" and "b is y" part them
    common = left + [(1, 1, -1.0)] * 9 + [(2, 0, 1.0)] * 60  # and here "a < 2" and "b is x"
    laws = [law_of(query, gains_of(query, [*common, row]), 0.8) for row in [(0, 0, -1.0), (1, 1, 1.0)]]
    losses = [mpmath.log(laws[0][x] / laws[1][x]) for x in laws[0]]
    event = query.event(mechanism, R)
    assert isinstance(event, BoundedRangeEvent)
    assert min(losses) <= 0 <= max(losses)
    once = query.event(mechanism, A).epsilon
    assert once < max(losses) - min(losses) <= event.epsilon  # one node's price would be too small


def test_a_level_under_add_remove_costs_one_node():
    query = asked(TWO_NODES, damping=0.0)
    rows = [(0, 0, 1.0)] * 9 + [(0, 2, -1.0)] * 60 + [(1, 1, -1.0)] * 9 + [(2, 0, 1.0)] * 60
    epsilon = query.event(ExponentialMechanism(rate=0.8), A).epsilon
    without = law_of(query, gains_of(query, rows), 0.8)
    for row in [(0, 0, -1.0), (1, 1, 1.0)]:
        law = law_of(query, gains_of(query, [*rows, row]), 0.8)
        losses = [mpmath.log(law[x] / without[x]) for x in law]
        assert min(losses) <= 0 <= max(losses)
        assert epsilon / 2 < max(losses) - min(losses) <= epsilon


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.fractions(0, 1), st.fractions(-1, 1)), max_size=6),
    st.fractions(0, 1),
    st.fractions(-1, 1) | st.sampled_from([Fraction(1), Fraction(-1)]),
    st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(5)]),
    st.sampled_from([Fraction(1, 4), Fraction(1), Fraction(3)]),
    st.sampled_from([Fraction(1, 2), Fraction(4)]),
)
def test_the_proposition_holds_for_weights_and_a_constant_hessian(rows, weight, gradient, damping, hessian, most):
    def worth(some):
        total, size = sum(w * most * g for w, g in some), sum(w * most for w, _ in some)
        return total**2 / (hessian * size + damping) if size else Fraction(0)

    change = worth([*rows, (weight, gradient)]) - worth(rows)
    assert -3 * most / hessian <= change <= most / hessian


def test_newtons_gain_has_no_bound():
    """n rows that are confidently wrong, and one more of hessian 1/4."""
    h, damping = Fraction(1, 10**9), Fraction(1)
    changes = [
        (n - Fraction(1, 2)) ** 2 / (n * h + Fraction(1, 4) + damping) - n**2 / (n * h + damping) for n in (10, 100)
    ]
    assert changes[1] < 50 * changes[0] < 0


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([1, -1]))
def test_half_the_gain_is_minus_the_impurity_but_for_the_rows(positive, negative, label):
    def impurity(plus, minus):
        return plus + minus - Fraction(plus**2 + minus**2, plus + minus) if plus + minus else Fraction(0)

    query = asked(damping=0.0)
    counts = {(positive, negative), (positive + (label > 0), negative + (label < 0))}
    for plus, minus in counts:
        # "b is x" sends all of them left.
        gain = int(gains_of(query, [(0, 0, 1.0)] * plus + [(0, 0, -1.0)] * minus)[0, places_of_test(1, 0)])
        assert gain == math.floor(steps(query, plus + minus - 2 * impurity(plus, minus)))
    rises = impurity(positive + (label > 0), negative + (label < 0)) - impurity(positive, negative)
    assert 0 <= rises < 2


# ---- the statistic ----


def naive(query, rows, sampled=None):
    """Row by row, in fractions."""
    found = np.zeros((query.structure.n_leaves, len(query.tests)), dtype=object)
    leaves = query.structure.route(np.array([row[:2] for row in rows], np.uint8).reshape(-1, 2).T)
    for node in range(query.structure.n_leaves):
        here = [
            row for i, (row, leaf) in enumerate(zip(rows, leaves, strict=True))
            if leaf == node and (sampled is None or sampled[i]) and math.isfinite(row[2])
            and not (query.large_gradients == "drop" and abs(row[2]) > query.clip)
        ]  # fmt: skip
        for k in range(len(query.tests)):
            for go_left in (True, False):
                side = [r for r in here if goes_left(query.tests, k, r[query.tests.feature[k]]) == go_left]
                total = sum(max(-query.clip_steps, min(query.clip_steps, int(r[2] * 2**20))) for r in side)
                if side:
                    value = Fraction(total, 2**20) ** 2 / (len(side) + Fraction(query.damping_steps, 2**20))
                    found[node, k] += math.floor(steps(query, value))
    return found


def random_rows(generator, n):
    gradients = generator.choice([-2.0, -1.0, -0.4, 0.1, 0.9, 1.0, math.nan], n)
    return [
        (int(a), int(b), float(g))
        for a, b, g in zip(generator.integers(0, 4, n), generator.integers(0, 3, n), gradients, strict=True)
    ]


@pytest.mark.parametrize("large", ["clip", "drop"])
@pytest.mark.parametrize("structure", [ROOT, TWO_NODES, structure_of((1, 0, True), (0, 2, False), (0, 3, True))])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_gains_row_by_row(structure, large, n):
    generator = np.random.default_rng(n)
    rows = random_rows(generator, n)
    query = asked(structure, clip=0.9, damping=0.3, large_gradients=large)
    assert (gains_of(query, rows) == naive(query, rows)).all()
    sampled = generator.random(n) < 0.5
    if n:
        assert (gains_of(query, rows, sampled) == naive(query, rows, sampled)).all()
    order = generator.permutation(n)
    assert (gains_of(query, [rows[i] for i in order]) == gains_of(query, rows)).all()


@pytest.mark.slow  # compiles the kernel for threads
def test_all_threads_add_up_what_one_does():
    generator = np.random.default_rng(0)
    n = 160_000  # above the number of rows at which threads take part
    cells = generator.integers(0, 3, (2, n)).astype(np.uint8)
    targets = generator.uniform(-1, 1, n)
    query = asked(TWO_NODES)
    together = Table(schema=SCHEMA, cells=cells, targets=targets).utilities(query, EVERY)
    size = np.trunc(np.clip(-targets, -1, 1) * 2**20).astype(np.int64)
    for node, here in enumerate((cells[0] < 1, cells[0] >= 1)):
        for k in range(len(TESTS)):
            left = goes_left(TESTS, k, cells[TESTS.feature[k]].astype(int))
            value = 0
            for side in (here & left, here & ~left):
                count = int(side.sum())
                if count:
                    ratio = Fraction(int(size[side].sum()), 2**20) ** 2 / (count + Fraction(query.damping_steps, 2**20))
                    value += math.floor(steps(query, ratio))
            assert together[node, k] == value


def test_gradients_are_those_of_the_ensemble():
    tree = Tree(structure=TWO_NODES, values=np.array([0.5, -0.25]))
    query = SplitGains(
        structure=ROOT, tests=TESTS, ensemble=START.extended(tree), loss="squared", clip=1.0, damping=0.0
    )
    table = table_of([(0, 0, 0.25), (1, 0, 0.5)])  # gradients 0.75 and 0.25
    of_both = steps(query, Fraction(9, 16) + Fraction(1, 16))
    assert table.utilities(query, EVERY)[0, 0] == of_both  # "a < 1" parts them
    assert table.utilities(query, EVERY)[0, 1] == steps(query, Fraction(1, 2))  # "a < 2" does not
    logistic = SplitGains(structure=ROOT, tests=TESTS, ensemble=START, loss="logistic", clip=1.0, damping=0.0)
    assert table_of([(0, 0, -1.0)]).utilities(logistic, EVERY)[0, 0] == steps(logistic, Fraction(1, 4))


# ---- candidates ----


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(range(len(TESTS))), min_size=7, max_size=7), st.sampled_from([0, 1, 3, 7]))
def test_candidates_are_those_that_the_path_has_not_decided(places, nodes):
    taken = TESTS.taken(np.array(places[:nodes], dtype=np.int64)) if nodes else None
    structure = ROOT
    if taken is not None:
        structure = TreeStructure(feature=taken.feature, split=taken.split, equals=taken.equals, besides=taken.besides)
    found = asked(structure).open_tests()
    cells = np.array(CELLS, np.uint8).T
    leaves = structure.route(cells)
    for node in range(structure.n_leaves):
        here = cells[:, leaves == node]
        for k in range(len(TESTS)):
            left = goes_left(TESTS, k, here[TESTS.feature[k]].astype(int))
            # A path that no row can take has no candidate worth having; whether it has one does not matter.
            assert found[node, k] == (left.any() and not left.all()) or not here.size


def test_missing_values_go_left_or_right():
    """One threshold, both ways: rows of the missing cell 3 are like those below the threshold, not like those above."""
    rows = [(0, 0, 1.0)] * 3 + [(2, 0, -1.0)] * 3 + [(3, 0, 1.0)] * 3
    query = asked(damping=0.0)
    found = dict(zip(listed(TESTS), gains_of(query, rows)[0].tolist(), strict=True))
    assert found[0, 1, False, 3] == steps(query, 9)  # 6 and 3 of a kind
    assert found[0, 1, False, -1] == steps(query, 3)
    assert found[0, 3, True, -1] == steps(query, 3)
    chosen = query.select(ExponentialMechanism(rate=100.0), gains_of(query, rows), SeededRandom(1))
    assert ROOT.deeper(chosen).route(np.array([[0, 2, 3], [0, 0, 0]], np.uint8)).tolist() == [0, 1, 0]


def test_tests_of_cells_beyond_the_candidates():
    """Candidates that know the cells below 2 only, under a tree that tests others of the same feature."""
    tests = SplitTests(feature=np.array([0], np.int32), split=np.array([2], np.uint16), equals=np.array([False]))
    for split, equals, besides, expected in [
        (5, False, -1, [True, False]),
        (7, True, -1, [False, True]),
        (1, True, -1, [False, True]),
        (1, False, 9, [True, True]),  # cells 0 and 9 on the left
    ]:
        structure = TreeStructure(
            feature=np.array([0], np.int32),
            split=np.array([split], np.uint16),
            equals=np.array([equals]),
            besides=np.array([besides], np.int32),
        )
        assert asked(structure, tests=tests).open_tests()[:, 0].tolist() == expected


def test_where_a_path_has_decided_everything_all_rows_go_right():
    tests = SplitTests(feature=np.array([1], np.int32), split=np.array([0], np.uint16), equals=np.array([True]))
    query = asked(structure_of((1, 0, True)), tests=tests)
    chosen = query.select(ExponentialMechanism(rate=1.0), gains_of(query, [(0, 0, 1.0)]), None)  # nothing is drawn
    grown = query.structure.deeper(chosen)
    assert grown.depth == 2
    assert grown.route(np.array([[0, 0], [0, 1]], np.uint8)).tolist() == [1, 3]


# ---- laws ----


def law_of(query, gains, rate):
    """{tests chosen, one a node: probability}."""
    step = mpmath.mpf(2) ** query.grid.exponents[0]
    nodes = []
    for values, candidates in zip(gains.tolist(), query.open_tests(), strict=True):
        places = np.flatnonzero(candidates).tolist()
        weights = [mpmath.exp(mpmath.mpf(rate) * step * (values[k] - max(values))) for k in places]
        nodes.append([(k, weight / mpmath.fsum(weights)) for k, weight in zip(places, weights, strict=True)])
    return {
        tuple(k for k, _ in picks): mpmath.fprod(weight for _, weight in picks) for picks in itertools.product(*nodes)
    }


def listed(tests):
    none = np.full(len(tests), -1)
    besides = none if tests.besides is None else tests.besides
    arrays = (tests.feature, tests.split, tests.equals, besides)
    return list(zip(*(array.tolist() for array in arrays), strict=True))


def places_of_test(feature, cell):
    return listed(TESTS).index((feature, cell, True, -1))


def places_of(chosen):
    return tuple(listed(TESTS).index(test) for test in listed(chosen))


def test_a_level_has_the_law_of_independent_exponential_mechanisms(monkeypatch, exact_law):
    query = asked(TWO_NODES, damping=0.5)
    gains = gains_of(query, [(0, 0, 1.0), (0, 1, -1.0), (1, 0, 0.5), (2, 1, 1.0), (3, 2, -1.0)])

    def run(pick):
        def choose(gaps, counts, rate, _):
            assert (counts == 1).all()
            weights = [mpmath.exp(-mpmath.mpf(int(gap)) * rate.numerator / rate.denominator) for gap in gaps]
            return pick([weight / mpmath.fsum(weights) for weight in weights])

        monkeypatch.setattr(choice, "choose", choose)
        return places_of(query.select(ExponentialMechanism(rate=0.7), gains, None))

    found, law = exact_law(run), law_of(query, gains, 0.7)
    assert found.keys() == law.keys()
    assert max(abs(found[x] - law[x]) for x in law) < 1e-13


def test_permute_and_flip_at_one_node(monkeypatch, exact_law):
    tests = SplitTests(
        feature=np.array([0, 0, 1], np.int32),
        split=np.array([1, 2, 0], np.uint16),
        equals=np.array([False, False, True]),
    )
    query = asked(tests=tests, damping=0.5)
    gains = gains_of(query, [(0, 0, 1.0), (0, 1, -1.0), (1, 0, 0.5), (2, 1, 1.0)])
    rate = 0.7 * 2.0 ** query.grid.exponents[0]
    heads = [mpmath.exp(-rate * (int(gains.max()) - int(u))) for u in gains[0]]

    class Source:
        def __init__(self, pick):
            self.pick = pick

        def integers(self, bound, n):
            return np.array([self.pick([mpmath.mpf(1) / bound] * bound) for _ in range(n)])

    def run(pick):
        def coins(gaps, per_step, _):
            rates = [mpmath.exp(-mpmath.mpf(int(gap)) * per_step.numerator / per_step.denominator) for gap in gaps]
            return np.array([pick([head, 1 - head]) == 0 for head in rates])

        monkeypatch.setattr(choice, "coins", coins)
        return places_of(query.select(PermuteAndFlipMechanism(rate=0.7), gains, Source(pick)))

    law = dict.fromkeys(range(3), mpmath.mpf(0))
    for order in itertools.permutations(range(3)):
        passed = mpmath.mpf(1) / 6
        for k in order:
            law[k] += passed * heads[k]
            passed *= 1 - heads[k]
    known = places_of(tests)
    found = exact_law(run)
    assert max(abs(found.get((known[k],), 0) - law[k]) for k in law) < 1e-13


# ---- prices and rounds ----


@pytest.mark.parametrize("adjacency", [A, Z, R])
def test_a_level_costs_what_one_node_costs(adjacency):
    query = asked(TWO_NODES, clip=0.5)
    twice = 2.0 if adjacency is R else 1.0
    event = query.event(ExponentialMechanism(rate=0.3), adjacency)
    assert event == asked(clip=0.5).event(ExponentialMechanism(rate=0.3), adjacency)
    assert event == BoundedRangeEvent(epsilon=0.3 * twice, adjacency=adjacency)  # the range is 4 / 4
    assert query.event(PermuteAndFlipMechanism(rate=0.3), adjacency) == PureEvent(
        epsilon=event.epsilon, adjacency=adjacency
    )
    if adjacency is A:
        level = Parallel.worst((event,) * 2)
        assert price(level).epsilon(1e-6) == pytest.approx(price(event).epsilon(1e-6), rel=1e-9)


@pytest.mark.parametrize("clip", [2.0**-20, 3 * 2.0**-20, 0.1, 0.3, 1.0, 1.5, 255.0, 256.0])
def test_the_range_is_rounded_up(clip):
    query = asked(clip=clip)
    exact = 4 * (Fraction(query.clip_steps) / 2**20) ** 2
    found = Fraction(query.sensitivity(A).range)
    assert exact <= found <= exact * (1 + Fraction(1, 2**28))
    if clip in (2.0**-20, 1.0, 256.0):
        assert found == exact
    assert Fraction(query.sensitivity(R).range) == 2 * found


def test_a_plan_prices_a_level_before_there_is_a_tree():
    for adjacency in (A, Z, R):
        assert gain_range(0.3, adjacency) == asked(clip=0.3).sensitivity(adjacency)
    with pytest.raises(InvalidParameter, match="clip=300.0"):
        gain_range(300.0, A)


def opened(event, table, *, purpose="levels", source=None):
    ledger = Ledger(Budget(epsilon=1e6, delta=0.0, adjacency=event.adjacency), unit=PrivacyUnit.ROW)
    grant = ledger.grant(event, purpose=purpose)
    curator = Curator(table, grant, SeededRandom(3) if source is None else source)
    return curator, ledger


ROWS = [(0, 0, 1.0), (0, 1, -1.0), (1, 0, 0.5), (2, 1, 1.0), (3, 2, -1.0)] * 20


@pytest.mark.parametrize("mechanism", [ExponentialMechanism(rate=50.0), PermuteAndFlipMechanism(rate=50.0)])
def test_a_tree_is_grown_level_by_level_and_paid_for(mechanism):
    table = table_of(ROWS)
    level = asked().event(mechanism, A)
    curator, ledger = opened(Composed((level, level, level)), table)
    structure = ROOT
    for depth in range(3):
        query = asked(structure)
        with curator.open(level, purpose=f"level {depth}") as round_:
            chosen = round_.select(query, mechanism, purpose=f"level {depth}")
        # At this rate, the best candidate of each node, as the exact gains have it.
        gains, candidates = table.utilities(query, EVERY), query.open_tests()
        for node in np.flatnonzero(candidates.any(axis=1)):
            place = places_of(chosen.value.taken(np.array([node])))[0]
            assert candidates[node, place]
            assert gains[node, place] == gains[node, candidates[node]].max()
        assert chosen.randomness == "test"
        structure = structure.deeper(chosen.value)
    assert structure.depth == 3
    with pytest.raises(DrawRefused):
        curator.open(level, purpose="a fourth")


@pytest.mark.parametrize("source", [SeededRandom(4), SecureRandom()])
def test_a_whole_tree_sees_one_sample(monkeypatch, source):
    mechanism = ExponentialMechanism(rate=0.05)
    level = asked().event(mechanism, A)
    leaves = LaplaceMechanism(scales=(3.0,))
    ratios = LeafRatios(loss="squared", clip=1.0, damping=1.0).of(TWO_NODES, START)
    leaf = leaves.event(ratios.sensitivity(A), A)
    tree = PoissonSampled(Composed((level, level, leaf)), sampling_rate=0.5)
    curator, ledger = opened(tree, table_of(ROWS), source=source)
    seen = []
    gains = Table.utilities
    monkeypatch.setattr(
        Table, "utilities", lambda self, query, sampled: seen.append(sampled) or gains(self, query, sampled)
    )
    with curator.open(tree, purpose="tree 1") as round_:
        first = round_.select(asked(), mechanism, purpose="level 0")
        grown = ROOT.deeper(first.value)
        second = round_.select(asked(grown), mechanism, purpose="level 1")
        with pytest.raises(RoundViolation, match="does not hold"):
            round_.select(asked(grown), mechanism, purpose="level 1 again")
        assert second.receipt == first.receipt
        assert isinstance(leaf, LaplaceEvent)
        structure = grown.deeper(second.value)
        last = LeafRatios(loss="squared", clip=1.0, damping=1.0).of(structure, START)
        assert round_.release(last, leaves, purpose="leaves").value.shape == (4, 1)
    assert len(seen) == 2
    assert seen[0] is seen[1]
    assert 0 < seen[0].sum() < len(ROWS)
    assert price(tree).epsilon(1e-6) < 2 * level.epsilon + leaf.pure_epsilon()


def test_what_is_refused_reads_no_row_and_takes_nothing(monkeypatch):
    def tripwire(*_):
        raise AssertionError("rows were read")

    mechanism = ExponentialMechanism(rate=0.05)
    level = asked().event(mechanism, A)
    curator, ledger = opened(level, table_of(ROWS))

    class Cheaper(SplitGains):  # type: ignore[misc]
        __slots__ = ()

        def event(self, mechanism, adjacency):
            return level

    class Twice(SplitTests):  # type: ignore[misc]
        """Cell 1 twice on the left: a row moves the gain by up to 6 clip**2."""

        __slots__ = ()

        def lowered(self):
            return self.feature, np.array([2], np.uint16), np.array([1], np.int32)

    class Smaller(TreeStructure):  # type: ignore[misc]
        """Rows of two leaves, and room for one."""

        __slots__ = ()
        n_leaves = 1

    arrays = {"feature": np.array([0], np.int32), "split": np.array([2], np.uint16), "equals": np.array([False])}
    leaf = LeafRatios(loss="squared", clip=1.0, damping=1.0).of(Smaller(**arrays), START)
    cheaper = Cheaper(structure=ROOT, tests=TESTS, ensemble=START, loss="squared", clip=256.0, damping=0.0)
    outside = SplitTests(feature=np.array([2], np.int32), split=np.array([1], np.uint16), equals=np.array([True]))
    with curator.open(level, purpose="level") as round_:
        with monkeypatch.context() as patched:
            patched.setattr(histogram_kernels, "row_contributions", tripwire)
            with pytest.raises(RoundViolation, match="Cheaper is not a selection"):
                round_.select(cheaper, mechanism, purpose="cheaper")
            with pytest.raises(RoundViolation, match="Twice is not SplitTests"):
                round_.select(asked(tests=Twice(**arrays)), mechanism, purpose="twice")
            with pytest.raises(RoundViolation, match="Smaller is not a TreeStructure"):
                round_.select(asked(Smaller(**arrays)), mechanism, purpose="smaller")
            with pytest.raises(RoundViolation, match="Smaller is not a TreeStructure"):
                table_of(ROWS).statistic(leaf, EVERY)
            with pytest.raises(RoundViolation, match=r"features outside 0\.\.1"):
                round_.select(asked(tests=outside), mechanism, purpose="outside")
            with pytest.raises(RoundViolation, match=r"features outside 0\.\.1"):
                round_.select(asked(structure_of((2, 1, False))), mechanism, purpose="outside")
            with pytest.raises(RoundViolation, match="not NoisyMaxMechanism"):
                round_.select(asked(), NoisyMaxMechanism(scale=1.0), purpose="noisy maximum")
            with pytest.raises(RoundViolation, match="does not hold"):
                round_.select(asked(clip=2.0), mechanism, purpose="a wider clip at the price of a narrow one")
            with pytest.raises(RoundViolation, match="does not hold"):
                round_.select(asked(), ExponentialMechanism(rate=0.06), purpose="a higher rate")
        assert len(round_.select(asked(), mechanism, purpose="level").value) == 1
    with pytest.raises(RoundViolation, match="closed"):
        round_.select(asked(), mechanism, purpose="late")


class Watched:
    """Stands where an array is, and notes which module of the library asks for its values."""

    def __init__(self, values, log):
        self._values, self._log = np.asarray(values), log
        self.shape, self.dtype, self.ndim = self._values.shape, self._values.dtype, self._values.ndim

    def __len__(self):
        return len(self._values)

    def __array__(self, dtype=None, copy=None):
        frame = sys._getframe(1)
        while frame is not None and not frame.f_globals.get("__name__", "").startswith("ledgerwood."):
            frame = frame.f_back
        self._log.append(frame.f_globals["__name__"])
        return np.array(self._values, dtype=dtype)


def test_rows_are_read_by_the_curator_and_do_not_leave_it():
    log = []
    generator = np.random.default_rng(0)
    X, y = generator.uniform(0, 1, (37, 2)), generator.uniform(-1, 1, 37)
    schema = Schema.uniform(0, 1, n_features=2, target=Numeric("t", -1, 1))
    table = Table.from_data(Watched(X, log), Watched(y, log), schema, loss="squared", bins=4)
    assert log
    assert {".".join(name.split(".")[:2]) for name in log} == {"ledgerwood.curator"}
    before = list(log)
    mechanism, query = ExponentialMechanism(rate=0.05), asked(tests=SplitTests.every(schema.cells(4)))
    curator, _ = opened(query.event(mechanism, A), table)
    with curator.open(query.event(mechanism, A), purpose="level") as round_:
        chosen = round_.select(query, mechanism, purpose="level").value
    assert log == before
    assert {len(array) for array in (chosen.feature, chosen.split, chosen.equals)} == {1}


def test_rows_are_read_after_their_draw(monkeypatch):
    mechanism = ExponentialMechanism(rate=0.05)
    level = asked().event(mechanism, A)
    curator, ledger = opened(level, table_of(ROWS))
    drawn = []
    loop = histogram_kernels.row_contributions
    monkeypatch.setattr(
        histogram_kernels, "row_contributions", lambda *rest: drawn.append(len(ledger.entries)) or loop(*rest)
    )
    before = len(ledger.entries)
    with curator.open(level, purpose="level") as round_:
        round_.select(asked(), mechanism, purpose="level")
    assert drawn == [before + 1]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"clip": 2.0**-21}, r"clip=.* must be in .*units of the gradient"),
        ({"clip": 257.0}, r"clip=257.0 must be in .*256"),
        ({"clip": math.nan}, "clip=nan"),
        ({"damping": -0.1}, r"damping=-0.1 must be >= 0 \(unit: rows\)"),
        ({"damping": 2.0**41}, r"damping=.* must be in \[0, .*rows"),
        ({"damping": math.inf}, "damping=inf"),
        ({"loss": "newton"}, "loss='newton' must be 'squared' or 'logistic'"),
        ({"large_gradients": "keep"}, "large_gradients='keep'"),
    ],
)
def test_bad_values_are_refused(change, match):
    values = {"structure": ROOT, "tests": TESTS, "ensemble": START, "loss": "squared", "clip": 1.0, "damping": 0.1}
    with pytest.raises(InvalidParameter, match=match):
        SplitGains(**{**values, **change})


def test_levels_that_are_too_large_are_refused():
    inner = 2**19 - 1
    deep = TreeStructure(
        feature=np.zeros(inner, np.int32), split=np.zeros(inner, np.uint16), equals=np.zeros(inner, np.bool_)
    )
    assert asked(deep).structure.n_leaves == 2**19
    many = SplitTests.every([FeatureCells(ordered=200, equality=())])
    with pytest.raises(InvalidParameter, match=r"nodes \* cells=\d+ must be at most 16777216"):
        asked(deep, tests=many)
    deepest = deep.deeper(TESTS.taken(np.full(2**19, -1)))
    with pytest.raises(InvalidParameter, match="depth=21 must be at most 20"):
        asked(deepest)
