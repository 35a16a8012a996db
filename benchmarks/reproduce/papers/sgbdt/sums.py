"""Secure sums that a fit of S-GBDT over several owners asks for, counted as they were sent."""

import numpy as np

from benchmarks.reproduce.items import Found, Reading, Verdict
from benchmarks.reproduce.papers.sgbdt.runs import forest
from benchmarks.utility import Scale
from ledgerwood.federation import federate

OWNERS, TREES, EPSILON = 5, 20, 0.54


def count(scale: Scale) -> Found:
    """Masked sums and their words, of a fit to Abalone with an initial score, and of one without."""
    data = scale.data("abalone")
    owners = [(data.X[each], data.y[each]) for each in np.array_split(np.arange(data.rows), OWNERS)]
    found: dict[str, dict[str, int]] = {}
    for name, parameters in {"initial score": {}, "none": {"initial_score": "zero"}}.items():
        model = forest(data, EPSILON, {"n_estimators": TREES, "expected_rows": data.rows, **parameters})
        record = federate(model, owners, engine="process").federation_
        found[name] = {"sums": len(record.rounds), "words": sum(each.words for each in record.rounds)}
    return {"owners": OWNERS, "trees": TREES, **found}


def one_a_tree(found: Found) -> Reading:
    """Whether there are as many sums as trees, and one more for an initial score."""
    with_score, without, trees = found["initial score"], found["none"], found["trees"]
    verdict: Verdict = "holds" if (with_score["sums"], without["sums"]) == (trees + 1, trees) else "does not hold"
    return Reading(
        ours=f"{trees} trees of {found['owners']} owners: {without['sums']} sums, {without['words']:,} words; with an "
        f"initial score {with_score['sums']}, {with_score['words']:,} words",
        verdict=verdict,
    )
