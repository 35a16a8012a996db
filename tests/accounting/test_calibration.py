"""The least multiplier that fits: it fits, a little less does not, and impossible budgets say why."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.accounting import (
    Adjacency,
    Budget,
    Composed,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    Repeated,
    calibrate,
    gdp,
    price,
)
from ledgerwood.errors import AdjacencyMismatch, CalibrationFailed, InvalidParameter

A = Adjacency.ADD_REMOVE


def budget(epsilon, delta=1e-5, adjacency=A):
    return Budget(epsilon=epsilon, delta=delta, adjacency=adjacency)


def gaussian(multiplier):
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def laplace(multiplier):
    return LaplaceEvent(noise_multiplier=multiplier, adjacency=A)


def training(multiplier):
    return Repeated(PoissonSampled(gaussian(multiplier), sampling_rate=0.01), count=10_000)


def mixed(multiplier):
    return Composed(
        (laplace(multiplier), Repeated(PoissonSampled(gaussian(2 * multiplier), sampling_rate=0.1), count=20))
    )


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 8.0, 1000.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-15, 1e-300])
def test_a_full_batch_multiplier_is_one_over_mu(epsilon, delta):
    found = calibrate(gaussian, budget(epsilon, delta))
    assert found >= 1.0 / gdp.mu(epsilon, delta) * (1 - 1e-14)
    assert found == pytest.approx(1.0 / gdp.mu(epsilon, delta), rel=5e-12)


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([gaussian, laplace, training, mixed]),
    st.floats(-2.0, 1.5).map(lambda x: 10.0**x),
    st.floats(-12.0, -1.0).map(lambda x: 10.0**x),
)
def test_what_is_returned_fits_and_a_little_less_does_not(make_event, epsilon, delta):
    found = calibrate(make_event, budget(epsilon, delta))
    assert price(make_event(found)).epsilon(delta) <= epsilon
    assert price(make_event(found * (1 - 1e-9))).epsilon(delta) > epsilon


def test_the_training_plan_needs_at_most_the_known_multiplier():
    # the best list of orders known gives 4.1258; the exact answer, which needs another method, is 3.8128
    found = calibrate(training, budget(1.0))
    assert found == pytest.approx(4.1258, abs=1e-3)
    assert 3.8128 < found <= 4.1258


@pytest.mark.parametrize("scale", [1e-3, 1e3, 1e7])
def test_the_bracket_is_found_from_any_scale(scale):
    near = calibrate(gaussian, budget(1.0))
    assert calibrate(lambda s: gaussian(s / scale), budget(1.0)) == pytest.approx(scale * near, rel=1e-11)
    pure = calibrate(lambda s: laplace(s / scale), budget(0.5, 0.0))
    assert pure == pytest.approx(2.0 * scale, rel=1e-11)


def test_a_pure_plan_is_calibrated_at_delta_zero():
    found = calibrate(lambda s: Repeated(laplace(s), count=10), budget(1.0, 0.0))
    assert found == pytest.approx(10.0, rel=1e-11)
    assert Repeated(laplace(found), count=10).pure_epsilon() <= 1.0


def test_methods_other_than_the_tightest():
    by_renyi = calibrate(gaussian, budget(1.0), method="renyi")
    assert by_renyi == pytest.approx(4.0454, abs=1e-3)
    assert price(gaussian(by_renyi), method="renyi").epsilon(1e-5) <= 1.0
    with pytest.raises(InvalidParameter, match="method"):
        calibrate(gaussian, budget(1.0), method="mgf")


def test_delta_zero_with_gaussian_noise_says_so():
    with pytest.raises(CalibrationFailed, match="Gaussian noise has no finite epsilon at delta 0"):
        calibrate(gaussian, budget(1.0, 0.0))


def test_a_plan_whose_other_parts_are_too_dear_says_so():
    with pytest.raises(CalibrationFailed, match="its other parts do not fit"):
        calibrate(lambda s: Composed((gaussian(s), PureEvent(epsilon=2.0, adjacency=A))), budget(1.0))


def test_a_budget_that_never_binds_says_so():
    with pytest.raises(CalibrationFailed, match="never binds"):
        calibrate(lambda s: PureEvent(epsilon=0.1, adjacency=A), budget(1.0))


def test_event_and_budget_must_share_their_adjacency():
    with pytest.raises(AdjacencyMismatch, match="replace-one"):
        calibrate(gaussian, budget(1.0, adjacency=Adjacency.REPLACE_ONE))


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.0, 1e-5), (-1.0, 1e-5), (math.nan, 1e-5), (math.inf, 1e-5), (1.0, 1.0), (1.0, -1e-9), (1.0, math.nan)],
)
def test_budgets_outside_their_bounds_are_refused(epsilon, delta):
    with pytest.raises(InvalidParameter, match="unit"):
        budget(epsilon, delta)


def test_what_is_no_budget_is_refused():
    with pytest.raises(InvalidParameter, match="budget"):
        calibrate(gaussian, 1.0)


def test_what_is_not_certified_calibrates_nothing():
    with pytest.raises(InvalidParameter, match="not certified yet"):
        calibrate(
            lambda s: GaussianEvent(noise_multiplier=s, adjacency=A),
            Budget(epsilon=1.0, delta=1e-5, adjacency=A),
            method="pld",
        )
