"""The terms of an audit, validated: the claim, and the points of its curve where it may be refuted.

A claim that is an event is one of a family, the same event at other amounts of noise: `member` finds the least noise
that the outputs leave room for.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final, get_args

from scipy import optimize

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.pricing import price
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve, with_noise
from ledgerwood.verification.auditing.result import level, small_probability
from ledgerwood.verification.black_box.choosing import Attack, CurvePoint, Question
from ledgerwood.verification.black_box.draws import NonFinite
from ledgerwood.verification.black_box.learning import Learners
from ledgerwood.verification.black_box.result import Numeric

_WIDEST = math.log(1e3)
_STEP, _CLOSE, _TINY = 0.25, 1e-6, 1e-300
_ERRORS, _SLACK = 4.0, 1.2
"""Standard errors, and a factor, by which a curve that was measured may miss that of a member: the largest of several
hundred candidates' deltas is often three of its errors too large, and attacks are learned, not quite the best ones."""


def has_family(claim: Claim) -> bool:
    """Returns whether the claim is an event all of whose noise is Gaussian."""
    return isinstance(claim, Event) and with_noise(claim, 1.0) is not None


def scaled(claim: Event, log_factor: float) -> Event | None:
    """The claim at e^log_factor times its noise, within a thousand times more or less; None without a family."""
    return with_noise(claim, math.exp(min(max(log_factor, -_WIDEST), _WIDEST)))


def member(claim: Event, point: CurvePoint, delta: float, start: float = 0.0) -> Event | None:
    """The member of the family with the least noise whose delta at the point's epsilon is at most `delta`.

    None if even a thousand times the noise has more. Whether a member has as much is for `beyond` to say.

    Args:
        claim: the claim of the family.
        point: where.
        delta: positive.
        start: log of the factor of noise where the search begins.
    """
    found = log_factor(claim, point, delta, start)
    return None if found is None else scaled(claim, found)


def log_factor(claim: Event, point: CurvePoint, delta: float, start: float = 0.0) -> float | None:
    """The factor between the noise of `member` and the claim's, as a logarithm; arguments as there."""

    def excess(at: float) -> float:
        other = scaled(claim, at)
        found = 1.0 if other is None else price(other).delta(point.epsilon)
        return math.log(max(found, _TINY)) - math.log(delta)

    start = min(max(start, -_WIDEST), _WIDEST)
    step, low, high = _STEP, start, start
    while high < _WIDEST and excess(high) > 0.0:
        low, high, step = high, min(high + step, _WIDEST), 2.0 * step
    if high == _WIDEST and excess(high) > 0.0:
        return None
    while low == high or excess(low) <= 0.0:
        if low <= -_WIDEST:
            return -_WIDEST
        low, high, step = max(low - step, -_WIDEST), low, 2.0 * step
    # log delta is nearly straight in the log of the noise: a few steps, where halving takes twenty.
    found = float(optimize.brentq(excess, low, high, xtol=_CLOSE, rtol=_CLOSE))
    while excess(found) > 0.0:
        found += _CLOSE
    return min(found, high)


def beyond(claim: Event, point: CurvePoint, delta: float) -> bool:
    """Returns whether no member has as large a delta at the point's epsilon, even with a thousandth of the noise."""
    least = scaled(claim, -_WIDEST)
    return least is not None and price(least).delta(point.epsilon) < delta


def misfit(claim: Event, attacks: Sequence[Attack], tested: CurvePoint, start: float = 0.0) -> str | None:
    """Why no member of the family fits the deltas that learning measured; None if one does, or might.

    One amount of noise must explain all points: the member that explains the tested one is held against the others.
    docs/explanation/black-box.md#black-box-family.
    """
    least = scaled(claim, -_WIDEST)
    if least is None:
        return None
    most = price(least)
    for attack in attacks:
        sure, allowed = attack.delta - _ERRORS * attack.error, most.delta(attack.point.epsilon)
        if sure > allowed:
            return (
                f"delta at epsilon {attack.point.epsilon:.4g} was about {attack.delta:.4g}, and not even a thousandth "
                f"of the claim's noise has more than {allowed:.4g}"
            )
    here = next((attack for attack in attacks if attack.point == tested), None)
    if here is None or here.delta - _ERRORS * here.error <= 0.0:
        return None
    fitted = member(claim, tested, here.delta, start)
    if fitted is None:
        return None
    curve = price(fitted)
    for attack in attacks:
        expected, spread = curve.delta(attack.point.epsilon), _ERRORS * attack.error
        # Where the member is fitted its own delta is uncertain, by the same share at other points.
        loose = _SLACK * (1.0 + _ERRORS * here.error / here.delta)
        if expected > loose * (attack.delta + spread) or attack.delta - spread > loose * expected:
            return (
                f"the noise that has delta {here.delta:.4g} at epsilon {tested.epsilon:.4g}, as measured, has "
                f"{expected:.4g} at epsilon {attack.point.epsilon:.4g}, where about {attack.delta:.4g} was measured"
            )
    return None


Stop = Literal["never", "rejected"]
_LEAST = 100
_SHARES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85)
_POINTS = (0.1, 0.25, 0.5, 1.0, 2.0)
_LARGEST = 20.0
"""Of the epsilons of points: e^20 runs without the row are more than anybody draws."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTerms:
    """The parameters of an audit.

    Args:
        curve: the claim.
        n, alpha, numeric, delta, stop, non_finite, learners: as for `audit`.

    Raises:
        InvalidParameter: a value outside its bound, or too few outputs for any bound.
    """

    curve: ClaimedCurve
    n: int
    alpha: float
    numeric: Numeric
    delta: float | None
    stop: Stop
    non_finite: NonFinite
    learners: Learners

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("numeric", self.numeric, Numeric),
            ("stop", self.stop, Stop),
            ("non_finite", self.non_finite, NonFinite),
            ("learners", self.learners, Learners),
        ):
            if value not in get_args(allowed):
                raise _validate.fail(name, value, " or ".join(map(repr, get_args(allowed))), "mode")
        level(self.alpha)
        least = least_outputs(self.alpha)
        if _validate.count("n", self.n, "outputs a side", minimum=1) < least:
            bound = f"at least {least}: fewer can show nothing at alpha={self.alpha}"
            raise _validate.fail("n", self.n, bound, "outputs a side")

    @property
    def claim(self) -> Claim:
        """The claim as it was given."""
        return self.curve.claim

    def question(self) -> Question:
        """The question for the test."""
        claim = self.claim
        delta = self.curve.default_delta() if self.delta is None else small_probability("delta", self.delta)
        claimed = self.curve.epsilon(delta)
        epsilons: list[float] = []
        if isinstance(claim, Budget):
            if delta != claim.delta and claim.epsilon <= _LARGEST:
                epsilons = [claim.epsilon]
        else:
            scale = claimed if math.isfinite(claimed) else 1.0
            wanted = {min(share * scale, _LARGEST) for share in _SHARES} | {e for e in _POINTS if e < scale}
            epsilons = sorted(wanted)
        points = []
        for epsilon in epsilons:
            at = self.curve.delta(epsilon)
            if at < 1.0:
                points.append(CurvePoint(epsilon, at, has_family(claim)))
        return Question(
            delta=delta,
            claimed=claimed,
            points=tuple(points),
            runs=2 * self.n,
            alpha=self.alpha,
            fair=self.stop == "rejected",
        )


def least_outputs(alpha: float) -> int:
    """The least number of outputs for each data set with which a test can show anything and scores can be learned.

    Even outputs that always tell the data set show nothing while alpha^(1 / n) <= 1 / 2.
    """
    return max(_LEAST, math.ceil(math.log(1.0 / alpha) / math.log(2.0)) + 1)


def needed(claimed: float, alpha: float) -> int | None:
    """The least number of fair-coin runs that can refute this epsilon, even if every output identifies its data set.

    All of them are in the event and all have its label: alpha >= (e^epsilon / (1 + e^epsilon))^runs. None if the
    number is too large to draw, or if nothing is claimed.
    """
    if claimed > 40.0:
        return None
    return math.floor(math.log(1.0 / alpha) / math.log1p(math.exp(-claimed))) + 1
