"""Google's dp-accounting answers."""

from typing import Any

from dp_accounting import dp_event, mechanism_calibration
from dp_accounting.pld import common, pld_privacy_accountant
from dp_accounting.pld import privacy_loss_distribution as losses
from dp_accounting.rdp import rdp_privacy_accountant
from serve import peak_megabytes, serve


def _event(draws: list[list[Any]]) -> dp_event.DpEvent:
    events = []
    for family, parameter, rate, count in draws:
        if family == "gaussian":
            event = dp_event.GaussianDpEvent(float(parameter))
        elif family == "laplace":
            event = dp_event.LaplaceDpEvent(float(parameter))
        else:
            raise NotImplementedError(f"no event for {family}")
        if rate < 1.0:
            event = dp_event.PoissonSampledDpEvent(rate, event)
        events.append(dp_event.SelfComposedDpEvent(event, count))
    return events[0] if len(events) == 1 else dp_event.ComposedDpEvent(events)


def renyi(draws: list[list[Any]], orders: list[float] | None = None) -> list[float]:
    accountant = rdp_privacy_accountant.RdpAccountant(orders)
    accountant.compose(_event(draws))
    return [float(value) for value in accountant._rdp]


def renyi_epsilon(draws: list[list[Any]], delta: float) -> float:
    accountant = rdp_privacy_accountant.RdpAccountant()
    accountant.compose(_event(draws))
    return float(accountant.get_epsilon(delta))


def _losses(draw: list[Any], step: float, pessimistic: bool) -> losses.PrivacyLossDistribution:
    family, parameter, rate, count = draw
    options = {"value_discretization_interval": step, "pessimistic_estimate": pessimistic}
    if family == "gaussian":
        found = losses.from_gaussian_mechanism(parameter, sampling_prob=rate, **options)
    elif family == "laplace":
        found = losses.from_laplace_mechanism(parameter, sampling_prob=rate, **options)
    elif pessimistic:  # any pure mechanism, by randomised response: the best that it offers
        found = losses.from_privacy_parameters(
            common.DifferentialPrivacyParameters(parameter, 0), value_discretization_interval=step
        )
    else:
        raise NotImplementedError(f"no optimistic losses for {family}")
    return found.self_compose(count) if count > 1 else found


def losses_epsilon(draws: list[list[Any]], delta: float, step: float, pessimistic: bool = True) -> float:
    total = _losses(draws[0], step, pessimistic)
    for draw in draws[1:]:
        total = total.compose(_losses(draw, step, pessimistic))
    return float(total.get_epsilon_for_delta(delta))


def sigma(rate: float, count: int, epsilon: float, delta: float, method: str) -> float:
    accountant = (
        rdp_privacy_accountant.RdpAccountant if method == "renyi" else pld_privacy_accountant.PLDAccountant
    )  # fmt: skip
    return float(
        mechanism_calibration.calibrate_dp_mechanism(
            accountant, lambda s: _event([["gaussian", s, rate, count]]), epsilon, delta
        )
    )


def memory(draws: list[list[Any]], delta: float, step: float) -> float:
    """Peak megabytes of the process after one price."""
    losses_epsilon(draws, delta, step)
    return peak_megabytes()


if __name__ == "__main__":
    serve(
        {
            "renyi": renyi, "renyi_epsilon": renyi_epsilon, "losses_epsilon": losses_epsilon, "sigma": sigma,
            "memory": memory,
        }
    )  # fmt: skip
