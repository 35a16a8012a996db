import math

import pytest

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.federated.replaced_gradient import ReplacedGradient


@pytest.mark.parametrize("gradient", [0.6, 0.99])
@pytest.mark.parametrize("at", [0.0, 1.0, 3.0])
def test_the_loss_is_that_of_a_shift_by_two_gradients(gradient, at, gaussian_delta):
    specimen = ReplacedGradient(gradient=gradient)
    mu = 2 * gradient / (2.0 * math.sqrt(17) / 4)
    assert specimen.delta(at) == pytest.approx(gaussian_delta(mu, at), rel=1e-9)
    assert specimen.claimed_delta(at) == pytest.approx(gaussian_delta(0.5, at), rel=1e-9)


def test_small_gradients_keep_the_claim():
    assert ReplacedGradient(gradient=0.5).delta(1.0) < ReplacedGradient().claimed_delta(1.0)


@pytest.mark.parametrize("wrong", [{"noise_multiplier": 0.0}, {"gradient": 0.0}, {"gradient": 1.0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        ReplacedGradient(**wrong)
