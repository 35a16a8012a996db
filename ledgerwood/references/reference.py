"""One reference as a value, and its BibTeX entry in plain ASCII."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, final

from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter

Kind = Literal["article", "inproceedings", "misc"]
"""A journal's article, a paper of a conference's proceedings, or what is neither: a preprint, or software."""

_KEY = re.compile(r"[a-z][a-z0-9]*")
_EPRINT = re.compile(r"[0-9]{4}\.[0-9]{4,5}")
_DOI = re.compile(r"10\.[0-9]{4,9}/[!-z|~]+")  # ASCII without blanks and braces
_ACCENTS = {
    "\N{COMBINING GRAVE ACCENT}": "`",
    "\N{COMBINING ACUTE ACCENT}": "'",
    "\N{COMBINING CIRCUMFLEX ACCENT}": "^",
    "\N{COMBINING TILDE}": "~",
    "\N{COMBINING DIAERESIS}": '"',
}
_ESCAPED = {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$", "\N{EN DASH}": "--"}
_EARLIEST, _LATEST = 1900, 2100


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a method or a number rests on: a paper, a book, or a piece of software.

    Args:
        key: of its BibTeX entry, lower-case letters and digits: the first author, the year and a word of the title.
        kind: of its BibTeX entry.
        authors: each as "Family, Given", in the order of the title page; or one name, of a group.
        title: as printed, without TeX.
        year: of this publication.
        venue: the journal of an article, or the proceedings of a paper; "" for neither.
        volume, number, pages: of a journal; pages also of proceedings, as "1-10". "" where not known.
        eprint: its number at arXiv, as "1702.07476"; "" if there is none.
        doi: "" if not known.
        note: a remark for the list of references, such as a later title.

    Raises:
        InvalidParameter: a value that BibTeX could not read, or an article without its journal.
    """

    key: str
    kind: Kind
    authors: tuple[str, ...]
    title: str
    year: int
    venue: str = ""
    volume: str = ""
    number: str = ""
    pages: str = ""
    eprint: str = ""
    doi: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise _validate.fail("key", self.key, "lower-case letters and digits, a letter first", "BibTeX key")
        if self.kind not in ("article", "inproceedings", "misc"):
            raise _validate.fail("kind", self.kind, "'article', 'inproceedings' or 'misc'", "BibTeX entry")
        authors = _validate.several("authors", self.authors, "names")
        if not all(isinstance(name, str) and name.strip() for name in authors):
            raise _validate.fail("authors", authors, "names, none of them empty", "names")
        object.__setattr__(self, "authors", authors)
        if not self.title.strip():
            raise _validate.fail("title", self.title, "not empty", "title")
        year = _validate.count("year", self.year, "years")
        if not _EARLIEST <= year <= _LATEST:
            raise _validate.fail("year", self.year, f"in [{_EARLIEST}, {_LATEST}]", "years")
        if (self.kind == "misc") is bool(self.venue):
            bound = "empty of 'misc', and given of an article or a paper of proceedings"
            raise _validate.fail("venue", self.venue, bound, "name")
        if self.eprint and not _EPRINT.fullmatch(self.eprint):
            raise _validate.fail("eprint", self.eprint, "a number as 1702.07476", "arXiv number")
        if self.doi and not _DOI.fullmatch(self.doi):
            raise _validate.fail("doi", self.doi, "a number as 10.1000/182", "DOI")
        _ = self.bibtex  # refuses letters that have no spelling in ASCII

    @property
    def bibtex(self) -> str:
        """The entry, in ASCII: accents are spelled for TeX, and the title keeps its capitals."""
        fields = {
            "author": " and ".join(_author(name) for name in self.authors),
            "title": f"{{{_tex(self.title)}}}",
            "journal" if self.kind == "article" else "booktitle": _tex(self.venue),
            "year": str(self.year),
            "volume": _tex(self.volume),
            "number": _tex(self.number),
            "pages": _tex(self.pages.replace("-", "\N{EN DASH}")),
            "eprint": self.eprint,
            "archiveprefix": "arXiv" if self.eprint else "",
            "doi": self.doi,
            "note": _tex(self.note),
        }
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])

    @property
    def text(self) -> str:
        """One line for people: authors, title, where and when."""
        families = [name.split(",")[0] for name in self.authors]
        who = families[0] if len(families) == 1 else f"{', '.join(families[:-1])} and {families[-1]}"
        where = self.venue or (f"arXiv:{self.eprint}" if self.eprint else "")
        return f"{who}: {self.title}. {f'{where}, ' if where else ''}{self.year}."


def _author(name: str) -> str:
    return _tex(name) if "," in name else f"{{{_tex(name)}}}"


def _tex(text: str) -> str:
    """A text in ASCII as TeX reads it.

    Raises:
        InvalidParameter: a letter for which there is no spelling here, or a brace or backslash.
    """
    out: list[str] = []
    for letter in text:
        base, marks = (parts := unicodedata.normalize("NFD", letter))[0], parts[1:]
        if letter in _ESCAPED:
            out.append(_ESCAPED[letter])
        elif letter.isascii() and letter not in "{}\\" and letter.isprintable():
            out.append(letter)
        elif base.isascii() and marks in _ACCENTS:
            out.append(rf"{{\{_ACCENTS[marks]}{base}}}")
        else:
            raise InvalidParameter(f"{letter!r} in {text!r} has no spelling for BibTeX here (unit: letter)")
    return "".join(out)
