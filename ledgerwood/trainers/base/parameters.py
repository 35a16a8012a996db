"""Estimators of published systems: their parameters are their plan's fields, or the preset's choices where None."""

import abc
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ledgerwood.curator import Schema, TypedColumns
from ledgerwood.trainers.base.bounds import is_word, named_choices, require_rows
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.forests import declared_forests, most_classes, trees_in_all
from ledgerwood.trainers.estimated.purchase import SchemaPurchase, schema_share
from ledgerwood.trainers.parts.candidates import least_cells
from ledgerwood.trainers.parts.initial_scores import InitialScoreKind


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractSystemEstimator(AbstractTreeEstimator):
    """An estimator of a published system. A parameter has the name of the plan's field that it sets: see there.

    None takes the preset's value.

    Args:
        schema_share: share of the budget for a schema that is privately estimated: of mu**2 and of delta, or of epsilon
            where delta is 0.
        expected_rows: public guess of the number of rows, for tuning rules and the bins of an estimated schema. Where
            the schema has a weight_bound, or weights of classes, a row of the largest weight is one row, and others are
            shares of it.
        max_depth, max_bins: of the plan.

    Attributes:
        plan_: the calibrated plan.
        privacy_: the `PrivacyStatement` of the fit.
        ledger_: the `LedgerRecord` of the ledger that paid, as it stood after the fit.
        ensemble_: the released trees. Of K > 2 classes all of the first class's forest, then those of the second, ...,
            with each forest's initial score in its first tree.
        feature_importances_: importance of each feature for the released predictions.
        classes_: of a classifier, the declared or estimated classes, sorted. Of K > 2 each has a forest: see
            `trainers.base.forests`.
    """

    _words: ClassVar[Mapping[str, str]] = {}
    """Parameters for which a word stands for the plan's None."""

    schema_share: float = 0.1
    expected_rows: int | None = None
    max_depth: int | None = None
    max_bins: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        schema_share(self.schema_share)
        require_rows(self.expected_rows)

    def _choices(self) -> dict[str, Any]:
        """The fields of the plan that a parameter of this estimator names; None stands for the preset's choice."""
        own = self.get_params(deep=False)
        names = [field.name for field in dataclasses.fields(self._plan_type) if field.name in own]
        named = named_choices({name: own[name] for name in names if name != "adjacency"})
        for name, word in self._words.items():
            if is_word(named.get(name), word):
                named[name] = None
        return named

    def _public_rows(self) -> int | None:
        return self.expected_rows

    def _estimation(self, columns: TypedColumns, *, most_classes: int) -> SchemaPurchase:
        """How the schema of these columns is estimated, out of the share of the budget that the parameters state."""
        return SchemaPurchase.planned(
            columns,
            self.budget,
            share=self.schema_share,
            expected_rows=self.expected_rows,
            most_classes=most_classes,
        )


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractBoostedEstimator(AbstractSystemEstimator):
    """An estimator that adds up trees.

    Args:
        n_estimators: T, of each class's forest where more than two are declared. Where the classes are privately
            estimated (schema=None, labels of strings or whole numbers), of all forests together, and 32 for any smaller
            number, be there two classes or more: the trees are paid for before the classes are known. `plan_` has the
            number.
        learning_rate, clip, initial_score, initial_share: of the plan.
    """

    n_estimators: int | None = None
    learning_rate: float | None = None
    clip: float | None = None
    initial_score: InitialScoreKind | None = None
    initial_share: float | None = None

    @abc.abstractmethod
    def _preset_plan(self, schema: Schema | TypedColumns, classes: int) -> Any:
        """The preset's plan, its noise still to be found."""

    def _forests(self, schema: Schema | TypedColumns) -> int:
        """How many forests the plan has for this schema."""
        return declared_forests(schema)

    def _named_choices(self, plan: Any) -> dict[str, Any]:
        """The fields that parameters name, with what follows from them, where the preset has made this plan."""
        return self._choices()

    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> Any:
        classes = self._forests(schema)
        plan = self._preset_plan(schema, classes)
        if classes > 1:  # whose forests start at 0
            plan = dataclasses.replace(plan, initial_score="zero")
        plan = dataclasses.replace(plan, classes=classes, **self._named_choices(plan))
        if isinstance(schema, Schema):
            plan = dataclasses.replace(plan, weighted=schema.weighted, class_weights=schema.class_weights)
        else:
            plan = dataclasses.replace(plan, n_estimators=trees_in_all(plan.n_estimators, schema))
            purchase = self._estimation(schema, most_classes=most_classes(plan.trees))
            plan = dataclasses.replace(plan, purchase=purchase)
        plan.require_room(least_cells(schema, plan.max_bins))
        return plan
