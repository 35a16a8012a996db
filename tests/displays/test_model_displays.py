"""Pictures of models: drawn on the caller's axes, in both themes, with texts for readers who cannot see them."""

import functools

import numpy as np
import pytest
from matplotlib.figure import Figure

from ledgerwood.displays import (
    ContributionDisplay,
    ExplanationDisplay,
    ImportanceDisplay,
    PartialDependenceDisplay,
    TreeDisplay,
)
from ledgerwood.errors import InvalidParameter
from ledgerwood.reading.contributions import contributions_of
from tests.reading.models import MODELS, random_cells


@functools.cache
def found():
    return contributions_of(MODELS["number"], random_cells(3))


DISPLAYS = {
    "tree": lambda: TreeDisplay.from_estimator(MODELS["number"]),
    "importances": lambda: ImportanceDisplay.from_estimator(MODELS["number"]),
    "noise unknown": lambda: ImportanceDisplay.from_estimator(MODELS["labels"], top=2),
    "range": lambda: PartialDependenceDisplay.from_estimator(MODELS["shared classes"], "length"),
    "categories": lambda: PartialDependenceDisplay.from_estimator(MODELS["labels"], "place"),
    "pair": lambda: PartialDependenceDisplay.from_estimator(MODELS["number"], ("place", "length")),
    "row": lambda: ContributionDisplay.from_contributions(found(), row=1, top=2),
    "explanation": lambda: ExplanationDisplay.from_estimator(MODELS["a forest a class"]),
}


@functools.cache
def made(name):
    """One of them: made by the first test that wants it, and not where tests are only collected."""
    return DISPLAYS[name]()


@pytest.mark.parametrize("name", DISPLAYS)
def test_each_is_drawn_on_given_axes_and_has_a_text(name):
    display = made(name)
    ax = Figure().add_subplot()
    assert display.plot(ax) is ax
    ax.figure.draw_without_rendering()
    assert len(display.alt) > 40
    width, height = display.size
    assert 3.0 < width < 40.0
    assert 1.0 < height < 20.0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_one_is_saved_in_either_theme(theme, tmp_path):
    made("importances").save(tmp_path / "picture.svg", theme=theme)
    assert "expected from noise alone: " in (tmp_path / "picture.svg").read_text(encoding="utf-8")


def test_bars_have_the_shares_and_their_noise():
    ax = Figure().add_subplot()
    display = made("importances")
    display.plot(ax)
    shares, noise = ([bar.get_width() for bar in group] for group in ax.containers)
    assert shares == [each.share for each in display.table.features]
    assert noise == [min(each.share, each.noise) for each in display.table.features]
    assert [label.get_text() for label in ax.get_yticklabels()] == [each.name for each in display.table.features]


def test_a_waterfall_leads_from_the_base_to_the_output():
    ax = Figure().add_subplot()
    made("row").plot(ax)
    bars = [bar for group in ax.containers for bar in group]
    assert bars[0].get_x() == pytest.approx(found().base[0])
    assert sum(bar.get_width() for bar in bars) == pytest.approx(found().values[1, :, 0].sum())
    assert len(bars) == 3  # two features, and the others together


def test_steps_have_the_values():
    ax = Figure().add_subplot()
    made("range").plot(ax)
    steps_of = made("range").found
    steps = [patch.get_data() for patch in ax.patches]
    assert len(steps) == 3
    for place, data in enumerate(steps):
        np.testing.assert_array_equal(data.edges, steps_of.axes[0].edges)
        np.testing.assert_array_equal(data.values, steps_of.values[: len(data.values), place])


def test_what_is_not_there_is_refused():
    with pytest.raises(InvalidParameter, match="at most 0"):
        PartialDependenceDisplay.from_estimator(MODELS["number"], "sex", output=1)
    with pytest.raises(InvalidParameter, match="below 3 rows"):
        ContributionDisplay.from_contributions(found(), row=3)
    with pytest.raises(InvalidParameter, match="top"):
        ImportanceDisplay.from_estimator(MODELS["number"], top=0)


def test_no_bar_lies_under_the_legend_of_importances():
    ax = made("importances").plot(Figure().add_subplot())
    ax.figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().y0 >= ax.get_window_extent().y1
