"""A private correlation matrix of numeric columns: one noisy release of the sums beneath it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ledgerwood as lw
from ledgerwood.curator import ColumnTable, Curator, DeclaredStatistic
from ledgerwood.mechanisms import GaussianMechanism, SecureRandom

STEPS = 2**10
"""A number of 1 is 1024 steps of 2**-10."""


@dataclass(frozen=True, kw_only=True)
class Correlations:
    """What was released.

    Args:
        matrix: shape (k, k), symmetric and positive semidefinite, 1 on the diagonal.
        event: what the release cost, as on the ledger.
        caveat: what the ledger says of the statistic.
    """

    matrix: NDArray[np.float64]
    event: lw.Event
    caveat: str


def moments(schema: lw.Schema) -> DeclaredStatistic:
    """Count, sums and sums of products of the columns, each scaled to [-1, 1]; a row with a gap counts nothing."""
    k = len(schema.features)

    def of_rows(chunk: Any) -> NDArray[np.int64]:
        z = np.stack([2 * (chunk[c.name] - c.low) / (c.high - c.low) - 1 for c in schema.features], axis=1)
        first, second = np.triu_indices(k)
        numbers = np.column_stack((np.ones(len(z)), z, z[:, first] * z[:, second]))
        numbers[np.isnan(numbers).any(axis=1)] = 0
        return (numbers * STEPS).astype(np.int64)

    return DeclaredStatistic(
        name="scaled moments",
        declared_by="the correlation matrix example",
        columns=schema.features,
        function=of_rows,
        most=(STEPS,) * (1 + k + k * (k + 1) // 2),
        exponent=-10,
    )


def private_correlations(
    X: Any, schema: lw.Schema, budget: lw.Budget, *, ledger: lw.Ledger | None = None
) -> Correlations:
    """The correlations of the rows' columns.

    Args:
        X: table, shape (n_rows, k).
        schema: numeric features with public ranges; values outside are clamped.
        budget: of this release; delta > 0.
        ledger: that pays; None for one with this budget.

    Raises:
        BudgetExceeded: the ledger refuses. Nothing was spent and no row was read into a sum.
    """
    k, statistic = len(schema.features), moments(schema)
    shifts = statistic.sensitivity(budget.adjacency)

    def event(stddev: float) -> lw.Event:
        return GaussianMechanism(stddev=stddev).event(shifts, budget.adjacency)

    mechanism = GaussianMechanism(stddev=lw.calibrate(event, budget))
    plan = mechanism.event(shifts, budget.adjacency)
    ledger = lw.Ledger(budget, unit=lw.PrivacyUnit.ROW) if ledger is None else ledger
    grant = ledger.grant(plan, purpose="correlation matrix", delta=budget.delta)
    curator = Curator(ColumnTable.from_data(X, schema), grant, SecureRandom())
    with curator.open(plan, purpose=statistic.purpose("correlation matrix")) as round_:
        release = round_.release(statistic, mechanism, purpose="sums and products")
    return Correlations(matrix=_matrix(release.real, k), event=plan, caveat=release.caveat)


def _matrix(numbers: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """From released numbers alone: negative eigenvalues, which are noise, are cut off."""
    count, sums = max(float(numbers[0]), 1.0), numbers[1:]
    second = np.zeros((k, k))
    second[np.triu_indices(k)] = sums[k:] / count
    mean = sums[:k] / count
    covariance = second + np.triu(second, 1).T - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    whole = vectors @ np.diag(np.maximum(values, 1e-6)) @ vectors.T
    spread = np.sqrt(np.diag(whole))
    return whole / np.outer(spread, spread)
