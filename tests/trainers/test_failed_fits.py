"""A traceback of a failed fit holds no rows: neither in the frames of the library, nor in anything that they hold."""

import gc
import inspect
import sys
import types

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.curator import Curator, Folds, Table, keeps_no_rows
from ledgerwood.curator.inputs.encoding import encode_rows
from ledgerwood.errors import BudgetExceeded, RunFailed, SchemaTypeError
from ledgerwood.trainers import (
    PrivateSearch,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
    private_cross_validate,
    private_grid_search,
)
from ledgerwood.trainers.base.trainer import AbstractTrainer

MARK = 0.123456789
"""In every row, and nowhere else."""
A = lw.Adjacency.ADD_REMOVE
NUMBER, CLASSES = lw.Numeric("y", 0, 1), lw.Categorical("y", ("no", "yes"))
X = np.full((50, 2), MARK)
KEPT = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.FrameType, type)


def labels(target):
    return np.full(50, MARK) if target is NUMBER else np.array(["no", "yes"] * 25, dtype=object)


def chain(error):
    """The exception, and all that it hangs on."""
    waiting, seen = [error], []
    while waiting:
        each = waiting.pop()
        if each is not None and each not in seen:
            seen.append(each)
            waiting += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
    return seen


def frames(error):
    """Those of the tracebacks that are not of this file."""
    for each in chain(error):
        trace = each.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename != __file__:
                yield trace.tb_frame
            trace = trace.tb_next


def reachable(roots):
    """Everything that can be reached without a walk through code, modules or other frames."""
    waiting, seen = list(roots), {}
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, KEPT):
            continue
        seen[id(each)] = each
        waiting += gc.get_referents(each)
    return list(seen.values())


def holds_rows(value):
    if isinstance(value, np.ndarray):
        return len(value) == 50 or (value.ndim == 2 and value.shape[1] == 50)
    return isinstance(value, Table) or (isinstance(value, float) and value == MARK)


def failure(act):
    try:
        act()
    except BaseException as error:  # noqa: BLE001  # also an interrupt
        return error
    raise AssertionError("it did not fail")


def spent():
    """A ledger on which nothing fits any more."""
    return lw.Ledger(lw.Budget(epsilon=1e-3, delta=1e-9, adjacency=A), unit=lw.PrivacyUnit.ROW)


def fitting(kind, **more):
    target = NUMBER if kind is SGBDTRegressor else CLASSES
    schema = lw.Schema.uniform(0, 1, n_features=2, target=target)
    options = {} if kind in (PrivaTreeClassifier, PrivateSearch) else {"n_estimators": 3}
    parameters = {"schema": schema, "epsilon": 2.0, "delta": 1e-5} | options
    model = (
        kind(SGBDTClassifier(), [{"n_estimators": 2}], **parameters) if kind is PrivateSearch else kind(**parameters)
    )
    return lambda: model.fit(X, labels(target), **more)


def explode(*_arguments, **_named):
    raise KeyError("an error of the loop")


def interrupt(*_arguments, **_named):
    raise KeyboardInterrupt


KINDS = [SGBDTRegressor, SGBDTClassifier, PrivaTreeClassifier, PrivateSearch]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["refused", "broken", "interrupted"])
def test_no_frame_of_a_failed_fit_holds_a_row(kind, how, monkeypatch):
    expected, ledger = BudgetExceeded, spent()
    if how != "refused":
        ledger = None
        act, expected = (explode, KeyError) if how == "broken" else (interrupt, KeyboardInterrupt)
        for name in ("statistic", "utilities"):
            monkeypatch.setattr(Table, name, act)
        if kind is PrivateSearch and how == "broken":
            expected = RunFailed
        # A search may make no run at all.
        monkeypatch.setattr(Curator, "select", act) if kind is PrivateSearch and how == "interrupted" else None
        if expected is RunFailed:
            monkeypatch.setattr("ledgerwood.mechanisms.PoissonSelectionMechanism.select", failing_run)
    error = failure(fitting(kind, ledger=ledger))
    assert type(error) is expected
    visited = list(frames(error))
    assert len(visited) > 2
    assert [value for value in reachable([dict(frame.f_locals) for frame in visited]) if holds_rows(value)] == []


def failing_run(_mechanism, run, source):
    try:
        return run(source)
    except KeyError as error:
        raise RunFailed("a run failed") from error


def test_a_refusal_by_type_holds_no_row_either():
    target = np.full(50, MARK) * 1j
    schema = lw.Schema.uniform(0, 1, n_features=2, target=NUMBER)
    error = failure(lambda: SGBDTRegressor(schema=schema).fit(X, target))
    assert type(error) is SchemaTypeError
    assert not any(holds_rows(value) for value in reachable([dict(frame.f_locals) for frame in frames(error)]))


def test_streams_hold_no_row():
    schema = lw.Schema.uniform(0, 1, n_features=2, target=NUMBER)
    model = SGBDTRegressor(schema=schema, n_estimators=2)
    error = failure(lambda: model.partial_fit(X, labels(NUMBER), keys=np.arange(50), ledger=spent()))
    assert type(error) is BudgetExceeded
    assert not any(holds_rows(value) for value in reachable([dict(frame.f_locals) for frame in frames(error)]))


def test_the_guard_is_on_every_estimator_that_defines_a_fit_of_its_own():
    waiting, guarded = [AbstractTrainer], 0
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        for name in ("fit", "partial_fit"):
            if name in vars(kind) and not isinstance(vars(kind)[name], property):  # which is told no row
                assert vars(kind)[name].__code__ is keeps_no_rows(lambda: None).__code__, kind
                guarded += 1
    assert guarded >= 4
    assert "sample_weight" in inspect.signature(SGBDTRegressor.fit).parameters


def test_what_the_caller_was_handling_is_left_alone():
    def users():
        kept = "the user's own"
        raise ValueError(kept)

    @keeps_no_rows
    def inner(rows):
        held = rows
        try:
            held.missing
        except AttributeError as error:
            raise KeyError("no rows") from error

    try:
        users()
    except ValueError as before:
        error = failure(lambda: inner(X))
        assert before.__traceback__.tb_next.tb_frame.f_locals == {"kept": "the user's own"}
    assert type(error) is KeyError
    assert str(error.__cause__).endswith("no attribute 'missing'")
    assert error.__cause__.obj is None
    assert sys.exc_info() == (None, None, None)


def test_without_the_guard_the_rows_are_there():
    """The test sees what it looks for."""
    schema = lw.Schema.uniform(0, 1, n_features=3, target=NUMBER)
    error = failure(lambda: encode_rows(X, schema, bins=4))
    assert any(holds_rows(value) for value in reachable([dict(frame.f_locals) for frame in frames(error)]))


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("how", ["refused", "broken"])
def test_no_frame_of_a_failed_validation_holds_a_row(how, n_jobs, monkeypatch):
    expected, ledger = BudgetExceeded, spent()
    if how == "broken":
        expected, ledger = KeyError, None
        monkeypatch.setattr(Table, "statistic", explode)
    model = SGBDTRegressor(schema=lw.Schema.uniform(0, 1, n_features=2, target=NUMBER), n_estimators=3, epsilon=2.0)
    for act in (
        lambda: private_cross_validate(model, X, labels(NUMBER), ledger=ledger, cv=2, n_jobs=n_jobs),
        lambda: private_grid_search(
            model, {"n_estimators": [2]}, X, labels(NUMBER), ledger=ledger, cv=2, n_jobs=n_jobs
        ),
    ):
        error = failure(act)
        assert type(error) is expected
        visited = list(frames(error))
        assert len(visited) > 2
        for frame in visited:
            found = [value for value in reachable([dict(frame.f_locals)]) if holds_rows(value)]
            assert not found, (frame.f_code.co_name, len(found))


@pytest.mark.parametrize("act", [private_cross_validate, private_grid_search])
@pytest.mark.parametrize("where", ["before", "in a fold"])
def test_a_failed_validation_holds_no_row(act, where, monkeypatch):
    model = SGBDTRegressor(schema=lw.Schema.uniform(0, 1, n_features=2, target=NUMBER), n_estimators=2, max_depth=1)

    def failing(*_):
        raise MemoryError("no room")

    if where == "in a fold":
        monkeypatch.setattr(SGBDTRegressor, "_train", failing)
    grid = ({"max_depth": [1]},) if act is private_grid_search else ()
    options = {"ledger": spent()} if where == "before" else {}
    error = failure(lambda: act(model, *grid, X, labels(NUMBER), cv=2, **options))
    assert type(error) is (MemoryError if where == "in a fold" else BudgetExceeded)
    found = reachable([dict(frame.f_locals) for frame in frames(error)])
    assert not any(holds_rows(value) or isinstance(value, Folds) for value in found)
