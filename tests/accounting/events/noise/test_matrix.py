import itertools
import math

import numpy as np
import pytest

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import matrix_gaussian, tree_gaussian
from ledgerwood.errors import InvalidParameter

A, R = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE


def patterns(steps: int, most: int, separation: int) -> list[tuple[int, ...]]:
    found = [p for k in range(1, most + 1) for p in itertools.combinations(range(steps), k)]
    return [p for p in found if all(b - a >= separation for a, b in itertools.pairwise(p))]


def squared_sensitivity(strategy: np.ndarray, most: int = 1, separation: int = 1) -> float:
    event = matrix_gaussian(strategy, noise_multiplier=1.0, participations=most, separation=separation, adjacency=A)
    return 1.0 / event.noise_multiplier**2


@pytest.mark.parametrize(
    ("steps", "most", "separation"), [(6, 2, 1), (7, 3, 2), (8, 3, 3), (6, 6, 1), (9, 99, 4), (5, 2, 9)]
)
@pytest.mark.parametrize("signed", [False, True])
def test_participations_by_enumeration(steps: int, most: int, separation: int, signed: bool) -> None:
    """Never below the largest norm of C D, over all patterns and unit contributions; and not far above."""
    rng = np.random.default_rng(steps)
    for _ in range(4):
        strategy = np.tril(rng.normal(size=(steps, steps)) if signed else rng.random((steps, steps)))
        found = squared_sensitivity(strategy, most, separation)
        gram = strategy.T @ strategy
        allowed = patterns(steps, most, separation)
        by_values = max(np.abs(gram)[np.ix_(p, p)].sum() for p in allowed)
        assert found >= by_values * (1.0 - 1e-12)
        assert found <= 1.3 * by_values
        for p in allowed:
            signs = rng.choice([-1.0, 1.0], size=len(p)) if signed else np.ones(len(p))
            assert np.sum((strategy[:, list(p)] @ signs) ** 2) <= found * (1.0 + 1e-12)


def test_negative_products_count_by_their_size() -> None:
    """Two steps whose columns cancel: contributions of opposite sign add up."""
    assert squared_sensitivity(np.array([[1.0, -1.0]]), 2) == pytest.approx(4.0, rel=1e-12)
    assert squared_sensitivity(np.array([[1.0, -1.0]])) == pytest.approx(1.0, rel=1e-15)


def test_one_participation_is_the_largest_column_exactly() -> None:
    strategy = np.array([[3, 0, 1], [4, 2, 1], [0, 2, 1]])
    event = matrix_gaussian(strategy, noise_multiplier=10.0, adjacency=R)
    assert event.noise_multiplier == 2.0
    assert event.adjacency is R
    prefix = matrix_gaussian(np.tril(np.ones((49, 49))), noise_multiplier=7.0, adjacency=A)
    assert prefix.noise_multiplier == 1.0
    assert matrix_gaussian(np.ones((2, 3)), noise_multiplier=1.0, adjacency=A).noise_multiplier <= math.sqrt(0.5)


def test_a_banded_strategy_adds_up_its_columns() -> None:
    """Steps at least a band apart have orthogonal columns."""
    strategy = np.eye(12) + 0.5 * np.eye(12, k=-1)
    assert squared_sensitivity(strategy, 3, 2) == pytest.approx(3 * 1.25, rel=1e-12)
    assert squared_sensitivity(strategy, 3, 1) > 3 * 1.25 + 1.0


def tree(leaves: int) -> np.ndarray:
    """All full dyadic blocks of the leaves, one row each."""
    rows = []
    size = 1
    while size <= leaves:
        rows += [
            [start <= leaf < start + size for leaf in range(leaves)] for start in range(0, leaves - size + 1, size)
        ]
        size *= 2
    return np.array(rows, dtype=np.float64)


@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33])
def test_a_tree_is_its_matrix(leaves: int) -> None:
    by_tree = tree_gaussian(leaves=leaves, noise_multiplier=3.0, adjacency=A)
    assert by_tree == matrix_gaussian(tree(leaves), noise_multiplier=3.0, adjacency=A)
    levels = math.ceil(math.log2(leaves + 1))
    assert by_tree.renyi([2.0])[0] == pytest.approx(levels / 9.0, rel=1e-14)
    assert by_tree.renyi([2.0])[0] >= levels / 9.0


def test_bad_strategies_are_refused() -> None:
    for strategy in (
        np.zeros((2, 2)),
        np.ones(3),
        np.ones((0, 2)),
        np.array([[np.inf]]),
        np.array([["a"]]),
        np.ones((1, 4097)),
    ):
        with pytest.raises(InvalidParameter, match="strategy"):
            matrix_gaussian(strategy, noise_multiplier=1.0, adjacency=A)
    for wrong in ({"participations": 0}, {"separation": 0}, {"participations": 1.5}, {"noise_multiplier": 0.0}):
        with pytest.raises(InvalidParameter):
            matrix_gaussian(np.ones((1, 1)), **({"noise_multiplier": 1.0, "adjacency": A} | wrong))
    with pytest.raises(InvalidParameter, match="leaves"):
        tree_gaussian(leaves=0, noise_multiplier=1.0, adjacency=A)
