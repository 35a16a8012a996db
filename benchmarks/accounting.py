"""Renyi curves of sampled Gaussian and Laplace noise: error against the ground truth, and milliseconds, beside a peer.

Run: python -m benchmarks.accounting
"""

import csv
import json
import math
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import ledgerwood as lw
from benchmarks import peers

TRUTH = Path(__file__).parents[1] / "tests" / "truth"
ORDERS = (*np.linspace(1.1, 10.9, 99).tolist(), *map(float, range(11, 62)))
CURVES = ((0.01, 1.0), (0.1, 5.0), (0.5, 20.0))
PEER = """
import json, time
from dp_accounting import dp_event
from dp_accounting.rdp import rdp_privacy_accountant as rdp

def curve(q, s, orders):
    accountant = rdp.RdpAccountant(orders)
    accountant.compose(dp_event.PoissonSampledDpEvent(q, dp_event.GaussianDpEvent(s)))
    return [float(value) for value in accountant._rdp]

def milliseconds(q, s, orders):
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        curve(q, s, orders)
        seconds.append(time.perf_counter() - start)
    return 1e3 * min(seconds)

given = json.loads(GIVEN)
values = [curve(q, s, [a])[0] for q, s, a in given["points"]]
print(json.dumps([[milliseconds(q, s, given["orders"]) for q, s in given["curves"]], values]))
"""
"""Google's dp-accounting: the same curves timed, the same points evaluated."""


def event(family: str, sampling_rate: float, noise_multiplier: float) -> lw.Event:
    """A sampled release under add-remove."""
    kind = lw.GaussianEvent if family == "gaussian" else lw.LaplaceEvent
    leaf = kind(noise_multiplier=noise_multiplier, adjacency=lw.Adjacency.ADD_REMOVE)
    return lw.PoissonSampled(leaf, sampling_rate=sampling_rate)


def milliseconds(sampling_rate: float, noise_multiplier: float) -> float:
    """The least of some runs, warm."""
    sampled, orders, seconds = event("gaussian", sampling_rate, noise_multiplier), np.array(ORDERS), []
    for _ in range(30):
        start = time.perf_counter()
        sampled.renyi(orders)
        seconds.append(time.perf_counter() - start)
    return 1e3 * min(seconds)


def truth(family: str) -> list[dict[str, str]]:
    """The committed ground truth, 25 digits a value."""
    with (TRUTH / f"renyi_{family}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def errors(rows: list[dict[str, str]], values: list[float]) -> list[str]:
    """Cells of the accuracy table."""
    relative = [
        float((Fraction(value) - Fraction(row["remove"])) / Fraction(row["remove"]))
        for row, value in zip(rows, values, strict=True)
        if math.isfinite(value)
    ]
    return [
        str(len(values)),
        f"{max(map(abs, relative)):.1e}",
        f"{np.median(np.abs(relative)):.1e}",
        *(str(sum(error < -bound for error in relative)) for bound in (1e-12, 1e-9)),
        str(sum(value <= 0.0 or not math.isfinite(value) for value in values)),
    ]


def main() -> None:
    """Print both tables."""
    console, gaussian = Console(width=150), truth("gaussian")
    points = [[float(row[key]) for key in ("sampling_rate", "noise_multiplier", "order")] for row in gaussian]
    given = json.dumps({"orders": ORDERS, "curves": CURVES, "points": points})
    peer = peers.run("dp-accounting", ("dp-accounting==0.6.0",), f"GIVEN = {given!r}\n{PEER}")

    speed = Table(title=f"Renyi curve at {len(ORDERS)} orders, milliseconds, warm")
    for column in ("rate", "multiplier", "ledgerwood", "target", "dp-accounting 0.6.0"):
        speed.add_column(column, justify="right")
    for i, (rate, multiplier) in enumerate(CURVES):
        other = "" if peer is None else f"{peer[0][i]:.2f}"
        speed.add_row(
            f"{rate:g}", f"{multiplier:g}", f"{milliseconds(rate, multiplier):.2f}", "3" if i == 0 else "", other
        )
    console.print(speed)

    accuracy = Table(title="relative error against the ground truth, direction remove")
    for column in ("family", "of", "points", "largest", "median", "below by 1e-12", "below by 1e-9", "inf, NaN, <= 0"):
        accuracy.add_column(column, justify="right")
    for family in ("gaussian", "laplace"):
        rows = truth(family)
        values = [
            float(
                event(family, float(row["sampling_rate"]), float(row["noise_multiplier"])).renyi([float(row["order"])])[
                    0
                ]
            )
            for row in rows
        ]
        accuracy.add_row(family, "ledgerwood", *errors(rows, values))
    if peer is not None:
        accuracy.add_row("gaussian", "dp-accounting 0.6.0", *errors(gaussian, peer[1]))
    console.print(accuracy)


if __name__ == "__main__":
    main()
