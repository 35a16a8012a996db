"""DPBoost's figures and tables: studies with chance in them, methods on the same splits, five seeds and more."""

import dataclasses
import functools
from collections.abc import Callable

from benchmarks import data_sets, dpboost, dpboost_studies, drawing, paired, wide_synthetic
from benchmarks.paired import Method
from benchmarks.reproduce.items import Found, Study
from benchmarks.utility import Parameters, Scale

SETS: tuple[data_sets.Name, ...] = ("a9a", "abalone")
"""Of the paper's Table 1 those that can be had at their size; a9a is its "adult"."""
EPSILONS = (1.0, 4.0, 8.0, 10.0)
CLIPPED: tuple[data_sets.Name, ...] = ("a9a", "abalone", "synthetic_regression")
CURVED: dict[str, data_sets.Name] = {"abalone": "abalone", "adult": "a9a", "magic": "magic_telescope"}
"""Studies of convergence: the figures' adult, and two sets in the place of those that cannot be had."""
SEEDS = 10
TREES, LAST_HALVING = 1_000, 40
"""Of a curve; PARA's, which ends early as in the paper: halves of halves leave nobody to a later tree."""
SIZES = (50, 20, 40)
SYNTHETIC = (dpboost.TREES, 20)
"""Trees of the fits to a million rows."""
NOT_CLIPPED = "no leaf clipping"
DELTA_G = (3.0 * 0.1 + 2.0) / ((0.1 + 1.0) * (0.1 + 2.0))
"""Lemma 1 at lambda .1."""
PRINTED_TIMES = 0.5 + 0.5 * 4.0 / (2.0 * DELTA_G)
"""What a tree with the noise as printed costs, over what the paper says: exp(epsilon G / (2 Delta_G)) with Lemma 1's
sensitivity is our choice at 4 / (2 Delta_G) = 2.009 times its epsilon, half of a tree's; leaves have the rest."""
PRINTED = "DPBoost, noise as printed"
AS_PRINTED: Parameters = {"preset": "paper", "leaf_share": 0.5 / PRINTED_TIMES, "max_delta_step": "off"}


def in_ensembles(size: int) -> str:
    """The name of DPBoost's curve in ensembles of so many trees."""
    return f"DPBoost, ensembles of {size}"


def sized(parameters: Parameters, trees: int) -> Parameters:
    """With `trees` trees in one ensemble; SEQ's are over all rows."""
    return {**parameters, "n_estimators": trees, "trees_per_ensemble": 1 if parameters["preset"] == "seq" else trees}


def methods(trees: int) -> dict[str, Method]:
    """What Figures 2, 5 and 6 compare, and DPBoost with the noise as printed."""
    pure = {name.upper(): Method(dpboost.SYSTEM, sized({"preset": name}, trees)) for name in ("para", "seq")}
    return {
        "DPBoost": Method(dpboost.SYSTEM, sized({"preset": "paper"}, trees)),
        **pure,
        PRINTED: Method(dpboost.SYSTEM, sized(AS_PRINTED, trees), times=PRINTED_TIMES),
    }


def one_ensemble(trees: int) -> Callable[[Scale], Found]:
    """Figures 2, 5 and 6: one ensemble of 50, 20 and 40 trees."""

    def run(scale: Scale) -> Found:
        own = methods(trees if scale.rows is None else 2)
        return {name: paired.compared(dpboost.SYSTEM, name, own, EPSILONS, scale) for name in SETS}

    return run


def synthetic(trees: int) -> Callable[[Scale], Found]:
    """Figures 2 and 5 on both synthetic sets at their real size, with 32 public candidates a column."""

    def run(scale: Scale) -> Found:
        few = trees if scale.rows is None else 2
        own = {name: method for name, method in methods(few).items() if name != PRINTED}
        coarse = {n: dataclasses.replace(m, parameters={**m.parameters, "max_bins": 32}) for n, m in own.items()}
        return wide_synthetic.orders(dpboost.SYSTEM, coarse, (1.0, 10.0), scale)

    return run


def leaf_clipping(scale: Scale) -> Found:
    """Figure 4: with and without geometric leaf clipping; synthetic numbers have 100,000 x 40 here."""
    trees = dpboost.TREES if scale.rows is None else 2
    published = sized({"preset": "paper"}, trees)
    own = {
        "DPBoost": Method(dpboost.SYSTEM, published),
        NOT_CLIPPED: Method(dpboost.SYSTEM, {**published, "geometric_clipping": False}),
    }
    return {name: paired.compared(dpboost.SYSTEM, name, own, EPSILONS, scale) for name in CLIPPED}


def convergence(name: data_sets.Name) -> Callable[[Scale], Found]:
    """Figures 3, 7, 8: 1,000 trees in ensembles of 50, 20 and 40, scored by their beginnings; PARA and SEQ."""

    def run(scale: Scale) -> Found:
        trees = TREES if scale.rows is None else 4
        last = min(trees, LAST_HALVING)
        variants: dict[str, Parameters] = {
            in_ensembles(size): {"preset": "paper", "n_estimators": trees, "trees_per_ensemble": size} for size in SIZES
        }
        variants["PARA"] = {"preset": "para", "n_estimators": last, "trees_per_ensemble": last}
        variants["SEQ"] = {"preset": "seq", "n_estimators": trees, "trees_per_ensemble": 1}
        return {name: dpboost_studies.convergence(dpboost.SYSTEM, name, variants, scale)}

    return run


def whole_synthetic(scale: Scale) -> Found:
    """Both synthetic sets at their real size, in files: one fit each, of ten trees."""
    few = {"preset": "paper", "max_bins": 32, "n_estimators": 10, "trees_per_ensemble": 10}
    own = {"DPBoost": Method(dpboost.SYSTEM, few)}
    beside = {**dpboost.SYSTEM.beside, "max_iter": 10}
    return wide_synthetic.whole_sets(own, (10.0,), beside, scale, {"n_jobs": 2})


def table1(_: Scale) -> Found:
    """Rows and columns of what can be had."""
    return {name: list(data_sets.load(name).X.shape) for name in SETS}


STUDIES = (
    Study(name="table1", run=table1, seeds=0),
    *(
        Study(name=f"figure{figure}", run=one_ensemble(trees), seeds=SEEDS, draw=paired.draw)
        for figure, trees in ((2, dpboost.TREES), (5, 20), (6, 40))
    ),
    *(Study(name=f"synthetic-{trees}", run=synthetic(trees), seeds=5, draw=paired.draw) for trees in SYNTHETIC),
    Study(name="figure4", run=leaf_clipping, seeds=SEEDS, draw=paired.draw),
    *(
        Study(name=name, run=functools.partial(dpboost.study, name), seeds=1, kept="benchmarks/dpboost.json")
        for name in dpboost.STUDIES
    ),
    Study(name="whole-synthetic", run=whole_synthetic, seeds=1),
    *(
        Study(name=f"convergence-{own}", run=convergence(name), seeds=5, draw=drawing.curves)
        for own, name in CURVED.items()
    ),
)
