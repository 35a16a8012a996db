"""Plans: what a system fixes before it sees data, as a frozen dataclass whose fields are its parameters.

A parameter's name, meaning and bound are written once, at the field. What several systems share is a base of their
plans: all, those that add up trees, and those of Gaussian noise.
"""

import abc
import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.calibration import calibrate
from ledgerwood.accounting.events import Composed, Event
from ledgerwood.accounting.pricing import price
from ledgerwood.curator import Loss, Schema
from ledgerwood.ensemble import FeatureCells, Tree, TreeStructure
from ledgerwood.errors import AdjacencyMismatch, CalibrationFailed, InvalidParameter, SchemaError, UnsupportedEvent
from ledgerwood.pages.shown import Card, ShowsItself, shortened
from ledgerwood.trainers.base.bounds import Bins, Count, Depth, Trees, positive, require_bounds, share
from ledgerwood.trainers.base.citations import CitedPlan
from ledgerwood.trainers.base.schedule import Stage
from ledgerwood.trainers.estimated.purchase import SchemaPurchase
from ledgerwood.trainers.parts.initial_scores import InitialScore, InitialScoreKind
from ledgerwood.trainers.parts.whole_noise import NoiseKind


class Plan(Protocol):
    """What an estimator needs of a plan: a frozen dataclass of plain values."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def event(self) -> Event:
        """The whole sequence of events."""

    @property
    def max_bins(self) -> int:
        """Even steps of a numeric feature's range."""

    @property
    def loss(self) -> Loss:
        """The loss whose gradients are taken."""

    @property
    def purchase(self) -> SchemaPurchase | None:
        """The estimation of the schema, which comes first; None where it is declared."""

    @property
    def needs_one_part(self) -> str:
        """The name of a query of this plan that is not a sum over rows, so that it needs them all in memory; or ""."""

    @property
    def needs_one_process(self) -> str:
        """The name of a query of this plan that is a ratio of sums, which needs all rows in one process; or ""."""


class CalibratedPlan(Plan, Protocol):
    """A plan that finds its own noise."""

    def calibrated(self, budget: Budget) -> Self:
        """This plan with the least noise that fits the budget."""

    def has_room(self, budget: Budget) -> bool:
        """Returns whether the budget is enough for this plan."""


class TreePlan(Plan, Protocol):
    """A plan of trees."""

    def leaf_signal(self, rows: float) -> float:
        """Bounds the signal-to-noise ratio of a leaf, all trees together, in a table of so many rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractPlan(ShowsItself, CitedPlan):
    """All that a trainer will do, fixed and priced before a row is read.

    Args:
        adjacency: the relation under which every event is stated.
        max_bins: even steps of a numeric feature's range, by which the rows are read: thresholds are borders of them,
            and a `DeclaredStatistic` sees their middles. Ours: public bins.
        purchase: the estimation of the schema, which comes first; None where it is declared. Ours.
    """

    adjacency: Adjacency
    max_bins: Bins
    purchase: SchemaPurchase | None = None

    def __post_init__(self) -> None:
        require_bounds(self)
        self._require_whole()

    @abc.abstractmethod
    def _require_whole(self) -> None:
        """Refuse fields that do not go together, and whatever else the bounds of single fields cannot say.

        Raises:
            InvalidParameter, AdjacencyMismatch: so it is.
        """

    @property
    @abc.abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """What is drawn for the model, in the order of the loop."""

    def schedule(self) -> Iterator[tuple[Event, Any]]:
        """(event, step) of each draw for the model: what the loop opens, and what it does there."""
        return ((stage.event, step) for stage in self.stages for step in stage.steps)

    @property
    def needs_one_part(self) -> str:
        """See `Plan`: for most plans there is no such query."""
        return ""

    @property
    def needs_one_process(self) -> str:
        """See `Plan`: for most plans there is no such query."""
        return ""

    @property
    def first_events(self) -> tuple[Event, ...]:
        """What is drawn before the model: an estimated schema."""
        return () if self.purchase is None else self.purchase.events

    @property
    def event(self) -> Event:
        """The whole plan, what the ledger grants: the composition of all that is drawn."""
        return Composed((*self.first_events, *(stage.whole for stage in self.stages)))

    def cited_parts(self) -> tuple[object, ...]:
        """See `CitedPlan`: the mechanisms of an estimated schema."""
        return () if self.purchase is None else self.purchase.mechanisms

    @property
    def derived(self) -> dict[str, int]:
        """What follows from the fields and is shown with them, by name: a number that was rounded."""
        return {}

    def _card(self) -> Card:
        named = [field.name for field in dataclasses.fields(self) if field.repr]
        # Derived values come first: of a long plan the last lines are not shown.
        facts = [(name, str(value)) for name, value in self.derived.items()]
        facts += [(name, shortened(str(value), 60)) for name in named if (value := getattr(self, name)) is not None]
        draws = sum(count for _, count in self.event.draws())
        return Card(title=f"{type(self).__name__} of {draws:,} draws", facts=tuple(facts))

    def has_room(self, budget: Budget) -> bool:
        """Returns whether the budget is enough for this plan."""
        try:
            self.calibrated(budget)
        except (InvalidParameter, CalibrationFailed, UnsupportedEvent):
            return False
        return True

    @abc.abstractmethod
    def calibrated(self, budget: Budget) -> Self:
        """This plan with the least noise that fits the budget.

        Raises:
            CalibrationFailed: the budget is too small for the plan.
        """

    def require_first_fit(self) -> None:
        """Refuse noise before the model that cannot be drawn.

        Raises:
            InvalidParameter: it is too large for a statistic's grid.
        """
        if self.purchase is not None:
            self.purchase.require_fit()


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractNoisePlan(AbstractPlan):
    """A plan whose one scale is `noise_multiplier`: more of it is less cost.

    Args:
        noise_multiplier: stddev or scale of the noise over the sensitivity; found by `calibrated`.
    """

    noise_multiplier: Annotated[float, positive("noise / sensitivity")] = 1.0

    def calibrated(self, budget: Budget) -> Self:
        """This plan with the least noise that fits the budget.

        Raises:
            CalibrationFailed, InvalidParameter: the budget is too small for the plan.
        """
        found = calibrate(lambda noise: self.with_noise(noise).event, budget)
        return self.with_noise(found)

    def with_noise(self, noise_multiplier: float) -> Self:
        """This plan with another noise multiplier."""
        return dataclasses.replace(self, noise_multiplier=noise_multiplier)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractTreePlan(AbstractPlan):
    """The plan of a system of trees.

    Args:
        max_depth: d, levels of splits of each tree.
    """

    max_depth: Depth


class AbstractEpsilonPlan(AbstractTreePlan):
    """A plan whose one scale is `tree_epsilon`, the epsilon of each of its trees."""

    __slots__ = ()

    tree_epsilon: float

    @property
    @abc.abstractmethod
    def least_tree_epsilon(self) -> float:
        """Below it leaves are nothing but noise."""

    @property
    @abc.abstractmethod
    def size(self) -> str:
        """What is trained, for messages."""

    @abc.abstractmethod
    def require_fit(self) -> None:
        """Refuse noise of the trees that cannot be drawn.

        Raises:
            InvalidParameter: it is too large for a statistic's grid.
        """

    def prepared(self, budget: Budget) -> Self:  # of a plan that draws something before
        """With what is drawn before the trees at its share of the budget."""
        return self

    def pure(self) -> Self:
        """The same trees without any event that needs a delta."""
        return dataclasses.replace(self, purchase=None)

    def scaled(self, tree_epsilon: float) -> Self:
        """This plan with another epsilon of each tree."""
        changed: dict[str, Any] = {"tree_epsilon": tree_epsilon}  # a field of each such plan
        return dataclasses.replace(self, **changed)  # a field of each such plan

    def calibrated(self, budget: Budget) -> Self:
        """This plan with the largest `tree_epsilon` that fits the budget.

        Raises:
            CalibrationFailed: the budget is too small for the plan.
            AdjacencyMismatch, UnsupportedEvent, InvalidParameter: as `ledgerwood.calibrate` and `split`.
        """
        found: Self = _calibrated(self, budget)
        return found

    def without_delta(self, budget: Budget) -> Self:
        """The same trees by pure privacy: `plan.tree_epsilon` over its `tree_epsilon` is what the delta is worth.

        An estimated schema is left out, and a Gaussian initial score is a Laplace one.

        Raises:
            InvalidParameter: Gaussian noise, which has no pure cost.
            CalibrationFailed, AdjacencyMismatch: as `calibrated`.
        """
        return self.pure().calibrated(Budget(epsilon=budget.epsilon, delta=0.0, adjacency=budget.adjacency))

    def has_room(self, budget: Budget) -> bool:
        """Returns whether the budget is enough for trees that learn anything."""
        return self.prepared(budget).fits_least(budget)

    def fits_least(self, budget: Budget) -> bool:
        """Returns whether a prepared plan fits the budget at the least epsilon that a tree can do anything with."""
        try:
            self.require_first_fit()
        except InvalidParameter:
            return False
        try:
            event = self.scaled(self.least_tree_epsilon).event
            with contextlib.suppress(UnsupportedEvent, InvalidParameter):
                if price(event, method="renyi").epsilon(budget.delta) <= budget.epsilon:
                    return True  # quickly computed, and no smaller than the tightest
            return price(event).epsilon(budget.delta) <= budget.epsilon
        except (UnsupportedEvent, InvalidParameter):  # no cost at this delta: `calibrate` knows why
            return True


@functools.lru_cache(maxsize=64)  # a search of seconds, and the folds of a validation all ask for the same plan
def _calibrated(plan: Any, budget: Budget) -> Any:
    start = plan.prepared(budget)
    if not start.fits_least(budget):
        raise CalibrationFailed(too_small(plan.size, budget, "their leaves would be nothing but noise"))
    found = start.scaled(calibrate(lambda epsilon: start.scaled(epsilon).event, budget))
    found.require_first_fit()
    found.require_fit()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractBoostedPlan(AbstractTreePlan):
    """The plan of a sum of trees.

    Args:
        loss: "squared", on labels scaled to [-1, 1], or "logistic".
        n_estimators: T, number of trees.
        learning_rate: eta, factor on the value of each leaf, > 0.
        clip: g*, largest absolute gradient that counts.
        initial_score: see `InitialScore`. Ours but for S-GBDT, which starts so.
        initial_multiplier: noise of each release of the initial score, stddev or scale over sensitivity; found by
            `calibrated`.
        initial_share: share of the budget for the initial score: of mu**2 ("moments") or of epsilon (the others).
        expected_rows: public guess of the number of rows, for rules of tuning; exact for the initial score
            "public_count". Ours.
        weighted: whether rows may have weights, their own up to the schema's bound or those of their classes; "rows"
            then are rows of the largest weight. Ours.
        class_weights: the schema's, in the order of the target's categories; empty where it has none. Ours.
        classes: K for one forest a class, which is told from all others: `n_estimators` is of each; 1 for one forest,
            whose trees the classes of an estimated schema share. Ours.
    """

    loss: Loss
    n_estimators: Trees
    learning_rate: Annotated[float, positive("factor on a leaf")]
    clip: Annotated[float, positive("units of the gradient")]
    initial_score: InitialScoreKind
    initial_multiplier: Annotated[float, positive("noise / sensitivity")] = 1.0
    initial_share: Annotated[float, share("share of the budget")]
    expected_rows: int | None = None
    weighted: bool = False
    class_weights: tuple[float, ...] = ()
    classes: Annotated[int, Count("forests")] = 1

    def __post_init__(self) -> None:
        require_bounds(self)
        self._require_weights()
        self._require_whole()
        require_zero_start(self.classes, self.initial_score)
        self.initial  # noqa: B018  # checks what the initial score needs

    def _require_weights(self) -> None:
        """Refuse weights of classes that are no weights, or where the number of all rows is taken for that of weights.

        Raises:
            InvalidParameter: so it is.
        """
        found = _validate.items("class_weights", self.class_weights, "weights of classes")
        weights = tuple(_validate.positive("class_weights", each, "weight of a class") for each in found)
        object.__setattr__(self, "class_weights", weights)
        if weights and not self.weighted:
            raise _validate.fail("weighted", self.weighted, f"True with class_weights={weights!r}", "flag")
        if weights and self.initial_score == "public_count":
            raise InvalidParameter(
                f"initial_score='public_count' divides by the number of rows, and with class_weights={weights!r} the "
                "weight in all is not public: set 'zero', 'moments' or 'laplace' (unit: weight of a class)"
            )

    def require_room(self, cells: Sequence[FeatureCells]) -> None:
        """Refuse trees that cannot be grown on a schema, before a budget moves.

        Args:
            cells: of each feature of the schema.

        Raises:
            InvalidParameter: features that cannot be split, or levels of more nodes and candidates than a query takes.
        """

    def of_forest(self, trees: int, forests: int) -> Self:
        """The plan as one of several forests follows it: draws that this one has, and its own post-processing.

        Args:
            trees: of this forest.
            forests: how many there are.
        """
        return dataclasses.replace(self, n_estimators=trees, classes=1)

    @abc.abstractmethod
    def leaf_values(self, released: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values of one tree's leaves, learning rate included, from what was released; shape (n_leaves,)."""

    def leaf_weights(self, released: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The weight of the rows of each leaf, (n_leaves,), by the same release; None where it tells none."""
        return None

    def value_noise(self, released: NDArray[np.float64], place: int = 0) -> NDArray[np.float64] | None:
        """The standard deviation of the noise in each of `leaf_values`, at most, given the weights; None: not known.

        docs/explanation/reading.md#value-noise.

        Args:
            released: as for `leaf_values`.
            place: of the tree in its ensemble, where the noise depends on it.
        """
        return None

    def tree(self, structure: TreeStructure, released: NDArray[np.float64], place: int = 0) -> Tree:
        """The tree of these splits with what its leaves' release tells; arguments as of `value_noise`."""
        return Tree(
            structure=structure,
            values=self.leaf_values(released),
            weights=self.leaf_weights(released),
            noise=self.value_noise(released, place),
        )

    @property
    def trees(self) -> int:
        """Number of trees of a forest; public, and never a matter of what the rows hold."""
        return self.n_estimators

    @property
    def initial(self) -> InitialScore:
        """The initial score: its queries, noise and events."""
        return InitialScore(
            kind=self.initial_score,
            adjacency=self.adjacency,
            multiplier=self.initial_multiplier,
            expected_rows=self.expected_rows,
            noise=self.initial_noise,
        )

    @property
    def initial_noise(self) -> NoiseKind:
        """What noise of an initial score by "moments" is: Gaussian, but for plans whose noise clients can share."""
        return "gaussian"

    @property
    def first_events(self) -> tuple[Event, ...]:
        """What is drawn before the trees: an estimated schema, and the initial score."""
        bought = () if self.purchase is None else self.purchase.events
        return (*bought, *self.initial.events)

    def require_first_fit(self) -> None:
        """See `AbstractPlan.require_first_fit`."""
        AbstractPlan.require_first_fit(self)
        self.initial.require_fit()


def too_small(plan: str, budget: Budget, why: str) -> str:
    """The message of a budget that is too small for a plan."""
    return f"epsilon={budget.epsilon!r} nats at delta={budget.delta!r} is too small for {plan}: {why}"


def require_zero_start(classes: int, initial_score: str) -> None:
    """Refuse a plan of several forests that would ask for the mean label: each forest has its own label.

    Raises:
        InvalidParameter: so it is.
    """
    if classes > 1 and initial_score != "zero":
        raise InvalidParameter(
            f"initial_score={initial_score!r} is for a number or two classes, and the schema declares {classes} "
            "classes: set initial_score='zero' (unit: name)"
        )


def require_plan(plan: object) -> None:
    """Refuse a plan that lacks what `fit` asks of it, before anything is paid."""
    for name, what in (
        ("loss", "'squared' or 'logistic': how labels are read ('logistic' is for classes only)"),
        ("max_bins", "even steps of a numeric feature's range, by which rows are read"),
        ("purchase", "the estimation of the schema, or None"),
        ("needs_one_part", "the name of a query that is no sum over rows, or '' where there is none"),
        ("needs_one_process", "the name of a query of ratios, or '' where there is none"),
    ):
        if getattr(plan, name, plan) is plan:
            raise InvalidParameter(f"{type(plan).__name__} has no {name}: give it a field {name}, {what}")


def require_payable(plan: Plan, event: Event, budget: Budget, schema: Schema | None) -> None:
    """Refuse a plan that does not go with the estimator's parameters, before anything is paid.

    Raises:
        AdjacencyMismatch: it is under another relation.
        SchemaError: it estimates a schema that was declared, or estimates none where none was.
    """
    if event.adjacency is not budget.adjacency:
        raise AdjacencyMismatch(
            f"adjacency={budget.adjacency.value!r}, and the plan that {type(plan).__name__} makes of it is under "
            f"{event.adjacency.value!r}"
        )
    if schema is None and plan.purchase is None:
        raise SchemaError("schema=None: this trainer cannot estimate a schema; declare it, schema=Schema(...)")
    if schema is not None and plan.purchase is not None:
        raise SchemaError("the plan pays for the estimate of a schema, and a schema was declared")
