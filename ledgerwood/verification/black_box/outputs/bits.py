"""Candidate scores of the bits of an output, for a bitwise audit."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.verification.black_box.outputs.encoding import lowest_bits, row_bits
from ledgerwood.verification.black_box.result import SIDES
from ledgerwood.verification.black_box.scoring.counting import IntArray, believed, counts, log_ratios
from ledgerwood.verification.black_box.scoring.scores import Score, ScoreCandidate


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
