"""Distances of two values of a query, compared with the claim: plain numbers, and exact integers on a grid.

A value is also computed with no or less rounding error, to tell an exceeded sensitivity from floating-point rounding.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BallShifts, BlockShifts, BoxShifts, Grid, UtilityRange
from ledgerwood.verification.sensitivity.domains import Data

Norm = Literal["l1", "l2", "linf", "range"]
"""Of the difference d of two values; range is max d - min d, what the choices of an exponential mechanism depend on."""
Shifts = BoxShifts | BallShifts | BlockShifts | UtilityRange


@final
@dataclass(frozen=True, slots=True, eq=False)
class QueryValue:
    """The value of a query: numbers, and everything else that can distinguish two data sets.

    Args:
        shape: shapes, keys, and what is no number.
        numbers: all numbers, float64 (k,), or whole ones of any size as objects.
        precision: the spacing of numbers next to 1 in the type that they came in; 0 for whole ones.
    """

    shape: tuple[object, ...]
    numbers: NDArray[Any]
    precision: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The difference of two values.

    Args:
        distance: in the norm, in the unit of the values; or in units of a stated shift set.
        ratio: the ratio of what is claimed; inf if shapes or keys differ, or where only one is a number.
        refuted: whether it is more than claimed by more than rounding explains.
        moved: whether the values differ for certain, rounding apart.
        rounding: whether it is more than claimed, and rounding may explain it.
    """

    distance: float
    ratio: float
    refuted: bool
    moved: bool
    rounding: bool = False

    @property
    def key(self) -> tuple[bool, float]:
        """The sort key: a larger key shows more. Differences explained by rounding are stored separately."""
        return self.refuted, 0.0 if self.rounding else self.ratio


APART = Gap(distance=math.inf, ratio=math.inf, refuted=True, moved=True)
"""Of values that are told from each other for certain."""
ALIKE = Gap(distance=0.0, ratio=0.0, refuted=False, moved=False)


def value_of(output: object) -> QueryValue:
    """An output as a value: arrays, numbers, and tuples, lists and mappings of them.

    Raises:
        InvalidParameter: an array of objects that are no numbers and no strings.
    """
    shape: list[object] = []
    numbers: list[NDArray[Any]] = []
    collect(output, shape, numbers)
    precision = max((float(np.finfo(part.dtype).eps) for part in numbers if part.dtype.kind == "f"), default=0.0)
    exact = precision == 0.0
    flat = [part.ravel().astype(object if exact else np.float64) for part in numbers]
    return QueryValue(tuple(shape), np.concatenate(flat) if flat else np.empty(0), precision)


def collect(output: Any, shape: list[object], numbers: list[NDArray[Any]]) -> None:
    """Shapes, keys and texts of an output, in order, and its numbers.

    Raises:
        InvalidParameter: an array of objects that are no numbers and no strings.
    """
    if isinstance(output, Mapping):
        for key in sorted(output, key=repr):
            shape.append(("key", repr(key)))
            collect(output[key], shape, numbers)
        shape.append("end")
        return
    if isinstance(output, tuple) or (isinstance(output, list) and any(np.ndim(part) for part in output)):
        for part in output:
            shape.append("part")
            collect(part, shape, numbers)
        shape.append("end")
        return
    array = np.asarray(output)
    shape.append(array.shape)
    match array.dtype.kind:
        case "b" | "i" | "u":
            whole = np.empty(array.size, dtype=object)
            whole[:] = [int(item) for item in array.ravel().tolist()]  # no type in which a difference wraps around
            numbers.append(whole)
        case "f":
            numbers.append(array)
        case "c":
            numbers += [array.real, array.imag]
        case "S" | "U":
            shape.append(tuple(array.ravel().tolist()))
        case "O" if all(isinstance(item, int | Fraction) for item in array.ravel().tolist()):
            numbers.append(array)
        case _:
            kinds = sorted({type(item).__name__ for item in array.ravel().tolist()})
            raise InvalidParameter(f"the query returned {kinds}, which is no array of numbers (unit: statistic)")


def plain_gap(first: QueryValue, second: QueryValue, *, claimed: float, norm: Norm, rows: int, tolerance: float) -> Gap:
    """The gap for any query. Equal numbers, or two NaN, do not differ; a single non-finite number is infinitely far.

    `tolerance` of what is claimed is forgiven; beyond that, what a sum of so many rows may be off by is `rounding`.
    """
    if first.shape != second.shape:
        return APART
    a, b = first.numbers, second.numbers
    if not len(a):
        return ALIKE
    precision = max(first.precision, second.precision)
    if precision:
        a, b = a.astype(np.float64), b.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if not np.all(np.isfinite(a[~same]) & np.isfinite(b[~same])):
            return APART
        with np.errstate(over="ignore"):
            differences = np.where(same, 0.0, b) - np.where(same, 0.0, a)
        finite = np.concatenate([a[np.isfinite(a)], b[np.isfinite(b)]])
        scale = float(np.max(np.abs(finite), initial=0.0))
    else:
        differences, scale = np.array([float(y - x) for x, y in zip(a, b, strict=True)]), 0.0
    distance = _norm(differences, norm)
    spread = {"l1": float(len(a)), "l2": math.sqrt(len(a)), "linf": 1.0, "range": 2.0}[norm]
    forgiven = claimed * tolerance + 8.0 * precision * (rows + 8) * scale * spread
    moved, over = distance > forgiven, distance > claimed * (1.0 + tolerance)
    if claimed == 0.0:
        if moved or not over:
            return Gap(distance=distance, ratio=math.inf, refuted=True, moved=True) if moved else ALIKE
        return Gap(distance=distance, ratio=math.inf, refuted=False, moved=False, rounding=True)
    refuted = distance > claimed + forgiven
    return Gap(distance=distance, ratio=distance / claimed, refuted=refuted, moved=moved, rounding=over and not refuted)


def _norm(differences: NDArray[np.float64], norm: Norm) -> float:
    largest = float(np.max(np.abs(differences)))
    if largest in {0.0, math.inf}:
        return largest
    if norm == "linf":
        return largest
    if norm == "range":
        with np.errstate(over="ignore"):
            return float(np.max(differences) - np.min(differences))
    scaled = np.abs(differences) / largest  # squares neither overflow nor vanish
    return largest * float(np.sum(scaled) if norm == "l1" else math.sqrt(float(np.sum(scaled**2))))


def shift_gap(first: NDArray[np.int64], second: NDArray[np.int64], *, grid: Grid, shifts: Shifts) -> Gap:
    """The gap of a query's exact integers: the least factor by which the shift set must grow to contain it.

    Exact, but for a root to 2**-80, rounded down. docs/explanation/replay.md#replay-boxes: for boxes, both norms.
    """
    if first.shape != second.shape:
        return APART
    if isinstance(shifts, UtilityRange):
        return _range_gap(first, second, grid, shifts)
    columns = first.shape[-1]
    moved = np.subtract(second, first).reshape(-1, columns)  # modulo 2**64, as the sums are
    steps = [Fraction(2) ** exponent for exponent in grid.exponents]
    rows = [tuple(s * int(d) for s, d in zip(steps, row, strict=True)) for row in moved[moved.any(axis=1)].tolist()]
    squares = [sum((row[i] ** 2 for row in rows), Fraction(0)) for i in range(columns)]
    distance = math.sqrt(float(sum(squares)))
    if not rows:
        return ALIKE
    if isinstance(shifts, BallShifts):
        square: Fraction | None = sum(squares, Fraction(0)) / Fraction(shifts.radius) ** 2
        wide = sum((root_below(sum((d * d for d in row), Fraction(0))) for row in rows), Fraction(0))
        factor: Fraction | None = wide / Fraction(shifts.l1_radius or shifts.radius)
    elif isinstance(shifts, BlockShifts):
        lengths, together = block_norms(rows, shifts)
        factor = _growth(lengths, shifts.norms.l1_boxes, 1)
        square = _growth(together, shifts.norms.l2_boxes, 2)
    else:
        sums = [sum((abs(row[i]) for row in rows), Fraction(0)) for i in range(columns)]
        factor = _growth(sums, shifts.l1_boxes, 1)
        square = _growth(squares, shifts.l2_boxes, 2)
    if square is None or factor is None:
        return Gap(distance=distance, ratio=math.inf, refuted=True, moved=True)
    ratio = max(factor, root_below(square))
    return Gap(distance=distance, ratio=float(ratio), refuted=factor > 1 or square > 1, moved=True)


def block_norms(rows: list[tuple[Fraction, ...]], shifts: BlockShifts) -> tuple[list[Fraction], list[Fraction]]:
    """Of each block of columns, the rows' Euclidean norms added up, each rounded down; and their exact squares.

    Args:
        rows: that move, one number a column.
        shifts: which columns are of one block.
    """
    ends = [0, *itertools.accumulate(shifts.sizes)]
    squares = [
        [sum((d * d for d in row[begin:end]), Fraction(0)) for begin, end in itertools.pairwise(ends)] for row in rows
    ]
    lengths = [sum(map(root_below, block), Fraction(0)) for block in zip(*squares, strict=True)]
    return lengths, [sum(block, Fraction(0)) for block in zip(*squares, strict=True)]


def _range_gap(first: NDArray[np.int64], second: NDArray[np.int64], grid: Grid, shifts: UtilityRange) -> Gap:
    """Of utilities (nodes, candidates): a choice a node, whose ranges add up."""
    total = Fraction(0)
    for one, other in zip(np.atleast_2d(first).tolist(), np.atleast_2d(second).tolist(), strict=True):
        changes = [b - a for a, b in zip(one, other, strict=True)]
        total += (max(changes) - min(changes)) * Fraction(2) ** grid.exponents[0]
    ratio = total / Fraction(shifts.range)
    return Gap(distance=float(total), ratio=float(ratio), refuted=ratio > 1, moved=bool(np.any(first != second)))


def _growth(columns: list[Fraction], boxes: tuple[tuple[float, ...], ...], power: int) -> Fraction | None:
    """The least s so that s times a mixture of two boxes (their powers) holds every column; None if none does.

    With u = s t and v = s (1 - t): the least u + v with u b + v b' >= d in every column, attained at a corner.
    """
    ends = [[Fraction(b) ** power for b in box] for box in boxes]
    found: Fraction | None = None
    for first, second in itertools.combinations_with_replacement(ends, 2):
        rows = [(a, b, d) for a, b, d in zip(first, second, columns, strict=True) if d]
        rows += [(Fraction(1), Fraction(0), Fraction(0)), (Fraction(0), Fraction(1), Fraction(0))]
        for (a, b, d), (e, f, g) in itertools.combinations(rows, 2):
            determinant = a * f - b * e
            if determinant == 0:
                continue
            u, v = (d * f - b * g) / determinant, (a * g - d * e) / determinant
            if u >= 0 and v >= 0 and all(p * u + q * v >= r for p, q, r in rows):
                found = u + v if found is None else min(found, u + v)
    return found


def root_below(square: Fraction) -> Fraction:
    """The root to 2**-80 or better, not above it: a breach is a breach for certain."""
    return Fraction(math.isqrt(math.floor(square * 2**160)), 2**80)


_AGREE = 1e-3
"""Of what is claimed: by which the two kinds of numbers may differ and still be of one function."""
Converted = Callable[[NDArray[Any]], NDArray[Any] | None]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """The distance of two values in another arithmetic.

    Args:
        distance: in the norm of the claim.
        breach: whether it is more than claimed for certain.
        arithmetic: in which, in words.
    """

    distance: float
    breach: bool
    arithmetic: str


def exactly(
    query: Callable[[Data], Any], first: Data, second: Data, *, claimed: float, norm: Norm, rows: int
) -> Exact | None:
    """The distance of a query's two values in exact fractions, or else in numpy's longest floats.

    None if the query takes neither of them, where its values are rounded to float64 after all (by a constant of its
    own, or by a cast), or where the two disagree: then it is not one function of what the rows hold.
    """
    found = [
        _in(query, first, second, converted, words, claimed=claimed, norm=norm, rows=rows)
        for converted, words in ((_as_fractions, "exact fractions"), (_as_long, "floats of more digits"))
    ]
    known = [one for one in found if one is not None]
    if len(known) == 2 and abs(known[0].distance - known[1].distance) > _AGREE * max(claimed, known[0].distance):
        return None
    return known[0] if known else None


def _in(
    query: Callable[[Data], Any], first: Data, second: Data, converted: Converted, words: str, *, claimed: float,
    norm: Norm, rows: int,
) -> Exact | None:  # fmt: skip
    try:
        values = [_value(query, data, converted) for data in (first, second)]
    except Exception:  # noqa: BLE001 - a query may take no such numbers, and raise anything
        return None
    known = [value for value in values if value is not None]
    if len(known) < 2 or known[0][0] != known[1][0]:
        return None
    (_, one, precision), (_, other, _) = known
    changes = [b - a for a, b in zip(one, other, strict=True)]
    if not changes:
        return None
    distance = _norm_exactly(changes, norm)
    scale = max(map(abs, (*one, *other)), default=Fraction(0))
    spread = {"l1": len(one), "l2": math.isqrt(len(one)) + 1, "linf": 1, "range": 2}[norm]
    forgiven = 8 * Fraction(precision) * (rows + 8) * scale * spread
    return Exact(distance=_as_float(distance), breach=distance > Fraction(claimed) + forgiven, arithmetic=words)


def _value(
    query: Callable[[Data], Any], data: Data, converted: Converted
) -> tuple[list[object], list[Fraction], float] | None:
    """Shapes, numbers and their precision; None if a number is not finite, or was rounded to float64."""
    parts = data if isinstance(data, tuple) else (data,)
    columns: list[Any] = []
    for part in parts:
        column = converted(part) if part.dtype.kind == "f" else part.copy()
        if column is None:
            return None
        columns.append(column)
    shape: list[object] = []
    numbers: list[NDArray[Any]] = []
    with np.errstate(all="ignore"):
        output: Any = query(tuple(columns) if isinstance(data, tuple) else columns[0])
    collect(output, shape, numbers)
    precision, found = 0.0, []
    for part in numbers:
        if part.dtype.kind == "f":
            precision = max(precision, float(np.finfo(part.dtype).eps))
            if precision >= np.finfo(np.float64).eps or not np.isfinite(part).all():
                return None
        found += [_as_fraction(item) for item in part.ravel()]
    return shape, found, precision


def _as_fraction(item: Any) -> Fraction:
    if isinstance(item, int | Fraction):
        return Fraction(item)
    high = float(item)
    return Fraction(high) + Fraction(float(item - np.longdouble(high)))


def _norm_exactly(changes: list[Fraction], norm: Norm) -> Fraction:
    """Rounded down, if at all: what is above a claim is so for certain."""
    sizes = [abs(change) for change in changes]
    match norm:
        case "l1":
            return sum(sizes, Fraction(0))
        case "l2":
            return root_below(sum((size * size for size in sizes), Fraction(0))) if len(sizes) > 1 else sizes[0]
        case "linf":
            return max(sizes)
        case "range":
            return max(changes) - min(changes)


def _as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _as_fractions(column: NDArray[Any]) -> NDArray[Any] | None:
    if not np.isfinite(column).all():
        return None
    flat = np.empty(column.size, dtype=object)
    flat[:] = [Fraction(value) for value in column.ravel().tolist()]
    return flat.reshape(column.shape)


def _as_long(column: NDArray[Any]) -> NDArray[Any]:
    return column.astype(np.longdouble)
