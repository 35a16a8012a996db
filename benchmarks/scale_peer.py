"""The peers' side of `benchmarks.scale`: xgboost and lightgbm, asked line by line so that runs alternate with ours."""

import json
import sys
import time

import lightgbm
import numpy as np
import xgboost


def rows(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """As `benchmarks.scale.rows`."""
    generator = np.random.default_rng(0)
    X = generator.random((n_rows, n_columns), dtype=np.float32)
    return X, np.clip(X[:, 0] + X[:, 1] - 1.0 + 0.1 * generator.standard_normal(n_rows), -1.0, 1.0)


class _Xgboost(xgboost.callback.TrainingCallback):
    def __init__(self) -> None:
        self.times: list[tuple[float, float]] = []

    def after_iteration(self, model, epoch, evals_log) -> bool:
        self.times.append(now())
        return False


class _Lightgbm:
    def __init__(self) -> None:
        self.times: list[tuple[float, float]] = []

    def __call__(self, environment: object) -> None:
        self.times.append(now())


def now() -> tuple[float, float]:
    """Of a clock, and of this process's cores."""
    return time.perf_counter(), time.process_time()


def between(start: tuple[float, float]) -> list[list[float]]:
    """Seconds since then, of both."""
    return [[after - before for before, after in zip(start, now(), strict=True)]]


def main() -> None:
    held = {}
    for line in sys.stdin:
        asked = json.loads(line)
        shape, threads, bins, trees = tuple(asked["shape"]), asked["threads"], asked["bins"], asked["trees"]
        if held.get("shape") != shape:
            held = {"shape": shape, "rows": rows(*shape)}
        X, y = held["rows"]
        grow = {"tree_method": "hist", "max_depth": asked["depth"], "nthread": threads, "max_bin": bins}
        match asked["what"]:
            case "xgboost":
                if ("xgboost", bins) not in held:
                    held["xgboost", bins] = xgboost.QuantileDMatrix(X, y, max_bin=bins)
                matrix = held["xgboost", bins]
                timer = _Xgboost()
                xgboost.train(grow, matrix, trees + 1, callbacks=[timer])
                found = np.diff(timer.times, axis=0).tolist()
            case "lightgbm":
                parameters = {
                    "objective": "regression", "max_depth": asked["depth"], "num_leaves": 2 ** asked["depth"] - 1,
                    "num_threads": threads, "max_bin": bins, "verbose": -1,
                }  # fmt: skip
                timer = _Lightgbm()
                if "lightgbm" not in held:
                    fixed = {"max_bin": bins, "verbose": -1}
                    held["lightgbm"] = lightgbm.Dataset(X, y, params=fixed, free_raw_data=False).construct()
                lightgbm.train(parameters, held["lightgbm"], trees + 1, callbacks=[timer])
                found = np.diff(timer.times, axis=0).tolist()
            case "xgboost matrix":
                start = now()
                xgboost.QuantileDMatrix(X, y, max_bin=bins, nthread=threads)
                found = between(start)
            case "lightgbm matrix":
                start = now()
                lightgbm.Dataset(X, y, params={"max_bin": bins, "num_threads": threads, "verbose": -1}).construct()
                found = between(start)
            case "xgboost predict":
                key = "xgboost model"
                if key not in held:
                    held[key] = xgboost.train(grow, xgboost.QuantileDMatrix(X, y, max_bin=bins), trees)
                held[key].set_param({"nthread": threads})
                start = now()
                held[key].inplace_predict(X)
                found = between(start)
            case _:
                raise ValueError(asked["what"])
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
