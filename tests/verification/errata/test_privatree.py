"""The specimens of PrivaTree: their exact losses by independent means, and what the library does instead."""

import math

import mpmath as mp
import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.mechanisms.choices.selection import ExponentialMechanism, UtilityRange
from ledgerwood.verification.errata.privatree import FeatureComposition, GeometricRatio, NoisySize, ReplacedRow

# feature composition -------------------------------------------------------------------------------------------------


def feature_composition_joint(specimen, count):
    """P(features above 0, label), m counts of `count` with geometric noise and a label of classes (count, 0)."""
    ratio, m = mp.exp(-mp.mpf(specimen.epsilon) / 2), specimen.features
    law = [(1 - ratio) / (1 + ratio) * ratio ** abs(y - count) for y in range(1, 3000)]
    above = mp.fsum(law)
    other = mp.exp(-mp.mpf(specimen.epsilon) / 2 * count) / 2
    return [
        mp.binomial(m, k) * above**k * (1 - above) ** (m - k) * label
        for k in range(m + 1)
        for label in (1 - other, other)
    ]


@pytest.mark.slow_after(3)  # the exact loss of each specimen
@pytest.mark.parametrize("features", [1, 8, 14])
@pytest.mark.parametrize("at", [0.0, 0.1, 0.4])
def test_feature_composition_the_loss_by_enumeration_of_the_counts(features, at):
    specimen = FeatureComposition(features=features)
    p, q = feature_composition_joint(specimen, 1), feature_composition_joint(specimen, 0)
    sides = [mp.fsum(max(a - mp.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p))]
    assert specimen.delta(at) == pytest.approx(float(max(sides)), rel=1e-9, abs=1e-14)
    pure = max(abs(mp.log(a / b)) for a, b in zip(p, q, strict=True))
    assert specimen.loss() == pytest.approx(float(pure), rel=1e-9)
    assert specimen.loss() == pytest.approx(features * 0.05 + 0.05, rel=1e-12)


def test_feature_composition_a_count_loses_one_price_whatever_it_shows():
    # Of noise of ratio r and a shift of 1 every output's ratio is r or 1 / r: nothing between, clamped at 0 or not.
    ratio = math.exp(-0.05)
    outputs = np.arange(-50, 50)
    logs = np.log(ratio) * (np.abs(outputs - 1) - np.abs(outputs))
    assert np.unique(np.abs(logs)) == pytest.approx([0.05])


def test_feature_composition_the_librarys_price_of_several_histograms_counts_them():
    one = lw.PureEvent(epsilon=0.05, adjacency=lw.Adjacency.ADD_REMOVE)
    assert lw.price(lw.Repeated(one, count=15)).epsilon(0.0) == pytest.approx(0.75)


# noisy size ----------------------------------------------------------------------------------------------------------


def noisy_size_gini(classes):
    n = len(classes)
    return 1 - sum(mp.mpf(classes.count(k)) ** 2 for k in set(classes)) / n**2 if n else mp.mpf(0)


def noisy_size_weighted(sides):
    return sum(len(side) * noisy_size_gini(side) for side in sides) / sum(map(len, sides))


def noisy_size_choice(epsilon, candidates, rows):
    """P(second of two candidates): the sum over all noisy sizes of permute-and-flip at the size's sensitivity."""
    half, worse = mp.mpf(epsilon) / 2, noisy_size_weighted(candidates[1]) - noisy_size_weighted(candidates[0])
    ratio, total, mass = mp.exp(-half), mp.mpf(0), mp.mpf(0)
    for size in range(1, int(60 / epsilon) + 10):
        below = ratio ** (rows - 1) / (1 + ratio)
        weight = below if size == 1 else (1 - ratio) / (1 + ratio) * ratio ** abs(size - rows)
        n = mp.mpf(size)
        sensitivity = 1 - (n / (n + 1)) ** 2 - (1 / (n + 1)) ** 2
        total += weight * mp.exp(-half * worse / (2 * sensitivity)) / 2  # the coin of the second, drawn first or not
        mass += weight
    assert mass == pytest.approx(1.0, abs=1e-10)
    return total


@pytest.mark.slow_after(1)  # the exact loss of each specimen
@pytest.mark.parametrize(("epsilon", "figure"), [(0.1, 0.0825), (0.03, 0.0647)])
def test_noisy_size_the_loss_by_summation_over_noisy_sizes(epsilon, figure):
    with_row = noisy_size_choice(epsilon, (((0,), (1,)), ((0, 1), ())), 2)
    without = noisy_size_choice(epsilon, (((0,), ()), ((0,), ())), 1)
    specimen = NoisySize(epsilon=epsilon)
    assert specimen.pure_epsilon() == pytest.approx(float(mp.log(without / with_row)), rel=1e-9)
    assert specimen.pure_epsilon() == pytest.approx(figure, abs=5e-5)
    for at in (0.0, 0.5 * epsilon):
        sides = (without - mp.exp(at) * with_row, (1 - with_row) - mp.exp(at) * (1 - without))
        assert specimen.delta(at) == pytest.approx(float(max(*sides, 0)), rel=1e-8)


@pytest.mark.slow  # the exact loss of each specimen
def test_noisy_size_what_is_lost_does_not_vanish_with_epsilon():
    # n ~ E / (epsilon / 2) above, the rate times the gap tends to E / 8: the mean of e^(-E / 8) is 8 / 9, for one half.
    assert NoisySize(epsilon=5e-4).pure_epsilon() == pytest.approx(float(mp.log(18 / mp.mpf(17))), abs=5e-4)


def test_noisy_size_a_tree_loses_at_each_level_and_at_its_leaf():
    # All levels keep both rows together; leaf counts (1, 1) against (1, 0), class 0, permute-and-flip of price .05.
    specimen = NoisySize(epsilon=0.1 / 8)
    leaf = mp.log((1 - mp.exp(-mp.mpf("0.05")) / 2) / mp.mpf("0.5"))
    assert specimen.tree_loss() == pytest.approx(4 * specimen.pure_epsilon() + float(leaf), rel=1e-9)
    assert specimen.tree_loss() > 0.28


def test_noisy_size_the_counted_impurity_changes_by_less_than_2():
    changes = []
    for n in range(1, 12):
        for ones in range(n + 1):
            for left in range(n + 1):
                for k in range(max(0, left - (n - ones)), min(ones, left) + 1):
                    side = [1] * k + [0] * (left - k)
                    changes += [
                        (len(side) + 1) * noisy_size_gini([*side, c]) - len(side) * noisy_size_gini(side)
                        for c in (0, 1)
                    ]
    assert min(changes) >= -1e-12
    assert max(changes) < 2
    event = ExponentialMechanism(rate=0.05).event(UtilityRange(range=2.0), Adjacency.ADD_REMOVE)
    assert event.epsilon == pytest.approx(0.1)


# replaced row --------------------------------------------------------------------------------------------------------


def replaced_row_joint(epsilon, zeros, ones):
    """All pairs of geometric counts and a label by permute-and-flip, each at half of epsilon."""
    ratio = math.exp(-epsilon / 2)
    noisy = [(1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-60, 65) - count) for count in (zeros, ones)]
    other = 0.5 * ratio ** (ones - zeros)
    return np.multiply.outer(np.multiply.outer(*noisy), [other, 1 - other])


@pytest.mark.parametrize("at", [0.0, 1.0, 1.5])
def test_replaced_row_the_loss_by_enumeration_of_both_counts_and_the_label(at):
    p, q = replaced_row_joint(1.0, 1, 3), replaced_row_joint(1.0, 0, 4)
    assert p.sum() == pytest.approx(1.0)
    sides = [np.maximum(x - math.exp(at) * y, 0.0).sum() for x, y in ((p, q), (q, p))]
    assert ReplacedRow().delta(at) == pytest.approx(max(sides), rel=1e-9)
    assert np.abs(np.log(p / q)).max() == pytest.approx(ReplacedRow().pure_epsilon())


def test_replaced_row_every_price_doubles():
    assert ReplacedRow(epsilon=0.1).pure_epsilon() == pytest.approx(0.2)


# geometric ratio -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("at", [0.0, 0.1, 2.0, 5.0])
def test_geometric_ratio_the_loss_by_enumeration(epsilon, at):
    ratio = mp.mpf(epsilon)
    p, q = ([(1 - ratio) / (1 + ratio) * ratio ** abs(y - count) for y in range(-80, 82)] for count in (1, 0))
    assert mp.fsum(q) == pytest.approx(1.0)
    sides = [mp.fsum(max(a - mp.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p))]
    specimen = GeometricRatio(epsilon=epsilon)
    assert specimen.delta(at) == pytest.approx(float(max(sides)), rel=1e-12, abs=1e-20)
    assert specimen.delta(-math.log(epsilon) + 1e-9) == 0.0


def test_geometric_ratio_less_epsilon_is_less_noise():
    assert GeometricRatio(epsilon=0.01).delta(0.5) > GeometricRatio(epsilon=0.1).delta(0.5)


def test_geometric_ratio_the_meant_law_keeps_its_price():
    event = lw.DiscreteLaplaceEvent(scale=10.0, sensitivity=1, adjacency=lw.Adjacency.ADD_REMOVE)
    assert lw.price(event).epsilon(0.0) == pytest.approx(0.1)
