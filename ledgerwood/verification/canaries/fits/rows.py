"""The rows of an audit: what the user gave as a background, the canaries, and rows that stand by them."""

from dataclasses import dataclass, replace
from typing import Any, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator import Categorical, Numeric, Schema
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.verification.canaries.fits.cells import CanaryCells, extreme_labels
from ledgerwood.verification.canaries.fits.frames import FrameShape, seen_feature, seen_range

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
    """The same with known rows in the canaries' cells.

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
