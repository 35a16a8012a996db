"""The verifier's Renyi divergences from both sides, beside the library's own, at low and at very high orders."""

import math

import pytest

import ledgerwood as lw
from ledgerwood.accounting.events.serial import to_json
from ledgerwood.verification.ledgers import filters as _filters
from ledgerwood.verification.ledgers import pairs as _pairs
from ledgerwood.verification.ledgers.atoms import mp
from ledgerwood.verification.ledgers.bounds.divergences import renyi_bounds

A = lw.Adjacency.ADD_REMOVE


def gaussian(sigma):
    return lw.GaussianEvent(noise_multiplier=sigma, adjacency=A)


def laplace(scale):
    return lw.LaplaceEvent(noise_multiplier=scale, adjacency=A)


def sampled(event, rate):
    return lw.PoissonSampled(event, sampling_rate=rate)


PAIR = lw.Parallel((gaussian(1.0), laplace(1.0)), probabilities=(0.5, 0.5))
CASES = {  # by what they are
    "groups": sampled(PAIR, 0.01),
    "groups of little noise": sampled(lw.Parallel((gaussian(0.3), laplace(0.5)), probabilities=(0.25, 0.5)), 0.001),
    "a rare costly group": lw.Parallel((gaussian(1.0), gaussian(1e-3)), probabilities=(0.5, 1e-305)),
    "nested samples": sampled(sampled(PAIR, 0.1), 0.3),
    "Laplace": sampled(laplace(0.1), 0.01),
    "certain sample": sampled(PAIR, 1.0),
}


MANY = lw.Composed(tuple(sampled(gaussian(0.4 + 0.001 * k), 0.01) for k in range(30)))


@pytest.mark.slow_after(7)  # the verifier's bounds beside the truth in mpmath
@pytest.mark.parametrize(
    ("event", "order"),
    [
        *((event, order) for event in CASES.values() for order in (1 + 1e-6, 1.5, 2.0, 16.0, 50.0, 200.0, 1000.0)),
        (MANY, 64.0),
    ],
)
def test_neither_bound_passes_the_truth_at_any_order(event, order):
    truth = float(event.renyi([order])[0])
    with mp.workdps(50):
        found = renyi_bounds(_pairs.parse(to_json(event)), order)
    assert found.lower <= truth * (1 + 1e-9)
    assert found.upper >= truth * (1 - 1e-9)


def test_mass_that_floats_take_for_nothing_counts_at_high_orders():
    """A composition sampled at 1e-100: what is cut off has less mass than any float, and most of the moment.

    With q r above 1 the ratio is at least q r, so that the moment is at least q^a E r^a but for what lies below.
    """
    event = sampled(lw.Composed((gaussian(0.05), laplace(1.0))), 1e-100)
    order = 50.0
    whole = (order - 1) * sum(float(part.renyi([order])[0]) for part in event.event.events)
    least = (whole + order * math.log(1e-100)) / (order - 1)
    with mp.workdps(50):
        found = renyi_bounds(_pairs.parse(to_json(event)), order)
    assert least > 9000
    assert found.lower <= found.upper
    assert found.upper >= least * (1 - 1e-12)


@pytest.mark.parametrize("order", [1.0, math.nextafter(1.0, 2.0), 1 + 9e-7, 1.1e6 + 1, math.inf, math.nan])
def test_a_filter_of_an_order_beyond_the_librarys_is_refused(order):
    with pytest.raises(ValueError, match="unknown filter"):
        _filters.rule({"name": "renyi", "order": order})
