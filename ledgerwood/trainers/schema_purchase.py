"""A schema that nobody declared: what of it is bought, at which noise, and how releases become a `Schema`.

docs/explanation/bought-schema.md. What is bought of each column is fixed by public names and types alone, and so are
the events; only the values of the schema depend on what was released.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ledgerwood import _validate
from ledgerwood.accounting import gdp
from ledgerwood.accounting.adjacency import Adjacency, Budget
from ledgerwood.accounting.events import Event
from ledgerwood.accounting.splitting import split
from ledgerwood.curator import (
    MAX_CATEGORIES,
    Aggregator,
    BinCounts,
    Categorical,
    Category,
    Feature,
    KeyCounts,
    Numeric,
    Schema,
    TypedColumn,
    TypedColumns,
    real,
)
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import GaussianMechanism, LaplaceMechanism, StabilityHistogramMechanism, log_edges

LARGEST, SMALLEST = 2.0**40, 2.0**-20
"""Public ends of what is looked for: beyond a trillion a number is clamped, below a millionth it is as good as 0."""
EDGES = log_edges(-LARGEST, LARGEST, SMALLEST)
FALSE_BINS = 0.05
"""Largest probability that noise alone puts any empty bin of a column into its range."""
LEAST_NOISE = 0.02
"""Rows. Less noise than that is no use."""
NO_TEXT: tuple[Category, Category] = ("(other)", "(none)")
NO_CODES: tuple[Category, Category] = (0, 1)
"""Public placeholders of classes that were not found."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaPurchase:
    """What is bought of each column: bounds of numbers, categories of the others, one draw each.

    Args:
        columns: the public names and types.
        adjacency: the relation under which every event is stated.
        noise: of the counts of bins: "gaussian", or "laplace" for pure privacy.
        noise_scale: stddev of the Gaussian noise, or scale of the Laplace noise, on a count, in rows; the noise of
            categories is discrete Laplace of this scale.
        key_delta: what each categorical column may cost of delta; 0 where there is none.
    """

    columns: TypedColumns
    adjacency: Adjacency
    noise: Literal["gaussian", "laplace"]
    noise_scale: float
    key_delta: float

    def __post_init__(self) -> None:
        if self.noise not in ("gaussian", "laplace"):
            raise _validate.fail("noise", self.noise, "'gaussian' or 'laplace'", "name")
        _validate.positive("noise_scale", self.noise_scale, "rows")
        if any(column.kind in ("text", "codes") for column in self._all):
            _validate.positive("key_delta", self.key_delta, "probability")

    @classmethod
    def planned(cls, columns: TypedColumns, budget: Budget, *, share: float) -> "SchemaPurchase":
        """The purchase for a share of the budget: of mu**2 and of delta, or of epsilon where delta is 0.

        Raises:
            InvalidParameter: a share outside (0, 1), or categories at delta 0.
        """
        if not 0.0 < _validate.real("schema_share", share, "share of the budget") < 1.0:
            raise _validate.fail("schema_share", share, "in (0, 1)", "share of the budget")
        names = [column.name for column in (*columns.features, columns.target) if column.kind in ("text", "codes")]
        bought = max(1, sum(column.kind != "boolean" for column in (*columns.features, columns.target)))
        adjacency = budget.adjacency
        if budget.delta == 0.0:
            if names:
                raise InvalidParameter(
                    f"delta=0.0 (unit: probability) buys no categories, which columns {names} need: what nobody listed "
                    "must be able to show; give delta > 0, or declare a schema"
                )
            shares = split(budget, {"schema": share, "trees": 1.0 - share}, currency="epsilon")
            scale = shares["schema"].laplace_multiplier(count=bought)
            scale *= 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
            return cls(columns=columns, adjacency=adjacency, noise="laplace", noise_scale=scale, key_delta=0.0)
        mu = math.sqrt(share / bought) * gdp.mu(budget.epsilon, budget.delta)
        moved = math.sqrt(2.0) if adjacency is Adjacency.REPLACE_ONE else 1.0
        return cls(
            columns=columns,
            adjacency=adjacency,
            noise="gaussian",
            noise_scale=max(moved / mu, LEAST_NOISE),
            key_delta=share * budget.delta / len(names) if names else 0.0,
        )

    @property
    def _all(self) -> tuple[TypedColumn, ...]:
        return (*self.columns.features, self.columns.target)

    @property
    def bin_mechanism(self) -> GaussianMechanism | LaplaceMechanism:
        """Noise of the counts of one column's bins."""
        if self.noise == "gaussian":
            return GaussianMechanism(stddev=self.noise_scale)
        return LaplaceMechanism(scales=(self.noise_scale,))

    @property
    def key_mechanism(self) -> StabilityHistogramMechanism:
        """Which categories of one column show."""
        # Where a row is replaced, two categories change: 2 / scale, against sqrt(2) / stddev for bins.
        moved = math.sqrt(2.0) if self.adjacency is Adjacency.REPLACE_ONE else 1.0
        return StabilityHistogramMechanism.for_delta(moved * self.noise_scale, self.key_delta)

    @property
    def bin_threshold(self) -> float:
        """Rows that a bin must seem to have, so that no empty bin does but with probability `FALSE_BINS` a column."""
        tail = FALSE_BINS / (len(EDGES) - 1)
        quantile = -float(ndtri(tail)) if self.noise == "gaussian" else -math.log(2.0 * tail)
        return max(1.0, self.noise_scale * quantile)

    @property
    def events(self) -> tuple[Event, ...]:
        """The draws, one a column that is bought, in the order of the columns; the target's comes last."""
        kinds = {"numeric": self._bin_event, "text": self._key_event, "codes": self._key_event}
        made = {kind: make() for kind, make in kinds.items() if any(column.kind == kind for column in self._all)}
        return tuple(made[column.kind] for column in self._all if column.kind in made)

    def _bin_event(self) -> Event:
        sensitivity = BinCounts(column=0, edges=EDGES).sensitivity(self.adjacency)
        return self.bin_mechanism.event(sensitivity, self.adjacency)

    def _key_event(self) -> Event:
        return self.key_mechanism.event(self.adjacency)

    def require_fit(self) -> None:
        """Refuse noise that cannot be drawn, before a budget moves."""
        self.bin_mechanism.require_fit(BinCounts(column=0, edges=EDGES).grid)

    def buy(self, aggregator: Aggregator) -> Schema:
        """The schema, from one release a column; nothing in it is known of the rows but by these.

        Args:
            aggregator: over the columns, with a grant that holds `events`.
        """
        features = tuple(self._feature(aggregator, i, column) for i, column in enumerate(self.columns.features))
        return Schema(features=features, target=self._target(aggregator))

    def _feature(self, aggregator: Aggregator, number: int, column: TypedColumn) -> Feature:
        match column.kind:
            case "numeric":
                low, high = self._bounds(aggregator, number, f"feature {number + 1}")
                return Numeric(column.name, low, high, missing=True)
            case "boolean":
                return Categorical(column.name, (False, True), missing=True)
            case "text" | "codes":
                found = self._keys(aggregator, number, f"feature {number + 1}")
                ranked = sorted(found, key=lambda item: -item[1])[:MAX_CATEGORIES]
                kept = {key for key, _ in ranked}
                categories = tuple(key for key, _ in found if key in kept)
                return Categorical(column.name, categories or NO_TEXT[:1], missing=True)

    def _target(self, aggregator: Aggregator) -> Feature:
        number, column = len(self.columns.features), self.columns.target
        match column.kind:
            case "numeric":
                low, high = self._bounds(aggregator, number, "the target")
                return Numeric(column.name, low, high)
            case "boolean":
                return Categorical(column.name, (False, True))
            case "text" | "codes":
                found = self._keys(aggregator, number, "the target")
                return Categorical(column.name, two_classes(found, text=column.kind == "text"))

    def _bounds(self, aggregator: Aggregator, number: int, what: str) -> tuple[float, float]:
        query, purpose = BinCounts(column=number, edges=EDGES), f"schema: bounds of {what}"
        with aggregator.open(self._bin_event(), purpose=purpose) as round_:
            counts = real(round_.release(query, self.bin_mechanism, purpose=purpose))[:, 0]
        return hull(counts, EDGES, self.bin_threshold)

    def _keys(self, aggregator: Aggregator, number: int, what: str) -> tuple[tuple[Category, int], ...]:
        purpose = f"schema: categories of {what}"
        with aggregator.open(self._key_event(), purpose=purpose) as round_:
            return round_.release_keys(KeyCounts(column=number), self.key_mechanism, purpose=purpose).counts

    def to_record(self) -> dict[str, object]:
        """Plain JSON values."""
        record = dataclasses.asdict(self)
        record["adjacency"] = self.adjacency.value
        return record

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "SchemaPurchase":
        """The inverse of `to_record`."""
        columns = record["columns"]
        typed = TypedColumns(
            features=tuple(TypedColumn(**column) for column in columns["features"]),
            target=TypedColumn(**columns["target"]),
        )
        return cls(**{**record, "columns": typed, "adjacency": Adjacency(record["adjacency"])})


def hull(counts: NDArray[np.float64], edges: tuple[float, ...], threshold: float) -> tuple[float, float]:
    """The ends of the bins that seem to have `threshold` rows; of the fullest bin, where none does.

    Args:
        counts: released, float64 (n_bins,).
        edges: n_bins + 1, rising.
        threshold: in rows.
    """
    full = np.flatnonzero(counts >= threshold)
    first, last = (int(full[0]), int(full[-1])) if full.size else (int(np.argmax(counts)),) * 2
    return edges[first], edges[last + 1]


def two_classes(found: tuple[tuple[Category, int], ...], *, text: bool) -> tuple[Category, Category]:
    """The two classes that most rows seem to have, padded with public placeholders; of one type, so that they sort.

    Args:
        found: released (class, noisy number of rows).
        text: whether placeholders for no class at all are strings.
    """
    ranked = [key for key, _ in sorted(found, key=lambda item: -item[1])]
    strings = isinstance(ranked[0], str) if ranked else text
    alike = [key for key in ranked if isinstance(key, str) is strings]
    padding = [key for key in (NO_TEXT if strings else NO_CODES) if key not in alike]
    first, second = [*alike, *padding][:2]
    return first, second
