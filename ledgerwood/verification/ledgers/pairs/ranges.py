"""The values that an event may state, and which events may be nested: the same rules as in the library.

Written down a second time, from docs/explanation/events.md; a test holds it against the library's own constructors.
"""

import math
from collections.abc import Iterator
from typing import Any

Record = dict[str, Any]

_LEVELS = 32  # of a record within a record
_WIDE = (1e-100, 1e100)
_MOST_COUNT = 2**53
_MOST_ATOMS = 1 << 18
_MOST_POINTS = 10_000

REALS: dict[str, dict[str, tuple[float, float]]] = {
    "GaussianEvent": {"noise_multiplier": _WIDE},
    "GaussianMixtureEvent": {"noise_multiplier": _WIDE},
    "LaplaceEvent": {"noise_multiplier": _WIDE},
    "PureEvent": {"epsilon": _WIDE},
    "RandomizedResponseEvent": {"epsilon": _WIDE},
    "BoundedRangeEvent": {"epsilon": _WIDE},
    "DiscreteLaplaceEvent": {"scale": (1e-2, 1e12)},
    "DiscreteGaussianEvent": {"scale": (0.1, 1e12)},
    "SkellamEvent": {"variance": (1e-12, 1e12)},
    "SkellamVectorEvent": {"variance": (1e-12, 1e100), "l2_sensitivity": (1.0, 1e100)},
    "StaircaseEvent": {"epsilon": _WIDE, "inner_width": (0.0, 1.0)},
    "TruncatedLaplaceEvent": {"noise_multiplier": _WIDE, "bound": (math.nextafter(0.5, 1.0), 1e100)},
    "GDPEvent": {"mu": _WIDE},
    "ZeroConcentratedEvent": {"rho": _WIDE},
    "ApproximateEvent": {"epsilon": _WIDE, "delta": (5e-324, math.nextafter(1.0, 0.0))},
    "PoissonSampled": {"sampling_rate": (1e-100, 1.0)},
    "ReplaceOneSampled": {"sampling_rate": (1e-100, 1.0)},
    "RepeatedSelection": {
        "shape": (math.nextafter(-1.0, 0.0), 100.0),
        "stopping_rate": (1e-9, math.nextafter(1.0, 0.0)),
    },
    "PoissonSelection": {"mean": (1e-9, 1e9)},
}
"""Fields that are one real number, with both ends of what they may be."""

COUNTS: dict[str, dict[str, tuple[int, int]]] = {
    "RandomizedResponseEvent": {"categories": (2, _MOST_COUNT)},
    "DiscreteLaplaceEvent": {"sensitivity": (1, _MOST_ATOMS)},
    "DiscreteGaussianEvent": {"sensitivity": (1, _MOST_ATOMS)},
    "SkellamEvent": {"sensitivity": (1, _MOST_ATOMS)},
    "RandomAllocation": {"selected": (1, 2**30), "steps": (1, 2**30)},
    "FixedSizeSampled": {"sample_size": (1, _MOST_COUNT), "population": (1, _MOST_COUNT)},
    "Repeated": {"count": (1, _MOST_COUNT)},
}
"""Fields that are one whole number."""


def check_values(kind: str, record: Record) -> None:
    """Refuse numbers outside of their range.

    Raises:
        ValueError: names the field, its value and what it may be.
    """
    for name, (low, high) in REALS.get(kind, {}).items():
        value = record[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError(f"{kind}: {name} {value!r} is not a number from {low!r} to {high!r}")
    for name, (least, most) in COUNTS.get(kind, {}).items():
        value = record[name]
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"{kind}: {name} {value!r} is not a count from {least} to {most}")
    match kind:
        case "DiscreteGaussianEvent":
            if 40.0 * record["scale"] + record["sensitivity"] > _MOST_ATOMS:
                raise ValueError(f"a discrete Gaussian of scale {record['scale']!r} is over too many integers")
        case "SkellamEvent":
            if _skellam_reach(float(record["variance"])) + record["sensitivity"] > _MOST_ATOMS:
                raise ValueError(f"Skellam noise of variance {record['variance']!r} is over too many integers")
        case "EllipticalGaussianEvent":
            _check_elliptical(record["sensitivities"], record["stddevs"])
        case "RenyiEvent":
            _check_points(record["orders"], record["divergences"])
            if min(record["orders"]) <= 1 or min(record["divergences"]) <= 0:
                raise ValueError("orders are above 1, divergences above 0")
        case "ProfileEvent":
            _check_points(record["epsilons"], record["deltas"])
            _check_profile(record["epsilons"], record["deltas"])


def check_nesting(kind: str, record: Record) -> None:
    """Refuse samples where the library knows no cost for them.

    Raises:
        ValueError: which combination.
    """
    match kind:
        case "FixedSizeSampled":
            if record["event"].get("type") == "FixedSizeSampled":
                raise ValueError("a fixed-size sample of a fixed-size sample is one sample")
            for inner in _samples(record["event"]):
                if inner["population"] != record["sample_size"]:
                    raise ValueError(
                        f"a sample of a population of {inner['population']!r} within a sample of "
                        f"{record['sample_size']!r} rows"
                    )
        case "ReplaceOneSampled":
            if any(True for _ in _samples(record["event"])):
                raise ValueError("a fixed-size sample of a Poisson sample has no public population")
        case "Parallel":
            if record["probabilities"] is not None and any(True for _ in _samples(record["events"])):
                raise ValueError("a group that units join at random has no public population for a fixed-size sample")


def check_depth(record: Any, levels: int = _LEVELS) -> None:
    """Refuse records that are nested more deeply than any that the library writes.

    Raises:
        ValueError: too deep.
    """
    waiting = [(record, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > levels:
            raise ValueError(f"events within events, more than {levels} deep")
        if isinstance(item, dict):
            waiting.extend((value, depth + 1) for value in item.values())
        elif isinstance(item, list):
            waiting.extend((value, depth) for value in item if isinstance(value, dict | list))


def _samples(item: Any) -> Iterator[Record]:
    """The outermost fixed-size samples in a record, wherever they stand."""
    waiting = [item]
    while waiting:
        here = waiting.pop()
        if isinstance(here, list):
            waiting.extend(here)
        elif isinstance(here, dict):
            if here.get("type") == "FixedSizeSampled":
                yield here
            else:
                waiting.extend(here.values())


def _check_points(first: Any, second: Any) -> None:
    for values in (first, second):
        if not isinstance(values, list) or not 0 < len(values) <= _MOST_POINTS:
            raise ValueError(f"a statement has from 1 to {_MOST_POINTS} points")
        if any(isinstance(x, bool) or not isinstance(x, int | float) for x in values):
            raise ValueError("the points of a statement are numbers")


def _check_profile(epsilons: list[float], deltas: list[float]) -> None:
    if epsilons[0] < 0 or epsilons[-1] > 700:
        raise ValueError("a profile is stated from epsilon 0 to 700")
    if any(not (x == 0 or 1e-300 <= x <= 1) for x in deltas):
        raise ValueError("deltas of a profile are 0 or from 1e-300 to 1")
    if epsilons[0] == 0 and deltas[0] == 0:
        raise ValueError("a profile that is 0 at epsilon 0 releases nothing")


def _check_elliptical(sensitivities: Any, stddevs: Any) -> None:
    for values in (sensitivities, stddevs):
        if not isinstance(values, list) or not values:
            raise ValueError("one sensitivity and one standard deviation a coordinate")
        if any(isinstance(x, bool) or not isinstance(x, int | float) for x in values):
            raise ValueError("sensitivities and standard deviations are numbers")
    if len(sensitivities) != len(stddevs) or min(stddevs) <= 0 or min(sensitivities) < 0:
        raise ValueError("one sensitivity >= 0 and one standard deviation > 0 a coordinate")
    norm = math.hypot(*(d / s for d, s in zip(sensitivities, stddevs, strict=True)))
    if not 1e-100 <= norm <= 1e100:
        raise ValueError(f"a noise multiplier of 1 / {norm!r} is not from 1e-100 to 1e100")


def _skellam_reach(variance: float) -> int:
    """The least k that Skellam noise passes with probability at most e^-800, by Chernoff's bound."""

    def beyond(k: int) -> bool:
        return k * math.asinh(k / variance) - k * (k / (variance + math.hypot(variance, k))) >= 800.0

    high = 1
    while not beyond(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return high
