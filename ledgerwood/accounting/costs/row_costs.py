"""A table of a round's cost to a row, in whole units of its limit, for a kernel; never below the truth.

A row that contributes a share v in [0, 1] of the largest squared norm faces the round's own pair with mu**2 times v.
Its divergence is convex in v (docs/explanation/individuals.md#individual-gaussian), so that chords between upper bounds
are upper bounds. docs/explanation/individuals.md#row-costs.
"""

import numpy as np

from ledgerwood.accounting.costs import renyi
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.accounting.events.filtered import FilteredEvent
from ledgerwood.accounting.events.stated import GDPEvent
from ledgerwood.accounting.individuals import IndividualRenyi
from ledgerwood.errors import UnsupportedEvent

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
            f"a round costs a maximally contributing row {float(lost[-1])!r} times its limit; at most 1e280 (unit: limits) "
            f"is supported: {event!r}"
        )
    units = np.ceil(lost * (1.0 + 32.0 * renyi.ULP) * FULL) + ROUNDING
    return np.append(units, units[-1])
