"""Rehearsals of a function from outside, on synthetic rows: before its first use, so that its errors may be shown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.curator.queries.blocks import Columns, blocks, in_block, keys_of
from ledgerwood.curator.queries.moves import first_outside
from ledgerwood.errors import InvalidParameter
from ledgerwood.mechanisms import BallShifts, BoxShifts
from ledgerwood.schema import Categorical, Feature

Integers = NDArray[np.int64]
Shifts = BoxShifts | BallShifts
SYNTHETIC_ROWS = 48
_SHOWN = 8
"""Numbers of an error, at most."""


class Rehearsed(Protocol):
    """What a rehearsal reads of a declared statistic."""

    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> tuple[Feature, ...]: ...
    @property
    def width(self) -> int: ...
    @property
    def exponent(self) -> int: ...
    @property
    def one_by_one(self) -> bool: ...
    @property
    def constants(self) -> Mapping[str, Any]: ...
    @property
    def sensitivities(self) -> Mapping[Adjacency, Shifts]: ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A statistic, and how it is evaluated.

    Args:
        query: what is declared.
        made_of: calls the function.
        clamped: holds contributions within the bounds.
        filler: the row that fills a block up.
        size: rows of a block.
    """

    query: Rehearsed
    made_of: Callable[[Columns], NDArray[Any]]
    clamped: Callable[[Integers], Integers]
    filler: Columns
    size: int


def rehearse(trial: Trial) -> None:
    """Try the function on synthetic rows: alone, again, beside other rows, and in a chunk of another length.

    Raises:
        InvalidParameter: it does not do what is declared; of synthetic rows only, so that the error may say which.
    """
    query = trial.query
    rows = _synthetic(query.columns)
    every, size, filler = np.arange(SYNTHETIC_ROWS), trial.size, trial.filler
    keys = keys_of(rows)

    def tried(members: Integers, at: Integers, beside: Columns) -> Integers:
        """What is made of rows in their places; the others are all one row."""

        def called(block: Columns, n: int) -> Integers:
            return _tried(trial, block, n)

        return np.concatenate([found for _, found in in_block(called, rows, members, at, beside, size, members)])

    def one(place: int) -> Integers:
        return tried(every[place : place + 1], (keys[place : place + 1] % size).astype(np.int64), filler)

    alone = np.concatenate([one(place) for place in range(SYNTHETIC_ROWS)])
    for place in reversed(range(SYNTHETIC_ROWS)):
        later = one(place)[0]
        if not np.array_equal(later, alone[place]):
            raise InvalidParameter(
                f"{query.name}: the synthetic row {_shown(rows, place)} contributes {_few(alone[place])} at first, "
                f"and {_few(later)} after other rows; a row's contribution must depend on that row only"
            )
    if not query.one_by_one:
        _require_apart(query.name, rows, alone, _tried(trial, rows, SYNTHETIC_ROWS), steps=1)
        for place in range(0, SYNTHETIC_ROWS, SYNTHETIC_ROWS // 6):
            beside = {name: values[place : place + 1] for name, values in rows.items()}
            together = np.empty_like(alone)
            for members, at in blocks(keys, size):
                together[members] = tried(members, at, beside)
            _require_apart(query.name, rows, alone, together, steps=0)
    for adjacency, shifts in query.sensitivities.items():
        _require_within(query, trial.clamped(alone), adjacency, shifts)


def _require_apart(name: str, rows: Columns, alone: Integers, together: Integers, *, steps: int) -> None:
    """Equal; or, in a chunk of another length, up to this many steps, by which numbers may be rounded there."""
    apart = (together != alone) & ((steps == 0) | (np.abs(together - alone) > steps))
    for place in np.flatnonzero(apart.any(axis=1)).tolist():
        raise InvalidParameter(
            f"{name}: the synthetic row {_shown(rows, place)} contributes {_few(alone[place])} alone, and "
            f"{_few(together[place])} together with others; a row's contribution must depend on that row only"
        )


def _require_within(query: Rehearsed, held: Integers, adjacency: Adjacency, shifts: Shifts) -> None:
    others = np.zeros_like(held[:1])  # of a row that is not there, or cannot be read
    if adjacency is Adjacency.REPLACE_ONE:
        others = np.concatenate((others, held))
    for other in others:
        moves = held - other
        outside = first_outside(moves, shifts, Fraction(2) ** query.exponent)
        if outside is not None:
            raise InvalidParameter(
                f"{query.name}: two synthetic tables that are neighbours ({adjacency.value}) differ by "
                f"{_few(moves[outside])} steps; declared is {repr(shifts)[:200]}"
            )


def _few(numbers: Integers) -> str:
    """The first numbers of a row, for an error."""
    return str(numbers[:_SHOWN].tolist()) + (f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else "")


def _tried(trial: Trial, chunk: Columns, rows: int) -> Integers:
    interrupts = (KeyboardInterrupt, SystemExit)
    try:
        with np.errstate(all="ignore"):
            found = trial.made_of({name: values.copy() for name, values in chunk.items()})
    except interrupts:
        raise
    except KeyError as error:
        constants = trial.query.constants
        given = f" and the constants {', '.join(map(repr, constants))}" if constants else ""
        columns = ", ".join(map(repr, chunk))
        raise InvalidParameter(
            f"{trial.query.name}: the function asks for {error}; it is given the columns {columns}{given}"
        ) from error
    except BaseException as error:
        raise InvalidParameter(
            f"{trial.query.name}: the function raises {type(error).__name__} for a chunk of {rows} synthetic rows, "
            f"such as {_shown(chunk, 0)}: {str(error)[:200]}; it must take every declared "
            "value, and NaN for a missing one"
        ) from error
    if found.shape != (rows, trial.query.width) or found.dtype.kind != "i":
        raise InvalidParameter(
            f"{trial.query.name}: the function returns shape {found.shape} of {found.dtype} for {rows} synthetic rows; "
            f"declared are whole numbers ({rows}, {trial.query.width}), such as int64"
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


def _shown(rows: Columns, place: int) -> str:
    shown = [f"{name}={values[place].item()!r}" for name, values in rows.items()]
    return ", ".join(shown[:_SHOWN]) + (", ..." if len(shown) > _SHOWN else "")
