"""From the JSON record of an event to its node: strict about classes, fields and values.

An event is one line of `_LEAVES` (its fields besides the adjacency, and the node that they make) or of `_COMBINED`.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

from ledgerwood.verification._atoms import Number, mp, mpf
from ledgerwood.verification._pairs.combined import Groups, Sampled, join
from ledgerwood.verification._pairs.continuous import Gaussian, Laplace
from ledgerwood.verification._pairs.integers import DiscreteGaussian, DiscreteLaplace
from ledgerwood.verification._pairs.node import Node
from ledgerwood.verification._pairs.pure import Pure, Range
from ledgerwood.verification._pairs.stated import Approximate, Curve, Table

_DIGITS = 50

Record = dict[str, Any]
Reader = tuple[frozenset[str], Callable[[Record], Node]]


def parse(record: Any) -> Node:
    """The node of an event's JSON record.

    Raises:
        ValueError: an unknown class or field, or a value outside its bound.
    """
    with mp.workdps(_DIGITS):
        return _READERS[_kind(record)][1](record)


def draws(record: Any) -> list[tuple[Any, int]]:
    """The records of the events that a grant of this record holds, each with its count."""
    found: list[tuple[Any, int]] = []

    def open_up(item: Any, times: int) -> None:
        match _kind(item):
            case "Repeated":
                open_up(item["event"], times * _count(item["count"]))
            case "Composed":
                for member in _members(item["events"]):
                    open_up(member, times)
            case _:
                found.append((item, times))

    open_up(record, 1)
    return found


def adjacencies(record: Any) -> set[str]:
    """Every adjacency that the record's leaves name."""
    if isinstance(record, list):
        return set().union(*(adjacencies(item) for item in record))
    if isinstance(record, dict):
        own = {record["adjacency"]} if "adjacency" in record else set()
        return own.union(*(adjacencies(value) for value in record.values()))
    return set()


def _elliptical(record: Record) -> Node:
    pairs = list(zip(record["sensitivities"], record["stddevs"], strict=True))
    return Gaussian(sum(((_number(d) / _positive(s)) ** 2 for d, s in pairs), mpf(0)))


def _response(record: Record) -> Node:
    if _count(record["categories"]) < 2 or record["adjacency"] != "replace-one":
        raise ValueError(f"not a randomised response that has a price: {record!r}")
    return Pure(_positive(record["epsilon"]), record["categories"])


def _approximate(record: Record) -> Node:
    delta = _positive(record["delta"])
    if delta >= 1:
        raise ValueError(f"delta {record['delta']!r} is not below 1")
    return Approximate(_positive(record["epsilon"]), delta)


def _table(record: Record) -> Node:
    points = _points(record["epsilons"], record["deltas"], above=-1)
    if not min(delta for _, delta in points) < 1 or max(delta for _, delta in points) > 1:
        raise ValueError(f"not the deltas of a profile: {record['deltas']!r}")
    return Table(points)


def _sampled(record: Record) -> Node:
    _refuse_replace_one(record)
    rate = _positive(record["sampling_rate"])
    if rate > 1:
        raise ValueError(f"sampling rate {record['sampling_rate']!r} above 1")
    inner = parse(record["event"])
    return inner if rate == 1 else Sampled(inner, rate)


def _groups(record: Record) -> Node:
    members = tuple(parse(item) for item in _members(record["events"]))
    if record["probabilities"] is None:
        _refuse_replace_one(record)
        return Groups(members, None)
    weights = tuple(_number(p) for p in record["probabilities"])
    if len(weights) != len(members) or not 0 < sum(weights) <= 1 + mpf(10) ** -8:
        raise ValueError("probabilities of parallel groups do not fit")
    return Groups(members, weights)


def _leaf(*fields: str, read: Callable[[Record], Node]) -> Reader:
    return frozenset(fields) | {"adjacency"}, read


_LEAVES: dict[str, Reader] = {
    "GaussianEvent": _leaf("noise_multiplier", read=lambda r: Gaussian(1 / _positive(r["noise_multiplier"]) ** 2)),
    "EllipticalGaussianEvent": _leaf("sensitivities", "stddevs", read=_elliptical),
    "LaplaceEvent": _leaf("noise_multiplier", read=lambda r: Laplace(_positive(r["noise_multiplier"]))),
    "PureEvent": _leaf("epsilon", read=lambda r: Pure(_positive(r["epsilon"]))),
    "RandomizedResponseEvent": _leaf("epsilon", "categories", read=_response),
    "BoundedRangeEvent": _leaf("epsilon", read=lambda r: Range(_positive(r["epsilon"]))),
    "DiscreteLaplaceEvent": _leaf(
        "scale", "sensitivity", read=lambda r: DiscreteLaplace(_positive(r["scale"]), _count(r["sensitivity"]))
    ),
    "DiscreteGaussianEvent": _leaf(
        "scale", "sensitivity", read=lambda r: DiscreteGaussian(_positive(r["scale"]), _count(r["sensitivity"]))
    ),
    "GDPEvent": _leaf("mu", read=lambda r: Gaussian(_positive(r["mu"]) ** 2)),
    "ZeroConcentratedEvent": _leaf("rho", read=lambda r: Curve(_positive(r["rho"]), ())),
    "RenyiEvent": _leaf(
        "orders", "divergences", read=lambda r: Curve(None, _points(r["orders"], r["divergences"], above=1))
    ),
    "ApproximateEvent": _leaf("epsilon", "delta", read=_approximate),
    "ProfileEvent": _leaf("epsilons", "deltas", read=_table),
}
_COMBINED: dict[str, Reader] = {
    "PoissonSampled": (frozenset({"event", "sampling_rate"}), _sampled),
    "Repeated": (frozenset({"event", "count"}), lambda r: join([(parse(r["event"]), _count(r["count"]))])),
    "Composed": (frozenset({"events"}), lambda r: join([(parse(item), 1) for item in _members(r["events"])])),
    "Parallel": (frozenset({"events", "probabilities"}), _groups),
}
_READERS = _LEAVES | _COMBINED


def _refuse_replace_one(record: Record) -> None:
    """A replaced row that may be absent, or that may change its group, is not the pair that a leaf states."""
    if "replace-one" in adjacencies(record):
        raise ValueError(f"{record['type']} has no price under replace-one")


def _kind(record: Any) -> str:
    kind = record.get("type") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in _READERS:
        raise ValueError(f"not the record of a known event: {record!r}")
    if set(record) != _READERS[kind][0] | {"type"}:
        raise ValueError(f"a record of {kind} has fields {sorted(record)}")
    return kind


def _points(first: Any, second: Any, *, above: int) -> tuple[tuple[Number, Number], ...]:
    if not isinstance(first, list) or not isinstance(second, list) or not first or len(first) != len(second):
        raise ValueError("the points of a statement do not fit")
    points = tuple((_number(x), _number(y)) for x, y in zip(first, second, strict=True))
    if any(not x < y for (x, _), (y, _) in itertools.pairwise(points)) or points[0][0] <= above:
        raise ValueError(f"points that do not increase from {above}: {first!r}")
    return points


def _members(value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"no events: {value!r}")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"not a count: {value!r}")
    return value


def _number(value: Any) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"not a number >= 0: {value!r}")
    return mpf(value)


def _positive(value: Any) -> Number:
    number = _number(value)
    if number <= 0:
        raise ValueError(f"not a number > 0: {value!r}")
    return number
