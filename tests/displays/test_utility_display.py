"""The picture of utility over epsilon: medians and spreads of the scores that are given."""

import math

import pytest
from matplotlib.figure import Figure

from ledgerwood.displays import UtilityDisplay
from ledgerwood.errors import InvalidParameter

SCORES = {"trees": {4.0: [0.9, 0.8, 0.85], 0.5: [0.6]}, "$other$": {1.0: [0.7, 0.75]}}


def test_medians_and_spreads():
    display = UtilityDisplay.from_scores(SCORES, score="accuracy", references={"not private": 0.95})
    trees, other = display.curves
    assert (trees.epsilon, trees.median, trees.least, trees.largest) == (
        (0.5, 4.0), (0.6, 0.85), (0.6, 0.8), (0.6, 0.9),
    )  # fmt: skip
    assert other.median == (0.725,)
    assert "trees: 0.6 at epsilon 0.5, 0.85 at epsilon 4" in display.alt
    assert "not private: 0.95" in display.alt
    ax = display.plot(Figure().add_subplot())
    assert (ax.get_xscale(), ax.get_ylabel()) == ("log", "accuracy")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.5", "1", "4"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["not private", "trees", r"\$other\$"]


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({}, "at least one model"),
        ({"a": {}}, "at least one epsilon"),
        ({"a": {0.0: [1.0]}}, "epsilon=0.0 must be > 0"),
        ({"a": {1.0: []}}, "at least one number"),
        ({"a": {1.0: [math.nan]}}, "not a finite number"),
    ],
)
def test_what_cannot_be_drawn_is_refused(scores, said):
    with pytest.raises(InvalidParameter, match=said):
        UtilityDisplay.from_scores(scores, score="accuracy")
