"""Joint quantiles from counts: every sequence's probability by its definition, every neighbour's range, bad input."""

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
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import JointQuantilesMechanism, SecureRandom, SeededRandom
from ledgerwood.mechanisms.choices import quantiles as grid_quantiles
from ledgerwood.mechanisms.choices.quantiles import RisingThresholds

A, R, Z = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT
DECILES = tuple(i / 10 for i in range(1, 10))
SHARES = [(0.5,), (0.25, 0.75), (0.2, 0.3, 0.9)]


def vector(counts):
    return np.array(counts, dtype=np.int64)


def moved(counts, sequence, quantiles):
    """By definition: half the sum over bins of |rows in it - its share|; cell i holds the rows below threshold i."""
    rows = sum(counts)
    below = [0, *(sum(counts[: p + 1]) for p in sequence), rows]
    ends = [Fraction(0), *map(Fraction, quantiles), Fraction(1)]
    bins = zip(itertools.pairwise(below), itertools.pairwise(ends), strict=True)
    return sum(abs(b - a - (y - x) * rows) for (a, b), (x, y) in bins) / 2


def sequences(counts, m):
    return itertools.combinations_with_replacement(range(len(counts) - 1), m)


def law_of(counts, mechanism):
    """Every rising sequence's probability."""
    moves = {s: moved(counts, s, mechanism.quantiles) for s in sequences(counts, len(mechanism.quantiles))}
    least, rate = min(moves.values()), Fraction(mechanism.rate)
    nats = {s: rate * (move - least) for s, move in moves.items()}
    weights = {s: mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) for s, x in nats.items()}
    total = mpmath.fsum(weights.values())
    return {s: weight / total for s, weight in weights.items()}


def ways_of(counts, mechanism, level):
    """At each threshold: the weight of all sequences that end there, relative to the heaviest, by the definition."""
    ends = [Fraction(0), *map(Fraction, mechanism.quantiles[: level + 1])]
    found = []
    for last in range(len(counts) - 1):
        costs = []
        for head in itertools.combinations_with_replacement(range(last + 1), level):
            below = [0, *(sum(counts[: p + 1]) for p in (*head, last))]
            bins = zip(itertools.pairwise(below), itertools.pairwise(ends), strict=True)
            costs.append(sum(abs(b - a - (y - x) * sum(counts)) for (a, b), (x, y) in bins) / 2)
        nats = [Fraction(mechanism.rate) * (cost - min(costs)) for cost in costs]
        found.append(mpmath.fsum(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) for x in nats))
    return found


def thresholds_of(counts, mechanism):
    return RisingThresholds(vector(counts), mechanism._shares(), Fraction(mechanism.rate) / 2**21)


class Silent:
    """Words that no oracle looks at."""

    kind = "test"

    def uint64(self, n):
        return np.zeros(n, dtype=np.uint64)


def found_law(monkeypatch, exact_law, counts, mechanism, *, exactly):
    """Every branch of `select_from_counts`; decided by its integers, or by its floats."""

    def run(pick):
        def decide(lows, highs, word, bits):
            assert all(0 <= high - low <= lows[-1] >> 100 for low, high in zip(lows, highs, strict=True))
            return pick([mpmath.mpf(b - a) / lows[-1] for a, b in itertools.pairwise([0, *lows])])

        def first_between(sums, error, low, high):
            assert sums[-1] * 2.0**-37 <= error <= sums[-1] * 2.0**-35
            steps = [mpmath.mpf(b) - mpmath.mpf(a) for a, b in itertools.pairwise([0.0, *sums.tolist()])]
            return None if exactly else pick([step / mpmath.mpf(sums[-1]) for step in steps])

        monkeypatch.setattr(grid_quantiles, "decide", decide)
        monkeypatch.setattr(grid_quantiles, "first_between", first_between)
        return mechanism.select_from_counts(vector(counts), Silent())

    return exact_law(run)


COUNTS = [
    [0, 0, 0, 0],  # no rows
    [0, 7, 0, 0],  # all in one cell
    [5, 0, 0, 0, 0],
    [0, 0, 0, 4],
    [1, 2, 0, 3, 1],
    [2, 3],  # one threshold
    [400_000, 3, 399_990, 200_007],
]


@pytest.mark.slow_after(40)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("exactly", [True, False])
@pytest.mark.parametrize("rate", [1e-200, 1e-5, 0.9, 1e3])
@pytest.mark.parametrize("quantiles", SHARES)
@pytest.mark.parametrize("counts", COUNTS)
def test_every_sequence_has_its_probability(monkeypatch, exact_law, counts, quantiles, rate, exactly):
    mechanism = JointQuantilesMechanism(quantiles=quantiles, rate=rate)
    law = law_of(counts, mechanism)
    found = found_law(monkeypatch, exact_law, counts, mechanism, exactly=exactly)
    assert found.keys() <= law.keys()
    assert max(abs(found.get(s, 0) - p) for s, p in law.items()) < 1e-13


@settings(max_examples=60)
@given(
    counts=st.lists(st.integers(0, 9) | st.sampled_from([10**3, 10**6]), min_size=2, max_size=5),
    quantiles=st.sampled_from([*SHARES, (0.25, 0.5, 0.75, 0.875)]),
    rate=st.sampled_from([1e-200, 1e-6, 0.03, 1.0, 17.3, 1e3]),
)
def test_the_ways_are_within_their_stated_errors(counts, quantiles, rate):
    """Relative to the cheapest way, however much that one costs."""
    mechanism = JointQuantilesMechanism(quantiles=quantiles, rate=rate)
    thresholds = thresholds_of(counts, mechanism)
    with mpmath.workdps(80):
        for level in range(len(quantiles)):
            exact = ways_of(counts, mechanism, level)
            lows, highs = thresholds._ways_exactly(
                level, len(exact), grid_quantiles.Powers(Fraction(mechanism.rate) / 2**21, 128), 128
            )
            for value, way, low, high in zip(thresholds._ways[level].tolist(), exact, lows, highs, strict=True):
                assert abs(value - way) <= way * (level + 1) * grid_quantiles._ERROR / 2
                assert value >= 1.0
                assert low * (1 - mpmath.mpf(10) ** -70) <= way * 2**128 <= high * (1 + mpmath.mpf(10) ** -70)
                assert high - low <= low >> 100


class Words:
    def __init__(self, number, words):
        self.words = [number >> 64 * k & (2**64 - 1) for k in range(words - 1, -1, -1)]

    def uint64(self, n):
        assert n == 1
        return np.array([self.words.pop(0) if self.words else 0], dtype=np.uint64)


@settings(max_examples=40)
@given(
    counts=st.lists(st.integers(0, 6) | st.sampled_from([100, 10**6]), min_size=3, max_size=6),
    rate=st.sampled_from([1e-9, 0.05, 0.7, 40.0]),
    level=st.integers(0, 2),
)
def test_a_choice_cuts_the_unit_interval_where_it_should(counts, rate, level):
    """All 256-bit numbers next to each cut, and in the middle between two: so each place has its share to 2^-250."""
    mechanism = JointQuantilesMechanism(quantiles=(0.25, 0.5, 0.625), rate=rate)
    thresholds = thresholds_of(counts, mechanism)
    gaps = thresholds._gaps(level, sum(counts), len(counts) - 1)
    with mpmath.workdps(120):
        nats = [mpmath.mpf(gap) * mpmath.mpf(mechanism.rate) / 2**21 for gap in gaps.tolist()]
        pairs = zip(ways_of(counts, mechanism, level), nats, strict=True)
        sums = list(itertools.accumulate(way * mpmath.exp(-x) for way, x in pairs))
        cuts = [int(mpmath.floor(total / sums[-1] * 2**256)) for total in sums]
    cuts[-1] = 2**256
    below = 0
    for place, cut in enumerate(cuts):
        for number in {below + 4, (below + cut) // 2, cut - 5} if cut - below > 16 else ():
            assert thresholds._choose(level, gaps, Words(number, 4)) == place
        below = cut


def test_integers_and_floats_choose_alike(monkeypatch):
    """By the same words, of 40 thresholds: what floats decide, integers decide so too."""
    counts = vector(np.random.default_rng(5).poisson(30.0, 41))
    mechanism = JointQuantilesMechanism(quantiles=(0.1, 0.5, 0.8), rate=0.05)
    floats = [mechanism.select_from_counts(counts, SeededRandom(seed)) for seed in range(5)]
    monkeypatch.setattr(grid_quantiles, "_ERROR", 1.0)
    assert [mechanism.select_from_counts(counts, SeededRandom(seed)) for seed in range(5)] == floats
    assert len(set(floats)) > 1


@pytest.mark.slow  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("counts", [[30, 20, 0, 25, 25, 40, 1, 9, 50], [10**6, 40, 30, 2 * 10**6, 25, 30, 10**6]])
def test_drawn_sequences_have_their_law(counts):
    mechanism, n, source = JointQuantilesMechanism(quantiles=(0.25, 0.75), rate=0.04), 4_000, SeededRandom(3)
    law = law_of(counts, mechanism)
    found = dict.fromkeys(law, 0)
    for _ in range(n):
        found[mechanism.select_from_counts(vector(counts), source)] += 1
    observed, expected = np.array(list(found.values())), np.array([n * float(p) for p in law.values()])
    seen = expected >= 5
    assert seen.sum() >= 5
    assert observed[~seen].sum() <= expected[~seen].sum() + 5 * math.sqrt(expected[~seen].sum()) + 1
    observed, expected = observed[seen], expected[seen]
    assert chi2.sf(float(((observed - expected) ** 2 / expected).sum()), int(seen.sum()) - 1) > 1e-4


@pytest.mark.slow  # whole laws, by enumeration or many draws
def test_counts_and_rows_name_the_same_thresholds():
    """At a rate that leaves only the cheapest sequences. The whole law of `select` is in test_exact_choices.py."""
    mechanism, source = JointQuantilesMechanism(quantiles=(0.25, 0.75), rate=1e3), SeededRandom(2)
    counts = [0, 3, 2, 0, 4, 1, 7]
    positions = np.repeat(np.arange(7), counts)
    law = law_of(counts, mechanism)
    for _ in range(20):
        assert law[mechanism.select(positions, 6, source)] > 1e-9
        assert law[mechanism.select_from_counts(vector(counts), source)] > 1e-9


def widest(counts, others, mechanism):
    """Of the log probability ratios of all sequences, the largest less the smallest; by the definition of the law."""
    m = len(mechanism.quantiles)
    changes = [
        moved(others, s, mechanism.quantiles) - moved(counts, s, mechanism.quantiles) for s in sequences(counts, m)
    ]
    return Fraction(mechanism.rate) * (max(changes) - min(changes))


@pytest.mark.slow  # whole laws, by enumeration or many draws
@settings(max_examples=150)
@given(
    counts=st.lists(st.integers(0, 4), min_size=2, max_size=5),
    quantiles=st.sampled_from([*SHARES, (0.5, 0.875)]),
    rate=st.floats(0.01, 5.0),
    data=st.data(),
)
def test_no_neighbour_exceeds_the_range(counts, quantiles, rate, data):
    """A row may be in no cell at all: then it is not among the rows, and nothing moves."""
    mechanism = JointQuantilesMechanism(quantiles=quantiles, rate=rate)
    places = st.none() | st.integers(0, len(counts) - 1)
    one, other = data.draw(places), data.draw(places)

    def with_row(place):
        return [count + (cell == place) for cell, count in enumerate(counts)]

    for adjacency in (A, Z):
        assert widest(counts, with_row(one), mechanism) <= Fraction(mechanism.event(adjacency).epsilon)
    assert widest(with_row(one), with_row(other), mechanism) <= Fraction(mechanism.event(R).epsilon)


@settings(max_examples=15)
@given(counts=st.lists(st.integers(0, 3), min_size=2, max_size=4), data=st.data())
def test_probability_ratios_of_what_is_drawn_stay_within_the_range(exact_law, counts, data):
    """The sampler's own probabilities, by all its branches."""
    mechanism = JointQuantilesMechanism(quantiles=(0.25, 0.75), rate=0.8)
    cell = data.draw(st.integers(0, len(counts) - 1))
    more = [count + (place == cell) for place, count in enumerate(counts)]
    with pytest.MonkeyPatch.context() as patch:
        one, other = (found_law(patch, exact_law, c, mechanism, exactly=False) for c in (counts, more))
    ratios = [mpmath.log(other[s] / one[s]) for s in one]
    assert one.keys() == other.keys() == set(sequences(counts, 2))
    assert max(ratios) - min(ratios) <= mechanism.event(A).epsilon + 1e-12


def test_the_ranges_are_attained():
    """Quartiles of three full cells: a row above them all; and one that leaves a full bin for an empty one."""
    mechanism = JointQuantilesMechanism(quantiles=(0.25, 0.5, 0.75), rate=1.0)
    assert widest([0, 3, 3, 3, 0], [0, 3, 3, 3, 1], mechanism) == Fraction(mechanism.event(A).epsilon)
    assert widest([0, 1, 3, 1, 3, 0], [0, 0, 3, 2, 3, 0], mechanism) == mechanism.event(R).epsilon == 2.0


@pytest.mark.parametrize("rate", [0.5, 1e3])
def test_deciles_of_a_million_rows(rate):
    """Where the cheapest way weighs e^-1000 and less."""
    values = np.random.default_rng(2).normal(128.0, 30.0, 10**6)
    counts = np.bincount(np.clip(values, 0, 255).astype(np.int64), minlength=256)
    with np.errstate(all="raise"):
        found = JointQuantilesMechanism(quantiles=DECILES, rate=rate).select_from_counts(counts, SecureRandom())
    assert list(found) == sorted(found)
    assert np.abs(np.array(found) + 1 - np.quantile(values, DECILES)).max() < 1.5


def test_weights_below_the_least_float_are_no_error():
    """Whatever the caller has asked of numpy."""
    counts = np.random.default_rng(1).poisson(50.0, 256)
    with np.errstate(all="raise"):
        for rate in (0.11, 0.13, 0.17):
            JointQuantilesMechanism(quantiles=DECILES, rate=rate).select_from_counts(counts, SeededRandom(1))


@pytest.mark.slow  # the largest choice that is allowed
def test_most_thresholds_and_most_quantiles():
    shares = tuple(i / 65 for i in range(1, 65))
    mechanism = JointQuantilesMechanism(quantiles=shares, rate=0.01)
    found = mechanism.select_from_counts(np.full(1025, 2**40 // 1025, dtype=np.int64), SecureRandom())
    assert np.abs(np.array(found) + 1 - 1025 * np.array(shares)).max() < 8.0  # whole cells, of 16 a bin


def test_vectors_that_count_nothing_possible_are_held():
    """The sampler is total: what a sum cannot be is moved to the nearest end."""
    mechanism = JointQuantilesMechanism(quantiles=(0.5,), rate=1.0)
    most = 2**40 // 3
    for wild, held in (([-(2**63), 5, -1], [0, 5, 0]), ([2**63 - 1, 3, most + 1], [most, 3, most])):
        one, other = (thresholds_of(counts, mechanism) for counts in (wild, held))
        np.testing.assert_array_equal(one._costs, other._costs)
        np.testing.assert_array_equal(one._below, other._below)
        assert one._rows == other._rows == sum(held)


@pytest.mark.parametrize(
    ("counts", "match"),
    [
        (np.zeros(3), r"counts='float64 \(3,\)' must be an int64 vector \(unit: rows\)"),
        (np.zeros((2, 2), dtype=np.int64), r"counts='int64 \(2, 2\)'"),
        ([1, 2], "counts='list'"),
        (vector([]), r"len\(counts\)=0 must be in 2\.\.1025 \(unit: cells\)"),
        (vector([4]), r"len\(counts\)=1 "),
        (np.zeros(1026, dtype=np.int64), r"len\(counts\)=1026 "),
    ],
)
def test_what_is_no_vector_of_counts_is_refused(counts, match):
    with pytest.raises(InvalidParameter, match=match):
        JointQuantilesMechanism(quantiles=(0.5,), rate=1.0).select_from_counts(counts, SeededRandom(1))
