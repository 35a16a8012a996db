"""Checks a built site: nothing is loaded from another host, and each link within it leads to a file.

Run: python docs/check_site.py docs/_build/html
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
_OWN_ADDRESSES = {"canonical", "alternate", "license"}
"""Relations of `link` that name a page and load nothing."""


class _Page(HTMLParser):
    """What a page loads and what it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        self._style = tag == "style"
        self.loaded += _in_styles(own.get("style") or "")
        address = own.get(_LOADED.get(tag, ""))
        if address and own.get("rel") not in _OWN_ADDRESSES:
            self.loaded.append(address)
        if tag == "a" and own.get("href"):
            self.linked.append(own["href"] or "")

    def handle_data(self, data: str) -> None:
        if self._style:
            self.loaded += _in_styles(data)


def _in_styles(text: str) -> list[str]:
    return re.findall(r"(?:url\(|@import )\s*['\"]?([^'\")\s;]+)", text)


def foreign(address: str) -> bool:
    """Whether an address is on a host."""
    return bool(urlsplit(address).netloc)


def complaints(site: Path) -> Iterator[str]:
    """One line for each thing that is wrong."""
    for path in sorted(site.rglob("*.css")):
        found = _in_styles(path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(site)} loads {each}" for each in found if foreign(each))
    for path in sorted(site.rglob("*.html")):
        if path.name == "webpack-macros.html":  # a template of the theme, which lies beside its styles
            continue
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(site)} loads {each}" for each in page.loaded if foreign(each))
        for link in [*page.loaded, *page.linked]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not parts.path:
                continue
            target = (path.parent / unquote(parts.path)).resolve()
            if target.is_relative_to(site.resolve()) and not target.exists():
                yield f"{path.relative_to(site)} links to {link}, which is not there"


def main() -> None:
    site = Path(sys.argv[1])
    pages = len(list(site.rglob("*.html")))
    found = list(complaints(site))
    print("\n".join(found) or f"{pages} pages load nothing from elsewhere, and all their own links lead to files")
    sys.exit(1 if found or not pages else 0)


if __name__ == "__main__":
    main()
