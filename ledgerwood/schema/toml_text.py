"""The TOML text of a schema or a draft, with comments that say how to fill what is open."""

import json
from collections.abc import Sequence

from ledgerwood.errors import SchemaError
from ledgerwood.schema.dates import Feature
from ledgerwood.schema.features import Numeric
from ledgerwood.schema.opens import Open, OpenCategorical, OpenColumn, OpenDate, OpenNumeric
from ledgerwood.schema.records import record_of

OPEN_HEAD = """\
# Lines such as "# low = 0.0" are open: fill them in and remove the "# " before them.
# Bounds and categories come from a public source (a codebook, the instrument, a regulation), never from the rows.
# Set missing = false for a column that always has a value.
"""
_ANY = """\
# open means that the column's type is not known. Put one of these in the place of the line open = ..., or delete the
# column if it is not to be used:
#   numeric = "NAME"       with  low = 0.0  and  high = 1.0, in the column's unit
#   categorical = "NAME"   with  categories = ["a", "b"]
#   date = "NAME"          with  first = "2001-01-01"  and  last = "2024-12-31"
"""


def toml_text(
    features: Sequence[Feature | Open],
    target: Feature | Open | None,
    every: Numeric | None,
    weight_bound: float | None,
    *,
    estimated: bool = False,
) -> str:
    """A table's columns as TOML; the inverse of `records.parts`.

    Raises:
        SchemaError: a text that is no Unicode, which TOML cannot hold.
    """
    columns = [*features, *(() if target is None else (target,))]
    blocks = []
    if any(not isinstance(each, Feature) for each in columns):
        kinds = [OPEN_HEAD, *([_ANY] if any(isinstance(each, OpenColumn) for each in columns) else [])]
        blocks.append("".join(kinds))
    if estimated:
        blocks.append("estimated = true  # what is open is estimated privately, as a part of the budget\n")
    if weight_bound is not None:
        blocks.append(f"weight_bound = {_value(weight_bound)}\n")
    blocks += ["[[features]]\n" + _block(feature) for feature in features]
    if every is not None:
        blocks.append("[every]\n" + _block(every))
    if target is not None:
        blocks.append("[target]\n" + _block(target))
    return "\n".join(blocks)


def _block(column: Feature | Open) -> str:
    lines = [f"{name} = {_value(value)}" for name, value in record_of(column).items()]
    match column:
        case OpenNumeric():
            lines[-1:-1] = [f"# {field} = {0.0 if field == 'low' else 1.0}" for field in column.fields]
        case OpenDate():
            zone = "T00:00Z" if column.zoned else ""
            lines[-1:-1] = [f'# first = "2001-01-01{zone}"', f'# last = "2024-12-31{zone}"']
        case OpenCategorical():
            lines[-1:-1] = ['# categories = ["a", "b"]']
        case _:
            pass
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case list():
            return f"[{', '.join(map(_value, value))}]"
    raise SchemaError(f"{value!r} cannot be written to TOML")


def _text(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SchemaError(f"{text!r} is no Unicode text, and TOML holds no other: write the schema as JSON") from error
    return json.dumps(str.__str__(text), ensure_ascii=False).replace("\x7f", "\\u007f")
