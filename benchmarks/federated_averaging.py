"""Algorithm 9 of S-GBDT as printed: every client computes leaf values from its own noisy sums, and they are averaged.

Beside it the library's way, one sum over all clients, with the same plan: docs/errata.md#claims-sgbdt-averaging.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table as Printed

from benchmarks import data_sets
from benchmarks.measuring import holdouts, is_numeric, number_scores
from benchmarks.utility import Found, Scale
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit
from ledgerwood.curator import Curator, Table, encode_features
from ledgerwood.ensemble import Ensemble, Tree
from ledgerwood.mechanisms import SecureRandom
from ledgerwood.trainers import SGBDTClassifier, SGBDTRegressor
from ledgerwood.trainers.parts.splits import cyclic_features, random_tree
from ledgerwood.trainers.sgbdt.plan import SGBDTPlan

NAMES: tuple[data_sets.Name, ...] = ("abalone", "adult")
N_CLIENTS = (3, 20)
EPSILON, DELTA = 1.0, 5e-8
SKEW = 0.3
"""Of the Dirichlet distribution of each label's rows over clients: small is skewed."""
ALMOST_NO_NOISE = 1e-3


def plan_of(data: data_sets.Data) -> SGBDTPlan:
    """The paper's constants, full batch, from the zero classifier, as Algorithm 9 has it."""
    kind = SGBDTRegressor if is_numeric(data) else SGBDTClassifier
    model = kind(
        epsilon=EPSILON, delta=DELTA, schema=data.schema, preset="paper", subsample=1.0, initial_score="zero",
        expected_rows=data.rows,
    )  # fmt: skip
    plan: SGBDTPlan = model.make_plan(data.schema.resolved(data.X.shape[1]))
    return plan


def dealt(
    y: NDArray[Any], rows: NDArray[np.intp], n_clients: int, generator: np.random.Generator, *, skewed: bool
) -> list[NDArray[np.intp]]:
    """The rows of each client: even shares, or of each class (each tenth of the numbers) a share of its own."""
    if not skewed:
        return [np.sort(part) for part in np.array_split(generator.permutation(rows), n_clients)]
    parts: list[list[NDArray[np.intp]]] = [[] for _ in range(n_clients)]
    labels = y[rows]
    kinds = np.unique(labels, return_inverse=True)[1]
    if len(np.unique(kinds)) > 2:
        kinds = kinds * 10 // (kinds.max() + 1)
    for kind in np.unique(kinds):
        own = generator.permutation(rows[kinds == kind])
        ends = np.rint(np.cumsum(generator.dirichlet(np.full(n_clients, SKEW))) * len(own)).astype(int)
        for client, part in enumerate(np.split(own, ends[:-1])):
            parts[client].append(part)
    return [np.sort(np.concatenate(part)) for part in parts]


def trained(plan: SGBDTPlan, tables: Sequence[Table], generator: np.random.Generator) -> Ensemble:
    """A forest: leaf values of each table alone, averaged; of one table it is the library's own loop."""
    cells, ensemble = tables[0].schema.cells(plan.max_bins), Ensemble(initial_score=0.0)
    budget = Budget(epsilon=1e12, delta=DELTA, adjacency=Adjacency.ADD_REMOVE)  # of a comparison, on public rows
    curators = [
        Curator(table, Ledger(budget, unit=PrivacyUnit.ROW).grant(plan.event, purpose="client"), SecureRandom())
        for table in tables
    ]
    for event, number in plan.schedule():
        features = cyclic_features(number, n_features=len(cells), per_tree=plan.features_per_tree)
        structure = random_tree(
            cells, depth=plan.max_depth, features=features, numeric_weight=plan.numeric_weight, generator=generator
        )
        values = []
        for curator in curators:
            with curator.open(event, purpose="tree") as round_:
                query = plan.leaf.of(structure, ensemble)
                values.append(plan.leaf_values(round_.release(query, plan.leaf_mechanism, purpose="leaves").real))
        ensemble = ensemble.extended(Tree(structure=structure, values=np.mean(values, axis=0)))
    return ensemble


def error(data: data_sets.Data, plan: SGBDTPlan, ensemble: Ensemble, test: NDArray[np.intp]) -> float:
    """R2 of numbers, accuracy of classes, on held-out rows."""
    scores = ensemble.scores(encode_features(data.X[test], data.schema, bins=plan.max_bins))
    if is_numeric(data):
        target: Any = data.schema.target
        return number_scores(
            (target.low + target.high) / 2 + scores * (target.high - target.low) / 2, data.y[test].astype(float)
        )[1]
    return float(np.mean((scores > 0.0) == (data.y[test] == sorted(data.schema.target.categories)[1])))


def averaging(scale: Scale) -> Found:
    """R2 on Abalone, accuracy on Adult: sums, and averages over clients; as planned, and almost without noise."""
    found: Found = {}
    for name in NAMES:
        data = scale.data(name)
        splits = list(holdouts(data.rows, scale.seeds))
        plan = plan_of(data)
        plans = {"planned noise": plan, "almost none": plan.scaled(plan.noise_multiplier * ALMOST_NO_NOISE)}
        rows: Found = {}
        for noise, own in track(plans.items(), f"averaging, {name}", transient=True):
            for n in (1, *N_CLIENTS):
                for skewed in (False, True) if n > 1 else (False,):
                    scores = []
                    for seed, (train_rows, test) in enumerate(splits):
                        generator = np.random.default_rng(seed)
                        tables = [
                            Table.from_data(data.X[part], data.y[part], data.schema, loss=own.loss, bins=own.max_bins)
                            for part in dealt(data.y, train_rows, n, generator, skewed=skewed)
                        ]
                        scores.append(error(data, own, trained(own, tables, generator), test))
                    label = "one sum" if n == 1 else f"averages of {n} {'skewed' if skewed else 'even'} clients"
                    rows.setdefault(label, {})[noise] = {
                        "mean": float(np.mean(scores)),
                        "spread": float(np.std(scores)),
                    }
        found[name] = {"splits": len(splits), "measure": "R2" if is_numeric(data) else "accuracy", "rows": rows}
    return found


def print_averaging(found: Mapping[str, Any], console: Console) -> None:
    """One table for each data set."""
    for name, entry in found.items():
        table = Printed(title=f"{name}: {entry['measure']}, epsilon {EPSILON:g}, {entry['splits']} splits")
        table.add_column("leaf values")
        columns = list(next(iter(entry["rows"].values())))
        for column in columns:
            table.add_column(column, justify="right")
        for label, row in entry["rows"].items():
            table.add_row(label, *(f"{row[c]['mean']:.4f} ({row[c]['spread']:.2g})" for c in columns))
        console.print(table)
