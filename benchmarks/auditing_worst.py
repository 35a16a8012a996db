"""Audits with power: what each system's audit shows, beside what no attack of that kind is expected to exceed."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ledgerwood import Categorical, Numeric, Schema
from ledgerwood.trainers import (
    DPBoostRegressor,
    DPXGBoostRegressor,
    FederatedGBDTRegressor,
    PrivateBoostingRegressor,
    PrivaTreeClassifier,
    SGBDTRegressor,
)
from ledgerwood.verification import audit_model

LABEL, CLASSES = Numeric("y", -1.0, 1.0), Categorical("y", ("a", "b"))
SEED, REPEATS = 80_000, 5
"""Audits that take a few seconds are repeated, and their mean is shown."""
GREEDY = ("DPBoost", "DP-XGBoost", "PrivaTree")
"""Systems whose splits or labels depend on the rows: without rows of its own, an audit takes 2000 fits."""


def binary(features: int, target: Numeric | Categorical) -> Schema:
    """A schema of binary features."""
    return Schema(features=tuple(Categorical(f"b{i}", (0, 1)) for i in range(features)), target=target)


Case = tuple[Callable[[], Any], dict[str, Any], int]
"""What to train, how to audit it, and how many binary rows stand beside the canaries; 0: the audit makes them up."""


def worst_cases() -> dict[str, dict[str, Case]]:
    """Each system at epsilon 4: one tree of depth 1, and the whole model."""
    small: dict[str, Any] = {"epsilon": 4.0, "schema": binary(2, LABEL)}
    wide: dict[str, Any] = {"epsilon": 4.0, "schema": binary(10, LABEL), "initial_score": "zero"}
    gaussian = {"delta": 1e-5, **wide}
    one: dict[str, Any] = {"mode": "one_mechanism"}
    selection: dict[str, Any] = {"mode": "one_selection"}
    leaf: dict[str, Any] = {"mode": "one_leaf"}
    run: dict[str, Any] = {"canaries": 1000}
    # Canaries that share leaves hide each other: fewer of them in each of several trainings.
    shared: dict[str, Any] = {"canaries": 50, "trainings": 20}
    return {
        "DPBoost": {
            "one tree": (lambda: DPBoostRegressor(**small), one, 0),
            "its split alone": (lambda: DPBoostRegressor(**small), selection, 0),
            "its leaves alone": (lambda: DPBoostRegressor(**small), leaf, 0),
            "model": (lambda: DPBoostRegressor(**wide), shared, 50),
        },
        "DP-XGBoost": {
            "one tree": (lambda: DPXGBoostRegressor(**small), one, 0),
            "its split alone": (lambda: DPXGBoostRegressor(**small), selection, 0),
            "its leaves alone": (lambda: DPXGBoostRegressor(**small), leaf, 0),
            "model": (lambda: DPXGBoostRegressor(**wide), shared, 50),
        },
        "PrivaTree": {
            "one tree": (lambda: PrivaTreeClassifier(epsilon=4.0, schema=binary(2, CLASSES)), one, 0),
            "its labels alone": (lambda: PrivaTreeClassifier(epsilon=4.0, schema=binary(2, CLASSES)), leaf, 0),
            "one split by gini": (
                lambda: PrivaTreeClassifier(epsilon=4.0, schema=binary(2, CLASSES), split_method="gini"), selection, 0,
            ),
            "model, depth 2": (
                lambda: PrivaTreeClassifier(epsilon=4.0, schema=binary(9, CLASSES), expected_rows=100), {}, 0,
            ),
            "model, depth 4": (
                lambda: PrivaTreeClassifier(epsilon=4.0, schema=binary(10, CLASSES)), run, 50,
            ),
        },
        "S-GBDT": {
            "one tree": (lambda: SGBDTRegressor(**gaussian), one, 0),
            "model": (lambda: SGBDTRegressor(**gaussian), run, 0),
        },
        "Federated": {
            "one tree": (lambda: FederatedGBDTRegressor(**gaussian), one, 0),
            "model": (lambda: FederatedGBDTRegressor(**gaussian), run, 0),
        },
        "Private boosting": {
            "one tree": (lambda: PrivateBoostingRegressor(expected_rows=1000, **gaussian), one, 0),
            "model": (lambda: PrivateBoostingRegressor(expected_rows=1000, **gaussian), run, 0),
        },
    }  # fmt: skip


def worst(console: Console, *, quick: bool, systems: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Audits each at alpha .05: by 2000 fits once, by 1000 canaries five times.

    Args:
        console: shows the progress.
        quick: 100 fits instead of 2000.
        systems: those that are audited; None for all.
    """
    measured: dict[str, Any] = {}
    for number, (name, cases) in enumerate(worst_cases().items()):
        if systems is not None and name not in systems:
            continue
        rng = np.random.default_rng(number)
        for key, (make, how, size) in cases.items():
            begun, processor = time.perf_counter(), time.process_time()
            rows = rng.integers(0, 2, (size, 10))
            scores = rng.uniform(-1.0, 1.0, size)
            labels = np.where(scores > 0.0, "b", "a") if name == "PrivaTree" else scores
            fewer: dict[str, Any] = {"trainings": 100} if quick and not size and name in GREEDY else {}
            given = (rows, labels) if size else ()
            many = 1 if name in GREEDY and not size else REPEATS
            audits = [
                audit_model(make(), *given, rng=SEED + 100 * number + again, verbose=1, **how, **fewer)
                for again in range(many)
            ]
            audit = audits[0]
            free = next(place for place, bound in enumerate(audit.bounds) if bound.assumption == "none")
            measured.setdefault(name, {})[key] = {
                "price": audit.price, "delta": audit.delta, "ceiling": audit.epsilon_detectable, "audits": many,
                "bound": float(np.mean([each.epsilon_lower for each in audits])), "assumption": audit.assumption,
                "canaries": audit.canaries, "trainings": audit.trainings,
                "rejected": sum(each.rejected for each in audits), "attack": audit.attack,
                "guessed": float(np.mean([each.bounds[free].value for each in audits])),
                "guessed_ceiling": audit.expected[free],
                "expected": None if math.isnan(audit.epsilon_attack) else audit.epsilon_attack,
                "seconds": (time.perf_counter() - begun) / many, "processor": (time.process_time() - processor) / many,
            }  # fmt: skip
            own = measured[name][key]
            console.print(
                f"{name}, {key}: {own['bound']:.2f} of {own['ceiling']:.2f} ({own['processor']:.0f} s of the processor)"
            )
    return measured


def print_worst(measured: dict[str, Any], console: Console) -> None:
    """Claims, ceilings and bounds."""
    table = Table(title="Audits with power, epsilon 4, alpha .05: bounds beside what no attack is expected to exceed")
    columns = (
        "system",
        "audited",
        "claim",
        "canaries x fits",
        "audits",
        "ceiling",
        "attack expects",
        "bound",
        "of the ceiling",
        "assumes",
        "by guesses",
        "processor s",
    )
    for column in columns:
        table.add_column(column)
    for name, cases in measured.items():
        for key, own in cases.items():
            guesses = f"{own['guessed']:.2f} of {own['guessed_ceiling']:.2f}"
            expected = own.get("expected")
            table.add_row(
                name, key, f"{own['price']:.2f} at {own['delta']:g}", f"{own['canaries']} x {own['trainings']}",
                str(own["audits"]), f"{own['ceiling']:.2f}", "" if expected is None else f"{expected:.2f}",
                f"{own['bound']:.2f}", f"{own['bound'] / own['ceiling']:.0%}", own["assumption"],
                guesses if own["assumption"] != "none" else "",
                f"{own['processor']:.0f}" if "processor" in own else "",
            )  # fmt: skip
    console.print(table)
