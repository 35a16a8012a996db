"""Sensitivities over participation patterns beside jax_privacy's, in one run.

Run: python -m benchmarks.participation --peer PYTHON [--save]
where PYTHON is an interpreter that has jax_privacy installed.
"""

import argparse
import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from ledgerwood.accounting import matrix_sensitivity

SAVED = Path(__file__).parents[1] / "docs" / "benchmarks" / "participation.json"


def toeplitz(steps: int, bands: int) -> np.ndarray:
    """The square root of the prefix sums, cut to some bands."""
    column = np.cumprod(np.append(1.0, (2.0 * np.arange(1, steps) - 1.0) / (2.0 * np.arange(1, steps))))
    lag = np.subtract.outer(np.arange(steps), np.arange(steps))
    return np.where((lag >= 0) & (lag < bands), column[np.maximum(lag, 0)], 0.0)


def uneven(steps: int, bands: int) -> np.ndarray:
    """The same, with columns of other sizes."""
    return toeplitz(steps, bands) * np.random.default_rng(0).uniform(0.5, 1.5, size=steps)


CASES = {
    "square root, all bands": (toeplitz(256, 256), 8, 32),
    "square root, 32 bands": (toeplitz(256, 32), 8, 32),
    "uneven columns, 32 bands": (uneven(256, 32), 8, 32),
    "uneven columns, 48 bands": (uneven(256, 48), 8, 32),
    "uneven columns, all bands": (uneven(256, 256), 8, 32),
}


def show(found: Sequence[dict[str, Any]]) -> Table:
    """The stored sensitivities as a table; seconds of each answer."""
    table = Table(title="Sensitivity over 256 steps, at most 8 participations at least 32 apart (seconds)")
    for name in ("matrix", "ledgerwood", "cyclic", "jax_privacy: any matrix", "banded", "fixed epochs"):
        table.add_column(name)

    def answer(value: float | None, seconds: float | str) -> str:
        return "refused" if value is None or isinstance(seconds, str) else f"{value:.8g} ({seconds:.2g})"

    for each in found:
        low, high = each["lower"], each["upper"]
        exact = high - low <= 1e-9 * high
        own = f"{high:.8g}" if exact else f"{low:.8g} to {high:.8g}"
        table.add_row(
            each["case"],
            f"{own} ({each['seconds']:.2g})",
            f"{each['cyclic']:.8g}",
            *(answer(*each[f"peer_{kind}"]) for kind in ("upper", "banded", "fixed")),
        )
    return table


def main() -> None:
    """Print the table; with --save, store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True)
    parser.add_argument("--save", action="store_true")
    chosen = parser.parse_args()
    asked = [{"matrix": m.tolist(), "participations": k, "separation": b} for m, k, b in CASES.values()]
    peer = Path(__file__).with_name("participation_peer.py")
    answer = subprocess.run(
        [chosen.peer, str(peer)], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    rows = []
    for (name, (matrix, most, apart)), theirs in zip(CASES.items(), json.loads(answer.stdout), strict=True):
        started = time.perf_counter()
        ours = matrix_sensitivity(matrix, participations=most, separation=apart)
        seconds = time.perf_counter() - started
        cyclic = matrix_sensitivity(matrix, participations=most, separation=apart, pattern="cyclic")
        rows.append(
            {"case": name, "lower": ours.lower, "upper": ours.upper, "cyclic": cyclic.upper, "seconds": seconds}
            | {f"peer_{kind}": value for kind, value in theirs.items()}
        )
        print(json.dumps(rows[-1]))
    if chosen.save:
        SAVED.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
