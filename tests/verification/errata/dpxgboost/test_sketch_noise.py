import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms.exact.randomness import SecureRandom
from ledgerwood.mechanisms.grid import Grid
from ledgerwood.mechanisms.laplace import LaplaceMechanism
from ledgerwood.verification.errata.dpxgboost.sketch_noise import SketchNoise


def test_the_second_histogram_less_the_first_is_exact():
    specimen = SketchNoise()
    for rows in specimen.pair:
        first, second = specimen.sampler(rows, 1000, np.random.default_rng(6)).T
        assert second - first == pytest.approx(rows[:, 1].sum())
    assert [rows[:, 1].sum() for rows in specimen.pair] == [2.0, 1.0]


def test_two_draws_are_paid_for_as_two():
    # One row is in one bin of each feature's histogram: two Laplace releases, epsilon / 2 each.
    one = lw.LaplaceEvent(noise_multiplier=2.0, adjacency=lw.Adjacency.ADD_REMOVE)
    assert lw.price(lw.Composed((one, one))).epsilon(0.0) == pytest.approx(1.0, rel=1e-12)
    mechanism, grid = LaplaceMechanism(scales=(2.0, 2.0)), Grid(exponents=(-20, -20))
    drawn = mechanism.randomise(np.zeros((200, 2), dtype=np.int64), grid, SecureRandom())
    assert np.unique(drawn[:, 1] - drawn[:, 0]).size > 150


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        SketchNoise(**wrong)
