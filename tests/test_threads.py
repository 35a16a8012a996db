"""Loops shared among threads: each item once, errors raised, threads as many as may be."""

import inspect
import os
import threading

import numpy as np
import pytest
from sklearn.base import is_regressor

from ledgerwood import Categorical, Numeric, Schema, routing, trainers
from ledgerwood import threads as module
from ledgerwood.errors import InvalidParameter
from ledgerwood.threads import available_cores, share_out, thread_count, threads
from ledgerwood.trainers import (
    AbstractTreeEstimator,
    DPBoostRegressor,
    PrivateSearch,
    PrivaTreeClassifier,
    SGBDTRegressor,
)


@pytest.mark.parametrize("items", [0, 1, 7, 64, 1000])
@pytest.mark.parametrize("team", [1, 2, 5])
@pytest.mark.parametrize("unit", [1, 16])
def test_every_item_is_done_once_and_parts_begin_at_units(items, team, unit):
    done = []
    with threads(team):
        share_out(lambda first, end, word: done.append((first, end, word)), items, unit, ("word",))
    assert all(first % unit == 0 and word == "word" for first, _, word in done)
    assert [each for first, end, _ in sorted(done) for each in range(first, end)] == list(range(items))


def test_several_threads_take_part():
    """The first part ends when another thread has come, so that this does not hang on the machine's load."""
    here, others = threading.get_ident(), threading.Event()

    def loop(first, end):
        if threading.get_ident() == here:
            assert others.wait(60.0)
        else:
            others.set()

    with threads(2):
        share_out(loop, 100, 1, ())


@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_loop_when_no_thread_is_at_work(raised):
    at_work, most = [], []

    def loop(first, end):
        at_work.append(first)
        try:
            if first <= 100 < end:
                raise raised
        finally:
            at_work.remove(first)
        most.append(first)

    with threads(3), pytest.raises(raised):
        share_out(loop, 300, 1, ())
    assert not at_work
    assert not any(first <= 100 < first + 12 for first in most)


def test_threads_are_those_that_are_asked_for(monkeypatch):
    cores = available_cores()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert thread_count() == cores
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count() == 1
    for words in ("1,2", " 1 "):
        monkeypatch.setenv("OMP_NUM_THREADS", words)
        assert thread_count() == 1
    for words in ("", "none", "0", "-1", "1000"):
        monkeypatch.setenv("OMP_NUM_THREADS", words)
        assert thread_count() == cores
    with threads(7):
        assert thread_count() == 7
        with threads(None):
            assert thread_count() == cores
        assert thread_count() == 7
    with threads(-1):
        assert thread_count() == cores
    with threads(-10_000):
        assert thread_count() == 1
    for wrong in (0, 1.5, "2", True):
        with pytest.raises(InvalidParameter, match="n_jobs"), threads(wrong):
            pass


def test_affinity_counts():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize(
    ("place", "files", "wanted"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "150000 100000\n"}, [2]),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, [1]),
        ("0::/\n", {"cpu.max": "300000 100000"}, [3]),
        ("0::/\n", {}, []),
        ("4:cpu,a:/d\n", {"cpu,a/d/cpu.cfs_quota_us": "400000", "cpu,a/d/cpu.cfs_period_us": "100000"}, [4]),
        ("4:cpu,a:/d\n", {"cpu,a/d/cpu.cfs_quota_us": "-1", "cpu,a/d/cpu.cfs_period_us": "100000"}, []),
        ("3:memory:/d\n", {"memory/d/cpu.max": "1 1"}, []),
        ("0::/a\n", {"a/cpu.max": "what is this"}, []),
    ],
)  # fmt: skip
def test_quotas_of_control_groups(monkeypatch, tmp_path, place, files, wanted):
    own = tmp_path / "own"
    own.write_text(place)
    for name, text in files.items():
        (tmp_path / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / name).write_text(text)
    monkeypatch.setattr(module, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(module, "_OWN", own)
    assert list(module._quotas()) == wanted


EVERY = [
    kind
    for name in trainers.__all__
    if inspect.isclass(kind := getattr(trainers, name))
    and issubclass(kind, AbstractTreeEstimator)
    and not inspect.isabstract(kind)
    and kind is not PrivateSearch
]


@pytest.mark.parametrize("kind", EVERY)
def test_no_trainer_learns_otherwise_on_other_threads(kind, monkeypatch):
    monkeypatch.setattr(routing, "THREADED_ROWS", 0)
    rows = np.random.default_rng(0).random((20_000, 2))
    numeric = is_regressor(kind())
    target = Numeric("y", 0.0, 1.0) if numeric else Categorical("y", (0, 1))
    labels = rows[:, 0] if numeric else (rows[:, 0] > 0.5).astype(int)
    schema = Schema.uniform(0.0, 1.0, n_features=2, target=target)
    trees = {} if kind is PrivaTreeClassifier else {"n_estimators": 4}
    found = [
        kind(epsilon=1.0, schema=schema, random_state=0, n_jobs=n_jobs, **trees).fit(rows, labels) for n_jobs in (1, 3)
    ]
    first, second = (model.ensemble_.to_arrays() for model in found)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    np.testing.assert_array_equal(found[0].predict(rows), found[1].predict(rows))


@pytest.mark.parametrize("system", [DPBoostRegressor, SGBDTRegressor])
def test_an_estimators_threads_change_nothing(system, monkeypatch):
    monkeypatch.setattr(routing, "THREADED_ROWS", 0)
    generator = np.random.default_rng(0)
    X = generator.random((40_000, 3))
    schema = Schema.uniform(0.0, 1.0, n_features=3, target=Numeric("y", 0.0, 1.0))
    found, teams = [], set()
    team = module.thread_count
    monkeypatch.setattr(module, "thread_count", lambda: teams.add(team()) or team())
    for n_jobs in (1, 3):
        model = system(epsilon=3.0, schema=schema, n_estimators=2, random_state=0, n_jobs=n_jobs).fit(X, X[:, 0])
        assert teams == {n_jobs}
        found.append((model.predict(X), model.plan_))
        assert teams == {n_jobs}
        teams.clear()
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
    with pytest.raises(InvalidParameter, match="n_jobs"):
        system(schema=schema, n_jobs=0).fit(X, X[:, 0])
