"""One HTML file that stands alone: no script, nothing from elsewhere, light and dark, wide and narrow.

The page forbids itself everything but its own style sheet (its content security policy names the sheet's hash), and
carries the numbers that it shows as JSON, in an element that no browser runs.
"""

import base64
import hashlib
import importlib.resources
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

from ledgerwood.pages.svg import Child, Element, Role, document, element, swatch
from ledgerwood.pages.values import finite

Tone = Literal["good", "open", "bad"]
_LONG = 48
"""The length of a fact from which on it gets a separate line."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HtmlTable:
    """Rows of texts below a header; a column of numbers stands to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing with its caption, legend and numbers.

    Args:
        drawing: what `svg` made.
        caption: one line.
        legend: for each role that is drawn, what it is, and whether it is an area.
        note: how to read it.
        table: the numbers that are drawn.
        whole: whether it takes the page's whole width.
    """

    drawing: Element
    caption: str
    legend: tuple[tuple[Role, str, bool], ...]
    note: str
    table: HtmlTable
    whole: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, some sentences, figures, tables, a list of points, facts and code to paste, in this order.

    Args:
        title: the heading.
        texts, figures, tables, points, facts, code: what stands below it.
        level: of the heading; 3 for a part of the section before it.
    """

    title: str
    texts: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[HtmlTable, ...] = ()
    points: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    code: tuple[str, ...] = ()
    level: Literal[2, 3] = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The content of a report.

    Args:
        kind: the audited object, in a word or two.
        title: its name.
        tone, verdict, sentence: the outcome, in a colour, in a few words and in one sentence.
        facts: the main figures by name.
        sections: the rest.
        footer: how the page was made.
        record: plain JSON values: all numbers that the page shows; infinity is the text "inf".
    """

    kind: str
    title: str
    tone: Tone
    verdict: str
    sentence: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    footer: str
    record: object


def render(page: Page) -> str:
    """The page as one text."""
    style = importlib.resources.files("ledgerwood.pages").joinpath("page.css").read_text(encoding="utf-8")
    allowed = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        {},
        element("meta", {"charset": "utf-8"}),
        element("meta", {"http-equiv": "Content-Security-Policy", "content": policy}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "color-scheme", "content": "light dark"}),
        element("meta", {"name": "referrer", "content": "no-referrer"}),
        element("meta", {"name": "robots", "content": "noindex"}),
        element("title", {}, f"{page.kind}: {page.title}"),
        _raw("style", {}, style),
    )
    body = element(
        "body",
        {},
        element(
            "main",
            {},
            element("p", {"class": "kind"}, page.kind),
            element("h1", {}, page.title),
            element(
                "div",
                {"class": f"verdict {page.tone}", "role": "note"},
                element("strong", {}, page.verdict),
                element("span", {}, page.sentence),
            ),
            _facts(page.facts, "large"),
            *(_section(section) for section in page.sections),
            element("footer", {}, page.footer),
        ),
        _raw("script", {"type": "application/json", "id": "audit"}, embedded(page.record)),
    )
    return document(element("html", {"lang": "en"}, head, body))


def embedded(record: object) -> str:
    """The record as JSON in which no character can end the element that holds it."""
    text = json.dumps(finite(record), allow_nan=False)
    return "".join(f"\\u{ord(c):04x}" if c in "<>&" else c for c in text)


def write(page: Page, path: Path) -> None:
    """Write the page to `path`, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    part = path.with_name(path.name + ".part")
    part.write_text(render(page), encoding="utf-8")
    part.replace(path)


def _section(section: Section) -> Element:
    figures = [figure_element(figure) for figure in section.figures]
    return element(
        "section",
        {},
        element(f"h{section.level}", {}, section.title),
        *(element("p", {}, text) for text in section.texts),
        element("div", {"class": "figures"}, *figures) if figures else None,
        *(_table(table, section.title) for table in section.tables),
        element("ul", {}, *(element("li", {}, point) for point in section.points)) if section.points else None,
        _facts(section.facts, "") if section.facts else None,
        *(element("pre", {"tabindex": "0"}, element("code", {}, text)) for text in section.code),
    )


def figure_element(figure: Figure) -> Element:
    """The figure with its caption, its legend, and its numbers as a table."""
    legend: Child = None
    if figure.legend:
        items = [element("li", {}, swatch(role, filled=area), words) for role, words, area in figure.legend]
        legend = element("ul", {"class": "legend"}, *items)
    return element(
        "figure",
        {"class": "whole"} if figure.whole else {},
        element("figcaption", {}, figure.caption),
        figure.drawing,
        element("div", {"class": "reading"}, legend, element("p", {}, figure.note)),
        element("details", {}, element("summary", {}, "The numbers"), _table(figure.table, figure.caption)),
    )


def _table(table: HtmlTable, label: str) -> Element:
    def cells(tag: str, texts: Sequence[str]) -> list[Element]:
        scope = {"scope": "col"} if tag == "th" else {}
        return [
            element(tag, scope | ({"class": "number"} if place in table.numbers else {}), text)
            for place, text in enumerate(texts)
        ]

    rows = [element("tr", {}, *cells("td", row)) for row in table.rows]
    return element(
        "div",
        {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": f"{label}, as a table"},
        element(
            "table",
            {},
            element("thead", {}, element("tr", {}, *cells("th", table.header))),
            element("tbody", {}, *rows),
        ),
    )


def _facts(facts: tuple[tuple[str, str], ...], style: str) -> Element:
    items = [
        element(
            "div", {"class": "long"} if len(value) > _LONG else {}, element("dt", {}, name), element("dd", {}, value)
        )
        for name, value in facts
    ]
    return element("dl", {"class": style} if style else {}, *items)


def _raw(tag: str, attributes: dict[str, str | float], text: str) -> Element:
    """An element whose text is written as it stands: only for this package's own style sheet and `embedded`."""
    made = element(tag, attributes)
    made.text = text
    return made
