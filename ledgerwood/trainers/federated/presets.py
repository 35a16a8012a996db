"""The federated framework's named configurations: docs/explanation/federated.md#federated-presets."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, get_args

from ledgerwood.accounting.adjacency import Budget
from ledgerwood.curator import MAX_CURVATURE_SCALE, Loss
from ledgerwood.trainers.base.bounds import require_name
from ledgerwood.trainers.federated.plan import FederatedPlan
from ledgerwood.trainers.parts.gaussian_trees import mean_label_share

Preset = Literal[
    "recommended", "paper", "feverless", "dp_gbm", "dp_rf", "dp_ebm", "dp_ebm_newton", "tr_newton", "tr_newton_ih",
    "tr_batched_ih_ebm",
]  # fmt: skip
PAPER: Preset = "paper"
"""The paper's proposed best, with its own constants."""
OF_AVERAGES: Mapping[str, Any] = {
    "loss": "squared", "clip": 1.0, "count_share": 0.5, "initial_score": "zero", "recalibrate": False,
}  # fmt: skip
"""Values that update="averaging" needs: it takes means of labels, which are -1 and 1 for two classes."""
EBM_CYCLES = 20
"""Trees of each feature of the presets that are explainable boosting machines."""


def preset_plan(
    preset: Preset, loss: Loss, budget: Budget, expected_rows: int | None, numeric: tuple[bool, ...]
) -> FederatedPlan:
    """A preset's plan, noise still to be calibrated.

    Args:
        preset: which one.
        loss: logistic for classes.
        budget: of the fit.
        expected_rows: a public guess of the number of rows.
        numeric: of each feature whether it has thresholds.
    """
    require_name("preset", preset, get_args(Preset))
    m = len(numeric)
    published = _published(loss, budget, expected_rows, numeric)
    # With lambda 1 the steps of many small leaves drown in noise; and the hessian comes along free of charge.
    newton = dataclasses.replace(published, n_estimators=200, reg_lambda=None)
    if loss == "logistic":
        newton = dataclasses.replace(newton, curvature_scale=MAX_CURVATURE_SCALE)
    ebm = dataclasses.replace(newton, features_per_tree=1, n_estimators=EBM_CYCLES * m)
    match preset:
        case "recommended":
            return _recommended(published)
        case "feverless":
            return dataclasses.replace(published, split_method="histogram", n_estimators=25)
        case "dp_gbm":
            return dataclasses.replace(published, split_method="histogram", update="gradient", n_estimators=25)
        case "dp_rf":
            return dataclasses.replace(published, update="averaging", **OF_AVERAGES)
        case "dp_ebm":
            return dataclasses.replace(ebm, update="gradient")
        case "dp_ebm_newton":
            return ebm
        case "tr_newton":
            return newton
        case "tr_newton_ih":
            return dataclasses.replace(newton, candidates="iterative_hessian", max_bins=1024)
        case "paper":
            return dataclasses.replace(
                published,
                candidates="iterative_hessian",
                max_bins=1024,
                features_per_tree=1,
                # Of the 25 to 300 trees, and of the two p, that the paper's comparison runs through.
                n_estimators=200,
                trees_per_batch=50,
            )
        case "tr_batched_ih_ebm":
            return dataclasses.replace(
                newton,
                candidates="iterative_hessian",
                max_bins=1024,
                features_per_tree=1,
                # A mean of a batch is a small step: more batches, and a whole one each.
                n_estimators=400,
                trees_per_batch=20,
                learning_rate=1.0,
                recalibrate=loss == "logistic",
            )


def _published(loss: Loss, budget: Budget, expected_rows: int | None, numeric: tuple[bool, ...]) -> FederatedPlan:
    """Totally random trees with Newton updates: 100 of depth 4, Q 32, eta .3, lambda 1, leaves up to 2."""
    logistic = loss == "logistic"
    initial_share = mean_label_share(budget, expected_rows)
    return FederatedPlan(
        adjacency=budget.adjacency,
        loss=loss,
        n_estimators=100,
        max_depth=4,
        max_bins=32,
        n_features=len(numeric),
        numeric_features=tuple(place for place, thresholds in enumerate(numeric) if thresholds),
        split_method="totally_random",
        update="newton",
        candidates="uniform",
        n_candidates=32,
        refinements=5,
        features_per_tree=None,
        feature_cycle="windows",
        trees_per_batch=1,
        recalibrate=False,
        clip=1.0 if logistic else 0.25,
        curvature_scale=1.0,
        count_share=0.2 if logistic else 0.05,
        learning_rate=0.3,
        reg_lambda=1.0,
        pooling=0.0,
        score_noise=None,
        max_delta_step=2.0,
        initial_score="zero" if logistic else "moments",
        initial_share=0.05 if initial_share is None else initial_share,
        candidate_share=0.1,
        expected_rows=expected_rows,
    )


def _recommended(plan: FederatedPlan) -> FederatedPlan:
    """The values that predict best without tuning: two features a tree, leaves that are shrunk by the known noise."""
    logistic = plan.loss == "logistic"
    return dataclasses.replace(
        plan,
        n_estimators=512 if logistic else 256,
        candidates="log" if logistic else "uniform",
        max_bins=1024 if logistic else 32,
        features_per_tree=2,
        clip=0.5 if logistic else 0.25,
        curvature_scale=0.3,
        count_share=0.02,
        reg_lambda=None,
        pooling=0.5 if logistic else 0.75,
    )
