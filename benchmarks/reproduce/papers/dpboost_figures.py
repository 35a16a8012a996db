"""DPBoost's figures and tables: studies with chance in them, five seeds, and how their values are judged."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import data_sets, dpboost, dpboost_studies, drawing, paired, wide_synthetic
from benchmarks.measuring import is_numeric
from benchmarks.paired import Method
from benchmarks.reproduce.items import Found, Study
from benchmarks.utility import Parameters, Scale

SETS: tuple[data_sets.Name, ...] = ("a9a", "abalone")
"""Of the paper's Table 1 those that can be had at their size; a9a is its "adult"."""
EPSILONS = (1.0, 4.0, 8.0, 10.0)
FEW = (1.0, 10.0)
SEEDS = 5
DELTA_G = (3.0 * 0.1 + 2.0) / ((0.1 + 1.0) * (0.1 + 2.0))
"""Lemma 1 at lambda .1."""
PRINTED_TIMES = 0.5 + 0.5 * 4.0 / (2.0 * DELTA_G)
"""What a tree with the noise as printed costs, over what the paper says: exp(epsilon G / (2 Delta_G)) with Lemma 1's
sensitivity is our choice at 4 / (2 Delta_G) = 2.009 times its epsilon, half of a tree's; leaves have the rest."""
AS_PRINTED: Parameters = {"preset": "paper", "leaf_share": 0.5 / PRINTED_TIMES, "max_delta_step": "off"}


def sized(parameters: Parameters, trees: int) -> Parameters:
    """With so many trees in one ensemble; SEQ's are over all rows."""
    return {**parameters, "n_estimators": trees, "trees_per_ensemble": 1 if parameters["preset"] == "seq" else trees}


def methods(trees: int) -> dict[str, Method]:
    """What Figures 2, 5 and 6 compare, and DPBoost with the noise as printed."""
    pure = {name.upper(): Method(dpboost.SYSTEM, sized({"preset": name}, trees)) for name in ("para", "seq")}
    return {
        "DPBoost": Method(dpboost.SYSTEM, sized({"preset": "paper"}, trees)),
        **pure,
        "DPBoost, noise as printed": Method(dpboost.SYSTEM, sized(AS_PRINTED, trees), times=PRINTED_TIMES),
    }


def budgets(trees: int, epsilons: tuple[float, ...]) -> Callable[[Scale], Found]:
    """Figures 2, 5 and 6: one ensemble."""

    def run(scale: Scale) -> Found:
        own = methods(trees if scale.rows is None else 2)
        return {name: paired.compared(dpboost.SYSTEM, name, own, epsilons, scale) for name in SETS}

    return run


def clipping(scale: Scale) -> Found:
    """Figure 4: with and without geometric leaf clipping."""
    own = {
        "clipped": Method(dpboost.SYSTEM, {"preset": "paper"}),
        "not clipped": Method(dpboost.SYSTEM, {"preset": "paper", "geometric_clipping": False}),
    }
    return {name: paired.compared(dpboost.SYSTEM, name, own, FEW, scale) for name in (*SETS, "synthetic_regression")}


def convergence(scale: Scale) -> Found:
    """Figures 3, 7, 8: one fit of 1,000 trees at a total epsilon of 100, scored by its beginnings, one split a seed."""
    trees = dpboost_studies.TREES if scale.rows is None else dpboost.QUICK_TREES
    lengths = np.unique(np.linspace(trees / 20, trees, 20).astype(int).clip(1)).tolist()
    variants = {
        name: {**parameters, "n_jobs": 1}
        for name, parameters in dpboost.study_variants(trees)["convergence"].items()
        if name != "seq"
    }
    found: dict[str, Any] = {}
    for name in ("abalone",):
        data = scale.data(name)
        splits = paired.one_each(scale, dpboost.SYSTEM, data.rows)
        errors = {}
        for variant, parameters in variants.items():
            curves = [dpboost_studies.curve(dpboost.SYSTEM, data, parameters, lengths, split) for split in splits]
            errors[variant] = paired.error(data, np.array(curves))
        plain = [dpboost_studies.plain_curve(dpboost.SYSTEM, data, lengths, split) for split in splits]
        errors["not private"] = paired.error(data, np.array(plain))
        halves = next(variant for variant in errors if variant.startswith("para"))
        found[name] = {
            "measure": "RMSE" if is_numeric(data) else "test error, %",
            "epsilon": dpboost_studies.TOTAL_EPSILON,
            "splits": len(splits),
            "lengths": lengths,
            "methods": {
                variant: [paired.spread_cell(at) for at in curves.T] for variant, curves in errors.items()
            },
            "last less first": {
                variant: paired.spread_cell(curves[:, -1] - curves[:, 0]) for variant, curves in errors.items()
            },
            "last less PARA": {
                variant: paired.spread_cell((curves - errors[halves])[:, -1]) for variant, curves in errors.items()
            },
        }  # fmt: skip
    return found


def whole_synthetic(scale: Scale) -> Found:
    """Both synthetic sets at their real size, in files: one fit each."""
    coarse = {"max_bins": 32}
    own = {
        "DPBoost": Method(dpboost.SYSTEM, {"preset": "paper", **coarse}),
        "PARA": Method(dpboost.SYSTEM, {"preset": "para", **coarse}),
    }
    return wide_synthetic.whole_sets(own, FEW, dpboost.SYSTEM.beside, scale, {"n_jobs": 2})


def draw_curves(found: Found) -> Any:
    """Error against the number of trees."""
    figure, axes = drawing.panels(len(found))
    for axis, (name, entry) in zip(axes, found.items(), strict=True):
        for variant, cells in entry["methods"].items():
            style = "k--" if variant == "not private" else "o-"
            axis.plot(entry["lengths"], [cell["mean"] for cell in cells], style, markersize=3, label=variant)
        axis.set_xlabel(f"trees, total epsilon {entry['epsilon']:g}")
        axis.set_ylabel(entry["measure"])
        if entry["measure"] == "RMSE":
            axis.set_yscale("log")
        axis.set_title(name, fontsize=9)
        drawing.legend(axis)
    figure.tight_layout()
    return figure


def table1(_: Scale) -> Found:
    """Rows and columns of what can be had; the synthetic sets are made at their size (`benchmarks.wide_synthetic`)."""
    shapes = {name: list(data_sets.load(name).X.shape) for name in SETS}
    return {**shapes, **{kind: [wide_synthetic.ROWS, wide_synthetic.COLUMNS] for kind in wide_synthetic.KINDS}}


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
    Study(name="figure2", run=budgets(50, EPSILONS), seeds=SEEDS, draw=paired.draw),
    Study(name="figure4", run=clipping, seeds=SEEDS, draw=paired.draw),
    Study(name="figure5", run=budgets(20, FEW), seeds=SEEDS, draw=paired.draw),
    Study(name="figure6", run=budgets(40, FEW), seeds=SEEDS, draw=paired.draw),
    Study(name="table2", run=table2, seeds=1, kept="benchmarks/dpboost.json"),
    Study(name="table3", run=table3, seeds=1, kept="benchmarks/dpboost.json"),
    Study(name="whole-synthetic", run=whole_synthetic, seeds=1),
    Study(name="convergence", run=convergence, seeds=SEEDS, draw=draw_curves),
)
