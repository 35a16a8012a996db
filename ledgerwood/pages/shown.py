"""How a value shows itself: a few lines of text in a terminal, the same as a small table in a notebook.

The `repr` of a value stays what it is, evaluable where it was; what people look at is `str` and the table. Both are
bounded, however large the value is: nothing floods a terminal. What a user wrote is escaped, and control characters are
replaced. The table has no script and no colours of its own, so that it is legible in a dark notebook.
"""

import abc
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ledgerwood.pages.svg import Element, element, printable
from ledgerwood.pages.values import Fact, plain

LINES, WIDTH = 24, 80
"""Of a value's text, at most."""
_CELL = "text-align:left;vertical-align:top;padding:.15em 1em .15em 0;background:transparent;color:inherit"
_BOX = "border-left:.2em solid currentColor;padding:.1em .8em;margin:.4em 0;max-width:60em;overflow-x:auto"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What is shown of a value.

    Args:
        title: one line.
        facts: names with their values, in order; a fact of None is not shown.
        notes: sentences below.
        header, rows: a table below, only in a notebook.
    """

    title: str
    facts: tuple[tuple[str, Fact], ...] = ()
    notes: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    def text(self) -> str:
        """At most `LINES` lines of `WIDTH` characters."""
        lines = [shortened(f"{name}: {plain(value)}", WIDTH - 2) for name, value in self.facts if value is not None]
        for note in self.notes[:LINES]:
            lines += textwrap.wrap(shortened(note, 4 * WIDTH), WIDTH - 2)
        if len(lines) >= LINES:
            lines = [*lines[: LINES - 2], f"... and {len(lines) - LINES + 2} lines more"]
        return "\n".join([shortened(self.title, WIDTH), *(f"  {line}" for line in lines)])

    def html(self) -> str:
        """The same as an element of HTML, with its table."""
        facts = [
            element("tr", {}, element("th", {"style": _CELL, "scope": "row"}, name), _cell(plain(value)))
            for name, value in self.facts[: 2 * LINES]
            if value is not None
        ]
        parts: list[Element] = [element("strong", {}, shortened(self.title, 4 * WIDTH))]
        if facts:
            parts.append(element("table", {"style": "border-collapse:collapse"}, element("tbody", {}, *facts)))
        parts += [element("p", {"style": "margin:.3em 0"}, shortened(note, 15 * WIDTH)) for note in self.notes[:LINES]]
        if self.rows:
            parts.append(_details(self.header, self.rows))
        return ET.tostring(element("div", {"style": _BOX}, *parts), encoding="unicode", method="html")


class ShowsItself(abc.ABC):
    """A value that shows itself by its card."""

    __slots__ = ()

    @abc.abstractmethod
    def _card(self) -> Card:
        """What is shown of it."""

    def __str__(self) -> str:
        return self._card().text()

    def _repr_html_(self) -> str:
        return self._card().html()


class Told(abc.ABC):
    """A value whose text is its own, and which a notebook shows as that."""

    __slots__ = ()

    @abc.abstractmethod
    def __str__(self) -> str:
        """The value in words, the first line the most important one."""

    def _repr_html_(self) -> str:
        first, *rest = str(self).splitlines() or [""]
        return Card(title=type(self).__name__, notes=(first, *(line.strip() for line in rest))).html()


def shortened(text: str, most: int) -> str:
    """Returns a text as one line without control characters, cut at a number of characters."""
    text = " ".join(printable(text[: 2 * most]).split())
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _cell(text: str) -> Element:
    return element("td", {"style": _CELL}, shortened(text, 5 * WIDTH))


def _details(header: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Element:
    """A table that is opened by the reader; of many rows the last ones."""
    last = rows[-LINES:]
    title = f"{len(rows):,} rows" if len(last) == len(rows) else f"the last {len(last)} of {len(rows):,} rows"
    return element(
        "details",
        {},
        element("summary", {}, title),
        element(
            "table",
            {"style": "border-collapse:collapse"},
            element("thead", {}, element("tr", {}, *(element("th", {"style": _CELL}, name) for name in header))),
            element("tbody", {}, *(element("tr", {}, *(_cell(text) for text in row)) for row in last)),
        ),
    )
