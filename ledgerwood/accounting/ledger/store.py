"""The interface of stores of a ledger's entries, the store in memory, and the choice of a store by path or URL.

Whoever opens a store checks that the ledger's terms are the expected ones.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, final

from ledgerwood.accounting.adjacency import Budget, PrivacyUnit
from ledgerwood.accounting.filters import Filter
from ledgerwood.accounting.ledger.entries import Entry, LedgerAbout
from ledgerwood.accounting.ledger.jsonl import JsonLinesFile
from ledgerwood.accounting.ledger.state import State
from ledgerwood.errors import LedgerError

if TYPE_CHECKING:
    from ledgerwood.accounting.ledger.sql import SqlStore


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


def store_at(
    path_or_url: str | Path, dataset: str | None, *, new: bool, shared: bool = False
) -> "JsonLinesFile | SqlStore":
    """The store at that place; a file that is not there is made only for a new ledger; `shared` is of files."""
    if "://" in str(path_or_url):
        try:
            from ledgerwood.accounting.ledger.sql import SqlStore

            return SqlStore(str(path_or_url), dataset)
        except ModuleNotFoundError as missing:
            raise ImportError(
                f"a ledger in a database needs {missing.name}: pip install 'ledgerwood[sql]'", name=missing.name
            ) from missing
    return JsonLinesFile(Path(path_or_url), create=new, shared=shared)


def require_terms(
    state: State,
    *,
    dataset: str | None,
    budget: Budget | None,
    unit: PrivacyUnit | None,
    filter_: Filter | None,
    analysts: Mapping[str, float] | None,
    about: LedgerAbout | None,
) -> None:
    """Require that the terms which the caller gives are those of the ledger."""
    terms = state.terms
    said, known = ({} if each is None else each.record for each in (about, terms.about))
    for name, wanted, found in (
        ("dataset", dataset, terms.dataset),
        ("budget", budget, terms.budget),
        ("unit", unit, terms.unit),
        ("filter", filter_, terms.filter),
        ("analysts", None if analysts is None else dict(analysts), dict(state.analysts)),
        *((name, said.get(name), known.get(name)) for name in ("owner", "description", "opened")),
    ):
        if wanted is not None and wanted != found:
            raise LedgerError(
                f"the ledger was opened with {name}={found!r}; it cannot be reopened with {name}={wanted!r}"
            )
