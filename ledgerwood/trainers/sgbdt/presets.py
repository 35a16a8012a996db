"""S-GBDT's presets as values, and the rules of public quantities that complete them."""

import dataclasses
from collections.abc import Mapping
from typing import Literal

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.costs import gdp
from ledgerwood.curator import Loss
from ledgerwood.trainers.sgbdt.training import SGBDTPlan

Preset = Literal["default", "paper"]
_REGRESSION = SGBDTPlan(
    adjacency=Adjacency.ADD_REMOVE,
    loss="squared",
    n_estimators=256,
    max_depth=4,
    max_bins=32,
    features_per_tree=2,
    numeric_weight=1.0,
    subsample=1.0,
    noise_multiplier=1.0,
    leaf_noise="dynamic",
    leaf_statistic="moments",
    clip=0.25,
    count_share=0.02,
    curvature_scale=0.3,
    learning_rate=0.3,
    reg_lambda=None,
    lambda_rule="add",
    pooling=0.75,
    score_noise=None,
    leaf_clamp=2.0,
    initial_score="moments",
    initial_multiplier=1.0,
    initial_share=0.05,
)
DEFAULT: Mapping[Loss, SGBDTPlan] = {
    "squared": _REGRESSION,
    "logistic": dataclasses.replace(
        _REGRESSION,
        loss="logistic",
        n_estimators=512,
        leaf_statistic="curvature",
        clip=0.5,
        pooling=0.5,
        initial_score="zero",
    ),
}
"""What serves best without tuning (docs/explanation/sgbdt.md#defaults)."""
PAPER: Mapping[Loss, SGBDTPlan] = {
    "squared": dataclasses.replace(
        _REGRESSION,
        n_estimators=150,
        max_depth=2,
        features_per_tree=None,
        subsample=0.1,
        clip=0.1,
        count_share=0.2,
        curvature_scale=1.0,
        learning_rate=0.1,
        reg_lambda=15.0,
        lambda_rule="floor",
        pooling=0.0,
        initial_score="laplace",
        initial_share=0.1,
    ),
    "logistic": dataclasses.replace(
        DEFAULT["logistic"],
        n_estimators=200,
        max_depth=6,
        features_per_tree=None,
        count_share=0.2,
        curvature_scale=1.0,
        learning_rate=0.1,
        reg_lambda=10.0,
        pooling=0.0,
        initial_share=0.1,
    ),
}
"""The choices of the paper and of its published code, made sound.

Squared loss: the code's defaults, 150 trees of depth 2, gamma .1, eta .1, g* .1, r1 .2 in the code's units, max(15, n),
and a tenth of epsilon on a Laplace initial score. Logistic loss: the code's stored runs on Adult, 200 trees of depth 6,
full batch, Newton leaves, g* .5, about equal noise on both sums, lambda 10, no initial score.
"""


def default_plan(loss: Loss, budget: Budget, expected_rows: int | None) -> SGBDTPlan:
    """The default, noise still to be calibrated: the mean label should be known to about a tenth of a half range."""
    plan = dataclasses.replace(DEFAULT[loss], adjacency=budget.adjacency)
    if expected_rows is None or budget.delta == 0.0:
        return plan
    share = min(max((10.0 / (gdp.mu(budget.epsilon, budget.delta) * expected_rows)) ** 2, 0.03), 0.3)
    return dataclasses.replace(plan, initial_share=share)


def paper_plan(loss: Loss, adjacency: Adjacency) -> SGBDTPlan:
    """The paper's, noise still to be calibrated; full batch under replace-one, where a sample has no certified cost."""
    plan = dataclasses.replace(PAPER[loss], adjacency=adjacency)
    return dataclasses.replace(plan, subsample=1.0) if adjacency is Adjacency.REPLACE_ONE else plan
