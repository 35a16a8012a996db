"""When a round may release: while it is open, in the process that opened it, one release at a time."""

import os
import threading
from typing import final

from ledgerwood.errors import RoundViolation


@final
class Gate:
    """The state that every kind of round shares."""

    __slots__ = ("_open", "_owner", "lock")

    def __init__(self) -> None:
        self._open = True
        self._owner = os.getpid()
        self.lock = threading.Lock()

    def close(self) -> None:
        """No release after this one."""
        with self.lock:
            self._open = False

    def require(self, purpose: str) -> None:
        """Refuse a release of a closed round, or in another process. Called with the lock held.

        Raises:
            RoundViolation: the round is closed, or another process's.
        """
        if not self._open:
            raise RoundViolation(f"release {purpose!r}: the round is closed; open another, with a draw of its own")
        if self._owner != os.getpid():
            raise RoundViolation(
                f"release {purpose!r}: the round belongs to another process; parent and child would each release "
                "what was drawn once"
            )
