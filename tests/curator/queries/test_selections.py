"""Choices by a column: what they cost against the exact laws of all small tables, and their laws through a round."""

import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Categorical, Ledger, Numeric, PrivacyUnit, Schema
from ledgerwood.accounting.events import ApproximateEvent, BoundedRangeEvent, DiscreteLaplaceEvent, PureEvent
from ledgerwood.curator import Curator
from ledgerwood.curator.queries.columns.selections import (
    ColumnBounds,
    ColumnKeys,
    ColumnMode,
    ColumnQuantile,
    ColumnQuantiles,
    positions,
    threshold,
)
from ledgerwood.curator.queries.columns.statistics import ColumnHistogram, ColumnSum
from ledgerwood.curator.queries.registry import COLUMN_CHOICES
from ledgerwood.curator.tables.columns import ColumnTable
from ledgerwood.errors import DrawRefused, InvalidParameter, RoundViolation, SchemaError
from ledgerwood.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    JointQuantilesMechanism,
    LaplaceMechanism,
    NoisyMaxMechanism,
    PermuteAndFlipMechanism,
    PrivateBoundsMechanism,
    QuantileMechanism,
    SecureRandom,
    SeededRandom,
    StabilityHistogramMechanism,
    log_edges,
)

A, Z, R = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
AGE = Numeric("age", 0.0, 3.0, missing=True)
SEX = Categorical("sex", ("M", "F", "I"), missing=True)
SCHEMA = Schema(features=(AGE, SEX))
MODE = ColumnMode(histogram=ColumnHistogram(column=SEX))
MEDIAN = ColumnQuantile(column=AGE, points=4)
CHOICES = (ExponentialMechanism(rate=0.5), PermuteAndFlipMechanism(rate=0.5), NoisyMaxMechanism(scale=2.0))


def table_of(ages=(), codes=(), keys=None):
    n = max(len(ages), len(codes))
    columns = {
        "age": np.array([*ages, *[math.nan] * (n - len(ages))], float),
        "sex": np.array([*codes, *[SEX.missing_cell] * (n - len(codes))], np.uint16),
    }
    if keys is None:
        return ColumnTable(schema=SCHEMA, columns=columns, keys={}, rows=n)
    return ColumnTable.from_data(np.ones((len(keys), 1)), Schema.uniform(0, 2), keys={"city": list(keys)})


def opened(event, table, *, source=None, adjacency=A):
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=adjacency), unit=PrivacyUnit.ROW)
    grant = ledger.grant(event, purpose="tests")
    return Curator(table, grant, SeededRandom(1) if source is None else source), ledger


def selected(query, mechanism, table, *, adjacency=A, source=None):
    event = query.event(mechanism, adjacency)
    curator, _ = opened(event, table, adjacency=adjacency, source=source)
    with curator.open(event, purpose="choose") as round_:
        return round_.select(query, mechanism, purpose="choose")


@pytest.mark.parametrize("mechanism", CHOICES, ids=lambda m: type(m).__name__)
def test_the_mode_costs_the_range_of_its_counts(mechanism):
    rows = [np.eye(3)[i] for i in range(3)] + [np.zeros(3)]  # of the three categories; other and missing
    changes = {A: rows, Z: rows, R: [b - a for a, b in itertools.product(rows, rows)]}
    for adjacency, found in changes.items():
        widest = max(change.max() - change.min() for change in found)
        assert MODE.sensitivity(adjacency).range == widest
        assert MODE.event(mechanism, adjacency).epsilon == 0.5 * widest
        assert MODE.event(mechanism, adjacency).adjacency is adjacency


def quantile_law(rows, shares, rate, points=4):
    """The exact law over rising thresholds, by enumeration: minus half the rows to move between the bins."""
    present = [row for row in rows if row is not None]
    law = {}
    for outcome in itertools.combinations_with_replacement(range(points), len(shares)):
        below = [0, *(sum(position <= point for position in present) for point in outcome), len(present)]
        steps = [Fraction(0), *shares, Fraction(1)]
        moves = sum(
            abs(below[i + 1] - below[i] - (steps[i + 1] - steps[i]) * len(present)) for i in range(len(below) - 1)
        )
        law[outcome] = math.exp(-rate * float(moves / 2))
    total = sum(law.values())
    return {outcome: weight / total for outcome, weight in law.items()}


@pytest.mark.parametrize(
    ("shares", "query", "mechanism"),
    [
        ((0.5,), MEDIAN, QuantileMechanism(quantile=0.5, rate=0.7)),
        ((0.25,), MEDIAN, QuantileMechanism(quantile=0.25, rate=0.7)),
        ((0.25, 0.5), ColumnQuantiles(column=AGE, points=4), JointQuantilesMechanism(quantiles=(0.25, 0.5), rate=0.7)),
    ],
)
def test_quantiles_stay_within_their_range_where_values_come_and_go(shares, query, mechanism):
    """All tables of up to three rows; a replaced row may be missing on either side, so that the target moves too."""
    shares = [Fraction(share) for share in shares]
    cells = [None, 1, 2, 4]
    tables = [rows for n in range(4) for rows in itertools.combinations_with_replacement(cells, n)]
    laws = {rows: quantile_law(rows, shares, 0.7) for rows in {tuple(sorted(r, key=str)) for r in tables}}

    def spread(first, second):
        p, q = laws[tuple(sorted(first, key=str))], laws[tuple(sorted(second, key=str))]
        ratios = [math.log(p[outcome] / q[outcome]) for outcome in p]
        return max(ratios) - min(ratios)

    added = max(spread(rows, (*rows, row)) for rows in tables if len(rows) < 3 for row in cells)
    replaced = max(spread((*rows, a), (*rows, b)) for rows in tables if len(rows) < 3 for a in cells for b in cells)
    for adjacency, found in ((A, added), (Z, added), (R, replaced)):
        event = query.event(mechanism, adjacency)
        assert isinstance(event, BoundedRangeEvent)
        assert 0.5 * event.epsilon < found <= event.epsilon * (1 + 1e-12)


def test_bounds_under_replace_one_are_the_pure_epsilon_of_two_counts():
    mechanism, scale = PrivateBoundsMechanism(scale=1.5, threshold=2), 1.5
    query = ColumnBounds(column=Numeric("age", -4.0, 4.0), smallest=2.0)
    assert query.event(mechanism, A) == DiscreteLaplaceEvent(scale=scale, sensitivity=1, adjacency=A)
    event = query.event(mechanism, R)
    assert event == PureEvent(epsilon=math.nextafter(2 / 1.5, 2.0), adjacency=R)  # 4/3, rounded up

    def reaches(count):
        """Pr(count + z >= 2) for discrete Laplace z."""
        tail = math.exp(-abs(2 - count) / scale)
        if count >= 2:
            return 1 - math.exp(-(count - 1) / scale) / (1 + math.exp(-1 / scale))
        return tail / (1 + math.exp(-1 / scale))

    def law(counts):
        found = dict.fromkeys(itertools.product(range(4), range(4)), 0.0)
        for full in itertools.product((0, 1), repeat=4):
            probability = math.prod(reaches(c) if f else 1 - reaches(c) for c, f in zip(counts, full, strict=True))
            places = [i for i, f in enumerate(full) if f] or [0, 3]
            found[places[0], places[-1]] += probability
        return {outcome: p for outcome, p in found.items() if p}

    largest = 0.0
    for counts in itertools.product(range(3), repeat=4):
        p = law(counts)
        for i, j in itertools.product(range(4), repeat=2):
            if counts[i]:
                moved = list(counts)
                moved[i] -= 1
                moved[j] += 1
                q = law(moved)
                largest = max(largest, *(abs(math.log(p[k] / q[k])) for k in p))
    assert largest == pytest.approx(event.epsilon, rel=1e-12)  # attained: one count falls to 1, another rises to 2


def test_keys_cost_what_their_mechanism_says():
    mechanism = StabilityHistogramMechanism(scale=2.0, threshold=9)
    for adjacency in Adjacency:
        event = ColumnKeys(name="city").event(mechanism, adjacency)
        assert event == mechanism.event(adjacency)
        assert isinstance(event, ApproximateEvent)


def agrees(counts, probabilities):
    expected = np.array(probabilities) * sum(counts)
    return stats.chisquare(counts, expected).pvalue > 1e-4


def many(query, mechanism, table, n):
    event = query.event(mechanism, A)
    everything = lw.PoissonSampled(lw.Repeated(event, count=n), sampling_rate=1.0)
    curator, _ = opened(everything, table, source=SeededRandom(7))
    with curator.open(everything, purpose="draws") as round_:
        return [round_.select(query, mechanism, purpose="draws").value for _ in range(n)]


@pytest.mark.slow  # whole laws by enumeration of the coins
def test_the_laws_of_choices_through_a_round():
    counts = (3, 1, 2)
    table = table_of(codes=[0] * 3 + [1] + [2] * 2 + [SEX.other_cell] * 9 + [SEX.missing_cell] * 9)
    weights = [math.exp(0.5 * count) for count in counts]
    found = np.bincount(many(MODE, CHOICES[0], table, 3000), minlength=3)
    assert agrees(found, np.array(weights) / sum(weights))
    # Permute-and-flip by enumeration of its orders (McKenna and Sheldon 2020).
    exact = [0.0] * 3
    for order in itertools.permutations(range(3)):
        before = 1.0
        for place in order:
            taken = math.exp(-0.5 * (3 - counts[place]))
            exact[place] += before * taken / 6
            before *= 1 - taken
    assert agrees(np.bincount(many(MODE, CHOICES[1], table, 3000), minlength=3), exact)
    with mpmath.workdps(15):
        # The largest of utilities with rounded Laplace noise, ties to the first.
        def at(i, z):
            half = mpmath.mpf(1) / 4
            x = abs(z - counts[i])
            return mpmath.exp(-x / 2) * mpmath.sinh(half) if x else 1 - mpmath.exp(-half)

        span = range(-60, 70)
        masses = [[at(i, z) for z in span] for i in range(3)]
        below = [[mpmath.mpf(0)] for _ in range(3)]
        for i in range(3):
            for mass in masses[i]:
                below[i].append(below[i][-1] + mass)
        exact = [
            float(
                mpmath.fsum(
                    masses[i][k] * mpmath.fprod(below[j][k + (j > i)] for j in range(3) if j != i)
                    for k in range(len(span))
                )
            )
            for i in range(3)
        ]
    assert sum(exact) == pytest.approx(1.0, abs=1e-9)
    assert agrees(np.bincount(many(MODE, CHOICES[2], table, 3000), minlength=3), exact)


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_the_law_of_a_median_through_a_round():
    table = table_of(ages=[0.5, 0.5, 2.0, 9.0, -1.0, math.nan])
    law = quantile_law([1, 1, 3, 4, 1, None], [Fraction(1, 2)], 0.6)
    found = many(MEDIAN, QuantileMechanism(quantile=0.5, rate=0.6), table, 3000)
    assert set(found) <= {0.0, 1.0, 2.0, 3.0}
    assert agrees([found.count(float(point)) for point in range(4)], [law[point,] for point in range(4)])


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_the_law_of_joint_quartiles_through_a_round():
    table = table_of(ages=[0.5, 1.5, 2.0, 9.0])
    query = ColumnQuantiles(column=AGE, points=4)
    law = quantile_law([1, 2, 3, 4], [Fraction(1, 4), Fraction(3, 4)], 0.9)
    found = many(query, JointQuantilesMechanism(quantiles=(0.25, 0.75), rate=0.9), table, 2000)
    assert agrees([found.count(tuple(map(float, outcome))) for outcome in law], list(law.values()))


def test_bounds_and_keys_through_a_round():
    ages = [*np.linspace(9.0, 30.0, 400), math.nan]
    schema = Schema(features=(Numeric("age", -1000.0, 1000.0, missing=True),))
    table = ColumnTable.from_data(np.array([ages]).T, schema)
    query = ColumnBounds(column=schema.column("age"), smallest=1.0)
    mechanism = PrivateBoundsMechanism(scale=1.0, threshold=15)
    assert selected(query, mechanism, table).value == (8.0, 32.0)
    assert set(selected(query, mechanism, table, adjacency=R).value) <= set(log_edges(-1000.0, 1000.0, 1.0))
    keys = table_of(keys=["rome"] * 60 + ["oslo"] * 50 + ["bergen"])
    answer = selected(ColumnKeys(name="city"), StabilityHistogramMechanism(scale=1.0, threshold=20), keys)
    assert list(answer.value) == ["oslo", "rome"]
    assert abs(answer.value["rome"] - 60) < 15


def test_an_empty_table_still_answers():
    empty = table_of()
    assert selected(MODE, CHOICES[0], empty).value in range(3)
    assert selected(MEDIAN, QuantileMechanism(quantile=0.5, rate=1.0), empty).value in {0.0, 1.0, 2.0, 3.0}


@pytest.mark.parametrize(("source", "kind"), [(SeededRandom(1), "test"), (SecureRandom(), "secure")])
def test_a_choice_carries_its_receipt_and_the_kind_of_its_randomness(source, kind):
    answer = selected(MODE, CHOICES[0], table_of(codes=[0]), source=source)
    assert answer.randomness == answer.receipt.randomness == kind


def test_a_choice_that_the_draw_does_not_hold_is_refused():
    event = MODE.event(CHOICES[0], A)
    for query, mechanism in (
        (MODE, ExponentialMechanism(rate=0.25)),
        (MODE, CHOICES[1]),  # the same epsilon, but pure, not bounded-range
        (MEDIAN, QuantileMechanism(quantile=0.25, rate=0.5)),
    ):
        curator, _ = opened(event, table_of(codes=[0]))
        with (
            curator.open(event, purpose="mode") as round_,
            pytest.raises(RoundViolation, match="this draw does not hold"),
        ):
            round_.select(query, mechanism, purpose="another")


def test_a_choice_is_made_once_and_in_an_open_round():
    event = MODE.event(CHOICES[0], A)
    curator, ledger = opened(lw.Repeated(event, count=2), table_of(codes=[0]))
    with curator.open(event, purpose="mode") as round_:
        round_.select(MODE, CHOICES[0], purpose="once")
        with pytest.raises(RoundViolation, match="nothing more"):
            round_.select(MODE, CHOICES[0], purpose="twice")
    with pytest.raises(RoundViolation, match="closed"):
        round_.select(MODE, CHOICES[0], purpose="late")
    with curator.open(event, purpose="mode"):
        pass
    before = ledger.entries
    with pytest.raises(DrawRefused):
        curator.open(event, purpose="a third")
    assert ledger.entries == before


def test_a_forked_child_and_a_second_thread_choose_nothing(monkeypatch):
    event = MODE.event(CHOICES[0], A)
    curator, _ = opened(event, table_of(codes=[0]))
    with curator.open(event, purpose="mode") as round_:
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: -1)
            with pytest.raises(RoundViolation, match="another process"):
                round_.select(MODE, CHOICES[0], purpose="child")

        def choose(_):
            try:
                return round_.select(MODE, CHOICES[0], purpose="race").value in range(3)
            except RoundViolation:
                return None

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(choose, range(8)), key=str) == [None] * 7 + [True]


def test_an_error_after_the_draw_loses_the_choice(monkeypatch):
    event = MODE.event(CHOICES[0], A)
    curator, _ = opened(event, table_of(codes=[0]))

    def failing(self, utilities, grid, source):
        raise RuntimeError("out of memory, say")

    with curator.open(event, purpose="mode") as round_:
        with monkeypatch.context() as patch:
            patch.setattr(ExponentialMechanism, "select", failing)
            with pytest.raises(RuntimeError, match="out of memory"):
                round_.select(MODE, CHOICES[0], purpose="mode")
        with pytest.raises(RoundViolation, match="nothing more"):
            round_.select(MODE, CHOICES[0], purpose="again")


def test_what_is_foreign_is_refused_and_costs_nothing():
    class Flattering(ColumnMode):
        def event(self, mechanism, adjacency):
            return event

    class Greedy(ExponentialMechanism):
        def select(self, utilities, grid, source, **_):
            return int(utilities.argmax())

    event = MODE.event(CHOICES[0], A)
    curator, _ = opened(event, table_of(codes=[0]))
    with curator.open(event, purpose="mode") as round_:
        with pytest.raises(RoundViolation, match="Flattering is not a selection"):
            round_.select(Flattering(histogram=MODE.histogram), CHOICES[0], purpose="mode")
        for mechanism in (Greedy(rate=0.5), GaussianMechanism(stddev=1.0), QuantileMechanism(quantile=0.5, rate=0.5)):
            with pytest.raises(RoundViolation, match="ColumnMode needs ExponentialMechanism or"):
                round_.select(MODE, mechanism, purpose="mode")
        for query in (MEDIAN, ColumnQuantiles(column=AGE), ColumnBounds(column=AGE, smallest=1.0)):
            with pytest.raises(RoundViolation, match="needs"):
                round_.select(query, CHOICES[0], purpose="mode")
        with pytest.raises(RoundViolation, match="is not a selection"):
            round_.select(ColumnSum(column=AGE), CHOICES[0], purpose="mode")
        with pytest.raises(SchemaError, match="no column 'weight'"):
            round_.select(ColumnQuantile(column=Numeric("weight", 0, 1)), CHOICES[0], purpose="mode")
        with pytest.raises(SchemaError, match="no keys 'city'"):
            round_.select(ColumnKeys(name="city"), StabilityHistogramMechanism(scale=1.0, threshold=9), purpose="mode")
        with pytest.raises(InvalidParameter, match="grid steps"):
            round_.select(MODE, NoisyMaxMechanism(scale=2.0**56), purpose="mode")
        with pytest.raises(RoundViolation, match="is not a query"):
            round_.release(MODE, LaplaceMechanism(scales=(1.0,)), purpose="mode")
        round_.select(MODE, CHOICES[0], purpose="mode")


def test_noise_that_does_not_fit_a_grid_costs_nothing():
    """A refusal for reasons that are public comes before the draw is used up."""
    query, good = ColumnSum(column=AGE), LaplaceMechanism(scales=(1.0,))
    event = good.event(query.sensitivity(A), A)
    curator, _ = opened(event, table_of(ages=[1.0]))
    with curator.open(event, purpose="sum") as round_:
        with pytest.raises(InvalidParameter, match="grid steps"):
            round_.release(query, LaplaceMechanism(scales=(2.0**40,)), purpose="sum")
        with pytest.raises(InvalidParameter, match="2 numbers|1 numbers"):
            round_.release(query, LaplaceMechanism(scales=(1.0, 1.0)), purpose="sum")
        round_.release(query, good, purpose="sum")


@pytest.mark.parametrize("points", [0, 1, 2**40, 2.5, True])
def test_points_are_a_whole_number(points):
    for kind in (ColumnQuantile, ColumnQuantiles):
        with pytest.raises(InvalidParameter, match="points"):
            kind(column=AGE, points=points)


def test_a_selection_of_numbers_needs_numbers():
    for kind, others in ((ColumnQuantile, {}), (ColumnQuantiles, {}), (ColumnBounds, {"smallest": 1.0})):
        with pytest.raises(SchemaError, match="'sex' is categorical"):
            kind(column=SEX, **others)
    for smallest in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidParameter, match="smallest"):
            ColumnBounds(column=AGE, smallest=smallest)
    with pytest.raises(InvalidParameter, match="histogram"):
        ColumnMode(histogram=SEX)
    with pytest.raises(InvalidParameter, match="name"):
        ColumnKeys(name="")


@pytest.mark.parametrize(
    "column",
    [
        Numeric("x", 0.0, 1.0),
        Numeric("x", -1e308, 7e307),
        Numeric("x", 0.0, 1e-299),
        Numeric("x", 1.0, 1 + 2**-52),
        Numeric("x", 1e15, 1e15 + 3),
    ],
)
@pytest.mark.parametrize("points", [2, 7, 2**40 - 1])
def test_positions_count_the_thresholds_at_or_below_a_value(column, points):
    query = ColumnQuantile(column=column, points=points)
    places = sorted({0, 1, points // 3, points // 2, points - 2, points - 1})
    thresholds = [threshold(query, place) for place in places]
    assert thresholds == sorted(thresholds)
    assert (thresholds[0], thresholds[-1]) == (column.low, column.high)
    middles = np.array([column.low + (column.high - column.low) * share for share in (0.0, 0.21, 0.5, 0.77, 1.0)])
    found = positions(query, middles)
    assert (found[0], found[-1]) == (1, points)
    assert (np.diff(found) >= 0).all()
    assert ((found >= 1) & (found <= points)).all()
    width = Fraction(column.high) - Fraction(column.low)
    for value, place in zip(middles.tolist(), found.tolist(), strict=True):
        exact = (Fraction(value) - Fraction(column.low)) / width * (points - 1)
        # Two roundings of the share, of 2**-53 each, move a position near a threshold.
        assert abs(place - 1 - math.floor(exact)) <= 1 + float(exact) * 2.0**-51
    assert positions(query, np.array([-1.7e308, 1.7e308])).tolist() == [1, points]


def test_a_foreign_selection_is_refused():
    assert COLUMN_CHOICES.evaluation(MODE).kind is type(MODE)
    for foreign in (object(), ColumnMode, None, ColumnSum(column=AGE)):
        with pytest.raises(RoundViolation, match="is not a selection"):
            COLUMN_CHOICES.evaluation(foreign)
