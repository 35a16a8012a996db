"""Figures as SVG: axes, curves, bands, bars and ladders, drawn with the page's own colours and fonts.

Why not a plotting library: docs/adr/0014-figures-are-drawn-by-hand.md. A figure has a title and a description for those
who do not see it; what it shows stands in a table below it, too. Figures, and the HTML around them, are trees of
elements: whatever a user wrote is escaped when it is written.
"""

import math
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np

Element: TypeAlias = ET.Element
Child: TypeAlias = Element | str | None


def element(tag: str, attributes: Mapping[str, str | float] | None = None, *children: Child) -> Element:
    """One element with its attributes and children; a child of None is omitted.

    Args:
        tag: the tag of HTML or SVG, written in this package.
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


Role = Literal["claimed", "found", "bound", "chance", "with", "without", "paid", "drawn", "budget"]
"""The role of a mark; the style sheet gives each role its colour and its dashes."""

WIDTH, HEIGHT = 440.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 14.0, 12.0, 46.0
_ROW = 44.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis.

    Args:
        label: with its unit.
        low, high: the range that is shown, low < high.
        whole: whether only whole numbers are marked.
        log: whether equal ratios are equally far apart; then 0 < low.
    """

    label: str
    low: float
    high: float
    whole: bool = False
    log: bool = False

    def share(self, value: float) -> float:
        """The position of a value, 0 at `low` and 1 at `high`; values outside are moved to the edge."""
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share))

    def ticks(self) -> list[float]:
        """About five round values within the range; 1, 2 and 5 times the powers of ten on a logarithmic axis."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            powers = [factor * 10.0**power for power in range(first, last + 1) for factor in (1.0, 2.0, 5.0)]
            return [round(tick, 12) for tick in powers if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9)]
        rough = (self.high - self.low) / 5.0
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= rough * (1 - 1e-9))
        if self.whole:
            step = max(1.0, math.ceil(step - 1e-9))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(k * step, 12) for k in range(first, last + 1)]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlotCurve:
    """Points joined by lines, or by steps that keep a value until the next point; shape (k,) each."""

    xs: Sequence[float]
    ys: Sequence[float]
    role: Role
    steps: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The area between two curves; shape (k,) each."""

    lower: tuple[Sequence[float], Sequence[float]]
    upper: tuple[Sequence[float], Sequence[float]]
    role: Role


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Heights over bins, drawn as one outline; `edges` has one entry more."""

    edges: Sequence[float]
    heights: Sequence[float]
    role: Role


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One value of a ladder: epsilon found, in words what it is, and whether it holds without an assumption."""

    value: float
    name: str
    sure: bool
    shown: str


Layer = PlotCurve | Band | Bars


def plot(name: str, title: str, description: str, x: Axis, y: Axis, layers: Sequence[Layer]) -> Element:
    """Layers over two axes, the first one at the back.

    Args:
        name: unique in the page, for the ids of title and description.
        title, description: the text for readers who cannot see the figure.
    """
    return _svg(name, title, description, HEIGHT, [*_axes(x, y), *(_layer(layer, x, y) for layer in layers)])


def ladder(
    name: str, title: str, description: str, x: Axis, rungs: Sequence[Rung], claimed: tuple[float, str]
) -> Element:
    """Values as dots on one scale, a row each, with a line where the claim stands. Beyond the scale: an arrow."""
    height = TOP + 20.0 + _ROW * len(rungs) + BOTTOM
    foot = height - BOTTOM
    marks = [_text(_across(x, tick), foot + 16.0, _number(tick), "tick middle") for tick in x.ticks()]
    marks += [_line(_across(x, tick), TOP + 14.0, _across(x, tick), foot, "grid") for tick in x.ticks()]
    marks.append(_text((LEFT_OF_LADDER + WIDTH - RIGHT) / 2.0, height - 8.0, x.label, "axis middle"))
    limit, words = claimed
    if math.isfinite(limit):
        place = _across(x, limit)
        side = "end" if place > WIDTH / 2.0 else "start"
        marks.append(_line(place, TOP + 14.0, place, foot, "curve claimed"))
        marks.append(_text(place, TOP + 8.0, words, f"tick {side}"))
    for row, rung in enumerate(rungs):
        middle = TOP + 20.0 + _ROW * (row + 0.62)
        place = _across(x, rung.value)
        marks.append(_text(LEFT_OF_LADDER, middle - 13.0, f"{rung.name}: {rung.shown}", "rung halo start"))
        marks.append(_line(_across(x, x.low), middle, place, middle, "stem"))
        marks.append(
            element("circle", {"class": "dot" if rung.sure else "dot hollow", "cx": place, "cy": middle, "r": 5.0})
        )
        if rung.value > x.high:
            points = f"{place - 2:.1f},{middle - 6:.1f} {place + 8:.1f},{middle:.1f} {place - 2:.1f},{middle + 6:.1f}"
            marks.append(element("polygon", {"class": "dot", "points": points}))
    return _svg(name, title, description, height, marks)


LEFT_OF_LADDER = 14.0


def swatch(role: Role, *, filled: bool) -> Element:
    """A sample of a role's colour and dashes, for a legend; says nothing by itself."""
    mark = (
        element("rect", {"class": f"area {role}", "x": 1.0, "y": 1.0, "width": 26.0, "height": 10.0})
        if filled
        else _line(1.0, 6.0, 27.0, 6.0, f"curve {role}")
    )
    return element("svg", {"class": "swatch", "viewBox": "0 0 28 12", "aria-hidden": "true"}, mark)


def padded(values: Sequence[float], *, floor: float | None = None, room: float = 0.05) -> tuple[float, float]:
    """A range around the finite values, never empty: from `floor` if that is given, with some room above."""
    finite = [value for value in values if math.isfinite(value)]
    low = min(finite, default=0.0) if floor is None else floor
    high = max([*finite, low])
    span = (high - low) or max(abs(high), 1.0)
    return (low - room * span if floor is None else floor), high + room * span


def _svg(name: str, title: str, description: str, height: float, marks: Sequence[Element]) -> Element:
    return element(
        "svg",
        {
            "id": name,
            "class": "plot",
            "viewBox": f"0 0 {WIDTH:g} {height:g}",
            "role": "img",
            "aria-labelledby": f"{name}-title {name}-description",
        },
        element("title", {"id": f"{name}-title"}, title),
        element("desc", {"id": f"{name}-description"}, description),
        *marks,
    )


def _axes(x: Axis, y: Axis) -> list[Element]:
    foot = HEIGHT - BOTTOM
    marks = []
    for tick in y.ticks():
        height = _up(y, tick)
        marks.append(_line(LEFT, height, WIDTH - RIGHT, height, "grid"))
        marks.append(_text(LEFT - 7.0, height + 4.0, _number(tick), "tick end"))
    for tick in x.ticks():
        marks.append(_line(_over(x, tick), foot, _over(x, tick), foot + 4.0, "rule"))
        marks.append(_text(_over(x, tick), foot + 17.0, _number(tick), "tick middle"))
    marks.append(_line(LEFT, foot, WIDTH - RIGHT, foot, "rule"))
    marks.append(_text((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0, x.label, "axis middle"))
    middle = (TOP + foot) / 2.0
    label = _text(13.0, middle, y.label, "axis middle")
    label.set("transform", f"rotate(-90 13 {middle:g})")
    return [*marks, label]


def _layer(layer: Layer, x: Axis, y: Axis) -> Element:
    match layer:
        case PlotCurve():
            path = _path(layer.xs, layer.ys, x, y, steps=layer.steps)
            return element("path", {"class": f"curve {layer.role}", "d": f"M{path}"})
        case Band():
            there = _path(*layer.upper, x, y)
            back = _path(list(reversed(layer.lower[0])), list(reversed(layer.lower[1])), x, y)
            return element("path", {"class": f"area {layer.role}", "d": f"M{there}L{back}Z"})
        case Bars():
            xs = np.repeat(layer.edges, 2).tolist()
            ys = [0.0, *np.repeat(layer.heights, 2).tolist(), 0.0]
            return element("path", {"class": f"bars {layer.role}", "d": f"M{_path(xs, ys, x, y)}Z"})


def _path(xs: Sequence[float], ys: Sequence[float], x: Axis, y: Axis, *, steps: bool = False) -> str:
    """The points in the figure's units; a point that is NaN is omitted."""
    points: list[str] = []
    before: float | None = None
    for across, up in zip(xs, ys, strict=True):
        if math.isnan(across) or math.isnan(up):
            continue
        place = _up(y, up)
        if steps and before is not None:
            points.append(f"{_over(x, across):.2f} {before:.2f}")
        points.append(f"{_over(x, across):.2f} {place:.2f}")
        before = place
    return "L".join(points)


def _over(x: Axis, value: float) -> float:
    return LEFT + x.share(value) * (WIDTH - LEFT - RIGHT)


def _across(x: Axis, value: float) -> float:
    return LEFT_OF_LADDER + x.share(value) * (WIDTH - LEFT_OF_LADDER - RIGHT - 10.0)


def _up(y: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - y.share(value) * (HEIGHT - TOP - BOTTOM)


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> Element:
    return element("line", {"class": style, "x1": x1, "y1": y1, "x2": x2, "y2": y2})


def _text(x: float, y: float, words: str, style: str) -> Element:
    return element("text", {"class": style, "x": x, "y": y}, words)


def _number(value: float) -> str:
    size = abs(value)
    if size >= 1e6 or 0.0 < size < 1e-4:
        return f"{value:.3g}"
    return f"{value:,.6g}" if size < 1e4 else f"{value:,.0f}"
