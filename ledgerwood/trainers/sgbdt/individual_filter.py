"""The individual filter of S-GBDT (Algorithm 8): what no row may lose in all trees together, and who may have one."""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.calibration import calibrate
from ledgerwood.accounting.costs import conversion
from ledgerwood.accounting.events import Event, GDPEvent, RenyiEvent
from ledgerwood.accounting.individuals import LIMIT_SLACK, OVERESTIMATE
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter

IndividualFilter = Literal["none", "gdp", "renyi"]


def check_filter(
    kind: IndividualFilter,
    order: float | None,
    *,
    adjacency: Adjacency,
    subsample: float,
    extra_trees: int,
    summed: bool,
) -> None:
    """Refuse a filter that does not fit the rest of a plan.

    Args:
        kind: which filter.
        order: of the Renyi filter, > 1; None where it is not chosen yet.
        adjacency, subsample, extra_trees: the plan's.
        summed: whether the leaves' statistic is a sum over rows.

    Raises:
        AdjacencyMismatch: a filter under replace-one.
        InvalidParameter: everything else.
    """
    if order is not None:
        if kind != "renyi":
            raise InvalidParameter(f"filter_order={order!r} belongs to filter='renyi', not to filter={kind!r}")
        if not 1.0 < _validate.real("filter_order", order, "Renyi order") < math.inf:
            raise _validate.fail("filter_order", order, "> 1", "Renyi order")
    if kind == "none":
        if extra_trees > 0:
            raise InvalidParameter(
                f"extra_trees={extra_trees} need a filter: without one every tree is paid for, so raise "
                f"n_estimators (or "
                "set filter='gdp' for a full batch, 'renyi' for a sampled one)"
            )
        return
    if adjacency is Adjacency.REPLACE_ONE:
        raise AdjacencyMismatch(
            f"filter={kind!r} needs adjacency add-remove or zero-out: under replace-one what a row loses depends on "
            "the row that takes its place; set filter='none' or another adjacency"
        )
    if not summed:
        raise InvalidParameter(
            f"filter={kind!r} needs leaf_noise='dynamic': what a row changes in a ratio depends on the other rows"
        )
    if kind == "gdp" and subsample < 1.0:
        raise InvalidParameter(
            f"filter='gdp' needs subsample=1, not {subsample!r}: a Poisson-sampled Gaussian is not a Gaussian "
            "pair; set filter='renyi'"
        )


def row_limit(kind: IndividualFilter, tree: Event, *, trees: int, order: float | None) -> GDPEvent | RenyiEvent:
    """What `trees` trees cost a maximally contributing row: it takes part in exactly so many.

    Args:
        kind: "gdp" or "renyi".
        tree: the event of one tree.
        trees: trees.
        order: of the Renyi filter.

    Raises:
        InvalidParameter: a Renyi filter whose order was not chosen.
    """
    if kind == "gdp":
        return GDPEvent(mu=tree.mu() * math.sqrt(trees * (1.0 + LIMIT_SLACK)), adjacency=tree.adjacency)
    if order is None:
        raise InvalidParameter("filter_order=None: the order of filter='renyi' is fixed by `calibrated`, or give one")
    # A row's divergence is read off a table that may be above the truth by so much.
    once = float(tree.renyi(np.array([order]))[0]) * (1.0 + OVERESTIMATE)
    return RenyiEvent(orders=(order,), divergences=(trees * once * (1.0 + LIMIT_SLACK),), adjacency=tree.adjacency)


def best_order(make_event: Callable[[float], Event], budget: Budget) -> float:
    """The order at which a plan without the filter needs the least noise for the budget, by Renyi divergences.

    Args:
        make_event: a noise multiplier to that plan.
        budget: the limit.

    Raises:
        CalibrationFailed, AdjacencyMismatch: as `ledgerwood.calibrate`.
    """
    event = make_event(calibrate(make_event, budget, method="renyi"))
    log_delta = math.log(budget.delta)
    return conversion.least_over_orders(
        event.renyi, lambda orders, curve: conversion.renyi_epsilons(orders, curve, log_delta)
    ).order
