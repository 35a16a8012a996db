import math

import mpmath as mp
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.dpboost.positive_gain import PositiveGain


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("at", [0.0, 0.3, 100.0])
def test_the_loss_by_enumeration(epsilon, at):
    node = 1 / mp.mpf("5.1")
    good, useless = 9 / mp.mpf("3.1") + 4 / mp.mpf("2.1") - node, 1 / mp.mpf("3.1") - node
    weights = [mp.exp(epsilon * g / 6) for g in (good, good, useless)]
    p = [w / mp.fsum(weights) for w in weights]
    q = [mp.mpf("0.5"), mp.mpf("0.5"), mp.mpf(0)]  # without the row the last gain is 0
    sides = (mp.fsum(max(a - mp.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p)))
    specimen = PositiveGain(epsilon=epsilon)
    assert specimen.delta(at) == pytest.approx(float(max(sides)), rel=1e-12)
    assert specimen.pure_epsilon() == math.inf


def test_a_choice_among_all_candidates_keeps_its_price(enumerated):
    # The node's term is common to all candidates and cancels; the useless one keeps its weight. Range 4.
    with_row = [0.25 * g for g in (9 / 3.1 + 4 / 2.1, 9 / 3.1 + 4 / 2.1, 1 / 3.1)]
    without = [0.25 * g for g in (8 / 2.1, 8 / 2.1, 0.0)]
    price = lw.price(lw.BoundedRangeEvent(epsilon=1.0, adjacency=lw.Adjacency.ADD_REMOVE))
    for at in (0.0, 0.1, 0.5):
        delta, pure = enumerated(with_row, without, at)
        assert delta <= price.delta(at)
        assert pure <= 1.0


def test_bad_parameters_are_refused():
    with pytest.raises(InvalidParameter, match="epsilon"):
        PositiveGain(epsilon=0.0)
