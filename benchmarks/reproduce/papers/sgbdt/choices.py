"""S-GBDT's grid-less exponential choice beside a grid, for DPBoost: scores paired by seed, and seconds of a core."""

import statistics
import time
from typing import Any

from benchmarks.reproduce.items import Found, Reading, Verdict
from benchmarks.reproduce.judging import Mean, alike
from benchmarks.reproduce.papers.sgbdt.figures import R2, of
from benchmarks.reproduce.papers.sgbdt.runs import BOOST_SETTINGS, SMALL, boost, compared, splits_of
from benchmarks.utility import Parameters, Scale

EPSILONS = (1.0, 3.0, 10.0)
KINDS: dict[str, Parameters] = {
    "grid": {"candidates": "grid", "max_bins": 255},
    "grid-less": {"candidates": "gridless", "max_bins": 60_000},
}
FINE = 4_096
"""Points of a grid that has about as many as Abalone has rows."""
MARGIN = 0.02
"""Of R2, up to which two choices count as alike; the paper has no number."""
REPEATS = 5


def compare(scale: Scale) -> Found:
    """R2 of both choices on the same splits of Abalone, and seconds of a fit by them and by a finer grid."""
    data = scale.data("abalone")
    splits = splits_of(data.rows, scale)

    def make(kind: Parameters, epsilon: float) -> Any:
        return boost(data, epsilon, {**BOOST_SETTINGS[SMALL], **kind})

    rows = {}
    for epsilon in scale.epsilons(EPSILONS):
        makers = {name: lambda kind=kind, epsilon=epsilon: make(kind, epsilon) for name, kind in KINDS.items()}
        rows[f"{epsilon:g}"] = compared(data, makers, splits, epsilon)
    train, _ = splits[0]
    seconds = {}
    for name, kind in {**KINDS, "fine grid": {"candidates": "grid", "max_bins": FINE}}.items():
        taken = []
        for _ in range(REPEATS):
            model = make(kind, EPSILONS[-1])
            start = time.process_time()
            model.fit(data.X[train], data.y[train])
            taken.append(time.process_time() - start)
        seconds[name] = statistics.median(taken)
    return {"splits": len(splits), "rows": rows, "seconds": seconds}


def same(found: Found) -> Reading:
    """Whether both choices have the same R2, by paired differences."""
    gaps, cells = {}, {}
    for epsilon, row in found["rows"].items():
        difference = row["grid-less"]["paired"]
        gaps[epsilon] = Mean(value=difference["mean"][R2], spread=difference["spread"][R2], count=found["splits"])
        cells[epsilon] = " / ".join(str(of(row[name], found["splits"])) for name in ("grid-less", "grid"))
    return alike(gaps, margin=MARGIN, cells=cells, names=("R2 grid-less", "grid"))


def faster(found: Found) -> Reading:
    """Whether a grid-less fit takes less time than one on a grid of as many points as there are rows."""
    seconds = found["seconds"]
    verdict: Verdict = "holds" if seconds["grid-less"] < seconds["fine grid"] else "does not hold"
    return Reading(
        ours=f"{seconds['grid-less']:.2f} s; {seconds['fine grid']:.2f} s on a grid of {FINE:,} points a feature, "
        f"{seconds['grid']:.2f} s on one of {KINDS['grid']['max_bins']}",
        verdict=verdict,
    )
