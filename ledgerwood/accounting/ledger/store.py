"""The storage of a ledger's entries: the interface of all stores, and a store that keeps nothing."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, final

from ledgerwood.accounting.ledger.entries import Entry
from ledgerwood.accounting.ledger.state import State


class Store(Protocol):
    """One chain of entries outside of the process."""

    def create(self, first: Entry) -> list[str]:
        """Write the first entry, durably; the lines that the store then holds."""

    def catch_up(self, state: State, *, lenient: bool = False) -> None:
        """Tell the state what others appended since; `lenient`: unless the store cannot be reached just now."""

    def locked(self, state: State) -> AbstractContextManager[None]:
        """Keep other writers out, the state caught up; what is not appended by the end was never there."""

    def append(self, entry: Entry, *, durable: bool) -> None:
        """Write an entry that follows the last one, within `locked`; `durable` waits until it is on the disk.

        Raises:
            LedgerWriteFailed: it was not recorded.
        """

    def close(self) -> None:
        """Let go of it; further writing is refused."""


@final
class Memory:
    """A ledger that lives as long as its process."""

    __slots__ = ()

    def create(self, first: Entry) -> list[str]:
        """Nothing is kept."""
        return []

    def catch_up(self, state: State, *, lenient: bool = False) -> None:
        """Nobody else appends."""

    def locked(self, state: State) -> AbstractContextManager[None]:
        """Nobody else writes."""
        return nullcontext()

    def append(self, entry: Entry, *, durable: bool) -> None:
        """The state is all there is."""

    def close(self) -> None:
        """There is nothing to let go of."""
