"""Rows that arrive late, and what each row has spent; benchmarks only, on data that everybody may see."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ledgerwood as lw
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.individuals import FULL
from ledgerwood.curator import Curator, Round, Schema, Table
from ledgerwood.curator.filtered import FilteredRounds
from ledgerwood.mechanisms import SecureRandom
from ledgerwood.trainers.parts.splits import structure_generator
from ledgerwood.trainers.sgbdt.plan import SGBDTPlan
from ledgerwood.trainers.sgbdt.training import train

DELTA = 5e-8
Batch = tuple[NDArray[Any], NDArray[Any]]


@dataclass
class Arrival:
    """An aggregator of two curators, whose rows change after so many draws.

    Args:
        before, after: curators of one grant.
        draws: those that are left to `before`.
    """

    before: Curator
    after: Curator
    draws: int

    @property
    def schema(self) -> Schema:
        """The public description of the rows."""
        return self.before.schema

    def open(self, event: lw.Event, *, purpose: str) -> Round:
        """Draw from the curator whose turn it is."""
        self.draws -= 1
        return (self.before if self.draws >= 0 else self.after).open(event, purpose=purpose)


def fit_with_arrival(model: Any, first: Batch, later: Batch, *, early: int) -> Any:
    """Fit a model without a filter, `early` trees on the first rows and the others on the later ones."""
    model.fit(first[0][:2], first[1][:2])  # for all that a model has besides its trees
    plan: SGBDTPlan = model.plan_
    grant = _grant(plan)
    source = SecureRandom()
    before, after = (
        Curator(Table.from_data(*batch, model.schema_, loss=plan.loss, bins=plan.max_bins), grant, source)
        for batch in (first, later)
    )
    aggregator = Arrival(before, after, draws=len(plan.initial.events) + early)
    model.ensemble_ = train(plan, aggregator, structure_generator(source))
    return model


class Counting:
    """An aggregator that keeps the filtered rounds that it opened, to look at what their rows have left."""

    def __init__(self, curator: Curator) -> None:
        self.curator = curator
        self.schema = curator.schema

    def open(self, event: lw.Event, *, purpose: str) -> Round:
        """As the curator does."""
        opened = self.curator.open(event, purpose=purpose)
        if isinstance(opened, FilteredRounds):
            self.rounds = opened
        return opened


def spent_epsilons(plan: SGBDTPlan, rows: Batch, schema: Schema, *, places: int) -> NDArray[np.float64]:
    """What the rows have lost in all, in nats, at even places from the least to the most, shape (places,).

    Of a full batch with a filter. Private in general: here of a public data set, from the state of the curator, which
    no interface of the library shows.
    """
    source = SecureRandom()
    table = Table.from_data(*rows, schema, loss=plan.loss, bins=plan.max_bins)
    aggregator = Counting(Curator(table, _grant(plan), source))
    train(plan, aggregator, structure_generator(source))
    spent = 1.0 - np.quantile(aggregator.rounds._left, np.linspace(1.0, 0.0, places)) / FULL
    limit = next(plan.schedule())[0].mu()
    mu = np.sqrt(sum(event.mu() ** 2 for event in plan.initial.events) + spent * limit**2)
    return np.array([gdp.epsilon(float(value), DELTA) for value in mu])


def _grant(plan: SGBDTPlan) -> Any:
    ledger = lw.Ledger(lw.Budget(epsilon=1e15, delta=0.1, adjacency=plan.adjacency), unit=lw.PrivacyUnit.ROW)
    return ledger.grant(plan.event, purpose="a benchmark", delta=DELTA)
