"""Private quantiles: law by enumeration, range by enumeration of every neighbour, attained where the proof says."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import QuantileMechanism, SecureRandom, SeededRandom

A, R, Z = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT
POINTS = 3


def utilities(rows, quantile, points=POINTS):
    """By definition, point by point: minus the distance of the number of rows below from q n."""
    return [-abs(sum(row <= p for row in rows) - Fraction(quantile) * len(rows)) for p in range(points)]


def law(rows, mechanism, points):
    weights = [
        mpmath.exp(mpmath.mpf(mechanism.rate) * u.numerator / u.denominator)
        for u in utilities(rows, mechanism.quantile, points)
    ]
    return [weight / mpmath.fsum(weights) for weight in weights]


def spread(rows, others, quantile):
    changes = [b - a for a, b in zip(utilities(rows, quantile), utilities(others, quantile), strict=True)]
    return max(changes) - min(changes)


@pytest.mark.slow  # whole laws by enumeration of the coins
@pytest.mark.parametrize("quantile", [0.5, 0.25, 0.9, 0.1])
@pytest.mark.parametrize("rows", [[], [4], [0, 9, 9, 3], [7, 2, 2, 2, 5, 1]])
def test_thresholds_have_their_law(rows, quantile):
    mechanism, n, source = QuantileMechanism(quantile=quantile, rate=0.8), 4_000, SeededRandom(len(rows))
    positions = np.array(rows, dtype=np.int64)
    chosen = [mechanism.select(positions, 9, source) for _ in range(n)]
    expected = np.array([n * float(p) for p in law(rows, mechanism, 9)])
    counts = np.bincount(chosen, minlength=9)
    seen = expected >= 5
    assert counts[~seen].sum() <= expected[~seen].sum() + 15
    assert chi2.sf(float(((counts - expected) ** 2 / expected)[seen].sum()), int(seen.sum()) - 1) > 1e-4


def data_sets(n):
    return itertools.combinations_with_replacement(range(POINTS + 1), n)


@pytest.mark.slow_after(1)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("quantile", [0.5, 0.25, 0.75, 0.125, 0.9375])
def test_no_neighbour_exceeds_the_range(quantile):
    """Every data set of up to 7 rows and every row added, removed or replaced; the add-remove range is attained."""
    mechanism = QuantileMechanism(quantile=quantile, rate=1.0)
    added = max(
        spread(rows, (*rows, row), quantile) for n in range(8) for rows in data_sets(n) for row in range(POINTS + 1)
    )
    replaced = max(
        spread((*rows, one), (*rows, other), quantile)
        for n in range(7)
        for rows in data_sets(n)
        for one in range(POINTS + 1)
        for other in range(one)
    )
    assert added <= Fraction(mechanism.event(A).epsilon)
    assert replaced <= Fraction(mechanism.event(R).epsilon) == 2
    if 0.2 < quantile < 0.8:
        assert added == Fraction(mechanism.event(A).epsilon)
        assert replaced == 2


def test_an_outer_quantile_attains_its_range_with_more_rows():
    """Sixteen rows, all below the last threshold: one row more, above it, moves the first and the last by 2 q apart."""
    rows = [1] * 16
    assert spread(rows, [*rows, POINTS], 0.9375) == Fraction(2 * 0.9375)
    rows = [POINTS - 1] * 16
    assert spread(rows, [*rows, 0], 0.0625) == Fraction(2 * 0.9375)


def test_the_event_is_the_rate_times_the_range():
    assert QuantileMechanism(quantile=0.5, rate=0.5).event(A) == BoundedRangeEvent(epsilon=0.5, adjacency=A)
    assert QuantileMechanism(quantile=0.75, rate=0.5).event(Z) == BoundedRangeEvent(epsilon=0.75, adjacency=Z)
    assert QuantileMechanism(quantile=0.25, rate=0.5).event(A) == BoundedRangeEvent(epsilon=0.75, adjacency=A)
    assert QuantileMechanism(quantile=0.9, rate=0.5).event(R) == BoundedRangeEvent(epsilon=1.0, adjacency=R)


def test_many_rows_give_the_quantile():
    positions = np.clip(
        np.rint(np.random.default_rng(2).normal(0.0, 1000.0, 50_000)).astype(np.int64) + 2**20, 0, 2**21
    )
    for quantile, deviate in ((0.5, 0.0), (0.9, 1.2816), (0.05, -1.6449)):
        found = QuantileMechanism(quantile=quantile, rate=0.5).select(positions, 2**21, SecureRandom())
        assert found - 2**20 == pytest.approx(1000.0 * deviate, abs=40.0)


def test_rows_outside_are_at_the_ends():
    ends = np.array([-(2**63), 2**63 - 1, -1], dtype=np.int64)
    mechanism = QuantileMechanism(quantile=0.5, rate=1.0)
    chosen = [mechanism.select(ends, 5, source) for source in (SeededRandom(i) for i in range(40))]
    assert set(chosen) <= set(range(5))
    assert QuantileMechanism(quantile=1e-9, rate=1.0).quantile == 2.0**-20
    assert QuantileMechanism(quantile=1 - 1e-9, rate=1.0).quantile == 1 - 2.0**-20


@pytest.mark.parametrize("quantile", [0.0, 1.0, -0.1, math.nan, None, True])
def test_bad_quantiles_are_refused(quantile):
    with pytest.raises(InvalidParameter, match=r"quantile=.*unit"):
        QuantileMechanism(quantile=quantile, rate=1.0)


def test_other_bad_values_are_refused():
    mechanism = QuantileMechanism(quantile=0.5, rate=1.0)
    for bad in ([1], np.zeros(3), np.zeros((2, 2), dtype=np.int64), np.zeros((), dtype=np.int64)):
        with pytest.raises(InvalidParameter, match="positions"):
            mechanism.select(bad, 5, SeededRandom(1))
    for points in (0, 2.5, 2**40):
        with pytest.raises(InvalidParameter, match="points"):
            mechanism.select(np.zeros(3, dtype=np.int64), points, SeededRandom(1))
    with pytest.raises(InvalidParameter, match=r"rate=.*unit"):
        QuantileMechanism(quantile=0.5, rate=-1.0)
