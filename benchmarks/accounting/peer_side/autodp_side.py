"""autodp answers, by Renyi; its route by characteristic functions fails on current scipy and is not asked."""

from typing import Any

import numpy as np
from autodp import calibrator_zoo, mechanism_zoo, transformer_zoo
from serve import serve

ORDERS = (*np.linspace(1.1, 10.9, 99).tolist(), *map(float, range(11, 62)))  # it has no list of its own


def _mechanism(family: str, parameter: float, rate: float) -> Any:
    if family == "gaussian":
        found = mechanism_zoo.GaussianMechanism(sigma=parameter)
    elif family == "laplace":
        found = mechanism_zoo.LaplaceMechanism(b=parameter)
    else:
        found = mechanism_zoo.ExponentialMechanism(parameter)
    if rate < 1.0:
        # The improved bound needs conditions that Gaussian and Laplace noise meet.
        return transformer_zoo.AmplificationBySampling(PoissonSampling=True)(found, rate, improved_bound_flag=True)
    return found


def renyi(draws: list[list[Any]], orders: list[float] | None = None) -> list[float]:
    ((family, parameter, rate, count),) = draws
    mechanism = _mechanism(family, parameter, rate)
    return [count * float(mechanism.RenyiDP(order)) for order in orders or ORDERS]


def renyi_epsilon(draws: list[list[Any]], delta: float) -> float:
    mechanisms = [_mechanism(family, parameter, rate) for family, parameter, rate, _ in draws]
    composed = transformer_zoo.Composition()(mechanisms, [count for *_, count in draws])
    return float(composed.get_approxDP(delta))


def sigma(rate: float, count: int, epsilon: float, delta: float, method: str) -> float:
    if method == "exact":
        found = calibrator_zoo.ana_gaussian_calibrator()(mechanism_zoo.ExactGaussianMechanism, epsilon, delta)
        return float(found.params["sigma"])
    found = calibrator_zoo.generalized_eps_delta_calibrator()(
        mechanism_zoo.SubsampleGaussianMechanism, epsilon, delta, [0.5, 40],
        params={"prob": rate, "sigma": None, "coeff": count}, para_name="sigma",
    )  # fmt: skip
    return float(found.params["sigma"])


if __name__ == "__main__":
    serve({"renyi": renyi, "renyi_epsilon": renyi_epsilon, "sigma": sigma})
