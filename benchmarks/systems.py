"""One page of all systems: each one's presets by data set and budget, with the epsilon that the verifier recomputes.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.systems [--data name ...] [--system name ...] [--seeds 3] [--quick]
     [--save file]

A system that another package brings is measured by the name of its entry point: --system random-forest.

A cell is a score on 30 % of the rows that were held out, the mean over seeds of splits (the noise is `SecureRandom`'s);
seconds are of one fit; epsilon is what `verify_ledger` adds up from the ledger's entries alone, by other code than that
which priced the plan: the largest of the fits. A preset whose recomputed epsilon exceeds the budget stops the program.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import roc_auc_score

from benchmarks import data_sets
from benchmarks.measuring import holdouts, is_numeric, keep, number_scores
from benchmarks.utility import WIDTH
from ledgerwood.accounting.ledger import LedgerRecord
from ledgerwood.trainers import (
    DPBoostClassifier,
    DPBoostRegressor,
    DPXGBoostClassifier,
    DPXGBoostRegressor,
    FederatedGBDTClassifier,
    FederatedGBDTRegressor,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivaTreeClassifier,
    SGBDTClassifier,
    SGBDTRegressor,
)
from ledgerwood.trainers.base.systems import system
from ledgerwood.verification import verify_ledger

EPSILONS = (0.1, 1.0)
DELTA = 1e-6
DATA: tuple[data_sets.Name, ...] = ("adult", "bank", "credit_default", "electricity", "magic_telescope", "abalone")
QUICK_ROWS = 1_000
_SLACK = 1e-9


@dataclass(frozen=True)
class Entry:
    """A line of the page.

    Args:
        system: as the paper has it.
        preset: of the estimators; None where they have none, or for their own.
        classifier, regressor: None where there is none.
        delta: of the budget; 0 for what is published as pure.
        parameters: besides.
    """

    system: str
    preset: str | None
    classifier: type | None
    regressor: type | None
    delta: float
    parameters: Mapping[str, Any]

    def model(self, kind: type, *, epsilon: float, schema: Any, expected_rows: int) -> Any:
        """The estimator of this line; what its class does not know (a plug-in's may) is left out."""
        model = kind(epsilon=epsilon, delta=self.delta, schema=schema, **self.parameters)
        besides = {"preset": self.preset, "expected_rows": expected_rows}
        known = model.get_params(deep=False)
        return model.set_params(
            **{name: value for name, value in besides.items() if name in known and value is not None}
        )


def _entries(
    system: str,
    classifier: type,
    regressor: type | None,
    delta: float,
    presets: tuple[str | None, ...],
    **parameters: Any,
) -> Iterator[Entry]:
    for preset in presets:
        yield Entry(system, preset, classifier, regressor, delta, parameters)


ENTRIES: tuple[Entry, ...] = (
    *_entries("Private boosting", PrivateBoostingClassifier, PrivateBoostingRegressor, DELTA, (None,)),
    *_entries("S-GBDT", SGBDTClassifier, SGBDTRegressor, DELTA, ("default", "paper")),
    *_entries("DPBoost", DPBoostClassifier, DPBoostRegressor, 0.0, ("default", "paper")),
    *_entries("DPBoost", DPBoostClassifier, DPBoostRegressor, DELTA, ("default",)),
    *_entries("DP-XGBoost", DPXGBoostClassifier, DPXGBoostRegressor, 0.0, ("default", "paper")),
    *_entries("DP-XGBoost", DPXGBoostClassifier, DPXGBoostRegressor, DELTA, ("default",)),
    *_entries(
        "Federated", FederatedGBDTClassifier, FederatedGBDTRegressor, DELTA, ("recommended", "feverless", "dp_gbm")
    ),
    *_entries("Federated", FederatedGBDTClassifier, FederatedGBDTRegressor, DELTA, ("dp_ebm", "dp_ebm_newton")),
    *_entries("Federated", FederatedGBDTClassifier, FederatedGBDTRegressor, DELTA, ("tr_newton", "tr_newton_ih")),
    *_entries("Federated", FederatedGBDTClassifier, FederatedGBDTRegressor, DELTA, ("dp_rf", "tr_batched_ih_ebm")),
    *_entries("PrivaTree", PrivaTreeClassifier, None, 0.0, ("default", "paper", "public_bins", "random")),
    *_entries("PrivaTree", PrivaTreeClassifier, None, DELTA, ("joint_gaussian",)),
)


def chosen_entries(names: Sequence[str] | None) -> tuple[Entry, ...]:
    """The lines of some systems: by their titles on the page, or, of any other one, by its entry point's name.

    Raises:
        InvalidParameter: no package declares such a system.
    """
    if not names:
        return ENTRIES
    found = [entry for entry in ENTRIES if entry.system in names]
    for name in names:
        if name not in {entry.system for entry in ENTRIES}:
            brought = system(name)
            found.append(Entry(brought.title, brought.preset, brought.classifier, brought.regressor, DELTA, {}))
    return tuple(found)


@dataclass(frozen=True)
class Fit:
    """What one fit has shown.

    Args:
        score: RMSE, or (AUC, accuracy).
        seconds: of `fit`.
        epsilon: recomputed from its ledger, at the budget's delta.
    """

    score: tuple[float, ...]
    seconds: float
    epsilon: float


def epsilon_by_ledger(ledger: LedgerRecord) -> float:
    """The epsilon that a ledger's entries add up to, by the verifier's code."""
    return verify_ledger(ledger).epsilon_readded


def one_fit(entry: Entry, data: data_sets.Data, epsilon: float, train: Any, test: Any) -> Fit:
    """Train on some rows and measure on others.

    Raises:
        AssertionError: the recomputed epsilon exceeds the budget.
    """
    kind = entry.regressor if is_numeric(data) else entry.classifier
    assert kind is not None
    model = entry.model(kind, epsilon=epsilon, schema=data.schema, expected_rows=len(train))
    start = time.perf_counter()
    model.fit(data.X[train], data.y[train])
    seconds = time.perf_counter() - start
    spent = epsilon_by_ledger(model.ledger_)
    assert spent <= epsilon * (1.0 + _SLACK), f"{entry}: the recomputed epsilon {spent!r} exceeds {epsilon!r}"
    X, y = data.X[test], data.y[test]
    if is_numeric(data):
        return Fit(number_scores(model.predict(X), y)[:1], seconds, spent)
    accuracy = float(np.mean(model.predict(X) == y))
    scores = model.predict_proba(X)[:, 1]
    return Fit((float(roc_auc_score(y == model.classes_[1], scores)), accuracy), seconds, spent)


def measured(entry: Entry, data: data_sets.Data, epsilons: tuple[float, ...], seeds: int) -> dict[str, Any]:
    """A line of the page for one data set, as plain values."""
    cells = []
    for epsilon in epsilons:
        fits = [one_fit(entry, data, epsilon, train, test) for train, test in holdouts(data.rows, seeds)]
        cells.append(
            {
                "epsilon": epsilon,
                "score": np.mean([fit.score for fit in fits], axis=0).tolist(),
                "seconds": float(np.median([fit.seconds for fit in fits])),
                "epsilon_readded": max(fit.epsilon for fit in fits),
            }
        )
    return {"system": entry.system, "preset": entry.preset, "delta": entry.delta, "cells": cells}


def page(found: Mapping[str, Any]) -> Iterator[Table]:
    """A table for each data set."""
    for name, task in found.items():
        table = Table(title=f"{name} ({task['rows']:,} rows): {task['measure']}, seconds, epsilon by the ledger")
        for heading in ("system", "preset", "delta"):
            table.add_column(heading)
        for entry in task["lines"][0]["cells"]:
            table.add_column(f"epsilon {entry['epsilon']:g}", justify="right")
            table.add_column("s", justify="right")
            table.add_column("recomputed", justify="right")
        for line in task["lines"]:
            shown = [
                text
                for each in line["cells"]
                for text in (
                    " / ".join(f"{score:.3f}" for score in each["score"]),
                    f"{each['seconds']:.2f}",
                    f"{each['epsilon_readded']:.6g}",
                )
            ]
            table.add_row(line["system"], line["preset"] or "", f"{line['delta']:g}", *shown)
        yield table


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the page, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=data_sets.NAMES, default=DATA)
    titles = ", ".join(sorted({entry.system for entry in ENTRIES}))
    parser.add_argument("--system", nargs="+", help=f"{titles}, or the name of an entry point")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="1,000 rows and one seed")
    parser.add_argument("--save", type=Path)
    chosen = parser.parse_args(arguments)
    entries = chosen_entries(chosen.system)
    console = Console(width=WIDTH)
    found: dict[str, Any] = {}
    for name in chosen.data:
        data = data_sets.load(name)
        data = data.some(QUICK_ROWS) if chosen.quick else data
        lines = [
            measured(entry, data, EPSILONS, 1 if chosen.quick else chosen.seeds)
            for entry in entries
            if (entry.regressor if is_numeric(data) else entry.classifier) is not None
        ]
        if not lines:
            continue
        measure = "RMSE" if is_numeric(data) else "AUC / accuracy"
        found[name] = {"rows": data.rows, "measure": measure, "lines": lines}
        for table in page({name: found[name]}):
            console.print(table)
        keep(chosen.save, {"systems": {name: found[name]}})


if __name__ == "__main__":
    main()
