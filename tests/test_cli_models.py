"""The command line's main job: plan, train, predict, show and verify a ledger, and the demonstration."""

import csv
import io
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.cli.commands import app
from ledgerwood.report.demo_page import DemoResult, UtilityPoint, text_plot

RUNNER = CliRunner()
SMALL = ("--system", "sgbdt", "--n-estimators", 3, "--max-depth", 2)
BUDGET = ("--epsilon", 1, "--delta", 1e-6)
FEATURES = (lw.Numeric("size", 0, 10), lw.Categorical("colour", ("red", "blue")))
SCHEMAS = {
    "regression": lw.Schema(features=FEATURES, target=lw.Numeric("price", 0, 100)),
    "classification": lw.Schema(features=FEATURES, target=lw.Categorical("sold", ("no", "yes"))),
}


@pytest.fixture(autouse=True)
def _demo_files_stay_here(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def run(*arguments):
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


def answer(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with rows.csv, a schema for each kind of target, and a trained model of each."""
    folder = tmp_path_factory.mktemp("cli")
    generator = np.random.default_rng(1)
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "colour", "price", "sold", "note"])
        for size in generator.uniform(0, 10, 300).tolist():
            writer.writerow([size, "red" if size > 3 else "blue", 10 * size, "yes" if size > 5 else "no", "x"])
    for kind, schema in SCHEMAS.items():
        (folder / f"{kind}.json").write_text(schema.to_json())
        train(folder, kind, folder / kind)
    return folder


def train(folder, kind, out, *more):
    result = try_training(folder / "rows.csv", folder / f"{kind}.json", out, *more)
    assert result.exit_code == 0, result.output


def try_training(rows, schema, out, *more):
    return run("train", rows, "--schema", schema, *BUDGET, *SMALL, "--out", out, *more)


def test_plan_fits_the_budget_and_says_what_it_draws(place):
    found = answer("plan", "--schema", place / "classification.json", *BUDGET, *SMALL)
    assert found["estimator"] == "SGBDTClassifier"
    assert (found["n_estimators"], found["max_depth"], found["draws"]) == (3, 2, 3)
    assert 0.999 < found["epsilon"] <= 1.0
    assert found["certified"] is True


def test_the_recommended_trees_are_the_system_that_nobody_names(place):
    assert (
        answer("plan", "--schema", place / "classification.json", *BUDGET)["estimator"] == "PrivateBoostingClassifier"
    )
    assert answer("plan", "--schema", place / "regression.json", *BUDGET)["estimator"] == "PrivateBoostingRegressor"


def test_plan_shows_the_weights_of_the_classes(place, tmp_path):
    text = (place / "classification.json").read_text().replace('"sold",', '"sold", "weights": [1, 2.5],')
    (tmp_path / "weighted.json").write_text(text)
    found = answer("plan", "--schema", tmp_path / "weighted.json", *BUDGET, *SMALL)
    assert found["class_weights"] == "no 1, yes 2.5"
    assert found["weighted"] is True
    assert "class_weights" not in answer("plan", "--schema", place / "classification.json", *BUDGET, *SMALL)


@pytest.mark.slow  # trains and checks by the command line
def test_plan_passes_its_options_on(place):
    options = ("--subsample", 0.5, "--learning-rate", 0.25, "--preset", "paper")
    found = answer("plan", "--schema", place / "regression.json", *BUDGET, *SMALL, *options)
    assert found["estimator"] == "SGBDTRegressor"
    assert (found["subsample"], found["learning_rate"], found["initial_score"]) == (0.5, 0.25, "laplace")


@pytest.mark.slow  # trains and checks by the command line
def test_the_federated_framework_is_planned_and_trained(place, tmp_path):
    options, schema = (*BUDGET, *SMALL, "--system", "federated"), ("--schema", place / "classification.json")
    planned = answer("plan", *schema, *options)
    assert (planned["estimator"], planned["n_estimators"], planned["draws"]) == ("FederatedGBDTClassifier", 3, 3)
    out = tmp_path / "model"
    result = run("train", place / "rows.csv", *schema, *options, "--out", out)
    assert result.exit_code == 0, result.output
    assert len(answer("predict", out, place / "rows.csv")) == 300


@pytest.mark.slow  # trains and checks by the command line
@pytest.mark.parametrize(
    ("system", "name", "own"),
    [("dpboost", "DPBoost", ("trees_per_ensemble", 1)), ("dpxgboost", "DPXGBoost", ("subsample", 1.0))],
)
def test_the_other_systems_are_planned_trained_and_read_alike(place, tmp_path, system, name, own):
    """Pure, which S-GBDT is not: all of epsilon is spent, and no delta."""
    options = ("--epsilon", 2, "--delta", 0, *SMALL, "--system", system)
    schema, out = ("--schema", place / "classification.json"), tmp_path / "model"
    planned = answer("plan", *schema, *options)
    assert (planned["estimator"], planned["n_estimators"], planned["max_depth"]) == (f"{name}Classifier", 3, 2)
    assert planned[own[0]] == own[1]
    assert planned["tree_epsilon"] == pytest.approx(2.0 / 3.0)
    assert planned["epsilon"] == pytest.approx(2.0)
    assert (planned["delta"], planned["certified"]) == (0.0, True)
    result = run("train", place / "rows.csv", *schema, *options, "--out", out)
    assert result.exit_code == 0, result.output
    assert len(answer("predict", out, place / "rows.csv")) == 300
    found = answer("ledger", "verify", tmp_path / "model.ledger.jsonl")
    assert (found["draws"], found["delta_readded"]) == (planned["draws"], 0.0)
    assert found["epsilon_readded"] == pytest.approx(2.0)
    regressor = answer("plan", "--schema", place / "regression.json", *options, "--preset", "paper")
    assert regressor["estimator"] == f"{name}Regressor"


@pytest.mark.slow  # trains and checks by the command line
def test_one_private_tree_is_planned_trained_and_read_alike(place, tmp_path):
    options = ("--epsilon", 2, "--delta", 0, "--max-depth", 2, "--system", "privatree")
    schema, out = ("--schema", place / "classification.json"), tmp_path / "model"
    planned = answer("plan", *schema, *options)
    assert (planned["estimator"], planned["max_depth"]) == ("PrivaTreeClassifier", 2)
    assert (planned["split_method"], planned["candidates"]) == ("accuracy", "public")
    assert planned["leaf_share"] == pytest.approx(2.0 / 3.0)  # of the last level's tests with the labels
    assert planned["tree_epsilon"] == pytest.approx(planned["epsilon"]) == pytest.approx(2.0)
    result = run("train", place / "rows.csv", *schema, *options, "--out", out)
    assert result.exit_code == 0, result.output
    assert len(answer("predict", out, place / "rows.csv", "--probabilities")) == 300
    found = answer("ledger", "verify", tmp_path / "model.ledger.jsonl")
    assert (found["draws"], found["delta_readded"]) == (planned["draws"], 0.0) == (2, 0.0)
    assert found["epsilon_readded"] == pytest.approx(2.0)


@pytest.mark.parametrize(("option", "value"), [("n-estimators", 3), ("learning-rate", 0.5), ("subsample", 0.5)])
def test_what_one_private_tree_does_not_have_is_named(place, option, value):
    shared = ("--epsilon", 1, "--delta", 0, "--system", "privatree")
    refused = run("plan", "--schema", place / "classification.json", *shared, f"--{option}", value)
    assert refused.exit_code == 1
    assert f"--{option}={value} is not for PrivaTree" in refused.stderr
    numbers = run("plan", "--schema", place / "regression.json", *shared)
    assert (numbers.exit_code, "PrivaTree learns classes" in numbers.stderr) == (1, True)


def test_what_a_system_does_not_have_is_named(place):
    shared = ("plan", "--schema", place / "regression.json", "--epsilon", 1, "--delta", 0)
    refused = run(*shared, "--system", "dpboost", "--subsample", 0.5)
    assert (refused.exit_code, "--subsample=0.5 is not for DPBoost" in refused.stderr) == (1, True)
    unknown = run(*shared, "--system", "forest")
    assert (unknown.exit_code, "--system='forest' must be one of 'boosting', 'dpboost'" in unknown.stderr) == (1, True)
    strange = run(*shared, "--system", "dpboost", "--set", "colour=red")
    assert (strange.exit_code, "colour='red' is not for DPBoost, whose parameters are" in strange.stderr) == (1, True)
    assert run(*shared, "--set", "colour").exit_code == 2


@pytest.mark.parametrize(
    "pair", ["adjacency=zero-out", "delta=0.1", "epsilon=9", "schema=null", "verbose=1", "system=sgbdt", "max_depth=2"]
)
def test_what_has_an_option_is_not_set_beside_it(place, pair):
    """`plan --set adjacency=zero-out` showed the price under zero-out as one under add-remove."""
    shared = ("plan", "--schema", place / "regression.json", "--epsilon", 1, "--delta", 0, "--system", "dpboost")
    refused = run(*shared, "--set", pair)
    said = " ".join(refused.stderr.split())
    assert (refused.exit_code, "has a separate option" in said or "the command itself sets" in said) == (1, True)
    twice = run(*shared, "--set", "clip=1", "--set", "clip=2")
    assert (twice.exit_code, "clip is set twice" in twice.stderr) == (1, True)


def test_any_parameter_can_be_set_by_name(place):
    options = ("--system", "dpboost", "--set", "trees_per_ensemble=3", "--set", "large_gradients=drop")
    found = answer("plan", "--schema", place / "regression.json", "--epsilon", 1, "--delta", 0, *SMALL, *options)
    assert (found["trees_per_ensemble"], found["large_gradients"]) == (3, "drop")


def test_training_leaves_a_model_and_a_ledger_that_verifies(place):
    head = json.loads((place / "regression" / "model.json").read_text())["privacy"]["ledger_head"]
    found = answer("ledger", "verify", place / "regression.ledger.jsonl", "--head", head)
    assert found["epsilon_readded"] <= found["epsilon_budget"] == 1.0
    assert found["delta_readded"] <= found["delta_budget"] == 1e-6
    assert (found["grants"], found["randomness"], found["head"]) == (1, "secure", head)
    assert found["draws"] >= 3


def test_a_second_training_on_a_spent_ledger_is_refused_and_changes_nothing(place):
    ledger = place / "regression.ledger.jsonl"
    before = ledger.read_bytes()
    result = try_training(place / "rows.csv", place / "regression.json", place / "regression", "--overwrite")
    assert result.exit_code == 1
    assert result.stderr.startswith("BudgetExceeded: ")
    assert "existed before" in result.stderr  # a ledger that nobody named is continued
    assert ledger.read_bytes() == before


def test_one_ledger_pays_for_two_trainings(place, tmp_path):
    path = tmp_path / "study.ledger.jsonl"
    budget = lw.Budget(epsilon=2.5, delta=1e-5, adjacency=lw.Adjacency.ADD_REMOVE)
    lw.Ledger.open(path, dataset="study", budget=budget, unit=lw.PrivacyUnit.ROW).close()
    for name in ("first", "second"):
        train(place, "classification", tmp_path / name, "--ledger", path, "--dataset", "study")
    found = answer("ledger", "verify", path)
    assert found["grants"] == 2
    assert 1.99 < found["epsilon_readded"] <= 2.0 + 1e-9
    other = ("--ledger", path, "--dataset", "another")
    refused = try_training(place / "rows.csv", place / "classification.json", tmp_path / "third", *other)
    assert refused.exit_code == 1
    assert "dataset='study'" in refused.stderr


def test_predicts_classes_with_probabilities(place):
    lines = answer("predict", place / "classification", place / "rows.csv", "--probabilities")
    assert len(lines) == 300
    for line in lines:
        assert line["prediction"] == ("yes" if line["probability of yes"] > 0.5 else "no")
        assert line["probability of yes"] + line["probability of no"] == pytest.approx(1.0)


def test_predicts_numbers_inside_the_declared_range_as_csv(place, tmp_path):
    to_screen = run("predict", place / "regression", place / "rows.csv")
    header, *lines = csv.reader(io.StringIO(to_screen.stdout))
    assert header == ["prediction"]
    assert len(lines) == 300
    assert all(0.0 <= float(value) <= 100.0 for (value,) in lines)
    assert run("predict", place / "regression", place / "rows.csv", "--out", tmp_path / "p.csv").exit_code == 0
    assert (tmp_path / "p.csv").read_text() == to_screen.stdout


def test_a_regressor_has_no_probabilities(place):
    result = run("predict", place / "regression", place / "rows.csv", "--probabilities")
    assert result.exit_code == 1
    assert "needs a classifier" in result.stderr


def test_predict_refuses_a_folder_that_is_no_model(place, tmp_path):
    result = run("predict", tmp_path, place / "rows.csv")
    assert result.exit_code == 1
    assert "is not a model folder" in result.stderr


def test_a_shared_ledger_pays_and_names_who_asked(place, tmp_path):
    url = f"sqlite:///{tmp_path}/team.db"
    limit = lw.Budget(epsilon=4.0, delta=4e-6, adjacency=lw.Adjacency.ADD_REMOVE)
    terms = {"budget": limit, "unit": lw.PrivacyUnit.ROW, "analysts": {"ada": 0.25, "ben": 0.75}}
    lw.Ledger.open(url, dataset="study", **terms).close()
    pays = ("--ledger", url, "--dataset", "study", "--analyst", "ada")
    train(place, "classification", tmp_path / "first", *pays)
    head = json.loads((tmp_path / "first" / "model.json").read_text())["privacy"]["ledger_head"]
    assert answer("ledger", "verify", url, "--dataset", "study", "--head", head)["grants"] == 1
    more = (place / "rows.csv", place / "classification.json", tmp_path / "more")
    for wrong in (pays, pays[:4], pays[:2]):  # her share is spent; nobody is named; no data set is named
        result = try_training(*more, *wrong)
        assert result.exit_code == 1
        assert not (tmp_path / "more").exists()
    assert answer("ledger", "verify", url, "--dataset", "study", "--head", head)["grants"] == 1


def test_ledger_show_lists_terms_and_grants(place):
    found = answer("ledger", "show", place / "classification.ledger.jsonl")
    assert found["terms"]["budget_epsilon"] == 1.0
    assert found["terms"]["entries"] == len(found["entries"])
    assert [entry["kind"] for entry in found["entries"][:3]] == ["open", "grant", "draw"]
    shown = run("ledger", "show", place / "classification.ledger.jsonl")
    assert shown.exit_code == 0
    assert "3 of 3" in shown.stdout


def test_an_altered_ledger_is_named_entry_and_all(place, tmp_path):
    lines = (place / "regression.ledger.jsonl").read_text().splitlines(keepends=True)
    lines[1] = lines[1].replace('"epsilon":0.', '"epsilon":0.0').replace('"epsilon":1.', '"epsilon":0.')
    (tmp_path / "bent.jsonl").write_text("".join(lines))
    for command in ("show", "verify"):
        result = run("ledger", command, tmp_path / "bent.jsonl")
        assert result.exit_code == 1
        assert result.stderr.startswith("LedgerCorrupted: entry 1: ")


def test_a_cut_tail_is_found_against_the_head(place, tmp_path):
    lines = (place / "regression.ledger.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_text("".join(lines[:-1]))
    assert run("ledger", "verify", tmp_path / "cut.jsonl").exit_code == 0
    result = run("ledger", "verify", tmp_path / "cut.jsonl", "--head", json.loads(lines[-1])["hash"])
    assert result.exit_code == 1
    assert "its tail was cut off" in result.stderr


@pytest.mark.parametrize(
    ("header", "row", "schema", "message"),
    [
        ("size,colour", "1,red", "regression", "lacks the columns ['price']"),
        ("size,size,colour,price", "1,1,red,3", "regression", "the columns ['size'] are there twice"),
    ],
)
def test_other_columns_are_refused_before_anything_is_spent(place, tmp_path, header, row, schema, message):
    (tmp_path / "rows.csv").write_text(f"{header}\n{row}\n")
    result = try_training(tmp_path / "rows.csv", place / f"{schema}.json", tmp_path / "model")
    assert result.exit_code == 1
    assert result.stderr.startswith("SchemaError: ")
    assert message in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_no_row_of_a_file_is_refused_and_nothing_tells_of_it(place, tmp_path):
    lines = (place / "rows.csv").read_text().splitlines()
    odd = [
        "big,red,3",
        "1,red,101",
        ",red,3",
        "1,red",
        "1,red,3,4,5",
        ",,",
        "1e999,black,nan",
        '"' + "x" * 200_000 + '",red,1',
    ]
    said = set()
    for number, row in enumerate([None, *odd]):
        (tmp_path / "rows.csv").write_text("\n".join([*lines, *([] if row is None else [row])]) + "\n")
        result = try_training(tmp_path / "rows.csv", place / "regression.json", tmp_path / f"model{number}")
        assert result.exit_code == 0, (row, result.stderr)
        said.add(result.stderr)
    assert len(said) == 1


def test_a_model_without_a_place_is_refused_before_anything_is_spent(place, tmp_path):
    (tmp_path / "file").write_text("")
    result = try_training(
        place / "rows.csv", place / "regression.json", tmp_path / "file" / "model", "--ledger", tmp_path / "l.jsonl"
    )
    assert result.exit_code == 1
    assert result.stderr.startswith("NotADirectoryError: ")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("command", ["plan", "train"])
def test_a_schema_that_is_no_text_is_refused(place, tmp_path, command):
    (tmp_path / "schema.json").write_bytes(b"\xff{}")
    rows = [place / "rows.csv", "--out", tmp_path / "model"] if command == "train" else []
    result = run(command, *rows, "--schema", tmp_path / "schema.json", *BUDGET)
    assert result.exit_code == 1
    assert result.stderr.startswith("SchemaError: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a schema"),
        ('{"features": [{"numeric": "x", "low": 1, "high": 0}]}', "must be >"),
        ("{}", "0 features"),
    ],
)
def test_bad_schemas_are_refused(tmp_path, text, message):
    (tmp_path / "schema.json").write_text(text)
    result = run("plan", "--schema", tmp_path / "schema.json", *BUDGET)
    assert result.exit_code == 1
    assert message in result.stderr


def test_a_schema_without_a_target_cannot_be_planned_for(tmp_path):
    (tmp_path / "schema.json").write_text(lw.Schema(features=FEATURES).to_json())
    result = run("plan", "--schema", tmp_path / "schema.json", *BUDGET)
    assert result.exit_code == 1
    assert "names no target" in result.stderr


@pytest.mark.parametrize(("option", "value"), [("--n-estimators", 0), ("--subsample", 2), ("--max-depth", -1)])
def test_bad_parameters_name_value_and_bound(place, option, value):
    result = run("plan", "--schema", place / "regression.json", *BUDGET, "--system", "sgbdt", option, value)
    assert result.exit_code == 1
    assert f"{value}" in result.stderr
    assert "must be" in result.stderr


def check_demo(found):
    assert found["epsilon_planned"] <= 1.0
    assert found["epsilon_readded"] == pytest.approx(found["epsilon_planned"], rel=1e-9)
    assert Path(found["ledger"]).is_file()
    assert answer("ledger", "verify", found["ledger"])["epsilon_readded"] == found["epsilon_readded"]
    assert [point["epsilon"] for point in found["utility"]] == [0.1, 0.3, 1.0, 3.0, 10.0]
    assert "Utility over epsilon" in Path(found["page"]).read_text()


@pytest.mark.slow  # trains and checks by the command line
def test_demo_on_the_offline_data():
    found = answer("demo", "--epsilon", 1)
    check_demo(found)
    assert (found["train_rows"], found["test_rows"]) == (417, 152)
    accuracy = found["scores"]["accuracy"]
    assert 0.9 < accuracy["non_private"] <= 1.0
    assert 0.0 <= accuracy["private"] <= 1.0


@pytest.mark.slow  # trains and checks by the command line
def test_demo_prints_a_table_and_a_plot_and_says_why_few_rows_cost():
    result = run("demo", "--no-browse")
    assert result.exit_code == 0, result.output
    for phrase in ("private", "not private", "trivial", "epsilon planned", "epsilon recomputed", "are few"):
        assert phrase in result.stdout
    lines = result.stdout.splitlines()
    bars = [line.split() for line in lines if "\N{FULL BLOCK}" in line or "\N{MIDDLE DOT}" in line]
    assert [bar[1] for bar in bars if bar[0] == "epsilon"] == ["0.1", "0.3", "1", "3", "10"]
    assert "\N{FULL BLOCK}" not in bars[0][-2]
    assert "\N{MIDDLE DOT}" not in bars[-1][-2]
    assert Path(lines[-1].removeprefix("The same as a page: ")).is_file()


def test_demo_opens_a_page_only_where_it_is_wanted(monkeypatch):
    import webbrowser

    from ledgerwood.report import demo

    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    page = Path("demo.html").resolve()
    found = DemoResult(
        dataset="abalone", train_rows=1, test_rows=1, scores={"RMSE": (1.0, 1.0, 1.0), "R2": (0.5, 0.6, 0.0)},
        epsilon_planned=1.0, epsilon_readded=1.0, delta=1e-5, adjacency=lw.Adjacency.ADD_REMOVE, trees=1, seconds=1.0,
        ledger=Path("run.jsonl"), utility=(UtilityPoint(epsilon=1.0, score=0.5),), page=page,
    )  # fmt: skip
    demo.show_demo(found, as_json=True, browse=True)
    demo.show_demo(found, as_json=False)  # no terminal here
    assert opened == []
    demo.show_demo(found, as_json=False, browse=True)
    assert opened == [page.as_uri()]
    assert text_plot(found, blocks=False).splitlines()[2].split()[2] == "#" * 33 + "." * 7


@pytest.mark.slow  # trains and checks as the demo does
@pytest.mark.parametrize(("name", "measure"), [("adult", "accuracy"), ("abalone", "RMSE")])
def test_demo_on_files(dataset, name, measure):
    dataset(name)
    found = answer("demo", "--dataset", name)
    check_demo(found)
    better = np.less if measure == "RMSE" else np.greater
    assert better(found["scores"][measure]["private"], found["scores"][measure]["trivial"])


def test_demo_without_data_says_where_it_looked(monkeypatch, tmp_path):
    def offline(**_):
        raise OSError("no network")

    monkeypatch.setenv("LEDGERWOOD_DATA", str(tmp_path))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    result = run("demo", "--dataset", "adult")
    assert result.exit_code == 1
    assert "no adult.csv.gz or adult.csv in LEDGERWOOD_DATA=" in result.stderr


def test_demo_refuses_a_budget_that_gaussian_noise_cannot_meet():
    result = run("demo", "--delta", 0)
    assert result.exit_code == 1
    assert "delta=0.0" in result.stderr


def test_a_draft_of_a_schema_is_filled_in_and_trains(place, tmp_path):
    out = tmp_path / "schema.toml"
    arguments = ("schema", "draft", place / "rows.csv", "--target", "price", "--ignore", "note", "--ignore", "sold")
    assert run(*arguments, "--out", out).exit_code == 0
    text = out.read_text()
    assert run(*arguments).stdout == text
    again = run(*arguments, "--out", out)
    assert (again.exit_code, out.read_text()) == (1, text)
    assert "may have been filled in" in again.output
    refused = run("plan", "--schema", out, *BUDGET, *SMALL)
    assert refused.exit_code == 1
    assert "type of 'size'" in refused.output.replace("\n", " ")
    for name, lines in (
        ("size", 'numeric = "size"\nlow = 0\nhigh = 10'),
        ("colour", 'categorical = "colour"\ncategories = ["red", "blue"]'),
        ("price", 'numeric = "price"\nlow = 0\nhigh = 100'),
    ):
        text = text.replace(f'open = "{name}"', lines)
    out.write_text(text)
    assert answer("plan", "--schema", out, *BUDGET, *SMALL)["epsilon"] <= 1.0


def test_a_header_on_standard_input_is_enough():
    drafted = RUNNER.invoke(app, ["schema", "draft", "-", "--target", "b"], input="a,b\n1,2\n")
    assert lw.SchemaDraft.from_toml(drafted.stdout) == lw.SchemaDraft(
        features=(lw.OpenColumn("a"),), target=lw.OpenColumn("b", missing=False)
    )
    empty = RUNNER.invoke(app, ["schema", "draft", "-"], input="")
    assert (empty.exit_code, "is empty" in empty.output) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("predict", ".", "rows.csv"), 1, "it has no file model.json. Name the folder that"),
        (("predict", "regression", "nothing.csv"), 1, "ROWS='nothing.csv' names no file"),
        (("ledger", "show", "rows.csv"), 2, "is no ledger: `ledgerwood train --out model` writes one"),
        (
            ("plan", "--schema", "regression.json", *BUDGET, "--set", "max_depth=3"),
            1,
            "--set max_depth=3: max_depth has",
        ),
        (("plan", "--schema", "regression.json", *BUDGET, "--set", "maxbins=3"), 1, "did you mean max_bins?"),
        (
            ("train", "rows.csv", "--schema", "regression.json", *BUDGET, "--out", "m", "--ledger", "sqlite:///t.db"),
            1,
            "Name one by --dataset; `ledgerwood ledger list sqlite:///t.db` lists them",
        ),
        (("errata", "--samples", 1), 1, "--samples=1 must be at least"),
    ],
)
def test_an_error_says_the_next_step(place, monkeypatch, arguments, code, words):
    monkeypatch.chdir(place)
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert words in " ".join(result.stderr.replace("│", " ").split())


def test_a_draft_in_a_file_is_estimated_where_it_says_so(place, tmp_path):
    out = tmp_path / "schema.toml"
    draft = lw.SchemaDraft(
        features=(lw.Numeric("size", 0, 10), lw.OpenCategorical("colour", max_categories=3)),
        target=lw.OpenNumeric("price", low=0.0, missing=False),
    )
    arguments = ("train", place / "rows.csv", "--schema", out, "--epsilon", 20, "--delta", 1e-6, *SMALL, "--json")
    out.write_text(draft.to_toml())
    refused = run(*arguments, "--out", tmp_path / "model")
    assert (refused.exit_code, "open fields" in refused.output) == (1, True)
    out.write_text(draft.with_open_estimated().to_toml())
    found = json.loads(run(*arguments, "--out", tmp_path / "model").stdout)
    assert found["columns_estimated"] == 2
    size, colour = found["schema"]["features"]
    assert size == {"numeric": "size", "low": 0.0, "high": 10.0, "missing": False}
    assert set(colour["categories"]) == {"red", "blue"}
    assert (found["schema"]["target"]["numeric"], found["schema"]["target"]["low"]) == ("price", 0.0)
    out.write_text(out.read_text().replace('numeric = "size"', 'open = "size"').replace("low = 0.0\nhigh = 10.0\n", ""))
    untyped = run(*arguments, "--out", tmp_path / "other")
    assert (untyped.exit_code, "leaves those of" in untyped.output) == (1, True)
