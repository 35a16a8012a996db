"""The benchmark of the federated framework: its rows and studies, what is printed beside them, the stored page."""

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from rich.console import Console

from benchmarks import (
    data_sets,
    drawing,
    federated,
    federated_clients,
    federated_published,
    federated_speed,
    federated_studies,
    histogram_speed,
)
from benchmarks.utility import Scale, print_utility
from ledgerwood import Categorical, Schema, price

mpl.use("agg")
ROWS = 120
TINY = Scale(seeds=1, rows=ROWS)
SMALL = {"max_depth": 1, "n_estimators": 2}
QUIET = Console(quiet=True)
PAGES = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"


def classes():
    X = np.random.default_rng(1).uniform(0, 1, (ROWS, 3))
    schema = Schema.uniform(0, 1, n_features=3, target=Categorical("y", (0, 1)))
    return data_sets.Data("adult", X, (X[:, 0] > 0.5).astype(int), schema)


@pytest.fixture
def tiny(monkeypatch):
    """Every data set is a tiny one, and every row a small plan."""
    monkeypatch.setattr(data_sets, "load", lambda name: classes())


def stored():
    return json.loads((PAGES / "federated.json").read_text())


def task_of(auc, *, spread=0.0, splits=4):
    """A task's rows from AUC by preset."""
    return {
        "rows": [
            {
                "name": f"{preset}, delta 1/n",
                "splits": splits,
                "cells": [
                    {"epsilon": epsilon, "mean": [value, 0.8], "spread": [spread, 0.0]}
                    for epsilon, value in zip(federated.EPSILONS, values, strict=True)
                ],
            }
            for preset, values in auc.items()
        ]
    }


# ------------------------------------------------------------------------------------------------------------- utility


@pytest.mark.slow  # calibrates every preset
def test_every_preset_is_measured_at_its_declared_delta(tiny, monkeypatch):
    own = {label: {**each, **SMALL} for label, each in federated.variants("bank").items()}
    monkeypatch.setattr(federated, "variants", lambda name: own)
    found = federated.utility("bank", TINY)
    assert [federated.preset_of(row) for row in found["rows"]] == list(federated.PRESETS)
    for row in found["rows"]:
        assert [entry["epsilon"] for entry in row["cells"]] == [0.1, 1.0]
        assert np.isfinite([entry["mean"] for entry in row["cells"]]).all()
    again = json.loads(json.dumps(found))
    print_utility(federated.SYSTEM, {"bank": again}, QUIET)
    assert len(drawing.budgets({"bank": again}).axes) == 1
    shown = Console(width=200)
    with shown.capture() as text:
        federated.print_targets(again, shown)
        federated.print_order(again, shown)
    assert "asked" in text.get()
    assert "ordered pairs" in text.get()


def test_a_delta_is_the_declared_one_and_none_is_counted():
    named = {label.split(", ")[0]: each["delta"] for label, each in federated.variants("adult").items()}
    assert named == {**dict.fromkeys(federated.PRESETS, 1.0 / 31_655), "recommended": 5e-8, "dp_ebm": 1e-5}
    assert set(federated.variants("adult")) >= {"recommended, delta 5e-8", "dp_ebm, delta 1e-5", "dp_rf, delta 1/n"}


def test_every_row_makes_a_plan_of_its_budget():
    data = classes()
    for label, parameters in federated.variants("adult").items():
        plan = federated.SYSTEM.model(data, 1.0, {**parameters, "n_estimators": 3}).make_plan(data.schema)
        assert 0.999 < price(plan.event).epsilon(parameters["delta"]) <= 1.0, label


def test_what_was_asked_is_compared_preset_by_preset():
    met = {preset: tuple(value + 0.001 for value in row) for preset, row in federated.TARGETS.items()}
    verdicts = federated.verdicts(task_of({**met, "dp_ebm": (0.9, 0.88, 0.8)}))
    assert len(verdicts) == 13
    short = [(preset, measure, epsilon) for preset, measure, epsilon, wanted, found in verdicts if found < wanted]
    assert short == [("dp_ebm", "AUC", 0.5), ("dp_ebm", "AUC", 1.0), ("tr_batched_ih_ebm", "accuracy", 0.5)]


def test_pairs_are_turned_beyond_two_standard_errors_only():
    auc = dict(federated.CREDIT_1)
    assert federated.reversed_pairs(task_of(auc), 0.5)[0] == []
    auc["dp_gbm"] = (0.9, 0.753, 0.9)  # now .001 above feverless
    assert federated.reversed_pairs(task_of(auc), 0.5)[0] == [("dp_gbm", "feverless")]
    assert federated.reversed_pairs(task_of(auc, spread=0.01), 0.5)[0] == []
    turned, pairs = federated.reversed_pairs(task_of(auc), 0.1)
    assert len(turned) == 7
    assert pairs < 28  # .772 and .774 have no order


def test_others_figures_are_at_the_tables_budgets():
    rows = federated_published.published("adult")
    assert set(rows) == set(federated_published.ADULT)
    assert rows["authors' totally random Newton (own accounting)"][0.5] == ".888 / .836"
    assert all(set(row) <= set(federated.EPSILONS) for row in rows.values())
    assert federated_published.published("bank") == {}
    assert set(federated.TARGETS) <= set(federated.PRESETS)
    assert set(federated.CREDIT_1) | {"recommended", "paper"} == set(federated.PRESETS)


# ------------------------------------------------------------------------------------------------------------- studies


@pytest.mark.slow  # each study once, made small
@pytest.mark.parametrize("study", federated_studies.SWEEPS)
def test_sweeps_run_print_and_draw(study, tiny, monkeypatch, tmp_path):
    sweep = federated_studies.SWEEPS[study]
    small = {name: {**each, **SMALL} for name, each in sweep.variants.items()}
    monkeypatch.setitem(
        federated_studies.SWEEPS,
        study,
        federated_studies.Sweep(
            title=sweep.title, axis=sweep.axis, parameter=sweep.parameter, values=sweep.values[:2], variants=small
        ),
    )
    found = json.loads(json.dumps(federated.run(study, TINY)))
    assert set(found) == set(federated_studies.DATA)
    for entry in found.values():
        assert [row["name"] for row in entry["rows"]] == list(sweep.variants)
        assert all([cell["at"] for cell in row["cells"]] == list(sweep.values[:2]) for row in entry["rows"])
    federated.print_study(study, found, QUIET)
    drawing.save(tmp_path, "federated", {study: found}, federated.draw)
    assert len(list(tmp_path.iterdir())) == 1


def test_no_tree_has_more_features_than_there_are_and_slow_ones_stop_early():
    sweep = federated_studies.SWEEPS["interactions"]
    assert federated_studies.allowed(sweep, "random", classes()) == [1, 2, 3]
    sweep = federated_studies.SWEEPS["methods"]
    assert federated_studies.allowed(sweep, "histogram, newton", classes())[-1] == 50
    assert federated_studies.allowed(sweep, "totally random, newton", classes())[-1] == 200


# ------------------------------------------------------------------------------------------------------------- clients


@pytest.mark.slow  # each study once, made small
def test_clients_give_the_trees_of_one_table(tiny, monkeypatch):
    monkeypatch.setattr(federated_clients, "TRAINED", ("tr_newton",))
    monkeypatch.setattr(federated_clients, "N_CLIENTS", (1, 3, 9))
    found = federated.run("clients", TINY)
    assert [entry["same"] for entry in found["trained"]["tr_newton"]] == [True, True]
    assert len({entry["AUC"] for entry in found["trained"]["tr_newton"]}) == 1
    federated.print_study("clients", json.loads(json.dumps(found)), QUIET)
    assert federated.draw("clients", found) is None


def test_other_trees_are_seen_to_be_others():
    data, rows = classes(), np.arange(ROWS)
    one, other = (
        federated_clients.trained(data, federated_clients.plan_of(data, preset), rows, 1)
        for preset in ("tr_newton", "dp_ebm_newton")
    )
    assert federated_clients.same(one, one)
    assert not federated_clients.same(one, other)


def test_messages_grow_with_the_clients_in_all_only(tiny, monkeypatch):
    monkeypatch.setattr(federated_clients, "TRAINED", ())
    found = federated_clients.clients(TINY)
    assert set(found["messages"]) == set(federated.PRESETS)
    for row in found["messages"].values():
        one, *more = row["bytes_in_all"]
        assert one == pytest.approx(row["rounds"] * (row["bytes_up"] + row["bytes_down"]))
        assert more == [n * one for n in federated_clients.N_CLIENTS[1:]]


def test_skellam_needs_what_the_gaussian_needs_by_the_same_price(tiny):
    """The bound on the vector's divergences is the Gaussian's times variance x L, which is 1 on so fine a grid."""
    found = federated.run("skellam", TINY)
    for row in found.values():
        assert row["Gaussian"] < row["Gaussian, by Renyi"]
        assert row["Skellam"] == pytest.approx(row["Gaussian, by Renyi"], rel=2e-3)
    federated.print_study("skellam", found, QUIET)
    assert federated.draw("skellam", found) is None


# --------------------------------------------------------------------------------------------------------------- speed


@pytest.mark.slow  # each study once, made small
def test_seconds_are_told_of_trees_and_of_their_parts(monkeypatch):
    monkeypatch.setattr(federated_speed, "ROWS", 30_000)
    monkeypatch.setattr(
        federated_speed, "TREES", [(name, more, 3, target) for name, more, _, target in federated_speed.TREES[:2]]
    )
    monkeypatch.setattr(histogram_speed, "TREES", 1)
    found = federated_speed.speed(quick=True)
    assert found["shape"] == {"rows": 300, "columns": 50}
    assert [row["target"] for row in found["trees"].values()] == [".1 s", ".25 s"]
    assert any("noise" in name for name in found["parts"])
    federated.print_study("speed", found, QUIET)


# ------------------------------------------------------------------------------------------------- what the page shows


@pytest.mark.slow  # each study once, made small
def test_stored_studies_are_known_and_their_rows_too():
    found = stored()
    assert set(found) <= {"utility", *federated.STUDIES}
    for name, task in found.get("utility", {}).items():
        assert [row["name"] for row in task["rows"]] == list(federated.variants(name))
        published = federated_published.published(name)
        assert task["published"] == {
            label: {str(epsilon): text for epsilon, text in row.items()} for label, row in published.items()
        }
    for study in set(found) & set(federated_studies.SWEEPS):
        sweep = federated_studies.SWEEPS[study]
        for entry in found[study].values():
            assert [row["name"] for row in entry["rows"]] == list(sweep.variants)
            for row in entry["rows"]:
                assert {cell["at"] for cell in row["cells"]} <= set(sweep.values)
    for study in set(found) - {"utility"}:
        federated.print_study(study, found[study], QUIET)
        figure = federated.draw(study, found[study])
        assert (figure is None) is (study in {"clients", "skellam", "speed"})


def test_stored_clients_had_the_trees_of_one_table():
    for entries in stored().get("clients", {}).get("trained", {}).values():
        assert all(entry["same"] for entry in entries)
