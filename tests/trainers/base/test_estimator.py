"""What surrounds a fit: refusals that cost nothing, ledgers that add up, statements, and models on disk."""

import hashlib
import io
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, GDPFilter, Ledger, PrivacyUnit, RenyiFilter, ZCDPFilter
from ledgerwood.accounting.ledger.state import DrawEntry, GrantEntry
from ledgerwood.curator import Table, TypedColumns, encode_features
from ledgerwood.errors import (
    AdjacencyMismatch,
    BudgetExceeded,
    CalibrationFailed,
    InvalidParameter,
    PrivacyError,
    SchemaError,
    UnsupportedEvent,
)
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPXGBoostClassifier,
    FederatedGBDTClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from ledgerwood.verification import verify_ledger

FEATURES = (lw.Numeric("a", 0.0, 1.0), lw.Numeric("b", 0.0, 1.0))
SCHEMA = lw.Schema(features=FEATURES, target=lw.Numeric("y", 0.0, 10.0))
CLASSES = lw.Schema(features=FEATURES, target=lw.Categorical("y", (0, 1)))
N_ROWS = 1_013
X = np.random.default_rng(0).uniform(0, 1, (N_ROWS, 2))
Y = np.round(X[:, 0] * 9, 3)
LABELS = (Y > 4).astype(int)
SMALL = {"n_estimators": 2, "max_depth": 2, "epsilon": 1.0, "delta": 1e-6}


def regressor(**options):
    return SGBDTRegressor(**(SMALL | {"schema": SCHEMA} | options))


def classifier(**options):
    return SGBDTClassifier(**(SMALL | {"schema": CLASSES} | options))


def ledger_of(epsilon=10.0, delta=1e-4, adjacency=Adjacency.ADD_REMOVE, unit=PrivacyUnit.ROW, **options):
    return Ledger(Budget(epsilon=epsilon, delta=delta, adjacency=adjacency), unit=unit, **options)


def with_value(value, row=3, column=1):
    spoiled = X.copy()
    spoiled[row, column] = value
    return spoiled


def with_label(value):
    return np.where(np.arange(N_ROWS) == 5, value, Y)


BAD_PARAMETERS = [
    ({"schema": None, "schema_share": 1.0}, InvalidParameter, r"schema_share=1\.0 must be in \(0, 1\)"),
    ({"schema": None, "schema_share": math.nan}, InvalidParameter, "schema_share=nan"),
    ({"schema": "wide"}, InvalidParameter, "schema='wide' must be a ledgerwood.Schema"),
    ({"schema": CLASSES}, SchemaError, "regressor needs a Numeric target"),
    ({"schema": lw.Schema.uniform(0, 1)}, SchemaError, "regressor needs a Numeric target .* target=None"),
    ({"epsilon": 0.0}, InvalidParameter, r"epsilon=0\.0 must be > 0 \(unit: nats\)"),
    ({"epsilon": -1.0}, InvalidParameter, r"epsilon=-1\.0"),
    ({"epsilon": math.nan}, InvalidParameter, "epsilon=nan"),
    ({"epsilon": math.inf}, InvalidParameter, "epsilon=inf"),
    ({"delta": 1.0}, InvalidParameter, r"delta=1\.0 must be in \[0, 1\)"),
    ({"delta": -1e-9}, InvalidParameter, "delta=-1e-09"),
    ({"delta": 0.0}, CalibrationFailed, "delta"),
    ({"subsample": 0.0}, InvalidParameter, r"subsample=0\.0 must be in \(0, 1\]"),
    ({"subsample": 1.01}, InvalidParameter, r"subsample=1\.01"),
    ({"n_estimators": 0}, InvalidParameter, "n_estimators=0"),
    ({"n_estimators": 2.5}, InvalidParameter, r"n_estimators=2\.5"),
    ({"max_depth": 21}, InvalidParameter, "max_depth=21"),
    ({"clip": 0.0}, InvalidParameter, r"clip=0\.0"),
    ({"clip": 1e30}, InvalidParameter, r"clip=1e\+30"),
    ({"preset": "best"}, InvalidParameter, "preset='best' must be one of 'default', 'paper'"),
    ({"leaf_noise": "none"}, InvalidParameter, "leaf_noise='none' must be one of 'dynamic', 'static'"),
    ({"lambda_rule": "max"}, InvalidParameter, "lambda_rule='max'"),
    ({"initial_score": "mean"}, InvalidParameter, "initial_score='mean'"),
    ({"leaf_statistic": "curvature"}, InvalidParameter, "needs loss='logistic'"),
    ({"leaf_noise": "static", "reg_lambda": "noise"}, InvalidParameter, "give reg_lambda as a number"),
    ({"adjacency": "bounded"}, InvalidParameter, r"adjacency='bounded' must be .*'add-remove', 'zero-out', 'replace"),
    ({"adjacency": "replace-one", "subsample": 0.5}, UnsupportedEvent, "replace-one"),
    ({"initial_score": "public_count", "expected_rows": 10}, AdjacencyMismatch, "private under add-remove"),
    ({"expected_rows": 0}, InvalidParameter, "expected_rows=0"),
    ({"random_state": "seed"}, InvalidParameter, "random_state='seed'"),
    ({"random_state": True}, InvalidParameter, "random_state=True"),
]  # fmt: skip
BAD_DATA = [
    (X[:, :1], Y, "X has 1 columns, but the schema declares 2"),
    (np.column_stack([X, X]), Y, "X has 4 columns, but the schema declares 2"),
    (X[:, :0], Y, "0 feature"),
    (X[0], Y, "Expected 2D array"),
    (X, Y[:-1], "inconsistent numbers of samples: X and y differ"),
    (X, Y.astype(str), "a regressor needs numbers"),
    (X, Y.astype(complex), "Complex data not supported"),
    (X, None, "requires y"),
    (sparse.coo_matrix(X), Y, "Sparse data of format 'coo'"),
    (sparse.csr_matrix(X), Y[:-1], "inconsistent numbers of samples: X and y differ"),
    (sparse.csr_matrix(X), sparse.csr_matrix(Y[:, np.newaxis]), "y is a csr_matrix"),
]


@pytest.mark.parametrize(("options", "error", "words"), BAD_PARAMETERS)
def test_bad_parameters_are_named_and_cost_nothing(options, error, words):
    ledger = ledger_of(delta=0.1)
    before = ledger.entries
    with pytest.raises(error, match=words):
        regressor(**options).fit(X, Y, ledger=ledger)
    assert ledger.entries == before


@pytest.mark.parametrize(
    ("odd_X", "odd_y"),
    [
        *((with_value(value), Y) for value in (np.nan, np.inf, -np.inf)),
        *((X, with_label(value)) for value in (10.5, -0.5, np.nan, np.inf)),
        (X[:0], Y[:0]),
    ],
)
def test_odd_rows_are_fitted_like_others(odd_X, odd_y):
    model = regressor().fit(odd_X, odd_y)
    assert np.isfinite(model.predict(X)).all()
    assert model.privacy_.epsilon == regressor().fit(X, Y).privacy_.epsilon


@pytest.mark.parametrize(("bad_X", "bad_y", "words"), BAD_DATA)
def test_bad_data_is_named_and_costs_nothing(bad_X, bad_y, words):
    ledger = ledger_of()
    before = ledger.entries
    with pytest.raises((ValueError, TypeError), match=words) as refused:
        regressor().fit(bad_X, bad_y, ledger=ledger)
    assert ledger.entries == before
    # Each says where the owner of the rows sees the rest, once.
    assert str(refused.value).count("schema.check") == 1
    assert not SCHEMA.check(bad_X, bad_y).ok


@pytest.mark.slow_after(1)  # calibrates plans that buy a schema
@pytest.mark.parametrize("kind", [SGBDTClassifier, DPBoostClassifier, DPXGBoostClassifier, FederatedGBDTClassifier])
@pytest.mark.parametrize(("labels", "trees"), [("text", 32), ("codes", 32), ("boolean", 5)])
def test_a_plan_for_estimated_classes_says_how_many_trees_it_has(kind, labels, trees):
    """Two classes or more: the trees are paid for before the classes are known."""
    values = {"text": np.array(["a", "b"] * 20), "codes": np.arange(40) % 2, "boolean": np.arange(40) % 2 == 0}
    columns = TypedColumns.of(X[:40], values[labels], numeric_target=False)
    plan = kind(epsilon=8.0, delta=1e-5, n_estimators=5).make_plan(columns)
    assert plan.n_estimators == trees
    assert f"={trees}," in repr(plan)
    words = " ".join(" ".join(each.__doc__ or "" for each in kind.__mro__).split())
    assert "Where the classes are privately estimated" in words
    assert "32 for any smaller number" in words


def test_targets_that_cannot_be_learned_cost_nothing():
    ledger = ledger_of()
    before = ledger.entries
    with pytest.raises(SchemaError, match="declares 1 classes"):
        classifier(schema=lw.Schema(features=FEATURES, target=lw.Categorical("y", (0,)))).fit(X, LABELS, ledger=ledger)
    with pytest.raises(SchemaError, match="classifier needs a Categorical target"):
        classifier(schema=SCHEMA).fit(X, LABELS, ledger=ledger)
    assert ledger.entries == before


@pytest.mark.parametrize(
    ("ledger", "error", "words"),
    [
        (ledger_of(epsilon=0.5), BudgetExceeded, "epsilon"),
        (ledger_of(delta=1e-7), BudgetExceeded, "delta"),
        (ledger_of(adjacency=Adjacency.ZERO_OUT), AdjacencyMismatch, "add-remove, the ledger under zero-out"),
        (ledger_of(unit=PrivacyUnit.USER), AdjacencyMismatch, "protects a user, and this fit a row"),
        (ledger_of(epsilon=0.5, filter=GDPFilter()), BudgetExceeded, "mu"),
    ],
)
def test_a_ledger_that_does_not_fit_refuses_and_is_unchanged(ledger, error, words):
    before = ledger.entries
    model = regressor()
    with pytest.raises(error, match=words):
        model.fit(X, Y, ledger=ledger)
    assert ledger.entries == before
    assert "ensemble_" not in vars(model)


def test_fits_on_one_ledger_add_up_until_one_is_refused():
    ledger = ledger_of(epsilon=2.5, delta=1e-5)
    first, second = regressor().fit(X, Y, ledger=ledger), classifier(epsilon=1.5).fit(X, LABELS, ledger=ledger)
    charges = [entry.charge.epsilon for entry in ledger.entries if isinstance(entry, GrantEntry)]
    assert charges == [first.privacy_.epsilon, second.privacy_.epsilon]
    assert ledger.spent().epsilon == pytest.approx(sum(charges), rel=1e-12)
    assert "the ledger has the total" in first.privacy_.assumptions[-1]
    before = ledger.entries
    with pytest.raises(BudgetExceeded, match="epsilon") as refusal:
        regressor(epsilon=0.1).fit(X, Y, ledger=ledger)
    assert refusal.value.requested["epsilon"] > refusal.value.remaining["epsilon"]
    assert ledger.entries == before
    report = verify_ledger(ledger.record(), head=second.privacy_.ledger_head)
    assert report.epsilon_readded == pytest.approx(sum(charges), rel=1e-9)
    assert report.grants == 2
    # The first model keeps the ledger as it stood after its own fit.
    assert verify_ledger(first.ledger_, head=first.privacy_.ledger_head).grants == 1


def test_a_gaussian_ledger_takes_full_batch_plans():
    ledger = ledger_of(epsilon=2.0, delta=1e-6, filter=GDPFilter())
    model = regressor().fit(X, Y, ledger=ledger)
    regressor().fit(X, Y, ledger=ledger)
    # Two Gaussian plans of epsilon 1 each compose to less than 2: the filter adds mu squared.
    assert 1.0 < ledger.spent().epsilon < 2.0
    assert model.privacy_.epsilon <= 1.0
    before = ledger.entries
    with pytest.raises(UnsupportedEvent):
        regressor(subsample=0.1).fit(X, Y, ledger=ledger)
    assert ledger.entries == before


@pytest.mark.parametrize("filter_", [ZCDPFilter(), RenyiFilter(order=20.0)])
def test_ledgers_of_divergences_take_several_fits(filter_):
    ledger = ledger_of(epsilon=4.0, delta=1e-6, filter=filter_)
    model = regressor().fit(X, Y, ledger=ledger)
    regressor().fit(X, Y, ledger=ledger)
    assert 1.0 < ledger.spent().epsilon < 4.0
    assert verify_ledger(model.ledger_).filter == filter_.name


def test_a_ledger_file_holds_the_grant_before_the_rows_are_read(tmp_path, monkeypatch):
    path = tmp_path / "run.jsonl"
    terms = {"budget": Budget(epsilon=1.0, delta=1e-6, adjacency=Adjacency.ADD_REMOVE), "unit": PrivacyUnit.ROW}

    def crash(*_):
        raise RuntimeError("power failure")

    monkeypatch.setattr(Table, "statistic", crash)
    with lw.Ledger.open(path, **terms) as ledger, pytest.raises(RuntimeError, match="power failure"):
        regressor().fit(X, Y, ledger=ledger)
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert kinds[:2] == ["open", "grant"]
    # The budget is lost, and not the privacy: there is nothing left for a redo.
    monkeypatch.undo()
    with lw.Ledger.open(path) as ledger, pytest.raises(BudgetExceeded):
        regressor().fit(X, Y, ledger=ledger)


def test_a_fit_of_its_own_says_that_it_covers_this_fit_only():
    privacy = regressor().fit(X, Y).privacy_
    assert privacy.epsilon <= 1.0
    assert (privacy.delta, privacy.unit, privacy.certified) == (1e-6, PrivacyUnit.ROW, True)
    assert "this fit only" in privacy.assumptions[-1]
    assert any("names and types of the columns are public" in line for line in privacy.assumptions)


@pytest.mark.parametrize("seed", [0, np.int64(7), np.random.RandomState(3)])
def test_repeatable_noise_protects_nobody_and_says_so(seed):
    model = regressor(random_state=seed).fit(X, Y)
    assert model.privacy_.epsilon == math.inf
    assert (model.privacy_.randomness, model.ledger_.randomness) == ("test", "test")
    assert {entry.randomness for entry in model.ledger_.entries if isinstance(entry, DrawEntry)} == {"test"}
    assert verify_ledger(model.ledger_).randomness == "test"
    again = regressor(random_state=0).fit(X, Y)
    assert (again.predict(X) == regressor(random_state=0).fit(X, Y).predict(X)).all()


def test_secure_noise_differs_between_fits():
    one, other = regressor().fit(X, Y), regressor().fit(X, Y)
    assert one.privacy_.randomness == "secure"
    assert not np.array_equal(one.ensemble_.trees[0].values, other.ensemble_.trees[0].values)


def test_a_clone_cannot_print_budget():
    ledger = ledger_of(epsilon=1.0, delta=1e-6)
    model = regressor().fit(X, Y, ledger=ledger)
    copy = clone(model)
    assert "ledger_" not in vars(copy)
    with pytest.raises(BudgetExceeded):
        copy.fit(X, Y, ledger=ledger)


def saved(model, folder):
    model.save(folder)
    return folder


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (regressor, {}),
        (regressor, {"n_estimators": np.int64(3), "expected_rows": 500, "adjacency": Adjacency.ZERO_OUT}),
        (classifier, {"random_state": 5, "initial_score": "laplace"}),
        (classifier, {"max_depth": 0, "schema": lw.Schema.uniform(0, 1, target=lw.Categorical("y", (0, 1)))}),
    ],
)
def test_a_loaded_model_predicts_bit_for_bit(kind, options, tmp_path):
    model = kind(**options)
    model.fit(X, Y if kind is regressor else LABELS)
    folder = saved(model, tmp_path / "model")
    assert sorted(path.name for path in folder.iterdir()) == ["arrays.npz", "ledger.jsonl", "model.json"]
    loaded = type(model).load(folder)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert (loaded.plan_, loaded.privacy_, loaded.ledger_) == (model.plan_, model.privacy_, model.ledger_)
    assert loaded.schema_ == model.schema_
    assert loaded.n_features_in_ == 2
    given = {k: v for k, v in model.get_params().items() if k not in ("random_state", "adjacency", "schema")}
    assert {k: loaded.get_params()[k] for k in given} == given
    assert verify_ledger(loaded.ledger_, head=loaded.privacy_.ledger_head).grants == 1
    if kind is classifier:
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(loaded.classes_, model.classes_)


def test_a_data_frames_columns_are_remembered(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = regressor().fit(frame, Y)
    loaded = SGBDTRegressor.load(saved(model, tmp_path / "model"))
    assert list(loaded.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(loaded.predict(frame[["a", "b"]]), model.predict(frame))


def archive(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def vouched(folder, arrays):
    """Other arrays, and a model.json that vouches for them."""
    (folder / "arrays.npz").write_bytes(arrays)
    rewritten(folder, lambda r: r.update(arrays_sha256=hashlib.sha256(arrays).hexdigest()))


def rewritten(folder, change):
    record = json.loads((folder / "model.json").read_text())
    change(record)
    (folder / "model.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: rewritten(f, lambda r: r.update(format=99)), "format 99; expected SGBDTRegressor of 1"),
        (lambda f: rewritten(f, lambda r: r.update(estimator="Other")), "holds a Other"),
        (lambda f: rewritten(f, lambda r: r.pop("plan")), "not a saved SGBDTRegressor"),
        (lambda f: rewritten(f, lambda r: r["parameters"].update(surprise=1)), "surprise"),
        (lambda f: rewritten(f, lambda r: r.update(n_features_in=1)), "test more features than its 1"),
        (lambda f: (f / "arrays.npz").unlink(), "not a saved SGBDTRegressor"),
        (lambda f: vouched(f, b"no zip file"), "not a saved SGBDTRegressor"),
        (lambda f: vouched(f, pickle.dumps({"initial_score": 0.0})), "not a saved SGBDTRegressor"),
        (lambda f: vouched(f, archive(initial_score=np.array([{"a": "object"}], dtype=object))), "allow_pickle=False"),
        (lambda f: (f / "model.json").write_text("{"), "not a saved SGBDTRegressor"),
        (lambda f: (f / "model.json").write_bytes(b"\xff\xfe"), "not a saved SGBDTRegressor"),
    ],
)
def test_a_folder_that_is_not_a_model_is_refused(spoil, words, tmp_path):
    folder = saved(regressor(features_per_tree="all", random_state=1).fit(X, Y), tmp_path / "model")
    spoil(folder)
    with pytest.raises(InvalidParameter, match=words):
        SGBDTRegressor.load(folder)


def test_a_model_of_the_other_kind_or_an_altered_ledger_is_refused(tmp_path):
    folder = saved(regressor().fit(X, Y), tmp_path / "model")
    with pytest.raises(InvalidParameter, match="holds a SGBDTRegressor of format 1; expected SGBDTClassifier"):
        SGBDTClassifier.load(folder)
    path = folder / "ledger.jsonl"
    text = path.read_text()
    path.write_text("".join(text.splitlines(keepends=True)[:-1]))
    with pytest.raises(lw.errors.LedgerCorrupted, match="entries were cut off"):
        SGBDTRegressor.load(folder)
    path.write_text(text.replace('"purpose":"tree 1"', '"purpose":"tree 9"'))
    with pytest.raises(lw.errors.LedgerCorrupted, match="entry"):
        SGBDTRegressor.load(folder)
    with pytest.raises(InvalidParameter, match="not a saved"):
        SGBDTRegressor.load(tmp_path / "nowhere")


def numbers_in(value):
    """Every number in a nest of JSON values."""
    if isinstance(value, dict):
        for each in value.values():
            yield from numbers_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from numbers_in(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


SEED = 987_654_321


def exact_statistics(model):
    """What must not be on disk: the number of rows, sums and means of labels, and the counts of each leaf."""
    scaled = Y / 5.0 - 1.0
    cells = encode_features(X, model.schema_, bins=model.plan_.max_bins)
    counts = {int(c) for tree in model.ensemble_.trees for c in np.bincount(tree.structure.route(cells)) if c > 40}
    return counts | {N_ROWS, Y.sum(), Y.mean(), scaled.sum(), scaled.mean(), Y.min(), Y.max(), X.min(), X.max(), SEED}


def test_saved_files_hold_released_values_only(tmp_path):
    model = regressor(random_state=SEED, initial_score="moments").fit(X, Y)
    folder = saved(model, tmp_path / "model")
    lines = (folder / "ledger.jsonl").read_text().splitlines()
    found = list(numbers_in([json.loads((folder / "model.json").read_text()), *map(json.loads, lines)]))
    with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
        assert set(arrays) == {"initial_score", "feature", "split", "equals", "values", "weights", "noise"}
        assert all(N_ROWS not in array.shape for array in arrays.values())
        released = ("values", "initial_score", "weights", "noise")
        found += np.concatenate([np.ravel(arrays[name]) for name in released]).tolist()
    secrets = exact_statistics(model)
    assert len(secrets) > 10
    assert not {number for number in found if any(math.isclose(number, s, rel_tol=1e-9) for s in secrets)}
    assert not any(str(SEED) in path.read_text() for path in (folder / "model.json", folder / "ledger.jsonl"))


def reachable(value, seen):
    """Everything that a model refers to, slots included."""
    if id(value) in seen or isinstance(value, type | str | bytes | int | float | None.__class__):
        return
    seen[id(value)] = value
    children = [] if not isinstance(value, list | tuple | set | dict) else list(value)
    children += list(value.values()) if isinstance(value, dict) else []
    children += list(vars(value).values()) if hasattr(value, "__dict__") else []
    for slots in (getattr(kind, "__slots__", ()) for kind in type(value).__mro__):
        children += [getattr(value, name) for name in slots if isinstance(name, str) and hasattr(value, name)]
    for child in children:
        reachable(child, seen)


@pytest.mark.parametrize(("kind", "y"), [(regressor, Y), (classifier, LABELS)])
def test_a_fitted_model_refers_to_no_row(kind, y):
    model = kind().fit(X, y)
    seen = {}
    reachable(vars(model), seen)
    arrays = [value for value in seen.values() if isinstance(value, np.ndarray)]
    assert len(arrays) > 4
    assert all(N_ROWS not in (*array.shape, array.size) for array in arrays)
    assert all(array.base is None or array.base.size < N_ROWS for array in arrays)
    assert not any(
        type(value).__name__ in ("Table", "Curator", "CuratorRound", "SecureRandom") for value in seen.values()
    )
    assert len(pickle.dumps(model)) < 100_000


def test_prediction_checks_its_columns():
    model = regressor().fit(X, Y)
    for bad, words in ((X[:, :1], "1 features"),):
        with pytest.raises(ValueError, match=words):
            model.predict(bad)
    # No value is refused, as in a fit: one that is missing changes its own row's prediction only.
    kept = np.arange(N_ROWS) != 3
    np.testing.assert_array_equal(model.predict(with_value(np.nan))[kept], model.predict(X)[kept])
    assert model.predict(X[:0]).shape == (0,)
    # A far value is clamped to the public range.
    assert model.predict(with_value(1e30))[3] == model.predict(with_value(1.0))[3]


def test_a_refused_refit_with_fewer_columns_leaves_a_model_that_reads_its_own_rows_only():
    schema = lw.Schema.uniform(0, 1, target=lw.Numeric("y", 0, 10))
    model = regressor(schema=schema, n_estimators=20).fit(np.column_stack([X, X]), Y)
    with pytest.raises(SchemaError):
        model.fit(X, Y[1:])
    with pytest.raises(InvalidParameter, match=r"len\(cells\)=2"):
        model.predict(X)


def test_a_refit_that_is_interrupted_leaves_no_model_beside_another_ones_statement(monkeypatch):
    model = regressor(epsilon=0.1).fit(X, Y)
    before = dict(vars(model))

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("ledgerwood.trainers.base.trainer.privacy_statement", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(epsilon=9.0).fit(X, Y)
    for name in ("ensemble_", "plan_", "privacy_", "ledger_", "schema_"):
        assert vars(model)[name] is before[name]


def test_a_progress_bar_is_shown_on_request(capsys):
    regressor(verbose=1).fit(X, Y)
    assert "SGBDTRegressor" in capsys.readouterr().err
    regressor().fit(X, Y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r["privacy"].update(epsilon=1e-9), "is not what its grant costs"),
        (lambda r: r["privacy"].update(epsilon=-1.0), "epsilon=-1.0 must be >= 0"),
        (lambda r: r["privacy"].update(adjacency="replace-one"), "is under replace-one, the plan add-remove"),
        (lambda r: r["privacy"].update(unit="user"), "the statement protects a user, the ledger a row"),
        (lambda r: r["privacy"].update(randomness="nonsense"), "must be 'secure' or 'test'"),
        (lambda r: r["plan"].update(n_estimators=1), "no grant of the model's plan"),
        (lambda r: r["plan"].update(noise_multiplier=1e6), "no grant of the model's plan"),
        (lambda r: r.update(arrays_sha256="0" * 64), "arrays.npz is not the file that model.json was written with"),
    ],
)
def test_a_model_whose_statement_is_not_borne_out_is_refused(change, words, tmp_path):
    folder = saved(regressor().fit(X, Y), tmp_path / "model")
    rewritten(folder, change)
    with pytest.raises(PrivacyError, match=words):
        SGBDTRegressor.load(folder)


def test_a_test_models_statement_cannot_be_made_secure(tmp_path):
    model = regressor(random_state=3).fit(X, Y)
    folder = saved(model, tmp_path / "model")
    rewritten(folder, lambda r: r["privacy"].update(randomness="secure", epsilon=1.0))
    with pytest.raises(PrivacyError, match="draws of randomness 'test'"):
        SGBDTRegressor.load(folder)


def test_a_model_may_follow_a_test_on_its_ledger(tmp_path):
    ledger = ledger_of()
    regressor(random_state=3).fit(X, Y, ledger=ledger)
    model = regressor().fit(X, Y, ledger=ledger)
    assert SGBDTRegressor.load(saved(model, tmp_path / "model")).privacy_ == model.privacy_
