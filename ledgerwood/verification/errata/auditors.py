"""Runs of specimens past the auditors that catch them, with as many outputs as that takes.

How many that is follows from a specimen's exact curve and its claim. A curve knows more than its values:
delta(epsilon) is p - e^epsilon q of the best event, and its slope in e^epsilon is -q.

The verdict does not read the exact loss. An auditor is told the sampler, the pair and the claim; the likelihood-ratio
auditor also the two distributions, and where to look. It decides on outputs drawn after the event was fixed.
docs/explanation/auditing.md proves the bounds.
"""

import difflib
import math
import time
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from scipy import stats

from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing.claims import ClaimedCurve
from ledgerwood.verification.auditing.counts import hockey_stick, randomised_labels
from ledgerwood.verification.auditing.result import Assumption, level
from ledgerwood.verification.black_box import audit
from ledgerwood.verification.black_box.result import Numeric
from ledgerwood.verification.errata.base import Finding, FloatArray, Quantity, Specimen, in_words

Test = Literal["guesses", "event"]
"""Guesses: every output is said to be with the row or without. Event: those count that lie in the event."""

_POWER, _NEVER, _STEP = 0.95, 2**62, 1e-4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePlan:
    """The place where a violation is found soonest, and the test that finds it."""

    epsilon: float  #: at which the claim is tested, in nats
    claimed: float  #: delta that the claim allows there
    exact: float  #: delta of the specimen there
    test: Test  #: which of the two needs fewer outputs
    samples: int  #: outputs after which the claim is refuted, 95 times in 100, if the best event is known
    least: int  #: outputs below which nothing is refuted, even if everything is as it should be


def epsilons(specimen: Specimen, curve: ClaimedCurve) -> list[float]:
    """The epsilons that are tested: 0, the claimed epsilon and below, and the witness."""
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


_PILOT = 0.1
"""Of the outputs: spent on the direction of the likelihood ratio."""
_PARTS = 6
"""`audit` asks for n outputs a side to test an event, as many to choose it, and at most as many to learn scores."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What differs between auditors."""

    quantity: Quantity
    bound: float
    at: float
    claimed: float
    caught: bool
    test: str
    samples: int
    assumption: Assumption = "none"


def find(name: str, specimens: tuple[Specimen, ...]) -> Specimen:
    """The specimen of that name.

    Raises:
        InvalidParameter: there is none; it lists the nearest names.
    """
    by_name = {specimen.name: specimen for specimen in specimens}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name, by_name, n=4, cutoff=0.4) or sorted(by_name)[:4]
    raise InvalidParameter(f"specimen={name!r} is unknown; near names: {', '.join(near)} (unit: name of a specimen)")


def default_samples(specimen: Specimen, *, alpha: float) -> int:
    """Returns how many outputs its auditor gets unless told otherwise: several times what the best test needs."""
    return _default(specimen, plan(specimen, alpha=alpha))


def run_specimen(
    specimen: Specimen, *, n: int | None = None, alpha: float = 0.05, rng: np.random.Generator | None = None
) -> Finding:
    """Audit one specimen by its own auditor.

    Args:
        specimen: one of `SPECIMENS`, or another with the same protocol; one whose claim holds is not caught, but for
            the share alpha of runs.
        n: outputs of both data sets together; None for `default_samples`.
        alpha: probability that a right mechanism would be caught.
        rng: None for one from the operating system.

    Raises:
        InvalidParameter: an n with which nothing could be refuted (it says how many are needed), an alpha outside
            (0, 1/2], or a specimen without a likelihood ratio for the auditor that asks for it.
    """
    began = time.perf_counter()
    alpha, rng = level(alpha), np.random.default_rng() if rng is None else rng
    planned = plan(specimen, alpha=alpha)
    samples = _default(specimen, planned) if n is None else _validate.count("n", n, "outputs")
    found = _audited(specimen, planned, _enough(specimen, samples, planned, alpha), alpha, rng)
    return Finding(
        specimen=specimen.name,
        verdict=specimen.verdict,
        claim=in_words(specimen.claim),
        witness=specimen.witness,
        claimed_delta=specimen.claimed_delta(specimen.witness),
        exact_delta=specimen.delta(specimen.witness),
        auditor=specimen.auditor,
        quantity=found.quantity,
        bound=found.bound,
        at=found.at,
        claimed=found.claimed,
        caught=found.caught,
        test=found.test,
        alpha=alpha,
        assumption=found.assumption,
        samples=found.samples,
        needed=planned.samples,
        seconds=time.perf_counter() - began,
    )


def _audited(specimen: Specimen, planned: SamplePlan, n: int, alpha: float, rng: np.random.Generator) -> _Found:
    match specimen.auditor:
        case "data independence":
            return _data_independence(specimen, n, alpha, rng)
        case "likelihood ratio":
            return _likelihood_ratio(specimen, planned, n, alpha, rng)
        case "black-box" | "bitwise":
            return _black_box(specimen, n, alpha, rng)


def _default(specimen: Specimen, planned: SamplePlan) -> int:
    match specimen.auditor:
        case "data independence":
            return 10_000
        case "likelihood ratio":
            return max(2_000, 2 * planned.samples)
        case "black-box" | "bitwise":
            return max(60_000, 16 * planned.samples)


def _enough(specimen: Specimen, n: int, planned: SamplePlan, alpha: float) -> int:
    least = planned.least
    if specimen.auditor == "data independence":
        least = 1 + 4 * planned.least  # one to fix the event; half of the others are without the row
    if specimen.auditor == "likelihood ratio":
        least = 4 * planned.least
    if n < least:
        raise InvalidParameter(
            f"n={n} must be at least {least}: with fewer outputs nothing is refuted at alpha={alpha:g}, whatever they "
            f"are; {specimen.name} takes about {_default(specimen, planned)} (unit: outputs)"
        )
    return n


def _data_independence(specimen: Specimen, n: int, alpha: float, rng: np.random.Generator) -> _Found:
    """A first output with the row fixes the event; then fair coins draw the data set of every run."""
    first = specimen.sampler(specimen.pair[0], 1, rng)[0]
    runs = n - 1
    with_row = int(rng.binomial(runs, 0.5))
    inside = [_again(specimen, side, count, first, rng) for side, count in ((0, with_row), (1, runs - with_row))]
    curve = ClaimedCurve(specimen.claim)
    delta = curve.default_delta()
    claimed = curve.epsilon(delta)
    bound = randomised_labels(inside[0], inside[1], runs, delta=delta, alpha=alpha)
    test = (
        f"the first output, {np.array2string(np.atleast_1d(first), precision=4)}, came again in {inside[0]} runs with "
        f"the row and in {inside[1]} without"
    )
    return _Found(
        quantity="epsilon", bound=bound, at=delta, claimed=claimed, caught=bound > claimed, test=test, samples=n
    )


def _again(specimen: Specimen, side: int, count: int, first: FloatArray, rng: np.random.Generator) -> int:
    outputs = specimen.sampler(specimen.pair[side], count, rng)
    return int(np.count_nonzero((outputs == first).reshape(count, -1).all(axis=1))) if count else 0


def _likelihood_ratio(
    specimen: Specimen, planned: SamplePlan, n: int, alpha: float, rng: np.random.Generator
) -> _Found:
    """The event where the log ratio is above epsilon, in the direction that a pilot prefers."""
    epsilon, pilot = planned.epsilon, max(2, int(n * _PILOT) // 2)
    shown = [_ratios(specimen, side, pilot, rng) for side in (0, 1)]
    excess = [
        np.mean(sign * shown[here] > epsilon) - np.exp(epsilon) * np.mean(sign * shown[there] > epsilon)
        for sign, here, there in ((1.0, 0, 1), (-1.0, 1, 0))
    ]
    sign, here, there = (1.0, 0, 1) if excess[0] >= excess[1] else (-1.0, 1, 0)
    runs, words = n - 2 * pilot, ("with the row", "without the row")
    probability = 0.5 if planned.test == "event" else 1.0 / (1.0 + np.exp(epsilon))
    count = int(rng.binomial(runs, probability))
    inside = [
        int(np.count_nonzero(sign * _ratios(specimen, side, size, rng) > epsilon))
        for side, size in ((here, count), (there, runs - count))
    ]
    event = f"log ratio above {epsilon:.3g} {words[here]}"
    if planned.test == "event":
        bound = randomised_labels(inside[0], inside[1], runs, delta=planned.claimed, alpha=alpha)
        test = f"{event}: {inside[0]} of {count} outputs {words[here]}, {inside[1]} of {runs - count} {words[there]}"
        at, claimed = planned.claimed, epsilon
        quantity: Quantity = "epsilon"
    else:
        right = inside[0] + runs - count - inside[1]
        bound = hockey_stick(right, runs, epsilon=epsilon, alpha=alpha)
        test = f"{event}: {right} of {runs} guesses right"
        at, claimed, quantity = epsilon, planned.claimed, "delta"
    return _Found(quantity=quantity, bound=bound, at=at, claimed=claimed, caught=bound > claimed, test=test, samples=n)


def _ratios(specimen: Specimen, side: int, count: int, rng: np.random.Generator) -> FloatArray:
    outputs = specimen.sampler(specimen.pair[side], count, rng)
    ratios = specimen.log_ratio(outputs)
    if ratios is None:
        raise InvalidParameter(f"specimen={specimen.name!r} must have a log_ratio for its auditor (unit: nats)")
    return ratios


def _black_box(specimen: Specimen, n: int, alpha: float, rng: np.random.Generator) -> _Found:
    numeric: Numeric = "bitwise" if specimen.auditor == "bitwise" else "ideal"
    found = audit(
        specimen.sampler, specimen.pair, claim=specimen.claim, n=n // _PARTS, alpha=alpha, numeric=numeric, rng=rng
    )
    bound = min(found.bounds, key=lambda bound: bound.assumption != "none")  # the one that rests on nothing
    return _Found(
        quantity="epsilon",
        bound=bound.value,
        at=bound.delta,
        claimed=found.claimed_epsilon,
        caught=found.rejected,
        test=found.test,
        samples=found.samples,
        assumption=bound.assumption,
    )
