"""Many fits of one learner, with and without one row that stands out from a small background.

Each fit has randomness that depends on nothing else. Fits run in one process or in several.
"""

import math
import pickle
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import joblib
import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator import Categorical, Feature, Numeric, Schema
from ledgerwood.errors import AuditFailed, InvalidParameter, PrivacyError, PrivacyWarning
from ledgerwood.schema import as_given
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.verification.canaries.fitting import fresh_copy, plain_labels
from ledgerwood.verification.canaries.released_values import Released, Shown, shown
from ledgerwood.verification.canaries.rows import FrameShape

Array = NDArray[Any]
Rows = tuple[Array, Array]
"""X and y of one fit."""
FAR = (10.0, 1000.0)
"""Half ranges of a column that an outlier is away from its middle, where no schema bounds it."""
_CLASSES = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutlierPair:
    """Two neighbouring data sets.

    Args:
        first: with the canary.
        second: without it, or with another row in its place.
        words: a description of the canary, and of the row in its place.
    """

    first: Rows
    second: Rows
    words: str


def few_rows(X: Array, y: Array, size: int, *, classify: bool, generator: np.random.Generator) -> Rows:
    """At most `size` rows of the background, drawn at random; of every class the same number, and two at least."""
    order = generator.permutation(len(X))
    if classify:
        groups = [[row for row in order.tolist() if y[row] == label] for label in dict.fromkeys(y.tolist())]
        each = max(2, size // len(groups))
        taken = np.sort(np.array([row for group in groups for row in group[:each]], dtype=np.int64))
    else:
        taken = np.sort(order[:size])
    return X[taken], y[taken]


def pairs(
    background: Rows, schema: Schema, *, bounded: bool, replaced: bool, canary: tuple[Any, Any] | None
) -> list[OutlierPair]:
    """Pairs of neighbours worth a look.

    Args:
        background: X and y.
        schema: ranges and categories: a declared one, or those of the rows.
        bounded: whether the schema is declared, so that no row may be beyond it.
        replaced: whether neighbours have another row in the canary's place, or none.
        canary: the only one to look at, (row, label); None: the corners of the schema and, where it is not declared,
            rows far beyond them, each with the labels at both ends.

    Raises:
        InvalidParameter: a canary of another length than the background's rows.
    """
    candidates = _candidates(schema, bounded=bounded) if canary is None else [_given(canary, background)]
    found = []
    typical = _joined(background, background[0][0], background[1][0])
    for row, label, opposite, other, words in candidates:
        with_it = _joined(background, row, label)
        if not replaced:
            found.append(OutlierPair(first=with_it, second=background, words=words))
            continue
        found.append(OutlierPair(first=with_it, second=typical, words=f"{words}; for a row of the background"))
        if opposite is not None:
            found.append(
                OutlierPair(
                    first=with_it, second=_joined(background, opposite, other), words=f"{words}; for its opposite"
                )
            )
    return found


def _candidates(schema: Schema, *, bounded: bool) -> list[tuple[Any, Any, Any, Any, str]]:
    """(row, label, opposite row, its label, words) of each."""
    features = schema.features
    places: list[tuple[str, list[float]]] = [
        ("every feature at its upper end", [1.0] * len(features)),
        ("every feature at its lower end", [-1.0] * len(features)),
    ]
    if len(features) > 1:
        places.append(("features at their upper and lower ends in turn", [(-1.0) ** i for i in range(len(features))]))
    if not bounded:
        places += [(f"every feature {far:g} half ranges above its middle", [far] * len(features)) for far in FAR]
    found = []
    for label, other, named in _labels(schema, bounded=bounded):
        for words, at in places:
            row = [_at(feature, place) for feature, place in zip(features, at, strict=True)]
            opposite = [_at(feature, -place) for feature, place in zip(features, at, strict=True)]
            found.append((row, label, opposite, other, f"{words}, {named}"))
    return found


def _labels(schema: Schema, *, bounded: bool) -> list[tuple[Any, Any, str]]:
    target = schema.target
    if isinstance(target, Categorical):
        labels = list(target.categories)
        ends = [labels[-1], labels[0], *labels[1:-1]][:_CLASSES]
        return [(label, ends[0] if label != ends[0] else ends[1], f"label {label!r}") for label in ends]
    assert isinstance(target, Numeric)  # a canary's schema has a target
    found = [(target.high, target.low, "the highest label"), (target.low, target.high, "the lowest label")]
    if not bounded:
        middle, half = 0.5 * (target.high + target.low), 0.5 * (target.high - target.low)
        found.append((middle + FAR[-1] * half, middle - FAR[-1] * half, "a label far beyond all others"))
    return found


def _at(feature: Feature, place: float) -> Any:
    if isinstance(feature, Categorical):
        return feature.categories[-1 if place > 0.0 else 0]
    middle, half = 0.5 * (feature.high + feature.low), 0.5 * (feature.high - feature.low)
    # The ends themselves, not what rounding makes of them: a value beyond one may be refused.
    return as_given(feature, {1.0: feature.high, -1.0: feature.low}.get(place, middle + place * half))


def _given(canary: Any, background: Rows) -> tuple[Any, Any, Any, Any, str]:
    if not isinstance(canary, tuple | list) or len(canary) != 2:
        raise InvalidParameter(f"canary={canary!r} must be a row and its label, (x, y) (unit: row)")
    row, label = list(np.asarray(canary[0], dtype=object).ravel()), canary[1]
    if len(row) != background[0].shape[1]:
        raise InvalidParameter(
            f"canary has {len(row)} values, and X has {background[0].shape[1]} columns (unit: columns)"
        )
    return row, label, None, None, "the canary that was given"


def _joined(background: Rows, row: Any, label: Any) -> Rows:
    X, y = background
    more, its = np.empty((1, X.shape[1]), dtype=object), np.empty(1, dtype=object)
    more[0, :], its[0] = row, label
    try:
        return np.concatenate((X, more.astype(X.dtype))), np.concatenate((y, its.astype(y.dtype)))
    except (TypeError, ValueError) as error:
        raise InvalidParameter(f"canary does not fit the background's columns: {error} (unit: row)") from error


_BLOCK, _SHARES = 16, 4
"""Fits of one task at least, and tasks of each process in one call: what a task costs should not matter."""
_WORDS = 4


@final
@dataclass(slots=True, eq=False)
class ManyFits:
    """The learner and how many times it was fitted.

    Args:
        estimator: never fitted itself.
        released: the values that are used.
        n_jobs: processes; it changes no result.
        budget: fits in all, for the progress.
        progress: called with (fits done, fits in all).
        frame: columns and types of the data frame that learners are given; None: arrays.
    """

    estimator: Any
    released: Released
    n_jobs: int
    budget: int
    progress: Progress
    frame: FrameShape | None = None
    done: int = field(default=0)

    def __call__(self, rows: Rows, n: int, generator: np.random.Generator) -> list[Shown]:
        """n fits on the same rows. The seeds of all of them are drawn here, so that processes change nothing.

        Raises:
            AuditFailed: a released value could not be computed.
            InvalidParameter: it is of no kind that can be read; a learner that no other process can be given.
        """
        seeds = generator.integers(2**32, size=(n, _WORDS), dtype=np.uint64)
        size = _BLOCK if self.n_jobs == 1 else max(_BLOCK, math.ceil(n / (_SHARES * self.n_jobs)))
        blocks = [seeds[at : at + size] for at in range(0, n, size)]
        found: list[Shown] = []
        for part in self._parts(rows, blocks):
            found += part
            self.done += len(part)
            self.progress(min(self.done, self.budget), self.budget)
        return found

    def _parts(self, rows: Rows, blocks: Sequence[NDArray[np.uint64]]) -> Any:
        if self.n_jobs == 1:
            return (_fitted(self.estimator, self.released, self.frame, rows, seeds) for seeds in blocks)
        run: Callable[..., Any] = joblib.Parallel(n_jobs=self.n_jobs, return_as="generator")
        tasks = (joblib.delayed(_fitted)(self.estimator, self.released, self.frame, rows, seeds) for seeds in blocks)
        return _told(run(tasks), self.estimator)


def _told(parts: Any, estimator: Any) -> Any:
    try:
        yield from parts
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidParameter(
            f"{type(estimator).__name__}, or released=, cannot be handed to another process ({error}): set n_jobs=1"
        ) from error


def _fitted(
    estimator: Any, released: Released, frame: FrameShape | None, rows: Rows, seeds: NDArray[np.uint64]
) -> list[Shown]:
    """One block. Global generators are seeded for each fit: processes would start from one state, and repeat noise."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002 - learners use it
    try:
        return [_fit(estimator, released, frame, rows, words) for words in seeds.tolist()]
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002 - see above
        random.setstate(python_state)


def _fit(estimator: Any, released: Released, frame: FrameShape | None, rows: Rows, words: list[int]) -> Shown:
    np.random.seed(words)  # noqa: NPY002 - see above
    random.seed(repr(words))
    model = fresh_copy(estimator, np.random.default_rng(words))
    X, y = rows
    try:
        with warnings.catch_warnings():
            # A seed, or the same columns again: what is warned of in a fit is what an audit does.
            warnings.simplefilter("ignore", PrivacyWarning)
            # A fit may write into what it is given.
            model.fit(X.copy() if frame is None else frame.filled(X), plain_labels(y))
    except Exception as error:  # noqa: BLE001 - whatever a learner raises is an outcome of it
        return Shown(columns={}, failure=f"{type(error).__name__}: {error}")
    try:
        return shown(model, released)
    except PrivacyError:
        raise
    except Exception as error:
        raise AuditFailed(
            f"released= raised {type(error).__name__} on a fitted {type(model).__name__}: {error}"
        ) from error


def jobs(n_jobs: object) -> int:
    """The number of processes; -1 means one for each core.

    Raises:
        InvalidParameter: neither -1 nor a whole number of at least 1.
    """
    if n_jobs == -1:
        return int(joblib.cpu_count())
    return _validate.count("n_jobs", n_jobs, "processes, or -1 for one a core")
