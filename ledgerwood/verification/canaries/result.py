"""The result of an audit of a model."""

import math
from dataclasses import asdict, dataclass
from typing import Literal, final

from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.events import Event
from ledgerwood.pages.shown import Told
from ledgerwood.references import Cited, auditing
from ledgerwood.verification.auditing.claims import Claim
from ledgerwood.verification.auditing.result import Assumption, LowerBound, Scores

View = Literal["releases", "predictions", "fitted"]
Structure = Literal["fixed", "own"]
Mode = Literal["model", "one_mechanism", "one_selection", "one_leaf"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StructureCheck:
    """The result of a check that public trees stay the same, bit for bit, if only the rows change.

    Args:
        independent: every fit with the same public randomness drew the same trees.
        trees: how many were compared, in each fit.
        changes: what was done to the rows, in words.
        difference: the first difference; None if there is none.
    """

    independent: bool
    trees: int
    changes: tuple[str, ...]
    difference: str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelAudit(Told, Cited):
    """A lower bound on the epsilon of a trained model, and the result of the test of its claim.

    Args:
        epsilon_lower: the main bound, in nats at `delta`: the one of `bounds` with this `assumption` and `statistic`.
            The choice was fixed before the fit: Gaussian scores if everything that is scored has Gaussian noise and
            no two canaries share a leaf, else guesses, which need no assumption.
        assumption: the main bound's assumption.
        statistic: the main bound's test.
        rejected: whether the claim is refuted, at `alpha` in all: by guesses without any assumption, or by the curve
            that the model itself claims. False proves nothing: few canaries cannot refute a large epsilon at all.
        alpha: probability that the main bound is above the truth; the same for each of `bounds` separately.
        delta: at which epsilon is bounded.
        bounds: all bounds, each with its assumption.
        price: the claimed epsilon at `delta`, by the model's plan or `claim`; inf if nothing is claimed.
        epsilon_detectable: the bound expected of a perfect attack on a mechanism with exactly this privacy cost (or
            with the noise that was released, if that tells less), by the main statistic, with as many canaries or fits:
            the power of this audit. NaN if nothing is claimed.
        epsilon_ceiling: the largest bound that this statistic can show with as many canaries or fits, of any mechanism;
            inf if nothing limits it (means of Gaussian scores).
        expected: the same of each of `bounds`, in their order.
        needed: canaries with which the main bound is expected within .5 of the claimed epsilon (within half of it,
            where it is below a nat); None if no number of up to 65536 is, by this statistic.
        scores: the scores of canaries that were in, and out.
        seconds: running time.
        canaries: number of canaries in each training.
        trainings: fits; with `released=` all of them, those to learn from too.
        view: the scored values: released values, predictions, or what `released=` reads of the fitted model.
        structure: "fixed" where the audit put one tree in the place of each random one.
        shared: whether canaries shared leaves, or may have: of predictions it is known only in the audit's own trees.
            Then they are no independent runs, and only guesses say anything.
        scored, releases: number of of the last fit's releases that took part in the scores; with `released=`, numbers
            that were looked at.
        mu: the mu of a canary in what was scored, the least over canaries; None if noise is not Gaussian.
        price_mu: the price mu of the Gaussian mechanism with this privacy cost; 0 for a pure price.
        system: the estimator's name.
        claim: what was audited; None if nothing is claimed.
        structure_check: the `StructureCheck`; None if it was not asked for, or if nothing is drawn at random.
        attack: which rows were in or out, and what was looked at, in words.
        notes: what this attack could not see, and what was audited in the place of the model.
        weaknesses: why a low bound shows little: it is less than half of what could have been found, or the audit is
            too small for the claim. Empty if the attack found about what it could. Also a `PrivacyWarning`.
        mode: "one_mechanism" where one tree of depth 1 was audited in the place of the model, "one_selection" and
            "one_leaf" where only the choice of its split, or only its leaves, had the budget.
        changed: the parameters that were set for it, and their values.
        epsilon_attack: the bound expected of this very attack, by the plan and the rows that the audit made up; NaN
            where rows were given, where trees are public, or where a draw is of a part of the rows.
    """

    epsilon_lower: float
    assumption: Assumption
    statistic: str
    rejected: bool
    alpha: float
    delta: float
    bounds: tuple[LowerBound, ...]
    price: float
    epsilon_detectable: float
    epsilon_ceiling: float
    expected: tuple[float, ...]
    needed: int | None
    scores: Scores
    seconds: float
    canaries: int
    trainings: int
    view: View
    structure: Structure
    shared: bool
    scored: int
    releases: int
    mu: float | None
    price_mu: float
    system: str
    claim: Claim | None
    structure_check: StructureCheck | None
    attack: str = ""
    notes: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()
    mode: Mode = "model"
    changed: tuple[tuple[str, object], ...] = ()
    epsilon_attack: float = math.nan

    def __str__(self) -> str:
        rests = "" if self.assumption == "none" else f", assuming {self.assumption}"
        verdict = "refuted" if self.rejected else "not refuted"
        first = (
            f"{self.audited}: epsilon >= {self.epsilon_lower:.3g} at delta {self.delta:.3g} (alpha {self.alpha:g}, "
            f"{self.statistic}{rests}); {self.power_words}; claimed epsilon {self.price:.3g}: {verdict}"
        )
        return "\n".join((first, *(f"  {words}" for words in (*self.weaknesses, *self.notes))))

    def cited(self) -> tuple[object, ...]:
        """What it rests on, for `ledgerwood.cite`: one training with canaries, or many, and what was claimed."""
        one_run = (auditing.STEINKE_2023, auditing.MAHLOUJIFAR_2025)
        found = one_run if self.trainings == 1 else (auditing.DING_2018, auditing.BICHSEL_2021)
        gaussian = (auditing.NASR_2023,) if any(b.assumption == "Gaussian noise" for b in self.bounds) else ()
        return (*found, *gaussian, *((self.claim,) if isinstance(self.claim, Event) else ()))

    @property
    def audited(self) -> str:
        """The estimator, and the parameters that were set for an audit of one mechanism."""
        if self.mode == "model":
            return self.system
        changed = ", ".join(f"{name}={value!r}" for name, value in self.changed)
        return f"one mechanism of {self.system}({changed})"

    @property
    def power_words(self) -> str:
        """The power of the audit in words: the bound that could have been found."""
        most = (
            "the possible bound is not limited"
            if math.isinf(self.epsilon_ceiling)
            else f"{self.epsilon_ceiling:.3g} is the largest possible bound"
        )
        if math.isnan(self.epsilon_detectable):
            return most
        return (
            f"a perfect attack on exactly this privacy cost is expected to show {self.epsilon_detectable:.3g}, {most}"
        )

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values; what is infinite becomes null, and scores are lists."""
        record: dict[str, object] = {
            name: getattr(self, name)
            for name in (
                "epsilon_lower", "assumption", "statistic", "rejected", "alpha", "delta", "price", "needed",
                "epsilon_detectable", "epsilon_ceiling", "seconds", "canaries", "trainings", "view", "structure",
                "shared", "scored", "releases", "mu", "price_mu", "system", "attack", "mode",
            )
        }  # fmt: skip
        record["epsilon_attack"] = _plain(self.epsilon_attack)
        record["expected"] = [_plain(each) for each in self.expected]
        record |= {"notes": list(self.notes), "weaknesses": list(self.weaknesses), "changed": dict(self.changed)}
        record["bounds"] = [{name: _plain(value) for name, value in asdict(each).items()} for each in self.bounds]
        stated = isinstance(self.claim, Event | Budget)
        record["claim"] = repr(self.claim) if stated else None if self.claim is None else "a function"
        record["scores"] = {"with": self.scores.with_row.tolist(), "without": self.scores.without.tolist()}
        record["structure_check"] = None if self.structure_check is None else asdict(self.structure_check)
        return {name: _plain(value) for name, value in record.items()}


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
