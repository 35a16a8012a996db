"""The synthetic sets of DPBoost's and DP-XGBoost's papers at their real size, 1,000,000 x 400, in one Parquet file.

Signal columns and labels are scikit-learn's (`make_classification` with its defaults of 2 informative and 2 redundant
columns, `make_regression` with its default of 10, seed 0); all other columns are standard normal, made chunk by chunk,
each chunk with its own seed. A shuffled table would differ in the order of columns only. The papers do not say which
parameters they used. `whole_sets` fits to the file and holds no table in memory; `orders` has one, for many fits: most
of a fit's time would be that of reading.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks import data_sets, paired
from benchmarks.measuring import measure, non_private, trivial
from benchmarks.out_of_core import Watch
from benchmarks.paired import Method, Scored, error
from benchmarks.utility import Found, Parameters, Scale, System
from ledgerwood import Categorical, Numeric, Schema

Kind = Literal["synthetic_classification", "synthetic_regression"]
KINDS: tuple[Kind, ...] = ("synthetic_classification", "synthetic_regression")
ROWS, COLUMNS, HELD_OUT, BESIDE = 1_000_000, 400, 100_000, 100_000
"""Rows in the file; rows that are held out; rows of the model beside that is not private."""
CHUNK = 1 << 16
LABEL = "y"


@dataclass(frozen=True)
class Wide:
    """Signal columns and labels of all rows; the other columns are made where they are needed."""

    kind: Kind
    signal: NDArray[np.float64]
    y: NDArray[Any]

    @classmethod
    def of(cls, kind: Kind, rows: int) -> "Wide":
        """The rows of one set."""
        from sklearn.datasets import make_classification, make_regression

        if kind == "synthetic_classification":
            return cls(kind, *make_classification(rows, 4, n_informative=2, n_redundant=2, random_state=0))
        X, y = make_regression(rows, 10, n_informative=10, random_state=0)
        return cls(kind, X, np.clip(y, -1_000.0, 1_000.0))

    @property
    def schema(self) -> Schema:
        """Public bounds: labels have a deviation below 316 by construction."""
        if self.kind == "synthetic_classification":
            return Schema.uniform(-8, 8, n_features=COLUMNS, target=Categorical("class", (0, 1)))
        return Schema.uniform(-4, 4, n_features=COLUMNS, target=Numeric("label", -1_000, 1_000))

    def chunk(self, begin: int, end: int) -> NDArray[np.float32]:
        """Whole rows; `begin` is a multiple of CHUNK."""
        signal = self.signal[begin:end].astype(np.float32)
        generator = np.random.default_rng((1, begin // CHUNK))
        rest = generator.standard_normal((len(signal), COLUMNS - signal.shape[1]), dtype=np.float32)
        return np.concatenate([signal, rest], axis=1)

    def some(self, begin: int, end: int) -> data_sets.Data:
        """Whole rows in memory."""
        X = np.concatenate([self.chunk(at, min(at + CHUNK, end)) for at in range(begin, end, CHUNK)])
        return data_sets.Data(self.kind, X, self.y[begin:end], self.schema)


def write(wide: Wide, rows: int, path: Path) -> None:
    """The first rows, chunk by chunk."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [feature.name for feature in wide.schema.features]
    kind = pa.int64() if wide.kind == "synthetic_classification" else pa.float64()
    schema = pa.schema([*((name, pa.float32()) for name in names), (LABEL, kind)])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for begin in range(0, rows, CHUNK):
            end = min(begin + CHUNK, rows)
            columns = [np.ascontiguousarray(column) for column in wide.chunk(begin, end).T]
            file.write_table(pa.table([*columns, wide.y[begin:end]], schema=schema))


@contextmanager
def file_of(wide: Wide, rows: int) -> Iterator[Path]:
    """The file in a new folder, which is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="wide-synthetic-"))
    try:
        write(wide, rows, folder / "rows.parquet")
        yield folder / "rows.parquet"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def orders(system: System, methods: Mapping[str, Scored], epsilons: tuple[float, ...], scale: Scale) -> Found:
    """`benchmarks.paired.orders` of both sets, in memory: a fold of each seed is held out, as in DPBoost's paper.

    Args:
        system: whose splits are used.
        methods: by name.
        epsilons: budgets.
        scale: seeds; a quick run has a few thousand rows.
    """
    rows = ROWS if scale.rows is None else CHUNK // 8
    found: Found = {}
    for kind in KINDS:
        data = Wide.of(kind, rows).some(0, rows)
        found[kind] = paired.orders(data, paired.one_each(scale, system, rows), methods, scale.epsilons(epsilons))
    return found


def whole_sets(
    methods: Mapping[str, Method], epsilons: tuple[float, ...], beside: Parameters, scale: Scale, more: Parameters
) -> Found:
    """Errors and seconds of each method at each budget, one fit each, on each of the two sets; most memory of a fit.

    Args:
        methods: which.
        epsilons: budgets.
        beside: of scikit-learn's booster.
        scale: a quick run has a few thousand rows.
        more: of each fit: threads.
    """
    found: Found = {}
    rows = ROWS if scale.rows is None else CHUNK // 8
    held_out = HELD_OUT if scale.rows is None else 1_000
    first = -(-rows // CHUNK) * CHUNK
    for kind in KINDS:
        wide = Wide.of(kind, first + held_out)
        test = wide.some(first, first + held_out)
        near = wide.some(0, min(BESIDE, rows))
        cells: dict[str, list[dict[str, float]]] = {}
        most = 0
        with file_of(wide, rows) as path:
            for label, method in track(methods.items(), kind, transient=True):
                cells[label] = []
                for epsilon in scale.epsilons(epsilons):
                    given = {"expected_rows": rows, **more, **method.parameters}
                    model = method.system.model(test, method.times * epsilon, given)
                    start = time.perf_counter()
                    with Watch() as watch:
                        model.fit(str(path), LABEL, scratch=str(path.parent / "scratch"))
                    seconds = (time.perf_counter() - start) / len(model.ensemble_.trees)
                    most = max(most, watch.peak)
                    scores = np.array(measure(model, test.X, test.y))
                    value = float(error(test, scores))
                    cells[label].append({"epsilon": epsilon, "error": value, "seconds a tree": seconds})
                    print(kind, label, epsilon, value, f"{seconds:.2f} s a tree", flush=True)
        joined = data_sets.Data(kind, np.concatenate([near.X, test.X]), np.concatenate([near.y, test.y]), wide.schema)
        split = (np.arange(near.rows), np.arange(near.rows, joined.rows))
        start = time.perf_counter()
        plain = float(error(test, non_private(joined, [split], **beside)[0]))
        found[kind] = {
            "rows_columns": [rows, COLUMNS],
            "anonymous bytes": most,
            "methods": cells,
            "not private": {
                "rows": near.rows, "error": plain,
                "seconds a tree": (time.perf_counter() - start) / beside["max_iter"],
            },
            "trivial": float(error(test, trivial(joined, [split])[0])),
        }  # fmt: skip
    return found
