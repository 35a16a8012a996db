"""`ledgerwood export`: a model folder in another tool's format."""

import json

import numpy as np
import onnx
import pytest
import xgboost
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.cli.commands import app
from ledgerwood.pages.values import plain
from ledgerwood.reading import booster_rows, export_text, model_card, to_onnx
from ledgerwood.trainers import PrivaTreeClassifier, SGBDTClassifier


@pytest.fixture(scope="module")
def model():
    schema = lw.Schema.uniform(0.0, 1.0, n_features=2, target=lw.Categorical("y", ("no", "yes")))
    X = np.random.default_rng(0).uniform(size=(60, 2))
    return SGBDTClassifier(schema=schema, n_estimators=12, max_depth=2).fit(X, np.where(X[:, 0] > 0.5, "yes", "no"))


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def run(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def test_a_booster(model, folder, tmp_path):
    X = np.random.default_rng(1).uniform(size=(20, 2))
    for name in ("model.json", "model.ubj"):
        found = run(folder, "--to", "xgboost", "--out", tmp_path / name, "--json")
        assert json.loads(found.stdout)["epsilon"] == model.privacy_.epsilon
        booster = xgboost.Booster(model_file=tmp_path / name)
        np.testing.assert_allclose(booster.predict(booster_rows(model, X)), model.decision_function(X), rtol=1e-4)
    refused = run(folder, "--to", "xgboost", "--out", tmp_path / "model.bin")
    assert (refused.exit_code, "must end in .json or .ubj" in refused.stderr) == (1, True)


def test_a_graph(model, folder, tmp_path):
    assert run(folder, "--to", "onnx", "--out", tmp_path / "model.onnx").exit_code == 0
    assert onnx.load(tmp_path / "model.onnx") == to_onnx(model)
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == []


def test_all_trees_as_text(model, folder):
    assert run(folder, "--to", "text").stdout == export_text(model, trees=range(12))


def test_the_text_begins_with_the_privacy_statement(model, folder, tmp_path):
    first = run(folder, "--to", "text").stdout.splitlines()[0]
    privacy = model.privacy_
    assert first == (
        f"privacy: epsilon {plain(privacy.epsilon)}, delta {plain(privacy.delta)}, {privacy.adjacency.value}, unit row"
    )
    X = np.random.default_rng(0).uniform(size=(60, 2))
    labels = np.where(X[:, 0] > 0.5, "yes", "no")
    for kind in (SGBDTClassifier, PrivaTreeClassifier):
        seeded = kind(schema=model.schema, max_depth=1, random_state=0).fit(X, labels)
        seeded.save(tmp_path / kind.__name__)
        first = run(tmp_path / kind.__name__, "--to", "text").stdout.splitlines()[0]
        assert first.startswith("privacy: no guarantee, epsilon inf: trained with a seed")


def test_a_card_in_both_forms(model, folder, tmp_path):
    assert run(folder, "--to", "card").stdout == model_card(model, path=str(folder))
    run(folder, "--to", "card", "--out", tmp_path / "card.html")
    assert (tmp_path / "card.html").read_text() == model_card(model, "html", path=str(folder))


def test_what_needs_a_file_says_so(folder, tmp_path):
    for options in (["--to", "onnx"], ["--to", "xgboost"], ["--to", "text", "--json"]):
        refused = run(folder, *options)
        assert (refused.exit_code, "--out" in refused.stderr) == (2, True)
    assert run(tmp_path / "none", "--to", "card").exit_code == 2
    (tmp_path / "empty").mkdir()
    assert run(tmp_path / "empty", "--to", "card").exit_code == 1
