"""Copies of ledger data: the receipt of one draw, and the frozen record of all entries."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.filters import Charge, Spent
from ledgerwood.accounting.ledger import jsonl
from ledgerwood.accounting.ledger.entries import (
    DrawEntry,
    Entry,
    GrantEntry,
    MigrationEntry,
    OpenEntry,
    Randomness,
    Version,
    encode,
)
from ledgerwood.accounting.ledger.state import replay
from ledgerwood.errors import LedgerError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRecord:
    """A ledger's entries, frozen; what a model keeps. It can be pickled and saved, and grants nothing."""

    entries: tuple[Entry, ...]

    @classmethod
    def from_lines(cls, lines: tuple[str, ...]) -> "LedgerRecord":
        """The record of a ledger's lines; the inverse of `lines`.

        Raises:
            LedgerCorrupted: names the first entry that does not fit.
        """
        return cls(entries=tuple(replay(lines).entries))

    @property
    def terms(self) -> OpenEntry:
        """The first entry: budget, unit, filter, data set label."""
        return _terms(self.entries)

    @property
    def analysts(self) -> tuple[tuple[str, float], ...]:
        """The analysts and their shares of the budget, in the order of the labels."""
        return next((e.analysts for e in self.entries if isinstance(e, MigrationEntry)), self.terms.analysts)

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

    def save(self, path: str | Path) -> None:
        """Write the lines to `path` in one step: whole or not at all.

        Raises:
            LedgerWriteFailed: nothing was written.
            LedgerError: `path` is the file of an open ledger, or holds another one.
        """
        jsonl.write_atomically(Path(path), self.lines)


def _terms(entries: tuple[Entry, ...]) -> OpenEntry:
    first = entries[0]
    if not isinstance(first, OpenEntry):
        raise LedgerError("a ledger record begins with its terms")
    return first


def _charges(entries: tuple[Entry, ...]) -> list[Charge]:
    return [entry.charge for entry in entries if isinstance(entry, GrantEntry)]


def _randomness(entries: tuple[Entry, ...]) -> Randomness:
    test = any(isinstance(entry, DrawEntry) and entry.randomness == "test" for entry in entries)
    return "test" if test else "secure"
