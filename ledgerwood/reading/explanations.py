"""A whole model at a glance: importances, the effects of its main features, and the pair that works together most."""

import itertools
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.reading.conditions import shown_name
from ledgerwood.reading.covers import node_covers
from ledgerwood.reading.importances import ImportanceTable, importances
from ledgerwood.reading.models import TreeModel
from ledgerwood.reading.partial_dependence import PartialDependence, partial_dependence_of

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairEffect:
    """What two features do together beyond what each does alone.

    Args:
        together: the partial dependence on both.
        interaction: that minus the effects of each alone, float64 (k1, k2, n_outputs); its mean over either is 0.
        strength: the root of its mean square over all points by their shares, in the unit of the outputs.
        output: the one of which it is the largest.
    """

    together: PartialDependence
    interaction: Floats
    strength: float
    output: int = 0

    @property
    def names(self) -> tuple[str, str]:
        """The two features."""
        first, second = self.together.axes
        return first.name, second.name


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelExplanation:
    """What a model does, in one value.

    Args:
        importances: of all features.
        effects: the partial dependence on each of the most important features, in their order.
        pair: of these features, the two with the strongest interaction; None of fewer than two.
    """

    importances: ImportanceTable
    effects: tuple[PartialDependence, ...]
    pair: PairEffect | None

    def __str__(self) -> str:
        lines = [str(self.importances), ""]
        for effect in self.effects:
            low, high = effect.values.min(axis=0), effect.values.max(axis=0)
            spans = ", ".join(f"{a:.4g} to {b:.4g}" for a, b in zip(low, high, strict=True))
            lines.append(f"{shown_name(effect.axes[0].name)}: mean output from {spans} ({shown_name(effect.unit)})")
        if self.pair is not None:
            first, second = map(shown_name, self.pair.names)
            lines.append(
                f"strongest pair: {first} and {second}, interaction {self.pair.strength:.3g} "
                f"({shown_name(self.pair.together.unit)})"
            )
        return "\n".join(lines)


def explain(model: Any, *, top: int = 4) -> ModelExplanation:
    """Importances, the effects of the most important features, and the strongest pair of them, from trees alone.

    Args:
        model: a fitted estimator that releases trees, or a `TreeModel`.
        top: how many features have their effects shown, and their pairs compared; at least 1.

    Raises:
        InvalidParameter: a model without trees, or `top` below 1.
    """
    read = TreeModel.of(model)
    count = _validate.count("top", top, "features")
    table, covers = importances(read), node_covers(read)
    places = [read.names.index(each.name) for each in table.features[:count] if each.share > 0.0]
    effects = {place: partial_dependence_of(read, (place,), covers) for place in places}
    pairs = [pair_effect(partial_dependence_of(read, pair, covers)) for pair in itertools.combinations(places, 2)]
    return ModelExplanation(
        importances=table,
        effects=tuple(effects.values()),
        pair=max(pairs, key=lambda pair: pair.strength, default=None),
    )


def pair_effect(together: PartialDependence) -> PairEffect:
    """The interaction of two features: their effect without the means over either, by the shares of the points.

    docs/explanation/reading.md#pairs.
    """
    (a, b), values = (np.array(axis.shares) for axis in together.axes), together.values
    alone = np.tensordot(b, values, axes=(0, 1)), np.tensordot(a, values, axes=(0, 0))
    mean = np.tensordot(a, alone[0], axes=(0, 0))
    found = values - alone[0][:, np.newaxis] - alone[1][np.newaxis] + mean
    squares = np.tensordot(a, np.tensordot(b, found**2, axes=(0, 1)), axes=(0, 0))
    found.setflags(write=False)
    output = int(np.argmax(squares))
    return PairEffect(together=together, interaction=found, strength=float(np.sqrt(squares[output])), output=output)
