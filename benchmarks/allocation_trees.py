"""Utility of trees whose rows are allocated beside trees of Poisson samples, at the same budget and on the same splits.

Rows are held out as in benchmarks.systems; a difference is taken split by split, so that what a split does to both
samplers cancels. The noise is `SecureRandom`'s.
"""

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from rich.table import Table

from benchmarks import data_sets
from benchmarks.measuring import holdouts, is_numeric, measure
from ledgerwood.errors import PrivacyWarning
from ledgerwood.trainers import DPXGBoostClassifier, DPXGBoostRegressor, SGBDTClassifier, SGBDTRegressor

DELTA = 1e-6
SEEDS = 5
ESTIMATORS: dict[str, tuple[type, type]] = {
    "S-GBDT": (SGBDTRegressor, SGBDTClassifier),
    "DP-XGBoost": (DPXGBoostRegressor, DPXGBoostClassifier),
}


@dataclass(frozen=True, kw_only=True)
class Study:
    """A system on a table at a budget, with a tenth of the rows a tree."""

    system: Literal["S-GBDT", "DP-XGBoost"]
    data: data_sets.Name
    epsilon: float
    preset: Literal["default", "paper"] = "default"
    subsample: float = 0.1


STUDIES = (
    Study(system="S-GBDT", data="abalone", epsilon=1.0),
    Study(system="S-GBDT", data="adult", epsilon=1.0),
    Study(system="S-GBDT", data="abalone", epsilon=1.0, preset="paper"),
    Study(system="DP-XGBoost", data="abalone", epsilon=1.0),
    Study(system="DP-XGBoost", data="adult", epsilon=1.0),
    Study(system="DP-XGBoost", data="adult", epsilon=1.0, preset="paper"),
)


def compared(study: Study, seeds: int = SEEDS) -> dict[str, Any]:
    """Scores of both samplers on each split, and the steps of a row."""
    data = data_sets.load(study.data)
    kind = ESTIMATORS[study.system][0 if is_numeric(data) else 1]
    scores: dict[str, list[float]] = {"poisson": [], "allocation": []}
    steps: dict[str, int] = {}
    for train, test in holdouts(data.rows, seeds):
        for sampling, found in scores.items():
            model = kind(
                epsilon=study.epsilon, delta=DELTA, schema=data.schema, expected_rows=len(train), preset=study.preset,
                subsample=study.subsample, sampling=sampling,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyWarning)  # many fits of the same rows, each with its own budget
                model.fit(data.X[train], data.y[train])
            found.append(measure(model, data.X[test], data.y[test])[0])
            steps = steps or {"trees": model.plan_.sampled_trees, "of_row": model.plan_.trees_of_row}
    return {"study": asdict(study), "measure": "RMSE" if is_numeric(data) else "AUC", "scores": scores, **steps}


def show(found: Sequence[dict[str, Any]]) -> Table:
    """The studies as a table."""
    table = Table(title=f"A tenth of the rows a tree, delta {DELTA:g}: held-out scores by sampler, mean of splits")
    for name in ("system", "preset", "data", "epsilon", "k of t", "score", "Poisson", "allocation", "difference"):
        table.add_column(name)
    for each in found:
        study, scores = Study(**each["study"]), {name: np.array(s) for name, s in each["scores"].items()}
        gap = scores["allocation"] - scores["poisson"]
        error = float(gap.std(ddof=1)) / np.sqrt(len(gap)) if len(gap) > 1 else float("nan")
        table.add_row(
            study.system, study.preset, study.data, f"{study.epsilon:g}", f"{each['of_row']} of {each['trees']}",
            each["measure"], *(f"{scores[name].mean():.4f}" for name in ("poisson", "allocation")),
            f"{gap.mean():+.4f} ± {error:.4f}",
        )  # fmt: skip
    return table
