"""The privacy cost of one release to each row, by the row's own sensitivity.

A row whose contribution has s times the largest norm, s in [0, 1], faces the same noise with s times the shift: its own
event has every noise multiplier divided by s. Its Renyi divergence is read off a table over s that is built once, for
any number of rows: polynomials through exact values with a proven error, which is added to them, and chords of a convex
function where the divergence is large. Derivations: docs/explanation/individuals.md.

`row_costs` makes such a table for a kernel, in whole units of a row's limit and never below the truth. With v = s**2
the row faces the round's own pair with mu**2 times v, and its divergence is convex in v
(docs/explanation/individuals.md#individual-gaussian), so that chords between upper bounds are upper bounds.
docs/explanation/individuals.md#row-costs.
"""

import functools
from collections.abc import Iterator
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events.base import Event, FloatArray, require_event
from ledgerwood.accounting.events.composition import Composed, Parallel, Repeated
from ledgerwood.accounting.events.group import FilteredEvent
from ledgerwood.accounting.events.noise.gaussian import EllipticalGaussianEvent, GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.sampled.poisson import LEAST_RATE, PoissonSampled
from ledgerwood.accounting.events.stated import GDPEvent
from ledgerwood.accounting.individual_tables import LEAST, GaussianPair, LaplacePair, RowNorms, RowPair
from ledgerwood.errors import InvalidParameter, UnsupportedEvent

OVERESTIMATE = 1e-7
"""Largest relative over-estimate of a row's divergence, for orders a with a (1 + log(1 / sampling rate)) <= 1e4.

Beyond that it grows in proportion, as the rounding of the moments themselves does.
"""

_ROWS = 8192


@final
class IndividualRenyi:
    """Renyi divergences of an event, row by row, from each row's own sensitivity.

    Rounded up: never below `renyi` of the row's own event, above it by at most `OVERESTIMATE`, relative; 0 for a row
    that contributes nothing. In the larger direction. docs/explanation/individuals.md#individual-renyi.

    Args:
        event: Gaussian (elliptical too) or Laplace releases, alone or Poisson-sampled, repeated and composed, under
            add-remove or zero-out; every shift is scaled by the row's one sensitivity.
        orders: real orders > 1, one number or shape (k,); at most 2^20 if the event is sampled or Laplace.

    Raises:
        InvalidParameter: an order outside its bound.
        UnsupportedEvent: another event, or replace-one.
    """

    __slots__ = ("_curves", "_one", "_orders")

    def __init__(self, event: Event, orders: ArrayLike) -> None:
        self._orders = renyi.check_orders(orders)
        self._orders.setflags(write=False)
        self._one = np.ndim(orders) == 0
        _require_individual(event)
        counts: dict[RowPair, int] = {}
        for pair, count in _pairs(event):
            counts[pair] = counts.get(pair, 0) + count
        self._curves = [(pair.curves(self._orders), float(count)) for pair, count in counts.items()]

    @property
    def orders(self) -> FloatArray:
        """The orders, shape (k,)."""
        return self._orders

    def at(self, sensitivities: ArrayLike) -> FloatArray:
        """Divergences in nats at the rows' sensitivities: shape (n, k), or (n,) where `orders` is one number.

        Args:
            sensitivities: shape (n,), in [0, 1]: a row's norm over the largest norm.

        Raises:
            InvalidParameter: a sensitivity outside [0, 1], or not a number.
        """
        s = _sensitivities(sensitivities)
        out = np.empty((s.size, self._orders.size))
        for start in range(0, s.size, _ROWS):
            self._fill(s[start : start + _ROWS], out[start : start + _ROWS])
        return out[:, 0] if self._one else out

    def _fill(self, s: FloatArray, out: FloatArray) -> None:
        with np.errstate(divide="ignore"):
            rows = RowNorms(s, s * s, np.log2(s))
        absent = s == 0.0
        for j, order in enumerate(self._orders):
            total = np.zeros_like(s)
            for curves, count in self._curves:
                total += count * curves[j].at(rows)
            total *= (1.0 + 32.0 * renyi.ULP) / (order - 1.0)
            total[absent] = 0.0
            out[:, j] = total


@final
class IndividualGDP:
    """The mu of each row's own Gaussian pair; rounded up, 0 for a row that contributes nothing.

    Args:
        event: a full batch of Gaussian noise, repeated and composed, under add-remove or zero-out.

    Raises:
        UnsupportedEvent: an event that is not a Gaussian pair, or replace-one.
    """

    __slots__ = ("_mu",)

    def __init__(self, event: Event) -> None:
        _require_individual(event)
        if not _gaussian(event):
            raise UnsupportedEvent(f"{event!r} has no exact individual mu: it does not consist of Gaussian noise only")
        self._mu = event.mu()

    def mu(self, sensitivities: ArrayLike) -> FloatArray:
        """mu_i, shape (n,), for sensitivities (n,) in [0, 1]."""
        s = _sensitivities(sensitivities)
        return np.where(s > 0.0, np.maximum(s * self._mu * (1.0 + 8.0 * renyi.ULP), LEAST), 0.0)

    def mu_squared(self, sensitivities: ArrayLike) -> FloatArray:
        """mu_i^2, which is summed over adaptive releases (individuals.md#individual-gdp-filter); shape (n,)."""
        s = _sensitivities(sensitivities)
        return np.where(s > 0.0, np.maximum((s * self._mu) ** 2 * (1.0 + 32.0 * renyi.ULP), LEAST), 0.0)


def _sensitivities(values: ArrayLike) -> FloatArray:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise InvalidParameter(
            f"sensitivities has dtype {array.dtype} and shape {array.shape}; it must hold one real number a row"
        )
    bad = ~((array >= 0.0) & (array <= 1.0))
    if bad.any():
        raise InvalidParameter(
            f"sensitivities={array[bad][0]!r} must be in [0, 1] (unit: a row's norm over the largest norm)"
        )
    return array.astype(np.float64)


# ------------------------------------------------------------------------------------------- from events to pairs


def _require_individual(event: Event) -> None:
    require_event(event)
    if event.adjacency is Adjacency.REPLACE_ONE:
        raise UnsupportedEvent(
            f"{event!r} has no individual privacy cost under replace-one: the row that takes this one's place may "
            "contribute as much as any, so the loss is not a function of this row; use add-remove or zero-out"
        )


def _gaussian(event: Event) -> bool:
    """Returns whether the event is a Gaussian pair whose mu scales with one sensitivity (a stated mu need not)."""
    match event:
        case GaussianEvent() | EllipticalGaussianEvent():
            return True
        case Repeated(inner):
            return _gaussian(inner)
        case PoissonSampled(inner, sampling_rate=rate):
            return rate == 1.0 and _gaussian(inner)
        case Composed(members) | Parallel(members, probabilities=None):
            return all(_gaussian(member) for member in members)
        case _:
            return False


def _pairs(event: Event, rate: float = 1.0) -> Iterator[tuple["RowPair", int]]:
    """The Gaussian and Laplace pairs that the event is made of, each with its count."""
    if _gaussian(event):
        yield GaussianPair(event.mu(), rate), 1
        return
    match event:
        case LaplaceEvent():
            yield LaplacePair(event.pure_epsilon(), rate), 1
        case PoissonSampled(inner, sampling_rate=own):
            yield from _pairs(inner, max(rate * own, LEAST_RATE))
        case Repeated(inner, count=count) if rate == 1.0 or count == 1:
            for pair, n in _pairs(inner, rate):
                yield pair, n * count
        case Composed(members) if rate == 1.0 or len(members) == 1:
            for member in members:
                yield from _pairs(member, rate)
        case _:
            raise UnsupportedEvent(
                f"{event!r} has no individual privacy cost: it must consist of Gaussian and Laplace noise, repeated, "
                "composed and Poisson-sampled, and a sample of several releases of Gaussian noise alone"
            )


FULL = 1 << 52
"""Units of a whole limit: whole numbers that float64 holds, so that a row's sum is exact."""
POINTS = 1024
"""Chords of the table; v times a power of two is exact."""
ROUNDING = 16
"""Units that every point has besides, for its reader: three roundings of at most 2**52 units, and what is cut off."""
LIMIT_SLACK = 2.0**-30
"""By how much, relatively, a limit of T <= 2**17 rounds is above T times a round: then T fit, `ROUNDING` included."""


def row_costs(event: FilteredEvent) -> FloatArray:
    """Units of `event.limit` that one round costs a row of share j / POINTS, shape (POINTS + 2,); the last repeats.

    Rounded up to whole units; beyond a whole limit it goes on growing, so that chords stay upper bounds.

    Raises:
        UnsupportedEvent: a round that costs more than 1e280 limits; cut off, its chords would be too low.
    """
    return _row_costs(event).copy()


@functools.lru_cache(maxsize=32)  # an owner of rows asks for it in each round: half a second, of the same event
def _row_costs(event: FilteredEvent) -> FloatArray:
    shares = np.arange(POINTS + 1) / POINTS
    limit = event.limit
    if isinstance(limit, GDPEvent):
        ratio = event.event.mu() / limit.mu()
        lost = shares * min(ratio * ratio, 1e290)
    else:
        curve = IndividualRenyi(event.event, limit.orders[0])
        # The square root is raised, so that a row of exactly this share is not below it.
        lost = curve.at(np.minimum(np.sqrt(shares) * (1.0 + 4.0 * renyi.ULP), 1.0)) / limit.divergences[0]
    if not lost[-1] <= 1e280:
        raise UnsupportedEvent(
            f"a round costs a maximally contributing row {float(lost[-1])!r} times its limit; at most 1e280 times is "
            f"supported: {event!r}"
        )
    units = np.ceil(lost * (1.0 + 32.0 * renyi.ULP) * FULL) + ROUNDING
    return np.append(units, units[-1])
