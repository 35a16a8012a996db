"""A strict parser from the JSON record of an event to its node: it checks classes, fields and values.

An event is one line of `_LEAVES` (its fields besides the adjacency, and the node that they make) or of `_COMBINED`.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf
from ledgerwood.verification.ledgers.pairs.combined import Allocated, GroupsNode, Replaced, Sampled, join
from ledgerwood.verification.ledgers.pairs.continuous import (
    Gaussian,
    Laplace,
    Mixture,
    Node,
    Pure,
    Range,
    Staircase,
    TruncatedLaplace,
)
from ledgerwood.verification.ledgers.pairs.integers import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    SelectedPoisson,
    SelectionNode,
    Skellam,
    SkellamVector,
    StatedCurve,
    StatedTable,
)
from ledgerwood.verification.ledgers.pairs.ranges import check_depth, check_nesting, check_values

_DIGITS = 50

Record = dict[str, Any]
Reader = tuple[frozenset[str], Callable[[Record], Node]]


def parse(record: Any) -> Node:
    """The node of an event's JSON record.

    Raises:
        ValueError: an unknown class or field, or a value outside its bound.
    """
    check_depth(record)
    with mp.workdps(_DIGITS):
        return _parsed(record)


def _parsed(record: Any) -> Node:
    kind = _kind(record)
    check_values(kind, record)
    check_nesting(kind, record)
    return _READERS[kind][1](record)


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
    """Every adjacency that the record's leaves name; what a row's presence costs within a sample speaks for itself."""
    if isinstance(record, list):
        return set().union(*(adjacencies(item) for item in record))
    if isinstance(record, dict):
        own = {record["adjacency"]} if "adjacency" in record else set()
        return own.union(*(adjacencies(value) for key, value in record.items() if key != "add_remove"))
    return set()


def _elliptical(record: Record) -> Node:
    pairs = list(zip(record["sensitivities"], record["stddevs"], strict=True))
    return Gaussian(sum(((_number(d) / _positive(s)) ** 2 for d, s in pairs), mpf(0)))


def _mixture(record: Record) -> Node:
    _refuse_replace_one(record)
    noise = _positive(record["noise_multiplier"])
    pairs = _points(record["shifts"], record["probabilities"], above=0)
    if len(pairs) > 256 or any(not mpf(10) ** -6 <= shift / noise * (1 + mpf(10) ** -15) for shift, _ in pairs):
        raise ValueError(f"shifts below 1e-6 standard deviations, or more than 256: {record['shifts']!r}")
    if pairs[-1][0] / noise > 30 * (1 + mpf(10) ** -15):
        raise ValueError(f"a shift above 30 standard deviations: {record['shifts']!r}")
    if any(not mpf("1e-100") * (1 - mpf(10) ** -15) <= p <= 1 for _, p in pairs) or sum(p for _, p in pairs) > 1:
        raise ValueError(
            f"probabilities of shifts are from 1e-100 to 1, together at most 1: {record['probabilities']!r}"
        )
    return Mixture(tuple((shift / noise, p) for shift, p in pairs))


def _response(record: Record) -> Node:
    if _count(record["categories"]) < 2 or record["adjacency"] != "replace-one":
        raise ValueError(f"not a randomised response with a known privacy bound: {record!r}")
    return Pure(_positive(record["epsilon"]), record["categories"])


def _skellam_vector(record: Record) -> Node:
    sensitivity = _number(record["l2_sensitivity"])
    if sensitivity < 1:
        raise ValueError(f"l2_sensitivity={record['l2_sensitivity']!r} must be at least 1 for whole numbers")
    return SkellamVector(_positive(record["variance"]), sensitivity)


def _staircase(record: Record) -> Node:
    width = _number(record["inner_width"])
    if width > 1:
        raise ValueError(f"inner width {record['inner_width']!r} above 1")
    return Staircase(_positive(record["epsilon"]), width)


def _truncated(record: Record) -> Node:
    bound = _number(record["bound"])
    if not bound > 0.5:
        raise ValueError(f"bound {record['bound']!r} is not above one half")
    return TruncatedLaplace(_positive(record["noise_multiplier"]), bound)


def _approximate(record: Record) -> Node:
    delta = _positive(record["delta"])
    if delta >= 1:
        raise ValueError(f"delta {record['delta']!r} is not below 1")
    return Approximate(_positive(record["epsilon"]), delta)


def _table(record: Record) -> Node:
    points = _points(record["epsilons"], record["deltas"], above=-1)
    if not min(delta for _, delta in points) < 1 or max(delta for _, delta in points) > 1:
        raise ValueError(f"not the deltas of a profile: {record['deltas']!r}")
    return StatedTable(points)


def _sampled(record: Record) -> Node:
    _refuse_replace_one(record)
    rate = _positive(record["sampling_rate"])
    if rate > 1:
        raise ValueError(f"sampling rate {record['sampling_rate']!r} above 1")
    inner = _parsed(record["event"])
    return inner if rate == 1 else Sampled(inner, rate)


def _allocated(record: Record) -> Node:
    _refuse_replace_one(record)
    selected, steps = _count(record["selected"]), _count(record["steps"])
    if selected > steps:
        raise ValueError(f"a unit in {selected} of {steps} steps")
    inner = _parsed(record["event"])
    return join([(inner, steps)]) if selected == steps else Allocated(inner, selected, steps)


def _fixed_size(record: Record) -> Node:
    _require_replace_one(record)
    size, population = _count(record["sample_size"]), _count(record["population"])
    if size > population:
        raise ValueError(f"a sample of {size} of {population} rows")
    inner = _parsed(record["event"])
    return inner if size == population else Replaced(inner, None, mpf(size) / population)


def _replace_one(record: Record) -> Node:
    _require_replace_one(record)
    if not adjacencies(record["add_remove"]) <= {"add-remove", "zero-out"}:
        raise ValueError("what a row's presence costs is stated under replace-one")
    rate = _positive(record["sampling_rate"])
    if rate > 1:
        raise ValueError(f"sampling rate {record['sampling_rate']!r} above 1")
    inner = _parsed(record["event"])
    return inner if rate == 1 else Replaced(inner, _parsed(record["add_remove"]), rate)


def _selection(record: Record) -> Node:
    shape, rate = record["shape"], _positive(record["stopping_rate"])
    if not isinstance(shape, int | float) or isinstance(shape, bool) or not -1 < shape <= 100 or rate >= 1:
        raise ValueError(f"not a distribution of runs: {record!r}")
    return SelectionNode(_parsed(record["event"]), mpf(shape), rate)


def _filtered(record: Record) -> Node:
    """Rounds of Gaussian noise under an individual filter, priced as the limit that no row goes beyond."""
    _refuse_replace_one(record)
    limit, event = record["limit"], record["event"]
    sampled = _kind(event) == "PoissonSampled"
    if _kind(event["event"] if sampled else event) not in ("GaussianEvent", "EllipticalGaussianEvent"):
        raise ValueError("a filtered round is one release of Gaussian noise")
    single = _kind(limit) == "RenyiEvent" and len(limit["orders"]) == 1
    if not single and (_kind(limit) != "GDPEvent" or (sampled and _positive(event["sampling_rate"]) < 1)):
        raise ValueError(f"not a limit of these rounds: {limit!r}")
    _parsed(event)
    return _parsed(limit)


def _groups(record: Record) -> Node:
    members = tuple(_parsed(item) for item in _members(record["events"]))
    if record["probabilities"] is None:
        _refuse_replace_one(record)
        return GroupsNode(members, None)
    weights = tuple(_number(p) for p in record["probabilities"])
    if len(weights) != len(members) or not 0 < sum(weights) <= 1 + mpf(10) ** -9:
        raise ValueError("probabilities of parallel groups do not fit")
    return GroupsNode(members, weights)


def _leaf(*fields: str, read: Callable[[Record], Node]) -> Reader:
    return frozenset(fields) | {"adjacency"}, read


_LEAVES: dict[str, Reader] = {
    "GaussianEvent": _leaf("noise_multiplier", read=lambda r: Gaussian(1 / _positive(r["noise_multiplier"]) ** 2)),
    "EllipticalGaussianEvent": _leaf("sensitivities", "stddevs", read=_elliptical),
    "GaussianMixtureEvent": _leaf("shifts", "probabilities", "noise_multiplier", read=_mixture),
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
    "SkellamEvent": _leaf(
        "variance", "sensitivity", read=lambda r: Skellam(_positive(r["variance"]), _count(r["sensitivity"]))
    ),
    "SkellamVectorEvent": _leaf("variance", "l2_sensitivity", read=_skellam_vector),
    "StaircaseEvent": _leaf("epsilon", "inner_width", read=_staircase),
    "TruncatedLaplaceEvent": _leaf("noise_multiplier", "bound", read=_truncated),
    "GDPEvent": _leaf("mu", read=lambda r: Gaussian(_positive(r["mu"]) ** 2)),
    "ZeroConcentratedEvent": _leaf("rho", read=lambda r: StatedCurve(_positive(r["rho"]), ())),
    "RenyiEvent": _leaf(
        "orders", "divergences", read=lambda r: StatedCurve(None, _points(r["orders"], r["divergences"], above=1))
    ),
    "ApproximateEvent": _leaf("epsilon", "delta", read=_approximate),
    "ProfileEvent": _leaf("epsilons", "deltas", read=_table),
}
_COMBINED: dict[str, Reader] = {
    "PoissonSampled": (frozenset({"event", "sampling_rate"}), _sampled),
    "RandomAllocation": (frozenset({"event", "selected", "steps"}), _allocated),
    "FixedSizeSampled": (frozenset({"event", "sample_size", "population"}), _fixed_size),
    "ReplaceOneSampled": (frozenset({"event", "add_remove", "sampling_rate"}), _replace_one),
    "RepeatedSelection": (frozenset({"event", "shape", "stopping_rate"}), _selection),
    "PoissonSelection": (
        frozenset({"event", "mean"}),
        lambda r: SelectedPoisson(_parsed(r["event"]), _positive(r["mean"])),
    ),
    "FilteredEvent": (frozenset({"event", "limit"}), _filtered),
    "Repeated": (frozenset({"event", "count"}), lambda r: join([(_parsed(r["event"]), _count(r["count"]))])),
    "Composed": (frozenset({"events"}), lambda r: join([(_parsed(item), 1) for item in _members(r["events"])])),
    "Parallel": (frozenset({"events", "probabilities"}), _groups),
}
_READERS = _LEAVES | _COMBINED


def _refuse_replace_one(record: Record) -> None:
    """A replaced row that may be absent, or that may change its group, is not the pair that a leaf states."""
    if "replace-one" in adjacencies(record):
        raise ValueError(f"{record['type']} has no privacy bound under replace-one")


def _require_replace_one(record: Record) -> None:
    if adjacencies(record) != {"replace-one"}:
        raise ValueError(f"{record['type']} has a privacy bound under replace-one only")


def _kind(record: Any) -> str:
    kind = record.get("type") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in _READERS:
        raise ValueError(f"not the record of an event that this version knows: {record!r}")
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
