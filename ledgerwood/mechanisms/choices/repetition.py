"""Private selection by repetition: run a private computation a secret, random number of times; release the best run.

Source: Papernot and Steinke 2022, Theorems 2 and 6; privacy cost: docs/explanation/events.md#selection;
sampler: #run-counts.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar, final

from ledgerwood import _validate
from ledgerwood.accounting.events import Event, PoissonSelection, RepeatedSelection
from ledgerwood.accounting.events.choices.selection import log_mean_runs, runs_mean, runs_shape, runs_stopping_rate
from ledgerwood.errors import RunFailed
from ledgerwood.mechanisms.exact import integer_laws
from ledgerwood.mechanisms.exact.integer_laws import Inversion, RunCounts
from ledgerwood.mechanisms.exact.randomness import RandomSource
from ledgerwood.recording.points import passes

T = TypeVar("T")
Run = Callable[[RandomSource], tuple[float, T]]
"""One run: (score, output), all of it private at the cost of one run's event. It keeps nothing for other runs."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedSelectionMechanism:
    """Select the best of K runs; K >= 1 is truncated negative binomial: geometric at shape 1, logarithmic at shape 0.

    Args:
        shape: eta, in (-1, 100].
        stopping_rate: gamma, in [1e-9, 1): the smaller, the more runs.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    shape: float
    stopping_rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", runs_shape(self.shape))
        object.__setattr__(self, "stopping_rate", runs_stopping_rate(self.stopping_rate))

    @classmethod
    def of_mean(cls, mean: float, *, shape: float = 0.0) -> "RepeatedSelectionMechanism":
        """Returns the mechanism whose expected number of runs is `mean`, to a relative 1e-9 or so; mean > 1.

        Raises:
            InvalidParameter: no stopping rate in [1e-9, 1 - 1e-9] has that mean at that shape.
        """
        shape, target = runs_shape(shape), math.log(_validate.positive("mean", mean, "runs"))
        low, high = math.log(1e-9), math.log1p(-1e-9)  # more runs at the lower end
        if not log_mean_runs(shape, math.exp(high)) <= target <= log_mean_runs(shape, 1e-9):
            most = math.exp(log_mean_runs(shape, 1e-9))
            raise _validate.fail("mean", mean, f"above 1, and at most {most:.6g} at shape {shape}", "runs")
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if log_mean_runs(shape, math.exp(middle)) > target else (low, middle)
        return cls(shape=shape, stopping_rate=math.exp(high))

    @property
    def mean_runs(self) -> float:
        """The expected number of runs."""
        return math.exp(log_mean_runs(self.shape, self.stopping_rate))

    def event(self, one_run: Event) -> RepeatedSelection:
        """The event of the whole selection, if `one_run` is the event of (score, output) of one run."""
        return RepeatedSelection(one_run, shape=self.shape, stopping_rate=self.stopping_rate)

    @passes("choice")
    def select(self, run: Run[T], source: RandomSource) -> tuple[float, T]:
        """The best run's (score, output); how many runs there were, and the others, are forgotten.

        Scores are compared as float64, NaN as -inf; of equal ones the earliest run is taken
        (docs/explanation/events.md#selection-order). The time that it takes grows with the number of runs.

        Args:
            run: called with `source`, once a run.
            source: random words; of the number of runs first.

        Raises:
            RunFailed: a run raised, or returned no (number, output). The budget is spent, nothing is released.
        """
        best = _best_of(RunCounts(self.shape, self.stopping_rate).draw(source), run, source)
        if isinstance(best, str):
            raise _failure()
        return best


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSelectionMechanism:
    """Select the best of K runs; K has a Poisson distribution, and may be 0.

    Args:
        mean: the expected number of runs, in [1e-9, 1e9].

    Raises:
        InvalidParameter: a value outside its bound.
    """

    mean: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", runs_mean(self.mean))

    def event(self, one_run: Event) -> PoissonSelection:
        """The event of the whole selection, if `one_run` is the event of (score, output) of one run."""
        return PoissonSelection(one_run, mean=self.mean)

    @passes("choice")
    def select(self, run: Run[T], source: RandomSource) -> tuple[float, T] | None:
        """Select as `RepeatedSelectionMechanism.select`; None if no run was made, which is part of the release."""
        law = Inversion(functools.partial(integer_laws.poisson, self.mean))
        best = _best_of(int(law.draw(1, source)[0]), run, source)
        if isinstance(best, str):
            if best == "failed":
                raise _failure()
            return None
        return best


def selection_of(event: RepeatedSelection | PoissonSelection) -> RepeatedSelectionMechanism | PoissonSelectionMechanism:
    """Returns the mechanism whose event this is; the event of a run does not matter."""
    match event:
        case RepeatedSelection():
            return RepeatedSelectionMechanism(shape=event.shape, stopping_rate=event.stopping_rate)
        case PoissonSelection():
            return PoissonSelectionMechanism(mean=event.mean)


def _best_of(count: int, run: Run[T], source: RandomSource) -> tuple[float, T] | Literal["none", "failed"]:
    """Says that a run failed by its return: an error raised here would carry the runs before it in its traceback."""
    best: tuple[float, T] | Literal["none"] = "none"
    for _ in range(count):
        try:
            number, output = run(source)
            score = float(number)
        except Exception:  # noqa: BLE001 - what a run says when it fails is not paid for
            return "failed"
        if math.isnan(score):
            score = -math.inf
        if isinstance(best, str) or score > best[0]:
            best = (score, output)
    return best


def _failure() -> RunFailed:
    return RunFailed("a run of a private selection failed: nothing is released, and its budget is spent")
