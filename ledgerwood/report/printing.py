"""One way to print a result: a two-column table for people, or one JSON object for programs."""

import json
import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_SIX_DIGITS = Context(prec=6, rounding=ROUND_CEILING)
_FOUR_DIGITS_BELOW = Context(prec=4, rounding=ROUND_FLOOR)
Fact = str | int | float | bool | None


def show(title: str, facts: Mapping[str, Fact], *, as_json: bool) -> None:
    """Print named facts, texts of several lines below the others.

    As JSON, infinity becomes the string "inf" (JSON has no such number).
    """
    if as_json:
        print_json(facts)
        return
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    texts = {name: value for name, value in facts.items() if isinstance(value, str) and "\n" in value}
    for name, value in facts.items():
        if name not in texts:
            table.add_row(name.replace("_", " "), escape(plain(value)))
    console = Console()
    console.print(table)
    for text in texts.values():
        console.print(escape(text), highlight=False)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    print(json.dumps(finite(value), indent=1, allow_nan=False))  # noqa: T201


def plain(value: Fact) -> str:
    """A value as people read it: yes and no, and six digits of a number, rounded up as a privacy loss must be."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float() if math.isfinite(value):
            return f"{float(_SIX_DIGITS.create_decimal(Decimal(repr(float(value))))):.6g}"
        case _:
            return str(value)


def least(value: float) -> str:
    """Four digits of a number, rounded down as a lower bound must be."""
    if not math.isfinite(value):
        return str(value)
    return f"{float(_FOUR_DIGITS_BELOW.create_decimal(Decimal(repr(float(value))))):.4g}"


def finite(value: object) -> object:
    """Plain JSON values: infinities and NaN as texts, tuples as lists."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: finite(item) for key, item in value.items()}
        case list() | tuple():
            return [finite(item) for item in value]
        case _:
            return value
