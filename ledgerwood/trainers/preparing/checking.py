"""The check of a whole pipeline before it is fitted: each step that learned from rows, by its path of names."""

from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.trainers.preparing.pipelines import Findings, attributes_of, before_of, labels_of, under_of


def check_pipeline(pipe: Any, *, example: Any = None) -> dict[str, str]:
    """Name the steps before a trainer that learn from rows, or that nothing vouches for; empty if there is none.

    A trainer protects the rows that it is given. What a step before it learned of the rows (means, categories, which
    columns to keep) is released with the model, unprotected and uncharged, and the trainer cannot know: it sees a
    table. Call this before `fit`, or afterwards: the answer is the same, but for the attributes that it names.

    Pipelines, ColumnTransformer, FeatureUnion and TransformedTargetRegressor are looked into. A FunctionTransformer is
    tried on made-up rows: a function that gives a row something else when the others are left out is named. That is a
    test, not a proof. Whatever else is not known to work row by row is named.

    Args:
        pipe: a scikit-learn Pipeline whose last step is a trainer, or a TransformedTargetRegressor around one.
        example: made-up rows, two at least, in the form that the pipeline takes; never private ones. For functions
            that do not take an array of numbers.

    Returns:
        For each such step, by its path of names ("columns__scale"), what is wrong with it.

    Raises:
        InvalidParameter: neither of these, nor a trainer.
    """
    if not isinstance(pipe, Pipeline | TransformedTargetRegressor | AbstractTrainer):
        raise InvalidParameter(
            f"pipe={pipe!r} must be a scikit-learn Pipeline whose last step is a trainer, not {type(pipe).__name__}"
        )
    return dict(_last("", pipe, example))


def _last(path: str, step: Any, example: Any) -> Findings:
    """The end of a pipeline: a trainer, or something around one."""
    name = path or type(step).__name__
    if isinstance(step, AbstractTrainer):
        return
    if type(step) is Pipeline:
        for key, member in step.steps[:-1]:
            yield from before_of(under_of(path, key), member, example)
        key, member = step.steps[-1]
        yield from _last(under_of(path, key), member, example)
    elif type(step) is TransformedTargetRegressor:
        yield from labels_of(path, step, None)
        yield from _last(under_of(path, "regressor"), attributes_of(step).get("regressor_", step.regressor), example)
    elif step is None or isinstance(step, str):
        yield name, f"{step!r} is the last step, where a trainer should be"
    else:
        yield name, f"{type(step).__name__} is no trainer of this library: nothing says what it tells of the rows"
