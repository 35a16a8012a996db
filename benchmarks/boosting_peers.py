"""Peers of the recommended trees on the same rows and splits: interpret's DP-EBM and diffprivlib's forest.

Each runs in an environment of its own, by its own defaults, with the schema's ranges, categories and classes, and with
the epsilon (and delta) of all others. What they claim is not always what they keep: docs/errata.md.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import peers
from benchmarks.baselines import code_table
from benchmarks.data_sets import Data
from benchmarks.diffprivlib_rows import REQUIREMENTS as DIFFPRIVLIB
from benchmarks.measuring import Split, is_numeric
from ledgerwood import Categorical, Numeric

EBM, FOREST = "DP-EBM", "diffprivlib forest"
PEERS = (EBM, FOREST)
INTERPRET = ("interpret-core==0.7.8",)
FOREST_DEPTH, FOREST_TREES = 5, 10
"""diffprivlib's own defaults."""
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Predicted:
    """What a peer said of held-out rows, read as an estimator's answer about them.

    Args:
        classes_: in the order of the columns.
        values: numbers, or probabilities by class.
    """

    classes_: NDArray[Any]
    values: NDArray[np.float64]

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Numbers or classes."""
        if self.values.ndim == 1:
            return self.values
        found: NDArray[Any] = self.classes_[self.values.argmax(axis=1)]
        return found

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities by class."""
        return self.values


def learns(peer: str, data: Data) -> bool:
    """Whether the peer has a model for such labels: no forest of numbers, and an EBM of two classes at most."""
    target = data.schema.target
    if isinstance(target, Categorical):
        return peer == FOREST or len(target.categories) == 2
    return peer == EBM


def table_of(data: Data, splits: Sequence[Split]) -> dict[str, NDArray[Any]]:
    """What a peer reads; neither knows missing values, so a missing number is the middle of its public range."""
    features, target = data.schema.features, data.schema.target
    nominal = np.array([isinstance(feature, Categorical) for feature in features])
    low = np.array([feature.low if isinstance(feature, Numeric) else 0.0 for feature in features])
    high = np.array(
        [feature.high if isinstance(feature, Numeric) else float(len(feature.categories)) for feature in features]
    )
    codes = code_table(data.X, data.schema)
    given = {"X": np.where(np.isnan(codes), (low + high) / 2.0, codes), "nominal": nominal, "low": low, "high": high}
    if isinstance(target, Categorical):
        places = {label: place for place, label in enumerate(target.categories)}
        given["y"] = np.array([places[label] for label in data.y.tolist()])
        given["classes"] = np.array(len(places))
    else:
        assert isinstance(target, Numeric)
        given["y"] = data.y.astype(np.float64)
        given["target"] = np.array([target.low, target.high])
    for i, (train, test) in enumerate(splits):
        given |= {f"train{i}": train, f"test{i}": test}
    return given


def outcomes(
    peer: str, data: Data, delta: float, fits: Sequence[tuple[float, int]], splits: Sequence[Split]
) -> Iterator[tuple[Predicted, float]]:
    """Answers about the held-out rows, and CPU seconds, of each fit; nothing where the peer cannot be installed.

    Args:
        peer: its name.
        data: rows.
        delta: of each fit; diffprivlib has none.
        fits: epsilon and place of the split.
        splits: train and test rows.
    """
    classes = np.array([]) if is_numeric(data) else np.array(data.schema.target.categories)  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, **table_of(data, splits))
        given: dict[str, Any] = {"table": str(path), "fits": fits}
        if peer == EBM:
            done = peers.run("interpret", INTERPRET, FOLDER / "interpret_peer.py", {**given, "delta": delta})
        else:
            given |= {"depth": FOREST_DEPTH, "trees": FOREST_TREES}
            done = peers.run("diffprivlib", DIFFPRIVLIB, FOLDER / "diffprivlib_peer.py", given)
        if done is None:
            return
        found = dict(np.load(path))
    for place in range(len(fits)):
        yield Predicted(classes, found[f"fit{place}"]), float(found[f"seconds{place}"])
