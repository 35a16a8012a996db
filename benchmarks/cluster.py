"""Seconds of fits on a Dask cluster of worker processes beside one process with as many threads; a round's overhead.

The same rows and seed, in turns; models are compared, bit for bit. A question over few rows takes the workers next to
nothing: its time is the overhead of a round.

    python -m benchmarks.cluster [--rows 10000000] [--workers 2] [--rounds 3] [--save docs/benchmarks/cluster.json]
"""

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import ledgerwood as lw
from ledgerwood import Numeric
from ledgerwood.curator.places.cluster import ClusterSession
from ledgerwood.errors import PrivacyWarning
from ledgerwood.trainers import DPBoostRegressor, SGBDTRegressor
from ledgerwood.trainers.base import trainer

COLUMNS, DEPTH, TREES, PARTITIONS = 28, 6, 20, 8
SYSTEMS = {"S-GBDT": SGBDTRegressor, "DPBoost": DPBoostRegressor}


def model_of(name: str, trees: int, n_jobs: int) -> Any:
    """An unfitted estimator under a seed."""
    schema = lw.Schema.uniform(0, 1, n_features=COLUMNS, target=Numeric("y", -1, 1))
    more = {"candidates": "grid", "max_bins": 32} if name == "DPBoost" else {}
    return SYSTEMS[name](
        schema=schema,
        epsilon=5.0,
        delta=1e-9,
        random_state=1,
        n_estimators=trees,
        max_depth=DEPTH,
        n_jobs=n_jobs,
        **more,
    )


def told(model: Any) -> list[Any]:
    """The leaves of all trees."""
    return [tree.values.tolist() for tree in model.ensemble_.trees]


def timed(model: Any, *rows: Any, **more: Any) -> tuple[float, float]:
    """Seconds of a fit until its first tree, and of a tree afterwards."""
    marks: list[float] = []

    @contextmanager
    def timer(_title: str, _verbose: int) -> Iterator[Callable[[int, int], None]]:
        yield lambda _done, _total: marks.append(time.perf_counter())

    own, trainer.progress_bar = trainer.progress_bar, timer  # type: ignore[assignment]
    began = time.perf_counter()
    try:
        model.fit(*rows, **more)
    finally:
        trainer.progress_bar = own
    # The first trees make what later ones keep.
    return marks[0] - began, (marks[-1] - marks[1]) / (len(marks) - 2)


def overheads(client: Any, rows: Any, labels: Any, trees: int) -> dict[str, float]:
    """Milliseconds of questions over few rows, which take the workers next to nothing."""
    times: list[float] = []
    plain = ClusterSession._tried

    def clocked(self: Any, attempt: Any, recover: Any) -> Any:
        began = time.perf_counter()
        found = plain(self, attempt, recover)
        times.append(1e3 * (time.perf_counter() - began))
        return found

    ClusterSession._tried = clocked  # type: ignore[method-assign]
    try:
        model_of("S-GBDT", trees, 1).fit(rows, labels, client=client)
    finally:
        ClusterSession._tried = plain  # type: ignore[method-assign]
    asked = sorted(times[2:])
    return {
        "questions": len(asked), "median": statistics.median(asked), "least": asked[0],
        "nine tenths below": asked[int(0.9 * len(asked))],
    }  # fmt: skip


def measured(n_rows: int, workers: int, rounds: int) -> dict[str, Any]:
    """All figures."""
    import dask.array as da
    from distributed import Client, LocalCluster

    generator = np.random.default_rng(0)
    X = generator.random((n_rows, COLUMNS), dtype=np.float32)
    y = np.clip(X[:, 0] + X[:, 1] - 1.0, -1.0, 1.0)
    found: dict[str, Any] = {
        "rows": n_rows, "columns": COLUMNS, "workers": workers, "rounds": rounds, "load": os.getloadavg()[0],
        "systems": {},
    }  # fmt: skip
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        size = -(-n_rows // PARTITIONS)
        lazy = da.from_array(X, chunks=(size, COLUMNS)), da.from_array(y, chunks=size)
        kept = client.persist(list(lazy))  # encoding is timed without the way of the rows to the workers
        for name in SYSTEMS:
            here, there, same = [], [], True
            for _ in range(rounds):
                one, other = model_of(name, TREES, workers), model_of(name, TREES, 1)
                here.append(timed(one, X, y))
                there.append(timed(other, *kept, client=client))
                same &= told(one) == told(other)
            found["systems"][name] = {
                "same models": same,
                "in one process": {"before": _median(here, 0), "tree": _median(here, 1)},
                "on the cluster": {"before": _median(there, 0), "tree": _median(there, 1)},
                "ratio": _median(there, 1) / _median(here, 1),
            }
        few = da.from_array(X[:2000], chunks=(500, COLUMNS)), da.from_array(y[:2000], chunks=500)
        overheads(client, *few, trees=10)
        found["milliseconds of a question"] = overheads(client, *few, trees=100)
    found["load afterwards"] = os.getloadavg()[0]
    return found


def _median(times: list[tuple[float, float]], place: int) -> float:
    return statistics.median(each[place] for each in times)


def main() -> None:
    """Measure, print, and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    found = measured(asked.rows, asked.workers, asked.rounds)
    text = json.dumps(found, indent=1)
    sys.stdout.write(text + "\n")
    if asked.save:
        asked.save.write_text(text + "\n")


if __name__ == "__main__":
    main()
