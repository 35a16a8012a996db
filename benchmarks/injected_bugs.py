"""Bugs that a real project would have, in each of the five trainers, and which check finds them; in PrivaTree twice.

Run: python -m benchmarks.injected_bugs [--runs 400] [--bug name ...] [--system name ...] [--save file]

Each bug is patched into the library from outside, in turn, and every check is run on what comes out: the library's own
refusals, the verified ledger, record and replay, the distribution of the noise, what must not depend on the rows, and,
where the bug shows in one release of one tree, an audit by `--runs` fits. Seeds are fixed, and the noise is that of
`SeededRandom`, so that a run can be repeated. The command fails where a bug is found by
nothing, or the correct trainer by something.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.bug_detectors import DETECTORS, detect
from benchmarks.bug_injections import BUGS, NULL, Bug
from benchmarks.bug_systems import SYSTEMS, System
from benchmarks.measuring import keep

RUNS = 400
WIDTH = 180
Found = dict[str, Any]


def measured(bug: Bug, systems: Sequence[System], runs: int, detectors: tuple[str, ...] = DETECTORS) -> Found:
    """One row: what each detector says of each system, or why there is no such bug."""
    cells: Found = {}
    for system in systems:
        if system.name in bug.absent:
            cells[system.name] = {"absent": bug.absent[system.name]}
            continue
        start = time.perf_counter()
        said = detect(bug, system, runs, tuple(name for name in detectors if name != "audit" or bug.audited))
        cells[system.name] = {
            "said": {name: {"found": found, "words": words} for name, (found, words) in said.items()},
            "seconds": time.perf_counter() - start,
        }
    return {"words": bug.words, "systems": cells}


def beside(path: Path | None, name: str, row: Found) -> Found:
    """A row with what the file has of other systems."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}
    known = stored.get("bugs", {}).get(name, {"systems": {}})["systems"]
    systems = {**known, **row["systems"]}
    return {**row, "systems": {system.name: systems[system.name] for system in SYSTEMS if system.name in systems}}


def finders(cell: Mapping[str, Any]) -> list[str]:
    """Which detectors have found the bug."""
    return [name for name, said in cell.get("said", {}).items() if said["found"]]


def failures(found: Mapping[str, Any]) -> list[str]:
    """Bugs that nothing finds, and honest trainers that something accuses."""
    wrong = []
    for name, row in found.items():
        for system, cell in row["systems"].items():
            seen = finders(cell)
            if name == NULL.name and seen:
                wrong.append(f"{system}, correct, is rejected by: {', '.join(seen)}")
            if name != NULL.name and "absent" not in cell and not seen:
                wrong.append(f"{name}, {system}: found by nothing")
    return wrong


def table(found: Mapping[str, Any]) -> Table:
    """Bugs by systems: who finds them."""
    shown = Table(title="Injected bugs, and what finds them", show_lines=True)
    shown.add_column("bug")
    for system in SYSTEMS:
        shown.add_column(system.name)
    for name, row in found.items():
        cells = []
        for system in SYSTEMS:
            cell = row["systems"].get(system.name)
            if cell is None:
                cells.append("")
            elif "absent" in cell:
                cells.append(f"no such thing: {cell['absent']}")
            else:
                cells.append(", ".join(finders(cell)) or ("-" if name == NULL.name else "NOTHING"))
        shown.add_row(f"{name}: {row['words']}", *cells)
    return shown


def words(found: Mapping[str, Any], *, system: str) -> Table:
    """What the first detector that finds it says of each bug in one system."""
    shown = Table(title=f"In the words of the check: {system}")
    for heading in ("bug", "check", "says"):
        shown.add_column(heading)
    for name, row in found.items():
        cell = row["systems"].get(system, {})
        for seen in finders(cell)[:1]:
            shown.add_row(name, seen, _short(cell["said"][seen]["words"]))
    return shown


def _short(text: str) -> str:
    return text if len(text) <= 240 else f"{text[:237]}..."


def main() -> None:
    """Inject, look, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="fits of an audit")
    parser.add_argument("--bug", nargs="*", choices=[bug.name for bug in BUGS])
    parser.add_argument("--system", nargs="*", choices=[system.name for system in SYSTEMS])
    parser.add_argument("--save", type=Path, help="put what was found into this JSON file")
    given = parser.parse_args()
    console = Console(width=WIDTH)
    systems = [system for system in SYSTEMS if given.system is None or system.name in given.system]
    bugs = [bug for bug in BUGS if given.bug is None or bug.name in given.bug]
    found: Found = {}
    for bug in track(bugs, description="injected bugs", transient=True, console=console):
        found[bug.name] = measured(bug, systems, given.runs)
        keep(given.save, {"bugs": {bug.name: beside(given.save, bug.name, found[bug.name])}})
    console.print(table(found))
    wrong = failures(found)
    for line in wrong:
        console.print(line, style="bold red")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
