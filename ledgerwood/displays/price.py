"""Pictures of privacy costs: the privacy profile, and the error rates that it leaves to an attacker.

docs/explanation/risk.md says how error rates follow from a privacy cost.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting import risk
from ledgerwood.accounting.pricing import Price
from ledgerwood.displays import style
from ledgerwood.displays.base import AbstractDisplay
from ledgerwood.errors import InvalidParameter
from ledgerwood.pages.values import most

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = tuple[float, ...]

_POINTS = 97
_MARKS = 7
_LEAST_RATE = 1e-6
_RATES = np.unique(np.concatenate([np.geomspace(_LEAST_RATE, 1.0, 61), np.linspace(0.0, 1.0, 81)]))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileCurve:
    """One privacy cost, as delta over epsilon.

    Args:
        name: of the legend.
        epsilon, delta: the proven upper bound, shape (k,) each.
        mark_delta, mark_lower, mark_upper: at some deltas, between which epsilons the dominating pair's is, shape (m,)
            each; empty if they were not asked for. A lower end of 0 says nothing, and is not drawn.
    """

    name: str
    epsilon: Numbers
    delta: Numbers
    mark_delta: Numbers = ()
    mark_lower: Numbers = ()
    mark_upper: Numbers = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyProfileDisplay(AbstractDisplay):
    """Delta over epsilon of one or several privacy costs, on a logarithmic scale.

    Every point on a curve is a proven guarantee. A horizontal bar ends where the dominating pair is known to be at
    least as bad: the shorter it is, the tighter the curve.

    Args:
        curves: at least one.
        least_delta: the lower end of the picture.
    """

    curves: tuple[ProfileCurve, ...]
    least_delta: float

    @classmethod
    def from_price(
        cls, *priced: Price, names: Sequence[str] = (), least_delta: float = 1e-10, bars: bool = True
    ) -> "PrivacyProfileDisplay":
        """Compute the curves of privacy costs.

        Args:
            priced: at least one.
            names: one for each privacy cost; its method if there is none.
            least_delta: the smallest delta that is shown, in (0, .1).
            bars: whether to bound each curve from below, too. Composed losses take about a second for it.

        Raises:
            InvalidParameter: no privacy cost, a wrong number of names, or a delta outside its bound.
            UnsupportedEvent: a method without a finite answer at `least_delta`.
        """
        names = _names(priced, names)
        least = _validate.real("least_delta", least_delta, "probability")
        if not 0.0 < least < 0.1:
            raise _validate.fail("least_delta", least_delta, "in (0, .1)", "probability")
        return cls(
            curves=tuple(_profile(each, name, least, bars=bars) for each, name in zip(priced, names, strict=True)),
            least_delta=least,
        )

    @property
    def alt(self) -> str:
        parts = []
        for curve in self.curves:
            ends = ", ".join(
                f"{most(curve.epsilon[place], 3)} at delta {most(curve.delta[place], 2)}"
                for place in (0, len(curve.epsilon) // 2, len(curve.epsilon) - 1)
            )
            parts.append(f"{curve.name}: epsilon {ends}")
        return f"Privacy profile, delta over epsilon on a logarithmic scale. {'; '.join(parts)}."

    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        for place, curve in enumerate(self.curves):
            look = colours.line(place)
            ax.plot(curve.epsilon, curve.delta, linewidth=1.8, label=style.shortened(curve.name), **look)
            shown = [
                (delta, low, high)
                for delta, low, high in zip(curve.mark_delta, curve.mark_lower, curve.mark_upper, strict=True)
                if low > 0.0
            ]
            for delta, low, high in shown:
                ax.plot((low, high), (delta, delta), color=look["color"], linewidth=1.0, marker="|", markersize=6.0)
        ax.set_yscale("log")
        ax.set_ylim(self.least_delta, 1.0)
        ax.set_xlim(left=0.0)
        ax.set_xlabel("epsilon (nats)")
        ax.set_ylabel("delta")
        style.legend(ax, colours)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerCurve:
    """The least false negative rate of any attacker at each false positive rate, shape (k,) each; rounded down.

    Args:
        name: of the legend.
        false_positive_rate, false_negative_rate: the curve.
        advantage: the largest true minus false positive rate of any attacker; rounded up.
    """

    name: str
    false_positive_rate: Numbers
    false_negative_rate: Numbers
    advantage: float = 1.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOffDisplay(AbstractDisplay):
    """The error rates that privacy costs leave to an attacker: no attacker is below a curve.

    Args:
        curves: at least one.
        log: whether both axes are logarithmic. Then the true positive rate is drawn over the false positive rate, and
            no attacker is *above* a curve: small rates are where attacks do most harm.
    """

    curves: tuple[AttackerCurve, ...]
    log: bool = False

    @classmethod
    def from_price(cls, *priced: Price, names: Sequence[str] = (), log: bool = False) -> "TradeOffDisplay":
        """Compute the curves of privacy costs; docs/explanation/risk.md#trade-off.

        Args:
            priced: at least one.
            names: one for each privacy cost; its method if there is none.
            log: whether to draw the true positive rate on logarithmic axes.

        Raises:
            InvalidParameter: no privacy cost, or a wrong number of names.
        """
        names = _names(priced, names)
        return cls(
            curves=tuple(
                AttackerCurve(
                    name=name,
                    false_positive_rate=_numbers(_RATES),
                    false_negative_rate=_numbers(risk.trade_off(each, _RATES)),
                    advantage=risk.advantage(each),
                )
                for each, name in zip(priced, names, strict=True)
            ),
            log=log,
        )

    @property
    def alt(self) -> str:
        parts = []
        for curve in self.curves:
            rate, miss = min(
                zip(curve.false_positive_rate, curve.false_negative_rate, strict=True), key=lambda p: abs(p[0] - 0.01)
            )
            parts.append(
                f"{curve.name}: at a false positive rate of {rate:.2g} a true positive rate of at most "
                f"{most(1.0 - miss, 3)}; advantage at most {most(curve.advantage, 3)}"
            )
        drawn = "True over false positive rate, logarithmic" if self.log else "False negative over false positive rate"
        return f"{drawn}, of the best possible attacker. {'. '.join(parts)}."

    def _draw(self, ax: "Axes", colours: style.Palette) -> None:
        rates = np.geomspace(_LEAST_RATE, 1.0, 2)
        guessing: dict[str, Any] = {"color": colours.soft, "linewidth": 1.0, "label": "guessing"}
        for place, curve in enumerate(self.curves):
            look = {**colours.line(place), "linewidth": 1.8, "label": style.shortened(curve.name)}
            misses = np.asarray(curve.false_negative_rate)
            if self.log:
                ax.plot(curve.false_positive_rate, 1.0 - misses, **look)
            else:
                ax.plot(curve.false_positive_rate, misses, **look)
        if self.log:
            ax.plot(rates, rates, **guessing)
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xlim(_LEAST_RATE, 1.0)
            ax.set_ylim(_LEAST_RATE, 1.2)
            ax.set_ylabel("true positive rate, at most")
        else:
            ax.plot((0.0, 1.0), (1.0, 0.0), **guessing)
            ax.set_xlim(0.0, 1.0)
            ax.set_ylim(0.0, 1.0)
            ax.set_ylabel("false negative rate, at least")
        ax.set_xlabel("false positive rate")
        style.legend(ax, colours)


def _profile(priced: Price, name: str, least: float, *, bars: bool) -> ProfileCurve:
    top = priced.epsilon(least)
    epsilons = np.linspace(0.0, top, _POINTS) if top > 0.0 else np.zeros(1)
    with np.errstate(under="ignore"):
        deltas = np.minimum(np.exp(priced.log_deltas(epsilons)) * (1.0 + 1e-12), 1.0)  # above the rounding of exp
    deltas[-1] = min(deltas[-1], least)  # at `top` that much is proven
    marks = np.geomspace(0.03, least, _MARKS).tolist() if bars else []
    ends = [priced.epsilon_interval(delta) for delta in marks]
    return ProfileCurve(
        name=name,
        epsilon=_numbers(epsilons),
        delta=_numbers(deltas),
        mark_delta=tuple(marks),
        mark_lower=tuple(low for low, _ in ends),
        mark_upper=tuple(high for _, high in ends),
    )


def _names(priced: Sequence[Price], names: Sequence[str]) -> tuple[str, ...]:
    if not priced:
        raise InvalidParameter("priced=() must be at least one privacy cost: the result of `price(event)`")
    for each in priced:
        if not isinstance(each, Price):
            raise _validate.fail("priced", each, "a Price: write price(event)", "privacy cost")
    if not names:
        return tuple(each.method for each in priced)
    names = _validate.items("names", names, "texts")
    if len(names) != len(priced):
        raise InvalidParameter(f"names={names!r} must be one for each of the {len(priced)} privacy costs")
    return tuple(str(name) for name in names)


def _numbers(values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> Numbers:
    found = tuple(float(value) for value in values)
    if any(math.isnan(value) for value in found):
        raise InvalidParameter("a point of the curve is not a number")
    return found
