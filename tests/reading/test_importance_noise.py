"""The part of noise in importances, and the noise of leaf values, against simulations with the known noise."""

import dataclasses

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.ensemble import Ensemble, SplitTests, Tree, TreeStructure
from ledgerwood.reading import ImportanceTable, TreeModel, importances
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPXGBoostRegressor,
    FederatedGBDTRegressor,
    PrivateBoostingClassifier,
    PrivaTreeClassifier,
    SGBDTRegressor,
)
from ledgerwood.trainers.parts.class_leaves import class_value_noise, class_values
from ledgerwood.trainers.parts.importances import feature_effects
from tests.reading.models import NUMBER, THREE, random_model, random_structure


@pytest.mark.parametrize("classes", [0, 3])
def test_the_expected_part_of_noise_is_what_a_simulation_finds(classes):
    generator = np.random.default_rng(1)
    structure = random_structure(4, 3)
    shape = (8, classes) if classes else (8,)
    truth, stddevs = generator.normal(size=shape), generator.uniform(0.5, 2.0, size=shape)
    start = Ensemble.of_classes((0.0,) * classes) if classes else Ensemble(initial_score=0.0)
    without = feature_effects(start.extended(Tree(structure=structure, values=truth)), 4).effects
    n = 1200
    found = np.zeros((n, 4))
    for at in range(n):
        tree = Tree(structure=structure, values=truth + stddevs * generator.normal(size=shape), noise=stddevs)
        found[at], noise, _, known = feature_effects(start.extended(tree), 4)
        assert known
    error = found.std(axis=0) / np.sqrt(n)
    assert (np.abs(found.mean(axis=0) - without - noise) <= 4.5 * error + 1e-12).all()
    assert noise.max() > 0.5


def test_the_standard_deviation_of_importances_is_near_what_a_simulation_finds():
    generator = np.random.default_rng(2)
    structures = [random_structure(seed, 3) for seed in range(8)]
    truth = generator.normal(size=(8, 8))
    found, said = np.zeros((300, 4)), np.zeros((300, 4))
    for at in range(len(found)):
        drawn = truth + generator.normal(size=(8, 8))
        trees = tuple(
            Tree(structure=structure, values=values, noise=np.ones(8))
            for structure, values in zip(structures, drawn, strict=True)
        )
        found[at], _, said[at], _ = feature_effects(Ensemble(initial_score=0.0, trees=trees), 4)
    # From the noisy values of one draw: it varies, and its square is about right in the mean.
    np.testing.assert_allclose(np.sqrt((said**2).mean(axis=0)), found.std(axis=0), rtol=0.15)


def test_leaves_that_share_their_sums_share_their_noise():
    every = SplitTests.every(NUMBER.cells(4))
    structure = TreeStructure.root().deeper(every.taken(np.array([0]))).deeper(every.taken(np.array([3, 9])))
    tree = Tree(structure=structure, values=np.array([2.0, 2.0, -1.0, -1.0]), noise=np.full(4, 0.5))
    noise = feature_effects(Ensemble(initial_score=0.0, trees=(tree,)), 4).noise
    assert noise.sum() == pytest.approx(0.5**2 + 0.5**2)  # of the root alone, whose sides have one value each


def test_values_of_shared_classes_have_the_noise_that_is_said():
    generator = np.random.default_rng(0)
    released = np.column_stack((np.array([30.0, 8.0]), generator.normal(size=(2, 4))))
    options = {"hessians": np.array([0.25, 0.1, 0.2, 0.05]), "reg_lambda": 2.0, "pooling": 0.3}
    said = class_value_noise(released, **options, stddev=1.5)
    n = 4_000
    drawn = np.stack(
        [
            class_values(
                np.column_stack((released[:, 0], released[:, 1:] + 1.5 * generator.normal(size=(2, 4)))), **options
            )
            for _ in range(n)
        ]
    )
    np.testing.assert_allclose(drawn.std(axis=0), said, rtol=5.0 / np.sqrt(2 * n))


NUMBERS = lw.Schema.uniform(0.0, 1.0, n_features=2, target=lw.Numeric("y", -1, 1))
TWO = lw.Schema.uniform(0.0, 1.0, n_features=2, target=lw.Categorical("y", (0, 1)))
THREE_OF = lw.Schema.uniform(0.0, 1.0, n_features=2, target=lw.Categorical("y", (0, 1, 2)))


@pytest.mark.slow  # fits of five systems without a signal, 40 times each
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (SGBDTRegressor, {"n_estimators": 4, "max_depth": 2, "initial_score": "zero"}),
        (SGBDTRegressor, {"n_estimators": 4, "max_depth": 2, "leaf_noise": "static", "reg_lambda": 20.0}),
        (DPXGBoostRegressor, {"n_estimators": 3, "max_depth": 2, "delta": 1e-6}),
        (FederatedGBDTRegressor, {"preset": "dp_rf", "n_estimators": 3, "max_depth": 2}),
        (DPBoostClassifier, {"n_estimators": 3, "max_depth": 2}),
        (PrivateBoostingClassifier, {"n_estimators": 4}),
    ],
)
def test_without_a_signal_importances_are_noise_as_said(kind, options):
    X = np.random.default_rng(0).uniform(size=(400, 2))
    y = np.zeros(400) if kind.__name__.endswith("Regressor") else np.arange(400) % 2
    found, said = [], []
    for seed in range(40):
        model = kind(schema=NUMBERS if y.dtype == float else TWO, epsilon=0.5, random_state=seed, **options)
        with pytest.warns(lw.PrivacyWarning):
            model.fit(X, y)
        effects, noise, _, known = feature_effects(model.ensemble_, 2)
        assert known
        found.append(effects.sum())
        said.append(noise.sum())
    error = np.std(found) / np.sqrt(len(found))
    # The known noise is an upper bound, where clips bind; the labels are no signal, but by chance.
    assert np.mean(found) <= np.mean(said) + 4.0 * error
    assert np.mean(found) >= 0.2 * np.mean(said)


def test_a_table_says_shares_names_and_noise():
    model = random_model(NUMBER)
    table = importances(model)
    assert isinstance(table, ImportanceTable)
    effects, noise, error, _ = feature_effects(model.ensemble, 4)
    assert sum(each.share for each in table.features) == pytest.approx(1.0)
    assert [each.share for each in table.features] == sorted((effects / effects.sum()).tolist(), reverse=True)
    assert table.noise == pytest.approx(noise.sum() / effects.sum())
    by_name = dict(zip(model.names, effects / effects.sum(), strict=True))
    assert all(by_name[each.name] == pytest.approx(each.share) for each in table.features)
    text = str(table)
    assert text.splitlines()[0].split() == ["feature", "share", "noise", "beyond"]
    assert len(text.splitlines()) == 4 + 2
    assert f"{table.noise:.3f} of all importances" in text
    assert all(each.above_noise == (each.share > each.noise + 3 * each.error) for each in table.features)
    assert sum(each.error**2 for each in table.features) == pytest.approx((error**2).sum() / effects.sum() ** 2)


def test_estimators_tables_have_their_importances():
    X = np.random.default_rng(0).uniform(size=(200, 2))
    for model, y in (
        (SGBDTRegressor(schema=NUMBERS, random_state=0, n_estimators=3), X[:, 0]),
        (PrivateBoostingClassifier(schema=THREE_OF, random_state=0, n_estimators=3), np.arange(200) % 3),
        (PrivaTreeClassifier(schema=THREE_OF, random_state=0, epsilon=50.0), (3 * X[:, 1]).astype(int)),
    ):
        with pytest.warns(lw.PrivacyWarning):
            model.fit(X, y)
        table = importances(model)
        shares = {each.name: each.share for each in table.features}
        np.testing.assert_allclose([shares["x0"], shares["x1"]], model.feature_importances_, rtol=1e-12)
        assert (table.noise is None) == isinstance(model, PrivaTreeClassifier)
        assert ("not known" in str(table)) == isinstance(model, PrivaTreeClassifier)


def test_without_trees_all_is_zero():
    model = TreeModel(ensemble=Ensemble(initial_score=0.0), schema=NUMBER, max_bins=4)
    assert [each.share for each in importances(model).features] == [0.0] * 4
    scores = random_model(THREE, classes=3)
    bare = dataclasses.replace(scores, ensemble=Ensemble.of_classes((0.0,) * 3))
    assert importances(bare).noise == 0.0
