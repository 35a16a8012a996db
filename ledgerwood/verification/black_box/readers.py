"""Readers from the cells of a leaf to columns of numbers; the learning draws fix them once.

A reader is a function of one cell at a time, and never refuses one: what it was not made for becomes NaN, so that no
output of the test changes how others are read. docs/explanation/black-box.md#black-box-encoding.

Texts and bytes are read one at a time, as the numbers that are written in them and a form, which is the text with each
digit replaced by 0. Together they keep all of it, but for digits beyond those of float64.
"""

import abc
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting.events.base import FloatArray
from ledgerwood.verification.black_box.leaves import Cells

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
    """Reads the bytes as 8-byte floats, in both byte orders, and as 4-byte floats if the length is 4."""
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


_EXACT = 53
"""Bits of a whole number that float64 holds."""
_LIMB = 32
_MOST_LIMBS = 64
_MOST_NUMBERS = 64
"""Numbers that are read out of one text."""
_MOST_BYTES = 64
_SINGLE = 0.5
"""A share of forms that were met once, above which the forms of texts are not looked at."""


class Reader(abc.ABC):
    """Columns of one leaf."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def words(self) -> tuple[str, ...]:
        """Descriptions of the columns, with {} for the leaf's name."""

    @abc.abstractmethod
    def columns(self, cells: Cells, wanted: Sequence[int]) -> list[FloatArray]:
        """The wanted columns of these cells, shape (n,) each."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the parts that are not used, with {} for the leaf's name."""
        return ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers(Reader):
    """Real numbers as they are; whole numbers beyond 2^53 also by 32 bits at a time; complex ones by both parts.

    Args:
        centre: what is taken from whole numbers before they become float64.
        limbs: groups of 32 bits besides; 0 if float64 holds all numbers.
        imaginary: whether the imaginary part is a column.
    """

    centre: int = 0
    limbs: int = 0
    imaginary: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """See there."""
        if self.imaginary:
            return "the real part of {}", "the imaginary part of {}"
        if not self.limbs:
            return ("{}",)
        groups = (f"bits {_LIMB * k} to {_LIMB * (k + 1) - 1} of {{}}" for k in reversed(range(self.limbs)))
        return ("{}" if self.centre == 0 else f"{{}} - {self.centre}", "the highest bits of {}", *groups)

    def columns(self, cells: Cells, wanted: Sequence[int]) -> list[FloatArray]:
        """See there."""
        if self.imaginary:
            parts = as_complex(cells)
            return [np.ascontiguousarray((parts.real, parts.imag)[place]) for place in wanted]
        if not self.limbs:
            return [as_floats(cells) for _ in wanted]
        items = cells.tolist() if isinstance(cells, np.ndarray) else cells
        return [np.array([self._wide(item, place) for item in items], np.float64) for place in wanted]

    def _wide(self, item: Any, place: int) -> float:
        """One column of one number of any size: no integer of numpy holds them."""
        whole = _whole(item)
        if whole is None:
            return _as_float(item) - self.centre if place == 0 else math.nan
        if place == 0:
            return _as_float(whole - self.centre)
        if place == 1:
            return _as_float(whole >> (_LIMB * self.limbs))
        return float(whole >> (_LIMB * (self.limbs + 1 - place)) & (2**_LIMB - 1))


def numbers_of(cells: Sequence[Cells]) -> Numbers:
    """The reader of these numbers, and of any other."""
    if any(_is_complex(part) for part in cells):
        return Numbers(imaginary=True)
    bits = max((_bits(part) for part in cells), default=0)
    if bits <= _EXACT:
        return Numbers()
    limbs = min(math.ceil((bits - _EXACT) / _LIMB), _MOST_LIMBS)
    some = [whole for part in cells for item in part[:1000] if (whole := _whole(item)) is not None]
    return Numbers(centre=sorted(some)[len(some) // 2] if some else 0, limbs=limbs)


def _is_complex(cells: Cells) -> bool:
    if isinstance(cells, np.ndarray):
        return bool(cells.dtype.kind == "c")
    return any(isinstance(item, complex | np.complexfloating) for item in cells)


def _bits(cells: Cells) -> int:
    """Of the largest whole number; 0 without one."""
    if isinstance(cells, np.ndarray):
        if cells.dtype.kind not in "iu" or not cells.size:
            return 0
        return max(abs(int(cells.min())), abs(int(cells.max()))).bit_length()
    return max((abs(whole).bit_length() for item in cells if (whole := _whole(item)) is not None), default=0)


def _whole(item: Any) -> int | None:
    return int(item) if isinstance(item, int | np.integer) else None


def as_floats(cells: Cells) -> FloatArray:
    """Each number as float64: beyond its range as an infinity, of a complex one the real part."""
    if isinstance(cells, np.ndarray):
        with np.errstate(over="ignore"):
            return np.asarray(cells.real if cells.dtype.kind == "c" else cells).astype(np.float64)
    return np.array([_as_float(item) for item in cells], np.float64)


def _as_float(item: Any) -> float:
    try:
        return float(item)
    except OverflowError:
        return math.inf if item > 0 else -math.inf
    except ValueError:  # a signalling NaN of the module decimal
        return math.nan
    except TypeError:
        return float(item.real)


def as_complex(cells: Cells) -> Any:
    """Each number as complex128, shape (n,)."""
    if isinstance(cells, np.ndarray):
        return cells.astype(np.complex128)
    return np.array([item if isinstance(item, complex) else complex(_as_float(item)) for item in cells], np.complex128)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Texts(Reader):
    """The numbers that are written in a text, and its form.

    Args:
        numbers: a reader for each place at which a number is written.
        distinct, seen: number of forms that were met, and of how many texts, where they are too many to be looked at;
            else 0.
        longest: the most numbers that were met in one text.
    """

    numbers: tuple[Numbers, ...]
    distinct: int = 0
    seen: int = 0
    longest: int = 0

    @property
    def words(self) -> tuple[str, ...]:
        """See there."""
        found = [] if self.distinct else ["the form of {}"]
        for place, reader in enumerate(self.numbers):
            name = "the number in {}" if len(self.numbers) == 1 else f"number {place} in {{}}"
            found += [words.replace("{}", name) for words in reader.words]
        return tuple(found)

    @property
    def notes(self) -> tuple[str, ...]:
        """See there."""
        found = []
        if self.distinct:
            found.append(
                f"{{}}: {self.distinct:,} of {self.seen:,} texts have a distinct form, so nothing can be "
                "learned from them except the numbers in them. Return their parts (numbers, categories) as "
                "a tuple, one part each"
            )
        if self.longest > len(self.numbers):
            found.append(
                f"{{}}: only the first {len(self.numbers)} of up to {self.longest} numbers in a text were read"
            )
        return tuple(found)

    def columns(self, cells: Cells, wanted: Sequence[int]) -> list[FloatArray]:
        """See there."""
        found: dict[int, FloatArray] = {}
        at = 0
        if not self.distinct:
            at = 1
            if 0 in wanted:
                found[0] = np.array([form(text) for text in cells], np.float64)
        owners = [(number, part) for number, reader in enumerate(self.numbers) for part in range(len(reader.words))]
        if any(place >= at for place in wanted):
            spelled = self._spelled(cells)
            for place in wanted:
                if place >= at:
                    number, part = owners[place - at]
                    found[place] = self.numbers[number].columns(spelled[number], [part])[0]
        return [found[place] for place in wanted]

    def _spelled(self, cells: Cells) -> list[Cells]:
        """By place, the number of each text; NaN where there is none."""
        if len(self.numbers) == 1 and not self.numbers[0].limbs:
            try:
                return [np.array(cells, dtype=np.str_).astype(np.float64)]  # the same, at once, if all are numbers
            except ValueError:
                pass
        found = [numbers(text) for text in cells]
        return [[row[place] if place < len(row) else math.nan for row in found] for place in range(len(self.numbers))]


def texts_of(cells: Sequence[Sequence[str]]) -> Texts:
    """The reader of these texts."""
    together = [text for part in cells for text in part]
    found = [numbers(text) for text in together]
    longest = max(map(len, found), default=0)
    readers = [
        numbers_of([[row[place] for row in found if len(row) > place]]) for place in range(min(longest, _MOST_NUMBERS))
    ]
    times = Counter(form(text) for text in together)
    once = sum(count == 1 for count in times.values())
    many = len(together) >= 100 and once > _SINGLE * len(together)
    return Texts(
        numbers=tuple(readers), distinct=len(times) if many else 0, seen=len(together) if many else 0, longest=longest
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes(Reader):
    """Bytes that are no text: their number, each of the first 64, and the same bytes as floats.

    Args:
        size: number of bytes that are looked at.
        longest: their number.
    """

    size: int
    longest: int

    @property
    def words(self) -> tuple[str, ...]:
        """See there."""
        each = (f"byte {place} of {{}}" for place in range(self.size))
        floats = (f"float {place} in the bytes of {{}}" for place in range(self._floats))
        return ("the number of bytes of {}", *each, *floats)

    @property
    def _floats(self) -> int:
        return 0 if self.size % 4 else self.size // 8 * 2 if self.size % 8 == 0 else self.size // 4 * 2

    @property
    def notes(self) -> tuple[str, ...]:
        """See there."""
        words = (
            "{}: bytes were looked at one by one, and as floats; what is compressed, encrypted or pickled is not taken "
            "apart. Return what is in it"
        )
        found: tuple[str, ...] = (words,)
        if self.longest > self.size:
            found += (f"{{}}: only the first {self.size} of up to {self.longest} bytes were looked at",)
        return found

    def columns(self, cells: Cells, wanted: Sequence[int]) -> list[FloatArray]:
        """See there."""
        given = [bytes(cell) for cell in cells]
        block = byte_columns(given, self.size)
        floats = packed_floats(block) if any(place > self.size for place in wanted) else []
        found = []
        for place in wanted:
            if place == 0:
                found.append(np.array([len(cell) for cell in given], np.float64))
            elif place <= self.size:
                found.append(block[:, place - 1].astype(np.float64))
            else:
                found.append(floats[place - self.size - 1])
        return found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlainBytes(Reader):
    """Bytes that are texts."""

    inner: Texts

    @property
    def words(self) -> tuple[str, ...]:
        """See there."""
        return self.inner.words

    @property
    def notes(self) -> tuple[str, ...]:
        """See there."""
        return self.inner.notes

    def columns(self, cells: Cells, wanted: Sequence[int]) -> list[FloatArray]:
        """See there."""
        return self.inner.columns([as_text(cell) for cell in cells], wanted)


def bytes_of(cells: Sequence[Sequence[bytes]]) -> Reader:
    """The reader of these bytes."""
    together = [cell for part in cells for cell in part]
    if printable(together):
        return PlainBytes(inner=texts_of([[as_text(cell) for cell in together]]))
    longest = max(map(len, together), default=0)
    size = -(-min(longest, _MOST_BYTES) // 4) * 4  # numpy leaves out zeros at the end of bytes
    return Bytes(size=size, longest=longest)


@final
@dataclass(frozen=True, slots=True)
class Lengths(Reader):
    """The number of parts of a sequence."""

    @property
    def words(self) -> tuple[str, ...]:
        """See there."""
        return ("the length of {}",)

    def columns(self, cells: Cells, wanted: Sequence[int]) -> list[FloatArray]:
        """See there."""
        return [as_floats(cells) for _ in wanted]


@final
@dataclass(frozen=True, slots=True)
class Unread(Reader):
    """A leaf of which only counts whether it is there."""

    @property
    def words(self) -> tuple[str, ...]:
        """See there."""
        return ()

    def columns(self, cells: Cells, wanted: Sequence[int]) -> list[FloatArray]:
        """See there."""
        return []
