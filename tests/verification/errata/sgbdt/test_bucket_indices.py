import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms.choices.gridless import NumericCandidates
from ledgerwood.verification.errata.sgbdt.bucket_indices import BucketIndices, buckets, density


def printed(values):
    """Algorithm 2, lines 3 to 5, with v_{n+1} read as v_max = 1; values sorted, in fractions."""
    n, v = len(values), [None, *values, Fraction(1)]
    found = {0: (Fraction(0), v[1]), n + 1: (v[n], Fraction(1))}
    found.update({j: (v[j], v[j + 1]) for j in range(1, n + 1)})
    return [found[j] for j in range(n + 2)]


def meant(values):
    """Definition 25's list."""
    ends = [Fraction(0), *values, Fraction(1)]
    return list(itertools.pairwise(ends))


def loss(list_of, values, added, epsilon):
    """The larger hockey-stick divergence for utility 0, piece by piece."""
    cuts = sorted({Fraction(0), Fraction(1), *values, *added})
    factor, total = Fraction(math.exp(epsilon)), [Fraction(0), Fraction(0)]
    for low, high in itertools.pairwise(cuts):
        masses = []
        for rows in (sorted([*values, *added]), sorted(values)):
            found = list_of(rows)
            weight = sum(end - begin for begin, end in found)
            holding = sum(1 for begin, end in found if begin <= low and high <= end)
            masses.append((high - low) * holding / weight)
        total[0] += max(masses[0] - factor * masses[1], 0)
        total[1] += max(masses[1] - factor * masses[0], 0)
    return float(max(total))


@pytest.mark.parametrize("largest", ["0.1", "0.5", "0.9", "0.999"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 0.7])
def test_the_loss_by_enumeration(largest, epsilon):
    specimen = BucketIndices(largest=float(largest))
    expected = loss(printed, [Fraction(float(largest))], [Fraction(1)], epsilon)
    assert specimen.delta(epsilon) == pytest.approx(expected, rel=1e-12, abs=1e-15)
    assert specimen.rows()[1].exact == pytest.approx(
        max(math.log(2 / (2 - float(largest))), math.log(2 - float(largest)))
    )


def test_the_loss_tends_to_log_2():
    assert BucketIndices(largest=1 - 1e-9).rows()[1].exact == pytest.approx(math.log(2), rel=1e-6)


def test_buckets_are_those_of_the_page():
    low, high = buckets(np.array([0.7, 0.2]))
    assert list(zip(low, high, strict=True)) == [(0.0, 0.2), (0.2, 0.7), (0.7, 1.0), (0.7, 1.0)]
    assert density(np.array([0.5]), np.array([0.25, 0.75])) == pytest.approx([1 / 1.5, 2 / 1.5])


def test_the_intervals_that_were_meant_lose_nothing_at_utility_0():
    values = [Fraction(1, 5), Fraction(9, 10)]
    assert loss(meant, values, [Fraction(1)], 0.0) == loss(meant, values, [Fraction(1, 2)], 0.0) == 0.0
    assert loss(printed, values, [Fraction(1)], 0.0) > 0.0


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"largest": 0.0}, {"largest": 1.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        BucketIndices(**wrong)


def test_the_librarys_cells_hold_every_point_once():
    # Values .9 and 1 on a grid of 100 thresholds, with and without the second: each point in one cell, at any rows.
    for positions in ([90, 100], [90], []):
        cells = NumericCandidates(
            positions=np.array(positions, dtype=np.int64),
            points=100,
            utilities=np.zeros(len(positions) + 1, dtype=np.int64),
        )
        starts, sizes, _ = cells.cells()
        held = np.concatenate([np.arange(start, start + size) for start, size in zip(starts, sizes, strict=True)])
        assert held.tolist() == list(range(100))
