"""A draft of a schema: what names and types say of a table, with open fields where only values or a person could."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, final

from ledgerwood import _validate
from ledgerwood.errors import SchemaError
from ledgerwood.schema.dates import Date, Feature, Target, require_target
from ledgerwood.schema.declared import Schema
from ledgerwood.schema.features import Categorical, Numeric
from ledgerwood.schema.opens import Open, OpenDate, filled
from ledgerwood.schema.records import parsed, parts
from ledgerwood.schema.toml_text import toml_text

MOST_SHOWN = 12
"""Open fields that an error lists one by one, and columns that it shows how to fill: the rest is counted."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDraft:
    """A schema some of whose fields are open, as `Schema.draft` makes it from names and types.

    It is no schema yet: a fit, a plan or a check refuses it, names the open fields, and says how to go on.

    Args:
        features: in order, with distinct names; open or declared.
        target: open or declared; None if it is not known.
        weight_bound: as of `Schema`.
        estimated: whether a fit estimates what is open privately, and takes what is declared as it is.

    Raises:
        SchemaError: no feature, weights where columns are to be estimated, or names that are not distinct.
    """

    features: tuple[Feature | Open, ...]
    target: Target | Open | None = None
    weight_bound: float | None = None
    estimated: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _columns(self.features))
        if isinstance(self.target, OpenDate):
            raise SchemaError(
                f"the target {self.target.name!r} is a date, and a target is a number or a category: give the number "
                "of days since a public day as the label"
            )
        if not isinstance(self.target, Open):
            require_target(self.target)
        if not self.features:
            raise SchemaError("a draft of a schema needs at least one feature")
        if self.estimated:
            _require_unweighted(self)
        names = [column.name for column in self.columns]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise SchemaError(f"column names must be distinct: {repeated} occur more than once")

    @property
    def columns(self) -> tuple[Feature | Open, ...]:
        """The features, and the target after them where there is one."""
        return self.features if self.target is None else (*self.features, self.target)

    @property
    def open(self) -> tuple[Open, ...]:
        """The columns with an open field, in order."""
        return tuple(column for column in self.columns if not isinstance(column, Feature))

    def filled(self, values: Mapping[str, object]) -> "Schema | SchemaDraft":
        """Fill in columns; a `Schema` once nothing is open, else a draft with fewer open fields.

        Args:
            values: for each column by its name, what is open of it: (low, high) of a number, (first, last)
                of a date, a sequence of all categories; or the whole column, a `Numeric`, `Categorical` or `Date`, or
                another open one, such as `OpenCategorical(name, max_categories=50)`. From a public source, and not from
                the rows.

        Raises:
            SchemaError: a column that the draft does not have.
            InvalidParameter: values that the column cannot have.
        """
        given: object = values
        if not isinstance(given, Mapping):
            raise _validate.fail("values", values, "a mapping from column names, as {'age': (0, 120)}", "columns")
        names = [column.name for column in self.columns]
        unknown = [name for name in values if name not in names]
        if unknown:
            raise SchemaError(f"the draft has no columns {unknown}; it has {names}")

        def done(column: Feature | Open) -> Feature | Open:
            return filled(column, values[column.name]) if column.name in values else column

        return _closed(
            SchemaDraft(
                features=tuple(map(done, self.features)),
                target=None if self.target is None else _target(done(self.target)),
                weight_bound=self.weight_bound,
                estimated=self.estimated,
            )
        )

    def without(self, names: Sequence[str]) -> "Schema | SchemaDraft":
        """Leave out features, by name.

        Raises:
            SchemaError: a name that is no feature, or no feature left.
        """
        ignored = _validate.items("names", names, "columns")
        unknown = [name for name in ignored if all(name != feature.name for feature in self.features)]
        if unknown:
            raise SchemaError(f"the draft has no features {unknown}; it has {[each.name for each in self.features]}")
        kept = tuple(feature for feature in self.features if feature.name not in ignored)
        return _closed(dataclasses.replace(self, features=kept))

    def with_open_estimated(self) -> "SchemaDraft":
        """The same draft for a fit that estimates what is open privately, as a part of its budget (`schema_share`).

        What is declared costs nothing. The fit takes a data frame or typed files, whose columns are those of the draft:
        `SGBDTRegressor(schema=draft.with_open_estimated())`. docs/explanation/bought-schema.md#partly-declared.

        Raises:
            SchemaError: a target with weights of classes, or a weight_bound: weights need a schema without open fields.
        """
        return dataclasses.replace(self, estimated=True)

    def refuse(self, where: str) -> NoReturn:
        """Raise the error of a draft where a schema is needed: it lists what is open, and the ways on.

        Args:
            where: the draft was given, as "schema".

        Raises:
            SchemaError: always.
        """
        missing = [f"{' and '.join(column.fields)} of {column.name!r}" for column in self.open]
        shown = ", ".join(missing[:MOST_SHOWN])
        more = f" and {len(missing) - MOST_SHOWN} more" if len(missing) > MOST_SHOWN else ""
        code = ", ".join(f"{column.name!r}: {column.example}" for column in self.open[:MOST_SHOWN])
        rest = ", ..." if len(missing) > MOST_SHOWN else ""
        raise SchemaError(
            f"{where} is a draft with open fields: {shown}{more}. Either fill them in from a public source, not from "
            f"the rows: schema = draft.filled({{{code}{rest}}}). Or let the fit estimate privately what is open, at a "
            "share of its budget (schema_share): schema = draft.with_open_estimated()"
        )

    def resolved(self, n_features: int) -> NoReturn:
        """Refused, as every use that needs a finished schema: see `refuse`.

        Raises:
            SchemaError: always.
        """
        self.refuse("the schema")

    def to_toml(self) -> str:
        """The draft as TOML, with comments that say how to fill what is open."""
        return toml_text(self.features, self.target, None, self.weight_bound, estimated=self.estimated)

    @classmethod
    def from_toml(cls, text: str) -> "Schema | SchemaDraft":
        """The inverse of `to_toml`; a `Schema` if nothing is open.

        Raises:
            SchemaError: text that is no draft; the message names the line, or the column and the field.
        """
        found = parts(parsed(text, toml=True))
        if found.every is not None:
            return Schema.from_toml(text)
        return _closed(
            cls(
                features=found.features,
                target=_target(found.target),
                weight_bound=found.weight_bound,
                estimated=found.estimated,
            )
        )

    def __str__(self) -> str:
        width = max(len(column.name) for column in self.columns)
        count = len(self.open)
        lines = [f"draft of a schema: {len(self.columns)} columns, {count} with open fields"]
        for column in self.columns:
            role = "  target" if column is self.target else ""
            lines.append(f"  {column.name:<{width}}  {_described(column)}{role}")
        if count:
            lines.append("fill it in: draft.filled({name: (low, high) or categories, ...})")
        return "\n".join(lines)


def refuse_draft(schema: object, where: str = "schema") -> None:
    """Refuse a draft where a schema is needed; whatever else it may be passes.

    Raises:
        SchemaError: a draft, with what is open and the ways on.
    """
    if isinstance(schema, SchemaDraft):
        schema.refuse(where)


def _closed(draft: SchemaDraft) -> "Schema | SchemaDraft":
    """A schema if nothing is open, else the draft."""
    features = tuple(feature for feature in draft.features if isinstance(feature, Feature))
    if draft.open or isinstance(draft.target, Open):
        return draft
    return Schema(features=features, target=draft.target, weight_bound=draft.weight_bound)


def _require_unweighted(draft: SchemaDraft) -> None:
    weights = draft.target.weights if isinstance(draft.target, Categorical) else None
    if draft.weight_bound is not None or weights is not None:
        raise SchemaError(
            f"weight_bound={draft.weight_bound!r}, weights of classes {weights!r}: rows with weights need a schema "
            "without open fields; fill the draft in, or take model.schema_ of a fit without weights"
        )


def _target(column: Feature | Open | None) -> Target | Open | None:
    return column if isinstance(column, Open) else require_target(column)


def _columns(columns: object) -> tuple[Feature | Open, ...]:
    found = _validate.items("features", columns, "columns")
    for column in found:
        if not isinstance(column, Feature | Open):
            raise SchemaError(f"features holds {column!r}: each must be a Numeric, a Categorical, a Date, or open")
    return found


def _described(column: Feature | Open) -> str:
    match column:
        case Numeric():
            return f"number      {column.low:g} to {column.high:g}"
        case Date():
            return f"{'instant' if column.zoned else 'date':<10}  {column.first} to {column.last}"
        case Categorical():
            some = ", ".join(map(str, column.categories[:6]))
            return f"category    {some}{', ...' if len(column.categories) > 6 else ''}"
        case _:
            return f"{column.kind:<10}  {' and '.join(column.fields)} open"
