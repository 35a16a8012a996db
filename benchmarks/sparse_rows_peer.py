"""The peer's side of `benchmarks.sparse_rows`: xgboost's hist on the same CSR table, with one thread."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import xgboost
from scipy import sparse


class _Timer(xgboost.callback.TrainingCallback):
    def __init__(self) -> None:
        self.times: list[float] = []

    def after_iteration(self, model, epoch, evals_log) -> bool:
        self.times.append(time.process_time())
        return False


def rows(n_rows: int, n_columns: int, groups: int):
    """As `benchmarks.sparse_rows.rows`."""
    generator, width = np.random.default_rng(0), n_columns // groups
    places = np.empty((n_rows, groups), dtype=np.int32)
    for group in range(groups):
        places[:, group] = group * width + np.minimum(generator.geometric(0.05, n_rows) - 1, width - 1)
    y = (0.5 * (places[:, 0] % 3 == 0) + 0.5 * (places[:, 1] % 2) + generator.random(n_rows) > 1.0).astype(np.int64)
    starts = np.arange(0, n_rows * groups + 1, groups, dtype=np.int32)
    return sparse.csr_matrix((np.ones(places.size), places.ravel(), starts), shape=(n_rows, n_columns)), y


def peak_bytes() -> int:
    """As `benchmarks.sparse_rows.peak_bytes`."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def main() -> None:
    asked = json.load(sys.stdin)
    X, y = rows(asked["rows"], asked["columns"], asked["groups"])
    held, start = peak_bytes(), time.process_time()
    matrix = xgboost.QuantileDMatrix(X, y, nthread=1)
    encoded, timer = time.process_time(), _Timer()
    grow = {"tree_method": "hist", "max_depth": asked["depth"], "nthread": 1, "objective": "binary:logistic"}
    model = xgboost.train(grow, matrix, asked["trees"] + 1, callbacks=[timer])
    fit, done = peak_bytes(), time.process_time()
    model.inplace_predict(X)
    found = {
        "system": "xgboost", "tree": float(np.median(np.diff(timer.times))), "encode": encoded - start,
        "predict": time.process_time() - done, "input": held, "fit": fit, "peak": peak_bytes(),
    }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main()
