import mpmath as mp
import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.parts.leaves import newton_leaves
from ledgerwood.verification.errata.dpxgboost.noisy_average import NoisyAverage


def laws(specimen):
    n, lam, scale = specimen.count, specimen.regularization, 2 / specimen.epsilon
    return tuple((mp.mpf(-total) / (rows + lam), scale / (rows + lam)) for total, rows in ((n - 1, n + 1), (n, n)))


def log_density(law):
    centre, scale = law
    return lambda x: -abs(x - centre) / scale - mp.log(2 * scale)


def below(x, law):
    z = (x - law[0]) / law[1]
    return mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2


@pytest.mark.parametrize("count", [0, 1, 5, 50])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("at", [0.0, 0.08, 0.5])
def test_the_loss_by_quadrature_and_the_two_ends(count, epsilon, at, hockey_stick):
    specimen = NoisyAverage(count=count, epsilon=epsilon)
    found = []
    for p, q in (laws(specimen), laws(specimen)[::-1]):
        edges = sorted({-1, 1, *(x for x in (p[0], q[0]) if abs(x) < 1)})
        ends = [below(-1, p) - mp.exp(at) * below(-1, q), (1 - below(1, p)) - mp.exp(at) * (1 - below(1, q))]
        found.append(hockey_stick(log_density(p), log_density(q), at, edges) + float(sum(max(end, 0) for end in ends)))
    assert specimen.delta(at) == pytest.approx(max(found), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(
    ("count", "epsilon", "figure"), [(0, 0.1, 2.402), (1, 0.1, 0.697), (5, 0.1, 0.262), (50, 0.1, 0.117), (1, 1, 1.147)]
)
def test_the_pure_loss_is_that_of_the_densest_grid(count, epsilon, figure):
    specimen = NoisyAverage(count=count, epsilon=epsilon)
    first, second = (log_density(law) for law in laws(specimen))
    points = [mp.mpf(k) / 500 for k in range(-500, 501)] + [law[0] for law in laws(specimen)]
    ratios = [float(abs(first(x) - second(x))) for x in points]
    assert max(ratios) <= specimen.pure_epsilon() * (1 + 1e-12)
    assert max(ratios) == pytest.approx(specimen.pure_epsilon(), rel=1e-9)
    assert specimen.pure_epsilon() == pytest.approx(figure, abs=1e-3)


def test_a_noisy_sum_over_a_noisy_count_keeps_the_claim():
    half = lw.LaplaceEvent(noise_multiplier=2 / 0.1, adjacency=lw.Adjacency.ADD_REMOVE)
    price = lw.price(lw.Composed((half, half)))
    assert price.epsilon(0.0) == pytest.approx(0.1, rel=1e-12)
    value = newton_leaves(np.array([3.2, -0.4]), np.array([1.1, 0.3]), reg_lambda=0.1, rule="add")
    assert value == pytest.approx([-1.1 / 3.3, -3.0])


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"regularization": -1.0}, {"count": -1}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        NoisyAverage(**wrong)


def test_an_empty_leaf_needs_a_lambda():
    with pytest.raises(InvalidParameter, match=r"regularization=0\.0 .*empty leaf"):
        NoisyAverage(count=0, regularization=0.0)
