"""Pages as HTML: templates that escape whatever they are given, and the two files that pages load.

Texts of ledgers come from many hands. They are shown without control characters and directions of writing, which could
hide what they say, and always escaped.
"""

import functools
import hashlib
import importlib.resources
import xml.etree.ElementTree as ET
from typing import Final, final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ledgerwood import __version__
from ledgerwood.dashboard import figures
from ledgerwood.dashboard.shown import UsedShare
from ledgerwood.pages.html import Figure, figure_element
from ledgerwood.pages.svg import Element, printable
from ledgerwood.pages.values import plain

STATIC: Final = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
}


@functools.cache
def static(name: str) -> bytes:
    """A file that pages load; the style sheet begins with that of audit pages, whose figures these pages share."""
    text = importlib.resources.files("ledgerwood.dashboard").joinpath("static", name).read_bytes()
    if name.endswith(".css"):
        text = importlib.resources.files("ledgerwood.pages").joinpath("page.css").read_bytes() + text
    return text


@functools.cache
def version(name: str) -> str:
    """Changes when the file does, so that browsers may keep it."""
    return hashlib.sha256(static(name)).hexdigest()[:12]


@final
class Pages:
    """The templates."""

    __slots__ = ("_environment",)

    def __init__(self) -> None:
        environment = Environment(
            loader=PackageLoader("ledgerwood.dashboard"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_shown,
        )
        environment.filters["number"] = lambda value: f"{value:,}"
        environment.filters["plain"] = plain
        environment.filters["bar"] = _bar
        environment.filters["figure"] = _figure
        environment.globals.update(
            version=__version__,
            css=f"/static/dashboard.css?v={version('dashboard.css')}",
            script=f"/static/dashboard.js?v={version('dashboard.js')}",
            plain_bar=lambda share, words: _written(figures.plain_bar(share, words)),
        )
        self._environment = environment

    def render(self, template: str, values: dict[str, object]) -> str:
        """A template's text."""
        return self._environment.get_template(template).render(values)


def _shown(value: object) -> object:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _bar(share: UsedShare, of: str) -> Markup:
    return _written(figures.bar(share, of))


def _figure(figure: Figure) -> Markup:
    return _written(figure_element(figure))


def _written(made: Element) -> Markup:
    """An element as text: its own serializer escapes texts and attributes."""
    return Markup(ET.tostring(made, encoding="unicode", method="html"))
