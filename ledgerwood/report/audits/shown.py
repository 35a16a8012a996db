"""`ledgerwood audit mechanism` and `audit model`: an audit's result with the numbers of its figures."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, final

from ledgerwood import __version__
from ledgerwood.errors import InvalidParameter, PrivacyError
from ledgerwood.verification.auditing import Claim, ClaimedCurve, Scores, curves
from ledgerwood.verification.black_box import Audit

if TYPE_CHECKING:
    from ledgerwood.verification.canaries import ModelAudit


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The figures of an audit; None if a figure is absent, with the reason in `absent`, by the figure's name.

    Args:
        claimed: the trade-off curve that the claim promises.
        bound: that of the (epsilon, delta) that was found.
        roc: the ROC of the scores, with its band.
        histograms: the histograms of the scores.
        absent: why a figure is missing.
    """

    claimed: curves.DrawnTradeOff | None
    bound: curves.DrawnTradeOff | None
    roc: curves.Roc | None
    histograms: curves.Histograms | None
    absent: tuple[tuple[str, str], ...]

    def to_record(self) -> dict[str, object]:
        """Plain JSON values; of the ROC also the edges of its band."""
        roc = self.roc
        edges = {} if roc is None else {"lower": _rates(roc.lower), "upper": _rates(roc.upper)}
        return {
            "trade_off": {
                "claimed": None if self.claimed is None else asdict(self.claimed),
                "bound": None if self.bound is None else asdict(self.bound),
            },
            "roc": None if roc is None else asdict(roc) | edges,
            "scores": None if self.histograms is None else asdict(self.histograms),
            "absent": dict(self.absent),
        }


def curves_of(
    claim: Claim | None, *, epsilon: float, delta: float, alpha: float, scores: Scores | None, independent: bool = True
) -> Curves:
    """The numbers of all figures.

    Args:
        claim: what was promised; None if nothing was.
        epsilon, delta: the bound that was found.
        alpha: error of the band.
        scores: the scores by which the outputs were ordered, if the audit has them.
        independent: whether they are of independent runs; a ROC's band holds for no others.
    """
    absent: list[tuple[str, str]] = []
    claimed: curves.DrawnTradeOff | None = None
    if claim is None:
        absent.append(("claimed trade-off curve", "Nothing is claimed."))
    else:
        try:
            claimed = curves.claimed_trade_off(ClaimedCurve(claim))
        except PrivacyError as refusal:
            absent.append(("claimed trade-off curve", str(refusal)))
    roc, histograms = None, None
    if scores is None:
        absent.append(("scores", "This audit counted one event, or kept no outputs: there are no scores to order by."))
    else:
        try:
            histograms = curves.histograms(scores)
            if independent:
                roc = curves.roc(scores, alpha=alpha)
            else:
                absent.append(("ROC", "Scores of canaries that may share leaves are not independent: no band holds."))
        except InvalidParameter as refusal:
            absent.append(("scores", str(refusal)))
    bound = curves.bound_trade_off(epsilon, delta) if epsilon > 0.0 else None
    return Curves(claimed=claimed, bound=bound, roc=roc, histograms=histograms, absent=tuple(absent))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismReport:
    """An audited mechanism, ready to be shown.

    Args:
        name: what was audited, as it was asked for.
        claim: what was promised, in words.
        pair: where the two data sets come from, in words; not what is in them.
        seed: the seed of the audit's random numbers.
        audit: the result.
        curves: the numbers of its figures.
    """

    name: str
    claim: str
    pair: str
    seed: int
    audit: Audit
    curves: Curves

    def to_record(self) -> dict[str, object]:
        """Plain JSON values."""
        return {
            "report": "mechanism",
            "ledgerwood": __version__,
            "mechanism": self.name,
            "claim": self.claim,
            "pair": self.pair,
            "seed": self.seed,
            "audit": self.audit.to_dict(),
            **self.curves.to_record(),
        }


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """An audited training, ready to be shown.

    Args:
        claim: the plan that was priced, in words.
        seed: the seed of the audit's random numbers.
        audit: the result.
        curves: the numbers of its figures.
    """

    claim: str
    seed: int
    audit: "ModelAudit"
    curves: Curves

    def to_record(self) -> dict[str, object]:
        """Plain JSON values; single scores are not among them, their histograms are."""
        found = {name: value for name, value in self.audit.to_dict().items() if name != "scores"}
        return {
            "report": "model",
            "ledgerwood": __version__,
            "claim": self.claim,
            "seed": self.seed,
            "audit": found,
            **self.curves.to_record(),
        }


def _rates(edge: tuple[curves.Numbers, curves.Numbers]) -> dict[str, curves.Numbers]:
    return {"false_positive_rate": edge[0], "true_positive_rate": edge[1]}
