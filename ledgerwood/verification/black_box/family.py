"""The claim at another amount of noise: the least noise that the outputs leave room for."""

import math

from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.pricing import price
from ledgerwood.verification.auditing.claims import Claim, with_noise
from ledgerwood.verification.black_box.choosing import Point

_STEP = 0.02
_WIDEST = math.log(1e3)
_HALVINGS = 22


def has_family(claim: Claim) -> bool:
    """Whether the claim is an event all of whose noise is Gaussian."""
    return isinstance(claim, Event) and with_noise(claim, 1.0) is not None


def slope(claim: Claim, epsilon: float, delta: float) -> float | None:
    """How much more delta at epsilon a unit of log noise less brings, in the claim's family; None without a family."""
    scaled = with_noise(claim, math.exp(-_STEP)) if isinstance(claim, Event) else None
    if scaled is None:
        return None
    return max((price(scaled).delta(epsilon) - delta) / _STEP, 1e-12)


def member(claim: Event, point: Point, delta: float) -> Event | None:
    """The member of the family with the least noise whose delta at the point's epsilon is at most `delta`.

    None where even a thousand times the noise has more.
    """

    def fits(log_factor: float) -> bool:
        scaled = with_noise(claim, math.exp(log_factor))
        return scaled is not None and price(scaled).delta(point.epsilon) <= delta

    low, high = (-0.5, 0.5)
    while not fits(high):
        if high >= _WIDEST:
            return None
        low, high = high, min(2.0 * high, _WIDEST)
    while low > -_WIDEST and fits(low):
        low, high = max(2.0 * low, -_WIDEST), low
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return with_noise(claim, math.exp(high))
