"""Private linear and logistic regression: gradient descent over noisy sums of clipped gradients."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import ledgerwood as lw
from ledgerwood.cautions import noise_caution
from ledgerwood.curator import Aggregator, DeclaredStatistic, Feature, Loss, declared_shifts, sorted_classes
from ledgerwood.mechanisms import GaussianMechanism
from ledgerwood.trainers import (
    AbstractClassifier,
    AbstractNoisePlan,
    AbstractRegressor,
    AbstractTrainer,
    Count,
    SchemaPurchase,
    Stage,
    System,
    positive,
    share,
)  # fmt: skip

EXPONENT = -20
STEP = 2.0**EXPONENT
"""All sums are whole numbers of these steps; a row of half the largest weight counts half of them."""
WHOLE = round(1.0 / STEP)


def width(features: tuple[Feature, ...]) -> int:
    """How many coefficients there are."""
    return 1 + sum(len(each.categories) if isinstance(each, lw.Categorical) else 1 for each in features)


def design(chunk: Any, features: tuple[Feature, ...]) -> NDArray[np.float64]:
    """1, numbers scaled to [-1, 1], and an indicator of each category; 0 for what is missing. Shape (n_rows, width)."""
    columns = [np.ones(len(chunk[features[0].name]))]
    for feature in features:
        values = chunk[feature.name]
        if isinstance(feature, lw.Categorical):
            columns += [(values == place).astype(np.float64) for place in range(len(feature.categories))]
        else:
            columns.append(np.nan_to_num(2.0 * (values - feature.low) / (feature.high - feature.low) - 1.0))
    return np.stack(columns, axis=1) / np.sqrt(1.0 + len(features))  # no row is longer than 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionPlan(AbstractNoisePlan):
    """All that the regression will do: a noisy number of rows, then noisy sums of gradients over all rows.

    Args:
        loss: "squared" for numbers, "logistic" for two classes.
        n_steps: of gradient descent.
        clip: the largest Euclidean norm of a row's gradient that counts.
        count_share: share of mu**2 for the number of rows.
        noise_multiplier: of one gradient.
    """

    loss: Loss
    n_steps: Annotated[int, Count("steps", most=10_000)]
    clip: Annotated[float, positive("units of the gradient")]
    count_share: Annotated[float, share("share of mu**2")]

    def _require_whole(self) -> None:
        pass

    def mechanism(self, step: int | None) -> GaussianMechanism:
        """The noise of the number of rows (None), or of a step's gradient."""
        if step is None:
            gradients = self.n_steps / self.noise_multiplier**2
            return GaussianMechanism(stddev=(gradients * self.count_share / (1.0 - self.count_share)) ** -0.5)
        return GaussianMechanism(stddev=self.noise_multiplier * self.shifts(step).radius)

    def shifts(self, step: int | None) -> Any:
        """What one row moves: it counts once, and its gradient is clipped. The statistics state the same bounds."""
        if step is None:
            return declared_shifts(self.adjacency, most=(WHOLE,), least=(0,), exponent=EXPONENT)
        return declared_shifts(self.adjacency, norm=self.clip / STEP, exponent=EXPONENT)

    def _event(self, step: int | None) -> lw.Event:
        return self.mechanism(step).event(self.shifts(step), self.adjacency)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The number of rows, once, and a gradient a step: the ledger grants them all, and the loop walks them."""
        return Stage.once(self._event(None), None), Stage(event=self._event(0), steps=range(self.n_steps))


def statistic(plan: RegressionPlan, schema: lw.Schema, coefficients: NDArray[np.float64] | None) -> DeclaredStatistic:
    """The number of rows (None), or the sum of the rows' clipped gradients at the coefficients."""
    target, features, author = schema.target, schema.features, "the private regression example"
    assert target is not None
    if coefficients is None:
        return DeclaredStatistic(
            name="number of rows", declared_by=author, columns=(target,), least=(0,), most=(WHOLE,),
            exponent=EXPONENT,
            function=lambda chunk: np.full((len(chunk[target.name]), 1), WHOLE),
        )  # fmt: skip

    def gradients(chunk: Any, constants: Any) -> NDArray[np.int64]:
        rows, labels = design(chunk, features), chunk[target.name]
        # Column by column, in a fixed order: a matrix product would round a row by its place among the others.
        scores = sum(column * weight for column, weight in zip(rows.T, constants["coefficients"], strict=True))
        if isinstance(target, lw.Categorical):
            error = expit(scores) - (labels == target.categories.index(sorted_classes(target)[1]))
            error[labels >= len(target.categories)] = 0.0  # of no class
        else:
            error = np.nan_to_num(scores - (2.0 * (labels - target.low) / (target.high - target.low) - 1.0))
        found = rows * error[:, np.newaxis]
        lengths = np.sqrt(sum(column**2 for column in found.T))[:, np.newaxis]
        found *= np.minimum(1.0, constants["clip"] / np.maximum(lengths, 1e-300))
        return (found / STEP).astype(np.int64)

    return DeclaredStatistic(
        name="clipped gradient", declared_by=author, columns=(*features, target), function=gradients, exponent=EXPONENT,
        constants={"coefficients": coefficients, "clip": plan.clip}, norm=plan.clip / STEP,
        most=(int(plan.clip / STEP),) * len(coefficients),
    )  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coefficients:
    """What was released: float64 (width,), for the columns of `design`."""

    values: NDArray[np.float64]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For `save`."""
        return {"coefficients": self.values}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """For `load`."""
        return cls(values=arrays["coefficients"].astype(np.float64))


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractRegression(AbstractTrainer):
    """Parameters of both estimators: see `RegressionPlan`; expected_rows is a public guess of the number of rows."""

    _plan_type: ClassVar[type[Any]] = RegressionPlan
    _model_type: ClassVar[type[Any]] = Coefficients
    _loss: ClassVar[Loss]

    n_steps: int = 100
    clip: float = 0.2
    count_share: float = 0.02
    max_bins: int = 1 << 14
    schema_share: float = 0.1
    expected_rows: int | None = None

    def _uncalibrated_plan(self, schema: Any) -> RegressionPlan:
        budget, bought = self.budget, None
        if not isinstance(schema, lw.Schema):
            bought = SchemaPurchase.planned(
                schema, budget, share=self.schema_share, expected_rows=self.expected_rows, most_classes=2
            )
        return RegressionPlan(
            adjacency=budget.adjacency, loss=self._loss, n_steps=self.n_steps, clip=self.clip,
            count_share=self.count_share, max_bins=self.max_bins, purchase=bought,
        )  # fmt: skip

    def plan_cautions(self, plan: RegressionPlan) -> list[str]:
        """Warns where the noise of a gradient is larger than all rows' gradients together can be."""
        noise, budget = plan.mechanism(0).stddev, self.budget
        caution = noise_caution(
            lambda rows: rows * plan.clip / noise, epsilon=budget.epsilon, delta=budget.delta, statistic="a gradient",
            expected_rows=self.expected_rows, remedies="or fewer steps (n_steps)",
        )  # fmt: skip
        return [*super().plan_cautions(plan), *([] if caution is None else [caution])]

    def _public_rows(self) -> int | None:
        return self.expected_rows

    def declared_statistics(self, schema: lw.Schema) -> tuple[DeclaredStatistic, ...]:
        """What a federation's owners have to know: the number of rows, and gradients of this many coefficients."""
        plan = self._uncalibrated_plan(schema)
        return statistic(plan, schema, None), statistic(plan, schema, np.zeros(width(schema.features)))

    def _train(
        self, plan: RegressionPlan, aggregator: Aggregator, generator: np.random.Generator, progress: Any
    ) -> Coefficients:
        schema, n_rows = aggregator.schema, 1.0
        ahead = before = np.zeros(width(schema.features))
        for event, step in plan.schedule():
            asked = statistic(plan, schema, None if step is None else ahead)
            with aggregator.open(
                event, purpose=asked.purpose("rows" if step is None else f"step {step + 1}")
            ) as round_:
                found = round_.release(asked, plan.mechanism(step), purpose=asked.name).real
            if step is None:
                n_rows = max(float(found[0]), 1.0)
                continue
            after = ahead - (4.0 if plan.loss == "logistic" else 1.0) / n_rows * found
            ahead, before = after + step / (step + 3.0) * (after - before), after  # Nesterov's
            progress(step + 1, plan.n_steps)
        return Coefficients(values=before)

    def _require_loaded(self, model: Coefficients) -> None:
        if model.values.shape != (width(self.schema_.resolved(self.n_features_in_).features),):
            raise ValueError("coefficients for other columns than the schema's")

    def _scores(self, X: Any) -> NDArray[np.float64]:
        columns = self._columns(X)
        return design(columns, self.schema_.resolved(self.n_features_in_).features) @ self.model_.values


@final
class PrivateLinearRegression(AbstractRegressor, AbstractRegression):
    """Private linear regression. Parameters: see `AbstractRegression`."""

    _loss = "squared"


@final
class PrivateLogisticRegression(AbstractClassifier, AbstractRegression):
    """Private logistic regression of two classes. Parameters: see `AbstractRegression`."""

    _loss, _several_classes = "logistic", False


SYSTEM = System(title="private regression", classifier=PrivateLogisticRegression, regressor=PrivateLinearRegression)
