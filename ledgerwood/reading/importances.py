"""Importances by name, with the part that the noise alone is expected to make."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ledgerwood.ensemble import Ensemble, Tree
from ledgerwood.reading.conditions import shown_name
from ledgerwood.reading.models import TreeModel
from ledgerwood.trainers.parts.importances import feature_effects

_BAR = 24


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureImportance:
    """The importance of one feature.

    Args:
        name: of the feature.
        share: in the variance that all tests make, as an estimator's `feature_importances_` has it.
        noise: the share that is expected from noise alone, in the same unit, so that it may be compared with `share`;
            None where it is not known.
        error: the standard deviation by which noise moves the share, about; None where it is not known.
    """

    name: str
    share: float
    noise: float | None
    error: float | None

    @property
    def above_noise(self) -> bool:
        """Whether the share exceeds what is expected from noise alone by three of its standard deviations."""
        return self.noise is not None and self.error is not None and self.share > self.noise + 3.0 * self.error


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceTable:
    """The importances of all features, the largest first.

    Args:
        features: one entry for each feature of the schema.
    """

    features: tuple[FeatureImportance, ...]

    @property
    def noise(self) -> float | None:
        """The share of all importances together that is expected from noise alone; None where it is not known."""
        known = [each.noise for each in self.features if each.noise is not None]
        return sum(known) if len(known) == len(self.features) else None

    def __str__(self) -> str:
        names = [shown_name(each.name) for each in self.features]
        wide = max(len("feature"), *map(len, names))
        lines = [f"{'feature':<{wide}}  share  noise  beyond"]
        top = max(each.share for each in self.features) or 1.0
        for name, each in zip(names, self.features, strict=True):
            size = round(_BAR * each.share / top)
            if each.noise is None or each.error is None:
                marked, told = 0, f"{'?':>5}  {'?':>14}"
            else:
                marked = min(size, round(_BAR * each.noise / top))
                told = f"{each.noise:.3f}  {each.share - each.noise:+.3f} \N{PLUS-MINUS SIGN} {each.error:.3f}"
            bar = "\N{MEDIUM SHADE}" * marked + "\N{FULL BLOCK}" * (size - marked)
            lines.append(f"{name:<{wide}}  {each.share:.3f}  {told}  {bar}".rstrip())
        noise = self.noise
        known = "not known, by this model" if noise is None else f"{noise:.3f} of all importances (\N{MEDIUM SHADE})"
        return "\n".join([*lines, f"expected from noise alone: {known}"])


def importances(model: Any) -> ImportanceTable:
    """The importances of a model's features by name, each with the part that noise alone is expected to make.

    Args:
        model: a fitted estimator that releases trees, or a `TreeModel`.

    Raises:
        InvalidParameter: a model without trees.
    """
    read = TreeModel.of(model)
    ensemble = read.ensemble
    if read.labels:  # places of classes are no numbers: a column for each class, 1 where it is the label
        marks = (Tree(structure=tree.structure, values=read.leaf_outputs(at)) for at, tree in enumerate(read.trees))
        ensemble = Ensemble(initial_score=0.0, trees=tuple(marks), class_scores=(0.0,) * len(read.classes))
    found = feature_effects(ensemble, len(read.features))
    total = float(found.effects.sum()) or 1.0
    order = np.argsort(-found.effects, kind="stable").tolist()
    return ImportanceTable(
        features=tuple(
            FeatureImportance(
                name=read.names[place],
                share=float(found.effects[place]) / total,
                noise=float(found.noise[place]) / total if found.known else None,
                error=float(found.error[place]) / total if found.known else None,
            )
            for place in order
        )
    )
