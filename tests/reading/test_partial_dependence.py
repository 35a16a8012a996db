"""Partial dependence against a recursion by itself, and against the mean over all cells."""

import itertools

import numpy as np
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.reading import partial_dependence
from tests.reading.models import CELLS, MODELS, cells_of, expected_output


@pytest.mark.parametrize("name", MODELS)
def test_one_feature_is_the_recursion(name):
    model = MODELS[name]
    for place, feature in enumerate(model.names):
        found = partial_dependence(model, feature)
        (axis,) = found.axes
        cells = cells_of(axis, place)
        assert len(cells) == len(axis.labels) == len(found.values)
        expected = [expected_output(model, {place: cell}) for cell in cells]
        np.testing.assert_allclose(found.values, expected, rtol=1e-12, atol=1e-13)
        assert sum(axis.shares) == pytest.approx(1.0)
        # Nothing changes between two borders.
        every = {cell: expected_output(model, {place: cell}) for cell in range(CELLS[place])}
        for cell, output in every.items():
            at = max(i for i, first in enumerate(cells) if first <= cell)
            np.testing.assert_allclose(found.values[at], output, rtol=1e-12, atol=1e-13)
        # The mean over the feature's own distribution is the mean output.
        np.testing.assert_allclose(found.mean, expected_output(model, {}), rtol=1e-12, atol=1e-13)
        spread = np.sqrt(np.array(axis.shares) @ (found.values - found.mean) ** 2)
        np.testing.assert_allclose(found.spread, spread, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_two_features_are_the_recursion(name):
    model = MODELS[name]
    for pair in ((0, 1), (3, 2)):
        found = partial_dependence(model, pair)
        cells = [cells_of(axis, place) for axis, place in zip(found.axes, pair, strict=True)]
        expected = [[expected_output(model, {pair[0]: one, pair[1]: other}) for other in cells[1]] for one in cells[0]]
        np.testing.assert_allclose(found.values, expected, rtol=1e-12, atol=1e-13)


def test_with_public_volumes_it_is_the_mean_over_all_cells():
    model = MODELS["public volumes"]
    every = np.array(list(itertools.product(*(range(n) for n in CELLS))), dtype=np.uint8).T
    scores = 1.0 + (model.ensemble.scores(every) + 1.0) * 14.0
    found = partial_dependence(model, "sex")
    assert found.source == "public volumes"
    for cell in range(CELLS[1]):
        assert found.values[cell, 0] == pytest.approx(scores[every[1] == cell].mean(), rel=1e-12)


def test_results_speak_the_schemas_words_and_are_frozen():
    found = partial_dependence(MODELS["number"], "sex")
    assert found.axes[0].labels == ("'M'", "'F'", "'I'", "other")
    assert (found.unit, found.outputs, found.source) == ("rings", ("rings",), "released weights")
    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 0.0
    text = str(partial_dependence(MODELS["shared classes"], ["length", "sex"]))
    assert text.startswith("partial dependence on length and sex, in score; shares of rows: released weights\n")
    assert "missing" in text
    assert "'middle' " in text
    assert partial_dependence(MODELS["labels"], 0).unit == "label"
    np.testing.assert_allclose(partial_dependence(MODELS["labels"], 0).values.sum(axis=-1), 1.0)


@pytest.mark.parametrize(
    ("features", "says"),
    [
        ("colour", "one of"), (4, "below 4"), (-1, ">= 0"), (("sex", "sex"), "different"), ((0, 1, 2), "or two"),
        ((), "or two"), (("sex", 1), "different"),
    ],
)  # fmt: skip
def test_other_features_are_refused(features, says):
    with pytest.raises(InvalidParameter, match=says):
        partial_dependence(MODELS["number"], features)
