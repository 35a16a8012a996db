"""What every test shares: deterministic hypothesis and noise, and the real data sets."""

import functools
import gc
import importlib
import importlib.util
import os
import pkgutil
import random
import sys
import tempfile
import threading
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import ledgerwood
from ledgerwood import cautions
from ledgerwood.accounting import pricing
from ledgerwood.accounting.pricing import Price
from ledgerwood.mechanisms.exact import randomness
from ledgerwood.trainers.boosting.plan import PrivateBoostingPlan
from ledgerwood.trainers.dpboost.plan import DPBoostPlan
from ledgerwood.trainers.dpxgboost.plan import DPXGBoostPlan
from ledgerwood.trainers.federated.plan import FederatedPlan
from ledgerwood.trainers.privatree.plan import PrivaTreePlan
from ledgerwood.trainers.sgbdt.plan import SGBDTPlan

if TYPE_CHECKING:
    from ledgerwood.datasets import Dataset

settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("search", parent=settings.get_profile("deterministic"), derandomize=False, max_examples=2_000)
settings.load_profile(os.environ.get("LEDGERWOOD_HYPOTHESIS", "deterministic"))


# Where CI is set, a test that lacks a peer library fails; elsewhere its file is skipped and says so.
if os.environ.get("CI"):
    _missing = [
        name for name in ("autodp", "dp_accounting", "opendp", "prv_accountant") if not importlib.util.find_spec(name)
    ]
    if _missing:
        raise pytest.UsageError(f"CI is set, and these peers are not installed: {', '.join(_missing)} (extra: oracle)")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session):
    """hypothesis tries the constants of every loaded module: load all of them first, so that each run tries the same.

    But not where other processes run the tests: they would begin some seconds later.
    """
    if not session.config.pluginmanager.has_plugin("dsession"):
        for module in pkgutil.walk_packages(ledgerwood.__path__, "ledgerwood."):
            importlib.import_module(module.name)


@pytest.hookimpl(tryfirst=True)  # before -m is read
def pytest_collection_modifyitems(items):
    """Mark as slow the cases of a test beyond the first few that `slow_after` leaves to a quick run."""
    turns: Counter[str] = Counter()
    for item in items:
        after = item.get_closest_marker("slow_after")
        if after is not None:
            turns[item.nodeid.partition("[")[0]] += 1
            if turns[item.nodeid.partition("[")[0]] > after.args[0]:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish():
    """Thousands of tests and modules stay to the end: the collector of garbage does not look through them each time."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup():
    """No test sees the fits of another: the second fit on the same columns is warned of."""
    cautions._FITS.clear()


def _unsynced(handle: int) -> None:
    """No test cuts the power: what is written is handed to the system, and the disk is not waited for."""
    os.fstat(handle)  # a closed file is an error as ever


os.fsync = _unsynced


# The noise of a fit without a seed is fresh, and what a test asserts of it could fail by chance. So the entropy
# is a stream for each test, the same in each run: what passed once passes again, until the code draws in another way.
# It cannot hide that noise is not fresh: two sources of a test read on in its stream, and no stream is read twice.
# Forked children and other programs have the system's entropy, as OpenSSL's own generator has, which draws no noise.
# LEDGERWOOD_ENTROPY: another text gives other streams, to search for what fails by chance; "system" gives none.
_SYSTEM, _PROCESS_ID, _HOME = os.urandom, os.getpid, os.getpid()
_STREAMS = os.environ.get("LEDGERWOOD_ENTROPY", "")
_TESTS, _THREADS = random.Random(), random.Random()
_OWN = threading.local()  # the thread that runs the tests has a stream that no thread beside it reads from


def _entropy(size: int) -> bytes:
    if _PROCESS_ID() != _HOME:
        return _SYSTEM(size)
    return getattr(_OWN, "stream", _THREADS).randbytes(size)


def _begin(name: str) -> None:
    """Begin the streams of this name; and those that numpy and Python keep for callers without a generator."""
    name = f"{_STREAMS} {name}"
    _OWN.stream = _TESTS
    _TESTS.seed(name)
    _THREADS.seed(f"{name}, other threads")
    random.seed(name)
    np.random.seed(zlib.crc32(name.encode()))  # noqa: NPY002  # scikit-learn reads it where random_state is None
    randomness._generation += 1  # a source that an earlier test has keyed takes a new key, as after a fork


if _STREAMS != "system":
    os.urandom = _entropy
    random._urandom = _entropy  # type: ignore[attr-defined]  # for `secrets`, and numpy's generators without a seed

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(item):
        """Begin a test's own stream, whatever was drawn before it."""
        _begin(item.nodeid)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(fixturedef, request):
        """And that of a fixture, which may be made for this test or for an earlier one."""
        states = _TESTS.getstate(), random.getstate(), np.random.get_state()  # noqa: NPY002
        place = request.node.nodeid, fixturedef.baseid, fixturedef.argname, getattr(request, "param_index", 0)
        _begin(" ".join(map(str, place)))  # a fixture may override another of its name, and ask for it
        try:
            return (yield)
        finally:
            _TESTS.setstate(states[0])
            random.setstate(states[1])
            np.random.set_state(states[2])  # noqa: NPY002


def _once(function: "Callable[..., Any]") -> "Callable[..., Any]":
    """A pure function of frozen values that remembers what it returned, and not what it raised."""
    known: dict[Any, Any] = {}

    @functools.wraps(function)
    def remembering(*arguments: Any) -> Any:
        if arguments not in known:
            known[arguments] = function(*arguments)
        return known[arguments]

    return remembering


_PURE = [(Price, "quote", _once(Price.quote)), (pricing, "_tightest", _once(pricing._tightest))]
_PURE += [
    (plan, "calibrated", _once(plan.calibrated))
    for plan in (PrivateBoostingPlan, DPBoostPlan, DPXGBoostPlan, FederatedPlan, PrivaTreePlan, SGBDTPlan)
]
_ABOUT_FITS = (
    "trainers", "curator", "federation", "recording", "report", "reading", "displays", "dashboard", "test_",
    "verification/canaries", "verification/replaying", "verification/testing",
)  # fmt: skip
"""Where fits are tested, not prices: noise is sought once for each plan and budget, and a price once for each event."""

_INJECTED = "test_benchmark_injected_bugs.py"
"""What is priced under an injected bug must be remembered by no other test."""


@pytest.fixture(autouse=True, scope="module")
def planned_once(request: pytest.FixtureRequest) -> "Iterator[None]":
    """Where fits are tested, a plan is calibrated and priced once: half of a small fit's seconds are a search."""
    place = request.path.relative_to(Path(__file__).parent).as_posix()
    with pytest.MonkeyPatch.context() as patch:
        if place.startswith(_ABOUT_FITS) and place != _INJECTED:
            for kind, name, remembering in _PURE:
                patch.setattr(kind, name, remembering)
        yield


@pytest.fixture
def only_ray() -> "Iterator[None]":
    """One test at a time, of all that run on this machine: two rays that start at once wait for each other's cores."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    with (Path(tempfile.gettempdir()) / f"ledgerwood-tests-{os.getuid()}.ray").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
        with warnings.catch_warnings():  # what a ray that failed to start leaves behind is no later test's fault
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture(scope="session")
def on_disk() -> "Callable[[Callable[[], Any]], Any]":
    """Load from disk; without the file the test skips, or fails where LEDGERWOOD_REQUIRE_DATA=1."""
    from ledgerwood.errors import DataUnavailable

    def read(load: Callable[[], Any]) -> Any:
        try:
            return load()
        except DataUnavailable as missing:
            if os.environ.get("LEDGERWOOD_REQUIRE_DATA") == "1":
                pytest.fail(f"LEDGERWOOD_REQUIRE_DATA=1, and {missing}")
            pytest.skip(str(missing))

    return read


@pytest.fixture(scope="session")
def dataset(on_disk: "Callable[[Callable[[], Any]], Any]") -> "Callable[[str], Dataset]":
    """Load a data set by name, see `on_disk`."""
    from ledgerwood.datasets import load

    return lambda name: on_disk(lambda: load(name, fetch=False))


@pytest.fixture(scope="session")
def exact_law() -> "Callable[..., dict]":
    """Every branch of a choice: a function that runs it once for each, and adds up the probabilities."""

    def law(run):
        """{outcome: probability} of run(pick), over all that pick(probabilities) could return."""
        found, scripts = {}, [()]
        while scripts:
            script = scripts.pop()
            taken, weight = [], mpmath.mpf(1)

            def pick(probabilities, script=script, taken=taken):
                nonlocal weight
                if len(taken) < len(script):
                    place = script[len(taken)]
                else:
                    first, *others = [i for i, p in enumerate(probabilities) if p]
                    scripts.extend((*taken, other) for other in others)
                    place = first
                taken.append(place)
                weight *= probabilities[place]
                return place

            outcome = run(pick)
            found[outcome] = found.get(outcome, mpmath.mpf(0)) + weight
        assert abs(sum(found.values()) - 1) < mpmath.mpf(10) ** -12
        return found

    return law
