"""PrivaTree's budget rule: the constant against mpmath and against the mechanism itself, outcome by outcome."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from ledgerwood import Adjacency
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.privatree.plan import label_error_constant, leaf_epsilon

A = Adjacency.ADD_REMOVE


def expected_loss(gaps, rate):
    """Of permute-and-flip, over every order of the candidates: how far the one taken is below the best."""
    total = 0.0
    orders = list(itertools.permutations(gaps))
    for order in orders:
        left = 1.0
        for gap in order:
            taken = math.exp(-rate * gap)
            total += left * taken * gap
            left *= 1.0 - taken
    return total / len(orders)


@pytest.mark.parametrize("classes", [2, 3, 7, 100])
def test_the_constant_is_the_largest_loss_of_equally_bad_classes(classes):
    def loss(t):
        p = mp.e ** (-t)
        return t * (1 - (1 - (1 - p) ** classes) / (classes * p))

    with mp.workdps(40):
        top = mp.findroot(lambda t: mp.diff(loss, t), 1 + mp.log(classes) / 2)
        assert label_error_constant(classes) == pytest.approx(float(loss(top)), rel=1e-8)


def test_of_two_classes_it_is_known():
    assert label_error_constant(2) == pytest.approx(1 / (2 * math.e), rel=1e-9)


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("rate", [0.1, 1.0])
def test_no_counts_lose_more(classes, rate):
    grid = np.linspace(0.0, 8.0, 17) / rate
    worst = max(expected_loss((0.0, *gaps), rate) for gaps in itertools.product(grid, repeat=classes - 1))
    bound = label_error_constant(classes) / rate
    assert 0.9 * bound < worst <= bound * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_labels_at_their_epsilon_lose_what_was_asked_for(adjacency):
    """16 leaves, each as bad as it can be, at the rate that this epsilon buys."""
    found = leaf_epsilon(1.0, depth=4, classes=2, rows=10_000, error=0.01, adjacency=adjacency)
    rate = found / (2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0)
    assert 16 * expected_loss((0.0, 1.0 / rate), rate) == pytest.approx(0.01 * 10_000, rel=1e-9)


def test_labels_get_half_at_most_and_where_rows_are_unknown():
    assert leaf_epsilon(0.3, depth=4, classes=2, rows=None, error=0.01, adjacency=A) == 0.15
    assert leaf_epsilon(0.3, depth=4, classes=2, rows=5, error=0.01, adjacency=A) == 0.15
    assert leaf_epsilon(0.3, depth=4, classes=2, rows=10**6, error=0.01, adjacency=A) < 0.001


@pytest.mark.parametrize("error", [0.0, 1.0, -1.0, math.nan])
def test_what_is_no_share_is_refused(error):
    with pytest.raises(InvalidParameter, match="label_error"):
        leaf_epsilon(1.0, depth=4, classes=2, rows=10, error=error, adjacency=A)


def test_one_class_is_refused():
    with pytest.raises(InvalidParameter, match="classes"):
        label_error_constant(1)
