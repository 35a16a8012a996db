"""The README's example runs and prints what the README says; its commands are the ones that CI extracts."""

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_example_prints_what_stands_below_it():
    ((code, printed),) = re.findall(r"```python\n(.*?)```\n```text\n(.*?)```", README.read_text(), flags=re.DOTALL)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "README.md", "exec"), {})
    assert output.getvalue() == printed


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
