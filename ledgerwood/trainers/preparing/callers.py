"""Looks at who calls a fit that a ledger pays for: some of scikit-learn's estimators do more with the rows than fit it.

A ledger that is passed through them would cover the fits, and leave the rest out without a word.
docs/how-to/pipelines.md.
"""

import sys
from collections.abc import Iterator
from types import FrameType

from ledgerwood import cautions
from ledgerwood.errors import InvalidParameter

_FOLDS = "sklearn.model_selection._validation"
_PASS_ROWS_ON = ("sklearn.base", "sklearn.pipeline", "sklearn.compose", "sklearn.utils", "sklearn._config", _FOLDS)
"""Modules of scikit-learn that hand all rows to one fit, or each fold's to its own, and choose nothing by them."""
_ENTRIES = ("cross_validate", "cross_val_predict", "learning_curve", "permutation_test_score")
"""The functions that ask for folds and choose nothing; cross_val_score calls the first."""
_HOLD_STEPS = ("sklearn.pipeline", "sklearn.compose._target", "imblearn.pipeline")
_SCORES = (
    "scikit-learn's cross-validation calls this fit. The ledger charges every fit, and nothing for the scores, which "
    "are exact and tell of the rows; folds go by position or by label; and a fit that the ledger refuses becomes a "
    "score of nan. Use ledgerwood.trainers.private_cross_validate(..., ledger=ledger): it charges all or refuses all"
)
_THREADS = (
    "ledger= came through scikit-learn's cross-validation in a thread of its own, where a selection of features looks "
    "like a plain cross-validation. Use n_jobs=None, or ledgerwood.trainers.private_cross_validate(..., ledger=ledger) "
    "and private_grid_search, which charge all or refuse all. Nothing was spent"
)
_STEPS = (
    "a pipeline calls this fit, and other steps of it learn from the same rows, or nothing vouches for them: {steps}. "
    "What they learn is part of the pipeline, exact, unprotected and uncharged. Use SchemaScaler, SchemaOneHotEncoder "
    "or no step at all; ledgerwood.trainers.check_pipeline says what is wrong with each"
)


def require_known_caller() -> None:
    """Refuse a ledger that came through an estimator of scikit-learn which learns more from the rows than its fits do.

    Its cross-validation functions are let through, with a warning that the scores are not charged. Who calls is public.

    Raises:
        InvalidParameter: a search over parameters, an ensemble, a calibration and the like; or a fold's fit in a
            thread of its own, where who asked for the folds is not seen. Nothing was spent.
    """
    folds = known = False
    for frame in _frames():
        module = str(frame.f_globals.get("__name__", ""))
        if module == _FOLDS:
            folds = True
            known = known or frame.f_code.co_name in _ENTRIES
            # Of a fold's fit in another thread than the search's; None in a cross-validation.
            if frame.f_locals.get("parameters") is not None:
                raise _refusal("a search over parameters")
        elif module.startswith("sklearn.") and not module.startswith(_PASS_ROWS_ON):
            caller = frame.f_locals.get("self")
            raise _refusal(module if caller is None else type(caller).__name__)
    if folds and not known:
        raise InvalidParameter(_THREADS)
    if folds:
        cautions.emit([_SCORES])


def warn_of_steps() -> None:
    """Warn if a pipeline that calls this fit has fitted other steps on the rows, or may have.

    The kinds of its steps decide, with a ledger or without one.
    """
    found: dict[str, None] = {}
    for frame in _frames():
        if str(frame.f_globals.get("__name__", "")).startswith(_HOLD_STEPS):
            # That module was loaded by someone else: this fit alone needs none of it.
            from ledgerwood.trainers.preparing.pipelines import learning_steps

            found |= dict.fromkeys(learning_steps(frame.f_locals.get("self")))
    if found:
        cautions.emit([_STEPS.format(steps=", ".join(found))])


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _refusal(caller: str) -> InvalidParameter:
    return InvalidParameter(
        f"ledger= came through scikit-learn's {caller}, which learns more from the rows than its fits do (which "
        "parameters are best by exact scores, say), and the ledger would not say so. To choose parameters use "
        "ledgerwood.trainers.private_grid_search(..., ledger=ledger) or PrivateSearch, which charge all of it; else "
        "fit the trainer itself, alone or at the end of a Pipeline. Nothing was spent"
    )
