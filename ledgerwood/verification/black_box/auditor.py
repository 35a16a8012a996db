"""`audit`: a lower bound on the epsilon of any mechanism that can be called, and a test of its claim.

Where no pair of data sets is given, candidates race on small samples.
"""

import math
import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import AuditFailed, InvalidParameter, PrivacyWarning
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.result import LowerBound
from ledgerwood.verification.black_box.budget import Sizes, sizes
from ledgerwood.verification.black_box.choosing import Question
from ledgerwood.verification.black_box.draws import NonFinite, OutputDraws, Sampler, varying
from ledgerwood.verification.black_box.learning import Learners, candidates, choose
from ledgerwood.verification.black_box.result import Audit, Numeric
from ledgerwood.verification.black_box.terms import AuditTerms, Stop, needed
from ledgerwood.verification.black_box.testing import AuditFinding, agenda, concluded
from ledgerwood.verification.figures import Seeded, generator_of

_LENGTHS = (1, 5, 10)
Pair = tuple[Any, Any]


def patterns(lengths: Iterable[int] = _LENGTHS) -> list[Pair]:
    """Vectors of answers to queries, each of which one row changes by 1 at most: shape (length,) each.

    They are those of Ding et al. 2018 (StatDP) and of Bichsel et al. 2021 (DP-Sniper).
    """
    found: dict[tuple[bytes, bytes], Pair] = {}
    for size in lengths:
        ones, zeros = np.ones(size), np.zeros(size)
        one, half = zeros.copy(), zeros.copy()
        one[0], half[: size // 2] = 1.0, 1.0
        last = one[::-1].copy()
        cross = np.where(half > 0.0, 1.0, -1.0)
        for a, b in (
            (zeros, one), (zeros, last), (zeros, -one), (zeros, ones), (one, ones - one), (last, ones - last),
            (half, ones - half), (zeros, cross), (ones, half),
        ):  # fmt: skip
            if not np.array_equal(a, b):
                found.setdefault((a.tobytes(), b.tobytes()), (a, b))
    return list(found.values())


def best_pair(
    draws: OutputDraws,
    pairs: list[Any],
    asked: Question,
    *,
    sizes: Sizes,
    numeric: Numeric,
    learners: Learners,
    skip: bool,
) -> Pair:
    """The pair whose event promises most, by halving: all on 2000 outputs a side, the better half on twice as many.

    Where no pair has outputs that differ at all, the first one that can be drawn from.

    With `skip`, for patterns of our own, one on which the mechanism raises for both data sets is left out: it takes no
    vectors of that length.

    Raises:
        AuditFailed: the mechanism raised on one data set of a pair, or on every pair.
        InvalidParameter: no pairs.
    """
    left = [two(pair) for pair in pairs]
    if not left:
        raise InvalidParameter("pairs=() must be at least one pair of data sets (unit: pairs)")
    n = sizes.n
    size, number = sizes.search_first(len(left)), len(left)
    while True:
        ranked: list[tuple[float, int]] = []
        for index, pair in enumerate(left):
            draws.use(pair)
            fit = _outputs(draws, min(size, n), skip=skip)
            if fit is None:
                continue
            columns = varying(*fit, bits=numeric == "bitwise")
            merit = -math.inf
            if columns.size:
                merit = _merit(draws, draws.keep(columns.tolist(), fit), asked, numeric=numeric, learners=learners)
            ranked.append((merit, index))
        if not ranked:
            raise AuditFailed(f"none of {number} pairs can be audited: the sampler raised on both data sets of each")
        ranked.sort(key=lambda found: -found[0])
        left = [left[index] for _, index in ranked[: (len(ranked) + 1) // 2]]
        if len(left) == 1 or size >= n or ranked[0][0] == -math.inf:
            draws.use(left[0])
            return left[0]
        size *= 2


def _outputs(draws: OutputDraws, n: int, *, skip: bool) -> list[FloatArray] | None:
    """Outputs on both data sets; None if the mechanism raises on both and that may be skipped."""
    try:
        return draws.first(n)
    except AuditFailed:
        if skip and draws.fails(1, n):
            return None
        raise


def two(pair: Any) -> Pair:
    """A pair of data sets.

    Raises:
        InvalidParameter: not exactly two data sets.
    """
    try:
        first, second = pair
    except (TypeError, ValueError):
        raise _validate.fail("pair", pair, "two data sets", "data sets") from None
    return first, second


def _merit(
    draws: OutputDraws, fit: list[FloatArray], asked: Question, *, numeric: Numeric, learners: Learners
) -> float:
    n = fit[0].shape[0]
    found = candidates(fit[0], fit[1], names=draws.encoding.names, numeric=numeric, learners=learners)
    chosen = choose(draws, found, asked, n=n, rank=n)
    bound, point = chosen.bound, chosen.point
    if point is None or point.point is None:
        return bound.merit
    return point.merit if point.point.family else max(bound.power, point.power)


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
    rng: Seeded = None,
    non_finite: NonFinite = "outcome",
    learners: Learners = "all",
    max_draws: int | None = None,
    seconds: float | None = None,
) -> Audit:
    """Bound a mechanism's epsilon from below by its outputs on two neighbouring data sets, and test a claim.

    Args:
        sampler: `sampler(dataset, n, rng)` returns the outputs of n independent runs: an array of shape (n, ...), a
            list, a data frame. An output is a number, a text, or an array, tuple, mapping or record of them.
        pair: two neighbouring data sets, of any type that the sampler takes.
        claim: the claimed guarantee: a Budget, an event, or a function from epsilon (nats) to delta.
        n: outputs of the final test are 2n; as many again, or up to three times as many, are drawn to choose its event,
            and at most 800 000 to learn scores.
        alpha: the probability that a true claim is refuted; also the error probability of each bound.
        numeric: "ideal" tests the values as real numbers. "bitwise" also tests their floating-point representation, and
            then refutes noise that is drawn in floating point.
        delta: at which epsilon is bounded; None: the claim's own, 0 for a pure claim, else 1e-5.
        pairs: where `pair` is None, pairs to search; None: vectors of 1, 5 and 10 answers to queries, each of which one
            row changes by 1 at most.
        stop: "rejected" tests growing batches by a bound that is valid at every stopping time, and stops as soon as the
            claim is refuted, after 5n outputs at the latest; a tenth of n a side is drawn to learn (of n below
            20,000 more: at least n or 2000, whichever is less), and up to three times as many to choose.
        rng: a generator for the sampler and for the audit, or its seed; None: fresh entropy of the operating system.
        non_finite: whether NaN and infinities are accepted as outcomes, or refused.
        learners: "light" leaves out the boosted trees, which need the extra `trainers`.
        max_draws: the largest total number of outputs, learning included, for a slow mechanism; None: no limit.
        seconds: a time limit. The first outputs are timed, and the number of all others is fixed before any is
            tested. `notes` says what either limit left out.

    Raises:
        InvalidParameter: a value outside its bound; a claim that is not a profile; too few outputs for any bound.
        AuditFailed: the sampler raised, or did not return n outputs; its runs are not independent; its outputs are
            of a type that cannot be taken apart, or texts of which nothing can be learned.

    Warns:
        PrivacyWarning: some part of the outputs is too varied to be tested.
        ImportError: outputs of several numbers, `learners="all"`, and scikit-learn is missing.

    Source: docs/explanation/black-box.md.
    """
    began = time.perf_counter()
    terms = AuditTerms(
        curve=ClaimedCurve(claim), n=n, alpha=alpha, numeric=numeric, delta=delta, stop=stop,
        non_finite=non_finite, learners=learners,
    )  # fmt: skip
    if pair is not None and pairs is not None:
        raise InvalidParameter("pair and pairs were both given: say which pair, or which to search (unit: pairs)")
    asked = terms.question()
    draws = OutputDraws(sampler, ((), ()) if pair is None else two(pair), generator_of(rng), non_finite)
    searched = None if pair is not None else (patterns() if pairs is None else list(pairs))
    if searched and seconds is not None:
        draws.use(two(searched[0]))
    parts = sizes(
        draws, n, stop=stop, alpha=alpha, max_draws=max_draws, seconds=seconds, searching=searched is not None
    )
    if parts.n != n:
        terms = replace(terms, n=parts.n)
        asked = terms.question()
    if searched is not None:
        best_pair(draws, searched, asked, sizes=parts, numeric=numeric, learners=learners, skip=pairs is None)
    fit = draws.first(parts.fit_first)
    more = parts.fit_more(fit[0].shape[1])
    if more > 0:
        fit = [np.concatenate([part, draws.once(side, more)]) for side, part in enumerate(fit)]
    reading = draws.encoding
    notes = (*reading.notes, *parts.notes)
    columns = varying(fit[0], fit[1], bits=numeric == "bitwise")
    if reading.unread:
        if not columns.size:
            raise AuditFailed(f"nothing can be learned from these outputs: {'; '.join(reading.notes)}")
        warnings.warn(f"this audit did not look at all of the outputs: {'; '.join(reading.notes)}", PrivacyWarning, 2)
    if not columns.size:
        return _of_one_value(draws, terms, asked, fit, notes, began)
    fit = draws.keep(columns.tolist(), fit)
    wide = fit[0].shape[1]
    found = candidates(fit[0], fit[1], names=draws.encoding.names, numeric=numeric, learners=learners)
    chosen = choose(draws, found, asked, n=parts.choose(wide), rank=parts.rank(wide))
    finding = concluded(draws, terms, asked, agenda(terms, asked, chosen))
    return _audit(draws, terms, asked, finding, notes, began)


def _audit(
    draws: OutputDraws, terms: AuditTerms, asked: Question, finding: AuditFinding, notes: tuple[str, ...], began: float
) -> Audit:
    head, seconds = finding.bounds[0], time.perf_counter() - began
    return Audit(
        epsilon_lower=head.value, delta=asked.delta, rejected=finding.rejected, assumption=head.assumption,
        alpha=asked.alpha, event=head.event, direction=finding.side, samples=draws.drawn, seconds=seconds,
        bounds=tuple(replace(bound, seconds=seconds) for bound in finding.bounds), test=finding.words,
        claim=terms.claim, claimed_epsilon=asked.claimed, needed=needed(asked.claimed, asked.alpha),
        scores=finding.scores, pair=draws.pair, numeric=terms.numeric, notes=(*finding.notes, *notes),
    )  # fmt: skip


def _of_one_value(
    draws: OutputDraws, terms: AuditTerms, asked: Question, fit: list[FloatArray], notes: tuple[str, ...], began: float
) -> Audit:
    """Outputs that are all the same: a bound of 0, and what that does not show."""
    runs = fit[0].shape[0]
    rare = -math.expm1(math.log(asked.alpha) / runs)
    note = (
        f"all {2 * runs:,} outputs of both data sets were the same: the bound is 0, and nothing was tested. An "
        f"outcome of probability above {rare:.2g} would have been seen, with confidence {1.0 - asked.alpha:g}; one "
        "that is rarer needs a larger n"
    )
    event = "none: every output was the same"
    bound = LowerBound(
        value=0.0, delta=asked.delta, alpha=asked.alpha, assumption="none", event=event, samples=2 * runs,
        statistic="outputs of one value",
    )  # fmt: skip
    finding = AuditFinding(
        rejected=False, words="nothing: every output was the same", bounds=(bound,), side="first", scores=None,
        notes=(note,),
    )  # fmt: skip
    return _audit(draws, terms, asked, finding, notes, began)
