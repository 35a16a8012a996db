"""`check_sensitivity`: a search for two neighbouring data sets that exceed a stated sensitivity.

docs/explanation/replay.md#sensitivity-search: what is tried, and what a search can and cannot show. The exact values of
this library's own queries are computed without a release: for the owner of the data, and for tests.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import Adjacency, require_adjacency
from ledgerwood.curator import (
    Categorical,
    ColumnTable,
    CorrectSplits,
    GiniSplits,
    LabelledSplits,
    LeafLabels,
    Schema,
    SplitGains,
    Table,
)
from ledgerwood.curator.queries.registry import COLUMNS, TREES, name_of
from ledgerwood.errors import InvalidParameter, PrivacyWarning
from ledgerwood.mechanisms import BallShifts, BlockShifts, BoxShifts, Grid, UtilityRange
from ledgerwood.pages.shown import Told
from ledgerwood.verification.figures import Seeded, beside, generator_of
from ledgerwood.verification.sensitivity.distances import Gap, Norm, Shifts, shift_gap
from ledgerwood.verification.sensitivity.domains import Data, Neighbour, RowKind, domain
from ledgerwood.verification.sensitivity.pair_search import FoundPair, PlainGauge, Search, Verdict

if TYPE_CHECKING:
    from ledgerwood.curator import Schema


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SensitivityReport(Told):
    """The result of a sensitivity check; for the data owner only, if it began with data.

    Args:
        ratio: the largest change found / the claim; inf if the shapes of the values differ, or if one of them is not
            finite.
        verdict: "refuted" if the claim is certainly exceeded; "refuted up to rounding" if the floating-point result
            exceeds the claim, and rounding explains it: noise must cover that too; else "not refuted".
        why: what the verdict rests on besides: the distance in exact fractions or longer floats, where the query takes
            them; "" if nothing.
        claimed: the sensitivity, or the shift set of a query of this library.
        distance: between the two values of the pair, in the norm; of a shift set, the Euclidean one (for utilities, the
            range).
        norm: the norm of the claim; "shifts" for a shift set.
        adjacency: how the two data sets of the pair differ.
        data, neighbour: the pair; the neighbour says which row is new, and which one is gone.
        values: the values of the query on both.
        change: the pair in words.
        evaluations: the evaluations of the query, in all.
        refusals: the number of those that raised an error instead of returning a value; none of these was compared.
        refusal: the first of these errors; "" if there was none.
        left_out: what the search did not look at, and why, in words.
    """

    ratio: float
    verdict: Verdict
    why: str
    claimed: float | Shifts
    distance: float
    norm: Norm | str
    adjacency: Adjacency
    data: Data
    neighbour: Neighbour[Data]
    values: tuple[Any, Any]
    change: str
    evaluations: int
    refusals: int
    refusal: str
    left_out: tuple[str, ...]

    @property
    def refuted(self) -> bool:
        """True if the claim is broken for certain, rounding apart."""
        return self.verdict == "refuted"

    def __str__(self) -> str:
        verdict = f"was {self.verdict}" if self.verdict == "not refuted" else f"is {self.verdict}"
        claim = f"sensitivity {self.claimed!r} ({self.norm}, {self.adjacency.value}) {verdict}"
        times = beside(self.ratio, 1.0)[0]
        lines = [f"{claim}: {times} times it, by {self.change}; {self.evaluations} evaluations"]
        if self.why:
            lines.append(self.why)
        lines += [f"not looked at: {words}" for words in self.left_out]
        if self.verdict != "not refuted":
            lines.append(f"values {shown(self.values[0])} and {shown(self.values[1])}")
            lines.append(f"of the data {shown(self.data)} and {shown(self.neighbour.data)}")
        if self.refusals:
            lines.append(f"{self.refusals} evaluations raised an error and show nothing; the first: {self.refusal}")
        return "\n".join(lines)


def check_sensitivity(
    query: Any,
    *,
    claimed: float | Shifts | None = None,
    norm: Norm = "l2",
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    data: Data | None = None,
    schema: "Schema | None" = None,
    bounds: tuple[Any, Any] | None = None,
    columns: int | None = None,
    rows: RowKind = "any",
    ordered: bool = False,
    bins: int = 256,
    evaluations: int = 2_000,
    seconds: float | None = None,
    tolerance: float = 1e-9,
    rng: Seeded = None,
) -> SensitivityReport:
    """Search for neighbouring data sets on which a query moves by more than its stated sensitivity.

    A pair that exceeds the claim refutes it, and is returned. If none is found, the claim is not proven: see the ratio,
    which is 1 if the search has reached the claim.

    Args:
        query: a function from data to a number, an array, or a tuple or mapping of them, without randomness; or a query
            of `ledgerwood.curator`, whose exact value over a table is taken (it needs a schema).
        claimed: the sensitivity, >= 0, in the unit of the values; None for a query of this library: what it states.
        norm: the norm of the difference of two values, over all numbers: "l1", "l2", "linf", or "range" (of
            utilities).
        adjacency: which data sets are neighbours. Under zero-out, rows are added and removed.
        data: to begin with, and the kind of data that the query takes: an array (n,) or (n, d), or a tuple (X, y) or
            (X, y, weights). Their columns' ranges and categories are taken for the valid ones.
        schema: the schema of rows (X, y), with weights where it has a weight bound, or of X alone where it has no
            target.
        bounds: (low, high) of an array's values, for all columns or for each.
        columns: the number of columns of an array (n, d); None for (n,). Without data, schema and bounds: of values in
            [-1, 1].
        rows: "any" also tries values that the columns do not allow: NaN, infinities, 1e300, unseen categories. Use
            "valid" for a sensitivity that is claimed for clean data only.
        ordered: whether data sets with the same rows in another order are different ones; otherwise the value must not
            depend on the order.
        bins: the bins of a table of this library.
        evaluations: the largest number of evaluations of the query.
        seconds: after which the search ends, of a slow query; None for no limit. `left_out` says what was not tried.
        tolerance: the tolerance of a claim on a plain function, relative: a smaller excess counts as rounding.
        rng: for the rows that are drawn, or its seed; seed 0 if not given.

    Raises:
        InvalidParameter: no claim, a query that is random, or that raises on all data; bad arguments.

    Source: the search over a row's values is that of docs/explanation/replay.md#sensitivity-search.
    """
    if rows not in {"any", "valid"}:
        raise _validate.fail("rows", rows, "'any' or 'valid'", "rows")
    if norm not in {"l1", "l2", "linf", "range"}:
        raise _validate.fail("norm", norm, "'l1', 'l2', 'linf' or 'range'", "statistic")
    require_adjacency(adjacency)
    evaluations = _validate.count("evaluations", evaluations, "evaluations", minimum=4)
    tolerance = _validate.non_negative("tolerance", tolerance, "ratio")
    seconds = None if seconds is None else _validate.positive("seconds", seconds, "seconds")
    if rows == "valid" and data is None and schema is None and bounds is None:
        raise InvalidParameter("valid rows need data, a schema or bounds, which say what is valid (unit: rows)")
    if callable(query):
        if not isinstance(claimed, int | float | np.number):
            raise _validate.fail("claimed", claimed, "a number >= 0, of a function", "statistic")
        stated = _validate.non_negative("claimed", claimed, "statistic")
        gauge: Any = PlainGauge(query=query, claimed=stated, norm=norm, tolerance=tolerance)
        shown: float | Shifts = stated
    else:
        if schema is None:
            raise InvalidParameter(f"the exact value of {name_of(query)} needs a schema (unit: columns)")
        gauge = TableGauge.of(query, schema, adjacency, claimed, bins=bins)
        shown = gauge.shifts
    search = Search(
        gauge=gauge, domain=domain(data, schema, bounds, columns), adjacency=adjacency, rows=rows, ordered=ordered,
        evaluations=evaluations, generator=generator_of(rng, unsaid=0), seconds=seconds,
    )  # fmt: skip
    found = search.run(None if data is None else search.domain.rows(data))
    return _report(found, search, shown, norm if isinstance(shown, float) else "shifts", adjacency)


def assert_sensitivity(
    query: Any,
    *,
    claimed: float | Shifts | None = None,
    norm: Norm = "l2",
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    data: Data | None = None,
    schema: "Schema | None" = None,
    bounds: tuple[Any, Any] | None = None,
    columns: int | None = None,
    rows: RowKind = "any",
    ordered: bool = False,
    bins: int = 256,
    evaluations: int = 2_000,
    seconds: float | None = None,
    tolerance: float = 1e-9,
    rng: Seeded = None,
) -> SensitivityReport:
    """Assert, in a test, that `check_sensitivity` does not refute a claim.

    Args and errors: as of `check_sensitivity`.

    Raises:
        AssertionError: it is refuted; the message shows the pair of data sets and both values.

    Warns:
        PrivacyWarning: it is refuted up to rounding.
    """
    __tracebackhide__ = True
    report = check_sensitivity(
        query, claimed=claimed, norm=norm, adjacency=adjacency, data=data, schema=schema, bounds=bounds,
        columns=columns, rows=rows, ordered=ordered, bins=bins, evaluations=evaluations, seconds=seconds,
        tolerance=tolerance, rng=rng,
    )  # fmt: skip
    if report.refuted:
        raise AssertionError(str(report))
    if report.verdict != "not refuted":
        warnings.warn(
            f"{report}\nNoise that is made for the claim does not cover this. Round rows to a public grid first, so "
            "that sums are exact, or claim what the floats can move by",
            PrivacyWarning,
            stacklevel=2,
        )
    return report


def _report(
    found: FoundPair, search: Search, claimed: float | Shifts, norm: Norm | str, adjacency: Adjacency
) -> SensitivityReport:
    first, second, origin = found.pair.tables()
    neighbour = Neighbour(data=search.domain.data(second), rows=len(first), origin=origin)
    return SensitivityReport(
        ratio=found.gap.ratio, verdict=found.verdict, why=found.why, claimed=claimed, distance=found.gap.distance,
        norm=norm, adjacency=adjacency, data=search.domain.data(first), neighbour=neighbour,
        values=(search.output(first), search.output(second)), change=found.pair.words(), evaluations=search.evaluated,
        refusals=search.refusals, refusal=search.refusal, left_out=tuple(search.left_out),
    )  # fmt: skip


def shown(value: object) -> str:
    """A value in at most 400 characters, long arrays by their ends."""
    with np.printoptions(threshold=20, edgeitems=3, linewidth=1_000, precision=17):
        text = repr(value)
    return text if len(text) <= 400 else f"{text[:397]}..."


Integers = NDArray[np.int64]
Choices = SplitGains | GiniSplits | CorrectSplits | LabelledSplits | LeafLabels
"""Selections whose utilities are arrays (nodes, candidates)."""
_ALL = np.empty(0, dtype=np.bool_)
"""A sample of all rows."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableGauge:
    """A query over tables, against its shift set."""

    read: Callable[[Data], Integers]
    grid: Grid
    shifts: Shifts

    @classmethod
    def of(cls, query: Any, schema: Schema, adjacency: Adjacency, claimed: object, *, bins: int) -> "TableGauge":
        """Returns the gauge of a query of `ledgerwood.curator`, against its stated or the given claim.

        Raises:
            InvalidParameter: no query whose exact value a table with a schema has, or a claim that is no shift set.
        """
        if query not in TREES and query not in COLUMNS and not isinstance(query, Choices):
            raise InvalidParameter(
                f"{type(query).__name__} is neither a function nor a query that a table with a schema can evaluate "
                "(unit: statistic)"
            )
        shifts: Any = query.sensitivity(adjacency) if claimed is None else claimed
        if not isinstance(shifts, BoxShifts | BallShifts | BlockShifts | UtilityRange):
            raise InvalidParameter(f"claimed={shifts!r} must be a shift set for a query of a table (unit: statistic)")
        grid = query.counts.grid if isinstance(query, LeafLabels) else query.grid
        return cls(read=_reader(query, schema, bins), grid=grid, shifts=shifts)

    def value(self, data: Data) -> Integers:
        """The value in steps of the grid."""
        return self.read(data)

    def gap(self, first: Integers, second: Integers, rows: int) -> Gap:
        """Against the shift set, exact."""
        return shift_gap(first, second, grid=self.grid, shifts=self.shifts)

    def shown(self, value: Integers) -> NDArray[np.float64]:
        """The value in the columns' units."""
        return np.asarray(value * np.array(self.grid.steps), dtype=np.float64)

    def exactly(self, first: Data, second: Data, rows: int) -> None:
        """Its gaps are of integers: there is nothing to be told."""


def _reader(query: Any, schema: Schema, bins: int) -> Callable[[Data], Integers]:
    loss: Literal["squared", "logistic"] = "logistic" if isinstance(schema.target, Categorical) else "squared"

    def read(data: Data) -> Integers:
        X, y, weights = (*data, None, None)[:3] if isinstance(data, tuple) else (data, None, None)
        if query in COLUMNS:
            return ColumnTable.from_data(X, schema, y=y).reader(query)(_ALL)
        table = Table.from_data(X, y, schema, loss=loss, bins=bins, sample_weight=weights)
        if not isinstance(query, Choices):
            return table.reader(query)(_ALL)
        utilities: Integers = table.evidence(query)(_ALL)
        return utilities.reshape(-1, query.classes) if isinstance(query, LeafLabels) else utilities

    return read
