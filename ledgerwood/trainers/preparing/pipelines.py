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
_UNTRIED = object()
"""In the place of `example`: no function of the caller's is run."""
Findings = Iterator[tuple[str, str]]


def learning_steps(caller: object) -> list[str]:
    """The steps beside the trainer in what calls its fit, by their paths of names, that `check_pipeline` would name.

    By their kinds alone: functions are not tried, so that all of a FunctionTransformer pass. Nothing of anything else
    than a Pipeline or a TransformedTargetRegressor; the last step of one answers for itself.
    """
    found: Findings = iter(())
    if isinstance(caller, Pipeline):
        found = (each for key, member in caller.steps[:-1] for each in before_of(key, member, _UNTRIED))
    elif isinstance(caller, TransformedTargetRegressor):
        found = labels_of("", caller, _UNTRIED)
    return [path for path, _ in found]


def labels_of(path: str, step: Any, example: Any) -> Findings:
    """The transformation of labels in a TransformedTargetRegressor."""
    if step.transformer is not None:
        transformer = attributes_of(step).get("transformer_", step.transformer)
        yield from before_of(under_of(path, "transformer"), transformer, example)
    elif step.func is not None and not isinstance(step.func, np.ufunc):
        reason = f"func={step.func!r} is no function of single labels that is known; declare the range instead"
        yield under_of(path, "func"), reason


def before_of(path: str, step: Any, example: Any) -> Findings:
    """A step before the trainer."""
    if step is None or (isinstance(step, str) and step in ("passthrough", "drop")):
        return
    if type(step) is Pipeline:
        for key, member in step.steps:
            yield from before_of(under_of(path, key), member, example)
    elif type(step) is FeatureUnion:
        for key, member in step.transformer_list:
            yield from before_of(under_of(path, key), member, example)
    elif type(step) is ColumnTransformer:
        fitted = {key: member for key, member, _ in attributes_of(step).get("transformers_", ())}
        # What a part of the columns looks like is not known here: only arrays of numbers are tried.
        untold = _UNTRIED if example is _UNTRIED else None
        for key, given, columns in step.transformers:
            member = fitted.get(key, given)
            if callable(columns) and type(columns) is not make_column_selector:
                yield under_of(path, key), f"its columns are chosen by {columns!r}, which may look at the rows"
            yield from before_of(under_of(path, key), member, untold)
        yield from before_of(under_of(path, "remainder"), fitted.get("remainder", step.remainder), untold)
    elif type(step) is FunctionTransformer:
        if example is not _UNTRIED and (reason := _tried(step, example)) is not None:
            yield path, reason
    elif type(step) not in _ROW_BY_ROW:
        yield path, _reason(step)


def under_of(path: str, key: str) -> str:
    return f"{path}__{key}" if path else key


def _reason(step: Any) -> str:
    kind = type(step)
    if isinstance(step, type):
        return f"{step.__name__} is a class and no step; {_WAY_OUT}"
    learned = sorted(
        name
        for name in attributes_of(step)
        if name.endswith("_") and not name.startswith("_") and name not in _OF_COLUMNS
    )
    if learned:
        return f"{kind.__name__} was fitted on rows: {', '.join(learned)}; {_WAY_OUT}"
    if kind.__module__.partition(".")[0] == "sklearn":
        return f"{kind.__name__} would be fitted on rows; {_WAY_OUT}"
    name = f"{kind.__module__}.{kind.__qualname__}"
    return f"{name} is not known to work row by row, so that it is not vouched for; {_WAY_OUT}"


def attributes_of(step: Any) -> dict[str, Any]:
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
    columns = int(attributes_of(step).get("n_features_in_", 3))
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
