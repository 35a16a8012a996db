"""Every classifier learns the classes that are declared or that the private estimate shows, and says how few."""

import functools
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import ledgerwood as lw
from ledgerwood.accounting.ledger import DrawEntry
from ledgerwood.accounting.pricing import price
from ledgerwood.errors import InvalidParameter, PrivacyWarning, SchemaError
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPXGBoostClassifier,
    FederatedGBDTClassifier,
    PrivateSearch,
    PrivaTreeClassifier,
    SGBDTClassifier,
)
from ledgerwood.trainers.base.forests import ESTIMATED_CLASSES, shares, stacked, unstacked
from ledgerwood.verification import removed, replay, verify_ledger

CLASSIFIERS = {
    SGBDTClassifier: {"max_depth": 3, "n_estimators": 64},
    DPBoostClassifier: {"max_depth": 2, "n_estimators": 32},
    DPXGBoostClassifier: {"max_depth": 2, "n_estimators": 32},
    FederatedGBDTClassifier: {"max_depth": 3, "n_estimators": 64},
    PrivaTreeClassifier: {"max_depth": 4},
}
N_ROWS = 3_000
GENERATOR = np.random.default_rng(7)
X = np.column_stack([np.floor(GENERATOR.uniform(0.0, 20.0, N_ROWS)), GENERATOR.uniform(0.0, 1.0, N_ROWS)])
FEATURES = (lw.Numeric("x0", 0, 32), lw.Numeric("x1", 0, 1))


def labels(k, names):
    """The class of each row, told by the first column alone, and all classes in their order."""
    place = np.floor(X[:, 0] * k / 20.0).astype(int)
    if names == "text":
        # In the order of the alphabet, which is another one than that of the numbers.
        classes = np.array([f"{'zyxwvutsrqponmlkjihg'[i]}{i}" for i in range(k)])
    else:
        classes = 10 * np.arange(k) - 30
    return classes[place], np.sort(classes)


def fitted(kind, y, *, schema=None, epsilon=40.0, **options):
    model = kind(epsilon=epsilon, delta=1e-5, schema=schema, random_state=3, **(CLASSIFIERS[kind] | options))
    return model.fit(X, y)


@functools.cache
def estimated(kind, k, names):
    """A fit without a schema, and what it warns of the estimate."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fitted(kind, labels(k, names)[0])
    said = [str(each.message) for each in caught if issubclass(each.category, PrivacyWarning)]
    return model, [text for text in said if "privately estimated schema" in text]


@pytest.mark.slow  # learns up to 20 classes
@pytest.mark.parametrize(
    ("k", "names"), [(1, "text"), (1, "numbers"), (2, "numbers"), (3, "text"), (5, "numbers"), (20, "text")]
)
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_all_estimated_classes_are_learned(kind, k, names, tmp_path):
    y, classes = labels(k, names)
    model, said = estimated(kind, k, names)
    assert [text.startswith("one class, ") for text in said] == ([True] if k == 1 else [])
    assert model.classes_.tolist() == classes.tolist()
    assert model.classes_.dtype.kind == ("U" if names == "text" else "i")
    predicted, probable = model.predict(X), model.predict_proba(X)
    assert set(predicted.tolist()) <= set(classes.tolist())
    assert probable.shape == (N_ROWS, k)
    np.testing.assert_allclose(probable.sum(axis=1), 1.0)
    assert probable.min() >= 0.0
    np.testing.assert_array_equal(model.classes_[probable.argmax(axis=1)], predicted)
    least = {1: 1.0, 2: 0.95, 3: 0.9, 5: 0.5, 20: 0.1}[k]  # a guess is right once in k
    assert np.mean(predicted == y) >= least
    if kind is not PrivaTreeClassifier:  # whose tree has labels, and no scores
        assert model.decision_function(X).shape == ((N_ROWS, k) if k > 2 else (N_ROWS,))
    importances = model.feature_importances_
    assert importances.shape == (2,)
    assert importances.sum() == pytest.approx(1.0) or k == 1
    model.save(tmp_path / "model")
    loaded = kind.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), probable)
    assert loaded.classes_.tolist() == classes.tolist()


@pytest.mark.slow  # many fits and plans
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_plan_ledger_and_statement_do_not_depend_on_the_classes(kind):
    """The number of classes is known after the grant: were anything drawn otherwise, the ledger would tell of rows."""
    models = [estimated(kind, k, "text")[0] for k in (1, 3, 20)] + [fitted(kind, labels(2, "text")[0])]
    for model in models[1:]:
        assert model.ledger_ == models[0].ledger_
        assert model.plan_ == models[0].plan_
        assert model.privacy_ == models[0].privacy_


OPTIONS = [
    (FederatedGBDTClassifier, {"preset": "tr_batched_ih_ebm", "n_estimators": 32}),
    (FederatedGBDTClassifier, {"preset": "tr_newton_ih", "n_estimators": 32, "features_per_tree": 1}),
    (FederatedGBDTClassifier, {"split_method": "histogram", "candidates": "iterative_hessian", "n_estimators": 32}),
    (FederatedGBDTClassifier, {"split_method": "partially_random", "n_estimators": 32, "max_depth": 2}),
    (FederatedGBDTClassifier, {"preset": "dp_rf", "n_estimators": 32}),
    (SGBDTClassifier, {"extra_trees": 20, "n_estimators": 32}),
    (SGBDTClassifier, {"initial_score": "moments", "n_estimators": 32}),
    (SGBDTClassifier, {"subsample": 0.5, "n_estimators": 32}),
    (DPBoostClassifier, {"preset": "paper", "max_depth": 3}),
    (DPBoostClassifier, {"preset": "enhanced", "max_depth": 3}),
    (DPBoostClassifier, {"initial_score": "laplace"}),
    (DPXGBoostClassifier, {"preset": "paper", "max_depth": 3}),
    (DPXGBoostClassifier, {"sketch": "once", "min_child_weight_by": "levels", "min_child_weight": 5.0}),
    (PrivaTreeClassifier, {"preset": "paper", "max_depth": 3}),
    (PrivaTreeClassifier, {"preset": "random"}),
]


@pytest.mark.slow  # calibrates a plan of each option, and three fits of it
@pytest.mark.parametrize(("kind", "options"), OPTIONS, ids=str)
def test_every_draw_is_granted_whatever_shows(kind, options):
    ledgers = [fitted(kind, labels(k, "numbers")[0], **options).ledger_ for k in (1, 2, 3)]
    assert all(ledger == ledgers[0] for ledger in ledgers)


@pytest.mark.slow_after(1)  # calibrates a plan of each system and re-adds its ledger
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_the_total_is_what_the_user_asked_and_verifies(kind, tmp_path):
    model = kind(epsilon=2.0, delta=1e-5, **CLASSIFIERS[kind]).fit(X, labels(5, "text")[0])
    assert 1.99 <= model.privacy_.epsilon <= 2.0
    assert model.privacy_.certified
    assert price(model.plan_.event).quote(1e-5).epsilon == model.privacy_.epsilon
    model.ledger_.save(tmp_path / "ledger.jsonl")
    report = verify_ledger(tmp_path / "ledger.jsonl")
    assert report.verdict == "confirmed"
    assert report.epsilon_readded <= 2.0 * (1 + 1e-9)


@pytest.mark.slow_after(2)  # learns several classes
@pytest.mark.parametrize("names", ["text", "numbers"])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_declared_classes_are_learned_each_by_its_own_forest(kind, names):
    y, classes = labels(4, names)
    schema = lw.Schema(features=FEATURES, target=lw.Categorical("y", tuple(reversed(classes.tolist()))))
    options = {} if kind is PrivaTreeClassifier else {"n_estimators": 20}
    model = fitted(kind, y, schema=schema, **options)
    assert model.classes_.tolist() == classes.tolist()
    assert np.mean(model.predict(X) == y) > 0.9
    if kind is not PrivaTreeClassifier:
        assert len(model.ensemble_.trees) == 4 * 20
    assert model.privacy_.epsilon == np.inf  # a seed was given


@pytest.mark.slow_after(1)  # learns several classes
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_declared_class_that_no_row_has_keeps_its_place(kind):
    y, _ = labels(3, "text")
    names = (*sorted(set(y.tolist())), "a-first", "zz-last")
    schema = lw.Schema(features=FEATURES, target=lw.Categorical("y", names))
    model = fitted(kind, y, schema=schema)
    assert model.classes_.tolist() == sorted(names)
    assert model.predict_proba(X).shape == (N_ROWS, 5)
    assert np.mean(model.predict(X) == y) > 0.9


@pytest.mark.slow  # learns several classes
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_rare_class_takes_no_part_and_no_class_is_said(kind):
    y, classes = labels(3, "text")
    y = y.astype(object)
    y[:2] = "seldom"
    model = fitted(kind, y, epsilon=1.0)
    assert model.classes_.tolist() == classes.tolist()
    distinct = np.array([f"id {i}" for i in range(N_ROWS)])
    with pytest.warns(PrivacyWarning, match=r"no class showed .* declare the classes"):
        model = fitted(kind, distinct)
    assert model.classes_.tolist() == ["(other)"]
    assert set(model.predict(X).tolist()) == {"(other)"}
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((N_ROWS, 1)))


@pytest.mark.slow  # many fits and plans
def test_more_classes_than_trees_are_said():
    y = np.char.add("c", np.floor(X[:, 0] * 2.0 + X[:, 1] * 2.0).astype(int).astype(str))
    assert len(set(y)) > ESTIMATED_CLASSES
    with pytest.warns(PrivacyWarning, match=r"4\d classes showed .* and 32 of them are learned.* raise n_estimators"):
        model = fitted(SGBDTClassifier, y, epsilon=200.0, n_estimators=5)
    assert len(model.classes_) == len(model.ensemble_.trees) == ESTIMATED_CLASSES
    assert len(fitted(SGBDTClassifier, y, epsilon=200.0, n_estimators=64).classes_) == len(set(y))


@pytest.mark.slow  # replays forests of several classes
@pytest.mark.parametrize("schema", [None, "declared"])
@pytest.mark.parametrize("kind", [SGBDTClassifier, DPXGBoostClassifier])
def test_a_fit_of_several_classes_replays(kind, schema):
    y, classes = labels(3, "numbers")
    target = lw.Categorical("y", tuple(classes.tolist()))
    given = lw.Schema(features=FEATURES, target=target) if schema else None
    model = kind(epsilon=8.0, delta=1e-5, max_depth=2, n_estimators=32, schema=given)

    def fit(data):
        return clone(model).fit(*data)

    data = (X[:200], y[:200])
    assert replay(fit, data, removed(data, 7)).ok


def test_what_learns_two_classes_only_refuses_more_before_anything_is_spent():
    y, classes = labels(3, "text")
    schema = lw.Schema(features=FEATURES, target=lw.Categorical("y", tuple(classes.tolist())))
    budget = lw.Budget(epsilon=1.0, delta=1e-5, adjacency=lw.Adjacency.ADD_REMOVE)
    ledger = lw.Ledger(budget, unit=lw.PrivacyUnit.ROW)
    before = ledger.entries
    with pytest.raises(SchemaError, match="a stream learns a number or two classes"):
        SGBDTClassifier(delta=1e-5, schema=schema).partial_fit(X, y, keys=np.arange(N_ROWS), ledger=ledger)
    search = PrivateSearch(SGBDTClassifier(), [{"n_estimators": 3}], delta=1e-5, schema=schema)
    with pytest.raises(SchemaError, match="a private search scores predictions of a number or of two classes"):
        search.fit(X, y, ledger=ledger)
    for kind in (SGBDTClassifier, DPBoostClassifier, DPXGBoostClassifier, FederatedGBDTClassifier):
        with pytest.raises(InvalidParameter, match="initial_score='moments' is for a number or two classes"):
            kind(delta=1e-5, schema=schema, initial_score="moments").fit(X, y, ledger=ledger)
    assert ledger.entries == before
    assert not any(isinstance(entry, DrawEntry) for entry in ledger.entries)


@pytest.mark.parametrize(("trees", "forests"), [(7, 3), (6, 3), (5, 5), (3, 5), (1, 1)])
def test_trees_are_shared_evenly_and_put_together_again(trees, forests):
    sizes = shares(trees, forests)
    assert sum(sizes) == trees
    assert max(sizes) - min(sizes) <= 1
    assert sorted(sizes, reverse=True) == list(sizes)


@pytest.mark.slow  # many fits and plans
def test_forests_of_two_sizes_are_told_apart_again():
    model = fitted(SGBDTClassifier, labels(3, "text")[0], n_estimators=32)
    forests = unstacked(model.ensemble_, 3)
    assert [len(forest.trees) for forest in forests] == [11, 11, 10]
    again = stacked(forests)
    for one, other in zip(again.trees, model.ensemble_.trees, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
