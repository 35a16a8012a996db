"""Trainers that another package brings are taken by their entry points' names, from the first door to the last.

The packages are those of `examples/`: with trees and without. They are put on the path with their entry points, as an
installation would put them.
"""

import csv
import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.cli.commands import app
from ledgerwood.errors import InvalidParameter
from ledgerwood.report.models import load_model
from ledgerwood.trainers import AbstractPlan, AbstractRegressor, AbstractTrainer, PrivaTreeClassifier, System
from ledgerwood.trainers.base import systems
from ledgerwood.verification import audit_model, removed, replay, verify_ledger

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = {"random-forest": "random_forest", "private-regression": "private_regression"}
SMALL = {"random-forest": ("--n-estimators", 2), "private-regression": ("--set", "n_steps=3")}
FEATURES = (lw.Numeric("size", 0, 10), lw.Categorical("colour", ("red", "blue")))
NUMBERS = lw.Schema(features=FEATURES, target=lw.Numeric("price", 0, 100))
CLASSES = lw.Schema(features=FEATURES, target=lw.Categorical("sold", ("no", "yes")))
each = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def installed(monkeypatch, tmp_path_factory):
    """The examples' packages on the path, with their entry points."""
    site = tmp_path_factory.mktemp("site")
    for module in NAMES.values():  # imported afresh, and given back as it was
        monkeypatch.delitem(sys.modules, module, raising=False)
    for name, module in NAMES.items():
        monkeypatch.syspath_prepend(str(EXAMPLES / module))
        about = site / f"example_{module}-0.1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: example-{name}\nVersion: 0.1.0\n")
        (about / "entry_points.txt").write_text(f"[ledgerwood.trainers]\n{name} = {module}:SYSTEM\n")
    monkeypatch.syspath_prepend(str(site))
    for cached in (systems.declared, systems.system):
        cached.cache_clear()
    yield
    for cached in (systems.declared, systems.system):
        cached.cache_clear()
    for module in NAMES.values():
        sys.modules.pop(module, None)


@pytest.fixture
def place(tmp_path):
    generator = np.random.default_rng(1)
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "colour", "price", "sold"])
        for size in generator.uniform(0, 10, 200).tolist():
            writer.writerow([size, "red" if size > 3 else "blue", 10 * size, "yes" if size > 5 else "no"])
    (tmp_path / "numbers.json").write_text(NUMBERS.to_json())
    (tmp_path / "classes.json").write_text(CLASSES.to_json())
    return tmp_path


def answer(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def rows(n=40):
    X = np.empty((n, 2), dtype=object)
    X[:, 0] = np.linspace(0, 10, n)
    X[:, 1] = np.where(X[:, 0] > 3, "red", "blue")
    return X, X[:, 0].astype(float) * 10


@pytest.mark.slow_after(1)  # trains by the command line
@each
@pytest.mark.parametrize("target", ["numbers", "classes"])
def test_the_command_line_plans_trains_and_predicts(name, target, place):
    common = ("--schema", place / f"{target}.json", "--system", name, *SMALL[name], "--epsilon", 1)
    planned = json.loads(answer("plan", *common, "--delta", 1e-6, "--json"))
    assert 0.99 < planned["epsilon"] <= 1.0
    trained = json.loads(answer("train", place / "rows.csv", *common, "--delta", 1e-6, "--out", place / "m", "--json"))
    assert trained["epsilon"] == planned["epsilon"]
    assert ("trees" in trained) == (name == "random-forest")
    predicted = answer("predict", place / "m", place / "rows.csv")
    assert len(predicted.splitlines()) == 201
    model = load_model(place / "m")
    assert type(model).__module__ == NAMES[name]
    assert verify_ledger(model.ledger_, head=model.privacy_.ledger_head).verdict == "confirmed"


@pytest.mark.slow  # audits of several fits
@each
def test_the_command_line_audits(name, place):
    found = answer(
        "audit", "model", place / "rows.csv", "--schema", place / "numbers.json", "--system", name, *SMALL[name],
        "--epsilon", 1, "--delta", 1e-6, "--canaries", 30, "--trainings", 2, "--seed", 3, "--json",
    )  # fmt: skip
    assert systems.system(name).regressor.__name__ in found  # and an audit that refutes has another exit code


@pytest.mark.slow  # fits of default size
def test_replay_and_audit_take_the_name():
    name, data = "random-forest", rows()
    found = replay(name, data, removed(data, 3), schema=NUMBERS)
    assert found.ok, found
    assert found.largest_share > 0.0
    seen = audit_model(name, *data, schema=NUMBERS, canaries=20, rng=np.random.default_rng(0))
    assert seen.system == systems.system(name).regressor.__name__
    assert not seen.rejected
    for function in (replay, audit_model):
        arguments = (name, data, removed(data, 3)) if function is replay else (name, *data)
        with pytest.raises(InvalidParameter, match="names a system"):
            function(*arguments)


@pytest.mark.slow  # a benchmark's line
@each
def test_the_systems_benchmark_takes_the_name(name):
    from benchmarks import data_sets
    from benchmarks.systems import chosen_entries, measured

    (entry,) = chosen_entries([name])
    X = np.random.default_rng(0).uniform(0, 1, (200, 3))
    schema = lw.Schema.uniform(0, 1, n_features=3, target=lw.Categorical("y", ("no", "yes")))
    data = data_sets.Data("magic_telescope", X, np.where(X[:, 0] > 0.5, "yes", "no"), schema)
    line = measured(entry, data, (3.0,), 1)
    assert line["system"] == systems.system(name).title
    assert 0.0 < line["cells"][0]["epsilon_readded"] <= 3.0 * (1.0 + 1e-9)
    with pytest.raises(InvalidParameter, match="system='none'"):
        chosen_entries(["none"])


def test_two_estimators_of_one_name_are_not_loaded_by_it(monkeypatch):
    forest = importlib.import_module("random_forest")
    same_name = type("PrivaTreeClassifier", (forest.ForestClassifier,), {})
    monkeypatch.setattr(forest, "SYSTEM", System(title="x", classifier=same_name, regressor=forest.ForestRegressor))
    with pytest.raises(InvalidParameter, match="two packages have an estimator 'PrivaTreeClassifier'"):
        systems.estimator_named("PrivaTreeClassifier")
    assert systems.estimator_named("ForestRegressor") is forest.ForestRegressor


def test_an_estimator_without_trees_makes_a_system_and_what_is_no_trainer_does_not():
    regression = importlib.import_module("private_regression")
    assert System(title="mine", regressor=regression.PrivateLinearRegression).for_target(NUMBERS)
    with pytest.raises(InvalidParameter, match="is no trainer"):
        System(title="mine", regressor=dict)
    assert System(title="both", classifier=PrivaTreeClassifier).estimators == (PrivaTreeClassifier,)


@dataclass(frozen=True, slots=True, kw_only=True)
class BarePlan(AbstractPlan):
    @property
    def stages(self):
        return ()

    def _require_whole(self):
        pass

    def calibrated(self, budget):
        return self


class Bare(AbstractRegressor, AbstractTrainer):
    def _uncalibrated_plan(self, schema):
        return BarePlan(adjacency=self.budget.adjacency, max_bins=16)

    def _train(self, plan, aggregator, generator, progress):
        return None

    def _scores(self, X):
        return np.zeros(len(X))


class WithPlan(Bare):
    _plan_type = BarePlan


class WithModel(WithPlan):
    _model_type = dict


class Undecorated(WithModel):
    n_steps: int = 3


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        (Bare, "Bare has no _plan_type: set it to the class of its plan"),
        (WithPlan, "WithPlan has no _model_type"),
        (WithModel, "BarePlan has no loss: give it a field loss"),
        (Undecorated, r"Undecorated.n_steps is annotated, and is no parameter: put @dataclass\("),
    ],
)
def test_what_a_trainer_forgets_is_refused_by_name_before_anything_is_spent(kind, match):
    ledger = lw.Ledger(kind().budget, unit=lw.PrivacyUnit.ROW)
    before = ledger.entries
    with pytest.raises(InvalidParameter, match=match):
        kind(schema=NUMBERS).fit(*rows(), ledger=ledger)
    assert ledger.entries == before
