"""Node covers: volumes and told distributions against an enumeration of all cells, with and without noise."""

import itertools

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.ensemble import Ensemble, Tree
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading import TreeModel, node_covers
from ledgerwood.reading.marginals import FeatureShares
from ledgerwood.trainers import (
    DPBoostRegressor,
    DPXGBoostClassifier,
    FederatedGBDTClassifier,
    PrivateBoostingClassifier,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from tests.reading.models import CELLS, random_structure
from tests.reading.models import NUMBER as SCHEMA

TRUTH = ((0.4, 0.3, 0.1, 0.1, 0.1), (0.7, 0.1, 0.15, 0.05), (0.1, 0.2, 0.3, 0.4), (0.3, 0.2, 0.2, 0.1, 0.1, 0.1))
"""A distribution over the cells of each feature."""
EVERY = np.array(list(itertools.product(*(range(n) for n in CELLS))), dtype=np.uint8).T
PRODUCT = np.prod([np.array(own)[cells] for own, cells in zip(TRUTH, EVERY, strict=True)], axis=0)


def told(structures, weights):
    trees = [
        Tree(structure=structure, values=np.zeros(structure.n_leaves), weights=own)
        for structure, own in zip(structures, weights, strict=True)
    ]
    return TreeModel(ensemble=Ensemble(initial_score=0.0, trees=tuple(trees)), schema=SCHEMA, max_bins=4)


def true_shares(structure, every=PRODUCT):
    return np.bincount(structure.route(EVERY), weights=every, minlength=structure.n_leaves)


@pytest.mark.parametrize("seed", range(20))
def test_volumes_are_the_shares_of_all_cells_that_reach_a_leaf(seed):
    structure = random_structure(seed, depth=1 + seed % 5)
    expected = true_shares(structure, np.full(EVERY.shape[1], 1.0 / EVERY.shape[1]))
    covers = node_covers(told([structure], [None]))
    assert covers.source == "public volumes"
    found = covers.shares[0][structure.n_leaves - 1 :]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0.0)
    assert ((found > 0.0) == (expected > 0.0)).all()


def test_the_cells_of_a_schema_count_other_categories_and_missing_values():
    model = TreeModel(ensemble=Ensemble(initial_score=0.0), schema=SCHEMA, max_bins=4)
    assert tuple(model.cell_counts) == CELLS
    assert [each.shares.tolist() for each in node_covers(model).features] == [[1.0]] * 4


def test_weights_without_noise_tell_the_distribution():
    structures = [random_structure(seed, 4) for seed in range(30)]
    covers = node_covers(told(structures, [1e6 * true_shares(each) for each in structures]))
    assert covers.source == "released weights"
    for each, found in zip(structures, covers.shares, strict=True):
        np.testing.assert_allclose(found[each.n_leaves - 1 :], true_shares(each), atol=2e-3)


def test_many_noisy_weights_tell_what_one_does_not():
    """Noise of the size of a leaf's rows: the shares of 200 trees are nearer to the truth than the weights by far."""
    generator = np.random.default_rng(0)
    structures = [random_structure(seed, 4) for seed in range(200)]
    weights = [1000.0 * true_shares(each) + generator.normal(0.0, 100.0, each.n_leaves) for each in structures]
    covers = node_covers(told(structures, weights))
    errors, volumes = [], []
    for each, found, space in zip(
        structures, covers.shares, node_covers(told(structures, [None] * 200)).shares, strict=True
    ):
        errors.append(found[each.n_leaves - 1 :] - true_shares(each))
        volumes.append(space[each.n_leaves - 1 :] - true_shares(each))
    error, volume = (float(np.sqrt(np.mean(np.concatenate(each) ** 2))) for each in (errors, volumes))
    assert error < 0.01 < 0.1  # the noise of a weight, over all rows
    assert error < volume / 4.0


@pytest.mark.parametrize("seed", range(6))
def test_covers_add_up_and_are_above_zero_where_a_row_can_be(seed):
    generator = np.random.default_rng(seed)
    structures = [random_structure(10 * seed + at, 4) for at in range(3)]
    covers = node_covers(told(structures, [generator.normal(1.0, 30.0, 16) for _ in structures]))
    assert "released weights" in str(covers)
    for structure, shares in zip(structures, covers.shares, strict=True):
        assert shares[0] == pytest.approx(1.0)
        assert (shares[:15] == shares[1::2] + shares[2::2]).all()
        reached = np.bincount(structure.route(EVERY), minlength=16) > 0
        assert ((shares[15:] > 0.0) == reached).all()
        with pytest.raises(ValueError, match="read-only"):
            shares[0] = 2.0


def test_parts_of_a_feature_share_evenly():
    feature = FeatureShares(starts=np.array([0, 2]), shares=np.array([0.8, 0.2]), cells=4)
    np.testing.assert_allclose(feature.of_parts(np.array([0, 1, 3])), [0.4, 0.5, 0.1])


X = np.random.default_rng(0).uniform(size=(200, 2))
Y = (X[:, 0] > 0.5).astype(int)


def schema_of(target: lw.Numeric | lw.Categorical) -> lw.Schema:
    return lw.Schema.uniform(0.0, 1.0, n_features=2, target=target)


NUMBER, CLASSES = schema_of(lw.Numeric("y", 0, 1)), schema_of(lw.Categorical("y", (0, 1)))
THREE = schema_of(lw.Categorical("y", (0, 1, 2)))


@pytest.mark.parametrize(
    ("model", "released"),
    [
        (SGBDTRegressor(schema=NUMBER, random_state=0, n_estimators=3), True),
        (SGBDTClassifier(schema=THREE, random_state=0, n_estimators=2), True),
        (SGBDTRegressor(schema=NUMBER, random_state=0, n_estimators=2, leaf_noise="static", reg_lambda=5.0), False),
        (DPBoostRegressor(schema=NUMBER, random_state=0, n_estimators=2, leaf_release="sums"), True),
        (DPBoostRegressor(schema=NUMBER, random_state=0, n_estimators=2, leaf_release="ratio"), False),
        (DPXGBoostClassifier(schema=CLASSES, random_state=0, n_estimators=2), True),
        (FederatedGBDTClassifier(schema=CLASSES, random_state=0, n_estimators=2), True),
        (PrivateBoostingClassifier(schema=CLASSES, random_state=0, n_estimators=3), True),
        (PrivateBoostingClassifier(schema=THREE, random_state=0, n_estimators=3), True),
        (PrivaTreeClassifier(schema=CLASSES, random_state=0), False),
    ],
)  # fmt: skip
def test_a_model_keeps_the_weights_that_it_released(model, released, tmp_path):
    model.epsilon = 100.0
    with pytest.warns(lw.PrivacyWarning):
        model.fit(X, Y)
    covers = node_covers(model)
    assert covers.source == ("released weights" if released else "public volumes")
    model.save(tmp_path / "model")
    again = node_covers(type(model).load(tmp_path / "model"))
    assert again.source == covers.source
    assert len(again.shares) == len(model.ensemble_.trees)
    for one, other, tree in zip(covers.shares, again.shares, model.ensemble_.trees, strict=True):
        assert one.tolist() == other.tolist()
        assert len(one) == 2 * tree.structure.n_leaves - 1
        assert one[0] == pytest.approx(1.0)
    if released:  # epsilon is large: the shares are those of the rows, or near
        tree = model.ensemble_.trees[-1]
        leaves = tree.structure.route(model._cells(X))
        rows = np.bincount(leaves, minlength=tree.structure.n_leaves) / len(X)
        assert np.abs(covers.shares[-1][tree.structure.n_leaves - 1 :] - rows).max() < 0.15


def test_what_has_no_trees_is_refused():
    with pytest.raises(InvalidParameter, match="releases no trees"):
        node_covers(object())
    with pytest.raises(InvalidParameter, match="spelled out"):
        TreeModel(ensemble=Ensemble(initial_score=0.0), schema=lw.Schema.uniform(0, 1), max_bins=4)
    foreign = Tree(structure=random_structure(1, 2), values=np.zeros(4))
    with pytest.raises(InvalidParameter, match="features of the schema"):
        TreeModel(ensemble=Ensemble(initial_score=0.0, trees=(foreign,)), schema=NUMBER, max_bins=4)
    with pytest.raises(InvalidParameter, match="weights"):
        Tree(structure=random_structure(1, 2), values=np.zeros(4), weights=np.zeros(3))
