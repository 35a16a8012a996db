"""The README's picture, drawn from docs/benchmarks/utility.json: utility over epsilon, the median over 18 tables.

Run: python -m benchmarks.front_picture  (writes docs/benchmarks/utility.svg)

Written by hand rather than by matplotlib, so that its text stays text and the same figures give the same bytes. It has
a background, and so can be read on a light page and on a dark one.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.boosting import OURS
from benchmarks.boosting_pages import budgets, closed, models_of
from ledgerwood.pages.svg import ET, Element, element

PAGES = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
SPACE = "http://www.w3.org/2000/svg"
WIDTH, HEIGHT = 800.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 70.0, 230.0, 64.0, 56.0
INK, SOFT, GRID = "#1b1f24", "#57606a", "#e2e6ea"
NAMES = {OURS: "recommended trees", "S-GBDT": "S-GBDT", "federated": "federated framework", "DP-EBM": "DP-EBM"}
COLOURS = {OURS: "#0b6e4f", "S-GBDT": "#7a8691", "federated": "#7a8691", "DP-EBM": "#b3541e"}
DASHES = {"S-GBDT": "2 4", "federated": "8 4"}
WAY = "share of the way from one answer for all (0) to a model without privacy (1)"
APART = 19.0
"""The least distance of two labels, in the picture's units."""


def medians(tables: Mapping[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """For each model that was measured at every budget, pairs of epsilon and share of the way, the median of tables."""
    found = {}
    for model in models_of(tables):
        own = []
        for epsilon in budgets(tables):
            shares = [share for task in tables.values() if (share := closed(task, model, epsilon)) is not None]
            if shares:
                own.append((float(epsilon), float(np.median(shares))))
        if len(own) == len(budgets(tables)):
            found[model] = own
    return found


def picture(tables: Mapping[str, Any]) -> str:
    """The whole file."""
    found = {model: own for model, own in medians(tables).items() if model in NAMES}
    epsilons = [epsilon for epsilon, _ in found[OURS]]
    said = "; ".join(f"{NAMES[m]} {', '.join(f'{share:.2f}' for _, share in own)}" for m, own in found.items())
    at = ", ".join(f"{epsilon:g}" for epsilon in epsilons)
    marks = [
        element("title", {"id": "t"}, "Utility over epsilon"),
        element("desc", {"id": "d"}, f"Share of the way from trivial to not private at epsilon {at}: {said}."),
        element("rect", {"width": WIDTH, "height": HEIGHT, "rx": 8.0, "fill": "#ffffff"}),
        _text(24.0, 30.0, "How much of a model's usefulness is left under privacy", size=18, weight="bold"),
        _text(24.0, 51.0, f"{WAY}, median of {len(tables)} tables", ink=SOFT),
        *_axes(epsilons),
    ]
    for model in sorted(found, key=lambda each: each == OURS):
        points = [(_over(epsilon, epsilons), _up(share)) for epsilon, share in found[model]]
        width = 4.0 if model == OURS else 2.0
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        dashes = {"stroke-dasharray": DASHES[model]} if model in DASHES else {}
        look = {"fill": "none", "stroke": COLOURS[model], "stroke-width": width, **dashes}
        marks.append(element("path", {"d": f"M{path}", **look}))
        marks += [element("circle", {"cx": x, "cy": y, "r": width + 1.0, "fill": COLOURS[model]}) for x, y in points]
    marks += _labels({model: own[-1][1] for model, own in found.items()})
    frame = {"xmlns": SPACE, "viewBox": f"0 0 {WIDTH:g} {HEIGHT:g}", "width": WIDTH, "height": HEIGHT}
    words = {"role": "img", "aria-labelledby": "t d"}
    fonts = {"font-family": "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"}
    svg = element("svg", {**frame, **words, **fonts}, *marks)
    ET.indent(svg, space="")
    return ET.tostring(svg, encoding="unicode") + "\n"


def _axes(epsilons: list[float]) -> list[Element]:
    right, foot = WIDTH - RIGHT, HEIGHT - BOTTOM
    marks = []
    for share, words in ((0.0, "0"), (0.25, ".25"), (0.5, ".5"), (0.75, ".75"), (1.0, "1")):
        height = _up(share)
        marks.append(_line(LEFT, height, right, height, ink=SOFT if share in {0.0, 1.0} else GRID))
        marks.append(_text(LEFT - 10.0, height + 5.0, words, anchor="end", ink=SOFT))
    for epsilon in epsilons:
        place = _over(epsilon, epsilons)
        marks.append(_line(place, foot, place, foot + 5.0, ink=SOFT))
        marks.append(_text(place, foot + 21.0, f"{epsilon:g}".removeprefix("0"), anchor="middle", ink=SOFT))
    marks.append(_text((LEFT + right) / 2.0, HEIGHT - 12.0, "epsilon (less is more private)", anchor="middle"))
    marks.append(_text(right + 14.0, _up(0.0) + 5.0, "the same answer for all", ink=SOFT))
    return marks


def _labels(ends: Mapping[str, float]) -> list[Element]:
    """Each model's name at the end of its curve, moved down where two would meet; above them the goal."""
    place = TOP + 5.0
    marks = [_text(WIDTH - RIGHT + 14.0, place, "without privacy", ink=SOFT)]
    for model, share in sorted(ends.items(), key=lambda each: -each[1]):
        place = max(place + APART, _up(share) + 5.0)
        weight = "bold" if model == OURS else "normal"
        marks.append(_text(WIDTH - RIGHT + 14.0, place, NAMES[model], ink=COLOURS[model], weight=weight))
    return marks


def _over(epsilon: float, epsilons: list[float]) -> float:
    low, high = math.log(min(epsilons)), math.log(max(epsilons))
    return LEFT + 20.0 + (math.log(epsilon) - low) / (high - low) * (WIDTH - RIGHT - LEFT - 40.0)


def _up(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _line(x1: float, y1: float, x2: float, y2: float, *, ink: str) -> Element:
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "stroke": ink})


def _text(
    x: float, y: float, words: str, *, size: float = 15, ink: str = INK, anchor: str = "start", weight: str = "normal"
) -> Element:
    look = {"fill": ink, "font-size": size, "text-anchor": anchor, "font-weight": weight}
    return element("text", {"x": x, "y": y, **look}, words)


def stored() -> Mapping[str, Any]:
    """The scores of all models on all tables."""
    tables: Mapping[str, Any] = json.loads((PAGES / "utility.json").read_text(encoding="utf-8"))["tables"]
    return tables


def main() -> None:
    (PAGES / "utility.svg").write_text(picture(stored()), encoding="utf-8")


if __name__ == "__main__":
    main()
