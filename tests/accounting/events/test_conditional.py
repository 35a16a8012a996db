"""Propose, test, release: small mechanisms whose exact divergence is known."""

import math

import pytest

import ledgerwood as lw
from ledgerwood.accounting import propose_test_release
from ledgerwood.errors import AdjacencyMismatch, InvalidParameter

A = lw.Adjacency.ADD_REMOVE


def passes(distance, scale, threshold):
    """P(distance + Laplace(scale) > threshold)."""
    gap = threshold - distance
    return 0.5 * math.exp(-gap / scale) if gap >= 0.0 else 1.0 - 0.5 * math.exp(gap / scale)


def divergence(one, other, epsilon):
    return sum(max(p - math.exp(epsilon) * q, 0.0) for p, q in zip(one, other, strict=True))


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("false_pass", [1e-1, 1e-3])
def test_no_pair_of_data_sets_is_above_the_price(scale, false_pass):
    """Close neighbours release a randomised response; far ones, whose distances are both 0, release their name."""
    threshold = scale * math.log(0.5 / false_pass)
    event = propose_test_release(
        lw.LaplaceEvent(noise_multiplier=scale, adjacency=A), lw.PureEvent(epsilon=0.7, adjacency=A),
        false_pass=false_pass,
    )  # fmt: skip
    yes = 1.0 / (1.0 + math.exp(-0.7))
    pairs = []
    for distance in (0.0, 1.0, 2.0, 5.0):
        near, next_ = passes(distance, scale, threshold), passes(distance + 1.0, scale, threshold)
        pairs.append(((1 - near, near * yes, near * (1 - yes)), (1 - next_, next_ * (1 - yes), next_ * yes)))
    far = passes(0.0, scale, threshold)
    assert far == pytest.approx(false_pass)
    pairs.append(((1 - far, far, 0.0), (1 - far, 0.0, far)))
    priced = lw.price(event)
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        worst = max(divergence(*pair, epsilon) for one, other in pairs for pair in ((one, other), (other, one)))
        assert worst <= priced.delta(epsilon) * (1.0 + 1e-9)
    # without the charge the far pair would be above it at large epsilon
    assert divergence(*pairs[-1], 50.0) > lw.price(lw.Composed(event.events[:2])).delta(50.0)


def test_its_parts_compose_with_others_and_are_recorded():
    noise = lw.GaussianEvent(noise_multiplier=2.0, adjacency=A)
    event = propose_test_release(lw.LaplaceEvent(noise_multiplier=4.0, adjacency=A), noise, false_pass=1e-7)
    assert lw.price(lw.Composed((event, noise))).epsilon(1e-5) > lw.price(event).epsilon(1e-5)
    budget = lw.Budget(epsilon=5.0, delta=1e-5, adjacency=A)
    ledger = lw.Ledger(budget, unit=lw.PrivacyUnit.ROW, filter=lw.BasicFilter())
    grant = ledger.grant(event, purpose="mean, if it is stable")
    for part in event.events:
        grant.draw(part, purpose="test and release")
    assert ledger.spent().epsilon == pytest.approx(lw.price(event).epsilon(ledger.spent().delta), rel=1e-6)


def test_refusals():
    noise = lw.GaussianEvent(noise_multiplier=2.0, adjacency=A)
    for wrong in (0.0, 1.0, 1.5, -1.0, math.nan):
        with pytest.raises(InvalidParameter, match="^false_pass="):
            propose_test_release(noise, noise, false_pass=wrong)
    with pytest.raises(AdjacencyMismatch):
        other = lw.GaussianEvent(noise_multiplier=2.0, adjacency=lw.Adjacency.ZERO_OUT)
        propose_test_release(noise, other, false_pass=1e-3)
