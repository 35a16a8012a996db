"""The layouts that a ledger database's tables have had, and what leads from each to the next (docs/adr/0008).

The layout of a release is the last one. A step is never changed once it is released: databases have taken it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import sqlalchemy as sa

FIRST = 1
"""The oldest layout that can be carried over; the entries in the tables have a version of their own."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStep:
    """From one layout to the next, on SQLite and PostgreSQL, inside of a transaction that somebody else ends.

    Args:
        summary: what it does, in one line.
        run: does it; it commits nothing, and leaves every line as it is.
    """

    summary: str
    run: Callable[[sa.Connection], None]


STEPS: tuple[StoreStep, ...] = ()
"""The step at place i leads from layout FIRST + i to the next one."""


def current() -> int:
    """The layout of this release."""
    return FIRST + len(STEPS)


def pending(found: int) -> tuple[StoreStep, ...]:
    """The steps from an older layout, at least FIRST, to the one of this release."""
    return STEPS[found - FIRST :]
