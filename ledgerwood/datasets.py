"""Three data sets for demonstrations and tests, each with a schema that is public knowledge.

`breast_cancer` comes with scikit-learn. `adult` and `abalone` are read from `adult.csv[.gz]` and `abalone.csv[.gz]`
in the folder that the environment variable LEDGERWOOD_DATA names (a header line, the label in the last column), else
fetched from OpenML through scikit-learn.
No bound below was computed from the rows: each states where it comes from.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.csv_files import parse_column, read_rows, typed_table
from ledgerwood.errors import DataUnavailable
from ledgerwood.schema import Categorical, Feature, Numeric, Schema

DatasetName = Literal["breast_cancer", "adult", "abalone"]
IncompleteRows = Literal["drop", "category"]
FOLDER_VARIABLE = "LEDGERWOOD_DATA"
UNKNOWN = "?"
OPENML_IDS = {"adult": 1590, "abalone": 183}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """A table, its label and its public schema.

    Args:
        name: which of the known data sets.
        X: (n_rows, n_features), float64 where every column is numeric, else object (floats and strings).
        y: (n_rows,), float64 labels or string classes.
        schema: public bounds and categories, target included.
        expected_rows: the published number of rows; public, for tuning rules only.
    """

    name: DatasetName
    X: NDArray[Any]
    y: NDArray[Any]
    schema: Schema
    expected_rows: int


def load(name: DatasetName, *, fetch: bool = True, incomplete_rows: IncompleteRows = "drop") -> Dataset:
    """Load a data set.

    Args:
        name: "breast_cancer" (569 rows, offline), "adult" (income above 50K) or "abalone" (rings of a shell).
        fetch: whether OpenML may be asked when no file is there.
        incomplete_rows: Adult only. "drop" leaves out rows with a "?" (45,222 of 48,842 stay, the convention of the
            literature); "category" keeps them, "?" being its own category.

    Raises:
        DataUnavailable: neither on disk nor fetchable; the message says where it was looked for.
        InvalidParameter: a name or mode that is not known.
    """
    if name not in get_args(DatasetName):
        raise _validate.fail("name", name, f"one of {', '.join(get_args(DatasetName))}", "data set")
    if incomplete_rows not in get_args(IncompleteRows):
        raise _validate.fail("incomplete_rows", incomplete_rows, "'drop' or 'category'", "mode")
    match name:
        case "breast_cancer":
            return _breast_cancer()
        case "adult":
            return _adult(_rows("adult", fetch), incomplete_rows)
        case "abalone":
            return _abalone(_rows("abalone", fetch))


def breast_cancer_schema() -> Schema:
    """Bounds from the table of ranges in the published description of the Wisconsin diagnostic data, to round numbers.

    Ten measures of cell nuclei, each as mean, standard error and worst value (Street, Wolberg, Mangasarian 1993).
    """
    measures: dict[str, tuple[tuple[float, float], tuple[float, float], tuple[float, float]]] = {
        "radius": ((0, 30), (0, 3), (0, 40)),
        "texture": ((0, 40), (0, 5), (0, 50)),
        "perimeter": ((0, 200), (0, 20), (0, 250)),
        "area": ((0, 2500), (0, 500), (0, 4000)),
        "smoothness": ((0.05, 0.2), (0, 0.03), (0.05, 0.25)),
        "compactness": ((0, 0.4), (0, 0.15), (0, 1)),
        "concavity": ((0, 0.5), (0, 0.4), (0, 1)),
        "concave points": ((0, 0.2), (0, 0.05), (0, 0.3)),
        "symmetry": ((0.1, 0.3), (0, 0.1), (0.1, 0.7)),
        "fractal dimension": ((0.05, 0.1), (0, 0.03), (0.05, 0.2)),
    }
    forms: tuple[Callable[[str], str], ...] = (
        lambda measure: f"mean {measure}",
        lambda measure: f"{measure} error",
        lambda measure: f"worst {measure}",
    )
    features = tuple(
        Numeric(form(measure), *ranges[i]) for i, form in enumerate(forms) for measure, ranges in measures.items()
    )
    return Schema(features=features, target=Categorical("diagnosis", ("malignant", "benign")))


def adult_schema(incomplete_rows: IncompleteRows = "drop") -> Schema:
    """Bounds and categories from the codebook of the 1994 census extract (`adult.names`), not from the rows.

    Ages are coded up to 90 and begin at 16 by the extract's own filter; capital gains have five digits, hours
    two, education 16 grades; losses and weights get round numbers above any plausible value.
    """
    unknown = (UNKNOWN,) if incomplete_rows == "category" else ()
    features: tuple[Feature, ...] = (
        Numeric("age", 16, 90),
        Categorical("workclass", (*_WORKCLASS, *unknown)),
        Numeric("fnlwgt", 0, 1_500_000),
        Categorical("education", _EDUCATION),
        Numeric("education-num", 1, 16),
        Categorical("marital-status", _MARITAL_STATUS),
        Categorical("occupation", (*_OCCUPATION, *unknown)),
        Categorical("relationship", ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried")),
        Categorical("race", ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")),
        Categorical("sex", ("Female", "Male")),
        Numeric("capital-gain", 0, 100_000),
        Numeric("capital-loss", 0, 5_000),
        Numeric("hours-per-week", 0, 100),
        Categorical("native-country", (*_COUNTRIES, *unknown)),
    )
    return Schema(features=features, target=Categorical("income", ("<=50K", ">50K")))


def abalone_schema() -> Schema:
    """Bounds from the data set's description: lengths come in units of 200 mm, weights in units of 200 g.

    A blacklip abalone stays below 200 mm and 600 g; rings are counted from 1 to 29 (the published range of the target).
    """
    return Schema(
        features=(
            Categorical("sex", ("M", "F", "I")),
            Numeric("length", 0, 1),
            Numeric("diameter", 0, 1),
            Numeric("height", 0, 0.5),
            Numeric("whole_weight", 0, 3),
            Numeric("shucked_weight", 0, 1.5),
            Numeric("viscera_weight", 0, 1),
            Numeric("shell_weight", 0, 1),
        ),
        target=Numeric("rings", 1, 29),
    )


def _breast_cancer() -> Dataset:
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    return Dataset(
        name="breast_cancer",
        X=np.asarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target_names)[bunch.target].astype(object),
        schema=breast_cancer_schema(),
        expected_rows=569,
    )


def _adult(rows: list[list[str]], incomplete_rows: IncompleteRows) -> Dataset:
    if incomplete_rows == "drop":
        rows = [row for row in rows if UNKNOWN not in row]
    schema = adult_schema(incomplete_rows)
    return Dataset(
        name="adult",
        X=_table(rows, schema),
        y=np.array([row[-1] for row in rows], dtype=object),
        schema=schema,
        expected_rows=45_222 if incomplete_rows == "drop" else 48_842,
    )


def _abalone(rows: list[list[str]]) -> Dataset:
    schema = abalone_schema()
    return Dataset(
        name="abalone",
        X=_table(rows, schema),
        y=np.array([float(row[-1]) for row in rows]),
        schema=schema,
        expected_rows=4_177,
    )


def _table(rows: list[list[str]], schema: Schema) -> NDArray[Any]:
    columns = [parse_column([row[j] for row in rows], feature) for j, feature in enumerate(schema.features)]
    return typed_table(columns, schema.features)


def _rows(name: Literal["adult", "abalone"], fetch: bool) -> list[list[str]]:
    """The lines of the table as strings, header left out, label last."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        for path in (Path(folder) / f"{name}.csv.gz", Path(folder) / f"{name}.csv"):
            if path.is_file():
                return read_rows(path)[1]
        where = f"no {name}.csv.gz or {name}.csv in {FOLDER_VARIABLE}={folder}"
    else:
        where = f"{FOLDER_VARIABLE} names no folder"
    if not fetch:
        raise DataUnavailable(f"data set {name!r}: {where}")
    try:
        return _fetch(name)
    except OSError as error:
        raise DataUnavailable(
            f"data set {name!r}: {where}, and OpenML cannot be reached ({error}); "
            f"put {name}.csv.gz into a folder and name that folder in {FOLDER_VARIABLE}"
        ) from error


def _fetch(name: Literal["adult", "abalone"]) -> list[list[str]]:
    from sklearn.datasets import fetch_openml

    # Without a data frame the categories arrive as codes, and a missing value as NaN.
    bunch = fetch_openml(data_id=OPENML_IDS[name], as_frame=False, parser="liac-arff")
    columns = []
    for j, column in enumerate(bunch.feature_names):
        categories = bunch.categories.get(column)
        values = bunch.data[:, j]
        if categories is None:
            columns.append([repr(float(value)) for value in values])
        else:
            columns.append([categories[int(code)] if not np.isnan(code) else UNKNOWN for code in values])
    return [list(row) for row in zip(*columns, [str(label) for label in bunch.target], strict=True)]


_WORKCLASS = (
    "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay",
    "Never-worked",
)  # fmt: skip
_EDUCATION = (
    "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th", "7th-8th",
    "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
)  # fmt: skip
_MARITAL_STATUS = (
    "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
    "Married-AF-spouse",
)  # fmt: skip
_OCCUPATION = (
    "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
    "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
    "Priv-house-serv", "Protective-serv", "Armed-Forces",
)  # fmt: skip
_COUNTRIES = (
    "United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany", "Outlying-US(Guam-USVI-etc)",
    "India", "Japan", "Greece", "South", "China", "Cuba", "Iran", "Honduras", "Philippines", "Italy", "Poland",
    "Jamaica", "Vietnam", "Mexico", "Portugal", "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador",
    "Taiwan", "Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand", "Yugoslavia",
    "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands",
)  # fmt: skip
