"""The verifier's bounds, from each side, of Renyi divergences, rho, and the epsilon that a divergence is worth.

docs/explanation/ledger.md#verification-bounds.

A Gaussian pair has its own bounds, whatever its size (mu-GDP in mpmath). At epsilon = mu x + mu^2 / 2 the profile is
P(N > x) - e^epsilon P(N > x + mu), N normal. No power of e^epsilon is taken, so that mu of 1e100 and a budget of
epsilon 1e300 are numbers like others.
"""

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from ledgerwood.verification.ledgers.atoms import Number, mp, mpf
from ledgerwood.verification.ledgers.bounds.moments import Moments
from ledgerwood.verification.ledgers.pairs import Node
from ledgerwood.verification.ledgers.pairs.combined import GroupsNode, Several
from ledgerwood.verification.ledgers.pairs.continuous import Pure, Range
from ledgerwood.verification.ledgers.pairs.integers import DiscreteGaussian, StatedCurve


class Untaken(ValueError):
    """A plan that the ledger's filter does not take: no library grants it there."""


@dataclass(frozen=True, slots=True)
class CostBounds:
    """lower <= truth <= upper, in the same unit.

    Args:
        lower: never above the truth.
        upper: never below it; infinite where there is none.
        missing: in words, what kept the upper bound from being found or being near; empty if nothing did.
    """

    lower: float
    upper: float
    missing: str


_ORDERS = (1.05, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 512.0)


@functools.lru_cache(maxsize=64)
def renyi_bounds(node: Node, order: float) -> CostBounds:
    """Bounds of the larger direction of the divergence at `order` > 1, nats."""
    moments = Moments()
    low, high = moments.divergence(node, order)
    if high == 0.0:
        high = _beyond_floats(node, order)
    return CostBounds(low, high, moments.missing if high > low * 1.01 else "")


def _beyond_floats(node: Node, order: float) -> float:
    """Bounds from above a divergence whose moment is 1 in floats: by order epsilon**2 / 2, of pure epsilon.

    Source: Bun and Steinke 2016, Proposition 3.3.
    """
    pure = node.pure_epsilon()
    return float(max(mpf(order) * pure**2 / 2 * (1 + mpf(10) ** -12), mpf(5e-324))) if pure > 0 else 0.0


def forget() -> None:
    """Start anew, as `points.forget` does."""
    for remembered in (renyi_bounds, rho_bounds):
        remembered.cache_clear()


def converted_epsilon(node: Node, delta: float, order: float | None) -> CostBounds:
    """An upper bound on the epsilon at delta that the divergences at this order, or at some orders, are worth."""
    moments, best = Moments(), math.inf
    for a in (order,) if order is not None else _ORDERS:
        _, high = moments.divergence(node, a)
        if math.isfinite(high):
            best = min(best, float(renyi_epsilon(mpf(high), mpf(a), mpf(delta))))
    return CostBounds(0.0, max(best, 0.0), moments.missing)


def renyi_epsilon(divergence: Number, order: Number, delta: Number) -> Number:
    """The conversion of Canonne, Kamath, Steinke 2020, Proposition 12; 0 if delta covers the total variation."""
    if delta >= min(mp.sqrt(divergence / 2), mp.sqrt(-mp.expm1(-divergence))):
        return mpf(0)
    return conversion(divergence, order, delta)


def conversion(divergence: Number, order: Number, delta: Number) -> Number:
    """Canonne, Kamath, Steinke 2020, Proposition 12."""
    return divergence + mp.log1p(-1 / order) - (mp.log(delta) + mp.log(order)) / (order - 1)


@functools.lru_cache(maxsize=64)
def rho_bounds(node: Node) -> CostBounds:
    """Bounds of the least rho with D_a <= rho a for every order a > 1 and both directions.

    Raises:
        Untaken: the plan holds what has no proven rho, as a sampled Gaussian.
    """
    linear, rest = _linear(node)
    if not rest:
        limit = _limit(node)
        low = max(limit, _searched(node)) if limit < linear * (1.0 - 1e-12) else limit
        return CostBounds(min(low, linear), linear, "")
    bent = Several(tuple(rest)) if len(rest) > 1 or rest[0][1] > 1 else rest[0][0]
    upper = linear + _swept(bent)
    lower = max(_limit(node), _searched(node))
    return CostBounds(
        min(lower, upper), upper, "" if lower > 0.99 * upper else "the supremum over orders was not found closer"
    )


def _linear(node: Node) -> tuple[float, list[tuple[Node, int]]]:
    """The sum of rho of the parts with a theorem, and the pure parts that have none.

    Raises:
        Untaken: a part that has neither.
    """
    total, rest = mpf(0), []
    for part, count in node.parts if isinstance(node, Several) else ((node, 1),):
        own = _theorem(part)
        if own is not None:
            total += own * count
        elif not mp.isinf(part.pure_epsilon()):
            rest.append((part, count))
        else:
            total += _groups_above(part) * count
    return float(total), rest


def _theorem(node: Node) -> Number | None:
    square = node.mu_squared()
    if square is not None:
        return square / 2
    match node:
        case StatedCurve():
            return node.rho
        case DiscreteGaussian():
            return (node.sensitivity / node.scale) ** 2 / 2
        case Range():
            return min(node.epsilon**2 / 8, pure_rho(node.epsilon))
        case Pure():
            return pure_rho(node.epsilon) if node.categories == 2 else None
    return None


def _groups_above(node: Node) -> Number:
    """Groups with some that are not pure: the worst group's; anything else has none."""
    if isinstance(node, GroupsNode):
        weights = node.probabilities or (mpf(1),) * len(node.members)
        return max(mpf(rho_bounds(member).upper) for member, w in zip(node.members, weights, strict=True) if w > 0)
    raise Untaken("the plan has a part without a proven rho")


def pure_rho(epsilon: Number) -> Number:
    """The least rho of all that is epsilon-differentially private (docs/explanation/ledger.md#zcdp-filter)."""
    return epsilon * mp.tanh(epsilon / 2)


def _limit(node: Node) -> float:
    """The limit of D_a / a at infinite orders, from below."""
    square = node.mu_squared()
    if square is not None:
        return float(square / 2)
    match node:
        case Several():
            return math.fsum(_limit(part) * count for part, count in node.parts)
        case GroupsNode():
            weights = node.probabilities or (mpf(1),) * len(node.members)
            return max(_limit(member) for member, w in zip(node.members, weights, strict=True) if w > 0)
        case StatedCurve():
            return float(node.rho) if node.rho is not None else 0.0
        case DiscreteGaussian():
            return float((node.sensitivity / node.scale) ** 2 / 2)
    return 0.0


def _grid(node: Node, points: int) -> np.ndarray:
    pure = float(node.pure_epsilon())
    near = Moments().divergence(node, 1.0 + 1e-3)[0]
    last = 1e3 if math.isinf(pure) else min(max(2.1 * pure / max(near, 1e-300), 4.0), 1e15)
    return np.concatenate(([1.0 + 1e-6, 1.0 + 1e-3], 1.0 + np.geomspace(1e-2, last, points)))


def _searched(node: Node) -> float:
    """D_a / a from below at orders of a grid, and finer around the largest."""
    moments, best = Moments(integrals=0), (0.0, 2.0)
    grid = _grid(node, 60)
    for round_ in range(3):
        for a in grid.tolist():
            try:
                best = max(best, (moments.divergence(node, a)[0] / a, a))
            except ValueError:  # a quadrature that does not settle at one order says nothing
                continue
        width = 1.35 if round_ == 0 else 1.03
        grid = 1.0 + (best[1] - 1.0) * np.geomspace(1.0 / width, width, 15)
    return best[0] * (1.0 - 1e-10)


def _swept(node: Node) -> float:
    """sup D_a / a of a pure plan from above: D_a grows, so between two orders it is at most the upper one's."""
    moments = Moments(integrals=0)
    pure = float(node.pure_epsilon())
    cap = float(sum((pure_rho(part.pure_epsilon()) * count for part, count in _parts(node)), mpf(0)))
    orders = [1.0, *_grid(node, 40).tolist()]
    highs = {a: moments.divergence(node, a)[1] for a in orders[1:]}
    for _ in range(400):  # halve the cell that decides
        cells = [(highs[b] / a, a, b) for a, b in itertools.pairwise(orders)]
        found, a, b = max(cells)
        tail = pure / orders[-1]
        reached = max(highs[x] / x for x in orders[1:])
        if max(found, tail) <= reached * 1.002 or reached == 0.0:
            break
        if tail > found:
            orders.append(2.0 * orders[-1])
        else:
            orders.insert(orders.index(b), math.sqrt(a * b))
            b = math.sqrt(a * b)
        for x in orders[1:]:
            if x not in highs:
                highs[x] = moments.divergence(node, x)[1]
    return float(min(max(pure / orders[-1], *(highs[b] / a for a, b in itertools.pairwise(orders))), cap))


def _parts(node: Node) -> tuple[tuple[Node, int], ...]:
    return node.parts if isinstance(node, Several) else ((node, 1),)


_LOWEST, _HIGHEST = -20, 40
_MOST_DIGITS = 500


def gaussian_delta(mu: Number, x: Number) -> Number:
    """The profile of mu-GDP at epsilon = mu x + mu^2 / 2 >= 0.

    e^epsilon phi(x + mu) = phi(x), so the second term is phi(x) times the Mills ratio at x + mu > 0, which is at most
    sqrt(pi / 2): below -20 what is missing from 1 is less than 1e-86. Above 40 the first term is below 1e-349.
    """
    if x < _LOWEST:
        return mpf(1)
    if x > _HIGHEST:
        return mpf(0)
    with mp.workdps(_digits(mu)):
        return mp.erfc(x / mp.sqrt(2)) / 2 - mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi) * _mills(x + mu)


def gaussian_epsilon(square: Number, delta: Number) -> Number:
    """The epsilon at delta of a pair with this mu^2, from above by less than 1e-18, relative; by bisection in x."""
    with mp.workdps(_digits(mp.sqrt(square))):
        mu = mp.sqrt(square)
        half = mu / 2
        if gaussian_delta(mu, -half) <= delta:
            return mpf(0)
        low, high = max(-half, mpf(_LOWEST)), mpf(_HIGHEST)
        while high - low > mpf(10) ** -18 * (high + half):
            middle = (low + high) / 2
            low, high = (low, middle) if gaussian_delta(mu, middle) <= delta else (middle, high)
        return mu * (high + half)


def _mills(y: Number) -> Number:
    """P(N > y) / phi(y) at y >= 0; beyond 1e6 by its series, of which eight terms hold 90 digits."""
    if y <= 10**6:
        return mp.sqrt(mp.pi / 2) * mp.exp(y * y / 2) * mp.erfc(y / mp.sqrt(2))
    term, total = 1 / y, mpf(0)
    for k in range(8):
        total, term = total + term, -term * (2 * k + 1) / y**2
    return total


def _digits(mu: Number) -> int:
    """For small mu the two terms agree in as many digits as mu has zeros."""
    zeros = int(-mp.log10(mu)) if mu < 1 else 0
    return int(min(60 + zeros, _MOST_DIGITS))
