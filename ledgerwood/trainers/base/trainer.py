"""The base class of all trainers, with the steps around a plan: check, grant, train, state, save."""

import abc
import dataclasses
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from ledgerwood import _validate, cautions
from ledgerwood.accounting.adjacency import Adjacency, Budget, PrivacyUnit
from ledgerwood.accounting.ledger import Grant, Ledger
from ledgerwood.curator import (
    AbstractOwners,
    Aggregator,
    CountedColumns,
    Curator,
    DeclaredStatistic,
    FederatedColumns,
    FitTerms,
    NamedStatistic,
    PlanPurse,
    Schema,
    Scratch,
    TreeTable,
    TypedColumns,
    UndeclaredTable,
    batches_of,
    chunk_of,
    column_count,
    encode_features,
    given_rows,
    is_collection,
    keeps_no_rows,
    mapped,
    points_to_check,
    require_labels,
    schema_for,
    see_columns,
)
from ledgerwood.errors import CalibrationFailed, InvalidParameter, SchemaError
from ledgerwood.mechanisms import RandomSource, SecureRandom, SeededRandom
from ledgerwood.schema import SchemaDraft, refuse_draft
from ledgerwood.sparse_cells import AnyCells
from ledgerwood.threads import threads
from ledgerwood.trainers.base.bounds import require_verbose
from ledgerwood.trainers.base.plan import CalibratedPlan, Plan, require_payable, require_plan
from ledgerwood.trainers.base.privacy import (
    ON_CLUSTER,
    ON_DISK,
    fit_assumptions,
    grant_plan,
    privacy_statement,
    require_ledger,
)
from ledgerwood.trainers.base.progress import Progress, progress_bar, say_scratch
from ledgerwood.trainers.base.saving import AbstractSavedModel
from ledgerwood.trainers.base.suggestions import says_parameter, suggestion
from ledgerwood.trainers.estimated.described import described_columns, draft_names, estimated_draft, require_declared
from ledgerwood.trainers.estimated.purchase import any_schema, rows_with_schema
from ledgerwood.trainers.parts.rehearsals import require_sums_asked
from ledgerwood.trainers.parts.splits import structure_generator

AdjacencyName = Literal["add-remove", "zero-out", "replace-one"]


@dataclass(eq=False, repr=False, kw_only=True)
class AbstractTrainer(AbstractSavedModel, abc.ABC):
    """Fits a plan over a curator and keeps the model that was released: trees, coefficients, or whatever it is.

    A subclass is a dataclass of this kind, whose fields are its parameters; it makes its plan and runs its loop. What a
    fit sets is annotated in no such class, or it would be a parameter. `AbstractRegressor` and `AbstractClassifier`
    make predictions of the scores; `AbstractTreeEstimator` is the base of those that release trees.
    docs/how-to/write-a-trainer.md builds one.

    Args:
        epsilon, delta: the budget of one fit, in nats and as a probability.
        adjacency: the relation of neighbouring data sets; add-remove keeps the number of rows private.
        schema: public ranges and categories of the columns, and of the target; None estimates them privately, from
            typed columns; a draft, `SchemaDraft.with_open_estimated`, what it leaves open.
        random_state: None for secure noise; a whole number repeats a run, for tests, and voids the guarantee.
        verbose: 1 shows a progress bar.
        n_jobs: number of threads of `fit` and of predictions, as scikit-learn has it; -1 for all available cores. None:
            `OMP_NUM_THREADS`, or all. It changes no release and no prediction.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    adjacency: Adjacency | AdjacencyName = "add-remove"
    schema: Schema | SchemaDraft | None = None
    random_state: Any = None
    verbose: int = 0
    n_jobs: int | None = None

    def make_plan(self, schema: Schema | TypedColumns) -> Plan:
        """The calibrated plan for a resolved schema, or for columns whose schema is to be estimated; pure, no data.

        The preset's choices, then the parameters that were named.

        Raises:
            InvalidParameter, AdjacencyMismatch: parameters that make no plan.
            CalibrationFailed: a budget that is too small; the message says what would fit.
        """
        refuse_draft(schema)
        plan = None
        try:
            self._check_parameters()
            made = self._uncalibrated_plan(schema)
            require_plan(made)
            plan = made
            return plan.calibrated(self.budget)
        except (CalibrationFailed, InvalidParameter) as error:
            if plan is None and says_parameter(self, error):
                raise
            raise suggestion(self, schema, plan, error) from error

    @abc.abstractmethod
    def _uncalibrated_plan(self, schema: Schema | TypedColumns) -> CalibratedPlan:
        """The plan, whose noise is still to be found for the budget; as `make_plan`."""

    def _check_parameters(self) -> None:
        """Refuse a parameter of all estimators that is out of its bound, whether or not this fit has a use for it.

        Raises:
            InvalidParameter: so it is.
        """
        _require_class(type(self))
        self.budget  # noqa: B018  # epsilon, delta, adjacency
        if not isinstance(self.random_state, np.random.RandomState):  # which a look would move on
            self._random_source()
        require_verbose(self.verbose)
        with threads(self.n_jobs):  # which refuses what is no number of threads
            pass

    @abc.abstractmethod
    def _train(self, plan: Any, aggregator: Aggregator, generator: np.random.Generator, progress: Progress) -> Any:
        """The system's loop, which sees releases only.

        Args:
            plan: calibrated.
            aggregator: holds a grant of the plan's event, and the schema.
            generator: of public randomness, such as random thresholds; never of noise.
            progress: called with (steps done, steps in all).

        Returns:
            The model, of `_model_type`.
        """

    @abc.abstractmethod
    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Raw scores of rows given for prediction, float64 (n_rows,), by the released model.

        A regressor's are in [-1, 1], the ends of the target's declared range. A classifier's grow with the probability
        of the second class.
        """

    @abc.abstractmethod
    def _check_target(self, schema: Schema) -> None:
        """Refuse a schema whose target this estimator cannot learn."""

    def __init_subclass__(cls) -> None:
        for name in {"fit", "partial_fit"} & vars(cls).keys():
            if not isinstance(vars(cls)[name], property):  # which says why there is none
                setattr(cls, name, keeps_no_rows(vars(cls)[name]))
        for name in {"predict", "predict_proba", "decision_function"} & vars(cls).keys():
            if inspect.isfunction(vars(cls)[name]):
                setattr(cls, name, _in_every_place(vars(cls)[name]))
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
    def fit(
        self,
        X: Any,
        y: Any,
        ledger: Ledger | Grant | None = None,
        sample_weight: Any = None,
        *,
        scratch: str | os.PathLike[str] | None = None,
        client: Any = None,
    ) -> Self:
        """Pay for the plan from the ledger, then train.

        No error, warning or output depends on a value or on the number of rows: values outside the schema are clamped,
        and rows that cannot be read contribute 0. Use `schema.check(X, y)` to check whether the rows fit the schema.

        Args:
            X: array-like, data frame, or sparse table of format CSR or CSC, shape (n_rows, n_features). Or rows that
                memory does not hold, and that are read in a stream: the path of a Parquet or CSV file, of a folder of
                them, or a glob; a `pyarrow.dataset`; a polars LazyFrame. Or a Dask frame or array, whose rows stay on
                the cluster's workers. Sparse tables need a declared schema.
            y: array-like, shape (n_rows,); of rows in files the name of the label's column; on a cluster a Dask
                collection with the partitions of X, as `sample_weight` is.
            ledger: the ledger that pays for the fit. Without one the fit opens its own, and `privacy_` covers this fit
                only. A grant of several plans, this one among them, may be given for validations, whose models are not
                kept: a saved model can be loaded only if its grant was of its plan alone.
            sample_weight: array-like, shape (n_rows,), each between 0 and the `weight_bound` that the schema declares,
                and each dependent on its own row only, so not normalised or balanced over the rows. A row
                of half that bound counts as half a row. None: every row weighs 1. A class's weight, where the schema
                declares one, multiplies it. Of rows in files the name of the weights' column.
            scratch: folder in which the encoded rows of files lie while the fit runs, in a folder of mode 700 that is
                removed at the end; None: the system's folder for temporary files. It changes no release.
            client: `distributed.Client` of the cluster that computes Dask collections; None: the current one. It
                changes no release.

        Raises:
            SchemaError: columns, types or shapes that are not the schema's, or no schema was given for columns without
                a type or for rows with weights. Nothing was spent.
            InvalidParameter, CalibrationFailed: no plan with these parameters fits the budget. Nothing was spent.
            BudgetExceeded, AdjacencyMismatch: the ledger refuses the plan. Nothing was spent.
            RoundViolation: a plan that needs all rows in memory, and rows in files or on a cluster. Nothing was spent.
            ScratchFull: the scratch folder has no room. Nothing was spent.
            PrivacyError: a cluster that others can listen to, or with other versions of the library. Nothing was spent.
            WorkersLost: a cluster lost its workers too often, or rows that cannot be computed again; the message says
                what was spent.
            FilesChanged: a file changed while it was read. Nothing was spent, unless the schema is estimated and the
                file changed before its second reading; the message says which.

        Warns:
            PrivacyWarning: a seed, a second ledger, a large delta, leaves of noise, useless private estimates: see
                docs/how-to/privacy-warnings.md.
        """
        self._check_parameters()
        budget, source = self.budget, self._random_source()
        unit = X.unit if isinstance(X, AbstractOwners) else PrivacyUnit.ROW
        require_ledger(ledger, unit)
        declared = self._declared_schema()
        require_declared(declared, sample_weight)
        numeric, named = is_regressor(self), draft_names(self.schema)
        given = given_rows(X, y, sample_weight, declared, scratch, client=client, numeric_target=numeric, named=named)
        X, y = given.X, given.y  # of rows in files or on a cluster, tables without a row: names and types
        with points_to_check(declared):
            require_labels(y, None if declared is None else declared.target, numeric=is_regressor(self))
            n_features = column_count(X, declared)
        # Takes the number and the names of the columns only; the values are the curator's.
        see_columns(self, X, declared)
        described: Schema | TypedColumns
        if declared is None:
            described = described_columns(
                X, y, self.schema, numeric_target=is_regressor(self), at_owners=given.owners is not None,
                check_target=self._check_target,
            )  # fmt: skip
        else:
            described = declared.resolved(n_features)
        plan = self.make_plan(described)
        who = f"{type(self).__name__}.fit"
        given.require_sums(plan.needs_one_part, who, needs_one_process=plan.needs_one_process)
        own, event = ledger is None, plan.event
        require_payable(plan, event, budget, declared)
        terms = None
        statistics: tuple[DeclaredStatistic, ...] = ()
        if isinstance(described, Schema):
            at_owners = given.owners is not None
            statistics = self.declared_statistics(described) if at_owners else ()
            if given.in_files or not given.in_one_process:
                self._require_sums_asked(plan, described, who, travels=at_owners, statistics=statistics)
        elif given.owners is not None:
            self._require_sums_asked(plan, any_schema(described), who, travels=True)
        if given.owners is not None:
            of_schema, of_columns = (described, None) if isinstance(described, Schema) else (None, described)
            terms = FitTerms(
                trainer=type(self).__name__, event=event, delta=budget.delta, schema=of_schema, loss=plan.loss,
                bins=plan.max_bins, seeded=source.kind == "test", columns=of_columns,
                statistics=tuple(map(NamedStatistic.of, statistics)),
            )  # fmt: skip
        bar, private = progress_bar(type(self).__name__, self.verbose), source.kind != "test"
        with bar as progress, given.place(private=private, n_jobs=self.n_jobs, terms=terms) as place:
            rows: TreeTable | UndeclaredTable | CountedColumns | FederatedColumns
            if declared is None:
                assert isinstance(described, TypedColumns)  # above
                assert plan.purchase is not None  # `require_payable`
                classes = plan.purchase.most_classes
                rows = given.undeclared(described, plan.purchase.queries, place, most_classes=classes)
            else:
                if isinstance(place, Scratch):
                    need = given.scratch_need(declared, bins=plan.max_bins, expected_rows=self._public_rows())
                    say_scratch(place.folder, need, self.verbose)
                with points_to_check(declared), threads(self.n_jobs):
                    rows = given.encoded(declared, place, loss=plan.loss, bins=plan.max_bins)
            purpose = who if given.owners is None else f"{who}, {given.owners.purpose}"
            ledger, grant = self._pay(plan, described, source, ledger, purpose=purpose, unit=unit)
            with threads(self.n_jobs):
                purse = PlanPurse(event, grant)
                table, schema, told = rows_with_schema(
                    rows, plan.purchase, purse, source, loss=plan.loss, bins=plan.max_bins
                )
                model = self._train(plan, Curator(table, purse, source), structure_generator(source), progress)
        record = ledger.record()
        bound = None if declared is None else declared.weight_bound
        weighted = sample_weight is not None or (given.owners is not None and bound is not None)
        where = ON_DISK if given.in_files else ON_CLUSTER if given.on_cluster else ""
        where = where if given.owners is None else given.owners.assumption
        of_classes = declared is not None and bool(declared.class_weights)
        assumptions = fit_assumptions(unit, weighted=weighted, where=where, own_ledger=own, class_weights=of_classes)
        statement = privacy_statement(plan, event, budget, source, record, assumptions, grant=grant.index)
        # All that takes time is done: an interrupt leaves no model beside another one's statement.
        self.privacy_, self.plan_, self.ledger_ = statement, plan, record
        self.schema_ = schema if declared is None else declared
        self._restore()
        self._forget()
        self.__dict__.pop("federation_", None)  # of an earlier fit: whoever trained this one in a federation sets it
        setattr(self, self._keeps, model)
        cautions.emit(told)
        return self

    def declared_statistics(self, schema: Schema) -> tuple[DeclaredStatistic, ...]:
        """Returns the statistics from outside that the loop may ask for, of different names; none by default.

        Owners of a federation are given them (`client_app(..., statistics=...)`), and run no other function on their
        rows. Constants are told by the server; here they only show names, types and shapes.

        Args:
            schema: resolved.
        """
        return ()

    def _require_sums_asked(
        self, plan: Any, schema: Schema, who: str, *, travels: bool, statistics: tuple[DeclaredStatistic, ...] = ()
    ) -> None:
        """Refuse a loop from outside that asks for more than sums over rows; see `require_sums_asked`."""
        require_sums_asked(self, plan, schema, who, travels=travels, statistics=statistics)

    def _pay(
        self,
        plan: Plan,
        described: Schema | TypedColumns,
        source: RandomSource,
        ledger: Ledger | Grant | None,
        *,
        purpose: str,
        unit: PrivacyUnit = PrivacyUnit.ROW,
    ) -> tuple[Ledger, Grant]:
        """Warn of what may mislead, as far as it is public, and pay for the plan; errors as in `grant_plan`.

        Args:
            plan: calibrated.
            described: the columns.
            source: of all noise.
            ledger: that pays; None for one of the fit's own.
            purpose: for the ledger.
            unit: that is protected.
        """
        budget = self.budget
        names = [column.name for column in described.features]
        with cautions.counted_fit(names, own=ledger is None) as again:
            seeded = cautions.seed_caution(self.random_state) if source.kind == "test" else None
            cautions.emit([seeded, again, *self.plan_cautions(plan)])  # before anything is spent
            return grant_plan(plan, budget, ledger, purpose=purpose, unit=unit)

    def plan_cautions(self, plan: Any) -> list[str]:
        """Returns the warnings that a fit would give by its budget and its plan, as texts; uses no data."""
        caution = cautions.delta_caution(self.budget.delta, self._public_rows())
        return [] if caution is None else [caution]

    def _public_rows(self) -> int | None:
        """The public guess of the number of rows, where there is one."""
        return None

    def _declared_schema(self) -> Schema | None:
        if self.schema is None or estimated_draft(self.schema) is not None:
            return None
        refuse_draft(self.schema)
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
        # What is estimated privately is estimated from whole columns.
        tags.input_tags.sparse = isinstance(self.schema, Schema)
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

    @property
    def _is_multinomial(self) -> bool:
        """Whether class scores are of one softmax, and not of each class against all others."""
        return False

    def _class_scores(self, X: Any) -> NDArray[np.float64]:
        """Raw scores of a classifier: float64 (n_rows,) of two classes, (n_rows, K) of more."""
        return self._scores(X)

    @property
    def _largest_probability(self) -> float:
        """What no class's probability exceeds by this model's loss, before the classes' are brought to sum 1."""
        return 1.0

    @property
    def _gradient_clip(self) -> float:
        """Largest norm of a row's gradient over all classes, where trees are shared by them."""
        return math.inf

    def _columns(self, X: Any) -> dict[str, NDArray[Any]]:
        """The features of rows given for prediction, as the function of a `DeclaredStatistic` sees those of a fit."""
        return chunk_of(self._cells(X), self.schema_.resolved(self.n_features_in_), bins=self.plan_.max_bins)

    def batches(self, X: Any) -> Iterator[Any]:
        """Tables of the features of rows in files, one after another, for `predict`; the first one has no row.

        Args:
            X: the path of a Parquet or CSV file, of a folder of them, or a glob; a `pyarrow.dataset`; a polars
                LazyFrame. The target's column may be there, and is left alone.

        Raises:
            SchemaError: rows in memory, or columns that are not there.
        """
        found = self._batches(X)
        if found is None:
            raise SchemaError(f"X is {_validate.kind_of(X)} in memory: predict it as it is, model.predict(X)")
        return found

    def _batches(self, X: Any) -> Iterator[Any] | None:
        """Tables of rows in files, for predictions, the first one without rows; None of rows in memory."""
        check_is_fitted(self, self._keeps)
        names = tuple(self.feature_names_in_) if "feature_names_in_" in vars(self) else None
        return batches_of(X, self.schema_, names)

    def _cells(self, X: Any) -> AnyCells:
        """The cells of rows given for prediction, (n_features, n_rows); no value is refused, as in `fit`."""
        check_is_fitted(self, self._keeps)
        schema = schema_for(X, self.schema_, self.n_features_in_)
        see_columns(self, X, schema, reset=False)
        with threads(self.n_jobs):
            return encode_features(X, schema, bins=self.plan_.max_bins)

    def _forget(self) -> None:
        """Drop what another way of training left behind, after a fit."""


def _in_every_place(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The predictions of a method for rows in memory, also for rows in files and for Dask collections."""

    @functools.wraps(method)
    def predictions(model: Any, X: Any) -> Any:
        if is_collection(X):
            check_is_fitted(model, model._keeps)
            return mapped(X, getattr(model, method.__name__))
        batches = model._batches(X)
        return method(model, X) if batches is None else np.concatenate([method(model, batch) for batch in batches])

    return predictions


@functools.cache
def _require_class(kind: type[AbstractTrainer]) -> None:
    """Refuse an estimator class that lacks what `fit`, `save` and `load` ask of it.

    Raises:
        InvalidParameter: what is missing, and what to write.
    """
    for name, what in (("_plan_type", "the class of its plan"), ("_model_type", "the class of what it releases")):
        if getattr(kind, name, None) is None:
            raise InvalidParameter(f"{kind.__name__} has no {name}: set it to {what}, for save and load")
    known = {field.name for field in dataclasses.fields(kind)}
    for home in kind.__mro__:
        for name, hint in inspect.get_annotations(home).items() if issubclass(home, AbstractTrainer) else ():
            if name not in known and not name.endswith("_") and "ClassVar" not in str(hint):
                raise InvalidParameter(
                    f"{home.__name__}.{name} is annotated, and is no parameter: put "
                    f"@dataclass(eq=False, repr=False, kw_only=True) above class {home.__name__}"
                )
