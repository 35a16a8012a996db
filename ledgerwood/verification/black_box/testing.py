"""The single test on fresh outputs, and further statements about them."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.pricing import price
from ledgerwood.verification.auditing.result import LowerBound, Scores
from ledgerwood.verification.auditing.sequential import anytime, log_e_value
from ledgerwood.verification.black_box import terms as family
from ledgerwood.verification.black_box.budget import Counts
from ledgerwood.verification.black_box.choosing import Choice, Question
from ledgerwood.verification.black_box.draws import OutputDraws
from ledgerwood.verification.black_box.learning import Chosen
from ledgerwood.verification.black_box.result import Side
from ledgerwood.verification.black_box.terms import AuditTerms
from ledgerwood.verification.figures import beside

_NO_MEMBER = (
    "no member of the claim's family (the same event at another amount of noise) fits what was measured, so that the "
    "headline assumes none: {}"
)
_SMALLER = (
    "the bound inside the claim's family came out as {:.4g}, below the {:.4g} that the same outputs show without an "
    "assumption; which of the two is stated first was settled before the test, and the larger one, picked afterwards, "
    "would be wrong with probability {:g} at most, not {:g}"
)
_FIRST_BATCH, _GROWTH = 200, 1.5
_HALVINGS = 50


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditFinding:
    """The result of the test on fresh outputs.

    Args:
        rejected: the claim is refuted.
        words: the comparison.
        bounds: the headline first.
        side: the side of the headline's event.
        scores: the scores of the headline's event; None if the test stopped before its end, since what is drawn of
            them later (bands of a ROC) takes their number for fixed.
        notes: what a reader must know besides.
    """

    rejected: bool
    words: str
    bounds: tuple[LowerBound, ...]
    side: Side
    scores: Scores | None
    notes: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Agenda:
    """The tests of the fresh outputs; all of them are fixed before the outputs are drawn.

    Args:
        main: its event decides about the claim.
        bound: its event bounds epsilon without assumptions; may be the same.
        family_first: whether epsilon inside the claim's family is the headline; None if it is not stated.
        notes: why not, if that is news.
    """

    main: Choice
    bound: Choice
    family_first: bool | None
    notes: tuple[str, ...] = ()

    @property
    def events(self) -> list[Choice]:
        """Without repetition."""
        return [self.main] if self.main is self.bound else [self.main, self.bound]


def agenda(terms: AuditTerms, asked: Question, chosen: Chosen) -> Agenda:
    """Decides which of the two events is the main one: the one with the larger expected bound."""
    bound, point = chosen.bound, chosen.point
    if point is None or point.point is None:
        return Agenda(main=bound, bound=bound, family_first=None)
    if not point.point.family or asked.delta == 0.0 or not isinstance(terms.claim, Event):
        outright = math.isfinite(asked.claimed) and bound.power >= point.power
        return Agenda(main=bound if outright else point, bound=bound, family_first=None)
    reason = family.misfit(terms.claim, chosen.attacks, point.point, -point.merit)
    if reason is not None:
        return Agenda(main=point, bound=bound, family_first=None, notes=(_NO_MEMBER.format(reason),))
    # Inside the family epsilon is stated, unless the outputs say more without it: bits that leak, for instance.
    expected = family.scaled(terms.claim, -point.merit)
    first = expected is not None and price(expected).epsilon(asked.delta) >= bound.merit
    return Agenda(main=point, bound=bound, family_first=first)


def concluded(draws: OutputDraws, terms: AuditTerms, asked: Question, plan: Agenda) -> AuditFinding:
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


def _scored(draws: OutputDraws, plan: Agenda, runs: int) -> list[tuple[FloatArray, FloatArray]]:
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


def _finding(
    terms: AuditTerms, asked: Question, plan: Agenda, parts: list[tuple[FloatArray, FloatArray]]
) -> AuditFinding:
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
    bounds, notes = [plain], list(plan.notes)
    at = plan.main.point
    if at is None:
        rejected = value > asked.claimed
        found, allowed = beside(value, asked.claimed)
        words = f"epsilon >= {found} at delta {asked.delta:.3g}, claimed {allowed}"
    else:
        least = _delta(tallies[0], terms, plan.main, at.epsilon)
        rejected = least > at.delta
        found, allowed = beside(least, at.delta)
        words = f"delta >= {found} at epsilon {at.epsilon:.4g}, claimed {allowed}"
        if plan.family_first is not None and isinstance(terms.claim, Event):
            if family.beyond(terms.claim, at, least):
                # The level stays: were the family right, this would be the error of the conditional bound itself.
                notes.append(_NO_MEMBER.format(f"{words.split(',')[0]}, and a thousandth of the noise has less"))
            else:
                inside = _conditional(terms, terms.claim, asked, plan.main, least, runs)
                if plan.family_first and inside.value < value:
                    notes.append(_SMALLER.format(inside.value, value, 2.0 * terms.alpha, terms.alpha))
                bounds.insert(0 if plan.family_first else 1, inside)
    head, part = (plan.bound, parts[-1]) if bounds[0] is plain else (plan.main, parts[0])
    speaks, other = part if head.candidate.side == "first" else part[::-1]
    return AuditFinding(
        rejected=rejected,
        words=words,
        bounds=tuple(bounds),
        side=head.candidate.side,
        scores=Scores(speaks, other) if runs >= asked.runs else None,
        notes=tuple(notes),
    )


def _conditional(terms: AuditTerms, claim: Event, asked: Question, main: Choice, least: float, runs: int) -> LowerBound:
    """Epsilon inside the claim's family, from a lower bound on delta at the point of the main event."""
    assert main.point is not None
    member = family.member(claim, main.point, least, -main.merit) if least > 0.0 else None
    return LowerBound(
        value=0.0 if member is None else price(member).epsilon_interval(asked.delta)[0],
        delta=asked.delta,
        alpha=terms.alpha,
        assumption="the claim's family",
        event=main.words,
        samples=runs,
        statistic=f"profile at epsilon {main.point.epsilon:.4g}",
    )


def _epsilon(tally: Counts, terms: AuditTerms, delta: float) -> float:
    if terms.stop == "never":
        return tally.epsilon_from_labels(delta=delta, alpha=terms.alpha)
    return anytime(tally.inside, tally.other, tally.runs, delta=delta, alpha=terms.alpha)


def _delta(tally: Counts, terms: AuditTerms, choice: Choice, epsilon: float) -> float:
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
