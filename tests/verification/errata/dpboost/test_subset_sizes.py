import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.dpboost.subset_sizes import SubsetSizes

LAPLACE = lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE)


@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 1.5, 1.9])
def test_the_loss_is_that_of_both_leaves(at):
    price = lw.price(lw.Composed((LAPLACE, LAPLACE)))
    assert SubsetSizes().delta(at) == pytest.approx(price.delta(at), rel=1e-3)
    assert SubsetSizes().delta(at) <= price.delta(at) * (1 + 1e-12)


def test_one_row_more_fills_every_subset():
    # Shares of 50 trees, in whole rows: of 49 rows none has one, of 50 all have.
    assert [[rows // 50 for _ in range(50)] for rows in (49, 50)] == [[0] * 50, [1] * 50]
    specimen = SubsetSizes()
    means = [specimen.sampler(rows, 40_000, np.random.default_rng(5)).mean(axis=0) for rows in specimen.pair]
    assert means[0] == pytest.approx([1 / 1.1] * 2, abs=0.03)
    assert means[1] == pytest.approx([0.0] * 2, abs=0.03)


def test_the_librarys_assignment_row_by_row_costs_one_tree():
    # Each row goes to tree 1 or 2 by a coin of its own: on the same pair, the law with the row is a mean over coins.
    groups = lw.Parallel((LAPLACE, LAPLACE), probabilities=(0.5, 0.5))
    price = lw.price(groups)
    assert price.epsilon(0.0) <= 1.0
    grid = np.linspace(-14, 15, 1161)
    near, cell = np.exp(-1.1 * np.abs(grid)) * 0.55, (grid[1] - grid[0]) ** 2
    far, both = (np.exp(-1.1 * np.abs(grid - rows / (rows + 0.1))) * 0.55 for rows in (1.0, 2.0))
    # With one row: it is in tree 1 or 2. With two: both in one tree, or one in each.
    one = 0.5 * (np.outer(far, near) + np.outer(near, far))
    two = 0.25 * (np.outer(both, near) + np.outer(near, both)) + 0.5 * np.outer(far, far)
    for at in (0.0, 0.2, 0.5, 0.8):
        for p, q in ((two, one), (one, two)):
            assert np.maximum(p - np.exp(at) * q, 0.0).sum() * cell <= price.delta(at) + 1e-3


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"regularization": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        SubsetSizes(**wrong)
