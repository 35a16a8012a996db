import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms.exact.randomness import SecureRandom
from ledgerwood.mechanisms.grid import Grid
from ledgerwood.mechanisms.laplace import LaplaceMechanism
from ledgerwood.verification.errata.dpxgboost.shared_seed import SharedSeed


def test_the_difference_of_the_leaves_is_exact():
    specimen = SharedSeed()
    gaps = [-1.5 / -2.1 + 0.5 / 1.1, 0.5 / 1.1 + 0.5 / 1.1]
    for rows, gap in zip(specimen.pair, gaps, strict=True):
        first, second = specimen.sampler(rows, 1000, np.random.default_rng(6)).T
        assert first - second == pytest.approx(gap)


def test_fresh_noise_keeps_the_price():
    one = lw.LaplaceEvent(noise_multiplier=2.0, adjacency=lw.Adjacency.ADD_REMOVE)
    assert lw.price(lw.Repeated(one, count=2)).epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    mechanism, grid = LaplaceMechanism(scales=(2 / 1.1,)), Grid(exponents=(-30,))
    trees = [mechanism.randomise(np.zeros((8, 1), dtype=np.int64), grid, SecureRandom()) for _ in range(2)]
    assert not np.array_equal(*trees)


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        SharedSeed(**wrong)
