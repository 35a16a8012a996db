"""The benchmark of sparse rows: what it times, and the figures that the page shows."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import sparse_rows

STORED = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "sparse_rows.json"


def test_each_row_is_one_in_a_column_of_each_group():
    X, y = sparse_rows.rows(200, 70)
    assert (X.sum(axis=1) == sparse_rows.GROUPS).all()
    assert (X.data == 1.0).all()
    assert X.has_canonical_format
    assert 0.2 < np.mean(y) < 0.8


@pytest.mark.slow  # compiles a system, and fits it
def test_a_fit_is_timed_and_weighed():
    found = sparse_rows.fitted("S-GBDT", 3000, 70, 2)
    assert min(found["tree"], found["encode"], found["predict"]) >= 0.0
    assert 0 < found["input"] <= found["fit"] <= found["peak"]


def test_rows_are_those_of_the_peer():
    """The same generator in both files: the ratio is of work on the same numbers."""
    own = Path(sparse_rows.__file__).read_text(encoding="utf-8")
    peer = sparse_rows.PEER.read_text(encoding="utf-8")
    for line in (
        "np.minimum(generator.geometric(0.05, n_rows) - 1, width - 1)",
        "y = (0.5 * (places[:, 0] % 3 == 0) + 0.5 * (places[:, 1] % 2) + generator.random(n_rows) > 1.0)",
    ):
        assert line in own
        assert line in peer


def test_the_page_shows_every_system_within_its_goal_of_memory():
    found = json.loads(STORED.read_text(encoding="utf-8"))
    names = [each["system"] for each in found["fits"]]
    assert names == [*sparse_rows.systems(70, 1), "xgboost"]
    for each in found["fits"][:-1]:
        assert each["peak"] < sparse_rows.GOAL
    console = Console(width=200, record=True, file=io.StringIO())
    sparse_rows.print_sparse(found, console)
    shown = console.export_text()
    assert all(name in shown for name in names)
