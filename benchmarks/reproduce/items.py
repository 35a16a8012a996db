"""What a paper consists of: items that state something, and studies that measure it."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.utility import Scale

Found = Mapping[str, Any]
Verdict = Literal["holds", "holds with less noise", "does not hold", "cannot be judged"]
VERDICTS: dict[Verdict, str] = {
    "holds": "true as stated, or reached by sound code",
    "holds with less noise": "reached only with the noise as printed, which is less than its epsilon needs",
    "does not hold": "wrong, or not reached by either",
    "cannot be judged": "what it needs cannot be had; the row says what",
}
"""Each verdict, and what it means."""
PLURALS = {
    "Definition": "Definitions", "Fact": "Facts", "Theorem": "Theorems", "Lemma": "Lemmas", "Corollary": "Corollaries",
    "Proposition": "Propositions", "Remark": "Remarks", "Equation": "Equations", "Algorithm": "Algorithms",
    "Table": "Tables", "Figure": "Figures", "Headline": "Headlines",
}  # fmt: skip
KINDS = tuple(PLURALS)
"""In the order of a page's sections; an item's number begins with one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What stored values say of an item.

    Args:
        ours: measured with sound code, or computed; one cell of a table.
        verdict: by the rule of `judging` that the item names.
        as_printed: the same with the paper's own noise or formula, where a specimen allows it.
    """

    ours: str
    verdict: Verdict
    as_printed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A numbered item or a headline of a paper.

    Args:
        number: as the paper has it: "Theorem 10", "Figure 4b", "Headline: 66 times less epsilon".
        says: its statement, in one sentence.
        printed: the printed value or bound, as text.
        sentence: why the verdict is what it is; the only thing on a page that is written by hand.
        study: the study whose values `read` reads; None where there is none.
        read: turns the study's values into a reading; None where the item cannot be judged.
        errata: anchors of docs/errata.md that explain it.
    """

    number: str
    says: str
    printed: str
    sentence: str
    study: str | None = None
    read: Callable[[Found], Reading] | None = None
    errata: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"number must begin with one of {', '.join(KINDS)}, got {self.number!r}")
        if (self.study is None) is not (self.read is None):
            raise ValueError(f"{self.number}: study and read belong together")

    @property
    def kind(self) -> str:
        """The word that its number begins with."""
        return self.number.split()[0].rstrip(":")

    def reading(self, found: Mapping[str, Found]) -> Reading:
        """What the stored values say; an item whose study was not run cannot be judged."""
        if self.read is None or self.study is None:
            return Reading(ours="", verdict="cannot be judged")
        if self.study not in found:
            return Reading(ours=f"not run: {self.study}", verdict="cannot be judged")
        return self.read(found[self.study])


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One measurement, which one or more items read.

    Args:
        name: on the command line and in the stored results: letters, digits and hyphens.
        run: measures it: of a scale (seeds, and few rows for a quick run), plain values.
        seeds: of a full run; 0 for what has no chance in it.
        kept: the file below docs/ that has its values under its name, where a page of measurements owns them; None:
            docs/reproduction/results.
        draw: its picture as the paper has it, of the values; None where the paper has no picture.
    """

    name: str
    run: Callable[[Scale], Found]
    seeds: int
    kept: str | None = None
    draw: Callable[[Found], Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper with all of its items.

    Args:
        key: on the command line.
        title: with its authors.
        source: where it appeared, and which version was read.
        about: a paragraph about what every row rests on: data, splits, noise, deltas; Markdown.
        studies: in the order in which they are run.
        items: in any order; a page sorts them by kind and keeps their order in a kind.
        numbered: how far each kind is numbered, where numbers run from 1 without a gap: {"Theorem": 8}; kinds that
            share one count are joined by a slash: {"Theorem/Lemma": 12}.
    """

    key: str
    title: str
    source: str
    about: str
    studies: tuple[Study, ...]
    items: tuple[Item, ...]
    numbered: Mapping[str, int]

    def __post_init__(self) -> None:
        names = {study.name for study in self.studies}
        if lost := sorted({item.study for item in self.items if item.study is not None} - names):
            raise ValueError(f"{self.key}: items read studies that do not exist: {', '.join(lost)}")
        if twice := [number for number, times in Counter(item.number for item in self.items).items() if times > 1]:
            raise ValueError(f"{self.key}: items are listed twice: {', '.join(twice)}")
