"""A schema that is bought: its price, its place in the ledger, what may depend on rows, and every odd table."""

import dataclasses
import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.accounting import GDPFilter, price
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events import ApproximateEvent, GaussianEvent
from ledgerwood.accounting.ledger import DrawEntry
from ledgerwood.curator import Curator, TypedColumn, TypedColumns, UndeclaredTable
from ledgerwood.errors import CalibrationFailed, InvalidParameter, PrivacyWarning, UnsupportedEvent
from ledgerwood.mechanisms import SeededRandom
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor
from ledgerwood.trainers.base.forests import ESTIMATED_CLASSES
from ledgerwood.trainers.estimated.classes import NO_CODE, NO_TEXT, some_classes
from ledgerwood.trainers.estimated.purchase import PER_BIN, SURELY, SchemaPurchase
from ledgerwood.trainers.estimated.ranges import bin_edges, likely_range
from ledgerwood.verification import verify_ledger

EPSILON, DELTA = 1.0, 1e-6
GENERATOR = np.random.default_rng(0)
N_ROWS = 4000
NUMBERS = GENERATOR.uniform(0.0, 1.0, (N_ROWS, 2))
WORDS = GENERATOR.choice(["low", "high"], N_ROWS)
LABELS = 10.0 * NUMBERS[:, 0] + 5.0 * (WORDS == "high")


def frame(rows=slice(None)):
    return pd.DataFrame({"a": NUMBERS[rows, 0], "b": NUMBERS[rows, 1], "w": WORDS[rows].astype(object)})


def labels_for(kind):
    return LABELS if kind is SGBDTRegressor else np.where(LABELS > 7.5, "much", "little")


def budget(adjacency=Adjacency.ADD_REMOVE, delta=DELTA):
    return Budget(epsilon=EPSILON, delta=delta, adjacency=adjacency)


def columns(*kinds, target="numeric"):
    return TypedColumns(
        features=tuple(TypedColumn(f"x{i}", kind) for i, kind in enumerate(kinds)), target=TypedColumn("y", target)
    )


@pytest.mark.slow_after(1)  # calibrates plans that buy a schema
@pytest.mark.parametrize("kind", [SGBDTRegressor, SGBDTClassifier])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"adjacency": "zero-out"},
        {"adjacency": "replace-one"},
        {"subsample": 0.2},
        {"initial_score": "laplace", "initial_share": 0.2},
        {"schema_share": 0.5},
    ],
    ids=str,
)
def test_the_whole_plan_costs_the_budget_and_never_more(kind, options):
    target = "numeric" if kind is SGBDTRegressor else "codes"
    model = kind(epsilon=EPSILON, delta=DELTA, n_estimators=20, **options)
    plan = model.make_plan(columns("numeric", "text", "boolean", target=target))
    spent = price(plan.event).quote(DELTA)
    assert spent.certified
    assert 0.9999 * EPSILON <= spent.epsilon <= EPSILON
    assert plan.purchase.events == plan.event.events[: len(plan.purchase.events)]


@pytest.mark.slow_after(30)  # many fits and plans
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("share", [0.01, 0.1, 0.9])
@pytest.mark.parametrize("kinds", [("numeric",), ("numeric", "text", "boolean", "text"), ("boolean",), ("text",) * 7])
@pytest.mark.parametrize("target", ["numeric", "codes", "boolean"])
def test_the_purchase_costs_its_share(kinds, target, share, adjacency):
    purchase = SchemaPurchase.planned(columns(*kinds, target=target), budget(adjacency), share=share)
    parts = [part for event in purchase.events for part, count in event.draws() for _ in range(count)]
    squares = [1.0 / part.noise_multiplier**2 for part in parts if isinstance(part, GaussianEvent)]
    deltas = [part.delta for part in parts if isinstance(part, ApproximateEvent)]
    assert len(squares) == sum(kind != "boolean" for kind in (*kinds, target))
    assert len(deltas) == sum(kind in ("text", "codes") for kind in (*kinds, target))
    assert len(parts) == len(squares) + len(deltas)
    if squares:
        assert math.fsum(squares) == pytest.approx(share * gdp.mu(EPSILON, DELTA) ** 2, rel=1e-9)
    assert math.fsum(deltas) <= share * DELTA * (1 + 1e-12)


def test_the_target_gets_a_quarter():
    purchase = SchemaPurchase.planned(columns("numeric", "text", "numeric"), budget(), share=0.1)
    assert (purchase.noise_scale / purchase.target_noise_scale) ** 2 == pytest.approx(1.0)
    purchase = SchemaPurchase.planned(columns(*("numeric",) * 9), budget(), share=0.1)
    assert (purchase.noise_scale / purchase.target_noise_scale) ** 2 == pytest.approx(3.0)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_pure_privacy_buys_numbers_for_a_share_of_epsilon(adjacency):
    pure = budget(adjacency, delta=0.0)
    purchase = SchemaPurchase.planned(columns("numeric", "boolean", "numeric"), pure, share=0.2)
    assert purchase.noise == "laplace"
    spent = sum(event.pure_epsilon() for event in purchase.events)
    assert 0.2 * EPSILON * (1 - 1e-9) <= spent <= 0.2 * EPSILON * (1 + 1e-12)
    X = np.column_stack([NUMBERS[:, 0], 100.0 * NUMBERS[:, 1]])
    plan = SchemaPurchase.planned(columns("numeric", "numeric"), pure, share=0.5)
    ledger = Ledger(pure, unit=PrivacyUnit.ROW)
    grant = ledger.grant(lw.Composed(plan.events), purpose="schema")
    rows = UndeclaredTable.from_data(X, LABELS, plan.columns)
    bought = plan.buy(Curator(rows, grant, SeededRandom(3)))
    assert [feature.high for feature in bought.features] == [1.0, 128.0]


def test_pure_privacy_buys_no_categories_and_spends_nothing():
    ledger = Ledger(budget(delta=0.0), unit=PrivacyUnit.ROW)
    before = ledger.entries
    with pytest.raises(InvalidParameter, match=r"delta=0\.0 .* buys no categories, which columns \['w'\] need"):
        SGBDTRegressor(epsilon=EPSILON, delta=0.0).fit(frame(), LABELS, ledger=ledger)
    assert ledger.entries == before


def test_the_ledger_shows_the_purchase_first_and_adds_up(tmp_path):
    model = SGBDTClassifier(epsilon=EPSILON, delta=DELTA, n_estimators=3).fit(frame(), labels_for(SGBDTClassifier))
    draws = [entry.purpose for entry in model.ledger_.entries if isinstance(entry, DrawEntry)]
    assert draws == [
        "schema: bounds of feature 1",
        "schema: bounds of feature 2",
        *["schema: categories of feature 3"] * 2,
        *["schema: categories of the target"] * 2,
        *(f"tree {t + 1}" for t in range(ESTIMATED_CLASSES)),
    ]
    model.ledger_.save(tmp_path / "fit.ledger.jsonl")
    report = verify_ledger(tmp_path / "fit.ledger.jsonl")
    assert (report.grants, report.draws) == (1, 6 + ESTIMATED_CLASSES)
    assert report.verdict == "confirmed"
    assert report.epsilon_readded <= EPSILON
    assert "the schema was estimated within this epsilon and delta" in model.privacy_.assumptions[0]
    assert model.privacy_.epsilon <= EPSILON
    assert model.privacy_.certified


TABLES = {
    "added": (pd.concat([frame(), frame(slice(0, 1))]), np.append(LABELS, 1.0)),
    "removed": (frame(slice(1, None)), LABELS[1:]),
    "a new category": (frame().assign(w=["new", *WORDS[1:]]), LABELS),
    "odd objects": (frame().assign(w=[{}, 3, True, math.inf, None, *WORDS[5:]]), LABELS),
    "outliers": (frame().assign(a=[1e308, -1e308, np.inf, -np.inf, *NUMBERS[4:, 0]]), LABELS * 1e300),
    "all missing": (frame().assign(a=np.nan, w=None), np.full(N_ROWS, np.nan)),
    "no finite label": (frame(), np.full(N_ROWS, np.inf)),
    "one row": (frame(slice(0, 1)), LABELS[:1]),
    "constant": (frame().assign(a=0.0, b=-7.0, w="one"), np.zeros(N_ROWS)),
}


@pytest.mark.slow_after(1)  # fits that buy a schema on each odd table
@pytest.mark.parametrize("change", TABLES)
@pytest.mark.parametrize("kind", [SGBDTRegressor, SGBDTClassifier])
def test_no_table_changes_plan_draws_or_statement_and_none_is_refused(kind, change):
    def fitted(X, y):
        y = y if kind is SGBDTRegressor else np.where(y > 7.5, "much", "little")
        return kind(epsilon=EPSILON, delta=DELTA, n_estimators=2, random_state=0).fit(X, y)

    base, model = fitted(frame(), LABELS), fitted(*TABLES[change])
    # Entry by entry, hashes included.
    assert model.ledger_ == base.ledger_
    assert model.privacy_ == base.privacy_
    assert model.plan_ == base.plan_
    assert np.isfinite(model.predict(frame()) if kind is SGBDTRegressor else model.decision_function(frame())).all()


@pytest.mark.parametrize("kind", [SGBDTRegressor, SGBDTClassifier])
def test_the_order_of_rows_changes_nothing(kind):
    order = np.random.default_rng(3).permutation(N_ROWS)
    y = labels_for(kind)
    one, other = (
        kind(n_estimators=3, random_state=0).fit(X, labels)
        for X, labels in [(frame(), y), (frame().iloc[order], y[order])]
    )
    assert one.schema_ == other.schema_
    for name, array in one.ensemble_.to_arrays().items():
        np.testing.assert_array_equal(array, other.ensemble_.to_arrays()[name])


def classified(y, **options):
    X = NUMBERS[: len(y)]
    return SGBDTClassifier(epsilon=4.0, delta=DELTA, n_estimators=60, random_state=0, **options).fit(X, y), X


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize("label", ["yes", 0, 1, -3])
def test_one_class_is_predicted_everywhere(label):
    with pytest.warns(lw.PrivacyWarning, match="one class"):
        model, X = classified(np.full(N_ROWS, label))
    assert model.classes_.tolist() == [label]
    assert set(model.predict(X).tolist()) == {label}
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((len(X), 1)))


@pytest.mark.slow_after(1)  # many fits and plans
@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.arange(900), [NO_CODE]),
        (np.array([f"id {i}" for i in range(900)]), [NO_TEXT]),
        (np.array([np.nan] * 900, dtype=object), [NO_TEXT]),
        (np.array(["b\0"] * 900, dtype=object), [NO_TEXT]),
    ],
)
def test_no_class_gives_a_placeholder(y, classes):
    with pytest.warns(lw.PrivacyWarning, match="no class showed"):
        model, X = classified(y)
    assert model.classes_.tolist() == classes
    assert set(model.predict(X).tolist()) == set(classes)


def test_all_of_three_classes_are_learned():
    y = np.where(NUMBERS[:, 0] < 0.45, "low", np.where(NUMBERS[:, 0] < 0.9, "mid", "top"))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "(?!random_state)", lw.PrivacyWarning)  # all but that of the seed
        model, X = classified(y)
    assert model.classes_.tolist() == ["low", "mid", "top"]
    assert model.score(X, y) > 0.95


def test_the_classes_of_a_boolean_target_are_public():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PrivacyWarning)  # of the seed
        model, X = classified(NUMBERS[:, 0] > 0.5)
    assert model.classes_.tolist() == [False, True]
    assert model.score(X, NUMBERS[:, 0] > 0.5) > 0.95
    assert not any("target" in entry.purpose for entry in model.ledger_.entries if isinstance(entry, DrawEntry))


@pytest.mark.slow  # many fits and plans
def test_a_bought_schema_serves_and_says_what_it_found(tmp_path):
    model = SGBDTRegressor(epsilon=EPSILON, delta=DELTA, random_state=1).fit(frame(), LABELS)
    a, b, words = model.schema_.features
    assert (a.name, b.name, words.name) == ("a", "b", "w")
    assert (set(words.categories), words.missing, a.missing) == ({"low", "high"}, True, True)
    assert a.high == b.high == 1.0
    assert model.schema_.target.high == 16.0
    assert model.score(frame(), LABELS) > 0.9
    model.save(tmp_path / "model")
    loaded = SGBDTRegressor.load(tmp_path / "model")
    assert loaded.schema is None
    assert (loaded.schema_, loaded.plan_, loaded.privacy_) == (model.schema_, model.plan_, model.privacy_)
    odd = frame(slice(0, 5)).assign(a=[np.nan, 5.0, -5.0, 0.1, 0.2], w=["new", None, "low", 3, "high"])
    np.testing.assert_array_equal(loaded.predict(odd), model.predict(odd))
    assert clone(loaded).get_params()["schema"] is None


def test_a_bought_schema_of_numbers_is_gaussian_and_one_of_words_is_not():
    def ledger():
        return Ledger(budget(), unit=PrivacyUnit.ROW, filter=GDPFilter())

    model = SGBDTRegressor(epsilon=EPSILON, delta=DELTA, n_estimators=2)
    assert model.fit(NUMBERS, LABELS, ledger=ledger()).privacy_.method == "profile"
    refused = ledger()
    with pytest.raises(UnsupportedEvent):
        model.fit(frame(), LABELS, ledger=refused)
    assert len(refused.entries) == 1


@pytest.mark.slow  # calibrates plans that buy a schema
def test_a_share_that_leaves_the_trees_nothing_is_refused_before_anything_is_spent():
    ledger = Ledger(budget(), unit=PrivacyUnit.ROW)
    with pytest.raises(CalibrationFailed):
        SGBDTRegressor(epsilon=EPSILON, delta=DELTA, schema_share=0.99).fit(frame(), LABELS, ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.slow  # many fits and plans
@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out"])
def test_an_individual_filter_and_a_purchase_share_one_budget(adjacency):
    options = {"epsilon": EPSILON, "delta": DELTA, "adjacency": adjacency, "n_estimators": 20, "extra_trees": 5}
    for kinds, more in [(("numeric", "text"), {}), (("numeric",), {"filter": "renyi", "subsample": 0.2})]:
        plan = SGBDTRegressor(**options, **more).make_plan(columns(*kinds))
        assert 0.9999 * EPSILON <= price(plan.event).quote(DELTA).epsilon <= EPSILON
    with pytest.raises(InvalidParameter, match=r"'renyi' .* holds no delta, .* columns \['x1', 'y'\] cost"):
        SGBDTClassifier(**options, filter="renyi").make_plan(columns("numeric", "text", target="codes"))


def test_a_plan_survives_its_record():
    for kinds, target in itertools.product([("numeric", "text"), ("boolean",)], ["numeric", "codes"]):
        purchase = SchemaPurchase.planned(columns(*kinds, target=target), budget(), share=0.3)
        assert SchemaPurchase.from_record(purchase.to_record()) == purchase


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"noise": "none"}, "noise='none'"),
        ({"noise_scale": 0.0}, "noise_scale=0"),
        ({"target_noise_scale": math.nan}, "target_noise_scale=nan"),
        ({"key_delta": 0.0}, "key_delta=0"),
        ({"noise": "laplace"}, "noise='laplace' must be 'gaussian' where categories are bought"),
    ],
)
def test_a_purchase_that_makes_no_sense_is_refused(change, words):
    with pytest.raises(InvalidParameter, match=words):
        dataclasses.replace(SchemaPurchase.planned(columns("text"), budget(), share=0.1), **change)


EDGES = bin_edges(1)


@pytest.mark.parametrize("per_octave", [1, 2, 4])
def test_bins_are_public_symmetric_and_end_at_powers_of_two(per_octave):
    edges = bin_edges(per_octave)
    assert edges == tuple(-edge for edge in reversed(edges))
    assert (edges[-1], min(edge for edge in edges if edge > 0)) == (2.0**40, 2.0**-20)
    ratios = [b / a for a, b in itertools.pairwise(edges) if a > 0]
    assert len(ratios) == 60 * per_octave
    assert 1.0 < max(ratios) <= 1.0 + 1.0 / per_octave


@pytest.mark.parametrize(("rows", "bins"), [(None, 2), (100, 1), (800, 2), (10**5, 4)])
def test_more_rows_to_a_stddev_of_noise_make_finer_bins(rows, bins):
    purchase = SchemaPurchase.planned(columns("numeric"), budget(), share=0.1, expected_rows=rows)
    assert purchase.bins_per_octave(0) == bins
    # How fine they are is no matter of privacy: one row moves one count.
    assert purchase.events == SchemaPurchase.planned(columns("numeric"), budget(), share=0.1).events


COUNTS = st.lists(st.integers(-400, 4000), min_size=len(EDGES) - 1, max_size=len(EDGES) - 1)


@settings(max_examples=30)
@given(COUNTS, st.floats(0.02, 1000.0))
def test_the_likely_range_is_made_of_edges_and_holds_every_full_bin(counts, stddev):
    counts = np.array(counts, dtype=float)
    low, high = likely_range(counts, EDGES, per_bin=1.25 * stddev, full=5.5 * stddev)
    first, last = EDGES.index(low), EDGES.index(high) - 1
    assert first <= last
    full = np.flatnonzero(counts >= 5.5 * stddev)
    assert ((full >= first) & (full <= last)).all()
    # No run of bins has a larger sum than what is inside; by trying all runs.
    gains = np.concatenate([[0.0], np.cumsum(counts - 1.25 * stddev)])
    runs = np.triu(gains[None, :] - gains[:, None], 1)
    assert runs[first : last + 2, first : last + 2].max() == pytest.approx(runs.max())


@pytest.mark.parametrize(("low", "high"), [(0.3, 0.9), (100.0, 250.0), (-50.0, -20.0), (-3.0, 40.0), (1e-9, 1e-8)])
def test_noise_does_not_widen_the_range_of_enough_rows(low, high):
    """4000 rows, noise of 30: the range holds the bulk, and is rarely three bins too wide."""
    values = GENERATOR.uniform(low, high, 4000)
    exact = np.histogram(values, EDGES)[0].astype(float)
    filled = np.flatnonzero(exact)
    wide = 0
    for _ in range(60):
        noisy = exact + np.rint(GENERATOR.normal(0.0, 30.0, exact.size))
        found = likely_range(noisy, EDGES, per_bin=1.25 * 30.0, full=5.5 * 30.0)
        assert np.mean((values >= found[0]) & (values <= found[1])) > 0.85
        wide += EDGES.index(found[0]) < filled[0] - 2 or EDGES.index(found[1]) > filled[-1] + 3
    assert wide <= 5


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_a_range_is_not_ruined_by_a_far_empty_bin(noise):
    """A bulk in three bins, noise a tenth of it, 3000 columns: no range reaches a thousand times too far."""
    rng = np.random.default_rng(7)
    edges = bin_edges(2)
    exact = np.zeros(len(edges) - 1)
    exact[edges.index(4.0) : edges.index(4.0) + 3] = 1000.0
    stddev = 100.0 * (1.0 if noise == "gaussian" else math.sqrt(2.0))
    draw = rng.normal if noise == "gaussian" else rng.laplace
    for _ in range(3000):
        counts = exact + np.rint(draw(0.0, 100.0, exact.size))
        low, high = likely_range(counts, edges, per_bin=PER_BIN * stddev, full=SURELY[noise] * 100.0)
        assert -5000.0 < low <= 4.0 < 8.0 <= high < 5000.0


TEXT = st.text(max_size=2).filter(lambda text: not text.endswith("\0"))  # such are no categories
CLASS = st.one_of(TEXT, st.integers(-3, 3), st.sampled_from([0.5, NO_TEXT, NO_CODE]))


@pytest.mark.slow  # fits that buy a schema
@given(st.dictionaries(CLASS, st.integers(1, 100), max_size=5), st.booleans(), st.integers(2, 5))
def test_classes_sort_and_are_the_commonest_that_were_found(found, text, most):
    classes = some_classes(tuple(found.items()), text=text, most=most)
    lw.Categorical("y", classes)  # distinct
    if not found:
        assert classes == ((NO_TEXT if text else NO_CODE),)
        return
    strings = isinstance(max(found, key=found.get), str)
    alike = {key: count for key, count in found.items() if isinstance(key, str) is strings}
    assert set(classes) <= set(alike)
    assert len(classes) == min(most, len(alike))
    assert sorted(map(found.get, classes)) == sorted(alike.values())[-len(classes) :]


LABEL = st.one_of(st.none(), st.floats(), st.integers(), st.text(max_size=2), st.booleans())


@pytest.mark.slow  # calibrates plans that buy a schema
@settings(max_examples=4, deadline=None)
@given(st.lists(st.tuples(st.floats(), LABEL, LABEL), min_size=1, max_size=12))
def test_after_the_grant_nothing_is_refused(rows):
    X = pd.DataFrame({"n": [r[0] for r in rows], "w": pd.Series([r[1] for r in rows], dtype=object)})
    objects = np.empty(len(rows), dtype=object)
    objects[:] = [r[2] for r in rows]
    numbers = np.array([r[0] for r in rows])
    for kind, y in ((SGBDTRegressor, numbers), (SGBDTClassifier, objects)):
        model = kind(epsilon=1000.0, delta=0.01, n_estimators=1, max_depth=1, random_state=0).fit(X, y)
        finite = X.assign(n=np.nan_to_num(X["n"].to_numpy()))
        assert len(model.predict(finite)) == len(rows)
