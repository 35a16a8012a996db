"""From scores to bounds, and what theory expects of them. docs/explanation/canaries.md#canary-bounds."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.gaussian import epsilon_of
from ledgerwood.verification.auditing.one_run import one_run, one_run_p_value
from ledgerwood.verification.auditing.one_run_curves import one_run_curve, one_run_mu
from ledgerwood.verification.auditing.result import LowerBound
from ledgerwood.verification.canaries.evidence import power, theory
from ledgerwood.verification.canaries.evidence.bounds import Guesses, gaussian_bound, guess, looks_gaussian
from ledgerwood.verification.canaries.fits.seeing import Seen


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryTerms:
    """All that is fixed before the fits.

    Args:
        claim: what is audited; None where nothing is claimed.
        price: its epsilon at `delta`; inf without a claim.
        planned: the claim by which guesses were planned.
        delta, alpha: of the bounds.
        included, left_out: numbers of guesses.
        sides: of the plan.
        canaries: of all trainings.
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
        """By the claim alone, unless the numbers of guesses are given.

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
        expected: of each, under exactly the claim; NaN without one.
        largest: what the headline cannot exceed; inf where nothing limits it.
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
    pairs = [(_unconditional(found, terms), _expected_guesses(terms))]
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


def _expected_guesses(terms: CanaryTerms) -> float:
    if terms.claim is None:
        return math.nan
    return theory.guesses_for(terms.claim, terms.canaries, terms.delta, terms.alpha, terms.sides)[2]


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
