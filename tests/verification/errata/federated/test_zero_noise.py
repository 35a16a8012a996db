import numpy as np
import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.federated.zero_noise import ZeroNoise


def test_the_child_is_exact_and_the_root_is_not():
    specimen = ZeroNoise()
    for rows, expected in zip(specimen.pair, ([0.5, 0.0], [0.5, -0.5]), strict=True):
        outputs = specimen.sampler(rows, 1000, np.random.default_rng(1))
        assert (outputs[:, 2:] == expected).all()
        assert np.std(outputs[:, :2], axis=0) == pytest.approx([18.7, 18.7], rel=0.1)
    assert specimen.delta(700.0) == 1.0


def test_bad_parameters_are_refused():
    with pytest.raises(InvalidParameter, match="noise_multiplier"):
        ZeroNoise(noise_multiplier=0.0)
