"""What the utility benchmarks share: splits by seed, scores on held-out rows, models beside ours, cells of tables."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.progress import track
from sklearn.base import is_regressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import r2_score, roc_auc_score
from threadpoolctl import threadpool_limits

from ledgerwood import Categorical, Numeric, Schema

FOLDS = 5
HELD_OUT = 0.3
Scores = tuple[float, float]
Split = tuple[NDArray[np.intp], NDArray[np.intp]]


class Rows(Protocol):
    """A table with its label and its public schema."""

    X: NDArray[Any]
    y: NDArray[Any]
    schema: Schema


def is_numeric(data: Rows) -> bool:
    """Whether the label is a number: measured by RMSE and R2, else by AUC and accuracy."""
    return isinstance(data.schema.target, Numeric)


def measures(data: Rows) -> tuple[str, str]:
    """What is measured."""
    return ("RMSE", "R2") if is_numeric(data) else ("AUC", "accuracy")


def folds(n_rows: int, seeds: int) -> Iterator[Split]:
    """Train and test rows of each of 5 folds, for each seed."""
    for seed in range(seeds):
        fold = np.random.default_rng(seed).permutation(n_rows) % FOLDS
        for held_out in range(FOLDS):
            yield np.flatnonzero(fold != held_out), np.flatnonzero(fold == held_out)


def holdouts(n_rows: int, seeds: int) -> Iterator[Split]:
    """Train and test rows, 70 % and 30 %, for each seed."""
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(n_rows)
        held_out = round(HELD_OUT * n_rows)
        yield np.sort(order[held_out:]), np.sort(order[:held_out])


def number_scores(predicted: NDArray[np.float64], y: NDArray[Any]) -> Scores:
    """(RMSE, R2) of predicted numbers."""
    return float(np.sqrt(np.mean((predicted - y) ** 2))), float(r2_score(y, predicted))


def class_scores(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> Scores:
    """(AUC, accuracy) of scores that are positive for the second class."""
    return float(roc_auc_score(positive, scores)), float(np.mean((scores > 0.0) == positive))


def measure(model: Any, X: NDArray[Any], y: NDArray[Any]) -> Scores:
    """(RMSE, R2) of a regressor or (AUC, accuracy) of a classifier on held-out rows."""
    if is_regressor(model):
        return number_scores(model.predict(X), y)
    return class_scores(model.decision_function(X), y == model.classes_[1])


def cross_validated(data: Rows, make: Callable[[], Any], splits: Sequence[Split], title: str) -> NDArray[np.float64]:
    """Scores of each split, shape (n_splits, 2)."""
    return np.array(
        [
            measure(make().fit(data.X[train], data.y[train]), data.X[test], data.y[test])
            for train, test in track(splits, description=title, transient=True)
        ]
    )


@dataclass(frozen=True)
class Coded:
    """Rows with categories as codes, for models that know numbers only."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    schema: Schema


def coded(data: Rows) -> Coded:
    """The same rows with each category as its place in the schema, others as the place after them; numbers stay."""
    columns = []
    for j, feature in enumerate(data.schema.features):
        column = data.X[:, j]
        if isinstance(feature, Categorical):
            places = {category: place for place, category in enumerate(feature.categories)}
            column = [places.get(value, len(places)) for value in column.tolist()]
        columns.append(np.asarray(column, dtype=np.float64))
    return Coded(np.column_stack(columns), data.y, data.schema)


def non_private(data: Rows, splits: Sequence[Split], **parameters: Any) -> NDArray[np.float64]:
    """scikit-learn's booster without privacy; parameters are its own."""
    booster = HistGradientBoostingRegressor if is_numeric(data) else HistGradientBoostingClassifier
    with threadpool_limits(1):  # its thread team stalls on a busy machine
        return cross_validated(coded(data), lambda: booster(**parameters), splits, "non-private")


def trivial(data: Rows, splits: Sequence[Split]) -> NDArray[np.float64]:
    """Scores of the mean label, or of the larger class: not private either, and nothing is learned from features."""
    if is_numeric(data):
        return np.array(
            [number_scores(np.full(len(test), data.y[train].mean()), data.y[test]) for train, test in splits]
        )
    larger = []
    for train, test in splits:
        classes, counts = np.unique(data.y[train], return_counts=True)
        larger.append((0.5, float(np.mean(data.y[test] == classes[counts.argmax()]))))
    return np.array(larger)


def cell(scores: NDArray[np.float64]) -> dict[str, Any]:
    """Plain values of the scores of all splits, shape (n, 2)."""
    return {"mean": scores.mean(axis=0).tolist(), "spread": scores.std(axis=0).tolist()}


def show(scores: Sequence[float]) -> str:
    """Two scores in one cell."""
    return " / ".join(f"{score:.4g}" if abs(score) >= 1000 else f"{score:.4f}" for score in scores)


def keep(path: Path | None, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write studies beside those that the file has already; a data set that was measured anew replaces the old one."""
    if path is None:
        return
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for study, values in found.items():
        stored[study] = {**stored.get(study, {}), **values}
    written = path.with_suffix(".tmp")
    written.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    written.replace(path)
