"""Every table of the data folder as a benchmark takes it: all columns, and true ranges as bounds.

Bounds and categories are read from the rows, which is not private. So they are the same for all models that are
compared, and nobody has tuned a range to a model.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.data_sets import Data, file_of
from benchmarks.data_sets import load as load_declared
from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.csv_files import parse_column, read_rows, typed_table

NUMBERS = ("abalone", "california_housing", "concrete", "pol", "winequality_red")
"""Tables whose label is a number."""
CLASSES = (
    "adult", "bank", "breast_w", "compas_two_years", "credit_default", "credit_german", "diabetes_pima", "electricity",
    "magic_telescope", "mushroom", "spambase", "vote",
)  # fmt: skip
"""Tables whose label is one of two classes."""
TABLES = (*NUMBERS, *CLASSES)
SEVERAL = ("nursery",)
"""Tables whose label is one of more classes."""
WIDE = ("a9a", "mnist_0v1")
"""Tables of two classes with 123 indicators (Adult's training rows once more) and with 784 pixels."""
MOST_CATEGORIES = 60
"""A column with more different texts is left out: names and dates."""
MISSING = ("?", "NA", "nan")
"""Texts of an empty cell."""


def number(text: str) -> float | None:
    """A finite number, or None."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def feature_of(name: str, texts: list[str]) -> Numeric | Categorical | None:
    """What a column holds, with its true range; None if it is left out."""
    present = [text for text in texts if text]
    if not present:
        return None
    values = [value for text in present if (value := number(text)) is not None]
    gaps = len(present) < len(texts)
    if len(values) == len(present):
        low, high = min(values), max(values)
        return Numeric(name, low, high if high > low else low + 1.0, missing=gaps)
    categories = tuple(sorted(set(present)))
    return Categorical(name, categories, missing=gaps) if len(categories) <= MOST_CATEGORIES else None


def binned(bins: int) -> Callable[[list[str]], list[str]]:
    """Labels that are numbers as classes of equal size, named by their place."""

    def classes(texts: list[str]) -> list[str]:
        values = np.array([float(text) for text in texts])
        edges = np.quantile(values, np.arange(1, bins) / bins)
        return [str(place) for place in np.searchsorted(edges, values, side="right").tolist()]

    return classes


def load(name: str, relabel: Callable[[list[str]], list[str]] | None = None) -> Data:
    """A table, its label in the last column.

    Args:
        name: of the file.
        relabel: the labels' texts to those of classes; None: as they are.

    Raises:
        DataUnavailable: its file is not in the folder.
    """
    if name == "a9a":
        return load_declared("a9a")
    header, rows = read_rows(file_of(f"{name}.csv.gz"))
    columns = [["" if text in MISSING else text for text in column] for column in zip(*rows, strict=True)]
    labels = columns.pop()
    target: Numeric | Categorical
    if relabel is not None:
        labels = relabel(labels)
    if relabel is None and name in NUMBERS:
        values = [float(text) for text in labels]
        target = Numeric(header[-1], min(values), max(values))
    else:
        target = Categorical(header[-1], tuple(sorted(set(labels))))
    found = [(feature_of(title, column), column) for title, column in zip(header, columns, strict=False)]
    kept = [(feature, column) for feature, column in found if feature is not None]
    schema = Schema(features=tuple(feature for feature, _ in kept), target=target)
    typed: list[Any] = [parse_column(column, feature) for feature, column in kept]
    X = typed_table(typed, schema.features)
    return Data(name, X, np.array(parse_column(labels, target)), schema)
