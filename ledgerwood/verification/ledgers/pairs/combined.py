"""What combines pairs: a Poisson sample, parallel groups, fresh draws."""

from dataclasses import dataclass
from typing import final

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf
from ledgerwood.verification.ledgers.pairs.continuous import Gaussian
from ledgerwood.verification.ledgers.pairs.node import Node


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
