"""The benchmark of speed: what it times, and the page that shows what is stored."""

import io
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from rich.console import Console

from benchmarks import scale
from ledgerwood.trainers.base import trainer

mpl.use("agg")
STORED = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "scale.json"


@pytest.mark.slow  # a fit of every system
@pytest.mark.parametrize("name", sorted(scale.systems(3, 1)))
def test_each_system_is_timed_a_tree_at_a_time(name):
    bar = trainer.progress_bar
    seconds = scale.a_tree(scale.systems(3, 1, 3)[name]().set_params(max_depth=2), scale.rows(400, 3))
    assert len(seconds) == 3
    assert min(clock for clock, _ in seconds) > 0.0
    assert trainer.progress_bar is bar


def test_rows_are_those_of_the_peers():
    """The same generator in both files: the ratio is of work on the same numbers."""
    source = Path(scale.__file__).with_name("scale_peer.py").read_text(encoding="utf-8")
    for line in (
        "X = generator.random((n_rows, n_columns), dtype=np.float32)",
        "np.clip(X[:, 0] + X[:, 1] - 1.0 + 0.1 * generator.standard_normal(n_rows), -1.0, 1.0)",
    ):
        assert line in source
        assert line in Path(scale.__file__).read_text(encoding="utf-8")


def test_the_page_has_every_goal_and_draws_what_is_stored():
    found = json.loads(STORED.read_text(encoding="utf-8"))
    console = Console(width=200, record=True, file=io.StringIO())
    scale.print_scale(found, console)
    shown = console.export_text()
    assert all(title in shown and goal in shown for title, _, _, goal in scale.GOALS)
    for _, ours, peer, _ in scale.GOALS:
        assert found["seconds"][f"{ours}, 1"] > 0.0
        assert found["seconds"][f"{peer}, 1"] > 0.0
    figure = scale.draw_growth(found)
    for panel, points in zip(figure.axes, found["growth"].values(), strict=True):
        np.testing.assert_array_equal(panel.lines[0].get_xydata(), points)
