"""PrivaTree's presets as values, and the rules of public quantities that complete them."""

import dataclasses
from collections.abc import Mapping
from typing import Literal, get_args

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.trainers.base.bounds import require_name
from ledgerwood.trainers.privatree.training import PrivaTreePlan

Preset = Literal["default", "paper", "public_bins", "joint_gaussian", "random"]
PAPER_BINS = 10
RANDOM_EVIDENCE = 100.0
"""Rows times nats below which splits that are chosen are no better than random ones, which cost nothing."""
LEAST_EVIDENCE = (400.0, 2_500.0, 10_000.0)
"""Rows times nats from which a tree of depth 2, 3 and 4 is worth its cost."""
PAPER = PrivaTreePlan(
    adjacency=Adjacency.ADD_REMOVE,
    n_features=1,
    n_numeric=0,
    max_depth=4,
    # A fine grid of which private quantiles choose 9 borders: 255 steps and a missing value's cell fit one byte.
    max_bins=255,
    splits="histograms",
    choice="permute_and_flip",
    candidates="quantiles",
    candidate_bins=PAPER_BINS,
    tree_epsilon=1.0,
    leaf_share=0.5,
    quantile_share=0.2,
)
"""The paper's own choices, made sound."""
PRESETS: Mapping[Preset, PrivaTreePlan] = {
    "default": dataclasses.replace(PAPER, splits="gini", candidates="public", candidate_bins=255),
    "paper": PAPER,
    "public_bins": dataclasses.replace(PAPER, candidates="public"),
    "joint_gaussian": dataclasses.replace(PAPER, splits="joint_gaussian"),
    "random": dataclasses.replace(PAPER, splits="random", candidates="public"),
}
"""docs/explanation/privatree.md#privatree-presets."""


def default_depth(evidence: float | None) -> int:
    """How deep a tree pays: docs/explanation/privatree.md#privatree-defaults.

    Args:
        evidence: the expected number of rows times epsilon; None where it is not known.
    """
    return 4 if evidence is None else sum(evidence >= least for least in (0.0, *LEAST_EVIDENCE))


def preset_plan(
    preset: Preset, budget: Budget, *, n_features: int, n_numeric: int, rows: int | None = None
) -> PrivaTreePlan:
    """A preset's plan, epsilon still to be calibrated; the default is less deep where rows times epsilon is small."""
    require_name("preset", preset, get_args(Preset))
    plan = dataclasses.replace(PRESETS[preset], adjacency=budget.adjacency, n_features=n_features, n_numeric=n_numeric)
    if preset != "default":
        return plan
    evidence = None if rows is None else rows * budget.epsilon
    if evidence is not None and evidence < RANDOM_EVIDENCE:
        return dataclasses.replace(plan, splits="random")
    return dataclasses.replace(plan, max_depth=default_depth(evidence))
