"""Saved models side by side, each with its statement, its plan and the ledger that paid."""

import json
import shutil

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.dashboard.models import Models, _statement
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers import DPXGBoostRegressor, SGBDTRegressor

from .conftest import budget
from .test_routes import words

SCHEMA = lw.Schema(
    features=(lw.Numeric("length & width", 0.0, 1.0), lw.Numeric("<b>height</b>", 0.0, 1.0)),
    target=lw.Numeric("rings", 0.0, 10.0),
)


@pytest.fixture(scope="module")
def made_models(tmp_path_factory):
    """A folder of two models that one ledger paid for, one with a seed, and one that is broken."""
    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y = 10.0 * X[:, 0]
    ledgers = folder / "ledgers"
    ledgers.mkdir()
    with lw.Ledger.open(
        ledgers / "abalone.ledger.jsonl", dataset="abalone", budget=budget(epsilon=5.0), unit=lw.PrivacyUnit.ROW
    ) as ledger:
        for name, kind in (("first", SGBDTRegressor), ("second", DPXGBoostRegressor)):
            model = kind(epsilon=1.0, delta=1e-6, schema=SCHEMA, n_estimators=2, max_depth=2)
            model.fit(X, y, ledger=ledger).save(folder / "saved" / name)
    seeded = SGBDTRegressor(epsilon=1.0, delta=1e-6, schema=SCHEMA, n_estimators=1, max_depth=1, random_state=7)
    seeded.fit(X, y).save(folder / "saved" / "seeded")
    (folder / "saved" / "broken").mkdir()
    (folder / "saved" / "broken" / "model.json").write_text('{"estimator": "NoSuchThing"}')
    (folder / "saved" / "empty").mkdir()
    return folder


@pytest.fixture
def board(made, made_models):
    return made(made_models / "ledgers", models=made_models / "saved")


def test_models_are_compared(board):
    said = words(board.get("/models"))
    assert "4 models" in said
    assert all(name in said for name in ("first SGBDTRegressor", "second DPXGBoostRegressor", "broken cannot be read"))
    assert said.count("abalone") == 2
    assert "a ledger that is not here" in said
    assert "inf protects no one" in said
    assert "n estimators" in said or "trees" in said


def test_an_infinite_epsilon_without_a_seed_is_not_called_a_seed(made_models):
    model = DPXGBoostRegressor.load(made_models / "saved" / "second")
    found = _statement({**model.privacy_.to_record(), "epsilon": None})
    assert (dict(found)["epsilon"], dict(found)["certified"]) == ("infinite: it bounds nothing", "no")


def test_a_model_page_has_statement_plan_importances_and_ledger(board, made_models):
    facts = {facts.name: facts for facts in Models(made_models / "saved").all(patience=60.0)}
    page = board.get(f"/model/{facts['first'].id}")
    said = words(page)
    assert "Epsilon 1 at delta 1e-06" in said or "Epsilon 0.99" in said
    assert 'It was paid from <a href="/ledger/' in page.text
    assert "length &amp; width" in page.text
    assert "&lt;b&gt;height&lt;/b&gt;" in page.text
    assert "running time is not observed" in said
    assert "expected from noise alone" in said
    assert "The first trees in words" in said
    assert facts["first"].meaning[:40] in said
    assert all(name in said for name in ("ledger head", "max depth", "certified yes"))
    assert "The noise protects no one" in words(board.get(f"/model/{facts['seeded'].id}"))
    assert dict(facts["seeded"].statement)["certified"] == "no"
    broken = words(board.get(f"/model/{facts['broken'].id}"))
    assert "Cannot be read" in broken
    assert "NoSuchThing" in broken
    assert str(made_models) not in broken


def test_a_ledger_names_its_models(board):
    book = board.book("abalone")
    page = board.get(f"/ledger/{book}")
    assert "first</a>: SGBDTRegressor" in page.text
    assert "second</a>: DPXGBoostRegressor" in page.text
    assert "seeded" not in page.text


def test_a_model_is_read_again_when_it_changes(made_models, tmp_path):
    shutil.copytree(made_models / "saved", tmp_path / "saved")
    models = Models(tmp_path / "saved")
    assert any(facts.pending for facts in models.all(patience=0.0))
    before = {facts.name: facts for facts in models.all(patience=60.0)}
    assert {facts.name: facts for facts in models.all()}["first"] is before["first"]
    path = tmp_path / "saved" / "first" / "model.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "estimator": "Other"}))
    after = {facts.name: facts for facts in models.all(patience=60.0)}
    assert after["first"].failure is not None
    assert after["second"] is before["second"]


def test_a_folder_that_is_a_model_and_none(made_models, tmp_path):
    assert [facts.name for facts in Models(made_models / "saved" / "first").all(patience=60.0)] == ["first"]
    assert Models(None).all() == []
    with pytest.raises(InvalidParameter, match="must be a folder with saved models"):
        Models(tmp_path / "none")


def test_without_a_folder_the_pages_say_how(made, team):
    board = made(team / "ledgers")
    assert "--models FOLDER" in words(board.get("/models"))
    assert "--models FOLDER" in words(board.get(f"/ledger/{board.book('run')}"))
