"""Quantiles of features: chosen by plain Python's counts, paid once a feature, refused where they have no meaning."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood import Adjacency, Budget, Categorical, Ledger, Numeric, PrivacyUnit, Schema
from ledgerwood.accounting.events import BoundedRangeEvent, Composed, PoissonSampled, PureEvent, Repeated
from ledgerwood.curator import CellCounts, Curator, FeatureQuantiles, Table
from ledgerwood.errors import DrawRefused, InvalidParameter, LedgerError, RoundViolation
from ledgerwood.mechanisms import JointQuantilesMechanism, LaplaceMechanism, QuantileMechanism, SeededRandom

A, Z, R = Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT, Adjacency.REPLACE_ONE
EVERYONE = np.empty(0, dtype=np.bool_)
SCHEMA = Schema(
    features=(Numeric("a", 0.0, 1.0, missing=True), Categorical("b", ("x", "y")), Numeric("c", 0.0, 1.0)),
    target=Numeric("t", -1.0, 1.0),
    weight_bound=4.0,
)
CELLS = 5
QUERY = FeatureQuantiles(features=(2, 0), cells=CELLS)
HALVES = JointQuantilesMechanism(quantiles=(0.25, 0.5), rate=0.7)
# A row: the cell of "a" (5: missing), of "b", of "c", and the weight.
ROWS = st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 4), st.floats(0.0, 1.0))


def table_of(rows):
    cells = np.array([row[:3] for row in rows], dtype=np.uint8).reshape(-1, 3).T
    weights = np.rint(np.array([row[3] for row in rows]) * 2**20).astype(np.int32)
    return Table(schema=SCHEMA, cells=np.ascontiguousarray(cells), targets=np.zeros(len(rows)), weights=weights)


def curator_of(event, rows):
    ledger = Ledger(Budget(epsilon=100.0, delta=0.0, adjacency=event.adjacency), unit=PrivacyUnit.ROW)
    return Curator(table_of(rows), ledger.grant(event, purpose="test"), SeededRandom(1)), ledger


def rows_to_move(cells, thresholds, quantiles):
    """Of the rows that have a value: half the sum over bins of |rows in it - its share|, for tests "cell < t"."""
    known = [cell for cell in cells if cell < CELLS]
    below = [0, *(sum(cell < t for cell in known) for t in thresholds), len(known)]
    ends = [Fraction(0), *map(Fraction, quantiles), Fraction(1)]
    bins = zip(itertools.pairwise(below), itertools.pairwise(ends), strict=True)
    return sum(abs(b - a - (y - x) * len(known)) for (a, b), (x, y) in bins) / 2


@settings(max_examples=60)
@given(rows=st.lists(ROWS, max_size=12), seed=st.integers(0, 100))
def test_the_cheapest_thresholds_of_each_feature(rows, seed):
    """At a rate that leaves no others; a row counts whole whatever it weighs, and not where its value is missing."""
    mechanism = JointQuantilesMechanism(quantiles=(0.25, 0.5), rate=1e3)
    evidence = table_of(rows).evidence(QUERY)(EVERYONE)
    found = QUERY.select(mechanism, evidence, SeededRandom(seed))
    assert found.dtype == np.int64
    assert found.shape == (2, 2)
    pairs = list(itertools.combinations_with_replacement(range(1, CELLS), 2))
    for feature, chosen in zip(QUERY.features, found.tolist(), strict=True):
        cells = [row[feature] for row in rows]
        moves = {pair: rows_to_move(cells, pair, mechanism.quantiles) for pair in pairs}
        assert moves[tuple(chosen)] == min(moves.values())


@settings(max_examples=60)
@given(rows=st.lists(ROWS, min_size=1, max_size=9), row=ROWS, data=st.data())
def test_a_row_is_in_one_cell_of_a_feature_or_in_none(rows, row, data):
    coins = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))))
    before, after = (table_of(some).evidence(QUERY) for some in (rows, [*rows, row]))
    for without, with_it in ((EVERYONE, EVERYONE), (coins, np.append(coins, True))):
        shift = (after(with_it) - before(without)).reshape(2, CELLS)
        assert shift.tolist() == [[int(cell == row[j]) for cell in range(CELLS)] for j in QUERY.features]
    drawn = [some for some, coin in zip(rows, coins, strict=True) if coin]
    counts = [[sum(some[j] == cell for some in drawn) for cell in range(CELLS)] for j in QUERY.features]
    assert before(coins).reshape(2, CELLS).tolist() == counts


def test_both_features_are_chosen_from_independently(exact_law, monkeypatch):
    """All branches: the joint law is the product of each feature's own."""
    counts = np.array([[2, 0, 1, 1, 3], [0, 4, 0, 0, 1]])

    def run(pick, features, evidence):
        monkeypatch.setattr(
            "ledgerwood.mechanisms.choices.quantiles.first_between",
            lambda sums, error, low, high: pick((np.diff(sums, prepend=0.0) / sums[-1]).tolist()),
        )
        query = FeatureQuantiles(features=features, cells=CELLS)
        return tuple(map(tuple, query.select(HALVES, evidence.reshape(-1, 1), SeededRandom(1)).tolist()))

    alone = [exact_law(lambda pick, c=c: run(pick, (0,), c)) for c in counts]
    both = exact_law(lambda pick: run(pick, (2, 0), counts))
    assert len(both) == 100
    for (first, second), p in both.items():
        assert abs(p - alone[0][(first,)] * alone[1][(second,)]) < 1e-14


@pytest.mark.parametrize(("adjacency", "widest"), [(A, 1.5), (Z, 1.5), (R, 2.0)])
def test_the_price_is_the_mechanisms_for_each_feature(adjacency, widest):
    event = QUERY.event(HALVES, adjacency)
    assert event == Repeated(HALVES.event(adjacency), count=2)
    assert isinstance(event.event, BoundedRangeEvent)
    assert event.pure_epsilon() == pytest.approx(2 * 0.7 * widest, rel=1e-15)
    one = FeatureQuantiles(features=(2,), cells=CELLS).event(HALVES, adjacency)
    assert one.pure_epsilon() == HALVES.event(adjacency).epsilon


@pytest.mark.parametrize("adjacency", [A, Z, R])
def test_a_round_holds_one_choice_for_each_feature(adjacency):
    event = QUERY.event(HALVES, adjacency)
    curator, ledger = curator_of(event, [(1, 0, 3, 1.0)] * 5)
    with curator.open(event, purpose="bins") as round_:
        dearer = JointQuantilesMechanism(quantiles=(0.25, 0.5), rate=0.8)
        with pytest.raises(RoundViolation, match="does not hold"):
            round_.select(QUERY, dearer, purpose="bins")
        found = round_.select(QUERY, HALVES, purpose="bins")
        assert found.value.shape == (2, 2)
        with pytest.raises(RoundViolation, match="holds nothing more"):
            round_.select(FeatureQuantiles(features=(2,), cells=CELLS), HALVES, purpose="again")
    assert [entry.event for entry in ledger.entries[2:]] == [event.event] * 2
    with pytest.raises(DrawRefused, match=r"no .* left"):
        curator.open(event, purpose="again")


def test_a_round_of_several_kinds_of_releases():
    """Quantiles beside counts in one draw, and a sample of both."""
    counts = CellCounts(features=(0,), cells=CELLS)
    laplace = LaplaceMechanism(scales=(2.0,))
    noisy = laplace.event(counts.sensitivity(A), A)
    inner = Composed((QUERY.event(HALVES, A), noisy))
    for event in (inner, PoissonSampled(inner, sampling_rate=0.5)):
        curator, _ = curator_of(event, [(1, 0, 3, 1.0)] * 5)
        with curator.open(event, purpose="sketch") as round_:
            assert round_.release(counts, laplace, purpose="cells").value.shape == (CELLS, 1)
            assert round_.select(QUERY, HALVES, purpose="bins").value.shape == (2, 2)


def test_a_composition_of_a_foreign_class_pays_for_nothing():
    """It could hold more than it draws."""
    cheap, dear = PureEvent(epsilon=0.1, adjacency=A), HALVES.event(A)

    class Sly(Composed):
        __slots__ = ()

        def draws(self):
            yield dear, 1000

    class Slier(Repeated):
        __slots__ = ()

        def draws(self):
            yield dear, 1000

    curator, ledger = curator_of(Repeated(cheap, count=2), [(1, 0, 3, 1.0)] * 5)
    for event in (Sly((cheap,)), Slier(cheap, count=1)):
        with pytest.raises((LedgerError, DrawRefused)):
            curator.open(event, purpose="bins")
    assert len(ledger.entries) == 2


def test_what_cannot_be_chosen_is_refused_before_the_draw_is_used():
    class Cheap(FeatureQuantiles):
        __slots__ = ()

    event = QUERY.event(HALVES, A)
    curator, _ = curator_of(event, [(1, 0, 3, 1.0)])
    with curator.open(event, purpose="bins") as round_:
        for query, match in (
            (FeatureQuantiles(features=(2, 3), cells=CELLS), r"features outside 0\.\.2"),
            (
                FeatureQuantiles(features=(2, 1), cells=CELLS),
                "quantiles of features .*: categories have no order",
            ),
            (Cheap(features=(2, 0), cells=CELLS), "Cheap is not a selection"),
        ):
            with pytest.raises(RoundViolation, match=match):
                round_.select(query, HALVES, purpose="bins")
        with pytest.raises(RoundViolation, match="needs JointQuantilesMechanism, not QuantileMechanism"):
            round_.select(QUERY, QuantileMechanism(quantile=0.5, rate=0.7), purpose="bins")
        assert round_.select(QUERY, HALVES, purpose="bins").value.shape == (2, 2)


def test_a_schema_of_one_range_has_numeric_features():
    schema = Schema.uniform(0.0, 1.0, target=Numeric("t", -1.0, 1.0))
    table = Table.from_data(np.array([[0.1, 0.9], [0.3, 0.7]]), [0.0, 1.0], schema, loss="squared", bins=4)
    assert table.evidence(FeatureQuantiles(features=(1,), cells=4))(EVERYONE).ravel().tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("features", "cells", "match"),
    [
        ((), 3, "features=.* must be at least one"),
        ((0, 0), 3, "each named once"),
        ((-1,), 3, "features=-1 must be a whole number >= 0"),
        ((0,), 1, r"cells=1 must be in 2\.\.1025"),
        ((0,), 1026, r"cells=1026 must be in 2\.\.1025"),
        ((0,), 2.5, "cells=2.5 must be a whole number"),
    ],
)
def test_what_has_no_quantiles_is_refused(features, cells, match):
    with pytest.raises(InvalidParameter, match=match):
        FeatureQuantiles(features=features, cells=cells)


def test_features_of_any_integer_type_are_kept_as_plain_ones():
    query = FeatureQuantiles(features=list(np.arange(2)), cells=np.int32(4))
    assert query == FeatureQuantiles(features=(0, 1), cells=4)
    assert all(type(number) is int for number in (*query.features, query.cells))
