"""Schemas and drafts as records of plain values, and as the text of JSON and TOML files."""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.schema.dates import Date, Feature
from ledgerwood.schema.features import Categorical, Numeric
from ledgerwood.schema.opens import Open, OpenCategorical, OpenColumn, OpenDate, OpenNumeric

_FIELDS = {
    "numeric": {"numeric", "low", "high", "missing"},
    "categorical": {"categorical", "categories", "missing", "weights", "max_categories", "among"},
    "date": {"date", "first", "last", "missing", "zoned"},
    "open": {"open", "missing"},
}
"""Of a column: the name is the value of the first."""
_WHOLE = {"features", "target", "every", "weight_bound", "estimated"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaParts:
    """What a file says of a table; some columns may be open.

    Args:
        features, target, every, weight_bound: as of `Schema`.
        estimated: as of `SchemaDraft`.
    """

    features: tuple[Feature | Open, ...]
    target: Feature | Open | None
    every: Numeric | None
    weight_bound: float | None
    estimated: bool


def parsed(text: str, *, toml: bool) -> Mapping[str, Any]:
    """The record in a text.

    Args:
        text: of a JSON or TOML file.
        toml: which of the two it is.

    Raises:
        SchemaError: neither; the message has the line.
    """
    try:
        record = tomllib.loads(text) if toml else json.loads(text)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise SchemaError(f"not a schema in {'TOML' if toml else 'JSON'}: {error}") from error
    if not isinstance(record, Mapping):
        raise SchemaError(f"not a schema: {type(record).__name__} where a table with 'features' was expected")
    return record


def parts(record: Mapping[str, Any]) -> SchemaParts:
    """What a record says of a table.

    Raises:
        SchemaError: not a schema's record; the message names the column and the field.
        InvalidParameter: a value outside its bound.
    """
    _require_known(record, _WHOLE, "the schema")
    features = record.get("features", ())
    if not isinstance(features, Sequence) or isinstance(features, str):
        raise SchemaError(f"features={features!r} must be a list of columns; in TOML each begins with [[features]]")
    every = None if "every" not in record else column(record["every"], "every")
    if every is not None and not isinstance(every, Numeric):
        raise SchemaError(f"every={record['every']!r} must be numeric, with low and high: every column must be numeric")
    estimated = record.get("estimated", False)
    if not isinstance(estimated, bool):
        raise SchemaError(f"estimated={estimated!r} must be true or false")
    return SchemaParts(
        features=tuple(column(each, f"column {number} of features") for number, each in enumerate(features, start=1)),
        target=column(record["target"], "target") if "target" in record else None,
        every=every,
        weight_bound=record.get("weight_bound"),
        estimated=estimated,
    )


def column(record: object, where: str) -> Feature | Open:
    """The column that a record describes.

    Args:
        record: of one column.
        where: it stands, for errors.

    Raises:
        SchemaError: not a column; the message names the field.
        InvalidParameter: a value outside its bound.
    """
    if not isinstance(record, Mapping):
        raise SchemaError(f"{where}: {record!r} is not a column, which is a table of fields such as numeric, low, high")
    kinds = [kind for kind in _FIELDS if kind in record]
    if len(kinds) != 1 or not isinstance(record[kinds[0]], str):
        raise SchemaError(
            f"{where}: not a feature: {dict(record)!r}; write {{'numeric': name, 'low': .., 'high': ..}} "
            "or {'categorical': name, 'categories': [..]} or {'date': name, 'first': .., 'last': ..}, with one of the "
            "three, and the column's name as a text"
        )
    (kind,) = kinds
    where = f"{where} ({record[kind]!r})"
    _require_known(record, _FIELDS[kind], where)
    missing = record.get("missing", False)
    if not isinstance(missing, bool):
        raise SchemaError(f"{where}: missing={missing!r} must be true or false")
    try:
        match kind:
            case "numeric":
                return _numeric(record, where, missing)
            case "categorical":
                return _categorical(record, where, missing)
            case "date":
                return _date(record, where, missing)
        return OpenColumn(record[kind], missing=missing)
    except InvalidParameter as error:
        raise SchemaError(f"{where}: {error}") from error


def _numeric(record: Mapping[str, Any], where: str, missing: bool) -> Numeric | OpenNumeric:
    name, low, high = record["numeric"], record.get("low"), record.get("high")
    for end, value in (("low", low), ("high", high)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise SchemaError(f"{where}: {end}={value!r} must be a number, without quotes")
    if low is None or high is None:
        return OpenNumeric(name, low, high, missing)
    return Numeric(name, low, high, missing)


def _categorical(record: Mapping[str, Any], where: str, missing: bool) -> Categorical | OpenCategorical:
    name, categories, weights = record["categorical"], record.get("categories"), record.get("weights")
    if weights is not None and not isinstance(weights, list):
        raise SchemaError(f"{where}: weights={weights!r} must be a list of numbers, one for each category of a target")
    if categories is None:
        if weights is not None:
            raise SchemaError(f"{where}: weights={weights!r} need categories, one for each weight")
        among = record.get("among")
        if among is not None and not isinstance(among, list):
            raise SchemaError(f"{where}: among={among!r} must be a list")
        return OpenCategorical(name, missing, record.get("max_categories"), None if among is None else tuple(among))
    for field in ("among", "max_categories"):
        if field in record:
            raise SchemaError(f"{where}: {field} is of a column without categories, whose most frequent ones are found")
    if not isinstance(categories, list):
        raise SchemaError(f"{where}: categories={categories!r} must be a list")
    return Categorical(name, tuple(categories), missing, None if weights is None else tuple(weights))


def _date(record: Mapping[str, Any], where: str, missing: bool) -> Date | OpenDate:
    name, first, last, zoned = record["date"], record.get("first"), record.get("last"), record.get("zoned", False)
    if not isinstance(zoned, bool):
        raise SchemaError(f"{where}: zoned={zoned!r} must be true or false")
    if first is None and last is None:
        return OpenDate(name, missing, zoned)
    if first is None or last is None:
        raise SchemaError(f"{where}: give both first and last, or neither")
    date = Date(name, first, last, missing)  # TOML has dates, too
    if date.zoned != zoned and "zoned" in record:
        raise SchemaError(f"{where}: zoned={zoned!r}, and first and last say {date.zoned!r}: leave zoned out")
    return date


def _require_known(record: Mapping[str, Any], known: set[str], where: str) -> None:
    others = sorted(set(record) - known)
    if others:
        raise SchemaError(f"{where}: the fields {others} are not known; there may be {sorted(known)}")


def record_of(column: Feature | Open) -> dict[str, object]:
    """A column as plain values; the inverse of `column`."""
    match column:
        case Numeric() | OpenNumeric():
            ends = {"low": column.low, "high": column.high}
            given = {end: value for end, value in ends.items() if value is not None}
            return {"numeric": column.name, **given, "missing": column.missing}
        case Date():
            return {"date": column.name, "first": column.first, "last": column.last, "missing": column.missing}
        case OpenDate():
            kind = {"zoned": True} if column.zoned else {}
            return {"date": column.name, **kind, "missing": column.missing}
        case Categorical():
            record = {"categorical": column.name, "categories": list(column.categories), "missing": column.missing}
            return record if column.weights is None else record | {"weights": list(column.weights)}
        case OpenCategorical():
            most = {} if column.max_categories is None else {"max_categories": column.max_categories}
            among = {} if column.among is None else {"among": list(column.among)}
            return {"categorical": column.name, **most, **among, "missing": column.missing}
        case OpenColumn():
            return {"open": column.name, "missing": column.missing}


def table_record(
    features: Sequence[Feature | Open], target: Feature | Open | None, every: Numeric | None, weight_bound: float | None
) -> dict[str, object]:
    """A table's columns as plain values; the inverse of `parts`."""
    record: dict[str, object] = {}
    if features:
        record["features"] = [record_of(feature) for feature in features]
    if every is not None:
        record["every"] = record_of(every)
    if target is not None:
        record["target"] = record_of(target)
    if weight_bound is not None:
        record["weight_bound"] = weight_bound
    return record
