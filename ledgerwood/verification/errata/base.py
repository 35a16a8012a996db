"""Specimens: published mechanisms that lose more than is claimed for them, in their smallest form, kept to be caught.

A specimen draws outputs as the paper or the code does, on one pair of data sets on which the claim fails, and it knows
its exact loss on that pair. None of them can train anything. A `Finding` says in words and in numbers what was claimed,
and what an audit found.
"""

import abc
import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, dataclass_transform, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.accounting.events.noise.gaussian import GaussianEvent
from ledgerwood.accounting.events.noise.laplace import LaplaceEvent
from ledgerwood.accounting.events.sampled.poisson import PoissonSampled
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.result import Assumption

FloatArray = NDArray[np.float64]
Pair = tuple[FloatArray, FloatArray]
"""Two neighbouring data sets: with the row and without it, or with another row in its place."""
Verdict = Literal["unsound", "slip", "misprint"]
"""Unsound: a wrong theorem, algorithm or code. Slip: right, but easily read wrongly. Misprint: wrong as printed."""
Auditor = Literal["black-box", "bitwise", "data independence", "likelihood ratio"]
"""The auditor that catches a specimen. All four see outputs only, and count one event in fresh ones.

Black-box: `verification.audit`, which learns the event. Bitwise: the same on the bits of the outputs. Data
independence: an output without noise must be equal on both data sets, and the event is the output of a first run.
Likelihood ratio: the event is taken from the two known distributions, where a violation is too small, or an output too
wide, to learn it fast.
"""

_Kind = TypeVar("_Kind", bound="Specimen")


class Row(NamedTuple):
    """One figure of docs/errata.md: the claimed value and the exact one."""

    quantity: str
    claimed: float
    exact: float


def without_last(rows: ArrayLike) -> Pair:
    """Returns a data set, one row each along the first axis, and the same without its last row; both read-only."""
    with_row = np.array(rows, dtype=np.float64)
    with_row.flags.writeable = False
    return with_row, with_row[:-1]


class Specimen(abc.ABC):
    """An unsound mechanism in its smallest form; `specimen` makes a final class of it.

    Its fields are public constants of its paper or code, with the page's values as defaults. They are not checked:
    only the page and the tests set them, and the events and budgets of the claims check their own.
    """

    __slots__ = ()
    anchor: ClassVar[str]
    source: ClassVar[str]
    verdict: ClassVar[Verdict]
    adjacency: ClassVar[Adjacency]
    auditor: ClassVar[Auditor] = "black-box"

    @property
    def name(self) -> str:
        """The paper, by the module, and the class, as `sgbdt-price-cache`: unique among the specimens."""
        module, words = type(self).__module__.rpartition(".")[2], re.findall("[A-Z][a-z]*", type(self).__name__)
        paper = module.partition("_")[0]
        return "-".join([paper, *(word.lower() for word in words if word.lower() != paper)])

    @property
    @abc.abstractmethod
    def claim(self) -> Claim:
        """The promise of paper or code for every pair of neighbours, so for this one."""

    @property
    @abc.abstractmethod
    def pair(self) -> Pair:
        """The neighbouring data sets on which the claim fails."""

    @property
    def witness(self) -> float:
        """An epsilon, in nats, at which the claim is broken; 100 if any epsilon that somebody might claim is broken."""
        return 100.0

    @abc.abstractmethod
    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Draws the outputs of n independent runs on a data set of the shape of `pair`; shape (n,) or (n, ...)."""

    @abc.abstractmethod
    def _delta(self, epsilon: float) -> float:
        """`delta` for an epsilon that is in range."""

    @final
    def delta(self, epsilon: float) -> float:
        """The exact hockey-stick divergence of the outputs on `pair` at epsilon (nats), the larger direction.

        Raises:
            InvalidParameter: an epsilon outside [0, 700].
        """
        return self._delta(_in_range(epsilon))

    def log_ratio(self, outputs: FloatArray) -> FloatArray | None:
        """log p / q of outputs of `sampler`, p with the row, in nats, shape (n,), -inf and inf included.

        None if it is not written down: only the likelihood-ratio auditor asks for it.
        """
        return None

    def more_rows(self) -> tuple[Row, ...]:
        """Further figures of the page."""
        return ()

    @final
    def claimed_delta(self, epsilon: float) -> float:
        """The delta that the claim allows at epsilon (nats), rounded up.

        Raises:
            InvalidParameter: an epsilon outside [0, 700].
        """
        return ClaimedCurve(self.claim).delta(_in_range(epsilon))

    @final
    def rows(self) -> tuple[Row, ...]:
        """The figures of docs/errata.md, first of them the claim and the truth at the witness."""
        at = self.witness
        return (Row(f"delta at epsilon {at:.4g}", self.claimed_delta(at), self.delta(at)), *self.more_rows())


@dataclass_transform(frozen_default=True, kw_only_default=True)
def specimen(
    anchor: str,
    source: str,
    *,
    verdict: Verdict = "unsound",
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    auditor: Auditor | None = None,
) -> Callable[[type[_Kind]], type[_Kind]]:
    """Makes a final class, a frozen, slotted, keyword-only dataclass, with the attributes of a `Specimen`.

    Args:
        anchor: the entry of docs/errata.md that explains it.
        source: paper and theorem, or the released code and its function.
        verdict: the kind of error.
        adjacency: how the two data sets of `pair` differ.
        auditor: the auditor that detects it; None for the default auditor of its outputs.
    """

    def made(kind: type[_Kind]) -> type[_Kind]:
        kind.anchor, kind.source, kind.verdict, kind.adjacency = anchor, source, verdict, adjacency
        kind.auditor = kind.auditor if auditor is None else auditor
        return final(dataclass(frozen=True, slots=True, kw_only=True)(kind))

    return made


class PureClaim(Specimen):
    """A specimen of a pure claim, which it breaks at the epsilon that is claimed."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def epsilon(self) -> float:
        """The privacy cost by which the noise is scaled, in nats."""

    @property
    def claimed_epsilon(self) -> float:
        """The claim, in nats: `epsilon`, unless a specimen claims that something amplifies it."""
        return self.epsilon

    @property
    def claim(self) -> Event:
        return PureEvent(epsilon=self.claimed_epsilon, adjacency=self.adjacency)

    @property
    def witness(self) -> float:
        return self.claimed_epsilon

    @abc.abstractmethod
    def pure_epsilon(self) -> float:
        """The largest |log ratio| of the probabilities of an output on `pair`, in nats; it may be inf."""

    def more_rows(self) -> tuple[Row, ...]:
        return (Row("pure epsilon", self.claimed_epsilon, self.pure_epsilon()),)


class Deterministic(Specimen):
    """A specimen without noise: it tells its two data sets apart for certain."""

    __slots__ = ()
    auditor: ClassVar[Auditor] = "data independence"

    @abc.abstractmethod
    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """The numbers that every run on `dataset` releases."""

    @final
    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The one output n times; shape (n, k)."""
        return np.tile(np.array(self.output(dataset)), (n, 1))

    @final
    def _delta(self, epsilon: float) -> float:
        """1 at every epsilon: each distribution is one point, and the points differ."""
        with_row, without = self.pair
        return float(self.output(with_row) != self.output(without))


def _in_range(epsilon: float) -> float:
    """Refuses an epsilon beyond 700 nats: e^epsilon is no number of float64, and nobody's promise."""
    number = _validate.non_negative("epsilon", epsilon, "nats")
    if number > 700.0:
        raise _validate.fail("epsilon", epsilon, "at most 700", "nats")
    return number


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
        """Restores a finding from the result of `to_dict`.

        Raises:
            TypeError: a record with other names.
        """
        values: dict[str, Any] = {key: math.inf if value == "inf" else value for key, value in record.items()}
        return cls(**values)

    def decided(self) -> str:
        """Says what refuted the claim: the bound, if it is above the claim, otherwise the comparison."""
        return self.measured() if self.bound > self.claimed else f"{self.test}; {self.measured()}"

    def measured(self) -> str:
        """The bound in words."""
        other = "delta" if self.quantity == "epsilon" else "epsilon"
        return f"{self.quantity} >= {down(self.bound)} at {other} {self.at:.4g} (claimed {self.claimed:.4g})"


def down(bound: float) -> str:
    """A lower bound with three digits, rounded down, so that the printed bound is valid."""
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
