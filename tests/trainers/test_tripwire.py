"""Only the curator reads training rows: tables that raise when any other module of the library looks at a value."""

import types

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.curator import Table, UndeclaredTable
from ledgerwood.errors import BudgetExceeded
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPBoostRegressor,
    DPXGBoostClassifier,
    DPXGBoostRegressor,
    FederatedGBDTClassifier,
    FederatedGBDTRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateSearch,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from ledgerwood.verification import RowsRead, tripwire

SCHEMA = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 1))
CLASSES = lw.Schema.uniform(0, 1, n_features=2, target=lw.Categorical("y", (0, 1)))


def guarded(kind, values, log):
    return tripwire(values, allowed="ledgerwood.curator", kind=kind, log=log)


def data(kind, log, *, classes=False):
    generator = np.random.default_rng(0)
    X, y = generator.uniform(0, 1, (40, 2)), generator.uniform(0, 1, 40)
    y = (y > 0.5).astype(int) if classes else y
    return guarded(kind, X, log), guarded(kind, y, log)


KINDS = [
    (SGBDTRegressor, SCHEMA, {}),
    (SGBDTRegressor, SCHEMA, {"subsample": 0.5, "initial_score": "laplace"}),
    (SGBDTRegressor, SCHEMA, {"subsample": 0.5, "extra_trees": 2}),
    (SGBDTRegressor, SCHEMA, {"subsample": 0.5, "sampling": "allocation"}),
    (SGBDTClassifier, CLASSES, {}),
    (SGBDTClassifier, CLASSES, {"preset": "paper"}),
    (SGBDTRegressor, None, {}),
    (SGBDTClassifier, None, {}),
]

GREEDY = [
    (DPBoostRegressor, SCHEMA, {"preset": "paper"}),
    (DPBoostClassifier, CLASSES, {"trees_per_ensemble": 2, "candidates": "gridless"}),
    (DPBoostRegressor, None, {}),
    (DPXGBoostRegressor, SCHEMA, {"preset": "paper", "min_child_weight_by": "levels"}),
    (DPXGBoostClassifier, CLASSES, {"sketch": "once"}),
    (DPXGBoostRegressor, None, {}),
    (FederatedGBDTRegressor, SCHEMA, {"split_method": "partially_random"}),
    (FederatedGBDTClassifier, CLASSES, {"preset": "tr_batched_ih_ebm"}),
    (FederatedGBDTClassifier, CLASSES, {"split_method": "histogram", "candidates": "quantiles", "n_candidates": 4}),
    (FederatedGBDTRegressor, None, {}),
    (PrivateBoostingRegressor, SCHEMA, {}),
    (PrivateBoostingClassifier, CLASSES, {"noise": "skellam"}),
    (PrivateBoostingRegressor, None, {}),
]


ONE_TREE = [
    (PrivaTreeClassifier, CLASSES, {}),
    (PrivaTreeClassifier, CLASSES, {"preset": "paper", "max_bins": 20, "candidate_bins": 3}),
    (PrivaTreeClassifier, CLASSES, {"preset": "random"}),
    (PrivaTreeClassifier, None, {"delta": 1e-6}),
]


@pytest.mark.slow_after(4)  # traces every line of a fit
@pytest.mark.filterwarnings("ignore:0 classes were bought")
@pytest.mark.parametrize("guard", ["table", "array"])
@pytest.mark.parametrize(("kind", "schema", "options"), [*KINDS, *GREEDY, *ONE_TREE])
def test_a_fit_reads_rows_in_the_curator_only(guard, kind, schema, options):
    log = []
    X, y = data(guard, log, classes=schema is CLASSES or kind in (SGBDTClassifier, PrivaTreeClassifier))
    trees = {} if kind is PrivaTreeClassifier else {"n_estimators": 2}
    model = kind(schema=schema, max_depth=2, **trees, **options).fit(X, y)
    assert {module.split(".")[1] for module in log} <= {"curator"}
    # numpy turns a subclass into a plain array without a word; what is no array at all has to be asked.
    if guard == "table":
        assert log
        log.clear()
        model.predict(X)
        assert {module.split(".")[1] for module in log} == {"curator"}


@pytest.mark.slow_after(2)  # traces every line of a fit
@pytest.mark.parametrize("guard", ["table", "array"])
@pytest.mark.parametrize(
    ("kind", "schema", "options"),
    [kind for kind in KINDS if kind[1] is not None and "sampling" not in kind[2]],  # a stream allocates no rows
)
def test_a_stream_reads_rows_and_keys_in_the_curator_only(guard, kind, schema, options):
    log = []
    X, y = data(guard, log, classes=kind is SGBDTClassifier)
    model = kind(schema=schema, n_estimators=2, max_depth=2, **options)
    for start in (0, 20):
        model.partial_fit(X, y, keys=guarded(guard, np.arange(start, start + 40), log))
    assert {module.split(".")[1] for module in log} <= {"curator"}
    assert guard == "array" or "ledgerwood.curator.inputs.reading" in log


@pytest.mark.parametrize("guard", ["table", "array"])
def test_weights_are_read_in_the_curator_only(guard):
    log = []
    X, y = np.full((40, 2), 0.5), np.full(40, 0.5)  # the weights alone are watched
    schema = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 1), weight_bound=2)
    SGBDTRegressor(schema=schema, n_estimators=2).fit(X, y, sample_weight=guarded(guard, np.linspace(0, 2, 40), log))
    assert {module.split(".")[1] for module in log} <= {"curator"}
    assert guard == "array" or "ledgerwood.curator.inputs.reading" in log


@pytest.mark.parametrize("guard", ["table", "array"])
def test_a_search_reads_rows_in_the_curator_only(guard):
    log = []
    X, y = data(guard, log)
    PrivateSearch(SGBDTRegressor(), [{"n_estimators": 1}, {"n_estimators": 2}], schema=SCHEMA).fit(X, y)
    assert {module.split(".")[1] for module in log} <= {"curator"}


LEAKS = {
    "a mean": "X.mean() if hasattr(X, 'mean') else sum(row[0] for row in X)",
    "a ufunc": "np.add(X, 1)",
    "a function": "np.median(X)",
    "one cell": "X[0]",
    "a loop": "[row for row in X]",
    "a conversion": "np.array(X)",
    "a label": "np.unique(y)",
    "a view": "np.min(y)",
    "a key": "keys[0]",
    "a list": "X.tolist() if hasattr(X, 'tolist') else list(X)",
    "bytes": "X.tobytes() if hasattr(X, 'tobytes') else bytes(np.asarray(X))",
    "a largest place": "y.argmax() if hasattr(y, 'argmax') else np.argmax(y)",
    "a copy": "X.copy() if hasattr(X, 'copy') else np.array(X)",
    "a pickle": "__import__('pickle').dumps(X) if hasattr(X, 'mean') else np.array(X)",
    "a walk": "next(X.flat) if hasattr(X, 'flat') else next(iter(X))",
}


@pytest.mark.parametrize(
    ("guard", "leak"),
    [("table", leak) for leak in LEAKS] + [("array", leak) for leak in LEAKS if leak != "a conversion"],
)
def test_a_trainer_that_peeks_is_caught(guard, leak):
    """The tripwire can fail: the same guard, and a trainer of the library's own package that reads one value."""
    module = types.ModuleType("ledgerwood.trainers.leaky")
    module.np = np
    code = f"def fit(model, X, y, keys):\n    {LEAKS[leak]}\n    return model.partial_fit(X, y, keys=keys)\n"
    exec(compile(code, "leaky.py", "exec"), module.__dict__)
    X, y = data(guard, [])
    with pytest.raises(RowsRead, match="trainers.leaky has read rows"):
        module.fit(SGBDTRegressor(schema=SCHEMA, n_estimators=1), X, y, guarded(guard, np.arange(40), []))


@pytest.mark.parametrize(
    ("schema", "rows", "asked"),
    [
        (SCHEMA, Table, ("sample", "statistic")),
        (None, UndeclaredTable, ("sample", "statistic", "key_counts", "encoded")),
    ],
)
@pytest.mark.parametrize("guard", ["table", "array"])
def test_a_refused_grant_reads_nothing_after_the_owners_check(guard, schema, rows, asked, monkeypatch):
    """The check of X and y is the owner's, comes first, and is all that a refused fit has done."""
    log, after_check = [], []
    X, y = data(guard, log)
    checked = rows.from_data.__func__

    def check_then_watch(*args, **kwargs):
        table = checked(rows, *args, **kwargs)
        log.clear()
        # The rows that were taken over, too: whatever is asked of the table from here on is written down.
        for name in asked:
            monkeypatch.setattr(rows, name, lambda *_, name=name: after_check.append(name))
        return table

    monkeypatch.setattr(rows, "from_data", check_then_watch)
    ledger = Ledger(Budget(epsilon=0.1, delta=1e-6, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    before = ledger.entries
    with pytest.raises(BudgetExceeded):
        SGBDTRegressor(epsilon=1.0, delta=1e-6, schema=schema, n_estimators=2).fit(X, y, ledger=ledger)
    assert log == after_check == []
    assert ledger.entries == before


def test_the_draw_is_on_the_ledger_before_its_rows_are_read(monkeypatch):
    """Budget before data: at each read, the last entry of the ledger is the draw that pays for it."""
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-6, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    seen = []
    for name in ("sample", "statistic"):
        original = getattr(Table, name)

        def watched(*args, name=name, original=original):
            seen.append((name, ledger.entries[-1].purpose))
            return original(*args)

        monkeypatch.setattr(Table, name, watched)
    X, y = np.full((9, 2), 0.5), np.full(9, 0.5)
    model = SGBDTRegressor(schema=SCHEMA, n_estimators=2, initial_score="moments").fit(X, y, ledger=ledger)
    assert [name for name, _ in seen] == ["sample", "statistic"] * 3
    purposes = [entry.purpose for entry in model.ledger_.entries[2:]]
    assert [purpose for _, purpose in seen] == [purpose for purpose in purposes for _ in range(2)]


@pytest.mark.filterwarnings("ignore:0 classes were bought")
def test_the_draws_of_a_schema_are_on_the_ledger_before_its_rows_are_read(monkeypatch):
    ledger = Ledger(Budget(epsilon=1.0, delta=1e-6, adjacency=Adjacency.ADD_REMOVE), unit=PrivacyUnit.ROW)
    seen = []
    for rows, name in [(UndeclaredTable, "statistic"), (UndeclaredTable, "key_counts"), (Table, "statistic")]:
        original = getattr(rows, name)

        def watched(*args, name=name, original=original):
            seen.append((name, ledger.entries[-1].purpose))
            return original(*args)

        monkeypatch.setattr(rows, name, watched)
    SGBDTClassifier(n_estimators=1).fit(np.full((9, 1), 0.5), np.zeros(9, dtype=int), ledger=ledger)
    assert seen == [
        ("statistic", "schema: bounds of feature 1"),
        ("key_counts", "schema: categories of the target"),
        *(("statistic", f"tree {k}") for k in range(1, 33)),  # for as many classes as might show
    ]
