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
from ledgerwood.accounting import conversion, renyi
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.events.base import Event, FloatArray, require_event
from ledgerwood.errors import UnsupportedEvent

_HELPERS = 1.0 + np.geomspace(1e-3, 1e5, 400)
"""Orders at which the event's own divergence bounds how far apart the runs' ranks can be; any order is valid."""


@final
@dataclass(frozen=True, slots=True)
class RepeatedSelection(Event):
    """The best of K runs of an event, K at least 1 and of a truncated negative binomial law; no other run is seen.

    K = k with probability proportional to (1 - gamma)^k Gamma(k + eta) / (Gamma(eta) k!), k >= 1: geometric at eta = 1,
    logarithmic at eta = 0. K is drawn independently of the data and kept secret; the runs use fresh randomness; "best"
    is by an order of the outputs that is fixed beforehand, ties included (a score is part of the output).

    Args:
        event: one run. If it samples, each run draws a sample of its own.
        shape: eta, in (-1, 1e6].
        stopping_rate: gamma, in [1e-100, 1): the smaller, the more runs.

    Raises:
        InvalidParameter: a value outside its bound, or something that is not an event.
    """

    event: Event
    _: KW_ONLY
    shape: float
    stopping_rate: float

    def __post_init__(self) -> None:
        require_event(self.event)
        shape = _validate.real("shape", self.shape, "1")
        if not -1.0 < shape <= 1e6:
            raise _validate.fail("shape", self.shape, "in (-1, 1e6]", "1")
        rate = _validate.rate("stopping_rate", self.stopping_rate, "probability")
        if not 1e-100 <= rate < 1.0:
            raise _validate.fail("stopping_rate", self.stopping_rate, "in [1e-100, 1)", "probability")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "stopping_rate", rate)

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        raise _no_profile(self)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        """D_a + (1 + eta) min over b of [(1 - 1/b) D_b + log(1/gamma) / b] + log E[K] / (a - 1), both directions."""
        a = renyi.check_orders(orders)
        helpers = _HELPERS
        rank = (1.0 - 1.0 / helpers) * self.event.renyi(helpers) - math.log(self.stopping_rate) / helpers
        apart = min(float(rank.min()), self.event.pure_epsilon()) * (1.0 + self.shape)
        found = self.event.renyi(a) + apart + _log_mean_runs(self.shape, self.stopping_rate) / (a - 1.0)
        return np.minimum(renyi.raise_by(found, 64), self.pure_epsilon())

    def pure_epsilon(self) -> float:
        """(2 + eta) times the event's."""
        return float(renyi.raise_by(np.array((2.0 + self.shape) * self.event.pure_epsilon()), 4))

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return _unsampled_moments(self, powers, sampling_rate)


@final
@dataclass(frozen=True, slots=True)
class PoissonSelection(Event):
    """The best of K runs of an event, K of a Poisson law; at K = 0, which happens, "no run" is released.

    The conditions are those of `RepeatedSelection`.

    Args:
        event: one run. If it samples, each run draws a sample of its own.
        mean: the expected number of runs, in [1e-100, 1e100].

    Raises:
        InvalidParameter: a value outside its bound, or something that is not an event.
    """

    event: Event
    _: KW_ONLY
    mean: float

    def __post_init__(self) -> None:
        require_event(self.event)
        mean = _validate.positive("mean", self.mean, "runs")
        if not 1e-100 <= mean <= 1e100:
            raise _validate.fail("mean", self.mean, "in [1e-100, 1e100]", "runs")
        object.__setattr__(self, "mean", mean)

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        raise _no_profile(self)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        """log(e^{-mean} + mean e^{(a-1) (D_a + mean delta)}) / (a - 1), delta that of log(a / (a - 1)), both ways."""
        a = renyi.check_orders(orders)
        log_deltas = np.array([_log_delta(self.event, math.log1p(1.0 / d)) for d in (a - 1.0).tolist()])
        with np.errstate(over="ignore"):
            apart = np.exp(np.log(self.mean) + log_deltas)
        runs = math.log(self.mean) + (a - 1.0) * (self.event.renyi(a) + apart)
        found = np.logaddexp(-self.mean, runs)
        error = 64.0 + 8.0 * (self.mean + np.abs(math.log(self.mean)) + np.where(np.isfinite(runs), np.abs(runs), 0.0))
        return np.minimum(renyi.raise_by(found, 0) + renyi.ULP * error / (a - 1.0), self.pure_epsilon())

    def pure_epsilon(self) -> float:
        """epsilon + mean tanh(epsilon / 2): the ranks differ by no more than the total variation distance."""
        epsilon = self.event.pure_epsilon()
        if math.isinf(epsilon):
            return epsilon
        return float(renyi.raise_by(np.array(epsilon + self.mean * math.tanh(0.5 * epsilon)), 16))

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return _unsampled_moments(self, powers, sampling_rate)
