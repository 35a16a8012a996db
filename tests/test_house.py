"""The house itself: no circle, no module too long, no crowded room, and contracts that a new file cannot escape."""

import ast
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ledgerwood"
LONGEST = 500
MOST_MODULES = 16
"""Of a folder, its `__init__` included."""
SCHEMA = "ledgerwood.schema.declared"
OWNERS_LOOKS = ("ledgerwood.curator.inputs.checking", "ledgerwood.curator.inputs.drafting")
"""`Schema.check` and `Schema.draft` hand tables of their owner to the curator: the two imports that point up."""


def circles(graph: grimp.ImportGraph) -> list[set[str]]:
    """Sets of modules each of which imports all others, directly or not."""
    below = {module: graph.find_downstream_modules(module) for module in graph.modules}
    return [{module, *(other for other in below[module] if module in below[other])} for module in graph.modules
            if any(module in below[other] for other in below[module])]  # fmt: skip


def test_no_modules_import_each_other():
    graph = grimp.build_graph("ledgerwood", exclude_type_checking_imports=True, cache_dir=None)
    assert circles(graph), "the owner's look is a circle, or this test sees none"
    for look in OWNERS_LOOKS:
        graph.remove_import(importer=SCHEMA, imported=look)
    assert circles(graph) == []


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_is_too_long(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("folder", sorted({path.parent for path in PACKAGE.rglob("*.py")}), ids=lambda path: path.name)
def test_no_room_is_crowded(folder):
    assert len(list(folder.glob("*.py"))) <= MOST_MODULES


def test_no_class_name_means_two_things():
    homes = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


CURATORS_ROOMS = sorted(
    path.relative_to(PACKAGE).as_posix().replace("/", ".")
    for path in (PACKAGE / "curator").rglob("*")
    if path.is_dir() and (path / "__init__.py").exists() and path.name != "queries" and "queries" not in path.parts
)
NEW = {
    # what is written into a new module: what the contracts must say of it
    **{
        f"trainers/sgbdt/peeks_{room.replace('.', '_')}.py": (
            f"import ledgerwood.{room}.new",
            f"ledgerwood.trainers.sgbdt.peeks_{room.replace('.', '_')} -> ledgerwood.{room}.new",
        )
        for room in ("curator", *CURATORS_ROOMS)
    },
    "trainers/base/prints.py": (
        "import ledgerwood.report.demo",
        "ledgerwood.trainers.base.prints -> ledgerwood.report.demo",
    ),
    "trainers/parts/loops.py": (
        "import ledgerwood.curator.kernels.new",
        "ledgerwood.trainers.parts.loops -> ledgerwood.curator.kernels.new",
    ),
    "verification/loops.py": (
        "import ledgerwood.curator.kernels.new",
        "ledgerwood.verification.loops -> ledgerwood.curator.kernels.new",
    ),
    "accounting/costs/compiled.py": ("import numba", "ledgerwood.accounting.costs.compiled -> numba"),
    "accounting/events/noise/random.py": (
        "import ledgerwood.mechanisms.base",
        "ledgerwood.accounting.events.noise.random -> ledgerwood.mechanisms.base",
    ),
    "mechanisms/choices/framed.py": ("import pandas", "ledgerwood.mechanisms.choices.framed -> pandas"),
    "curator/queries/trained.py": (
        "import ledgerwood.trainers.base.bounds",
        "ledgerwood.curator.queries.trained -> ledgerwood.trainers.base.bounds",
    ),
    "report/stored.py": ("import sqlalchemy", "ledgerwood.report.stored -> sqlalchemy"),
    "report/drawn.py": ("from matplotlib import pyplot", "ledgerwood.report.drawn -> matplotlib"),
    "verification/drawn.py": (
        "import ledgerwood.displays.style",
        "ledgerwood.verification.drawn -> ledgerwood.displays.style",
    ),
    "trainers/choosing/replayed.py": (
        "import ledgerwood.recording.opening",
        "ledgerwood.trainers.choosing.replayed -> ledgerwood.recording.opening",
    ),
    "curator/overheard.py": (
        "import ledgerwood.recording.context",
        "ledgerwood.curator.overheard -> ledgerwood.recording.context",
    ),
    "stray.py": ("", "ledgerwood.stray"),
}


@pytest.fixture(scope="module")
def said_of_new_modules(tmp_path_factory):
    """What the contracts say of a copy with a new module of every kind that they forbid."""
    copy = tmp_path_factory.mktemp("house")
    shutil.copytree(PACKAGE, copy / "ledgerwood", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for room in ("curator", *CURATORS_ROOMS):
        (copy / "ledgerwood" / room.replace(".", "/") / "new.py").touch()
    for name, (text, _) in NEW.items():
        (copy / "ledgerwood" / name).write_text(text + "\n")
    run = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=copy, env={"PYTHONPATH": str(copy), "PATH": "/usr/bin:/bin", "COLUMNS": "1000", "HOME": str(copy)},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 1, run.stdout + run.stderr
    return re.sub(r"\s+", " ", run.stdout)


@pytest.mark.slow  # several fits
@pytest.mark.parametrize("said", [said for _, said in NEW.values()])
def test_a_new_module_cannot_escape_its_contract(said, said_of_new_modules):
    assert said in said_of_new_modules
