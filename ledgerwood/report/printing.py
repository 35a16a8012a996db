"""One way to print a result: a two-column table for people, or one JSON object for programs."""

import json
import math
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

Fact = str | int | float | bool | None


def show(title: str, facts: Mapping[str, Fact], *, as_json: bool) -> None:
    """Print named facts; as JSON, infinity becomes the string "inf" (JSON has no such number)."""
    if as_json:
        print_json(facts)
        return
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), escape(plain(value)))
    Console().print(table)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    print(json.dumps(_finite(value), indent=1, allow_nan=False))  # noqa: T201


def plain(value: Fact) -> str:
    """A value as people read it: six digits of a number, yes and no."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.6g}"
        case _:
            return str(value)


def _finite(value: object) -> object:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case _:
            return value
