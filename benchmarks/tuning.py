"""What a private search costs and gains on Abalone: each candidate with the whole budget, two searches, the default.

python -m benchmarks.tuning [--splits 12] [--epsilon 0.5]
"""

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import root_mean_squared_error
from sklearn.model_selection import train_test_split

from ledgerwood import datasets
from ledgerwood.trainers import PrivateSearch, SGBDTRegressor

CANDIDATES = [
    {"n_estimators": trees, "max_depth": depth, "learning_rate": rate}
    for trees in (50, 200)
    for depth in (2, 6)
    for rate in (0.1, 0.3)
]
"""The paper's preset, full batch, with trees, depths and rates around its own."""


def errors(make: Any, splits: int) -> list[float]:
    """Root mean squared errors in rings on a fifth of the rows, one split after the other; secure noise."""
    data = datasets.load("abalone")
    found = []
    for split in range(splits):
        X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.2, random_state=split)
        found.append(float(root_mean_squared_error(y_test, make().fit(X, y).predict(X_test))))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=12)
    parser.add_argument("--epsilon", type=float, default=0.5)
    options = parser.parse_args()
    budget = {"epsilon": options.epsilon, "delta": 5e-8, "schema": datasets.load("abalone").schema}
    paper = {"preset": "paper", "initial_score": "moments", "subsample": 1.0}
    tuned = SGBDTRegressor(**paper)
    rows = {f"{c}, known beforehand": lambda c=c: SGBDTRegressor(**paper, **c, **budget) for c in CANDIDATES}
    rows |= {
        "search, 8 runs by the Poisson distribution": lambda: PrivateSearch(tuned, CANDIDATES, **budget),
        "search, 8 runs by the logarithmic distribution": lambda: PrivateSearch(
            tuned, CANDIDATES, distribution="negative_binomial", **budget
        ),
        "the default preset, no search": lambda: SGBDTRegressor(**budget),
    }
    table = Table(title=f"Abalone, epsilon {options.epsilon}, delta 5e-8, {options.splits} splits: error in rings")
    for column in ("what", "mean", "standard error", "worst"):
        table.add_column(column)
    for name, make in rows.items():
        found = errors(make, options.splits)
        spread = np.std(found, ddof=1) / np.sqrt(len(found))
        table.add_row(name, f"{np.mean(found):.3f}", f"{spread:.3f}", f"{max(found):.3f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
