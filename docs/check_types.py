"""Type-checks the Python examples of the README, the how-to guides and the tutorials: `python docs/check_types.py`.

mypy sees each page as one module of a package `pages`; pyproject.toml says what is not asked of examples.
`python docs/check_types.py FOLDER` only writes the modules, for another type checker.
"""

import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

DOCS = Path(__file__).resolve().parent
SEVERAL_PROGRAMS = {"deploy-a-federation"}
"""Pages whose examples are files of separate programs, which define the same names."""
NOT_OURS = {
    r'incompatible type "\*\*dict\[str, object\]"': "mypy has one type for all values of a dict of options",
    r"Cannot infer type of lambda": "a lambda with a default, to keep a loop's variable",
    r'Cannot determine type of "theta_"': "an attribute that a fit sets",
    r'"Plan" has no attribute "noise_multiplier"': "the plan of a trainer that the page itself writes",
    r'"Event" has no attribute "event"': "an event that was read from another library",
    r'"ndarray\[.*\]" has no attribute "to_frame"': "predictions for Dask's collections are such a collection",
    r'"int" has no attribute "ravel"': "the sum of arrays",
    r'"sparray\[.*\]" is not indexable': "SciPy's base class of sparse tables",
    r'to "(hist|barh)" of "Axes"': "Matplotlib's own types",
    r"Schema \| SchemaDraft|OpenColumn": "a draft is a schema if nothing in it is open",
}
"""Errors that are let through, and why."""
_BLOCK = re.compile(
    r"^( *)```(?:python|\{code-cell\} python)\n(?: *:[\w-]+:[^\n]*\n)*(.*?)^ *```$", flags=re.MULTILINE | re.DOTALL
)


def blocks(page: Path) -> list[str]:
    """The Python examples of a page, in order."""
    return [textwrap.dedent(code) for _, code in _BLOCK.findall(page.read_text(encoding="utf-8"))]


def write_modules(folder: Path) -> int:
    """Write a module for each page, or for each program of a page, into FOLDER/pages; their number."""
    home = folder / "pages"
    home.mkdir(parents=True)
    (home / "__init__.py").touch()
    written = 0
    for page in (DOCS.parent / "README.md", *sorted(DOCS.glob("how-to/*.md")), *sorted(DOCS.glob("tutorials/*.md"))):
        found = blocks(page)
        for number, code in enumerate(found if page.stem in SEVERAL_PROGRAMS else ["\n\n".join(found)]):
            name = f"{page.parent.name}_{page.stem}_{number}" if page.parent.parent == DOCS else page.stem
            (home / f"{name.replace('-', '_')}.py").write_text(code, encoding="utf-8")
            written += 1
    return written


def main() -> int:
    """Check all of them; the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        written = write_modules(Path(folder))
        command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context"]
        finished = subprocess.run(
            [*command, str(Path(folder) / "pages")], cwd=DOCS.parent, capture_output=True, text=True, check=False
        )
    lines = [line.rpartition("/pages/")[2] for line in finished.stdout.splitlines() if ": error: " in line]
    if finished.returncode not in (0, 1) or finished.stderr:
        print(finished.stdout + finished.stderr)
        return 1
    found = [line for line in lines if not any(re.search(pattern, line) for pattern in NOT_OURS)]
    idle = [pattern for pattern in NOT_OURS if not any(re.search(pattern, line) for line in lines)]
    for line in found:
        print(line)
    for pattern in idle:
        print(f"docs/check_types.py lets {pattern!r} through, and no example needs it")
    print(f"{written} modules of examples; {len(found)} errors, {len(lines) - len(found)} that are let through")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_modules(Path(sys.argv[1]))
    else:
        sys.exit(main())
