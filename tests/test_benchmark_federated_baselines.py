"""The baselines of a federation: how much noise each way has, what is printed, the stored page's values."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import data_sets, federated_averaging, federated_baselines
from benchmarks.utility import Scale
from ledgerwood import Categorical, Schema, price
from ledgerwood.accounting.events.shares import require_shared_noise
from ledgerwood.curator import Table

PAGES = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
ROWS = 150


def classes():
    X = np.random.default_rng(1).uniform(0, 1, (ROWS, 3))
    schema = Schema.uniform(0, 1, n_features=3, target=Categorical("y", (0, 1)))
    return data_sets.Data("adult", X, (X[:, 0] > 0.5).astype(int), schema)


@pytest.mark.parametrize(
    ("clients", "tolerance", "factor"), [(10, 0.0, 1.0), (10, 0.1, 10 / 9), (100, 0.3, 100 / 70), (10, 0.25, 10 / 8)]
)
def test_the_surplus_is_that_of_the_shares_that_need_not_be_missing(clients, tolerance, factor):
    assert federated_baselines.surplus(clients, tolerance) == factor


def test_a_plan_of_clients_costs_its_budget_and_less_with_more_noise():
    data = classes()
    plan = federated_baselines.plan_of(data, 1.0, ROWS)
    require_shared_noise(plan.event)
    delta = federated_baselines.DELTA
    assert 0.98 < price(plan.event).epsilon(delta) <= 1.0 + 1e-12
    more = federated_baselines.with_variance(plan, 4.0)
    assert more.leaf_stddevs[1] == pytest.approx(2.0 * plan.leaf_stddevs[1])
    assert price(more.event).epsilon(delta) < 0.6
    assert federated_baselines.local(data, 1.0, 9).noise_multiplier == pytest.approx(
        3.0 * federated_baselines.plan_of(data, 1.0, 105, "gaussian").noise_multiplier
    )


def test_noise_that_nobody_can_draw_has_no_figure():
    assert federated_baselines.local(classes(), 1.0, 10**30) is None
    assert federated_baselines.mean_auc(classes(), None, []) is None
    assert federated_baselines.shown(None) == "too much noise"


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("numbers", [False, True])
def test_every_row_is_dealt_to_one_client(skewed, numbers):
    generator = np.random.default_rng(3)
    y = generator.uniform(0, 1, 400) if numbers else generator.integers(0, 2, 400)
    rows = np.sort(generator.choice(400, 300, replace=False))
    parts = federated_averaging.dealt(y, rows, 5, generator, skewed=skewed)
    assert len(parts) == 5
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), rows)


def test_averages_shrink_the_leaves_of_rows_that_one_client_holds():
    """docs/errata.md#claims-sgbdt-averaging: a leaf is divided by the number of clients, whoever has rows in it."""
    data = classes()
    plan = federated_averaging.plan_of(data)
    quiet = dataclasses.replace(plan.scaled(1e-4), n_estimators=1, max_depth=1)

    def table(rows):
        return Table.from_data(data.X[rows], data.y[rows], data.schema, loss=plan.loss, bins=plan.max_bins)

    everybody, nobody = np.arange(ROWS), np.arange(0)
    one = federated_averaging.trained(quiet, [table(everybody)], np.random.default_rng(5))
    five = federated_averaging.trained(
        quiet, [table(everybody), *(table(nobody) for _ in range(4))], np.random.default_rng(5)
    )
    np.testing.assert_allclose(5.0 * five.trees[0].values, one.trees[0].values, atol=1e-4)
    assert np.abs(one.trees[0].values).max() > 0.004


@pytest.mark.slow  # calibrates and trains
def test_every_study_runs_on_few_rows(monkeypatch):
    monkeypatch.setattr(data_sets, "load", lambda name: classes())
    monkeypatch.setattr(federated_baselines, "EPSILONS", (1.0,))
    monkeypatch.setattr(federated_baselines, "N_CLIENTS", (10,))
    monkeypatch.setattr(federated_averaging, "N_CLIENTS", (3,))
    shown = Console(width=200)
    with shown.capture() as text:
        for study in federated_baselines.STUDIES:
            found = json.loads(json.dumps(federated_baselines.run(study, Scale(1, ROWS))))
            federated_baselines.print_study(study, found, shown)
    assert "averages of 3 skewed clients" in text.get()
    assert "local noise, a row each" in text.get()


def stored():
    return json.loads((PAGES / "federated_baselines.json").read_text())


def test_the_stored_page_has_every_study_and_prints():
    found = stored()
    assert set(found) == set(federated_baselines.STUDIES)
    shown = Console(width=200)
    with shown.capture() as text:
        for study, values in found.items():
            federated_baselines.print_study(study, values, shown)
    assert "infinite" in text.get()


def test_leaders_who_all_collude_leave_no_noise_and_chances_are_those_of_draws_without_replacement():
    found = stored()["leaders"]
    assert all((row["epsilon"] is None) == (row["colluding"] == row["leaders"]) for row in found["costs"])
    for row in found["chances"]:
        n, bad, leaders = row["clients"], row["colluding"], row["leaders"]
        every = math.comb(bad, leaders) / math.comb(n, leaders)
        assert row["all"] == pytest.approx(every, rel=1e-9)
        assert row["some"] == pytest.approx(1 - math.comb(n - bad, leaders) / math.comb(n, leaders), rel=1e-9)
        assert row["ever"] == pytest.approx(1 - (1 - every) ** found["rounds"], rel=1e-6, abs=1e-12)


def test_shared_noise_is_ahead_of_local_noise_of_a_hundred_clients_on_each_data_set():
    for entry in stored()["baselines"].values():
        row = next(row for row in entry["rows"] if row["epsilon"] == 1.0)
        assert row["shares"]["mean"] > row["local noise, 100 clients"]["mean"] > row["local noise, a row each"]["mean"]
