"""Limits of the verifier's work for one grant and for one file, counted in operations, not in seconds.

The author of a ledger decides what there is to compute. So every costly step is counted before it is taken, on every
machine alike, and what exceeds the bound ends as `unconfirmed` by name (docs/explanation/ledger.md#verification-work).
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_GRANT = 30_000_000_000
_FILE = 30_000_000_000
_FILE_A_GRANT = 2_000_000_000  # more for each grant: linear in the file's size

EXPONENTIAL = 10_000
"""Operations of one elementary function in 50 digits."""


class TooMuchWork(Exception):
    """A grant would take more operations than the verifier does."""


@dataclass(slots=True)
class Effort:
    """The remaining work for a file, and for the current grant.

    Args:
        file: operations left for all grants.
        grant: operations left for this one.
        grants: number of grants that were begun.
        shortened: this grant began with less than a grant's work, because the grants before it took the file's.
    """

    file: int = _FILE
    grant: int = 0
    grants: int = 0
    shortened: bool = False

    def next_grant(self) -> None:
        """Another grant: its own bound, and what it adds to the file's."""
        self.grants += 1
        self.file += _FILE_A_GRANT
        self.shortened = self.file < _GRANT
        self.grant = min(_GRANT, self.file)

    def spend(self, operations: int) -> None:
        """Take so many operations, of a third of a nanosecond to a nanosecond each.

        Raises:
            TooMuchWork: fewer are left; the message names the bound that was met.
        """
        if operations > self.grant:
            raise TooMuchWork(
                f"the {self.grants - 1} grants before it left less than a grant's share of the work that the verifier "
                f"does for one file ({_FILE:.3g} operations, and {_FILE_A_GRANT:.3g} more a grant): verified in a "
                "ledger of its own, it may be confirmed"
                if self.shortened
                else f"it takes more work than the verifier does for one grant ({_GRANT:.3g} operations)"
            )
        self.grant -= operations
        self.file -= operations


_CURRENT = threading.local()


@contextlib.contextmanager
def counted(effort: Effort | None) -> Iterator[Effort]:
    """Count the operations inside the block, in this thread, against `effort`; None: do not count."""
    before = getattr(_CURRENT, "effort", None)
    _CURRENT.effort = effort
    try:
        yield effort or Effort()
    finally:
        _CURRENT.effort = before


def spend(operations: float) -> None:
    """Take operations from the work of the grant that is looked at; outside of a verification nothing is counted.

    Raises:
        TooMuchWork: fewer are left.
    """
    effort: Effort | None = getattr(_CURRENT, "effort", None)
    if effort is not None:
        effort.spend(int(min(operations, 1e18)))


def counting(function: Callable[..., Any], operations: int, digits: Callable[[], int]) -> Callable[..., Any]:
    """The function of numbers in many digits, counted at every call."""

    def called(*values: Any) -> Any:
        spend(operations * max(digits() / 50, 1.0) ** 2)
        return function(*values)

    return called
