"""Copies of ledger data: the receipt of one draw, and the frozen record of all entries."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ledgerwood.accounting import risk
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.filters import Charges, Spent
from ledgerwood.accounting.ledger import jsonl
from ledgerwood.accounting.ledger.entries import (
    CheckpointEntry,
    DrawEntry,
    Entry,
    GrantEntry,
    MigrationEntry,
    OpenEntry,
    Randomness,
    Version,
    encode,
)
from ledgerwood.accounting.ledger.state import charged, replay
from ledgerwood.accounting.quotes import short
from ledgerwood.errors import LedgerError
from ledgerwood.pages.shown import Card, ShowsItself
from ledgerwood.pages.values import plain


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(ShowsItself):
    """Proof that `event` was charged and drawn, once; each release keeps one.

    Args:
        event: the event that was drawn.
        purpose: the purpose, as written in the entry.
        grant: index of the grant's entry.
        index: index of the draw's entry.
        hash: the draw entry's SHA-256, hexadecimal.
        randomness: the source of the release's noise.
    """

    event: Event
    purpose: str
    grant: int
    index: int
    hash: str
    randomness: Randomness

    @property
    def adjacency(self) -> Adjacency:
        """The relation under which the event was stated."""
        return self.event.adjacency

    def _card(self) -> Card:
        return Card(
            title=f"Receipt of draw {self.index}",
            facts=(
                ("purpose", self.purpose),
                ("event", short(self.event)),
                ("grant", self.grant),
                ("randomness", self.randomness),
                ("hash", self.hash),
            ),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LedgerRecord(ShowsItself):
    """A ledger's entries, frozen; what a model keeps. It can be pickled and saved, and grants nothing."""

    entries: tuple[Entry, ...]

    @classmethod
    def from_lines(cls, lines: tuple[str, ...]) -> "LedgerRecord":
        """The record of a ledger's lines; the inverse of `lines`.

        Raises:
            LedgerCorrupted: names the first entry that does not fit.
        """
        return cls(entries=tuple(replay(lines, from_checkpoint=True).entries))

    @property
    def trusted(self) -> int:
        """The number of entries before the first of these: of a record that begins with a checkpoint, else 0."""
        return self.entries[0].index

    def from_checkpoint(self) -> "LedgerRecord":
        """The record from its last checkpoint on, whose word is taken for all entries before it.

        Raises:
            LedgerError: there is no checkpoint.
        """
        for place in range(len(self.entries) - 1, -1, -1):
            if isinstance(self.entries[place], CheckpointEntry):
                return LedgerRecord(entries=self.entries[place:])
        raise LedgerError("the ledger has no checkpoint; Ledger.checkpoint or `ledgerwood ledger checkpoint` adds one")

    @property
    def terms(self) -> OpenEntry:
        """The first entry: budget, unit, filter, data set label."""
        return _terms(self.entries)

    @property
    def analysts(self) -> tuple[tuple[str, float], ...]:
        """The analysts and their shares of the budget, in the order of the labels."""
        first = self.entries[0]
        known = first.analysts if isinstance(first, CheckpointEntry) else self.terms.analysts
        return next((e.analysts for e in self.entries if isinstance(e, MigrationEntry)), known)

    @property
    def version(self) -> Version:
        """The format version of the last entry, and of the next one."""
        return self.entries[-1].version

    @property
    def head(self) -> str:
        """The last entry's hash, hexadecimal; it covers all entries before it."""
        return self.entries[-1].hash

    @property
    def lines(self) -> tuple[str, ...]:
        """The entries as a ledger file holds them, without newlines."""
        return tuple(encode(entry) for entry in self.entries)

    @property
    def randomness(self) -> Randomness:
        """Is "test" if any draw used reproducible randomness, else "secure"."""
        return _randomness(self.entries)

    def spent(self) -> Spent:
        """The total of the grants by the filter, rounded up."""
        return self.terms.filter.spent(_charges(self.entries), self.terms.budget)

    @property
    def meaning(self) -> str:
        """What the total of the grants leaves to an attacker, in words; `risk.total_in_words` says it."""
        spent, terms = self.spent(), self.terms
        return risk.total_in_words(
            spent.epsilon, spent.delta, adjacency=terms.budget.adjacency, unit=terms.unit,
            grants=len(_charges(self.entries)), reproducible=self.randomness == "test",
        )  # fmt: skip

    def __repr__(self) -> str:
        """Short, however many entries there are; `lines` has them all."""
        return f"<LedgerRecord of {len(self.entries):,} entries, head {self.head[:12]}>"

    def _card(self) -> Card:
        terms, spent = self.terms, self.spent()
        about = {} if terms.about is None else terms.about.record
        grants = [entry for entry in self.entries if isinstance(entry, GrantEntry)]
        first = self.entries[0]
        earlier = first.draws if isinstance(first, CheckpointEntry) else 0
        drawn = Counter(entry.grant for entry in self.entries if isinstance(entry, DrawEntry))
        return Card(
            title=f"Ledger of {self.trusted + len(self.entries):,} entries",
            facts=(
                ("dataset", terms.dataset),
                *about.items(),
                ("budget", f"epsilon {terms.budget.epsilon:g} at delta {terms.budget.delta:g}"),
                ("spent", f"epsilon {plain(spent.epsilon)} at delta {plain(spent.delta)}"),
                ("adjacency, unit", f"{terms.budget.adjacency.value}, {terms.unit.value}"),
                ("filter", terms.filter.name),
                ("analysts", ", ".join(f"{label} {share:g}" for label, share in self.analysts) or None),
                ("grants, draws", f"{len(_charges(self.entries)):,}, {earlier + drawn.total():,}"),
                ("trusted", f"{self.trusted:,} entries before a checkpoint, by its word" if self.trusted else None),
                ("randomness", self.randomness),
                ("head", self.head),
            ),
            notes=(self.meaning,),
            header=("entry", "analyst", "purpose", "charge", "drawn"),
            rows=tuple(
                (
                    str(entry.index), entry.analyst or "-", entry.purpose,
                    ", ".join(f"{name} {plain(value)}" for name, value in entry.charge.amounts().items()
                              if value is not None),
                    f"{drawn[entry.index]:,}",
                )
                for entry in grants
            ),
        )  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write the lines to `path` in one step: whole or not at all.

        Raises:
            LedgerWriteFailed: nothing was written.
            LedgerError: `path` is the file of an open ledger, or holds another one.
        """
        jsonl.write_atomically(Path(path), self.lines)


def _terms(entries: tuple[Entry, ...]) -> OpenEntry:
    match entries[0]:
        case OpenEntry() as first:
            return first
        case CheckpointEntry() as first:
            return first.opening
    raise LedgerError("a ledger record begins with its terms")


def _charges(entries: tuple[Entry, ...]) -> Charges:
    first = entries[0]
    found = charged(first.spent, first.opening.filter) if isinstance(first, CheckpointEntry) else Charges()
    for entry in entries:
        if isinstance(entry, GrantEntry):
            found.append(entry.charge)
    return found


def _randomness(entries: tuple[Entry, ...]) -> Randomness:
    test = any(isinstance(entry, DrawEntry | CheckpointEntry) and entry.randomness == "test" for entry in entries)
    return "test" if test else "secure"
