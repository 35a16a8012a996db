"""A statistic from outside of this library: a sum over rows of whole numbers that a user's function returns.

The curator clamps what each row contributes to the declared bounds, so that the bounds hold whatever the function
returns; what it cannot see is whether the function looks at one row only
(docs/explanation/queries.md#declared-statistics).
"""

import math
import re
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood._directed import float_up, root_up
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.grid import STEP
from ledgerwood.curator.inputs.encoding import sorted_classes
from ledgerwood.curator.inputs.values import ALL_WHOLE, Weights
from ledgerwood.curator.queries.blocks import blocks, equal_rows, filled, in_block, keys_of
from ledgerwood.curator.queries.columns.statistics import require_feature
from ledgerwood.curator.queries.moves import within
from ledgerwood.curator.queries.registry import COLUMNS, TREES, Integers
from ledgerwood.curator.queries.rehearsal import Trial, rehearse
from ledgerwood.curator.views.column_rows import ColumnRows, ColumnShape
from ledgerwood.curator.views.tree_rows import TreeRows, TreeShape
from ledgerwood.errors import PrivacyWarning, RoundViolation
from ledgerwood.mechanisms import BallShifts, BoxShifts, Grid
from ledgerwood.schema import Categorical, Feature, Ranged, Schema
from ledgerwood.sparse_cells import AnyCells

Chunk = Mapping[str, NDArray[Any]]
"""Columns of some rows by name, each (n,): float64 within the declared range, NaN where missing; of a categorical
column int64, the place of the category, then one number for any other value and one for a missing one."""
Shifts = BoxShifts | BallShifts
MAX_WIDTH = 1 << 14
MAX_BOUND = 1 << 40
MAX_EXPONENT = 900
CHUNK_NUMBERS = 1 << 20
"""Contributions of a block, at most: 8 MiB."""
BLOCK_ROWS = 512
"""Rows of a block, at most."""
READ_NUMBERS = 1 << 22
"""Values that are prepared at a time, at most."""
FINE_STEPS = 1 << 10
"""Below it a bound is too few steps for weights: what a row loses by truncation is more than .1 % of it."""
NOT_PROVEN = ", not proven here"
_WEIGHT_BITS = round(-math.log2(STEP))


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
    * `one_by_one=False`: the function sees blocks of rows, each of which it has to treat by itself. All blocks have
      the same number of rows, and a row's place follows from its own values, so that numbers may be rounded by place
      (docs/explanation/queries.md#rows-in-blocks). A block may be filled up with rows that are not counted.

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
            side, and contributes 0 there.
        weighted: whether rows may have weights of their own: a shift that is declared under replace-one is then one
            step larger in each column, since two weighted rows are truncated one by one. A table with weights refuses
            a statistic with weighted=False that declares such a shift.
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
    function: Callable[..., Any]
    most: tuple[int, ...]
    least: tuple[int, ...] | None = None
    exponent: int = 0
    norm: float | None = None
    one_by_one: bool = False
    sensitivities: Mapping[Adjacency, Shifts] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    rehearse: bool = True
    weighted: bool = True

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
        for name in ("one_by_one", "rehearse", "weighted"):
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
            stated = self.sensitivities[adjacency]
            truncated = self.weighted and adjacency is Adjacency.REPLACE_ONE
            return _truncated(stated, self.width, self.exponent) if truncated else stated
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


def _truncated(shifts: Shifts, width: int, exponent: int) -> Shifts:
    """One step more in each column (docs/explanation/queries.md#declared-statistics, weights)."""
    step = Fraction(2) ** exponent
    if isinstance(shifts, BoxShifts):
        boxes, l1_boxes = (
            tuple(tuple(float_up(Fraction(bound) + step) for bound in box) for box in each)
            for each in (shifts.boxes, shifts.l1_boxes)
        )
        return BoxShifts(boxes=boxes, l1_boxes=l1_boxes)
    more = Fraction(root_up(Fraction(width))) * step
    l1_radius = None if shifts.l1_radius is None else float_up(Fraction(shifts.l1_radius) + more)
    return BallShifts(radius=float_up(Fraction(shifts.radius) + more), l1_radius=l1_radius)


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
    if shape.weighted:
        _check_weights(query)
    rehearsed(query)


def _check_weights(query: DeclaredStatistic) -> None:
    if not query.weighted and Adjacency.REPLACE_ONE in query.sensitivities:
        raise RoundViolation(
            f"{query.name} declares a sensitivity under replace-one for rows of equal weight (weighted=False); the "
            "schema has weights: set weighted=True, which adds one step to each column"
        )


def caution_weights(query: DeclaredStatistic) -> None:
    """Warn, by what is declared only, of steps that are too coarse for rows with weights."""
    coarse = min(max(-low, high) for low, high in zip(query.least or (), query.most, strict=True) if low or high)
    if coarse < FINE_STEPS:
        warnings.warn(
            f"{query.name}: a weighted number is truncated to whole steps, and a bound of {coarse} steps is too few: a "
            f"row below the largest weight loses up to a step of each number. Declare at least {FINE_STEPS} steps, by "
            "a lower exponent",
            PrivacyWarning,
            stacklevel=3,
        )


@TREES.carries_out(DeclaredStatistic, check=_check_tree, caveat=lambda query: query.caveat)
def _of_trees(query: DeclaredStatistic, rows: TreeRows) -> Integers:
    """Of numbers the function sees the midpoints of their cells, since the table holds cells only."""
    features = [feature.name for feature in rows.shape.schema.features]

    def values(column: Feature, places: Integers) -> NDArray[Any]:
        if column.name in features:
            cells = rows.cells[features.index(column.name)][places]
            return _middles(cells, column, rows.shape.bins or 1) if isinstance(column, Ranged) else cells
        if isinstance(column, Categorical):
            # Classes are places among the sorted ones; the function knows those in the declared order.
            declared = [*map(column.categories.index, sorted_classes(column).tolist()), column.other_cell]
            return np.array(declared)[rows.labelled[places]]
        return column.low + (rows.targets[places] + 1.0) * ((column.high - column.low) / 2.0)

    def chunk(places: Integers) -> Chunk:
        return {column.name: _cleaned(values(column, places), column) for column in query.columns}

    return _sums(query, chunk, rows.n_rows, rows.sampled, rows.weights)


def _middles(cells: NDArray[Any], column: Ranged, bins: int) -> NDArray[np.float64]:
    values = column.low + (cells.astype(np.float64) + 0.5) * ((column.high - column.low) / bins)
    return np.where(cells < bins, values, np.nan)


def chunk_of(cells: AnyCells, schema: Schema, *, bins: int) -> dict[str, NDArray[Any]]:
    """The features of encoded rows, as the function of a `DeclaredStatistic` sees those of a `Table`.

    Args:
        cells: (n_features, n_rows), as `encode_features` returns them.
        schema: resolved.
        bins: even steps of a numeric feature's range, by which the rows were encoded.
    """
    return {
        feature.name: _cleaned(_middles(row, feature, bins) if isinstance(feature, Ranged) else row, feature)
        for feature, row in zip(schema.features, cells, strict=True)
    }


def _cleaned(values: NDArray[Any], column: Feature) -> NDArray[Any]:
    """A copy that the function may keep to itself, of declared values only."""
    if isinstance(column, Categorical):
        return np.minimum(values.astype(np.int64), column.missing_cell)
    # The sum leaves one zero of two: which of them a clip returns may depend on the place.
    return np.clip(np.where(np.isfinite(values), values, np.nan), column.low, column.high) + 0.0


def _sums(
    query: DeclaredStatistic,
    chunk: Callable[[Integers], Chunk],
    n_rows: int,
    sampled: NDArray[np.bool_],
    weights: Weights,
) -> Integers:
    """The sums over the rows that take part, modulo 2**64. What is equal is evaluated once."""
    total = np.zeros(query.width, dtype=np.int64)
    size, filler = _block_rows(query), _filler(query.columns)

    def called(block: Chunk, rows: int) -> Integers | None:
        return _called(query, block, rows)

    # Where the function fails for the rows that fill a block, it fails for every block, whatever the rows are.
    if size > 1 and called(filled(filler, size), size) is None:
        return total
    places = np.flatnonzero(sampled) if sampled.size else np.arange(n_rows)
    many = max(BLOCK_ROWS, READ_NUMBERS // max(len(query.columns), 64))
    for start in range(0, len(places), many):
        inside = places[start : start + many]
        rows = chunk(inside)
        keys = keys_of(rows)
        order, starts = equal_rows(rows, keys)
        firsts, times = order[starts[:-1]], np.diff(starts)
        for members, at in blocks(keys[firsts], size):
            for found, contributions in in_block(called, rows, firsts[members], at, filler, size, members):
                held = _clamped(query, contributions)
                if weights.size:
                    total += _weighed_sum(held, [inside[order[starts[g] : starts[g + 1]]] for g in found], weights)
                else:
                    total += (held * times[found, np.newaxis]).sum(axis=0, dtype=np.int64)
    return total


def _block_rows(query: DeclaredStatistic) -> int:
    """Public: of what is declared only."""
    return 1 if query.one_by_one else min(BLOCK_ROWS, max(1, CHUNK_NUMBERS // query.width))


def _filler(columns: Sequence[Feature]) -> Chunk:
    """The public row that fills a block up: the first category, the middle of a range."""
    return {
        column.name: np.zeros(1, dtype=np.int64)
        if isinstance(column, Categorical)
        else _cleaned(np.array([column.low / 2.0 + column.high / 2.0]), column)
        for column in columns
    }


def _weighed_sum(held: Integers, rows: Sequence[Integers], weights: Weights) -> Integers:
    """The weighted contributions of the rows of each group."""
    total = np.zeros(held.shape[1], dtype=np.int64)
    owners, members = np.repeat(np.arange(len(rows)), [*map(len, rows)]), np.concatenate(rows)
    size = max(1, CHUNK_NUMBERS // held.shape[1])
    for start in range(0, len(owners), size):
        part = slice(start, start + size)
        total += _weighed(held[owners[part]], weights[members[part]]).sum(axis=0, dtype=np.int64)
    return total


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
    except KeyboardInterrupt:
        found = None
    except BaseException:  # noqa: BLE001  # whatever it is, it would tell of a row: a panic of Rust, an exit
        return None
    if found is None:
        raise KeyboardInterrupt  # outside of the handler: without what the function may have said with it
    if found.shape != (rows, query.width) or found.dtype.kind != "i":
        return None
    return found.astype(np.int64)


def _clamped(query: DeclaredStatistic, contributions: Integers) -> Integers:
    """Within the bounds, row by row, exact."""
    held: Integers = np.clip(contributions, np.array(query.least), np.array(query.most))
    if query.norm is not None:
        held[~within(held, query.norm)] = 0
    return held


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
    size, filler = _block_rows(query), _filler(query.columns)
    rehearse(
        Trial(
            query=query,
            made_of=lambda chunk: made_of(query, chunk),
            clamped=lambda contributions: _clamped(query, contributions),
            filler=filler,
            size=size,
        )
    )
    _REHEARSED.add(query)
