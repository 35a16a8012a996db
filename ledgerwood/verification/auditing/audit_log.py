"""A running audit in a file: a line a state, each with the digest of the one before; locked while it is written."""

import os
import warnings
from pathlib import Path
from typing import BinaryIO, final

from numpy.typing import ArrayLike

from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.ledger.jsonl import lock_within, unlock
from ledgerwood.errors import AuditFailed, PrivacyWarning
from ledgerwood.verification.auditing.running import Block, RunningAudit, Ways

_PATIENCE = 30.0
"""Seconds to wait for another process that writes."""


@final
class AuditLog:
    """The file of one running audit, which several processes may update.

    `start` makes it and refuses a path that exists; `resume` goes on and refuses one that does not: an audit never
    begins anew without a word. Each state holds the digest of the one before, so that no line can be changed or left
    out. A copy that was set aside and put back later cannot be told from the file itself: keep `digest` elsewhere, and
    give it to `resume` as `expected`.
    """

    __slots__ = ("_begin", "_end", "_path", "_state")

    def __init__(self, path: Path, state: RunningAudit, begin: int, end: int) -> None:
        self._path, self._state, self._begin, self._end = path, state, begin, end

    @classmethod
    def start(
        cls,
        path: str | Path,
        *,
        claim: Budget,
        event: str,
        alpha: float = 1e-3,
        block: Block = (1, 1),
        ways: Ways = "first",
    ) -> "AuditLog":
        """Begin an audit of one claim; arguments as for `RunningAudit`.

        Raises:
            AuditFailed: the path exists.
            InvalidParameter: a value outside its bound.
        """
        where, state = Path(path), RunningAudit(claim=claim, alpha=alpha, event=event, block=block, ways=ways)
        try:
            with where.open("xb") as file:
                _append(file, state)
                end = file.tell()
        except FileExistsError:
            raise AuditFailed(
                f"{where} exists: resume the audit that is in it, or name another file for another claim"
            ) from None
        folder = os.open(where.resolve().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return cls(where, state, 0, end)

    @classmethod
    def resume(cls, path: str | Path, *, expected: str | None = None) -> "AuditLog":
        """Go on with the audit of a file, all of whose states are checked.

        Args:
            path: the file.
            expected: a digest that was noted before: one of the states must have it.

        Raises:
            AuditFailed: no such file; a state that was changed, left out or taken back.

        Warns:
            PrivacyWarning: the last line is incomplete: a process was stopped while it wrote. Its runs do not count.
        """
        where = Path(path)
        try:
            file = where.open("r+b")
        except FileNotFoundError:
            raise AuditFailed(f"{where} does not exist: an audit that is lost cannot be resumed") from None
        with file:
            lock_within(file, str(where), _PATIENCE)
            try:
                state, begin, end, seen = _read(file, where, None, expected)
            finally:
                unlock(file)
        if state is None:
            raise AuditFailed(f"{where} has no complete state: an audit that is lost cannot be resumed")
        if expected is not None and not seen:
            raise AuditFailed(f"{where} has no state with the digest {expected}: states were taken back")
        return cls(where, state, begin, end)

    def update(self, *, with_row: ArrayLike = (), without: ArrayLike = ()) -> RunningAudit:
        """Add outputs (see `RunningAudit.update`) to what the file has by now; returns once the state is on the disk.

        Raises:
            AuditFailed: the file was removed or changed.
            InvalidParameter: values that are not True or False.
        """
        try:
            file = self._path.open("r+b")
        except FileNotFoundError:
            raise AuditFailed(f"{self._path} was removed: its audit cannot go on") from None
        with file:
            lock_within(file, str(self._path), _PATIENCE)
            try:
                file.seek(0, os.SEEK_END)
                if file.tell() < self._end:
                    raise AuditFailed(f"{self._path} is shorter than it was: states were taken back")
                file.seek(self._begin)
                if _digest(file.read(self._end - self._begin)) != self._state.digest:
                    raise AuditFailed(f"{self._path}: the last known state was changed in the file; nothing was added")
                state, _, end, _ = _read(file, self._path, self._state, None)
                after = (state or self._state).update(with_row=with_row, without=without)
                file.seek(end)
                _append(file, after)
                self._state, self._begin, self._end = after, end, file.tell()
            finally:
                unlock(file)
        return self._state

    @property
    def state(self) -> RunningAudit:
        """The state after the last update of this object."""
        return self._state

    @property
    def digest(self) -> str:
        """The digest of the state: note it elsewhere."""
        return self._state.digest

    def __str__(self) -> str:
        return f"{self._path}: {self._state}"


def _append(file: BinaryIO, state: RunningAudit) -> None:
    file.write(state.to_json().encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())


def _digest(line: bytes) -> str:
    """The digest of the state of a line; "" where it is none."""
    try:
        return RunningAudit.from_json(line.decode()).digest
    except (AuditFailed, UnicodeDecodeError):
        return ""


def _read(
    file: BinaryIO, path: Path, last: RunningAudit | None, expected: str | None
) -> tuple[RunningAudit | None, int, int, bool]:
    """The last state from here on (or the one that was given), where its line is, and whether a digest was met."""
    start = begin = end = file.tell()
    seen = last is not None and last.digest == expected
    for number, line in enumerate(iter(file.readline, b""), start=1):
        if not line.endswith(b"\n"):
            file.truncate(end)
            warnings.warn(
                f"{path}: the last update was not completed when its process stopped; its runs do not count. Draw "
                "fresh ones",
                PrivacyWarning,
                3,
            )
            break
        try:
            state = RunningAudit.from_json(line.decode())
        except (AuditFailed, UnicodeDecodeError) as error:
            raise AuditFailed(f"{path}, line {number} from the last known state: {error}") from error
        if not _follows(state, last):
            raise AuditFailed(
                f"{path}, line {number} from the last known state: it does not follow from the state before it; lines "
                "were changed, added or left out"
            )
        last, begin, end = state, end, end + len(line)
        seen = seen or state.digest == expected
    if last is not None and end > start:
        last.require_own_figures()
    return last, begin, end, seen


def _follows(state: RunningAudit, last: RunningAudit | None) -> bool:
    if last is None:
        return state.updates == 0 and state.previous == "" and state.runs == 0
    more = all(
        after >= before
        for rows in zip(state.counts, last.counts, strict=False)
        for after, before in zip(*rows, strict=False)
    )
    return (
        state.same_audit(last)
        and state.previous == last.digest
        and state.updates == last.updates + 1
        and more
        and state.runs >= last.runs
        and state.epsilon_lower >= last.epsilon_lower
        and state.evidence >= last.evidence
    )
