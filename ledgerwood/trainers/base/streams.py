"""Learning on a stream: one draw pays for every call, and each privacy unit has one budget in all of them."""

import abc
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from sklearn.base import is_regressor

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.accounting.ledger import DrawEntry, Ledger, LedgerRecord, Receipt
from ledgerwood.curator import (
    AbstractOwners,
    Aggregator,
    FederatedTable,
    FitTerms,
    GivenRows,
    OwnersStream,
    Place,
    RowVault,
    Schema,
    StreamCurator,
    StreamRows,
    column_count,
    forget_owners,
    forget_vault,
    given_rows,
    keep_owners,
    keep_vault,
    kept_owners,
    kept_vault,
    points_to_check,
    require_labels,
    schema_for,
    see_columns,
)
from ledgerwood.ensemble import Ensemble
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError, SchemaError
from ledgerwood.mechanisms import RandomSource
from ledgerwood.threads import threads
from ledgerwood.trainers.base.estimator import AbstractTreeEstimator
from ledgerwood.trainers.base.forests import declared_forests
from ledgerwood.trainers.base.plan import Plan
from ledgerwood.trainers.base.privacy import (
    ASSUMPTIONS,
    CLASS_WEIGHTS,
    ON_DISK,
    ROW_IS_UNIT,
    privacy_statement,
    require_ledger,
)
from ledgerwood.trainers.base.progress import Progress, progress_bar
from ledgerwood.trainers.parts.splits import structure_generator

VAULT_IS_KEPT = "the vault of what each unit has left was neither copied nor put back"
STREAM_ASSUMPTIONS = (
    *(assumption for assumption in ASSUMPTIONS if assumption != ROW_IS_UNIT),
    "a privacy unit is what one key names in all calls together, with at most one row in each",
    "the keys are trusted: a unit that comes under two keys has two budgets",
    VAULT_IS_KEPT,
    "how many calls there are, and when, does not depend on any one unit",
)
OWNERS_KEEP_ACCOUNTS = (
    "a privacy unit has rows at one owner only: one with rows at two owners has two budgets",
    "the accounts that each owner keeps of its units were not put back from a copy",
)
# What may change between calls without changing what is learned, or what it costs.
_FREE = frozenset({"schema", "random_state", "verbose", "n_jobs"})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamState:
    """What a model remembers of its stream: public, and nothing of any row.

    Args:
        draw: hash of the ledger entry that pays for all calls.
        claims: how often the vault was asked for units by the last call of this model.
        parameters: of the first call, which later ones must share.
    """

    draw: str
    claims: int
    parameters: dict[str, object]


class AbstractStreamEstimator(AbstractTreeEstimator):
    """An estimator that can go on learning from rows that arrive later, or come again.

    A subclass makes a plan whose filtered event pays for any number of rounds, and runs them.
    """

    stream_: StreamState

    @abc.abstractmethod
    def make_stream_plan(self, schema: Schema) -> Plan:
        """The calibrated plan of a stream for a resolved schema; pure, no data.

        Raises:
            InvalidParameter, AdjacencyMismatch, CalibrationFailed: parameters that make no such plan.
        """

    @abc.abstractmethod
    def _train_on(
        self, plan: Any, aggregator: Aggregator, generator: np.random.Generator, progress: Progress, ensemble: Ensemble
    ) -> Ensemble:
        """The system's loop over the rows of a later call, from what was released before."""

    def partial_fit(
        self,
        X: Any,
        y: Any,
        keys: Any = None,
        ledger: Ledger | None = None,
        vault: RowVault | None = None,
        *,
        scratch: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Learn from rows as they arrive. The first call pays for all; each later one adds trees, and draws nothing.

        A privacy unit has one budget in all calls together: a row of a unit that was there before takes part with what
        that unit has left, a row of a new one with a full budget. docs/explanation/sgbdt.md#sgbdt-streams.

        Args:
            X: array-like or data frame, shape (n_rows, n_features); or rows in files, as in `fit`.
            y: array-like, shape (n_rows,); of rows in files the name of the label's column.
            keys: array-like, shape (n_rows,), required: the name of each row's privacy unit, whole numbers or texts,
                the same in every call; of rows in files the name of the keys' column. Trusted: nothing else
                recognises a unit. A row without a key contributes 0, and so does every row of a unit but its first one
                in a call.
            ledger: where the first call is paid from; without one it opens its own. Later calls need none.
            vault: where the units' budgets are kept, for the first call a new one. None: in memory, beside this very
                object; a model that was pickled, copied, cloned or loaded has no such vault, and goes on only with the
                `RowVault.open(path)` of its stream.
            scratch: as in `fit`.

        Raises:
            SchemaError: columns, types or shapes that are not the schema's, or no keys or schema were given. Nothing
                was spent.
            InvalidParameter: other parameters than the first call's, or ones that make no plan. Nothing was spent.
            BudgetExceeded, AdjacencyMismatch: the ledger refuses the plan. Nothing was spent.
            LedgerError: another stream's vault or ledger, an older copy of the vault, or none. Nothing was spent.
            ScratchFull, FilesChanged: as in `fit`. Nothing was spent.
            LedgerWriteFailed: the vault could not be written. What was granted or claimed before counts as spent.
        """
        at_owners = isinstance(X, AbstractOwners)
        if keys is None and not at_owners:
            raise SchemaError(
                "keys=None: a stream needs the name of each row's privacy unit, or a unit that comes again would be "
                "given a second budget; for one fit of rows without keys use fit(X, y)"
            )
        if vault is not None and not isinstance(vault, RowVault):
            raise InvalidParameter(f"vault must be a ledgerwood.curator.RowVault, not {type(vault).__name__}")
        if vault is not None and at_owners:
            raise InvalidParameter("vault must be None in a federation: each owner keeps the accounts of its own units")
        require_ledger(ledger, X.unit if isinstance(X, AbstractOwners) else PrivacyUnit.ROW)
        if self._declared_schema() is None:
            raise SchemaError("schema=None: a stream needs a declared schema, which is the same for all of its calls")
        given = given_rows(X, y, None, self._declared_schema(), scratch, keys)
        if "stream_" in vars(self):
            self._go_on(given, ledger, kept_vault(self) if vault is None and not at_owners else vault)
        elif "ensemble_" in vars(self):
            raise InvalidParameter(
                "this model was fitted by fit, on rows without keys: they could not be told from rows that come again. "
                "Start a stream with a model that was not fitted (sklearn.base.clone)"
            )
        else:
            self._begin(given, ledger, RowVault() if vault is None and not at_owners else vault)
        return self

    def _begin(self, given: GivenRows, ledger: Ledger | None, vault: RowVault | None) -> None:
        budget, X, y, owners = self.budget, given.X, given.y, given.owners
        if vault is not None:
            vault.prepare()
        schema = self._declared_schema()
        assert schema is not None  # `partial_fit` refuses it
        if schema.weight_bound not in (None, 1.0):
            raise SchemaError(
                f"weight_bound={schema.weight_bound!r}: the rows of a stream have no weights, and each would count for "
                "less than a row; declare a schema without the bound, or use fit(X, y, sample_weight=...)"
            )
        if declared_forests(schema) > 1:
            raise SchemaError(
                f"target={schema.target!r}: a stream learns a number or two classes; for several classes use fit(X, y)"
            )
        with points_to_check(schema):
            require_labels(y, schema.target, numeric=is_regressor(self))
            n_features = column_count(X, schema)
        see_columns(self, X, schema)
        described = schema.resolved(n_features)
        plan = self.make_stream_plan(described)
        who = f"{type(self).__name__}.partial_fit"
        given.require_sums(plan.needs_one_part, who, needs_one_process=plan.needs_one_process)
        source = self._random_source()
        own, event = ledger is None, plan.event
        terms = FitTerms(
            trainer=type(self).__name__, event=event, delta=budget.delta, schema=described, loss=plan.loss,
            bins=plan.max_bins, seeded=source.kind == "test", stream=True,
        )  # fmt: skip
        table: FederatedTable | None = None
        with given.place(terms=None if owners is None else terms) as place:
            rows = None if vault is None else self._rows_of(given, schema, plan, place, vault)
            purpose = who if owners is None else f"{who}, {owners.purpose}"
            ledger, grant = self._pay(plan, described, source, ledger, purpose=purpose)
            curator: StreamCurator | OwnersStream
            if rows is not None:
                curator = StreamCurator(rows, grant, source)
            else:
                assert owners is not None  # who keep the accounts, in place of a vault
                table = FederatedTable(owners, described, bins=plan.max_bins)
                curator = OwnersStream(table, grant, source)
            with progress_bar(type(self).__name__, self.verbose) as progress, threads(self.n_jobs):
                ensemble = self._train(plan, curator, structure_generator(source), progress)
        record = ledger.record()
        scope = "this stream only: other uses of the same rows add to it" if own else "this stream; the ledger has all"
        on_disk = (ON_DISK,) if given.in_files else ()
        kept = STREAM_ASSUMPTIONS
        if owners is not None:
            kept = (*(each for each in kept if each != VAULT_IS_KEPT), *OWNERS_KEEP_ACCOUNTS, owners.assumption)
        of_classes = (CLASS_WEIGHTS,) if schema.class_weights else ()
        assumptions = (*kept, *of_classes, *on_disk, f"epsilon covers all calls of {scope}")
        self.privacy_ = privacy_statement(plan, event, budget, source, record, assumptions, grant=grant.index)
        self.schema_, self.plan_, self.ledger_ = schema, plan, record
        self._restore()
        claims = 1 if vault is None else vault.claims
        self.stream_ = StreamState(draw=curator.receipt.hash, claims=claims, parameters=self._parameter_record())
        self._keep(vault, table)
        self.ensemble_ = ensemble

    def _keep(self, vault: RowVault | None, table: FederatedTable | None) -> None:
        """Keep beside this object what knows the units' budgets: a vault, or their owners."""
        forget_vault(self)
        forget_owners(self)
        if vault is not None:
            keep_vault(self, vault)
        if table is not None:
            keep_owners(self, table)

    def _rows_of(self, given: GivenRows, schema: Schema, plan: Plan, place: Place, vault: RowVault) -> StreamRows:
        """The rows of a call, encoded; nothing is paid or claimed yet."""
        with points_to_check(schema), threads(self.n_jobs):
            table, keys = given.units(schema, place, loss=plan.loss, bins=plan.max_bins)
            return StreamRows(table, keys, vault)

    def _go_on(self, given: GivenRows, ledger: Ledger | None, vault: RowVault | None) -> None:
        X, y = given.X, given.y
        self._require_same_parameters()
        receipt = _receipt(self.stream_.draw, self.ledger_)
        if ledger is not None and all(entry.hash != receipt.hash for entry in ledger.entries):
            raise LedgerError(
                "this stream was paid from another ledger: a later call draws nothing and needs none; leave ledger= out"
            )
        table = kept_owners(self)
        if given.owners is not None and (table is None or table.owners is not given.owners):
            raise LedgerError(
                "this model's stream is not of these owners: a federation's stream goes on with the object that its "
                "first call was made on, and as long as the server's process lives"
            )
        if vault is None and given.owners is None:
            raise LedgerError(
                "this model does not know what the units of its stream have left: a vault in memory stays beside the "
                "object that the first call was made on, and a copy, a pickle or a loaded model has none. Keep the "
                "vault in a file, vault=RowVault.open(path), from the first call on; without it the stream has ended"
            )
        if vault is not None:
            vault.require(receipt, claims=self.stream_.claims)
        source = self._random_source(self.stream_.claims)
        if source.kind == "test" and receipt.randomness == "secure":
            raise InvalidParameter(
                f"random_state={self.random_state!r}: the stream began with secure noise, which its ledger states; "
                "leave random_state=None"
            )
        schema = schema_for(X, self.schema_, self.n_features_in_)
        with points_to_check(schema):
            require_labels(y, schema.target, numeric=is_regressor(self))
        see_columns(self, X, schema, reset=False)
        plan = self.plan_
        if vault is None:
            assert table is not None  # above
            table.owners.go_on()
            claims = self.stream_.claims + 1
            try:
                self._learn_on(OwnersStream(table, receipt, source), source)
            finally:
                self.stream_ = replace(self.stream_, claims=claims)
            return
        with given.place() as place:
            rows = self._rows_of(given, schema, plan, place, vault)
            try:
                self._learn_on(StreamCurator(rows, receipt, source), source)
            finally:  # a call that failed has charged its units too: a copy from before it is an older one
                self.stream_ = replace(self.stream_, claims=vault.claims)
        if given.in_files and ON_DISK not in self.privacy_.assumptions:
            self.privacy_ = replace(self.privacy_, assumptions=(*self.privacy_.assumptions, ON_DISK))
        self._keep(vault, None)

    def _learn_on(self, aggregator: Aggregator, source: RandomSource) -> None:
        """Add the trees of a later call."""
        generator = structure_generator(source)
        with progress_bar(type(self).__name__, self.verbose) as progress, threads(self.n_jobs):
            self.ensemble_ = self._train_on(self.plan_, aggregator, generator, progress, self.ensemble_)

    def _require_same_parameters(self) -> None:
        first, now = self.stream_.parameters, self._parameter_record()
        # A parameter that only one of two releases knows is not in both.
        for name in sorted(first.keys() & now.keys() - _FREE):
            if first[name] != now[name]:
                raise InvalidParameter(
                    f"{name}={now[name]!r}, and the stream began with {first[name]!r}: its plan is paid for "
                    "and fixed; set it back, or start another stream with a clone"
                )
        if self.schema != self.schema_:
            raise InvalidParameter("schema is another one than the stream began with; set it back")

    def _forget(self) -> None:
        if "stream_" in vars(self):
            del self.stream_
        self._keep(None, None)

    def _more_record(self) -> dict[str, object]:
        return {"stream": asdict(self.stream_)} if "stream_" in vars(self) else {}

    def _read_more(self, record: dict[str, Any], path: Path) -> None:
        if "stream" not in record:
            return
        try:
            stream = StreamState(**record["stream"])
            _validate.count("claims", stream.claims, "claims")
            dict(stream.parameters)
        except (TypeError, ValueError) as error:
            raise InvalidParameter(f"{path} is not a saved {type(self).__name__}: {error!r}") from error
        _receipt(stream.draw, self.ledger_)
        self.stream_ = stream


def _receipt(draw: str, record: LedgerRecord) -> Receipt:
    """The receipt of the draw whose entry has this hash.

    Raises:
        LedgerCorrupted: the ledger has none.
    """
    for entry in record.entries:
        if isinstance(entry, DrawEntry) and entry.hash == draw:
            return Receipt(
                event=entry.event, purpose=entry.purpose, grant=entry.grant, index=entry.index, hash=entry.hash,
                randomness=entry.randomness,
            )  # fmt: skip
    raise LedgerCorrupted(f"the ledger has no draw {draw!r}, which the model's stream was paid by")
