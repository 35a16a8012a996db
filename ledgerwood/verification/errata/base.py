"""What a specimen is: a published mechanism that loses more than is claimed for it, in its smallest form.

A specimen is kept to be caught. It draws outputs as the paper or the code does, on one pair of data sets on which the
claim fails, and it knows its exact loss on that pair. None of them can train anything.
"""

import abc
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve

FloatArray = NDArray[np.float64]
Verdict = Literal["unsound", "slip", "misprint"]
"""Unsound: a wrong theorem, algorithm or code. Slip: right, but easily read wrongly. Misprint: wrong as printed."""
Auditor = Literal["black-box", "bitwise", "data independence", "likelihood ratio"]
"""Who catches a specimen. All four see outputs only, and count one event in fresh ones.

Black-box: `verification.audit`, which learns the event. Bitwise: the same on the bits of the outputs. Data
independence: what has no noise must be equal on both data sets, and the event is the output of a first run. Likelihood
ratio: the event is taken from the two known laws, where a violation is too small, or an output too wide, to learn fast.
"""


class Row(NamedTuple):
    """One figure of docs/errata.md: what is claimed, and what holds."""

    quantity: str
    claimed: float
    exact: float


class Specimen(abc.ABC):
    """An unsound mechanism in its smallest form. Frozen; its fields are public parameters, with the page's as defaults.

    Attributes:
        name: unique among the specimens.
        source: paper and theorem, or the released code and its function.
        anchor: the entry of docs/errata.md that explains it.
        verdict: in what sense it is wrong.
        adjacency: how the two data sets of `pair` differ.
        auditor: who catches it.
    """

    __slots__ = ()
    name: ClassVar[str]
    source: ClassVar[str]
    anchor: ClassVar[str]
    verdict: ClassVar[Verdict]
    adjacency: ClassVar[Adjacency]
    auditor: ClassVar[Auditor] = "black-box"

    @property
    @abc.abstractmethod
    def claim(self) -> Claim:
        """What paper or code promises for every pair of neighbours, so for this one."""

    @property
    @abc.abstractmethod
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """Data sets with the row and without it (or with another row), one row each along the first axis."""

    @property
    @abc.abstractmethod
    def witness(self) -> float:
        """An epsilon, in nats, at which the claim is broken."""

    @abc.abstractmethod
    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """Outputs of n independent runs on a data set of the shape of `pair`; shape (n,) or (n, ...)."""

    @abc.abstractmethod
    def _delta(self, epsilon: float) -> float:
        """`delta` for an epsilon that is in range."""

    @final
    def delta(self, epsilon: float) -> float:
        """The exact hockey-stick divergence of the laws of `pair` at epsilon (nats), the larger direction.

        Raises:
            InvalidParameter: an epsilon outside [0, 700].
        """
        return self._delta(_in_range(epsilon))

    def log_ratio(self, outputs: FloatArray) -> FloatArray | None:
        """log p / q of outputs of `sampler`, p with the row, in nats, shape (n,), -inf and inf included.

        None where it is not written down: only the likelihood-ratio auditor asks.
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


class Deterministic(Specimen):
    """A specimen that adds no noise: it tells its two data sets apart for certain."""

    __slots__ = ()
    auditor: ClassVar[Auditor] = "data independence"

    @abc.abstractmethod
    def output(self, dataset: FloatArray) -> tuple[float, ...]:
        """What every run on `dataset` releases."""

    @property
    def witness(self) -> float:
        """Any epsilon would do; this one is larger than anybody would claim."""
        return 100.0

    @final
    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The one output n times; shape (n, k)."""
        return np.tile(np.array(self.output(dataset)), (n, 1))

    @final
    def _delta(self, epsilon: float) -> float:
        """1 at every epsilon: each law is one point, and the points differ."""
        with_row, without = self.pair
        return float(self.output(with_row) != self.output(without))


def _in_range(epsilon: float) -> float:
    """Beyond 700 nats e^epsilon is no number of float64, and nobody's promise."""
    number = _validate.non_negative("epsilon", epsilon, "nats")
    if number > 700.0:
        raise _validate.fail("epsilon", epsilon, "at most 700", "nats")
    return number
