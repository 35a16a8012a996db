"""Pictures of audits: lower bounds beside the claim, and what the attack achieved beside what the claim allows."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ledgerwood.displays import style
from ledgerwood.displays.base import AbstractDisplay
from ledgerwood.errors import InvalidParameter, PrivacyError
from ledgerwood.verification.auditing.claims import ClaimedCurve
from ledgerwood.verification.auditing.curves import DrawnTradeOff, Roc, claimed_trade_off, roc

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ledgerwood.verification import AttackReading, Audit, ModelAudit


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBound:
    """A lower bound on epsilon (nats) at `delta`, and whether it holds without an assumption."""

    name: str
    epsilon: float
    delta: float
    sure: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditDisplay(AbstractDisplay):
    """Lower bounds on epsilon as dots, with the claim as a line.

    A dot to the right of the line contradicts the claim; one to its left does not prove it. A full dot holds without
    assumptions, a hollow one if its assumption does.

    Args:
        bounds: at least one, the main one first.
        claimed: the claimed epsilon; inf if nothing is claimed.
        detectable: the bound that a perfect attack of this size could have been expected to show; NaN if not known.
        rejected: whether the audit refutes the claim.
    """

    bounds: tuple[DrawnBound, ...]
    claimed: float
    detectable: float
    rejected: bool

    @classmethod
    def from_audit(cls, result: "Audit | ModelAudit") -> "AuditDisplay":
        """Read the result of `audit` or `audit_model`."""
        from ledgerwood.verification.black_box import Audit

        audit = isinstance(result, Audit)
        return cls(
            bounds=tuple(
                DrawnBound(
                    name=bound.statistic, epsilon=bound.value, delta=bound.delta, sure=bound.assumption == "none"
                )
                for bound in result.bounds
            ),
            claimed=result.claimed_epsilon if isinstance(result, Audit) else result.price,
            detectable=math.nan if audit else result.epsilon_detectable,  # type: ignore[union-attr]
            rejected=result.rejected,
        )

    @property
    def alt(self) -> str:
        claim = f"claimed epsilon {self.claimed:.3g}" if math.isfinite(self.claimed) else "nothing is claimed"
        found = "; ".join(
            f"{bound.name}: at least {bound.epsilon:.3g} at delta {bound.delta:.2g}"
            f"{'' if bound.sure else ', if its assumption holds'}"
            for bound in self.bounds
        )
        verdict = "The claim is refuted." if self.rejected else "The claim is not refuted, which proves nothing."
        return f"Lower bounds of an audit; {claim}. {found}. {verdict}"

    @property
    def size(self) -> tuple[float, float]:
        """Of a new figure, in inches: a line for each bound."""
        return style.SIZE[0], 1.5 + 0.42 * len(self.bounds)

    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        places = list(range(len(self.bounds)))
        high = max([each for each in (*(b.epsilon for b in self.bounds), self.claimed, self.detectable)
                    if math.isfinite(each)], default=1.0) or 1.0  # fmt: skip
        edge = 1.15 * high
        for sure, label in ((True, "without assumption"), (False, "if its assumption holds")):
            chosen = [(min(b.epsilon, edge), place) for place, b in zip(places, self.bounds, strict=True)
                      if b.sure is sure]  # fmt: skip
            if chosen:
                xs, ys = zip(*chosen, strict=True)
                ax.hlines(ys, 0.0, xs, color=colours.series[0], linewidth=1.4)
                ax.plot(
                    xs, ys, linestyle="none", marker="o", markersize=7.0, color=colours.series[0],
                    markerfacecolor=colours.series[0] if sure else "none", label=label,
                )  # fmt: skip
        if math.isfinite(self.claimed):
            ax.axvline(self.claimed, label="claimed", color=colours.series[1], linewidth=1.6, linestyle=style.DASHES[1])
        if math.isfinite(self.detectable):
            ax.axvline(
                self.detectable, label="a perfect attack", color=colours.soft, linewidth=1.2, linestyle=style.DASHES[2]
            )
        ax.set_yticks(places, [style.shortened(bound.name, 30) for bound in self.bounds])
        ax.set_ylim(len(places) - 0.4, -0.6)
        ax.grid(visible=False, axis="y")
        ax.set_xlim(0.0, edge)
        ax.set_xlabel("epsilon at least (nats)")
        style.legend(ax, colours)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttackDisplay(AbstractDisplay):
    """The rates of an audit's attack, with a band, beside what the claim allows: no attacker is above that curve.

    Args:
        roc: what the attack achieved, with a band for all thresholds simultaneously; None if only points are known.
        points: (false, true, least true, largest true) positive rates, with the interval of each.
        claimed: the error rates that the claim leaves; None if nothing is claimed.
        log: whether both axes are logarithmic.
    """

    roc: Roc | None = None
    points: tuple[tuple[float, float, float, float], ...] = ()
    claimed: DrawnTradeOff | None = None
    log: bool = False

    @classmethod
    def from_audit(cls, result: "Audit | ModelAudit", *, log: bool = False) -> "AttackDisplay":
        """Read the scores of `audit` or `audit_model`.

        Raises:
            InvalidParameter: the audit kept no scores, or scores that are not independent, of which no band holds.
        """
        from ledgerwood.verification.black_box import Audit

        if not isinstance(result, Audit) and result.shared:
            raise InvalidParameter("the audit's canaries may share leaves: its scores have no ROC with a band")
        if result.scores is None:
            raise InvalidParameter("the audit kept no scores: it counted one event, or stopped early")
        claimed: DrawnTradeOff | None = None
        if result.claim is not None:
            try:
                claimed = claimed_trade_off(ClaimedCurve(result.claim))
            except PrivacyError:  # a claim without a curve, such as one at one delta of a plan that has none
                claimed = None
        return cls(roc=roc(result.scores, alpha=result.alpha), claimed=claimed, log=log)

    @classmethod
    def from_reading(cls, reading: "AttackReading", *, log: bool = True) -> "AttackDisplay":
        """Read the points of `attack_model`: a description of one attack, not a bound."""
        return cls(
            points=tuple(
                (rate.false_positive_rate, rate.true_positive_rate, rate.true_positive_low, rate.true_positive_high)
                for rate in reading.rates
            ),
            log=log,
        )

    @property
    def alt(self) -> str:
        parts = []
        if self.roc is not None:
            parts.append(
                f"the attack's area under the curve is {self.roc.area:.3f}, with a band of confidence "
                f"{self.roc.confidence:.3g}"
            )
        parts += [f"true positive rate {true:.3g} [{low:.3g}, {high:.3g}] at false positive rate {false:.3g}"
                  for false, true, low, high in self.points]  # fmt: skip
        if self.claimed is not None:
            parts.append("the dashed curve is the most that the claim allows")
        return f"True over false positive rate of an attack{', logarithmic' if self.log else ''}: {'; '.join(parts)}."

    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        least = 1e-3
        first: dict[str, Any] = {"color": colours.series[0]}
        if self.roc is not None:
            grid = np.unique(np.concatenate([np.geomspace(least, 1.0, 120), np.linspace(0.0, 1.0, 120)]))
            low, high = (np.interp(grid, *edge) for edge in (self.roc.lower, self.roc.upper))
            ax.fill_between(grid, low, high, alpha=0.22, linewidth=0.0, label="true rates lie here", **first)
            rates = self.roc.false_positive_rate, self.roc.true_positive_rate
            ax.plot(*rates, linewidth=1.8, label="this attack", **first)
        if self.points:
            false, true, lows, highs = (np.array(column) for column in zip(*self.points, strict=True))
            ax.errorbar(
                false, true, (true - lows, highs - true), linestyle="none", marker="o", markersize=5.0, capsize=2.5,
                label="this attack", **first,
            )  # fmt: skip
        if self.claimed is not None:
            power = 1.0 - np.array(self.claimed.false_negative_rate)
            look = {**colours.line(1), "linewidth": 1.6, "label": "most that the claim allows"}
            ax.plot(self.claimed.false_positive_rate, power, **look)
        ends = (least, 1.0) if self.log else (0.0, 1.0)
        ax.plot(ends, ends, color=colours.soft, linewidth=1.0, label="guessing")
        if self.log:
            ax.set_xscale("log")
            ax.set_yscale("log")
        ax.set_xlim(*ends)
        ax.set_ylim(*ends)
        ax.set_xlabel("false positive rate")
        ax.set_ylabel("true positive rate")
        style.legend(ax, colours)
