"""Order statistics within limits: by Steck's determinant in fractions, by known cases, by simulation."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing import berk_jones_limits, distribution_band, within_probability
from ledgerwood.verification.auditing.crossing import limited_ranks


def determinant(runs, ranks, lower, upper):
    """Steck 1971: n! times a determinant of powers of (upper_i - lower_j)+, exactly."""
    low, high, at = [], [], dict(zip(ranks, range(len(ranks)), strict=True))
    for rank in range(1, runs + 1):  # a rank without limits has those of its neighbours
        low.append(max([Fraction(0)] + [Fraction(lower[at[r]]) for r in ranks if r <= rank]))
        high.append(min([Fraction(1)] + [Fraction(upper[at[r]]) for r in ranks if r >= rank]))
    rows = [
        [
            Fraction(0) if j < i - 1 else max(high[i] - low[j], Fraction(0)) ** (j - i + 1) / math.factorial(j - i + 1)
            for j in range(runs)
        ]
        for i in range(runs)
    ]
    value = Fraction(math.factorial(runs))
    for k in range(runs):
        pivot = next((r for r in range(k, runs) if rows[r][k]), None)
        if pivot is None:
            return 0.0
        if pivot != k:
            rows[k], rows[pivot], value = rows[pivot], rows[k], -value
        value *= rows[k][k]
        for r in range(k + 1, runs):
            factor = rows[r][k] / rows[k][k]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[k], strict=True)]
    return float(value)


def test_it_is_stecks_determinant():
    rng = np.random.default_rng(20_261_130)
    for runs in (1, 2, 3, 5, 8, 12):
        for _ in range(6):
            kept = np.sort(rng.choice(runs, rng.integers(1, runs + 1), replace=False)) + 1
            middle = kept / (runs + 1.0)
            lower = np.maximum(np.sort(middle - rng.uniform(0.0, 0.5, kept.size)), 0.0)
            upper = np.minimum(np.sort(middle + rng.uniform(0.0, 0.5, kept.size)), 1.0)
            found = within_probability(runs, kept, lower, upper)
            assert found == pytest.approx(determinant(runs, kept.tolist(), lower.tolist(), upper.tolist()), abs=1e-13)


@pytest.mark.parametrize(("runs", "alpha"), [(1, 0.05), (2, 0.3), (7, 0.05), (14, 1e-3)])
def test_the_level_is_exact_and_nearly_used_up(runs, alpha):
    found = berk_jones_limits(runs, alpha)
    arguments = runs, found.ranks.tolist(), found.lower.tolist(), found.upper.tolist()
    outside = 1.0 - determinant(*arguments)
    assert 0.996 * alpha <= outside <= alpha * (1.0 + 1e-12)
    # Each limit has the same tail, of whatever rank.
    tails = stats.beta.cdf(found.lower, found.ranks, runs - found.ranks + 1)
    assert tails == pytest.approx(np.full(runs, found.local), rel=1e-4)
    assert found.upper == pytest.approx(1.0 - found.lower[::-1], abs=1e-6)


def test_one_sided_limits_are_daniels_line():
    """Daniels 1945: P(U_(r) >= c r / n for all r) = 1 - c, for any n."""
    for runs in (4, 300, 6_000):
        ranks = np.arange(1, runs + 1)
        found = within_probability(runs, ranks, 0.3 * ranks / runs, np.ones(runs))
        assert found == pytest.approx(0.7, abs=1e-11)


@pytest.mark.slow  # a hundred thousand scores: where steps are Fourier transforms
def test_rounding_is_far_below_what_is_allowed_for_it():
    """Limits that are broken with probability below 1e-25: what is missing from 1 is rounding."""
    runs = 100_000
    ranks = limited_ranks(runs)
    lower, upper = stats.beta.ppf(1e-30, ranks, runs - ranks + 1), stats.beta.isf(1e-30, ranks, runs - ranks + 1)
    assert abs(1.0 - within_probability(runs, ranks, lower, upper)) < 1e-10


def test_tiny_levels_have_a_union_bound_and_more_scores_narrower_limits():
    tiny = berk_jones_limits(50, 1e-9)
    assert tiny.local == pytest.approx(1e-9 / 100)
    assert tiny.outside == 1e-9
    first, second = berk_jones_limits(5_000, 0.05), berk_jones_limits(20_000, 0.05)
    assert first.ranks.size == 5_000 > second.ranks.size
    at = np.searchsorted(second.ranks, 10_000)
    assert second.upper[at] - second.lower[at] < first.upper[2_499] - first.lower[2_499]


def test_a_distribution_function_is_covered_with_its_exact_probability():
    """20,000 samples of 40 uniform numbers by one band, seed fixed beforehand: within four standard errors (.0085)."""
    rng, runs, alpha = np.random.default_rng(20_261_131), 40, 0.1
    limits = berk_jones_limits(runs, alpha)
    ordered = np.sort(rng.random((20_000, runs)), axis=1)
    outside = ((ordered < limits.lower) | (ordered > limits.upper)).any(axis=1).mean()
    assert abs(outside - limits.outside) <= 4.0 * math.sqrt(alpha * (1.0 - alpha) / 20_000)
    for values in ordered[:50]:
        band = distribution_band(values, alpha=alpha)
        # Between two points the function is the identity, so that the band holds if it does at both ends.
        ends = np.append(band.points[1:], 1.0)
        inside = (band.lower <= band.points).all() and (ends <= band.upper).all() and band.points[0] <= band.below
        assert inside == (not ((values < limits.lower) | (values > limits.upper)).any())


def test_values_that_recur_have_one_point():
    band = distribution_band(np.array([2.0, 1.0, 1.0, 2.0, 2.0]), alpha=0.05)
    assert band.points.tolist() == [1.0, 2.0]
    assert band.share.tolist() == [0.4, 1.0]
    assert 0.0 < band.lower[0] < 0.4 < band.upper[0] < band.upper[1] == 1.0
    assert 0.0 < band.below < 1.0


@pytest.mark.parametrize(
    ("ranks", "lower", "upper", "words"),
    [
        ([2, 1], [0.1, 0.2], [0.5, 0.6], "ranks"), ([1, 4], [0.1, 0.2], [0.5, 0.6], "ranks"),
        ([1, 2], [0.2, 0.1], [0.5, 0.6], "lower"), ([1, 2], [0.1, 0.2], [0.5, 1.6], "upper"),
        ([1, 2], [0.1], [0.5, 0.6], "lower"), ([], [], [], "ranks"),
    ],
)  # fmt: skip
def test_limits_out_of_order_are_refused(ranks, lower, upper, words):
    with pytest.raises(InvalidParameter, match=words):
        within_probability(3, ranks, lower, upper)
