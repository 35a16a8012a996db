"""Joint quantiles: every sequence's probability against its definition, every neighbour's range, bad input."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import JointQuantilesMechanism, QuantileMechanism, SeededRandom
from ledgerwood.mechanisms.choices.joint_quantiles import _convolve, _multiset, _Weights

A, R, Z = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT


def sequences(points, m):
    return list(itertools.combinations_with_replacement(range(points), m))


def utility(rows, sequence, quantiles):
    """By definition: minus half the sum over bins of |rows in it - its share|."""
    below = [0, *(sum(row <= p for row in rows) for p in sequence), len(rows)]
    ends = [Fraction(0), *map(Fraction, quantiles), Fraction(1)]
    bins = zip(itertools.pairwise(below), itertools.pairwise(ends), strict=True)
    return -sum(abs(b - a - (y - x) * len(rows)) for (a, b), (x, y) in bins) / 2


def weights(rows, mechanism, points):
    found = {}
    for sequence in sequences(points, len(mechanism.quantiles)):
        u = utility(rows, sequence, mechanism.quantiles)
        found[sequence] = mpmath.exp(mpmath.mpf(mechanism.rate) * u.numerator / u.denominator)
    return found


def cell_weights(rows, mechanism, points):
    ends = [0, *sorted(rows), points]
    return _Weights(mechanism._shares(), Fraction(mechanism.rate), [b - a for a, b in itertools.pairwise(ends)], 256)


@settings(max_examples=40)
@given(
    rows=st.lists(st.integers(0, 5), max_size=5),
    quantiles=st.sampled_from([(0.5,), (0.25, 0.5), (0.1, 0.2, 0.9), (0.25, 0.5, 0.75, 0.875)]),
    rate=st.floats(0.01, 3.0),
)
def test_the_weight_of_all_sequences_is_their_sum(rows, quantiles, rate):
    """And of those whose last quantiles share a cell, for each cell and number of them."""
    mechanism = JointQuantilesMechanism(quantiles=quantiles, rate=rate)
    lows, highs, options = cell_weights(rows, mechanism, 5).last_cells(len(quantiles), len(rows) + 1)
    exact = dict.fromkeys(options, mpmath.mpf(0))
    with mpmath.workdps(60):
        for sequence, weight in weights(rows, mechanism, 5).items():
            cells = [sum(row <= p for row in rows) for p in sequence]
            exact[cells.count(cells[-1]), cells[-1]] += weight
        partial = mpmath.mpf(0)
        for low, high, option in zip(lows, highs, options, strict=True):
            partial += exact[option]
            assert low <= partial * mpmath.mpf(2) ** 512 * (1 + mpmath.mpf(10) ** -50)
            assert high >= partial * mpmath.mpf(2) ** 512 * (1 - mpmath.mpf(10) ** -50)
        assert high - low <= low * mpmath.mpf(2) ** -200


@pytest.mark.slow_after(2)  # whole laws by enumeration of the coins
@pytest.mark.parametrize("quantiles", [(0.5,), (0.25, 0.75), (0.2, 0.3, 0.9)])
@pytest.mark.parametrize("rows", [[], [2], [1, 1, 4], [0, 2, 2, 3, 4]])
def test_sequences_have_their_law(rows, quantiles):
    mechanism, n, source = JointQuantilesMechanism(quantiles=quantiles, rate=0.9), 800, SeededRandom(len(rows))
    every = weights(rows, mechanism, 4)
    expected = np.array([n * float(w / mpmath.fsum(every.values())) for w in every.values()])
    found = dict.fromkeys(every, 0)
    positions = np.array(rows[::-1], dtype=np.int64)
    for _ in range(n):
        found[mechanism.select(positions, 4, source)] += 1
    counts, seen = np.array(list(found.values())), expected >= 5
    assert counts[~seen].sum() <= expected[~seen].sum() + 5 * math.sqrt(expected[~seen].sum()) + 1
    assert chi2.sf(float(((counts - expected) ** 2 / expected)[seen].sum()), int(seen.sum()) - 1) > 1e-4


def data_sets(points, n):
    return itertools.combinations_with_replacement(range(points + 1), n)


def changes_range(rows, others, quantiles, points):
    changes = [utility(others, s, quantiles) - utility(rows, s, quantiles) for s in sequences(points, len(quantiles))]
    return max(changes) - min(changes)


@pytest.mark.slow_after(2)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("quantiles", [(0.5,), (0.75,), (0.25, 0.75), (0.5, 0.875), (0.25, 0.5, 0.75)])
def test_no_neighbour_exceeds_the_range(quantiles):
    """All data sets of up to 4 rows on 2 or 3 thresholds."""
    mechanism = JointQuantilesMechanism(quantiles=quantiles, rate=1.0)
    points = 2 if len(quantiles) == 3 else 3
    places = range(points + 1)
    for n in range(5):
        for rows in data_sets(points, n):
            for row in places:
                added = changes_range(rows, (*rows, row), quantiles, points)
                assert added <= Fraction(mechanism.event(A).epsilon)
    for rows in data_sets(points, 3):
        for one, other in itertools.combinations(places, 2):
            assert changes_range((*rows, one), (*rows, other), quantiles, points) <= Fraction(
                mechanism.event(R).epsilon
            )


def test_the_ranges_are_attained():
    """Quartiles: the new row's bin holds all rows or none; the moved row leaves a full bin for an empty one or back."""
    quantiles = (0.25, 0.5, 0.75)
    mechanism = JointQuantilesMechanism(quantiles=quantiles, rate=1.0)
    rows = [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert changes_range(rows, [*rows, 4], quantiles, 4) == Fraction(3, 2) == Fraction(mechanism.event(A).epsilon)
    rows = [2, 2, 2, 3, 4, 4, 4]
    assert changes_range([*rows, 1], [*rows, 3], quantiles, 5) == 2 == mechanism.event(R).epsilon


def test_one_quantile_is_the_single_mechanism():
    for adjacency in (A, R, Z):
        joint, single = (JointQuantilesMechanism(quantiles=(0.9,), rate=0.3), QuantileMechanism(quantile=0.9, rate=0.3))
        assert joint.event(adjacency) == single.event(adjacency)
        assert isinstance(joint.event(adjacency), BoundedRangeEvent)


@pytest.mark.slow  # whole laws, by enumeration or many draws
def test_deciles_of_many_rows():
    rows = np.rint(np.random.default_rng(2).normal(0.0, 1000.0, 500)).astype(np.int64) + 2**14
    deciles = tuple(i / 10 for i in range(1, 10))
    found = JointQuantilesMechanism(quantiles=deciles, rate=1.0).select(rows, 2**15, SeededRandom(1))
    assert list(found) == sorted(found)
    assert np.abs(np.array(found) - np.quantile(rows, deciles)).max() < 500


def test_equal_rows_and_large_rates():
    """All weight is far below 2**-256 here: the precision grows until the choice is decided."""
    mechanism = JointQuantilesMechanism(quantiles=(0.25, 0.5), rate=40.0)
    assert mechanism.select(np.full(30, 3, dtype=np.int64), 7, SeededRandom(1)) in set(sequences(7, 2))
    assert JointQuantilesMechanism(quantiles=(0.1, 0.6), rate=1e3).select(
        np.array([0, 3, 4, 4, 5, 5, 5, 5, 6, 6], dtype=np.int64), 7, SeededRandom(2)
    )[0] in range(3)


@given(st.lists(st.tuples(st.integers(0, 2**70), st.integers(0, 2**300)), min_size=1, max_size=12))
def test_convolutions_are_exact(pairs):
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    assert _convolve(a, b) == [sum(a[i] * b[k - i] for i in range(k + 1)) for k in range(len(a))]


@pytest.mark.slow_after(1)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize(("width", "times"), [(1, 4), (3, 2), (4, 3), (2, 5)])
def test_multisets_are_uniform(width, times):
    source, n = SeededRandom(11), 4_000
    found = dict.fromkeys(sequences(width, times), 0)
    for _ in range(n):
        found[tuple(_multiset(width, times, source))] += 1
    counts = np.array(list(found.values()))
    share = n / counts.size
    assert chi2.sf(float(((counts - share) ** 2 / share).sum()), max(counts.size - 1, 1)) > 1e-4


@pytest.mark.parametrize(
    "quantiles",
    [(), (0.0, 0.5), (0.5, 1.0), (0.5, 0.5), (0.7, 0.3), (0.5, 0.5 + 1e-9), (math.nan,), None, (1e-9,), "ab"],
)
def test_bad_quantiles_are_refused(quantiles):
    with pytest.raises(InvalidParameter, match=r"quantiles=.*unit"):
        JointQuantilesMechanism(quantiles=quantiles, rate=1.0)


def test_other_bad_values_are_refused():
    with pytest.raises(InvalidParameter, match="at most 64"):
        JointQuantilesMechanism(quantiles=tuple(i / 100 for i in range(1, 70)), rate=1.0)
    with pytest.raises(InvalidParameter, match=r"rate=.*unit"):
        JointQuantilesMechanism(quantiles=(0.5,), rate=0.0)
    with pytest.raises(InvalidParameter, match=r"rate=1001\.0 must be in .*1e3"):
        JointQuantilesMechanism(quantiles=(0.5,), rate=1001.0)
    mechanism = JointQuantilesMechanism(quantiles=(0.5,), rate=1.0)
    for bad in (np.zeros(3), np.zeros((2, 2), dtype=np.int64), [1]):
        with pytest.raises(InvalidParameter, match="positions"):
            mechanism.select(bad, 5, SeededRandom(1))
    for points in (0, 2.5, 2**40):
        with pytest.raises(InvalidParameter, match="points"):
            mechanism.select(np.zeros(3, dtype=np.int64), points, SeededRandom(1))
