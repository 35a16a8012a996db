"""Renyi divergences of sampled noise against the committed ground truth of 25 digits."""

import csv
import math
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.accounting import cases, sides

TRUTH = Path(__file__).parents[2] / "tests" / "truth"
PEERS = {
    "sampled Gaussian": ("dp-accounting", "opacus", "autodp"),
    "sampled Laplace": ("autodp",),
}
Row = tuple[str, float, float, float, Fraction]
"""Family, sampling rate, noise multiplier, order, the larger direction."""


def truth(family: str) -> list[Row]:
    """The ground truth of "gaussian" or "laplace"."""
    with (TRUTH / f"renyi_{family}.csv").open(newline="") as file:
        return [
            (
                family, float(row["sampling_rate"]), float(row["noise_multiplier"]), float(row["order"]),
                max(Fraction(row["remove"]), Fraction(row["add"])),
            )
            for row in csv.DictReader(file)
        ]  # fmt: skip


def relative(rows: list[Row], values: list[float]) -> list[float | None]:
    """(value - truth) / truth; None where the value is not finite."""
    return [
        float((Fraction(value) - row[-1]) / row[-1]) if math.isfinite(value) else None
        for row, value in zip(rows, values, strict=True)
    ]


def summary(rows: list[Row], values: list[float]) -> dict[str, Any]:
    """What the table shows of one library."""
    errors = [error for error in relative(rows, values) if error is not None]
    large = [
        error
        for row, error in zip(rows, relative(rows, values), strict=True)
        if error is not None and row[-1] > Fraction(1, 10**9)
    ]
    return {
        "points": len(values),
        "nan": sum(map(math.isnan, values)),
        "inf": sum(map(math.isinf, values)),
        "not positive": sum(value <= 0.0 for value in values),
        "median": float(np.median(np.abs(errors))),
        "largest over": max(*errors, 0.0),
        "over by .001": sum(error > 1e-3 for error in errors),
        "worst under": min(*large, 0.0),
        **{f"under by {bound:g}": sum(error < -bound for error in errors) for bound in (0.0, 1e-12, 1e-9, 1e-6, 1e-3)},
    }


def _groups(rows: list[Row]) -> list[tuple[tuple[str, float, float], list[float]]]:
    return [(key, [row[3] for row in group]) for key, group in groupby(rows, key=lambda row: row[:3])]


def _ours(rows: list[Row]) -> list[float]:
    values: list[float] = []
    for (family, rate, multiplier), orders in _groups(rows):
        values.extend(cases.plan(((family, multiplier, rate, 1),)).renyi(np.array(orders)).tolist())
    return values


def _theirs(peer: str, rows: list[Row]) -> list[float]:
    groups = _groups(rows)
    questions = [sides.question("renyi", draws=[(f, s, q, 1)], orders=orders) for (f, q, s), orders in groups]
    values: list[float] = []
    for answer, (_, orders) in zip(sides.ask(peer, questions), groups, strict=True):
        values.extend(answer.get("value") or [math.nan] * len(orders))
    return values


def measure(*, slow: bool) -> list[dict[str, Any]]:
    """A record for each family and library, with the relative error at every point of the ground truth."""
    del slow
    found = []
    for family in ("gaussian", "laplace"):
        rows = truth(family)
        name = f"sampled {family.capitalize()}"
        for library in ("ledgerwood", *PEERS[name]):
            values = _ours(rows) if library == "ledgerwood" else _theirs(library, rows)
            errors = [None if error is None else float(f"{error:.3g}") for error in relative(rows, values)]
            found.append({"family": name, "library": library, **summary(rows, values), "errors": errors})
    return found


def show(console: Console, found: list[dict[str, Any]]) -> None:
    """Print the table."""
    counts = ("points", "nan", "inf", "not positive")
    more = ("over by .001", "under by 0", "under by 1e-12", "under by 1e-09", "under by 1e-06", "under by 0.001")
    table = Table(title="Renyi divergence: relative error against the ground truth (the larger direction)")
    for column in ("family", "library", *counts, "median", "largest over", "worst under, truth > 1e-9", *more):
        table.add_column(column, justify="left" if column in ("family", "library") else "right")
    for row in found:
        floats = [f"{row[key]:.1e}" for key in ("median", "largest over", "worst under")]
        table.add_row(
            row["family"], row["library"], *(str(row[key]) for key in counts), *floats, *(str(row[key]) for key in more)
        )
    console.print(table)
