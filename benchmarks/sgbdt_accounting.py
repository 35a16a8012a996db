"""The noise multiplier that one S-GBDT plan needs, by four accountings."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

import ledgerwood as lw

ADD_REMOVE = lw.Adjacency.ADD_REMOVE
ORDERS = np.arange(2, 2001)
PRINTED_ORDERS = np.unique(np.round(np.geomspace(2, 2000, 90)).astype(int))


def plan(noise_multiplier: float, sampling_rate: float, trees: int) -> lw.Event:
    """The trees of a plan; their leaves are one Gaussian pair each."""
    tree: lw.Event = lw.GaussianEvent(noise_multiplier=noise_multiplier, adjacency=ADD_REMOVE)
    if sampling_rate < 1.0:
        tree = lw.PoissonSampled(tree, sampling_rate=sampling_rate)
    return lw.Repeated(tree, count=trees)


def official_search(epsilon: float, delta: float, sampling_rate: float, trees: int) -> float:
    """The published code: whole orders 2 to 2000, the tight sampled bound, the improved conversion."""

    def excess(log_multiplier: float) -> float:
        curve = plan(math.exp(log_multiplier), sampling_rate, trees).renyi(ORDERS)
        converted = curve + np.log1p(-1.0 / ORDERS) - np.log(ORDERS * delta) / (ORDERS - 1)
        return float(converted.min()) - epsilon

    return math.exp(brentq(excess, math.log(0.3), math.log(1e5), xtol=1e-10))


def printed_curve(noise_multiplier: float, sampling_rate: float) -> NDArray[np.float64]:
    """Theorem 14 as printed (Zhu and Wang's general bound with its factor 3), at whole orders from 2 to 2000."""
    q, curve = sampling_rate, []
    for order in PRINTED_ORDERS.tolist():
        powers = np.arange(3, order + 1)
        log_binomial = gammaln(order + 1) - gammaln(powers + 1) - gammaln(order - powers + 1)
        tail = log_binomial + powers * math.log(q) + powers * (powers - 1) / (2.0 * noise_multiplier**2)
        tail = tail + (order - powers) * math.log1p(-q) if q < 1.0 else np.where(powers == order, tail, -math.inf)
        stay = math.log1p(-q) if q < 1.0 else -math.inf
        terms = [
            (order - 1) * stay + math.log(order * q - q + 1.0),
            math.log(order * (order - 1) / 2)
            + 2 * math.log(q)
            + ((order - 2) * stay if order > 2 else 0.0)
            + noise_multiplier**-2.0,
            *(math.log(3.0) + tail),
        ]
        curve.append(float(logsumexp(terms)) / (order - 1))
    return np.array(curve)


Conversion = Callable[[NDArray[np.float64], float], NDArray[np.float64]]
"""A Renyi curve at the printed orders, and log delta, to epsilon at each order."""


def sound_conversion(curve: NDArray[np.float64], log_delta: float) -> NDArray[np.float64]:
    """Mironov 2017, Proposition 3."""
    return curve - log_delta / (PRINTED_ORDERS - 1)


def printed_conversion(curve: NDArray[np.float64], log_delta: float) -> NDArray[np.float64]:
    """Theorem 18 and Algorithm 7 as printed, exp(rho - alpha epsilon) = delta: not a valid bound."""
    return (curve - log_delta) / PRINTED_ORDERS


def printed_accounting(epsilon: float, delta: float, sampling_rate: float, trees: int, conversion: Conversion) -> float:
    """Algorithm 7 with Theorem 14's curve and the given conversion; inf where no noise is enough."""

    def excess(log_multiplier: float) -> float:
        curve = trees * printed_curve(math.exp(log_multiplier), sampling_rate)
        return float(conversion(curve, math.log(delta)).min()) - epsilon

    if excess(math.log(1e6)) > 0.0:
        return math.inf
    return math.exp(brentq(excess, math.log(0.3), math.log(1e6), xtol=1e-8))


def accounting_table(console: Console) -> None:
    """Print the multipliers side by side."""
    table = Table(title="noise multiplier needed (less is better)")
    for column in (
        "epsilon", "delta", "rate", "trees", "ledgerwood", "method", "official code's Renyi search",
        "printed: Theorem 14, sound conversion", "printed: Algorithm 7 (its conversion is unsound)",
    ):  # fmt: skip
        table.add_column(column, justify="right")
    cases = (
        (0.09, 5e-8, 0.1, 50),
        (0.5, 5e-8, 0.1, 150),
        (0.1, 5e-8, 1.0, 400),
        (0.5, 5e-8, 1.0, 200),
        (1.0, 5e-8, 1.0, 128),
    )
    for epsilon, delta, rate, trees in cases:
        budget = lw.Budget(epsilon=epsilon, delta=delta, adjacency=ADD_REMOVE)
        ours = lw.calibrate(lambda s, rate=rate, trees=trees: plan(s, rate, trees), budget)
        table.add_row(
            f"{epsilon:g}", f"{delta:g}", f"{rate:g}", f"{trees}", f"{ours:.4f}",
            lw.price(plan(ours, rate, trees)).quote(delta).method,
            f"{official_search(epsilon, delta, rate, trees):.4f}",
            f"{printed_accounting(epsilon, delta, rate, trees, sound_conversion):.2f}",
            f"{printed_accounting(epsilon, delta, rate, trees, printed_conversion):.2f}",
        )  # fmt: skip
    console.print(table)
    console.print(
        "Exact for full batch; by Renyi orders for sampled plans, until the privacy loss distribution arrives "
        "(which needs 33.7 in the first row). inf: no noise is enough, by the printed bound's factor 3.\n"
    )
