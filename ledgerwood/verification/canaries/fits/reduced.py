"""Reduce an estimator to one round of its own code with the whole budget in it: what one mechanism really loses.

docs/explanation/canaries.md#one-mechanism.
"""

from typing import Any

from sklearn.base import clone

from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator

ONE_ROUND: dict[str, Any] = {
    "n_estimators": 1,
    "extra_trees": 0,
    "trees_per_ensemble": 1,
    "max_depth": 1,
    "batch": 1,
    "full_cycles": False,
    "subsample": 1.0,
    "initial_score": "zero",
}
"""Parameters of one round: one tree of depth 1 that sees all rows, from a score of 0."""
_SPLITS: dict[str, str] = {"split_method": "totally_random", "splits": "random"}
"""Parameters whose value says that trees are drawn without a look at the rows."""


def one_mechanism(estimator: Any) -> tuple[AbstractTreeEstimator, dict[str, Any]]:
    """An unfitted copy with one tree of depth 1 and the whole budget, and the parameters that were set for it.

    Raises:
        InvalidParameter: an estimator that is not this library's: its rounds are not known.
    """
    if not isinstance(estimator, AbstractTreeEstimator):
        raise InvalidParameter(
            f"mode='one_mechanism': {type(estimator).__name__} is not an estimator of this library, and nobody knows "
            "what one round of it is; set mode='model'"
        )
    own = estimator.get_params(deep=False)
    changed = {name: value for name, value in ONE_ROUND.items() if name in own and own[name] != value}
    reduced: AbstractTreeEstimator = clone(estimator).set_params(**changed)
    return reduced, changed
