"""Random allocations by their definition: Monte Carlo estimates with exact confidence bounds, beside certified ends.

The outputs of all steps are drawn, with a unit in k of them and without it, and the likelihood ratio of the allocation
is the mean over all sets of k steps of the products of their ratios: an elementary symmetric polynomial. No part of the
accounting is used. For k > 1 this has no division into blocks, and so it shows where the truth lies in the gap.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from scipy import stats

import ledgerwood as lw
from benchmarks.allocation_cases import Case

FloatArray = NDArray[np.float64]
ALPHA = 1e-5
"""The error probability of each one-sided confidence bound; there are 4 a check."""
_AT_ONCE = 4_000_000  # values that are drawn at once


@dataclass(frozen=True, kw_only=True)
class Check:
    """A case, and how many transcripts are drawn a side."""

    case: Case
    draws: int


CHECKS = (
    Check(case=Case(multiplier=1.0, steps=100, delta=1e-3), draws=1_000_000),
    Check(case=Case(multiplier=0.5, steps=100, delta=1e-3), draws=1_000_000),
    Check(case=Case(multiplier=0.5, steps=1000, delta=1e-2), draws=200_000),
    Check(case=Case(multiplier=1.0, steps=100, epochs=10, delta=1e-2), draws=100_000),
    Check(case=Case(multiplier=1.0, steps=100, noise="laplace", delta=1e-3), draws=1_000_000),
    Check(case=Case(multiplier=0.5, steps=100, noise="laplace", delta=1e-3), draws=1_000_000),
    Check(case=Case(multiplier=1.0, steps=4, selected=2, delta=1e-3), draws=4_000_000),
    Check(case=Case(multiplier=1.0, steps=100, selected=2, delta=1e-3), draws=1_000_000),
    Check(case=Case(multiplier=1.0, steps=100, selected=10, delta=1e-3), draws=300_000),
    Check(case=Case(multiplier=0.5, steps=50, selected=5, delta=1e-3), draws=1_000_000),
    Check(case=Case(multiplier=2.0, steps=1000, selected=20, delta=1e-2), draws=100_000),
)


def log_ratios(check: Check, outputs: FloatArray) -> FloatArray:
    """log dP/dQ of one step's outputs, whose sums are 1 with the unit and 0 without it; shape of `outputs`."""
    if check.case.noise == "gaussian":
        return np.asarray((outputs - 0.5) / check.case.multiplier**2)
    return np.asarray((np.abs(outputs) - np.abs(outputs - 1.0)) / check.case.multiplier)


def mean_of_products(ratios: FloatArray, selected: int) -> FloatArray:
    """The mean over all sets of `selected` columns of the products of their ratios; shape (n,) of (n, t)."""
    means = np.zeros((selected + 1, len(ratios)))  # of products of j of the columns so far
    means[0] = 1.0
    for i in range(1, ratios.shape[1] + 1):
        for j in range(min(i, selected), 0, -1):
            means[j] = (1.0 - j / i) * means[j] + (j / i) * ratios[:, i - 1] * means[j - 1]
    return means[selected]


def losses(check: Check, *, inside: bool, rng: np.random.Generator) -> FloatArray:
    """log of the allocation's likelihood ratio of transcripts with the unit, or without it; shape (draws,)."""
    found = np.zeros(check.draws)
    batch = max(_AT_ONCE // check.case.steps, 1)
    for start in range(0, check.draws, batch):
        rows = found[start : start + batch]
        for _ in range(check.case.epochs):
            shape = (len(rows), check.case.steps)
            noise = rng.standard_normal(shape) if check.case.noise == "gaussian" else rng.laplace(size=shape)
            outputs = check.case.multiplier * noise
            if inside:
                outputs[:, : check.case.selected] += 1.0  # all sets of k steps are alike
            ratios = np.exp(log_ratios(check, outputs))
            rows += np.log(
                ratios.mean(axis=1) if check.case.selected == 1 else mean_of_products(ratios, check.case.selected)
            )
    return found


def delta_bounds(gains: FloatArray, rng: np.random.Generator) -> tuple[float, float]:
    """Clopper-Pearson bounds on the mean of values in [0, 1], each a coin of that probability; ALPHA a side."""
    hits, n = int(np.count_nonzero(rng.random(len(gains)) < gains)), len(gains)
    low = float(stats.beta.ppf(ALPHA, hits, n - hits + 1)) if hits else 0.0
    return low, float(stats.beta.isf(ALPHA, hits + 1, n - hits))


def drawn(check: Check, seed: int = 0) -> dict[str, Any]:
    """Our interval at the delta of the check; bounds on delta at both of its ends; and an estimate of epsilon."""
    low, high = lw.price(check.case.plan()).epsilon_interval(check.case.delta)
    rng = np.random.default_rng(seed)
    # The loss counts in direction remove, its negative in direction add, each under the distribution that it is of.
    sides = [losses(check, inside=True, rng=rng), -losses(check, inside=False, rng=rng)]

    def bounds(epsilon: float) -> list[float]:
        each = [delta_bounds(-np.expm1(np.minimum(epsilon - side, 0.0)), rng) for side in sides]
        return [max(bound[0] for bound in each), max(bound[1] for bound in each)]

    return {
        "check": asdict(check),
        "low": low,
        "high": high,
        "delta_at_low": bounds(low),
        "delta_at_high": bounds(high),
        "estimate": _estimate(sides, check.case.delta),
    }


def _estimate(sides: Sequence[FloatArray], delta: float) -> float:
    """The epsilon at which the larger mean of the gains is delta; no bound."""
    low, high = 0.0, 200.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        mean = max(float(-np.expm1(np.minimum(middle - side, 0.0)).mean()) for side in sides)
        low, high = (middle, high) if mean > delta else (low, middle)
    return high


def contradictions(found: Sequence[dict[str, Any]]) -> int:
    """The number of certified ends that a confidence bound refutes."""
    too_low = sum(each["delta_at_high"][0] > each["check"]["case"]["delta"] for each in found)
    return too_low + sum(each["delta_at_low"][1] < each["check"]["case"]["delta"] for each in found)


def show(found: Sequence[dict[str, Any]]) -> Table:
    """The checks as a table."""
    table = Table(title="Certified ends beside Monte Carlo: bounds on delta there, and an estimate of epsilon")
    names = ("noise", "multiplier", "k of t", "passes", "delta", "draws a side")
    for name in (*names, "ledgerwood", "delta at the lower end", "at the upper end", "estimate"):
        table.add_column(name)
    for each in found:
        check = Check(case=Case(**each["check"]["case"]), draws=each["check"]["draws"])
        table.add_row(
            *check.case.named(),
            f"{check.draws:,}",
            f"{each['low']:.5g} to {each['high']:.5g}",
            *(f"{low:.3g} to {high:.3g}" for low, high in (each["delta_at_low"], each["delta_at_high"])),
            f"{each['estimate']:.4g}" if math.isfinite(each["estimate"]) else "-",
        )
    return table
