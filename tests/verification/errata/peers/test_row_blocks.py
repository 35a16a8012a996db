import itertools
import math

import numpy as np
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.peers.row_blocks import RowBlocks


def minority_chances(rows, trees, epsilon):
    """Permute-and-flip of rate epsilon in each block of the places i // (n / T)."""
    places = (np.arange(rows.size) // (rows.size / trees)).astype(int)
    found = []
    for tree in range(trees):
        ones = rows[places == tree].sum()
        found.append(0.5 * math.exp(-epsilon * abs(2 * ones - np.count_nonzero(places == tree))))
    return found


@pytest.mark.parametrize("trees", [2, 3, 6])
@pytest.mark.parametrize("at", [0.0, 0.1, 0.6])
def test_the_loss_by_enumeration_of_all_forests(trees, at):
    specimen = RowBlocks(trees=trees)
    laws = []
    for rows in specimen.pair:
        chances = minority_chances(rows, trees, 0.1)
        laws.append(
            np.array(
                [
                    math.prod(c if bit else 1 - c for c, bit in zip(chances, bits, strict=True))
                    for bits in itertools.product((0, 1), repeat=trees)
                ]
            )
        )
    sides = [np.maximum(p - math.exp(at) * q, 0).sum() for p, q in (laws, laws[::-1])]
    assert specimen.delta(at) == pytest.approx(max(sides), rel=1e-10, abs=1e-15)
    assert specimen.loss() == pytest.approx(np.abs(np.log(laws[0] / laws[1])).max())
    assert specimen.loss() == pytest.approx((2 * trees - 1) * 0.1)


def test_every_block_exchanges_a_row_and_keeps_its_majority():
    specimen = RowBlocks()
    with_row, without = specimen.pair
    assert with_row.size == without.size + 1 == 41
    blocks = [
        [rows[(np.arange(rows.size) // (rows.size / 10)).astype(int) == tree] for tree in range(10)]
        for rows in (with_row, without)
    ]
    assert [block.size for block in blocks[0]] == [5, *[4] * 9]
    assert all(abs(more.mean() - less.mean()) == 0.25 for more, less in zip(blocks[0][1:], blocks[1][1:], strict=True))
    assert all(set(block) != {0.0, 1.0} for block in blocks[0][1:])


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"trees": 0}, {"block": 0}, {"block": 3}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        RowBlocks(**wrong)
