"""`audit`: a lower bound on the epsilon of any mechanism that can be called, and a verdict on what is claimed of it."""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ledgerwood.errors import InvalidParameter
from ledgerwood.verification._generators import Seeded, generator_of
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.black_box.draws import Draws, NonFinite, Sampler
from ledgerwood.verification.black_box.fitting import Learners
from ledgerwood.verification.black_box.learning import candidates, choose
from ledgerwood.verification.black_box.pairs import best_pair, two
from ledgerwood.verification.black_box.result import Audit, Numeric
from ledgerwood.verification.black_box.terms import Stop, Terms, needed
from ledgerwood.verification.black_box.testing import agenda, concluded

_LEAST_FIT, _MOST_FIT, _FIT = 20_000, 100_000, 1_200_000
_LEAST_RANK, _RANK, _CHEAP = 20_000, 100_000, 200_000_000
_EARLY = 10
"""Where a test may stop early, a tenth as many outputs are learned from."""


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
) -> Audit:
    """Bound the epsilon of a mechanism from below by its outputs on two neighbouring data sets, and judge a claim.

    Args:
        sampler: `sampler(dataset, n, rng)` returns the outputs of n independent runs, an array of shape (n, ...).
        pair: two neighbouring data sets, whatever the sampler takes.
        claim: what is promised: a Budget, an event, or a function from epsilon (nats) to delta.
        n: outputs of the final test are 2n; as many again, or up to three times as many, are drawn to choose its event,
            and at most 200 000 to learn scores.
        alpha: the probability that a mechanism that keeps its claim is accused; also the error of each bound.
        numeric: "ideal" looks at values, as if they were real numbers; "bitwise" at their bits too, and then noise that
            is made of floats is no noise of the claimed law any more.
        delta: at which epsilon is bounded; None: the claim's own, 0 for a pure claim, else 1e-5.
        pairs: where `pair` is None, pairs to search; None: vectors of 1, 5 and 10 answers to queries, each of which one
            row changes by 1 at most.
        stop: "rejected" tests growing batches by a bound that is valid at every stopping time, and stops as soon as the
            claim is refuted, after 2n outputs at the latest; to learn, a tenth of n a side is drawn, twice.
        rng: handed to the sampler, and tosses the coins, or its seed; None: fresh entropy of the operating system.
        non_finite: whether NaN and infinities are outcomes like others, or refused.
        learners: "light" leaves out the boosted trees, which need the extra `trainers`.

    Raises:
        InvalidParameter: a value outside its bound; a claim that is no profile; too few outputs for any bound.
        AuditFailed: the sampler raised, or returned something that is not n outputs of one shape, or only one value.
        ImportError: outputs of several numbers, `learners="all"`, and scikit-learn is missing.

    Source: docs/explanation/black-box.md.
    """
    began = time.perf_counter()
    terms = Terms(
        curve=ClaimedCurve(claim), n=n, alpha=alpha, numeric=numeric, delta=delta, stop=stop,
        non_finite=non_finite, learners=learners,
    )  # fmt: skip
    if pair is not None and pairs is not None:
        raise InvalidParameter("pair and pairs were both given: say which pair, or which to search (unit: pairs)")
    asked = terms.question()
    generator = generator_of(rng)
    draws = Draws(sampler, ((), ()) if pair is None else two(pair), generator, non_finite)
    if pair is None:
        best_pair(draws, pairs, asked, n=n, numeric=numeric, learners=learners)
    learn = n if stop == "never" else max(n // _EARLY, min(n, 2000))
    fit = [draws.once(side, min(learn, _LEAST_FIT)) for side in (0, 1)]
    wide = fit[0].shape[1]
    more = min(learn, max(_FIT // wide, _LEAST_FIT), _MOST_FIT) - len(fit[0])
    if more > 0:
        fit = [np.concatenate([part, draws.once(side, more)]) for side, part in enumerate(fit)]
    found = candidates(fit[0], fit[1], numeric=numeric, learners=learners)
    # An event is the better chosen the more outputs it is chosen on; those of one or two numbers cost next to nothing.
    bound, point = choose(
        draws, found, asked, n=max(learn, min(3 * learn, _CHEAP // wide**2)), rank=max(_RANK // wide, _LEAST_RANK)
    )
    finding = concluded(draws, terms, asked, agenda(terms, asked, bound, point))
    head, seconds = finding.bounds[0], time.perf_counter() - began
    return Audit(
        epsilon_lower=head.value, delta=asked.delta, rejected=finding.rejected, assumption=head.assumption,
        alpha=asked.alpha, event=head.event, direction=finding.side, samples=draws.drawn, seconds=seconds,
        bounds=tuple(replace(bound, seconds=seconds) for bound in finding.bounds), test=finding.words, claim=claim,
        claimed_epsilon=asked.claimed, needed=needed(asked.claimed, asked.alpha), scores=finding.scores,
        pair=draws.pair, numeric=numeric,
    )  # fmt: skip
