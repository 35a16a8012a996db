"""Every visible case of an audit: what must be bounded well, what must be caught, what must not be accused.

A case has a mechanism, a pair of data sets, what is claimed of it and the exact loss of that pair
(`benchmarks.auditing_truths`). `BOUNDS` are the mechanisms that peers were measured on, `CATCH` is D1 to D18, `NULL`
(`benchmarks.auditing_nulls`) are right mechanisms, `near_miss` is an almost right one.
"""

import functools
import math

from benchmarks import auditing_samplers as draw
from benchmarks import auditing_truths as exact
from benchmarks.auditing_kinds import (
    ANSWERS,
    AVERAGED,
    DELTA,
    HALVES,
    INFINITE,
    NONE,
    ONE,
    SPREAD,
    TIGHT,
    A,
    Case,
    array,
    chosen,
    constant,
    pure,
    sparse,
    utilities,
)
from benchmarks.auditing_nulls import GAUSS_OK, NULL, SVT1
from ledgerwood import GaussianEvent, LaplaceEvent

__all__ = ("BOUNDS", "CATCH", "NULL", "Case", "near_miss")


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
HALF_SCALE = Case(
    name="laplace_halfscale", words="Laplace noise of half the scale", sampler=draw.laplace(0.5), pair=(NONE, ONE),
    claim=LaplaceEvent(noise_multiplier=1.0, adjacency=A), loss=constant(2.0), seen_by=("replay",),
)  # fmt: skip
FLOAT_LAPLACE = Case(
    name="laplace_fp", words="inverse of the distribution function, in floats", sampler=draw.inverse_laplace,
    pair=(NONE, ONE), claim=pure(1.0), loss=INFINITE, numeric="bitwise",
)  # fmt: skip
SVT3 = Case(
    name="svt3", words="sparse vector, Algorithm 3: releases the answer that it compared",
    sampler=draw.sparse_vector_with_answer, pair=ANSWERS, claim=pure(1.0),
    loss=functools.partial(exact.released_answer_epsilon, ANSWERS),
)  # fmt: skip
SVT4 = Case(
    name="svt4", words="sparse vector, Algorithm 4: noise of queries without the factor 2",
    sampler=draw.sparse_vector(4.0, 4.0 / 3.0, 1), pair=ANSWERS, claim=pure(1.0),
    loss=functools.partial(sparse, ANSWERS, exact.first_above, 4.0, 4.0 / 3.0),
)  # fmt: skip
SVT5 = Case(
    name="svt5", words="sparse vector, Algorithm 5: queries without noise", sampler=draw.sparse_vector(2.0, 0.0, None),
    pair=HALVES, claim=pure(1.0), loss=functools.partial(sparse, HALVES, exact.every_pattern, 2.0, 0.0),
)  # fmt: skip
SVT6 = Case(
    name="svt6", words="sparse vector, Algorithm 6: no cut-off", sampler=draw.sparse_vector(2.0, 2.0, None),
    pair=SPREAD, claim=pure(1.0), loss=functools.partial(sparse, SPREAD, exact.every_pattern, 2.0, 2.0),
)  # fmt: skip
NOISY_AVERAGE = Case(
    name="noisyavg", words="average with an exact count, in the mean and in the noise's scale",
    sampler=draw.average_of_exact_count, pair=AVERAGED, claim=pure(1.0), loss=INFINITE,
    seen_by=("check_sensitivity", "replay"),
)  # fmt: skip
EXPMECH = Case(
    name="expmech", words="exponential mechanism with a third of its sensitivity", sampler=draw.exponential_mechanism,
    pair=utilities(3.0), claim=pure(1.0), loss=functools.partial(chosen, utilities(3.0)),
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
        name="noisy_max_value", words="report noisy max that returns the value",
        pair=(array(*[1.0] * 5), array(*[0.0] * 5)),
        sampler=draw.noisy_max("laplace", value=True), claim=pure(1.0), loss=constant(2.5), seen_by=("replay",),
    ),
    "D12": Case(
        name="double_spending", words="two sums charged as one, Laplace", sampler=draw.laplace_twice,
        pair=(NONE, ONE), claim=LaplaceEvent(noise_multiplier=1.0, adjacency=A), loss=constant(2.0),
        seen_by=("replay",),
    ),
    "D12 normal": Case(
        name="double_spending_normal", words="two sums charged as one, normal",
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
