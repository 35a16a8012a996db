import mpmath as mp
import pytest

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms.choices.selection import ExponentialMechanism, UtilityRange
from ledgerwood.verification.errata.privatree.noisy_size import NoisySize


def gini(classes):
    n = len(classes)
    return 1 - sum(mp.mpf(classes.count(k)) ** 2 for k in set(classes)) / n**2 if n else mp.mpf(0)


def weighted(sides):
    return sum(len(side) * gini(side) for side in sides) / sum(map(len, sides))


def choice(epsilon, candidates, rows):
    """P(second of two candidates): the sum over all noisy sizes of permute-and-flip at the size's sensitivity."""
    half, worse = mp.mpf(epsilon) / 2, weighted(candidates[1]) - weighted(candidates[0])
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


@pytest.mark.parametrize(("epsilon", "figure"), [(0.1, 0.0825), (0.03, 0.0647)])
def test_the_loss_by_summation_over_noisy_sizes(epsilon, figure):
    with_row = choice(epsilon, (((0,), (1,)), ((0, 1), ())), 2)
    without = choice(epsilon, (((0,), ()), ((0,), ())), 1)
    specimen = NoisySize(epsilon=epsilon)
    assert specimen.pure_epsilon() == pytest.approx(float(mp.log(without / with_row)), rel=1e-9)
    assert specimen.pure_epsilon() == pytest.approx(figure, abs=5e-5)
    for at in (0.0, 0.5 * epsilon):
        sides = (without - mp.exp(at) * with_row, (1 - with_row) - mp.exp(at) * (1 - without))
        assert specimen.delta(at) == pytest.approx(float(max(*sides, 0)), rel=1e-8)


def test_what_is_lost_does_not_vanish_with_epsilon():
    # n ~ E / (epsilon / 2) above, the rate times the gap tends to E / 8: the mean of e^(-E / 8) is 8 / 9, for one half.
    assert NoisySize(epsilon=5e-4).pure_epsilon() == pytest.approx(float(mp.log(18 / mp.mpf(17))), abs=5e-4)


def test_a_tree_loses_at_each_level_and_at_its_leaf():
    # All levels keep both rows together; leaf counts (1, 1) against (1, 0), class 0, permute-and-flip of price .05.
    specimen = NoisySize(epsilon=0.1 / 8)
    leaf = mp.log((1 - mp.exp(-mp.mpf("0.05")) / 2) / mp.mpf("0.5"))
    assert specimen.tree_loss() == pytest.approx(4 * specimen.pure_epsilon() + float(leaf), rel=1e-9)
    assert specimen.tree_loss() > 0.28


def test_the_counted_impurity_changes_by_less_than_2():
    changes = []
    for n in range(1, 12):
        for ones in range(n + 1):
            for left in range(n + 1):
                for k in range(max(0, left - (n - ones)), min(ones, left) + 1):
                    side = [1] * k + [0] * (left - k)
                    changes += [(len(side) + 1) * gini([*side, c]) - len(side) * gini(side) for c in (0, 1)]
    assert min(changes) >= -1e-12
    assert max(changes) < 2
    event = ExponentialMechanism(rate=0.05).event(UtilityRange(range=2.0), Adjacency.ADD_REMOVE)
    assert event.epsilon == pytest.approx(0.1)


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"depth": 0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        NoisySize(**wrong)
