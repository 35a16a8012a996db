"""Sides of tests from bins, and the best of them, against loops over plain numbers."""

import numpy as np

from ledgerwood.ensemble import FeatureCells
from ledgerwood.trainers.federated.splits import HistogramTests, best_of, gains, random_tests
from ledgerwood.trainers.parts.splits import NodePath

CELLS = (
    FeatureCells(ordered=8, equality=(8,)),
    FeatureCells(ordered=0, equality=(0, 1, 2)),
    FeatureCells(ordered=6, equality=()),
)
THRESHOLDS = [np.array([2, 5]), np.empty(0, dtype=np.int64), np.array([1, 3, 4])]
NONE = np.empty(0, dtype=np.int64)


def goes_left(tests, place, cells):
    """By the definition of a test."""
    cell = cells[tests.feature[place]]
    if tests.equals[place]:
        return cell == tests.split[place]
    return (cell < tests.split[place]) | (cell == tests.besides[place])


def test_left_sums_are_those_of_the_rows_that_go_left():
    generator = np.random.default_rng(0)
    rows = np.stack([generator.integers(0, n, 500) for n in (9, 4, 6)])
    values = generator.normal(size=(500, 2))
    for features in ((0, 1, 2), (0, 2), (1,), (2,)):
        tests = HistogramTests.of(CELLS, THRESHOLDS, features)
        sums = np.zeros((1, tests.bins.total, 2))
        for place, feature in enumerate(features):
            bins = tests.bins.lookup(place, 256)[rows[feature]] + tests.bins.offsets[place]
            np.add.at(sums[0], bins, values)
        np.testing.assert_allclose(tests.totals(sums)[0], values.sum(axis=0))
        left = tests.left(sums)[0]
        assert set(tests.tests.feature.tolist()) == set(features)
        for place in range(len(tests.tests)):
            np.testing.assert_allclose(left[place], values[goes_left(tests.tests, place, rows)].sum(axis=0))
        best, children = tests.chosen(sums, 1.0)
        scores = [
            sum(side[1] ** 2 / (max(side[0], 0) + 1.0) for side in (one, values.sum(axis=0) - one)) for one in left
        ]
        assert best[0] == int(np.argmax(scores))
        np.testing.assert_allclose(children.sum(axis=0), values.sum(axis=0))


def test_no_candidate_is_no_tests():
    assert HistogramTests.of((FeatureCells(ordered=1, equality=()),), [NONE], (0,)) is None


def test_gains_of_negative_weights_are_finite():
    assert np.isfinite(gains(np.full((1, 3, 2), -5.0), np.zeros((1, 2)), 0.5)).all()


def test_random_tests_are_open_and_closed_ones_are_never_chosen():
    generator = np.random.default_rng(1)
    cuts = [own.tolist() for own in THRESHOLDS]
    path = NodePath(CELLS, cuts)
    closed, _ = path.parted(0, 2, equals=False)  # below the first candidate, and no missing value
    tests, is_open = random_tests([path, closed], (0, 2), generator)
    assert is_open.tolist() == [True, True, False, True]
    left = np.zeros((2, 2, 2))
    left[1, 0] = (1.0, 1e6)
    best, children = best_of(left, np.ones((2, 2)), is_open.reshape(2, 2), 1.0)
    assert best[1] == 1
    best, children = best_of(left, np.ones((2, 2)), np.zeros((2, 2), dtype=bool), 1.0)
    assert best.tolist() == [-1, -1]
    np.testing.assert_array_equal(children[0::2], 0.0)
    np.testing.assert_array_equal(children[1::2], 1.0)
