"""Scores of canaries that share leaves: who is in, by all releases. docs/explanation/canaries.md#canary-scores."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

Floats = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeenSums:
    """A release of sums, as the canaries see it.

    Args:
        leaf: (m,), in which entry each is; None where each moves all entries, which are one line then.
        change: (m, k), by what the canary moves it; where several share it, by their mean.
        residual: (m, k), what was released, less the statistic without canaries.
        variance: (k,) of the noise.
        gaussian: whether the noise is.
    """

    leaf: NDArray[np.int64] | None
    change: Floats
    residual: Floats
    variance: Floats
    gaussian: bool


def shared_scores(found: list[tuple[SeenSums, float]], choices: Floats) -> Floats:
    """The best linear estimate of who is in, of canaries that share leaves: each was included by a fair coin.

    A sum with Laplace noise counts by the slope of its log-likelihood, not by its distance: see `laplace_slope`.

    Args:
        found: sums, and the probability with which a canary took part in them.
        choices: (m,), the slope of the log-likelihood of what was chosen.
    """
    m = len(choices)
    right, rows = choices.astype(np.float64), np.arange(m)
    design: list[sparse.csr_array[Any, Any]] = []
    dense: Floats = np.zeros((m, m))
    for sums, rate in found:
        change = rate * sums.change
        if sums.gaussian or sums.leaf is None:
            weight = np.broadcast_to(1.0 / sums.variance, change.shape)
            centred = sums.residual - 0.5 * _together(change, sums.leaf)
            right = right + np.sum(centred * change * weight, axis=1)
        else:
            hidden = np.maximum(0.25 * (_together(change**2, sums.leaf) - change**2), 0.0)
            scale = np.sqrt(0.5 * sums.variance)
            weight = 1.0 / (scale**2 + hidden)
            centred = sums.residual - 0.5 * _together(change, sums.leaf)
            right = right + np.sum(laplace_slope(centred, scale, hidden) * change, axis=1)
        scaled = change * np.sqrt(weight)
        if sums.leaf is None:
            dense += scaled @ scaled.T
            continue
        design.extend(sparse.csr_array((column, (rows, sums.leaf))) for column in scaled.T)
    if not design and not dense.any():
        return right
    gram = dense
    if design:
        whole = sparse.csr_array(sparse.hstack(design))
        gram = gram + (whole @ whole.T).toarray()
    # A coin has variance 1/4.
    return np.asarray(np.linalg.solve(gram + 4.0 * np.eye(m), right))


def _together(values: Floats, leaf: NDArray[np.int64] | None) -> Floats:
    """For each canary the sum over all canaries of its leaf, shape of `values`; over all of them without leaves."""
    if leaf is None:
        return np.broadcast_to(values.sum(axis=0), values.shape)
    sums = np.zeros((int(leaf.max()) + 1, values.shape[1]))
    np.add.at(sums, leaf, values)
    return np.asarray(sums[leaf])


def laplace_slope(residual: Floats, scale: Floats, hidden: Floats) -> Floats:
    """Minus the slope of the log-density, at the residual, of Laplace noise and a hidden Gaussian together.

    Without a hidden part it is sign(residual) / scale, whose variance is half of the residual's for the same shift.
    With h the hidden variance, the density at r is proportional to e^(-r / b) Phi((r - h / b) / sqrt h) + e^(r / b)
    Phi(-(r + h / b) / sqrt h), and the slope is the difference of both terms over their sum, over b.

    Args:
        residual: what was released, less what is expected.
        scale: b of the noise.
        hidden: variance of what others add, >= 0.
    """
    spread = np.sqrt(np.maximum(hidden, 1e-12 * scale**2))
    first = -residual / scale + special.log_ndtr((residual - spread**2 / scale) / spread)
    second = residual / scale + special.log_ndtr(-(residual + spread**2 / scale) / spread)
    return np.asarray(np.tanh(0.5 * (first - second)) / scale)
