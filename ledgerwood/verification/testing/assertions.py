"""`assert_dp`: an audit as an assertion in a test."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from ledgerwood.verification.figures import Seeded, generator_of
from ledgerwood.verification.sensitivity.checking import shown

if TYPE_CHECKING:
    from ledgerwood.verification.auditing.claims import Claim
    from ledgerwood.verification.black_box import Audit
    from ledgerwood.verification.black_box.draws import Sampler


def assert_dp(
    sampler: "Sampler",
    *,
    claim: "Claim",
    pair: tuple[Any, Any] | None = None,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    n: int = 100_000,
    alpha: float = 1e-3,
    numeric: Literal["ideal", "bitwise"] = "ideal",
    delta: float | None = None,
    learners: Literal["all", "light"] = "all",
    rng: Seeded = None,
    max_draws: int | None = None,
    seconds: float | None = None,
) -> "Audit":
    """Assert, in a test, that `audit` does not refute a claim.

    If the claim is true, the assertion fails with probability alpha at most, in each test with fresh randomness. A
    mechanism that passes is not proven private: `Audit.epsilon_lower` is the bound that was shown.

    Args:
        sampler: `sampler(dataset, n, rng)` returns the outputs of n independent runs, an array of shape (n, ...).
        claim: the claimed guarantee: a Budget, an event, or a function from epsilon (nats) to delta.
        pair: two neighbouring data sets, of any type that the sampler takes; None: some are searched.
        pairs: where `pair` is None, pairs to search.
        n: outputs of the final test are 2n.
        alpha: probability that a true claim fails. Each call has its own alpha.
        numeric: "bitwise" looks at the bits of floats, too.
        delta: at which epsilon is bounded; None: the claim's own.
        learners: "light" needs no scikit-learn.
        rng: a generator for the sampler and for the audit, or its seed; seed 0 by default, so that the result is the
            same each time (unless the sampler uses other randomness).
        max_draws, seconds: limits of a slow mechanism, as of `audit`; `Audit.notes` says what was left out.

    Raises:
        AssertionError: the claim is refuted; the message names the bound, the event and the pair.
        InvalidParameter, AuditFailed: as of `audit`.
    """
    __tracebackhide__ = True
    from ledgerwood.verification.black_box import audit

    found = audit(
        sampler, pair, claim=claim, n=n, alpha=alpha, numeric=numeric, delta=delta, pairs=pairs, learners=learners,
        rng=generator_of(rng, unsaid=0), max_draws=max_draws, seconds=seconds,
    )  # fmt: skip
    if found.rejected:
        raise AssertionError(
            f"the claim {claim!r} is refuted at alpha {alpha:g}: {found.test}\n"
            f"{found.bounds[0]}\n"
            f"event: {found.event}, likelier on the {found.direction} of the data sets\n"
            f"{shown(found.pair[0])} and\n{shown(found.pair[1])}"
        )
    return found
