"""What a plan costs at least, shown by real mechanisms that keep what it states, where the library has bounds only.

A sample of replaced rows, a fixed-size sample and a selection are priced by theorems from above. Here each is carried
out on numbers: two distributions of one output, cut into bins, which is post-processing. So every figure is below the
truth, and a charge below it is forged whatever the theorems say.
"""

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from ledgerwood.accounting import (
    Composed,
    Direction,
    EllipticalGaussianEvent,
    FixedSizeSampled,
    GaussianEvent,
    GDPEvent,
    LaplaceEvent,
    Parallel,
    PoissonSampled,
    PoissonSelection,
    PureEvent,
    Repeated,
    RepeatedSelection,
    ReplaceOneSampled,
)
from ledgerwood.accounting.events import base
from ledgerwood.accounting.events.base import Event
from ledgerwood.errors import PrivacyError

Floats = NDArray[np.float64]
Pair = tuple[Floats, Floats]
"""Masses of the same outputs with and without the unit, by rising score, shape (n,) each."""

_BINS = 4000
_FAR = {"normal": 7.0, "Laplace": 28.0}  # scales from the centre: bins of 1e-13 at least, the rest in the last ones
_ORDERS = 1.0 + np.geomspace(1e-3, 1e4, 48)
_INEXACT = (ReplaceOneSampled, FixedSizeSampled, RepeatedSelection, PoissonSelection)


def inexact(event: Event) -> bool:
    """Whether the library's divergences are bounds from above, so that they say nothing from below."""
    return any(base.holds(event, kind) for kind in _INEXACT)


def divergence(event: Event, order: float) -> float:
    """A Renyi divergence that the plan's is never below; 0 where nothing is known."""
    found = max(_log_moment(event, order, direction) for direction in Direction)
    return max(found, 0.0) / (order - 1.0) * (1.0 - 1e-6)


def rho(event: Event) -> float:
    """A rho that the plan's is never below."""
    return max(divergence(event, float(a)) / float(a) for a in _ORDERS)


def epsilon(event: Event, delta: float) -> float:
    """An epsilon at delta that the plan's is never below: that of one of its draws alone."""
    if isinstance(event, Composed):
        return max(epsilon(part, delta) for part in event.events)
    if isinstance(event, Repeated):
        return epsilon(event.event, delta)
    found = pair(event)
    return 0.0 if found is None else max(_epsilon(found, delta), _epsilon(found[::-1], delta)) * (1.0 - 1e-6)


def _epsilon(found: Pair, delta: float) -> float:
    p, q = (masses[(found[0] > 0.0) & (found[1] > 0.0)] for masses in found)
    losses = np.log(p / q)
    low, high = 0.0, float(losses.max(initial=0.0))
    for _ in range(100):
        middle = 0.5 * (low + high)
        above = float(np.maximum(p - math.exp(middle) * q, 0.0).sum()) > delta
        low, high = (middle, high) if above else (low, middle)
    return low


def _log_moment(event: Event, order: float, direction: Direction) -> float:
    """(order - 1) times a divergence of this direction, from below."""
    if not inexact(event):
        try:
            return (order - 1.0) * float(event.renyi(np.array([order]), direction=direction)[0])
        except PrivacyError:
            return 0.0
    match event:
        case Composed():
            return math.fsum(_log_moment(part, order, direction) for part in event.events)
        case Repeated():
            return event.count * _log_moment(event.event, order, direction)
        case Parallel():
            logs = [_log_moment(part, order, direction) for part in event.events]
            if event.probabilities is None:
                return max(logs)
            rest = max(1.0 - math.fsum(event.probabilities), 0.0)
            return float(special.logsumexp([*logs, 0.0], b=[*event.probabilities, rest]))
    found = pair(event)
    if found is None:
        return 0.0
    p, q = found if direction is Direction.REMOVE else found[::-1]
    kept = (p > 0.0) & (q > 0.0)
    return float(special.logsumexp(order * np.log(p[kept]) + (1.0 - order) * np.log(q[kept])))


def pair(event: Event) -> Pair | None:
    """Both distributions of one output of a mechanism that keeps the statement; None where none is known."""
    shift = _shift(event)
    if shift is not None:
        return _noise(*shift, at=(shift[1], 0.0))
    match event:
        case PureEvent():
            heavy = float(special.expit(event.epsilon))
            return np.array([1.0 - heavy, heavy]), np.array([heavy, 1.0 - heavy])
        case Composed():  # its outputs are known but for one
            known = [found for found in map(pair, event.events) if found is not None]
            return max(known, key=_spread, default=None)
        case Repeated():
            return pair(event.event)
        case PoissonSampled() | FixedSizeSampled():  # all other rows are those that the row is replaced with
            return _drawn(event)
        case ReplaceOneSampled():
            return _replaced(event)
        case RepeatedSelection() | PoissonSelection():
            inner = pair(event.event)
            return None if inner is None else (_best(event, inner[0]), _best(event, inner[1]))
    return None


def _shift(event: Event) -> tuple[str, float] | None:
    """The noise of scale 1, and how far the unit moves its centre."""
    match event:
        case GaussianEvent():
            return "normal", 1.0 / event.noise_multiplier
        case EllipticalGaussianEvent() | GDPEvent():
            return "normal", event.mu()
        case LaplaceEvent():
            return "Laplace", 1.0 / event.noise_multiplier
    return None


def _noise(kind: str, reach: float, at: tuple[float, float]) -> Pair:
    law = stats.norm if kind == "normal" else stats.laplace
    edges = np.linspace(-reach - _FAR[kind], reach + _FAR[kind], _BINS)
    found = []
    for centre in at:
        below, above = law.cdf(edges - centre), law.sf(edges - centre)
        inner = [b - a if b < 0.5 else c - d for (a, b), (c, d) in zip(pairwise(below), pairwise(above), strict=True)]
        found.append(np.array([below[0], *inner, above[-1]]))
    return found[0], found[1]


def _drawn(event: PoissonSampled | FixedSizeSampled) -> Pair | None:
    found = pair(event.event)
    if found is None:
        return None
    rate = event.sampling_rate if isinstance(event, PoissonSampled) else event.sample_size / event.population
    return rate * found[0] + (1.0 - rate) * found[1], found[1]


def _replaced(event: ReplaceOneSampled) -> Pair | None:
    """The rows move the centre by as much to either side; without the row it stays."""
    if isinstance(event.event, PureEvent) and isinstance(event.add_remove, PureEvent):
        if event.event.epsilon > 2.0 * event.add_remove.epsilon:
            return None
        with_row, with_another = pair(event.event) or (np.ones(1), np.ones(1))
        rest = 0.5 * (1.0 - event.sampling_rate)
        return event.sampling_rate * with_row + rest, event.sampling_rate * with_another + rest
    own, present, rate = _shift(event.event), _shift(event.add_remove), event.sampling_rate
    if own is None or present is None or own[0] != present[0] or own[1] > 2.0 * present[1] * (1.0 + 1e-9):
        return None
    half = 0.5 * own[1]
    with_one, absent = _noise(own[0], own[1], at=(half, 0.0))
    with_other, _ = _noise(own[0], own[1], at=(-half, 0.0))
    return rate * with_one + (1.0 - rate) * absent, rate * with_other + (1.0 - rate) * absent


def _best(event: RepeatedSelection | PoissonSelection, masses: Floats) -> Floats:
    """The largest of a random number of runs: its distribution function is the generating function of that number."""
    below = np.minimum(np.concatenate(([0.0], np.cumsum(masses))), 1.0)
    below[-1] = 1.0
    if isinstance(event, PoissonSelection):
        generated = np.exp(event.mean * (below - 1.0))
        return np.concatenate(([generated[0]], np.maximum(np.diff(generated), 0.0)))  # the first is "no run"
    left = 1.0 - (1.0 - event.stopping_rate) * below
    if event.shape == 0.0:
        generated = np.log(left) / math.log(event.stopping_rate)
    else:
        generated = np.expm1(-event.shape * np.log(left)) / math.expm1(-event.shape * math.log(event.stopping_rate))
    return np.maximum(np.diff(generated), 0.0)


def _spread(found: Pair) -> float:
    p, q = found
    return float(np.abs(p - q).sum())
