"""Fit a learner many times, each with randomness that depends on nothing else, in one process or in several."""

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
from ledgerwood.errors import AuditFailed, InvalidParameter, PrivacyError, PrivacyWarning
from ledgerwood.trainers.base.progress import Progress
from ledgerwood.verification.canaries.fits.fitting import fresh_copy, plain_labels
from ledgerwood.verification.canaries.fits.frames import FrameShape
from ledgerwood.verification.canaries.released.outliers import Rows
from ledgerwood.verification.canaries.released.values import Released, Shown, shown

_BLOCK, _SHARES = 16, 4
"""Fits of one task at least, and tasks of each process in one call: what a task costs should not matter."""
_WORDS = 4


@final
@dataclass(slots=True, eq=False)
class ManyFits:
    """The learner and how many times it was fitted.

    Args:
        estimator: never fitted itself.
        released: what is looked at.
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
    """How many processes; -1 for one a core.

    Raises:
        InvalidParameter: neither -1 nor a whole number of at least 1.
    """
    if n_jobs == -1:
        return int(joblib.cpu_count())
    return _validate.count("n_jobs", n_jobs, "processes, or -1 for one a core")
