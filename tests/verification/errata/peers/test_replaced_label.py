import math

import pytest

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms.choices.selection import PermuteAndFlipMechanism, UtilityRange
from ledgerwood.verification.errata.peers.replaced_label import ReplacedLabel


def flip(counts, rate):
    """Permute-and-flip of two labels, over both orders."""
    p = [math.exp(-rate * (max(counts) - c)) for c in counts]
    first = 0.5 * p[0] + 0.5 * (1 - p[1]) * p[0] if p[0] < 1 else 0.5 + 0.5 * (1 - p[1])
    return first, 1 - first


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("at", [0.0, 0.1, 1.5])
def test_the_loss_by_enumeration(epsilon, at):
    p, q = flip((1, 3), epsilon), flip((0, 4), epsilon)
    sides = [sum(max(a - math.exp(at) * b, 0) for a, b in zip(x, y, strict=True)) for x, y in ((p, q), (q, p))]
    specimen = ReplacedLabel(epsilon=epsilon)
    assert specimen.delta(at) == pytest.approx(max(sides), rel=1e-9, abs=1e-15)
    assert specimen.pure_epsilon() == pytest.approx(2 * epsilon)


def test_one_row_more_keeps_the_price_and_the_library_halves_the_rate():
    p, q = flip((1, 3), 0.1), flip((1, 4), 0.1)
    assert max(abs(math.log(a / b)) for a, b in zip(p, q, strict=True)) <= 0.1 + 1e-12
    event = PermuteAndFlipMechanism(rate=0.05).event(UtilityRange(range=2.0), Adjacency.REPLACE_ONE)
    assert event.epsilon == pytest.approx(0.1)


def test_bad_parameters_are_refused():
    with pytest.raises(InvalidParameter, match="epsilon"):
        ReplacedLabel(epsilon=0.0)
