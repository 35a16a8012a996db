"""Private selection by repetition: run an event a random number of times, and release the best run alone.

Papernot and Steinke 2022, Theorem 2 (truncated negative binomial) and Theorem 6 (Poisson), derived again, with the mass
of no run at all, in docs/explanation/events.md#selection.
"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import conversion, quadrature, renyi
from ledgerwood.accounting.events.base import Event, FloatArray, remembered, require_event, unsampled_moments
from ledgerwood.errors import UnsupportedEvent

_LEAST_INVERSE, _MOST_INVERSE = 1e-6, 0.999
_AS_A_WHOLE = " as a whole: its Renyi divergences do not determine the sampled distribution; sample within each run"
_HELPERS = 1.0 + np.geomspace(1e-3, 1e5, 200)
"""Orders of the Renyi divergences that bound a delta where there is no profile; each gives a bound."""


@final
@dataclass(frozen=True, slots=True)
class RepeatedSelection(Event):
    """The best of K runs of an event; K >= 1 has a truncated negative binomial distribution; only that run is released.

    K = k with probability proportional to (1 - gamma)^k Gamma(k + eta) / (Gamma(eta) k!), k >= 1: geometric at eta = 1,
    logarithmic at eta = 0. K is drawn independently of the data and kept secret; the runs use fresh randomness; "best"
    is by an order of the outputs that is fixed beforehand, ties included (a score is part of the output).

    Args:
        event: one run. If it samples, each run draws its own sample.
        shape: eta, in (-1, 100].
        stopping_rate: gamma, in [1e-9, 1): the smaller, the more runs.

    Raises:
        InvalidParameter: a value outside its bound, or something that is not an event.
    """

    event: Event
    _: KW_ONLY
    shape: float
    stopping_rate: float

    def __post_init__(self) -> None:
        require_event(self.event)
        object.__setattr__(self, "shape", runs_shape(self.shape))
        object.__setattr__(self, "stopping_rate", runs_stopping_rate(self.stopping_rate))

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        raise _no_profile(self)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        """D_a + (1 + eta) min over b of [(1 - 1/b) D_b + log(1/gamma) / b] + log E[K] / (a - 1), both directions."""
        a = renyi.check_orders(orders)
        apart = min(_rank(self.event, -math.log(self.stopping_rate)), self.event.pure_epsilon()) * (1.0 + self.shape)
        found = self.event.renyi(a) + apart + log_mean_runs(self.shape, self.stopping_rate) / (a - 1.0)
        return np.minimum(renyi.raise_by(found, 64), self.pure_epsilon())

    def pure_epsilon(self) -> float:
        """(2 + eta) times the event's."""
        return float(renyi.raise_by(np.array((2.0 + self.shape) * self.event.pure_epsilon()), 4))

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return unsampled_moments(self, powers, sampling_rate, _AS_A_WHOLE)


@final
@dataclass(frozen=True, slots=True)
class PoissonSelection(Event):
    """The best of K runs of an event; K has a Poisson distribution. If K is 0, the release is "no run".

    The conditions are those of `RepeatedSelection`.

    Args:
        event: one run. If it samples, each run draws its own sample.
        mean: the expected number of runs, in [1e-9, 1e9].

    Raises:
        InvalidParameter: a value outside its bound, or something that is not an event.
    """

    event: Event
    _: KW_ONLY
    mean: float

    def __post_init__(self) -> None:
        require_event(self.event)
        object.__setattr__(self, "mean", runs_mean(self.mean))

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        raise _no_profile(self)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        """log(e^{-mean} + mean e^{(a-1) (D_a + mean delta)}) / (a - 1), delta that of log(a / (a - 1)), both ways."""
        a = renyi.check_orders(orders)
        shift = self.event.renyi(a) + np.exp(math.log(self.mean) + _log_deltas(self.event, np.log1p(1.0 / (a - 1.0))))
        shift = renyi.raise_by((a - 1.0) * shift, 16)
        # e^{-m} + m e^{shift} - 1, as a sum of two terms that are not negative
        none = quadrature.log_exp_excess(np.array([-self.mean]))
        excess = np.logaddexp(math.log(self.mean) + renyi.log_expm1(shift), none)
        error = 32.0 * renyi.ULP * (2.0 + abs(math.log(self.mean)) + np.where(np.isfinite(shift), shift, 0.0))
        return np.minimum(renyi.guarded(excess + error, a), self.pure_epsilon())

    def pure_epsilon(self) -> float:
        """epsilon + mean tanh(epsilon / 2): the ranks differ by no more than the total variation distance."""
        epsilon = self.event.pure_epsilon()
        if math.isinf(epsilon):
            return epsilon
        return float(renyi.raise_by(np.array(epsilon + self.mean * math.tanh(0.5 * epsilon)), 16))

    def symmetric(self) -> bool:
        return True

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return unsampled_moments(self, powers, sampling_rate, _AS_A_WHOLE)


def runs_shape(value: object) -> float:
    """A shape eta in (-1, 100]."""
    shape = _validate.real("shape", value, "1")
    if not -1.0 < shape <= 100.0:
        raise _validate.fail("shape", value, "in (-1, 100]", "1")
    return shape


def runs_stopping_rate(value: object) -> float:
    """A stopping rate gamma in [1e-9, 1)."""
    rate = _validate.rate("stopping_rate", value, "probability")
    if not 1e-9 <= rate < 1.0:
        raise _validate.fail("stopping_rate", value, "in [1e-9, 1)", "probability")
    return rate


def runs_mean(value: object) -> float:
    """A mean number of runs in [1e-9, 1e9]."""
    mean = _validate.positive("mean", value, "runs")
    if not 1e-9 <= mean <= 1e9:
        raise _validate.fail("mean", value, "in [1e-9, 1e9]", "runs")
    return mean


@remembered(64)
def _rank(event: Event, log_runs: float) -> float:
    """The least (1 - u) D_{1/u} + u log_runs over 0 < u < 1, in nats: convex in u, and each u gives a bound."""
    u = np.concatenate((np.geomspace(_LEAST_INVERSE, 0.02, 40), np.linspace(0.03, _MOST_INVERSE, 40)))
    best = math.inf
    for _ in range(3):
        values = (1.0 - u) * event.renyi(1.0 / u) + u * log_runs
        place = int(np.argmin(values))
        best = min(best, float(values[place]))
        u = np.linspace(u[max(place - 1, 0)], u[min(place + 1, u.size - 1)], 17)
    return best


def log_mean_runs(shape: float, rate: float) -> float:
    """log E[K] = log(((1 - gamma)/gamma) (z / (1 - e^{-z})) / log(1/gamma)), z = eta log(1/gamma); rounded up."""
    runs = -math.log(rate)
    z = shape * runs
    stretch = math.log(z / -math.expm1(-z)) if z != 0.0 else 0.0
    terms = (math.log1p(-rate), runs, stretch, -math.log(runs))
    return max(math.fsum(terms), 0.0) + 16.0 * renyi.ULP * (1.0 + sum(map(abs, terms)))


def _log_deltas(event: Event, epsilons: FloatArray) -> FloatArray:
    """log of the event's hockey-stick divergence at each epsilon, larger direction, rounded up; shape (k,)."""
    try:
        both = [event.log_profile(epsilons, direction=direction) for direction in Direction]
    except UnsupportedEvent:
        pass
    else:
        return np.asarray(np.maximum(*both))
    curve = event.renyi(_HELPERS)
    reached = np.isfinite(curve)
    pure = event.pure_epsilon()
    cap = np.array([conversion.pure_log_delta(pure, e) if math.isfinite(pure) else 0.0 for e in epsilons.tolist()])
    if not reached.any():
        return cap
    found = [conversion.renyi_log_deltas(_HELPERS[reached], curve[reached], e).min() for e in epsilons.tolist()]
    return np.asarray(np.minimum(np.array(found), cap))


def _no_profile(event: Event) -> UnsupportedEvent:
    return UnsupportedEvent(f"{event!r} has no profile here: selection is accounted by its Renyi divergences")
