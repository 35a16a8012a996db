"""The claim at another amount of noise: the least noise that the outputs leave room for."""

import math

from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.pricing import price
from ledgerwood.verification.auditing.claims import Claim, with_noise
from ledgerwood.verification.black_box.choosing import Point

_WIDEST = math.log(1e3)
_HALVINGS = 22


def has_family(claim: Claim) -> bool:
    """Whether the claim is an event all of whose noise is Gaussian."""
    return isinstance(claim, Event) and with_noise(claim, 1.0) is not None


def scaled(claim: Event, log_factor: float) -> Event | None:
    """The claim at e^log_factor times its noise, within a thousand times more or less; None without a family."""
    return with_noise(claim, math.exp(min(max(log_factor, -_WIDEST), _WIDEST)))


def member(claim: Event, point: Point, delta: float) -> Event | None:
    """The member of the family with the least noise whose delta at the point's epsilon is at most `delta`.

    None where even a thousand times the noise has more.
    """

    def fits(log_factor: float) -> bool:
        other = scaled(claim, log_factor)
        return other is not None and price(other).delta(point.epsilon) <= delta

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
    return scaled(claim, high)
