"""What each feature of a row contributes to its output: exact Shapley values, with the covers as background.

docs/explanation/reading.md#row-contributions.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import encode_features
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading.conditions import cell_names, shown_name
from ledgerwood.reading.covers import CoverSource, node_covers
from ledgerwood.reading.models import TreeModel
from ledgerwood.reading.partial_dependence import branch_shares
from ledgerwood.reading.shapley import add_contributions
from ledgerwood.sparse_cells import AnyCells, SparseCells
from ledgerwood.threads import threads
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributions:
    """The contributions of all features to the outputs of some rows, which are the caller's.

    The contributions of a row and the base value add up to its output.

    Args:
        values: float64 (n_rows, n_features, n_outputs), read-only.
        base: the mean output by the covers, float64 (n_outputs,), read-only.
        names: of the features.
        outputs: the name of each output, as `TreeModel.outputs`.
        unit: of the values: the target's name, "score", or "label".
        source: of the covers.
        cells: the name of each row's cell of each feature, for texts; (n_rows, n_features).
    """

    values: Floats
    base: Floats
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    unit: str
    source: CoverSource
    cells: NDArray[np.str_]

    def __post_init__(self) -> None:
        for array in (self.values, self.base, self.cells):
            array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def totals(self) -> Floats:
        """The outputs of the rows, float64 (n_rows, n_outputs): base and contributions together."""
        return np.asarray(self.base + self.values.sum(axis=1))

    def row_text(self, row: int = 0, output: int = 0) -> str:
        """One row in words: its contributions to one output, the largest first, and how they add up.

        Raises:
            InvalidParameter: no such row or output.
        """
        self.require_place(row, output)
        own = self.values[row, :, output]
        order = np.argsort(-np.abs(own), kind="stable").tolist()
        names = [f"{shown_name(self.names[at])}: {self.cells[row, at]}" for at in order]
        wide = max(len("base value"), *map(len, names))
        lines = [f"{'base value':<{wide}}  {self.base[output]:>10.4g}"]
        lines += [f"{name:<{wide}}  {own[at]:>+10.4g}" for name, at in zip(names, order, strict=True)]
        lines.append(f"{'together':<{wide}}  {self.totals[row, output]:>10.4g}")
        return "\n".join(lines)

    def require_place(self, row: int, output: int) -> None:
        """Refuse a row or an output that is not there.

        Raises:
            InvalidParameter: so it is.
        """
        rows, _, outputs = self.values.shape
        if not (0 <= row < rows and 0 <= output < outputs):
            raise InvalidParameter(
                f"row={row!r} and output={output!r} must be below {rows} rows and {outputs} outputs, and at least 0"
            )

    def __str__(self) -> str:
        what = ", ".join(self.outputs)
        return (
            f"contributions of {len(self.names)} features to {what} of {len(self)} rows, in {shown_name(self.unit)}; "
            f"base {', '.join(f'{value:.4g}' for value in self.base)}; shares of rows: {self.source}"
        )


def contributions(model: Any, X: Any) -> Contributions:
    """What each feature of each row contributes to the model's output: exact Shapley values of its trees.

    The game: features that are set go their way through the trees, all others weigh both branches by the nodes' covers
    (`node_covers`), as in `partial_dependence`; these are the values of TreeSHAP with path-dependent perturbation, with
    covers that are released or public. Regressors' outputs are in the label's unit, before they are clamped to the
    declared range; classifiers' are scores, one for each class where there are more than two; PrivaTree's are 1 for the
    label and 0 for all others. The result depends on the model and on `X`, which it describes: it is not private if
    these rows are not public.

    Args:
        model: a fitted estimator that releases trees, or a `TreeModel`.
        X: rows in memory, as for `predict`.

    Raises:
        InvalidParameter: a model without trees.
        SchemaError: columns that are not the model's.
    """
    read = TreeModel.of(model)
    if isinstance(model, AbstractTreeEstimator):  # which names columns as `predict` does
        with threads(model.n_jobs):
            return contributions_of(read, _spelled_out(model._cells(X), len(read.features)))
    return contributions_of(read, _spelled_out(encode_features(X, read.schema, bins=read.max_bins), len(read.features)))


def _spelled_out(cells: AnyCells, width: int) -> NDArray[np.uint8 | np.uint16]:
    if not isinstance(cells, SparseCells):
        return cells
    return np.concatenate([block for _, block in cells.blocks(np.arange(width))], axis=1)


def contributions_of(model: TreeModel, cells: NDArray[np.uint8 | np.uint16]) -> Contributions:
    """As `contributions`, of rows that are encoded: cells (n_features, n_rows)."""
    covers = node_covers(model)
    found = np.zeros((cells.shape[1], len(model.features), len(model.outputs)))
    base = model.start
    for place, (tree, shares) in enumerate(zip(model.trees, covers.shares, strict=True)):
        outputs, structure = model.leaf_outputs(place), tree.structure
        base = base + shares[len(structure.feature) :] @ outputs
        if structure.depth:
            add_contributions(structure, branch_shares(structure, shares), outputs, cells, found)
    names = [np.array([*cell_names(feature, model.max_bins), "?"]) for feature in model.features]
    return Contributions(
        values=found,
        base=base,
        names=model.names,
        outputs=model.outputs,
        unit=model.unit,
        source=covers.source,
        cells=np.stack([own[line] for own, line in zip(names, cells, strict=True)], axis=1),
    )
