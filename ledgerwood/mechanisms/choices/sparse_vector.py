"""The sparse vector technique: find the few of many queries that lie above a threshold; only those cost budget.

Proof: docs/explanation/selection.md#sparse-vector.
"""

import os
import threading
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import final

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood._uncopied import Uncopied
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import PureEvent, Repeated
from ledgerwood.errors import DrawRefused
from ledgerwood.mechanisms.base import Grid
from ledgerwood.mechanisms.exact.deviates import require_fit, standard_laplace, unbounded_noise
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.recording.points import passes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueryChange:
    """The largest change of any one query between neighbours.

    Args:
        largest: > 0, in the queries' unit.
        monotone: whether between two given neighbours no query rises while another falls (counts under add-remove).

    Raises:
        InvalidParameter: a change that is not positive and finite.
    """

    largest: float
    monotone: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest", _validate.positive("largest", self.largest, "queries"))
        if not isinstance(self.monotone, bool):
            raise _validate.fail("monotone", self.monotone, "True or False", "flag")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVectorMechanism:
    """Answer one query after another, with noise: is it above its threshold? Stop after `answers` positive answers.

    The threshold's noise is drawn afresh after each query that was above. Source: Dwork and Roth 2014,
    section 3.6; Lyu, Su and Li 2017 for the monotone variant and for what variants get wrong;
    docs/explanation/selection.md#sparse-vector.

    Args:
        threshold_scale: > 0, of the Laplace noise on the threshold, in the queries' unit.
        query_scale: > 0, of the Laplace noise on each query, likewise. Both at most 2**55 steps of the grid.
        answers: >= 1, how many queries may be found above.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    threshold_scale: float
    query_scale: float
    answers: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "threshold_scale", _validate.positive("threshold_scale", self.threshold_scale, "queries")
        )
        object.__setattr__(self, "query_scale", _validate.positive("query_scale", self.query_scale, "queries"))
        object.__setattr__(self, "answers", _validate.count("answers", self.answers, "queries above"))

    def event(self, sensitivity: QueryChange, adjacency: Adjacency) -> PureEvent | Repeated:
        """The event of a whole run, for any number of queries: one pure event for each positive answer.

        Its epsilon is change / threshold_scale + 2 change / query_scale (1 change for monotone queries), rounded up.
        """
        sides = 1 if sensitivity.monotone else 2
        loss = 1 / Fraction(self.threshold_scale) + sides / Fraction(self.query_scale)
        one = PureEvent(epsilon=float_up(Fraction(sensitivity.largest) * loss, "epsilon", "nats"), adjacency=adjacency)
        return one if self.answers == 1 else Repeated(one, count=self.answers)

    @passes("choice")
    def start(self, grid: Grid, source: RandomSource) -> "SparseVectorRun":
        """A run; it costs the whole event, which must be charged before it starts.

        Raises:
            InvalidParameter: a grid of several columns, or a scale above 2**55 of its steps.
        """
        require_fit((self.threshold_scale,), grid)
        require_fit((self.query_scale,), grid)
        return SparseVectorRun(mechanism=self, grid=grid, source=source)


@final
class SparseVectorRun(Uncopied):
    """The state of one run: secret threshold noise, and how many answers are left. It cannot be copied or pickled.

    Calls from several threads are answered one at a time; a forked child's are refused.
    """

    __slots__ = ("_grid", "_left", "_lock", "_mechanism", "_noise", "_owner", "_source")

    def __init__(self, *, mechanism: SparseVectorMechanism, grid: Grid, source: RandomSource) -> None:
        self._mechanism, self._grid, self._source = mechanism, grid, source
        self._left = mechanism.answers
        self._noise = self._draw(mechanism.threshold_scale)
        self._lock, self._owner = threading.Lock(), os.getpid()

    @property
    def answers_left(self) -> int:
        """The number of positive answers that are left; 0 when the run is over."""
        return self._left

    @passes("choice")
    def above(self, query: int, threshold: int) -> bool:
        """Returns whether query + noise >= threshold + its noise.

        Args:
            query: a whole number of grid steps: the exact value on the data. Chosen by released answers at will.
            threshold: likewise, public; each query may have its own.

        Raises:
            InvalidParameter: not whole numbers.
            DrawRefused: the answers are used up, or the process is another than the one that started the run.
        """
        statistic, bound = _whole("query", query), _whole("threshold", threshold)
        if self._owner != os.getpid():
            raise DrawRefused("this run was started in another process, which may still use it: start a new run")
        with self._lock:
            if not self._left:
                raise DrawRefused(f"all {self._mechanism.answers} answers of this run were given: pay for another")
            is_above = statistic + self._draw(self._mechanism.query_scale) >= bound + self._noise
            if is_above:
                self._left -= 1
                self._noise = self._draw(self._mechanism.threshold_scale) if self._left else 0
            return is_above

    def _draw(self, scale: float) -> int:
        return unbounded_noise(scale, self._grid, standard_laplace(), self._source)

    def _uncopied(self) -> str:
        return (
            "a run of the sparse vector technique cannot be copied or pickled: two holders of one threshold noise "
            "would answer twice what was paid for once; start another run"
        )


def _whole(name: str, value: object) -> int:
    """Looks at the type only."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _validate.fail(f"{name} type", type(value).__name__, "a whole number", "grid steps")
    return int(value)
