"""What combines pairs: a Poisson sample, parallel groups, fresh draws; and a replaced row on a secret sample.

The latter's pair has its bounding profile in both directions.
"""

import itertools
from dataclasses import dataclass
from typing import final

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf
from ledgerwood.verification.ledgers.pairs.continuous import Gaussian, Node


@final
@dataclass(frozen=True, slots=True)
class Sampled(Node):
    """One Poisson sample of a node: r becomes 1 - q + q r."""

    inner: Node
    rate: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        return self.inner.positive_part(slope * self.rate, slope * (1 - self.rate) + constant)

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        return self.inner.excess(slope * self.rate, slope * (1 - self.rate) + constant, p)

    def pure_epsilon(self) -> Number:
        inner = self.inner.pure_epsilon()
        return inner if mp.isinf(inner) else mp.log1p(self.rate * mp.expm1(inner))

    def unsampled(self) -> Node:
        return self.inner.unsampled()


@final
@dataclass(frozen=True, slots=True)
class Allocated(Node):
    """A unit in `selected` of `steps` releases of a node, chosen uniformly: r becomes an average of such ratios.

    Several steps cost what as many blocks with one step each cost (docs/explanation/allocation.md#allocation-blocks).
    Its losses are known from both sides (bounds/events.py), and no profile or moment of it exactly.
    """

    inner: Node
    selected: int
    steps: int

    def positive_part(self, slope: Number, constant: Number) -> Number:
        raise ValueError("a random allocation has no exact profile here")

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        raise ValueError("a random allocation has no Renyi divergence here")

    def pure_epsilon(self) -> Number:
        return self.selected * self.inner.pure_epsilon()


@final
@dataclass(frozen=True, slots=True)
class GroupsNode(Node):
    """Parallel groups; no probabilities where the costliest group counts."""

    members: tuple[Node, ...]
    probabilities: tuple[Number, ...] | None

    def positive_part(self, slope: Number, constant: Number) -> Number:
        values = [member.positive_part(slope, constant) for member in self.members]
        if self.probabilities is None:
            return max(values)
        absent = 1 - sum(self.probabilities)
        mixed = sum((p * value for p, value in zip(self.probabilities, values, strict=True)), mpf(0))
        return mixed + max(absent, 0) * max(slope + constant, 0)

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        values = [member.excess(slope, constant, p) for member in self.members]
        if self.probabilities is None:
            return max(values)
        weighed = zip(self.probabilities, values, strict=True)
        # a group that nobody enters may have an infinite one
        return sum((weight * value for weight, value in weighed if weight > 0), mpf(0))

    def pure_epsilon(self) -> Number:
        weights = self.probabilities or (mpf(1),) * len(self.members)
        return max(member.pure_epsilon() for member, p in zip(self.members, weights, strict=True) if p > 0)

    def mu_squared(self) -> Number | None:
        if self.probabilities is not None:
            return None
        squares = [member.mu_squared() for member in self.members]
        known = [square for square in squares if square is not None]
        return max(known) if len(known) == len(squares) else None

    def unsampled(self) -> Node:
        return GroupsNode(tuple(member.unsampled() for member in self.members), self.probabilities)


@final
@dataclass(frozen=True, slots=True)
class Several(Node):
    """Fresh draws, each with its count; never one draw, never all Gaussian (`join` sees to it)."""

    parts: tuple[tuple[Node, int], ...]

    def positive_part(self, slope: Number, constant: Number) -> Number:
        raise ValueError("a composition that is not all Gaussian has no exact profile")

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        if constant != 0:
            raise ValueError("a sample of a composition that is not all Gaussian has no Renyi divergence here")
        unique: dict[Node, int] = {}  # each integral once
        for part, count in self.parts:
            unique[part] = unique.get(part, 0) + count
        logs = (count * mp.log1p(part.excess(slope, constant, p)) for part, count in unique.items())
        return mp.expm1(sum(logs, mpf(0)))

    def pure_epsilon(self) -> Number:
        return sum((count * part.pure_epsilon() for part, count in self.parts), mpf(0))

    def unsampled(self) -> Node:
        return join([(part.unsampled(), count) for part, count in self.parts])


def join(parts: list[tuple[Node, int]]) -> Node:
    """Fresh draws as one node: a single draw as itself, Gaussian pairs as one Gaussian pair."""
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    squares = [node.mu_squared() for node, _ in parts]
    known = [square * count for square, (_, count) in zip(squares, parts, strict=True) if square is not None]
    if len(known) == len(parts):
        return Gaussian(sum(known, mpf(0)))
    flat: list[tuple[Node, int]] = []
    for node, count in parts:
        inner = node.parts if isinstance(node, Several) else ((node, 1),)
        flat.extend((part, times * count) for part, times in inner)
    return Several(tuple(flat))


_CELLS = 200
_LOG_NEGLIGIBLE = 50


@final
@dataclass(frozen=True, slots=True)
class Replaced(Node):
    """The pair that has, in both directions, the profile of a replaced row on a sample of this rate.

    Without `present`, a row that is not drawn is another row.
    """

    replaced: Node
    present: Node | None
    rate: Number

    def positive_part(self, slope: Number, constant: Number) -> Number:
        if slope < 0:  # both directions of the bounding profile are one
            return self.positive_part(constant, slope) if constant > 0 else mpf(0)
        if slope == 0 or constant >= 0:
            return max(slope + constant, 0)
        x = -constant / slope
        return slope * (self._profile(x) if x >= 1 else 1 - x + x * self._profile(1 / x))

    def excess(self, slope: Number, constant: Number, p: Number) -> Number:
        """Bounds a convex profile from below by its value at the centre of mass of each cell, times the mass."""
        if constant != 0:
            raise ValueError("a sample of a replaced row's pair has no Renyi divergence here")
        a = p if p > 1 else 1 - p
        whole = max(self.replaced.excess(mpf(1), mpf(0), power) for power in (a, 1 - a))
        if mp.isinf(whole):
            return whole
        points, masses, least = [], [], mpf(1)
        for left, right in itertools.pairwise(self._edges(a)):
            mass = _power(left, right, a - 1) + _power(left, right, -a)
            centre = (_power(left, right, a) + _power(left, right, 1 - a)) / mass
            least = min(least, self._profile(centre))
            points.append((centre, least))
            masses.append(mass)
        total = sum((mass * value for mass, value in zip(masses, _convex(points), strict=True)), mpf(0))
        return min(a * (a - 1) * total, whole)

    def pure_epsilon(self) -> Number:
        nodes = [self.replaced] if self.present is None else [self.replaced, self.present]
        inner = max(node.pure_epsilon() for node in nodes)
        sampled = inner if mp.isinf(inner) else mp.log1p(self.rate * mp.expm1(inner))
        return min(sampled, self.replaced.pure_epsilon())

    def unsampled(self) -> Node:
        return self.replaced.unsampled()

    def _profile(self, x: Number) -> Number:
        """q [(1 - b) H_present(y) + b H_replaced(y)] at x = 1 - q + q y >= 1, b = x / y; at most q H_replaced(x).

        docs/explanation/events.md#replaced-row proves both.
        """
        y = 1 + (x - 1) / self.rate
        if self.present is None:  # y >= x, so that this is the lesser one
            return self.rate * self._changed(y)
        share = x / y
        both = (1 - share) * self.present.positive_part(mpf(1), -y) + share * self._changed(y)
        return self.rate * min(both, self._changed(x))

    def _changed(self, x: Number) -> Number:
        """The larger direction of the replaced row's own profile."""
        return max(self.replaced.positive_part(mpf(1), -x), self.replaced.positive_part(-x, mpf(1)))

    def _edges(self, a: Number) -> list[Number]:
        """Cells in x = e^t that hold all but a negligible part of the moment."""
        end = self.pure_epsilon()
        scan = [mpf(10) ** -12 * mpf("1.6") ** k for k in range(105)]
        scan = [t for t in scan if t < end]
        scan += [] if mp.isinf(end) else [end]
        heights = [mp.log(t) + (a - 1) * t + _log(self._profile(mp.exp(t))) for t in scan]
        peak = max(heights)
        last = max(k for k, height in enumerate(heights) if height > peak - _LOG_NEGLIGIBLE)
        high = scan[min(last + 1, len(scan) - 1)]
        return [mp.exp(high * (mpf(k) / _CELLS) ** 2) for k in range(_CELLS + 1)]


def _convex(points: list[tuple[Number, Number]]) -> list[Number]:
    """The greatest convex function below the points, at each of them: the truth is convex, the bound may not be."""
    corners: list[tuple[Number, Number]] = []
    for x, y in points:
        while len(corners) > 1:
            (x0, y0), (x1, y1) = corners[-2:]
            if (y1 - y0) * (x - x1) <= (y - y1) * (x1 - x0):
                break
            corners.pop()
        corners.append((x, y))
    values, k = [], 0
    for x, _ in points:
        while k < len(corners) - 2 and corners[k + 1][0] <= x:
            k += 1
        (x0, y0), (x1, y1) = corners[k : k + 2] if len(corners) > 1 else (corners[0], corners[0])
        values.append(y0 if x1 == x0 else y0 + (y1 - y0) * (x - x0) / (x1 - x0))
    return values


def _power(left: Number, right: Number, exponent: Number) -> Number:
    """The integral of x^{exponent - 1} from left to right."""
    if exponent == 0:
        return mp.log(right / left)
    return left**exponent * mp.expm1(exponent * mp.log(right / left)) / exponent


def _log(value: Number) -> Number:
    return mp.log(value) if value > 0 else -mp.inf
