"""The power of canaries: what they can show at best under a claim, and what an attack could have found.

How many guesses to make of them follows from the first; the second stands beside what was found.
docs/explanation/canaries.md#canary-power.
"""

import functools
import math
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from ledgerwood import _validate
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.pricing import price
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve, epsilon_of
from ledgerwood.verification.auditing.one_run import one_run, one_run_mu
from ledgerwood.verification.black_box.budget import Counts

Sides = Literal["both", "included"]
"""Whether canaries are guessed to be in and out, or in only: a label speaks for presence far more than against it."""
SHARES = (0.01, 0.02, 0.03, 0.04, 0.05, 0.065, 0.08, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.375, 0.5)
"""Of the canaries: guesses of one kind."""
_CERTAIN = 0.25
"""Share of canaries whose label may be expected to be their own, at least: half of those that are in."""
_TAIL, _COUNTS = 1e-3, 13
_MOST = 1 << 16
"""Canaries that a plan for a tighter answer goes up to."""


@final
class ClaimedTradeOff:
    """The largest true positive rate at each false positive rate that a claim allows.

    Args:
        claim: an event, a budget or a function.
        delta: where its epsilon ends the grid.
    """

    def __init__(self, claim: Claim, delta: float) -> None:
        # Priced once: a composed event takes a moment.
        priced = price(claim) if isinstance(claim, Event) else ClaimedCurve(claim)
        most = ClaimedCurve(claim).epsilon(delta)
        self._epsilons = np.concatenate(([0.0], np.geomspace(0.02, 1.0, 20) * min(max(most, 1e-3), 600.0)))
        self._deltas = np.array([priced.delta(float(epsilon)) for epsilon in self._epsilons])

    def hits(self, alarms: NDArray[np.float64]) -> NDArray[np.float64]:
        """True positive rates, shape of `alarms`: at most 1, by every point of the curve and by its mirror image."""
        false = alarms[..., np.newaxis]
        direct = np.exp(self._epsilons) * false + self._deltas
        mirrored = 1.0 - np.exp(-self._epsilons) * np.maximum(1.0 - self._deltas - false, 0.0)
        return np.asarray(np.minimum(direct, mirrored).min(axis=-1))

    def errors(self, alarms: NDArray[np.float64]) -> NDArray[np.float64]:
        """The least type II errors, by these points of the claim; a claim of more points allows no less."""
        return np.asarray(1.0 - self.hits(alarms))

    def accuracy(self, share: float) -> float:
        """Bounds the share of canaries that are in, among the `share` of canaries with the highest scores."""
        grid = np.concatenate((np.geomspace(1e-8, 1e-2, 60), np.linspace(1.1e-2, 1.0, 400)))
        hits = self.hits(grid)
        found = float(np.interp(share, 0.5 * (grid + hits), hits))
        return min(0.5 * found / share, 1.0)


@functools.lru_cache(maxsize=64)
def trade_off(claim: Claim, delta: float) -> ClaimedTradeOff:
    """The trade-off of a claim; a composed one takes a moment."""
    return ClaimedTradeOff(claim, delta)


@functools.lru_cache(maxsize=256)
def guesses_for(claim: Claim, canaries: int, delta: float, alpha: float, sides: Sides) -> tuple[int, int, float]:
    """Plans the guesses of each kind, (included, left out), and computes the bound expected from them.

    By the claim alone, so that they are fixed before anything is drawn.
    """
    best = (1, 1 if sides == "both" else 0, 0.0)
    for share in SHARES:
        included = int(share * canaries)
        if not included or (sides == "included" and share > _CERTAIN):
            continue
        guesses = included * (2 if sides == "both" else 1)
        bound = _expected(claim, share, guesses, canaries, delta, alpha)
        if bound > best[2]:
            best = (included, guesses - included, bound)
    return best


def _expected(claim: Claim, share: float, guesses: int, canaries: int, delta: float, alpha: float) -> float:
    """Over the binomial spread of right guesses: a bound is not linear in them, and many guesses that are less sure
    may be expected to show less than few.
    """
    law = stats.binom(guesses, trade_off(claim, delta).accuracy(share))
    counts = np.unique(np.linspace(law.ppf(_TAIL), law.isf(_TAIL), _COUNTS).round()).astype(int)
    bounds = [one_run(count, guesses, canaries, delta=delta, alpha=alpha) for count in counts.tolist()]
    weights = law.pmf(counts)
    return float(weights @ bounds / weights.sum())


def expected_guessed_mu(claim: Claim, included: int, left_out: int, canaries: int, delta: float, alpha: float) -> float:
    """The mu that `one_run_mu` finds in the expected number of right guesses."""
    curve, right = trade_off(claim, delta), 0.0
    for guesses in (included, left_out):
        right += guesses * curve.accuracy(guesses / canaries) if guesses else 0.0
    return one_run_mu(math.floor(right), included + left_out, canaries, alpha=alpha)


def expected_mu(mu: float, canaries: int, alpha: float) -> float:
    """The mu that the difference of the mean scores is expected to show, if half of the canaries are in."""
    return max(0.0, mu - float(stats.norm.isf(alpha)) * math.sqrt((4.0 + 0.5 * mu * mu) / canaries))


def canaries_for_mu(mu: float, epsilon: float, delta: float, alpha: float) -> int | None:
    """Canaries for the means to show `epsilon` at `delta`; None if mu does not have it."""
    if epsilon_of(mu, delta) <= epsilon or epsilon <= 0.0:
        return None
    wanted = float(optimize.brentq(lambda each: epsilon_of(each, delta) - epsilon, 1e-6, mu))
    return math.ceil((float(stats.norm.isf(alpha)) / (mu - wanted)) ** 2 * (4.0 + 0.5 * mu * mu))


def canaries_for_guesses(claim: Claim, epsilon: float, delta: float, alpha: float, sides: Sides) -> int | None:
    """Canaries for guesses of one run to show `epsilon`; None if 65536 would not."""
    canaries = 64
    while canaries <= _MOST:
        if guesses_for(claim, canaries, delta, alpha, sides)[2] >= epsilon:
            return canaries
        canaries *= 4
    return None


def least_canaries(alpha: float) -> int:
    """Canaries, half of them guessed to be in and half to be out, whose right guesses alone would show anything."""
    least = math.floor(math.log2(1.0 / alpha) + 1e-9) + 1
    return least + least % 2


def black_box_mu(*, clip: float, count_stddev: float, sum_stddev: float, value: float) -> float:
    """mu of a leaf's released value, of many known rows whose mean gradient is `value`: |clip - value| / spread.

    The canary adds (1, clip) to (number of rows, sum of gradients), and value is sum over number.

    Args:
        clip: the canary's gradient, in the gradient's unit.
        count_stddev, sum_stddev: those of the noise.
        value: the value of the leaf without noise.

    Source: docs/explanation/canaries.md#black-box-background.
    """
    _validate.positive("clip", clip, "units of the gradient")
    for name, stddev in (("count_stddev", count_stddev), ("sum_stddev", sum_stddev)):
        _validate.positive(name, stddev, "units of the statistic")
    return abs(clip - value) / math.hypot(sum_stddev, value * count_stddev)


def best_background(*, clip: float, count_stddev: float, sum_stddev: float) -> float:
    """The mean gradient of a leaf at which its value tells as much as the pair of sums does, within [-clip, clip].

    -sum_stddev**2 / (clip count_stddev**2), or -clip where that is beyond it.

    Source: docs/explanation/canaries.md#black-box-background.
    """
    return max(-clip, -(sum_stddev**2) / (clip * count_stddev**2))


def mu_of_price(epsilon: float, delta: float) -> float:
    """mu of the Gaussian mechanism with this privacy cost; 0 if epsilon is 0."""
    return gdp.mu(epsilon, delta) if epsilon > 0.0 and delta > 0.0 else 0.0


FAR_BELOW = 0.5
"""A bound below this share of what a perfect attack would be expected to show is far below it."""
_COINS = tuple(coin / 16.0 for coin in range(1, 16))
_LUCKY = 1e-6
_ALARMS = np.concatenate(([0.0], np.geomspace(1e-6, 1.0, 90)))


@functools.lru_cache(maxsize=64)
def perfect_bound(claim: Claim, *, runs: int, delta: float, alpha: float) -> float:
    """Expected bound of the best event and coin against a mechanism with exactly the claimed trade-off curve.

    Args:
        claim: what is audited.
        runs: outputs of the test.
        delta, alpha: those of the bound.
    """
    hits = trade_off(claim, delta).hits(_ALARMS)
    best = 0.0
    for coin in _COINS:
        for hit, alarm in zip(hits.tolist(), _ALARMS.tolist(), strict=True):
            inside, other = runs * coin * hit, runs * (1.0 - coin) * alarm
            # What cannot show more than the best so far by its own rates needs no exact test.
            if alarm > 0.0 and math.log(max(hit - delta, 1e-300) / alarm) <= best:
                continue
            best = max(best, _bound(inside, other, runs, coin, delta, alpha))
    return best


def largest_bound(*, runs: int, delta: float, alpha: float) -> float:
    """The bound where every output tells its data set, and the coin is as lucky as once in a million tests."""
    most = (float(stats.binom.isf(_LUCKY, runs, coin)) for coin in _COINS)
    return max(_bound(right, 0.0, runs, coin, delta, alpha) for right, coin in zip(most, _COINS, strict=True))


def _bound(inside: float, other: float, runs: int, coin: float, delta: float, alpha: float) -> float:
    right, wrong = round(inside), round(other)
    outside = max(runs - right - wrong, 0)
    counts = Counts(inside=right, other=wrong, outside=outside, runs=runs, coin=coin)
    return counts.epsilon_from_labels(delta=delta, alpha=alpha)


def largest_guessed(guesses: int, canaries: int, *, delta: float, alpha: float) -> float:
    """The bound where every guess of one run is right."""
    return one_run(guesses, guesses, canaries, delta=delta, alpha=alpha)


def price_of(claim: Claim | None, delta: float) -> float:
    """The epsilon that a claim promises at `delta`; inf if nothing is claimed."""
    return math.inf if claim is None else ClaimedCurve(claim).epsilon(delta)


def is_far_below(found: float, could: float) -> bool:
    """Returns whether a bound is far below what could have been found."""
    return math.isfinite(could) and found < FAR_BELOW * could


def weaknesses(
    *, found: float, detectable: float, largest: float, price: float, rejected: bool, needed: str, stronger: str
) -> tuple[str, ...]:
    """Sentences on what a bound does not say, for the result and its warning; none where the attack saw what it could.

    Args:
        found: the headline.
        detectable: what a perfect attack on exactly the claim is expected to show; NaN without a claim.
        largest: what cannot be exceeded; inf if nothing limits it.
        price: the claim's epsilon; inf without a claim.
        rejected: the claim is refuted.
        needed: how to see more of this claim, in words.
        stronger: a description of a stronger attack.
    """
    if rejected:
        return ()
    said = []
    if math.isfinite(price) and detectable < FAR_BELOW * price:
        said.append(
            f"this audit is too small for its claim: a perfect attack on a mechanism with exactly epsilon {price:.3g} "
            f"would be expected to show {detectable:.3g}; {needed}"
        )
    could, whose = (detectable, "on a mechanism with exactly this claim") if math.isfinite(price) else (largest, "")
    if is_far_below(found, could):
        expected = (
            f"a perfect attack {whose} would be expected to show {could:.3g}"
            if whose
            else f"this audit could have shown up to {could:.3g}"
        )
        said.append(
            f"the bound {found:.3g} is far below what could have been found: {expected}. This attack saw little, which "
            f"is no evidence that the model tells little; {stronger}"
        )
    return tuple(said)
