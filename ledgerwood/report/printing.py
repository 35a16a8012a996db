"""Printed output and errors of the commands.

One way to print a result: a two-column table for people, or one JSON object for programs.

How the commands fail, and what they warn of: one line of standard error each, and exit code 1 for a
failure; and what a ledger's verdict ends with.
"""

import functools
import json
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Literal, ParamSpec

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledgerwood.errors import PrivacyError, PrivacyWarning

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


P = ParamSpec("P")

REFUTED = 3
"""Exit code where a claim, or a ledger's charge, is refuted."""
UNCONFIRMED = 4
"""Exit code where a ledger's charge could not be confirmed."""


def refusals(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what the library refuses, and a file that cannot be used, into one line of standard error, exit code 1."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with _cautions():
                command(*args, **kwargs)
        except ModuleNotFoundError as missing:
            extra = "sql" if missing.name in {"sqlalchemy", "psycopg"} else "trainers"
            _fail(f"this command needs {missing.name}: pip install 'ledgerwood[{extra}]'", missing)
        except ImportError as missing:
            _fail(str(missing), missing)
        except (PrivacyError, OSError) as refusal:
            told = "; ".join([str(refusal), *getattr(refusal, "__notes__", ())])
            _fail(f"{type(refusal).__name__}: {_as_options(told, kwargs)}", refusal)

    return guarded


@contextmanager
def _cautions() -> Iterator[None]:
    """Print every `PrivacyWarning` as a line of standard error, for any warning filters; no other warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyWarning)
        shown = warnings.showwarning
        told = Console(stderr=True, soft_wrap=True)

        def show(message: Warning | str, category: type[Warning], *place: Any, **named: Any) -> None:
            if issubclass(category, PrivacyWarning):
                told.print(f"warning: {message}", style="yellow", markup=False, highlight=False)
            else:
                shown(message, category, *place, **named)

        warnings.showwarning = show
        yield


_BY_OPTION = {"count": "steps"}
"""Parameters whose name differs from the option that sets them."""


def _as_options(message: str, options: Mapping[str, object]) -> str:
    """The message with the names of parameters as options of this command, and with commands for functions."""
    message = message.replace("schema.check(X, y)", "`ledgerwood schema check`")
    for name in sorted({*options, *(own for own, option in _BY_OPTION.items() if option in options)}):
        option = _BY_OPTION.get(name, name).replace("_", "-")
        message = re.sub(rf"(?<![\w-]){name}=(?!=)", f"--{option}=", message)
    return message


def leave(verdict: Literal["refuted", "unconfirmed", "confirmed"], *, allow_unconfirmed: bool) -> None:
    """End a command by what was found of a ledger: exit code 3 where it is refuted, 4 where it is not confirmed."""
    if verdict == "refuted":
        raise typer.Exit(REFUTED)
    if verdict == "unconfirmed" and not allow_unconfirmed:
        raise typer.Exit(UNCONFIRMED)


def _fail(message: str, cause: Exception) -> None:
    Console(stderr=True, soft_wrap=True).print(message, style="red", markup=False, highlight=False)
    raise typer.Exit(1) from cause
