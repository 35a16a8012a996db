"""DPBoost's presets as values, and the rules of public quantities that complete them."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.curator import Loss
from ledgerwood.trainers.base.bounds import MAX_BINS, require_name
from ledgerwood.trainers.dpboost.training import DPBoostPlan

Preset = Literal["default", "paper", "enhanced", "para", "seq", "np"]
PAPER = DPBoostPlan(
    adjacency=Adjacency.ADD_REMOVE,
    loss="squared",
    n_estimators=50,
    trees_per_ensemble=50,
    assignment="geometric",
    max_depth=6,
    # LightGBM's default number of bins, on a public grid.
    max_bins=255,
    candidates="grid",
    tree_epsilon=1.0,
    leaf_share=0.5,
    leaf_release="ratio",
    count_share=0.5,
    geometric_clipping=True,
    large_gradients="drop",
    clip=1.0,
    reg_lambda=0.1,
    leaf_regularization="lambda",
    score_noise=0.5,
    learning_rate=0.1,
    # Where every leaf is without noise.
    leaf_clamp=1.0,
    initial_score="zero",
    initial_multiplier=1.0,
    initial_share=0.1,
)
"""The paper's own choices, made sound: one ensemble of 50 trees, section 4."""
DEFAULT = dataclasses.replace(
    PAPER,
    trees_per_ensemble=1,
    max_depth=4,
    max_bins=32,
    leaf_release="sums",
    leaf_share=0.6,
    count_share=0.15,
    geometric_clipping=False,
    large_gradients="clip",
    clip=0.3,
    leaf_regularization="noise",
    learning_rate=0.5,
    leaf_clamp=2.0,
    initial_score="laplace",
)
"""What serves best for a number without tuning (docs/explanation/dpboost.md#dpboost-defaults)."""
DEFAULT_CLASSES = dataclasses.replace(
    DEFAULT, leaf_share=0.5, clip=1.0, score_noise=0.4, learning_rate=0.4, initial_score="zero"
)
"""The same for classes, as labels -1 and 1."""
_SINGLE: dict[str, Any] = {"trees_per_ensemble": 1, "geometric_clipping": False}
PRESETS: Mapping[str, DPBoostPlan] = {
    "paper": PAPER,
    "enhanced": dataclasses.replace(PAPER, initial_score="laplace", candidates="gridless", max_bins=MAX_BINS),
    "para": dataclasses.replace(PAPER, assignment="halving", geometric_clipping=False),
    "seq": dataclasses.replace(PAPER, **_SINGLE),
    # No gradient of labels and scores in [-1, 1] is larger than 2.
    "np": dataclasses.replace(PAPER, **_SINGLE, large_gradients="clip", clip=2.0, leaf_clamp=None),
}
"""docs/explanation/dpboost.md#dpboost-presets."""


def default_plan(loss: Loss, budget: Budget, *, classes: bool, forests: int = 1) -> DPBoostPlan:
    """The default, epsilon still to be calibrated: more trees for a larger budget."""
    plan = dataclasses.replace(
        DEFAULT_CLASSES if classes else DEFAULT,
        adjacency=budget.adjacency,
        loss=loss,
        n_estimators=min(max(round(25.0 * math.sqrt(budget.epsilon / forests)), 8), 80),
    )
    # A gradient is in the unit of a label in [-1, 1], or of a class by the logistic loss.
    return dataclasses.replace(plan, clip=0.5) if loss == "logistic" else plan


def preset_plan(preset: Preset, loss: Loss, budget: Budget, *, classes: bool, forests: int = 1) -> DPBoostPlan:
    """A preset's plan, epsilon still to be calibrated."""
    require_name("preset", preset, get_args(Preset))
    if preset == "default":
        return default_plan(loss, budget, classes=classes, forests=forests)
    plan = dataclasses.replace(PRESETS[preset], adjacency=budget.adjacency, loss=loss)
    # No gradient of the logistic loss is larger than 1.
    return dataclasses.replace(plan, clip=1.0) if preset == "np" and loss == "logistic" else plan
