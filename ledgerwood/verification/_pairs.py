"""Events priced a second time, in mpmath, by code that shares nothing with `ledgerwood.accounting`.

An event is read from its JSON record into a node: a Gaussian, Laplace or randomised-response pair, a sample of a node,
parallel groups of nodes, or a composition. With P the law with the unit, Q without it and r = dP/dQ:

* the profile is E_Q[(r - t)+] (remove) and E_Q[(1 - t r)+] (add), t = e^epsilon, both affine in r, so that
  sampling (r becomes 1 - q + q r) stays affine and each leaf has a closed form;
* the Renyi divergence is log(1 + E_Q[s^p - 1 - p (s - 1)]) / (order - 1), p = order (remove) or 1 - order (add), by
  the trapezoidal rule on the real line for a sampled Gaussian, by tanh-sinh quadrature for a sampled Laplace pair.

docs/explanation/ledger.md#verification.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

from ledgerwood.verification._atoms import (
    Number,
    curve_divergence,
    integer_atoms,
    integer_gaussian_excess,
    mp,
    mpf,
    table_atoms,
    worst_shift,
)
from ledgerwood.verification._integrals import over_normal, over_unit

_DIGITS = 50


@dataclass(frozen=True, slots=True)
class Gaussian:
    """N(mu, 1) against N(0, 1)."""

    mu_squared: Number


@dataclass(frozen=True, slots=True)
class Laplace:
    """Laplace noise of this scale per unit of sensitivity."""

    scale: Number


@dataclass(frozen=True, slots=True)
class Pure:
    """The randomised-response pair among this many categories; the two that move decide."""

    epsilon: Number
    categories: int = 2


@dataclass(frozen=True, slots=True)
class Range:
    """The worst of all pairs of two outcomes whose log likelihood ratios are t and t - epsilon."""

    epsilon: Number


@dataclass(frozen=True, slots=True)
class Integer:
    """Integer noise of probability e^{-|z| / scale} or e^{-z^2 / (2 scale^2)}, and a shift by `sensitivity`."""

    kind: str
    scale: Number
    sensitivity: int


@dataclass(frozen=True, slots=True)
class Approximate:
    """All is revealed with probability delta, else a randomised response."""

    epsilon: Number
    delta: Number


@dataclass(frozen=True, slots=True)
class Table:
    """Points (epsilon, delta) of a profile, as given."""

    points: tuple[tuple[Number, Number], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """Renyi divergences alone: rho times the order, or points (order, divergence) as given."""

    rho: Number | None
    points: tuple[tuple[Number, Number], ...]


@dataclass(frozen=True, slots=True)
class Sampled:
    """One Poisson sample of a node."""

    inner: "Node"
    rate: Number


@dataclass(frozen=True, slots=True)
class Groups:
    """Parallel groups; no probabilities where the dearest group counts."""

    members: tuple["Node", ...]
    probabilities: tuple[Number, ...] | None


@dataclass(frozen=True, slots=True)
class Several:
    """Fresh draws, each with its count; never one draw, never all Gaussian (`join` sees to it)."""

    parts: tuple[tuple["Node", int], ...]


Node = Gaussian | Laplace | Pure | Range | Integer | Approximate | Table | Curve | Sampled | Groups | Several

_FIELDS = {
    "GaussianEvent": {"noise_multiplier", "adjacency"},
    "EllipticalGaussianEvent": {"sensitivities", "stddevs", "adjacency"},
    "LaplaceEvent": {"noise_multiplier", "adjacency"},
    "PureEvent": {"epsilon", "adjacency"},
    "RandomizedResponseEvent": {"epsilon", "categories", "adjacency"},
    "BoundedRangeEvent": {"epsilon", "adjacency"},
    "DiscreteLaplaceEvent": {"scale", "sensitivity", "adjacency"},
    "DiscreteGaussianEvent": {"scale", "sensitivity", "adjacency"},
    "GDPEvent": {"mu", "adjacency"},
    "ZeroConcentratedEvent": {"rho", "adjacency"},
    "RenyiEvent": {"orders", "divergences", "adjacency"},
    "ApproximateEvent": {"epsilon", "delta", "adjacency"},
    "ProfileEvent": {"epsilons", "deltas", "adjacency"},
    "PoissonSampled": {"event", "sampling_rate"},
    "Repeated": {"event", "count"},
    "Composed": {"events"},
    "Parallel": {"events", "probabilities"},
}


def parse(record: Any) -> Node:
    """The node of an event's JSON record.

    Raises:
        ValueError: an unknown class or field, or a value outside its bound.
    """
    kind = _kind(record)
    with mp.workdps(_DIGITS):
        match kind:
            case "GaussianEvent":
                return Gaussian(1 / _positive(record["noise_multiplier"]) ** 2)
            case "EllipticalGaussianEvent":
                pairs = list(zip(record["sensitivities"], record["stddevs"], strict=True))
                return Gaussian(sum(((_number(d) / _positive(s)) ** 2 for d, s in pairs), mpf(0)))
            case "LaplaceEvent":
                return Laplace(_positive(record["noise_multiplier"]))
            case "PureEvent":
                return Pure(_positive(record["epsilon"]))
            case "RandomizedResponseEvent":
                if _count(record["categories"]) < 2 or record["adjacency"] != "replace-one":
                    raise ValueError(f"not a randomised response that has a price: {record!r}")
                return Pure(_positive(record["epsilon"]), record["categories"])
            case "GDPEvent":
                return Gaussian(_positive(record["mu"]) ** 2)
            case "ZeroConcentratedEvent":
                return Curve(_positive(record["rho"]), ())
            case "RenyiEvent":
                return Curve(None, _points(record["orders"], record["divergences"], above=1))
            case "ApproximateEvent":
                delta = _positive(record["delta"])
                if delta >= 1:
                    raise ValueError(f"delta {record['delta']!r} is not below 1")
                return Approximate(_positive(record["epsilon"]), delta)
            case "ProfileEvent":
                points = _points(record["epsilons"], record["deltas"], above=-1)
                if not min(delta for _, delta in points) < 1 or max(delta for _, delta in points) > 1:
                    raise ValueError(f"not the deltas of a profile: {record['deltas']!r}")
                return Table(points)
            case "DiscreteLaplaceEvent" | "DiscreteGaussianEvent":
                return Integer(kind, _positive(record["scale"]), _count(record["sensitivity"]))
            case "BoundedRangeEvent":
                return Range(_positive(record["epsilon"]))
            case "PoissonSampled":
                _refuse_replace_one(record)
                rate = _positive(record["sampling_rate"])
                if rate > 1:
                    raise ValueError(f"sampling rate {record['sampling_rate']!r} above 1")
                inner = parse(record["event"])
                return inner if rate == 1 else Sampled(inner, rate)
            case "Repeated":
                return join([(parse(record["event"]), _count(record["count"]))])
            case "Composed":
                return join([(parse(item), 1) for item in _members(record["events"])])
            case _:
                return _groups(record)


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


def join(parts: list[tuple[Node, int]]) -> Node:
    """Fresh draws as one node: a single draw as itself, Gaussian pairs as one Gaussian pair."""
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    squares = [mu_squared(node) for node, _ in parts]
    known = [square * count for square, (_, count) in zip(squares, parts, strict=True) if square is not None]
    if len(known) == len(parts):
        return Gaussian(sum(known, mpf(0)))
    flat: list[tuple[Node, int]] = []
    for node, count in parts:
        inner = node.parts if isinstance(node, Several) else ((node, 1),)
        flat.extend((part, times * count) for part, times in inner)
    return Several(tuple(flat))


def mu_squared(node: Node) -> Number | None:
    """mu squared of a Gaussian pair that the node is, or that its dearest group is; None for anything else."""
    if isinstance(node, Gaussian):
        return node.mu_squared
    if isinstance(node, Groups) and node.probabilities is None:
        squares = [mu_squared(member) for member in node.members]
        known = [square for square in squares if square is not None]
        return max(known) if len(known) == len(squares) else None
    return None


def pure_epsilon(node: Node) -> Number:
    """The least epsilon of pure differential privacy, in nats; infinite for Gaussian noise."""
    match node:
        case Gaussian() | Approximate() | Curve():
            return mp.inf
        case Integer():
            return node.sensitivity / node.scale if node.kind == "DiscreteLaplaceEvent" else mp.inf
        case Table():
            return min((epsilon for epsilon, delta in node.points if delta == 0), default=mp.inf)
        case Laplace():
            return 1 / node.scale
        case Pure() | Range():
            return node.epsilon
        case Sampled():
            inner = pure_epsilon(node.inner)
            return inner if mp.isinf(inner) else mp.log1p(node.rate * mp.expm1(inner))
        case Groups():
            weights = node.probabilities or (mpf(1),) * len(node.members)
            return max(pure_epsilon(member) for member, p in zip(node.members, weights, strict=True) if p > 0)
        case Several():
            return sum((count * pure_epsilon(part) for part, count in node.parts), mpf(0))


def unsampled(node: Node) -> Node:
    """The node with every unit in every sample: it dominates the node."""
    match node:
        case Sampled():
            return unsampled(node.inner)
        case Groups():
            return Groups(tuple(unsampled(member) for member in node.members), node.probabilities)
        case Several():
            return join([(unsampled(part), count) for part, count in node.parts])
        case _:
            return node


def hockey_stick(node: Node, epsilon: Number) -> Number:
    """The larger direction of the profile at `epsilon` >= 0.

    Raises:
        ValueError: a composition that is not all Gaussian has no exact profile here.
    """
    t = mp.exp(epsilon)
    return max(_positive_part(node, mpf(1), -t), _positive_part(node, -t, mpf(1)))


def renyi(node: Node, order: Number) -> Number:
    """The larger direction of the Renyi divergence at `order` > 1, in nats.

    Raises:
        ValueError: a sample of a composition that is not all Gaussian, or a quadrature that does not settle.
    """
    excess = max(_excess(node, mpf(1), mpf(0), p) for p in (order, 1 - order))
    return mp.log1p(excess) / (order - 1)


def _positive_part(node: Node, slope: Number, constant: Number) -> Number:
    """E_Q[(slope r + constant)+]."""
    match node:
        case Sampled():
            return _positive_part(node.inner, slope * node.rate, slope * (1 - node.rate) + constant)
        case Groups():
            values = [_positive_part(member, slope, constant) for member in node.members]
            if node.probabilities is None:
                return max(values)
            absent = 1 - sum(node.probabilities)
            mixed = sum((p * value for p, value in zip(node.probabilities, values, strict=True)), mpf(0))
            return mixed + max(absent, 0) * max(slope + constant, 0)
        case Several():
            raise ValueError("a composition that is not all Gaussian has no exact profile")
        case Pure():
            up = mp.exp(node.epsilon)
            heavy, light = up / (1 + up), 1 / (1 + up)
            other = (up + 1) / (up + node.categories - 1)  # of the mass, on the two categories that move
            moved = light * max(slope * up + constant, 0) + heavy * max(slope / up + constant, 0)
            return other * moved + (1 - other) * max(slope + constant, 0)
        case Approximate():
            kept = _positive_part(Pure(node.epsilon), slope, constant)
            return node.delta * (max(slope, 0) + max(constant, 0)) + (1 - node.delta) * kept
        case Integer():
            atoms = integer_atoms(node.kind, node.scale, node.sensitivity, mpf(2))
            return sum((weight * max(slope * mp.exp(level) + constant, 0) for level, weight in atoms), mpf(0))
        case Table():
            lost = min(delta for _, delta in node.points)  # at an infinite ratio; as much of Q where P has nothing
            both = [(end, mass) for end, mass in table_atoms(node.points) if end > 0]
            rest = 1 - lost - sum((mass * (1 + mp.exp(end)) for end, mass in both), mpf(0))
            value = lost * (max(slope, 0) + max(constant, 0)) + rest * max(slope + constant, 0)
            for end, mass in both:
                up = mp.exp(end)
                value += mass * (max(slope * up + constant, 0) + up * max(slope / up + constant, 0))
            return value
        case Curve():
            raise ValueError("a mechanism that is known by its Renyi divergences has no profile here")
        case Range():
            return worst_shift(
                node.epsilon,
                lambda up, down, heavy, light: (
                    light * max(slope * up + constant, 0) + heavy * max(slope * down + constant, 0)
                ),
            )
        case Gaussian() | Laplace():
            if slope < 0:  # (x)+ = x + (-x)+, and E_Q[r] = 1
                return slope + constant + _positive_part(node, -slope, -constant)
            if slope == 0 or constant >= 0:
                return max(slope + constant, 0)
            with_unit, without = _above(node, mp.log(-constant / slope))
            return slope * with_unit + constant * without


def _points(first: Any, second: Any, *, above: int) -> tuple[tuple[Number, Number], ...]:
    if not isinstance(first, list) or not isinstance(second, list) or not first or len(first) != len(second):
        raise ValueError("the points of a statement do not fit")
    points = tuple((_number(x), _number(y)) for x, y in zip(first, second, strict=True))
    if any(not x < y for (x, _), (y, _) in itertools.pairwise(points)) or points[0][0] <= above:
        raise ValueError(f"points that do not increase from {above}: {first!r}")
    return points


def _above(node: Gaussian | Laplace, loss: Number) -> tuple[Number, Number]:
    """P and Q of the outputs whose log likelihood ratio is above `loss`."""
    if isinstance(node, Gaussian):
        mu = mp.sqrt(node.mu_squared)
        threshold = loss / mu + mu / 2
        return mp.erfc((threshold - mu) / mp.sqrt(2)) / 2, mp.erfc(threshold / mp.sqrt(2)) / 2
    limit = 1 / node.scale
    if loss >= limit:
        return mpf(0), mpf(0)
    if loss < -limit:
        return mpf(1), mpf(1)
    x = (node.scale * loss + 1) / 2
    return 1 - mp.exp(-(1 - x) / node.scale) / 2, mp.exp(-x / node.scale) / 2


def _excess(node: Node, slope: Number, constant: Number, p: Number) -> Number:
    """E_Q[s^p - 1 - p (s - 1)] with s = slope r + constant, slope + constant = 1."""

    def term(log_ratio: Number) -> Number:
        rise = slope * mp.expm1(log_ratio)
        log_s = log_ratio if constant == 0 else mp.log1p(rise)  # 1 + rise may be less than the digits hold
        return mp.expm1(p * log_s) - p * rise

    match node:
        case Sampled():
            return _excess(node.inner, slope * node.rate, slope * (1 - node.rate) + constant, p)
        case Groups():
            values = [_excess(member, slope, constant, p) for member in node.members]
            if node.probabilities is None:
                return max(values)
            weighed = zip(
                node.probabilities, values, strict=True
            )  # a group that nobody enters may have an infinite one
            return sum((weight * value for weight, value in weighed if weight > 0), mpf(0))
        case Several():
            if constant != 0:
                raise ValueError("a sample of a composition that is not all Gaussian has no Renyi divergence here")
            unique: dict[Node, int] = {}  # each integral once
            for part, count in node.parts:
                unique[part] = unique.get(part, 0) + count
            logs = (count * mp.log1p(_excess(part, slope, constant, p)) for part, count in unique.items())
            return mp.expm1(sum(logs, mpf(0)))
        case Pure():
            up = mp.exp(node.epsilon)
            return (term(node.epsilon) + up * term(-node.epsilon)) / (up + node.categories - 1)
        case Approximate():
            return mp.inf
        case Integer():
            if constant == 0 and node.kind == "DiscreteGaussianEvent":
                return integer_gaussian_excess(node.scale, node.sensitivity, p)
            atoms = integer_atoms(node.kind, node.scale, node.sensitivity, max(abs(p), 2))
            return sum((weight * term(level) for level, weight in atoms), mpf(0))
        case Table():
            if mp.isinf(pure_epsilon(node)):
                return mp.inf
            atoms = table_atoms(node.points)
            return sum((mass * (term(end) + mp.exp(end) * term(-end)) for end, mass in atoms), mpf(0))
        case Curve():
            if constant != 0:
                raise ValueError("a sample of a mechanism that is known by its Renyi divergences has none here")
            order = p if p > 1 else 1 - p
            return mp.expm1((order - 1) * curve_divergence(node.rho, node.points, order))
        case Range():
            return worst_shift(
                node.epsilon,
                lambda up, down, heavy, light: light * term(mp.log(up)) + heavy * term(mp.log(down)),
            )
        case Gaussian():
            if constant == 0:
                return mp.expm1(p * (p - 1) * node.mu_squared / 2)
            return over_normal(term, mp.sqrt(node.mu_squared), float(slope), float(p))
        case Laplace():
            b = node.scale
            if constant == 0 and p != mpf(1) / 2:
                above, below = (p - 1) / b, p / b  # Mironov 2017, Proposition 6
                return (p * mp.expm1(above) + (p - 1) * mp.expm1(-below)) / (2 * p - 1)
            ends = term(-1 / b) / 2 + mp.exp(-1 / b) * term(1 / b) / 2
            return ends + over_unit(lambda x: mp.exp(-x / b) / (2 * b) * term((2 * x - 1) / b))


def _groups(record: dict[str, Any]) -> Node:
    members = tuple(parse(item) for item in _members(record["events"]))
    if record["probabilities"] is None:
        _refuse_replace_one(record)
        return Groups(members, None)
    weights = tuple(_number(p) for p in record["probabilities"])
    if len(weights) != len(members) or not 0 < sum(weights) <= 1 + mpf(10) ** -8:
        raise ValueError("probabilities of parallel groups do not fit")
    return Groups(members, weights)


def _refuse_replace_one(record: dict[str, Any]) -> None:
    """A replaced row that may be absent, or that may change its group, is not the pair that a leaf states."""
    if "replace-one" in adjacencies(record):
        raise ValueError(f"{record['type']} has no price under replace-one")


def _kind(record: Any) -> str:
    kind = record.get("type") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise ValueError(f"not the record of a known event: {record!r}")
    if set(record) != _FIELDS[kind] | {"type"}:
        raise ValueError(f"a record of {kind} has fields {sorted(record)}")
    return kind


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
