"""Randomised response: its law against mpmath, words at the boundary, values outside, bad input."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import RandomizedResponseEvent
from ledgerwood.errors import InvalidParameter, UnsupportedEvent
from ledgerwood.mechanisms import RandomizedResponseMechanism, SecureRandom, SeededRandom

R = Adjacency.REPLACE_ONE


def other_probability(epsilon, categories):
    """Of any category but the true one."""
    return (categories - 1) / (mpmath.exp(mpmath.mpf(epsilon)) + categories - 1)


@pytest.mark.parametrize(("epsilon", "categories"), [(0.5, 2), (1.3, 7), (1e-9, 3), (3.0, 40)])
def test_answers_have_their_law(epsilon, categories):
    n = 200_000
    mechanism = RandomizedResponseMechanism(epsilon=epsilon, categories=categories)
    for truth in (0, categories - 1):
        rows = np.full(n, truth, dtype=np.int64)
        counts = np.bincount(mechanism.randomise(rows, SeededRandom(truth + 5)), minlength=categories)
        moved = float(other_probability(epsilon, categories))
        law = np.full(categories, moved / (categories - 1))
        law[truth] = 1 - moved
        statistic = float(((counts - n * law) ** 2 / (n * law)).sum())
        assert chi2.sf(statistic, categories - 1) > 1e-4


def test_many_categories_are_chosen_evenly():
    k = 2**53
    answers = RandomizedResponseMechanism(epsilon=1.0, categories=k).randomise(
        np.zeros(40_000, dtype=np.int64), SeededRandom(3)
    )
    assert answers.min() > 0  # the truth has probability 3e-16
    counts = np.bincount((answers >> 49).astype(int), minlength=16)
    assert chi2.sf(float(((counts - 2500.0) ** 2 / 2500.0).sum()), 15) > 1e-4


@given(epsilon=st.floats(1e-12, 60.0), categories=st.integers(2, 10**6), bits=st.sampled_from([64, 128, 256]))
def test_bounds_enclose_the_probability(epsilon, categories, bits):
    mechanism = RandomizedResponseMechanism(epsilon=epsilon, categories=categories)
    with mpmath.workdps(120):
        exact = other_probability(epsilon, categories) * mpmath.mpf(2) ** bits
        low, high = mechanism._bounds(bits)
        assert low <= exact <= high
        assert high - low <= 3


@pytest.mark.parametrize(("epsilon", "categories"), [(0.7, 2), (2.5, 9), (50.0, 3)])
def test_a_word_at_the_boundary_is_decided_by_the_next_ones(monkeypatch, epsilon, categories):
    mechanism = RandomizedResponseMechanism(epsilon=epsilon, categories=categories)
    with mpmath.workdps(80):
        digits = int(mpmath.floor(other_probability(epsilon, categories) * mpmath.mpf(2) ** 128))
    head, tail = digits >> 64, digits & (2**64 - 1)

    def answer(*given_words):
        stream = iter((*given_words, 0, 0, 0))
        monkeypatch.setattr(
            SeededRandom, "_fill", lambda self, n: np.array([next(stream) for _ in range(n)], dtype=np.uint64)
        )
        return int(mechanism.randomise(np.zeros(1, dtype=np.int64), SeededRandom(0))[0])

    assert answer(head, tail - 3, 0) == 1
    assert answer(head, tail + 3) == 0
    assert answer(head - 1 if head else 0, 0, 0) == 1
    assert answer(head + 1) == 0


def test_extreme_epsilons_answer():
    rows = np.arange(1000, dtype=np.int64) % 4
    assert (RandomizedResponseMechanism(epsilon=1e100, categories=4).randomise(rows, SecureRandom()) == rows).all()
    answers = RandomizedResponseMechanism(epsilon=1e-100, categories=4).randomise(rows, SeededRandom(1))
    assert 200 < (answers == rows).sum() < 300


def test_a_value_outside_is_the_nearest_category():
    rows = np.array([[-5, 2**63 - 1], [-(2**63), 3]], dtype=np.int64)
    before = rows.copy()
    answers = RandomizedResponseMechanism(epsilon=500.0, categories=4).randomise(rows, SeededRandom(1))
    assert answers.tolist() == [[0, 3], [0, 3]]
    assert (rows == before).all()
    assert RandomizedResponseMechanism(epsilon=1.0, categories=2).randomise(rows[:0], SeededRandom(1)).shape == (0, 2)


def test_the_event_has_the_fields_that_the_sampler_reads():
    mechanism = RandomizedResponseMechanism(epsilon=1.5, categories=6)
    assert mechanism.event(R) == RandomizedResponseEvent(epsilon=1.5, categories=6, adjacency=R)
    with pytest.raises(UnsupportedEvent, match="randomised response"):
        mechanism.event(Adjacency.ADD_REMOVE)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, None, 1e101])
def test_bad_epsilons_are_refused(epsilon):
    with pytest.raises(InvalidParameter, match=r"epsilon=.*unit"):
        RandomizedResponseMechanism(epsilon=epsilon, categories=3)


@pytest.mark.parametrize("categories", [1, 0, -2, 2.5, True, 2**53 + 1])
def test_bad_numbers_of_categories_are_refused(categories):
    with pytest.raises(InvalidParameter, match=r"categories=.*unit"):
        RandomizedResponseMechanism(epsilon=1.0, categories=categories)


@pytest.mark.parametrize("rows", [np.zeros(3), np.zeros(3, dtype=np.int32), [0, 1]])
def test_other_arrays_are_refused(rows):
    with pytest.raises(InvalidParameter, match="categories type"):
        RandomizedResponseMechanism(epsilon=1.0, categories=3).randomise(rows, SeededRandom(1))
