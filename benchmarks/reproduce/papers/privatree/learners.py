"""The learners that PrivaTree's rows compare, on the rebuilt tables of its paper."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from benchmarks import data_sets, privatree_printed
from benchmarks.baselines import BDPT, DEPTH, DPGDF, RandomTree
from benchmarks.measuring import FOLDS
from benchmarks.privatree_printed import Key
from benchmarks.privatree_recipes import RECIPES
from benchmarks.reproduce.items import Found
from benchmarks.utility import Parameters, Scale
from ledgerwood import Adjacency, Categorical, Numeric
from ledgerwood.trainers import PrivaTreeClassifier
from ledgerwood.trainers.privatree.plan import leaf_epsilon

LIBRARY, PAPER, STAR = "library", "paper, sound", "PrivaTree*, sound"
AS_PRINTED, STAR_AS_PRINTED = "paper, noise as printed", "PrivaTree*, noise as printed"
SOUND: dict[str, Parameters] = {
    LIBRARY: {},
    PAPER: {"preset": "paper"},
    STAR: {"preset": "public_bins"},
}
"""Ours at the stated epsilon: this library's own splits, and the paper's algorithm with the noise that it needs."""
SMALL = 1_000
"""Rows below which four times the seeds are run."""
Make = Callable[[data_sets.Data, float], Any]


def tree(data: data_sets.Data, epsilon: float, parameters: Parameters) -> Any:
    """Ours, of depth 4."""
    rows = round(data.rows * (FOLDS - 1) / FOLDS)
    return PrivaTreeClassifier(
        epsilon=epsilon, schema=data.schema, **{"expected_rows": rows, "max_depth": DEPTH, **parameters}
    )


def noise_as_printed(data: data_sets.Data, epsilon: float, *, star: bool = False) -> Any:
    """The paper's algorithm with the noise that its Equations 7 to 10 give each feature: it costs more than `epsilon`.

    The estimator is told what that noise costs, so that its ledger has the true epsilon. A table with a numeric feature
    has the numeric shares in all features. Trees are complete.
    """
    rows = round(data.rows * (FOLDS - 1) / FOLDS)
    numeric = sum(isinstance(feature, Numeric) for feature in data.schema.features)
    public = star or not numeric
    # The labels' rate is epsilon / 2 there, and epsilon here.
    labels = leaf_epsilon(epsilon, depth=DEPTH, classes=2, rows=rows, error=0.01, adjacency=Adjacency.REPLACE_ONE)
    node = (epsilon - labels) / (DEPTH if public else DEPTH + 1)
    levels, quantiles = DEPTH * len(data.schema.features) * node, 0.0 if public else numeric * node
    total = levels + quantiles + labels / 2.0
    given: dict[str, Any] = {"preset": "public_bins" if public else "paper", "leaf_share": labels / 2.0 / total}
    if not public:
        given["quantile_share"] = quantiles / (levels + quantiles)
    return tree(data, total, given)


def spent(data: data_sets.Data, epsilon: float) -> float:
    """What the noise as printed costs, in nats."""
    return float(noise_as_printed(data, epsilon).epsilon)


def methods(data: data_sets.Data) -> dict[str, Make]:
    """All learners by name."""
    found: dict[str, Make] = {
        name: lambda data, epsilon, p=parameters: tree(data, epsilon, p) for name, parameters in SOUND.items()
    }
    found[AS_PRINTED] = noise_as_printed
    found[STAR_AS_PRINTED] = lambda data, epsilon: noise_as_printed(data, epsilon, star=True)
    found["DiffPrivLib"] = lambda data, epsilon: RandomTree(epsilon, data.schema)
    found["BDPT"] = lambda data, epsilon: BDPT(epsilon, data.schema)
    if any(isinstance(feature, Categorical) for feature in data.schema.features):
        found["DPGDF"] = lambda data, epsilon: DPGDF(epsilon, data.schema)
    return found


def accuracies(tables: Sequence[data_sets.Data], make: Callable[[data_sets.Data], Any]) -> tuple[list[float], Any]:
    """Accuracy on the held-out rows of each fold of each table, classes in equal shares; and the last model."""
    found, model = [], None
    for seed, data in enumerate(tables):
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(data.X, data.y):
            model = make(data).fit(data.X[train], data.y[train])
            found.append(float(np.mean(model.predict(data.X[test]) == data.y[test])))
    return found, model


def cell(scores: Sequence[float]) -> Found:
    """Mean and standard deviation."""
    return {"mean": statistics.fmean(scores), "spread": statistics.stdev(scores), "count": len(scores)}


def tables_of(key: Key, scale: Scale) -> list[data_sets.Data]:
    """The rebuilt rows, a choice of the larger class for each seed."""
    first = RECIPES[key](0)
    seeds = scale.seeds * (4 if first.rows < SMALL and scale.rows is None else 1)
    tables = [first, *(RECIPES[key](seed) for seed in range(1, seeds))]
    return tables if scale.rows is None else [data.some(scale.rows) for data in tables]


def poisoned_rows(trained: int) -> NDArray[np.int64]:
    """Numbers of rows of the printed shares."""
    return np.round(np.array(privatree_printed.SHARES) * trained).astype(np.int64)
