"""Samples that are almost Poisson: with a largest batch, and in turn from groups of rows. docs/explanation/samplers.md.

Both are priced by events that exist: a mixture of two Poisson samples, and a composition of Poisson samples.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from ledgerwood import _directed, _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.composition import Composed, Parallel, Repeated
from ledgerwood.accounting.events.group import grouped
from ledgerwood.accounting.events.noise.correlated import matrix_sensitivity
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent, noise_multiplier_in_range
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.errors import InvalidParameter

_MOST_ROWS = 10**12
_LEAST = 1e-300  # a probability of overflow below is counted as this


def truncated_poisson(event: Event, *, sampling_rate: float, rows_at_most: int, batch_at_most: int) -> Event:
    """Returns the event of a Poisson sample that is cut to a largest batch.

    Where more rows are drawn than fit, some are left out by ranks that do not depend on which other rows there are:
    the first ones by index or in an order drawn at random, never by content. The probability that the other rows fill
    the batch is p; then the row takes another one's place, at the cost of two units. So the event is a mixture: with
    probability 1 - p a Poisson sample of `event`, with probability p one of `grouped(event, size=2)`. It never costs
    more than the usual charge of (1 + e^epsilon) p in delta. docs/explanation/samplers.md#truncated.

    Args:
        event: the release from the batch, under add-remove or zero-out.
        sampling_rate: the probability with which each row is drawn.
        rows_at_most: an upper bound on the number of rows, 1 to 10^12; declared, not read off the data.
        batch_at_most: the largest batch, >= 1; public.

    Raises:
        InvalidParameter: a value outside its bound.
        UnsupportedEvent: a replace-one event, or one without a known group event.
    """
    sampled = PoissonSampled(event, sampling_rate=sampling_rate)
    rows = _validate.count("rows_at_most", rows_at_most, "rows")
    if rows > _MOST_ROWS:
        raise _validate.fail("rows_at_most", rows, "at most 10^12", "rows")
    most = _validate.count("batch_at_most", batch_at_most, "rows")
    overflow = overflow_probability(rows - 1, sampled.sampling_rate, most)
    if overflow == 0.0:
        return sampled
    replaced = PoissonSampled(grouped(event, size=2), sampling_rate=sampled.sampling_rate)
    within = min(math.nextafter(1.0 - overflow, 2.0), 1.0)
    return replaced if overflow == 1.0 else Parallel((sampled, replaced), probabilities=(within, overflow))


def overflow_probability(rows: int, sampling_rate: float, batch: int) -> float:
    """P(Binomial(rows, sampling_rate) >= batch), rounded up; 1 where the batch is not above the mean.

    The first term by logarithms of factorials, the others by their ratios, which fall; beyond the terms that are
    added up a geometric series bounds the rest.
    """
    q = sampling_rate
    if batch > rows:
        return 0.0
    if batch <= rows * q or q == 1.0:
        return 1.0
    parts = (gammaln(rows + 1.0), -gammaln(batch + 1.0), -gammaln(rows - batch + 1.0),
             batch * math.log(q), (rows - batch) * math.log1p(-q))  # fmt: skip
    log_first = math.fsum(parts) + 2.0**-48 * (1.0 + sum(map(abs, parts)))
    place = np.arange(batch, min(rows, batch + (1 << 16)), dtype=np.float64)
    ratios = (rows - place) / (place + 1.0) * (q / (1.0 - q))
    total = 1.0 + float(np.cumprod(ratios).sum())
    if len(place) == 1 << 16:
        total += float(np.prod(ratios)) / (1.0 - float(ratios[-1]))
    log_value = log_first + math.log(total) + 1e-9
    return min(max(math.exp(min(log_value, 0.0)) * (1.0 + 2.0**-40), _LEAST), 1.0)


def cyclic_poisson(
    strategy: ArrayLike, *, noise_multiplier: float, sampling_rate: float, groups: int, adjacency: Adjacency
) -> Event:
    """Returns the event of a banded matrix mechanism whose steps draw Poisson samples from groups of rows in turn.

    Each row is in one of `groups` groups, by a public rule or at random; step i draws from group i mod `groups`, each
    row of it with probability `sampling_rate`. A lower triangular strategy with at most `groups` bands then is, for a
    row, a composition of Poisson samples of Gaussian noise, one for each of its group's steps.
    docs/explanation/samplers.md#cyclic. Source of the reduction: Choquette-Choo et al. 2023 (Amplified banded matrix
    factorization, Theorem 4).

    Args:
        strategy: C, shape (n_steps, n_steps), lower triangular; C[i, j] = 0 for i - j >= `groups`. For independent
            noise the identity.
        noise_multiplier: standard deviation of the noise / largest L2 change of one step's contribution.
        sampling_rate: with which a row of the step's group is drawn: batch size * groups / rows.
        groups: number of groups, >= 1; public.
        adjacency: add-remove or zero-out.

    Raises:
        InvalidParameter: a value outside its bound, a strategy that is not lower triangular, or more bands than groups.
        UnsupportedEvent: replace-one.
    """
    multiplier = noise_multiplier_in_range("noise_multiplier", noise_multiplier)
    count = _validate.count("groups", groups, "groups")
    matrix_sensitivity(strategy)  # refuses what is no matrix, and zeros
    matrix = np.asarray(strategy, dtype=np.float64)
    steps = matrix.shape[1]
    if matrix.shape[0] != steps or np.triu(matrix, 1).any():
        raise InvalidParameter(f"strategy of shape {matrix.shape} must be square and lower triangular (unit: steps)")
    if np.tril(matrix, -count).any():
        raise InvalidParameter(
            f"strategy must have at most groups={count} bands: C[i, j] = 0 for i - j >= {count} (unit: steps)"
        )
    squares = [sum((Fraction(x) ** 2 for x in column.tolist() if x), Fraction()) for column in matrix.T]
    ranked = [sorted(squares[first::count], reverse=True) for first in range(min(count, steps))]
    events: list[Event] = []
    costly = [max(group[k] for group in ranked if k < len(group)) for k in range(len(ranked[0]))]
    for square in dict.fromkeys(costly):  # the k-th costliest step of any group
        if square > 0:
            one = _directed.float_down(Fraction(multiplier) / Fraction(_directed.root_up(square)))
            step = PoissonSampled(GaussianEvent(noise_multiplier=one, adjacency=adjacency), sampling_rate=sampling_rate)
            events.append(Repeated(step, count=costly.count(square)))
    return events[0] if len(events) == 1 else Composed(tuple(events))
