"""The tables of which few rows are positive: how many, and whose; and what is measured on them."""

import warnings

import numpy as np
import pytest

import ledgerwood as lw
from benchmarks.data_sets import Data
from benchmarks.rare_classes import MEASURES, SHARE, scores, thinned, top
from ledgerwood.errors import PrivacyWarning


def test_the_top_of_a_number_is_its_largest_values():
    found = top(0.05)([str(value) for value in range(100)])
    assert found == ["no"] * 95 + ["yes"] * 5
    assert top(0.25)(["3", "-1", "10", "2"]) == ["no", "no", "yes", "no"]


def data():
    generator = np.random.default_rng(3)
    X = generator.uniform(0, 1, (900, 2))
    y = np.where(X[:, 0] > 0.6, "yes", "no")
    return Data("made", X, y, lw.Schema.uniform(0, 1, n_features=2, target=lw.Categorical("y", ("no", "yes"))))


def test_of_the_positive_rows_some_stay_and_all_others_do():
    whole = data()
    found = thinned(whole, "yes")
    assert np.sum(found.y == "no") == np.sum(whole.y == "no")
    assert np.mean(found.y == "yes") == pytest.approx(SHARE, abs=0.002)
    assert len(found.X) == len(found.y)


@pytest.mark.parametrize("weight", [1.0, 5.0])
def test_each_measure_is_a_share(weight):
    rows = thinned(data(), "yes")
    places = np.arange(len(rows.y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        found = scores(rows, weight, 4.0, places[places % 2 == 0], places[places % 2 == 1])
    assert len(found) == len(MEASURES)
    assert all(0.0 <= value <= 1.0 for value in found)
