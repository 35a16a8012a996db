"""Choices over the points of public grids: their law point by point, their price against every neighbour."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import BoundedRangeEvent
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import (
    CategoricalCandidates,
    Grid,
    GridlessMechanism,
    NumericCandidates,
    SeededRandom,
    UtilityRange,
)
from ledgerwood.mechanisms.choices import selection

A = Adjacency.ADD_REMOVE
UNIT = Grid(exponents=(-1,))  # utilities in half-steps
POINTS, CATEGORIES = 5, 3


def vector(values):
    return np.array(values, dtype=np.int64)


def law_by_points(features, rate):
    """{(feature, point): probability}, each point weighed alone, from the definition of a cell."""
    weights = {}
    for index, feature in enumerate(features):
        if isinstance(feature, CategoricalCandidates):
            utilities = feature.utilities.tolist()
        else:  # the cell of a point is the number of rows below it
            utilities = [
                int(feature.utilities[int((feature.positions <= point).sum())]) for point in range(feature.points)
            ]
        for point, utility in enumerate(utilities):
            weights[index, point] = feature.weight * mpmath.exp(mpmath.mpf(rate) * utility / 2)
    total = mpmath.fsum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


def law_by_cells(features, rate):
    """The same from the cells that the sampler weighs together and then cuts evenly."""
    law = {}
    for index, feature in enumerate(features):
        for start, width, utility in zip(*(part.tolist() for part in feature.cells()), strict=True):
            for point in range(start, start + width):
                assert (index, point) not in law
                law[index, point] = feature.weight * mpmath.exp(mpmath.mpf(rate) * utility / 2)
    total = mpmath.fsum(law.values())
    return {key: weight / total for key, weight in law.items()}


def balance(left, n):
    """A subset-closed utility in half-steps: how evenly a split cuts the rows. One row changes it by 1 unit at most."""
    return -2 * abs(2 * left - n)


def candidates(rows):
    """Rows are (position, category); both features together, a category weighing two points."""
    n = len(rows)
    positions = sorted(position for position, _ in rows)
    counts = [sum(category == c for _, category in rows) for c in range(CATEGORIES)]
    return [
        NumericCandidates(
            positions=vector(positions), points=POINTS, utilities=vector([balance(r, n) for r in range(n + 1)])
        ),
        CategoricalCandidates(utilities=vector([balance(c, n) for c in counts]), weight=2),
    ]


def assert_frequencies(features, rate, n=20_000):
    source, mechanism = SeededRandom(7), GridlessMechanism(rate=rate)
    law = law_by_points(features, rate)
    found = dict.fromkeys(law, 0)
    for _ in range(n):
        chosen = mechanism.select(features, UNIT, source)
        found[chosen.feature, chosen.point] += 1
    expected = np.array([n * float(p) for p in law.values()])
    counts = np.array(list(found.values()))
    seen = expected >= 5
    assert counts[~seen].sum() <= expected[~seen].sum() + 15
    statistic = float(((counts[seen] - expected[seen]) ** 2 / expected[seen]).sum())
    assert chi2.sf(statistic, max(int(seen.sum()) - 1, 1)) > 1e-4


@pytest.mark.slow  # whole laws by enumeration of the coins
@pytest.mark.parametrize("rows", [[], [(0, 0), (5, 1)], [(2, 0), (2, 2), (2, 2), (4, 1)]])
def test_points_have_their_law(rows):
    assert_frequencies(candidates(rows), 0.4)


@pytest.mark.slow  # whole laws by enumeration of the coins
def test_weights_and_several_grids():
    features = [
        NumericCandidates(positions=vector([3, 3, 9]), points=12, utilities=vector([1, 9, 2, 0]), weight=3),
        NumericCandidates(positions=vector([]), points=2, utilities=vector([2]), weight=10),
        CategoricalCandidates(utilities=vector([0, 3, -50]), weight=7),
    ]
    assert_frequencies(features, 0.7)


@given(st.lists(st.integers(-3, 9), max_size=6), st.data())
def test_cells_cover_the_grid_whatever_the_rows(positions, data):
    """Sorted and inside: the cell of each point is the number of rows below it. Else: still each point once."""
    utilities = vector(
        data.draw(st.lists(st.integers(-9, 9), min_size=len(positions) + 1, max_size=len(positions) + 1))
    )
    loose = NumericCandidates(positions=vector(positions), points=POINTS, utilities=utilities)
    starts, widths, _ = loose.cells()
    assert (widths > 0).all()
    assert starts[0] == 0
    assert (starts[1:] == (starts + widths)[:-1]).all()
    assert starts[-1] + widths[-1] == POINTS
    inside = [
        NumericCandidates(positions=np.clip(np.sort(loose.positions), 0, POINTS), points=POINTS, utilities=utilities)
    ]
    assert law_by_cells(inside, 0.3) == law_by_points(inside, 0.3)


def test_no_neighbour_breaks_the_price():
    """All data sets of up to 3 rows with one row more: the log ratios lie within the event's range, and fill it."""
    rate = 0.6
    # |2 left - n| moves by exactly 1 at each point: utilities move by 1 unit up or down, so their range is 2.
    epsilon = GridlessMechanism(rate=rate).event(UtilityRange(range=2.0), A).epsilon
    assert GridlessMechanism(rate=rate).event(UtilityRange(range=2.0), A) == BoundedRangeEvent(
        epsilon=epsilon, adjacency=A
    )
    kinds = list(itertools.product((0, 2, 4, 5), range(CATEGORIES)))
    widest = 0.0
    for n in range(3):
        for rows in itertools.combinations_with_replacement(kinds, n):
            before = law_by_cells(candidates(rows), rate)
            for row in kinds:
                after = law_by_cells(candidates([*rows, row]), rate)
                assert before.keys() == after.keys()
                ratios = [float(mpmath.log(after[key] / before[key])) for key in before]
                widest = max(widest, max(ratios) - min(ratios))
                assert widest <= epsilon * (1 + 1e-12)
    assert widest == pytest.approx(epsilon, rel=1e-12)


def test_large_grids_are_no_dearer():
    features = [
        NumericCandidates(
            positions=np.sort(SeededRandom(1).integers(2**39, 5000)),
            points=2**39,
            utilities=np.arange(5001, dtype=np.int64),
        )
    ]
    chosen = [GridlessMechanism(rate=0.1).select(features, UNIT, SeededRandom(k)).point for k in range(50)]
    assert len(set(chosen)) == 50
    assert 0.9 * 2**39 < np.median(chosen) < 2**39


def test_bad_candidates_are_refused():
    one = vector([0])
    for bad in (np.zeros(1), np.zeros((1, 1), dtype=np.int64), [0]):
        with pytest.raises(InvalidParameter, match="positions"):
            NumericCandidates(positions=bad, points=3, utilities=vector([0, 0]))
        with pytest.raises(InvalidParameter, match="utilities"):
            CategoricalCandidates(utilities=bad)
    with pytest.raises(InvalidParameter, match="utilities=.*one more"):
        NumericCandidates(positions=one, points=3, utilities=one)
    with pytest.raises(InvalidParameter, match="categories=0"):
        CategoricalCandidates(utilities=vector([]))
    for points in (0, -1, 2.0, True, 2**40):
        with pytest.raises(InvalidParameter, match="points"):
            NumericCandidates(positions=vector([]), points=points, utilities=one)
    for weight in (0, -1, 1.5, 2**40):
        with pytest.raises(InvalidParameter, match="weight"):
            CategoricalCandidates(utilities=one, weight=weight)


def test_bad_choices_are_refused():
    mechanism, features = GridlessMechanism(rate=1.0), [CategoricalCandidates(utilities=vector([0, 1]))]
    with pytest.raises(InvalidParameter, match="features=0"):
        mechanism.select([], UNIT, SeededRandom(1))
    with pytest.raises(InvalidParameter, match="one column"):
        mechanism.select(features, Grid(exponents=(0, 0)), SeededRandom(1))
    with pytest.raises(InvalidParameter, match=r"rate=.*unit"):
        GridlessMechanism(rate=0.0)


def test_many_distinct_rows_are_no_reason_to_refuse(monkeypatch):
    """How many cells have points tells how many rows differ; the public bound on candidates is not asked of cells."""
    monkeypatch.setattr(selection, "_MOST_CANDIDATES", 3)
    rows = NumericCandidates(positions=vector(range(1, 5)), points=5, utilities=vector([0, 0, 0, 0, 0]))
    chosen = {GridlessMechanism(rate=1.0).select((rows,), UNIT, SeededRandom(seed)).point for seed in range(100)}
    assert chosen == set(range(5))
