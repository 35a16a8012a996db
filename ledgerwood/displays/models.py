"""Pictures of released models: trees, importances with the noise's part, partial dependence, contributions of a row.

All values come from `ledgerwood.reading`: released trees and public schemas. Contributions describe rows of the caller.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.displays import style
from ledgerwood.displays.base import AbstractDisplay
from ledgerwood.reading.contributions import Contributions
from ledgerwood.reading.drawing import TreeDrawing, draw_tree
from ledgerwood.reading.explanations import ModelExplanation, explain
from ledgerwood.reading.importances import ImportanceTable, importances
from ledgerwood.reading.partial_dependence import PartialDependence, partial_dependence
from ledgerwood.reading.text import shown_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

MOST_OUTPUTS = 5
"""Outputs that one picture of effects shows: beyond, colours and dashes repeat."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDisplay(AbstractDisplay):
    """One released tree: tests in the schema's words, leaves in the label's unit, branches as thick as their shares."""

    drawing: TreeDrawing

    @classmethod
    def from_estimator(cls, model: Any, *, tree: int = 0, max_depth: int | None = 3) -> "TreeDisplay":
        """Lay out one tree; arguments and errors as of `ledgerwood.reading.draw_tree`."""
        return cls(drawing=draw_tree(model, tree=tree, max_depth=max_depth))

    @property
    def alt(self) -> str:
        return self.drawing.description

    @property
    def size(self) -> tuple[float, float]:
        return max(style.SIZE[0], 1.35 * self.drawing.columns), max(1.2, 1.0 * self.drawing.levels)

    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        boxes = self.drawing.boxes
        for box in boxes:
            if box.parent >= 0:
                above = boxes[box.parent]
                middle = (above.across + box.across) / 2.0
                ax.plot(
                    (above.across, box.across), (-above.level, -box.level), color=colours.soft,
                    linewidth=0.8 + 4.0 * box.share, zorder=1,
                )  # fmt: skip
                shift = 0.08 if box.side == "no" else -0.08
                ax.text(
                    middle + shift, -box.level + 0.5, box.side, color=colours.soft, fontsize=style.SMALL - 1.0,
                    ha="left" if box.side == "no" else "right", va="center",
                )  # fmt: skip
        for box in boxes:
            edge = {1: colours.series[0], -1: colours.series[1]}.get(box.sign, colours.soft)
            said = "\n".join([*(style.shortened(line) for line in box.lines), shown_share(box.share)])
            ax.text(
                box.across, -box.level, said, color=colours.ink, fontsize=style.SMALL - 1.0, ha="center", va="center",
                zorder=2, bbox={"boxstyle": "round,pad=0.4", "facecolor": colours.paper, "edgecolor": edge},
            )  # fmt: skip
        ax.set_xlim(-0.6, self.drawing.columns - 0.4)
        ax.set_ylim(-self.drawing.levels + 0.5, 0.5)
        ax.axis("off")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceDisplay(AbstractDisplay):
    """Importances by name, the largest first; the part that noise alone is expected to make is hatched.

    Args:
        table: of all features.
        top: how many are drawn.
    """

    table: ImportanceTable
    top: int = 12

    @classmethod
    def from_estimator(cls, model: Any, *, top: int = 12) -> "ImportanceDisplay":
        """Compute the importances of a model.

        Raises:
            InvalidParameter: a model without trees, or `top` below 1.
        """
        return cls(table=importances(model), top=_validate.count("top", top, "features"))

    @property
    def alt(self) -> str:
        parts = [
            f"{each.name} {each.share:.3f}" + ("" if each.noise is None else f" (noise {each.noise:.3f})")
            for each in self.table.features[: self.top]
        ]
        return f"Importances and the part of each that is expected from noise alone: {'; '.join(parts)}."

    @property
    def size(self) -> tuple[float, float]:
        return style.SIZE[0], 1.0 + 0.3 * min(self.top, len(self.table.features))

    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        draw_importances(ax, colours, self.table, self.top)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartialDependenceDisplay(AbstractDisplay):
    """The mean output over the values of one feature, or of two.

    Args:
        found: what is drawn.
        output: of two features, which output; of one feature up to five are drawn.
    """

    found: PartialDependence
    output: int = 0

    @classmethod
    def from_estimator(
        cls, model: Any, features: "str | int | Sequence[str | int]", *, output: int = 0
    ) -> "PartialDependenceDisplay":
        """Compute the partial dependence of a model on one feature or two.

        Raises:
            InvalidParameter: as `ledgerwood.reading.partial_dependence`, or an output that is not there.
        """
        found = partial_dependence(model, features)
        place = _validate.count("output", output, "outputs", minimum=0)
        if place >= len(found.outputs):
            raise _validate.fail("output", output, f"at most {len(found.outputs) - 1}", "outputs")
        return cls(found=found, output=place)

    @property
    def alt(self) -> str:
        names = " and ".join(axis.name for axis in self.found.axes)
        values = self.found.values[..., self.output]
        low, high = (
            " and ".join(axis.labels[at] for axis, at in zip(self.found.axes, places, strict=True))
            for places in (
                np.unravel_index(values.argmin(), values.shape),
                np.unravel_index(values.argmax(), values.shape),
            )
        )
        return (
            f"Mean output ({self.found.unit}) over {names}, for {self.found.outputs[self.output]}: least "
            f"{values.min():.4g} at {low}, most {values.max():.4g} at {high}."
        )

    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        if len(self.found.axes) == 1:
            draw_effect(ax, colours, self.found)
        else:
            draw_pair(ax, colours, self.found, self.found.values[..., self.output], self.found.unit)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ContributionDisplay(AbstractDisplay):
    """How the contributions of one row's features lead from the base value to its output.

    Args:
        found: of some rows.
        row, output: which one is drawn.
        top: features that are drawn one by one; the others are drawn together.
    """

    found: Contributions
    row: int = 0
    output: int = 0
    top: int = 8

    @classmethod
    def from_contributions(
        cls, found: Contributions, *, row: int = 0, output: int = 0, top: int = 8
    ) -> "ContributionDisplay":
        """Choose a row of contributions.

        Raises:
            InvalidParameter: no such row or output, or `top` below 1.
        """
        found.require_place(row, output)
        return cls(found=found, row=row, output=output, top=_validate.count("top", top, "features"))

    @property
    def alt(self) -> str:
        return f"Contributions to {self.found.outputs[self.output]}:\n{self.found.row_text(self.row, self.output)}"

    @property
    def size(self) -> tuple[float, float]:
        return style.SIZE[0], 1.2 + 0.32 * (min(self.top, len(self.found.names)) + 2)

    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        own = self.found.values[self.row, :, self.output]
        order = np.argsort(-np.abs(own), kind="stable")
        names = [f"{self.found.names[at]}: {self.found.cells[self.row, at]}" for at in order[: self.top]]
        steps = own[order[: self.top]].tolist()
        if len(order) > self.top:
            names.append(f"{len(order) - self.top} others")
            steps.append(float(own[order[self.top :]].sum()))
        base = float(self.found.base[self.output])
        at = base
        for place, step in enumerate(steps):
            side = 0 if step >= 0.0 else 1
            ax.barh(
                place, step, left=at, color=colours.series[side], height=0.62, hatch=("", "//")[side],
                edgecolor=colours.paper, linewidth=0.0,
            )  # fmt: skip
            ax.annotate(
                f"{step:+.3g}", (max(at, at + step), place), xytext=(4, 0), textcoords="offset points",
                va="center", fontsize=style.SMALL - 1.0, color=colours.ink,
            )  # fmt: skip
            at += step
        for value, name, height in ((base, "base", -0.7), (at, "output", len(steps) - 0.3)):
            ax.axvline(value, color=colours.soft, linewidth=1.0, linestyle=":")
            ax.text(
                value, height, f"{name} {value:.4g}", color=colours.soft, fontsize=style.SMALL, ha="center",
                bbox={"boxstyle": "square,pad=0.1", "facecolor": colours.paper, "edgecolor": "none"},
            )  # fmt: skip
        passed = np.append(base, base + np.cumsum(steps))
        room = 0.14 * (np.ptp(passed) or 1.0)
        ax.set_xlim(passed.min() - room, passed.max() + room)
        ax.set_yticks(range(len(names)), [style.shortened(name, 32) for name in names])
        ax.set_ylim(len(steps) + 0.1, -1.2)
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(_unit_words(self.found.unit, self.found.outputs[self.output]))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExplanationDisplay(AbstractDisplay):
    """A whole model in one picture: importances, main effects of the top features, and their strongest pair."""

    explanation: ModelExplanation

    @classmethod
    def from_estimator(cls, model: Any, *, top: int = 4) -> "ExplanationDisplay":
        """Explain a model; arguments and errors as of `ledgerwood.reading.explain`."""
        return cls(explanation=explain(model, top=top))

    @property
    def alt(self) -> str:
        return str(self.explanation)

    @property
    def size(self) -> tuple[float, float]:
        return 8.4, 2.6 * self._rows

    @property
    def _rows(self) -> int:
        panels = 1 + len(self.explanation.effects) + (self.explanation.pair is not None)
        return (panels + 1) // 2

    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        ax.axis("off")
        rows, taken = self._rows, 0

        def panel() -> "Axes":
            nonlocal taken
            row, column = divmod(taken, 2)
            taken += 1
            height = 1.0 / rows
            inset = ax.inset_axes((0.08 + 0.53 * column, 1.0 - height * (row + 0.86), 0.38, 0.64 * height))
            inset.set_facecolor(colours.paper)
            style.dress(inset)
            return inset

        draw_importances(panel(), colours, self.explanation.importances, 6)
        for place, effect in enumerate(self.explanation.effects):
            draw_effect(panel(), colours, effect, named=place == 0)
        if self.explanation.pair is not None:
            pair = self.explanation.pair
            several = len(pair.together.outputs) > 1
            of = f"{pair.together.outputs[pair.output]} beyond each" if several else "beyond each"
            draw_pair(panel(), colours, pair.together, pair.interaction[..., pair.output], of)


def draw_importances(ax: "Axes", colours: style.Palette, table: ImportanceTable, top: int) -> None:
    """Bars of the first features, with the noise's part hatched."""
    shown = table.features[:top]
    places = range(len(shown))
    ax.barh(places, [each.share for each in shown], color=colours.series[0], height=0.66, label="share")
    if table.noise is not None:
        part = [min(each.share, each.noise or 0.0) for each in shown]
        ax.barh(
            places, part, color=colours.paper, edgecolor=colours.series[0], hatch="////", height=0.66, linewidth=0.8,
            label="expected from noise alone",
        )  # fmt: skip
        for place, each in zip(places, shown, strict=True):
            low = each.noise or 0.0
            ax.plot(
                (low, low + 3.0 * (each.error or 0.0)), (place, place), color=colours.ink, linewidth=1.2, marker="|"
            )
        style.legend(ax, colours, above=True)
    ax.set_yticks(places, [style.shortened(each.name, 24) for each in shown])
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("share of all importances" if table.noise is not None else "share (its noise is not known)")


def draw_effect(ax: "Axes", colours: style.Palette, found: PartialDependence, *, named: bool = True) -> None:
    """Steps over a range with a mark for a missing value, or a mark for each category; a legend where `named`."""
    (axis,) = found.axes
    for place, output in enumerate(found.outputs[:MOST_OUTPUTS]):
        values = found.values[:, place]
        if axis.edges:
            steps = len(axis.edges) - 1
            ax.stairs(
                values[:steps], axis.edges, baseline=None, linewidth=1.8, label=style.shortened(output, 24),
                **colours.line(place),
            )  # fmt: skip
            if len(values) > steps:
                beyond = axis.edges[-1] + 0.06 * (axis.edges[-1] - axis.edges[0])
                ax.plot((beyond,), values[steps:], color=colours.line(place)["color"], marker=style.MARKERS[place])
                if place == 0:
                    high = found.values[steps].mean() > (found.values.min() + found.values.max()) / 2.0
                    ax.annotate(
                        "missing", (beyond, 0.0 if high else 1.0), xycoords=("data", "axes fraction"), ha="center",
                        va="bottom" if high else "top", fontsize=style.SMALL - 1.0, color=colours.soft, rotation=90,
                    )  # fmt: skip
        else:
            look = {**colours.marked(place), "linestyle": ""}
            ax.plot(range(len(values)), values, label=style.shortened(output, 24), **look)
    if not axis.edges:
        slant = 0 if max(map(len, axis.labels)) * len(axis.labels) < 60 else 60
        shown = [style.shortened(label, 16) for label in axis.labels]
        ax.set_xticks(range(len(shown)), shown, rotation=slant, ha="right" if slant else "center")
        ax.margins(x=0.08, y=0.1)
    ax.set_xlabel(style.shortened(axis.name))
    ax.set_ylabel(_unit_words(found.unit, found.outputs[0]) if len(found.outputs) == 1 else found.unit)
    if named:
        style.legend(ax, colours)


def draw_pair(
    ax: "Axes",
    colours: style.Palette,
    found: PartialDependence,
    values: NDArray[np.float64],
    of: str,
) -> None:
    """A map of one output over two features, with a scale; each point is as wide as its part of the range."""
    edges = [np.array(axis.edges) if axis.edges else np.arange(len(axis.labels) + 1.0) - 0.5 for axis in found.axes]
    for place, axis in enumerate(found.axes):
        if len(axis.labels) >= len(edges[place]):  # a missing value's point comes after the range
            wide = 0.08 * (edges[place][-1] - edges[place][0])
            edges[place] = np.append(edges[place], edges[place][-1] + wide)
            if place == 0:
                ax.annotate(
                    "missing", (edges[place][-1] - wide / 2.0, 1.0), xycoords=("data", "axes fraction"), ha="center",
                    va="bottom", fontsize=style.SMALL - 1.0, color=colours.soft,
                )  # fmt: skip
    size = float(np.abs(values).max()) or 1.0
    spans = {"vmin": -size, "vmax": size, "cmap": "RdBu"} if values.min() < 0.0 < values.max() else {"cmap": "cividis"}
    drawn = ax.pcolormesh(edges[0], edges[1], values.T, **spans)
    for place, axis in enumerate(found.axes):
        if not axis.edges:
            ticks, shown = range(len(axis.labels)), [style.shortened(label, 12) for label in axis.labels]
            (ax.set_xticks if place == 0 else ax.set_yticks)(ticks, shown)
    ax.grid(visible=False)
    ax.set_xlabel(style.shortened(found.axes[0].name))
    ax.set_ylabel(style.shortened(found.axes[1].name))
    bar = ax.figure.colorbar(drawn, cax=ax.inset_axes((1.03, 0.0, 0.04, 1.0)))
    bar.ax.tick_params(colors=colours.ink, labelsize=style.SMALL)
    bar.set_label(style.shortened(of), color=colours.ink, fontsize=style.LABEL)


def _unit_words(unit: str, output: str) -> str:
    return style.shortened(output if unit == output else f"{unit} of {output}")
