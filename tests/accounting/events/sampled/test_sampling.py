import math

import mpmath as mp
import numpy as np
import pytest

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import (
    Composed,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    Repeated,
)
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

A = Adjacency.ADD_REMOVE
GAUSSIAN = GaussianEvent(noise_multiplier=1.0, adjacency=A)


def sampled(event: Event, rate: float) -> PoissonSampled:
    return PoissonSampled(event, sampling_rate=rate)


def exact_profile(multiplier: float, rate: float, epsilon: float, direction: Direction) -> mp.mpf | None:
    """H of the mixture pair of two Gaussians, from its one crossing: normal tails, subtracted with digits to spare."""
    s, q, x = mp.mpf(multiplier), mp.mpf(rate), mp.exp(mp.mpf(epsilon))

    def tail(z: mp.mpf) -> mp.mpf:
        return mp.erfc(z / (s * mp.sqrt(2))) / 2

    # s(z) = 1 - q + q r(z) crosses x (remove) or 1/x (add) at z
    level = x if direction is Direction.REMOVE else 1 / x
    ratio = (level - (1 - q)) / q
    if ratio <= 0:
        return None
    z = s * s * mp.log(ratio) + mp.mpf(1) / 2
    with_row = (1 - q) * tail(z) + q * tail(z - 1)
    if direction is Direction.REMOVE:
        return with_row - x * tail(z)
    return (1 - tail(z)) - x * (1 - with_row)


@pytest.mark.slow_after(10)  # the truth by integrals or enumeration
@pytest.mark.parametrize("direction", list(Direction), ids=lambda d: d.value)
@pytest.mark.parametrize("rate", [1e-9, 1e-3, 0.3, 0.9, 1 - 1e-9])
@pytest.mark.parametrize("multiplier", [0.3, 1.0, 20.0])
def test_profile_of_the_mixture(multiplier: float, rate: float, direction: Direction) -> None:
    event = sampled(GaussianEvent(noise_multiplier=multiplier, adjacency=A), rate)
    with mp.workdps(400):
        for epsilon in (0.0, 1e-10, 1e-4, 0.05, 0.3, 1.0, 4.0, 30.0):
            exact = exact_profile(multiplier, rate, epsilon, direction)
            value = float(event.log_profile(epsilon, direction=direction))
            if exact is None:
                assert value == -math.inf
            elif exact > mp.mpf(10) ** -90:
                relative = mp.exp(mp.mpf(value)) / exact - 1
                # the add profile ends at -log(1 - q): there its slope in epsilon is all that can be said
                assert relative > -1e-15
                assert relative < 1e-11 * (1 + abs(mp.log(exact)))


def test_profile_at_huge_epsilon_and_tiny_rate() -> None:
    event = sampled(GAUSSIAN, 1e-100)
    values = event.log_profile([0.0, 1.0, 500.0, 1e6, np.inf], direction=Direction.REMOVE)
    assert np.all(np.isfinite(values[:4]))
    assert np.all(np.diff(values[:4]) < 0.0)
    assert values[4] == -np.inf
    assert values[3] == pytest.approx(-0.5e12, rel=1e-3)


def test_renyi_at_whole_orders_is_a_binomial_sum() -> None:
    for rate, multiplier in ((1e-12, 1.0), (0.02, 0.8), (0.9, 3.0), (1 - 1e-12, 1.0)):
        event = sampled(GaussianEvent(noise_multiplier=multiplier, adjacency=A), rate)
        for order in (2, 3, 17):
            with mp.workdps(80):
                q, s = mp.mpf(rate), mp.mpf(multiplier)
                total = mp.fsum(
                    mp.binomial(order, i) * (1 - q) ** (order - i) * q**i * mp.exp((i * i - i) / (2 * s * s))
                    for i in range(order + 1)
                )
                exact = mp.log(total) / (order - 1)
                value = mp.mpf(float(event.renyi([order])[0]))
                assert 0 <= (value - exact) / exact < 1e-12


@pytest.mark.parametrize("leaf", [GaussianEvent, LaplaceEvent])
@pytest.mark.parametrize("multiplier", [0.02, 0.0299, 0.0301, 0.3, 1.0, 100.0, 1e8])
def test_extreme_parameters_give_ordinary_numbers(leaf: type, multiplier: float) -> None:
    orders = np.array([1 + 1e-7, 1.01, 2.0, 64.0, 8192.0, 1e5])
    for rate in (1e-12, 1e-6, 0.5, 1 - 1e-12):
        for direction in Direction:
            values = sampled(leaf(noise_multiplier=multiplier, adjacency=A), rate).renyi(orders, direction=direction)
            assert np.all(np.isfinite(values) & (values > 0.0))


@pytest.mark.parametrize("leaf", [GaussianEvent, LaplaceEvent])
@pytest.mark.parametrize(("below", "above"), [(0.0299999, 0.0300001), (1 / 104.6, 1 / 104.59)])
def test_the_form_for_little_noise_joins_the_quadrature(leaf: type, below: float, above: float) -> None:
    orders = np.array([1.0001, 1.5, 20.0])
    for direction in Direction:
        low, high = (
            sampled(leaf(noise_multiplier=m, adjacency=A), 0.01).renyi(orders, direction=direction)
            for m in (below, above)
        )
        np.testing.assert_allclose(low, high, rtol=3e-4)
        assert np.all(low >= high * (1 - 1e-11))


def test_orders_beyond_the_lattice_keep_a_bound() -> None:
    """At orders where a mu^2 passes 1e8 the value is a bound: between the last exact one and the limit at infinity."""
    event = sampled(GaussianEvent(noise_multiplier=0.05, adjacency=A), 0.3)
    exact, far = event.renyi([1e5, 1e12], direction=Direction.ADD)
    assert exact <= far * (1 + 1e-12) <= -math.log1p(-0.3) * (1 + 1e-11)
    wide = sampled(GaussianEvent(noise_multiplier=1e6, adjacency=A), 0.3)
    exact, far = wide.renyi([1e10, 1e15], direction=Direction.REMOVE)
    assert exact <= far <= 0.5e3 * (1 + 1e-12)


def test_a_rate_of_one_is_no_sampling() -> None:
    orders = np.array([1.5, 2.0])
    event = sampled(GAUSSIAN, 1)
    np.testing.assert_array_equal(event.renyi(orders), GAUSSIAN.renyi(orders))
    assert event.mu() == GAUSSIAN.mu()
    assert isinstance(event.sampling_rate, float)


def test_a_sampled_gaussian_is_no_gaussian() -> None:
    with pytest.raises(UnsupportedEvent, match="not Gaussian"):
        sampled(GAUSSIAN, 0.5).mu()


@pytest.mark.parametrize("multiplier", [1, 1.0])
def test_one_sample_of_many_gaussians_is_a_sample_of_one(multiplier: float) -> None:
    """Whole numbers included: 100 releases of multiplier 1 from one sample are one of multiplier 1/10."""
    orders = np.array([1.1, 2.0, 16.0, 200.0])
    many = sampled(Repeated(GaussianEvent(noise_multiplier=multiplier, adjacency=A), count=100), 0.01)
    one = sampled(GaussianEvent(noise_multiplier=0.1, adjacency=A), 0.01)
    np.testing.assert_allclose(many.renyi(orders), one.renyi(orders), rtol=1e-11)
    two = Composed((GAUSSIAN, GaussianEvent(noise_multiplier=0.5, adjacency=A)))
    root = GaussianEvent(noise_multiplier=1.0 / math.sqrt(5.0), adjacency=A)
    np.testing.assert_allclose(sampled(two, 0.01).renyi(orders), sampled(root, 0.01).renyi(orders), rtol=1e-11)
    for direction in Direction:
        grid = np.array([0.0, 0.005, 1.0, 20.0])
        np.testing.assert_allclose(
            sampled(two, 0.01).log_profile(grid, direction=direction),
            sampled(root, 0.01).log_profile(grid, direction=direction),
            rtol=1e-12,
        )


def test_one_shared_draw_is_dearer_than_fresh_draws() -> None:
    event = GaussianEvent(noise_multiplier=3.0, adjacency=A)
    orders = np.geomspace(1.1, 60.0, 12)
    shared = sampled(Repeated(event, count=6), 0.1).renyi(orders)
    fresh = Repeated(sampled(event, 0.1), count=6).renyi(orders)
    assert np.all(shared > fresh)


def test_sampling_what_has_no_joint_profile_is_refused() -> None:
    mixed = Composed((GAUSSIAN, LaplaceEvent(noise_multiplier=1.0, adjacency=A)))
    with pytest.raises(UnsupportedEvent, match="not all Gaussian"):
        sampled(mixed, 0.5).renyi([2.0])
    with pytest.raises(UnsupportedEvent, match="not all Gaussian"):
        sampled(mixed, 0.5).log_profile(1.0, direction=Direction.ADD)
    inner = Repeated(sampled(GAUSSIAN, 0.5), count=2)
    with pytest.raises(UnsupportedEvent, match="not all Gaussian"):
        sampled(inner, 0.5).renyi([2.0])


@pytest.mark.parametrize("leaf", [GaussianEvent, LaplaceEvent])
def test_replace_one_is_refused_with_its_reason(leaf: type) -> None:
    with pytest.raises(UnsupportedEvent, match="third output distribution"):
        sampled(leaf(noise_multiplier=1.0, adjacency=Adjacency.REPLACE_ONE), 0.5)


def test_zero_out_is_priced_as_add_remove() -> None:
    null = GaussianEvent(noise_multiplier=1.0, adjacency=Adjacency.ZERO_OUT)
    np.testing.assert_array_equal(sampled(null, 0.1).renyi([2.0, 5.0]), sampled(GAUSSIAN, 0.1).renyi([2.0, 5.0]))


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 5.0, 40.0, 800.0])
@pytest.mark.parametrize("rate", [1e-12, 1e-3, 0.5, 1 - 1e-12])
def test_pure_epsilon_of_a_sample(epsilon: float, rate: float) -> None:
    value = sampled(PureEvent(epsilon=epsilon, adjacency=A), rate).pure_epsilon()
    with mp.workdps(60):
        exact = mp.log(1 + mp.mpf(rate) * mp.expm1(mp.mpf(epsilon)))
        assert 0 <= (mp.mpf(value) - exact) / exact < 1e-12


@pytest.mark.parametrize("rate", [1e-100, 3.8234860569985063e-100, 1e-68, 1e-30, 0.3])
@pytest.mark.parametrize("excess", [-2.0, -0.3, 0.0, 0.3, 2.0, 500.0])
def test_pure_epsilon_of_a_sample_is_never_below(rate: float, excess: float) -> None:
    """Where q e^eps is about 1, eps + log(q + ...) would cancel."""
    epsilon = excess - math.log(rate)
    if epsilon > 0.0:
        value = sampled(PureEvent(epsilon=epsilon, adjacency=A), rate).pure_epsilon()
        with mp.workdps(150):
            exact = mp.log1p(mp.mpf(rate) * mp.expm1(mp.mpf(epsilon)))
            assert 0 <= (mp.mpf(value) - exact) / exact < 4e-15


@pytest.mark.parametrize(
    "leaf",
    [
        GAUSSIAN,
        GaussianEvent(noise_multiplier=0.0323, adjacency=A),
        GaussianEvent(noise_multiplier=0.029, adjacency=A),
        LaplaceEvent(noise_multiplier=1e-3, adjacency=A),
    ],
    ids=repr,
)
def test_samples_of_samples_without_end_cost_no_less_than_they_do(leaf: Event) -> None:
    """Four samples of rates whose product no float holds: the least rate bounds them."""
    least = sampled(leaf, 1e-100)
    orders = [2.0, 3.0, 40.0]
    for last in (1e-10, 1e-100):
        nested = sampled(sampled(sampled(least, 1e-100), 1e-100), last)
        for direction in Direction:
            np.testing.assert_array_equal(
                nested.renyi(orders, direction=direction), least.renyi(orders, direction=direction)
            )


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.0000001, math.nan, 1e-200, True, "0.1"])
def test_bad_rates_are_refused(rate: object) -> None:
    with pytest.raises(InvalidParameter, match="sampling_rate="):
        PoissonSampled(GAUSSIAN, sampling_rate=rate)  # type: ignore[arg-type]


def test_only_events_are_sampled() -> None:
    with pytest.raises(InvalidParameter, match="not an event"):
        PoissonSampled(1.0, sampling_rate=0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", [1e-12, 1e-14, 1e-30, 1e-80])
@pytest.mark.parametrize("multiplier", [0.1, 0.2, 1.0, 30.0])
def test_order_two_at_tiny_rates_is_chi_squared(rate: float, multiplier: float) -> None:
    """E[s^2] - 1 = q^2 E[(r - 1)^2], whose mass lies where r itself is huge."""
    for leaf in (
        GaussianEvent(noise_multiplier=multiplier, adjacency=A),
        LaplaceEvent(noise_multiplier=multiplier, adjacency=A),
    ):
        with mp.workdps(300):
            b, q = mp.mpf(multiplier), mp.mpf(rate)
            second = mp.exp(1 / b**2) if isinstance(leaf, GaussianEvent) else (2 * mp.exp(1 / b) + mp.exp(-2 / b)) / 3
            exact = mp.log(1 + q * q * (second - 1))
            value = mp.mpf(float(sampled(leaf, rate).renyi([2.0])[0]))
            assert 0 <= (value - exact) / exact < 1e-12
