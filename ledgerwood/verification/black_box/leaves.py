"""Outputs of any kind, taken apart into leaves: columns of cells of one kind, each with a name.

A row of an array, a tuple, a mapping, a record is taken apart by place, key or field; what is left over is a number, a
text, some bytes, the length of something, or nothing. To which leaves an output belongs depends on that output alone,
never on other runs of its call: otherwise the runs were not independent any more.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.verification.black_box.encoding import IntArray

Kind = Literal["number", "text", "bytes", "length", "nothing", "other"]
_Sort = Literal["number", "text", "bytes", "nothing", "other", "sequence", "mapping", "set", "record", "row", "series"]
Key = tuple[str, Kind]
Cells = NDArray[Any] | list[Any]
_DEEPEST = 20
"""Nested so deep, an output is not taken apart any further."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """Cells of one kind at one place of the output.

    Args:
        name: the name of the place: output[0], output['mean'], output.count.
        kind: the kind of the cells.
        rows: the outputs that have it, in order; None for all of them.
        cells: one for each of `rows`; an array of numbers, or a list.
    """

    name: str
    kind: Kind
    rows: IntArray | None
    cells: Cells

    @property
    def key(self) -> Key:
        """The key that identifies the leaf in other calls."""
        return self.name, self.kind


def leaves(outputs: Any, runs: int) -> Iterator[Leaf]:
    """The leaves of one call's outputs.

    Args:
        outputs: an array, a list or another sequence of one output a run; a table; a mapping from names to columns.
        runs: their number.

    Raises:
        ValueError: the columns of a table or mapping do not have one entry a run.
    """
    columns = _table(outputs)
    if columns is None:
        yield from _taken_apart(outputs, None, "output", 0)
        return
    for name, column in columns.items():
        if len(column) != runs:
            raise ValueError(f"column {name!r} has {len(column)} entries, for {runs} runs")
        yield from _taken_apart(column, None, f"output[{name!r}]", 0)


def runs_in(outputs: Any) -> int | None:
    """Counts the outputs; None if they cannot be counted, or if a table has no columns."""
    columns = _table(outputs)
    if columns is not None:
        return len(next(iter(columns.values()))) if columns else None
    if isinstance(outputs, np.ndarray):
        return len(outputs) if outputs.ndim else None
    return len(outputs) if isinstance(outputs, Sequence) and not isinstance(outputs, str | bytes) else None


def as_outputs(outputs: Any) -> Any:
    """Iterators and objects that are arrays by their protocol, brought into a form that `leaves` takes."""
    if isinstance(outputs, np.ndarray | Sequence | Mapping) or _table(outputs) is not None:
        return outputs
    if isinstance(outputs, Iterator):
        return list(outputs)
    return np.asarray(outputs)


def _of_library(value: Any, library: str, name: str) -> bool:
    """Returns whether it is of a class of a library that somebody has imported: this module imports none of them."""
    module = sys.modules.get(library)
    return module is not None and isinstance(value, getattr(module, name))


def _table(outputs: Any) -> dict[str, Any] | None:
    """Columns by name; None for what is no table."""
    if isinstance(outputs, Mapping):
        return {str(name): _plain(column) for name, column in outputs.items()}
    if _of_library(outputs, "pandas", "DataFrame"):
        return {str(name): _plain(outputs.iloc[:, place]) for place, name in enumerate(outputs.columns)}
    if _of_library(outputs, "polars", "DataFrame"):
        return {name: _plain(outputs[name]) for name in outputs.columns}
    if _is_series(outputs):
        return {"value": _plain(outputs)}
    return None


def _is_series(value: Any) -> bool:
    return _of_library(value, "pandas", "Series") or _of_library(value, "polars", "Series")


def _plain(column: Any) -> Cells:
    """A column as an array of numbers where its type has no missing values of its own, else cell by cell."""
    if isinstance(column, np.ndarray):
        return column
    if _of_library(column, "pandas", "Series"):
        numbers = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufc"
        return np.asarray(column) if numbers else list(column)
    if _of_library(column, "polars", "Series"):
        return list(column.to_list())
    return list(column)


def _taken_apart(cells: Any, rows: IntArray | None, name: str, depth: int) -> Iterator[Leaf]:
    if isinstance(cells, np.ma.MaskedArray):
        cells = cells.tolist()  # what is masked becomes None
    if isinstance(cells, np.ndarray):
        yield from _of_array(cells, rows, name, depth)
        return
    by_sort = _sorts(cells)
    for sort, places in by_sort.items():
        if len(by_sort) == 1:
            some, inside = (cells if isinstance(cells, list) else list(cells)), rows
        else:
            some = [cells[place] for place in places]
            inside = places if rows is None else rows[places]
        yield from _of_sort(sort, some, inside, name, depth)


def _of_array(array: NDArray[Any], rows: IntArray | None, name: str, depth: int) -> Iterator[Leaf]:
    if array.dtype.names is not None:
        for field in array.dtype.names:
            yield from _taken_apart(array[field], rows, f"{name}.{field}", depth + 1)
        return
    if array.ndim > 1:
        yield Leaf(name, "length", rows, np.full(len(array), array.shape[1]))
        for place in range(array.shape[1]):
            yield from _taken_apart(array[:, place], rows, f"{name}[{place}]", depth + 1)
        return
    match array.dtype.kind:
        case "b" | "i" | "u" | "f" | "c":
            yield Leaf(name, "number", rows, array)
        case "M" | "m":
            yield Leaf(name, "number", rows, array.view(np.int64))
        case "U":
            yield Leaf(name, "text", rows, array.tolist())
        case "S":
            yield Leaf(name, "bytes", rows, array.tolist())
        case "V":
            size, joined = array.dtype.itemsize, np.ascontiguousarray(array).tobytes()
            yield Leaf(name, "bytes", rows, [joined[at : at + size] for at in range(0, size * len(array), size)])
        case _:
            yield from _taken_apart(array.tolist(), rows, name, depth + 1)


def _sorts(cells: Sequence[Any]) -> dict[_Sort, IntArray]:
    """The places of each sort of cells."""
    known = {kind: _sort(kind) for kind in set(map(type, cells))}
    sorts = set(known.values())
    if len(sorts) == 1:
        return {sorts.pop(): np.empty(0, np.int64)}
    ordered = [known[type(cell)] for cell in cells]
    found: dict[_Sort, list[int]] = {}
    for place, sort in enumerate(ordered):
        found.setdefault(sort, []).append(place)
    return {sort: np.array(places, np.int64) for sort, places in sorted(found.items())}


def _sort(kind: type) -> _Sort:
    if issubclass(kind, Enum) and not issubclass(kind, int | float):
        return "text"
    if issubclass(kind, int | float | complex | np.number | np.bool_ | Decimal | Fraction):
        return "number"
    if issubclass(kind, str):
        return "text"
    if issubclass(kind, bytes | bytearray | memoryview):
        return "bytes"
    if kind is type(None) or kind.__name__ in {"NAType", "NaTType"}:
        return "nothing"
    if issubclass(kind, np.void):
        return "row"
    if issubclass(kind, np.datetime64 | np.timedelta64):
        return "text"
    if issubclass(kind, Mapping):
        return "mapping"
    if issubclass(kind, AbstractSet):
        return "set"
    if dataclasses.is_dataclass(kind):
        return "record"
    if issubclass(kind, np.ndarray | Sequence):
        return "sequence"
    if kind.__name__ == "Series" and kind.__module__.split(".")[0] in {"pandas", "polars"}:
        return "series"
    return "other"


def _of_sort(sort: _Sort, cells: list[Any], rows: IntArray | None, name: str, depth: int) -> Iterator[Leaf]:
    if depth > _DEEPEST:
        yield Leaf(name, "other", rows, cells)
        return
    match sort:
        case "number":
            yield Leaf(name, "number", rows, _numbers(cells))
        case "text":
            yield Leaf(name, "text", rows, [cell if isinstance(cell, str) else str(cell) for cell in cells])
        case "bytes":
            yield Leaf(name, "bytes", rows, [bytes(cell) for cell in cells])
        case "nothing" | "other":
            yield Leaf(name, sort, rows, cells)
        case "sequence":
            yield from _of_sequences(cells, rows, name, depth)
        case "set":
            yield from _of_mappings([dict.fromkeys(cell, 1.0) for cell in cells], rows, name, depth, repr)
        case "mapping":
            yield from _of_mappings(cells, rows, name, depth, repr)
        case "row":
            fields = [dict(zip(cell.dtype.names or (), cell, strict=False)) for cell in cells]
            yield from _of_mappings(fields, rows, name, depth, None)
        case "record":
            yield from _of_mappings([_fields(cell) for cell in cells], rows, name, depth, None)
        case "series":
            items = [
                dict(zip(cell.index, cell, strict=True)) if type(cell).__module__.startswith("pandas") else
                dict(enumerate(cell.to_list())) for cell in cells
            ]  # fmt: skip
            yield from _of_mappings(items, rows, name, depth, repr)


def _fields(cell: Any) -> dict[str, Any]:
    stated = {field.name: getattr(cell, field.name) for field in dataclasses.fields(cell)}
    # What was set on it besides, as a fit does on an estimator that is a dataclass, was released with it.
    return {**stated, **getattr(cell, "__dict__", {})}


def _numbers(cells: list[Any]) -> Cells:
    """An array where all cells are of one type that float64, int64 or complex128 holds; else the cells themselves."""
    kinds = set(map(type, cells))
    if kinds <= {float, np.float64, np.float32, np.float16}:
        return np.array(cells, np.float64)
    if kinds <= {bool, np.bool_}:
        return np.array(cells, np.bool_)
    if kinds <= {complex, np.complex128}:
        return np.array(cells, np.complex128)
    if kinds == {int}:
        try:
            return np.array(cells, np.int64)
        except OverflowError:
            return cells
    return cells


def _of_sequences(cells: list[Any], rows: IntArray | None, name: str, depth: int) -> Iterator[Leaf]:
    cells = [cell.item() if isinstance(cell, np.ndarray) and not cell.ndim else cell for cell in cells]
    plain = [place for place, cell in enumerate(cells) if _sort(type(cell)) != "sequence"]
    if plain:  # arrays of shape (), which are numbers
        yield from _taken_apart([cells[place] for place in plain], _inside(rows, plain), name, depth + 1)
        places = [place for place, cell in enumerate(cells) if _sort(type(cell)) == "sequence"]
        if not places:
            return
        cells, rows = [cells[place] for place in places], _inside(rows, places)
    lengths = np.array([len(cell) for cell in cells], np.int64)
    yield Leaf(name, "length", rows, lengths)
    longest = int(lengths.max(initial=0))
    if longest == int(lengths.min(initial=0)):
        for place, across in enumerate(zip(*cells, strict=True)):
            yield from _taken_apart(list(across), rows, f"{name}[{place}]", depth + 1)
        return
    for place in range(longest):
        having = np.flatnonzero(lengths > place)
        column = [cells[index][place] for index in having.tolist()]
        yield from _taken_apart(column, having if rows is None else rows[having], f"{name}[{place}]", depth + 1)


def _inside(rows: IntArray | None, places: list[int]) -> IntArray:
    found = np.array(places, np.int64)
    return found if rows is None else rows[found]


def _of_mappings(
    cells: list[Any], rows: IntArray | None, name: str, depth: int, shown: Callable[[Any], str] | None
) -> Iterator[Leaf]:
    """By key, in the order in which keys are met; `shown` makes a name of a key, None for fields of a record."""
    yield Leaf(name, "length", rows, np.array([len(cell) for cell in cells], np.int64))
    names: dict[Any, str] = {}
    for cell in cells:
        for key in cell:
            if key not in names:
                names[key] = f"{name}.{key}" if shown is None else f"{name}[{shown(key)}]"
    for key, path in names.items():
        having = [place for place, cell in enumerate(cells) if key in cell]
        inside = rows if len(having) == len(cells) else _inside(rows, having)
        yield from _taken_apart([cells[place][key] for place in having], inside, path, depth + 1)
