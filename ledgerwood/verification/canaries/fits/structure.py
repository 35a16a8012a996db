"""Public trees must not depend on rows: fitted again on other rows, with the same public randomness, they are the same.

docs/explanation/canaries.md#structure-check.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ledgerwood import _validate
from ledgerwood.curator import Numeric
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.recording.opening import unreleased
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.verification.canaries.fits.cells import canary_cells, extreme_labels
from ledgerwood.verification.canaries.fits.rows import background_rows
from ledgerwood.verification.canaries.result import StructureCheck


def structure_depends_on_data(estimator: AbstractTreeEstimator, X: Any, y: Any, *, seed: int = 0) -> StructureCheck:
    """Fit with one seed on X and y, and on neighbours of them, and compare the trees' tests bit by bit.

    The neighbours have one row more, one row less, a row whose values are beyond the schema's bounds, and all labels
    exchanged. What is shown is of these fits; a test passed is no proof.

    Args:
        estimator: one of this library's whose trees are drawn without a look at the rows; a copy of it is seeded.
        X, y: rows of the first fit, at least two.
        seed: of all fits.

    Raises:
        InvalidParameter: another estimator, one that ignores its seed, so that nothing can be compared, or a bought
            schema.
    """
    if not isinstance(estimator, AbstractTreeEstimator):
        raise InvalidParameter(
            f"{type(estimator).__name__} is not an estimator of this library: its trees are not seen"
        )
    seed = _validate.count("seed", seed, "seed", minimum=0)
    if estimator.schema is None:
        raise InvalidParameter(
            "schema=None: a privately estimated schema depends on the rows, and so do the trees' candidates"
        )
    rows, labels = background_rows(X, y, estimator.schema)
    if len(rows) < 2:
        raise _validate.fail("len(X)", len(rows), "at least 2", "rows")
    first, again = (_forest(estimator, rows, labels, seed) for _ in range(2))
    trees = len(first)
    if len(again) != trees or not all(_same(*pair) for pair in zip(first, again, strict=True)):
        raise InvalidParameter(
            f"{type(estimator).__name__} ignores its seed: two fits on the same rows with random_state={seed} drew "
            "other trees, so that a change of rows cannot be told from a change of luck"
        )
    neighbours = _neighbours(estimator, rows, labels)
    for change, (other_rows, other_labels) in neighbours.items():
        other = _forest(estimator, other_rows, other_labels, seed)
        if len(other) != trees:
            return _found(trees, neighbours, f"{change}: {len(other)} trees, not {trees}")
        for number, pair in enumerate(zip(first, other, strict=True)):
            if not _same(*pair):
                return _found(trees, neighbours, f"{change}: tree {number + 1}")
    return _found(trees, neighbours, None)


def _found(trees: int, neighbours: dict[str, Any], difference: str | None) -> StructureCheck:
    return StructureCheck(independent=difference is None, trees=trees, changes=tuple(neighbours), difference=difference)


def _neighbours(
    estimator: AbstractTreeEstimator, rows: NDArray[Any], labels: NDArray[Any]
) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    schema = estimator.schema
    assert schema is not None  # looked at above
    resolved = schema.resolved(rows.shape[1])
    own, other = extreme_labels(resolved)
    cell = canary_cells(resolved, 1, bins=2).rows.astype(rows.dtype)
    beyond = cell.copy()
    for place, feature in enumerate(resolved.features):
        if isinstance(feature, Numeric):
            beyond[0, place] = feature.high + 10.0 * (feature.high - feature.low)
    label = np.empty(1, dtype=labels.dtype)
    label[0] = own
    exchanged = labels.copy()
    exchanged[:] = other
    return {
        "one row more": (np.concatenate((rows, cell)), np.concatenate((labels, label))),
        "one row less": (rows[1:], labels[1:]),
        "a row beyond the bounds": (np.concatenate((rows, beyond)), np.concatenate((labels, label))),
        "another label for all rows": (rows, exchanged),
    }


def _forest(
    estimator: AbstractTreeEstimator, rows: NDArray[Any], labels: NDArray[Any], seed: int
) -> list[TreeStructure]:
    model = clone(estimator).set_params(random_state=seed)
    with unreleased():
        model.fit(rows, labels)
    ensemble: Ensemble = model.ensemble_
    return [tree.structure for tree in ensemble.trees]


def _same(first: TreeStructure, second: TreeStructure) -> bool:
    # `lowered` is all that decides where a row goes; `split` is what a test looked like.
    arrays = ((tree.split, tree.equals, *tree.lowered()) for tree in (first, second))
    return all(np.array_equal(a, b) for a, b in zip(*arrays, strict=True))
