"""Auditing mechanisms: bounds beside other auditors', what is caught, what is accused, power, early stops, and caution.

Run: python -m benchmarks.auditing [--only bounds|catch|null|peers|power|sequential|luck ...] [--processes 2] [--large]
     [--save file] [--quick]

Seeds are constants of `benchmarks.auditing_runs`. Times are of one thread, sampling included; run `bounds` with one
process, on a quiet machine, and the others with one a core. `--large` adds a million outputs a side to `bounds` and
`peers`. `--quick` takes two seeds and 2,000 outputs a side, to see that everything runs. The pages
`benchmarks.injected_bugs` and `benchmarks.auditing_models` have the trainers' bugs and the models.
"""

import argparse
import functools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import auditing_peers
from benchmarks import auditing_studies as studies
from benchmarks.auditing_luck import luck, print_luck
from benchmarks.measuring import keep

Found = dict[str, Any]
WIDTH = 180
STUDIES = ("bounds", "catch", "null", "peers", "power", "sequential", "luck")
QUICK_SEEDS, QUICK_RUNS = 2, 2_000
LUCK_REPETITIONS = {2_000: 10, 100_000: 3}


def number(value: float | str | None, digits: int = 3) -> str:
    """A number, infinity or nothing, for a cell."""
    if value is None:
        return ""
    return str(value) if isinstance(value, str) else f"{value:.{digits}f}"


def _table(title: str, columns: Iterable[str], words: int = 1) -> Table:
    """An empty table; its first `words` columns are text."""
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < words else "right")
    return table


# ------------------------------------------------------------------------------------------------------------- tables


def print_bounds(found: Found, peers: Found, console: Console) -> None:
    """A table for each number of outputs."""
    for size, entry in found.items():
        rows = peers.get(size, {}).get("rows", {})
        table = _table(
            f"bounds at {int(size):,} outputs a side, alpha {studies.ALPHA:g}",
            ("mechanism", "assuming", "mean", "least", "unconditional", "truth", "above it", "target", "seconds",
             "processor", "best peer", "its bound"),
            2,
        )  # fmt: skip
        for name, row in entry["cases"].items():
            bound, peer = auditing_peers.best(int(size), name, rows)
            met = "" if row["target"] is None else (" met" if row["mean"] >= row["target"] else " MISSED")
            table.add_row(
                name, "" if row["assumption"] == "none" else row["assumption"], number(row["mean"], 4),
                number(row["least"], 4), number(row["unconditional"], 4), number(row["truth"], 4),
                f"{row['above the truth']} of {row['seeds']}", number(row["target"]) + met, number(row["seconds"], 2),
                number(row["processor"], 2), peer, number(bound),
            )  # fmt: skip
        console.print(table)


def print_caught(found: Found, console: Console) -> None:
    """D1 to D18."""
    table = _table(
        f"what must be caught, {found['n']:,} outputs a side, alpha {studies.ALPHA:g}",
        ("", "mechanism", "mode", "assuming", "caught", "mean bound", "truth", "seconds", "also seen by"),
        4,
    )
    for label, row in found["cases"].items():
        table.add_row(
            label, row["words"], row["numeric"], "" if row["assumption"] == "none" else row["assumption"],
            f"{row['caught']} of {row['seeds']}", number(row["mean"]), number(row["truth"]),
            number(row["seconds"], 2), ", ".join(row["seen by"]),
        )  # fmt: skip
    console.print(table)


def print_accused(found: Found, console: Console) -> None:
    """Right mechanisms, a column a level."""
    levels = list(found.values())
    table = _table(
        "what must not be refuted: refuted claims, and bounds above the pair's own loss",
        ("mechanism", "outputs a side", "truth",
         *(f"{words}, alpha {entry['alpha']:g}" for entry in levels for words in ("refuted", "too high"))),
    )  # fmt: skip
    names = list(levels[0]["cases"])
    for name in names:
        first = levels[0]["cases"][name]
        cells = []
        for entry in levels:
            row = entry["cases"][name]
            cells += [f"{row['flagged']} of {row['seeds']}", str(row["above the truth"])]
        table.add_row(
            name, f"{first['n']:,}", number(first["truth"]) + ("" if first["exact"] else " (claimed)"), *cells
        )
    table.add_section()
    totals = []
    for entry in levels:
        rows = entry["cases"].values()
        totals += [
            f"{sum(row['flagged'] for row in rows)} of {sum(row['seeds'] for row in rows)}",
            str(sum(row["above the truth"] for row in rows)),
        ]
    table.add_row("all", "", "", *totals)
    console.print(table)


def print_peers(found: Found, console: Console) -> None:
    """Bounds of each auditor, live ones first; those under a condition say which."""
    for size, entry in found.items():
        names = [case.name for case in studies.BOUNDS]
        table = _table(f"other auditors, {int(size):,} outputs a side: bounds", ("auditor", *names))
        for peer, row in entry["rows"].items():
            condition = auditing_peers.CONDITIONAL.get(peer)
            label = peer if condition is None else f"{peer} (NO BOUND: assumes {condition})"
            table.add_row(label, *(number(row.get(name, {}).get("bound"), 2) for name in names))
        table.add_section()
        for peer, stored in auditing_peers.STORED.get(int(size), {}).items():
            table.add_row(f"{peer} (stored)", *(number(stored.get(name), 2) for name in names))
        console.print(table)


def print_power(found: Found, console: Console) -> None:
    """Near misses."""
    table = _table(
        f"almost right Laplace noise, claim epsilon 1, alpha {studies.ALPHA:g}: how often it is caught",
        ("true epsilon", "outputs a side", "planned with the best event", "caught"),
    )
    for row in found["rows"].values():
        table.add_row(
            number(row["factor"], 2), f"{row['n']:,}", f"{row['planned']:.0%}",
            f"{row['caught']} of {row['seeds']}",
        )  # fmt: skip
    console.print(table)


def print_stopped(found: Found, console: Console) -> None:
    """Outputs drawn, by rule."""
    table = _table(
        f"outputs drawn until the claim is refuted, learning included; at most those for {found['n']:,} a side",
        ("mechanism", "caught, fixed", "outputs, fixed", "caught, early stop", "outputs, early stop", "of the fixed"),
    )
    for name, row in found["cases"].items():
        never, early = row["never"], row["rejected"]
        table.add_row(
            name, f"{never['caught']} of {found['seeds']}", f"{never['samples']:,.0f}",
            f"{early['caught']} of {found['seeds']}", f"{early['samples']:,.0f}",
            f"{early['samples'] / never['samples']:.1%}",
        )  # fmt: skip
    console.print(table)


def show(found: Found, console: Console) -> None:
    """Every table of which there are values."""
    if "bounds" in found:
        print_bounds(found["bounds"], found.get("peers", {}), console)
    if "peers" in found:
        print_peers(found["peers"], console)
    for study, print_study in (
        ("catch", print_caught), ("null", print_accused), ("power", print_power), ("sequential", print_stopped),
        ("luck", print_luck),
    ):  # fmt: skip
        if study in found:
            print_study(found[study], console)


# ------------------------------------------------------------------------------------------------------------ commands


def measure(study: str, *, processes: int, large: bool, quick: bool) -> Found:
    """A study's values."""
    sizes = (QUICK_RUNS,) if quick else studies.SIZES if large else studies.SIZES[:1]

    def seeds(full: int) -> int:
        return QUICK_SEEDS if quick else full

    match study:
        case "bounds":
            return {str(size): studies.bounds(size, seeds(studies.BOUND_SEEDS), processes) for size in sizes}
        case "peers":
            return {str(size): studies.beside(size) for size in sizes}
        case "catch":
            return studies.caught(seeds(studies.CATCH_SEEDS), processes, QUICK_RUNS if quick else studies.DEFAULT)
        case "null":
            run: Callable[..., Found] = functools.partial(studies.accused, seeds(studies.NULL_SEEDS), processes)
            n = QUICK_RUNS if quick else studies.NULL_RUNS
            return {f"{alpha:g}": run(alpha, n) for alpha in (studies.ALPHA, studies.CI_ALPHA)}
        case "power":
            return studies.power(seeds(studies.POWER_SEEDS), processes)
        case "luck":
            return luck({n: seeds(many) for n, many in LUCK_REPETITIONS.items()})
    return studies.stopped(seeds(studies.STOP_SEEDS), processes, QUICK_RUNS if quick else studies.DEFAULT)


def missed(found: Found) -> list[str]:
    """What falls short of what was asked for, in words; empty if nothing does."""
    words = []
    for size, entry in found.get("bounds", {}).items():
        for name, row in entry["cases"].items():
            if row["target"] is not None and row["mean"] < row["target"]:
                words.append(f"{name} at {int(size):,}: mean bound {row['mean']:.4f} below {row['target']:g}")
            allowed = studies.SECONDS.get(int(size))
            if allowed is not None and row["seconds"] > allowed:
                words.append(f"{name} at {int(size):,}: {row['seconds']:.1f} s, more than {allowed:g} s")
    for label, row in found.get("catch", {}).get("cases", {}).items():
        if row["caught"] < row["seeds"]:
            words.append(f"{label} ({row['name']}): caught with {row['caught']} of {row['seeds']} seeds")
    for entry in found.get("null", {}).values():
        for name, row in entry["cases"].items():
            if row["seeds"] == studies.NULL_SEEDS and row["flagged"] > studies.MOST_OF_200[entry["alpha"]]:
                words.append(f"{name}: refuted by {row['flagged']} of {row['seeds']} seeds at {entry['alpha']:g}")
        total = sum(row["flagged"] for row in entry["cases"].values())
        if entry["alpha"] == studies.CI_ALPHA and total > studies.MOST_IN_ALL:
            words.append(f"{total} refutations in total at {entry['alpha']:g}, more than {studies.MOST_IN_ALL}")
    return words


def main() -> int:
    """Measure, print, save; 1 if something falls short."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--large", action="store_true", help="bounds at a million outputs a side too")
    parser.add_argument("--quick", action="store_true", help="few seeds and outputs, to see that everything runs")
    parser.add_argument("--save", type=Path, help="put what was measured into this JSON file")
    given = parser.parse_args()
    console = Console(width=WIDTH)
    found: Found = {}
    for study in given.only:
        found[study] = measure(study, processes=given.processes, large=given.large, quick=given.quick)
        show({study: found[study]}, console)
        keep(given.save, {study: found[study]})
    short = [] if given.quick else missed(found)
    for line in short:
        console.print(f"MISSED {line}")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
