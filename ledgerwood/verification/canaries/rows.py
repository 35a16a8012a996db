"""The rows of an audit: the background, the canaries, and rows that stand by them.

A background may come as a data frame, and canaries then are rows of the same columns. Each canary has a cell, cells are
disjoint, and one tree has each cell in its own leaf; all of it follows from the public schema
(docs/explanation/canaries.md#canary-cells).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.curator import Categorical, Feature, Numeric, Ranged, Schema, encode_features
from ledgerwood.ensemble import MAX_DEPTH, TreeStructure
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.schema import as_given


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameShape:
    """Columns and types of a data frame; numbers are float64, since a canary stands in the middle of its cell.

    Args:
        library: which library's data frame it is.
        columns: name, type in the frame, and whether the column holds numbers; in the schema's order.
    """

    library: Any
    columns: tuple[tuple[str, Any, bool], ...]

    @classmethod
    def of(cls, X: Any, names: Sequence[str]) -> "FrameShape | None":
        """The shape of a data frame; None for arrays, and where the schema knows the columns by place only.

        Args:
            X: the background.
            names: the schema's features.
        """
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return None
        types = frame.schema
        # A uniform schema knows columns by place; others were found by name.
        ordered = list(names) if set(names) <= set(types) else frame.columns
        return cls(
            library=frame.implementation,
            columns=tuple((name, types[name], types[name].is_numeric()) for name in ordered),
        )

    def filled(self, rows: NDArray[Any]) -> Any:
        """A data frame of the same library and columns.

        Args:
            rows: (n, n_features), floats or objects.
        """
        series = [
            _series(name, rows[:, place], kind, numeric, self.library)
            for place, (name, kind, numeric) in enumerate(self.columns)
        ]
        frame = series[0].to_frame()
        return frame.with_columns(*series[1:]).to_native()


def _series(name: str, values: NDArray[Any], kind: Any, numeric: bool, library: Any) -> nw.Series[Any]:
    if numeric:
        return nw.new_series(name, values.astype(np.float64), nw.Float64, backend=library)
    plain = nw.new_series(name, values.tolist(), backend=library)
    # Of a column of objects there is no more to say than what its values are.
    return plain if kind in (nw.Object, nw.Unknown) or plain.dtype == kind else plain.cast(kind)


def seen_feature(series: nw.Series[Any]) -> Numeric | Categorical:
    """Describes a column of the background: the range of its numbers, or its categories in sorted order.

    Raises:
        InvalidParameter: a column of another type (dates, lists, mixed objects).
    """
    name = str(series.name)
    if series.dtype.is_numeric():
        return seen_range(name, series.cast(nw.Float64).to_numpy())
    values = series.to_list()
    there = [value for value in values if value is not None and value == value]
    kinds = {type(value) for value in there}
    if not kinds <= {bool} and not kinds <= {str}:
        raise InvalidParameter(
            f"column {name!r} of X has type {series.dtype}: an audit puts canaries among numbers, texts and booleans; "
            "convert the column, or declare it in audit_model(schema=...) (unit: column)"
        )
    categories = tuple(sorted(set(there))) or ("",)
    return Categorical(name, categories, missing=len(there) < len(values))


def seen_range(name: str, column: NDArray[Any]) -> Numeric:
    """The range of the finite numbers of a column; missing where there are others."""
    finite = column[np.isfinite(column)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    return Numeric(name, low, high if high > low else low + 1.0, missing=len(finite) < len(column))


_Allowed = tuple[tuple[int, int], ...]
"""Of each feature the cells low .. high-1 that a path leaves open."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CanaryCells:
    """Disjoint cells of a schema, one canary's each.

    Args:
        structure: a complete tree that tests the features in turn, one a level, each at the middle of what is left.
        rows: the canaries' values, object (m, n_features): the middle of each cell.
        schema: resolved.
    """

    structure: TreeStructure
    rows: NDArray[Any]
    schema: Schema

    def __len__(self) -> int:
        return len(self.rows)

    def leaf(self, rows: NDArray[Any], *, bins: int) -> NDArray[np.int32]:
        """The leaf of each row, int32 (n,).

        Args:
            rows: (n, n_features).
            bins: even steps of a numeric feature's range.
        """
        return self.structure.route(encode_features(rows, self.schema, bins=bins))


def canary_cells(schema: Schema, canaries: int, *, bins: int) -> CanaryCells:
    """The first `canaries` leaves of the shallowest such tree that has as many.

    Args:
        schema: resolved: with its features.
        canaries: how many, >= 1.
        bins: even steps of a numeric feature's range.

    Raises:
        InvalidParameter: more canaries than cells.
    """
    _validate.count("canaries", canaries, "canaries")
    start = tuple((0, step_count(feature, bins)) for feature in schema.features)
    room = cell_count(schema, bins=bins)
    if canaries > room:
        raise _validate.fail("canaries", canaries, f"at most {room}, the cells of this schema", "canaries")
    depth = (canaries - 1).bit_length()
    while depth <= MAX_DEPTH - 1:
        structure, leaves = _even_tree(schema, start, depth)
        reachable = [leaf for leaf in leaves if leaf is not None]
        if len(reachable) >= canaries:
            rows = np.empty((canaries, len(start)), dtype=object)
            for place, leaf in enumerate(reachable[:canaries]):
                rows[place] = [
                    cell_value(feature, (low + high - 1) // 2, bins)
                    for feature, (low, high) in zip(schema.features, leaf, strict=True)
                ]
            return CanaryCells(structure=structure, rows=rows, schema=schema)
        depth += 1
    raise _validate.fail("canaries", canaries, f"at most the cells of a tree of depth {MAX_DEPTH - 1}", "canaries")


def cell_count(schema: Schema, *, bins: int) -> int:
    """The number of cells of a resolved schema, as a plain integer: it may be more than a float tells apart."""
    return math.prod(step_count(feature, bins) for feature in schema.features)


def step_count(feature: Feature, bins: int) -> int:
    """The number of cells of a feature."""
    return bins if isinstance(feature, Ranged) else len(feature.categories)


def _even_tree(schema: Schema, start: _Allowed, depth: int) -> tuple[TreeStructure, list[_Allowed | None]]:
    """The tree, and what each leaf leaves open; None for a leaf that no row reaches."""
    inner = 2**depth - 1
    feature = np.zeros(inner, dtype=np.int32)
    split = np.zeros(inner, dtype=np.uint16)
    equals = np.zeros(inner, dtype=np.bool_)
    paths: list[_Allowed | None] = [start, *([None] * (2 * inner))]
    for node in range(inner):
        path = paths[node]
        if path is None:
            continue
        level = (node + 1).bit_length() - 1
        order = [(level + i) % len(path) for i in range(len(path))]
        chosen = next((j for j in order if path[j][1] - path[j][0] > 1), None)
        if chosen is None:  # one cell is left: "cell < 0" sends every row right
            paths[2 * node + 2] = path
            continue
        low, high = path[chosen]
        feature[node] = chosen
        if isinstance(schema.features[chosen], Ranged):
            middle = (low + high) // 2
            split[node] = middle
            left, right = (low, middle), (middle, high)
        else:
            split[node], equals[node] = low, True
            left, right = (low, low + 1), (low + 1, high)
        paths[2 * node + 1] = (*path[:chosen], left, *path[chosen + 1 :])
        paths[2 * node + 2] = (*path[:chosen], right, *path[chosen + 1 :])
    return TreeStructure(feature=feature, split=split, equals=equals), paths[inner:]


def cell_value(feature: Feature, cell: int, bins: int) -> object:
    """The value in the middle of a cell of a feature, as a row has it."""
    if isinstance(feature, Categorical):
        return feature.categories[cell]
    return as_given(feature, feature.low + (cell + 0.5) / bins * (feature.high - feature.low))


def extreme_labels(schema: Schema) -> tuple[object, object]:
    """The labels of a canary and of the rows that speak against it: the ends of the range, or the last and first class.

    Raises:
        SchemaError: no target.
        InvalidParameter: a single class.
    """
    match schema.target:
        case Numeric() as target:
            return target.high, target.low
        case Categorical() as target:
            if len(target.categories) < 2:
                raise InvalidParameter(f"target {target.name!r} has one class: a canary's label would tell nothing")
            return target.categories[-1], target.categories[0]
    raise SchemaError("a canary needs a label: declare the schema's target")


Array = NDArray[Any]
Mask = NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditRows:
    """Everything that a fit of the audit may see.

    Args:
        background: (n, n_features), in every fit.
        labels: (n,), of the background.
        cells: the canaries.
        side: (m,), 0 or 1: at which end of the target each canary's label is.
        own, other: (m,), the label of each canary, and of rows that speak against it: one end of the target and the
            other one. Half of the canaries have them exchanged, so that canaries do not move the mean label.
        replaced: whether a canary that is out is replaced by the same row with the other label.
        frame: columns and types of the data frame that the background came as, which learners are given; None: arrays.
    """

    background: Array
    labels: Array
    cells: CanaryCells
    side: NDArray[np.int64]
    own: Array
    other: Array
    replaced: bool
    frame: FrameShape | None = None

    def given(self, rows: Array) -> Any:
        """Rows as the audit's user gives them to a learner: a data frame where the background was one."""
        return rows if self.frame is None else self.frame.filled(rows)

    def data(self, included: Mask) -> tuple[Array, Array]:
        """X and y of a fit: the background, the canaries that are in, and what replaces the others.

        Args:
            included: (m,).
        """
        rows = self.cells.rows.astype(self.background.dtype)
        labels = np.where(included, self.own, self.other)
        taken = np.ones(len(rows), dtype=np.bool_) if self.replaced else included
        return np.concatenate((self.background, rows[taken])), np.concatenate((self.labels, labels[taken]))


def background_rows(X: Any, y: Any, schema: Schema) -> tuple[Array, Array]:
    """X and y as arrays: float64 where every feature is a number, else objects; columns in the schema's order.

    Raises:
        SchemaError: columns or lengths that do not fit.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        names = frame.columns if schema.every is not None else [feature.name for feature in schema.features]
        absent = [name for name in names if name not in frame.columns]
        if absent:
            raise SchemaError(f"the data frame lacks the declared columns {absent}")
        rows = np.empty(frame.shape, dtype=object)
        if len(names) != frame.shape[1]:
            raise SchemaError(f"X has {frame.shape[1]} columns, but the schema declares {len(names)} features")
        for place, name in enumerate(names):
            rows[:, place] = frame[name].to_list()
    else:
        rows = np.asarray(X, dtype=object) if isinstance(X, list | tuple) else np.asarray(X)
        rows = rows.astype("datetime64[us]") if rows.dtype.kind == "M" else rows  # of others objects are whole numbers
    if rows.ndim != 2 or not len(rows):
        raise SchemaError(
            f"X has shape {rows.shape}: an audit needs a background (n_rows, n_features) of 1 row at least"
        )
    features = schema.resolved(rows.shape[1]).features
    if len(features) != rows.shape[1]:
        raise SchemaError(f"X has {rows.shape[1]} columns, but the schema declares {len(features)} features")
    numbers = all(isinstance(feature, Numeric) for feature in features)
    series = nw.from_native(y, series_only=True, pass_through=True)
    labels = np.asarray(series.to_list() if isinstance(series, nw.Series) else y)
    if labels.ndim != 1 or len(labels) != len(rows):
        raise SchemaError(f"X has {len(rows)} rows, and y has shape {labels.shape}: one label a row")
    labels = labels.astype(np.float64) if isinstance(schema.target, Numeric) else labels.astype(object)
    try:
        return rows.astype(np.float64 if numbers else object), labels
    except (TypeError, ValueError) as error:
        raise SchemaError(f"X has a value that is no number, in a schema of numbers: {error}") from error


def seen_schema(X: Any, y: Any, *, classify: bool) -> Schema:
    """The ranges and categories of the auditor's own background: for an estimator that declares no schema.

    Raises:
        InvalidParameter: columns that are neither numbers nor texts, or fewer than two labels.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        if not len(frame):
            raise SchemaError(f"X has shape {frame.shape}: an audit needs a background of 1 row at least")
        features: tuple[Numeric | Categorical, ...] = tuple(seen_feature(frame[name]) for name in frame.columns)
    else:
        try:
            rows = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidParameter(
                "X is an array with columns that are no numbers: give audit_model a schema= for the canaries' cells, "
                "or X as a data frame, whose columns have types"
            ) from error
        if rows.ndim != 2 or not len(rows):
            raise SchemaError(
                f"X has shape {rows.shape}: an audit needs a background (n_rows, n_features) of 1 row at least"
            )
        features = tuple(seen_range(f"x{place}", column) for place, column in enumerate(rows.T))
    series = nw.from_native(y, series_only=True, pass_through=True)
    labels = np.asarray(series.to_list() if isinstance(series, nw.Series) else y)
    if classify:
        classes = tuple(np.unique(labels).tolist())
        if len(classes) < 2:
            raise InvalidParameter(f"y has {len(classes)} class: a canary needs a label that the others do not have")
        return Schema(features=features, target=Categorical("y", classes))
    return Schema(features=features, target=seen_range("y", labels.astype(np.float64)))


def with_fill(rows: AuditRows, against: NDArray[np.int64], beside: NDArray[np.int64]) -> AuditRows:
    """Adds known rows to the canaries' cells.

    Args:
        rows: without them.
        against, beside: (m,), how many in each cell, with the other label and with the canary's own.
    """
    values = rows.cells.rows.astype(rows.background.dtype)
    added = np.concatenate((np.repeat(values, against, axis=0), np.repeat(values, beside, axis=0)))
    labels = np.concatenate((rows.labels, np.repeat(rows.other, against), np.repeat(rows.own, beside)))
    return replace(rows, background=np.concatenate((rows.background, added)), labels=labels)


def audit_rows(X: Any, y: Any, cells: CanaryCells, *, replaced: bool) -> AuditRows:
    """The background and the canaries' labels."""
    background, labels = background_rows(X, y, cells.schema)
    ends = np.empty(2, dtype=labels.dtype)
    ends[:] = extreme_labels(cells.schema)
    # Of no order that a learner could find in the cells, and the same in every audit.
    side = np.random.default_rng(0).permutation(len(cells)) % 2
    return AuditRows(
        background=background,
        labels=labels,
        cells=cells,
        side=side,
        own=ends[side],
        other=ends[1 - side],
        replaced=replaced,
        frame=FrameShape.of(X, [feature.name for feature in cells.schema.features]),
    )
