"""Choices among points whose utilities are known from above: their distribution, whatever the bounds and the blocks."""

import copy
import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import Grid, GridlessMechanism, NumericCandidates, SeededRandom
from ledgerwood.mechanisms.choices.bounded import AbstractBoundedCandidates, Cover, chosen_point
from ledgerwood.mechanisms.exact import choice

WHOLE = Grid(exponents=(0,))


class Stretches(AbstractBoundedCandidates):
    """Points of these utilities in blocks (width, how far the bound is above the largest one; None: no block)."""

    def __init__(self, utilities, blocks, families=None, attained=0):
        self.utilities = np.array(utilities, dtype=np.int64)
        self.ends = np.cumsum([width for width, _ in blocks])
        self.slack = [slack for _, slack in blocks]
        self.families = np.zeros(len(blocks), np.int64) if families is None else np.array(families)
        self.attained = attained
        self.asked = []

    def cover(self):
        starts = np.concatenate(([0], self.ends[:-1]))
        tops = [
            int(self.utilities[start:end].max()) + (slack or 0)
            for start, end, slack in zip(starts, self.ends, self.slack, strict=True)
        ]
        return Cover(
            starts=starts,
            widths=self.ends - starts,
            utilities=np.array(tops, dtype=np.int64),
            exact=np.array([slack is None for slack in self.slack]),
            families=self.families,
            attained=self.attained,
        )

    def within(self, places):
        assert places.size
        assert (np.diff(places) > 0).all()
        self.asked.append(places.tolist())
        starts = np.concatenate(([0], self.ends[:-1]))
        points = np.concatenate([np.arange(starts[place], self.ends[place]) for place in places])
        return points, np.ones_like(points), self.utilities[points]


def law_of(utilities, rate):
    weights = [mpmath.exp(mpmath.mpf(rate) * (u - max(utilities))) for u in utilities]
    return [weight / mpmath.fsum(weights) for weight in weights]


CASES = [
    ([0, 1, 3, 2, 2], [(2, 0), (3, 2)], None, 3),
    ([0, 1, 3, 2, 2], [(2, 1), (2, 3), (1, None)], [0, 1, 2], 0),
    ([5, 5, 5, 5], [(1, 0), (1, 4), (2, 1)], [0, 0, 1], -9),
    ([-4, 0, 0, 7], [(4, 3)], None, 7),
    ([2, 2, -30], [(2, None), (1, 40)], None, 2),
    ([1], [(1, 2)], None, 1),
]


@pytest.mark.parametrize(("utilities", "blocks", "families", "attained"), CASES)
@pytest.mark.parametrize("rate", [Fraction(1, 64), Fraction(1, 2), Fraction(3)])
def test_every_branch_of_a_choice(monkeypatch, exact_law, utilities, blocks, families, attained, rate):
    """Each stretch, each of its points and each coin, with their exact probabilities."""

    def choose(gaps, counts, per_step, _):
        weights = [
            int(n) * mpmath.exp(-mpmath.mpf(int(g)) * float(per_step)) for g, n in zip(gaps, counts, strict=True)
        ]
        return pick_of[0]([weight / mpmath.fsum(weights) for weight in weights])

    def coin(gap, per_step, _):
        head = mpmath.exp(-mpmath.mpf(gap) * float(per_step))
        return bool(pick_of[0]([1 - head, head]))

    class Uniform:
        def integers(self, bound, n):
            return np.array([pick_of[0]([mpmath.mpf(1) / bound] * bound) for _ in range(n)], dtype=np.int64)

    monkeypatch.setattr(choice, "choose", choose)
    monkeypatch.setattr(choice, "coin", coin)
    pick_of = [None]

    def run(pick):
        pick_of[0] = pick
        return chosen_point(Stretches(utilities, blocks, families, attained), rate, Uniform())

    found, law = exact_law(run), law_of(utilities, float(rate))
    assert max(abs(found.get(point, 0) - p) for point, p in enumerate(law)) < 1e-13


@pytest.mark.parametrize("rate", [1e-9, 0.25, 1e3])
def test_draws_have_the_distribution(rate):
    """By real coins: 300 points, of which a few are far below, in blocks whose bounds are loose; all slack at 1e3."""
    generator = np.random.default_rng(3)
    utilities = generator.integers(0, 12, 300)
    utilities[::50] -= 2**40
    blocks = [(10, int(slack)) for slack in generator.integers(0, 12, 30)]
    candidates = Stretches(utilities, blocks, np.arange(30) // 6, 11)
    source, mechanism = SeededRandom(17), GridlessMechanism(rate=rate)
    drawn = [mechanism.select((candidates,), WHOLE, source).point for _ in range(400)]
    values, law = sorted(set(utilities.tolist())), law_of(utilities.tolist(), rate)
    expected = np.array([float(mpmath.fsum(p for p, v in zip(law, utilities, strict=True) if v == u)) for u in values])
    counts = np.array([(utilities[drawn] == u).sum() for u in values])
    seen = expected * len(drawn) >= 5
    assert counts[~seen].sum() <= 12
    wanted = expected[seen] * len(drawn)
    statistic = float(((counts[seen] - wanted) ** 2 / wanted).sum())
    assert chi2.sf(statistic, max(int(seen.sum()) - 1, 1)) > 1e-4


def test_loose_bounds_are_looked_into_once_and_hopeless_ones_never():
    """However loose they are: no block twice, and no more often than there are families, and once more."""
    utilities = np.arange(400) % 97
    for slack in (1, 60, 10**6, 2**62):
        blocks = [(10, slack)] * 40
        candidates = Stretches(utilities, blocks, np.arange(40) // 5, 96)
        chosen_point(candidates, Fraction(1), SeededRandom(slack))
        asked = list(itertools.chain.from_iterable(candidates.asked))
        assert len(asked) == len(set(asked))
        assert len(candidates.asked) <= 8 + 1
    far = Stretches(np.repeat([0, -(2**62)], 10), [(10, 1), (10, 5)], [0, 1])
    assert chosen_point(far, Fraction(1), SeededRandom(1)) < 10
    assert far.asked in ([], [[0]])


def test_a_bound_that_does_not_hold_is_no_bound():
    with pytest.raises(AssertionError, match="above its bound"):
        chosen_point(Stretches([3], [(1, -1)]), Fraction(1), SeededRandom(1))


def test_a_copy_has_the_exact_cells():
    candidates = Stretches([4, 4, 1, 1, 9], [(2, 3), (1, None), (2, 0)])
    for found in (candidates.cells(), copy.deepcopy(candidates).cells()):
        assert [each.tolist() for each in found] == [[0, 2, 4], [2, 2, 1], [4, 1, 9]]


def test_bounded_candidates_are_alone():
    beside = NumericCandidates(positions=np.array([1]), points=2, utilities=np.array([0, 1]))
    for features in ((Stretches([1], [(1, 2)]), beside), (beside, Stretches([1], [(1, 2)]))):
        with pytest.raises(InvalidParameter, match="features=2 must be 1 where candidates are bounded"):
            GridlessMechanism(rate=1.0).select(features, WHOLE, SeededRandom(1))
