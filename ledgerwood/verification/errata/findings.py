"""What an audit of a specimen found, and what was claimed, in words and in numbers."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, final

from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.verification.auditing.claims import Claim
from ledgerwood.verification.auditing.result import Assumption
from ledgerwood.verification.errata.base import Auditor, Verdict

Quantity = Literal["epsilon", "delta"]
"""What was bounded from below: epsilon at a delta, or delta at an epsilon."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One specimen, its claim, its exact loss, and what its auditor found in a number of outputs."""

    specimen: str  #: its name
    verdict: Verdict  #: in what sense it is wrong
    claim: str  #: in words
    witness: float  #: epsilon at which the claim is broken, in nats
    claimed_delta: float  #: what the claim allows there
    exact_delta: float  #: what the specimen loses there, on its pair
    auditor: Auditor  #: who looked
    quantity: Quantity  #: what was bounded
    bound: float  #: the measured lower bound, on epsilon (nats) or on delta
    at: float  #: the delta, or the epsilon, at which it holds
    claimed: float  #: what the claim allows there
    caught: bool  #: the claim is refuted at level alpha. A right mechanism is refuted with probability alpha at most
    test: str  #: what was compared to decide that, in words
    alpha: float  #: error of `caught`, and of `bound`
    assumption: Assumption  #: what `bound` rests on; "none" for all that the auditors of specimens say
    samples: int  #: outputs that were drawn, all of them
    needed: int  #: about how many outputs the best test takes, if the event is known, 95 times in 100
    seconds: float  #: of this audit, on the machine that it ran on

    def to_dict(self) -> dict[str, Any]:
        """Names and values, infinities as "inf": `Finding.from_dict` reads it."""
        return {key: "inf" if value == math.inf else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Finding":
        """What `to_dict` gave.

        Raises:
            TypeError: a record with other names.
        """
        values: dict[str, Any] = {key: math.inf if value == "inf" else value for key, value in record.items()}
        return cls(**values)

    def decided(self) -> str:
        """What refuted the claim, in words: the bound, if that is above what is claimed, else the comparison."""
        return self.measured() if self.bound > self.claimed else f"{self.test}; {self.measured()}"

    def measured(self) -> str:
        """The bound in words."""
        other = "delta" if self.quantity == "epsilon" else "epsilon"
        return f"{self.quantity} >= {down(self.bound)} at {other} {self.at:.4g} (claimed {self.claimed:.4g})"


def down(bound: float) -> str:
    """A lower bound with three digits, rounded down: it may not grow in print."""
    if not math.isfinite(bound) or bound == 0.0:
        return f"{bound:g}"
    step = 10.0 ** (math.floor(math.log10(abs(bound))) - 2)
    return f"{math.floor(bound / step) * step:.3g}"


def in_words(claim: Claim) -> str:
    """A claim as a person would say it."""
    match claim:
        case Budget():
            return f"({claim.epsilon:g}, {claim.delta:g})"
        case PureEvent():
            return f"epsilon {claim.pure_epsilon():.4g}"
        case GaussianEvent():
            return f"Gaussian noise of multiplier {claim.noise_multiplier:.4g}"
        case LaplaceEvent():
            return f"Laplace noise of multiplier {claim.noise_multiplier:.4g}"
        case PoissonSampled():
            return f"{in_words(claim.event)}, sampled at rate {claim.sampling_rate:g}"
        case Event():
            return type(claim).__name__
    return "a curve delta(epsilon)"
