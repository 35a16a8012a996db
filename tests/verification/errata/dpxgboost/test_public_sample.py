import math

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.errata.dpxgboost.public_sample import PublicSample


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.9])
@pytest.mark.parametrize("at", [0.0, 0.1586, 0.9])
def test_the_loss_is_that_without_sampling(rate, at, laplace_delta):
    specimen = PublicSample(sampling_rate=rate)
    with_row, without = (int(rows.sum()) for rows in specimen.pair)
    mask = np.random.default_rng(0).random(with_row) < rate
    assert mask[-1]
    assert with_row - without == 1
    counts = [float(mask.sum()), float(mask[:-1].sum())]
    assert specimen.delta(at) == pytest.approx(laplace_delta((counts[0], 1.0), (counts[1], 1.0), at), rel=1e-9)


def test_the_formula_holds_for_a_secret_poisson_sample():
    specimen = PublicSample()
    event = lw.PoissonSampled(
        lw.LaplaceEvent(noise_multiplier=1.0, adjacency=lw.Adjacency.ADD_REMOVE), sampling_rate=0.1
    )
    price = lw.price(event)
    assert price.epsilon(0.0) == pytest.approx(math.log1p(0.1 * math.expm1(1.0)), rel=1e-12)
    assert price.epsilon(0.0) == pytest.approx(specimen.claim.epsilon, rel=1e-12)
    assert price.delta(0.1) < specimen.delta(0.1) / 10
    # n trees, each of one fresh sample: n times as much.
    twenty = lw.price(lw.Repeated(event, count=20))
    assert twenty.epsilon(0.0) == pytest.approx(20 * specimen.claim.epsilon, rel=1e-9)


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"sampling_rate": 1.0}, {"sampling_rate": 1e-4}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        PublicSample(**wrong)
