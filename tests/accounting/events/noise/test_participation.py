"""Sensitivities over participation patterns, against all patterns one by one."""

import itertools
import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting import matrix_sensitivity, tree_sensitivity
from ledgerwood.accounting.events.noise import correlated
from ledgerwood.errors import InvalidParameter

A = lw.Adjacency.ADD_REMOVE


def separated(steps, most, apart):
    found = (p for k in range(1, most + 1) for p in itertools.combinations(range(steps), k))
    return [p for p in found if all(b - a >= apart for a, b in itertools.pairwise(p))]


def cyclic(steps, most, apart):
    return [tuple(range(first, min(steps, first + (most - 1) * apart + 1), apart)) for first in range(steps)]


ALL = {"separated": separated, "cyclic": cyclic}


def matrices(rng):
    """Banded, Toeplitz and full matrices of up to ten steps, with entries >= 0; and a number of steps for each."""
    for kind in range(60):
        n = int(rng.integers(2, 11))
        lag = np.subtract.outer(np.arange(n), np.arange(n))
        if kind % 3 == 0:
            yield np.tril(rng.random((n, n))) * (lag < rng.integers(1, 6))
        elif kind % 3 == 1:
            yield np.where(lag >= 0, np.sort(rng.random(n))[::-1][np.maximum(lag, 0)], 0.0)
        else:
            yield rng.random((n, n))


@pytest.mark.parametrize("pattern", sorted(ALL))
def test_matrices_by_all_patterns(pattern):
    rng = np.random.default_rng(3)
    for matrix in matrices(rng):
        most, apart = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        truth = max(np.linalg.norm(matrix[:, list(p)].sum(axis=1)) for p in ALL[pattern](len(matrix), most, apart))
        found = matrix_sensitivity(matrix, participations=most, separation=apart, pattern=pattern)
        assert found.exact
        assert found.lower * (1.0 - 1e-13) <= truth <= found.upper * (1.0 + 1e-15)


def test_where_the_program_gives_up_both_ends_still_hold(monkeypatch):
    monkeypatch.setattr(correlated, "_MOST_STATES", 3)
    rng = np.random.default_rng(5)
    gaps = 0
    for matrix in matrices(rng):
        n = len(matrix)
        truth = max(np.linalg.norm(matrix[:, list(p)].sum(axis=1)) for p in separated(n, 3, 2))
        found = matrix_sensitivity(matrix, participations=3, separation=2)
        assert found.lower * (1.0 - 1e-13) <= truth <= found.upper * (1.0 + 1e-15)
        gaps += not found.exact
        for restart in (1, 3, n):
            tree = tree_sensitivity(leaves=n, participations=3, separation=2, restart=restart)
            truth = max(np.linalg.norm(blocks(n, restart)[:, list(p)].sum(axis=1)) for p in separated(n, 3, 2))
            assert tree.lower * (1.0 - 1e-13) <= truth <= tree.upper * (1.0 + 1e-15)
    assert gaps > 5


def blocks(leaves, restart):
    """The matrix of all full dyadic blocks of each tree."""
    rows = []
    for first in range(0, leaves, restart):
        size = min(restart, leaves - first)
        for level in range(size.bit_length()):
            for place in range(size >> level):
                rows.append(np.zeros(leaves))
                rows[-1][first + (place << level) : first + ((place + 1) << level)] = 1.0
    return np.array(rows)


@pytest.mark.parametrize("pattern", sorted(ALL))
def test_trees_by_all_patterns(pattern):
    rng = np.random.default_rng(4)
    for _ in range(60):
        leaves, most, apart = int(rng.integers(1, 14)), int(rng.integers(1, 5)), int(rng.integers(1, 6))
        restart = int(rng.integers(1, leaves + 1))
        matrix = blocks(leaves, restart)
        truth = max(np.sum(matrix[:, list(p)].sum(axis=1) ** 2) for p in ALL[pattern](leaves, most, apart))
        found = tree_sensitivity(leaves=leaves, participations=most, separation=apart, pattern=pattern, restart=restart)
        assert found.exact
        assert found.upper**2 == pytest.approx(truth, rel=1e-12)


def test_signs_of_products_leave_a_gap_that_is_named():
    found = matrix_sensitivity(np.array([[1.0, -1.0], [0.0, 1.0], [1.0, 0.0]]), participations=2)
    assert found.upper == pytest.approx(math.sqrt(6.0), rel=1e-12)  # contributions of opposite sign
    assert found.lower == pytest.approx(2.0, rel=1e-12)
    assert not found.exact
    apart = matrix_sensitivity(np.diag([1.0, -2.0, 3.0]), participations=3)  # orthogonal steps: signs do not matter
    assert apart.exact
    assert apart.upper == pytest.approx(math.sqrt(14.0), rel=1e-12)


def test_events_have_the_upper_end():
    weights = np.tril(np.ones((8, 8)))
    found = matrix_sensitivity(weights, participations=2, separation=4, pattern="cyclic")
    event = lw.matrix_gaussian(
        weights, noise_multiplier=6.0, participations=2, separation=4, pattern="cyclic", adjacency=A
    )
    assert event.noise_multiplier == pytest.approx(6.0 / found.upper, rel=1e-15)
    assert event.noise_multiplier * found.upper <= 6.0 * (1.0 + 1e-15)
    tree = lw.tree_gaussian(leaves=100, noise_multiplier=3.0, participations=4, separation=25, restart=50, adjacency=A)
    upper = tree_sensitivity(leaves=100, participations=4, separation=25, restart=50).upper
    assert tree.noise_multiplier == pytest.approx(3.0 / upper, rel=1e-15)
    assert lw.tree_gaussian(leaves=100, noise_multiplier=3.0, adjacency=A).mu() < tree.mu()


@pytest.mark.parametrize(
    "wrong", [{"pattern": "random"}, {"participations": 0}, {"separation": 0}, {"participations": 2.5}]
)
def test_refusals(wrong):
    with pytest.raises(InvalidParameter):
        matrix_sensitivity(np.eye(3), **wrong)
    with pytest.raises(InvalidParameter):
        tree_sensitivity(leaves=3, **wrong)


def test_a_tree_too_large_for_several_participations_is_refused():
    with pytest.raises(InvalidParameter, match="at most 65536 for several participations"):
        tree_sensitivity(leaves=70_000, participations=2)
    assert tree_sensitivity(leaves=70_000).exact
