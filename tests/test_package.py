"""The import package: its public names, what it must not import, and its version."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ledgerwood as lw

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("numba", "sklearn", "matplotlib", "narwhals", "pandas", "polars", "sqlalchemy", "psycopg")


@pytest.mark.parametrize("name", lw.__all__)
def test_every_public_name_is_there(name):
    assert getattr(lw, name) is not None
    assert name in dir(lw)


def test_all_lists_every_re_export():
    tree = ast.parse((ROOT / "ledgerwood" / "__init__.py").read_text())
    exported = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert exported | {"__version__"} == set(lw.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'epsilon'"):
        lw.epsilon


def loaded_by(statement):
    """The modules that a fresh interpreter holds after `statement`."""
    program = f"import sys; {statement}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(finished.stdout.split())


@pytest.mark.parametrize("module", ["ledgerwood", "ledgerwood.accounting", "ledgerwood.mechanisms", "ledgerwood.cli"])
def test_light_imports_stay_light(module):
    assert not loaded_by(f"import {module}") & set(HEAVY)


@pytest.mark.parametrize("name", ["Schema", "trainers"])
def test_a_missing_extra_says_how_to_get_it(name):
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "import ledgerwood\n"
        f"try:\n    ledgerwood.{name}\n"
        "except ImportError as error:\n    print(error)\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert finished.stdout == f"ledgerwood.{name} needs numba: pip install 'ledgerwood[trainers]'\n"


def test_the_version_is_stated_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert f"version: {lw.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_no_data_file_is_part_of_the_package():
    allowed = {".py", ".typed", ".css"}
    strangers = [path for path in (ROOT / "ledgerwood").rglob("*") if path.is_file() and path.suffix not in allowed]
    assert [path for path in strangers if "__pycache__" not in path.parts and path.name != "py.typed"] == []
