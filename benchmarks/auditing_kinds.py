"""What a case of an audit is, and the pairs that many of them share."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks import auditing_samplers as draw
from benchmarks import auditing_truths as exact
from benchmarks.auditing_samplers import Sampler
from ledgerwood import Adjacency, Budget
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.verification.auditing import Claim

Numeric = Literal["ideal", "bitwise"]
Pair = tuple[FloatArray, FloatArray]
A = Adjacency.ADD_REMOVE
DELTA = 1e-5
INFINITE = functools.partial(float, "inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One mechanism on one pair.

    Args:
        name: unique, as tables show it.
        words: what is claimed, and what is wrong with it.
        sampler: `sampler(dataset, n, rng)`, outputs of shape (n,) or (n, ...).
        pair: the two data sets.
        claim: what is promised of the mechanism for every pair.
        loss: computes the exact epsilon of this pair at `delta`.
        delta: at which epsilon is stated.
        numeric: "bitwise" where outputs are audited as the floats that they are.
        seen_by: other detectors that see it.
        runs: outputs of each data set, where drawing more takes too long.
        exact: whether `loss` is the pair's own; else it is what the claim allows.
    """

    name: str
    words: str
    sampler: Sampler
    pair: Pair
    claim: Claim
    loss: Callable[[], float]
    delta: float = 0.0
    numeric: Numeric = "ideal"
    seen_by: tuple[str, ...] = ()
    runs: int | None = None
    exact: bool = True

    @property
    def truth(self) -> float:
        """The exact epsilon of the pair at `delta`, in nats."""
        return self.loss()


def array(*values: float) -> FloatArray:
    """A data set of these rows."""
    return np.array(values, dtype=np.float64)


def constant(value: float) -> Callable[[], float]:
    """A loss that is known without computing."""
    return lambda: value


def pure(epsilon: float) -> Budget:
    """A claim of epsilon without delta."""
    return Budget(epsilon=epsilon, delta=0.0, adjacency=A)


NONE, ONE = array(0.0), array(1.0)
ANSWERS = (array(*[0.0] * 9, 1.0), array(*[1.0] * 9, 0.0))
TWO_ABOVE = (array(*[0.0] * 8, 1.0, 1.0), array(*[1.0] * 8, 0.0, 0.0))
HALVES = (array(*[0.0] * 5, *[1.0] * 5), array(*[1.0] * 5, *[0.0] * 5))
SPREAD = (np.zeros(10), array(*[1.0] * 5, *[-1.0] * 5))
AVERAGED = (array(1.0), array(1.0, 0.0))
TIGHT = 1.0 / exact.gaussian_mu(1.0, DELTA)
"""Stddev of the Gaussian mechanism that is tight at epsilon 1, delta 1e-5: 3.7306."""


def utilities(change: float, candidates: int = 10, behind: float = 0.0) -> Pair:
    """The first one `behind` the others, who are alike; then it goes up by `change`, and the others down by as much."""
    base = np.zeros(candidates)
    base[0] = -behind
    moved = np.full(candidates, -change)
    moved[0] = change
    return base, base + moved


def chosen(pair: Pair) -> float:
    """Epsilon of the exponential mechanism on utilities."""
    return exact.log_ratio(*(draw.exponential_law(part) for part in pair))


def sparse(pair: Pair, law: Callable[..., FloatArray], threshold_scale: float, query_scale: float) -> float:
    """Epsilon of a sparse vector technique whose outputs have this law."""
    return exact.log_ratio(*(law(answers, threshold_scale, query_scale) for answers in pair))
