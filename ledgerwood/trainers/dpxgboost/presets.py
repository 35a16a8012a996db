"""DP-XGBoost's presets as values, and the rules of public quantities that complete them."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.curator import Loss
from ledgerwood.trainers.dpxgboost.training import DPXGBoostPlan

Preset = Literal["default", "paper"]
LARGE_TABLE = 100_000
"""Rows beyond which the paper takes a minimum child weight of 500 and not of 50."""
PAPER = DPXGBoostPlan(
    adjacency=Adjacency.ADD_REMOVE,
    loss="squared",
    n_estimators=20,
    max_depth=6,
    max_bins=1024,
    n_candidates=32,
    sketch="tree",
    n_numeric=0,
    subsample=0.1,
    tree_epsilon=1.0,
    sketch_share=1.0,
    split_share=1.0,
    leaf_share=1.0,
    weight_share=0.5,
    count_share=0.5,
    clip=1.0,
    large_gradients="drop",
    reg_lambda=0.1,
    learning_rate=0.3,
    leaf_release="sums",
    leaf_regularization="lambda",
    score_noise=1.0,
    pooling=0.0,
    min_child_weight=50.0,
    min_child_weight_by="leaves",
    initial_score="zero",
    initial_multiplier=1.0,
    initial_share=0.05,
    once_share=0.1,
    once_epsilon=1.0,
)
"""The choices of the paper's section 5, made sound.

20 trees of depth 6, eta .3, lambda .1, a tenth of the rows a tree, thirds of a tree's epsilon for sketch, splits and
leaves, 1024 bins a feature, gradients beyond 1 left out, a minimum child weight of 50 (of 500 for more than 100,000
rows), classes as labels -1 and 1.
"""
_REGRESSION = dataclasses.replace(
    PAPER,
    max_depth=5,
    max_bins=32,
    sketch="none",
    subsample=1.0,
    split_share=0.6,
    count_share=0.1,
    clip=0.2,
    large_gradients="clip",
    reg_lambda=1.0,
    learning_rate=0.5,
    leaf_regularization="noise",
    pooling=0.5,
    min_child_weight_by="none",
    initial_score="laplace",
)
DEFAULT: Mapping[Loss, DPXGBoostPlan] = {
    "squared": _REGRESSION,
    "logistic": dataclasses.replace(
        _REGRESSION,
        loss="logistic",
        max_depth=4,
        split_share=2.0,
        clip=0.75,
        learning_rate=1.5,
        score_noise=1.6,
        initial_score="zero",
    ),
}
"""What serves best without tuning (docs/explanation/dpxgboost.md#dpxgboost-defaults)."""


def paper_plan(budget: Budget, expected_rows: int | None, n_numeric: int) -> DPXGBoostPlan:
    """The paper's, `tree_epsilon` still to be calibrated; full batch under replace-one."""
    return dataclasses.replace(
        PAPER,
        adjacency=budget.adjacency,
        n_numeric=n_numeric,
        # Under replace-one a sampled plan has no certified cost.
        subsample=1.0 if budget.adjacency is Adjacency.REPLACE_ONE else PAPER.subsample,
        min_child_weight=_minimum(expected_rows),
    )


def default_plan(
    loss: Loss, budget: Budget, expected_rows: int | None, n_numeric: int, *, classes: int = 1
) -> DPXGBoostPlan:
    """The default plan, still to be calibrated: more trees for more rows; a larger share for the mean of few."""
    plan = dataclasses.replace(
        DEFAULT[loss],
        adjacency=budget.adjacency,
        n_numeric=n_numeric,
        min_child_weight=_minimum(expected_rows),
    )
    if expected_rows is None:
        return plan
    # What a row can do to a tree and the noise on it are in balance where trees grow like this.
    rows = budget.epsilon * expected_rows / classes
    factor, fewest = (0.025, 15) if loss == "logistic" else (0.1, 6)
    return dataclasses.replace(
        plan,
        n_estimators=min(max(round(factor * rows ** (2 / 3)), fewest), 300),
        # The mean label should be known to about a tenth of a half range.
        initial_share=min(max(30.0 / rows, 0.02), 0.3),
    )


def _minimum(expected_rows: int | None) -> float:
    return 500.0 if expected_rows is not None and expected_rows > LARGE_TABLE else 50.0
