"""Skellam noise on whole units: of which units a statistic is counted in, for noise of a given stddev.

Every release is a vector of whole numbers with one variance of independent Skellam noise, so that clients can add
shares of it. Proof and cost: docs/explanation/federated.md#federated-skellam.
"""

import math
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator import LeafClassGradients, LeafCurvatures, LeafMoments, WholeSums
from ledgerwood.curator.queries.units import MAX_BITS
from ledgerwood.mechanisms import SkellamMechanism

NoiseKind = Literal["gaussian", "skellam"]
STDDEV_UNITS = 2.0**14
"""Largest stddev of Skellam noise, in units: its sampler's tables stay small, at 1e-8 of its cost."""


def bits_of(stddev: float, least: int = 0) -> int:
    """The binary places of units of which a stddev has 2**13 to 2**14, as far as grids allow."""
    return min(max(math.floor(math.log2(STDDEV_UNITS / stddev)), least), MAX_BITS)


def skellam_noise(stddev: float, bits: int) -> SkellamMechanism:
    """Skellam noise of a stddev in a statistic's units, drawn on its whole units of 2**-bits.

    Raises:
        InvalidParameter: more of it than a sampler's table holds.
    """
    return SkellamMechanism(variance=(stddev * 2.0**bits) ** 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WholeLeaves:
    """The pair of a leaf's sums, in whole units, and its Skellam noise; or its rows and the gradients of all classes.

    All columns have noise of one variance in their units. Rows are counted in units that are coarser by a power of
    two, so that their share of the sensitivity is about `count_share`; hessians and gradients share one ball, so one
    unit.

    Args:
        leaf: what is added up.
        noise_multiplier: stddev over L2 sensitivity under add-remove, both in units.
        count_share: of the squared L2 sensitivity for the number of rows, to the next power of two.
    """

    leaf: LeafMoments | LeafCurvatures | LeafClassGradients
    noise_multiplier: float
    count_share: float

    @property
    def coarser(self) -> int:
        """By how many binary places the units of rows are coarser than those of gradients."""
        if isinstance(self.leaf, LeafCurvatures):
            return 0
        ratio = (1.0 - self.count_share) / self.count_share
        largest = self.leaf.radius if isinstance(self.leaf, LeafClassGradients) else self.leaf.clip
        return min(max(round(0.5 * math.log2(ratio) - math.log2(largest)), 0), MAX_BITS)

    @property
    def stddevs(self) -> tuple[float, float]:
        """Standard deviations of the first column's noise, and of all others', in the leaf statistic's units."""
        shifts = self.leaf.sensitivity(Adjacency.ADD_REMOVE)
        gradient = self.noise_multiplier * shifts.l2((2.0**self.coarser, *(1.0,) * (self.leaf.width - 1)))
        return gradient * 2.0**self.coarser, gradient

    @property
    def bits(self) -> int:
        """Binary places of the gradients' units."""
        return bits_of(self.stddevs[1], self.coarser)

    @property
    def query(self) -> WholeSums:
        """The statistic that is released."""
        return WholeSums(leaf=self.leaf, bits=self.bits, weight_bits=self.bits - self.coarser)

    @property
    def mechanism(self) -> SkellamMechanism:
        """Its noise."""
        return skellam_noise(self.stddevs[1], self.bits)

    def in_leaf_units(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """Released sums (..., width) in the leaf statistic's units."""
        bits = self.bits
        return np.asarray(released * np.array([2.0 ** (self.coarser - bits), *[2.0**-bits] * (self.leaf.width - 1)]))
