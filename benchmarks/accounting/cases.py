"""The plans that the tables share, and figures of other origin: references, and what is too slow to run each time."""

from dataclasses import dataclass
from typing import Any

import ledgerwood as lw
from benchmarks.accounting import event

ADD_REMOVE = lw.Adjacency.ADD_REMOVE

Draw = tuple[str, float, float, int]
"""Family, noise multiplier (an epsilon, for bounded range), sampling rate, count: what every peer understands."""


def plan(draws: tuple[Draw, ...]) -> lw.Event:
    """The event of some draws."""
    parts: list[lw.Event] = []
    for family, parameter, rate, count in draws:
        if family == "bounded_range":
            one: lw.Event = lw.BoundedRangeEvent(epsilon=parameter, adjacency=ADD_REMOVE)
        else:
            one = event(family, rate, parameter)
        parts.append(lw.Repeated(one, count=count) if count > 1 else one)
    return parts[0] if len(parts) == 1 else lw.Composed(tuple(parts))


def sampled(rate: float, count: int, noise_multiplier: float) -> tuple[Draw, ...]:
    """A training run: sampled Gaussian noise, again and again."""
    return (("gaussian", noise_multiplier, rate, count),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of the table of epsilons.

    Args:
        draws: the plan.
        delta: a probability.
        reference: epsilon in nats, from the closed form or an inversion of the loss's transform at the saddle point;
            checked against other methods, not proven. None where there is none.
        decimals: of the reference.
        stored: peers' figures measured before, for those whose run is long: key of a column to its cell's value.
    """

    draws: tuple[Draw, ...]
    delta: float
    reference: float | None = None
    decimals: int = 6
    stored: dict[str, Any] | None = None


SAMPLED = (
    Case(draws=sampled(0.01, 10_000, 0.5674), delta=1e-5, reference=27.745396),
    Case(draws=sampled(0.01, 10_000, 1.0), delta=1e-5, reference=6.187712),
    Case(draws=sampled(0.01, 10_000, 4.0), delta=1e-5, reference=0.946867),
    # the batch of 256 of 60 000 rows
    Case(draws=sampled(256 / 60_000, 14_040, 1.1), delta=1e-5, reference=2.379555),
    Case(draws=sampled(1.0, 1, 1.0), delta=1e-5, reference=4.377178),
    Case(draws=sampled(1.0, 1, 4.0), delta=1e-5, reference=0.926342),
    Case(draws=sampled(0.01, 1, 1.0), delta=1e-5, reference=0.199450),
    Case(
        draws=sampled(0.001, 10**6, 1.0), delta=1e-5, reference=6.026131,
        stored={"prv": [6.0158, 6.02615, 6.0365], "prv ms": 43e3},
    ),
    Case(
        draws=sampled(0.001, 10**6, 2.0), delta=1e-6, reference=2.420858,
        stored={"prv": [2.4107, 2.42086, 2.4310], "prv ms": 73e3},
    ),
    Case(draws=sampled(0.5, 100, 20.0), delta=1e-5, reference=0.931048),
    Case(draws=sampled(0.1, 1000, 10.0), delta=1e-5, reference=1.208946),
    Case(draws=sampled(0.9, 100, 50.0), delta=1e-5, reference=0.646862),
    Case(draws=sampled(1e-4, 10**7, 1.0), delta=1e-6, reference=1.838200),
    Case(draws=sampled(1e-4, 10**8, 1.0), delta=1e-6, reference=6.671931),
)  # fmt: skip

OTHERS = (
    Case(draws=(("laplace", 1.0, 1.0, 1),), delta=1e-6),
    Case(draws=(("laplace", 1.0, 1.0, 10),), delta=1e-6),
    Case(draws=(("laplace", 10.0, 1.0, 100),), delta=1e-6),
    Case(draws=(("laplace", 20.0, 1.0, 1000),), delta=1e-6),
    Case(draws=(("laplace", 100.0, 1.0, 10_000),), delta=1e-6),
    Case(draws=(("laplace", 0.2, 1.0, 5),), delta=1e-6),
    Case(
        draws=(("gaussian", 5.0, 1.0, 10), ("laplace", 10.0, 1.0, 10), ("gaussian", 1.0, 0.01, 1000)), delta=1e-5
    ),
    Case(draws=(("bounded_range", 0.1, 1.0, 1000),), delta=1e-6),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One row of the table of multipliers: the least for (epsilon, delta 1e-5), to so many decimals."""

    rate: float
    count: int
    epsilon: float
    reference: float
    decimals: int = 6


DELTA = 1e-5
TARGETS = (
    Target(rate=0.01, count=10_000, epsilon=0.1, reference=30.772670),
    Target(rate=0.01, count=10_000, epsilon=1.0, reference=3.812817),
    Target(rate=0.01, count=10_000, epsilon=8.0, reference=0.882528),
    Target(rate=256 / 60_000, count=14_040, epsilon=1.0, reference=2.023477),
    Target(rate=1.0, count=1, epsilon=0.1, reference=30.7495661, decimals=7),
    Target(rate=1.0, count=1, epsilon=1.0, reference=3.73063163, decimals=8),
    Target(rate=1.0, count=1, epsilon=8.0, reference=0.600229072, decimals=9),
    Target(rate=0.001, count=10**6, epsilon=1.0, reference=3.797965),
)


def label(draws: tuple[Draw, ...]) -> str:
    """A plan in one line, "G(1)@0.01 x10000": noise, its multiplier, @ sampling rate, x count."""
    letters = {"gaussian": "G", "laplace": "L", "bounded_range": "BR"}
    pieces = []
    for family, parameter, rate, count in draws:
        sampling = f"@{rate:.4g}" if rate < 1.0 else ""
        times = f" x{count:g}" if count > 1 else ""
        pieces.append(f"{letters[family]}({parameter:.4g}){sampling}{times}")
    return " + ".join(pieces)
