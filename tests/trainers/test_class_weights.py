"""Weights of classes through a whole fit: rows of weights, in every place; what is predicted; what is refused."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import ledgerwood as lw
from ledgerwood import Categorical, Ledger, PrivacyUnit
from ledgerwood.curator.inputs import batches as reading_batches
from ledgerwood.curator.tables import chunks
from ledgerwood.errors import InvalidParameter
from ledgerwood.federation import federate
from ledgerwood.trainers import (
    DPXGBoostClassifier,
    FederatedGBDTClassifier,
    PrivateBoostingClassifier,
    PrivateSearch,
    SGBDTClassifier,
)
from ledgerwood.trainers.base.outputs import unweighted_probabilities
from ledgerwood.trainers.base.systems import declared, system

from .place_rows import NAMES, ROWS, N, model_of, schema_of, told

CLASSIFIERS = {name: kind for name in declared() if (kind := system(name).classifier) is not None}
REFUSING = {"privatree"}
"""By name and before anything is spent; all others take weights, or this list is wrong."""
WEIGHTS = {"two": (1.0, 5.0), "three": (1.0, 5.0, 2.5)}
SMALL = {"n_estimators": 4, "max_depth": 2}


def weighted_schema(label, weights=None, bound=None):
    schema = schema_of(label, bound)
    return dataclasses.replace(
        schema, target=dataclasses.replace(schema.target, weights=WEIGHTS[label] if weights is None else weights)
    )


def weighted(kind, label="two", *, bound=None, **more):
    model = model_of(kind, label, **(SMALL | more))
    model.schema = weighted_schema(label, bound=bound)
    return model


def own_weights(label):
    by_class = dict(zip(schema_of(label).target.categories, WEIGHTS[label], strict=True))
    return ROWS[label].map(by_class).to_numpy()


@pytest.mark.slow_after(2)  # two fits of each system
@pytest.mark.parametrize("label", WEIGHTS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_system_takes_them_as_weights_of_rows_or_refuses_by_name(name, label):
    kind = CLASSIFIERS[name]
    if name in REFUSING:
        model = model_of(kind, label)
        model.schema = weighted_schema(label)
        ledger = Ledger(model.budget, unit=PrivacyUnit.ROW)
        with pytest.raises(InvalidParameter, match=r"weights=\(1\.0, 5\.0"):
            model.fit(ROWS[NAMES], ROWS[label], ledger)
        assert len(ledger.entries) == 1
        return
    found = weighted(kind, label).fit(ROWS[NAMES], ROWS[label])
    rows = model_of(kind, label, 5.0, **SMALL).fit(ROWS[NAMES], ROWS[label], sample_weight=own_weights(label))
    assert told(found) == told(rows)
    plain = model_of(kind, label, **SMALL).fit(ROWS[NAMES], ROWS[label])
    assert told(found)[1] != told(plain)[1]
    assert np.array_equal(found.predict(ROWS[NAMES]), rows.predict(ROWS[NAMES]))
    assert any("weights of the classes are public" in text for text in found.privacy_.assumptions)
    assert not any("weights of the classes" in text for text in rows.privacy_.assumptions)


@pytest.mark.parametrize("kind", [PrivateBoostingClassifier, SGBDTClassifier])
def test_a_rows_own_weight_is_multiplied(kind):
    model = weighted(kind, bound=1.0).fit(ROWS[NAMES], ROWS["two"], sample_weight=ROWS["weight"])
    product = np.where(ROWS["two"] == "yes", 1.0, 0.2) * ROWS["weight"]
    rows = model_of(kind, "two", 1.0, **SMALL).fit(ROWS[NAMES], ROWS["two"], sample_weight=product)
    assert told(model) == told(rows)


def test_equal_weights_are_none():
    """In the model and its price; a statement says that they are public."""
    model = weighted(PrivateBoostingClassifier)
    model.schema = weighted_schema("two", (3.0, 3.0))
    plain = model_of(PrivateBoostingClassifier, "two", **SMALL).fit(ROWS[NAMES], ROWS["two"])
    found = model.fit(ROWS[NAMES], ROWS["two"])
    assert told(found) == told(plain)
    np.testing.assert_allclose(found.predict_proba(ROWS[NAMES]), plain.predict_proba(ROWS[NAMES]), rtol=1e-12)


# ------------------------------------------------------------------------------------------------------ every place


@pytest.mark.parametrize("label", WEIGHTS)
@pytest.mark.parametrize("kind", [PrivateBoostingClassifier, SGBDTClassifier, FederatedGBDTClassifier])
def test_files_and_a_federation_give_the_model_of_rows_in_memory(kind, label, tmp_path, monkeypatch):
    pa, pq = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    monkeypatch.setattr(chunks, "PART_ROWS", 120)
    monkeypatch.setattr(reading_batches, "BATCH_ROWS", 47)
    pq.write_table(pa.Table.from_pandas(ROWS, preserve_index=False), tmp_path / "a.parquet")
    expected = told(weighted(kind, label).fit(ROWS[NAMES], ROWS[label]))
    assert told(weighted(kind, label).fit(tmp_path, label)) == expected
    ends = [100, 103]
    clients = list(zip(np.split(ROWS[NAMES], ends), np.split(ROWS[label], ends), strict=True))
    found = federate(weighted(kind, label), clients, engine="process")
    assert told(found)[:3] == expected[:3]


def test_a_stream_charges_each_row_for_what_it_counts():
    model = SGBDTClassifier(
        epsilon=5.0, delta=1e-4, schema=weighted_schema("two"), random_state=1, n_estimators=6, max_depth=2
    )
    keys = np.arange(N)
    half = N // 2
    model.partial_fit(ROWS[NAMES][:half], ROWS["two"][:half], keys=keys[:half])
    assert model.plan_.class_weights == WEIGHTS["two"]
    model.partial_fit(ROWS[NAMES], ROWS["two"], keys=keys)
    assert any("weights of the classes are public" in text for text in model.privacy_.assumptions)


def test_a_private_search_takes_them_to_its_runs_and_its_score():
    search = PrivateSearch(
        SGBDTClassifier(), [{"n_estimators": 2, "max_depth": 1}, SMALL], mean_runs=2.0, epsilon=20.0, delta=1e-4,
        schema=weighted_schema("two"), random_state=3,
    ).fit(ROWS[NAMES], ROWS["two"])  # fmt: skip
    assert search.best_estimator_.plan_.class_weights == WEIGHTS["two"]


# ------------------------------------------------------------------------------------------------- what is predicted


def without_signal(shares, n=6000):
    generator = np.random.default_rng(5)
    y = np.repeat(np.arange(len(shares)), [round(share * n) for share in shares])
    return generator.uniform(0, 1, (n, 2)), y


# Without DPBoost, whose clipped leaves do not come to rest at the shares of classes, with weights or without.
SOUND = {
    PrivateBoostingClassifier: {"n_estimators": 64, "max_depth": 2},
    SGBDTClassifier: {"n_estimators": 48, "max_depth": 2},
    FederatedGBDTClassifier: {"n_estimators": 40, "max_depth": 2},
    DPXGBoostClassifier: {"n_estimators": 20, "max_depth": 2},
}


@pytest.mark.slow_after(1)  # fits of each system to convergence
@pytest.mark.parametrize("shares", [(0.95, 0.05), (0.7, 0.25, 0.05)], ids=["two", "three"])
@pytest.mark.parametrize("kind", SOUND)
def test_probabilities_are_of_the_rows_as_they_are_and_classes_of_the_weighted_ones(kind, shares):
    """The last class has most weight in all, so that it is predicted; its probability stays its share of the rows."""
    weights = (1.0, *[1.0] * (len(shares) - 2), 40.0)
    target = Categorical("y", tuple(range(len(shares))), weights=weights)
    schema = lw.Schema.uniform(0.0, 1.0, n_features=2, target=target)
    X, y = without_signal(shares)
    options = {"epsilon": 100.0, "delta": 1e-6, "schema": schema, "random_state": 7, "expected_rows": len(y)}
    model = kind(**options, **SOUND[kind]).fit(X, y)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.mean(axis=0), shares, rtol=0, atol=0.03)
    assert (model.predict(X) == len(shares) - 1).mean() > 0.95
    scores = model.decision_function(X)
    assert np.array_equal(model.predict(X), np.argmax(scores, axis=1) if scores.ndim == 2 else scores > 0.0)


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5), st.data())
def test_weights_are_divided_out(raw, data):
    """Of q = w p / sum(w p) the result is p; whatever is likelier than before by its weight is so by that much less."""
    shares = np.array(raw) + 1e-3
    shares /= shares.sum()
    weights = np.array(data.draw(st.lists(st.floats(2.0**-10, 1.0), min_size=len(raw), max_size=len(raw))))
    pulled = weights * shares / (weights @ shares)
    np.testing.assert_allclose(unweighted_probabilities(pulled[np.newaxis], weights)[0], shares, rtol=1e-9)


def test_of_two_classes_the_order_of_rows_is_that_of_the_scores():
    model = weighted(PrivateBoostingClassifier, epsilon=50.0).fit(ROWS[NAMES], ROWS["two"])
    order = np.argsort(model.decision_function(ROWS[NAMES]), kind="stable")
    assert (np.diff(model.predict_proba(ROWS[NAMES])[order, 1]) >= 0.0).all()


# ---------------------------------------------------------------------------------------- what is shown, kept, refused


def test_a_model_keeps_its_weights(tmp_path):
    model = weighted(PrivateBoostingClassifier, "three").fit(ROWS[NAMES], ROWS["three"])
    model.save(tmp_path / "model")
    again = PrivateBoostingClassifier.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(ROWS[NAMES]), model.predict_proba(ROWS[NAMES]))
    assert again.plan_ == model.plan_
    assert "class_weights = (1.0, 5.0, 2.5)" in again.plan_.explain()
    path = tmp_path / "model" / "model.json"
    record = json.loads(path.read_text())
    record["schema"]["target"]["weights"] = [1.0, 5.0, 5.0]
    path.write_text(json.dumps(record))
    with pytest.raises(InvalidParameter, match=r"a plan of class_weights=\(1\.0, 5\.0, 2\.5\), and a schema of"):
        PrivateBoostingClassifier.load(tmp_path / "model")


@pytest.mark.parametrize("kind", [PrivateBoostingClassifier, SGBDTClassifier, FederatedGBDTClassifier])
def test_sums_in_whole_units_do_not_take_them(kind):
    model = weighted(kind, noise="skellam", initial_score="zero")
    ledger = Ledger(model.budget, unit=PrivacyUnit.ROW)
    with pytest.raises(InvalidParameter, match="weights of classes, out of the schema"):
        model.fit(ROWS[NAMES], ROWS["two"], ledger)
    assert len(ledger.entries) == 1


def test_a_public_number_of_rows_is_no_weight_in_all():
    model = weighted(SGBDTClassifier, initial_score="public_count", expected_rows=N, adjacency="replace-one")
    with pytest.raises(InvalidParameter, match="the weight in all is not public"):
        model.make_plan(model.schema)


def test_rows_that_choose_their_weights_are_refused():
    for weights in ("balanced", {"no": 1.0, "yes": 5.0}):
        with pytest.raises(InvalidParameter, match="weights of 'two'"):
            Categorical("two", ("no", "yes"), weights=weights)
    with pytest.raises(InvalidParameter, match="would be a release that nobody has paid for"):
        Categorical("two", ("no", "yes"), weights="balanced")


def test_a_clone_and_a_plan_know_them():
    model = weighted(DPXGBoostClassifier, "three")
    assert clone(model).schema == model.schema
    plan = model.make_plan(model.schema)
    assert (plan.weighted, plan.class_weights) == (True, WEIGHTS["three"])
    with pytest.raises(InvalidParameter, match="weighted=False must be True"):
        dataclasses.replace(plan, weighted=False)
    unweighted = model_of(DPXGBoostClassifier, "three", **SMALL)
    assert unweighted.make_plan(unweighted.schema).class_weights == ()
