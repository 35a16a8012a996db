"""Audits of trained models: lower bounds of the five systems next to their claims; counts bounds above the claim.

Run: python -m benchmarks.auditing_models [--only PART ...] [--quick] [--save file]

`sgbdt` is the figure of one training: epsilon 4 at delta 1e-5, 1000 canaries in disjoint cells of ten binary features,
public trees fixed to one feature a level at depth 10, and the trainer's own random trees beside; mean over 20 seeds.
`systems` audits each of the five systems 100 times at alpha 1e-3, and counts bounds above the claim; `power` gives each
of them more canaries once. `released` audits four learners that other people might write, two of them broken, by their
predictions and by what their fitted objects show, and counts how often the correct ones are refuted. `one` audits each
system's default, and one tree of it. `worst` is `benchmarks.auditing_worst`: bounds beside what no attack is expected
to exceed. `foreign` is `benchmarks.auditing_foreign`: models of others. Seeds fix coins, ties and seeds of the
estimators; all are below.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.auditing_foreign import foreign, print_foreign
from benchmarks.auditing_learners import SGD_CLAIM, NoisyGaussianNB, NoisySGD
from benchmarks.auditing_worst import print_worst, worst, worst_cases
from benchmarks.measuring import keep
from ledgerwood import Adjacency, Budget, Categorical, Numeric, Schema, price
from ledgerwood.trainers import (
    DPBoostRegressor,
    DPXGBoostRegressor,
    FederatedGBDTRegressor,
    PrivaTreeClassifier,
    SGBDTRegressor,
)
from ledgerwood.verification import ModelAudit, audit_model

PARTS = ("sgbdt", "systems", "power", "released", "one", "worst", "foreign")
SEEDS = range(9001, 9021)
RUNS, QUICK_RUNS = 100, 5
RUN_SEED = 40_000
STRICT = 1e-3
"""alpha of the runs that are counted."""
TARGET, UNCONDITIONAL = 2.8, 1.4
"""Of the part `sgbdt`, mean over its seeds."""
ALLOWED = 3
"""Of 500 runs at `STRICT`, above their price."""
Case = tuple[Callable[[], Any], np.ndarray, np.ndarray, dict[str, Any]]


def binary(features: int, target: Numeric | Categorical) -> Schema:
    """A schema of so many binary features."""
    return Schema(features=tuple(Categorical(f"b{i}", (0, 1)) for i in range(features)), target=target)


def all_cells(features: int, copies: int) -> np.ndarray:
    """`copies` rows in each cell of so many binary features."""
    cells = (np.arange(2**features)[:, np.newaxis] >> np.arange(features)[::-1]) & 1
    return np.repeat(cells, copies, axis=0)


LABEL, CLASSES = Numeric("y", -1.0, 1.0), Categorical("y", ("a", "b"))


def systems() -> dict[str, Case]:
    """Each system, small: what to train, a background, and how to audit it.

    DPBoost chooses its splits by the rows: its background makes each level prefer another feature, so that trees of
    depth 3 part the eight cells, and canaries seldom share a leaf. DP-XGBoost's trees see samples; it is audited by one
    canary a fit.
    """
    rng = np.random.default_rng(1)
    flat = rng.integers(0, 2, (50, 6))
    labels = rng.uniform(-1.0, 1.0, 50)
    steep = all_cells(3, 40)
    slope = (steep @ np.array([4, 2, 1])) / 3.5 - 1.0
    boosted: dict[str, Any] = {
        "schema": binary(3, LABEL), "n_estimators": 1, "max_depth": 3, "initial_score": "zero", "random_state": 0,
    }  # fmt: skip
    greedy = {"canaries": 8, "trainings": 8}
    summed: dict[str, Any] = {"schema": binary(6, LABEL), "n_estimators": 5, "initial_score": "zero", "random_state": 0}
    return {
        "S-GBDT": (
            lambda: SGBDTRegressor(epsilon=4.0, delta=1e-5, **summed), flat, labels, {"canaries": 64},
        ),
        "DPBoost": (
            lambda: DPBoostRegressor(epsilon=4.0, trees_per_ensemble=1, **boosted), steep, slope, greedy,
        ),
        "DP-XGBoost": (
            lambda: DPXGBoostRegressor(epsilon=4.0, subsample=0.8, **{**boosted, "max_depth": 1}),
            steep, slope, {"canaries": 1, "trainings": 24},
        ),
        "Federated (Gaussian)": (
            lambda: FederatedGBDTRegressor(epsilon=4.0, delta=1e-5, split_method="totally_random", **summed),
            flat, labels, {"canaries": 64},
        ),
        "Federated (Skellam)": (
            lambda: FederatedGBDTRegressor(
                epsilon=4.0, delta=1e-5, split_method="totally_random", noise="skellam", recalibrate=False, **summed
            ),
            flat, labels, {"canaries": 64},
        ),
        "PrivaTree": (
            lambda: PrivaTreeClassifier(epsilon=2.0, schema=binary(6, CLASSES), split_method="random", random_state=0),
            flat, np.where(labels > 0.0, "b", "a"), {"canaries": 64},
        ),
    }  # fmt: skip


def audited(case: Case, *, seed: int, alpha: float, **more: Any) -> ModelAudit:
    """One audit."""
    make, rows, labels, how = case
    return audit_model(make(), rows, labels, rng=seed, alpha=alpha, **{**how, **more})


def sgbdt(console: Console, *, quick: bool) -> dict[str, Any]:
    """One training of S-GBDT, 1000 canaries."""
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(0, 2, (200, 10)), rng.uniform(-1.0, 1.0, 200)
    schema = binary(10, LABEL)
    seeds = SEEDS[:3] if quick else SEEDS
    found: dict[str, Any] = {}
    for structure in ("fixed", "own"):
        begun = time.perf_counter()
        audits = []
        for seed in track(seeds, description=structure, console=console, transient=True):
            model = SGBDTRegressor(epsilon=4.0, delta=1e-5, schema=schema, initial_score="zero", random_state=0)
            audits.append(audit_model(model, rows, labels, rng=seed, structure=structure))
        values = np.array([[bound.value for bound in audit.bounds] for audit in audits])
        found[structure] = {
            "seeds": len(seeds), "price": audits[0].price, "shared": audits[0].shared,
            "seconds": (time.perf_counter() - begun) / len(seeds), "bounds": [],
        }  # fmt: skip
        for place, bound in enumerate(audits[0].bounds):
            own = {
                "statistic": bound.statistic, "assumption": bound.assumption, "mean": float(values[:, place].mean()),
                "sd": float(values[:, place].std(ddof=1)), "expected": audits[0].expected[place],
                "above_price": int((values[:, place] > audits[0].price).sum()),
            }  # fmt: skip
            found[structure]["bounds"].append(own)
    return found


def print_sgbdt(found: dict[str, Any], console: Console) -> None:
    """The bounds of one training, beside what is asked."""
    seeds = found["fixed"]["seeds"]
    table = Table(title=f"S-GBDT, epsilon 4 at delta 1e-5, one training, 1000 canaries, {seeds} seeds")
    for column in ("trees", "statistic", "assumes", "mean bound", "sd", "expected", "at least", "above the claim"):
        table.add_column(column)
    targets = {"means over their spread": TARGET, "guesses of one run": UNCONDITIONAL}
    for structure, own in found.items():
        for bound in own["bounds"]:
            target = None if structure == "own" else targets.get(bound["statistic"])
            # What theory expects is of canaries that are alone.
            expected = "" if own["shared"] else f"{bound['expected']:.2f}"
            table.add_row(
                structure, bound["statistic"], bound["assumption"], f"{bound['mean']:.2f}", f"{bound['sd']:.2f}",
                expected, "" if target is None else str(target), f"{bound['above_price']} of {seeds}",
            )  # fmt: skip
    console.print(table)


def every_system(console: Console, *, quick: bool) -> dict[str, Any]:
    """Counts the bounds above the claim."""
    runs = QUICK_RUNS if quick else RUNS
    found: dict[str, Any] = {}
    for number, (name, case) in enumerate(systems().items()):
        begun = time.perf_counter()
        audits = [
            audited(case, seed=RUN_SEED + 1000 * number + run, alpha=STRICT)
            for run in track(range(runs), description=name, console=console, transient=True)
        ]
        above = sum(audit.epsilon_lower > audit.price for audit in audits)
        found[name] = {
            "runs": runs, "price": audits[0].price, "delta": audits[0].delta, "above": above,
            "canaries": audits[0].canaries * audits[0].trainings, "rejected": sum(audit.rejected for audit in audits),
            "seconds": (time.perf_counter() - begun) / runs,
        }  # fmt: skip
    return found


def print_systems(found: dict[str, Any], console: Console) -> None:
    """How many bounds were above the price."""
    table = Table(title=f"audits of each system at alpha {STRICT:g}")
    for column in ("system", "claimed", "canaries", "bounds above the claim", "claims refuted", "s an audit"):
        table.add_column(column)
    for name, own in found.items():
        table.add_row(
            name, f"{own['price']:.2f}", str(own["canaries"]), f"{own['above']} of {own['runs']}",
            str(own["rejected"]), f"{own['seconds']:.2f}",
        )  # fmt: skip
    above, runs = (sum(own[key] for own in found.values()) for key in ("above", "runs"))
    console.print(table)
    console.print(f"{above} of {runs} bounds above their claim; at most {ALLOWED} of 500 may be")


def more_canaries(_: Console, *, quick: bool) -> dict[str, Any]:
    """What a longer audit of each system shows."""
    found: dict[str, Any] = {}
    for number, (name, case) in enumerate(systems().items()):
        trainings = {"DPBoost": 100, "DP-XGBoost": 600}.get(name, 16) // (5 if quick else 1)
        audit = audited(case, seed=RUN_SEED + 1000 * number, alpha=0.05, trainings=trainings)
        unconditional = next(bound.value for bound in audit.bounds if bound.assumption == "none")
        found[name] = {
            "price": audit.price, "delta": audit.delta, "canaries": audit.canaries * trainings,
            "headline": audit.epsilon_lower, "assumption": audit.assumption, "unconditional": unconditional,
            "needed": audit.needed, "shared": audit.shared, "seconds": audit.seconds,
        }  # fmt: skip
    return found


def print_power(found: dict[str, Any], console: Console) -> None:
    """What a longer audit shows."""
    table = Table(title="One longer audit of each system at alpha .05")
    for column in ("system", "price", "canaries", "headline", "assumes", "without assumptions", "needed"):
        table.add_column(column)
    for name, own in found.items():
        table.add_row(
            name, f"{own['price']:.2f}", str(own["canaries"]), f"{own['headline']:.2f}", own["assumption"],
            f"{own['unconditional']:.2f}", "" if own["needed"] is None else str(own["needed"]),
        )  # fmt: skip
    console.print(table)


RELEASED_SEED = 60_000
LEARNERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "GaussianNB, bounds from the rows": (lambda: NoisyGaussianNB(1.0, random_state=0), 1.0),
    "GaussianNB, bounds declared": (lambda: NoisyGaussianNB(1.0, bounds=(-3.0, 3.0), random_state=0), 1.0),
    "SGD, a thirtieth of the noise": (lambda: NoisySGD(1 / 30, random_state=0), None),
    "SGD, all of the noise": (lambda: NoisySGD(random_state=0), None),
}
"""Each learner, and its pure claim; None for that of the SGD's noise at delta 1e-5."""


def released(console: Console, *, quick: bool) -> dict[str, Any]:
    """Learners by their predictions and by what they release; the right ones many times at `STRICT`, small."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 4))
    labels = (rows[:, 0] > 0.0).astype(int)
    found: dict[str, Any] = {}
    for number, (name, (make, epsilon)) in enumerate(LEARNERS.items()):
        delta = 0.0 if epsilon is not None else 1e-5
        stated = price(SGD_CLAIM).epsilon(delta) if epsilon is None else epsilon
        claim = Budget(epsilon=stated, delta=delta, adjacency=Adjacency.ADD_REMOVE)
        how: dict[str, Any] = {"claim": claim, "rng": RELEASED_SEED + 1000 * number}
        before = audit_model(make(), rows, labels, canaries=1000, **how)
        after = audit_model(make(), rows, labels, released="attributes", fits=1000 if quick else 4000, **how)
        runs = 0 if "rows" in name or "thirtieth" in name else 2 if quick else 10
        many = [
            audit_model(
                make(), rows, labels, released="attributes", fits=1000, alpha=0.05, claim=claim,
                rng=RELEASED_SEED + 1000 * number + 1 + run,
            )
            for run in track(range(runs), description=name, console=console, transient=True)
        ]  # fmt: skip
        found[name] = {
            "price": stated, "delta": delta, "predictions": before.epsilon_lower,
            "predictions_detectable": before.epsilon_detectable, "warned": bool(before.weaknesses),
            "released": after.epsilon_lower, "detectable": after.epsilon_detectable, "ceiling": after.epsilon_ceiling,
            "rejected": after.rejected, "seconds": after.seconds, "runs": runs,
            "accused": sum(audit.rejected for audit in many),
            "above": sum(audit.epsilon_lower > stated for audit in many),
        }  # fmt: skip
    return found


def print_released(found: dict[str, Any], console: Console) -> None:
    """Bounds before and after."""
    table = Table(title="Learners with fit and predict, alpha .05: by predictions, and by what fitted objects show")
    for column in ("learner", "claim", "predictions", "released", "detectable", "refuted", "wrongly refuted", "s"):
        table.add_column(column)
    for name, own in found.items():
        table.add_row(
            name, f"{own['price']:.2f}", f"{own['predictions']:.2f}", f"{own['released']:.2f}",
            f"{own['detectable']:.2f}", "yes" if own["rejected"] else "no",
            f"{own['accused']} of {own['runs']}" if own["runs"] else "", f"{own['seconds']:.0f}",
        )  # fmt: skip
    console.print(table)


def defaults() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Each system as it comes, at epsilon 4, and how its ensemble is audited."""
    flat: dict[str, Any] = {"epsilon": 4.0, "schema": binary(6, LABEL)}
    greedy = {"canaries": 1, "trainings": 24}
    return {
        "S-GBDT": (SGBDTRegressor(delta=1e-5, **flat), {"canaries": 64}),
        "DPBoost": (DPBoostRegressor(**flat), greedy),
        "DP-XGBoost": (DPXGBoostRegressor(**flat), greedy),
        "Federated": (FederatedGBDTRegressor(delta=1e-5, **flat), {"canaries": 64}),
        "PrivaTree": (PrivaTreeClassifier(epsilon=4.0, schema=binary(6, CLASSES)), {"canaries": 1, "trainings": 100}),
    }


def one(_: Console, *, quick: bool) -> dict[str, Any]:
    """Defaults, and one tree of each."""
    rng = np.random.default_rng(1)
    rows, scores = rng.integers(0, 2, (50, 6)), rng.uniform(-1.0, 1.0, 50)
    found: dict[str, Any] = {}
    for name, (model, how) in defaults().items():
        labels = np.where(scores > 0.0, "b", "a") if name == "PrivaTree" else scores
        seed = RELEASED_SEED + 500
        full = audit_model(model, rows, labels, rng=seed, **how)
        fewer: dict[str, Any] = {"trainings": 50} if quick else {}
        single = audit_model(model, rows, labels, rng=seed, mode="one_mechanism", **fewer)
        for key, audit in (("model", full), ("one_mechanism", single)):
            found.setdefault(name, {})[key] = {
                "price": audit.price, "bound": audit.epsilon_lower, "assumption": audit.assumption,
                "detectable": audit.epsilon_detectable, "canaries": audit.canaries, "trainings": audit.trainings,
                "warned": bool(audit.weaknesses), "rejected": audit.rejected, "seconds": audit.seconds,
            }  # fmt: skip
    return found


def print_one(found: dict[str, Any], console: Console) -> None:
    """Defaults beside one tree of each."""
    table = Table(title="Defaults at epsilon 4, alpha .05: the model, and one tree of depth 1 with the whole budget")
    for column in ("system", "audited", "bound", "detectable", "canaries x trainings", "assumes", "warned", "s"):
        table.add_column(column)
    for name, both in found.items():
        for key, own in both.items():
            table.add_row(
                name, key, f"{own['bound']:.2f}", f"{own['detectable']:.2f}", f"{own['canaries']} x {own['trainings']}",
                own["assumption"], "yes" if own["warned"] else "no", f"{own['seconds']:.0f}",
            )  # fmt: skip
    console.print(table)


SHOWN = {
    "sgbdt": print_sgbdt,
    "systems": print_systems,
    "power": print_power,
    "released": print_released,
    "one": print_one,
    "worst": print_worst,
    "foreign": print_foreign,
}


def show(found: dict[str, Any], console: Console) -> None:
    """The tables of the parts that were measured."""
    for part, measured in found.items():
        SHOWN[part](measured, console)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--systems", nargs="+", choices=tuple(worst_cases()), help="of the part `worst`")
    asked = parser.parse_args()
    console = Console()
    parts: dict[str, Callable[..., dict[str, Any]]] = {
        "sgbdt": sgbdt, "systems": every_system, "power": more_canaries, "released": released, "one": one,
        "worst": worst, "foreign": foreign,
    }  # fmt: skip
    for name in asked.only:
        more = {"systems": tuple(asked.systems)} if asked.systems and name == "worst" else {}
        found = {name: parts[name](console, quick=asked.quick, **more)}
        show(found, console)
        keep(asked.save, found)


if __name__ == "__main__":
    main()
