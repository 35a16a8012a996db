"""Outputs of cells: sentences break at the edge of the page, and columns keep their lines and scroll."""

import re
from typing import Any

from docutils import nodes

_BOX = re.compile("[\N{BOX DRAWINGS LIGHT HORIZONTAL}-\N{BOX DRAWINGS HEAVY LEFT AND LIGHT RIGHT}]")
_GAP = re.compile(r"\S {2,}\S")


def has_columns(text: str) -> bool:
    """Whether a text is a table: it has lines that were drawn, or gaps in two lines or more."""
    return bool(_BOX.search(text)) or sum(bool(_GAP.search(line)) for line in text.splitlines()) >= 2


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""

    def marked(_app: Any, doctree: nodes.document, _page: str) -> None:
        for block in doctree.findall(nodes.literal_block):
            if has_columns(block.astext()):
                block["classes"].append("columns")

    app.connect("doctree-resolved", marked)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
