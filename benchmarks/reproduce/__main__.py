"""Reproduce a paper: run its studies, keep what they found, and write its page.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.reproduce sgbdt|dpboost|dpxgboost|federated|privatree
     [--full | --quick] [--only study ...] [--seeds 5]

`--full` runs all studies with their seeds, stores the values below docs and writes the pages; `--quick` runs them on
few rows and prints the table, and stores nothing. With neither, the pages are written again from stored values.
"""

import argparse
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from benchmarks.reproduce import pages, pictures, results
from benchmarks.reproduce.items import Found, Item, Paper, Reading
from benchmarks.reproduce.papers import PAPERS
from benchmarks.utility import Scale

QUICK = Scale(seeds=1, rows=1_000)


def run(paper: Paper, only: list[str] | None, seeds: int | None, *, quick: bool, console: Console) -> dict[str, Found]:
    """Run studies; a full run is stored study by study, so that what was measured before a stop is kept."""
    found: dict[str, Found] = {}
    for study in paper.studies:
        if only and study.name not in only:
            continue
        own = study.seeds if seeds is None or study.seeds == 0 else seeds
        start = time.perf_counter()
        found[study.name] = study.run(QUICK if quick else replace(QUICK, seeds=max(own, 1), rows=None))
        seconds = time.perf_counter() - start
        console.print(f"{paper.key} {study.name}: {pages.in_words(seconds)}")
        if not quick:
            results.store(paper, study, found[study.name], seeds=own, seconds=seconds)
            if study.draw is not None:
                pictures.draw(paper, study.name, found[study.name])
    return found


def of_quick_run(item: Item, found: Mapping[str, Found]) -> Reading:
    """What a quick run says of an item; of some studies it has the first and the last epsilon only."""
    try:
        return item.reading(found)
    except (KeyError, ValueError):
        return Reading(ours="a quick run lacks points of this item", verdict="cannot be judged")


def shown(paper: Paper, read: Iterable[tuple[Item, Reading]]) -> Table:
    """The items and their verdicts, for a console."""
    table = Table(title=paper.title)
    for column in ("item", "printed", "ours, sound", "as printed", "verdict"):
        table.add_column(column)
    for item, reading in read:
        table.add_row(item.number, item.printed, reading.ours, reading.as_printed, reading.verdict)
    return table


def main() -> None:
    """Measure, store, write, print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", choices=[*PAPERS, "all"])
    parser.add_argument("--full", action="store_true", help="all rows and seeds; store the values and write the pages")
    parser.add_argument("--quick", action="store_true", help="few rows, to see that everything runs; stores nothing")
    parser.add_argument("--only", nargs="*", metavar="study", help="these studies only")
    parser.add_argument("--seeds", type=int, help="other than each study's own number; not for those without chance")
    given = parser.parse_args()
    console = Console()
    chosen = list(PAPERS.values()) if given.paper == "all" else [PAPERS[given.paper]]
    if given.full and given.quick:
        parser.error("--full and --quick exclude each other")
    known = {study.name for paper in chosen for study in paper.studies}
    if unknown := sorted(set(given.only or ()) - known):
        parser.error(f"unknown studies: {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    for paper in chosen:
        if given.quick or given.full:
            found = run(paper, given.only, given.seeds, quick=given.quick, console=console)
            few = ((item, of_quick_run(item, found)) for item in paper.items)
            console.print(shown(paper, few if given.quick else pages.readings(paper, results.stored(paper))))
        else:
            for name, values in results.stored(paper).items():
                pictures.draw(paper, name, values)
    if not given.quick:
        pages.write([(paper, results.stored(paper), results.runs(paper)) for paper in PAPERS.values()])


if __name__ == "__main__":
    main()
