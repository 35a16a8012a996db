"""Bands of a ROC beside each other: the epsilon that each shows at the same scores, best threshold taken afterwards.

Run: python -m benchmarks.auditing_bands [--quick]

Seeds are constants. The table is in docs/explanation/auditing.md, under "Bands of a ROC".
"""

import argparse
import time
from typing import get_args

import numpy as np
from rich.console import Console
from rich.table import Table

from ledgerwood.verification.auditing import Scores, roc_band
from ledgerwood.verification.auditing.bands import Band

SEED, ALPHA = 710_010, 0.05
SIZES = {1_000: 20, 10_000: 20, 100_000: 4, 1_000_000: 4}
"""Scores a side, and repetitions."""
CASES = ("Laplace, epsilon 1, delta 0", "Gaussian, mu 1, delta 1e-5", "Gaussian, mu 3, delta 1e-5", "one run in 100")


def drawn(case: str, n: int, rng: np.random.Generator) -> tuple[Scores, float]:
    """Scores of a case, and the delta at which epsilon is bounded."""
    match case:
        case "Laplace, epsilon 1, delta 0":
            return Scores(rng.laplace(1.0, size=n), rng.laplace(size=n)), 0.0
        case "Gaussian, mu 1, delta 1e-5":
            return Scores(rng.normal(1.0, size=n), rng.normal(size=n)), 1e-5
        case "Gaussian, mu 3, delta 1e-5":
            return Scores(rng.normal(3.0, size=n), rng.normal(size=n)), 1e-5
    leaks = rng.random(n) < 0.01  # one run in a hundred is four standard deviations higher
    return Scores(rng.normal(size=n) + 4.0 * leaks, rng.normal(size=n)), 1e-5


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smallest size alone")
    given = parser.parse_args()
    table = Table(title=f"mean epsilon by band, alpha {ALPHA:g}", title_justify="left")
    for place, column in enumerate(("scores", "a side", *get_args(Band), "seconds, berk_jones")):
        table.add_column(column, justify="left" if place == 0 else "right")
    for place, case in enumerate(CASES):
        for n, repetitions in list(SIZES.items())[: 1 if given.quick else None]:
            rng = np.random.default_rng([SEED, place, n])
            found: dict[str, list[float]] = {band: [] for band in get_args(Band)}
            slowest = 0.0
            for _ in range(repetitions):
                scores, delta = drawn(case, n, rng)
                for band in get_args(Band):
                    start = time.perf_counter()
                    found[band].append(roc_band(scores, alpha=ALPHA, band=band).epsilon(delta))
                    slowest = max(slowest, time.perf_counter() - start) if band == "berk_jones" else slowest
            means = [f"{np.mean(values):.3f}" for values in found.values()]
            table.add_row(case, f"{n:,}", *means, f"{slowest:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
