"""The README's examples run and print what the README says; its commands are the ones that CI extracts."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from benchmarks import front_picture

README = Path(__file__).resolve().parents[1] / "README.md"


@pytest.mark.slow  # one fit, whose loops have to be compiled first where nobody did
def test_the_examples_print_what_stands_below_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(examples) == README.read_text().count("```python") == 3
    names = {}  # an example may go on where the one before it stopped
    for code, printed in examples:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, "README.md", "exec"), names)
        assert output.getvalue() == printed


def test_it_can_be_read_in_three_minutes():
    assert len(README.read_text().split()) < 700


def test_its_picture_shows_the_stored_figures():
    stored = front_picture.PAGES / "utility.svg"
    assert stored.read_text() == front_picture.picture(front_picture.stored())
    assert "docs/benchmarks/utility.svg" in README.read_text()


def test_its_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", README.read_text())
    assert len(links) > 15
    assert [link for link in links if not (README.parent / link).is_file()] == []


def test_the_two_commands_stand_on_the_first_screen():
    first_screen = README.read_text().splitlines()[:30]
    assert (
        "python3 -m venv .venv && .venv/bin/pip install -e '.[trainers]' && .venv/bin/ledgerwood demo" in first_screen
    )
    assert "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest" in first_screen


def test_ci_finds_each_command_once():
    text = README.read_text()
    for tool in ("pytest", "ledgerwood demo"):
        assert len(re.findall(rf"^python3 -m venv .*\.venv/bin/{tool}$", text, flags=re.MULTILINE)) == 1
