"""The import package: its public names, what it must not import, and its version."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

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


@pytest.mark.slow  # a process for each import
@pytest.mark.parametrize(
    "module", ["ledgerwood", "ledgerwood.accounting", "ledgerwood.mechanisms", "ledgerwood.cli.commands"]
)
def test_light_imports_stay_light(module):
    assert not loaded_by(f"import {module}") & set(HEAVY)


@pytest.mark.slow  # a process for each extra
@pytest.mark.parametrize("name", ["Schema", "trainers.SGBDTClassifier", "curator.Table", "verification.audit_model"])
def test_a_missing_extra_says_how_to_get_it(name):
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "import ledgerwood, ledgerwood.curator\n"
        f"try:\n    ledgerwood.{name}\n"
        "except ImportError as error:\n    print(error)\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert finished.stdout == f"ledgerwood.{name} needs numba: pip install 'ledgerwood[trainers]'\n"


def test_the_version_is_stated_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert f"version: {lw.__version__}\n" in (ROOT / "CITATION.cff").read_text()


CONDA_NAMES = {"msgpack": "msgpack-python", "matplotlib": "matplotlib-base"}
"""What conda-forge calls a package otherwise than PyPI does."""
OF_TESTS = {"dev", "oracle"}


def needs(requirements):
    """Names, as conda-forge has them, and versions; extras of this package are left out."""
    found = [Requirement(each) for each in requirements if not each.startswith("ledgerwood[")]
    return {CONDA_NAMES.get(each.name, each.name): str(each.specifier) for each in found}


def of_conda(specifications):
    return dict(each.partition(" ")[::2] for each in specifications)


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())
    extras = project["project"]["optional-dependencies"]
    others = [each for name, own in extras.items() if name not in {"trainers"} | OF_TESTS for each in own]
    python = {"python": project["project"]["requires-python"].replace("3.11", "${{ python_min }}")}
    asked = recipe["requirements"]
    assert of_conda(asked["run"]) == python | needs([*project["project"]["dependencies"], *extras["trainers"]])
    assert of_conda(asked["run_constraints"]) == needs(others)
    assert of_conda(asked["host"]) == {"python": "${{ python_min }}.*", "pip": ""} | needs(
        project["build-system"]["requires"]
    )
    assert recipe["context"] == {"name": "ledgerwood", "version": lw.__version__, "python_min": "3.11"}
    assert recipe["about"]["summary"] == project["project"]["description"]
    (script,) = recipe["build"]["python"]["entry_points"]
    assert script.split(" = ") == list(*project["project"]["scripts"].items())


def test_each_version_of_python_is_named_from_the_oldest_on():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = re.findall(r"Python :: 3\.(\d+)", "\n".join(project["classifiers"]))
    assert project["requires-python"] == f">=3.{versions[0]}"
    assert list(map(int, versions)) == list(range(int(versions[0]), int(versions[-1]) + 1))


def test_no_data_file_is_part_of_the_package():
    allowed = {".py", ".typed", ".css", ".html", ".js"}
    strangers = [path for path in (ROOT / "ledgerwood").rglob("*") if path.is_file() and path.suffix not in allowed]
    assert [path for path in strangers if "__pycache__" not in path.parts and path.name != "py.typed"] == []


EXTRAS = (
    "numba", "sklearn", "joblib", "threadpoolctl", "pandas", "polars", "narwhals", "sqlalchemy", "psycopg", "pytest",
    "hypothesis", "dp_accounting", "autodp", "prv_accountant", "opendp", "matplotlib",
)  # fmt: skip
PACKAGES = sorted(".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "ledgerwood").rglob("__init__.py"))
BASE = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


def in_base_install(program):
    finished = subprocess.run([sys.executable, "-c", BASE + program], capture_output=True, text=True, cwd=ROOT)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.mark.slow  # a process of its own
def test_star_imports_of_every_package_work_in_the_base_install():
    """One process for all of them; a name that `__all__` lists there can be had."""
    program = (
        "import importlib\n"
        f"for package in {PACKAGES!r}:\n"
        "    names = {}\n"
        "    exec(f'from {package} import *', names)\n"
        "    module = importlib.import_module(package)\n"
        "    for name in getattr(module, '__all__', ()):\n"
        "        getattr(module, name)\n"
        "    print(package, 'Ledger' in names, 'verify_ledger' in names)\n"
    )
    lines = in_base_install(program).splitlines()
    assert [line.split()[0] for line in lines] == PACKAGES
    assert {line.split()[0] for line in lines if line.split()[1] == "True"} >= {"ledgerwood", "ledgerwood.accounting"}
    assert "ledgerwood.verification False True" in lines


@pytest.mark.parametrize("name", ["accounting", "mechanisms", "trainers", "verification"])
def test_the_four_packages_are_reached_by_name_and_say_what_is_public(name):
    package = getattr(lw, name)
    assert package.__name__ == f"ledgerwood.{name}"
    assert package.__all__
    assert name in lw.__all__


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_what_a_full_install_has(package):
    module = importlib.import_module(package)
    assert [name for name in getattr(module, "__all__", ()) if getattr(module, name, None) is None] == []


@pytest.mark.slow  # several fits
def test_every_trainer_says_in_the_base_install_which_extra_it_needs():
    program = (
        f"for name in {lw.trainers.__all__!r}:\n"
        "    try:\n        exec(f'from ledgerwood.trainers import {name}')\n"
        "    except ImportError as error:\n        print(error)\n"
    )
    lines = in_base_install(program).splitlines()
    assert len(lines) == len(lw.trainers.__all__)
    for line, name in zip(lines, lw.trainers.__all__, strict=True):
        (package,) = re.fullmatch(
            rf"ledgerwood\.trainers\.{name} needs (\w+): pip install 'ledgerwood\[trainers\]'", line
        ).groups()
        assert package in EXTRAS
