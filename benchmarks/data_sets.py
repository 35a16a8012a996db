"""The benchmarks' data sets, each with a schema that is public knowledge, and the papers' synthetic ones.

Read from the folder that LEDGERWOOD_DATA names (`name.csv.gz`, header first, label last; a9a is `a9a.libsvm.gz`,
LIBSVM's one-hot Adult). `ledgerwood.datasets` has what demonstrations need; these serve benchmarks only.

No bound below was computed from the rows. Where a data set's documentation states a range or a list, it is that; where
it states a unit only, a round number stands for what is plausible in it, and what lies beyond is clamped to it.
"""

import gzip
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.class_schemas import (
    MEDIAN_HOUSE_VALUE,
    breast_w_schema,
    california_median_schema,
    compas_schema,
    diabetes_schema,
    mushroom_schema,
    nursery_binary_schema,
    nursery_schema,
    pol_schema,
    vote_schema,
)
from ledgerwood import Categorical, Numeric, Schema, datasets
from ledgerwood.csv_files import parse_column, read_rows, typed_table
from ledgerwood.errors import DataUnavailable

Name = Literal[
    "abalone", "adult", "a9a", "bank", "credit_default", "electricity", "magic_telescope", "california_housing",
    "synthetic_classification", "synthetic_regression",
    "compas", "breast_w", "mushroom", "nursery", "nursery_binary", "vote", "california_median", "diabetes", "pol",
]  # fmt: skip
CLASS_NAMES: tuple[Name, ...] = (
    "compas", "breast_w", "mushroom", "nursery", "nursery_binary", "vote", "california_median", "diabetes", "pol",
)  # fmt: skip
"""Classification sets of PrivaTree's paper only."""
NAMES: tuple[Name, ...] = tuple(name for name in get_args(Name) if name not in CLASS_NAMES)
"""What the boosting systems are measured on."""
SYNTHETIC = (100_000, 40)
"""Rows and columns of the synthetic sets, where the papers have 1,000,000 x 400."""


@dataclass(frozen=True)
class Data:
    """A table with its label (the schema's target), and its public number of rows."""

    name: str
    X: NDArray[Any]
    y: NDArray[Any]
    schema: Schema

    @property
    def rows(self) -> int:
        """Number of rows: public for all of these."""
        return len(self.y)

    def some(self, rows: int) -> "Data":
        """Some of the rows, seed 0, for a quick run; tables may be sorted by class."""
        return self.taken(np.random.default_rng(0).permutation(self.rows)[:rows])

    def taken(self, rows: NDArray[np.intp]) -> "Data":
        """The rows at these places."""
        return Data(self.name, self.X[rows], self.y[rows], self.schema)

    def columns(self, names: Collection[str]) -> "Data":
        """The columns of these names."""
        kept = [place for place, feature in enumerate(self.schema.features) if feature.name in names]
        features = tuple(self.schema.features[place] for place in kept)
        return Data(self.name, self.X[:, kept], self.y, Schema(features=features, target=self.schema.target))

    def balanced(self, seed: int) -> "Data":
        """All rows of the smallest class, and as many of each other class: not private, and rows for a benchmark only.

        Args:
            seed: of the choice.
        """
        generator = np.random.default_rng(seed)
        places = [np.flatnonzero(self.y == label) for label in np.unique(self.y)]
        fewest = min(len(own) for own in places)
        return self.taken(np.sort(np.concatenate([generator.permutation(own)[:fewest] for own in places])))


def load(name: Name, *, fetch: bool = True) -> Data:
    """Load a data set.

    Args:
        name: of it.
        fetch: whether abalone and adult may come from elsewhere where the folder has no file of them.

    Raises:
        DataUnavailable: its file is not in the folder.
    """
    match name:
        case "abalone" | "adult":
            found = datasets.load(name, fetch=fetch)
            return Data(name, found.X, found.y, found.schema)
        case "a9a":
            return a9a()
        case "synthetic_classification":
            return synthetic_classification(*SYNTHETIC)
        case "synthetic_regression":
            return synthetic_regression(*SYNTHETIC)
    schema = SCHEMAS[name]()
    header, rows = read_rows(file_of(f"{FILES.get(name, name)}.csv.gz"))
    if name in CLASSES_OF:
        class_of = CLASSES_OF[name]
        rows = [[*row[:-1], class_of(row[-1])] for row in rows]
    places = [header.index(feature.name) for feature in schema.features]
    if name in COMPLETE_ROWS:
        rows = [row for row in rows if not any(row[j] in {"", "?"} for j in places)]
    columns = [parse_column([row[j] for row in rows], f) for j, f in zip(places, schema.features, strict=True)]
    y = np.array(parse_column([row[-1] for row in rows], schema.target))
    return Data(name, typed_table(columns, schema.features), y, schema)


def file_of(name: str) -> Path:
    """A file of the data folder."""
    path = Path(os.environ.get(datasets.FOLDER_VARIABLE, ".")) / name
    if not path.is_file():
        raise DataUnavailable(f"no {name} in {datasets.FOLDER_VARIABLE}={path.parent}")
    return path


# ----------------------------------------------------------------------------------------------------- public schemas


def bank_schema() -> Schema:
    """The lists of `bank-names.txt` (UCI Bank Marketing, Portuguese campaigns of May 2008 to November 2010).

    Days, months and lists are its own. `pdays` is -1 or a number of days inside of the campaigns' thirty months. Ages,
    an hour's call, 50 calls and a balance within 50,000 euros are round numbers.
    """
    yes_no = ("no", "yes")
    months = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
    jobs = (
        "admin.", "unknown", "unemployed", "management", "housemaid", "entrepreneur", "student", "blue-collar",
        "self-employed", "retired", "technician", "services",
    )  # fmt: skip
    return Schema(
        features=(
            Categorical("poutcome", ("unknown", "other", "failure", "success")),
            Categorical("job", jobs),
            Categorical("marital", ("married", "divorced", "single")),
            Categorical("education", ("unknown", "secondary", "primary", "tertiary")),
            *(Categorical(name, yes_no) for name in ("default", "housing", "loan")),
            Categorical("contact", ("unknown", "telephone", "cellular")),
            Numeric("day", 1, 31),
            Categorical("month", months),
            Numeric("campaign", 1, 50),
            Numeric("duration", 0, 3600),
            Numeric("pdays", -1, 930),
            Numeric("previous", 0, 50),
            Numeric("age", 18, 100),
            Numeric("balance", -5_000, 50_000),
        ),
        target=Categorical("y", yes_no),
    )


def credit_default_schema() -> Schema:
    """The attribute list of UCI's Default of Credit Card Clients (Taiwan, 2005; new Taiwan dollars).

    Codes of sex, education and marriage as listed (others count as "other"); repayment codes are -1 (duly) to 9 months,
    and -2 (no use), which users of the table document. Limits reach a million; bills and payments beyond half and a
    tenth of that are clamped.
    """
    return Schema(
        features=(
            Numeric("LIMIT_BAL", 0, 1_000_000),
            Categorical("SEX", (1, 2)),
            Categorical("EDUCATION", (1, 2, 3, 4)),
            Categorical("MARRIAGE", (1, 2, 3)),
            Numeric("AGE", 18, 100),
            *(Numeric(f"PAY_{month}", -2, 9) for month in (0, 2, 3, 4, 5, 6)),
            *(Numeric(f"BILL_AMT{month}", 0, 500_000) for month in range(1, 7)),
            *(Numeric(f"PAY_AMT{month}", 0, 100_000) for month in range(1, 7)),
        ),
        target=Categorical("default payment next month", (0, 1)),
    )


def electricity_schema() -> Schema:
    """Elec2 (New South Wales market, Harries 1999) is published with every column scaled to [0, 1]."""
    names = ("period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")
    return Schema(features=tuple(Numeric(name, 0, 1) for name in names), target=Categorical("up", (0, 1)))


def magic_telescope_schema() -> Schema:
    """Units of `magic04.names`: an ellipse in a camera about a metre wide, in millimetres, degrees and ratios.

    Two ratios lie in [0, 1], the angle in [0, 90] degrees, and the decimal logarithm of ten to a million photons in
    [1, 6]; no distance to the camera's centre exceeds 500 mm, and an axis of the ellipse is much shorter.
    """
    return Schema(
        features=(
            Numeric("fLength", 0, 300),
            Numeric("fWidth", 0, 150),
            Numeric("fSize", 1, 6),
            Numeric("fConc", 0, 1),
            Numeric("fConc1", 0, 1),
            *(Numeric(name, -300, 300) for name in ("fAsym", "fM3Long", "fM3Trans")),
            Numeric("fAlpha", 0, 90),
            Numeric("fDist", 0, 500),
        ),
        target=Categorical("class", ("g", "h")),
    )


def california_housing_schema() -> Schema:
    """The 1990 census by block groups, each of 600 to 3,000 people (Pace and Barry 1997).

    California's own longitudes and latitudes; ages are coded up to 52 years, incomes from .5 to 15 (ten thousand
    dollars), values from 14,999 ("less than") to 500,001 ("more than"). Rooms and people are round numbers. Bedrooms
    may be missing.
    """
    places = ("<1H OCEAN", "INLAND", "ISLAND", "NEAR BAY", "NEAR OCEAN")
    return Schema(
        features=(
            Numeric("longitude", -125, -114),
            Numeric("latitude", 32, 42),
            Numeric("housing_median_age", 1, 52),
            Numeric("total_rooms", 0, 10_000),
            Numeric("total_bedrooms", 0, 2_000, missing=True),
            Numeric("population", 0, 5_000),
            Numeric("households", 0, 2_000),
            Numeric("median_income", 0.5, 15),
            Categorical("ocean_proximity", places),
        ),
        target=Numeric("median_house_value", 14_999, 500_001),
    )


SCHEMAS: dict[str, Callable[[], Schema]] = {
    "bank": bank_schema,
    "credit_default": credit_default_schema,
    "electricity": electricity_schema,
    "magic_telescope": magic_telescope_schema,
    "california_housing": california_housing_schema,
    "compas": compas_schema,
    "breast_w": breast_w_schema,
    "mushroom": mushroom_schema,
    "nursery": nursery_schema,
    "nursery_binary": nursery_binary_schema,
    "vote": vote_schema,
    "diabetes": diabetes_schema,
    "pol": pol_schema,
    "california_median": lambda: california_median_schema(california_housing_schema()),
}
FILES = {
    "compas": "compas_two_years",
    "nursery_binary": "nursery",
    "california_median": "california_housing",
    "diabetes": "diabetes_pima",
}
"""Files of another name than the data set's."""
COMPLETE_ROWS = ("breast_w", "mushroom", "vote", "california_median")
"""Rows with a missing value are left out, as in PrivaTree's paper."""
CLASSES_OF: dict[str, Callable[[str], str]] = {
    "nursery_binary": lambda label: label if label == "not_recom" else "other",
    "california_median": lambda value: "1" if float(value) > MEDIAN_HOUSE_VALUE else "0",
    "pol": lambda value: "P" if float(value) >= 30 else "N",
}
"""Classes made from a file's label."""


def a9a() -> Data:
    """Adult's training file as 123 indicators, LIBSVM's a9a, which DPBoost's paper uses; labels -1 and 1.

    Each is a category 1 with all else as "other": one split a feature instead of a range's many void ones.
    """
    columns = 123
    with gzip.open(file_of("a9a.libsvm.gz"), "rt", encoding="ascii") as file:
        lines = [line.split() for line in file]
    X = np.zeros((len(lines), columns))
    for row, (_, *entries) in zip(X, lines, strict=True):
        row[[int(entry.partition(":")[0]) - 1 for entry in entries]] = 1.0
    schema = Schema(
        features=tuple(Categorical(f"indicator {j}", (1,)) for j in range(1, columns + 1)),
        target=Categorical("income", (-1, 1)),
    )
    return Data("a9a", X, np.array([int(line[0]) for line in lines]), schema)


# ---------------------------------------------------------------------------------------------------------- synthetic


def synthetic_classification(rows: int, columns: int) -> Data:
    """scikit-learn's make_classification, seed 0, a quarter of the columns informative; features within [-8, 8]."""
    from sklearn.datasets import make_classification

    X, y = make_classification(rows, columns, n_informative=columns // 4, n_redundant=columns // 4, random_state=0)
    schema = Schema.uniform(-8, 8, n_features=columns, target=Categorical("class", (0, 1)))
    return Data("synthetic_classification", X, y, schema)


def synthetic_regression(rows: int, columns: int) -> Data:
    """scikit-learn's make_regression, seed 0: standard normal columns, ten of them with weights of up to 100.

    The label's deviation is below 100 sqrt(10) = 316 by construction; labels beyond 1,000 are clipped to it.
    """
    from sklearn.datasets import make_regression

    X, y = make_regression(rows, columns, n_informative=10, random_state=0)
    schema = Schema.uniform(-4, 4, n_features=columns, target=Numeric("label", -1_000, 1_000))
    return Data("synthetic_regression", X, np.clip(y, -1_000, 1_000), schema)
