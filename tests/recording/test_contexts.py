"""One recording a context: what other threads, tasks, pools and later code see of it, and what it leaves behind."""

import asyncio
import contextvars
import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.curator import Curator, LeafMoments, Table
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import ReplayFailed
from ledgerwood.mechanisms import EllipticalGaussianMechanism, SecureRandom, SeededRandom
from ledgerwood.recording.context import current
from ledgerwood.recording.opening import recording
from ledgerwood.trainers import DPBoostRegressor, SGBDTRegressor
from ledgerwood.verification import added, replay
from ledgerwood.verification.canaries.recorder import recorded
from ledgerwood.verification.noise.law import check_fit_noise

SCHEMA = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", -1, 1))
X = np.random.default_rng(4).uniform(0, 1, (40, 2))
Y = np.round(X[:, 0] - 0.5 * X[:, 1], 3)
FAR = added((X, Y), [0.05, 0.95], 1.0)
TIMES = 10


def fit(data, seed=3):
    return SGBDTRegressor(schema=SCHEMA, random_state=seed, n_estimators=3, max_depth=2).fit(*data)


def boost(data, seed=3):
    return DPBoostRegressor(
        epsilon=5.0, schema=SCHEMA, random_state=seed, n_estimators=4, trees_per_ensemble=2, max_depth=1, max_bins=4
    ).fit(*data)


def predictions(model):
    return model.predict(X).tobytes()


@pytest.mark.slow  # fits of every estimator
@pytest.mark.parametrize("other", [fit, boost])
def test_a_second_thread_fits_while_one_replays_and_both_are_right(other):
    """Before, the second thread's fit died of `Stop` after its budget was granted, or its calls were the replay's."""
    alone, calls = predictions(other((X, Y))), [str(call) for call in replay(fit, (X, Y), FAR).calls]
    start, wrong, models = threading.Barrier(3), [], []

    def fitting():
        start.wait()
        models.extend(predictions(other((X, Y))) for _ in range(TIMES))

    def replaying():
        start.wait()
        for _ in range(TIMES):
            found = replay(fit, (X, Y), FAR)
            if not found.ok or [str(call) for call in found.calls] != calls:
                wrong.append(found)

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(work) for work in (fitting, replaying, replaying)]:  # two replays, side by side
            done.result()
    assert wrong == []
    assert models == [alone] * TIMES


def test_each_kind_of_recording_has_a_thread_of_its_own():
    start = threading.Barrier(3)

    def noise():
        start.wait()
        return check_fit_noise(lambda: fit((X, Y)), fits=6).draws

    def releases():
        start.wait()
        with recorded() as record:
            for _ in range(6):
                fit((X, Y))
        return len(record.releases)

    def replays():
        start.wait()
        return all(replay(fit, (X, Y), FAR).ok for _ in range(6))

    with ThreadPoolExecutor(3) as pool:
        draws, seen, ok = (done.result() for done in [pool.submit(work) for work in (noise, releases, replays)])
    assert ok
    # The initial score's two numbers, and three trees of four leaves with two numbers each.
    assert draws == 6 * (2 + 3 * 4 * 2)
    assert seen == 6 * (1 + 3)


def test_tasks_of_asyncio_do_not_see_the_recording_of_another():
    alone = predictions(fit((X, Y)))

    async def recording_task(inside, go_on):
        with recorded() as record:
            inside.set()
            await go_on.wait()  # the other task fits now
            fit((X, Y))
        return len(record.releases)

    async def fitting_task(inside, go_on):
        await inside.wait()
        assert current() is None
        model = predictions(fit((X, Y)))
        go_on.set()
        return model

    async def both():
        inside, go_on = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(recording_task(inside, go_on), fitting_task(inside, go_on))

    for _ in range(TIMES):
        assert asyncio.run(both()) == [4, alone]


def test_a_task_that_outlives_a_recording_is_an_ordinary_one():
    async def outliving():
        release = asyncio.Event()

        async def late():
            await release.wait()
            fit((X, Y))
            return current()

        with recorded() as record:
            task = asyncio.create_task(late())  # with a copy of this context
            await asyncio.sleep(0)
            fit((X, Y))
        release.set()
        return await task, len(record.releases)

    assert asyncio.run(outliving()) == (None, 4)


def test_asyncio_threads_of_a_fit_belong_to_its_recording():
    async def threaded():
        with recorded() as record:
            await asyncio.to_thread(fit, (X, Y))
        return len(record.releases)

    assert asyncio.run(threaded()) == 4


# ------------------------------------------------------------------------------------------- threads inside of a fit

NOISE = EllipticalGaussianMechanism(stddevs=(4.0, 4.0))
QUERY = LeafMoments(loss="squared", clip=0.5).of(TreeStructure.root(), Ensemble(initial_score=0.0))
EVENT = NOISE.event(QUERY.sensitivity(lw.Adjacency.ADD_REMOVE), lw.Adjacency.ADD_REMOVE)


def curator_of(data, count, source=None):
    ledger = lw.Ledger(lw.Budget(epsilon=1e6, delta=1e-3, adjacency=lw.Adjacency.ADD_REMOVE), unit=lw.PrivacyUnit.ROW)
    grant = ledger.grant(lw.Repeated(EVENT, count=count), purpose="fit")
    return Curator(Table.from_data(*data, SCHEMA, loss="squared", bins=4), grant, source or SeededRandom(7))


def released(curator, name):
    with curator.open(EVENT, purpose=name) as round_:
        return round_.release(QUERY, NOISE, purpose=name).real


def pooled(data, workers=1, source=None):
    """A trainer whose releases are made by a pool of threads, with contexts of their own."""
    curator = curator_of(data, 8, source)
    with ThreadPoolExecutor(workers) as pool:
        return [found.tolist() for found in pool.map(lambda i: released(curator, f"part {i}"), range(8))]


def test_a_pool_of_threads_inside_of_a_fit_is_recorded():
    with recorded() as record:
        pooled((X, Y), workers=4, source=SecureRandom())
    assert len(record.releases) == 8
    assert len({each.draw for each in record.releases}) == 8
    assert check_fit_noise(lambda: pooled((X, Y), workers=4, source=SecureRandom()), fits=10).draws == 10 * 8 * 2


def test_a_replay_follows_a_pool_whose_calls_have_an_order():
    found = replay(pooled, (X, Y), FAR)
    assert found.ok, found
    assert [call.purpose for call in found.calls if call.kind == "release"] == [f"part {i}" for i in range(8)]
    assert found.largest_share == pytest.approx(1.0)


def test_a_replay_says_that_threads_came_in_another_order():
    """The order is turned round by hand, where a scheduler may turn it or not."""

    def fit_threads(data):
        curator = curator_of(data, 2)
        names = ("a", "b") if len(data[1]) == 40 else ("b", "a")
        for name in names:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(released, curator, name).result()

    with pytest.raises(ReplayFailed, match="threads fit: their calls have no order to compare; fit in one thread"):
        replay(fit_threads, (X, Y), FAR)


def test_a_round_of_one_recording_is_refused_in_another():
    with recorded():
        curator = curator_of((X, Y), 1)

        def elsewhere():
            with recorded():
                released(curator, "borrowed")

        with pytest.raises(
            ReplayFailed, match="this Curator of one record of an audited fit is used inside of another"
        ):
            contextvars.Context().run(elsewhere)
    released(curator, "after it")  # an ordinary curator now


# ------------------------------------------------------------------------------------------------------ what is left


class Broken(BaseException):
    """Not even an `Exception`."""


def test_an_exception_closes_a_recording():
    for error in (ValueError, KeyboardInterrupt, Broken):
        with pytest.raises(error), recorded():
            raise error
        assert current() is None
        with pytest.raises(error):
            replay(lambda _, error=error: (_ for _ in ()).throw(error()), (X, Y), FAR)
        assert current() is None
    assert replay(fit, (X, Y), FAR).ok


@pytest.mark.parametrize(
    "inner",
    [
        lambda: replay(fit, (X, Y), FAR),
        lambda: check_fit_noise(lambda: fit((X, Y)), fits=4),
        lambda: recorded().__enter__(),
    ],
    ids=["replay", "noise", "releases"],
)
def test_nesting_is_refused_by_name_whatever_the_kinds(inner):
    with recorded() as record:
        with pytest.raises(ReplayFailed, match="another recording is going on here, a record of an audited fit: a "):
            inner()
        fit((X, Y))  # the outer one goes on
    assert len(record.releases) == 4
    inner_alone = contextvars.Context()
    with recorded():
        inner_alone.run(lambda: replay(fit, (X, Y), FAR))  # a context of its own may have one


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_of_a_recording_is_refused():
    with recorded():
        child = os.fork()
        if child == 0:
            try:
                fit((X, Y))
            except ReplayFailed:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.slow  # a process of its own
def test_importing_and_using_verification_changes_no_class_and_opens_nothing():
    """In a process of its own: every function of every class of the library is the same object afterwards."""
    script = """
import importlib, inspect, pkgutil
import ledgerwood

def everything():
    found = {}
    for package in ("accounting", "mechanisms", "curator", "trainers", "recording"):
        module = importlib.import_module(f"ledgerwood.{package}")
        names = [module.__name__] + [m.name for m in pkgutil.walk_packages(module.__path__, module.__name__ + ".")]
        for name in names:
            for key, value in vars(importlib.import_module(name)).items():
                if callable(value):
                    found[name, key] = id(value)
                if inspect.isclass(value):
                    # Python adds an empty `__annotations__` to a class, when an isinstance first looks at a protocol.
                    members = {method: each for method, each in vars(value).items() if method != "__annotations__"}
                    found.update({(name, key, method): id(each) for method, each in members.items()})
    return found

before = everything()
from ledgerwood.recording.context import current
import ledgerwood.verification as verification
for module in pkgutil.walk_packages(verification.__path__, "ledgerwood.verification."):
    if not module.name.endswith(("pytest_plugin", "strategies", "_databases")) and ".errata." not in module.name:
        importlib.import_module(module.name)
assert current() is None
import numpy as np
schema = ledgerwood.Schema.uniform(0, 1, n_features=2, target=ledgerwood.Numeric("y", -1, 1))
rows = np.random.default_rng(1).uniform(0, 1, (20, 2)), np.zeros(20)
from ledgerwood.trainers import SGBDTRegressor
seen = []
def fit(data):
    seen.append(everything() == before)
    return SGBDTRegressor(schema=schema, random_state=1, n_estimators=1).fit(*data)
assert verification.replay(fit, rows, verification.removed(rows, 3)).ok
assert seen == [True, True]  # nothing is replaced while it runs, either
assert current() is None and everything() == before
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=120)


@pytest.mark.slow  # fits of every estimator
def test_a_closed_recording_lets_go_of_what_its_hooks_have_seen():
    class Evidence:
        """What a hook keeps of the rows."""

        def hook(self, body, *given, **named):
            return body(*given, **named)

    evidence = Evidence()
    gone = weakref.ref(evidence)
    with recording("test", {"release": evidence.hook}):
        curator = curator_of((X, Y), 1)  # which keeps its recording
    del evidence
    gc.collect()
    assert gone() is None
    released(curator, "after it")


def test_a_recording_listens_where_it_has_a_hook_and_nowhere_else():
    seen = []

    def release(body, *given, **named):
        seen.append(named["purpose"])
        return body(*given, **named)

    with recording("test", {"release": release}):
        fit((X, Y))
    assert seen == ["initial score: LabelMoments", "leaves of tree 1", "leaves of tree 2", "leaves of tree 3"]
