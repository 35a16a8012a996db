"""`ledgerwood audit`: what is found, the exit codes, and that page, table and JSON say the same."""

import csv
import json
import math
import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.cli.commands import app

RUNNER = CliRunner()
A = lw.Adjacency.ADD_REMOVE
PAIR = "[[0.0], [1.0]]"
FEW = ("--pair", PAIR, "--samples", 4000, "--seed", 20261122)
MECHANISMS = """
import numpy as np

def grid_laplace(dataset, n, rng, scale=1.0):
    return np.round((dataset.sum() + rng.laplace(scale=scale, size=n)) * 2**20) / 2**20

def half(dataset, n, rng):
    return grid_laplace(dataset, n, rng, scale=0.5)

def first(dataset, n, rng):
    return np.asarray(dataset)[..., :1].sum() + rng.laplace(scale=0.25, size=n)

def raising(dataset, n, rng):
    raise RuntimeError("the data base is gone")

def constant(dataset, n, rng):
    return np.zeros(n)

def foreign(dataset, n, rng):
    return [object()] * n
"""


def run(*arguments):
    return RUNNER.invoke(app, ["audit", *(str(argument) for argument in arguments)])


def numbers(page):
    """The JSON that a page carries."""
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script[^>]* id="audit"[^>]*>(.*?)</script>', text, re.DOTALL).group(1))


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    place = tmp_path / "mechanisms.py"
    place.write_text(MECHANISMS)
    yield place
    sys.modules.pop("ledgerwood_audited_mechanisms", None)


# ---------------------------------------------------------------------------------------------------- a mechanism


def test_half_the_noise_is_refuted_with_a_code_of_its_own(file, tmp_path):
    """Laplace noise of scale 1/2: epsilon 2 is claimed to be 1."""
    result = run("mechanism", f"{file}:half", *FEW, "--epsilon", 1, "--html", tmp_path / "a.html", "--json")
    assert result.exit_code == 3, result.output
    found = json.loads(result.stdout)
    assert found["audit"]["rejected"] is True
    assert 1.0 < found["audit"]["epsilon_lower"] <= 2.0
    assert found["mechanism"] == "mechanisms.py:half"
    assert found == numbers(tmp_path / "a.html")


def test_the_table_says_what_the_json_says(file):
    result = run("mechanism", f"{file}:half", *FEW, "--epsilon", 1)
    assert result.exit_code == 3
    found = json.loads(run("mechanism", f"{file}:half", *FEW, "--epsilon", 1, "--json").stdout)
    assert "the claim is refuted" in result.stdout
    assert f"{math.floor(100 * found['audit']['epsilon_lower']) / 100:.2f}" in result.stdout  # rounded down


def test_outputs_of_one_value_and_what_a_limit_left_out_are_notes(file):
    found = json.loads(run("mechanism", f"{file}:constant", *FEW, "--epsilon", 1, "--json").stdout)["audit"]
    assert (found["epsilon_lower"], found["rejected"]) == (0.0, False)
    assert "were the same" in found["notes"][0]
    limited = run("mechanism", f"{file}:half", "--pair", PAIR, "--epsilon", 1, "--max-draws", 8000, "--seed", 1)
    assert limited.exit_code == 3
    assert "max_draws=8,000" in " ".join(limited.stdout.split())


@pytest.mark.parametrize("claim", [("--epsilon", 2), ("--laplace", 0.5), ("--epsilon", 2.5, "--delta", 1e-3)])
def test_a_mechanism_that_keeps_its_claim_is_not_accused(file, claim):
    """At alpha 1e-6: these are true claims, and the seed was fixed before the first run."""
    result = run("mechanism", f"{file}:half", *FEW, *claim, "--alpha", 1e-6, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["audit"]["rejected"] is False


@pytest.mark.slow  # trains and checks by the command line
def test_without_a_pair_the_search_must_be_asked_for(file):
    """A pair that is no pair of neighbours would accuse a mechanism that is right, so none is guessed."""
    refused = run("mechanism", f"{file}:half", "--epsilon", 1)
    assert refused.exit_code == 2
    assert "--search" in re.sub(r"\x1b\[[0-9;]*m", "", refused.stderr)
    found = json.loads(
        run("mechanism", f"{file}:first", "--search", "--samples", 2000, "--epsilon", 1, "--seed", 1, "--json").stdout
    )
    assert found["audit"]["rejected"] is True
    assert "by search" in found["pair"]


def test_an_event_file_is_a_claim(file, tmp_path):
    record = {"type": "LaplaceEvent", "noise_multiplier": 0.5, "adjacency": "add-remove"}
    (tmp_path / "event.json").write_text(json.dumps(record))
    result = run("mechanism", f"{file}:half", *FEW, "--event", tmp_path / "event.json", "--alpha", 1e-6, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(json.loads(result.stdout)["claim"]) == record


def test_the_seed_is_said_and_repeats_the_audit(file):
    options = ("mechanism", f"{file}:grid_laplace", "--pair", PAIR, "--samples", 2000, "--epsilon", 1, "--json")
    first = json.loads(run(*options, "--alpha", 1e-3).stdout)
    again = json.loads(run(*options, "--alpha", 1e-3, "--seed", first["seed"]).stdout)
    for found in (first, again):
        found["audit"].pop("seconds")
        for bound in found["audit"]["bounds"]:
            bound.pop("seconds")
    assert first == again


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "exactly one claim"),
        (("--epsilon", 1, "--laplace", 1), "exactly one claim"),
        (("--epsilon", 1, "--numeric", "other"), "--numeric"),
        (("--epsilon", 1, "--search"), "either --pair"),
        (("--epsilon", 1, "--seed", -1), "--seed"),
        (("--epsilon", 1, "--html", "no/such/folder/a.html"), "there is no folder"),
    ],
)
def test_wrong_usage_is_code_2(file, options, words):
    result = run("mechanism", f"{file}:half", "--pair", PAIR, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in " ".join(re.sub(r"[^\w\s-]", " ", result.stderr).split())


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("raising", ("--epsilon", 1), "the data base is gone"),
        ("foreign", ("--epsilon", 1), "output is of type object"),
        ("half", ("--epsilon", 1, "--max-draws", 10), "--max-draws=10 must be at least 400"),
        ("missing", ("--epsilon", 1), "has no 'missing'"),
        ("half", ("--epsilon", -1), "epsilon=-1.0 must be > 0"),
        ("half", ("--epsilon", 1, "--alpha", 0.9), "alpha=0.9 must be in (0, 0.5]"),
        ("half", ("--epsilon", 1, "--samples", 1), "--samples=1 must be"),
        ("half", ("--laplace", 0), "noise_multiplier=0.0 must be > 0"),
        ("half", ("--epsilon", 1, "--pair", "[[1]]"), "two data sets"),
    ],
)
def test_what_is_refused_is_code_1_with_a_reason(file, tmp_path, name, options, words):
    result = run("mechanism", f"{file}:{name}", "--pair", PAIR, "--html", tmp_path / "a.html", *options)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "a.html").exists()


# --------------------------------------------------------------------------------------------------------- a model


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A folder with rows.csv and its schema: 256 cells for canaries."""
    folder = tmp_path_factory.mktemp("rows")
    generator = np.random.default_rng(7)
    schema = lw.Schema(
        features=(lw.Numeric("size", 0, 1), lw.Numeric("weight", 0, 1)), target=lw.Numeric("price", 0, 1)
    )
    (folder / "schema.json").write_text(schema.to_json())
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "weight", "price"])
        writer.writerows(generator.uniform(size=(50, 3)).tolist())
    return folder


def test_a_training_is_audited_beside_its_price(rows, tmp_path):
    result = run(
        "model", rows / "rows.csv", "--schema", rows / "schema.json", "--epsilon", 4, "--delta", 1e-5,
        "--n-estimators", 3,
        "--canaries", 64, "--alpha", 1e-6, "--seed", 20261122, "--html", tmp_path / "m.html", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found == numbers(tmp_path / "m.html")
    audit = found["audit"]
    assert audit["rejected"] is False
    assert audit["price"] == pytest.approx(4.0, rel=1e-3)
    assert audit["epsilon_lower"] <= audit["price"]
    assert {bound["assumption"] for bound in audit["bounds"]} == {"none", "Gaussian noise"}
    assert sum(found["scores"]["with_row"]) + sum(found["scores"]["without"]) == 64
    assert "scores" not in audit


def test_a_training_that_is_refused_says_why(rows):
    options = ("--schema", rows / "schema.json", "--epsilon", 4, "--delta", 1e-5, "--system", "sgbdt")
    many = run("model", rows / "rows.csv", *options, "--canaries", 100_000)
    assert (many.exit_code, many.stdout) == (1, "")
    assert "canaries=100000 must be" in many.stderr
    few = run("model", rows / "rows.csv", *options, "--canaries", 1)
    assert few.exit_code == 1
    assert "too few" in few.stderr


# -------------------------------------------------------------------------------------------------------- a ledger


@pytest.fixture
def ledger(tmp_path):
    place = tmp_path / "run.ledger.jsonl"
    budget = lw.Budget(epsilon=1.0, delta=1e-5, adjacency=A)
    with lw.Ledger.open(place, dataset="census", budget=budget, unit=lw.PrivacyUnit.ROW) as open_:
        open_.spend(lw.PureEvent(epsilon=0.25, adjacency=A), purpose="a [bold] <b>count</b>")
    return place


def test_a_ledger_is_followed_round_by_round(ledger, tmp_path):
    result = run("ledger", ledger, "--html", tmp_path / "l.html", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found == numbers(tmp_path / "l.html")
    assert found["verified"]["epsilon_readded"] == 0.25
    assert [m["granted"] for m in found["epsilon_over_rounds"]] == [0.25, 0.25]
    assert "<b>count</b>" not in (tmp_path / "l.html").read_text()
    table = run("ledger", ledger)
    assert table.exit_code == 0
    assert "0.25" in table.stdout


def test_a_ledger_that_does_not_add_up_is_code_1(ledger, tmp_path):
    ledger.write_text(ledger.read_text().replace("0.25", "0.15"))
    result = run("ledger", ledger, "--html", tmp_path / "l.html")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "entry 1" in result.stderr
    assert not (tmp_path / "l.html").exists()


def test_a_folder_that_is_no_model_is_code_1(ledger, tmp_path):
    result = run("ledger", ledger, "--model", tmp_path)
    assert result.exit_code == 1
    assert "is not a model folder" in result.stderr


def test_a_ledger_of_another_model_is_code_1(ledger, tmp_path):
    from ledgerwood.trainers import SGBDTRegressor

    schema = lw.Schema(features=(lw.Numeric("size", 0, 1),), target=lw.Numeric("price", 0, 1))
    X = np.linspace(0, 1, 20)[:, None]
    SGBDTRegressor(epsilon=1, delta=1e-5, schema=schema, n_estimators=1, max_depth=1).fit(X, X[:, 0]).save(
        tmp_path / "m"
    )
    result = run("ledger", ledger, "--model", tmp_path / "m")
    assert result.exit_code == 1
    assert "another model's" in result.stderr


@pytest.mark.parametrize("command", [(), ("mechanism",), ("model",), ("ledger",)])
def test_every_command_has_help(command):
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
