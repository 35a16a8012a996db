"""The line through released scores: it finds a known one, and leaves alone what it cannot know."""

import numpy as np
import pytest
from scipy.special import expit

from ledgerwood.ensemble import Ensemble, Tree, TreeStructure
from ledgerwood.trainers.federated.candidates import platt_line, recalibrated, score_edges

EDGES = tuple(np.linspace(-1.5, 1.5, 61).tolist())
CENTRES = np.concatenate(([-1.525], (np.array(EDGES[1:]) + EDGES[:-1]) / 2, [1.525]))


def released(a, b, rows=500.0):
    p = expit(a * CENTRES + b)
    return np.column_stack((np.full(len(p), rows), rows * (2 * p - 1)))


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (9.0, 5.0), (0.2, -2.0), (4.0, -3.0)])
def test_a_line_is_found_again(a, b):
    found = platt_line(released(a, b), EDGES, stddev=1.0)
    np.testing.assert_allclose(found, (a, b), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("stddev", [1000.0, 1e6])
def test_noise_alone_changes_nothing(stddev):
    assert platt_line(released(3.0, 1.0), EDGES, stddev=stddev) == (1.0, 0.0)


def test_a_falling_line_is_not_believed():
    assert platt_line(released(-2.0, 0.0), EDGES, stddev=1.0) == (1.0, 0.0)


def test_it_is_folded_into_the_ensemble():
    tree = Tree(structure=TreeStructure.root(), values=np.array([0.5]))
    ensemble = Ensemble(initial_score=0.25, trees=(tree, tree))
    cells = np.zeros((1, 3), dtype=np.uint8)
    np.testing.assert_allclose(recalibrated(ensemble, 3.0, -1.0).scores(cells), 3.0 * ensemble.scores(cells) - 1.0)


def test_edges_lie_around_the_mean_leaves_as_far_as_their_stddevs_in_sum():
    stump = TreeStructure(feature=np.array([0], np.int32), split=np.array([2], np.uint16), equals=np.array([False]))
    trees = (Tree(structure=stump, values=np.array([0.0, 1.0])), Tree(structure=stump, values=np.array([-1.0, 3.0])))
    edges = score_edges(Ensemble(initial_score=0.25, trees=trees), 8)
    assert len(edges) == 7
    width = edges[1] - edges[0]
    # Means 0.5 and 1, stddevs 0.5 and 2.
    assert edges[0] - width == pytest.approx(1.75 - 2.5)
    assert edges[-1] + width == pytest.approx(1.75 + 2.5)
    for silent in ((), (Tree(structure=TreeStructure.root(), values=np.array([0.5])),)):
        edges = score_edges(Ensemble(initial_score=0.0, trees=silent), 8)
        assert len(edges) == 7
        assert np.diff(edges) == pytest.approx(0.25)


@pytest.mark.parametrize("value", [0.0, -1e8, 1e20, 1e99])
def test_edges_rise_around_one_score_however_large(value):
    edges = score_edges(
        Ensemble(initial_score=0.0, trees=(Tree(structure=TreeStructure.root(), values=np.array([value])),)), 32
    )
    assert (np.diff(edges) > 0.0).all()
