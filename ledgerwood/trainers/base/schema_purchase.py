"""Private estimation of a schema that is not declared: its parts, their noise, and the resulting `Schema`.

What is bought of each column is fixed by public names and types alone, and so are the events; only the values of the
schema depend on what was released. docs/explanation/bought-schema.md#bought-schema-plan.
"""

import dataclasses
import functools
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
    MAX_CATEGORIES,
    Aggregator,
    Categorical,
    Category,
    CountedColumns,
    Curator,
    Feature,
    FederatedColumns,
    KeyCounts,
    Loss,
    Numeric,
    PlanPurse,
    Schema,
    TreeTable,
    TypedColumn,
    TypedColumns,
    UndeclaredTable,
    ValueCounts,
)
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import (
    BoundedStabilityMechanism,
    GaussianMechanism,
    GaussianStabilityMechanism,
    LaplaceMechanism,
    RandomSource,
)
from ledgerwood.mechanisms.bounded_stability import FAILURE, room_for

OCTAVES = range(-20, 40)
"""Powers of two that are told apart: beyond a trillion a number is clamped, below a millionth it is as good as 0."""
PER_BIN = 1.25
"""Stddevs of the noise that a bin must add to a run of bins."""
SURELY = {"gaussian": 5.5, "laplace": 17.0}
"""Noise scales above which noise alone is with probability 2e-8."""
STANDS_OUT = {"gaussian": 5.0, "laplace": 8.0}
"""Stddevs of its sum that a run of bins of noise alone stays below, with probability .995 and more."""
TARGET_SHARE = 0.25
KEYED = ("text", "codes")
LEAST_NOISE = 0.02
"""Rows. Less noise than that is no use."""
NO_TEXT: Category = "(other)"
NO_CODE: Category = 0
"""Public placeholders where no category, or no class, was found."""
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
        bought = sum(column.kind != "boolean" for column in columns.features)
        of_target = 0.0 if columns.target.kind == "boolean" else TARGET_SHARE if bought else 1.0
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

    def event_of(self, number: int) -> Event | None:
        """What is drawn for a column; None where nothing is bought. The target has the last number."""
        match self._all[number].kind:
            case "numeric":
                return self.bin_mechanism(number).event(ANY_BINS.sensitivity(self.adjacency), self.adjacency)
            case "text" | "codes":
                return self.key_mechanism(number).event(self.adjacency)
            case "boolean":
                return None

    @property
    def events(self) -> tuple[Event, ...]:
        """The draws, one a column that is bought, in the order of the columns; the target's comes last."""
        last = len(self.columns.features)
        kinds = [(column.kind, number == last) for number, column in enumerate(self._all)]
        # Columns of one kind have equal events, and there may be many.
        made = {kind: self.event_of(kinds.index(kind)) for kind in set(kinds)}
        return tuple(event for event in map(made.__getitem__, kinds) if event is not None)

    @property
    def queries(self) -> tuple[ValueCounts | KeyCounts, ...]:
        """What is asked, in the order of `events`: public, so that rows in files are counted in one pass."""
        return tuple(
            KeyCounts(column=number) if column.kind in KEYED else self._bins(number)
            for number, column in enumerate(self._all)
            if column.kind != "boolean"
        )

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
        match column.kind:
            case "numeric":
                low, high = self._bounds(aggregator, number, f"feature {number + 1}", useless)
                return Numeric(column.name, low, high, missing=True)
            case "boolean":
                return Categorical(column.name, (False, True), missing=True)
            case "text" | "codes":
                found = self._keys(aggregator, number, f"feature {number + 1}")
                if found is None:
                    useless.append(f"{column.name!r} ({TOO_MANY}, all rows are '(other)')")
                elif not found:
                    useless.append(f"{column.name!r} (no category was found, all rows are '(other)')")
                ranked = sorted(found or (), key=lambda item: -item[1])[:MAX_CATEGORIES]
                kept = {key for key, _ in ranked}
                categories = tuple(key for key, _ in found or () if key in kept)
                return Categorical(column.name, categories or (NO_TEXT,), missing=True)

    def _target(self, aggregator: Aggregator, useless: list[str]) -> tuple[Feature, str | None]:
        """The target, and what to warn of its classes."""
        number, column = len(self.columns.features), self.columns.target
        match column.kind:
            case "numeric":
                low, high = self._bounds(aggregator, number, "the target", useless)
                return Numeric(column.name, low, high), None
            case "boolean":
                return Categorical(column.name, (False, True)), None
            case "text" | "codes":
                found = self._keys(aggregator, number, "the target")
                if found is None:
                    useless.append(f"{column.name!r} ({TOO_MANY})")
                found = found or ()
                classes = some_classes(found, text=column.kind == "text", most=self.most_classes)
                return Categorical(column.name, classes), class_warning(len(found), classes)

    def _bounds(self, aggregator: Aggregator, number: int, what: str, useless: list[str]) -> tuple[float, float]:
        query, purpose = self._bins(number), f"schema: bounds of {what}"
        edges = query.edges
        with aggregator.open(self._event(number), purpose=purpose) as round_:
            release = round_.release(query, self.bin_mechanism(number), purpose=purpose)
        full = SURELY[self.noise] * self._scale(number)
        counts = release.real[:, 0]
        low, high = likely_range(counts, edges, per_bin=PER_BIN * self._stddev(number), full=full)
        why = self._why_useless(number, counts, edges.index(low), edges.index(high))
        if why is not None:
            useless.append(f"{self._all[number].name!r} (its range [{low:.3g}, {high:.3g}] is {why})")
        return low, high

    def _bins(self, number: int) -> ValueCounts:
        return ValueCounts(column=number, edges=bin_edges(self.bins_per_octave(number)))

    def _why_useless(self, number: int, counts: NDArray[np.float64], first: int, last: int) -> str | None:
        """What is wrong with a range of bins from `first` up to `last`, by the released counts; None for nothing."""
        noise = STANDS_OUT[self.noise] * self._stddev(number)
        total, bins, zero = float(counts[first:last].sum()), last - first, len(counts) // 2
        if total < noise * math.sqrt(bins):
            return "no more than noise"
        if first <= zero < last and total - counts[zero] <= noise * math.sqrt(bins - 1):
            return "0, and noise beside it"
        return None

    def _stddev(self, number: int) -> float:
        return self._scale(number) * (1.0 if self.noise == "gaussian" else math.sqrt(2.0))

    def bins_per_octave(self, number: int) -> int:
        """How finely a column's values are told apart: the more finely, the more rows there are to a stddev of noise.

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
        record: dict[str, Any] = dataclasses.asdict(self)
        record["adjacency"] = self.adjacency.value
        if not self.columns.at_owners:  # as records were before there were others
            del record["columns"]["at_owners"]
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "SchemaPurchase":
        """The inverse of `to_record`."""
        columns = record["columns"]
        typed = TypedColumns(
            features=tuple(TypedColumn(**column) for column in columns["features"]),
            target=TypedColumn(**columns["target"]),
            at_owners=columns.get("at_owners", False),
        )
        return cls(**{**record, "columns": typed, "adjacency": Adjacency(record["adjacency"])})


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
    return [column.name for column in (*columns.features, columns.target) if column.kind in KEYED]


@functools.cache
def bin_edges(per_octave: int) -> tuple[float, ...]:
    """Even steps of each octave on both sides of 0, one bin around 0, and one beyond at each end; rising."""
    steps = [1.0 + i / per_octave for i in range(per_octave)]
    positive = [step * 2.0**octave for octave in OCTAVES for step in steps] + [2.0**OCTAVES.stop]
    return (*(-edge for edge in reversed(positive)), *positive)


ANY_BINS = ValueCounts(column=0, edges=(-1.0, 1.0))
"""Whatever the bins, one row moves one count."""


def likely_range(
    counts: NDArray[np.float64], edges: tuple[float, ...], *, per_bin: float, full: float
) -> tuple[float, float]:
    """The ends of the run of bins that stands out most from the noise, and of bins far from it that are surely full.

    docs/explanation/bought-schema.md#bought-schema-bounds.

    Args:
        counts: released, float64 (n_bins,).
        edges: n_bins + 1, rising.
        per_bin: what each bin of the run costs, in rows: the run has the largest sum of (count - per_bin).
        full: the count from which a bin is surely full, in rows.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts - per_bin)])
    lowest = np.minimum.accumulate(sums[:-1])
    last = int(np.argmax(sums[1:] - lowest))
    first = int(np.argmin(sums[: last + 1]))
    outposts = np.flatnonzero(counts >= full)
    if outposts.size:
        first, last = min(first, int(outposts[0])), max(last, int(outposts[-1]))
    return edges[first], edges[last + 1]


def some_classes(found: tuple[tuple[Category, int], ...], *, text: bool, most: int) -> tuple[Category, ...]:
    """The classes that showed, of one type, so that they sort, the commonest first; a placeholder where none did.

    Args:
        found: released (class, noisy number of rows).
        text: whether the placeholder for no class at all is a string.
        most: how many are kept, the commonest ones.
    """
    ranked = [key for key, _ in sorted(found, key=lambda item: -item[1])]
    if not ranked:
        return (NO_TEXT if text else NO_CODE,)
    strings = isinstance(ranked[0], str)
    return tuple([key for key in ranked if isinstance(key, str) is strings][:most])


def with_two_classes(schema: Schema) -> Schema:
    """The schema, with a class beside an only one, so that a plan for two or more can be carried out."""
    target = schema.target
    if not isinstance(target, Categorical) or len(target.categories) > 1:
        return schema
    (only,) = target.categories
    pair = (NO_TEXT, "(none)") if isinstance(only, str) else (NO_CODE, 1)
    other = next(each for each in pair if each != only)
    return dataclasses.replace(schema, target=Categorical(target.name, (only, other)))


def any_schema(columns: TypedColumns) -> Schema:
    """Some schema of these columns, for a rehearsal without rows."""

    def feature(column: TypedColumn, *, missing: bool) -> Feature:
        match column.kind:
            case "numeric":
                return Numeric(column.name, -1.0, 1.0, missing=missing)
            case "boolean":
                return Categorical(column.name, (False, True), missing=missing)
            case "text":
                return Categorical(column.name, ("a", "b"), missing=missing)
            case "codes":
                return Categorical(column.name, (0, 1), missing=missing)

    features = tuple(feature(column, missing=True) for column in columns.features)
    return Schema(features=features, target=feature(columns.target, missing=False))


def class_warning(found: int, classes: tuple[Category, ...]) -> str | None:
    """What to warn of: classes that are left out, or too few to tell apart. From released values alone.

    Args:
        found: how many classes showed.
        classes: the ones that are learned, or a placeholder.
    """
    declare = "declare the classes in the schema (ledgerwood.Categorical), which costs nothing, or raise epsilon"
    if not found:
        return (
            "no class showed in the privately estimated schema: every row is predicted as the placeholder "
            f"{classes[0]!r}; {declare}"
        )
    if len(classes) < found:
        return (
            f"{found} classes showed in the privately estimated schema, and {len(classes)} of them are learned, the "
            "commonest ones of one type (strings or numbers): rows of the others take no part; raise n_estimators "
            f"where there are fewer trees than classes, or {declare}"
        )
    if len(classes) == 1:
        return (
            f"one class, {classes[0]!r}, showed in the privately estimated schema: every row is predicted as "
            f"it; {declare}"
        )
    return None


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
