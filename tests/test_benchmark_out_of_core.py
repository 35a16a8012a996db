"""The benchmark of rows in files: its rows, what it measures, and the page that shows what is stored."""

import io
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from rich.console import Console

from benchmarks import out_of_core

pq = pytest.importorskip("pyarrow.parquet")
mpl.use("agg")
STORED = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "out_of_core.json"


def test_rows_in_the_file_are_those_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core, "CHUNK", 40)
    out_of_core.write_rows(tmp_path / "rows.parquet", 100, 3)
    table = pq.read_table(tmp_path / "rows.parquet")
    X, y = out_of_core.in_memory(100, 3)
    np.testing.assert_array_equal(np.column_stack([table[f"x{place}"] for place in range(3)]), X)
    np.testing.assert_array_equal(table[out_of_core.LABEL], y.astype(np.float32))
    assert len(np.unique(X)) == X.size  # each chunk has its own


def test_a_fit_of_a_file_is_measured_and_leaves_nothing(tmp_path):
    path = tmp_path / "rows.parquet"
    out_of_core.write_rows(path, 500, 3)
    found = out_of_core.fitted("S-GBDT", 1, 2, (500, 3), path)
    assert (found["rows"], found["place"]) == (500, "disk")
    assert min(found["tree"], found["before trees"], found["anonymous"]) > 0
    assert found["fit"] > found["before trees"]
    assert [each.name for each in tmp_path.iterdir()] == ["rows.parquet"]


def test_figures_of_two_runs_are_put_together():
    def run(rows, tree):
        fit = {"system": "S", "rows": rows, "columns": 2, "place": "disk", "tree": tree}
        return {"fits": [fit]}

    both = out_of_core.added(run(10, 1.0), run(5, 2.0))
    assert [(each["rows"], each["tree"]) for each in both["fits"]] == [(5, 2.0), (10, 1.0)]
    again = out_of_core.added(run(10, 3.0), both)
    assert [(each["rows"], each["tree"]) for each in again["fits"]] == [(5, 2.0), (10, 3.0)]


def test_the_page_shows_what_is_stored_and_the_goals_are_met():
    found = json.loads(STORED.read_text(encoding="utf-8"))
    console = Console(width=200, record=True, file=io.StringIO())
    out_of_core.print_out_of_core(found, console)
    assert "100,000,000 x 28" in console.export_text()
    ((large, small, _),) = [each for each in out_of_core.compared(found) if each[0]["rows"] == 10**8 and each[2] == 10]
    assert (small["rows"], small["place"]) == (10**7, "memory")
    assert large["tree, cores"] <= out_of_core.GOAL * small["tree, cores"]
    assert large["anonymous"] < out_of_core.BYTES_GOAL
    figure = out_of_core.draw_rows(found)
    drawn = np.concatenate([line.get_ydata() for line in figure.axes[0].lines])
    assert sorted(drawn) == sorted(each["tree, cores"] for each in found["fits"] if each["columns"] == 28)
