"""Many clients instead of one table: what they would send, that nothing else changes, and noise that they can share.

All that the framework asks is sums of whole numbers, modulo 2**64. So clients that add up their own give the numbers
of one table, bit for bit; `Clients` is such a federation in process, without the encryption that hides one client's
sums. Skellam noise is a sum of Skellam noises, so that each client could add its share; the price is by a bound on
Renyi divergences, which asks for somewhat more noise than the Gaussian's exact price.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table as Printed

from benchmarks import data_sets
from benchmarks.federated_studies import DELTAS, ROWS, SYSTEM
from benchmarks.measuring import class_scores
from benchmarks.utility import Found, Scale
from ledgerwood import (
    Adjacency,
    Budget,
    Event,
    GaussianEvent,
    Ledger,
    PrivacyUnit,
    Repeated,
    Schema,
    SkellamVectorEvent,
    calibrate,
)
from ledgerwood.curator import Curator, Table, encode_features
from ledgerwood.ensemble import Ensemble
from ledgerwood.mechanisms import RandomSource, SeededRandom
from ledgerwood.trainers.federated.plan import FederatedPlan
from ledgerwood.trainers.federated.training import train

NAME: data_sets.Name = "adult"
N_CLIENTS = (1, 10, 100, 1_000)
PLANNED = (
    "recommended", "feverless", "dp_gbm", "dp_rf", "dp_ebm", "dp_ebm_newton", "tr_newton", "tr_newton_ih",
    "tr_batched_ih_ebm", "paper",
)  # fmt: skip
TRAINED = ("tr_newton", "recommended")
EPSILON = 1.0
STEPS = 2**20
"""Steps of the statistics' grid in a unit."""


class Clients:
    """Rows that are held by many: each has a table of its own, and only sums of all of them come out.

    Args:
        tables: one a client, under one schema.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = tuple(tables)

    @property
    def schema(self) -> Schema:
        """The public description of the rows."""
        return self._tables[0].schema

    @property
    def owners_add_noise(self) -> bool:
        """The server adds the noise."""
        return False

    def begin(self, event: Event) -> None:
        """Clients are in this process, and are told of no draw."""

    def sample(self, sampling_rate: float, source: RandomSource) -> NDArray[np.bool_]:
        """All rows: the framework takes no other sample."""
        assert sampling_rate == 1.0
        return np.empty(0, dtype=np.bool_)

    def assign(self, ends: Sequence[int], source: RandomSource) -> NDArray[np.int32]:
        """The framework has no groups of rows."""
        raise NotImplementedError("the framework has no groups of rows")

    def caveat(self, query: object) -> str:
        """That of each client's table."""
        return self._tables[0].caveat(query)

    def reader(self, query: object, mechanism: object = None) -> Callable[[NDArray[np.bool_]], NDArray[np.int64]]:
        """What adds up the clients' sums, modulo 2**64."""
        readers = [table.reader(query) for table in self._tables]
        return lambda sampled: np.sum([read(sampled) for read in readers], axis=0, dtype=np.int64)

    def evidence(self, query: object, mechanism: object = None) -> Callable[[NDArray[np.bool_]], Any]:
        """Selections sort rows, which clients cannot."""
        raise NotImplementedError("clients add up sums only")


def plan_of(data: data_sets.Data, preset: str, epsilon: float = EPSILON) -> FederatedPlan:
    """A preset's calibrated plan at delta 1/n."""
    model = SYSTEM.model(
        data, epsilon, {"preset": preset, "delta": DELTAS[NAME], "expected_rows": ROWS[NAME]}
    )  # fmt: skip
    plan: FederatedPlan = model.make_plan(data.schema.resolved(data.X.shape[1]))
    return plan


def trained(data: data_sets.Data, plan: FederatedPlan, train_rows: NDArray[np.intp], n_clients: int) -> Ensemble:
    """Train over so many clients, to whom the rows are dealt out; noise of a seed, to compare."""
    parts = np.array_split(np.random.default_rng(0).permutation(train_rows), n_clients)
    tables = [
        Table.from_data(data.X[rows], data.y[rows], data.schema, loss=plan.loss, bins=plan.max_bins) for rows in parts
    ]
    budget = Budget(epsilon=EPSILON, delta=DELTAS[NAME], adjacency=Adjacency.ADD_REMOVE)
    grant = Ledger(budget, unit=PrivacyUnit.ROW).grant(plan.event, purpose="clients")
    return train(plan, Curator(Clients(tables), grant, SeededRandom(0)), np.random.default_rng(0))


def same(one: Ensemble, other: Ensemble) -> bool:
    """Whether two ensembles have the same splits and values, bit for bit."""
    return len(one.trees) == len(other.trees) and all(
        np.array_equal(mine, its)
        for a, b in zip(one.trees, other.trees, strict=True)
        for mine, its in (
            (a.values, b.values),
            (a.structure.feature, b.structure.feature),
            (a.structure.split, b.structure.split),
            (a.structure.equals, b.structure.equals),
        )
    )


def clients(scale: Scale) -> Found:
    """Rounds and bytes of each preset; and AUC by the number of clients, on one split of Adult."""
    data = scale.data(NAME)
    cells = {}
    for preset in track(PLANNED, "messages", transient=True):
        plan = plan_of(data, preset)
        found = [plan.communication(data.schema.cells(plan.max_bins), n_clients=n) for n in N_CLIENTS]
        cells[preset] = {
            "rounds": found[0].rounds,
            "bytes_up": found[0].bytes_up,
            "bytes_down": found[0].bytes_down,
            "bytes_in_all": [each.bytes_in_all for each in found],
        }
    (split, *_) = scale.splits(SYSTEM, data.rows)
    train_rows, test = split
    trained_cells = {}
    for preset in track(TRAINED, "clients", transient=True):
        plan = plan_of(data, preset)
        tests = encode_features(data.X[test], data.schema, bins=plan.max_bins)
        positive = data.y[test] == sorted(data.schema.target.categories)[1]
        first = trained(data, plan, train_rows, 1)
        entries = []
        for n in N_CLIENTS[:-1]:
            ensemble = first if n == 1 else trained(data, plan, train_rows, n)
            auc, accuracy = class_scores(ensemble.scores(tests), positive)
            entries.append({"clients": n, "AUC": auc, "accuracy": accuracy, "same": same(ensemble, first)})
        trained_cells[preset] = entries
    return {"messages": cells, "trained": trained_cells}


def print_clients(found: Mapping[str, Any], console: Console) -> None:
    """Messages by preset, scores by the number of clients."""
    table = Printed(title=f"{NAME}: what a federation would send, without encryption; epsilon {EPSILON:g}, delta 1/n")
    for column in ("preset", "rounds", "bytes up, a client and round", "bytes down"):
        table.add_column(column, justify="left" if column == "preset" else "right")
    for n in N_CLIENTS:
        table.add_column(f"MB in all, {n:,} client{'s' * (n > 1)}", justify="right")
    for preset, row in found["messages"].items():
        megabytes = (f"{value / 1e6:.3g}" for value in row["bytes_in_all"])
        table.add_row(preset, f"{row['rounds']:,}", f"{row['bytes_up']:,.0f}", f"{row['bytes_down']:,.0f}", *megabytes)
    console.print(table)
    table = Printed(title=f"{NAME}: AUC / accuracy of one split by the number of clients, one seed of the noise")
    table.add_column("preset")
    for n in N_CLIENTS[:-1]:
        table.add_column(f"{n:,} client{'s' * (n > 1)}", justify="right")
    for preset, row in found["trained"].items():
        shown = (
            f"{e['AUC']:.4f} / {e['accuracy']:.4f}, {'the same trees' if e['same'] else 'OTHER TREES'}" for e in row
        )
        table.add_row(preset, *shown)
    console.print(table)


# -------------------------------------------------------------------------------------------------------------- Skellam


def skellam(scale: Scale) -> Found:
    """Noise that a plan's queries need at each budget: by the Gaussian's exact price, and by Renyi divergences."""
    adjacency = Adjacency.ADD_REMOVE
    queries = plan_of(scale.data(NAME), "tr_newton").query_counts.total

    def gaussian(stddev: float) -> Repeated:
        return Repeated(GaussianEvent(noise_multiplier=stddev, adjacency=adjacency), count=queries)

    def shared(stddev: float) -> Repeated:
        noise = SkellamVectorEvent(variance=(stddev * STEPS) ** 2, l2_sensitivity=float(STEPS), adjacency=adjacency)
        return Repeated(noise, count=queries)

    found: Found = {}
    for epsilon in scale.epsilons((0.1, 0.5, 1.0)):
        budget = Budget(epsilon=epsilon, delta=DELTAS[NAME], adjacency=adjacency)
        found[str(epsilon)] = {
            "queries": queries,
            "Gaussian": calibrate(gaussian, budget),
            "Gaussian, by Renyi": calibrate(gaussian, budget, method="renyi"),
            "Skellam": calibrate(shared, budget),
        }
    return found


def print_skellam(found: Mapping[str, Any], console: Console) -> None:
    """Budgets by laws."""
    queries = next(iter(found.values()))["queries"]
    table = Printed(
        title=f"stddev of the noise of {queries} queries, in L2 sensitivities, delta {DELTAS[NAME]:.2g}; Skellam on a "
        f"grid of 1/{STEPS}"
    )
    names = [name for name in next(iter(found.values())) if name != "queries"]
    for column in ("epsilon", *names):
        table.add_column(column, justify="right")
    for epsilon, row in found.items():
        shown = (f"{row[name]:.2f} ({row[name] / row['Gaussian'] - 1.0:+.2%})" for name in names[1:])
        table.add_row(epsilon, f"{row['Gaussian']:.2f}", *shown)
    console.print(table)
