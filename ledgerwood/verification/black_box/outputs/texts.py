"""The form of texts and bytes that the scores use: the numbers that are written in them, and the rest.

Every function here looks at one text at a time. The form of a text is the text with each digit replaced by 0; so the
numbers and the form together keep all of it, but for digits beyond those of float64.
"""

import re
from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray

Number = float | int
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_HEXADECIMAL = re.compile(r"[-+]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*(?:[pP][-+]?\d+)?")
_DIGITS = str.maketrans("123456789", "000000000")
_WIDEST_INTEGER = 4000
"""Digits of a whole number that are read exactly: Python refuses to read more than 4300."""


def numbers(text: str) -> tuple[Number, ...]:
    """The numbers that are written in a text, in order; a text that is one number has just this."""
    plain = text.strip()
    try:
        return (_number(plain),)
    except ValueError:
        pass
    if _HEXADECIMAL.fullmatch(plain):
        try:
            return (float.fromhex(plain),)
        except (ValueError, OverflowError):
            return ()
    return tuple(_number(found) for found in _NUMBER.findall(text))


def _number(text: str) -> Number:
    """Whole numbers keep their digits; `float` reads all else, "nan" and "inf" among it."""
    body = text[1:] if text[:1] in {"-", "+"} else text
    if body.isascii() and body.isdigit() and 15 < len(body) <= _WIDEST_INTEGER:
        return int(text)
    return float(text)


def form(text: str) -> float:
    """A number that belongs to the form of a text."""
    return float(crc32(text.translate(_DIGITS).encode("utf-8", "surrogatepass")))


def printable(cells: Iterable[bytes]) -> bool:
    """Returns whether these bytes are all plain texts."""
    return all(cell.isascii() and cell.decode("ascii").isprintable() for cell in cells)


def as_text(cell: bytes) -> str:
    """One byte, one character: no bytes are refused."""
    return cell.decode("latin-1")


def byte_columns(cells: Sequence[bytes], size: int) -> NDArray[np.uint8]:
    """The first `size` bytes of each, zeros behind its end, shape (n, size)."""
    joined = b"".join(cell[:size].ljust(size, b"\0") for cell in cells)
    return np.frombuffer(joined, np.uint8).reshape(len(cells), size)


def packed_floats(block: NDArray[np.uint8]) -> list[FloatArray]:
    """The same bytes as numbers of 8 bytes, in either order, and where they are 4 bytes long, of 4."""
    rows, size = block.shape
    if size == 0 or size % 4:
        return []
    block = np.ascontiguousarray(block)
    kinds = ("<f8", ">f8") if size % 8 == 0 else ("<f4", ">f4")
    found: list[FloatArray] = []
    for kind in kinds:
        with np.errstate(invalid="ignore"):
            found += list(block.view(kind).reshape(rows, -1).astype(np.float64).T)
    return found
