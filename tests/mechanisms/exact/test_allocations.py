"""Random allocation of rows: exactly k of t steps, each choice as likely as any other, a function of the position."""

import copy
import itertools
import math
import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ledgerwood.errors import InvalidParameter, PrivacyError
from ledgerwood.mechanisms import SeededRandom
from ledgerwood.mechanisms.exact.allocations import RowAllocation, step_words, takes_part
from ledgerwood.mechanisms.exact.coins import KEY_WORDS, RowCoins

COINS = RowCoins(bytes(range(32)))
SIZES = st.integers(1, 12).flatmap(lambda steps: st.tuples(st.integers(1, steps), st.just(steps)))


def choices(selected, steps, n_rows, *, start=0, coins=COINS):
    """Who takes part in which step; bool (steps, n_rows)."""
    allocation = RowAllocation(coins, selected=selected, steps=steps, start=start, n_rows=n_rows)
    return np.array([allocation.members(step) for step in range(steps)])


@given(SIZES, st.integers(0, 2**34), st.integers(0, 80))
def test_each_row_is_in_exactly_as_many_steps_as_it_is_allocated_to(size, start, n_rows):
    selected, steps = size
    assert choices(selected, steps, n_rows, start=start).sum(axis=0).tolist() == [selected] * n_rows


@given(SIZES, st.lists(st.integers(0, 60), max_size=3))
def test_any_parts_of_the_rows_have_the_choices_of_the_whole(size, cuts):
    edges = [0, *sorted(cuts), 60]
    parts = [choices(*size, b - a, start=a) for a, b in itertools.pairwise(edges)]
    assert np.array_equal(np.concatenate(parts, axis=1), choices(*size, 60))


def test_long_stretches_are_cut_and_not_changed():
    n = (1 << 16) + 3
    whole, tail = choices(1, 3, n), choices(1, 3, 4, start=n - 4)
    assert np.array_equal(whole[:, -4:], tail)


def exact_chances(selected, steps):
    """The probability of each choice, by the chances of each step as whole numbers of words."""
    found = Counter()
    for pattern in itertools.product((0, 1), repeat=steps):
        left, chance = selected, Fraction(1)
        for step, taken in enumerate(pattern):
            remaining = steps - step
            # Every word below the largest multiple of `remaining` counts, and `left` of each `remaining` take part.
            inside = np.arange(remaining, dtype=np.uint64)
            part = takes_part(
                np.full(remaining, left, np.uint8), remaining, lambda attempt, start, n, own=inside: own, 0
            )
            share = Fraction(int(part.sum()), remaining)
            chance *= share if taken else 1 - share
            left -= taken
            if not chance:
                break
        found[pattern] += chance
    return found


@pytest.mark.parametrize(("selected", "steps"), [(1, 5), (2, 5), (3, 6), (4, 4), (5, 6)])
def test_each_choice_has_the_same_probability_exactly(selected, steps):
    for pattern, chance in exact_chances(selected, steps).items():
        assert chance == (Fraction(1, math.comb(steps, selected)) if sum(pattern) == selected else 0)


@pytest.mark.parametrize("remaining", [3, 7, 10, 1000, 2**30 - 1])
def test_words_that_would_bias_the_remainder_are_drawn_again(remaining):
    last = 2**64 - 2**64 % remaining - 1
    answers = {0: [last + 1, last, 2**64 - 1, 0], 1: [2**64 - 1, 9, 5, 9], 2: [4, 9, 9, 9]}
    asked = []

    def words(attempt, start, n):
        asked.append((attempt, start, n))
        return np.array(answers[attempt][start - 40 : start - 40 + n], dtype=np.uint64)

    left = np.full(4, min(remaining // 2, 60_000), dtype=np.uint16)
    found = takes_part(left, remaining, words, 40)
    used = [4, last, 5, 0]
    assert found.tolist() == [word % remaining < left[0] for word in used]
    assert asked == [(0, 40, 4), (1, 40, 1), (1, 42, 1), (2, 40, 1)]


def test_a_power_of_two_rejects_no_word():
    ends = np.array([0, 2**64 - 1], dtype=np.uint64)
    assert takes_part(np.ones(2, np.uint8), 8, lambda attempt, start, n: ends[start : start + n], 0).tolist() == [1, 0]


def test_all_choices_come_as_often_as_each_other():
    """A chi-squared test at level 1e-6 of 20 choices of 3 of 6 steps; it also sees coins that steps share."""
    found = choices(3, 6, 60_000, coins=RowCoins.drawn(SeededRandom(5)))
    counts = Counter(map(tuple, found.T.tolist()))
    assert len(counts) == math.comb(6, 3)
    assert stats.chisquare(list(counts.values())).pvalue > 1e-6


def test_each_step_and_attempt_has_a_separate_key():
    steps = 9
    firsts = {step_words(COINS, step, steps)(attempt, 0, 1)[0] for step in range(steps) for attempt in range(3)} | set(
        COINS.words(0, KEY_WORDS * steps * 3).tolist()
    )
    assert len(firsts) == steps * 3 + KEY_WORDS * steps * 3


def test_a_step_asked_for_again_has_the_same_rows():
    allocation = RowAllocation(COINS, selected=2, steps=7, start=3, n_rows=50)
    expected = choices(2, 7, 50, start=3)
    for step in (4, 6, 0, 4, 4, 5):
        assert np.array_equal(allocation.members(step), expected[step])


def test_another_key_is_another_allocation():
    assert not np.array_equal(choices(1, 4, 200), choices(1, 4, 200, coins=RowCoins(bytes(32))))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"selected": 0}, "selected=0"),
        ({"selected": 5}, "at most steps=4"),
        ({"steps": 0}, "steps=0"),
        ({"n_rows": -1}, "n_rows=-1"),
    ],
)
def test_counts_that_are_none_are_refused(options, words):
    with pytest.raises(InvalidParameter, match=words):
        RowAllocation(COINS, **{"selected": 1, "steps": 4, "start": 0, "n_rows": 3, **options})


def test_a_step_that_is_not_there_is_refused():
    allocation = RowAllocation(COINS, selected=1, steps=4, start=0, n_rows=3)
    for step in (4, -1):
        with pytest.raises(InvalidParameter, match=f"step={step}"):
            allocation.members(step)


def test_an_allocation_is_neither_copied_nor_pickled_nor_shown():
    allocation = RowAllocation(COINS, selected=1, steps=4, start=0, n_rows=3)
    for taken in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(PrivacyError, match="each row's steps"):
            taken(allocation)
    assert repr(allocation) == "RowAllocation(<secret>)"
