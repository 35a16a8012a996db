"""DP-XGBoost's figures: studies with chance in them, five seeds."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console

from benchmarks import (
    cluster,
    data_sets,
    dpboost,
    dpxgboost,
    dpxgboost_studies,
    drawing,
    greedy_speed,
    paired,
    wide_synthetic,
)
from benchmarks.dpxgboost_printed import AsPrinted
from benchmarks.measuring import Scores, Split, measure
from benchmarks.paired import Method, Scored
from benchmarks.reproduce.items import Found, Study
from benchmarks.utility import Scale

SEEDS = 5
FEW = (1.0, 10.0)
PAPER = {**dpxgboost.PAPER, "n_jobs": 1}


@dataclass(frozen=True)
class NoisyAverages:
    """A sound fit whose leaves are drawn anew by Algorithm 1: UNSOUND, for public rows only."""

    def scores(self, data: data_sets.Data, epsilon: float, split: Split) -> Scores:
        """(AUC, accuracy) of a fit to the split's first rows, on its others."""
        train, test = split
        own = dpxgboost.SYSTEM.model(data, epsilon, {"expected_rows": data.rows, **PAPER})
        model = dpxgboost_studies.Unsound(own).fit(data.X[train], data.y[train])
        return measure(model, data.X[test], data.y[test])


def sketch(scale: Scale) -> Found:
    """Figure 1: accuracy at epsilon 1 by bins of the sketch, beside exact quantiles, for which nobody pays."""
    return dpxgboost_studies.sketch_bins(dpxgboost.SYSTEM, PAPER, scale, ("electricity",))


def leaves(scale: Scale) -> Found:
    """Figure 2: minimum child weights and NoisyAverage, beside the noise for any leaf (the first)."""
    own: dict[str, Scored] = {
        "noise for any leaf": Method(dpxgboost.SYSTEM, {**PAPER, "leaf_release": "ratio"}),
        "minimum 200": Method(dpxgboost.SYSTEM, {**PAPER, "min_child_weight": 200.0}),
        "minimum 600": Method(dpxgboost.SYSTEM, {**PAPER, "min_child_weight": 600.0}),
        "UNSOUND: minimum 200, as printed": AsPrinted(min_child_weight=200.0),
        "UNSOUND: minimum 600, as printed": AsPrinted(min_child_weight=600.0),
        "UNSOUND: NoisyAverage, as printed": NoisyAverages(),
    }
    return {"electricity": paired.compared(dpxgboost.SYSTEM, "electricity", own, FEW, scale)}


BESIDE = {
    "DP-XGBoost": Method(dpxgboost.SYSTEM, PAPER),
    "DPBoost": Method(dpboost.SYSTEM, {"preset": "paper"}),
}
"""Both sound, with their papers' settings."""


def beside(scale: Scale) -> Found:
    """Figures 5 and 6: beside DPBoost."""
    return {name: paired.compared(dpxgboost.SYSTEM, name, BESIDE, FEW, scale) for name in ("abalone",)}


def beside_synthetic(scale: Scale) -> Found:
    """Figures 5b and 6b: both synthetic sets at their real size, DPBoost with 32 public candidates a column."""
    own = {**BESIDE, "DPBoost": Method(dpboost.SYSTEM, {"preset": "paper", "max_bins": 32})}
    return wide_synthetic.orders(dpboost.SYSTEM, own, FEW, scale)


def whole_synthetic(scale: Scale) -> Found:
    """Both synthetic sets at their real size, in files: one fit each, a minimum child weight of 500."""
    own = {"DP-XGBoost": Method(dpxgboost.SYSTEM, PAPER)}
    return wide_synthetic.whole_sets(own, (10.0,), dpxgboost.SYSTEM.beside, scale, {"n_jobs": 2})


def utility(scale: Scale) -> Found:
    """The presets at all budgets, as docs/benchmarks/dpxgboost.md has them; two of its ten sets."""
    return dpxgboost.utility(scale, Console(quiet=True), None, only=["abalone", "adult"], with_peer=False)


def speed(scale: Scale) -> Found:
    """Seconds a tree beside xgboost, as docs/benchmarks/dpboost.md has them."""
    return greedy_speed.speed_table(Console(quiet=True), quick=scale.rows is not None)


def systems(scale: Scale) -> Found:
    """Fits on a Dask cluster beside one process, as docs/benchmarks/cluster.json has them."""
    rows = 10_000_000 if scale.rows is None else 10_000
    found: dict[str, Any] = cluster.measured(rows, 2, 1)["systems"]
    return found


STUDIES = (
    Study(name="figure1", run=sketch, seeds=SEEDS, draw=drawing.bins),
    Study(name="figure2", run=leaves, seeds=SEEDS, draw=paired.draw),
    Study(name="beside", run=beside, seeds=SEEDS, draw=paired.draw),
    Study(name="beside-synthetic", run=beside_synthetic, seeds=SEEDS, draw=paired.draw),
    Study(name="whole-synthetic", run=whole_synthetic, seeds=1),
    Study(name="utility", run=utility, seeds=SEEDS, kept="benchmarks/dpxgboost.json"),
    Study(name="speed", run=speed, seeds=1, kept="benchmarks/dpboost.json"),
    Study(name="systems", run=systems, seeds=1, kept="benchmarks/cluster.json"),
)
