"""A private correlation matrix of numeric columns: the sums of a statistic from outside, with the curator's noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

import ledgerwood as lw
from ledgerwood.curator import ColumnTable, Curator, DeclaredStatistic, real
from ledgerwood.mechanisms import GaussianMechanism, RandomSource, SecureRandom

EXPONENT = -12
STEPS = 2**-EXPONENT
"""A number of 1 is so many steps."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Correlations:
    """A released correlation matrix.

    Args:
        names: of the columns, in order.
        matrix: (k, k), symmetric, positive semidefinite, 1 on the diagonal.
        rows: the noisy number of rows without a gap.
        caveat: who declares the sensitivity; empty where it is proven.
    """

    names: tuple[str, ...]
    matrix: NDArray[np.float64]
    rows: float
    caveat: str


def correlation_statistic(columns: Sequence[lw.Numeric], *, one_by_one: bool = False) -> DeclaredStatistic:
    """The sums beneath a correlation matrix: (1, z, the products z_i z_j), each column scaled to z in [-1, 1].

    Args:
        columns: numeric, of the schema.
        one_by_one: whether the function sees one row at a time, which proves its sensitivity.
    """
    columns = tuple(columns)
    pairs = np.triu_indices(len(columns))

    def moments(chunk: Mapping[str, NDArray[np.float64]]) -> NDArray[np.int64]:
        z = np.column_stack([2 * (chunk[c.name] - c.low) / (c.high - c.low) - 1 for c in columns])
        numbers = np.column_stack((np.ones(len(z)), z, z[:, pairs[0]] * z[:, pairs[1]]))
        numbers[np.isnan(numbers).any(axis=1)] = 0.0  # a row with a gap counts nothing
        return (numbers * STEPS).astype(np.int64)

    return DeclaredStatistic(
        name="moments of scaled columns",
        declared_by="private_correlations 0.1",
        columns=columns,
        function=moments,
        most=(STEPS,) * (1 + len(columns) + len(pairs[0])),
        exponent=EXPONENT,
        one_by_one=one_by_one,
    )


def private_correlations(
    X: Any,
    schema: lw.Schema,
    *,
    ledger: lw.Ledger,
    epsilon: float,
    delta: float,
    one_by_one: bool = False,
    source: RandomSource | None = None,
) -> Correlations:
    """Release the correlation matrix of a schema's numeric columns.

    Args:
        X: array-like or data frame (n_rows, n_features).
        schema: of its columns; those that are not numeric are left out.
        ledger: pays.
        epsilon, delta: what this release may cost, under the ledger's adjacency.
        one_by_one: see `correlation_statistic`.
        source: of the noise; the operating system's secure one where None.

    Raises:
        BudgetExceeded: the ledger does not hold that much; nothing was read.
        SchemaError: the columns are not the schema's.
    """
    columns = [column for column in schema.features if isinstance(column, lw.Numeric)]
    statistic = correlation_statistic(columns, one_by_one=one_by_one)
    adjacency = ledger.budget.adjacency
    shifts = statistic.sensitivity(adjacency)
    budget = lw.Budget(epsilon=epsilon, delta=delta, adjacency=adjacency)
    stddev = lw.calibrate(lambda s: GaussianMechanism(stddev=s).event(shifts, adjacency), budget)
    mechanism = GaussianMechanism(stddev=stddev)
    event = mechanism.event(shifts, adjacency)
    table = ColumnTable.from_data(X, schema)
    grant = ledger.grant(event, purpose="correlations", delta=delta)
    curator = Curator(table, grant, SecureRandom() if source is None else source)
    with curator.open(event, purpose=statistic.purpose("correlations")) as round_:
        release = round_.release(statistic, mechanism, purpose="correlations")
    count, *sums = real(release)
    return Correlations(
        names=tuple(column.name for column in columns),
        matrix=_matrix(np.array(sums), max(float(count), 1.0), len(columns)),
        rows=float(count),
        caveat=release.caveat,
    )


def _matrix(sums: NDArray[np.float64], rows: float, k: int) -> NDArray[np.float64]:
    """The nearest that noise leaves of a correlation matrix: post-processing of released numbers."""
    mean, second = sums[:k] / rows, np.zeros((k, k))
    second[np.triu_indices(k)] = sums[k:] / rows
    covariance = second + np.triu(second, 1).T - np.outer(mean, mean)
    values, vectors = np.linalg.eigh(covariance)
    covariance = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    spread = np.sqrt(np.diag(covariance))
    return np.clip(covariance / np.outer(spread, spread), -1.0, 1.0)
