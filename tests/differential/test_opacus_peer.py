"""Opacus' own accountants beside ours, and where they are too small: docs/explanation/peers.md, B6, B11, B12."""

from types import SimpleNamespace

import mpmath
import pytest

import ledgerwood as lw
from benchmarks import bridges
from ledgerwood.accounting.interop import from_sgd_history

# torch takes seconds to be imported
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
A, ZERO_OUT, DELTA = lw.Adjacency.ADD_REMOVE, lw.Adjacency.ZERO_OUT, 1e-5


@pytest.fixture(scope="module")
def create():
    return pytest.importorskip("opacus.accountants", reason="needs the extra: opacus").create_accountant


@pytest.mark.parametrize("case", bridges.trainings(3))
def test_divergences_and_losses_are_not_below_the_truth(create, case):
    low, high = bridges.ends(from_sgd_history(case["history"], adjacency=A, exact_rates=True), case["delta"])
    for mechanism in ("rdp", "prv"):
        assert low <= bridges.opacus(mechanism)(case)
    assert bridges.opacus("prv")(case) <= high + 0.02  # its own error bound of .01, twice


def test_the_central_limit_is_far_below(create):
    """B6."""
    accountant = create("gdp")
    accountant.history = [(0.6, 0.001, 100)]
    theirs = accountant.get_epsilon(DELTA)
    assert theirs == pytest.approx(0.1214, abs=1e-4)
    low, high = bridges.ends(from_sgd_history(accountant.history, adjacency=A), DELTA)
    assert theirs < 0.77 < low <= high < 0.7798


def several_samples_epsilon(multiplier, rate, batches):
    """A row is in j of the batches that were added up, Binomial(batches, rate), and moves the sum by j: exactly."""
    with mpmath.workdps(30):
        m = mpmath.mpf(multiplier)
        weights = [
            mpmath.binomial(batches, j) * mpmath.mpf(rate) ** j * (1 - mpmath.mpf(rate)) ** (batches - j)
            for j in range(batches + 1)
        ]

        def delta(epsilon):
            place = mpmath.findroot(
                lambda x: mpmath.log(
                    mpmath.fsum(w * mpmath.exp((2 * j * x - j * j) / (2 * m * m)) for j, w in enumerate(weights))
                ) - epsilon, (0.0, 40.0 * m), solver="anderson",
            )  # fmt: skip
            above = mpmath.fsum(w * mpmath.ncdf((j - place) / m) for j, w in enumerate(weights))
            return above - mpmath.exp(epsilon) * mpmath.ncdf(-place / m)

        low, high = mpmath.mpf("0.01"), mpmath.mpf(60)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if delta(middle) > DELTA else (low, middle)
        return float(low)


def test_one_batch_is_a_sample():
    event = lw.PoissonSampled(lw.GaussianEvent(noise_multiplier=1.0, adjacency=A), sampling_rate=0.05)
    exact = several_samples_epsilon(1.0, 0.05, 1)
    assert exact == pytest.approx(lw.price(event).epsilon(DELTA), rel=1e-6)


def test_added_up_samples_are_counted_as_one(create):
    """B11: four Poisson samples of rate .05 in one step are reported as one of rate .2."""
    accountant = create("prv")
    hook = accountant.get_optimizer_hook_fn(0.05)
    hook(SimpleNamespace(noise_multiplier=1.0, accumulated_iterations=4))
    assert accountant.history == [(1.0, 0.2, 1)]
    theirs, truth = accountant.get_epsilon(DELTA), several_samples_epsilon(1.0, 0.05, 4)
    assert theirs == pytest.approx(2.447, abs=0.02)
    assert theirs + 0.5 < truth == pytest.approx(4.5539, abs=1e-3)


def test_with_ghost_clipping_they_are_not_counted_at_all(create):
    """B11': two samples in one step are reported as one of the rate of each."""
    optimizers = pytest.importorskip("opacus.optimizers", reason="needs the extra: opacus")
    count = optimizers.DPOptimizerFastGradientClipping.accumulated_iterations
    assert count.fget(SimpleNamespace()) == 1
    theirs = lw.price(from_sgd_history([(1.0, 0.05, 1)], adjacency=A)).epsilon(DELTA)
    assert theirs + 0.5 < several_samples_epsilon(1.0, 0.05, 2)


def test_a_shuffled_loader_is_reported_as_poisson_samples(create):
    """B12: `poisson_sampling=False` leaves the accountant's formula as it is."""
    accountant = create("prv")
    accountant.history = [(1.0, 0.01, 100)]
    theirs = accountant.get_epsilon(DELTA)
    shuffled = lw.accounting.ShuffledBatches(
        lw.GaussianEvent(noise_multiplier=1.0, adjacency=ZERO_OUT), steps=100, epochs=1
    )
    assert theirs < 0.74 < 4.0 < shuffled.epsilon_interval(DELTA)[0]
