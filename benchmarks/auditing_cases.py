"""Every visible case of an audit: what must be bounded well, what must be caught, what must not be accused.

A case has a mechanism, a pair of data sets, what is claimed of it and the exact loss of that pair
(`benchmarks.auditing_truths`). `BOUNDS` are the mechanisms that peers were measured on, `CATCH` is D1 to D18, `NULL`
are right mechanisms: none of them may be refuted more often than its level allows.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks import auditing_samplers as draw
from benchmarks import auditing_truths as exact
from benchmarks.auditing_samplers import Sampler
from ledgerwood import (
    Adjacency,
    Budget,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
    PoissonSampled,
    PureEvent,
    RandomizedResponseEvent,
    Repeated,
)
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


def _utilities(change: float, candidates: int = 10, behind: float = 0.0) -> Pair:
    """The first one `behind` the others, who are alike; then it goes up by `change`, and the others down by as much."""
    base = np.zeros(candidates)
    base[0] = -behind
    moved = np.full(candidates, -change)
    moved[0] = change
    return base, base + moved


def _chosen(pair: Pair) -> float:
    return exact.log_ratio(*(draw.exponential_law(part) for part in pair))


def _sparse(pair: Pair, law: Callable[..., FloatArray], threshold_scale: float, query_scale: float) -> float:
    return exact.log_ratio(*(law(answers, threshold_scale, query_scale) for answers in pair))


def near_miss(factor: float) -> Case:
    """Laplace noise of scale 1 / factor, for 1: an almost right mechanism."""
    return Case(
        name=f"laplace_{factor:g}", words=f"noise {factor:g} times too small", sampler=draw.laplace(1.0 / factor),
        pair=(NONE, ONE), claim=LaplaceEvent(noise_multiplier=1.0, adjacency=A), loss=constant(factor),
    )  # fmt: skip


# --------------------------------------------------------------------------------------------- bounds, beside peers

LAPLACE_OK = Case(
    name="laplace_ok", words="Laplace noise, right", sampler=draw.laplace(1.0), pair=(NONE, ONE),
    claim=LaplaceEvent(noise_multiplier=1.0, adjacency=A), loss=constant(1.0),
)  # fmt: skip
GAUSS_OK = Case(
    name="gauss_ok", words="normal noise, exactly tight at (1, 1e-5)", sampler=draw.gaussian(TIGHT), pair=(NONE, ONE),
    claim=GaussianEvent(noise_multiplier=TIGHT, adjacency=A), loss=constant(1.0), delta=DELTA,
)  # fmt: skip
HALF_SCALE = Case(
    name="laplace_halfscale", words="Laplace noise of half the scale", sampler=draw.laplace(0.5), pair=(NONE, ONE),
    claim=LaplaceEvent(noise_multiplier=1.0, adjacency=A), loss=constant(2.0), seen_by=("replay",),
)  # fmt: skip
FLOAT_LAPLACE = Case(
    name="laplace_fp", words="inverse of the distribution function, in floats", sampler=draw.inverse_laplace,
    pair=(NONE, ONE), claim=pure(1.0), loss=INFINITE, numeric="bitwise",
)  # fmt: skip
SVT1 = Case(
    name="svt1", words="sparse vector, Algorithm 1, right", sampler=draw.sparse_vector(2.0, 4.0, 1), pair=ANSWERS,
    claim=pure(1.0), loss=functools.partial(_sparse, ANSWERS, exact.first_above, 2.0, 4.0),
)  # fmt: skip
SVT3 = Case(
    name="svt3", words="sparse vector, Algorithm 3: releases the answer that it compared",
    sampler=draw.sparse_vector_with_answer, pair=ANSWERS, claim=pure(1.0),
    loss=functools.partial(exact.released_answer_epsilon, ANSWERS),
)  # fmt: skip
SVT4 = Case(
    name="svt4", words="sparse vector, Algorithm 4: noise of queries without the factor 2",
    sampler=draw.sparse_vector(4.0, 4.0 / 3.0, 1), pair=ANSWERS, claim=pure(1.0),
    loss=functools.partial(_sparse, ANSWERS, exact.first_above, 4.0, 4.0 / 3.0),
)  # fmt: skip
SVT5 = Case(
    name="svt5", words="sparse vector, Algorithm 5: queries without noise", sampler=draw.sparse_vector(2.0, 0.0, None),
    pair=HALVES, claim=pure(1.0), loss=functools.partial(_sparse, HALVES, exact.every_pattern, 2.0, 0.0),
)  # fmt: skip
SVT6 = Case(
    name="svt6", words="sparse vector, Algorithm 6: no cut-off", sampler=draw.sparse_vector(2.0, 2.0, None),
    pair=SPREAD, claim=pure(1.0), loss=functools.partial(_sparse, SPREAD, exact.every_pattern, 2.0, 2.0),
)  # fmt: skip
NOISY_AVERAGE = Case(
    name="noisyavg", words="average with an exact count, in the mean and in the noise's scale",
    sampler=draw.average_of_exact_count, pair=AVERAGED, claim=pure(1.0), loss=INFINITE,
    seen_by=("check_sensitivity", "replay"),
)  # fmt: skip
EXPMECH = Case(
    name="expmech", words="exponential mechanism with a third of its sensitivity", sampler=draw.exponential_mechanism,
    pair=_utilities(3.0), claim=pure(1.0), loss=functools.partial(_chosen, _utilities(3.0)),
    seen_by=("check_sensitivity", "replay"),
)  # fmt: skip
BOUNDS = (
    LAPLACE_OK, GAUSS_OK, HALF_SCALE, FLOAT_LAPLACE, SVT1, SVT3, SVT4, SVT5, SVT6, NOISY_AVERAGE, EXPMECH,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------ what must be caught

CLASSICAL = exact.classical_stddev(10.0, DELTA)
CLAIMED_AT_10 = 1.0 / exact.gaussian_mu(10.0, DELTA)

CATCH: dict[str, Case] = {
    "D1": HALF_SCALE,
    "D2": NOISY_AVERAGE,
    "D3": SVT3,
    "D4": SVT4,
    "D5": SVT5,
    "D6": SVT6,
    "D7": EXPMECH,
    "D8": FLOAT_LAPLACE,
    "D9 Laplace": Case(
        name="numpy_laplace", words="numpy's Laplace noise, released as it is", sampler=draw.laplace(1.0),
        pair=(NONE, ONE), claim=pure(1.0), loss=INFINITE, numeric="bitwise",
    ),
    "D9 normal": Case(
        name="numpy_normal", words="numpy's normal noise, released as it is", sampler=draw.gaussian(TIGHT),
        pair=(NONE, ONE), claim=GaussianEvent(noise_multiplier=TIGHT, adjacency=A), loss=INFINITE, delta=DELTA,
        numeric="bitwise",
    ),
    # (10, 1e-5) itself cannot be refuted from samples: delta(10) is below 1e-4 under the mechanism as well. What can be
    # is the Gaussian mechanism that is tight there, which is what an accountant composes who trusts the formula.
    "D10": Case(
        name="classical_gaussian",
        words="stddev sqrt(2 log(1.25 / delta)) / epsilon at epsilon 10, claimed to be tight at (10, 1e-5)",
        sampler=draw.gaussian(CLASSICAL), pair=(NONE, ONE),
        claim=GaussianEvent(noise_multiplier=CLAIMED_AT_10, adjacency=A),
        loss=lambda: exact.gaussian_epsilon(1.0 / CLASSICAL, DELTA), delta=DELTA,
    ),
    "D11": Case(
        name="noisy_max_value", words="report noisy max that returns the value", pair=(np.ones(5), np.zeros(5)),
        sampler=draw.noisy_max("laplace", value=True), claim=pure(1.0), loss=constant(2.5), seen_by=("replay",),
    ),
    "D12": Case(
        name="double_spending", words="two sums at the price of one, Laplace", sampler=draw.laplace_twice,
        pair=(NONE, ONE), claim=LaplaceEvent(noise_multiplier=1.0, adjacency=A), loss=constant(2.0),
        seen_by=("replay",),
    ),
    "D12 normal": Case(
        name="double_spending_normal", words="two sums at the price of one, normal",
        sampler=draw.gaussians(TIGHT, 2), pair=(NONE, ONE), claim=GaussianEvent(noise_multiplier=TIGHT, adjacency=A),
        loss=lambda: exact.gaussian_epsilon(math.sqrt(2.0) / TIGHT, DELTA), delta=DELTA, seen_by=("replay",),
    ),
    "D13": Case(
        name="nan_clipped", words="NaN passes np.clip", sampler=draw.clipped_sum_of_nan,
        pair=(array(0.5, 0.5), array(0.5, 0.5, math.nan)), claim=pure(1.0), loss=INFINITE,
        seen_by=("check_sensitivity", "replay"),
    ),
    "D14": Case(
        name="classes_of_the_data", words="bins for the classes that the data have", sampler=draw.classes_of_the_data,
        pair=(array(0, 0, 1, 1), array(0, 0, 1, 1, 2)), claim=pure(1.0), loss=INFINITE, seen_by=("replay",),
    ),
    "D15": Case(
        name="clipped_copy", words="clips a copy, sums the raw rows", sampler=draw.clipped_copy,
        pair=(array(0.5, 0.5), array(0.5, 0.5, 1e6)), claim=pure(1.0), loss=constant(1e6),
        seen_by=("check_sensitivity", "replay"),
    ),
    "D16": Case(
        name="range_of_one_bound", words="sensitivity from the lower bound twice: 0", sampler=draw.range_of_one_bound,
        pair=(array(40.0), array(40.0, 60.0)), claim=pure(1.0), loss=INFINITE, seen_by=("check_sensitivity", "replay"),
    ),
    "D17": Case(
        name="histogram_scale", words="noise of scale epsilon, for 1 / epsilon; epsilon .2",
        sampler=draw.histogram_of_wrong_scale(0.2), pair=(array(0, 1), array(0, 1, 1)), claim=pure(0.2),
        loss=constant(5.0), seen_by=("replay",),
    ),
    "D18": Case(
        name="clip_doubled", words="rows clipped at twice the norm that the noise is for", sampler=draw.gaussian(TIGHT),
        pair=(NONE, array(2.0)), claim=GaussianEvent(noise_multiplier=TIGHT, adjacency=A),
        loss=lambda: exact.gaussian_epsilon(2.0 / TIGHT, DELTA), delta=DELTA, seen_by=("check_sensitivity", "replay"),
    ),
}  # fmt: skip


# --------------------------------------------------------------------------------------------- what must not be accused


def _odometer() -> float:
    """What SmartNoise's odometer says of 50 queries at .1 each with its missing logarithm (issue 621): its other terms.

    Kairouz, Oh and Viswanath 2015, Theorem 3.4: the least of three bounds, of which the third is broken and far too
    large, so that the second is left.
    """
    count, epsilon = 50, 0.1
    drift = count * epsilon * math.expm1(epsilon) / (math.exp(epsilon) + 1.0)
    middle = drift + epsilon * math.sqrt(2.0 * count * math.log(math.e + epsilon * math.sqrt(count) / DELTA))
    broken = drift + epsilon * math.sqrt(2.0 * count / DELTA)
    return min(count * epsilon, middle, broken)


SAMPLED_STDDEV, SAMPLED_RATE = 1.0, 0.1
COMPOSED = 50
COMPOSED_STDDEV = TIGHT * math.sqrt(COMPOSED)
CROSSED = (array(1.0, 0.0, 0.0, 0.0, 0.0), array(0.0, 1.0, 1.0, 1.0, 1.0))

NULL: tuple[Case, ...] = (
    Case(
        name="discrete_laplace", words="exact discrete Laplace on a count", sampler=draw.discrete_laplace,
        pair=(NONE, ONE), claim=DiscreteLaplaceEvent(scale=1.0, sensitivity=1, adjacency=A), loss=constant(1.0),
        numeric="bitwise",
    ),
    Case(
        name="grid_laplace", words="exact Laplace rounded to multiples of 2^-30", sampler=draw.grid_laplace,
        pair=(NONE, ONE), claim=LaplaceEvent(noise_multiplier=1.0, adjacency=A), loss=constant(1.0),
        numeric="bitwise",
    ),
    GAUSS_OK,
    SVT1,
    Case(
        name="svt2", words="sparse vector, Algorithm 2, cut-off 2", sampler=draw.sparse_vector_fresh(4.0, 8.0, 2),
        pair=TWO_ABOVE, claim=pure(1.0), loss=functools.partial(_sparse, TWO_ABOVE, exact.two_above, 4.0, 8.0),
    ),
    Case(
        name="noisy_max_laplace", words="place of the noisy maximum, Laplace", sampler=draw.noisy_max("laplace"),
        pair=CROSSED, claim=pure(1.0),
        loss=lambda: exact.log_ratio(*(exact.largest_index(part, "laplace") for part in CROSSED)),
    ),
    Case(
        name="noisy_max_exponential", words="place of the noisy maximum, exponential",
        sampler=draw.noisy_max("exponential"), pair=CROSSED, claim=pure(1.0),
        loss=lambda: exact.log_ratio(*(exact.largest_index(part, "exponential") for part in CROSSED)),
    ),
    *(
        Case(
            name=f"exponential_{candidates}", words=f"exponential mechanism, {candidates} candidates",
            sampler=draw.exponential_mechanism, pair=_utilities(1.0, candidates, behind), claim=pure(1.0),
            loss=functools.partial(_chosen, _utilities(1.0, candidates, behind)),
        )
        for candidates, behind in ((2, 6.0), (10, 2.0), (1000, 0.0))
    ),
    Case(
        name="randomised_response", words="randomised response, 4 categories", sampler=draw.randomised_response(4, 1.0),
        pair=(array(0), array(1)),
        claim=RandomizedResponseEvent(epsilon=1.0, categories=4, adjacency=Adjacency.REPLACE_ONE), loss=constant(1.0),
    ),
    Case(
        name="truncated_geometric", words="discrete Laplace count, clamped to [0, 10]",
        sampler=draw.truncated_geometric(10), pair=(NONE, ONE), claim=PureEvent(epsilon=1.0, adjacency=A),
        loss=lambda: exact.log_ratio(exact.clamped_geometric(0, 10), exact.clamped_geometric(1, 10)),
    ),
    Case(
        name="noisy_average", words="noisy sum over noisy count", sampler=draw.noisy_average,
        pair=(array(1.0), array(1.0, 1.0)), claim=Repeated(LaplaceEvent(noise_multiplier=2.0, adjacency=A), count=2),
        loss=lambda: exact.noisy_average_epsilon((array(1.0), array(1.0, 1.0))),
    ),
    Case(
        name="fifty_normals", words="50 sums with normal noise, tight at (1, 1e-5) together",
        sampler=draw.gaussians(COMPOSED_STDDEV, COMPOSED), pair=(NONE, ONE),
        claim=Repeated(GaussianEvent(noise_multiplier=COMPOSED_STDDEV, adjacency=A), count=COMPOSED),
        loss=constant(1.0), delta=DELTA,
    ),
    Case(
        name="sampled_normal", words="Poisson-sampled normal noise, rate .1",
        sampler=draw.sampled_gaussian(SAMPLED_STDDEV, SAMPLED_RATE), pair=(np.zeros(0), ONE),
        claim=PoissonSampled(GaussianEvent(noise_multiplier=SAMPLED_STDDEV, adjacency=A), sampling_rate=SAMPLED_RATE),
        loss=lambda: exact.sampled_gaussian_epsilon(SAMPLED_STDDEV, SAMPLED_RATE, DELTA), delta=DELTA,
    ),
    Case(
        name="odometer", words="50 Laplace sums, claimed is SmartNoise's odometer (issue 621): it says too much",
        sampler=draw.laplaces(10.0, 50), pair=(NONE, ONE), claim=Budget(epsilon=_odometer(), delta=DELTA, adjacency=A),
        loss=lambda: exact.laplaces_epsilon(10.0, 50, DELTA), delta=DELTA,
    ),
)  # fmt: skip
