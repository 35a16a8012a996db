"""Estimators reduced to one round of their own code with the whole budget in it, or to one kind of release of it.

docs/explanation/canaries.md#one-mechanism.
"""

from typing import Any

from sklearn.base import clone

from ledgerwood.curator import Schema
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.federated.plan import FederatedPlan
from ledgerwood.trainers.parts.greedy_trees import AbstractGreedyPlan
from ledgerwood.trainers.privatree.plan import PrivaTreePlan
from ledgerwood.verification.canaries.result import Mode

ONE_ROUND: dict[str, Any] = {
    "n_estimators": 1,
    "extra_trees": 0,
    "trees_per_ensemble": 1,
    "max_depth": 1,
    "batch": 1,
    "full_cycles": False,
    "subsample": 1.0,
    "sampling": "poisson",
    "initial_score": "zero",
}
"""Parameters of one round: one tree of depth 1 that sees all rows, from a score of 0."""
LEFT_OVER = 1e-3
"""Share of the budget, or relative share, for each release other than the selection: a plan has no share of 0."""
_OTHER_SHARES = ("leaf_share", "sketch_share", "weight_share", "quantile_share")
WORDS: dict[Mode, str] = {
    "one_mechanism": "one tree of depth 1 with the whole budget",
    "one_selection": "the private choice of one split with nearly the whole budget",
    "one_leaf": "the release of one tree's leaves with the whole budget",
}
"""What was audited in the place of the model."""


def one_mechanism(estimator: Any, mode: Mode = "one_mechanism") -> tuple[AbstractTreeEstimator, dict[str, Any]]:
    """An unfitted copy with one tree and the whole budget, and the parameters that were set for it.

    Args:
        estimator: one of this library's.
        mode: "one_mechanism", a tree of depth 1; "one_selection", of which only the choice of the split gets more than
            a thousandth of the budget; "one_leaf", a tree without splits, or one with public splits.

    Raises:
        InvalidParameter: an estimator that is not this library's: its rounds are not known; "one_selection" of one
            that chooses no split by a private selection.
    """
    if not isinstance(estimator, AbstractTreeEstimator):
        raise InvalidParameter(
            f"mode={mode!r}: {type(estimator).__name__} is not an estimator of this library, and nobody knows "
            "what one round of it is; set mode='model'"
        )
    wanted = dict(ONE_ROUND)
    if mode != "one_mechanism":
        wanted |= _part(estimator, mode)
    own = estimator.get_params(deep=False)
    changed = {name: value for name, value in wanted.items() if name in own and own[name] != value}
    reduced: AbstractTreeEstimator = clone(estimator).set_params(**changed)
    return reduced, changed


def _part(estimator: AbstractTreeEstimator, mode: Mode) -> dict[str, Any]:
    """The parameters that leave one kind of release the budget."""
    if not isinstance(estimator.schema, Schema):
        raise InvalidParameter(
            f"schema={estimator.schema!r}: an audit needs a declared schema; an estimated one is not known before the "
            "fit"
        )
    # One column does where features are not named: what a plan releases does not depend on their number.
    plan = estimator.make_plan(estimator.schema.resolved(len(estimator.schema.features) or 1))
    method = plan.split_method if isinstance(plan, PrivaTreePlan | FederatedPlan) else "random"
    greedy = isinstance(plan, AbstractGreedyPlan)
    if mode == "one_leaf":
        public = not greedy and method in ("random", "totally_random")
        return {} if public else {"max_depth": 0}  # public splits cost nothing
    if greedy or method == "gini":
        return dict.fromkeys(_OTHER_SHARES, LEFT_OVER)
    if method == "accuracy":
        # The last level's tests and the labels are one selection, which has the labels' share.
        quantiles = isinstance(plan, PrivaTreePlan) and plan.candidates == "quantiles"
        return {"leaf_share": 1.0 - LEFT_OVER} if quantiles else {}
    raise InvalidParameter(
        f"mode='one_selection': {type(estimator).__name__} chooses no split by a private selection; set "
        "mode='one_leaf' or 'one_mechanism'"
    )
