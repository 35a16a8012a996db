"""What a federation's noise costs beside other ways: shares, local noise, noise leaders, every client alone.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.federated_baselines [--seeds 2] [--quick] [--save file]
     [--only clients_noise|baselines|alone|leaders|averaging]

Computed in one process, without messages: the sum over clients has a known distribution, which is drawn here in one
place. n shares of Skellam noise are Skellam noise of n times the variance; n clients that each add the whole noise give
n times the planned variance. Public facts (how many clients there are, how much noise their sum has) are used by the
leaves' shrinkage in every row. 30 % of the rows are held out, by seed; the noise is `SecureRandom`.
"""

import argparse
import math
import time
import warnings
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table as Printed
from scipy.stats import hypergeom

from benchmarks import data_sets, federated_averaging
from benchmarks.federated_studies import ROWS, SYSTEM
from benchmarks.measuring import HELD_OUT, Split, class_scores, keep
from benchmarks.utility import WIDTH, Found, Scale
from ledgerwood import Adjacency, Budget, Ledger, PrivacyUnit, price
from ledgerwood.curator import Curator, Table, encode_features
from ledgerwood.errors import CalibrationFailed, InvalidParameter, PrivacyWarning
from ledgerwood.mechanisms import SecureRandom
from ledgerwood.trainers.federated.plan import FederatedPlan
from ledgerwood.trainers.federated.training import train

EPSILONS = (0.1, 0.5, 1.0)
DELTA = 1e-6
N_CLIENTS = (10, 100, 1_000)
TOLERANCES = (0.0, 0.1, 0.3)
"""Shares of the clients that may drop out or collude, together."""
LEADERS = (1, 3, 10)
PRESET = "recommended"
ALONE = 4
"""How many of the clients are trained alone, at most: a mean over them."""
STUDIES = ("clients_noise", "baselines", "alone", "leaders", "averaging")


def plan_of(data: data_sets.Data, epsilon: float, rows: int, noise: str = "skellam") -> FederatedPlan:
    """The calibrated plan for a public number of rows."""
    model = SYSTEM.model(data, epsilon, {"preset": PRESET, "delta": DELTA, "expected_rows": rows, "noise": noise})
    plan: FederatedPlan = model.make_plan(data.schema.resolved(data.X.shape[1]))
    return plan


def with_variance(plan: FederatedPlan, factor: float) -> FederatedPlan:
    """The plan with a multiple of the noise's variance."""
    return plan.scaled(plan.noise_multiplier * math.sqrt(factor))


def surplus(n_clients: int, tolerance: float) -> float:
    """The variance of all clients' shares over the planned one, where some may be missing and none is."""
    honest = n_clients - math.floor(Fraction(str(tolerance)) * n_clients)
    return n_clients / honest


def auc(data: data_sets.Data, plan: FederatedPlan, train_rows: NDArray[np.intp], test: NDArray[np.intp]) -> float:
    """AUC on held-out rows of one model by a plan."""
    table = Table.from_data(data.X[train_rows], data.y[train_rows], data.schema, loss=plan.loss, bins=plan.max_bins)
    budget = Budget(epsilon=10.0, delta=DELTA, adjacency=Adjacency.ADD_REMOVE)
    grant = Ledger(budget, unit=PrivacyUnit.ROW).grant(plan.event, purpose="federation")
    ensemble = train(plan, Curator(table, grant, SecureRandom()), np.random.default_rng())
    cells = encode_features(data.X[test], data.schema, bins=plan.max_bins)
    positive = data.y[test] == sorted(data.schema.target.categories)[1]
    return class_scores(ensemble.scores(cells), positive)[0]


def mean_auc(data: data_sets.Data, plan: FederatedPlan | None, splits: list[Split]) -> dict[str, float] | None:
    """Mean and spread over splits; None for noise that cannot be drawn."""
    if plan is None:
        return None
    found = [auc(data, plan, *split) for split in splits]
    return {"mean": float(np.mean(found)), "spread": float(np.std(found))}


def training_rows(data: data_sets.Data) -> int:
    """How many rows are trained on: public here."""
    return round((1.0 - HELD_OUT) * data.rows)


def clients_noise(scale: Scale) -> Found:
    """Adult: AUC with noise of the server, and with shares of clients by tolerance.

    The distribution depends on the number of clients by rounding only; each number has fits of its own.
    """
    data = scale.data("adult")
    splits, rows = scale.splits(SYSTEM, data.rows), training_rows(data)
    found: Found = {"splits": len(splits), "rows": []}
    for epsilon in track(EPSILONS, "clients' noise", transient=True):
        planned = plan_of(data, epsilon, rows)
        entry: Found = {
            "epsilon": epsilon,
            "server, Gaussian": mean_auc(data, plan_of(data, epsilon, rows, "gaussian"), splits),
            "server, Skellam": mean_auc(data, planned, splits),
        }
        for tolerance in TOLERANCES:
            for n in N_CLIENTS:
                name = f"{n} clients, {tolerance:.0%} may be missing"
                entry[name] = mean_auc(data, with_variance(planned, surplus(n, tolerance)), splits)
        found["rows"].append(entry)
    return found


def local(data: data_sets.Data, epsilon: float, n: int) -> FederatedPlan | None:
    """Each of n clients adds the whole noise, Gaussian; None where there is more than can be drawn."""
    try:
        plan = with_variance(plan_of(data, epsilon, training_rows(data), "gaussian"), n)
        plan.leaf_mechanism.require_fit(plan.asked.grid)
    except (InvalidParameter, CalibrationFailed):
        return None
    return plan


def baselines(scale: Scale) -> Found:
    """AUC with shared noise, and with local noise by the number of clients; the last of them has one row each."""
    found: Found = {}
    for name in ROWS:
        data = scale.data(name)
        splits, rows = scale.splits(SYSTEM, data.rows), training_rows(data)
        found[name] = {"splits": len(splits), "rows": []}
        for epsilon in track(EPSILONS, f"baselines, {name}", transient=True):
            entry: Found = {"epsilon": epsilon, "shares": mean_auc(data, plan_of(data, epsilon, rows), splits)}
            for n in N_CLIENTS:
                entry[f"local noise, {n} clients"] = mean_auc(data, local(data, epsilon, n), splits)
            entry["local noise, a row each"] = mean_auc(data, local(data, epsilon, rows), splits)
            found[name]["rows"].append(entry)
    return found


def alone(scale: Scale) -> Found:
    """AUC of models that some clients train on their own rows alone, each with the whole budget."""
    found: Found = {}
    for name in ROWS:
        data = scale.data(name)
        (train_rows, test), *_ = scale.splits(SYSTEM, data.rows)
        found[name] = {"clients": ALONE, "rows": []}
        for epsilon in track(EPSILONS, f"alone, {name}", transient=True):
            entry: Found = {"epsilon": epsilon}
            for n in N_CLIENTS:
                parts = np.array_split(np.random.default_rng(0).permutation(train_rows), n)
                plan = plan_of(data, epsilon, max(len(train_rows) // n, 1), "gaussian")
                scores = [auc(data, plan, np.sort(part), test) for part in parts[:ALONE]]
                entry[f"{n} clients"] = {"mean": float(np.mean(scores)), "spread": float(np.std(scores))}
            found[name]["rows"].append(entry)
    return found


def leaders(scale: Scale) -> Found:
    """Leaders who add all noise: what a plan of epsilon 1 costs when some of them collude, and how likely it is."""
    data = scale.data("adult")
    plan = plan_of(data, 1.0, training_rows(data))
    rounds = plan.communication(data.schema.cells(plan.max_bins)).rounds
    costs = []
    for number in LEADERS:
        for colluding in sorted({0, 1, number // 2, number}):
            left = (number - colluding) / number
            epsilon = price(with_variance(plan, left).event).epsilon(DELTA) if left else math.inf
            costs.append({"leaders": number, "colluding": colluding, "epsilon": epsilon if left else None})
    chances = []
    for n in N_CLIENTS:
        for share in TOLERANCES[1:]:
            bad = round(share * n)
            for number in LEADERS:
                every = float(hypergeom.pmf(number, n, bad, number)) if number <= bad else 0.0
                some = 1.0 - float(hypergeom.pmf(0, n, bad, number))
                ever = -math.expm1(rounds * math.log1p(-every))
                chances.append(
                    {"clients": n, "colluding": bad, "leaders": number, "some": some, "all": every, "ever": ever}
                )
    return {"rounds": rounds, "costs": costs, "chances": chances}


# ------------------------------------------------------------------------------------------------------------- printing


def shown(entry: Mapping[str, float] | None) -> str:
    """A mean with its spread."""
    return "too much noise" if entry is None else f"{entry['mean']:.4f} ({entry['spread']:.2g})"


def print_rows(title: str, rows: list[Mapping[str, Any]], console: Console) -> None:
    """One line for each way, one column for each epsilon."""
    table = Printed(title=title)
    table.add_column("")
    for row in rows:
        table.add_column(f"epsilon {row['epsilon']:g}", justify="right")
    for name in (key for key in rows[0] if key != "epsilon"):
        table.add_row(name, *(shown(row[name]) for row in rows))
    console.print(table)


def print_leaders(found: Mapping[str, Any], console: Console) -> None:
    """Costs, and how likely they are."""
    table = Printed(title="noise leaders: epsilon of a plan of 1, by how many of the leaders collude in every round")
    for column in ("leaders", "colluding", "epsilon"):
        table.add_column(column, justify="right")
    for row in found["costs"]:
        epsilon = "infinite" if row["epsilon"] is None else f"{row['epsilon']:.3g}"
        table.add_row(str(row["leaders"]), str(row["colluding"]), epsilon)
    console.print(table)
    table = Printed(title=f"leaders drawn anew in each of {found['rounds']} rounds: probabilities that leaders collude")
    for column in ("clients", "colluding", "leaders", "some, a round", "all, a round", "all, in some round"):
        table.add_column(column, justify="right")
    for row in found["chances"]:
        numbers = (f"{row[key]:.3g}" for key in ("some", "all", "ever"))
        table.add_row(f"{row['clients']:,}", str(row["colluding"]), str(row["leaders"]), *numbers)
    console.print(table)


def print_study(study: str, found: Mapping[str, Any], console: Console) -> None:
    """Its tables."""
    match study:
        case "clients_noise":
            print_rows(f"adult: AUC, {found['splits']} splits, spread in brackets", found["rows"], console)
        case "baselines" | "alone":
            for name, entry in found.items():
                of = f"{entry['splits']} splits" if study == "baselines" else f"mean of {entry['clients']} clients"
                print_rows(f"{name}: AUC, {of}", entry["rows"], console)
        case "leaders":
            print_leaders(found, console)
        case _:
            federated_averaging.print_averaging(found, console)


def run(study: str, scale: Scale) -> Found:
    """A study's values."""
    known = {"clients_noise": clients_noise, "baselines": baselines, "alone": alone, "leaders": leaders}
    return known[study](scale) if study in known else federated_averaging.averaging(scale)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, save what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", choices=STUDIES)
    parser.add_argument("--quick", action="store_true", help="few rows, to see that everything runs")
    parser.add_argument("--save", type=Path, help="put what was measured into this JSON file")
    given = parser.parse_args(arguments)
    console, scale = Console(width=WIDTH), Scale(given.seeds, 1_000 if given.quick else None)
    for study in (given.only,) if given.only else STUDIES:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # tables for public data, and noise that drowns leaves
            found = run(study, scale)
        print_study(study, found, console)
        console.print(f"{time.perf_counter() - start:.0f} s\n")
        keep(given.save, {study: found})


if __name__ == "__main__":
    main()
