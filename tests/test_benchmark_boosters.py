"""What the two boosting papers' pages are measured with: paired comparisons, wide sets in files, trees as printed."""

import numpy as np
import pytest

from benchmarks import data_sets, paired, wide_synthetic
from benchmarks.dpxgboost_printed import AsPrinted
from benchmarks.reproduce.judging import Mean
from benchmarks.reproduce.judging import paired as judged
from benchmarks.reproduce.papers.dpboost import figures, readings, theorems
from ledgerwood import Numeric, Schema


def steps(rows=4_000):
    """Two steps of the first column, no noise: what any tree finds."""
    X = np.random.default_rng(0).random((rows, 3))
    y = np.where(X[:, 0] < 0.5, -0.8, 0.8)
    return data_sets.Data("steps", X, y, Schema.uniform(0, 1, n_features=3, target=Numeric("y", -1, 1)))


def test_paired_differences_have_the_error_of_differences():
    gaps = {"a": Mean(value=-0.1, spread=0.02, count=4), "b": Mean(value=0.01, spread=0.1, count=4)}
    assert judged(gaps, higher=False, names=("x", "y")).verdict == "holds"
    assert judged(gaps, higher=True, names=("x", "y")).verdict == "does not hold"
    assert judged({"b": gaps["b"]}, higher=True, names=("x", "y")).verdict == "cannot be judged"


def test_trees_as_printed_learn_where_noise_is_small_and_lose_where_it_is_not():
    data, order = steps(), np.arange(4_000)
    split = order[:3_000], order[3_000:]
    # The mean has an RMSE of .8; thresholds are quantiles of a tenth of the rows, up to .02 off the step.
    good, _ = AsPrinted(min_child_weight=20.0).scores(data, 1e4, split)
    bad, _ = AsPrinted(min_child_weight=20.0).scores(data, 0.01, split)
    assert good < 0.3 < 0.6 < bad


def test_leaves_as_printed_have_the_noise_of_equation_7():
    rule, rng = AsPrinted(min_child_weight=50.0), np.random.default_rng(0)
    drawn = np.array([rule.leaf(np.ones(60), 0.5, rng) for _ in range(4_000)])
    assert drawn.mean() == pytest.approx(-60.0 / 60.1, abs=0.01)
    assert drawn.std() == pytest.approx(np.sqrt(2.0) * 2.0 / 51.1 / 0.5, rel=0.06)


def test_wide_rows_are_the_same_in_the_file_and_in_memory(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    wide = wide_synthetic.Wide.of("synthetic_regression", 500)
    wide_synthetic.write(wide, 500, tmp_path / "rows.parquet")
    table = parquet.read_table(tmp_path / "rows.parquet").to_pandas()
    assert table.shape == (500, wide_synthetic.COLUMNS + 1)
    np.testing.assert_array_equal(table.to_numpy()[:, :-1], wide.some(0, 500).X)
    np.testing.assert_array_equal(table[wide_synthetic.LABEL], wide.y)


def test_the_error_of_classes_is_a_percentage():
    data = data_sets.Data("d", np.zeros((1, 1)), np.zeros(1), steps(10).schema)
    assert paired.error(data, np.array([[2.5, 0.3]])) == 2.5


def test_the_noise_as_printed_costs_what_lemma_1_leaves_out():
    # exp(epsilon G / (2 Delta)) is a bounded-range choice at rate times 4.
    assert pytest.approx(0.5 + 2.0 * 0.5 / theorems.gain_bound(0.1)) == figures.PRINTED_TIMES
    assert theorems.gain_change(0.1) > 3.0 * theorems.gain_bound(0.1)


@pytest.mark.parametrize(
    ("first", "last", "para", "verdict"),
    [
        (3.0, 2.0, 2.5, "holds"),
        (2.0, 3.0, 9.0, "does not hold"),  # more trees harm
        (3.0, 2.0, 1.0, "does not hold"),  # PARA is better
        (3.0, 2.0, 2.001, "cannot be judged"),
    ],
)
def test_a_curve_is_judged_by_its_ends_and_by_its_rivals(first, last, para, verdict):
    noise = 0.01 * np.array([[-1.0], [0.0], [1.0]])
    flat = np.ones((3, 2))
    errors = {"DPBoost": np.array([first, last]) + noise, "PARA": para * flat - noise, "SEQ": 9.0 * flat}
    entry = {"measure": "RMSE", "lengths": [50, 1_000], "errors": {**errors, "not private": flat}}
    reading = readings.grows_better("DPBoost")({"abalone": entry})
    assert reading.verdict == verdict
    assert f"{last:.3f} (0.010) at 1000 trees" in reading.ours


def test_a_claim_about_larger_budgets_does_not_read_smaller_ones():
    cell = {"mean": 1.0, "spread": 0.1}
    entry = {
        "measure": "RMSE", "epsilons": [1.0, 4.0], "splits": 4,
        "methods": {"clipped": [cell, cell], "not": [cell, cell]},
        "first less": {"not": [{"mean": 1.0, "spread": 0.1}, {"mean": -1.0, "spread": 0.1}]},
    }  # fmt: skip
    assert readings.above("abalone", "not")({"abalone": entry}).verdict == "does not hold"
    assert readings.above("abalone", "not", least=2.0)({"abalone": entry}).verdict == "holds"


@pytest.mark.parametrize(
    ("para", "seq", "verdict"),
    [(-1.0, -1.0, "holds"), (0.0, -1.0, "cannot be judged"), (1.0, -1.0, "does not hold")],
)
def test_a_rival_that_no_point_tells_apart_is_not_beaten(para, seq, verdict):
    cell = {"mean": 1.0, "spread": 0.1}
    entry = {
        "measure": "RMSE", "epsilons": [1.0], "splits": 4,
        "methods": {name: [cell] for name in ("DPBoost", "PARA", "SEQ")},
        "first less": {"PARA": [{"mean": para, "spread": 0.1}], "SEQ": [{"mean": seq, "spread": 0.1}]},
    }  # fmt: skip
    assert readings.above("abalone", "PARA", "SEQ")({"abalone": entry}).verdict == verdict


@pytest.mark.slow
@pytest.mark.parametrize("key", ["dpboost", "dpxgboost"])
def test_studies_run_on_few_rows(key):
    from benchmarks.reproduce.__main__ import QUICK
    from benchmarks.reproduce.papers import PAPERS

    heavy = {"whole-synthetic", "theorems", "equations", "table1"}
    # The others have tests beside the page that keeps their values.
    studies = {study.name: study for study in PAPERS[key].studies if study.kept is None}
    for name in studies.keys() - heavy:
        found = studies[name].run(QUICK)
        for item in PAPERS[key].items:
            if item.study == name and item.read is not None and "california" not in item.number:
                assert item.read(found).ours, item.number
