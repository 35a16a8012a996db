"""Owner-side reading of keys: the caller's names of the privacy units, by which a stream recognises who came before.

What is refused here is refused before any budget or row moves; the outcome is for the owner of the data and is not
private. Messages name rows by their number and never show a key.
"""

from collections.abc import Sequence
from typing import Any, Literal, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ledgerwood.errors import SchemaError, SchemaTypeError

KeyKind = Literal["integers", "strings"]
_WANTED = "one whole number, or one text, for each row"


@final
class UnitKeys:
    """Checked keys, one a row, all different. Made by `read_keys`.

    Args:
        kind: what the keys are; the number 1 and the text "1" are two units, so a stream has keys of one kind.
        tokens: each key as bytes, distinct exactly where the keys are.
    """

    __slots__ = ("kind", "tokens")

    def __init__(self, kind: KeyKind, tokens: Sequence[bytes]) -> None:
        self.kind: KeyKind = kind
        self.tokens = tokens

    def __repr__(self) -> str:
        return f"UnitKeys(kind={self.kind!r})"


def read_keys(keys: Any, n_rows: int) -> UnitKeys:
    """Check the keys of a table's rows.

    Args:
        keys: array-like or series, shape (n_rows,): whole numbers of any width, or texts; all of one kind.
        n_rows: rows of the table.

    Raises:
        SchemaTypeError: floats, dates, truth values, or numbers among texts.
        SchemaError: another shape, a missing key, or a key that two rows share: a row is one privacy unit.
    """
    values = _one_axis(keys)
    if len(values) != n_rows:
        raise SchemaError(f"keys has {len(values)} entries and X {n_rows} rows; it must hold {_WANTED}")
    kind = _kind(values)
    if kind == "integers":
        tokens = [b"i%d" % key for key in values.tolist()]
    else:
        texts: list[str] = values.tolist()
        for row, text in enumerate(texts):
            # numpy drops trailing NULs of fixed-width text: the same unit would have two keys.
            if not text or "\0" in text:
                raise SchemaError(
                    f"the key of row {row} is empty or has a NUL character; a unit needs a name of its own"
                )
        tokens = [b"s" + text.encode("utf-8", "surrogatepass") for text in texts]
    if len(set(tokens)) < len(tokens):
        raise SchemaError(_twice(tokens))
    return UnitKeys(kind, tokens)


def _one_axis(keys: Any) -> NDArray[Any]:
    series = nw.from_native(keys, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        if series.is_null().any():
            raise _missing(int(series.is_null().arg_max() or 0))
        keys = series.to_numpy()
    if isinstance(keys, np.ma.MaskedArray):
        if np.ma.getmaskarray(keys).any():
            raise _missing(int(np.argmax(np.ma.getmaskarray(keys).reshape(-1))))
        keys = keys.data
    # A list of numbers and texts would become an array of texts.
    values = np.asarray(keys, dtype=object) if isinstance(keys, list | tuple) else np.asarray(keys)
    if values.ndim != 1:
        raise SchemaError(f"keys has shape {values.shape}; it must hold {_WANTED}")
    return values


def _kind(values: NDArray[Any]) -> KeyKind:
    match values.dtype.kind:
        case "i" | "u":
            return "integers"
        case "U":
            return "strings"
        case "O" | "T":
            return _kind_of_objects(values)
    raise SchemaTypeError(
        f"keys has dtype {values.dtype}; it must hold {_WANTED} (many tools read whole numbers with a gap among "
        "them as floats: give every row a key)"
    )


def _kind_of_objects(values: NDArray[Any]) -> KeyKind:
    numbers = texts = 0
    for row, key in enumerate(values):
        if isinstance(key, str):
            texts += 1
        elif isinstance(key, int | np.integer) and not isinstance(key, bool):
            numbers += 1
        elif key is None or type(key).__name__ in ("NAType", "NaTType") or (isinstance(key, float) and key != key):
            raise _missing(row)
        else:
            raise SchemaTypeError(f"the key of row {row} is of type {type(key).__name__}; keys must hold {_WANTED}")
        if numbers and texts:
            raise SchemaTypeError(f"keys mixes numbers and texts (row {row} is the first to differ): 1 and '1' differ")
    return "strings" if texts else "integers"


def _missing(row: int) -> SchemaError:
    return SchemaError(f"the key of row {row} is missing: a row without a key cannot be told from one that came before")


def _twice(tokens: list[bytes]) -> str:
    seen: dict[bytes, int] = {}
    for row, token in enumerate(tokens):
        if (first := seen.setdefault(token, row)) != row:
            return f"rows {first} and {row} have the same key: in one call each privacy unit is one row"
    raise AssertionError("unreachable: called where two are alike")
