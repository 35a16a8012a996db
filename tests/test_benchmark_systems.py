"""The page of all systems: every preset is on it, and a ledger whose recomputed epsilon exceeds the budget stops it."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import data_sets, systems
from ledgerwood import Categorical, Schema, trainers

PAGES = Path(__file__).parents[1] / "docs" / "benchmarks"


def made_up():
    """Rows of two classes, which need no file."""
    X = np.random.default_rng(0).uniform(0, 1, (300, 3))
    schema = Schema.uniform(0, 1, n_features=3, target=Categorical("y", ("no", "yes")))
    return data_sets.Data("magic_telescope", X, np.where(X[:, 0] > 0.5, "yes", "no"), schema)


def test_every_estimator_of_the_library_is_on_the_page():
    found = {name: value for name, value in vars(trainers).items() if name.endswith(("Classifier", "Regressor"))}
    named = {name for name, value in found.items() if not inspect.isabstract(value)}
    shown = {kind.__name__ for entry in systems.ENTRIES for kind in (entry.classifier, entry.regressor) if kind}
    assert shown == named


@pytest.mark.slow_after(1)  # each study once, made small
@pytest.mark.parametrize("system", sorted({entry.system for entry in systems.ENTRIES}))
def test_a_line_has_a_score_seconds_and_what_the_ledger_re_adds(system):
    entry = next(entry for entry in systems.ENTRIES if entry.system == system)
    line = systems.measured(entry, made_up(), (3.0,), 1)
    (cell,) = line["cells"]
    assert 0.0 < cell["epsilon_readded"] <= 3.0 * (1.0 + 1e-9)
    assert cell["seconds"] > 0.0
    assert all(0.0 <= score <= 1.0 for score in cell["score"])
    found = {"magic_telescope": {"rows": 300, "measure": "AUC / accuracy", "lines": [line]}}
    console = Console(width=200, record=True)
    for table in systems.page(found):
        console.print(table)
    text = console.export_text()
    assert system in text
    assert "recomputed" in text


@pytest.mark.slow  # each study once, made small
def test_a_ledger_that_re_adds_more_than_was_asked_stops_the_page(monkeypatch):
    monkeypatch.setattr(systems, "epsilon_by_ledger", lambda ledger: 3.1)
    with pytest.raises(AssertionError, match="recomputed epsilon 3.1 exceeds 3.0"):
        systems.measured(systems.ENTRIES[0], made_up(), (3.0,), 1)


def test_the_stored_page_has_every_preset_and_keeps_within_its_budgets():
    stored = json.loads((PAGES / "systems.json").read_text())["systems"]
    assert set(stored) == set(systems.DATA)
    for task in stored.values():
        shown = {(line["system"], line["preset"], line["delta"]) for line in task["lines"]}
        wanted = {
            (entry.system, entry.preset, entry.delta)
            for entry in systems.ENTRIES
            if (entry.regressor if task["measure"] == "RMSE" else entry.classifier) is not None
        }
        assert shown == wanted
        for line in task["lines"]:
            for cell in line["cells"]:
                assert 0.0 < cell["epsilon_readded"] <= cell["epsilon"] * (1.0 + 1e-9)
