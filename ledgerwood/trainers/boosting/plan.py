"""The plan of the recommended trees: all queries and their noise, fixed before a row is read."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Budget
from ledgerwood.accounting.calibration import calibrate
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.splitting import relative_multipliers
from ledgerwood.curator import BinCounts, CandidateBins, LeafClassGradients, LeafCurvatures, LeafMoments, Loss
from ledgerwood.curator.queries.bins import MAX_SUMS
from ledgerwood.ensemble import FeatureCells, Tree, TreeStructure
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BoxShifts, GaussianMechanism, SkellamMechanism
from ledgerwood.references import Reference, systems
from ledgerwood.trainers.base.bounds import Count, Real, positive, share
from ledgerwood.trainers.base.forests import ESTIMATED_CLASSES
from ledgerwood.trainers.base.plan import require_zero_start
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.boosting.candidates import EVEN_BINS, most_sums
from ledgerwood.trainers.boosting.rule import GUESSED_ROWS, evidence, rule, ruled_histogram_bins
from ledgerwood.trainers.boosting.signals import FeatureChoice
from ledgerwood.trainers.parts.class_leaves import class_shares, class_value_noise, class_values
from ledgerwood.trainers.parts.gaussian_trees import AbstractGaussianPlan, mean_label_share
from ledgerwood.trainers.parts.whole_noise import skellam_noise

Candidates = Literal["bought", "even"]
FeatureChoiceKind = Literal["signal", "cycle"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateBoostingPlan(AbstractGaussianPlan):
    """The plan of the recommended trees. Fields that all systems have: see its base classes.

    Totally random trees (S-GBDT), each on `features_per_tree` features. Which features, and which thresholds, follows
    from what was released before; neither event nor sensitivity depends on it (docs/explanation/boosting.md).

    Args:
        n_features: of the schema. numeric_features: places of those that have thresholds.
        candidates: "bought": a histogram of each numeric feature is released before the first tree, and its quantiles
            are candidates beside even steps; "even": even steps only.
        n_candidates: even thresholds of a numeric feature, and as many quantiles where they are bought.
        n_spread_candidates: thresholds between even steps and quantiles where candidates are bought, at most: quantiles
            of the root of the rows' density, of histograms with as many bins as the noise allows. 0 for none.
        candidate_share: share of mu**2 for the histograms, of what an estimated schema leaves.
        candidate_multiplier: stddev of the histograms' noise over their L2 sensitivity under add-remove; found by
            `calibrated`.
        feature_choice: "signal": features whose trees have shown more come more often; "cycle": all in turn.
        even_share: share of the turns that are spread evenly over all features.
        signal_memory: cycles of the features after which a tree's signal counts for 1/e.
        evidence: what the rule went by, see `rule.evidence`.
        shared_classes: K > 2 declared classes, of which each leaf has a value; 0 for a number, two classes, or classes
            that are estimated, which have a forest each.
    """

    references: ClassVar[tuple[Reference, ...] | None] = (systems.KIRSCHTE_2023, systems.FRIEDMAN_2001)

    n_features: Annotated[int, Count("features")]
    numeric_features: tuple[int, ...]
    initial_score: Literal["zero", "moments"]
    candidates: Candidates
    n_candidates: Annotated[int, Count("thresholds a feature", most=1 << 12)]
    n_spread_candidates: Annotated[int, Count("thresholds a feature", minimum=0, most=1 << 12)]
    candidate_share: Annotated[float, share("share of mu**2")]
    candidate_multiplier: Annotated[float, positive("stddev / L2 sensitivity")] = 1.0
    feature_choice: FeatureChoiceKind
    even_share: Annotated[float, Real("share of the turns", high=1, holds_high=True)]
    signal_memory: Annotated[float, positive("cycles")]
    evidence: Annotated[float, Real("stddevs", holds_low=True)]
    shared_classes: Annotated[int, Count("classes", minimum=0)] = 0

    @classmethod
    def ruled(
        cls,
        loss: Loss,
        budget: Budget,
        expected_rows: int | None,
        *,
        n_features: int,
        numeric_features: tuple[int, ...],
        shared_classes: int = 0,
    ) -> "PrivateBoostingPlan":
        """The plan of the public rule, noise still to be calibrated.

        Args:
            loss: squared for numbers, logistic for classes.
            budget: of the fit.
            expected_rows: a public guess of the number of rows.
            n_features: of the schema.
            numeric_features: places of those that have thresholds.
            shared_classes: see above.
        """
        found, initial_share = evidence(budget, expected_rows), mean_label_share(budget, expected_rows)
        ruled = rule(loss, found, n_features=n_features, n_numeric=len(numeric_features))
        chosen: dict[str, Any] = {name: own.value for name, own in ruled.items()}
        return cls(
            adjacency=budget.adjacency,
            loss=loss,
            n_features=n_features,
            numeric_features=numeric_features,
            curvature_scale=0.3,
            count_share=0.02,
            score_noise=None,
            max_delta_step=2.0,
            initial_score="zero" if loss == "logistic" else "moments",
            initial_share=0.05 if initial_share is None else initial_share,
            expected_rows=expected_rows,
            evidence=found,
            shared_classes=shared_classes,
            **chosen,
        )

    def _require_whole(self) -> None:
        places = _validate.items("numeric_features", self.numeric_features, "places")
        object.__setattr__(self, "numeric_features", places)
        if not set(places) <= set(range(self.n_features)) or list(places) != sorted(set(places)):
            raise _validate.fail("numeric_features", places, f"rising, in 0 .. {self.n_features - 1}", "places")
        if self.shared_classes == 1 or (self.shared_classes and self.loss != "logistic"):
            raise InvalidParameter(
                f"shared_classes={self.shared_classes!r} must be 0, or at least 2 with loss='logistic', not "
                f"{self.loss!r} (unit: classes)"
            )
        require_zero_start(self.shared_classes, self.initial_score)
        if not self._shares_before < 1.0:
            raise InvalidParameter(
                f"initial_share={self.initial_share!r} and candidate_share={self.candidate_share!r} leave nothing for "
                "the trees: their sum must be below 1 (unit: share of mu**2)"
            )
        self.require_sums()
        self.leaf  # noqa: B018  # checks the clip, and what else it is made of

    def require_room(self, cells: Sequence[FeatureCells]) -> None:
        """Refuse more numeric features than one release of histograms holds.

        Args:
            cells: of each feature of the schema.

        Raises:
            InvalidParameter: so many.
        """
        most = MAX_SUMS // most_sums(self.histogram_bins)
        if self.buys_candidates and len(self.numeric_features) > most:
            raise InvalidParameter(
                f"{len(self.numeric_features):,} numeric features are more than the {most:,} whose histograms one "
                "release holds: set candidates='even' (unit: features)"
            )

    # ------------------------------------------------------------------------------------------- what is asked, and how

    @property
    def leaf(self) -> LeafMoments | LeafCurvatures | LeafClassGradients:
        """Rows and gradients of a leaf for the squared loss and several classes, hessians and gradients for two."""
        if self.shared_classes:
            return LeafClassGradients(classes=self.shared_classes, clip=self.clip)
        if self.loss == "squared":
            return LeafMoments(loss="squared", clip=self.clip)
        return LeafCurvatures(clip=self.clip, curvature_scale=self.curvature_scale)

    @property
    def buys_candidates(self) -> bool:
        """True if histograms are released before the first tree."""
        return self.candidates == "bought" and bool(self.numeric_features) and self.max_depth > 0

    @property
    def histogram_bins(self) -> int:
        """Even bins of each candidate histogram; its grid is finer towards both ends and 0."""
        if not self.n_spread_candidates:
            return EVEN_BINS
        numeric = len(self.numeric_features)
        found = ruled_histogram_bins(self.evidence, n_numeric=numeric, candidate_share=self.candidate_share)
        while found > EVEN_BINS and numeric * most_sums(found) > MAX_SUMS:
            found //= 2
        return found

    @property
    def candidate_stddev(self) -> float:
        """Standard deviation of the noise on each count of the histograms, in rows."""
        return self.candidate_multiplier * math.sqrt(len(self.numeric_features))

    @property
    def candidate_mechanism(self) -> GaussianMechanism | SkellamMechanism:
        """Noise of the histograms."""
        if self.noise == "skellam":
            return skellam_noise(self.candidate_stddev, 0)
        return GaussianMechanism(stddev=self.candidate_stddev)

    @property
    def candidate_event(self) -> Event:
        """The event of the histograms: each row is in one bin of each numeric feature."""
        counts = BoxShifts.of_counts(self.adjacency, histograms=len(self.numeric_features))
        return self.candidate_mechanism.event(counts, self.adjacency)

    @property
    def first_events(self) -> tuple[Event, ...]:
        """What is drawn before the trees: an estimated schema, the histograms, and the initial score."""
        bought = () if self.purchase is None else self.purchase.events
        return (*bought, *((self.candidate_event,) if self.buys_candidates else ()), *self.initial.events)

    @property
    def tree_event(self) -> Event:
        """The event of one tree, whatever its features, its thresholds and the scores before it."""
        return self.leaf_mechanism.event(self.asked.sensitivity(self.adjacency), self.adjacency)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """One draw for each tree, whose step is the tree's number from 0."""
        return (Stage(event=self.tree_event, steps=range(self.n_estimators * self.classes)),)

    @property
    def size(self) -> str:
        """See `AbstractGaussianPlan`."""
        return f"{self.n_estimators * self.classes} trees of depth {self.max_depth}"

    @property
    def equal_queries(self) -> int:
        """See `AbstractGaussianPlan`."""
        return self.n_estimators * self.classes

    # ------------------------------------------------------------------------------------------------------- its noise

    @property
    def _shares_before(self) -> float:
        initial = self.initial_share if self.initial_score == "moments" else 0.0
        return initial + (self.candidate_share if self.buys_candidates else 0.0)

    def scaled(self, noise_multiplier: float) -> "PrivateBoostingPlan":
        """This plan with another common noise scale; what comes before the trees keeps its share of mu**2."""
        parts = {"trees": (1.0 - self._shares_before, self.equal_queries)}
        if self.initial_score == "moments":
            parts["initial_score"] = (self.initial_share, 1)
        if self.buys_candidates:
            parts["candidates"] = (self.candidate_share, 1)
        relative = relative_multipliers(parts)
        found = {name: noise_multiplier * each / relative["trees"] for name, each in relative.items()}
        return dataclasses.replace(
            self,
            noise_multiplier=noise_multiplier,
            initial_multiplier=found.get("initial_score", self.initial_multiplier),
            candidate_multiplier=found.get("candidates", self.candidate_multiplier),
        )

    def _found(self, budget: Budget) -> "PrivateBoostingPlan":
        plan = self.scaled(calibrate(lambda noise_multiplier: self.scaled(noise_multiplier).event, budget))
        plan.require_first_fit()
        plan.leaf_mechanism.require_fit(plan.asked.grid)
        if plan.buys_candidates:
            any_bins = CandidateBins.of([FeatureCells(ordered=2, equality=())])
            plan.candidate_mechanism.require_fit(BinCounts(bins=any_bins).grid)
        return plan

    # --------------------------------------------------------------------------------------------- what is made of it

    def choice(self) -> FeatureChoice:
        """The choice of features of one forest: of each of its trees in turn."""
        return FeatureChoice(
            self.n_features,
            per_tree=self.per_tree,
            even_share=1.0 if self.feature_choice == "cycle" else self.even_share,
            memory=self.signal_memory,
        )

    def of_forest(self, trees: int, forests: int) -> "PrivateBoostingPlan":
        """See `AbstractBoostedPlan`; several forests start at 0."""
        return dataclasses.replace(self, n_estimators=trees, classes=1, initial_score="zero")

    def leaf_values(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """See `AbstractBoostedPlan`."""
        return self.newton_values(released)

    def value_noise(self, released: NDArray[np.float64], place: int = 0) -> NDArray[np.float64]:
        """See `AbstractBoostedPlan`."""
        return self.newton_noise(released)

    def class_tree(
        self, structure: TreeStructure, released: NDArray[np.float64], hessians: NDArray[np.float64]
    ) -> Tree:
        """The tree of these splits whose leaves have a value for each class, from released sums (n_leaves, 1 + K).

        Args:
            structure: its splits.
            released: rows and gradients.
            hessians: of a row, for each class.
        """
        values = class_values(
            released, hessians=hessians, reg_lambda=self.leaf_lambda, pooling=self.pooling,
            max_delta_step=self.max_delta_step,
        )  # fmt: skip
        noise = class_value_noise(
            released, hessians=hessians, reg_lambda=self.leaf_lambda, pooling=self.pooling,
            max_delta_step=self.max_delta_step, stddev=self.leaf_stddevs[1],
        )  # fmt: skip
        return Tree(
            structure=structure,
            values=self.learning_rate * values,
            weights=self.leaf_weights(released),
            noise=self.learning_rate * noise,
        )

    def first_shares(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """Shares of the classes by the one leaf of a first tree without splits, (K,).

        There all rows have even probabilities 1 / K, and a gradient of norm sqrt((K - 1) / K), which the clip scales.

        Args:
            released: (1, 1 + K).
        """
        k = self.shared_classes
        scale = min(1.0, self.clip / math.sqrt((k - 1) / k))
        rows, gradient = self.leaf_stddevs
        return class_shares(released[0, 0] / k - released[0, 1:] / scale, math.hypot(rows / k, gradient / scale))

    def explain(self) -> str:
        """What the rule chose and why, a line a field, and where another value stands in its place."""
        rows = "no expected_rows" if self.expected_rows is None else f"expected_rows={self.expected_rows:,}"
        guessed = f": {GUESSED_ROWS:,} are assumed" if self.expected_rows is None else ""
        first = "; the first one has no split, and tells the shares of the classes" if self.shared_classes else ""
        lines = [
            f"{self.size}{first}; noise of stddev {self.leaf_stddevs[1]:.4g} on each leaf's sum of gradients",
            f"by the public rule for evidence {self.evidence:,.0f} (mu * rows; {rows}{guessed}):",
        ]
        n_numeric = len(self.numeric_features)
        chosen = rule(self.loss, self.evidence, n_features=self.n_features, n_numeric=n_numeric)
        for name, own in chosen.items():
            value = self.per_tree if name == "features_per_tree" else getattr(self, name)
            said = own.why if value == own.value else f"not the rule's, which is {own.value!r}"
            if name == "n_estimators" and self.purchase is not None and value == ESTIMATED_CLASSES:
                said = "one for each class that may be found, at least"
            lines.append(f"  {name} = {value!r}: {'not used here' if name in self._unused else said}")
        if self.class_weights:
            lines.append(f"  class_weights = {self.class_weights!r}: the schema's, as shares of the largest")
        before = [
            f"{share:.1%} of mu**2 for {what}"
            for what, share, there in (
                ("the histograms of the candidates", self.candidate_share, self.buys_candidates),
                ("the mean label", self.initial_share, self.initial_score == "moments"),
            )
            if there
        ]
        bought = [] if self.purchase is None else ["the estimate of the schema, and of what is left"]
        return "\n".join([*lines, f"{' '.join([*bought, ', '.join(before)]) or 'nothing'} comes before the trees"])

    @property
    def per_tree(self) -> int:
        """Features of a tree."""
        return min(self.features_per_tree or self.n_features, self.n_features)

    @property
    def _unused(self) -> set[str]:
        """Fields of the rule that nothing follows from in this plan."""
        candidates = set() if self.buys_candidates else {"candidate_share", "n_spread_candidates"}
        if not self.buys_candidates and self.candidates == "bought":
            candidates |= {"candidates"}
        choice = set() if self.feature_choice == "signal" else {"even_share", "signal_memory"}
        return candidates | choice
