"""HTML and SVG as trees of elements: whatever a user wrote is escaped when it is written."""

import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import TypeAlias

Element: TypeAlias = ET.Element
Child: TypeAlias = Element | str | None


def element(tag: str, attributes: Mapping[str, str | float] | None = None, *children: Child) -> Element:
    """One element with its attributes and children; a child of None is left out.

    Args:
        tag: of HTML or SVG, written in this package.
        attributes: numbers are written with two decimals, as coordinates need no more.
        children: elements, and texts that are shown as they are.
    """
    made = ET.Element(tag, {name: _attribute(value) for name, value in (attributes or {}).items()})
    last: Element | None = None
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            if last is None:
                made.text = (made.text or "") + printable(child)
            else:
                last.tail = (last.tail or "") + printable(child)
        else:
            made.append(child)
            last = child
    return made


def document(root: Element) -> str:
    """A whole HTML page, ASCII beside the characters of its texts."""
    return "<!doctype html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"


def printable(text: str) -> str:
    """The text without control characters, directions of writing and lone surrogates: those could hide what it says."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in {"Cc", "Cf", "Cs"} and c not in "\n\t" else c
        for c in text
    )


def _attribute(value: str | float) -> str:
    return printable(value) if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
