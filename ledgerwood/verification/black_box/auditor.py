"""`audit`: a lower bound on the epsilon of any mechanism that can be called, and a verdict on what is claimed of it."""

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events.base import Event, FloatArray
from ledgerwood.accounting.pricing import price
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.result import LowerBound, Scores, level, small_probability
from ledgerwood.verification.black_box import family
from ledgerwood.verification.black_box.choosing import Choice, Point, Question
from ledgerwood.verification.black_box.coins import Counts
from ledgerwood.verification.black_box.draws import Draws, NonFinite, Sampler
from ledgerwood.verification.black_box.fitting import Learners
from ledgerwood.verification.black_box.learning import candidates, choose
from ledgerwood.verification.black_box.pairs import best_pair, two
from ledgerwood.verification.black_box.result import Audit, Numeric

Stop = Literal["never"]
_LEAST = 100
_FIT, _RANK = 100_000, 20_000
_GRID = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85)
"""Points of the claimed curve, as shares of its epsilon; and absolute ones."""
_ABSOLUTE = (0.1, 0.25, 0.5, 1.0, 2.0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What an audit was asked, validated.

    Raises:
        InvalidParameter: a value outside its bound, a claim that is no profile.
    """

    claim: Claim
    n: int
    alpha: float
    numeric: Numeric
    delta: float | None
    stop: Stop
    non_finite: NonFinite
    learners: Learners

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("numeric", self.numeric, Numeric), ("stop", self.stop, Stop),
            ("non_finite", self.non_finite, NonFinite), ("learners", self.learners, Learners),
        ):  # fmt: skip
            if value not in get_args(allowed):
                raise _validate.fail(name, value, " or ".join(map(repr, get_args(allowed))), "mode")
        level(self.alpha)
        # Even if every output told the data set, n of them must show more than epsilon 0.
        least = max(_LEAST, math.ceil(math.log(1.0 / self.alpha) / math.log(2.0)) + 1)
        n = _validate.count("n", self.n, "outputs a side", minimum=1)
        if n < least:
            raise _validate.fail(
                "n", self.n, f"at least {least}: fewer can show nothing at alpha={self.alpha}", "outputs a side"
            )


def question(curve: ClaimedCurve, terms: Terms) -> Question:
    """What the test is to answer: epsilon at a delta, and points of the claimed curve where it may be refuted."""
    claim = curve.claim
    delta = curve.default_delta() if terms.delta is None else small_probability("delta", terms.delta)
    claimed = curve.epsilon(delta)
    wanted: list[float] = []
    if isinstance(claim, Budget):
        if delta != claim.delta:
            wanted = [claim.epsilon]
    else:
        scale = claimed if math.isfinite(claimed) else 1.0
        wanted = sorted({min(share * scale, 20.0) for share in _GRID} | {e for e in _ABSOLUTE if e < scale})
    points = []
    for epsilon in wanted:
        at = curve.delta(epsilon)
        if at < 1.0:
            points.append(Point(epsilon, at, family.slope(claim, epsilon, at)))
    return Question(
        delta=delta, claimed=claimed, points=tuple(points), runs=2 * terms.n, alpha=terms.alpha,
        fair=False,
    )  # fmt: skip


def needed(claimed: float, alpha: float) -> int | None:
    """The least n with which outputs that always tell the data set refute this epsilon by labels of a fair coin."""
    if not math.isfinite(claimed) or claimed > 40.0:
        return None
    return math.ceil(math.log(1.0 / alpha) / math.log1p(math.exp(-claimed)))


def audit(
    sampler: Sampler,
    pair: tuple[Any, Any] | None = None,
    *,
    claim: Claim,
    n: int = 100_000,
    alpha: float = 0.05,
    numeric: Numeric = "ideal",
    delta: float | None = None,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    stop: Stop = "never",
    rng: np.random.Generator | None = None,
    non_finite: NonFinite = "outcome",
    learners: Learners = "all",
) -> Audit:
    """Bound the epsilon of a mechanism from below by its outputs on two neighbouring data sets, and judge a claim.

    Args:
        sampler: `sampler(dataset, n, rng)` returns the outputs of n independent runs, an array of shape (n, ...).
        pair: two neighbouring data sets, whatever the sampler takes.
        claim: what is promised: a Budget, an event, or a function from epsilon (nats) to delta.
        n: outputs of the final test are 2n; as many are drawn to choose its event, and at most 200 000 to learn scores.
        alpha: the probability that a mechanism that keeps its claim is accused; also the error of each bound.
        numeric: "ideal" looks at values, as if they were real numbers; "bitwise" at their bits too, and then noise that
            is made of floats is no noise of the claimed law any more.
        delta: at which epsilon is bounded; None: the claim's own, 0 for a pure claim, else 1e-5.
        pairs: where `pair` is None, pairs to search; None: vectors of 1, 5 and 10 answers to queries, each of which one
            row changes by 1 at most.
        stop: when to stop: after all outputs.
        rng: handed to the sampler, and tosses the coins; None: fresh entropy of the operating system.
        non_finite: whether NaN and infinities are outcomes like others, or refused.
        learners: "light" leaves out the boosted trees, which need the extra `trainers`.

    Raises:
        InvalidParameter: a value outside its bound; a claim that is no profile; too few outputs for any bound.
        AuditFailed: the sampler raised, or returned something that is not n outputs of one shape, or only one value.
        ImportError: outputs of several numbers, `learners="all"`, and scikit-learn is missing.

    Source: docs/explanation/black-box.md.
    """
    began = time.perf_counter()
    curve = ClaimedCurve(claim)
    terms = Terms(
        claim=claim, n=n, alpha=alpha, numeric=numeric, delta=delta, stop=stop, non_finite=non_finite, learners=learners
    )
    generator = np.random.default_rng() if rng is None else rng
    asked = question(curve, terms)
    draws = Draws(sampler, ((), ()) if pair is None else two(pair), generator, non_finite)
    if pair is None:
        best_pair(draws, pairs, asked, n=n, numeric=numeric, learners=learners)
    elif pairs is not None:
        raise InvalidParameter("pair and pairs were both given: say which pair, or which to search (unit: pairs)")
    fit = [draws.once(side, min(n, _FIT)) for side in (0, 1)]
    found = candidates(fit[0], fit[1], numeric=numeric, learners=learners)
    del fit
    bound, point = choose(draws, found, asked, n=n, rank=_RANK)
    return concluded(draws, asked, terms, bound, point, began)


def concluded(draws: Draws, asked: Question, terms: Terms, bound: Choice, point: Choice | None, began: float) -> Audit:
    """The one test, on fresh outputs, and what else they say."""
    # Of a claim that has an epsilon at this delta, that bound may be the test itself; it is where it promises more.
    main = bound if point is None or (math.isfinite(asked.claimed) and bound.power >= point.power) else point
    if point is not None and point.point is not None and point.point.slope is not None:
        main = point
    chosen = [bound] if main is bound else [main, bound]
    scores = _scored(draws, asked, main, chosen)
    tallies = [_count(choice, *parts, main) for choice, parts in zip(chosen, scores, strict=True)]
    seconds = time.perf_counter() - began
    value = tallies[-1].epsilon_from_labels(delta=asked.delta, alpha=asked.alpha)
    plain = LowerBound(
        value=value, delta=asked.delta, alpha=asked.alpha, assumption="none", event=bound.words, samples=asked.runs,
        statistic="randomised labels", seconds=seconds,
    )  # fmt: skip
    bounds = [plain]
    if main.point is None:
        rejected = value > asked.claimed
        words = f"epsilon >= {value:.4g} at delta {asked.delta:.3g}, claimed {asked.claimed:.4g}"
    else:
        at = main.point
        if main.way == "guesses":
            least = tallies[0].delta_from_guesses(epsilon=at.epsilon, alpha=asked.alpha)
        else:
            least = tallies[0].delta_from_labels(epsilon=at.epsilon, alpha=asked.alpha)
        rejected = least > at.delta
        words = f"delta >= {least:.4g} at epsilon {at.epsilon:.4g}, claimed {at.delta:.4g}"
        if isinstance(terms.claim, Event) and at.slope is not None and asked.delta > 0.0:
            scaled = family.member(terms.claim, at, least) if least > 0.0 else None
            inside = 0.0 if scaled is None else price(scaled).epsilon_interval(asked.delta)[0]
            bounds.insert(
                0,
                LowerBound(
                    value=inside, delta=asked.delta, alpha=asked.alpha, assumption="the claim's family",
                    event=main.words, samples=asked.runs, statistic=f"profile at epsilon {at.epsilon:.4g}",
                    seconds=time.perf_counter() - began,
                ),
            )  # fmt: skip
    head = bounds[0]
    of = main if head is not plain else bound
    parts = scores[0] if of is main else scores[-1]
    speaks, other = parts if of.candidate.side == "first" else parts[::-1]
    return Audit(
        epsilon_lower=head.value, delta=asked.delta, rejected=rejected, assumption=head.assumption, alpha=asked.alpha,
        event=head.event, direction=of.candidate.side, samples=draws.drawn, seconds=time.perf_counter() - began,
        bounds=tuple(bounds), test=words, claim=terms.claim, claimed_epsilon=asked.claimed,
        needed=needed(asked.claimed, asked.alpha), scores=Scores(speaks, other),
        pair=draws.pair, numeric=terms.numeric,
    )  # fmt: skip


def _scored(draws: Draws, asked: Question, main: Choice, chosen: list[Choice]) -> list[tuple[FloatArray, FloatArray]]:
    """Fresh outputs, tossed for one by one, as scores of each choice, on the first data set and on the second."""
    for_it = int(draws.rng.binomial(asked.runs, main.coin))
    sizes = (for_it, asked.runs - for_it) if main.candidate.side == "first" else (asked.runs - for_it, for_it)
    parts: list[tuple[list[FloatArray], list[FloatArray]]] = [([], []) for _ in chosen]
    for side, size in enumerate(sizes):
        for values in draws.several(side, size):
            for part, choice in zip(parts, chosen, strict=True):
                part[side].append(choice.candidate.score(values))
    nothing = np.zeros(0)
    return [(np.concatenate([nothing, *first]), np.concatenate([nothing, *second])) for first, second in parts]


def _count(choice: Choice, first: FloatArray, second: FloatArray, main: Choice) -> Counts:
    speaks, other = (first, second) if choice.candidate.side == "first" else (second, first)
    inside, against = int((speaks >= choice.threshold).sum()), int((other >= choice.threshold).sum())
    coin = main.coin if choice.candidate.side == main.candidate.side else 1.0 - main.coin
    return Counts(inside=inside, other=against, outside=other.size - against, runs=first.size + second.size, coin=coin)
