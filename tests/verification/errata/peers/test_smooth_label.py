import itertools
import math

import mpmath as mp
import pytest

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator import LeafLabels
from ledgerwood.ensemble import TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import PermuteAndFlipMechanism
from ledgerwood.verification.errata.peers.smooth_label import SmoothLabel


def exponents(counts, epsilon):
    """epsilon u / (2 S), u = 1 for the commonest label and S = e^(-epsilon gap)."""
    second, first = sorted(counts)[-2:]
    smooth = mp.exp(-mp.mpf(epsilon) * (first - second))
    return [mp.mpf(epsilon) * (count == first) / (2 * smooth) for count in counts]


@pytest.mark.parametrize(("epsilon", "gap"), [(0.1, 40), (0.1, 60), (1.0, 3), (0.01, 700)])
@pytest.mark.parametrize("at", [0.0, 1.0])
def test_the_loss_by_enumeration(enumerated, epsilon, gap, at):
    delta, pure = enumerated(exponents((gap + 1, 0), epsilon), exponents((gap, 0), epsilon), at * epsilon)
    specimen = SmoothLabel(epsilon=epsilon, gap=gap)
    assert specimen.delta(at * epsilon) == pytest.approx(delta, rel=1e-9, abs=1e-15)
    assert specimen.pure_epsilon() == pytest.approx(pure, rel=1e-9)


def test_the_loss_is_within_the_claim_for_narrow_majorities_and_grows_beyond_any_bound():
    losses = [SmoothLabel(gap=gap).pure_epsilon() for gap in range(1, 91)]
    assert losses[30] < 0.1 < losses[31]  # 31 rows ahead, and 32
    assert all(b > a for a, b in itertools.pairwise(losses[20:]))
    # Of the rare label log-odds of -epsilon e^(epsilon gap) / 2 are all that is left.
    assert losses[-1] == pytest.approx(0.05 * (math.exp(9.1) - math.exp(9.0)), rel=1e-6)


def test_permute_and_flip_by_the_counts_keeps_the_price():
    query = LeafLabels(structure=TreeStructure.root(), classes=2)
    event = query.event(PermuteAndFlipMechanism(rate=0.1), Adjacency.ADD_REMOVE)
    assert event.epsilon == pytest.approx(0.1)
    rare = [0.5 * math.exp(-0.1 * gap) for gap in (40, 41)]
    assert math.log(rare[0] / rare[1]) <= 0.1 + 1e-12


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"gap": 0}, {"gap": 96}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        SmoothLabel(**({"epsilon": 0.1} | wrong))
