"""A real pair for a replaced row in a secret Poisson sample, for bounds from below. docs/explanation/pld.md#attained.

A `ReplaceOneSampled` states what a replaced row and what a row's presence cost; its profile bounds all mechanisms for
which both statements hold. Here is one of them: the old row moves the output up, the new one down, by half of what the
replacement may cost each. docs/explanation/pld.md#attained-replaced.
"""

import math
from dataclasses import dataclass
from typing import Literal, assert_never, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.costs.losses.lattice import ULP
from ledgerwood.accounting.events.base import Derived, Event, FloatArray
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.sampled.fixed_size import ReplaceOneSampled
from ledgerwood.errors import UnsupportedEvent

_BISECTIONS = 70
_TAIL_ERROR = 512.0 * ULP  # of logarithms of tails, per unit of 1 + the size of what they are made of
_DOWN = 1.0 - 64.0 * ULP  # by how much a mu may have been rounded up on its way
Noise = Literal["gaussian", "laplace", "response"]


@final
@dataclass(frozen=True, slots=True)
class ReplacedRowPair(Derived):
    """(1 - q) N + q U against (1 - q) N + q D: no row of the two drawn, the old one, the new one.

    The likelihood ratio rises with the output, so that each divergence is attained by a set of outputs above a place.

    Args:
        event: the sample that dominates the pair.
        noise: of N, U and D: normal, Laplace, or three outcomes.
        size: by how much U and D are away from N: in standard deviations, in scales, or in nats.
    """

    event: ReplaceOneSampled
    noise: Noise
    size: float

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        t = renyi.check_epsilons(epsilons)
        logs = self._log_profile(t, above=True)
        return np.where(t >= self.pure_epsilon(), -np.inf, np.minimum(logs, 0.0))

    def log_profile_below(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        """A lower bound on log H at each epsilon >= 0, shape (k,); the pair is its own mirror image."""
        return np.minimum(self._log_profile(epsilons, above=False), 0.0)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return self.event.renyi(orders, direction=direction)

    def pure_epsilon(self) -> float:
        """The largest log ratio, rounded up, where there is one."""
        if self.noise == "gaussian":
            return math.inf
        up, down = self._own(np.ones(1))
        return float(_log_mean(self._rate, up)[0] - _log_mean(self._rate, down)[0]) * (1.0 + 64.0 * ULP)

    def symmetric(self) -> bool:
        return True

    @property
    def _rate(self) -> float:
        return self.event.sampling_rate

    def _log_profile(self, t: FloatArray, *, above: bool) -> FloatArray:
        whole = t.ravel()
        # Of three outcomes the upper one, and the upper two.
        places = [np.zeros(len(whole)), np.ones(len(whole))] if self.noise == "response" else [self._place(whole)]
        found = np.maximum.reduce([self._over(place, whole, above=above) for place in places])
        return np.asarray(found.reshape(t.shape))

    def _over(self, place: FloatArray, t: FloatArray, *, above: bool) -> FloatArray:
        """log of P(beyond) - e^t Q(beyond) of a set of outputs, and from above of what a better one may add.

        The parts of N are subtracted exactly: q U - ((e^t - 1) (1 - q) N + e^t q D).
        """
        q = self._rate
        none, old, new = self._log_tails(place)
        gain = math.log(q) + old
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            lost = np.logaddexp(renyi.log_expm1(t) + math.log1p(-q) + none, t + math.log(q) + new) - gain
        size = self.size + (place if self.noise == "gaussian" else 1.0)
        error = _TAIL_ERROR * (16.0 + size * size + t + abs(math.log(q)) + abs(math.log1p(-q)))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if not above:
                share = np.exp(np.minimum(lost, 1.0)) * (1.0 + 2.0 * error)
                return np.where(share < 1.0, gain - error + np.log1p(-np.minimum(share, 1.0)), -np.inf)
            left = (1.0 + error) - np.exp(np.minimum(lost, 1.0)) * (1.0 - 2.0 * error)
            if self.noise != "response":  # P(beyond) / gain, times how much too low the ratio at the place is
                beyond = 1.0 + np.exp(math.log1p(-q) + none - gain)
                left = left + beyond * (1.0 + error) * np.expm1(self._short(place, t))
            return np.where(left > 0.0, gain + error + np.log(np.maximum(left, 1e-300)), -np.inf)

    def _place(self, t: FloatArray) -> FloatArray:
        """An output whose log ratio is t, or a little less; the last one that matters where all are less."""
        low, high = np.zeros(len(t)), np.ones(len(t))  # the ratio is 1 at 0, and of Laplace noise constant from 1 on
        if self.noise == "gaussian":
            high = (t - math.log(self._rate)) / self.size + self.size + 1.0
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            beneath = self._log_ratio(middle)[0] <= t
            low, high = np.where(beneath, middle, low), np.where(beneath, high, middle)
        return low

    def _short(self, place: FloatArray, t: FloatArray) -> FloatArray:
        """By how much the log ratio at `place` may be below t, from above; >= 0."""
        value, error = self._log_ratio(place)
        return np.maximum(t - value, 0.0) + error + 4.0 * ULP * t

    def _log_ratio(self, place: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log dP/dQ at each output >= 0, and its rounding error; shape (k,) each."""
        up, down = self._own(place)
        q = self._rate
        first, second = _log_mean(q, up), _log_mean(q, down)
        with np.errstate(over="ignore"):
            weight = sum(np.minimum(q * np.exp(np.minimum(own, 700.0) - np.maximum(log, -700.0)), 1.0)
                         for own, log in ((up, first), (down, second)))  # fmt: skip
        size = 1.0 + self.size * (self.size + place) if self.noise == "gaussian" else 1.0 + self.size
        return first - second, 64.0 * ULP * (np.abs(first) + np.abs(second) + weight * size)

    def _own(self, place: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log of U/N and of D/N at each output; of three outcomes at the upper one."""
        s = self.size
        match self.noise:
            case "gaussian":
                return s * place - 0.5 * s * s, -s * place - 0.5 * s * s
            case "laplace":
                return s * (2.0 * np.minimum(place, 1.0) - 1.0), np.full(place.shape, -s)
            case "response":
                return np.full(place.shape, s), np.full(place.shape, -s)
            case _:
                assert_never(self.noise)

    def _log_tails(self, place: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """log of the probabilities of outputs above each place, under N, U and D; shape (k,) each."""
        s = self.size
        match self.noise:
            case "gaussian":
                return log_ndtr(-place), log_ndtr(s - place), log_ndtr(-s - place)
            case "laplace":
                half = math.log(0.5)
                return half - s * place, np.log1p(-0.5 * np.exp(-s * (1.0 - place))), half - s * (1.0 + place)
            case "response":  # U is (a, z, b), N is (n, ., n) and D is (b, z, a) on upper, middle and lower outcome
                one = np.where(place == 0.0, 1.0, 0.0)
                a, n = -math.log1p(math.exp(-s)), -s - math.log1p(math.exp(-s))
                b = a - 2.0 * s
                both = math.log1p(-math.exp(b))
                return one * n + (1.0 - one) * a, one * a + (1.0 - one) * both, one * b + (1.0 - one) * n
            case _:
                assert_never(self.noise)


def pair_of(event: ReplaceOneSampled) -> Event:
    """A pair that the sample dominates, if one is known; else the event, of which nothing is known from below.

    Gaussian and Laplace noise on one number, and pure events: by what both statements hold.
    """
    if event.sampling_rate == 1.0:
        return event
    inner, present = event.event, event.add_remove
    match inner, present:
        case LaplaceEvent(), LaplaceEvent():
            return ReplacedRowPair(
                event, "laplace", min(0.5 / inner.noise_multiplier, 1.0 / present.noise_multiplier) * _DOWN
            )
        case PureEvent(), PureEvent():
            return ReplacedRowPair(event, "response", min(0.5 * inner.epsilon, present.epsilon) * _DOWN)
    try:
        return ReplacedRowPair(event, "gaussian", min(0.5 * inner.mu(), present.mu()) * _DOWN)
    except UnsupportedEvent:
        return event


def _log_mean(q: float, own: FloatArray) -> FloatArray:
    """log(1 - q + q e^own), shape of `own`; to a few units in the last place for every q, since nothing cancels."""
    moved = q * np.expm1(np.minimum(own, 700.0))
    near = np.log1p(np.maximum(moved, -0.5))
    less = np.log((1.0 - q) + q * np.exp(np.minimum(own, 0.0)))  # where hardly anybody is left out
    far = math.log(q) + own  # the rest is below e^-240 of it
    return np.where(own > 700.0, far, np.where(moved < -0.5, less, near))
