"""Importances come from the released trees alone, and say what a test does to the predictions."""

import numpy as np
import pytest

from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.trainers.parts.importances import feature_importances


def chosen(*tests: tuple[int, int]) -> SplitTests:
    return SplitTests(
        feature=np.array([feature for feature, _ in tests], dtype=np.int32),
        split=np.array([split for _, split in tests], dtype=np.uint16),
        equals=np.zeros(len(tests), dtype=np.bool_),
    )


def test_a_test_counts_with_the_variance_that_it_makes():
    structure = TreeStructure.root().deeper(chosen((0, 3))).deeper(chosen((1, 2), (2, 2)))
    tree = Tree(structure=structure, values=np.array([1.0, 3.0, 10.0, 10.0]))
    # Root: (2 - 10)**2 at weight 1; left: (1 - 3)**2 at weight 1/2; right: nothing.
    expected = np.array([64.0, 2.0, 0.0]) / 66.0
    np.testing.assert_allclose(feature_importances(Ensemble(initial_score=5.0, trees=(tree,)), 3), expected)
    # The variance of the four values, each a quarter of the leaves, is what the tests share out.
    assert np.var(tree.values) == pytest.approx(66.0 / 4.0)


def test_of_several_classes_the_variances_add_up():
    generator = np.random.default_rng(0)
    structure = TreeStructure(
        feature=np.array([0, 1, 2], np.int32), split=np.array([3, 2, 4], np.uint16), equals=np.zeros(3, np.bool_)
    )
    values = generator.normal(size=(4, 3))
    joint = Ensemble.of_classes((0.0,) * 3).extended(Tree(structure=structure, values=values))
    root = ((values[:2].mean(0) - values[2:].mean(0)) ** 2).sum()
    below = [0.5 * ((values[i] - values[i + 1]) ** 2).sum() for i in (0, 2)]
    expected = np.array([root, *below]) / (root + sum(below))
    np.testing.assert_allclose(feature_importances(joint, 3), expected, rtol=1e-12)


def test_a_node_that_sends_every_row_right_counts_nothing():
    none = chosen((0, 1)).taken(np.array([-1]))
    structure = TreeStructure.root().deeper(none).deeper(chosen((1, 2), (2, 2)))
    tree = Tree(structure=structure, values=np.array([100.0, -100.0, 1.0, 3.0]))
    shares = feature_importances(Ensemble(initial_score=0.0, trees=(tree,)), 3)
    assert shares.tolist() == [0.0, 0.0, 1.0]  # and no row reaches what is on its left


def test_no_tree_or_no_difference_gives_zeros():
    assert feature_importances(Ensemble(initial_score=1.0), 2).tolist() == [0.0, 0.0]
    flat = Tree(structure=TreeStructure.root(), values=np.array([1.0]))
    assert feature_importances(Ensemble(initial_score=1.0, trees=(flat,)), 2).tolist() == [0.0, 0.0]
