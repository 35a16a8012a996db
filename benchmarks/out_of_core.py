"""Seconds of a tree and memory of a fit on rows in files, beside fits on rows in memory.

Rows are made in a stream and written to one Parquet file in a new folder, which is removed at the end. Each fit has its
own process. "Anonymous" memory is what the process holds besides files that are mapped (RssAnon), looked at every 50 ms
while the fit runs; "above" is what it grew by over what the process held before the fit. A tree's seconds are the
median of the times between trees, without the first one: seconds of the clock, and of the process's cores.

    python -m benchmarks.out_of_core --rows 100000000 --folder /data --save docs/benchmarks/out_of_core.json --add
"""

import argparse
import itertools
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.table import Table as Printed

from benchmarks import scale
from ledgerwood.threads import available_cores

CHUNK = 1 << 18
COLUMNS = 28
"""Of the figure."""
MEMORY_ROWS = 10_000_000
"""Of the fit in memory that a fit of many rows in files is compared with."""
GOAL = 13.0
"""Times the seconds of a tree of a tenth of the rows in memory."""
BYTES_GOAL = 2.5 * 2**30
LABEL = "y"


def write_rows(path: Path, n_rows: int, n_columns: int) -> None:
    """The rows of `scale.rows`, chunk by chunk, each with its own seed, as float32 and without compression."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{place}" for place in range(n_columns)]
    schema = pa.schema([*((name, pa.float32()) for name in names), (LABEL, pa.float32())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for number, begin in enumerate(range(0, n_rows, CHUNK)):
            X, y = chunk(number, min(CHUNK, n_rows - begin), n_columns)
            columns = [np.ascontiguousarray(column) for column in X.T]
            file.write_table(pa.table([*columns, y.astype(np.float32)], schema=schema))


def chunk(number: int, n_rows: int, n_columns: int) -> scale.Rows:
    """Some rows."""
    generator = np.random.default_rng(number)
    X = generator.random((n_rows, n_columns), dtype=np.float32)
    return X, np.clip(X[:, 0] + X[:, 1] - 1.0 + 0.1 * generator.standard_normal(n_rows), -1.0, 1.0)


def in_memory(n_rows: int, n_columns: int) -> scale.Rows:
    """The same rows as arrays."""
    X, y = np.empty((n_rows, n_columns), dtype=np.float32), np.empty(n_rows)
    for number, begin in enumerate(range(0, n_rows, CHUNK)):
        end = min(begin + CHUNK, n_rows)
        X[begin:end], y[begin:end] = chunk(number, end - begin, n_columns)
    return X, y


class Watch:
    """The largest anonymous memory of this process, and the most that its scratch folder held, while it runs."""

    def __init__(self) -> None:
        self.before = self.peak = anonymous_bytes()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.05):
            self.peak = max(self.peak, anonymous_bytes())


def anonymous_bytes() -> int:
    """Memory of this process that is mapped from no file."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon:"))


def fitted(name: str, team: int, trees: int, shape: tuple[int, int], path: Path | None) -> dict[str, Any]:
    """Seconds and memory of one fit; of rows in the file, or of as many in memory."""
    n_rows, n_columns = shape
    model = scale.systems(n_columns, team, trees)[name]()
    model.fit(*scale.rows(10_000, n_columns))  # compiles
    given: tuple[Any, ...] = in_memory(*shape) if path is None else (str(path), LABEL)
    more = {} if path is None else {"scratch": str(path.parent / "scratch")}
    with scale.tree_times() as times, Watch() as watch:
        start = scale.now()
        model.fit(*given, **more)
        whole = scale.since(start)
    each = [scale.since(before, after) for before, after in itertools.pairwise(times[1:])]
    clock, cores = np.median(each, axis=0)
    return {
        "system": name, "rows": n_rows, "columns": n_columns, "threads": team,
        "place": "memory" if path is None else "disk", "tree": float(clock), "tree, cores": float(cores),
        "before trees": scale.since(start, times[0])[0],
        "fit": whole[0], "anonymous": watch.peak, "above": watch.peak - watch.before, "load": os.getloadavg()[0],
    }  # fmt: skip


def own_process(*asked: Any) -> dict[str, Any]:
    """`fitted` in a new process, whose memory is that of one fit."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found: dict[str, Any] = pool.apply(fitted, asked)
    print(json.dumps(found), file=sys.stderr, flush=True)
    return found


def measured(
    names: list[str], sizes: list[int], widths: list[int], team: int, trees: int, folder: Path, memory_rows: int
) -> dict[str, Any]:
    """A fit of each system on as many rows in a file; and in memory, of those sizes that are no larger."""
    place, fits = Path(tempfile.mkdtemp(prefix="out-of-core-", dir=folder)), []
    try:
        for shape in itertools.product(sorted({*sizes, min(memory_rows, max(sizes))}), widths):
            if shape[0] in sizes:
                path = place / "rows.parquet"
                write_rows(path, *shape)
                fits += [own_process(name, team, trees, shape, path) for name in names]
                path.unlink()
            if shape[0] <= memory_rows:
                fits += [own_process(name, team, trees, shape, None) for name in names]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return {"cores": available_cores(), "trees": trees, "fits": fits}


def added(found: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Figures of an earlier run beside those of this one, which replaces fits of the same system, rows and place."""

    def which(fit: dict[str, Any]) -> tuple[Any, ...]:
        return fit["system"], fit["rows"], fit["columns"], fit["place"]

    now = {which(fit) for fit in found["fits"]}
    fits = [*(fit for fit in before["fits"] if which(fit) not in now), *found["fits"]]
    return {**found, "fits": sorted(fits, key=which)}


def print_out_of_core(found: dict[str, Any], console: Console) -> None:
    """One line a fit, and each of a file beside one of a tenth of the rows, or of as many, in memory."""
    table = Printed(title=f"{found['cores']} cores, medians of {found['trees']} trees of depth {scale.DEPTH}")
    for name in ("system", "rows x features", "place", "threads"):
        table.add_column(name)
    for name in ("a tree, s", "s of cores", "before the trees, s", "anonymous, GiB", "above, GiB", "load"):
        table.add_column(name, justify="right")
    for each in found["fits"]:
        table.add_row(
            each["system"], f"{each['rows']:,} x {each['columns']}", each["place"], str(each["threads"]),
            f"{each['tree']:.2f}", f"{each['tree, cores']:.2f}", f"{each['before trees']:.0f}",
            f"{each['anonymous'] / 2**30:.2f}", f"{each['above'] / 2**30:.2f}", f"{each['load']:.1f}",
        )  # fmt: skip
    console.print(table)
    for each, other, times in compared(found):
        goal = f"; goal: at most {GOAL:g}" if times == 10 else ""
        console.print(
            f"{each['system']}: a tree of {each['rows']:,} rows on disk takes {each['tree'] / other['tree']:.1f} x "
            f"one of {other['rows']:,} in memory ({each['tree, cores'] / other['tree, cores']:.1f} x by seconds of "
            f"cores{goal})"
        )


def compared(found: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any], int]]:
    """Fits of files beside fits of the same system in memory with as many rows, or a tenth of them."""
    disk = [each for each in found["fits"] if each["place"] == "disk"]
    memory = [each for each in found["fits"] if each["place"] == "memory"]
    return [
        (each, other, times)
        for each in disk
        for other in memory
        for times in (1, 10)
        if (each["system"], each["columns"]) == (other["system"], other["columns"])
        and each["rows"] == times * other["rows"]
    ]


def draw_rows(found: dict[str, Any]) -> Any:
    """Seconds of a tree, and memory of a fit, as rows grow."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for system, place in sorted({(each["system"], each["place"]) for each in found["fits"]}):
        own = sorted(
            (each["rows"], each["tree, cores"], each["above"] / 2**30)
            for each in found["fits"]
            if (each["system"], each["place"], each["columns"]) == (system, place, COLUMNS)
        )
        rows, seconds, memory = np.array(own).T
        style = {"disk": "o-", "memory": "x:"}[place]
        panels[0].loglog(rows, seconds, style, label=f"{system}, {place}")
        panels[1].loglog(rows, memory, style, label=f"{system}, {place}")
    for panel, what in zip(panels, ("seconds of cores, a tree", "anonymous memory above, GiB"), strict=True):
        panel.set_xlabel(f"rows, of {COLUMNS} features")
        panel.set_ylabel(what)
    panels[0].legend(frameon=False, fontsize=7)
    return figure


def main() -> None:
    """Measure, print, and keep if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000], help="in files, of one fit each")
    parser.add_argument("--memory-rows", type=int, default=MEMORY_ROWS, help="most rows of a fit in memory")
    parser.add_argument("--columns", type=int, nargs="+", default=[COLUMNS])
    parser.add_argument("--trees", type=int, default=scale.TREES)
    parser.add_argument("--threads", type=int, default=available_cores())
    parser.add_argument("--systems", nargs="+", default=["S-GBDT"], choices=sorted(scale.systems(1, 1)))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where rows and scratch lie")
    parser.add_argument("--save", type=Path, help="write the figures to this JSON file, for the documentation")
    parser.add_argument("--add", action="store_true", help="keep what that file has of other fits")
    given = parser.parse_args()
    found = measured(
        given.systems, given.rows, given.columns, given.threads, given.trees, given.folder, given.memory_rows
    )
    if given.add and given.save is not None and given.save.exists():
        found = added(found, json.loads(given.save.read_text(encoding="utf-8")))
    print_out_of_core(found, Console(width=160))
    if given.save is not None:
        given.save.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
