"""One exact test on fresh outputs, each from the data set that a coin chose; the coin need not be fair.

docs/explanation/black-box.md#uneven-coins proves both bounds. With a fair coin `epsilon_from_labels` is
`auditing.randomised_labels`.
"""

import math
from dataclasses import dataclass
from typing import final

from ledgerwood.verification.auditing.counts import binomial_lower, binomial_upper, hockey_stick

_SHARE = 0.05
"""Of alpha: spent on how often the event happens at all, where a delta is in play."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What the coin and the outputs said of one event.

    Args:
        inside: outputs in the event from the data set that the event speaks for.
        other: outputs in the event from the other data set.
        outside: outputs from the other data set that are not in the event.
        runs: all outputs.
        coin: probability that a run was on the data set that the event speaks for.
    """

    inside: int
    other: int
    outside: int
    runs: int
    coin: float

    @property
    def _least_odds(self) -> float:
        return self.coin / (1.0 - self.coin)

    def epsilon_from_labels(self, *, delta: float, alpha: float) -> float:
        """A lower bound on epsilon at `delta` from the share of labels among outputs in the event; exact.

        Source: docs/explanation/black-box.md#uneven-coins.
        """
        total = self.inside + self.other
        if total == 0:
            return 0.0
        share, rest = self._shares(alpha * (1.0 - _SHARE) if delta > 0.0 else alpha)
        if delta > 0.0:
            least = binomial_lower(total, self.runs, alpha * _SHARE)
            share = share - self.coin * delta / least if least > 0.0 else 0.0
        if share <= 0.0:
            return 0.0
        return max(0.0, math.log(share / rest / self._least_odds)) * (1.0 - 1e-12)

    def _shares(self, alpha: float) -> tuple[float, float]:
        """One bound on the share of labels, from below, and what is left of it, from above: both keep their digits."""
        total = self.inside + self.other
        return binomial_lower(self.inside, total, alpha), binomial_upper(self.other, total, alpha)

    def delta_from_labels(self, *, epsilon: float, alpha: float) -> float:
        """A lower bound on delta at `epsilon` from the same share: what `epsilon_from_labels` refuses.

        Source: docs/explanation/black-box.md#uneven-coins.
        """
        total = self.inside + self.other
        if total == 0:
            return 0.0
        share, rest = self._shares(alpha * (1.0 - _SHARE))
        least = binomial_lower(total, self.runs, alpha * _SHARE)
        odds = self._least_odds * math.exp(epsilon)
        return max(0.0, least / self.coin * (share - rest * odds)) * (1.0 - 1e-12)

    def delta_from_guesses(self, *, epsilon: float, alpha: float) -> float:
        """A lower bound on delta at `epsilon` where the coin is 1 / (1 + e^epsilon): `auditing.hockey_stick`."""
        return hockey_stick(self.inside + self.outside, self.runs, epsilon=epsilon, alpha=alpha)
