"""Labels whose type an estimator cannot learn: refused by that type alone, before anything is spent.

No value is looked at, so that no row can change what is refused. A list or an array of objects has no type: its labels
are read one by one where the schema declares the target (docs/explanation/several-classes.md#label-types).
"""

from collections.abc import Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np

from ledgerwood.curator.inputs.reading import frame_or_none
from ledgerwood.errors import SchemaError, SchemaTypeError
from ledgerwood.schema import Categorical, Feature, Numeric, Schema

LabelKind = Literal["whole", "float", "boolean", "text", "categorical", "untyped", "other"]
_NUMBERS: frozenset[LabelKind] = frozenset({"whole", "float", "boolean"})
_OF_NUMPY: dict[str, LabelKind] = {
    "i": "whole", "u": "whole", "f": "float", "b": "boolean", "U": "text", "T": "text", "O": "untyped",
}  # fmt: skip


def require_labels(y: Any, target: Feature | None, *, numeric: bool) -> None:
    """Refuse labels whose type says that they are not what the estimator learns.

    Args:
        y: array-like (n_rows,).
        target: as declared; None where the schema is to be estimated.
        numeric: whether the estimator learns numbers, not classes.

    Raises:
        SchemaError: no labels.
        SchemaTypeError: labels of another type; the message says which type is asked for.
    """
    if y is None:
        raise SchemaError("this estimator requires y to be passed, but the target y is None")
    kind, name = label_kind(y)
    if name.startswith("complex"):
        raise SchemaTypeError(f"Complex data not supported: y is of type {name}, and labels must be real")
    if numeric:
        _require_numbers(kind, name, target)
    elif kind == "other":
        raise SchemaTypeError(
            f"y is of type {name}, and a classifier needs strings, whole numbers or booleans: convert y, for example "
            "by y.astype(str)"
        )
    elif isinstance(target, Categorical):
        _require_same_type(kind, name, target)
    elif kind == "float" and target is None:
        raise SchemaTypeError(
            f"y is of type {name}, and the schema declares no classes: numbers with a fraction are not classes. Pass "
            "whole numbers, strings or booleans (y.astype(int), if that is what they are), or declare the classes with "
            "ledgerwood.Categorical, or use a regressor"
        )


def label_kind(y: Any) -> tuple[LabelKind, str]:
    """The kind of the labels' type, and the type's name; "untyped" where only the values could tell."""
    pandas = nw.dependencies.get_pandas()
    if pandas is not None and isinstance(y, pandas.Index | pandas.api.extensions.ExtensionArray):
        y = pandas.Series(y)
    series = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _series_kind(series)
    if isinstance(y, Sequence) and not isinstance(y, str | bytes):
        return "untyped", type(y).__name__
    dtype = np.asarray(y).dtype
    return _OF_NUMPY.get(dtype.kind, "other"), str(dtype)


def _series_kind(series: nw.Series[Any]) -> tuple[LabelKind, str]:
    if series.implementation.is_pandas_like() and series.to_native().dtype == np.dtype(object):
        return "untyped", "object"  # narwhals would name its type by a look at the values
    dtype, name = series.dtype, str(series.dtype)
    if dtype.is_numeric():
        return ("whole" if dtype.is_integer() else "float"), name
    if dtype == nw.Boolean:
        return "boolean", name
    if dtype == nw.String:
        return "text", name
    if dtype in (nw.Categorical, nw.Enum):
        return "categorical", name
    if dtype in (nw.Object, nw.Unknown):
        # What pandas and polars keep as complex numbers has no name here.
        native = str(series.to_native().dtype)
        return ("other", native) if native.startswith("complex") else ("untyped", name)
    return "other", name


def _require_numbers(kind: LabelKind, name: str, target: Feature | None) -> None:
    if kind in _NUMBERS or (kind == "untyped" and isinstance(target, Numeric)):
        return
    if kind == "untyped":
        raise SchemaTypeError(
            f"y is of type {name}, in which any value could be: pass an array or a series of numbers "
            "(numpy.asarray(y, dtype=float)), or declare the target, target=ledgerwood.Numeric(name, low, high)"
        )
    raise SchemaTypeError(
        f"y is of type {name}, and a regressor needs numbers: convert y, for example by y.astype(float), or use a "
        "classifier"
    )


def _require_same_type(kind: LabelKind, name: str, target: Categorical) -> None:
    declared = _other_type(kind, target)
    if declared is not None:
        raise SchemaTypeError(
            f"y is of type {name}, and target {target.name!r} declares the classes {target.categories}, which are "
            f"{declared}: no label could be one of them. Convert y or the classes, so that both are of one type"
        )


def require_categories(X: Any, schema: Schema) -> None:
    """Refuse a column whose type says that none of its values can be one of the declared categories.

    Args:
        X: a table of training rows, with the schema's columns.
        schema: as declared.

    Raises:
        SchemaTypeError: there is one.
    """
    frame = frame_or_none(X)
    array = isinstance(X, np.ndarray)
    for place, feature in enumerate(schema.features):
        if not isinstance(feature, Categorical) or (frame is None and not array):
            continue
        kind, name = label_kind(X[:, place] if frame is None else frame[feature.name])
        declared = _other_type(kind, feature)
        if declared is not None:
            raise SchemaTypeError(
                f"column {feature.name!r} is of type {name}, and declares the categories {feature.categories}, which "
                f"are {declared}: every row would be of none of them. Convert the column or the categories, so that "
                "both are of one type"
            )


def _other_type(kind: LabelKind, column: Categorical) -> str | None:
    """What the categories are, where no value of the type could be one of them."""
    texts = {isinstance(category, str) for category in column.categories}
    if (kind == "text" and True not in texts) or (kind in _NUMBERS and False not in texts):
        return "strings" if True in texts else "numbers"
    return None
