"""The help of every command: its examples run as they stand, and shells complete its words."""

import contextlib
import csv
import functools
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.cli.commands import app
from ledgerwood.report.printing import EXIT_CODES
from ledgerwood.report.progress import working

RUNNER = CliRunner()
A = lw.Adjacency.ADD_REMOVE
ROOT = Path(__file__).resolve().parents[1]
SLOW = {"train", "audit model", "audit mechanism", "demo", "errata"}
"""Commands whose examples train, or draw a hundred thousand outputs."""
WRITES_TEXT = {"schema draft"}
"""Commands that print no figures, but a file for a person to fill in."""
SERVES = {"dashboard"}
"""Commands that run until they are interrupted: their own tests start them."""
SAMPLER = "def sampler(dataset, n, rng):\n    return dataset[0] + rng.laplace(scale=2.0, size=n)\n"
"""With twice the noise that the examples claim: a claim that is only just right is refuted once in twenty times."""


def commands(place=None, name=""):
    """Every command of the program, by its words."""
    place = typer.main.get_command(app) if place is None else place
    if not hasattr(place, "commands"):
        return {name: place}
    found = {}
    for word, one in place.commands.items():
        found |= commands(one, f"{name} {word}".strip())
    return found


COMMANDS = commands()


@functools.cache
def lines_of(name):
    """The examples of a command, as its help prints them."""
    result = RUNNER.invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    _, _, examples = result.stdout.partition("\nExamples:\n")
    return [line for line in examples.replace("\\\n", " ").splitlines() if line.strip()]


EXAMPLES = [
    pytest.param(name, line, marks=[pytest.mark.slow] if name in SLOW else [])  # fits, and many draws
    for name in COMMANDS
    if name not in SERVES
    for line in lines_of(name)
]


def test_every_command_is_found():
    assert {"sigma", "price", "plan", "train", "predict", "demo", "errata", "schema check", "audit ledger"} < {
        *COMMANDS
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_and_the_choice_of_json(name):
    lines = lines_of(name)
    assert lines, f"the docstring of `ledgerwood {name}` needs a section 'Examples:'"
    assert all(f"ledgerwood {name}" in line for line in lines)
    assert ("--json" in {word for option in COMMANDS[name].params for word in option.opts}) != (name in WRITES_TEXT)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with what the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    generator = np.random.default_rng(1)
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["person", "size", "colour", "sold"])
        for place, size in enumerate(generator.uniform(0, 10, 300).tolist()):
            writer.writerow([f"p{place}", size, "red" if size > 3 else "blue", "yes" if size > 5 else "no"])
    arrow = pytest.importorskip("pyarrow.csv")
    import pyarrow.parquet

    pyarrow.parquet.write_table(arrow.read_csv(folder / "rows.csv"), folder / "rows.parquet")
    features = (lw.Numeric("size", 0, 10), lw.Categorical("colour", ("red", "blue")))
    schema = lw.Schema(features=features, target=lw.Categorical("sold", ("no", "yes")))
    (folder / "schema.json").write_text(schema.to_json())
    (folder / "laplace.py").write_text(SAMPLER)
    (folder / "pair.json").write_text("[[0.0], [1.0]]")
    key = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey.generate()
    from cryptography.hazmat.primitives import serialization as parts

    text = key.private_bytes(parts.Encoding.PEM, parts.PrivateFormat.PKCS8, parts.NoEncryption())
    (folder / "key.pem").write_bytes(text)
    budget = lw.Budget(epsilon=1.0, delta=1e-5, adjacency=A)
    with lw.Ledger.open(
        f"sqlite:///{folder}/team.db", dataset="study", budget=budget, unit=lw.PrivacyUnit.ROW
    ) as ledger:
        ledger.spend(lw.PureEvent(epsilon=0.25, adjacency=A), purpose="a count")
        ledger.save(folder / "study.jsonl")
    small = ["--epsilon", "1", "--delta", "1e-6", "--system", "sgbdt", "--n-estimators", "2", "--max-depth", "1"]
    paths = [f"{folder}/rows.csv", "--schema", f"{folder}/schema.json", "--out", f"{folder}/model"]
    result = RUNNER.invoke(app, ["train", *paths, *small])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """A copy of it, as the current folder."""
    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path / "here"


def pasted(line):
    """Runs a line as a shell would: pipes, one file as standard input; the result of its last command."""
    given = b""
    for part in line.split("|"):
        words = shlex.split(part)
        if words[0] in ("cat", "head"):
            given = Path(words[-1]).read_bytes()
            continue
        if "<" in words:
            given = Path(words[-1]).read_bytes()
            words = words[: words.index("<")]
        assert words[0] == "ledgerwood"
        result = RUNNER.invoke(app, words[1:], input=given)
        given = result.stdout_bytes
    return result


@pytest.mark.parametrize(("name", "line"), EXAMPLES)
def test_examples_run_as_they_stand(name, line, place):
    if "--out model" in line:
        shutil.rmtree("model")
        Path("model.ledger.jsonl").unlink()
    result = pasted(line)
    assert result.exit_code == 0, result.output
    if "--json" in line:
        json.loads(result.stdout)
    assert not [path for path in place.parent.iterdir() if path.name.startswith("ledgerwood-") and name != "demo"]


def test_the_program_and_its_manual_give_the_same_exit_codes():
    said = " ".join(RUNNER.invoke(app, ["--help"]).stdout.split())
    table = (ROOT / "docs" / "how-to" / "command-line.md").read_text()
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in said
        assert f"| {code} | {meaning} |" in table


# --------------------------------------------------------------------------------------------------- standard input


def test_a_file_of_rows_is_known_by_its_first_bytes(place):
    options = ["predict", "model", "-", "--json"]
    found = [RUNNER.invoke(app, options, input=(place / f"rows.{kind}").read_bytes()) for kind in ("csv", "parquet")]
    assert json.loads(found[0].stdout) == json.loads(found[1].stdout)
    assert len(json.loads(found[0].stdout)) == 300


def test_standard_input_is_one_file(place):
    result = RUNNER.invoke(app, ["schema", "check", "-", "--schema", "-"], input=b"{}")
    assert result.exit_code == 2
    assert "standard input is read once" in result.stderr


# --------------------------------------------------------------------------------------------------------- progress


def screen(after, terminal=True):
    """What `working` shows of a step that takes a fifth of a second."""
    file = io.StringIO()
    with working("counting", console=Console(file=file, force_terminal=terminal), after=after) as done:
        done(1234)
        time.sleep(0.2)
    return file.getvalue()


def test_long_work_is_shown_on_a_terminal_and_short_work_is_not():
    assert "counting: 1,234" in screen(after=0.0)
    assert screen(after=60.0) == ""
    assert screen(after=0.0, terminal=False) == ""


@pytest.mark.slow  # a process with a terminal of its own, which trains
def test_progress_is_on_standard_error_and_results_on_standard_output(place):
    pty = pytest.importorskip("pty")
    program = "import sys; sys.argv[0] = 'ledgerwood'; from ledgerwood.cli.commands import main; main()"
    words = [
        "train",
        "rows.csv",
        "--schema",
        "schema.json",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--out",
        "m",
        "--json",
    ]
    ours, theirs = pty.openpty()
    whole = [sys.executable, "-c", program, *words, "--out", "m", "--json"]
    with subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=theirs) as run:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # the terminal is closed with the process
            while part := os.read(ours, 4096):
                seen += part
        assert json.loads(run.communicate()[0])["estimator"] == "PrivateBoostingClassifier"
    os.close(ours)
    assert b"PrivateBoostingClassifier" in seen
    assert b"encoded rows lie in" in seen


# ------------------------------------------------------------------------------------------------------- completion


def offered(*words):
    """What a shell is offered for the last word, by the protocol that it speaks with the program."""
    line = ["ledgerwood", *words]
    env = {"_LEDGERWOOD_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1)}
    return RUNNER.invoke(app, [], prog_name="ledgerwood", env=env).stdout.split()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("si",), ["sigma"]),
        (("audit", ""), ["mechanism", "model", "ledger"]),
        (("sigma", "--ad"), ["--adjacency"]),
        (("sigma", "--adjacency", ""), ["add-remove", "zero-out", "replace-one"]),
        (("price", "--method", "p"), ["profile", "pure", "pld"]),
        (("plan", "--system", "dp"), ["dpboost", "dpxgboost"]),
        (("plan", "--system", "sgbdt", "--preset", ""), ["default", "paper"]),
        (("plan", "--system", "sgbdt", "--set", "max_b"), ["max_bins="]),
        (("plan", "--system", "nonsense", "--set", ""), []),
        (("errata", "--only", "dpboost-sa"), ["dpboost-saved-counts"]),
        (("ledger", "show", "sqlite:///team.db", "--dataset", ""), ["study"]),
        (("ledger", "show", "study.jsonl", "--dataset", ""), ["study"]),
        (("ledger", "show", "nowhere.jsonl", "--dataset", ""), []),
    ],
)
def test_shells_complete(place, words, wanted):
    assert offered(*words) == wanted


def test_analysts_are_completed_from_the_ledger_that_pays(place):
    terms = {"budget": lw.Budget(epsilon=1.0, delta=1e-5, adjacency=A), "unit": lw.PrivacyUnit.ROW}
    lw.Ledger.open("shared.jsonl", dataset="study", **terms, analysts={"ada": 0.5, "ben": 0.5}).close()
    assert offered("train", "rows.csv", "--ledger", "shared.jsonl", "--analyst", "") == ["ada", "ben"]
    assert offered("ledger", "migrate", "shared.jsonl", "--share", "a") == ["ada="]


@pytest.mark.slow  # a process, as a shell starts one
def test_a_shell_asks_the_installed_program(place):
    program = "import sys; sys.argv = ['ledgerwood']; from ledgerwood.cli.commands import main; main()"
    env = {"_LEDGERWOOD_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "ledgerwood sigma --noise "}
    run = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **env}, capture_output=True, text=True, check=True
    )
    assert re.findall(r'"(\w+)"', run.stdout) == ["gaussian", "laplace"]
