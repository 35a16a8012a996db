"""Private choices: their laws by enumeration, their prices against the worst neighbours, words that floats miss."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent, PureEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import (
    ExponentialMechanism,
    Grid,
    NoisyMaxMechanism,
    PermuteAndFlipMechanism,
    SeededRandom,
    UtilityRange,
)
from ledgerwood.mechanisms.exact import choice

A = Adjacency.ADD_REMOVE
UNIT = Grid(exponents=(-4,))
STEP = 2.0**-4


def exponential_law(utilities, rate, counts=None):
    weights = [
        (1 if counts is None else int(counts[i])) * mpmath.exp(rate * mpmath.mpf(int(u) - int(max(utilities))) * STEP)
        for i, u in enumerate(utilities)
    ]
    return [weight / mpmath.fsum(weights) for weight in weights]


def permute_and_flip_law(utilities, rate):
    """By all orders of the candidates."""
    heads = [mpmath.exp(rate * mpmath.mpf(int(u) - int(max(utilities))) * STEP) for u in utilities]
    law = [mpmath.mpf(0)] * len(heads)
    for order in itertools.permutations(range(len(heads))):
        left = mpmath.mpf(1) / math.factorial(len(heads))
        for i in order:
            law[i] += left * heads[i]
            left *= 1 - heads[i]
    return law


def noisy_max_law(utilities, scale):
    """By sums over all values of the rounded noise."""
    reach = int(60 * scale / STEP)
    cells = np.arange(-reach - int(np.ptp(utilities)), reach + int(np.ptp(utilities)) + 1)

    def upper(k):
        x = (k - 0.5) * STEP / scale
        return np.where(x > 0, 0.5 * np.exp(-np.abs(x)), 1 - 0.5 * np.exp(-np.abs(x)))

    law = []
    for i, u in enumerate(utilities):
        win = upper(cells) - upper(cells + 1)
        for j, other in enumerate(utilities):
            if j != i:  # the other's sum is below, or equal and later
                win = win * (1 - upper(cells + u - other + (1 if j > i else 0)))
        law.append(float(win.sum()))
    return law


def frequencies(mechanism, utilities, n=20_000, **more):
    source = SeededRandom(20_261_122)
    chosen = [mechanism.select(np.array(utilities, dtype=np.int64), UNIT, source, **more) for _ in range(n)]
    return np.bincount(chosen, minlength=len(utilities))


def assert_law(counts, law):
    expected = counts.sum() * np.array([float(p) for p in law])
    seen = expected >= 5
    assert counts[~seen].sum() <= expected[~seen].sum() + 15
    statistic = float(((counts[seen] - expected[seen]) ** 2 / expected[seen]).sum())
    assert chi2.sf(statistic, max(int(seen.sum()) - 1, 1)) > 1e-4


UTILITIES = [[3], [0, 0, 0], [5, 1, -7, 16], [0, 400, 10**9, 10**9 - 3], [-(2**63), 2**63 - 1, 2**63 - 9]]


@pytest.mark.slow  # whole laws by enumeration of the coins
@pytest.mark.parametrize("utilities", UTILITIES)
def test_the_exponential_mechanism_has_its_law(utilities):
    assert_law(frequencies(ExponentialMechanism(rate=1.5), utilities), exponential_law(utilities, 1.5))


@pytest.mark.slow  # whole laws, by enumeration or many draws
def test_counts_are_a_base_measure():
    counts = np.array([0, 3, 10**6, 2**40 - 1])
    utilities = [10**6, 300, 100, -200]
    law = exponential_law(utilities[1:], 1.1, counts[1:])
    found = frequencies(ExponentialMechanism(rate=1.1), utilities, counts=counts)
    assert found[0] == 0
    assert_law(found[1:], law)


@pytest.mark.slow_after(1)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("utilities", UTILITIES)
def test_permute_and_flip_has_its_law(utilities):
    assert_law(frequencies(PermuteAndFlipMechanism(rate=1.5), utilities, 6_000), permute_and_flip_law(utilities, 1.5))


@pytest.mark.slow_after(1)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("utilities", [[3], [0, 0, 0], [5, 1, -7, 16]])
def test_the_noisy_maximum_has_its_law(utilities):
    law = noisy_max_law(utilities, 0.5)
    assert sum(law) == pytest.approx(1.0, abs=1e-9)
    assert_law(frequencies(NoisyMaxMechanism(scale=0.5), utilities, 6_000), law)


def test_the_noisy_maximum_compares_sums_that_do_not_fit_into_a_word():
    top = np.array([2**63 - 1, 2**63 - 2, -(2**63)], dtype=np.int64)
    source = SeededRandom(9)
    chosen = [NoisyMaxMechanism(scale=2.0).select(top, UNIT, source) for _ in range(400)]
    assert set(chosen) == {0, 1}


changes = st.lists(st.integers(-20, 20), min_size=2, max_size=4)


@given(changes=changes, data=st.data())
def test_no_neighbour_breaks_the_price(changes, data):
    """Exact laws under u and u + d: within the event's epsilon, and within its range for the exponential mechanism."""
    utilities = data.draw(st.lists(st.integers(-30, 30), min_size=len(changes), max_size=len(changes)))
    moved = [u + d for u, d in zip(utilities, changes, strict=True)]
    spread = (max(changes) - min(changes)) * STEP
    sensitivity = UtilityRange(range=max(spread, STEP))
    for mechanism, law in (
        (ExponentialMechanism(rate=1.3), exponential_law),
        (PermuteAndFlipMechanism(rate=1.3), permute_and_flip_law),
    ):
        epsilon = mechanism.event(sensitivity, A).epsilon
        ratios = [mpmath.log(p / q) for p, q in zip(law(utilities, 1.3), law(moved, 1.3), strict=True)]
        assert max(map(abs, ratios)) <= epsilon * (1 + 1e-12)
        if mechanism.event(sensitivity, A) == BoundedRangeEvent(epsilon=epsilon, adjacency=A):
            assert max(ratios) - min(ratios) <= epsilon * (1 + 1e-12)


@given(changes=st.lists(st.integers(-8, 8), min_size=2, max_size=4), data=st.data())
def test_no_neighbour_breaks_the_price_of_the_noisy_maximum(changes, data):
    utilities = data.draw(st.lists(st.integers(-10, 10), min_size=len(changes), max_size=len(changes)))
    moved = [u + d for u, d in zip(utilities, changes, strict=True)]
    spread = max((max(changes) - min(changes)) * STEP, STEP)
    epsilon = NoisyMaxMechanism(scale=0.5).event(UtilityRange(range=spread), A).epsilon
    for p, q in zip(noisy_max_law(utilities, 0.5), noisy_max_law(moved, 0.5), strict=True):
        assert abs(math.log(p / q)) <= epsilon * (1 + 1e-7)


def test_permute_and_flip_is_not_bounded_range():
    law, moved = permute_and_flip_law([0, 0], 1.0), permute_and_flip_law([16, 0], 1.0)
    ratios = [mpmath.log(q / p) for p, q in zip(law, moved, strict=True)]
    assert max(ratios) - min(ratios) > 1.0 + 0.1
    assert isinstance(PermuteAndFlipMechanism(rate=1.0).event(UtilityRange(range=1.0), A), PureEvent)


@given(rate=st.floats(1e-20, 1e3), range_=st.floats(1e-20, 1e3))
def test_prices_are_rounded_up(rate, range_):
    for mechanism in (ExponentialMechanism(rate=rate), PermuteAndFlipMechanism(rate=rate)):
        epsilon = mechanism.event(UtilityRange(range=range_), A).epsilon
        exact = Fraction(rate) * Fraction(range_)
        assert exact <= Fraction(epsilon)
        assert epsilon == pytest.approx(float(exact), rel=1e-15)
    epsilon = NoisyMaxMechanism(scale=rate).event(UtilityRange(range=range_), A).epsilon
    assert Fraction(epsilon) >= Fraction(range_) / Fraction(rate)


def words(monkeypatch, *given_words):
    stream = iter(given_words)
    monkeypatch.setattr(
        SeededRandom, "_fill", lambda self, n: np.array([next(stream) for _ in range(n)], dtype=np.uint64)
    )
    return SeededRandom(0)


@pytest.mark.parametrize("utilities", [[0, 0, 0], [0, 1, 3], [0, -(2**40), 5]])
def test_a_word_between_two_candidates_is_decided_in_integers(monkeypatch, utilities):
    """The first word is the leading digits of the partial sum; the next ones lie just below it and just above."""
    mechanism, values = ExponentialMechanism(rate=1.0), np.array(utilities, dtype=np.int64)
    with mpmath.workdps(80):
        digits = int(mpmath.floor(exponential_law(utilities, mpmath.mpf(1))[0] * mpmath.mpf(2) ** 128))
    head, tail = digits >> 64, digits & (2**64 - 1)
    assert mechanism.select(values, UNIT, words(monkeypatch, head, tail - 2, 0)) == 0
    after = mechanism.select(values, UNIT, words(monkeypatch, head, tail + 2, 0))
    assert after == (1 if utilities[1] > -1000 else 2)


def test_a_hopeless_candidate_stays_possible(monkeypatch):
    """800 nats below the best: the float weight is 0, the true one is not."""
    with mpmath.workdps(700):
        share = mpmath.exp(-800) / (1 + mpmath.exp(-800))
        digits = int(mpmath.floor(share * mpmath.mpf(2) ** 1280))
    below = [digits // 2 >> (64 * k) & (2**64 - 1) for k in range(19, -1, -1)]
    values = np.array([0, 800 * 16], dtype=np.int64)
    assert ExponentialMechanism(rate=1.0).select(values, UNIT, words(monkeypatch, *below)) == 0
    assert ExponentialMechanism(rate=1.0).select(values, UNIT, SeededRandom(1)) == 1


@pytest.mark.parametrize(("gap", "rate"), [(1, Fraction(1, 2)), (7, Fraction(3, 64)), (10**6, Fraction(1, 2**20))])
def test_a_coin_is_decided_by_the_digits_of_its_probability(monkeypatch, gap, rate):
    with mpmath.workdps(60):
        digits = int(mpmath.floor(mpmath.exp(-gap * mpmath.mpf(rate.numerator) / rate.denominator) * 2**128))
    head, tail = digits >> 64, digits & (2**64 - 1)
    assert choice.coin(gap, rate, words(monkeypatch, head, tail - 2))
    assert not choice.coin(gap, rate, words(monkeypatch, head, tail + 2))
    assert choice.coin(0, rate, words(monkeypatch))


@pytest.mark.parametrize("gap", [1, 3, 10**3, 44 * 2**20, 2**26, 700 * 2**20, 745 * 2**20, 2**31, 2**62])
def test_a_coin_takes_one_word_unless_that_is_at_its_probability(monkeypatch, gap):
    """By floats where they tell and by integers elsewhere: on both sides of the probability, near to it and far."""
    rate = Fraction(1, 2**20)
    with mpmath.workdps(400):
        head = int(mpmath.floor(mpmath.exp(-mpmath.mpf(gap) / 2**20) * 2**64))
    for bits in range(3, 64):
        if head > 2**bits:
            assert choice.coin(gap, rate, words(monkeypatch, head - 2**bits))
        if head + 2**bits < 2**64:
            assert not choice.coin(gap, rate, words(monkeypatch, head + 2**bits))
    assert choice.coin(gap, Fraction(2**1000), words(monkeypatch, 2**63)) is False


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    gaps=st.lists(st.integers(0, 60) | st.integers(0, 2**41) | st.sampled_from([2**64 - 1, 2**63]), min_size=1),
    rate=st.sampled_from(
        [Fraction(1e-9), Fraction(1, 2**10), Fraction(3, 7 * 2**3 + 8), Fraction(1e3), Fraction(2**900)]
    ),
    data=st.data(),
)
def test_coins_together_are_coins_one_by_one(monkeypatch, gaps, rate, data):
    """Also by words around the edge of each probability, where integers decide; by the same second words."""
    firsts = []
    for gap in gaps:
        with mpmath.workdps(40):
            nats = mpmath.mpf(gap) * rate.numerator / rate.denominator
            edge = int(mpmath.floor(mpmath.exp(-min(nats, 10**6)) * 2**64))
        near = data.draw(st.integers(-40, 40) | st.integers(-(2**30), 2**30), label="from the edge")
        firsts.append(data.draw(st.just(min(max(edge + near, 0), 2**64 - 1)) | st.integers(0, 2**64 - 1)))
    second = data.draw(st.integers(2**10, 2**64 - 2**10), label="second words")
    array = np.array(gaps, dtype=np.uint64)
    together = choice.coins(array, rate, words(monkeypatch, *firsts, *(second for _ in gaps)))
    alone = [choice.coin(gap, rate, words(monkeypatch, first, second)) for gap, first in zip(gaps, firsts, strict=True)]
    assert together.tolist() == alone


@pytest.mark.parametrize("rate", [1e-9, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("n", [1, 2, 1_000, 20_000])
def test_permute_and_flip_takes_a_word_a_candidate(rate, n):
    """Whatever the utilities: all equal, all hopeless but one, 2**40 apart, or near each other."""
    generator = np.random.default_rng(5)
    for utilities in (
        np.zeros(n, dtype=np.int64),
        np.where(np.arange(n) == n // 2, 2**62, -(2**62)),
        (generator.integers(0, 2, n) << 40) + generator.integers(0, 9, n),
        generator.integers(0, 10**6, n),
    ):
        stream = SeededRandom(11).uint64(n + 3).tolist()
        with pytest.MonkeyPatch.context() as patched:
            source = words(patched, *stream)  # which has no more
            found = PermuteAndFlipMechanism(rate=rate).select(utilities, UNIT, source)
        nats = rate * STEP * float(int(utilities.max()) - int(utilities[found]))
        assert nats < 60


@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlipMechanism])
@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf, None, 1e201])
def test_bad_rates_are_refused(kind, rate):
    with pytest.raises(InvalidParameter, match="rate=.*unit"):
        kind(rate=rate)


@pytest.mark.parametrize(
    "mechanism", [ExponentialMechanism(rate=1.0), PermuteAndFlipMechanism(rate=1.0), NoisyMaxMechanism(scale=1.0)]
)
def test_bad_candidates_are_refused_by_their_shape(mechanism):
    for bad in (np.zeros(0, dtype=np.int64), np.zeros(3), np.zeros((3, 1), dtype=np.int64)):
        with pytest.raises(InvalidParameter, match="candidates|utilities"):
            mechanism.select(bad, UNIT, SeededRandom(1))
    with pytest.raises(InvalidParameter, match="one column"):
        mechanism.select(np.zeros(3, dtype=np.int64), Grid(exponents=(0, 0)), SeededRandom(1))


def test_bad_counts_ranges_and_steps_are_refused():
    mechanism, values = ExponentialMechanism(rate=1.0), np.zeros(2, dtype=np.int64)
    for bad in ([0, 0], [-1, 1], [1, 2**40], [1]):
        with pytest.raises(InvalidParameter, match="counts"):
            mechanism.select(values, UNIT, SeededRandom(1), counts=np.array(bad, dtype=np.int64))
    for value in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidParameter, match="range=.*unit"):
            UtilityRange(range=value)
    with pytest.raises(InvalidParameter, match="grid step"):
        ExponentialMechanism(rate=1e-200).select(values, Grid(exponents=(-1000,)), SeededRandom(1))
