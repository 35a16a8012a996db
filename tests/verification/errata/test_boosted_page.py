"""The figures in the text of docs/errata.md's sections on DPBoost and DP-XGBoost."""

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "errata.md").read_text(encoding="utf-8")


def numbers(pattern):
    """The figures that a sentence of the page shows; `#` stands for one."""
    found = re.search(re.escape(pattern).replace(r"\#", r"(\d*\.?\d+)").replace(r"\ ", r"\s+"), PAGE)
    assert found, pattern
    return [float(value) for value in found.groups()]


def lemma_1(lam):
    return (3 * lam + 2) / ((lam + 1) * (lam + 2))


def test_lemma_1():
    small, factor = numbers(r"At $\lambda = .1$ the lemma says $#$, $#$ times too little")
    assert (small, factor) == (round(lemma_1(0.1), 4), round(3 / lemma_1(0.1), 2))
    large, factor = numbers(r"at $\lambda = 10$ it says $#$, $#$ times too little")
    assert (large, factor) == (round(lemma_1(10), 4), round(3 / lemma_1(10), 1))


@pytest.mark.parametrize("lam", [Fraction(1, 10), Fraction(10)])
def test_the_identity_of_the_proof(lam):
    for n, r, g in ((0, 0, 1), (3, Fraction(1, 3), -1), (50, -1, Fraction(1, 2)), (1000, 1, -1)):
        m = n + lam
        s = r * n
        change = (s + g) ** 2 / (m + 1) - s**2 / m
        assert change == m / (m + 1) * (2 * g * s / m - s**2 / m**2) + Fraction(g) ** 2 / (m + 1)
        assert -3 < change <= Fraction(g) ** 2


@pytest.mark.parametrize("weight", [Fraction(1, 2), Fraction(3)])
def test_weights_scale_the_changes_of_the_gain(weight):
    # (S + w g)^2 / (m + w) - S^2 / m over S / m and g in [-1, 1].
    grid = [Fraction(k, 4) for k in range(-4, 5)]
    changes = [
        (r * m + weight * g) ** 2 / (m + weight) - r**2 * m
        for m in (Fraction(1, 10), Fraction(1), Fraction(10_000))
        for r in grid
        for g in grid
    ]
    assert -3 * weight < min(changes) < Fraction(-299, 100) * weight
    assert max(changes) <= weight


def test_the_misprinted_shares():
    first, second = numbers(r"with a small $t_e$, at $\eta = .1$, the first two trees take $#$ and $#$ of the rows")
    assert [round(0.1 * 0.9**t / (1 - 0.9**t), 3) for t in (1, 2)] == [first, second]
    assert first + second > 1
    meant = [0.1 * 0.9**t / (1 - 0.9**50) for t in range(50)]
    assert math.fsum(meant) == pytest.approx(1.0)
    # As printed t mod T_e is 0 for the last tree of an ensemble, which then has the largest share.
    printed = [0.1 * 0.9 ** (t % 50) / (1 - 0.9**50) for t in range(1, 51)]
    assert max(printed) == printed[-1]


def test_theorem_6_holds_for_ten_trees():
    # One row alone in its leaf, squared loss, label -1, as in the proof: V_t = -(score + 1) / (1 + lambda).
    score, exceeded = 0.0, []
    for tree in range(1, 30):
        value = -(score + 1) / 1.1
        if abs(value) > 0.9 ** (tree - 1):
            exceeded.append(tree)
        score += 0.1 * value
    (shown,) = numbers("the bound is exceeded from tree # on")
    assert exceeded == list(range(int(shown), 30))


@pytest.mark.parametrize("t", [1e-2, 1e-4])
def test_the_newton_gain_moves_by_4_over_t(t):
    # n rows of gradient 1 - t and hessian t (1 - t), n large against 1 / t, and one of -(1 - t): (n - 1)^2 for n^2.
    n, g, h = 1e4 / t, 1 - t, t * (1 - t)
    less = (n * g) ** 2 / (n * h) - ((n - 1) * g) ** 2 / ((n + 1) * h)
    more = ((n + 1) * g) ** 2 / ((n + 1) * h) - (n * g) ** 2 / (n * h)
    assert more + less == pytest.approx(4 / t, rel=0.05)


def test_equation_7_needs_the_rows_before_the_new_one():
    def change(n, lam):
        return (2 * n + lam) / ((n + lam) * (n + 1 + lam))

    assert all(change(n, 0.1) <= 2 / 51.1 for n in range(50, 500))
    assert change(49, 0.1) > 2 / 51.1
