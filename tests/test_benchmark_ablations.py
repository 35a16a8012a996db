"""The ablation benchmark: rows arrive when they should, spent budgets are what was paid, the stored table is whole."""

import json
from pathlib import Path

import numpy as np
import pytest

import ledgerwood as lw
from benchmarks import sgbdt_ablations as ablations
from benchmarks.reproduce.papers.sgbdt import runs
from benchmarks.sgbdt import ABALONE, ADULT
from benchmarks.sgbdt_streams import DELTA, fit_with_arrival, spent_epsilons
from benchmarks.utility import Scale
from ledgerwood.trainers import SGBDTRegressor

SCHEMA = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("y", 0, 10))
X = np.random.default_rng(0).uniform(0, 1, (200, 2))
STORED = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "sgbdt_ablations.json"


def model_of(**options):
    return SGBDTRegressor(epsilon=0.5, delta=DELTA, schema=SCHEMA, max_depth=1, max_bins=8, **options)


@pytest.mark.parametrize("extra", [0, 7])
def test_rows_at_the_clip_have_spent_the_whole_budget(extra):
    """And those whose gradients are nearly 0 hardly more than their share of the count, which is known."""
    model = model_of(n_estimators=5, filter="gdp", extra_trees=extra, learning_rate=1e-9, initial_score="zero")
    plan = model.make_plan(SCHEMA)
    y = np.where(np.arange(200) < 100, 5.0, 10.0)
    spent = spent_epsilons(plan, (X, y), SCHEMA, places=5)
    assert spent[-1] == pytest.approx(0.5, rel=1e-6)
    mu = np.sqrt(plan.count_share * plan.trees) / plan.noise_multiplier
    assert spent[0] == pytest.approx(lw.price(lw.GDPEvent(mu=mu, adjacency=plan.adjacency)).epsilon(DELTA), rel=1e-3)


@pytest.mark.slow  # fits models of many trees
def test_late_rows_take_part_from_their_arrival_on():
    """Without noise to speak of: the first trees follow the first rows, the others turn to the late ones."""
    model = model_of(n_estimators=40, reg_lambda=1.0, clip=1.0, learning_rate=0.5)
    model.set_params(epsilon=1e12)
    first, both = (X[:20], np.full(20, 1.0)), (X, np.where(np.arange(200) < 20, 1.0, 9.0))
    early = fit_with_arrival(model, first, both, early=40).predict(X).mean()
    late = fit_with_arrival(model, first, both, early=20).predict(X).mean()
    assert early == pytest.approx(1.0, abs=0.1)
    assert late > 7.0


@pytest.mark.slow  # calibrates every variant
def test_every_variant_keeps_the_same_budget():
    for task in (ABALONE, ADULT):
        target = lw.Numeric("y", 0, 10) if task is ABALONE else lw.Categorical("y", ("no", "yes"))
        schema = lw.Schema.uniform(0, 1, n_features=2, target=target)
        data = ablations.datasets.Dataset(name=task.name, X=X, y=X[:, 0], schema=schema, expected_rows=5000)
        for variant in ablations.variants(task, 5000):
            plan = ablations.model_of(task, data, 0.5, variant.parameters).make_plan(schema)
            assert 0.49 < lw.price(plan.event).epsilon(DELTA) <= 0.5, variant.name


@pytest.mark.slow  # reads a data set, and fits some twenty models
def test_parts_and_late_rows_are_measured_on_few_rows(monkeypatch, on_disk):
    """The first two variants at one epsilon; each has its own row, and the ways to learn from a stream follow."""
    every = ablations.variants
    monkeypatch.setattr(ablations, "variants", lambda task, rows: every(task, rows)[:2])
    monkeypatch.setattr(ablations, "EPSILONS", {"abalone": (0.5,), "adult": (0.5,)})
    found = on_disk(lambda: runs.ablations("abalone")(Scale(seeds=1, rows=200)))
    names = [row["name"] for row in found["rows"]]
    assert names[:2] == [variant.name for variant in every(ABALONE, 4177)[:2]]
    assert len(names) > 2
    assert all(np.isfinite(cell["mean"]).all() for row in found["rows"] for cell in row["cells"])


def test_the_stored_table_has_every_variant_and_the_page_its_figure():
    found = json.loads(STORED.read_text())
    for task in (ABALONE, ADULT):
        names = [variant.name for variant in ablations.variants(task, 1)] + list(ablations.STREAMS)
        assert [row["name"] for row in found[task.name]["rows"]] == names
        for row in found[task.name]["rows"]:
            assert tuple(cell["epsilon"] for cell in row["cells"]) == ablations.EPSILONS[task.name]
    for name in ("no filter", f"{ablations.EXTRA} extra trees"):
        assert found["spent"][name][-1] == pytest.approx(ablations.SPENT_EPSILON, rel=1e-6)
        assert found["spent"][name] == sorted(found["spent"][name])


PAGE = (STORED.parents[1] / "errata.md").read_text(encoding="utf-8")
ROWS = {
    # (group, name) in the stored table, and the line of the page
    ("preset paper, rate .1", "no filter, dynamic, clipped"): "paper's preset at rate .1",
    ("preset paper, rate .1", "Renyi filter, 100 extra trees"): "with the Rényi filter and 100 extra trees",
    ("defaults", "no filter, dynamic, clipped"): "our defaults, full batch",
    ("defaults", "GDP filter, 100 extra trees"): "with the filter by Gaussian privacy and 100 extra trees",
    ("defaults", "GDP filter, .6 T regular of T"): "with that filter, .6 of the trees regular, the same number in all",
    ("late rows", "first batch only, T trees"): "late rows left out",
    ("late rows", "GDP filter: T trees, the batch arrives, T extra"): (
        "filter, $T$ extra trees over all rows with remaining budget"
    ),
    ("late rows", "T trees, then T on the late rows alone"): "$T$ more trees over the late rows alone",
    ("late rows", "no filter: T trees, the batch arrives, T"): "no filter, $T$ more trees reserved",
    ("late rows", "no filter: T / 2 trees, the batch arrives, T / 2"): (
        "no filter, half of the $T$ trees after the arrival"
    ),
}


def shown(value, places):
    return f"{value:.{places}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{places}f}"


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_the_errata_show_the_stored_figures(row):
    found = json.loads(STORED.read_text())

    def cells(task):
        (wanted,) = (line for line in found[task]["rows"] if (line["group"], line["name"]) == row)
        return [cell["mean"] for cell in wanted["cells"]]

    abalone = " / ".join(shown(r2, 3) for _, r2 in cells("abalone"))
    late = row[0] == "late rows"
    adult = " / ".join(f"{100 * (1 - right):.1f}" if late else shown(auc, 4) for auc, right in cells("adult"))
    assert f"| {ROWS[row]} | {abalone} | {adult} |" in PAGE
