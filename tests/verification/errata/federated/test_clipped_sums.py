import mpmath as mp
import numpy as np
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.federated.clipped_sums import ClippedSums


@pytest.mark.parametrize("at", [0.0, 1.0, 100.0])
@pytest.mark.parametrize(("count", "stddev"), [(10, 20.0), (3, 1.5)])
def test_the_loss_piece_by_piece(count, stddev, at):
    """Both laws on the pieces of the line on which they are densities, or atoms: inside, between the ends, at them."""

    def beyond(x):
        return mp.ncdf(-mp.mpf(x) / stddev)

    with_row = {
        "inside": 1 - 2 * beyond(count),
        "between": 2 * (beyond(count) - beyond(count + 1)),
        "larger end": 2 * beyond(count + 1),
    }
    without = {"inside": 1 - 2 * beyond(count), "smaller end": 2 * beyond(count)}
    losses = [
        mp.fsum(max(p.get(piece, mp.mpf(0)) - mp.exp(at) * q.get(piece, mp.mpf(0)), 0) for piece in p)
        for p, q in ((with_row, without), (without, with_row))
    ]
    assert ClippedSums(count=count, stddev=stddev).delta(at) == pytest.approx(float(max(losses)), rel=1e-12)


def test_a_clipped_sum_is_the_number_of_rows():
    specimen, rng = ClippedSums(), np.random.default_rng(5)
    for rows in specimen.pair:
        outputs = specimen.sampler(rows, 20_000, rng)
        assert np.abs(outputs).max() == rows.size
        clipped = np.mean(np.abs(outputs) == rows.size)
        expected = 2 * float(mp.ncdf(-rows.size / specimen.stddev))
        assert abs(clipped - expected) < 5 * np.sqrt(expected * (1 - expected) / 20_000)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"stddev": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        ClippedSums(**wrong)
