"""The stability histogram with Gaussian noise, of keys that arrive in a table with room for a fixed number of them.

Proof: docs/explanation/federation.md#estimated-schemas.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import ApproximateEvent, Composed
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.mechanisms.gaussian import GaussianMechanism
from ledgerwood.mechanisms.sensitivity import BoxShifts
from ledgerwood.mechanisms.stability import NO_LOSS, GaussianStabilityMechanism, keys_that_show, present_keys
from ledgerwood.recording.points import passes

ROOMS = tuple(1 << power for power in range(10, 15))
"""Keys that a table has room for. For these the probability that it cannot be read was bounded."""
FAILURE = 2.0**-40
"""Twice the larger one of: the probability that a table of at most `room` keys cannot be read, and the probability that
a table of more keys passes the test."""
_PER_STDDEV = 16
_STDDEVS = 7.5
_ROWS = Grid(exponents=(0,))
_ONE = BoxShifts(boxes=((1.0,),))
"""The number of distinct keys moves by one at most: a replaced row may lose one key and bring another."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedStabilityMechanism:
    """A test that there are few enough distinct keys; then those whose noisy count is at least the threshold.

    The number of distinct keys gets Gaussian noise of stddev room / 16, and has to stay 7.5 of these below the room.
    Each row has one key. docs/explanation/federation.md#estimated-schemas.

    Args:
        stddev, threshold: as of `GaussianStabilityMechanism`.
        room: how many keys the table has room for, one of `ROOMS`.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    stddev: float
    threshold: int
    room: int

    def __post_init__(self) -> None:
        histogram = GaussianStabilityMechanism(stddev=self.stddev, threshold=self.threshold)
        object.__setattr__(self, "stddev", histogram.stddev)
        object.__setattr__(self, "threshold", histogram.threshold)
        if type(self.room) is not int or self.room not in ROOMS:
            raise _validate.fail("room", self.room, f"one of {ROOMS}", "keys")

    @classmethod
    def for_delta(cls, stddev: float, delta: float, *, room: int) -> "BoundedStabilityMechanism":
        """The least threshold whose event has at most this delta, above 2**-40 and below 1/2.

        Raises:
            InvalidParameter: a value outside its bound.
        """
        target = _validate.positive("delta", delta, "probability")
        rest = (target - FAILURE) * (1.0 - 1e-12)
        if rest <= 0.0:
            raise _validate.fail("delta", delta, f"above 2**-40 = {FAILURE:.3g}, which the table costs", "probability")
        histogram = GaussianStabilityMechanism.for_delta(stddev, rest)
        return cls(stddev=histogram.stddev, threshold=histogram.threshold, room=room)

    @property
    def most(self) -> int:
        """The noisy number of distinct keys from which on nothing is released of them."""
        return math.floor(self.room - _STDDEVS * self._count_noise.stddev)

    def event(self, adjacency: Adjacency) -> Composed:
        """The histogram's Gaussian, the test's of shift 1, and one delta: of a lone key that shows, and of failures."""
        gaussian, shown = (
            GaussianStabilityMechanism(stddev=self.stddev, threshold=self.threshold).event(adjacency).events
        )
        assert isinstance(shown, ApproximateEvent)
        delta = math.nextafter(shown.delta + FAILURE, 1.0)
        return Composed(
            (
                gaussian,
                self._count_noise.event(_ONE, adjacency),
                ApproximateEvent(epsilon=NO_LOSS, delta=delta, adjacency=adjacency),
            )
        )

    @passes("choice")
    def select(self, counts: Mapping[str, int] | None, source: RandomSource) -> dict[str, int] | None:
        """The keys that show and their noisy counts, in the order of the keys; None where there are too many keys.

        Args:
            counts: as of `GaussianStabilityMechanism`; None of a table that could not be read.
            source: random words.

        Raises:
            InvalidParameter: as of `GaussianStabilityMechanism`.
        """
        exact = np.array([[0 if counts is None else len(present_keys(counts))]], dtype=np.int64)
        noisy = int(self._count_noise.randomise(exact, _ROWS, source)[0, 0])
        if counts is None or noisy >= self.most:
            return None
        return keys_that_show(counts, GaussianMechanism(stddev=self.stddev), self.threshold, source)

    @property
    def _count_noise(self) -> GaussianMechanism:
        return GaussianMechanism(stddev=self.room / _PER_STDDEV)


def room_for(stddev: float) -> int:
    """The least room whose test costs at most a sixteenth of what counts of this noise cost, if there is one."""
    return next((room for room in ROOMS if room >= 4.0 * _PER_STDDEV * stddev), ROOMS[-1])
