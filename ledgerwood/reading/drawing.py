"""One tree as a picture: where its boxes are and what they say, and the picture as SVG, without a plotting library."""

import textwrap
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.pages.svg import Element, element
from ledgerwood.reading.conditions import shown_name, words
from ledgerwood.reading.covers import node_covers
from ledgerwood.reading.models import TreeModel
from ledgerwood.reading.nodes import ReadNode, read_tree
from ledgerwood.reading.text import leaf_words, shown_share, tree_places

WRAP = 22
"""Characters of a line in a box."""
_LINES = 4
_BOX, _GAP, _LINE, _LEVEL = 158.0, 14.0, 15.0, 44.0
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #22282c; } .small { font-size: 11px; fill: #5a646b; }
rect { fill: #f4f4f0; stroke: #5a646b; } line { stroke: #5a646b; } .up { fill: #cfe3f3; } .down { fill: #fbe0cf; }
@media (prefers-color-scheme: dark) {
text { fill: #e6e8e6; } .small { fill: #a3adb2; } rect { fill: #1e2427; stroke: #a3adb2; } line { stroke: #a3adb2; }
.up { fill: #17395a; } .down { fill: #5a2f14; } }
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeBox:
    """One node of a drawn tree.

    Args:
        across: its place from left to right, in boxes.
        level: its level, 0 for the root.
        lines: what stands in it.
        share: of the rows.
        leaf: whether it has no test.
        sign: of a leaf with one number: 1, -1 or 0; else 0.
        parent: the place of the box above in the drawing, -1 for the root.
        side: "yes" or "no", the answer to the test above; "" of the root.
    """

    across: float
    level: int
    lines: tuple[str, ...]
    share: float
    leaf: bool
    sign: int = 0
    parent: int = -1
    side: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDrawing:
    """A drawn tree: it shows itself in a notebook, and is SVG as text.

    Args:
        title: what is drawn.
        boxes: the nodes, the root first.
        description: in words, for readers who cannot see it.
    """

    title: str
    boxes: tuple[TreeBox, ...]
    description: str

    @property
    def columns(self) -> int:
        """The number of boxes side by side."""
        return 1 + int(max(box.across for box in self.boxes))

    @property
    def levels(self) -> int:
        """The number of levels that are drawn."""
        return 1 + max(box.level for box in self.boxes)

    def svg(self) -> str:
        """The picture as SVG text; names are escaped, and it asks for nothing from elsewhere."""
        tall = 2 + max(len(box.lines) for box in self.boxes)
        height = tall * _LINE
        step = height + _LEVEL
        marks: list[Element] = []
        for box in self.boxes:
            x, y = _GAP + box.across * (_BOX + _GAP), _GAP + box.level * step
            if box.parent >= 0:
                above = self.boxes[box.parent]
                start = _GAP + above.across * (_BOX + _GAP) + _BOX / 2.0
                thick = 1.0 + 5.0 * box.share
                marks.append(
                    element(
                        "line",
                        {
                            "x1": start, "y1": y - step + height, "x2": x + _BOX / 2.0, "y2": y, "stroke-width": thick,
                        },
                    )
                )  # fmt: skip
                middle = (start + x + _BOX / 2.0) / 2.0
                marks.append(
                    _text(middle + (10.0 if box.side == "no" else -10.0), y - _LEVEL / 2.0, box.side, box.side)
                )
        for box in self.boxes:
            x, y = _GAP + box.across * (_BOX + _GAP), _GAP + box.level * step
            side = {1: "up", -1: "down"}.get(box.sign, "")
            shape: dict[str, str | float] = {"x": x, "y": y, "width": _BOX, "height": height, "rx": 4.0}
            marks.append(element("rect", {**shape, "class": side} if side else shape))
            for place, line in enumerate(box.lines):
                marks.append(_text(x + _BOX / 2.0, y + (place + 1.1) * _LINE, line, ""))
            marks.append(_text(x + _BOX / 2.0, y + height - 0.5 * _LINE, shown_share(box.share), "share"))
        wide = 2.0 * _GAP + self.columns * (_BOX + _GAP) - _GAP
        drawn = element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {wide:g} {2.0 * _GAP + self.levels * step - _LEVEL:g}",
                "role": "img",
                "style": f"max-width:100%;width:{wide:g}px",
            },
            element("title", None, self.title),
            element("desc", None, self.description),
            element("style", None, _STYLE),
            *marks,
        )
        return ET.tostring(drawn, encoding="unicode") + "\n"

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file.

        Raises:
            OSError: the file cannot be written.
        """
        Path(path).write_text(self.svg(), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return self.description


def draw_tree(model: Any, *, tree: int = 0, max_depth: int | None = 4) -> TreeDrawing:
    """A picture of one released tree: tests in the schema's words, leaves in the label's unit, shares of the rows.

    Args:
        model: a fitted estimator that releases trees, or a `TreeModel`.
        tree: its place in the ensemble, from 0.
        max_depth: levels of tests that are drawn; a box stands for what is below. None: all.

    Raises:
        InvalidParameter: a model without trees, a place where there is no tree, or a depth below 1.
    """
    read = TreeModel.of(model)
    (place,) = tree_places(read, (tree,))
    most = None if max_depth is None else _validate.count("max_depth", max_depth, "levels")
    covers = node_covers(read)
    output, column = read.output_of(place), 0
    boxes: list[TreeBox] = []
    said: list[str] = []

    def add(node: ReadNode, level: int, parent: int, side: str) -> int:
        nonlocal column
        own = len(boxes)
        boxes.append(TreeBox(across=0.0, level=level, lines=(), share=node.share, leaf=True))  # holds the place
        indent = f"{'  ' * level}{f'{side}: ' if side else ''}"
        if node.mark is None or node.left is None or node.right is None or level == most:
            told = leaf_words(read, node.values, node.noise, output)
            lines = _wrapped(told) if node.mark is None else (f"{node.leaves} leaves, mean", *_wrapped(told))
            said.append(f"{indent}{' '.join(lines)} ({shown_share(node.share)})")
            boxes[own] = TreeBox(
                across=float(column), level=level, lines=lines, share=node.share, leaf=True, parent=parent, side=side,
                sign=0 if output is None else int(np.sign(node.values[output])),
            )  # fmt: skip
            column += 1
            return own
        test = words(read.features[node.feature], node.mark, read.max_bins)
        said.append(f"{indent}{test}? ({shown_share(node.share)})")
        left, right = add(node.left, level + 1, own, "yes"), add(node.right, level + 1, own, "no")
        boxes[own] = TreeBox(
            across=(boxes[left].across + boxes[right].across) / 2.0, level=level, lines=_wrapped(f"{test}?"),
            share=node.share, leaf=False, parent=parent, side=side,
        )  # fmt: skip
        return own

    add(read_tree(read, place, covers), 0, -1, "")
    of = "" if output is None or len(read.outputs) == 1 else f", for {read.outputs[output]}"
    title = f"tree {place} of {len(read.trees)} for {shown_name(read.target.name)}{of}"
    description = "\n".join([f"{title}; shares of rows: {covers.source}", *said])
    return TreeDrawing(title=title, boxes=tuple(boxes), description=description)


def _wrapped(text: str) -> tuple[str, ...]:
    lines = textwrap.wrap(text, WRAP, break_on_hyphens=False) or [""]
    return tuple(lines if len(lines) <= _LINES else [*lines[: _LINES - 1], f"{lines[_LINES - 1][: WRAP - 2]} …"])


def _text(x: float, y: float, words: str, kind: str) -> Element:
    anchor = {"no": "start", "yes": "end"}.get(kind, "middle")
    place: dict[str, str | float] = {"x": x, "y": y, "text-anchor": anchor}
    return element("text", {**place, "class": "small"} if kind else place, words)
