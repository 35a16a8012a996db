"""What can say which papers it rests on, and the answer to that question."""

import abc
from dataclasses import dataclass
from typing import final

from ledgerwood.errors import InvalidParameter
from ledgerwood.pages.shown import Told
from ledgerwood.references.reference import Reference

_NO_BRACES = str.maketrans("{}", "()")


class Cited(abc.ABC):
    """A value that knows what it rests on: plans, estimators and results of audits."""

    __slots__ = ()

    @abc.abstractmethod
    def cited(self) -> "tuple[object, ...]":
        """What it rests on, in order: each a `Reference`, a `CitationNote`, or what `ledgerwood.cite` takes."""


@final
@dataclass(frozen=True, slots=True)
class CitationNote:
    """A remark on what a list of references does not cover, and why."""

    text: str


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Citations(Told):
    """The references of what was used, each once, in the order in which they were met; printed as BibTeX.

    `str` and `repr` are the same text, so that a prompt shows what a file gets.

    Args:
        references: of different keys.
        notes: what is not covered, and why; printed before the entries, as comments of BibTeX.

    Raises:
        InvalidParameter: one key for two different references.
    """

    references: tuple[Reference, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        met: dict[str, Reference] = {}
        for reference in self.references:
            if met.setdefault(reference.key, reference) != reference:
                raise InvalidParameter(f"key={reference.key!r} names two references: {met[reference.key]}; {reference}")
        object.__setattr__(self, "references", tuple(met.values()))
        object.__setattr__(self, "notes", tuple(dict.fromkeys(" ".join(note.split()) for note in self.notes)))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the entries, in order."""
        return tuple(reference.key for reference in self.references)

    @property
    def bibtex(self) -> str:
        """The text of a .bib file."""
        remarks = [f"@comment{{{note.translate(_NO_BRACES)}}}" for note in self.notes]
        return "\n\n".join([*remarks, *(reference.bibtex for reference in self.references)]) + "\n"

    def __str__(self) -> str:
        return self.bibtex

    def __repr__(self) -> str:
        return self.bibtex
