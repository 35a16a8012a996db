"""The constants of the recommended trees' public rule, fitted by leaving out one table after the other.

Run: LEDGERWOOD_DATA=folder python -m benchmarks.boosting_rule [--data name ...] [--seeds 2] [--quick] [--save file]
     python -m benchmarks.boosting_rule --fit file

The first command measures every depth and number of trees on every table at every budget (true ranges, delta 1e-6, 30 %
of the rows held out), and the rule's own with and without candidates between even steps and quantiles, which takes an
hour or two; it goes on where the file stops. The second one reads the file: for each table it finds the constants that
lose least on all *other* tables, and shows what they give on this one, beside the rule's own constants and the best of
the cell, which nobody can know.
"""

import argparse
import itertools
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import whole_tables
from benchmarks.boosting import EPSILONS, OURS, PLAIN, STUDIES, made
from benchmarks.measuring import is_numeric
from benchmarks.utility import WIDTH
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.errors import PrivacyWarning
from ledgerwood.trainers.boosting import rule

DEPTHS = (3, 4, 5, 6)
TREES = (256, 512, 1024)
ROWS = 12_000
"""Of larger tables some rows are taken: the rule goes by their number times mu, which the budgets vary by 40. Spread
candidates are measured on all rows: they are for the largest evidence."""
DELTA = 1e-6
SMALL = 300
"""Rows of a quick run."""
Found = dict[str, Any]


class Constants(NamedTuple):
    """Of the rule; see `ledgerwood.trainers.boosting.rule`."""

    depth_from: float
    depth_factor: float
    trees_from: float

    def choice(self, evidence: float, *, squared: bool) -> tuple[int, int]:
        """Depth and trees."""
        return (
            rule.ruled_depth(evidence, self.depth_from, self.depth_factor),
            rule.ruled_trees(evidence, "squared" if squared else "logistic", self.trees_from),
        )


OWN = Constants(rule.DEPTH_FROM, rule.DEPTH_FACTOR, rule.TREES_FROM)
GRID = tuple(
    itertools.starmap(
        Constants,
        itertools.product(
            (60.0, 125.0, 250.0, 500.0, 1000.0), (2.0, 2.4, 2.8, 3.5, 5.0), (125.0, 250.0, 500.0, 1e3, 2e3)
        ),
    )
)
"""Candidates for the constants."""
SPREAD_GRID = (0.0, 500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 4e4, math.inf)
"""Candidates for the evidence from which there are spread candidates."""


@dataclass(frozen=True)
class Cell:
    """One table at one budget.

    Args:
        table: its name.
        epsilon: of the budget.
        squared: whether the label is a number.
        evidence: what the rule goes by.
        lost: by (depth, trees): what is lost to the best of the cell, in shares of the way from trivial to not private.
        score: by (depth, trees): the mean score.
    """

    table: str
    epsilon: float
    squared: bool
    evidence: float
    lost: Mapping[tuple[int, int], float]
    score: Mapping[tuple[int, int], float]

    def of(self, constants: Constants) -> tuple[int, int]:
        """What the constants choose here."""
        return constants.choice(self.evidence, squared=self.squared)


def measure(
    names: Sequence[str], seeds: int, rows: int, path: Path | None, console: Console, *, all_rows: int | None = None
) -> Found:
    """Scores by table, budget and "depth x trees"; what the file has is not measured again.

    Args:
        names: of tables. seeds: splits of each. path: of the file. console: says which table is done.
        rows: of the tables on which depth and trees are measured.
        all_rows: of those on which spread candidates are; None for all.
    """
    found: Found = json.loads(path.read_text()) if path and path.exists() else {}
    for name in names:
        task = STUDIES["tables"][name]
        whole = task.load() if all_rows is None else task.load().some(all_rows)
        data = whole.some(rows)
        splits, every = (list(task.splits(each.rows, seeds)) for each in (data, whole))
        entry = found.setdefault(
            name, {"squared": is_numeric(data), "rows": len(splits[0][0]), "measure": task.measure, "scores": {}}
        )
        entry["all_rows"] = len(every[0][0])
        if "plain" not in entry:
            plain = [made(PLAIN, data, 0.0, DELTA, 0).fit(data.X[train], data.y[train]) for train, _ in splits]
            scores = [task.score(own, data.X[test], data.y[test]) for own, (_, test) in zip(plain, splits, strict=True)]
            entry["plain"] = float(np.mean(scores))
        settings: list[tuple[str, str, dict[str, int]]] = [
            ("scores", f"{depth} x {trees}", {"max_depth": depth, "n_estimators": trees})
            for depth, trees in itertools.product(DEPTHS, TREES)
        ]
        settings += [("spread", str(number), {"n_spread_candidates": number}) for number in (0, rule.SPREAD)]
        for epsilon, (part, key, parameters) in itertools.product(EPSILONS, settings):
            cells = entry.setdefault(part, {}).setdefault(f"{epsilon:g}", {})
            if key in cells:
                continue
            scores, (table, parts) = [], (data, splits) if part == "scores" else (whole, every)
            for train, test in parts:
                model = made(OURS, table, epsilon, DELTA, len(train)).set_params(**parameters)
                scores.append(task.score(model.fit(table.X[train], table.y[train]), table.X[test], table.y[test]))
            cells[key] = float(np.mean(scores))
            if path:
                path.write_text(json.dumps(found, indent=1) + "\n")
        console.print(f"{name}: {len(entry['scores']) * len(DEPTHS) * len(TREES)} settings")
    return found


def cells_of(found: Found) -> Iterator[Cell]:
    """The stored scores as losses."""
    for name, entry in found.items():
        trivial = 0.0 if entry["squared"] else 0.5
        for text, scores in entry["scores"].items():
            score = {(int(key.split(" x ")[0]), int(key.split(" x ")[1])): value for key, value in scores.items()}
            best, way = max(score.values()), max(entry["plain"] - trivial, 1e-3)
            budget = Budget(epsilon=float(text), delta=DELTA, adjacency=Adjacency.ADD_REMOVE)
            yield Cell(
                table=name,
                epsilon=float(text),
                squared=entry["squared"],
                evidence=rule.evidence(budget, entry["rows"]),
                lost={key: min((best - value) / way, 1.0) for key, value in score.items()},
                score=score,
            )


def loss(constants: Constants, cells: Sequence[Cell]) -> float:
    """Mean of what the constants lose, each table with the same weight."""
    tables = sorted({cell.table for cell in cells})
    return float(
        np.mean([np.mean([cell.lost[cell.of(constants)] for cell in cells if cell.table == name]) for name in tables])
    )


def fitted(cells: Sequence[Cell]) -> Constants:
    """The constants that lose least; of equals those nearest to the rule's own."""
    return min(GRID, key=lambda each: (round(loss(each, cells), 6), sum(abs(np.log(np.divide(each, OWN))))))


def left_out(cells: Sequence[Cell]) -> dict[str, Constants]:
    """For each table the constants fitted on all others."""
    return {name: fitted([cell for cell in cells if cell.table != name]) for name in sorted({c.table for c in cells})}


def spread_gains(found: Found) -> dict[str, list[tuple[float, float]]]:
    """By table: evidence, and what spread candidates add to the score, at each budget."""
    gains: dict[str, list[tuple[float, float]]] = {}
    for name, entry in found.items():
        for text, scores in entry["spread"].items():
            budget = Budget(epsilon=float(text), delta=DELTA, adjacency=Adjacency.ADD_REMOVE)
            gain = scores[str(rule.SPREAD)] - scores["0"]
            gains.setdefault(name, []).append((rule.evidence(budget, entry["all_rows"]), gain))
    return gains


def spread_gain(first: float, gains: Mapping[str, Sequence[tuple[float, float]]]) -> float:
    """Mean gain, each table with the same weight, if there are spread candidates from this evidence on."""
    return float(np.mean([np.mean([gain if at >= first else 0.0 for at, gain in own]) for own in gains.values()]))


def spread_page(found: Found) -> Table:
    """From which evidence on spread candidates gain most on all other tables, and what that gives on this one."""
    gains = spread_gains(found)
    table = Table(title="spread candidates: gain in AUC or R2, mean over budgets")
    for heading in ("table", "from evidence, fitted without it", "gain by that", f"by the rule's {rule.SPREAD_FROM:g}"):
        table.add_column(heading, justify="left" if heading == "table" else "right")
    held_out = []
    for name in sorted(gains):
        others = {other: own for other, own in gains.items() if other != name}
        first = max(SPREAD_GRID, key=lambda each, others=others: (round(spread_gain(each, others), 6), each))
        own = {name: gains[name]}
        held_out.append(spread_gain(first, own))
        table.add_row(name, f"{first:g}", f"{held_out[-1]:+.4f}", f"{spread_gain(rule.SPREAD_FROM, own):+.4f}")
    table.add_row("mean", "", f"{np.mean(held_out):+.4f}", f"{spread_gain(rule.SPREAD_FROM, gains):+.4f}")
    return table


def page(found: Found) -> Iterator[Table]:
    """What was fitted, and what it gives on the table that was left out."""
    cells = list(cells_of(found))
    without = left_out(cells)
    table = Table(title="score by constants fitted without the table / by the rule's own / the best of the cell")
    for heading in ("table", "fitted without it", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)):
        table.add_column(heading)
    for name, constants in without.items():
        own = [cell for cell in cells if cell.table == name]
        shown = [
            f"{cell.score[cell.of(constants)]:.3f} / {cell.score[cell.of(OWN)]:.3f} / {max(cell.score.values()):.3f}"
            for cell in own
        ]
        table.add_row(name, " ".join(f"{value:g}" for value in constants), *shown)
    yield table
    summary = Table(title="mean loss to the best of each cell, in shares of the way from trivial to not private")
    for heading in ("constants", "depth_from, depth_factor, trees_from", "loss"):
        summary.add_column(heading)
    held_out = np.mean([loss(without[name], [cell for cell in cells if cell.table == name]) for name in without])
    for title, text, value in (
        ("fitted without each table", "", held_out),
        ("fitted on all", " ".join(f"{each:g}" for each in fitted(cells)), loss(fitted(cells), cells)),
        ("the rule's own", " ".join(f"{each:g}" for each in OWN), loss(OWN, cells)),
    ):
        summary.add_row(title, text, f"{value:.4f}")
    yield summary
    yield spread_page(found)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or fit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=whole_tables.TABLES, default=whole_tables.TABLES)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help=f"{SMALL} rows and one seed")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--fit", type=Path)
    chosen = parser.parse_args(arguments)
    console = Console(width=WIDTH)
    if chosen.fit is None:
        warnings.simplefilter("ignore", PrivacyWarning)
        seeds, rows = (1, SMALL) if chosen.quick else (chosen.seeds, ROWS)
        found = measure(
            chosen.data, seeds, rows, chosen.save, console, all_rows=SMALL if chosen.quick else None
        )  # fmt: skip
    else:
        found = json.loads(chosen.fit.read_text())
    for table in page(found):
        console.print(table)


if __name__ == "__main__":
    main()
