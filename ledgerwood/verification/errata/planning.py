"""How many outputs it takes to see a specimen's violation, from its exact curve and its claim.

A curve knows more than its values: delta(epsilon) is p - e^epsilon q of the best event, and its slope in e^epsilon
is -q.
"""

import math
from dataclasses import dataclass
from typing import Literal, final

from scipy import stats

from ledgerwood.verification.auditing.claims import ClaimedCurve
from ledgerwood.verification.auditing.result import level
from ledgerwood.verification.errata.base import Specimen

Test = Literal["guesses", "event"]
"""Guesses: every output is said to be with the row or without. Event: those count that lie in the event."""

_POWER, _NEVER, _STEP = 0.95, 2**62, 1e-4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan:
    """Where a violation is seen soonest, and by which test."""

    epsilon: float  #: at which the claim is tested, in nats
    claimed: float  #: delta that the claim allows there
    exact: float  #: delta of the specimen there
    test: Test  #: which of the two needs fewer outputs
    samples: int  #: outputs after which the claim is refuted, 95 times in 100, if the best event is known
    least: int  #: outputs below which nothing is refuted, even if everything is as it should be


def epsilons(specimen: Specimen, curve: ClaimedCurve) -> list[float]:
    """Where to look: 0, the claimed epsilon and below, and the witness."""
    claimed = curve.epsilon(curve.default_delta())
    known = [claimed * share for share in (0.5, 0.75, 0.9, 1.0)] if math.isfinite(claimed) else []
    return sorted({0.0, *known, *(x for x in (0.01, 0.03, 0.1, 0.3, 1.0, specimen.witness) if x <= 5.0)})


def plan(specimen: Specimen, *, alpha: float) -> SamplePlan:
    """The cheapest test at level alpha, of a claim that is refuted at one epsilon.

    Raises:
        InvalidParameter: alpha outside (0, 1/2].
    """
    alpha, curve = level(alpha), ClaimedCurve(specimen.claim)
    return min((_at(specimen, curve, x, alpha) for x in epsilons(specimen, curve)), key=lambda found: found.samples)


def guesses(epsilon: float, delta: float) -> float:
    """The largest probability of a right guess where delta(epsilon) is `delta`."""
    return 1.0 - (1.0 - delta) / (1.0 + math.exp(epsilon))


def share_of_event(epsilon: float, delta: float, often: float) -> float:
    """The largest share that runs with the row have of an event of probability `often` over both data sets."""
    return min(1.0, (math.exp(epsilon) + 0.5 * delta / often) / (1.0 + math.exp(epsilon)))


def _at(specimen: Specimen, curve: ClaimedCurve, epsilon: float, alpha: float) -> SamplePlan:
    claimed, exact = curve.delta(epsilon), specimen.delta(epsilon)
    least = math.ceil(math.log(alpha) / math.log(guesses(epsilon, claimed))) + 1
    by_guesses = _trials(guesses(epsilon, claimed), guesses(epsilon, exact), alpha)
    factor, above = math.exp(epsilon), math.exp(epsilon + _STEP)
    without = max(0.0, (exact - specimen.delta(epsilon + _STEP)) / (above - factor))
    with_row = min(1.0, exact + factor * without)
    often = 0.5 * (with_row + without)
    by_event = _NEVER
    if often > 0.0:
        inside = _trials(share_of_event(epsilon, claimed, often), with_row / (with_row + without), alpha)
        by_event = min(_NEVER, math.ceil(inside / often))
    test: Test = "guesses" if by_guesses <= by_event else "event"
    return SamplePlan(
        epsilon=epsilon,
        claimed=claimed,
        exact=exact,
        test=test,
        samples=max(least, min(by_guesses, by_event)),
        least=least,
    )


def _trials(allowed: float, true: float, alpha: float) -> int:
    """Trials after which a binomial proportion is seen to be above `allowed`, by its normal approximation."""
    if true <= allowed * (1.0 + 1e-9):
        return _NEVER
    spread = float(stats.norm.isf(alpha)) * math.sqrt(allowed * (1.0 - allowed))
    spread += float(stats.norm.ppf(_POWER)) * math.sqrt(max(true * (1.0 - true), 0.0))
    fewest = math.ceil(math.log(alpha) / math.log(allowed)) + 1 if allowed < 1.0 else _NEVER
    return max(fewest, min(_NEVER, math.ceil((spread / (true - allowed)) ** 2)))
