"""A Gaussian release whose shift is random and secret: mixtures of normal distributions. docs/explanation/mixtures.md.

Pair: Q = N(0, 1), P = w_0 N(0, 1) + sum_j w_j N(mu_j, 1). Its likelihood ratio rises with the output, so that both
directions of the profile are sums of Gaussian profiles, one for each shift, at epsilons of their own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, log_ndtr

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction, require_adjacency
from ledgerwood.accounting.costs import quadrature, renyi
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent, gaussian_log_profile, noise_multiplier_in_range
from ledgerwood.accounting.events.stated import numbers, require_increasing
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

_MOST_SHIFTS = 256
_LEAST_WEIGHT = 1e-100
_LEAST_MU, _LARGEST_MU = 1e-6, 30.0
_BISECTIONS = 90
_LOWEST = -45.0  # an output below has probability e^-1000 under both
_CELLS = 4096
_REACH = 12.0  # of the cells below 0, and beyond some shifts of the largest size above it
_FAR = 8.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianMixtureEvent(Event):
    """A statistic with spherical normal noise, where a unit moves it by a random, secret multiple of a sensitivity.

    With probability `probabilities[j]` the statistic moves by a vector of norm at most `shifts[j]`, otherwise it does
    not move. The pair is exact for one coordinate, and dominates any vectors of these norms, whatever their angles
    (docs/explanation/mixtures.md#mixture-vectors; Ganesh 2024 has the same pair).

    Args:
        shifts: norms of the moves, in units of which `noise_multiplier` is one standard deviation's multiple;
            increasing, > 0, from 1 to 256 of them, each between 1e-6 and 30 standard deviations.
        probabilities: of each, in [1e-100, 1]; together at most 1.
        noise_multiplier: standard deviation / unit of `shifts`, in [1e-100, 1e100].
        adjacency: add-remove or zero-out.

    Raises:
        InvalidParameter: a value outside its bound, or lengths that differ.
        UnsupportedEvent: replace-one, where both distributions are mixtures.
    """

    shifts: tuple[float, ...]
    probabilities: tuple[float, ...]
    noise_multiplier: float
    adjacency: Adjacency = field()

    def __post_init__(self) -> None:
        shifts, weights = numbers("shifts", self.shifts), numbers("probabilities", self.probabilities)
        if len(shifts) != len(weights):
            raise InvalidParameter(f"shifts has {len(shifts)} values and probabilities {len(weights)}; give pairs")
        if len(shifts) > _MOST_SHIFTS:
            raise InvalidParameter(f"shifts has {len(shifts)} values; at most {_MOST_SHIFTS} (unit: shifts)")
        require_increasing("shifts", shifts, "units of the noise multiplier")
        multiplier = noise_multiplier_in_range("noise_multiplier", self.noise_multiplier)
        for value in shifts:
            if not _LEAST_MU <= value / multiplier <= _LARGEST_MU:
                bound = f"between {_LEAST_MU:g} and {_LARGEST_MU:g} standard deviations ({multiplier!r})"
                raise _validate.fail("shifts", value, bound, "units of the noise multiplier")
        for weight in weights:
            if not _LEAST_WEIGHT <= weight <= 1.0:
                raise _validate.fail("probabilities", weight, "in [1e-100, 1]", "probability")
        if sum(map(Fraction, weights)) > 1:
            raise _validate.fail("sum of probabilities", math.fsum(weights), "at most 1", "probability")
        object.__setattr__(self, "shifts", shifts)
        object.__setattr__(self, "probabilities", weights)
        object.__setattr__(self, "noise_multiplier", multiplier)
        require_adjacency(self.adjacency)
        if self.adjacency is Adjacency.REPLACE_ONE:
            raise UnsupportedEvent(
                "GaussianMixtureEvent under replace-one has no proven privacy bound: with either row the shift is "
                "random; state the event under add-remove or zero-out"
            )

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        whole = renyi.check_epsilons(epsilons)
        t = whole.ravel()
        if direction is Direction.ADD:  # a profile falls, and beyond the lowest output hardly anything is left
            t = np.minimum(t, -float(log_ratio(self, np.array([_LOWEST]))[0]))
        place = outputs_at(self, t, direction, above=True)
        logs = profile_at(self, place, t, direction, gaussian_log_profile)
        logs = renyi.raise_log(np.minimum(logs, 0.0), 64.0 + len(self.shifts)).reshape(whole.shape)
        rest = self.rest()
        if direction is Direction.ADD and rest > 0.0:  # no ratio is below the probability of no move
            return np.where(whole > -math.log(rest) * (1.0 + 8.0 * renyi.ULP) + 8.0 * renyi.ULP, -np.inf, logs)
        return logs

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        if direction is None:
            return np.maximum(self.renyi(a, direction=Direction.REMOVE), self.renyi(a, direction=Direction.ADD))
        return renyi.guarded(self.log_excess_moments(renyi.powers_of(a, direction), sampling_rate=1.0), a)

    def pure_epsilon(self) -> float:
        return math.inf

    def mu(self) -> float:
        if self.shifts[1:] or self.probabilities != (1.0,):
            raise UnsupportedEvent(
                f"{self!r} has no exact Gaussian-DP parameter: a mixture of Gaussians is not Gaussian"
            )
        return math.nextafter(self.shifts[0] / self.noise_multiplier * (1.0 + renyi.ULP), math.inf)

    def unsampled(self) -> Event:
        unit = Fraction(self.noise_multiplier) / Fraction(self.shifts[-1])
        return GaussianEvent(noise_multiplier=_directed.float_down(unit), adjacency=self.adjacency)

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        p = renyi.check_powers(powers)
        log_weights = np.log(self.probabilities) + math.log(sampling_rate)
        rest = 1.0 - sampling_rate + sampling_rate * self.rest()
        return np.asarray(
            _log_excess(p, self.mus(), log_weights, rest) + 64.0 * renyi.ULP * (2.0 + np.abs(np.log(np.abs(p))))
        )

    def mus(self) -> FloatArray:
        """The shifts in standard deviations, shape (n,)."""
        return np.array(self.shifts) / self.noise_multiplier

    def rest(self) -> float:
        """The probability that nothing moves."""
        return float(1 - sum(map(Fraction, self.probabilities)))


def log_ratio(event: GaussianMixtureEvent, place: FloatArray) -> FloatArray:
    """log dP/dQ at each output, in standard deviations; rising and convex, shape (k,)."""
    mu = event.mus()
    own = mu * (place[:, None] - 0.5 * mu)
    rest = event.rest()
    whole = np.logaddexp.reduce(np.log(event.probabilities) + own, axis=1)
    if rest > 0.0:
        whole = np.logaddexp(whole, math.log(rest))
    near = np.expm1(np.minimum(own, 700.0)) @ np.array(event.probabilities)  # r - 1, which ratios near 1 need
    return np.asarray(np.where((near > -0.5) & (near < 1.0), np.log1p(np.clip(near, -0.5, 1.0)), whole))


def outputs_at(event: GaussianMixtureEvent, t: FloatArray, direction: Direction, *, above: bool) -> FloatArray:
    """An output at which |log ratio| is about t, on the side that makes the profile a bound from above or from below.

    In direction remove the ratio there is at most e^t for a bound from above; in direction add at least e^-t. From
    below it is the other way round: docs/explanation/mixtures.md#mixture-profile.
    """
    mu = event.mus()
    target = t if direction is Direction.REMOVE else -t
    # rounding of the ratio, which is within the sum of the weights of 1 where it is near 1
    size = np.minimum(math.fsum(event.probabilities) + t, 1.0)
    room = 64.0 * renyi.ULP * size * (4.0 + t + len(mu) + float(np.abs(np.log(event.probabilities)).max()))
    wanted_low = (direction is Direction.REMOVE) == above
    goal = target - room if wanted_low else target + room
    low = np.full(t.shape, _LOWEST)
    high = np.min((goal[:, None] - np.log(event.probabilities)) / mu + 0.5 * mu, axis=1)
    high = np.maximum(high + 1.0 + 1e-9 * np.abs(high), _LOWEST + 1.0)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        beneath = log_ratio(event, middle) <= goal
        low, high = np.where(beneath, middle, low), np.where(beneath, high, middle)
    return low if wanted_low else high


def profile_at(
    event: GaussianMixtureEvent,
    place: FloatArray,
    t: FloatArray,
    direction: Direction,
    gaussian: Callable[[float, FloatArray], FloatArray],
) -> FloatArray:
    """log of a sum of the shifts' profiles, each where its ratio is the one at `place`, weighted; shape (k,).

    Args:
        event, place, t, direction: as of `outputs_at`.
        gaussian: log profile of a Gaussian pair by its mu, at epsilons >= 0; a bound from the side that is asked for.
    """
    mu = event.mus()
    own = mu * (place[:, None] - 0.5 * mu)  # log ratios of the shifts
    epsilons = own if direction is Direction.REMOVE else -own
    scale = np.log(event.probabilities) + (0.0 if direction is Direction.REMOVE else own + t[:, None])
    logs = np.stack([gaussian(float(m), np.abs(epsilons[:, j])) for j, m in enumerate(mu)], axis=1)
    below = np.minimum(epsilons, 0.0)  # there it is 1 - e^eps + e^eps H(-eps)
    with np.errstate(divide="ignore"):
        logs = np.where(epsilons >= 0.0, logs, np.logaddexp(renyi.log1mexp(below), below + logs))
    return np.asarray(np.logaddexp.reduce(scale + logs, axis=1))


def _log_excess(p: FloatArray, mu: FloatArray, log_weights: FloatArray, rest: float) -> FloatArray:
    """log E_Q[s^p - 1 - p (s - 1)] from above, s = rest + sum_j w_j r_j; shape (k,). mixtures.md#mixture-moments.

    Cells of the output, each moved apart to its two ends with both masses kept; beyond the cells by the triangle
    inequality of the norm of order p, or by what s is at least.
    """
    last = _FAR * float(mu[-1]) + _REACH
    z = np.linspace(-_REACH, last, _CELLS + 1)
    terms = log_weights + mu * (z[:, None] - 0.5 * mu)
    ratio = np.logaddexp.reduce(terms, axis=1)
    level = np.asarray(np.logaddexp(ratio, math.log(rest)) if rest > 0.0 else ratio)
    log_q = _log_mass(z, 0.0)
    log_p = np.logaddexp.reduce([w + _log_mass(z, m) for m, w in zip(mu.tolist(), log_weights.tolist(), strict=True)])
    log_p = np.asarray(np.logaddexp(log_p, math.log(rest) + log_q) if rest > 0.0 else log_p)
    # of Q's mass in a cell the share at the right end: (mean ratio - left) / (right - left)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.expm1(log_p - log_q - level[:-1]) / np.expm1(np.diff(level))
    share = np.clip(share * (1.0 + 1e-9) + 1e-9, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        weight = np.logaddexp(
            np.append(log_q + np.log1p(-share * (1.0 - 1e-8)), -np.inf), np.append(-np.inf, log_q + np.log(share))
        )
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        body = quadrature.discrete_log_excess(p, log_weight=weight + 1e-9, log_ratio=level, sampling_rate=1.0)
        found = np.logaddexp(body, _beyond(p, mu, log_weights, rest, -_REACH, last)) + 1e-9
        largest = renyi.log_expm1(p * (p - 1.0) * (0.5 * float(mu[-1]) ** 2))
        # the largest shift alone costs at least as much; where floats do not tell ratios from 1, it is the bound
        return np.asarray(np.fmin(found, largest))


def _log_mass(edges: FloatArray, mean: float) -> FloatArray:
    """log of a normal distribution's mass between neighbouring edges, by the tail that is the smaller one."""
    x = edges - mean
    left, right = x[:-1], x[1:]
    far = left > 0.0
    upper, lower = log_ndtr(-left), log_ndtr(-right)
    above = upper + renyi.log1mexp(np.minimum(lower - upper, 0.0))
    upper, lower = log_ndtr(right), log_ndtr(left)
    return np.where(far, above, upper + renyi.log1mexp(np.minimum(lower - upper, 0.0)))


def _beyond(
    p: FloatArray, mu: FloatArray, log_weights: FloatArray, rest: float, first: float, last: float
) -> FloatArray:
    """log of the excess moment of outputs below `first` and above `last`, from above; shape (k,)."""
    shifts = np.append(0.0, mu)
    logs = np.append(math.log(rest) if rest > 0.0 else -np.inf, log_weights)
    order = np.maximum(p, 1.0)[:, None]
    norms = logs + 0.5 * (order - 1.0) * shifts**2 + log_ndtr(order * shifts - last) / order
    high = order[:, 0] * np.logaddexp.reduce(norms, axis=1)  # E[s^p; z > last], where s > 1
    linear = np.log(np.abs(p)) + np.logaddexp.reduce(logs + log_ndtr(shifts - last))  # p < 0: at most |p| (s - 1)
    above = np.where(p > 1.0, high, linear)
    below_one = log_ndtr(first)
    least = np.minimum(p, 0.0)
    by_rest = least * math.log(rest) + below_one if rest > 0.0 else np.where(p < 0.0, np.inf, below_one)
    by_shift = least * logs[1] + 0.5 * least * (least - 1.0) * mu[0] ** 2 + log_ndtr(first - least * mu[0])
    # s^p - 1 - p (s - 1) <= s^p + |p| for p < 0, and <= p for p > 1
    power = np.where(p < 0.0, np.minimum(by_rest, by_shift), -np.inf)
    return np.asarray(np.logaddexp(above, np.logaddexp(power, np.log(np.abs(p)) + below_one)))


def user_sampled(event: GaussianEvent, *, sampling_rate: float, rows_at_most: int) -> GaussianMixtureEvent:
    """Returns the event of a Poisson sample of rows, for a unit that has several rows.

    Each of the unit's rows is drawn with probability `sampling_rate`, independently; each drawn row moves the sum by
    at most one sensitivity of `event`. So the number of rows in the sample is binomial, and the unit's pair is a
    mixture of Gaussians with these weights, for any number of rows up to `rows_at_most`
    (docs/explanation/mixtures.md#user-sampled). The group event of all rows at once costs more.

    Args:
        event: the release from the sample, for one row, under add-remove or zero-out of one row; of the result it is
            the addition, removal or zeroing-out of all rows of a unit.
        sampling_rate: the probability of each row, in (0, 1].
        rows_at_most: rows of a unit, 1 to 256; declared or enforced, not read off the data.

    Raises:
        InvalidParameter: a value outside its bound.
        UnsupportedEvent: an event that is not a `GaussianEvent`, or replace-one.
    """
    if not isinstance(event, GaussianEvent):
        raise UnsupportedEvent(f"{event!r} is not a GaussianEvent: samples of a unit's rows are priced for that only")
    q = _validate.rate("sampling_rate", sampling_rate, "probability per row")
    rows = _validate.count("rows_at_most", rows_at_most, "rows of a unit")
    if rows > _MOST_SHIFTS:
        raise _validate.fail("rows_at_most", rows, f"at most {_MOST_SHIFTS}", "rows of a unit")
    weights = _binomial_up(rows, q)
    shifts = tuple(float(j) for j, weight in enumerate(weights, start=1) if weight > 0.0)
    return GaussianMixtureEvent(
        shifts=shifts,
        probabilities=tuple(weight for weight in weights if weight > 0.0),
        noise_multiplier=event.noise_multiplier,
        adjacency=event.adjacency,
    )


def _binomial_up(rows: int, q: float) -> list[float]:
    """Probabilities of 1 to `rows` successes, rounded so that those of at least j are never below the truth."""
    if q == 1.0:
        return [0.0] * (rows - 1) + [1.0]
    j = np.arange(1.0, rows + 1.0)
    logs = (
        gammaln(rows + 1.0) - gammaln(j + 1.0) - gammaln(rows - j + 1.0) + j * math.log(q) + (rows - j) * math.log1p(-q)
    )
    raised = np.maximum(np.exp(logs) * (1.0 + 1e-11), _LEAST_WEIGHT)
    left, found = Fraction(1), []
    for value in raised[::-1].tolist():  # from the largest number of rows down
        weight = min(value, _directed.float_down(left))
        weight = weight if weight >= _LEAST_WEIGHT else 0.0
        left -= Fraction(weight)
        found.append(weight)
    return found[::-1]
