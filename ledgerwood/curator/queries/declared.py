"""A statistic from outside of this library: a sum over rows of whole numbers that a user's function returns.

The curator clamps what each row contributes to the declared bounds, so that the bounds hold whatever the function
returns; what it cannot see is whether the function looks at one row only
(docs/explanation/queries.md#declared-statistics).
"""

import math
import re
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._directed import float_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.grid import STEP
from ledgerwood.curator.inputs.encoding import sorted_classes
from ledgerwood.curator.inputs.values import ALL_WHOLE, Weights
from ledgerwood.curator.queries.columns.statistics import require_feature
from ledgerwood.curator.queries.registry import COLUMNS, TREES, Integers
from ledgerwood.curator.views.column_rows import ColumnRows, ColumnShape
from ledgerwood.curator.views.tree_rows import TreeRows, TreeShape
from ledgerwood.errors import InvalidParameter, RoundViolation
from ledgerwood.mechanisms import BallShifts, BoxShifts, Grid
from ledgerwood.schema import Categorical, Feature, Numeric, Schema

Chunk = Mapping[str, NDArray[Any]]
"""Columns of some rows by name, each (n,): float64 within the declared range, NaN where missing; of a categorical
column int64, the place of the category, then one number for any other value and one for a missing one."""
Shifts = BoxShifts | BallShifts
MAX_WIDTH = 1 << 14
MAX_BOUND = 1 << 40
MAX_EXPONENT = 900
CHUNK_NUMBERS = 1 << 20
"""Contributions of a chunk, at most: 8 MiB."""
SYNTHETIC_ROWS = 48
NOT_PROVEN = ", not proven here"
_WEIGHT_BITS = round(-math.log2(STEP))
_SURE = 1e-9
"""Relative: a norm in floats is surely off by less, so that only rows this near to the bound are added up exactly."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class DeclaredStatistic:
    """A sum over rows of what a function makes of each, shape (width,): its bounds are declared, and enforced.

    Each row's contribution is clamped to [least, most], column by column; with a norm, a row above it contributes 0. So
    does a row for which the function raises, or does not return `width` whole numbers. What one row changes is then
    within the bounds, *if* what the function makes of a row depends on no other row. In a table whose rows have weights
    a row's contribution is multiplied by its share of the schema's `weight_bound`, and truncated toward zero.

    An iterative model asks one statistic for each step, with what it has learned so far as `constants`::

        def gradient(chunk, constants):
            return steps_of(chunk, constants["coefficients"])

        statistic = DeclaredStatistic(..., function=gradient, constants={"coefficients": coefficients})

    Nothing in Python can prove that a row's contribution is its own, so that releases and ledger say "declared by ...,
    not proven here" (`caveat`), and a round that releases it is opened with `purpose=statistic.purpose(...)`.

    * `one_by_one=True`: the function never sees two rows at once, so this holds for every function without
      a state between calls, and nothing else is declared. A call for each row: about 10 microseconds a row.
    * `one_by_one=False`: the function sees chunks of rows, each of which it has to treat by itself.

    Args:
        name: the name of the statistic.
        declared_by: who answers for the function, such as a package and its version.
        columns: what the function sees, of the table's schema: features and target.
        function: from a `Chunk` of n rows to whole numbers (n, width), in steps of 2**exponent; where there are
            `constants`, they are its second argument.
        least, most: bounds of each number of a row, in steps; `least` is `-most` where it is None.
        exponent: the exponent of the step, in the statistic's unit.
        norm: the largest Euclidean norm of a row's numbers, in steps, if that is less than what the bounds allow. A row
            above it contributes 0, and nobody is told: round a root up (math.sqrt(3) is below the root of 3).
        one_by_one: whether the function is called for one row at a time.
        sensitivities: shifts under an adjacency that are smaller than those that follow from the bounds, in the
            statistic's unit; each is declared, and not proven. A replaced row may also be one that cannot be read, on
            one side, and contributes 0 there.
        constants: public values by name: numbers, texts, or arrays of numbers, which are copied and read-only. Only
            what was released, or known before: nothing that was computed from rows.
        rehearse: whether the function is tried on synthetic rows of the columns before its first use: it must return
            what is declared, treat rows apart, remember none, and keep to `sensitivities`. Training rows are never used
            for that.

    Raises:
        InvalidParameter: a value outside its bound.
    """

    name: str
    declared_by: str
    columns: tuple[Feature, ...]
    function: Callable[[Chunk], Any]
    most: tuple[int, ...]
    least: tuple[int, ...] | None = None
    exponent: int = 0
    norm: float | None = None
    one_by_one: bool = False
    sensitivities: Mapping[Adjacency, Shifts] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    rehearse: bool = True

    def __post_init__(self) -> None:
        for name in ("name", "declared_by"):
            value = getattr(self, name)
            if not isinstance(value, str) or not 0 < len(value) <= 100 or not value.isprintable() or {*"()"} & {*value}:
                bound = "printable text of 1 to 100 characters in one line, without parentheses"
                raise _validate.fail(name, value, bound, "text")
        columns = _validate.items("columns", self.columns, "columns")
        if not columns:
            raise _validate.fail("columns", columns, "at least one", "columns")
        for column in columns:
            require_feature(column)
        object.__setattr__(self, "columns", columns)
        most = tuple(_bound("most", each) for each in _validate.items("most", self.most, "bounds"))
        if not 0 < len(most) <= MAX_WIDTH:
            raise _validate.fail("len(most)", len(most), f"in [1, {MAX_WIDTH}]", "numbers of a row")
        given = tuple(-each for each in most) if self.least is None else _validate.items("least", self.least, "bounds")
        least = tuple(-_bound("least", -each) for each in given)
        if len(least) != len(most):
            raise _validate.fail("len(least)", len(least), f"{len(most)}, as of most", "numbers of a row")
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "least", least)
        if not any(most) and not any(least):
            raise _validate.fail("most", most, "above 0 somewhere", "steps")
        if type(self.exponent) is not int or abs(self.exponent) > MAX_EXPONENT:
            raise _validate.fail(
                "exponent", self.exponent, f"a whole number in [-{MAX_EXPONENT}, {MAX_EXPONENT}]", "powers of two"
            )
        if self.norm is not None:
            object.__setattr__(self, "norm", _validate.positive("norm", self.norm, "steps"))
        for name in ("one_by_one", "rehearse"):
            if not isinstance(getattr(self, name), bool):
                raise _validate.fail(name, getattr(self, name), "True or False", "flag")
        stated = dict(self.sensitivities)
        for adjacency, shifts in stated.items():
            if type(adjacency) is not Adjacency or type(shifts) not in (BoxShifts, BallShifts):
                raise _validate.fail("sensitivities", stated, "BoxShifts or BallShifts by Adjacency", "shift sets")
            if shifts.columns not in (None, len(most)):
                raise _validate.fail("sensitivities", shifts, f"of {len(most)} columns", "shift sets")
        object.__setattr__(self, "sensitivities", MappingProxyType(stated))
        constants = {_name(name): _constant(name, value) for name, value in dict(self.constants).items()}
        object.__setattr__(self, "constants", MappingProxyType(constants))

    @property
    def width(self) -> int:
        """The number of released numbers."""
        return len(self.most)

    @property
    def grid(self) -> Grid:
        """Steps of 2**exponent."""
        return Grid(exponents=(self.exponent,) * self.width)

    @property
    def caveat(self) -> str:
        """The ledger's caveat: who declares the assumptions that are not proven."""
        alone = " to remember no row" if self.one_by_one and not self.sensitivities else ""
        return f"{self.name} declared by {self.declared_by}{alone}{NOT_PROVEN}"

    def purpose(self, what: str) -> str:
        """The purpose with which a round is opened that releases this statistic."""
        return f"{what} ({self.caveat})"

    def sensitivity(self, adjacency: Adjacency) -> Shifts:
        """The declared sensitivity under this adjacency; without one, that of the bounds: see `declared_shifts`."""
        if adjacency in self.sensitivities:
            return self.sensitivities[adjacency]
        return declared_shifts(adjacency, most=self.most, least=self.least, norm=self.norm, exponent=self.exponent)


def declared_shifts(
    adjacency: Adjacency,
    *,
    most: Sequence[int] = (),
    least: Sequence[int] | None = None,
    norm: float | None = None,
    exponent: int = 0,
) -> Shifts:
    """Bounds the change by one row of a sum of bounded contributions; for a `DeclaredStatistic`, and for its plan.

    A row in or out moves the sum by one contribution, a replaced one by the difference of two, or by one alone.

    Args:
        adjacency: the relation of neighbouring tables.
        most, least: bounds of each number of a row, in steps; `least` is `-most` where it is None.
        norm: the largest Euclidean norm of a row's numbers, in steps; then the bounds are not looked at.
        exponent: of the step, a power of two.
    """
    replaced = adjacency is Adjacency.REPLACE_ONE
    step = Fraction(2) ** exponent
    if norm is not None:
        return BallShifts(radius=float_up(Fraction(norm) * step * (2 if replaced else 1)))
    lowest = [-each for each in most] if least is None else least
    moves = [max(abs(low), abs(high), high - low if replaced else 0) for low, high in zip(lowest, most, strict=True)]
    return BoxShifts(boxes=(tuple(float_up(move * step) for move in moves),))


def caveats_in(purpose: str) -> tuple[str, ...]:
    """The caveats that `DeclaredStatistic.purpose` added to a draw's purpose, for one statistic or several."""
    return tuple(re.findall(rf"\(([^()]*{NOT_PROVEN})\)", purpose))


def _name(name: object) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise _validate.fail("constants", name, "names of letters, digits and underscores", "names")
    return name


def _constant(name: str, value: object) -> Any:
    """A copy that cannot be changed, not even a function that sets the array's flags."""
    match value:
        case bool() | int() | float() | str():
            return value
        case np.generic() if value.dtype.kind in "biuf":
            return value.item()
        case np.ndarray() if value.dtype.kind in "biuf":
            return np.frombuffer(value.tobytes(), dtype=value.dtype).reshape(value.shape)
    raise _validate.fail(f"constants[{name!r}]", value, "a number, a text, or a numpy array of numbers", "constants")


def _bound(name: str, value: object) -> int:
    bound = _validate.count(name, value, "steps", minimum=0)
    if bound > MAX_BOUND:
        raise _validate.fail(name, bound, f"at most {MAX_BOUND}", "steps")
    return bound


# ------------------------------------------------------------------------------------------------------ how it is done


def _check_columns(query: DeclaredStatistic, shape: ColumnShape) -> None:
    for column in query.columns:
        shape.require(column)
    rehearsed(query)


@COLUMNS.carries_out(DeclaredStatistic, check=_check_columns, caveat=lambda query: query.caveat)
def _of_columns(query: DeclaredStatistic, rows: ColumnRows) -> Integers:
    def chunk(places: Integers) -> Chunk:
        return {column.name: _cleaned(rows.columns[column.name][places], column) for column in query.columns}

    return _sums(query, chunk, rows.n_rows, rows.sampled, ALL_WHOLE)


def _check_tree(query: DeclaredStatistic, shape: TreeShape) -> None:
    if shape.bins is None:
        raise RoundViolation("a table of cells does not hold the values")
    held = {column.name: column for column in shape.schema.columns}
    for column in query.columns:
        if held.get(column.name) != column:
            raise RoundViolation(f"column {column!r} is not one of the table's: {sorted(held)}")
    rehearsed(query)


@TREES.carries_out(DeclaredStatistic, check=_check_tree, caveat=lambda query: query.caveat)
def _of_trees(query: DeclaredStatistic, rows: TreeRows) -> Integers:
    """Of numbers the function sees the midpoints of their cells, since the table holds cells only."""
    features = [feature.name for feature in rows.shape.schema.features]

    def values(column: Feature, places: Integers) -> NDArray[Any]:
        if column.name in features:
            cells = rows.cells[features.index(column.name)][places]
            return _middles(cells, column, rows.shape.bins or 1) if isinstance(column, Numeric) else cells
        if isinstance(column, Categorical):
            # Classes are places among the sorted ones; the function knows those in the declared order.
            declared = [*map(column.categories.index, sorted_classes(column).tolist()), column.other_cell]
            return np.array(declared)[rows.labelled[places]]
        return column.low + (rows.targets[places] + 1.0) * ((column.high - column.low) / 2.0)

    def chunk(places: Integers) -> Chunk:
        return {column.name: _cleaned(values(column, places), column) for column in query.columns}

    return _sums(query, chunk, rows.n_rows, rows.sampled, rows.weights)


def _middles(cells: NDArray[Any], column: Numeric, bins: int) -> NDArray[np.float64]:
    values = column.low + (cells.astype(np.float64) + 0.5) * ((column.high - column.low) / bins)
    return np.where(cells < bins, values, np.nan)


def chunk_of(cells: NDArray[Any], schema: Schema, *, bins: int) -> dict[str, NDArray[Any]]:
    """The features of encoded rows, as the function of a `DeclaredStatistic` sees those of a `Table`.

    Args:
        cells: (n_features, n_rows), as `encode_features` returns them.
        schema: resolved.
        bins: even steps of a numeric feature's range, by which the rows were encoded.
    """
    return {
        feature.name: _cleaned(_middles(row, feature, bins) if isinstance(feature, Numeric) else row, feature)
        for feature, row in zip(schema.features, cells, strict=True)
    }


def _cleaned(values: NDArray[Any], column: Feature) -> NDArray[Any]:
    """A copy that the function may keep to itself, of declared values only."""
    if isinstance(column, Categorical):
        return np.minimum(values.astype(np.int64), column.missing_cell)
    return np.clip(np.where(np.isfinite(values), values, np.nan), column.low, column.high)


def _sums(
    query: DeclaredStatistic,
    chunk: Callable[[Integers], Chunk],
    n_rows: int,
    sampled: NDArray[np.bool_],
    weights: Weights,
) -> Integers:
    """The sums over the rows that take part, chunk by chunk, modulo 2**64."""
    total = np.zeros(query.width, dtype=np.int64)
    places = np.flatnonzero(sampled) if sampled.size else np.arange(n_rows)
    size = 1 if query.one_by_one else max(1, CHUNK_NUMBERS // query.width)
    for start in range(0, len(places), size):
        for inside, contributions in _contributions(query, chunk, places[start : start + size]):
            held = _clamped(query, contributions)
            total += (_weighed(held, weights[inside]) if weights.size else held).sum(axis=0, dtype=np.int64)
    return total


def _contributions(
    query: DeclaredStatistic, chunk: Callable[[Integers], Chunk], places: Integers
) -> Iterator[tuple[Integers, Integers]]:
    """Rows and what they contribute; row by row where the function fails, so that one row's failure is its own."""
    found = _called(query, chunk(places), len(places))
    if found is not None:
        yield places, found
    elif len(places) > 1:
        for place in range(len(places)):
            yield from _contributions(query, chunk, places[place : place + 1])


def made_of(query: DeclaredStatistic, chunk: Chunk) -> NDArray[Any]:
    """Calls the function on the rows, with the constants if it has any."""
    function: Callable[..., Any] = query.function
    return np.asarray(function(chunk, query.constants) if query.constants else function(chunk))


def _called(query: DeclaredStatistic, chunk: Chunk, rows: int) -> Integers | None:
    """What the function makes of the rows; None if that is not as declared. Nothing is raised because of a row."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = made_of(query, chunk)
    except (Exception, SystemExit):  # noqa: BLE001  # whatever it is, it would tell of a row
        return None
    if found.shape != (rows, query.width) or found.dtype.kind != "i":
        return None
    return found.astype(np.int64)


def _clamped(query: DeclaredStatistic, contributions: Integers) -> Integers:
    """Within the bounds, row by row, exact."""
    held: Integers = np.clip(contributions, np.array(query.least), np.array(query.most))
    if query.norm is not None:
        held[~_within(held, query.norm)] = 0
    return held


def _within(held: Integers, norm: float) -> NDArray[np.bool_]:
    """Which rows have at most this norm, exact."""
    squares = np.square(held.astype(np.float64)).sum(axis=1)
    within = squares <= norm**2
    near = np.flatnonzero(np.abs(squares - norm**2) <= _SURE * norm**2)
    most = Fraction(norm) ** 2
    # Python integers: squares of large bounds have no room in 64 bits.
    within[near] = [sum(number * number for number in row) <= most for row in held[near].tolist()]
    return np.asarray(within)


def _weighed(held: Integers, weights: Weights) -> Integers:
    """Each row's share of its contribution, truncated toward zero: no number grows. Both have less than 2**62."""
    scaled = np.abs(held) * weights[:, np.newaxis].astype(np.int64) >> _WEIGHT_BITS
    return np.asarray(np.where(held < 0, -scaled, scaled))


# ----------------------------------------------------------------------------------------------------------- rehearsal

_REHEARSED: "weakref.WeakSet[DeclaredStatistic]" = weakref.WeakSet()


def rehearsed(query: DeclaredStatistic, *, again: bool = False) -> None:
    """Try the function on synthetic rows, once.

    Args:
        query: whose function is tried.
        again: even if it was tried before, or is not to be.

    Raises:
        InvalidParameter: it does not do what is declared; of synthetic rows only, so that the error may say which.
    """
    if not again and (not query.rehearse or query in _REHEARSED):
        return
    rows = _synthetic(query.columns)

    def one(place: int) -> Integers:
        return _tried(query, {name: values[place : place + 1] for name, values in rows.items()}, 1)

    alone = [one(place)[0] for place in range(SYNTHETIC_ROWS)]
    for place in reversed(range(SYNTHETIC_ROWS)):
        later = one(place)[0]
        if not np.array_equal(later, alone[place]):
            raise InvalidParameter(
                f"{query.name}: the synthetic row {_shown(rows, place)} contributes {alone[place].tolist()} at first, "
                f"and {later.tolist()} after other rows; a row's contribution must depend on that row only"
            )
    if not query.one_by_one:
        together = _tried(query, rows, SYNTHETIC_ROWS)
        for place, (mine, own) in enumerate(zip(together, alone, strict=True)):
            if not np.array_equal(mine, own):
                raise InvalidParameter(
                    f"{query.name}: the synthetic row {_shown(rows, place)} contributes {own.tolist()} "
                    f"alone, and {mine.tolist()} together with others; a row's contribution must depend on "
                    "that row only"
                )
    for adjacency, shifts in query.sensitivities.items():
        _require_within(query, np.array(alone), adjacency, shifts)
    _REHEARSED.add(query)


def _require_within(query: DeclaredStatistic, alone: Integers, adjacency: Adjacency, shifts: Shifts) -> None:
    held = _clamped(query, alone)
    if adjacency is Adjacency.REPLACE_ONE:
        held = np.concatenate((held, np.zeros_like(held[:1])))  # of a row that cannot be read
        moves = held[:, np.newaxis] - held
    else:
        moves = held
    units = (1.0,) * query.width
    step = Fraction(2) ** query.exponent
    for move in moves.reshape(-1, query.width).tolist():
        l1, squared = sum(map(abs, move)) * step, sum(number * number for number in move) * step**2
        if l1 > Fraction(shifts.l1(units)) or squared > Fraction(shifts.l2(units)) ** 2:
            raise InvalidParameter(
                f"{query.name}: two synthetic tables that are neighbours ({adjacency.value}) differ by {move} steps; "
                f"declared is {shifts!r}"
            )


def _tried(query: DeclaredStatistic, chunk: Chunk, rows: int) -> Integers:
    try:
        with np.errstate(all="ignore"):
            found = made_of(query, {name: values.copy() for name, values in chunk.items()})
    except KeyError as error:
        given = f" and the constants {', '.join(map(repr, query.constants))}" if query.constants else ""
        raise InvalidParameter(
            f"{query.name}: the function asks for {error}; it is given the columns {', '.join(map(repr, chunk))}{given}"
        ) from error
    except Exception as error:
        raise InvalidParameter(
            f"{query.name}: the function raises {type(error).__name__} for a chunk of {rows} synthetic rows, such as "
            f"{_shown(chunk, 0)}: {error}; it must take every declared value, and NaN for a missing one"
        ) from error
    if found.shape != (rows, query.width) or found.dtype.kind != "i":
        raise InvalidParameter(
            f"{query.name}: the function returns shape {found.shape} of {found.dtype} for {rows} synthetic rows; "
            f"declared are whole numbers ({rows}, {query.width}), such as int64"
        )
    return found.astype(np.int64)


def _synthetic(columns: tuple[Feature, ...]) -> dict[str, NDArray[Any]]:
    """Rows of the declared ranges: their ends, missing values, and what lies between; the same at every call."""
    generator = np.random.default_rng(0)
    rows: dict[str, NDArray[Any]] = {}
    for column in columns:
        if isinstance(column, Categorical):
            rows[column.name] = generator.integers(0, column.missing_cell + 1, SYNTHETIC_ROWS)
        else:
            values = column.low + generator.random(SYNTHETIC_ROWS) * (column.high - column.low)
            kinds = generator.integers(0, 8, SYNTHETIC_ROWS)
            rows[column.name] = np.choose(
                np.minimum(kinds, 3), [np.full_like(values, column.low), column.high, np.nan, values]
            )
    return rows


def _shown(rows: Chunk, place: int) -> str:
    return ", ".join(f"{name}={values[place].item()!r}" for name, values in rows.items())
