"""The schema: the public description of the data, declared by the user and not derived from the rows."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from ledgerwood import _validate
from ledgerwood.ensemble import FeatureCells
from ledgerwood.errors import InvalidParameter, SchemaError

if TYPE_CHECKING:
    from ledgerwood.curator.inputs.checking import SchemaReport

LEAST_WIDTH = 1e-300
"""Of a range: the steps of a smaller one are no numbers of float64, and rows at its ends could not be placed."""
MAX_CATEGORIES = 60_000
MAX_CATEGORY = 2**53
"""Numbers below it, and no others, are told apart by every type of column that may hold them, whole or float."""
LEAST_WEIGHT_BOUND, MOST_WEIGHT_BOUND = 2.0**-20, 2.0**20
Category = str | int | float | bool


@final
@dataclass(frozen=True, slots=True)
class Numeric:
    """A number in [low, high], in the column's own unit.

    Args:
        name: the column's name.
        low, high: public bounds, low < high. Values outside are clamped to them, labels included.
        missing: whether the value may be missing (NaN or null). If False, a row without the value contributes 0.
    """

    name: str
    low: float
    high: float
    missing: bool = False

    def __post_init__(self) -> None:
        require_name(self.name)
        object.__setattr__(self, "low", _validate.real(f"low of {self.name!r}", self.low, "the column's unit"))
        object.__setattr__(self, "high", _validate.real(f"high of {self.name!r}", self.high, "the column's unit"))
        width = self.high - self.low
        if not LEAST_WIDTH <= width < math.inf:
            by = f"> low={self.low!r} by a finite width of at least {LEAST_WIDTH}"
            raise _validate.fail(f"high of {self.name!r}", self.high, by, "the column's unit")
        _validate.flag(f"missing of {self.name!r}", self.missing)

    def cells(self, bins: int) -> FeatureCells:
        """Even steps of [low, high], and one more cell for a missing value."""
        return FeatureCells(ordered=bins, equality=(bins,) if self.missing else ())


@final
@dataclass(frozen=True, slots=True)
class Categorical:
    """One of a public list of categories.

    Args:
        name: the column's name.
        categories: distinct strings, booleans, or numbers of size below 2**53. A feature value outside the list counts
            as "other"; a row with a label outside contributes 0. No string ends in NUL: numpy's strings lose it.
        missing: whether the value may be missing (NaN or null), as in `Numeric`.
    """

    name: str
    categories: tuple[Category, ...]
    missing: bool = False

    def __post_init__(self) -> None:
        require_name(self.name)
        given: object = self.categories
        if isinstance(given, str | bytes):
            raise InvalidParameter(
                f"categories={self.categories!r} of {self.name!r} must be a sequence of categories, and one text would "
                f"be read as its letters: write Categorical({self.name!r}, ({self.categories!r}, ...)) with every "
                "category that can occur (unit: categories)"
            )
        _validate.flag(f"missing of {self.name!r}", self.missing)
        object.__setattr__(
            self, "categories", _validate.items(f"categories of {self.name!r}", self.categories, "categories")
        )
        if not 1 <= len(self.categories) <= MAX_CATEGORIES:
            raise _validate.fail(
                f"len(categories) of {self.name!r}", len(self.categories), f"in [1, {MAX_CATEGORIES}]", "categories"
            )
        for category in self.categories:
            # The types are the caller's word; NaN would never be found in a column.
            if not isinstance(category, str | int | float) or category != category:  # type: ignore[redundant-expr]
                raise _validate.fail(f"category of {self.name!r}", category, "a string, number or boolean", "category")
            if not isinstance(category, str) and abs(category) >= MAX_CATEGORY:
                bound = "of size below 2**53, or a string in a column of strings"
                raise _validate.fail(f"category of {self.name!r}", category, bound, "category")
            if isinstance(category, str) and category.endswith("\0"):
                raise _validate.fail(
                    f"category of {self.name!r}", category, "a string without NUL at its end", "category"
                )
        if len(set(self.categories)) != len(self.categories):
            raise _validate.fail(f"categories of {self.name!r}", self.categories, "distinct", "categories")

    @property
    def other_cell(self) -> int:
        """The index of the cell for values outside the list."""
        return len(self.categories)

    @property
    def missing_cell(self) -> int:
        """The index of the cell for missing values."""
        return len(self.categories) + 1

    def cells(self, bins: int) -> FeatureCells:
        """One cell a category, tested by equality (and a missing value, where declared)."""
        missing = (self.missing_cell,) if self.missing else ()
        return FeatureCells(ordered=0, equality=(*range(len(self.categories)), *missing))


Feature = Numeric | Categorical


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The public description of a table: features in order, and the target.

    Args:
        features: one `Numeric` or `Categorical` for each column, with distinct names.
        target: a `Numeric` (regression) or a `Categorical` (classification), not missing.
        every: instead of `features`, one range for all columns, which are numeric, in any number (see `uniform`).
        weight_bound: the largest weight that a row may have, in [2**-20, 2**20], for trainers; None if rows have no
            weights. The noise is proportional to it: a row of half this weight counts as half a row. With a power of
            two, whole weights are exact.

    Raises:
        SchemaError: no feature, or names that are not distinct.
        InvalidParameter: a weight_bound outside its bounds.
    """

    features: tuple[Feature, ...] = ()
    target: Feature | None = None
    every: Numeric | None = None
    weight_bound: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _features(self.features))
        if self.weight_bound is not None:
            bound = _validate.real("weight_bound", self.weight_bound, "weight of a row")
            if not LEAST_WEIGHT_BOUND <= bound <= MOST_WEIGHT_BOUND:
                raise _validate.fail("weight_bound", bound, "in [2**-20, 2**20]", "weight of a row")
            object.__setattr__(self, "weight_bound", bound)
        if (self.every is None) == (not self.features):
            raise SchemaError(
                "a schema needs features or one range for every column: "
                f"got {len(self.features)} features and every={self.every!r}"
            )
        names = [feature.name for feature in self.features]
        if len(set(names)) != len(names):
            repeated = sorted({name for name in names if names.count(name) > 1})
            raise SchemaError(f"feature names must be distinct: {repeated} occur more than once")
        if self.target is not None and self.target.missing:
            raise SchemaError(
                f"the target {self.target.name!r} cannot be declared missing: a row without a label has no gradient"
            )

    @classmethod
    def uniform(
        cls,
        low: float,
        high: float,
        *,
        n_features: int | None = None,
        target: Feature | None = None,
        weight_bound: float | None = None,
    ) -> "Schema":
        """Numeric columns x0, x1, ... that all lie in [low, high]; their number is the table's where None."""
        if n_features is None:
            return cls(every=Numeric("x", low, high), target=target, weight_bound=weight_bound)
        count = _validate.count("n_features", n_features, "columns")
        features = tuple(Numeric(f"x{i}", low, high) for i in range(count))
        return cls(features=features, target=target, weight_bound=weight_bound)

    def resolved(self, n_features: int) -> "Schema":
        """This schema with its features spelled out for `n_features` columns."""
        if self.every is None:
            return self
        count = _validate.count("n_features", n_features, "columns")
        # A uniform schema knows columns by position: the names x0, x1, ... are its own.
        features = tuple(Numeric(f"x{i}", self.every.low, self.every.high, self.every.missing) for i in range(count))
        return Schema(features=features, target=self.target, weight_bound=self.weight_bound)

    @property
    def columns(self) -> tuple[Feature, ...]:
        """The features, and the target after them where there is one."""
        return self.features if self.target is None else (*self.features, self.target)

    def column(self, name: str) -> Feature:
        """The feature or target of this name.

        Raises:
            SchemaError: the schema has no column of this name.
        """
        for column in self.columns:
            if column.name == name:
                return column
        more = "" if self.every is None else "; the columns of a uniform schema are those of its table's schema"
        raise SchemaError(f"no column {name!r} in the schema; it has {[column.name for column in self.columns]}{more}")

    def cells(self, bins: int) -> tuple[FeatureCells, ...]:
        """The cells of each feature, with `bins` even steps for the numeric ones."""
        return tuple(feature.cells(bins) for feature in self.features)

    def check(self, X: Any, y: Any = None, sample_weight: Any = None) -> "SchemaReport":
        """Compare rows with this schema, in detail. For the data owner only: **the report is not private**.

        `fit` reports nothing about the rows: it clamps values, counts them as "other" or skips rows. This method shows
        what `fit` will do. Call it before a fit, and show the report only to people who may see the rows. Take new
        bounds from a public source, not from the report: bounds that are changed until the report is empty depend on
        the rows.

        Args:
            X: as for `fit`: array-like, data frame or list of rows, shape (n_rows, n_features).
            y: array-like (n_rows,), where the schema declares a target.
            sample_weight: array-like (n_rows,), where it declares a weight_bound.

        Returns:
            A `SchemaReport`: columns with values outside, unseen categories, missing and wrong types; `ok`,
            `raise_for_problems()`.
        """
        from ledgerwood.curator.inputs.checking import check_rows

        return check_rows(self, X, y, sample_weight)

    def to_json(self) -> str:
        """The schema as JSON text."""
        record: dict[str, object] = {}
        if self.features:
            record["features"] = [_feature_record(feature) for feature in self.features]
        if self.every is not None:
            record["every"] = _feature_record(self.every)
        if self.target is not None:
            record["target"] = _feature_record(self.target)
        if self.weight_bound is not None:
            record["weight_bound"] = self.weight_bound
        return json.dumps(record, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Schema":
        """The inverse of `to_json`.

        Raises:
            SchemaError: text that is not a schema.
        """
        try:
            record = json.loads(text)
            every = _feature(record["every"]) if "every" in record else None
            if isinstance(every, Categorical):
                raise SchemaError("every column must be numeric")
            return cls(
                features=tuple(_feature(item) for item in record.get("features", ())),
                target=_feature(record["target"]) if "target" in record else None,
                every=every,
                weight_bound=record.get("weight_bound"),
            )
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise SchemaError(f"not a schema: {error!r}") from error


def _features(features: object) -> tuple[Feature, ...]:
    if isinstance(features, Numeric | Categorical):
        raise SchemaError(f"features={features!r} must be a sequence: write features=({features!r},) for one column")
    found = _validate.items("features", features, "columns")
    for feature in found:
        if not isinstance(feature, Numeric | Categorical):
            raise SchemaError(f"features holds {feature!r}: each must be a Numeric or a Categorical")
    return found


def require_name(name: object) -> None:
    """Refuse a value that is not a non-empty string."""
    if not isinstance(name, str) or not name:
        raise _validate.fail("name", name, "a non-empty string", "column name")


def _feature_record(feature: Feature) -> dict[str, object]:
    match feature:
        case Numeric():
            return {"numeric": feature.name, "low": feature.low, "high": feature.high, "missing": feature.missing}
        case Categorical():
            return {"categorical": feature.name, "categories": list(feature.categories), "missing": feature.missing}


def _feature(record: Mapping[str, object]) -> Feature:
    missing = record.get("missing", False)
    if not isinstance(missing, bool):
        raise SchemaError(f"missing={missing!r} must be true or false")
    match record:
        case {"numeric": str(name), "low": float() | int() as low, "high": float() | int() as high}:
            return Numeric(name, low, high, missing)
        case {"categorical": str(name), "categories": [*categories]}:
            return Categorical(name, tuple(categories), missing)  # type: ignore[arg-type]  # checked there
    raise SchemaError(
        f"not a feature: {dict(record)!r}; write {{'numeric': name, 'low': .., 'high': ..}} "
        "or {'categorical': name, 'categories': [..]}"
    )
