"""DPBoost's figures and tables: studies with chance in them, five seeds, and how their values are judged."""

import dataclasses
from collections.abc import Callable

from benchmarks import data_sets, dpboost, dpboost_studies, drawing, paired, wide_synthetic
from benchmarks.paired import Method
from benchmarks.reproduce.items import Found, Study
from benchmarks.utility import Parameters, Scale

SETS: tuple[data_sets.Name, ...] = ("a9a", "abalone")
"""Of the paper's Table 1 those that can be had at their size; a9a is its "adult"."""
EPSILONS = (1.0, 4.0, 8.0, 10.0)
SEEDS = 5
DELTA_G = (3.0 * 0.1 + 2.0) / ((0.1 + 1.0) * (0.1 + 2.0))
"""Lemma 1 at lambda .1."""
PRINTED_TIMES = 0.5 + 0.5 * 4.0 / (2.0 * DELTA_G)
"""What a tree with the noise as printed costs, over what the paper says: exp(epsilon G / (2 Delta_G)) with Lemma 1's
sensitivity is our choice at 4 / (2 Delta_G) = 2.009 times its epsilon, half of a tree's; leaves have the rest."""
PRINTED = "DPBoost, noise as printed"
AS_PRINTED: Parameters = {"preset": "paper", "leaf_share": 0.5 / PRINTED_TIMES, "max_delta_step": "off"}


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


def figure2(scale: Scale) -> Found:
    """Figure 2: one ensemble of fifty trees."""
    own = methods(dpboost.TREES if scale.rows is None else 2)
    return {name: paired.compared(dpboost.SYSTEM, name, own, EPSILONS, scale) for name in SETS}


def stored(name: str) -> Callable[[Scale], Found]:
    """Figures 4, 5 and 6, as docs/benchmarks/dpboost.md has them: a fifth of its seeds, five folds each."""

    def run(scale: Scale) -> Found:
        own = dataclasses.replace(scale, seeds=5 * scale.seeds)
        variants = dpboost.study_variants(dpboost_studies.TREES)
        if name == "figure4":
            return dpboost_studies.leaf_clipping(dpboost.SYSTEM, variants["clipping"], own)
        trees = dpboost_studies.ENSEMBLES[name] if scale.rows is None else 2
        return dpboost_studies.one_ensemble(dpboost.SYSTEM, variants["budgets"], trees, own)

    return run


def convergence(scale: Scale) -> Found:
    """Figures 3, 7, 8, as docs/benchmarks/dpboost.md has them: 1,000 trees, scored by their beginnings."""
    trees = dpboost_studies.TREES if scale.rows is None else dpboost.QUICK_TREES
    return dpboost_studies.convergence(dpboost.SYSTEM, dpboost.study_variants(trees)["convergence"], scale)


def whole_synthetic(scale: Scale) -> Found:
    """Both synthetic sets at their real size, in files: one fit each, of ten trees."""
    few = {"preset": "paper", "max_bins": 32, "n_estimators": 10, "trees_per_ensemble": 10}
    own = {"DPBoost": Method(dpboost.SYSTEM, few)}
    beside = {**dpboost.SYSTEM.beside, "max_iter": 10}
    return wide_synthetic.whole_sets(own, (10.0,), beside, scale, {"n_jobs": 2})


def table1(_: Scale) -> Found:
    """Rows and columns of what can be had."""
    return {name: list(data_sets.load(name).X.shape) for name in SETS}


def table2(scale: Scale) -> Found:
    """Seconds a tree, as docs/benchmarks/dpboost.md has them."""
    return dpboost_studies.seconds_a_tree(
        dpboost.SYSTEM, dpboost.study_variants(dpboost_studies.TREES)["timing"], scale
    )


def table3(scale: Scale) -> Found:
    """Shares of rows that filtering leaves out, as docs/benchmarks/dpboost.md has them."""
    return dpboost_studies.rows_left_out(dpboost.SYSTEM, dpboost.PURE["paper"], scale)


STUDIES = (
    Study(name="table1", run=table1, seeds=0),
    Study(name="figure2", run=figure2, seeds=SEEDS, draw=paired.draw),
    *(
        Study(name=name, run=stored(name), seeds=SEEDS, kept="benchmarks/dpboost.json", draw=drawing.budgets)
        for name in ("figure4", "figure5", "figure6")
    ),
    Study(name="table2", run=table2, seeds=1, kept="benchmarks/dpboost.json"),
    Study(name="table3", run=table3, seeds=1, kept="benchmarks/dpboost.json"),
    Study(name="whole-synthetic", run=whole_synthetic, seeds=1),
    Study(name="convergence", run=convergence, seeds=1, kept="benchmarks/dpboost.json", draw=drawing.curves),
)
