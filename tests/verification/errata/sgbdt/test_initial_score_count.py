import math

import mpmath as mp
import pytest

import ledgerwood as lw
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter
from ledgerwood.trainers.parts.initial_scores import InitialScore
from ledgerwood.verification.errata.sgbdt.initial_score_count import InitialScoreCount


def laws(specimen):
    """Log densities with the row and without it, and panel ends."""
    found = []
    for part in specimen.pair:
        mean, scale = mp.mpf(float(part.mean())), 2 * mp.mpf(specimen.bound) / (part.size * specimen.epsilon)
        found.append((mean, scale))
    (with_row, narrow), (without, wide) = found
    edges = sorted([with_row, without])
    edges = [edges[0] - 200 * wide, edges[0] - wide, *edges, edges[1] + wide, edges[1] + 200 * wide]
    logs = [lambda x, m=m, s=s: -abs(x - m) / s - mp.log(2 * s) for m, s in found]
    return logs[0], logs[1], edges


@pytest.mark.parametrize("count", [1, 10, 3342])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("fraction", [0.0, 0.9, 1.0, 3.0])
def test_the_loss_by_quadrature(count, epsilon, fraction, hockey_stick):
    specimen = InitialScoreCount(count=count, epsilon=epsilon, bound=2.0)
    p, q, edges = laws(specimen)
    at = fraction * epsilon
    expected = max(hockey_stick(p, q, at, edges), hockey_stick(q, p, at, edges))
    assert specimen.delta(at) == pytest.approx(expected, rel=1e-8, abs=1e-15)


@pytest.mark.parametrize("order", [1.5, 2.0, 5.5, 10.5])
def test_the_divergence_by_quadrature(order):
    specimen = InitialScoreCount(count=10, epsilon=0.3)
    p, q, edges = laws(specimen)
    # The tails beyond the edges fall by the slope (n + 1 - order) / b: add enough of them.
    far = [edges[0] * 400, *edges, edges[-1] * 400]
    values = []
    for u, v in ((order, 1 - order), (1 - order, order)):
        moment = mp.quad(lambda x, u=u, v=v: mp.exp(u * p(x) + v * q(x)), far)
        values.append(float(mp.log(moment) / (order - 1)))
    assert specimen.renyi(order) == pytest.approx(max(values), rel=1e-8)


def test_the_divergence_is_infinite_from_order_n_plus_1_on():
    specimen = InitialScoreCount(count=10)
    assert specimen.renyi(10.999) < math.inf
    assert specimen.renyi(11.0) == specimen.renyi(50.0) == math.inf
    # The integrand of order n + 1 is constant in the tails, so its integral grows with the range.
    p, q, _ = laws(specimen)
    assert 11 * q(mp.mpf(1e4)) - 10 * p(mp.mpf(1e4)) == pytest.approx(float(11 * q(mp.mpf(1e6)) - 10 * p(mp.mpf(1e6))))
    assert float(specimen.claim.renyi([11.0])[0]) < specimen.epsilon


def test_no_pure_guarantee_holds():
    specimen = InitialScoreCount(count=2, epsilon=0.1)
    assert all(specimen.delta(float(k)) > 0.0 for k in range(30))


def test_the_library_refuses_a_public_count_and_prices_count_and_sum():
    with pytest.raises(AdjacencyMismatch, match="private"):
        InitialScore(kind="public_count", adjacency=lw.Adjacency.ADD_REMOVE, multiplier=10.0, expected_rows=10)
    epsilon = 0.1
    score = InitialScore(kind="laplace", adjacency=lw.Adjacency.ADD_REMOVE, multiplier=2 / epsilon, expected_rows=None)
    price = lw.price(lw.Composed(score.events))
    assert price.epsilon(0.0) == pytest.approx(epsilon, rel=1e-12)
    # The worst shifts are 1 in the count and 1 in the sum, each against a public scale.
    assert score.mechanism.scales == (2 / epsilon,)


@pytest.mark.parametrize("wrong", [{"epsilon": -0.1}, {"bound": 0.0}, {"count": 0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        InitialScoreCount(**wrong)
