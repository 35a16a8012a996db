"""Owner-side reading of keys: the caller's names of the privacy units, by which a stream recognises who came before.

Each key is read by itself. A row whose key is missing, or is no key, belongs to no unit: it takes no part. Of several
rows of one unit the first one does. Nothing is refused, or said, because of a key; types and shapes are.
"""

import re
from decimal import Decimal
from typing import Any, Literal, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.inputs.reading import has_objects, one_column, same_length, series_or_none
from ledgerwood.errors import SchemaTypeError

KeyKind = Literal["integers", "strings"]
_WANTED = "one whole number, or one text, for each row"
_LONG = 1 << 128
_WHOLE = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


@final
class UnitKeys:
    """The privacy units of a table's rows. Made by `read_keys`.

    Args:
        kind: what the type of their column says they are; None for a list or a column of objects, which does not say.
        tokens: of each unit, its key as bytes, all different.
        rows: int64 (n_units,), rising: the row of each unit.
        n_rows: of the table; a row that is not in `rows` takes no part.
    """

    __slots__ = ("kind", "n_rows", "rows", "tokens")

    def __init__(self, kind: KeyKind | None, tokens: tuple[bytes, ...], rows: NDArray[np.int64], n_rows: int) -> None:
        self.kind: KeyKind | None = kind
        self.tokens = tokens
        self.rows = rows
        self.n_rows = n_rows

    def __repr__(self) -> str:
        return f"UnitKeys(kind={self.kind!r})"


def read_keys(keys: Any, n_rows: int) -> UnitKeys:
    """Read the keys of a table's rows.

    A text that spells a whole number is that number: 1 and "1" are one unit, whatever a column's type makes of it.

    Args:
        keys: array-like or series, shape (n_rows,): whole numbers of any width, or texts.
        n_rows: rows of the table.

    Raises:
        SchemaTypeError: a column of floats, dates or truth values.
        SchemaError: another shape.
    """
    kind, column = _column(keys)
    same_length(n_rows, len(column), "keys")
    first: dict[bytes, int] = {}
    for row, key in enumerate(column):
        token = _token(key)
        if token is not None:
            first.setdefault(token, row)
    return UnitKeys(kind, tuple(first), np.fromiter(first.values(), np.int64, len(first)), n_rows)


def _column(keys: Any) -> tuple[KeyKind | None, list[Any]]:
    """What the keys' type says that they are, and the keys."""
    series = series_or_none(keys)
    if series is not None and not has_objects(series) and series.dtype.is_integer():
        return "integers", series.to_list()  # a gap among them makes floats of an array of them
    if series is not None and series.dtype == nw.Boolean:
        raise _foreign(series.dtype)
    if isinstance(keys, np.ma.MaskedArray):
        gaps = np.ma.getmaskarray(keys)
        kind, column = _column(keys.data)
        return kind, [None if gap else key for gap, key in zip(gaps.ravel().tolist(), column, strict=True)]
    values = one_column(keys, "keys")
    texts = series is not None and series.dtype in (nw.String, nw.Enum) and not has_objects(series)
    match values.dtype.kind:
        case "i" | "u":
            return "integers", values.tolist()
        case "U" | "T":
            return "strings", values.tolist()
        case "O":
            return "strings" if texts else None, values.tolist()
    raise _foreign(values.dtype)


def _foreign(dtype: object) -> SchemaTypeError:
    return SchemaTypeError(
        f"keys has type {dtype}; it must hold {_WANTED} (many tools read whole numbers with a gap among them as "
        "floats: give every row a key, or pass a column of nullable integers)"
    )


def _token(key: object) -> bytes | None:
    """The key as bytes; None for what is no key."""
    kind = type(key)
    if issubclass(kind, str):
        text = str.__str__(key)  # an enumeration of strings prints something else
        # numpy drops trailing NULs of fixed-width text: the same unit would have two keys.
        if not text or "\0" in text:
            return None
        return b"i" + text.encode() if _WHOLE.fullmatch(text) else b"s" + text.encode("utf-8", "surrogatepass")
    if issubclass(kind, int) and kind is not bool:
        return _whole(int.__int__(key))  # type: ignore[arg-type]
    if issubclass(kind, np.integer):
        return _whole(int(key))  # type: ignore[call-overload]
    return None


def _whole(number: int) -> bytes:
    # Python refuses to spell out integers of more than some thousand digits: one key would stop a call.
    return b"i%d" % number if abs(number) < _LONG else b"i" + f"{Decimal(number):f}".encode()
