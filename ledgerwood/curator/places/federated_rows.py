"""A table of trees whose rows their owners hold: what is asked of them, and what comes back.

Whoever speaks to the owners is an `AbstractOwners` (`ledgerwood.federation`). Here a fit learns from nothing but sums
over all of them. docs/explanation/federation.md#federation-rounds.
"""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.accounting.events import Event
from ledgerwood.curator.grid import Loss
from ledgerwood.curator.inputs.typed_columns import ColumnKind, TypedColumns
from ledgerwood.curator.places.federated_plans import NO_ALLOCATION
from ledgerwood.curator.queries.named_statistics import NamedStatistic
from ledgerwood.curator.queries.registry import TREE_CHOICES, TREES, Evaluation, Integers, name_of
from ledgerwood.curator.rounds import parts_of
from ledgerwood.curator.tables.trees import TreeTable, table_shape
from ledgerwood.curator.views.tree_rows import RowBudgets, TreeRows, TreeShape
from ledgerwood.errors import RoundViolation
from ledgerwood.mechanisms import RandomSource
from ledgerwood.mechanisms.exact.coins import RowCoins
from ledgerwood.recording.points import passes
from ledgerwood.schema import Categorical, Date, Feature, Schema

NoiseBy = Literal["server", "clients"]
"""Who adds the noise: the server, which sees exact sums over all owners; or each owner its share of it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OwnersDraw:
    """One draw of the plan, as owners are told of it.

    Args:
        number: of the draw among those of the fit's grant, from 1; of an event that is drawn in parts, of the first.
        event: that was drawn.
        rate: of a Poisson sample; None of groups.
        ends: of groups, see `RowCoins.categories`; empty of a sample.
        group: which of them takes part.
        coins: sealed, of a run with a seed; empty where owners toss coins that only they know, or none is needed.
    """

    number: int
    event: Event
    rate: float | None
    ends: tuple[int, ...] = ()
    group: int | None = None
    coins: bytes = b""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OwnersQuestion:
    """One query, which all owners answer with sums over their rows.

    Args:
        query: registered.
        mechanism: by which its release is priced.
        is_choice: whether the query is a selection's.
        draw: who takes part.
    """

    query: Any
    mechanism: Any
    is_choice: bool
    draw: OwnersDraw


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FitTerms:
    """What the owners have to agree on before a fit.

    Args:
        trainer: the estimator's class, by its name.
        event: the plan's.
        delta: of the fit's budget, at which the plan is granted.
        schema: resolved; None where the fit estimates it.
        loss, bins: as in `Table.from_data`.
        seeded: whether the fit has a seed: it protects nobody, and its owners toss the same coins as one table would.
        stream: whether rows come in several calls, with keys that name their units.
        columns: the names and types of all owners' columns, where the fit estimates their schema; else None.
        statistics: from outside, that the trainer may ask for: owners have their functions, or do not take part.
    """

    trainer: str
    event: Event
    delta: float
    schema: Schema | None
    loss: Loss
    bins: int
    seeded: bool
    stream: bool = False
    columns: TypedColumns | None = None
    statistics: tuple[NamedStatistic, ...] = ()

    def __post_init__(self) -> None:
        if (self.schema is None) is (self.columns is None):
            raise _validate.fail("schema", self.schema, "a schema, or None beside typed columns", "schema")


class AbstractOwners(abc.ABC):
    """The owners of a federation's rows, as a fit sees them."""

    @property
    @abc.abstractmethod
    def noise(self) -> NoiseBy:
        """Who adds the noise."""

    @property
    @abc.abstractmethod
    def unit(self) -> PrivacyUnit:
        """What is protected: a row, or an owner's whole contribution."""

    @property
    @abc.abstractmethod
    def assumption(self) -> str:
        """Who is trusted for what, for the model's privacy statement."""

    @abc.abstractmethod
    def head(self, schema: Schema | None, *, numeric_target: bool = False) -> tuple[Any, Any]:
        """X and y without a row: the names and types of the columns, as all owners have them.

        Args:
            schema: as declared; None where it is to be estimated, so that owners say the types of their columns.
            numeric_target: whether labels are numbers, of a schema that is to be estimated.

        Raises:
            SchemaError: they have different ones.
        """

    @abc.abstractmethod
    def session(self, terms: FitTerms) -> AbstractContextManager[None]:
        """A session of one fit, until the block ends. Nothing is spent before the first draw.

        Raises:
            FederationRefused: owners that do not take part, with their reasons.
        """

    @property
    @abc.abstractmethod
    def purpose(self) -> str:
        """The session's name in the ledgers of the server and of the owners, which tells that they are of one fit."""

    @abc.abstractmethod
    def go_on(self) -> None:
        """The next call of a stream begins: owners take its rows, and draw nothing.

        Raises:
            FederationRefused: owners that do not take part. Nothing was asked.
        """

    @abc.abstractmethod
    def begin(self) -> None:
        """A draw was made, and paid for by the curator's ledger: the owners' ledgers pay for the plan once, too."""

    @abc.abstractmethod
    def require(self, query: object) -> None:
        """Refuse a query that owners cannot be asked, before a draw is used up.

        Raises:
            RoundViolation: a statistic from outside that the session's terms do not name.
        """

    @abc.abstractmethod
    def sums(self, question: OwnersQuestion) -> Integers:
        """The sums over all owners, modulo 2**64; with the noise of all of them where they add it.

        Raises:
            OwnersLost: too few owners answered, and the fit ends.
        """

    @abc.abstractmethod
    def found(self, schema: Schema) -> None:
        """The schema was estimated: all owners encode their rows by it, and answer no more questions about columns."""

    @abc.abstractmethod
    def sealed(self, coins: RowCoins, draw: int) -> bytes:
        """The coins of one draw of a run with a seed, for all owners."""


def empty_rows(schema: Schema, n_features: int, names: tuple[str, ...]) -> tuple[Any, Any]:
    """X and y without a row: an array, or a table of named columns of the types that the schema declares."""
    target = schema.target
    labels = np.empty(0, dtype=_dtype(target)) if target is not None else np.empty(0)
    if not names:
        return np.empty((0, n_features)), labels
    import pyarrow as pa

    features = schema.resolved(n_features).features
    by_name = {each.name: each for each in features}
    columns = [
        np.empty(0, dtype=_dtype(by_name.get(name, own)))
        for name, own in zip(names, _padded(features, names), strict=True)
    ]
    return pa.table([pa.array(each) for each in columns], names=list(names)), labels


def empty_columns(columns: TypedColumns, *, named: bool) -> tuple[Any, Any]:
    """X and y without a row: an array, or a table of named columns, of these types."""
    labels = np.empty(0, dtype=_OF_KIND[columns.target.kind])
    if not named:
        (kind,) = {column.kind for column in columns.features}
        return np.empty((0, len(columns.features)), dtype=_OF_KIND[kind]), labels
    import pyarrow as pa

    arrays = [pa.array(np.empty(0, dtype=_OF_KIND[column.kind])) for column in columns.features]
    return pa.table(arrays, names=[column.name for column in columns.features]), labels


_DATES = np.dtype("datetime64[us]")
_OF_KIND: dict[ColumnKind, Any] = {
    "numeric": np.float64, "boolean": np.bool_, "text": np.str_, "codes": np.int64, "dates": _DATES, "instants": _DATES,
}  # fmt: skip


def _padded(features: tuple[Feature, ...], names: tuple[str, ...]) -> list[Feature]:
    """A feature for each name: by place, and any for columns that the schema does not have."""
    return [features[place] if place < len(features) else features[0] for place in range(len(names))]


def _dtype(feature: Feature) -> Any:
    if isinstance(feature, Date):
        return np.str_  # of ISO texts: a type of dates would have a time zone, or none
    if not isinstance(feature, Categorical):
        return np.float64
    kinds = {type(each) for each in feature.categories}
    return {int: np.int64, bool: np.bool_, float: np.float64}.get(kinds.pop(), np.str_) if len(kinds) == 1 else np.str_


@final
class OwnersDraws:
    """Numbers the draws of one fit, as its owners are told of them.

    Args:
        owners: of an open session.
    """

    __slots__ = ("_draw", "_draws", "_number", "_owners")

    def __init__(self, owners: AbstractOwners) -> None:
        self._owners = owners
        self._draws = self._number = 0
        self._draw: Event | None = None

    def begin(self, event: Event) -> None:
        """A draw was made."""
        self._owners.begin()
        self._number, self._draws = self._draws + 1, self._draws + sum(1 for _ in parts_of(event))
        self._draw = event

    def drawn(
        self, source: RandomSource | None, *, rate: float | None = None, ends: tuple[int, ...] = ()
    ) -> OwnersDraw:
        """Who takes part in the draw that was made last.

        Args:
            source: of coins; None where none is tossed.
            rate: of a sample.
            ends: of groups.
        """
        assert self._draw is not None  # `begin` comes first
        coins = b""
        # Of a secure fit owners toss coins that nobody else knows: a sample that the server knows hides nobody from it.
        if source is not None and source.kind == "test":
            coins = self._owners.sealed(RowCoins.drawn(source), self._number)
        return OwnersDraw(number=self._number, event=self._draw, rate=rate, ends=ends, coins=coins)


@final
class FederatedTable(TreeTable):
    """Rows that their owners hold, for one curator.

    A sample is no array here: it is an `OwnersDraw`, by which each owner finds out which of its rows take part.

    Args:
        owners: of an open session.
        schema: resolved.
        bins: as in `Table.from_data`.
        draws: of the fit, where some came before; None where none did.
    """

    __slots__ = ("_draws", "_owners")

    def __init__(self, owners: AbstractOwners, schema: Schema, *, bins: int, draws: OwnersDraws | None = None) -> None:
        self.schema = schema
        self._shape = table_shape(
            schema,
            n_features=len(schema.features),
            classes=isinstance(schema.target, Categorical),
            weighted=schema.weighted,
            bins=bins,
        )
        self._owners = owners
        self._draws = OwnersDraws(owners) if draws is None else draws

    @property
    def owners(self) -> AbstractOwners:
        """Who holds the rows."""
        return self._owners

    @property
    def n_rows(self) -> int:
        """Not known: it is the owners' secret.

        Raises:
            RoundViolation: always.
        """
        raise RoundViolation("the number of rows of a federation is not known to its server")

    @property
    def owners_add_noise(self) -> bool:
        """See `AbstractRows`."""
        return self._owners.noise == "clients"

    def begin(self, event: Event) -> None:
        """See `AbstractRows`."""
        self._draws.begin(event)

    @passes("sample")
    def sample(self, sampling_rate: float, source: RandomSource) -> Any:
        """As `AbstractRows.sample`."""
        if sampling_rate == 1.0:
            return self._draws.drawn(None, rate=1.0)
        return self._draws.drawn(source, rate=sampling_rate)

    @passes("assign")
    def assign(self, ends: Sequence[int], source: RandomSource) -> Any:
        """As `AbstractRows.assign`."""
        everybody = ends[0] == 1 << 64  # is in the first group, without a coin
        return self._draws.drawn(None if everybody else source, ends=tuple(ends))

    def members(self, assignment: Any, group: int) -> Any:
        """As `AbstractRows.members`."""
        return dataclasses.replace(assignment, group=group)

    @passes("allocate")
    def allocate(self, selected: int, steps: int, source: RandomSource) -> Any:
        """Refused: owners carry out no allocations.

        Raises:
            RoundViolation: always.
        """
        raise RoundViolation(NO_ALLOCATION)

    def reader(self, query: object, mechanism: object = None) -> Callable[[Any], NDArray[np.int64]]:
        """As `TreeTable.reader`."""
        self._require(TREES.evaluation(query), query)
        # What is no ratio has nothing to finish, so that noise may be in the sums already.
        return lambda drawn: self._asked(query, mechanism, drawn, is_choice=False)

    def evidence(self, query: object, mechanism: object = None) -> Callable[[Any], Any]:
        """As `TreeTable.evidence`.

        Raises:
            RoundViolation: a private choice, where owners add the noise: the server would see exact utilities.
        """
        evaluation = TREE_CHOICES.evaluation(query)
        self._require(evaluation, query)
        if self.owners_add_noise:
            raise RoundViolation(
                f"{name_of(query)} is a private choice by exact sums, which the server must not see under "
                "noise='clients': use federate(noise='server')"
            )
        return lambda drawn: evaluation.finish(query, self._asked(query, mechanism, drawn, is_choice=True), self._shape)

    def _asked(self, query: object, mechanism: object, draw: OwnersDraw, *, is_choice: bool) -> Integers:
        return self._owners.sums(OwnersQuestion(query=query, mechanism=mechanism, is_choice=is_choice, draw=draw))

    def full_accounts(self) -> Any:
        """No array: each owner keeps what its own rows have left, and tells nobody."""
        return None

    def statistic(
        self, query: object, sampled: Any, budgets: RowBudgets | None = None, mechanism: object = None
    ) -> Integers:
        """As `TreeTable.statistic`: under a filter each owner charges its own rows before it answers."""
        if budgets is None:
            return super().statistic(query, sampled)
        evaluation = TREES.evaluation(query)
        self._require(evaluation, query)
        if self.owners_add_noise:
            raise RoundViolation("an individual filter is carried out under noise='server' only")
        # A filtered sum has nothing to finish; the charge is not sent: owners trust no server's figures.
        return self._asked(query, mechanism, sampled, is_choice=False)

    def _require(self, evaluation: Evaluation[TreeShape, TreeRows], query: object) -> None:
        super()._require(evaluation, query)
        evaluation.require_sums(query)
        self._owners.require(query)

    def _evaluated(
        self, evaluation: Evaluation[TreeShape, TreeRows], query: object, sampled: Any, budgets: RowBudgets
    ) -> Any:
        raise RoundViolation("a federation answers releases of a round only")
