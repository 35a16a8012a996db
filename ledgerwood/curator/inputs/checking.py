"""The owner's detailed look at the rows, beside a schema. It reads every value, and nothing that it says is private."""

import dataclasses
import functools
import itertools
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, final

import numpy as np

from ledgerwood.curator.inputs.batches import Roles, RowSource
from ledgerwood.curator.inputs.encoding import ranged_values, sorted_classes
from ledgerwood.curator.inputs.reading import Column, columns_in_turn, one_column
from ledgerwood.curator.inputs.sources import require_label, require_named, settled, source_of
from ledgerwood.curator.inputs.values import NO_KEY, categories
from ledgerwood.errors import SchemaError
from ledgerwood.schema import Categorical, Category, Date, Feature, Numeric, Ranged, Schema, spelled_days

Role = Literal["feature", "target", "weight"]
SHOWN = 10
"""Examples of a column, at most."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReport:
    """The check of one column against its declaration. Not private: for the owner of the data.

    Args:
        name: as declared; "sample_weight" for the weights.
        role: feature, target or weight.
        missing: rows without a value.
        missing_declared: whether the schema expects them; otherwise such a row contributes 0.
        wrong_type: rows whose value cannot be read as the declared type; they count as missing.
        wrong_examples: some of those values, as text.
        outside: rows with a number or a date outside the declared range; it is clamped.
        lowest, highest: the lowest and highest number found, or date as an ISO text; None without numbers.
        bounds: the declared range; None for categories.
        unseen: rows with a category that is not declared: "other" for a feature, no class for the target.
        unseen_categories: some of these categories with their number of rows, the most frequent first.
        empty: declared categories that no row has.
    """

    name: str
    role: Role
    missing: int = 0
    missing_declared: bool = False
    wrong_type: int = 0
    wrong_examples: tuple[str, ...] = ()
    outside: int = 0
    lowest: float | str | None = None
    highest: float | str | None = None
    bounds: tuple[float, float] | tuple[str, str] | None = None
    unseen: int = 0
    unseen_categories: tuple[tuple[Category, int], ...] = ()
    empty: tuple[Category, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each value or type that does not fit the declaration; empty if all fit."""
        what = "sample_weight" if self.role == "weight" else f"{self.role} {self.name!r}"
        found = []
        if self.missing and not self.missing_declared:
            found.append(f"{what}: {self.missing} rows have no value and contribute 0{self._way_out()}")
        if self.wrong_type:
            lost = "count as missing" if self.missing_declared else "contribute 0"
            found.append(
                f"{what}: {self.wrong_type} rows have a value that is not of the declared type and {lost}: "
                f"{', '.join(self.wrong_examples)}"
            )
        if self.outside and self.bounds is not None:
            found.append(
                f"{what}: {self.outside} rows are outside the declared {list(self.bounds)!r} and are clamped to it; "
                f"found {self.lowest!r} to {self.highest!r}"
            )
        if self.unseen:
            fate = "contribute 0" if self.role == "target" else 'count as "other"'
            some = ", ".join(f"{category!r} ({count})" for category, count in self.unseen_categories)
            found.append(f"{what}: {self.unseen} rows have a category that is not declared and {fate}: {some}")
        return tuple(found)

    def _way_out(self) -> str:
        return "; declare missing=True to keep them" if self.role == "feature" else ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaReport:
    """A check of rows against a schema, by column. It is **not private**: for the data owner only.

    Args:
        rows: their number.
        columns: features in order, then target and weights where they were given.
        misfits: what `fit` refuses by names, types and shapes.
        left_out: rows that contribute 0: those with a label that is missing, of no class or of the wrong type, with a
            missing value where none is declared, or of weight 0.
    """

    rows: int
    columns: tuple[ColumnReport, ...]
    misfits: tuple[str, ...]
    left_out: int

    @property
    def problems(self) -> tuple[str, ...]:
        """All that does not fit, a sentence each."""
        return (*self.misfits, *(problem for column in self.columns for problem in column.problems))

    @property
    def ok(self) -> bool:
        """True if every value is as the schema declares it: nothing is clamped, "other" by surprise, or left out."""
        return not self.problems

    def raise_for_problems(self) -> None:
        """Raise what the report found.

        Raises:
            SchemaError: the rows do not fit the schema. Its text tells of rows, and is as little private as the report.
        """
        if self.problems:
            raise SchemaError(str(self))

    def to_record(self) -> dict[str, object]:
        """Plain JSON values."""
        return {
            "ok": self.ok,
            "rows": self.rows,
            "left_out": self.left_out,
            "problems": list(self.problems),
            "misfits": list(self.misfits),
            "columns": [asdict(column) for column in self.columns],
        }

    def __str__(self) -> str:
        count = f"{self.rows} rows, {self.left_out} of which contribute 0" if self.columns else "no value was looked at"
        head = f"{count} (not private: for the owner of the data)"
        return "\n".join([head, *(f"- {problem}" for problem in self.problems or ("all values are as declared",))])

    __repr__ = __str__


def check_rows(schema: Schema, X: Any, y: Any = None, sample_weight: Any = None) -> SchemaReport:
    """The report of `Schema.check`.

    Raises:
        SchemaError: rows in files without the label's name, or files of a kind that is not read.
        FilesChanged: a file changed while it was read.
    """
    source = source_of(X)
    found = _of_table(schema, X, y, sample_weight) if source is None else _of_files(schema, source, y, sample_weight)
    return dataclasses.replace(
        found,
        columns=tuple(
            dataclasses.replace(
                column,
                wrong_examples=column.wrong_examples[:SHOWN],
                unseen_categories=_ranked(column.unseen_categories)[:SHOWN],
                empty=column.empty[:SHOWN],
            )
            for column in found.columns
        ),
    )


def _of_files(schema: Schema, source: RowSource, y: Any, sample_weight: Any) -> SchemaReport:
    """The report on rows in files, which are read once, some at a time."""
    require_named(sample_weight, "weight", "sample_weight='weight'")
    roles = Roles(schema=schema, label=None if y is None else require_label(y), weight=sample_weight)
    try:
        roles, _ = settled(source, roles)
        heads = list(source.heads(roles))
    except SchemaError as misfit:
        return SchemaReport(rows=0, columns=(), misfits=(str(misfit),), left_out=0)
    batches = itertools.chain(heads, source.batches(roles))
    return functools.reduce(_together, (_of_table(schema, each.X, each.y, each.weights) for each in batches))


def _together(first: SchemaReport, other: SchemaReport) -> SchemaReport:
    """The report on the rows of both."""
    columns = {(column.role, column.name): column for column in first.columns}
    for column in other.columns:
        before = columns.get((column.role, column.name))
        columns[column.role, column.name] = column if before is None else _of_both(before, column)
    return SchemaReport(
        rows=first.rows + other.rows,
        columns=tuple(columns.values()),
        misfits=tuple(dict.fromkeys((*first.misfits, *other.misfits))),
        left_out=first.left_out + other.left_out,
    )


def _of_both(one: ColumnReport, other: ColumnReport) -> ColumnReport:
    unseen = dict(one.unseen_categories)
    for category, count in other.unseen_categories:
        unseen[category] = unseen.get(category, 0) + count
    lows: list[Any] = [each.lowest for each in (one, other) if each.lowest is not None]
    highs: list[Any] = [each.highest for each in (one, other) if each.highest is not None]
    return dataclasses.replace(
        one,
        missing=one.missing + other.missing,
        wrong_type=one.wrong_type + other.wrong_type,
        wrong_examples=tuple(dict.fromkeys((*one.wrong_examples, *other.wrong_examples)))[:SHOWN],
        outside=one.outside + other.outside,
        lowest=min(lows, default=None),
        highest=max(highs, default=None),
        unseen=one.unseen + other.unseen,
        unseen_categories=tuple(unseen.items()),
        empty=tuple(category for category in one.empty if category in other.empty),
    )


def _ranked(found: tuple[tuple[Category, int], ...]) -> tuple[tuple[Category, int], ...]:
    """The most frequent first."""
    return tuple(sorted(found, key=lambda item: (-item[1], str(item[0]))))


def _of_table(schema: Schema, X: Any, y: Any, sample_weight: Any) -> SchemaReport:
    """The report on a table; of each column with all categories."""
    misfits: list[str] = []
    reports: list[ColumnReport] = []
    try:
        rows, width, columns = columns_in_turn(X, schema)
    except SchemaError as misfit:
        return SchemaReport(rows=0, columns=(), misfits=(str(misfit),), left_out=0)
    left_out = np.zeros(rows, dtype=np.bool_)
    for feature, column in zip(schema.resolved(width).features, columns, strict=True):
        _look(feature, column, "feature", reports, misfits, left_out)
    if schema.target is not None and y is None:
        misfits.append(f"y was not given: the schema declares the target {schema.target.name!r}")
    elif schema.target is None and y is not None:
        misfits.append("y was given, but the schema declares no target")
    elif schema.target is not None:
        if isinstance(schema.target, Categorical):
            try:
                sorted_classes(schema.target)
            except SchemaError as misfit:
                misfits.append(str(misfit))
        _look_at_column(schema.target, y, "target", reports, misfits, left_out)
    if sample_weight is not None:
        if schema.weight_bound is None:
            misfits.append("sample_weight was given, but the schema declares no weight_bound")
        else:
            weight = Numeric("sample_weight", 0.0, schema.weight_bound)
            _look_at_column(weight, sample_weight, "weight", reports, misfits, left_out)
    return SchemaReport(
        rows=rows, columns=tuple(reports), misfits=tuple(misfits), left_out=int(np.count_nonzero(left_out))
    )


def _look_at_column(
    feature: Feature,
    values: Any,
    role: Role,
    reports: list[ColumnReport],
    misfits: list[str],
    left_out: np.ndarray[Any, np.dtype[np.bool_]],
) -> None:
    try:
        column = one_column(values, "y" if role == "target" else "sample_weight", numeric=isinstance(feature, Numeric))
    except SchemaError as misfit:
        misfits.append(str(misfit))
        return
    if len(column) != len(left_out):
        misfits.append(f"{role} {feature.name!r} has {len(column)} values, and X has {len(left_out)} rows")
        return
    _look(feature, column, role, reports, misfits, left_out)


def _look(
    feature: Feature,
    column: Column,
    role: Role,
    reports: list[ColumnReport],
    misfits: list[str],
    left_out: np.ndarray[Any, np.dtype[np.bool_]],
) -> None:
    """Add the column's report, and mark the rows that contribute 0 because of it."""
    try:
        report, lost = (
            _keyed(feature, column, role) if isinstance(feature, Categorical) else _ranged(feature, column, role)
        )
    except SchemaError as misfit:
        misfits.append(str(misfit))
        return
    reports.append(report)
    left_out |= lost


def _ranged(feature: Ranged, column: Column, role: Role) -> tuple[ColumnReport, np.ndarray[Any, np.dtype[np.bool_]]]:
    values = ranged_values(column, feature)
    unread = np.isnan(values)
    wrong = _wrong(column, unread)
    found = values[~unread]
    outside = (found < feature.low) | (found > feature.high)
    if isinstance(feature, Date) and feature.whole_last_day:  # whose upper end is the day after
        outside |= found == feature.high
    lost = unread & (not feature.missing)
    return ColumnReport(
        name=feature.name,
        role=role,
        missing=int(np.count_nonzero(unread)) - len(wrong),
        missing_declared=feature.missing,
        wrong_type=len(wrong),
        wrong_examples=_shown(wrong),
        outside=int(np.count_nonzero(outside)),
        lowest=_spelled(feature, float(found.min())) if len(found) else None,
        highest=_spelled(feature, float(found.max())) if len(found) else None,
        bounds=(feature.first, feature.last) if isinstance(feature, Date) else (feature.low, feature.high),
    ), lost | (values <= 0.0) if role == "weight" else lost


def _spelled(feature: Ranged, value: float) -> float | str:
    """A value as the owner knows it: a number, or the text of a date."""
    return spelled_days(value) if isinstance(feature, Date) else value


def _keyed(
    feature: Categorical, column: Column, role: Role
) -> tuple[ColumnReport, np.ndarray[Any, np.dtype[np.bool_]]]:
    keys = categories(column, feature.name)
    declared = {str.__str__(each) if isinstance(each, str) else each for each in feature.categories}
    counts = np.bincount(keys.codes[keys.codes >= 0], minlength=len(keys.keys)).tolist()
    foreign = {key: count for key, count in zip(keys.keys, counts, strict=True) if key not in declared}
    unlisted = np.array([key not in declared for key in keys.keys], dtype=np.bool_)
    unseen = keys.codes == NO_KEY
    unseen[keys.codes >= 0] = unlisted[keys.codes[keys.codes >= 0]]
    unread = keys.codes == -1
    wrong = _wrong(column, unread)
    lost = unread & (not feature.missing)
    return ColumnReport(
        name=feature.name,
        role=role,
        missing=int(np.count_nonzero(unread)) - len(wrong),
        missing_declared=feature.missing,
        wrong_type=len(wrong),
        wrong_examples=_shown(wrong),
        unseen=int(np.count_nonzero(unseen)),
        unseen_categories=tuple(foreign.items()),
        empty=tuple(each for each in feature.categories if each not in keys.keys),
    ), lost | unseen if role == "target" else lost


def _wrong(column: Column, unread: np.ndarray[Any, np.dtype[np.bool_]]) -> list[object]:
    """The values that were not read though there is one."""
    if column.dtype.kind != "O":
        return []
    return [value for value in column[unread].tolist() if not _is_missing(value)]


def _is_missing(value: object) -> bool:
    """Returns whether it is one of the ways to say that there is no value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def _shown(values: list[object]) -> tuple[str, ...]:
    shown: list[str] = []
    for value in values:
        try:
            text = repr(value)
        except Exception:  # noqa: BLE001  # a foreign object
            text = "?"
        text = f"{text[:60]} ({type(value).__name__})"
        if text not in shown:
            shown.append(text)
        if len(shown) == SHOWN:
            break
    return tuple(shown)
