"""Opacus's accountants answer.

The accountants need numpy and scipy only, but the package around them imports torch, for annotations. Its __init__ is
passed over, and the one class that an annotation names is a placeholder; every number comes from Opacus's own code.
"""

import importlib.machinery
import sys
import types
from typing import Any

import numpy as np
from serve import serve

_package = types.ModuleType("opacus")
_package.__path__ = list(importlib.machinery.PathFinder.find_spec("opacus").submodule_search_locations)
_optimizers = types.ModuleType("opacus.optimizers")
_optimizers.DPOptimizer = object
sys.modules.update({"opacus": _package, "opacus.optimizers": _optimizers})

from opacus.accountants import PRVAccountant, RDPAccountant, create_accountant  # noqa: E402
from opacus.accountants.analysis import rdp  # noqa: E402
from opacus.accountants.utils import get_noise_multiplier  # noqa: E402


def _history(draws: list[list[Any]]) -> list[tuple[float, float, int]]:
    if any(family != "gaussian" for family, *_ in draws):
        raise NotImplementedError("Gaussian noise only")
    return [(parameter, rate, count) for _, parameter, rate, count in draws]


def renyi(draws: list[list[Any]], orders: list[float] | None = None) -> list[float]:
    ((multiplier, rate, count),) = _history(draws)
    orders = orders or RDPAccountant.DEFAULT_ALPHAS
    found = rdp.compute_rdp(q=rate, noise_multiplier=multiplier, steps=count, orders=orders)
    return [float(value) for value in np.ravel(found)]  # of one order it is a number


def renyi_epsilon(draws: list[list[Any]], delta: float) -> float:
    accountant = RDPAccountant()
    accountant.history = _history(draws)
    return float(accountant.get_epsilon(delta))


def losses_epsilon(draws: list[list[Any]], delta: float, epsilon_error: float) -> float:
    accountant = PRVAccountant()
    accountant.history = _history(draws)
    return float(accountant.get_epsilon(delta, eps_error=epsilon_error))


def central_limit_epsilon(draws: list[list[Any]], delta: float) -> float:
    accountant = create_accountant("gdp")
    accountant.history = _history(draws)
    return float(accountant.get_epsilon(delta))


def sigma(rate: float, count: int, epsilon: float, delta: float, method: str) -> float:
    accountant = {"renyi": "rdp", "losses": "prv", "central limit": "gdp"}[method]
    return float(
        get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=count, accountant=accountant
        )
    )


if __name__ == "__main__":
    serve(
        {
            "renyi": renyi, "renyi_epsilon": renyi_epsilon, "losses_epsilon": losses_epsilon, "sigma": sigma,
            "central_limit_epsilon": central_limit_epsilon,
        }
    )  # fmt: skip
