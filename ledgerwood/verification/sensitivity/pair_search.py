"""The search behind `check_sensitivity`: pairs of neighbouring tables, extreme ones first, then coordinate ascent."""

import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, final

import numpy as np

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.errors import InvalidParameter
from ledgerwood.verification.sensitivity.distances import Exact, Gap, Norm, QueryValue, exactly, plain_gap, value_of
from ledgerwood.verification.sensitivity.domains import Data, Domain, Row, RowKind, Rows

_SHARES = (0.5, 0.25, 0.125, 2.0**-5, 2.0**-8, 2.0**-12)
"""Of a column's width: how far a value is moved, in turn."""
_ENUMERATED = 0.6
"""Of the evaluations, at most: extreme pairs; the rest is for the ascent."""
_STARTS = 3
_SIZES = 40
"""Numbers of rows that are gone through one by one."""
_GIVEN = 100
"""Of the rows that are given, so many are looked at: a query is evaluated thousands of times."""


class Gauge(Protocol):
    """Evaluates a query, and measures the distance of two of its values."""

    def value(self, data: Data) -> Any:
        """The query's value on data of its own."""

    def gap(self, first: Any, second: Any, rows: int) -> Gap:
        """The gap of two values, for tables of at most `rows` rows."""

    def shown(self, value: Any) -> Any:
        """The value, for a reader."""

    def exactly(self, first: Data, second: Data, rows: int) -> Exact | None:
        """The distance of the query's values on two tables without rounding; None if it is not known."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlainGauge:
    """A gauge of any function and a number that is claimed for it."""

    query: Callable[[Data], Any]
    claimed: float
    norm: Norm
    tolerance: float

    def value(self, data: Data) -> QueryValue:
        """The value that the function returned."""
        with np.errstate(all="ignore"):  # overflow and NaN are what is looked for
            return value_of(self.query(data))

    def gap(self, first: QueryValue, second: QueryValue, rows: int) -> Gap:
        """The gap in the norm, against the claim."""
        return plain_gap(first, second, claimed=self.claimed, norm=self.norm, rows=rows, tolerance=self.tolerance)

    def shown(self, value: QueryValue) -> Any:
        """The numbers; what there is besides, where there are none."""
        return np.array(value.numbers.tolist()) if len(value.numbers) else value.shape

    def exactly(self, first: Data, second: Data, rows: int) -> Exact | None:
        """The distance in fractions, or in longer floats."""
        return exactly(self.query, first, second, claimed=self.claimed, norm=self.norm, rows=rows)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TablePair:
    """Two neighbouring tables.

    Args:
        shared: the rows of both.
        gone: the row of the first one only.
        new: the row of the second one only.
        at: their place among the shared ones.
        order: the order of a pair that differs in the order of its rows only: of each row of the second table, its
            place in the first one.
    """

    shared: Rows
    gone: Row | None = None
    new: Row | None = None
    at: int = 0
    order: tuple[int, ...] | None = None

    def tables(self) -> tuple[Rows, Rows, tuple[int, ...]]:
        """Both tables, and for each row of the second its index in the first, -1 for the new row."""
        if self.order is not None:
            return self.shared, tuple(self.shared[place] for place in self.order), self.order
        at, shared = self.at, self.shared
        first, second = (shared if row is None else (*shared[:at], row, *shared[at:]) for row in (self.gone, self.new))
        places = list(range(len(first)))
        if self.gone is not None:
            del places[at]
        if self.new is not None:
            places.insert(at, -1)
        return first, second, tuple(places)

    def words(self) -> str:
        """The difference in words."""
        if self.order is not None:
            return f"{len(self.shared)} rows in another order"
        besides = f"{len(self.shared)} others"
        if self.gone is None:
            return f"row {self.new!r} added to {besides}"
        if self.new is None:
            return f"row {self.gone!r} removed from {besides}"
        return f"row {self.gone!r} replaced by {self.new!r} among {besides}"


Verdict = Literal["refuted", "refuted up to rounding", "not refuted"]


@final
@dataclass(frozen=True, slots=True)
class FoundPair:
    """The pair that shows most, so far, and in the end what it shows."""

    pair: TablePair
    gap: Gap
    verdict: Verdict = "not refuted"
    why: str = ""


@final
class Search:
    """One search; see `check_sensitivity`, whose arguments these are."""

    def __init__(
        self, *, gauge: Gauge, domain: Domain, adjacency: Adjacency, rows: RowKind, ordered: bool, evaluations: int,
        generator: np.random.Generator, seconds: float | None = None,
    ) -> None:  # fmt: skip
        self.gauge = gauge
        self.domain = domain
        self.rows = rows
        self.evaluated = self.refusals = 0
        self.refusal = ""
        self._replacing = adjacency is Adjacency.REPLACE_ONE
        self._ordered = ordered
        self._most = evaluations
        self._generator = generator
        self._kept: tuple[Rows, Row | None, int, Any] | None = None
        self.left_out: list[str] = []
        self._rounding: FoundPair | None = None
        self._seconds, self._start = seconds, time.perf_counter()

    def run(self, given: Rows | None) -> FoundPair:
        """The pair that shows most, and what it shows.

        Raises:
            InvalidParameter: the query raises on all data, or is random.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of means of nothing, and the like
            best = self._extreme(given)
            self._require_same(best[0])
            if best[0].gap.refuted and best[0].gap.ratio == math.inf:
                return self._judged([best[0]])  # nothing shows more
            climbed = [self._ascent(start) for start in best if start.pair.order is None]
            return self._judged(sorted([*best, *climbed], key=lambda one: one.gap.key, reverse=True))

    def _judged(self, found: list[FoundPair]) -> FoundPair:
        """The first pair whose breach is none of rounding; else the one that rounding moves farthest, or the first."""
        breaches = [one for one in found if one.gap.refuted][:_STARTS]
        if self._rounding is not None:
            breaches.append(self._rounding)
        rounded: FoundPair | None = None
        for one in breaches:
            first, second, _ = one.pair.tables()
            exact = None
            if math.isfinite(one.gap.distance):
                exact = self.gauge.exactly(
                    self.domain.data(first), self.domain.data(second), max(len(first), len(second))
                )
            if exact is None:
                breach = one.gap.refuted
            elif one.pair.order is not None:  # the same data set
                breach = one.gap.refuted and exact.distance > 0.0
            else:
                breach = exact.breach
            if breach:
                return replace(
                    one, verdict="refuted", why="" if exact is None else f"{exact.arithmetic} show the breach too"
                )
            if rounded is None:
                why = "whether it is rounding alone is open: the query takes neither fractions nor longer floats"
                if exact is not None:
                    why = f"in {exact.arithmetic} the values are {exact.distance!r} apart, which the claim allows"
                rounded = replace(one, verdict="refuted up to rounding", why=why)
        return rounded or found[0]

    def _late(self) -> bool:
        """Returns whether the time is used up."""
        return self._seconds is not None and time.perf_counter() - self._start > self._seconds

    def _stopped(self, what: str) -> None:
        """Say once what was not looked at."""
        why = f"seconds={self._seconds:g}" if self._late() else f"evaluations={self._most}"
        words = f"{what} ({why} was used up after {self.evaluated} evaluations)"
        if not any(known.startswith(what) for known in self.left_out):
            self.left_out.append(words)

    def _extreme(self, given: Rows | None) -> list[FoundPair]:
        """The best few of the extreme pairs; at least one."""
        found: list[FoundPair] = []
        limit = int(_ENUMERATED * self._most)
        if given is not None and len(given) > _GIVEN:
            self.left_out.append(f"of the {len(given)} rows that were given, {_GIVEN} were looked at")
        for pair in self._pairs(given):
            gap = self._gap(pair)
            if gap is not None:
                found.append(FoundPair(pair, gap))
                if gap.refuted and gap.ratio == math.inf:
                    break
            if self.evaluated >= limit or (found and self._late()):
                self._stopped("extreme pairs, the later ones")
                break
        if not found:
            raise InvalidParameter(
                f"the query raised on all of {self.evaluated} data sets, the first time {self.refusal}; data= or "
                "schema= says what it takes (unit: rows)"
            )
        return sorted(found, key=lambda one: one.gap.key, reverse=True)[:_STARTS]

    def output(self, rows: Rows) -> Any:
        """The query's value on a table that it took before, for a reader."""
        return self.gauge.shown(self.gauge.value(self.domain.data(rows)))

    def _value(self, rows: Rows) -> Any:
        """None if the query raises."""
        self.evaluated += 1
        try:
            return self.gauge.value(self.domain.data(rows))
        except Exception as error:  # noqa: BLE001 - a query may raise anything, and the report says that it did
            self.refusals += 1
            self.refusal = self.refusal or f"{type(error).__name__}: {error}"
        return None

    def _gap(self, pair: TablePair) -> Gap | None:
        """None if the query raises on one of the two."""
        first, second, _ = pair.tables()
        kept = self._kept
        if kept is None or kept[0] is not pair.shared or kept[1] is not pair.gone or kept[2] != pair.at:
            # The next pair is likely to have the same first table.
            kept = self._kept = pair.shared, pair.gone, pair.at, self._value(first)
        one, other = kept[3], self._value(second)
        if one is None or other is None:
            return None
        gap = self.gauge.gap(one, other, max(len(first), len(second)))
        if pair.order is not None:  # the same data set: no claim allows any difference
            if gap.moved:
                return Gap(distance=gap.distance, ratio=math.inf, refuted=True, moved=True)
            if not gap.rounding:
                return None
        if gap.rounding and (self._rounding is None or gap.ratio > self._rounding.gap.ratio):
            self._rounding = FoundPair(pair, gap)
        return gap

    def _require_same(self, found: FoundPair) -> None:
        first = found.pair.tables()[0]
        one, other = self._value(first), self._value(first)
        if one is None or other is None or self.gauge.gap(one, other, len(first)).moved:
            raise InvalidParameter("the query is random: the same data gave two values (unit: statistic)")

    def _bases(self, given: Rows | None) -> Iterator[Rows]:
        """Tables to begin with: given ones, mixed ones, all alike, half and half, empty."""
        low, high = (row for _, row in self.domain.extremes("valid")[:2])
        if given is not None:
            yield given[:_GIVEN]
            yield given[:5]
        yield self.domain.drawn(5, self._generator)
        yield ()
        yield (low,) * 2 + (high,) * 2
        yield (low,) * 3
        yield (high,) * 3
        yield (low,)
        yield (high,)
        yield (low,) * 3 + (high,) * 2
        yield self.domain.drawn(2, self._generator)
        yield self.domain.drawn(20, self._generator)
        yield (high,) * 20 + (low,)

    def _pairs(self, given: Rows | None) -> Iterator[TablePair]:
        """Extreme pairs: each base with each row first, base by base in turns."""
        extremes = [row for _, row in self.domain.extremes(self.rows)]
        turns = [*(self._of_base(base, extremes) for base in self._bases(given)), self._sizes()]
        # So that no base waits for all rows of another: some pairs of each, again and again.
        while turns:
            for turn in list(turns):
                some = list(itertools.islice(turn, 16))
                if not some:
                    turns.remove(turn)
                yield from some

    def _sizes(self) -> Iterator[TablePair]:
        """One row more and one more: a number of rows from which on something else is done."""
        if self._replacing:
            return
        high = self.domain.extremes("valid")[1][1]
        for n in range(_SIZES):
            yield TablePair(shared=(high,) * n, new=high, at=n)

    def _of_base(self, base: Rows, extremes: list[Row]) -> Iterator[TablePair]:
        if len(base) > 1 and not self._ordered:
            yield TablePair(shared=base, order=tuple(range(len(base)))[::-1])
        rows = [*extremes, *base[:1]]  # one that is there already, too
        places = (len(base), 0) if self._ordered else (len(base),)
        if not self._replacing:
            for at, row in itertools.product(places, rows):
                yield TablePair(shared=base, new=row, at=at)
            for place in self._some(len(base)):
                yield TablePair(shared=base[:place] + base[place + 1 :], gone=base[place], at=place)
            return
        ends = extremes[:4]
        for gone, new, at in itertools.product(ends, rows, places):
            if gone is not new:
                yield TablePair(shared=base, gone=gone, new=new, at=at)
        for place in self._some(len(base)):
            for row in rows:
                yield TablePair(shared=base[:place] + base[place + 1 :], gone=base[place], new=row, at=place)

    def _some(self, n: int) -> list[int]:
        """At most ten places of n."""
        return list(range(n)) if n <= 10 else sorted(self._generator.choice(n, 10, replace=False).tolist())

    def _ascent(self, start: FoundPair) -> FoundPair:
        """Coordinate by coordinate uphill, until nothing shows more or the evaluations are used up."""
        best, improved = start, True
        for share in _SHARES:
            improved = True
            while improved:
                improved = False
                for pair in self._steps(best.pair, share):
                    if self.evaluated + 2 > self._most or self._late():
                        self._stopped("steps uphill, the later ones")
                        return best
                    gap = self._gap(pair)
                    if gap is not None and gap.key > best.gap.key:
                        best, improved = FoundPair(pair, gap), True
                        break
                if best.gap.refuted and best.gap.ratio == math.inf:
                    return best
        return best

    def _steps(self, pair: TablePair, share: float) -> Iterator[TablePair]:
        """Pairs that differ in one value, of the changed row first; then with one shared row more or less."""
        for place in range(len(self.domain.columns)):
            if pair.new is not None:
                yield from (replace(pair, new=row) for row in self._moved(pair.new, place, share))
            if pair.gone is not None:
                yield from (replace(pair, gone=row) for row in self._moved(pair.gone, place, share))
        for index in self._some(len(pair.shared)):
            shared = pair.shared
            yield replace(pair, shared=shared[:index] + shared[index + 1 :], at=min(pair.at, len(shared) - 1))
            yield replace(pair, shared=(*shared, shared[index]))
            for place in range(len(self.domain.columns)):
                for row in self._moved(shared[index], place, share):
                    yield replace(pair, shared=(*shared[:index], row, *shared[index + 1 :]))

    def _moved(self, row: Row, place: int, share: float) -> Iterator[Row]:
        column = self.domain.columns[place]
        values = column.near(row[place], share)
        if share == _SHARES[0]:
            values = [*column.values(self.rows), *values]
        for value in values:
            yield (*row[:place], value, *row[place + 1 :])
