import math

import mpmath as mp
import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.parts.initial_scores import InitialScore
from ledgerwood.verification.errata.sgbdt.initial_score_scale import InitialScoreScale


def theorem_20(order, epsilon):
    """As printed, for any m* and n: (m*/n) / (m* / (n epsilon)) = epsilon."""
    inner = order / (2 * order - 1) * mp.exp((order - 1) * epsilon)
    inner += (order - 1) / (2 * order - 1) * mp.exp(-order * epsilon)
    return float(mp.log(inner) / (order - 1))


@pytest.mark.parametrize("order", [1.5, 2.0, 32.0])
def test_the_claim_is_theorem_20(order):
    specimen = InitialScoreScale(epsilon=0.3)
    assert specimen.claim.renyi([order])[0] == pytest.approx(theorem_20(order, 0.3), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0, 1.9])
def test_the_loss_by_quadrature(epsilon, fraction, hockey_stick):
    specimen = InitialScoreScale(epsilon=epsilon, count=7, bound=3.0)
    with_row, other = (float(part.mean()) for part in specimen.pair)
    scale = 3.0 / (7 * epsilon)
    laws = [lambda x, m=m: -abs(x - m) / scale - mp.log(2 * scale) for m in (with_row, other)]
    edges = [other - 60 * scale, other, with_row, with_row + 60 * scale]
    at = fraction * epsilon
    assert specimen.delta(at) == pytest.approx(hockey_stick(*laws, at, edges), rel=1e-10)
    assert specimen.delta(at) == pytest.approx(hockey_stick(*laws[::-1], at, edges), rel=1e-10)


def test_the_price_is_twice_the_claim():
    specimen = InitialScoreScale()
    assert specimen.delta(2 * specimen.epsilon) == 0.0 < specimen.delta(1.999 * specimen.epsilon)
    assert {row.quantity: row.exact for row in specimen.rows()}["pure epsilon"] == 2 * specimen.epsilon


def test_the_library_prices_a_public_count_by_twice_the_bound():
    # At the same noise on the mean, scale m* / (n epsilon): on the sum of labels in [-1, 1] a scale of 1 / epsilon.
    epsilon = 0.1
    score = InitialScore(
        kind="public_count", adjacency=lw.Adjacency.REPLACE_ONE, multiplier=0.5 / epsilon, expected_rows=100
    )
    assert score.mechanism.scales == (1 / epsilon,)
    (event,) = score.events
    price = lw.price(event)
    assert price.epsilon(0.0) == pytest.approx(2 * epsilon, rel=1e-12)
    for at in np.linspace(0.0, 0.19, 5):
        assert price.delta(at) >= InitialScoreScale(epsilon=epsilon).delta(at) * (1 - 1e-12)
    # And with the noise that the claim needs, the claim holds.
    sound = InitialScore(
        kind="public_count", adjacency=lw.Adjacency.REPLACE_ONE, multiplier=1 / epsilon, expected_rows=1
    )
    assert lw.price(sound.events[0]).epsilon(0.0) == pytest.approx(epsilon, rel=1e-12)
    assert sound.mechanism.scales == (2 / epsilon,)


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0.0}, {"epsilon": math.nan}, {"bound": -1.0}, {"count": 0}, {"count": 2.5}]
)
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        InitialScoreScale(**wrong)
