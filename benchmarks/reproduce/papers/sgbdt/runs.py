"""S-GBDT's figures and headlines measured: S-GBDT, its parts, and enhanced DPBoost on the same splits.

The first of five folds of each seed is held out. As in the paper, the best of a few settings is chosen on the rows held
out, for S-GBDT and DPBoost alike; that choice is not private. Noise is `SecureRandom` throughout.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

import ledgerwood as lw
from benchmarks import data_sets, sgbdt, whole_tables
from benchmarks.measuring import FOLDS, Split, cell, cross_validated, folds, is_numeric, measure, non_private
from benchmarks.reproduce.items import Found
from benchmarks.sgbdt_ablations import Batches, ablation, filtered, first_only, half_and_half, is_late
from benchmarks.sgbdt_ablations import streams as late
from benchmarks.sgbdt_accounting import plan, printed_accounting, printed_conversion
from benchmarks.utility import Parameters, Scale
from ledgerwood import datasets
from ledgerwood.trainers import DPBoostClassifier, DPBoostRegressor, SGBDTClassifier, SGBDTRegressor

DELTA = sgbdt.DELTA
Name = Literal["abalone", "adult"]
TASKS: Mapping[Name, sgbdt.Task] = {"abalone": sgbdt.ABALONE, "adult": sgbdt.ADULT}
EXTRA = 100
"""The paper's extra trees."""
SETTINGS: Mapping[Name, Mapping[str, Parameters]] = {
    "abalone": {
        "defaults": {},
        "all features": {"features_per_tree": "all"},
    },
    "adult": {"defaults": {}},
}
GRID: Parameters = {"candidates": "grid", "max_bins": 255}
SMALLER: Parameters = {
    **GRID, "clip": 0.3, "learning_rate": 0.5, "large_gradients": "clip", "geometric_clipping": False,
}  # fmt: skip
AS_PUBLISHED, SMALL = "50 trees of depth 6", "10 trees of depth 3"
BOOST_SETTINGS: Mapping[str, Parameters] = {
    AS_PUBLISHED: GRID,
    "5 trees of depth 2": {**SMALLER, "n_estimators": 5, "trees_per_ensemble": 5, "max_depth": 2, "reg_lambda": 100.0},
    SMALL: {**SMALLER, "n_estimators": 10, "trees_per_ensemble": 10, "max_depth": 3, "reg_lambda": 100.0},
    "5 trees of depth 3": {**SMALLER, "n_estimators": 5, "trees_per_ensemble": 5, "max_depth": 3, "reg_lambda": 20.0},
    "4 ensembles of 5 trees of depth 3": {
        **SMALLER, "n_estimators": 20, "trees_per_ensemble": 5, "max_depth": 3, "reg_lambda": 20.0,
    },
}  # fmt: skip
"""Of enhanced DPBoost, each in one ensemble but for the last: as published, on a public grid, which is faster than the
grid-less choice; and the best of 32 smaller models at some epsilon, by two splits of Abalone.
"""
STEEP: Parameters = {**SMALLER, "clip": 1.0, "learning_rate": 1.0, "reg_lambda": 100.0}
FEW_TREES = "3 trees of depth 3"
BOOST_CLASSES: Mapping[str, Parameters] = {
    AS_PUBLISHED: GRID,
    FEW_TREES: {**STEEP, "n_estimators": 3, "trees_per_ensemble": 3, "max_depth": 3},
    "5 trees of depth 5": {**STEEP, "n_estimators": 5, "trees_per_ensemble": 5, "max_depth": 5, "reg_lambda": 20.0},
    "10 trees of depth 5": {**STEEP, "n_estimators": 10, "trees_per_ensemble": 10, "max_depth": 5},
}  # fmt: skip
"""The same for two classes, of 30 by two splits of Adult. Shorter steps order rows as well but keep every score on the
side of the larger class, where the accuracy of a constant is all that is seen.
"""


def boost_settings(data: data_sets.Data) -> Mapping[str, Parameters]:
    """Settings of enhanced DPBoost for the target's kind."""
    return BOOST_SETTINGS if is_numeric(data) else BOOST_CLASSES


def splits_of(rows: int, scale: Scale, least: int = 1) -> list[Split]:
    """The first fold of each seed."""
    found = list(folds(rows, max(scale.seeds, least)))[::FOLDS]
    return found if scale.rows is None else found[:2]


def forest(data: data_sets.Data, epsilon: float, parameters: Parameters) -> Any:
    """S-GBDT."""
    kind = SGBDTRegressor if is_numeric(data) else SGBDTClassifier
    return kind(epsilon=epsilon, delta=DELTA, schema=data.schema, **{"expected_rows": data.rows, **parameters})


def boost(data: data_sets.Data, epsilon: float, parameters: Parameters) -> Any:
    """Enhanced DPBoost: private initial score, grid-less choice unless the parameters say otherwise."""
    kind = DPBoostRegressor if is_numeric(data) else DPBoostClassifier
    settings = {"preset": "enhanced", "expected_rows": data.rows, **parameters}
    if not is_numeric(data):
        settings.setdefault("initial_score", "laplace")
    return kind(epsilon=epsilon, schema=data.schema, **settings)


def real_epsilon(data: data_sets.Data, epsilon: float, parameters: Parameters) -> float:
    """What the noise of Algorithm 7 as printed really costs at the same delta, for the plan of these parameters."""
    asked = forest(data, epsilon, parameters).make_plan(data.schema)
    noise = printed_accounting(epsilon, DELTA, asked.share_of_rows, asked.n_estimators, printed_conversion)
    return lw.price(plan(noise, asked.share_of_rows, asked.n_estimators)).epsilon(DELTA)


def compared(
    data: data_sets.Data, makers: Mapping[str, Callable[[], Any]], splits: list[Split], epsilon: float
) -> dict[str, Any]:
    """Scores of each maker on the same splits, and differences to the first one, paired by split."""
    scores = {
        name: cross_validated(data, make, splits, f"{data.name}, {name}, {epsilon:g}") for name, make in makers.items()
    }
    first = next(iter(scores.values()))
    return {name: {**cell(found), "paired": cell(found - first)} for name, found in scores.items()}


# ------------------------------------------------------------------------------------------------- Figures 1 and 4


def points(name: Name, epsilons: tuple[float, ...]) -> Callable[[Scale], Found]:
    """S-GBDT's settings at the epsilons of printed figures, and the first two with Algorithm 7's noise as printed."""

    def run(scale: Scale) -> Found:
        data = scale.data(name)
        splits = splits_of(data.rows, scale)
        rows = {}
        for epsilon in scale.epsilons(epsilons):
            makers = {
                setting: lambda parameters=parameters, epsilon=epsilon: forest(data, epsilon, parameters)
                for setting, parameters in SETTINGS[name].items()
            }
            found = compared(data, makers, splits, epsilon)
            real = real_epsilon(data, epsilon, {})
            printed = {"as printed": lambda real=real: forest(data, real, {})}
            rows[f"{epsilon:g}"] = {**found, **compared(data, printed, splits, epsilon), "real_epsilon": real}
        return {"splits": len(splits), "rows": rows}

    return run


def figure4(name: Name, epsilons: tuple[float, ...]) -> Callable[[Scale], Found]:
    """S-GBDT's settings, enhanced DPBoost's, the private mean, and scikit-learn's booster without privacy."""

    def run(scale: Scale) -> Found:
        data = scale.data(name)
        splits = splits_of(data.rows, scale)
        mean: Parameters = {"n_estimators": 1, "max_depth": 0, "initial_score": "moments", "initial_share": 0.99}
        chosen = {f"S-GBDT, {key}": own for key, own in SETTINGS[name].items()}
        rows = {}
        for epsilon in scale.epsilons(epsilons):
            forests = {
                key: lambda epsilon=epsilon, own=own: forest(data, epsilon, own)
                for key, own in {**chosen, "DP mean": mean}.items()
            }
            boosts = {
                f"DPBoost, {key}": lambda epsilon=epsilon, own=own: boost(data, epsilon, own)
                for key, own in boost_settings(data).items()
            }
            rows[f"{epsilon:g}"] = compared(data, {**forests, **boosts}, splits, epsilon)
        return {"splits": len(splits), "rows": rows, "non_private": cell(non_private(data, splits[:5]))}

    return run


# ----------------------------------------------------------------------------------------------- Figures 5, 6 and 8


def parts(
    name: Name, epsilons: tuple[float, ...], variants: Mapping[str, Mapping[str, Parameters]]
) -> Callable[[Scale], Found]:
    """S-GBDT with and without a part: groups of variants, each paired with the first of its group."""

    def run(scale: Scale) -> Found:
        data = scale.data(name)
        splits = splits_of(data.rows, scale)
        rows: dict[str, Any] = {}
        for epsilon in scale.epsilons(epsilons):
            for group, members in variants.items():
                makers = {
                    variant: lambda epsilon=epsilon, parameters=parameters: _damped(data, epsilon, parameters)
                    for variant, parameters in members.items()
                }
                rows.setdefault(f"{epsilon:g}", {})[group] = compared(data, makers, splits, epsilon)
        return {"splits": len(splits), "rows": rows}

    return run


def _damped(data: data_sets.Data, epsilon: float, parameters: Parameters) -> Any:
    """Static noise has the damping of the dynamic plan, where the preset has none."""
    if parameters.get("leaf_noise") == "static" and "preset" not in parameters:
        dynamic = forest(data, epsilon, {**parameters, "leaf_noise": "dynamic", "leaf_statistic": "moments"})
        parameters = {**parameters, "reg_lambda": dynamic.make_plan(data.schema).leaf_lambda}
    return forest(data, epsilon, parameters)


def gradient_filtering(epsilons: tuple[float, ...]) -> Callable[[Scale], Found]:
    """Figure 8: enhanced DPBoost that drops large gradients, or clips them; a model that learns at all of them."""

    def run(scale: Scale) -> Found:
        data = scale.data("abalone")
        splits = splits_of(data.rows, scale)
        rows = {}
        for epsilon in scale.epsilons(epsilons):
            makers = {
                kind: lambda kind=kind, epsilon=epsilon: boost(
                    data, epsilon, {**BOOST_SETTINGS[SMALL], "large_gradients": kind}
                )
                for kind in ("drop", "clip")
            }
            rows[f"{epsilon:g}"] = {SMALL: compared(data, makers, splits, epsilon)}
        return {"splits": len(splits), "rows": rows}

    return run


# ----------------------------------------------------------------------------------------------------------- Figure 7


STREAMS = (
    "filter", "no filter, first batch", "no filter, trees reserved", "DPBoost, first batch",
    "DPBoost, all rows at once",
)  # fmt: skip
"""Ways to learn from a stream; all but the last two are S-GBDT's."""


def streams(name: Name, epsilons: tuple[float, ...]) -> Callable[[Scale], Found]:
    """A batch of another kind arrives after the regular trees: with a filter, without one, and DPBoost.

    DPBoost has no way to go on: once with the first batch only, and once with all rows from the start, which no stream
    offers it.
    """

    def run(scale: Scale) -> Found:
        data = scale.data(name)
        is_new = is_late(TASKS[name], data)  # type: ignore[arg-type]
        few = SMALL if is_numeric(data) else FEW_TREES
        splits = splits_of(data.rows, scale)
        rows = {}
        for epsilon in scale.epsilons(epsilons):

            def make(parameters: Parameters, epsilon: float = epsilon) -> Any:
                return forest(data, epsilon, parameters)

            scores: dict[str, list[Any]] = {}
            for train, test in splits:
                batches = Batches(data, train[~is_new[train]], train[is_new[train]])  # type: ignore[arg-type]
                boosts = [
                    boost(data, epsilon, boost_settings(data)[few]).fit(*batches.rows(rows_))
                    for rows_ in (batches.first, batches.both)
                ]
                ours = (filtered(make, batches), first_only(make, batches), half_and_half(make, batches))
                for label, model in zip(STREAMS, (*ours, *boosts), strict=True):
                    scores.setdefault(label, []).append(measure(model, data.X[test], data.y[test]))
            arrays = {label: np.array(values) for label, values in scores.items()}
            first = arrays["filter"]
            rows[f"{epsilon:g}"] = {k: {**cell(v), "paired": cell(v - first)} for k, v in arrays.items()}
        return {"splits": len(splits), "rows": rows}

    return run


# ------------------------------------------------------------------------------------------- what the paper has not


SPAMBASE_EPSILONS = (0.1, 0.5, 2.0, 10.0)


def spambase(scale: Scale) -> Found:
    """The third data set of the code (4,601 rows): S-GBDT and enhanced DPBoost. Bounds are those of the rows."""
    data = whole_tables.load("spambase")
    data = data if scale.rows is None else data.some(scale.rows)
    splits = splits_of(data.rows, scale)
    rows = {}
    for epsilon in scale.epsilons(SPAMBASE_EPSILONS):
        makers = {"S-GBDT": lambda epsilon=epsilon: forest(data, epsilon, {})} | {
            f"DPBoost, {setting}": lambda epsilon=epsilon, parameters=parameters: boost(data, epsilon, parameters)
            for setting, parameters in boost_settings(data).items()
        }
        rows[f"{epsilon:g}"] = compared(data, makers, splits, epsilon)
    return {"splits": len(splits), "rows": rows, "non_private": cell(non_private(data, splits[:5]))}


LENGTHS = (250, 500, 1_000, 2_000, 3_342)


def learning_curve(scale: Scale) -> Found:
    """R2 on Abalone by the number of rows for training, epsilon .54, S-GBDT and enhanced DPBoost."""
    data = scale.data("abalone")
    splits = splits_of(data.rows, scale)
    rows = {}
    for length in LENGTHS if scale.rows is None else LENGTHS[:2]:
        shorter = [
            (np.random.default_rng(k).permutation(train)[:length], test) for k, (train, test) in enumerate(splits)
        ]
        makers = {
            "S-GBDT": lambda length=length: forest(data, 0.54, {"expected_rows": length}),
            "DPBoost": lambda length=length: boost(data, 0.54, {**BOOST_SETTINGS[SMALL], "expected_rows": length}),
        }
        rows[str(length)] = compared(data, makers, shorter, 0.54)
    return {"splits": len(splits), "rows": rows}


FEW_ROWS = 200


def ablations(name: Name) -> Callable[[Scale], Found]:
    """Every part of S-GBDT with and without, and late rows: `benchmarks.sgbdt_ablations`, five folds a seed."""

    def run(scale: Scale) -> Found:
        data = datasets.load(name)
        if scale.rows is not None:
            data = dataclasses.replace(data, X=data.X[:FEW_ROWS], y=data.y[:FEW_ROWS])
        rows = [*ablation(TASKS[name], data, scale.seeds), *late(TASKS[name], data, scale.seeds)]
        return {"splits": FOLDS * scale.seeds, "rows": rows}

    return run
