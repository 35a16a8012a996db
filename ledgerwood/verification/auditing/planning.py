"""Planning of audits: the number of runs or canaries that an audit needs, by each bound at its expected counts.

These are forecasts, not bounds: half of the audits will find less (or a share `power` at least as much).
Nothing here reads data. docs/explanation/auditing.md#planning.
"""

import math
from collections.abc import Callable
from typing import Literal, get_args

from scipy import optimize, special

from ledgerwood import _validate
from ledgerwood.accounting.costs import gdp
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing.claims import epsilon_of, mu_from_counts, mu_from_means
from ledgerwood.verification.auditing.counts import clopper_pearson, randomised_labels
from ledgerwood.verification.auditing.one_run import Pair, one_run, one_run_mu
from ledgerwood.verification.auditing.result import level, small_probability
from ledgerwood.verification.auditing.score_test import score
from ledgerwood.verification.auditing.sequential import anytime

Counted = Literal["clopper_pearson", "randomised_labels", "score", "anytime"]
"""Bounds from counts of one event."""
FromCanaries = Literal["mean", "median", "one_run", "one_run_mu"]
"""Bounds from canaries with Gaussian scores. "mean" and "median" assume Gaussian noise, "one_run_mu" too."""

_SIZES = 20
"""Numbers of guesses that are tried, from half of the canaries down."""
_MOST = 10**12
_MOST_CANARIES = 10**7


def expected_epsilon(
    runs: int,
    *,
    with_row: float,
    without: float,
    delta: float,
    alpha: float,
    statistic: Counted = "randomised_labels",
    power: float = 0.5,
) -> float:
    """The lower bound that `runs` runs should give; at least this much in about a share `power` of all audits.

    Args:
        runs: the runs of both labels together; half of each.
        with_row, without: the event's probability with the row and without it.
        delta: at which epsilon is bounded.
        alpha: one-sided error.
        statistic: the bound.
        power: the probability of success, in (0, 1); other than one half by the normal distribution of the log ratio
            of both rates.

    Source: docs/explanation/auditing.md#planning.
    """
    runs = _validate.count("runs", runs, "runs", minimum=2)
    p1, p2 = _validate.rate("with_row", with_row, "probability"), small_probability("without", without)
    return _at_counts(runs, p1, p2, small_probability("delta", delta), level(alpha), _known(statistic), _power(power))


def samples_for(
    epsilon: float,
    *,
    with_row: float,
    without: float,
    delta: float,
    alpha: float,
    statistic: Counted = "randomised_labels",
    power: float = 0.5,
) -> int:
    """Runs of both labels together that should show `epsilon`: a gap below the truth, or a claim to be refused.

    Other arguments as for `expected_epsilon`.

    Raises:
        InvalidParameter: the event's probabilities do not show so much with any number of runs.

    Source: docs/explanation/auditing.md#planning.
    """
    epsilon = _validate.non_negative("epsilon", epsilon, "nats")
    p1, p2 = _validate.rate("with_row", with_row, "probability"), small_probability("without", without)
    delta, alpha, statistic, quantile = (
        small_probability("delta", delta),
        level(alpha),
        _known(statistic),
        _power(power),
    )
    limit = math.inf if p2 == 0.0 and p1 > delta else math.log((p1 - delta) / p2) if p1 > delta else -math.inf
    if epsilon >= limit:
        raise InvalidParameter(
            f"epsilon={epsilon!r} must be below {max(limit, 0.0):.6g}, which the event's probabilities "
            f"{p1!r} and {p2!r} have at delta={delta!r} (unit: nats)"
        )

    def shown(runs: int) -> float:
        return _at_counts(runs, p1, p2, delta, alpha, statistic, quantile)

    return _least("epsilon", epsilon, shown, 2, _MOST, "runs")


def least_samples(*, delta: float, alpha: float, statistic: Counted = "randomised_labels") -> int:
    """Runs, half of each label, below which even an event that always tells the label gives no bound above 0."""
    delta, alpha, statistic = small_probability("delta", delta), level(alpha), _known(statistic)
    return _least("epsilon", 0.0, lambda n: _at_counts(n, 1.0, 0.0, delta, alpha, statistic, 0.0), 2, _MOST, "runs")


def require_samples(runs: int, *, delta: float, alpha: float, statistic: Counted = "randomised_labels") -> None:
    """Refuse a number of runs from which no positive bound can be expected, for any mechanism.

    Raises:
        InvalidParameter: with the number that is needed.
    """
    runs = _validate.count("runs", runs, "runs", minimum=0)
    needed = least_samples(delta=delta, alpha=alpha, statistic=statistic)
    if runs < needed:
        raise InvalidParameter(
            f"{runs} runs are too few for any bound at alpha={alpha!r} and delta={delta!r}: "
            f"at least {needed} are needed (unit: runs)"
        )


def expected_mu(mu: float, canaries: int, delta: float, alpha: float) -> float:
    """Epsilon at `delta` that the mean of Gaussian scores should show; half of the canaries are included.

    Source: docs/explanation/auditing.md#planning.
    """
    return _from_canaries("mean", _mu(mu), _canaries(canaries), small_probability("delta", delta), level(alpha))


def expected_one_run(mu: float, canaries: int, delta: float, alpha: float) -> float:
    """Epsilon at `delta` that `one_run_scores` should show with `planned_pair`; scores are N(0, 1) and N(mu, 1).

    Source: docs/explanation/auditing.md#planning.
    """
    return _from_canaries("one_run", _mu(mu), _canaries(canaries), small_probability("delta", delta), level(alpha))


def planned_pair(mu: float, canaries: int, delta: float, alpha: float) -> Pair:
    """Plans the numbers of guesses of each kind, for scores that are N(0, 1) and N(mu, 1).

    It looks at nothing but these four numbers, so that `one_run_scores(grid=[...])` needs no correction for a choice.

    Source: docs/explanation/auditing.md#planning.
    """
    return _planned("one_run", _mu(mu), _canaries(canaries), small_probability("delta", delta), level(alpha))[0]


def expected_canaries(mu: float, canaries: int, *, delta: float, alpha: float, statistic: FromCanaries) -> float:
    """Epsilon at `delta` that a statistic of canaries should show; their scores are N(0, 1) and N(mu, 1)."""
    if statistic not in get_args(FromCanaries):
        raise _validate.fail("statistic", statistic, f"one of {get_args(FromCanaries)}", "statistic")
    return _from_canaries(statistic, _mu(mu), _canaries(canaries), small_probability("delta", delta), level(alpha))


def canaries_for(epsilon: float, *, mu: float, delta: float, alpha: float, statistic: FromCanaries) -> int:
    """Canaries, each included by a fair coin, of one run that should show `epsilon` at `delta`.

    Raises:
        InvalidParameter: no number of canaries up to 10^7 would.

    Source: docs/explanation/auditing.md#planning.
    """
    epsilon, mu = _validate.non_negative("epsilon", epsilon, "nats"), _mu(mu)
    delta, alpha = small_probability("delta", delta), level(alpha)
    if statistic not in get_args(FromCanaries):
        raise _validate.fail("statistic", statistic, f"one of {get_args(FromCanaries)}", "statistic")
    if delta > 0.0 and epsilon >= (most := gdp.epsilon(mu, delta) if mu > 0.0 else 0.0):
        raise InvalidParameter(f"epsilon={epsilon!r} must be below {most:.6g}, which mu={mu!r} has (unit: nats)")

    def shown(canaries: int) -> float:
        return _from_canaries(statistic, mu, canaries, delta, alpha)

    return _least("epsilon", epsilon, shown, 4, _MOST_CANARIES, "canaries")


def _at_counts(
    runs: int, p1: float, p2: float, delta: float, alpha: float, statistic: Counted, quantile: float
) -> float:
    half = runs // 2
    one, two = math.sqrt(max(1.0 - p1, 0.0) / p1), math.sqrt((1.0 - p2) / p2) if p2 > 0.0 else 0.0
    whole = math.hypot(one, two) or 1.0
    # Counts in the worst direction of the log ratio, `quantile` standard deviations away.
    first = half * p1 - quantile * one / whole * math.sqrt(half * p1 * (1.0 - p1))
    second = half * p2 + quantile * two / whole * math.sqrt(half * p2 * (1.0 - p2))
    k1, k2 = min(max(math.floor(first), 0), half), min(max(math.ceil(second), 0), half)
    match statistic:
        case "clopper_pearson":
            return clopper_pearson(k1, half, k2, half, delta=delta, alpha=alpha)
        case "score":
            return score(k1, half, k2, half, delta=delta, alpha=alpha)
        case "randomised_labels":
            return randomised_labels(k1, k2, 2 * half, delta=delta, alpha=alpha)
        case "anytime":
            return anytime(k1, k2, 2 * half, delta=delta, alpha=alpha)


def _from_canaries(statistic: FromCanaries, mu: float, canaries: int, delta: float, alpha: float) -> float:
    half = canaries // 2
    match statistic:
        case "mean":
            return epsilon_of(mu_from_means(mu, half, 0.0, half, alpha=alpha), delta)
        case "median":
            right = math.floor(half * float(special.ndtr(mu / 2.0)))
            return epsilon_of(mu_from_counts(right, half, half - right, half, alpha=alpha), delta)
        case "one_run" | "one_run_mu":
            return _planned(statistic, mu, canaries, delta, alpha)[1]


def _planned(
    statistic: Literal["one_run", "one_run_mu"], mu: float, canaries: int, delta: float, alpha: float
) -> tuple[Pair, float]:
    half = canaries // 2
    best, found = (half, half), 0.0
    for part in range(_SIZES):
        size = math.ceil(half ** (1.0 - part / _SIZES))
        right = math.floor(2 * size * _accuracy(mu, size / canaries))
        if statistic == "one_run":
            shown = one_run(right, 2 * size, canaries, delta=delta, alpha=alpha)
        else:
            shown = epsilon_of(one_run_mu(right, 2 * size, canaries, alpha=alpha), delta)
        if shown > found:
            best, found = (size, size), shown
    return best, found


def _accuracy(mu: float, share: float) -> float:
    """How often the `share` of highest scores are of included canaries: N(mu, 1) and N(0, 1), half of each."""

    def above(threshold: float) -> float:
        return 0.5 * float(special.ndtr(mu - threshold) + special.ndtr(-threshold)) - share

    threshold = float(optimize.brentq(above, -40.0, mu + 40.0))
    one, two = float(special.ndtr(mu - threshold)), float(special.ndtr(-threshold))
    return one / (one + two)


def _least(name: str, wanted: float, shown: Callable[[int], float], start: int, most: int, unit: str) -> int:
    """The least number found that shows more than `wanted`: doubled, then halved (expected bounds grow with it)."""
    high = start
    while shown(high) <= wanted:
        if high >= most:
            raise InvalidParameter(f"{name}={wanted!r} is not to be expected of {most} {unit} (unit: {unit})")
        high = min(2 * high, most)
    low = max(high // 2, start - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shown(middle) > wanted else (middle, high)
    return high


def _known(statistic: Counted) -> Counted:
    if statistic not in get_args(Counted):
        raise _validate.fail("statistic", statistic, f"one of {get_args(Counted)}", "statistic")
    return statistic


def _power(power: float) -> float:
    value = _validate.positive("power", power, "probability")
    if value >= 1.0:
        raise _validate.fail("power", power, "in (0, 1)", "probability")
    return float(special.ndtri(value))


def _mu(mu: float) -> float:
    return _validate.non_negative("mu", mu, "1")


def _canaries(canaries: int) -> int:
    return _validate.count("canaries", canaries, "canaries", minimum=2)
