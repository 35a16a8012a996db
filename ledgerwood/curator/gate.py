"""When a round may release: while it is open, in the process that opened it, one release at a time."""

import os
import threading
from typing import final

from ledgerwood.errors import RoundViolation


@final
class Gate:
    """The state that every kind of round shares.

    Args:
        outer: of the run of a selection that the round ends with, if it is opened in one.
    """

    __slots__ = ("_open", "_outer", "_owner", "lock")

    def __init__(self, outer: "Gate | None" = None) -> None:
        self._open = True
        self._outer = outer
        self._owner = os.getpid()
        self.lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        """True if neither it nor what is around it was closed."""
        return self._open and (self._outer is None or self._outer.is_open)

    @property
    def is_ours(self) -> bool:
        """True if this is the process that it was made in."""
        return self._owner == os.getpid()

    def close(self) -> None:
        """No release after this one."""
        with self.lock:
            self._open = False

    def require(self, purpose: str) -> None:
        """Refuse a release of a closed round, or in another process. Called with the lock held.

        Raises:
            RoundViolation: the round is closed, or another process's.
        """
        if not self.is_open:
            raise RoundViolation(f"release {purpose!r}: the round is closed; open another, with a draw of its own")
        if not self.is_ours:
            raise RoundViolation(
                f"release {purpose!r}: the round belongs to another process; parent and child would each release "
                "what was drawn once"
            )
