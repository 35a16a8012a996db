"""Questions about columns: steps and shift sets against exact fractions, and what is refused when they are asked."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledgerwood import Adjacency, Categorical, Numeric
from ledgerwood.curator.queries.columns.statistics import (
    ColumnCount,
    ColumnHistogram,
    ColumnMoments,
    ColumnSum,
    RowCount,
    Steps,
    middle,
)
from ledgerwood.curator.queries.registry import COLUMNS
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter, RoundViolation, SchemaError
from ledgerwood.mechanisms import BoxShifts

AGE = Numeric("age", 17.0, 90.0, missing=True)
SEX = Categorical("sex", ("M", "F"), missing=True)
ENDS = st.floats(-1e12, 1e12, allow_subnormal=False)


@given(low=ENDS, high=ENDS, origin=ENDS)
@example(low=-1.0, high=1.0, origin=0.0)
@example(low=0.0, high=5e-300, origin=0.0)
@example(low=0.0, high=1.0, origin=1e6)
@example(low=-(2.0**979), high=2.0**979, origin=0.0)
@example(low=-(2.0**-60), high=math.nextafter(1.0, 0.0), origin=-(2.0**-60))  # rounds up to a power of two
@example(low=1.0, high=math.nextafter(1.0, 2.0), origin=1.0)
def test_steps_are_the_exact_distances_cut_toward_zero(low, high, origin):
    if not low < high or max(abs(low - origin), abs(high - origin)) < 2.0**-1000:
        return
    steps = Steps.of(Numeric("x", low, high), origin)
    step = Fraction(2) ** steps.exponent
    ends = [Fraction(low) - Fraction(origin), Fraction(high) - Fraction(origin)]
    for end, cut in zip(ends, (steps.least, steps.most), strict=True):
        assert 0 <= (abs(end) - abs(cut) * step) < step
        assert cut == 0 or (cut > 0) == (end > 0)
    largest = max(abs(steps.least), abs(steps.most))
    assert 2**19 <= largest < 2**20
    # The floats that are priced are the integers that are kept, to the last bit.
    assert Fraction(steps.reach) == largest * step
    assert Fraction(steps.width) == (steps.most - steps.least) * step


def contributions(query):
    """What one row can add to (count, sum), at the ends of its range: nothing at all, or one value."""
    steps, step = query.steps, Fraction(2) ** query.steps.exponent
    inner = {steps.least, steps.most, *(x for x in (-1, 0, 1) if steps.least <= x <= steps.most)}
    return [(Fraction(0), Fraction(0)), *((Fraction(1), x * step) for x in sorted(inner))]


def shifts(query, adjacency):
    rows = contributions(query)
    if adjacency is Adjacency.REPLACE_ONE:
        return [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.product(rows, rows)]
    return rows


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(
    ("low", "high", "origin"),
    [(17.0, 90.0, None), (17.0, 90.0, 0.0), (10.0, 20.0, 0.0), (-3.0, 1.0, 0.0), (0.0, 1.0, 7.5), (-5e-7, 1e-7, None)],
)
def test_a_sum_is_priced_at_the_largest_shift_of_all(low, high, origin, adjacency):
    query = ColumnSum(column=Numeric("x", low, high, missing=True), origin=origin)
    largest = max(abs(change) for _, change in shifts(query, adjacency))
    assert query.sensitivity(adjacency) == BoxShifts(boxes=((float(largest),),))
    assert Fraction(query.sensitivity(adjacency).boxes[0][0]) == largest


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("scales", [(1.0, 1.0), (1e-9, 1.0), (1e9, 1.0), (3.0, 40.0)])
def test_moments_are_priced_at_the_largest_norm_of_all(scales, adjacency):
    query = ColumnMoments(column=AGE)
    weights = [Fraction(scale) for scale in scales]
    found = shifts(query, adjacency)
    squared = max((a / weights[0]) ** 2 + (b / weights[1]) ** 2 for a, b in found)
    total = max(abs(a) / weights[0] + abs(b) / weights[1] for a, b in found)
    stated = query.sensitivity(adjacency)
    assert squared <= Fraction(stated.l2(scales)) ** 2 <= squared * (1 + Fraction(1, 10**15))
    assert total <= Fraction(stated.l1(scales)) <= total * (1 + Fraction(1, 10**15))


def test_the_middle_has_the_least_sensitivity():
    least = ColumnSum(column=AGE).sensitivity(Adjacency.ADD_REMOVE).boxes[0][0]
    assert least == 36.5 == (AGE.high - AGE.low) / 2
    for origin in (0.0, 17.0, 53.0, 54.0, 90.0):
        assert ColumnSum(column=AGE, origin=origin).sensitivity(Adjacency.ADD_REMOVE).boxes[0][0] > least
    assert ColumnSum(column=AGE, origin=0.0).sensitivity(Adjacency.ADD_REMOVE).boxes[0][0] == 90.0
    # Under replace-one every origin between the ends costs the width.
    for origin in (17.0, 53.5, 90.0):
        assert ColumnSum(column=AGE, origin=origin).sensitivity(Adjacency.REPLACE_ONE).boxes[0][0] == 73.0


@pytest.mark.parametrize("low", [-1e308, -3.0, 0.0, 1e-300])
def test_the_middle_does_not_overflow(low):
    column = Numeric("x", low, low + 7e307)
    assert low < middle(column) < column.high


def test_counts_and_histograms():
    for adjacency in Adjacency:
        assert ColumnCount(column=SEX).sensitivity(adjacency) == BoxShifts(boxes=((1.0,),))
    for query in (ColumnHistogram(column=SEX), ColumnHistogram.even(AGE, 4)):
        for adjacency in (Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT):
            assert query.sensitivity(adjacency) == BoxShifts(boxes=((1.0,),))
        moved = query.sensitivity(Adjacency.REPLACE_ONE)
        assert moved.l1((1.0,)) == 2.0
        assert moved.l2((1.0,)) == pytest.approx(math.sqrt(2), rel=1e-15)
        assert Fraction(moved.l2((1.0,))) ** 2 >= 2
    assert (ColumnHistogram(column=SEX).values, ColumnHistogram(column=SEX).cells) == (2, 4)
    assert (ColumnHistogram.even(AGE, 4).values, ColumnHistogram.even(AGE, 4).cells) == (4, 5)
    assert ColumnHistogram.even(AGE, 4).edges == (17.0, 35.25, 53.5, 71.75, 90.0)


def test_the_number_of_rows_has_no_price_where_it_is_public():
    assert RowCount().sensitivity(Adjacency.ZERO_OUT) == RowCount().sensitivity(Adjacency.ADD_REMOVE)
    with pytest.raises(AdjacencyMismatch, match="sensitivity 0 under replace-one"):
        RowCount().sensitivity(Adjacency.REPLACE_ONE)


@pytest.mark.parametrize("kind", [ColumnSum, ColumnMoments])
def test_numbers_are_not_asked_of_categories(kind):
    with pytest.raises(SchemaError, match="'sex' is categorical"):
        kind(column=SEX)
    with pytest.raises(SchemaError, match="'sex' is categorical"):
        ColumnHistogram.even(SEX, 3)


@pytest.mark.parametrize("kind", [ColumnCount, ColumnSum, ColumnMoments, ColumnHistogram])
def test_a_name_is_not_a_column(kind):
    class Moving(Numeric):
        """Bounds that change from one look to the next."""

    with pytest.raises(InvalidParameter, match="must be a Numeric, Categorical or Date"):
        kind(column=Moving("age", 0.0, 1.0))
    with pytest.raises(InvalidParameter, match="column='age' must be a Numeric, Categorical or Date"):
        kind(column="age")


@pytest.mark.parametrize(
    ("column", "origin"),
    [
        (Numeric("x", 0.0, 1.7e308), None),
        (Numeric("x", 0.0, 2.0**980), 0.0),
        (Numeric("x", 0.0, 1.0), -1.7e308),
        (Numeric("x", 1e308, 1.7e308), -1.7e308),
    ],
)
def test_a_grid_that_does_not_exist_is_refused_with_its_range(column, origin):
    with pytest.raises(InvalidParameter, match=r"column 'x'.*2\*\*-1002 .*2\*\*980.*unit"):
        ColumnSum(column=column, origin=origin)


@pytest.mark.parametrize("origin", [math.nan, math.inf, "0", True])
def test_an_origin_is_a_number(origin):
    with pytest.raises(InvalidParameter, match="origin"):
        ColumnSum(column=AGE, origin=origin)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (None, "len.edges.=0"),
        ((), "len.edges.=0"),
        ((1.0,), "len.edges.=1"),
        ((1.0, 1.0), "must rise"),
        ((2.0, 1.0), "must rise"),
        ((0.0, math.nan), "finite"),
        ((0.0, math.inf), "finite"),
        (tuple(range(60_002)), "60001"),
        ((-1e308, 0.0, 1e308), "finite width"),
    ],
)
def test_edges_are_rising_numbers(edges, message):
    with pytest.raises(InvalidParameter, match=message):
        ColumnHistogram(column=AGE, edges=edges)


def test_cells_that_are_too_many_or_too_narrow_are_refused():
    with pytest.raises(InvalidParameter, match="None for a categorical"):
        ColumnHistogram(column=SEX, edges=(0.0, 1.0))
    with pytest.raises(InvalidParameter, match="cells=60001 must be at most 60000"):
        ColumnHistogram.even(AGE, 60_001)
    with pytest.raises(InvalidParameter, match="cells=0"):
        ColumnHistogram.even(AGE, 0)
    with pytest.raises(InvalidParameter, match="must rise"):
        ColumnHistogram.even(Numeric("x", 1.0, 1.0 + 2**-50), 100)


def test_a_foreign_statistic_is_refused():
    class Flattering(ColumnSum):
        """A subclass could state any sensitivity."""

    query = ColumnSum(column=AGE)
    assert COLUMNS.evaluation(query).kind is type(query)
    for foreign in (Flattering(column=AGE), object(), ColumnSum, None):
        with pytest.raises(RoundViolation, match="is not a query"):
            COLUMNS.evaluation(foreign)
