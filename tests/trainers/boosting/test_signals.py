"""The choice of features: the signal is unbiased, the turns are shared as stated, and no feature is ever lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.trainers.boosting.signals import FeatureChoice, capped_shares, tree_signal

SIGNALS = st.floats(-1e12, 1e12)


def choice(d, k, even=0.3, memory=4.0):
    return FeatureChoice(d, per_tree=k, even_share=even, memory=memory)


def test_a_trees_signal_has_the_squared_true_sums_as_its_mean():
    true, stddev = np.array([3.0, -1.0, 0.0, 7.5]), 2.5
    noise = np.random.default_rng(0).normal(0.0, stddev, (50_000, 4))
    found = np.array([tree_signal(row, stddev) for row in true + noise])
    assert found.mean() == pytest.approx((true**2).sum() / stddev**2, abs=5 * found.std() / np.sqrt(len(found)))
    assert tree_signal(np.zeros(4), stddev) == -4.0


def test_the_mean_over_classes_is_noise_and_no_signal():
    """True gradients add up to 0 over the classes; what the noise adds to their mean is taken off, and not expected."""
    true, stddev = np.array([[3.0, -1.0, -2.0], [0.0, 4.0, -4.0]]), 2.5
    noise = np.random.default_rng(1).normal(0.0, stddev, (40_000, 2, 3))
    found = np.array([tree_signal(each, stddev) for each in true + noise])
    assert found.mean() == pytest.approx((true**2).sum() / stddev**2, abs=5 * found.std() / np.sqrt(len(found)))
    assert tree_signal(np.full((2, 3), 9.0), stddev) == -4.0


@given(st.integers(1, 40), st.integers(1, 8), st.floats(0.01, 1.0), st.lists(SIGNALS, min_size=1, max_size=60))
def test_turns_are_shares_of_which_none_is_above_one_a_tree(d, k, even, signals):
    turns = choice(d, k, even)
    for signal in signals:
        features = turns.next_features()
        assert len(set(features)) == len(features) == min(k, d)
        assert list(features) == sorted(features)
        assert set(features) <= set(range(d))
        turns.learn(features, signal)
        shares = turns.shares
        assert shares.sum() == pytest.approx(1.0)
        assert shares.max() <= 1.0 / min(k, d) * (1.0 + 1e-9)
        assert shares.min() >= even / d * 0.999 * min(1.0, shares.max() * d)


@settings(max_examples=40)  # each plants up to 1,200 trees
@given(st.integers(2, 30), st.integers(1, 4), st.integers(0, 29), st.floats(0.1, 1.0))
def test_the_feature_that_shows_nothing_comes_as_often_as_the_even_share_says(d, k, dull, even):
    """Credit of even / d * k a tree, and one tree costs one: between two turns are about d / (k * even) trees."""
    dull, k = dull % d, min(k, d)
    turns = choice(d, k, even)
    came = []
    for number in range(40 * d):
        features = turns.next_features()
        turns.learn(features, 0.0 if dull in features else 1e6)
        if dull in features:
            came.append(number)
    assert len(came) >= np.floor(40 * d * k * even / d) - d


def test_with_even_signals_the_turns_are_a_cycle():
    turns = choice(7, 2)
    seen = np.zeros(7, dtype=int)
    for number in range(70):
        features = turns.next_features()
        turns.learn(features, 5.0)
        seen[list(features)] += 1
        if number >= 4:
            assert seen.max() - seen.min() <= 2


def test_trees_follow_the_features_that_show_something():
    turns = choice(20, 2)
    for _ in range(400):
        features = turns.next_features()
        turns.learn(features, 50.0 * len(set(features) & {4, 11}) - 1.0)
    # Neighbours of the first cycle stay together: docs/explanation/boosting.md#boosting-signal.
    assert set(np.argsort(-turns.shares)[:4].tolist()) == {4, 5, 10, 11}
    assert turns.shares[[4, 5, 10, 11]].sum() > 0.7
    for _ in range(400):  # what was learned shows no more, and something else does
        features = turns.next_features()
        turns.learn(features, 50.0 if 7 in features else -1.0)
    assert set(np.argsort(-turns.shares)[:2].tolist()) == {6, 7}
    assert turns.shares[[4, 11]].max() < 0.05


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30), st.floats(0.0, 1.0))
def test_capped_shares(shares, place):
    weights = np.array(shares) / np.sum(shares)
    most = 1.0 / len(weights) + place * (1.0 - 1.0 / len(weights))
    found = capped_shares(weights, most)
    assert found.sum() == pytest.approx(1.0)
    assert found.max() <= most * (1.0 + 1e-9)
    order = np.argsort(weights)
    assert (np.diff(found[order]) >= -1e-12).all()
    if weights.max() <= most:
        np.testing.assert_allclose(found, weights, rtol=1e-9)
