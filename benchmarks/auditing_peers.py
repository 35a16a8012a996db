"""Bounds of other auditors on the same mechanisms: those that install run here, the others' figures are stored.

jax_privacy and privacy-estimates bound epsilon from scores and from counts, and search nothing: each is handed the
scores of boosted trees that were fitted to 100,000 other outputs a side, whose time is not counted. StatDP,
DP-Sniper and DP-Auditorium are not on PyPI; theirs were measured once from their repositories.
"""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from benchmarks import peers
from benchmarks.auditing_cases import BOUNDS, Case
from benchmarks.auditing_kinds import FloatArray

Found = dict[str, Any]
FIT = 100_000
ALPHA = 0.05
REQUIREMENTS = {"jax-privacy": ("jax-privacy==2.0.0",), "privacy-estimates": ("privacy-estimates==0.1.0.post1",)}

CONDITIONAL = {
    "jax-privacy GDP": "Gaussian noise",
    "jax-privacy one run f-DP, split": "Gaussian noise",
    "privacy-estimates Jeffreys": "a prior",
}
"""Rows that are no bounds by themselves, and what they assume."""

_ORDER = (
    "laplace_ok", "gauss_ok", "laplace_halfscale", "laplace_fp", "svt1", "svt3", "svt4", "svt5", "svt6", "noisyavg",
    "expmech",
)  # fmt: skip
_NO = None


def _stored(*values: float | None) -> dict[str, float]:
    return {name: value for name, value in zip(_ORDER, values, strict=True) if value is not None}


STORED: Mapping[int, Mapping[str, Mapping[str, float]]] = {
    100_000: {
        "DP-Sniper, logistic": _stored(0.96, 0.58, 1.92, _NO, 0.32, 0.70, 0.41, 2.95, 2.11, 2.67, 1.84),
        "DP-Sniper, network": _stored(_NO, 0.56, _NO, 0.84, 0.55, 1.26, 0.92, _NO, 2.15, 2.35, _NO),
        "DP-Auditorium, histogram": _stored(0.50, 0.00, 1.25, *[_NO] * 8),
        "DP-Auditorium, hockey stick": _stored(0.75, 0.25, 1.75, _NO, _NO, 0.25, *[_NO] * 5),
        "DP-Auditorium, MMD (50,000)": _stored(0.25, 0.00, 0.38, _NO, _NO, 0.00, 0.00, *[_NO] * 4),
        "StatDP": _stored(0.75, 0.25, 1.75, 0.75, 0.75, 1.50, 1.50, 5.25, 2.25, 0.50, 1.75),
    },
    1_000_000: {
        "DP-Sniper, logistic": _stored(0.98, 0.65, 1.98, _NO, 0.61, 1.33, 0.97, 3.01, 2.15, 2.85, 1.91),
    },
}
"""One run a cell, on another day: outputs a side in the final estimate, and the bound."""


def measured(size: int, seed: int) -> Found:
    """A row a method, `size` outputs a side: bounds and seconds by case."""
    with threadpool_limits(1):  # a team of threads stalls on a busy machine
        scores, counts, drawing = scored(size, seed)
    folder = Path(__file__).parent
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "scores.npz"
        np.savez(path, **scores)
        given = {"scores": str(path), "cases": {case.name: case.delta for case in BOUNDS}, "alpha": ALPHA}
        jax = peers.run("jax-privacy", REQUIREMENTS["jax-privacy"], folder / "auditing_jax_peer.py", given)
    estimates = peers.run(
        "privacy-estimates", REQUIREMENTS["privacy-estimates"], folder / "auditing_estimates_peer.py",
        {"counts": counts, "alpha": ALPHA},
    )  # fmt: skip
    rows: Found = {}
    for peer, found in (("jax-privacy", jax), ("privacy-estimates", estimates)):
        for case, methods in (found or {}).items():
            for method, values in methods.items():
                seconds = values["seconds"] + drawing[case]
                rows.setdefault(f"{peer} {method}", {})[case] = {"bound": values["bound"], "seconds": seconds}
    return rows


def scored(size: int, seed: int) -> tuple[dict[str, FloatArray], Found, dict[str, float]]:
    """Scores of each case and side, counts of its event, and the seconds that drawing and scoring took."""
    scores, counts, drawing = {}, {}, {}
    for place, case in enumerate(BOUNDS):
        rng = np.random.default_rng([seed, place, size])
        model, event = learned(case, size, rng)
        start = time.perf_counter()
        first, second = (_scores(model, case.sampler(part, size, rng)) for part in case.pair)
        drawing[case.name] = time.perf_counter() - start
        scores[f"{case.name}_first"], scores[f"{case.name}_second"] = first, second
        hits, alarms = int((first >= event).sum()), int((second >= event).sum())
        counts[case.name] = {
            "delta": case.delta, "TP": hits, "FN": size - hits, "FP": alarms, "TN": size - alarms,
        }  # fmt: skip
    return scores, counts, drawing


def learned(case: Case, size: int, rng: np.random.Generator) -> tuple[HistGradientBoostingClassifier, float]:
    """Boosted trees that tell the data sets apart, and the threshold of their scores that promises the most."""
    outputs = [case.sampler(part, FIT, rng) for part in case.pair]
    model = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.15, random_state=0)
    model.fit(np.concatenate([_columns(part) for part in outputs]), np.repeat([1, 0], FIT))
    first, second = (np.sort(_scores(model, case.sampler(part, FIT, rng))) for part in case.pair)
    return model, best_threshold(first, second, size, case.delta)


def best_threshold(first: FloatArray, second: FloatArray, size: int, delta: float) -> float:
    """Of sorted scores: where Clopper and Pearson's bound at `size` would be largest if frequencies were these."""
    every = np.unique(np.concatenate([first, second]))
    places = np.unique(np.geomspace(1, every.size, 400).astype(int))  # fine in both tails
    thresholds = np.unique(np.concatenate([every[places - 1], every[-places]]))
    hits = 1.0 - np.searchsorted(first, thresholds) / first.size
    alarms = 1.0 - np.searchsorted(second, thresholds) / second.size
    bounds = [_bound(hits, alarms, size, delta), _bound(1.0 - alarms, 1.0 - hits, size, delta)]
    return float(thresholds[np.max(bounds, axis=0).argmax()])


def _bound(p: FloatArray, q: FloatArray, size: int, delta: float) -> FloatArray:
    low = stats.beta.ppf(0.5 * ALPHA, np.maximum(p * size, 1e-9), size - p * size + 1.0) - delta
    high = stats.beta.isf(0.5 * ALPHA, q * size + 1.0, np.maximum(size - q * size, 1e-9))
    return np.where(low > 0.0, np.log(np.maximum(low, 1e-300) / high), 0.0)


def _columns(outputs: FloatArray) -> FloatArray:
    return outputs.reshape(len(outputs), -1)


def _scores(model: HistGradientBoostingClassifier, outputs: FloatArray) -> NDArray[np.float64]:
    return np.asarray(model.decision_function(_columns(outputs)), dtype=np.float64)


def best(size: int, case: str, rows: Mapping[str, Any]) -> tuple[float, str]:
    """The largest bound without an assumption, live or stored, and whose it is."""
    live = [(name, values[case]["bound"]) for name, values in rows.items() if case in values]
    found = [(bound, name) for name, bound in live if name not in CONDITIONAL]
    found += [(values[case], f"{name} (stored)") for name, values in STORED.get(size, {}).items() if case in values]
    return max(found, default=(0.0, ""))
