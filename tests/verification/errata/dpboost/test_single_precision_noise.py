from fractions import Fraction

import numpy as np
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms.exact.randomness import SecureRandom
from ledgerwood.mechanisms.grid import Grid
from ledgerwood.mechanisms.laplace import LaplaceMechanism
from ledgerwood.verification.errata.dpboost.single_precision_noise import SinglePrecisionNoise


def is_single(x):
    return x == x.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_the_outputs_of_the_two_data_sets_are_disjoint(epsilon):
    specimen = SinglePrecisionNoise(epsilon=epsilon)
    with_row, without = (specimen.sampler(rows, 500_000, np.random.default_rng(9)) for rows in specimen.pair)
    assert is_single(without).all()
    assert not is_single(with_row).any()


def test_no_noise_of_single_precision_takes_the_last_bits_away():
    # 100,000 float32 around every power of 2 up to 64, both signs, and around the one that nearly cancels 1 / 1.1.
    steps = np.arange(-50_000, 50_000)
    centres = [sign * 2.0**k for k in range(-40, 7) for sign in (1, -1)] + [-1 / 1.1]
    for centre in centres:
        bits = np.float32(centre).view(np.int32)
        noise = (bits + steps).astype(np.int32).view(np.float32).astype(np.float64)
        assert not is_single(1 / 1.1 + noise).any()


def test_the_facts_of_the_proof():
    leaf, units = Fraction(1 / 1.1), 2**53 * Fraction(1 / 1.1)
    assert units.denominator == 1
    assert units.numerator % 2 == 1
    assert abs(leaf - Fraction(10, 11)) <= Fraction(1, 2**54)
    for j in range(34):
        rest = leaf * 2**j % 1
        assert Fraction(1, 12) < rest < Fraction(11, 12)
    assert Fraction(1, 12 * 2**33) > Fraction(1, 2**47)
    for epsilon in (0.25, 1.0, 4.0):
        specimen = SinglePrecisionNoise(epsilon=epsilon)
        noise = specimen.sampler(specimen.pair[1], 500_000, np.random.default_rng(10))
        assert (np.abs(noise) < 64).all()
        assert (noise * 2.0**50 % 1.0 == 0.0).all()
    # The largest deviate, and the finest: the smallest one that is not 0, and the scale at epsilon 4.
    assert 24 * np.log(2) / 1.1 / 0.25 < 64
    assert np.spacing(np.float32(2.0**-24 / 1.1 / 4)) >= 2.0**-50


def test_the_librarys_outputs_are_steps_of_one_grid():
    # Noise is a whole number of the statistic's steps, so both data sets have the same possible outputs.
    grid = Grid(exponents=(-30,))
    mechanism = LaplaceMechanism(scales=(1 / 1.1,))
    seen = [
        mechanism.randomise(np.full((1000, 1), round(value * 2**30), dtype=np.int64), grid, SecureRandom())
        for value in (1 / 1.1, 0.0)
    ]
    assert all(values.dtype == np.int64 for values in seen)
    assert {int(value) % 2 for value in seen[0][:, 0]} == {int(value) % 2 for value in seen[1][:, 0]} == {0, 1}


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 4.5])
def test_bad_parameters_are_refused(epsilon):
    with pytest.raises(InvalidParameter, match="epsilon"):
        SinglePrecisionNoise(epsilon=epsilon)
