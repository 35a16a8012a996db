"""Threads that share out a loop and sleep when there is none left: how many there are, and how the loop is parted.

A thread takes the next block of a loop when it has done one. No thread waits for another in between, and none spins, so
that a core which another program takes away costs what it would have given, and no more.
"""

import _thread
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral
from pathlib import Path
from typing import Any

from ledgerwood import _validate

BLOCKS = 8
"""Blocks a thread, at most: one that comes late, or is taken off its core, has few of them."""
_asked: ContextVar[int | None] = ContextVar("threads", default=None)
_OWN, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Let loops that this thread starts within the block run on so many threads.

    Args:
        n_jobs: number of threads, as scikit-learn has it: -1 for all available cores, -2 for all but one, and so on;
            None for `OMP_NUM_THREADS`, and never more than there are cores.

    Raises:
        InvalidParameter: 0, or not a whole number.
    """
    token = _asked.set(n_jobs if n_jobs is None else resolved(n_jobs))
    try:
        yield
    finally:
        _asked.reset(token)


def resolved(n_jobs: object) -> int:
    """The number of threads that `n_jobs` asks for.

    Raises:
        InvalidParameter: 0, or not a whole number.
    """
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or not n_jobs:
        raise _validate.fail("n_jobs", n_jobs, "a whole number >= 1, or -1 for all cores", "threads")
    number = int(n_jobs)
    return number if number > 0 else max(1, available_cores() + 1 + number)


def thread_count() -> int:
    """The number of threads for a loop."""
    asked = _asked.get()
    if asked is not None:
        return asked
    cores = available_cores()
    words = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # a list is of nested teams
    return min(cores, int(words)) if words.isdecimal() and int(words) > 0 else cores


def available_cores() -> int:
    """The cores that this process may use: by its affinity and by the quota of its control group."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = os.cpu_count() or 1
    return max(1, min([cores, *_quotas()]))


def _quotas() -> Iterator[int]:
    """Whole cores that the process's control group, and each one around it, may use at once, rounded up."""
    try:
        lines = _OWN.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, place = line.split(":", 2)
        names = controllers.split(",")
        if controllers and "cpu" not in names:
            continue
        # Version 2 has one tree, version 1 a tree for the controller.
        root = _GROUPS / controllers if controllers else _GROUPS
        group = root / place.strip("/")
        for folder in (group, *group.parents):
            if folder == root.parent:
                break
            quota = _quota(folder)
            if quota is not None:
                yield quota


def _quota(folder: Path) -> int | None:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii").strip()
        if quota == "max" or int(quota) <= 0:
            return None
        return -(-int(quota) // int(period))
    except (OSError, ValueError):  # no such file: the group has no limit
        return None


def share_out(loop: Callable[..., object], items: int, unit: int, arguments: tuple[Any, ...]) -> None:
    """Call loop(first, end, *arguments) for parts of 0 .. items - 1 on all threads; it must hold no lock.

    Args:
        loop: takes a part; that releases the interpreter's lock.
        items: their number.
        unit: each part is of whole units, but for the last one.
        arguments: the arguments of each call.
    """
    team = min(thread_count(), -(-items // unit))
    if team <= 1:
        loop(0, items, *arguments)
        return
    step = unit * max(1, items // (unit * BLOCKS * team))
    starts = iter(range(0, items, step))
    turn = threading.Condition()
    busy, failed, closed = 0, list[BaseException](), False

    def work() -> None:
        while True:
            with turn:
                first = None if closed else next(starts, None)
            if first is None:
                return
            loop(first, min(first + step, items), *arguments)

    def help_out() -> None:
        nonlocal busy
        with turn:
            if closed:
                return
            busy += 1
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # raised where the loop was asked for
            failed.append(error)
        finally:
            with turn:
                busy -= 1
                turn.notify()

    # `threading.Thread` waits until the new thread has a core. Here one that never gets one is not missed.
    try:
        for _ in range(team - 1):
            _thread.start_new_thread(help_out, ())
        work()
    finally:
        # After an interrupt, too: what a loop writes to is not used again while a thread writes.
        with turn:
            closed = True
            while busy:
                turn.wait()
    if failed:
        raise failed[0]
