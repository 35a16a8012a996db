import numpy as np
import pytest

from ledgerwood.mechanisms.exact.randomness import SecureRandom
from ledgerwood.mechanisms.grid import Grid
from ledgerwood.mechanisms.laplace import LaplaceMechanism
from ledgerwood.verification.errata.dpboost.fixed_seeds import FixedSeeds


def test_the_noise_is_the_same_in_every_run_and_on_every_data_set():
    specimen = FixedSeeds()
    runs = [specimen.sampler(rows, 2, np.random.default_rng(seed)) for rows in specimen.pair for seed in (1, 2)]
    assert len({float(value) for value in runs[0][:, 0]} | {float(value) for value in runs[1][:, 0]}) == 1
    # Whoever has the source code takes it away, and reads the leaf itself.
    noise = np.random.default_rng(42).laplace(0.0, 1 / 1.1)
    leaves = [specimen.output(rows)[0] - noise for rows in specimen.pair]
    assert leaves == pytest.approx([1 / 1.1, 0.0])


def test_the_librarys_noise_is_fresh():
    mechanism, grid = LaplaceMechanism(scales=(1 / 1.1,)), Grid(exponents=(-30,))
    draws = [mechanism.randomise(np.zeros((4, 1), dtype=np.int64), grid, SecureRandom()) for _ in range(2)]
    assert not np.array_equal(*draws)
