"""Partial dependence on one feature or two, from released trees alone: branches are weighed by the nodes' covers.

docs/explanation/reading.md#partial-dependence.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator import Ranged
from ledgerwood.ensemble import TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading.conditions import cell_names, shown_border, shown_name, threshold
from ledgerwood.reading.covers import CoverSource, NodeCovers, node_covers
from ledgerwood.reading.marginals import leaf_regions, reached_shares
from ledgerwood.reading.models import TreeModel

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EffectAxis:
    """The points at which a feature is set: all that the model tells apart.

    Args:
        name: of the feature.
        labels: of each point, (k,): a part of the range in the feature's unit, a category, "other" or "missing".
        edges: of a numeric feature, where its parts begin and the last one ends, rising; a missing value's point comes
            after them. Empty for categories.
        shares: of each point, the share of the rows by the covers; sum 1.
    """

    name: str
    labels: tuple[str, ...]
    edges: tuple[float, ...]
    shares: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartialDependence:
    """The model's mean output where one feature, or two, are set and all others are as the covers have them.

    Args:
        axes: one for each feature.
        values: float64 (k, n_outputs), or (k1, k2, n_outputs) of two features, read-only.
        outputs: the name of each output, as `TreeModel.outputs`.
        unit: of the values: the target's name, "score", or "label" (the share that has this label).
        source: of the covers.
    """

    axes: tuple[EffectAxis, ...]
    values: Floats
    outputs: tuple[str, ...]
    unit: str
    source: CoverSource

    def __post_init__(self) -> None:
        self.values.setflags(write=False)

    @property
    def mean(self) -> Floats:
        """The mean over all points by their shares, float64 (n_outputs,)."""
        found = self.values
        for axis in self.axes:
            found = np.tensordot(axis.shares, found, axes=(0, 0))
        return found

    @property
    def spread(self) -> Floats:
        """The standard deviation of each output over all points by their shares, float64 (n_outputs,)."""
        found = (self.values - self.mean) ** 2
        for axis in self.axes:
            found = np.tensordot(axis.shares, found, axes=(0, 0))
        return np.asarray(np.sqrt(found))

    def __str__(self) -> str:
        names = " and ".join(shown_name(axis.name) for axis in self.axes)
        lines = [f"partial dependence on {names}, in {shown_name(self.unit)}; shares of rows: {self.source}"]
        points = [(label,) for label in self.axes[0].labels]
        if len(self.axes) == 2:
            points = [(*point, label) for point in points for label in self.axes[1].labels]  # type: ignore[misc]
        table = self.values.reshape(len(points), -1)
        wide = [max(len(point[at]) for point in points) for at in range(len(self.axes))]
        for point, values in zip(points, table, strict=True):
            shown = "  ".join(f"{label:<{width}}" for label, width in zip(point, wide, strict=True))
            numbers = ", ".join(
                f"{value:.4g}" if len(self.outputs) == 1 else f"{output} {value:.4g}"
                for output, value in zip(self.outputs, values.tolist(), strict=True)
            )
            lines.append(f"{shown}  {numbers}")
        return "\n".join(lines)


def partial_dependence(model: Any, features: str | int | Sequence[str | int]) -> PartialDependence:
    """The model's mean output at each value of one feature, or at each pair of values of two.

    Each tree is gone through from the root: a test of a chosen feature is followed, and at any other test both branches
    are, weighed by their shares of the node's rows (`node_covers`; scikit-learn's method "recursion"). The grid is
    complete: between two borders of it the model's output does not change. Regressors' outputs are in the label's unit,
    before they are clamped to the declared range; classifiers' are scores, one for each class where there are more than
    two, and of PrivaTree the share of each label.

    Args:
        model: a fitted estimator that releases trees, or a `TreeModel`.
        features: a feature's name or place, or a sequence of one or two of them.

    Raises:
        InvalidParameter: a model without trees, no such feature, one feature twice, or more than two of them.
    """
    read = TreeModel.of(model)
    places = feature_places(read, features)
    return partial_dependence_of(read, places, node_covers(read))


def feature_places(model: TreeModel, features: str | int | Sequence[str | int]) -> tuple[int, ...]:
    """The places of one or two features that are given by name or place.

    Raises:
        InvalidParameter: as `partial_dependence`.
    """
    given = (features,) if isinstance(features, str | int) else _validate.items("features", features, "features")
    if not 1 <= len(given) <= 2:
        raise _validate.fail("features", given, "one feature or two", "features")
    places = tuple(_place_of(model, each) for each in given)
    if len(set(places)) != len(places):
        raise _validate.fail("features", given, "two different features", "features")
    return places


def _place_of(model: TreeModel, feature: str | int) -> int:
    if isinstance(feature, str):
        if feature not in model.names:
            raise _validate.fail("features", feature, f"one of {list(model.names)}", "feature's name")
        return model.names.index(feature)
    place = _validate.count("features", feature, "feature's place", minimum=0)
    if place >= len(model.names):
        raise InvalidParameter(f"features={place!r} must be below {len(model.names)}, the number of features")
    return place


def partial_dependence_of(model: TreeModel, places: tuple[int, ...], covers: NodeCovers) -> PartialDependence:
    """As `partial_dependence`, of features by place, with covers that are computed already."""
    points = [_points(model, place, covers) for place in places]
    values = np.tile(model.start, (*(len(own) for own in points), 1))
    for at, tree in enumerate(model.trees):
        structure, outputs = tree.structure, model.leaf_outputs(at)
        weight, reached = covers.shares[at][len(structure.feature) :], []
        for place, own in zip(places, points, strict=True):
            regions = leaf_regions(structure, place, own)
            # Features are independent: without this one's tests a leaf would have so much more.
            part = reached_shares(regions, covers.features[place].of_parts(own))
            weight = np.divide(weight, part, out=np.zeros(len(part)), where=part > 0.0)
            reached.append(regions.astype(np.float64))
        if (structure.feature[:, np.newaxis] == places).any():
            values += _together(reached, weight[:, np.newaxis] * outputs)
        else:
            values += weight @ outputs
    return PartialDependence(
        axes=tuple(_axis(model, place, own, covers) for place, own in zip(places, points, strict=True)),
        values=values,
        outputs=model.outputs,
        unit=model.unit,
        source=covers.source,
    )


def _together(reached: Sequence[Floats], outputs: Floats) -> Floats:
    """The sum over leaves of what reaches them at each point of the grid, times their outputs."""
    first = reached[0]
    if len(reached) == 1:
        return np.asarray(first.T @ outputs)
    width = outputs.shape[1]
    # One product of matrices for each output: leaves are few, and points are many.
    return np.stack([first.T @ (reached[1] * outputs[:, place, np.newaxis]) for place in range(width)], axis=-1)


def branch_shares(structure: TreeStructure, shares: Floats) -> Floats:
    """The share of each inner node's rows that goes left, float64 (n_inner,); one half where it has none."""
    inner = len(structure.feature)
    left = shares[1::2]
    both = left + shares[2::2]
    return np.asarray(np.divide(left, both, out=np.full(inner, 0.5), where=both > 0.0))


def _points(model: TreeModel, place: int, covers: NodeCovers) -> NDArray[np.int64]:
    """One cell of each group of cells that no tree tells apart; of categories all."""
    feature, starts = model.features[place], covers.features[place].starts
    if not isinstance(feature, Ranged):
        return np.arange(int(model.cell_counts[place]))
    return np.union1d(starts, [model.max_bins]) if feature.missing else starts


def _axis(model: TreeModel, place: int, points: NDArray[np.int64], covers: NodeCovers) -> EffectAxis:
    feature, bins = model.features[place], model.max_bins
    shares = tuple(covers.features[place].of_parts(points).tolist())
    if not isinstance(feature, Ranged):
        return EffectAxis(name=feature.name, labels=cell_names(feature, bins), edges=(), shares=shares)
    borders = [*points[points < bins].tolist(), bins]
    shown = [shown_border(feature, cell, bins) for cell in borders]
    labels = [f"[{low}, {high})" for low, high in itertools.pairwise(shown)]
    labels[-1] = f"{labels[-1][:-1]}]"
    return EffectAxis(
        name=feature.name,
        labels=(*labels, "missing") if feature.missing else tuple(labels),
        edges=tuple(threshold(feature, cell, bins) for cell in borders),
        shares=shares,
    )
