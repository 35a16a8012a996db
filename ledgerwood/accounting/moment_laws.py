"""Quadrature nodes of one draw's losses, for moments at complex orders.

A node is a piece of the law of the likelihood ratio under Q; sampling at the rate q turns r into 1 - q + q r, and
groups are mixtures. docs/explanation/mgf.md#complex-moments.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Direction
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.composition import Parallel
from ledgerwood.accounting.events.laplace import LaplaceEvent
from ledgerwood.accounting.events.pure import PureEvent, RandomizedResponseEvent
from ledgerwood.accounting.events.sampling import PoissonSampled
from ledgerwood.accounting.quadrature import gauss_legendre
from ledgerwood.errors import UnsupportedEvent

_WINDOW = 9.7  # half-width, in standard deviations: e^{-9.7^2 / 2} < 4e-21
_LOG_ERROR = 40.0
_MOST_NODES = 1 << 13
_LARGEST_POWER = 650.0  # e^650 is a float


@dataclass(frozen=True, slots=True)
class Leaf:
    """A way in which a draw may come out: `event`, sampled at `rate`, with probability `weight`; mu if Gaussian."""

    event: Event
    rate: float
    weight: float
    mu: float | None

    @property
    def atomic(self) -> bool:
        """Whether its losses have no density."""
        return self.mu is None and not isinstance(self.event, LaplaceEvent)


@dataclass(frozen=True, slots=True)
class Law:
    """One draw's losses in one direction, tilted by e^{c L}.

    Args:
        log_moment: log E e^{c L}.
        loss: nats, shape (n,).
        tilted: mass of each node under the tilt; what is missing to 1 has loss 0, shape (n,).
        atom: whether a node is an atom of the law, shape (n,).
        count: how many draws.
    """

    log_moment: float
    loss: FloatArray
    tilted: FloatArray
    atom: NDArray[np.bool_]
    count: int


def leaves(draw: Event) -> tuple[Leaf, ...]:
    """All ways in which a draw may come out.

    Raises:
        UnsupportedEvent: an event whose moments of complex order are not known here.
    """
    return tuple(_leaves(draw, 1.0, 1.0))


def _leaves(event: Event, rate: float, weight: float) -> list[Leaf]:
    try:
        return [Leaf(event, rate, weight, event.mu())]
    except UnsupportedEvent:
        pass
    match event:
        case PoissonSampled():
            return _leaves(event.event, rate * event.sampling_rate, weight)
        case Parallel() if event.probabilities is not None:
            pairs = zip(event.events, event.probabilities, strict=True)
            return [leaf for member, p in pairs if p > 0.0 for leaf in _leaves(member, rate, weight * p)]
        case LaplaceEvent() | PureEvent() | RandomizedResponseEvent():
            return [Leaf(event, rate, weight, None)]
        case _:
            raise UnsupportedEvent(
                f"method 'mgf' knows no complex moments of {event!r}; use method 'pld' or 'renyi', which need only "
                "its profile or its Renyi divergences"
            )


def nodes(
    kind: tuple[Leaf, ...], count: int, direction: Direction, tilt: float, imaginary: float, *, fine: bool
) -> Law:
    """The law of one draw under the tilt c, resolved for moments of order c + i u, |u| <= `imaginary`.

    Raises:
        OverflowError: a moment that no float holds.
        UnsupportedEvent: too many nodes.
    """
    power = 1.0 + tilt if direction is Direction.REMOVE else -tilt
    log_weight, rise, log_s, atom = [], [], [], []
    for leaf in kind:
        weight, level, atoms = _quadrature(leaf, power, imaginary, fine=fine)
        log_weight.append(weight + math.log(leaf.weight))
        atom.append(atoms)
        u = leaf.rate * np.expm1(np.minimum(level, 700.0))
        rise.append(u)
        log_s.append(level if leaf.rate == 1.0 else _log_sample(level, u, leaf.rate))
    weights, u, log_ratio = np.concatenate(log_weight), np.concatenate(rise), np.concatenate(log_s)
    exponent = weights + power * log_ratio
    top = float(exponent.max())
    if top > _LARGEST_POWER:
        raise OverflowError("a moment is too large for a float")
    tilted = np.exp(exponent)
    if top > 1.0:
        log_moment = math.log1p(float((tilted - np.exp(weights) * (1.0 + power * u)).sum()))
    else:  # E_Q[s - 1] = 0: the terms without their linear parts, whose sum would cancel
        small = np.abs(power * log_ratio) < 30.0
        kept = np.exp(weights[small]) * (np.expm1(power * log_ratio[small]) - power * u[small])
        far = tilted[~small] - np.exp(weights[~small]) * (1.0 + power * u[~small])
        log_moment = math.log1p(float(kept.sum()) + float(far.sum()))
    loss = log_ratio if direction is Direction.REMOVE else -log_ratio
    return Law(log_moment, loss, tilted * math.exp(-log_moment), np.concatenate(atom), count)


def log_one_plus(real: FloatArray, imaginary: FloatArray) -> NDArray[np.complex128]:
    """log(1 + x + i y), accurate where x and y are small."""
    modulus = real * (2.0 + real) + imaginary * imaginary  # of the square, less 1
    near = 0.5 * np.log1p(np.maximum(modulus, -0.75))
    far = 0.5 * np.log(np.maximum((1.0 + real) ** 2 + imaginary * imaginary, 1e-300))
    return np.where(modulus > -0.75, near, far) + 1j * np.arctan2(imaginary, 1.0 + real)


def _log_sample(level: FloatArray, u: FloatArray, rate: float) -> FloatArray:
    near = np.log1p(np.where(level < 1.0, u, 0.0))
    return np.where(level < 1.0, near, np.logaddexp(math.log1p(-rate), math.log(rate) + level))


Quadrature = tuple[FloatArray, FloatArray, NDArray[np.bool_]]
"""Log of the Q-mass of each node, log dP/dQ there, and whether it is an atom."""


def _quadrature(leaf: Leaf, power: float, imaginary: float, *, fine: bool) -> Quadrature:
    if leaf.mu is not None:
        return _gaussian(leaf.mu, power, imaginary, fine=fine)
    match leaf.event:
        case LaplaceEvent():
            return _laplace(1.0 / leaf.event.noise_multiplier, power, imaginary, fine=fine)
        case PureEvent() | RandomizedResponseEvent():
            epsilon = leaf.event.epsilon
            categories = leaf.event.categories if isinstance(leaf.event, RandomizedResponseEvent) else 2
            heavy = -math.log1p((categories - 1) * math.exp(-epsilon))
            return np.array([heavy, heavy - epsilon]), np.array([-epsilon, epsilon]), np.ones(2, dtype=bool)
        case _:
            raise UnsupportedEvent(f"method 'mgf' knows no quadrature for {leaf.event!r}")


def _gaussian(mu: float, power: float, imaginary: float, *, fine: bool) -> Quadrature:
    """The trapezoidal rule for Q = N(0, 1), its step by the strip |Im z| < theta / mu: mgf.md#complex-moments."""
    theta = min(math.pi, 9.0 * mu) * np.linspace(0.04, 0.96, 24)
    growth = 0.5 * (theta / mu) ** 2 + theta * imaginary - abs(power) * np.log(np.cos(0.5 * theta))
    step = float(np.max(2.0 * math.pi * theta / mu / (_LOG_ERROR + growth)))
    if fine:
        step *= 0.7
    low, high = -_WINDOW + min(power, 0.0) * mu, _WINDOW + max(power, 1.0) * mu
    if not (high - low) / step < _MOST_NODES:
        raise UnsupportedEvent("method 'mgf' would need too many nodes for a Gaussian law; use method 'pld' or 'renyi'")
    z = step * np.arange(math.floor(low / step), math.ceil(high / step) + 1.0)
    return math.log(step / math.sqrt(2.0 * math.pi)) - 0.5 * z * z, mu * (z - 0.5 * mu), np.zeros(z.size, dtype=bool)


def _laplace(shift: float, power: float, imaginary: float, *, fine: bool) -> Quadrature:
    """Atoms at both ends of l = log dP/dQ; between them, panels that a Gauss-Legendre rule resolves."""
    width = min(0.75, 3.0 / max(abs(power), 1.0), 6.0 / max(imaginary, 1.0))
    panels = math.ceil(min(2.0 * shift / width, 1e9))
    x, w = gauss_legendre(28 if fine else 20)
    if panels * x.size > _MOST_NODES:
        raise UnsupportedEvent("method 'mgf' would need too many nodes for a Laplace law; use method 'pld' or 'renyi'")
    edges = np.linspace(-shift, shift, panels + 1)
    half = 0.5 * np.diff(edges)[:, None]
    inner = (edges[:-1, None] + half * (1.0 + x)).ravel()
    density = np.log(half * w).ravel() - 0.5 * (inner + shift) - math.log(4.0)
    log_weight = np.concatenate(([-math.log(2.0), -shift - math.log(2.0)], density))
    atom = np.zeros(log_weight.size, dtype=bool)
    atom[:2] = True
    return log_weight, np.concatenate(([-shift, shift], inner)), atom
