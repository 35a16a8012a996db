"""What an attack could have found, to stand beside what it found. docs/explanation/canaries.md#canary-power."""

import functools
import math

import numpy as np
from scipy import stats

from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.one_run import one_run
from ledgerwood.verification.black_box.coins import Counts
from ledgerwood.verification.canaries.evidence import theory

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
        delta, alpha: of the bound.
    """
    hits = theory.trade_off(claim, delta).hits(_ALARMS)
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
    """The epsilon that a claim promises at `delta`; inf where nothing is claimed."""
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
        largest: what cannot be exceeded; inf where nothing limits it.
        price: the claim's epsilon; inf without a claim.
        rejected: the claim is refuted.
        needed: how to see more of this claim, in words.
        stronger: what a stronger attack would be, in words.
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
