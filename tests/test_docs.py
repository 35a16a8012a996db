"""The how-to pages: their Python runs as it stands, page by page."""

import functools
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import ledgerwood as lw

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "how-to"


def blocks(page):
    return re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(), flags=re.DOTALL)


def run(page, folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    for block in blocks(page):
        exec(compile(block, f"{page}.md", "exec"), names)
    return names


def test_every_page_is_covered_here():
    with_code = {path.stem for path in PAGES.glob("*.md") if blocks(path.stem)}
    assert with_code == {
        "noise-for-a-target", "choose-a-schema", "choose-a-trainer", "train-on-data-frames", "verify-a-ledger",
        "team-ledger", "interop", "learn-on-streams", "ask-a-table", "bring-a-statistic", "tune-privately",
        "attack-a-model", "train-on-files", "train-on-sparse-rows", "train-on-a-cluster", "come-from-spark",
        "test-your-mechanism", "audit-a-mechanism", "audit-over-time", "audit-a-model", "pipelines", "cross-validate",
        "privacy-warnings",
        "several-classes", "rare-classes", "write-a-trainer", "train-in-a-federation", "deploy-a-federation",
        "export-a-model", "log-to-mlflow", "use-the-dashboard", "train-with-opacus",
        "cite-what-you-used",
    }  # fmt: skip


def test_cite_what_you_used(tmp_path, monkeypatch):
    names = run("cite-what-you-used", tmp_path, monkeypatch)
    assert names["found"].keys[0] == "li2020dpboost"
    assert "doe2031trees" in str(names["MyPlan"].references[0].bibtex)


@pytest.mark.slow  # the page's own examples, as they stand
def test_noise_for_a_target(tmp_path, monkeypatch):
    names = run("noise-for-a-target", tmp_path, monkeypatch)
    assert lw.price(names["plan"](names["sigma"])).epsilon(1e-5) == pytest.approx(1.0, rel=1e-4)
    assert lw.price(names["two_parts"](names["sigma"])).epsilon(1e-5) > 1.0
    step = names["plan"](4.0).event
    assert lw.price(lw.Repeated(step, count=names["steps"])).epsilon(1e-5) <= 1.0
    assert lw.price(lw.Repeated(step, count=names["steps"] + 1)).epsilon(1e-5) > 1.0
    assert 0.01 < names["rate"] < 0.011  # a multiplier of 4 is a little more than a rate of 0.01 needs


@pytest.mark.slow  # a training with torch
@pytest.mark.filterwarnings("ignore")  # of Opacus and torch
def test_train_with_opacus(tmp_path, monkeypatch, capsys):
    names = run("train-with-opacus", tmp_path, monkeypatch)
    assert len(names["accountant"]) == 40
    assert 0.98 < names["ledger"].spent().epsilon <= 1.0
    assert "no delta remains" in capsys.readouterr().out


def test_use_the_dashboard(tmp_path, monkeypatch):
    from ledgerwood.dashboard import calculator

    names = run("use-the-dashboard", tmp_path, monkeypatch)
    assert names["epsilon"] == calculator.answer(calculator.read_inputs({})).epsilon


@pytest.mark.slow  # the page's own cells, as they stand
def test_draw_what_you_have(tmp_path, monkeypatch):
    names = run_tutorial("draw-what-you-have", tmp_path, monkeypatch, shelf="how-to")
    assert names["tight"].epsilon(1e-5) < names["renyi"].epsilon(1e-5)
    assert names["result"].rejected
    assert names["ax"].get_xlabel() == "entry of the ledger"
    names["plt"].close("all")


@pytest.mark.slow  # the page's own cells, as they stand
def test_read_a_model(tmp_path, monkeypatch):
    names = run_tutorial("read-a-model", tmp_path, monkeypatch, shelf="how-to")
    told = names["explain"](names["model"])
    assert next(each for each in told.importances.features if each.name == "area").above_noise
    spreads = {effect.axes[0].name: float(effect.spread[0]) for effect in told.effects}
    assert spreads["area"] > 300.0 > 60.0 > spreads["colour"]
    assert set(told.pair.names) == {"area", "city"}
    assert names["found"].totals[0, 0] > names["found"].totals[1, 0]
    assert names["errors"][-1] < names["errors"][0]


@pytest.mark.slow  # the page's own examples, as they stand
def test_privacy_warnings(tmp_path, monkeypatch):
    with warnings.catch_warnings():
        names = run("privacy-warnings", tmp_path, monkeypatch)
    assert 0.9 < names["ledger"].spent().epsilon <= 2.0
    assert names["refused"].startswith("random_state=7: ")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        exec(blocks("privacy-warnings")[2], names)
        names["SGBDTRegressor"](schema=names["schema"], random_state=7, n_estimators=1).fit(names["X"], names["y"])
    assert heard == []


@pytest.mark.slow  # the page's own examples, as they stand
def test_several_classes(tmp_path, monkeypatch):
    names = run("several-classes", tmp_path, monkeypatch)
    assert names["declared"].classes_.tolist() == ["high", "low", "middle"]
    assert names["estimated"].privacy_.epsilon <= 2.0
    assert names["ledger"].spent().epsilon <= 4.0


@pytest.mark.slow  # the page's own examples, as they stand
def test_rare_classes(tmp_path, monkeypatch):
    names = run("rare-classes", tmp_path, monkeypatch)
    model, X, rare = names["model"], names["X"], np.mean(names["y"] == "yes")
    assert 0.04 < rare < 0.08
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(rare, abs=0.02)
    assert np.mean(model.predict(X) == "yes") > 1.5 * rare
    assert model.plan_.class_weights == (1.0, 10.0)


@pytest.mark.slow  # the page checks its trainer with a hundred fits
def test_write_a_trainer(tmp_path, monkeypatch, capsys):
    names = run("write-a-trainer", tmp_path, monkeypatch)
    schema = lw.Schema.uniform(0, 1, n_features=1, target=lw.Numeric("y", 0, 1))
    assert names["SYSTEM"].for_target(schema) is names["MeanRegressor"]
    assert names["model"].predict(names["X"])[0] == pytest.approx(3.0, abs=0.5)
    said = capsys.readouterr().out
    assert "15 of 16 checks passed, 0 did not" in said
    assert "estimated schema: does not apply" in said


@pytest.mark.slow  # the page's own examples, as they stand
def test_choose_a_schema(tmp_path, monkeypatch):
    names = run("choose-a-schema", tmp_path, monkeypatch)
    schema = names["schema"]
    assert lw.Schema.from_json(schema.to_json()) == schema
    drawn = "".join(f"# {line}\n" for line in str(names["draft"]).splitlines())
    assert drawn in blocks("choose-a-schema")[0]
    assert isinstance(names["drafted"], lw.Schema)
    assert set(names["visits"]["postcode"].value_counts().index[:3]) == {"1010", "2020", "3030"}
    assert isinstance(names["partly"], lw.SchemaDraft)


@pytest.mark.slow  # the page's own examples, as they stand
def test_export_a_model(tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what shap imports
        names = run("export-a-model", tmp_path, monkeypatch)
    expected = names["model"].predict(names["X"])
    assert np.allclose(np.clip(names["found"], 0, 3_000), expected, rtol=1e-5)
    assert np.allclose(names["rent"][:, 0], expected, rtol=1e-6)
    assert names["card"].startswith("---\nlicense: ")
    assert "| R2 on 500 flats | 0.81 |" in (tmp_path / "rent" / "README.md").read_text()
    assert np.allclose(names["values"].sum(axis=1) + names["explainer"].expected_value, names["found"], rtol=1e-4)


@pytest.mark.slow  # the page's own examples, as they stand
def test_log_to_mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a database needs the whole of MLflow
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tmp_path.as_uri())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of MLflow
        names = run("log-to-mlflow", tmp_path, monkeypatch)
    model, client = names["model"], names["mlflow"].MlflowClient()
    np.testing.assert_array_equal(names["served"].predict(names["X"]), model.predict(names["X"]))
    data = client.get_run(names["run"].info.run_id).data
    assert data.metrics == {"epsilon": model.privacy_.epsilon, "delta": 1e-6}
    assert data.tags["ledger_head"] == model.privacy_.ledger_head
    assert {each.path for each in client.list_artifacts(names["run"].info.run_id)} == {"card.md", "ledger.jsonl"}


@pytest.mark.slow  # the page's own examples, as they stand
def test_choose_a_trainer(tmp_path, monkeypatch):
    names = run("choose-a-trainer", tmp_path, monkeypatch)
    assert 0.999 < names["pure"].privacy_.epsilon <= 1.0
    assert (names["pure"].privacy_.delta, names["published"].plan_.n_estimators) == (0.0, 50)
    assert 1.5 < names["gain"] < 5.0
    assert names["noise"][1] < 0.95 * names["noise"][0]
    assert any("exactly 5 of 50" in text for text in names["allocated"].privacy_.assumptions)
    assert names["model"].score(names["X"], np.where(names["label"] > 0.5, "yes", "no")) > 0.8


def test_pipelines(tmp_path, monkeypatch):
    names = run("pipelines", tmp_path, monkeypatch)
    assert set(names["found"]) == {"standardscaler"}
    assert names["pipe"][-1].n_features_in_ == len(names["encoder"].schema_out_.features) == 4


@pytest.mark.slow  # the page's own examples, as they stand
def test_cross_validate(tmp_path, monkeypatch, capsys):
    names = run("cross-validate", tmp_path, monkeypatch)
    assert "5 fits of epsilon 1 each and their scores cost epsilon 2.529 together" in capsys.readouterr().out
    assert names["result"].epsilon == names["plan"].quote.epsilon
    assert names["result"].scores.mean_test_score > 0.8
    assert names["search"].plan.n_fits == 9
    assert lw.verification.verify_ledger("study.ledger.jsonl").grants == 3


def test_audit_over_time(tmp_path, monkeypatch, capsys):
    names = run("audit-over-time", tmp_path, monkeypatch)
    assert "claim refuted after 48 updates" in capsys.readouterr().out
    assert len(names["noted"]) == 64


@pytest.mark.slow  # the page's own examples, as they stand
def test_audit_a_mechanism(tmp_path, monkeypatch):
    result = run("audit-a-mechanism", tmp_path, monkeypatch)["result"]
    assert result.rejected
    assert 1.9 < result.epsilon_lower <= 2.0


@pytest.mark.slow  # the page's own examples, as they stand
def test_audit_a_model(tmp_path, monkeypatch):
    audit = run("audit-a-model", tmp_path, monkeypatch)["audit"]
    # Of any noise: the unconditional bound is expected at 1.5, and the Gaussian one at 3.5 with a deviation of .3.
    assert not audit.rejected
    assert 2.0 < audit.epsilon_lower < 5.0


def test_attack_a_model(tmp_path, monkeypatch, capsys):
    names = run("attack-a-model", tmp_path, monkeypatch)
    assert all(reading.auc > 0.6 for reading in names["found"]["a deep tree"] if reading.attack != "lira offline")
    # 200 rows of either kind: four standard deviations of .029, and what epsilon 1 allows, .06.
    assert all(abs(reading.auc - 0.5) < 0.18 for reading in names["found"]["S-GBDT, epsilon 1"])
    assert 0.01 < names["most"] < 0.05
    assert "not a bound on epsilon" in capsys.readouterr().out


@pytest.mark.slow  # the page's own examples, as they stand
def test_train_on_files(tmp_path, monkeypatch, capsys):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    (tmp_path / "rows").mkdir()
    rows = {"length": rng.random(50), "sex": rng.choice(["M", "F", "I"], 50), "rings": rng.integers(1, 29, 50)}
    pq.write_table(pa.table({**rows, "another": rows["rings"]}), tmp_path / "rows" / "1.parquet")
    names = run("train-on-files", tmp_path, monkeypatch)
    assert len(names["predicted"]) == 50
    assert len(capsys.readouterr().out.splitlines()) == 2  # no rows, and 50 of them
    assert not (tmp_path / "scratch").exists()


@pytest.mark.slow  # a cluster, in threads
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own use of pandas
def test_train_on_a_cluster(tmp_path, monkeypatch):
    distributed = pytest.importorskip("dask.distributed")
    threads = functools.partial(distributed.LocalCluster, processes=False)
    monkeypatch.setattr(distributed, "LocalCluster", threads)
    names = run("train-on-a-cluster", tmp_path, monkeypatch)
    assert names["cluster"].scheduler_address.startswith("tls://")
    assert names["ledger"].spent().epsilon == names["model"].privacy_.epsilon <= 1.0
    assert len(list((tmp_path / "predictions").glob("*.parquet"))) == 6


@pytest.mark.slow  # ray starts: 20 to 60 s
def test_train_in_a_federation(tmp_path, only_ray):
    page = tmp_path / "page.py"
    page.write_text("\n".join(blocks("train-in-a-federation")))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", str(page)], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    told = ran.stdout
    assert ran.returncode == 0, f"{told}\n{ran.stderr}"
    assert float(told.splitlines()[0]) == pytest.approx(1.0, abs=1e-6)
    assert "True" in told.splitlines()
    assert "the server saw exact sums over all owners" in told
    assert "each owner added a share of the noise" in told
    assert "BudgetExceeded" in told.splitlines()[-1]


def test_the_servers_certificate_is_valid_for_its_own_processes():
    """A SuperLink's process that starts server apps connects to 127.0.0.1, and checks the certificate for it."""
    text = (PAGES / "deploy-a-federation.md").read_text(encoding="utf-8")
    names = re.search(r'printf "subjectAltName=([^"]*)" > server\.ext', text)
    assert names
    assert names[1].split(",") == ["DNS:server.example.org", "IP:127.0.0.1"]


def test_the_app_of_a_trial_has_rows_of_the_servers_schema(tmp_path, monkeypatch):
    from types import SimpleNamespace

    _, server, _, trial = blocks("deploy-a-federation")
    names, own = {}, {}
    exec(compile(server, "server.py", "exec"), names)
    monkeypatch.setenv("HOME", str(tmp_path))
    exec(compile(trial, "client.py", "exec"), own)
    X, y = own["rows"](SimpleNamespace(node_config={"partition-id": 1}))
    assert tuple(X.columns) == tuple(each.name for each in names["schema"].features)
    assert set(y) == set(names["schema"].target.categories)
    names["schema"].check(X, y)
    assert own["FOLDER"] == tmp_path / "trial"
    assert [type(each["app"]).__name__ for each in (names, own)] == ["ServerApp", "ClientApp"]


@pytest.mark.slow  # a SuperLink and three nodes of Flower: 60 to 120 s
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Flower's and typer's
def test_deploy_a_federation(tmp_path):
    import pandas as pd

    from benchmarks.flower_processes import Deployment
    from ledgerwood.trainers import SGBDTClassifier

    owner, server, client, _ = blocks("deploy-a-federation")
    generator = np.random.default_rng(0)
    commands = []
    for number in range(3):
        place = tmp_path / f"hospital-{number}"
        place.mkdir()
        (place / "owner.py").write_text(f"import os\nos.chdir({str(place)!r})\n{owner}")
        age = generator.uniform(18, 100, 900)
        lines = ["age,pressure,smokes,readmitted"]
        lines += [f"{each},{generator.normal(130, 20)},no,{'yes' if each > 35 else 'no'}" for each in age]
        (place / "patients.csv").write_text("\n".join(lines))
        commands.append([str(place / "owner.py")])
    with Deployment(tmp_path, commands) as flower:
        app = flower.make_app(
            "hospitals", "", clients=3, model=str(tmp_path / "model"), parts=(".server:app", ".client:app")
        )
        (app / "hospitals" / "server.py").write_text(server)
        (app / "hospitals" / "client.py").write_text(client)
        assert flower.finished(flower.start_app(app), 400)[0] == "finished:completed", flower.log("link")
    model = SGBDTClassifier.load(tmp_path / "model")
    asked = pd.DataFrame({"age": np.linspace(18, 100, 100), "pressure": 130.0, "smokes": "no"})
    assert set(model.predict(asked)) <= {"no", "yes"}
    # Four of five rows say yes, and a model that has learned nothing says .5. The noise is fresh; five trees may not
    # even ask for the age: over 1,000 fits this mean was .726 with a standard deviation of .016, and .673 at the least.
    assert model.predict_proba(asked)[:, 1].mean() > 0.58
    assert model.privacy_.epsilon == pytest.approx(1.0, abs=1e-6)
    for number in range(3):
        spent = lw.Ledger.open(tmp_path / f"hospital-{number}" / "patients.ledger.jsonl").spent()
        assert spent.epsilon == pytest.approx(1.0, abs=1e-6)


def run_tutorial(page, folder, monkeypatch, shelf="tutorials"):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "agg")
    text = (ROOT / "docs" / shelf / f"{page}.md").read_text()
    names = {}
    for cell in re.findall(r"```\{code-cell\} python\n(?::tags:[^\n]*\n)?(.*?)```", text, flags=re.DOTALL):
        exec(compile(cell, f"{page}.md", "exec"), names)
    return names


TUTORIALS = {
    "auditing", "big-table", "choosing-epsilon", "data-frames", "first-model", "noise-for-sgd", "plug-in-trainer",
    "team-ledger", "three-hospitals", "tuning",
}  # fmt: skip
"""The documentation's build runs all of them; some have a test of what they say."""


def test_every_tutorial_is_covered_here():
    assert {path.stem for path in (ROOT / "docs" / "tutorials").glob("*.md")} - {"index"} == TUTORIALS


@pytest.mark.slow  # the page's own cells, as they stand
def test_first_model(tmp_path, monkeypatch, capsys):
    names = run_tutorial("first-model", tmp_path, monkeypatch)
    assert names["model"].privacy_.epsilon <= 2.0
    assert "entry 1" in capsys.readouterr().out  # the line that was changed


@pytest.mark.slow  # 11 fits of three owners: 30 to 120 s
def test_three_hospitals(tmp_path, monkeypatch, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.close("all")  # another page's
    names = run_tutorial("three-hospitals", tmp_path, monkeypatch)
    told = capsys.readouterr().out
    assert names["model"].privacy_.epsilon == pytest.approx(1.0, abs=1e-6)
    assert names["report"].verdict == "confirmed"
    assert [[one.draws for one in each.sessions] for each in names["report"].clients] == [[100]] * 3
    assert "owner 2: BudgetExceeded" in told
    assert told.count("hospital A: spent epsilon 1.000 of 3.0") == 2  # the refused fit cost nothing
    # A reader's noise is fresh, so that any score may come out; the picture has to show it. What the page says of many
    # fits is tested below.
    assert {len(own) for own in names["scores"].values()} == {names["FITS"]}
    assert len(names["scores"]) == 5 * len(names["EPSILONS"])
    bottom, top = pyplot.figure(pyplot.get_fignums()[0]).axes[0].get_ylim()
    assert all(bottom < score < top for own in names["scores"].values() for score in own)
    for sent, true in zip(names["wire"].sent[0], names["true"][:3], strict=True):
        assert not set(sent.view(np.int64)) & set(true)
    assert len(pyplot.get_fignums()) == 2
    pyplot.close("all")


@pytest.mark.slow  # 60 fits, with seeds: the page's sentences on privacy's cost rest on many fits
def test_three_hospitals_gain_what_the_page_says():
    text = (ROOT / "docs" / "tutorials" / "three-hospitals.md").read_text()
    names = {}
    for cell in re.findall(r"```\{code-cell\} python\n(?::tags:[^\n]*\n)?(.*?)```", text, flags=re.DOTALL)[:3]:
        exec(compile(cell, "three-hospitals.md", "exec"), names)
    hospitals = {**names["hospitals"], "together": names["pooled"]}
    scores = {
        name: [names["estimator"](1.0, seed).fit(*rows).score(names["X_test"], names["y_test"]) for seed in range(15)]
        for name, rows in hospitals.items()
    }
    median = {name: float(np.median(own)) for name, own in scores.items()}
    row = dict(re.findall(r"^\| (A|B|C|together)(?: alone)? \|[^|]*\| (\.\d+) ", text, flags=re.MULTILINE))
    assert median == pytest.approx({name: float(value) for name, value in row.items()}, abs=0.03)
    gains = {name: median["together"] - median[name] for name in "ABC"}
    assert abs(gains["A"]) < 0.02 < gains["C"] < gains["B"]
    assert median["together"] < names["not_private"]["A"]


def test_pictures_need_no_network_and_have_texts():
    pages = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    for path in (ROOT / "docs").rglob("*.svg"):
        picture = ET.fromstring(path.read_text())
        space = "{http://www.w3.org/2000/svg}"
        assert picture.find(f"{space}title").text
        assert picture.find(f"{space}desc").text
        assert all(float(each.get("font-size")) >= 13 for each in picture.iter(f"{space}text"))
        assert "http" not in path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert re.search(rf"\{{figure\}} (\w+/)?{re.escape(path.name)}\n", pages)


def test_come_from_spark(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    model = run("come-from-spark", tmp_path, monkeypatch)["model"]
    assert model.privacy_.epsilon <= 1.0
    assert len(model.predict("rows")) == 2000


@pytest.mark.slow  # runs a whole page
def test_train_on_sparse_rows(tmp_path, monkeypatch, capsys):
    names = run("train-on-sparse-rows", tmp_path, monkeypatch)
    assert names["model"].privacy_.epsilon <= 1.0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 4  # three rows' probabilities, and three classes
    assert set(told[3]) <= set("[] TrueFalse")


def test_train_on_data_frames(tmp_path, monkeypatch):
    length = np.random.default_rng(0).uniform(0, 1, 200)
    lines = [f"{value},{'MFI'[i % 3]},{1 + round(20 * value)}" for i, value in enumerate(length)]
    (tmp_path / "abalone.csv").write_text("length,sex,rings\n" + "\n".join(lines) + "\n")
    names = run("train-on-data-frames", tmp_path, monkeypatch)
    assert names["model"].privacy_.epsilon <= 1.0
    report = lw.verification.verify_ledger("study.ledger.jsonl", head=names["model"].privacy_.ledger_head)
    assert report.grants == 1


def test_verify_a_ledger(tmp_path, monkeypatch):
    ledger = lw.Ledger(lw.Budget(epsilon=1.0, delta=0.0, adjacency=lw.Adjacency.ADD_REMOVE), unit=lw.PrivacyUnit.ROW)
    ledger.spend(lw.PureEvent(epsilon=0.25, adjacency=lw.Adjacency.ADD_REMOVE), purpose="a count")
    ledger.save(tmp_path / "run.ledger.jsonl")
    assert run("verify-a-ledger", tmp_path, monkeypatch)["report"].epsilon_readded == 0.25


def test_team_ledger(tmp_path, monkeypatch):
    names = run("team-ledger", tmp_path, monkeypatch)
    assert lw.verification.verify_ledger(names["url"], dataset="adult-2026").grants == 1
    assert names["hers"].epsilon == pytest.approx(0.1)
    assert 0.0 < names["left"].epsilon == pytest.approx(3.0 - names["grant"].charge.epsilon)


def test_learn_on_streams(tmp_path, monkeypatch):
    generator = np.random.default_rng(0)
    for month, people in (("january", range(200)), ("february", range(150, 300))):
        rows = [f"p{person},{generator.integers(100)},{generator.integers(50)},{100 + person}" for person in people]
        (tmp_path / f"{month}.csv").write_text("person,age,visits,cost\n" + "\n".join(rows) + "\n")
    model = run("learn-on-streams", tmp_path, monkeypatch)["model"]
    assert len(model.ensemble_.trees) == 80
    assert model.privacy_.epsilon <= 1.0
    with lw.curator.RowVault.open(tmp_path / "clinic.vault") as vault:
        assert (vault.claims, vault.draw) == (2, model.stream_.draw)
        assert len(vault._contents.units) == 300


@pytest.mark.slow  # the page's own examples, as they stand
def test_bring_a_statistic(tmp_path, monkeypatch, capsys):
    names = run("bring-a-statistic", tmp_path, monkeypatch)
    assert names["count"] == pytest.approx(20_000, abs=200)
    truth = np.corrcoef(np.clip(names["X"], [0, 0, -3], [90, 40_000, 3]).T)
    found = names["covariance"] / np.outer(names["spread"], names["spread"])
    np.testing.assert_allclose(found, truth, atol=0.06)  # the noise moves them by .006 to .008, as a standard deviation
    printed = capsys.readouterr().out
    assert "not proven here" in printed
    assert "8 of 8 checks passed, 0 did not" in printed


@pytest.mark.slow  # the page's own examples, as they stand
def test_ask_a_table(tmp_path, monkeypatch):
    names = run("ask-a-table", tmp_path, monkeypatch)
    assert names["count"] == pytest.approx(5_000, abs=200)
    assert names["mean"] == pytest.approx(45.0, abs=3.0)
    assert names["median"] == pytest.approx(45.0, abs=6.0)
    assert names["quartiles"] == pytest.approx((35.0, 45.5, 55.5), abs=3.0)
    assert 8_000 < names["bounds"][1] <= 1e7
    assert set(names["seen"]) == {"rome", "oslo", "bergen"}
    spent = names["ledger"].spent()
    assert 0.0 < spent.epsilon <= 3.0
    assert spent.delta <= 1e-6
    assert names["narrower"].column.high == names["bounds"][1]


@pytest.mark.slow  # the page's own examples, as they stand
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of a peer's search over orders
def test_interop(tmp_path, monkeypatch):
    pytest.importorskip("dp_accounting", reason="needs the extra: oracle")
    pytest.importorskip("autodp", reason="needs the extra: oracle")
    names = run("interop", tmp_path, monkeypatch)
    assert 0.999 * names["theirs"] <= names["epsilon"] <= 1.2 * names["theirs"]
    assert names["both"].epsilon(1e-5) == pytest.approx(names["by_autodp"], rel=0.01)


def cited_pages():
    """Every page, with its anchor if any, that a docstring or comment of the package names."""
    for path in sorted((ROOT / "ledgerwood").rglob("*.py")):
        for page, anchor in re.findall(r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?", path.read_text()):
            yield path.relative_to(ROOT).as_posix(), page, anchor


def test_every_proof_that_the_code_names_is_there():
    missing = [
        (source, page, anchor)
        for source, page, anchor in cited_pages()
        if not (ROOT / page).is_file() or (anchor and f"({anchor})=\n" not in (ROOT / page).read_text())
    ]
    assert missing == []


@pytest.mark.slow  # the page's own examples, as they stand
def test_tune_privately(tmp_path, monkeypatch):
    generator = np.random.default_rng(0)
    X = generator.uniform(0, 1, (300, 2))
    rows = [f"{a},{b},{'yes' if a > 0.4 else 'no'}" for a, b in X]
    (tmp_path / "loans.csv").write_text("income,age,repaid\n" + "\n".join(rows) + "\n")
    names = run("tune-privately", tmp_path, monkeypatch)
    assert names["search"].privacy_.epsilon <= 1.0
    assert lw.verification.verify_ledger("loans.ledger.jsonl").draws == 1
    assert names["ledger"].spent().epsilon == lw.price(names["event"]).epsilon(1e-6)
    assert names["best"] in names["thresholds"]


def test_every_fence_is_closed_before_the_next_one_opens():
    for page in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]:
        fences = [line for line in page.read_text().splitlines() if line.startswith("```")]
        assert [line for line in fences[1::2] if line != "```"] == [], page
        assert len(fences) % 2 == 0, page


@pytest.mark.slow  # the page's own examples, as they stand
def test_test_your_mechanism(tmp_path, monkeypatch, capsys):
    names = run("test-your-mechanism", tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    bound = float(re.search(r"epsilon >= ([\d.]+) at delta 0", printed)[1])
    assert 1.5 < bound <= 2.05
    assert names["wrong"].ratio == float("inf")


def test_every_tutorial_says_what_it_teaches_draws_and_ends_with_what_to_try():
    for page in sorted(TUTORIALS):
        text = (ROOT / "docs" / "tutorials" / f"{page}.md").read_text()
        assert "**You will learn** to" in text, page
        assert "\n## What to try next\n" in text, page
        assert "plt.subplots(" in text or "Display.from_" in text, page
        assert "minutes to read." in text, page


@pytest.mark.parametrize("section", ["tutorials", "how-to", "explanation", "reference", "benchmarks"])
def test_every_page_has_a_card_in_its_section(section):
    folder = ROOT / "docs" / section
    cards = re.findall(r"^([\w-]+) \| \w", (folder / "index.md").read_text(), flags=re.MULTILINE)
    assert sorted(cards) == sorted({path.stem for path in folder.glob("*.md")} - {"index"})


def test_no_label_stands_on_two_pages():
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.parent.name not in {"errata", "_build"}]
    labels = [label for page in pages for label in re.findall(r"^\(([\w-]+)\)=$", page.read_text(), flags=re.MULTILINE)]
    assert sorted({label for label in labels if labels.count(label) > 1}) == []
