"""Releases that were made elsewhere, as events on a ledger: an SGD history, a tree of dp-accounting, a noisy count.

A grant charges the ledger for the whole plan, durably, when it is made. Receipts of single draws are for the library's
own curator; what is made elsewhere needs none.
"""

from collections.abc import Iterable

import ledgerwood as lw
from ledgerwood.accounting.interop import from_dp_event, from_sgd_history


def spend_sgd(
    ledger: lw.Ledger, history: Iterable[tuple[float, float, int]], *, purpose: str, delta: float | None = None
) -> lw.Grant:
    """Spend a training by DP-SGD, whose batches were Poisson samples.

    Args:
        ledger: opened for add-remove neighbours, as the training's clipping norm has it.
        history: (noise multiplier, sampling rate, steps) of each stretch: what `accountant.history` of Opacus holds.
        purpose: a public text for the ledger.
        delta: of the ledger's budget, for this release; None takes all that is left.

    Raises:
        BudgetExceeded: the training does not fit. Nothing was spent.
    """
    trained = from_sgd_history(history, adjacency=lw.Adjacency.ADD_REMOVE)
    return ledger.grant(trained, purpose=purpose, delta=delta)


def spend_dp_event(
    ledger: lw.Ledger, tree: object, *, adjacency: lw.Adjacency, purpose: str, delta: float | None = None
) -> lw.Grant:
    """Spend what a tree of dp-accounting describes.

    Args:
        ledger: that pays.
        tree: a `dp_accounting.DpEvent`; it does not know its adjacency.
        adjacency: the relation under which its noise multipliers are stated.
        purpose: a public text for the ledger.
        delta: of the ledger's budget, for this release; None takes all that is left.

    Raises:
        UnsupportedEvent: a part that has no event here; the message names it. Nothing was spent.
        BudgetExceeded: the release does not fit. Nothing was spent.
    """
    return ledger.grant(from_dp_event(tree, adjacency=adjacency), purpose=purpose, delta=delta)


def spend_count(ledger: lw.Ledger, *, scale: int, queries: int = 1, purpose: str) -> lw.Grant:
    """Spend a SQL engine's counts of rows with discrete Laplace (geometric) noise.

    Args:
        ledger: opened for add-remove neighbours.
        scale: of the noise; a row changes each count by at most 1.
        queries: the number of counts, each with noise of its own.
        purpose: a public text for the ledger.

    Raises:
        BudgetExceeded: the counts do not fit. Nothing was spent.
    """
    one = lw.DiscreteLaplaceEvent(scale=scale, sensitivity=1, adjacency=lw.Adjacency.ADD_REMOVE)
    return ledger.grant(one if queries == 1 else lw.Repeated(one, count=queries), purpose=purpose)
