"""A granted plan, and the draws from it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, final

from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.filters import Charge
from ledgerwood.accounting.ledger.entries import GrantEntry, Randomness
from ledgerwood.accounting.ledger.record import Receipt
from ledgerwood.accounting.quotes import short
from ledgerwood.errors import LedgerError
from ledgerwood.pages.shown import Card, ShowsItself
from ledgerwood.recording.points import passes

if TYPE_CHECKING:
    from ledgerwood.accounting.ledger.book import Ledger


@final
class Grant(ShowsItself):
    """The events of one granted plan, each of which can be drawn once and not returned. Made by `Ledger.grant`."""

    __slots__ = ("_entry", "_ledger")

    def __init__(self, ledger: "Ledger", entry: GrantEntry) -> None:
        self._ledger, self._entry = ledger, entry

    @property
    def event(self) -> Event:
        """The plan that was granted."""
        return self._entry.event

    @property
    def ledger(self) -> "Ledger":
        """The ledger that granted it."""
        return self._ledger

    @property
    def charge(self) -> Charge:
        """The privacy cost of the plan, as charged."""
        return self._entry.charge

    @property
    def index(self) -> int:
        """Index of the grant's entry."""
        return self._entry.index

    @property
    def purpose(self) -> str:
        """The purpose, as written in the entry."""
        return self._entry.purpose

    @property
    def remaining(self) -> Mapping[Event, int]:
        """The events that may still be drawn, each with its count; a snapshot."""
        return MappingProxyType(self._ledger._left(self._entry.index))

    @passes("draw")
    def draw(self, event: Event, *, purpose: str, randomness: Randomness = "secure") -> Receipt:
        """Draw one planned event; the draw is recorded before any row is read.

        Args:
            event: equal to one of the plan's events.
            purpose: printable text of one line.
            randomness: "test" marks reproducible noise, which protects no one.

        Raises:
            DrawRefused: the plan has no such event, or none left; nothing changed.
            LedgerWriteFailed: the entry could not be written; nothing was drawn.
            LedgerError: the database was lost in the commit; what may have been recorded counts as drawn.
        """
        entry = self._ledger._draw(self._entry.index, event, purpose, randomness)
        return Receipt(
            event=entry.event, purpose=entry.purpose, grant=entry.grant, index=entry.index, hash=entry.hash,
            randomness=entry.randomness,
        )  # fmt: skip

    def __copy__(self) -> NoReturn:
        raise no_copy("a grant")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise no_copy("a grant")

    def __reduce__(self) -> NoReturn:
        raise no_copy("a grant")

    def __repr__(self) -> str:
        return f"Grant(index={self.index}, purpose={self.purpose!r}, charge={self.charge!r})"

    def _card(self) -> Card:
        left = sum(self.remaining.values())
        planned = sum(count for _, count in self.event.draws())
        amounts = self.charge.amounts().items()
        return Card(
            title=f"Grant {self.index}",
            facts=(
                ("purpose", self.purpose),
                ("plan", short(self.event)),
                *((name, value) for name, value in amounts),
                ("method", self.charge.method),
                ("left to draw", f"{left:,} of {planned:,}"),
            ),
        )


def no_copy(what: str) -> LedgerError:
    """The refusal to copy or pickle what spends a budget."""
    return LedgerError(
        f"{what} cannot be copied or pickled, or one budget would be spent twice. To keep the entries: "
        "ledger.record(). To fit in parallel (n_jobs > 1): ledgerwood.trainers.private_cross_validate and "
        "private_grid_search, whose threads share one ledger; or a ledger in a database, which every process opens "
        "for itself by Ledger.open('sqlite:///...', dataset=...)"
    )
