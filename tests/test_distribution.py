"""What is published: a wheel with every file of the package and no other, which runs where nothing else is."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import ledgerwood as lw

ROOT = Path(__file__).resolve().parents[1]
NAME = f"ledgerwood-{lw.__version__}"
BESIDE = {
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "SECURITY.md",
    "LICENSE",
    "pyproject.toml",
    "PKG-INFO",
    ".gitignore",
}
pytestmark = pytest.mark.slow  # a build, and an installation into a new environment: 20 s


CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
"""An environment in which this repository is not found."""


def run(*command, **options):
    finished = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=300, env=CLEAN, **options
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


def package_files():
    files = (path for path in (ROOT / "ledgerwood").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files}


def test_both_are_accepted_by_the_index(built):
    assert {path.name for path in built.iterdir()} == {f"{NAME}.tar.gz", f"{NAME}-py3-none-any.whl"}
    said = run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir())
    assert said.count("PASSED") == 2


def test_the_wheel_is_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
        metadata = Parser().parsestr(wheel.read(f"{NAME}.dist-info/METADATA").decode())
    assert {name for name in names if not name.startswith(f"{NAME}.dist-info/")} == package_files()
    assert "ledgerwood/py.typed" in names
    assert f"{NAME}.dist-info/licenses/LICENSE" in names
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"


def test_the_source_distribution_has_what_a_wheel_is_built_from(built):
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert names == package_files() | BESIDE


def test_the_wheel_works_where_only_its_requirements_are(built, tmp_path):
    venv.create(tmp_path / "new", with_pip=True)
    programs = tmp_path / "new" / ("Scripts" if sys.platform == "win32" else "bin")
    run(programs / "python", "-m", "pip", "install", "-q", "--no-compile", built / f"{NAME}-py3-none-any.whl")
    program = (
        "import ledgerwood as lw; A = lw.Adjacency.ADD_REMOVE\n"
        "print(lw.__file__, lw.price(lw.PureEvent(epsilon=0.5, adjacency=A)).epsilon(0.0))"
    )
    home, epsilon = run(programs / "python", "-c", program, cwd=tmp_path).split()
    assert Path(home).is_relative_to(tmp_path / "new")
    assert float(epsilon) == 0.5
    assert run(programs / "ledgerwood", "--version", cwd=tmp_path) == f"ledgerwood {lw.__version__}\n"
    assert "pip install 'ledgerwood[trainers]'" in subprocess.run(
        [str(programs / "python"), "-c", "import ledgerwood as lw; lw.trainers.SGBDTClassifier"],
        capture_output=True, text=True, cwd=tmp_path, env=CLEAN, timeout=60,
    ).stderr  # fmt: skip
