"""The one test, on fresh outputs, and what else they say."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.pricing import price
from ledgerwood.verification.auditing.result import LowerBound, Scores
from ledgerwood.verification.auditing.sequential import anytime, log_e_value
from ledgerwood.verification.black_box import family
from ledgerwood.verification.black_box.choosing import Choice, Question
from ledgerwood.verification.black_box.coins import Counts
from ledgerwood.verification.black_box.draws import Draws
from ledgerwood.verification.black_box.result import Side
from ledgerwood.verification.black_box.terms import Terms

_FIRST_BATCH, _GROWTH = 200, 1.5
_HALVINGS = 50


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """What the fresh outputs said.

    Args:
        rejected: the claim is refuted.
        words: by what comparison.
        bounds: the headline first.
        side: of the headline's event.
        scores: of the headline's event; None where the test stopped before its end, since what is drawn of them later
            (bands of a ROC) takes their number for fixed.
    """

    rejected: bool
    words: str
    bounds: tuple[LowerBound, ...]
    side: Side
    scores: Scores | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agenda:
    """What is to be said of the fresh outputs; all of it is settled before they are drawn.

    Args:
        main: its event decides about the claim.
        bound: its event bounds epsilon without assumptions; may be the same.
        in_family: epsilon is also to be stated inside the claim's family, and that is the headline.
    """

    main: Choice
    bound: Choice
    family_first: bool | None

    @property
    def events(self) -> list[Choice]:
        """Without repetition."""
        return [self.main] if self.main is self.bound else [self.main, self.bound]


def agenda(terms: Terms, asked: Question, bound: Choice, point: Choice | None) -> Agenda:
    """Which of the two events decides: the one that is expected to stand out more."""
    if point is None or point.point is None:
        return Agenda(main=bound, bound=bound, family_first=None)
    if not point.point.family or asked.delta == 0.0 or not isinstance(terms.claim, Event):
        outright = math.isfinite(asked.claimed) and bound.power >= point.power
        return Agenda(main=bound if outright else point, bound=bound, family_first=None)
    # Inside the family epsilon is stated, unless the outputs say more without it: bits that leak, for instance.
    first = True
    if bound.merit > asked.claimed:
        expected = family.scaled(terms.claim, -point.merit)
        first = expected is not None and price(expected).epsilon(asked.delta) >= bound.merit
    return Agenda(main=point, bound=bound, family_first=first)


def concluded(draws: Draws, terms: Terms, asked: Question, plan: Agenda) -> Finding:
    """Draw, count, and say what follows."""
    parts = [(np.zeros(0), np.zeros(0)) for _ in plan.events]
    if terms.stop == "never":
        parts = _scored(draws, plan, asked.runs)
        return _finding(terms, asked, plan, parts)
    runs, batch = 0, _FIRST_BATCH
    while True:
        more = _scored(draws, plan, min(batch, asked.runs - runs))
        parts = [(np.concatenate([a, c]), np.concatenate([b, d])) for (a, b), (c, d) in zip(parts, more, strict=True)]
        runs += min(batch, asked.runs - runs)
        finding = _finding(terms, asked, plan, parts)
        if finding.rejected or runs >= asked.runs:
            return finding
        batch = math.ceil(batch * _GROWTH)


def _scored(draws: Draws, plan: Agenda, runs: int) -> list[tuple[FloatArray, FloatArray]]:
    """Fresh outputs as scores of each event, on the first data set and on the second; one toss of the coin a run."""
    main = plan.main
    for_it = int(draws.rng.binomial(runs, main.coin))
    sizes = (for_it, runs - for_it) if main.candidate.side == "first" else (runs - for_it, for_it)
    parts: list[tuple[list[FloatArray], list[FloatArray]]] = [([], []) for _ in plan.events]
    for side, size in enumerate(sizes):
        for values in draws.several(side, size):
            for part, choice in zip(parts, plan.events, strict=True):
                part[side].append(choice.candidate.score(values))
    nothing = np.zeros(0)
    return [(np.concatenate([nothing, *first]), np.concatenate([nothing, *second])) for first, second in parts]


def _finding(terms: Terms, asked: Question, plan: Agenda, parts: list[tuple[FloatArray, FloatArray]]) -> Finding:
    tallies = [_count(choice, *part, plan.main) for choice, part in zip(plan.events, parts, strict=True)]
    runs = tallies[0].runs
    value = _epsilon(tallies[-1], terms, asked.delta)
    plain = LowerBound(
        value=value,
        delta=asked.delta,
        alpha=asked.alpha,
        assumption="none",
        event=plan.bound.words,
        samples=runs,
        statistic="randomised labels" if terms.stop == "never" else "e-process",
    )
    bounds = [plain]
    at = plan.main.point
    if at is None:
        rejected = value > asked.claimed
        words = f"epsilon >= {value:.4g} at delta {asked.delta:.3g}, claimed {asked.claimed:.4g}"
    else:
        least = _delta(tallies[0], terms, plan.main, at.epsilon)
        rejected = least > at.delta
        words = f"delta >= {least:.4g} at epsilon {at.epsilon:.4g}, claimed {at.delta:.4g}"
        if plan.family_first is not None and isinstance(terms.claim, Event):
            member = family.member(terms.claim, at, least) if least > 0.0 else None
            conditional = LowerBound(
                value=0.0 if member is None else price(member).epsilon_interval(asked.delta)[0],
                delta=asked.delta,
                alpha=asked.alpha,
                assumption="the claim's family",
                event=plan.main.words,
                samples=runs,
                statistic=f"profile at epsilon {at.epsilon:.4g}",
            )
            bounds.insert(0 if plan.family_first else 1, conditional)
    head, part = (plan.bound, parts[-1]) if bounds[0] is plain else (plan.main, parts[0])
    speaks, other = part if head.candidate.side == "first" else part[::-1]
    return Finding(
        rejected=rejected,
        words=words,
        bounds=tuple(bounds),
        side=head.candidate.side,
        scores=Scores(speaks, other) if runs >= asked.runs else None,
    )


def _epsilon(tally: Counts, terms: Terms, delta: float) -> float:
    if terms.stop == "never":
        return tally.epsilon_from_labels(delta=delta, alpha=terms.alpha)
    return anytime(tally.inside, tally.other, tally.runs, delta=delta, alpha=terms.alpha)


def _delta(tally: Counts, terms: Terms, choice: Choice, epsilon: float) -> float:
    if terms.stop == "never":
        if choice.way == "guesses":
            return tally.delta_from_guesses(epsilon=epsilon, alpha=terms.alpha)
        return tally.delta_from_labels(epsilon=epsilon, alpha=terms.alpha)

    def refused(delta: float) -> bool:
        evidence = log_e_value(tally.inside, tally.other, tally.runs, epsilon=epsilon, delta=delta)
        return evidence >= -math.log(terms.alpha)

    if not refused(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refused(middle) else (low, middle)
    return low


def _count(choice: Choice, first: FloatArray, second: FloatArray, main: Choice) -> Counts:
    speaks, other = (first, second) if choice.candidate.side == "first" else (second, first)
    inside, against = int((speaks >= choice.threshold).sum()), int((other >= choice.threshold).sum())
    coin = main.coin if choice.candidate.side == main.candidate.side else 1.0 - main.coin
    return Counts(inside=inside, other=against, outside=other.size - against, runs=first.size + second.size, coin=coin)
