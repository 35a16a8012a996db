"""Microsoft's prv-accountant answers."""

from typing import Any

from prv_accountant import (
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
)
from prv_accountant.dpsgd import find_noise_multiplier
from serve import serve


def _variable(family: str, parameter: float, rate: float) -> Any:
    if family == "gaussian" and rate < 1.0:
        return PoissonSubsampledGaussianMechanism(noise_multiplier=parameter, sampling_probability=rate)
    if family == "gaussian":
        return GaussianMechanism(noise_multiplier=parameter)
    if family == "laplace" and rate == 1.0:
        return LaplaceMechanism(mu=1.0 / parameter)
    raise NotImplementedError(f"no variable for {family} at rate {rate}")


def losses_epsilon(draws: list[list[Any]], delta: float, epsilon_error: float) -> list[float]:
    """Lower, estimate, upper."""
    counts = [count for *_, count in draws]
    variables = [_variable(family, parameter, rate) for family, parameter, rate, _ in draws]
    accountant = PRVAccountant(
        prvs=variables, max_self_compositions=counts, eps_error=epsilon_error, delta_error=delta / 1000
    )
    return [float(value) for value in accountant.compute_epsilon(delta=delta, num_self_compositions=counts)]


def sigma(rate: float, count: int, epsilon: float, delta: float, method: str) -> float:
    assert method == "losses"
    return float(find_noise_multiplier(rate, count, epsilon, delta))


if __name__ == "__main__":
    serve({"losses_epsilon": losses_epsilon, "sigma": sigma})
