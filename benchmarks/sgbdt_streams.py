"""Rows that arrive late, and what each row has spent; benchmarks only, on data that everybody may see."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import ledgerwood as lw
from ledgerwood.accounting import gdp
from ledgerwood.accounting.row_costs import FULL
from ledgerwood.curator import Curator, Table
from ledgerwood.curator.filtered import FilteredRounds
from ledgerwood.ensemble import Ensemble
from ledgerwood.mechanisms import SecureRandom
from ledgerwood.trainers.sgbdt import SGBDTPlan, boost, initial_score
from ledgerwood.trainers.splits import structure_generator


@dataclass(frozen=True)
class Grown:
    """An ensemble, and the share of its limit that each row of the last table has lost (filtered plans only)."""

    ensemble: Ensemble
    spent: NDArray[np.float64]


def grown(plan: SGBDTPlan, first: Table, later: Table, *, early: int, joined: int) -> Grown:
    """The plan's trees, `early` of them over the rows of `first` and the others over those of `later`.

    Args:
        plan: calibrated; every row that takes part is paid for by it.
        first, later: the rows before and after the arrival.
        early: trees before it.
        joined: how many rows of `later`, at its beginning, are those of `first`; they have left what they had.
    """
    ledger = lw.Ledger(lw.Budget(epsilon=1e6, delta=0.1, adjacency=plan.adjacency), unit=lw.PrivacyUnit.ROW)
    grant = ledger.grant(plan.event, purpose="a stream", delta=5e-8)
    source = SecureRandom()
    generator = structure_generator(source)
    curators = Curator(first, grant, source), Curator(later, grant, source)
    ensemble = Ensemble(initial_score=initial_score(plan, curators[0]))
    left = np.full(first.n_rows, FULL, dtype=np.int64)
    for event, trees in plan.draws:
        if not isinstance(event, lw.FilteredEvent):
            with curators[trees[0] >= early].open(event, purpose="tree") as round_:
                ensemble = boost(plan, round_, ensemble, first.schema, trees, generator)
            continue
        receipt = grant.draw(event, purpose="trees", randomness=source.kind)
        with FilteredRounds(first, event, receipt, source, left) as rounds:
            ensemble = boost(plan, rounds, ensemble, first.schema, trees[:early], generator)
        arrived = np.full(later.n_rows - joined, FULL, dtype=np.int64)
        left = np.concatenate((left[:joined], arrived))
        with FilteredRounds(later, event, receipt, source, left) as rounds:
            ensemble = boost(plan, rounds, ensemble, first.schema, trees[early:], generator)
    return Grown(ensemble=ensemble, spent=1.0 - left / FULL)


def spent_epsilons(plan: SGBDTPlan, table: Table, delta: float, *, places: int) -> NDArray[np.float64]:
    """What the rows have lost in all, in nats, at even places from the least to the most, shape (places,).

    Of a full batch with a filter. Private in general: here of a public data set, from the state of the curator, which
    no interface of the library shows.
    """
    trees = grown(plan, table, table, early=plan.trees, joined=table.n_rows)
    limit = next(plan.draws)[0].mu()
    spent = np.quantile(trees.spent, np.linspace(0.0, 1.0, places))
    mu = np.sqrt(sum(event.mu() ** 2 for event in plan.initial.events) + spent * limit**2)
    return np.array([gdp.epsilon(float(value), delta) for value in mu])
