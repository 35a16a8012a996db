"""The base class of estimators, with the steps around a plan: check, grant, train, state, save."""

import abc
import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_is_fitted, validate_data

from ledgerwood import _validate, cautions
from ledgerwood.accounting.adjacency import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.filters import GDPFilter, RenyiFilter, ZCDPFilter
from ledgerwood.accounting.ledger import Grant, Ledger, LedgerRecord
from ledgerwood.accounting.pricing import price
from ledgerwood.curator import (
    Aggregator,
    Curator,
    Loss,
    Schema,
    Table,
    TypedColumns,
    UndeclaredTable,
    column_count,
    encode_features,
    headings,
    keeps_no_rows,
    points_to_check,
    require_labels,
    schema_for,
)
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import AdjacencyMismatch, CalibrationFailed, DrawRefused, InvalidParameter, SchemaError
from ledgerwood.mechanisms import RandomSource, SecureRandom, SeededRandom
from ledgerwood.reading.importances import feature_importances
from ledgerwood.trainers.base.bounds import named_choices, require_rows, require_verbose
from ledgerwood.trainers.base.fitting import says_parameter, suggestion
from ledgerwood.trainers.base.model_files import read_model, write_model
from ledgerwood.trainers.base.privacy import PrivacyStatement, declared_in
from ledgerwood.trainers.base.progress import Progress, progress_bar
from ledgerwood.trainers.base.schema_purchase import SchemaPurchase, schema_share, with_two_classes
from ledgerwood.trainers.parts.splits import structure_generator

AdjacencyName = Literal["add-remove", "zero-out", "replace-one"]
ROW_IS_UNIT = "each row is one privacy unit"
DECLARED = "schema, hyper-parameters and expected_rows are public: none was chosen by looking at these rows"
BOUGHT = (
    "the schema was estimated within this epsilon and delta; the number, names and types of the columns, hyper-parameters "
    "and expected_rows are public: none was chosen by looking at these rows"
)
OWN_WEIGHTS = "each row's weight is its own: it was neither normalised nor balanced by a look at other rows"
NOT_FITTED = (
    "X and y were not transformed by anything that was fitted on rows (a scaler, encoder, imputer, selection of "
    "columns or transformation of labels): what such a step learned of the rows is not covered"
)
ASSUMPTIONS = (
    ROW_IS_UNIT,
    "the number, names and types of the columns are public, and so is whether X, y and weights have as many rows",
    "running time is not observed",
    NOT_FITTED,
)


class Plan(Protocol):
    """The protocol of a plan: a frozen dataclass of everything that a system fixes before it sees data."""

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
        """The private estimate of the schema, which comes first; None if the schema is declared."""

    def leaf_signal(self, rows: float) -> float:
        """The most that the signal-to-noise ratio of a leaf may be, all trees together, in a table of so many rows."""


class CalibratedPlan(Plan, Protocol):
    """A plan that finds its own noise."""

    def calibrated(self, budget: Budget) -> Self:
        """This plan with the least noise that fits the budget."""


class AbstractTreeEstimator(BaseEstimator, abc.ABC):  # type: ignore[misc]
    """Fits a plan over a curator and predicts from the released ensemble.

    A subclass names its parameters in its own constructor, makes its plan and runs its loop.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency | AdjacencyName
    schema: Schema | None
    schema_share: float
    expected_rows: int | None
    random_state: Any
    verbose: int
    _plan_type: ClassVar[type[Any]]

    def make_plan(self, schema: Schema | TypedColumns) -> Plan:
        """The calibrated plan for a resolved schema, or for columns whose schema is to be estimated; pure, no data.

        The preset's choices, then the parameters that were named.

        Raises:
            InvalidParameter, AdjacencyMismatch: parameters that make no plan.
            CalibrationFailed: a budget that is too small; the message says what would fit.
        """
        plan = None
        try:
            self._check_parameters()
            plan = self._uncalibrated_plan(schema)
            return plan.calibrated(self.budget)
        except (CalibrationFailed, InvalidParameter) as error:
            if plan is None and says_parameter(self, error):
                raise
            raise suggestion(self, schema, plan, error) from error

    @abc.abstractmethod
    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> "CalibratedPlan":
        """The plan, whose noise is still to be found for the budget; as `make_plan`."""

    def _check_parameters(self) -> None:
        """Refuse a parameter of all estimators that is out of its bound, whether or not this fit has a use for it.

        Raises:
            InvalidParameter: so it is.
        """
        self.budget  # noqa: B018  # epsilon, delta, adjacency
        schema_share(self.schema_share)
        require_rows(self.expected_rows)
        if not isinstance(self.random_state, np.random.RandomState):  # which a look would move on
            self._random_source()
        require_verbose(self.verbose)

    def _choices(self) -> dict[str, Any]:
        """The fields of the plan that a parameter of this estimator names; None stands for the preset's choice."""
        own = self.get_params(deep=False)
        names = [field.name for field in dataclasses.fields(self._plan_type) if field.name in own]
        return named_choices({name: own[name] for name in names if name != "adjacency"})

    @abc.abstractmethod
    def _train(self, plan: Any, aggregator: Aggregator, generator: np.random.Generator, progress: Progress) -> Ensemble:
        """The system's loop."""

    @abc.abstractmethod
    def _check_target(self, schema: Schema) -> None:
        """Refuse a schema whose target this estimator cannot learn."""

    def __init_subclass__(cls) -> None:
        for name in {"fit", "partial_fit"} & vars(cls).keys():
            setattr(cls, name, keeps_no_rows(vars(cls)[name]))
        super().__init_subclass__()

    @property
    def budget(self) -> Budget:
        """The budget that the parameters state."""
        try:
            adjacency = Adjacency(self.adjacency)
        except ValueError as error:
            names = [member.value for member in Adjacency]
            raise _validate.fail("adjacency", self.adjacency, f"an Adjacency or one of {names}", "relation") from error
        return Budget(epsilon=self.epsilon, delta=self.delta, adjacency=adjacency)

    @keeps_no_rows
    def fit(self, X: Any, y: Any, ledger: Ledger | Grant | None = None, sample_weight: Any = None) -> Self:
        """Pay for the plan from the ledger, then train.

        No error, warning or output depends on a value or on the number of rows: values outside the schema are clamped,
        and rows that cannot be read contribute 0. Use `schema.check(X, y)` to check whether the rows fit the schema.

        Args:
            X: array-like or data frame, shape (n_rows, n_features).
            y: array-like, shape (n_rows,).
            ledger: the ledger that pays for the fit. Without one the fit opens its own, and `privacy_` covers this fit
                only. A grant of several plans, this one among them, may be given for validations, whose models are not
                kept: a saved model can be loaded only if its grant was of its plan alone.
            sample_weight: array-like, shape (n_rows,), each between 0 and the `weight_bound` that the schema declares,
                and each dependent on its own row only, so not normalised or balanced over the rows. A row
                of half that bound counts as half a row. None: every row weighs 1.

        Raises:
            SchemaError: columns, types or shapes that are not the schema's, or no schema was given for columns without
                a type or for rows with weights. Nothing was spent.
            InvalidParameter, CalibrationFailed: no plan with these parameters fits the budget. Nothing was spent.
            BudgetExceeded, AdjacencyMismatch: the ledger refuses the plan. Nothing was spent.

        Warns:
            PrivacyWarning: a seed, a second ledger, a large delta, leaves of noise, useless private estimates: see
                docs/how-to/privacy-warnings.md.
        """
        self._check_parameters()
        budget, source = self.budget, self._random_source()
        require_ledger(ledger)
        declared = self._declared_schema()
        if declared is None and sample_weight is not None:
            raise SchemaError(
                "sample_weight needs a declared schema with a weight_bound: an estimated schema has none, since "
                "the largest weight of the rows is not public"
            )
        with points_to_check(declared):
            require_labels(y, None if declared is None else declared.target, numeric=is_regressor(self))
            n_features = column_count(X, declared)
        # Takes the number and the names of the columns only; the values are the curator's.
        validate_data(self, headings(X, declared), skip_check_array=True)
        rows: Table | UndeclaredTable
        if declared is None:
            columns = TypedColumns.of(X, y, numeric_target=is_regressor(self))
            described: Schema | TypedColumns = columns
            plan = self.make_plan(columns)
            rows = UndeclaredTable.from_data(X, y, columns)
        else:
            described = declared.resolved(n_features)
            plan = self.make_plan(described)
            with points_to_check(declared):
                rows = Table.from_data(X, y, declared, loss=plan.loss, bins=plan.max_bins, sample_weight=sample_weight)
        own = ledger is None
        ledger, grant = self._pay(plan, described, source, ledger, purpose=f"{type(self).__name__}.fit")
        with progress_bar(type(self).__name__, self.verbose) as progress:
            table, schema, told = _with_schema(rows, plan, grant, source)
            ensemble = self._train(plan, Curator(table, grant, source), structure_generator(source), progress)
        record = ledger.record()
        scope = "this fit only: other uses of the same rows add to it" if own else "this fit; the ledger has the total"
        weighted = () if sample_weight is None else (OWN_WEIGHTS,)
        assumptions = (*ASSUMPTIONS, *weighted, f"epsilon covers {scope}")
        statement = privacy_statement(plan, budget, source, record, assumptions)
        # All that takes time is done: an interrupt leaves no model beside another one's statement.
        self.privacy_, self.plan_, self.ledger_ = statement, plan, record
        self.schema_ = schema if declared is None else declared
        self._restore()
        self._forget()
        self.ensemble_ = ensemble
        cautions.emit(told)
        return self

    def _pay(
        self,
        plan: Plan,
        described: Schema | TypedColumns,
        source: RandomSource,
        ledger: Ledger | Grant | None,
        *,
        purpose: str,
    ) -> tuple[Ledger, Grant]:
        """Warn of what may mislead, as far as it is public, and pay for the plan; errors as in `grant_plan`.

        Args:
            plan: calibrated.
            described: the columns.
            source: of all noise.
            ledger: that pays; None for one of the fit's own.
            purpose: for the ledger.
        """
        budget = self.budget
        names = [column.name for column in described.features]
        with cautions.counted_fit(names, own=ledger is None) as again:
            seeded = cautions.seed_caution(self.random_state) if source.kind == "test" else None
            cautions.emit([seeded, again, *self.plan_cautions(plan)])  # before anything is spent
            return grant_plan(plan, budget, ledger, purpose=purpose)

    def plan_cautions(self, plan: Plan) -> list[str]:
        """Returns the warnings that a fit would give by its budget and its plan, as texts; uses no data."""
        budget, rows = self.budget, self._public_rows()
        found = (
            cautions.delta_caution(budget.delta, rows),
            cautions.leaf_caution(plan.leaf_signal, epsilon=budget.epsilon, delta=budget.delta, expected_rows=rows),
        )
        return [text for text in found if text is not None]

    def _public_rows(self) -> int | None:
        """The public guess of the number of rows, where the estimator takes one and was given one."""
        rows: int | None = self.get_params(deep=False).get("expected_rows")
        return rows

    def _estimation(self, columns: TypedColumns, *, most_classes: int) -> SchemaPurchase:
        """How the schema of these columns is estimated, out of the share of the budget that the parameters state."""
        return SchemaPurchase.planned(
            columns,
            self.budget,
            share=self.schema_share,
            expected_rows=self.expected_rows,
            most_classes=most_classes,
        )

    def _declared_schema(self) -> Schema | None:
        if self.schema is None:
            return None
        if not isinstance(self.schema, Schema):
            raise _validate.fail(
                "schema", self.schema, "a ledgerwood.Schema, or None for one that is privately estimated", "schema"
            )
        self._check_target(self.schema)
        return self.schema

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A missing value is a value of its own, or its row contributes 0; none is refused.
        tags.input_tags.allow_nan = True
        return tags

    def _random_source(self, call: int = 0) -> RandomSource:
        """Secure, or from the seed; each call of a stream, numbered from 0, has its own seed."""
        match self.random_state:
            case None:
                return SecureRandom()
            case np.random.RandomState():
                return SeededRandom(int(self.random_state.randint(2**31)))
            case bool():
                pass
            case int() | np.integer() if self.random_state >= 0:
                return SeededRandom(int(self.random_state) + (call << 64))
        raise _validate.fail(
            "random_state", self.random_state, "None (secure noise) or a whole number >= 0 (a test)", "seed"
        )

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Raw scores of rows given for prediction, float64 (n_rows,)."""
        cells = self._cells(X)  # which checks that there is a model
        return self.ensemble_.scores(cells)

    def _cells(self, X: Any) -> NDArray[np.uint8 | np.uint16]:
        """The cells of rows given for prediction, (n_features, n_rows); no value is refused, as in `fit`."""
        check_is_fitted(self, "ensemble_")
        schema = schema_for(X, self.schema_, self.n_features_in_)
        validate_data(self, headings(X, schema), reset=False, skip_check_array=True)
        return encode_features(X, schema, bins=self.plan_.max_bins)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in what the trees' tests do to the predictions, float64 (n_features,); sums to 1 or 0.

        From released values only: see `feature_importances`.
        """
        check_is_fitted(self, "ensemble_")
        return feature_importances(self.ensemble_, self.n_features_in_)

    def save(self, path: str | Path) -> None:
        """Write the fitted model as a folder: model.json, arrays.npz and ledger.jsonl. Never a pickle.

        Everything in it is public: parameters, schema, released values, ledger. A test's seed is left out.

        Raises:
            LedgerError: the folder holds another ledger, whose entries would be lost. Nothing was written.
        """
        check_is_fitted(self, "ensemble_")
        plan = self.plan_
        record = {
            "estimator": type(self).__name__,
            "parameters": self._parameter_record(),
            "n_features_in": self.n_features_in_,
            "feature_names_in": list(self.feature_names_in_) if "feature_names_in_" in vars(self) else None,
            "schema": json.loads(self.schema_.to_json()),
            "plan": {field.name: _plain(getattr(plan, field.name)) for field in dataclasses.fields(plan)},
            "privacy": self.privacy_.to_record(),
            **self._more_record(),
        }
        write_model(Path(path), record, self.ensemble_, self.ledger_)

    def _parameter_record(self) -> dict[str, object]:
        parameters = {name: _plain(value) for name, value in self.get_params(deep=False).items() if name != "schema"}
        parameters["random_state"] = None
        return parameters

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model that `save` wrote; it predicts as before, bit for bit.

        Raises:
            InvalidParameter: not such a folder, another estimator's, or of another format version.
            LedgerCorrupted: the ledger is not the one that the privacy statement closed with, or does not back it.
        """
        record, ensemble, ledger = read_model(Path(path), cls.__name__)
        try:
            model = cls(**record["parameters"])
            model.schema_ = Schema.from_json(json.dumps(record["schema"]))
            model.n_features_in_ = _validate.count("n_features_in", record["n_features_in"], "columns")
            model.plan_ = cls._read_plan(record["plan"])
            # What was bought for one fit is no declaration: another fit buys its own.
            model.schema = model.schema_ if model.plan_.purchase is None else None
            model.privacy_ = PrivacyStatement.from_record(record["privacy"])
            names = record["feature_names_in"]
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidParameter(f"{path} is not a saved {cls.__name__}: {error!r}") from error
        if not all(tree.structure.tests_only(model.n_features_in_) for tree in ensemble.trees):
            raise InvalidParameter(f"{path} has trees that test more features than its {model.n_features_in_}")
        model.privacy_.require_backing(model.plan_.event, ledger)
        model.ensemble_, model.ledger_ = ensemble, ledger
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
        model._read_more(record, Path(path))
        model._restore()
        return model

    @classmethod
    def _read_plan(cls, record: dict[str, Any]) -> Any:
        """The plan from the record that `save` made of its fields."""
        bought = record.get("purchase")
        purchase = None if bought is None else SchemaPurchase.from_record(bought)
        return cls._plan_type(**{**record, "adjacency": Adjacency(record["adjacency"]), "purchase": purchase})

    def _forget(self) -> None:
        """Drop what another way of training left behind, after a fit."""

    def _more_record(self) -> dict[str, object]:
        """What a kind of estimator saves besides: plain, public values."""
        return {}

    def _read_more(self, record: dict[str, Any], path: Path) -> None:
        """Read what `_more_record` saved, once all else is read.

        Raises:
            InvalidParameter, LedgerCorrupted: as `load`.
        """

    def _restore(self) -> None:
        """Set what follows from the schema alone (the classes, say), after a fit or a load."""


def _with_schema(
    rows: Table | UndeclaredTable, plan: Plan, grant: Grant, source: RandomSource
) -> tuple[Table, Schema, tuple[str, ...]]:
    """The rows under their schema, which is estimated first where it was not declared; the schema; what to warn of.

    Of a single class the rows are kept as of two: the trees are trained as planned, and say nothing.
    """
    if isinstance(rows, Table):
        return rows, rows.schema, ()
    assert plan.purchase is not None  # made for these columns
    schema, told = plan.purchase.estimated(Curator(rows, grant, source))
    return rows.encoded(with_two_classes(schema), loss=plan.loss, bins=plan.max_bins), schema, told


def _plain(value: Any) -> Any:
    match value:
        case SchemaPurchase():
            return value.to_record()
        case Adjacency():
            return value.value
        case np.generic():
            return value.item()
    return value


def require_ledger(ledger: object) -> None:
    """Refuse what is neither None nor a ledger that protects rows, or a grant of one.

    Raises:
        InvalidParameter, AdjacencyMismatch: it is.
    """
    if ledger is None:
        return
    if isinstance(ledger, Grant):
        ledger = ledger.ledger
    if not isinstance(ledger, Ledger):
        raise InvalidParameter(
            f"ledger must be a ledgerwood.Ledger, not {type(ledger).__name__}; weights go to sample_weight="
        )
    if ledger.unit is not PrivacyUnit.ROW:
        raise AdjacencyMismatch(
            f"the ledger protects a {ledger.unit.value}, and this fit a row: a {ledger.unit.value} with several "
            "rows would lose more than the ledger says (unit: privacy unit)"
        )


def grant_plan(plan: Plan, budget: Budget, ledger: Ledger | Grant | None, *, purpose: str) -> tuple[Ledger, Grant]:
    """Pay for the whole plan, from the ledger given or from one of its own, at the budget's delta.

    A grant that was made before is taken as it is, where it still holds the plan.

    Raises:
        BudgetExceeded, AdjacencyMismatch: the ledger refuses the plan. Nothing was spent.
        DrawRefused: the grant does not hold the plan, or no longer does. Nothing was drawn.
    """
    if isinstance(ledger, Grant):
        require_held(ledger, plan.event)
        return ledger.ledger, ledger
    ledger = Ledger(budget, unit=PrivacyUnit.ROW) if ledger is None else ledger
    return ledger, ledger.grant(plan.event, purpose=purpose, delta=grant_delta(ledger, budget))


def grant_delta(ledger: Ledger, budget: Budget) -> float | None:
    """The delta at which a plan is granted: the budget's; None where the ledger's currency holds at every delta.

    Named, for a plan that is pure as well: it may cost less with a delta.
    """
    return None if isinstance(ledger.filter, GDPFilter | ZCDPFilter | RenyiFilter) else budget.delta


def require_held(grant: Grant, event: Event) -> None:
    """Refuse a grant that does not hold all draws of the event, or no longer does.

    Raises:
        DrawRefused: it does not.
    """
    wanted: Counter[Event] = Counter()
    for part, count in event.draws():
        wanted[part] += count
    left = grant.remaining
    for part, count in wanted.items():
        if left.get(part, 0) < count:
            raise DrawRefused(
                f"grant {grant.index} ({grant.purpose!r}) has {left.get(part, 0)} of the {count} draws of {part!r} "
                "that the plan needs: grant the plan of this very estimator, estimator.make_plan(schema).event"
            )


def privacy_statement(
    plan: Plan, budget: Budget, source: RandomSource, record: LedgerRecord, assumptions: tuple[str, ...]
) -> PrivacyStatement:
    """Returns the privacy statement of a model that was trained by the plan."""
    quote = price(plan.event).quote(budget.delta)
    return PrivacyStatement(
        epsilon=quote.epsilon if source.kind == "secure" else float("inf"),
        delta=budget.delta,
        adjacency=budget.adjacency,
        unit=PrivacyUnit.ROW,
        method=quote.method,
        certified=quote.certified,
        randomness=source.kind,
        assumptions=(DECLARED if plan.purchase is None else BOUGHT, *assumptions, *declared_in(record, plan.event)),
        ledger_head=record.head,
    )
