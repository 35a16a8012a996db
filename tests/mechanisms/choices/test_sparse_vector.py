"""Sparse vector: transcripts against exact sums over the noise, their price against every neighbour, refusals."""

import copy
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import PureEvent, Repeated
from ledgerwood.errors import DrawRefused, InvalidParameter, PrivacyError
from ledgerwood.mechanisms import Grid, QueryChange, SecureRandom, SeededRandom, SparseVectorMechanism
from ledgerwood.mechanisms.exact.deviates import standard_laplace, unbounded_noise

A = Adjacency.ADD_REMOVE
HALVES = Grid(exponents=(-1,))
STEP = 0.5


def upper(k, scale):
    """Pr(Z >= k) of the rounded noise Z, in steps."""
    x = (np.asarray(k) - 0.5) * STEP / scale
    tail = 0.5 * np.exp(-np.abs(x))
    return np.where(x > 0, tail, 1 - tail)


def transcript_probability(bits, queries, mechanism):
    """Of these answers, threshold 0: a sum over the threshold's noise for each answer, queries independent given it."""
    reach = np.arange(-200, 201)
    weights = upper(reach, mechanism.threshold_scale) - upper(reach + 1, mechanism.threshold_scale)
    probability, inner = 1.0, weights
    for bit, query in zip(bits, queries, strict=False):
        above = upper(reach - query, mechanism.query_scale)
        inner = inner * (above if bit else 1 - above)
        if bit:
            probability, inner = probability * inner.sum(), weights
    return probability * inner.sum()


def transcripts(length, answers):
    """All sequences of answers that end with the last query or with the last answer."""
    found = set()
    for bits in itertools.product((False, True), repeat=length):
        ends = [i for i in range(length) if sum(bits[: i + 1]) == answers]
        found.add(bits[: ends[0] + 1] if ends else bits)
    return sorted(found)


@pytest.mark.slow_after(1)  # whole laws, by enumeration or many draws
@pytest.mark.parametrize("answers", [1, 2])
def test_transcripts_have_their_law(answers):
    mechanism, queries, n = (
        SparseVectorMechanism(threshold_scale=1.0, query_scale=1.5, answers=answers),
        [-2, 1, 3, -1],
        5_000,
    )
    every = transcripts(4, answers)
    law = np.array([transcript_probability(bits, queries, mechanism) for bits in every])
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    source, counts = SeededRandom(answers), dict.fromkeys(every, 0)
    for _ in range(n):
        run, bits = mechanism.start(HALVES, source), []
        for query in queries:
            bits.append(run.above(query + 7, 7))
            if not run.answers_left:
                break
        counts[tuple(bits)] += 1
    found = np.array(list(counts.values()))
    assert chi2.sf(float(((found - n * law) ** 2 / (n * law)).sum()), law.size - 1) > 1e-4


scales = st.floats(0.4, 4.0)


@given(
    queries=st.lists(st.integers(-6, 6), min_size=3, max_size=3),
    changes=st.lists(st.integers(-2, 2), min_size=3, max_size=3),
    threshold_scale=scales,
    query_scale=scales,
    answers=st.integers(1, 3),
)
def test_no_neighbour_breaks_the_price(queries, changes, threshold_scale, query_scale, answers):
    mechanism = SparseVectorMechanism(threshold_scale=threshold_scale, query_scale=query_scale, answers=answers)
    moved = [query + change for query, change in zip(queries, changes, strict=True)]
    monotone = min(changes) >= 0 or max(changes) <= 0
    change = QueryChange(largest=max(max(map(abs, changes)), 1) * STEP, monotone=monotone)
    epsilon = mechanism.event(change, A).pure_epsilon()
    for bits in transcripts(3, answers):
        before, after = (transcript_probability(bits, values, mechanism) for values in (queries, moved))
        assert abs(math.log(before / after)) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize(("rest", "last", "monotone"), [(2, -2, False), (2, 0, True)])
def test_the_price_is_attained(rest, last, monotone):
    """Many queries that are just below and rise, then one far below the noise that falls (or does not rise)."""
    mechanism = SparseVectorMechanism(threshold_scale=2.0, query_scale=2.0)
    bits = (False,) * 40 + (True,)
    losses = [
        math.log(
            transcript_probability(bits, [height] * 40 + [-80], mechanism)
            / transcript_probability(bits, [height + rest] * 40 + [-80 + last], mechanism)
        )
        for height in range(6, 40, 4)
    ]
    epsilon = mechanism.event(QueryChange(largest=1.0, monotone=monotone), A).epsilon
    assert max(losses) == pytest.approx(epsilon, rel=1e-9)


def test_the_event_is_rounded_up_and_repeated():
    mechanism = SparseVectorMechanism(threshold_scale=3.0, query_scale=7.0)
    both = mechanism.event(QueryChange(largest=1.0), A)
    assert isinstance(both, PureEvent)
    exact = Fraction(1, 3) + Fraction(2, 7)
    assert exact <= Fraction(both.epsilon) <= exact * (1 + Fraction(1, 2**52))
    one = mechanism.event(QueryChange(largest=1.0, monotone=True), A)
    assert one.epsilon == pytest.approx(1 / 3 + 1 / 7, rel=1e-15)
    many = SparseVectorMechanism(threshold_scale=3.0, query_scale=7.0, answers=5).event(QueryChange(largest=1.0), A)
    assert many == Repeated(both, count=5)


def test_a_run_ends_with_its_last_answer():
    run = SparseVectorMechanism(threshold_scale=1.0, query_scale=1.0, answers=2).start(HALVES, SecureRandom())
    assert [run.above(-(10**9), 0), run.above(2**80, 0), run.above(-(2**80), 0)] == [False, True, False]
    assert run.answers_left == 1
    assert run.above(10**9, 0)
    assert run.answers_left == 0
    with pytest.raises(DrawRefused, match="all 2 answers"):
        run.above(10**9, 0)


def test_each_answer_has_a_threshold_noise_of_its_own(monkeypatch):
    """The noises that are drawn, in order: threshold, query, query (above), threshold, query (above)."""
    drawn = []
    monkeypatch.setattr(
        "ledgerwood.mechanisms.choices.sparse_vector.unbounded_noise", lambda scale, *rest: drawn.append(scale) or 0
    )
    run = SparseVectorMechanism(threshold_scale=1.0, query_scale=2.0, answers=2).start(HALVES, SeededRandom(1))
    assert [run.above(-1, 0), run.above(0, 0), run.above(1, 1)] == [False, True, True]
    assert drawn == [1.0, 2.0, 2.0, 1.0, 2.0]


def test_a_run_has_one_holder(monkeypatch):
    run = SparseVectorMechanism(threshold_scale=1.0, query_scale=1.0).start(HALVES, SeededRandom(1))
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(PrivacyError, match="copied"):
            copied(run)
    monkeypatch.setattr("ledgerwood.mechanisms.choices.sparse_vector.os.getpid", lambda: -7)
    with pytest.raises(DrawRefused, match="another process"):
        run.above(0, 0)


def test_unbounded_noise_is_the_bounded_one_without_its_modulus():
    """The law of rounded Laplace noise; at 2**55 steps the noise has the scale that it should have."""
    source, n = SeededRandom(4), 6_000
    drawn = np.array([unbounded_noise(0.8, HALVES, standard_laplace(), source) for _ in range(n)])
    cells = np.arange(-5, 6)
    law = upper(cells, 0.8) - upper(cells + 1, 0.8)
    law[0], law[-1] = 1 - upper(-4, 0.8), upper(5, 0.8)
    counts = np.bincount(np.clip(drawn, -5, 5) + 5, minlength=11)
    assert chi2.sf(float(((counts - n * law) ** 2 / (n * law)).sum()), 10) > 1e-4
    large = [abs(unbounded_noise(2.0**54, HALVES, standard_laplace(), source)) for _ in range(2_000)]
    assert np.median(np.array(large, dtype=float)) == pytest.approx(2.0**55 * math.log(2.0), rel=0.1)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, None])
def test_bad_scales_and_changes_are_refused(value):
    with pytest.raises(InvalidParameter, match=r"threshold_scale=.*unit"):
        SparseVectorMechanism(threshold_scale=value, query_scale=1.0)
    with pytest.raises(InvalidParameter, match=r"query_scale=.*unit"):
        SparseVectorMechanism(threshold_scale=1.0, query_scale=value)
    with pytest.raises(InvalidParameter, match=r"largest=.*unit"):
        QueryChange(largest=value)


def test_other_bad_values_are_refused():
    with pytest.raises(InvalidParameter, match="answers=0"):
        SparseVectorMechanism(threshold_scale=1.0, query_scale=1.0, answers=0)
    with pytest.raises(InvalidParameter, match="monotone"):
        QueryChange(largest=1.0, monotone=1)
    for kind in ({"threshold_scale": 2.0**56, "query_scale": 1.0}, {"threshold_scale": 1.0, "query_scale": 2.0**56}):
        with pytest.raises(InvalidParameter, match="grid steps"):
            SparseVectorMechanism(**kind).start(HALVES, SeededRandom(1))
    mechanism = SparseVectorMechanism(threshold_scale=1.0, query_scale=1.0)
    with pytest.raises(InvalidParameter, match="columns"):
        mechanism.start(Grid(exponents=(0, 0)), SeededRandom(1))
    run = mechanism.start(HALVES, SeededRandom(1))
    for bad in (1.0, True, None, math.nan):
        with pytest.raises(InvalidParameter, match="query type"):
            run.above(bad, 0)
        with pytest.raises(InvalidParameter, match="threshold type"):
            run.above(0, bad)
    assert run.answers_left == 1
    assert isinstance(run.above(np.int64(3), np.int64(5)), bool)
