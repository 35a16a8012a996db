"""Pictures of utility over epsilon, from scores that were measured before: drawing trains and spends nothing."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from ledgerwood import _validate
from ledgerwood.displays import style
from ledgerwood.displays.base import AbstractDisplay
from ledgerwood.errors import InvalidParameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = tuple[float, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityCurve:
    """The scores of one model at several epsilons: median, least and largest of the fits at each, shape (k,) each."""

    name: str
    epsilon: Numbers
    median: Numbers
    least: Numbers
    largest: Numbers


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityDisplay(AbstractDisplay):
    """Scores over epsilon, on a logarithmic axis: the median of the fits, and a bar from the least to the largest.

    Each fit that was scored spent its epsilon, unless it was seeded, for a test. A choice among the points that looks
    at private rows spends more: docs/how-to/tune-privately.md.

    Args:
        curves: one for each model.
        score: what was measured, the axis's label.
        references: scores without an epsilon, such as that of a model that is not private; name and score each.
    """

    curves: tuple[UtilityCurve, ...]
    score: str
    references: tuple[tuple[str, float], ...] = ()

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, Mapping[float, Sequence[float]]],
        *,
        score: str,
        references: Mapping[str, float] | None = None,
    ) -> "UtilityDisplay":
        """Take measured scores.

        Args:
            scores: of each model by name, and of each epsilon, one score for each fit: {"model": {1.0: [.81, .83]}}.
            score: what was measured, for the axis: "accuracy".
            references: scores without an epsilon, by name.

        Raises:
            InvalidParameter: no scores, an epsilon that is not positive, or a score that is not finite.
        """
        if not scores:
            raise InvalidParameter("scores={} must have the scores of at least one model, by its name")
        found = {} if references is None else references
        return cls(
            curves=tuple(_curve(name, points) for name, points in scores.items()),
            score=score,
            references=tuple((name, _validate.real(name, value, "score")) for name, value in found.items()),
        )

    @property
    def alt(self) -> str:
        parts = [
            f"{curve.name}: " + ", ".join(
                f"{median:.3g} at epsilon {epsilon:g}"
                for epsilon, median in zip(curve.epsilon, curve.median, strict=True)
            )
            for curve in self.curves
        ]  # fmt: skip
        parts += [f"{name}: {value:.3g}" for name, value in self.references]
        return f"{self.score} over epsilon, medians of fits. {'; '.join(parts)}."

    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        for place, curve in enumerate(self.curves):
            bars = (
                [middle - low for middle, low in zip(curve.median, curve.least, strict=True)],
                [high - middle for middle, high in zip(curve.median, curve.largest, strict=True)],
            )
            look = colours.marked(place)
            ax.errorbar(curve.epsilon, curve.median, bars, capsize=2.5, label=style.shortened(curve.name), **look)
        for place, (name, value) in enumerate(self.references):
            dashes = style.DASHES[(place + 1) % len(style.DASHES)]
            ax.axhline(value, color=colours.soft, linewidth=1.2, linestyle=dashes, label=style.shortened(name))
        ax.set_xscale("log")
        ticks = sorted({epsilon for curve in self.curves for epsilon in curve.epsilon})
        if len(ticks) <= 8:
            ax.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
            ax.minorticks_off()
        ax.set_xlabel("epsilon (nats)")
        ax.set_ylabel(style.shortened(self.score))
        style.legend(ax, colours)


def _curve(name: str, points: Mapping[float, Sequence[float]]) -> UtilityCurve:
    if not points:
        raise InvalidParameter(f"scores[{name!r}] must have at least one epsilon with its scores")
    epsilons = sorted(_validate.positive("epsilon", epsilon, "nats") for epsilon in points)
    rows = [[float(value) for value in _validate.several("scores", points[epsilon], "scores")] for epsilon in epsilons]
    if not all(math.isfinite(value) for row in rows for value in row):
        raise InvalidParameter(f"scores[{name!r}] has a score that is not a finite number")
    return UtilityCurve(
        name=name,
        epsilon=tuple(epsilons),
        median=tuple(statistics.median(row) for row in rows),
        least=tuple(min(row) for row in rows),
        largest=tuple(max(row) for row in rows),
    )
