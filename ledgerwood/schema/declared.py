"""The schema: the public description of the data, declared by the user and not derived from the rows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from ledgerwood import _validate
from ledgerwood.ensemble import FeatureCells
from ledgerwood.errors import SchemaError
from ledgerwood.pages.shown import Card, ShowsItself
from ledgerwood.schema.dates import Date, Feature, Target, require_target
from ledgerwood.schema.features import (
    LEAST_WEIGHT_BOUND,
    MOST_WEIGHT_BOUND,
    Categorical,
    Numeric,
)
from ledgerwood.schema.opens import Open
from ledgerwood.schema.records import parsed, parts, table_record
from ledgerwood.schema.toml_text import toml_text

if TYPE_CHECKING:
    from ledgerwood.curator.inputs.checking import SchemaReport
    from ledgerwood.schema.drafts import SchemaDraft


_MOST_SHOWN = 20
"""Columns in a schema's text."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Schema(ShowsItself):
    """The public description of a table: features in order, and the target.

    Args:
        features: one `Numeric`, `Categorical` or `Date` for each column, with distinct names.
        target: a `Numeric` (regression) or a `Categorical` (classification), not missing.
        every: instead of `features`, one range for all columns, which are numeric, in any number (see `uniform`).
        weight_bound: the largest weight that a row may have, in [2**-20, 2**20], for trainers; None if rows have no
            weights of their own. A class's weight, see `Categorical`, multiplies a row's own. The noise is proportional
            to it: a row of half this weight counts as half a row. With a power of two, whole weights are exact.

    Raises:
        SchemaError: no feature, names that are not distinct, or a feature whose categories have weights.
        InvalidParameter: a weight_bound outside its bounds.
    """

    features: tuple[Feature, ...] = ()
    target: Target | None = None
    every: Numeric | None = None
    weight_bound: float | None = None

    @property
    def in_short(self) -> str:
        """The number of features and the target's name, in a few words."""
        size = "any number of features" if self.every is not None else f"{len(self.features):,} features"
        return f"Schema of {size}, {'no target' if self.target is None else f'target {self.target.name}'}"

    def _card(self) -> Card:
        columns = [("every column", self.every)] if self.every is not None else [(f.name, f) for f in self.features]
        facts = [(name, _in_words(feature)) for name, feature in columns]
        if self.target is not None:
            facts.insert(0, (f"{self.target.name} (target)", _in_words(self.target)))
        return Card(
            title=self.in_short,
            facts=tuple(facts[:_MOST_SHOWN]),
            notes=(f"... and {len(facts) - _MOST_SHOWN} more",) if len(facts) > _MOST_SHOWN else (),
            header=("column", "values"),
            rows=tuple(facts) if len(facts) > _MOST_SHOWN else (),
        )

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
        for feature in self.features:
            if isinstance(feature, Categorical) and feature.weights is not None:
                raise SchemaError(
                    f"the feature {feature.name!r} has weights={feature.weights!r}: weights are of a target's classes. "
                    "Rows with weights of their own: weight_bound, and fit(..., sample_weight=...)"
                )
        require_target(self.target)
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
        target: Target | None = None,
        weight_bound: float | None = None,
    ) -> "Schema":
        """Numeric columns x0, x1, ... that all lie in [low, high]; their number is the table's where None."""
        if n_features is None:
            return cls(every=Numeric("x", low, high), target=target, weight_bound=weight_bound)
        count = _validate.count("n_features", n_features, "columns")
        features = tuple(Numeric(f"x{i}", low, high) for i in range(count))
        return cls(features=features, target=target, weight_bound=weight_bound)

    @property
    def class_weights(self) -> tuple[float, ...]:
        """The declared weights of the target's classes, in the order of its categories; empty where there are none."""
        weights = self.target.weights if isinstance(self.target, Categorical) else None
        return () if weights is None else weights

    @property
    def weighted(self) -> bool:
        """True if rows may count as less than one: by weights of their own, or by their class."""
        return self.weight_bound is not None or bool(self.class_weights)

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
            X: as for `fit`: array-like, data frame or list of rows, shape (n_rows, n_features); or rows in files, which
                are read once, some at a time.
            y: array-like (n_rows,), where the schema declares a target; of files the name of the label's column.
            sample_weight: array-like (n_rows,), where it declares a weight_bound; of files the name of a column.

        Returns:
            A `SchemaReport`: columns with values outside, unseen categories, missing and wrong types; `ok`,
            `raise_for_problems()`.

        Raises:
            SchemaError: of files: no such file, a kind that is not read, or y is no name.
            FilesChanged: a file changed while it was read.
        """
        from ledgerwood.curator.inputs.checking import check_rows

        return check_rows(self, X, y, sample_weight)

    @staticmethod
    def draft(frame: Any, *, target: str | None = None, ignore: Sequence[str] = ()) -> "Schema | SchemaDraft":
        """Draft a schema from the names and the types of columns; no value is looked at.

        Numbers and dates get open bounds, texts and categorical types open categories, whatever categories the type
        lists: a data frame takes them from its rows. Booleans are two public categories. The columns of a CSV file have
        no types. Fill the draft in: `SchemaDraft.filled`.

        Args:
            frame: a data frame of pandas, polars, pyarrow, Dask or narwhals, a LazyFrame or a `pyarrow.dataset`; or the
                path of a Parquet file, whose footer has the types, or of a CSV file, whose header has the names.
            target: the name of the column that is to be predicted; None if there is none.
            ignore: the names of columns that are not to be used.

        Returns:
            A `SchemaDraft`; a `Schema` if no column has anything to fill in, as of booleans.

        Raises:
            SchemaError: no such columns, names that are no texts, a type that a schema does not have, or what is no
                table with names and types.
        """
        from ledgerwood.curator.inputs.drafting import draft_of

        return draft_of(frame, target=target, ignore=ignore)

    def to_json(self) -> str:
        """The schema as JSON text."""
        record = table_record(self.features, self.target, self.every, self.weight_bound)
        return json.dumps(record, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Schema":
        """The inverse of `to_json`.

        Raises:
            SchemaError: text that is not a schema, or that leaves a field open; the message names the line, or the
                column and the field.
        """
        return cls._of_record(parsed(text, toml=False))

    def to_toml(self) -> str:
        """The schema as TOML text."""
        return toml_text(self.features, self.target, self.every, self.weight_bound)

    @classmethod
    def from_toml(cls, text: str) -> "Schema":
        """The inverse of `to_toml`; errors as of `from_json`."""
        return cls._of_record(parsed(text, toml=True))

    @classmethod
    def _of_record(cls, record: Mapping[str, Any]) -> "Schema":
        found = parts(record)
        features, target = found.features, found.target
        still = [column for column in (*features, *(() if target is None else (target,))) if isinstance(column, Open)]
        if still:
            listed = "; ".join(f"{' and '.join(column.fields)} of {column.name!r}" for column in still)
            draft = "; a draft that says estimated = true is for a fit: SchemaDraft.from_toml, or `ledgerwood train`"
            raise SchemaError(
                f"the schema has open fields: {listed}. Fill them in, in the file, from a public source and not from "
                "the rows: numeric columns need low and high, dates first and last, categorical columns categories"
                f"{draft if found.estimated else ''}"
            )
        return cls(
            features=tuple(feature for feature in features if isinstance(feature, Feature)),
            target=require_target(target),
            every=found.every,
            weight_bound=found.weight_bound,
        )


def _features(features: object) -> tuple[Feature, ...]:
    if isinstance(features, Feature):
        raise SchemaError(f"features={features!r} must be a sequence: write features=({features!r},) for one column")
    found = _validate.items("features", features, "columns")
    for feature in found:
        if not isinstance(feature, Feature):
            raise SchemaError(f"features holds {feature!r}: each must be a Numeric, a Categorical or a Date")
    return found


def _in_words(feature: Feature) -> str:
    missing = ", or missing" if feature.missing else ""
    if isinstance(feature, Date):
        return f"{feature.first} to {feature.last}{missing}"
    if isinstance(feature, Numeric):
        return f"{feature.low:g} to {feature.high:g}{missing}"
    return f"{len(feature.categories):,} categories: {', '.join(str(each) for each in feature.categories[:8])}{missing}"
