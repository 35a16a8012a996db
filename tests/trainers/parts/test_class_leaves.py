"""Leaf values of trees that all classes share, from released sums; and what their noise costs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

from ledgerwood import Adjacency
from ledgerwood.curator import LeafClassGradients
from ledgerwood.trainers.base.outputs import unclipped_probabilities
from ledgerwood.trainers.parts.class_leaves import class_noise, class_shares, class_values, share_hessians, share_scores
from ledgerwood.trainers.parts.whole_noise import WholeLeaves

A = Adjacency.ADD_REMOVE


@given(st.integers(2, 40), st.floats(0.01, 0.9), st.floats(0.05, 500.0), st.sampled_from([0.01, 0.5, 1.0, 2.0]))
def test_the_noise_multiplier_is_that_of_the_release(classes, count_share, noise_multiplier, clip):
    leaf = LeafClassGradients(classes=classes, clip=clip)
    mechanism = class_noise(leaf, noise_multiplier=noise_multiplier, count_share=count_share)
    mu = mechanism.event(leaf.sensitivity(A), A).mu()
    assert mu == pytest.approx(1.0 / noise_multiplier, rel=1e-12)
    rows = (1.0 / mechanism.stddevs[0]) ** 2
    assert rows * noise_multiplier**2 == pytest.approx(count_share, rel=1e-12)


@pytest.mark.parametrize("clip", [0.2, 1.0])
@pytest.mark.parametrize("count_share", [0.02, 0.3])
def test_skellam_noise_in_whole_units_costs_about_the_same(clip, count_share):
    leaf = LeafClassGradients(classes=6, clip=clip)
    whole = WholeLeaves(leaf=leaf, noise_multiplier=8.0, count_share=count_share)
    event = whole.mechanism.event(whole.query.sensitivity(A), A)
    assert math.sqrt(event.variance) / event.l2_sensitivity == pytest.approx(8.0, rel=1e-9)
    gaussian = class_noise(leaf, noise_multiplier=8.0, count_share=count_share).stddevs
    # Units of rows are coarser by a power of two: the share is met to within a factor.
    assert gaussian[1] / 1.5 <= whole.stddevs[1] <= gaussian[1] * 1.5
    assert gaussian[0] / 2.5 <= whole.stddevs[0] <= gaussian[0] * 2.5
    found = whole.in_leaf_units(np.array([[2.0 ** (whole.bits - whole.coarser), *[2.0**whole.bits] * 6]]))
    assert found.tolist() == [[1.0] * 7]


def loss(score, counts):
    return float(counts.sum() * logsumexp(score) - counts @ score)


@given(st.integers(2, 12), st.integers(0, 2**32 - 1), st.floats(0.01, 5.0))
def test_by_boehnings_bound_a_step_lowers_the_loss_of_a_leaf(classes, seed, reg_lambda):
    generator = np.random.default_rng(seed)
    counts, score = generator.integers(0, 30, classes).astype(float), generator.normal(scale=3.0, size=classes)
    rows = counts.sum()
    gradient = rows * softmax(score) - counts
    released = np.array([[rows, *gradient]])
    (step,) = class_values(released, hessians=0.5, reg_lambda=reg_lambda)
    assert loss(score + step, counts) <= loss(score, counts) + 1e-9
    np.testing.assert_allclose(step, -gradient / (0.5 * rows + reg_lambda), atol=1e-9)  # its mean is 0 already


def test_the_mean_is_taken_off_and_empty_leaves_and_negative_rows_stay_finite():
    released = np.array([[0.0, 0.0, 0.0, 0.0], [-50.0, 3.0, 3.0, 3.0], [10.0, 4.0, -5.0, 7.0], [1e6, 9.0, 0.0, -9.0]])
    found = class_values(released, hessians=np.array([0.2, 0.1, 0.05]), reg_lambda=2.0, max_delta_step=1.0)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-12)
    assert (found[:2] == 0.0).all()
    moved = released + np.array([0.0, 5.0, 5.0, 5.0])  # noise that is the same in all classes
    np.testing.assert_allclose(
        class_values(moved, hessians=np.array([0.2, 0.1, 0.05]), reg_lambda=2.0, max_delta_step=1.0), found, atol=1e-12
    )
    by_hand = -np.array([2.0, -7.0, 5.0]) / (10.0 * np.array([0.2, 0.1, 0.05]) + 2.0)
    held = np.clip(by_hand, -1.0, 1.0)
    np.testing.assert_allclose(found[2], held - held.mean(), rtol=1e-12)


def test_pooled_rows_are_drawn_to_the_mean_of_the_tree():
    released = np.array([[0.0, 1.0, -1.0], [100.0, 1.0, -1.0]])
    alike = class_values(released, hessians=0.25, reg_lambda=1.0, pooling=1.0)
    np.testing.assert_allclose(alike, np.array([[-1.0, 1.0]] * 2) / (50.0 * 0.25 + 1.0))


@given(st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_shares_and_scores_say_the_same(classes, seed):
    counts = np.random.default_rng(seed).normal(scale=50.0, size=classes)
    shares = class_shares(counts, stddev=7.0)
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0.0).all()
    np.testing.assert_allclose(softmax(share_scores(shares)), shares, rtol=1e-9)
    assert sum(share_scores(shares)) == pytest.approx(0.0, abs=1e-9)
    assert (share_hessians(shares) <= 0.25).all()
    assert Fraction(1, 4) >= Fraction(float(share_hessians(np.array([0.5, 0.5]))[0]))


@given(st.integers(2, 8), st.integers(0, 2**32 - 1))
def test_the_shares_hessian_bounds_the_mean_over_rows(classes, seed):
    probabilities = np.random.default_rng(seed).dirichlet(np.full(classes, 0.3), size=50)
    mean = (probabilities * (1.0 - probabilities)).mean(axis=0)
    assert (mean <= share_hessians(probabilities.mean(axis=0)) + 1e-12).all()


SHARES = st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=12)


@given(SHARES, st.floats(0.05, 2.0))
def test_probabilities_after_clipping_are_where_the_mean_gradient_is_zero(weights, clip):
    """By hand: for shares pi of the classes the clipped gradients at the softmax q add up to 0."""
    q = np.array(weights) / np.sum(weights)
    (pi,) = unclipped_probabilities(q[np.newaxis], clip=clip)
    assert pi.sum() == pytest.approx(1.0)
    gradients = q - np.eye(len(q))
    scaled = gradients * np.minimum(1.0, clip / np.linalg.norm(gradients, axis=1))[:, np.newaxis]
    np.testing.assert_allclose(pi @ scaled, 0.0, atol=1e-12)
    order = np.argsort(q)
    assert (np.diff(pi[order]) >= -1e-12).all()  # the likeliest class stays so


def test_a_clip_beyond_all_gradients_changes_nothing():
    q = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(unclipped_probabilities(q, clip=1.5), q)
    np.testing.assert_allclose(unclipped_probabilities(q, clip=math.inf), q)
