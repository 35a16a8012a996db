"""The largest bound that any attack on the releases of some trainings is expected to show.

docs/explanation/canaries.md#canary-ceilings.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from ledgerwood.verification.auditing.claims import Claim
from ledgerwood.verification.auditing.one_run import one_run
from ledgerwood.verification.canaries import theory

Floats = NDArray[np.float64]
_LAPLACE = 0.5 * math.log(math.pi / math.e)
"""By how much the entropy of a Gaussian exceeds that of Laplace noise of the same variance."""


def coin_nats(epsilon: float) -> float:
    """Bounds the information of an epsilon-private release about one fair coin: that of randomised response, nats."""
    return math.log(2.0) - _entropy(float(special.expit(epsilon)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Nats:
    """Two bounds on the information of releases about all coins, in nats; each may be added up over releases.

    Args:
        outputs: by the number of outputs, or the capacity of noisy sums, whatever was released before.
        coins: the sum over coins of what is told of one coin, given all others.
    """

    outputs: float
    coins: float

    @property
    def least(self) -> float:
        """The smaller bound. Bounds of one kind have to be added up first: a sum of smaller ones is no bound."""
        return min(self.outputs, self.coins)

    def __add__(self, other: "Nats") -> "Nats":
        return Nats(outputs=self.outputs + other.outputs, coins=self.coins + other.coins)


NO_NATS = Nats(outputs=0.0, coins=0.0)
UNKNOWN_NATS = Nats(outputs=math.inf, coins=math.inf)


def choice_nats(candidates: int, nodes: int, canaries: int, epsilon: float) -> Nats:
    """Bounds the information of a private choice at each node about all coins.

    Args:
        candidates: of each node.
        nodes: how many nodes choose.
        canaries: how many coins.
        epsilon: of one choice.
    """
    return Nats(outputs=nodes * math.log(max(candidates, 1)), coins=canaries * coin_nats(epsilon))


def sum_nats(reach: Floats, squares: Floats, variance: Floats, *, laplace: bool) -> Nats:
    """Bounds the information of noisy sums about the coins that move them.

    Args:
        reach: the sum of the absolute contributions to each sum.
        squares: the sum of their squares.
        variance: of the noise.
        laplace: whether the noise is Laplace noise; otherwise it is Gaussian.
    """
    outputs = 0.5 * np.log1p(0.25 * reach**2 / variance) + (_LAPLACE if laplace else 0.0)
    coins = 0.25 * squares / (0.5 * variance if laplace else variance)
    return Nats(outputs=float(outputs.sum()), coins=float(coins.sum()))


def accuracy_of(nats: float, guesses: int) -> float:
    """The largest expected share of right guesses: the p with guesses (ln 2 - h(p)) = nats; 1 where there is none.

    Source: docs/explanation/canaries.md#canary-ceilings.
    """
    if nats >= guesses * math.log(2.0):
        return 1.0
    if nats <= 0.0:
        return 0.5
    return float(optimize.brentq(lambda p: guesses * (math.log(2.0) - _entropy(p)) - nats, 0.5, 1.0))


def ceiling(claim: Claim, *, canaries: int, nats: float, delta: float, alpha: float) -> float:
    """The largest bound by guesses of one run that any attack is expected to show.

    Args:
        claim: its trade-off curve limits every score.
        canaries: of all trainings.
        nats: what all releases tell of all coins; inf if that is not known.
        delta, alpha: those of the bound.
    """
    best = 0.0
    for share in theory.SHARES:
        for sides in (1, 2):
            guesses = int(share * canaries) * sides
            if not guesses:
                continue
            right = min(theory.trade_off(claim, delta).accuracy(share), accuracy_of(nats, guesses))
            law = stats.binom(guesses, right)
            counts = np.unique(np.linspace(law.ppf(1e-3), law.isf(1e-3), 13).round()).astype(int)
            bounds = [one_run(count, guesses, canaries, delta=delta, alpha=alpha) for count in counts.tolist()]
            weights = law.pmf(counts)
            best = max(best, float(weights @ bounds / weights.sum()))
    return best


def _entropy(p: float) -> float:
    return float(special.entr(p) + special.entr(1.0 - p))
