"""The five trainers as the bugs find them: small, every part that can be wrong in use, on made-up rows."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

import ledgerwood as lw
from ledgerwood.curator.inputs.encoding import encode_features
from ledgerwood.trainers import (
    DPBoostRegressor,
    DPXGBoostRegressor,
    FederatedGBDTClassifier,
    PrivaTreeClassifier,
    SGBDTRegressor,
)
from ledgerwood.verification.sensitivity.domains import added, removed

SEED, TREES, DEPTH, BINS, ROWS = 20_261_122, 4, 2, 32, 60
FEATURES = (lw.Numeric("a", 0.0, 1.0), lw.Numeric("b", 0.0, 1.0))
NUMBERS = lw.Schema(features=FEATURES, target=lw.Numeric("y", 0.0, 1.0))
CLASSES = lw.Schema(features=FEATURES, target=lw.Categorical("y", ("maybe", "no", "yes")))
_SMALL = {"max_depth": DEPTH, "max_bins": BINS, "random_state": SEED}
_BOOSTED = {**_SMALL, "n_estimators": TREES, "initial_score": "zero", "clip": 0.25, "delta": 1e-5}


@dataclass(frozen=True)
class System:
    """A trainer.

    Args:
        name: as the table has it.
        kind: its estimator.
        schema: declared.
        parameters: of the fits that replays and the noise's law see.
        audited: what is different where one release is audited.
        tuned: the parameter that a rule of n would set.
        noise_fits: whose noise is tested together.
        audit_factor: how many times as many fits an audit takes: a choice shows less than a sum.
    """

    name: str
    kind: type
    schema: lw.Schema
    parameters: dict[str, Any]
    audited: dict[str, Any]
    tuned: str
    noise_fits: int
    audit_factor: int = 1

    @property
    def chooses(self) -> bool:
        """True of PrivaTree: it chooses all that it releases, and adds noise to no sum."""
        return self.kind is PrivaTreeClassifier

    @property
    def plan(self) -> type:
        """Its plan's class."""
        found: type = self.kind._plan_type
        return found

    def cells(self, data: Any) -> Any:
        """The cells of the rows, (n_features, n_rows)."""
        return encode_features(data[0], self.schema, bins=BINS)

    def rows(self, seed: int = 0) -> tuple[Any, Any]:
        """Rows in clusters, with corners that nobody is in; labels of two classes of three, or of half the range."""
        generator = np.random.default_rng(seed)
        X = np.round(generator.choice([0.3, 0.45, 0.6, 0.7], (ROWS, 2)) + generator.uniform(-0.03, 0.03, (ROWS, 2)), 3)
        score = X[:, 0] + 0.3 * X[:, 1]
        if isinstance(self.schema.target, lw.Categorical):
            return X, np.where(score > np.median(score), "yes", "no").astype(object)
        return X, np.round(np.clip(0.2 + 0.5 * score, 0.25, 0.75), 3)

    def neighbours(self, data: Any) -> dict[str, Any]:
        """Rows in empty corners with labels that nobody has, in the first place of all; and one row less."""
        low, high = ("maybe", "maybe") if isinstance(self.schema.target, lw.Categorical) else (0.0, 1.0)
        return {
            "low corner": added(data, [0.0, 0.0], high, at=0),
            "high corner": added(data, [1.0, 1.0], low, at=0),
            "one side": added(data, [0.3, 1.0], low, at=0),
            "one less": removed(data, 0),
        }


class _Rows(AbstractContextManager[None]):
    """The rows of the fit that goes on: what a trainer with a bug has at hand."""

    current: Any = None

    def __call__(self, data: Any) -> "_Rows":
        self.current = data
        return self

    def __exit__(self, *_: object) -> None:
        self.current = None


rows_of = _Rows()
_AUDITED: dict[str, Any] = {"n_estimators": 1, "max_depth": 0}
_ONE_TREE: dict[str, Any] = {
    **_SMALL,
    "schema": CLASSES,
    "epsilon": 2.0,
    "candidate_bins": 8,
    "max_depth": DEPTH + 1,
}
SYSTEMS = (
    System(
        "S-GBDT", SGBDTRegressor, NUMBERS,
        {**_BOOSTED, "schema": NUMBERS, "epsilon": 8.0, "subsample": 0.5, "reg_lambda": 2.0},
        {**_AUDITED, "subsample": 1.0}, "reg_lambda", 16,
    ),
    System(
        "DPBoost", DPBoostRegressor, NUMBERS,
        {
            **_BOOSTED, "schema": NUMBERS, "epsilon": 8.0, "trees_per_ensemble": 2, "leaf_release": "sums",
            "geometric_clipping": False, "candidates": "grid",
        },
        {**_AUDITED, "trees_per_ensemble": 1, "epsilon": 2.0, "delta": 0.0, "leaf_release": "ratio"}, "reg_lambda", 16,
    ),
    System(
        "DP-XGBoost", DPXGBoostRegressor, NUMBERS,
        {
            **_BOOSTED, "schema": NUMBERS, "epsilon": 8.0, "subsample": 0.5, "sketch": "tree",
            "leaf_release": "sums",
        },
        {
            **_AUDITED, "subsample": 1.0, "epsilon": 2.0, "delta": 0.0, "leaf_release": "ratio",
            "min_child_weight_by": "none", "reg_lambda": 1.0,
        }, "reg_lambda", 8,
    ),
    System(
        "federated", FederatedGBDTClassifier, CLASSES,
        {**_BOOSTED, "schema": CLASSES, "epsilon": 8.0, "split_method": "partially_random", "update": "gradient",
         "reg_lambda": 2.0},
        {**_AUDITED, "split_method": "totally_random"}, "reg_lambda", 8,
    ),
    System(
        "PrivaTree", PrivaTreeClassifier, CLASSES, {**_ONE_TREE, "split_method": "accuracy"},
        {"max_depth": 1, "candidate_bins": 2, "epsilon": 1.0}, "leaf_share", 120, 6,
    ),
    System(
        "PrivaTree by Gini", PrivaTreeClassifier, CLASSES, {**_ONE_TREE, "split_method": "gini"},
        {"max_depth": 0, "epsilon": 1.0}, "leaf_share", 120, 3,
    ),
)  # fmt: skip
