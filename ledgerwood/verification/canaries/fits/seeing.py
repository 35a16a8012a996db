"""The fits of an audit, one after another, and the scores of their canaries."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.errors import InvalidParameter
from ledgerwood.recording.opening import unreleased
from ledgerwood.verification.canaries.fits.fitting import OwnFits, agreement, fresh_copy, plain_labels
from ledgerwood.verification.canaries.fits.rows import AuditRows

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """What the fits showed of all canaries, those of each training after those of the one before.

    Args:
        coins: bool (n,), who was in.
        values: (n,), scores; a higher one speaks for presence.
        normal: (n,), see `CanaryScores`; None unless every training has them.
        gaussian: whether all noise of what was scored is Gaussian.
        mu: the least of all canaries; None with `normal`.
        alone: whether no two canaries of a training shared a leaf of what was scored.
        scored, releases: of the last training.
        fixed: whether the audit's tree stood in for random ones.
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


def seen_releases(fits: OwnFits, rows: AuditRows, trainings: int, generator: np.random.Generator) -> Seen:
    """Fit, and score what was released. A canary's coin is thrown before its fit, and no score looks at it.

    Raises:
        InvalidParameter: releases that tell nothing of one canary among several.
    """
    m = len(rows.cells)
    coins = generator.random((trainings, m)) < 0.5
    evidence = fits.evidence(rows)
    found, fixed = [], False
    for included in coins:
        _, recording = fits.fitted(*rows.data(included), generator)
        found.append(fits.scores(recording, evidence))
        fixed = fits.structure is not None and recording.trees > 0
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
    )


def seen_predictions(
    estimator: Any, fits: OwnFits | None, rows: AuditRows, trainings: int, generator: np.random.Generator
) -> Seen:
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
    # Only in the audit's own trees is it known that no two canaries meet.
    return Seen(coins=coins.reshape(-1), values=values.reshape(-1), alone=fixed, fixed=fixed)


def _known_without(
    estimator: Any, rows: AuditRows, places: NDArray[Any], trainings: int, generator: np.random.Generator
) -> Floats:
    """What fits without any canary say at the canaries, (m,); 0 where two of them say the same.

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
