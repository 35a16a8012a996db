"""The one style of all displays: colours that colour-blind readers can tell apart, in a light and a dark theme.

A series has a colour, a dash pattern and a marker, so that no two series differ by colour alone. Sizes are chosen for a
figure of half a page. docs/how-to/draw-what-you-have.md shows the result.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final, get_args

from ledgerwood import _extras, _validate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Theme: TypeAlias = Literal["light", "dark"]

SIZE = (5.6, 3.6)
"""Of a figure with one panel, in inches."""
DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = "osD^v"
TITLE, LABEL, SMALL = 10.0, 9.0, 8.0
"""Sizes of texts, in points."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """The colours of one theme.

    Args:
        paper: the background.
        ink: texts and axes, at least 7:1 against the paper.
        soft: secondary texts and reference lines, at least 4.5:1.
        grid: lines behind the data.
        series: data, at least 3:1; the order is that of the series.
    """

    paper: str
    ink: str
    soft: str
    grid: str
    series: tuple[str, ...]

    def line(self, place: int) -> dict[str, Any]:
        """The colour and the dashes of a series, as arguments of `Axes.plot`."""
        return {"color": self.series[place % len(self.series)], "linestyle": DASHES[place % len(DASHES)]}

    def marked(self, place: int) -> dict[str, Any]:
        """The colour, the dashes and the marker of a series."""
        return {**self.line(place), "marker": MARKERS[place % len(MARKERS)], "markersize": 4.5}


PALETTES: dict[Theme, Palette] = {
    "light": Palette(
        paper="#ffffff",
        ink="#22282c",
        soft="#5a646b",
        grid="#e4e4df",
        series=("#0b3f78", "#c84e00", "#0a9a76", "#b5569a", "#6b757c"),
    ),
    "dark": Palette(
        paper="#14181a",
        ink="#e6e8e6",
        soft="#a3adb2",
        grid="#2f373b",
        series=("#4f93e6", "#f0a04b", "#a5ecd2", "#d06fb0", "#a9b3b8"),
    ),
}


def palette(ax: "Axes", theme: Theme | None = None) -> Palette:
    """The colours of a theme, or those that are legible on the axes' present background."""
    if theme is not None:
        return PALETTES[_theme(theme)]
    from matplotlib.colors import to_rgba

    red, green, blue, opaque = to_rgba(ax.get_facecolor())
    brightness = 0.299 * red + 0.587 * green + 0.114 * blue
    return PALETTES["dark" if opaque > 0.5 and brightness < 0.5 else "light"]


def canvas(
    ax: "Axes | None", *, theme: Theme | None = None, size: tuple[float, float] = SIZE, display: str = "a display"
) -> "tuple[Axes, Palette]":
    """The axes to draw on, in the style, and their palette.

    Args:
        ax: the caller's axes; a new figure of pyplot if it is None.
        theme: paints the background, "light" or "dark". None keeps the background that matplotlib has, and chooses the
            colours that are legible on it.
        size: of a new figure, in inches.
        display: who asks, for the message.

    Raises:
        InvalidParameter: another theme.
        ModuleNotFoundError: matplotlib is missing; the message says which extra has it.
    """
    required(display)
    from matplotlib import pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    return ax, dress(ax, theme)


def required(display: str) -> None:
    """Raise with the extra that brings matplotlib, where it is missing.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    try:
        importlib.import_module("matplotlib")
    except ModuleNotFoundError as missing:
        raise _extras.needed(display, missing) from missing


def dress(ax: "Axes", theme: Theme | None = None) -> Palette:
    """Give axes the style: a quiet grid, no box, texts of legible sizes. Returns their palette."""
    colours = palette(ax, theme)
    if theme is not None:
        ax.set_facecolor(colours.paper)
        ax.figure.set_facecolor(colours.paper)
    for side, spine in ax.spines.items():
        spine.set_visible(side in {"left", "bottom"})
        spine.set_color(colours.soft)
    ax.set_axisbelow(True)
    ax.grid(visible=True, color=colours.grid, linewidth=0.8)
    ax.tick_params(which="both", colors=colours.ink, labelsize=SMALL)
    for text in (ax.xaxis.label, ax.yaxis.label):
        text.set_color(colours.ink)
        text.set_fontsize(LABEL)
    ax.title.set_color(colours.ink)
    ax.title.set_fontsize(TITLE)
    return colours


def legend(ax: "Axes", colours: Palette, *, above: bool = False) -> None:
    """A legend without a frame, where more than one thing is named; `above` the axes where bars may fill them."""
    handles, labels = ax.get_legend_handles_labels()
    if len(labels) > 1:
        shown = ax.legend(
            handles, labels, fontsize=SMALL, frameon=False, labelcolor=colours.ink, ncols=2 if above else 1,
            loc="lower left" if above else "best", bbox_to_anchor=(0.0, 1.0) if above else None,
        )  # fmt: skip
        shown.set_zorder(5)


def alone(draw: "Callable[[Axes], object]", theme: Theme, size: tuple[float, float], display: str) -> "Figure":
    """A figure that pyplot does not keep, with what `draw` puts on its axes."""
    required(display)
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    ax = figure.add_subplot()
    dress(ax, theme)
    draw(ax)
    return figure


def shortened(text: str, most: int = 40) -> str:
    """A name that fits beside an axis, without characters that matplotlib reads as mathematics."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    text = text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return text.replace("$", r"\$")


def _theme(theme: Theme) -> Theme:
    if theme not in get_args(Theme):
        raise _validate.fail("theme", theme, "'light' or 'dark'", "name")
    return theme
