"""The recommended trees on every table of the data folder, beside the five systems and peers: docs/benchmarks/utility.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.boosting [--study targets tables rows levers classes rare]
     [--data name ...] [--model name ...] [--epsilon e ...] [--seeds 5] [--anew] [--quick] [--save file]

* targets: Adult and Abalone with declared ranges, five folds, delta 5e-8.
* tables: every table with true ranges as bounds, delta 1e-6, 30 % of the rows held out, one split a seed.
* rows: some of the same tables with fewer training rows, and the same rows held out.
* levers: the same tables, and the defaults without one lever at a time.
* classes: tables of 5, 10 and 26 classes, by accuracy.
* rare: tables where few rows are positive, by AUC and average precision.

All models see the same splits, and the score of each split is kept, so that two models are compared split by split.
All noise is `SecureRandom`'s. It goes on where the file stops, or with --anew from the start. A model whose fit takes
more than 5 CPU seconds is measured on three splits, not on five; the recommended trees always on all.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import average_precision_score, r2_score, roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks import boosting_peers, data_sets, whole_tables
from benchmarks.measuring import Split, coded, folds, holdouts, is_numeric
from benchmarks.utility import WIDTH
from ledgerwood import Categorical
from ledgerwood.errors import PrivacyWarning
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPBoostRegressor,
    DPXGBoostClassifier,
    DPXGBoostRegressor,
    FederatedGBDTClassifier,
    FederatedGBDTRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)

EPSILONS = (0.1, 0.5, 1.0, 4.0)
OURS = "private boosting"
MODELS: dict[str, tuple[type, type | None]] = {
    OURS: (PrivateBoostingClassifier, PrivateBoostingRegressor),
    "S-GBDT": (SGBDTClassifier, SGBDTRegressor),
    "federated": (FederatedGBDTClassifier, FederatedGBDTRegressor),
    "DP-XGBoost": (DPXGBoostClassifier, DPXGBoostRegressor),
    "DPBoost": (DPBoostClassifier, DPBoostRegressor),
    "PrivaTree": (PrivaTreeClassifier, None),
}
"""Classifier and regressor of each, by default."""
LEVERS: dict[str, dict[str, Any]] = {
    "all levers": {},
    "features in turn": {"feature_choice": "cycle"},
    "even candidates only": {"candidates": "even"},
    "without spread candidates": {"n_spread_candidates": 0},
    "two features a tree": {"features_per_tree": 2},
    "depth 4": {"max_depth": 4},
    "as many trees at every budget": {"n_estimators": 512},
    "none of them": {
        "feature_choice": "cycle", "candidates": "even", "features_per_tree": 2, "max_depth": 4, "n_estimators": 512
    },
}  # fmt: skip
"""Parameters of `OURS` that take a lever away."""
PLAIN = "not private"
SLOW, FEW = 5.0, 3
"""CPU seconds of a fit beyond which a model is measured on so few splits."""
Found = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """A table with its splits.

    Args:
        load: the table.
        splits: of a number of rows and of seeds.
        delta: of every budget.
        score: of a fitted model on held-out rows.
        measure: the score's name.
    """

    load: Callable[[], data_sets.Data]
    splits: Callable[[int, int], Iterator[Split]]
    delta: float
    score: Callable[[Any, NDArray[Any], NDArray[Any]], float]
    measure: str


def explained(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """R2."""
    return float(r2_score(y, model.predict(X)))


def error(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """RMSE."""
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def area(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """AUC of the second class."""
    return float(roc_auc_score(y == model.classes_[1], model.predict_proba(X)[:, 1]))


def precision(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Average precision of the second class."""
    return float(average_precision_score(y == model.classes_[1], model.predict_proba(X)[:, 1]))


def accuracy(model: Any, X: NDArray[Any], y: NDArray[Any]) -> float:
    """Share of right classes."""
    return float(np.mean(model.predict(X) == y))


def five_folds(rows: int, seeds: int) -> Iterator[Split]:
    """The first of five folds, as many as seeds are asked for."""
    return islice(folds(rows, 1), seeds)


def shortened(kept: int) -> Callable[[int, int], Iterator[Split]]:
    """Splits with the held-out rows of all others, and a given number of the training rows."""

    def splits(rows: int, seeds: int) -> Iterator[Split]:
        for seed, (train, test) in enumerate(holdouts(rows, seeds)):
            yield np.sort(np.random.default_rng((seed, kept)).permutation(train)[:kept]), test

    return splits


def whole(name: str) -> Task:
    """A table with true ranges."""
    if name in whole_tables.SEVERAL:
        return of_classes(name, None)
    numeric = name in whole_tables.NUMBERS
    score, measure = (explained, "R2") if numeric else (area, "AUC")
    return Task(lambda: whole_tables.load(name), holdouts, 1e-6, score, measure)


def of_classes(name: str, bins: int | None) -> Task:
    """A table of several classes."""
    relabel = None if bins is None else whole_tables.binned(bins)
    return Task(lambda: whole_tables.load(name, relabel), holdouts, 1e-6, accuracy, "accuracy")


def scarce(name: str, share: float) -> data_sets.Data:
    """A table of which as few rows of the second class are left as make this share of all rows."""
    data = whole_tables.load(name)
    positive = data.y == data.schema.target.categories[1]  # type: ignore[union-attr]
    kept = round(share / (1.0 - share) * int((~positive).sum()))
    left = np.random.default_rng(0).permutation(np.flatnonzero(positive))[:kept]
    return data.taken(np.sort(np.concatenate([np.flatnonzero(~positive), left])))


SMALL = ("breast_w", "credit_german", "mushroom", "vote")
"""Tables on which all models are alike, or the noise of a fit is larger than what a lever does."""
LARGE = ("adult", "electricity", "magic_telescope", "california_housing", "pol", "credit_default")
SHORTER = (500, 1_500, 4_500)
"""Numbers of training rows; what all of them give is in the study of tables."""
STUDIES: dict[str, dict[str, Task]] = {
    "targets": {
        "adult": Task(lambda: data_sets.load("adult"), five_folds, 5e-8, area, "AUC"),
        "abalone": Task(lambda: data_sets.load("abalone"), five_folds, 5e-8, error, "RMSE"),
    },
    "tables": {
        name: whole(name) for name in (*whole_tables.TABLES, *whole_tables.SEVERAL, *whole_tables.WIDE)
    },
    "rows": {
        f"{name}, {rows:,} rows": replace(whole(name), splits=shortened(rows))
        for name in LARGE for rows in SHORTER
    },
    "levers": {name: whole(name) for name in whole_tables.TABLES if name not in SMALL},
    "classes": {
        "nursery": of_classes("nursery", None),
        "california_housing in 10": of_classes("california_housing", 10),
        "california_housing in 26": of_classes("california_housing", 26),
    },
    "rare": {
        f"{name}, {share:.0%} positive: {measure}": Task(
            lambda name=name, share=share: scarce(name, share), holdouts, 1e-6, score, measure  # type: ignore[misc]
        )
        for name in ("adult", "magic_telescope")
        for share in (0.02, 0.06)
        for measure, score in (("AUC", area), ("average precision", precision))
    },
}  # fmt: skip
"""Tasks by study and name."""
ALL = (*MODELS, *boosting_peers.PEERS, PLAIN)
MODELS_OF: dict[str, tuple[str, ...]] = {
    "rows": (OURS, boosting_peers.EBM, "S-GBDT", PLAIN),
    "levers": tuple(LEVERS),
    "classes": (OURS, boosting_peers.FOREST, PLAIN),
    "rare": (OURS, "S-GBDT", boosting_peers.EBM, PLAIN),
}
EPSILONS_OF = {"rows": (1.0,), "levers": (0.1, 1.0, 4.0)}
"""What is not measured of all models and at all budgets."""


class Plain:
    """scikit-learn's booster, which is not private.

    By default, but for several classes with an L2 penalty of 1: without one it diverges where a class has few rows.
    """

    def __init__(self, data: data_sets.Data) -> None:
        target = data.schema.target
        several = isinstance(target, Categorical) and len(target.categories) > 2
        booster = HistGradientBoostingClassifier if isinstance(target, Categorical) else HistGradientBoostingRegressor
        self._model, self._data = booster(l2_regularization=float(several)), data

    def _codes(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return coded(data_sets.Data("", X, np.empty(0), self._data.schema)).X

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> "Plain":
        """Learn; its team of threads stalls on a busy machine."""
        with threadpool_limits(1):
            self._model.fit(self._codes(X), y)
        return self

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        return (lambda X: found(self._codes(X))) if name.startswith("predict") else found


def made(model: str, data: data_sets.Data, epsilon: float, delta: float, rows: int) -> Any | None:
    """An estimator by default; None where the model has none for such labels."""
    if model == PLAIN:
        return Plain(data)
    classifier, regressor = MODELS[OURS if model in LEVERS else model]
    kind = regressor if is_numeric(data) else classifier
    if kind is None:
        return None
    found = kind(epsilon=epsilon, delta=delta, schema=data.schema, **LEVERS.get(model, {}))
    return found.set_params(expected_rows=rows) if "expected_rows" in found.get_params(deep=False) else found


def outcomes(
    task: Task, data: data_sets.Data, model: str, fits: Sequence[tuple[float, int]], splits: Sequence[Split]
) -> Iterator[tuple[float, float]]:
    """Score and CPU seconds of each fit, at an epsilon on a split; nothing where there is no such model."""
    if model in boosting_peers.PEERS:
        if fits and boosting_peers.learns(model, data):
            answers = boosting_peers.outcomes(model, data, task.delta, fits, splits)
            for (_, place), (answer, seconds) in zip(fits, answers, strict=False):
                test = splits[place][1]
                yield task.score(answer, data.X[test], data.y[test]), seconds
        return
    for epsilon, place in fits:
        train, test = splits[place]
        own = made(model, data, epsilon, task.delta, len(train))
        if own is None:
            return
        start = time.process_time()
        own.fit(data.X[train], data.y[train])
        seconds = time.process_time() - start
        yield task.score(own, data.X[test], data.y[test]), seconds


def measured(
    task: Task, data: data_sets.Data, model: str, epsilons: Sequence[float], seeds: int, stored: Found
) -> Iterator[tuple[float, Found]]:
    """Scores and CPU seconds of all splits by epsilon, those that are stored first; nothing where there is no model.

    An epsilon comes whenever it has more scores than before.
    """
    splits = [*task.splits(data.rows, seeds)]
    cells = {epsilon: stored.get(f"{epsilon:g}", {"scores": [], "seconds": []}) for epsilon in epsilons}
    for most in (min(FEW, len(splits)), len(splits)):
        left = [
            (epsilon, place)
            for epsilon, cell in cells.items()
            if most <= FEW or model == OURS or np.median(cell["seconds"] or [0.0]) <= SLOW
            for place in range(len(cell["scores"]), most)
        ]
        found = outcomes(task, data, model, left, splits)
        for (epsilon, place), (score, seconds) in zip(left, found, strict=False):
            cells[epsilon]["scores"].append(score)
            cells[epsilon]["seconds"].append(seconds)
            if place == most - 1:
                yield epsilon, cells[epsilon]


def trivial(task: Task, data: data_sets.Data) -> float:
    """The score of what learns from no feature."""
    match task.measure:
        case "R2":
            return 0.0
        case "AUC":
            return 0.5
        case "RMSE":
            return float(data.y.std())
        case "average precision":
            return float(np.mean(data.y == data.schema.target.categories[1]))  # type: ignore[union-attr]
        case _:
            return float(np.unique(data.y, return_counts=True)[1].max() / data.rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print as it goes, and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", nargs="+", choices=tuple(STUDIES), default=tuple(STUDIES))
    parser.add_argument("--data", nargs="+", help="names of tables")
    parser.add_argument("--model", nargs="+", choices=(*ALL, *LEVERS), help="of the study by default")
    parser.add_argument("--epsilon", nargs="+", type=float, help="of the study by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--anew", action="store_true", help="also what the file has")
    parser.add_argument("--quick", action="store_true", help="500 rows and one seed")
    parser.add_argument("--save", type=Path)
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore", PrivacyWarning)  # many fits of the same rows, each with a budget of its own
    console = Console(width=WIDTH)
    found: Found = json.loads(chosen.save.read_text()) if chosen.save and chosen.save.exists() else {}
    for study in chosen.study:
        for name, task in STUDIES[study].items():
            if chosen.data and name not in chosen.data:
                continue
            data = task.load()
            data = data.some(500) if chosen.quick else data
            entry = found.setdefault(study, {}).setdefault(name, {"models": {}})
            entry.update(measure=task.measure, rows_columns=list(data.X.shape), trivial=trivial(task, data))
            for model in chosen.model or MODELS_OF.get(study, ALL):
                cells = entry["models"].setdefault(model, {})
                epsilons = (0.0,) if model == PLAIN else chosen.epsilon or EPSILONS_OF.get(study, EPSILONS)
                seeds = 1 if chosen.quick else chosen.seeds
                for epsilon, own in measured(task, data, model, epsilons, seeds, {} if chosen.anew else cells):
                    cells[f"{epsilon:g}"] = own
                    scores, seconds = own["scores"], float(np.median(own["seconds"]))
                    shown = f"{np.mean(scores):.4f} ({np.std(scores):.4f}) on {len(scores)} splits"
                    console.print(f"{study} {name} {model} {epsilon:g}: {shown}, {seconds:.2f} s")
                    if chosen.save:
                        chosen.save.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
