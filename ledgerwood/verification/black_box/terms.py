"""What an audit is asked: its terms, validated, and the points of the claimed curve where it may be refuted."""

import math
from dataclasses import dataclass
from typing import Literal, final, get_args

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.verification.auditing.claims import Claim, ClaimedCurve
from ledgerwood.verification.auditing.result import level, small_probability
from ledgerwood.verification.black_box import family
from ledgerwood.verification.black_box.outputs.draws import NonFinite
from ledgerwood.verification.black_box.result import Numeric
from ledgerwood.verification.black_box.scoring.choosing import CurvePoint, Question
from ledgerwood.verification.black_box.scoring.fitting import Learners

Stop = Literal["never", "rejected"]
_LEAST = 100
_SHARES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85)
_POINTS = (0.1, 0.25, 0.5, 1.0, 2.0)
_LARGEST = 20.0
"""Of the epsilons of points: e^20 runs without the row are more than anybody draws."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTerms:
    """What an audit was asked.

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
        """What the test is to answer."""
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
                points.append(CurvePoint(epsilon, at, family.has_family(claim)))
        return Question(
            delta=delta,
            claimed=claimed,
            points=tuple(points),
            runs=2 * self.n,
            alpha=self.alpha,
            fair=self.stop == "rejected",
        )


def least_outputs(alpha: float) -> int:
    """Of each data set, for a test that can show anything at all, and for scores that can be learned.

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
