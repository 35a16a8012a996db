"""Rows in LIBSVM files (svmlight's format): `label index:value index:value ...`, a line for each row.

Indices are features 1, 2, ... in the schema's order, and rise within a line; what is not there is 0. A `#` begins a
comment, and `qid:...` after the label is left alone, as are indices beyond the schema's features.

Each line is read by itself. Of rows for training nothing is refused because of one: a line that cannot be read is a
row without a label whose first value is missing, which contributes 0. Rows for prediction are refused by line.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ledgerwood.errors import SchemaError
from ledgerwood.schema import Schema

# mypy: disable-error-code="no-untyped-def"

ENDINGS = (".libsvm", ".svm", ".svmlight", ".libsvm.gz", ".svm.gz", ".svmlight.gz")
"""Of the files' names."""
BLOCK_BYTES = 1 << 23
"""Of a file, which are read at once."""
_TENS = np.array([float(f"1e{power}") for power in range(23)])
"""Powers of ten that are floats, so that a quotient of a short whole number and one is rounded once."""
Lines = tuple[csr_array, NDArray[np.float64]]
"""Features (n, n_features), and labels (n,), NaN for none."""


def libsvm_batches(path: Path, schema: Schema, *, strict: bool) -> Iterator[Lines]:
    """The rows of a file, some at a time; packed by gzip where its name ends in .gz.

    Args:
        path: the file.
        schema: with its features listed.
        strict: of rows for prediction: a line that cannot be read is refused, and labels are left alone.

    Raises:
        SchemaError: not a packed file, or a line that is refused strictly.
    """
    # A row that is not read has no value of a feature that must have one: it takes no part.
    gaps = [place for place, feature in enumerate(schema.features) if not feature.missing]
    mark, before = gaps[0] if gaps else -1, 0
    for text in _blocks(path):
        rows, labels, bad = _rows_of(text, len(schema.features), mark)
        if strict and bad >= 0:
            raise SchemaError(
                f"{path}, line {before + bad + 1} is not one of LIBSVM's format: label index:value index:value ..., "
                "with indices that rise from 1 on"
            )
        before += int(np.count_nonzero(text == ord("\n")))
        yield rows, labels


def no_rows(n_features: int) -> Lines:
    """A batch without rows."""
    return csr_array((0, n_features), dtype=np.float64), np.empty(0)


def _blocks(path: Path) -> Iterator[NDArray[np.uint8]]:
    """Some lines at a time, each with its end."""
    opened: Any = gzip.open if path.suffix.lower() == ".gz" else open
    rest = b""
    try:
        with opened(path, "rb") as file:
            while read := file.read(BLOCK_BYTES):
                lines, end, rest_of_it = read.rpartition(b"\n")
                if end:
                    yield np.frombuffer(rest + lines + end, dtype=np.uint8)
                    rest = rest_of_it
                else:
                    rest += read
    except (gzip.BadGzipFile, EOFError, zlib.error):
        damaged = True
    else:
        damaged = False
    if damaged:  # outside of the block above, whose error tells a checksum of the rows
        raise SchemaError(f"{path} is not packed by gzip, or is damaged")
    if rest:
        yield np.frombuffer(rest + b"\n", dtype=np.uint8)


def _rows_of(text: NDArray[np.uint8], n_features: int, mark: int) -> tuple[csr_array, NDArray[np.float64], int]:
    """Features, labels, and the first line that cannot be read, -1 for none."""
    n_lines, n_values = (int(np.count_nonzero(text == ord(sign))) for sign in "\n:")
    labels, starts = np.empty(n_lines), np.zeros(n_lines + 1, dtype=np.int64)
    places, values = np.empty(n_values + n_lines, dtype=np.int32), np.empty(n_values + n_lines)
    odd = np.empty((n_values + n_lines, 2), dtype=np.int64)
    given = np.empty(0, dtype=np.complex128)
    while True:
        n_rows, n_odd, bad = _parse(text, n_features, mark, given, labels, starts, places, values, odd)
        if n_odd == len(given):
            break
        # Numbers that take more than a loop: the same text is gone through again, with their values.
        given = np.array([_number(text[begin:end].tobytes()) for begin, end in odd[:n_odd].tolist()])
    end = int(starts[n_rows])
    kept = (values[:end].copy(), places[:end].copy(), starts[: n_rows + 1].copy())
    return csr_array(kept, shape=(n_rows, n_features)), labels[:n_rows].copy(), bad


def _number(word: bytes) -> complex:
    """The number as Python reads it; of another word one with an imaginary part."""
    try:
        return complex(float(word), 0.0)
    except ValueError:
        return complex(0.0, 1.0)


@numba.njit(cache=True, nogil=True)
def _blank(sign):
    return sign == 32 or 9 <= sign <= 13


@numba.njit(cache=True, nogil=True)
def _short_number(text, begin, end):
    """(Whether it is a number of at most 15 digits with a small exponent, and the number)."""
    at, minus = begin, False
    if at < end and (text[at] == 43 or text[at] == 45):
        minus = text[at] == 45
        at += 1
    whole, digits, seen, shift, point = np.int64(0), 0, 0, 0, False
    while at < end:
        sign = text[at]
        if 48 <= sign <= 57:
            seen += 1
            if whole > 0 or sign > 48:
                digits += 1
            if digits > 15:
                return False, 0.0
            whole = whole * 10 + np.int64(sign - 48)
            shift -= 1 if point else 0
        elif sign == 46 and not point:
            point = True
        else:
            break
        at += 1
    if not seen:
        return False, 0.0
    if at < end and (text[at] == 101 or text[at] == 69):
        at += 1
        below = False
        if at < end and (text[at] == 43 or text[at] == 45):
            below = text[at] == 45
            at += 1
        power, places = 0, 0
        while at < end and 48 <= text[at] <= 57 and places < 4:
            power = power * 10 + int(text[at]) - 48
            places += 1
            at += 1
        if not places:
            return False, 0.0
        shift += -power if below else power
    if at < end or not -22 <= shift <= 22:
        return False, 0.0
    found = whole / _TENS[-shift] if shift < 0 else whole * _TENS[shift]
    return True, -found if minus else found


@numba.njit(cache=True, nogil=True)
def _parse(text, n_features, mark, given, labels, starts, places, values, odd):
    """Read all lines; (rows, numbers that `_short_number` does not read, first line that cannot be read or -1).

    Args:
        text: uint8 (n,), lines with their ends.
        mark: the feature that a row which cannot be read has no value of; -1: none.
        given: complex (k,), the odd numbers as `_number` reads them, or empty.
        labels: float64, filled.
        starts: int64, where each row's entries begin, filled, and the end.
        places, values: int32 and float64, filled: of each entry.
        odd: int64 (n, 2), filled: begin and end of each odd number.
    """
    n_rows, n_odd, n_stored, line, bad, at = 0, 0, 0, 0, -1, 0
    while at < len(text):
        stop = at
        while text[stop] != 10:
            stop += 1
        end = at
        while end < stop and text[end] != 35:
            end += 1
        begin, word, last, good, wrong, empty = n_stored, 0, 0, True, False, True
        label = np.nan
        while True:
            while at < end and _blank(text[at]):
                at += 1
            if at >= end:
                break
            first, colon = at, -1
            while at < end and not _blank(text[at]):
                if text[at] == 58 and colon < 0:
                    colon = at
                at += 1
            empty = False
            query = colon == first + 3 and text[first] == 113 and text[first + 1] == 105 and text[first + 2] == 100
            if word == 1 and query:
                word += 1
                continue
            index = 0
            if word > 0:
                for digit in range(first, max(colon, first)):
                    good = good and bool(48 <= text[digit] <= 57)
                    index = min(index * 10 + int(text[digit]) - 48, 2**40)
                good = good and colon > first and index > last
                last = index
            else:
                good = colon < 0
            if not good:
                break
            short, number = _short_number(text, colon + 1 if word > 0 else first, at)
            if not short:
                odd[n_odd, 0], odd[n_odd, 1] = colon + 1 if word > 0 else first, at
                if n_odd < len(given):
                    number = given[n_odd].real
                    if given[n_odd].imag != 0.0:
                        # The line is read to its end: its odd numbers are counted as the first time.
                        number = np.nan
                        wrong |= word > 0
                n_odd += 1
            if word == 0:
                label = number
            elif index <= n_features:
                places[n_stored], values[n_stored] = index - 1, number
                n_stored += 1
            word += 1
        if not empty:
            if wrong or not good:
                bad = line if bad < 0 else bad
                n_stored, label = begin, np.nan
                if mark >= 0:
                    places[n_stored], values[n_stored] = mark, np.nan
                    n_stored += 1
            labels[n_rows] = label
            n_rows += 1
            starts[n_rows] = n_stored
        line += 1
        at = stop + 1
    return n_rows, n_odd, bad
