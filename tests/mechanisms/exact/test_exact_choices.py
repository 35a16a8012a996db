"""The probability of each choice, exactly: every branch that a mechanism can take, not a sample of them.

What decides a branch (a coin, a uniform number, a rounded deviate, a weighted choice) is replaced by an oracle that
takes each value in turn and knows its probability; that the real ones have these probabilities is shown here for the
weighted choice, and for the others in test_selection.py, test_randomness.py and test_rounding.py.
"""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ledgerwood.mechanisms import (
    CategoricalCandidates,
    Grid,
    GridlessMechanism,
    JointQuantilesMechanism,
    NoisyMaxMechanism,
    NumericCandidates,
    PermuteAndFlipMechanism,
    PrivateBoundsMechanism,
    QuantileMechanism,
    SparseVectorMechanism,
    StabilityHistogramMechanism,
)
from ledgerwood.mechanisms.exact import choice

WHOLE = Grid(exponents=(0,))
UNIT = Grid(exponents=(-4,))


class Uniform:
    """A source of whole numbers that are picked."""

    kind = "test"

    def __init__(self, pick):
        self.pick = pick

    def integers(self, bound, n):
        return np.array([self.pick([mpmath.mpf(1) / bound] * bound) for _ in range(n)], dtype=np.int64)


def normalised(weights):
    total = mpmath.fsum(weights)
    return [mpmath.mpf(weight) / total for weight in weights]


def assert_same(found, law):
    assert found.keys() <= law.keys()
    assert max(abs(found.get(key, 0) - p) for key, p in law.items()) < 1e-13


class Words:
    def __init__(self, number, words):
        self.words = [number >> 64 * k & (2**64 - 1) for k in range(words - 1, -1, -1)]

    def uint64(self, n):
        assert n == 1
        return np.array([self.words.pop(0) if self.words else 0], dtype=np.uint64)


@settings(max_examples=40, deadline=None)
@given(
    data=st.lists(
        st.tuples(st.sampled_from([0, 1, 3, 40, 5000, 2**63]), st.sampled_from([1, 2, 7, 2**40 - 1])),
        min_size=2,
        max_size=6,
    ),
    rate=st.sampled_from([Fraction(1, 2), Fraction(3, 64), Fraction(1, 2**30), Fraction(11)]),
    block=st.sampled_from([1, 2, 3, 2**13]),
)
def test_a_weighted_choice_cuts_the_unit_interval_where_it_should(data, rate, block):
    """All 256-bit numbers next to each cut, and in the middle between two: so each choice has its share to 2^-250.

    Whatever the blocks in which weights are added up.
    """
    gaps, counts = (np.array(side) for side in zip(*data, strict=True))
    gaps = (gaps.astype(object) - min(gaps.tolist())).astype(np.uint64)
    with mpmath.workdps(120):
        nats = [mpmath.mpf(int(gap)) * rate.numerator / rate.denominator for gap in gaps]
        weights = [int(count) * mpmath.exp(-x) for count, x in zip(counts, nats, strict=True)]
        cuts = [int(mpmath.floor(c * 2**256)) for c in itertools.accumulate(normalised(weights))]
    cuts[-1] = 2**256
    below = 0
    for place, cut in enumerate(cuts):
        inside = {below + 4, (below + cut) // 2, cut - 5}
        for number in inside if cut - below > 16 else ():
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(choice, "_BLOCK", block)
                found = choice.choose(gaps, counts.astype(np.int64), rate, Words(number, 4))
            assert found == place
        below = cut


@settings(max_examples=60)
@given(
    gap=st.integers(0, 2**12) | st.integers(0, 2**64 - 1),
    rate=st.sampled_from([Fraction(1, 2), Fraction(3, 64), Fraction(1, 2**70), Fraction(11)]),
    bits=st.integers(64, 300),
)
def test_powers_are_enclosed(gap, rate, bits):
    """Those far below the last bit, too."""
    low, high = choice.Powers(rate, bits).bounds(gap)
    with mpmath.workdps(150):
        power = mpmath.exp(-mpmath.mpf(gap) * rate.numerator / rate.denominator) * 2**bits
    assert low <= power <= high
    assert high - low <= 40


@pytest.mark.slow  # needs more candidates than a block has
def test_a_choice_among_several_blocks_of_candidates():
    """The middle and the ends of a candidate's share, among 30,000 of two weights; the ends are decided in integers."""
    n, rate = 30_000, Fraction(1, 4)
    gaps, counts = np.tile(np.array([0, 9], np.uint64), n // 2), np.full(n, 3, dtype=np.int64)
    with mpmath.workdps(120):
        pair = 3 + 3 * mpmath.exp(-mpmath.mpf(9) / 4)
        for place in (0, 8191, 8192, 16_384, 29_999):
            low = (place // 2 * pair + 3 * (place % 2)) / (n // 2 * pair)
            high = low + (pair - 3 if place % 2 else 3) / (n // 2 * pair)
            first, last = int(mpmath.ceil(low * 2**256)), min(int(high * 2**256), 2**256) - 1
            for number in (first + 2, (first + last) // 2, last - 2):
                assert choice.choose(gaps, counts, rate, Words(number, 4)) == place


@pytest.mark.parametrize("utilities", [[3], [0, 0, 0], [5, 1, -7, 16], [0, 400, 30, 397], [2, 2, 0, 1, -40]])
def test_permute_and_flip(monkeypatch, utilities, exact_law):
    rate = mpmath.mpf(3) / 2

    def head(u):
        return mpmath.exp(rate * (u - max(utilities)) / 16)

    law = dict.fromkeys(range(len(utilities)), mpmath.mpf(0))
    for order in itertools.permutations(law):
        left = 1 / mpmath.factorial(len(law))
        for i in order:
            law[i] += left * head(utilities[i])
            left *= 1 - head(utilities[i])

    def run(pick):
        def coins(gaps, per_step, _):
            heads = [mpmath.exp(-mpmath.mpf(int(gap)) * per_step.numerator / per_step.denominator) for gap in gaps]
            return np.array([bool(pick([1 - p, p])) for p in heads])

        monkeypatch.setattr(choice, "coins", coins)
        monkeypatch.setattr(choice, "_BLOCK", 2)
        return PermuteAndFlipMechanism(rate=1.5).select(np.array(utilities, dtype=np.int64), UNIT, Uniform(pick))

    assert_same(exact_law(run), law)


def rounded_laplace(scale, reach):
    """Probabilities of -reach .. reach of round(scale x), the ends with all beyond."""

    def above(k):  # Pr(round >= k)
        x = (mpmath.mpf(k) - 0.5) / scale
        return mpmath.exp(-x) / 2 if k > 0 else 1 - mpmath.exp(x) / 2

    return [above(k) * (k > -reach) + (k == -reach) - above(k + 1) * (k < reach) for k in range(-reach, reach + 1)]


@pytest.mark.slow_after(3)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize(("utilities", "reach"), [([3], 4), ([0, 0], 30), ([2, 0], 30), ([1, 0, 1], 9)])
def test_the_noisy_maximum(monkeypatch, utilities, reach, exact_law):
    """Of equal sums the first; noise of 0.3 steps is cut off at `reach`, where e^-30 is left at most."""
    noise = rounded_laplace(mpmath.mpf(3) / 10, reach)
    law = dict.fromkeys(range(len(utilities)), mpmath.mpf(0))
    places = range(2 * reach + 1)
    for drawn in itertools.product(places, repeat=len(utilities)):
        sums = [u + z for u, z in zip(utilities, drawn, strict=True)]
        law[max(law, key=lambda i: (sums[i], -i))] += mpmath.fprod(noise[z] for z in drawn)

    def run(pick):
        def unbounded(scale, grid, deviate, source):
            assert (scale, grid) == (0.3, WHOLE)
            return pick(noise) - reach

        monkeypatch.setattr("ledgerwood.mechanisms.choices.selection.unbounded_noise", unbounded)
        return NoisyMaxMechanism(scale=0.3).select(np.array(utilities, dtype=np.int64), WHOLE, None)

    assert_same(exact_law(run), law)


def weighted(monkeypatch, pick):
    def choose(gaps, counts, rate, _):
        nats = [mpmath.mpf(int(gap)) * rate.numerator / rate.denominator for gap in gaps]
        return pick(normalised([int(count) * mpmath.exp(-x) for count, x in zip(counts, nats, strict=True)]))

    monkeypatch.setattr(choice, "choose", choose)
    return Uniform(pick)


FEATURES = (
    NumericCandidates(positions=np.array([3, 3, 7]), points=9, utilities=np.array([1, 90, 2, 0]), weight=3),
    NumericCandidates(positions=np.array([], dtype=np.int64), points=2, utilities=np.array([2]), weight=10),
    CategoricalCandidates(utilities=np.array([0, 3, -50]), weight=7),
)


def test_gridless_points(monkeypatch, exact_law):
    """Threshold p of the first feature has the utility of the cell with as many rows at or below it."""
    utilities = {(0, p): 1 if p < 3 else 2 if p < 7 else 0 for p in range(9)} | {(1, 0): 2, (1, 1): 2}
    utilities |= {(2, 0): 0, (2, 1): 3, (2, 2): -50}
    weights = {key: (3, 10, 7)[key[0]] * mpmath.exp(mpmath.mpf(0.7) * u / 16) for key, u in utilities.items()}

    def run(pick):
        chosen = GridlessMechanism(rate=0.7).select(FEATURES, UNIT, weighted(monkeypatch, pick))
        return chosen.feature, chosen.point

    assert_same(exact_law(run), dict(zip(weights, normalised(weights.values()), strict=True)))


@pytest.mark.parametrize("quantile", [0.5, 0.125, 0.9])
@pytest.mark.parametrize("rows", [[], [4], [0, 9, 9, 3], [7, 2, 2, 2, 5, 1]])
def test_quantiles(monkeypatch, rows, quantile, exact_law):
    mechanism = QuantileMechanism(quantile=quantile, rate=0.8)
    share = Fraction(mechanism.quantile) * len(rows)
    moves = [abs(sum(row <= p for row in rows) - share) for p in range(9)]
    weights = [mpmath.exp(-mpmath.mpf(0.8) * move.numerator / move.denominator) for move in moves]

    def run(pick):
        return mechanism.select(np.array(rows, dtype=np.int64), 9, weighted(monkeypatch, pick))

    assert_same(exact_law(run), dict(enumerate(normalised(weights))))


@pytest.mark.parametrize("quantiles", [(0.5,), (0.25, 0.75), (0.2, 0.3, 0.9)])
@pytest.mark.parametrize("rows", [[], [2], [1, 1, 4], [0, 2, 2, 3, 4]])
def test_joint_quantiles(monkeypatch, rows, quantiles, exact_law):
    """Every rising sequence of thresholds, by the definition of its utility: half the rows in wrong bins."""
    mechanism, points = JointQuantilesMechanism(quantiles=quantiles, rate=0.9), 4
    ends = [Fraction(0), *map(Fraction, mechanism.quantiles), Fraction(1)]
    weights = {}
    for sequence in itertools.combinations_with_replacement(range(points), len(quantiles)):
        below = [0, *(sum(row <= p for row in rows) for p in sequence), len(rows)]
        bins = zip(itertools.pairwise(below), itertools.pairwise(ends), strict=True)
        move = sum(abs(b - a - (y - x) * len(rows)) for (a, b), (x, y) in bins) / 2
        weights[sequence] = mpmath.exp(-mpmath.mpf(0.9) * move.numerator / move.denominator)

    def run(pick):
        def decide(lows, highs, word, bits):
            assert all(0 <= high - low <= lows[-1] >> 200 for low, high in zip(lows, highs, strict=True))
            return pick(normalised([b - a for a, b in itertools.pairwise([0, *lows])]))

        monkeypatch.setattr("ledgerwood.mechanisms.choices.joint_quantiles.decide", decide)
        source = Uniform(pick)
        source.uint64 = lambda n: np.zeros(n, dtype=np.uint64)
        return mechanism.select(np.array(rows, dtype=np.int64), points, source)

    assert_same(exact_law(run), dict(zip(weights, normalised(weights.values()), strict=True)))


@pytest.mark.slow_after(1)  # whole laws by enumeration of the coins
@pytest.mark.parametrize("answers", [1, 2])
def test_sparse_vector_transcripts(monkeypatch, answers, exact_law):
    """Threshold 0; noises of 0.4 and 0.3 steps, cut off at 5. By the definition: sums over all of them at once."""
    queries, reach = (0, -1), 5
    noises = {0.4: rounded_laplace(mpmath.mpf(2) / 5, reach), 0.3: rounded_laplace(mpmath.mpf(3) / 10, reach)}
    law = {}
    values = list(enumerate(noises[0.4]))
    replies = list(enumerate(noises[0.3]))
    for (t, p), (z, q), (again, r), (y, s) in itertools.product(values, replies, values, replies):
        first = queries[0] + z >= t
        fresh = again if first else t  # a new noise on the threshold after an answer
        bits = (True,) if first and answers == 1 else (first, queries[1] + y >= fresh)
        law[bits] = law.get(bits, 0) + p * q * r * s

    def run(pick):
        monkeypatch.setattr(
            "ledgerwood.mechanisms.choices.sparse_vector.unbounded_noise",
            lambda scale, grid, deviate, source: pick(noises[scale]) - reach,
        )
        going = SparseVectorMechanism(threshold_scale=0.4, query_scale=0.3, answers=answers).start(WHOLE, None)
        bits = []
        for query in queries:
            bits.append(going.above(query, 0))
            if not going.answers_left:
                break
        return tuple(bits)

    assert_same(exact_law(run), law)


def test_stability_histograms(monkeypatch, exact_law):
    """Each key by itself; a count below the threshold is not told; a key without rows draws nothing."""
    mechanism, reach = StabilityHistogramMechanism(scale=0.5, threshold=3), 12
    alpha = mpmath.exp(-2)
    noise = [(1 - alpha) / (1 + alpha) * alpha ** abs(z) for z in range(-reach, reach + 1)]
    noise[0] = noise[-1] = alpha**reach / (1 + alpha)
    law = {}
    for (y, p), (z, q) in itertools.product(enumerate(noise, -reach), repeat=2):
        shown = tuple((key, count) for key, count in (("a", 1 + y), ("b", 4 + z)) if count >= 3)
        law[shown] = law.get(shown, 0) + p * q

    def run(pick):
        def geometric(n, scale, deviate, source):
            assert scale == 0.5
            return np.array([pick(noise) - reach for _ in range(n)], dtype=np.int64)

        monkeypatch.setattr("ledgerwood.mechanisms.stability.geometric_noise", geometric)
        return tuple(mechanism.select({"b": 4, "none": 0, "a": 1}, None).items())

    assert_same(exact_law(run), law)
    alone = sum(p for shown, p in law.items() if dict(shown).get("a"))
    assert alone == pytest.approx(alpha**2 / (1 + alpha), rel=1e-12)  # delta of the event


def test_private_bounds(monkeypatch, exact_law):
    """The hull of the bins that reach the threshold, over all noises of three bins; ends cut off at 6."""
    mechanism, reach, edges = PrivateBoundsMechanism(scale=0.4, threshold=2), 6, (-4.0, -1.0, 1.0, 4.0)
    alpha = mpmath.exp(-1 / mpmath.mpf(0.4))
    noise = [(1 - alpha) / (1 + alpha) * alpha ** abs(z) for z in range(-reach, reach + 1)]
    noise[0] = noise[-1] = alpha**reach / (1 + alpha)
    values, law = np.array([-2.0, 0.0, 0.5, np.nan]), {}
    for drawn in itertools.product(enumerate(noise, -reach), repeat=3):
        full = [i for i, (z, _) in enumerate(drawn) if (1, 2, 0)[i] + z >= 2] or [0, 2]
        key = edges[full[0]], edges[full[-1] + 1]
        law[key] = law.get(key, 0) + mpmath.fprod(p for _, p in drawn)

    def run(pick):
        def geometric(n, scale, deviate, source):
            assert scale == 0.4
            return np.array([pick(noise) - reach for _ in range(n)], dtype=np.int64)

        monkeypatch.setattr("ledgerwood.mechanisms.choices.private_bounds.geometric_noise", geometric)
        return mechanism.select(values, edges, None)

    assert_same(exact_law(run), law)


@given(
    bounds=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=4),
    word=st.integers(0, 15),
)
def test_a_place_is_decided_only_if_all_weights_and_numbers_agree(bounds, word):
    """`decide`, against all whole weights within the bounds and both ends of a word's interval."""
    assume(any(low for low, _ in bounds))
    lows = list(itertools.accumulate(low for low, _ in bounds))
    highs = list(itertools.accumulate(low + more for low, more in bounds))
    ends = Fraction(word, 16), Fraction(word + 1, 16) - Fraction(1, 10**9)
    places = set()
    for weights in itertools.product(*(range(low, low + more + 1) for low, more in bounds)):
        sums = list(itertools.accumulate(weights))
        places |= {next(i for i, above in enumerate(sums) if u * sums[-1] < above) for u in ends}
    found = choice.decide(lows, highs, word, 4)
    assert found is None or places == {found}
    if not any(more for _, more in bounds):
        assert found is not None or len(places) > 1
