import math

import mpmath as mp
import numpy as np
import pytest

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events import EllipticalGaussianEvent, GaussianEvent, PoissonSampled
from ledgerwood.errors import InvalidParameter

A = Adjacency.ADD_REMOVE


def gaussian(multiplier: float) -> GaussianEvent:
    return GaussianEvent(noise_multiplier=multiplier, adjacency=A)


def exact_log_profile(multiplier: float, epsilon: float) -> mp.mpf:
    """log(Phi(-a) - e^eps Phi(-b)) by plain subtraction, with as many digits as that needs."""
    mu, t = 1 / mp.mpf(multiplier), mp.mpf(epsilon)
    a, b = t / mu - mu / 2, t / mu + mu / 2
    return mp.log((mp.erfc(a / mp.sqrt(2)) - mp.exp(t) * mp.erfc(b / mp.sqrt(2))) / 2)


@pytest.mark.parametrize("multiplier", [0.02, 0.1, 0.5, 1.0, 3.0, 20.0, 1e3, 1e6, 1e8])
def test_profile_is_exact_to_the_last_bits_and_never_below(multiplier: float) -> None:
    epsilons = [e for e in (0, 1e-12, 1e-9, 1e-6, 1e-3, 0.03, 0.5, 1, 2, 7, 10, 100, 1e3) if e * multiplier < 200]
    values = gaussian(multiplier).log_profile(epsilons, direction=Direction.REMOVE)
    with mp.workdps(120):
        for epsilon, value in zip(epsilons, values, strict=True):
            truth = exact_log_profile(multiplier, epsilon)
            error = (mp.mpf(float(value)) - truth) / (1 + abs(truth))
            assert 0.0 <= error < 1e-14 or float(value) == 0.0 == pytest.approx(float(truth), abs=1e-15)


@pytest.mark.parametrize("multiplier", [1e-2, 2.1861387371337424e-4, 1.7839717104886807e-7, 1.3292154095043566e-8])
@pytest.mark.parametrize("place", [-4.0, -1.0, 0.5, 3.0, 7.0])
def test_profile_of_little_noise_is_never_below(multiplier: float, place: float) -> None:
    """eps near mu^2 / 2, where eps/mu - mu/2 cancels."""
    mu = 1.0 / multiplier
    epsilon = mu * (0.5 * mu + place)
    value = float(gaussian(multiplier).log_profile([epsilon], direction=Direction.REMOVE)[0])
    with mp.workdps(80):
        error = mp.mpf(value) - exact_log_profile(multiplier, epsilon)
        assert 0.0 <= error < 4e-15 * (10.0 + mu * (1.0 + abs(place)))


def test_profile_far_out_is_a_number() -> None:
    values = gaussian(1e8).log_profile([1.0, 1e10, np.inf], direction=Direction.ADD)
    assert values[0] == pytest.approx(-0.5e16, rel=1e-7)
    assert np.all(values[:2] > -np.inf)
    assert values[2] == -np.inf


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_profile_has_the_shape_of_its_argument(shape: tuple[int, ...]) -> None:
    assert gaussian(1.0).log_profile(np.ones(shape), direction=Direction.ADD).shape == shape


def test_renyi_is_half_the_order_times_mu_squared() -> None:
    orders = np.array([1 + 1e-7, 2.0, 32.5, 1e5])
    np.testing.assert_allclose(gaussian(2.0).renyi(orders), orders / 8.0, rtol=2e-15)
    assert np.all(gaussian(2.0).renyi(orders) >= orders / 8.0)


def test_a_whole_number_is_a_multiplier_like_any_other() -> None:
    assert isinstance(gaussian(1).noise_multiplier, float)
    assert gaussian(1) == gaussian(1.0)
    assert hash(gaussian(1)) == hash(gaussian(1.0))


def test_no_pure_epsilon() -> None:
    assert gaussian(1e8).pure_epsilon() == math.inf


def test_mu_is_rounded_up() -> None:
    assert gaussian(3.0).mu() * 3.0 >= 1.0
    assert gaussian(3.0).mu() == pytest.approx(1.0 / 3.0, rel=1e-15)


def test_the_ellipse_is_a_gaussian_of_the_mahalanobis_norm() -> None:
    event = EllipticalGaussianEvent(sensitivities=(1, 0.3, 0), stddevs=(5, 1.0, 7), adjacency=A)
    twin = gaussian(1.0 / math.sqrt(1.0 / 25.0 + 0.09))
    assert event.noise_multiplier <= twin.noise_multiplier
    orders = np.array([1.5, 8.0])
    np.testing.assert_allclose(event.renyi(orders), twin.renyi(orders), rtol=1e-14)
    for direction in Direction:
        sampled, known = (
            PoissonSampled(e, sampling_rate=0.1).renyi(orders, direction=direction) for e in (event, twin)
        )
        np.testing.assert_allclose(sampled, known, rtol=1e-12)


def test_the_ellipse_against_a_two_dimensional_integral() -> None:
    """The sampled pair of the vector itself: Q = N(0, diag s^2), P = N(d, diag s^2), on a fine lattice in the plane."""
    d, s, q, order = np.array([1.0, 0.7]), np.array([1.2, 0.8]), 0.3, 2.5
    z = np.linspace(-14.0, 14.0, 401)
    x, y = np.meshgrid(z, z, indexing="ij")
    log_ratio = x * d[0] / s[0] + y * d[1] / s[1] - 0.5 * float(np.sum((d / s) ** 2))
    mass = np.exp(-0.5 * (x**2 + y**2)) * (z[1] - z[0]) ** 2 / (2.0 * np.pi)
    moment = float(np.sum(mass * (1.0 - q + q * np.exp(log_ratio)) ** order))
    event = EllipticalGaussianEvent(sensitivities=tuple(d), stddevs=tuple(s), adjacency=A)
    exact = math.log(moment) / (order - 1.0)
    assert PoissonSampled(event, sampling_rate=q).renyi([order])[0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, 1e-200, 1e200, True, "1", None])
def test_bad_multipliers_are_refused(value: object) -> None:
    with pytest.raises(InvalidParameter, match="noise_multiplier="):
        gaussian(value)  # type: ignore[arg-type]


def test_adjacency_has_no_default() -> None:
    with pytest.raises(TypeError, match="adjacency"):
        GaussianEvent(noise_multiplier=1.0)  # type: ignore[call-arg]
    with pytest.raises(InvalidParameter, match="adjacency"):
        GaussianEvent(noise_multiplier=1.0, adjacency="add-remove")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sensitivities", "stddevs"),
    [
        ((), ()),
        ((1.0,), (1.0, 2.0)),
        ((0.0,), (1.0,)),
        ((-1.0,), (1.0,)),
        ((1.0,), (0.0,)),
        ((math.nan,), (1.0,)),
        (1.0, 1.0),
    ],
)
def test_bad_ellipses_are_refused(sensitivities: object, stddevs: object) -> None:
    with pytest.raises(InvalidParameter):
        EllipticalGaussianEvent(sensitivities=sensitivities, stddevs=stddevs, adjacency=A)  # type: ignore[arg-type]


@pytest.mark.parametrize("orders", [1.0, [0.5], [math.nan], [math.inf], [[2.0]], ["2"]])
def test_bad_orders_are_refused(orders: object) -> None:
    with pytest.raises(InvalidParameter, match="orders"):
        gaussian(1.0).renyi(orders)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilons", [-1e-300, math.nan, [1.0, -2.0], "1"])
def test_bad_epsilons_are_refused(epsilons: object) -> None:
    with pytest.raises(InvalidParameter, match="epsilons"):
        gaussian(1.0).log_profile(epsilons, direction=Direction.REMOVE)  # type: ignore[arg-type]


@pytest.mark.parametrize("powers", [0.0, 1.0, [0.5], [math.nan], [[2.0]]])
def test_bad_powers_are_refused(powers: object) -> None:
    with pytest.raises(InvalidParameter, match="powers"):
        gaussian(1.0).log_excess_moments(powers, sampling_rate=0.5)  # type: ignore[arg-type]
