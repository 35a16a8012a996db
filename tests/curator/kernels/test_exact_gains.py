"""Gains in integers of 128 bits, against Python's own integers and fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ledgerwood.curator.kernels.sorted_gains as exact_gains_module
from ledgerwood.curator.kernels.sorted_gains import _product, _quotient, exact_gains, share
from ledgerwood.curator.queries.splits.gains import SplitGains
from ledgerwood.ensemble import Ensemble, FeatureCells, SplitTests, TreeStructure

ONE_TEST = SplitTests.every([FeatureCells(ordered=2, equality=())])
MOST_ROWS = 2**35 - 1


def query(clip, damping):
    return SplitGains(
        structure=TreeStructure.root(), tests=ONE_TEST, ensemble=Ensemble(initial_score=0.0), loss="squared", clip=clip,
        damping=damping,
    )  # fmt: skip


def gain(asked, left, right, *, weighted=False):
    """Of sides (rows, or steps of weight; sum in steps), by the code."""
    cells = asked.cells
    sums = np.array([[left, right]], dtype=np.int64)
    found = exact_gains(
        sums,
        cells.start,
        cells.stop,
        cells.besides,
        int(cells.offsets[1]),
        asked.damping_steps,
        asked.grid.exponents[0],
        weighted=weighted,
    )
    return int(found[0, 0])


def side(asked, rows, total):
    """By the definition, in whole steps of the grid."""
    if rows == 0:
        return 0
    value = Fraction(total, 2**20) ** 2 / (rows + Fraction(asked.damping_steps, 2**20))
    return math.floor(value / Fraction(2) ** asked.grid.exponents[0])


@st.composite
def sides(draw, asked, most=MOST_ROWS):
    rows = draw(st.integers(0, most) | st.integers(0, min(most, 3)))
    bound = rows * asked.clip_steps
    return rows, draw(st.sampled_from([bound, -bound, 0]) | st.integers(-bound, bound))


CLIPS = st.sampled_from([2.0**-20, 3 * 2.0**-20, 0.1, 0.5, 1.0, 1.7, 2.0**8]) | st.floats(2.0**-20, 2.0**8)
DAMPINGS = st.sampled_from([0.0, 0.1, 1.0, 2.0**40]) | st.floats(0.0, 2.0**40)


@pytest.mark.slow  # each gain again in exact integers
@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.data(), CLIPS, DAMPINGS)
def test_gains_are_their_definition(data, clip, damping):
    asked = query(clip, damping)
    left, right = data.draw(sides(asked)), data.draw(sides(asked))
    right = (min(right[0], MOST_ROWS - left[0]), right[1])
    right = (right[0], max(-right[0] * asked.clip_steps, min(right[1], right[0] * asked.clip_steps)))
    expected = side(asked, *left) + side(asked, *right)
    assert expected < 2**63
    assert gain(asked, left, right) == expected


@pytest.mark.parametrize("clip", [2.0**-20, 0.7, 1.0, 2.0**8])
@pytest.mark.parametrize("damping", [0.0, 2.0**40])
def test_the_most_rows_of_the_largest_gradients_do_not_overflow(clip, damping):
    asked = query(clip, damping)
    full = (MOST_ROWS, MOST_ROWS * asked.clip_steps)
    for left, right in ((full, (0, 0)), ((0, 0), full)):
        assert gain(asked, left, right) == side(asked, *full) < 2**63


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.data(), CLIPS, DAMPINGS)
def test_weighted_gains_are_their_definition(data, clip, damping):
    """Weights in steps, up to those of the most rows; sums within the clip times the weight."""
    asked, most = query(clip, damping), MOST_ROWS * 2**20
    weights = [data.draw(st.integers(0, most // 2) | st.integers(0, 5) | st.just(most // 2)) for _ in range(2)]
    both = []
    for weight in weights:
        bound = weight * asked.clip_steps // 2**20
        both.append((weight, data.draw(st.sampled_from([bound, -bound, 0]) | st.integers(-bound, bound))))
    expected = sum(side(asked, Fraction(weight, 2**20), total) for weight, total in both)
    assert expected < 2**63
    assert gain(asked, *both, weighted=True) == expected
    # Rows of the whole weight are rows.
    whole = [(3 * 2**20, 2 * asked.clip_steps), (2**20, -asked.clip_steps)]
    assert gain(asked, *whole, weighted=True) == gain(asked, *((weight >> 20, total) for weight, total in whole))


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.data(), CLIPS, DAMPINGS, st.sampled_from([-1, 1]))
def test_a_weighted_row_moves_a_gain_by_at_most_the_ends_of_its_range(data, clip, damping, sign):
    asked = query(clip, damping)
    mass = data.draw(st.integers(0, 3 * 2**20) | st.integers(0, 3) | st.just((MOST_ROWS - 1) * 2**20))
    bound = mass * asked.clip_steps // 2**20
    total = data.draw(st.sampled_from([bound, -bound]) | st.integers(-bound, bound))
    weight = data.draw(st.integers(0, 2**20) | st.sampled_from([1, 2**20]))
    own = sign * (weight * asked.clip_steps // 2**20)
    row = Fraction(asked.clip_steps, 2**20) ** 2 / Fraction(2) ** asked.grid.exponents[0]
    after = gain(asked, (mass + weight, total + own), (0, 0), weighted=True)
    change = after - gain(asked, (mass, total), (0, 0), weighted=True)
    assert -math.ceil(3 * row) <= change <= math.ceil(row)


def test_the_grid_of_a_row_is_not_compiled_in(monkeypatch):
    """On a grid of 2**-10, 5 rows with a sum of 3 are worth 9 / (5 + 1/4)."""
    monkeypatch.setattr(exact_gains_module, "GRID_EXPONENT", -10)
    sums = np.array([[(5, 3 * 2**10), (0, 0)]], dtype=np.int64)
    start, stop, besides = np.array([0]), np.array([1]), np.array([-1])
    assert exact_gains(sums, start, stop, besides, 2, 2**8, -28)[0, 0] == math.floor(Fraction(9 * 4, 21) * 2**28)


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.data(), CLIPS, DAMPINGS, st.sampled_from([-1, 1]))
def test_a_row_moves_a_gain_by_at_most_the_ends_of_its_range(data, clip, damping, sign):
    asked = query(clip, damping)
    rows, total = data.draw(sides(asked, MOST_ROWS - 1))
    gradient = data.draw(st.just(sign * asked.clip_steps) | st.integers(-asked.clip_steps, asked.clip_steps))
    row = Fraction(asked.clip_steps, 2**20) ** 2 / Fraction(2) ** asked.grid.exponents[0]
    assert 2**27 < row <= 2**28
    change = gain(asked, (rows + 1, total + gradient), (0, 0)) - gain(asked, (rows, total), (0, 0))
    assert -math.ceil(3 * row) <= change <= math.ceil(row)


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=500, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**43) | st.integers(2**20, 2**43),
    st.sampled_from([1, 2**20, 2**40, 2**48, 2**49 - 2**10, 2**49, 2**50]) | st.integers(1, 2**51),
    st.integers(-2, 2),
    st.integers(-2, 2),
    st.sampled_from([0, 8, 48]),
)
@example(4776311961794, 539110171911894, 0, 0, 8)  # whose float is too small
def test_quotients_next_to_whole_numbers(total, quotient, by, beside, up):
    """Where a float of the quotient may be off by one, below and above the size up to which one is tried."""
    rows = 2**23
    total = min(total, rows << 24 - up // 2)  # the clip, at this grid
    number = total**2 << up
    divisor = number // max(quotient + by, 1) + beside
    damping = min(max(divisor - rows * 2**20, 0), 2**60)
    exact = number // (rows * 2**20 + damping)
    if exact < 2**63:
        assert share(rows, total, np.uint64(2**20), np.uint64(damping), up, 0) == exact


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_a_product_has_two_words(a, b):
    high, low = _product(np.uint64(a), np.uint64(b))
    assert (int(high) << 64) + int(low) == a * b


HALVES = st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]) | st.integers(0, 2**32 - 1)
WORDS = st.builds(lambda high, low: (high << 32) + low, HALVES, HALVES)


@pytest.mark.slow  # many tables and their neighbours in exact integers
@settings(max_examples=600, deadline=None, derandomize=True)
@given(WORDS, WORDS, WORDS)
def test_a_quotient_of_two_words_by_one(high, low, divisor):
    divisor = max(divisor, 1)
    high %= divisor
    found = _quotient(np.uint64(high), np.uint64(low), np.uint64(divisor))
    assert int(found) == ((high << 64) + low) // divisor
