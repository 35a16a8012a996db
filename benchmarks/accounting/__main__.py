"""Print, in one run with the peers that can be installed, how exact, how tight and how fast the accounting is.

Run: python -m benchmarks.accounting [--only accuracy tightness ...] [--slow] [--save]
"""

import argparse
import datetime as dt
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from rich.console import Console

import ledgerwood as lw
from benchmarks.accounting import accuracy, agreement, calibration, sides, speed, tightness, width

TABLES: dict[str, Any] = {
    "accuracy": accuracy, "tightness": tightness, "calibration": calibration, "speed": speed, "agreement": agreement,
    "width": width,
}  # fmt: skip
SAVED = Path(__file__).parents[2] / "docs" / "benchmarks" / "accounting.json"


def conditions() -> dict[str, Any]:
    """What the figures hold for."""
    return {
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} shared cores",
        "python": platform.python_version(),
        "ledgerwood": f"{lw.__version__} (numpy {np.__version__}, scipy {scipy.__version__})",
        **sides.versions(),
    }


def _write(saved: dict[str, Any]) -> None:
    """One line a table."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in sorted(saved.items()))
    SAVED.write_text(f"{{\n{lines}\n}}\n")


def main() -> None:
    """Measure and print; keep the results where asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accounting", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES), help="these tables")
    parser.add_argument("--slow", action="store_true", help="also what takes a peer minutes or gigabytes")
    parser.add_argument("--save", action="store_true", help=f"put the tables that were run into {SAVED.name}")
    options = parser.parse_args()

    console = Console(width=max(Console().width, 200))
    here = conditions()
    console.print(", ".join(f"{key} {value}" for key, value in here.items()))
    saved = json.loads(SAVED.read_text()) if SAVED.exists() else {}
    for name in options.only:
        start = time.perf_counter()
        found = TABLES[name].measure(slow=options.slow)
        TABLES[name].show(console, found)
        console.print(f"{name}: {time.perf_counter() - start:.0f} s\n")
        if options.save:
            saved |= {"conditions": here, name: found}
            _write(saved)


if __name__ == "__main__":
    main()
