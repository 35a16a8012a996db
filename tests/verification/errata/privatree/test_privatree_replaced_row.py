import math

import numpy as np
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.privatree.replaced_row import ReplacedRow


def joint(epsilon, zeros, ones):
    """All pairs of geometric counts and a label by permute-and-flip, each at half of epsilon."""
    ratio = math.exp(-epsilon / 2)
    noisy = [(1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-60, 65) - count) for count in (zeros, ones)]
    other = 0.5 * ratio ** (ones - zeros)
    return np.multiply.outer(np.multiply.outer(*noisy), [other, 1 - other])


@pytest.mark.parametrize("at", [0.0, 1.0, 1.5])
def test_the_loss_by_enumeration_of_both_counts_and_the_label(at):
    p, q = joint(1.0, 1, 3), joint(1.0, 0, 4)
    assert p.sum() == pytest.approx(1.0)
    sides = [np.maximum(x - math.exp(at) * y, 0.0).sum() for x, y in ((p, q), (q, p))]
    assert ReplacedRow().delta(at) == pytest.approx(max(sides), rel=1e-9)
    assert np.abs(np.log(p / q)).max() == pytest.approx(ReplacedRow().pure_epsilon())


def test_every_price_doubles():
    assert ReplacedRow(epsilon=0.1).pure_epsilon() == pytest.approx(0.2)


def test_bad_parameters_are_refused():
    with pytest.raises(InvalidParameter, match="epsilon"):
        ReplacedRow(epsilon=0.0)
