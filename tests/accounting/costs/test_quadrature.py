import mpmath as mp
import numpy as np
import pytest

from ledgerwood.accounting.costs import quadrature


@pytest.mark.parametrize(
    "y", [-700.0, -5.0, -0.70001, -0.69999, -1e-9, 1e-300, 1e-4, 0.69999, 0.70001, 29.0, 31.0, 700.0]
)
def test_the_excess_of_the_exponential(y: float) -> None:
    with mp.workdps(700):
        exact = mp.exp(mp.mpf(y)) - 1 - mp.mpf(y)
        if exact > mp.mpf(10) ** -300:
            assert float(quadrature.exp_excess(np.array([y]))[0] / exact) == pytest.approx(1.0, rel=4e-15)
            log = quadrature.log_exp_excess(np.array([y]))[0]
            assert float(log) == pytest.approx(float(mp.log(exact)), rel=1e-15, abs=4e-15)


@pytest.mark.parametrize("power", [1.0 + 1e-7, 1.5, 40.0, 3000.0, -1e-7, -2.0, -3000.0])
@pytest.mark.parametrize("rate", [1e-9, 0.2, 1 - 1e-9])
def test_two_points_by_enumeration(power: float, rate: float) -> None:
    value = quadrature.two_point_log_excess(np.array([power]), epsilon=1.3, sampling_rate=rate)[0]
    with mp.workdps(120):
        q, p, t = mp.mpf(rate), mp.mpf(power), mp.mpf(1.3)
        weights = [mp.exp(t) / (1 + mp.exp(t)), 1 / (1 + mp.exp(t))]
        exact = mp.log(
            mp.fsum(w * (1 - q + q * r) ** p for w, r in zip(weights, (mp.exp(-t), mp.exp(t)), strict=True)) - 1
        )
        assert 0 <= mp.mpf(float(value)) - exact < 1e-13 * (1 + abs(exact))


@pytest.mark.parametrize(
    ("mu", "powers"), [(0.05, [1.2, 300.0, 4000.0]), (1.0, [1.2, 5.0, 90.0]), (3.0, [1.2, 9.0, 50.0])]
)
def test_half_the_step_gives_the_same_moment(mu: float, powers: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """The a-priori step is fine enough: a lattice twice as fine and wider windows change nothing but the last bits."""
    p = np.array([*powers, *(-x for x in powers)])
    before = quadrature.gaussian_log_excess(p, mu=mu, sampling_rate=0.07)
    step = quadrature._step
    monkeypatch.setattr(quadrature, "_step", lambda mu, power: 0.5 * step(mu, power))
    monkeypatch.setattr(quadrature, "_WINDOW", 13.0)
    after = quadrature.gaussian_log_excess(p, mu=mu, sampling_rate=0.07)
    np.testing.assert_allclose(before, after, rtol=1e-12, atol=1e-12)


def test_orders_together_and_alone_agree() -> None:
    p = np.array([1.3, 2.0, 700.0, -0.3, -40.0, 9000.0])
    together = quadrature.gaussian_log_excess(p, mu=0.9, sampling_rate=1e-4)
    alone = [quadrature.gaussian_log_excess(p[i : i + 1], mu=0.9, sampling_rate=1e-4)[0] for i in range(p.size)]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    many = np.concatenate((np.linspace(1.01, 60.0, 1200), [2.0]))
    values = quadrature.gaussian_log_excess(many, mu=0.9, sampling_rate=1e-4)
    assert np.all(np.diff(values[:-1]) > 0.0)
