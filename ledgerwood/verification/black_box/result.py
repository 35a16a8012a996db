"""The result of an audit of a mechanism."""

import math
from dataclasses import dataclass
from typing import Any, Literal, final

from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.pages.shown import Told
from ledgerwood.references import Cited, auditing
from ledgerwood.verification.auditing.claims import Claim
from ledgerwood.verification.auditing.result import Assumption, LowerBound, Scores

Side = Literal["first", "second"]
"""The data set of the pair that the event speaks for: the one whose probability is on the left of P <= e^epsilon Q."""
SIDES: tuple[Side, Side] = ("first", "second")
Numeric = Literal["ideal", "bitwise"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Audit(Told, Cited):
    """A lower bound on the epsilon of a mechanism, and the result of the test of its claim.

    Args:
        epsilon_lower: epsilon at `delta` is at least this, in nats, with probability 1 - alpha, if `assumption` holds;
            inf if no epsilon is left. A note says so where it was chosen as the larger of two bounds after the test.
        delta: at which it holds.
        rejected: whether the claim is refuted. This assumes independent runs only, even if `assumption` says more. A
            true claim is refuted with probability alpha at most.
        assumption: the assumption of `epsilon_lower`.
        alpha: the error of each statement: of `rejected`, and of every bound by itself.
        event: the outputs that were counted, in words.
        direction: on which data set of the pair the event is the likelier one.
        samples: all outputs that were drawn, those for learning included.
        seconds: all of it, sampling included.
        bounds: `epsilon_lower` first; then other bounds from the same outputs, each with its assumption.
        test: the comparison behind `rejected`, in words, with both numbers.
        claim: the given claim.
        claimed_epsilon: the epsilon that the claim promises at `delta`; inf if it promises none.
        needed: the least n with which any outputs could have refuted this claim at `delta`, as a budget; None if it
            promises nothing there.
        scores: the scores of the outputs of the test, higher ones speaking for `direction`; None if the test
            stopped early: bands around their ROC do not allow for that.
        pair: the two data sets.
        numeric: whether only values were tested, or their bits too.
        notes: remarks: what was not tested, or why a bound is 0 or is not stated.
    """

    epsilon_lower: float
    delta: float
    rejected: bool
    assumption: Assumption
    alpha: float
    event: str
    direction: Side
    samples: int
    seconds: float
    bounds: tuple[LowerBound, ...]
    test: str
    claim: Claim
    claimed_epsilon: float
    needed: int | None
    scores: Scores | None
    pair: tuple[Any, Any]
    numeric: Numeric
    notes: tuple[str, ...] = ()

    def cited(self) -> tuple[object, ...]:
        """What it rests on, for `ledgerwood.cite`: how outputs are chosen, and what was claimed."""
        claim = (self.claim,) if isinstance(self.claim, Event) else ()
        return (auditing.DING_2018, auditing.BICHSEL_2021, *claim)

    def to_dict(self) -> dict[str, Any]:
        """Numbers and words, ready for JSON; infinities as "inf". Neither data sets nor outputs."""
        return {
            "epsilon_lower": _finite(self.epsilon_lower),
            "delta": self.delta,
            "rejected": self.rejected,
            "assumption": self.assumption,
            "alpha": self.alpha,
            "event": self.event,
            "direction": self.direction,
            "samples": self.samples,
            "seconds": self.seconds,
            "test": self.test,
            "claim": repr(self.claim) if isinstance(self.claim, Event | Budget) else "a function",
            "claimed_epsilon": _finite(self.claimed_epsilon),
            "needed": self.needed,
            "numeric": self.numeric,
            "notes": list(self.notes),
            "bounds": [
                {
                    "value": _finite(bound.value),
                    "delta": bound.delta,
                    "alpha": bound.alpha,
                    "assumption": bound.assumption,
                    "event": bound.event,
                    "samples": bound.samples,
                    "statistic": bound.statistic,
                    "seconds": bound.seconds,
                }
                for bound in self.bounds
            ],
        }

    def __str__(self) -> str:
        verdict = "refuted" if self.rejected else "not refuted"
        return "\n".join([f"{self.bounds[0]}; claim {verdict}: {self.test}", *(f"note: {note}" for note in self.notes)])


def _finite(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
