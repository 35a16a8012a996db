"""Reads values, sample weights and keys from outside, each by itself and by its declared type.

No function here refuses a value, warns about one, or compares two values: what cannot be read counts as missing. What
may be refused is the type of an array. Sample weights are shares of the schema's public bound. Keys are the names of
the privacy units, by which a stream recognises returning units: a row whose key is missing, or is no key, belongs to no
unit and takes no part, and of several rows of one unit the first one does.
"""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ledgerwood.curator.grid import STEP
from ledgerwood.curator.inputs.reading import has_objects, one_column, same_length, series_or_none
from ledgerwood.errors import SchemaError, SchemaTypeError
from ledgerwood.schema import MAX_CATEGORY, Category, Schema

MISSING, NO_KEY = -1, -2
_NUMBERS, _CATEGORIES = "biufO", "biufUTO"
_NUMPY = (np.bool_, np.integer, np.floating)


@final
@dataclass(frozen=True, slots=True)
class Keys:
    """A categorical column: which key each row has.

    Args:
        codes: int64 (n_rows,), positions in `keys`; MISSING, or NO_KEY for what no schema can list.
        keys: distinct categories.
    """

    codes: NDArray[np.int64]
    keys: tuple[Category, ...]


def numbers(column: NDArray[Any], name: str) -> NDArray[np.float64]:
    """float64 (n_rows,); what is not a number becomes NaN, and so does a whole number beyond float64.

    Args:
        column: see `reading`.
        name: for errors.

    Raises:
        SchemaTypeError: an array of a type that has no numbers.
    """
    _require_kind(column, name, _NUMBERS, "numbers")
    with np.errstate(all="ignore"):  # a number that is too large for float64 is infinite, and no warning tells of it
        if column.dtype.kind != "O":
            return column.astype(np.float64)
        values = column.tolist()
        if all(type(value) is float for value in values):
            return np.array(values, dtype=np.float64)
        return np.fromiter(map(_float, values), np.float64, len(values))


def categories(column: NDArray[Any], name: str) -> Keys:
    """Strings, and numbers below 2**53 (a boolean is 0 or 1), are keys; other numbers are NO_KEY.

    So is a string that ends in NUL, which `Categorical` cannot list. What is neither counts as missing.

    Args:
        column: see `reading`.
        name: for errors.

    Raises:
        SchemaTypeError: an array of a type that has no categories.
    """
    _require_kind(column, name, _CATEGORIES, "strings, numbers or truth values")
    found: dict[Category, int] = {}

    def code(value: object) -> int:
        if issubclass(type(value), str):
            text = str.__str__(value)  # an enumeration of strings prints something else
            return NO_KEY if text.endswith("\0") else found.setdefault(text, len(found))
        number = real_number(value)
        if number is None or number != number:
            return MISSING
        if not abs(number) < MAX_CATEGORY:
            return NO_KEY
        return found.setdefault(int(number) if number == int(number) else number, len(found))

    with np.errstate(all="ignore"):
        if column.dtype.kind in "biufU":
            distinct, inverse = np.unique(column, return_inverse=True)
            codes = np.fromiter(map(code, distinct.tolist()), np.int64, len(distinct))[inverse]
        else:
            codes = np.fromiter(map(code, column.tolist()), np.int64, len(column))
    return Keys(codes=codes, keys=tuple(found))


def real_number(value: object) -> int | float | None:
    """The number as one of Python's own; None for what is not one.

    By the true class and its base's conversion: what an object says of itself, or raises, is its own affair.
    """
    kind = type(value)
    if kind is float or kind is int:
        return value  # type: ignore[return-value]  # as its class says
    try:
        if issubclass(kind, float):
            return float.__float__(value)  # type: ignore[arg-type]
        if issubclass(kind, int):
            return int.__int__(value)  # type: ignore[arg-type]
        if issubclass(kind, np.integer):
            return int(value)  # type: ignore[call-overload,no-any-return]
        if issubclass(kind, _NUMPY):
            return float(value)  # type: ignore[arg-type]
        if issubclass(kind, Decimal):
            return Decimal.__float__(value)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001  # a signalling NaN, or a subclass that raises: no number
        return None
    return None


def _float(value: object) -> float:
    number = real_number(value)
    if number is None:
        return math.nan
    try:
        return float(number)
    except OverflowError:
        return math.nan


def _require_kind(column: NDArray[Any], name: str, kinds: str, wanted: str) -> None:
    if column.dtype.kind == "c":
        raise SchemaTypeError(f"Complex data not supported: column {name!r} must be real")
    if column.dtype.kind not in kinds:
        raise SchemaTypeError(
            f"column {name!r} is an array of type {column.dtype}, and is declared to hold {wanted}: convert it"
        )


Weights = NDArray[np.int32]
"""(n_rows,), each row's weight over the schema's bound, in steps of 2**-20; empty: every row weighs a whole."""
ALL_WHOLE: Weights = np.empty(0, dtype=np.int32)
_WHOLE = round(1.0 / STEP)


def encode_weights(
    sample_weight: Any, schema: Schema, *, n_rows: int, shares: NDArray[np.float64] | None = None
) -> Weights:
    """Each row's share of the largest weight, truncated to the grid: whole weights are exact if that is a power of two.

    A weight outside [0, weight_bound] is clamped to it; one that is missing or not a number is 0. A row's own share is
    multiplied by that of its class.

    Args:
        sample_weight: array-like (n_rows,), between 0 and the schema's weight_bound, each row's own; None: every row
            weighs 1.
        schema: the public description.
        n_rows: the number of rows of the table.
        shares: float64 (n_rows,) in [0, 1], of each row's class; None where classes have no weights.

    Raises:
        SchemaError: weights without a bound; a bound below 1 without weights; another shape, or an array of a type that
            has no numbers.
    """
    own = _own_shares(sample_weight, schema.weight_bound, n_rows)
    if shares is None or own is None:
        return encode_share(own if shares is None else shares)
    return encode_share(own * shares)


def encode_share(shares: NDArray[np.float64] | None) -> Weights:
    """Shares in [0, 1] of the largest weight, float64 (n_rows,), truncated to the grid; None: rows weigh a whole."""
    if shares is None:
        return ALL_WHOLE
    # A correctly rounded quotient of two numbers in order is at most 1, so is a product of such, and times 2**20 it is
    # exact.
    return np.minimum(np.trunc(shares * _WHOLE), _WHOLE).astype(np.int32)


def _own_shares(sample_weight: Any, bound: float | None, n_rows: int) -> NDArray[np.float64] | None:
    """Each row's own weight over the bound, float64 (n_rows,); None without a bound. Errors: `encode_weights`."""
    if bound is None:
        if sample_weight is None:
            return None
        raise SchemaError(
            "sample_weight needs a public bound: declare the largest weight that a row may have, "
            "Schema(..., weight_bound=...). It is not computed from the weights, since that would depend on a row"
        )
    if sample_weight is None and bound < 1.0:
        raise SchemaError(
            f"sample_weight=None gives every row weight 1, above the schema's weight_bound={bound!r}: give weights, "
            "or declare a bound of at least 1"
        )
    values = np.ones(n_rows) if sample_weight is None else weight_values(sample_weight, n_rows)
    shares: NDArray[np.float64] = np.clip(np.where(np.isnan(values), 0.0, values), 0.0, bound) / bound
    return shares


def weight_values(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """The weights as they were given, float64 (n_rows,); NaN for what is not a number.

    Raises:
        SchemaError: of another shape, or an array of a type that has no numbers.
    """
    column = one_column(sample_weight, "sample_weight", numeric=True)
    same_length(n_rows, len(column), "sample_weight")
    return numbers(column, "sample_weight")


KeyKind = Literal["integers", "strings"]
_WANTED = "one whole number, or one text, for each row"
_LONG = 1 << 128
_WHOLE_KEYS = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


@final
class UnitKeys:
    """The privacy units of a table's rows. Made by `read_keys`.

    Args:
        kind: what the type of their column says they are; None for a list or a column of objects, which does not say.
        tokens: the tokens of each unit, its key as bytes, all different.
        rows: int64 (n_units,), rising: the row of each unit.
        n_rows: the number of rows of the table; a row that is not in `rows` takes no part.
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

    A text that spells a whole number is that number: 1 and "1" are the same unit, for any column type.

    Args:
        keys: array-like or series, shape (n_rows,): whole numbers of any width, or texts.
        n_rows: rows of the table.

    Raises:
        SchemaTypeError: a column of floats, dates or truth values.
        SchemaError: another shape.
    """
    reader = UnitReader()
    reader.add(keys, n_rows)
    return reader.units()


@final
class UnitReader:
    """Reads the keys of one batch of rows after another: of several rows of one unit the first one of all counts."""

    __slots__ = ("_first", "_kinds", "_n_rows")

    def __init__(self) -> None:
        self._first: dict[bytes, int] = {}
        self._kinds: set[KeyKind | None] = set()
        self._n_rows = 0

    def add(self, keys: Any, n_rows: int) -> None:
        """Read the keys of the next rows; arguments and errors as in `read_keys`.

        Raises:
            SchemaTypeError: keys of another type than those before.
        """
        kind, column = _column(keys)
        same_length(n_rows, len(column), "keys")
        self._kinds.add(kind)
        if len(self._kinds) > 1:
            kinds = sorted(map(str, self._kinds))
            raise SchemaTypeError(f"the files differ in the type of the keys' column: {kinds}; write it as one of them")
        for row, key in enumerate(column, start=self._n_rows):
            token = _token(key)
            if token is not None:
                self._first.setdefault(token, row)
        self._n_rows += n_rows

    def units(self) -> UnitKeys:
        """The units of all rows that were read."""
        (kind,) = self._kinds
        rows = np.fromiter(self._first.values(), np.int64, len(self._first))
        return UnitKeys(kind, tuple(self._first), rows, self._n_rows)


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
        return b"i" + text.encode() if _WHOLE_KEYS.fullmatch(text) else b"s" + text.encode("utf-8", "surrogatepass")
    if issubclass(kind, int) and kind is not bool:
        return _whole(int.__int__(key))  # type: ignore[arg-type]
    if issubclass(kind, np.integer):
        return _whole(int(key))  # type: ignore[call-overload]
    return None


def _whole(number: int) -> bytes:
    # Python refuses to spell out integers of more than some thousand digits: one key would stop a call.
    return b"i%d" % number if abs(number) < _LONG else b"i" + f"{Decimal(number):f}".encode()
