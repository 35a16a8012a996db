"""The size and the shape of checkouts of this library, one column each.

python -m benchmarks.house [FOLDER ...] [--save]      # without a folder: this checkout

A checkout of an earlier commit: git worktree add ../before COMMIT.
"""

import argparse
import ast
import io
import re
import statistics
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

ESTIMATORS = (
    *(f"{system}{kind}" for system in ("SGBDT", "DPBoost", "DPXGBoost", "FederatedGBDT") for kind in ("Regressor",)),
    "PrivaTreeClassifier",
    "PrivateSearch",
)
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "house.md"
INTRODUCTION = """# Size and shape

What the code of this library consists of, at some of its commits: `python -m benchmarks.house FOLDER ... --save`, where
each folder is a checkout (`git worktree add FOLDER COMMIT`). Lines of code are those that hold neither comments nor
docstrings only. A repeated block is six lines of code in a row that stand in two places; imports do not count.

"""
REPEATED = 6
"""Lines of code in a row that count as a block."""
_NO_TOKENS = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_CIRCLES = """
import grimp
graph = grimp.build_graph("ledgerwood", exclude_type_checking_imports=True, cache_dir=None)
below = {module: graph.find_downstream_modules(module) for module in graph.modules}
circles = [{module, *(other for other in below[module] if module in below[other])} for module in graph.modules]
print(len({frozenset(circle) for circle in circles if len(circle) > 1}))
"""
_ARGUMENTS = """
import inspect, sys
from ledgerwood import trainers
print(", ".join(str(len(inspect.signature(getattr(trainers, name)).parameters)) for name in sys.argv[1:]))
"""


def code_lines(text: str) -> set[int]:
    """The numbers of the lines that hold code: no comment, no docstring, not blank."""
    strings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            strings |= set(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_TOKENS:
            found |= set(range(token.start[0], token.end[0] + 1))
    return found - strings


def repeated_blocks(texts: list[str]) -> int:
    """How many blocks of six lines of code stand in more than one place; imports do not count."""
    seen: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        lines = text.splitlines()
        code = [lines[number - 1].strip() for number in sorted(code_lines(text))]
        code = [line for line in code if len(line) > 3 and not line.startswith(("import ", "from "))]
        seen.update({tuple(code[at : at + REPEATED]) for at in range(len(code) - REPEATED + 1)})
    return sum(1 for count in seen.values() if count > 1)


def figures(root: Path) -> dict[str, str]:
    """The figures of a checkout, by what they count."""
    package = root / "ledgerwood"
    paths = sorted(package.rglob("*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    lengths = {path: len(text.splitlines()) for path, text in texts.items()}
    modules = {path: length for path, length in lengths.items() if path.name != "__init__.py"}
    folders = Counter(path.parent for path in paths)
    classes = Counter(
        node.name for text in texts.values() for node in ast.parse(text).body if isinstance(node, ast.ClassDef)
    )
    trainers = [path for path in paths if package / "trainers" in path.parents]
    longest, crowded = max(lengths, key=lambda path: lengths[path]), max(folders, key=lambda path: folders[path])
    written = re.compile(r"\b(reg_lambda|l2_lambda|damping)\b")
    return {
        "modules, with and without `__init__`": f"{len(paths)}, {len(modules)}",
        "lines": f"{sum(lengths.values()):,}",
        "lines of code": f"{sum(len(code_lines(text)) for text in texts.values()):,}",
        "median lines of a module": f"{statistics.median(modules.values()):.0f}",
        "longest module": f"{lengths[longest]} ({longest.relative_to(package)})",
        "modules below 60 lines": str(sum(length < 60 for length in modules.values())),
        "modules above 300 lines": str(sum(length > 300 for length in modules.values())),
        "most modules in a folder": f"{folders[crowded]} ({crowded.relative_to(root)})",
        "sets of modules that import each other": run(root, _CIRCLES),
        "class names with two meanings": str(sum(count > 1 for count in classes.values())),
        f"repeated blocks of {REPEATED} lines": str(repeated_blocks(list(texts.values()))),
        "lines of `trainers`": f"{sum(lengths[path] for path in trainers):,}",
        "`reg_lambda` or its other names in `trainers`": str(
            sum(len(written.findall(texts[path])) for path in trainers)
        ),
        "constructor arguments: " + ", ".join(ESTIMATORS): run(root, _ARGUMENTS, *ESTIMATORS),
    }


def run(root: Path, code: str, *arguments: str) -> str:
    """What a program prints that imports the checkout's own package."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=root, capture_output=True, text=True, check=False
    )  # fmt: skip
    return done.stdout.strip() if done.returncode == 0 else f"failed: {done.stderr.strip().splitlines()[-1]}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path()])
    parser.add_argument("--save", action="store_true", help="write docs/benchmarks/house.md, too")
    options = parser.parse_args()
    folders = [folder.resolve() for folder in options.folders]
    found = [figures(folder) for folder in folders]
    table = Table("what", *(folder.name for folder in folders))
    for what in found[0]:
        table.add_row(what, *(each[what] for each in found))
    Console(width=200).print(table)
    if options.save:
        rows = [["what", *(commit(folder) for folder in folders)], ["---"] * (1 + len(folders))]
        rows += [[what, *(each[what] for each in found)] for what in found[0]]
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        PAGE.write_text(INTRODUCTION + "\n".join(lines) + "\n", encoding="utf-8")


def commit(root: Path) -> str:
    """The short name of a checkout's commit, and its day."""
    told = ["git", "log", "-1", "--format=%h, %cs"]
    return subprocess.run(told, cwd=root, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
