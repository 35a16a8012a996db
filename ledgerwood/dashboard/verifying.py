"""Verification beside the server: one process that recomputes ledgers one after another while pages stay quick.

A separate process, because the verifier computes in mpmath, whose precision is shared by all threads, and for seconds.
"""

import contextlib
import hashlib
import json
import multiprocessing
import os
import queue
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import final

from ledgerwood.errors import LedgerCorrupted, PrivacyError
from ledgerwood.verification import LedgerReport
from ledgerwood.verification.ledgers.checkpoints import start_of
from ledgerwood.verification.ledgers.filters import GrantVerdict
from ledgerwood.verification.ledgers.verifying import checked

_KEPT = 64
"""Results that are remembered, by content."""
_KEPT_VERDICTS = 10_000
"""Verdicts of single grants in all of them: a long ledger that grows must not fill the memory."""
_KNOWN = 20_000
"""Verdicts of single grants that the worker remembers: a ledger that grew is verified again for its new grants only."""
_NICE = 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of one verification.

    Args:
        entries: how many lines were looked at.
        head: the hash in the last of them, which covers all before it; "" where it has none.
        report: the verifier's report; None where the chain itself fails.
        failure: what failed, in the verifier's words; None with a report.
        seconds: how long it took.
        trusted: how many entries the checkpoint speaks for with which the lines begin; nobody looked at them.
    """

    entries: int
    head: str
    report: LedgerReport | None
    failure: str | None
    seconds: float
    trusted: int = 0

    @property
    def end(self) -> int:
        """How many entries the ledger had; the index of the next one."""
        return self.trusted + self.entries


class Verifier(ABC):
    """Verifies the lines of ledgers; a result is kept by what the lines say, so that nothing is verified twice."""

    def __init__(self) -> None:
        self._results: dict[str, Verification] = {}
        self._kept = threading.Lock()

    def verify(self, lines: list[str], then: Callable[[Verification], None], *, anew: bool = False) -> None:
        """Verify some time soon, and hand the result to `then`; at once if it is known and not wanted `anew`."""
        key = content_hash(lines)
        with self._kept:
            known = None if anew else self._results.get(key)
        if known is not None:
            then(known)
            return

        def keep(found: Verification) -> None:
            with self._kept:
                self._results.pop(key, None)
                self._results[key] = found
                while len(self._results) > 1 and (
                    len(self._results) > _KEPT or sum(map(_verdicts, self._results.values())) > _KEPT_VERDICTS
                ):
                    del self._results[next(iter(self._results))]
            then(found)

        self._run(lines, keep)

    @abstractmethod
    def _run(self, lines: list[str], keep: Callable[[Verification], None]) -> None:
        """Verify, at once or later."""

    def close(self) -> None:  # noqa: B027
        """Stop whatever runs."""


@final
class ImmediateVerifier(Verifier):
    """Verifies in the calling thread: for tests, and for those who have no second process."""

    def _run(self, lines: list[str], keep: Callable[[Verification], None]) -> None:
        keep(_verified(lines, None))


@final
class ProcessVerifier(Verifier):
    """Verifies in one process that is started when it is first needed, and started again if it ends."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: queue.SimpleQueue[tuple[list[str], Callable[[Verification], None]] | None] = queue.SimpleQueue()
        self._closed = False
        self._process: multiprocessing.process.BaseProcess | None = None
        self._thread = threading.Thread(target=self._work, name="verification", daemon=True)
        self._thread.start()

    def _run(self, lines: list[str], keep: Callable[[Verification], None]) -> None:
        self._waiting.put((lines, keep))

    def close(self) -> None:
        """End the process, whatever it is at."""
        self._closed = True
        self._waiting.put(None)
        process = self._process
        if process is not None:
            process.terminate()
        self._thread.join(10.0)

    def _work(self) -> None:
        connection: Connection | None = None
        while not self._closed:
            task = self._waiting.get()
            if task is None:
                break
            lines, keep = task
            try:
                if connection is None:
                    connection = self._start()
                connection.send(lines)
                found: Verification = connection.recv()
            except (EOFError, OSError):
                connection, found = None, _ended(lines)
            if not self._closed:
                keep(found)
        if self._process is not None:
            self._process.terminate()
            self._process.join(10.0)

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=serve, args=(there,), name="ledgerwood verification", daemon=True)
        process.start()
        there.close()
        self._process = process
        return here


def serve(connection: Connection) -> None:
    """Verify what comes by the connection until it is closed."""
    if sys.platform != "win32":
        os.nice(_NICE)
    known: dict[str, GrantVerdict] = {}
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            connection.send(_verified(connection.recv(), known))
            if len(known) > _KNOWN:
                known.clear()


def content_hash(lines: list[str]) -> str:
    """SHA-256 of all lines, in hexadecimal: unlike the head, it changes where an entry was altered in place."""
    whole = hashlib.sha256()
    for line in lines:
        whole.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return whole.hexdigest()


def _verdicts(found: Verification) -> int:
    return 0 if found.report is None else len(found.report.verdicts)


def _verified(lines: list[str], known: dict[str, GrantVerdict] | None) -> Verification:
    began = time.perf_counter()
    report, failure = None, None
    with tempfile.TemporaryDirectory(prefix="ledgerwood-") as folder:
        path = Path(folder) / "lines"
        path.write_bytes("".join(line + "\n" for line in lines).encode("utf-8", "surrogatepass"))
        try:
            _, report = checked(path, None, None, refute=False, known=known)
        except LedgerCorrupted as refused:
            failure = str(refused)
        except PrivacyError as refused:  # it does not vouch for what it cannot read
            failure = f"it could not be verified: {refused}".replace(str(path), "the ledger")
    seconds = time.perf_counter() - began
    return Verification(
        entries=len(lines), head=_head(lines), report=report, failure=failure, seconds=seconds, trusted=start_of(lines)
    )


def _head(lines: list[str]) -> str:
    try:
        return str(json.loads(lines[-1])["hash"])
    except (IndexError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def _ended(lines: list[str]) -> Verification:
    return Verification(
        entries=len(lines),
        head=_head(lines),
        report=None,
        failure="it could not be verified: the process that verifies ended before it had a result; verify again",
        seconds=0.0,
        trusted=start_of(lines),
    )
