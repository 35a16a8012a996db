"""Candidate scores of an output or of its bits, learned on their own draws.

A high score speaks for one of the two data sets. Any function of an output is valid in the test that comes after: what
is learned here decides only how much is found.
"""

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.verification.black_box.encoding import (
    Atoms,
    Bins,
    IntArray,
    believed,
    bins,
    counts,
    keys,
    log_ratios,
    lowest_bits,
    row_bits,
    smoothed,
    tail_ratios,
)
from ledgerwood.verification.black_box.result import SIDES, Side

_GROUPS = 64
_GROUP = 300
_CELLS = 120
_EACH = 40


class Score(abc.ABC):
    """A function of an output."""

    __slots__ = ()

    @abc.abstractmethod
    def __call__(self, values: FloatArray) -> FloatArray:
        """Scores of outputs of shape (n, k); shape (n,)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreCandidate:
    """A score, the data set for which a high one speaks, and what it looks at, in words."""

    score: Score
    side: Side
    words: str


@final
@dataclass(frozen=True, slots=True, eq=False)
class DerivedScores(Score):
    """A quick last step after a slow first one that other scores take as well: a sign, or a table's entry."""

    first_step: Callable[[FloatArray], NDArray[Any]]
    last: float | FloatArray

    def __call__(self, values: FloatArray) -> FloatArray:
        return self.finish(self.first_step(values))

    def finish(self, found: NDArray[Any]) -> FloatArray:
        """The score after the first step."""
        return np.asarray(self.last[found] if isinstance(self.last, np.ndarray) else self.last * found)


@final
@dataclass(frozen=True, slots=True)
class ValueScore(Score):
    """One number of the output, upwards or downwards, or its distance from a point; NaN scores lowest."""

    column: int
    sign: float
    centre: float | None = None

    def __call__(self, values: FloatArray) -> FloatArray:
        column = values[:, self.column]
        if self.centre is not None:
            with np.errstate(over="ignore"):
                column = np.abs(column - self.centre)
        column = self.sign * column
        return np.where(np.isnan(column), -np.inf, column)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Binned(Score):
    """The sum, over columns, of a number that belongs to the bin."""

    columns: tuple[int, ...]
    cuts: tuple[Bins, ...]
    tables: tuple[FloatArray, ...]

    def __call__(self, values: FloatArray) -> FloatArray:
        total = np.zeros(values.shape[0])
        for column, cut, table in zip(self.columns, self.cuts, self.tables, strict=True):
            total += table[cut.cells(values[:, column])]
        return total


@final
@dataclass(frozen=True, slots=True, eq=False)
class Keyed:
    """The cell that belongs to a pattern of atoms and, where one number is left over, to the bin of that number."""

    atoms: tuple[Atoms, ...]
    known: NDArray[np.uint64]
    starts: IntArray
    columns: IntArray
    cuts: tuple[Bins | None, ...]

    def __call__(self, values: FloatArray) -> IntArray:
        """The cell of each output; the last one is for patterns that were never seen. Shape (n,)."""
        found = keys([atom.codes(values[:, j]) for j, atom in enumerate(self.atoms)])
        places = np.minimum(np.searchsorted(self.known, found), self.known.size - 1)
        hit = self.known[places] == found
        cells = np.where(hit, self.starts[places], self.starts[-1])
        cut_at = [group for group, cut in enumerate(self.cuts) if cut is not None]
        if cut_at:
            order, ends = _by_group(np.where(hit, places, self.known.size), self.known.size + 1)
            for group in cut_at:
                rows, cut = order[ends[group] : ends[group + 1]], self.cuts[group]
                if cut is not None:
                    cells[rows] += cut.cells(values[rows, self.columns[group]])
        return np.asarray(cells)


def _by_group(places: IntArray, number: int) -> tuple[IntArray, IntArray]:
    """Rows by group, shape (n,), and where each group begins and the last one ends, shape (number + 1,)."""
    small = places.astype(np.uint16) if number < 2**16 else places  # numpy sorts short integers by radix
    return np.argsort(small, kind="stable"), np.concatenate([[0], np.cumsum(counts(places, number))])


def of_numbers(
    first: FloatArray, second: FloatArray, columns: tuple[int, ...], names: tuple[str, ...]
) -> list[ScoreCandidate]:
    """Thresholds and bins of single columns, which have names."""
    found: list[ScoreCandidate] = []
    for j in columns:
        both = np.concatenate([first[:, j], second[:, j]])
        finite = both[np.isfinite(both)]
        name = "the output" if names[j] == "output" else names[j]
        if finite.size and finite.min() < finite.max():
            centre = float(np.median(finite))
            for sign, word in ((1.0, "above"), (-1.0, "below")):
                for side in SIDES:
                    found.append(
                        ScoreCandidate(score=ValueScore(j, sign), side=side, words=f"{name} {word} a threshold")
                    )
                    word_of = "far from" if sign > 0 else "near"
                    found.append(
                        ScoreCandidate(
                            score=ValueScore(j, sign, centre), side=side, words=f"{name} {word_of} {centre:.4g}"
                        )
                    )
        cut = bins(both)
        up, down = believed(*_cell_counts(cut, first[:, j], second[:, j]))
        words = f"{name} in a set of intervals"
        found.append(ScoreCandidate(score=Binned((j,), (cut,), (up,)), side="first", words=words))
        found.append(ScoreCandidate(score=Binned((j,), (cut,), (down,)), side="second", words=words))
    return found


def _cell_counts(cut: Bins, first: FloatArray, second: FloatArray) -> tuple[IntArray, IntArray, tuple[int, int]]:
    return (
        counts(cut.cells(first), cut.number),
        counts(cut.cells(second), cut.number),
        (first.shape[0], second.shape[0]),
    )


def of_columns(first: FloatArray, second: FloatArray) -> Binned:
    """The sum of all columns' log ratios: what is best where columns are independent."""
    cuts, tables = [], []
    for j in range(first.shape[1]):
        cut = bins(np.concatenate([first[:, j], second[:, j]]), most=_EACH)
        with_row, without, runs = _cell_counts(cut, first[:, j], second[:, j])
        if cut.edges.size == _EACH:  # quantiles of numbers that do not recur: neighbours are alike
            with_row[: _EACH + 1], without[: _EACH + 1] = (
                smoothed(with_row[: _EACH + 1]),
                smoothed(without[: _EACH + 1]),
            )
        cuts.append(cut)
        tables.append(log_ratios(with_row, without, runs))
    return Binned(tuple(range(first.shape[1])), tuple(cuts), tuple(tables))


def both_ways(score: Callable[[FloatArray], FloatArray], words: str) -> list[ScoreCandidate]:
    """A score that speaks for the first data set, and its opposite."""
    return [
        ScoreCandidate(score=DerivedScores(score, sign), side=side, words=words)
        for sign, side in zip((1.0, -1.0), SIDES, strict=True)
    ]


def of_patterns(
    first: FloatArray, second: FloatArray, marks: tuple[Atoms, ...], codes: list[IntArray]
) -> list[ScoreCandidate]:
    """Patterns of values that recur, with the bins of a number that is left over; none if patterns do not recur.

    Args:
        first, second: outputs.
        marks: each column's atoms.
        codes: their codes, of all outputs of both.
    """
    both = np.concatenate([first, second])
    known, places, times = np.unique(keys(codes), return_inverse=True, return_counts=True)
    if known.size > 0.25 * both.shape[0] or (known.size == 1 and both.shape[1] == 1):
        return []
    cuts: list[Bins | None] = [None] * known.size
    columns = np.zeros(known.size, np.int64)
    for group in np.argsort(-times, kind="stable")[:_GROUPS]:
        if times[group] < _GROUP:
            break
        rows = np.flatnonzero(places == group)
        free = [j for j, (mark, code) in enumerate(zip(marks, codes, strict=True)) if code[rows[0]] == mark.number]
        if free:
            columns[group] = _telling(both, rows, first.shape[0], free)
            cuts[group] = bins(both[rows, columns[group]], most=_CELLS)
    sizes = np.array([1 if cut is None else cut.number for cut in cuts] + [1])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    cell = Keyed(marks, known, starts, columns, tuple(cuts))
    tables = [counts(cell(part), int(sizes.sum())) for part in (first, second)]
    up, down = believed(tables[0], tables[1], (first.shape[0], second.shape[0]))
    up[-1] = down[-1] = -1.0
    pattern = "a pattern of values that recur"
    by_words = {pattern + (", and an interval of a number" if any(cuts) else ""): (up, down)}
    if any(cuts):
        cumulated = tuple(np.copy(table) for table in (up, down))
        runs = (first.shape[0], second.shape[0])
        for start, cut in zip(starts, cuts, strict=False):
            if cut is not None:
                cells = slice(start, start + cut.edges.size + 1)
                for table, sides in zip(cumulated, (tables, tables[::-1]), strict=True):
                    table[cells] = tail_ratios(sides[0][cells], sides[1][cells], runs)
        by_words[pattern + ", and a number above or below a threshold"] = (cumulated[0], cumulated[1])
    return [
        ScoreCandidate(score=DerivedScores(cell, table), side=side, words=words)
        for words, both_sides in by_words.items()
        for table, side in zip(both_sides, SIDES, strict=True)
    ]


def _telling(both: FloatArray, rows: IntArray, border: int, free: list[int]) -> int:
    """Of the columns that hold numbers in these rows, the one whose bins differ most between the two data sets."""
    if len(free) == 1:
        return free[0]
    inside = rows < border
    gains = []
    for j in free[:_GROUPS]:
        cut = bins(both[rows, j], most=16)
        cells = cut.cells(both[rows, j])
        a, b = counts(cells[inside], cut.number), counts(cells[~inside], cut.number)
        gains.append(float((np.abs(a - b) / np.sqrt(a + b + 1.0)).max()))
    return free[int(np.argmax(gains))]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Bits(Score):
    """The sum, over columns, of a number that belongs to exponent and lowest bit."""

    columns: tuple[int, ...]
    known: tuple[IntArray, ...]
    tables: tuple[FloatArray, ...]

    def __call__(self, values: FloatArray) -> FloatArray:
        total = np.zeros(values.shape[0])
        for column, known, table in zip(self.columns, self.known, self.tables, strict=True):
            found = _bit_cells(values[:, column])
            places = np.minimum(np.searchsorted(known, found), known.size - 1)
            total += np.where(known[places] == found, table[places], 0.0)
        return total


@final
@dataclass(frozen=True, slots=True, eq=False)
class Repeats(Score):
    """A number that belongs to the exact bits of an output; 0 if they were never seen."""

    known: NDArray[np.uint64]
    table: FloatArray

    def __call__(self, values: FloatArray) -> FloatArray:
        found = row_bits(values)
        places = np.minimum(np.searchsorted(self.known, found), self.known.size - 1)
        return np.asarray(np.where(self.known[places] == found, self.table[places], 0.0))


def _bit_cells(column: FloatArray) -> IntArray:
    exponent, place = lowest_bits(column)
    return np.asarray(exponent * 8192 + place + 2048)


def of_bits(first: FloatArray, second: FloatArray, names: tuple[str, ...]) -> list[ScoreCandidate]:
    """Exponents and lowest bits, column by column and summed; and outputs that are equal in every bit."""
    found: list[ScoreCandidate] = []
    known, ups, downs = [], [], []
    runs = (first.shape[0], second.shape[0])
    for j in range(first.shape[1]):
        cells = _bit_cells(np.concatenate([first[:, j], second[:, j]]))
        distinct, places = np.unique(cells, return_inverse=True)
        up, down = believed(counts(places[: runs[0]], distinct.size), counts(places[runs[0] :], distinct.size), runs)
        known.append(distinct)
        ups.append(up)
        downs.append(down)
        words = f"exponent and lowest bit of {'the output' if names[j] == 'output' else names[j]}"
        found.append(ScoreCandidate(score=Bits((j,), (distinct,), (up,)), side="first", words=words))
        found.append(ScoreCandidate(score=Bits((j,), (distinct,), (down,)), side="second", words=words))
    if first.shape[1] > 1:
        columns, words = tuple(range(first.shape[1])), "exponents and lowest bits of all numbers"
        for tables, side in zip((ups, downs), SIDES, strict=True):
            found.append(ScoreCandidate(score=Bits(columns, tuple(known), tuple(tables)), side=side, words=words))
    return found + _of_repeats(first, second)


def _of_repeats(first: FloatArray, second: FloatArray) -> list[ScoreCandidate]:
    found = np.concatenate([row_bits(first), row_bits(second)])
    distinct, places, times = np.unique(found, return_inverse=True, return_counts=True)
    if (times > 1).sum() < 20:
        return []
    border, runs = first.shape[0], (first.shape[0], second.shape[0])
    ratio = log_ratios(counts(places[:border], distinct.size), counts(places[border:], distinct.size), runs)
    words = "the exact bits, among outputs that were seen before"
    return [
        ScoreCandidate(score=Repeats(distinct, ratio), side="first", words=words),
        ScoreCandidate(score=Repeats(distinct, -ratio), side="second", words=words),
    ]
