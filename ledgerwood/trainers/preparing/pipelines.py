"""Checks whether steps before a trainer in a pipeline learn from the rows that the trainer protects.

docs/how-to/pipelines.md.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, PolynomialFeatures

from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.trainers.preparing.encoders import SchemaOneHotEncoder, SchemaScaler

_ROW_BY_ROW = (
    SchemaScaler,
    SchemaOneHotEncoder,
    Binarizer,
    Normalizer,
    PolynomialFeatures,
    HashingVectorizer,
    FeatureHasher,
)
"""Steps that are known to transform each row by itself, by parameters and the number of columns alone."""
_OF_COLUMNS = ("n_features_in_", "feature_names_in_")
"""Attributes that every fit takes from the columns, and not from the rows."""
_TRIED_ROWS = 7
_WAY_OUT = "use SchemaScaler, SchemaOneHotEncoder or a FunctionTransformer of single rows instead"
Findings = Iterator[tuple[str, str]]


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
            yield from _before(_under(path, key), member, example)
        key, member = step.steps[-1]
        yield from _last(_under(path, key), member, example)
    elif type(step) is TransformedTargetRegressor:
        if step.transformer is not None:
            transformer = _attributes(step).get("transformer_", step.transformer)
            yield from _before(_under(path, "transformer"), transformer, None)
        elif step.func is not None and not isinstance(step.func, np.ufunc):
            reason = f"func={step.func!r} is no function of single labels that is known; declare the range instead"
            yield _under(path, "func"), reason
        yield from _last(_under(path, "regressor"), _attributes(step).get("regressor_", step.regressor), example)
    elif step is None or isinstance(step, str):
        yield name, f"{step!r} is the last step, where a trainer should be"
    else:
        yield name, f"{type(step).__name__} is no trainer of this library: nothing says what it tells of the rows"


def _before(path: str, step: Any, example: Any) -> Findings:
    """A step before the trainer."""
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return
    if type(step) is Pipeline:
        for key, member in step.steps:
            yield from _before(_under(path, key), member, example)
    elif type(step) is FeatureUnion:
        for key, member in step.transformer_list:
            yield from _before(_under(path, key), member, example)
    elif type(step) is ColumnTransformer:
        fitted = {key: member for key, member, _ in _attributes(step).get("transformers_", ())}
        for key, given, columns in step.transformers:
            member = fitted.get(key, given)
            if callable(columns) and type(columns) is not make_column_selector:
                yield _under(path, key), f"its columns are chosen by {columns!r}, which may look at the rows"
            # What a part of the columns looks like is not known here: only arrays of numbers are tried.
            yield from _before(_under(path, key), member, None)
        yield from _before(_under(path, "remainder"), fitted.get("remainder", step.remainder), None)
    elif type(step) is FunctionTransformer:
        if (reason := _tried(step, example)) is not None:
            yield path, reason
    elif type(step) not in _ROW_BY_ROW:
        yield path, _reason(step)


def _under(path: str, key: str) -> str:
    return f"{path}__{key}" if path else key


def _reason(step: Any) -> str:
    kind = type(step)
    if isinstance(step, type):
        return f"{step.__name__} is a class and no step; {_WAY_OUT}"
    learned = sorted(
        name
        for name in _attributes(step)
        if name.endswith("_") and not name.startswith("_") and name not in _OF_COLUMNS
    )
    if learned:
        return f"{kind.__name__} was fitted on rows: {', '.join(learned)}; {_WAY_OUT}"
    if kind.__module__.partition(".")[0] == "sklearn":
        return f"{kind.__name__} would be fitted on rows; {_WAY_OUT}"
    name = f"{kind.__module__}.{kind.__qualname__}"
    return f"{name} is not known to work row by row, so that it is not vouched for; {_WAY_OUT}"


def _attributes(step: Any) -> dict[str, Any]:
    return vars(step) if isinstance(getattr(step, "__dict__", None), dict) else {}


def _tried(step: FunctionTransformer, example: Any) -> str | None:
    """Returns why a function is not vouched for; None if each made-up row gets the same, whatever the others are."""
    if step.func is None or isinstance(step.func, np.ufunc):
        return None
    rows = _made_up(step) if example is None else example
    try:
        whole = _values(step, rows)
        for start in range(len(rows)):
            alone = _values(step, rows[start : start + 1])
            if alone.shape != (1, *whole.shape[1:]) or not _same(alone[0], whole[start]):
                return f"its function {step.func!r} gives a row other values when other rows are left out; {_WAY_OUT}"
        # Rows that come in another order, and twice: a function that ranks or counts them shows here.
        twice = _values(step, _stacked(rows))
    except Exception as error:  # noqa: BLE001 - a function of the caller's may raise anything
        return (
            f"its function {step.func!r} could not be tried on made-up rows ({type(error).__name__}: {error}), so that "
            "it is not vouched for; pass example=, made-up rows in the form that it takes"
        )
    if len(twice) != 2 * len(whole) or not all(_same(a, b) for a, b in zip(twice, (*whole, *whole), strict=True)):
        return f"its function {step.func!r} gives a row other values beside other rows; {_WAY_OUT}"
    return None


def _made_up(step: FunctionTransformer) -> Any:
    columns = int(_attributes(step).get("n_features_in_", 3))
    return np.random.default_rng(0).uniform(0.1, 50.0, (_TRIED_ROWS, columns))


def _stacked(rows: Any) -> Any:
    if isinstance(rows, np.ndarray):
        return np.concatenate((rows, rows))
    import narwhals as nw

    frame = nw.from_native(rows, eager_only=True)
    return nw.concat([frame, frame]).to_native()


def _values(step: FunctionTransformer, rows: Any) -> np.ndarray[Any, Any]:
    fresh = clone(step).set_output(transform="default")
    found = np.asarray(fresh.fit_transform(rows))
    return found[:, np.newaxis] if found.ndim == 1 else found


def _same(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> bool:
    return [repr(value) for value in first.tolist()] == [repr(value) for value in second.tolist()]
