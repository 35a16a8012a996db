"""Private boosting on tables of which 2 to 6 % of the rows are positive, with and without weights of classes.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.rare_classes [--splits 3] [--epsilons 0.1 1 4] [--only name ...]

Labels are the top of a number, or a class of which some rows are left out. Splits of 70/30; the same for all weights.
The noise is `SecureRandom`.
"""

import argparse
import dataclasses
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.metrics import average_precision_score, balanced_accuracy_score, brier_score_loss, roc_auc_score

from benchmarks import whole_tables
from benchmarks.data_sets import Data
from benchmarks.measuring import holdouts
from ledgerwood.errors import PrivacyWarning
from ledgerwood.trainers import PrivateBoostingClassifier

DELTA = 1e-6
SHARE = 0.04
"""Positive rows of a table whose positive class is thinned."""
GUESSED_SHARE = 0.05
"""Positive rows that the public guess of the rows assumes."""
WEIGHTS = (1.0, 5.0, 25.0)
"""Of the positive class; that of the other one is 1. The last is about that of classes in balance."""
MEASURES = ("AUC", "average precision", "balanced accuracy", "at a threshold", "Brier score")
"""Balanced accuracy: of `predict`, and of what is likelier than 1 / (1 + the largest weight)."""


def top(share: float) -> Callable[[list[str]], list[str]]:
    """Labels that are numbers as "yes" for the largest of them, by their rank."""

    def relabel(texts: list[str]) -> list[str]:
        order = np.argsort(np.argsort([float(text) for text in texts], kind="stable"))
        return np.where(order >= (1.0 - share) * len(texts), "yes", "no").tolist()

    return relabel


def thinned(data: Data, positive: object) -> Data:
    """Rows of which `SHARE` are of one class: of the others' number all stay."""
    rare = data.y == positive
    keep = round(SHARE / (1.0 - SHARE) * int(np.sum(~rare)))
    kept = np.random.default_rng(0).permutation(np.flatnonzero(rare))[:keep]
    rows = np.sort(np.concatenate([np.flatnonzero(~rare), kept]))
    return dataclasses.replace(data, X=data.X[rows], y=data.y[rows])


TABLES: dict[str, Callable[[], Data]] = {
    "california_housing": lambda: whole_tables.load("california_housing", top(0.05)),
    "abalone": lambda: whole_tables.load("abalone", top(0.06)),
    "adult": lambda: thinned(whole_tables.load("adult"), ">50K"),
    "magic_telescope": lambda: _last_thinned("magic_telescope"),
    "credit_default": lambda: _last_thinned("credit_default"),
}


def _last_thinned(name: str) -> Data:
    data = whole_tables.load(name)
    return thinned(data, sorted(data.schema.target.categories)[1])


def scores(data: Data, weight: float, epsilon: float, train: NDArray[np.intp], test: NDArray[np.intp]) -> list[float]:
    """What is measured on held-out rows."""
    classes = sorted(data.schema.target.categories)
    own = dict(zip(classes, (1.0, weight), strict=True))
    weights = None if weight == 1.0 else tuple(own[each] for each in data.schema.target.categories)
    schema = dataclasses.replace(data.schema, target=dataclasses.replace(data.schema.target, weights=weights))
    rows = round(len(train) * (GUESSED_SHARE + (1.0 - GUESSED_SHARE) / weight))  # of the largest weight
    model = PrivateBoostingClassifier(epsilon=epsilon, delta=DELTA, schema=schema, expected_rows=rows)
    model.fit(data.X[train], data.y[train])
    X, positive = data.X[test], data.y[test] == classes[1]
    probability = model.predict_proba(X)[:, 1]
    return [
        float(roc_auc_score(positive, probability)),
        float(average_precision_score(positive, probability)),
        float(balanced_accuracy_score(positive, model.predict(X) == classes[1])),
        float(balanced_accuracy_score(positive, probability > 1.0 / (1.0 + max(WEIGHTS)))),
        float(brier_score_loss(positive, probability)),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epsilons", type=float, nargs="+", default=(0.1, 1.0, 4.0))
    parser.add_argument("--only", nargs="+", choices=TABLES, default=tuple(TABLES))
    options = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)  # of many fits of the same rows
    table = Table("data", "rows", "positive", "epsilon", "weight", *MEASURES, title=f"delta {DELTA}")
    for name in options.only:
        data = TABLES[name]()
        share = float(np.mean(data.y == sorted(data.schema.target.categories)[1]))
        for epsilon in options.epsilons:
            for weight in WEIGHTS:
                splits = holdouts(len(data.y), options.splits)
                found = np.array([scores(data, weight, epsilon, *split) for split in splits])
                cells = [f"{mean:.3f} +- {std:.3f}" for mean, std in zip(found.mean(0), found.std(0), strict=True)]
                row = (name, f"{len(data.y):,}", f"{share:.1%}", str(epsilon), f"{weight:g}", *cells)
                print(*row, flush=True)
                table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
