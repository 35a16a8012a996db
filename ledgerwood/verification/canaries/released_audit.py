"""Audits of what a fitted model shows, by many fits with and without one row: what was asked, and what is said of it.

Pairs of neighbours race, what to look at is learned, an event is chosen, and it is tested on fits that nothing was
learned from. docs/explanation/canaries.md#released-values.
"""

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.curator import Categorical, Schema
from ledgerwood.errors import AuditFailed, InvalidParameter
from ledgerwood.trainers.base.progress import progress_bar
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.result import LowerBound, Scores
from ledgerwood.verification.black_box.draws import OutputDraws, varying
from ledgerwood.verification.black_box.learning import candidates, choose
from ledgerwood.verification.black_box.terms import AuditTerms
from ledgerwood.verification.black_box.testing import AuditFinding, agenda, concluded
from ledgerwood.verification.canaries import theory
from ledgerwood.verification.canaries import theory as power
from ledgerwood.verification.canaries.fitting import (
    OwnFits,
    adjacency_of,
    claimed,
    classifies,
    column_count_of,
    require_known,
)
from ledgerwood.verification.canaries.released_fits import ManyFits, OutlierPair, Rows, few_rows, jobs, pairs
from ledgerwood.verification.canaries.released_values import Encoder, Released, Shown
from ledgerwood.verification.canaries.result import ModelAudit
from ledgerwood.verification.canaries.rows import FrameShape, background_rows, seen_schema

Floats = NDArray[np.float64]
FITS = 4000
LEAST_FITS = 1000
BACKGROUND = 16
"""Rows of every fit, unless it is said otherwise: few, so that one row more is a large part of them."""
_PILOT, _LEARN, _CHOOSE = 0.2, 0.15, 0.15
"""Shares of the fits to choose the canary, to learn scores and to choose the event; the rest is the test."""
_ROUNDS = (math.inf, 4, 2)
"""Pairs that are left in each round of the race."""
_FEWEST = 6
_NOTHING = 700.0
"""Epsilon of a claim that says nothing: no test of any size refutes it."""
_LUCK = 0.2


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OutlierBound:
    """The bound from many fits.

    Args:
        bounds: the headline first.
        rejected: whether the claim is refuted.
        scores: the scores of the headline's event.
        delta: the delta of the bounds.
        detectable: see `ModelAudit.epsilon_detectable`.
        largest: see `ModelAudit.epsilon_ceiling`.
        runs: fits of the test.
        fits: all of them.
        columns: numbers that were looked at.
        attack: the canary and the background, in words.
        notes: what was not seen.
    """

    bounds: tuple[LowerBound, ...]
    rejected: bool
    scores: Scores
    delta: float
    detectable: float
    largest: float
    runs: int
    fits: int
    columns: int
    attack: str
    notes: tuple[str, ...]


def audit_released(
    many: ManyFits,
    rows: Rows,
    schema: Schema,
    *,
    bounded: bool,
    classify: bool,
    claim: Claim | None,
    adjacency: Adjacency,
    delta: float,
    alpha: float,
    canary: tuple[Any, Any] | None,
    background: int | None,
    generator: np.random.Generator,
) -> OutlierBound:
    """Bound epsilon from what fits with and without one row release.

    Args:
        many: the learner, and how many fits there are.
        rows: X and y, from which the background is drawn.
        schema: the schema of rows, and whether it is `bounded`: declared, so that no row is beyond it.
        bounded: see there.
        classify: whether labels are classes.
        claim: what is audited, or None.
        adjacency: which data sets are neighbours.
        delta, alpha: those of the bounds.
        canary: (row, label), or None to choose it.
        background: rows of every fit besides the canary.
        generator: the generator of all coins and seeds.

    Raises:
        InvalidParameter: a learner that adds no noise, or the same in every fit.
        AuditFailed: no fit succeeds, or fits depend on each other.
    """
    size = BACKGROUND if background is None else _validate.count("background", background, "rows")
    few = few_rows(*rows, size, classify=classify, generator=generator)
    replaced = adjacency is Adjacency.REPLACE_ONE
    race = _Race(many=many, generator=generator, budget=round(_PILOT * many.budget))
    pair, encoder, notes = race.run(pairs(few, schema, bounded=bounded, replaced=replaced, canary=canary))
    learn, chosen = round(_LEARN * many.budget / 2), round(_CHOOSE * many.budget / 2)
    half = (many.budget - many.done - 2 * learn - 2 * chosen) // 2
    audited = Budget(epsilon=_NOTHING, delta=delta, adjacency=adjacency) if claim is None else claim
    terms = AuditTerms(
        curve=ClaimedCurve(audited), n=half, alpha=alpha, numeric="ideal", delta=delta, stop="never",
        non_finite="outcome", learners="all",
    )  # fmt: skip
    asked = terms.question()
    draws = OutputDraws(_sampler(many, encoder), (pair.first, pair.second), generator, "outcome")
    fitted = draws.first(learn)
    columns = varying(*fitted, bits=False)
    if not columns.size:
        finding = None
        notes = (*notes, "what was looked at was the same in every fit: this attack could see nothing")
    else:
        first, second = draws.keep(columns.tolist(), fitted)
        scored = candidates(first, second, names=draws.encoding.names, numeric="ideal", learners="all")
        picked = choose(draws, scored, asked, n=chosen, rank=chosen)
        finding = concluded(draws, terms, asked, agenda(terms, asked, picked))
        notes = (*notes, *finding.notes)
    runs = asked.runs
    detectable = math.nan if claim is None else theory.perfect_bound(claim, runs=runs, delta=delta, alpha=alpha)
    return OutlierBound(
        bounds=_nothing(delta, alpha, runs) if finding is None else _named(finding, encoder),
        rejected=finding is not None and finding.rejected,
        scores=_scores(finding),
        delta=delta,
        detectable=detectable,
        largest=theory.largest_bound(runs=runs, delta=delta, alpha=alpha),
        runs=runs,
        fits=many.done,
        columns=len(encoder.layout.columns) - 2,
        attack=f"one row {'replaced' if replaced else 'more or less'} beside {len(few[0])}: {pair.words}",
        notes=notes,
    )


def _sampler(many: ManyFits, encoder: Encoder) -> Callable[[Rows, int, np.random.Generator], Floats]:
    def sampler(dataset: Rows, n: int, rng: np.random.Generator) -> Floats:
        return encoder(many(dataset, n, rng))

    return sampler


def _nothing(delta: float, alpha: float, runs: int) -> tuple[LowerBound, ...]:
    return (
        LowerBound(
            value=0.0, delta=delta, alpha=alpha, assumption="none", event="nothing varied", samples=runs,
            statistic="randomised labels",
        ),
    )  # fmt: skip


def _scores(finding: AuditFinding | None) -> Scores:
    if finding is None or finding.scores is None:
        return Scores(np.zeros(0), np.zeros(0))
    return finding.scores


def _named(finding: AuditFinding, encoder: Encoder) -> tuple[LowerBound, ...]:
    """Bounds whose events name the released parts, not the columns of the encoding."""
    names = encoder.names

    def words(event: str) -> str:
        event = re.sub(r"output\[(\d+)\]", lambda found: names[int(found[1])], event)
        return event.replace("the output ", f"{names[0]} ") if len(names) == 1 else event

    return tuple(replace(bound, event=words(bound.event)) for bound in finding.bounds)


@final
@dataclass(slots=True, kw_only=True, eq=False)
class _Race:
    """Which pair tells most, by halving: all pairs on a few fits, the best four on more, the best two on more again."""

    many: ManyFits
    generator: np.random.Generator
    budget: int

    def run(self, left: list[OutlierPair]) -> tuple[OutlierPair, Encoder, tuple[str, ...]]:
        """The pair, how to look at its fits, and what was not seen."""
        known: dict[int, list[Shown]] = {}
        notes: list[str] = []
        number = len(left)
        for most in _ROUNDS:
            left = left[: int(min(most, number))]
            sides = {id(rows): rows for pair in left for rows in (pair.first, pair.second)}
            each = max(_FEWEST, round(self.budget / len(_ROUNDS) / len(sides)))
            if number == 1 and most != _ROUNDS[0]:
                break
            for key, rows in sides.items():
                known.setdefault(key, []).extend(self.many(rows, each, self.generator))
            left = self._fitting(left, known, notes)
            left.sort(key=lambda pair: -self._merit(known[id(pair.first)], known[id(pair.second)]))
        self._require_noise(left, known)
        best = left[0]
        first, second = known[id(best.first)], known[id(best.second)]
        skipped = sorted({name for fits in (first, second) for each in fits for name in each.skipped})
        if skipped:
            notes.append(
                f"attributes that hold neither numbers nor texts were not looked at: {', '.join(skipped)}; "
                "released= may be a function that reads them"
            )
        return best, Encoder.learned(first, second), tuple(notes)

    def _fitting(self, left: list[OutlierPair], known: dict[int, list[Shown]], notes: list[str]) -> list[OutlierPair]:
        """Pairs whose fits succeed with the canary as without it."""
        failing = [fits for pair in left if (fits := _failures(known[id(pair.second)])) is not None]
        if len(failing) == len(left):
            raise AuditFailed(
                f"{type(self.many.estimator).__name__} cannot be fitted on the background alone: {failing[0]}; give "
                "other rows, or more of them (background=)"
            )
        kept = [
            pair
            for pair in left
            if _failures(known[id(pair.first)]) is None and _failures(known[id(pair.second)]) is None
        ]
        if not kept:
            raise AuditFailed(
                f"{type(self.many.estimator).__name__} raised in every fit with a canary, and not without one: "
                f"{_failures(known[id(left[0].first)])}; such an error tells that the row was there. Give a schema= "
                "within which rows are accepted, or a canary="
            )
        if len(kept) < len(left):
            lost = next(pair for pair in left if pair not in kept)
            notes.append(
                f"{len(left) - len(kept)} canaries were left out because the learner refused them in every fit, which "
                f"itself tells that they were there ({lost.words}: {_failures(known[id(lost.first)])})"
            )
        return kept

    def _merit(self, first: list[Shown], second: list[Shown]) -> float:
        encoder = Encoder.learned(first, second)
        a, b = encoder(first), encoder(second)
        if a.shape[1] > 2:  # the last column is learned from these very fits
            a, b = a[:, :-1], b[:, :-1]
        return max(_separation(x, y) for x, y in zip(a.T, b.T, strict=True))

    def _require_noise(self, left: list[OutlierPair], known: dict[int, list[Shown]]) -> None:
        """Refuse a learner whose fits on the same rows are all the same: its noise is a constant, or there is none."""
        told = []
        for pair in left:
            encoder = Encoder.learned(known[id(pair.first)], known[id(pair.second)])
            a, b = encoder(known[id(pair.first)]), encoder(known[id(pair.second)])
            constant = all(bool((_plain(part) == _plain(part[:1])).all()) for part in (a, b))
            if not constant:
                return
            told.append(not np.array_equal(_plain(a[:1]), _plain(b[:1])))
        if any(told):
            fits = len(known[id(left[0].first)])
            raise InvalidParameter(
                f"{type(self.many.estimator).__name__} ignores its seed, or adds no noise: {fits} fits on the same "
                "rows released the same values, and others with one row more or less. One noise in all fits is no "
                "noise: give every copy fresh noise (a parameter random_state is exchanged for each)"
            )


def _plain(values: Floats) -> Floats:
    return np.where(np.isnan(values), np.inf, values)


def _failures(fits: list[Shown]) -> str | None:
    """What all of them raised; None if some succeeded."""
    return None if any(each.failure is None for each in fits) else fits[0].failure


def _separation(first: Floats, second: Floats) -> float:
    """How well one number tells two data sets: the log ratio of a tail's frequencies, and a little for its distance."""
    first, second = (np.where(np.isnan(part), -1e300, part) for part in (first, second))
    both = np.concatenate([first, second])
    middle = float(np.median(both))
    best = 0.0
    folded = (np.abs(first - middle), np.abs(second - middle))
    for x, y in ((np.sort(first), np.sort(second)), (np.sort(folded[0]), np.sort(folded[1]))):
        cuts = np.unique(np.concatenate([x, y]))
        for part, other in ((x, y), (y, x)):
            for side in ("left", "right"):
                at, against = (np.searchsorted(each, cuts, side="left") for each in (part, other))
                up, down = (part.size - at, other.size - against) if side == "left" else (at, against)
                low = special.betaincinv(np.maximum(up, 0.5), part.size - up + 1.0, _LUCK)
                high = special.betaincinv(down + 1.0, np.maximum(other.size - down, 0.5), 1.0 - _LUCK)
                best = max(best, float(np.max(np.log(low / high), where=up > 0, initial=0.0)))
    spread = float(np.median(np.abs(first - np.median(first))) + np.median(np.abs(second - np.median(second))))
    gap = abs(float(np.median(first) - np.median(second)))
    apart = gap / spread if spread > 0.0 else (1e12 if gap > 0.0 else 0.0)
    # Where fits are told apart entirely, the canary that is farther away is the surer one.
    return best + 1e-3 * math.log1p(min(apart, 1e12))


def released_audit(
    estimator: Any, X: Any, y: Any, *, released: Released, claim: Claim | None, delta: float | None, alpha: float,
    schema: Schema | None, canary: tuple[Any, Any] | None, background: int | None, fits: int | None, n_jobs: int,
    verbose: int, generator: np.random.Generator, begun: float,
) -> ModelAudit:  # fmt: skip
    """Bound epsilon from what many fits with and without one row show; arguments and errors as in `audit_model`.

    Args:
        begun: when the audit began, for its duration; the other ones as in `audit_model`.
    """
    if not callable(released) and released != "attributes":
        raise InvalidParameter(
            f"released={released!r} must be a function of the fitted model, or 'attributes' (unit: released value)"
        )
    budget = _validate.count("fits", FITS if fits is None else fits, "fits", minimum=LEAST_FITS)
    processes = jobs(n_jobs)
    own: OwnFits | None = None
    bounded = True
    if isinstance(estimator, AbstractTrainer):
        if schema is not None:
            raise InvalidParameter(f"schema=...: {type(estimator).__name__} has a schema of its own")
        own = OwnFits.of(estimator, column_count_of(X, y, estimator))
        schema = own.schema
    elif schema is None:
        schema, bounded = seen_schema(X, y, classify=classifies(estimator)), False
    adjacency = adjacency_of(claim, None if own is None else own.event)
    if own is None:
        require_known(adjacency, claim, estimator)
    rows = background_rows(X, y, schema)
    schema = schema.resolved(rows[0].shape[1])
    # Learners of other libraries may ask for columns by name; our own take rows in the schema's order.
    frame = None if own is not None else FrameShape.of(X, [feature.name for feature in schema.features])
    claim, delta = claimed(own, claim, delta)
    with progress_bar(type(estimator).__name__, verbose) as progress:
        many = ManyFits(estimator, released, processes, budget, progress, frame)
        found = audit_released(
            many, rows, schema, bounded=bounded, classify=isinstance(schema.target, Categorical), claim=claim,
            adjacency=adjacency, delta=delta, alpha=alpha, canary=canary, background=background, generator=generator,
        )  # fmt: skip
    price, headline = power.price_of(claim, delta), found.bounds[0]
    return ModelAudit(
        epsilon_lower=headline.value, assumption=headline.assumption, statistic=headline.statistic,
        rejected=found.rejected, alpha=alpha, delta=delta, bounds=found.bounds, price=price,
        epsilon_detectable=found.detectable, epsilon_ceiling=found.largest,
        expected=tuple(found.detectable if each.assumption == "none" else math.nan for each in found.bounds),
        needed=None, scores=found.scores, seconds=time.perf_counter() - begun, canaries=1, trainings=found.fits,
        view="fitted", structure="own", shared=False, scored=found.columns, releases=found.columns, mu=None,
        price_mu=theory.mu_of_price(price, delta) if math.isfinite(price) else 0.0, system=type(estimator).__name__,
        claim=claim, structure_check=None, attack=found.attack, notes=found.notes,
        weaknesses=power.weaknesses(
            found=headline.value, detectable=found.detectable, largest=found.largest, price=price,
            rejected=found.rejected, needed=f"more than fits={budget} would show more",
            stronger="another function released=, a canary= that stands out more, or a smaller background= may help",
        ),
    )  # fmt: skip
