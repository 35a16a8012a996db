"""Leaf values with Laplace noise: of a ratio, or of a sum and a number of rows."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events import LaplaceEvent
from ledgerwood.curator import LargeGradients, LeafMoments, LeafRatios, Loss, Round
from ledgerwood.ensemble import Ensemble, TreeStructure
from ledgerwood.mechanisms import LaplaceMechanism

LeafRelease = Literal["ratio", "sums"]
LeafRegularization = Literal["lambda", "noise"]
LEAST_LEAF_EPSILON = {"ratio": 2.0**-20, "sums": 2.0**-24}
"""Below it a leaf's noise is a million times the largest ratio, or what ten million rows of it add up to: nothing is
learnt, and a budget is refused as too small for its plan."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceLeaves:
    """What is released of one tree's leaves, and with how much noise. The privacy cost is `epsilon` for every tree.

    Args:
        release: "ratio", the sum of gradients over (rows + reg_lambda), DPBoost's; or "sums", the number of rows and
            the sum of gradients, each with noise of its own.
        adjacency: the relation of neighbouring data sets.
        epsilon: of one tree's leaves, in nats.
        loss, clip, large_gradients: see `LeafMoments`.
        reg_lambda: lambda > 0 of the ratio, in rows.
        leaf_clip: largest absolute ratio, before the noise; None for no bound but the clip's ("ratio").
        count_share: share of epsilon for the number of rows, in (0, 1) ("sums").
        weighted: whether rows may have their own weights, up to the schema's bound; a row of that weight is 1 then.
    """

    release: LeafRelease
    adjacency: Adjacency
    epsilon: float
    loss: Loss
    clip: float
    large_gradients: LargeGradients
    reg_lambda: float
    leaf_clip: float | None = None
    count_share: float = 0.5
    weighted: bool = False

    def __post_init__(self) -> None:
        _validate.positive("leaf epsilon", self.epsilon, "nats")
        if not 0.0 < _validate.real("count_share", self.count_share, "share of epsilon") < 1.0:
            raise _validate.fail("count_share", self.count_share, "in (0, 1)", "share of epsilon")

    @property
    def leaf(self) -> LeafMoments | LeafRatios:
        """The statistic of one tree's leaves, whatever the tree."""
        if self.release == "ratio":
            return LeafRatios(
                loss=self.loss, clip=self.clip, damping=self.reg_lambda, leaf_clip=self.leaf_clip,
                large_gradients=self.large_gradients, weighted=self.weighted,
            )  # fmt: skip
        return LeafMoments(loss=self.loss, clip=self.clip, large_gradients=self.large_gradients)

    @property
    def mechanism(self) -> LaplaceMechanism:
        """The noise: as much of it as the tree's own sensitivity asks for."""
        shifts = self.leaf.sensitivity(self.adjacency)  # which checks the clip
        proportions: tuple[float, ...] = (1.0,)
        if self.release == "sums":
            proportions = (1.0 / self.count_share, self.clip / (1.0 - self.count_share))
        return LaplaceMechanism.of_multiplier(self._multiplier, shifts, proportions=proportions)

    @property
    def event(self) -> LaplaceEvent:
        """One tree's leaves."""
        return LaplaceEvent(noise_multiplier=self._multiplier, adjacency=self.adjacency)

    def require_fit(self) -> None:
        """Refuse noise that cannot be drawn.

        Raises:
            InvalidParameter: it is too large for the statistic's grid.
        """
        self.mechanism.require_fit(self.leaf.grid)

    def lambda_by_noise(self, *, trees: int, learning_rate: float, score_noise: float) -> float:
        """lambda and as much more, in rows, as keeps the noise that all trees add to a score at `score_noise` ("sums").

        Args:
            trees: T. learning_rate: eta.
            score_noise: stddev, in units of the gradient.
        """
        # A tree adds noise of stddev at most eta s / lambda to a score, and the trees' noises are independent.
        stddev = math.sqrt(2.0) * self.mechanism.scales[1]
        return self.reg_lambda + learning_rate * math.sqrt(trees) * stddev / score_noise

    def signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of one leaf of one tree; docs/explanation/cautions.md#leaf-signal.

        Args:
            rows: in the leaf, all with the largest gradient that counts.
        """
        signal = self.clip * rows
        if self.release == "ratio":
            signal /= rows + self.reg_lambda
            signal = signal if self.leaf_clip is None else min(signal, self.leaf_clip)
        return signal / (math.sqrt(2.0) * self.mechanism.scales[-1])

    def released(
        self, structure: TreeStructure, ensemble: Ensemble, round_: Round, *, purpose: str, positive: int | None = None
    ) -> NDArray[np.float64]:
        """The leaves' noisy ratios (n_leaves, 1), or numbers of rows and sums of gradients (n_leaves, 2).

        Of several classes `positive` is the one that is told from all others.
        """
        query = self.leaf.of(structure, ensemble, positive=positive)
        return round_.release(query, self.mechanism, purpose=purpose).real

    @property
    def _multiplier(self) -> float:
        return float_up(1 / Fraction(self.epsilon))
