"""S-GBDT's grid-less exponential mechanism, by its exact density: Definition 25 to Corollary 27, section VI-C."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.reproduce.papers.sgbdt.proofs import Check, worst
from benchmarks.utility import Scale
from ledgerwood import Categorical

Array = NDArray[np.float64]
DAMPING = 0.1
"""lambda of DPBoost's gain."""
SENSITIVITY = 3.0
"""Of the gain, times the squared clip."""
EPSILONS = (0.1, 0.5, 1.0, 10.0)
DEPTH, SPLIT_SHARE = 6, 0.5
"""DPBoost's trees: half of a tree's epsilon for its levels."""
TREES, RATE = 50, 0.1
"""DPBoost's ensemble: its first tree has the largest share of the rows, RATE / (1 - (1 - RATE)^TREES)."""


def gains(values: Array, gradients: Array, points: Array) -> Array:
    """The gain of "x < s" at each point s, clip 1."""
    left = values[None, :] < points[:, None]
    rows, total = left.sum(axis=1), left @ gradients
    return np.asarray(total**2 / (rows + DAMPING) + (gradients.sum() - total) ** 2 / (len(values) - rows + DAMPING))


def log_density(utility: Array, weights: Array, epsilon: float, sensitivity: float) -> Array:
    """log of the density at each piece, up to the weight that both neighbours share."""
    tilt = epsilon * utility / (2.0 * sensitivity)
    top = tilt.max()
    return np.asarray(tilt - top - np.log(np.sum(weights * np.exp(tilt - top))))


def lost(values: Array, gradients: Array, epsilon: float) -> float:
    """The loss of one split over a numeric feature of range [0, 1] when the last row is removed: largest |log ratio|.

    Both densities are constant between the values of all rows: Definition 25's buckets, cut further.
    """
    edges = np.unique(np.concatenate(([0.0, 1.0], values)))
    middles, widths = 0.5 * (edges[:-1] + edges[1:]), np.diff(edges)
    with_row, without = (gains(values[:last], gradients[:last], middles) for last in (len(values), len(values) - 1))
    first, second = (log_density(utility, widths, epsilon, SENSITIVITY) for utility in (with_row, without))
    return float(np.abs(first - second).max())


def buckets(_: Scale) -> Check:
    """Definition 25: n + 1 buckets cover the range once, and the gain is constant on each."""
    generator, shares = np.random.default_rng(0), []
    for _table in range(50):
        rows = int(generator.integers(1, 30))
        values, gradients = np.sort(generator.random(rows)), generator.uniform(-1.0, 1.0, rows)
        edges = np.concatenate(([0.0], values, [1.0]))
        inside = edges[:-1, None] + np.diff(edges)[:, None] * np.array([1e-6, 0.5, 1.0])
        utility = gains(values, gradients, inside.ravel()).reshape(inside.shape)
        shares += [float(np.sum(np.diff(edges))), len(edges) - 1 - rows, 1.0 + float(np.ptp(utility, axis=1).max())]
    return worst(shares)


def gridless(_: Scale) -> Check:
    """Lemma 26, Corollary 27, Algorithm 3: random tables; and the worst case of the gain, n rows against one."""
    generator, epsilon, shares = np.random.default_rng(0), 1.0, []
    for _table in range(300):
        rows = int(generator.integers(1, 60))
        gradients = generator.choice([-1.0, 1.0], rows) if rows % 2 else generator.uniform(-1.0, 1.0, rows)
        shares.append(lost(generator.random(rows), gradients, epsilon) / epsilon)
    for many in (10, 100, 1_000, 10_000):
        # All others lie at the left, the new one in the middle: few candidates separate them.
        values = np.append(np.linspace(1e-9, 1e-6, many), 1.0 - 1e-6)
        shares.append(lost(values, np.append(np.ones(many), -1.0), epsilon) / epsilon)
        shares.append(
            lost(np.append(np.linspace(0.4, 0.6, many), 0.5), np.append(np.ones(many), -1.0), epsilon) / epsilon
        )
    return worst(shares)


def uniformity(scale: Scale) -> Check:
    """Section VI-C: how far the root's choice is from no choice, total variation, on Abalone by DPBoost's own budget.

    The first tree, labels in [-1, 1]: on its share of the rows in an ensemble of 50 trees, and on all rows.
    """
    share = RATE / (1.0 - (1.0 - RATE) ** TREES)
    return {"distance": distances(scale, share), "all rows": distances(scale, 1.0)}


def distances(scale: Scale, share: float) -> dict[str, float]:
    """Total variation of the root's choice from no choice, by epsilon, on some of the rows."""
    data = scale.data("abalone")
    kept = np.random.default_rng(0).permutation(data.rows)[: round(share * data.rows)]
    target: Any = data.schema.target
    labels = 2.0 * (data.y[kept].astype(float) - target.low) / (target.high - target.low) - 1.0
    gradients = -np.clip(labels, -1.0, 1.0)
    utility, weights = [], []
    for column, feature in enumerate(data.schema.features):
        if isinstance(feature, Categorical):
            continue
        values = (np.clip(data.X[kept, column].astype(float), feature.low, feature.high) - feature.low) / (
            feature.high - feature.low
        )
        edges = np.unique(np.concatenate(([0.0, 1.0], values)))
        utility.append(gains(values, gradients, 0.5 * (edges[:-1] + edges[1:])))
        weights.append(np.diff(edges))
    utilities, widths = np.concatenate(utility), np.concatenate(weights)
    uniform = widths / widths.sum()
    found = {}
    for epsilon in EPSILONS:
        level = SPLIT_SHARE * epsilon / DEPTH
        chosen = widths * np.exp(log_density(utilities, widths, level, SENSITIVITY))
        found[f"{epsilon:g}"] = float(0.5 * np.abs(chosen - uniform).sum())
    return found
