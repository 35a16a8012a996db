"""`audit`: a lower bound on the epsilon of any mechanism that can be called, and a test of its claim."""

import math
import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.errors import AuditFailed, InvalidParameter, PrivacyWarning
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.result import LowerBound
from ledgerwood.verification.black_box.budget import sizes
from ledgerwood.verification.black_box.outputs.draws import NonFinite, OutputDraws, Sampler
from ledgerwood.verification.black_box.outputs.reading import varying
from ledgerwood.verification.black_box.pairs import best_pair, patterns, two
from ledgerwood.verification.black_box.result import Audit, Numeric
from ledgerwood.verification.black_box.scoring.choosing import Question
from ledgerwood.verification.black_box.scoring.fitting import Learners
from ledgerwood.verification.black_box.scoring.learning import candidates, choose
from ledgerwood.verification.black_box.terms import AuditTerms, Stop, needed
from ledgerwood.verification.black_box.testing import AuditFinding, agenda, concluded
from ledgerwood.verification.generators import Seeded, generator_of


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
            and at most 200 000 to learn scores.
        alpha: the probability that a true claim is refuted; also the error probability of each bound.
        numeric: "ideal" tests the values as real numbers. "bitwise" also tests their floating-point representation, and
            then refutes noise that is drawn in floating point.
        delta: at which epsilon is bounded; None: the claim's own, 0 for a pure claim, else 1e-5.
        pairs: where `pair` is None, pairs to search; None: vectors of 1, 5 and 10 answers to queries, each of which one
            row changes by 1 at most.
        stop: "rejected" tests growing batches by a bound that is valid at every stopping time, and stops as soon as the
            claim is refuted, after 2n outputs at the latest; to learn, a tenth of n a side is drawn, twice.
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
    if parts.n < n:
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
