"""The studies of DP-XGBoost's paper (Grislain, Gonzalvez 2021): its Figures 1, 2, 5 and 6, on sound code.

Figure 1: sketch bins at epsilon 1, beside exact quantiles that nobody paid for. Figure 2: minimum child weights and
leaf rules; the paper's Algorithm 1, a noisy sum over the exact number of rows, is unsound and drawn from
`ledgerwood.verification.errata` alone. Figures 5 and 6: error against epsilon beside DPBoost, for classes and numbers.
What is not paid for is computed from public data sets, outside of any budget.
"""

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Printed

from benchmarks import data_sets
from benchmarks.measuring import cell, cross_validated, measures, show
from benchmarks.utility import Found, Parameters, Scale, System, Task, measured
from ledgerwood import Numeric, Schema, price
from ledgerwood.curator import encode_features
from ledgerwood.ensemble import Ensemble, Tree
from ledgerwood.verification.errata import DPXGBOOST
from ledgerwood.verification.errata.dpxgboost import NoisyAverage

EPSILON = 1.0
EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
SKETCH_BINS = (16, 32, 64, 128, 256, 512, 1024)
SKETCH_DATA: tuple[data_sets.Name, ...] = ("magic_telescope", "electricity")
LEAF_DATA: tuple[data_sets.Name, ...] = ("adult", "electricity")
BESIDE: dict[str, tuple[data_sets.Name, ...]] = {
    "figure5": ("adult", "synthetic_classification"),
    "figure6": ("abalone", "synthetic_regression"),
}


# ------------------------------------------------------------------------------------------------ Figure 1: sketch bins


def by_ranks(data: data_sets.Data) -> data_sets.Data:
    """Numeric columns as shares of rows below, in [0, 1]: even thresholds over it are exact quantiles, not private."""
    columns, features = data.X.copy(), []
    for j, feature in enumerate(data.schema.features):
        if isinstance(feature, Numeric):
            values = data.X[:, j].astype(np.float64)
            columns[:, j] = np.searchsorted(np.sort(values), values, side="left") / len(values)
            features.append(Numeric(feature.name, 0.0, 1.0))
        else:
            features.append(feature)
    return data_sets.Data(data.name, columns, data.y, Schema(features=tuple(features), target=data.schema.target))


def without_sketch(system: System, data: data_sets.Data, sketched: Parameters) -> tuple[float, Parameters]:
    """Even candidates and no sketch, at an epsilon that leaves splits and leaves what they have beside a sketch."""
    even = {**sketched, "sketch": "none"}
    whole = system.model(data, EPSILON, sketched).make_plan(data.schema)
    plan = system.model(data, EPSILON, even).make_plan(data.schema)
    rest = dataclasses.replace(plan, tree_epsilon=whole.tree_epsilon - whole.epsilon_of("sketch"))
    return price(rest.event).epsilon(0.0), even


def sketch_bins(
    system: System, sketched: Parameters, scale: Scale, names: tuple[data_sets.Name, ...] = SKETCH_DATA
) -> Found:
    """Scores by number of bins, and by exact quantiles, for which nobody paid."""
    found: Found = {}
    for name in names:
        data = scale.data(name)
        splits = scale.splits(system, data.rows)
        sizes = SKETCH_BINS if scale.rows is None else SKETCH_BINS[:2]
        cells = []
        for bins in sizes:
            title = f"{system.name}, {name}: {bins} bins"
            make = _maker(system, data, EPSILON, {**sketched, "max_bins": bins})
            cells.append(cell(cross_validated(data, make, splits, title)))
        ranks = by_ranks(data)
        title = f"{system.name}, {name}: exact quantiles"
        make = _maker(system, ranks, *without_sketch(system, ranks, sketched))
        plain = cell(cross_validated(ranks, make, splits, title))
        found[name] = {
            "measures": measures(data),
            "epsilon": EPSILON,
            "splits": len(splits),
            "bins": list(sizes),
            "cells": cells,
            "exact": plain,
        }
    return found


def _maker(system: System, data: data_sets.Data, epsilon: float, parameters: Parameters) -> Any:
    return lambda: system.model(data, epsilon, {"expected_rows": data.rows, **parameters})


def print_sketch_bins(found: Found, console: Console) -> None:
    """Data sets by numbers of bins."""
    bins = next(iter(found.values()))["bins"]
    table = Printed(title=f"Figure 1: scores at epsilon {EPSILON:g} by bins of the sketch")
    for column in ("data set", *(f"{size} bins" for size in bins), "exact quantiles, not private"):
        table.add_column(column)
    for name, entry in found.items():
        label = f"{name}: {' / '.join(entry['measures'])}"
        table.add_row(label, *(show(each["mean"]) for each in (*entry["cells"], entry["exact"])))
    console.print(table)


# ------------------------------------------------------------------------------------- Figure 2: leaf rules and weights


@dataclass
class Unsound:
    """A fitted model whose leaves are drawn anew by Algorithm 1: not private at the epsilon that it claims.

    The trees are those of a sound fit; only the specimen of the errata knows how leaves are drawn.
    """

    model: Any
    seed: int = 0

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Any:
        """The sound model with unsound leaves."""
        assert any(isinstance(specimen, NoisyAverage) for specimen in DPXGBOOST)
        model = copy.copy(self.model.fit(X, y))
        plan, rng = model.plan_, np.random.default_rng(self.seed)
        cells = encode_features(X, model.schema_, bins=plan.max_bins)
        labels = np.where(y == model.classes_[1], 1.0, -1.0)
        ensemble = Ensemble(initial_score=model.ensemble_.initial_score)
        scores = np.full(len(y), ensemble.initial_score)
        for tree in model.ensemble_.trees:
            drawn = rng.random(len(y)) < plan.subsample
            gradients = scores - labels
            drawn &= np.abs(gradients) <= plan.clip
            leaves = tree.structure.route(cells)
            values = [
                unsound_leaf(gradients[drawn & (leaves == leaf)], plan, rng) for leaf in range(tree.structure.n_leaves)
            ]
            ensemble = ensemble.extended(Tree(structure=tree.structure, values=plan.learning_rate * np.array(values)))
            scores += ensemble.trees[-1].values[leaves]
        model.ensemble_ = ensemble
        return model


def unsound_leaf(gradients: NDArray[np.float64], plan: Any, rng: np.random.Generator) -> float:
    """One leaf by Algorithm 1; an empty one, which the paper says cannot be, is 0."""
    if not len(gradients):
        return 0.0
    rule = NoisyAverage(epsilon=plan.leaf_epsilon, regularization=plan.reg_lambda, count=len(gradients))
    return float(rule.sampler(gradients / plan.clip, 1, rng)[0]) * plan.clip


def leaf_rules(system: System, variants: Mapping[str, Parameters], unsound: Parameters, scale: Scale) -> Found:
    """Sound rules by their parameters, and Algorithm 1, marked."""
    found: Found = {}
    for name in LEAF_DATA:
        task = Task(name, EPSILONS, tuple(variants))
        entry = measured(system, task, variants, scale)
        data = scale.data(name)
        splits = scale.splits(system, data.rows)
        cells = []
        for epsilon in scale.epsilons(EPSILONS):

            def make(epsilon: float = epsilon, data: data_sets.Data = data) -> Any:
                return Unsound(system.model(data, epsilon, {"expected_rows": data.rows, **unsound}))

            title = f"{system.name}, {name}: unsound leaves, epsilon {epsilon:g}"
            cells.append({"epsilon": epsilon, **cell(cross_validated(data, make, splits, title))})
        entry["rows"].append({"name": UNSOUND, "splits": len(splits), "cells": cells})
        found[name] = entry
    return found


UNSOUND = "UNSOUND: Algorithm 1, exact number of rows"


# ----------------------------------------------------------------------------------------- Figures 5, 6: beside DPBoost


def beside(
    systems: Mapping[str, tuple[System, Mapping[str, Parameters]]],
    study: str,
    published: Mapping[str, Mapping[str, Mapping[float, str]]],
    scale: Scale,
) -> Found:
    """Each system's variants on the splits of the first one."""
    found: Found = {}
    first = next(iter(systems.values()))[0]
    for name in BESIDE[study]:
        for label, (system, variants) in systems.items():
            own = System(
                name=label, regressor=system.regressor, classifier=system.classifier, splits=first.splits,
                beside=first.beside,
            )  # fmt: skip
            named = {f"{label}, {variant}": parameters for variant, parameters in variants.items()}
            task = Task(name, EPSILONS, tuple(named), published=published.get(name, {}))
            entry = measured(own, task, named, scale)
            if name in found:
                found[name]["rows"] += entry["rows"]
                found[name]["seconds"] += entry["seconds"]
            else:
                found[name] = entry
    return found
