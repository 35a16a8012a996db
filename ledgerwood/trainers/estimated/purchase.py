"""Private estimation of a schema that is not declared: its parts, their noise, and the resulting `Schema`.

What is bought of each column is fixed by public names and types alone, and so are the events; only the values of the
schema depend on what was released. docs/explanation/bought-schema.md#bought-schema-plan.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.costs import gdp
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.splitting import split
from ledgerwood.cautions import estimate_caution
from ledgerwood.curator import (
    Aggregator,
    Categorical,
    Category,
    CountedColumns,
    Curator,
    Feature,
    FederatedColumns,
    KeyCounts,
    ListedCounts,
    Loss,
    Numeric,
    PlanPurse,
    Schema,
    TreeTable,
    TypedColumn,
    TypedColumns,
    UndeclaredTable,
    ValueCounts,
    placeholder,
)
from ledgerwood.errors import InvalidParameter, SchemaError
from ledgerwood.mechanisms import (
    BoundedStabilityMechanism,
    GaussianMechanism,
    GaussianStabilityMechanism,
    LaplaceMechanism,
    RandomSource,
)
from ledgerwood.mechanisms.bounded_stability import FAILURE, room_for
from ledgerwood.schema import Target, require_target, spelled_days
from ledgerwood.schema.records import column as column_in
from ledgerwood.schema.records import record_of
from ledgerwood.trainers.estimated.categories import most_categories, most_frequent
from ledgerwood.trainers.estimated.classes import NO_TEXT, class_warning, some_classes, with_two_classes
from ledgerwood.trainers.estimated.ranges import ANY_BINS, bin_edges, date_between, date_edges, likely_range, within

PER_BIN = 1.25
"""Stddevs of the noise that a bin must add to a run of bins."""
SURELY = {"gaussian": 5.5, "laplace": 17.0}
"""Noise scales above which noise alone is with probability 2e-8."""
STANDS_OUT = {"gaussian": 5.0, "laplace": 8.0}
"""Stddevs of its sum that a run of bins of noise alone stays below, with probability .995 and more."""
TARGET_SHARE = 0.25
LEAST_NOISE = 0.02
"""Rows. Less noise than that is no use."""
TOO_MANY = "too many distinct values: declare its categories"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaPurchase:
    """A plan for a private estimate of each column: bounds of numbers, categories of the others, one draw each.

    Args:
        columns: the public names and types.
        adjacency: the relation under which every event is stated.
        noise: of the counts: "gaussian", or "laplace" for pure privacy, which buys no categories.
        noise_scale: of a feature's counts: stddev of the Gaussian noise, or scale of the Laplace noise, in rows.
        target_noise_scale: of the target's counts.
        key_delta: what each categorical column may cost of delta; 0 where there is none.
        expected_rows: a public guess of the number of rows, which says how fine the bins may be.
        most_classes: how many classes the system can learn, at least 2; of more than that, the commonest ones.
    """

    columns: TypedColumns
    adjacency: Adjacency
    noise: Literal["gaussian", "laplace"]
    noise_scale: float
    target_noise_scale: float
    key_delta: float
    expected_rows: int | None = None
    most_classes: int = 2

    def __post_init__(self) -> None:
        _validate.count("most_classes", self.most_classes, "classes", minimum=2)
        if self.noise not in ("gaussian", "laplace"):
            raise _validate.fail("noise", self.noise, "'gaussian' or 'laplace'", "name")
        _validate.positive("noise_scale", self.noise_scale, "rows")
        _validate.positive("target_noise_scale", self.target_noise_scale, "rows")
        if keyed_names(self.columns):
            _validate.positive("key_delta", self.key_delta, "probability")
            if self.columns.at_owners and self.key_delta <= FAILURE:
                raise InvalidParameter(
                    f"delta: {self.key_delta:.3g} of it are for the categories of each of the columns "
                    f"{keyed_names(self.columns)}, and their estimation in a federation costs 2**-40 = {FAILURE:.3g} "
                    "each beside the noise (unit: probability): give a larger delta, or declare a schema"
                )
            if self.noise != "gaussian":
                raise _validate.fail("noise", self.noise, "'gaussian' where categories are bought", "name")

    @classmethod
    def planned(
        cls,
        columns: TypedColumns,
        budget: Budget,
        *,
        share: float,
        expected_rows: int | None = None,
        most_classes: int = 2,
    ) -> "SchemaPurchase":
        """The purchase for a share of the budget: of mu**2 and of delta, or of epsilon where delta is 0.

        A quarter of it is the target's, the rest is divided evenly among the features that are bought.

        Raises:
            InvalidParameter: a share outside (0, 1), or categories at delta 0.
        """
        share = schema_share(share)
        names = keyed_names(columns)
        if budget.delta == 0.0 and names:
            raise InvalidParameter(
                f"delta=0.0 (unit: probability) buys no categories, which columns {names} need: a category that nobody "
                "listed shows with a probability that only delta pays for; give delta > 0, or declare a schema"
            )
        bought = sum(column.bought for column in columns.features)
        of_target = (TARGET_SHARE if bought else 1.0) if columns.target.bought else 0.0
        declared = columns.target.given
        if isinstance(declared, Categorical) and len(declared.categories) > most_classes:
            raise InvalidParameter(
                f"the draft declares {len(declared.categories)} classes, and the plan learns at most {most_classes}: "
                "raise n_estimators, or fill the draft in (unit: classes)"
            )
        each = (1.0 - of_target) / max(bought, 1)
        noise: Literal["gaussian", "laplace"]
        if budget.delta == 0.0:
            noise, moved = "laplace", 2.0
            shares = split(budget, {"schema": share, "trees": 1.0 - share}, currency="epsilon")
            whole = shares["schema"].laplace_multiplier()
            scales = [whole / part if part else whole for part in (each, of_target)]
        else:
            noise, moved = "gaussian", math.sqrt(2.0)
            mu = math.sqrt(share) * gdp.mu(budget.epsilon, budget.delta)
            scales = [1.0 / (mu * math.sqrt(part)) if part else 1.0 / mu for part in (each, of_target)]
        if budget.adjacency is Adjacency.REPLACE_ONE:
            scales = [moved * scale for scale in scales]
        return cls(
            columns=columns,
            adjacency=budget.adjacency,
            noise=noise,
            noise_scale=max(scales[0], LEAST_NOISE),
            target_noise_scale=max(scales[1], LEAST_NOISE),
            key_delta=share * budget.delta / len(names) if names else 0.0,
            expected_rows=expected_rows,
            most_classes=most_classes,
        )

    @property
    def _all(self) -> tuple[TypedColumn, ...]:
        return (*self.columns.features, self.columns.target)

    def _scale(self, number: int) -> float:
        return self.target_noise_scale if number == len(self.columns.features) else self.noise_scale

    def bin_mechanism(self, number: int) -> GaussianMechanism | LaplaceMechanism:
        """Noise of the counts of a column's bins."""
        if self.noise == "gaussian":
            return GaussianMechanism(stddev=self._scale(number))
        return LaplaceMechanism(scales=(self._scale(number),))

    def key_mechanism(self, number: int) -> GaussianStabilityMechanism | BoundedStabilityMechanism:
        """Which categories of a column show."""
        scale = self._scale(number)
        if self.columns.at_owners:
            return BoundedStabilityMechanism.for_delta(scale, self.key_delta, room=room_for(scale))
        return GaussianStabilityMechanism.for_delta(scale, self.key_delta)

    @property
    def mechanisms(self) -> tuple[object, ...]:
        """Those of the columns that are bought, one a kind of column."""
        bought = [(number, column) for number, column in enumerate(self._all) if column.bought]
        keyed = [self.key_mechanism(number) for number, column in bought if column.keyed]
        binned = [self.bin_mechanism(number) for number, column in bought if not column.keyed]
        return (*keyed[:1], *binned[:1])

    def event_of(self, number: int) -> Event | None:
        """What is drawn for a column; None where nothing is bought. The target has the last number."""
        column = self._all[number]
        if not column.bought:
            return None
        if column.keyed:
            return self.key_mechanism(number).event(self.adjacency)
        # Of listed categories as of bins: one row moves one count.
        return self.bin_mechanism(number).event(ANY_BINS.sensitivity(self.adjacency), self.adjacency)

    @property
    def events(self) -> tuple[Event, ...]:
        """The draws, one a column that is bought, in the order of the columns; the target's comes last."""
        last = len(self.columns.features)
        kinds = [(column.bought, column.keyed, number == last) for number, column in enumerate(self._all)]
        # Columns of one kind have equal events, and there may be many.
        made = {kind: self.event_of(kinds.index(kind)) for kind in set(kinds)}
        return tuple(event for event in map(made.__getitem__, kinds) if event is not None)

    @property
    def queries(self) -> tuple[ValueCounts | ListedCounts | KeyCounts, ...]:
        """What is asked, in the order of `events`: public, so that rows in files are counted in one pass."""
        return tuple(self._query(number, column) for number, column in enumerate(self._all) if column.bought)

    def _query(self, number: int, column: TypedColumn) -> ValueCounts | ListedCounts | KeyCounts:
        if column.listed:
            return ListedCounts(column=number, categories=column.listed)
        return KeyCounts(column=number) if column.keyed else self._bins(number)

    def require_fit(self) -> None:
        """Refuse noise that cannot be drawn, before a budget moves."""
        for number in (0, len(self.columns.features)):
            self.bin_mechanism(number).require_fit(ANY_BINS.grid)

    def buy(self, aggregator: Aggregator) -> Schema:
        """Estimate the schema from one release per column; it depends on the rows through these only.

        Args:
            aggregator: over the columns, with a grant that holds `events`.
        """
        return self.estimated(aggregator)[0]

    def estimated(self, aggregator: Aggregator) -> tuple[Schema, tuple[str, ...]]:
        """The schema, and what to warn of: columns whose estimate is of no use, and classes that are not learned.

        A range is of no use where its numbers of rows do not stand out from their noise, or those beside the one bin
        around 0 do not; categories are where there is none, and classes where there is one at most. Released values
        alone say so: docs/explanation/cautions.md#useless-estimates.
        """
        useless: list[str] = []
        features = tuple(
            self._feature(aggregator, i, column, useless) for i, column in enumerate(self.columns.features)
        )
        target, classes = self._target(aggregator, useless)
        found = (estimate_caution(useless), classes)
        return Schema(features=features, target=target), tuple(text for text in found if text is not None)

    def _feature(self, aggregator: Aggregator, number: int, column: TypedColumn, useless: list[str]) -> Feature:
        if isinstance(column.given, Feature):
            return column.given
        missing, what = True if column.given is None else column.given.missing, f"feature {number + 1}"
        match column.read_as:
            case "numeric":
                low, high = within(column.given, *self._bounds(aggregator, number, what, useless))
                return Numeric(column.name, low, high, missing=missing)
            case "dates" | "instants":
                low, high = self._bounds(aggregator, number, what, useless)
                return date_between(column.name, low, high, zoned=column.read_as == "instants", missing=missing)
            case "boolean":
                return Categorical(column.name, (False, True), missing=missing)
            case "text" | "codes":
                if column.listed:
                    categories = self._listed(aggregator, number, column, what, useless)
                else:
                    categories = self._found(aggregator, number, column, what, useless)
                return Categorical(column.name, categories, missing=missing)

    def _found(
        self, aggregator: Aggregator, number: int, column: TypedColumn, what: str, useless: list[str]
    ) -> tuple[Category, ...]:
        """The categories that show, at most as many as are asked for, the most frequent ones by their counts."""
        found = self._keys(aggregator, number, what)
        if found is None:
            useless.append(f"{column.name!r} ({TOO_MANY}, all rows are '(other)')")
        elif not found:
            useless.append(f"{column.name!r} (no category was found, all rows are '(other)')")
        return most_frequent(found or (), most_categories(column)) or (NO_TEXT,)

    def _listed(
        self, aggregator: Aggregator, number: int, column: TypedColumn, what: str, useless: list[str]
    ) -> tuple[Category, ...]:
        """The most frequent categories of a public list, by released counts of all of them."""
        query, purpose = ListedCounts(column=number, categories=column.listed), f"schema: frequent categories of {what}"
        with aggregator.open(self._event(number), purpose=purpose) as round_:
            counts = round_.release(query, self.bin_mechanism(number), purpose=purpose).real[:, 0]
        kept = most_frequent(tuple(zip(column.listed, counts.tolist(), strict=True)), most_categories(column))
        places = [column.listed.index(category) for category in kept]
        if counts[places].sum() < STANDS_OUT[self.noise] * self._stddev(number) * math.sqrt(len(kept)):
            useless.append(f"{column.name!r} (its most frequent categories are no more than noise)")
        return kept

    def _target(self, aggregator: Aggregator, useless: list[str]) -> tuple[Target, str | None]:
        """The target, and what to warn of its classes."""
        number, column = len(self.columns.features), self.columns.target
        declared = require_target(column.given) if isinstance(column.given, Feature) else None
        if declared is not None:
            return declared, None
        name = column.name if column.given is None else column.given.name
        match column.read_as:
            case "numeric":
                low, high = within(column.given, *self._bounds(aggregator, number, "the target", useless))
                return Numeric(name, low, high), None
            case "boolean":
                return Categorical(name, (False, True)), None
            case "text" | "codes":
                found = self._keys(aggregator, number, "the target")
                if found is None:
                    useless.append(f"{name!r} ({TOO_MANY})")
                found = found or ()
                classes = some_classes(found, text=column.read_as == "text", most=self.most_classes)
                return Categorical(name, classes), class_warning(len(found), classes)
            case "dates" | "instants":
                raise SchemaError(f"the target {name!r} is a date")  # refused with the types

    def _bounds(self, aggregator: Aggregator, number: int, what: str, useless: list[str]) -> tuple[float, float]:
        query, purpose = self._bins(number), f"schema: bounds of {what}"
        edges = query.edges
        with aggregator.open(self._event(number), purpose=purpose) as round_:
            release = round_.release(query, self.bin_mechanism(number), purpose=purpose)
        full = SURELY[self.noise] * self._scale(number)
        counts = release.real[:, 0]
        low, high = likely_range(counts, edges, per_bin=PER_BIN * self._stddev(number), full=full)
        why = self._why_useless(number, counts, edges.index(low), edges.index(high))
        numeric = self._all[number].read_as == "numeric"
        if why is not None:
            shown = f"[{low:.3g}, {high:.3g}]" if numeric else f"{spelled_days(low)} to {spelled_days(high)}"
            useless.append(f"{self._all[number].name!r} (its range {shown} is {why})")
        return low, high

    def _bins(self, number: int) -> ValueCounts:
        edges = bin_edges if self._all[number].read_as == "numeric" else date_edges
        return ValueCounts(column=number, edges=edges(self.bins_per_octave(number)))

    def _why_useless(self, number: int, counts: NDArray[np.float64], first: int, last: int) -> str | None:
        """What is wrong with a range of bins from `first` up to `last`, by the released counts; None for nothing."""
        noise = STANDS_OUT[self.noise] * self._stddev(number)
        total, bins, zero = float(counts[first:last].sum()), last - first, len(counts) // 2
        numeric = self._all[number].read_as == "numeric"
        if total < noise * math.sqrt(bins):
            return "no more than noise"
        if numeric and first <= zero < last and total - counts[zero] <= noise * math.sqrt(bins - 1):
            return "0, and noise beside it"
        return None

    def _stddev(self, number: int) -> float:
        return self._scale(number) * (1.0 if self.noise == "gaussian" else math.sqrt(2.0))

    def bins_per_octave(self, number: int) -> int:
        """How finely a column's values are told apart: the more finely, the more rows there are to a stddev of noise.

        Parts of an octave of numbers, or of a year of dates.

        docs/explanation/bought-schema.md#bought-schema-bounds.
        """
        if self.expected_rows is None:
            return 2
        ratio = self.expected_rows / self._stddev(number)
        return 4 if ratio >= 600.0 else 2 if ratio >= 30.0 else 1

    def _keys(self, aggregator: Aggregator, number: int, what: str) -> tuple[tuple[Category, int], ...] | None:
        """The categories that show; None where there are too many to count at the owners of the rows."""
        purpose = f"schema: categories of {what}"
        with aggregator.open(self._event(number), purpose=purpose) as round_:
            return round_.select(KeyCounts(column=number), self.key_mechanism(number), purpose=purpose).value

    def _event(self, number: int) -> Event:
        event = self.event_of(number)
        assert event is not None  # asked for columns that are bought
        return event

    def to_record(self) -> dict[str, object]:
        """Plain JSON values."""
        columns = self.columns
        record: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.name != "columns"
        }
        record["adjacency"] = self.adjacency.value
        record["columns"] = {
            "features": [_column_record(column) for column in columns.features],
            "target": _column_record(columns.target),
            # As records were before there were others.
            **({"at_owners": True} if columns.at_owners else {}),
        }
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "SchemaPurchase":
        """The inverse of `to_record`."""
        columns = record["columns"]
        typed = TypedColumns(
            features=tuple(map(_column_of, columns["features"])),
            target=_column_of(columns["target"]),
            at_owners=columns.get("at_owners", False),
        )
        return cls(**{**record, "columns": typed, "adjacency": Adjacency(record["adjacency"])})


def _column_record(column: TypedColumn) -> dict[str, object]:
    given = {} if column.given is None else {"given": record_of(column.given)}
    return {"name": column.name, "kind": column.kind, **given}


def _column_of(record: dict[str, Any]) -> TypedColumn:
    given = column_in(record["given"], "given") if "given" in record else None
    return TypedColumn(record["name"], record["kind"], given)


def schema_share(value: object) -> float:
    """A share of the budget for a schema.

    Raises:
        InvalidParameter: outside (0, 1).
    """
    share = _validate.real("schema_share", value, "share of the budget")
    if not 0.0 < share < 1.0:
        raise _validate.fail("schema_share", value, "in (0, 1)", "share of the budget")
    return share


def keyed_names(columns: TypedColumns) -> list[str]:
    """The columns whose categories are estimated, which needs a delta."""
    return [column.name for column in (*columns.features, columns.target) if column.keyed]


def any_schema(columns: TypedColumns) -> Schema:
    """Some schema of these columns, for a rehearsal without rows."""
    target = require_target(placeholder(columns.target))
    assert target is not None  # a column
    features = tuple(map(placeholder, columns.features))
    return Schema(features=features, target=dataclasses.replace(target, missing=False))


def rows_with_schema(
    rows: TreeTable | UndeclaredTable | CountedColumns | FederatedColumns,
    purchase: SchemaPurchase | None,
    purse: PlanPurse,
    source: RandomSource,
    *,
    loss: Loss,
    bins: int,
) -> tuple[TreeTable, Schema, tuple[str, ...]]:
    """The rows under their schema, which is estimated first where it was not declared; the schema; what to warn of.

    Of a single class the rows are kept as of two: the model is trained as planned, and says nothing.
    """
    if isinstance(rows, TreeTable):
        return rows, rows.schema, ()
    assert purchase is not None  # made for these columns
    schema, told = purchase.estimated(Curator(rows, purse, source))
    return rows.encoded(with_two_classes(schema), loss=loss, bins=bins), schema, told
