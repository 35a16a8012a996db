"""Bounds from the scores of canaries, each with its assumptions, and what theory expects of them.

docs/explanation/canaries.md#canary-bounds.
"""

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve, epsilon_of
from ledgerwood.verification.auditing.one_run import one_run, one_run_curve, one_run_mu, one_run_p_value
from ledgerwood.verification.auditing.result import LowerBound, level
from ledgerwood.verification.canaries import theory
from ledgerwood.verification.canaries import theory as power
from ledgerwood.verification.canaries.power.ceilings import ceiling
from ledgerwood.verification.canaries.seeing import Seen

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_FAR = 200.0
"""Statistics above it have a simpler bound: the series of the noncentral t law does not converge far out."""
_SQUARED = 1e100
_FEWEST_RESIDUALS, _SHAPIRO, _UNLIKELY = 20, 5000, 1e-5
"""Residuals that a normality test needs, those that it takes, and the p-value below which noise is not Gaussian."""
_LEAST_SPREAD = 1e-9
"""Of the scores: residuals below it are rounding, not noise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """Guesses about canaries by their scores, and the number of right guesses.

    Args:
        included, left_out: how many of each kind.
        correct: right ones.
        canaries: all of them.
    """

    included: int
    left_out: int
    correct: int
    canaries: int

    @property
    def made(self) -> int:
        """Bounds of both kinds."""
        return self.included + self.left_out


def guess(scores: Floats, coins: Mask, *, included: int, left_out: int, generator: np.random.Generator) -> Guesses:
    """The highest scores are guessed to be in and the lowest to be out; the numbers were fixed beforehand.

    Args:
        scores: (m,).
        coins: (m,), which canaries were in.
        included, left_out: at most m together.
        generator: breaks ties, which must not be broken by the canaries' order.
    """
    order = np.lexsort((generator.random(len(scores)), scores))
    highest, lowest = order[len(order) - included :], order[:left_out]
    correct = int(coins[highest].sum()) + int((~coins[lowest]).sum())
    return Guesses(included=included, left_out=left_out, correct=correct, canaries=len(scores))


def mu_from_scores(with_canary: Floats, without: Floats, *, alpha: float) -> float:
    """mu of scores that are N(mu s, s**2) with the canary and N(0, s**2) without, s unknown: their t statistic.

    Where the noise is smaller than was claimed, the scores are closer together, and mu is larger: a spread that is
    taken for 1 would not see it.

    Args:
        with_canary, without: independent scores, at least two of each.
        alpha: one-sided error.

    Source: docs/explanation/canaries.md#canary-means.
    """
    alpha = level(alpha)
    first, second = len(with_canary), len(without)
    if min(first, second) < 2:
        return 0.0
    freedom = first + second - 2
    # A statistic has no unit; squares of scores that are free of noise may have no float64.
    largest = float(max(np.abs(with_canary).max(), np.abs(without).max()))
    if largest > _SQUARED:
        with_canary, without = with_canary / largest, without / largest
    squares = float(np.sum((with_canary - with_canary.mean()) ** 2) + np.sum((without - without.mean()) ** 2))
    spread = math.sqrt(squares / freedom)
    unit = math.sqrt(1.0 / first + 1.0 / second)
    difference = float(with_canary.mean() - without.mean())
    if spread == 0.0:
        return math.inf if difference > 0.0 else 0.0
    statistic = difference / (spread * unit)
    if float(stats.t.sf(statistic, freedom)) >= alpha:
        return 0.0
    # Half of alpha each: statistic * root(V / f) - shift is N(0, 1), V chi-squared.
    spared = math.sqrt(float(stats.chi2.ppf(0.5 * alpha, freedom)) / freedom)
    found = max(0.0, statistic * spared - float(stats.norm.isf(0.5 * alpha)))
    if statistic <= _FAR:
        # P(T >= statistic) rises with the noncentrality: alpha at most there, and about a half at the statistic itself.
        excess = functools.partial(_tail, statistic, freedom, alpha)
        found = float(optimize.brentq(excess, found, statistic)) if excess(found) < 0.0 else found
    return max(0.0, found * unit * (1.0 - 1e-9))


def _tail(statistic: float, freedom: int, alpha: float, shift: float) -> float:
    return float(stats.nct.sf(statistic, freedom, shift)) - alpha


def looks_gaussian(with_canary: Floats, without: Floats) -> bool:
    """Returns whether both kinds of scores may have one Gaussian noise: they vary, and residuals pass a normality test.

    The test refuses one right noise in 10^5, far below every alpha in use; it fixes no bound, only which one is the
    headline. docs/explanation/canaries.md#canary-means.
    """
    residuals = np.concatenate([with_canary - with_canary.mean(), without - without.mean()])
    spread = float(np.abs(residuals).max(initial=0.0))
    if len(residuals) < _FEWEST_RESIDUALS:
        return spread > 0.0 or not len(residuals)
    if not spread > _LEAST_SPREAD * max(1.0, float(np.abs(with_canary).max(initial=0.0))):
        return False
    return float(stats.shapiro(residuals[:_SHAPIRO] / spread).pvalue) > _UNLIKELY


def gaussian_bound(with_canary: Floats, without: Floats, *, delta: float, alpha: float) -> LowerBound:
    """Epsilon from the means of Gaussian scores."""
    mu = mu_from_scores(with_canary, without, alpha=alpha)
    return LowerBound(
        value=epsilon_of(mu, delta) if math.isfinite(mu) else math.inf, delta=delta, alpha=alpha,
        assumption="Gaussian noise", event="the difference of the mean scores of canaries that are in and out",
        samples=len(with_canary) + len(without), statistic="means over their spread",
    )  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryTerms:
    """All that is fixed before the fits.

    Args:
        claim: what is audited; None if nothing is claimed.
        price: its epsilon at `delta`; inf without a claim.
        planned: the claim by which guesses were planned.
        delta, alpha: those of the bounds.
        included, left_out: numbers of guesses.
        sides: the sides of the plan.
        canaries: the canaries of all trainings.
    """

    claim: Claim | None
    price: float
    planned: Claim
    delta: float
    alpha: float
    included: int
    left_out: int
    sides: theory.Sides
    canaries: int

    @classmethod
    def planned_for(
        cls, claim: Claim | None, unclaimed: Claim, guesses: tuple[int, int] | None, *, canaries: int, delta: float,
        alpha: float, sides: theory.Sides,
    ) -> "CanaryTerms":  # fmt: skip
        """Plans the numbers of guesses from the claim only, unless they are given.

        Args:
            claim: or None, and `unclaimed` plans the guesses.
            unclaimed: see there.
            guesses: checked, or None.
            canaries, delta, alpha, sides: see the fields.
        """
        planned = unclaimed if claim is None else claim
        if guesses is None:
            included, left_out, _ = theory.guesses_for(planned, canaries, delta, alpha, sides)
        else:
            included, left_out = guesses
        return cls(
            claim=claim, price=math.inf if claim is None else ClaimedCurve(claim).epsilon(delta), planned=planned,
            delta=delta, alpha=alpha, included=included, left_out=left_out, sides=sides, canaries=canaries,
        )  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Bounds, the headline first, and what is to be expected of them.

    Args:
        bounds: at least one.
        expected: the expected value of each, under exactly the claim; NaN without one.
        largest: what the headline cannot exceed; inf if nothing limits it.
        rejected: whether the claim is refuted.
        needed: see `ModelAudit`.
    """

    bounds: tuple[LowerBound, ...]
    expected: tuple[float, ...]
    largest: float
    rejected: bool
    needed: int | None


def read(seen: Seen, terms: CanaryTerms, generator: np.random.Generator) -> Reading:
    """The bounds that the scores allow."""
    found = guess(
        seen.values, seen.coins, included=terms.included, left_out=terms.left_out, generator=generator
    )  # fmt: skip
    half = terms.canaries // 2
    everyone = guess(
        seen.values, seen.coins, included=terms.canaries - half, left_out=half, generator=generator
    )  # fmt: skip
    pairs = [(_unconditional(found, terms), _expected_guesses(terms, seen))]
    if seen.gaussian:
        pairs.append((_guessed_mu(found, terms), _expected_guessed_mu(terms)))
    if seen.normal is not None:
        bound = gaussian_bound(
            seen.normal[seen.coins], seen.normal[~seen.coins], delta=terms.delta, alpha=terms.alpha
        )  # fmt: skip
        # Scores that are none of Gaussian noise say nothing by it; the guesses, which assume nothing, come first then.
        place = 0 if looks_gaussian(seen.normal[seen.coins], seen.normal[~seen.coins]) else len(pairs)
        pairs.insert(place, (bound, _expected_means(terms)))
    bounds, expected = zip(*pairs, strict=True)
    largest = math.inf
    if bounds[0].assumption == "none":
        largest = power.largest_guessed(found.made, found.canaries, delta=terms.delta, alpha=terms.alpha)
    return Reading(
        bounds=bounds, expected=expected, largest=largest, rejected=_refuted(found, everyone, terms),
        needed=_needed(bounds[0], terms),
    )  # fmt: skip


def _words(found: Guesses) -> str:
    return f"{found.correct} right of {found.included} canaries guessed to be in and {found.left_out} to be out"


def _unconditional(found: Guesses, terms: CanaryTerms) -> LowerBound:
    value = one_run(found.correct, found.made, found.canaries, delta=terms.delta, alpha=terms.alpha)
    return LowerBound(
        value=value, delta=terms.delta, alpha=terms.alpha, assumption="none", event=_words(found),
        samples=found.canaries, statistic="guesses of one run",
    )  # fmt: skip


def _guessed_mu(found: Guesses, terms: CanaryTerms) -> LowerBound:
    mu = one_run_mu(found.correct, found.made, found.canaries, alpha=terms.alpha)
    return LowerBound(
        value=epsilon_of(mu, terms.delta), delta=terms.delta, alpha=terms.alpha, assumption="Gaussian noise",
        event=_words(found), samples=found.canaries, statistic="guesses of one run, by Gaussian curves",
    )  # fmt: skip


def _refuted(found: Guesses, everyone: Guesses, terms: CanaryTerms) -> bool:
    """At a third of alpha each: more correct guesses than the claimed epsilon allows, or the claim's curve; or that
    of all canaries at once. The planned guesses are the surest ones: so few that all of them may be right by the claim.
    """
    if terms.claim is None or not math.isfinite(terms.price):
        return False
    each = terms.alpha / 3.0
    if one_run_p_value(found.correct, found.made, found.canaries, epsilon=terms.price, delta=terms.delta) < each:
        return True
    curve = theory.trade_off(terms.claim, terms.delta)
    return any(
        one_run_curve(guessed.correct, guessed.made, guessed.canaries, trade_off=curve.errors, alpha=each)
        for guessed in (found, everyone)
    )


def _expected_guesses(terms: CanaryTerms, seen: Seen) -> float:
    if terms.claim is None:
        return math.nan
    # Neither the claim's curve nor that of the noise that was added can be exceeded.
    return min(
        _expected_under(claim, terms, seen.nats) for claim in (terms.claim, seen.as_released) if claim is not None
    )


def _expected_under(claim: Claim, terms: CanaryTerms, nats: float) -> float:
    found = theory.guesses_for(claim, terms.canaries, terms.delta, terms.alpha, terms.sides)[2]
    if nats >= terms.canaries * math.log(2.0):
        return found
    # 16 labels do not tell 1,000 coins, whatever the claim allows: docs/explanation/canaries.md#canary-ceilings.
    return min(found, ceiling(claim, canaries=terms.canaries, nats=nats, delta=terms.delta, alpha=terms.alpha))


def _expected_guessed_mu(terms: CanaryTerms) -> float:
    if terms.claim is None:
        return math.nan
    mu = theory.expected_guessed_mu(
        terms.claim, terms.included, terms.left_out, terms.canaries, terms.delta, terms.alpha
    )  # fmt: skip
    return epsilon_of(mu, terms.delta)


def _expected_means(terms: CanaryTerms) -> float:
    if not math.isfinite(terms.price):
        return math.nan
    mu = theory.mu_of_price(terms.price, terms.delta)
    return epsilon_of(theory.expected_mu(mu, terms.canaries, terms.alpha), terms.delta)


def _needed(headline: LowerBound, terms: CanaryTerms) -> int | None:
    """Canaries for a main bound within .5 of the claimed epsilon, or within half of it if it is below 1."""
    if terms.claim is None or not math.isfinite(terms.price):
        return None
    wanted = terms.price - min(0.5, 0.5 * terms.price)
    if headline.assumption == "Gaussian noise":
        return theory.canaries_for_mu(theory.mu_of_price(terms.price, terms.delta), wanted, terms.delta, terms.alpha)
    return theory.canaries_for_guesses(terms.claim, wanted, terms.delta, terms.alpha, terms.sides)
