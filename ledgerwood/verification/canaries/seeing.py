"""The fits of an audit, one after another, the scores of their canaries, and a check of their trees' structure.

Public trees must not depend on rows: fitted again on other rows, with the same public randomness, they are the same.
docs/explanation/canaries.md#structure-check.
"""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ledgerwood import _validate
from ledgerwood.accounting.events import Event
from ledgerwood.curator import Date, Numeric, Schema
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.recording.opening import unreleased
from ledgerwood.schema import LATEST
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.progress import Progress, unseen
from ledgerwood.verification.canaries.fitting import OwnFits, agreement, fresh_copy, plain_labels
from ledgerwood.verification.canaries.power.as_released import event_as_released
from ledgerwood.verification.canaries.recorder import ReleaseRecording
from ledgerwood.verification.canaries.result import StructureCheck
from ledgerwood.verification.canaries.rows import AuditRows, background_rows, canary_cells, extreme_labels

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """The observations of all canaries, training by training.

    Args:
        coins: bool (n,), who was in.
        values: (n,), scores; a higher one speaks for presence.
        normal: (n,), see `CanaryScores`; None unless every training has them.
        gaussian: whether all noise of what was scored is Gaussian.
        mu: the least of all canaries; None with `normal`.
        alone: whether no two canaries of a training shared a leaf of what was scored.
        scored, releases: those of the last training.
        fixed: whether the audit's tree stood in for random ones.
        nats: what all trainings together may tell of all coins; inf where that is not known.
        as_released: the event of the last training by its own noise; None where it is no less than the plan's.
    """

    coins: NDArray[np.bool_]
    values: Floats
    normal: Floats | None = None
    gaussian: bool = False
    mu: float | None = None
    alone: bool = True
    scored: int = 0
    releases: int = 0
    fixed: bool = False
    nats: float = math.inf
    as_released: Event | None = None


def seen_releases(
    fits: OwnFits, rows: AuditRows, trainings: int, generator: np.random.Generator, progress: Progress = unseen
) -> Seen:
    """Fit, and score what was released. A canary's coin is thrown before its fit, and no score looks at it.

    Raises:
        InvalidParameter: releases that tell nothing of one canary among several.
    """
    m = len(rows.cells)
    coins = generator.random((trainings, m)) < 0.5
    evidence = fits.evidence(rows)
    found, fixed = [], False
    recording = ReleaseRecording()
    for included in coins:
        _, recording = fits.fitted(*rows.data(included), generator)
        found.append(fits.scores(recording, evidence))
        fixed = fits.structure is not None and recording.trees > 0
        progress(len(found), trainings)
    if not found[-1].scored:
        raise InvalidParameter(
            f"nothing that {type(fits.estimator).__name__} releases is by leaf, so that it tells nothing of one of "
            "several canaries: set canaries=1 and more trainings, or view='predictions'"
        )
    normal = [each.normal for each in found if each.normal is not None]
    known = len(normal) == trainings
    return Seen(
        coins=coins.reshape(-1),
        values=np.concatenate([each.values for each in found]),
        normal=np.concatenate(normal) if known else None,
        gaussian=all(each.gaussian for each in found),
        mu=min(float(each.mu.min()) for each in found if each.mu is not None) if known else None,
        alone=all(each.alone for each in found),
        scored=found[-1].scored,
        releases=found[-1].releases,
        fixed=fixed,
        nats=math.fsum(each.nats for each in found),
        as_released=event_as_released(recording.releases),
    )


def seen_predictions(
    estimator: Any, fits: OwnFits | None, rows: AuditRows, trainings: int, generator: np.random.Generator,
    progress: Progress = unseen,
) -> Seen:  # fmt: skip
    """Fit, and score what is predicted at the canaries: how far it agrees with their label.

    For an estimator that is not ours, less what models say there that no canary took part in: they saw no coin.

    Raises:
        InvalidParameter: several trainings of an estimator whose noise may be the same in all of them.
    """
    m = len(rows.cells)
    coins = generator.random((trainings, m)) < 0.5
    values, fixed = np.empty((trainings, m)), False
    places = rows.cells.rows.astype(rows.background.dtype)
    without = np.zeros(m)
    if fits is None:
        without = _known_without(estimator, rows, places, trainings, generator)
    for training, included in enumerate(coins):
        data = rows.data(included)
        if fits is None:
            model = _fitted(estimator, rows.given(data[0]), data[1], generator)
        else:
            model, recording = fits.fitted(*data, generator)
            fixed = fits.structure is not None and recording.trees > 0
        values[training] = agreement(model, rows.given(places) if fits is None else places, rows.own) - without
        progress(training + 1, trainings)
    # Only in the audit's own trees is it known that no two canaries meet.
    return Seen(coins=coins.reshape(-1), values=values.reshape(-1), alone=fixed, fixed=fixed)


def _known_without(
    estimator: Any, rows: AuditRows, places: NDArray[Any], trainings: int, generator: np.random.Generator
) -> Floats:
    """What fits without any canary say at the canaries, (m,); 0 if two of them say the same.

    Then noise may be the same in every fit, and the difference of two fits would be free of it: no model is that
    private. docs/explanation/canaries.md#same-noise-again.
    """
    known, asked = rows.given(rows.background), rows.given(places)
    first, second = (agreement(_fitted(estimator, known, rows.labels, generator), asked, rows.own) for _ in range(2))
    if not np.array_equal(first, second):
        return 0.5 * (first + second)
    if trainings > 1:
        raise InvalidParameter(
            f"{type(estimator).__name__} ignores its seed, or adds no noise: two fits on the same rows predict the "
            f"same at all {len(places)} canaries. {trainings} trainings with one noise are less private than each: "
            "set trainings=1, or give every copy fresh noise (a parameter random_state is exchanged for each)"
        )
    return np.zeros(len(places))


def _fitted(estimator: Any, X: Any, y: NDArray[Any], generator: np.random.Generator) -> Any:
    model = fresh_copy(estimator, generator)
    with unreleased():
        model.fit(X, plain_labels(y))
    return model


def structure_depends_on_data(estimator: AbstractTreeEstimator, X: Any, y: Any, *, seed: int = 0) -> StructureCheck:
    """Fit with one seed on X and y, and on neighbours of them, and compare the trees' tests bit by bit.

    The neighbours have one row more, one row less, a row whose values are beyond the schema's bounds, and all labels
    exchanged. What is shown is of these fits; a test passed is no proof.

    Args:
        estimator: one of this library's whose trees are drawn without a look at the rows; a copy of it is seeded.
        X, y: rows of the first fit, at least two.
        seed: the seed of all fits.

    Raises:
        InvalidParameter: another estimator, one that ignores its seed, so that nothing can be compared, or a bought
            schema.
    """
    if not isinstance(estimator, AbstractTreeEstimator):
        raise InvalidParameter(
            f"{type(estimator).__name__} is not an estimator of this library: its trees cannot be inspected"
        )
    seed = _validate.count("seed", seed, "seed", minimum=0)
    if not isinstance(estimator.schema, Schema):
        raise InvalidParameter(
            f"schema={estimator.schema!r}: a privately estimated schema depends on the rows, and so do the trees' "
            "candidates"
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
    assert isinstance(schema, Schema)  # looked at above
    resolved = schema.resolved(rows.shape[1])
    own, other = extreme_labels(resolved)
    cell = canary_cells(resolved, 1, bins=2).rows.astype(rows.dtype)
    beyond = cell.copy()
    for place, feature in enumerate(resolved.features):
        if isinstance(feature, Numeric):
            beyond[0, place] = feature.high + 10.0 * (feature.high - feature.low)
        elif isinstance(feature, Date):
            beyond[0, place] = LATEST[feature.zoned]
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
