"""Pages name stored figures that are there, and show them as they are stored."""

import importlib.util
import json
import math
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
ROLE = re.compile(r"\{stored\}`([^`]+)`")
PAGES = {
    path.relative_to(DOCS).as_posix(): found
    for path in DOCS.rglob("*.md")
    if "_build" not in path.parts and (found := ROLE.findall(path.read_text(encoding="utf-8")))
}


@pytest.fixture(scope="module")
def stored():
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location("stored_figures", DOCS / "extensions" / "stored.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES)
def test_every_figure_that_a_page_names_is_stored(page, stored):
    for path in PAGES[page]:
        assert math.isfinite(stored.figure(path)), path


def test_the_errata_page_has_figures_from_results():
    assert len(PAGES["errata.md"]) == len(PAGES["errata/claims.md"]) >= 18


def test_a_figure_is_the_mean_of_the_named_cell(stored, tmp_path):
    cells = [{"epsilon": 0.5, "mean": [12.345, 0.8054]}, {"epsilon": 1.0, "mean": [-0.25, 1.5]}]
    curve = {"measures": ["R2"], "lengths": [50, 100], "rows": [{"name": "a", "cells": [{"mean": [1]}, {"mean": [2]}]}]}
    table = {"measures": ["RMSE", "accuracy"], "rows": [{"name": "x, 1/n", "cells": cells}]}
    costs = [{"steps": 100, "epochs": epochs, "poisson": 0.5 * epochs} for epochs in (1, 2)]
    (tmp_path / "s.json").write_text(json.dumps({"study": {"data": table, "curve": curve}, "costs": costs}))
    assert stored.figure("s > costs > steps=100, epochs=2 > poisson", tmp_path) == 1.0
    assert stored.figure("s > study > data > x, 1/n > epsilon=0.5 > accuracy", tmp_path) == 0.8054
    assert stored.figure("s > study > curve > a > length=100 > R2", tmp_path) == 2.0
    assert [stored.shown(value) for value in (0.8054, 12.345, 1.5, -0.25)] == [".805", "12.35", "1.500", "-.250"]
    for wrong, said in (
        ("t > study > data > x > epsilon=1 > accuracy", "no t.json"),
        ("s > other > data > x > epsilon=1 > accuracy", "'other'"),
        ("s > study > data > y > epsilon=1 > accuracy", "no row 'y'"),
        ("s > study > data > x, 1/n > epsilon=2 > accuracy", "no cell"),
        ("s > study > data > x, 1/n > epsilon=1 > AUC", "no measure"),
        ("s > study", "must be store"),
        ("s > costs > steps=3 > poisson", "0 rows have these values"),
        ("s > costs > steps=100 > poisson", "2 rows have these values"),
        ("s > costs > steps=100, epochs=2 > theirs", "one with 'theirs' is needed"),
    ):
        with pytest.raises(LookupError, match=re.escape(said)):
            stored.figure(wrong, tmp_path)
