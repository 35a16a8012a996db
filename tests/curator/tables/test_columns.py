"""A table of columns: what each row adds, over all neighbours of small tables, against the stated shift sets."""

import copy
import itertools
import math
import pickle
from collections import deque
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ledgerwood import (
    Adjacency,
    Budget,
    Categorical,
    Ledger,
    Numeric,
    PoissonSampled,
    PrivacyUnit,
    Repeated,
    Schema,
)
from ledgerwood.curator import Curator, LabelCount
from ledgerwood.curator.kernels import sums as kernels
from ledgerwood.curator.queries.columns.selections import (
    ColumnBounds,
    ColumnKeys,
    ColumnMode,
    ColumnQuantile,
    ColumnQuantiles,
)
from ledgerwood.curator.queries.columns.statistics import (
    ColumnCount,
    ColumnHistogram,
    ColumnMoments,
    ColumnSum,
    RowCount,
)
from ledgerwood.curator.tables.columns import ColumnTable
from ledgerwood.errors import (
    AdjacencyMismatch,
    InvalidParameter,
    LedgerError,
    RoundViolation,
    SchemaError,
    SchemaTypeError,
)
from ledgerwood.mechanisms import DiscreteLaplaceMechanism, GaussianMechanism, SeededRandom

ALL_ROWS = np.empty(0, dtype=np.bool_)
AGE = Numeric("age", 17.0, 90.0, missing=True)
SEX = Categorical("sex", ("M", "F"), missing=True)
SCHEMA = Schema(features=(AGE, SEX), target=Numeric("rings", 1.0, 29.0))
NARROW = Numeric("age", 30.0, 40.0)
ULPS = [math.nextafter(edge, toward) for edge in (17.0, 53.5, 90.0) for toward in (-math.inf, math.inf)]
VALUES = [math.nan, math.inf, -math.inf, -1e308, 1e308, 17.0, 53.5, 90.0, -0.0, 5e-324, 35.25, *ULPS]
CODES = [0, 1, 2, 3]
STATISTICS = [
    RowCount(),
    ColumnCount(column=AGE),
    ColumnCount(column=SEX),
    ColumnCount(column=Numeric("age", -8e307, 8e307)),  # bounds that no sum has a grid for
    ColumnSum(column=AGE),
    ColumnSum(column=AGE, origin=0.0),
    ColumnSum(column=NARROW, origin=90.0),
    ColumnSum(column=AGE, origin=1e-3),
    ColumnMoments(column=AGE),
    ColumnMoments(column=Numeric("age", -1e-9, 1e12)),
    ColumnHistogram(column=SEX),
    ColumnHistogram.even(AGE, 4),
    ColumnHistogram(column=AGE, edges=(35.0, 36.0)),
]


def table_of(rows):
    """Rows as the table holds them, invalid ones too, which `from_data` would have refused or cleaned."""
    columns = {"age": np.array([row[0] for row in rows], float), "sex": np.array([row[1] for row in rows], np.uint16)}
    return ColumnTable(schema=SCHEMA, columns=columns, keys={}, rows=len(rows))


def statistic(rows, query, sampled=ALL_ROWS):
    return table_of(rows).reader(query)(sampled)


def contains(query, adjacency, shift):
    """Whether a shift, integers (..., k), keeps every norm that a mechanism may ask for: exactly, at a few scales."""
    stated = query.sensitivity(adjacency)
    steps = [Fraction(2) ** exponent for exponent in query.grid.exponents]
    moves = [[abs(Fraction(int(x))) * step for x, step in zip(row, steps, strict=True)] for row in np.atleast_2d(shift)]
    for scales in itertools.product((2.0**-30, 1.0, 2.0**30), repeat=query.grid.columns):
        weights = [Fraction(scale) for scale in scales]
        total = sum(x / w for row in moves for x, w in zip(row, weights, strict=True))
        square = sum((x / w) ** 2 for row in moves for x, w in zip(row, weights, strict=True))
        if total > Fraction(stated.l1(scales)) or square > Fraction(stated.l2(scales)) ** 2:
            return False
    return True


ROWS = list(itertools.product(VALUES, CODES[:1])) + list(itertools.product([53.5], CODES[1:]))
OTHERS = [(20.0, 0), (math.nan, 3), (88.8, 1)]


@pytest.mark.slow_after(1)  # all neighbours are enumerated
@pytest.mark.parametrize("query", STATISTICS, ids=repr)
def test_every_neighbour_of_a_small_table_is_within_the_shift_set(query):
    without = statistic(OTHERS, query)
    found = {row: statistic([*OTHERS, row], query) - without for row in ROWS}
    for shift in found.values():
        assert contains(query, Adjacency.ADD_REMOVE, shift)
        assert contains(query, Adjacency.ZERO_OUT, shift)
    for first, second in itertools.product(found.values(), repeat=2):
        if isinstance(query, RowCount):
            assert not (first - second).any()  # as its refusal under replace-one says
        else:
            assert contains(query, Adjacency.REPLACE_ONE, first - second)


@pytest.mark.slow_after(2)  # many tables and their neighbours in exact integers
@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE])
@pytest.mark.parametrize("query", STATISTICS[1:], ids=repr)
def test_some_neighbour_attains_the_sensitivity(query, adjacency):
    contributions = [statistic([row], query) for row in ROWS]
    contributions.append(np.zeros_like(contributions[0]))
    pairs = itertools.product(contributions, repeat=2)
    shifts = contributions if adjacency is Adjacency.ADD_REMOVE else [a - b for a, b in pairs]
    ones = (1.0,) * query.grid.columns
    norms = [float(np.abs(query.grid.to_real(shift)).sum()) for shift in shifts]
    assert max(norms) == pytest.approx(query.sensitivity(adjacency).l1(ones), rel=1e-6)


@given(
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-6, 1e6),
    origin=st.floats(-1e6, 1e6),
    value=st.floats(allow_nan=True, allow_infinity=True),
)
def test_a_value_is_clamped_centred_and_cut_toward_zero(low, width, origin, value):
    column = Numeric("age", low, low + width)
    query = ColumnSum(column=column, origin=origin)
    steps = int(statistic([(value, 0)], query)[0])
    if not math.isfinite(value):
        assert steps == 0
        return
    step = Fraction(2) ** query.grid.exponents[0]
    exact = Fraction(min(max(value, low), low + width)) - Fraction(origin)
    # One step for the cut, and what the subtraction rounds in float64.
    assert abs(exact - steps * step) < step + Fraction(math.ulp(float(exact)))
    assert query.steps.least <= steps <= query.steps.most


@pytest.mark.parametrize(("value", "count", "total"), [(math.nan, 0, 0), (math.inf, 0, 0), (-math.inf, 0, 0)])
def test_what_is_not_finite_adds_nothing(value, count, total):
    rows = [(53.5, 0), (value, 0)]
    assert statistic(rows, ColumnMoments(column=AGE)).tolist() == [1 + count, total]
    assert statistic(rows, ColumnCount(column=AGE)).tolist() == [1]
    missing = 1 if math.isnan(value) else 0  # a missing value has a cell; infinity, which no owner can pass, has none
    assert statistic(rows, ColumnHistogram.even(AGE, 2))[:, 0].tolist() == [0, 1, missing]


def test_a_histogram_has_a_cell_for_each_value():
    rows = [(0.0, 0), (35.24, 0), (35.25, 1), (90.0, 1), (1e9, 1), (math.nan, 2), (36.0, 3)]
    assert statistic(rows, ColumnHistogram(column=SEX))[:, 0].tolist() == [2, 3, 1, 1]
    assert statistic(rows, ColumnHistogram.even(AGE, 4))[:, 0].tolist() == [2, 2, 0, 2, 1]
    # An edge belongs to the cell above it; what is outside is in the outermost cell.
    assert statistic(rows, ColumnHistogram(column=AGE, edges=(30.0, 35.25, 36.0, 37.0)))[:, 0].tolist() == [2, 1, 3, 1]
    assert statistic(rows, ColumnHistogram(column=AGE, edges=(0.0, 1.0)))[:, 0].tolist() == [6, 1]
    assert statistic(rows, ColumnCount(column=SEX)).tolist() == [6]
    assert statistic(rows, RowCount()).tolist() == [7]


def test_only_sampled_rows_count():
    rows = [(20.0 + i, i % 4) for i in range(50)]
    generator = np.random.default_rng(3)
    for _ in range(5):
        sampled = generator.random(50) < 0.4
        kept = [row for row, taken in zip(rows, sampled, strict=True) if taken]
        for query in STATISTICS:
            np.testing.assert_array_equal(statistic(rows, query, sampled), statistic(kept, query))
        for query in SELECTIONS[:-1]:
            evidence = table_of(rows).evidence(query)(sampled)
            np.testing.assert_array_equal(evidence, table_of(kept).evidence(query)(ALL_ROWS))
    nobody = np.zeros(50, dtype=np.bool_)
    for query in STATISTICS:
        assert not statistic(rows, query, nobody).any()


@pytest.mark.slow  # compiles the kernel for threads, and needs many rows
def test_many_rows_on_many_threads_are_the_sum_of_their_parts():
    generator = np.random.default_rng(1)
    n = 150_000
    ages = generator.normal(50, 30, n)
    ages[generator.random(n) < 0.1] = np.nan
    codes = generator.integers(0, 4, n).astype(np.uint16)
    table = ColumnTable(schema=SCHEMA, columns={"age": ages, "sex": codes}, keys={}, rows=n)
    sampled = generator.random(n) < 0.7
    for query in STATISTICS:
        parts = []
        for start in range(0, n, 30_000):
            part = slice(start, start + 30_000)
            few = ColumnTable(schema=SCHEMA, columns={"age": ages[part], "sex": codes[part]}, keys={}, rows=30_000)
            parts.append(few.reader(query)(sampled[part]))
        np.testing.assert_array_equal(table.reader(query)(sampled), sum(parts))
    present = ages[np.isfinite(ages)]
    assert table.reader(ColumnCount(column=AGE))(ALL_ROWS)[0] == present.size
    steps = table.reader(ColumnSum(column=AGE))(ALL_ROWS)
    assert steps[0] * 2.0 ** ColumnSum(column=AGE).grid.exponents[0] == pytest.approx(
        np.sum(np.clip(present, 17, 90) - 53.5), abs=n * 2.0**-14
    )


def test_sums_wrap():
    partial = np.array([[2**63 - 1, 2**63 - 2]], dtype=np.int64)
    kernels.column_moments(2, np.array([90.0, 90.0]), ALL_ROWS, 17.0, 90.0, 53.5, 2.0, -73, 73, partial)
    assert partial.tolist() == [[-(2**63) + 1, 2**63 - 2 + 146 - 2**64]]


SELECTIONS = [
    ColumnMode(histogram=ColumnHistogram(column=SEX)),
    ColumnMode(histogram=ColumnHistogram.even(AGE, 3)),
    ColumnQuantile(column=AGE, points=9),
    ColumnQuantiles(column=AGE),
    ColumnBounds(column=AGE, smallest=1.0),
    ColumnKeys(name="city"),
]


def test_what_a_selection_sees():
    rows = [(17.0, 0), (1e308, 1), (math.nan, 2), (53.5, 3), (20.0, 1), (-math.inf, 1)]
    table = table_of(rows)

    def seen(query):
        return table.evidence(query)(ALL_ROWS).tolist()

    assert seen(SELECTIONS[0]) == [1, 3]  # neither "other" nor missing is a candidate
    assert seen(SELECTIONS[1]) == [2, 1, 1]
    assert seen(SELECTIONS[2]) == [1, 9, 5, 1]  # thresholds 17, 26.125, ...: those at or below each value
    assert seen(SELECTIONS[4]) == [17.0, 1e308, 53.5, 20.0]


def test_keys_are_counted_as_they_are_sampled():
    X = np.full((6, 2), 1.0)
    schema = Schema.uniform(0, 2)
    table = ColumnTable.from_data(X, schema, keys={"city": ["b", "a", None, "b", "c", "b"]})
    read = table.evidence(ColumnKeys(name="city"))
    assert read(ALL_ROWS) == {"b": 3, "a": 1, "c": 1}
    assert read(np.array([1, 0, 1, 1, 0, 0], bool)) == {"b": 2, "a": 0, "c": 0}
    frame = pd.DataFrame({"city": ["b", None, "a"]})
    assert ColumnTable.from_data(X[:3], schema, keys={"city": frame["city"]}).evidence(ColumnKeys(name="city"))(
        ALL_ROWS
    ) == {"b": 1, "a": 1}


def test_from_data_reads_arrays_and_frames():
    frame = pd.DataFrame({"sex": ["F", "I", None, "M"], "age": [16.0, 99.0, None, 53.5]})
    table = ColumnTable.from_data(frame, SCHEMA, y=[1, 2, 3, 29])
    assert table.reader(ColumnHistogram(column=SEX))(ALL_ROWS)[:, 0].tolist() == [1, 1, 1, 1]
    assert table.reader(ColumnMoments(column=AGE))(ALL_ROWS).tolist() == [3, 0]
    rings = table.schema.column("rings")
    assert table.reader(ColumnSum(column=rings, origin=0))(ALL_ROWS)[0] == 35 * 2**15
    array = np.array([[16.0, 0], [99.0, 1]])
    numbers = ColumnTable.from_data(array, Schema.uniform(0, 50))
    assert numbers.schema.column("x1") == Numeric("x1", 0, 50)
    assert numbers.reader(ColumnSum(column=Numeric("x0", 0, 50), origin=0))(ALL_ROWS)[0] == 66 * 2**14


@pytest.mark.parametrize(
    ("X", "y", "keys", "message"),
    [
        ([[20.0, "M"]], [1.0, 2.0], None, "inconsistent numbers of samples: X and y"),
        ([[20.0, "M"]], None, {"city": ["a", "b"]}, "inconsistent numbers of samples: X and keys 'city'"),
        ([[20.0, "M"]], None, {"age": ["a"]}, "'age' is one of the features"),
    ],
)
def test_from_data_refuses_what_does_not_fit(X, y, keys, message):
    with pytest.raises(SchemaError, match=message):
        ColumnTable.from_data(X, SCHEMA, y=y, keys=keys)


def test_more_refusals_of_from_data():
    X = [[20.0, "M"]]
    with pytest.raises(SchemaError, match="declares no target"):
        ColumnTable.from_data(X, Schema(features=(AGE, SEX)), y=[1.0])
    with pytest.raises(SchemaError, match="'age' is one of the features"):
        ColumnTable.from_data(X, Schema(features=(AGE, SEX), target=Numeric("age", 0, 1)), y=[1.0])
    with pytest.raises(SchemaTypeError):
        ColumnTable.from_data(X, SCHEMA, keys={"city": np.array([1.5])})
    with pytest.raises(InvalidParameter, match="name=''"):
        ColumnTable.from_data(X, SCHEMA, keys={"": ["a"]})
    with pytest.raises(SchemaError, match=r"no column 'weight' in the schema; it has \['age', 'sex', 'rings'\]"):
        SCHEMA.column("weight")
    with pytest.raises(SchemaError, match="no column 'x0' .* those of its table's schema"):
        Schema.uniform(0, 1).column("x0")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (ColumnSum(column=Numeric("weight", 0, 1)), r"no column 'weight'; it has \['age', 'sex'\]"),
        (ColumnSum(column=Numeric("sex", 0, 1)), "'sex' is Categorical"),
        (ColumnCount(column=Categorical("age", ("a",))), "'age' is Numeric"),
        (ColumnHistogram(column=Categorical("sex", ("F", "M"))), "has the categories"),
        (ColumnSum(column=Numeric("rings", 0, 1)), "no column 'rings'"),  # the target was not given
    ],
)
def test_a_column_that_is_not_there_is_refused_before_rows_are_read(query, message):
    with pytest.raises(SchemaError, match=message):
        table_of(OTHERS).reader(query)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (ColumnQuantile(column=Numeric("weight", 0, 1)), "no column 'weight'"),
        (ColumnMode(histogram=ColumnHistogram(column=Categorical("sex", ("F",)))), "has the categories"),
        (ColumnBounds(column=Numeric("sex", 0, 1), smallest=0.1), "'sex' is Categorical"),
        (ColumnKeys(name="city"), r"no keys 'city'; it has \[\]"),
    ],
)
def test_a_selection_of_a_column_that_is_not_there_is_refused(query, message):
    with pytest.raises(SchemaError, match=message):
        table_of(OTHERS).evidence(query)


def test_each_table_has_its_own_questions():
    table = table_of(OTHERS)
    for foreign in (LabelCount(), SELECTIONS[0], object()):
        with pytest.raises(RoundViolation, match="is not a query that a table of columns"):
            table.reader(foreign)
    for foreign in (LabelCount(), STATISTICS[0], object()):
        with pytest.raises(RoundViolation, match="is not a selection that a table of columns"):
            table.evidence(foreign)


def test_a_table_stays_where_it_is():
    table = table_of(OTHERS)
    for leave in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LedgerError, match="a table cannot be"):
            leave(table)


@pytest.mark.parametrize("kind", [list, tuple, deque])
@pytest.mark.parametrize("odd", ["x", "1", 1.5, b"x", 2**70])
def test_a_value_is_the_same_whatever_its_neighbours_are(kind, odd):
    # As one array, numpy would write 1 as "1" because of a string in another row.
    target = Categorical("level", (1, "1", 2))
    schema = Schema(features=(Numeric("x", 0.0, 1.0),), target=target)
    counts = [
        ColumnTable.from_data([[0.0]] * len(y), schema, y=y).statistic(ColumnHistogram(column=target), ALL_ROWS)[:, 0]
        for y in (kind([1, 1, 2, odd]), kind([1, 1, 2]))
    ]
    assert np.abs(counts[0] - counts[1]).sum() == 1
    assert counts[1].tolist() == [2, 0, 1, 0, 0]


def test_samples_are_rows_drawn_one_by_one():
    table = table_of(OTHERS * 1000)
    assert table.sample(1.0, SeededRandom(1)).size == 0
    sampled = table.sample(0.3, SeededRandom(1))
    assert sampled.shape == (3000,)
    assert 750 < sampled.sum() < 1050


def many(query, mechanism, event, n, table):
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    whole = PoissonSampled(Repeated(event, count=n), sampling_rate=1.0)
    with Curator(table, ledger.grant(whole, purpose="draws"), SeededRandom(5)).open(whole, purpose="draws") as round_:
        return [int(round_.release(query, mechanism, purpose="draws").value[0]) for _ in range(n)]


@pytest.mark.slow  # many tables and their neighbours in exact integers
def test_a_count_has_the_law_that_was_priced():
    query, mechanism, n = ColumnCount(column=AGE), DiscreteLaplaceMechanism(scale=1.5), 3000
    event = mechanism.event(query.sensitivity(Adjacency.ADD_REMOVE), Adjacency.ADD_REMOVE)
    found = np.array(many(query, mechanism, event, n, table_of(OTHERS))) - 2
    ratio = math.exp(-1 / 1.5)
    exact = np.array([(1 - ratio) / (1 + ratio) * ratio ** abs(z) for z in range(-5, 6)])
    counts = np.array([np.count_nonzero(found == z) for z in range(-5, 6)])
    cells, probabilities = np.append(counts, n - counts.sum()), np.append(exact, 1 - exact.sum())
    assert stats.chisquare(cells, n * probabilities).pvalue > 1e-4


def test_everything_in_one_round_sees_the_same_rows():
    table = table_of([(20.0, 0), (math.nan, 1)] * 2000)
    noise = GaussianMechanism(stddev=0.01)
    event = noise.event(RowCount().sensitivity(Adjacency.ADD_REMOVE), Adjacency.ADD_REMOVE)
    sampled = PoissonSampled(Repeated(event, count=3), sampling_rate=0.3)
    ledger = Ledger(Budget(epsilon=1e9, delta=0.5, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    with Curator(table, ledger.grant(sampled, purpose="three"), SeededRandom(1)).open(
        sampled, purpose="three"
    ) as round_:
        rows = int(round_.release(RowCount(), noise, purpose="rows").value[0])
        ages = int(round_.release(ColumnCount(column=AGE), noise, purpose="ages").value[0])
        cells = round_.release(ColumnHistogram(column=SEX), noise, purpose="sexes").value[:, 0]
    assert 1000 < rows < 1400
    assert cells.tolist() == [ages, rows - ages, 0, 0]


def test_a_public_number_of_rows_uses_no_draw_up():
    noise = DiscreteLaplaceMechanism(scale=2.0)
    event = noise.event(ColumnCount(column=AGE).sensitivity(Adjacency.REPLACE_ONE), Adjacency.REPLACE_ONE)
    ledger = Ledger(Budget(epsilon=1.0, delta=0.0, adjacency=Adjacency.REPLACE_ONE), unit=PrivacyUnit.ROW)
    with Curator(table_of(OTHERS), ledger.grant(event, purpose="n"), SeededRandom(1)).open(
        event, purpose="n"
    ) as round_:
        with pytest.raises(AdjacencyMismatch, match="the number is public"):
            round_.release(RowCount(), noise, purpose="n")
        with pytest.raises(InvalidParameter, match="steps of 1"):
            round_.release(ColumnSum(column=AGE), noise, purpose="n")
        round_.release(ColumnCount(column=AGE), noise, purpose="n")
