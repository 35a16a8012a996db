"""Private bounds: law by enumeration over the bins that show, every neighbour, edges, bad input."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import DiscreteLaplaceEvent, Repeated
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import PrivateBoundsMechanism, SeededRandom, log_edges

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
EDGES = (-4.0, -1.0, 1.0, 4.0)
MECHANISM = PrivateBoundsMechanism(scale=1.5, threshold=3)


def shows(count, mechanism=MECHANISM):
    """Pr(count + z >= threshold), by the geometric sum."""
    k, x = mechanism.threshold - count, math.exp(-1.0 / mechanism.scale)
    return x**k / (1 + x) if k >= 1 else 1 - x ** (1 - k) / (1 + x)


def law(counts):
    """{(low, high): probability}, over all sets of bins that show."""
    found = {}
    for shown in itertools.product((False, True), repeat=len(counts)):
        places = [i for i, bit in enumerate(shown) if bit] or [0, len(counts) - 1]
        key = EDGES[places[0]], EDGES[places[-1] + 1]
        chance = math.prod(shows(c) if bit else 1 - shows(c) for c, bit in zip(counts, shown, strict=True))
        found[key] = found.get(key, 0.0) + chance
    return found


@pytest.mark.slow  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("values", [[], [-2.0, -1.0, 0.5, 0.0, 1.0], [9.0, math.inf, math.nan, 2.0, -(2.0**70)]])
def test_bounds_have_their_law(values):
    values, n, source = np.array(values, dtype=np.float64), 4_000, SeededRandom(2)
    known = values[~np.isnan(values)]
    counts = [int((known < -1).sum()), int(((known >= -1) & (known < 1)).sum()), int((known >= 1).sum())]
    expected = {key: n * p for key, p in law(counts).items()}
    assert sum(expected.values()) == pytest.approx(n)
    found = dict.fromkeys(expected, 0)
    for _ in range(n):
        found[MECHANISM.select(values, EDGES, source)] += 1
    statistic = sum((found[key] - expected[key]) ** 2 / expected[key] for key in expected)
    assert chi2.sf(statistic, len(expected) - 1) > 1e-4


@given(st.lists(st.integers(0, 8), min_size=3, max_size=3), st.integers(0, 2), st.integers(0, 2))
def test_no_neighbour_breaks_the_price(counts, place, other):
    added = list(counts)
    added[place] += 1
    moved = list(counts)
    moved[other] += 1
    for one, two, adjacency in ((counts, added, A), (added, moved, R)):
        epsilon = MECHANISM.event(adjacency).pure_epsilon()
        before, after = law(one), law(two)
        assert max(abs(math.log(before[key] / after[key])) for key in before) <= epsilon * (1 + 1e-9)


def test_the_event_is_that_of_one_count_or_two():
    one = DiscreteLaplaceEvent(scale=1.5, sensitivity=1, adjacency=A)
    assert MECHANISM.event(A) == one
    assert MECHANISM.event(R) == Repeated(DiscreteLaplaceEvent(scale=1.5, sensitivity=1, adjacency=R), count=2)


def test_bounds_of_many_rows_are_close():
    edges = log_edges(-1e6, 1e9, 0.01)
    values = np.random.default_rng(1).uniform(3.0, 90.0, 10_000)
    low, high = PrivateBoundsMechanism(scale=10.0, threshold=150).select(values, edges, SeededRandom(1))
    assert 1.28 <= low <= 3.0
    assert 90.0 <= high <= 163.84


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.floats(1e-6, 1e6))
def test_edges_rise_between_the_ends(one, other, smallest):
    low, high = min(one, other), max(one, other)
    if low == high:
        return
    edges = log_edges(low, high, smallest)
    assert edges[0] == low
    assert edges[-1] == high
    assert all(a < b for a, b in itertools.pairwise(edges))
    for edge in edges[1:-1]:
        assert math.frexp(abs(edge) / smallest)[0] == 0.5


def test_edges_by_example():
    assert log_edges(0.0, 10.0, 1.0) == (0.0, 1.0, 2.0, 4.0, 8.0, 10.0)
    assert log_edges(-3.0, 2.0, 1.0) == (-3.0, -2.0, -1.0, 1.0, 2.0)
    assert log_edges(5.0, 7.0, 1.0) == (5.0, 7.0)


def test_bad_values_are_refused():
    for scale in (0.0, -1.0, math.nan, 1e13, None):
        with pytest.raises(InvalidParameter, match=r"scale=.*unit"):
            PrivateBoundsMechanism(scale=scale, threshold=3)
    for threshold in (0, -1, 2.5):
        with pytest.raises(InvalidParameter, match=r"threshold=.*unit"):
            PrivateBoundsMechanism(scale=1.0, threshold=threshold)
    for low, high, smallest in (
        (1.0, 1.0, 1.0),
        (2.0, 1.0, 1.0),
        (0.0, 1.0, 0.0),
        (0.0, 1.0, 1e-30),
        (0.0, math.inf, 1.0),
    ):
        with pytest.raises(InvalidParameter, match="unit"):
            log_edges(low, high, smallest)
    for edges in ((), (1.0,), (1.0, 1.0), (2.0, 1.0), (0.0, math.nan)):
        with pytest.raises(InvalidParameter, match="edges"):
            MECHANISM.select(np.zeros(3), edges, SeededRandom(1))
    for values in ([1.0], np.zeros(3, dtype=np.float32), np.zeros((2, 2))):
        with pytest.raises(InvalidParameter, match="values="):
            MECHANISM.select(values, EDGES, SeededRandom(1))
