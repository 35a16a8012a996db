"""Random allocation: each unit takes part in exactly k of t steps, chosen uniformly. docs/explanation/allocation.md."""

import math
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency, Direction
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.costs.losses import averages
from ledgerwood.accounting.events.base import Derived, Event, FloatArray, remembered, require_event, unsampled_moments
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

_MOST_STEPS = 2**30
_CELLS = 400  # of the grids for Rényi divergences, which are less sharp than the profile whatever the grid
_COARSE = 128  # of the grids of a first look
_LARGEST_ORDER = 256  # beyond which the divergence of one step bounds that of the allocation
_AGAIN = ": the release is already one of an allocation; state the sample first, as the event that is allocated"


@final
@dataclass(frozen=True, slots=True)
class RandomAllocation(Event):
    """An event that is released `steps` times, where each unit takes part in `selected` of them, chosen uniformly.

    Each unit's steps are drawn once, in secret and independently of other units; each release sees the units of its
    step only. This is one epoch: `Repeated` describes several, each with a fresh choice. A shuffled pass over the rows
    in batches of a fixed size is *not* this event: there the choices depend on each other.

    For selected=1 the pair is exact: the likelihood ratio is the average of `steps` independent ones. For more, the
    steps are divided at random into `selected` blocks of nearly equal length, one choice in each, which can only cost
    more (docs/explanation/allocation.md#allocation-blocks). Source: Feldman and Shenfeld 2025,
    Theorem 3.1 and Lemma 3.2; proofs in docs/explanation/allocation.md#pair.

    Args:
        event: one step's release from the units that take part in it.
        selected: the number of steps of each unit, from 1 to `steps`; public.
        steps: the number of releases, from 1 to 2^30; public.

    Raises:
        InvalidParameter: a value outside its bound, or something that is not an event.
        UnsupportedEvent: a replace-one event.
    """

    event: Event
    _: KW_ONLY
    selected: int = 1
    steps: int

    def __post_init__(self) -> None:
        require_event(self.event)
        steps = _validate.count("steps", self.steps, "releases")
        if steps > _MOST_STEPS:
            raise _validate.fail("steps", steps, "at most 2^30", "releases")
        selected = _validate.count("selected", self.selected, "steps of a unit")
        if selected > steps:
            raise InvalidParameter(f"selected={selected} must be at most steps={steps} (unit: steps of a unit)")
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "selected", selected)
        if self.event.adjacency is Adjacency.REPLACE_ONE:
            raise UnsupportedEvent(
                f"RandomAllocation of a replace-one event ({self.event!r}) has no proven privacy bound: the row and "
                "the row in its place are allocated alike, so both distributions are mixtures; state the event under "
                "add-remove or zero-out"
            )

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def blocks(self) -> Iterator[tuple[Event, int]]:
        """Independent allocations of one step each that together cost at least as much, each with its count."""
        length, longer = divmod(self.steps, self.selected)
        for size, count in ((length + 1, longer), (length, self.selected - longer)):
            if count:
                yield (self.event if size == 1 else RandomAllocation(self.event, steps=size)), count

    def first_step(self) -> Event:
        """What the first step tells: a Poisson sample."""
        return PoissonSampled(self.event, sampling_rate=_directed.float_down(Fraction(self.selected, self.steps)))

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        t = renyi.check_epsilons(epsilons)
        if self.steps == 1:
            return self.event.log_profile(t, direction=direction)
        if self.selected > 1:
            raise UnsupportedEvent(f"{self!r} has no exact profile: it is bounded by a composition of its blocks")
        found = self.one_direction(t, direction)
        if (t == 0.0).any():  # both directions bound one number there, the total variation
            other = Direction.ADD if direction is Direction.REMOVE else Direction.REMOVE
            found = np.where(t == 0.0, np.minimum(found, self.one_direction(np.zeros(1), other)[0]), found)
        return found

    def one_direction(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        """The bound on log H of one step a unit by this direction's grids alone, at 0 too; shape (k,)."""
        found = _above(self.event, self.steps, direction, averages.CELLS).log_profile(epsilons)
        whole = self.event.log_profile(
            epsilons, direction=direction
        )  # where the steps are told too: allocation.md#told
        return np.minimum(found, whole)

    def coarse_log_profile(self, epsilons: FloatArray, direction: Direction) -> FloatArray:
        """A quick bound on log H at each epsilon >= 0, of one step a unit; shape (k,)."""
        whole = self.event.log_profile(epsilons, direction=direction)
        if self.steps == 1:
            return whole
        return np.minimum(_above(self.event, self.steps, direction, _COARSE).log_profile(epsilons), whole)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        a = renyi.check_orders(orders)
        if direction is None:
            return np.maximum(self.renyi(a, direction=Direction.REMOVE), self.renyi(a, direction=Direction.ADD))
        if self.selected > 1:
            return renyi.raise_by(sum((n * block.renyi(a, direction=direction) for block, n in self.blocks()),
                                      start=np.zeros(len(a))), 8.0)  # fmt: skip
        whole = self.event.renyi(a, direction=direction)
        if self.steps == 1:
            return whole
        own = (
            _removal(self.event, self.steps, a)
            if direction is Direction.REMOVE
            else _addition(self.event, self.steps, a)
        )
        return np.minimum(own, whole)

    def pure_epsilon(self) -> float:
        """That of one step, once for each step of a unit: the average of ratios reaches the largest of them."""
        return float(renyi.raise_by(np.array(self.selected * self.event.pure_epsilon()), 1.0))

    def mu(self) -> float:
        if self.steps == 1:
            return self.event.mu()
        raise UnsupportedEvent(f"{self!r} has no exact Gaussian-DP parameter: a mixture of Gaussians is not Gaussian")

    def symmetric(self) -> bool:
        return self.steps == 1 and self.event.symmetric()

    def unsampled(self) -> Event:
        return self.event.unsampled() if self.selected == 1 else self

    def log_excess_moments(self, powers: ArrayLike, *, sampling_rate: float) -> FloatArray:
        return unsampled_moments(self, powers, sampling_rate, _AGAIN)


@final
@dataclass(frozen=True, slots=True)
class CoarseAllocation(Derived):
    """An allocation of one step a unit by its quick bound, for a search that goes on with the other one.

    Args:
        event: the allocation.
    """

    event: RandomAllocation

    @property
    def adjacency(self) -> Adjacency:
        return self.event.adjacency

    def log_profile(self, epsilons: ArrayLike, *, direction: Direction) -> FloatArray:
        return self.event.coarse_log_profile(renyi.check_epsilons(epsilons), direction)

    def renyi(self, orders: ArrayLike, *, direction: Direction | None = None) -> FloatArray:
        return self.event.renyi(orders, direction=direction)

    def pure_epsilon(self) -> float:
        return self.event.pure_epsilon()

    def symmetric(self) -> bool:
        return self.event.symmetric()


@remembered(64)
def _above(event: Event, steps: int, direction: Direction, cells: int) -> averages.Average:
    return averages.average(event, steps, direction, above=True, most=cells)


def _removal(event: Event, steps: int, orders: FloatArray) -> FloatArray:
    """Divergences in direction remove, rounded up; shape (k,). allocation.md#moments.

    The logarithm of a moment is convex in its order: a line between whole orders, inf beyond the last. Or by the tails,
    as in direction add, beyond a place c by the tangent at c and Markov's inequality on a moment of a whole order.
    """
    logs = _log_moments(event, steps)
    low = np.floor(orders)
    inside = low < _LARGEST_ORDER
    place = np.where(inside, low, 1.0).astype(np.intp)
    share = np.where(inside, orders - low, 0.0)
    with np.errstate(invalid="ignore"):
        between = np.where(share == 0.0, logs[place], logs[place] * (1.0 - share) + logs[place + 1] * share)
    own = np.where(inside, renyi.raise_by(np.maximum(between, 0.0) / (orders - 1.0), 32.0), np.inf)
    broken = (share > 0.0) & (orders < _MOST_BY_TAILS)
    if broken.any():
        a = orders[broken]
        whole = np.arange(2.0, _LARGEST_ORDER + 1.0)
        more = whole - a[:, np.newaxis]

        def far(log_cut: float) -> FloatArray:
            return np.asarray(np.where(more > 0.0, logs[2:] - more * log_cut, np.inf).min(axis=1))

        own[broken] = np.minimum(own[broken], _by_tails(event, steps, a, a - 1.0, far))
    return own


@remembered(256)
def _log_moments(event: Event, steps: int) -> FloatArray:
    """log E_Q[M^j] for whole orders j from 0 to the largest, rounded up: allocation.md#moments.

    E M^j = t^{-j} j! [z^j] g(z)^t with g(z) = sum_k E[r^k] z^k / k!, whose coefficients are positive: powers of the
    series by squaring for few steps; for more steps than orders a recurrence of positive terms.
    """
    orders = np.arange(_LARGEST_ORDER + 1.0)
    own = np.concatenate(([0.0, 0.0], (orders[2:] - 1.0) * event.renyi(orders[2:], direction=Direction.REMOVE)))
    log_factorials = np.append(0.0, np.cumsum(np.log(orders[1:])))
    series = own - log_factorials - orders * math.log(steps)
    size = float(np.abs(series[np.isfinite(series)]).max()) + float(log_factorials[-1])
    if steps > _LARGEST_ORDER:
        found, error = _power(series, steps), 16.0 * (orders + 4.0)
    else:
        found, error = series, 16.0 * (steps + 4.0) + 0.0 * orders
        for bit in bin(steps)[3:]:
            found = _product(found, found)
            if bit == "1":
                found = _product(found, series)
    logs: FloatArray = np.asarray(found + log_factorials + renyi.ULP * error * (size + _LARGEST_ORDER))
    logs[:2] = 0.0
    return logs


def _power(series: FloatArray, exponent: int) -> FloatArray:
    """Logarithms of the coefficients of a series' power, from those of the series; the first one is 0.

    h = g^t has g h' = t g' h, so h_n = (1 / n) sum_k (k (t + 1) - n) g_k h_{n - k}.
    """
    found = np.zeros(len(series))
    for n in range(1, len(series)):
        k = np.arange(1, n + 1)
        found[n] = np.logaddexp.reduce(np.log((k * (exponent + 1.0) - n) / n) + series[1 : n + 1] + found[n - k])
    return found


def _product(one: FloatArray, other: FloatArray) -> FloatArray:
    """Logarithms of the coefficients of a product of two power series with positive ones, cut at the same order."""
    size = len(one)
    table = np.full((size, size), -np.inf)
    for shift in range(size):  # of few orders; each is a row of the table
        table[shift, shift:] = one[shift] + other[: size - shift]
    return np.asarray(np.logaddexp.reduce(table, axis=0))


def _addition(event: Event, steps: int, orders: FloatArray) -> FloatArray:
    """Divergences in direction add, rounded up; shape (k,). allocation.md#addition.

    By the tails; below a place c by the tangent at c and Markov's inequality on M^{-r}, for some r. M is at least the
    geometric mean of the ratios, so E M^{-v} <= exp(v D_{1 + v / t}(Q || P)).
    """
    s = orders - 1.0
    more = steps * np.geomspace(0.1, 1e3, 25)
    powers = s[:, np.newaxis] + more
    inner = 1.0 + powers / steps
    own = powers * event.renyi(inner.ravel(), direction=Direction.ADD).reshape(inner.shape)

    def far(log_cut: float) -> FloatArray:
        return np.asarray((own - more * log_cut).min(axis=1))

    return _by_tails(event, steps, -s, s, far)


_CUTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # |log c|
_MOST_BY_TAILS = 32.0  # of an order, beyond which the lines between whole orders are as good


def _by_tails(
    event: Event, steps: int, powers: FloatArray, divisors: FloatArray, far: Callable[[float], FloatArray]
) -> FloatArray:
    """log E_Q[M^p] over the divisor, rounded up; shape (k,). allocation.md#addition.

    Args:
        event, steps: the allocation.
        powers: p > 1, or all p < 0; shape (k,).
        divisors: a - 1, shape (k,).
        far: for |log c| a bound on the log of E[M^p; M beyond c], shape (k,).
    """
    p = powers[:, np.newaxis]
    below, above = (_above(event, steps, d, _CELLS) for d in (Direction.ADD, Direction.REMOVE))
    left, right = below.atoms.place < 1.0, above.atoms.place > 1.0
    low, high = below.atoms.place[left] * (1.0 - below.shift), above.atoms.place[right] * (1.0 + above.shift)
    upward = bool(powers[0] > 0.0)
    best = np.full(len(powers), np.inf)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for log_cut in _CUTS:
            cut = math.exp(log_cut if upward else -log_cut)
            slope = p * (cut ** (p - 1.0) - 1.0)
            near_low, near_high = (low, np.minimum(high, cut)) if upward else (np.maximum(low, cut), high)
            under = ((_bregman(near_low, p) + slope * (low - near_low)) * below.atoms.mass[left]).sum(axis=1)
            over = ((_bregman(near_high, p) + slope * (high - near_high)) * above.atoms.mass[right]).sum(axis=1)
            over += (slope if upward else -p)[:, 0] * above.infinite
            total = under * math.exp(below.growth) + over * math.exp(above.growth) + below.infinite * abs(slope[:, 0])
            best = np.fmin(best, total + np.exp(far(log_cut) + 1e-9 * (1.0 + np.abs(powers))))  # NaN bounds nothing
        return renyi.raise_by(np.log1p(best) / divisors, 64.0 + 8.0 * (len(low) + len(high)))


def _bregman(place: FloatArray, p: FloatArray) -> FloatArray:
    """x^p - 1 - p (x - 1) at each place x >= 0, rounded up; shape (orders, places)."""
    value = np.expm1(p * np.log(place)) - p * (place - 1.0)
    return np.asarray(np.maximum(value, 0.0) + 8.0 * renyi.ULP * (np.abs(p) + 1.0) * np.abs(place - 1.0))
