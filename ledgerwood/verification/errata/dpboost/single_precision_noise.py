"""DPBoost's released code: the noise is a number of single precision, the leaf one of double precision."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.choices.pure import PureEvent
from ledgerwood.verification.errata.base import Auditor, FloatArray, Specimen, Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SinglePrecisionNoise(Specimen):
    """One leaf, g* = 1 and lambda .1, with the difference of two exponential deviates of float32 added in float64.

    An empty leaf is the noise itself, a float32. A leaf of one row is 1 / 1.1, whose digits beyond float32 stay in the
    sum, so that it never is a float32. docs/errata.md#errata-dpboost-seeds.

    Args:
        epsilon: the price of the leaves of a tree, in nats, in [1/4, 4]: there no sum is large enough to lose them.
    """

    name: ClassVar[str] = "dpboost-single-precision-noise"
    source: ClassVar[str] = "released code, Laplace::return_a_random_variable and Tree::add_noise"
    anchor: ClassVar[str] = "errata-dpboost-seeds"
    verdict: ClassVar[Verdict] = "unsound"
    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE
    auditor: ClassVar[Auditor] = "bitwise"

    epsilon: float = 1.0

    def __post_init__(self) -> None:
        if not 0.25 <= _validate.real("epsilon", self.epsilon, "nats") <= 4.0:
            raise _validate.fail("epsilon", self.epsilon, "in [1/4, 4]", "nats")

    @property
    def claim(self) -> PureEvent:
        return PureEvent(epsilon=self.epsilon, adjacency=self.adjacency)

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """One gradient of -1 in the leaf; and none."""
        return -np.ones(1), np.ones(0)

    @property
    def witness(self) -> float:
        return 100.0

    def sampler(self, dataset: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
        """The leaf before the learning rate, shape (n,)."""
        value = -float(dataset.sum()) / (dataset.size + 0.1)
        uniform = (rng.integers(0, 1 << 24, (2, n)) / np.float64(1 << 24)).astype(np.float32)
        deviates = -np.log1p(-uniform) * np.float32(1.0 / 1.1 / self.epsilon)
        return np.asarray(value + (deviates[0] - deviates[1]).astype(np.float64))

    def _delta(self, epsilon: float) -> float:
        """1 at every epsilon: no output is possible on both data sets.

        Let s = fl(v + e), v the leaf, e the noise, a float32 of whole 2^-50 with |e| < 64. Were s a float32, v would be
        within half of s's last place (float64) of a multiple of the smaller of both last places (float32). v is 10/11
        to 2^-54: from multiples of 2^-j, j <= 33, it is 2^-j / 12 away, and that half is at most 2^-47. This leaves
        |e| < 2^-10, where s is in [1/2, 1) and v is no multiple of 2^-52; and |s| < 2^-10, where s = v + e is exact,
        odd in units of 2^-53 and above 2^-28: too many digits.
        """
        return 1.0
