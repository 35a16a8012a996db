"""The result of an audit: one number, with its assumption, confidence and evidence."""

from dataclasses import dataclass
from typing import Literal, final, get_args

from ledgerwood import _validate
from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.verification.figures import rounded_down

Assumption = Literal["none", "large counts", "Gaussian noise", "the claim's family"]
"""The assumption of a bound, in addition to independent runs (or independently included canaries).

"large counts": a normal approximation. "Gaussian noise": scores are Gaussian, or the mechanism is.
"the claim's family": the privacy curve is that of the claim at another amount of noise.
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBound:
    """With probability 1 - alpha, epsilon at `delta` is at least `value`, if the assumption holds.

    Args:
        value: epsilon, in nats; inf if no epsilon is left.
        delta: at which it holds.
        alpha: probability that the bound is above the truth.
        assumption: the assumption; "none" means that the bound needs independent runs only.
        event: the event or quantity that was measured, in words.
        samples: the number of outputs, or canaries, on which it is based.
        statistic: the test that it inverts.
        seconds: running time, sampling included; 0 if only counts were given.

    Raises:
        InvalidParameter: a value that is negative or NaN, an assumption that is not one of the four, or a statistic
            that is called Gaussian and assumes nothing.
    """

    value: float
    delta: float
    alpha: float
    assumption: Assumption
    event: str
    samples: int
    statistic: str
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if not self.value >= 0.0:
            raise _validate.fail("value", self.value, ">= 0", "nats")
        if self.assumption not in get_args(Assumption):
            raise _validate.fail("assumption", self.assumption, f"one of {get_args(Assumption)}", "assumption")
        if "gaussian" in self.statistic.lower() and self.assumption in ("none", "large counts"):
            raise _validate.fail(
                "assumption", self.assumption, f"'Gaussian noise' for {self.statistic!r}", "assumption"
            )

    def __str__(self) -> str:
        rests = "" if self.assumption == "none" else f", assuming {self.assumption}"
        return (
            f"epsilon >= {rounded_down(self.value)} at delta {self.delta:.3g} (alpha {self.alpha:g}, {self.statistic}, "
            f"{self.samples} samples{rests})"
        )


def level(alpha: object) -> float:
    """An error probability in (0, 1/2].

    Raises:
        InvalidParameter: outside.
    """
    value = _validate.positive("alpha", alpha, "probability")
    if value > 0.5:
        raise _validate.fail("alpha", alpha, "in (0, 0.5]", "probability")
    return value


def small_probability(name: str, value: object) -> float:
    """A probability in [0, 1).

    Raises:
        InvalidParameter: outside.
    """
    number = _validate.non_negative(name, value, "probability")
    if number >= 1.0:
        raise _validate.fail(name, value, "in [0, 1)", "probability")
    return number


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The scores to which a threshold was applied: a higher score speaks for the row (or the canary) being included.

    Args:
        with_row: scores of runs with the row, shape (n,).
        without: scores of runs without it, shape (m,).
    """

    with_row: FloatArray
    without: FloatArray

    def __repr__(self) -> str:
        return f"Scores(<{len(self.with_row)} with the row>, <{len(self.without)} without>)"
