"""S-GBDT with a schema that is declared, and with one that is bought; one command, one table.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.bought_schema [--seeds 3] [--only abalone|adult]

Seeds fix the folds only; the noise is `SecureRandom` throughout. Both fits get the same budget.
"""

import argparse

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from ledgerwood import Numeric, datasets
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor

DELTA = 5e-8
FOLDS = 5
EPSILONS = (0.1, 0.5, 1.0, 4.0)


def typed(data: datasets.Dataset) -> pd.DataFrame:
    """The rows as a data frame, whose column types are all that a purchase takes for granted."""
    columns = {}
    for j, feature in enumerate(data.schema.features):
        values = [row[j] for row in data.X]
        columns[feature.name] = pd.Series(values, dtype="float64" if isinstance(feature, Numeric) else object)
    return pd.DataFrame(columns)


def score(data: datasets.Dataset, X: pd.DataFrame, epsilon: float, seed: int, *, declared: bool) -> float:
    """Mean over folds: the root of the mean squared error of numbers, the area under the curve of classes."""
    kind = SGBDTRegressor if isinstance(data.schema.target, Numeric) else SGBDTClassifier
    found = []
    for train, test in KFold(FOLDS, shuffle=True, random_state=seed).split(X):
        schema = data.schema if declared else None
        model = kind(epsilon=epsilon, delta=DELTA, schema=schema, expected_rows=data.expected_rows)
        model.fit(X.iloc[train], data.y[train])
        if isinstance(model, SGBDTRegressor):
            found.append(float(np.sqrt(np.mean((model.predict(X.iloc[test]) - data.y[test]) ** 2))))
            continue
        # The second declared class is what is looked for; a model that has not found it cannot tell.
        second = sorted(data.schema.target.categories)[1]
        known = second in model.classes_.tolist()
        sign = 1.0 if known and model.classes_[1] == second else -1.0 if known else 0.0
        found.append(float(roc_auc_score(data.y[test] == second, sign * model.decision_function(X.iloc[test]))))
    return float(np.mean(found))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=("abalone", "adult"))
    options = parser.parse_args()
    table = Table("data", "epsilon", "declared", "bought", title=f"RMSE of Abalone, AUC of Adult; delta {DELTA}")
    for name in ("abalone", "adult"):
        if options.only in (None, name):
            data = datasets.load(name)
            X = typed(data)
            for epsilon in EPSILONS:
                cells = []
                for declared in (True, False):
                    runs = [score(data, X, epsilon, seed, declared=declared) for seed in range(options.seeds)]
                    cells.append(f"{np.mean(runs):.4f} +- {np.std(runs):.4f}")
                table.add_row(name, str(epsilon), *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
